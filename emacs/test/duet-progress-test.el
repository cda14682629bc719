;;; duet-progress-test.el --- Tests of the elapsed time of turns  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(ert-deftest duet-progress-test-words ()
  "A duration is in seconds, then minutes and seconds, then hours and minutes."
  (pcase-dolist (`(,seconds . ,words) '((0 . "0s") (59 . "59s") (60 . "1m 00s") (61 . "1m 01s")
                                        (3599 . "59m 59s") (3600 . "1h 00m") (7300 . "2h 01m")
                                        (-5 . "0s")))
    (should (equal (cons seconds (duet-progress-words seconds)) (cons seconds words)))))

(ert-deftest duet-progress-test-header ()
  "The header shows the elapsed time of a running turn, and its agent's activity."
  (duet-test-with-project connection
    (duet-model-add-observer #'duet-progress--elapsed-observe)
    (let* ((session (duet-test-launch connection "quiet stream:5000@20"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-text buffer "chunk 2")
      (with-current-buffer buffer
        (cl-flet ((shown ()
                    (let ((header (duet-header session connection)))
                      (and (string-match "· [0-9]+s \\([-|/\\]\\)" header)
                           (match-string 1 header)))))
          (let ((signs '()))
            (duet-test-wait-for (progn (cl-pushnew (shown) signs :test #'equal)
                                       (length= signs 4)))
            (should-not (memq nil signs)))
          ;; The time counts from the start of the turn.
          (setf (duet-turn-changed (duet-session-active-turn session))
                (format-time-string "%FT%T.000Z" (time-subtract nil 125) t))
          (should (string-match-p "· 2m 0[5-9]s" (duet-header session connection)))
          (call-interactively #'duet-interrupt)
          (duet-test-wait-for-state session 'interrupted)
          (should-not (shown)))))))

(ert-deftest duet-progress-test-timer ()
  "A timer runs only while a window shows a running turn."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet stream:5000@20"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-state session 'running)
      (save-window-excursion
        (switch-to-buffer buffer)
        (duet-header session connection)
        (should duet-progress--timer)
        (duet-progress--tick)
        (should duet-progress--timer)
        (call-interactively #'duet-interrupt)
        (duet-test-wait-for-state session 'interrupted)
        ;; The timer itself may have been faster, on a slow machine.
        (dotimes (_ 2) (duet-progress--tick))
        (should-not duet-progress--timer)))))

(ert-deftest duet-progress-test-budget ()
  "A warning that a budget is nearly used up shows in the header during the turn."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "hello"))
           (turn (progn (duet-test-wait-for (duet-session-approvals session))
                       (duet-session-active-turn session))))
      (should-not (duet-progress--budget-header session))
      (duet-events-apply (duet-connection-model connection)
                         (list :kind "item.added" :time "2026-01-01T00:00:00Z"
                               :turn_uuid (duet-turn-id turn)
                               :data (list :type "notice" :key "sys-9" :subtype "budget_near"
                                           :text "This turn has used 9 of 10 tokens.")))
      (should (string-match-p "budget nearly used" (duet-header session connection)))
      (duet-test-request connection 'turn.interrupt (list :turn (duet-turn-id turn)))
      (duet-test-wait-for-state session 'interrupted)
      (should-not (duet-progress--budget-header session)))))

(provide 'duet-progress-test)
;;; duet-progress-test.el ends here
