;;; duet-budget-test.el --- Tests of budgets of turns  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-settings)
(require 'duet-compose)

(ert-deftest duet-budget-test-parse ()
  "A budget is parsed, and a malformed one is an error."
  (pcase-dolist (`(,text . ,budget)
                 '((nil) ("turns=20" :turns 20)
                   ("turns=20,time=1h30m,tokens=200k,cost=2.50,repeats=9"
                    :turns 20 :time_ms 5400000 :tokens 200000 :cost_usd 2.5 :repeats 9)
                   (" cost=1 , tokens=2M" :cost_usd 1 :tokens 2000000)
                   ("time=0.5s" :time_ms 500)))
    (should (equal (duet-budget-parse text) budget)))
  (pcase-dolist (`(,text . ,said)
                 '(("" . "Write a budget as turns=20.*cost=2.50\\'")
                   ("20" . "Write a budget as .*, and has no 20\\'")
                   ("money=3" . "and has no money=3")
                   ("turns" . "turns is not a budget: rounds of tool calls, as in turns=20")
                   ("turns=0" . "turns=0 is not a budget")
                   ("turns=-1" . "turns=-1 is not a budget")
                   ("turns=99999999999999999999" . "is not a budget")
                   ("time=30" . "time=30 is not a budget: .*1h30m")
                   ("turns=2,,cost=1" . "Write a budget as")
                   ("cost=$2" . "cost=\\$2 is not a budget: US dollars")))
    (duet-test-should-say said (duet-budget-parse text))))

(ert-deftest duet-budget-test-directive ()
  "A prompt may begin with a budget, whose parts complete at point."
  (let ((session (make-duet-session :id "t" :model (duet-model-create))))
    (should (equal (duet-directive-take "/budget turns=3,cost=1 fix it" session)
                   '("fix it" :budget (:turns 3 :cost_usd 1))))
    (duet-test-should-say "Write a budget as"
      (duet-directive-take "/budget fix it" session))
    (duet-test-should-say "Write a budget as" (duet-directive-take "/budget" session))
    (cl-flet ((offered (text)
                (with-temp-buffer
                  (insert text)
                  (pcase (duet-directive-complete session)
                    (`(,beg ,end ,table . ,_)
                     (all-completions (buffer-substring beg end) table))))))
      (should (member "/budget" (offered "/b")))
      (should (equal (offered "/budget ") '("turns=" "time=" "tokens=" "cost=" "repeats=")))
      (should (equal (offered "/budget t") '("turns=" "time=" "tokens=")))
      (should (equal (offered "/budget turns=3,t") '("time=" "tokens="))))))

(ert-deftest duet-budget-test-sent ()
  "A new session has the budget of the option, or the one of its prompt."
  (let ((duet-budget "turns=7")
        (sent '()))
    (cl-letf (((symbol-function 'duet-connection-request)
               (lambda (_connection method params &rest _)
                 (push (cons method (plist-get params :budget)) sent))))
      (cl-flet ((send (text session)
                  (with-temp-buffer
                    (duet-compose-mode)
                    (setq duet-connection (make-duet-connection :root "/"))
                    (setq duet-session session)
                    (insert text)
                    (duet-compose-submit nil #'ignore))
                  (cdr (assq (if session 'session.prompt 'session.start) sent)))
                (session () (make-duet-session :id "t" :model (duet-model-create))))
        (should (equal (send "fix it" nil) '(:turns 7)))
        (should (equal (send "/budget cost=2 fix it" nil) '(:cost_usd 2)))
        (setq duet-budget nil)
        (should-not (send "fix it" nil))
        ;; A session keeps its budget unless the prompt changes it.
        (setq duet-budget "turns=7")
        (should-not (send "go on" (session)))
        (should (equal (send "/budget turns=2 go on" (session)) '(:turns 2)))
        (duet-test-should-say "Nothing to send"
          (send "/budget turns=2" (session)))
        (setq duet-budget "much")
        (duet-test-should-say "Write a budget as .*, and has no much"
          (send "fix it" nil))
        (setq duet-budget '(1))
        (duet-test-should-say "must be a string, such as" (send "fix it" nil))))))

(ert-deftest duet-budget-test-whole ()
  "A turn that reaches its budget is interrupted."
  (duet-test-with-project connection
    (duet-compose connection)
    (insert "/budget time=300ms quiet hang")
    (duet-test-should-say "time=300ms is not a budget" (duet-compose-send))
    (delete-region (point-min) (point-max))
    (insert "/budget time=0.3s quiet hang")
    (duet-compose-send)
    (duet-test-wait-for (duet-model-session-list (duet-connection-model connection)))
    (duet-test-wait-for-state
     (car (duet-model-session-list (duet-connection-model connection))) 'interrupted)))

(provide 'duet-budget-test)
;;; duet-budget-test.el ends here
