;;; duet-package-test.el --- What archives make of the package  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; That the package can be installed, and that `duet' is there then, is tested
;; end to end, in test/e2e.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'package)
(require 'seq)
(require 'duet)

(defconst duet-package-test-folder
  (file-name-directory (locate-library "duet"))
  "Where the package is.")

(ert-deftest duet-package-test-recipe ()
  "The recipe for MELPA takes what belongs to the package, and nothing else."
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
  "The package says what it needs, and its version is that of its server."
  (with-temp-buffer
    (insert-file-contents (expand-file-name "duet.el" duet-package-test-folder))
    (let ((description (package-buffer-info)))
      (should (equal (package-desc-reqs description) '((emacs (28 1)))))
      (should (string-prefix-p (concat duet-connection-version ".")
                               (package-version-join
                                (package-desc-version description)))))))

(ert-deftest duet-package-test-autoloads ()
  "Each command with an autoload cookie is there when `duet' is loaded, or its file comes then."
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
