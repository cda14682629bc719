;;; duet-readme-test.el --- What the README tells to type  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The blocks of Lisp in the README are run as they stand there, but for the
;; place of the program.

;;; Code:

(require 'duet-test-lib)
(require 'duet)

(defconst duet-readme-test--file
  (expand-file-name "../../README.md" (file-name-directory
                                       (or load-file-name buffer-file-name "./")))
  "The README.")

(defun duet-readme-test--block (words)
  "Return the block of Lisp of the README that has WORDS, with our program."
  (with-temp-buffer
    (insert-file-contents duet-readme-test--file)
    (search-forward words)
    (let ((beg (save-excursion (re-search-backward "^```elisp\n") (match-end 0)))
          (end (progn (re-search-forward "^```$") (match-beginning 0))))
      (string-replace "/path/to/bin/duet-rpc" (car duet-rpc-command)
                      (buffer-substring-no-properties beg end)))))

(ert-deftest duet-readme-test-setup ()
  "What the README tells to put into one's init file makes the keys, in a new Emacs."
  (let* ((duet-rpc-command (duet-test-server))
         (block (duet-readme-test--block "(require 'duet)\n"))
         (wanted '(duet t duet-approval-next t))
         (program (car duet-rpc-command)))
    (with-temp-buffer
      (should (equal (list (call-process
                            (expand-file-name invocation-name invocation-directory) nil t nil
                            "-Q" "--batch" "-L" (file-name-directory (locate-library "duet"))
                            "--eval" (concat "(progn " block ")")
                            "--eval" (format "%S" '(let ((d (key-binding (kbd "C-c d")))
                                                         (n (key-binding (kbd "C-c D"))))
                                                     (prin1 (list d (commandp d)
                                                                  n (commandp n)
                                                                  duet-rpc-command)))))
                           (buffer-string))
                     (list 0 (format "%S" (append wanted `((,program))))))))))

(ert-deftest duet-readme-test-request ()
  "What the README tells to do from Lisp begins a session."
  (duet-test-with-project connection
    (let ((before (process-list)))
      (unwind-protect
          (should (plist-get (eval (read (concat "(progn "
                                                 (duet-readme-test--block
                                                  "(duet-rpc-connect :command")
                                                 ")"))
                                   t)
                             :session_id))
        (mapc #'delete-process (seq-difference (process-list) before))))))

(provide 'duet-readme-test)
;;; duet-readme-test.el ends here
