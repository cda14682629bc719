;;; duet-visible-test.el --- Tests for duet-visible.el  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-visible)
(require 'duet-approvals)
(require 'duet-approvals-footer-test)
(require 'duet-notify)

(defconst duet-visible-test--directory
  (file-name-directory (or load-file-name buffer-file-name))
  "The directory of this file.")

(defconst duet-visible-test--unseen
  "\u202e\u2066\u200b\ufeff\u00ad\U000e0041\u2028\u3164\e\b\u009b\ue000\ufe0f"
  "Invisible characters.")

(defun duet-visible-test--seen-p (text)
  "Return non-nil if TEXT has no invisible character, and U+202E is written out."
  (and (not (string-match-p (concat "[" duet-visible-test--unseen "]") text))
       (string-match-p "U\\+202E" text)))

(ert-deftest duet-visible-test-exact ()
  "Invisible characters are written out; other text keeps its properties."
  (seq-doseq (char duet-visible-test--unseen)
    (let ((shown (duet-visible (propertize (format "a%cb" char) 'duet-x t))))
      (should (string-match-p (format "\\`a.U\\+%04X.b\\'" char) shown))
      (should-not (text-property-not-all 0 (length shown) 'duet-x t shown))
      (should (eq (get-text-property 2 'face shown) 'duet-unseen))
      (should (string-match-p (format "U\\+%04X" char)
                              (duet-visible-prose (format "a%cb" char))))))
  (should (string-match-p "U\\+00A0" (duet-visible "rm\u00a0x")))
  (should (string-match-p "\\` .U\\+0338.a\\'" (duet-visible " \u0338a")))
  (dolist (same '("" "a\n\tb" "größer ✓ 二重奏" "שלום world" "مرحبا" "e\u0301" "हिन्दी"))
    (should (equal (duet-visible same) same))
    (should (equal (duet-visible-prose same) same))))

(ert-deftest duet-visible-test-prose ()
  "Characters that languages and emoji need stay, but only in prose."
  (dolist (same '("👩\u200d💻" "❤\ufe0f" "1\ufe0f" "می\u200cخواهم" "क्\u200dष" "a\u00a0b"))
    (should (equal (duet-visible-prose same) same))
    (should-not (equal (duet-visible same) same)))
  (should (equal (duet-visible-prose "a\r\nb") "a\nb"))
  (should-not (equal (duet-visible-prose "a\u200db") "a\u200db")))

(ert-deftest duet-visible-test-table ()
  "Invisible characters are written out by the rule of duet-rpc."
  (let ((table (with-temp-buffer
                 (insert-file-contents (expand-file-name "../../testdata/visible.json"
                                                         duet-visible-test--directory))
                 (json-parse-buffer :object-type 'plist)))
        (different '()))
    (cl-flet ((ascii (text) (replace-regexp-in-string
                             "⟨" "<" (replace-regexp-in-string "⟩" ">" text))))
      (seq-doseq (case table)
        (let* ((text (plist-get case :text))
               (shown (list (ascii (duet-visible text)) (ascii (duet-visible-prose text))))
               (wanted (list (plist-get case :exact) (plist-get case :prose))))
          (unless (equal-including-properties (mapcar #'substring-no-properties shown) wanted)
            (push (list text shown wanted) different)))))
    (should-not different)))

(ert-deftest duet-visible-test-json ()
  "JSON keeps its meaning when invisible characters are escaped."
  (let* ((text (concat "a" (replace-regexp-in-string "[\e\b]" "" duet-visible-test--unseen) "b"))
         (json (duet-visible-json (json-serialize (vector text)))))
    (should-not (string-match-p (concat "[" duet-visible-test--unseen "]") json))
    (should (equal (aref (json-parse-string json) 0) text))))

(ert-deftest duet-visible-test-question ()
  "A question makes every character visible in each view."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection (concat "quiet hang " "a\u202eb")))
           (buffer (duet-transcript-open connection session))
           (unseen duet-visible-test--unseen))
      (duet-test-wait-for-text buffer "^❯ quiet hang")
      (duet-test-request connection 'createApproval
                         `(:run_id ,(duet-session-leaf-id session) :type "function_call"
                           :tool_name ,(concat "Tool" unseen) :message ,(concat "title" unseen)
                           :tool_input (:command ,(concat "make\u202e" unseen "\ntwo")
                                        :more ,(concat "more" unseen))))
      (duet-test-wait-for (duet-session-approvals session))
      (duet-approvals-flush)
      (let ((approval (car (duet-session-approvals session)))
            (duet-notify-function nil))
        (should (duet-visible-test--seen-p (duet-approval-name approval)))
        (should (duet-visible-test--seen-p (duet-approval-tool approval)))
        (should (duet-visible-test--seen-p (duet-session-name session)))
        (with-current-buffer buffer
          (should (duet-visible-test--seen-p (buffer-string)))
          (should (string-match-p "more: more" (buffer-string))))
        (save-window-excursion
          (duet-approval-view approval)
          (duet-test-wait-for (string-match-p "Input" (buffer-string)))
          (should (duet-visible-test--seen-p (buffer-string)))
          (should (duet-visible-test--seen-p (buffer-name))))
        (save-window-excursion
          (duet-approvals)
          (should (duet-visible-test--seen-p (buffer-string))))
        (save-window-excursion
          (duet-approval-edit approval)
          (duet-test-wait-for (derived-mode-p 'duet-approval-edit-mode))
          (should-not (string-match-p (concat "[" unseen "]") (buffer-string)))
          (set-buffer-modified-p nil))))))

(ert-deftest duet-visible-test-hidden ()
  "A question shows how much of the input is hidden."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "quiet hang"))
           (buffer (duet-transcript-open connection session))
           (command (concat "make test\n" (apply #'concat (make-list 20000 "echo 12345678\n"))
                            "rm -rf ~")))
      (duet-test-wait-for-text buffer "^❯ quiet hang")
      (pcase-dolist (`(,name . ,text) `(("Long" . ,(substring command -50000))
                                        ("Longer" . ,command)))
        (duet-test-request connection 'createApproval
                           `(:run_id ,(duet-session-leaf-id session) :type "function_call"
                             :tool_name ,name :tool_input (:command ,text))))
      (duet-test-wait-for (cdr (duet-session-approvals session)))
      (duet-approvals-flush)
      (with-current-buffer buffer
        (goto-char (point-min))
        (should (re-search-forward "… 35[0-9][0-9] more lines, [0-9]+ characters hidden: \\[v\\] view" nil t))
        (should (search-forward "rm -rf ~" nil t))
        ;; Input that an event left out is fetched, so its size is shown, too.
        (duet-test-wait-for
         (save-excursion
           (duet-approvals-flush)
           (re-search-forward "… 1999[0-9] more lines, [0-9]+ characters hidden: \\[v\\] view"
                              nil t))))
      ;; The whole input is fetched.
      (duet-approval-view (cl-find "Longer" (duet-session-approvals session)
                                   :key #'duet-approval-tool :test #'equal))
      (duet-test-wait-for (string-match-p "rm -rf ~" (buffer-string)))
      (should (string-match-p "make test" (buffer-string))))))

(ert-deftest duet-visible-test-beside ()
  "Input that a diff shows is not repeated; other input is shown."
  (let ((diffs '((:path "/p/a.txt" :old_text "old\n" :new_text "new\n"))))
    (should-not (duet-render-beside '(:file_path "/p/a.txt" :content "new\n") diffs))
    (should (equal (duet-render-beside '(:file_path "/etc/passwd" :content "new\n" :command "new\n")
                                       diffs)
                   '(:file_path "/etc/passwd" :command "new\n")))
    (should (equal (duet-render-beside '(:command "x") nil) '(:command "x")))))

;;; Long lines

(defconst duet-visible-test-shapes
  '("a" "(" "1:" ":" "/" "`" "*" "[" "](" "<" " " "\e[" "\e[31m" "." "a/" "|" "\\" "\r" "http://"
    "\u200d" "é")
  "Units of the long lines.")

(defun duet-visible-test-line (shape count)
  "Return a line of COUNT characters of SHAPE, and an x at its end.
The x makes a regexp for a turn of SHAPE fail at each position."
  (concat (apply #'concat (make-list (/ count (length shape)) shape)) "x"))

(defun duet-visible-test-tool (line)
  "Render a tool call that has LINE in each member."
  (let* ((session (make-duet-session :id "s" :cwd "/" :model (duet-model-create :root "/")))
         (tool (make-duet-tool :key "r/x" :kind 'tool :session session :turn "r" :id "x"
                               :name "Bash" :title line :result line :status 'failed
                               :input (list :command line :other line) :paths (list line)
                               :diffs (list (list :path "a" :old_text line
                                                  :new_text (concat line "b"))))))
    (duet-render-summary tool)
    (duet-render tool)))

(defun duet-visible-test-question (line)
  "Render a question that has LINE in each member."
  (let ((approval (make-duet-approval
                   :id "q" :type "function_call" :title line
                   :data (list :tool_name "Bash" :tool_input (list :command line :x line)))))
    (duet-approval-excerpt approval)
    (duet-approval-summary approval "/")
    (duet-approval-name approval)))

(ert-deftest duet-visible-test-long-lines ()
  "Rendering text of agents takes linear time for long lines of any kind.
The environment variable DUET_TEST_LONG_LINE sets the length of the line; `make
soak' sets 5 MB."
  (let ((functions (list #'duet-visible #'duet-visible-prose #'duet-visible-line
                         #'duet-visible-json #'duet-visible-trim #'duet-render-prose
                         #'duet-render-diff #'duet-build--printed
                         (lambda (line) (duet-link-honest-p line "https://example.com/"))
                         #'duet-link-file #'duet-visible-test-tool #'duet-visible-test-question))
        (gc-cons-threshold (* 256 1024 1024))
        (slow '()))
    (cl-flet ((seconds (function line)
                (garbage-collect)
                ;; Measure processor time: other programs run, too.
                (let ((start (float-time (get-internal-run-time))))
                  (funcall function line)
                  (- (float-time (get-internal-run-time)) start))))
      (dolist (function functions)
        (dolist (shape duet-visible-test-shapes)
          (let* ((length (string-to-number (or (getenv "DUET_TEST_LONG_LINE") "80000")))
                 (longer (seconds function (duet-visible-test-line shape length))))
            ;; If the time is quadratic, eight times the input takes 64 times as long.
            (when (and (> longer 0.5)
                       (> longer (* 30 (seconds function
                                                (duet-visible-test-line shape (/ length 8))))))
              (push (list function shape longer) slow))))))
    (should-not slow)))

(ert-deftest duet-visible-test-long-lines-are-broken ()
  "Each view breaks lines that are too long for Emacs."
  (let ((line (duet-visible-test-line "a" 5000000)))
    (dolist (text (list (duet-visible-test-tool line) (duet-render-diff (concat "+" line))
                        (duet-render-wrap-diff (concat "+" line))))
      (should (< (apply #'max (mapcar #'length (split-string text "\n"))) 6000)))
    ;; Only a length that Emacs can match is searched for a fence.
    (should (duet-visible-test-tool (make-string 600000 ?`)))
    ;; No part of a broken line looks like a line of the diff.
    (should-not (string-match-p "^-" (duet-render-wrap-diff
                                      (concat "+" (make-string 20000 ?-)))))))

(provide 'duet-visible-test)
;;; duet-visible-test.el ends here
