;;; duet-latest-test.el --- Of several answers the one asked for last  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Answers that come in another order than they were asked for.

;;; Code:

(require 'duet-test-lib)
(require 'duet-connection)
(require 'duet-rules)
(require 'duet-terminal)

(ert-deftest duet-latest-test-order ()
  "An answer is left out after one that was asked for later."
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
    ;; The buffer is killed.
    (funcall third 3)
    (should (= (length taken) 1))))

(defmacro duet-latest-test--held (method answers &rest body)
  "Evaluate BODY while requests of METHOD are not sent.
ANSWERS is bound to the functions that take their answers, the last first."
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
  "A list of terminals that is older than the end of one does not bring it back."
  (duet-test-with-project connection
    (let ((ended '(:terminals [(:terminal_id "term_1" :program "/bin/cat" :cwd "/")])))
      (duet-latest-test--held 'terminal.list answers
        (duet-terminals)
        (duet-model-announce (duet-connection-model connection) 'terminal nil
                             '(:terminal_id "term_1") "terminal_exit")
        (should (= (length answers) 2))
        (funcall (car answers) '(:terminals []))
        (funcall (cadr answers) ended)
        (should (string-match-p "No terminals" (buffer-string)))
        ;; In the usual order the last one counts, too.
        (duet-terminals-refresh)
        (funcall (car answers) ended)
        (should (string-match-p "term_1" (buffer-string)))))))

(ert-deftest duet-latest-test-rules ()
  "A list of rules that is older than another does not replace it."
  (duet-test-with-project connection
    (duet-latest-test--held 'getRules answers
      (duet-rules)
      (duet-rules-refresh)
      (funcall (car answers) '(:rules []))
      (funcall (cadr answers) '(:rules [(:rule_id 1 :effect "allow" :tool_name "Write")]))
      (should (string-match-p "Nothing was decided" (buffer-string))))))

(provide 'duet-latest-test)
;;; duet-latest-test.el ends here
