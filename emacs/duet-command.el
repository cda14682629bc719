;;; duet-command.el --- What the program duet-rpc says on its command line  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Some things are asked of the program rather than of a server that runs: which
;; agents there are, what a project's configuration asks for, a conversation as
;; Markdown.  It is run beside Emacs, and calls back.

;;; Code:

(require 'seq)
(require 'subr-x)
(require 'duet-log)
(require 'duet-rpc)

(defun duet-command (root &rest arguments)
  "Return the command that runs duet-rpc with ARGUMENTS for the project ROOT."
  (append (seq-difference (duet-rpc-words) '("serve" "--stdio"))
          (list "--root" (directory-file-name (expand-file-name root)))
          arguments))

(defun duet-command-json (root arguments success-fn &optional error-fn)
  "Run duet-rpc with ARGUMENTS for the project ROOT; do not wait for it.
Call SUCCESS-FN with the JSON that it prints, read as what a server says
is.  If it fails call ERROR-FN with the reason; without one it is shown.
Return the process."
  (duet-command-run root (append arguments '("--json")) success-fn error-fn
                    (lambda ()
                      (goto-char (point-min))
                      (json-parse-buffer :object-type 'plist :null-object nil
                                         :false-object :json-false))))

(defun duet-command-run (root arguments success-fn &optional error-fn read)
  "Run duet-rpc with ARGUMENTS for the project ROOT; do not wait for it.
Call SUCCESS-FN with what it prints, a string, or with what READ makes of it,
a function that is called in a buffer that has it.  If it fails call ERROR-FN
with the reason; without one it is shown.  Return the process."
  (let* ((name (car arguments))
         (fail (or error-fn (lambda (reason)
                             (duet-log "%s: %s" (string-join arguments " ") reason)
                             (message "Duet: %s" reason))))
         (output (generate-new-buffer " *duet command*" t))
         (errors (generate-new-buffer " *duet command errors*" t))
         (default-directory root)
         (ended nil)
         process finish end)
    ;; The errors come through another pipe, which may end after the program;
    ;; if something that it started holds it open, that is not waited for.
    (setq finish (lambda ()
                   (unless ended
                     (setq ended t)
                     (duet-command--ended process errors (or read #'buffer-string)
                                          success-fn fail)))
          end (lambda (&rest _)
                (when (and process (not ended) (not (process-live-p process)))
                  (if (process-live-p (get-buffer-process errors))
                      (run-at-time 0.5 nil finish)
                    (funcall finish)))))
    (condition-case err
        (let ((started (make-process
                        :name (concat "duet " name) :noquery t :connection-type 'pipe
                        :coding 'utf-8-unix :buffer output :stderr errors
                        :command (apply #'duet-command root arguments)
                        :sentinel end)))
          (when-let ((pipe (get-buffer-process errors)))
            (set-process-query-on-exit-flag pipe nil)
            (set-process-sentinel pipe end))
          (setq process started)
          ;; It may have ended already.
          (ignore-errors (process-send-eof process))
          process)
      (error
       (mapc #'kill-buffer (list output errors))
       (funcall fail (error-message-string err))
       nil))))

(defun duet-command--ended (process errors read success-fn fail)
  "Call SUCCESS-FN with what PROCESS has printed, or FAIL with why it did not.
READ makes something of it.  ERRORS is the buffer of what it wrote to standard
error."
  (unwind-protect
      (duet-log-guard (process-name process)
        (let (result reason)
          (if (eql (process-exit-status process) 0)
              (condition-case err
                  (with-current-buffer (process-buffer process)
                    (setq result (funcall read)))
                (error (setq reason (error-message-string err))))
            (setq reason (duet-command--reason process errors)))
          (if reason (funcall fail reason) (funcall success-fn result))))
    (dolist (buffer (list (process-buffer process) errors))
      (when (buffer-live-p buffer) (kill-buffer buffer)))))

(defun duet-command--reason (process errors)
  "Return why PROCESS failed, in words, from ERRORS if they tell."
  (let ((text (if (buffer-live-p errors)
                  (with-current-buffer errors (string-trim (buffer-string)))
                "")))
    (if (string-empty-p text)
        (format "%s failed (exit status %s)" (process-name process)
                (process-exit-status process))
      (string-remove-prefix "duet-rpc: " text))))

(provide 'duet-command)
;;; duet-command.el ends here
