;;; duet-revert.el --- Buffers follow their files  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What agents write is seen in the buffers that visit it.  A buffer is read anew
;; without a question, who looks at it stays in place, and the change can be
;; undone.

;;; Code:

(require 'subr-x)

(defconst duet-revert--seconds 0.2
  "How many seconds a file is compared with its buffer at most.
What is not done by then is replaced as a whole.")

(defun duet-revert-read (buffer)
  "Read anew the file that BUFFER visits, with nothing asked and nothing said.
Point stays on the text that it is on, in all windows."
  (with-current-buffer buffer
    (let ((inhibit-message t)
          (message-log-max nil)
          (revert-buffer-insert-file-contents-function #'duet-revert--insert))
      (revert-buffer t t t))))

(defun duet-revert--insert (file _auto-save)
  "Make the text of FILE that of the current buffer, which visits it.
A value of `revert-buffer-insert-file-contents-function'."
  (let ((buffer (current-buffer)) coding)
    (with-temp-buffer
      (insert-file-contents file)
      (setq coding last-coding-system-used)
      (let ((text (current-buffer)))
        (with-current-buffer buffer
          (save-excursion
            (save-restriction
              (widen)
              ;; The file may be locked by now, or behind; neither matters.
              (let ((buffer-file-name nil) (inhibit-read-only t))
                (replace-buffer-contents text duet-revert--seconds)))))))
    (when coding (setq buffer-file-coding-system coding))
    (set-buffer-modified-p nil)
    (set-visited-file-modtime)))

(provide 'duet-revert)
;;; duet-revert.el ends here
