;;; duet-package-test.el --- Tests of the package's files and metadata  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The end-to-end tests in test/e2e check that the package can be installed and that
;; `duet' is available then.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'package)
(require 'seq)
(require 'duet)

(defconst duet-package-test-folder
  (file-name-directory (locate-library "duet"))
  "The directory of the package.")

(ert-deftest duet-package-test-recipe ()
  "The recipe for MELPA has exactly the files of the package."
  (let* ((root (expand-file-name ".." duet-package-test-folder))
         (file (expand-file-name ".ci/melpa/duet" root)))
    (unless (file-exists-p file)
      (ert-skip "This is no clone of the repository"))
    (let* ((recipe (with-temp-buffer (insert-file-contents file) (read (current-buffer))))
           (files (cl-mapcan (lambda (pattern)
                               (file-expand-wildcards (expand-file-name pattern root)))
                             (plist-get (cdr recipe) :files))))
      (should (eq (car recipe) 'duet))
      (should (eq (plist-get (cdr recipe) :fetcher) 'github))
      (should (equal (sort (mapcar #'file-name-nondirectory files) #'string<)
                     (directory-files duet-package-test-folder nil
                                      "\\`\\(duet.*\\.el\\|duet\\.texi\\)\\'"))))))

(ert-deftest duet-package-test-header ()
  "The package names its requirements, and has the version of its server."
  (with-temp-buffer
    (insert-file-contents (expand-file-name "duet.el" duet-package-test-folder))
    (let ((description (package-buffer-info)))
      (should (equal (package-desc-reqs description) '((emacs (28 1)))))
      (should (string-prefix-p (concat duet-connection-version ".")
                               (package-version-join
                                (package-desc-version description)))))))

(ert-deftest duet-package-test-autoloads ()
  "`duet' defines or autoloads each command that has an autoload cookie."
  (let ((commands '()))
    (dolist (file (directory-files duet-package-test-folder t "\\`duet.*\\.el\\'"))
      (unless (string-match-p "-\\(?:test\\|test-lib\\|autoloads\\|pkg\\)\\.el\\'" file)
        (with-temp-buffer
          (insert-file-contents file)
          (while (re-search-forward "^;;;###autoload" nil t)
            (pcase (read (current-buffer))
              (`(,(or 'defun 'defalias 'autoload) ,name . ,_)
               (push (if (consp name) (cadr name) name) commands)))))))
    (should (memq 'duet-search commands))
    (should (memq 'duet-dispatch commands))
    (should-not (seq-remove #'fboundp commands))))

(provide 'duet-package-test)
;;; duet-package-test.el ends here
