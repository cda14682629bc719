;;; duet-quit-test.el --- Tests of how servers and Emacs end  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet)

(defmacro duet-quit-test-with-project (name &rest body)
  "Run BODY in a project of its own, with NAME bound to its connection."
  (declare (indent 1) (debug (symbolp body)))
  `(duet-test-with-project ,name
     (duet-model-add-observer #'duet-quit--observe)
     (duet-test-listening ,@body)))

(defun duet-quit-test-join (connection)
  "Return a connection of another editor to the project of CONNECTION.
It is known to the hub."
  (let ((rpc (duet-rpc-connect :name "another editor"
                               :directory (duet-connection-root connection))))
    (duet-rpc-request rpc 'getSessionLeaves nil)
    rpc))

(defun duet-quit-test-state (rpc id)
  "Return the state of the session ID, as the hub behind RPC says."
  (plist-get (plist-get (duet-rpc-request rpc 'getSessionState (list :session_id id))
                        :session)
             :status))

(ert-deftest duet-quit-test-others-go-on ()
  "To stop the server of one editor ends nothing of what runs for another."
  (duet-quit-test-with-project connection
    (let* ((duet-connection--patience 0.2)
           (process (jsonrpc--process (duet-connection-rpc connection)))
           (other (duet-quit-test-join connection))
           (id (plist-get (duet-rpc-request other 'launchSession
                                            '(:query "quiet stream:100@50"))
                          :session_id)))
      (unwind-protect
          (progn
            (duet-test-wait-for (equal (duet-quit-test-state other id) "running"))
            (duet-connection-stop connection)
            (duet-test-wait-for (duet-test-heard "the server goes on for others"))
            (should (process-live-p process))
            (duet-test-wait-for (not (equal (duet-quit-test-state other id) "running")))
            (should (equal (duet-quit-test-state other id) "completed")))
        (duet-rpc-shutdown other t))
      (duet-test-wait-for (not (process-live-p process))))))

(defun duet-quit-test-stands-still (process)
  "Return non-nil if all threads of PROCESS stand still, as far as is known."
  (cl-every (lambda (file)
              (with-temp-buffer
                (insert-file-contents-literally file)
                (search-forward ") T " nil t)))
            (file-expand-wildcards (format "/proc/%d/task/*/stat" (process-id process)))))

(ert-deftest duet-quit-test-does-not-answer ()
  "A server that is stopped and does not answer is killed."
  (duet-quit-test-with-project connection
    (let ((duet-connection--patience 0.1)
          (process (jsonrpc--process (duet-connection-rpc connection))))
      (signal-process (process-id process) 'SIGSTOP)
      ;; A thread that runs just then may still answer.
      (duet-test-wait-for (duet-quit-test-stands-still process))
      (duet-connection-stop connection)
      (duet-test-wait-for (not (process-live-p process))))))

(ert-deftest duet-quit-test-start-after-stop ()
  "A server that is started right after one was stopped outlives its remains."
  (duet-quit-test-with-project connection
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

(ert-deftest duet-quit-test-asks ()
  "Who stops a server where agents work, or ends Emacs, is told and asked."
  (duet-quit-test-with-project connection
    (should (duet-quit-query))
    (dotimes (_ 2)
      (duet-test-wait-for-state (duet-test-launch connection "quiet hang") 'running))
    (duet-test-wait-for (integerp (gethash connection duet-quit--hubs)))
    (let* ((asked '())
           (answer nil))
      (cl-letf (((symbol-function 'y-or-n-p)
                 (lambda (prompt) (push prompt asked) answer)))
        (should-not (run-hook-with-args-until-failure 'kill-emacs-query-functions))
        (should (equal asked '("2 turns of agents would be interrupted; exit anyway? ")))
        (call-interactively #'duet-stop)
        (should (equal (car asked) "Agents work on 2 turns here; stop the server? "))
        (should (eq (duet-connection-state connection) 'ready))
        (setq answer t)
        (should (duet-quit-query))
        (setq asked nil)
        (let ((duet-confirm-kill-emacs nil)) (should (duet-quit-query)))
        (should-not asked)
        (call-interactively #'duet-stop)
        (should (eq (duet-connection-state connection) 'stopped))
        (should (= (length asked) 1))
        (should (duet-quit-query))
        (should (= (length asked) 1))))))

(ert-deftest duet-quit-test-of-others ()
  "What another editor's server runs does not end with this Emacs."
  (duet-quit-test-with-project connection
    (let ((other (duet-quit-test-join connection)))
      (unwind-protect
          (progn
            (duet-connection-stop connection)
            (duet-connection-restart connection)
            (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
            (duet-test-wait-for-state (duet-test-launch connection "quiet hang") 'running)
            (duet-test-wait-for (integerp (gethash connection duet-quit--hubs)))
            (should (= (duet-quit-turns connection) 0))
            (should (duet-quit-query)))
        (duet-rpc-shutdown other t)))))

(provide 'duet-quit-test)
;;; duet-quit-test.el ends here
