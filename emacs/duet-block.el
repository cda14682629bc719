;;; duet-block.el --- Blocks of code and tables in what agents say  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Whether a line is code, or a row of a table, depends on all lines before it.
;; So each whole line is looked at once, when it comes.  Lines of a block have
;; these text properties:
;;
;;   duet-block   the `duet-block' that the line is in
;;   duet-part    what of it: `open', `code', `close'; `head', `rule', `row'
;;
;; Places in a block are distances from the beginning of its section, which stay
;; what they are when something is inserted in front of that.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-model)
(require 'duet-section)

(defconst duet-block--slice 200000
  "How many characters are looked at at once.")

(cl-defstruct (duet-block (:copier nil))
  "A block of code or a table."
  (section nil :documentation "The section that it is in.")
  (kind nil :documentation "`code' or `table'.")
  (beg 0 :documentation "Where its first line begins, that of the fence or of the names.")
  (body 0 :documentation "Where the first line of code or the first row begins.")
  (end nil :documentation "Where its last line of code or row has ended; nil if more may come.")
  (fence nil :documentation "The backquotes or tildes that opened it.")
  (indent 0 :documentation "How far the fence is indented.")
  (language nil :documentation "The first word behind the fence, or nil.")
  (colors nil :documentation "How far its code has colours; see duet-code.el.")
  (columns nil :documentation "How the columns of a table are aligned, a list.")
  (widths nil :documentation "How wide they are, a vector; see duet-table.el.")
  (measured nil :documentation "How far its rows were measured."))

(defun duet-block-place (block distance)
  "Return the place in the buffer that is DISTANCE from the section of BLOCK."
  (+ (duet-section-beg (duet-block-section block)) distance))

(defun duet-block-limit (block)
  "Return the place in the buffer up to which the lines of BLOCK are known."
  (if (duet-block-end block)
      (duet-block-place block (duet-block-end block))
    (marker-position (duet-section-rendered (duet-block-section block)))))

(defun duet-block-at (&optional place)
  "Return the block that PLACE, or point, is in, or nil."
  (get-text-property (or place (point)) 'duet-block))

(defun duet-block-broken-p (bol)
  "Return non-nil if the line at BOL goes on with a line that was too long."
  (and (> bol (point-min)) (get-text-property (1- bol) 'duet-show)))

(defun duet-block-scan (section)
  "Look for blocks in some of SECTION that was not looked at yet.
Return non-nil if there is more to look at."
  (let* ((start (or (duet-section-rendered section)
                    (setf (duet-section-rendered section)
                          (copy-marker (duet-section-beg section)))))
         (last (marker-position (duet-section-end section)))
         (open (duet-message-open (duet-section-object section)))
         ;; The last line may not be whole.
         (known (if open
                    (save-excursion (goto-char last) (line-beginning-position))
                  last))
         (end (if (<= (- known start) duet-block--slice)
                  known
                (save-excursion
                  (goto-char (+ start duet-block--slice))
                  (line-beginning-position)))))
    (when (> end start)
      (with-silent-modifications
        ;; It may be in sight, as something that is not whole.
        (put-text-property start (1+ start) 'fontified nil)
        (duet-block--mark section (marker-position start) end))
      (set-marker start end))
    (when (and (not open) (= end last))
      (duet-block--end section last))
    (< end known)))

(defun duet-block--end (section last)
  "Note that the block that SECTION ends in, if any, ends at LAST."
  (when-let ((block (duet-section-block section)))
    (setf (duet-block-end block) (- last (duet-section-beg section))
          (duet-section-block section) nil)
    (when (and (< (duet-block-place block (duet-block-body block)) last)
               (eq (duet-block-kind block) 'code))
      ;; Its colours are looked at again when it is.
      (with-silent-modifications
        (put-text-property (duet-block-place block (duet-block-body block)) last
                           'fontified nil)))))

(defun duet-block--put (beg end block part)
  "Make the lines from BEG to END those of BLOCK, as its PART."
  (when (< beg end)
    (add-text-properties beg end (list 'duet-block block 'duet-part part 'fontified nil))))

(defun duet-block--mark (section beg end)
  "Mark the blocks in the whole lines of SECTION between BEG and END."
  (save-excursion
    (goto-char beg)
    (while (< (point) end)
      (let ((block (duet-section-block section)))
        (pcase (and block (duet-block-kind block))
          ('code (duet-block--code section block end))
          ('table (duet-block--rows section block end))
          (_ (duet-block--search section end)))))))

(defun duet-block--search (section end)
  "Go to what begins a block in SECTION, and behind that line, or to END."
  (if (not (re-search-forward "^[ \t]*\\(```+\\|~~~+\\|[|:-][-:| \t]+$\\)" end t))
      (goto-char end)
    (let ((bol (match-beginning 0))
          (mark (match-beginning 1))
          (sign (match-string-no-properties 1))
          (from (duet-section-beg section)))
      (goto-char bol)
      (let ((eol (line-end-position)))
        (cond
         ((duet-block-broken-p bol))
         ((memq (aref sign 0) '(?` ?~))
          (let ((words (string-trim (buffer-substring-no-properties
                                     (+ mark (length sign)) eol))))
            ;; Backquotes behind it make it code within a line.
            (unless (and (eq (aref sign 0) ?`) (string-search "`" words))
              (let ((block (make-duet-block
                            :section section :kind 'code :fence sign
                            :indent (- mark bol)
                            :beg (- bol from)
                            :body (- (min (1+ eol) (point-max)) from)
                            :language (and (string-match "\\`{?\\.?\\([^ \t{},:]+\\)" words)
                                           (downcase (match-string 1 words))))))
                (setf (duet-section-block section) block)
                (duet-block--put bol (min (1+ eol) end) block 'open)))))
         ((and (> bol from) (string-search "|" sign))
          (duet-block--table section bol eol end)))
        (goto-char (min end (1+ eol)))))))

(defun duet-block--code (section block end)
  "Mark the code of BLOCK of SECTION from point to its end, or END."
  (let ((from (point))
        (fence (duet-block-fence block))
        (closed nil))
    (while (and (not closed)
                (re-search-forward "^[ \t]*\\(```+\\|~~~+\\)[ \t]*$" end t))
      (let ((sign (match-string-no-properties 1))
            (bol (match-beginning 0)))
        (when (and (eq (aref sign 0) (aref fence 0))
                   (>= (length sign) (length fence))
                   (not (duet-block-broken-p bol)))
          (setq closed t)
          (duet-block--put from bol block 'code)
          (goto-char (min end (1+ (point))))
          (duet-block--put bol (point) block 'close)
          (setf (duet-section-block section) nil
                (duet-block-end block) (- bol (duet-section-beg section)))
          ;; What was coloured as it came is looked at as a whole.
          (put-text-property (min bol (duet-block-place block (duet-block-body block)))
                             bol 'fontified nil))))
    (unless closed
      (duet-block--put from end block 'code)
      (goto-char end))))


;;; Tables

(defun duet-block-cells (bol eol)
  "Return the cells of the row of a table from BOL to EOL, (BEG . END) each.
They are what is between two bars, with the space around it."
  (save-excursion
    (goto-char bol)
    (skip-chars-forward " \t" eol)
    (when (eq (char-after) ?|) (forward-char))
    (let ((start (point))
          (cells '()))
      (while (< (point) eol)
        (skip-chars-forward "^|\\\\" eol)
        (cond
         ((>= (point) eol))
         ((eq (char-after) ?\\) (goto-char (min eol (+ 2 (point)))))
         (t (push (cons start (point)) cells)
            (forward-char)
            (setq start (point)))))
      (unless (string-blank-p (buffer-substring-no-properties start eol))
        (push (cons start eol) cells))
      (nreverse cells))))

(defun duet-block--columns (bol eol)
  "Return how the rule of a table from BOL to EOL aligns its columns, a list.
Return nil if it is none."
  (catch 'none
    (mapcar (lambda (cell)
              (let ((text (string-trim (buffer-substring-no-properties (car cell) (cdr cell)))))
                (unless (string-match-p "\\`:?-+:?\\'" text)
                  (throw 'none nil))
                (pcase (cons (string-prefix-p ":" text) (string-suffix-p ":" text))
                  ('(t . t) 'center)
                  ('(nil . t) 'right)
                  (_ 'left))))
            (duet-block-cells bol eol))))

(defun duet-block--table (section bol eol end)
  "Begin a table of SECTION if the line from BOL to EOL is a rule below names.
Lines are known up to END."
  (when-let ((columns (duet-block--columns bol eol)))
    (save-excursion
      (goto-char bol)
      (forward-line -1)
      (let* ((head (point))
             (from (duet-section-beg section))
             (cells (duet-block-cells head (line-end-position))))
        (when (and (>= head from)
                   (not (get-text-property head 'duet-block))
                   (not (duet-block-broken-p head))
                   (length= cells (length columns))
                   (string-search "|" (buffer-substring-no-properties
                                       head (line-end-position))))
          (let ((block (make-duet-block :section section :kind 'table :columns columns
                                        :beg (- head from)
                                        :body (- (min (1+ eol) (point-max)) from))))
            (setf (duet-section-block section) block)
            (duet-block--put head bol block 'head)
            (duet-block--put bol (min (1+ eol) end) block 'rule)))))))

(defun duet-block--rows (section block end)
  "Mark the rows of BLOCK of SECTION from point on, up to END."
  (let ((from (point)))
    (while (and (< (point) end)
                (not (looking-at "[ \t]*\\(?:$\\|```\\|~~~\\|#\\{1,6\\} \\|>\\)"))
                (not (duet-block-broken-p (point)))
                (save-excursion (search-forward "|" (line-end-position) t)))
      (forward-line 1)
      (when (> (point) end) (goto-char end)))
    (let ((last (point)))
      (duet-block--put from last block 'row)
      (when (< last end)
        (setf (duet-block-end block) (- last (duet-section-beg section))
              (duet-section-block section) nil)))))

(provide 'duet-block)
;;; duet-block.el ends here
