;;; duet-rpc-test.el --- Tests of duet-rpc.el with the real server  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-rpc-test-lib)


;;; Starting

(ert-deftest duet-rpc-test-unknown-program ()
  "The error for a missing program names it, and nothing is started."
  (let* ((duet-rpc-command '("duet-rpc-that-nobody-has" "--flag"))
         (processes (process-list))
         (err (should-error (duet-rpc-connect) :type 'user-error)))
    (should (string-match-p "duet-rpc-that-nobody-has" (error-message-string err)))
    (should (string-match-p "duet-rpc-command" (error-message-string err)))
    (should (equal (process-list) processes))))

(ert-deftest duet-rpc-test-command-of-wrong-type ()
  "A command that is not a list of strings is refused with a message."
  (dolist (command '("" " " 7 (duet-rpc) ("duet-rpc" 1)))
    (let ((err (should-error (duet-rpc-connect :command command) :type 'user-error)))
      (should (string-match-p "list of strings" (error-message-string err))))))

(ert-deftest duet-rpc-test-command-in-one-string ()
  "A command may be one string, with quotes."
  (let* ((words (duet-rpc-test-server))
         (folder (file-name-as-directory (make-temp-file "duet test" t)))
         (link (concat folder "duet rpc")))
    (unwind-protect
        (progn
          (make-symbolic-link (car words) link)
          (let ((duet-rpc-command (format "'%s' --test-methods" link)))
            (should (equal (duet-rpc-process-words) (list link "--test-methods")))
            (duet-rpc-test-with (connection (duet-rpc-connect))
              (should (equal (duet-rpc-request connection 'echo '(:a 1)) '(:a 1)))
              (should (equal (duet-rpc-connection-command connection)
                             (list link "--test-methods"))))))
      (delete-directory folder t))
    (should (equal (duet-rpc-process-words "~/bin/duet-rpc")
                   (list (expand-file-name "~/bin/duet-rpc"))))
    (should (equal (duet-rpc-process-words '("~/bin/duet-rpc" "a b")) '("~/bin/duet-rpc" "a b")))))

(ert-deftest duet-rpc-test-unknown-directory ()
  "The error for a missing directory names it."
  (let ((err (should-error (duet-rpc-connect :command (duet-rpc-test-server)
                                             :directory "/nowhere/at/all")
                           :type 'user-error)))
    (should (string-match-p "/nowhere/at/all" (error-message-string err)))))

(ert-deftest duet-rpc-test-server-that-does-not-start ()
  "The error shows the reason why a server does not start."
  (duet-rpc-test-with (connection (duet-rpc-test-connect "--no-such-flag"))
    (let ((err (should-error (duet-rpc-request connection 'ping nil)
                             :type 'duet-rpc-died)))
      (should (string-match-p "exit status 1" (error-message-string err)))
      (should (string-match-p "no-such-flag" (error-message-string err))))))

(ert-deftest duet-rpc-test-two-connections ()
  "Two connections do not share a process, a name or a buffer."
  (duet-rpc-test-with (one (duet-rpc-test-connect))
    (duet-rpc-test-with (two (duet-rpc-test-connect))
      (should-not (equal (jsonrpc-name one) (jsonrpc-name two)))
      (should-not (eq (jsonrpc-stderr-buffer one) (jsonrpc-stderr-buffer two)))
      (should (equal (duet-rpc-request one 'echo '(:n 1)) '(:n 1)))
      (should (equal (duet-rpc-request two 'echo '(:n 2)) '(:n 2)))
      (duet-rpc-shutdown two)
      (should (equal (duet-rpc-request one 'echo '(:n 3)) '(:n 3))))))

(ert-deftest duet-rpc-test-shutdown-leaves-the-daemon ()
  "A server ends after a shutdown; the daemon serves other and later servers."
  (duet-rpc-test-with (one (duet-rpc-test-connect))
    (let ((daemon (plist-get (duet-rpc-request one 'daemon.status nil) :pid)))
      (should-not (eql daemon (process-id (jsonrpc--process one))))
      (duet-rpc-test-with (two (duet-rpc-test-connect))
        (should (eql (plist-get (duet-rpc-request two 'daemon.status nil) :pid) daemon))
        (let ((began (float-time)))
          (duet-rpc-shutdown one)
          (should (< (- (float-time) began) duet-rpc-test-soon)))
        (should-error (duet-rpc-request one 'ping nil) :type 'duet-rpc-died)
        (should (eql (plist-get (duet-rpc-request two 'daemon.status nil) :pid) daemon))
        (duet-rpc-shutdown two))
      (duet-rpc-test-with (three (duet-rpc-test-connect))
        (should (eql (plist-get (duet-rpc-request three 'daemon.status nil) :pid) daemon))))))

(ert-deftest duet-rpc-test-core-methods-need-no-daemon ()
  "The first request that needs a daemon starts it."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (should (duet-rpc-request connection 'initialize nil))
    (should (duet-rpc-request connection 'ping nil))
    (should-not (file-expand-wildcards "../state/duet/projects/*"))
    (should (integerp (plist-get (duet-rpc-request connection 'daemon.status nil) :pid)))
    (should (file-expand-wildcards "../state/duet/projects/*"))))

(ert-deftest duet-rpc-test-name-is-used-again ()
  "A new connection reuses the name of one that has ended."
  (let (name)
    (duet-rpc-test-with (connection (duet-rpc-test-connect))
      (setq name (jsonrpc-name connection))
      (duet-rpc-shutdown connection 'cleanup)
      (should-not (get-buffer (format " *%s stderr*" name)))
      (should-not (get-buffer (format "*%s events*" name))))
    (duet-rpc-test-with (connection (duet-rpc-test-connect))
      (should (equal (jsonrpc-name connection) name))
      (should (duet-rpc-request connection 'ping nil)))))

(ert-deftest duet-rpc-test-directory ()
  "The server runs in the given directory."
  (let ((directory (file-truename temporary-file-directory)))
    (duet-rpc-test-with (connection (duet-rpc-connect
                                     :command '("sh" "-c" "pwd >&2; exec cat >/dev/null")
                                     :directory directory))
      (should (equal (duet-rpc-test-wait-for
                      (with-current-buffer (jsonrpc-stderr-buffer connection)
                        (and (string-match-p "\n" (buffer-string)) (buffer-string))))
                     (concat (directory-file-name directory) "\n"))))))


;;; Requests and notifications

(ert-deftest duet-rpc-test-core-methods ()
  "The core methods return what the protocol defines."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let* ((version (plist-get (duet-rpc-request connection 'version nil) :version))
           (hello (duet-rpc-request connection 'initialize nil)))
      (should (stringp version))
      (should (equal (duet-rpc-test-object hello)
                     `((:protocolVersion "2.0")
                       (:serverInfo (:name "duet-rpc" :version ,version)))))
      (should (equal (duet-rpc-request connection 'health nil)
                     (list :status "ok" :version version)))
      (should (eq (plist-get (duet-rpc-request connection 'ping nil) :pong) t))
      (should (equal (duet-rpc-request connection 'setLogLevel '(:level "warn"))
                     '(:level "warn" :success t))))))

(ert-deftest duet-rpc-test-capabilities ()
  "A client that sends its capabilities receives those of the server."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((capabilities (plist-get (duet-rpc-request
                                    connection 'initialize
                                    (list :capabilities (make-hash-table)))
                                   :capabilities)))
      (should (eq (plist-get capabilities :cancellation) t))
      (should (cl-find "test.sleep" (plist-get capabilities :longRunning) :test #'equal)))))

(ert-deftest duet-rpc-test-methods-describe-themselves ()
  "Emacs can parse the long, nested lists of methods."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((listed (cl-map 'list (lambda (m) (plist-get m :name))
                          (duet-rpc-request connection 'listMethods nil)))
          (described (cl-map 'list (lambda (m) (plist-get m :name))
                             (duet-rpc-request connection 'describeMethods nil)))
          (document (duet-rpc-request connection 'rpc.discover nil)))
      (should (cl-subsetp '("ping" "echo" "shutdown" "test.sleep") listed :test #'equal))
      (should (equal described listed))
      (should (equal (cl-map 'list (lambda (m) (plist-get m :name))
                             (plist-get document :methods))
                     listed))
      (should (string-prefix-p "1." (plist-get document :openrpc))))))

(ert-deftest duet-rpc-test-bytes-that-are-sent ()
  "Missing params are sent as an empty object; a method is a symbol or a string."
  (duet-rpc-test-with (connection (duet-rpc-connect :command '("sh" "-c" "exec cat >&2")))
    (cl-flet ((said () (with-current-buffer (jsonrpc-stderr-buffer connection)
                         (buffer-string)))
              (frame (body) (format "Content-Length: %d\r\n\r\n%s" (length body) body)))
      (should (eql (duet-rpc-request-async connection 'ping nil) 1))
      (should (eql (duet-rpc-request-async connection "a.b" [1]) 2))
      (duet-rpc-notify connection "c/d" nil)
      (duet-rpc-notify connection 'e '(:x nil))
      (duet-rpc-cancel connection 2)
      (let ((expected (mapconcat
                       #'frame
                       '("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}}"
                         "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"a.b\",\"params\":[1]}"
                         "{\"jsonrpc\":\"2.0\",\"method\":\"c/d\",\"params\":{}}"
                         "{\"jsonrpc\":\"2.0\",\"method\":\"e\",\"params\":{\"x\":null}}"
                         "{\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":2}}")
                       "")))
        (duet-rpc-test-wait-for (>= (length (said)) (length expected)))
        (should (equal (said) expected))))))

(ert-deftest duet-rpc-test-values-come-back ()
  "Every kind of JSON value is echoed unchanged."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (dolist (value (list [] [nil] [[] [[]]] '(:a nil :b :json-false :c t :d [] :e "")
                         [0 -1 1.5 1e-7 2305843009213693951 -2305843009213693952]
                         [9223372036854775807 -9223372036854775808]
                         "a string by itself" :json-false t
                         '(:nested (:nested (:nested [(:x 1) (:y [2])])))))
      (should (equal (duet-rpc-request connection 'echo value) value)))
    ;; Emacs cannot distinguish these.
    (should (null (duet-rpc-request connection 'echo nil)))
    (should (null (duet-rpc-request connection 'echo (make-hash-table))))
    (should (equal (duet-rpc-request connection 'echo (list :o (make-hash-table)))
                   '(:o nil)))))

(ert-deftest duet-rpc-test-forms-of-no-params ()
  "Missing params, an empty object and an empty array are equivalent."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (dolist (params (list nil (make-hash-table) [] [nil]))
      (should (eq (plist-get (duet-rpc-request connection 'ping params) :pong) t)))
    (should (equal (duet-rpc-request connection 'setLogLevel [(:level "info")])
                   '(:level "info" :success t)))))

(ert-deftest duet-rpc-test-notifications ()
  "A notification gets no reply, whether its method is known or not."
  (duet-rpc-test-with (connection (duet-rpc-test-connect "--log-level" "error"))
    (duet-rpc-notify connection 'no.such.notification '(:x 1))
    (duet-rpc-notify connection "$/setTrace" '(:value "off"))
    (duet-rpc-notify connection '$/cancelRequest '(:id 999))
    (duet-rpc-notify connection 'ping nil)
    (duet-rpc-notify connection 'setLogLevel '(:level 5))
    (should (equal (duet-rpc-request connection 'echo [1]) [1]))
    (should (null (jsonrpc-last-error connection)))
    ;; A notification calls its method: this one changes the log level.
    (duet-rpc-notify connection 'setLogLevel '(:level "debug"))
    (should (duet-rpc-request connection 'ping nil))
    (duet-rpc-test-wait-for
     (with-current-buffer (jsonrpc-stderr-buffer connection)
       (string-match-p "ping" (buffer-string))))))

(ert-deftest duet-rpc-test-many-requests-in-order ()
  "Requests that are sent together are answered in order."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((answers '())
          (count 500))
      (dotimes (n count)
        (duet-rpc-request-async
         connection (if (zerop (% n 7)) 'no.such.method 'echo) (vector n)
         :success-fn (lambda (result) (push (aref result 0) answers))
         :error-fn (lambda (err) (push (plist-get err :code) answers))))
      (duet-rpc-test-wait-for (= (length answers) count))
      (should (equal (nreverse answers)
                     (cl-loop for n below count
                              collect (if (zerop (% n 7)) -32601 n)))))))

(ert-deftest duet-rpc-test-what-follows-a-reply-is-read ()
  "A message right after an awaited reply is handled at once."
  (let* ((seen nil)
         (reply "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"first\"}")
         (event "{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{\"n\":2}}")
         (script (format "read -r header; printf '%s'; exec cat >/dev/null"
                         (mapconcat (lambda (body)
                                      (format "Content-Length: %d\\r\\n\\r\\n%s"
                                              (length body) body))
                                    (list reply event event) ""))))
    (duet-rpc-test-with (connection (duet-rpc-connect
                                     :command (list "sh" "-c" script)
                                     :notification-dispatcher
                                     (lambda (_connection method params)
                                       (push (list method params) seen))))
      (should (equal (duet-rpc-request connection 'greet nil) "first"))
      (duet-rpc-test-wait-for (= (length seen) 2))
      (should (equal seen '((event (:n 2)) (event (:n 2))))))))

(ert-deftest duet-rpc-test-requests-of-the-server ()
  "The dispatcher answers a request of the server, or it is refused."
  (let* ((request "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ask\",\"params\":{\"q\":1}}")
         (script (format "printf 'Content-Length: %d\\r\\n\\r\\n%s'; exec cat >&2"
                         (length request) request))
         (command (list "sh" "-c" script)))
    (cl-flet ((reply (connection)
                (duet-rpc-test-wait-for
                 (with-current-buffer (jsonrpc-stderr-buffer connection)
                   (and (string-match "}\\'" (buffer-string)) (buffer-string))))))
      (duet-rpc-test-with (connection (duet-rpc-connect :command command))
        (should (string-match-p "\"id\":7,\"error\":{\"code\":-32601," (reply connection))))
      (duet-rpc-test-with (connection (duet-rpc-connect
                                       :command command
                                       :request-dispatcher
                                       (lambda (_connection method params)
                                         (list :method (symbol-name method)
                                               :params params))))
        (should (string-match-p
                 (regexp-quote "\"id\":7,\"result\":{\"method\":\"ask\",\"params\":{\"q\":1}}")
                 (reply connection)))))))

(ert-deftest duet-rpc-test-request-inside-a-callback ()
  "A callback may send the next request."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let (answer)
      (duet-rpc-request-async
       connection 'echo [1]
       :success-fn (lambda (result)
                     (duet-rpc-request-async
                      connection 'echo (vconcat result [2])
                      :success-fn (lambda (result) (setq answer result)))))
      (should (equal (duet-rpc-request connection 'echo [0]) [0]))
      (should (equal (duet-rpc-test-wait-for answer) [1 2])))))

(ert-deftest duet-rpc-test-request-inside-a-request ()
  "A synchronous request may run during another one."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let (inner)
      (run-at-time 0 nil (lambda ()
                           (setq inner (duet-rpc-request connection 'test.sleep
                                                         '(:ms 200)))))
      ;; This reply arrives during the other wait.
      (should (equal (duet-rpc-request connection 'test.sleep '(:ms 20))
                     '(:slept_ms 20)))
      (should (equal inner '(:slept_ms 200))))))

(ert-deftest duet-rpc-test-events-buffer-is-capped ()
  "The events buffer has a maximum size, and the connection works without it."
  (dolist (size '(20000 0))
    (let ((duet-rpc-events-buffer-size size))
      (duet-rpc-test-with (connection (duet-rpc-test-connect "--log-level" "error"))
        (dotimes (n 300)
          (let ((text (format "%d: if (a[\"x\"\n)\n}\n(((" n)))
            (should (equal (duet-rpc-request connection 'echo (list :text text))
                           (list :text text)))))
        (let ((kept (buffer-size (jsonrpc-events-buffer connection))))
          (if (zerop size)
              (should (< kept 1000))
            (should (< 1000 kept size))))))))


;;; Errors

(ert-deftest duet-rpc-test-method-not-found ()
  "The error for an unknown method has the method in its data."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((err (duet-rpc-test-error connection 'no.such.method '(:x 1))))
      (should (eql (duet-rpc-error-code err) -32601))
      (should (equal (duet-rpc-error-data err) '(:method "no.such.method")))
      (should (string-match-p "no.such.method" (error-message-string err))))))

(ert-deftest duet-rpc-test-invalid-params ()
  "The error for wrong params describes the valid ones in its data."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let* ((err (duet-rpc-test-error connection 'setLogLevel '(:level "loud")))
           (data (duet-rpc-error-data err)))
      (should (eql (duet-rpc-error-code err) -32602))
      (should (equal (plist-get data :param) "level"))
      (should (equal (plist-get data :accepted) ["debug" "info" "warn" "error"]))
      (should (stringp (plist-get data :expected)))
      (should (string-match-p "loud" (plist-get data :received))))
    (dolist (params (list "a string" :json-false t 5 [1] [(:level "info") 2]))
      (should (eql (duet-rpc-error-code (duet-rpc-test-error connection 'setLogLevel params))
                   -32602)))
    (dolist (params (list nil '(:level nil) '(:level 1) '(:level [])))
      (should (equal (plist-get (duet-rpc-error-data
                                 (duet-rpc-test-error connection 'setLogLevel params))
                                :param)
                     "level")))))

(ert-deftest duet-rpc-test-error-that-only-the-log-may-know ()
  "The internal error of a handler does not leave the server."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((err (duet-rpc-test-error connection 'test.fail nil)))
      (should (eql (duet-rpc-error-code err) -32603))
      (should-not (string-match-p "must not reach" (format "%S" err))))))

(ert-deftest duet-rpc-test-panic ()
  "A panic is an error; the connection and other requests continue."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let (answer)
      (duet-rpc-request-async connection 'test.sleep duet-rpc-test-forever
                              :error-fn (lambda (err) (setq answer err)))
      (dotimes (n 5)
        (let ((err (duet-rpc-test-error connection 'test.panic nil)))
          (should (eql (duet-rpc-error-code err) -32603))
          (should-not (string-match-p "must not reach\\|goroutine" (format "%S" err))))
        (should (equal (duet-rpc-request connection 'echo (vector n)) (vector n))))
      (should (null answer)))))

(ert-deftest duet-rpc-test-error-without-a-function-for-it ()
  "An error without an error function is shown."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let (shown)
      (cl-letf (((symbol-function 'message)
                 (lambda (format &rest arguments)
                   (push (apply #'format-message format arguments) shown))))
        (duet-rpc-request-async connection 'no.such.method nil)
        (duet-rpc-test-wait-for
         (cl-some (lambda (line) (string-match-p "\\`duet-rpc: no.such.method: " line))
                  shown))))))


;;; Text

(ert-deftest duet-rpc-test-megabyte ()
  "A text of a million characters is echoed unchanged."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((text (duet-rpc-test-long-text 1000000)))
      (should (string= (plist-get (duet-rpc-request connection 'echo (list :text text))
                                  :text)
                       text))
      (should (duet-rpc-request connection 'ping nil)))))

(ert-deftest duet-rpc-test-many-long-requests ()
  "Long texts in both directions do not block each other."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((text (duet-rpc-test-long-text 200000))
          (answers '()))
      (dotimes (n 8)
        (duet-rpc-request-async connection 'echo (list :n n :text text)
                                :success-fn (lambda (result) (push result answers))))
      (duet-rpc-test-wait-for (= (length answers) 8))
      (cl-loop for n from 0
               for answer in (reverse answers)
               do (should (eql (plist-get answer :n) n))
               do (should (string= (plist-get answer :text) text))))))

(ert-deftest duet-rpc-test-scripts-of-the-world ()
  "Text in any script is echoed, as a value and as a name."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (dolist (text (list "äöüß ÄÖÜ é" "日本語 한국어 中文" "🎉👩‍👩‍👧‍👦🏳️‍🌈" "שלום عربي"
                        "e\u0301" "\u2028\u2029\ufeff" "\x1f\x7f\u0085" "\"\\/\b\f\n\r\t"
                        (string #x10ffff #xfffd #xd7ff #xe000)))
      (should (string= (plist-get (duet-rpc-request connection 'echo (list :text text))
                                  :text)
                       text))
      (let ((table (make-hash-table :test #'equal))
            (name (intern (concat ":" text))))
        (puthash text 1 table)
        ;; Emacs 28 does not decode the names of members.
        (when (equal (json-parse-string (json-serialize table) :object-type 'plist)
                     (list name 1))
          (should (equal (duet-rpc-request connection 'echo table) (list name 1))))))
    (let ((err (duet-rpc-test-error connection (intern "größe.日本.🎉") nil)))
      (should (equal (duet-rpc-error-data err) '(:method "größe.日本.🎉"))))))

(ert-deftest duet-rpc-test-nul ()
  "A NUL is echoed, or replaced if Emacs cannot parse it."
  (let ((nul (if (ignore-errors (json-parse-string "\"\\u0000\"")) "\0" "\ufffd")))
    (duet-rpc-test-with (connection (duet-rpc-test-connect))
      (should (equal (duet-rpc-request connection 'echo ["a\0b\0\0" "\\u0000" "\\\0"])
                     (vector (concat "a" nul "b" nul nul) "\\u0000" (concat "\\" nul))))
      ;; The output may be cut anywhere.
      (let ((text (make-string 50000 0)))
        (should (equal (duet-rpc-request connection 'echo (vector text))
                       (vector (replace-regexp-in-string "\0" nul text))))))))

(ert-deftest duet-rpc-test-without-nul ()
  "A NUL is replaced wherever output is cut; similar text is not."
  (let ((process (make-pipe-process :name "duet-rpc-test" :noquery t))
        (text "{\"a\":\"x\\u0000\\u0000y\\\\u0000\\\\\\u0000\\n\\u000a\\\\\",\"\\u0000\":0}")
        (expected "{\"a\":\"x\\ufffd\\ufffdy\\\\u0000\\\\\\ufffd\\n\\u000a\\\\\",\"\\ufffd\":0}"))
    (unwind-protect
        (progn
          (should (equal (duet-rpc-request--without-nul process text) expected))
          (dotimes (cut (length text))
            (should (equal (concat (duet-rpc-request--without-nul process (substring text 0 cut))
                                   (duet-rpc-request--without-nul process (substring text cut)))
                           expected)))
          (should (equal (mapconcat (lambda (char)
                                      (duet-rpc-request--without-nul process (string char)))
                                    text "")
                         expected)))
      (delete-process process))))

(provide 'duet-rpc-test)
;;; duet-rpc-test.el ends here
