;;; duet-test-lib.el --- Helpers for the tests of Duet  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-test-with-project' runs a test in a new project with the real server, which
;; DUET_RPC_BIN names, and the demo agent.  Tests wait for conditions with a deadline,
;; and never for a fixed time.

;;; Code:

;; Before any library derives a file from them: no test touches the home of its user.
(let ((home (file-name-as-directory (make-temp-file "duet-home" t))))
  ;; They may begin with "~".
  (setq default-directory (expand-file-name default-directory)
        command-line-default-directory (expand-file-name command-line-default-directory))
  (setenv "HOME" home)
  (setq user-emacs-directory (concat home ".emacs.d/"))
  (make-directory user-emacs-directory)
  (when (bound-and-true-p native-comp-eln-load-path)
    (setq native-comp-eln-load-path
          (cons (concat user-emacs-directory "eln-cache/") (cdr native-comp-eln-load-path))))
  (add-hook 'kill-emacs-hook (lambda () (delete-directory home t))))

(require 'cl-lib)
(require 'ert)
(require 'tramp)
(require 'duet)
(require 'duet-daemon-test-lib)

;; Prompts of tests do not go into the user's history.
(setq duet-compose-history-file nil)

;; Most tests are about a transcript without the reply box.
(setq duet-reply-box nil)

(defconst duet-test-deadline 180
  "Maximum time of a wait in seconds; only a broken server takes that long.")

(define-advice tramp-wait-for-regexp (:around (wait &rest arguments) duet-test-deadline)
  "Call WAIT with ARGUMENTS and a deadline: TRAMP itself may wait forever."
  (let ((end (+ (float-time) duet-test-deadline))
        (accept (symbol-function 'tramp-accept-process-output)))
    (cl-letf (((symbol-function 'tramp-accept-process-output)
               (lambda (process &rest _)
                 (when (> (float-time) end) (error "TRAMP waits for %S" arguments))
                 (funcall accept process 0.1))))
      (apply wait arguments))))

(defun duet-test-server ()
  "Return the command that starts the server."
  (let ((program (getenv "DUET_RPC_BIN")))
    (unless (and program (file-executable-p program))
      (ert-fail (format "DUET_RPC_BIN must name the duet-rpc binary, it is %S" program)))
    (list (expand-file-name program))))

(defun duet-test-need (program)
  "Skip the test without PROGRAM; with CI=true that is a failure."
  (unless (executable-find program)
    (if (equal (getenv "CI") "true")
        (ert-fail (format "%s is not installed; run .ci/install" program))
      (ert-skip (format "%s is not installed" program)))))

(defmacro duet-test-wait-for (condition &optional seconds)
  "Wait until CONDITION is non-nil and return its value.
Fail after SECONDS, or after `duet-test-deadline' if nil."
  `(duet-test-wait-for-1 (lambda () ,condition) ',condition
                         (or ,seconds duet-test-deadline)))

(defmacro duet-test-with-project (name &rest body)
  "Run BODY in a new project, with NAME bound to its connection.
Afterwards all its processes and buffers are gone."
  (declare (indent 1) (debug (symbolp body)))
  `(duet-test-call-with-project (lambda (,name) (ignore ,name) ,@body)))

(defun duet-test-call-with-project (function)
  "Call FUNCTION with the connection of a new project."
  (let* ((duet-rpc-command (duet-test-server))
         (home (file-name-as-directory (make-temp-file "duet-test" t)))
         (root (concat home "project/"))
         (process-environment
          (append (duet-daemon-test-environment home)
                  '("DUET_DEMO_DELAY=2ms")
                  process-environment))
         (duet-connections (make-hash-table :test #'equal))
         (duet-model-observers nil)
         (duet-restart-delays '(0.05 0.1 0.2))
         (inhibit-message t)
         (buffers (buffer-list)))
    (make-directory root)
    (make-directory (concat home "config"))
    (with-temp-file (concat root ".duet.toml")
      (insert "default_agent = \"demo\"\n"))
    (with-current-buffer (get-buffer-create duet-log-buffer)
      (let ((inhibit-read-only t)) (erase-buffer)))
    (unwind-protect
        (let* ((default-directory root)
               (connection (duet-connection-ensure root)))
          (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
          (unwind-protect (funcall function connection)
            (duet-test-end connection)))
      ;; Do not restart a server whose project is gone.
      (dolist (timer timer-list)
        (when (and (eq (timer--function timer) #'duet-connection--start-again)
                   (equal (duet-connection-root (car (timer--args timer))) root))
          (cancel-timer timer)))
      (maphash (lambda (_ connection) (duet-test-end connection)) duet-connections)
      (duet-daemon-test-end-all home)
      (dolist (buffer (buffer-list))
        (unless (or (memq buffer buffers) (not (buffer-live-p buffer))
                    (equal (buffer-name buffer) duet-log-buffer))
          (with-current-buffer buffer (set-buffer-modified-p nil))
          (kill-buffer buffer)))
      ;; A buffer that stays must not be in a directory that is gone.
      (dolist (buffer (buffer-list))
        (with-current-buffer buffer
          (when (string-prefix-p home default-directory)
            (setq default-directory temporary-file-directory))))
      ;; An agent may still be writing.
      (duet-test-wait-for (ignore-error file-error (delete-directory home t) t)))))

(defmacro duet-test-with-agent (script default folder &rest body)
  "Run BODY in the list of sessions of a project that has the agent theirs.
The program of the agent is SCRIPT, in FOLDER, which is bound to the directory
of the user's configuration.  DEFAULT is the default agent; `connection' is
bound to the connection of the project."
  (declare (indent 3) (debug (form form symbolp body)))
  `(duet-test-with-project connection
     (let* ((,folder (expand-file-name "../config/duet/" (duet-connection-root connection)))
            (program (expand-file-name "theirs" ,folder)))
       (make-directory ,folder t)
       (with-temp-file program (insert ,script))
       (set-file-modes program #o700)
       (with-temp-file (expand-file-name "config.toml" ,folder)
         (insert (format "default_agent = %S\n[agents.theirs]\ndriver = \"acp\"\ncommand = [%S]\n"
                         ,default program)))
       (with-current-buffer (duet-sessions-buffer connection) ,@body))))

(defun duet-test-end (connection)
  "End the server of CONNECTION and wait for its end; its daemon continues."
  (when-let ((timer (duet-connection-timer connection)))
    (cancel-timer timer))
  (setf (duet-connection-state connection) 'stopped)
  (when-let ((rpc (duet-connection-rpc connection)))
    (setf (duet-connection-rpc connection) nil)
    (duet-rpc-shutdown rpc)
    (duet-connection--bury rpc)))

(defun duet-test-daemon (directory)
  "Return the process id of the daemon of the project DIRECTORY, or nil."
  (duet-daemon-test-pid (duet-project--state-directory directory)))

(defun duet-test-end-daemon (directory)
  "End the daemon of the project DIRECTORY and wait for its end."
  (duet-daemon-test-end (duet-project--state-directory directory)))

(defun duet-test-kill-daemon (connection)
  "Kill the daemon of CONNECTION, and wait until another one runs."
  (let* ((root (duet-connection-root connection))
         (pid (duet-test-daemon root)))
    (signal-process pid 'SIGKILL)
    (duet-test-wait-for (not (memq (duet-test-daemon root) (list nil pid))))))

(defun duet-test-kill-server (connection)
  "Kill the server of CONNECTION and wait until Emacs notices."
  (let ((rpc (duet-connection-rpc connection)))
    (signal-process (process-id (jsonrpc--process rpc)) 'SIGKILL)
    (duet-test-wait-for (not (eq (duet-connection-rpc connection) rpc)))))

(defun duet-test-wait-for-1 (condition form seconds)
  "Wait until CONDITION is non-nil, for SECONDS at most; FORM is its source."
  (let ((deadline (+ (float-time) seconds))
        value)
    (while (not (setq value (funcall condition)))
      (when (> (float-time) deadline)
        (ert-fail (format "Waited %s s for %S; the log ends with: %s" seconds form
                          (with-current-buffer (get-buffer-create duet-log-buffer)
                            (buffer-substring (max (point-min) (- (point-max) 2000))
                                              (point-max))))))
      (accept-process-output nil 0.02))
    value))

;; On a slow machine a time may be a second longer than a test expects.
(defvar duet-test-now nil
  "The time while `duet-test-with-clock-stopped' has stopped the clock.")

(defmacro duet-test-with-clock-stopped (&rest body)
  "Run BODY with the clock stopped at `duet-test-now'."
  (declare (indent 0) (debug t))
  `(let ((duet-test-now (current-time)))
     (cl-letf (((symbol-function 'time-since)
                (lambda (time) (time-subtract duet-test-now time))))
       ,@body)))

(defun duet-test-request (connection method params)
  "Request METHOD with PARAMS of CONNECTION, wait, and return the result."
  (let (outcome)
    (duet-connection-request connection method params
                             :success-fn (lambda (result) (setq outcome (list :ok result)))
                             :error-fn (lambda (err) (setq outcome (list :error err))))
    (duet-test-wait-for outcome)
    (if (eq (car outcome) :ok)
        (cadr outcome)
      (ert-fail (format "%s: %S" method (cadr outcome))))))

(defun duet-test-launch (connection query &rest more)
  "Launch a session for QUERY through CONNECTION; return it.
MORE are other parameters of session.start."
  (let ((uuid (duet-get-string (duet-test-request connection 'session.start
                                                  (cl-list* :prompt query more))
                               :session_uuid)))
    (duet-test-wait-for (duet-connection-session connection uuid))))

(defun duet-test-wait-for-state (session &rest states)
  "Wait until SESSION is in one of STATES."
  (duet-test-wait-for (memq (duet-session-state session) states)))

(defun duet-test-text (buffer)
  "Return the text of BUFFER with all pending updates."
  (with-current-buffer buffer
    (when (derived-mode-p 'duet-transcript-mode) (duet-transcript-flush))
    (buffer-substring-no-properties (point-min) (point-max))))

(defmacro duet-test-wait-for-text (buffer regexp)
  "Wait until BUFFER has text that REGEXP matches."
  `(duet-test-wait-for (string-match-p ,regexp (duet-test-text ,buffer))))

(defun duet-test-write-and-send (text)
  "Write TEXT into the compose buffer that was just opened, and send it."
  (should (derived-mode-p 'duet-compose-mode))
  (insert text)
  (call-interactively #'duet-compose-send))

(defun duet-test-wait-for-transcript (&optional not)
  "Wait until the selected window shows a transcript other than NOT; return it.
Make it the current buffer."
  (set-buffer (duet-test-wait-for
               (let ((buffer (window-buffer)))
                 (and (not (eq buffer not))
                      (with-current-buffer buffer
                        (derived-mode-p 'duet-transcript-mode))
                      buffer)))))

(defun duet-test-press (keys command &optional prefix)
  "Press KEYS at point, and check that they call COMMAND.
KEYS are in the syntax of `kbd'.  PREFIX is the prefix argument."
  (let* ((keys (kbd keys))
         (last-command-event (aref keys (1- (length keys))))
         (last-input-event last-command-event)
         (this-command command)
         (current-prefix-arg prefix))
    (should (eq (key-binding keys) command))
    (call-interactively command nil (vconcat keys))))

(defun duet-test-click (command)
  "Click at point in the selected window, and check that it calls COMMAND.
Point is at the beginning of the buffer during the call."
  (let* ((click (list 'mouse-2 (list (selected-window) (point) '(0 . 0) 0)))
         (last-command-event click)
         (last-input-event click)
         (this-command command))
    (should (eq (current-buffer) (window-buffer)))
    (should (eq (key-binding [mouse-2]) command))
    (goto-char (point-min))
    (call-interactively command nil (vector click))))

(defun duet-test-look ()
  "Make the buffer of the selected window current; return it."
  (set-buffer (window-buffer)))

(defmacro duet-test-typing (keys &rest body)
  "Evaluate BODY with KEYS, in the syntax of `kbd', as minibuffer input.
A question that reads one key in a window reads a RET after it here.  If KEYS
are too few, \\`C-g' follows."
  (declare (indent 1) (debug (form body)))
  ;; While a macro runs, the minibuffer does not read standard input.
  `(let ((executing-kbd-macro t)
         (use-dialog-box nil)
         (unread-command-events (append (listify-key-sequence (kbd ,keys))
                                        (make-list 3 ?\C-g))))
     ,@body))

(defmacro duet-test-should-quit (keys &rest body)
  "Check that BODY quits with KEYS as input, see `duet-test-typing'."
  (declare (indent 1) (debug (form body)))
  `(should (eq 'quit (condition-case nil (duet-test-typing ,keys ,@body) (quit 'quit)))))

(defmacro duet-test-with-no-machine (directory &rest body)
  "Run BODY with DIRECTORY bound to one on an unreachable machine.
TRAMP fails at once."
  (declare (indent 1) (debug (symbolp body)))
  `(let ((tramp-methods (cons '("away" (tramp-login-program "false") (tramp-login-args (("%h")))
                                (tramp-remote-shell "/bin/sh") (tramp-remote-shell-args ("-c"))
                                (tramp-connection-timeout 10))
                              tramp-methods))
         (tramp-verbose 0)
         (,directory "/away:box:/tmp/"))
     (unwind-protect (progn ,@body)
       (tramp-cleanup-all-connections)
       (tramp-cleanup-all-buffers))))

(defmacro duet-test-should-say (regexp &rest body)
  "Check that BODY signals a `user-error' whose text REGEXP matches."
  (declare (indent 1) (debug (form body)))
  `(should (string-match-p ,regexp
                           (cadr (should-error (progn ,@body) :type 'user-error)))))

(defvar duet-test-said nil
  "Messages in the echo area, the last first.")

(defmacro duet-test-listening (&rest body)
  "Evaluate BODY; `duet-test-heard' searches the messages meanwhile."
  (declare (indent 0) (debug (body)))
  `(let ((duet-test-said nil))
     (cl-letf (((symbol-function 'message) #'duet-test-note))
       ,@body)))

(defun duet-test-note (format &rest arguments)
  "Record the message of FORMAT and ARGUMENTS, which are those of `message'."
  (when format
    (push (apply #'format-message format arguments) duet-test-said)
    (car duet-test-said)))

(defun duet-test-heard (regexp)
  "Return non-nil if REGEXP matches a recorded message."
  (cl-some (lambda (line) (string-match-p regexp line)) duet-test-said))

(defun duet-test-log ()
  "Return the text of the log."
  (with-current-buffer (get-buffer-create duet-log-buffer)
    (buffer-substring-no-properties (point-min) (point-max))))

(defmacro duet-test-with-questions (name &rest body)
  "Run BODY in a new project, with NAME bound to its connection.
Questions are shown, and messages are recorded."
  (declare (indent 1) (debug (symbolp body)))
  `(duet-test-with-project ,name
     (let ((global-mode-string '(""))
           (duet-approvals--lighter-text nil))
       (duet-model-add-observer #'duet-approvals--observe)
       (duet-test-listening
         (unwind-protect (save-window-excursion ,@body)
           (when duet-approvals--timer
             (cancel-timer duet-approvals--timer)
             (setq duet-approvals--timer nil)))))))


;;; Questions

(defun duet-test-question (session)
  "Wait until SESSION has an open question, and return it."
  (duet-test-wait-for (car (duet-session-approvals session))))

(defmacro duet-test-with-question (names query &rest body)
  "Run BODY in a new project in which the agent asks for approval.
NAMES is a list of three symbols: for the connection, the session of the
prompt QUERY, and its question."
  (declare (indent 2) (debug (sexp form body)))
  (pcase-let ((`(,connection ,session ,approval) names))
    `(duet-test-with-questions ,connection
       (let* ((,session (duet-test-launch ,connection ,query))
              (,approval (duet-test-question ,session)))
         (ignore ,session ,approval)
         ,@body))))

(defun duet-test-approval (connection approval)
  "Return the server's data of the question APPROVAL of CONNECTION."
  (duet-get (duet-test-request connection 'approval.get
                               (list :approval (duet-approval-id approval)))
            :approval))

(defun duet-test-questions-text ()
  "Return the current text of the list of questions."
  (duet-approvals-flush)
  (with-current-buffer "*duet questions*"
    (buffer-substring-no-properties (point-min) (point-max))))

(defun duet-test-go-to-question (approval)
  "Go to APPROVAL in the list of questions."
  (duet-approvals)
  (goto-char (point-min))
  (while (not (eq (tabulated-list-get-id) approval))
    (should (zerop (forward-line 1)))))

(defun duet-test-demo-file (connection)
  "Return the content of the file that the demo agent of CONNECTION edits, or nil."
  (let ((file (expand-file-name "demo.txt" (duet-connection-root connection))))
    (and (file-exists-p file)
         (with-temp-buffer (insert-file-contents file) (buffer-string)))))

(defun duet-test-go (text)
  "Go to the first line that contains TEXT."
  (goto-char (point-min))
  (search-forward text)
  (beginning-of-line))

(provide 'duet-test-lib)
;;; duet-test-lib.el ends here
