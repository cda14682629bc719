;;; duet-markup-test.el --- Tests of Markdown in transcripts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-markup-test-lib)

(ert-deftest duet-markup-test-before-it-is-drawn ()
  "Displayed text has its faces before redisplay.
If redisplay called a function for the faces, a \\`C-g' at that time
would be lost."
  (duet-markup-test-with message
    (save-window-excursion
      (dolist (shown '(nil t))
        (when shown
          (set-window-buffer (selected-window) (current-buffer))
          (goto-char (point-max))
          (set-window-point (selected-window) (point-max)))
        (dotimes (_ 3)
          (duet-markup-test-say message "some **bold** text\n")
          (duet-transcript-flush))
        ;; Text that is not displayed costs nothing.
        (should (eq (and (text-property-any (point-min) (point-max) 'fontified nil) t)
                    (not shown)))))
    (goto-char (point-max))
    (search-backward "bold")
    (should (eq (get-text-property (point) 'face) 'bold))))

;;; Displayed text

(ert-deftest duet-markup-test-inline ()
  "Markup is hidden only where it is markup."
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
         ;; Names and patterns keep their characters.
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
         ;; Chinese text has no spaces.
         ("这是**重要**的" "这是重要的" ("重要" . bold))
         ("**「重要」**的" "「重要」的" ("「重要」" . bold))
         ;; HTML stays visible.
         ("a <b title=\"*x*\">c</b> <!-- *y* -->" "a <b title=\"*x*\">c</b> <!-- *y* -->"
          ("<b title=\"*x*\">" . duet-dim) ("</b>" . duet-dim) ("<!-- *y* -->" . duet-dim))
         ("Vec<u8> 1 < 2 > 0" "Vec<u8> 1 < 2 > 0")))
    (should (equal (list text (duet-markup-test-shown text)) (list text shown)))
    (should (equal (list text (duet-markup-test-faces text)) (cons text (list faces))))))

(ert-deftest duet-markup-test-lines ()
  "Headings, lists, quotes and rules are displayed."
  (pcase-dolist
      (`(,text ,shown)
       '(("# One\n## Two ##\n#no\n####### no" "One\nTwo\n#no\n####### no")
         ("# *a* `b`" "a b")
         ("Title\n=====\ntext" "Title\n=====\ntext")
         ("- a\n* b\n+ c\n1. d\n2) e\n-no" "• a\n• b\n+ c\n1. d\n2) e\n-no")
         ("- a\n  - *b*\n    - c" "• a\n  • b\n    • c")
         ("- [ ] open\n- [x] done\n- [x](y) link\n* [X]" "☐ open\n☑ done\n• x link\n☑ ")
         ("> quoted *text*\n> > twice" "│ quoted text\n│ │ twice")
         ("a\n\n---\n\n***\n_ _ _" "a\n\nR\n\nR\nR")
         ("a **bold\nas well** b" "a bold\nas well b")
         ("- a **bold\n  as well** b" "• a bold\n  as well b")
         ("a **bold\n\nno** b" "a **bold\n\nno** b")
         ("a **bold\n- no** b" "a **bold\n• no** b")
         ;; Indented lines are code.
         ("a\n\n    *code*\n\tmore *code*\n\nb" "a\n\n    *code*\n\tmore *code*\n\nb")
         ("- a\n\n    *text*" "• a\n\n    text")
         ("\tcode *x*" "\tcode *x*")
         ("a\r\n\r\n# b\r\n- c\r\n" "a\n\nb\n• c")))
    (let ((shown (string-replace "R" (make-string 40 ?─)
                                 (string-replace "+ c" "• c" shown))))
      (should (equal (list text (duet-markup-test-shown text)) (list text shown))))))

;;; Text in pieces

(defun duet-markup-test-same (text splits)
  "Fail unless TEXT looks the same at once and in pieces, for each of SPLITS.
A split is a list of positions."
  (let ((looks nil))
    (dolist (cuts (cons '() splits))
      (duet-markup-test-with message
        (duet-markup-test-say-pieces message text cuts)
        (duet-markup-test-look message)
        (let ((this (duet-markup-test-properties)))
          (if (null looks) (setq looks this)
            (should (equal (list text cuts this) (list text cuts looks)))))))))

;; Each cut costs some milliseconds, so many texts get few cuts each.
(ert-deftest duet-markup-test-any-split ()
  "A text looks the same in the end, for any split into pieces."
  (ert-info ((duet-markup-test-seed) :prefix "DUET_TEST_SEED=")
    ;; This has all kinds of lines; each border is a cut once, without neighbours.
    (let* ((text (concat "# T\n\nsome **bold\ntext** b\n\n```python\ndef f():\n  '''a\n  b'''\n"
                         "```\n\n| a | b |\n|---|--:|\n| **1** | 2 |\n| long cell | 33 |\n\n"
                         "Title\n---\n\n    code\n\n> q\n\n---\n- a\n  b\n\n```sh\nunclosed # x"))
           (borders (duet-markup-test-borders text)))
      (duet-markup-test-same
       text (cl-loop for first below 4
                     collect (cl-loop for place in borders
                                      for number from 0
                                      when (= first (% number 4)) collect place))))
    ;; These paragraphs are about one line too long.
    (dolist (lines '(29 30 31 70))
      (let* ((text (concat "**a\n" (apply #'concat (make-list (- lines 2) "b\n")) "c** d"))
             (borders (duet-markup-test-borders text)))
        (duet-markup-test-same
         text (list (duet-markup-test-some borders 4)
                    (append (duet-markup-test-some (butlast borders 9) 2) (last borders 9))))))
    (dotimes (_ 40)
      (let* ((text (duet-markup-test-random duet-markup-test-pieces 40))
             (borders (duet-markup-test-borders text)))
        (duet-markup-test-same
         text (cons (duet-markup-test-some (number-sequence 1 (1- (length text))) 5)
                    (cl-loop repeat 2 collect (duet-markup-test-some borders 7))))))))

(ert-deftest duet-markup-test-tables-that-are-too-wide ()
  "A table that is too wide gets cells of several lines, and fits the window."
  (let* ((text (concat "| Package | What **it** does | Rows |\n|:--|:--|--:|\n"
                       "| internal/wire | keeps sessions, and [says](https://x.org/) what happens | 12 |\n"
                       "| hub | `a` | 3 |\n"))
         (room 36)
         (wide "internal/wire │ keeps sessions, and says what happens │")
         (narrow (concat "│ Package     │ What it     │ Rows │\n"
                         "│             │ does        │      │\n"
                         "├─────────────┼─────────────┼──────┤\n"
                         "│ internal/   │ keeps       │   12 │\n"
                         "│ wire        │ sessions,   │      │\n"
                         "│             │ and says    │      │\n"
                         "│             │ what        │      │\n"
                         "│             │ happens     │      │\n"
                         "├─────────────┼─────────────┼──────┤\n"
                         "│ hub         │ a           │    3 │")))
    (cl-letf (((symbol-function 'duet-table--window-room) (lambda () room)))
      (dolist (size '(1 7 1000))
        (should (equal (duet-markup-test-shown text size) narrow)))
      (duet-markup-test-with message
        (duet-markup-test-say-all message text 1000)
        (duet-markup-test-look message)
        ;; A copy has the agent's text, and a link can be followed.
        (should (equal (filter-buffer-substring (point-min) (+ (point-min) (length text))) text))
        (goto-char (point-min))
        (search-forward "says")
        (should (get-text-property (1- (point)) 'duet-link))
        (setq room 200)
        (should-not (string-search wide (duet-markup-test-screen (point-min) (point-max))))
        (should (duet-table-resized))
        (should-not (duet-table-resized))
        (jit-lock-refontify)
        (duet-markup-test-look message)
        (should (string-search wide (duet-markup-test-screen (point-min) (point-max)))))
      ;; A window that is too narrow for columns shows the table unchanged.
      (setq room 12)
      (should (string-search wide (duet-markup-test-shown text))))))

(ert-deftest duet-markup-test-tables-that-are-drawn ()
  "On a graphic display the bars of rows with wide characters are aligned."
  (let ((text (concat "| Input | 名字 | Kept |\n|:--|:-:|--:|\n| `a` | 一 | ✅ yes |\n"
                      "| plain | b | c |\n| \u00e9 |二二|🎉🎉🎉🎉🎉 |\n")))
    (cl-letf (((symbol-function 'duet-table--drawn-p) #'always))
      (duet-markup-test-with message
        (duet-markup-test-say-all message text 7)
        (duet-markup-test-look message)
        (goto-char (point-min))
        (forward-line 1)
        (let* ((rule (get-text-property (point) 'display))
               (places (cl-loop for char across rule
                                for column from 0
                                when (and (> column 0) (memq char '(?┼ ?┤ ?+ ?|)))
                                collect column)))
          (should (= (length places) 3))
          (cl-flet ((places-of (line)
                      (goto-char (point-min))
                      (forward-line line)
                      (cl-loop for place from (point) below (line-end-position)
                               for display = (get-text-property place 'display)
                               when (eq (car-safe display) 'space)
                               collect (plist-get (cdr display) :align-to))))
            (should (equal (places-of 0) places))
            (should (equal (places-of 2) places))
            ;; The columns are equally wide: nothing has to be aligned.
            (should (equal (places-of 3) '()))
            ;; A bar without a space before it follows its cell.
            (should (equal (places-of 4) (list (nth 0 places) (nth 2 places))))))
        (should (equal (filter-buffer-substring
                        (point-min) (+ (point-min) (length text)))
                       text))))
    ;; A terminal has fixed columns.
    (duet-markup-test-with message
      (duet-markup-test-say-all message text 7)
      (duet-markup-test-look message)
      (should-not (cl-loop for place from (point-min) below (point-max)
                           thereis (consp (get-text-property place 'display)))))))

(ert-deftest duet-markup-test-copied-as-written ()
  "A copy has the original text, and only markup is hidden."
  (random "duet")
  (dotimes (_ 40)
    (let ((text (duet-markup-test-random duet-markup-test-pieces 60)))
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
  "A line that is wrapped for display is copied whole."
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
  "Prompts and tool results are copied without the indentation of the display."
  (duet-markup-test-with message
    (ignore message)
    (dolist (other (list (make-duet-message :key "p" :kind 'prompt :session session :turn "r"
                                            :chunks (list "do it\nat once") :size 13)
                         (make-duet-tool :key "r/1" :kind 'tool :session session :turn "r"
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

(ert-deftest duet-markup-test-much ()
  "Long input of any kind is rendered in bounded time."
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
      ;; A minute would be far too long.
      (should (< (- (float-time (get-internal-run-time)) began) 30)))))

;;; Commands

(ert-deftest duet-markup-test-toggle ()
  "A key shows the original text, and an option does so from the beginning."
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
  "A key copies the code at point, or else the code before it."
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
      ;; The line above the code is a button.
      (goto-char (point-min))
      (search-forward "```sh")
      (goto-char (match-beginning 0))
      (setq kill-ring nil)
      (duet-test-listening
        (duet-test-press "RET" #'duet-transcript-visit)
        (should (duet-test-heard "Copied 3 lines of sh\\'")))
      (should (equal (car kill-ring) "one\n\ntwo\n"))
      (duet-markup-test-look message)
      (goto-char (point-max))
      (duet-test-listening
        (duet-test-press "Y" #'duet-markup-copy-code)
        (should (duet-test-heard "Copied 1 line\\'")))
      (should (equal (car kill-ring) "open"))
      (goto-char (point-min))
      (duet-test-should-say "No code block here"
        (duet-test-press "Y" #'duet-markup-copy-code)))))

(ert-deftest duet-markup-test-headings ()
  "Imenu lists headings without markup, and ignores those in code."
  (duet-markup-test-with message
    (duet-markup-test-say-all
     message "# One *two*\n\n```sh\n# no\n```\n## `Three` ##\ntext\n#\n" 1000)
    (duet-markup-test-look message)
    (should (equal (mapcar #'car (duet-markup-headings)) '("One two" "Three")))
    (let ((index (alist-get "Headings" (duet-transcript-move--index) nil nil #'equal)))
      (should (equal (mapcar #'car index) '("One two" "Three")))
      (goto-char (cdadr index))
      (should (looking-at "## `Three`")))))

(defun duet-markup-test-seen ()
  "Return the visible text of the buffer, without display strings."
  (let ((place (point-min))
        (parts '()))
    (while (< place (point-max))
      (let ((next (next-single-char-property-change place 'invisible)))
        (unless (invisible-p place)
          (push (buffer-substring-no-properties place next) parts))
        (setq place next)))
    (apply #'concat (nreverse parts))))

(ert-deftest duet-markup-test-blank-ends ()
  "Blank lines at the end of a message are hidden, and copied."
  (duet-markup-test-with message
    (pcase-dolist (`(,added ,seen)
                   '(("One.\n\n" "One.\n\n")
                     ("\n" "One.\n\n")
                     (" \n" "One.\n\n")
                     ("Two\n" "One.\n\n\n \nTwo\n\n")
                     (" and three.\n\n" "One.\n\n\n \nTwo\n and three.\n\n")))
      (duet-markup-test-say message added)
      (duet-markup-test-look)
      (should (equal (duet-markup-test-seen) seen)))
    (duet-markup-test-look message)
    (should (equal (duet-markup-test-seen) "One.\n\n\n \nTwo\n and three.\n\n"))
    (should (equal (filter-buffer-substring (point-min) (point-max))
                   "One.\n\n\n \nTwo\n and three.\n\n\n\n"))
    ;; The original text includes them.
    (duet-markup-toggle)
    (should (equal (duet-markup-test-seen) "One.\n\n\n \nTwo\n and three.\n\n\n\n"))))

(ert-deftest duet-markup-test-blank-ends-of-all-kinds ()
  "Tables and code that grow line by line look the same as complete ones."
  (dolist (text '("| a | b |\n|---|---|\n| one | 2 |\n| three | 4 |\n\n"
                  "Text.\n\n```python\ndef f():\n\n    return 1\n\n\n```\n\n\n"
                  "- a\n\n- b\n  - c\n\n\n"))
    (let (whole)
      (duet-markup-test-with message
        (duet-markup-test-say message text)
        (duet-markup-test-look message)
        (setq whole (duet-markup-test-properties))
        (should-not (string-suffix-p "\n\n\n" (duet-markup-test-seen))))
      (dolist (size '(1 2 7))
        (duet-markup-test-with message
          (cl-loop for start from 0 below (length text) by size
                   do (duet-markup-test-say
                       message (substring text start (min (length text) (+ start size))))
                   (duet-markup-test-look)
                   (should-not (string-suffix-p "\n\n\n" (duet-markup-test-seen))))
          (duet-markup-test-look message)
          (should (equal (cons size (duet-markup-test-properties)) (cons size whole))))))))

;; A timer of jit-lock marks text next to the requested text as fontified, whatever
;; has been found out about it since.
(ert-deftest duet-markup-test-found-out-later ()
  "The timer of jit-lock does not mark text that must be fontified again."
  (duet-markup-test-with message
    (duet-markup-test-say message "Some words\nand more\nand\n\n")
    (duet-transcript-flush)
    (jit-lock-fontify-now)
    (goto-char (point-min))
    ;; Fontifying the middle of a paragraph fontifies the rest of it.
    (forward-line 2)
    (with-silent-modifications (put-text-property (point-min) (point-max) 'fontified nil))
    (jit-lock-fontify-now (point) (point-max))
    ;; Now the beginning turns out to be something else.
    (with-silent-modifications (put-text-property (point-min) (point-max) 'fontified nil))
    (let ((ran nil))
      (run-at-time 0.01 nil (lambda () (setq ran t)))
      (duet-test-wait-for ran))
    (should-not (text-property-any (point-min) (point-max) 'fontified t))))

(provide 'duet-markup-test)
;;; duet-markup-test.el ends here
