;;; duet-trust.el --- Trust in a project's configuration  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A project's .duet.toml may define programs to run.  The server lets none of
;; them run before the user trusts the file.  When the server of such a project
;; is ready, a buffer shows what the file asks for, and the user says yes or no
;; there.  Emacs does not wait for it, and until then it is no.
;;
;; Yes is remembered by the server, for the file as it is: when it changes, the
;; question comes again.  No is remembered here, in the same way.  `duet-trust'
;; asks again, and can take a yes back.

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
  "Whether to ask when a project's .duet.toml wants to run something.
If nil it may not, unless you say otherwise with `duet-trust'."
  :type 'boolean
  :group 'duet)

(defcustom duet-trust-file (locate-user-emacs-file "duet-untrusted.eld")
  "The file in which it is kept that a project is not trusted."
  :type 'file
  :group 'duet)

(defvar-local duet-trust--state nil
  "What `duet-rpc trust --show' said, a property list.")
(defvar-local duet-trust--hash nil
  "The hash of the file when that was said.")

(defvar duet-trust-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map special-mode-map)
    ;; The window comes by itself, so no key that is meant for another may answer.
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
  "Return the header line: what is asked, and the keys that answer."
  (duet-header-fit
   (append (list (concat " Trust this file?  "
                         (duet-header-key #'duet-trust-yes "yes" 'duet-trust-mode-map)
                         ", " (duet-header-key #'duet-trust-no "no" 'duet-trust-mode-map)))
           (duet-header-keys 'duet-trust-mode-map '(1 duet-trust-visit "shows the file")))))

(defun duet-trust--config (root)
  "Return the configuration file of the project ROOT if there is one."
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
  "Return what was refused: an alist of directories and hashes."
  (ignore-errors
    (with-temp-buffer
      (insert-file-contents duet-trust-file)
      (let ((refused (read (current-buffer))))
        (and (cl-every #'consp refused) refused)))))

(defun duet-trust--refuse (root hash)
  "Remember that the configuration of ROOT whose hash is HASH was refused.
If HASH is nil forget it."
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
  "Look at the configuration of MODEL's project if KIND and STATE say it is ready."
  (when (and duet-trust-ask (eq kind 'connection) (eq state 'ready))
    (when-let* ((connection (duet-connection-of model))
                (root (duet-connection-root connection))
                (hash (duet-trust--hash root)))
      (unless (equal hash (cdr (assoc root (duet-trust--refused))))
        (duet-trust--look connection #'duet-trust--ask-if-needed)))))

(defun duet-trust--look (connection function)
  "Find out what the configuration of CONNECTION's project asks for.
Then call FUNCTION with the connection, the hash of the file and what the
server's program says of it."
  (let* ((root (duet-connection-root connection))
         (hash (duet-trust--hash root)))
    (duet-command-json root '("trust" "--show")
                       (lambda (state)
                         (funcall function connection hash state))
                       (lambda (reason)
                         (duet-log "Trust of %s: %s" root reason)))))

(defun duet-trust--ask-if-needed (connection hash state)
  "Ask whether STATE, of the file with HASH, is trusted, unless that is settled.
The file is that of the project of CONNECTION."
  (unless (or (duet-get state :trusted)
              (null (duet-get-objects state :asks))
              ;; It was asked when an earlier server started, and not answered.
              (when-let ((buffer (get-buffer (duet-trust--buffer-name connection))))
                (equal hash (buffer-local-value 'duet-trust--hash buffer))))
    (duet-trust--ask connection hash state)))

(defun duet-trust--buffer-name (connection)
  "Return the name of the buffer that asks about the project of CONNECTION."
  (format "*duet trust: %s*" (duet-remote-abbreviate (duet-connection-root connection))))

(defun duet-trust--ask (connection hash state &optional window)
  "Ask whether STATE, of the file with HASH, is trusted.
The file is that of the project of CONNECTION.  WINDOW is the one that was
selected when a user asked for this, or nil."
  (let ((buffer (get-buffer-create (duet-trust--buffer-name connection)))
        ;; A user who looks at the list, or waits for this, and is not typing, is
        ;; asked right there; others find the window when they have time.
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
  "Insert what STATE says the file asks for."
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
           "\n\\<duet-trust-mode-map>\\[duet-trust-yes] trusts it as it is, \\[duet-trust-no] does not.\n")))

(defun duet-trust--text (value)
  "Return VALUE, which a stranger wrote, as text that can be shown."
  (let ((text (if (stringp value) value (duet-trust--value value))))
    (duet-visible (replace-regexp-in-string
                   "[\t\n]" (lambda (sign) (if (equal sign "\n") "\\n" "\\t")) text t t))))

(defun duet-trust--value (value)
  "Return VALUE, part of a configuration, as its author could have written it."
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
  "Trust the file that the buffer shows, as it is."
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
         (message "Trusted, as it is now"))))))

(defun duet-trust-no ()
  "Do not trust the file that the buffer shows.
While it is the same you are asked no more."
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
  "Kill BUFFER, and its window if that was made for it."
  (when (buffer-live-p buffer)
    (if-let ((window (get-buffer-window buffer t)))
        (quit-restore-window window 'kill)
      (kill-buffer buffer))))

(defun duet-trust-visit ()
  "Show the file that is asked about."
  (interactive (duet-only-in 'duet-trust-mode) duet-trust-mode)
  (find-file-other-window (expand-file-name ".duet.toml"
                                            (duet-connection-root duet-connection))))

;;;###autoload
(defun duet-trust ()
  "Show what the project's .duet.toml asks for, and ask whether it may."
  (interactive)
  (let* ((connection (duet-connection-here))
         (root (duet-connection-root connection))
         (window (selected-window)))
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
