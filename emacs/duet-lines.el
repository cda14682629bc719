;;; duet-lines.el --- What differs between two texts, line by line  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; An agent tells of an edit as the text before and the text after.  This makes
;; hunks of them, by the greedy algorithm of E. Myers, "An O(ND) Difference
;; Algorithm and Its Variations" (1986).  It takes as long as the texts differ;
;; where they differ too much, all between the same beginning and the same end
;; is one change.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(defconst duet-lines--most 150
  "How many lines may differ for the shortest way to be looked for.
That takes some 5 ms.")

(defconst duet-lines--context 3
  "How many lines that are the same are shown around a change.")

(cl-defstruct (duet-lines-hunk (:copier nil))
  "A stretch of lines in which two texts differ."
  (old 1 :documentation "The number of its first line in the old text.")
  (new 1 :documentation "The number of its first line in the new text.")
  (lines nil :documentation "Its lines, each behind a space, a minus or a plus."))

(defun duet-lines--of (text)
  "Return the lines of TEXT as a vector; nil has none."
  (if (or (null text) (string-empty-p text)) []
    (vconcat (split-string (string-remove-suffix "\n" text) "\n"))))

(defun duet-lines-hunks (old new)
  "Return how the text NEW differs from OLD, a list of `duet-lines-hunk'.
Either may be nil, which has no lines."
  (let* ((a (duet-lines--of old))
         (b (duet-lines--of new))
         (end-a (length a))
         (end-b (length b))
         (begin 0))
    (while (and (< begin end-a) (< begin end-b)
                (string= (aref a begin) (aref b begin)))
      (cl-incf begin))
    (while (and (> end-a begin) (> end-b begin)
                (string= (aref a (1- end-a)) (aref b (1- end-b))))
      (cl-decf end-a)
      (cl-decf end-b))
    (duet-lines--group a b (duet-lines--matches a b begin end-a end-b))))

(defun duet-lines-count (hunks)
  "Return how many lines HUNKS add and remove, as a cons."
  (let ((added 0) (removed 0))
    (dolist (hunk hunks)
      (dolist (line (duet-lines-hunk-lines hunk))
        (pcase (aref line 0)
          (?+ (cl-incf added))
          (?- (cl-incf removed)))))
    (cons added removed)))

(defun duet-lines--matches (a b begin end-a end-b)
  "Return which lines of the vectors A and B are the same, as (I . J), in order.
They are so before BEGIN, and from END-A and END-B on."
  (nconc (cl-loop for i below begin collect (cons i i))
         (duet-lines--shortest a b begin end-a end-b)
         (cl-loop for i from end-a below (length a)
                  for j from end-b collect (cons i j))))

(defun duet-lines--shortest (a b begin end-a end-b)
  "Return the same lines of A and B on the shortest way from one to the other.
They are those from BEGIN to END-A and END-B.  Return nil if the way is
longer than `duet-lines--most'."
  (let* ((n (- end-a begin))
         (m (- end-b begin))
         (most (min (+ n m) duet-lines--most))
         (middle (1+ most))
         (far (make-vector (+ 3 (* 2 most)) 0))
         (trace '())
         (found nil)
         (d 0))
    (unless (or (zerop n) (zerop m))
      (while (and (not found) (<= d most))
        (push (copy-sequence far) trace)
        (cl-loop
         for k from (- d) to d by 2
         for x = (if (duet-lines--down-p far middle k d) (aref far (+ middle k 1))
                   (1+ (aref far (+ middle k -1))))
         for y = (- x k)
         until found
         do (while (and (< x n) (< y m)
                        (string= (aref a (+ begin x)) (aref b (+ begin y))))
              (setq x (1+ x) y (1+ y)))
         (aset far (+ middle k) x)
         (when (and (>= x n) (>= y m)) (setq found t)))
        (setq d (1+ d)))
      (when found (duet-lines--back trace begin n m middle)))))

(defun duet-lines--down-p (far middle k d)
  "Return non-nil if the way to the diagonal K with D steps comes from above.
FAR, with K at MIDDLE, says how far the others go."
  (or (= k (- d))
      (and (/= k d)
           (< (aref far (+ middle k -1)) (aref far (+ middle k 1))))))

(defun duet-lines--back (trace begin n m middle)
  "Return the same lines on the way back from N and M, by TRACE.
BEGIN is added to each; MIDDLE is where the diagonals begin."
  (let ((x n) (y m)
        (d (1- (length trace)))
        (same '()))
    (dolist (far trace)
      (let* ((k (- x y))
             (before (if (duet-lines--down-p far middle k d) (1+ k) (1- k)))
             (x0 (if (zerop d) 0 (aref far (+ middle before))))
             (y0 (if (zerop d) 0 (- x0 before))))
        (while (and (> x x0) (> y y0))
          (setq x (1- x) y (1- y))
          (push (cons (+ begin x) (+ begin y)) same))
        (setq x x0 y y0 d (1- d))))
    same))

(defun duet-lines--group (a b same)
  "Return the hunks that lead from A to B, whose lines SAME are the same."
  (let ((hunks '())
        (i 0) (j 0)
        hunk quiet)
    (cl-flet
        ((change (sign line)
           (unless hunk
             (let ((before (min duet-lines--context i j)))
               (setq hunk (make-duet-lines-hunk :old (1+ (- i before)) :new (1+ (- j before))))
               (cl-loop for n from (- i before) below i
                        do (push (concat " " (aref a n)) (duet-lines-hunk-lines hunk)))))
           (dolist (line (reverse quiet))
             (push (concat " " line) (duet-lines-hunk-lines hunk)))
           (setq quiet nil)
           (push (concat sign line) (duet-lines-hunk-lines hunk)))
         (end ()
           (when hunk
             (dolist (line (seq-take (reverse quiet) duet-lines--context))
               (push (concat " " line) (duet-lines-hunk-lines hunk)))
             (cl-callf nreverse (duet-lines-hunk-lines hunk))
             (push hunk hunks))
           (setq hunk nil quiet nil)))
      (pcase-dolist (`(,x . ,y) (append same (list (cons (length a) (length b)))))
        (while (< i x) (change "-" (aref a i)) (cl-incf i))
        (while (< j y) (change "+" (aref b j)) (cl-incf j))
        (when (< x (length a))
          (when hunk
            (push (aref a x) quiet)
            (when (> (length quiet) (* 2 duet-lines--context)) (end)))
          (setq i (1+ x) j (1+ y))))
      (end))
    (nreverse hunks)))

(provide 'duet-lines)
;;; duet-lines.el ends here
