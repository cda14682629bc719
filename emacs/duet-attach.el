;;; duet-attach.el --- Images and files in prompts and messages  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The user can attach images and other files to a prompt.  A prompt that mentions
;; files of the project as @file attaches them, too.  The prompt buffer lists the
;; attachments below the prompt, and can remove them.
;;
;; `duet-attach-clipboard', or `yank-media' of Emacs 29, attaches the image in the
;; clipboard.  Files dropped on the prompt are attached.

;;; Code:

(require 'button)
(require 'cl-lib)
(require 'dnd)
(require 'image)
(require 'mailcap)
(require 'subr-x)
(require 'url-util)
(require 'duet-compose)
(require 'duet-connection)
(require 'duet-header)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-render)
(require 'duet-visible)

(declare-function yank-media-handler "yank-media" (types handler))

;;; Attachments of prompts

(defvar duet-attach--most (* 7 1024 1024)
  "Maximum size of all attachments of a prompt, in bytes.")

(defvar duet-attach--most-mentioned (* 256 1024)
  "Maximum size of a mentioned file that is attached, in bytes.
Of a longer file the agent gets only the path.")

(defvar-local duet-attach--items nil
  "The attachments of the prompt, the last added first.
They are names of files, and content blocks without a file.")

(defvar-local duet-attach--overlay nil
  "The overlay that lists the attachments below the prompt.")

(defun duet-attach-file (file)
  "Attach FILE to the prompt in this buffer."
  (interactive (progn (duet-only-in 'duet-compose-mode)
                      (list (read-file-name "Attach: " (duet-attach--from) nil t)))
               duet-compose-mode)
  (setq file (duet-host-visit-name (expand-file-name file)))
  (unless (file-regular-p file)
    (user-error "%s is not a file" file))
  (duet-attach-add file))

(defun duet-attach--from ()
  "Return the directory in which the user begins to choose a file.
If the agent works on a host, it is a directory of this machine; nil means
the current one."
  (when (duet-host-of default-directory)
    (let ((from (and (buffer-live-p duet-compose--origin)
                     (buffer-local-value 'default-directory duet-compose--origin))))
      (if (and from (not (duet-host-of from))) from (duet-host-local-directory)))))

(defun duet-attach-add (item)
  "Attach ITEM, the name of a file or a content block, to the prompt."
  (let ((items (cons item (delete item duet-attach--items))))
    (when (> (duet-attach--size items) duet-attach--most)
      (user-error "%s is too long to go with a prompt" (duet-attach--words item)))
    (setq duet-attach--items items)
    (duet-attach--show)
    (message "Attached: %s" (duet-attach--words item))))

(defun duet-attach-remove (item)
  "Remove the attachment ITEM from the prompt in this buffer.
Ask for it if there are several."
  (interactive
   (progn
     (duet-only-in 'duet-compose-mode)
     (let ((known (mapcar (lambda (item) (cons (duet-attach--words item) item))
                          duet-attach--items)))
       (unless known (user-error "Nothing is attached"))
       (list (cdr (if (cdr known)
                      (assoc (completing-read "Remove attachment: " known nil t) known)
                    (car known))))))
   duet-compose-mode)
  (unless item (user-error "Nothing removed"))
  (setq duet-attach--items (remq item duet-attach--items))
  (duet-attach--show)
  (message "Removed: %s" (duet-attach--words item)))

(defun duet-attach--size (items)
  "Return the size of ITEMS in bytes."
  (apply #'+ (mapcar (lambda (item)
                       (if (stringp item)
                           (or (file-attribute-size (file-attributes item)) 0)
                         (length (base64-decode-string (plist-get item :data)))))
                     items)))

(defun duet-attach--words (item)
  "Return the name and the size of the attachment ITEM in words."
  (format "%s, %s"
          (if (stringp item) (duet-visible-line (file-name-nondirectory item))
            (format "%s from the clipboard" (plist-get item :mimeType)))
          (duet-attachment-size (duet-attach--size (list item)))))

(defun duet-attach--show ()
  "List the attachments below the prompt."
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
  "Return the attachments of the prompt TEXT, a list of content blocks."
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
Ignore files outside the project: a mention does not permit to send them.
The files of a host are there: its agent reads them itself."
  (let ((start (if (duet-host-of default-directory) (length text) 0))
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
    ;; The agent's machine has no such file.
    (concat "attachment:" (url-hexify-string (file-name-nondirectory file)))))

(defun duet-attach--type (file)
  "Return the MIME type of FILE by its name, or nil."
  (mailcap-extension-to-mime (or (file-name-extension file) "")))

(defun duet-attach--link (file)
  "Return a content block that links to FILE."
  (list :type "resource_link" :uri (duet-attach--uri file)
        :name (file-name-nondirectory file)))

(defun duet-attach--block (file)
  "Return a content block with the content of FILE."
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


;;;; Images from the clipboard, dropped files

(defconst duet-attach--types '(image/png image/jpeg image/webp image/gif)
  "Types of images that agents accept, the best first.")

(defun duet-attach--image (type bytes)
  "Attach the image BYTES of TYPE, a symbol, to the prompt."
  (unless (memq type duet-attach--types)
    (user-error "Agents take no images of the type %s; save it as PNG, and attach the file"
                type))
  (duet-attach-add (list :type "image" :mimeType (symbol-name type)
                         :data (base64-encode-string
                                (encode-coding-string bytes 'binary) t))))

;;;###autoload
(defun duet-attach-clipboard ()
  "Attach the image in the clipboard to the prompt in this buffer."
  (interactive (duet-only-in 'duet-compose-mode) duet-compose-mode)
  (unless (display-graphic-p)
    (user-error "Emacs in a terminal cannot paste images: save it to a file, and attach that with %s"
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
      (user-error "The program that owns the clipboard does not provide the image"))
    (duet-attach--image type bytes)))

(defun duet-attach--dropped (uri _action)
  "Attach the file URI, which the user dropped on the prompt.
Return the action, as functions of `dnd-protocol-alist' do."
  (duet-attach-file (or (dnd-get-local-file-name uri t)
                        (user-error "Not a file of this machine: %s" uri)))
  'copy)

(defun duet-attach--take-from-window ()
  "Accept images and files from the window system in the current buffer."
  (setq-local dnd-protocol-alist
              (cons '("\\`file:" . duet-attach--dropped) dnd-protocol-alist))
  (when (fboundp 'yank-media-handler)
    (yank-media-handler duet-attach--types #'duet-attach--image)))

(add-hook 'duet-compose-mode-hook #'duet-attach--take-from-window)
(define-key duet-compose-mode-map (kbd "C-c C-y") #'duet-attach-clipboard)

;;; Attachments of messages

;; Messages of agents and results of tools may contain images, sounds and files.
;; The server has their bytes; a message has their ids.  The transcript shows
;; images if Emacs can, and a button for each attachment.

(defcustom duet-show-images t
  "Whether the transcript shows images of agents.
If nil, it has only a button for each."
  :type 'boolean
  :group 'duet)

(defconst duet-attachment--shown-bytes (* 4 1024 1024)
  "Maximum size of an image that the transcript shows unasked, in bytes.")

(defconst duet-attachment--types
  '(("image/png" . png) ("image/jpeg" . jpeg) ("image/gif" . gif) ("image/webp" . webp))
  "Types of images that the transcript shows unasked.
Others, such as SVG, may load further files.")

(defvar duet-attachment--images (make-hash-table :test #'eq :weakness 'key)
  "Bytes of images by their attachments; t while a request for them is open.
An entry lives as long as its attachment.")

;; The result of `file-size-human-readable' depends on the version of Emacs.
(defun duet-attachment-size (bytes)
  "Return BYTES, a number, as a size in words."
  (cond ((< bytes 1000) (format "%d B" bytes))
        ((< bytes 1000000) (format "%d kB" (/ bytes 1000)))
        (t (format "%.1f MB" (/ bytes 1e6)))))

(defun duet-attachment-label (attachment)
  "Return a line that describes ATTACHMENT."
  (let ((size (duet-get-number attachment :size))
        (id (duet-get-string attachment :attachment_id))
        (uri (duet-get-string attachment :uri)))
    (concat "["
            (string-join
             (delq nil
                   (list (string-replace "_" " " (or (duet-get-string attachment :type) "content"))
                         ;; An image has only the name of its file.
                         (or (duet-get-string attachment :name)
                             (and id uri (string-prefix-p "file:" uri)
                                  (file-name-nondirectory (url-unhex-string uri))))
                         (duet-get-string attachment :mime_type)
                         (and size (> size 0) (duet-attachment-size size))
                         (and (null id) uri)))
             " ")
            "]")))

(defun duet-attachment-render (message)
  "Return the lines that show the attachments of MESSAGE, or nil."
  (when-let ((attachments (duet-message-attachments message)))
    (mapconcat (lambda (attachment) (duet-attachment--line message attachment))
               attachments "\n")))

(defun duet-attachment--line (message attachment)
  "Return the text of ATTACHMENT of MESSAGE: a button, and its image."
  (let* ((id (duet-get-string attachment :attachment_id))
         (label (replace-regexp-in-string
                 "[\n\r]+" " " (duet-visible (duet-attachment-label attachment))))
         (image (and id (duet-attachment--image message attachment))))
    (concat "  "
            (if (null id)
                (propertize label 'face 'duet-dim)
              (make-text-button (copy-sequence label) nil
                                'action #'duet-attachment--pressed
                                'duet-attachment attachment
                                'follow-link t
                                'help-echo "mouse-1, RET: show it"))
            (if image (concat "\n  " (propertize " " 'display image)) ""))))

(defun duet-attachment--image (message attachment)
  "Return the image of ATTACHMENT of MESSAGE, or nil if its bytes are missing.
Then request them, and redraw MESSAGE with the reply."
  (let* ((id (duet-get-string attachment :attachment_id))
         (type (cdr (assoc (duet-get-string attachment :mime_type) duet-attachment--types)))
         (size (or (duet-get-number attachment :size) 0)))
    (when (and duet-show-images type (display-graphic-p) (image-type-available-p type)
               (<= size duet-attachment--shown-bytes))
      (pcase (gethash attachment duet-attachment--images)
        ('nil
         (when-let ((connection (bound-and-true-p duet-connection)))
           (puthash attachment t duet-attachment--images)
           (duet-attachment-fetch
            connection id
            (lambda (bytes _)
              (puthash attachment bytes duet-attachment--images)
              (duet-model-announce (duet-session-model (duet-message-session message))
                                   'message-changed (duet-message-session message) message))
            (lambda (_) (remhash attachment duet-attachment--images))))
         nil)
        ((and bytes (pred stringp))
         (ignore-errors (create-image bytes type t :max-width 600 :max-height 400)))))))

(defun duet-attachment-fetch (connection id success-fn &optional error-fn)
  "Request the bytes of the attachment ID through CONNECTION.
Call SUCCESS-FN with the bytes and their type, or ERROR-FN with the error.
If ERROR-FN is nil, show the error."
  (let ((parts '()))
    (cl-labels
        ((ask (offset)
           (duet-connection-request
            connection 'attachment.get (list :id id :offset offset)
            :success-fn
            (lambda (result)
              (push (base64-decode-string (or (duet-get-string result :data) "")) parts)
              (if-let ((next (duet-get-number result :next_offset)))
                  (ask next)
                (funcall success-fn (apply #'concat (nreverse parts))
                         (duet-get-string result :mime_type))))
            :error-fn
            (or error-fn
                (lambda (err)
                  (message "Duet: %s" (duet-connection-error-text err)))))))
      (ask 0))))

(defun duet-attachment--pressed (button)
  "Show the attachment of BUTTON."
  (duet-attachment-show duet-connection (button-get button 'duet-attachment)))

(defun duet-attachment-show (connection attachment)
  "Show ATTACHMENT of CONNECTION in a new buffer, where it can be saved."
  (duet-attachment-fetch
   connection (duet-get-string attachment :attachment_id)
   (lambda (bytes type)
     (let ((buffer (generate-new-buffer
                    (format "*duet %s*" (or (duet-get-string attachment :name)
                                            (duet-get-string attachment :type))))))
       (with-current-buffer buffer
         (set-buffer-multibyte nil)
         (insert bytes)
         (cond
          ((and (display-graphic-p) (assoc type duet-attachment--types))
           (image-mode))
          ((string-prefix-p "text/" (or type ""))
           (decode-coding-region (point-min) (point-max) 'utf-8)
           (set-buffer-multibyte t)))
         (set-buffer-modified-p nil)
         (goto-char (point-min)))
       (pop-to-buffer buffer)))))

(add-hook 'duet-render-functions #'duet-attachment-render)

(provide 'duet-attach)
;;; duet-attach.el ends here
