;;; duet-lines-test.el --- Tests of differences between texts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'ert)
(require 'cl-lib)
(require 'duet-render)

(defun duet-lines-test--text (from to &rest others)
  "Return numbered lines FROM to TO, replaced by OTHERS, a list of (N . LINE)."
  (mapconcat (lambda (n) (concat (or (alist-get n others) (format "row %d" n)) "\n"))
             (number-sequence from to) ""))

(defun duet-lines-test--apply (old hunks)
  "Apply HUNKS to the text OLD and return the result; check their context."
  (let ((lines (append (duet-lines--of old) nil))
        (n 1)
        (new '()))
    (dolist (hunk hunks)
      (while (< n (duet-lines-hunk-old hunk))
        (push (pop lines) new)
        (cl-incf n))
      (should (= (1+ (length new)) (duet-lines-hunk-new hunk)))
      (dolist (line (duet-lines-hunk-lines hunk))
        (unless (eq (aref line 0) ?+)
          (should (equal (pop lines) (substring line 1)))
          (cl-incf n))
        (unless (eq (aref line 0) ?-)
          (push (substring line 1) new))))
    (mapconcat (lambda (line) (concat line "\n")) (append (reverse new) lines) "")))

(ert-deftest duet-lines-test-hunks ()
  "Three small edits are three hunks, with three lines around each."
  (let* ((old (duet-lines-test--text 1 40))
         (new (duet-lines-test--text 1 40 '(5 . "five") '(20 . "a\nb") '(38 . "x")))
         (hunks (duet-lines-hunks old new)))
    (should (equal (duet-lines-count hunks) '(4 . 3)))
    (should (equal (mapcar (lambda (hunk)
                             (list (duet-lines-hunk-old hunk) (duet-lines-hunk-new hunk)
                                   (length (duet-lines-hunk-lines hunk))))
                           hunks)
                   '((2 2 8) (17 17 9) (35 36 7))))
    (should (equal (duet-lines-hunk-lines (car hunks))
                   '(" row 2" " row 3" " row 4" "-row 5" "+five" " row 6" " row 7" " row 8")))
    (should (equal (duet-lines-test--apply old hunks) new))))

(ert-deftest duet-lines-test-near ()
  "Changes with six lines between them share a hunk; with seven they do not."
  (dolist (row '((12 . 1) (13 . 2)))
    (should (= (cdr row)
               (length (duet-lines-hunks
                        (duet-lines-test--text 1 30)
                        (duet-lines-test--text 1 30 '(5 . "a") (cons (car row) "b"))))))))

(ert-deftest duet-lines-test-ends ()
  "A text is created, deleted, or unchanged."
  (should-not (duet-lines-hunks "a\n" "a\n"))
  (should-not (duet-lines-hunks nil ""))
  (should (equal (duet-lines-hunk-lines (car (duet-lines-hunks nil "a\nb\n"))) '("+a" "+b")))
  (should (equal (duet-lines-hunk-lines (car (duet-lines-hunks "a\nb" nil))) '("-a" "-b")))
  (should (equal (duet-lines-hunk-lines (car (duet-lines-hunks "a\nb" "b\na")))
                 '("-a" " b" "+a"))))

(ert-deftest duet-lines-test-any ()
  "For random texts, the hunks turn one into the other."
  (let ((state 7))
    (cl-flet ((pick (n) (setq state (mod (+ (* state 1103515245) 12345) 2147483648))
                    (mod (/ state 65536) n)))
      (dotimes (_ 300)
        (let ((old (mapconcat (lambda (_) (format "%d\n" (pick 4))) (make-list (pick 30) 0) ""))
              (new (mapconcat (lambda (_) (format "%d\n" (pick 4))) (make-list (pick 30) 0) "")))
          (should (equal (duet-lines-test--apply old (duet-lines-hunks old new)) new)))))))

(ert-deftest duet-lines-test-too-different ()
  "Texts that differ too much get one hunk between their common ends."
  (let* ((old (concat "top\n" (duet-lines-test--text 1 500) "end\n"))
         (new (concat "top\n" (duet-lines-test--text 501 1000) "end\n"))
         (hunks (duet-lines-hunks old new)))
    (should (= (length hunks) 1))
    (should (equal (duet-lines-count hunks) '(500 . 500)))
    (should (equal (duet-lines-test--apply old hunks) new))))

(provide 'duet-lines-test)
;;; duet-lines-test.el ends here
