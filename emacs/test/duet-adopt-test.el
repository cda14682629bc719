;;; duet-adopt-test.el --- Tests of taking over sessions of an agent  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-adopt)

(defconst duet-adopt-test-agent
  "#!/bin/sh
answer() { printf '{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\\n' \"$id\" \"$1\"; }
tell() { printf '{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":\"%s\",\"content\":{\"type\":\"text\",\"text\":\"%s\"}}}}\\n' \"$1\" \"$2\"; }
while read -r line; do
	id=${line#*'\"id\":'} id=${id%%,*}
	case $line in
	*'\"initialize\"'*) answer '\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{\"loadSession\":true,\"sessionCapabilities\":{\"list\":{}}}}' ;;
	*'\"session/list\"'*'nowhere'*) answer '\"result\":{\"sessions\":[]}' ;;
	*'\"session/list\"'*) answer '\"result\":{\"sessions\":[{\"sessionId\":\"s1\",\"cwd\":\"/tmp\",\"title\":\"Begun \\u202ealone\",\"updatedAt\":\"2026-01-02T03:04:05Z\"},{\"sessionId\":\"s2\",\"cwd\":\"/tmp\",\"title\":\"Same\"},{\"sessionId\":\"s3\",\"cwd\":\"/tmp\",\"title\":\"Same\"}]}' ;;
	*'\"session/load\"'*) tell user_message_chunk 'what I said'; tell agent_message_chunk 'what it said'; answer '\"result\":{}' ;;
	*) answer '\"error\":{\"code\":-32601,\"message\":\"no such method\"}' ;;
	esac
done
"
  "An agent that lists and loads sessions, and does nothing else.")

(defmacro duet-adopt-test-with (&rest body)
  "Run BODY in the list of sessions of a project whose agent keeps sessions."
  (declare (debug (body)))
  `(duet-test-with-agent duet-adopt-test-agent "theirs" folder ,@body))

(ert-deftest duet-adopt-test-takes-over ()
  "A session is chosen by its title and shown with its messages."
  (duet-adopt-test-with
   (duet-test-listening
     (duet-test-typing "C-g"
       (call-interactively #'duet-adopt-session)
       (duet-test-wait-for (duet-test-heard "^Quit$")))
     (duet-test-typing "Beg TAB RET"
       (duet-adopt-session t)
       (duet-test-wait-for (duet-test-heard "^Duet has the session now")))
     (duet-test-wait-for
      (let ((buffer (window-buffer)))
        (with-current-buffer buffer
          (and (derived-mode-p 'duet-transcript-mode)
               (string-match-p "what I said\\(.\\|\n\\)*what it said" (buffer-string))))))
     (duet-test-typing "Beg TAB RET"
       (duet-adopt-session)
       (duet-test-wait-for (duet-test-heard "was not changed"))))))

(ert-deftest duet-adopt-test-choices ()
  "Equal titles get their ids, and control characters become visible."
  (let ((choices (duet-adopt--choices
                  '((:agent_session_id "a" :title "Same" :working_dir "/tmp" :turn "12.3")
                    (:agent_session_id "b" :title "Same")
                    (:agent_session_id "c" :title "x\u202ey\nz")
                    (:agent_session_id "d")))))
    (should (equal (mapcar #'car (seq-take choices 2)) '("Same (a)" "Same (b)")))
    (should (equal (mapcar #'cadr choices) '("a" "b" "c" "d")))
    (should-not (string-match-p "[\u202e\n]" (car (nth 2 choices))))
    (should (equal (car (nth 3 choices)) "untitled"))
    (should (equal (nth 2 (car choices)) "/tmp · here already: 12.3"))))

(provide 'duet-adopt-test)
;;; duet-adopt-test.el ends here
