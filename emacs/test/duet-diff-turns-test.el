;;; duet-diff-turns-test.el --- Tests of what turns have changed together  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-diff)
(require 'duet-diff-view)

(ert-deftest duet-diff-turns-test-text ()
  "The diff of two texts leads from one to the other and back, however they end."
  (pcase-dolist (`(,before ,after)
                 '(("a\nb\n" "a\nc\n") ("a\nb" "a\nc") (nil "a\n") ("a\n" nil) (nil "a")
                   ("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12" "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\nX")
                   ("- a\n+ b\n" "-- a\n++ b\n@@ -1 +1 @@\n")))
    (let ((hunks (duet-hunk-list (duet-diff-turns-text before after))))
      (should hunks)
      (should (cl-every #'duet-hunk-whole hunks))
      (with-temp-buffer
        (insert (or after ""))
        (dolist (hunk (reverse hunks))
          (should (duet-hunk-swap hunk (duet-hunk-line hunk))))
        (should (equal (buffer-string) (or before "")))))))

(ert-deftest duet-diff-turns-test-join ()
  "A file is as before the first turn and after the last; what was taken back is none."
  (cl-flet ((file (path before after) (list :file_path path :before before :after after
                                            :diff "of one turn")))
    (let ((all (duet-diff-turns-join
                (list (list (file "a" "1\n" "2\n") (file "b" nil "x\n") (file "c" "c\n" nil))
                      (list (file "b" "x\n" nil))
                      (list (file "a" "2\n" "3\n") '(:file_path "d" :binary t))))))
      (should (equal (mapcar (lambda (file) (plist-get file :file_path)) all) '("a" "c" "d")))
      (should (equal (plist-get (car all) :diff) "@@ -1,1 +1,1 @@\n-1\n+3\n"))
      ;; One that a single turn has changed is as that turn has it.
      (should (equal (plist-get (nth 1 all) :diff) "of one turn"))
      (should (duet-get (nth 2 all) :binary)))))

(ert-deftest duet-diff-turns-test-show ()
  "One key shows what all turns of a session have changed, and the last turn again."
  (duet-test-with-project connection
    (save-window-excursion
      (let* ((session (duet-test-launch connection "hello"))
             (next (lambda (query)
                     (duet-test-request connection 'sendDecision
                                        (list :approval_id
                                              (duet-approval-id (duet-test-question session))
                                              :decision "approve"))
                     (duet-test-wait-for-state session 'completed)
                     (when query
                       (duet-test-request connection 'continueSession
                                          (list :session_id (duet-session-leaf-id session)
                                                :query query)))))
             (transcript (duet-transcript-open connection session)))
        (funcall next "again")
        (funcall next nil)
        (switch-to-buffer transcript)
        (duet-test-wait-for-text transcript "^❯ again")
        (duet-test-press "M-=" #'duet-diff-all)
        (duet-test-wait-for-text (current-buffer) "^\\+Turn 1: hello\n\\+Turn 2: again\n")
        (should (string-match-p "all turns" (duet-diff--header)))
        ;; As if the list of sessions had told of the last turn alone.
        (setf (duet-session-runs session) (list (car (duet-session-runs session)))
              (duet-run-parent (car (duet-session-runs session))) nil)
        (duet-diff-refresh)
        (duet-test-wait-for (not duet-diff--loading))
        (duet-test-wait-for-text (current-buffer) "^\\+Turn 1: hello\n\\+Turn 2: again\n")
        (duet-test-press "=" #'duet-diff-all)
        (duet-test-wait-for-text (current-buffer) "^ Turn 1: hello\n\\+Turn 2: again\n")
        (should-not (string-match-p "all turns" (duet-diff--header)))))))

(provide 'duet-diff-turns-test)
;;; duet-diff-turns-test.el ends here
