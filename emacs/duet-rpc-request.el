;;; duet-rpc-request.el --- Requests to the server, and what it answers  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; It is built on jsonrpc.el, and a connection can be used with its functions
;; too.  It adds what a user of those has to know:
;;
;; - `jsonrpc-request' of Emacs 28 leaves its waiting by a throw out of the
;;   process filter, and what arrived behind the reply lies unread until the
;;   server says something else.  `duet-rpc-request' waits in another way.
;; - A request that is given up, be it by \\`C-g' or because its time is over,
;;   goes on in the server unless somebody tells it.  Here it is told.
;; - A server that has died is reported with the reason, as far as its standard
;;   error tells it.
;;
;; JSON is read and written as jsonrpc.el does it: objects are property lists,
;; arrays are vectors, null is nil, false is `:json-false'.

;;; Code:

(require 'cl-lib)
(require 'eieio)
(require 'jsonrpc)
(require 'map)
(require 'duet-rpc-process)

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
  "Tell, in one line, that the server of CONNECTION has ended, how and why."
  (duet-rpc-process-obituary (jsonrpc--process connection)))


;;; Errors

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


;;; What is sent

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
  ;; jsonrpc.el does not tell its callers the id of a request, and it takes
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
  "Tell CONNECTION that nobody waits for the answer to the request ID any more.
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


;;; What is waited for

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


;;; What is read

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
    ;; A whole run of backslashes, since their number tells what they mean.
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

(provide 'duet-rpc-request)
;;; duet-rpc-request.el ends here
