;;; duet-rpc.el --- Connection to the duet-rpc server  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;; Author: The Duet authors
;; URL: https://github.com/duet-rpc/duet-rpc
;; Keywords: comm, processes, tools

;;; Commentary:

;; duet-rpc is the one process that an editor starts to work with coding
;; agents.  It speaks JSON-RPC 2.0 on its standard input and output, and
;; connects to the project's daemon, which runs the agents.  This library
;; starts it and talks with it:
;;
;;   (let ((connection (duet-rpc-connect)))
;;     (duet-rpc-request connection 'ping nil)    ; => (:pong t :timestamp ...)
;;     (duet-rpc-shutdown connection))
;;
;; A connection is one of jsonrpc.el, with requests of our own: see
;; duet-rpc-request.el.  What is known of the program and its process is in
;; duet-rpc-process.el.
;;
;; Nothing has to be done when Emacs exits: the server sees the end of its
;; input and ends by itself.  `duet-rpc-shutdown' does not belong in
;; `kill-emacs-hook', since waiting for a process is not safe there.

;;; Code:

(require 'cl-lib)
(require 'eieio)
(require 'jsonrpc)
(require 'duet-rpc-process)
(require 'duet-rpc-request)

(defcustom duet-rpc-events-buffer-size 200000
  "How many characters of what was said a connection keeps.
They stand in a buffer named after the connection; 0 means none."
  :type 'natnum
  :group 'duet)

(cl-defun duet-rpc-connect (&key command directory (name "duet-rpc")
                                 notification-dispatcher request-dispatcher
                                 on-shutdown)
  "Start a server and return a connection to it.

COMMAND is the program and its arguments, `duet-rpc-command' if it is
nil, and written as that is.  It runs in DIRECTORY, or in the current one;
where that is on another machine, as TRAMP names it, it runs there.
NAME is what the process and its buffers are called; a number is added if
that is taken.

NOTIFICATION-DISPATCHER and REQUEST-DISPATCHER are called with the
connection, a method (a symbol) and params whenever the server sends a
notification or a request.  A request's result is what the function
returns; without a function it is refused.  ON-SHUTDOWN is called with
the connection when the server has ended, for whatever reason."
  (let* ((directory (file-name-as-directory
                     (expand-file-name (or directory default-directory))))
         (command (let ((default-directory directory)) (duet-rpc-process-command command)))
         (name (duet-rpc-process-unused-name name)))
    (unless (file-directory-p directory)
      (user-error "Cannot start %s: there is no directory %s"
                  (car command) directory))
    (let ((connection
           (apply #'make-instance 'duet-rpc-connection
                  :name name
                  :command command
                  :process (lambda () (duet-rpc-process-start name command directory))
                  :notification-dispatcher (or notification-dispatcher #'ignore)
                  :request-dispatcher (or request-dispatcher #'duet-rpc-request-refuse)
                  :on-shutdown (lambda (connection)
                                 (setf (duet-rpc--ended connection) t)
                                 (when on-shutdown
                                   (let ((inhibit-message nil))
                                     (funcall on-shutdown connection))))
                  (duet-rpc--events-buffer-arguments))))
      (add-function :around (process-filter (jsonrpc--process connection))
                    #'duet-rpc-request-read)
      (add-function :around (process-sentinel (jsonrpc--process connection))
                    #'duet-rpc--changed)
      connection)))

(defun duet-rpc--changed (sentinel process change)
  "Have SENTINEL handle CHANGE of PROCESS, without what it says of it itself.
jsonrpc.el shows a line for each server that ends, in place of what the
user was just told.  The line is in *Messages* all the same."
  (let ((inhibit-message t))
    (unless (process-live-p process)
      (duet-rpc-process-keep-words process))
    (funcall sentinel process change)))

(defun duet-rpc--events-buffer-arguments ()
  "Return the arguments that cap the buffer of events.
Their name depends on the version of jsonrpc.el, which may be newer than
the one that came with Emacs."
  (if (cl-find '-events-buffer-config (eieio-class-slots 'jsonrpc-connection)
               :key #'eieio-slot-descriptor-name)
      (list :events-buffer-config
            (list :size duet-rpc-events-buffer-size :format 'full))
    (list :events-buffer-scrollback-size duet-rpc-events-buffer-size)))


;;; The end

(defun duet-rpc-shutdown (connection &optional cleanup)
  "Ask the server behind CONNECTION to end, and wait until it has.
Kill it if it does not end within 2 seconds.  The project's daemon, and the
agents there, go on.  Kill the buffers of the connection too if CLEANUP is
non-nil.

Do not call this from `kill-emacs-hook'; without it the server ends too."
  (let ((process (jsonrpc--process connection)))
    (when (jsonrpc-running-p connection)
      (ignore-error duet-rpc-died
        (duet-rpc-request-async
         connection 'shutdown '(:reason "the editor is done with it") :error-fn #'ignore))
      ;; What matters is that the end has been noticed, not that it has come:
      ;; the last replies may still have to be read.
      (let ((deadline (+ (float-time) 2)))
        (while (not (or (duet-rpc--ended connection)
                        (> (float-time) deadline)))
          (accept-process-output nil 0.02))))
    (delete-process process))
  (when cleanup
    (mapc #'kill-buffer
          (delq nil (list (process-buffer (jsonrpc--process connection))
                          (jsonrpc-stderr-buffer connection)
                          (jsonrpc-events-buffer connection))))))

(defun duet-rpc-unreachable-p (connection)
  "Return non-nil if CONNECTION ended, and not because its server did.
That is so where the server is on another machine that is not there any more."
  (duet-rpc-process-unreachable-p (jsonrpc--process connection)))

(provide 'duet-rpc)
;;; duet-rpc.el ends here
