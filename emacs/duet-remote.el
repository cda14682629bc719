;;; duet-remote.el --- Projects on other machines  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The server of a project on another machine, or of another user, runs there: TRAMP
;; starts it.  It calls files as they are called there, and so does the model.  What
;; Emacs visits, and the directories of buffers, have TRAMP's names.  The one becomes
;; the other here, and nowhere else.
;;
;; A program there has its three streams in one, a terminal mostly.  A shell around it
;; says when that passes on each byte as it is; what the program wrote to standard error
;; comes last, behind a NUL, which neither a frame nor a text has.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)


;;; Names of files

(defun duet-remote-name (name &optional directory)
  "Return NAME, of a file as a server calls it, as Emacs can visit it.
It is on the machine of DIRECTORY, `default-directory' if that is nil, and
relative to it.  A NAME that TRAMP would take for one of another machine is
none."
  (let* ((directory (or directory default-directory))
         (host (file-remote-p directory))
         (name (if (file-remote-p name) (concat "/:" name) name)))
    (if (and host (file-name-absolute-p name))
        (concat host name)
      (expand-file-name name directory))))

(defun duet-remote-local (name)
  "Return NAME, of a file that Emacs can visit, as it is called on its machine."
  (file-name-unquote (or (file-remote-p name 'localname) name)))

(defun duet-remote-same-p (name directory)
  "Return non-nil if the file NAME is on the machine of DIRECTORY."
  (equal (file-remote-p name) (file-remote-p directory)))

(defun duet-remote-inside (name root)
  "Return NAME, of a file as a server calls it, relative to ROOT.
Return nil if it is outside.  ROOT is a directory on any machine; another
machine is not asked."
  (if (file-remote-p root)
      ;; By its name alone.
      (let ((path (duet-remote-local name))
            (top (file-name-as-directory (duet-remote-local root))))
        (cond ((not (file-name-absolute-p path)) path)
              ((string-match-p "/\\.\\.?\\(/\\|\\'\\)" path) nil)
              ((string-prefix-p top path) (substring path (length top)))))
    ;; No file has so long a name, and to look at its parts takes quadratic time.
    (and (length< name 5000) (not (file-remote-p name)) (file-in-directory-p name root)
         (file-relative-name name root))))

(defun duet-remote-abbreviate (name)
  "Return NAME as `abbreviate-file-name' does; another machine is not asked."
  (if (or (length> name 5000) (file-remote-p name)) name (abbreviate-file-name name)))

(declare-function tramp-dissect-file-name "tramp")
(declare-function tramp-get-connection-process "tramp")
(declare-function tramp-get-connection-property "tramp-cache")

(defun duet-remote-busy-p (name)
  "Return non-nil if Emacs waits for what the machine of NAME answers.
A timer runs meanwhile.  It must not ask that machine: before TRAMP 2.6 both
would read one answer, and Emacs might wait for the other without end."
  (and (file-remote-p name)
       (when-let ((process (tramp-get-connection-process (tramp-dissect-file-name name))))
         (tramp-get-connection-property process "locked" nil))))


;;; Programs

(defconst duet-remote--places '("~/.local/bin/" "~/go/bin/")
  "Where programs of the user's own are on another machine, beside its path.")

(defun duet-remote-program (program)
  "Return what starts PROGRAM on the machine of `default-directory', or nil."
  (let ((host (file-remote-p default-directory)))
    (cond ((null host) (and (executable-find program) program))
          ((file-name-absolute-p program)
           (and (file-executable-p (concat host program)) program))
          ((when-let ((found (executable-find program t))) (file-local-name found)))
          ((seq-some (lambda (place)
                       (let ((file (expand-file-name program (concat host place))))
                         (and (file-executable-p file) (file-local-name file))))
                     duet-remote--places)))))

(defconst duet-remote--ready "duet: ready"
  "The line that says that what follows is from the program.")

(defconst duet-remote--script
  (concat "stty raw -echo 2>/dev/null; "
          "words=$(mktemp 2>/dev/null) || words=; "
          "trap 'exit 129' HUP TERM; "
          "trap '[ -z \"$words\" ] || rm -f \"$words\"' EXIT; "
          "echo '" duet-remote--ready "'; "
          "\"$@\" 2>\"${words:-/dev/null}\"; status=$?; "
          "printf '\\000'; [ -z \"$words\" ] || tail -c 4000 \"$words\"; "
          "exit $status")
  "What a shell does around a program.")

(defun duet-remote-make-process (&rest arguments)
  "Start a program on the machine of `default-directory'.
ARGUMENTS are those of `make-process'.  What the program says is between
the line `duet-remote--ready' and a NUL, and what it wrote to standard error
behind that."
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
  "Wait until PROCESS reads what is sent to it, for SECONDS at most.
What its machine has said before is left out.  If that does not come it is an
error with what was said."
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
             (if (string-blank-p said) "nothing was said" (string-trim said))))))

(defvar tramp-process-connection-type)

(defun duet-remote-call (function &rest arguments)
  "Call FUNCTION with ARGUMENTS.
Programs that it starts run on the machine of `default-directory', on a
terminal.  That is for what only knows this machine, such as term."
  (let ((tramp-process-connection-type t)
        (here (symbol-function 'start-process)))
    (cl-letf (((symbol-function 'start-process)
               (lambda (&rest arguments)
                 (apply (if (file-remote-p default-directory) #'start-file-process here)
                        arguments))))
      (apply function arguments))))

(defun duet-remote-output (text)
  "Return (OUTPUT . ERRORS), which are in TEXT, all that came from a program."
  (let* ((beg (if (string-match (concat (regexp-quote duet-remote--ready) "\r?\n") text)
                  (match-end 0)
                0))
         (end (string-search "\0" text beg)))
    (cons (substring text beg end)
          (if end (substring text (1+ end)) ""))))

(provide 'duet-remote)
;;; duet-remote.el ends here
