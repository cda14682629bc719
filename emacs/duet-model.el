;;; duet-model.el --- Data of a project's sessions  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A model holds the data of one project from its server: sessions, their
;; messages, and the questions that wait for an answer.  It is data: it knows
;; neither the wire nor a buffer.  Data flows one way, from the wire through
;; `duet-events-apply' (duet-events.el) into the model, and from there to the
;; functions that watch it.
;;
;; A session here is a conversation, which the protocol calls a thread.  A run
;; is one prompt and its execution, and the protocol's session_id names a run.
;;
;; `duet-model-add-observer' adds an observer, a function that is called with
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
;;   decided              data of the event: a client decided about a change
;;   build                data of the event: a build began or ended
;;   build-progress       what a build that Emacs began does, from the notification
;;   build-diagnostic     what it has found, from the notification
;;   gate                 data of the event: what came of a gate of SESSION
;;   worktree             nil              SESSION's worktree was landed or discarded
;;   trigger              data of the event
;;   lagged               data of the event
;;   unknown-run          the id of a run that no session is known to have
;;   connection           the connection's state, a symbol
;;
;; SESSION is nil where none is concerned.  What it signals is logged.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-log)
(require 'duet-visible)

;;; JSON objects

;; The server may send anything.  These functions return a value of the type that they
;; are named after, or nil.

(defun duet-get (object &rest keys)
  "Return the value at KEYS, one inside the other, in OBJECT; nil if none.
OBJECT may be anything, and so may what is in it; false is nil."
  (while (and keys object)
    (setq object (and (consp object) (keywordp (car object))
                      (ignore-errors (plist-get object (car keys))))
          keys (cdr keys)))
  (if (memq object '(:json-false :false :null)) nil object))

(defun duet-get-name (key)
  "Return the name of the member KEY of an object.
Emacs 28 leaves one that is not ASCII as the bytes it came in."
  (let ((name (substring (symbol-name key) 1)))
    (if (multibyte-string-p name) name (decode-coding-string name 'utf-8))))

(defun duet-get-string (object &rest keys)
  "Return the string under KEYS in OBJECT, or nil; an empty one is nil."
  (let ((value (apply #'duet-get object keys)))
    (and (stringp value) (not (string-empty-p value))
         (if (object-intervals value) (substring-no-properties value) value))))

(defun duet-get-number (object &rest keys)
  "Return the number under KEYS in OBJECT, or nil."
  (let ((value (apply #'duet-get object keys)))
    (and (numberp value) value)))

(defun duet-get-objects (object &rest keys)
  "Return the objects in the array under KEYS in OBJECT as a list."
  (let ((value (apply #'duet-get object keys)))
    (and (vectorp value)
         (cl-remove-if-not (lambda (element)
                             (and (consp element) (keywordp (car element))))
                           (append value nil)))))

(defun duet-get-strings (object &rest keys)
  "Return the strings in the array under KEYS in OBJECT as a list."
  (let ((value (apply #'duet-get object keys)))
    (and (vectorp value) (cl-remove-if-not #'stringp (append value nil)))))

(defun duet-get-time-before-p (a b)
  "Return non-nil if A is before B, both as the protocol writes times.
Their fractions differ in length, so the Z at the end is in the way."
  (string< (string-remove-suffix "Z" (or a "")) (string-remove-suffix "Z" (or b ""))))

;;; Runs

;; A run is one prompt and its execution; the protocol's session_id names it.  Its
;; events may overtake each other: the latest state is kept.

(cl-defstruct (duet-run (:copier nil))
  "One prompt and its execution, or work that an agent has begun by itself."
  (id nil :documentation "The protocol's session_id.")
  (state nil :documentation "A symbol: queued, starting, running, ...")
  (changed "" :documentation "When it got into that state, as the protocol writes it.")
  (created "" :documentation "A time as the protocol writes it.")
  (parent nil :documentation "The id of the run before it.")
  (query nil :documentation "The prompt; empty without one, nil until the server has sent it.")
  (silence nil :documentation "Since when its agent gives no sign of life, see `duet-run-be-silent'.")
  (near nil :documentation "Which budget it has nearly used up, in words, or nil.")
  (error nil :documentation "Why it failed, in words.")
  (error-code nil :documentation "Why it failed, such as ORPHANED."))

(defconst duet-run-active-states '(starting running waiting_input interrupting)
  "States of a run that an agent works on.")

(defconst duet-run-ended-states '(completed failed timed_out cancelled interrupted discarded)
  "States of a run that nothing more comes of.")

(defun duet-run-change (run state time error code)
  "Let RUN be in STATE since TIME, with ERROR and CODE, those of its failure.
A reply may overtake events, and events a reply.  So what is older than
what is known changes nothing, nor does what is as old and comes earlier
in the life of a run.  An end is an end, whatever the clock did."
  (let ((known (duet-run-changed run))
        (rank (lambda (state)
                (cond ((memq state '(nil draft)) 0)
                      ((eq state 'queued) 1)
                      ((eq state 'starting) 2)
                      ((memq state duet-run-active-states) 3)
                      (t 4)))))
    (unless (and (or (duet-get-time-before-p time known)
                     (and (not (duet-get-time-before-p known time))
                          (< (funcall rank state) (funcall rank (duet-run-state run)))))
                 (or (memq (duet-run-state run) duet-run-ended-states)
                     (not (memq state duet-run-ended-states))))
      (setf (duet-run-state run) state
            (duet-run-changed run) (or time known)
            (duet-run-error run) error
            (duet-run-error-code run) code)
      ;; An agent that waits for a person, or has ended, is not silent.
      (unless (memq state '(starting running))
        (setf (duet-run-silence run) nil)))))

(defun duet-run-be-silent (run since note tool)
  "Note that the agent of RUN gives no sign of life SINCE a time; nil: it does.
NOTE is what it has complained of, and TOOL the tool call that it is in the
middle of; each may be nil."
  (setf (duet-run-silence run)
        (and since (ignore-errors (date-to-time since))
             (list :since since :note note :tool tool))))

;;; Messages

;; A message has a place of its own in a conversation: a prompt, what an agent says
;; or thinks, a call of a tool.  Its text comes in pieces, and is joined when it is
;; read.

(cl-defstruct (duet-message (:copier nil))
  "Something in a conversation that has a place of its own."
  (key nil :documentation "A string that no other message of the session has.")
  (kind nil :documentation "Of which kind it is, a symbol; see duet-render.el.")
  (session nil :documentation "The `duet-session' that has it.")
  (run nil :documentation "The id of the run that it belongs to.")
  (open nil :documentation "Whether it is still being written.")
  (seq 0 :documentation "The number of the last event that changed it.")
  (created nil :documentation "When it began, as the protocol writes it.")
  (chunks nil :documentation "Its text in pieces, the last first.")
  (size 0 :documentation "How many characters its text has.")
  (loaded nil :documentation "Whether the next piece may begin in what it has.")
  (cut nil :documentation "Whether an event has left out a part: nil, t or `loading'.")
  (data nil :documentation "Of a plan: its entries; of a diff: the event's data.")
  (attachments nil :documentation "What it has beside text, a list of objects.")
  (parent nil :documentation "The id of the tool call of the sub-agent that it is from."))

(cl-defstruct (duet-tool (:include duet-message) (:copier nil))
  "A tool call."
  id name title tool-kind status input result paths diffs terminal approval
  (refused-by nil :documentation "The client or rule that denied it, as the protocol has it.")
  (refusal nil :documentation "Why, in words."))

(defun duet-message-text (message)
  "Return the text of MESSAGE."
  (let ((chunks (duet-message-chunks message)))
    ;; Text that was joined once need not be joined again.
    (if (cdr chunks)
        (car (setf (duet-message-chunks message)
                   (list (apply #'concat (reverse chunks)))))
      (or (car chunks) ""))))

(defun duet-message-set-text (message text)
  "Make TEXT the text of MESSAGE."
  (setf (duet-message-chunks message) (list text)
        (duet-message-size message) (length text)))

(defun duet-message-append (message text)
  "Add TEXT to the text of MESSAGE."
  (push text (duet-message-chunks message))
  (cl-incf (duet-message-size message) (length text)))

(defun duet-message--units (text)
  "Return how many UTF-16 code units TEXT takes."
  (+ (length text) (cl-count-if (lambda (char) (> char #xffff)) text)))

(defun duet-message-news (message text length)
  "Return the part of TEXT, the next piece of MESSAGE, that is not there yet.
LENGTH is how many UTF-16 code units MESSAGE has with it, or nil.  The server
joins pieces, so that the first after a page was loaded may begin in it."
  (if (not (and (duet-message-loaded message) length))
      text
    (let ((known (- (+ (duet-message--units (duet-message-text message))
                       (duet-message--units text))
                    length))
          (place 0))
      (while (and (> known 0) (< place (length text)))
        (setq known (- known (if (> (aref text place) #xffff) 2 1))
              place (1+ place)))
      (substring text place))))

(defun duet-message-tail (message start)
  "Return the text of MESSAGE from START on, without a look at what precedes it."
  (let ((missing (- (duet-message-size message) start))
        (chunks (duet-message-chunks message))
        (tail '()))
    (while (and chunks (> missing 0))
      (let ((length (length (car chunks))))
        (push (if (> length missing) (substring (car chunks) (- missing)) (car chunks))
              tail)
        (setq missing (- missing length)
              chunks (cdr chunks))))
    (if (cdr tail) (apply #'concat tail) (or (car tail) ""))))

(defun duet-message-run-state (message)
  "Return the state of the run that MESSAGE belongs to, or nil."
  (when-let ((run (duet-session-run (duet-message-session message)
                                    (duet-message-run message))))
    (duet-run-state run)))

(defun duet-message-queued-p (message)
  "Return non-nil if MESSAGE is a prompt that waits for its turn."
  (and (eq (duet-message-kind message) 'prompt)
       (eq (duet-message-run-state message) 'queued)))

;;; The model

(cl-defstruct (duet-model (:constructor duet-model-create) (:copier nil))
  "The data of a project."
  (root nil :documentation "The project's directory.")
  (sessions (make-hash-table :test #'equal)
            :documentation "The sessions by the ids of their threads.")
  (runs (make-hash-table :test #'equal)
        :documentation "The sessions by the ids of their runs.")
  (approvals (make-hash-table :test #'equal)
             :documentation "What waits for an answer, by its id.")
  (clock 0 :documentation "The clock: how many changes came, see `duet-model-tick'.")
  (gone (make-hash-table :test #'equal)
        :documentation "When questions were answered and runs deleted, by their ids.")
  (orphans nil :documentation "Events whose run is not known yet: (RUN . EVENTS).")
  (seq nil :documentation "The number of the last event, or nil.")
  (observers nil :documentation "Functions that are called with changes."))

(cl-defstruct (duet-session (:copier nil))
  "A conversation with an agent."
  (id nil :documentation "The thread's id.")
  (model nil :documentation "The `duet-model' that has it.")
  (title nil :documentation "The title that a user gave it, or nil.")
  (summary nil :documentation "The beginning of its first prompt.")
  (agent nil :documentation "The agent's name.")
  (cwd nil :documentation "Where the agent works.")
  (worktree nil :documentation "Its git worktree, an object of :branch, :dir and :gone, or nil.")
  (attempts nil :documentation "The id that all attempts at its first prompt share, or nil.")
  (mode nil :documentation "The permission mode in force.")
  (agent-mode nil :documentation "The mode that the agent says it is in, or nil.")
  (llm nil :documentation "The model that the agent works with, or is to, or nil.")
  (agent-info nil :documentation "The agent's data on its session, a property list.")
  (background nil :documentation "What the agent does while no turn runs, objects.")
  (modes nil :documentation "The modes that can be asked for, objects, once known.")
  (archived nil :documentation "Whether it is put away.")
  (changed "" :documentation "When something last happened, as the protocol writes it.")
  (heard 0 :documentation "When an event last changed it, by the clock of its model.")
  (counted 0 :documentation "When an event last changed its usage, by the same clock.")
  (runs nil :documentation "Its runs, the newest first.")
  (usage nil :documentation "A property list, see `duet-events-add-usage'.")
  (gates nil :documentation "The state of its gates, see `duet-gates-apply'; nil without.")
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
  (heard 0 :documentation "When an event last changed it, by the clock of the model.")
  (stale nil :documentation "Whether the process that asked is gone.")
  (data nil :documentation "All that the server sent, as a property list."))


;;;; Watching

(defvar duet-model-observers nil
  "Functions that are called with the changes of every model.
See the commentary of duet-model.el; `duet-model-add-observer' adds some.")

(defun duet-model-add-observer (function &optional model)
  "Have FUNCTION called with every change of MODEL, or of all models if nil.
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
  "Have FUNCTION called with changes, in the current buffer until that is killed.
FUNCTION and MODEL are those of `duet-model-add-observer'."
  (let* ((buffer (current-buffer))
         (observer (lambda (&rest change)
                     (when (buffer-live-p buffer)
                       (with-current-buffer buffer (apply function change))))))
    (duet-model-add-observer observer model)
    (add-hook 'kill-buffer-hook
              (lambda () (duet-model-remove-observer observer model)) nil t)))

(defun duet-model-announce (model kind &optional session object extra)
  "Call the observers of MODEL with KIND, SESSION, OBJECT and EXTRA."
  (dolist (function (append (duet-model-observers model) duet-model-observers))
    (duet-log-guard (format "Observer of %s" kind)
      (funcall function model kind session object extra))))


;;;; The clock

;; A reply is the state when the server read the request, or later, and an event may
;; overtake it.  So a request notes the time by the clock of the model, and a change
;; after that is newer than the reply.

(defun duet-model-tick (model)
  "Note a change of MODEL; return the time by its clock."
  (cl-incf (duet-model-clock model)))

(defun duet-model-vanish (model id)
  "Note in MODEL that the question or the run ID is no more."
  (puthash id (duet-model-tick model) (duet-model-gone model)))

(defun duet-model-gone-p (model id asked)
  "Return non-nil if ID is gone from MODEL, which a reply may not know.
It was ASKED for at that time by the clock, or is known to be new if nil."
  (let ((gone (gethash id (duet-model-gone model))))
    (and gone asked (> gone asked))))


;;;; Sessions


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

(defun duet-session-lost-worktree-p (session)
  "Return non-nil if SESSION had a worktree that is gone."
  (and (duet-get (duet-session-worktree session) :gone) t))

(defun duet-session-worktree-directory (session)
  "Return the top of SESSION's worktree as its server calls it; nil if it has none."
  (unless (duet-session-lost-worktree-p session)
    (duet-get-string (duet-session-worktree session) :dir)))

(defun duet-session-silence (session)
  "Return the silence of SESSION's agent, or nil.
That is a property list of :since, :note and :tool."
  (when-let ((run (duet-session-active-run session)))
    (duet-run-silence run)))

(defun duet-session-background-titles (session)
  "Return the titles of the background work of SESSION's agent.
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
  "Return a name of SESSION: its title, or the beginning of its first prompt."
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
  "Note that AGENT is the one of SESSION, and forget the data of another."
  (unless (equal agent (duet-session-agent session))
    (when (duet-session-agent session)
      (setf (duet-session-agent-info session) nil
            (duet-session-modes session) nil
            (duet-session-agent-mode session) nil
            (duet-session-llm session) nil))
    (setf (duet-session-agent session) agent)))

(defun duet-session-merge-agent-info (session parts)
  "Take into SESSION those of PARTS, its agent's data, that are there."
  (dolist (key '(:agent :mode :model :options :commands :info))
    (when (plist-member parts key)
      (setf (duet-session-agent-info session)
            (plist-put (duet-session-agent-info session) key (plist-get parts key)))))
  (when (plist-member parts :background)
    (setf (duet-session-background session) (duet-get-objects parts :background)))
  (when-let ((model (duet-get-string parts :model :current)))
    (setf (duet-session-llm session) model)))

(defun duet-session-choice-name (session part id)
  "Return the agent's name for ID in SESSION, one of PART, :mode or :model.
That is ID if it does not say."
  (let ((choice (cl-find id (duet-get-objects (duet-session-agent-info session) part :available)
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
  "Keep the messages of SESSION no longer; no buffer shows them."
  (setf (duet-session-loaded session) nil
        (duet-session-order session) nil
        (duet-session-held session) nil
        (duet-session-offset session) 0)
  (clrhash (duet-session-messages session)))


;;;; Messages


(defun duet-session-message (session key)
  "Return the message of SESSION whose key is KEY, or nil."
  (gethash key (duet-session-messages session)))

(defun duet-session-message-list (session)
  "Return the messages of SESSION, the oldest first."
  (reverse (duet-session-order session)))

(defvar duet-model-late nil
  "Whether what is added has waited, and may be older than what is there.")

(defun duet-model--before-p (a b)
  "Return non-nil if the message A began before B, as far as is known."
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

;;;; Queued prompts

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
Times of creation do not give the order of prompts that were moved.  At
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

;;; Gates

;; Work may have gates: commands that run after each turn.  The output of those that
;; fail is the agent's next prompt.  The transcript shows their results, and its
;; header line their state, which is kept here.

(defconst duet-gates-events '("iteration_start" "gate_start" "gate_result" "gates_complete")
  "The types of events about gates.")

(defun duet-gates-apply (session type data)
  "Note in SESSION an event of TYPE, one of `duet-gates-events', with DATA."
  (setf (duet-session-gates session)
        (list :state (pcase type
                       ((or "gate_start" "gate_result") "checking")
                       ("gates_complete" (duet-get-string data :gates_state))
                       (_ "working"))
              :iteration (or (duet-get-number data :iteration)
                             (plist-get (duet-session-gates session) :iteration))
              :max_iterations (or (duet-get-number data :max_iterations)
                                  (plist-get (duet-session-gates session) :max_iterations))
              :gate (and (equal type "gate_start") (duet-get-string data :gate))))
  (when (equal type "gate_result")
    (duet-model-announce (duet-session-model session) 'gate session data)))

(defun duet-gates-load (session object)
  "Note in SESSION the gates that OBJECT, from the server, describes."
  (setf (duet-session-gates session)
        (and (duet-get-string object :state)
             (list :state (duet-get-string object :state)
                   :iteration (duet-get-number object :iteration)
                   :max_iterations (duet-get-number object :max_iterations)))))

(defun duet-gates-header (session)
  "Return the state of SESSION's gates for the header line, or nil."
  (when-let ((gates (duet-session-gates session)))
    (let ((turn (format "turn %s of %s" (or (plist-get gates :iteration) "?")
                        (or (plist-get gates :max_iterations) "?"))))
      (pcase (plist-get gates :state)
        ("working" turn)
        ("checking" (concat turn ", checks "
                            (duet-visible-line (or (plist-get gates :gate) "gates"))))
        ("passed" (propertize "gates passed" 'face 'duet-done))
        ("failed" (propertize "gates failed" 'face 'duet-failed))
        (_ nil)))))

(provide 'duet-model)
;;; duet-model.el ends here
