;;; duet-transcript-reopen-test.el --- Tests of reopened transcripts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(ert-deftest duet-transcript-test-reopen ()
  "A transcript that is opened later has the same text."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet think tools:2"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "That is all\\.\\'\\|That is all\\. *\n")
      (let ((text (duet-test-text buffer)))
        (kill-buffer buffer)
        (should-not (duet-session-loaded session))
        (setq buffer (duet-transcript-open connection session))
        (duet-test-wait-for (eq (duet-session-loaded session) t))
        (duet-test-wait-for-text buffer "That is all")
        (should (equal (duet-test-text buffer) text))
        (with-current-buffer buffer
          (duet-test-press "g" #'duet-transcript-refresh)
          (duet-test-should-say "already loading"
            (duet-test-press "g" #'duet-transcript-refresh)))
        (duet-test-wait-for (eq (duet-session-loaded session) t))
        (duet-test-wait-for-text buffer "That is all")
        (should (equal (duet-test-text buffer) text))))))

;; Plans and changed files were once only in transcripts that were open at the time.
(ert-deftest duet-transcript-test-reopen-plan-and-changes ()
  "A transcript that is opened later has the plan and the changed files in place."
  (duet-test-with-project connection
    (let* ((shown (lambda (buffer)
                    (mapcar (lambda (line) (replace-regexp-in-string "  changed by.*" "" line))
                            (seq-filter
                             (lambda (line) (string-match-p "^\\([❯●±]\\|Plan\\|  [✓▸○]\\|Done\\)" line))
                             (split-string (duet-test-text buffer) "\n")))))
           (session (duet-test-launch connection "hello"))
           (buffer (duet-transcript-open connection session)))
      (dolist (prompt '(nil "again"))
        (when prompt
          (duet-test-request connection 'session.prompt
                             (list :session (duet-session-leaf-id session) :prompt prompt)))
        (duet-test-request connection 'approval.decide
                           (list :approval
                                 (duet-approval-id
                                  (duet-test-wait-for (car (duet-session-approvals session))))
                                 :decision "approve"))
        (duet-test-wait-for-state session 'completed))
      (duet-test-wait-for-text buffer "❯ again\\(.*\n\\)*● Write demo")
      (duet-test-wait-for-text buffer "❯ again\\(.*\n\\)*I wrote.*That is all")
      (let ((text (funcall shown buffer)))
        (should (equal (length text) 12))
        (kill-buffer buffer)
        (setq buffer (duet-transcript-open connection session))
        (duet-test-wait-for-text buffer "❯ again\\(.*\n\\)*● Write demo")
        ;; Earlier messages arrive later.
        (duet-test-wait-for (equal (funcall shown buffer) text))))))

(ert-deftest duet-transcript-test-queued-prompt-stays-last ()
  "Messages of a turn are shown before the prompt that is queued behind it."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "hello"))
           (buffer (duet-transcript-open connection session))
           (approval (duet-test-wait-for (car (duet-session-approvals session)))))
      (duet-test-request connection 'session.prompt
                         (list :session (duet-session-leaf-id session)
                               :prompt "quiet second"))
      (duet-test-wait-for-text buffer "❯ .*quiet second")
      ;; All events that arrive then are shown together.
      (let ((duet-transcript-delay 1))
        (duet-test-request connection 'approval.decide
                           (list :approval (duet-approval-id approval)
                                 :decision "approve"))
        (duet-test-wait-for-state session 'completed))
      (duet-test-wait-for-text buffer "You asked: quiet second")
      (duet-test-wait-for-text buffer "● Write demo\\(.*\n\\)*I wrote\\(.*\n\\)*❯ quiet second"))))

(ert-deftest duet-transcript-test-answers-stay ()
  "Answers stay in the transcript, also when it is reopened."
  (duet-test-with-project connection
    (pcase-dolist (`(,prompt ,params ,shown)
                   '(("quiet ask" (:decision "respond" :comment "red")
                      "^❯ .+\\?\n  red\n")
                     ("permit:1" (:decision "deny" :comment "not today")
                      "^⊘ .*\n\\(  .*\n\\)*  not run: denied by you.*: not today\n")))
      (let* ((session (duet-test-launch connection prompt))
             (buffer (duet-transcript-open connection session)))
        (duet-test-wait-for-text buffer (concat "^❯ " prompt))
        (duet-test-request connection 'approval.decide
                           `(:approval
                             ,(duet-approval-id
                               (duet-test-wait-for (car (duet-session-approvals session))))
                             ,@params))
        (duet-test-wait-for-state session 'completed)
        (duet-test-wait-for-text buffer shown)
        (kill-buffer buffer)
        (setq buffer (duet-transcript-open connection session))
        (duet-test-wait-for-text buffer shown)))
    (should (equal (duet-test-log) ""))))

(ert-deftest duet-transcript-test-another-input ()
  "A tool with an edited input shows the edited result."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "hello"))
           (buffer (duet-transcript-open connection session))
           (approval (duet-test-wait-for (car (duet-session-approvals session)))))
      (duet-test-request connection 'approval.decide
                         (list :approval (duet-approval-id approval) :decision "approve"
                               :updated_input (list :content "one\ntwo\n")))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "^❯ Allowed by you, with an edit: ")
      (duet-test-wait-for-text buffer "That is all")
      (should-not (string-match-p "^±" (duet-test-text buffer)))
      (duet-test-wait-for-text buffer "^● Write demo.txt \\+2 −0\n  @@ demo.txt:1\n  \\+one\n  \\+two\n"))))

(ert-deftest duet-transcript-test-reopen-bad-ends ()
  "A transcript shows failed and interrupted turns, also in another Emacs."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet fail"))
           (id (duet-session-id session)))
      (duet-test-wait-for-state session 'failed)
      (duet-test-request connection 'session.prompt
                         (list :session (duet-session-leaf-id session) :prompt "quiet later"))
      (duet-test-wait-for-state session 'completed)
      (duet-connection-stop connection)
      (remhash (duet-connection-root connection) duet-connections)
      (let* ((connection (duet-connection-ensure default-directory))
             (session (duet-test-wait-for (duet-connection-session connection id))))
        (should (equal (length (duet-session-turns session)) 1))
        (duet-test-wait-for-text (duet-transcript-open connection session)
                                 "❯ quiet fail\\(.*\n\\)*✗ Failed.*\n\n❯ quiet later")))))

(ert-deftest duet-transcript-test-earlier ()
  "A long session is shown from its end, and earlier messages on request."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet tools:60"))
           (duet-history-messages 30)
           buffer)
      (duet-test-wait-for-state session 'completed)
      (setq buffer (duet-transcript-open connection session))
      (duet-test-wait-for-text buffer "^\\[\\+\\] earlier messages…$")
      (duet-test-wait-for-text buffer "That is all")
      (should-not (string-match-p "❯ quiet" (duet-test-text buffer)))
      (with-current-buffer buffer
        (let ((count 0))
          (while (duet-session-before session)
            (let ((before (duet-session-before session)))
              ;; Alternate between the key and the button.
              (if (cl-oddp count)
                  (duet-test-press "+" #'duet-transcript-earlier)
                (goto-char (point-min))
                (duet-test-press "RET" #'duet-transcript-visit))
              (duet-test-wait-for (not (eql (duet-session-before session) before)))
              (should (< (cl-incf count) 20)))))
        (duet-test-wait-for-text buffer "❯ quiet tools:60")
        (should-not (string-match-p "earlier messages" (duet-test-text buffer)))
        (duet-test-should-say "the beginning of the session"
          (duet-test-press "+" #'duet-transcript-earlier))
        ;; All tool calls are shown, in order.
        (goto-char (point-min))
        (let (numbers)
          (while (re-search-forward "^● .* echo \\([0-9]+\\)$" nil t)
            (push (string-to-number (match-string 1)) numbers))
          (should (equal (nreverse numbers) (number-sequence 1 60))))))))

(provide 'duet-transcript-reopen-test)
;;; duet-transcript-reopen-test.el ends here
