;;; duet-export.el --- Sessions written to files  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `W' writes a session to a file, as Markdown or as JSON, according to the name of
;; the file.  With a prefix argument it shows the text in a buffer.  The program
;; duet-rpc makes the text, as for `duet-rpc session show ID --export'.

;;; Code:

(require 'subr-x)
(require 'duet-actions)
(require 'duet-command)
(require 'duet-connection)
(require 'duet-remote)
(require 'duet-sessions)
(require 'duet-transcript)

(declare-function js-json-mode "js" ())
(declare-function markdown-mode "markdown-mode" ())

(defconst duet-export-formats '(("md" . "Markdown") ("json" . "JSON"))
  "The formats for a session: extensions of files, and their names.")

(defun duet-export-session (session format &optional file)
  "Write SESSION to FILE; FORMAT is \"md\" or \"json\".
With a prefix argument, or if FILE is nil, show the text in a buffer."
  (interactive (let ((session (duet-actions-session)))
                 (if current-prefix-arg
                     (list session (duet-export--read-format))
                   (let ((file (duet-export--read-file session)))
                     (list session (duet-export--format-of file) file))))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (let ((name (duet-session-name session)))
    (duet-command-run
     (duet-connection-root (duet-connection-here session))
     (list "session" "show" (or (duet-session-leaf-id session)
                                (user-error "This session has no messages yet"))
           "--export" format)
     (lambda (text)
       (if file
           (duet-export--write text file)
         (duet-export--show text format name))))))

(defun duet-export--format-of (file)
  "Return the format for the extension of FILE; signal a `user-error' if none."
  (or (car (assoc (downcase (or (file-name-extension file) "md")) duet-export-formats))
      (user-error "Use a file name that ends in .md or .json")))

(defun duet-export--read-format ()
  "Read a format in the minibuffer, and return it."
  (completing-read (format-prompt "Show it as" "md") (mapcar #'car duet-export-formats)
                   nil t nil nil "md"))

(defun duet-export--read-file (session)
  "Read the name of a file for SESSION in the minibuffer, and return it.
Ask whether to overwrite an existing file."
  (let* ((name (concat (duet-export--file-name (duet-session-name session)) ".md"))
         (file (expand-file-name
                (read-file-name "Write the session to (.md or .json): " nil nil nil name))))
    (when (file-directory-p file)
      (setq file (expand-file-name name file)))
    (unless (file-name-extension file)
      (setq file (concat file ".md")))
    (when (and (file-exists-p file)
               (not (y-or-n-p (format "%s exists; overwrite it? " (duet-remote-abbreviate file)))))
      (user-error "Not written"))
    file))

(defun duet-export--file-name (title)
  "Return TITLE as the name of a file, without an extension."
  (let ((name (string-trim (replace-regexp-in-string "[^[:alnum:]_]+" "-" (downcase title)) "-" "-")))
    (if (string-empty-p name) "session" (truncate-string-to-width name 60))))

(defun duet-export--write (text file)
  "Write TEXT to FILE."
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region text nil file nil 'silent))
  (message "Wrote %s" (duet-remote-abbreviate file)))

(defun duet-export--show (text format name)
  "Show TEXT, in FORMAT, in a buffer with the title NAME."
  (with-current-buffer (generate-new-buffer (format "*duet %s: %s*" format name))
    (insert text)
    (goto-char (point-min))
    ;; Undo must not remove the text.
    (setq buffer-undo-list nil)
    (cond ((equal format "json") (if (fboundp 'js-json-mode) (js-json-mode) (js-mode)))
          ((fboundp 'markdown-mode) (markdown-mode))
          (t (text-mode)))
    (set-buffer-file-coding-system 'utf-8-unix)
    (set-buffer-modified-p nil)
    (pop-to-buffer (current-buffer))))

(define-key duet-sessions-mode-map "W" #'duet-export-session)
(define-key duet-transcript-mode-map "W" #'duet-export-session)

(provide 'duet-export)
;;; duet-export.el ends here
