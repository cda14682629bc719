;;; duet-rpc.el --- Connections to duet-rpc  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

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
;; A connection is one of jsonrpc.el, with requests of our own (see below).
;;
;; Nothing has to be done when Emacs exits: the server sees the end of its
;; input and ends by itself.  `duet-rpc-shutdown' does not belong in
;; `kill-emacs-hook', since waiting for a process is not safe there.

;;; Code:

(require 'cl-lib)
(require 'eieio)
(require 'jsonrpc)
(require 'map)
(require 'subr-x)
(require 'duet-remote)

;;; The program and its process

;; The command of the program, its start here or on another machine, and the reason
;; of its end.

(defgroup duet nil
  "Work with coding agents."
  :group 'tools
  :prefix "duet-")

(defcustom duet-rpc-command '("duet-rpc")
  "The program that serves Emacs, and its arguments.
A list of strings, or one string that is split as a shell does it."
  :type '(choice (repeat string) string)
  :risky t)


;;;; The program

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
  "Return COMMAND as a list if it can be started; else signal a `user-error'."
  (setq command (duet-rpc-process-words command))
  (if-let ((program (duet-remote-program (car command))))
      (cons program (cdr command))
    (user-error (if-let ((host (file-remote-p default-directory)))
                    (format "Cannot find the program %%s on %s; install it there, or set `duet-rpc-command' for it, as the manual says (Other machines)"
                            host)
                  "Cannot find the program %s; install it or set `duet-rpc-command'")
                (car command))))


;;;; Its start

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
         ;; On a terminal the program prints its help unless an argument says serve.
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


;;;; Its end

(defun duet-rpc-process-keep-words (process)
  "Put what PROCESS of another machine wrote to standard error where others do.
It came last, behind what the server has said."
  (let ((errors (process-get process 'jsonrpc-stderr)))
    (when (and (duet-remote-p process) (buffer-live-p errors)
               (buffer-live-p (process-buffer process)))
      (let ((said (with-current-buffer (process-buffer process) (buffer-string))))
        ;; Its output is behind that.
        (process-put process 'duet-rpc-ended (and (string-search "\0" said) t))
        (with-current-buffer errors
          (let ((inhibit-read-only t)) (insert (cdr (duet-remote-output said)))))))))

(defun duet-rpc-process-unreachable-p (process)
  "Return non-nil if PROCESS ended, and not because its program did.
That is so where it is on another machine that is not there any more."
  (and (duet-remote-p process)
       (not (process-get process 'duet-rpc-ended))))

(defun duet-rpc-process-obituary (process)
  "Return, in one line, that PROCESS has ended, how and why."
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
      ;; Code that ran meanwhile may have killed the buffer.
      (when (buffer-live-p buffer)
        (with-current-buffer buffer
          (save-excursion
            (goto-char (point-max))
            (skip-chars-backward " \t\r\n")
            (unless (bobp)
              (buffer-substring-no-properties (line-beginning-position) (point)))))))))

;;; Requests

;; It is built on jsonrpc.el, and a connection can be used with its functions
;; too.  It differs from jsonrpc.el in these points:
;;
;; - `jsonrpc-request' of Emacs 28 leaves its waiting by a throw out of the
;;   process filter, and what arrived behind the reply lies unread until the
;;   server says something else.  `duet-rpc-request' waits in another way.
;; - A request that is given up, be it by \\`C-g' or because its time is over,
;;   goes on in the server until it is cancelled.  Here it is cancelled.
;; - The error for a server that has died has the reason, from its standard
;;   error.
;;
;; JSON is read and written as jsonrpc.el does it: objects are property lists,
;; arrays are vectors, null is nil, false is `:json-false'.

(defcustom duet-rpc-request-timeout 10
  "How many seconds `duet-rpc-request' waits for an answer."
  :type 'number
  :group 'duet)

(defclass duet-rpc-connection (jsonrpc-process-connection)
  ((command
    :initarg :command
    :reader duet-rpc-connection-command
    :documentation "The program that was started, and its arguments.")
   (ended
    :initform nil
    :accessor duet-rpc--ended
    :documentation "Whether the server has ended and all it said is read."))
  :documentation "A connection to a duet-rpc process.
Make one with `duet-rpc-connect'.")

(defun duet-rpc-obituary (connection)
  "Return, in one line, that the server of CONNECTION has ended, how and why."
  (duet-rpc-process-obituary (jsonrpc--process connection)))


;;;; Errors

(define-error 'duet-rpc-error "Request failed" 'jsonrpc-error)
(define-error 'duet-rpc-timeout "No answer in time" 'duet-rpc-error)
(define-error 'duet-rpc-died "No server" 'duet-rpc-error)

(defun duet-rpc-error-code (err)
  "Return the code in ERR, an error that `duet-rpc-request' signalled."
  (alist-get 'jsonrpc-error-code (cddr err)))

(defun duet-rpc-error-data (err)
  "Return the data in ERR, an error that `duet-rpc-request' signalled."
  (alist-get 'jsonrpc-error-data (cddr err)))

(defun duet-rpc-request--signal (symbol message &optional code data)
  "Signal an error SYMBOL with MESSAGE, CODE and DATA.
It is laid out as jsonrpc.el lays out its own."
  (signal symbol (list message
                       (cons 'jsonrpc-error-code code)
                       (cons 'jsonrpc-error-message message)
                       (cons 'jsonrpc-error-data data))))


;;;; Sending

(defvar duet-rpc-request--sent-id nil
  "The id of the request that is being sent; t until it is known.")

(defconst duet-rpc-request--max-size (- (* 10 1024 1024) 1000)
  "The longest message that the server reads, in bytes, with room for its header.
The server answers a longer one without its id.")

(defun duet-rpc-request--size (value)
  "Return how many bytes the strings of VALUE have at least as JSON.
VALUE is what jsonrpc.el encodes."
  (cond ((stringp value)
         (if (< (length value) 4096)
             (length value)
           (string-bytes (condition-case nil
                             (json-serialize (vector (substring-no-properties value)))
                           (error value)))))
        ((consp value)
         (let ((size 0))
           (while (consp value)
             (setq size (+ size (duet-rpc-request--size (pop value)))))
           size))
        ((vectorp value)
         (cl-loop for element across value
                  sum (duet-rpc-request--size element)))
        ((hash-table-p value)
         (cl-loop for element being the hash-values of value
                  sum (duet-rpc-request--size element)))
        (t 0)))

(cl-defmethod jsonrpc-connection-send :around ((connection duet-rpc-connection)
                                               &rest arguments)
  "Send ARGUMENTS to CONNECTION, or say why the server is not there."
  (unless (jsonrpc-running-p connection)
    (duet-rpc-request--signal 'duet-rpc-died (duet-rpc-obituary connection) -1))
  (let ((size (duet-rpc-request--size arguments)))
    (when (> size duet-rpc-request--max-size)
      (duet-rpc-request--signal
       'duet-rpc-error
       (format "Cannot send %s: it has %.1f MiB, and the limit is 10 MiB; shorten the text or attach less"
               (plist-get arguments :method) (/ size 1048576.0))
       -32600)))
  ;; jsonrpc.el does not return the id of a request to its callers, and it takes
  ;; one to cancel it.
  (when (eq duet-rpc-request--sent-id t)
    (setq duet-rpc-request--sent-id (plist-get arguments :id)))
  (condition-case err
      (cl-call-next-method)
    (error
     (when (jsonrpc-running-p connection)
       (signal (car err) (cdr err)))
     (duet-rpc-request--signal 'duet-rpc-died (duet-rpc-obituary connection) -1))))

(defun duet-rpc-request--method (method)
  "Return METHOD, a symbol or a string, as jsonrpc.el wants it."
  (if (stringp method) (intern method) method))

(defun duet-rpc-request--params (params)
  "Return PARAMS as they are to be sent: no params are an empty object."
  (or params (make-hash-table)))

(cl-defun duet-rpc-request-async (connection method params
                                             &key success-fn error-fn
                                             timeout timeout-fn)
  "Request METHOD with PARAMS of CONNECTION; return the id of the request.

METHOD is a symbol or a string.  PARAMS nil means none.  Then one of
these is called, once:

SUCCESS-FN with the result;
ERROR-FN with a property list of `:code', `:message' and `:data', also if
the server ends before it has answered (the code is -1 then); without an
ERROR-FN the error is shown as a message;
TIMEOUT-FN without arguments after TIMEOUT seconds.  The request is
cancelled then.  Without a TIMEOUT there is all the time in the world.

See also `duet-rpc-cancel'."
  (let* ((duet-rpc-request--sent-id t)
         (success-fn (or success-fn #'ignore))
         (error-fn (or error-fn
                       (lambda (err)
                         (message "duet-rpc: %s: %s" method (plist-get err :message)))))
         (timeout-fn (or timeout-fn #'ignore))
         (settled nil)
         (settle (lambda (function &rest arguments)
                   (unless settled
                     (setq settled t)
                     (apply function arguments))))
         id)
    (jsonrpc-async-request
     connection (duet-rpc-request--method method) (duet-rpc-request--params params)
     :success-fn (apply-partially settle success-fn)
     :error-fn
     (lambda (err)
       (if (or (jsonrpc-running-p connection)
               (not (eql (plist-get err :code) -1)))
           (funcall settle error-fn err)
         ;; Newer versions of jsonrpc.el handle replies in timers, so the
         ;; reply may have been read and yet not be handled when the end of
         ;; the server is reported.  A timer of our own comes after it.
         (run-at-time
          0 nil
          (lambda ()
            (funcall settle error-fn
                     (list :code -1 :message (duet-rpc-obituary connection)))))))
     :timeout timeout
     :timeout-fn (lambda ()
                   (duet-rpc-cancel connection id)
                   (funcall settle timeout-fn)))
    (setq id duet-rpc-request--sent-id)))

(cl-defun duet-rpc-request (connection method params &key timeout)
  "Request METHOD with PARAMS of CONNECTION; wait for the result and return it.

METHOD is a symbol or a string.  PARAMS nil means none.

An error that the server answers is signalled as `duet-rpc-error', see
`duet-rpc-error-code' and `duet-rpc-error-data'.  A server that has ended,
or ends now, is a `duet-rpc-died'.  No answer within TIMEOUT seconds
\(`duet-rpc-request-timeout' if it is nil) is a `duet-rpc-timeout'.  All
of them are also a `jsonrpc-error'.

A request that is given up, for lack of time or by \\`C-g', is cancelled."
  (let* ((timeout (or timeout duet-rpc-request-timeout))
         (deadline (+ (float-time) timeout))
         (outcome nil)
         (tag (make-symbol "duet-rpc-request"))
         (settle (lambda (kind value)
                   (setq outcome (list kind value))
                   (duet-rpc-request--wake tag)))
         (id (duet-rpc-request-async
              connection method params
              :success-fn (apply-partially settle :result)
              :error-fn (apply-partially settle :error))))
    (unwind-protect
        (duet-rpc-request--wait tag (lambda () outcome) deadline)
      (unless outcome
        (duet-rpc-cancel connection id)))
    (pcase outcome
      (`(:result ,result) result)
      (`(:error ,(map :code :message :data))
       (duet-rpc-request--signal (if (eql code -1) 'duet-rpc-died 'duet-rpc-error)
                         message code data))
      (_ (duet-rpc-request--signal 'duet-rpc-timeout
                           (format "%s did not answer %s within %s s"
                                   (car (duet-rpc-connection-command connection))
                                   method timeout))))))

(defun duet-rpc-cancel (connection id)
  "Cancel the request ID of CONNECTION.
A long-running request then answers with error -32800, a finished one not
at all."
  (when (and id (jsonrpc-running-p connection))
    ;; The server may end just now; then there is nothing left to cancel.
    (ignore-error duet-rpc-died
      (jsonrpc-notify connection '$/cancelRequest (list :id id)))))

(defun duet-rpc-notify (connection method params)
  "Notify CONNECTION of METHOD with PARAMS; nothing is answered.
METHOD is a symbol or a string.  PARAMS nil means none."
  (jsonrpc-notify connection (duet-rpc-request--method method) (duet-rpc-request--params params)))

(defun duet-rpc-request-refuse (_connection method _params)
  "Refuse a request for METHOD that the server sent."
  (jsonrpc-error :code -32601 :message (format "Method not found: %s" method)))


;;;; Waiting

(defvar duet-rpc-request--reading nil
  "Non-nil inside a process filter, out of which nothing must be thrown.
What the filter has read and not yet handled would be left lying.")

(defvar duet-rpc-request--waiting nil
  "The tag of the innermost request that is being waited for.")

(defun duet-rpc-request--wait (tag condition deadline)
  "Wait until CONDITION is met or DEADLINE has come.
CONDITION is a function without arguments.  `duet-rpc-request--wake' with TAG
makes this look at once.  It looks from time to time too, since it is not
woken while another wait goes on inside this one."
  (let ((duet-rpc-request--waiting tag)
        left)
    (while (and (not (funcall condition))
                (> (setq left (- deadline (float-time))) 0))
      (catch tag
        (accept-process-output nil (min left 0.1))))))

(defun duet-rpc-request--wake (tag)
  "Make the `duet-rpc-request--wait' with TAG look whether its wait is over.
Left alone, Emacs would wait some 30 ms for more output."
  (cl-flet ((wake () (when (eq duet-rpc-request--waiting tag)
                       (throw tag nil))))
    (if duet-rpc-request--reading
        (run-at-time 0 nil #'wake)
      (wake))))


;;;; Reading

(defconst duet-rpc-request--no-nul
  (not (ignore-errors (json-parse-string "\"\\u0000\"")))
  "Whether Emacs takes JSON with a NUL in it for none, as Emacs 28 does.
A reply would never be answered then, and an event be lost.")

(defun duet-rpc-request-read (filter process output)
  "Call FILTER with PROCESS and OUTPUT, and let others know."
  (let ((duet-rpc-request--reading t))
    (funcall filter process
             (if duet-rpc-request--no-nul (duet-rpc-request--without-nul process output) output))))

(defun duet-rpc-request--without-nul (process output)
  "Return OUTPUT of PROCESS with each NUL replaced by U+FFFD, which is as long.
What may be the beginning of one is kept back for the next output."
  (let ((text (concat (process-get process 'duet-rpc-request--kept) output))
        (kept nil))
    ;; A whole run of backslashes, since their number decides what they mean.
    (when (string-match-p "\\\\u?0*\\'" text (max 0 (- (length text) 5)))
      (setq kept (string-match "\\\\+\\(?:u0\\{0,3\\}\\)?\\'" text)))
    (process-put process 'duet-rpc-request--kept (and kept (substring text kept)))
    (when kept (setq text (substring text 0 kept)))
    (if (not (string-search "\\u0000" text))
        text
      (replace-regexp-in-string
       "\\\\+u0000"
       (lambda (match)
         (if (cl-oddp (- (length match) 5))
             (concat (substring match 0 -4) "fffd")
           match))
       text t t))))

;;; Connections

(defcustom duet-rpc-events-buffer-size 200000
  "How many characters of its messages a connection keeps.
They are in a buffer named after the connection; 0 means none."
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
  "Have SENTINEL handle CHANGE of PROCESS, without its own message.
jsonrpc.el shows a line for each server that ends, in place of the message
that the user reads.  The line is in *Messages* all the same."
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


;;;; The end

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
