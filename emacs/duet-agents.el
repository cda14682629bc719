;;; duet-agents.el --- The list of agents, choosing one, signing in  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-agents' lists the agents that the program duet-rpc supports, and how to
;; install the missing ones.  RET there chooses the agent of new sessions of this
;; project, until Emacs ends.  A session keeps its agent.  Without a choice,
;; default_agent in a configuration file names the agent.
;;
;; `duet-choose-agent' and `duet-set-agent' choose by name; `duet-login' and
;; `duet-logout' sign in to an agent and out.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'tabulated-list)
(require 'duet-actions)
(require 'duet-command)
(require 'duet-compose)
(require 'duet-connection)
(require 'duet-header)
(require 'duet-log)
(require 'duet-look)
(require 'duet-menu-bar)
(require 'duet-remote)
(require 'duet-settings)
(require 'duet-transcript)

(declare-function duet "duet" (&optional directory))
(declare-function duet-terminal-show "duet-terminal" (connection name command &optional here))

;;; Agents

(defvar duet-agents-chosen (make-hash-table :test #'equal)
  "The user's choices of agents, by the directories of their projects.")

(defvar duet-agents--known (make-hash-table :test #'equal)
  "The latest lists of agents from the program, by the directories of projects.")

(defun duet-agents-chosen (connection)
  "Return the user's choice of agent for new sessions of CONNECTION, or nil."
  (gethash (duet-connection-root connection) duet-agents-chosen))

(defun duet-agents-asked (connection)
  "Return the agent of new sessions of CONNECTION, or nil if not known yet."
  (or (duet-agents-chosen connection)
      (duet-get-string
       (cl-find-if (lambda (agent) (duet-get agent :default))
                   (gethash (duet-connection-root connection) duet-agents--known))
       :name)))

(defun duet-agents-usable (connection)
  "Return the names of the known usable agents of CONNECTION's project."
  (mapcar (lambda (agent) (duet-get-string agent :name))
          (duet-agents-which-usable
           (gethash (duet-connection-root connection) duet-agents--known))))

(defun duet-agents-which-usable (agents)
  "Return the installed and trusted ones of AGENTS."
  (cl-remove-if-not (lambda (agent)
                      (and (duet-get agent :available) (duet-get agent :trusted)))
                    agents))

(defun duet-agents-learn (connection function)
  "Call FUNCTION once the agents of CONNECTION's project are known.
If the program cannot list them, do not call FUNCTION."
  (if (gethash (duet-connection-root connection) duet-agents--known)
      (funcall function)
    (duet-agents-fetch connection (lambda (_) (funcall function)) #'ignore)))

(defun duet-agents--parameters ()
  "Return the chosen agent as parameters of a launch.
One of `duet-compose-parameters-functions'."
  (when-let ((agent (and duet-connection (duet-agents-chosen duet-connection))))
    (list :agent agent)))

(add-hook 'duet-compose-parameters-functions #'duet-agents--parameters)

(defun duet-agents-fetch (connection function &optional error-fn)
  "Fetch the agents of CONNECTION's project, and call FUNCTION with the list.
If that fails, call ERROR-FN with the reason; if it is nil, show the reason."
  (let ((root (duet-connection-root connection)))
    (duet-command-json
     root '("agents")
     (lambda (result)
       (let ((agents (duet-get-objects result :agents)))
         (puthash root agents duet-agents--known)
         (funcall function agents)))
     error-fn)))


;;;; The list

(defvar duet-agents-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map tabulated-list-mode-map)
    (define-key map (kbd "RET") #'duet-agents-choose)
    (define-key map "u" #'duet-agents-unchoose)
    (define-key map (kbd "M-w") #'duet-agents-copy-install)
    (define-key map "I" #'duet-login)
    (define-key map "O" #'duet-logout)
    (define-key map "g" #'duet-agents-refresh)
    (define-key map "j" #'duet-approval-next)
    (define-key map "l" #'duet)
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-agents-mode'.")

(define-derived-mode duet-agents-mode tabulated-list-mode "Duet-Agents"
  "Major mode of the list of agents.

\\{duet-agents-mode-map}"
  (setq tabulated-list-format [("" 2 nil) ("Agent" 12 t) ("Version" 10 t)
                               ("Signed in" 15 t) ("" 0 nil)]
        tabulated-list-padding 1)
  (tabulated-list-init-header))

(duet-menu-bar-add duet-agents-mode-map
                   '(["Choose for New Sessions" duet-agents-choose]
                     ["Choose None" duet-agents-unchoose]
                     ["Copy How to Install" duet-agents-copy-install]
                     ["Sign In" duet-login]
                     ["Sign Out" duet-logout]
                     ["Refresh" duet-agents-refresh]))

;;;###autoload
(defun duet-agents ()
  "List the usable agents of this project, and how to install the others."
  (interactive)
  (let ((buffer (duet-connection-buffer (duet-connection-here) "agents" #'duet-agents-mode)))
    (with-current-buffer buffer (duet-agents-refresh))
    (pop-to-buffer buffer)))

(defun duet-agents-refresh ()
  "Fetch the list of agents again."
  (interactive (duet-only-in 'duet-agents-mode) duet-agents-mode)
  (duet-agents-fetch duet-connection (duet-latest #'duet-agents--print)))

(defun duet-agents--print (agents)
  "Show AGENTS in the buffer."
  (let ((chosen (duet-agents-chosen duet-connection))
        (first (null tabulated-list-entries)))
    (setq tabulated-list-entries
          (mapcar
           (lambda (agent)
             (let ((name (or (duet-get-string agent :name) "")))
               (list name
                     (vector (if (if chosen (equal chosen name)
                                   (duet-get agent :default))
                                 "*" "")
                             name
                             (duet-visible-line
                              (or (duet-get-string agent :version) ""))
                             (duet-agents--signed-in agent)
                             (duet-agents--remark agent)))))
           agents))
    (tabulated-list-print t)
    (when first
      (goto-char (point-min))
      (or (re-search-forward "^ \\*" nil t) t)
      (beginning-of-line))
    (setq header-line-format '(:eval (duet-agents--header)))))

(defun duet-agents--signed-in (agent)
  "Return the known login of AGENT in words, with its age in the tooltip."
  (let* ((state (duet-get-string agent :signed_in))
         (hint (duet-get-string agent :signed_in_hint))
         (account (duet-get-string agent :account))
         (at (duet-get-string agent :signed_in_at))
         (words (pcase state
                  ((or 'nil "") "")
                  ("unknown" (if hint "likely" "not known"))
                  ("not_needed" "not needed")
                  ("opens_sessions" "opens sessions")
                  (_ (duet-visible-line state))))
         (report (and at (ignore-errors
                           (format "Reported %s ago."
                                   (duet-agents--age (date-to-time at)))))))
    (propertize words
                'face (pcase state
                        ("no" 'duet-failed)
                        ("unknown" 'duet-dim)
                        (_ 'default))
                'help-echo
                (string-join
                 (delq nil (list (and account (duet-visible-line account))
                                 (and hint (duet-visible-line hint))
                                 report
                                 (and (equal state "unknown")
                                      "I asks the agent and signs in.")))
                 "\n"))))

(defun duet-agents--age (time)
  "Return the time since TIME in words."
  (let ((seconds (max 0 (floor (float-time (time-subtract nil time))))))
    (cond ((< seconds 60) (format "%d s" seconds))
          ((< seconds 3600) (format "%d min" (/ seconds 60)))
          ((< seconds (* 48 3600)) (format "%d h" (/ seconds 3600)))
          (t (format "%d days" (/ seconds 86400))))))

(defun duet-agents--header ()
  "Return the header line of the list."
  (duet-header-fit
   (cons (concat " * is asked  "
                 (duet-header-key #'duet-agents-choose "ask this one" 'duet-agents-mode-map))
         (duet-header-keys 'duet-agents-mode-map
                           '(2 duet-agents-unchoose "the default")
                           '(1 duet-agents-copy-install "copy how to install")))))

(defun duet-agents--remark (agent)
  "Return the remark on AGENT in the list."
  (cond ((not (duet-get agent :trusted))
         (propertize "defined by this project, which you do not trust: M-x duet-trust"
                     'face 'duet-running))
        ((duet-get-string agent :cli)
         (propertize (format "its adapter is not installed: %s"
                             (duet-visible-line
                              (or (duet-get-string agent :install) "not on PATH")))
                     'face 'duet-dim))
        ((not (duet-get agent :available))
         (propertize (format "not installed: %s"
                             (duet-visible-line
                              (or (duet-get-string agent :install) "not on PATH")))
                     'face 'duet-dim))
        (t (duet-visible-line
            (string-join
             (delete "" (list (or (duet-get-string agent :title) "")
                              (duet-remote-abbreviate
                               (or (duet-get-string agent :path) ""))))
             "  ")))))

(defun duet-agents--at-point ()
  "Return the agent at point."
  (or (cl-find (tabulated-list-get-id)
               (gethash (duet-connection-root duet-connection) duet-agents--known)
               :key (lambda (agent) (duet-get-string agent :name)) :test #'equal)
      (user-error "There is no agent here")))

(defun duet-agents-choose ()
  "Use the agent at point for new sessions of this project."
  (interactive (duet-only-in 'duet-agents-mode) duet-agents-mode)
  (duet-agents--choose duet-connection (duet-agents--at-point))
  (duet-agents-refresh))

(defun duet-agents--choose (connection agent)
  "Use AGENT for new sessions of the project of CONNECTION."
  (let ((name (duet-get-string agent :name)))
    (cond ((not (duet-get agent :trusted))
           (user-error "%s is defined by this project, which you do not trust: M-x duet-trust"
                       name))
          ((not (duet-get agent :available))
           (user-error "%s is not installed: %s" name
                       (or (duet-get-string agent :install) "it is not on PATH"))))
    (puthash (duet-connection-root connection) name duet-agents-chosen)
    (message "New sessions use %s" name)))

(defun duet-agents-unchoose ()
  "Use the default agent for new sessions of this project again."
  (interactive)
  (remhash (duet-connection-root (duet-connection-here)) duet-agents-chosen)
  (message "New sessions use the default agent")
  (when (derived-mode-p 'duet-agents-mode) (duet-agents-refresh)))

(defun duet-agents-copy-install ()
  "Copy the command that installs the agent at point."
  (interactive (duet-only-in 'duet-agents-mode) duet-agents-mode)
  (let ((install (duet-get-string (duet-agents--at-point) :install)))
    (unless install (user-error "This agent has no known install command"))
    (kill-new install)
    (message "Copied: %s" install)))

;;; Choosing

;; `duet-choose-agent' chooses the agent of new sessions.  `duet-set-agent'
;; changes the agent of an existing session.

;;;###autoload
(defun duet-choose-agent ()
  "Choose the agent of new sessions in this project."
  (interactive)
  (let ((connection (duet-connection-here)))
    (duet-agents-choose--ask
     connection
     (lambda (usable)
       (when-let ((agent (duet-agents-choose--read
                          "Agent for new sessions" usable
                          (or (duet-agents-chosen connection)
                              (duet-get-string (cl-find-if (lambda (agent)
                                                             (duet-get agent :default))
                                                           usable)
                                               :name)))))
         (duet-agents--choose connection agent))))))

;;;###autoload
(defun duet-set-agent (session)
  "Choose another agent for SESSION, from the next prompt on.
The agent gets the session's messages so far.  Settings and permissions of the
previous agent end with it."
  (interactive (list (duet-actions-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (let ((connection (duet-connection-here)))
    (when (or (duet-session-active-turn session) (> (duet-session-queued session) 0))
      (user-error "An agent works in this session; interrupt it, or wait"))
    (duet-agents-choose--ask
     connection
     (lambda (usable)
       (let ((others (cl-remove (duet-session-agent session) usable :test #'equal
                                :key (lambda (agent) (duet-get-string agent :name)))))
         (if (null others)
             (message "No other agent is ready; see M-x duet-agents")
           (when-let ((agent (duet-agents-choose--read
                              (format "Agent that continues (now %s)"
                                      (duet-visible-line (or (duet-session-agent session) "?")))
                              others nil)))
             (let ((name (duet-get-string agent :name)))
               (duet-settings-set connection session (list :agent name)
                                  (lambda (_)
                                    (message "The next prompt goes to %s" name)))))))))))

(defun duet-agents-choose--ask (connection function)
  "Call FUNCTION in the current buffer with the usable agents of CONNECTION."
  (let ((buffer (current-buffer)))
    (duet-agents-fetch
     connection
     (lambda (agents)
       ;; Not in the process sentinel, which a minibuffer would block.
       (run-at-time 0 nil (lambda ()
                            (when (buffer-live-p buffer)
                              (with-current-buffer buffer
                                (funcall function (duet-agents-which-usable agents))))))))))

(defun duet-agents-choose--read (prompt agents default)
  "Let the user choose one of AGENTS after PROMPT; return it, or nil.
DEFAULT is the name of one, or nil."
  (let* ((names (mapcar (lambda (agent) (duet-get-string agent :name)) agents))
         (name (duet-log-quit
                 (completing-read (format-prompt prompt default)
                                  (duet-settings-table names 'duet-agent)
                                  nil t nil nil default))))
    (and name (not (string-empty-p name))
         (nth (cl-position name names :test #'equal) agents))))

;;; Signing in

;; `duet-login' asks an agent for its ways to sign in, and begins the chosen one.
;; The agent signs in itself, mostly in a browser, or runs a program in a terminal.

(defun duet-agents--login-read-agent (prompt)
  "Return the name of an agent.
In the list of agents it is the agent at point.  In a session that
failed for lack of a login it is its agent.  Else read it after PROMPT."
  (cond
   ((derived-mode-p 'duet-agents-mode)
    (duet-get-string (duet-agents--at-point) :name))
   ((and duet-session
         (duet-transcript-needs-login duet-session (duet-session-leaf duet-session))))
   (t
    (let* ((connection (duet-connection-here))
           (default (duet-agents-asked connection))
           (name (string-trim
                  (read-string (format-prompt prompt default) nil nil default))))
      (when (string-empty-p name) (user-error "Name an agent"))
      name))))

;;;###autoload
(defun duet-login (agent)
  "Sign in to AGENT, a name, in one of the ways that it offers."
  (interactive (list (duet-agents--login-read-agent "Sign in to")))
  (let ((connection (duet-connection-here)))
    (message "Asking %s how to sign in..." agent)
    (duet-connection-request
     connection 'agent.check (list :agent agent)
     :success-fn
     (lambda (result)
       ;; Not in the process filter, which a minibuffer would block.
       (run-at-time 0 nil #'duet-agents--login-choose
                    connection agent (duet-get result :report))))))

(defun duet-agents--login-choose (connection agent report)
  "Let the user choose a way to sign in to AGENT of CONNECTION.
REPORT is the agent's description of itself."
  (let ((methods (duet-get-objects report :methods))
        (account (or (duet-get-string report :account) "")))
    (cond
     ((null methods) (message "%s offers no way to sign in" agent))
     ((and (equal (duet-get-string report :signed_in) "yes")
           (not (y-or-n-p (format "You are signed in (%s); sign in anew? "
                                  (duet-visible-line account)))))
      (message "You stay signed in"))
     (t (when-let ((id (duet-log-quit
                         (duet-settings--read (format "Sign in to %s" agent)
                                              (duet-settings-choices methods) nil
                                              'duet-login))))
          (duet-agents--login-with
           connection agent
           (cl-find id methods :test #'equal
                    :key (lambda (method) (duet-get-string method :id)))))))))

(defun duet-agents--login-with (connection agent method)
  "Sign in to AGENT of CONNECTION with METHOD."
  (let ((id (duet-get-string method :id)))
    (if (equal (duet-get-string method :type) "terminal")
        (progn
          ;; Load it only here, since it requires many other packages.
          (require 'duet-terminal)
          ;; A terminal of Emacs: the server's terminals have another
          ;; environment, where your configuration may be missing.
          (duet-terminal-show connection (format "sign in to %s" agent)
                              (duet-command (duet-connection-root connection)
                                            "agents" "login" agent "--method" id)))
      (message "Signing in to %s; look at your browser if it opens one" agent)
      (duet-connection-request
       connection 'agent.login (list :agent agent :method id)
       :success-fn (lambda (_) (message "You are signed in to %s" agent))))))

;;;###autoload
(defun duet-logout (agent)
  "Sign out of AGENT, a name."
  (interactive (list (duet-agents--login-read-agent "Sign out of")))
  (duet-connection-request
   (duet-connection-here) 'agent.logout (list :agent agent)
   :success-fn (lambda (_) (message "Signed out of %s" agent))))

(provide 'duet-agents)
;;; duet-agents.el ends here
