;;; duet-build-flymake.el --- Diagnostics of builds in Flymake  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The server reports the diagnostics of builds: builds of this Emacs, of an agent's
;; editor, and of `duet-rpc build' in a shell.  `duet-build-flymake' is a backend of
;; Flymake that shows them in the buffers of the files, until the next build of the same
;; name has ended.  It also shows the findings of gates.  It checks nothing by itself,
;; and costs nothing without a build.

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
  "Whether to turn on Flymake in buffers for which a build has diagnostics.
If nil, only buffers with Flymake on show them."
  :type 'boolean
  :group 'duet)

(defvar duet-build-flymake--found (make-hash-table :test #'equal)
  "Diagnostics of builds and gates: the server's objects.
Each key is a list of the project's directory and of the build or gate.")

(defvar-local duet-build-flymake--report nil
  "The function that reports diagnostics in the buffer to Flymake.")
(defvar-local duet-build-flymake--shown nil
  "Diagnostics in the buffer: lists of two markers, a type and a text.")

(defun duet-build-flymake (report &rest _)
  "Report the diagnostics of builds in the buffer by calling REPORT.
A function for `flymake-diagnostic-functions'."
  (setq duet-build-flymake--report report)
  (duet-build-flymake--send))

(defun duet-build-flymake--send ()
  "Report the diagnostics in the current buffer to Flymake.
Their positions have moved with changes of the text."
  (duet-log-guard "Flymake"
    (funcall duet-build-flymake--report
             (mapcar (pcase-lambda (`(,beg ,end ,type ,text))
                       (flymake-make-diagnostic (current-buffer) (marker-position beg)
                                                (marker-position end) type text))
                     duet-build-flymake--shown)
             ;; Replace all earlier diagnostics.
             :region (cons (point-min) (point-max)))))

(defun duet-build-flymake--observe (model kind _session data _extra)
  "Store the diagnostics in DATA of a build or a gate of MODEL's project.
KIND is the kind of the change."
  (cond
   ((and (eq kind 'build) (member (duet-get-string data :stage) '("succeeded" "failed")))
    (duet-build-flymake--keep (duet-model-root model) (list 'build (duet-get-string data :name))
                              (duet-get-objects data :diagnostics)))
   ((eq kind 'gate)
    (duet-build-flymake--keep (duet-model-root model) (list 'gate (duet-get-string data :gate))
                              (duet-get-objects data :findings)))))

(defun duet-build-flymake--keep (root what found)
  "Store FOUND, the diagnostics of WHAT, a build or a gate of the project ROOT."
  (let* ((key (list root what))
         (before (gethash key duet-build-flymake--found)))
    (if found (puthash key found duet-build-flymake--found)
      (remhash key duet-build-flymake--found))
    (when (or before found)
      (duet-build-flymake--update root))))

(defun duet-build-flymake--update (root)
  "Show the diagnostics of the project ROOT in the buffers of its files."
  (let ((files (duet-build-flymake--files root)))
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (when buffer-file-name
          (duet-build-flymake--take (duet-build-flymake--here files)))))))

(defun duet-build-flymake--here (files)
  "Return the diagnostics in FILES for this buffer.
FILES is a table of `duet-build-flymake--files'.  The name of the buffer's
file may be a symbolic link."
  (or (gethash buffer-file-name files)
      (and buffer-file-truename
           (gethash (expand-file-name buffer-file-truename) files))))

(defun duet-build-flymake--files (root)
  "Return the diagnostics of the project ROOT, by the names of files."
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
  "Show DIAGNOSTICS, of the current buffer's file, in place of earlier ones."
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
  "Return DIAGNOSTIC with its region in the current buffer, or nil if it has none.
The value is a list of two markers, a type and a text."
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
  "Show diagnostics of builds in this buffer, which now visits a file."
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
