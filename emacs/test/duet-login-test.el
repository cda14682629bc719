;;; duet-login-test.el --- Tests of signing in to agents  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-agents)
(require 'duet-terminal)

(defconst duet-login-test-agent
  "#!/bin/sh
state=${0%/*}
answer() { printf '{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\\n' \"$id\" \"$1\"; }
test \"$1\" = --login && { echo 'this is the login'; touch \"$state/in\"; exit 0; }
while read -r line; do
	id=${line#*'\"id\":'} id=${id%%,*}
	case $line in
	*'\"initialize\"'*) answer '\"result\":{\"protocolVersion\":1,\"agentInfo\":{\"name\":\"theirs\"},\"agentCapabilities\":{\"auth\":{\"logout\":{}}},\"authMethods\":[{\"id\":\"b\",\"name\":\"Browser\"},{\"id\":\"t\",\"name\":\"Terminal\",\"type\":\"terminal\",\"args\":[\"--login\"]}]}' ;;
	*'\"authenticate\"'*) touch \"$state/in\"; answer '\"result\":{}' ;;
	*'\"logout\"'*) rm \"$state/in\"; answer '\"result\":{}' ;;
	*'\"session/new\"'*) answer '\"result\":{\"sessionId\":\"s\"}' ;;
	esac
done
"
  "An agent that supports login and logout, and does nothing else.")

(defmacro duet-login-test-with (&rest body)
  "Run BODY in the list of sessions of a project with the agent theirs.
The file `in' exists while the agent is signed in."
  (declare (debug (body)))
  `(duet-test-with-agent duet-login-test-agent "demo" folder
     (let ((in (expand-file-name "in" folder))) ,@body)))

(defconst duet-login-test-locked
  (string-replace "*'\"session/new\"'*) answer '\"result\":{\"sessionId\":\"s\"}' ;;"
                  "*'\"session/new\"'*) answer '\"error\":{\"code\":-32000,\"message\":\"log in first\"}' ;;"
                  duet-login-test-agent)
  "The agent while it is signed out.")

(ert-deftest duet-login-test-offered ()
  "A turn that fails because of a missing login offers a key to sign in."
  (let ((duet-login-test-agent duet-login-test-locked))
    (duet-login-test-with
     (let* ((session (duet-test-launch connection "hello" :agent "theirs"))
            (buffer (duet-transcript-open connection session)))
       (duet-test-wait-for-text buffer "\\[Sign in to theirs\\] (I, then [cr] to go on)")
       (with-current-buffer buffer
         (duet-test-listening
           (duet-test-typing "Brow TAB RET"
             (duet-test-press "I" #'duet-login)
             (duet-test-wait-for (duet-test-heard "^You are signed in to theirs$")))))
       (should (file-exists-p in))))))

(ert-deftest duet-login-test-by-itself ()
  "An agent signs in and out by itself; C-g changes nothing."
  (duet-login-test-with
   (duet-test-listening
     (duet-test-typing "C-g"
       (duet-login "theirs")
       (duet-test-wait-for (duet-test-heard "^Quit$")))
     (should-not (file-exists-p in))
     (duet-test-typing "theirs RET Brow TAB RET"
       (call-interactively #'duet-login)
       (duet-test-wait-for (duet-test-heard "^You are signed in to theirs$")))
     (should (file-exists-p in))
     (duet-test-typing "theirs RET" (call-interactively #'duet-logout))
     (duet-test-wait-for (duet-test-heard "^Signed out of theirs$"))
     (should-not (file-exists-p in))
     (duet-login "demo")
     (duet-test-wait-for (duet-test-heard "^demo offers no way to sign in$"))
     (duet-login "nobody")
     (duet-test-wait-for (duet-test-heard "there is no agent")))))

(ert-deftest duet-login-test-terminal ()
  "A program of the agent signs in, in a terminal."
  (duet-login-test-with
   (let ((duet-terminal-backend 'term))
     (duet-test-typing "Term TAB RET"
       (duet-login "theirs")
       (duet-test-wait-for (file-exists-p in) 20)))))

(provide 'duet-login-test)
;;; duet-login-test.el ends here
