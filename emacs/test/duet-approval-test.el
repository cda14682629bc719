;;; duet-approval-test.el --- Tests of answers to questions  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-approvals)

(ert-deftest duet-approval-test-allow ()
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
      (call-interactively #'duet-approval-allow)
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for (duet-test-heard "^Allowed: Write demo.txt$"))
      (should (string-match-p "No question waits" (duet-test-questions-text)))
      (should-not duet-approvals--lighter-text)
      (should-error (call-interactively #'duet-approval-allow) :type 'user-error)
      (should-not (duet-test-heard "by you"))
      (should (equal (duet-test-demo-file connection) "Turn 1: hello\n"))
      (should (equal (duet-test-log) "")))))

(defun duet-approval-test-type (key command after)
  "Press KEY, which calls COMMAND, as if the command AFTER had run before."
  (let ((last-command after)
        (this-command command))
    (cl-letf (((symbol-function 'this-command-keys-vector) (lambda () (vconcat (kbd key)))))
      (duet-test-press key command))))

(ert-deftest duet-approval-test-keys ()
  "At a question the keys are those of the shell, in all buffers."
  (duet-test-with-question (connection session approval) "hello"
    (cl-flet ((check (prefix)
                (pcase-dolist (`(,answer ,key) duet-protocol-answers)
                  (should (equal (list key (key-binding (kbd (concat prefix key))))
                                 (list key (alist-get answer duet-approval-commands)))))))
      (duet-approvals)
      (check "")
      (duet-approval-view approval)
      (check "")
      (duet-approvals-go-to approval connection session)
      (check "")
      (dolist (words '("[y] Allow" "[n] Deny" "[t] Deny and say why" "[e] Edit"
                       "[s] Always in this session" "[p] Always in this project" "[?] Keys"))
        (should (string-search words (duet-test-text (current-buffer)))))
      (cl-letf (((symbol-function 'duet-approvals--height) (lambda () 20)))
        (should (string-match-p "^  Always is for Write of files in .*/project and below$"
                                (duet-approvals--inline approval "/"))))
      (duet-test-wait-for-text (current-buffer) "^❯ hello")
      (goto-char (point-min))
      (should (eq (key-binding "n") #'duet-section-next))
      (should (eq (key-binding "p") #'duet-section-previous)))))

(ert-deftest duet-approval-test-after-a-movement ()
  "After a movement n and p only say what they do; the second press answers."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approvals-go-to approval connection session)
    (let ((duet-approval--pause 0))
      (dolist (movement '(duet-section-next next-line evil-next-line isearch-exit
                          duet-approvals-forward mouse-set-point scroll-up-command))
        (setq duet-test-said nil)
        (duet-approval-test-type "n" #'duet-approval-deny movement)
        (should (duet-test-heard
                 "^n denies Write demo.txt: press it again, or TAB moves on$"))
        (should-not (duet-approval-sending-p approval)))
      (duet-approval-test-type "p" #'duet-approval-always-in-project 'duet-section-previous)
      (should (duet-test-heard "^p allows Write demo.txt always in this project: press it again"))
      ;; Another key between the two presses makes the first one count again.
      (duet-approval-test-type "n" #'duet-approval-deny 'next-line)
      (should-not (duet-approval-sending-p approval))
      ;; A key that is held down does not answer.
      (let ((duet-approval--pause 1000))
        (dotimes (_ 3)
          (duet-approval-test-type "n" #'duet-approval-deny 'duet-approval-deny)
          (should-not (duet-approval-sending-p approval))))
      (duet-approval-test-type "n" #'duet-approval-deny 'duet-approval-deny))
    (should (duet-approval-sending-p approval))
    (duet-test-wait-for-state session 'completed)
    (should-not (duet-test-demo-file connection)))
  ;; `j' goes to a question to answer it.
  (duet-test-with-question (connection session approval) "hello"
    (duet-approvals-go-to approval connection session)
    (duet-approval-test-type "n" #'duet-approval-deny 'duet-approval-next)
    (duet-test-wait-for-state session 'completed)))

(ert-deftest duet-approval-test-replaced ()
  "A key does not answer the question that took the place of another one."
  (duet-test-with-questions connection
    (let* ((first (duet-test-launch connection "hello"))
           (gone (duet-test-question first))
           (second (duet-test-launch connection "permit:1"))
           (other (duet-test-question second)))
      (duet-approvals)
      (should (eq (tabulated-list-get-id) gone))
      (run-hooks 'post-command-hook)
      (duet-test-request connection 'approval.decide
                         (list :approval (duet-approval-id gone) :decision "deny" :comment "no"))
      (duet-test-wait-for (not (duet-approval-connection gone)))
      (duet-approvals-flush)
      (should (eq (tabulated-list-get-id) other))
      (let ((duet-approval--pause 0))
        (duet-approval-test-type "y" #'duet-approval-allow 'self-insert-command)
        (should (duet-test-heard
                 "^Write demo.txt was answered elsewhere.  y allows .*echo 1.*: press it again$"))
        (should-not (duet-approval-sending-p other))
        (duet-approval-test-type "y" #'duet-approval-allow 'duet-approval-allow))
      (duet-test-wait-for-state second 'completed))))

(ert-deftest duet-approval-test-help ()
  "`?' explains the keys of a question; the second `?' shows the menu."
  (dolist (case '(("hello" "^y +Allow +The tool runs this once\\.$" "^p +Always in this project"
                   "^\\? +More")
                  ("quiet ask" "^r +Answer" "^n +Decline" "^2 +green +Gives this answer")))
    (duet-test-with-question (connection session approval) (car case)
      (duet-approvals-go-to approval connection session)
      (let ((buffer (current-buffer))
            (menu 0))
        (cl-letf (((symbol-function 'duet-menu-or-help) (lambda () (cl-incf menu))))
          (duet-test-press "?" #'duet-approval-help)
          (dolist (line (cdr case))
            (should (string-match-p line (duet-test-text (get-buffer "*duet keys*")))))
          (should (get-buffer-window "*duet keys*"))
          (should (eq (window-buffer) buffer))
          (should (= menu 0))
          (duet-approval-test-type "?" #'duet-approval-help 'duet-approval-help)
          (should (= menu 1))
          (should-not (get-buffer-window "*duet keys*"))
          (duet-approval-test-type "?" #'duet-approval-help 'next-line))
        (duet-approval-deny approval)
        ;; An answer closes the help.
        (should-not (get-buffer-window "*duet keys*"))
        (duet-test-wait-for-state session 'completed 'interrupted)))))

(ert-deftest duet-approval-test-buttons-in-turn ()
  "TAB and S-TAB move between the buttons of a question, and past them."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approvals-go-to approval connection session)
    (cl-flet ((label () (buffer-substring-no-properties
                         (point) (or (next-single-property-change (point) 'duet-action)
                                     (point)))))
      (goto-char (text-property-any (point-min) (point-max) 'duet-approval approval))
      (duet-test-press "TAB" #'duet-approvals-forward)
      (should (equal (label) "[y] Allow"))
      (duet-test-press "TAB" #'duet-approvals-forward 2)
      (should (equal (label) "[t] Deny and say why"))
      (duet-test-press "<backtab>" #'duet-approvals-backward)
      (should (equal (label) "[n] Deny"))
      (duet-test-press "<backtab>" #'duet-approvals-backward)
      (should (equal (label) "[y] Allow"))
      (duet-test-press "<backtab>" #'duet-approvals-backward)
      (should (looking-at-p "\\? Write"))
      (duet-test-press "TAB" #'duet-approvals-forward 50)
      (should-not (get-text-property (point) 'duet-approval)))))

(ert-deftest duet-approval-test-deny ()
  "A prefix argument asks for a reason to deny; \\`C-g' decides nothing."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approvals)
    (duet-test-should-quit "C-g"
      (duet-test-press "n" #'duet-approval-deny '(4)))
    (should (eq (duet-test-question session) approval))
    (duet-test-typing "not SPC today RET"
      (duet-test-press "n" #'duet-approval-deny '(4)))
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
        (duet-test-press "n" #'duet-approval-deny '(4))))
    (duet-test-typing "late RET"
      (duet-test-press "n" #'duet-approval-deny '(4)))
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
    (duet-test-press "n" #'duet-approval-deny)
    (duet-test-wait-for-state session 'completed)
    (let ((result (duet-test-approval connection approval)))
      (should (equal (duet-get-string result :comment) "denied")))))

(ert-deftest duet-approval-test-agents-own-answers ()
  "An agent's own answer is chosen by its button, and not by a digit."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-test-question session))
           (answers (duet-approval-answers approval))
           (number (1+ (cl-position-if (lambda (answer)
                                         (string-match-p "\\`Always reject\\_>" answer))
                                       answers))))
      (duet-test-go-to-question approval)
      (duet-test-should-say "A digit does not answer this question; \\? shows the keys"
        (duet-test-press (number-to-string number) #'duet-approval-choose))
      (duet-approval-view approval)
      (duet-test-wait-for-text (current-buffer) "^\\+Turn 1: hello")
      (goto-char (point-min))
      (search-forward "[Always reject")
      (duet-test-press "RET" #'push-button)
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
                         ("p" duet-approval-always-in-project "Only a permission")))
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
            ;; The key that allows also answers a question.
            (duet-test-press "y" #'duet-approval-allow)))
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
    (should (string-match-p "\\[n\\] Decline" (duet-approvals--inline approval "/")))
    (duet-test-press "n" #'duet-approval-deny)
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
      (should-error (duet-approval-allow approval) :type 'user-error)
      ;; As if no event had reported the decision.
      (puthash (duet-approval-id approval) approval
               (duet-model-approvals (duet-connection-model connection)))
      (duet-approval-allow approval)
      (duet-test-wait-for (duet-test-heard "already denied"))
      (should-not (duet-approval-connection approval)))))

(provide 'duet-approval-test)
;;; duet-approval-test.el ends here
