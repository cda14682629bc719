;;; duet-compose-complete.el --- What completes in a prompt  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What begins with @ is a file, or something of the buffer that the prompt was
;; begun in: its region, what Flymake says.  What begins with / is a slash command,
;; or sets the agent (duet-directive.el).

;;; Code:

(require 'subr-x)
(require 'duet-directive)
(require 'duet-connection)
(require 'duet-transcript)

(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function flymake-diagnostic-beg "flymake" (diag))
(declare-function flymake-diagnostic-text "flymake" (diag))

(defvar-local duet-compose--origin nil
  "The buffer that the prompt was begun in.")

(defvar-local duet-compose--files nil
  "The files of the project, once they are known.")

(defun duet-compose-complete ()
  "Complete a word that begins with @, a `completion-at-point' function."
  (let ((end (point))
        (beg (save-excursion
               (skip-chars-backward "^@ \t\n")
               (and (eq (char-before) ?@)
                    (progn (backward-char)
                           (not (looking-back "[[:alnum:]]" (1- (point)))))
                    (point)))))
    (when beg
      (list beg end
            (completion-table-dynamic
             (lambda (_)
               (append (duet-compose--contexts)
                       (mapcar (lambda (file) (concat "@" file))
                               duet-compose--files))))
            :exclusive 'no
            :annotation-function
            (lambda (candidate)
              (pcase candidate
                ("@region" " what is marked")
                ("@diagnostics" " what Flymake says")))
            :exit-function #'duet-compose--completed))))

(defun duet-compose-complete-command ()
  "Complete what begins with /, a `completion-at-point' function.
That is a slash command, or sets the agent."
  (duet-directive-complete duet-session))

(defun duet-compose--contexts ()
  "Return what may be inserted from the buffer that the prompt was begun in."
  (when (buffer-live-p duet-compose--origin)
    (with-current-buffer duet-compose--origin
      (delq nil (list (and (mark t) (use-region-p) "@region")
                      (and (bound-and-true-p flymake-mode) "@diagnostics"))))))

(defun duet-compose--completed (candidate status)
  "Replace CANDIDATE, which was completed with STATUS, by what it stands for."
  (when-let ((text (and (eq status 'finished)
                        (buffer-live-p duet-compose--origin)
                        (pcase candidate
                          ("@region" (with-current-buffer duet-compose--origin
                                       (duet-compose-region-text)))
                          ("@diagnostics" (with-current-buffer duet-compose--origin
                                            (duet-compose-diagnostics-text)))))))
    (delete-char (- (length candidate)))
    (insert text)))

(defun duet-compose--name ()
  "Return what to call the current buffer in a prompt."
  (if buffer-file-name
      (file-relative-name buffer-file-name
                          (duet-project-root default-directory))
    (buffer-name)))

(defun duet-compose-region-text ()
  "Return the region as a block of code that says where it is from."
  (let ((beg (region-beginning))
        (end (region-end)))
    (format "%s:%d-%d\n```\n%s\n```\n"
            (duet-compose--name) (line-number-at-pos beg)
            (line-number-at-pos (max beg (1- end)))
            (string-remove-suffix "\n" (buffer-substring-no-properties beg end)))))

(defun duet-compose-diagnostics-text ()
  "Return what Flymake says of the buffer, a line for each."
  (let ((name (duet-compose--name)))
    (concat (mapconcat (lambda (diagnostic)
                         (format "%s:%d: %s" name
                                 (line-number-at-pos (flymake-diagnostic-beg diagnostic))
                                 (flymake-diagnostic-text diagnostic)))
                       (flymake-diagnostics) "\n")
            "\n")))

(defun duet-compose--list-files ()
  "Ask Git for the files of the project; do not wait for it."
  (let ((buffer (current-buffer))
        (output '()))
    (if (and (locate-dominating-file default-directory ".git")
             (executable-find "git" t))
        (make-process
         :name "duet files" :noquery t :connection-type 'pipe :file-handler t
         :command ;; A file system monitor is a program that the tree names.
         '("git" "-c" "core.fsmonitor=false" "ls-files" "-co" "--exclude-standard" "-z")
         :filter (lambda (_ text) (push text output))
         :sentinel (lambda (process _)
                     (when (and (buffer-live-p buffer)
                                (memq (process-status process) '(exit signal)))
                       (with-current-buffer buffer
                         (setq duet-compose--files
                               (split-string (apply #'concat (reverse output))
                                             "\0" t))))))
      (setq duet-compose--files
            (ignore-errors (directory-files default-directory nil "\\`[^.]" nil 1000))))))

(provide 'duet-compose-complete)
;;; duet-compose-complete.el ends here
