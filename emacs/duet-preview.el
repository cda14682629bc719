;;; duet-preview.el --- Preview of pages, and their messages  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-preview' serves the pages of the project, opens them in a browser, and lists
;; their console messages and errors as they arrive.  The server also keeps these for
;; the agent that works on the pages.  `c' begins a prompt that quotes the errors.
;;
;; The process that serves the pages, `duet-rpc preview --capture', belongs to the
;; buffer and ends with it.

;;; Code:

(require 'browse-url)
(require 'cl-lib)
(require 'subr-x)
(require 'url-util)
(require 'duet-actions)
(require 'duet-command)
(require 'duet-compose)
(require 'duet-connection)
(require 'duet-header)
(require 'duet-log)
(require 'duet-look)
(require 'duet-menu-bar)
(require 'duet-model)
(require 'duet-render)
(require 'duet-visible)

(declare-function duet "duet" (&optional directory))

;;; The preview

(defvar-local duet-preview--messages nil
  "Markers of the messages in the buffer by their ids, a hash table.")

(defcustom duet-preview-browse-function nil
  "Function that opens a preview; it is called with the address.
Nil means `browse-url', which follows your settings.  If Emacs was built with
xwidgets, `xwidget-webkit-browse-url' is a browser in Emacs that runs scripts.

The host of the address ends with .localhost.  A browser that cannot resolve
such a host can open 127.0.0.1 on the same port."
  :type '(choice (const :tag "As other addresses" nil)
                 (function-item xwidget-webkit-browse-url)
                 function)
  :group 'duet)

(defvar-local duet-preview--process nil
  "The process that serves the pages.")
(defvar-local duet-preview--address nil
  "The address of the pages for a browser, or nil until the process reports it.")
(defvar-local duet-preview--unread ""
  "The last output of the process, an incomplete line.")
(defvar-local duet-preview--said nil
  "The last output of the process to standard error.")

(defvar duet-preview-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map special-mode-map)
    (define-key map (kbd "RET") #'duet-preview-visit)
    (define-key map [mouse-2] #'duet-preview-visit-mouse)
    (define-key map [follow-link] 'mouse-face)
    (define-key map "n" #'duet-preview-next)
    (define-key map "p" #'duet-preview-previous)
    (define-key map "g" #'duet-preview-reload)
    (define-key map (kbd "C-o") #'duet-preview-open)
    (define-key map "c" #'duet-preview-ask)
    (define-key map (kbd "C-c C-k") #'duet-preview-stop)
    (define-key map "j" #'duet-approval-next)
    (define-key map "l" #'duet)
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-preview-mode'.")

(define-derived-mode duet-preview-mode special-mode "Duet-Preview"
  "Major mode of the list of messages and errors of the pages of a preview.

\\{duet-preview-mode-map}"
  (setq buffer-undo-list t
        word-wrap t
        bidi-paragraph-direction 'left-to-right
        duet-preview--messages (make-hash-table :test #'equal)
        header-line-format '(:eval (duet-preview--header)))
  (add-hook 'kill-buffer-hook #'duet-preview--end nil t))

(duet-menu-bar-add duet-preview-mode-map
                   '(["Open in the Browser" duet-preview-open :enable duet-preview--address]
                     ["Load the Pages Again" duet-preview-reload]
                     ["Ask an Agent about the Errors" duet-preview-ask]
                     ["End the Preview" duet-preview-stop
                      :enable (process-live-p duet-preview--process)]))

(defun duet-preview--header ()
  "Return the header line."
  (duet-header-fit
   (cons (cond ((not (process-live-p duet-preview--process))
                (propertize " The preview has ended" 'face 'duet-dim))
               (duet-preview--address
                (concat " Preview on port " (duet-preview--port)))
               (t " The preview begins…"))
         (duet-header-keys 'duet-preview-mode-map
                           '(1 duet-preview-open "opens it")
                           '(2 duet-preview-reload "reloads")
                           '(3 duet-preview-ask "asks about errors")
                           '(4 duet-preview-stop "ends it")))))

(defun duet-preview--port ()
  "Return the port of the address; the header line omits its host and token."
  (if (string-match "\\`https?://[^/?:]*:\\([0-9]+\\)/" duet-preview--address)
      (match-string 1 duet-preview--address)
    "?"))

;;;###autoload
(defun duet-preview ()
  "Open the pages of the project in a browser, and list their messages.
The configuration names their directory in [preview].  The default is the
first of dist, build, out, _site and public that has an index.html.  If the
preview runs, open it again."
  (interactive)
  (let ((connection (duet-connection-here))
        buffer)
    (when-let ((host (duet-connection-host connection)))
      (user-error "The pages are on %s: run `duet-rpc --host %s preview --port 8080' in a shell, and forward that port" host host))
    (when (file-remote-p (duet-connection-root connection))
      (user-error "The pages are on another machine: run `duet-rpc preview --port 8080' there, and forward that port (ssh -L)"))
    (setq buffer (duet-connection-buffer connection "preview" #'duet-preview-mode))
    (with-current-buffer buffer
      (if (and (process-live-p duet-preview--process) duet-preview--address)
          (duet-preview-open)
        (unless (process-live-p duet-preview--process) (duet-preview--begin))))
    (display-buffer buffer)))

(defun duet-preview--begin ()
  "Start the program that serves the pages for the current buffer."
  (let* ((inhibit-read-only t)
         (buffer (current-buffer))
         ;; The pages of a local project are here.
         (process-environment (cons "DUET_HOST" process-environment))
         (within (lambda (function)
                   (lambda (_process text)
                     (when (buffer-live-p buffer)
                       (with-current-buffer buffer
                         (duet-log-guard "Preview" (funcall function text)))))))
         (errors (make-pipe-process :name "duet preview errors" :noquery t :buffer nil
                                    :coding 'utf-8-unix :sentinel #'ignore
                                    :filter (funcall within #'duet-preview--noted))))
    (erase-buffer)
    (clrhash duet-preview--messages)
    (setq duet-preview--address nil
          duet-preview--unread ""
          duet-preview--said nil)
    (condition-case err
        (setq duet-preview--process
              (make-process
               :name "duet preview" :noquery t :connection-type 'pipe :buffer nil
               :coding 'utf-8-unix :stderr errors
               :command (duet-command (duet-connection-root duet-connection)
                                      "preview" "--capture" "--json")
               :filter (funcall within #'duet-preview--printed)
               :sentinel
               (lambda (process _)
                 (unless (process-live-p process)
                   ;; Its last errors arrive through the other pipe.
                   (run-at-time 0.1 nil
                                (lambda ()
                                  (delete-process errors)
                                  (when (buffer-live-p buffer)
                                    (with-current-buffer buffer
                                      (when (eq process duet-preview--process)
                                        (duet-preview--ended process))))))))))
      (error
       (delete-process errors)
       (user-error "The preview did not start: %s" (error-message-string err))))))

(defun duet-preview--printed (text)
  "Handle TEXT, output of the process, with a JSON object in each line."
  (let* ((lines (split-string (concat duet-preview--unread text) "\n"))
         (rest (last lines)))
    (setq duet-preview--unread (car rest))
    (dolist (line (butlast lines))
      (when-let ((object (ignore-error json-error
                           (json-parse-string line :object-type 'plist :null-object nil
                                              :false-object :json-false))))
        (if (duet-get-string object :kind) (duet-preview--show object)
          (when-let ((address (duet-get-string object :url)))
            (setq duet-preview--address address)
            (force-mode-line-update)
            ;; Outside of the process filter: the browser function may ask something.
            (run-at-time 0 nil #'duet-preview--browse address)))))))

(defun duet-preview--browse (address)
  "Open ADDRESS with `duet-preview-browse-function'."
  (duet-log-guard "duet-preview-browse-function"
    (funcall (or duet-preview-browse-function #'browse-url) address)))

(defun duet-preview--noted (text)
  "Show TEXT, which the process wrote to standard error."
  (unless (string-blank-p text)
    (setq duet-preview--said (string-remove-prefix "duet-rpc: " (string-trim text)))
    (duet-preview--insert (propertize (concat (duet-visible (string-trim text)) "\n")
                                      'face 'duet-dim))))

(defun duet-preview--ended (process)
  "Update the header line when PROCESS has ended; report a failed start."
  (force-mode-line-update)
  (unless (or duet-preview--address (memq (process-exit-status process) '(0 130)))
    (message "Duet: the preview did not start: %s"
             (duet-visible-line (or duet-preview--said
                                    (format "exit status %s" (process-exit-status process)))))))

(defun duet-preview--end ()
  "Interrupt the buffer's process; kill it if it still runs after 3 seconds."
  (let ((process duet-preview--process))
    (when (process-live-p process)
      (interrupt-process process)
      ;; The process may be busy or stopped.
      (run-at-time 3 nil (lambda () (when (process-live-p process) (delete-process process)))))))


;;;; Commands

(defun duet-preview-open ()
  "Open the preview in the browser."
  (interactive (duet-only-in 'duet-preview-mode) duet-preview-mode)
  (unless (and duet-preview--address (process-live-p duet-preview--process))
    (user-error "%s" (if (process-live-p duet-preview--process) "The preview is still starting"
                       "The preview has ended; M-x duet-preview begins it")))
  (duet-preview--browse duet-preview--address))

(defun duet-preview-reload ()
  "Reload all pages of the preview, in every browser."
  (interactive (duet-only-in 'duet-preview-mode) duet-preview-mode)
  (duet-connection-request
   duet-connection 'preview.refresh nil
   :success-fn (lambda (result)
                 (message "%s" (if (zerop (or (duet-get-number result :shown) 0))
                                   "No browser shows the preview"
                                 "The pages are loaded again")))))

(defun duet-preview--complaints ()
  "Return the errors of pages, quoted for a prompt, or nil."
  (let ((lines '())
        (place (point-min)))
    (while (< place (point-max))
      (let ((object (get-text-property place 'duet-preview-message)))
        (when (and object (duet-preview--wrong-p object))
          (push (concat (or (duet-get-string object :level) "error") ": "
                        (duet-visible-trim (or (duet-get-string object :message) ""))
                        (if-let ((at (duet-preview--place object))) (format " (%s)" at) ""))
                lines)))
      (setq place (next-single-property-change place 'duet-preview-message nil (point-max))))
    (and lines (string-join (last (nreverse lines) 50) "\n"))))

(defun duet-preview-ask ()
  "Begin a prompt that quotes the errors of the pages."
  (interactive (duet-only-in 'duet-preview-mode) duet-preview-mode)
  (let ((complaints (or (duet-preview--complaints)
                        (user-error "The pages report no errors"))))
    (duet-compose duet-connection)
    (goto-char (point-max))
    (save-excursion
      (insert (if (bolp) "" "\n") "\nMessages of the preview's pages:\n```\n"
              ;; A page may contain third-party text.
              (string-replace "```" "'''" complaints) "\n```\n"))))

(defun duet-preview-stop ()
  "End the preview."
  (interactive (duet-only-in 'duet-preview-mode) duet-preview-mode)
  (unless (process-live-p duet-preview--process)
    (user-error "The preview has ended"))
  (duet-preview--end))

;;; Messages of pages

;; The console messages of pages, and their errors, are listed in the order of their
;; first occurrence.  RET visits the place in a file.

(defconst duet-preview--most 1000
  "Maximum number of listed messages; beyond it, the oldest are removed.")

(defun duet-preview--insert (text)
  "Insert TEXT at the end of the buffer, and keep a point there at the end.
This includes the points of windows."
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
  "Show OBJECT, a message of a page, in place of its earlier copy, if any."
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
  "Remove the first message of the list."
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
  "Return non-nil if OBJECT, a message of a page, reports an error."
  (or (equal (duet-get-string object :kind) "error")
      (member (duet-get-string object :level) '("error" "warn"))))

(defun duet-preview--place (object)
  "Return the place of OBJECT, a message of a page, in words, or nil."
  (when-let ((url (duet-get-string object :url)))
    (concat url
            (if-let ((line (duet-get-number object :line))) (format ":%d" line) "")
            (if-let ((column (duet-get-number object :column))) (format ":%d" column) ""))))

(defun duet-preview--line (object)
  "Return the text of OBJECT, a message of a page."
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
                 ;; A title is shown in one line, so it cannot imitate another message.
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
  "Go to the next message of a page, or the COUNTth; backward if it is negative."
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
      (user-error "No more messages"))))

(defun duet-preview-previous (&optional count)
  "Go to the previous message of a page, or to the COUNTth before."
  (interactive "p" duet-preview-mode)
  (duet-preview-next (- (or count 1))))

(defun duet-preview--file (url)
  "Return the file of the project for URL, the URL of a page, or nil.
The function looks in the usual output directories of build tools."
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
  "Visit the place in a file of the message at point."
  (interactive nil duet-preview-mode)
  (let* ((object (or (get-text-property (point) 'duet-preview-message)
                     (user-error "There is no message of a page here")))
         (url (or (duet-get-string object :url)
                  (user-error "The position is unknown")))
         (file (or (duet-preview--file url)
                   (user-error "No file of the project matches %s"
                               (duet-visible-line url)))))
    (pop-to-buffer (find-file-noselect file) '(nil (inhibit-same-window . t)))
    (when-let ((line (duet-get-number object :line)))
      (push-mark nil t)
      (goto-char (point-min))
      (forward-line (1- line))
      (when-let ((column (duet-get-number object :column)))
        (goto-char (min (line-end-position) (+ (point) (max 0 (1- column)))))))))

(defun duet-preview-visit-mouse (event)
  "Visit the place in a file of the message at EVENT, a click."
  (interactive "e" duet-preview-mode)
  (mouse-set-point event)
  (duet-preview-visit))

(provide 'duet-preview)
;;; duet-preview.el ends here
