;;; duet-get.el --- What stands in JSON objects  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the server sends may be anything.  What is read here out of it is what it is
;; read as, or nil.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(defun duet-get (object &rest keys)
  "Return what stands under KEYS, one inside the other, in OBJECT; nil if nothing.
OBJECT may be anything, and so may what is in it; false is nil."
  (while (and keys object)
    (setq object (and (consp object) (keywordp (car object))
                      (ignore-errors (plist-get object (car keys))))
          keys (cdr keys)))
  (if (memq object '(:json-false :false :null)) nil object))

(defun duet-get-name (key)
  "Return the name of the member KEY of an object.
Emacs 28 leaves one that is not ASCII as the bytes it came in."
  (let ((name (substring (symbol-name key) 1)))
    (if (multibyte-string-p name) name (decode-coding-string name 'utf-8))))

(defun duet-get-string (object &rest keys)
  "Return the string under KEYS in OBJECT, or nil; an empty one is nil."
  (let ((value (apply #'duet-get object keys)))
    (and (stringp value) (not (string-empty-p value))
         (if (object-intervals value) (substring-no-properties value) value))))

(defun duet-get-number (object &rest keys)
  "Return the number under KEYS in OBJECT, or nil."
  (let ((value (apply #'duet-get object keys)))
    (and (numberp value) value)))

(defun duet-get-objects (object &rest keys)
  "Return the objects in the array under KEYS in OBJECT as a list."
  (let ((value (apply #'duet-get object keys)))
    (and (vectorp value)
         (cl-remove-if-not (lambda (element)
                             (and (consp element) (keywordp (car element))))
                           (append value nil)))))

(defun duet-get-strings (object &rest keys)
  "Return the strings in the array under KEYS in OBJECT as a list."
  (let ((value (apply #'duet-get object keys)))
    (and (vectorp value) (cl-remove-if-not #'stringp (append value nil)))))

(defun duet-get-time-before-p (a b)
  "Return non-nil if A is before B, both as the protocol writes times.
Their fractions differ in length, so the Z at the end is in the way."
  (string< (string-remove-suffix "Z" (or a "")) (string-remove-suffix "Z" (or b ""))))

(provide 'duet-get)
;;; duet-get.el ends here
