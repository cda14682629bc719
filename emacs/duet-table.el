;;; duet-table.el --- Tables of agents  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The display of its bars aligns the columns of a table; the text in the buffer does
;; not change.  The first rows decide the width of the columns, so that a later row
;; does not move the rows that the user is reading.
;;
;; In a graphical window an East Asian character or an emoji may not be exactly two
;; columns wide.  In rows with such characters, the space before each bar puts the bar
;; at the right position.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-block)
(require 'duet-inline)
(require 'duet-look)

(defconst duet-table--rows 100
  "Number of rows that decide the width of the columns.")

(defconst duet-table--widest 60
  "Maximum width of a column; a cell may be wider.")

(defvar-local duet-table--seen nil
  "Non-nil if the buffer has shown a table.")
(defvar-local duet-table--room nil
  "The width for which the tables of the buffer are laid out, or nil.")

(defun duet-table--trim (cell)
  "Return CELL, (BEG . END), without the white space around its text."
  (save-excursion
    (let ((end (progn (goto-char (cdr cell))
                      (skip-chars-backward " \t" (car cell))
                      (point))))
      (goto-char (car cell))
      (skip-chars-forward " \t" end)
      (cons (point) end))))

(defun duet-table-width (beg end found)
  "Return the width of the text from BEG to END without the hidden marks in FOUND."
  (let* ((text (buffer-substring-no-properties beg end))
         (width (+ (string-width text) (duet-table--beyond text))))
    (pcase-dolist (`(,from ,to ,kind) found)
      (when (eq kind 'hide)
        (cl-decf width (string-width (buffer-substring-no-properties from to)))))
    width))

(defun duet-table--drawn-p ()
  "Return non-nil if the font determines the width of characters."
  (display-graphic-p))

(defun duet-table--odd-p (text)
  "Return non-nil if TEXT may be wider than `string-width' reports."
  (and (string-match-p "[^[:ascii:]]" text) (duet-table--drawn-p)))

(defun duet-table--beyond (text)
  "Return the columns that TEXT takes beyond its `string-width'."
  (if (not (duet-table--odd-p text)) 0
    (let ((width (string-width text)))
      (max 0 (- (if (fboundp 'string-pixel-width)
                    (ceiling (string-pixel-width (propertize text 'face 'duet-table))
                             (frame-char-width))
                  ;; No known emoji is more than a quarter wider.
                  (+ width (/ (+ 3 (- width (length text))) 4)))
                width)))))

(defun duet-table-measure (block)
  "Measure the rows of BLOCK, a table, that are not measured yet.
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
Call APPLY with the value of `duet-inline-parse' for each cell, and HIDE with
the beginning and the end of each text to hide."
  (let* ((widths (duet-block-widths block))
         (fitted (duet-table--fitted widths bol))
         (cells (and fitted (not (eq part 'rule)) (duet-block-cells bol eol))))
    (setq duet-table--seen t)
    (cond
     ((eq part 'rule)
      (put-text-property bol eol 'display (duet-table--rule bol (or fitted widths))))
     ((and cells
           (or (not (equal fitted widths))
               ;; Only a column of this width may have wider cells.
               (cl-loop for cell in cells
                        for width across widths
                        thereis (and (= width duet-table--widest)
                                     (pcase-let ((`(,beg . ,end) (duet-table--trim cell)))
                                       (> (duet-table-width beg end (duet-inline-parse beg end))
                                          width))))))
      (duet-table--fold-row block part bol eol cells fitted apply hide))
     (t (duet-table--align-row block part bol eol apply hide)))))

(defun duet-table--align-row (block part bol eol apply hide)
  "Align the row of BLOCK from BOL to EOL, its PART, in one line.
APPLY and HIDE are as for `duet-table-line'."
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
    (add-face-text-property bol eol 'duet-table t)))

(defun duet-table--places (bol first widths)
  "Return the columns of the bars behind the cells of the row at BOL, a list.
FIRST is the start of its first cell; WIDTHS are the widths of the columns."
  (let ((column (+ (string-width (or (get-text-property bol 'line-prefix) ""))
                   (if (and first (> first bol) (eq (char-before first) ?|)) 2 0))))
    (mapcar (lambda (width)
              (prog1 (+ column width 1)
                (cl-incf column (+ width 3))))
            widths)))

(defun duet-table--bar (place text after)
  "Display the bar at PLACE as TEXT and AFTER spaces; nil means none."
  (put-text-property place (1+ place) 'display
                     (concat text (make-string (or after 0) ?\s))))

(defun duet-table--rule (bol widths)
  "Return the display of the rule of a table at BOL with columns of WIDTHS."
  (let* ((bare (save-excursion
                 (goto-char bol)
                 (not (looking-at-p "[ \t]*|"))))
         (line (aref (duet-look-sign "─") 0))
         (parts (mapcar (lambda (width) (make-string width line))
                        widths))
         (cross (concat (string line) (duet-look-sign "┼") (string line))))
    (propertize (concat (if bare "" (concat (duet-look-sign "├") (string line)))
                        (string-join parts cross)
                        (if bare "" (concat (string line) (duet-look-sign "┤"))))
                'face 'duet-dim)))


;;; Tables that are wider than their window

(defconst duet-table--narrowest 5
  "Minimum width of a column that is narrowed to make a table fit.")

(defun duet-table--window-room ()
  "Return the width of the narrowest window of the buffer, or nil without one."
  (when-let ((windows (get-buffer-window-list nil nil t)))
    (apply #'min (mapcar #'window-max-chars-per-line windows))))

(defun duet-table-resized ()
  "Return non-nil if the buffer's tables need a new layout for their windows.
Record the new width."
  (let ((room (duet-table--window-room)))
    (unless (equal room duet-table--room)
      (setq duet-table--room room)
      duet-table--seen)))

(defun duet-table--fitted (widths bol)
  "Return WIDTHS of the columns of the table at BOL, narrowed to fit, a vector.
Narrow columns keep their width.  Return nil if no window shows the table, or
if the window is too narrow."
  (when-let ((room (duet-table--window-room)))
    (let* ((room (- room (string-width (or (get-text-property bol 'line-prefix) ""))
                    1 (* 3 (length widths))))
           (left room)
           (wide (append widths nil))
           (share room))
      (if (<= (apply #'+ wide) room) widths
        ;; The wide columns share the room that the narrow ones leave.
        (while (let ((narrow (progn (setq share (/ left (max 1 (length wide))))
                                    (cl-remove-if (lambda (width) (> width share)) wide))))
                 (setq left (- left (apply #'+ narrow))
                       wide (cl-remove-if (lambda (width) (<= width share)) wide))
                 narrow))
        (and (>= share duet-table--narrowest)
             (let ((more (- left (* share (length wide)))))
               (vconcat (mapcar (lambda (width)
                                  (cond ((<= width share) width)
                                        ((> more 0) (cl-decf more) (1+ share))
                                        (t share)))
                                widths))))))))

(defun duet-table--width (text)
  "Return the width of TEXT in columns."
  (+ (string-width text) (duet-table--beyond text)))

(defun duet-table--fold (text width)
  "Return TEXT as lines of at most WIDTH columns.
Break it between words, or else behind signs such as slashes."
  (let ((lines '())
        (line ""))
    (dolist (word (split-string text "[ \t]+" t))
      (let ((longer (if (string-empty-p line) word (concat line " " word))))
        (if (<= (duet-table--width longer) width)
            (setq line longer)
          (unless (string-empty-p line) (push line lines))
          (setq line word)
          (while (> (duet-table--width line) width)
            (let ((part (truncate-string-to-width line (max 1 width))))
              (cond ((string-empty-p part) (setq part (substring line 0 1)))
                    ((string-match "\\`\\(?:.\\{3,\\}[-/._,:=]\\)" part)
                     (setq part (match-string 0 part))))
              (push part lines)
              (setq line (substring line (length part))))))))
    (nreverse (cons line lines))))

(defun duet-table--cell-text (beg end)
  "Return the visible text from BEG to END."
  (let ((parts '()))
    (while (< beg end)
      (let ((next (next-single-property-change beg 'invisible nil end)))
        (unless (get-text-property beg 'invisible)
          (push (buffer-substring beg next) parts))
        (setq beg next)))
    (let ((text (apply #'concat (nreverse parts))))
      (remove-list-of-text-properties
       0 (length text) '(duet-section display fontified keymap line-prefix wrap-prefix) text)
      text)))

(defun duet-table--fold-row (block part bol eol cells widths apply hide)
  "Show the row of BLOCK from BOL to EOL, its PART and CELLS, in several lines.
Its columns have WIDTHS.  APPLY and HIDE are as for `duet-table-line'."
  (let* ((bar (duet-look-sign "│"))
         (columns
          (cl-loop for cell in cells
                   for width across widths
                   for align in (duet-block-columns block)
                   collect (pcase-let ((`(,beg . ,end) (duet-table--trim cell)))
                             (funcall apply (duet-inline-parse beg end))
                             (funcall hide (car cell) beg)
                             (funcall hide end (cdr cell))
                             (list width align
                                   (duet-table--fold (duet-table--cell-text beg end) width)))))
         (height (apply #'max 1 (mapcar (lambda (column) (length (nth 2 column))) columns)))
         (lines
          (cl-loop
           for number below height
           collect
           (concat bar " "
                   (mapconcat
                    (lambda (column)
                      (pcase-let* ((`(,width ,align ,texts) column)
                                   (text (or (nth number texts) ""))
                                   (room (max 0 (- width (duet-table--width text))))
                                   (before (pcase align
                                             ('right room)
                                             ('center (/ room 2))
                                             (_ 0))))
                        (concat (make-string before ?\s) text
                                (make-string (- room before) ?\s))))
                    columns (concat " " bar " "))
                   " " bar)))
         (first (save-excursion
                  (goto-char bol)
                  (forward-line -1)
                  (not (eq (duet-block-part block (point)) 'row))))
         (text (concat (if (or first (eq part 'head)) ""
                         ;; Without the rule, the start of a row would be unclear.
                         (concat (duet-table--rule bol widths) "\n"))
                       (string-join lines "\n"))))
    (when (eq part 'head) (add-face-text-property 0 (length text) 'bold t text))
    (add-face-text-property 0 (length text) 'duet-table t text)
    (put-text-property bol eol 'display text)))

(provide 'duet-table)
;;; duet-table.el ends here
