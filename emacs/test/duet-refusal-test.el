;;; duet-refusal-test.el --- Tests of what was not let run  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-approvals)

(ert-deftest duet-refusal-test-refused-tool ()
  "A tool that was refused looks otherwise than one that failed, and says why."
  (let* ((session (make-duet-session))
         (model (duet-model-create :root "/"))
         (tool (make-duet-tool :session session :name "Bash" :title "touch made" :status 'failed)))
    (setf (duet-session-model session) model)
    (should (string-match-p "\\`✗ " (duet-render--tool tool)))
    (setf (duet-tool-refused-by tool) "mode=plan"
          (duet-tool-refusal tool) "the session is in plan mode")
    (should (string-match-p
             "\\`⊘ touch made\n  not run: denied by mode=plan: the session is in plan mode"
             (duet-render--tool tool)))
    (setf (duet-tool-refused-by tool) "user" (duet-tool-refusal tool) "not now")
    (should (string-match-p "not run: denied: not now" (duet-render--tool tool)))))

(ert-deftest duet-refusal-test-denied-by-policy ()
  "What the policy denied says so."
  (should (equal (duet-approval-outcome '(:decision "denied" :decided_by "mode=plan"))
                 "was denied by a mode"))
  (should (string-match-p
           "Denied by rule=user: Write x"
           (duet-render--answer
            (make-duet-message :data '(:decision "denied" :decided_by "rule=user"
                                       :title "Write x"))))))

(ert-deftest duet-refusal-test-rule ()
  "What a rule denies unasked stands in the transcript, with the rule and why."
  (duet-test-with-project connection
    (let* ((root (duet-connection-root connection))
           (folder (expand-file-name "../config/duet/" root)))
      (make-directory folder t)
      (with-temp-file (expand-file-name "config.toml" folder)
        (insert "[[rules]]\neffect = \"deny\"\ntool = \"Write\"\n"))
      (duet-test-request connection 'ping nil)
      (let* ((session (duet-test-launch connection "hello"))
             (buffer (duet-transcript-open connection session)))
        (duet-test-wait-for-state session 'completed)
        (duet-test-wait-for-text buffer "not run: denied by rule=.*: .*config\\.toml")
        (should-not (string-match-p "❯ Denied: .*\n  denied$" (duet-test-text buffer)))))))

(provide 'duet-refusal-test)
;;; duet-refusal-test.el ends here
