;;; duet-transcript.el --- A session's conversation as it is written  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A transcript shows a session of a model (duet-model.el) as sections
;; (duet-section.el) that look as duet-render.el says.  It watches the model
;; and notes which messages have changed; a timer brings the buffer up to date
;; some twenty times a second, and what is added costs as much as it is long,
;; however long the transcript is.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-connection)
(require 'duet-history)
(require 'duet-section)
(require 'duet-settings)
(require 'duet-render)
(require 'duet-markup)
(require 'duet-transcript-update)
(require 'duet-transcript-visit)
(require 'duet-header)
(require 'duet-actions)

(declare-function duet "duet" (&optional directory))
(declare-function duet-new "duet" ())
(declare-function duet-login "duet-agents-login" (agent))
(declare-function duet-approval-approve "duet-approval" (approval))
(declare-function duet-approval-deny "duet-approval" (approval))
(declare-function duet-approval-next "duet-approvals" ())
(declare-function duet-approval-view "duet-approval-view" (approval))
(declare-function duet-approvals "duet-approvals" ())
(declare-function duet-approvals-catch "duet-approvals-footer" ())
(declare-function duet-diff "duet-diff" (session))
(declare-function duet-diff-all "duet-diff" (session))

(defvar show-paren-data-function)

(defvar-local duet-session nil
  "The session that the buffer shows or is about.")

(defvar duet-transcript-shown-hook nil
  "Hook that is run in a transcript before a session is shown in it.")

(defvar duet-transcript-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map special-mode-map)
    (define-key map "n" #'duet-section-next)
    (define-key map "p" #'duet-section-previous)
    (define-key map (kbd "TAB") #'duet-section-toggle)
    (define-key map (kbd "<backtab>") #'duet-section-toggle-all)
    (define-key map (kbd "RET") #'duet-transcript-visit)
    (define-key map [mouse-2] #'duet-transcript-visit-mouse)
    (define-key map [follow-link] 'mouse-face)
    (define-key map "c" #'duet-continue)
    (define-key map "C" #'duet-new)
    (define-key map "r" #'duet-continue)
    (define-key map "i" #'duet-interrupt)
    (define-key map "I" #'duet-login)
    (define-key map "f" #'duet-fork)
    (define-key map "+" #'duet-transcript-earlier)
    (define-key map "g" #'duet-transcript-refresh)
    (define-key map "T" #'duet-rename)
    (define-key map "l" #'duet)
    (define-key map "/" #'duet-search-or-say)
    (define-key map "j" #'duet-approval-next)
    (define-key map "w" #'duet-approvals)
    ;; A question answers these where it stands; the only one, anywhere.
    (define-key map "a" #'duet-approval-approve)
    (define-key map "d" #'duet-approval-deny)
    (define-key map "v" #'duet-approval-view)
    (define-key map "=" #'duet-diff)
    (define-key map (kbd "M-=") #'duet-diff-all)
    (define-key map "Y" #'duet-markup-copy-code)
    (define-key map "`" #'duet-markup-toggle)
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-transcript-mode'.")

(define-derived-mode duet-transcript-mode special-mode "Duet"
  "Major mode of the transcript of a session with an agent.

\\{duet-transcript-mode-map}"
  (duet-section-setup)
  (duet-markup-setup)
  (setq truncate-lines nil
        word-wrap t
        bidi-paragraph-direction 'left-to-right
        duet-transcript--how (make-hash-table :test #'eq)
        mode-line-buffer-identification '(:eval (duet-header-name))
        header-line-format '(:eval (duet-header duet-session duet-connection)))
  ;; While a transcript streams its mode line is drawn all the time, where Emacs' own sign
  ;; for a remote directory, %@, drops a C-g; what :eval calls does not.
  (setq-local mode-line-remote '(:eval (if (file-remote-p default-directory) "@" "-")))
  ;; The number of a line says nothing here, and to count them takes longer than
  ;; all else that a key does, once there are some megabytes.
  (setq-local bidi-inhibit-bpa t
              line-number-mode nil
              ;; Half a frame shows whole lines, too.
              truncate-partial-width-windows nil
              ;; The end, which is being written, stays at the bottom.
              scroll-conservatively 101
              ;; Prose goes on in the next line; that is no news.
              fringe-indicator-alist (cons '(continuation nil nil) fringe-indicator-alist)
              ;; The brackets of buttons, on one of which point is, match.
              show-paren-data-function #'ignore)
  ;; What agents write with tabs is Go, mostly, which is shown so nearly everywhere.
  ;; Who has chosen a width knows better.
  (when (= (default-value 'tab-width) 8)
    (setq-local tab-width 4))
  (add-hook 'window-size-change-functions #'duet-transcript-fill nil t)
  (add-hook 'window-buffer-change-functions #'duet-transcript-fill nil t)
  (add-hook 'kill-buffer-hook #'duet-transcript--forget nil t)
  (add-hook 'change-major-mode-hook #'duet-transcript--forget nil t))

;; Who has to sign in first can do so where that is said.

(defun duet-transcript-needs-login (session run)
  "Return the agent of SESSION if RUN failed because nobody has signed in to it."
  (and run (duet-session-agent session)
       (equal (duet-run-error-code run) "AGENT_AUTH_REQUIRED")
       (duet-session-agent session)))

(defun duet-transcript--offer-login (message)
  "Return the line that signs in, where MESSAGE says that somebody has to."
  (when-let ((session (and (eq (duet-message-kind message) 'error)
                           (duet-message-session message)))
             (agent (duet-transcript-needs-login
                     session (duet-session-run session (duet-message-run message)))))
    (concat "  "
            (make-text-button
             (format "[Sign in to %s]" (duet-visible-line agent)) nil
             'action (lambda (_) (duet-login agent))
             'follow-link t
             'help-echo "mouse-1, RET: sign in")
            (propertize (substitute-command-keys " (\\<duet-transcript-mode-map>\\[duet-login], then \\[duet-continue] to go on)")
                        'face 'duet-dim))))

(add-hook 'duet-render-functions #'duet-transcript--offer-login)

(defun duet-transcript-buffer (session)
  "Return the buffer that shows SESSION, or nil."
  (cl-find-if (lambda (buffer)
                (and (eq (buffer-local-value 'major-mode buffer) 'duet-transcript-mode)
                     (eq (buffer-local-value 'duet-session buffer) session)))
              (buffer-list)))

(defun duet-transcript-open (connection session)
  "Return a buffer that shows SESSION of CONNECTION; make one if there is none."
  (or (duet-transcript-buffer session)
      (with-current-buffer (generate-new-buffer
                            (format "*duet: %s*" (duet-session-name session)))
        (duet-transcript-mode)
        (setq duet-connection connection
              duet-session session
              default-directory (duet-connection-directory connection session))
        (duet-model-follow #'duet-transcript--observe (duet-connection-model connection))
        (run-hooks 'duet-transcript-shown-hook)
        (duet-settings-learn connection session)
        (if (eq (duet-session-loaded session) t)
            (progn
              (mapc #'duet-transcript--note (duet-session-message-list session))
              (duet-transcript-flush))
          (duet-transcript--load))
        (current-buffer))))

(defun duet-transcript-show (connection session &optional end)
  "Show SESSION of CONNECTION in a window; go to its end if END is non-nil.
The window is selected unless the minibuffer is in use."
  (let ((buffer (duet-transcript-open connection session)))
    (if (active-minibuffer-window)
        (display-buffer buffer)
      (pop-to-buffer buffer))
    (when end
      (with-current-buffer buffer
        (let ((reply (duet-section-get 'reply)))
          (goto-char (if reply (duet-section-end reply) (point-max))))
        (dolist (window (get-buffer-window-list nil nil t))
          (set-window-point window (point)))
        (when (fboundp 'duet-approvals-catch) (duet-approvals-catch))
        (duet-transcript-follow)))))

(defun duet-transcript--load ()
  "Load the session of the buffer."
  (let ((buffer (current-buffer)))
    (duet-history-load
     duet-connection duet-session
     (lambda (err)
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (when err
             (message "Duet: %s" (duet-connection-error-text err)))
           (duet-transcript--earlier-button)
           (force-mode-line-update)))))))

(defun duet-transcript-refresh ()
  "Ask the server for the conversation again."
  (interactive (duet-only-in 'duet-transcript-mode) duet-transcript-mode)
  (let ((inhibit-read-only t)
        (session duet-session)
        (reply (duet-section-get 'reply)))
    (when (eq (duet-session-loaded session) 'loading)
      (user-error "The conversation is being loaded already"))
    ;; What is there is better than nothing.
    (unless (duet-connection-rpc duet-connection)
      (user-error "%s" (or (duet-connection-status duet-connection)
                           "The server is not running")))
    ;; What is being written stays.
    (delete-region (point-min) (if reply (duet-section-beg reply) (point-max)))
    (delete-all-overlays)
    (duet-section-setup)
    (when reply (puthash 'reply reply duet-sections))
    (setq duet-transcript--dirty nil duet-transcript--markup nil)
    (clrhash duet-transcript--how)
    (duet-model-forget-messages session)
    (duet-transcript--load)))

(defun duet-transcript--forget ()
  "Stop watching the model; the buffer is killed."
  (when duet-transcript--timer
    (cancel-timer duet-transcript--timer))
  (when (and duet-session (eq (duet-session-loaded duet-session) t))
    (duet-model-forget-messages duet-session)))


;;; What is new

(defun duet-transcript--observe (_model kind session object extra)
  "Note a change of the model: KIND, SESSION, OBJECT and EXTRA."
  (cond
   ((memq kind '(connection lagged))
    (force-mode-line-update)
    (when (and (eq kind 'connection) (eq (duet-connection-state duet-connection) 'ready)
               (null (duet-session-loaded duet-session)))
      (duet-transcript--load))
    (when (and (eq kind 'lagged) (eq (duet-session-loaded duet-session) t))
      (duet-transcript--load)))
   ((not (eq session duet-session)))
   (t
    (pcase kind
      ('message-added (duet-transcript--note object 'append))
      ('message-text (duet-transcript--note object 'append))
      ('message-changed (duet-transcript--note object 'redraw))
      ('messages-moved (duet-transcript--reorder object))
      ('messages-loaded
       (if (eq extra 'older)
           (duet-transcript--insert-older object)
         (dolist (message object) (duet-transcript--note message 'append))))
      ((or 'approval 'approval-resolved)
       (duet-transcript--approval-changed object))
      ('session (duet-transcript--session-changed))))))

(defun duet-transcript--session-changed ()
  "Show what a change of the session's state changes."
  (force-mode-line-update)
  (let ((name (format "*duet: %s*" (duet-session-name duet-session))))
    ;; A name that was made unique by a number stays.
    (unless (string-prefix-p name (buffer-name))
      (rename-buffer name t)))
  (dolist (message (seq-take (duet-session-order duet-session) 20))
    (when (eq (duet-message-kind message) 'prompt)
      (duet-transcript--note message 'redraw))))

(defun duet-transcript--approval-changed (approval)
  "Show what a change of APPROVAL changes in its tool call."
  (when-let* ((call (duet-approval-call approval))
              (message (duet-session-message
                        duet-session (concat (duet-approval-run approval) "/" call))))
    (duet-transcript--note message 'redraw)))


;;; What is earlier

(defun duet-transcript--first ()
  "Return the first section, be it the button for earlier messages."
  (get-text-property (point-min) 'duet-section))

(defun duet-transcript--insert-older (messages)
  "Insert sections for MESSAGES in front of all others."
  (when-let ((button (duet-section-get 'earlier)))
    (duet-section-delete button))
  (let ((first (duet-transcript--first)))
    (dolist (message messages)
      (unless (duet-section-get (duet-message-key message))
        (duet-transcript--insert message first))))
  (duet-transcript--earlier-button))

(defun duet-transcript--earlier-button ()
  "Show a button for earlier messages if there are any."
  (let ((button (duet-section-get 'earlier))
        (some (> (duet-session-offset duet-session) 0)))
    (cond
     ((and button (not some)) (duet-section-delete button))
     ((and some (not button))
      (duet-section-insert
       'earlier nil
       (propertize "[+] earlier messages…" 'face 'link 'mouse-face 'highlight
                   'duet-action #'duet-transcript-earlier
                   'help-echo "mouse-1, RET: load earlier messages")
       (duet-transcript--first))))))

(defun duet-transcript-earlier ()
  "Load earlier messages."
  (interactive (duet-only-in 'duet-transcript-mode) duet-transcript-mode)
  (unless (> (duet-session-offset duet-session) 0)
    (user-error "This is the beginning of the conversation"))
  (let ((buffer (current-buffer)))
    (duet-history-load-older
     duet-connection duet-session
     (lambda (err)
       (when (and err (buffer-live-p buffer))
         (message "Duet: %s" (duet-connection-error-text err)))))))

(provide 'duet-transcript)
;;; duet-transcript.el ends here
