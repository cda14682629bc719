;;; duet-connection-request.el --- What a project's server is asked  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Nothing here waits: `duet-connection-request' returns at once, and what the server
;; answers is handed to a function.  Where no server answers, that is an error as any
;; other.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-get)
(require 'duet-log)
(require 'duet-model)
(require 'duet-rpc)
(require 'duet-visible)

(cl-defstruct (duet-connection (:copier nil))
  "The connection of a project."
  (root nil :documentation "The project's directory.")
  (model nil :documentation "Its `duet-model'.")
  (rpc nil :documentation "The `duet-rpc-connection', or nil.")
  (state 'stopped :documentation "starting, ready, refused, lost or stopped.")
  (reason nil :documentation "Why it is lost, in words.")
  (version nil :documentation "The server's version.")
  (attempts 0 :documentation "How often it was started since it last was well.")
  (timer nil :documentation "The timer of the next start.")
  (next nil :documentation "When the next start is, in seconds since the epoch.")
  (asking nil :documentation "Ids of runs that the server is being asked for."))

(defun duet-connection-session (connection id)
  "Return the session of CONNECTION that ID names, a thread or a run, or nil."
  (duet-model-session (duet-connection-model connection) id))

(cl-defun duet-connection-request (connection method params
                                              &key success-fn error-fn)
  "Request METHOD with PARAMS of the server of CONNECTION; do not wait.
SUCCESS-FN is called with the result, or ERROR-FN with a property list of
:code, :message and :data; without an ERROR-FN the error is shown.  The
code is -1 where no server answers.  Return the request's id, or nil."
  (let ((fail (or error-fn
                  (lambda (err)
                    (message "Duet: %s" (duet-connection-error-text err)))))
        (rpc (duet-connection-rpc connection)))
    (condition-case err
        (if rpc
            (duet-rpc-request-async
             rpc method params
             :success-fn (lambda (result)
                           (when success-fn
                             (duet-log-guard (format "Reply to %s" method)
                               (funcall success-fn result))))
             :error-fn (lambda (err)
                         (let ((inhibit-message nil))
                           (duet-log-guard (format "Error of %s" method)
                             (funcall fail err)))))
          (signal 'duet-rpc-died
                  (list (or (duet-connection-reason connection)
                            "the server is not running"))))
      (error
       (funcall fail (list :code -1 :message (if (stringp (cadr err)) (cadr err)
                                               (error-message-string err))))
       nil))))

(defun duet-connection-error-text (err)
  "Return the text for people in ERR, what an ERROR-FN is called with."
  (let ((text (or (duet-get-string err :message) "unknown error")))
    (duet-visible
     (string-remove-prefix "Internal error: "
                           (string-remove-prefix "Invalid params: " text)))))

(provide 'duet-connection-request)
;;; duet-connection-request.el ends here
