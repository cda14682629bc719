;;; duet-connection.el --- The connection of a project to its server  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-connection-ensure' returns the connection of a project, and starts its
;; server if there is none.  The connection feeds the project's model
;; (duet-model.el) with events, and outlives its server.  It restarts a server that
;; died, after 1, 2, 4 and at most 30 seconds, and continues the events after the
;; last one it received.
;;
;; Nothing waits for a reply: `duet-connection-request' returns at once.

;;; Code:

(require 'cl-lib)
(require 'project)
(require 'subr-x)
(require 'duet-editor)
(require 'duet-events)
(require 'duet-log)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-rpc)
(require 'duet-visible)

(declare-function tramp-dissect-file-name "tramp" (name &optional nodefault))
(declare-function tramp-get-remote-uid "tramp" (vec id-format))

;;; Projects

;; A server works in a project, and keeps its sessions in the user's state directory.
;; Outside of a project the commands ask before they start a server.

;; The rules are those of the server (internal/project).  A mark is ignored if
;; another user owns it.  The search upwards skips the home directory and
;; world-writable directories.

(defcustom duet-project-safe-directories
  (let ((list (getenv "DUET_SAFE_DIRECTORIES")))
    (and list (split-string list path-separator t)))
  "Directories in which files of other users count as marks of a project.
One that ends in /* includes all directories below it; * means all
directories.  It should equal safe_directories in the server's
configuration."
  :type '(repeat string)
  :group 'duet)

(defun duet-project--ours-p (file)
  "Return non-nil if FILE belongs to the user or to root."
  (let ((owner (file-attribute-user-id (file-attributes file 'integer))))
    (or (not (numberp owner))
        (memq system-type '(windows-nt ms-dos))
        (= owner 0)
        (equal owner (duet-project--uid file))
        (and (not (file-remote-p file))
             (= (user-uid) 0)
             (equal (number-to-string owner) (getenv "SUDO_UID"))))))

(defun duet-project--uid (file)
  "Return the number of the user on the machine of FILE."
  (if (file-remote-p file)
      (tramp-get-remote-uid (tramp-dissect-file-name (expand-file-name file)) 'integer)
    (user-uid)))

(defun duet-project--safe-p (directory)
  "Return non-nil if files of other users count in DIRECTORY."
  (let ((directory (directory-file-name (expand-file-name directory))))
    (cl-some (lambda (safe)
               (cond ((equal safe "*"))
                     ((string-suffix-p "/*" safe)
                      (string-prefix-p (expand-file-name (substring safe 0 -1)) directory))
                     ((equal (directory-file-name (expand-file-name safe)) directory))))
             duet-project-safe-directories)))

(defun duet-project--reserved-p (directory)
  "Return non-nil if DIRECTORY cannot be the project of a directory in it."
  (let* ((host (file-remote-p directory))
         (modes (or (file-modes directory) 0))
         (temporary (let ((default-directory directory)) (temporary-file-directory)))
         (name (lambda (file)
                 (duet-remote-local (file-name-as-directory (file-truename file)))))
         (directory (funcall name directory))
         (home (funcall name (concat host "~"))))
    (or (string-prefix-p directory home)
        (equal directory (funcall name temporary))
        (= (logand modes #o1002) #o1002)
        (and (not (string-prefix-p home directory))
             (string-match-p
              (rx bos (? "/private")
                  (or (seq "/" (? (or "root" "home" "Users" "opt" "srv" "mnt" "media" "Volumes" "tmp" "nix" "snap"
                                      (seq "run" (? (or "/user" "/media")))
                                      (seq "usr" (? (or "/local" "/src" "/local/src" "/home")))
                                      (seq "var" (? "/" (or "tmp" "lib" "cache" "log" "spool" "run" "mail"))))
                                  "/"))
                      (seq "/" (or "bin" "sbin" "lib" "lib32" "lib64" "libx32" "boot" "etc" "proc" "sys"
                                   "System" "Library" "Applications")
                           "/" (* anything))
                      (seq "/usr/" (or "bin" "sbin" "lib" "lib64" "libexec" "share" "include" "games") "/" (* anything)))
                  eos)
              directory)))))

(defun duet-project--state-directory (directory)
  "Return the directory of the server's state for the project DIRECTORY.
On another machine, ignore the environment variables of this one."
  (let* ((host (file-remote-p directory))
         (path (directory-file-name (duet-remote-local (if host directory (file-truename directory)))))
         (name (replace-regexp-in-string "[^-_.0-9A-Za-z]" "-" (file-name-nondirectory path)))
         (hash (secure-hash 'sha256 (encode-coding-string path (or file-name-coding-system
                                                                   default-file-name-coding-system 'utf-8))))
         (own (and (not host) (getenv "DUET_STATE_HOME")))
         (home (or (and own (not (equal own "")) own)
                   (and (not host) (getenv "XDG_STATE_HOME")
                        (file-name-absolute-p (getenv "XDG_STATE_HOME"))
                        (expand-file-name "duet" (getenv "XDG_STATE_HOME")))
                   (concat host "~/.local/state/duet"))))
    (expand-file-name (concat "projects/" (substring name 0 (min 24 (length name))) "-" (substring hash 0 16)) home)))

(defun duet-project--marked (directory)
  "Return the nearest directory above DIRECTORY that is marked as a project."
  (locate-dominating-file
   directory
   (lambda (parent)
     (and (or (cl-some (lambda (name)
                         (let ((mark (expand-file-name name parent)))
                           (and (file-exists-p mark)
                                (or (and (duet-project--ours-p mark) (duet-project--ours-p parent))
                                    (duet-project--safe-p parent)))))
                       '(".duet.toml" ".git"))
              (file-exists-p (expand-file-name "project.json" (duet-project--state-directory parent))))
          (not (duet-project--reserved-p parent))))))

(defvar duet-connections)

(defun duet-project--of-worktree (directory)
  "Return the project of the session whose worktree contains DIRECTORY, or nil.
The server keeps worktrees beside the state of projects, by the same names."
  (when (string-match "\\`\\(.*/\\)worktrees/\\([^/]+-[0-9a-f]\\{16\\}\\)/[^/]+/" directory)
    (let* ((state (concat (match-string 1 directory) "projects/" (match-string 2 directory)))
           (record (concat state "/project.json"))
           (same (lambda (root)
                   (and (duet-remote-same-p root directory)
                        (file-equal-p (duet-project--state-directory root) state)))))
      (when (file-readable-p record)
        ;; An open project may have a name with links.
        (or (cl-find-if same (hash-table-keys duet-connections))
            (when-let ((root (duet-get-string
                              (with-temp-buffer
                                (insert-file-contents record)
                                (ignore-errors (json-parse-buffer :object-type 'plist)))
                              :root)))
              (setq root (file-name-as-directory (duet-remote-name root directory)))
              (and (funcall same root) root)))))))

(defun duet-project-root (directory)
  "Return the directory of the project that contains DIRECTORY.
It is the nearest one with a valid .duet.toml or .git, or with sessions,
as the server finds it, or else DIRECTORY.  In the worktree of a session,
return the project of the session.  A directory on a host is a project itself."
  (let ((directory (file-name-as-directory (expand-file-name directory))))
    (condition-case err
        (expand-file-name (or (and (duet-host-of directory) directory)
                              (duet-project--of-worktree directory)
                              (duet-project--marked directory)
                              directory))
      (file-error
       (if-let ((host (file-remote-p directory)))
           (user-error "Cannot look for a project on %s: %s" host (error-message-string err))
         (signal (car err) (cdr err)))))))

(defun duet-project-buffer-name (&optional host)
  "Return the name of the current buffer for a prompt.
For a file it is relative to the project, or to the worktree of a session.
If the prompt goes to HOST, the name says that the file is not there."
  (if buffer-file-name
      (concat (and host (format "[a file of another machine, not of %s] " host))
              (file-relative-name buffer-file-name
                                  (or (duet-project--marked default-directory)
                                      default-directory)))
    (buffer-name)))

(defun duet-project-confirm (directory)
  "Ask whether to work in DIRECTORY if it is in no project; return nil.
Signal a `user-error' if the user declines."
  (unless (or (duet-host-of directory)
              (duet-project--marked directory)
              (ignore-errors (project-current nil directory))
              (y-or-n-p (format "There is no project around %s; work in it? "
                                (duet-remote-abbreviate directory))))
    (user-error "Not started")))

;;; Requests

;; `duet-connection-request' returns at once, and a function gets the server's
;; reply.  A server that does not reply is an error like any other.

(cl-defstruct (duet-connection (:copier nil))
  "The connection of a project."
  (root nil :documentation "The project's directory.")
  (model nil :documentation "Its `duet-model'.")
  (rpc nil :documentation "The `duet-rpc-connection', or nil.")
  (state 'stopped :documentation "starting, ready, refused, lost or stopped.")
  (reason nil :documentation "The reason for which it is lost, in words.")
  (version nil :documentation "The server's version.")
  (local nil :documentation "The local project whose files the server can send to the host, or nil.")
  (attempts 0 :documentation "The number of starts since the server last ran well.")
  (timer nil :documentation "The timer of the next start.")
  (next nil :documentation "The time of the next start, in seconds since the epoch.")
  (asking nil :documentation "Ids of turns with an open request.")
  (trouble nil :documentation "Why its server cannot reach the daemon, in words, or nil."))

(defun duet-connection-host (connection)
  "Return the host of the project of CONNECTION, or nil."
  (duet-host-of (duet-connection-root connection)))

(defun duet-connection-project (connection)
  "Return the name of the project of CONNECTION for the user.
On a host it is such as devbox:parser."
  (duet-remote-project (duet-connection-root connection)))

(defun duet-connection-session (connection id)
  "Return the session of CONNECTION with ID, the id of a session or a turn, or nil."
  (duet-model-session (duet-connection-model connection) id))

(cl-defun duet-connection-request (connection method params
                                              &key success-fn error-fn exact)
  "Send the request METHOD with PARAMS to the server of CONNECTION; do not wait.
Call SUCCESS-FN with the result, or ERROR-FN with a property list of :code,
:message and :data.  If ERROR-FN is nil, show the error.  The code is -1 if
no server replies.  EXACT is as for `duet-rpc-request-async'.  Return the
request's id, or nil."
  (let ((fail (or error-fn
                  (lambda (err)
                    (message "Duet: %s" (duet-connection-error-text err)))))
        (rpc (duet-connection-rpc connection)))
    (condition-case err
        (if rpc
            (duet-rpc-request-async
             rpc method params
             :exact exact
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
  "Return the readable text of ERR, the argument of an ERROR-FN."
  (let ((text (or (duet-get-string err :message) "unknown error")))
    ;; People need only the sentence after the name of the code (docs/protocol.md).
    (duet-visible
     (replace-regexp-in-string
      (rx bos (or "Invalid params" "Invalid Request" "Internal error" "Task not found"
                  "Task not cancellable" "Queue full" "Subsystem unavailable" "Overloaded"
                  "Hub lost" "Hub silent")
          ": ")
      "" text t t))))

;;; Notifications

;; Events of the server go into the model (duet-events.el).  New sessions, and all
;; sessions at the start, are requested.

(defcustom duet-sessions-limit 300
  "Maximum number of sessions to list after a server has started."
  :type 'natnum
  :group 'duet)

(defun duet-connection--notified (connection method params)
  "Handle the notification METHOD with PARAMS of the server of CONNECTION."
  (let ((model (duet-connection-model connection)))
    (pcase method
      ('event
       (duet-events-apply model params)
       (duet-connection--event connection params))
      ('buildProgress (duet-model-announce model 'build-progress nil params))
      ('buildWarning (duet-model-announce model 'build-diagnostic nil params))
      ('heartbeat)
      (_ (duet-log "A notification that is not known: %s" method)))
    (when (duet-model-orphans model)
      (pcase-dolist (`(,turn . ,_) (duet-model-orphans model))
        (duet-connection-ask connection turn)))))

(defun duet-connection--event (connection event)
  "React to EVENT of the server of CONNECTION, which the model has."
  (let ((turn (duet-get-string event :turn_uuid))
        (data (duet-get event :data)))
    (pcase (duet-get-string event :kind)
      ("daemon.silent" (duet-connection--note-trouble connection (duet-get-string data :message)))
      ("daemon.answers" (duet-connection--note-trouble connection nil))
      ((or "change.made" "change.decided")
       (when-let ((path (duet-get-string data :path)))
         (duet-model-announce (duet-connection-model connection) 'file nil path)))
      ((or "turn.state" "approval.opened") (duet-connection--complete connection turn))
      ("item.added"
       (when (equal (duet-get-string data :subtype) "worktree")
         (duet-connection--worktree connection turn)))
      ((or "session.changed" "agent.session")
       (when (or (duet-get-string data :agent_mode) (duet-get-string data :mode :current))
         (duet-connection--mode connection turn))))))

(defun duet-connection--complete (connection id)
  "Request missing data of the session of the turn ID, or nil, from CONNECTION."
  (let* ((session (and id (duet-connection-session connection id)))
         (turn (and session (duet-session-turn session id))))
    (when (and id (or (null turn) (null (duet-turn-query turn))))
      (duet-connection-ask connection id))))

(defun duet-connection--mode (connection turn)
  "Ask the server of CONNECTION which mode is in force in the session of TURN.
Its agent has reported another mode of its own."
  (when-let ((session (and turn (duet-connection-session connection turn))))
    (duet-connection-ask connection (duet-session-leaf-id session))))

(defun duet-connection--worktree (connection id)
  "Announce that the worktree of the session with ID was landed or discarded.
Any client of CONNECTION's server may have done it."
  (when-let ((session (and id (duet-connection-session connection id))))
    (duet-model-announce (duet-connection-model connection) 'worktree session)
    (duet-connection-ask connection id)))

(defun duet-connection-ask (connection id)
  "Request the session with ID from the server of CONNECTION.
Load the reply into the model."
  (unless (member id (duet-connection-asking connection))
    (push id (duet-connection-asking connection))
    (let ((done (lambda ()
                  (setf (duet-connection-asking connection)
                        (remove id (duet-connection-asking connection)))))
          (asked (duet-model-clock (duet-connection-model connection)))
          (model (duet-connection-model connection)))
      (duet-connection-request
       connection 'turn.get (list :turn id)
       :success-fn (lambda (result)
                     (funcall done)
                     (when-let ((session (duet-pages-load-session
                                          model (duet-get result :turn) asked)))
                       (duet-model-announce model 'session session)
                       (when (duet-pages-old-p session asked)
                         (duet-connection-ask connection id))))
       :error-fn (lambda (err)
                   (funcall done)
                   (setf (duet-model-orphans model)
                         (cl-remove id (duet-model-orphans model)
                                    :key #'car :test #'equal))
                   (duet-log "Session %s: %s" id (plist-get err :message)))))))

(defun duet-connection--refresh (connection)
  "Request the sessions and open questions of CONNECTION, which is ready."
  (duet-connection--list connection nil 0)
  (let* ((model (duet-connection-model connection))
         (asked (duet-model-clock model)))
    (duet-connection-request
     connection 'approval.list nil
     :success-fn (lambda (result)
                   (duet-pages-load-approvals model (duet-get result :approvals) asked))
     :error-fn (lambda (err) (duet-log "approval.list: %s" (plist-get err :message))))))

(defun duet-connection--list (connection before count)
  "Request the sessions of CONNECTION older than BEFORE, after the first COUNT.
They arrive in small pages, since Emacs blocks while it parses a page."
  (let* ((model (duet-connection-model connection))
         (asked (duet-model-clock model)))
    (duet-connection-request
     connection 'session.list
     `(:limit 50 ,@(and before (list :before before)))
     :success-fn
     (lambda (result)
       (let ((sessions (duet-get result :sessions))
             (next (duet-get-string result :next_before)))
         (setf (duet-model-listed model) t)
         (dolist (session (duet-pages-load-sessions model sessions asked))
           (duet-connection-ask connection (duet-session-leaf-id session)))
         (setq count (+ count (length sessions)))
         (when (and next (< count duet-sessions-limit))
           (duet-connection--list connection next count))))
     :error-fn (lambda (err)
                 (unless (eql (plist-get err :code) -1)
                   (message "Duet: %s" (duet-connection-error-text err)))))))

;;; Connections

(defcustom duet-restart-delays '(1 2 4 8 16 30)
  "Seconds to wait before a server that died is started again.
The last number holds for all later attempts."
  :type '(repeat number)
  :group 'duet)

(defcustom duet-events-buffer-size 0
  "Maximum number of characters of a server's messages to keep for debugging.
They are in the buffer that jsonrpc.el makes; keeping them takes much time."
  :type 'natnum
  :group 'duet)

(defvar duet-connection-trust-function #'ignore
  "Function that returns whether the user trusts a project.
Its argument is the project's directory.  It is called at each start of a
server, and must return at once.  `restricted' forbids all commands of the
project's .duet.toml for this Emacs, even if they were trusted before.
Another non-nil value permits them, and nil leaves that to `duet-trust'.")

(defconst duet-connection-version "0.1"
  "The first two numbers of the server's version that this package is for.")

(defvar duet-connection--patience 3
  "Seconds that a server may take to end after a request to stop.")

(defvar duet-connection--well 30
  "Seconds without a failure after which `duet-restart-delays' begin anew.")

(defvar duet-connection--mended 5
  "Seconds after a refusal until the next attempt to subscribe.")

(defvar duet-connections (make-hash-table :test #'equal)
  "The connections, by the directories of their projects.
A project has one connection for this machine, and one for each host.")

(defvar-local duet-connection nil
  "The connection of the buffer.")

(defun duet-connection-ensure (directory &optional ask)
  "Return the connection of the project that contains DIRECTORY.
Start its server if there is none; do not wait for it.  If ASK is non-nil,
ask the user before the first start outside of a project."
  (let* ((root (duet-project-root directory))
         (connection (or (gethash root duet-connections)
                         (and ask (duet-project-confirm directory))
                         (puthash root (make-duet-connection
                                        :root root
                                        :model (duet-model-create :root root))
                                  duet-connections))))
    ;; The server sends the files of the project in which it runs.
    (when-let ((local (duet-host-local-project root)))
      (unless (equal local (duet-connection-local connection))
        (duet-connection-stop connection)))
    (when (eq (duet-connection-state connection) 'stopped)
      (duet-connection--start connection t))
    connection))

(defun duet-connection-of (model)
  "Return the connection that feeds MODEL, or nil."
  (gethash (duet-model-root model) duet-connections))

(defun duet-connection-directory (connection &optional session)
  "Return the working directory of SESSION's agent, as Emacs can visit it.
Without SESSION, or if its worktree is gone, return the directory of the
project of CONNECTION."
  (let ((root (duet-connection-root connection))
        (cwd (and session (not (duet-session-lost-worktree-p session))
                  (duet-session-cwd session))))
    (file-name-as-directory (if cwd (duet-remote-name cwd root) root))))

(defun duet-connection-buffer (connection kind mode &optional observer)
  "Return the buffer of KIND, a string, for CONNECTION; create it if needed.
A new one gets the major mode MODE, and OBSERVER follows the model there."
  (let* ((root (duet-connection-root connection))
         (buffer (get-buffer-create
                  (format "*duet %s: %s*" kind (duet-remote-abbreviate root)))))
    (with-current-buffer buffer
      (unless (derived-mode-p mode)
        (funcall mode)
        (when observer (duet-model-follow observer (duet-connection-model connection))))
      (setq duet-connection connection
            default-directory (file-name-as-directory root)))
    buffer))

(defun duet-connection-status (connection)
  "Return the state of CONNECTION as a short string; nil if it is ready."
  (pcase (duet-connection-state connection)
    ('starting "starting…")
    ('ready (when-let ((trouble (duet-connection-trouble connection)))
              (duet-visible-line trouble)))
    ('stopped "stopped")
    ('refused "the server has no sessions")
    ('lost (format "server lost%s"
                   (if-let ((next (duet-connection-next connection)))
                       (format ", next try in %d s"
                               (max 0 (ceiling (- next (float-time)))))
                     "")))))

(defun duet-connection--enter (connection state &optional reason)
  "Set the state of CONNECTION to STATE, for REASON, and announce it."
  (setf (duet-connection-state connection) state
        (duet-connection-reason connection) reason
        (duet-connection-trouble connection) nil)
  (duet-model-announce (duet-connection-model connection) 'connection nil state))


(defun duet-connection--note-trouble (connection trouble)
  "Record TROUBLE of the server of CONNECTION with its daemon, in words.
TROUBLE is nil if there is none.  Announce a change."
  (unless (equal trouble (duet-connection-trouble connection))
    (setf (duet-connection-trouble connection) trouble)
    (duet-model-announce (duet-connection-model connection) 'connection nil 'trouble)))


;;;; Start and end

(defun duet-connection--start (connection &optional loud)
  "Start the server of CONNECTION.
If that fails, the connection is lost.  If LOUD is non-nil, signal the
error instead; a stopped connection then stays stopped."
  (when-let ((timer (duet-connection-timer connection)))
    (cancel-timer timer)
    (setf (duet-connection-timer connection) nil
          (duet-connection-next connection) nil))
  (cl-incf (duet-connection-attempts connection))
  (condition-case err
      (let* ((duet-rpc-events-buffer-size duet-events-buffer-size)
             (root (duet-connection-root connection))
             (default-directory (if (duet-host-of root) (duet-host-local-directory root) root))
             rpc)
        (setf (duet-connection-local connection) (duet-host-local-project root))
        (setq rpc (duet-rpc-connect
                   :name (format "duet %s" (duet-remote-abbreviate root))
                   :directory root
                   :notification-dispatcher
                   (lambda (_ method params)
                     (duet-connection--notified connection method params))
                   :request-dispatcher
                   (lambda (_ method params) (duet-editor-answer connection method params))
                   :on-shutdown
                   (lambda (rpc) (duet-connection--ended connection rpc))))
        (setf (duet-connection-rpc connection) rpc)
        (duet-connection--enter connection 'starting)
        (duet-connection--greet connection))
    (error
     (if loud
         (progn
           (setf (duet-connection-attempts connection) 0)
           ;; Else no timer would retry.
           (when (eq (duet-connection-state connection) 'lost)
             (duet-connection--lose connection (error-message-string err)))
           (signal (car err) (cdr err)))
       (duet-connection--lose connection (error-message-string err)
                              (duet-remote-tramp-p (duet-connection-root connection)))))))

(defun duet-connection--start-again (connection)
  "Start the server of CONNECTION once Emacs no longer waits for its machine."
  (if (duet-remote-busy-p (duet-connection-root connection))
      (setf (duet-connection-timer connection)
            (run-at-time 0.1 nil #'duet-connection--start-again connection))
    (duet-connection--start connection)))

(defun duet-connection--greet (connection)
  "Initialize the server of CONNECTION, and subscribe to its events."
  (duet-connection-request
   connection 'initialize
   (append
    (list :capabilities (list :client (list :name "emacs" :version emacs-version)))
    (when-let ((trust (duet-log-guard "duet-connection-trust-function"
                        (funcall duet-connection-trust-function
                                 (duet-connection-root connection)))))
      ;; The user trusts a project on a host only there.
      (when (or (eq trust 'restricted) (not (duet-connection-host connection)))
        (list :workspaceTrusted (if (eq trust 'restricted) :json-false t)))))
   :success-fn
   (lambda (result)
     (duet-connection--check-version connection
                                     (duet-get-string result :serverInfo :version))))
  (duet-editor-offer connection)
  (duet-connection--subscribe connection))

(defun duet-connection--subscribe (connection)
  "Subscribe to the events of the server of CONNECTION.
If the server refuses, because of a problem with the project, try again
later: the user may have solved the problem."
  (duet-connection-request
   connection 'event.subscribe
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
  "Record the VERSION of the server of CONNECTION; warn once if it differs."
  (unless (equal version (duet-connection-version connection))
    (setf (duet-connection-version connection) version)
    (unless (and version
                 (string-prefix-p (concat duet-connection-version ".") version))
      (display-warning
       'duet (format "The program %s is version %s, and this package is for %s; update the older one"
                     (car (duet-rpc-process-words)) (or version "unknown")
                     duet-connection-version)))))

(defun duet-connection--ended (connection rpc)
  "Handle the end of RPC, the server of CONNECTION."
  ;; Other callers that wait for its standard error may read it, too.
  (run-at-time 1 nil #'duet-connection--bury rpc)
  (when (eq rpc (duet-connection-rpc connection))
    (setf (duet-connection-rpc connection) nil)
    (unless (eq (duet-connection-state connection) 'stopped)
      ;; Its standard error comes through another pipe; do not wait for it here.
      (run-at-time 0 nil
                   (lambda ()
                     (unless (or (duet-connection-rpc connection)
                                 (eq (duet-connection-state connection) 'stopped))
                       (duet-connection--lose connection (duet-rpc-obituary rpc)
                                              (duet-rpc-unreachable-p rpc))))))))

(defun duet-connection--bury (rpc)
  "Log the last standard error of RPC's server, and kill the buffers of RPC."
  (when-let ((buffer (jsonrpc-stderr-buffer rpc)))
    (when (buffer-live-p buffer)
      (with-current-buffer buffer
        (unless (zerop (buffer-size))
          (duet-log "The server's last words:\n%s"
                    (buffer-substring-no-properties
                     (max (point-min) (- (point-max) 1500)) (point-max)))))))
  (dolist (buffer (list (process-buffer (jsonrpc--process rpc))
                        (jsonrpc-stderr-buffer rpc)))
    ;; The next server has the name of this one, and so its buffers.  Killing a
    ;; buffer ends the process that writes into it.
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
  "Set CONNECTION to lost for REASON, and restart its server later.
Do not restart it if its machine is UNREACHABLE.  That would freeze Emacs
while it tries, and might ask for a password at any time."
  (let* ((attempts (duet-connection-attempts connection))
         (delay (or (nth (max 0 (1- attempts)) duet-restart-delays)
                    (car (last duet-restart-delays)) 30)))
    (duet-log "%s: %s" (duet-connection-root connection) reason)
    (setf (duet-connection-next connection) (and (not unreachable) (+ (float-time) delay))
          (duet-connection-timer connection)
          (and (not unreachable)
               (run-at-time delay nil #'duet-connection--start-again connection)))
    ;; Report it once, not with each attempt.
    (cond (unreachable
           (message "Duet: %s; g in the list of sessions tries again" reason))
          ((<= attempts 1)
           (message "Duet: %s; another try in %s s" reason delay)))
    (duet-connection--enter connection 'lost reason)))

(defun duet-connection-stop (connection)
  "End the server of CONNECTION and do not start it again.
Agents continue in the project's daemon."
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
  "Kill PROCESS, a server that should have ended, if it still runs."
  (when (process-live-p process)
    (delete-process process)))

(defun duet-connection-restart (connection)
  "Start the server of CONNECTION, now."
  (interactive (list (duet-connection-here)))
  (if (duet-connection-rpc connection)
      (message "Duet: the server is running")
    (setf (duet-connection-attempts connection) 0)
    (duet-connection--start connection t)))

(defvar-local duet-connection-root-at-point-function nil
  "Function that returns the root of the project at point.
It is for buffers of several projects.")

(defun duet-connection-directory-here ()
  "Return a directory of the project of the buffer, or of the project at point.
If `duet-host' names a host, it is the directory there."
  (or (and duet-connection (duet-connection-root duet-connection))
      (and duet-connection-root-at-point-function
           (funcall duet-connection-root-at-point-function))
      (duet-host-directory default-directory)))

(defun duet-connection-read-directory ()
  "Read a host and the directory of a project there.
If the user chooses this machine, read a directory here."
  (or (duet-host-read default-directory)
      (read-directory-name "Project: "
                           (and (duet-host-of default-directory) (duet-host-local-directory))
                           nil t)))

(defun duet-connection-read-host ()
  "Read a host and the directory of a project there, and connect to it.
Connect to nothing if the user chooses this machine."
  (when-let ((directory (duet-host-read default-directory)))
    (duet-connection-ensure directory)))

(defun duet-connection-here (&optional session)
  "Return the connection of the current buffer's project, for a command.
In a buffer of several projects, use that of SESSION, or the project at
point if SESSION is nil: the list may have changed while the command waited
for a server or for the user.  Outside of a project, ask the user."
  (or duet-connection
      (and session
           (duet-connection-ensure (duet-model-root (duet-session-model session))))
      (duet-connection-ensure (duet-connection-directory-here) t)))

(defun duet-only-in (mode)
  "Signal a `user-error' unless the current buffer is in MODE; return nil.
It protects other buffers from commands that would harm them."
  (unless (derived-mode-p mode)
    (user-error "This is for buffers in %s only"
                (string-remove-suffix "-mode" (symbol-name mode)))))

(defun duet-connection-refresh (connection)
  "Request the sessions and open questions of the server of CONNECTION."
  (if (eq (duet-connection-state connection) 'refused)
      (duet-connection--subscribe connection) ; which refreshes
    (duet-connection--refresh connection)))

;;; Latest reply

;; A view that sends a second request before the first reply gets two replies.  The
;; older one may arrive last; it is outdated and is ignored.

(defvar-local duet-latest--asked 0
  "The number of requests of the buffer so far.")

(defvar-local duet-latest--answered 0
  "The number of the last request with a reply.")

(defun duet-latest (function)
  "Return a handler for the reply to the current request of the buffer.
It calls FUNCTION with its arguments in the current buffer, if that is
live.  It ignores a reply if the reply to a later request came before."
  (let ((buffer (current-buffer))
        (number (cl-incf duet-latest--asked)))
    (lambda (&rest arguments)
      (when (and (buffer-live-p buffer)
                 (> number (buffer-local-value 'duet-latest--answered buffer)))
        (with-current-buffer buffer
          (setq duet-latest--answered number)
          (apply function arguments))))))

(provide 'duet-connection)
;;; duet-connection.el ends here
