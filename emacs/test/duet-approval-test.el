;;; duet-approval-test.el --- Tests of answers to questions  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-approvals)

(ert-deftest duet-approval-test-approve ()
  "A question is listed and counted in the mode line until it is answered."
  (duet-test-with-questions connection
    (save-window-excursion (duet-approvals))
    (should (string-match-p "No question waits" (duet-test-questions-text)))
    (let ((session (duet-test-launch connection "hello")))
      (duet-test-question session)
      (duet-test-wait-for (string-match-p "Write +demo\\.txt \\+1 −0 +1\\.1 hello +project +now"
                                          (duet-test-questions-text)))
      (should (equal (substring-no-properties duet-approvals--lighter-text) " Duet[1!]"))
      (should (memq 'duet-approvals--lighter-text global-mode-string))
      (duet-approvals)
      (should (tabulated-list-get-id))
      (call-interactively #'duet-approval-approve)
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for (duet-test-heard "^Approved: Write demo.txt$"))
      (should (string-match-p "No question waits" (duet-test-questions-text)))
      (should-not duet-approvals--lighter-text)
      (should-error (call-interactively #'duet-approval-approve) :type 'user-error)
      (should-not (duet-test-heard "by you"))
      (should (equal (duet-test-demo-file connection) "Turn 1: hello\n"))
      (should (equal (duet-test-log) "")))))

(ert-deftest duet-approval-test-deny ()
  "A prefix argument asks for a reason to deny; \\`C-g' decides nothing."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approvals)
    (duet-test-should-quit "C-g"
      (duet-test-press "d" #'duet-approval-deny '(4)))
    (should (eq (duet-test-question session) approval))
    (duet-test-typing "not SPC today RET"
      (duet-test-press "d" #'duet-approval-deny '(4)))
    (duet-test-wait-for-state session 'completed)
    (duet-test-wait-for (duet-test-heard "^Denied: Write demo.txt$"))
    (should-not (duet-test-demo-file connection))
    (let ((result (duet-test-approval connection approval)))
      (should (equal (duet-get-string result :comment) "not today")))))

(ert-deftest duet-approval-test-quit-keeps-draft ()
  "Text typed before a \\`C-g' is back when the question is opened again."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approvals)
    (dolist (word '("because " "it " "is "))
      (duet-test-should-quit (concat (key-description word) " C-g")
        (duet-test-press "d" #'duet-approval-deny '(4))))
    (duet-test-typing "late RET"
      (duet-test-press "d" #'duet-approval-deny '(4)))
    (duet-test-wait-for-state session 'completed)
    (let ((result (duet-test-approval connection approval)))
      (should (equal (duet-get-string result :comment)
                     "because it is late")))))

(ert-deftest duet-approval-test-deny-without-a-reason ()
  "One key denies without a reason; only a message to the agent needs text."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approvals)
    (duet-test-typing "SPC RET"
      (duet-test-should-say "type a reason"
        (duet-test-press "t" #'duet-approval-deny-and-tell)))
    (duet-test-press "d" #'duet-approval-deny)
    (duet-test-wait-for-state session 'completed)
    (let ((result (duet-test-approval connection approval)))
      (should (equal (duet-get-string result :comment) "denied")))))

(ert-deftest duet-approval-test-agents-own-answers ()
  "The number of an agent's own answer chooses it."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-test-question session))
           (answers (duet-approval-answers approval))
           (number (1+ (cl-position-if (lambda (answer)
                                         (string-match-p "\\`Reject\\'" answer))
                                       answers))))
      (duet-test-go-to-question approval)
      (duet-test-press (number-to-string number) #'duet-approval-choose)
      (duet-test-wait-for-state session 'completed)
      (should-not (duet-test-demo-file connection))
      (let* ((approval (duet-test-approval connection approval))
             (option (nth (1- number) (duet-get-objects approval :options))))
        (should (equal (duet-get-string approval :option)
                       (duet-get-string option :option_id)))))))

(ert-deftest duet-approval-test-what-answers-do ()
  "An answer shows its effect if its name does not say it."
  (pcase-dolist
      (`(,name ,kind ,shown)
       '(("Allow" "allow_once" "Allow")
         ("yes" "allow_once" "yes")
         ("Always allow" "allow_always" "Always allow (the agent remembers it)")
         ("Reject" "reject_once" "Reject")
         ("No, keep planning" "reject_once" "No, keep planning")
         ("Never again" "reject_always" "Never again (the agent remembers it)")
         ("Note" "allow_once" "Note (allows)")
         ("Tests first" "reject_once" "Tests first (denies)")
         ;; A name may say the opposite of the effect.
         ("Allow" "reject_once" "Allow (denies)")
         ("No" "allow_always" "No (allows; the agent remembers it)")
         ("Whatever" "a_new_kind" "Whatever")))
    (should (equal (duet-approval-answers
                    (make-duet-approval
                     :data `(:options [(:option_id "o" :name ,name :kind ,kind)])))
                   (list shown)))))

(ert-deftest duet-approval-test-respond ()
  "A question is answered with one of its options, by number or by name."
  (duet-test-with-questions connection
    (pcase-dolist (`(,answer . ,said) '(("BLUE" . "answered: blue") (?2 . "answered: green")))
      (let* ((session (duet-test-launch connection "quiet ask"))
             (buffer (duet-transcript-open connection session))
             (approval (duet-test-question session)))
        (duet-approvals)
        (pcase-dolist (`(,key ,command ,words)
                       '(("e" duet-approval-edit "no input")
                         ("s" duet-approval-always "Only a permission")
                         ("P" duet-approval-always-in-project "Only a permission")))
          (duet-test-should-say words (duet-test-press key command)))
        (if (numberp answer)
            (with-current-buffer buffer
              (duet-approvals-flush)
              (goto-char (point-min))
              (search-forward "[2] green")
              (duet-test-should-say "no option 7"
                (duet-test-press "7" #'duet-approval-choose))
              (duet-test-press (string answer) #'duet-approval-choose))
          (duet-test-typing "RET"
            (duet-test-should-say "Not answered"
              (duet-test-press "r" #'duet-approval-respond)))
          ;; Other text cannot be sent to the agent.
          (duet-test-should-quit "dark SPC red RET C-g"
            (duet-test-press "r" #'duet-approval-respond))
          (should-not (duet-approval-sending-p approval))
          (duet-test-typing (concat "C-a C-k " answer " RET")
            ;; The key that approves also answers a question.
            (duet-test-press "a" #'duet-approval-approve)))
        (duet-test-wait-for-state session 'completed)
        (duet-test-wait-for-text buffer said)))))

(ert-deftest duet-approval-test-choice ()
  "The prompt says which answers are possible; declining gives none."
  (duet-test-with-question (connection session approval) "quiet ask"
    (duet-approvals)
    (let (prompt)
      (minibuffer-with-setup-hook (lambda () (setq prompt (minibuffer-prompt)))
        (duet-test-should-quit "C-g" (duet-test-press "r" #'duet-approval-respond)))
      (should (equal prompt "Which colour do you like? (red, green, blue) ")))
    (should (string-match-p "\\[d\\] decline" (duet-approvals--inline approval "/")))
    (duet-test-press "d" #'duet-approval-deny)
    ;; An agent without an answer may end its turn.
    (duet-test-wait-for-state session 'completed 'interrupted)
    (duet-test-wait-for (duet-test-heard "^Declined: Which colour"))
    (should (equal (duet-get-string (duet-test-approval connection approval) :status)
                   "denied")))
  ;; The hub decides which answers are possible, not the options.
  (let ((approval (make-duet-approval
                   :id "a" :type "human_contact" :title "What?"
                   :data '(:options [(:option_id "a" :name "A" :kind "allow_once")
                                     (:option_id "b" :name "B" :kind "allow_once")]))))
    (should-not (duet-approval-options-only-p approval))
    (with-temp-buffer
      (use-local-map duet-approval-map)
      (duet-test-should-say "Answer a question with r"
        (duet-approval-deny approval)))))

(ert-deftest duet-approval-test-not-sent ()
  "After a refused answer the next key can give another."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "quiet ask"))
           (buffer (duet-transcript-open connection session))
           (bound '()))
      (duet-test-question session)
      (duet-approvals-flush)
      (switch-to-buffer buffer)
      (goto-char (point-max))
      (search-backward "? Which")
      (cl-letf (((symbol-function 'message)
                 (lambda (format &rest _)
                   (when (string-match-p "not answered" (or format ""))
                     (with-current-buffer buffer
                       (push (key-binding "r") bound))))))
        ;; As if only the server knew which answers are possible.
        (cl-letf (((symbol-function 'duet-approval-options-only-p) #'ignore))
          (duet-test-typing "dark SPC red RET"
            (duet-test-press "r" #'duet-approval-respond)))
        ;; While an answer is being sent the keys give no other.
        (should-not (eq (key-binding "r") #'duet-approval-respond))
        (duet-test-wait-for bound))
      (should (equal bound '(duet-approval-respond))))))

(ert-deftest duet-approval-test-somebody-else ()
  "A decision of another client closes the question; a second answer reports it."
  (duet-test-with-questions connection
    (save-window-excursion (duet-approvals))
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-test-question session))
           (view (save-window-excursion (duet-approval-view approval) (current-buffer))))
      (duet-test-request connection 'approval.decide
                         (list :approval (duet-approval-id approval)
                               :decision "deny" :comment "no no"))
      (duet-test-wait-for (duet-test-heard
                           "^Duet: Write demo.txt was denied by you in another client: no no$"))
      (should (string-match-p "No question waits" (duet-test-questions-text)))
      (should-not (buffer-live-p view))
      (should-error (duet-approval-approve approval) :type 'user-error)
      ;; As if no event had reported the decision.
      (puthash (duet-approval-id approval) approval
               (duet-model-approvals (duet-connection-model connection)))
      (duet-approval-approve approval)
      (duet-test-wait-for (duet-test-heard "already denied"))
      (should-not (duet-approval-connection approval)))))

(provide 'duet-approval-test)
;;; duet-approval-test.el ends here
