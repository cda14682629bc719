;;; duet-settings.el --- What a session's agent is set to  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; An agent tells its modes, its models, other options of its own and its slash
;; commands.  `duet-set-mode', `duet-set-model' and `duet-set-option' choose from
;; them, at once while it works, else for its next turn.  A prompt can say so too
;; (duet-directive.el).
;;
;; What a session shows is what the agent has confirmed.  What an agent has is
;; asked for when a session is shown, and then told by events.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-events)
(require 'duet-model)

(defun duet-settings-learn (connection session &optional function)
  "Find out what the agent of SESSION of CONNECTION can be set to.
If that is not known yet, or FUNCTION is given, which is called then."
  (when (or function (null (duet-session-modes session)))
    (let ((asked (duet-model-clock (duet-session-model session))))
      (duet-connection-request
       connection 'getSessionState (list :session_id (duet-session-leaf-id session))
       :success-fn
       (lambda (result)
         (duet-settings--take connection session (duet-get result :session) asked)
         (when function (funcall function)))
       :error-fn #'ignore))))

(defun duet-settings--take (connection session object asked)
  "Take into SESSION the settings in OBJECT, as CONNECTION's server tells it.
It was ASKED for then, by the clock of the model.  If an event has told of
it since, it is asked for again."
  (unless (duet-pages-old-p session asked)
    (when-let ((agent (duet-pages-agent object)))
      (duet-session-set-agent session agent)))
  (duet-pages-settings session object asked)
  (duet-model-announce (duet-session-model session) 'session session)
  (when (duet-pages-old-p session asked)
    (duet-connection-ask connection (duet-session-leaf-id session))))


;;; Reading a choice

(defun duet-settings-table (candidates category)
  "Return a completion table of CANDIDATES, which are of CATEGORY.
By that others know what they are, such as packages that act on them."
  (lambda (string predicate action)
    (if (eq action 'metadata) `(metadata (category . ,category))
      (complete-with-action action candidates string predicate))))

(defun duet-settings--read (prompt choices default category)
  "Have the user choose one of CHOICES after PROMPT; return its id.
CHOICES are (WORDS ID ABOUT), what is read, what it is called and what there
is to say of it; they are of CATEGORY.  DEFAULT is the id of one, or nil."
  (let* ((words (car (cl-find default choices :key #'cadr :test #'equal)))
         (completion-ignore-case t)
         (completion-extra-properties
          (list :annotation-function
                (lambda (candidate)
                  (when-let ((about (nth 2 (assoc candidate choices))))
                    (concat "  " (duet-visible-line about))))))
         (chosen (completing-read (format-prompt prompt words)
                                  (duet-settings-table choices category)
                                  nil t nil nil words)))
    (cadr (assoc chosen choices))))

(defun duet-settings-choices (objects)
  "Return OBJECTS, choices as the server tells them, each as (WORDS ID ABOUT).
Names that are there twice have their ids behind them."
  (let ((names (mapcar (lambda (object)
                         (duet-visible-line (or (duet-get-string object :name)
                                                (duet-get-string object :id) "")))
                       objects)))
    (cl-mapcar (lambda (object name)
                 (let ((id (duet-get-string object :id)))
                   (list (if (> (cl-count name names :test #'equal) 1)
                             (format "%s (%s)" name id)
                           name)
                         id
                         (string-join (delq nil (list (duet-get-string object :group)
                                                      (duet-get-string object :description)))
                                      ": "))))
               objects names)))

(defun duet-settings--set (session what done)
  "Set the agent of SESSION to WHAT, parameters of session.set; say DONE then."
  (duet-settings-set (duet-connection-here) session what
                     (lambda (live)
                       (message "%s%s" done (if live "" ", from its next turn on")))))

(defun duet-settings-set (connection session what success-fn &optional error-fn)
  "Have CONNECTION set the agent of SESSION to WHAT, parameters of session.set.
Call SUCCESS-FN then, with whether the agent works and has taken it already.
ERROR-FN is that of `duet-connection-request'."
  (let ((asked (duet-model-clock (duet-session-model session))))
    (duet-connection-request
     connection 'session.set
     (append (list :session_id (duet-session-leaf-id session)) what)
     :success-fn
     (lambda (result)
       (duet-settings--take connection session (duet-get result :session) asked)
       (funcall success-fn (eq (duet-get result :live) t)))
     :error-fn error-fn)))


;;; Modes

(defconst duet-settings--modes
  '(("asks before it changes anything" . "default")
    ("edits without asking" . "acceptEdits")
    ("plans, and changes nothing" . "plan")
    ("asks nothing" . "bypassPermissions"))
  "Permission modes, in words and as the protocol calls them.")

(defun duet-settings-mode-choices (modes session)
  "Return MODES, which can be asked of the agent of SESSION, as choices in words.
SESSION is nil for a new one."
  (cl-mapcar
   (lambda (choice mode)
     (let* ((id (cadr choice))
            (words (if (and session
                            (equal id "default")
                            (equal (duet-get-string mode :by) "duet")
                            (duet-session-own-mode session))
                       "stays in its own mode"
                     (car (rassoc id duet-settings--modes)))))
       (if words (list words id (nth 2 choice)) choice)))
   (duet-settings-choices modes) modes))

(defun duet-settings--modes-of (session)
  "Return the modes that can be asked of the agent of SESSION.
The server is asked, since the agent may have told of others than are known,
but not waited for long."
  (let* ((connection (duet-connection-of (duet-session-model session)))
         (rpc (and connection (duet-connection-rpc connection)))
         (asked (duet-model-clock (duet-session-model session))))
    (when rpc
      (ignore-error jsonrpc-error
        (duet-settings--take connection session
                             (duet-get (duet-rpc-request
                                        rpc 'getSessionState
                                        (list :session_id (duet-session-leaf-id session))
                                        :timeout 3)
                                       :session)
                             asked)))
    (or (duet-session-modes session)
        (mapcar (lambda (mode) (list :id (cdr mode))) duet-settings--modes))))

(defun duet-settings-confirm-bypass ()
  "Signal a `user-error' unless the agent may do anything."
  (unless (yes-or-no-p "Let the agent run and change anything, unasked? ")
    (user-error "The mode is as it was")))

(defun duet-set-mode (session mode)
  "Let the agent of SESSION do without asking what MODE says, or is called."
  (interactive
   (let* ((session (duet-actions-session))
          (mode (duet-settings--read "The agent"
                                     (duet-settings-mode-choices
                                      (duet-settings--modes-of session) session)
                                     (or (duet-session-own-mode session)
                                         (duet-session-mode session) "default")
                                     'duet-mode)))
     (unless mode (user-error "No mode is chosen"))
     (when (equal mode "bypassPermissions") (duet-settings-confirm-bypass))
     (list session mode))
   duet-sessions-mode duet-transcript-mode duet-diff-mode)
  (duet-settings--set session (list :mode mode)
                      (if-let ((words (car (rassoc mode duet-settings--modes))))
                          (concat "The agent " words)
                        (format "The agent is in the mode %s"
                                (duet-session-choice-name session :mode mode)))))


;;; Models

(defvar duet-settings--models nil
  "Models that were named before.")

(defun duet-set-model (session model)
  "Have the agent of SESSION use MODEL, one that it has."
  (interactive
   (let* ((session (duet-actions-session))
          (known (duet-get-objects (duet-session-told session) :model :available)))
     (list session
           (or (if known
                   (duet-settings--read "Model" (duet-settings-choices known)
                                        (duet-session-llm session) 'duet-model)
                 (string-trim (read-string "Model: " nil 'duet-settings--models)))
               "")))
   duet-sessions-mode duet-transcript-mode duet-diff-mode)
  (when (string-empty-p model) (user-error "No model is named"))
  (duet-settings--set session (list :model model)
                      (format "The agent uses %s"
                              (duet-session-choice-name session :model model))))


;;; Options

(defun duet-settings-options (told)
  "Return the options that an agent has TOLD, but for its mode and its model."
  (cl-remove-if (lambda (option)
                  (or (member (duet-get-string option :category) '("mode" "model"))
                      (null (duet-get-objects option :values))))
                (duet-get-objects told :options)))

(defun duet-set-option (session option value)
  "Set OPTION of the agent of SESSION, one of its own, to VALUE; both are ids."
  (interactive
   (let* ((session (duet-actions-session))
          (options (or (duet-settings-options (duet-session-told session))
                       (user-error "The agent has no options of its own")))
          (id (or (if (cdr options)
                      (duet-settings--read "Option" (duet-settings-choices options) nil
                                           'duet-option)
                    (duet-get-string (car options) :id))
                  (user-error "No option is chosen")))
          (option (cl-find id options :test #'equal
                           :key (lambda (option) (duet-get-string option :id))))
          (value (duet-settings--read
                  (duet-visible-line (or (duet-get-string option :name) id))
                  (duet-settings-choices (duet-get-objects option :values))
                  (duet-get-string option :current) 'duet-option-value)))
     (list session id (or value (user-error "No value is chosen"))))
   duet-sessions-mode duet-transcript-mode duet-diff-mode)
  (let ((told (cl-find option (duet-settings-options (duet-session-told session)) :test #'equal
                       :key (lambda (object) (duet-get-string object :id)))))
    (duet-settings--set session
                        ;; The name of a member is what an agent has made up.
                        (list :options (list (intern (concat ":" option)) value))
                        (format "%s is %s"
                                (duet-visible-line (or (duet-get-string told :name) option))
                                (or (car (cl-find value
                                                  (duet-settings-choices
                                                   (duet-get-objects told :values))
                                                  :key #'cadr :test #'equal))
                                    (duet-visible-line value))))))


;;; Slash commands

(defvar-local duet-settings-described nil
  "What the agent that a new session asks has told, as agent.describe returns it.")

(defvar-local duet-settings--asked nil
  "The agent that is described, or will be, in a list; nil there is the default.")

(defun duet-settings-commands (session)
  "Return the slash commands of the agent of SESSION, or of a new one if nil."
  (duet-get-objects (if session (duet-session-told session)
                      (duet-get duet-settings-described :agent_session))
                    :commands))

(defun duet-settings-describe (connection agent)
  "Find out for the buffer what AGENT of CONNECTION has told.
Nil is the default one."
  (let ((buffer (current-buffer)))
    (unless (equal (list agent) duet-settings--asked)
      (setq duet-settings--asked (list agent))
      (duet-connection-request
       connection 'agent.describe (and agent (list :agent agent))
       :success-fn (lambda (result)
                     (when (buffer-live-p buffer)
                       (with-current-buffer buffer
                         (when (equal (list agent) duet-settings--asked)
                           (setq duet-settings-described result)))))
       :error-fn #'ignore))))

(provide 'duet-settings)
;;; duet-settings.el ends here
