;;; duet-inline.el --- Markup inside a paragraph, and links  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; This file finds code spans, emphasis, links and escapes of CommonMark in a part of
;; a buffer.  `duet-inline-parse' changes nothing: it returns the markup, and the
;; characters that only mark it.
;;
;; A mark of unclear meaning stays visible: file names such as *.el, src/**/x and
;; a_b_c keep theirs.  A link keeps its target visible if its text shows another one.
;; A letter next to Chinese, Japanese or Korean text counts as a letter next to a space,
;; since these scripts have no spaces.

;;; Code:

(require 'cl-lib)
(require 'url-parse)
(require 'duet-visible)

;;; Markup

(defconst duet-inline--most 200
  "Maximum number of open runs of marks in a paragraph.")

(defconst duet-inline--marks "*_~"
  "Characters for emphasis.")

(defun duet-inline-parse (beg end)
  "Return the markup between BEG and END, a list of (BEG END KIND VALUE).
KIND is `hide' for a mark, or `face' for text with the face VALUE.  It is
`code' for the text of a code span, or `link' for the text of a link to
VALUE."
  (save-excursion
    (let ((case-fold-search nil)
          (stops (concat "^`\\\\[<" duet-inline--marks))
          (missing '())                 ; lengths of backquotes without a closing run
          (found '())
          (openers '()))
      ;; Few texts have an address, but many have an h.
      (goto-char beg)
      (when (search-forward "://" end t)
        (setq stops (concat stops "h")))
      (goto-char beg)
      (while (progn (skip-chars-forward stops end) (< (point) end))
        (let ((start (point))
              (char (char-after)))
          (pcase char
            (?`
             (skip-chars-forward "`" end)
             (let* ((length (- (point) start))
                    (close (and (not (memq length missing))
                                (duet-inline--backquotes length end))))
               (if close
                   (setq found (nconc (duet-inline--code start length close) found))
                 (push length missing)
                 (goto-char (+ start length)))))
            (?\\
             (forward-char)
             (when (< (point) end)
               ;; A path of Windows keeps its backslashes.
               (when (memq (char-after) '(?* ?_ ?` ?\[ ?\] ?# ?| ?~ ?< ?>))
                 (push (list start (point) 'hide nil) found))
               (forward-char)))
            (?\[
             (let ((link (duet-inline--link start end)))
               (if link
                   (setq found (nconc link found))
                 (forward-char))))
            (?<
             (setq found (nconc (duet-inline--angle start end) found)))
            (?h
             (if (and (looking-at "https?://")
                      (or (duet-inline--dense-p (char-before))
                          (not (memq (char-syntax (or (char-before) ?\s)) '(?w ?_)))))
                 (let ((last (duet-link-url-end start end)))
                   (push (list start last 'link
                               (buffer-substring-no-properties start last))
                         found)
                   (goto-char last))
               (forward-char)))
            (_
             (skip-chars-forward (string char) end)
             (let* ((run (duet-inline--run char start (point) beg end))
                    (closed (duet-inline--close run openers)))
               (setq found (nconc (cdr closed) found)
                     openers (car closed)))))))
      found)))


;;;; Code, links, tags

(defun duet-inline--backquotes (length end)
  "Return the beginning of the next run of LENGTH backquotes before END, or nil.
Leave point after the run."
  (let ((place nil))
    (while (and (not place) (search-forward "`" end t))
      (let ((start (1- (point))))
        (skip-chars-forward "`" end)
        (when (= (- (point) start) length)
          (setq place start))))
    place))

(defun duet-inline--code (start length close)
  "Return the markup of a code span from START on, with marks of LENGTH.
Its closing marks begin at CLOSE."
  (let ((beg (+ start length))
        (end close))
    ;; One space on each side separates a backquote from the marks.
    (when (and (> (- end beg) 2)
               (eq (char-after beg) ?\s) (eq (char-before end) ?\s)
               (progn (goto-char beg)
                      (skip-chars-forward " " end)
                      (< (point) end)))
      (setq beg (1+ beg)
            end (1- end)))
    (goto-char (+ close length))
    (list (list start beg 'hide nil)
          (list beg end 'code nil)
          (list end (+ close length) 'hide nil))))

(defun duet-inline--link (start end)
  "Return the markup of the link whose bracket is at START, before END.
Leave point after it.  Return nil if there is none."
  (let* ((image (eq (char-before start) ?!))
         (close (duet-inline--bracket start end))
         (target (and close
                      (progn (goto-char (1+ close))
                             (looking-at "(<?\\([^][()<> \t\n`]+\\(?:([^][()<> \t\n`]*)[^][()<> \t\n`]*\\)?\\)>?)"))
                      (<= (match-end 0) end)
                      (match-string-no-properties 1)))
         (last (and target (match-end 0)))
         (place (and target (cons (match-beginning 1) (match-end 1)))))
    (goto-char start)
    (when (and target (> close (1+ start)) (duet-link-target-p target))
      (prog1
          (if (or image
                  (not (duet-link-honest-p
                        (buffer-substring-no-properties (1+ start) close) target)))
              (list (list (car place) (cdr place) 'link target))
            (nconc (list (list start (1+ start) 'hide nil)
                         (list (1+ start) close 'link target)
                         (list close last 'hide nil))
                   ;; A link contains no other link.
                   (cl-remove 'link (duet-inline-parse (1+ start) close) :key #'caddr)))
        (goto-char last)))))

(defun duet-inline--bracket (start end)
  "Return the position that closes the bracket at START, on its line before END."
  (save-excursion
    (goto-char (1+ start))
    (let ((depth 1)
          (end (min end (line-end-position)))
          (place nil))
      (while (and (> depth 0) (< depth 4) (not place))
        (skip-chars-forward "^][\\\\" end)
        (cond
         ((>= (point) end) (setq depth 0))
         ((eq (char-after) ?\\) (goto-char (min end (+ 2 (point)))))
         ((eq (char-after) ?\[) (setq depth (1+ depth)) (forward-char))
         ((= depth 1) (setq place (point)))
         (t (setq depth (1- depth)) (forward-char))))
      place)))

(defun duet-inline--angle (start end)
  "Return the markup of an address or a tag in angle brackets at START.
It ends before END.  Leave point after it, or after the bracket."
  (cond
   ((and (looking-at "<\\(https?://[^<> \t\n]+\\)>") (<= (match-end 0) end))
    (goto-char (match-end 0))
    (list (list start (match-beginning 1) 'hide nil)
          (list (match-beginning 1) (match-end 1) 'link (match-string-no-properties 1))
          (list (match-end 1) (match-end 0) 'hide nil)))
   ((and (looking-at "<\\(?:/?[A-Za-z][^<>\n]*\\|!--[^<>\n]*--\\)>") (<= (match-end 0) end)
         ;; Vec<u8> has no tag.
         (or (eq (char-after (1+ start)) ?/)
             (not (memq (char-syntax (or (char-before start) ?\s)) '(?w ?_)))))
    (goto-char (match-end 0))
    (list (list start (point) 'face 'duet-dim)))
   (t (forward-char)
      nil)))


;;;; Emphasis

(cl-defstruct (duet-inline--run (:copier nil) (:constructor duet-inline--make-run))
  "A run of one mark of emphasis."
  char beg end length opens closes)

(defun duet-inline--space-p (char)
  "Return non-nil if CHAR, which may be nil, is a space."
  (or (null char)
      (memq char '(?\s ?\t ?\n #xa0 #x3000))))

(defun duet-inline--punctuation-p (char)
  "Return non-nil if CHAR is neither a space nor part of a word."
  (cond ((null char) nil)
        ;; Most characters are ASCII, and a look-up takes long.
        ((< char 128) (not (or (<= char ?\s) (<= ?0 char ?9) (= char 127)
                               (<= ?A char ?Z) (<= ?a char ?z))))
        (t (memq (get-char-code-property char 'general-category)
                 '(Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So)))))

(defun duet-inline--dense-p (char)
  "Return non-nil if CHAR belongs to a script without spaces."
  (and char (or (<= #x2e80 char #xd7ff) (<= #xf900 char #xfaff)
                (<= #xff00 char #xffef) (<= #x20000 char #x3fffd))))

(defun duet-inline--run (char start last beg end)
  "Return the run of CHAR from START to LAST, in a text from BEG to END."
  (let* ((before (and (> start beg) (char-before start)))
         (after (and (< last end) (char-after last)))
         (length (- last start))
         (space-before (duet-inline--space-p before))
         (space-after (duet-inline--space-p after))
         (mark-before (duet-inline--punctuation-p before))
         (mark-after (duet-inline--punctuation-p after))
         (left (and (not space-after)
                    (or (not mark-after) space-before mark-before
                        (duet-inline--dense-p before))))
         (right (and (not space-before)
                     (or (not mark-before) space-after mark-after
                         (duet-inline--dense-p after))))
         (word-before (not (or space-before mark-before (duet-inline--dense-p before))))
         (word-after (not (or space-after mark-after (duet-inline--dense-p after)))))
    (duet-inline--make-run
     :char char :beg start :end last :length length
     :opens
     (and left
          (pcase char
            (?_ (or (not right) mark-before))
            (?~ (= length 2))
            ;; Not the beginning of a path, or a pattern in it.
            (_ (not (or (memq after '(?. ?/ ?\\ ?\)))
                        (memq before '(?/ ?\\ ?.))
                        (and (= length 1) word-before word-after)))))
          t)
     :closes
     (and right
          (pcase char
            (?_ (or (not left) mark-after))
            (?~ (= length 2))
            (_ (not (or (memq before '(?/ ?\\ ?\())
                        (eq after ?/)
                        (and (eq after ?.)
                             (< (1+ last) end)
                             (memq (char-syntax (char-after (1+ last))) '(?w ?_ ?.)))
                        (and (= length 1) word-before word-after)))))
          t))))

(defun duet-inline--close (run openers)
  "Match RUN with OPENERS, the last first.
Return (OPENERS . FOUND): the remaining openers, and the new markup."
  (let ((found '())
        (char (duet-inline--run-char run))
        (searching (duet-inline--run-closes run)))
    (while (and searching (> (duet-inline--run-length run) 0))
      (let ((rest (cl-member-if (lambda (opener) (duet-inline--fits-p opener run)) openers)))
        (if (null rest)
            (setq searching nil)
          (let* ((opener (car rest))
                 (size (if (or (eq char ?~)
                               (and (> (duet-inline--run-length run) 1)
                                    (> (duet-inline--run-length opener) 1)))
                           2 1))
                 (from (duet-inline--run-end opener))
                 (to (duet-inline--run-beg run)))
            (push (list (- from size) from 'hide nil) found)
            (push (list to (+ to size) 'hide nil) found)
            (push (list from to 'face (cond ((eq char ?~) 'duet-struck)
                                            ((= size 2) 'bold)
                                            (t 'italic)))
                  found)
            (cl-decf (duet-inline--run-end opener) size)
            (cl-decf (duet-inline--run-length opener) size)
            (cl-incf (duet-inline--run-beg run) size)
            (cl-decf (duet-inline--run-length run) size)
            ;; Openers between the two can no longer be closed.
            (setq openers (if (zerop (duet-inline--run-length opener)) (cdr rest) rest))))))
    (when (and (duet-inline--run-opens run) (> (duet-inline--run-length run) 0)
               (length< openers duet-inline--most))
      (push run openers))
    (cons openers found)))

(defun duet-inline--name-p (opener closer)
  "Return non-nil if the text from OPENER to CLOSER may be a name: __init__."
  (and (eq (duet-inline--run-char opener) ?_)
       (> (duet-inline--run-length opener) 1)
       (save-excursion
         (goto-char (duet-inline--run-end opener))
         (skip-chars-forward "A-Za-z0-9_" (duet-inline--run-beg closer))
         (= (point) (duet-inline--run-beg closer)))))

(defun duet-inline--fits-p (opener closer)
  "Return non-nil if CLOSER closes OPENER, an earlier run."
  (and (not (duet-inline--name-p opener closer))
       (eq (duet-inline--run-char opener) (duet-inline--run-char closer))
       ;; CommonMark's rule of three: "**a*b**" does not emphasize "a*b*".
       (or (not (or (duet-inline--run-closes opener) (duet-inline--run-opens closer)))
           (/= 0 (% (+ (duet-inline--run-length opener) (duet-inline--run-length closer)) 3))
           (and (zerop (% (duet-inline--run-length opener) 3))
                (zerop (% (duet-inline--run-length closer) 3))))))

;;; Links

;; A link leads to a page of the web or to a file of the project.  Its text comes
;; from an agent, or from a page that the agent has read.  So the user sees its target
;; before it is opened: in the echo area, and in a question if the text of the link is
;; not its address.  Only RET or a click opens a link.

(defconst duet-link--longest 2000
  "Maximum length of the name of a file or of the text of a link.")

(defconst duet-link--file
  (concat "\\(?:\\.\\{0,2\\}/\\)?[[:alnum:]_@][-+@~._[:alnum:]]*\\(?:/[-+@~._[:alnum:]]+\\)*")
  "Regexp for the name of a file in prose.")

(defconst duet-link--line
  "\\(?::\\([0-9]+\\)\\(?:[:-][0-9]+\\)*\\|#L\\([0-9]+\\)\\(?:-L?[0-9]+\\)?\\)?"
  "Regexp for a line number after the name of a file.")

(defun duet-link-target-p (target)
  "Return non-nil if TARGET of a link can be followed."
  (or (string-match-p "\\`https?://[^/]" target)
      (not (string-match-p "\\`[[:alpha:]][-+.[:alnum:]]*:[^0-9]\\|\\`[#?]\\|\\`/\\'\\|\\`//" target))))

(defun duet-link-web-p (target)
  "Return non-nil if TARGET is a page of the web."
  (string-match-p "\\`https?://" target))

(defun duet-link--host (address)
  "Return the host of ADDRESS, a page of the web."
  (downcase (or (ignore-errors (url-host (url-generic-parse-url address))) "")))

(defun duet-link-honest-p (text target)
  "Return non-nil if TEXT of a link to TARGET shows no other target."
  (let ((case-fold-search t)
        (text (replace-regexp-in-string "[*_`~\\]" "" text)))
    (cond
     ;; No address is that long, and the regexps below take quadratic time.
     ((length> text duet-link--longest) nil)
     ((string-match "[a-z]+://[^ ]*" text)
      (string-prefix-p (downcase (match-string 0 text)) (downcase target)))
     ((and (duet-link-web-p target)
           (string-match "\\(?:[-[:alnum:]]+\\.\\)+[[:alpha:]]\\{2,\\}" text))
      ;; It looks like a host or a file.
      (let ((named (downcase (match-string 0 text)))
            (host (duet-link--host target)))
        (or (equal named host)
            (string-suffix-p (concat "." named) host)
            (string-suffix-p (concat "/" named) (downcase (car (split-string target "[?#]")))))))
     (t t))))

(defun duet-link-url-end (start end)
  "Return the end of the address that begins at START, before END."
  (save-excursion
    (goto-char start)
    (skip-chars-forward "^ \t\n<>\"`|，。；：！？、）」』”’" end)
    (let ((moving t))
      (while moving
        (skip-chars-backward ".,:;!?*_~'\\\\" start)
        (pcase (char-before)
          ((and close (or ?\) ?\]))
           (let ((open (if (eq close ?\)) "(" "["))
                 (text (buffer-substring-no-properties start (point))))
             (if (> (cl-count close text) (cl-count (aref open 0) text))
                 (backward-char)
               (setq moving nil))))
          (_ (setq moving nil)))))
    (point)))


;;;; Files of the project

(defun duet-link--path (name)
  "Return the absolute name of the file NAME; nil if it is outside of the project.
The project is that of the current buffer.  Do not access the disk."
  (unless (or (file-remote-p default-directory) (string-prefix-p "~" name))
    (let* ((file-name-handler-alist nil)
           (root (expand-file-name (file-name-as-directory default-directory)))
           (file (expand-file-name name root)))
      (and (string-prefix-p root file)
           (not (string= root file))
           file))))

(defun duet-link-file (target)
  "Return the file of the project and the line in TARGET: (FILE . LINE).
Return nil if there is no such file.  LINE may be nil."
  (when (and (length< target duet-link--longest)
             (string-match (concat "\\`\\(.*?\\)" duet-link--line "\\'") target))
    (let ((line (or (match-string 2 target) (match-string 3 target)))
          (file (duet-link--path (match-string 1 target))))
      (when (and file
                 (let ((file-name-handler-alist nil)) (file-regular-p file)))
        (cons file (and line (string-to-number line)))))))

(defun duet-link-references (beg end)
  "Return the references to files of the project between BEG and END.
Each is (BEG END TARGET); a target looks like src/main.go:12."
  (save-excursion
    (goto-char beg)
    (let ((case-fold-search nil)
          (found '())
          (name (concat "\\(" duet-link--file "\\)" duet-link--line)))
      ;; Each reference has a dot or a slash.
      (while (and (< (point) end)
                  (progn (skip-chars-forward "^./" end) (< (point) end)))
        (let ((next (1+ (point))))
          (skip-chars-backward "-+@~._/[:alnum:]" (max beg (- (point) 200)))
          (when (and (looking-at name) (<= (match-beginning 0) end))
            (let* ((start (point))
                   (last (min end (match-end 0)))
                   (text (buffer-substring-no-properties start last)))
              (when (and (string-match "[^.]\\(\\.+\\)\\'" text))
                ;; A full stop ends a sentence.
                (setq last (- last (length (match-string 1 text)))
                      text (buffer-substring-no-properties start last)))
              (when (and (string-match-p "[./]." text) (duet-link-file text))
                (push (list start last text) found))
              (setq next (max next last))))
          (goto-char (min end next))))
      found)))


;;;; Following links

(defun duet-link-words (target)
  "Return TARGET for display: the address, or the name of the file."
  (duet-visible-line target))

(defun duet-link-help (window object place)
  "Return the help for the link at PLACE of OBJECT; WINDOW is ignored."
  (ignore window)
  (let ((target (get-text-property place 'duet-link
                                   (if (bufferp object) object (current-buffer)))))
    (and target (concat (duet-link-words target) "\nmouse-1, RET: follow this link"))))

(defun duet-link-at-point ()
  "Return the target of the link at point, or nil."
  (get-text-property (point) 'duet-link))

(defun duet-link--says-p (target)
  "Return non-nil if the text of the link at point is TARGET itself."
  (let ((beg (previous-single-property-change (1+ (point)) 'duet-link nil (point-min)))
        (end (next-single-property-change (point) 'duet-link nil (point-max))))
    (string= (buffer-substring-no-properties beg end) target)))

(defun duet-link-browse (url)
  "Open URL, from an agent or a project, in a browser.
Open only addresses of the web: `browse-url' runs programs for others, such
as ssh for file:///ssh:host:/x, and man for man:x."
  (unless (duet-link-web-p url)
    (user-error "Only http and https addresses are opened, not %s" (duet-link-words url)))
  (browse-url url))

(defun duet-link-follow (target)
  "Open TARGET of the link at point.
Ask first if it is a page and the text of the link is not its address."
  (if (duet-link-web-p target)
      (if (or (duet-link--says-p target)
              (y-or-n-p (format "Open %s? " (duet-link-words target))))
          (duet-link-browse target)
        (message "Not opened"))
    (let ((place (duet-link-file target)))
      (unless place
        (user-error "The project has no file %s" (duet-link-words target)))
      (unless (file-in-directory-p (car place) default-directory)
        (user-error "%s is outside the project" (duet-link-words target)))
      (find-file-other-window (car place))
      (when (cdr place)
        (goto-char (point-min))
        (forward-line (1- (cdr place)))))))

(provide 'duet-inline)
;;; duet-inline.el ends here
