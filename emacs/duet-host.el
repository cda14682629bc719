;;; duet-host.el --- Agents on other hosts, by duet-rpc  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A host is a machine or a container that the user's configuration of duet-rpc names.
;; The editor's process runs on this machine: `duet-rpc --host NAME' connects it to the
;; daemon there.
;;
;; In Emacs, a file on the host devbox has a name such as /duet@devbox/home/me/main.c.
;; Such a name never reaches a local file: `duet-host-handler' answers for it.  The
;; handler neither accesses the host nor starts a program.  Duet uses these names like
;; TRAMP's (duet-remote.el), and visits files as `duet-host-files' says.
;;
;; A host is third-party.  It gets no tools of Emacs (duet-editor.el) and no keys from
;; `auth-source' (duet-secrets.el).

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(declare-function duet-project-root "duet-connection" (directory))
(declare-function duet-rpc-process-command "duet-rpc" (command))

(defcustom duet-host (let ((host (getenv "DUET_HOST")))
                       (and host (not (string-empty-p host)) host))
  "The host on which the agents of local projects work, or nil for this machine.
It is a name of `duet-rpc hosts'.  The project there has the name of the
local project, below the host's directory.  You can set this option in
.dir-locals.el; Emacs then asks whether the value is safe.  The default is
the environment variable DUET_HOST."
  :type '(choice (const :tag "This machine" nil) (string :tag "Host"))
  :group 'duet)

(defcustom duet-host-send t
  "Whether a new session on a host begins with the files of the local project.
If non-nil, Git sends your commit and your files to the host, also the files
that are not committed.  The agent works there in a worktree, and `duet-land'
brings its changes here.  If nil, the agent works in the project's directory
there."
  :type 'boolean
  :group 'duet)

(defcustom duet-host-files nil
  "Prefixes of file names, by which Emacs visits files on hosts.
An element is the name of a host and a prefix, such as
\(\"devbox\" . \"/ssh:devbox:\").  Emacs cannot visit files of other hosts."
  :type '(alist :key-type (string :tag "Host") :value-type (string :tag "Prefix"))
  :risky t
  :group 'duet)


;;; File names

(defconst duet-host--regexp
  "\\`\\(/duet@\\([A-Za-z0-9][-._A-Za-z0-9]*\\)\\)/"
  "Regexp that matches the beginning of a name on a host.
The first group is the prefix of its names, and the second one the host.")

(defun duet-host-of (name)
  "Return the host of the file NAME, or nil if NAME is not on a host."
  (and (stringp name)
       (let ((case-fold-search nil))
         (and (string-match duet-host--regexp name) (match-string 2 name)))))

(defun duet-host-file (host path)
  "Return the name in Emacs of the file with the absolute PATH on HOST."
  (concat "/duet@" host path))

(defun duet-host--path (name)
  "Return the path on its host of the file NAME."
  (substring name (length (concat "/duet@" (duet-host-of name)))))

(defun duet-host-label (name)
  "Return the file NAME on a host as the user reads it, such as devbox:/src/main.c."
  (concat (duet-host-of name) ":" (duet-host--path name)))

(defun duet-host-visit-name (name)
  "Return the name by which Emacs visits the file NAME.
For a file on a host, this follows `duet-host-files'; without an entry there,
signal a `user-error'.  Return another name unchanged."
  (let ((host (duet-host-of name)))
    (if (null host) name
      (concat (or (cdr (assoc host duet-host-files))
                  (duet-host--refuse host (duet-host--path name)))
              (duet-host--path name)))))

(defun duet-host--refuse (host path)
  "Signal a `user-error': Emacs cannot reach PATH, a file on HOST."
  (user-error "%s is on %s; to visit files there, set `duet-host-files', for example to ((\"%s\" . \"/ssh:%s:\"))"
              path host host host))

(defun duet-host-handler (operation &rest arguments)
  "Return the value of OPERATION with ARGUMENTS for a file on a host.
A value of `file-name-handler-alist'.  Operations on names work.  No file
exists, as far as Emacs can tell.  All other operations are errors."
  (let* ((file (or (cl-find-if #'duet-host-of arguments) default-directory))
         (host (duet-host-of file)))
    (pcase operation
      ('file-remote-p
       (pcase (cadr arguments)
         ('nil (substring file 0 (- (length file) (length (duet-host--path file)))))
         ('host host)
         ('localname (duet-host--path file))
         ('method "duet")))
      ('expand-file-name (apply #'duet-host--expand arguments))
      ('directory-file-name
       (if (equal (duet-host--path file) "/") file
         (duet-host--default operation arguments)))
      ((or 'file-name-directory 'file-name-nondirectory 'file-name-as-directory
           'file-name-sans-versions 'substitute-in-file-name 'get-file-buffer)
       (duet-host--default operation arguments))
      ((or 'file-truename 'abbreviate-file-name) (duet-host--expand file))
      ('file-equal-p (equal (expand-file-name (car arguments))
                            (expand-file-name (cadr arguments))))
      ('file-in-directory-p
       (string-prefix-p (file-name-as-directory (expand-file-name (cadr arguments)))
                        (file-name-as-directory (expand-file-name (car arguments)))))
      ('temporary-file-directory (let ((default-directory "/")) (temporary-file-directory)))
      ('verify-visited-file-modtime t)
      ;; Completion in the minibuffer, where the user has begun to type the name.
      ((or 'file-name-completion 'file-name-all-completions)
       (when (assoc host duet-host-files)
         (apply operation (car arguments) (duet-host-visit-name (cadr arguments))
                (cddr arguments))))
      ((or 'access-file 'copy-directory 'copy-file 'delete-directory 'delete-file
           'directory-files 'directory-files-and-attributes 'dired-compress-file
           'file-local-copy 'insert-directory 'insert-file-contents 'load
           'make-directory 'make-process 'make-symbolic-link 'process-file
           'rename-file 'set-file-modes 'set-file-times 'shell-command
           'start-file-process 'write-region)
       (if (memq operation '(make-process process-file shell-command start-file-process))
           (user-error "Emacs starts no program on %s; M-x duet-terminal opens a terminal there" host)
         (duet-host--refuse host (duet-host--path file))))
      ;; file-exists-p, file-attributes, vc-registered and others.
      (_ nil))))

(defun duet-host--default (operation arguments)
  "Return the value of OPERATION with ARGUMENTS without `duet-host-handler'."
  (let ((inhibit-file-name-handlers
         (cons #'duet-host-handler
               (and (eq inhibit-file-name-operation operation) inhibit-file-name-handlers)))
        (inhibit-file-name-operation operation))
    (apply operation arguments)))

(defun duet-host--expand (name &optional directory)
  "Return NAME, relative to DIRECTORY, as an absolute name.
One of the two is on a host.  The name cannot leave that host by \"..\"."
  (if (and (file-name-absolute-p name) (not (duet-host-of name)))
      (expand-file-name name "/")
    (let ((whole (if (duet-host-of name) name
                   (concat (file-name-as-directory (or directory default-directory)) name))))
      (duet-host-file (duet-host-of whole)
                      (let ((file-name-handler-alist nil))
                        (expand-file-name (duet-host--path whole) "/"))))))

(add-to-list 'file-name-handler-alist (cons duet-host--regexp #'duet-host-handler))


;;; Projects on hosts

(defvar duet-host--local (make-hash-table :test #'equal)
  "Local projects, by the directories of the projects on hosts with their names.")

(defun duet-host-local-project (directory)
  "Return the local project with the name of the project DIRECTORY on a host.
Return nil if none is known, or if it is gone."
  (let ((local (gethash directory duet-host--local)))
    (and local (file-directory-p local) local)))

(defun duet-host-local-directory (&optional directory)
  "Return a directory of this machine, for a program that works with a host.
It is the local project of DIRECTORY, a project on a host, if that is known."
  (or (and directory (duet-host-local-project directory))
      (let ((home (expand-file-name "~/")))
        (if (file-directory-p home) home "/"))))

(defun duet-host-arguments (directory)
  "Return the arguments of duet-rpc for the project DIRECTORY on a host."
  (list "--host" (duet-host-of directory)
        "--root" (directory-file-name (duet-host--path directory))))

(defun duet-host--call (directory &rest arguments)
  "Run duet-rpc with ARGUMENTS in DIRECTORY, and return its output.
Wait for it; signal a `user-error' with its reason if it fails."
  (let* ((default-directory directory)
         (command (duet-rpc-process-command nil))
         (errors (make-temp-file "duet-host")))
    (unwind-protect
        (with-temp-buffer
          (let* ((process-environment (cons "DUET_HOST" process-environment))
                 (coding-system-for-read 'utf-8)
                 (status (apply #'call-process (car command) nil (list t errors) nil
                                (append (remove "--stdio" (cdr command)) arguments))))
            (if (eql status 0) (buffer-string)
              (erase-buffer)
              (insert-file-contents errors)
              (duet-host--fail (string-trim (buffer-string))))))
      (delete-file errors))))

(define-error 'duet-host-no-directory "" 'user-error)

(defun duet-host--fail (errors)
  "Signal a `user-error' with the reason in ERRORS, the standard error of duet-rpc.
If the project's directory does not exist, signal `duet-host-no-directory'
with the reason and that directory."
  (let* ((error (ignore-errors (json-parse-string errors :object-type 'plist)))
         (data (plist-get error :data))
         (reason (replace-regexp-in-string
                  "[[:cntrl:]]+" " "
                  (or (plist-get error :message)
                      (string-remove-prefix "duet-rpc: " errors)))))
    (if (equal (plist-get data :kind) "no_project_directory")
        (signal 'duet-host-no-directory (list reason (plist-get data :path)))
      (user-error "%s" reason))))

(defvar duet-host--projects (make-hash-table :test #'equal)
  "Projects on hosts that were found.
A key is a list of a host, a local directory and a directory there or nil.")

(defun duet-host-project (host here &optional there)
  "Return the directory of a project on HOST, a name for Emacs.
It is the project around the directory THERE; if that is nil, the project
with the name of the one around the local directory HERE.  With
`duet-host-send' that directory need not exist: the first session makes it.
Ask the host if necessary, and wait for the answer."
  (let* ((key (list host (expand-file-name here) there))
         (found (or (gethash key duet-host--projects)
                    (puthash key (duet-host--find host here there) duet-host--projects))))
    ;; The home directory is where Emacs works without a project; its files are not sent.
    (unless (or there (file-equal-p here (duet-host-local-directory)))
      (puthash found (duet-project-root here) duet-host--local))
    found))

(defun duet-host--find (host here there)
  "Ask HOST for the directory of a project; see `duet-host-project'.
HERE and THERE are as there."
  (when non-essential
    (user-error "The project on %s is not known yet" host))
  (message "Looking for the project on %s…" host)
  (let ((root (condition-case err
                  (duet-host--root host here there)
                (duet-host-no-directory
                 (if (and (null there) duet-host-send
                          (not (file-equal-p here (duet-host-local-directory))))
                     (caddr err)
                   (user-error "%s" (cadr err)))))))
    (message nil)
    (file-name-as-directory (duet-host--expand (duet-host-file host root)))))

(defun duet-host--root (host here there)
  "Return the path of the project on HOST around the directory THERE.
If THERE is nil, return the path that a project with HERE's name has."
  (let* ((output (apply #'duet-host--call here "--host" host
                        (append (and there (list "--root" there)) '("--json" "paths"))))
         (root (plist-get (json-parse-string output :object-type 'plist :null-object nil)
                          :root)))
    (unless (and (stringp root) (string-prefix-p "/" root))
      (user-error "Duet cannot use the project directory %s on %s: it does not begin with a slash"
                  root host))
    root))

(defun duet-host-directory (directory)
  "Return DIRECTORY, or the directory on `duet-host' for a local project in it."
  (cond ((or (null duet-host) (duet-host-of directory)) directory)
        ((file-remote-p directory)
         (user-error "Duet cannot combine TRAMP with a host: %s is on another machine, and `duet-host' is %s; set `duet-host' to nil there"
                     directory duet-host))
        (t (duet-host-project duet-host directory))))

(defun duet-host-read (here)
  "Read a host and a directory there, and return that directory for Emacs.
HERE is the local directory whose name the default has.  Return nil if the
user chooses this machine, or if the configuration names no host."
  (let* ((local (if (or (duet-host-of here) (file-remote-p here))
                    (duet-host-local-directory here)
                  here))
         (hosts (split-string (duet-host--call local "hosts" "--names") "\n" t))
         (host (if hosts
                   (completing-read "Host (empty: this machine): " hosts nil t nil nil "")
                 "")))
    (unless (string-empty-p host)
      (when (and (file-remote-p here) (not (duet-host-of here)))
        (user-error "Duet cannot combine TRAMP with a host: %s is on another machine" here))
      (let* ((default (cond ((equal host (duet-host-of here)) here)
                            ((duet-host-of here) nil)
                            ;; There may be no project of this name.
                            (t (ignore-error user-error (duet-host-project host here)))))
             (path (and default (duet-host--path default)))
             (there (read-string (format-prompt "Directory on %s" path host) nil nil path)))
        (if (or (null there) (string-empty-p there) (equal there path))
            (or default (duet-host-project host local))
          (duet-host-project host local there))))))

(provide 'duet-host)
;;; duet-host.el ends here
