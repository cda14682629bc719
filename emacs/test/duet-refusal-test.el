;;; duet-refusal-test.el --- Tests of denied tool calls  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-approvals)

(ert-deftest duet-refusal-test-refused-tool ()
  "A denied tool call looks different from a failed one, and shows the reason."
  (let* ((session (make-duet-session))
         (model (duet-model-create :root "/"))
         (tool (make-duet-tool :session session :name "Bash" :title "touch made" :status 'failed)))
    (setf (duet-session-model session) model)
    (should (string-match-p "\\`✗ " (duet-render--tool tool)))
    (setf (duet-tool-refused-by tool) "mode=plan"
          (duet-tool-refusal tool) "the session is in plan mode")
    (should (string-match-p
             "\\`⊘ touch made\n  not run: denied by plan mode: the session is in plan mode"
             (duet-render--tool tool)))
    (setf (duet-tool-refused-by tool) "user" (duet-tool-refusal tool) "not now")
    (should (string-match-p "not run: denied by you: not now" (duet-render--tool tool)))))

(ert-deftest duet-refusal-test-denied-by-policy ()
  "A denial by policy names the policy."
  (should (equal (duet-approval-outcome '(:status "denied" :decided_by "mode=plan"))
                 "was denied by plan mode"))
  (pcase-dolist (`(,data . ,words)
                 '(((:status "approved" :decided_by "user" :decided_in "VS Code")
                    . "was allowed by you in VS Code")
                   ((:status "approved" :decided_by "user") . "was allowed by you in another client")
                   ((:status "responded" :decided_by "user" :decided_in "the shell" :response "red")
                    . "was answered by you in the shell: red")
                   ((:status "denied" :decided_by "rule=Bash(git:*)" :explanation "a list")
                    . "was denied by rule Bash(git:*): a list")
                   ((:status "approved" :decided_by "rule=session")
                    . "was allowed by a rule of the session")))
    (should (equal (duet-approval-outcome data) words)))
  (pcase-dolist (`(,data . ,words)
                 '(((:status "denied" :decided_in "Emacs") . "❯ Denied by you in Emacs: Write x")
                   ((:status "responded" :decided_in "VS Code") . "❯ Answered by you in VS Code: Write x")
                   ((:status "approved") . "❯ Allowed by you, with an edit: Write x")))
    (should (equal (substring-no-properties
                    (duet-render--answer
                     (make-duet-message :data (append data '(:title "Write x")))))
                   words)))
  (should (string-match-p
           "Denied by a rule of your configuration: Write x"
           (duet-render--answer
            (make-duet-message :data '(:status "denied" :decided_by "rule=user"
                                       :title "Write x"))))))

(ert-deftest duet-refusal-test-once ()
  "A denial is said once, by the tool call, and not as an error."
  (duet-test-with-question (connection session approval) "hello"
    (let ((buffer (duet-transcript-open connection session)))
      (duet-test-request connection 'approval.decide
                         (list :approval (duet-approval-id approval) :decision "deny"
                               :comment "not my file" :client "VS Code"))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "That is all")
      (dolist (words '("denied by you in VS Code: not my file" "denied by you: not my file"))
        (should (= 2 (length (split-string (duet-test-text buffer) "not my file"))))
        (should-not (string-match-p "❯ Denied" (duet-test-text buffer)))
        (should (string-match-p (format "^⊘ Write demo.txt.*\n\\(  .*\n\\)*  not run: %s$" words)
                                (duet-test-text buffer)))
        (with-current-buffer buffer
          (goto-char (point-min))
          (search-forward "⊘")
          (should (eq (get-text-property (1- (point)) 'face) 'duet-dim))
          (search-forward "not run")
          (should (eq (get-text-property (1- (point)) 'face) 'duet-dim))
          ;; The server's copy does not say where.
          (duet-transcript-refresh))
        (duet-test-wait-for-text buffer "That is all")))))

(ert-deftest duet-refusal-test-command-once ()
  "A tool call shows its command and its file once."
  (let ((session (make-duet-session)))
    (setf (duet-session-model session) (duet-model-create :root "/"))
    (cl-flet ((shown (&rest members)
                (substring-no-properties
                 (duet-render--tool (apply #'make-duet-tool :session session
                                           (append members '(:status completed)))))))
      (should (equal (shown :name "Bash" :title "Bash" :input '(:command "make all" :timeout 5))
                     "● Bash make all\n  timeout: 5"))
      (should (equal (shown :name "Bash" :title "make all" :input '(:command "make all"))
                     "● make all"))
      (should (equal (shown :name "Bash" :title "Bash" :input '(:command "one\ntwo"))
                     "● Bash one\n  command: one\n    two"))
      (should (equal (shown :name "Read" :title "Read" :paths '("/etc/x")
                            :input '(:file_path "/etc/x" :limit 3))
                     "● Read etc/x\n  etc/x\n  limit: 3"))
      ;; The hunks show the text of the file.
      (should (equal (shown :name "Write" :title "Write x" :paths '("/etc/x")
                            :input '(:file_path "/etc/x" :content "a\nb\n")
                            :diffs '((:path "/etc/x" :old_text "a\n" :new_text "b\n" :line 2)))
                     "● Write x +1 −1\n  @@ etc/x:2\n  -a\n  +b"))
      ;; The agent's name for a denial is not shown beside Duet's.
      (should (equal (shown :name "Bash" :title "Bash" :refused-by "user"
                            :status 'failed :result "The user rejected it")
                     "⊘ Bash\n  not run: denied by you")))))

(ert-deftest duet-refusal-test-rule ()
  "The transcript shows a denial by a rule, with the rule and its reason."
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
        (duet-test-wait-for-text buffer "not run: denied by a rule of your configuration: .*config\\.toml")
        (should-not (string-match-p "❯ Denied.*\n  denied$" (duet-test-text buffer)))))))

(provide 'duet-refusal-test)
;;; duet-refusal-test.el ends here
