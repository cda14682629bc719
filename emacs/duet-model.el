;;; duet-model.el --- What Emacs knows of a project's sessions  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A model holds what the server of one project has told: sessions, their
;; messages, and the questions that wait for an answer.  It is data: it knows
;; neither the wire nor a buffer.  Data flows one way, from the wire through
;; `duet-events-apply' (duet-events.el) into the model, and from there to the
;; functions that watch it.
;;
;; A session here is a conversation, which the protocol calls a thread.  A run
;; is one prompt and its execution, and the protocol's session_id names a run.
;;
;; What watches a model is a function that `duet-model-add-observer' was given.
;; It is called with
;;
;;   MODEL KIND SESSION OBJECT EXTRA
;;
;;   KIND                 OBJECT           EXTRA
;;   sessions             nil              the list of sessions was read anew
;;   session              nil              its state, title or the like
;;   message-added        a `duet-message'
;;   message-text         a `duet-message' the text that was added to it
;;   message-changed      a `duet-message'
;;   messages-loaded      the messages     `older' or `newer'
;;   messages-moved       the messages     queued prompts in their new order
;;   messages-total       nil
;;   approval             a `duet-approval'
;;   approval-resolved    a `duet-approval'
;;   terminal             data of the event, and its type as EXTRA
;;   secret               data of the event
;;   build                data of the event: a build began or ended
;;   build-progress       what a build that Emacs began does, from the notification
;;   build-diagnostic     what it has found, from the notification
;;   gate                 data of the event: what came of a gate of SESSION
;;   trigger              data of the event
;;   lagged               data of the event
;;   unknown-run          the id of a run that no session is known to have
;;   connection           the connection's state, a symbol
;;
;; SESSION is nil where none is concerned.  What it signals is logged.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-get)
(require 'duet-log)
(require 'duet-message)
(require 'duet-run)
(require 'duet-visible)

(cl-defstruct (duet-model (:constructor duet-model-create) (:copier nil))
  "What is known of a project."
  (root nil :documentation "The project's directory.")
  (sessions (make-hash-table :test #'equal)
            :documentation "The sessions by the ids of their threads.")
  (runs (make-hash-table :test #'equal)
        :documentation "The sessions by the ids of their runs.")
  (approvals (make-hash-table :test #'equal)
             :documentation "What waits for an answer, by its id.")
  (clock 0 :documentation "How many times something was told, see `duet-model-tick'.")
  (gone (make-hash-table :test #'equal)
        :documentation "When questions were answered and runs deleted, by their ids.")
  (orphans nil :documentation "Events whose run is not known yet: (RUN . EVENTS).")
  (seq nil :documentation "The number of the last event, or nil.")
  (observers nil :documentation "Functions that are told of changes."))

(cl-defstruct (duet-session (:copier nil))
  "A conversation with an agent."
  (id nil :documentation "The thread's id.")
  (model nil :documentation "The `duet-model' that has it.")
  (title nil :documentation "What somebody called it, or nil.")
  (summary nil :documentation "The beginning of its first prompt.")
  (agent nil :documentation "The agent's name.")
  (cwd nil :documentation "Where the agent works.")
  (mode nil :documentation "The permission mode in force.")
  (agent-mode nil :documentation "The mode that the agent says it is in, or nil.")
  (llm nil :documentation "The model that the agent works with, or is to, or nil.")
  (told nil :documentation "What the agent tells of its session, a property list.")
  (background nil :documentation "What the agent does while no turn runs, objects.")
  (modes nil :documentation "The modes that can be asked for, objects, once known.")
  (archived nil :documentation "Whether it is put away.")
  (changed "" :documentation "When something last happened, as the protocol writes it.")
  (heard 0 :documentation "When an event last told of it, by the clock of its model.")
  (counted 0 :documentation "When an event last told of its usage, by the same clock.")
  (runs nil :documentation "Its runs, the newest first.")
  (usage nil :documentation "A property list, see `duet-events-add-usage'.")
  (gates nil :documentation "Where its gates stand, see `duet-gates-apply'; nil without.")
  (loaded nil :documentation "Whether messages are kept: nil, `loading' or t.")
  (messages (make-hash-table :test #'equal) :documentation "Messages by key.")
  (order nil :documentation "Messages, the newest first.")
  (offset 0 :documentation "How many events of the conversation precede them.")
  (held nil :documentation "Events that wait for the end of the loading."))

(cl-defstruct (duet-approval (:copier nil))
  "A question that waits, or waited, for an answer."
  (id nil :documentation "The approval's id.")
  (call nil :documentation "The tool call's id.")
  (run nil :documentation "The id of the run that waits.")
  (type nil :documentation "A string: function_call or human_contact.")
  (title nil :documentation "What is asked, in words.")
  (status 'pending :documentation "A symbol: pending, approved, denied, ...")
  (heard 0 :documentation "When an event last told of it, by the clock of the model.")
  (stale nil :documentation "Whether the process that asked is gone.")
  (data nil :documentation "All that the server told, as a property list."))


;;; Watching

(defvar duet-model-observers nil
  "Functions that are told of the changes of every model.
See the commentary of duet-model.el; `duet-model-add-observer' adds some.")

(defun duet-model-add-observer (function &optional model)
  "Have FUNCTION told of every change of MODEL, or of all models if it is nil.
The commentary of duet-model.el says what it is called with.  It should
return soon: thousands of changes a second are to be expected."
  (if model
      (cl-pushnew function (duet-model-observers model))
    (cl-pushnew function duet-model-observers)))

(defun duet-model-remove-observer (function &optional model)
  "Undo `duet-model-add-observer' with FUNCTION and MODEL."
  (if model
      (setf (duet-model-observers model) (remq function (duet-model-observers model)))
    (setq duet-model-observers (remq function duet-model-observers))))

(defun duet-model-follow (function &optional model)
  "Have FUNCTION told of changes, in the current buffer until that is killed.
FUNCTION and MODEL are those of `duet-model-add-observer'."
  (let* ((buffer (current-buffer))
         (observer (lambda (&rest change)
                     (when (buffer-live-p buffer)
                       (with-current-buffer buffer (apply function change))))))
    (duet-model-add-observer observer model)
    (add-hook 'kill-buffer-hook
              (lambda () (duet-model-remove-observer observer model)) nil t)))

(defun duet-model-announce (model kind &optional session object extra)
  "Tell those who watch MODEL of a change: KIND, SESSION, OBJECT and EXTRA."
  (dolist (function (append (duet-model-observers model) duet-model-observers))
    (duet-log-guard (format "Observer of %s" kind)
      (funcall function model kind session object extra))))


;;; What is older than what

;; A reply tells how things were when the server read the request, or later, and
;; an event may overtake it.  So a request notes the time by the clock of the
;; model, and what was told of after that is newer than the reply.

(defun duet-model-tick (model)
  "Note that MODEL is told of something; return the time by its clock."
  (cl-incf (duet-model-clock model)))

(defun duet-model-vanish (model id)
  "Note in MODEL that the question or the run ID is no more."
  (puthash id (duet-model-tick model) (duet-model-gone model)))

(defun duet-model-gone-p (model id asked)
  "Return non-nil if ID is gone from MODEL, which a reply may not know.
It was ASKED for at that time by the clock, or is known to be new if nil."
  (let ((gone (gethash id (duet-model-gone model))))
    (and gone asked (> gone asked))))


;;; Sessions


(defun duet-model-session (model id)
  "Return the session of MODEL that ID names, a thread or a run, or nil."
  (or (gethash id (duet-model-sessions model))
      (gethash id (duet-model-runs model))))

(defun duet-model-session-list (model)
  "Return the sessions of MODEL, those first in which something happened last."
  (let (sessions)
    (maphash (lambda (_ session) (push session sessions)) (duet-model-sessions model))
    (sort sessions (lambda (a b)
                     (duet-get-time-before-p (duet-session-changed b)
                                         (duet-session-changed a))))))

(defun duet-session-leaf (session)
  "Return the last run of SESSION, or nil."
  (car (duet-session-runs session)))

(defun duet-session-leaf-id (session)
  "Return the id of the last run of SESSION; its own id if none is known."
  (if-let ((run (duet-session-leaf session)))
      (duet-run-id run)
    (duet-session-id session)))

(defun duet-session-run (session id)
  "Return the run of SESSION called ID, or nil."
  (cl-find id (duet-session-runs session) :key #'duet-run-id :test #'equal))

(defun duet-session-active-run (session)
  "Return the run of SESSION that an agent works on, or nil."
  (cl-find-if (lambda (run) (memq (duet-run-state run) duet-run-active-states))
              (duet-session-runs session)))

(defun duet-session-silence (session)
  "Return what is known of the silence of SESSION's agent, or nil.
That is a property list of :since, :note and :tool."
  (when-let ((run (duet-session-active-run session)))
    (duet-run-silence run)))

(defun duet-session-background-titles (session)
  "Return the titles of what SESSION's agent does in the background.
While a turn runs there are none."
  (unless (duet-session-active-run session)
    (mapcar (lambda (task)
              (duet-visible-line (or (duet-get-string task :title)
                                     (duet-get-string task :kind) "a task")))
            (duet-session-background session))))

(defun duet-session-queued (session)
  "Return how many prompts of SESSION wait for their turn."
  (cl-count 'queued (duet-session-runs session) :key #'duet-run-state))

(defun duet-session-state (session)
  "Return the state of SESSION, a symbol: that of the run that works, or the last."
  (if-let ((run (or (duet-session-active-run session) (duet-session-leaf session))))
      (duet-run-state run)
    'draft))

(defun duet-session-name (session)
  "Return what to call SESSION: its title, or the beginning of its first prompt."
  (let ((name (or (duet-session-title session) (duet-session-summary session) "")))
    (if (string-blank-p name)
        "untitled"
      (truncate-string-to-width
       (duet-visible-line (truncate-string-to-width name 1000)) 60 nil nil "…"))))

(defun duet-session-error (session)
  "Return why the last run of SESSION failed, or nil."
  (when-let ((run (duet-session-leaf session)))
    (or (duet-run-error run) (duet-run-error-code run))))

(defun duet-session-own-mode (session)
  "Return the mode of SESSION's agent if that is none of Duet's, or nil."
  (let ((mode (duet-session-agent-mode session)))
    (and mode
         (not (member mode '("default" "acceptEdits" "bypassPermissions" "plan")))
         mode)))

(defun duet-session-set-agent-mode (session mode)
  "Note that the agent of SESSION says that it is in MODE.
One that leaves plan mode, or enters it, is in another than was asked for."
  (setf (duet-session-agent-mode session) mode)
  (cond ((equal mode "plan") (setf (duet-session-mode session) mode))
        ((equal (duet-session-mode session) "plan")
         (setf (duet-session-mode session) "default"))))

(defun duet-session-set-agent (session agent)
  "Note that AGENT is the one of SESSION, and forget what another has told."
  (unless (equal agent (duet-session-agent session))
    (when (duet-session-agent session)
      (setf (duet-session-told session) nil
            (duet-session-modes session) nil
            (duet-session-agent-mode session) nil
            (duet-session-llm session) nil))
    (setf (duet-session-agent session) agent)))

(defun duet-session-tell (session parts)
  "Take into SESSION those of PARTS, of what its agent tells, that are there."
  (dolist (key '(:agent :mode :model :options :commands :info))
    (when (plist-member parts key)
      (setf (duet-session-told session)
            (plist-put (duet-session-told session) key (plist-get parts key)))))
  (when (plist-member parts :background)
    (setf (duet-session-background session) (duet-get-objects parts :background)))
  (when-let ((model (duet-get-string parts :model :current)))
    (setf (duet-session-llm session) model)))

(defun duet-session-choice-name (session part id)
  "Return what the agent of SESSION calls ID, one of PART, :mode or :model.
That is ID if it does not say."
  (let ((choice (cl-find id (duet-get-objects (duet-session-told session) part :available)
                         :test #'equal
                         :key (lambda (choice) (duet-get-string choice :id)))))
    (duet-visible-line (or (duet-get-string choice :name) id))))

(defun duet-session-approvals (session)
  "Return the questions of SESSION that wait for an answer."
  (let (approvals)
    (maphash (lambda (_ approval)
               (when (eq session (gethash (duet-approval-run approval)
                                          (duet-model-runs (duet-session-model session))))
                 (push approval approvals)))
             (duet-model-approvals (duet-session-model session)))
    approvals))

(defun duet-model-approval-list (model)
  "Return the questions of MODEL that wait for an answer, the oldest first."
  (let (approvals)
    (maphash (lambda (_ approval) (push approval approvals))
             (duet-model-approvals model))
    (sort approvals (lambda (a b)
                      (duet-get-time-before-p
                       (duet-get-string (duet-approval-data a) :created_at)
                       (duet-get-string (duet-approval-data b) :created_at))))))

(defun duet-model-forget-messages (session)
  "Keep the messages of SESSION no longer; nobody looks at them."
  (setf (duet-session-loaded session) nil
        (duet-session-order session) nil
        (duet-session-held session) nil
        (duet-session-offset session) 0)
  (clrhash (duet-session-messages session)))


;;; Messages


(defun duet-session-message (session key)
  "Return the message of SESSION whose key is KEY, or nil."
  (gethash key (duet-session-messages session)))

(defun duet-session-message-list (session)
  "Return the messages of SESSION, the oldest first."
  (reverse (duet-session-order session)))

(defvar duet-model-late nil
  "Whether what is added has waited, and may be older than what is there.")

(defun duet-model--before-p (a b)
  "Return non-nil if the message A began before B, as far as they tell."
  (let ((one (duet-message-created a))
        (other (duet-message-created b)))
    (and one other
         (or (duet-get-time-before-p one other)
             (and (equal one other)
                  (< (duet-message-seq a) (duet-message-seq b)))))))

(defun duet-model-add-message (message)
  "Add MESSAGE to its session, at the end of what belongs to its run.
A prompt may wait in the queue while the run before it goes on.  An event
that has waited for a page to be loaded may be older than what that
brought, and goes before it."
  (let* ((session (duet-message-session message))
         (run (duet-message-run message))
         (rest (duet-session-order session))
         (newer nil))
    (puthash (duet-message-key message) message (duet-session-messages session))
    (cl-flet ((next () (setq newer rest
                             rest (cdr rest)))
              (run-p () (equal (duet-message-run (car rest)) run)))
      (when (and rest (or (run-p) (cl-find run rest :key #'duet-message-run :test #'equal)))
        (while (not (run-p)) (next))
        (while (and duet-model-late rest (run-p)
                    (not (eq (duet-message-kind (car rest)) 'prompt))
                    (duet-model--before-p message (car rest)))
          (next))))
    (if newer
        (setcdr newer (cons message rest))
      (push message (duet-session-order session)))
    message))

;;; Queued prompts

(defun duet-model--arranged (list ids key)
  "Return LIST with the elements that IDS name, by KEY, in the order of IDS.
All other elements keep their places."
  (let* ((place (lambda (element) (cl-position (funcall key element) ids :test #'equal)))
         (named (sort (copy-sequence (cl-remove-if-not place list))
                      (lambda (a b) (< (funcall place a) (funcall place b))))))
    (mapcar (lambda (element) (if (funcall place element) (pop named) element)) list)))

(defun duet-model-arrange-runs (session ids)
  "Put the queued runs of SESSION that IDS name into the order of IDS.
Each of them continues the one before it."
  (let* ((queued (delete-dups
                  (delq nil (mapcar (lambda (id) (duet-session-run session id)) ids))))
         (first (cl-find-if (lambda (run) (memq run queued)) (duet-session-runs session)
                            :from-end t))
         (before (and first (duet-run-parent first))))
    (dolist (run queued)
      (setf (duet-run-parent run) before)
      (setq before (duet-run-id run)))
    (setf (duet-session-runs session)
          (duet-model--arranged (duet-session-runs session) (reverse ids) #'duet-run-id))))

(defun duet-model-arrange-run (session run &optional most)
  "Put RUN of SESSION behind its parent, and the runs that continue RUN behind it.
Their times of creation do not tell the order of prompts that were moved.  At
most MOST generations follow RUN, 100 if nil."
  (let ((parent (and (duet-run-parent run)
                     (duet-session-run session (duet-run-parent run))))
        (most (or most 100)))
    (when (and parent (memq run (cdr (memq parent (duet-session-runs session)))))
      (setf (duet-session-runs session)
            (cl-loop for other in (remq run (duet-session-runs session))
                     when (eq other parent) collect run
                     collect other)))
    (dolist (child (and (> most 0) (cdr (memq run (duet-session-runs session)))))
      (when (equal (duet-run-parent child) (duet-run-id run))
        (duet-model-arrange-run session child (1- most))))))

(defun duet-model-arrange-messages (session ids)
  "Put the messages of the runs that IDS name into the order of IDS, in SESSION."
  (setf (duet-session-order session)
        (duet-model--arranged (duet-session-order session) (reverse ids)
                              #'duet-message-run))
  (duet-model-announce
   (duet-session-model session) 'messages-moved session
   (cl-remove-if-not (lambda (message) (member (duet-message-run message) ids))
                     (duet-session-message-list session))))

(provide 'duet-model)
;;; duet-model.el ends here
