;;; duet-secrets-test.el --- Tests of keys from auth-source  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'auth-source)
(require 'duet-secrets)

(defmacro duet-secrets-test-with (lines &rest body)
  "Run BODY with a project's `connection' and an authinfo file of LINES.
`answers' has the keys sent, the last first: pairs of service and secret."
  (declare (indent 1) (debug (form body)))
  `(duet-test-with-project connection
     (let* ((file (expand-file-name "authinfo" (duet-connection-root connection)))
            (auth-sources (list file))
            (duet-secrets--leave 0)
            (duet-secrets--waiting nil)
            (duet-secrets--timer nil)
            (answers '()))
       (ignore answers)
       (with-temp-file file (insert ,lines))
       (duet-model-add-observer #'duet-secrets--observe)
       (let ((request (symbol-function 'duet-connection-request)))
         (cl-letf (((symbol-function 'duet-connection-request)
                    (lambda (connection method params &rest rest)
                      (when (eq method 'secret.provide)
                        (push (cons (plist-get params :service)
                                    (copy-sequence (plist-get params :secret)))
                              answers))
                      (apply request connection method params rest))))
           ,@body)))))

(defun duet-secrets-test-ask (connection service)
  "Send CONNECTION a request for the key of SERVICE."
  (duet-connection--notified
   connection 'event
   `(:kind "secret.requested" :time "2026-01-01T00:00:00Z"
           :data (:request_id ,(concat "r-" service) :service ,service))))

(ert-deftest duet-secrets-test-found ()
  "A key is found by the name of the service, or by its host name."
  (duet-secrets-test-with "machine mine login apikey password s3cret-1
machine api.openai.com login x password s3cret-2\n"
    (duet-secrets-test-ask connection "mine")
    (duet-secrets-test-ask connection "openai")
    (should-not answers)                ; not in the process filter
    (duet-test-wait-for (length= answers 2))
    (should (equal (reverse answers) '(("mine" . "s3cret-1") ("openai" . "s3cret-2"))))))

(ert-deftest duet-secrets-test-nowhere-to-be-read ()
  "A key is neither in the log nor in the buffer of events."
  (let ((duet-events-buffer-size 100000))
    (duet-secrets-test-with "machine mine login apikey password s3cret-1\n"
      (duet-secrets-test-ask connection "mine")
      (duet-test-wait-for answers)
      ;; The server reports that the request is unknown.
      (duet-test-wait-for (string-match-p "not wanted any more" (duet-test-log)))
      (duet-test-request connection 'ping nil)
      (let ((events (with-current-buffer
                        (jsonrpc-events-buffer (duet-connection-rpc connection))
                      (buffer-string))))
        (should (string-match-p "ping" events))
        (should (string-match-p "event.subscribe" events))
        (should-not (string-match-p "s3cret" events)))
      (dolist (buffer (buffer-list))
        (unless (equal (buffer-file-name buffer) file)
          (with-current-buffer buffer
            (when (string-match-p "s3cret-1" (buffer-string))
              (should (string-match-p "authinfo\\|auth-source" (buffer-name))))))))))

(ert-deftest duet-secrets-test-none ()
  "Without an entry the server gets a refusal, and the user a hint what to write."
  (duet-secrets-test-with "machine other login apikey password s3cret-1\n"
    (let ((said '()))
      (cl-letf (((symbol-function 'message)
                 (lambda (format &rest arguments)
                   (when format (push (apply #'format format arguments) said)))))
        (duet-secrets-test-ask connection "mine")
        (duet-test-wait-for answers))
      (should (equal answers '(("mine" . ""))))
      (should (cl-some (lambda (text)
                         (string-match-p "machine mine login apikey password KEY" text))
                       said))
      ;; An entry that is written now is found.
      (setq answers nil)
      (with-temp-file file (insert "machine mine login apikey password s3cret-3\n"))
      (duet-secrets-test-ask connection "mine")
      (duet-test-wait-for answers)
      (should (equal answers '(("mine" . "s3cret-3")))))))

(ert-deftest duet-secrets-test-quit ()
  "A \\`C-g' at the passphrase declines; the next request is answered."
  (duet-secrets-test-with "machine mine login apikey password s3cret-1\n"
    (let ((search (symbol-function 'auth-source-search)))
      (cl-letf (((symbol-function 'auth-source-search)
                 (lambda (&rest spec)
                   (when (equal (plist-get spec :host) "locked")
                     (signal 'quit nil))
                   (when (equal (plist-get spec :host) "damaged")
                     (signal 'file-error '("Opening input file" "Decryption failed")))
                   (apply search spec))))
        (duet-secrets-test-ask connection "locked")
        (duet-secrets-test-ask connection "damaged")
        (duet-secrets-test-ask connection "mine")
        (duet-test-wait-for (length= answers 3))
        (should (equal (reverse answers)
                       '(("locked" . "") ("damaged" . "") ("mine" . "s3cret-1"))))
        (should (string-match-p "Decryption failed" (duet-test-log)))))))

(ert-deftest duet-secrets-test-odd ()
  "Malformed requests of a server are logged."
  (duet-secrets-test-with ""
    (dolist (data '(nil (:service "x") (:request_id 1 :service "x") (:request_id "x")
                        (:request_id "x" :service ["x"])))
      (duet-connection--notified connection 'event
                                 `(:kind "secret.requested" :data ,data)))
    (duet-test-request connection 'ping nil)
    (should-not duet-secrets--waiting)
    (should-not answers)))

(ert-deftest duet-secrets-test-agent ()
  "An agent that needs a key gets it from Emacs; without it, it does not start."
  (duet-secrets-test-with "machine mine login apikey password s3cret-1\n"
    (let ((config (expand-file-name "../config/duet/config.toml"
                                    (duet-connection-root connection))))
      (make-directory (file-name-directory config) t)
      (with-temp-file config
        (insert "[agents.locked]\ndriver = \"command\"\n"
                "command = [\"sh\", \"-c\", \"printf %s ${KEY} | wc -c\"]\n"
                "keys = { KEY = \"mine\" }\n"))
      (duet-test-end connection)
      (duet-connection-restart connection)
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
      (let ((session (duet-test-launch connection "hello" :agent "locked")))
        (duet-test-wait-for-state session 'completed)
        (should (equal answers '(("mine" . "s3cret-1"))))
        (duet-test-wait-for-text (duet-transcript-open connection session)
                                 "^ *8$"))
      (with-temp-file file (insert ""))
      (let ((session (duet-test-launch connection "hello" :agent "locked")))
        (duet-test-wait-for-state session 'failed)
        (should (equal (car answers) '("mine" . "")))
        (should (string-match-p "mine" (duet-session-error session)))))))

(provide 'duet-secrets-test)
;;; duet-secrets-test.el ends here
