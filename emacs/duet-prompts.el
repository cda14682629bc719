;;; duet-prompts.el --- From prompt to prompt in a transcript  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; In a transcript `M-n' and `M-p' go to the next and the previous prompt, and
;; Imenu lists all that are loaded, and the headings
;; of what agents say.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'imenu)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-markup)
(require 'duet-section)
(require 'duet-transcript)

(defun duet-prompts ()
  "Return the prompts that the transcript shows: (MESSAGE . POSITION), in order."
  (cl-loop for message in (duet-session-message-list duet-session)
           for section = (and (eq (duet-message-kind message) 'prompt)
                              (duet-section-get (duet-message-key message)))
           when section
           collect (cons message (marker-position (duet-section-beg section)))))

(defun duet-prompt-next (&optional count)
  "Go to the next prompt, or to the COUNTth; back if it is negative."
  (interactive (or (duet-only-in 'duet-transcript-mode)
                   (list (prefix-numeric-value current-prefix-arg)))
               duet-transcript-mode)
  (let* ((count (or count 1))
         (places (mapcar #'cdr (duet-prompts)))
         (there (cond ((zerop count) (point))
                      ((> count 0)
                       (nth (1- count) (cl-remove-if (lambda (place) (<= place (point)))
                                                     places)))
                      (t (nth (1- (- count))
                              (nreverse (cl-remove-if (lambda (place) (>= place (point)))
                                                      places)))))))
    (cond
     (there (goto-char there)
            ;; With what follows it.
            (when (and (eq (window-buffer) (current-buffer))
                       (not (pos-visible-in-window-p (line-end-position 2))))
              (recenter 1)))
     ((> count 0) (message "This is the last prompt"))
     ((> (duet-session-offset duet-session) 0)
      (message (substitute-command-keys
                "This is the first prompt that is loaded; \\<duet-transcript-mode-map>\\[duet-transcript-earlier] loads earlier ones")))
     (t (message "This is the first prompt")))))

(defun duet-prompt-previous (&optional count)
  "Go to the prompt before, or to the COUNTth before."
  (interactive (or (duet-only-in 'duet-transcript-mode)
                   (list (prefix-numeric-value current-prefix-arg)))
               duet-transcript-mode)
  (duet-prompt-next (- (or count 1))))

(defun duet-prompts--index ()
  "Return the prompts of the transcript, and what agents call parts, for Imenu."
  (append (duet-prompts--entries
           (mapcar (lambda (prompt)
                     (cons (car (split-string (string-trim (duet-message-text (car prompt)))
                                              "\n"))
                           (cdr prompt)))
                   (duet-prompts)))
          (when-let ((headings (duet-markup-headings)))
            (list (cons "Headings" (duet-prompts--entries headings))))))

(defun duet-prompts--entries (places)
  "Return PLACES, (WORDS . POSITION) each, as entries for Imenu.
Those that are alike are numbered."
  (let ((counts (make-hash-table :test #'equal)))
    (mapcar (lambda (place)
              (let* ((name (truncate-string-to-width (car place) 70 nil nil "…"))
                     (count (puthash name (1+ (gethash name counts 0)) counts)))
                (cons (if (= count 1) name (format "%s <%d>" name count))
                      (copy-marker (cdr place)))))
            places)))

(defun duet-prompts--setup ()
  "Have Imenu list the prompts of the transcript in the current buffer."
  (setq-local imenu-create-index-function #'duet-prompts--index
              imenu-auto-rescan t
              ;; What is listed is not looked for in the text.
              imenu-auto-rescan-maxout most-positive-fixnum))

(add-hook 'duet-transcript-mode-hook #'duet-prompts--setup)

(define-key duet-transcript-mode-map (kbd "M-n") #'duet-prompt-next)
(define-key duet-transcript-mode-map (kbd "M-p") #'duet-prompt-previous)

(provide 'duet-prompts)
;;; duet-prompts.el ends here
