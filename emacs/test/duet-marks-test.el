;;; duet-marks-test.el --- Tests of marks in the list of sessions  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-sessions)

(ert-deftest duet-marks-test-archive ()
  "Marked sessions are archived and restored together, and keep their marks."
  (duet-test-with-project connection
    (let* ((sessions (mapcar (lambda (n)
                               (duet-test-launch connection (format "quiet no %d" n)))
                             '(1 2 3)))
           (buffer (duet-sessions-buffer connection))
           (listed (lambda () (with-current-buffer buffer
                                (mapcar #'car tabulated-list-entries))))
           (marked (lambda () (with-current-buffer buffer
                                (how-many "^\\*" (point-min) (point-max))))))
      (dolist (session sessions) (duet-test-wait-for-state session 'completed))
      (duet-test-wait-for (length= (funcall listed) 3))
      (with-current-buffer buffer
        (duet-sessions--print)
        (should (eq (key-binding "z") #'duet-archive-marked))
        (goto-char (point-min))
        (call-interactively #'duet-mark)
        (call-interactively #'duet-mark)
        (call-interactively #'duet-mark)
        (should (= (funcall marked) 3))
        (goto-char (point-min))
        (call-interactively #'duet-unmark)
        (should (= (funcall marked) 2))
        ;; The list is printed again.
        (duet-sessions--print)
        (should (= (funcall marked) 2))
        (let ((kept (car (cl-set-difference sessions (duet-marks)))))
          (should (length= (duet-marks) 2))
          (call-interactively #'duet-archive-marked)
          (duet-test-wait-for (equal (funcall listed) (list kept)))
          (should (= (funcall marked) 0))
          ;; The server has the same state.
          (should (= 1 (length (duet-get (duet-test-request connection 'session.list
                                                            '(:filter "normal"))
                                         :sessions))))
          (call-interactively #'duet-sessions-toggle-archived)
          (should (length= (funcall listed) 2))
          (goto-char (point-min))
          (call-interactively #'duet-mark)
          (call-interactively #'duet-mark)
          (call-interactively #'duet-archive-marked)
          (duet-test-wait-for (null (funcall listed)))
          (call-interactively #'duet-sessions-toggle-archived)
          (should (length= (funcall listed) 3))
          ;; Without marks the command takes the session at point.  It archives that session
          ;; also if another client has done so and the list is outdated.
          (goto-char (point-min))
          (setf (duet-session-archived (duet-actions-session)) t)
          (call-interactively #'duet-archive-marked)
          (duet-test-wait-for (length= (funcall listed) 2))
          (call-interactively #'duet-mark)
          (call-interactively #'duet-unmark-all)
          (should (= (funcall marked) 0)))))))

(provide 'duet-marks-test)
;;; duet-marks-test.el ends here
