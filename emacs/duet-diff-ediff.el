;;; duet-diff-ediff.el --- A file before and after a turn, with Ediff  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Nothing else of what shows changes touches the windows, and this puts them back.

;;; Code:

(require 'duet-diff-view)

(declare-function ediff-buffers "ediff" (buffer-a buffer-b &optional startup-hooks job-name))
(declare-function ediff-setup-windows-plain "ediff-wind"
                  (buffer-a buffer-b buffer-c control-buffer))
(defvar ediff-window-setup-function)
(defvar ediff-quit-hook)

(defun duet-diff-ediff ()
  "Compare the file at point as it was before the turn and after it, with Ediff.
The windows are as they were when that ends."
  (interactive nil duet-diff-mode)
  (require 'ediff)
  (let* ((file (duet-diff--file-here))
         (name (duet-diff--name file))
         (windows (current-window-configuration))
         buffers)
    (when (or (duet-diff-file-binary file) (duet-diff-file-cut file))
      (duet-diff-refuse file "the server has not told what is in it"))
    (setq buffers
          (mapcar (lambda (side)
                    (with-current-buffer (generate-new-buffer
                                          (format "%s (%s)" name (car side)))
                      (insert (or (cdr side) ""))
                      (let ((buffer-file-name (duet-diff-file-path file))
                            (enable-local-variables nil))
                        (delay-mode-hooks (ignore-errors (set-auto-mode))))
                      (setq buffer-read-only t)
                      (set-buffer-modified-p nil)
                      (current-buffer)))
                  (list (cons "before" (duet-diff-file-before file))
                        (cons "after" (duet-diff-file-after file)))))
    (condition-case err
        ;; In the frame that we are in.
        (let ((ediff-window-setup-function #'ediff-setup-windows-plain))
          (ediff-buffers
           (car buffers) (cadr buffers)
           (list (lambda ()
                   (setq-local ediff-window-setup-function #'ediff-setup-windows-plain)
                   (add-hook 'ediff-quit-hook
                             (lambda () (duet-diff-ediff--ended buffers windows))
                             t t)))))
      ((error quit)
       (duet-diff-ediff--ended buffers windows)
       (signal (car err) (cdr err))))))

(defun duet-diff-ediff--ended (buffers windows)
  "Kill BUFFERS and restore the configuration WINDOWS."
  (dolist (buffer buffers)
    (when (buffer-live-p buffer) (kill-buffer buffer)))
  (set-window-configuration windows))

(provide 'duet-diff-ediff)
;;; duet-diff-ediff.el ends here
