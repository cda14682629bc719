;;; duet-code.el --- Colours of code in what agents say  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A block of code that is in sight gets the colours of its language's major mode
;; in a hidden buffer, some lines at a time.  What agents write is not trusted:
;; only modes that come with Emacs are used, none of their hooks is run, no file's
;; variables are heeded, and what is long or takes long stays without colours.
;;
;; The code that is still being written has colours too, line by line.  Once it is
;; whole it is looked at as a whole, so that how it came makes no difference.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-block)
(require 'duet-log)

(defconst duet-code--most 20000
  "How many characters at the beginning of a block have colours.")
(defconst duet-code--line 1000
  "How long a line may be; where one is longer the block has no colours.")
(defconst duet-code--step 25
  "How many lines get their colours at once.")
(defvar duet-code--patience 0.5
  "How many seconds of Emacs's own time some lines may take.
Else the rest of the block has no colours.")

(defconst duet-code--modes
  '((python-mode "python" "py" "python3" "pycon" "starlark")
    (sh-mode "sh" "bash" "shell" "zsh" "ksh" "shell-script")
    (emacs-lisp-mode "elisp" "emacs-lisp" "el")
    (lisp-mode "lisp" "common-lisp" "clojure" "clj")
    (scheme-mode "scheme" "racket")
    (js-mode "js" "javascript" "jsx" "json" "jsonc" "json5" "mjs" "node")
    (c-mode "c" "h")
    (c++-mode "c++" "cpp" "cc" "cxx" "hpp")
    (java-mode "java")
    (css-mode "css" "scss" "less")
    (sgml-mode "html" "xml" "svg" "vue" "svelte" "htm" "xhtml")
    (sql-mode "sql" "sqlite" "postgresql" "mysql")
    (ruby-mode "ruby" "rb")
    (perl-mode "perl" "pl")
    (tcl-mode "tcl")
    (pascal-mode "pascal" "delphi")
    (fortran-mode "fortran" "f90")
    (m4-mode "m4")
    (makefile-gmake-mode "make" "makefile" "gmake")
    (diff-mode "diff" "patch" "udiff")
    (conf-toml-mode "toml")
    (conf-unix-mode "ini" "conf" "cfg" "properties" "dotenv" "env" "systemd")
    (conf-colon-mode "yaml" "yml")
    (lua-mode "lua")
    (csharp-mode "csharp" "cs" "c#")
    (duet-code-mode "go" "golang" "rust" "rs" "typescript" "ts" "tsx" "kotlin" "kt"
                    "swift" "scala" "dart" "zig" "php" "proto" "protobuf" "groovy"
                    "csharp" "cs" "c#"))
  "Major modes and the languages that they are for.
The first that comes with this Emacs is taken.")

(defconst duet-code--keywords
  '("abstract" "as" "async" "await" "break" "case" "catch" "chan" "class" "const"
    "continue" "crate" "declare" "default" "defer" "do" "dyn" "else" "enum" "export"
    "extends" "extern" "fallthrough" "finally" "fn" "for" "foreach" "from" "fun" "func"
    "function" "go" "goto" "guard" "if" "impl" "implements" "import" "in" "interface"
    "internal" "let" "loop" "map" "match" "message" "mod" "module" "move" "mut"
    "namespace" "new" "object" "of" "override" "package" "private" "protected" "pub"
    "public" "range" "readonly" "ref" "return" "sealed" "select" "static" "struct"
    "super" "switch" "this" "throw" "trait" "try" "type" "typeof" "unsafe" "use"
    "using" "val" "var" "virtual" "void" "when" "where" "while" "yield")
  "Words that many languages that look like C have.")

(defvar duet-code-mode-syntax-table
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?/ ". 124b" table)
    (modify-syntax-entry ?* ". 23" table)
    (modify-syntax-entry ?\n "> b" table)
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?` "\"" table)
    (modify-syntax-entry ?\\ "\\" table)
    (modify-syntax-entry ?_ "_" table)
    table)
  "Syntax of languages that look like C.")

(define-derived-mode duet-code-mode fundamental-mode "Code"
  "Major mode for the colours of code in a language that looks like C.
It is for hidden buffers."
  (setq font-lock-defaults
        `(((,(regexp-opt duet-code--keywords 'symbols) . font-lock-keyword-face)
           ("\\_<\\(?:true\\|false\\|nil\\|null\\|None\\|Some\\|undefined\\|self\\|iota\\)\\_>"
            . font-lock-constant-face)
           ("\\_<\\(?:func\\|fn\\|fun\\|function\\)[ \t]+\\(?:([^()\n]*)[ \t]*\\)?\\(\\(?:\\sw\\|\\s_\\)+\\)"
            1 font-lock-function-name-face)
           ("\\_<\\(?:type\\|struct\\|class\\|interface\\|enum\\|trait\\|impl\\|message\\)[ \t]+\\(\\(?:\\sw\\|\\s_\\)+\\)"
            1 font-lock-type-face)
           ;; A character, where there is no lifetime and no apostrophe.
           ("'\\(?:[^'\\\n]\\|\\\\[^\n']+\\)'" . font-lock-string-face)))))

(defvar duet-code--known (make-hash-table :test #'equal)
  "The modes of languages, or `none'.")

(defun duet-code--ours-p (mode)
  "Return non-nil if MODE came with Emacs, or is that of this file."
  (or (eq mode 'duet-code-mode)
      (and (fboundp mode)
           (let* ((file (symbol-file mode 'defun))
                  (file (and file (if (file-name-absolute-p file) file
                                    (locate-library file))))
                  (simple (locate-library "simple")))
             (and file simple
                  (string-prefix-p (file-name-directory (expand-file-name simple))
                                   (expand-file-name file)))))))

(defun duet-code-mode-of (language)
  "Return the major mode that LANGUAGE gets its colours from, or nil."
  (let ((mode (and language
                   (or (gethash language duet-code--known)
                       (puthash language
                                (or (cl-loop for (mode . names) in duet-code--modes
                                             when (and (member language names)
                                                       (duet-code--ours-p mode))
                                             return mode)
                                    'none)
                                duet-code--known)))))
    (and (not (eq mode 'none)) mode)))


;;; Hidden buffers

(defvar-local duet-code--block nil
  "The block whose code a hidden buffer has.")
(defvar-local duet-code--whole nil
  "Whether it has all of that.")

(defun duet-code--name (mode)
  "Return the name of the hidden buffer whose major mode is MODE."
  (format " *duet code: %s*" mode))

(defconst duet-code--quiet 0.2
  "For how many seconds no key was pressed when a major mode is loaded.")

(defun duet-code--ready-p (block)
  "Return non-nil if BLOCK can get its colours now, and nobody is kept waiting.
To load a major mode takes longer than all else here."
  (or noninteractive
      (let ((mode (duet-code-mode-of (duet-block-language block))))
        (or (null mode) (get-buffer (duet-code--name mode))))
      (let ((idle (current-idle-time)))
        (and idle (>= (float-time idle) duet-code--quiet)))))

(defun duet-code--show-again (message)
  "Show MESSAGE in the echo area, unless the echo area shows it."
  (unless (or (null message) (equal message (current-message)))
    (let ((message-log-max nil))
      (message "%s" message))))

(defun duet-code--hidden (mode)
  "Return the hidden buffer whose major mode is MODE; nil if there is none.
The echo area keeps its message: to load a mode erases it."
  (let ((name (duet-code--name mode)))
    (or (get-buffer name)
        (let ((buffer (get-buffer-create name))
              (message (current-message)))
          (with-current-buffer buffer
            (setq default-directory temporary-file-directory
                  buffer-undo-list t)
            (condition-case err
                (let ((enable-local-variables nil)
                      (enable-dir-local-variables nil)
                      (change-major-mode-hook nil))
                  ;; They are delayed for ever.
                  (unwind-protect (let ((inhibit-message t))
                                    (delay-mode-hooks (funcall mode)))
                    (duet-code--show-again message))
                  (setq-local inhibit-read-only t)
                  (when (boundp 'untrusted-content)
                    (set (make-local-variable 'untrusted-content) t))
                  (font-lock-set-defaults)
                  buffer)
              (error
               (duet-log "%s: %s" mode (error-message-string err))
               (kill-buffer buffer)
               nil)))))))

;;; Work

(defvar-local duet-code--queue nil
  "Blocks that wait for their colours, the first first.")

(defun duet-code-wants-p (block)
  "Return non-nil if BLOCK is to get colours that it does not have."
  (and (not (eq (duet-block-colors block) 'done))
       (duet-code-mode-of (duet-block-language block))
       t))

(defvar-local duet-code--timer nil
  "The timer that gives blocks their colours.")

(defun duet-code-queue (block)
  "Have BLOCK get its colours soon."
  (unless (memq block duet-code--queue)
    (setq duet-code--queue (append duet-code--queue (list block))))
  (duet-code--soon))

(defconst duet-code--slice 0.008
  "How many seconds blocks get their colours before Emacs may do other things.")

(defun duet-code--soon (&optional delay)
  "Have the blocks that wait get their colours in DELAY seconds, or 0.02."
  (unless duet-code--timer
    (setq duet-code--timer
          (run-at-time (or delay 0.02) nil
                       (lambda (buffer)
                         (when (buffer-live-p buffer)
                           (with-current-buffer buffer
                             (setq duet-code--timer nil)
                             (when (duet-code-work (+ (float-time) duet-code--slice))
                               (duet-code--soon)))))
                       (current-buffer)))))

(defvar-local duet-code-wanted-function nil
  "Function that says whether what is between two places is looked at, or nil.")

(defun duet-code--wanted-p (block)
  "Return non-nil if somebody looks at BLOCK."
  (or (null duet-code-wanted-function)
      (null (marker-buffer (duet-section-beg (duet-block-section block))))
      (funcall duet-code-wanted-function (duet-block-place block (duet-block-beg block))
               (duet-block-limit block))))

(defun duet-code--put-off (block)
  "Have BLOCK, which nobody looks at, wait until somebody does; return nil."
  (let ((beg (duet-block-place block (duet-block-body block)))
        (limit (min (point-max) (duet-block-limit block))))
    (when (< beg limit)
      (with-silent-modifications
        (put-text-property beg limit 'fontified nil)))
    nil))

(defun duet-code-work (end)
  "Give blocks that wait their colours, until the time END at most.
Return non-nil if some wait yet; not if they wait for keys to be pressed
no more: they go on by themselves."
  (while (and duet-code--queue (< (float-time) end)
              (duet-code--ready-p (car duet-code--queue)))
    (let ((block (car duet-code--queue)))
      (unless (condition-case err
                  (if (duet-code--wanted-p block) (duet-code--work block)
                    (duet-code--put-off block))
                (error (duet-log "Colours of code: %s" (error-message-string err))
                       (setf (duet-block-colors block) 'done)
                       nil))
        (pop duet-code--queue))))
  (cond
   ((null duet-code--queue) nil)
   ((duet-code--ready-p (car duet-code--queue)) t)
   (t (duet-code--soon duet-code--quiet) nil)))

(defun duet-code--work (block)
  "Give some lines of BLOCK their colours; return non-nil if there are more."
  (let* ((section (duet-block-section block))
         (start (and (marker-buffer (duet-section-beg section))
                     (duet-block-place block (duet-block-body block))))
         (whole (and (duet-block-end block) t))
         (limit (and start (duet-block-limit block)))
         (mode (duet-code-mode-of (duet-block-language block)))
         (hidden (and start (< start limit) (<= limit (point-max))
                      (eq (duet-block-at start) block)
                      (duet-code-wants-p block)
                      (duet-code--hidden mode))))
    (when hidden
      (when (> (- limit start) duet-code--most)
        (setq whole t
              limit (save-excursion
                      (goto-char (+ start duet-code--most))
                      (line-beginning-position))))
      (duet-code--fill hidden block whole start limit)
      (duet-code--some hidden block start))))

(defun duet-code--fill (hidden block whole start limit)
  "Make HIDDEN have the code of BLOCK from START to LIMIT, WHOLE or not."
  (let ((transcript (current-buffer)))
    (with-current-buffer hidden
      (unless (and (eq duet-code--block block) (eq duet-code--whole whole)
                   (duet-block-colors block))
        (erase-buffer)
        (setf duet-code--block block
              duet-code--whole whole
              (duet-block-colors block) 0))
      (when (< (buffer-size) (- limit start))
        (goto-char (point-max))
        (insert-buffer-substring-no-properties
         transcript (+ start (buffer-size)) limit)))))

(defun duet-code--some (hidden block start)
  "Take some lines' colours from HIDDEN for BLOCK, whose code begins at START.
Return non-nil if there are more."
  (let ((runs '())
        (began (float-time (get-internal-run-time)))
        beg end more done)
    (with-current-buffer hidden
      (setq beg (+ (point-min) (duet-block-colors block)))
      (goto-char beg)
      (forward-line duet-code--step)
      (setq end (point)
            more (not (eobp)))
      (goto-char beg)
      (while (< (point) end)
        (if (> (- (line-end-position) (point)) duet-code--line)
            (setq end (point) more nil)
          (forward-line 1)))
      (setq done (and duet-code--whole (not more)))
      (when (< beg end)
        (save-match-data (font-lock-fontify-region beg end))
        (let ((place beg))
          (while (< place end)
            (let ((next (min end (next-single-property-change place 'face nil end)))
                  (face (get-text-property place 'face)))
              (push (list (1- place) (1- next) face) runs)
              (setq place next))))))
    (when (> (- (float-time (get-internal-run-time)) began) duet-code--patience)
      (setq more nil done t))
    (with-silent-modifications
      (pcase-dolist (`(,from ,to ,face) runs)
        (add-text-properties (+ start from) (+ start to)
                             (list 'duet-colored t
                                   'face (duet-code--face face)))))
    (setf (duet-block-colors block) (if done 'done (1- end)))
    more))

(defun duet-code--face (face)
  "Return FACE, as a major mode has it, for code in a transcript."
  (cond ((null face) 'duet-code-block)
        ((and (consp face) (not (keywordp (car face)))) (append face '(duet-code-block)))
        (t (list face 'duet-code-block))))

(provide 'duet-code)
;;; duet-code.el ends here
