;;; duet-rpc-process.el --- The program duet-rpc as a process of Emacs  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Which program it is, how it is started, here or on another machine, and what
;; is known of it when it has ended.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-remote)

(defgroup duet nil
  "Work with coding agents."
  :group 'tools
  :prefix "duet-")

(defcustom duet-rpc-command '("duet-rpc")
  "The program that serves Emacs, and its arguments.
A list of strings, or one string that is split as a shell does it."
  :type '(choice (repeat string) string)
  :risky t)


;;; The program

(defun duet-rpc-process-words (&optional command)
  "Return COMMAND as a list of strings, the program first.
It is `duet-rpc-command' if it is nil, on another machine as it is there if
that is connection-local.  What is neither such a list nor a string is a
`user-error'."
  (let* ((command (or command
                      (if (file-remote-p default-directory)
                          (with-connection-local-variables duet-rpc-command)
                        duet-rpc-command)))
         (words (if (stringp command) (split-string-shell-command (string-trim command))
                  command)))
    (unless (and (consp words) (cl-every #'stringp words)
                 (not (string-empty-p (car words))))
      (user-error "`duet-rpc-command' must be a string, or a list of strings, the program first"))
    (if (stringp command)
        (cons (if (string-prefix-p "~" (car words)) (expand-file-name (car words))
                (car words))
              (cdr words))
      words)))

(defun duet-rpc-process-command (command)
  "Return COMMAND as a list if it can be started; else tell the user why not."
  (setq command (duet-rpc-process-words command))
  (if-let ((program (duet-remote-program (car command))))
      (cons program (cdr command))
    (user-error (if-let ((host (file-remote-p default-directory)))
                    (format "Cannot find the program %%s on %s; install it there, or set `duet-rpc-command' for it, as the manual says (Other machines)"
                            host)
                  "Cannot find the program %s; install it or set `duet-rpc-command'")
                (car command))))


;;; Its start

(defun duet-rpc-process-unused-name (name)
  "Return NAME, or NAME with a number if a connection is called that already.
jsonrpc.el finds the buffers of a connection by its name, so one that has
ended has it too as long as they are there: with them the next server
would be killed."
  (let ((candidate name)
        (number 1))
    (while (or (get-process candidate)
               (get-buffer (format " *%s output*" candidate)))
      (setq candidate (format "%s<%d>" name (cl-incf number))))
    candidate))

(defun duet-rpc-process-start (name command directory)
  "Start COMMAND in DIRECTORY as a process called NAME."
  (let ((process (if (file-remote-p directory)
                     (duet-rpc-process--start-remote name command directory)
                   (duet-rpc-process--start-here name command directory))))
    (process-put process 'duet-rpc-program (car command))
    process))

(defvar duet-rpc-process--starts-within 30
  "How many seconds a server on another machine may take to start.")

(defun duet-rpc-process--start-remote (name command directory)
  "Start COMMAND in DIRECTORY, on another machine, as a process called NAME."
  (let* ((default-directory directory)
         ;; On a terminal the program says what it is for unless it is told to serve.
         (command (if (member "serve" command) command
                    (append command '("serve" "--stdio"))))
         (process (duet-remote-make-process :name name :command command :noquery t
                                            :connection-type 'pipe
                                            :coding 'utf-8-emacs-unix)))
    (duet-remote-await-ready process duet-rpc-process--starts-within)
    process))

(defun duet-rpc-process--start-here (name command directory)
  "Start COMMAND in DIRECTORY, on this machine, as a process called NAME."
  (let* ((default-directory directory)
         ;; jsonrpc.el finds the buffer by this very name, and renames it.
         (stderr (get-buffer-create (format "*%s stderr*" name)))
         (process (make-process :name name
                                :command command
                                :connection-type 'pipe
                                :coding 'utf-8-emacs-unix
                                :noquery t
                                :stderr stderr)))
    ;; The buffer is for what the server says, not for what Emacs says of the
    ;; pipe; the next server's log may go to the same buffer.
    (set-process-sentinel (get-buffer-process stderr) #'ignore)
    process))


;;; Its end

(defun duet-rpc-process-keep-words (process)
  "Put what PROCESS of another machine wrote to standard error where others do.
It came last, behind what the server has said."
  (let ((errors (process-get process 'jsonrpc-stderr)))
    (when (and (duet-remote-p process) (buffer-live-p errors)
               (buffer-live-p (process-buffer process)))
      (let ((said (with-current-buffer (process-buffer process) (buffer-string))))
        ;; Behind that stands what it wrote.
        (process-put process 'duet-rpc-ended (and (string-search "\0" said) t))
        (with-current-buffer errors
          (let ((inhibit-read-only t)) (insert (cdr (duet-remote-output said)))))))))

(defun duet-rpc-process-unreachable-p (process)
  "Return non-nil if PROCESS ended, and not because its program did.
That is so where it is on another machine that is not there any more."
  (and (duet-remote-p process)
       (not (process-get process 'duet-rpc-ended))))

(defun duet-rpc-process-obituary (process)
  "Tell, in one line, that PROCESS has ended, how and why."
  (let ((program (process-get process 'duet-rpc-program))
        (status (process-exit-status process)))
    (pcase (process-status process)
      ('signal (format "%s has ended (signal %d)" program status))
      ('exit (let ((reason (unless (eql status 0)
                             (duet-rpc-process--last-words process))))
               (format "%s has ended (exit status %d)%s" program status
                       (if reason (concat ": " reason) ""))))
      (_ (format "%s has closed the connection" program)))))

(defun duet-rpc-process--last-words (process)
  "Return the last line that PROCESS wrote to standard error.
Return nil if there is none."
  (let ((buffer (process-get process 'jsonrpc-stderr)))
    (when (buffer-live-p buffer)
      ;; It comes through a pipe of its own, so some may not have been read.
      (when-let ((pipe (get-buffer-process buffer)))
        (cl-loop repeat 10 while (accept-process-output pipe 0.05)))
      ;; What ran meanwhile may have killed the buffer.
      (when (buffer-live-p buffer)
        (with-current-buffer buffer
          (save-excursion
            (goto-char (point-max))
            (skip-chars-backward " \t\r\n")
            (unless (bobp)
              (buffer-substring-no-properties (line-beginning-position) (point)))))))))

(provide 'duet-rpc-process)
;;; duet-rpc-process.el ends here
