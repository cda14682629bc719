;;; duet-markup.el --- Markdown of agents  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Text of an agent is shown as Markdown: marks are hidden, and text has faces.  The
;; text itself is unchanged, so that copies are Markdown too.
;;
;; jit-lock calls these functions for lines that become visible: a session of
;; megabytes costs no more than the visible page.  New text gets its markup before
;; redisplay.  Emacs drops a quit during redisplay if redisplay calls a Lisp function,
;; so one \\`C-g' of ten would have no effect.  Before all that, a scan finds the blocks
;; of code and tables (duet-block.el).

;;; Code:

(require 'jit-lock)
(require 'subr-x)
(require 'duet-block)
(require 'duet-connection)
(require 'duet-inline)
(require 'duet-look)
(require 'duet-model)
(require 'duet-section)
(require 'duet-table)

;;; Markdown

(defvar duet-prose-marks-hidden nil
  "Non-nil if marks are hidden in the text that is being fontified.")

(defcustom duet-markup t
  "Whether transcripts render Markdown.
If nil, they show its source.  \\<duet-transcript-mode-map>\\[duet-markup-toggle] \
changes that in one transcript."
  :type 'boolean
  :group 'duet)

(defvar-local duet-markup--raw nil
  "Non-nil if the buffer shows the source of Markdown.")

(defun duet-markup-setup ()
  "Render the Markdown in the current buffer as it becomes visible."
  (setq duet-markup--raw (not duet-markup))
  (add-to-invisibility-spec 'duet-markup)
  (setq-local filter-buffer-substring-function #'duet-markup--copied
              duet-code-wanted-function #'duet-markup--in-sight-p)
  (add-hook 'window-size-change-functions #'duet-markup--resized nil t)
  (jit-lock-register #'duet-markup--fontify))

(defun duet-markup--resized (window)
  "Fit tables into the windows of the buffer, one of which is WINDOW."
  (with-current-buffer (window-buffer window)
    (when (duet-table-resized) (jit-lock-refontify))))

(defun duet-markup-toggle ()
  "Switch the transcript between rendered Markdown and its source."
  (interactive (duet-only-in 'duet-transcript-mode) duet-transcript-mode)
  (setq duet-markup--raw (not duet-markup--raw))
  (if duet-markup--raw (remove-from-invisibility-spec 'duet-blank)
    (add-to-invisibility-spec 'duet-blank))
  (jit-lock-refontify)
  (duet-markup-in-sight)
  (message (if duet-markup--raw "Markdown is shown as plain text"
             "Markdown is shown formatted")))


;;;; Copying

(defun duet-markup--copied (beg end &optional delete)
  "Return the source of the text between BEG and END; DELETE it if non-nil.
Leave out text that was only added for display."
  (let ((text (buffer-substring--filter beg end delete)))
    (if (not (text-property-not-all 0 (length text) 'duet-show nil text))
        (substring-no-properties text)
      (let ((place 0)
            (parts '()))
        (while (< place (length text))
          (let ((next (next-single-property-change place 'duet-show text (length text))))
            (unless (get-text-property place 'duet-show text)
              (push (substring-no-properties text place next) parts))
            (setq place next)))
        (apply #'concat (nreverse parts))))))

(defun duet-markup--code-block ()
  "Return the block of code at point, or the last one before it, or nil."
  (let ((place (point))
        (block nil))
    (while (and place (not block))
      (let ((section (get-text-property place 'duet-section)))
        (setq block (and section (duet-block-last section place 'code))
              place (if section (duet-section-beg section) place)
              place (and (> place (point-min)) (1- place)))))
    block))

(defun duet-markup-copy-code ()
  "Copy the block of code at point, or the last one before point."
  (interactive nil duet-transcript-mode)
  (let ((block (duet-markup--code-block)))
    (unless block
      (user-error "No code block here or before"))
    (let* ((text (filter-buffer-substring
                  (duet-block-place block (duet-block-body block))
                  (max (duet-block-place block (duet-block-body block))
                       (duet-block-limit block))))
           ;; A block in a list is indented as a whole.
           (text (if (zerop (duet-block-indent block)) text
                   (replace-regexp-in-string
                    (format "^[ \t]\\{1,%d\\}" (duet-block-indent block)) "" text t t))))
      (kill-new text)
      (message "Copied %d line%s%s" (length (split-string (string-remove-suffix "\n" text) "\n"))
               (if (string-match-p "\n." text) "s" "")
               (if (duet-block-language block)
                   (concat " of " (duet-visible-line (duet-block-language block)))
                 "")))))


;;;; Headings

(defun duet-markup-headings ()
  "Return the headings in agents' messages: (WORDS . PLACE), in order."
  (let ((found '()))
    (save-excursion
      (goto-char (point-min))
      (while (re-search-forward "^#\\{1,6\\} +" nil t)
        (let* ((bol (match-beginning 0))
               (beg (point))
               (end (progn (end-of-line) (skip-chars-backward " #" beg) (point))))
          (when (and (< beg end)
                     (duet-prose-section-at bol)
                     (not (duet-block-at bol)))
            (push (cons (duet-markup--plain beg end) bol)
                  found))
          (goto-char end)
          (end-of-line))))
    (nreverse found)))

(defun duet-markup--plain (beg end)
  "Return the text from BEG to END without its marks."
  (let ((text (buffer-substring-no-properties beg end))
        (hidden (sort (cl-remove 'hide (duet-inline-parse beg end)
                                 :key #'caddr :test-not #'eq)
                      (lambda (a b) (> (car a) (car b))))))
    (pcase-dolist (`(,from ,to) hidden)
      (setq text (concat (substring text 0 (- from beg)) (substring text (- to beg)))))
    (duet-visible-trim text)))


;;;; Visible text

(defconst duet-markup--page 20000
  "Maximum number of characters that a window shows.")

(defun duet-markup--page (window)
  "Return the maximum number of characters in WINDOW, with some hidden ones."
  (min duet-markup--page
       (* 2 (window-body-height window) (1+ (window-body-width window)))))

(defun duet-markup--sight (window)
  "Return the part of the buffer in WINDOW, or soon in it: (BEG . END).
Each line takes at least one line of the screen, except for folded ones."
  (let ((page (duet-markup--page window))
        (lines (1+ (window-body-height window)))
        (start (window-start window)))
    (save-excursion
      ;; A window that follows the end will show the end, not the current text.
      (if (> (window-point window) (- (point-max) page))
          (let ((last (max (point-min) (- (point-max) page))))
            (goto-char (point-max))
            (forward-line (- lines))
            (cons (max last (point)) (point-max)))
        (goto-char start)
        (forward-line lines)
        (cons start (min (point) (+ start page)))))))

(defun duet-markup-in-sight ()
  "Show the markup of the parts in windows, or soon in them at the end.
Call it where nothing quits, such as in a timer."
  (dolist (window (get-buffer-window-list nil nil 'visible))
    (pcase-let ((`(,beg . ,end) (duet-markup--sight window)))
      (jit-lock-fontify-now beg end)
      ;; A row of a table may be wider than those above it.
      (jit-lock-fontify-now beg end))))

(defun duet-markup--in-sight-p (beg end)
  "Return non-nil if a window shows text between BEG and END, or may soon.
Return non-nil, too, if no window shows the buffer."
  (let ((windows (get-buffer-window-list nil nil 'visible)))
    (or (null windows)
        (cl-some (lambda (window)
                   (let ((page (duet-markup--page window)))
                     (or (and (> end (window-start window))
                              (< beg (+ page (window-start window))))
                         (and (> end (- (point-max) page))
                              (> (window-point window) (- (point-max) page))))))
                 windows))))

(defun duet-markup--fontify (beg end)
  "Show the markup of the lines between BEG and END, as a function of jit-lock."
  (let ((asked beg))
    (save-excursion
      (goto-char beg)
      (setq beg (line-beginning-position))
      (goto-char beg)
      (when (duet-prose-section-at beg)
        (duet-prose-back)
        (setq beg (point)))
      (let ((case-fold-search nil)
            (inhibit-field-text-motion t)
            (duet-prose-marks-hidden (not duet-markup--raw)))
        (while (< (point) end)
          (let ((section (duet-prose-section-at (point))))
            (if section
                (setq beg (min beg (duet-markup--show section asked)))
              (let ((next (next-single-property-change (point) 'duet-section nil (point-max))))
                ;; Blank lines after a section belong to it.
                (goto-char (max (1+ (point)) next)))))))
      ;; A timer of jit-lock would later mark all from BEG on as up to date.  The
      ;; scan for blocks may have changed it in between.
      (when (< beg asked)
        (run-at-time 0 nil #'duet-markup--drawn (copy-marker beg) (copy-marker asked)))
      `(jit-lock-bounds ,asked . ,(max end (point))))))

(defun duet-markup--drawn (beg end)
  "Redisplay the text between the markers BEG and END."
  (when (buffer-live-p (marker-buffer beg))
    (with-current-buffer (marker-buffer beg)
      (with-silent-modifications
        (put-text-property beg end 'duet-markup-drawn t)
        (remove-text-properties beg end '(duet-markup-drawn nil)))))
  (set-marker beg nil)
  (set-marker end nil))

(defun duet-markup--show (section asked)
  "Show the markup of the lines at point, of SECTION; go to the line after them.
ASKED is the beginning of the lines that jit-lock asked for.  Return the
beginning of the first changed line."
  (let* ((bol (point))
         (block (duet-block-at bol)))
    (pcase (and block (duet-block-kind block))
      ('code (duet-markup--code block bol)
             bol)
      ('table (duet-markup--table block bol asked))
      ;; The block before it is incomplete.
      ((guard (and (setq block (duet-block-open section))
                   (>= bol (duet-block-known section))
                   (eq (duet-block-kind block) 'code)))
       (duet-markup--code block bol)
       bol)
      (_ (duet-prose-show section bol)
         bol))))

;;;; Blocks

(defun duet-markup--code (block bol)
  "Show the line of BLOCK of code at BOL, and go to the next line."
  (let ((eol (line-end-position)))
    (cond
     ((get-text-property bol 'duet-colored)
      ;; Keep the colours; an incomplete block may get other colours when it ends.
      (when (duet-code-wants-p block) (duet-code-queue block)))
     (t
      (duet-prose-clear bol (min (1+ eol) (duet-section-end (duet-block-section block))))
      (pcase (duet-block-part block bol)
        ((and part (or 'open 'close))
         (skip-chars-forward " \t" eol)
         (let ((beg (point)))
           (skip-chars-forward "`~" eol)
           (put-text-property bol eol 'face 'duet-dim)
         (when (eq part 'open)
           (add-text-properties bol eol '(duet-action duet-markup-copy-code
                                          mouse-face highlight
                                          help-echo "mouse-1, RET: copy this code")))
           (duet-prose-display
            beg (point)
            (concat (make-string 2 (aref (duet-look-sign "─") 0))
                    (if (and (eq part 'open) (< (point) eol)
                             (not (memq (char-after) '(?\s ?\t))))
                        " " "")))))
        (_
         ;; Include the newline, so that the background extends to the window's edge.
         (put-text-property bol (min (1+ eol) (duet-section-end (duet-block-section block)))
                            'face (if (duet-code-mode-of (duet-block-language block))
                                      'duet-code-block
                                    '(duet-code duet-code-block)))
         (when (and (duet-code-wants-p block) (eq (duet-block-at bol) block))
           (duet-code-queue block))))
      (duet-prose-unseen bol eol)))
    (goto-char eol)
    (forward-line 1)))

(defun duet-markup--table (block bol asked)
  "Show the line of BLOCK, a table, at BOL, and go to the next line.
If a column has become wider, show the lines from ASKED on again.  Mark the
lines before it, maybe many, for redisplay when they become visible.
Return the beginning of the first changed line."
  (let* ((grown (and duet-prose-marks-hidden (duet-table-measure block)))
         (first (if grown (duet-block-place block (duet-block-beg block)) bol))
         (last (progn (goto-char bol) (forward-line 1) (point))))
    (when (< first asked)
      (duet-block-anew first (min asked bol)))
    (goto-char (max first (min asked bol)))
    (while (< (point) last)
      (let ((line (point))
            (eol (line-end-position)))
        (duet-prose-clear line (min (1+ eol)
                                      (duet-section-end (duet-block-section block))))
        (if duet-prose-marks-hidden
            (duet-table-line block (duet-block-part block line) line eol
                             #'duet-prose-apply #'duet-prose-hide)
          (add-face-text-property line eol 'duet-table))
        (duet-prose-unseen line eol)
        (goto-char line)
        (forward-line 1)))
    first))

;;; Paragraphs

;; The kind of a line (a heading, an item, a quotation or text) and the bounds of a
;; paragraph depend only on nearby lines.  So a page is shown without a look at
;; distant text.  This part also sets the faces of text, and hides marks.

(defconst duet-prose--lines 30
  "Maximum number of lines of a paragraph with markup across lines.")

(defconst duet-prose--characters 8000
  "Maximum number of characters of such a paragraph.")

(defconst duet-prose-properties
  '(face mouse-face help-echo invisible display wrap-prefix duet-link duet-action)
  "Text properties to remove before lines get new ones.")

(defun duet-prose-section-at (place)
  "Return the section at PLACE if it is text of an agent, else nil."
  (let* ((section (get-text-property place 'duet-section))
         (message (and section (duet-section-object section))))
    (and (duet-message-p message) (eq (duet-message-kind message) 'text)
         (< place (duet-section-end section))
         section)))

;;;; Faces

(defun duet-prose-clear (beg end)
  "Remove the earlier markup of the text from BEG to END."
  (remove-list-of-text-properties beg end duet-prose-properties))

(defun duet-prose-unseen (beg end)
  "Give the visible forms of unseen characters from BEG to END their face."
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
  "Display the text from BEG to END as TEXT, if marks are hidden."
  (when (and duet-prose-marks-hidden (< beg end))
    (put-text-property beg end 'display text)))

(defun duet-prose--inline (beg end)
  "Show the markup of the text from BEG to END."
  (when (< beg end)
    (duet-prose-apply (duet-inline-parse beg end))
    (duet-prose--references beg end)))

(defun duet-prose-apply (found)
  "Show FOUND, the result of `duet-inline-parse'."
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
  "Make references to files in the text from BEG to END links."
  (pcase-dolist (`(,from ,to ,target) (duet-link-references beg end))
    (unless (or (text-property-not-all from to 'duet-link nil)
                (text-property-not-all from to 'invisible nil))
      (duet-prose--link from to target))))

;;;; Kinds of lines

(defconst duet-prose--item "[ \t]*\\([-*+]\\|[0-9]\\{1,9\\}[.)]\\)\\(?:[ \t]+\\|$\\)"
  "Regexp for the beginning of an item of a list.")

(defun duet-prose--kind (bol section)
  "Return the kind of the line at BOL of SECTION, a symbol.
A `text' line may continue the line before."
  (goto-char bol)
  (let ((whole (or (not (duet-message-open (duet-section-object section)))
                   (< (line-end-position) (duet-section-end section)))))
    (cond
     ((duet-block-at bol) 'block)
     ;; Lines that long have no markup.
     ((or (duet-block-broken-p bol)
          (get-text-property (min (line-end-position) (1- (point-max))) 'duet-show))
      'long)
     (t
      ;; Emacs 28 caches 20 regexps, so a character decides for most lines.
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
  "Return non-nil if the line before BOL, in SECTION, is a single line of text."
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
It is code if it follows a blank line, and no list."
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

;;;; Paragraphs

(defun duet-prose-back ()
  "Go to the beginning of the paragraph that contains the line at point.
Include lines that belonged to it while it was incomplete.  Go back no
further than the maximum length of a paragraph."
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
  "Show the markup of the paragraph or line of SECTION at BOL.
Go to the line after it."
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
      ;; Each line on its own.
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
  "Return non-nil if the line at BOL of SECTION continues a paragraph."
  (save-excursion
    (and (> bol (duet-section-beg section))
         (eq (duet-prose--kind bol section) 'text)
         (progn (goto-char bol)
                (forward-line -1)
                (memq (duet-prose--kind (point) section) '(text item))))))

(defun duet-prose--line (section kind bol eol)
  "Show the markup from BOL to EOL of SECTION: a line or a paragraph of KIND."
  ;; Clear the newline, too: it may have been inside of a paragraph.
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
       ;; Some headings end with marks, too.
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
             ;; The box of a task replaces the sign of the item.
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

(provide 'duet-markup)
;;; duet-markup.el ends here
