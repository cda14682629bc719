;;; duet-markup-test.el --- Tests of Markdown in transcripts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(defmacro duet-markup-test-with (message &rest body)
  "Run BODY in a transcript whose only message, an open one, MESSAGE names."
  (declare (indent 1) (debug (symbolp body)))
  `(let* ((model (duet-model-create :root "/nowhere/"))
          (session (make-duet-session :id "t" :model model :loaded t))
          (,message (make-duet-message :key "m" :kind 'text :session session
                                       :run "r" :open t))
          ;; However slow the machine is.
          (duet-code--patience 1000))
     (duet-model-add-message ,message)
     (with-temp-buffer
       (duet-transcript-mode)
       (setq duet-session session)
       (unwind-protect (progn ,@body)
         (dolist (timer (list duet-transcript--timer duet-code--timer))
           (when timer (cancel-timer timer)))
         (setq duet-session nil)))))

(defun duet-markup-test--say (message text)
  "Add TEXT to MESSAGE, and note that in the transcript."
  (duet-message-append message text)
  (duet-transcript--note message 'append))

(defun duet-markup-test-look (&optional message)
  "Show all of the buffer as if it were looked at.
MESSAGE, if any, is whole from now on."
  (when message
    (setf (duet-message-open message) nil)
    (duet-transcript--note message 'redraw))
  (dotimes (_ 2)
    (duet-transcript-flush)
    (jit-lock-fontify-now)
    (while (duet-code-work (+ 1 (float-time))))))

(defun duet-markup-test-properties ()
  "Return the text of the buffer and how it looks."
  (let ((place (point-min))
        (found '()))
    (while (< place (point-max))
      (let ((next (next-property-change place nil (point-max))))
        (let ((this (cons (buffer-substring-no-properties place next)
                          (cl-loop for property in (cons 'duet-colored
                                                         duet-markup--properties)
                                   for value = (get-text-property place property)
                                   when value collect (cons property value)))))
          (if (and found (equal (cdr this) (cdar found)))
              (setf (caar found) (concat (caar found) (car this)))
            (push this found)))
        (setq place next)))
    (nreverse found)))

(defun duet-markup-test-screen (beg end)
  "Return the text from BEG to END as a screen shows it."
  (let ((place beg)
        (parts '()))
    (while (< place end)
      (let ((next (next-single-char-property-change
                   place 'display nil
                   (next-single-char-property-change place 'invisible nil end)))
            (display (get-text-property place 'display)))
        (cond
         ((stringp display) (push (substring-no-properties display) parts))
         ((not (invisible-p place))
          (push (buffer-substring-no-properties place next) parts)))
        (setq place next)))
    (apply #'concat (nreverse parts))))

(defun duet-markup-test-shown (text &optional size)
  "Return TEXT as a screen shows it, said SIZE characters at a time, or at once."
  (duet-markup-test-with message
    (duet-markup-test-say-all message text (or size (max 1 (length text))))
    (duet-markup-test-look message)
    (let ((section (duet-section-get "m")))
      (duet-markup-test-screen (duet-section-beg section) (duet-section-end section)))))

(defun duet-markup-test-say-all (message text size)
  "Say TEXT in MESSAGE, SIZE characters at a time, and look at it meanwhile."
  (cl-loop for start from 0 below (length text) by size
           do (duet-markup-test--say
               message (substring text start (min (length text) (+ start size))))
           (duet-transcript-flush)
           (jit-lock-fontify-now)))

(defun duet-markup-test-faces (text)
  "Return what of TEXT has which face, (STRING . FACE) each; nothing has none."
  (duet-markup-test-with message
    (duet-markup-test-say-all message text (max 1 (length text)))
    (duet-markup-test-look message)
    (cl-loop for (string . properties) in (duet-markup-test-properties)
             for face = (alist-get 'face properties)
             when (and face (not (alist-get 'invisible properties)))
             collect (cons string face))))

(ert-deftest duet-markup-test-before-it-is-drawn ()
  "What is written in sight has its faces before Emacs draws it.
A \\`C-g' that comes while Emacs draws and calls a function for the faces
would be lost."
  (duet-markup-test-with message
    (save-window-excursion
      (dolist (shown '(nil t))
        (when shown
          (set-window-buffer (selected-window) (current-buffer))
          (goto-char (point-max))
          (set-window-point (selected-window) (point-max)))
        (dotimes (_ 3)
          (duet-markup-test--say message "some **bold** text\n")
          (duet-transcript-flush))
        ;; Nobody sees it, nobody pays for it.
        (should (eq (and (text-property-any (point-min) (point-max) 'fontified nil) t)
                    (not shown)))))
    (goto-char (point-max))
    (search-backward "bold")
    (should (eq (get-text-property (point) 'face) 'bold))))


;;; What is shown

(ert-deftest duet-markup-test-inline ()
  "Marks are hidden where they are marks, and only there."
  (pcase-dolist
      (`(,text ,shown . ,faces)
       '(("some **bold** text" "some bold text" ("bold" . bold))
         ("some *italic* text" "some italic text" ("italic" . italic))
         ("some __bold text__ and _italic_" "some bold text and italic"
          ("bold text" . bold) ("italic" . italic))
         ("***both***" "both" ("both" bold italic))
         ("**a *b* c**" "a b c" ("a " . bold) ("b" italic bold) (" c" . bold))
         ("*a **b** c*" "a b c" ("a " . italic) ("b" bold italic) (" c" . italic))
         ("~~gone~~ ~5 ~/x" "gone ~5 ~/x" ("gone" . duet-struck))
         ("a `code *x* b` c" "a code *x* b c" ("code *x* b" . duet-code))
         ("`` a`b ``" "a`b" ("a`b" . duet-code))
         ("` `" " " (" " . duet-code))
         ("`open" "`open")
         ("``a` b" "``a` b")
         ("```one` two" "```one` two")
         ;; Names and patterns keep what they are called.
         ("a_b_c and __init__.py" "a_b_c and __init__.py")
         ("snake_case_name _x" "snake_case_name _x")
         ("*.el and *.c" "*.el and *.c")
         ("src/*.el, lib/*.el" "src/*.el, lib/*.el")
         ("src/**/*.go and **/*.md" "src/**/*.go and **/*.md")
         ("2*3*4 = 24" "2*3*4 = 24")
         ("f(*args, **kwargs)" "f(*args, **kwargs)")
         ("a * b * c ** d ** e" "a * b * c ** d ** e")
         ("int *p, *q; char **r" "int *p, *q; char **r")
         ("**open and *open" "**open and *open")
         ("** a**" "** a**")
         ("**a*b**" "a*b" ("a*b" . bold))
         ("\\*no\\* \\_no\\_ \\`no\\` C:\\new\\x" "*no* _no_ `no` C:\\new\\x")
         ;; Where there are no spaces.
         ("这是**重要**的" "这是重要的" ("重要" . bold))
         ("**「重要」**的" "「重要」的" ("「重要」" . bold))
         ;; HTML stays in sight.
         ("a <b title=\"*x*\">c</b> <!-- *y* -->" "a <b title=\"*x*\">c</b> <!-- *y* -->"
          ("<b title=\"*x*\">" . duet-dim) ("</b>" . duet-dim) ("<!-- *y* -->" . duet-dim))
         ("Vec<u8> 1 < 2 > 0" "Vec<u8> 1 < 2 > 0")))
    (should (equal (list text (duet-markup-test-shown text)) (list text shown)))
    (should (equal (list text (duet-markup-test-faces text)) (cons text (list faces))))))

(ert-deftest duet-markup-test-lines ()
  "Headings, lists, quotes and rules are shown as what they stand for."
  (pcase-dolist
      (`(,text ,shown)
       '(("# One\n## Two ##\n#no\n####### no" "One\nTwo\n#no\n####### no")
         ("# *a* `b`" "a b")
         ("Title\n=====\ntext" "Title\n=====\ntext")
         ("- a\n* b\n+ c\n1. d\n2) e\n-no" "• a\n• b\n+ c\n1. d\n2) e\n-no")
         ("- a\n  - *b*\n    - c" "• a\n  • b\n    • c")
         ("- [ ] open\n- [x] done" "• [ ] open\n• [x] done")
         ("> quoted *text*\n> > twice" "│ quoted text\n│ │ twice")
         ("a\n\n---\n\n***\n_ _ _" "a\n\nR\n\nR\nR")
         ("a **bold\nas well** b" "a bold\nas well b")
         ("- a **bold\n  as well** b" "• a bold\n  as well b")
         ("a **bold\n\nno** b" "a **bold\n\nno** b")
         ("a **bold\n- no** b" "a **bold\n• no** b")
         ;; Code by its indentation.
         ("a\n\n    *code*\n\tmore *code*\n\nb" "a\n\n    *code*\n\tmore *code*\n\nb")
         ("- a\n\n    *text*" "• a\n\n    text")
         ("\tcode *x*" "\tcode *x*")
         ("a\r\n\r\n# b\r\n- c\r\n" "a\n\nb\n• c\n")))
    (let ((shown (string-replace "R" (make-string 40 ?─)
                                 (string-replace "+ c" "• c" shown))))
      (should (equal (list text (duet-markup-test-shown text)) (list text shown))))))

(ert-deftest duet-markup-test-code ()
  "Code is shown as it is, between lines that tell its language."
  (pcase-dolist
      (`(,text ,shown)
       '(("a\n```sh\n# *x* `y`\n```\n*b*" "a\n── sh\n# *x* `y`\n──\nb")
         ("```\n*open*\n\n# still" "──\n*open*\n\n# still")
         ("````md\n```\n*x*\n```\n````\n*b*" "── md\n```\n*x*\n```\n──\nb")
         ("~~~ c\n```\n~~~~\n*b*" "── c\n```\n──\nb")
         ("``` not `code`\n*b*" "``` not code\nb")
         ("- a\n  ```c\n  int *p, *q;\n  ```\n- *b*" "• a\n  ── c\n  int *p, *q;\n  ──\n• b")
         ("```c\r\nint x;\r\n```\r\n" "── c\nint x;\n──\n")))
    (should (equal (list text (duet-markup-test-shown text)) (list text shown)))))

(ert-deftest duet-markup-test-colors ()
  "Code has its language's colours; what has no mode in Emacs has one colour."
  (let ((faces (duet-markup-test-faces
                (concat "```python\ndef f(x):\n    return 'a'  # b\n```\n"
                        "```go\nfunc main() { return \"a\" } // b\n```\n"
                        "```brainfuck\n+++\n```\n"))))
    (pcase-dolist (`(,text . ,face) '(("def" . font-lock-keyword-face)
                                      ("f" . font-lock-function-name-face)
                                      ("'a'" . font-lock-string-face)
                                      ("func" . font-lock-keyword-face)
                                      ("\"a\"" . font-lock-string-face)))
      (should (equal (list text (alist-get text faces nil nil #'equal))
                     (list text (list face 'duet-code-block)))))
    (should (rassoc 'duet-code faces))))

(ert-deftest duet-markup-test-nothing-runs ()
  "Code of an agent runs no hook, heeds no variable of a file, and is bounded."
  (let ((ran '()))
    (cl-letf* ((note (lambda (&rest _) (push 'hook ran)))
               ((default-value 'python-mode-hook) (list note))
               (prog-mode-hook (list note))
               (change-major-mode-hook (list note))
               (after-change-major-mode-hook (list note))
               (find-file-hook (list note)))
      (when-let ((buffer (get-buffer " *duet code: python-mode*"))) (kill-buffer buffer))
      (duet-markup-test-with message
        ;; The transcript's own mode came before.
        (setq ran '())
        (duet-markup-test-say-all
         message
         (concat "```python\n# -*- eval: (push 'eval ran) -*-\nx = 1\n# Local " "Variables:\n"
                 "# eval: (push 'eval ran)\n# End:\n```\n")
         1000)
        (duet-markup-test-look message)
        (goto-char (point-min))
        (search-forward "x")
        (should (get-text-property (point) 'duet-colored))
        (should-not ran))
      ;; Long ones have colours at the beginning, and those with long lines none.
      (duet-markup-test-with message
        (duet-markup-test-say-all
         message (concat "```python\n" (apply #'concat (make-list 10000 "x = 1\n")) "```\n")
         100000)
        (duet-markup-test-look message)
        (let ((colored 0))
          (cl-loop for place from (point-min) below (point-max) by 6
                   when (get-text-property place 'duet-colored) do (cl-incf colored 6))
          (should (< 15000 colored 20100))))
      (duet-markup-test-with message
        (duet-markup-test-say-all
         message (concat "```python\nx = 1\ny = " (make-string 2000 ?\() "\nz = 1\n```\n") 100000)
        (duet-markup-test-look message)
        (goto-char (point-min))
        (search-forward "z")
        (should-not (get-text-property (point) 'duet-colored))))))

(ert-deftest duet-markup-test-foreign-mode ()
  "A mode that did not come with Emacs is not called."
  (let ((called nil)
        (duet-code--known (make-hash-table :test #'equal)))
    (cl-letf (((symbol-function 'ruby-mode) (lambda () (setq called t)))
              (load-history nil))
      (put 'ruby-mode 'function-history nil)
      (should-not (duet-code-mode-of "ruby"))
      (should-not called))))


;;; Tables

(ert-deftest duet-markup-test-tables ()
  "The columns of tables are aligned, whatever stands in them."
  (pcase-dolist
      (`(,text ,shown)
       '(("| a | bc |\n|---|:-:|\n| **def** | g |"
          "│ a   │ bc │\n├─────┼────┤\n│ def │ g  │")
         ("|n|right|\n|-|-:|\n|1|2|\n|10|20|\nafter"
          "│ n  │ right │\n├────┼───────┤\n│ 1  │     2 │\n│ 10 │    20 │\nafter")
         ("a | b\n--|--\n1 | 2" "a │ b\n──┼──\n1 │ 2")
         ;; Escaped bars, also in code.
         ("| a | b |\n|---|---|\n| x\\|y | `p\\|q` |" "│ a   │ b    │\n├─────┼──────┤\n│ x|y │ p\\|q │")
         ;; Chinese and pictures are wide.
         ("| 名字 | x |\n|---|---|\n| a | 😀 |" "│ 名字 │ x  │\n├──────┼────┤\n│ a    │ 😀 │")
         ;; Too few, too many.
         ("| a | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |"
          "│ a │ b │\n├───┼───┤\n│ 1 │\n│ 1 │ 2 │ 3 │")
         ("| |\n|---|\n| 1 |" "│   │\n├───┤\n│ 1 │")
         ;; None at all.
         ("| a | b |\n|---|\n| 1 |" "| a | b |\n|---|\n| 1 |")
         ("| a |\ntext" "| a |\ntext")
         ("text\n|---|" "text\n|---|")
         ("```\n| a |\n|---|\n```" "──\n| a |\n|---|\n──")))
    (should (equal (list text (duet-markup-test-shown text)) (list text shown)))))

;;; How it comes

(defun duet-markup-test--random (pieces count)
  "Return a text of COUNT of PIECES, taken at random."
  (apply #'concat (cl-loop repeat count collect (nth (random (length pieces)) pieces))))

(defconst duet-markup-test--pieces
  '("*" "**" "_" "__" "`" "``" "```\n" "\n```sh\n" "~~~\n" "~~" "[" "](" ")" "]" "<" ">"
    "\n> " "\n- " "\n1. " "\n# " "\n## " " ##\n" "\n\n" "\n" "\n---\n" "\n===\n" "\n    "
    "\t" "| a | b |\n" "|---|:-:|\n" "|" "\\" "\\*" "word" "wide 名字" "a_b" "*.el" "x = 'y'"
    " " " " "." "https://a.org/x_y" "[t](http://b.org)" "<br>" "!" "😀")
  "Pieces of Markdown, and what breaks it.")

(ert-deftest duet-markup-test-any-split ()
  "However a text is cut into pieces, it looks the same in the end."
  (let ((texts (list (concat "# T\n\nsome **bold\ntext** b\n\n```python\ndef f():\n  '''a\n  b'''\n"
                             "```\n\n| a | b |\n|---|--:|\n| **1** | 2 |\n| long cell | 33 |\n\n"
                             "Title\n---\n\n    code\n\n> q\n\n---\n- a\n  b\n\n```sh\nunclosed # x"))))
    (random "duet")
    (dotimes (_ 25)
      (push (duet-markup-test--random duet-markup-test--pieces 40) texts))
    ;; Paragraphs that are too long, by one line.
    (dolist (lines '(29 30 31 70))
      (push (concat "**a\n" (apply #'concat (make-list (- lines 2) "b\n")) "c** d") texts))
    (dolist (text texts)
      (let ((looks nil))
        (dolist (size (list (max 1 (length text)) 1 3 17))
          (duet-markup-test-with message
            (duet-markup-test-say-all message text size)
            (duet-markup-test-look message)
            (let ((this (duet-markup-test-properties)))
              (if (null looks) (setq looks this)
                (should (equal (list text size this) (list text size looks)))))))))))

(ert-deftest duet-markup-test-copied-as-written ()
  "What is copied is what was written, and only marks are hidden."
  (random "duet")
  (dotimes (_ 40)
    (let ((text (duet-markup-test--random duet-markup-test--pieces 60)))
      (duet-markup-test-with message
        (duet-markup-test-say-all message text 1000)
        (duet-markup-test-look message)
        (let* ((section (duet-section-get "m"))
               (copied (filter-buffer-substring (duet-section-beg section)
                                                (duet-section-end section)))
               (place (duet-section-beg section)))
          (should (equal copied text))
          (should-not (text-properties-at 0 copied))
          (while (setq place (text-property-any place (duet-section-end section)
                                                'invisible 'duet-markup))
            (let ((end (next-single-property-change place 'invisible nil
                                                    (duet-section-end section))))
              (should (string-match-p
                       "\\`\\(?:[][*_~`#\\<>| \t]+\\|[]*_~`]*\\](http://b.org)[][*_~`\\<>]*\\)\\'"
                       (buffer-substring-no-properties place end)))
              (setq place end))))))))

(ert-deftest duet-markup-test-copied-without-breaks ()
  "A line that was broken to be shown is copied whole."
  (let ((duet-render-line-length 10))
    (dolist (text '("01234567890123456789012\n# 34567890\n" "```\n012345678```\n``` x\n"))
      (dolist (size '(1 4 100))
        (duet-markup-test-with message
          (duet-markup-test-say-all message text size)
          (duet-markup-test-look message)
          (let ((section (duet-section-get "m")))
            (should (> (- (duet-section-end section) (duet-section-beg section))
                       (length text)))
            (should (equal (filter-buffer-substring (duet-section-beg section)
                                                    (duet-section-end section))
                           text))))))))

(ert-deftest duet-markup-test-copied-without-indentation ()
  "A prompt, and what a tool gave back, are copied as they are, not as they are shown."
  (duet-markup-test-with message
    (ignore message)
    (dolist (other (list (make-duet-message :key "p" :kind 'prompt :session session :run "r"
                                            :chunks (list "do it\nat once") :size 13)
                         (make-duet-tool :key "r/1" :kind 'tool :session session :run "r"
                                         :name "Run" :status 'completed
                                         :result "one\n\n  two\n"
                                         :diffs (list (list :path "/nowhere/a" :old_text "x"
                                                            :new_text "y")))))
      (duet-model-add-message other)
      (duet-transcript--note other 'append))
    (duet-transcript-flush)
    (let ((copied (filter-buffer-substring (point-min) (point-max)))
          (shown (buffer-substring-no-properties (point-min) (point-max))))
      (should (string-match-p "^❯ do it\nat once$" shown))
      (should (string-match-p "^do it\nat once$" copied))
      (should (string-match-p "^  one\n *\n    two$" shown))
      (should (string-match-p "^one\n\n  two$" copied))
      (should (string-match-p "^  -x\n  \\+y$" shown))
      (should (string-match-p "^-x\n\\+y$" copied)))))

(ert-deftest duet-markup-test-growing-table ()
  "A row that is wider moves the rows before it, as far as rows count."
  (duet-markup-test-with message
    (duet-markup-test-say-all message "| a | b |\n|---|---|\n| 1 | 2 |\n" 5)
    (cl-flet ((shown ()
                (let ((section (duet-section-get "m")))
                  (duet-markup-test-look)
                  (split-string (duet-markup-test-screen
                                 (duet-section-beg section) (duet-section-end section))
                                "\n"))))
      (should (equal (car (shown)) "│ a │ b │"))
      ;; What is not whole stays as it comes.
      (duet-markup-test--say message "| wide ")
      (should (equal (last (shown)) '("| wide ")))
      (should (equal (car (shown)) "│ a │ b │"))
      (duet-markup-test--say message "cell | x |\n")
      (should (equal (seq-take (shown) 4)
                     '("│ a         │ b │" "├───────────┼───┤" "│ 1         │ 2 │"
                       "│ wide cell │ x │")))
      (duet-markup-test--say message (apply #'concat (make-list 200 "| 1 | 2 |\n")))
      (duet-markup-test--say message "| a cell that is much wider | 2 |\n")
      (should (equal (car (shown)) "│ a         │ b │")))))

(ert-deftest duet-markup-test-much ()
  "Much of anything ends soon, and is shown."
  (dolist (text (list (make-string 1000000 ?x)
                      (make-string 4900 ?*)
                      (apply #'concat (make-list 650 "*a **b "))
                      (make-string 4900 ?\[)
                      (make-string 4900 ?`)
                      (apply #'concat (make-list 900 "` `` "))
                      (apply #'concat (make-list 750 "[a](b "))
                      (make-string 4900 ?<)
                      (make-string 4900 ?>)
                      (make-string 4900 ?|)
                      (make-string 3000 ?/)
                      (apply #'concat (make-list 1000 "./a"))
                      (concat "|" (apply #'concat (make-list 2000 "-|")) "\n")
                      (apply #'concat (make-list 1000 "    \n    a\n"))
                      (concat "```\n" (apply #'concat (make-list 10000 "code\n")) "```\n")))
    (let ((began (float-time (get-internal-run-time))))
      (duet-markup-test-with message
        (duet-markup-test-say-all message text 100000)
        (duet-markup-test-look message)
        (let ((section (duet-section-get "m")))
          (should (equal (filter-buffer-substring (duet-section-beg section)
                                                  (duet-section-end section))
                         text))))
      (when (getenv "DUET_TEST_TIMES")
        (message "%S %.2f" (substring text 0 10)
                 (- (float-time (get-internal-run-time)) began)))
      ;; A minute would be for ever.
      (should (< (- (float-time (get-internal-run-time)) began) 30)))))


;;; Links

(defmacro duet-markup-test-with-files (files &rest body)
  "Run BODY in a directory of its own, with FILES of three lines in it."
  (declare (indent 1) (debug (form body)))
  `(let ((default-directory (file-name-as-directory
                             (file-truename (make-temp-file "duet-markup" t)))))
     (unwind-protect
         (progn
           (dolist (file ,files)
             (make-directory (file-name-directory (expand-file-name file)) t)
             (write-region "one\ntwo\nthree\n" nil file nil 'silent))
           ,@body)
       (delete-directory default-directory t))))

(defun duet-markup-test-links (text)
  "Return the links in TEXT, (WORDS . TARGET) each, as they are shown."
  (let ((here default-directory))
    (duet-markup-test-with message
      (setq default-directory here)
      (duet-markup-test-say-all message text 1000)
      (duet-markup-test-look message)
      (let ((place (point-min))
            (links '()))
        (while (setq place (text-property-not-all place (point-max) 'duet-link nil))
          (let ((end (next-single-property-change place 'duet-link nil (point-max))))
            (push (cons (duet-markup-test-screen place end)
                        (get-text-property place 'duet-link))
                  links)
            (setq place end)))
        (nreverse links)))))

(ert-deftest duet-markup-test-links ()
  "Links are those to the web and to files of the project."
  (duet-markup-test-with-files '("src/main.go" "notes.txt" ".hidden/x.el")
    (pcase-dolist
        (`(,text . ,links)
         '(("[text](https://a.org/x) b" ("text" . "https://a.org/x"))
           ("[*a* `b`](https://a.org)" ("a b" . "https://a.org"))
           ("<https://a.org/x_y_z>" ("https://a.org/x_y_z" . "https://a.org/x_y_z"))
           ("See https://a.org/w_(x), https://b.org/y. (http://c.org/)"
            ("https://a.org/w_(x)" . "https://a.org/w_(x)")
            ("https://b.org/y" . "https://b.org/y") ("http://c.org/" . "http://c.org/"))
           ("看https://a.org/x，然后" ("https://a.org/x" . "https://a.org/x"))
           ("[w](https://a.org/w_(x))" ("w" . "https://a.org/w_(x)"))
           ;; Files of the project, and of no other place.
           ("src/main.go:2 and `notes.txt`." ("src/main.go:2" . "src/main.go:2")
            ("notes.txt" . "notes.txt"))
           ("./src/main.go:2:7, src/main.go#L3" ("./src/main.go:2:7" . "./src/main.go:2:7")
            ("src/main.go#L3" . "src/main.go#L3"))
           ("[the file](src/main.go:3)" ("the file" . "src/main.go:3"))
           ("nowhere.txt:3 and/or e.g. 1.5 /etc/passwd ../x ~/.profile /ssh:h:/x.y")
           ;; What is none.
           ("[a](javascript:alert) [b](file:///etc/passwd) [c](data:x) [d](#e)")
           ("[a] (b) []() [](https://a.org)" ("https://a.org" . "https://a.org"))))
      (should (equal (cons text (duet-markup-test-links text)) (cons text links))))
    (should (equal (duet-link-file (concat default-directory "notes.txt:2"))
                   (cons (expand-file-name "notes.txt") 2)))
    (should-not (duet-link-file "src/../../../etc/passwd"))))

(ert-deftest duet-markup-test-honest-links ()
  "A link whose text claims another target keeps that in sight."
  (pcase-dolist
      (`(,text ,shown)
       '(("[good.org](https://evil.org/x)" "[good.org](https://evil.org/x)")
         ("[https://good.org](https://evil.org)" "[https://good.org](https://evil.org)")
         ("[**good**.org/login](https://evil.org)" "[**good**.org/login](https://evil.org)")
         ("[good.org](https://good.org.evil.org)" "[good.org](https://good.org.evil.org)")
         ("[good.org](https://good.org@evil.org)" "[good.org](https://good.org@evil.org)")
         ("[good.org](https://www.good.org/x)" "good.org")
         ("[https://good.org](https://good.org/x)" "https://good.org")
         ("[README.md](https://a.org/b/README.md)" "README.md")
         ("[here](https://evil.org)" "here")
         ("![here](https://evil.org/x.png)" "![here](https://evil.org/x.png)")
         ("[here](https://evil.org \"title\")" "[here](https://evil.org \"title\")")))
    (should (equal (list text (duet-markup-test-shown text)) (list text shown))))
  ;; What could not be seen is written out as everywhere.
  (should (equal (duet-markup-test-shown "**a\u202eb** [x\u200by](https://a.org/\u200b)")
                 "a⟨U+202E⟩b x⟨U+200B⟩y")))

(ert-deftest duet-markup-test-following ()
  "RET opens a link; a page that the text does not name is asked about."
  (duet-markup-test-with-files '("src/main.go")
    (let ((here default-directory)
          (opened '())
          (asked '())
          (answer nil))
      (duet-markup-test-with message
        (setq default-directory here)
        (duet-markup-test-say-all
         message "[here](https://evil.org/x) https://a.org/y [f](src/main.go:2)" 1000)
        (duet-markup-test-look message)
        (cl-letf ((browse-url-browser-function (lambda (url &rest _) (push url opened)))
                  ((symbol-function 'y-or-n-p) (lambda (text) (push text asked) answer)))
          (goto-char (point-min))
          (search-forward "her")
          (should (string-match-p "\\`https://evil.org/x\n"
                                  (duet-link-help nil (current-buffer) (point))))
          (duet-test-listening (duet-test-press "RET" #'duet-transcript-visit))
          (should-not opened)
          (should (equal asked '("Open https://evil.org/x? ")))
          (setq answer t)
          (duet-test-press "RET" #'duet-transcript-visit)
          (should (equal opened '("https://evil.org/x")))
          (search-forward "https://a")
          (duet-test-press "RET" #'duet-transcript-visit)
          (should (equal opened '("https://a.org/y" "https://evil.org/x")))
          (should (length= asked 2))
          (search-forward "[")
          (save-window-excursion
            (duet-test-press "RET" #'duet-transcript-visit)
            (should (equal (list (buffer-file-name (window-buffer))
                                 (with-current-buffer (window-buffer) (line-number-at-pos)))
                           (list (expand-file-name "src/main.go" here) 2)))
            (kill-buffer (window-buffer)))
          ;; A link of the file system leads out of the project.
          (delete-file (expand-file-name "src/main.go" here))
          (make-symbolic-link "/etc/passwd" (expand-file-name "src/main.go" here))
          (duet-test-should-say "leads out of the project"
            (duet-test-press "RET" #'duet-transcript-visit)))))))


;;; Commands

(ert-deftest duet-markup-test-toggle ()
  "A key shows what was written, and a variable does from the beginning."
  (let ((text "# T\n**b** [x](https://a.org)\n\n| a |\n|---|\n| 1 |\n- c\n```sh\nd\n```"))
    (duet-markup-test-with message
      (duet-markup-test-say-all message text 1000)
      (duet-markup-test-look message)
      (cl-flet ((shown () (duet-markup-test-look)
                  (string-trim (duet-markup-test-screen (point-min) (point-max)))))
        (let ((rendered (shown)))
          (should-not (equal rendered text))
          (duet-test-listening (duet-test-press "`" #'duet-markup-toggle))
          (should (equal (shown) text))
          (duet-test-listening (duet-test-press "`" #'duet-markup-toggle))
          (should (equal (shown) rendered)))))
    (let ((duet-markup nil))
      (should (equal (duet-markup-test-shown text) text)))))

(ert-deftest duet-markup-test-copy-code ()
  "A key copies the code at point, or what came before it."
  (duet-markup-test-with message
    (duet-markup-test-say-all
     message (concat "a\n```sh\none\n\ntwo\n```\nb\n- c\n  ```\n  three\n    four\n  ```\n"
                     "d\n```\nopen")
     1000)
    (let ((kill-ring nil) (interprogram-cut-function nil))
      (duet-markup-test-look)
      (pcase-dolist (`(,where ,copied) '(("one" "one\n\ntwo\n") ("```sh" "one\n\ntwo\n")
                                         ("b" "one\n\ntwo\n") ("four" "three\n  four\n")
                                         ("d" "three\n  four\n")))
        (goto-char (point-min))
        (re-search-forward (concat "^ *" where "$"))
        (duet-test-listening (duet-test-press "Y" #'duet-markup-copy-code))
        (should (equal (list where (car kill-ring)) (list where copied))))
      (duet-markup-test-look message)
      (goto-char (point-max))
      (duet-test-listening
        (duet-test-press "Y" #'duet-markup-copy-code)
        (should (duet-test-heard "Copied 1 line\\'")))
      (should (equal (car kill-ring) "open"))
      (goto-char (point-min))
      (duet-test-should-say "no block of code here"
        (duet-test-press "Y" #'duet-markup-copy-code)))))

(ert-deftest duet-markup-test-headings ()
  "Imenu lists headings, without marks, and none that are code."
  (duet-markup-test-with message
    (duet-markup-test-say-all
     message "# One *two*\n\n```sh\n# no\n```\n## `Three` ##\ntext\n#\n" 1000)
    (duet-markup-test-look message)
    (should (equal (mapcar #'car (duet-markup-headings)) '("One two" "Three")))
    (let ((index (alist-get "Headings" (duet-prompts--index) nil nil #'equal)))
      (should (equal (mapcar #'car index) '("One two" "Three")))
      (goto-char (cdadr index))
      (should (looking-at "## `Three`")))))

(provide 'duet-markup-test)
;;; duet-markup-test.el ends here
