;;; duet-transcript-visit.el --- What stands at point in a transcript  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; RET goes to what point is on: a file that a tool has named, a place or an
;; address that an agent has written into its prose, a button; on a heading it
;; folds.
;;
;; Of a tool's input, of its result and of a diff a transcript shows so many lines.
;; Where something is left out, RET on the line that says so shows all of it, in a
;; buffer of its own.

;;; Code:

(require 'ansi-color)
(require 'subr-x)
(require 'thingatpt)
(require 'duet-actions)
(require 'duet-history)
(require 'duet-link)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-render-text)
(require 'duet-section)
(require 'duet-visible)

(declare-function duet-markup--copied "duet-markup" (beg end &optional delete))

(defun duet-transcript-message-at-point ()
  "Return the message at point, or nil."
  (when-let ((section (duet-section-at)))
    (duet-section-object section)))

(defun duet-transcript-visit ()
  "Visit the file or address at point, or do what the button there says.
On the heading of what is folded, or can be, fold it or unfold it."
  (interactive nil duet-transcript-mode)
  (let ((action (get-text-property (point) 'duet-action))
        (file (get-text-property (point) 'duet-file))
        (link (duet-link-at-point))
        (url (thing-at-point-url-at-point))
        (place (duet-transcript-visit--place)))
    (cond
     (action (call-interactively action))
     (file (duet-transcript-visit--file file (get-text-property (point) 'duet-line)))
     (link (duet-link-follow link))
     (url (duet-link-browse url))
     (place (duet-transcript-visit--file (car place) (cdr place)))
     (t
      ;; The line may name one.
      (let ((next (next-single-property-change (line-beginning-position) 'duet-file
                                               nil (line-end-position))))
        (if (and next (get-text-property next 'duet-file))
            (progn (goto-char next) (duet-transcript-visit))
          (duet-transcript-visit--fold)))))))

(defun duet-transcript-visit--fold ()
  "Fold or unfold the section at point, from its heading; else say what there is.
What people and agents have said is prose, and has no heading."
  (let* ((section (duet-section-at))
         (message (and section (duet-section-object section))))
    (if (and section
             (or (duet-section-folded-p section)
                 (and message
                      (not (memq (duet-message-kind message) '(text prompt answer)))
                      (= (line-beginning-position)
                         (save-excursion (goto-char (duet-section-beg section))
                                         (line-beginning-position))))))
        (duet-section-toggle)
      (user-error "Nothing is here to go to; %s"
                  (substitute-command-keys
                   "\\<duet-transcript-mode-map>\\[duet-section-toggle] folds")))))

(defun duet-transcript-visit--file (file line)
  "Visit FILE in another window, at LINE if that is non-nil."
  (let ((file (duet-remote-name file)))
    (unless (file-exists-p file)
      (user-error "There is no file %s any more" (duet-remote-abbreviate file)))
    (find-file-other-window file)
    (when line
      (goto-char (point-min))
      (forward-line (1- line)))))

(defun duet-transcript-visit--place ()
  "Return the file that the prose at point names, and the line: (FILE . LINE).
Return nil if there is none.  LINE is nil where only the file is named."
  (save-excursion
    (let ((here (point))
          (characters "-+@~/._[:alnum:]"))
      (skip-chars-backward (concat characters ":") (line-beginning-position))
      ;; Point may be on the colon, or on a number behind it.
      (when (and (looking-at (format "\\([%s]+\\)\\(?::\\([0-9]+\\)\\)?" characters))
                 (<= here (match-end 0)))
        (let* ((line (match-string-no-properties 2))
               ;; A full stop ends a sentence more often than a name.
               (file (string-trim-right (match-string-no-properties 1) "\\.+")))
          (when (and (not (string-empty-p file))
                     (not (file-remote-p file))
                     (file-regular-p (duet-remote-name file)))
            (cons file (and line (string-to-number line)))))))))

(defun duet-transcript-visit-mouse (event)
  "Do what `duet-transcript-visit' does where EVENT, a click, was."
  (interactive "e" duet-transcript-mode)
  (mouse-set-point event)
  (if (get-text-property (point) 'duet-fold)
      (duet-section-toggle)
    (duet-transcript-visit)))


;;; All of what is shown in part

(defvar duet-transcript-whole-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-transcript-whole-mode'.")

(define-derived-mode duet-transcript-whole-mode special-mode "Duet-Whole"
  "Major mode that shows all of a text.

\\{duet-transcript-whole-mode-map}"
  (setq buffer-undo-list t
        bidi-paragraph-direction 'left-to-right
        truncate-lines nil)
  (setq-local bidi-inhibit-bpa t
              filter-buffer-substring-function #'duet-markup--copied))

(defun duet-whole-show ()
  "Show all of the text of which the line at point leaves something out."
  (interactive nil duet-transcript-mode)
  (let ((rest (get-text-property (point) 'duet-rest))
        (text (get-text-property (point) 'duet-whole)))
    (cond
     ((and rest (duet-message-cut rest)) (duet-transcript-visit-load rest text))
     (text (duet-transcript-visit--show-whole text))
     (t (user-error "Nothing is left out here")))))

(defun duet-transcript-visit-load (message &optional show)
  "Load what events have left out of MESSAGE.
Then show all of its result, if SHOW is non-nil."
  (unless (eq (duet-message-cut message) 'loading)
    (let ((buffer (current-buffer)))
      (duet-history-complete
       duet-connection message
       (lambda (err)
         (cond
          (err (message "Duet: the rest was not loaded: %s" (duet-connection-error-text err)))
          ((and show (buffer-live-p buffer) (eq buffer (window-buffer)))
           (with-current-buffer buffer
             (duet-transcript-visit--show-whole (or (duet-tool-result message) "")))))))
      (duet-events--changed message))))

(defun duet-transcript-visit--unfolded (section)
  "Load what events have left out of the message that SECTION shows."
  (let ((message (and (bound-and-true-p duet-session)
                      (stringp (duet-section-key section))
                      (duet-session-message duet-session (duet-section-key section)))))
    (when (and (duet-tool-p message) (eq (duet-message-cut message) t)
               (duet-connection-rpc duet-connection))
      (duet-transcript-visit-load message))))

(add-hook 'duet-section-unfold-functions #'duet-transcript-visit--unfolded)

(defun duet-transcript-visit--show-whole (text)
  "Show TEXT, of the section at point, in a buffer of its own."
  (let ((name (save-excursion
                (when-let ((section (duet-section-at)))
                  (goto-char (duet-section-beg section))
                  (buffer-substring-no-properties (point) (line-end-position)))))
        (buffer (get-buffer-create "*duet whole*")))
    (with-current-buffer buffer
      (duet-transcript-whole-mode)
      (setq header-line-format
            (concat " " (replace-regexp-in-string "%" "%%" (or name "") t t)))
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (duet-render-wrap (duet-visible text)) "\n")
        (goto-char (point-min))))
    (pop-to-buffer buffer)))

(provide 'duet-transcript-visit)
;;; duet-transcript-visit.el ends here
