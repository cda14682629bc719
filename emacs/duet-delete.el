;;; duet-delete.el --- Sessions that are deleted for good  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `D' deletes the session at point, or all that are marked in a list, for good.  The
;; user is asked, and told what goes.  What runs has to be interrupted first.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-marks)
(require 'duet-sessions)

(defun duet-delete (sessions)
  "Delete SESSIONS for good, with all that was said and done in them.
That is the session at point, or in a list those that are marked."
  (interactive (list (or (and (derived-mode-p 'duet-sessions-mode) (duet-marks))
                         (list (duet-actions-session))))
               duet-sessions-mode duet-transcript-mode duet-diff-mode)
  (let ((connection (duet-connection-here))
        (busy (cl-remove-if-not #'duet-delete--busy-p sessions)))
    (when busy
      (user-error "%s; interrupt %s first%s" (duet-delete--which busy "is not over" "are not over")
                  (if (cdr busy) "them" "it")
                  (substitute-command-keys " (\\<duet-sessions-mode-map>\\[duet-interrupt])")))
    (if (not (yes-or-no-p (duet-delete--question sessions)))
        (message "Nothing is deleted")
      (duet-delete--send connection sessions))))

(defun duet-delete--busy-p (session)
  "Return non-nil if a turn of SESSION runs or waits to."
  (or (duet-session-active-run session) (> (duet-session-queued session) 0)))

(defun duet-delete--which (sessions one many)
  "Return a clause about SESSIONS: the name of a single one with ONE, else MANY."
  (if (cdr sessions)
      (format "%d sessions %s" (length sessions) many)
    (format "%s %s" (duet-session-name (car sessions)) one)))

(defun duet-delete--question (sessions)
  "Return the question whether to delete SESSIONS."
  (format "Delete %s for good, with all that was said and done there?  Files stay.  "
          (if (cdr sessions)
              (format "%d sessions (%s)" (length sessions)
                      (truncate-string-to-width
                       (mapconcat #'duet-session-name sessions ", ") 200 nil nil "…"))
            (format "\"%s\"" (duet-session-name (car sessions))))))

(defun duet-delete--send (connection sessions)
  "Have the server of CONNECTION delete SESSIONS, and say what became of them."
  (let ((left (length sessions))
        (deleted 0) (kept 0) (refused '()))
    (dolist (session sessions)
      (cl-flet ((done ()
                  (when (zerop (cl-decf left))
                    (message "%s" (duet-delete--outcome deleted kept (nreverse refused))))))
        (duet-connection-request
         connection 'session.delete (list :session_id (duet-session-leaf-id session))
         :success-fn (lambda (result)
                       (unless (eql (duet-get-number result :deleted) 0)
                         (cl-incf deleted))
                       (cl-incf kept (or (duet-get-number result :kept) 0))
                       (duet-delete--close connection session)
                       (done))
         :error-fn (lambda (err)
                     (push (duet-connection-error-text err) refused)
                     (done)))))))

(defun duet-delete--outcome (deleted kept refused)
  "Return what is said of DELETED sessions, KEPT turns and reasons, REFUSED."
  (string-join
   (delq nil
         (list (cond ((> deleted 0) (format "%d deleted" deleted))
                     ((null refused) "Nothing is deleted"))
               (unless (zerop kept)
                 (format "%d turn%s kept in the archive, since other sessions were forked from there"
                         kept (if (= kept 1) " is" "s are")))
               (when refused
                 (format "%s not deleted: %s"
                         (if (zerop deleted) "Was" (format "%d" (length refused)))
                         (string-join (delete-dups refused) "; ")))))
   "; "))

(defun duet-delete--close (connection session)
  "Kill the buffers that show SESSION; where the user looks at one, show the list.
The list is that of CONNECTION."
  (dolist (buffer (buffer-list))
    (when (and (eq (buffer-local-value 'duet-session buffer) session)
               (with-current-buffer buffer
                 (derived-mode-p 'duet-transcript-mode 'duet-diff-mode)))
      (when (eq buffer (window-buffer))
        (duet-sessions-show connection))
      (kill-buffer buffer))))

(define-key duet-sessions-mode-map "D" #'duet-delete)
(define-key duet-transcript-mode-map "D" #'duet-delete)

(provide 'duet-delete)
;;; duet-delete.el ends here
