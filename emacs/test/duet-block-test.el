;;; duet-block-test.el --- Tests of code and tables in messages  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'python)
(require 'duet-markup-test-lib)

(ert-deftest duet-block-test-code ()
  "Code is shown literally, between lines that name its language."
  (pcase-dolist
      (`(,text ,shown)
       '(("a\n```sh\n# *x* `y`\n```\n*b*" "a\n── sh\n# *x* `y`\n──\nb")
         ("```\n*open*\n\n# still" "──\n*open*\n\n# still")
         ("````md\n```\n*x*\n```\n````\n*b*" "── md\n```\n*x*\n```\n──\nb")
         ("~~~ c\n```\n~~~~\n*b*" "── c\n```\n──\nb")
         ("``` not `code`\n*b*" "``` not code\nb")
         ("- a\n  ```c\n  int *p, *q;\n  ```\n- *b*" "• a\n  ── c\n  int *p, *q;\n  ──\n• b")
         ("```c\r\nint x;\r\n```\r\n" "── c\nint x;\n──")))
    (should (equal (list text (duet-markup-test-shown text)) (list text shown)))))

(ert-deftest duet-block-test-colors ()
  "Code has the colours of its language, or one colour if Emacs has no mode."
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
    (should (rassoc '(duet-code duet-code-block) faces))))

(ert-deftest duet-block-test-nothing-runs ()
  "Code of an agent runs no hooks and sets no file variables, and has a limit."
  (let ((ran '()))
    (cl-letf* ((note (lambda (&rest _) (push 'hook ran)))
               ((default-value 'python-mode-hook) (list note))
               (prog-mode-hook (list note))
               (change-major-mode-hook (list note))
               (after-change-major-mode-hook (list note))
               (find-file-hook (list note)))
      (when-let ((buffer (get-buffer " *duet code: python-mode*"))) (kill-buffer buffer))
      (duet-markup-test-with message
        ;; The mode of the transcript itself has run already.
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
      ;; Long code is coloured only at the beginning; code with long lines is not.
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

(ert-deftest duet-block-test-foreign-mode ()
  "A mode that is not part of Emacs is not called."
  (let ((called nil)
        (duet-code--known (make-hash-table :test #'equal)))
    (cl-letf (((symbol-function 'ruby-mode) (lambda () (setq called t)))
              (load-history nil))
      (put 'ruby-mode 'function-history nil)
      (should-not (duet-code-mode-of "ruby"))
      (should-not called))))

;;; Tables

(ert-deftest duet-block-test-tables ()
  "The columns of tables are aligned, with any text in their cells."
  (pcase-dolist
      (`(,text ,shown)
       '(("| a | bc |\n|---|:-:|\n| **def** | g |"
          "│ a   │ bc │\n├─────┼────┤\n│ def │ g  │")
         ("|n|right|\n|-|-:|\n|1|2|\n|10|20|\nafter"
          "│ n  │ right │\n├────┼───────┤\n│ 1  │     2 │\n│ 10 │    20 │\nafter")
         ("a | b\n--|--\n1 | 2" "a │ b\n──┼──\n1 │ 2")
         ;; Bars may be escaped, also in code.
         ("| a | b |\n|---|---|\n| x\\|y | `p\\|q` |" "│ a   │ b    │\n├─────┼──────┤\n│ x|y │ p\\|q │")
         ;; Chinese characters and emoji are wide.
         ("| 名字 | x |\n|---|---|\n| a | 😀 |" "│ 名字 │ x  │\n├──────┼────┤\n│ a    │ 😀 │")
         ;; Rows may have too few or too many cells.
         ("| a | b |\n|---|---|\n| 1 |\n| 1 | 2 | 3 |"
          "│ a │ b │\n├───┼───┤\n│ 1 │\n│ 1 │ 2 │ 3 │")
         ("| |\n|---|\n| 1 |" "│   │\n├───┤\n│ 1 │")
         ;; These are not tables.
         ("| a | b |\n|---|\n| 1 |" "| a | b |\n|---|\n| 1 |")
         ("| a |\ntext" "| a |\ntext")
         ("text\n|---|" "text\n|---|")
         ("```\n| a |\n|---|\n```" "──\n| a |\n|---|\n──")))
    (should (equal (list text (duet-markup-test-shown text)) (list text shown)))))

(ert-deftest duet-block-test-growing-table ()
  "A wider row also widens the rows before it, up to a number of rows."
  (duet-markup-test-with message
    (duet-markup-test-say-all message "| a | b |\n|---|---|\n| 1 | 2 |\n" 5)
    (cl-flet ((shown ()
                (let ((section (duet-section-get "m")))
                  (duet-markup-test-look)
                  (split-string (duet-markup-test-screen
                                 (duet-section-beg section) (duet-section-end section))
                                "\n"))))
      (should (equal (car (shown)) "│ a │ b │"))
      ;; An incomplete row is shown literally.
      (duet-markup-test-say message "| wide ")
      (should (equal (last (shown)) '("| wide ")))
      (should (equal (car (shown)) "│ a │ b │"))
      (duet-markup-test-say message "cell | x |\n")
      (should (equal (seq-take (shown) 4)
                     '("│ a         │ b │" "├───────────┼───┤" "│ 1         │ 2 │"
                       "│ wide cell │ x │")))
      (duet-markup-test-say message (apply #'concat (make-list 200 "| 1 | 2 |\n")))
      (duet-markup-test-say message "| a cell that is much wider | 2 |\n")
      (should (equal (car (shown)) "│ a         │ b │")))))

;;; Text that is not displayed

(defconst duet-block-test--page
  (concat "## A heading\n\nSome **prose** with `code` in it, and\na second *line*.\n\n"
          "- an item\n- **another**\n\n```python\ndef f(x):\n    return \"42\" + x\n```\n\n"
          "| Name | Count |\n|---|--:|\n| **a** | 1 |\n| `longer` | 1000 |\n\n> quoted\n\n")
  "Text with each kind of Markdown.")

(ert-deftest duet-block-test-costs-nothing-unseen ()
  "Blocks that are not displayed leave nothing but text in the buffer.
Text properties for each block would slow down garbage collection."
  (duet-markup-test-with message
    (dotimes (_ 20)
      (duet-markup-test-say
       message (apply #'concat (make-list 20 duet-block-test--page)))
      (duet-transcript-flush))
    (setf (duet-message-open message) nil)
    (duet-transcript--note message 'redraw)
    (duet-transcript-flush)
    (let ((blocks (duet-section-blocks (duet-section-get "m"))))
      ;; All blocks are known: each page has some code and a table.
      (should (= (duet-block--list-size blocks) (* 4 2 400)))
      (should-not (duet-block--list-seen blocks)))
    (should (< (length (object-intervals (current-buffer))) 200))))

(ert-deftest duet-block-test-looked-at-anywhere ()
  "A page looks the same whether or not the text before it was displayed."
  (let ((text (apply #'concat (make-list 60 duet-block-test--page)))
        looks)
    (duet-markup-test-with message
      (duet-markup-test-say-all message text 500)
      (duet-markup-test-look message)
      (setq looks (duet-markup-test-properties)))
    (duet-markup-test-with message
      ;; The text arrives undisplayed; then parts of it are displayed.
      (duet-markup-test-say message text)
      (setf (duet-message-open message) nil)
      (duet-transcript-flush)
      (should-not (equal (duet-markup-test-properties) looks))
      (random "duet")
      (dotimes (_ 100)
        (let ((beg (+ (point-min) (random (buffer-size)))))
          (jit-lock-fontify-now beg (min (point-max) (+ beg 1500)))))
      (duet-markup-test-look)
      (should (equal (duet-markup-test-properties) looks)))))

(ert-deftest duet-block-test-looked-at-before-it-is-known ()
  "Text that is displayed before its lines are parsed is redrawn afterwards."
  (duet-markup-test-with message
    (duet-markup-test-say message (apply #'concat (make-list 200 duet-block-test--page)))
    (setf (duet-message-open message) nil)
    ;; Pending input makes each step short.
    (cl-letf (((symbol-function 'input-pending-p) (lambda (&rest _) t)))
      (let ((steps 0))
        (while (progn (setq steps (1+ steps))
                      (jit-lock-fontify-now)
                      (duet-transcript--work)))
        (should (> steps 2))))
    (duet-markup-test-look)
    (let ((section (duet-section-get "m")))
      (should-not (string-match-p
                   "```\\||---" (duet-markup-test-screen (duet-section-beg section)
                                                        (duet-section-end section)))))))

(ert-deftest duet-block-test-mode-loaded-in-silence ()
  "A major mode is loaded only after a moment without input."
  (let ((noninteractive nil)
        (idle nil))
    (when-let ((buffer (get-buffer (duet-code--name 'python-mode)))) (kill-buffer buffer))
    (cl-letf (((symbol-function 'current-idle-time) (lambda () idle)))
      (duet-markup-test-with message
        (duet-markup-test-say-all message "```python\nx = 'a'\n```\n" 1000)
        (duet-transcript-flush)
        (jit-lock-fontify-now)
        (should duet-code--queue)
        (should-not (duet-code-work (+ 1 (float-time))))
        (should-not (get-buffer (duet-code--name 'python-mode)))
        ;; A timer continues the work.
        (should duet-code--timer)
        (setq idle (seconds-to-time 1))
        (while (duet-code-work (+ 1 (float-time))))
        (should-not duet-code--queue)
        (goto-char (point-min))
        (search-forward "'a")
        (should (get-text-property (1- (point)) 'duet-colored))))))

(ert-deftest duet-block-test-mode-loaded-keeps-message ()
  "Loading a major mode restores the message in the echo area."
  (let ((shown "Sent: hello"))
    (cl-letf (((symbol-function 'current-message) (lambda () shown))
              ((symbol-function 'message)
               (lambda (format &rest arguments)
                 (setq shown (and format (apply #'format-message format arguments)))))
              ((symbol-function 'duet-block-test-mode)
               (lambda () (message "Can't guess") (message nil))))
      (unwind-protect (should (duet-code--hidden 'duet-block-test-mode))
        (ignore-errors (kill-buffer (duet-code--name 'duet-block-test-mode))))
      (should (equal shown "Sent: hello")))))

(provide 'duet-block-test)
;;; duet-block-test.el ends here
