;;; duet-block.el --- Blocks of code and tables, and the colours of code  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Whether a line is code, or a row of a table, depends on all lines before it.  So
;; each complete line is scanned once, and a vector of numbers keeps the bounds of the
;; blocks.  A session of megabytes has tens of thousands of blocks.  As objects or
;; text properties they would slow down each garbage collection.  A `duet-block' is
;; made only of a visible block.
;;
;; Positions in a block are offsets from the beginning of its section.  Insertions
;; before the section do not change them.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-log)
(require 'duet-model)
(require 'duet-section)

;;; Blocks

(defconst duet-block--slice 20000
  "Maximum number of characters that `duet-block-scan' scans at a time.")

(cl-defstruct (duet-block (:copier nil))
  "A block of code or a table."
  (section nil :documentation "Its section.")
  (kind nil :documentation "`code' or `table'.")
  (beg 0 :documentation "The beginning of its first line, the fence or the column names.")
  (body 0 :documentation "The beginning of its first line of code, or of its first row.")
  (end nil :documentation "The end of its code or its last row; nil if the block is open.")
  (indent 0 :documentation "The indentation of the fence.")
  (language nil :documentation "The first word after the fence, or nil.")
  (colors nil :documentation "The progress of its colours, see `duet-code-work'.")
  (columns nil :documentation "The alignments of a table's columns, a list.")
  (widths nil :documentation "The widths of the columns, a vector; see duet-table.el.")
  (measured nil :documentation "The end of the measured rows."))

(cl-defstruct (duet-block--list (:copier nil))
  "The positions of the blocks of a section."
  (scanned 0 :documentation "The end of the scanned lines of the section.")
  (rows (make-vector 16 nil) :documentation "Four elements for each ended block, in order.
They are its beginning and end, as in a `duet-block', the beginning of the
line after it, and its kind.")
  (size 0 :documentation "The number of used elements of that vector.")
  (seen nil :documentation "The `duet-block' objects by their beginnings, a hash table.")
  (kind nil :documentation "The kind of the open block, or nil.")
  (beg 0 :documentation "The beginning of that block.")
  (fence 0 :documentation "The character of its fence.")
  (length 0 :documentation "The number of characters of its fence."))


;;;; Lookup

(defun duet-block-place (block distance)
  "Return the buffer position at offset DISTANCE in the section of BLOCK."
  (+ (duet-section-beg (duet-block-section block)) distance))

(defun duet-block-known (section)
  "Return the buffer position of the end of the scanned lines of SECTION."
  (+ (duet-section-beg section)
     (if-let ((list (duet-section-blocks section))) (duet-block--list-scanned list) 0)))

(defun duet-block-limit (block)
  "Return the buffer position of the end of the scanned lines of BLOCK."
  (if (duet-block-end block)
      (duet-block-place block (duet-block-end block))
    (duet-block-known (duet-block-section block))))

(defun duet-block--row (list distance)
  "Return the index in LIST of the last block that begins at or before DISTANCE.
Return nil if there is none."
  (let ((rows (duet-block--list-rows list))
        (low 0)
        (high (/ (duet-block--list-size list) 4)))
    (while (< low high)
      (let ((middle (/ (+ low high) 2)))
        (if (<= (aref rows (* 4 middle)) distance)
            (setq low (1+ middle))
          (setq high middle))))
    (and (> low 0) (* 4 (1- low)))))

(defun duet-block-at (&optional place)
  "Return the block at PLACE, or at point, or nil."
  (let* ((place (or place (point)))
         (section (get-text-property place 'duet-section))
         (list (and section (duet-section-blocks section))))
    (when list
      (let ((distance (- place (duet-section-beg section))))
        (if (and (duet-block--list-kind list)
                 (>= distance (duet-block--list-beg list)))
            (and (< distance (duet-block--list-scanned list))
                 (duet-block-open section))
          (when-let ((row (duet-block--row list distance)))
            (and (< distance (aref (duet-block--list-rows list) (+ row 2)))
                 (duet-block--get section row))))))))

(defun duet-block-open (section)
  "Return the open block at the end of SECTION, or nil."
  (let ((list (duet-section-blocks section)))
    (and list (duet-block--list-kind list)
         (duet-block--see section (duet-block--list-kind list)
                          (duet-block--list-beg list) nil))))

(defun duet-block-last (section place kind)
  "Return the last block of KIND in SECTION that begins at or before PLACE."
  (when-let ((list (duet-section-blocks section)))
    (let ((distance (- place (duet-section-beg section))))
      (if (and (eq (duet-block--list-kind list) kind)
               (>= distance (duet-block--list-beg list)))
          (duet-block-open section)
        (let ((row (duet-block--row list distance)))
          (while (and row (not (eq (aref (duet-block--list-rows list) (+ row 3)) kind)))
            (setq row (and (> row 0) (- row 4))))
          (and row (duet-block--get section row)))))))

(defun duet-block--get (section row)
  "Return the block of SECTION at the index ROW of its list."
  (let ((rows (duet-block--list-rows (duet-section-blocks section))))
    (duet-block--see section (aref rows (+ row 3)) (aref rows row) (aref rows (1+ row)))))

(defun duet-block--see (section kind beg end)
  "Return the block of SECTION with KIND from BEG to END; make it if needed."
  (let* ((list (duet-section-blocks section))
         (seen (or (duet-block--list-seen list)
                   (setf (duet-block--list-seen list) (make-hash-table)))))
    (or (gethash beg seen)
        (puthash beg (save-excursion
                       (save-match-data
                         (goto-char (+ (duet-section-beg section) beg))
                         (duet-block--make section kind beg end)))
                 seen))))

(defun duet-block--make (section kind beg end)
  "Return a new block of SECTION with KIND, from BEG, at point, to END."
  (let ((bol (point))
        (inhibit-field-text-motion t))
    (cond
     ((eq kind 'code)
      (skip-chars-forward " \t")
      (let ((indent (- (point) bol))
            (words (progn (skip-chars-forward (string (char-after)))
                          (string-trim (buffer-substring-no-properties
                                        (point) (line-end-position))))))
        (make-duet-block
         :section section :kind kind :indent indent :beg beg :end end
         :body (- (min (1+ (line-end-position)) (point-max)) (duet-section-beg section))
         :language (and (string-match "\\`{?\\.?\\([^ \t{},:]+\\)" words)
                        (downcase (match-string 1 words))))))
     (t
      (forward-line 1)
      (make-duet-block
       :section section :kind kind :beg beg :end end
       :body (- (min (1+ (line-end-position)) (point-max)) (duet-section-beg section))
       :columns (duet-block--columns (point) (line-end-position)))))))

(defun duet-block-part (block bol)
  "Return the part of BLOCK that the line at BOL belongs to.
It is `open', `code' or `close'; `head', `rule' or `row'."
  (let ((distance (- bol (duet-section-beg (duet-block-section block))))
        (table (eq (duet-block-kind block) 'table)))
    (cond
     ((= distance (duet-block-beg block)) (if table 'head 'open))
     (table (if (< distance (duet-block-body block)) 'rule 'row))
     ((and (duet-block-end block) (>= distance (duet-block-end block))) 'close)
     (t 'code))))

(defun duet-block-broken-p (bol)
  "Return non-nil if the line at BOL continues a line that was too long."
  (and (> bol (point-min)) (get-text-property (1- bol) 'duet-show)))


;;;; Searching

(defun duet-block-scan (section)
  "Scan the next lines of SECTION for blocks.
Return non-nil if more lines remain."
  (let* ((inhibit-field-text-motion t)
         (list (or (duet-section-blocks section)
                   (setf (duet-section-blocks section) (make-duet-block--list))))
         (start (duet-block-known section))
         (last (marker-position (duet-section-end section)))
         (open (duet-message-open (duet-section-object section)))
         ;; The last line may be incomplete.
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
        ;; It may be shown as an incomplete line.
        (duet-block-anew start (1+ start))
        (save-excursion
          (goto-char start)
          (while (< (point) end)
            (pcase (duet-block--list-kind list)
              ('code (duet-block--code section list end))
              ('table (duet-block--rows section list end))
              (_ (duet-block--search section list end)))))
        (when (duet-block--list-kind list)
          (duet-block-anew (max start (+ (duet-section-beg section)
                                          (duet-block--list-beg list)))
                            end)))
      (setf (duet-block--list-scanned list) (- end (duet-section-beg section))))
    (when (and (not open) (= end last) (duet-block--list-kind list))
      (with-silent-modifications
        (duet-block--end section list last last)))
    (< end known)))

(defun duet-block-anew (beg end)
  "Fontify the text from BEG to END again, if some of it was fontified."
  (when-let ((place (text-property-any beg end 'fontified t)))
    (put-text-property place end 'fontified nil)))

(defun duet-block--begin (section list kind bol)
  "Record in LIST that a block of KIND begins at BOL in SECTION."
  (setf (duet-block--list-kind list) kind
        (duet-block--list-beg list) (- bol (duet-section-beg section))))

(defun duet-block--end (section list end next)
  "Record in LIST that the open block of SECTION ends at END.
The text after it begins at NEXT."
  (let* ((from (duet-section-beg section))
         (beg (duet-block--list-beg list))
         (kind (duet-block--list-kind list))
         (size (duet-block--list-size list))
         (rows (duet-block--list-rows list))
         (seen (and (duet-block--list-seen list)
                    (gethash beg (duet-block--list-seen list)))))
    (when (= size (length rows))
      (setq rows (vconcat rows (make-vector size nil)))
      (setf (duet-block--list-rows list) rows))
    (aset rows size beg)
    (aset rows (+ size 1) (- end from))
    (aset rows (+ size 2) (- next from))
    (aset rows (+ size 3) kind)
    (setf (duet-block--list-size list) (+ size 4)
          (duet-block--list-kind list) nil)
    (when seen (setf (duet-block-end seen) (- end from)))
    ;; Colour code again that was coloured line by line.
    (duet-block-anew (if (eq kind 'code) (+ from beg)
                        (max (+ from beg) (duet-block-known section)))
                      next)))

(defun duet-block--search (section list end)
  "Search SECTION for the next first line of a block, and go to the line after it.
Record the block in LIST.  Go to END if there is none."
  (if (not (re-search-forward "^[ \t]*\\(```+\\|~~~+\\|[|:-][-:| \t]+$\\)" end t))
      (goto-char end)
    (let ((bol (match-beginning 0))
          (mark (match-beginning 1))
          (behind (match-end 1))
          (from (duet-section-beg section)))
      (goto-char bol)
      (let ((eol (line-end-position)))
        (cond
         ((duet-block-broken-p bol))
         ((memq (char-after mark) '(?` ?~))
          (goto-char behind)
          ;; More backquotes in the line make it code within a line.
          (unless (and (eq (char-after mark) ?`) (search-forward "`" eol t))
            (setf (duet-block--list-fence list) (char-after mark)
                  (duet-block--list-length list) (- behind mark))
            (duet-block--begin section list 'code bol)))
         ((> bol from)
          (forward-line -1)
          (when (duet-block--table-p section list (point) bol eol)
            ;; The line of the names was shown as text.
            (duet-block-anew (point) eol)
            (duet-block--begin section list 'table (point)))))
        (goto-char (min end (1+ eol)))))))

(defun duet-block--code (section list end)
  "Go to the end of the code at point in SECTION, or to END.
Record that end in LIST."
  (let ((fence (duet-block--list-fence list))
        (closed nil))
    (while (and (not closed)
                (re-search-forward "^[ \t]*\\(```+\\|~~~+\\)[ \t]*$" end t))
      (let ((bol (match-beginning 0)))
        (when (and (eq (char-after (match-beginning 1)) fence)
                   (>= (- (match-end 1) (match-beginning 1)) (duet-block--list-length list))
                   (not (duet-block-broken-p bol)))
          (setq closed t)
          (goto-char (min end (1+ (point))))
          (duet-block--end section list bol (point)))))
    (unless closed
      (goto-char end))))


;;;; Tables

(defun duet-block-cells (bol eol)
  "Return the cells of the table row from BOL to EOL, a list of (BEG . END).
A cell includes the spaces between its bars."
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
  "Return the alignments in the rule of a table from BOL to EOL, a list.
Return nil if the line is not a rule."
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

(defconst duet-block--rule
  "[ \t]*|?[ \t]*:?-+:?[ \t]*\\(?:|[ \t]*:?-+:?[ \t]*\\)*|?[ \t]*$"
  "Regexp for the rule below the column names of a table.")

(defun duet-block--table-p (section list head bol eol)
  "Return non-nil if BOL to EOL is the rule below the column names at HEAD.
LIST has the blocks of SECTION before it."
  (let ((size (duet-block--list-size list))
        (from (duet-section-beg section)))
    (save-excursion
      (and (>= head from)
           (or (zerop size)
               (>= (- head from) (aref (duet-block--list-rows list) (- size 2))))
           (not (duet-block-broken-p head))
           (progn (goto-char bol) (search-forward "|" eol t))
           (progn (goto-char head) (search-forward "|" (1- bol) t))
           (progn (goto-char bol) (looking-at-p duet-block--rule))
           (= (length (duet-block-cells bol eol))
              (length (duet-block-cells head (1- bol))))))))

(defun duet-block--rows (section list end)
  "Go to the end of the table rows at point in SECTION, or to END.
Record the end of the table in LIST."
  (while (and (< (point) end)
              (not (looking-at-p "[ \t]*\\(?:$\\|```\\|~~~\\|#\\{1,6\\} \\|>\\)"))
              (not (duet-block-broken-p (point)))
              (save-excursion (search-forward "|" (line-end-position) t)))
    (forward-line 1)
    (when (> (point) end) (goto-char end)))
  (when (< (point) end)
    (duet-block--end section list (point) (point))))

;;; Colours of code

;; A visible block of code gets the colours of its language's major mode from a
;; hidden buffer, some lines at a time.  Text of agents is not trusted: only modes that
;; come with Emacs are used.  None of their hooks run, and no file's variables apply.
;; Code that is too long or too slow stays without colours.
;;
;; An incomplete block gets colours line by line.  A complete block is coloured again
;; as a whole, so that its colours do not depend on how it arrived.

(defconst duet-code--most 20000
  "Maximum number of characters with colours, at the beginning of a block.")
(defconst duet-code--line 1000
  "Maximum length of a line; colours end at the first longer line of a block.")
(defconst duet-code--step 25
  "The number of lines that get colours at a time.")
(defvar duet-code--patience 0.5
  "Maximum CPU time of Emacs for one step of colours, in seconds.
If a step takes longer, the rest of the block gets no colours.")

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
  "Major modes and their languages.
The first mode that comes with this Emacs is used.")

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
  "Keywords of languages with a syntax like C.")

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
  "Syntax table of languages with a syntax like C.")

(define-derived-mode duet-code-mode fundamental-mode "Code"
  "Major mode for the colours of code in a language with a syntax like C.
It is for hidden buffers."
  (setq font-lock-defaults
        `(((,(regexp-opt duet-code--keywords 'symbols) . font-lock-keyword-face)
           ("\\_<\\(?:true\\|false\\|nil\\|null\\|None\\|Some\\|undefined\\|self\\|iota\\)\\_>"
            . font-lock-constant-face)
           ("\\_<\\(?:func\\|fn\\|fun\\|function\\)[ \t]+\\(?:([^()\n]*)[ \t]*\\)?\\(\\(?:\\sw\\|\\s_\\)+\\)"
            1 font-lock-function-name-face)
           ("\\_<\\(?:type\\|struct\\|class\\|interface\\|enum\\|trait\\|impl\\|message\\)[ \t]+\\(\\(?:\\sw\\|\\s_\\)+\\)"
            1 font-lock-type-face)
           ;; A character literal, but not a lifetime or an apostrophe.
           ("'\\(?:[^'\\\n]\\|\\\\[^\n']+\\)'" . font-lock-string-face)))))

(defvar duet-code--known (make-hash-table :test #'equal)
  "The major modes of languages, a symbol or `none'.")

(defun duet-code--ours-p (mode)
  "Return non-nil if MODE comes with Emacs or is `duet-code-mode'."
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
  "Return the major mode for the colours of LANGUAGE, or nil."
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


;;;; Hidden buffers

(defvar-local duet-code--block nil
  "The block of the code in a hidden buffer.")
(defvar-local duet-code--whole nil
  "Non-nil if the hidden buffer has all code of its block.")

(defun duet-code--name (mode)
  "Return the name of the hidden buffer with the major mode MODE."
  (format " *duet code: %s*" mode))

(defconst duet-code--quiet 0.2
  "Seconds of idle time before a major mode is loaded.")

(defun duet-code--ready-p (block)
  "Return non-nil if BLOCK can get its colours now without a delay for the user.
Loading a major mode is the slowest step, so it waits until Emacs is idle."
  (or noninteractive
      (let ((mode (duet-code-mode-of (duet-block-language block))))
        (or (null mode) (get-buffer (duet-code--name mode))))
      (let ((idle (current-idle-time)))
        (and idle (>= (float-time idle) duet-code--quiet)))))

(defun duet-code--show-again (message)
  "Show MESSAGE in the echo area, unless it is there."
  (unless (or (null message) (equal message (current-message)))
    (let ((message-log-max nil))
      (message "%s" message))))

(defun duet-code--hidden (mode)
  "Return the hidden buffer with the major mode MODE; nil if the mode fails.
Keep the message in the echo area, which loading a mode erases."
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
                  ;; The hooks are delayed and never run.
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

;;;; Work

(defvar-local duet-code--queue nil
  "Blocks that wait for their colours, the oldest first.")

(defun duet-code-wants-p (block)
  "Return non-nil if BLOCK lacks colours and has a major mode for them."
  (and (not (eq (duet-block-colors block) 'done))
       (duet-code-mode-of (duet-block-language block))
       t))

(defvar-local duet-code--timer nil
  "The timer that gives blocks their colours.")

(defun duet-code-queue (block)
  "Queue BLOCK for its colours."
  (unless (memq block duet-code--queue)
    (setq duet-code--queue (append duet-code--queue (list block))))
  (duet-code--soon))

(defconst duet-code--slice 0.008
  "Seconds of work on colours before Emacs may do other things.")

(defun duet-code--soon (&optional delay)
  "Start the timer for queued blocks, with DELAY in seconds, or 0.02."
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
  "Function of two positions, or nil.
It returns non-nil if text between them is visible.")

(defun duet-code--wanted-p (block)
  "Return non-nil if BLOCK is visible."
  (or (null duet-code-wanted-function)
      (null (marker-buffer (duet-section-beg (duet-block-section block))))
      (funcall duet-code-wanted-function (duet-block-place block (duet-block-beg block))
               (duet-block-limit block))))

(defun duet-code--put-off (block)
  "Put off BLOCK until it is visible; return nil."
  (let ((beg (duet-block-place block (duet-block-body block)))
        (limit (min (point-max) (duet-block-limit block))))
    (when (< beg limit)
      (with-silent-modifications
        (put-text-property beg limit 'fontified nil)))
    nil))

(defun duet-code-work (end)
  "Give queued blocks their colours, until the time END at most.
Return non-nil if blocks remain.  If they wait until Emacs is idle, start
the timer and return nil."
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
  "Give some lines of BLOCK their colours; return non-nil if lines remain."
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
  "Copy the code of BLOCK from START to LIMIT into HIDDEN.
WHOLE is non-nil if that is all code that gets colours."
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
  "Copy the colours of some lines from HIDDEN to the code of BLOCK, at START.
Return non-nil if lines remain."
  (let ((turns '())
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
              (push (list (1- place) (1- next) face) turns)
              (setq place next))))))
    (when (> (- (float-time (get-internal-run-time)) began) duet-code--patience)
      (setq more nil done t))
    (with-silent-modifications
      (pcase-dolist (`(,from ,to ,face) turns)
        (add-text-properties (+ start from) (+ start to)
                             (list 'duet-colored t
                                   'face (duet-code--face face)))))
    (setf (duet-block-colors block) (if done 'done (1- end)))
    more))

(defun duet-code--face (face)
  "Return FACE of a major mode combined with the face of code in a transcript."
  (cond ((null face) 'duet-code-block)
        ((and (consp face) (not (keywordp (car face)))) (append face '(duet-code-block)))
        (t (list face 'duet-code-block))))

(provide 'duet-block)
;;; duet-block.el ends here
