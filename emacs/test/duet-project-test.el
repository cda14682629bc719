;;; duet-project-test.el --- Tests of finding a project  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Tests of duet-project.el.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'duet-connection)

(ert-deftest duet-project-root-of-others ()
  "Files of other users mark no project.
Neither do the home directory and shared directories."
  (let* ((top (file-truename (make-temp-file "duet-project" t)))
         (in (lambda (name) (file-name-as-directory (expand-file-name name top))))
         (mine (funcall in "mine/"))
         (deep (funcall in "mine/shared/deep/"))
         (duet-project-safe-directories nil)
         (owners nil))
    (unwind-protect
        (cl-letf (((symbol-function 'duet-project--ours-p)
                   (lambda (file) (not (member (directory-file-name file) owners)))))
          (make-directory deep t)
          (make-directory (expand-file-name ".git" mine))
          (write-region "" nil (expand-file-name "mine/shared/.duet.toml" top))
          (should (equal (duet-project-root deep) (funcall in "mine/shared/")))
          (dolist (theirs '("mine/shared/.duet.toml" "mine/shared"))
            (setq owners (list (expand-file-name theirs top)))
            (should (equal (duet-project-root deep) mine))
            (dolist (safe (list "*" (expand-file-name "mine/shared" top) (expand-file-name "mine/*" top)))
              (let ((duet-project-safe-directories (list safe)))
                (should (equal (duet-project-root deep) (funcall in "mine/shared/"))))))
          (setq owners nil)
          ;; These are a shared directory, temporary files and the home directory.
          (set-file-modes (funcall in "mine/shared/") #o1777)
          (should (equal (duet-project-root deep) mine))
          (let ((temporary-file-directory mine))
            (should (equal (duet-project-root deep) deep)))
          (let ((process-environment (cons (concat "HOME=" mine) process-environment)))
            (should (equal (duet-project-root deep) deep))
            (should (equal (duet-project-root mine) mine)))
          (dolist (place '("/" "/tmp/" "/usr/" "/usr/share/x/" "/etc/" "/etc/x/" "/home/" "/var/tmp/"))
            (should (duet-project--reserved-p place)))
          (dolist (place '("/code/" "/usr/src/app/" "/srv/p/" "/opt/p/" "/var/www/p/"))
            (should-not (duet-project--reserved-p place))))
      (delete-directory top t))))

(ert-deftest duet-project-test-state-directory ()
  "Emacs and the server give the state directory of a project the same name."
  (let ((process-environment (append '("DUET_STATE_HOME" "XDG_STATE_HOME=/state") process-environment)))
    (should (equal (duet-project--state-directory "/home/me/a project of ä name that is long/")
                   "/state/duet/projects/a-project-of---name-that-7d76d87cce8a06d4")))
  (let ((process-environment (append '("DUET_STATE_HOME=/mine") process-environment)))
    (should (string-prefix-p "/mine/projects/p-" (duet-project--state-directory "/p/")))))

(provide 'duet-project-test)
;;; duet-project-test.el ends here
