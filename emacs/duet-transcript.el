;;; duet-transcript.el --- The messages of a session  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A transcript shows a session of a model (duet-model.el) as sections
;; (duet-section.el).  duet-render.el makes their text.  The transcript observes the
;; model and records changed messages.  A timer updates the buffer some twenty times
;; a second.  The cost of new text depends on its length, not on the transcript's.

;;; Code:

(require 'cl-lib)
(require 'imenu)
(require 'subr-x)
(require 'thingatpt)
(require 'duet-actions)
(require 'duet-block)
(require 'duet-connection)
(require 'duet-header)
(require 'duet-history)
(require 'duet-inline)
(require 'duet-log)
(require 'duet-markup)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-render)
(require 'duet-section)
(require 'duet-settings)
(require 'duet-visible)
(require 'duet-worktree)

(declare-function duet "duet" (&optional directory))
(declare-function duet-new "duet" ())
(declare-function duet-projects "duet-projects" ())
(declare-function duet-login "duet-agents" (agent))
(declare-function duet-approval-allow "duet-approval" (approval))
(declare-function duet-approval-next "duet-approvals" ())
(declare-function duet-approval-view "duet-approval-view" (approval))
(declare-function duet-approvals "duet-approvals" ())
(declare-function duet-approvals-catch "duet-approvals" ())
(declare-function duet-diff "duet-diff" (session))
(declare-function duet-diff-all "duet-diff" (session))
(declare-function duet-worktree "duet-menu" ())
(defvar show-paren-data-function)

;;; The mode

(defvar-local duet-session nil
  "The session of the buffer.")

(defvar-local duet-transcript--dirty nil
  "Messages whose sections need an update, the last one first.")
(defvar-local duet-transcript--how nil
  "A hash table: the kind of update of each of those messages.
The kinds are `append' and `redraw'.")
(defvar-local duet-transcript--markup nil
  "Sections to scan for blocks of code.")
(defvar-local duet-transcript--timer nil
  "The timer for the next update of the buffer.")

(defvar duet-transcript-shown-hook nil
  "Hook that runs in a new transcript before its session is shown.")

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
    (define-key map "c" #'duet-new)
    (define-key map "r" #'duet-continue)
    (define-key map "i" #'duet-interrupt)
    (define-key map "I" #'duet-login)
    (define-key map "f" #'duet-fork)
    (define-key map "G" #'duet-rewind)
    (define-key map "%" #'duet-worktree)
    (define-key map "+" #'duet-transcript-earlier)
    (define-key map "g" #'duet-transcript-refresh)
    (define-key map "T" #'duet-rename)
    (define-key map "l" #'duet)
    (define-key map "P" #'duet-projects)
    (define-key map "/" #'duet-search-or-say)
    (define-key map "j" #'duet-approval-next)
    (define-key map "w" #'duet-approvals)
    ;; These answer the question at point; elsewhere, the only open question.
    (define-key map "y" #'duet-approval-allow)
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
  ;; The mode line of a transcript that streams is redrawn all the time.  Emacs' own
  ;; sign for a remote directory, %@, then drops a C-g; a function in :eval does not.
  (setq-local mode-line-remote '(:eval (if (file-remote-p default-directory) "@" "-")))
  ;; Line numbers mean nothing here, and in some megabytes counting them takes longer
  ;; than everything else that a key does.
  (setq-local bidi-inhibit-bpa t
              line-number-mode nil
              ;; Lines are wrapped in half a frame, too.
              truncate-partial-width-windows nil
              ;; The end, where text arrives, stays at the bottom.
              scroll-conservatively 101
              ;; Wrapped prose needs no sign in the fringe.
              fringe-indicator-alist (cons '(continuation nil nil) fringe-indicator-alist)
              ;; Do not highlight the brackets of the button at point.
              show-paren-data-function #'ignore
              next-error-function #'duet-transcript-next-error)
  ;; Text with tabs is mostly Go code, which is usually shown with this width.
  ;; A width that the user has chosen stays.
  (when (= (default-value 'tab-width) 8)
    (setq-local tab-width 4))
  (add-hook 'window-size-change-functions #'duet-transcript-fill nil t)
  (add-hook 'window-buffer-change-functions #'duet-transcript-fill nil t)
  (add-hook 'kill-buffer-hook #'duet-transcript--forget nil t)
  (add-hook 'change-major-mode-hook #'duet-transcript--forget nil t))

;; The error for a missing login has a button that signs in.

(defun duet-transcript-needs-login (session turn)
  "Return the agent of SESSION if TURN failed because of a missing login."
  (and turn (duet-session-agent session)
       (equal (duet-turn-error-code turn) "AGENT_AUTH_REQUIRED")
       (duet-session-agent session)))

(defun duet-transcript--offer-login (message)
  "Return a line with a sign-in button if MESSAGE reports a missing login."
  (when-let ((session (and (eq (duet-message-kind message) 'error)
                           (duet-message-session message)))
             (agent (duet-transcript-needs-login
                     session (duet-session-turn session (duet-message-turn message)))))
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
  "Return the buffer that shows SESSION of CONNECTION; make it if necessary."
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
Select the window unless the minibuffer is active."
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
  "Reload the session from the server."
  (interactive (duet-only-in 'duet-transcript-mode) duet-transcript-mode)
  (let ((inhibit-read-only t)
        (session duet-session)
        (reply (duet-section-get 'reply)))
    (when (eq (duet-session-loaded session) 'loading)
      (user-error "The session is already loading"))
    ;; Without a server, keep the old text.
    (unless (duet-connection-rpc duet-connection)
      (user-error "%s" (or (duet-connection-status duet-connection)
                           "The server is not running")))
    ;; An unfinished prompt stays.
    (delete-region (point-min) (if reply (duet-section-beg reply) (point-max)))
    (delete-all-overlays)
    (duet-section-setup)
    (when reply (puthash 'reply reply duet-sections))
    (setq duet-transcript--dirty nil duet-transcript--markup nil)
    (clrhash duet-transcript--how)
    (duet-model-forget-messages session)
    (duet-transcript--load)))

(defun duet-transcript--forget ()
  "Cancel the timer and drop the messages: the buffer is about to be killed."
  (when duet-transcript--timer
    (cancel-timer duet-transcript--timer))
  (when (and duet-session (eq (duet-session-loaded duet-session) t))
    (duet-model-forget-messages duet-session)))


;;;; Changes of the model

(defun duet-transcript--observe (_model kind session object extra)
  "Handle a change of the model: KIND, SESSION, OBJECT and EXTRA."
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
  "Update the parts of the buffer that depend on the session's state."
  (force-mode-line-update)
  ;; A new session's worktree is still unknown when its transcript is made.
  (setq default-directory (duet-connection-directory duet-connection duet-session))
  (let ((name (format "*duet: %s*" (duet-session-name duet-session))))
    ;; A name that was made unique by a number stays.
    (unless (string-prefix-p name (buffer-name))
      (rename-buffer name t)))
  (dolist (message (seq-take (duet-session-order duet-session) 20))
    (when (eq (duet-message-kind message) 'prompt)
      (duet-transcript--note message 'redraw))))

(defun duet-transcript--approval-changed (approval)
  "Update the tool call of APPROVAL."
  (when-let* ((call (duet-approval-call approval))
              (message (duet-session-message
                        duet-session (concat (duet-approval-turn approval) "/" call))))
    (duet-transcript--note message 'redraw)))


;;;; Earlier messages

(defun duet-transcript--first ()
  "Return the first section, which may be the button for earlier messages."
  (get-text-property (point-min) 'duet-section))

(defun duet-transcript--insert-older (messages)
  "Insert sections for MESSAGES before all others."
  (when-let ((button (duet-section-get 'earlier)))
    (duet-section-delete button))
  (let ((first (duet-transcript--first)))
    (dolist (message messages)
      (unless (or (duet-section-get (duet-message-key message))
                  (duet-render-said-p message))
        (duet-transcript--insert message first))))
  (duet-transcript--earlier-button))

(defun duet-transcript--earlier-button ()
  "Show the button for earlier messages, or remove it if there are none."
  (let ((button (duet-section-get 'earlier))
        (some (duet-session-before duet-session)))
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
  (unless (duet-session-before duet-session)
    (user-error "This is the beginning of the session"))
  (let ((buffer (current-buffer)))
    (duet-history-load-older
     duet-connection duet-session
     (lambda (err)
       (when (and err (buffer-live-p buffer))
         (message "Duet: %s" (duet-connection-error-text err)))))))

;;; Updates

;; Changes are recorded and shown a little later, in short slices of work, so that
;; Emacs stays responsive under any load.  A timer of the buffer continues the work.

(defcustom duet-transcript-delay 0.05
  "Maximum delay until a transcript shows a change, in seconds."
  :type 'number
  :group 'duet)

(defconst duet-transcript--slice 0.008
  "Maximum time of an update before Emacs handles other events, in seconds.")

(defconst duet-transcript--pause 0.005
  "Time for other events between two slices of an update, in seconds.")

(defvar-local duet-transcript--next 0
  "The earliest time to show more text, as `float-time' returns it.")
(defun duet-transcript--tail ()
  "Return the section before which new messages are inserted, or nil."
  ;; Open questions and the reply box stay at the end.
  (or (duet-section-get 'footer) (duet-section-get 'reply)))

(defun duet-transcript--end ()
  "Return the end of the messages."
  (if-let ((tail (duet-transcript--tail))) (duet-section-beg tail)
    (point-max)))

(defun duet-transcript-fill (window)
  "Put the end of the transcript at the bottom of WINDOW, if it shows the end.
Emacs itself does not move it when the window grows, or the text above a
question."
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
          ;; The part below point may be higher than the window.
          (unless (or (= start (window-start window)) (< (window-point window) start))
            (set-window-start window start t)))))))

(defun duet-transcript-follow ()
  "Put the end of the transcript at the bottom of all windows that show it."
  (dolist (window (get-buffer-window-list nil nil t))
    (duet-transcript-fill window)))

(defun duet-transcript--note (message &optional how)
  "Record that MESSAGE needs an update; HOW is `append' or `redraw'."
  (let ((before (gethash message duet-transcript--how)))
    (unless before (push message duet-transcript--dirty))
    (puthash message (if (eq before 'redraw) 'redraw (or how 'append))
             duet-transcript--how)
    (duet-transcript--soon)))

(defun duet-transcript--soon (&optional delay)
  "Schedule an update in DELAY seconds, or in `duet-transcript-delay'."
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

(defun duet-transcript-flush ()
  "Update the buffer completely now, without a time limit."
  (while (progn (setq duet-transcript--next 0)
                (duet-transcript--work))))

(defun duet-transcript--work ()
  "Update the buffer for one slice of time.
Return non-nil if work remains; a timer continues it.  Pending input also ends
the slice, after some progress."
  (let* ((start (float-time))
         (end (+ start duet-transcript--slice))
         (more t))
    (cl-flet ((more-p () (setq more (and (< (float-time) end) (not (input-pending-p))))))
      ;; The redisplay of a change costs more than the change.  So under a high load,
      ;; new text is not shown more often than usual.
      (when (and duet-transcript--dirty (>= start duet-transcript--next))
        (let ((work (nreverse duet-transcript--dirty)))
          (setq duet-transcript--dirty nil)
          (while (and work more)
            (let* ((message (pop work))
                   (how (gethash message duet-transcript--how)))
              (remhash message duet-transcript--how)
              (duet-transcript--update message how)
              (more-p)))
          (setq duet-transcript--dirty (nconc duet-transcript--dirty (nreverse work))
                duet-transcript--next (if duet-transcript--dirty 0
                                        (+ start duet-transcript-delay))
                more t)))
      (while (and duet-transcript--markup more)
        (unless (duet-block-scan (car duet-transcript--markup))
          (pop duet-transcript--markup))
        (more-p)))
    (duet-markup-in-sight)
    (duet-transcript-follow)
    (cond
     ((or (duet-code-work end) duet-transcript--markup)
      (duet-transcript--soon duet-transcript--pause)
      t)
     (duet-transcript--dirty
      (duet-transcript--soon (max duet-transcript--pause (- duet-transcript--next start)))
      t))))

(defun duet-transcript--update (message how)
  "Update the section of MESSAGE; HOW is `append' or `redraw'."
  (let ((section (duet-section-get (duet-message-key message))))
    (cond
     ((not (eq message (duet-session-message duet-session (duet-message-key message)))))
     ((duet-render-said-p message) (when section (duet-section-delete section)))
     ((null section) (duet-transcript--insert message))
     ((duet-render-streams-p message)
      (duet-transcript--stream section message how))
     (t
      (when (and (duet-section-by-default section) (not (duet-render-folded-p message)))
        ;; A tool call got the changes that it makes.
        (setf (duet-section-by-default section) nil)
        (duet-section-unfold section))
      (setf (duet-section-summary section) (duet-render-summary message))
      (duet-section-redraw section (duet-render message))))
    (when (and (duet-tool-p message) (memq (duet-tool-status message) '(completed failed)))
      (duet-transcript--update-said message))))

(defun duet-transcript--update-said (tool)
  "Update the messages that TOOL makes superfluous, or no longer does."
  (dolist (other (seq-take (duet-session-order duet-session) 20))
    (when (and (memq (duet-message-kind other) '(answer diff))
               (equal (duet-message-turn other) (duet-message-turn tool))
               (eq (and (duet-section-get (duet-message-key other)) t)
                   (and (duet-render-said-p other) t)))
      (duet-transcript--note other 'redraw))))

(defun duet-transcript--stream (section message how)
  "Append the new text of MESSAGE to SECTION; if HOW is `redraw', compare all."
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
  "Insert a section for MESSAGE before the section BEFORE; return it.
Without BEFORE, use its place in the model."
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
      (setf (duet-section-by-default section) t)
      (duet-section-fold-up section))
    (when (eq (duet-message-kind message) 'text)
      (duet-transcript--mark-up section))
    section))

(defun duet-transcript--reorder (messages)
  "Move the sections of MESSAGES to the places of MESSAGES in the model.
Point stays in its section, in each window."
  (let* ((shown (cl-remove-if-not (lambda (message)
                                    (duet-section-get (duet-message-key message)))
                                  messages))
         (sections (mapcar (lambda (message) (duet-section-get (duet-message-key message)))
                           shown))
         (place (lambda (point)
                  (when-let ((section (car (memq (duet-section-at point) sections))))
                    (cons (duet-section-key section) (- point (duet-section-beg section))))))
         (find (lambda (place) (+ (duet-section-beg (duet-section-get (car place)))
                                  (cdr place))))
         (own (funcall place (point)))
         (points (mapcar (lambda (window)
                           (cons window (funcall place (window-point window))))
                         (get-buffer-window-list nil nil t)))
         (folded (cl-remove-if-not #'duet-section-folded-p sections)))
    (unless (or (null (cdr sections))
                (apply #'< (mapcar #'duet-section-beg sections)))
      (mapc #'duet-section-delete sections)
      (mapc #'duet-transcript--insert shown)
      (dolist (section folded)
        (duet-section-fold-up (duet-section-get (duet-section-key section))))
      (when own (goto-char (funcall find own)))
      (pcase-dolist (`(,window . ,place) points)
        (when place (set-window-point window (funcall find place)))))))

(defun duet-transcript--section-after (message)
  "Return the section of the first message after MESSAGE with a section, or nil."
  (let ((section nil))
    (cl-loop for other in (duet-session-order duet-session)
             until (eq other message)
             do (setq section (or (duet-section-get (duet-message-key other)) section)))
    section))

(defun duet-transcript--mark-up (section)
  "Schedule a scan of SECTION for blocks of code."
  (unless (memq section duet-transcript--markup)
    (setq duet-transcript--markup (nconc duet-transcript--markup (list section)))
    (duet-transcript--soon)))

;;; Visiting

;; RET visits the thing at point: the file of a tool call, a place or an address in an
;; agent's prose, a button.  On a heading it folds the section.
;;
;; A transcript shows a limited number of lines of a tool's input, its result, or a
;; diff.  RET on the line behind the last one shows the whole text in another buffer.

(defun duet-transcript-message-at-point ()
  "Return the message at point, or nil."
  (when-let ((section (duet-section-at)))
    (duet-section-object section)))

(defun duet-transcript-visit ()
  "Visit the file or address at point, or push the button at point.
On the heading of a section, fold or unfold the section."
  (interactive nil duet-transcript-mode)
  (let ((action (get-text-property (point) 'duet-action))
        (file (get-text-property (point) 'duet-file))
        (link (duet-link-at-point))
        (url (thing-at-point-url-at-point))
        (place (duet-transcript-visit--place)))
    (cond
     (action (call-interactively action))
     (file (duet-transcript-visit--file file (get-text-property (point) 'duet-line)))
     (link (duet-link-follow link))
     (url (duet-link-browse url))
     (place (duet-transcript-visit--file (car place) (cdr place)))
     (t
      ;; The line may contain the name of a file.
      (let ((next (next-single-property-change (line-beginning-position) 'duet-file
                                               nil (line-end-position))))
        (if (and next (get-text-property next 'duet-file))
            (progn (goto-char next) (duet-transcript-visit))
          (duet-transcript-visit--fold)))))))

(defun duet-transcript-visit--fold ()
  "Fold or unfold the section at point from its heading, or signal an error.
Prompts, answers and the text of agents have no heading."
  (let* ((section (duet-section-at))
         (message (and section (duet-section-object section))))
    (if (and section
             (or (duet-section-folded-p section)
                 (and message
                      (not (memq (duet-message-kind message) '(text prompt answer)))
                      (= (line-beginning-position)
                         (save-excursion (goto-char (duet-section-beg section))
                                         (line-beginning-position))))))
        (duet-section-toggle)
      (user-error "Nothing to go to here; %s"
                  (substitute-command-keys
                   "\\<duet-transcript-mode-map>\\[duet-section-toggle] folds")))))

(defun duet-transcript-visit--file (file line &optional column)
  "Visit FILE, at LINE and COLUMN if they are non-nil.
If the selected window shows the transcript, use another window; else use the
selected window."
  (let ((file (duet-host-visit-name
               (duet-worktree-file duet-connection duet-session (duet-remote-name file)))))
    (unless (file-exists-p file)
      (user-error "File %s no longer exists" (duet-remote-abbreviate file)))
    (if (eq (window-buffer) (current-buffer))
        (find-file-other-window file)
      (pop-to-buffer-same-window (find-file-noselect file)))
    (when line
      (goto-char (point-min))
      (forward-line (1- line))
      (when column
        (goto-char (min (line-end-position) (+ (point) (max 0 (1- column)))))))))

(defconst duet-transcript-visit--characters "-+@~/._[:alnum:]"
  "The characters of file names, for `skip-chars-backward'.")

(defun duet-transcript-visit--file-p (file)
  "Return non-nil if FILE, a name in a text, is an existing file.
On a host, where Emacs does not look, it must have a slash or an extension."
  (and (length< file 4096)
       (not (file-remote-p file))
       (if (duet-host-of default-directory)
           (string-match-p "/.\\|[^.]\\.[[:alpha:]][[:alnum:]]*\\'" file)
         (file-regular-p (duet-remote-name file)))))

(defun duet-transcript-visit--place ()
  "Return the file and line at point in prose, (FILE . LINE), or nil.
LINE is nil if the text has no line number."
  (save-excursion
    (let ((here (point))
          (characters duet-transcript-visit--characters))
      (skip-chars-backward (concat characters ":") (line-beginning-position))
      ;; Point may be on the colon or on the number behind it.
      (when (and (looking-at (format "\\([%s]+\\)\\(?::\\([0-9]+\\)\\)?" characters))
                 (<= here (match-end 0)))
        (let* ((line (match-string-no-properties 2))
               ;; A full stop usually ends a sentence, not a name.
               (file (string-trim-right (match-string-no-properties 1) "\\.+")))
          (when (and (not (string-empty-p file))
                     (duet-transcript-visit--file-p file))
            (cons file (and line (string-to-number line)))))))))

;;;; Places

;; `next-error' moves between places in files, as in the output of a compiler.  The
;; places are files of tool calls, hunks of their diffs, and names with line numbers in
;; prose or in the result of a tool.  A place may be in a folded section.

(defun duet-transcript-visit--places (beg end)
  "Return the places in files in the text from BEG to END, in order.
Each is (POSITION FILE LINE COLUMN); LINE and COLUMN may be nil."
  (let ((places '())
        (from beg))
    ;; The files of tool calls have a text property.
    (while (< from end)
      (let ((file (get-text-property from 'duet-file)))
        (when file
          (push (list from file (get-text-property from 'duet-line) nil) places))
        (setq from (next-single-property-change from 'duet-file nil end))))
    (save-excursion
      (goto-char beg)
      (while (re-search-forward
              "\\(?:[:(]\\|\"?, line \\)\\([0-9]+\\)\\(?:[:,]\\([0-9]+\\)\\)?" end t)
        (let* ((line (string-to-number (match-string 1)))
               (column (and (match-string 2) (string-to-number (match-string 2))))
               (behind (match-end 0))
               (name-end (match-beginning 0))
               (name-beg (progn (goto-char name-end)
                                (skip-chars-backward duet-transcript-visit--characters beg)
                                (point)))
               (file (buffer-substring-no-properties name-beg name-end)))
          (when (and (< name-beg name-end)
                     (not (get-text-property name-beg 'duet-file))
                     (duet-transcript-visit--file-p file))
            (push (list name-beg file line column) places))
          (goto-char behind))))
    (sort places (lambda (a b) (< (car a) (car b))))))

(defun duet-transcript-visit--next (count from)
  "Return the next place after FROM; with a negative COUNT, the one before it.
Return nil if there is none."
  (save-excursion
    (goto-char (max from (point-min)))
    (let ((place nil)
          (more t))
      (while (and more (not place))
        (let ((places (duet-transcript-visit--places (line-beginning-position)
                                                     (line-end-position))))
          (setq place (if (> count 0)
                          (cl-find-if (lambda (place) (> (car place) from)) places)
                        (cl-find-if (lambda (place) (< (car place) from)) places :from-end t))
                more (and (zerop (forward-line (if (> count 0) 1 -1)))
                          (not (eobp))))))
      place)))

(defun duet-transcript-next-error (count reset)
  "Visit the COUNTth place in a file after point.
If RESET is non-nil, begin with the first place of the buffer.  If point is at
the end, begin with the first place of the last turn.  This is the
`next-error-function' of the buffer."
  (let ((from (cond (reset (1- (point-min)))
                    ((and (> count 0) (>= (point) (duet-transcript--end)))
                     (1- (or (cdar (last (duet-transcript-move-prompts))) (point-min))))
                    ((zerop count) (1- (point)))
                    (t (point))))
        (place nil))
    (dotimes (_ (max 1 (abs count)))
      (when from
        (setq place (duet-transcript-visit--next (if (zerop count) 1 count) from)
              from (car place))))
    (unless place
      (user-error "No more files here"))
    (goto-char (car place))
    (when-let ((section (duet-section-at)))
      (when (duet-section-folded-p section) (duet-section-toggle)))
    (dolist (window (get-buffer-window-list nil nil t))
      (set-window-point window (point)))
    (apply #'duet-transcript-visit--file (cdr place))))

(defun duet-transcript-visit-mouse (event)
  "Do what `duet-transcript-visit' does at the place of EVENT, a click."
  (interactive "e" duet-transcript-mode)
  (mouse-set-point event)
  (if (get-text-property (point) 'duet-fold)
      (duet-section-toggle)
    (duet-transcript-visit)))


;;;; Full texts

(defvar duet-transcript-whole-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-transcript-whole-mode'.")

(define-derived-mode duet-transcript-whole-mode special-mode "Duet-Whole"
  "Major mode that shows the whole of a text.

\\{duet-transcript-whole-mode-map}"
  (setq buffer-undo-list t
        bidi-paragraph-direction 'left-to-right
        truncate-lines nil)
  (setq-local bidi-inhibit-bpa t
              filter-buffer-substring-function #'duet-markup--copied))

(defun duet-whole-show ()
  "Show the whole text of which the line at point hides a part."
  (interactive nil duet-transcript-mode)
  (let ((rest (get-text-property (point) 'duet-rest))
        (text (get-text-property (point) 'duet-whole)))
    (cond
     ((and rest (duet-message-cut rest)) (duet-transcript-visit-load rest text))
     (text (duet-transcript-visit--show-whole text))
     (t (user-error "Nothing is hidden here")))))

(defun duet-transcript-visit-load (message &optional show)
  "Load the parts of MESSAGE that events omitted.
Then show its whole result if SHOW is non-nil."
  (unless (eq (duet-message-cut message) 'loading)
    (let ((buffer (current-buffer)))
      (duet-history-complete
       duet-connection message
       (lambda (err)
         (cond
          (err (message "Duet: the rest was not loaded: %s" (duet-connection-error-text err)))
          ((and show (buffer-live-p buffer) (eq buffer (window-buffer)))
           (with-current-buffer buffer
             (duet-transcript-visit--show-whole (or (duet-tool-result message) "")))))))
      (duet-events--changed message))))

(defun duet-transcript-visit--unfolded (section)
  "Load the parts of SECTION's message that events omitted."
  (let ((message (and (bound-and-true-p duet-session)
                      (stringp (duet-section-key section))
                      (duet-session-message duet-session (duet-section-key section)))))
    (when (and (duet-tool-p message) (eq (duet-message-cut message) t)
               (duet-connection-rpc duet-connection))
      (duet-transcript-visit-load message))))

(add-hook 'duet-section-unfold-functions #'duet-transcript-visit--unfolded)

(defun duet-transcript-visit--show-whole (text)
  "Show TEXT, of the section at point, in another buffer."
  (let ((name (save-excursion
                (when-let ((section (duet-section-at)))
                  (goto-char (duet-section-beg section))
                  (buffer-substring-no-properties (point) (line-end-position)))))
        (buffer (get-buffer-create "*duet whole*")))
    (with-current-buffer buffer
      (duet-transcript-whole-mode)
      (setq header-line-format
            (concat " " (replace-regexp-in-string "%" "%%" (or name "") t t)))
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (duet-render-wrap (duet-visible text)) "\n")
        (goto-char (point-min))))
    (pop-to-buffer buffer)))

;;; Moving and scrolling

;; In a transcript `M-n' and `M-p' go to the next and the previous prompt.  Imenu lists
;; all loaded prompts, and the headings in agents' texts.
;;
;; A window follows new text while its point is at the end of the buffer.  In Emacs,
;; the mouse wheel and the scroll bar move point away from the end, but do not move it
;; back.  Here they do: a window that the user scrolls down to the end follows again.

;;;; Prompts

(defun duet-transcript-move-prompts ()
  "Return the prompts of the transcript: (MESSAGE . POSITION), in order."
  (cl-loop for message in (duet-session-message-list duet-session)
           for section = (and (eq (duet-message-kind message) 'prompt)
                              (duet-section-get (duet-message-key message)))
           when section
           collect (cons message (marker-position (duet-section-beg section)))))

(defun duet-prompt-next (&optional count)
  "Go to the next prompt, or to the COUNTth; backward if it is negative."
  (interactive (or (duet-only-in 'duet-transcript-mode)
                   (list (prefix-numeric-value current-prefix-arg)))
               duet-transcript-mode)
  (let* ((count (or count 1))
         (places (mapcar #'cdr (duet-transcript-move-prompts)))
         (there (cond ((zerop count) (point))
                      ((> count 0)
                       (nth (1- count) (cl-remove-if (lambda (place) (<= place (point)))
                                                     places)))
                      (t (nth (1- (- count))
                              (nreverse (cl-remove-if (lambda (place) (>= place (point)))
                                                      places)))))))
    (cond
     (there (goto-char there)
            ;; Show the line after it, too.
            (when (and (eq (window-buffer) (current-buffer))
                       (not (pos-visible-in-window-p (line-end-position 2))))
              (recenter 1)))
     ((> count 0) (message "This is the last prompt"))
     ((duet-session-before duet-session)
      (message (substitute-command-keys
                "This is the first prompt that is loaded; \\<duet-transcript-mode-map>\\[duet-transcript-earlier] loads earlier ones")))
     (t (message "This is the first prompt")))))

(defun duet-prompt-previous (&optional count)
  "Go to the previous prompt, or to the COUNTth before."
  (interactive (or (duet-only-in 'duet-transcript-mode)
                   (list (prefix-numeric-value current-prefix-arg)))
               duet-transcript-mode)
  (duet-prompt-next (- (or count 1))))

(defun duet-transcript-move--index ()
  "Return the prompts of the transcript and the headings of agents for Imenu."
  (append (duet-transcript-move--entries
           (mapcar (lambda (prompt)
                     (cons (car (split-string (duet-visible-trim (duet-message-text (car prompt)))
                                              "\n"))
                           (cdr prompt)))
                   (duet-transcript-move-prompts)))
          (when-let ((headings (duet-markup-headings)))
            (list (cons "Headings" (duet-transcript-move--entries headings))))))

(defun duet-transcript-move--entries (places)
  "Return PLACES, (WORDS . POSITION) each, as entries for Imenu.
Number equal entries."
  (let ((counts (make-hash-table :test #'equal)))
    (mapcar (lambda (place)
              (let* ((name (truncate-string-to-width (car place) 70 nil nil "…"))
                     (count (puthash name (1+ (gethash name counts 0)) counts)))
                (cons (if (= count 1) name (format "%s <%d>" name count))
                      (copy-marker (cdr place)))))
            places)))

(defun duet-transcript-move--setup ()
  "Set up Imenu for the prompts of the transcript in the current buffer."
  (setq-local imenu-create-index-function #'duet-transcript-move--index
              imenu-auto-rescan t
              ;; A rescan of a large buffer is fast: it does not search the text.
              imenu-auto-rescan-maxout most-positive-fixnum))

(add-hook 'duet-transcript-mode-hook #'duet-transcript-move--setup)

(define-key duet-transcript-mode-map (kbd "M-n") #'duet-prompt-next)
(define-key duet-transcript-mode-map (kbd "M-p") #'duet-prompt-previous)


;;;; The mouse wheel

(defconst duet-transcript-move--scroll-commands
  '(mwheel-scroll pixel-scroll-precision scroll-bar-toolkit-scroll scroll-bar-drag)
  "Commands that scroll with the mouse, on various systems.")

(defun duet-transcript-move--scroll-back-p (event)
  "Return non-nil if EVENT is a turn of the wheel, but not toward the end."
  (memq (event-basic-type event)
        '(wheel-up wheel-left wheel-right mouse-4 mouse-6 mouse-7)))

(defun duet-transcript-move--scroll-command (event)
  "Return the scroll command to which EVENT is bound in other buffers."
  (let ((area (posn-area (event-start event)))
        (type (event-basic-type event)))
    (car (memq (key-binding (if area (vector area type) (vector type)) nil t)
               duet-transcript-move--scroll-commands))))

(defun duet-scroll-mouse (event)
  "Scroll for EVENT; follow new text if the window then shows the end."
  (interactive "e")
  (let ((command (duet-transcript-move--scroll-command event))
        (window (posn-window (event-start event))))
    (unless command
      (user-error "Nothing to scroll"))
    (setq this-command command)
    (condition-case nil
        (call-interactively command nil (vector event))
      (end-of-buffer nil))
    (when (and (window-live-p window) (not (duet-transcript-move--scroll-back-p event)))
      (duet-transcript-move--scroll-follow window))))

(defun duet-transcript-move--scroll-follow (window)
  "Make WINDOW follow the end of its transcript if it shows the end."
  (with-current-buffer (window-buffer window)
    (when (and (derived-mode-p 'duet-transcript-mode)
               (pos-visible-in-window-p (point-max) window))
      (when (< (window-point window) (duet-transcript--end))
        (set-window-point window (point-max))
        (when (fboundp 'duet-approvals-catch) (duet-approvals-catch)))
      (duet-transcript-fill window))))

;; Isearch stays active while the user scrolls.
(put 'duet-scroll-mouse 'scroll-command t)
(put 'duet-scroll-mouse 'isearch-scroll t)

(dolist (command duet-transcript-move--scroll-commands)
  (define-key duet-transcript-mode-map (vector 'remap command) #'duet-scroll-mouse))

(provide 'duet-transcript)
;;; duet-transcript.el ends here
