;;; duet-manual-test.el --- Tests of the manual against the package  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The tables of keys in the manual, duet.texi, are compared with the keymaps that
;; they name, in both directions.  The manual must document each command and each
;; option.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'transient)
(require 'duet)

(defconst duet-manual-test-folder
  (file-name-directory (locate-library "duet"))
  "The directory of the package.")

(defconst duet-manual-test-unlisted
  '("-mode\\'" "-mouse\\'")
  "Commands that need no documentation: modes and mouse commands.")

(defconst duet-manual-test-keys
  '((duet-approval-map "2" "3" "4" "5" "6" "7" "8" "9")
    (duet-approvals-mode-map "n" "p"))
  "Keys that the manual tells of in words.")

(defun duet-manual-test-file ()
  "Return the name of the manual, or skip the test if there is none."
  (let ((file (expand-file-name "duet.texi" duet-manual-test-folder)))
    (unless (file-exists-p file)
      (ert-skip "The manual is not beside the package"))
    file))

(defmacro duet-manual-test-with-manual (&rest body)
  "Run BODY with the manual in the current buffer, and all of the package loaded."
  (declare (indent 0) (debug t))
  `(with-temp-buffer
     (insert-file-contents (duet-manual-test-file))
     (dolist (file (directory-files duet-manual-test-folder nil "\\`duet.*\\.el\\'"))
       (require (intern (file-name-base file))))
     ,@body))

(defun duet-manual-test-tables (kind)
  "Return the tables after a comment of KIND.
Each is a list of the symbol in the comment and conses of keys and
commands."
  (goto-char (point-min))
  (let (tables)
    (while (re-search-forward (format "^@c %s \\([^ \n]+\\)\n@table" kind) nil t)
      (let ((name (intern (match-string 1)))
            (end (save-excursion (search-forward "@end table")))
            keys)
        (while (re-search-forward "^@bound{\\([^\n]*?\\), \\([^, \n]+\\)}$" end t)
          (push (cons (match-string 1) (intern (match-string 2))) keys))
        (push (cons name (nreverse keys)) tables)))
    tables))

(defun duet-manual-test-bindings (map &optional prefix)
  "Return the bindings of MAP itself below PREFIX to commands of Duet.
Mouse events and parent keymaps do not count."
  (let (bindings)
    (map-keymap-internal
     (lambda (event binding)
       (let ((keys (vconcat prefix (vector event))))
         (cond
          ((keymapp binding)
           (setq bindings (append (duet-manual-test-bindings binding keys) bindings)))
          ((string-match-p "mouse\\|remap" (key-description keys)))
          ((and (symbolp binding) (string-prefix-p "duet" (symbol-name binding)))
           (push (cons (key-description keys) binding) bindings)))))
     map)
    bindings))

(defun duet-manual-test-key (key)
  "Return KEY as a keymap spells it."
  (replace-regexp-in-string "\\`ESC " "M-" key))

(ert-deftest duet-manual-test-keys-are-bound ()
  "Each key in the manual is bound to its command."
  (duet-manual-test-with-manual
    (let ((tables (duet-manual-test-tables "keymap")))
      (should (> (length tables) 5))
      (pcase-dolist (`(,name . ,keys) tables)
        (should (list name keys))
        (pcase-dolist (`(,key . ,command) keys)
          (should (equal (list name key (lookup-key (symbol-value name) (kbd key)))
                         (list name key command))))))))

(ert-deftest duet-manual-test-bound-keys-are-told-of ()
  "The manual has all keys that are bound."
  (duet-manual-test-with-manual
    (let ((tables (duet-manual-test-tables "keymap"))
          missing)
      (mapatoms
       (lambda (name)
         (when (and (string-match-p "\\`duet-\\([^-]\\|-[^-]\\)*-map\\'" (symbol-name name))
                    (boundp name)
                    (keymapp (symbol-value name)))
           (let ((told (append (mapcar #'car (alist-get name tables))
                               (alist-get name duet-manual-test-keys))))
             (pcase-dolist (`(,key . ,command)
                            (duet-manual-test-bindings (symbol-value name)))
               (unless (member (duet-manual-test-key key) told)
                 (push (list name key command) missing)))))))
      (should-not missing))))

(defun duet-manual-test-suffixes (object)
  "Return conses of keys and commands of all suffixes in the layout OBJECT."
  (cond
   ((and (consp object) (plist-member (ignore-errors (cl-remove-if-not #'identity object))
                                      :key))
    (list (cons (plist-get object :key) (plist-get object :command))))
   ((vectorp object) (cl-mapcan #'duet-manual-test-suffixes (append object nil)))
   ((consp object)
    (cl-loop for rest on object
             append (duet-manual-test-suffixes (car rest))
             while (listp (cdr rest))))))

(ert-deftest duet-manual-test-menu ()
  "The manual has exactly the items of the menu."
  (duet-manual-test-with-manual
    (pcase-dolist (`(,name . ,keys) (duet-manual-test-tables "menu"))
      (let ((suffixes (duet-manual-test-suffixes (get name 'transient--layout))))
        (should (> (length suffixes) 10))
        (should-not (cl-set-exclusive-or suffixes keys :test #'equal))))))

(ert-deftest duet-manual-test-commands ()
  "The manual has each command, and no command that does not exist."
  (duet-manual-test-with-manual
    (let (told missing)
      (goto-char (point-min))
      (while (re-search-forward
              "^@deffnx? Command \\([^ \n]+\\)\\|^@bound{[^\n]*, \\([^, \n]+\\)}" nil t)
        (push (intern (or (match-string 1) (match-string 2))) told))
      (dolist (command told)
        (should (equal (list command (commandp command)) (list command t))))
      (mapatoms
       (lambda (symbol)
         (let ((name (symbol-name symbol)))
           (when (and (string-match-p "\\`duet\\(-\\|\\'\\)" name)
                      (not (string-match-p "--\\|-test-" name))
                      (commandp symbol)
                      (not (memq symbol told))
                      (cl-notany (lambda (regexp) (string-match-p regexp name))
                                 duet-manual-test-unlisted))
             (push symbol missing)))))
      (should-not missing))))

(ert-deftest duet-manual-test-options ()
  "The manual has each option, and no option that does not exist."
  (duet-manual-test-with-manual
    (let (told options)
      (goto-char (point-min))
      (while (re-search-forward "^@defoptx? \\([^ \n]+\\)$" nil t)
        (push (intern (match-string 1)) told))
      (mapatoms
       (lambda (symbol)
         (when (and (string-prefix-p "duet-" (symbol-name symbol))
                    (not (string-match-p "-test-\\|-mode\\(-hook\\)?\\'"
                                         (symbol-name symbol)))
                    (custom-variable-p symbol))
           (push symbol options))))
      (should-not (cl-set-exclusive-or told options)))))

(ert-deftest duet-manual-test-everything-is-loaded ()
  "Loading `duet' loads all files of the package."
  (dolist (file (directory-files duet-manual-test-folder nil "\\`duet.*\\.el\\'"))
    (should (equal (list file (featurep (intern (file-name-base file))))
                   (list file t)))))

(provide 'duet-manual-test)
;;; duet-manual-test.el ends here
