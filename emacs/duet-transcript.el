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
(require 'duet-block)
(require 'duet-code)
(require 'duet-markup)
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

(defcustom duet-transcript-delay 0.05
  "How many seconds may pass until a transcript shows what was said."
  :type 'number
  :group 'duet)

(defconst duet-transcript--slice 0.008
  "How many seconds a transcript is worked on before Emacs may do other things.")

(defconst duet-transcript--pause 0.005
  "How many seconds Emacs has for those before it goes on.")

(defvar show-paren-data-function)

(defvar-local duet-session nil
  "The session that the buffer shows or is about.")

(defvar duet-transcript-shown-hook nil
  "Hook that is run in a transcript before a session is shown in it.")

(defvar-local duet-transcript--dirty nil
  "Messages to be brought up to date, the last first.")
(defvar-local duet-transcript--how nil
  "A hash table: how each of those is to be brought up to date.
`append' or `redraw'.")
(defvar-local duet-transcript--markup nil
  "Sections that are to be looked at for blocks of code.")
(defvar-local duet-transcript--timer nil
  "The timer that brings the buffer up to date.")

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
    (define-key map "k" #'duet-take-back)
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

(defun duet-transcript--tail ()
  "Return the section that what is said comes in front of, or nil."
  ;; What waits for the user stays at the end.
  (or (duet-section-get 'footer) (duet-section-get 'reply)))

(defun duet-transcript--end ()
  "Return where what is said ends."
  (if-let ((tail (duet-transcript--tail))) (duet-section-beg tail)
    (point-max)))

(defun duet-transcript-fill (window)
  "Have the end of the transcript at the bottom of WINDOW, if it shows the end.
Emacs leaves it where it was when the window was lower, or what stands above
a question was shorter."
  (when (and (window-live-p window)
             (eq (buffer-local-value 'major-mode (window-buffer window))
                 'duet-transcript-mode))
    (with-current-buffer (window-buffer window)
      (when (>= (window-point window)
                (duet-transcript--end))
        (let ((start (save-excursion
                       (goto-char (point-max))
                       (vertical-motion (- 1 (window-body-height window)) window)
                       (point))))
          ;; What is at the end may be higher than the window.
          (unless (or (= start (window-start window)) (< (window-point window) start))
            (set-window-start window start t)))))))

(defun duet-transcript-follow ()
  "Have the end of the transcript at the bottom of all windows that show it."
  (dolist (window (get-buffer-window-list nil nil t))
    (duet-transcript-fill window)))

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
      ('messages-loaded
       (if (eq extra 'older)
           (duet-transcript--insert-older object)
         (dolist (message object) (duet-transcript--note message 'append))))
      ((or 'approval 'approval-resolved)
       (duet-transcript--approval-changed object))
      ('session (duet-transcript--session-changed))))))

(defun duet-transcript--note (message &optional how)
  "Note that MESSAGE is to be brought up to date, HOW: `append' or `redraw'."
  (let ((before (gethash message duet-transcript--how)))
    (unless before (push message duet-transcript--dirty))
    (puthash message (if (eq before 'redraw) 'redraw (or how 'append))
             duet-transcript--how)
    (duet-transcript--soon)))

(defun duet-transcript--soon (&optional delay)
  "Bring the buffer up to date in DELAY seconds, or `duet-transcript-delay'."
  (unless duet-transcript--timer
    (setq duet-transcript--timer
          (run-at-time (or delay duet-transcript-delay) nil
                       (let ((buffer (current-buffer)))
                         (lambda ()
                           (when (buffer-live-p buffer)
                             (with-current-buffer buffer
                               (setq duet-transcript--timer nil)
                               (duet-log-guard "Transcript"
                                 (duet-transcript--work))))))))))

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

(defun duet-transcript-flush ()
  "Bring the buffer up to date now, whatever time it takes."
  (while (duet-transcript--work)))

(defun duet-transcript--work ()
  "Bring the buffer up to date, for a short time at most.
Return non-nil if something is left to do; a timer goes on with it.
A key that waits ends it, too, when there was some progress."
  (let ((end (+ (float-time) duet-transcript--slice))
        (work (nreverse duet-transcript--dirty))
        (more t))
    (cl-flet ((more-p () (setq more (and (< (float-time) end) (not (input-pending-p))))))
      (setq duet-transcript--dirty nil)
      (while (and work more)
        (let* ((message (pop work))
               (how (gethash message duet-transcript--how)))
          (remhash message duet-transcript--how)
          (duet-transcript--update message how)
          (more-p)))
      (setq duet-transcript--dirty (nconc duet-transcript--dirty (nreverse work))
            more t)
      (while (and duet-transcript--markup more)
        (unless (duet-block-scan (car duet-transcript--markup))
          (pop duet-transcript--markup))
        (more-p)))
    (duet-markup-in-sight)
    (duet-transcript-follow)
    (when (or (duet-code-work end) duet-transcript--dirty duet-transcript--markup)
      (duet-transcript--soon duet-transcript--pause)
      t)))

(defun duet-transcript--update (message how)
  "Bring the section of MESSAGE up to date, HOW: `append' or `redraw'."
  (let ((section (duet-section-get (duet-message-key message))))
    (cond
     ((not (eq message (duet-session-message duet-session (duet-message-key message)))))
     ((null section) (duet-transcript--insert message))
     ((duet-render-streams-p message)
      (duet-transcript--stream section message how))
     (t
      (setf (duet-section-summary section) (duet-render-summary message))
      (duet-section-redraw section (duet-render message))))))

(defun duet-transcript--stream (section message how)
  "Add to SECTION what MESSAGE has gained; if HOW is `redraw' look at all of it."
  (let* ((shown (duet-section-shown section))
         (tail (duet-message-tail message shown))
         (thinking (eq (duet-message-kind message) 'thinking)))
    (unless (string-empty-p tail)
      (setf (duet-section-shown section) (+ shown (length tail)))
      (setq tail (duet-render-prose tail (save-excursion
                                           (goto-char (duet-section-end section))
                                           (- (point) (line-beginning-position)))))
      (when thinking
        (setq tail (propertize tail 'face 'duet-thinking)))
      (duet-section-append section (duet-render-below message tail)))
    (when (and (eq how 'redraw)
               (or thinking
                   (not (string= (duet-render-prose (duet-message-text message))
                                 (buffer-substring-no-properties
                                  (duet-section-beg section) (duet-section-end section))))))
      (duet-section-redraw section (duet-render message))
      (setf (duet-section-shown section) (duet-message-size message)
            (duet-section-blocks section) nil))
    (duet-section-hide-blank section)
    (unless thinking (duet-transcript--mark-up section))))

(defun duet-transcript--insert (message &optional before)
  "Insert a section for MESSAGE, in front of the section BEFORE.
Without BEFORE it goes where the model has it.  Return it."
  (let ((section (duet-section-insert
                  (duet-message-key message) message (duet-render message)
                  (or before
                      (duet-transcript--section-after message)
                      (duet-transcript--tail)))))
    (setf (duet-section-shown section) (duet-message-size message))
    (when (duet-render-streams-p message)
      (duet-section-hide-blank section))
    (setf (duet-section-summary section) (duet-render-summary message))
    (when (duet-render-folded-p message)
      (duet-section-fold-up section))
    (when (eq (duet-message-kind message) 'text)
      (duet-transcript--mark-up section))
    section))

(defun duet-transcript--section-after (message)
  "Return the section of what follows MESSAGE, the next that has one, or nil."
  (let ((section nil))
    (cl-loop for other in (duet-session-order duet-session)
             until (eq other message)
             do (setq section (or (duet-section-get (duet-message-key other)) section)))
    section))

(defun duet-transcript--mark-up (section)
  "Have SECTION looked at for blocks of code soon."
  (unless (memq section duet-transcript--markup)
    (setq duet-transcript--markup (nconc duet-transcript--markup (list section)))
    (duet-transcript--soon)))


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
