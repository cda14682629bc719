;;; duet-attachment.el --- Images and files in a conversation  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What agents say, and what tools give back, may be images, sounds and files.
;; The server has their bytes; a message has their ids.  Where Emacs can show
;; images they are shown in the transcript, else there is a button.

;;; Code:

(require 'button)
(require 'cl-lib)
(require 'image)
(require 'subr-x)
(require 'url-util)
(require 'duet-connection)
(require 'duet-model)
(require 'duet-render)
(require 'duet-visible)

(defcustom duet-show-images t
  "Whether images of agents are shown in the transcript.
Else there is a button for each."
  :type 'boolean
  :group 'duet)

(defconst duet-attachment--shown-bytes (* 4 1024 1024)
  "How many bytes an image has at most that is shown unasked.")

(defconst duet-attachment--types
  '(("image/png" . png) ("image/jpeg" . jpeg) ("image/gif" . gif) ("image/webp" . webp))
  "Types of images that are shown unasked.
Others, such as SVG, may ask for files of their own.")

(defvar duet-attachment--images (make-hash-table :test #'eq :weakness 'key)
  "Bytes of images by their attachments; t while they are on their way.
They are forgotten with the message that the attachment belongs to.")

;; `file-size-human-readable' rounds otherwise in each Emacs.
(defun duet-attachment-size (bytes)
  "Return BYTES, a number, in words."
  (cond ((< bytes 1000) (format "%d B" bytes))
        ((< bytes 1000000) (format "%d kB" (/ bytes 1000)))
        (t (format "%.1f MB" (/ bytes 1e6)))))

(defun duet-attachment-label (attachment)
  "Return what ATTACHMENT is, on a line."
  (let ((size (duet-get-number attachment :size))
        (id (duet-get-string attachment :attachment_id))
        (uri (duet-get-string attachment :uri)))
    (concat "["
            (string-join
             (delq nil
                   (list (string-replace "_" " " (or (duet-get-string attachment :type) "content"))
                         ;; An image has no name but that of its file.
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
  "Return what shows ATTACHMENT of MESSAGE: a button, and its image."
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
  "Return the image that ATTACHMENT of MESSAGE is, or nil.
Where it has not come yet, it is asked for, and MESSAGE is drawn again."
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
  "Ask through CONNECTION for the bytes of the attachment ID.
Call SUCCESS-FN with them and their type, or ERROR-FN with what went
wrong; without that it is shown."
  (let ((parts '()))
    (cl-labels
        ((ask (offset)
           (duet-connection-request
            connection 'getAttachment (list :id id :offset offset)
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
  "Show ATTACHMENT, which CONNECTION has, in a buffer of its own.
It can be saved from there."
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

(provide 'duet-attachment)
;;; duet-attachment.el ends here
