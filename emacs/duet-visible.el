;;; duet-visible.el --- Invisible characters made visible  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Third-party text may contain control characters, characters that change the
;; direction of the text around them, and invisible ones.  `duet-visible' replaces them
;; with their codes, as ⟨U+202E⟩, in their own face.  It changes the text itself, not
;; its display.  So the text is the same in the minibuffer, the echo area, a header line
;; and a notification.  A copy has the text that the user saw.
;;
;; Letters that look alike are not replaced.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(defface duet-unseen '((t :inherit escape-glyph))
  "The replacement of an invisible character."
  :group 'duet-faces)

(defconst duet-visible--hidden
  (concat
   "\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad" ; controls, soft hyphen
   "\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
   "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
   "\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
   "\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
   "\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe\U0003ffff"
   ;; Tags, selectors, private use; the rest of these planes has no characters.
   "\U00040000-\U0010ffff")
  "Invisible characters, as in the brackets of a regexp.")

(defconst duet-visible--exact
  (concat "[" duet-visible--hidden
          ;; They look like a space, but are different characters.
          "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]"
          ;; A combining mark without a base character.
          "\\|\\(?:^\\|[ \t]\\)\\c^")
  "Regexp for the characters to replace where every character matters.")

(defconst duet-visible--prose
  (concat "\r\n\\|[" duet-visible--hidden "]")
  "Regexp for the characters to replace in prose.")

(defun duet-visible--plain-p (text)
  "Return non-nil if TEXT has only visible ASCII, newlines and tabs.
Most texts do.  The other regexps are so large that their compilation takes
milliseconds, and Emacs caches only 20 regexps."
  (not (string-match-p "[^ -~\n\t]" text)))

(defconst duet-visible--most-faces 1000
  "Maximum number of replacements in one text that have a face.
Each makes an interval of text properties, and each garbage collection visits
all intervals.  Without a limit the time would be quadratic.")

(defvar duet-visible--format nil
  "The format of a replaced character, during `duet-visible--replace'.")

(defun duet-visible--replace (regexp function text)
  "Return TEXT with each match of REGEXP replaced by the value of FUNCTION.
FUNCTION gets the match, the character before it, or 0, and the one behind it,
or nil.  This works in a buffer: a search in a string takes quadratic time,
since Emacs counts the bytes of a string from its start."
  (with-temp-buffer
    (let ((inhibit-read-only t)
          ;; Most of the objects become garbage at once.
          (gc-cons-threshold (max gc-cons-threshold (* 64 1024 1024)))
          (count 0)
          (duet-visible--format (if (char-displayable-p ?⟨) "⟨U+%04X⟩" "<U+%04X>"))
          ;; The last character of the last match, and the end of its replacement.
          (last nil))
      (insert text)
      (goto-char (point-min))
      (while (re-search-forward regexp nil t)
        (let* ((beg (match-beginning 0))
               (match (buffer-substring beg (point)))
               (before (if (and last (= beg (cdr last))) (car last) (or (char-before beg) 0)))
               (new (funcall function match before (char-after))))
          (delete-region beg (point))
          (if (> (cl-incf count) duet-visible--most-faces)
              (insert (substring-no-properties new))
            (insert new))
          (setq last (cons (aref match (1- (length match))) (point)))))
      ;; JSON is a unibyte string in Emacs 30.
      (if (multibyte-string-p text) (buffer-string)
        (condition-case nil (string-to-unibyte (buffer-string))
          (error (buffer-string)))))))

(defun duet-visible (text)
  "Return TEXT with its invisible characters replaced by their codes.
Use this for text of decisions: commands, files, changes, questions."
  ;; With `case-fold-search' the regexps take three times as long to compile.
  (let ((case-fold-search nil))
    (if (and (not (duet-visible--plain-p text))
             (string-match-p duet-visible--exact text))
        (duet-visible--replace duet-visible--exact
                               (lambda (match &rest _) (duet-visible--written match))
                               text)
      text)))

(defun duet-visible-prose (text)
  "Return TEXT, prose, with most of its invisible characters replaced.
Joiners and selectors stay if emoji and languages need them."
  (let ((case-fold-search nil))
    (if (or (duet-visible--plain-p text)
            (not (string-match-p duet-visible--prose text)))
        text
      (duet-visible--replace
       duet-visible--prose
       (lambda (match before after)
         (cond ((= (length match) 2) (substring match 1)) ; a line's end
               ((duet-visible--belongs-p (aref match 0) before after) match)
               (t (duet-visible--written match))))
       text))))

(defun duet-visible--belongs-p (char before after)
  "Return non-nil if CHAR is needed between the characters BEFORE and AFTER.
AFTER is nil at the end, where any character may follow in the next piece."
  (cl-flet ((pictured-p (char) (memq (get-char-code-property char 'general-category)
                                     '(So Sk Sm)))
            ;; From Arabic to Khmer, including Persian and the languages of India.
            (joining-p (char) (<= #x600 char #x1cff)))
    (pcase char
      ((or #xfe0e #xfe0f)
       (or (pictured-p before) (memq before '(?0 ?1 ?2 ?3 ?4 ?5 ?6 ?7 ?8 ?9 ?# ?*
                                                 #x203c #x2049 #x3030 #x303d))))
      (#x200d (or (and (or (pictured-p before) (= before #xfe0f))
                       (or (null after) (pictured-p after)))
                  (and (joining-p before) (or (null after) (joining-p after)))))
      (#x200c (and (joining-p before) (or (null after) (joining-p after)))))))

(defun duet-visible--written (text)
  "Return the code of TEXT, a character or a mark behind a space, in its face."
  (let* ((last (1- (length text)))
         (written (apply #'propertize (format duet-visible--format (aref text last))
                         (text-properties-at last text))))
    (add-face-text-property 0 (length written) 'duet-unseen nil written)
    (put-text-property 0 (length written) 'duet-unseen t written)
    (concat (substring text 0 last) written)))

(defun duet-visible-trim (text)
  "Return TEXT without the white space at its ends.
`string-trim' takes quadratic time if long white space precedes a word."
  (let ((beg (or (string-match-p "[^ \t\n\r]" text) (length text)))
        (end (length text)))
    (while (and (> end beg) (memq (aref text (1- end)) '(?\s ?\t ?\n ?\r)))
      (setq end (1- end)))
    (substring text beg end)))

(defun duet-visible-line (text)
  "Return TEXT on one line, with its invisible characters replaced."
  (duet-visible (duet-visible-trim (replace-regexp-in-string "[ \t\r\n]+" " " text))))

(defun duet-visible-json (text)
  "Return TEXT, JSON, with the invisible characters in its strings escaped.
The value stays the same, and the user can edit the text."
  (let ((case-fold-search nil))
    (duet-visible--replace
     duet-visible--exact
     (lambda (match &rest _)
       (let* ((last (1- (length match)))
              (char (aref match last)))
         (concat (substring match 0 last)
                 (if (< char #x10000)
                     (format "\\u%04x" char)
                   (format "\\u%04x\\u%04x" (+ #xd7c0 (ash char -10))
                           (+ #xdc00 (logand char #x3ff)))))))
     text)))

(provide 'duet-visible)
;;; duet-visible.el ends here
