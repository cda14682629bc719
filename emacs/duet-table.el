;;; duet-table.el --- Tables in what agents say  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The columns of a table are aligned by what its bars are displayed as; its text
;; stays as it was written.  How wide a column is its first rows tell: a row that
;; comes later, far below, moves nothing that is being read.
;;
;; In a window of a graphical display a character of East Asia or an emoji need not
;; be two columns wide.  There the bars of rows with such characters are put where
;; they belong, by the space in front of them.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-block)
(require 'duet-inline)
(require 'duet-look)

(defconst duet-table--rows 100
  "How many rows tell how wide the columns are.")

(defconst duet-table--widest 60
  "How wide a column is made at most; a cell may be wider.")

(defun duet-table--trim (cell)
  "Return the part of CELL, (BEG . END), that is not space around it."
  (save-excursion
    (let ((end (progn (goto-char (cdr cell))
                      (skip-chars-backward " \t" (car cell))
                      (point))))
      (goto-char (car cell))
      (skip-chars-forward " \t" end)
      (cons (point) end))))

(defun duet-table-width (beg end found)
  "Return how wide the text from BEG to END is where the marks FOUND are hidden."
  (let* ((text (buffer-substring-no-properties beg end))
         (width (+ (string-width text) (duet-table--beyond text))))
    (pcase-dolist (`(,from ,to ,kind) found)
      (when (eq kind 'hide)
        (cl-decf width (string-width (buffer-substring-no-properties from to)))))
    width))

(defun duet-table--drawn-p ()
  "Return non-nil if characters are drawn, and are as wide as their font has them."
  (display-graphic-p))

(defun duet-table--odd-p (text)
  "Return non-nil if TEXT may not be as wide as its columns."
  (and (string-match-p "[^[:ascii:]]" text) (duet-table--drawn-p)))

(defun duet-table--beyond (text)
  "Return how many columns TEXT takes beyond those that its characters have."
  (if (not (duet-table--odd-p text)) 0
    (let ((width (string-width text)))
      (max 0 (- (if (fboundp 'string-pixel-width)
                    (ceiling (string-pixel-width (propertize text 'face 'duet-table))
                             (frame-char-width))
                  ;; No emoji was seen that is a quarter wider.
                  (+ width (/ (+ 3 (- width (length text))) 4)))
                width)))))

(defun duet-table-measure (block)
  "Measure the rows of BLOCK, a table, that were not measured yet.
Return non-nil if a column has become wider."
  (let* ((start (duet-block-beg block))
         (from (or (duet-block-measured block) start))
         (limit (duet-block-limit block))
         (widths (or (duet-block-widths block)
                     (make-vector (length (duet-block-columns block)) 1)))
         (rule (save-excursion
                 (goto-char (duet-block-place block (duet-block-body block)))
                 (forward-line -1)
                 (point)))
         (grown nil)
         (last (save-excursion
                 (goto-char (duet-block-place block start))
                 (forward-line (+ 2 duet-table--rows))
                 (min (point) limit))))
    (save-excursion
      (goto-char (duet-block-place block from))
      (while (< (point) last)
        (unless (= (point) rule)
          (cl-loop for cell in (duet-block-cells (point) (line-end-position))
                   for column from 0 below (length widths)
                   do (pcase-let* ((`(,beg . ,end) (duet-table--trim cell))
                                   (width (min duet-table--widest
                                               (duet-table-width
                                                beg end (duet-inline-parse beg end)))))
                        (when (> width (aref widths column))
                          (aset widths column width)
                          (setq grown t)))))
        (forward-line 1))
      (setf (duet-block-measured block) (- (max last (duet-block-place block from))
                                           (duet-section-beg (duet-block-section block)))
            (duet-block-widths block) widths))
    grown))

(defun duet-table-line (block part bol eol apply hide)
  "Align the line of BLOCK from BOL to EOL, its PART.
APPLY is called with what `duet-inline-parse' finds in a cell, and HIDE with
the beginning and the end of what is to be hidden."
  (if (eq part 'rule)
      (put-text-property bol eol 'display (duet-table--rule block bol))
    (let* ((widths (duet-block-widths block))
           (bar (duet-look-sign "│"))
           (cells (duet-block-cells bol eol))
           (first (car (car cells)))
           (places (and (duet-table--odd-p (buffer-substring-no-properties bol eol))
                        (duet-table--places bol first widths)))
           (aligned '())
           (left (cl-loop for cell in cells
                          for align in (append (duet-block-columns block)
                                               (make-list (length cells) 'left))
                          for column from 0
                          collect (pcase-let* ((`(,beg . ,end) (duet-table--trim cell))
                                               (found (duet-inline-parse beg end))
                                               (width (duet-table-width beg end found))
                                               (room (if (< column (length widths))
                                                         (max 0 (- (aref widths column) width))
                                                       0)))
                                    (funcall apply found)
                                    (funcall hide (car cell) beg)
                                    (if (and (< end (cdr cell) eol) (< column (length places))
                                             (<= width (aref widths column)))
                                        (progn
                                          (put-text-property
                                           end (1+ end) 'display
                                           `(space :align-to ,(nth column places)))
                                          (funcall hide (1+ end) (cdr cell))
                                          (push column aligned))
                                      (funcall hide end (cdr cell)))
                                    (pcase align
                                      ('right (cons room 0))
                                      ('center (cons (/ room 2) (- room (/ room 2))))
                                      (_ (cons 0 room)))))))
      (when (and first (> first bol) (eq (char-before first) ?|))
        (funcall hide bol (1- first))
        (duet-table--bar (1- first) (concat bar " ") (caar left)))
      (cl-loop for (_ . end) in cells
               for ((_ . before) (after . _)) on left
               for column from 0
               when (and (< end eol) (eq (char-after end) ?|))
               do (duet-table--bar end (concat (if (memq column aligned) ""
                                                 (concat (make-string before ?\s) " "))
                                               bar (if after " " ""))
                                   after))
      (when (eq part 'head)
        (add-face-text-property bol eol 'bold t))
      (add-face-text-property bol eol 'duet-table t))))

(defun duet-table--places (bol first widths)
  "Return the columns of the bars behind the cells of the row at BOL, a list.
FIRST is where its first cell begins; WIDTHS are those of the table."
  (let ((column (+ (string-width (or (get-text-property bol 'line-prefix) ""))
                   (if (and first (> first bol) (eq (char-before first) ?|)) 2 0))))
    (mapcar (lambda (width)
              (prog1 (+ column width 1)
                (cl-incf column (+ width 3))))
            widths)))

(defun duet-table--bar (place text after)
  "Display the bar at PLACE as TEXT and as many spaces as AFTER says, or none."
  (put-text-property place (1+ place) 'display
                     (concat text (make-string (or after 0) ?\s))))

(defun duet-table--rule (block bol)
  "Return what the rule of BLOCK, the line at BOL, is displayed as."
  (let* ((bare (save-excursion
                 (goto-char bol)
                 (not (looking-at-p "[ \t]*|"))))
         (line (aref (duet-look-sign "─") 0))
         (parts (mapcar (lambda (width) (make-string width line))
                        (duet-block-widths block)))
         (cross (concat (string line) (duet-look-sign "┼") (string line))))
    (propertize (concat (if bare "" (concat (duet-look-sign "├") (string line)))
                        (string-join parts cross)
                        (if bare "" (concat (string line) (duet-look-sign "┤"))))
                'face 'duet-dim)))

(provide 'duet-table)
;;; duet-table.el ends here
