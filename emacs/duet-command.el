;;; duet-command.el --- Commands of the program duet-rpc  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Some requests go to the program rather than to a running server: the list of
;; agents, the contents of a project's configuration, a session as Markdown.
;; Emacs runs the program in the background, and it calls back.

;;; Code:

(require 'seq)
(require 'subr-x)
(require 'duet-log)
(require 'duet-remote)
(require 'duet-rpc)

(defun duet-command (root &rest arguments)
  "Return the command that runs duet-rpc with ARGUMENTS for the project ROOT."
  (let* ((root (file-name-as-directory (expand-file-name root)))
         (default-directory (duet-command-directory root))
         (words (seq-difference (duet-rpc-process-words) '("--stdio"))))
    (append (if (file-remote-p default-directory)
                (cons (or (duet-remote-program (car words)) (car words)) (cdr words))
              words)
            (if (duet-host-of root)
                (duet-host-arguments root)
              (list "--root" (duet-remote-local (directory-file-name root))))
            arguments)))

(defun duet-command-directory (root)
  "Return the directory in which duet-rpc runs for the project ROOT."
  (if (duet-host-of root) (duet-host-local-directory)
    (file-name-as-directory (expand-file-name root))))

(defun duet-command-json (root arguments success-fn &optional error-fn)
  "Run duet-rpc with ARGUMENTS for the project ROOT; do not wait for it.
Call SUCCESS-FN with its JSON output, parsed as a server's messages are.
If it fails, call ERROR-FN with the reason; if it is nil, show the reason.
Return the process."
  (duet-command-run root (append arguments '("--json")) success-fn error-fn
                    (lambda ()
                      (goto-char (point-min))
                      (json-parse-buffer :object-type 'plist :null-object nil
                                         :false-object :json-false))))

(defun duet-command-run (root arguments success-fn &optional error-fn read)
  "Run duet-rpc with ARGUMENTS for the project ROOT; do not wait for it.
Call SUCCESS-FN with its output, a string, or with the value of READ, a
function called in a buffer with the output.  If it fails, call ERROR-FN
with the reason; if it is nil, show the reason.  Return the process."
  (let ((fail (or error-fn (lambda (reason)
                             (duet-log "%s: %s" (string-join arguments " ") reason)
                             (message "Duet: %s" reason))))
        (default-directory (duet-command-directory root)))
    (funcall (if (file-remote-p default-directory)
                 #'duet-command--start-remote
               #'duet-command--start-here)
             (concat "duet " (car arguments))
             (lambda () (apply #'duet-command root arguments))
             (lambda (process errors)
               (duet-command--ended process errors (or read #'buffer-string)
                                    success-fn fail))
             fail)))

(defun duet-command--start-here (name command done fail)
  "Start a process called NAME with the command that the function COMMAND returns.
Once it has ended, call DONE with the process and the buffer of its standard
error.  If it does not start, call FAIL with the reason."
  (let* ((output (generate-new-buffer " *duet command*" t))
         (errors (generate-new-buffer " *duet command errors*" t))
         (ended nil)
         (process-environment (cons "DUET_HOST" process-environment))
         process finish end)
    ;; Standard error comes through another pipe, which may end after the program.
    ;; A child process may hold it open: wait for it only a moment.
    (setq finish (lambda ()
                   (unless ended
                     (setq ended t)
                     (funcall done process errors)))
          end (lambda (&rest _)
                (when (and process (not ended) (not (process-live-p process)))
                  (if (process-live-p (get-buffer-process errors))
                      (run-at-time 0.5 nil finish)
                    (funcall finish)))))
    (condition-case err
        (let ((started (make-process
                        :name name :noquery t :connection-type 'pipe
                        :coding 'utf-8-unix :buffer output :stderr errors
                        :command (funcall command)
                        :sentinel end)))
          (when-let ((pipe (get-buffer-process errors)))
            (set-process-query-on-exit-flag pipe nil)
            (set-process-sentinel pipe end))
          (setq process started)
          ;; The process may have ended already.
          (ignore-errors (process-send-eof process))
          process)
      (error
       (mapc #'kill-buffer (list output errors))
       (funcall fail (error-message-string err))
       nil))))

(defun duet-command--start-remote (name command done fail)
  "Start a process as `duet-command--start-here' does, on a remote machine.
The machine is that of `default-directory'.  NAME, COMMAND, DONE and FAIL
are as there."
  (let ((output (generate-new-buffer " *duet command*" t)))
    (condition-case err
        (let ((process
               (duet-remote-make-process
                :name name :noquery t :connection-type 'pipe :buffer output
                ;; The program must not read the input.
                :command `("sh" "-c" "exec \"$@\" </dev/null" "sh" ,@(funcall command)))))
          (set-process-sentinel
           process
           (lambda (process _)
             (unless (process-live-p process)
               (funcall done process (duet-command--split output)))))
          process)
      (error
       (kill-buffer output)
       (funcall fail (error-message-string err))
       nil))))

(defun duet-command--split (output)
  "Keep only the standard output of a remote program in the buffer OUTPUT.
Return a buffer with its standard error.  OUTPUT is dead if the connection
to the machine was closed."
  (with-current-buffer (generate-new-buffer " *duet command errors*" t)
    (when (buffer-live-p output)
      (let ((said (duet-remote-output (with-current-buffer output (buffer-string)))))
        (insert (cdr said))
        (with-current-buffer output
          (erase-buffer)
          (insert (car said)))))
    (current-buffer)))

(defun duet-command--ended (process errors read success-fn fail)
  "Call SUCCESS-FN with the output of PROCESS, or FAIL with the reason.
READ returns the output, or an object made of it.  ERRORS is the buffer of
the standard error."
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
  "Return the reason for which PROCESS failed, from ERRORS if that has text."
  (let ((text (if (buffer-live-p errors)
                  (with-current-buffer errors (string-trim (buffer-string)))
                "")))
    (if (string-empty-p text)
        (format "%s failed (exit status %s)" (process-name process)
                (process-exit-status process))
      (string-remove-prefix "duet-rpc: " text))))

(provide 'duet-command)
;;; duet-command.el ends here
