;;; duet-adopt.el --- Sessions from an agent's own program  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-adopt-session' lists the agent's own sessions, of any client, and takes
;; one over with its whole history.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-agents)
(require 'duet-connection)
(require 'duet-log)
(require 'duet-remote)
(require 'duet-search)
(require 'duet-sessions)
(require 'duet-settings)
(require 'duet-transcript)
(require 'duet-visible)

(defcustom duet-adopt-limit 200
  "Maximum number of sessions to offer; the server's limit is 1000."
  :type 'natnum
  :group 'duet)

;;;###autoload
(defun duet-adopt-session (&optional everywhere)
  "Take over a session of an agent's own program.
Offer the sessions in the project's directory; with a prefix argument,
EVERYWHERE, the sessions in all directories.  The agent is the agent of new
sessions; `duet-choose-agent' chooses another one."
  (interactive "P")
  (let* ((connection (duet-connection-here))
         (agent (duet-agents-chosen connection)))
    (message "Asking %s for its sessions..." (or agent "the agent"))
    (duet-connection-request
     connection 'agent.sessions
     (append (list :limit duet-adopt-limit)
             (when agent (list :agent agent))
             (unless everywhere
               (list :working_dir
                     (directory-file-name
                      (duet-remote-local (duet-connection-root connection))))))
     :success-fn
     (lambda (result)
       ;; Not in the process filter, which a minibuffer would block.
       (run-at-time 0 nil #'duet-adopt--choose connection result everywhere)))))

(defun duet-adopt--choose (connection result everywhere)
  "Let the user choose a session in RESULT, and adopt it in CONNECTION.
EVERYWHERE is non-nil if RESULT has the sessions of all directories."
  (let ((agent (duet-get-string result :agent))
        (sessions (duet-get-objects result :sessions)))
    (if (null sessions)
        (message (if everywhere "%s has no sessions"
                   "%s has no sessions here; C-u before the command lists those of all directories")
                 agent)
      (when (duet-get-string result :next_cursor)
        (message "These are the first %d" (length sessions)))
      (when-let ((id (duet-log-quit
                       (duet-settings--read (format "Take over from %s" agent)
                                            (duet-adopt--choices sessions) nil
                                            'duet-agent-session))))
        (duet-adopt--adopt connection agent id)))))

(defun duet-adopt--choices (sessions)
  "Return SESSIONS as choices for `duet-settings--read'."
  (let ((names (mapcar (lambda (session)
                         (duet-visible-line
                          (or (duet-get-string session :title) "untitled")))
                       sessions)))
    (cl-mapcar
     (lambda (session name)
       (let ((id (duet-get-string session :agent_session_id)))
         (list (if (> (cl-count name names :test #'equal) 1)
                   (format "%s (%s)" name (duet-visible-line id))
                 name)
               id
               (string-join
                (delq nil (list (duet-adopt--age session)
                                (when-let ((dir (duet-get-string session :working_dir)))
                                  (duet-remote-abbreviate dir))
                                (when-let ((turn (duet-get-string session :turn)))
                                  (concat "here already: " turn))))
                " · "))))
     sessions names)))

(defun duet-adopt--age (session)
  "Return the time since the last change of SESSION in words, or nil."
  (when-let ((time (duet-get-string session :updated_at)))
    (duet-sessions--age time)))

(defun duet-adopt--adopt (connection agent id)
  "Adopt the session ID of AGENT in CONNECTION, and show its transcript."
  (message "Loading the session from %s..." agent)
  (duet-connection-request
   connection 'session.adopt (list :agent agent :agent_session_id id)
   :success-fn
   (lambda (result)
     (duet-search--with-session
      connection (duet-get-string result :session_uuid) (duet-get-string result :turn_uuid)
      (lambda (session)
        (duet-transcript-show connection session t)
        (message "%s" (if-let ((note (duet-get-string result :note)))
                          (duet-visible-line note)
                        (substitute-command-keys
                         "Duet has the session now; \\<duet-transcript-mode-map>\\[duet-continue] continues it"))))))))

(provide 'duet-adopt)
;;; duet-adopt.el ends here
