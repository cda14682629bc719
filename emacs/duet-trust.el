;;; duet-trust.el --- Trust in a project's configuration  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A project's .duet.toml may define programs to run.  The server runs none of them
;; before the user trusts the file.  When the server of such a project is ready, a
;; buffer shows the requests of the file, and the user answers there.  Emacs does not
;; wait for the answer; until then the file is not trusted.
;;
;; The server remembers a yes, and Emacs a no, each for the contents of the file: a
;; changed file is a new question.  `duet-trust' asks again, and can also revoke a yes.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'seq)
(require 'subr-x)
(require 'duet-command)
(require 'duet-connection)
(require 'duet-header)
(require 'duet-look)
(require 'duet-remote)

(defcustom duet-trust-ask t
  "Whether to ask for trust if a project's .duet.toml defines programs to run.
If nil, no such file is trusted unless you trust it with `duet-trust'."
  :type 'boolean
  :group 'duet)

(defcustom duet-trust-file (locate-user-emacs-file "duet-untrusted.eld")
  "The file that lists the projects that are not trusted."
  :type 'file
  :group 'duet)

(defvar-local duet-trust--state nil
  "The output of `duet-rpc trust --show', a property list.")
(defvar-local duet-trust--hash nil
  "The hash of the file at that time.")

(defvar duet-trust-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map special-mode-map)
    ;; The window appears unasked, so a key meant for another buffer must not answer.
    (define-key map (kbd "C-c C-c") #'duet-trust-yes)
    (define-key map (kbd "C-c C-k") #'duet-trust-no)
    (define-key map (kbd "RET") #'duet-trust-visit)
    (define-key map "g" #'duet-trust)
    map)
  "Keymap of `duet-trust-mode'.")

(define-derived-mode duet-trust-mode special-mode "Duet-Trust"
  "Major mode of the question whether a project's .duet.toml is trusted.

\\{duet-trust-mode-map}"
  (setq truncate-lines nil
        word-wrap t
        header-line-format '(:eval (duet-trust--header))))

(defun duet-trust--header ()
  "Return the header line: the question and its keys."
  (duet-header-fit
   (append (list (concat " Trust this file?  "
                         (duet-header-key #'duet-trust-yes "yes" 'duet-trust-mode-map)
                         ", " (duet-header-key #'duet-trust-no "no" 'duet-trust-mode-map)))
           (duet-header-keys 'duet-trust-mode-map '(1 duet-trust-visit "shows the file")))))

(defun duet-trust--config (root)
  "Return the configuration file of the project ROOT, or nil."
  (let ((file (expand-file-name ".duet.toml" root)))
    (and (file-regular-p file) (file-readable-p file) file)))

(defun duet-trust--hash (root)
  "Return a hash of the configuration of the project ROOT, or nil."
  (when-let ((file (duet-trust--config root)))
    (with-temp-buffer
      (set-buffer-multibyte nil)
      (insert-file-contents-literally file)
      (secure-hash 'sha256 (current-buffer)))))


;;; Refused configurations

(defun duet-trust--refused ()
  "Return the refused configurations: an alist of directories and hashes."
  (ignore-errors
    (with-temp-buffer
      (insert-file-contents duet-trust-file)
      (let ((refused (read (current-buffer))))
        (and (cl-every #'consp refused) refused)))))

(defun duet-trust--refuse (root hash)
  "Record that the user refused the configuration of ROOT with HASH.
If HASH is nil, remove the record."
  (let ((refused (cl-remove root (duet-trust--refused) :key #'car :test #'equal))
        (print-length nil)
        (print-level nil))
    (when hash (push (cons root hash) refused))
    (when (or refused (file-exists-p duet-trust-file))
      (condition-case err
          (with-temp-file duet-trust-file
            (insert ";; Projects whose .duet.toml is not trusted; see duet-trust.el.\n")
            (prin1 (seq-take refused 200) (current-buffer))
            (insert "\n"))
        (file-error
         (message "Duet: the answer was not stored: %s" (error-message-string err)))))))


;;; The question

(defun duet-trust--observe (model kind _session state _extra)
  "If KIND and STATE report a ready server, check MODEL's configuration."
  (when (and duet-trust-ask (eq kind 'connection) (eq state 'ready))
    (when-let* ((connection (duet-connection-of model))
                (root (duet-connection-root connection))
                (hash (duet-trust--hash root)))
      (unless (equal hash (cdr (assoc root (duet-trust--refused))))
        (duet-trust--look connection #'duet-trust--ask-if-needed)))))

(defun duet-trust--look (connection function)
  "Request the state of trust in the configuration of CONNECTION's project.
Then call FUNCTION with the connection, the hash of the file, and that state."
  (let* ((root (duet-connection-root connection))
         (hash (duet-trust--hash root)))
    (duet-command-json root '("trust" "--show")
                       (lambda (state)
                         (funcall function connection hash state))
                       (lambda (reason)
                         (duet-log "Trust of %s: %s" root reason)))))

(defun duet-trust--ask-if-needed (connection hash state)
  "Ask for trust in STATE, of the file with HASH, unless that is settled.
The file belongs to the project of CONNECTION."
  (unless (or (duet-get state :trusted)
              (null (duet-get-objects state :asks))
              ;; The question of an earlier server's start is still open.
              (when-let ((buffer (get-buffer (duet-trust--buffer-name connection))))
                (equal hash (buffer-local-value 'duet-trust--hash buffer))))
    (duet-trust--ask connection hash state)))

(defun duet-trust--buffer-name (connection)
  "Return the name of the buffer with the question for CONNECTION's project."
  (format "*duet trust: %s*" (duet-remote-abbreviate (duet-connection-root connection))))

(defun duet-trust--ask (connection hash state &optional window)
  "Ask for trust in STATE, of the file with HASH.
The file belongs to the project of CONNECTION.  WINDOW is the selected window
of the user's command, or nil."
  (let ((buffer (get-buffer-create (duet-trust--buffer-name connection)))
        ;; Select the window if the user is in the list of sessions, or waits for the
        ;; question, and does not type.  Otherwise only show the window.
        (here (with-current-buffer (window-buffer (selected-window))
                (and (or (eq window (selected-window))
                         (and (eq duet-connection connection)
                              (derived-mode-p 'duet-sessions-mode 'duet-trust-mode)))
                     (zerop (recursion-depth))
                     (not (active-minibuffer-window))
                     (not (input-pending-p))))))
    (with-current-buffer buffer
      (duet-trust-mode)
      (setq duet-connection connection
            duet-trust--state state
            duet-trust--hash hash
            default-directory (duet-connection-root connection))
      (let ((inhibit-read-only t))
        (erase-buffer)
        (duet-trust--insert state)
        (goto-char (point-min)))
      (set-buffer-modified-p nil))
    (if-let ((window (display-buffer
                      buffer '((display-buffer-reuse-window display-buffer-below-selected)
                               (window-height . fit-window-to-buffer)))))
        (when here (select-window window))
      (message "Duet: this project's .duet.toml wants to run programs; see M-x duet-trust"))))

(defun duet-trust--insert (state)
  "Insert the requests of the file from STATE."
  (insert (propertize (duet-remote-abbreviate (or (duet-get-string state :file) ".duet.toml"))
                      'face 'bold)
          (if (duet-get state :trusted)
              " is trusted.  It asks for this:\n\n"
            " asks for this:\n\n"))
  (dolist (ask (duet-get-objects state :asks))
    (insert "  " (duet-trust--text (duet-get-string ask :key)) " = "
            (propertize (duet-trust--text (plist-get ask :value))
                        'face 'font-lock-string-face)
            "\n"))
  (insert (propertize
           "\nIf you do not trust it, none of that has an effect; everything else works.
You can change your mind later: M-x duet-trust\n"
           'face 'duet-dim)
          (substitute-command-keys
           "\n\\<duet-trust-mode-map>\\[duet-trust-yes] trusts this version, \\[duet-trust-no] does not.\n")))

(defun duet-trust--text (value)
  "Return VALUE, third-party text, as text that is safe to show."
  (let ((text (if (stringp value) value (duet-trust--value value))))
    (duet-visible (replace-regexp-in-string
                   "[\t\n]" (lambda (sign) (if (equal sign "\n") "\\n" "\\t")) text t t))))

(defun duet-trust--value (value)
  "Return VALUE, part of a configuration, in the syntax of the file."
  (cond ((and (stringp value)
              (string-match-p "\\`[[:alnum:]_./:=@%+-]+\\'" value))
         value)
        ((stringp value) (json-encode-string value))
        ((vectorp value) (mapconcat #'duet-trust--value value " "))
        ((and (consp value) (keywordp (car value)))
         (concat "{ "
                 (mapconcat (pcase-lambda (`(,key ,element))
                              (format "%s = %s" (duet-get-name key)
                                      (duet-trust--value element)))
                            (seq-partition value 2) ", ")
                 " }"))
        ((eq value t) "true")
        ((eq value :json-false) "false")
        ((null value) "nothing")
        (t (format "%s" value))))

(defun duet-trust-yes ()
  "Trust the file of the buffer in its current state."
  (interactive (duet-only-in 'duet-trust-mode) duet-trust-mode)
  (let* ((connection duet-connection)
         (root (duet-connection-root connection))
         (buffer (current-buffer)))
    (unless (equal duet-trust--hash (duet-trust--hash root))
      (duet-trust--look connection #'duet-trust--ask)
      (user-error "The file has changed; look at it again"))
    (duet-command-json
     root '("trust" "--yes")
     (lambda (state)
       (if (not (duet-get state :trusted))
           (message "Duet: the file is not trusted")
         (duet-trust--refuse root nil)
         (duet-trust--close buffer)
         (message "Trusted: this version"))))))

(defun duet-trust-no ()
  "Do not trust the file of the buffer.
Emacs asks again only when the file changes."
  (interactive (duet-only-in 'duet-trust-mode) duet-trust-mode)
  (let ((root (duet-connection-root duet-connection))
        (buffer (current-buffer))
        (trusted (duet-get duet-trust--state :trusted)))
    (duet-trust--refuse root duet-trust--hash)
    (if trusted
        (duet-command-json root '("trust" "--revoke")
                           (lambda (_)
                             (duet-trust--close buffer)
                             (message "No longer trusted")))
      (duet-trust--close buffer)
      (message "Not trusted; M-x duet-trust changes that"))))

(defun duet-trust--close (buffer)
  "Kill BUFFER, and delete its window if that was made for it."
  (when (buffer-live-p buffer)
    (if-let ((window (get-buffer-window buffer t)))
        (quit-restore-window window 'kill)
      (kill-buffer buffer))))

(defun duet-trust-visit ()
  "Show the file of the question."
  (interactive (duet-only-in 'duet-trust-mode) duet-trust-mode)
  (find-file-other-window (expand-file-name ".duet.toml"
                                            (duet-connection-root duet-connection))))

;;;###autoload
(defun duet-trust ()
  "Show the requests of the project's .duet.toml, and ask for trust in it."
  (interactive)
  (let* ((connection (duet-connection-here))
         (root (duet-connection-root connection))
         (window (selected-window)))
    (when-let ((host (duet-host-of root)))
      (user-error "Trust in a project on %s is decided there: run `duet-rpc --host %s --root %s trust' in a shell"
                  host host (directory-file-name (duet-remote-local root))))
    (unless (duet-trust--config root)
      (user-error "This project has no .duet.toml, so there is nothing to trust"))
    (duet-trust--look
     connection
     (lambda (connection hash state)
       (if (duet-get-objects state :asks)
           (duet-trust--ask connection hash state window)
         (message "Nothing in this project's .duet.toml needs your trust"))))))

(duet-model-add-observer #'duet-trust--observe)

(provide 'duet-trust)
;;; duet-trust.el ends here
