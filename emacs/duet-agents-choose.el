;;; duet-agents-choose.el --- Which agent is asked, by its name  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-choose-agent' chooses the agent of sessions that begin from now on, and
;; `duet-set-agent' another one for a session that there is.

;;; Code:

(require 'cl-lib)
(require 'duet-actions)
(require 'duet-agents)
(require 'duet-connection)
(require 'duet-settings)

;;;###autoload
(defun duet-choose-agent ()
  "Choose the agent that is asked when a session begins in this project."
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
  "Choose another agent that goes on with SESSION, from the next prompt on.
It is told what was said.  What the agent before was set to, and might do
unasked, does not hold for it."
  (interactive (list (duet-actions-session))
               duet-sessions-mode duet-transcript-mode duet-diff-mode)
  (let ((connection (duet-connection-here)))
    (when (or (duet-session-active-run session) (> (duet-session-queued session) 0))
      (user-error "An agent works in this session; interrupt it, or wait"))
    (duet-agents-choose--ask
     connection
     (lambda (usable)
       (let ((others (cl-remove (duet-session-agent session) usable :test #'equal
                                :key (lambda (agent) (duet-get-string agent :name)))))
         (if (null others)
             (message "There is no other agent to ask; M-x duet-agents tells what others need")
           (when-let ((agent (duet-agents-choose--read
                              (format "Agent that goes on (now %s)"
                                      (duet-visible-line (or (duet-session-agent session) "?")))
                              others nil)))
             (let ((name (duet-get-string agent :name)))
               (duet-settings-set connection session (list :agent name)
                                  (lambda (_)
                                    (message "%s goes on, from the next prompt on" name)))))))))))

(defun duet-agents-choose--ask (connection function)
  "Call FUNCTION in the current buffer with the agents that CONNECTION can ask."
  (let ((buffer (current-buffer)))
    (duet-agents-fetch
     connection
     (lambda (agents)
       ;; Outside of the sentinel, which a minibuffer would hold up.
       (run-at-time 0 nil (lambda ()
                            (when (buffer-live-p buffer)
                              (with-current-buffer buffer
                                (funcall function (duet-agents-which-usable agents))))))))))

(defun duet-agents-choose--read (prompt agents default)
  "Have the user choose one of AGENTS after PROMPT; return it, or nil.
DEFAULT is the name of one, or nil."
  (let* ((names (mapcar (lambda (agent) (duet-get-string agent :name)) agents))
         (name (condition-case nil
                   (completing-read (format-prompt prompt default)
                                    (duet-settings-table names 'duet-agent)
                                    nil t nil nil default)
                 ;; In a timer Emacs does not say so itself.
                 (quit (message "Quit") nil))))
    (and name (not (string-empty-p name))
         (nth (cl-position name names :test #'equal) agents))))

(provide 'duet-agents-choose)
;;; duet-agents-choose.el ends here
