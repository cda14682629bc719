;;; duet-build-flymake.el --- Mistakes of builds in Flymake  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The server reports the mistakes that builds find, those of this Emacs, of an agent's
;; editor and of `duet-rpc build' in a shell.  `duet-build-flymake' is a backend of
;; Flymake that shows them in the buffers of the files, until the next build of the same
;; name has ended.  It shows the mistakes that gates find, too.  It checks nothing by
;; itself, and costs nothing without a build.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-connection)
(require 'duet-remote)

(declare-function flymake-diag-region "flymake" (buffer line &optional col))
(declare-function flymake-make-diagnostic "flymake"
                  (locus beg end type text &optional data overlay-properties))
(declare-function flymake-mode "flymake" (&optional arg))

(defcustom duet-build-flymake-turn-on nil
  "Whether Flymake is turned on in buffers for which a build has found something.
Without that it shows what was found where it is on already."
  :type 'boolean
  :group 'duet)

(defvar duet-build-flymake--found (make-hash-table :test #'equal)
  "What builds and gates have found: the server's objects by project and build.
Each key is a list of the project's directory and of which of them it is.")

(defvar-local duet-build-flymake--report nil
  "The function that reports mistakes in the buffer to Flymake.")
(defvar-local duet-build-flymake--shown nil
  "Mistakes in the buffer: lists of two markers, a type and a text.")

(defun duet-build-flymake (report &rest _)
  "Report the mistakes of builds in the buffer to REPORT, a function of Flymake's.
A function for `flymake-diagnostic-functions'."
  (setq duet-build-flymake--report report)
  (duet-build-flymake--send))

(defun duet-build-flymake--send ()
  "Report the mistakes in the current buffer to Flymake.
Where the text was changed since, the places have moved with it."
  (duet-log-guard "Flymake"
    (funcall duet-build-flymake--report
             (mapcar (pcase-lambda (`(,beg ,end ,type ,text))
                       (flymake-make-diagnostic (current-buffer) (marker-position beg)
                                                (marker-position end) type text))
                     duet-build-flymake--shown)
             ;; What was there before is not there any more.
             :region (cons (point-min) (point-max)))))

(defun duet-build-flymake--observe (model kind _session data _extra)
  "Take the mistakes in DATA of a build of MODEL's project, or of a gate.
KIND says of what DATA are."
  (cond
   ((and (eq kind 'build) (member (duet-get-string data :stage) '("succeeded" "failed")))
    (duet-build-flymake--keep (duet-model-root model) (list 'build (duet-get-string data :name))
                              (duet-get-objects data :diagnostics)))
   ((eq kind 'gate)
    (duet-build-flymake--keep (duet-model-root model) (list 'gate (duet-get-string data :gate))
                              (duet-get-objects data :findings)))))

(defun duet-build-flymake--keep (root what found)
  "Keep what WHAT, a build or a gate of the project ROOT, has FOUND this time."
  (let* ((key (list root what))
         (before (gethash key duet-build-flymake--found)))
    (if found (puthash key found duet-build-flymake--found)
      (remhash key duet-build-flymake--found))
    (when (or before found)
      (duet-build-flymake--update root))))

(defun duet-build-flymake--update (root)
  "Show in the buffers of the project ROOT what its builds have found."
  (let ((files (duet-build-flymake--files root)))
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (when buffer-file-name
          (duet-build-flymake--take (duet-build-flymake--here files)))))))

(defun duet-build-flymake--here (files)
  "Return what FILES, a table of `duet-build-flymake--files', have for this buffer.
A file may be visited by the name of a symbolic link."
  (or (gethash buffer-file-name files)
      (and buffer-file-truename
           (gethash (expand-file-name buffer-file-truename) files))))

(defun duet-build-flymake--files (root)
  "Return what the builds of the project ROOT have found, by the names of files."
  (let ((files (make-hash-table :test #'equal))
        (directory (file-name-as-directory root)))
    (maphash
     (pcase-lambda (`(,of ,_) found)
       (when (equal of root)
         (dolist (diagnostic found)
           (when-let ((file (duet-get-string diagnostic :file)))
             (push diagnostic (gethash (duet-remote-name file directory) files))))))
     duet-build-flymake--found)
    files))

(defun duet-build-flymake--take (diagnostics)
  "Have the current buffer show DIAGNOSTICS, of its file, in the place of others."
  (when (or diagnostics duet-build-flymake--shown)
    (pcase-dolist (`(,beg ,end . ,_) duet-build-flymake--shown)
      (set-marker beg nil)
      (set-marker end nil))
    (setq duet-build-flymake--shown
          (and diagnostics (require 'flymake)
               (delq nil (mapcar #'duet-build-flymake--place diagnostics))))
    (cond ((and duet-build-flymake--report (bound-and-true-p flymake-mode))
           (duet-build-flymake--send))
          ((and duet-build-flymake-turn-on duet-build-flymake--shown)
           (flymake-mode 1)))))

(defun duet-build-flymake--place (diagnostic)
  "Return DIAGNOSTIC with its place in the current buffer, or nil if that has none.
That is a list of two markers, a type and a text."
  (save-restriction
    (widen)
    (when-let ((region (flymake-diag-region (current-buffer)
                                            (max 1 (or (duet-get-number diagnostic :line) 1))
                                            (duet-get-number diagnostic :column))))
      (list (copy-marker (car region)) (copy-marker (cdr region))
            (pcase (duet-get-string diagnostic :severity)
              ("error" :error) ("warning" :warning) (_ :note))
            (concat (duet-visible (or (duet-get-string diagnostic :message) ""))
                    (if-let ((source (duet-get-string diagnostic :source)))
                        (format " [%s]" (duet-visible-line source))
                      ""))))))

(defun duet-build-flymake--visited ()
  "Show in this buffer, which visits a file now, what builds have found there."
  (when (and buffer-file-name (> (hash-table-count duet-build-flymake--found) 0))
    (duet-log-guard "Flymake"
      (let ((roots '()))
        (maphash (lambda (key _) (cl-pushnew (car key) roots :test #'equal))
                 duet-build-flymake--found)
        (dolist (root roots)
          (when-let ((found (duet-build-flymake--here (duet-build-flymake--files root))))
            (duet-build-flymake--take found)))))))

(duet-model-add-observer #'duet-build-flymake--observe)
(add-hook 'flymake-diagnostic-functions #'duet-build-flymake)
(add-hook 'find-file-hook #'duet-build-flymake--visited)

(provide 'duet-build-flymake)
;;; duet-build-flymake.el ends here
