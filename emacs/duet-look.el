;;; duet-look.el --- Faces, and the signs of states  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The common look of all views: the faces, and the sign and words for each state.  On
;; a terminal that cannot show a sign, another sign replaces it.

;;; Code:

(require 'duet-protocol)
(require 'cl-lib)
(require 'subr-x)

(defgroup duet-faces nil
  "Faces of Duet."
  :group 'duet
  :group 'faces)

(defface duet-prompt '((t :inherit (minibuffer-prompt bold) :extend t))
  "Prompts of the user.")
(defface duet-heading '((t :inherit bold))
  "The first line of a section.")
;; The faces of Emacs for these are too pale on white.  The colours here have a
;; contrast of 4.5 there, and on the grey of a header line.
(defface duet-dim
  '((((class color) (min-colors 88) (background light)) :foreground "gray35")
    (t :inherit shadow))
  "Text of less importance.")
(defface duet-thinking '((t :inherit (duet-dim italic)))
  "Thoughts of the agent.")
(defface duet-code
  '((((background dark)) :inherit fixed-pitch :foreground "PaleGreen2")
    (t :inherit fixed-pitch :foreground "#1f6b42"))
  "Code.")
(defface duet-code-block
  ;; A terminal may have another background than Emacs assumes.
  '((((type graphic) (background light)) :inherit fixed-pitch :background "#f5f5f5" :extend t)
    (((type graphic) (background dark)) :inherit fixed-pitch :background "#1f2328" :extend t)
    (t :inherit fixed-pitch))
  "Code in a block.")
(defface duet-button
  '((((type graphic) (background light))
     :foreground "black" :background "#e5e5e5" :box (:line-width -1 :style released-button))
    (((type graphic) (background dark))
     :foreground "white" :background "#404040" :box (:line-width -1 :style released-button))
    (((class color) (min-colors 88) (background light)) :foreground "black" :background "#dadada")
    (((class color) (min-colors 88)) :foreground "white" :background "#444444")
    (t :inherit link))
  "Buttons that answer a question.")
(defface duet-table '((t :inherit fixed-pitch))
  "A table in a message of an agent.")
(defface duet-markup-heading '((t :inherit font-lock-function-name-face :weight bold))
  "A heading in a message of an agent.")
(defface duet-markup-title '((t :inherit duet-markup-heading :underline t))
  "A heading of the first level in a message of an agent.")
(defface duet-quote '((t :inherit (duet-dim italic)))
  "Quotations in a message of an agent.")
(defface duet-struck '((t :inherit duet-dim :strike-through t))
  "Struck text in a message of an agent.")
(defface duet-running
  '((((class color) (min-colors 88) (background light)) :weight bold :foreground "#8f4e00")
    (t :inherit warning))
  "A running turn or tool.")
(defface duet-waiting '((t :inherit (duet-running bold)))
  "A turn or a tool that waits for the user.")
(defface duet-attention
  ;; It sets a background, since a mode line or a header line may have any.
  '((((class color) (min-colors 88))
     :foreground "black" :background "orange" :inverse-video nil :weight bold)
    ;; Bold black is grey on terminals with so few colours.
    (((class color)) :foreground "black" :background "yellow" :inverse-video nil)
    (t :inverse-video nil :underline t :weight bold))
  "Open questions, in the mode line and the header line.")
(defface duet-done
  '((((class color) (min-colors 88) (background light)) :weight bold :foreground "#1a6b1a")
    (t :inherit success))
  "Success.")
(defface duet-failed
  '((((class color) (min-colors 88) (background light)) :weight bold :foreground "#b30000")
    (t :inherit error))
  "Failure.")
(defface duet-added
  '((((class color) (min-colors 88) (background light)) :foreground "#1a6b1a")
    (((class color) (min-colors 88) (background dark)) :foreground "#7ee787")
    (t :inherit diff-indicator-added))
  "The number of added lines.")
(defface duet-removed
  '((((class color) (min-colors 88) (background light)) :foreground "#b30000")
    (((class color) (min-colors 88) (background dark)) :foreground "#ff8787")
    (t :inherit diff-indicator-removed))
  "The number of removed lines.")

(defconst duet-look--states
  '((draft "○" duet-dim) (queued "○" duet-dim) (pending "○" duet-dim)
    (starting "◐" duet-running) (running "◐" duet-running)
    (in_progress "◐" duet-running) (interrupting "◐" duet-running)
    (waiting_input "?" duet-waiting)
    (completed "●" duet-done) (discarded "✗" duet-dim)
    (failed "✗" duet-failed) (timed_out "✗" duet-failed)
    (interrupted "■" duet-dim) (cancelled "■" duet-dim))
  "States with their icons and faces.")

(defconst duet-look--plain
  '(("○" . "o") ("◐" . "~") ("●" . "*") ("✗" . "x") ("■" . "#") ("·" . "-")
    ("❯" . ">") ("✻" . "*") ("✓" . "x") ("▸" . ">") ("±" . "+") ("−" . "-")
    ("⊘" . "!") ("•" . "*") ("│" . "|") ("─" . "-") ("┼" . "+") ("├" . "+") ("┤" . "+")
    ("☑" . "x") ("☐" . "o"))
  "Replacements for signs that a terminal may be unable to show.")

(defun duet-look-sign (sign)
  "Return SIGN, one character, or its replacement on this terminal."
  (if (char-displayable-p (aref sign 0))
      sign
    (or (cdr (assoc sign duet-look--plain)) sign)))

(defun duet-look-signed (sign face)
  "Return SIGN, one character, and a space in FACE."
  (propertize (concat (duet-look-sign sign) " ") 'face face))

(defun duet-look-state (state)
  "Return an icon for STATE, a symbol."
  (pcase-let ((`(,icon ,face) (or (alist-get state duet-look--states)
                                  '("·" duet-dim))))
    (propertize (duet-look-sign icon) 'face face 'help-echo (duet-look-state-name state))))

(defun duet-look-state-name (state)
  "Return the words for STATE, a symbol, with a face."
  (propertize (or (alist-get state duet-protocol-state-words)
                  (replace-regexp-in-string "_" " " (symbol-name state)))
              'face (or (nth 1 (alist-get state duet-look--states)) 'duet-dim)))

(defun duet-look-state-header (state)
  "Return an icon and the words for STATE, with a face for the header line."
  (let ((text (concat (duet-look-state state) " " (duet-look-state-name state))))
    (pcase (nth 1 (alist-get state duet-look--states))
      ('duet-waiting (propertize text 'face 'duet-attention))
      ;; The colour of this face is for the background of text.
      ('duet-running (propertize text 'face 'bold))
      (_ text))))

(defun duet-look-on-line (text)
  "Return TEXT with only the faces that are readable in a header line.
A terminal may show a light header line on a dark background, where colours
for text would be unreadable."
  (if (display-graphic-p) text
    (let ((text (copy-sequence text))
          (place 0))
      (while (< place (length text))
        (let ((next (next-single-property-change place 'face text (length text)))
              (face (get-text-property place 'face text)))
          (unless (memq face '(nil duet-attention))
            (put-text-property place next 'face (unless (eq face 'duet-dim) 'bold) text))
          (setq place next)))
      text)))

(defun duet-look-key (command map)
  "Return the key that calls COMMAND at point, or else the way by its name.
A key of COMMAND in MAP, a symbol, comes first.  Text at point, such as a
reply box, and a minor mode, such as Evil, may give it another key there."
  (cl-flet ((works (keymap)
              (cl-find-if (lambda (key)
                            (and (not (memq (aref key 0) '(menu-bar tool-bar tab-bar)))
                                 (eq (key-binding key) command)))
                          (delq nil (cons (where-is-internal command (list keymap) t)
                                          (where-is-internal command (list keymap)))))))
    (if-let ((key (or (and (boundp map) (works (symbol-value map)))
                      (seq-some #'works (current-active-maps t)))))
        (propertize (key-description key) 'face 'help-key-binding
                    'font-lock-face 'help-key-binding)
      (format "M-x %s" command))))

(provide 'duet-look)
;;; duet-look.el ends here
