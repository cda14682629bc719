;;; duet-markup.el --- Markdown in what agents say  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The faces of markup are given to a line when it gets into sight, by jit-lock:
;; a conversation of megabytes costs no more than the page that is read.  What
;; is being written gets them before it is drawn: a quit that happens while Emacs
;; draws is dropped if a Lisp function is called there, so that of many a
;; \\`C-g' none would come of one in ten.
;;
;; Whether a line is code depends on all lines before it.  So each whole line is
;; looked at once, when it comes, for whether it is a fence; `duet-fenced' marks
;; the lines of a block.

;;; Code:

(require 'subr-x)
(require 'jit-lock)
(require 'duet-model)
(require 'duet-section)
(require 'duet-render)

(defconst duet-markup--slice 200000
  "How many characters are looked at for fences at once.")

(defun duet-markup-setup ()
  "Give the markup of the current buffer its faces as it gets into sight."
  (jit-lock-register #'duet-markup--fontify))


;;; Blocks of code

(defun duet-markup-scan (section)
  "Look for blocks of code in some of SECTION that was not looked at yet.
Return non-nil if there is more to look at."
  (let* ((start (or (duet-section-rendered section)
                    (setf (duet-section-rendered section)
                          (copy-marker (duet-section-beg section)))))
         (last (marker-position (duet-section-end section)))
         ;; The last line may not be whole.
         (known (if (duet-message-open (duet-section-object section))
                    (save-excursion (goto-char last) (line-beginning-position))
                  last))
         (end (if (<= (- known start) duet-markup--slice)
                  known
                (save-excursion
                  (goto-char (+ start duet-markup--slice))
                  (line-beginning-position)))))
    (when (> end start)
      (with-silent-modifications
        (setf (duet-section-fence section)
              (duet-markup--fences (marker-position start) end
                                   (duet-section-fence section))))
      (set-marker start end)
      (< end known))))

(defun duet-markup--fences (beg end fence)
  "Mark the blocks of code between BEG and END.
FENCE is what opened the block that BEG is in, or nil.  Return that of
the one that END is in."
  (save-excursion
    (goto-char beg)
    (let ((from (and fence beg))
          (changed fence))
      (while (re-search-forward "^[ \t]*\\(```+\\|~~~+\\)\\(.*\\)$" end t)
        (let ((sign (match-string-no-properties 1))
              (line (match-beginning 0)))
          (setq changed t)
          (cond
           ((null fence)
            ;; Backquotes behind it make it code within a line.
            (unless (and (eq (aref sign 0) ?`) (string-search "`" (match-string 2)))
              (put-text-property line (point) 'duet-fenced 'fence)
              (setq fence sign
                    from (min end (1+ (point))))))
           ((and (eq (aref sign 0) (aref fence 0))
                 (>= (length sign) (length fence))
                 (string-blank-p (match-string 2)))
            (put-text-property from line 'duet-fenced 'code)
            (put-text-property line (point) 'duet-fenced 'fence)
            (setq fence nil)))))
      (when fence
        (put-text-property from end 'duet-fenced 'code))
      (when changed
        ;; It may be in sight, as what it is not.
        (put-text-property beg end 'fontified nil))
      fence)))


;;; Faces

(defconst duet-markup--page 20000
  "How many characters a window shows at most.")

(defun duet-markup-in-sight ()
  "Give faces to what windows show of the buffer, or will when they follow its end.
To be called where nothing quits, such as in a timer."
  (dolist (window (get-buffer-window-list nil nil 'visible))
    (let ((start (window-start window))
          (last (max (point-min) (- (point-max) duet-markup--page))))
      (jit-lock-fontify-now start (min (point-max) (+ start duet-markup--page)))
      (when (> (window-point window) last)
        (jit-lock-fontify-now last (point-max))))))

(defconst duet-markup--inline
  '(("`\\([^`\n]+\\)`" . duet-code)
    ("\\*\\*\\([^*\n]+\\)\\*\\*" . bold)
    ("\\_<__\\([^_\n]+\\)__\\_>" . bold)
    ("\\(?:^\\|[^*[:alnum:]]\\)\\(\\*[^* \n][^*\n]*\\*\\)" . italic)
    ("\\b\\(https?://[^][()<>\"'` \t\n]*[^][()<>\"'` \t\n.,:;!?*_]\\)" . link)
    ("\\[[^]\n]+\\](\\([^) \n]+\\))" . link))
  "Patterns inside a line and the faces of their first groups.")

(defun duet-markup--fontify (beg end)
  "Give faces to the lines between BEG and END, as jit-lock asks for it."
  (save-excursion
    (goto-char beg)
    (setq beg (line-beginning-position))
    (goto-char beg)
    (while (< (point) end)
      (let* ((section (get-text-property (point) 'duet-section))
             (message (and section (duet-section-object section)))
             (eol (line-end-position)))
        (when (and (duet-message-p message) (eq (duet-message-kind message) 'text))
          (duet-markup--line (point) eol section))
        (goto-char eol)
        (forward-line 1)))
    `(jit-lock-bounds ,beg . ,(max end (point)))))

(defun duet-markup--line (bol eol section)
  "Give faces to the line from BOL to EOL, of SECTION."
  (remove-list-of-text-properties bol eol '(face mouse-face help-echo))
  (pcase (if (< bol (or (duet-section-rendered section) (duet-section-beg section)))
             (get-text-property bol 'duet-fenced)
           ;; What is not whole is what is before it.
           (and (duet-section-fence section) 'code))
    ('fence (put-text-property bol eol 'face 'duet-dim))
    ('code (put-text-property bol eol 'face 'duet-code))
    ((guard (looking-at "#\\{1,6\\} "))
     (put-text-property bol eol 'face 'duet-markup-heading))
    (_
     (when (looking-at "[ \t]*\\([-*+]\\|[0-9]+[.)]\\) ")
       (add-face-text-property (match-beginning 1) (match-end 1) 'duet-heading))
     (when (looking-at "[ \t]*> ?")
       (add-face-text-property bol eol 'duet-dim))
     ;; No one writes markup into a line as long as that.
     (when (< (- eol bol) duet-render-line-length)
       (pcase-dolist (`(,pattern . ,face) duet-markup--inline)
         (goto-char bol)
         (while (re-search-forward pattern eol t)
           (add-face-text-property (match-beginning 1) (match-end 1) face)
           (when (eq face 'link)
             (add-text-properties (match-beginning 1) (match-end 1)
                                  '(mouse-face highlight
                                    help-echo "mouse-1, RET: follow this link")))))))))

(provide 'duet-markup)
;;; duet-markup.el ends here
