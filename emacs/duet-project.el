;;; duet-project.el --- Which project a directory is in  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A server works in a project, and keeps what it knows in the folder .duet there.
;; Where there is none, nobody need want one: commands ask first.

;;; Code:

(require 'cl-lib)
(require 'project)

(defun duet-project--marked (directory)
  "Return the nearest directory around DIRECTORY that is marked as a project."
  (locate-dominating-file
   directory
   (lambda (parent)
     (cl-some (lambda (name) (file-exists-p (expand-file-name name parent)))
              '(".duet" ".duet.toml" ".git")))))

(defun duet-project-root (directory)
  "Return the directory of the project that DIRECTORY is in.
That is the nearest with a .duet, a .duet.toml or a .git, as the server
finds it, else DIRECTORY."
  (let ((directory (file-name-as-directory (expand-file-name directory))))
    (when (file-remote-p directory)
      (user-error "Duet works in local directories only, %s is remote" directory))
    (expand-file-name (or (duet-project--marked directory) directory))))

(defun duet-project-confirm (directory)
  "Ask whether to work in DIRECTORY if no project is around it; return nil.
If the user does not want to that is a `user-error'."
  (unless (or (duet-project--marked directory)
              (ignore-errors (project-current nil directory))
              (y-or-n-p (format "There is no project around %s; work in it? "
                                (abbreviate-file-name directory))))
    (user-error "Nothing is started")))

(provide 'duet-project)
;;; duet-project.el ends here
