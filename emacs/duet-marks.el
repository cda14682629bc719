;;; duet-marks.el --- Marks in the list of sessions  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; In the list of sessions `m' marks one, `u' and `U' unmark, and `A' archives
;; all that are marked, or that at point.  In the archive it takes them back.
;; Marks stay where they are when the list is brought up to date.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'tabulated-list)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-sessions)

(defface duet-mark '((t :inherit warning :weight bold))
  "Face of marks in the list of sessions."
  :group 'duet)

(defvar-local duet-marks--sessions nil
  "The sessions that are marked.")

(defun duet-marks--setup ()
  "Have the list of sessions in the current buffer show marks."
  (setq tabulated-list-printer #'duet-marks--print))

(defun duet-marks--print (id columns)
  "Insert the line of the session ID, with COLUMNS, and its mark."
  (let ((beg (point)))
    (tabulated-list-print-entry id columns)
    (when (memq id duet-marks--sessions)
      (save-excursion
        (goto-char beg)
        (tabulated-list-put-tag (propertize "*" 'face 'duet-mark))))))

(defun duet-marks ()
  "Return the sessions that are marked and listed, the first first."
  (let ((listed (mapcar #'car tabulated-list-entries)))
    (cl-remove-if-not (lambda (session) (memq session duet-marks--sessions)) listed)))

(defun duet-mark ()
  "Mark the session at point and go to the next."
  (interactive (duet-only-in 'duet-sessions-mode) duet-sessions-mode)
  (cl-pushnew (duet-actions-session) duet-marks--sessions)
  (tabulated-list-put-tag (propertize "*" 'face 'duet-mark) t))

(defun duet-unmark ()
  "Unmark the session at point and go to the next."
  (interactive (duet-only-in 'duet-sessions-mode) duet-sessions-mode)
  (setq duet-marks--sessions (delq (duet-actions-session) duet-marks--sessions))
  (tabulated-list-put-tag " " t))

(defun duet-unmark-all ()
  "Unmark all sessions."
  (interactive (duet-only-in 'duet-sessions-mode) duet-sessions-mode)
  (setq duet-marks--sessions nil)
  (tabulated-list-clear-all-tags))

(defun duet-archive-marked ()
  "Put the marked sessions away, or take them back; if none is, that at point."
  (interactive nil duet-sessions-mode)
  (if-let ((sessions (duet-marks)))
      (let ((archived (not (duet-session-archived (car sessions)))))
        (when (or (length< sessions 10)
                  (y-or-n-p (format (if archived "Archive %d sessions? "
                                      "Take %d sessions back? ")
                                    (length sessions))))
          (duet-marks--archive duet-connection sessions archived (current-buffer))))
    (duet-archive (duet-actions-session))))

(defun duet-marks--archive (connection sessions archived buffer)
  "Put SESSIONS of CONNECTION away if ARCHIVED is non-nil, else take them back.
BUFFER has the marks of those that this goes well with removed."
  (let ((ids (mapcar #'duet-session-leaf-id sessions))
        (hint (if archived (duet-actions-archive-hint) "")))
    (duet-connection-request
     connection 'bulkArchiveSessions
     (list :session_ids (vconcat ids) :archived (if archived t :json-false))
     :success-fn
     (lambda (result)
       (let* ((failed (duet-get-strings result :failed_sessions))
              (done (cl-remove-if (lambda (session)
                                    (cl-intersection
                                     failed (list (duet-session-id session)
                                                  (duet-session-leaf-id session))
                                     :test #'equal))
                                  sessions)))
         (dolist (session done)
           (setf (duet-session-archived session) archived))
         (when (buffer-live-p buffer)
           (with-current-buffer buffer
             (setq duet-marks--sessions
                   (cl-set-difference duet-marks--sessions done))))
         (duet-model-announce (duet-connection-model connection) 'sessions)
         (message "%d %s%s%s" (length done)
                  (if archived "archived" "taken back from the archive")
                  (if failed (format "; %d could not be changed" (length failed)) "")
                  hint))))))

(add-hook 'duet-sessions-mode-hook #'duet-marks--setup)

(define-key duet-sessions-mode-map "m" #'duet-mark)
(define-key duet-sessions-mode-map "u" #'duet-unmark)
(define-key duet-sessions-mode-map "U" #'duet-unmark-all)
(define-key duet-sessions-mode-map "z" #'duet-archive-marked)

(provide 'duet-marks)
;;; duet-marks.el ends here
