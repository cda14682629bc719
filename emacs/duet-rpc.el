;;; duet-rpc.el --- Connections to duet-rpc  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; An editor starts one process, duet-rpc, to work with coding agents.  It speaks
;; JSON-RPC 2.0 on its standard input and output, and connects to the project's
;; daemon, which runs the agents.  This library starts it and communicates with it:
;;
;;   (let ((connection (duet-rpc-connect)))
;;     (duet-rpc-request connection 'ping nil)    ; => (:pong t :timestamp ...)
;;     (duet-rpc-shutdown connection))
;;
;; A connection is one of jsonrpc.el, with its own functions for requests (see below).
;;
;; No action is necessary when Emacs exits: the server sees the end of its input and
;; ends.  Do not call `duet-rpc-shutdown' in `kill-emacs-hook': it waits for a
;; process, which is not safe there.

;;; Code:

(require 'cl-lib)
(require 'eieio)
(require 'jsonrpc)
(require 'map)
(require 'subr-x)
(require 'duet-remote)

;;; The program and its process

;; These functions return the command, start it here or on another machine, and
;; report the reason of its end.

(defgroup duet nil
  "Work with coding agents."
  :group 'tools
  :prefix "duet-")

(defcustom duet-rpc-command '("duet-rpc")
  "The server program and its arguments.
A list of strings, or one string that is split like a shell command."
  :type '(choice (repeat string) string)
  :risky t)


;;;; The program

(defun duet-rpc-process-words (&optional command)
  "Return COMMAND as a list of strings, the program first.
The default is `duet-rpc-command'; on another machine, its connection-local
value if there is one.  Signal a `user-error' if COMMAND is neither such a list
nor a string."
  (let* ((command (or command
                      (if (duet-remote-tramp-p default-directory)
                          (with-connection-local-variables duet-rpc-command)
                        duet-rpc-command)))
         (words (if (stringp command) (split-string-shell-command (string-trim command))
                  command)))
    (unless (and (consp words) (cl-every #'stringp words)
                 (not (string-empty-p (car words))))
      (user-error "`duet-rpc-command' must be a string, or a list of strings, the program first"))
    (when (cl-some (lambda (word) (string-match-p "\\`--host\\(=\\|\\'\\)" word)) words)
      (user-error "`duet-rpc-command' must not contain --host; set `duet-host' instead"))
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
  "Return NAME, or NAME with a number if another connection uses NAME.
jsonrpc.el finds the buffers of a connection by its name.  A connection that
has ended uses its name while its buffers exist: if they were shared, killing
them would kill the next server."
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
  "Maximum time for the start of a server on another machine, in seconds.")

(defun duet-rpc-process--start-remote (name command directory)
  "Start COMMAND in DIRECTORY, on another machine, as a process called NAME."
  (let* ((default-directory directory)
         ;; On a terminal the program prints its help unless an argument says serve.
         (command (if (member "--stdio" command) command
                    (append command '("--stdio"))))
         (process (duet-remote-make-process :name name :command command :noquery t
                                            :connection-type 'pipe
                                            :coding 'utf-8-emacs-unix)))
    (duet-remote-await-ready process duet-rpc-process--starts-within)
    process))

(defun duet-rpc-process--start-here (name command directory)
  "Start COMMAND in DIRECTORY, on this machine, as a process called NAME."
  (let* ((default-directory directory)
         ;; Only an argument names a host: file names of a host are not local ones.
         (process-environment (cons "DUET_HOST" process-environment))
         ;; jsonrpc.el finds the buffer by exactly this name, and renames it.
         (stderr (get-buffer-create (format "*%s stderr*" name)))
         (process (make-process :name name
                                :command command
                                :connection-type 'pipe
                                :coding 'utf-8-emacs-unix
                                :noquery t
                                :stderr stderr)))
    ;; The buffer is for the server's output, not for Emacs' messages about the
    ;; pipe; the next server's log may go to the same buffer.
    (set-process-sentinel (get-buffer-process stderr) #'ignore)
    process))


;;;; Its end

(defun duet-rpc-process-keep-words (process)
  "Copy the standard error of PROCESS, on another machine, to its error buffer.
It is at the end of the output, behind a NUL."
  (let ((errors (process-get process 'jsonrpc-stderr)))
    (when (and (duet-remote-p process) (buffer-live-p errors)
               (buffer-live-p (process-buffer process)))
      (let ((said (with-current-buffer (process-buffer process) (buffer-string))))
        ;; The NUL shows that the program has ended.
        (process-put process 'duet-rpc-ended (and (string-search "\0" said) t))
        (with-current-buffer errors
          (let ((inhibit-read-only t)) (insert (cdr (duet-remote-output said)))))))))

(defun duet-rpc-process-unreachable-p (process)
  "Return non-nil if PROCESS ended, but its program did not end by itself.
This happens if the connection to another machine is lost."
  (and (duet-remote-p process)
       (not (process-get process 'duet-rpc-ended))))

(defun duet-rpc-process-obituary (process)
  "Return a line that reports the end of PROCESS, with its status and reason."
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
      ;; It arrives through its own pipe, so a part may still be unread.
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

;; These functions use jsonrpc.el, whose functions also work with a connection.  The
;; differences from jsonrpc.el are:
;;
;; - `jsonrpc-request' of Emacs 28 ends its wait by a throw out of the process
;;   filter.  Output behind the reply then stays unread until the server sends
;;   more.  `duet-rpc-request' avoids that.
;; - jsonrpc.el leaves an abandoned request, after \\`C-g' or a timeout, running in
;;   the server.  `duet-rpc-request' cancels it.
;; - If the server has died, the error contains the reason from its standard
;;   error.
;;
;; JSON is read and written as by jsonrpc.el: objects are property lists, arrays are
;; vectors, null is nil, false is `:json-false'.  An empty object is nil, too: a request
;; may ask for the difference.

(defcustom duet-rpc-request-timeout 10
  "Default timeout of `duet-rpc-request', in seconds."
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
    :documentation "Whether the server has ended and all its output is read."))
  :documentation "A connection to a duet-rpc process.
Make one with `duet-rpc-connect'.")

(defun duet-rpc-obituary (connection)
  "Return a line that reports the end of CONNECTION's server, with its reason."
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
It has the layout of jsonrpc.el's errors."
  (signal symbol (list message
                       (cons 'jsonrpc-error-code code)
                       (cons 'jsonrpc-error-message message)
                       (cons 'jsonrpc-error-data data))))


;;;; Sending

(defvar duet-rpc-request--sent-id nil
  "The id of the request that is being sent; t until it is known.")

(defconst duet-rpc-request--max-size (- (* 10 1024 1024) 1000)
  "Maximum size of a message to the server, in bytes, with room for its header.
The server's reply to a longer message has no id.")

(defun duet-rpc-request--size (value)
  "Return a lower bound of the size of VALUE's strings as JSON, in bytes.
VALUE is data for jsonrpc.el to encode."
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
  "Send ARGUMENTS to CONNECTION; if the server is gone, signal the reason."
  (unless (jsonrpc-running-p connection)
    (duet-rpc-request--signal 'duet-rpc-died (duet-rpc-obituary connection) -1))
  (let ((size (duet-rpc-request--size arguments)))
    (when (> size duet-rpc-request--max-size)
      (duet-rpc-request--signal
       'duet-rpc-error
       (format "Cannot send %s: it has %.1f MiB, and the limit is 10 MiB; shorten the text or attach less"
               (plist-get arguments :method) (/ size 1048576.0))
       -32600)))
  ;; jsonrpc.el does not return the id of a request to its callers, and a
  ;; cancellation needs the id.
  (when (eq duet-rpc-request--sent-id t)
    (setq duet-rpc-request--sent-id (plist-get arguments :id)))
  (condition-case err
      (cl-call-next-method)
    (error
     (when (jsonrpc-running-p connection)
       (signal (car err) (cdr err)))
     (duet-rpc-request--signal 'duet-rpc-died (duet-rpc-obituary connection) -1))))

(defun duet-rpc-request--method (method)
  "Return METHOD, a symbol or a string, as a symbol for jsonrpc.el."
  (if (stringp method) (intern method) method))

(defun duet-rpc-request--params (params)
  "Return PARAMS for sending: nil becomes an empty object."
  (or params (make-hash-table)))

(cl-defun duet-rpc-request-async (connection method params
                                             &key success-fn error-fn
                                             timeout timeout-fn exact)
  "Request METHOD with PARAMS of CONNECTION; return the id of the request.

METHOD is a symbol or a string.  PARAMS nil means none.  Later one of these
functions is called, once:

SUCCESS-FN with the result;
ERROR-FN with a property list of `:code', `:message' and `:data'.  If the
server ends before it replies, the code is -1.  Without an ERROR-FN, the error
is shown as a message;
TIMEOUT-FN without arguments after TIMEOUT seconds, when the request is
cancelled.  Without a TIMEOUT, the request never times out.

If EXACT is non-nil, null in the result is `:null', and only an empty object is
nil.

See also `duet-rpc-cancel'."
  (let* ((duet-rpc-request--sent-id t)
         (success-fn (or success-fn #'ignore))
         (error-fn (or error-fn
                       (lambda (err)
                         (message "duet-rpc: %s: %s" method (plist-get err :message)))))
         (timeout-fn (or timeout-fn #'ignore))
         (process (jsonrpc--process connection))
         (settled nil)
         (settle (lambda (function &rest arguments)
                   (unless settled
                     (setq settled t)
                     (when exact (duet-rpc-request--exact process -1))
                     (apply function arguments))))
         id)
    (when exact (duet-rpc-request--exact process 1))
    (jsonrpc-async-request
     connection (duet-rpc-request--method method) (duet-rpc-request--params params)
     :success-fn (apply-partially settle success-fn)
     :error-fn
     (lambda (err)
       (if (or (jsonrpc-running-p connection)
               (not (eql (plist-get err :code) -1)))
           (funcall settle error-fn err)
         ;; Newer versions of jsonrpc.el handle replies in timers.  So the reply
         ;; may be read, but not handled, when the end of the server is
         ;; reported.  This timer runs after that one.
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

Signal `duet-rpc-error' for an error reply of the server; see
`duet-rpc-error-code' and `duet-rpc-error-data'.  Signal `duet-rpc-died' if
the server has ended or ends now.  Signal `duet-rpc-timeout' if there is no
reply within TIMEOUT seconds, or `duet-rpc-request-timeout' if nil.  All of
them are also a `jsonrpc-error'.

Cancel the request on a timeout or on \\`C-g'."
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
A running request then gets the error -32800 as its reply.  A finished one
gets no second reply."
  (when (and id (jsonrpc-running-p connection))
    ;; If the server ends just now, there is nothing to cancel.
    (ignore-error duet-rpc-died
      (jsonrpc-notify connection '$/cancelRequest (list :id id)))))

(defun duet-rpc-notify (connection method params)
  "Send the notification METHOD with PARAMS to CONNECTION.
METHOD is a symbol or a string.  PARAMS nil means none."
  (jsonrpc-notify connection (duet-rpc-request--method method) (duet-rpc-request--params params)))

(defun duet-rpc-request-refuse (_connection method _params)
  "Refuse a request of the server for METHOD."
  (jsonrpc-error :code -32601 :message (format "Method not found: %s" method)))


;;;; Waiting

(defvar duet-rpc-request--reading nil
  "Non-nil inside a process filter, which a throw must not leave.
Otherwise output that the filter has read would stay unhandled.")

(defvar duet-rpc-request--waiting nil
  "The tag of the innermost request that Emacs waits for.")

(defun duet-rpc-request--wait (tag condition deadline)
  "Wait until CONDITION is met or DEADLINE has passed.
CONDITION is a function without arguments.  `duet-rpc-request--wake' with TAG
makes this check it at once.  The function also polls, since an inner wait
blocks the wake-up of an outer one."
  (let ((duet-rpc-request--waiting tag)
        left)
    (while (and (not (funcall condition))
                (> (setq left (- deadline (float-time))) 0))
      (catch tag
        (accept-process-output nil (min left 0.1))))))

(defun duet-rpc-request--wake (tag)
  "Make the `duet-rpc-request--wait' with TAG check its condition now.
Otherwise Emacs would wait some 30 ms for more output."
  (cl-flet ((wake () (when (eq duet-rpc-request--waiting tag)
                       (throw tag nil))))
    (if duet-rpc-request--reading
        (run-at-time 0 nil #'wake)
      (wake))))


;;;; Reading

(defconst duet-rpc-request--no-nul
  (not (ignore-errors (json-parse-string "\"\\u0000\"")))
  "Non-nil if Emacs rejects JSON with a NUL in it, as Emacs 28 does.
Emacs would then lose the reply or the event.")

(defun duet-rpc-request-read (filter process output)
  "Call FILTER with PROCESS and OUTPUT; bind `duet-rpc-request--reading' to t."
  (let ((duet-rpc-request--reading t)
        (output (if duet-rpc-request--no-nul (duet-rpc-request--without-nul process output)
                  output)))
    (if (memq (process-get process 'duet-rpc-request--exact) '(nil 0))
        (funcall filter process output)
      (cl-letf (((symbol-function 'jsonrpc--json-read) #'duet-rpc-request--json-read))
        (funcall filter process output)))))

(defun duet-rpc-request--exact (process change)
  "Add CHANGE to the number of exact requests of PROCESS.
While there are some, null is read as `:null'."
  (process-put process 'duet-rpc-request--exact
               (+ change (or (process-get process 'duet-rpc-request--exact) 0))))

(defun duet-rpc-request--json-read ()
  "Read JSON at point as jsonrpc.el does, except for null."
  (json-parse-buffer :object-type 'plist :null-object :null :false-object :json-false))

(defun duet-rpc-request--without-nul (process output)
  "Return OUTPUT of PROCESS with each NUL replaced by U+FFFD, of the same length.
Keep a possible beginning of an escaped NUL for the next output."
  (let ((text (concat (process-get process 'duet-rpc-request--kept) output))
        (kept nil))
    ;; Keep a whole run of backslashes, since their number decides their meaning.
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
  "Maximum size of the buffer of a connection's messages, in characters.
The buffer is named after the connection; 0 means none."
  :type 'natnum
  :group 'duet)

(cl-defun duet-rpc-connect (&key command directory (name "duet-rpc")
                                 notification-dispatcher request-dispatcher
                                 on-shutdown)
  "Start a server and return a connection to it.

COMMAND is the program and its arguments in the format of
`duet-rpc-command', which is the default.  It runs in DIRECTORY, or in the
current one.  If that is a TRAMP name, it runs on that machine.  If DIRECTORY
is on a host, it runs here, in the local project of that name if it is known,
and connects to the daemon there.  NAME is the name
of the process and its buffers, with a number if another connection uses NAME.

NOTIFICATION-DISPATCHER and REQUEST-DISPATCHER are called with the
connection, a method (a symbol) and params for each notification or request
of the server.  The value of REQUEST-DISPATCHER is the result of a request;
without it, all requests are refused.  ON-SHUTDOWN is called with the
connection when the server has ended, for any reason."
  (let* ((directory (file-name-as-directory
                     (expand-file-name (or directory default-directory))))
         (arguments (and (duet-host-of directory) (duet-host-arguments directory)))
         (directory (if arguments (duet-host-local-directory directory) directory))
         (command (let ((default-directory directory))
                    (append (duet-rpc-process-command command) arguments)))
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
  "Call SENTINEL for CHANGE of PROCESS, without its message in the echo area.
jsonrpc.el shows a line for each server that ends, which would replace a
message that the user reads.  The line still goes to *Messages*."
  (let ((inhibit-message t))
    (unless (process-live-p process)
      (duet-rpc-process-keep-words process))
    (funcall sentinel process change)))

(defun duet-rpc--events-buffer-arguments ()
  "Return the arguments that limit the size of the buffer of events.
Their name depends on the version of jsonrpc.el, which may be newer than
the version in Emacs."
  (if (cl-find '-events-buffer-config (eieio-class-slots 'jsonrpc-connection)
               :key #'eieio-slot-descriptor-name)
      (list :events-buffer-config
            (list :size duet-rpc-events-buffer-size :format 'full))
    (list :events-buffer-scrollback-size duet-rpc-events-buffer-size)))


;;;; The end

(defun duet-rpc-shutdown (connection &optional cleanup)
  "End the server of CONNECTION, and wait until it has ended.
Kill it if it does not end within 2 seconds.  The project's daemon and its
agents continue.  If CLEANUP is non-nil, also kill the buffers of the
connection.

Do not call this from `kill-emacs-hook'; the server ends with Emacs anyway."
  (let ((process (jsonrpc--process connection)))
    (when (jsonrpc-running-p connection)
      (ignore-error duet-rpc-died
        (duet-rpc-request-async
         connection 'shutdown '(:reason "the editor is done with it") :error-fn #'ignore))
      ;; Wait until Emacs has handled the end, not only until the process has
      ;; ended: the last replies may still be unread.
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
  "Return non-nil if CONNECTION ended, but its server did not end by itself.
This happens if the connection to another machine is lost."
  (duet-rpc-process-unreachable-p (jsonrpc--process connection)))

(provide 'duet-rpc)
;;; duet-rpc.el ends here
