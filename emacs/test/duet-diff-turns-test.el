;;; duet-diff-turns-test.el --- Tests of the changes of several turns  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-diff)
(require 'duet-diff-test)
(require 'duet-diff-view)

(ert-deftest duet-diff-turns-test-text ()
  "The diff of two texts equals the output of diff, with any last line.
Each hunk has its line in the new file."
  (pcase-dolist
      (`(,before ,after ,diff . ,lines)
       '(("a\nb\n" "a\nc\n" "@@ -1,2 +1,2 @@\n a\n-b\n+c\n" 1)
         ("a\nb" "a\nc" "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n" 1)
         (nil "a\n" "@@ -0,0 +1,1 @@\n+a\n" 1)
         ("a\n" nil "@@ -1,1 +0,0 @@\n-a\n" 1)
         (nil "a" "@@ -0,0 +1,1 @@\n+a\n\\ No newline at end of file\n" 1)
         ("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12" "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\nX"
          "@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -9,4 +10,4 @@\n 9\n 10\n 11\n-12\n\\ No newline at end of file\n+X\n\\ No newline at end of file\n"
          1 10)
         ("- a\n+ b\n" "-- a\n++ b\n@@ -1 +1 @@\n"
          "@@ -1,2 +1,3 @@\n-- a\n-+ b\n+-- a\n+++ b\n+@@ -1 +1 @@\n" 1)))
    (should (equal (duet-diff-turns-text before after) diff))
    (let ((hunks (duet-hunk-list diff)))
      (should (equal (mapcar #'duet-hunk-line hunks) lines))
      (should (equal (mapconcat #'duet-hunk-text hunks "") diff)))))

(ert-deftest duet-diff-turns-test-join ()
  "The joined diff of turns runs from before the first to after the last.
A change that a later turn has taken back is left out."
  (cl-flet ((file (path before after) (list :path path :before before :after after
                                            :diff "of one turn")))
    (let ((all (duet-diff-turns-join
                (list (list (file "a" "1\n" "2\n") (file "b" nil "x\n") (file "c" "c\n" nil))
                      (list (file "b" "x\n" nil))
                      (list (file "a" "2\n" "3\n") '(:path "d" :binary t))))))
      (should (equal (mapcar (lambda (file) (plist-get file :path)) all) '("a" "c" "d")))
      (should (equal (plist-get (car all) :diff) "@@ -1,1 +1,1 @@\n-1\n+3\n"))
      ;; A file that a single turn has changed keeps the diff of that turn.
      (should (equal (plist-get (nth 1 all) :diff) "of one turn"))
      (should (duet-get (nth 2 all) :binary)))))

(defmacro duet-diff-turns-test-with (&rest body)
  "Run BODY in the changes of two turns: one.txt in the first, two.txt in both.
`lines' is bound to a function that returns the text of two.txt with changes."
  (declare (indent 0) (debug (body)))
  `(let ((lines #'duet-diff-test--lines))
     (duet-diff-test-with-files
         `(("one.txt" ,(funcall lines) ,(funcall lines '(3 . "three\n") '(20 . "twenty\n")))
           ("two.txt" ,(funcall lines) ,(funcall lines '(3 . "three\n"))))
       (duet-diff-test-turn duet-connection duet-session
                            `(("two.txt" nil ,(funcall lines '(3 . "three\n") '(20 . "twenty\n")))))
       (duet-test-press "=" #'duet-diff-all)
       (duet-test-wait-for (not duet-diff--loading))
       ,@body)))

(defun duet-diff-turns-test--states (path)
  "Return the states of the hunks of PATH in each turn, the first turn first."
  (mapcar (lambda (turn)
            (cl-loop for file in (duet-get-objects
                                  (duet-test-request duet-connection 'change.list
                                                     (list :turn (duet-turn-id turn)))
                                  :changes)
                     when (string-suffix-p path (duet-get-string file :path))
                     return (duet-get-string file :state)))
          (reverse (duet-session-turns duet-session))))

(ert-deftest duet-diff-turns-test-decide ()
  "A decision on a file that several turns have changed applies to all of them."
  (duet-diff-turns-test-with
    ;; The turns must agree.
    (duet-test-request duet-connection 'change.accept
                       (list :turn (duet-turn-id (cadr (duet-session-turns duet-session)))
                             :path (expand-file-name "two.txt")))
    (duet-test-press "g" #'duet-diff-refresh)
    (duet-test-wait-for (not duet-diff--loading))
    (should (equal (duet-diff-turns-test--states "two.txt") '("accepted" "open")))
    (should (string-match-p "0 of 4 reviewed" (duet-diff--header)))
    ;; Only one turn has changed this file.
    (duet-test-go "● one.txt")
    (duet-diff-test-press "k" #'duet-diff-revert)
    (should (equal (duet-diff-test-read "one.txt") (funcall lines '(20 . "twenty\n"))))
    (duet-diff-test-press "a" #'duet-diff-accept)
    (should (string-match-p "2 of 4 reviewed" (duet-diff--header)))
    (dolist (key '("a" "k"))
      (duet-test-should-say "two.txt: several turns have changed it; A, K and u decide about all"
        (call-interactively (key-binding key))))
    (duet-diff-test-press "A" #'duet-diff-accept-file)
    (should (equal (duet-diff-turns-test--states "two.txt") '("accepted" "accepted")))
    (should (string-match-p "all reviewed" (duet-diff--header)))
    (duet-test-go "● two.txt")
    (duet-diff-test-press "K" #'duet-diff-revert-file)
    (should (equal (duet-diff-test-read "two.txt") (funcall lines)))
    (should (equal (duet-diff-turns-test--states "two.txt") '("reverted" "reverted")))
    (should (string-match-p "^● two.txt  .*\n.*\n.*\n✗ reverted  @@ -1,.*\n✗ reverted  @@ -17"
                            (duet-diff-test--visible)))
    (duet-test-should-say "The whole file is reverted" (duet-diff-accept-file))
    (duet-diff-test-press "u" #'duet-diff-undo)
    (should (equal (duet-diff-test-read "two.txt")
                   (funcall lines '(3 . "three\n") '(20 . "twenty\n"))))
    (should (equal (duet-diff-turns-test--states "two.txt") '("open" "open")))
    (should (string-match-p "2 of 4 reviewed" (duet-diff--header)))))

(ert-deftest duet-diff-turns-test-refused ()
  "If a turn cannot be reverted, a message counts the reverted turns; `u' undoes."
  (duet-diff-turns-test-with
    (duet-diff-test-write "two.txt" (funcall lines '(3 . "mine\n") '(20 . "twenty\n")))
    (duet-test-go "● two.txt")
    (duet-diff-test-press "K" #'duet-diff-revert-file)
    (should (duet-test-heard
             "^Duet: Reverted 1 of the 2 turns that changed two.txt, the last first; the rest is unchanged: .*/two.txt was changed here since"))
    (should (equal (duet-diff-test-read "two.txt") (funcall lines '(3 . "mine\n"))))
    (should (equal (duet-diff-turns-test--states "two.txt") '("open" "reverted")))
    ;; The turns do not agree.
    (should (string-match-p "0 of 4 reviewed" (duet-diff--header)))
    (duet-test-go "● two.txt")
    (duet-diff-test-press "u" #'duet-diff-undo)
    (should (equal (duet-diff-test-read "two.txt")
                   (funcall lines '(3 . "mine\n") '(20 . "twenty\n"))))
    (should (equal (duet-diff-turns-test--states "two.txt") '("open" "open")))))

(ert-deftest duet-diff-turns-test-show ()
  "One key switches between the changes of all turns and of the last turn."
  (duet-test-with-project connection
    (save-window-excursion
      (let* ((session (duet-test-launch connection "hello"))
             (next (lambda (query)
                     (duet-test-request connection 'approval.decide
                                        (list :approval
                                              (duet-approval-id (duet-test-question session))
                                              :decision "approve"))
                     (duet-test-wait-for-state session 'completed)
                     (when query
                       (duet-test-request connection 'session.prompt
                                          (list :session (duet-session-leaf-id session)
                                                :prompt query)))))
             (transcript (duet-transcript-open connection session)))
        (funcall next "again")
        (funcall next nil)
        (switch-to-buffer transcript)
        (duet-test-wait-for-text transcript "^❯ again")
        (duet-test-press "M-=" #'duet-diff-all)
        (duet-test-wait-for-text (current-buffer) "^\\+Turn 1: hello\n\\+Turn 2: again\n")
        (should (string-match-p "all turns" (duet-diff--header)))
        ;; As if the list of sessions had only the last turn.
        (setf (duet-session-turns session) (list (car (duet-session-turns session)))
              (duet-turn-parent (car (duet-session-turns session))) nil)
        (duet-diff-refresh)
        (duet-test-wait-for (not duet-diff--loading))
        (duet-test-wait-for-text (current-buffer) "^\\+Turn 1: hello\n\\+Turn 2: again\n")
        (duet-test-press "=" #'duet-diff-all)
        (duet-test-wait-for-text (current-buffer) "^ Turn 1: hello\n\\+Turn 2: again\n")
        (should-not (string-match-p "all turns" (duet-diff--header)))))))

(provide 'duet-diff-turns-test)
;;; duet-diff-turns-test.el ends here
