;;; duet-rules-test.el --- Tests of stored rules  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet)
(require 'duet-rules)

(ert-deftest duet-rules-test-take-back ()
  "A rule for a session is listed; once it is revoked the agent asks again."
  (duet-test-with-project connection
    (save-window-excursion
      (call-interactively #'duet-rules)
      (duet-test-wait-for-text (current-buffer) "No rules yet")
      (should-error (duet-test-press "k" #'duet-rules-take-back) :type 'user-error)
      (let* ((session (duet-test-launch connection "hello"))
             (approval (duet-test-wait-for (car (duet-session-approvals session)))))
        (duet-test-request connection 'approval.decide
                           (list :approval (duet-approval-id approval)
                                 :decision "approve" :scope "session"))
        (duet-test-wait-for-state session 'completed)
        (duet-test-press "g" #'duet-rules-refresh)
        (duet-test-wait-for-text (current-buffer)
                                 "^ allow +Write +\\./\\*\\* +1 hello *$")
        (goto-char (point-min))
        (duet-test-press "k" #'duet-rules-take-back)
        (duet-test-wait-for-text (current-buffer) "No rules yet")
        (duet-test-request connection 'session.prompt
                           (list :session (duet-session-leaf-id session) :prompt "again"))
        (duet-test-wait-for (duet-session-approvals session))
        (should (equal (duet-test-log) ""))))))

(provide 'duet-rules-test)
;;; duet-rules-test.el ends here
