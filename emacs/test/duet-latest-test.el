;;; duet-latest-test.el --- Tests of replies out of order  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Replies that arrive in another order than their requests.

;;; Code:

(require 'duet-test-lib)
(require 'duet-connection)
(require 'duet-rules)
(require 'duet-terminal)

(ert-deftest duet-latest-test-order ()
  "A reply is dropped after the reply to a later request."
  (let (taken first second third)
    (with-temp-buffer
      (let ((take (lambda (answer) (push (list answer (buffer-name)) taken)))
            (name (buffer-name)))
        (setq first (duet-latest take)
              second (duet-latest take)
              third (duet-latest take))
        (with-temp-buffer
          (funcall second 2)
          (funcall first 1))
        (should (equal taken (list (list 2 name))))))
    ;; The buffer is dead now.
    (funcall third 3)
    (should (= (length taken) 1))))

(defmacro duet-latest-test--held (method answers &rest body)
  "Evaluate BODY while requests of METHOD are not sent.
ANSWERS is bound to the functions that take their replies, the last first."
  (declare (indent 2))
  `(let ((,answers '()))
     (cl-letf* ((request (symbol-function 'duet-connection-request))
                ((symbol-function 'duet-connection-request)
                 (lambda (connection method params &rest functions)
                   (if (eq method ,method)
                       (push (plist-get functions :success-fn) ,answers)
                     (apply request connection method params functions)))))
       ,@body)))

(ert-deftest duet-latest-test-terminals ()
  "A list of terminals from before a terminal's end does not bring it back."
  (duet-test-with-project connection
    (let ((ended '(:terminals [(:terminal_id "term_1" :program "/bin/cat" :cwd "/")])))
      (duet-latest-test--held 'terminal.list answers
        (duet-terminals)
        (duet-model-announce (duet-connection-model connection) 'terminal nil
                             '(:terminal_id "term_1") "terminal.exited")
        (should (= (length answers) 2))
        (funcall (car answers) '(:terminals []))
        (funcall (cadr answers) ended)
        (should (string-match-p "No terminals" (buffer-string)))
        ;; In the usual order the last reply wins, too.
        (duet-terminals-refresh)
        (funcall (car answers) ended)
        (should (string-match-p "term_1" (buffer-string)))))))

(ert-deftest duet-latest-test-rules ()
  "An older list of rules does not replace a newer one."
  (duet-test-with-project connection
    (duet-latest-test--held 'rule.list answers
      (duet-rules)
      (duet-rules-refresh)
      (funcall (car answers) '(:rules []))
      (funcall (cadr answers) '(:rules [(:rule_id 1 :effect "allow" :tool_name "Write")]))
      (should (string-match-p "No rules yet" (buffer-string))))))

(provide 'duet-latest-test)
;;; duet-latest-test.el ends here
