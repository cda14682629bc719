;;; duet-attach-window.el --- Images from the clipboard, files that are dropped  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the window system has goes with a prompt: the image in the clipboard, by
;; `duet-attach-clipboard' or by `yank-media', which Emacs has since version 29,
;; and files that are dropped on the prompt.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'dnd)
(require 'duet-attach)

(declare-function yank-media-handler "yank-media" (types handler))

(defconst duet-attach-window--types '(image/png image/jpeg image/webp image/gif)
  "Types of images that agents take, the best first.")

(defun duet-attach-window--image (type bytes)
  "Have an image of TYPE, a symbol, that is BYTES go with the prompt."
  (unless (memq type duet-attach-window--types)
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
                (substitute-command-keys "\\<duet-compose-mode-map>\\[duet-attach-file]")))
  (let* ((offered (append (gui-get-selection 'CLIPBOARD 'TARGETS) nil))
         (type (or (cl-find-if (lambda (type) (memq type offered)) duet-attach-window--types)
                   (cl-find-if (lambda (type)
                                 (and (symbolp type)
                                      (string-prefix-p "image/" (symbol-name type))))
                               offered)
                   (user-error "No image is in the clipboard")))
         (bytes (gui-get-selection 'CLIPBOARD type)))
    (when (or (null bytes) (string-empty-p bytes))
      (user-error "The clipboard's owner does not hand out its image"))
    (duet-attach-window--image type bytes)))

(defun duet-attach-window--dropped (uri _action)
  "Have the file URI, which was dropped on the prompt, go with it.
Return what was done, as functions of `dnd-protocol-alist' do."
  (duet-attach-file (or (dnd-get-local-file-name uri t)
                        (user-error "Not a file of this machine: %s" uri)))
  'copy)

(defun duet-attach-window--setup ()
  "Have the prompt take images and files from the window system."
  (setq-local dnd-protocol-alist
              (cons '("\\`file:" . duet-attach-window--dropped) dnd-protocol-alist))
  (when (fboundp 'yank-media-handler)
    (yank-media-handler duet-attach-window--types #'duet-attach-window--image)))

(add-hook 'duet-compose-mode-hook #'duet-attach-window--setup)
(define-key duet-compose-mode-map (kbd "C-c C-y") #'duet-attach-clipboard)

(provide 'duet-attach-window)
;;; duet-attach-window.el ends here
