;;; duet-settings.el --- What a session's agent is set to  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; An agent tells its modes, its models, other options of its own and its slash
;; commands.  `duet-set-mode', `duet-set-model' and `duet-set-option' choose from
;; them, at once while it works, else for its next turn; a prompt that begins with
;; a slash is completed to a command.
;;
;; What a session shows is what the agent has confirmed.  What an agent has is
;; asked for when a session is shown, and then told by events.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-model)
(require 'duet-pages)

(defun duet-settings-learn (connection session &optional function)
  "Find out what the agent of SESSION of CONNECTION can be set to.
If that is not known yet, or FUNCTION is given, which is called then."
  (if (or function (null (duet-session-modes session)))
      (duet-connection-request
       connection 'getSessionState (list :session_id (duet-session-leaf-id session))
       :success-fn
       (lambda (result)
         (duet-settings--take session (duet-get result :session))
         (when function (funcall function)))
       :error-fn #'ignore)))

(defun duet-settings--take (session object)
  "Take into SESSION the settings in OBJECT, as the server tells a session."
  (duet-pages-settings session object)
  (duet-model-announce (duet-session-model session) 'session session))


;;; Reading a choice

(defun duet-settings--read (prompt choices default)
  "Have the user choose one of CHOICES after PROMPT; return its id.
CHOICES are (WORDS ID ABOUT), what is read, what it is called and what there
is to say of it; DEFAULT is the id of one, or nil."
  (let* ((words (car (cl-find default choices :key #'cadr :test #'equal)))
         (completion-ignore-case t)
         (completion-extra-properties
          (list :annotation-function
                (lambda (candidate)
                  (when-let ((about (nth 2 (assoc candidate choices))))
                    (concat "  " (duet-visible-line about))))))
         (chosen (completing-read (format-prompt prompt words) choices
                                  nil t nil nil words)))
    (cadr (assoc chosen choices))))

(defun duet-settings--choices (objects)
  "Return OBJECTS, choices as the server tells them, for `duet-settings--read'.
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
  (duet-connection-request
   (duet-connection-here) 'session.set
   (append (list :session_id (duet-session-leaf-id session)) what)
   :success-fn
   (lambda (result)
     (duet-settings--take session (duet-get result :session))
     (message "%s%s" done
              (if (duet-get result :live) "" ", from its next turn on")))))


;;; Modes

(defconst duet-settings--modes
  '(("asks before it changes anything" . "default")
    ("edits without asking" . "acceptEdits")
    ("plans, and changes nothing" . "plan")
    ("asks nothing" . "bypassPermissions"))
  "Permission modes, in words and as the protocol calls them.")

(defun duet-settings--mode-choices (session)
  "Return the modes that can be asked of the agent of SESSION."
  (let ((modes (or (duet-session-modes session)
                   (mapcar (lambda (mode) (list :id (cdr mode))) duet-settings--modes))))
    (cl-mapcar
     (lambda (choice mode)
       (let* ((id (cadr choice))
              (words (if (and (equal id "default")
                              (equal (duet-get-string mode :by) "duet")
                              (duet-session-own-mode session))
                         "stays in its own mode"
                       (car (rassoc id duet-settings--modes)))))
         (if words (list words id (nth 2 choice)) choice)))
     (duet-settings--choices modes) modes)))

(defun duet-set-mode (session mode)
  "Let the agent of SESSION do without asking what MODE says, or is called."
  (interactive
   (let* ((session (duet-actions-session))
          (mode (duet-settings--read "The agent" (duet-settings--mode-choices session)
                                     (or (duet-session-own-mode session)
                                         (duet-session-mode session) "default"))))
     (unless mode (user-error "No mode is chosen"))
     (when (and (equal mode "bypassPermissions")
                (not (yes-or-no-p "Let the agent run and change anything, unasked? ")))
       (user-error "The mode is as it was"))
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
                   (duet-settings--read "Model" (duet-settings--choices known)
                                        (duet-session-llm session))
                 (string-trim (read-string "Model: " nil 'duet-settings--models)))
               "")))
   duet-sessions-mode duet-transcript-mode duet-diff-mode)
  (when (string-empty-p model) (user-error "No model is named"))
  (duet-settings--set session (list :model model)
                      (format "The agent uses %s"
                              (duet-session-choice-name session :model model))))


;;; Options

(defun duet-settings--options (session)
  "Return the options of the agent of SESSION, but for its mode and its model."
  (cl-remove-if (lambda (option)
                  (or (member (duet-get-string option :category) '("mode" "model"))
                      (null (duet-get-objects option :values))))
                (duet-get-objects (duet-session-told session) :options)))

(defun duet-set-option (session option value)
  "Set OPTION of the agent of SESSION, one of its own, to VALUE; both are ids."
  (interactive
   (let* ((session (duet-actions-session))
          (options (or (duet-settings--options session)
                       (user-error "The agent has no options of its own")))
          (id (or (if (cdr options)
                      (duet-settings--read "Option" (duet-settings--choices options) nil)
                    (duet-get-string (car options) :id))
                  (user-error "No option is chosen")))
          (option (cl-find id options :test #'equal
                           :key (lambda (option) (duet-get-string option :id))))
          (value (duet-settings--read
                  (duet-visible-line (or (duet-get-string option :name) id))
                  (duet-settings--choices (duet-get-objects option :values))
                  (duet-get-string option :current))))
     (list session id (or value (user-error "No value is chosen"))))
   duet-sessions-mode duet-transcript-mode duet-diff-mode)
  (let ((told (cl-find option (duet-settings--options session) :test #'equal
                       :key (lambda (object) (duet-get-string object :id)))))
    (duet-settings--set session
                        ;; The name of a member is what an agent has made up.
                        (list :options (list (intern (concat ":" option)) value))
                        (format "%s is %s"
                                (duet-visible-line (or (duet-get-string told :name) option))
                                (or (car (cl-find value
                                                  (duet-settings--choices
                                                   (duet-get-objects told :values))
                                                  :key #'cadr :test #'equal))
                                    (duet-visible-line value))))))


;;; Slash commands

(defvar-local duet-settings--described nil
  "What the agent that a new session asks has told, (AGENT . OBJECT).")

(defun duet-settings-commands (session)
  "Return the slash commands of the agent of SESSION, or of a new one if nil."
  (duet-get-objects (if session (duet-session-told session)
                      (duet-get (cdr duet-settings--described) :agent_session))
                    :commands))

(defun duet-settings-describe (connection agent)
  "Find out for the buffer what AGENT of CONNECTION has told.
Nil is the default one."
  (let ((buffer (current-buffer)))
    (unless (and duet-settings--described (equal agent (car duet-settings--described)))
      (duet-connection-request
       connection 'agent.describe (and agent (list :agent agent))
       :success-fn (lambda (result)
                     (when (buffer-live-p buffer)
                       (with-current-buffer buffer
                         (setq duet-settings--described (cons agent result)))))
       :error-fn #'ignore))))

(defun duet-settings-complete-command (session)
  "Complete a slash command of the agent of SESSION, which begins the buffer.
Return what a `completion-at-point' function does."
  (let ((end (point)))
    (when (and (eq (char-after (point-min)) ?/)
               (save-excursion
                 (goto-char (point-min))
                 (skip-chars-forward "^ \t\n")
                 (<= end (point))))
      (let ((commands (mapcar (lambda (command)
                                (cons (concat "/" (duet-get-string command :name)) command))
                              (duet-settings-commands session))))
        (list (point-min) end commands
              :exclusive 'no
              :annotation-function
              (lambda (candidate)
                (let ((command (cdr (assoc candidate commands))))
                  (concat
                   (when-let ((hint (duet-get-string command :input_hint)))
                     (format " [%s]" (duet-visible-line hint)))
                   (when-let ((about (duet-get-string command :description)))
                     (concat "  " (duet-visible-line about))))))
              :exit-function
              (lambda (_ status)
                (when (and (eq status 'finished) (eobp)) (insert " "))))))))

(provide 'duet-settings)
;;; duet-settings.el ends here
