;;; duet-agents-login.el --- Signing in to an agent, and out  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-login' has an agent say which ways of signing in it offers, and begins the
;; one that is chosen: by the agent itself, mostly in a browser, or by a program of
;; its in a terminal.

;;; Code:

(require 'cl-lib)
(require 'duet-agents)
(require 'duet-command)
(require 'duet-connection)
(require 'duet-settings)
(require 'duet-transcript)

(declare-function duet-terminal-show "duet-terminal" (connection name command &optional here))

(defun duet-agents--login-read-agent (prompt)
  "Have the user name an agent after PROMPT, and return the name.
In the list of agents it is the one at point, and in a conversation that
failed because nobody has signed in, its own."
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
      (when (string-empty-p name) (user-error "No agent is named"))
      name))))

;;;###autoload
(defun duet-login (agent)
  "Sign in to AGENT, by its name, in one of the ways that it offers."
  (interactive (list (duet-agents--login-read-agent "Sign in to")))
  (let ((connection (duet-connection-here)))
    (message "%s is asked how..." agent)
    (duet-connection-request
     connection 'agent.check (list :agent agent)
     :success-fn
     (lambda (result)
       ;; Outside of the filter, which a minibuffer would hold up.
       (run-at-time 0 nil #'duet-agents--login-choose
                    connection agent (duet-get result :report))))))

(defun duet-agents--login-choose (connection agent report)
  "Have the user choose a way to sign in to AGENT of CONNECTION.
REPORT is what the agent says of itself."
  (let ((methods (duet-get-objects report :methods))
        (account (or (duet-get-string report :account) "")))
    (cond
     ((null methods) (message "%s offers no way to sign in" agent))
     ((and (equal (duet-get-string report :signed_in) "yes")
           (not (y-or-n-p (format "You are signed in (%s); sign in anew? "
                                  (duet-visible-line account)))))
      (message "You stay signed in"))
     (t (let ((id (condition-case nil
                      (duet-settings--read (format "Sign in to %s" agent)
                                           (duet-settings-choices methods) nil
                                           'duet-login)
                    ;; In a timer Emacs does not say so itself.
                    (quit (message "Quit") nil))))
          (when id
            (duet-agents--login-with
             connection agent
             (cl-find id methods :test #'equal
                      :key (lambda (method) (duet-get-string method :id))))))))))

(defun duet-agents--login-with (connection agent method)
  "Sign in to AGENT of CONNECTION with METHOD."
  (let ((id (duet-get-string method :id)))
    (if (equal (duet-get-string method :type) "terminal")
        (progn
          ;; It takes other packages with it.
          (require 'duet-terminal)
          ;; A terminal of Emacs: the server's have another environment, where
          ;; your configuration may not be found.
          (duet-terminal-show connection (format "sign in to %s" agent)
                              (duet-command (duet-connection-root connection)
                                            "agents" "login" agent "--method" id)))
      (message "%s signs you in; look at your browser if it opens one" agent)
      (duet-connection-request
       connection 'agent.authenticate (list :agent agent :method id)
       :success-fn (lambda (_) (message "You are signed in to %s" agent))))))

;;;###autoload
(defun duet-logout (agent)
  "Sign out of AGENT, by its name."
  (interactive (list (duet-agents--login-read-agent "Sign out of")))
  (duet-connection-request
   (duet-connection-here) 'agent.logout (list :agent agent)
   :success-fn (lambda (_) (message "%s has signed you out" agent))))

(provide 'duet-agents-login)
;;; duet-agents-login.el ends here
