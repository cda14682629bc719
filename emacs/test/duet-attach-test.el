;;; duet-attach-test.el --- Tests of attachments of prompts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-attach)

(defmacro duet-attach-test-in-project (&rest body)
  "Run BODY in a directory of a project with files; `outside' is a file elsewhere."
  `(let* ((top (file-truename (make-temp-file "duet" t)))
          (outside (expand-file-name "outside.txt" top))
          (default-directory (file-name-as-directory (expand-file-name "p" top))))
     (unwind-protect
         (progn
           (make-directory default-directory)
           (write-region "not yours" nil outside nil 'silent)
           (write-region "buy milk" nil "notes.txt" nil 'silent)
           (let ((coding-system-for-write 'no-conversion))
             (write-region (unibyte-string 137 80 78 71 0 255) nil "a.png" nil 'silent))
           (make-symbolic-link outside "link.txt")
           ,@body)
       (delete-directory top t))))

(ert-deftest duet-attach-test-mentions ()
  "A prompt carries the files of the project that it mentions, and no others."
  (duet-attach-test-in-project
   (let ((content (duet-attach-content
                   "see @notes.txt, (@a.png) @notes.txt me@a.png @nothing @../outside.txt @link.txt")))
     (should (equal (mapcar (lambda (block) (plist-get block :type)) content)
                    '("resource" "image")))
     (should (equal (duet-get-string (plist-get (car content) :resource) :text) "buy milk"))
     (should (equal (plist-get (cadr content) :data)
                    (base64-encode-string (unibyte-string 137 80 78 71 0 255)))))
   (let ((duet-attach--most-mentioned 3))
     (should (equal (plist-get (car (duet-attach-content "@notes.txt")) :type)
                    "resource_link")))))

(ert-deftest duet-attach-test-attach ()
  "The user attaches files from anywhere, unless they are too large."
  (duet-attach-test-in-project
   (with-temp-buffer
     (setq default-directory (file-name-directory (expand-file-name "notes.txt")))
     (let ((inhibit-message t))
       (should-error (call-interactively #'duet-attach-file) :type 'user-error)
       (let ((major-mode 'duet-compose-mode))
         (duet-test-typing (format "C-a C-k %s RET" outside)
           (call-interactively #'duet-attach-file)))
       (should (equal (plist-get (plist-get (car (duet-attach-content "")) :resource) :text)
                      "not yours"))
       (let ((duet-attach--most 9))
         (should-error (duet-attach-file "notes.txt") :type 'user-error))
       (should (equal duet-attach--items (list outside)))))))

(defun duet-attach-test-told ()
  "Return the text below the prompt."
  (substring-no-properties (or (overlay-get duet-attach--overlay 'after-string) "")))

(ert-deftest duet-attach-test-remove ()
  "Attachments are listed below the prompt and can be removed."
  (duet-attach-test-in-project
   (with-temp-buffer
     (setq default-directory (file-name-directory (expand-file-name "notes.txt")))
     (duet-compose-mode)
     (duet-test-listening
       (duet-test-should-say "Nothing is attached"
         (duet-test-press "C-c C-d" #'duet-attach-remove))
       (duet-attach-file "notes.txt")
       (duet-attach-file outside)
       (should (string-match-p
                "\\`\n\\[notes\\.txt, 8 B\\]\n\\[outside\\.txt, 9 B\\]  C-c C-d takes it away\n\\'"
                (duet-attach-test-told)))
       (insert "what is written is above it")
       (should (= (overlay-start duet-attach--overlay) (point-max)))
       (duet-test-typing "notes TAB RET"
         (duet-test-press "C-c C-d" #'duet-attach-remove))
       (should (duet-test-heard "^Removed: notes.txt"))
       (should (equal duet-attach--items (list outside)))
       (duet-test-press "C-c C-d" #'duet-attach-remove)
       (should-not duet-attach--items)
       (should (equal (duet-attach-test-told) ""))))))


;;; The window system

(defmacro duet-attach-test-with-clipboard (contents &rest body)
  "Run BODY in a prompt on a graphic display whose clipboard has CONTENTS.
CONTENTS is an alist of types, which are symbols, and bytes."
  (declare (indent 1))
  `(with-temp-buffer
     (duet-compose-mode)
     (cl-letf (((symbol-function 'display-graphic-p) #'always)
               ((symbol-function 'gui-get-selection)
                (lambda (_ type)
                  (let ((contents ,contents))
                    (if (eq type 'TARGETS) (vconcat '(TARGETS TEXT) (mapcar #'car contents))
                      (alist-get type contents))))))
       (duet-test-listening ,@body))))

(defconst duet-attach-test-image (unibyte-string 137 80 78 71 0 255)
  "The beginning of an image.")

(ert-deftest duet-attach-test-clipboard ()
  "The image in the clipboard is attached, in the format that agents prefer."
  (duet-attach-test-with-clipboard `((image/gif . "gif") (image/png . ,duet-attach-test-image))
    (duet-test-press "C-c C-y" #'duet-attach-clipboard)
    (should (duet-test-heard "^Attached: image/png from the clipboard, 6 B$"))
    (should (equal (duet-attach-content "")
                   `((:type "image" :mimeType "image/png"
                      :data ,(base64-encode-string duet-attach-test-image)))))
    (let ((duet-attach--most 3))
      (duet-test-should-say "too long" (duet-attach-clipboard))))
  (pcase-dolist (`(,contents . ,words)
                 '((((UTF8_STRING . "text")) . "No image is in the clipboard")
                   (((image/tiff . "tiff")) . "take no images of the type image/tiff")
                   (((image/png . "")) . "does not provide the image")))
    (duet-attach-test-with-clipboard contents
      (duet-test-should-say words (duet-attach-clipboard))
      (should-not duet-attach--items))))

(ert-deftest duet-attach-test-clipboard-of-a-terminal ()
  "On a terminal, which has no images, the command names the alternative."
  (with-temp-buffer
    (duet-compose-mode)
    (cl-letf (((symbol-function 'display-graphic-p) #'ignore))
      (duet-test-should-say "save it to a file, and attach that with C-c C-a"
        (duet-test-press "C-c C-y" #'duet-attach-clipboard)))))

(ert-deftest duet-attach-test-yank-media ()
  "Media that Emacs yanks are attached to the prompt."
  (skip-unless (fboundp 'yank-media))
  (duet-attach-test-with-clipboard `((image/png . ,duet-attach-test-image))
    ;; Emacs yanks only images that it can display.
    (cl-letf (((symbol-function 'image-type-available-p) #'always))
      (call-interactively 'yank-media))
    (should (equal (plist-get (car (duet-attach-content "")) :mimeType) "image/png"))))

(ert-deftest duet-attach-test-drop ()
  "A file that is dropped on a prompt is attached; elsewhere Emacs visits it."
  (duet-attach-test-in-project
   (with-temp-buffer
     (duet-compose-mode)
     (let ((drop (lambda (uri)
                   (funcall (cdr (cl-find-if (lambda (entry)
                                               (string-match-p (car entry) uri))
                                             dnd-protocol-alist))
                            uri 'copy))))
       (duet-test-listening
         (should (eq (funcall drop (concat "file://" outside)) 'copy))
         (should (equal duet-attach--items (list outside)))
         (duet-test-should-say "is not a file\\|Not a file of this machine"
           (funcall drop "file:///nowhere/at/all"))))
     (with-temp-buffer
       (should-not (rassq #'duet-attach--dropped dnd-protocol-alist))))))

(provide 'duet-attach-test)
;;; duet-attach-test.el ends here
