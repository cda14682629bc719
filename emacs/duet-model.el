;;; duet-model.el --- Data of a project's sessions  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A model holds the data of one project from its server: sessions, their
;; messages, and open questions.  It knows neither the wire nor a buffer.  Data flows
;; one way, from the wire through `duet-events-apply' (duet-events.el) into the model,
;; and from there to the observers.
;;
;; A session is a conversation with an agent, and a turn is one prompt and the work
;; on it.
;;
;; `duet-model-add-observer' adds an observer, a function that is called with
;;
;;   MODEL KIND SESSION OBJECT EXTRA
;;
;;   KIND                 OBJECT           EXTRA
;;   sessions             nil              the list of sessions was reloaded
;;   session              nil              a change of SESSION, such as its state or title
;;   message-added        a `duet-message'
;;   message-text         a `duet-message' the added text
;;   message-changed      a `duet-message'
;;   messages-loaded      the messages     `older' or `newer'
;;   messages-moved       the messages     queued prompts in their new order
;;   messages-total       nil
;;   approval             a `duet-approval'
;;   approval-resolved    a `duet-approval'
;;   terminal             data of the event, and its kind as EXTRA
;;   secret               data of the event
;;   decided              data of the event, and its turn as EXTRA: a change is decided
;;   build                data of the event: a build began or ended
;;   build-progress       data of the notification: progress of a build of this Emacs
;;   build-diagnostic     data of the notification: a finding of a build of this Emacs
;;   gate                 data of the event: the result of a gate of SESSION
;;   worktree             nil              SESSION's worktree was landed or discarded
;;   trigger              data of the event
;;   lagged               data of the event
;;   unknown-turn          the id of a turn of an unknown session
;;   connection           the connection's state, a symbol
;;
;; SESSION is nil if the change concerns none.  Errors of observers are logged.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-log)
(require 'duet-protocol)
(require 'duet-visible)

;;; JSON objects

;; The server may send any JSON.  These functions return a value of the type in their
;; name, or nil.

(defun duet-get (object &rest keys)
  "Return the value at the path KEYS in OBJECT, or nil.
OBJECT and its members may have any type; false is nil."
  (while (and keys object)
    (setq object (and (consp object) (keywordp (car object))
                      (ignore-errors (plist-get object (car keys))))
          keys (cdr keys)))
  (if (memq object '(:json-false :false :null)) nil object))

(defun duet-get-name (key)
  "Return the name of the member KEY of an object.
Emacs 28 does not decode names that are not ASCII."
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
The comparison ignores the Z at the end: fractions differ in length."
  (string< (string-remove-suffix "Z" (or a "")) (string-remove-suffix "Z" (or b ""))))

;;; Turns

;; The events of a turn may overtake each other: the latest state is kept.

(cl-defstruct (duet-turn (:copier nil))
  "One prompt and its execution, or work that an agent began by itself."
  (id nil :documentation "The protocol's turn_uuid.")
  (number nil :documentation "Its number in the project, such as \"12.3\", or nil.")
  (state nil :documentation "A symbol: queued, starting, running, ...")
  (changed "" :documentation "When it got into that state, as the protocol writes it.")
  (created "" :documentation "A time as the protocol writes it.")
  (parent nil :documentation "The id or the number of the turn before it.")
  (query nil :documentation "The prompt; empty without one, nil until the server has sent it.")
  (silence nil :documentation "Since when its agent gives no sign of life, see `duet-turn-be-silent'.")
  (near nil :documentation "Which budget it has nearly used up, in words, or nil.")
  (error nil :documentation "Why it failed, in words.")
  (error-code nil :documentation "Why it failed, such as ORPHANED."))

(defconst duet-turn-active-states '(starting running waiting_input interrupting)
  "States of a turn that an agent works on.")

(defconst duet-turn-ended-states '(completed failed timed_out cancelled interrupted discarded)
  "Final states of a turn.")

(defun duet-turn-called-p (turn name)
  "Return non-nil if NAME is the id or the number of TURN."
  (and name (or (equal name (duet-turn-id turn)) (equal name (duet-turn-number turn)))))

(defun duet-turn-change (turn state time error code)
  "Set the STATE of TURN since TIME, with ERROR and CODE of its failure.
Replies and events may overtake each other.  So an older state is ignored,
and also one of the same time that precedes the current state.  A final
state stays, whatever its time."
  (let ((known (duet-turn-changed turn))
        (rank (lambda (state)
                (cond ((memq state '(nil draft)) 0)
                      ((eq state 'queued) 1)
                      ((eq state 'starting) 2)
                      ((memq state duet-turn-active-states) 3)
                      (t 4)))))
    (unless (and (or (duet-get-time-before-p time known)
                     (and (not (duet-get-time-before-p known time))
                          (< (funcall rank state) (funcall rank (duet-turn-state turn)))))
                 (or (memq (duet-turn-state turn) duet-turn-ended-states)
                     (not (memq state duet-turn-ended-states))))
      (setf (duet-turn-state turn) state
            (duet-turn-changed turn) (or time known)
            (duet-turn-error turn) error
            (duet-turn-error-code turn) code)
      ;; An agent that waits for the user, or has ended, is not silent.
      (unless (memq state '(starting running))
        (setf (duet-turn-silence turn) nil)))))

(defun duet-turn-be-silent (turn since note tool)
  "Record that the agent of TURN has been silent SINCE a time, or nil if it is not.
NOTE is its last complaint, and TOOL its open tool call; each may be nil."
  (setf (duet-turn-silence turn)
        (and since (ignore-errors (date-to-time since))
             (list :since since :note note :tool tool))))

;;; Messages

;; A message is a part of a session with its own place: a prompt, text or
;; thoughts of the agent, a tool call.  Its text arrives in pieces, which are joined
;; when it is read.

(cl-defstruct (duet-message (:copier nil))
  "A part of a session with its own place."
  (key nil :documentation "A string that no other message of the session has.")
  (kind nil :documentation "Of which kind it is, a symbol; see duet-render.el.")
  (session nil :documentation "The `duet-session' that has it.")
  (turn nil :documentation "The id of the turn that it belongs to.")
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
  id name title tool-kind status input result paths diffs terminal
  (refused-by nil :documentation "The client or rule that denied it, as the protocol has it.")
  (refusal nil :documentation "Why, in words.")
  (refused-in nil :documentation "The client in which the user denied it.")
  (approval nil :documentation "The id of the question about it."))

(defun duet-message-text (message)
  "Return the text of MESSAGE."
  (let ((chunks (duet-message-chunks message)))
    ;; Keep the joined text.
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
  "Return the length of TEXT in UTF-16 code units."
  (+ (length text) (cl-count-if (lambda (char) (> char #xffff)) text)))

(defun duet-message-news (message text length)
  "Return the new part of TEXT, the next piece of MESSAGE.
LENGTH is the length of MESSAGE with TEXT, in UTF-16 code units, or nil.
The server joins pieces, so the first piece after a loaded page may begin
within that page."
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
  "Return the text of MESSAGE from START on, without joining the text before it."
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

(defun duet-message-turn-state (message)
  "Return the state of the turn of MESSAGE, or nil."
  (when-let ((turn (duet-session-turn (duet-message-session message)
                                      (duet-message-turn message))))
    (duet-turn-state turn)))

(defun duet-message-turn-number (message)
  "Return the number of the turn of MESSAGE, or nil."
  (when-let ((turn (duet-session-turn (duet-message-session message)
                                      (duet-message-turn message))))
    (duet-turn-number turn)))

(defun duet-message-queued-p (message)
  "Return non-nil if MESSAGE is a queued prompt."
  (and (eq (duet-message-kind message) 'prompt)
       (eq (duet-message-turn-state message) 'queued)))

;;; The model

(cl-defstruct (duet-model (:constructor duet-model-create) (:copier nil))
  "The data of a project."
  (root nil :documentation "The project's directory.")
  (sessions (make-hash-table :test #'equal)
            :documentation "The sessions by their ids.")
  (listed nil :documentation "Whether the server's list of sessions has come.")
  (turns (make-hash-table :test #'equal)
         :documentation "The sessions by the ids of their turns.")
  (approvals (make-hash-table :test #'equal)
             :documentation "What waits for an answer, by its id.")
  (clock 0 :documentation "The clock: how many changes came, see `duet-model-tick'.")
  (gone (make-hash-table :test #'equal)
        :documentation "When questions were answered and turns deleted, by their ids.")
  (orphans nil :documentation "Events whose turn is not known yet: (TURN . EVENTS).")
  (seq nil :documentation "The number of the last event, or nil.")
  (observers nil :documentation "Functions that are called with changes."))

(cl-defstruct (duet-session (:copier nil))
  "A conversation with an agent."
  (id nil :documentation "The protocol's session_uuid.")
  (number nil :documentation "Its number in the project, such as \"12\", or nil.")
  (model nil :documentation "The `duet-model' that has it.")
  (title nil :documentation "The title that a user gave it, or nil.")
  (summary nil :documentation "The beginning of its first prompt.")
  (agent nil :documentation "The agent's name.")
  (cwd nil :documentation "Where the agent works.")
  (worktree nil :documentation "Its git worktree, an object of :branch, :dir and :gone, or nil.")
  (attempts nil :documentation "The id that all attempts at its first prompt share, or nil.")
  (mode nil :documentation "The permission mode in force.")
  (asked-mode nil :documentation "The permission mode that the user chose last, or nil.")
  (agent-mode nil :documentation "The mode that the agent says it is in, or nil.")
  (llm nil :documentation "The model that the agent works with, or is to, or nil.")
  (agent-info nil :documentation "The agent's data on its session, a property list.")
  (background nil :documentation "What the agent does while no turn runs, objects.")
  (modes nil :documentation "The modes that can be asked for, objects, once known.")
  (archived nil :documentation "Whether it is put away.")
  (changed "" :documentation "When something last happened, as the protocol writes it.")
  (heard 0 :documentation "When an event last changed it, by the clock of its model.")
  (counted 0 :documentation "When an event last changed its usage, by the same clock.")
  (turns nil :documentation "Its turns, the newest first.")
  (usage nil :documentation "A property list, see `duet-events-add-usage'.")
  (gates nil :documentation "The state of its gates, see `duet-gates-apply'; nil without.")
  (loaded nil :documentation "Whether messages are kept: nil, `loading' or t.")
  (messages (make-hash-table :test #'equal) :documentation "Messages by key.")
  (order nil :documentation "Messages, the newest first.")
  (before nil :documentation "The id of the item before which there are more, or nil.")
  (held nil :documentation "Events that wait for the end of the loading."))

(defun duet-session-take (session object)
  "Take what people set of SESSION from OBJECT, an event or a turn.
What OBJECT lacks stays."
  (when (plist-member object :title)
    (setf (duet-session-title session) (duet-get-string object :title)))
  (when (plist-member object :archived)
    (setf (duet-session-archived session) (duet-get object :archived))))

(cl-defstruct (duet-approval (:copier nil))
  "A question, open or answered."
  (id nil :documentation "The approval's id.")
  (call nil :documentation "The tool call's id.")
  (turn nil :documentation "The id of the turn that waits.")
  (type nil :documentation "A string: function_call or human_contact.")
  (title nil :documentation "What is asked, in words.")
  (status 'pending :documentation "A symbol: pending, approved, denied, ...")
  (heard 0 :documentation "When an event last changed it, by the clock of the model.")
  (stale nil :documentation "Whether the process that asked is gone.")
  (data nil :documentation "All that the server sent, as a property list."))


;;;; Observers

(defvar duet-model-observers nil
  "Functions that are called with each change of any model.
See the commentary of duet-model.el; `duet-model-add-observer' adds some.")

(defun duet-model-add-observer (function &optional model)
  "Call FUNCTION with each change of MODEL, or of all models if nil.
The commentary of duet-model.el describes its arguments.  It must be fast:
there may be thousands of changes a second."
  (if model
      (cl-pushnew function (duet-model-observers model))
    (cl-pushnew function duet-model-observers)))

(defun duet-model-remove-observer (function &optional model)
  "Remove the observer FUNCTION of MODEL, as `duet-model-add-observer' added it."
  (if model
      (setf (duet-model-observers model) (remq function (duet-model-observers model)))
    (setq duet-model-observers (remq function duet-model-observers))))

(defun duet-model-follow (function &optional model)
  "Call FUNCTION with changes, in the current buffer, until the buffer is killed.
FUNCTION and MODEL are as for `duet-model-add-observer'."
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

;; A reply has the state when the server read the request, or a later one, and an
;; event may overtake it.  So a request records the time of the model's clock.  A
;; change after that time is newer than the reply.

(defun duet-model-tick (model)
  "Advance the clock of MODEL for a change, and return its time."
  (cl-incf (duet-model-clock model)))

(defun duet-model-vanish (model id)
  "Record in MODEL that the question or turn ID is gone."
  (puthash id (duet-model-tick model) (duet-model-gone model)))

(defun duet-model-gone-p (model id asked)
  "Return non-nil if ID is gone from MODEL, and a reply may still contain it.
ASKED is the clock's time of the request; if nil, ID is new."
  (let ((gone (gethash id (duet-model-gone model))))
    (and gone asked (> gone asked))))


;;;; Sessions


(defun duet-model-session (model id)
  "Return the session of MODEL with ID, the id of a session or a turn, or nil."
  (or (gethash id (duet-model-sessions model))
      (gethash id (duet-model-turns model))))

(defun duet-model-session-list (model)
  "Return the sessions of MODEL, the last active first."
  (let (sessions)
    (maphash (lambda (_ session) (push session sessions)) (duet-model-sessions model))
    (sort sessions (lambda (a b)
                     (duet-get-time-before-p (duet-session-changed b)
                                         (duet-session-changed a))))))

(defun duet-session-leaf (session)
  "Return the last turn of SESSION, or nil."
  (car (duet-session-turns session)))

(defun duet-session-leaf-id (session)
  "Return the id of the last turn of SESSION; its own id if none is known."
  (if-let ((turn (duet-session-leaf session)))
      (duet-turn-id turn)
    (duet-session-id session)))

(defun duet-session-turn (session id)
  "Return the turn of SESSION called ID, its id or its number, or nil."
  (cl-find-if (lambda (turn) (duet-turn-called-p turn id)) (duet-session-turns session)))

(defun duet-session-active-turn (session)
  "Return the turn of SESSION that an agent works on, or nil."
  (cl-find-if (lambda (turn) (memq (duet-turn-state turn) duet-turn-active-states))
              (duet-session-turns session)))

(defun duet-session-lost-worktree-p (session)
  "Return non-nil if SESSION had a worktree that is gone."
  (and (duet-get (duet-session-worktree session) :gone) t))

(defun duet-session-worktree-directory (session)
  "Return the top of SESSION's worktree on the server's machine, or nil."
  (unless (duet-session-lost-worktree-p session)
    (duet-get-string (duet-session-worktree session) :dir)))

(defun duet-session-silence (session)
  "Return the silence of SESSION's agent, or nil.
The value is a property list of :since, :note and :tool."
  (when-let ((turn (duet-session-active-turn session)))
    (duet-turn-silence turn)))

(defun duet-session-background-titles (session)
  "Return the titles of the background work of SESSION's agent.
There are none while a turn runs."
  (unless (duet-session-active-turn session)
    (mapcar (lambda (task)
              (duet-visible-line (or (duet-get-string task :title)
                                     (duet-get-string task :kind) "a task")))
            (duet-session-background session))))

(defun duet-session-queued (session)
  "Return the number of queued prompts of SESSION."
  (cl-count 'queued (duet-session-turns session) :key #'duet-turn-state))

(defun duet-session-state (session)
  "Return the state of SESSION's active turn, or else of its last turn, a symbol."
  (if-let ((turn (or (duet-session-active-turn session) (duet-session-leaf session))))
      (duet-turn-state turn)
    'draft))

(defun duet-session-name (session)
  "Return the name of SESSION: its title, or the beginning of its first prompt."
  (let ((name (or (duet-session-title session) (duet-session-summary session) "")))
    (if (string-blank-p name)
        "untitled"
      (truncate-string-to-width
       (duet-visible-line (truncate-string-to-width name 1000)) 60 nil nil "…"))))

(defun duet-session-turn-number (session)
  "Return the number of SESSION's active turn, or else of its last one, or nil."
  (when-let ((turn (or (duet-session-active-turn session) (duet-session-leaf session))))
    (duet-turn-number turn)))

(defun duet-session-label (session &optional turn)
  "Return the name of SESSION after its number, or after TURN, that of a turn."
  (concat (when-let ((number (or turn (duet-session-number session))))
            (concat (duet-visible-line number) " "))
          (duet-session-name session)))

(defun duet-session-error (session)
  "Return the error of the last turn of SESSION, or nil."
  (when-let ((turn (duet-session-leaf session)))
    (or (duet-turn-error turn) (duet-turn-error-code turn))))

(defun duet-session-own-mode (session)
  "Return the mode of SESSION's agent if it is not one of Duet's, or nil."
  (let ((mode (duet-session-agent-mode session)))
    (and mode
         (not (member mode '("default" "acceptEdits" "bypassPermissions" "plan")))
         mode)))

(defun duet-session-set-agent-mode (session mode)
  "Record that the agent of SESSION reports MODE.
An agent that enters plan mode, or leaves plan mode or a mode of its own, is in
another mode than the user chose.  The server computes `duet-session-mode' in
the same way."
  (let ((asked (duet-session-asked-mode session))
        (before (duet-session-mode session)))
    (setf (duet-session-agent-mode session) mode
          (duet-session-mode session)
          (cond ((equal mode "plan") mode)
                ((null asked) (if (equal before "plan") "default" before))
                ((member asked '("default" "acceptEdits" "bypassPermissions")) asked)
                (t mode)))))

(defun duet-session-set-agent (session agent)
  "Set the AGENT of SESSION, and forget the data of another agent."
  (unless (equal agent (duet-session-agent session))
    (when (duet-session-agent session)
      (setf (duet-session-agent-info session) nil
            (duet-session-modes session) nil
            (duet-session-agent-mode session) nil
            (duet-session-llm session) nil))
    (setf (duet-session-agent session) agent)))

(defun duet-session-merge-agent-info (session parts)
  "Store the non-nil PARTS of its agent's data in SESSION."
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
If the agent has no name for it, return ID."
  (let ((choice (cl-find id (duet-get-objects (duet-session-agent-info session) part :available)
                         :test #'equal
                         :key (lambda (choice) (duet-get-string choice :id)))))
    (duet-visible-line (or (duet-get-string choice :name) id))))

(defun duet-session-mode-name (session mode)
  "Return the name of MODE, the id of a permission mode, as all clients show it.
SESSION may be nil."
  (let ((known (and session
                    (cl-find mode (duet-session-modes session) :test #'equal
                             :key (lambda (object) (duet-get-string object :id))))))
    (duet-visible-line (or (duet-get-string known :name)
                           (cdr (assoc mode duet-protocol-modes))
                           mode))))

(defun duet-session-approvals (session)
  "Return the open questions of SESSION."
  (let (approvals)
    (maphash (lambda (_ approval)
               (when (eq session (gethash (duet-approval-turn approval)
                                          (duet-model-turns (duet-session-model session))))
                 (push approval approvals)))
             (duet-model-approvals (duet-session-model session)))
    approvals))

(defun duet-model-approval-list (model)
  "Return the open questions of MODEL, the oldest first."
  (let (approvals)
    (maphash (lambda (_ approval) (push approval approvals))
             (duet-model-approvals model))
    (sort approvals (lambda (a b)
                      (duet-get-time-before-p
                       (duet-get-string (duet-approval-data a) :created_at)
                       (duet-get-string (duet-approval-data b) :created_at))))))

(defun duet-model-forget-messages (session)
  "Drop the messages of SESSION, which no buffer shows."
  (setf (duet-session-loaded session) nil
        (duet-session-order session) nil
        (duet-session-held session) nil
        (duet-session-before session) nil)
  (clrhash (duet-session-messages session)))


;;;; Messages


(defun duet-session-message (session key)
  "Return the message of SESSION with KEY, or nil."
  (gethash key (duet-session-messages session)))

(defun duet-session-message-list (session)
  "Return the messages of SESSION, the oldest first."
  (reverse (duet-session-order session)))

(defvar duet-model-late nil
  "Whether an added message was delayed, and may be older than existing ones.")

(defun duet-model--before-p (a b)
  "Return non-nil if the message A is known to have begun before B."
  (let ((one (duet-message-created a))
        (other (duet-message-created b)))
    (and one other
         (or (duet-get-time-before-p one other)
             (and (equal one other)
                  (< (duet-message-seq a) (duet-message-seq b)))))))

(defun duet-model-add-message (message)
  "Add MESSAGE to its session, after the other messages of its turn.
A prompt may be queued while the previous turn continues.  An event that was
delayed until a page was loaded may be older than messages of that page, and
precedes them."
  (let* ((session (duet-message-session message))
         (turn (duet-message-turn message))
         (rest (duet-session-order session))
         (newer nil))
    (puthash (duet-message-key message) message (duet-session-messages session))
    (cl-flet ((next () (setq newer rest
                             rest (cdr rest)))
              (run-p () (equal (duet-message-turn (car rest)) turn)))
      (when (and rest (or (run-p) (cl-find turn rest :key #'duet-message-turn :test #'equal)))
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
  "Return LIST with the elements whose KEY is in IDS in the order of IDS.
All other elements keep their places."
  (let* ((place (lambda (element) (cl-position (funcall key element) ids :test #'equal)))
         (named (sort (copy-sequence (cl-remove-if-not place list))
                      (lambda (a b) (< (funcall place a) (funcall place b))))))
    (mapcar (lambda (element) (if (funcall place element) (pop named) element)) list)))

(defun duet-model-arrange-turns (session ids)
  "Sort the queued turns of SESSION with IDS in the order of IDS.
Each of them continues the previous one."
  (let* ((queued (delete-dups
                  (delq nil (mapcar (lambda (id) (duet-session-turn session id)) ids))))
         (first (cl-find-if (lambda (turn) (memq turn queued)) (duet-session-turns session)
                            :from-end t))
         (before (and first (duet-turn-parent first))))
    (dolist (turn queued)
      (setf (duet-turn-parent turn) before)
      (setq before (duet-turn-id turn)))
    (setf (duet-session-turns session)
          (duet-model--arranged (duet-session-turns session) (reverse ids) #'duet-turn-id))))

(defun duet-model-arrange-turn (session turn &optional most)
  "Move TURN of SESSION after its parent, and the turns that continue it after it.
Prompts that were moved are not in the order of their creation.  Move at
most MOST generations, 100 if nil."
  (let ((parent (and (duet-turn-parent turn)
                     (duet-session-turn session (duet-turn-parent turn))))
        (most (or most 100)))
    (when (and parent (memq turn (cdr (memq parent (duet-session-turns session)))))
      (setf (duet-session-turns session)
            (cl-loop for other in (remq turn (duet-session-turns session))
                     when (eq other parent) collect turn
                     collect other)))
    (dolist (child (and (> most 0) (cdr (memq turn (duet-session-turns session)))))
      (when (duet-turn-called-p turn (duet-turn-parent child))
        (duet-model-arrange-turn session child (1- most))))))

(defun duet-model-arrange-messages (session ids)
  "Sort the messages of the turns with IDS in the order of IDS, in SESSION."
  (setf (duet-session-order session)
        (duet-model--arranged (duet-session-order session) (reverse ids)
                              #'duet-message-turn))
  (duet-model-announce
   (duet-session-model session) 'messages-moved session
   (cl-remove-if-not (lambda (message) (member (duet-message-turn message) ids))
                     (duet-session-message-list session))))

;;; Gates

;; A session may have gates: commands that run after each turn.  The output of failed
;; gates is the agent's next prompt.  The transcript shows the results, and its header
;; line the state, which this part stores.

(defconst duet-gates-events '("gate.iteration" "gate.started" "gate.result" "gate.ended")
  "The kinds of events about gates.")

(defun duet-gates-apply (session kind data)
  "Apply an event of KIND, one of `duet-gates-events', with DATA to SESSION."
  (setf (duet-session-gates session)
        (list :state (pcase kind
                       ((or "gate.started" "gate.result") "checking")
                       ("gate.ended" (duet-get-string data :gates_state))
                       (_ "working"))
              :iteration (or (duet-get-number data :iteration)
                             (plist-get (duet-session-gates session) :iteration))
              :max_iterations (or (duet-get-number data :max_iterations)
                                  (plist-get (duet-session-gates session) :max_iterations))
              :gate (and (equal kind "gate.started") (duet-get-string data :gate))))
  (when (equal kind "gate.result")
    (duet-model-announce (duet-session-model session) 'gate session data)))

(defun duet-gates-load (session object)
  "Store the state of gates in OBJECT, from the server, in SESSION."
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
