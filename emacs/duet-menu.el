;;; duet-menu.el --- The menu of all commands  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-dispatch' is the menu; `?' shows it in all buffers of Duet.  Above it
;; is the state of the project.  A command that has a key in the current buffer
;; has the same key in the menu.

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

(declare-function duet-projects "duet-projects" ())
(declare-function duet-projects-narrow "duet-projects" ())

(defun duet-menu--connection ()
  "Return the connection of the current buffer, or nil; start none."
  (or duet-connection
      ;; Opening the menu connects to no other machine.
      (let ((non-essential t))
        (ignore-errors (gethash (duet-project-root (duet-connection-directory-here)) duet-connections)))))

(defun duet-menu--directory ()
  "Return the directory of the current buffer's project; do not ask a host for it."
  (condition-case nil
      (let ((non-essential t)) (duet-connection-directory-here))
    (user-error default-directory)))

(defun duet-menu--session ()
  "Return the session of the menu, or nil."
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
  "Return the marked sessions of a list, or else the session of the menu."
  (if (derived-mode-p 'duet-sessions-mode)
      (or (duet-marks) (duet-menu--session))
    (duet-menu--session)))

(defvar duet-menu--heading nil
  "The text above the menu.")

(defun duet-menu--heading ()
  "Return the text above the menu."
  (or duet-menu--heading ""))

(defun duet-menu--describe ()
  "Return the state of the menu's session, or else of the project, as a line.
It is one line, so that the menu fits into 24 lines below two windows."
  (let ((connection (duet-menu--connection))
        (session (duet-menu--session)))
    (cond ((null connection)
           (duet-menu--line (duet-remote-abbreviate (duet-menu--directory))
                            (propertize "not started: l or c does" 'face 'duet-dim)))
          (session (duet-menu--describe-session connection session))
          (t (duet-menu--describe-project connection)))))

(defun duet-menu--line (directory words)
  "Return DIRECTORY and WORDS as a line that is not wider than the frame.
A long DIRECTORY loses its beginning."
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
  "Return the state of the project of CONNECTION as a line."
  (let* ((model (duet-connection-model connection))
         (waiting (hash-table-count (duet-model-approvals model)))
         (running (cl-count-if #'duet-session-active-turn
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
  "Return the state of SESSION of CONNECTION as a line."
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
                   (duet-session-label session)
                   (max 15 (- (frame-width) (string-width how) 4))
                   nil nil "…")
                  'face 'bold)
      "  " how)
     (1- (frame-width)) nil nil "…")))


;;; Commands that depend on where they are called

(defun duet-menu-sessions ()
  "Show the list of the project's sessions.
In the list of all projects, this is the project at point.
This is the command of the same key in the buffers."
  (interactive)
  (call-interactively (if (derived-mode-p 'duet-projects-mode) #'duet-projects-narrow
                        #'duet)))

(defun duet-menu-archive ()
  "Archive the session; in the list, archive or unarchive the marked sessions."
  (interactive nil duet-sessions-mode duet-transcript-mode)
  (if (derived-mode-p 'duet-sessions-mode)
      (duet-archive-marked)
    (duet-archive (duet-actions-session))))

(defun duet-menu--send-now-p ()
  "Return non-nil if the menu has an entry for `duet-reply-send-now'.
A narrow menu has no room for it; the header line shows its key."
  (and (duet-reply-busy-p) (>= (frame-width) 60)))

(defun duet-menu-restart ()
  "Start the server of the project; if it runs, ask it for its data again."
  (interactive)
  (let ((connection (duet-connection-here)))
    (if (duet-connection-rpc connection)
        (progn (duet-connection-refresh connection)
               (message "Asked the server again"))
      (duet-connection-restart connection))))

(defun duet-menu-customize ()
  "Customize the options of Duet."
  (interactive)
  (customize-group 'duet))

;;;###autoload (autoload 'duet-dispatch "duet-menu" nil t)
(transient-define-prefix duet-dispatch ()
  "Show all commands for agents in the current buffer's project."
  [:description
   duet-menu--heading
   ["Session"
    ("c" "New session" duet-new)
    ("r" "Continue" duet-continue :inapt-if-not duet-menu--session)
    ("T" "Rename" duet-rename :inapt-if-not duet-menu--session)
    ("z" "Archive" duet-menu-archive :inapt-if-not duet-menu--sessions)
    ("D" "Delete" duet-delete :inapt-if-not duet-menu--sessions)]
   ["Turn"
    ("i" "Interrupt" duet-interrupt :inapt-if-not duet-menu--running)
    ("o" "Permissions" duet-set-mode :inapt-if-not duet-menu--session)
    ("M" "Model" duet-set-model :inapt-if-not duet-menu--session)
    ("S" "Option" duet-set-option :inapt-if-not duet-menu--session)
    ;; The two share a line, so that the menu fits into 24 lines.
    ("B" "Hand over" duet-set-agent :if duet-menu--session)
    ("N" "Agent" duet-choose-agent :if-not duet-menu--session)]
   ["Review"
    ("j" "Question" duet-approval-next)
    ("w" "Questions" duet-approvals)
    ("=" "Changes" duet-diff :inapt-if-not duet-menu--session)
    ("M-=" "All turns" duet-diff-all :inapt-if-not duet-menu--session)
    ("%" "Worktree" duet-worktree :inapt-if-not duet-menu--worktree)]]
  [["Lists"
    ("l" "Sessions" duet-menu-sessions)
    ("P" "Projects" duet-projects)
    ("L" "Agents" duet-agents)
    ("V" "Terminals" duet-terminals)
    ("/" "Search" duet-search)
    ("h" "Triggers" duet-triggers)
    ("#" "By number" duet-visit)]
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
    ("t" "Trust" duet-trust)
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
  "Show the commands for the worktree of the session."
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
