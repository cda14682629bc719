;;; duet-marks.el --- Marks in the list of sessions, and what is done to all marked  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; In the list of sessions `m' marks one, `u' and `U' unmark, and `z' archives
;; all that are marked, or that at point.  In the archive it takes them back.
;; `D' deletes them for good; the user is asked, and told what goes, and what runs
;; has to be interrupted first.  Marks stay where they are when the list is brought
;; up to date.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'tabulated-list)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-look)
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
  ;; Which of both, the list decides, as it is seen: another editor may have put
  ;; away in this moment what the list still shows.
  (let ((archived (not (duet-sessions-archive-p)))
        (sessions (duet-marks)))
    (cond ((null sessions)
           (duet-actions-set-archived (duet-actions-session) archived))
          ((or (length< sessions 10)
               (y-or-n-p (format (if archived "Archive %d sessions? "
                                   "Take %d sessions back? ")
                                 (length sessions))))
           (duet-marks--archive duet-connection sessions archived (current-buffer))))))

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


;;; Deleting

(defun duet-delete (sessions)
  "Delete SESSIONS for good, with all that was said and done in them.
That is the session at point, or in a list those that are marked."
  (interactive (list (or (and (derived-mode-p 'duet-sessions-mode) (duet-marks))
                         (list (duet-actions-session))))
               duet-sessions-mode duet-transcript-mode duet-diff-mode)
  (let ((connection (duet-connection-here))
        (busy (cl-remove-if-not #'duet-marks--delete-busy-p sessions)))
    (when busy
      (user-error "%s; interrupt %s first%s" (duet-marks--delete-which busy "is not over" "are not over")
                  (if (cdr busy) "them" "it")
                  (format " (%s)" (duet-look-key #'duet-interrupt 'duet-sessions-mode-map))))
    (if (not (yes-or-no-p (duet-marks--delete-question sessions)))
        (message "Nothing is deleted")
      (duet-marks--delete-send connection sessions))))

(defun duet-marks--delete-busy-p (session)
  "Return non-nil if a turn of SESSION runs or waits to."
  (or (duet-session-active-run session) (> (duet-session-queued session) 0)))

(defun duet-marks--delete-which (sessions one many)
  "Return a clause about SESSIONS: the name of a single one with ONE, else MANY."
  (if (cdr sessions)
      (format "%d sessions %s" (length sessions) many)
    (format "%s %s" (duet-session-name (car sessions)) one)))

(defun duet-marks--delete-question (sessions)
  "Return the question whether to delete SESSIONS."
  (format "Delete %s for good, with all that was said and done there?  Files stay.  "
          (if (cdr sessions)
              (format "%d sessions (%s)" (length sessions)
                      (truncate-string-to-width
                       (mapconcat #'duet-session-name sessions ", ") 200 nil nil "…"))
            (format "\"%s\"" (duet-session-name (car sessions))))))

(defun duet-marks--delete-send (connection sessions)
  "Have the server of CONNECTION delete SESSIONS, and say what became of them."
  (let ((left (length sessions))
        (deleted 0) (kept 0) (refused '()))
    (dolist (session sessions)
      (cl-flet ((done ()
                  (when (zerop (cl-decf left))
                    (message "%s" (duet-marks--delete-outcome deleted kept (nreverse refused))))))
        (duet-connection-request
         connection 'session.delete (list :session_id (duet-session-leaf-id session))
         :success-fn (lambda (result)
                       (unless (eql (duet-get-number result :deleted) 0)
                         (cl-incf deleted))
                       (cl-incf kept (or (duet-get-number result :kept) 0))
                       (duet-marks--delete-close connection session)
                       (done))
         :error-fn (lambda (err)
                     (push (duet-connection-error-text err) refused)
                     (done)))))))

(defun duet-marks--delete-outcome (deleted kept refused)
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

(defun duet-marks--delete-close (connection session)
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

(provide 'duet-marks)
;;; duet-marks.el ends here
