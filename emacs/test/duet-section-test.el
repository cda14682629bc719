;;; duet-section-test.el --- Tests of sections alone  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(defmacro duet-section-test-with (&rest body)
  "Run BODY in a window whose buffer has the sections a, b and c."
  (declare (indent 0) (debug t))
  `(save-window-excursion
     (with-temp-buffer
       (duet-section-setup)
       (switch-to-buffer (current-buffer) nil t)
       (dolist (key '("a" "b" "c"))
         (duet-section-insert key nil (concat key "1\n" key "2")))
       ,@body)))

(defun duet-section-test-text ()
  "Return the text of the buffer in one line."
  (replace-regexp-in-string "\n" "/" (buffer-substring-no-properties
                                      (point-min) (point-max))))

(defun duet-section-test-whole ()
  "Check that the markers and text properties of each section agree."
  (maphash (lambda (_ section)
             (let ((beg (duet-section-beg section))
                   (end (duet-section-end section)))
               (cl-loop for place from beg below (+ end 2)
                        do (should (eq (get-text-property place 'duet-section) section)))
               (should-not (eq (get-text-property (+ end 2) 'duet-section) section))
               (should (or (= beg (point-min))
                           (not (eq (get-text-property (1- beg) 'duet-section)
                                    section))))))
           duet-sections))

(defun duet-section-test-seen ()
  "Return the visible text of the buffer, in one line."
  (let ((place (point-min))
        (parts '()))
    (while (< place (point-max))
      (let ((next (next-single-char-property-change place 'invisible)))
        (dolist (overlay (overlays-in place (1+ place)))
          (when (= (overlay-start overlay) place)
            (push (overlay-get overlay 'after-string) parts)))
        (unless (invisible-p place)
          (push (buffer-substring-no-properties place next) parts))
        (setq place next)))
    (replace-regexp-in-string "\n" "/" (substring-no-properties
                                        (apply #'concat (nreverse parts))))))

(ert-deftest duet-section-test-folded-ones-are-dense ()
  "No blank line is visible between two folded sections."
  (duet-section-test-with
    (pcase-dolist (`(,act ,key ,seen)
                   '((duet-section-fold-up "a" "a1//b1/b2//c1/c2//")
                     (duet-section-fold-up "b" "a1/b1//c1/c2//")
                     (duet-section-fold-up "c" "a1/b1/c1//")
                     (duet-section-unfold "b" "a1//b1/b2//c1//")
                     (duet-section-fold-up "b" "a1/b1/c1//")
                     (duet-section-delete "b" "a1/c1//")
                     (duet-section-unfold "a" "a1/a2//c1//")))
      (funcall act (duet-section-get key))
      (should (equal (duet-section-test-seen) seen)))
    (duet-section-fold-up (duet-section-get "a"))
    (duet-section-redraw (duet-section-get "a") "A\nbody")
    (should (equal (duet-section-test-seen) "A/c1//"))
    (let ((new (duet-section-insert "x" nil "x1\nx2" (duet-section-get "c"))))
      (should (equal (duet-section-test-seen) "A//x1/x2//c1//"))
      (duet-section-fold-up new))
    (should (equal (duet-section-test-seen) "A/x1/c1//"))
    (should (equal (duet-section-test-text) "A/body//x1/x2//c1/c2//"))
    (duet-section-test-whole)))

(ert-deftest duet-section-test-summary ()
  "A folded section ends with its summary, cut to the width of the window."
  (duet-section-test-with
    (cl-letf (((symbol-function 'window-width) (lambda (&rest _) 40)))
      (let ((section (duet-section-get "b")))
        (setf (duet-section-summary section) "all is well")
        (duet-section-fold-up section)
        (should (equal (duet-section-test-seen) "a1/a2//b1 ... all is well//c1/c2//"))
        (duet-section-unfold section)
        (should (equal (duet-section-test-seen) "a1/a2//b1/b2//c1/c2//"))
        (setf (duet-section-summary section) (make-string 500 ?x))
        (duet-section-fold-up section)
        (should (equal (duet-section-test-seen)
                       (format "a1/a2//b1 ... %s…//c1/c2//" (make-string (- 40 2 6 1) ?x))))
        ;; With almost no room it is left out.
        (duet-section-redraw section (concat (make-string 30 ?b) "\nb2"))
        (should-not (string-match-p "x" (duet-section-test-seen)))))))

(ert-deftest duet-section-test-append ()
  "Text is appended at the end of a section, the last one or not."
  (duet-section-test-with
    (should (equal (duet-section-test-text) "a1/a2//b1/b2//c1/c2//"))
    (dolist (key '("a" "b" "c" "a"))
      (duet-section-append (duet-section-get key) "+"))
    (should (equal (duet-section-test-text) "a1/a2++//b1/b2+//c1/c2+//"))
    (duet-section-test-whole)))

(ert-deftest duet-section-test-insert ()
  "A section can be inserted before another."
  (duet-section-test-with
    (duet-section-insert "0" nil "0" (duet-section-get "a"))
    (duet-section-insert "x" nil "x" (duet-section-get "c"))
    (should (equal (duet-section-test-text) "0//a1/a2//b1/b2//x//c1/c2//"))
    (duet-section-test-whole)
    (duet-section-delete (duet-section-get "b"))
    (should (equal (duet-section-test-text) "0//a1/a2//x//c1/c2//"))
    (should-not (duet-section-get "b"))
    (duet-section-test-whole)))

(ert-deftest duet-section-test-insert-in-view ()
  "Text that arrives at the start of a window that follows is visible."
  (duet-section-test-with
    (goto-char (point-max))
    (let ((start (point-max)))
      (set-window-start nil start)
      (duet-section-insert "d" nil "d")
      (duet-section-insert "e" nil "e")
      (should (= (window-start) start))
      (should (= (window-point) (point-max))))
    ;; The user's draft may be after it.
    (let ((reply (duet-section-insert 'reply nil "write")))
      (goto-char (duet-section-end reply))
      (set-window-start nil (duet-section-beg reply))
      (let ((start (window-start)))
        (duet-section-insert "f" nil "f" reply)
        (should (= (window-start) start))
        (should (= (point) (duet-section-end reply)))))
    ;; A window that shows an earlier section stays there.
    (let ((c (duet-section-get "c")))
      (goto-char (duet-section-beg c))
      (set-window-start nil (point))
      (duet-section-insert "x" nil "x" c)
      (should (= (window-start) (point) (duet-section-beg c))))))

(ert-deftest duet-section-test-redraw-keeps-point ()
  "A redraw keeps the line and column of point, also in other sections."
  (duet-section-test-with
    (dolist (case '(("b2" "new1/new2/new3" "new2") ("b2" "n" "n") ("a2" "x" "a2")
                    ("c1" "x" "c1")))
      (pcase-let ((`(,at ,text ,line) case))
        (duet-section-redraw (duet-section-get "b") "b1\nb2")
        (goto-char (point-min))
        (search-forward at)
        (backward-char)
        (duet-section-redraw (duet-section-get "b")
                             (replace-regexp-in-string "/" "\n" text))
        (should (equal (list at (buffer-substring-no-properties
                                 (line-beginning-position) (line-end-position)))
                       (list at line)))
        (duet-section-test-whole)))
    (goto-char (point-max))
    (duet-section-redraw (duet-section-get "c") "other")
    (should (eobp))))

(ert-deftest duet-section-test-fold ()
  "Text that is added to a folded section is folded too."
  (duet-section-test-with
    (let ((section (duet-section-get "b")))
      (duet-section-fold-up section)
      (duet-section-append section "more\nand more")
      (duet-section-redraw section "b1\nb2\nb3")
      (duet-section-append section "!")
      (goto-char (duet-section-beg section))
      (should-not (invisible-p (point)))
      (should (invisible-p (1- (duet-section-end section))))
      (should-not (invisible-p (duet-section-beg (duet-section-get "c"))))
      (duet-section-toggle)
      (should-not (invisible-p (1- (duet-section-end section))))
      (call-interactively #'duet-section-toggle-all)
      (maphash (lambda (_ section) (should (duet-section-folded-p section)))
               duet-sections)
      (duet-section-toggle-all)
      (maphash (lambda (_ section) (should-not (duet-section-folded-p section)))
               duet-sections))))

(ert-deftest duet-section-test-move ()
  "Moving by section stops at both ends of the buffer."
  (duet-section-test-with
    (goto-char (point-min))
    (call-interactively #'duet-section-next)
    (should (looking-at "b1"))
    (let ((current-prefix-arg 5)) (call-interactively #'duet-section-next))
    (should (eobp))
    (call-interactively #'duet-section-previous)
    (should (looking-at "c1"))
    (forward-line 1)
    (call-interactively #'duet-section-previous)
    (should (looking-at "c1"))
    (let ((current-prefix-arg 9)) (call-interactively #'duet-section-previous))
    (should (bobp))))

(ert-deftest duet-section-test-nothing ()
  "Without sections, folding and moving are errors."
  (with-temp-buffer
    (dolist (setup (list #'ignore #'duet-section-setup))
      (funcall setup)
      (duet-test-should-say "nothing to fold" (call-interactively #'duet-section-toggle))
      (call-interactively #'duet-section-next)
      (call-interactively #'duet-section-previous))
    (should (bobp))))

(ert-deftest duet-section-test-not-here ()
  "In a buffer without sections, folding all of them is an error."
  (with-temp-buffer
    (duet-test-should-say "nothing to fold"
      (call-interactively #'duet-section-toggle-all))))

(provide 'duet-section-test)
;;; duet-section-test.el ends here
