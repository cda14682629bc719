;;; duet-log.el --- The log of Duet  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Problems that are no reason to stop go to the buffer *duet-log*: an event that is
;; not understood, an error in a function that watches a model.
;; `duet-log-guard' keeps such an error from reaching the process filter or the
;; timer that it happened in, where it would take others down with it.

;;; Code:

(defcustom duet-log-size 200000
  "How many characters of the log are kept."
  :type 'natnum
  :group 'duet)

(defconst duet-log-buffer "*duet-log*"
  "The name of the log's buffer.")

(define-derived-mode duet-log-mode special-mode "Duet-Log"
  "Major mode of the log of Duet."
  (setq buffer-undo-list t))

(defun duet-log (format &rest arguments)
  "Add a line to the log, made of FORMAT and ARGUMENTS.
It begins with the time.  Nothing is shown."
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
  "Return the beginning of OBJECT, whatever it is, in print."
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
  "Evaluate BODY; log an error in it as one in WHAT, a string, and return nil."
  (declare (indent 1) (debug t))
  (let ((err (make-symbol "err")))
    `(condition-case ,err
         (progn ,@body)
       (error (duet-log "%s: %s" ,what (error-message-string ,err))))))

(defmacro duet-log-quit (&rest body)
  "Evaluate BODY; a quit in it shows \"Quit\" and returns nil.
For questions in a timer, where Emacs does not say so itself."
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
