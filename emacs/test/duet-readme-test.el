;;; duet-readme-test.el --- The Lisp examples in the documentation  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The tests run the Lisp blocks of README.md and docs/clients.md unchanged,
;; except for the path of the program.

;;; Code:

(require 'duet-test-lib)
(require 'duet)

(defconst duet-readme-test--root
  (expand-file-name "../.." (file-name-directory
                             (or load-file-name buffer-file-name "./")))
  "The root of the repository.")

(defun duet-readme-test--block (file words)
  "Return the Lisp block of FILE that contains WORDS, with the tested program."
  (with-temp-buffer
    (insert-file-contents (expand-file-name file duet-readme-test--root))
    (search-forward words)
    (let ((beg (save-excursion (re-search-backward "^```elisp\n") (match-end 0)))
          (end (progn (re-search-forward "^```$") (match-beginning 0))))
      (string-replace "/path/to/bin/duet-rpc" (car duet-rpc-command)
                      (buffer-substring-no-properties beg end)))))

(ert-deftest duet-readme-test-setup ()
  "The README's lines for the init file bind the keys, in a new Emacs."
  (let* ((duet-rpc-command (duet-test-server))
         (block (duet-readme-test--block "README.md" "(require 'duet)\n"))
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
  "The Lisp example of docs/clients.md starts a session."
  (duet-test-with-project connection
    (let ((before (process-list)))
      (unwind-protect
          (should (plist-get (eval (read (concat "(progn "
                                                 (duet-readme-test--block
                                                  "docs/clients.md"
                                                  "(duet-rpc-connect :command")
                                                 ")"))
                                   t)
                             :session_uuid))
        (mapc #'delete-process (seq-difference (process-list) before))))))

(provide 'duet-readme-test)
;;; duet-readme-test.el ends here
