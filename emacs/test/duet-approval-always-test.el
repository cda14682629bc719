;;; duet-approval-always-test.el --- Tests of lasting approvals  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-approvals)

(ert-deftest duet-approval-always-test-scopes ()
  "A tool that is allowed in the session or the project needs no more approval."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "permit:2"))
           (approval (duet-test-question session)))
      (duet-approvals)
      (duet-test-typing "C-a C-k RET"
        (duet-test-should-say "Not answered"
          (duet-test-press "s" #'duet-approval-always)))
      (let (prompt)
        (minibuffer-with-setup-hook (lambda () (setq prompt (minibuffer-prompt)))
          (duet-test-should-quit "C-g"
            (duet-test-press "s" #'duet-approval-always)))
        ;; VS Code has the same words.
        (should (equal (substring-no-properties prompt)
                       "Allowed without a question: the command echo 1, in this session\nPattern: ")))
      (should-not (duet-approval-sending-p approval))
      (duet-test-typing "RET" (duet-test-press "s" #'duet-approval-always))
      (duet-test-wait-for (duet-test-heard "^Allowed, always in this session")))
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-test-question session)))
      ;; Meanwhile the first session asks about another command.
      (duet-test-go-to-question approval)
      (should (string-match-p "Write of files in .* and below\\'" (duet-approval-always-covers approval)))
      (duet-test-typing "DEL RET" (duet-test-press "p" #'duet-approval-always-in-project))
      (duet-test-wait-for-state session 'completed)
      (should (string-suffix-p
               "project/*" (duet-get-string (aref (duet-get (duet-test-request
                                                       connection 'rule.list nil)
                                                      :rules)
                                            1)
                                      :path)))
      (setq session (duet-test-launch connection "hello again"))
      (duet-test-wait-for-state session 'completed)
      (should (equal (duet-test-demo-file connection)
                     "Turn 1: hello\nTurn 1: hello again\n")))))

(provide 'duet-approval-always-test)
;;; duet-approval-always-test.el ends here
