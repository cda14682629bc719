;;; duet-form-test.el --- Tests of forms and addresses  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-approvals)
(require 'duet-form)

(defconst duet-form-test--data
  '(:mode "form"
    :schema (:properties (:colour (:type "string" :title "Colour" :enum ["red" "green"] :default "green")
                          :count (:type "integer" :minimum 1 :maximum 9)
                          :gift (:type "boolean" :default :json-false)
                          :name (:type "string"))
             :required ["count"]))
  "A form as the server tells of it.")

(defun duet-form-test--fill (keys)
  "Fill in the form with KEYS as input; return its values as a sorted list."
  (duet-form-forget "id")
  (duet-test-typing keys
    (let ((answer (duet-form-fill "id" duet-form-test--data)))
      (if (symbolp answer) answer
        (sort (cl-loop for name being the hash-keys of answer using (hash-values value)
                       collect (list name value))
              (lambda (a b) (string< (car a) (car b))))))))

(ert-deftest duet-form-test-fill ()
  "The form reads fields one by one; the user can go back, decline, or cancel."
  (should (equal (duet-form-test--fill "RET 3 RET RET RET y RET")
                 '(("colour" "green") ("count" 3) ("gift" :json-false))))
  (should (equal (duet-form-test--fill "red RET 12 RET DEL DEL 4 RET yes RET Ann RET y RET")
                 '(("colour" "red") ("count" 4) ("gift" t) ("name" "Ann"))))
  (should (equal (duet-form-test--fill "red RET C-c C-b green RET RET 2 RET RET RET b Bob RET y RET")
                 '(("colour" "green") ("count" 2) ("gift" :json-false) ("name" "Bob"))))
  (should (eq (duet-form-test--fill "RET 3 RET RET RET n RET") 'decline))
  (should (eq (duet-form-test--fill "RET 3 RET RET RET c RET") 'cancel)))

(ert-deftest duet-form-test-refused ()
  "An invalid value is refused with a message, and can be corrected."
  (let ((fields (duet-form-fields
                 '(:schema (:properties (:count (:type "integer" :title "How many"
                                                 :minimum 1 :maximum 9)
                                         :name (:type "string" :minLength 2)
                                         :free (:type "string"))))))
        (said '()))
    (pcase-dolist (`(,name ,text ,words)
                   '(("count" "12" "12 is not a whole number from 1 to 9")
                     ("count" "x" "x is not a whole number from 1 to 9")
                     ("name" "A" "A is not a text of at least 2 characters")))
      (duet-test-should-say (concat "\\`" words "\\'")
        (duet-form--parse (assoc name fields) text)))
    (should (equal (duet-form--parse (assoc "free" fields) "x") "x"))
    (minibuffer-with-setup-hook
        (lambda () (push (list (minibuffer-prompt) (minibuffer-contents)) said))
      (duet-test-typing "RET"
        (duet-form--read (car fields) nil '("12" . "12 is too much"))))
    (should (equal (substring-no-properties (caar said))
                   "12 is too much\nHow many (a whole number from 1 to 9, or nothing; C-c C-b goes back): "))
    (should (equal (cadar said) "12"))))

(ert-deftest duet-form-test-choices ()
  "The prompt lists the choices if they are few, and the default."
  (let ((schema '(:type "string" :title "Colour" :enum ["red" "green"])))
    (should (equal (duet-form--expects schema) "one of red, green"))
    (should (string-search "default red; " (duet-form--prompt (list "c" schema nil) "red" nil)))
    (should (equal (duet-form--expects
                    `(:type "string" :enum ,(make-vector 30 "colour")))
                   "one of 30 choices"))))

(ert-deftest duet-form-test-back ()
  "The commands to go back and to discard are errors outside a form."
  (should-error (call-interactively #'duet-form--back) :type 'user-error)
  (should-error (call-interactively #'duet-form--discard) :type 'user-error))

(ert-deftest duet-form-test-quit ()
  "After \\`C-g' nothing is decided, and the form keeps its values."
  (should (equal (condition-case nil (duet-form-test--fill "red RET 3 RET C-g") (quit 'quit)) 'quit))
  (duet-test-typing "RET RET RET RET y RET"
    (should (equal (gethash "count" (duet-form-fill "id" duet-form-test--data)) 3))))

(ert-deftest duet-form-test-quit-within-field ()
  "After \\`C-g' in a field the form starts with its text, unless the user discards it."
  (cl-flet ((quits (keys)
              (equal (condition-case nil (duet-form-test--fill keys) (quit 'quit)) 'quit))
            (value (name keys)
              (duet-test-typing keys
                (gethash name (duet-form-fill "id" duet-form-test--data)))))
    (should (quits "RET 3 RET RET A n C-g"))
    (should (equal (value "name" "RET RET RET n RET y RET") "Ann"))
    ;; An invalid text is kept, too.
    (should (quits "RET 1 2 C-g"))
    (should (equal (value "count" "RET DEL RET RET RET y RET") 1))
    ;; The text stays when the user goes back.
    (should (equal (value "name" "RET RET RET B o b C-c C-b RET RET y RET") "Bob"))
    (should (quits "red RET 3 RET RET A n C-g"))
    (should (equal (value "colour" "C-c C-k RET 4 RET RET RET y RET") "green"))
    (should (quits "red RET 3 RET RET A n C-g"))
    (should (equal (value "name" "C-c C-k RET 4 RET RET RET y RET") nil))))

(ert-deftest duet-form-test-link ()
  "An address is shown with its host, and opened only after a confirmation."
  (let ((data '(:mode "url" :url "https://a.example/x" :url_host "a.example"
                :url_warnings ["look"]))
        (opened '()))
    (should (equal (duet-form-lines data)
                   '("https://a.example/x" "leads to a.example" "careful: look")))
    (cl-letf (((symbol-function 'browse-url) (lambda (url &rest _) (push url opened))))
      (pcase-dolist (`(,key ,answer) '(("y" t) ("n" decline) ("c" cancel)))
        (duet-test-typing (concat key " RET")
          (should (eq (duet-form-open data) answer))))
      (should-not opened)
      (duet-test-typing "o RET" (should (eq (duet-form-open data) t)))
      (should (equal opened '("https://a.example/x"))))))

(ert-deftest duet-form-test-answer ()
  "The agent receives the values of the form, or that it was declined."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "quiet form"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for (car (duet-session-approvals session)))
      (duet-test-wait-for-text buffer "How many: a whole number from 1 to 9")
      (duet-approvals)
      (duet-test-typing "RET 3 RET yes RET Ann RET y RET"
        (duet-test-press "r" #'duet-approval-respond))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "\"colour\":\"green\",\"count\":3,\"gift\":true,\"name\":\"Ann\""))
    (let* ((session (duet-test-launch connection "quiet form"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for (car (duet-session-approvals session)))
      (duet-approvals)
      (duet-test-press "n" #'duet-approval-deny)
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "You declined")
      ;; The decision is shown once.
      (should (string-match-p "^❯ Declined by you in Emacs: .+\n\n" (duet-test-text buffer))))))

(provide 'duet-form-test)
;;; duet-form-test.el ends here
