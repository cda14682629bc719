;;; duet-whole.el --- All of what a transcript shows the beginning of  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Of a tool's input, of its result and of a diff a transcript shows so many lines.
;; Where something is left out, RET on the line that says so shows all of it, in a
;; buffer of its own.

;;; Code:

(require 'ansi-color)
(require 'duet-actions)
(require 'duet-section)
(require 'duet-visible)

(defvar duet-whole-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-whole-mode'.")

(define-derived-mode duet-whole-mode special-mode "Duet-Whole"
  "Major mode that shows all of a text.

\\{duet-whole-mode-map}"
  (setq buffer-undo-list t
        bidi-paragraph-direction 'left-to-right
        truncate-lines nil)
  (setq-local bidi-inhibit-bpa t))

(defun duet-whole-show ()
  "Show all of the text of which the line at point leaves something out."
  (interactive nil duet-transcript-mode)
  (let ((text (or (get-text-property (point) 'duet-whole)
                  (user-error "Nothing is left out here")))
        (name (save-excursion
                (when-let ((section (duet-section-at)))
                  (goto-char (duet-section-beg section))
                  (buffer-substring-no-properties (point) (line-end-position)))))
        (buffer (get-buffer-create "*duet whole*")))
    (with-current-buffer buffer
      (duet-whole-mode)
      (setq header-line-format
            (concat " " (replace-regexp-in-string "%" "%%" (or name "") t t)))
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (duet-visible text) "\n")
        (goto-char (point-min))))
    (pop-to-buffer buffer)))

(provide 'duet-whole)
;;; duet-whole.el ends here
