;;; duet-preview-messages.el --- What pages of a preview say  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What pages write to their consoles, and what goes wrong in them, is listed in the
;; order in which it was said first.  RET goes to the place in a file.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'url-util)
(require 'duet-connection)
(require 'duet-model)
(require 'duet-look)
(require 'duet-render)
(require 'duet-visible)

(defconst duet-preview--most 1000
  "How many messages of pages are listed; then the oldest go.")

(defvar-local duet-preview--messages nil
  "Markers of the messages in the buffer by their ids, a hash table.")

(defun duet-preview--insert (text)
  "Insert TEXT at the end of the buffer; windows whose point is there stay there."
  (let* ((inhibit-read-only t)
         (end (point-max))
         (follow (= (point) end))
         (windows (cl-remove-if-not (lambda (window) (= (window-point window) end))
                                    (get-buffer-window-list nil nil t))))
    (save-excursion
      (goto-char end)
      (insert text))
    (when follow (goto-char (point-max)))
    (dolist (window windows) (set-window-point window (point-max)))
    (set-buffer-modified-p nil)))

(defun duet-preview--show (object)
  "Show OBJECT, what a page has said, in the place of what it has said before."
  (let* ((id (duet-get object :id))
         (marker (gethash id duet-preview--messages))
         (inhibit-read-only t))
    (if marker
        (save-excursion
          (goto-char marker)
          (delete-region marker (next-single-property-change
                                 marker 'duet-preview-message nil (point-max)))
          (insert (duet-preview--line object))
          (set-marker marker (- (point) (length (duet-preview--line object))))
          (set-buffer-modified-p nil))
      (puthash id (copy-marker (point-max)) duet-preview--messages)
      (duet-preview--insert (duet-preview--line object))
      (when (> (hash-table-count duet-preview--messages) duet-preview--most)
        (duet-preview--forget-first)))))

(defun duet-preview--forget-first ()
  "Forget the message that is listed first."
  (save-excursion
    (goto-char (point-min))
    (unless (get-text-property (point) 'duet-preview-message)
      (goto-char (next-single-property-change (point) 'duet-preview-message nil (point-max))))
    (when-let ((object (get-text-property (point) 'duet-preview-message)))
      (delete-region (point) (next-single-property-change
                              (point) 'duet-preview-message nil (point-max)))
      (remhash (duet-get object :id) duet-preview--messages)
      (set-buffer-modified-p nil))))

(defun duet-preview--wrong-p (object)
  "Return non-nil if OBJECT, what a page has said, tells that something is wrong."
  (or (equal (duet-get-string object :kind) "error")
      (member (duet-get-string object :level) '("error" "warn"))))

(defun duet-preview--place (object)
  "Return where OBJECT, what a page has said, comes from, in words, or nil."
  (when-let ((url (duet-get-string object :url)))
    (concat url
            (if-let ((line (duet-get-number object :line))) (format ":%d" line) "")
            (if-let ((column (duet-get-number object :column))) (format ":%d" column) ""))))

(defun duet-preview--line (object)
  "Return what is shown of OBJECT, what a page has said."
  (let* ((kind (duet-get-string object :kind))
         (level (or (duet-get-string object :level) kind))
         (time (ignore-errors (date-to-time (duet-get-string object :time))))
         (count (or (duet-get-number object :count) 1))
         (text (duet-render-wrap
                (concat
                 (propertize (concat (if time (format-time-string "%T " time) "")
                                     (format "%-6s " (duet-visible-line level)))
                             'face (cond ((not (duet-preview--wrong-p object)) 'duet-dim)
                                         ((equal level "warn") 'duet-waiting)
                                         (t 'duet-failed)))
                 ;; A title is one line: it passes for no other message.
                 (funcall (if (equal kind "navigation") #'duet-visible-line #'duet-visible)
                          (duet-visible-trim (or (duet-get-string object :message) "")))
                 (if (> count 1) (propertize (format "  ×%d" count) 'face 'duet-dim) "")
                 (if-let ((place (duet-preview--place object)))
                     (propertize (concat "  " (duet-visible-line place)) 'face 'duet-dim)
                   "")
                 (if-let ((stack (and (equal kind "error") (duet-get-string object :stack))))
                     (propertize (concat "\n  " (string-replace
                                                 "\n" "\n  " (duet-visible (duet-visible-trim stack))))
                                 'face 'duet-dim)
                   "")
                 "\n"))))
    (add-text-properties 0 (1- (length text)) '(mouse-face highlight) text)
    (propertize text 'duet-preview-message object 'wrap-prefix "  ")))

(defun duet-preview-next (&optional count)
  "Go to the next message of a page, or to the COUNTth; back if it is negative."
  (interactive "p" duet-preview-mode)
  (let ((start (point))
        (count (or count 1)))
    (dotimes (_ (abs count))
      (if (> count 0)
          (goto-char (next-single-property-change (point) 'duet-preview-message nil (point-max)))
        (goto-char (previous-single-property-change (point) 'duet-preview-message nil
                                                    (point-min)))))
    (unless (get-text-property (point) 'duet-preview-message)
      (goto-char start)
      (user-error "There are no more"))))

(defun duet-preview-previous (&optional count)
  "Go to the message before, or to the COUNTth before."
  (interactive "p" duet-preview-mode)
  (duet-preview-next (- (or count 1))))

(defun duet-preview--file (url)
  "Return the file of the project that URL, of a page, may be, or nil.
It is looked for where tools put what they make."
  (let ((path (string-remove-prefix
               "/" (url-unhex-string
                    (replace-regexp-in-string "\\`https?://[^/]*\\|[?#].*\\'" "" url)))))
    (when (or (string-empty-p path) (string-suffix-p "/" path))
      (setq path (concat path "index.html")))
    (unless (member ".." (split-string path "/"))
      (cl-loop for folder in '("dist" "build" "out" "_site" "public" ".")
               for file = (expand-file-name (concat folder "/" path)
                                            (duet-connection-root duet-connection))
               when (file-regular-p file) return file))))

(defun duet-preview-visit ()
  "Go to the place in a file that the message at point comes from."
  (interactive nil duet-preview-mode)
  (let* ((object (or (get-text-property (point) 'duet-preview-message)
                     (user-error "There is no message of a page here")))
         (url (or (duet-get-string object :url)
                  (user-error "It is not told where that is")))
         (file (or (duet-preview--file url)
                   (user-error "No file of the project is known to be %s"
                               (duet-visible-line url)))))
    (pop-to-buffer (find-file-noselect file) '(nil (inhibit-same-window . t)))
    (when-let ((line (duet-get-number object :line)))
      (push-mark nil t)
      (goto-char (point-min))
      (forward-line (1- line))
      (when-let ((column (duet-get-number object :column)))
        (goto-char (min (line-end-position) (+ (point) (max 0 (1- column)))))))))

(defun duet-preview-visit-mouse (event)
  "Go to the place that the message where EVENT, a click, was comes from."
  (interactive "e" duet-preview-mode)
  (mouse-set-point event)
  (duet-preview-visit))

(provide 'duet-preview-messages)
;;; duet-preview-messages.el ends here
