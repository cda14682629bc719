;;; duet-actions.el --- Commands on a session  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; These commands act on the session of the current buffer, or on the session
;; at point in the list of sessions.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-connection)
(require 'duet-look)
(require 'duet-remote)

(declare-function duet-compose "duet-compose" (connection &optional session turn queued))
(declare-function duet-sessions-toggle-archived "duet-sessions" ())
(declare-function duet-transcript-message-at-point "duet-transcript" ())

(defvar-local duet-actions-session-at-point-function nil
  "Function that returns the session at point, in a buffer of several sessions.")

(defvar-local duet-actions-ready-function nil
  "Function that prepares a session for a command, if its server may not run yet.
Its argument is the session at point.  It returns the server's session.")

(defvar duet-session)

(defun duet-actions-session (&optional noerror)
  "Return the session of the buffer, or the session at point in a list.
If there is none, signal a `user-error'.  If NOERROR is non-nil, return nil
instead, and start no server."
  (let ((session (if duet-actions-session-at-point-function
                     (funcall duet-actions-session-at-point-function)
                   (bound-and-true-p duet-session))))
    (cond (noerror session)
          ((null session) (user-error "There is no session here"))
          (duet-actions-ready-function (funcall duet-actions-ready-function session))
          (t session))))

(defun duet-actions-session-mode (session)
  "Return the mode of SESSION in words, or nil for the usual one.
An agent's own mode precedes Duet's."
  (let* ((own (duet-session-own-mode session))
         (mode (duet-session-mode session))
         (words (and (not (equal mode own)) (duet-actions-mode-words mode session))))
    (if own
        (string-join (delq nil (list (duet-session-choice-name session :mode own) words))
                     ", ")
      words)))

(defun duet-actions-session-llm (session)
  "Return the agent's name of SESSION's model, or nil."
  (when-let ((llm (duet-session-llm session)))
    (duet-session-choice-name session :model llm)))

(defun duet-actions-mode-words (mode &optional session)
  "Return the name of the permission mode MODE, or nil for the usual one.
SESSION has the names of its agent's modes."
  (unless (member mode '(nil "default"))
    (duet-session-mode-name session mode)))

(defun duet-actions-background-words (session)
  "Return words about the background work of SESSION's agent, or nil."
  (when-let ((titles (duet-session-background-titles session)))
    (propertize (format "works in the background: %d task%s" (length titles)
                        (if (cdr titles) "s" ""))
                'face 'duet-running
                'help-echo (string-join titles "\n"))))

(defun duet-actions-worktree-words (session most)
  "Return words for the worktree of SESSION, or nil if it has none.
They are the name of its branch, or that it is gone, in at most MOST
columns.  If MOST is below 14, they do not name the branch."
  (when-let ((worktree (duet-session-worktree session)))
    (let* ((branch (duet-visible-line (or (duet-get-string worktree :branch) "")))
           (directory (duet-visible-line (or (duet-get-string worktree :dir) "")))
           (narrow (< most 14)))
      (if (duet-session-lost-worktree-p session)
          (propertize (if narrow "gone" "worktree gone")
                      'face 'duet-dim 'help-echo (format "The worktree of %s is gone" branch))
        (propertize (if narrow "worktree" (truncate-string-to-width branch most nil nil "…"))
                    'face 'duet-dim 'help-echo (format "%s\nin %s" branch directory))))))

(defun duet-actions-check-worktree (session)
  "Signal a `user-error' if the worktree of SESSION is gone."
  (when (duet-session-lost-worktree-p session)
    (user-error "The worktree of this session is gone; fork it (%s) to go on in the project's directory"
                (substitute-command-keys "\\<duet-transcript-mode-map>\\[duet-fork]"))))

(defun duet-actions-interruptible-p (session)
  "Return non-nil if `duet-interrupt' can end something in SESSION."
  (or (duet-session-active-turn session)
      (> (duet-session-queued session) 0)
      (duet-session-background-titles session)))

(defun duet-interrupt (session)
  "Interrupt SESSION, which can be continued.
If it has no active or queued turn, end the background work of its agent."
  (interactive (list (duet-actions-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode
               duet-attempts-mode)
  (let ((turn (or (duet-session-active-turn session)
                  (cl-find 'queued (duet-session-turns session) :key #'duet-turn-state)))
        (more (and (duet-session-active-turn session)
                   (> (duet-session-queued session) 0)))
        (background (duet-session-background-titles session)))
    (unless (or turn background)
      (user-error "Nothing is running in this session"))
    (duet-connection-request
     (duet-connection-here session) 'turn.interrupt
     (list :turn (if turn (duet-turn-id turn) (duet-session-leaf-id session))
           :reason "interrupted in Emacs")
     :success-fn (lambda (_)
                   (message (cond (more "Interrupting; the queued prompt runs next")
                                  (turn "Interrupting; r continues")
                                  (t "Stopping the agent's background work")))))))

(defvar duet-actions-continue-functions nil
  "Functions that move point to the box for the next prompt of a session.
Each is called with the session, and returns nil if there is no box.  If
all return nil, `duet-continue' opens a prompt buffer.")

(defun duet-continue (session)
  "Write the next prompt of SESSION."
  (interactive (list (duet-actions-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode
               duet-attempts-mode)
  (duet-actions-check-worktree session)
  (unless (run-hook-with-args-until-success 'duet-actions-continue-functions session)
    (duet-compose (duet-connection-here session) session)))

(defun duet-fork (session)
  "Write a prompt for a new session that begins with the messages of SESSION.
The copy ends with the turn at point, or in the list of sessions with the
last turn."
  (interactive (list (duet-actions-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (let ((leaf (duet-session-leaf session))
        (turn (duet-actions--turn-at-point session)))
    (unless turn
      (user-error "There is nothing to fork yet"))
    (when (and leaf (equal turn (duet-turn-id leaf)) (duet-session-active-turn session))
      (user-error "This turn is not over; fork an earlier one, or wait"))
    (duet-compose (duet-connection-here session) session turn)))

(defun duet-rewind (session &optional undo)
  "Rewind SESSION to before the turn at point, or before the last one.
Show the files that the session has changed since, and ask whether to
restore them.  Your next prompt starts another session, with the
turns before that one.  With a prefix argument, UNDO, undo the last
rewind of the files."
  (interactive (list (duet-actions-session) current-prefix-arg)
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (let ((connection (duet-connection-here session))
        (turn (or (duet-actions--turn-at-point session)
                  (user-error "There is no turn yet"))))
    (if undo
        (duet-actions--rewind connection turn '(:undo t) "as before the rewind")
      (duet-connection-request
       connection 'session.rewind (list :turn turn :preview t)
       :success-fn
       (lambda (result)
         ;; The minibuffer must not be entered in a process filter.
         (run-at-time 0 nil #'duet-actions--ask-rewind connection session turn result))))))

(defun duet-actions--turn-at-point (session)
  "Return the id of the turn of SESSION at point, or else of its last turn, or nil."
  (let ((message (and (fboundp 'duet-transcript-message-at-point)
                      (null duet-actions-session-at-point-function)
                      (duet-transcript-message-at-point)))
        (leaf (duet-session-leaf session)))
    (if message (duet-message-turn message)
      (and leaf (duet-turn-id leaf)))))

(defun duet-actions--ask-rewind (connection session turn preview)
  "Ask about the rewind in PREVIEW, to before TURN of SESSION at CONNECTION."
  (let* ((files (append (duet-get preview :files) nil))
         (left (cl-count-if (lambda (file) (duet-get file :left)) files))
         (restored (- (length files) left))
         (answer
          (cond
           ((not (eq (duet-get preview :checkpoint) t))
            (message "The files of then are not recorded; that needs git")
            ?k)
           ((null files) ?k)
           (t (save-window-excursion
                (duet-actions--show-rewind (duet-connection-directory connection session) preview)
                (car (read-multiple-choice
                      (format "Restore %d file%s?" restored (if (= restored 1) "" "s"))
                      (append (and (> restored 0) '((?y "yes")))
                              (and (> left 0) '((?a "all of them")))
                              '((?k "keep the files, go back in the session")
                                (?n "no"))))))))))
    (pcase answer
      (?k (duet-actions--compose-rewound connection session preview))
      ((or ?y ?a)
       (duet-actions--rewind
        connection turn (and (eq answer ?a) '(:all t))
        "as before this turn"
        (lambda () (duet-actions--compose-rewound connection session preview)))))))

(defun duet-actions--show-rewind (directory preview)
  "List in another window the files that the rewind in PREVIEW changes.
DIRECTORY is the session's directory."
  (with-current-buffer (get-buffer-create "*duet rewind*")
    (let* ((inhibit-read-only t)
           (not-recorded (append (duet-get preview :not_recorded) nil))
           (more (- (+ (length not-recorded) (or (duet-get preview :more_not_recorded) 0)) 5))
           (insert-file
            (lambda (words path end)
              (insert (format "%-24s %s%s\n" words
                              (duet-visible-line
                               (file-relative-name path (duet-remote-local directory)))
                              end)))))
      (erase-buffer)
      (dolist (file (append (duet-get preview :files) nil))
        (let ((left (duet-get file :left)))
          (funcall insert-file
                   (cond ((equal left "edited") "stays, edited since")
                         ((equal left "other") "stays, others changed it")
                         (left "cannot be restored")
                         ((equal (duet-get-string file :change) "deleted") "is deleted")
                         (t "is restored"))
                   (duet-get-string file :path)
                   (if left ""
                     (format "  +%d -%d" (duet-get file :added) (duet-get file :removed))))))
      (dolist (file (seq-take not-recorded 5))
        (if (equal (duet-get file :reason) "untracked")
            (insert "All files that git does not track stay: there are too many\n")
          (funcall insert-file "stays, not recorded" (duet-get-string file :path) "")))
      (when (> more 0)
        (insert (format "%d more stay, not recorded\n" more))))
    (special-mode)
    (goto-char (point-min))
    (display-buffer (current-buffer))))

(defun duet-actions--rewind (connection turn more words &optional done)
  "Restore files at CONNECTION to before TURN, with the parameters MORE.
WORDS describe the restored files.  Call DONE, if non-nil, afterwards."
  (duet-connection-request
   connection 'session.rewind (append (list :turn turn) more)
   :success-fn
   (lambda (result)
     (let* ((files (append (duet-get result :files) nil))
            (left (cl-count-if (lambda (file) (duet-get file :left)) files))
            (restored (- (length files) left)))
       (message "%d file%s %s%s" restored (if (= restored 1) " is" "s are") words
                (if (= left 0) "" (format "; %d left as %s" left (if (= left 1) "it is" "they are")))))
     (when done (funcall done)))))

(defun duet-actions--compose-rewound (connection session rewound)
  "Insert the prompt of REWOUND again, for a fork of SESSION at CONNECTION."
  (let ((from (duet-get-string rewound :fork_turn)))
    (if from (duet-compose connection session from) (duet-compose connection))
    (when (= (buffer-size) 0)
      (insert (duet-get-string rewound :prompt)))))

(defun duet-archive (session)
  "Archive SESSION, or take it back from the archive."
  (interactive (list (duet-actions-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (duet-actions-set-archived session (not (duet-session-archived session))))

(defun duet-actions-set-archived (session archived)
  "Archive SESSION if ARCHIVED is non-nil, else take it back."
  (let ((hint (duet-actions-archive-hint)))
    (duet-connection-request
     (duet-connection-here session) 'session.archive
     (list :sessions (vector (duet-session-id session))
           :archived (if archived t :json-false))
     :success-fn
     (lambda (_)
       (setf (duet-session-archived session) archived)
       (duet-model-announce (duet-session-model session) 'session session)
       (message "%s" (if archived (concat "Archived" hint)
                       "Taken back from the archive"))))))

(defun duet-actions-archive-hint ()
  "Return the end of a message that names the key for the archive."
  (concat "; " (if (derived-mode-p 'duet-sessions-mode)
                   (duet-look-key #'duet-sessions-toggle-archived 'duet-sessions-mode-map)
                 (substitute-command-keys
                  (concat "\\<duet-sessions-mode-map>\\[duet-sessions-toggle-archived]"
                          " in the list of sessions")))
          " shows the archive"))

(defun duet-rename (session title)
  "Change the title of SESSION to TITLE."
  (interactive (let ((session (duet-actions-session)))
                 (list session (read-string "Title: " (duet-session-name session))))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (let ((title (string-trim title)))
    (when (string-empty-p title)
      (user-error "A session needs a name"))
    (duet-connection-request
     (duet-connection-here session) 'session.rename
     (list :session (duet-session-id session) :title title)
     :success-fn (lambda (_) (message "Renamed: %s" title)))))

(defun duet-menu-or-help ()
  "Show the menu of Duet, or the help of the mode if there is no menu."
  (interactive)
  (if (commandp 'duet-menu)
      (call-interactively 'duet-menu)
    (describe-mode)))

(defun duet-search-or-say ()
  "Search all sessions, or report that the program cannot."
  (interactive nil duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (if (commandp 'duet-search)
      (call-interactively 'duet-search)
    (user-error "This version of duet-rpc has no search")))

(provide 'duet-actions)
;;; duet-actions.el ends here
