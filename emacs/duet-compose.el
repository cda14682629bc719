;;; duet-compose.el --- The buffer of a prompt, its completion and history  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A prompt has a buffer of its own.  No text is lost: \\`M-p' restores a prompt that
;; was sent, cancelled or killed, also in the next Emacs.  A prompt that the server
;; refuses stays in its buffer.
;;
;; `@' completes to a file of the project, or to the region or the diagnostics of the
;; previous buffer.  `/' at the beginning completes to the agent's commands, and to
;; the names of its settings (duet-settings.el).

;;; Code:

(require 'cl-lib)
(require 'ring)
(require 'seq)
(require 'subr-x)
(require 'duet-connection)
(require 'duet-header)
(require 'duet-log)
(require 'duet-sessions)
(require 'duet-settings)
(require 'duet-transcript)
(require 'duet-visible)

(declare-function duet-agents-asked "duet-agents" (connection))
(declare-function duet-attempts-show-launched "duet-attempts" (connection session))
(declare-function duet-queue-save "duet-queue" ())
(declare-function duet-agents-learn "duet-agents" (connection function))
(declare-function flymake-diagnostics "flymake" (&optional beg end))
(declare-function flymake-diagnostic-beg "flymake" (diag))
(declare-function flymake-diagnostic-text "flymake" (diag))

;;; The prompt

(defcustom duet-compose-history-size 200
  "Number of prompts in the history of \\<duet-compose-mode-map>\\[duet-compose-previous]."
  :type 'natnum
  :group 'duet)

(defvar-local duet-compose--origin nil
  "The buffer in which the user began the prompt.")
(defvar duet-compose-history (make-ring duet-compose-history-size)
  "The earlier prompts, the newest first.")
(defvar duet-compose-parameters-functions nil
  "Functions that add parameters to the launch of a session.
Each is called in the compose buffer and returns a property list for
session.start, such as (:agent \"claude\").")

(defvar duet-compose-content-functions nil
  "Functions that return attachments of a prompt.
Each is called in the compose buffer with the text, and returns a list of
content blocks, as the protocol spells them.")

(defvar-local duet-compose--turn nil
  "The id of the turn to continue from, or nil for the session's last.")
(defvar-local duet-compose--queued nil
  "The id of the turn whose queued prompt is edited, or nil for a new prompt.")
(defvar-local duet-compose--worktree nil
  "Whether the new session is to work in a git worktree.
If `duet-compose--sends' is non-nil, the worktree begins with the user's files.")
(defvar-local duet-compose--sends nil
  "The host to which a new session can take the user's files, or nil.")
(defvar-local duet-compose--agents nil
  "The agents of a new session with several agents, a list of objects, or nil.")
(defvar-local duet-compose--place nil
  "The place in the history, or nil.")
(defvar-local duet-compose--draft nil
  "The text before a prompt of the history replaced it.")
(defvar-local duet-compose--sending nil
  "Whether the prompt is being sent; `files' if the user's files are sent first.")

(defvar duet-compose-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'duet-compose-send)
    (define-key map (kbd "C-c C-n") #'duet-compose-send-now)
    (define-key map (kbd "C-c C-k") #'duet-compose-cancel)
    (define-key map (kbd "C-c C-t") #'duet-compose-toggle-worktree)
    (define-key map (kbd "C-c C-s") #'duet-compose-agents)
    (define-key map (kbd "<backtab>") #'duet-next-mode)
    (define-key map (kbd "M-p") #'duet-compose-previous)
    (define-key map (kbd "M-n") #'duet-compose-next)
    (define-key map (kbd "M-r") #'duet-compose-search)
    (define-key map (kbd "TAB") #'completion-at-point)
    map)
  "Keymap of `duet-compose-mode'.")

(define-derived-mode duet-compose-mode text-mode "Duet-Compose"
  "Major mode to write a prompt.

\\{duet-compose-mode-map}"
  (setq header-line-format '(:eval (duet-compose--header)))
  (add-hook 'completion-at-point-functions #'duet-compose-complete nil t)
  (add-hook 'completion-at-point-functions #'duet-compose-complete-command nil t)
  (add-hook 'kill-buffer-hook #'duet-compose--keep nil t)
  (visual-line-mode))

(defun duet-compose--header ()
  "Return the header line: the kind of prompt, its recipient, and the keys."
  (if duet-compose--queued
      (concat " Edit queued prompt" (duet-compose--queued-number) ": "
              (duet-header-key #'duet-compose-send "save" 'duet-compose-mode-map) ", "
              (duet-header-key #'duet-compose-cancel "cancel" 'duet-compose-mode-map))
    (duet-compose--header-new)))

(defun duet-compose--queued-number ()
  "Return the number of the queued turn whose prompt is edited, after a space."
  (let* ((turn (and duet-session (duet-session-turn duet-session duet-compose--queued)))
         (number (and turn (duet-turn-number turn))))
    (if number (concat " " (duet-visible-line number)) "")))

(defun duet-compose--header-new ()
  "Return the header line of a new prompt."
  (if (eq duet-compose--sending 'files)
      (concat " " (duet-compose--sending-words))
    (duet-compose--header-unsent)))

(defun duet-compose--sending-words ()
  "Return the words for the time in which the user's files are sent."
  (format "Sending your files to %s…" duet-compose--sends))

(defun duet-compose--header-unsent ()
  "Return the header line of a new prompt that is not being sent."
  (let* ((what (cond ((null duet-session) "New session")
                     (duet-compose--turn "Fork")
                     ((duet-session-active-turn duet-session) "Queue")
                     (t "Continue")))
         (number (and duet-session
                      (or (when-let ((turn (and duet-compose--turn
                                                (duet-session-turn duet-session duet-compose--turn))))
                            (duet-turn-number turn))
                          (duet-session-number duet-session))))
         (what (if number (concat what " " (duet-visible-line number)) what))
         (recipient (string-join (delq nil (duet-compose--recipient)) ", "))
         (recipient (if (string-empty-p recipient) "" (concat " · " recipient)))
         (keys (list
                (concat " — " (duet-header-key #'duet-compose-send "send" 'duet-compose-mode-map))
                (cons 2 (concat (and (duet-compose--busy-p)
                                     (concat ", " (duet-header-key #'duet-compose-send-now "now"
                                                                   'duet-compose-mode-map)))
                                ", " (duet-header-key #'duet-compose-cancel "cancel"
                                                      'duet-compose-mode-map)))
                (cons 3 ", @ adds context")
                (unless duet-session
                  (cons 4 (concat ", " (duet-header-key #'duet-compose-toggle-worktree "worktree"
                                                        'duet-compose-mode-map))))
                (unless duet-session
                  (cons 5 (concat ", " (duet-header-key #'duet-compose-agents "several agents"
                                                        'duet-compose-mode-map))))))
         ;; The keys for context are dropped before the name is shortened.
         (room (- (min 100 (duet-header-room)) 3 (string-width what)
                  (string-width recipient)
                  (apply #'+ (mapcar #'string-width (list (car keys) (cdadr keys)))))))
    ;; A % in a name must not be read as a mode line construct.
    (replace-regexp-in-string
     "%" "%%"
     (duet-header-fit
      (append
       (list (concat " " what
                     (and duet-session
                          (concat ": " (truncate-string-to-width
                                        (replace-regexp-in-string
                                         "[[:cntrl:]]+" " " (duet-session-name duet-session))
                                        (min 40 (max 14 room)) nil nil "…"))))
             (cons 1 recipient))
       keys))
     t t)))

(defun duet-compose--recipient ()
  "Return agent, model and permission mode of the prompt; unknown ones are nil."
  (if duet-session
      (list (duet-session-agent duet-session) (duet-actions-session-llm duet-session)
            (duet-actions-session-mode duet-session))
    (let ((more (duet-compose--parameters)))
      (append
       (if duet-compose--agents
           (list (concat (string-join (duet-compose--agent-names) ", ") ": several attempts"))
         (list (or (duet-get-string more :agent)
                   (and (featurep 'duet-agents) (duet-agents-asked duet-connection)))
               (duet-get-string more :model)))
       (list (duet-actions-mode-words (duet-get-string more :mode))
             (cond (duet-compose--agents nil)
                   ((plist-get more :send) "begins with your files")
                   ((duet-get more :worktree) "in a worktree")))))))

(defun duet-compose--parameters ()
  "Return the parameters of a launch.
They are those of `duet-compose-parameters-functions', and the worktree."
  (append (and duet-compose--worktree (list (if duet-compose--sends :send :worktree) t))
          (apply #'append (mapcar #'funcall duet-compose-parameters-functions))))

(defun duet-compose-toggle-worktree ()
  "Switch between a git worktree and the project's directory for the new session.
A worktree is a directory outside of the project, on a branch of its own.
`duet-land' brings the result to your branch.  On a host, the worktree begins
with your files if `duet-host-send' is non-nil."
  (interactive (duet-only-in 'duet-compose-mode) duet-compose-mode)
  (when duet-session
    (user-error "Only a new session can get a worktree"))
  (setq duet-compose--worktree (not duet-compose--worktree))
  (force-mode-line-update)
  (message "%s" (cond ((null duet-compose--sends)
                       (if duet-compose--worktree "The agent works in its own git worktree"
                         "The agent works in the project's directory"))
                      (duet-compose--worktree
                       (format "The session begins with your files, in a git worktree on %s"
                               duet-compose--sends))
                      (t (format "The agent works in the project's directory on %s"
                                 duet-compose--sends)))))

(defun duet-compose--agent-names ()
  "Return the agents of a new session with several agents, as the user types them."
  (mapcar (lambda (agent)
            (let ((model (plist-get agent :model)))
              (concat (plist-get agent :agent) (and model (concat "=" model)))))
          duet-compose--agents))

(defun duet-compose-agents (names)
  "Send the prompt to several agents, each in a git worktree of its own.
NAMES are agents, or NAME=MODEL; nil means one agent.
`duet-attempts' compares their results."
  (interactive
   (progn
     (duet-only-in 'duet-compose-mode)
     (when duet-session (user-error "Only a new session can have several agents"))
     (list (completing-read-multiple
            "Agents, or AGENT=MODEL, with commas (empty: one agent): "
            (mapcar #'cadr (duet-directive-agent-choices)) nil nil
            (string-join (duet-compose--agent-names) ","))))
   duet-compose-mode)
  (setq duet-compose--agents
        (and names (duet-directive-parse-agents names (duet-directive-agent-choices))))
  (force-mode-line-update)
  (message (if names "Each agent works in its own git worktree" "One agent gets the prompt")))

(defun duet-compose--learn-agents ()
  "Show the agent in the header line once it is known."
  (let ((buffer (current-buffer)))
    (require 'duet-agents)
    (duet-agents-learn duet-connection
                       (lambda ()
                         (when (buffer-live-p buffer)
                           (with-current-buffer buffer (force-mode-line-update)))))))

(defun duet-compose--directory (connection session)
  "Return the directory of the files in a prompt for SESSION of CONNECTION.
SESSION is nil for a new one."
  (if (and session (duet-session-worktree-directory session))
      (duet-connection-directory connection session)
    (duet-connection-root connection)))

(defun duet-compose-sends (connection)
  "Return the host to which new sessions of CONNECTION take the user's files.
Return nil if they do not."
  (and duet-host-send (duet-connection-local connection) (duet-connection-host connection)))

(defun duet-compose (connection &optional session turn queued)
  "Write a prompt for CONNECTION: for a new session, or the next of SESSION.
With TURN, the id of a turn of SESSION, for a fork that begins after it.
With QUEUED, (TURN . TEXT), edit TEXT, the queued prompt of TURN.
A prompt that was begun before is shown again."
  (let* ((origin (if (derived-mode-p 'duet-compose-mode) duet-compose--origin
                   (current-buffer)))
         (sends (duet-compose-sends connection))
         (old (cl-find-if
               (lambda (buffer)
                 (with-current-buffer buffer
                   (and (derived-mode-p 'duet-compose-mode)
                        (eq duet-connection connection)
                        (eq duet-session session)
                        (equal duet-compose--turn turn)
                        (equal duet-compose--queued (car queued)))))
               (buffer-list)))
         (buffer (or old (generate-new-buffer
                          (format "*duet compose%s*"
                                  (if session
                                      (concat ": " (duet-session-name session))
                                    ""))))))
    (unless old
      (with-current-buffer buffer
        (duet-compose-mode)
        (setq duet-connection connection
              duet-session session
              duet-compose--turn turn
              duet-compose--queued (car queued)
              duet-compose--origin origin
              duet-compose--sends (and (null session) sends)
              duet-compose--worktree (and duet-compose--sends t)
              default-directory (duet-compose--directory connection session))
        (duet-compose--list-files)
        (when queued
          (insert (cdr queued))
          (setq buffer-undo-list nil)
          (set-buffer-modified-p nil))
        (if session
            (duet-settings-learn connection session)
          (duet-compose--learn-agents)
          (duet-settings-describe connection
                                  (duet-get-string (duet-compose--parameters) :agent)))))
    (pop-to-buffer buffer '((display-buffer-reuse-window display-buffer-below-selected)
                            (window-height . duet-compose--fit)))))

(defun duet-compose--fit (window)
  "Make WINDOW ten lines high, or less if other windows need the lines."
  (let ((lines (window-resizable window (- 10 (window-total-height window)))))
    (unless (zerop lines)
      (window-resize window lines))))

(defvar-local duet-compose-bounds-function nil
  "Function that returns the bounds of the prompt, (BEG . END), or nil.
If this is nil, the prompt is the whole buffer.")

(defun duet-compose--bounds ()
  "Return the bounds of the prompt in the current buffer, (BEG . END)."
  (or (if duet-compose-bounds-function (funcall duet-compose-bounds-function)
        (duet-only-in 'duet-compose-mode)
        (cons (point-min) (point-max)))
      (user-error "No prompt here")))

(defun duet-compose--written ()
  "Return the text of the prompt, with the space around it."
  (let ((bounds (duet-compose--bounds)))
    (buffer-substring-no-properties (car bounds) (cdr bounds))))

(defun duet-compose--text ()
  "Return the text of the prompt, without the space around it."
  (string-trim (duet-compose--written)))

(defun duet-compose--replace (text)
  "Replace the text of the prompt by TEXT."
  (let ((bounds (duet-compose--bounds)))
    (goto-char (car bounds))
    (delete-region (car bounds) (cdr bounds))
    (insert text)))

(defun duet-compose--keep ()
  "Add the prompt to the history, before the buffer is killed."
  (unless (and duet-compose--queued (not (buffer-modified-p)))
    (duet-compose-remember (duet-compose--text))))

(defun duet-compose--busy-p ()
  "Return non-nil if an agent works in the session that gets the prompt."
  (and duet-session (null duet-compose--turn) (null duet-compose--queued) (duet-session-active-turn duet-session) t))

(defun duet-compose-send ()
  "Send the prompt, or save the queued prompt that is edited here.
While an agent works in the session, the prompt is queued."
  (interactive (duet-only-in 'duet-compose-mode) duet-compose-mode)
  (if duet-compose--queued (duet-queue-save)
    (duet-compose--send nil)))

(defun duet-compose-send-now ()
  "Send the prompt at once, also to an agent that works.
The agent gets the prompt during its turn.  An agent that does not support
that gets the prompt when the turn has ended."
  (interactive (duet-only-in 'duet-compose-mode) duet-compose-mode)
  (when duet-compose--queued
    (user-error "A queued prompt is sent in its turn; %s saves it"
                (duet-look-key #'duet-compose-send 'duet-compose-mode-map)))
  (duet-compose--send t))

(defun duet-compose--send (now)
  "Send the prompt in the current buffer; with NOW, also to an agent that works."
  (let ((buffer (current-buffer))
        (connection duet-connection)
        (session duet-session))
    (duet-compose-submit
     duet-compose--turn
     (lambda (result)
       (duet-compose--sent connection buffer result
                           (and session (duet-session-id session))))
     now)))

(defun duet-compose-submit (turn done &optional now)
  "Send the prompt to the buffer's session, or to a new one if it has none.
TURN is the id of the turn to fork from, or nil.  DONE is called with the
result, which is nil if the prompt only changes settings.  With NOW an agent
that works gets the prompt during its turn, if it supports that."
  (let* ((written (duet-compose--text))
         (buffer (current-buffer))
         (connection duet-connection)
         (session duet-session)
         (fail (lambda (err)
                 (when (buffer-live-p buffer)
                   (with-current-buffer buffer (setq duet-compose--sending nil)))
                 (message "Duet: not sent: %s" (duet-connection-error-text err)))))
    (when (string-empty-p written)
      (user-error "Nothing to send"))
    (when duet-compose--sending
      (user-error "Already sending"))
    (when (and session (null turn)) (duet-actions-check-worktree session))
    (pcase-let ((`(,text . ,settings) (duet-directive-take written session)))
      (when (and (null session) (or duet-compose--agents (plist-get settings :agents)))
        (when-let ((word (cl-find-if (lambda (word) (plist-member settings word))
                                     '(:agent :model :options))))
          (user-error "Several agents get the prompt, so /%s cannot be set; name a model as AGENT=MODEL"
                      (if (eq word :options) (substring (symbol-name (car (plist-get settings word))) 1)
                        (substring (symbol-name word) 1)))))
      (when (and (string-empty-p text)
                 (or (null session) (plist-member settings :budget)))
        (user-error "Nothing to send but settings"))
      (unless (or session (plist-member settings :budget))
        (when-let ((budget (duet-budget-default)))
          (setq settings (plist-put settings :budget budget))))
      (let* ((budget (and (plist-member settings :budget)
                          (list :budget (plist-get settings :budget))))
             (content (and (not (string-empty-p text))
                           (duet-compose--content text)))
             (now (and now (if (or budget content) 'with-more t)))
             (done (lambda (result)
                     (funcall done result)
                     (when (and result session (null turn))
                       (duet-compose--report session result now)))))
        (setq duet-compose--sending t)
        (duet-compose-remember written)
        (cond
         ((null session)
          (duet-compose--launch connection text settings content done fail))
         (turn
          (duet-compose--continue connection session turn text
                                  (append (duet-compose--chosen settings) content)
                                  done fail nil))
         ((duet-compose--set settings)
          (duet-settings-set
           connection session (duet-compose--set settings)
           (lambda (live)
             (if (string-empty-p text)
                 (progn (funcall done nil)
                        (message "Set%s" (if live "" ", from the next prompt on")))
               (duet-compose--continue connection session nil text (append budget content)
                                         done fail now)))
           fail))
         (t (duet-compose--continue connection session turn text (append budget content)
                                    done fail now)))))))

(defun duet-compose--report (session result now)
  "Show a message about a prompt of SESSION, from the RESULT of session.prompt.
NOW is non-nil if the user wanted to send it to an agent that works, and
`with-more' if the prompt also changes settings, which have to wait."
  (let ((delivered (duet-get-string result :delivered)))
    (cond ((equal delivered "injected") (message "Sent: the agent has it"))
          ((and (equal delivered "queued") (duet-session-active-turn session))
           (message "Queued: it runs when this turn has ended%s"
                    (pcase now
                      ('nil "")
                      ('with-more " (files and budgets wait for that)")
                      (_ " (the agent cannot take it now)"))))
          (now (message "Sent")))))

(defun duet-compose--set (settings)
  "Return the SETTINGS that session.set accepts.
A budget is sent with a prompt instead."
  (cl-loop for (setting value) on settings by #'cddr
           unless (eq setting :budget) append (list setting value)))

(defun duet-compose--chosen (settings)
  "Return SETTINGS as parameters of a new session or a fork."
  (cl-loop for (setting . parameter)
           in '((:agent . :agent) (:mode . :mode) (:model . :model)
                (:options . :options) (:budget . :budget) (:sandbox . :sandbox)
                (:worktree . :worktree))
           when (plist-member settings setting)
           append (list parameter (plist-get settings setting))))

(defun duet-compose--content (text)
  "Return the attachments of the prompt TEXT, as a parameter, or nil."
  (let ((content nil)
        (default-directory (duet-compose--directory duet-connection duet-session)))
    (dolist (function duet-compose-content-functions)
      (setq content (append content (funcall function text))))
    (and content (list :content (vconcat content)))))

(defun duet-compose--launch (connection text settings content done fail)
  "Launch a session of CONNECTION with the prompt TEXT, then call DONE or FAIL.
SETTINGS are from `duet-directive-take'; CONTENT is a parameter."
  (let ((more (copy-sequence (duet-compose--parameters)))
        (agents (or (plist-get settings :agents) duet-compose--agents)))
    (cl-loop for (parameter value) on (duet-compose--chosen settings) by #'cddr
             do (setq more (plist-put more parameter value)))
    (when agents (setq more (duet-compose--attempts agents more)))
    (when (plist-get more :send)
      (setq duet-compose--sending 'files)
      (force-mode-line-update)
      (message "%s" (duet-compose--sending-words)))
    (duet-connection-request
     connection (if agents 'attempt.start 'session.start)
     (append (list :prompt text) more content
             ;; Without a title, the session would be named after its last prompt.
             (unless (plist-member more :title)
               (list :title (duet-compose--title text))))
     :success-fn (lambda (result)
                   (when (plist-get more :send)
                     (duet-compose--say-sent (duet-connection-host connection)
                                         (duet-get result :not_sent)))
                   ;; The session has made the project there.
                   (when (eq (duet-connection-state connection) 'refused)
                     (duet-connection-refresh connection))
                   (funcall done result))
     :error-fn fail)))

(defun duet-compose--say-sent (host missing)
  "Say that HOST has the user's files, but not those of MISSING, a listing or nil."
  (let ((count (or (duet-get missing :count) 0))
        (first (mapcar #'duet-visible-line (duet-get missing :first))))
    (message "%s has your files%s" host
             (if (zerop count) ""
               (format ", without %d that are not committed, and too large or in a nested repository: %s%s"
                       count (string-join (seq-take first 3) ", ") (if (> count 3) ", …" ""))))))

(defun duet-compose--attempts (agents parameters)
  "Convert PARAMETERS of a launch to those of attempt.start for AGENTS.
The permission mode applies to each agent.  Other settings belong to one
agent, and are dropped."
  (let ((mode (duet-get-string parameters :mode)))
    (append (list :agents (vconcat (mapcar (lambda (agent)
                                             (append agent (and mode (list :mode mode))))
                                           agents)))
            (cl-loop for (parameter value) on parameters by #'cddr
                     unless (memq parameter '(:agent :model :options :mode :worktree :send))
                     append (list parameter value)))))

(defun duet-compose--continue (connection session turn text content done fail now)
  "Continue SESSION of CONNECTION with the prompt TEXT, then call DONE or FAIL.
TURN is the id of the turn to fork from, or nil; CONTENT are more parameters.
With NOW an agent that works gets the prompt during its turn."
  (duet-connection-request
   connection (if turn 'session.fork 'session.prompt)
   (append (if turn (list :turn turn) (list :session (duet-session-id session)))
           (list :prompt text)
           (and now (null turn) (list :deliver "steer"))
           content)
   :success-fn
   (lambda (result)
     (when turn
       (duet-connection-request
        connection 'session.rename
        (list :session (duet-get-string result :session_uuid)
              :title (duet-compose--title text))))
     (funcall done result))
   :error-fn fail))

(defun duet-compose--title (text)
  "Return a title for a session that begins with TEXT."
  (truncate-string-to-width (car (split-string text "\n")) 60 nil nil "…"))

(defun duet-compose--close (buffer)
  "Kill BUFFER after its prompt was sent or saved, and quit its window."
  (when (buffer-live-p buffer)
    (if-let ((window (get-buffer-window buffer t)))
        (quit-restore-window window 'kill)
      (kill-buffer buffer))
    (when (buffer-live-p buffer) (kill-buffer buffer))))

(defun duet-compose--sent (connection buffer result owner)
  "Handle RESULT of sending the prompt in BUFFER through CONNECTION.
OWNER is the id of the session, or nil for a new one.  RESULT is nil if the
prompt only set the agent."
  (let* ((model (duet-connection-model connection))
         (attempts (duet-get-objects result :turns))
         (new (duet-get-string (or (car attempts) result) :session_uuid))
         (origin (and (buffer-live-p buffer)
                      (buffer-local-value 'duet-compose--origin buffer))))
    (duet-compose--close buffer)
    (when-let ((beside (and result (duet-get-strings result :beside))))
      (message "%s work%s in this directory, too: the same files may be changed"
               (string-join beside ", ") (if (cdr beside) "" "s")))
    (dolist (sent (or attempts (and result (list result))))
      (duet-events-sent model sent))
    (let ((session (and result (duet-model-session model new))))
      (when session
        ;; Move point to the new session in the list.
        (when (and (null owner) (buffer-live-p origin)
                   (with-current-buffer origin (derived-mode-p 'duet-sessions-mode)))
          (duet-sessions-go-to origin session))
        (if attempts (duet-attempts-show-launched connection session)
          (duet-transcript-show connection session t))))))

(defun duet-compose-cancel ()
  "Do not send the prompt; \\<duet-compose-mode-map>\\[duet-compose-previous] restores it next time."
  (interactive (duet-only-in 'duet-compose-mode) duet-compose-mode)
  (let ((empty (string-empty-p (duet-compose--text)))
        (queued duet-compose--queued))
    (quit-window t)
    (cond (queued (message "Not saved; the queued prompt is unchanged"))
          ((not empty) (message "Not sent; M-p in a new prompt brings it back")))))

(defun duet-compose-previous (&optional count)
  "Replace the prompt by the previous one, or the COUNTth previous one."
  (interactive (progn (duet-compose--bounds)
                      (list (prefix-numeric-value current-prefix-arg)))
               duet-compose-mode)
  (duet-compose-history-load)
  (when (ring-empty-p duet-compose-history)
    (user-error "No earlier prompt"))
  (let ((place (+ (or duet-compose--place -1) (or count 1)))
        (length (ring-length duet-compose-history)))
    (when (>= place length)
      (user-error "No earlier prompt"))
    (unless duet-compose--place
      (setq duet-compose--draft (duet-compose--written)))
    (setq duet-compose--place (and (>= place 0) place))
    (duet-compose--replace (if duet-compose--place
                               (ring-ref duet-compose-history place)
                             (or duet-compose--draft "")))))

(defun duet-compose-next (&optional count)
  "Replace the prompt by the next one, or the COUNTth next one."
  (interactive (progn (duet-compose--bounds)
                      (list (prefix-numeric-value current-prefix-arg)))
               duet-compose-mode)
  (unless duet-compose--place
    (user-error "No later prompt"))
  (duet-compose-previous (- (or count 1))))

(defun duet-compose-search (prompt)
  "Replace the prompt by PROMPT, an earlier one.
Any of its words selects it."
  (interactive (progn (duet-compose--bounds)
                      (list (duet-compose-history-read)))
               duet-compose-mode)
  (setq duet-compose--draft (duet-compose--written)
        duet-compose--place (ring-member duet-compose-history prompt))
  (duet-compose--replace prompt))

;;; Completion

(defvar-local duet-compose--files nil
  "The files of the project, once they are known.")

(defun duet-compose-complete ()
  "Complete a word that begins with @, a `completion-at-point' function."
  (let ((end (point))
        (beg (save-excursion
               (skip-chars-backward "^@ \t\n")
               (and (eq (char-before) ?@)
                    (progn (backward-char)
                           (not (looking-back "[[:alnum:]]" (1- (point)))))
                    (point)))))
    (when beg
      (list beg end
            (completion-table-dynamic
             (lambda (_)
               (append (duet-compose--contexts)
                       (mapcar (lambda (file) (concat "@" file))
                               duet-compose--files))))
            :exclusive 'no
            :annotation-function
            (lambda (candidate)
              (pcase candidate
                ("@region" " the region")
                ("@diagnostics" " Flymake's diagnostics")))
            :exit-function #'duet-compose--completed))))

(defun duet-compose-complete-command ()
  "Complete a word that begins with /, a `completion-at-point' function.
It is a slash command or the name of a setting."
  (duet-directive-complete duet-session))

(defun duet-compose--contexts ()
  "Return the completions from the buffer in which the user began the prompt."
  (when (buffer-live-p duet-compose--origin)
    (with-current-buffer duet-compose--origin
      (delq nil (list (and (mark t) (use-region-p) "@region")
                      (and (bound-and-true-p flymake-mode) "@diagnostics"))))))

(defun duet-compose--completed (candidate status)
  "Replace CANDIDATE, completed with STATUS, by its text."
  (let ((host (duet-connection-host duet-connection)))
    (when-let ((text (and (eq status 'finished)
                          (buffer-live-p duet-compose--origin)
                          (pcase candidate
                            ("@region" (with-current-buffer duet-compose--origin
                                         (duet-compose-region-text host)))
                            ("@diagnostics" (with-current-buffer duet-compose--origin
                                              (duet-compose-diagnostics-text host)))))))
      (delete-char (- (length candidate)))
      (insert text))))

(defun duet-compose-region-text (&optional host)
  "Return the region as a code block with its file and lines.
HOST is the host to which it goes, or nil."
  (let ((beg (region-beginning))
        (end (region-end)))
    (format "%s:%d-%d\n```\n%s\n```\n"
            (duet-project-buffer-name host) (line-number-at-pos beg)
            (line-number-at-pos (max beg (1- end)))
            (string-remove-suffix "\n" (buffer-substring-no-properties beg end)))))

(defun duet-compose-diagnostics-text (&optional host)
  "Return the diagnostics of Flymake in the buffer, a line for each.
HOST is the host to which they go, or nil."
  (let ((name (duet-project-buffer-name host)))
    (concat (mapconcat (lambda (diagnostic)
                         (format "%s:%d: %s" name
                                 (line-number-at-pos (flymake-diagnostic-beg diagnostic))
                                 (flymake-diagnostic-text diagnostic)))
                       (flymake-diagnostics) "\n")
            "\n")))

(defun duet-compose--list-files ()
  "Request the files of the project from Git, without waiting."
  (let ((buffer (current-buffer))
        (output '()))
    (if (and (locate-dominating-file default-directory ".git")
             (executable-find "git" t))
        (make-process
         :name "duet files" :noquery t :connection-type 'pipe :file-handler t
         :command ;; The tree could name a file system monitor, a program.
         '("git" "-c" "core.fsmonitor=false" "ls-files" "-co" "--exclude-standard" "-z")
         :filter (lambda (_ text) (push text output))
         :sentinel (lambda (process _)
                     (when (and (buffer-live-p buffer)
                                (memq (process-status process) '(exit signal)))
                       (with-current-buffer buffer
                         (setq duet-compose--files
                               (split-string (apply #'concat (reverse output))
                                             "\0" t))))))
      (setq duet-compose--files
            (ignore-errors (directory-files default-directory nil "\\`[^.]" nil 1000))))))

;;; History

;; A file has the prompts that were sent, cancelled or killed, and the unfinished ones
;; at the end of Emacs.  Each of several Emacsen adds its own prompts.
;;
;; Nothing here signals: an error in the file must not disturb the user.  It is logged.

(defcustom duet-compose-history-file (locate-user-emacs-file "duet-history.eld")
  "The file for the prompt history; nil means none."
  :type '(choice file (const :tag "None" nil))
  :group 'duet)

(defconst duet-compose-history--most 200
  "The maximum number of prompts in the file.")

(defvar duet-compose-history--loaded nil
  "The file that was already read.")
(defvar duet-compose-history--new nil
  "Prompts that are not in the file yet, the newest first.")
(defvar duet-compose-history--timer nil
  "The timer that writes new prompts when Emacs is idle.")

(defun duet-compose-remember (text)
  "Add TEXT to the history of prompts."
  (duet-compose-history-load)
  (unless (or (string-empty-p text)
              (and (not (ring-empty-p duet-compose-history))
                   (string= text (ring-ref duet-compose-history 0))))
    (ring-insert duet-compose-history text)
    (push text duet-compose-history--new)
    (unless duet-compose-history--timer
      (setq duet-compose-history--timer
            (run-with-idle-timer 3 nil #'duet-compose-history-save)))))

(defun duet-compose-history-load ()
  "Add the prompts in the file to the history, once."
  (when (and duet-compose-history-file
             (not (equal duet-compose-history--loaded duet-compose-history-file)))
    (setq duet-compose-history--loaded duet-compose-history-file)
    (let ((known (ring-elements duet-compose-history)))
      (dolist (text (duet-compose-history--read))
        (unless (or (member text known)
                    (>= (ring-length duet-compose-history)
                        (ring-size duet-compose-history)))
          (ring-insert-at-beginning duet-compose-history text))))))

(defun duet-compose-history--read ()
  "Return the prompts in the file, the newest first.
A file with other content is renamed when the history is written."
  (condition-case err
      (when (file-exists-p duet-compose-history-file)
        (with-temp-buffer
          (let ((coding-system-for-read 'utf-8-emacs-unix))
            (insert-file-contents duet-compose-history-file))
          (let ((texts (read (current-buffer))))
            (unless (and (proper-list-p texts) (cl-every #'stringp texts))
              (error "Not a list of prompts"))
            texts)))
    (error (duet-log "%s: %s" duet-compose-history-file (error-message-string err))
           (unless (eq (car err) 'file-error)
             (duet-log-guard "Put aside"
               (rename-file duet-compose-history-file
                            (concat duet-compose-history-file "~") t)))
           nil)))

(defun duet-compose-history-read ()
  "Read an earlier prompt, by any of its words, and return it."
  (duet-compose-history-load)
  (when (ring-empty-p duet-compose-history)
    (user-error "No earlier prompt"))
  (let* ((lines (mapcar (lambda (text)
                          (cons (truncate-string-to-width (duet-visible-line text)
                                                          200 nil nil "…")
                                text))
                        (delete-dups (ring-elements duet-compose-history))))
         (completion-ignore-case t)
         (completion-styles '(substring partial-completion flex))
         ;; The last one comes first.
         (table (lambda (string predicate action)
                  (if (eq action 'metadata)
                      '(metadata (category . duet-prompt) (display-sort-function . identity)
                                 (cycle-sort-function . identity))
                    (complete-with-action action lines string predicate))))
         (chosen (completing-read "Earlier prompt: " table nil t)))
    (or (cdr (assoc chosen lines))
        (user-error "No prompt chosen"))))

(defun duet-compose-history-save ()
  "Write the new prompts to the file."
  (when duet-compose-history--timer
    (cancel-timer duet-compose-history--timer)
    (setq duet-compose-history--timer nil))
  (when (and duet-compose-history-file duet-compose-history--new)
    (duet-log-guard "History of prompts"
      (unless (or (file-readable-p duet-compose-history-file)
                  (not (file-exists-p duet-compose-history-file)))
        (error "%s cannot be read" duet-compose-history-file))
      ;; Another Emacs may have written it meanwhile.
      (let* ((texts (seq-take (delete-dups (append duet-compose-history--new
                                                   (duet-compose-history--read)))
                              duet-compose-history--most))
             (file (file-truename duet-compose-history-file))
             ;; Only the owner may read a new file.
             (new (make-temp-file (concat file "."))))
        (unwind-protect
            (let ((print-length nil)
                  (print-level nil)
                  (coding-system-for-write 'utf-8-emacs-unix))
              (with-temp-buffer
                (insert ";; Prompts for agents, the last first; see duet-compose.el.\n")
                (prin1 (mapcar #'substring-no-properties texts) (current-buffer))
                (insert "\n")
                (write-region nil nil new nil 'silent))
              (rename-file new file t)
              (setq duet-compose-history--new nil))
          (when (file-exists-p new) (delete-file new)))))))

(defun duet-compose-history-keep ()
  "Save the unfinished prompts before Emacs ends."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (or (derived-mode-p 'duet-compose-mode)
                (bound-and-true-p duet-compose-bounds-function))
        (duet-log-guard "Prompt" (duet-compose-remember (duet-compose--text))))))
  (duet-compose-history-save))

(add-hook 'kill-emacs-hook #'duet-compose-history-keep)

(provide 'duet-compose)
;;; duet-compose.el ends here
