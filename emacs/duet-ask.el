;;; duet-ask.el --- Prompts about a region or a diagnostic  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; These commands begin a prompt with the region, or with an error from Flymake.
;; They do not send it: you do.  The prompt goes to a new session; with a prefix
;; argument, to the session of a visible transcript, or to the last session of the
;; project.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-compose)
(require 'duet-connection)
(require 'duet-transcript)

(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function flymake-diagnostic-beg "flymake" (diag))
(declare-function flymake-diagnostic-end "flymake" (diag))
(declare-function flymake-diagnostic-text "flymake" (diag))

(defcustom duet-ask-error-lines 4
  "Number of lines around an error that `duet-ask-about-error' quotes."
  :type 'natnum
  :group 'duet)

(defun duet-ask--session (connection)
  "Return the session of a visible transcript of CONNECTION, or its last session."
  (or (cl-some (lambda (window)
                 (with-current-buffer (window-buffer window)
                   (and (derived-mode-p 'duet-transcript-mode)
                        (eq duet-connection connection)
                        duet-session)))
               (window-list))
      (cl-find-if-not #'duet-session-archived
                      (duet-model-session-list (duet-connection-model connection)))
      (user-error "This project has no session yet")))

(defun duet-ask--compose (text question continue)
  "Begin a prompt with TEXT, and QUESTION after it.
The prompt is for a new session, or for an existing one if CONTINUE is
non-nil.  TEXT follows an unfinished prompt there."
  (let* ((connection (duet-connection-ensure (duet-host-directory default-directory) t))
         (session (and continue (duet-ask--session connection))))
    (duet-compose connection session)
    (goto-char (point-max))
    (unless (bolp) (insert "\n"))
    (unless (bobp) (insert "\n"))
    (insert text)
    (unless (bolp) (insert "\n"))
    (insert "\n" question)))

;;;###autoload
(defun duet-send-region (beg end &optional continue)
  "Begin a prompt with the text between BEG and END, the region or the line.
It goes to a new session; with a prefix argument, CONTINUE, to the last."
  (interactive (if (use-region-p)
                   (list (region-beginning) (region-end) current-prefix-arg)
                 (list (line-beginning-position) (line-end-position)
                       current-prefix-arg)))
  (duet-ask--compose (duet-ask--quote beg end) "" continue)
  (deactivate-mark))

(defun duet-ask--quote (beg end)
  "Return the text between BEG and END as a block of code, after its position."
  (let* ((text (string-trim-right (buffer-substring-no-properties beg end) "\n+"))
         (fence (duet-ask--fence text)))
    (format "%s:%d-%d\n%s%s\n%s\n%s\n"
            (duet-project-buffer-name duet-host)
            (line-number-at-pos beg t)
            (line-number-at-pos (max beg (1- end)) t)
            fence (duet-ask--language) text fence)))

(defun duet-ask--fence (text)
  "Return a fence for TEXT, longer than each run of backquotes in it."
  (let ((fence "```"))
    (while (string-search fence text)
      (setq fence (concat fence "`")))
    fence))

(defun duet-ask--language ()
  "Return the name of the buffer's language for a fence, or an empty string."
  (if (derived-mode-p 'prog-mode)
      (replace-regexp-in-string "\\(-ts\\)?-mode\\'" "" (symbol-name major-mode))
    ""))

(defun duet-ask--diagnostics ()
  "Return the diagnostics of Flymake at point, or else on its line."
  (unless (bound-and-true-p flymake-mode)
    (user-error "Flymake is off in this buffer"))
  (or (flymake-diagnostics (point))
      (flymake-diagnostics (line-beginning-position) (line-end-position))
      (user-error "Flymake reports no error on this line")))

;;;###autoload
(defun duet-ask-about-error (&optional continue)
  "Begin a prompt about the error from Flymake at point.
Quote the lines around it.  The prompt goes to a new session; with a prefix
argument, CONTINUE, to the last."
  (interactive "P")
  (let* ((diagnostics (duet-ask--diagnostics))
         (around
          (lambda (position lines)
            (save-excursion
              (goto-char position)
              (forward-line lines)
              (if (< lines 0) (point) (line-end-position)))))
         (beg (apply #'min (mapcar #'flymake-diagnostic-beg diagnostics)))
         (end (apply #'max (mapcar #'flymake-diagnostic-end diagnostics)))
         (text (concat
                (mapconcat
                 (lambda (diagnostic)
                   (format "%s:%d: %s\n" (duet-project-buffer-name duet-host)
                           (line-number-at-pos (flymake-diagnostic-beg diagnostic) t)
                           (flymake-diagnostic-text diagnostic)))
                 diagnostics "")
                "\n"
                (duet-ask--quote (funcall around beg (- duet-ask-error-lines))
                                 (funcall around end duet-ask-error-lines)))))
    (duet-ask--compose text "What is the cause, and how do I fix it?" continue)))

(provide 'duet-ask)
;;; duet-ask.el ends here
