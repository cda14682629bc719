;;; duet-build-test.el --- Tests of builds  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'flymake)
(require 'duet-test-lib)
(require 'duet-build)
(require 'duet-build-flymake)

(defmacro duet-build-test-with (shell &rest body)
  "Run BODY in a project whose build command is the shell command SHELL.
`connection' and `build', the buffer of the build, are bound.  It is built once."
  (declare (indent 1) (debug (form body)))
  `(duet-test-with-project connection
     (let ((root (duet-connection-root connection))
           (duet-build-flymake--found (make-hash-table :test #'equal))
           (compilation-ask-about-save nil)
           build)
       (duet-build-test-configure connection ,shell)
       (write-region "one\ntwo (2\nthree\n" nil (expand-file-name "a.txt" root) nil 'quiet)
       (save-window-excursion
         (with-current-buffer (duet-sessions-buffer connection)
           (call-interactively #'duet-build))
         (setq build (duet-build-buffer connection))
         (unwind-protect (progn ,@body)
           (with-current-buffer build (duet-build--drop)))))))

(defun duet-build-test-configure (connection shell)
  "Make the shell command SHELL the build command of the project of CONNECTION."
  (let ((folder (expand-file-name "../config/duet/" (duet-connection-root connection))))
    ;; A file of the project would need trust first.
    (ignore-error file-missing
      (delete-file (expand-file-name ".duet.toml" (duet-connection-root connection))))
    (make-directory folder t)
    (with-temp-file (expand-file-name "config.toml" folder)
      (insert "default_agent = \"demo\"\n\n[[builds]]\nname = \"all\"\nshell = '''" shell "'''\n"))))

(defun duet-build-test-ended (build)
  "Wait until the build in the buffer BUILD has ended."
  (duet-test-wait-for (and (null (buffer-local-value 'duet-build--request build))
                           (buffer-local-value 'duet-build--outcome build))))

(ert-deftest duet-build-test-mistakes ()
  "`next-error' visits the diagnostics from anywhere, at their output lines."
  (duet-build-test-with "echo begins; echo a.txt:2:5: error: wrong; echo a.txt:3: warning: odd; exit 3"
    (duet-test-wait-for-text build "^Build failed: .*\nIt took ")
    (duet-build-test-ended build)
    (with-current-buffer build
      (should (equal (substring-no-properties (duet-build--mode-line)) ":exit [3] [1 1 0]"))
      ;; Each line appears once.
      (should (= 1 (count-matches "^a\\.txt:2" (point-min) (point-max))))
      (goto-char (point-min))
      (duet-test-press "n" #'duet-build-next)
      (should (looking-at "a\\.txt:2:5"))
      (duet-test-press "n" #'duet-build-next)
      (should (looking-at "a\\.txt:3"))
      (duet-test-should-say "no more" (duet-test-press "n" #'duet-build-next))
      (duet-test-press "p" #'duet-build-previous)
      (should (looking-at "a\\.txt:2:5"))
      (duet-test-should-say "no more" (duet-test-press "p" #'duet-build-previous)))
    (with-temp-buffer
      (next-error 1 t)
      (set-buffer (window-buffer))
      (should (equal (file-name-nondirectory buffer-file-name) "a.txt"))
      (should (looking-at "(2"))
      (next-error)
      (set-buffer (window-buffer))
      (should (looking-at "three"))
      (should-error (next-error) :type 'user-error))
    (switch-to-buffer build)
    (goto-char (point-min))
    (re-search-forward "^a\\.txt:3")
    (duet-test-press "C-o" #'duet-build-display)
    (should (eq (window-buffer) build))
    (duet-test-click #'duet-build-visit-mouse)
    (duet-test-look)
    (should (looking-at "three"))
    ;; Wherever point is, the one after the last visited one is next.
    (with-current-buffer build
      (setq duet-build--current nil)
      (goto-char (point-max)))
    (with-temp-buffer
      (next-error)
      (set-buffer (window-buffer))
      (should (looking-at "(2")))
    (should (equal (duet-test-log) ""))))

(ert-deftest duet-build-test-line-of-its-own ()
  "A diagnostic without an output line gets its own line.
Text that only looks like a diagnostic is ignored."
  (duet-build-test-with "echo a.txt 7 is not a mistake; exit 1"
    (duet-build-test-ended build)
    (with-current-buffer build
      (goto-char (point-min))
      (duet-test-should-say "no more" (duet-test-press "n" #'duet-build-next))
      (duet-build--found '(:file "src/b.txt" :line 12 :column 3 :severity "error" :message "bad"))
      (goto-char (point-min))
      (duet-test-press "n" #'duet-build-next)
      (should (looking-at "src/b\\.txt:12:3: error: bad$"))
      (duet-test-should-say "no file" (duet-test-press "RET" #'duet-build-visit)))))

(ert-deftest duet-build-test-lines ()
  "The line of a diagnostic is found in the location formats of various tools."
  (with-temp-buffer
    (duet-build-mode)
    (setq duet-build--output (copy-marker (point-min))
          duet-build--located (copy-marker (point-min))
          duet-build--counts (list 0 0 0))
    (let ((inhibit-read-only t))
      (insert "./main.go:9:6: declared\n"
              "error[E0308]: mismatched\n  --> src/main.rs:3:5\n"
              "src/a.ts(13,5): error TS1\n"
              "  File \"t.py\", line 4, in f\n"
              "xmain.go:9:1: another file\n"
              "main.go:9:8: the same line again\n"))
    (cl-flet ((line (file number)
                (let ((place (duet-build--line (list :file file :line number))))
                  (and place (line-number-at-pos place)))))
      (should (= (line "main.go" 9) 1))
      (should (= (line "src/main.rs" 3) 3))
      (should (= (line "src/a.ts" 13) 4))
      (should-not (line "src/a.ts" 1))
      (should (= (line "t.py" 4) 5))
      (should-not (line "main.go" 8))
      (duet-build--found '(:file "main.go" :line 9 :severity "error" :message "x"))
      (duet-build--found '(:file "main.go" :line 9 :severity "note" :message "y"))
      (should (equal duet-build--counts '(1 0 1)))
      (goto-char (point-min))
      (should (duet-build--move 1))
      (should (looking-at "main\\.go:9:8")))))

(ert-deftest duet-build-test-cancel ()
  "C-c C-k cancels a build and says so; `g' starts another."
  (duet-build-test-with "echo begins; exec sleep 1000"
    (duet-test-wait-for-text build "^begins$")
    (with-current-buffer build
      (duet-test-press "C-c C-k" #'duet-build-cancel)
      (duet-test-wait-for-text build "^Build ended by you$")
      (should (string-prefix-p ":cancelled" (duet-build--mode-line)))
      (duet-test-should-say "No build is running" (duet-test-press "C-c C-k" #'duet-build-cancel))
      (duet-build-test-configure connection "echo second")
      (duet-test-press "g" #'duet-build-again)
      (duet-test-wait-for-text build "^second\n\nBuild finished$")
      (should-not (string-match-p "begins" (buffer-string))))
    (should (equal (duet-test-log) ""))))

(ert-deftest duet-build-test-one-after-the-other ()
  "A new build replaces a running one, whose events are ignored."
  (duet-build-test-with "echo begins; exec sleep 1000"
    (duet-test-wait-for-text build "^begins$")
    (duet-build-test-configure connection "echo second")
    (with-current-buffer build
      (cl-letf (((symbol-function 'yes-or-no-p) #'ignore))
        (duet-test-should-say "The build continues" (duet-test-press "g" #'duet-build-again)))
      (cl-letf (((symbol-function 'yes-or-no-p) #'always))
        (duet-test-press "g" #'duet-build-again))
      (duet-test-wait-for-text build "^second\n\nBuild finished$")
      (should-not (string-match-p "begins" (buffer-string))))))

(ert-deftest duet-build-test-nothing ()
  "A missing or untrusted build command is reported."
  (duet-test-with-project connection
    (save-window-excursion
      (with-current-buffer (duet-sessions-buffer connection)
        (call-interactively #'duet-build))
      (duet-test-wait-for-text (duet-build-buffer connection) "^Nothing was built: ")
      (duet-test-wait-for-text (duet-build-buffer connection) "your trust")
      (delete-file (expand-file-name ".duet.toml" (duet-connection-root connection)))
      (duet-test-listening
        (duet-build--choose connection)
        (duet-test-wait-for (duet-test-heard "^Found nothing to build"))))))

(ert-deftest duet-build-test-choose ()
  "A prefix argument offers the builds that the server has."
  (duet-build-test-with "echo the first"
    (duet-build-test-ended build)
    (let ((asked nil))
      (cl-letf (((symbol-function 'completing-read)
                 (lambda (_prompt names &rest _) (setq asked names) (car names))))
        (duet-build--choose connection)
        (duet-test-wait-for asked))
      (should (equal asked '("all")))
      (duet-test-wait-for (equal (buffer-local-value 'duet-build--name build) "all"))
      (duet-build-test-ended build)
      (duet-test-wait-for-text build "^the first\n\nBuild finished"))))

(ert-deftest duet-build-test-drawn ()
  "Output shows colours and the last state of a redrawn line.
Other escape sequences become visible."
  (should (equal (substring-no-properties (duet-build--printed "a\e[31mb\e[0m\n10%\r20%\rdone\r\n"))
                 "ab\ndone\n"))
  (should-not (string-match-p "\e" (duet-build--printed "\e]0;title\a"))))

(ert-deftest duet-build-test-flymake ()
  "Flymake shows the diagnostics of any client's build until the next one ends."
  (duet-build-test-with "echo a.txt:2:5: error: wrong; exit 1"
    (duet-build-test-ended build)
    (duet-model-add-observer #'duet-build-flymake--observe)
    (with-current-buffer (find-file-noselect (expand-file-name "a.txt" root))
      (setq-local flymake-diagnostic-functions (list #'duet-build-flymake))
      (flymake-mode 1)
      (flymake-start)
      (cl-flet ((shown ()
                  (mapcar (lambda (diagnostic)
                            (list (line-number-at-pos (flymake-diagnostic-beg diagnostic))
                                  (flymake-diagnostic-type diagnostic)
                                  (flymake-diagnostic-text diagnostic)))
                          (flymake-diagnostics))))
        (should-not (shown))
        ;; Another client's build is known only from the event.
        (duet-connection-request connection 'build nil :error-fn #'ignore)
        (duet-test-wait-for (equal (mapcar #'butlast (shown)) '((2 :error))))
        (should (string-match-p "wrong" (nth 2 (car (shown)))))
        ;; The diagnostic moves with the text.
        (goto-char (point-min))
        (insert "zero\n")
        (flymake-start)
        (should (equal (mapcar #'car (shown)) '(3)))
        (set-buffer-modified-p nil)
        (duet-build-test-configure connection "true")
        (duet-test-request connection 'build nil)
        (duet-test-wait-for (null (shown)))))
    (should (equal (duet-test-log) ""))))

(ert-deftest duet-build-test-flymake-turned-on ()
  "If the option is on, Flymake is enabled in files with diagnostics.
That includes files that are visited later."
  (let ((duet-build-flymake--found (make-hash-table :test #'equal))
        (duet-build-flymake-turn-on nil)
        (model (duet-model-create :root temporary-file-directory))
        (file (make-temp-file "duet-build-test" nil ".txt" "one\ntwo\n")))
    (unwind-protect
        (let ((tell (lambda ()
                      (duet-build-flymake--observe
                       model 'build nil
                       (list :stage "failed" :name "x"
                             :diagnostics (vector (list :file (file-name-nondirectory file) :line 2
                                                        :severity "warning" :message "odd")))
                       nil)))
              (flymake-diagnostic-functions nil))
          (with-current-buffer (find-file-noselect file)
            (funcall tell)
            (should-not (bound-and-true-p flymake-mode))
            (let ((duet-build-flymake-turn-on t))
              (funcall tell)
              (should (bound-and-true-p flymake-mode)))
            (kill-buffer))
          (with-current-buffer (find-file-noselect file)
            (duet-build-flymake--visited)
            (should (equal (mapcar #'cddr duet-build-flymake--shown) '((:warning "odd"))))
            (kill-buffer)))
      (delete-file file))))

(provide 'duet-build-test)
;;; duet-build-test.el ends here
