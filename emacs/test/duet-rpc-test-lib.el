;;; duet-rpc-test-lib.el --- The real server, for tests of duet-rpc.el  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The environment variable DUET_RPC_BIN names the server.  Tests wait for conditions
;; with a deadline, and never for a fixed time.
;; 
;; The tests named duet-rpc-test-raw-* use only jsonrpc.el, like a client without
;; this package.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'jsonrpc)
(require 'duet-daemon-test-lib)
(require 'duet-rpc)

(defconst duet-rpc-test-deadline 60
  "Maximum time of a wait in seconds; only a broken server takes that long.")

(defconst duet-rpc-test-soon 5
  "Maximum time of an end that is promised within 2 seconds, in seconds.
The rest is for a busy machine.")

(defconst duet-rpc-test-forever '(:ms 3600000)
  "Params of a `test.sleep' that lasts longer than any test.")

(defun duet-rpc-test-server (&rest flags)
  "Return the command that starts the server with FLAGS."
  (let ((program (getenv "DUET_RPC_BIN")))
    (unless (and program (file-executable-p program))
      (ert-fail (format "DUET_RPC_BIN must name the duet-rpc binary, it is %S" program)))
    `(,(expand-file-name program) "--test-methods" ,@flags)))

(defmacro duet-rpc-test-with (binding &rest body)
  "Run BODY with a connection; BINDING is (VARIABLE FORM).
VARIABLE is bound to the value of FORM.  The project is a new one, or that of
an outer BODY.  Afterwards the server, the buffers and the project are gone."
  (declare (indent 1) (debug ((symbolp form) body)))
  `(duet-rpc-test-call-in-project
    (lambda ()
      (let* ((inhibit-message t)
             (jsonrpc-default-request-timeout duet-rpc-test-deadline)
             (duet-rpc-request-timeout duet-rpc-test-deadline)
             ,binding)
        (ignore jsonrpc-default-request-timeout)
        (unwind-protect (progn ,@body)
          (duet-rpc-test-bury ,(car binding)))))))

(defvar duet-rpc-test--in-project nil
  "Non-nil in a function that `duet-rpc-test-call-in-project' calls.")

(defun duet-rpc-test-call-in-project (function)
  "Call FUNCTION in a new project, or in the project of an outer call."
  (if duet-rpc-test--in-project
      (funcall function)
    (let* ((duet-rpc-test--in-project t)
           (home (file-name-as-directory (make-temp-file "duet-test" t)))
           (default-directory (concat home "project/"))
           (process-environment (append (duet-daemon-test-environment home) process-environment)))
      (unwind-protect
          (progn
            (make-directory default-directory)
            (write-region "" nil ".duet.toml" nil 'silent)
            (funcall function))
        (duet-daemon-test-end-all home)
        (delete-directory home t)))))

(defun duet-rpc-test-bury (connection)
  "Kill the process and the buffers of CONNECTION."
  (delete-process (jsonrpc--process connection))
  (dolist (buffer (list (process-buffer (jsonrpc--process connection))
                        (jsonrpc-stderr-buffer connection)
                        (jsonrpc-events-buffer connection)))
    (when (buffer-live-p buffer) (kill-buffer buffer))))

(defun duet-rpc-test-connect (&rest flags)
  "Connect to a new server with FLAGS."
  (duet-rpc-connect :command (apply #'duet-rpc-test-server flags)))

(defun duet-rpc-test-connect-and-tell (on-shutdown)
  "Connect to a new server, whose end calls ON-SHUTDOWN."
  (duet-rpc-connect :command (duet-rpc-test-server) :on-shutdown on-shutdown))

(defun duet-rpc-test-connect-raw (&rest flags)
  "Connect to a new server with FLAGS, with jsonrpc.el alone."
  (let ((command (apply #'duet-rpc-test-server flags)))
    (apply #'make-instance 'jsonrpc-process-connection
           :name "raw"
           :process (lambda ()
                      (make-process :name "raw" :command command
                                    :connection-type 'pipe
                                    :coding 'utf-8-emacs-unix :noquery t
                                    :stderr (get-buffer-create "*raw stderr*")))
           (duet-rpc--events-buffer-arguments))))

(defmacro duet-rpc-test-wait-for (condition &optional seconds)
  "Wait until CONDITION is non-nil and return its value.
Fail after SECONDS, or after `duet-rpc-test-deadline' if nil."
  `(duet-rpc-test-wait-for-1 (lambda () ,condition) ',condition
                             (or ,seconds duet-rpc-test-deadline)))

(defun duet-rpc-test-wait-for-1 (condition form seconds)
  "Wait until CONDITION is non-nil, for SECONDS at most; FORM is its source."
  (let ((deadline (+ (float-time) seconds))
        value)
    (while (not (setq value (funcall condition)))
      (when (> (float-time) deadline)
        (ert-fail (format "Waited %s s for %S" seconds form)))
      (accept-process-output nil 0.02))
    value))

(defun duet-rpc-test-error (connection method params)
  "Return the error of a request of METHOD with PARAMS to CONNECTION."
  (should-error (duet-rpc-request connection method params) :type 'duet-rpc-error))

(defun duet-rpc-test-object (value)
  "Return the members of VALUE, a JSON object, sorted by name."
  (sort (cl-loop for (key member) on value by #'cddr collect (list key member))
        (lambda (a b) (string< (symbol-name (car a)) (symbol-name (car b))))))

(defun duet-rpc-test-gone-p (pid)
  "Return non-nil if there is no process PID.
A zombie counts as gone."
  (let ((attributes (process-attributes pid)))
    (or (null attributes)
        (equal (alist-get 'state attributes) "Z"))))

(defun duet-rpc-test-long-text (length)
  "Return a text of LENGTH characters; JSON escapes some of them."
  (let ((line "No \"play\" makes\tJack\\Jill ein tüchtiger Bursche; 日本語 🎉\n"))
    (substring (apply #'concat (make-list (1+ (/ length (length line))) line))
               0 length)))

(provide 'duet-rpc-test-lib)
;;; duet-rpc-test-lib.el ends here
