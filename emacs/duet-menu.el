;;; duet-menu.el --- The menu of all commands  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-dispatch' is the menu; `?' shows it in all buffers of Duet.  Above it
;; is the state of the project.  The keys are those of the buffer where one is,
;; if that has one for the same thing.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'transient)
(require 'duet)
(require 'duet-actions)
(require 'duet-agents)
(require 'duet-ask)
(require 'duet-attempts)
(require 'duet-connection)
(require 'duet-export)
(require 'duet-look)
(require 'duet-remote)
(require 'duet-search)
(require 'duet-sessions)
(require 'duet-terminal)
(require 'duet-trust)
(require 'duet-worktree)

(declare-function duet-projects-narrow "duet-projects" ())

(defun duet-menu--connection ()
  "Return the connection of the current buffer if there is one; start none."
  (or duet-connection
      ;; A look at the menu connects to no other machine.
      (let ((non-essential t))
        (ignore-errors (gethash (duet-project-root (duet-connection-directory-here)) duet-connections)))))

(defun duet-menu--session ()
  "Return the session that the menu is about, or nil."
  (ignore-errors (duet-actions-session t)))

(defun duet-menu--worktree ()
  "Return non-nil if the menu's session has a worktree."
  (when-let ((session (duet-menu--session)))
    (duet-session-worktree-directory session)))

(defun duet-menu--attempts ()
  "Return non-nil if the menu's session is one of several attempts."
  (when-let ((session (duet-menu--session)))
    (duet-session-attempts session)))

(defun duet-menu--running ()
  "Return non-nil if something in the menu's session can be interrupted."
  (when-let ((session (duet-menu--session)))
    (duet-actions-interruptible-p session)))

(defun duet-menu--sessions ()
  "Return the sessions that are marked, or in a list with that at point."
  (if (derived-mode-p 'duet-sessions-mode)
      (or (duet-marks) (duet-menu--session))
    (duet-menu--session)))

(defvar duet-menu--heading nil
  "The text above the menu.")

(defun duet-menu--heading ()
  "Return the text above the menu."
  (or duet-menu--heading ""))

(defun duet-menu--describe ()
  "Return how the session is doing that the menu is about, or else the project.
One line: the menu is to fit into 24 of 50 columns, with two windows above it."
  (let ((connection (duet-menu--connection))
        (session (duet-menu--session)))
    (cond ((null connection)
           (duet-menu--line (duet-remote-abbreviate (duet-connection-directory-here))
                            (propertize "not started: l or c does" 'face 'duet-dim)))
          (session (duet-menu--describe-session connection session))
          (t (duet-menu--describe-project connection)))))

(defun duet-menu--line (directory words)
  "Return WORDS about DIRECTORY as a line that is not wider than the frame.
The beginning of DIRECTORY is left out first."
  (let* ((room (max 12 (- (frame-width) (string-width words) 9)))
         (long (- (string-width directory) room)))
    (truncate-string-to-width
     (concat "Duet: "
             (if (> long 0)
                 (concat "…" (truncate-string-to-width directory most-positive-fixnum (1+ long)))
               directory)
             "  " words)
     (1- (frame-width)) nil nil "…")))

(defun duet-menu--describe-project (connection)
  "Return how the project of CONNECTION is doing, in a line."
  (let* ((model (duet-connection-model connection))
         (waiting (hash-table-count (duet-model-approvals model)))
         (running (cl-count-if #'duet-session-active-run
                               (duet-model-session-list model)))
         (agent (duet-agents-chosen connection)))
    (duet-menu--line
     (duet-remote-abbreviate (duet-connection-root connection))
     (string-join
      (delq nil
            (list
             (if-let ((status (duet-connection-status connection)))
                 (propertize status 'face 'duet-failed)
               "ready")
             (when (> waiting 0)
               (propertize (format "%d waiting for you" waiting) 'face 'duet-running))
             (when (> running 0) (format "%d running" running))
             (when agent (format "new sessions ask %s" agent))))
      " · "))))

(defun duet-menu--describe-session (connection session)
  "Return how SESSION of CONNECTION is doing, in a line."
  (let ((how (string-join
              (delq nil (list (duet-look-state-name (duet-session-state session))
                              (duet-session-agent session)
                              (duet-actions-session-mode session)
                              (duet-actions-worktree-words session 30)
                              (when-let ((status (duet-connection-status connection)))
                                (propertize status 'face 'duet-failed))))
              " · ")))
    (truncate-string-to-width
     (concat
      (propertize (truncate-string-to-width
                   (duet-session-name session)
                   (max 15 (- (frame-width) (string-width how) 4))
                   nil nil "…")
                  'face 'bold)
      "  " how)
     (1- (frame-width)) nil nil "…")))


;;; Commands that depend on where they are called

(defun duet-menu--compose-words ()
  "Return what `duet-menu-compose' does, in words."
  (if (derived-mode-p 'duet-transcript-mode) "Continue" "New session"))

(defun duet-menu-compose ()
  "Continue the session in its transcript; elsewhere ask for something new.
So its key does what it does in the buffers."
  (interactive)
  (if (derived-mode-p 'duet-transcript-mode)
      (duet-continue (duet-actions-session))
    (duet-new)))

(defun duet-menu--sessions-words ()
  "Return what `duet-menu-sessions' does, in words."
  (cond ((derived-mode-p 'duet-sessions-mode) "Projects")
        ((derived-mode-p 'duet-projects-mode) "Project")
        (t "Sessions")))

(defun duet-menu-sessions ()
  "List the sessions of the project, or where that is done, of all projects.
So its key does what it does in the buffers."
  (interactive)
  (call-interactively (cond ((derived-mode-p 'duet-sessions-mode) #'duet-projects)
                            ((derived-mode-p 'duet-projects-mode) #'duet-projects-narrow)
                            (t #'duet))))

(defun duet-menu-archive ()
  "Archive the session, or all marked ones in a list."
  (interactive nil duet-sessions-mode duet-transcript-mode)
  (if (derived-mode-p 'duet-sessions-mode)
      (duet-archive-marked)
    (duet-archive (duet-actions-session))))

(defun duet-menu--send-now-p ()
  "Return non-nil if the menu has a line for `duet-reply-send-now'.
The header line names its key; a narrow menu has no room for it."
  (and (duet-reply-busy-p) (>= (frame-width) 60)))

(defun duet-menu-restart ()
  "Start the server of the project, or look again what it has."
  (interactive)
  (let ((connection (duet-connection-here)))
    (if (duet-connection-rpc connection)
        (progn (duet-connection-refresh connection)
               (message "Asked the server again"))
      (duet-connection-restart connection))))

(defun duet-menu-customize ()
  "Change the options of Duet."
  (interactive)
  (customize-group 'duet))

;;;###autoload (autoload 'duet-dispatch "duet-menu" nil t)
(transient-define-prefix duet-dispatch ()
  "Show all that can be done with agents in the current buffer's project."
  [:description
   duet-menu--heading
   ["Session"
    ("c" duet-menu-compose :description duet-menu--compose-words)
    ("C" "New session" duet-new :if-derived duet-transcript-mode)
    ("r" "Continue" duet-continue :inapt-if-not duet-menu--session
     :if-not-derived duet-transcript-mode)
    ("T" "Rename" duet-rename :inapt-if-not duet-menu--session)
    ("z" "Archive" duet-menu-archive :inapt-if-not duet-menu--sessions)
    ("D" "Delete" duet-delete :inapt-if-not duet-menu--sessions)]
   ["Run"
    ("i" "Interrupt" duet-interrupt :inapt-if-not duet-menu--running)
    ("o" "Permissions" duet-set-mode :inapt-if-not duet-menu--session)
    ("M" "Model" duet-set-model :inapt-if-not duet-menu--session)
    ("S" "Option" duet-set-option :inapt-if-not duet-menu--session)
    ;; One line for both: the menu is to fit into 24 lines.
    ("B" "Hand over" duet-set-agent :if duet-menu--session)
    ("N" "Agent" duet-choose-agent :if-not duet-menu--session)]
   ["Review"
    ("j" "Question" duet-approval-next)
    ("w" "Questions" duet-approvals)
    ("=" "Changes" duet-diff :inapt-if-not duet-menu--session)
    ("M-=" "All turns" duet-diff-all :inapt-if-not duet-menu--session)
    ("%" "Worktree" duet-worktree :inapt-if-not duet-menu--worktree)]]
  [["Lists"
    ("l" duet-menu-sessions :description duet-menu--sessions-words)
    ("L" "Agents" duet-agents)
    ("V" "Terminals" duet-terminals)
    ("h" "Triggers" duet-triggers)
    ("/" "Search" duet-search)]
   ["From here"
    ("&" "Terminal" duet-terminal)
    ("." "Region" duet-send-region)
    ("!" "Mistake" duet-ask-about-error)
    ("f" "Fork" duet-fork :inapt-if-not duet-menu--session)
    ("G" "Rewind" duet-rewind :inapt-if-not duet-menu--session)
    ("C-c C-n" "Send now" duet-reply-send-now :if duet-menu--send-now-p)]
   ["Project"
    ("g" "Reload" duet-menu-restart)
    ("b" "Build" duet-build)
    ("H" "Adopt" duet-adopt-session)
    ("W" "Export" duet-export-session :inapt-if-not duet-menu--session)
    ("X" "Stop" duet-stop)]
   ["Duet"
    ("y" "Trust" duet-trust)
    ("R" "Rules" duet-rules)
    (":" "Setup" duet-menu-customize)
    ("$" "Log" duet-log-show)
    ("q" "Close" transient-quit-one)]]
  (interactive)
  (setq duet-menu--heading (duet-menu--describe))
  (transient-setup 'duet-dispatch))

;;;###autoload
(defalias 'duet-menu #'duet-dispatch)

;;;###autoload (autoload 'duet-worktree "duet-menu" nil t)
(transient-define-prefix duet-worktree ()
  "Show what can be done with the worktree of the session."
  [:description
   duet-menu--heading
   ["Worktree"
    ("l" "Land on your branch (C-u: choose how)" duet-land)
    ("k" "Discard" duet-discard-worktree)
    ("d" "Visit the directory" duet-worktree-dired)
    ("a" "Compare the attempts" duet-attempts :if duet-menu--attempts)
    ("c" "Choose this attempt (C-u: choose how)" duet-attempts-choose :if duet-menu--attempts)
    ("q" "Close" transient-quit-one)]]
  (interactive)
  (let ((session (duet-worktree-session)))
    (setq duet-menu--heading (duet-menu--describe-session (duet-connection-here) session)))
  (transient-setup 'duet-worktree))

(provide 'duet-menu)
;;; duet-menu.el ends here
