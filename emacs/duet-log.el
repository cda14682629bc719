;;; duet-log.el --- The log of Duet  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The buffer *duet-log* records problems that stop nothing: an invalid event, or an
;; error in an observer of a model.  `duet-log-guard' keeps such an error from the
;; process filter or the timer, where it would prevent other work.

;;; Code:

(defcustom duet-log-size 200000
  "Maximum size of the log, in characters."
  :type 'natnum
  :group 'duet)

(defconst duet-log-buffer "*duet-log*"
  "The name of the log's buffer.")

(define-derived-mode duet-log-mode special-mode "Duet-Log"
  "Major mode of the log of Duet."
  (setq buffer-undo-list t))

(defun duet-log (format &rest arguments)
  "Add a line to the log, made of the time, FORMAT and ARGUMENTS.
Show nothing."
  (let ((line (apply #'format format arguments)))
    (with-current-buffer (get-buffer-create duet-log-buffer)
      (unless (derived-mode-p 'duet-log-mode) (duet-log-mode))
      (let ((inhibit-read-only t))
        (save-excursion
          (goto-char (point-max))
          (insert (format-time-string "%F %T ")
                  (truncate-string-to-width line 2000 nil nil "…") "\n")
          (when (> (buffer-size) duet-log-size)
            (goto-char (- (point-max) (/ duet-log-size 2)))
            (delete-region (point-min) (line-beginning-position 2))))))
    nil))

(defun duet-log-brief (object)
  "Return the beginning of the printed OBJECT, which may have any type."
  (let ((print-length 12)
        (print-level 4)
        (print-circle t))
    (truncate-string-to-width
     (condition-case nil
         (prin1-to-string (if (stringp object)
                              (truncate-string-to-width object 300)
                            object))
       (error "Something that cannot be printed"))
     300)))

(defmacro duet-log-guard (what &rest body)
  "Evaluate BODY; log an error with the prefix WHAT, a string, and return nil."
  (declare (indent 1) (debug t))
  (let ((err (make-symbol "err")))
    `(condition-case ,err
         (progn ,@body)
       (error (duet-log "%s: %s" ,what (error-message-string ,err))))))

(defmacro duet-log-quit (&rest body)
  "Evaluate BODY; on a quit show \"Quit\" and return nil.
It is for questions in a timer, where Emacs does not show that itself."
  (declare (indent 0) (debug t))
  `(condition-case nil
       (progn ,@body)
     (quit (message "Quit") nil)))

;;;###autoload
(defun duet-log-show ()
  "Show the log of Duet."
  (interactive)
  (with-current-buffer (get-buffer-create duet-log-buffer)
    (unless (derived-mode-p 'duet-log-mode) (duet-log-mode)))
  (pop-to-buffer duet-log-buffer))

(provide 'duet-log)
;;; duet-log.el ends here
