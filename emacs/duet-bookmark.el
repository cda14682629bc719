;;; duet-bookmark.el --- Bookmarks of sessions  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A bookmark leads to the list of a project's sessions, to a session's transcript,
;; or to a session's changes.  It works in another Emacs, too: the jump starts the
;; server, and shows the session once the server has sent it.

;;; Code:

(require 'duet-connection)
(require 'duet-diff)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-sessions)
(require 'duet-transcript)

(declare-function bookmark-prop-get "bookmark" (bookmark-name-or-record prop))

(defun duet-bookmark--make ()
  "Return a bookmark of the current buffer."
  (let ((session (and (not (derived-mode-p 'duet-sessions-mode)) duet-session)))
    `(,(if session (duet-session-name session)
         (format "Duet: %s" (duet-remote-abbreviate (duet-connection-root duet-connection))))
      (project . ,(duet-connection-root duet-connection))
      ,@(and session `((session . ,(duet-session-id session))))
      ,@(and (derived-mode-p 'duet-diff-mode) '((changes . t)))
      (handler . duet-bookmark-jump))))

;;;###autoload
(defun duet-bookmark-jump (bookmark)
  "Show the buffer of BOOKMARK, a bookmark of Duet."
  (duet-bookmark-visit (bookmark-prop-get bookmark 'project)
                       (bookmark-prop-get bookmark 'session)
                       (bookmark-prop-get bookmark 'changes)))

(defun duet-bookmark-visit (root &optional id changes)
  "Show the list of sessions of the project ROOT, or its session ID.
If CHANGES is non-nil, show the changes of the session.  Start a server if
needed, and show the session once the server has sent it."
  (let ((connection (duet-connection-ensure root)))
    (if (and id (duet-connection-session connection id))
        (duet-bookmark--show connection id changes)
      (duet-sessions-show connection)
      (when id (duet-bookmark--await connection id changes)))))

(defun duet-bookmark--show (connection id changes)
  "Show the session ID of CONNECTION; if CHANGES is non-nil, show its changes."
  (let ((session (duet-connection-session connection id)))
    (duet-transcript-show connection session)
    (when changes (duet-diff session))))

(defun duet-bookmark--await (connection id changes)
  "Show the session ID, or its CHANGES, once CONNECTION's server has sent it."
  (let ((model (duet-connection-model connection))
        observer)
    (setq observer
          (lambda (_model kind &rest _)
            (when (eq kind 'sessions)
              (duet-model-remove-observer observer model)
              ;; Not in the process filter, which a window's hooks would block.
              (run-at-time 0 nil
                           (lambda ()
                             (if (duet-connection-session connection id)
                                 (duet-bookmark--show connection id changes)
                               (duet-bookmark--ask connection id changes)))))))
    (duet-model-add-observer observer model)))

(defun duet-bookmark--ask (connection id changes)
  "Request and show the session ID, or its CHANGES, from CONNECTION's server.
The server's list lacks old and archived sessions."
  (let* ((model (duet-connection-model connection))
         (asked (duet-model-clock model)))
    (duet-connection-request
     connection 'turn.get (list :turn id)
     :success-fn (lambda (result)
                   (duet-pages-load-sessions model (vector (duet-get result :turn)) asked)
                   (duet-bookmark--show connection id changes))
     :error-fn (lambda (_) (message "Duet: this session no longer exists")))))

(defun duet-bookmark--set-up ()
  "Set the function that makes bookmarks of the current buffer."
  (setq-local bookmark-make-record-function #'duet-bookmark--make))

(dolist (hook '(duet-sessions-mode-hook duet-transcript-mode-hook duet-diff-mode-hook))
  (add-hook hook #'duet-bookmark--set-up))

(provide 'duet-bookmark)
;;; duet-bookmark.el ends here
