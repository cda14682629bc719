;;; duet-attach.el --- Files that go with a prompt  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Images and other files go with a prompt where the user attaches them, and
;; files of the project where the prompt mentions them as @file.  What is attached
;; is told below the prompt, and can be taken away again.
;;
;; What the window system has goes with a prompt, too: the image in the clipboard,
;; by `duet-attach-clipboard' or by `yank-media', which Emacs has since version 29,
;; and files that are dropped on the prompt.

;;; Code:

(require 'cl-lib)
(require 'dnd)
(require 'mailcap)
(require 'subr-x)
(require 'url-util)
(require 'duet-attachment)
(require 'duet-compose)
(require 'duet-header)
(require 'duet-remote)

(declare-function yank-media-handler "yank-media" (types handler))

(defvar duet-attach--most (* 7 1024 1024)
  "How many bytes can go with a prompt.")

(defvar duet-attach--most-mentioned (* 256 1024)
  "How many bytes a file has at most that goes along because it is mentioned.
Of a longer one the agent is told where it is.")

(defvar-local duet-attach--items nil
  "What the user has attached to the prompt, the last first.
Names of files, and content blocks that are in none.")

(defvar-local duet-attach--overlay nil
  "What tells below the prompt what is attached.")

(defun duet-attach-file (file)
  "Have FILE go with the prompt that is written here."
  (interactive (progn (duet-only-in 'duet-compose-mode)
                      (list (read-file-name "Attach: " nil nil t)))
               duet-compose-mode)
  (setq file (expand-file-name file))
  (unless (file-regular-p file)
    (user-error "%s is no file" file))
  (duet-attach-add file))

(defun duet-attach-add (item)
  "Have ITEM, the name of a file or a content block, go with the prompt."
  (let ((items (cons item (delete item duet-attach--items))))
    (when (> (duet-attach--size items) duet-attach--most)
      (user-error "%s is too long to go with a prompt" (duet-attach--words item)))
    (setq duet-attach--items items)
    (duet-attach--show)
    (message "Attached: %s" (duet-attach--words item))))

(defun duet-attach-remove (item)
  "Have ITEM not go with the prompt that is written here.
It is the only thing that is attached, or you are asked which."
  (interactive
   (progn
     (duet-only-in 'duet-compose-mode)
     (let ((known (mapcar (lambda (item) (cons (duet-attach--words item) item))
                          duet-attach--items)))
       (unless known (user-error "Nothing is attached"))
       (list (cdr (if (cdr known)
                      (assoc (completing-read "Do not attach: " known nil t) known)
                    (car known))))))
   duet-compose-mode)
  (unless item (user-error "Nothing is taken away"))
  (setq duet-attach--items (remq item duet-attach--items))
  (duet-attach--show)
  (message "Not attached any more: %s" (duet-attach--words item)))

(defun duet-attach--size (items)
  "Return how many bytes ITEMS have."
  (apply #'+ (mapcar (lambda (item)
                       (if (stringp item)
                           (or (file-attribute-size (file-attributes item)) 0)
                         (length (base64-decode-string (plist-get item :data)))))
                     items)))

(defun duet-attach--words (item)
  "Return what ITEM, which is attached, is called."
  (format "%s, %s"
          (if (stringp item) (duet-visible-line (file-name-nondirectory item))
            (format "%s from the clipboard" (plist-get item :mimeType)))
          (duet-attachment-size (duet-attach--size (list item)))))

(defun duet-attach--show ()
  "Tell below the prompt what is attached."
  (unless (overlayp duet-attach--overlay)
    (setq duet-attach--overlay (make-overlay (point-max) (point-max) nil t t)))
  (move-overlay duet-attach--overlay (point-max) (point-max))
  (overlay-put
   duet-attach--overlay 'after-string
   (and duet-attach--items
        (concat "\n"
                (mapconcat (lambda (item)
                             (propertize (format "[%s]" (duet-attach--words item))
                                         'face 'duet-dim))
                           (reverse duet-attach--items) "\n")
                "  " (duet-header-key #'duet-attach-remove "takes it away"
                                      'duet-compose-mode-map)
                "\n"))))

(defun duet-attach-content (text)
  "Return what goes with the prompt TEXT, a list of content blocks."
  (let ((mentioned (cl-set-difference (duet-attach--mentioned text) duet-attach--items
                                      :test #'equal))
        (left (- duet-attach--most (duet-attach--size duet-attach--items)))
        (blocks (mapcar (lambda (item) (if (stringp item) (duet-attach--block item) item))
                        duet-attach--items)))
    (dolist (file mentioned)
      (let ((size (duet-attach--size (list file))))
        (push (if (> size (min left duet-attach--most-mentioned))
                  (duet-attach--link file)
                (setq left (- left size))
                (duet-attach--block file))
              blocks)))
    (nreverse blocks)))

(defun duet-attach--mentioned (text)
  "Return the files of the project that TEXT mentions as @file.
What is elsewhere stays there: a text is not the user's word for it."
  (let ((start 0)
        (root (file-truename default-directory))
        (files '()))
    (while (string-match "\\(?:\\`\\|[ \t\n(]\\)@\\([^ \t\n]+\\)" text start)
      (setq start (match-end 1))
      (let* ((word (match-string 1 text))
             (file (cl-some (lambda (name)
                              (let ((file (file-truename (expand-file-name name root))))
                                (and (not (string-empty-p name))
                                     (file-in-directory-p file root)
                                     (file-regular-p file)
                                     (file-readable-p file)
                                     file)))
                            (list word (string-trim-right word "[].,;:!?)}'\"]+")))))
        (when file (cl-pushnew file files :test #'equal))))
    (nreverse files)))

(defun duet-attach--uri (file)
  "Return FILE as a URI."
  (if (duet-remote-same-p file default-directory)
      (concat "file://" (url-encode-url (duet-remote-local file)))
    ;; The agent has no such file.
    (concat "attachment:" (url-hexify-string (file-name-nondirectory file)))))

(defun duet-attach--type (file)
  "Return the type that the name of FILE stands for, or nil."
  (mailcap-extension-to-mime (or (file-name-extension file) "")))

(defun duet-attach--link (file)
  "Return a link to FILE."
  (list :type "resource_link" :uri (duet-attach--uri file)
        :name (file-name-nondirectory file)))

(defun duet-attach--block (file)
  "Return FILE as the content that it is."
  (let* ((bytes (with-temp-buffer
                  (set-buffer-multibyte nil)
                  (insert-file-contents-literally file)
                  (buffer-string)))
         (type (duet-attach--type file))
         (uri (duet-attach--uri file))
         (text (and (not (string-search "\0" bytes))
                    (decode-coding-string bytes 'utf-8-unix))))
    (cond
     ((and text (equal (encode-coding-string text 'utf-8-unix) bytes)
           (not (cl-some (lambda (c) (eq (char-charset c) 'eight-bit)) text)))
      (list :type "resource" :resource (list :uri uri :mimeType (or type "text/plain")
                                             :text text)))
     ((and type (string-match "\\`\\(image\\|audio\\)/" type))
      (list :type (match-string 1 type) :mimeType type :uri uri
            :data (base64-encode-string bytes t)))
     (t (list :type "resource"
              :resource (list :uri uri :mimeType (or type "application/octet-stream")
                              :blob (base64-encode-string bytes t)))))))

(add-hook 'duet-compose-content-functions #'duet-attach-content)
(define-key duet-compose-mode-map (kbd "C-c C-a") #'duet-attach-file)
(define-key duet-compose-mode-map (kbd "C-c C-d") #'duet-attach-remove)


;;; Images from the clipboard, files that are dropped

(defconst duet-attach--types '(image/png image/jpeg image/webp image/gif)
  "Types of images that agents take, the best first.")

(defun duet-attach--image (type bytes)
  "Have an image of TYPE, a symbol, that is BYTES go with the prompt."
  (unless (memq type duet-attach--types)
    (user-error "Agents take no images of the type %s; save it as PNG, and attach the file"
                type))
  (duet-attach-add (list :type "image" :mimeType (symbol-name type)
                         :data (base64-encode-string
                                (encode-coding-string bytes 'binary) t))))

;;;###autoload
(defun duet-attach-clipboard ()
  "Have the image in the clipboard go with the prompt that is written here."
  (interactive (duet-only-in 'duet-compose-mode) duet-compose-mode)
  (unless (display-graphic-p)
    (user-error "A terminal gives Emacs no images: save it to a file, and attach that with %s"
                (duet-look-key #'duet-attach-file 'duet-compose-mode-map)))
  (let* ((offered (append (gui-get-selection 'CLIPBOARD 'TARGETS) nil))
         (type (or (cl-find-if (lambda (type) (memq type offered)) duet-attach--types)
                   (cl-find-if (lambda (type)
                                 (and (symbolp type)
                                      (string-prefix-p "image/" (symbol-name type))))
                               offered)
                   (user-error "No image is in the clipboard")))
         (bytes (gui-get-selection 'CLIPBOARD type)))
    (when (or (null bytes) (string-empty-p bytes))
      (user-error "The clipboard's owner does not hand out its image"))
    (duet-attach--image type bytes)))

(defun duet-attach--dropped (uri _action)
  "Have the file URI, which was dropped on the prompt, go with it.
Return what was done, as functions of `dnd-protocol-alist' do."
  (duet-attach-file (or (dnd-get-local-file-name uri t)
                        (user-error "Not a file of this machine: %s" uri)))
  'copy)

(defun duet-attach--take-from-window ()
  "Have the prompt take images and files from the window system."
  (setq-local dnd-protocol-alist
              (cons '("\\`file:" . duet-attach--dropped) dnd-protocol-alist))
  (when (fboundp 'yank-media-handler)
    (yank-media-handler duet-attach--types #'duet-attach--image)))

(add-hook 'duet-compose-mode-hook #'duet-attach--take-from-window)
(define-key duet-compose-mode-map (kbd "C-c C-y") #'duet-attach-clipboard)

(provide 'duet-attach)
;;; duet-attach.el ends here
