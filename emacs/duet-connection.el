;;; duet-connection.el --- One server for each project  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-connection-ensure' returns the connection of a project, and starts its
;; server if there is none.  The connection feeds the project's model
;; (duet-model.el) with events, and outlives its server: one that dies unasked
;; is started again, after 1, 2, 4 and at last every 30 seconds, and goes on
;; telling where the last one stopped.
;;
;; Nothing here waits.  `duet-connection-request' returns at once.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-rpc)
(require 'duet-log)
(require 'duet-model)
(require 'duet-connection-news)
(require 'duet-connection-request)
(require 'duet-project)
(require 'duet-remote)

(defcustom duet-restart-delays '(1 2 4 8 16 30)
  "Seconds to wait before a server that died is started again.
The last number counts for all attempts beyond."
  :type '(repeat number)
  :group 'duet)

(defcustom duet-events-buffer-size 0
  "How many characters of what is said to a server are kept, for a look at it.
They stand in the buffer that jsonrpc.el makes; it costs much time."
  :type 'natnum
  :group 'duet)

(defvar duet-connection-trust-function #'ignore
  "Function that says whether the user trusts a project.
It is called with the project's directory whenever a server starts and
must return at once: `restricted' if nothing that the project's .duet.toml
runs may run for this Emacs, even where it was trusted before; other
non-nil if it may; and nil to leave that to `duet-trust'.")

(defconst duet-connection-version "0.1"
  "The version of the server, its first two numbers, that this package is for.")

(defvar duet-connection--patience 3
  "How many seconds a server may take to end when it is stopped.")

(defvar duet-connection--well 30
  "How many seconds a server must live to be no longer one that keeps dying.")

(defvar duet-connection--mended 5
  "How many seconds after a refusal the server is asked again.")

(defvar duet-connections (make-hash-table :test #'equal)
  "The connections by the directories of their projects.")

(defvar-local duet-connection nil
  "The connection that the buffer belongs to.")

(defun duet-connection-ensure (directory &optional ask)
  "Return the connection of the project that DIRECTORY is in.
Its server is started if there is none; this does not wait for it.
If ASK is non-nil, the user is asked before the first start where there is
no project."
  (let* ((root (duet-project-root directory))
         (connection (or (gethash root duet-connections)
                         (and ask (duet-project-confirm directory))
                         (puthash root (make-duet-connection
                                        :root root
                                        :model (duet-model-create :root root))
                                  duet-connections))))
    (when (eq (duet-connection-state connection) 'stopped)
      (duet-connection--start connection t))
    connection))

(defun duet-connection-of (model)
  "Return the connection that feeds MODEL, or nil."
  (gethash (duet-model-root model) duet-connections))

(defun duet-connection-directory (connection &optional session)
  "Return where the agent of SESSION works, as Emacs can visit it.
Without that it is the directory of the project of CONNECTION."
  (let ((root (duet-connection-root connection))
        (cwd (and session (duet-session-cwd session))))
    (file-name-as-directory (if cwd (duet-remote-name cwd root) root))))

(defun duet-connection-status (connection)
  "Return how CONNECTION is doing as a short string; nil if it is well."
  (pcase (duet-connection-state connection)
    ('starting "starting…")
    ('stopped "stopped")
    ('refused "the server has no sessions")
    ('lost (format "server lost%s"
                   (if-let ((next (duet-connection-next connection)))
                       (format ", next try in %d s"
                               (max 0 (ceiling (- next (float-time)))))
                     "")))))

(defun duet-connection--enter (connection state &optional reason)
  "Set the state of CONNECTION to STATE, for REASON, and say so."
  (setf (duet-connection-state connection) state
        (duet-connection-reason connection) reason)
  (duet-model-announce (duet-connection-model connection) 'connection nil state))


;;; Start and end

(defun duet-connection--start (connection &optional loud)
  "Start the server of CONNECTION.
If that fails it is lost.  If LOUD is non-nil the error is signalled, and
one that was stopped stays so."
  (when-let ((timer (duet-connection-timer connection)))
    (cancel-timer timer)
    (setf (duet-connection-timer connection) nil
          (duet-connection-next connection) nil))
  (cl-incf (duet-connection-attempts connection))
  (condition-case err
      (let* ((duet-rpc-events-buffer-size duet-events-buffer-size)
             (root (duet-connection-root connection))
             (default-directory root)
             rpc)
        (setq rpc (duet-rpc-connect
                   :name (format "duet %s" (duet-remote-abbreviate root))
                   :directory root
                   :notification-dispatcher
                   (lambda (_ method params)
                     (duet-connection--notified connection method params))
                   :on-shutdown
                   (lambda (rpc) (duet-connection--ended connection rpc))))
        (setf (duet-connection-rpc connection) rpc)
        (duet-connection--enter connection 'starting)
        (duet-connection--greet connection))
    (error
     (if loud
         (progn
           (setf (duet-connection-attempts connection) 0)
           ;; Else nobody would try again.
           (when (eq (duet-connection-state connection) 'lost)
             (duet-connection--lose connection (error-message-string err)))
           (signal (car err) (cdr err)))
       (duet-connection--lose connection (error-message-string err)
                              (file-remote-p (duet-connection-root connection)))))))

(defun duet-connection--greet (connection)
  "Introduce ourselves to the server of CONNECTION, and subscribe to its events."
  (duet-connection-request
   connection 'initialize
   (append
    (list :capabilities (list :client (list :name "emacs" :version emacs-version)))
    (when-let ((trust (duet-log-guard "duet-connection-trust-function"
                        (funcall duet-connection-trust-function
                                 (duet-connection-root connection)))))
      (list :workspaceTrusted (if (eq trust 'restricted) :json-false t))))
   :success-fn
   (lambda (result)
     (duet-connection--check-version connection
                                     (duet-get-string result :serverInfo :version))))
  (duet-connection--subscribe connection))

(defun duet-connection--subscribe (connection)
  "Subscribe to the events of the server of CONNECTION.
Where it has no sessions, since something is wrong with the project, that
is tried again: the user may have mended it."
  (duet-connection-request
   connection 'Subscribe
   (nconc (list :notices t)
          (when-let ((seq (duet-model-seq (duet-connection-model connection))))
            (list :since seq)))
   :success-fn
   (lambda (result)
     (when-let ((notice (duet-get-string result :notice)))
       (message "Duet: %s" notice))
     (let ((rpc (duet-connection-rpc connection)))
       (run-at-time duet-connection--well nil
                    (lambda ()
                      (when (eq rpc (duet-connection-rpc connection))
                        (setf (duet-connection-attempts connection) 0)))))
     (duet-connection--enter connection 'ready)
     (duet-connection-refresh connection))
   :error-fn
   (lambda (err)
     (unless (eql (plist-get err :code) -1)
       (let ((text (duet-connection-error-text err))
             (rpc (duet-connection-rpc connection)))
         (unless (equal text (duet-connection-reason connection))
           (message "Duet: %s" text))
         (run-at-time duet-connection--mended nil
                      (lambda ()
                        (when (and rpc (eq rpc (duet-connection-rpc connection))
                                   (eq (duet-connection-state connection) 'refused))
                          (duet-connection--subscribe connection))))
         (duet-connection--enter connection 'refused text))))))

(defun duet-connection--check-version (connection version)
  "Note the VERSION of the server of CONNECTION; warn once of one that differs."
  (unless (equal version (duet-connection-version connection))
    (setf (duet-connection-version connection) version)
    (unless (and version
                 (string-prefix-p (concat duet-connection-version ".") version))
      (display-warning
       'duet (format "The program %s is version %s, and this package is for %s; update the older one"
                     (car (duet-rpc-process-words)) (or version "unknown")
                     duet-connection-version)))))

(defun duet-connection--ended (connection rpc)
  "Note that RPC, the server of CONNECTION, has ended."
  ;; Others who waited for its last words may read them, too.
  (run-at-time 1 nil #'duet-connection--bury rpc)
  (when (eq rpc (duet-connection-rpc connection))
    (setf (duet-connection-rpc connection) nil)
    (unless (eq (duet-connection-state connection) 'stopped)
      ;; They come through another pipe; do not wait for them here.
      (run-at-time 0 nil
                   (lambda ()
                     (unless (or (duet-connection-rpc connection)
                                 (eq (duet-connection-state connection) 'stopped))
                       (duet-connection--lose connection (duet-rpc-obituary rpc)
                                              (duet-rpc-unreachable-p rpc))))))))

(defun duet-connection--bury (rpc)
  "Log what the server behind RPC last said, and kill the buffers of RPC."
  (when-let ((buffer (jsonrpc-stderr-buffer rpc)))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (unless (zerop (buffer-size))
          (duet-log "The server's last words:\n%s"
                    (buffer-substring-no-properties
                     (max (point-min) (- (point-max) 1500)) (point-max)))))))
  (dolist (buffer (list (process-buffer (jsonrpc--process rpc))
                        (jsonrpc-stderr-buffer rpc)))
    ;; The next server has the name of this one, and so its buffers; to kill a
    ;; buffer is to end what writes into it.
    (when (and (buffer-live-p buffer) (not (duet-connection--in-use-p buffer rpc)))
      (let ((kill-buffer-query-functions nil)) (kill-buffer buffer)))))

(defun duet-connection--in-use-p (buffer rpc)
  "Return non-nil if a server other than RPC writes into BUFFER."
  (let ((other nil))
    (maphash (lambda (_ connection)
               (when-let ((live (duet-connection-rpc connection)))
                 (when (and (not (eq live rpc))
                            (memq buffer (list (process-buffer (jsonrpc--process live))
                                               (jsonrpc-stderr-buffer live))))
                   (setq other live))))
             duet-connections)
    other))

(defun duet-connection--lose (connection reason &optional unreachable)
  "Note that the server of CONNECTION is gone for REASON; start it again later.
If its machine is UNREACHABLE the user has to: Emacs would stand still
while it tries, and ask for a password out of nowhere."
  (let* ((attempts (duet-connection-attempts connection))
         (delay (or (nth (max 0 (1- attempts)) duet-restart-delays)
                    (car (last duet-restart-delays)) 30)))
    (duet-log "%s: %s" (duet-connection-root connection) reason)
    (setf (duet-connection-next connection) (and (not unreachable) (+ (float-time) delay))
          (duet-connection-timer connection)
          (and (not unreachable)
               (run-at-time delay nil #'duet-connection--start connection)))
    ;; Said once, not with each of many attempts.
    (cond (unreachable
           (message "Duet: %s; g in the list of sessions tries again" reason))
          ((<= attempts 1)
           (message "Duet: %s; another try in %s s" reason delay)))
    (duet-connection--enter connection 'lost reason)))

(defun duet-connection-stop (connection)
  "End the server of CONNECTION and do not start it again.
Agents go on in the project's daemon."
  (when-let ((timer (duet-connection-timer connection)))
    (cancel-timer timer)
    (setf (duet-connection-timer connection) nil
          (duet-connection-next connection) nil))
  (duet-connection--enter connection 'stopped)
  (when-let ((rpc (duet-connection-rpc connection)))
    (setf (duet-connection-rpc connection) nil)
    (ignore-errors
      (duet-rpc-request-async rpc 'shutdown '(:reason "stopped in Emacs") :error-fn #'ignore))
    (run-at-time duet-connection--patience nil
                 #'duet-connection--put-down (jsonrpc--process rpc))))

(defun duet-connection--put-down (process)
  "Kill PROCESS, a server that was asked to end, if it has not."
  (when (process-live-p process)
    (delete-process process)))

(defun duet-connection-restart (connection)
  "Start the server of CONNECTION, now."
  (interactive (list (duet-connection-here)))
  (if (duet-connection-rpc connection)
      (message "Duet: the server is running")
    (setf (duet-connection-attempts connection) 0)
    (duet-connection--start connection t)))

(defun duet-connection-here ()
  "Return the connection of the current buffer's project, for a command.
Where there is no project the user is asked."
  (or duet-connection (duet-connection-ensure default-directory t)))

(defun duet-only-in (mode)
  "Signal a `user-error' unless the current buffer is in MODE; return nil.
For commands that would harm a buffer that is not theirs."
  (unless (derived-mode-p mode)
    (user-error "This is for buffers in %s only"
                (string-remove-suffix "-mode" (symbol-name mode)))))

(defun duet-connection-refresh (connection)
  "Ask the server of CONNECTION for its sessions and for what waits."
  (if (eq (duet-connection-state connection) 'refused)
      (duet-connection--subscribe connection) ; which refreshes
    (duet-connection--refresh connection)))

(provide 'duet-connection)
;;; duet-connection.el ends here
