;;; duet-render-text.el --- The text of messages, in parts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What views of messages are made of: lines that are not too long, what is there
;; to be seen and is not copied, what a click folds, the beginning of what is long,
;; names of files.

;;; Code:

(require 'subr-x)
(require 'duet-look)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-visible)

(declare-function duet-whole-show "duet-transcript-visit" ())

(defcustom duet-render-lines 200
  "How many lines of a tool's result or of a diff are shown."
  :type 'natnum
  :group 'duet)

(defconst duet-render--characters 20000
  "How many characters of a tool's result or of a diff are shown.")

(defun duet-render-prose (text &optional column)
  "Return TEXT, what somebody says, which begins in COLUMN, to be inserted."
  (duet-render-wrap (duet-visible-prose text) column))

(defconst duet-render-line-length 5000
  "How many characters a line has at most.
Emacs before version 29 can hardly show a line that is much longer.  The
ends of lines that are added have the text property `duet-show': they are
not copied.")

(defun duet-render-wrap (text &optional column indent)
  "Return TEXT, which begins in COLUMN, with lines that are too long broken.
What follows a break is indented by INDENT, a string that is shown only.
It makes no difference whether a text is broken whole or piece by piece."
  (let ((column (or column 0))
        (length (length text))
        (start 0)
        (newline -1)
        (parts '()))
    (if (not (duet-render--long-p text column))
        text
      (while (< start length)
        (when (and newline (< newline start))
          (setq newline (string-search "\n" text start)))
        (let ((end (or newline length))
              (room (- duet-render-line-length column)))
          (if (> (- end start) room)
              (progn
                (push (substring text start (+ start room)) parts)
                (push (propertize (concat "\n" indent) 'duet-show t) parts)
                (setq start (+ start room)
                      column 0))
            (push (substring text start (min length (1+ end))) parts)
            (setq column (if newline 0 (+ column (- end start)))
                  start (1+ end)))))
      (apply #'concat (nreverse parts)))))

(defun duet-render--long-p (text column)
  "Return non-nil if TEXT, which begins in COLUMN, has a line that is too long."
  (let ((length (length text))
        (start (- column)))
    (while (and start (< (+ start duet-render-line-length) length))
      ;; A newline in reach makes it none; the last in reach would be best.
      (let ((next (string-search "\n" text (max 0 start))))
        (setq start (and next (<= (- next start) duet-render-line-length) (1+ next)))))
    (null start)))

(defun duet-render-wrap-diff (text)
  "Return TEXT, a diff, with lines that are too long broken.
No part of a line may look like a line of the diff."
  (duet-render-wrap text nil "  "))

(defun duet-render--foldable (text)
  "Return TEXT, the beginning of a section, as something that a click folds."
  (propertize text 'mouse-face 'highlight 'duet-fold t
              'help-echo "mouse-1, TAB: fold or unfold"))

(defun duet-render--shown (text)
  "Return TEXT as something that is there to be seen, and is not copied."
  (propertize text 'duet-show t))

(defconst duet-render--path 4096
  "How many characters the name of a file has at most.
To make a longer one relative to a directory takes quadratic time.")

(defun duet-render-file (path &optional root line)
  "Return PATH as text that `duet-transcript-visit' can visit, at LINE.
It is shown relative to ROOT where it is inside."
  (let ((shown (cond ((length> path duet-render--path)
                      (concat (substring path 0 duet-render--path) "…"))
                     ((and root (duet-remote-inside path root)))
                     (t (duet-remote-abbreviate path)))))
    (propertize (string-replace "\n" "\\n" shown) 'duet-file path 'duet-line line
                'mouse-face 'highlight 'help-echo "mouse-1, RET: visit this file")))

(defun duet-render--rest (message indent)
  "Return the line, with INDENT, that says that MESSAGE is not all here, or nil."
  (when (duet-message-cut message)
    (concat "\n" indent
            (propertize (if (eq (duet-message-cut message) 'loading) "… the rest is being loaded"
                          "… cut: the rest is not loaded yet")
                        'face 'link 'mouse-face 'highlight
                        'duet-action #'duet-whole-show 'duet-rest message
                        'help-echo "RET, mouse-1: load all of it"))))

(defun duet-render--cut (text face indent &optional message)
  "Return the beginning of TEXT in FACE, with INDENT, and how much is left out.
If TEXT is the result of MESSAGE, the rest of it may not be loaded yet."
  (let* ((cut (> (length text) duet-render--characters))
         (part (if cut (substring text 0 duet-render--characters) text))
         (lines (split-string part "\n"))
         (left (nthcdr duet-render-lines lines)))
    (when left (setq lines (butlast lines (length left))))
    (concat
     (mapconcat (lambda (line)
                 (let ((line (copy-sequence line)))
                   (when face (add-face-text-property 0 (length line) face t line))
                   (concat (duet-render--shown indent) (duet-render-wrap line nil indent))))
                lines "\n")
     (if (or cut left)
         (concat "\n" indent
                 (propertize (format (if (and message (duet-message-cut message))
                                         "… more than %d characters"
                                       "… %d characters in all")
                                     (length text))
                             'face 'link 'mouse-face 'highlight
                             'duet-action #'duet-whole-show 'duet-whole text 'duet-rest message
                             'help-echo "RET, mouse-1: show all of it"))
       ""))))

(provide 'duet-render-text)
;;; duet-render-text.el ends here
