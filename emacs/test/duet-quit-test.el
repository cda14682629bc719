;;; duet-quit-test.el --- Tests of stopping servers  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet)

(ert-deftest duet-quit-test-agents-go-on ()
  "Stopping the server ends no turn and asks nothing; the next one has the turn."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-test-question session))
           (process (jsonrpc--process (duet-connection-rpc connection)))
           (daemon (duet-test-daemon default-directory)))
      (duet-test-listening
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (prompt) (ert-fail prompt))))
          (call-interactively #'duet-stop))
        (should (duet-test-heard "\\`The server is stopped; its agents go on with 1 turn\\'")))
      (duet-test-wait-for (not (process-live-p process)))
      (should (eql (process-exit-status process) 0))
      (should (eql (duet-test-daemon default-directory) daemon))
      (duet-connection-restart connection)
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
      (should (eq (duet-session-state session) 'waiting_input))
      (duet-test-request connection 'approval.decide
                         (list :approval (duet-approval-id approval) :decision "approve"))
      (duet-test-wait-for-state session 'completed)
      (should (equal (duet-test-demo-file connection) "Turn 1: hello\n")))))

(ert-deftest duet-quit-test-others-go-on ()
  "Stopping the server of one editor ends no turn of another editor."
  (duet-test-with-project connection
    (let* ((other (duet-rpc-connect :name "another editor"
                                    :directory (duet-connection-root connection)))
           (id (plist-get (duet-rpc-request other 'session.start '(:prompt "hello"))
                          :turn_uuid))
           (state (lambda ()
                    (plist-get (plist-get (duet-rpc-request other 'turn.get
                                                            (list :turn id))
                                          :turn)
                               :state)))
           (process (jsonrpc--process (duet-connection-rpc connection))))
      (unwind-protect
          (let ((approval (duet-test-question
                           (duet-test-wait-for (duet-connection-session connection id)))))
            (duet-connection-stop connection)
            (duet-test-wait-for (not (process-live-p process)))
            (should (equal (funcall state) "waiting_input"))
            (duet-rpc-request other 'approval.decide
                              (list :approval (duet-approval-id approval)
                                    :decision "approve"))
            (duet-test-wait-for (equal (funcall state) "completed")))
        (duet-rpc-shutdown other t)))))

(defun duet-quit-test-stands-still (process)
  "Return non-nil if all threads of PROCESS are stopped, as far as is known."
  (cl-every (lambda (file)
              (with-temp-buffer
                (insert-file-contents-literally file)
                (search-forward ") T " nil t)))
            (file-expand-wildcards (format "/proc/%d/task/*/stat" (process-id process)))))

(ert-deftest duet-quit-test-does-not-answer ()
  "A server that does not end after a stop request is killed."
  (duet-test-with-project connection
    (let ((duet-connection--patience 0.1)
          (process (jsonrpc--process (duet-connection-rpc connection))))
      (signal-process (process-id process) 'SIGSTOP)
      ;; A thread that is running at this moment may still answer.
      (duet-test-wait-for (duet-quit-test-stands-still process))
      (duet-connection-stop connection)
      (duet-test-wait-for (not (process-live-p process))))))

(ert-deftest duet-quit-test-start-after-stop ()
  "A server that starts right after a stop survives the cleanup of the old one."
  (duet-test-with-project connection
    (let* ((old (duet-connection-rpc connection))
           (remains (list (process-buffer (jsonrpc--process old))
                          (jsonrpc-stderr-buffer old)))
           new)
      (with-current-buffer (duet-sessions-buffer connection)
        (call-interactively #'duet-stop)
        (duet-test-wait-for (not (process-live-p (jsonrpc--process old))))
        (call-interactively #'duet-sessions-refresh))
      (setq new (duet-connection-rpc connection))
      (duet-test-wait-for (cl-notany #'buffer-live-p remains))
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
      (duet-test-request connection 'ping nil)
      (should (eq (duet-connection-rpc connection) new))
      (should-not (duet-test-heard "another try")))))

(provide 'duet-quit-test)
;;; duet-quit-test.el ends here
