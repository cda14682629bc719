;;; duet-editor.el --- The tools of Emacs for agents  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Agents can see the data of the user's Emacs: diagnostics of Flymake and Flycheck,
;; definitions and references of Xref, symbols of Imenu, open buffers and the
;; selection.  They can show the user a place in a file.  The daemon sends the requests,
;; which docs/protocol.md of duet-rpc describes ("The editor's tools"), for
;; sessions whose last prompt came from this Emacs.  No tool changes anything or
;; asks the user.  C-g interrupts a tool.

;;; Code:

(require 'cl-lib)
(require 'imenu)
(require 'jsonrpc)
(require 'project)
(require 'subr-x)
(require 'xref)
(require 'duet-log)
(require 'duet-remote)

(declare-function duet-connection-request "duet-connection")
(declare-function duet-connection-root "duet-connection")
(declare-function duet-connection-state "duet-connection")
(defvar duet-connections)
(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function flymake-diagnostic-beg "flymake" (diag))
(declare-function flymake-diagnostic-buffer "flymake" (diag))
(declare-function flymake-diagnostic-end "flymake" (diag))
(declare-function flymake-diagnostic-text "flymake" (diag))
(declare-function flymake-diagnostic-type "flymake" (diag))
(declare-function flycheck-error-column "ext:flycheck" (err))
(declare-function flycheck-error-level "ext:flycheck" (err))
(declare-function flycheck-error-line "ext:flycheck" (err))
(declare-function flycheck-error-message "ext:flycheck" (err))
(declare-function pulse-momentary-highlight-one-line "pulse" (&optional point face))
(defvar flycheck-current-errors)
(defvar flymake-list-only-diagnostics)

(defcustom duet-editor-tools t
  "Whether agents may see diagnostics, symbols, open files and the selection.
They may also show a place in a file.  Agents on a host get no such tools.
A change takes effect at the next
start of the connection.  The key `editor' of [mcp] in the configuration of
duet-rpc turns these tools off for all editors."
  :type 'boolean
  :group 'duet)

(defconst duet-editor--places 200 "Maximum number of places or diagnostics in a result.")
(defconst duet-editor--symbols 500 "Maximum number of symbols in a result.")
(defconst duet-editor--text 60000 "Maximum length of unsaved text in a result.")
(defconst duet-editor--largest 10000000 "Maximum size of a file that a tool opens.")
(defconst duet-editor--patience 8 "Maximum time of a tool, in seconds.")

(defconst duet-editor--methods
  '((editor.diagnostics . duet-editor--diagnostics)
    (editor.definition . duet-editor--definition)
    (editor.references . duet-editor--references)
    (editor.symbols . duet-editor--symbols)
    (editor.buffers . duet-editor--buffers)
    (editor.selection . duet-editor--selection)
    (editor.open . duet-editor--open))
  "The handlers of requests; their arguments are the project's root and PARAMS.")

(defun duet-editor-offer (connection)
  "Offer the tools of Emacs to the agents of CONNECTION."
  (add-hook 'after-save-hook #'duet-editor--saved)
  (when (duet-editor--allowed-p connection)
    (duet-connection-request
     connection 'editor.offer
     (list :client "Emacs"
           :tools (apply #'vector
                         (mapcar (lambda (entry)
                                   (string-remove-prefix "editor." (symbol-name (car entry))))
                                 duet-editor--methods)))
     :error-fn (lambda (err) (duet-log "The tools of Emacs were not taken: %s"
                                       (plist-get err :message))))))

(defun duet-editor--allowed-p (connection)
  "Return non-nil if the agents of CONNECTION may use the tools of Emacs.
Those on a host may not: a host is third-party, and its files are not here."
  (and duet-editor-tools (not (duet-host-of (duet-connection-root connection)))))

(defun duet-editor--saved ()
  "Report to the servers that the user has saved the file of the buffer.
They then do not attribute the change to a command of an agent."
  (when buffer-file-name
    (maphash
     (lambda (root connection)
       (when (and (eq (duet-connection-state connection) 'ready)
                  (duet-remote-same-p root buffer-file-name))
         (duet-connection-request
          connection 'editor.saved
          (list :paths (vector (duet-remote-local (file-truename buffer-file-name))))
          :error-fn #'ignore)))
     duet-connections)))

(defun duet-editor-answer (connection method params)
  "Return the result of the request METHOD with PARAMS of CONNECTION's server."
  (let ((function (and (duet-editor--allowed-p connection) (alist-get method duet-editor--methods))))
    (unless function
      (jsonrpc-error :code -32601 :message (format "Method not found: %s" method)))
    (let ((before (buffer-list))
          (root (duet-connection-root connection))
          (inhibit-message t)
          (inhibit-interaction t)       ; a tool does not ask the user
          (enable-local-variables :safe)
          (enable-local-eval nil)
          (large-file-warning-threshold nil)
          (non-essential t))
      (unwind-protect
          (condition-case err
              (let ((project-find-functions ; else Emacs asks for the directory
                     (append project-find-functions (list (lambda (_) (cons 'transient root))))))
                (with-timeout (duet-editor--patience
                               (jsonrpc-error :code -32603 :message "Emacs took too long"))
                  (let ((inhibit-quit nil)) ; a process filter inhibits C-g
                    (save-current-buffer (funcall function root params)))))
            (jsonrpc-error (signal (car err) (cdr err)))
            (quit (jsonrpc-error :code -32603 :message "The user stopped it"))
            (inhibited-interaction
             (jsonrpc-error :code -32603 :message "Emacs would have to ask the user something first"))
            (error (jsonrpc-error :code -32603 :message (duet-editor--clean (error-message-string err)))))
        (unless (eq method 'editor.open)
          (duet-editor--put-away before))))))

(defun duet-editor--put-away (before)
  "Kill the buffers of files that a tool has opened: buffers not in BEFORE."
  (dolist (buffer (buffer-list))
    (when (and (buffer-live-p buffer) (not (memq buffer before))
               (buffer-file-name buffer) (not (buffer-modified-p buffer))
               (not (get-buffer-window buffer t)))
      (let ((kill-buffer-query-functions nil))
        (kill-buffer buffer)))))


;;; Files and places

(defun duet-editor--clean (text)
  "Return TEXT without properties, and with invalid bytes replaced."
  (replace-regexp-in-string "[^\0-\x10ffff]" "\xfffd" (substring-no-properties text)))

(defun duet-editor--list (name items most &rest more)
  "Return a result with the first MOST of ITEMS as NAME, their number, and MORE."
  (append (list name (apply #'vector (seq-take items most)) :total (length items)) more))

(defun duet-editor--file (root params)
  "Return the file in PARAMS, of the project ROOT, or nil."
  (when-let ((path (plist-get params :path)))
    (duet-remote-name path root)))

(defun duet-editor--visit (file)
  "Return a buffer of FILE; `duet-editor--put-away' kills a new one later."
  (or (find-buffer-visiting file)
      (let ((size (file-attribute-size (or (file-attributes file)
                                           (error "There is no file %s" file)))))
        (when (> size duet-editor--largest)
          (error "%s is too large for this: %d bytes" file size))
        (find-file-noselect file t))))

(defun duet-editor--go-to (params)
  "Move to the place in PARAMS, in the current buffer."
  (widen)
  (goto-char (point-min))
  (forward-line (1- (or (plist-get params :line) (error "The line is missing"))))
  (let ((symbol (plist-get params :symbol))
        (column (plist-get params :column)))
    (cond
     (symbol
      (let ((case-fold-search nil))
        (unless (re-search-forward (concat "\\_<" (regexp-quote symbol) "\\_>")
                                   (line-end-position) t)
          (unless (search-forward symbol (line-end-position) t)
            (error "%S is not in line %d, which is: %s" symbol (plist-get params :line)
                   (string-trim (buffer-substring-no-properties
                                 (line-beginning-position) (line-end-position)))))))
      (goto-char (match-beginning 0)))
     (column (goto-char (min (+ (point) (1- column)) (line-end-position))))
     (t (back-to-indentation)))))

(defun duet-editor--region (beg end)
  "Return the place of the text between BEG and END in the current buffer."
  (save-restriction
    (widen)
    (list :line (line-number-at-pos beg)
          :column (1+ (- beg (save-excursion (goto-char beg) (line-beginning-position))))
          :end_line (line-number-at-pos end)
          :end_column (1+ (- end (save-excursion (goto-char end) (line-beginning-position)))))))

(defun duet-editor--project-buffers (root)
  "Return the buffers of files in the project ROOT, the last used first."
  (seq-filter (lambda (buffer)
                (when-let ((file (buffer-file-name buffer)))
                  (and (duet-remote-same-p file root) (duet-remote-inside file root))))
              (buffer-list)))


;;; Diagnostics

(defun duet-editor--diagnostics (root params)
  "Return the diagnostics of the project ROOT, or of the file in PARAMS."
  (let* ((file (duet-editor--file root params))
         (buffer (and file (find-buffer-visiting file)))
         (buffers (if file (and buffer (list buffer)) (duet-editor--project-buffers root)))
         (found (append (cl-mapcan #'duet-editor--buffer-diagnostics buffers)
                        (duet-editor--other-diagnostics root file buffers))))
    (apply #'duet-editor--list :diagnostics
           (cl-stable-sort found #'< :key (lambda (one)
                                            (seq-position '("error" "warning" "info")
                                                          (plist-get one :severity))))
           duet-editor--places
           (and file (not buffer) (null found)
                (list :note "The file is not open in Emacs, so its diagnostics may be unknown.")))))

(defun duet-editor--severity (type)
  "Return the severity of TYPE, of Flymake or Flycheck, as a string."
  (let ((severity (and (symbolp type)
                       (or (get type 'severity)
                           (let ((category (or (get type 'flymake-category)
                                               (plist-get (symbol-plist type) 'flymake-category))))
                             (and category (get category 'severity))))))
        (name (format "%s" type)))
    (cond
     ((string-match-p "error" name) "error")
     ((string-match-p "warning" name) "warning")
     ((numberp severity) (cond ((>= severity (warning-numeric-level :error)) "error")
                               ((>= severity (warning-numeric-level :warning)) "warning")
                               (t "info")))
     (t "info"))))

(defun duet-editor--buffer-diagnostics (buffer)
  "Return the diagnostics of Flymake and Flycheck for BUFFER."
  (with-current-buffer buffer
    (let ((path (duet-remote-local buffer-file-name)))
      (append
       (and (bound-and-true-p flymake-mode)
            (mapcar (lambda (one)
                      (append (list :path path)
                              (duet-editor--region (flymake-diagnostic-beg one) (flymake-diagnostic-end one))
                              (list :severity (duet-editor--severity (flymake-diagnostic-type one))
                                    :message (duet-editor--clean (flymake-diagnostic-text one)))))
                    (flymake-diagnostics)))
       (and (bound-and-true-p flycheck-mode)
            (mapcar (lambda (one)
                      (list :path path :line (or (flycheck-error-line one) 1)
                            :column (or (flycheck-error-column one) 1)
                            :severity (duet-editor--severity (flycheck-error-level one))
                            :message (duet-editor--clean (or (flycheck-error-message one) ""))))
                    flycheck-current-errors))))))

(defun duet-editor--other-diagnostics (root file buffers)
  "Return Flymake's diagnostics for files of the project ROOT without a buffer.
If FILE is non-nil, return only the diagnostics for it.  Leave out files of
BUFFERS."
  (cl-loop
   for (name . diagnostics) in (bound-and-true-p flymake-list-only-diagnostics)
   for other = (expand-file-name name)
   when (and (if file (equal other (expand-file-name file))
               (and (duet-remote-same-p other root) (duet-remote-inside other root)))
             (not (memq (find-buffer-visiting other) buffers)))
   nconc (mapcar (lambda (one)
                   (let ((beg (flymake-diagnostic-beg one)))
                     (list :path (duet-remote-local other)
                           :line (or (car-safe beg) 1) :column (1+ (or (cdr-safe beg) 0))
                           :severity (duet-editor--severity (flymake-diagnostic-type one))
                           :message (duet-editor--clean (flymake-diagnostic-text one)))))
                 diagnostics)))


;;; Definitions, references, symbols

(defun duet-editor--definition (root params)
  "Return the definitions of the symbol at the place in PARAMS, in ROOT."
  (duet-editor--xref root params #'xref-backend-definitions))

(defun duet-editor--references (root params)
  "Return the references to the symbol at the place in PARAMS, in ROOT."
  (duet-editor--xref root params #'xref-backend-references))

(defun duet-editor--backend ()
  "Return the Xref backend of the current buffer.
Signal an error for etags without a table, since Emacs would ask for one."
  (let ((backend (xref-find-backend)))
    (when (or (null backend) (and (eq backend 'etags) (not (bound-and-true-p tags-file-name))))
      (error "%s has no language server or other source of definitions"
             (buffer-name)))
    backend))

(defun duet-editor--xref (root params find)
  "Call FIND for the symbol at the place in PARAMS, of the project ROOT.
Return the places it finds."
  (with-current-buffer (duet-editor--visit (or (duet-editor--file root params)
                                               (error "The path is missing")))
    (save-excursion
      (save-restriction
        (duet-editor--go-to params)
        (let* ((backend (duet-editor--backend))
               (identifier (or (xref-backend-identifier-at-point backend)
                               (error "There is no symbol at this place"))))
          (duet-editor--list :locations
                             (delq nil (mapcar #'duet-editor--location
                                               (funcall find backend identifier)))
                             duet-editor--places))))))

(defun duet-editor--location (item)
  "Return the place of ITEM, an item of Xref."
  (let* ((location (xref-item-location item))
         (line (xref-location-line location))
         (marker (and (not line) (ignore-errors (xref-location-marker location))))
         (file (if marker (buffer-file-name (marker-buffer marker))
                 (xref-location-group location))))
    (when (and file (or line marker))
      (list :path (duet-remote-local (expand-file-name file))
            :line (or line (with-current-buffer (marker-buffer marker)
                             (line-number-at-pos marker t)))
            :text (string-trim (duet-editor--clean (xref-item-summary item)))))))

(defun duet-editor--symbols (root params)
  "Return the symbols of the file in PARAMS, or matching symbols in ROOT."
  (let ((file (duet-editor--file root params))
        (query (plist-get params :query)))
    (cond
     (file
      (with-current-buffer (duet-editor--visit file)
        (save-excursion
          (save-restriction
            (widen)
            (duet-editor--list
             :symbols
             (seq-filter (lambda (one)
                           (or (null query)
                               (let ((case-fold-search t))
                                 (string-match-p (regexp-quote query) (plist-get one :name)))))
                         (duet-editor--flat (duet-editor--index) (duet-remote-local file) nil))
             duet-editor--symbols)))))
     (query
      (with-current-buffer (or (seq-find (lambda (buffer)
                                           (with-current-buffer buffer
                                             (ignore-errors (duet-editor--backend))))
                                         (duet-editor--project-buffers root))
                               (error "No open file of the project has a language server"))
        (duet-editor--list
         :symbols
         (cl-loop for item in (xref-backend-apropos (duet-editor--backend) query)
                  for place = (duet-editor--location item)
                  when (and place (duet-remote-inside (plist-get place :path) root))
                  collect (list :name (plist-get place :text) :path (plist-get place :path)
                                :line (plist-get place :line)))
         duet-editor--symbols)))
     (t (error "A path or a query is missing")))))

(defun duet-editor--index ()
  "Return Imenu's index of the current buffer."
  (let ((imenu-auto-rescan t)
        (imenu-auto-rescan-maxout most-positive-fixnum)
        (imenu-use-markers nil))
    (funcall imenu-create-index-function)))

(defun duet-editor--flat (index path container)
  "Return the symbols of INDEX, Imenu's index of the file PATH, in one list.
CONTAINER is the name of the enclosing symbol, or nil."
  (cl-loop
   for (name . place) in index
   for position = (cond ((overlayp place) (overlay-start place))
                        ((consp place) (and (number-or-marker-p (car place)) (car place)))
                        ((number-or-marker-p place) place))
   for clean = (duet-editor--clean name)
   if position
   collect (append (list :name clean :path path :line (line-number-at-pos position t))
                   (and container (list :container container)))
   else if (and (consp place) (consp (car place)))
   nconc (duet-editor--flat place path clean)))


;;; Buffers, the selection, a place to show

(defun duet-editor--here (root)
  "Return the current buffer of a file of the project ROOT, or nil.
It is the selected buffer, or else a visible one, or else the last used."
  (let ((buffers (duet-editor--project-buffers root))
        (selected (window-buffer (if (minibufferp (window-buffer))
                                     (or (minibuffer-selected-window) (selected-window))
                                   (selected-window)))))
    (or (car (memq selected buffers))
        (seq-find (lambda (buffer) (get-buffer-window buffer 'visible)) buffers)
        (car buffers))))

(defun duet-editor--buffers (root _params)
  "Return the open files of the project ROOT."
  (let* ((buffers (duet-editor--project-buffers root))
         (here (duet-editor--here root))
         (left duet-editor--text))
    (duet-editor--list
     :buffers
     (mapcar
      (lambda (buffer)
        (with-current-buffer buffer
          (let* ((modified (buffer-modified-p))
                 (text (and modified
                            (save-restriction
                              (widen)
                              (buffer-substring-no-properties
                               (point-min) (min (point-max) (+ (point-min) left))))))
                 (cut (and text (< (length text) (buffer-size)))))
            (when text (setq left (- left (length text))))
            (append (list :path (duet-remote-local buffer-file-name)
                          :visible (if (get-buffer-window buffer 'visible) t :json-false)
                          :active (if (eq buffer here) t :json-false)
                          :modified (if modified t :json-false))
                    (and text (list :text (duet-editor--clean text)))
                    (and cut (list :truncated t))))))
      buffers)
     duet-editor--places)))

(defun duet-editor--selection (root _params)
  "Return the position of point in the project ROOT, and the text of the region."
  (if-let ((buffer (duet-editor--here root)))
      (with-current-buffer buffer
        (let* ((window (get-buffer-window buffer 'visible))
               (point (if window (window-point window) (point)))
               (marked (and mark-active (mark t)))
               (beg (if marked (min (mark t) point) point))
               (end (if marked (max (mark t) point) point))
               (text (buffer-substring-no-properties
                      beg (min end (+ beg duet-editor--text)))))
          (append (list :path (duet-remote-local buffer-file-name))
                  (duet-editor--region beg end)
                  (list :text (duet-editor--clean text)))))
    (error "No file of the project is open in Emacs")))

(defun duet-editor--open (root params)
  "Show the file in PARAMS, of the project ROOT, in another window."
  (let* ((buffer (duet-editor--visit (or (duet-editor--file root params)
                                         (error "The path is missing"))))
         (window (display-buffer buffer '(nil (inhibit-same-window . t))))
         (line (plist-get params :line)))
    (unless window (error "There is no window for it"))
    (with-selected-window window
      (when line
        (goto-char (point-min))
        (forward-line (1- line))
        (recenter))
      (unless noninteractive
        (pulse-momentary-highlight-one-line (point))))
    (list :path (duet-remote-local (buffer-file-name buffer))
          :line (with-current-buffer buffer (line-number-at-pos (window-point window) t)))))

(provide 'duet-editor)
;;; duet-editor.el ends here
