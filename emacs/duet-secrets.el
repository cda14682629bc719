;;; duet-secrets.el --- Keys for agents, from auth-source  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; An agent may need the key of a service.  If the server has no such key, it asks its
;; editors.  Emacs sends the key from `auth-source', which is usually the encrypted
;; file ~/.authinfo.gpg.  A line there for the service anthropic:
;;
;;   machine anthropic login apikey password sk-...
;;
;; The machine is the name of the service, or the value of `duet-secrets-hosts' for it.
;; The login does not matter.
;;
;; `auth-source' may ask for a passphrase.  So a timer calls it, for one request after
;; another; C-g there declines the request.  Duet neither stores nor logs the key, and
;; it excludes the message with the key from the buffer of events.
;;
;; A host of duet-rpc gets no key of `auth-source'.  The user can type one.

;;; Code:

(require 'cl-lib)
(require 'jsonrpc)
(require 'subr-x)
(require 'duet-connection)

(declare-function auth-source-search "auth-source" (&rest spec))
(defvar auth-sources)
(defvar auth-source-do-cache)
(defvar jsonrpc-event-hook)             ; since Emacs 30

(defcustom duet-secrets-use-auth-source t
  "Whether Emacs answers the server's requests for keys from `auth-source'."
  :type 'boolean
  :group 'duet)

(defcustom duet-secrets-hosts
  '(("anthropic" "anthropic" "api.anthropic.com")
    ("openai" "openai" "api.openai.com")
    ("gemini" "gemini" "generativelanguage.googleapis.com"))
  "Machine names in `auth-sources' of the keys of services.
An element is the name of a service and the machine names to try, in this
order.  The default for other services is the name of the service."
  :type '(alist :key-type (string :tag "Service")
                :value-type (repeat (string :tag "Machine")))
  :group 'duet)

(defconst duet-secrets--leave 2
  "Time for other editors to answer if Emacs has no key, in seconds.")

(defvar duet-secrets--waiting nil
  "Pending requests, the oldest first: lists of connection, request and service.")
(defvar duet-secrets--timer nil
  "The timer that handles the next request, or nil.")
(defvar duet-secrets--declined nil
  "Keys that the user has declined to type: conses of a host and a service.")

(defun duet-secrets--observe (model kind _session object _extra)
  "If KIND is `secret', queue OBJECT, a request for a key by MODEL's server.
If KIND and OBJECT report a ready server, its host may ask again."
  (when-let ((host (and (eq kind 'connection) (eq object 'ready)
                        (duet-host-of (duet-model-root model)))))
    (setq duet-secrets--declined (cl-remove host duet-secrets--declined
                                            :key #'car :test #'equal)))
  (when (and (eq kind 'secret) duet-secrets-use-auth-source)
    (let ((connection (duet-connection-of model))
          (request (duet-get-string object :request_id))
          (service (duet-get-string object :service)))
      (if (not (and connection request service))
          (duet-log "A request for a key with members missing")
        (setq duet-secrets--waiting
              (append duet-secrets--waiting (list (list connection request service))))
        (duet-secrets--soon)))))

(defun duet-secrets--soon ()
  "Handle the next request outside of the current process filter."
  (unless duet-secrets--timer
    (setq duet-secrets--timer (run-at-time 0 nil #'duet-secrets--next))))

(defun duet-secrets--next ()
  "Look up the key of the oldest request, and answer the request."
  (pcase (pop duet-secrets--waiting)
    (`(,connection ,request ,service)
     (unwind-protect
         (duet-log-guard "A request for a key"
           (duet-secrets--answer connection request service))
       ;; Only now: timers run during a prompt for a passphrase.
       (setq duet-secrets--timer nil)
       (when duet-secrets--waiting (duet-secrets--soon))))
    (_ (setq duet-secrets--timer nil))))

(defun duet-secrets--answer (connection request service)
  "Answer REQUEST of CONNECTION's server for the key of SERVICE."
  (if (duet-connection-host connection)
      (duet-secrets--answer-host connection request service)
    (duet-secrets--answer-here connection request service)))

(defun duet-secrets--answer-host (connection request service)
  "Answer REQUEST of a host, the one of CONNECTION, for the key of SERVICE.
Send only a key that the user types.  If the user declines, do not ask again
until the next start of the connection."
  (let* ((host (duet-connection-host connection))
         (asked (cons host service))
         (name (truncate-string-to-width (duet-visible-line service) 40 nil nil t))
         (enable-recursive-minibuffers t)
         (inhibit-quit nil)
         (secret (condition-case nil
                     (and (not (member asked duet-secrets--declined))
                          (y-or-n-p (format "The host %s asks for the key of %s, for %s; type one to send there? "
                                            host name
                                            (duet-visible-line (duet-connection-project connection))))
                          (read-passwd (format "Key of %s for the host %s (empty: none): "
                                               name host)))
                   (quit nil))))
    (if (and secret (not (string-empty-p secret)))
        (progn (duet-secrets--provide connection request service secret)
               (clear-string secret))
      (cl-pushnew asked duet-secrets--declined :test #'equal)
      (duet-secrets--provide connection request service "")
      (message "Duet: the host %s gets no key of %s" host name))))

(defun duet-secrets--answer-here (connection request service)
  "Answer REQUEST of CONNECTION's server for the key of SERVICE.
Look the key up in `auth-source'."
  (pcase (let ((found (duet-secrets--look-up service)))
           (if (or (not (stringp found)) (duet-secrets--may-go-p connection service))
               found
             (clear-string found)
             'declined))
    ((and (pred stringp) secret)
     (duet-secrets--provide connection request service secret)
     (clear-string secret))
    ('declined
     (duet-secrets--provide connection request service "")
     (message "Duet: the key for %s is declined" service))
    (`(failed ,reason)
     ;; The key cannot be read, for example because of a wrong passphrase.
     (duet-secrets--provide connection request service "")
     (message "Duet: no key for %s: %s" service reason))
    (_
     (run-at-time duet-secrets--leave nil
                  #'duet-secrets--provide connection request service "")
     (message "Duet: an agent needs a key for %s.  Add a line to %s: machine %s login apikey password KEY"
              service (duet-secrets--file) service))))

(defvar duet-secrets--sent-to nil
  "The destinations that the user has allowed for keys.
A list of conses: a machine, as a TRAMP prefix, and a service.")

(defun duet-secrets--may-go-p (connection service)
  "Return non-nil if the server of CONNECTION may have the key of SERVICE.
Ask the user once for each other machine and service."
  (let* ((host (file-remote-p (duet-connection-root connection)))
         (allowed (cons host service))
         (enable-recursive-minibuffers t)
         (inhibit-quit nil))
    (or (null host)
        (and (member allowed duet-secrets--sent-to) t)
        (and (condition-case nil
                 (y-or-n-p (format "An agent on %s asks for the key of %s; send it there? "
                                   host (duet-visible-line service)))
               (quit nil))
             (push allowed duet-secrets--sent-to)
             t))))

(defun duet-secrets--file ()
  "Return the file of `auth-sources' for a new key."
  (let ((first (cl-find-if #'stringp auth-sources)))
    (if (and first (null (cl-find "~/.authinfo.gpg" auth-sources :test #'equal)))
        first
      "~/.authinfo.gpg")))

(defun duet-secrets--look-up (service)
  "Return the key of SERVICE, a new string.
Return `declined' if the user quits, (failed REASON) if the key cannot be
read, nil if there is none."
  (require 'auth-source)
  ;; The user may be in the minibuffer already.
  (let ((enable-recursive-minibuffers t)
        (inhibit-quit nil)
        ;; Find a key that the user has just added to the file.
        (auth-source-do-cache nil))
    (condition-case err
        (cl-some (lambda (host)
                   (when-let* ((entry (car (auth-source-search
                                            :host host :max 1 :require '(:secret))))
                               (secret (plist-get entry :secret))
                               (secret (if (functionp secret) (funcall secret) secret)))
                     (and (stringp secret) (not (string-empty-p secret))
                          (copy-sequence secret))))
                 (or (cdr (assoc service duet-secrets-hosts)) (list service)))
      (quit 'declined)
      (error
       (duet-log "auth-source: %s" (error-message-string err))
       (list 'failed (error-message-string err))))))

(defun duet-secrets--provide (connection request service secret)
  "Send the SECRET of SERVICE to CONNECTION's server as the answer to REQUEST."
  (when (duet-connection-rpc connection)
    (duet-secrets-off-the-record
     (duet-connection-rpc connection)
     (lambda ()
       (duet-connection-request
        connection 'secret.provide
        (list :request_id request :service service :secret secret)
        :error-fn
        ;; Another editor was faster, or Emacs was too slow.
        (lambda (_) (duet-log "The key for %s was not wanted any more" service)))))))

(defun duet-secrets-off-the-record (rpc function)
  "Call FUNCTION, without its messages to RPC in the buffer of events."
  (let* ((slot (if (slot-exists-p rpc '-events-buffer-config)
                   '-events-buffer-config
                 '-events-buffer-scrollback-size))
         (old (slot-value rpc slot))
         ;; The hook could record the message, too.
         (jsonrpc-event-hook nil))
    (unwind-protect
        (progn
          (setf (slot-value rpc slot)
                (if (eq slot '-events-buffer-config) (list :size 0 :format 'short) 0))
          (funcall function))
      (setf (slot-value rpc slot) old))))

(duet-model-add-observer #'duet-secrets--observe)

(provide 'duet-secrets)
;;; duet-secrets.el ends here
