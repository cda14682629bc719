;;; duet-remote.el --- Projects on other machines  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The server of a project on another machine, or of another user, runs there: TRAMP
;; starts it.  A project on a host of duet-rpc (duet-host.el) has names of another kind.  The server and the model use the local names of that machine.  Visited
;; files and the directories of buffers have TRAMP's names.  Only this file converts
;; between the two.
;;
;; A program on another machine has one stream for input, output and errors, usually
;; a terminal.  A shell around the program prints a line once the stream passes each
;; byte unchanged.  At the end the shell prints a NUL and the program's standard
;; error.  Neither a frame nor a text contains a NUL.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)
(require 'duet-host)


;;; File names

(defun duet-remote-name (name &optional directory)
  "Return NAME, a file name of a server, as Emacs visits the file.
The file is on the machine of DIRECTORY, or of `default-directory' if that
is nil, and NAME may be relative to it.  If NAME looks like a TRAMP name, quote
it."
  (let* ((directory (or directory default-directory))
         (host (file-remote-p directory))
         (name (if (file-remote-p name) (concat "/:" name) name)))
    (if (and host (file-name-absolute-p name))
        (concat host name)
      (expand-file-name name directory))))

(defun duet-remote-local (name)
  "Return NAME, the name of a file for Emacs, as the local name on its machine."
  (file-name-unquote (or (file-remote-p name 'localname) name)))

(defun duet-remote-same-p (name directory)
  "Return non-nil if the file NAME is on the machine of DIRECTORY."
  (equal (file-remote-p name) (file-remote-p directory)))

(defun duet-remote-inside (name root)
  "Return NAME, a file name of a server, relative to ROOT, or nil if outside.
ROOT is a directory on any machine; the function does not access another
machine."
  (if (file-remote-p root)
      ;; Compare names only.
      (let ((path (duet-remote-local name))
            (top (file-name-as-directory (duet-remote-local root))))
        (cond ((not (file-name-absolute-p path)) path)
              ((string-match-p "/\\.\\.?\\(/\\|\\'\\)" path) nil)
              ((string-prefix-p top path) (substring path (length top)))))
    ;; No file has so long a name, and the check of its parts takes quadratic time.
    (and (length< name 5000) (not (file-remote-p name)) (file-in-directory-p name root)
         (file-relative-name name root))))

(defun duet-remote-abbreviate (name)
  "Return NAME as `abbreviate-file-name' does, without access to other machines."
  (cond ((length> name 5000) name)
        ((duet-host-of name) (duet-host-label name))
        ((file-remote-p name) name)
        (t (abbreviate-file-name name))))

(defun duet-remote-project (root)
  "Return the name of the project ROOT for the user.
For a project on a host it also names the host, such as devbox:parser."
  (let ((name (file-name-nondirectory (directory-file-name root)))
        (host (duet-host-of root)))
    (if host (concat host ":" name) name)))

(defun duet-remote-tramp-p (name)
  "Return non-nil if TRAMP reaches the file NAME."
  (and (file-remote-p name) (not (duet-host-of name))))

(declare-function tramp-dissect-file-name "tramp")
(declare-function tramp-get-connection-process "tramp")
(declare-function tramp-get-connection-property "tramp-cache")

(defun duet-remote-busy-p (name)
  "Return non-nil if Emacs waits for a reply from the machine of NAME.
A timer that runs meanwhile must not access that machine.  Before TRAMP 2.6
both calls would read one reply, and Emacs might wait forever for the other."
  (and (duet-remote-tramp-p name)
       (when-let ((process (tramp-get-connection-process (tramp-dissect-file-name name))))
         (tramp-get-connection-property process "locked" nil))))


;;; Programs

(defconst duet-remote--places '("~/.local/bin/" "~/go/bin/")
  "Directories of the user's programs on another machine, besides its path.")

(defun duet-remote-program (program)
  "Return the name that starts PROGRAM on the current machine, or nil.
That is the machine of `default-directory'."
  (let ((host (and (duet-remote-tramp-p default-directory) (file-remote-p default-directory))))
    (cond ((null host) (and (executable-find program) program))
          ((file-name-absolute-p program)
           (and (file-executable-p (concat host program)) program))
          ((when-let ((found (executable-find program t))) (file-local-name found)))
          ((seq-some (lambda (place)
                       (let ((file (expand-file-name program (concat host place))))
                         (and (file-executable-p file) (file-local-name file))))
                     duet-remote--places)))))

(defconst duet-remote--ready "duet: ready"
  "The line before the output of the program.")

(defconst duet-remote--script
  (concat "stty raw -echo 2>/dev/null; "
          "words=$(mktemp 2>/dev/null) || words=; "
          "trap 'exit 129' HUP TERM; "
          "trap '[ -z \"$words\" ] || rm -f \"$words\"' EXIT; "
          "echo '" duet-remote--ready "'; "
          "\"$@\" 2>\"${words:-/dev/null}\"; status=$?; "
          "printf '\\000'; [ -z \"$words\" ] || tail -c 4000 \"$words\"; "
          "exit $status")
  "The shell script around a program on another machine.")

(defun duet-remote-make-process (&rest arguments)
  "Start a program on the machine of `default-directory'.
ARGUMENTS are those of `make-process'.  The program's output is between the
line `duet-remote--ready' and a NUL.  Its standard error follows the NUL."
  (let ((process
         (apply #'make-process :file-handler t
                (plist-put (copy-sequence arguments) :command
                           `("sh" "-c" ,duet-remote--script "sh"
                             ,@(plist-get arguments :command))))))
    (set-process-coding-system process 'utf-8-emacs-unix 'utf-8-emacs-unix)
    (process-put process 'duet-remote t)
    process))

(defun duet-remote-p (process)
  "Return non-nil if `duet-remote-make-process' has started PROCESS."
  (process-get process 'duet-remote))

(defun duet-remote-await-ready (process seconds)
  "Wait until PROCESS is ready for input, for SECONDS at most.
Discard the output of its machine before that.  On a timeout, delete PROCESS
and signal an error with that output."
  (let ((said "")
        (deadline (+ (float-time) seconds))
        (filter (process-filter process)))
    (set-process-filter process (lambda (_ text) (setq said (concat said text))))
    (unwind-protect
        (while (and (not (string-search duet-remote--ready said))
                    (process-live-p process)
                    (< (float-time) deadline))
          (accept-process-output process 0.1 nil t))
      (set-process-filter process filter)
      (unless (string-search duet-remote--ready said)
        (delete-process process)))
    (unless (string-search duet-remote--ready said)
      (error "The program did not start on the other machine: %s"
             (if (string-blank-p said) "it printed nothing" (string-trim said))))))

(defvar tramp-process-connection-type)

(defun duet-remote-call (function &rest arguments)
  "Call FUNCTION with ARGUMENTS.
Programs that it starts run on the machine of `default-directory', on a
terminal.  This is for libraries without support for other machines, such as
term."
  (let ((tramp-process-connection-type t)
        (here (symbol-function 'start-process)))
    (cl-letf (((symbol-function 'start-process)
               (lambda (&rest arguments)
                 (apply (if (file-remote-p default-directory) #'start-file-process here)
                        arguments))))
      (apply function arguments))))

(defun duet-remote-output (text)
  "Return (OUTPUT . ERRORS) of a program from TEXT, the whole of its stream."
  (let* ((beg (if (string-match (concat (regexp-quote duet-remote--ready) "\r?\n") text)
                  (match-end 0)
                0))
         (end (string-search "\0" text beg)))
    (cons (substring text beg end)
          (if end (substring text (1+ end)) ""))))

(provide 'duet-remote)
;;; duet-remote.el ends here
