;;; duet-revert-test.el --- Tests of buffers whose files change  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-revert)

(defmacro duet-revert-test-with-file (name text &rest body)
  "Run BODY in a buffer that visits a new file with TEXT.
NAME is bound to the file's name.  Agents' changes of files are observed."
  (declare (indent 2) (debug (symbolp form body)))
  `(let* ((folder (file-name-as-directory (make-temp-file "duet-revert" t)))
          (,name (concat folder "f.txt"))
          (duet-revert--paths '())
          (inhibit-message t))
     (write-region ,text nil ,name nil 'quiet)
     (unwind-protect
         (with-current-buffer (find-file-noselect ,name)
           (unwind-protect (progn ,@body)
             (set-buffer-modified-p nil)
             (kill-buffer)))
       (delete-directory folder t))))

(defun duet-revert-test-write (file text)
  "Replace the content of FILE by TEXT, as another program does, and report it."
  (with-temp-buffer
    (insert text)
    (let ((coding-system-for-write 'utf-8-unix))
      (write-region nil nil (concat file ".new") nil 'quiet)))
  (rename-file (concat file ".new") file t)
  (set-file-times file (time-add nil (random 1000)))
  (duet-revert--observe nil 'file nil file nil))

(ert-deftest duet-revert-test-turn ()
  "When an agent writes a file, its buffer is reverted without a message."
  (duet-test-with-project connection
    (duet-model-add-observer #'duet-revert--observe)
    (let ((file (expand-file-name "demo.txt" (duet-connection-root connection))))
      (write-region "one\ntwo\n" nil file nil 'quiet)
      (set-file-times file (time-subtract nil 10))
      (with-current-buffer (find-file-noselect file)
        (goto-char (point-min))
        (search-forward "tw")
        (let* ((session (duet-test-launch connection "hello"))
               (approval (duet-test-wait-for (car (duet-session-approvals session)))))
          (duet-test-listening
            (duet-test-request connection 'approval.decide
                               (list :approval (duet-approval-id approval)
                                     :decision "approve"))
            (duet-test-wait-for (equal (buffer-string) "one\ntwo\nTurn 1: hello\n"))
            (should-not duet-test-said)))
        (should-not (buffer-modified-p))
        (should (verify-visited-file-modtime))
        (should (looking-at "o\nTurn"))
        (should (equal (duet-test-log) ""))))))

(ert-deftest duet-revert-test-place ()
  "Point stays on its text, undo works, and the file's line ends stay."
  (duet-revert-test-with-file file "a\r\nb\r\nc\r\n"
    (should (eq (coding-system-eol-type buffer-file-coding-system) 1))
    (buffer-enable-undo)
    (goto-char (point-min))
    (search-forward "b")
    (duet-revert-test-write file "new\na\nb\nC\n")
    (duet-test-wait-for (verify-visited-file-modtime))
    (should (equal (buffer-string) "new\na\nb\nC\n"))
    (should (looking-back "^b" (line-beginning-position)))
    (should (eq (coding-system-eol-type buffer-file-coding-system) 0))
    (primitive-undo 100 buffer-undo-list)
    (should (equal (buffer-string) "a\nb\nc\n"))))

(ert-deftest duet-revert-test-left-alone ()
  "Changes, a deleted or remote file, and the option prevent a revert."
  (duet-revert-test-with-file file "old\n"
    (insert "mine ")
    (let ((duet-revert-buffers nil))
      (duet-revert-test-write file "new\n")
      (should-not duet-revert--paths))
    (duet-revert-test-write file "new\n")
    (duet-test-wait-for (null duet-revert--paths))
    (should (equal (buffer-string) "mine old\n"))
    (set-buffer-modified-p nil)
    (delete-file file)
    (dolist (path (list file "/ssh:nowhere:/f.txt" "f.txt" nil '(1)))
      (duet-revert--observe nil 'file nil path nil))
    (should (equal duet-revert--paths (list file)))
    (duet-test-wait-for (null duet-revert--paths))
    (should (equal (buffer-string) "mine old\n"))
    ;; An error is logged.
    (write-region "new\n" nil file nil 'quiet)
    (let ((before-revert-hook (list (lambda () (error "No revert")))))
      (duet-revert-test-write file "newer\n")
      (duet-test-wait-for (null duet-revert--paths)))
    (should (string-match-p "No revert" (duet-test-log)))))

(ert-deftest duet-revert-test-minibuffer ()
  "While the minibuffer is active nothing is reverted; afterwards it is."
  (duet-revert-test-with-file file "old\n"
    (let ((reads t))
      (cl-letf (((symbol-function 'active-minibuffer-window) (lambda () reads)))
        (duet-revert-test-write file "new\n")
        (duet-test-wait-for (memq #'duet-revert--soon minibuffer-exit-hook))
        (should (equal (buffer-string) "old\n"))
        (setq reads nil)
        (run-hooks 'minibuffer-exit-hook)
        (duet-test-wait-for (equal (buffer-string) "new\n"))
        (should-not (memq #'duet-revert--soon minibuffer-exit-hook))))))

(provide 'duet-revert-test)
;;; duet-revert-test.el ends here
