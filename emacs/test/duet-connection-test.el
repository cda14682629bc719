;;; duet-connection-test.el --- Tests of connections that lose their server  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(defun duet-connection-test-note-states (connection)
  "Return a function that returns the states of CONNECTION since this call.
The last state is the first element."
  (let ((states '()))
    (duet-model-add-observer
     (lambda (_ kind _session state _extra)
       (when (eq kind 'connection) (push state states)))
     (duet-connection-model connection))
    (lambda () states)))

(ert-deftest duet-connection-test-one-for-each-project ()
  "Directories of one project share a connection."
  (duet-test-with-project connection
    (let ((folder (expand-file-name "a/b/" (duet-connection-root connection))))
      (make-directory folder t)
      (should (eq (duet-connection-ensure folder) connection))
      (should (eq (with-temp-buffer
                    (setq default-directory folder)
                    (duet-connection-here))
                  connection))
      (duet-test-with-no-machine away
        (should-error (duet-connection-ensure away) :type 'user-error)))))

(ert-deftest duet-connection-test-server-is-killed ()
  "A turn continues when its server is killed, and buffers resume in place."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet stream:60@40"))
           (buffer (duet-transcript-open connection session))
           (states (duet-connection-test-note-states connection)))
      (duet-test-wait-for-text buffer "chunk 3 ")
      (duet-test-kill-server connection)
      (duet-test-wait-for (equal (funcall states) '(ready starting lost)))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "chunk 60 ")
      (let ((text (duet-test-text buffer)))
        (should-not (string-match-p "Interrupted" text))
        (dotimes (n 60)
          (should (= (length (split-string text (format "chunk %d " (1+ n)))) 2)))))))

;; The daemon may notice late that a client has gone.  This waits until the only client
;; is the caller.
(ert-deftest duet-connection-test-work-goes-on ()
  "The next server of Emacs reports that work continued without a client."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet stream:1000000@100"))
           (turn (duet-session-leaf session)))
      (duet-test-wait-for-state session 'running)
      (duet-connection-stop connection)
      (duet-test-wait-for
       (string-match-p "\"clients\":1\\b"
                       (with-output-to-string
                         (call-process (car (duet-rpc-process-words)) nil standard-output nil
                                       "daemon" "status" "--json"))))
      (duet-test-listening
        (duet-connection-restart connection)
        (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
        (should (duet-test-heard "Duet: 1\\.1 continued without an editor")))
      (duet-test-request connection 'turn.interrupt (list :turn (duet-turn-id turn)))
      (duet-test-wait-for-state session 'interrupted))))

(ert-deftest duet-connection-test-daemon-is-killed ()
  "After a kill -9 of the daemon during a turn, buffers resume in place."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet stream:1000@50"))
           (buffer (duet-transcript-open connection session))
           (states (duet-connection-test-note-states connection)))
      (duet-test-wait-for-text buffer "chunk 3 ")
      (duet-test-kill-daemon connection)
      (duet-test-wait-for-state session 'interrupted)
      (duet-test-wait-for-text buffer "chunk 3 \\(.*\\)\n\n■ Interrupted")
      (let ((text (duet-test-text buffer)))
        (should (= (length (split-string text "chunk 3 ")) 2))
        (should (= (length (split-string text "Interrupted")) 2)))
      (with-current-buffer buffer
        (save-window-excursion
          (call-interactively #'duet-continue)
          (duet-test-write-and-send "quiet after all")))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "❯ quiet after all\n\nHello")
      ;; The server has connected to a new daemon.
      (should-not (funcall states)))))

(ert-deftest duet-connection-test-pending-when-the-daemon-is-killed ()
  "Every pending request gets a reply when the daemon is killed."
  (duet-test-with-project connection
    (let ((pid (duet-test-daemon default-directory))
          failure answered)
      ;; The daemon accepts requests and answers none.
      (signal-process pid 'SIGSTOP)
      (duet-connection-request connection 'session.list nil
                               :success-fn (lambda (_) (setq answered t))
                               :error-fn (lambda (err) (setq failure err)))
      (signal-process pid 'SIGKILL)
      ;; The server may notice the end of the daemon first; then the next daemon answers.
      (duet-test-wait-for (or failure answered))
      (should (or answered (eql (plist-get failure :code) -32042)))
      (should (duet-test-request connection 'session.list nil))
      (should (eq (duet-connection-state connection) 'ready)))))

(ert-deftest duet-connection-test-questions-survive ()
  "A question stays open when the server is killed.
If the daemon is killed the question becomes stale."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-test-question session)))
      (duet-test-kill-server connection)
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
      (duet-test-wait-for (equal (mapcar #'duet-approval-id (duet-session-approvals session))
                                 (list (duet-approval-id approval))))
      (should-not (duet-approval-stale (car (duet-session-approvals session))))
      (should (eq (duet-session-state session) 'waiting_input))
      (duet-test-kill-daemon connection)
      (duet-test-wait-for-state session 'interrupted)
      (let ((stale (duet-test-wait-for
                    (cl-find-if #'duet-approval-stale
                                (duet-session-approvals session)))))
        (should (= (length (duet-session-approvals session)) 1))
        (duet-test-request connection 'approval.decide
                           (list :approval (duet-approval-id stale)
                                 :decision "deny" :comment "no"))
        (duet-test-wait-for (null (duet-session-approvals session)))))))

(ert-deftest duet-connection-test-backoff ()
  "A server that fails to start is restarted with growing delays."
  (duet-test-with-project connection
    (let ((duet-restart-delays '(0.01 0.05 0.1))
          (duet-connection--well 0.1)
          (delays '()))
      (duet-model-add-observer
       (lambda (_ kind _session state _extra)
         (when (and (eq kind 'connection) (eq state 'lost))
           (push (- (duet-connection-next connection) (float-time)) delays)))
       (duet-connection-model connection))
      ;; A process must hold the pipe: a batch Emacs does not survive SIGPIPE.
      (setq duet-rpc-command
            '("sh" "-c" "exec 3<&0; (sleep 1 <&3 >/dev/null 2>&1 &); echo broken on purpose >&2; exit 3"))
      (duet-test-kill-server connection)
      (duet-test-wait-for (>= (length delays) 5))
      (setq delays (reverse delays))
      (cl-loop for delay in delays for most in '(0.01 0.05 0.1 0.1 0.1)
               do (should (<= delay most)))
      (should (> (nth 4 delays) (nth 0 delays)))
      (duet-test-wait-for (string-match-p "exit status 3.*broken on purpose"
                                          (duet-test-log)))
      ;; A missing program does not end the retries either.
      (setq duet-rpc-command '("no-such-program-anywhere"))
      (duet-test-wait-for (string-match-p "Cannot find the program" (duet-test-log)))
      (setq duet-rpc-command (duet-test-server))
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
      (duet-test-wait-for (eql (duet-connection-attempts connection) 0)))))

(ert-deftest duet-connection-test-missing-program ()
  "A missing program is reported at once, without a retry."
  (let ((duet-rpc-command '("no-such-program-anywhere"))
        (duet-connections (make-hash-table :test #'equal))
        (directory (make-temp-file "duet-test" t)))
    (unwind-protect
        (let ((err (should-error (duet-connection-ensure directory) :type 'user-error)))
          (should (string-match-p "no-such-program-anywhere" (error-message-string err)))
          (maphash (lambda (_ connection)
                     (should-not (duet-connection-timer connection))
                     (should (eq (duet-connection-state connection) 'stopped)))
                   duet-connections))
      (delete-directory directory t))))

(ert-deftest duet-connection-test-stop ()
  "A stopped server starts again only when it is needed."
  (duet-test-with-project connection
    (let* ((pid (process-id (jsonrpc--process (duet-connection-rpc connection))))
           (inhibit-message nil)
           (shown '())
           (note (lambda (format &rest arguments)
                   (unless inhibit-message
                     (push (apply #'format-message (or format "") arguments) shown)))))
      (advice-add 'message :before note)
      (unwind-protect
          (progn
            (call-interactively #'duet-stop)
            (duet-test-wait-for (member (alist-get 'state (process-attributes pid)) '(nil "Z")))
            (duet-test-wait-for (null (process-live-p (get-process "duet-rpc")))))
        (advice-remove 'message note))
      (should (equal shown '("The server is stopped")))
      (should (eq (duet-connection-state connection) 'stopped))
      (let (err)
        (should-not (duet-connection-request connection 'ping nil
                                             :error-fn (lambda (e) (setq err e))))
        (should (eql (plist-get err :code) -1)))
      (should (eq (duet-connection-ensure default-directory) connection))
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready)))))

(ert-deftest duet-connection-test-mistake-in-the-configuration ()
  "The list shows an error in the configuration until it is corrected."
  (duet-test-with-project connection
    ;; A running daemon would keep its configuration.
    (duet-test-end connection)
    (duet-test-end-daemon default-directory)
    (let* ((file (expand-file-name ".duet.toml" default-directory))
           (duet-connection--mended 0.3)
           (buffer (progn
                     (write-region "default_agent = \n" nil file nil 'silent)
                     (duet)
                     (current-buffer))))
      (duet-test-wait-for-text buffer "\\.duet\\.toml:1")
      (should (eq (duet-connection-state connection) 'refused))
      (write-region "" nil file nil 'silent)
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
      (duet-test-wait-for-text buffer "No sessions yet"))))

(ert-deftest duet-connection-test-version ()
  "A server of another version causes one warning."
  (let ((connection (make-duet-connection))
        (warnings '()))
    (cl-letf (((symbol-function 'display-warning)
               (lambda (_type message &rest _) (push message warnings))))
      (duet-connection--check-version connection "0.1.7")
      (should-not warnings)
      (duet-connection--check-version connection "9.0.0")
      (duet-connection--check-version connection "9.0.0")
      (should (= (length warnings) 1))
      (should (string-match-p "9\\.0\\.0" (car warnings))))))

(ert-deftest duet-connection-test-quit ()
  "Requests that were sent before a \\`C-g' get their replies after it."
  (duet-test-with-project connection
    (let ((session (duet-test-launch connection "quiet stream:100@200"))
          (answers 0)
          buffer)
      (setq buffer (duet-transcript-open connection session))
      (duet-test-wait-for-text buffer "chunk 2")
      (dotimes (_ 5)
        (duet-connection-request connection 'ping nil
                                 :success-fn (lambda (_) (cl-incf answers)))
        (condition-case nil
            (progn
              (run-at-time 0.01 nil (lambda () (setq quit-flag t)))
              (let ((end (+ (float-time) 0.1)))
                (while (< (float-time) end) (accept-process-output nil 0.01))))
          (quit nil)))
      (setq quit-flag nil)
      (duet-test-wait-for (= answers 5))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "chunk 100")
      (let ((text (duet-test-text buffer)))
        (dotimes (n 100)
          (should (string-match-p (format "chunk %d " (1+ n)) text)))))))

(ert-deftest duet-connection-test-restart ()
  "The command starts the server at once, without the delay of the next retry.
If its program is missing the retries continue."
  (duet-test-with-project connection
    (let ((duet-restart-delays '(1000)))
      (duet-test-kill-server connection)
      (duet-test-wait-for (eq (duet-connection-state connection) 'lost))
      (with-current-buffer (duet-sessions-buffer connection)
        (let ((duet-rpc-command '("no-such-program-anywhere")))
          (duet-test-should-say "Cannot find the program no-such-program-anywhere"
            (call-interactively #'duet-connection-restart)))
        (should (eq (duet-connection-state connection) 'lost))
        (should (duet-connection-timer connection))
        (call-interactively #'duet-connection-restart)
        (should-not (duet-connection-timer connection))
        (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
        (duet-test-listening
          (call-interactively #'duet-connection-restart)
          (should (duet-test-heard "the server is running")))))))

(ert-deftest duet-connection-test-next-server-lives ()
  "Cleaning up after a server that has ended does not affect the next one."
  (duet-test-with-project connection
    (let* ((bury (symbol-function 'duet-connection--bury))
           (old (duet-connection-rpc connection))
           (buried '()))
      (cl-letf (((symbol-function 'duet-connection--bury)
                 (lambda (rpc)
                   (funcall bury rpc)
                   (push rpc buried))))
        (duet-test-kill-server connection)
        (let ((new (duet-test-wait-for
                    (and (not (eq (duet-connection-rpc connection) old))
                         (eq (duet-connection-state connection) 'ready)
                         (duet-connection-rpc connection)))))
          (duet-test-wait-for (memq old buried))
          ;; Killing the buffer of a server ends it.
          (should (buffer-live-p (process-buffer (jsonrpc--process new))))
          (should (duet-test-request connection 'ping nil))
          (should (eq (duet-connection-rpc connection) new))
          ;; A stop followed by a start does not affect it either.
          (call-interactively #'duet-stop)
          (duet-test-wait-for (not (process-live-p (jsonrpc--process new))))
          (call-interactively #'duet-connection-restart)
          (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
          (let ((newest (duet-connection-rpc connection)))
            (duet-test-wait-for (memq new buried))
            (should (buffer-live-p (process-buffer (jsonrpc--process newest))))
            (should (duet-test-request connection 'ping nil))
            (should (eq (duet-connection-rpc connection) newest))))))))

(provide 'duet-connection-test)
;;; duet-connection-test.el ends here
