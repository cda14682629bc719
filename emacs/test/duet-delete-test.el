;;; duet-delete-test.el --- Tests of deleting sessions, with the real server  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-sessions)

(defmacro duet-delete-test-with-list (names &rest body)
  "Run BODY in a list of sessions.
NAMES is a list of (SYMBOL PROMPT); each symbol is bound to its session.
`connection' is bound to the connection."
  (declare (indent 1) (debug (sexp body)))
  `(duet-test-with-project connection
     (let* ,(mapcar (pcase-lambda (`(,name ,prompt))
                      `(,name (duet-test-launch connection ,prompt)))
                    names)
       (save-window-excursion
         (switch-to-buffer (duet-sessions-buffer connection))
         (duet-test-wait-for (length= tabulated-list-entries ,(length names)))
         (duet-test-listening ,@body)))))

(defun duet-delete-test-answer (answer function)
  "Call FUNCTION, give ANSWER to its question, and return the question."
  (let (question)
    (cl-letf (((symbol-function 'yes-or-no-p)
               (lambda (prompt) (setq question prompt) answer)))
      (funcall function))
    question))

(defun duet-delete-test-press (answer)
  "Press D, give ANSWER to the question, and return the question."
  (duet-delete-test-answer answer (lambda () (duet-test-press "D" #'duet-delete))))

(defun duet-delete-test-kept (connection)
  "Return the titles or prompts of the sessions on the server of CONNECTION."
  (mapcar (lambda (session) (duet-get-string session :prompt))
          (duet-get (duet-test-request connection 'session.list nil)
                    :sessions)))

(ert-deftest duet-delete-test-at-point ()
  "After a confirmation that names it, the session at point is deleted."
  (duet-delete-test-with-list ((one "quiet one") (two "quiet two"))
    (duet-test-wait-for-state one 'completed)
    (duet-test-wait-for-state two 'completed)
    (let ((transcript (duet-transcript-open connection one)))
      (duet-sessions-go-to (current-buffer) one)
      (should (string-match-p "\\`Delete \"quiet one\" for good.*Files stay"
                              (duet-delete-test-press nil)))
      (should (duet-test-heard "\\`Nothing deleted\\'"))
      (should (length= (duet-delete-test-kept connection) 2))
      (duet-delete-test-press t)
      (duet-test-wait-for (duet-test-heard "\\`1 deleted\\'"))
      (should (equal (duet-delete-test-kept connection) '("quiet two")))
      (duet-test-wait-for (equal (mapcar #'car tabulated-list-entries) (list two)))
      (should-not (buffer-live-p transcript)))))

(ert-deftest duet-delete-test-marked ()
  "All marked sessions are deleted, and no other."
  (duet-delete-test-with-list ((one "quiet one") (two "quiet two") (three "quiet three"))
    (dolist (session (list one two three))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for (string-prefix-p "quiet" (duet-session-name session))))
    (duet-sessions--print)
    (dolist (session (list one three))
      (duet-sessions-go-to (current-buffer) session)
      (duet-test-press "m" #'duet-mark))
    (duet-sessions-go-to (current-buffer) two)
    ;; The session that ended last comes first in the list.
    (should (string-match-p "\\`Delete 2 sessions (quiet \\(?:three, quiet one\\|one, quiet three\\)) for good"
                            (duet-delete-test-press t)))
    (duet-test-wait-for (duet-test-heard "\\`2 deleted\\'"))
    (should (equal (duet-delete-test-kept connection) '("quiet two")))))

(ert-deftest duet-delete-test-running ()
  "Emacs and the server refuse to delete a running session, and say what to do."
  (duet-delete-test-with-list ((one "hello") (two "quiet two"))
    (duet-test-question one)
    (duet-test-wait-for-state two 'completed)
    (duet-sessions-go-to (current-buffer) one)
    (duet-test-should-say "\\`hello is not over; interrupt it first (i)\\'"
      (duet-test-press "D" #'duet-delete))
    ;; As if the turn had begun after the check in Emacs.
    (duet-marks--delete-send connection (list one two))
    (duet-test-wait-for
     (duet-test-heard "\\`1 deleted; 1 not deleted: .*interrupt it before you delete"))
    (should (equal (duet-delete-test-kept connection) '("hello")))))

(ert-deftest duet-delete-test-forked ()
  "The archive keeps sessions that have forks, and the user is informed."
  (duet-delete-test-with-list ((one "quiet one"))
    (duet-test-wait-for-state one 'completed)
    (duet-test-request connection 'session.fork
                       (list :turn (duet-session-leaf-id one) :prompt "quiet fork"))
    (duet-test-wait-for (length= (duet-delete-test-kept connection) 2))
    (duet-delete-test-answer t (lambda () (duet-delete (list one))))
    (duet-test-wait-for
     (duet-test-heard "\\`Nothing deleted; 1 turn is kept in the archive, since"))))

(ert-deftest duet-delete-test-transcript ()
  "After the session of a transcript is deleted the window shows the list."
  (duet-delete-test-with-list ((one "quiet one"))
    (duet-test-wait-for-state one 'completed)
    (duet-transcript-show connection one)
    (should (derived-mode-p 'duet-transcript-mode))
    (duet-delete-test-press t)
    (duet-test-wait-for (duet-test-heard "\\`1 deleted\\'"))
    (duet-test-look)
    (should (derived-mode-p 'duet-sessions-mode))))

(provide 'duet-delete-test)
;;; duet-delete-test.el ends here
