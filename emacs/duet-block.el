;;; duet-block.el --- Blocks of code and tables, and the colours of code  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Whether a line is code, or a row of a table, depends on all lines before it.
;; So each whole line is looked at once, when it comes, and where blocks begin and
;; end is kept in a list of numbers: a conversation of megabytes has ten thousands
;; of them, and what Emacs would keep for each in objects and in text properties,
;; it would have to go through whenever it collects garbage.  A `duet-block' is
;; made of a block that is in sight.
;;
;; Places in a block are distances from the beginning of its section, which stay
;; what they are when something is inserted in front of that.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-log)
(require 'duet-model)
(require 'duet-section)

;;; Blocks

(defconst duet-block--slice 20000
  "How many characters are looked at at once.")

(cl-defstruct (duet-block (:copier nil))
  "A block of code or a table."
  (section nil :documentation "The section that it is in.")
  (kind nil :documentation "`code' or `table'.")
  (beg 0 :documentation "Where its first line begins, that of the fence or of the names.")
  (body 0 :documentation "Where the first line of code or the first row begins.")
  (end nil :documentation "Where its last line of code or row has ended; nil if more may come.")
  (indent 0 :documentation "How far the fence is indented.")
  (language nil :documentation "The first word behind the fence, or nil.")
  (colors nil :documentation "How far its code has colours, see `duet-code-work'.")
  (columns nil :documentation "How the columns of a table are aligned, a list.")
  (widths nil :documentation "How wide they are, a vector; see duet-table.el.")
  (measured nil :documentation "How far its rows were measured."))

(cl-defstruct (duet-block--list (:copier nil))
  "Where the blocks of a section are."
  (scanned 0 :documentation "Up to where the lines of the section are known.")
  (rows (make-vector 16 nil) :documentation "What is known of each block that has ended.
That are its beginning, its end, as that of a `duet-block', where the line
behind it begins, and its kind; four in a row, in order.")
  (size 0 :documentation "How much of that vector is in use.")
  (seen nil :documentation "The blocks that were looked at by their beginnings, a hash table.")
  (kind nil :documentation "The kind of the block whose end is not known yet, or nil.")
  (beg 0 :documentation "Where that block begins.")
  (fence 0 :documentation "The character of its fence.")
  (length 0 :documentation "How many of them its fence has."))


;;;; Looking

(defun duet-block-place (block distance)
  "Return the place in the buffer that is DISTANCE from the section of BLOCK."
  (+ (duet-section-beg (duet-block-section block)) distance))

(defun duet-block-known (section)
  "Return the place in the buffer up to which the lines of SECTION are known."
  (+ (duet-section-beg section)
     (if-let ((list (duet-section-blocks section))) (duet-block--list-scanned list) 0)))

(defun duet-block-limit (block)
  "Return the place in the buffer up to which the lines of BLOCK are known."
  (if (duet-block-end block)
      (duet-block-place block (duet-block-end block))
    (duet-block-known (duet-block-section block))))

(defun duet-block--row (list distance)
  "Return where LIST has the last block that begins at DISTANCE or before it.
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
  "Return the block that PLACE, or point, is in, or nil."
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
  "Return the block at the end of SECTION to which lines may be added, or nil."
  (let ((list (duet-section-blocks section)))
    (and list (duet-block--list-kind list)
         (duet-block--see section (duet-block--list-kind list)
                          (duet-block--list-beg list) nil))))

(defun duet-block-last (section place kind)
  "Return the last block of KIND in SECTION that begins at PLACE or before it."
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
  "Return the block of SECTION that is in its list at ROW."
  (let ((rows (duet-block--list-rows (duet-section-blocks section))))
    (duet-block--see section (aref rows (+ row 3)) (aref rows row) (aref rows (1+ row)))))

(defun duet-block--see (section kind beg end)
  "Return the block of SECTION that has KIND and is from BEG to END."
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
  "Return a new block of SECTION that has KIND, and is from BEG, at point, to END."
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
  "Return the part of BLOCK that the line at BOL is.
That is `open', `code' or `close'; `head', `rule' or `row'."
  (let ((distance (- bol (duet-section-beg (duet-block-section block))))
        (table (eq (duet-block-kind block) 'table)))
    (cond
     ((= distance (duet-block-beg block)) (if table 'head 'open))
     (table (if (< distance (duet-block-body block)) 'rule 'row))
     ((and (duet-block-end block) (>= distance (duet-block-end block))) 'close)
     (t 'code))))

(defun duet-block-broken-p (bol)
  "Return non-nil if the line at BOL goes on with a line that was too long."
  (and (> bol (point-min)) (get-text-property (1- bol) 'duet-show)))


;;;; Searching

(defun duet-block-scan (section)
  "Look for blocks in some of SECTION that was not looked at yet.
Return non-nil if there is more to look at."
  (let* ((inhibit-field-text-motion t)
         (list (or (duet-section-blocks section)
                   (setf (duet-section-blocks section) (make-duet-block--list))))
         (start (duet-block-known section))
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
  "Have that of the text from BEG to END that was shown be shown anew."
  (when-let ((place (text-property-any beg end 'fontified t)))
    (put-text-property place end 'fontified nil)))

(defun duet-block--begin (section list kind bol)
  "Note in LIST that a block of KIND begins at BOL in SECTION."
  (setf (duet-block--list-kind list) kind
        (duet-block--list-beg list) (- bol (duet-section-beg section))))

(defun duet-block--end (section list end next)
  "Note in LIST that the block that SECTION was in ends at END.
What comes behind it begins at NEXT."
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
    ;; Code that was coloured as it came is looked at as a whole.
    (duet-block-anew (if (eq kind 'code) (+ from beg)
                        (max (+ from beg) (duet-block-known section)))
                      next)))

(defun duet-block--search (section list end)
  "Go to what begins a block of SECTION, and behind that line, or to END.
Note it in LIST."
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
          ;; Backquotes behind it make it code within a line.
          (unless (and (eq (char-after mark) ?`) (search-forward "`" eol t))
            (setf (duet-block--list-fence list) (char-after mark)
                  (duet-block--list-length list) (- behind mark))
            (duet-block--begin section list 'code bol)))
         ((> bol from)
          (forward-line -1)
          (when (duet-block--table-p section list (point) bol eol)
            ;; The names were text.
            (duet-block-anew (point) eol)
            (duet-block--begin section list 'table (point)))))
        (goto-char (min end (1+ eol)))))))

(defun duet-block--code (section list end)
  "Go to the end of the code of SECTION that point is in, or to END.
Note it in LIST."
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

(defconst duet-block--rule
  "[ \t]*|?[ \t]*:?-+:?[ \t]*\\(?:|[ \t]*:?-+:?[ \t]*\\)*|?[ \t]*$"
  "Regexp for the rule below the names of the columns of a table.")

(defun duet-block--table-p (section list head bol eol)
  "Return non-nil if the line from BOL to EOL is a rule below names, at HEAD.
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
  "Go behind the rows of a table of SECTION from point on, or to END.
Note it in LIST."
  (while (and (< (point) end)
              (not (looking-at-p "[ \t]*\\(?:$\\|```\\|~~~\\|#\\{1,6\\} \\|>\\)"))
              (not (duet-block-broken-p (point)))
              (save-excursion (search-forward "|" (line-end-position) t)))
    (forward-line 1)
    (when (> (point) end) (goto-char end)))
  (when (< (point) end)
    (duet-block--end section list (point) (point))))

;;; Colours of code

;; A block of code that is in sight gets the colours of its language's major mode
;; in a hidden buffer, some lines at a time.  What agents write is not trusted:
;; only modes that come with Emacs are used, none of their hooks is run, no file's
;; variables are applied, and code that is long or takes long stays without colours.
;;
;; The code that is still being written has colours too, line by line.  Once it is
;; whole it is looked at as a whole, so that how it came makes no difference.

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


;;;; Hidden buffers

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
  "Return non-nil if BLOCK can get its colours now without a delay for the user.
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

;;;; Work

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
  "Return non-nil if BLOCK is in sight."
  (or (null duet-code-wanted-function)
      (null (marker-buffer (duet-section-beg (duet-block-section block))))
      (funcall duet-code-wanted-function (duet-block-place block (duet-block-beg block))
               (duet-block-limit block))))

(defun duet-code--put-off (block)
  "Have BLOCK, which is out of sight, wait until it is in sight; return nil."
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

(provide 'duet-block)
;;; duet-block.el ends here
