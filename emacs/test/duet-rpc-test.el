;;; duet-rpc-test.el --- Tests of duet-rpc.el with the real server  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The environment variable DUET_RPC_BIN names the server.  What a test waits
;; for it waits for with a deadline, never for a length of time.
;;
;; The tests named duet-rpc-test-raw-* use jsonrpc.el alone, as somebody may
;; who does not want this package.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'jsonrpc)
(require 'duet-rpc)

(defconst duet-rpc-test-deadline 60
  "How many seconds anything may take; only a broken server takes them.")

(defconst duet-rpc-test-soon 5
  "How many seconds an end that is promised within 2 may take.
The rest is for a busy machine.")

(defconst duet-rpc-test-forever '(:ms 3600000)
  "Params of a `test.sleep' that ends before a test only if it is told to.")

(defun duet-rpc-test-server (&rest flags)
  "Return the command that starts the server with FLAGS."
  (let ((program (getenv "DUET_RPC_BIN")))
    (unless (and program (file-executable-p program))
      (ert-fail (format "DUET_RPC_BIN must name the duet-rpc binary, it is %S" program)))
    `(,(expand-file-name program) "--test-methods" ,@flags)))

(defmacro duet-rpc-test-with (binding &rest body)
  "Run BODY with BINDING, (VARIABLE FORM), to the connection that FORM makes.
The server is gone afterwards, and so are the buffers."
  (declare (indent 1) (debug ((symbolp form) body)))
  `(let* ((inhibit-message t)
          (jsonrpc-default-request-timeout duet-rpc-test-deadline)
          (duet-rpc-request-timeout duet-rpc-test-deadline)
          ,binding)
     (ignore jsonrpc-default-request-timeout)
     (unwind-protect (progn ,@body)
       (duet-rpc-test-bury ,(car binding)))))

(defun duet-rpc-test-bury (connection)
  "Kill the process and the buffers of CONNECTION."
  (delete-process (jsonrpc--process connection))
  (dolist (buffer (list (process-buffer (jsonrpc--process connection))
                        (jsonrpc-stderr-buffer connection)
                        (jsonrpc-events-buffer connection)))
    (when (buffer-live-p buffer) (kill-buffer buffer))))

(defun duet-rpc-test-connect (&rest flags)
  "Connect to a server that is started with FLAGS."
  (duet-rpc-connect :command (apply #'duet-rpc-test-server flags)))

(defun duet-rpc-test-connect-and-tell (on-shutdown)
  "Connect to a server whose end is told to ON-SHUTDOWN."
  (duet-rpc-connect :command (duet-rpc-test-server) :on-shutdown on-shutdown))

(defun duet-rpc-test-connect-raw (&rest flags)
  "Connect to a server that is started with FLAGS, with jsonrpc.el alone."
  (let ((command (apply #'duet-rpc-test-server flags)))
    (apply #'make-instance 'jsonrpc-process-connection
           :name "raw"
           :process (lambda ()
                      (make-process :name "raw" :command command
                                    :connection-type 'pipe
                                    :coding 'utf-8-emacs-unix :noquery t
                                    :stderr (get-buffer-create "*raw stderr*")))
           (duet-rpc--events-buffer-arguments))))

(defmacro duet-rpc-test-wait-for (condition &optional seconds)
  "Wait until CONDITION is non-nil and return its value.
Fail if it is not within SECONDS, `duet-rpc-test-deadline' if nil."
  `(duet-rpc-test-wait-for-1 (lambda () ,condition) ',condition
                             (or ,seconds duet-rpc-test-deadline)))

(defun duet-rpc-test-wait-for-1 (condition form seconds)
  "Wait until CONDITION, which FORM spells, is non-nil, for SECONDS at most."
  (let ((deadline (+ (float-time) seconds))
        value)
    (while (not (setq value (funcall condition)))
      (when (> (float-time) deadline)
        (ert-fail (format "Waited %s s for %S" seconds form)))
      (accept-process-output nil 0.02))
    value))

(defun duet-rpc-test-error (connection method params)
  "Return the error that a request of METHOD with PARAMS to CONNECTION meets."
  (should-error (duet-rpc-request connection method params) :type 'duet-rpc-error))

(defun duet-rpc-test-object (value)
  "Return the members of VALUE, a JSON object, in a defined order."
  (sort (cl-loop for (key member) on value by #'cddr collect (list key member))
        (lambda (a b) (string< (symbol-name (car a)) (symbol-name (car b))))))

(defun duet-rpc-test-gone-p (pid)
  "Return non-nil if there is no process PID.
One that has ended counts even where nobody has looked at its status yet."
  (let ((attributes (process-attributes pid)))
    (or (null attributes)
        (equal (alist-get 'state attributes) "Z"))))

(defun duet-rpc-test-long-text (length)
  "Return a text of LENGTH characters, some of which JSON has to escape."
  (let ((line "No \"play\" makes\tJack\\Jill ein tüchtiger Bursche; 日本語 🎉\n"))
    (substring (apply #'concat (make-list (1+ (/ length (length line))) line))
               0 length)))


;;; Starting

(ert-deftest duet-rpc-test-unknown-program ()
  "A program that is not there is named, and nothing is started."
  (let* ((duet-rpc-command '("duet-rpc-that-nobody-has" "--flag"))
         (processes (process-list))
         (err (should-error (duet-rpc-connect) :type 'user-error)))
    (should (string-match-p "duet-rpc-that-nobody-has" (error-message-string err)))
    (should (string-match-p "duet-rpc-command" (error-message-string err)))
    (should (equal (process-list) processes))))

(ert-deftest duet-rpc-test-command-of-wrong-type ()
  "A command that is no list of strings is refused in words."
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
            (should (equal (duet-rpc-words) (list link "--test-methods")))
            (duet-rpc-test-with (connection (duet-rpc-connect))
              (should (equal (duet-rpc-request connection 'echo '(:a 1)) '(:a 1)))
              (should (equal (duet-rpc-connection-command connection)
                             (list link "--test-methods"))))))
      (delete-directory folder t))
    (should (equal (duet-rpc-words "~/bin/duet-rpc")
                   (list (expand-file-name "~/bin/duet-rpc"))))
    (should (equal (duet-rpc-words '("~/bin/duet-rpc" "a b")) '("~/bin/duet-rpc" "a b")))))

(ert-deftest duet-rpc-test-unknown-directory ()
  "A directory that is not there is named."
  (let ((err (should-error (duet-rpc-connect :command (duet-rpc-test-server)
                                             :directory "/nowhere/at/all")
                           :type 'user-error)))
    (should (string-match-p "/nowhere/at/all" (error-message-string err)))))

(ert-deftest duet-rpc-test-server-that-does-not-start ()
  "The reason why a server does not start is what the user is told."
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

(ert-deftest duet-rpc-test-shutdown-of-the-hub-of-others ()
  "A process that serves another connection too lives on for it."
  (let ((default-directory (file-name-as-directory (make-temp-file "duet" 'directory))))
    (make-directory ".duet")
    (duet-rpc-test-with (one (duet-rpc-test-connect))
      (let ((hub (plist-get (duet-rpc-request one 'daemon.status nil) :pid))
            (began (float-time)))
        (duet-rpc-test-with (two (duet-rpc-test-connect))
          (should (equal (plist-get (duet-rpc-request two 'daemon.status nil) :pid) hub))
          (duet-rpc-shutdown one)
          (should (< (- (float-time) began) duet-rpc-test-soon))
          (should-error (duet-rpc-request one 'ping nil :timeout 1) :type 'duet-rpc-error)
          (should (equal (plist-get (duet-rpc-request two 'daemon.status nil) :pid) hub))
          (duet-rpc-shutdown two))))
    (delete-directory default-directory t)))

(ert-deftest duet-rpc-test-name-is-used-again ()
  "A connection that follows one that has ended has its name."
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
  "The server runs in the directory that it is given."
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
  "The core methods answer what the protocol says."
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
  "A caller that tells its capabilities is told those of the server."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((capabilities (plist-get (duet-rpc-request
                                    connection 'initialize
                                    (list :capabilities (make-hash-table)))
                                   :capabilities)))
      (should (eq (plist-get capabilities :cancellation) t))
      (should (cl-find "test.sleep" (plist-get capabilities :longRunning) :test #'equal)))))

(ert-deftest duet-rpc-test-methods-describe-themselves ()
  "The lists of methods, nested and long, can be read by Emacs."
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
  "No params are an empty object; a method may be a symbol or a string."
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
  "Every kind of JSON value comes back as it was sent."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (dolist (value (list [] [nil] [[] [[]]] '(:a nil :b :json-false :c t :d [] :e "")
                         [0 -1 1.5 1e-7 2305843009213693951 -2305843009213693952]
                         [9223372036854775807 -9223372036854775808]
                         "a string by itself" :json-false t
                         '(:nested (:nested (:nested [(:x 1) (:y [2])])))))
      (should (equal (duet-rpc-request connection 'echo value) value)))
    ;; What Emacs cannot tell apart.
    (should (null (duet-rpc-request connection 'echo nil)))
    (should (null (duet-rpc-request connection 'echo (make-hash-table))))
    (should (equal (duet-rpc-request connection 'echo (list :o (make-hash-table)))
                   '(:o nil)))))

(ert-deftest duet-rpc-test-forms-of-no-params ()
  "Nothing, an empty object and an empty array all mean no params."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (dolist (params (list nil (make-hash-table) [] [nil]))
      (should (eq (plist-get (duet-rpc-request connection 'ping params) :pong) t)))
    (should (equal (duet-rpc-request connection 'setLogLevel [(:level "info")])
                   '(:level "info" :success t)))))

(ert-deftest duet-rpc-test-notifications ()
  "A notification is not answered, whether it is known or not."
  (duet-rpc-test-with (connection (duet-rpc-test-connect "--log-level" "error"))
    (duet-rpc-notify connection 'no.such.notification '(:x 1))
    (duet-rpc-notify connection "$/setTrace" '(:value "off"))
    (duet-rpc-notify connection '$/cancelRequest '(:id 999))
    (duet-rpc-notify connection 'ping nil)
    (duet-rpc-notify connection 'setLogLevel '(:level 5))
    (should (equal (duet-rpc-request connection 'echo [1]) [1]))
    (should (null (jsonrpc-last-error connection)))
    ;; A notification does what its method does: this one makes the log talk.
    (duet-rpc-notify connection 'setLogLevel '(:level "debug"))
    (should (duet-rpc-request connection 'ping nil))
    (duet-rpc-test-wait-for
     (with-current-buffer (jsonrpc-stderr-buffer connection)
       (string-match-p "ping" (buffer-string))))))

(ert-deftest duet-rpc-test-many-requests-in-order ()
  "Requests that are sent at once are answered in the order they were sent."
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
  "A message right behind the reply that is waited for is handled at once."
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
  "A request of the server is answered by the dispatcher, or refused."
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
  "Somebody may wait for a request while another one is waited for."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let (inner)
      (run-at-time 0 nil (lambda ()
                           (setq inner (duet-rpc-request connection 'test.sleep
                                                         '(:ms 200)))))
      ;; This answer comes while the other one is waited for.
      (should (equal (duet-rpc-request connection 'test.sleep '(:ms 20))
                     '(:slept_ms 20)))
      (should (equal inner '(:slept_ms 200))))))

(ert-deftest duet-rpc-test-events-buffer-is-capped ()
  "What was said is kept, but not more than the user wants, and works on."
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
  "An unknown method is an error with the method in its data."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((err (duet-rpc-test-error connection 'no.such.method '(:x 1))))
      (should (eql (duet-rpc-error-code err) -32601))
      (should (equal (duet-rpc-error-data err) '(:method "no.such.method")))
      (should (string-match-p "no.such.method" (error-message-string err))))))

(ert-deftest duet-rpc-test-invalid-params ()
  "Wrong params are an error whose data tell what would have been right."
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
  "What a handler's failure says inside does not leave the server."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((err (duet-rpc-test-error connection 'test.fail nil)))
      (should (eql (duet-rpc-error-code err) -32603))
      (should-not (string-match-p "must not reach" (format "%S" err))))))

(ert-deftest duet-rpc-test-panic ()
  "A panic is an error; the connection and what else is running live on."
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
  "An error that nobody asked for is shown."
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
  "A text of a million characters goes there and comes back."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((text (duet-rpc-test-long-text 1000000)))
      (should (string= (plist-get (duet-rpc-request connection 'echo (list :text text))
                                  :text)
                       text))
      (should (duet-rpc-request connection 'ping nil)))))

(ert-deftest duet-rpc-test-many-long-requests ()
  "Long texts in both directions at once do not block one another."
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
  "Text of any script comes back, as a value and as a name."
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
  "A NUL comes back, or what stands for it where Emacs cannot read one."
  (let ((nul (if (ignore-errors (json-parse-string "\"\\u0000\"")) "\0" "\ufffd")))
    (duet-rpc-test-with (connection (duet-rpc-test-connect))
      (should (equal (duet-rpc-request connection 'echo ["a\0b\0\0" "\\u0000" "\\\0"])
                     (vector (concat "a" nul "b" nul nul) "\\u0000" (concat "\\" nul))))
      ;; However it is cut into pieces.
      (let ((text (make-string 50000 0)))
        (should (equal (duet-rpc-request connection 'echo (vector text))
                       (vector (replace-regexp-in-string "\0" nul text))))))))

(ert-deftest duet-rpc-test-without-nul ()
  "A NUL is replaced wherever output is cut, and what looks like one is not."
  (let ((process (make-pipe-process :name "duet-rpc-test" :noquery t))
        (text "{\"a\":\"x\\u0000\\u0000y\\\\u0000\\\\\\u0000\\n\\u000a\\\\\",\"\\u0000\":0}")
        (expected "{\"a\":\"x\\ufffd\\ufffdy\\\\u0000\\\\\\ufffd\\n\\u000a\\\\\",\"\\ufffd\":0}"))
    (unwind-protect
        (progn
          (should (equal (duet-rpc--without-nul process text) expected))
          (dotimes (cut (length text))
            (should (equal (concat (duet-rpc--without-nul process (substring text 0 cut))
                                   (duet-rpc--without-nul process (substring text cut)))
                           expected)))
          (should (equal (mapconcat (lambda (char)
                                      (duet-rpc--without-nul process (string char)))
                                    text "")
                         expected)))
      (delete-process process))))


;;; Long-running requests

(ert-deftest duet-rpc-test-long-running-request ()
  "A long-running request holds up nobody and answers when it is done."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((answers '()))
      (duet-rpc-request-async connection 'test.sleep '(:ms 300)
                              :success-fn (lambda (result) (push result answers)))
      (duet-rpc-request-async connection 'echo [1]
                              :success-fn (lambda (result) (push result answers)))
      (duet-rpc-test-wait-for (= (length answers) 2))
      (should (equal answers '((:slept_ms 300) [1]))))))

(ert-deftest duet-rpc-test-cancellation ()
  "A request that is cancelled answers so; the one beside it goes on."
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
      ;; One that has been answered can be cancelled again without harm.
      (duet-rpc-cancel connection id)
      (should (duet-rpc-request connection 'ping nil))
      (should (null other)))))

(ert-deftest duet-rpc-test-quit ()
  "A quit gives up the waiting at once and cancels the request."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (let ((outcome nil))
      (run-at-time 0.05 nil (lambda () (setq quit-flag t)))
      (condition-case nil
          (setq outcome (duet-rpc-request connection 'test.sleep duet-rpc-test-forever))
        (quit (setq outcome 'quit)))
      (should (eq outcome 'quit))
      ;; The server's answer to the cancellation is the proof that there was one.
      (duet-rpc-test-wait-for (jsonrpc-last-error connection))
      (should (eql (plist-get (jsonrpc-last-error connection) :code) -32800))
      (should (equal (duet-rpc-request connection 'echo [1]) [1])))))

(ert-deftest duet-rpc-test-input-while-waiting ()
  "Whatever else ends the waiting cancels the request too."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (should (eq (catch 'enough
                  (run-at-time 0.05 nil (lambda () (throw 'enough 'thrown)))
                  (duet-rpc-request connection 'test.sleep duet-rpc-test-forever))
                'thrown))
    (duet-rpc-test-wait-for (jsonrpc-last-error connection))
    (should (eql (plist-get (jsonrpc-last-error connection) :code) -32800))))

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
  "TIMEOUT-FN is called, once, and the request is cancelled."
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
  "A server that is asked to end does, with exit status 0."
  (duet-rpc-test-with (connection (duet-rpc-test-connect))
    (should (duet-rpc-request connection 'ping nil))
    (let ((start (float-time)))
      (duet-rpc-shutdown connection)
      (should (< (- (float-time) start) duet-rpc-test-soon)))
    (let ((process (jsonrpc--process connection)))
      (should (equal (list (process-status process) (process-exit-status process))
                     '(exit 0))))
    (should-not (jsonrpc-running-p connection))
    ;; Once more is not an error.
    (duet-rpc-shutdown connection)))

(ert-deftest duet-rpc-test-shutdown-with-running-requests ()
  "Requests that are running when the server ends are answered."
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
  "A reply that is the last thing a server says is a reply, not its death."
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
  "A server that does not end is killed."
  (duet-rpc-test-with (connection (duet-rpc-connect
                                   :command '("sh" "-c" "exec tail -f /dev/null")))
    (let ((start (float-time)))
      (duet-rpc-shutdown connection)
      (should (< (- (float-time) start) duet-rpc-test-deadline)))
    (duet-rpc-test-wait-for (duet-rpc-test-gone-p
                             (process-id (jsonrpc--process connection))))))

(ert-deftest duet-rpc-test-server-is-killed ()
  "The death of the server ends what waits for it, with a clear error."
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

(defun duet-rpc-test-orphan (form)
  "Start an Emacs that connects, evaluates FORM and waits; kill it.
Return once its server is gone."
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
  "A server whose Emacs is killed is soon gone."
  (duet-rpc-test-orphan nil))

(ert-deftest duet-rpc-test-emacs-is-killed-while-requests-run ()
  "A server whose Emacs is killed does not wait for what is running."
  (duet-rpc-test-orphan
   `(dotimes (_ 5)
      (duet-rpc-request-async connection 'test.sleep ',duet-rpc-test-forever))))


;;; What is on standard output

(ert-deftest duet-rpc-test-nothing-but-frames ()
  "Standard output carries frames alone, however much there is to log."
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
            ;; What was no JSON and what had no length.
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
  "A text of a million characters goes there and comes back."
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
  "The ways in which a client without this package ends a server."
  (duet-rpc-test-with (connection (duet-rpc-test-connect-raw))
    ;; Not as a request: jsonrpc.el 1.0.25 may report the end of the server
    ;; before it looks at the reply that it has read.
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

(provide 'duet-rpc-test)
;;; duet-rpc-test.el ends here
