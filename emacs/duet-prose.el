;;; duet-prose.el --- Paragraphs in what agents say  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What a line stands for, a heading, an item, a quotation or text, and which
;; lines are one paragraph, tell the lines around it, and no others: so a page is
;; shown without a look at what is far from it.  How text gets its faces, and how
;; marks are hidden, is here too; duet-markup.el shows code and tables by that.

;;; Code:

(require 'subr-x)
(require 'duet-model)
(require 'duet-section)
(require 'duet-look)
(require 'duet-block)
(require 'duet-inline)
(require 'duet-link)

(defconst duet-prose--lines 30
  "How many lines a paragraph has at most for markup to go on from one to the next.")

(defconst duet-prose--characters 8000
  "How many characters it has at most.")

(defconst duet-prose-properties
  '(face mouse-face help-echo invisible display wrap-prefix duet-link duet-action)
  "Text properties that are taken away before lines get theirs.")

(defvar duet-prose-marks-hidden nil
  "Whether the marks of what is being shown are hidden.")

(defun duet-prose-section-at (place)
  "Return the section at PLACE if an agent says it, else nil."
  (let* ((section (get-text-property place 'duet-section))
         (message (and section (duet-section-object section))))
    (and (duet-message-p message) (eq (duet-message-kind message) 'text)
         (< place (duet-section-end section))
         section)))


;;; How text looks

(defun duet-prose-clear (beg end)
  "Take away what the text from BEG to END was given earlier."
  (remove-list-of-text-properties beg end duet-prose-properties))

(defun duet-prose-unseen (beg end)
  "Give unseen characters, as they are written out from BEG to END, their face."
  (let ((place (text-property-any beg end 'duet-unseen t)))
    (while place
      (let ((next (next-single-property-change place 'duet-unseen nil end)))
        (add-face-text-property place next 'duet-unseen)
        (setq place (text-property-any next end 'duet-unseen t))))))

(defun duet-prose-hide (beg end)
  "Hide the marks from BEG to END, if marks are hidden."
  (when (and duet-prose-marks-hidden (< beg end))
    (put-text-property beg end 'invisible 'duet-markup)))

(defun duet-prose-display (beg end text)
  "Display what is from BEG to END as TEXT, if marks are hidden."
  (when (and duet-prose-marks-hidden (< beg end))
    (put-text-property beg end 'display text)))

(defun duet-prose--inline (beg end)
  "Show the markup of the text from BEG to END."
  (when (< beg end)
    (duet-prose-apply (duet-inline-parse beg end))
    (duet-prose--references beg end)))

(defun duet-prose-apply (found)
  "Show FOUND, what `duet-inline-parse' has returned."
  (pcase-dolist (`(,beg ,end ,kind ,value) found)
    (pcase kind
      ('hide (duet-prose-hide beg end))
      ('face (add-face-text-property beg end value))
      ('code (add-face-text-property beg end 'duet-code))
      ('link (duet-prose--link beg end value)))))

(defun duet-prose--link (beg end target)
  "Make the text from BEG to END a link to TARGET."
  (add-face-text-property beg end 'link)
  (add-text-properties beg end (list 'duet-link target
                                     'mouse-face 'highlight
                                     'help-echo #'duet-link-help)))

(defun duet-prose--references (beg end)
  "Make links of the files that the text from BEG to END names."
  (pcase-dolist (`(,from ,to ,target) (duet-link-references beg end))
    (unless (or (text-property-not-all from to 'duet-link nil)
                (text-property-not-all from to 'invisible nil))
      (duet-prose--link from to target))))


;;; What a line stands for

(defconst duet-prose--item "[ \t]*\\([-*+]\\|[0-9]\\{1,9\\}[.)]\\)\\(?:[ \t]+\\|$\\)"
  "Regexp for the beginning of an item of a list.")

(defun duet-prose--kind (bol section)
  "Return what the line at BOL of SECTION is, a symbol.
`text' may go on with the line before."
  (goto-char bol)
  (let ((whole (or (not (duet-message-open (duet-section-object section)))
                   (< (line-end-position) (duet-section-end section)))))
    (cond
     ((duet-block-at bol) 'block)
     ;; No one writes markup into a line as long as that.
     ((or (duet-block-broken-p bol)
          (get-text-property (min (line-end-position) (1- (point-max))) 'duet-show))
      'long)
     (t
      ;; Emacs 28 remembers 20 regexps, so most lines are told by a character.
      (skip-chars-forward " \t")
      (let ((sign (char-after)))
        (prog1
            (progn
              (goto-char bol)
              (cond
               ((memq sign '(nil ?\n)) 'blank)
               ((and (memq (char-after) '(?\s ?\t))
                     (looking-at-p "    \\| \\{0,3\\}\t")
                     (duet-prose--indented-p bol section))
                'indented)
               ((not (memq sign '(?# ?> ?= ?- ?* ?_ ?+ ?0 ?1 ?2 ?3 ?4 ?5 ?6 ?7 ?8 ?9))) 'text)
               ((and (eq sign ?#) (looking-at-p " \\{0,3\\}#\\{1,6\\}\\(?:[ \t]\\|$\\)"))
                'heading)
               ((eq sign ?>) 'quote)
               ((and whole (memq sign '(?= ?-))
                     (looking-at-p " \\{0,3\\}\\(?:=+\\|--+\\)[ \t]*$")
                     (duet-prose--underline-p bol section))
                'underline)
               ((and whole (memq sign '(?- ?* ?_))
                     (looking-at-p
                      " \\{0,3\\}\\([-*_]\\)\\(?:[ \t]*\\1\\)\\{2,\\}[ \t]*$"))
                'rule)
               ((looking-at-p duet-prose--item) 'item)
               (t 'text)))
          (goto-char bol)))))))

(defun duet-prose--underline-p (bol section)
  "Return non-nil if the line before BOL, in SECTION, is one of text, and alone."
  (save-excursion
    (goto-char bol)
    (and (> bol (duet-section-beg section))
         (zerop (forward-line -1))
         (not (duet-block-at))
         (not (looking-at "[ \t]*\\(?:$\\|[-*+>#|]\\|[0-9]+[.)]\\|    \\)"))
         (or (<= (point) (duet-section-beg section))
             (progn (forward-line -1)
                    (or (looking-at "[ \t]*$")
                        (duet-block-at)))))))

(defun duet-prose--indented-p (bol section)
  "Return non-nil if the line at BOL of SECTION, which is indented, is code.
It is where it follows a blank line, and no list."
  (save-excursion
    (save-match-data
      (goto-char bol)
      (let ((from (duet-section-beg section))
            (left 50)
            (blank nil)
            (code nil)
            (searching t))
        (while searching
          (cond
           ((<= (point) from) (setq searching nil code t))
           ((zerop left) (setq searching nil code blank))
           (t
            (forward-line -1)
            (setq left (1- left))
            (cond
             ((looking-at "[ \t]*$") (setq blank t))
             ((looking-at "    \\| \\{0,3\\}\t") (setq blank nil))
             (t (setq searching nil
                      code (and blank
                                (not (looking-at duet-prose--item))
                                (not (memq (char-after) '(?\s ?\t))))))))))
        code))))


;;; Paragraphs

(defun duet-prose-back ()
  "Go to the beginning of the paragraph that the line at point goes on with.
Or went on with, when less of it was known.  Go back no further than a
paragraph may be long."
  (let* ((section (duet-prose-section-at (point)))
         (from (duet-section-beg section))
         (left (1+ duet-prose--lines))
         (bol (point))
         (kind 'text))
    (while (and (eq kind 'text) (> left 0) (> bol from))
      (setq left (1- left))
      (goto-char bol)
      (forward-line -1)
      (let ((before (point)))
        (setq kind (duet-prose--kind before section))
        (when (memq kind '(text item))
          (setq bol before))))
    (goto-char bol)))

(defun duet-prose-show (section bol)
  "Show the markup of the paragraph of SECTION at BOL, and go behind it.
Or that of another line."
  (let* ((kind (duet-prose--kind bol section))
         (end (duet-section-end section))
         (eol (progn (goto-char bol) (min end (line-end-position))))
         (count 1)
         (under nil))
    (when (memq kind '(text item))
      (goto-char eol)
      (while (and (< (point) end) (<= count duet-prose--lines)
                  (progn (forward-line 1) (< (point) end))
                  (pcase (duet-prose--kind (point) section)
                    ('text t)
                    ('underline (setq under (line-beginning-position)) nil)))
        (setq count (1+ count)
              eol (min end (line-end-position)))
        (goto-char eol)))
    (cond
     ((and (> count 1)
           (or (> count duet-prose--lines)
               (> (- eol bol) duet-prose--characters)
               (duet-prose--goes-on-p bol section)))
      ;; Each line for itself.
      (goto-char bol)
      (while (< (point) eol)
        (let ((line (point))
              (last (min end (line-end-position))))
          (duet-prose--line section (duet-prose--kind line section) line last)
          (goto-char last)
          (forward-line 1))))
     (t
      (duet-prose--line section
                         (if under 'heading-text kind)
                         bol eol)
      (goto-char eol)
      (forward-line 1)))))

(defun duet-prose--goes-on-p (bol section)
  "Return non-nil if the line at BOL of SECTION goes on with a paragraph."
  (save-excursion
    (and (> bol (duet-section-beg section))
         (eq (duet-prose--kind bol section) 'text)
         (progn (goto-char bol)
                (forward-line -1)
                (memq (duet-prose--kind (point) section) '(text item))))))

(defun duet-prose--line (section kind bol eol)
  "Show the markup from BOL to EOL of SECTION: a line or a paragraph of KIND."
  ;; The line's end is what is between two lines of a paragraph, or no more.
  (duet-prose-clear bol (min (1+ eol) (duet-section-end section)))
  (goto-char bol)
  (pcase kind
    ('heading
     (looking-at " \\{0,3\\}\\(#\\{1,6\\}\\)[ \t]*")
     (let ((level (- (match-end 1) (match-beginning 1)))
           (beg (min eol (match-end 0)))
           (end eol))
       (duet-prose-hide bol beg)
       (goto-char eol)
       ;; Some close it, too.
       (when (looking-back "[ \t]#+[ \t]*" beg t)
         (setq end (max beg (match-beginning 0)))
         (duet-prose-hide end eol))
       (duet-prose--inline beg end)
       (add-face-text-property bol eol (pcase level
                                         (1 'duet-markup-title)
                                         (2 'duet-markup-heading)
                                         (_ 'bold))
                               t)))
    ('heading-text
     (duet-prose--inline bol eol)
     (add-face-text-property bol eol 'duet-markup-heading t))
    ('underline (put-text-property bol eol 'face 'duet-dim))
    ('rule
     (put-text-property bol eol 'face 'duet-dim)
     (duet-prose-display bol eol (make-string 40 (aref (duet-look-sign "─") 0))))
    ('quote (duet-prose--quote bol eol))
    ('indented (put-text-property bol eol 'face 'duet-code))
    ('item
     (looking-at duet-prose--item)
     (let ((beg (match-beginning 1))
           (end (match-end 1))
           (content (min eol (match-end 0)))
           (task nil))
       (when (memq (char-after beg) '(?- ?* ?+))
         (goto-char content)
         (if-let ((box (and (looking-at "\\[\\([ xX]\\)\\]\\(?:[ \t]+\\|$\\)")
                            (<= (match-end 0) eol)
                            (if (eq (char-after (match-beginning 1)) ?\s) "☐" "☑"))))
             ;; What is done stands where the sign of an item does.
             (let ((text (match-end 0)))
               (duet-prose-display beg end (duet-look-sign box))
               (duet-prose-hide content text)
               (setq task text))
           (duet-prose-display beg end (duet-look-sign "•"))))
       (duet-prose--inline (or task content) eol)
       (add-face-text-property beg end 'duet-heading)
       (put-text-property bol eol 'wrap-prefix
                          (make-string (min 40 (string-width
                                                (buffer-substring-no-properties bol content)))
                                       ?\s))))
    ('text
     (let ((indent (- (progn (skip-chars-forward " \t" eol) (point)) bol)))
       (duet-prose--inline bol eol)
       (when (< 0 indent 40)
         (put-text-property bol eol 'wrap-prefix
                            (buffer-substring-no-properties bol (+ bol indent))))))
    (_))
  (duet-prose-unseen bol eol))

(defun duet-prose--quote (bol eol)
  "Show the line of a quotation from BOL to EOL."
  (goto-char bol)
  (let ((bar (propertize (duet-look-sign "│") 'face 'duet-dim)))
    (while (and (looking-at "[ \t]*>") (< (point) eol))
      (goto-char (match-end 0))
      (duet-prose-display (1- (point)) (point) (copy-sequence bar)))
    (duet-prose--inline (point) eol)
    (add-face-text-property bol eol 'duet-quote t)
    (when duet-prose-marks-hidden
      (put-text-property bol eol 'wrap-prefix (concat bar " ")))))

(provide 'duet-prose)
;;; duet-prose.el ends here
