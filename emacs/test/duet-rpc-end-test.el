;;; duet-rpc-end-test.el --- Tests of long requests and shutdown  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-rpc-test-lib)


;;; Long-running requests

(ert-deftest duet-rpc-test-long-running-request ()
  "A long-running request does not delay others, and is answered at its end."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((answers '()))
      (duet-rpc-request-async connection 'test.sleep '(:ms 300)
                              :success-fn (lambda (result) (push result answers)))
      (duet-rpc-request-async connection 'echo [1]
                              :success-fn (lambda (result) (push result answers)))
      (duet-rpc-test-wait-for (= (length answers) 2))
      (should (equal answers '((:slept_ms 300) [1]))))))

(ert-deftest duet-rpc-test-cancellation ()
  "A cancelled request gets an error; a concurrent one continues."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let* ((cancelled nil)
           (other nil)
           (id (duet-rpc-request-async connection 'test.sleep duet-rpc-test-forever
                                       :error-fn (lambda (err) (setq cancelled err)))))
      (duet-rpc-request-async connection 'test.sleep duet-rpc-test-forever
                              :error-fn (lambda (err) (setq other err)))
      (should (duet-rpc-request connection 'ping nil))
      (should (null cancelled))
      (duet-rpc-cancel connection id)
      (duet-rpc-test-wait-for cancelled)
      (should (eql (plist-get cancelled :code) -32800))
      ;; Cancelling a request that has been answered does no harm.
      (duet-rpc-cancel connection id)
      (should (duet-rpc-request connection 'ping nil))
      (should (null other)))))

(ert-deftest duet-rpc-test-quit ()
  "A quit ends the wait at once and cancels the request."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((outcome nil))
      (run-at-time 0.05 nil (lambda () (setq quit-flag t)))
      (condition-case nil
          (setq outcome (duet-rpc-request connection 'test.sleep duet-rpc-test-forever))
        (quit (setq outcome 'quit)))
      (should (eq outcome 'quit))
      ;; The server's reply proves that the request was cancelled.
      (duet-rpc-test-wait-for (jsonrpc-last-error connection))
      (should (eql (plist-get (jsonrpc-last-error connection) :code) -32800))
      (should (equal (duet-rpc-request connection 'echo [1]) [1])))))

(ert-deftest duet-rpc-test-input-while-waiting ()
  "Any other exit from the wait cancels the request too."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (should (eq (catch 'enough
                  (run-at-time 0.05 nil (lambda () (throw 'enough 'thrown)))
                  (duet-rpc-request connection 'test.sleep duet-rpc-test-forever))
                'thrown))
    (duet-rpc-test-wait-for (jsonrpc-last-error connection))
    (should (eql (plist-get (jsonrpc-last-error connection) :code) -32800))))

(ert-deftest duet-rpc-test-request-over-the-limit ()
  "A request over the limit of the server is an error at once."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((err (should-error (duet-rpc-request connection 'echo
                                               (list :text (make-string 10485760 ?x)))
                             :type 'duet-rpc-error)))
      (should (string-match-p "10\\.0 MiB, and the limit is 10 MiB" (error-message-string err)))
      (should (eql (duet-rpc-error-code err) -32600)))
    ;; Characters that JSON escapes count in their escaped form.
    (should-error (duet-rpc-request connection 'echo
                                    (list :text (make-string 1800000 1)))
                  :type 'duet-rpc-error)
    (should (equal (duet-rpc-request connection 'echo [1]) [1]))))

(ert-deftest duet-rpc-test-timeout ()
  "A request that takes too long is an error, and is cancelled."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((err (should-error (duet-rpc-request connection 'test.sleep
                                               duet-rpc-test-forever :timeout 0.1)
                             :type 'duet-rpc-timeout)))
      (should (string-match-p "test\\.sleep.* 0\\.1 s" (error-message-string err))))
    (duet-rpc-test-wait-for (jsonrpc-last-error connection))
    (should (eql (plist-get (jsonrpc-last-error connection) :code) -32800))
    (should (equal (duet-rpc-request connection 'echo [1]) [1]))))

(ert-deftest duet-rpc-test-timeout-of-a-request-that-is-not-waited-for ()
  "A timeout of an asynchronous request calls TIMEOUT-FN once and cancels it."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((calls '()))
      (duet-rpc-request-async connection 'test.sleep duet-rpc-test-forever
                              :timeout 0.1
                              :timeout-fn (lambda () (push 'timeout calls))
                              :error-fn (lambda (err) (push err calls)))
      (duet-rpc-test-wait-for (jsonrpc-last-error connection))
      (should (eql (plist-get (jsonrpc-last-error connection) :code) -32800))
      (should (equal calls '(timeout))))))


;;; The end

(ert-deftest duet-rpc-test-shutdown ()
  "A server ends after a shutdown request, with exit status 0."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (should (duet-rpc-request connection 'ping nil))
    (let ((start (float-time)))
      (duet-rpc-shutdown connection)
      (should (< (- (float-time) start) duet-rpc-test-soon)))
    (let ((process (jsonrpc--process connection)))
      (should (equal (list (process-status process) (process-exit-status process))
                     '(exit 0))))
    (should-not (jsonrpc-running-p connection))
    ;; A second shutdown is not an error.
    (duet-rpc-shutdown connection)))

(ert-deftest duet-rpc-test-shutdown-with-running-requests ()
  "Requests that are running when the server ends get replies."
  (let ((answers '())
        (ends 0))
    (duet-rpc-test-with (connection (duet-rpc-test-connect-and-tell
                                     (lambda (_) (cl-incf ends))))
      (dotimes (_ 3)
        (duet-rpc-request-async connection 'test.sleep duet-rpc-test-forever
                                :error-fn (lambda (err) (push (plist-get err :code) answers))))
      (duet-rpc-shutdown connection)
      (duet-rpc-test-wait-for (= (length answers) 3))
      (should (equal answers '(-32800 -32800 -32800)))
      (should (eql (process-exit-status (jsonrpc--process connection)) 0))
      (should (eql ends 1)))))

(ert-deftest duet-rpc-test-reply-just-before-the-end ()
  "The last reply before a server ends is delivered as a reply."
  (dotimes (_ 10)
    (duet-rpc-test-with (connection (duet-rpc-test-connect))
      (should (equal (duet-rpc-request connection 'shutdown nil)
                     '(:message "Shutting down gracefully")))
      (duet-rpc-test-wait-for (not (jsonrpc-running-p connection)) duet-rpc-test-soon)
      (should (eql (process-exit-status (jsonrpc--process connection)) 0)))))

(ert-deftest duet-rpc-test-exit-notification ()
  "The notification `exit' ends the server."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (duet-rpc-notify connection 'exit nil)
    (duet-rpc-test-wait-for (not (jsonrpc-running-p connection)) duet-rpc-test-soon)
    (should (eql (process-exit-status (jsonrpc--process connection)) 0))))

(ert-deftest duet-rpc-test-server-that-will-not-end ()
  "A server that ignores the shutdown is killed."
  (duet-rpc-test-with (connection (duet-rpc-connect
                                   :command '("sh" "-c" "exec tail -f /dev/null")))
    (let ((start (float-time)))
      (duet-rpc-shutdown connection)
      (should (< (- (float-time) start) duet-rpc-test-deadline)))
    (duet-rpc-test-wait-for (duet-rpc-test-gone-p
                             (process-id (jsonrpc--process connection))))))

(ert-deftest duet-rpc-test-server-is-killed ()
  "The death of the server ends pending requests with a clear error."
  (let ((calls '())
        (died nil))
    (duet-rpc-test-with (connection (duet-rpc-test-connect-and-tell
                                     (lambda (_) (setq died t))))
      (should (duet-rpc-request connection 'ping nil))
      (duet-rpc-request-async connection 'test.sleep duet-rpc-test-forever
                              :error-fn (lambda (err) (push err calls)))
      (run-at-time 0.05 nil #'signal-process
                   (process-id (jsonrpc--process connection)) 'SIGKILL)
      (let ((err (should-error (duet-rpc-request connection 'test.sleep
                                                 duet-rpc-test-forever)
                               :type 'duet-rpc-died)))
        (should (string-match-p "has ended (signal 9)" (error-message-string err))))
      (duet-rpc-test-wait-for (and died calls))
      (should (equal (mapcar (lambda (err) (plist-get err :code)) calls) '(-1)))
      (should (string-match-p "has ended (signal 9)" (plist-get (car calls) :message)))
      (dolist (attempt (list (lambda () (duet-rpc-request connection 'ping nil))
                             (lambda () (duet-rpc-request-async connection 'ping nil))
                             (lambda () (duet-rpc-notify connection 'ping nil))))
        (should-error (funcall attempt) :type 'duet-rpc-died)))))

(ert-deftest duet-rpc-test-daemon-is-killed ()
  "The death of the daemon ends pending requests; the server finds a new one."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((daemon (plist-get (duet-rpc-request connection 'daemon.status nil) :pid))
          failure)
      (duet-rpc-request-async connection 'test.sleep duet-rpc-test-forever
                              :error-fn (lambda (err) (setq failure err)))
      ;; After this reply the daemon has received the request before it.
      (should (duet-rpc-request connection 'daemon.status nil))
      (signal-process daemon 'SIGKILL)
      (duet-rpc-test-wait-for failure)
      (should (eql (plist-get failure :code) -32042))
      (should (equal (plist-get failure :data) '(:kind "hub_lost" :retry t)))
      (should-not (eql (plist-get (duet-rpc-request connection 'daemon.status nil) :pid)
                       daemon)))))

(defun duet-rpc-test-orphan (form)
  "Start an Emacs that connects, evaluates FORM and waits; kill it.
Return when its server has ended."
  (duet-rpc-test-call-in-project (lambda () (duet-rpc-test--orphan form))))

(defun duet-rpc-test--orphan (form)
  "Implement `duet-rpc-test-orphan' for FORM, in the current directory."
  (let* ((library (file-name-directory (locate-library "duet-rpc")))
         (output (generate-new-buffer " *child*"))
         (program
          `(let ((connection (duet-rpc-connect :command ',(duet-rpc-test-server))))
             (duet-rpc-request connection 'ping nil :timeout ,duet-rpc-test-deadline)
             ,form
             (message "server %d." (process-id (jsonrpc--process connection)))
             (while t (accept-process-output nil 1))))
         (child (make-process
                 :name "child" :buffer output :noquery t :connection-type 'pipe
                 :command (list (expand-file-name invocation-name invocation-directory)
                                "-Q" "--batch" "-L" library "-l" "duet-rpc"
                                "--eval" (format "%S" program)))))
    (unwind-protect
        (let ((pid (duet-rpc-test-wait-for
                    (with-current-buffer output
                      (goto-char (point-min))
                      (and (re-search-forward "server \\([0-9]+\\)\\." nil t)
                           (string-to-number (match-string 1)))))))
          (should-not (duet-rpc-test-gone-p pid))
          (signal-process child 'SIGKILL)
          (duet-rpc-test-wait-for (duet-rpc-test-gone-p pid) duet-rpc-test-soon))
      (delete-process child)
      (kill-buffer output))))

(ert-deftest duet-rpc-test-emacs-is-killed ()
  "A server ends soon after its Emacs is killed."
  (duet-rpc-test-orphan nil))

(ert-deftest duet-rpc-test-emacs-is-killed-while-requests-run ()
  "A server whose Emacs is killed does not wait for running requests."
  (duet-rpc-test-orphan
   `(dotimes (_ 5)
      (duet-rpc-request-async connection 'test.sleep ',duet-rpc-test-forever))))


;;; Standard output

(ert-deftest duet-rpc-test-nothing-but-frames ()
  "Standard output has only frames, with any amount of logging."
  (let* ((output '())
         (log (generate-new-buffer " *log*"))
         (process (make-process :name "bytes" :noquery t :connection-type 'pipe
                                :coding 'binary :stderr log
                                :command (duet-rpc-test-server "--log-level" "debug")
                                :filter (lambda (_process string) (push string output))
                                :sentinel #'ignore)))
    (unwind-protect
        (progn
          (cl-loop for body in '("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
                                 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"test.panic\"}"
                                 "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"test.fail\"}"
                                 "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"none\"}"
                                 "{\"jsonrpc\":\"2.0\",\"method\":\"none\"}"
                                 "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":3}"
                                 "this is not JSON"
                                 "{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"echo\",\"params\":[6]}")
                   do (process-send-string
                       process (format "Content-Length: %d\r\n\r\n%s" (length body) body)))
          (process-send-string process "Content-Type: nonsense\r\n\r\n")
          (process-send-eof process)
          (duet-rpc-test-wait-for (not (process-live-p process)))
          (while (accept-process-output process))
          (should (eql (process-exit-status process) 0))
          (duet-rpc-test-wait-for (null (get-buffer-process log)))
          (with-current-buffer log
            (should (string-match-p "test.panic" (buffer-string))))
          (let ((ids '()))
            (with-temp-buffer
              (set-buffer-multibyte nil)
              (apply #'insert (reverse output))
              (goto-char (point-min))
              (while (not (eobp))
                (should (looking-at "Content-Length: \\([0-9]+\\)\r\n\r\n"))
                (let* ((start (match-end 0))
                       (end (+ start (string-to-number (match-string 1))))
                       (message (json-parse-string (buffer-substring start end)
                                                   :object-type 'plist :null-object nil)))
                  (should (equal (plist-get message :jsonrpc) "2.0"))
                  (push (plist-get message :id) ids)
                  (goto-char end))))
            (should (equal (sort (delq nil (copy-sequence ids)) #'<) '(1 2 3 4 5 6)))
            ;; These are for the invalid JSON and the frame without a length.
            (should (eql (cl-count nil ids) 2))))
      (delete-process process)
      (kill-buffer log))))


;;; jsonrpc.el alone

(ert-deftest duet-rpc-test-raw-requests ()
  "Requests, errors and their data reach a client without this package."
  (duet-rpc-test-with (connection (duet-rpc-test-connect-raw))
    (should (eq (plist-get (jsonrpc-request connection 'ping nil) :pong) t))
    (should (equal (jsonrpc-request connection :echo '(:x [1 :json-false nil "é 日本 🎉"]))
                   '(:x [1 :json-false nil "é 日本 🎉"])))
    (dolist (params (list nil (make-hash-table) [] [nil]))
      (should (plist-get (jsonrpc-request connection 'ping params) :pong)))
    (should (null (jsonrpc-request connection 'echo nil)))
    (cl-loop for (method params code) in '((no.such.method nil -32601)
                                           (setLogLevel (:level "loud") -32602)
                                           (ping :json-false -32602)
                                           (ping "string" -32602)
                                           (test.fail nil -32603)
                                           (test.panic nil -32603))
             do (let ((err (should-error (jsonrpc-request connection method params)
                                         :type 'jsonrpc-error)))
                  (should (eql (alist-get 'jsonrpc-error-code (cddr err)) code))
                  (should (stringp (alist-get 'jsonrpc-error-message (cddr err))))
                  (when (eql code -32602)
                    (should (plist-get (alist-get 'jsonrpc-error-data (cddr err))
                                       :expected)))))
    (jsonrpc-notify connection 'no.such.notification nil)
    (should (jsonrpc-request connection 'health nil))))

(ert-deftest duet-rpc-test-raw-many-requests-in-order ()
  "Requests that jsonrpc.el sends at once are answered in order."
  (duet-rpc-test-with (connection (duet-rpc-test-connect-raw))
    (let ((answers '()))
      (dotimes (n 300)
        (jsonrpc-async-request connection 'echo (vector n)
                               :success-fn (lambda (result)
                                             (push (aref result 0) answers))))
      (duet-rpc-test-wait-for (= (length answers) 300))
      (should (equal (nreverse answers) (number-sequence 0 299))))))

(ert-deftest duet-rpc-test-raw-megabyte ()
  "A text of a million characters is echoed unchanged."
  (duet-rpc-test-with (connection (duet-rpc-test-connect-raw))
    (let ((text (duet-rpc-test-long-text 1000000)))
      (should (string= (plist-get (jsonrpc-request connection 'echo (list :text text)) :text)
                       text)))))

(ert-deftest duet-rpc-test-raw-cancellation ()
  "A client that knows the id can cancel by a notification."
  (duet-rpc-test-with (connection (duet-rpc-test-connect-raw))
    (let (err)
      (jsonrpc-async-request connection 'test.sleep duet-rpc-test-forever
                             :error-fn (lambda (e) (setq err e)))
      (jsonrpc-notify connection '$/cancelRequest '(:id 1))
      (duet-rpc-test-wait-for err)
      (should (eql (plist-get err :code) -32800)))))

(ert-deftest duet-rpc-test-raw-ends ()
  "A client without this package ends a server in several ways."
  (duet-rpc-test-with (connection (duet-rpc-test-connect-raw))
    ;; This is not a request: jsonrpc.el 1.0.25 may report the end of the server
    ;; before it handles the reply that it has read.
    (jsonrpc-notify connection 'shutdown nil)
    (duet-rpc-test-wait-for (not (jsonrpc-running-p connection)) duet-rpc-test-soon)
    (should (eql (process-exit-status (jsonrpc--process connection)) 0)))
  (duet-rpc-test-with (connection (duet-rpc-test-connect-raw))
    (should (jsonrpc-request connection 'ping nil))
    (process-send-eof (jsonrpc--process connection))
    (duet-rpc-test-wait-for (not (jsonrpc-running-p connection)) duet-rpc-test-soon)
    (should (eql (process-exit-status (jsonrpc--process connection)) 0)))
  (duet-rpc-test-with (connection (duet-rpc-test-connect-raw))
    (let ((pid (process-id (jsonrpc--process connection))))
      (should (jsonrpc-request connection 'ping nil))
      (jsonrpc-shutdown connection)
      (duet-rpc-test-wait-for (duet-rpc-test-gone-p pid) duet-rpc-test-soon))))

(provide 'duet-rpc-end-test)
;;; duet-rpc-end-test.el ends here
