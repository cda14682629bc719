;;; duet-project.el --- Which project a directory is in  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A server works in a project, and keeps its sessions in the user's state directory.
;; Outside of a project the commands ask before they start a server.

;;; Code:

(require 'cl-lib)
(require 'project)
(require 'duet-remote)

(declare-function tramp-dissect-file-name "tramp" (name &optional nodefault))
(declare-function tramp-get-remote-uid "tramp" (vec id-format))

;; As the server has it (internal/project): what another user owns counts for
;; nothing, and neither the home directory nor one that is everybody's is found on
;; the way up.

(defcustom duet-project-safe-directories
  (let ((list (getenv "DUET_SAFE_DIRECTORIES")))
    (and list (split-string list path-separator t)))
  "Directories in which files of other users count as marks of a project.
One that ends in /* means all below it, and * all that there are.  It should
be what safe_directories in the server's configuration is."
  :type '(repeat string)
  :group 'duet)

(defun duet-project--ours-p (file)
  "Return whether FILE belongs to the user or to root."
  (let ((owner (file-attribute-user-id (file-attributes file 'integer))))
    (or (not (numberp owner))
        (memq system-type '(windows-nt ms-dos))
        (= owner 0)
        (equal owner (duet-project--uid file))
        (and (not (file-remote-p file))
             (= (user-uid) 0)
             (equal (number-to-string owner) (getenv "SUDO_UID"))))))

(defun duet-project--uid (file)
  "Return the number of the user that Emacs is on the machine of FILE."
  (if (file-remote-p file)
      (tramp-get-remote-uid (tramp-dissect-file-name (expand-file-name file)) 'integer)
    (user-uid)))

(defun duet-project--safe-p (directory)
  "Return whether files of other users count in DIRECTORY."
  (let ((directory (directory-file-name (expand-file-name directory))))
    (cl-some (lambda (safe)
               (cond ((equal safe "*"))
                     ((string-suffix-p "/*" safe)
                      (string-prefix-p (expand-file-name (substring safe 0 -1)) directory))
                     ((equal (directory-file-name (expand-file-name safe)) directory))))
             duet-project-safe-directories)))

(defun duet-project--reserved-p (directory)
  "Return whether no project is found in DIRECTORY on the way up."
  (let* ((host (file-remote-p directory))
         (modes (or (file-modes directory) 0))
         (temporary (let ((default-directory directory)) (temporary-file-directory)))
         (name (lambda (file)
                 (duet-remote-local (file-name-as-directory (file-truename file)))))
         (directory (funcall name directory))
         (home (funcall name (concat host "~"))))
    (or (string-prefix-p directory home)
        (equal directory (funcall name temporary))
        (= (logand modes #o1002) #o1002)
        (and (not (string-prefix-p home directory))
             (string-match-p
              (rx bos (? "/private")
                  (or (seq "/" (? (or "root" "home" "Users" "opt" "srv" "mnt" "media" "Volumes" "tmp" "nix" "snap"
                                      (seq "run" (? (or "/user" "/media")))
                                      (seq "usr" (? (or "/local" "/src" "/local/src" "/home")))
                                      (seq "var" (? "/" (or "tmp" "lib" "cache" "log" "spool" "run" "mail"))))
                                  "/"))
                      (seq "/" (or "bin" "sbin" "lib" "lib32" "lib64" "libx32" "boot" "etc" "proc" "sys"
                                   "System" "Library" "Applications")
                           "/" (* anything))
                      (seq "/usr/" (or "bin" "sbin" "lib" "lib64" "libexec" "share" "include" "games") "/" (* anything)))
                  eos)
              directory)))))

(defun duet-project--state-directory (directory)
  "Return where a server keeps the sessions of the project DIRECTORY.
On another machine that is the default."
  (let* ((host (file-remote-p directory))
         (path (directory-file-name (duet-remote-local (if host directory (file-truename directory)))))
         (name (replace-regexp-in-string "[^-_.0-9A-Za-z]" "-" (file-name-nondirectory path)))
         (hash (secure-hash 'sha256 (encode-coding-string path (or file-name-coding-system
                                                                   default-file-name-coding-system 'utf-8))))
         (own (and (not host) (getenv "DUET_STATE_HOME")))
         (home (or (and own (not (equal own "")) own)
                   (and (not host) (getenv "XDG_STATE_HOME")
                        (file-name-absolute-p (getenv "XDG_STATE_HOME"))
                        (expand-file-name "duet" (getenv "XDG_STATE_HOME")))
                   (concat host "~/.local/state/duet"))))
    (expand-file-name (concat "projects/" (substring name 0 (min 24 (length name))) "-" (substring hash 0 16)) home)))

(defun duet-project--marked (directory)
  "Return the nearest directory around DIRECTORY that is marked as a project."
  (locate-dominating-file
   directory
   (lambda (parent)
     (and (or (cl-some (lambda (name)
                         (let ((mark (expand-file-name name parent)))
                           (and (file-exists-p mark)
                                (or (and (duet-project--ours-p mark) (duet-project--ours-p parent))
                                    (duet-project--safe-p parent)))))
                       '(".duet.toml" ".git"))
              (file-exists-p (expand-file-name "project.json" (duet-project--state-directory parent))))
          (not (duet-project--reserved-p parent))))))

(defun duet-project-root (directory)
  "Return the directory of the project that DIRECTORY is in.
That is the nearest with a .duet.toml or a .git that count, or with sessions, as
the server finds it, else DIRECTORY."
  (let ((directory (file-name-as-directory (expand-file-name directory))))
    (condition-case err
        (expand-file-name (or (duet-project--marked directory) directory))
      (file-error
       (if-let ((host (file-remote-p directory)))
           (user-error "Cannot look for a project on %s: %s" host (error-message-string err))
         (signal (car err) (cdr err)))))))

(defun duet-project-confirm (directory)
  "Ask whether to work in DIRECTORY if no project is around it; return nil.
If the user does not want to that is a `user-error'."
  (unless (or (duet-project--marked directory)
              (ignore-errors (project-current nil directory))
              (y-or-n-p (format "There is no project around %s; work in it? "
                                (duet-remote-abbreviate directory))))
    (user-error "Nothing is started")))

(provide 'duet-project)
;;; duet-project.el ends here
