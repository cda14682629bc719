;;; duet-names-test.el --- What is where is told by its name  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A name begins with that of the file which it stands in, or with a type that the
;; file defines.  A view that takes several files, duet-VIEW.el and
;; duet-VIEW-PART.el, has one beginning, duet-VIEW.  What users call by its name,
;; a command, an option or a face, is called by what it is for, where that is
;; more to the point.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'seq)
(require 'duet-test-lib)

(defconst duet-names-test-exceptions
  '((duet-connection duet-only-in)      ; stands in what makes a command one of a mode
    (duet-transcript duet-session)      ; what a buffer is about, beside `duet-connection'
    (duet-rpc-process duet))            ; the group of all options
  "Files, and beginnings of names that they have besides.")

(defun duet-names-test-forms (file)
  "Return the forms in FILE."
  (with-temp-buffer
    (insert-file-contents file)
    (let ((forms '()))
      (condition-case nil
          (while t (push (read (current-buffer)) forms))
        (end-of-file (nreverse forms))))))

(defun duet-names-test-defined (form)
  "Return the name that FORM defines, or nil."
  (pcase form
    (`(defvar ,_) nil)                  ; says that another file defines it
    (`(,(or 'defun 'defsubst 'defmacro 'defvar 'defvar-local 'defconst 'defcustom 'defface
            'defgroup 'cl-defun 'cl-defmacro 'cl-defgeneric 'cl-defstruct
            'define-derived-mode 'define-minor-mode 'transient-define-prefix)
       ,name . ,_)
     (if (consp name) (car name) name))))

(defun duet-names-test-user-p (form)
  "Return non-nil if FORM defines something that users call by its name."
  (or (memq (car form) '(defcustom defface defgroup transient-define-prefix))
      (and (eq (car form) 'defun) (assq 'interactive form)
           (not (string-search "--" (symbol-name (cadr form)))))))

(defun duet-names-test-in-p (name file)
  "Return non-nil if NAME is FILE, or begins with it as a word."
  (string-match-p (concat "\\`" (regexp-quote file) "\\(?:\\'\\|s?-\\|s\\'\\)") name))

(defun duet-names-test-wrong (name file types files)
  "Return non-nil if NAME should not stand in FILE, which defines TYPES.
FILES are all there are."
  (let* ((owner (car (sort (seq-filter (lambda (other)
                                         (or (equal name other)
                                             (string-prefix-p (concat other "-") name)))
                                       files)
                           (lambda (a b) (> (length a) (length b))))))
         (besides (mapcar #'symbol-name
                          (cdr (assq (intern file) duet-names-test-exceptions)))))
    (not (or (equal owner file)
             ;; The file is a part of a view, and the name has no other place.
             (and owner (not (equal owner "duet")) (string-prefix-p (concat owner "-") file))
             (and (member owner '(nil "duet")) (duet-names-test-in-p name file))
             (seq-some (lambda (type) (duet-names-test-in-p name type)) (append types besides))))))

(ert-deftest duet-names-test-files ()
  "A name tells the file that it stands in."
  (let* ((folder (file-name-directory (locate-library "duet.el")))
         (paths (directory-files folder t "\\`duet.*\\.el\\'"))
         (paths (seq-remove (lambda (path) (string-match-p "-\\(?:test\\|test-lib\\|autoloads\\|pkg\\)\\.el\\'" path)) paths))
         (files (mapcar #'file-name-base paths))
         (wrong '()))
    (dolist (path paths)
      (let* ((file (file-name-base path))
             (forms (duet-names-test-forms path))
             (types (cl-loop for form in forms
                             when (eq (car-safe form) 'cl-defstruct)
                             collect (symbol-name (duet-names-test-defined form)))))
        (dolist (form forms)
          (when-let ((name (and (consp form) (duet-names-test-defined form))))
            (when (and (not (duet-names-test-user-p form))
                       (duet-names-test-wrong (symbol-name name) file types files))
              (push (format "%s in %s.el" name file) wrong))))))
    (should (> (length files) 50))
    (should-not (nreverse wrong))))

(provide 'duet-names-test)
;;; duet-names-test.el ends here
