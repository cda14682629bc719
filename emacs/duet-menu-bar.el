;;; duet-menu-bar.el --- The menu in the menu bar  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The buffers of Duet have a menu "Duet" in the menu bar, with their most used
;; commands.

;;; Code:

(require 'cl-lib)
(require 'easymenu)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-approval-view)
(require 'duet-approvals)
(require 'duet-attach)
(require 'duet-compose)
(require 'duet-diff)
(require 'duet-export)
(require 'duet-sessions)
(require 'duet-reply)
(require 'duet-transcript)
(require 'duet-worktree)

(declare-function duet-agents "duet-agents" ())
(declare-function duet-choose-agent "duet-agents" ())
(declare-function duet-set-agent "duet-agents" (session))
(declare-function duet-adopt-session "duet-adopt" (&optional everywhere))
(declare-function duet-projects "duet-projects" ())
(declare-function duet-search "duet-search" (query))
(declare-function duet-visit "duet-search" (connection name))
(declare-function duet-stop "duet" ())
(declare-function duet-terminal "duet-terminal" (&optional command))
(declare-function duet-terminals "duet-terminal" ())
(declare-function duet-build "duet-build" (&optional name))
(declare-function duet-preview "duet-preview" ())
(declare-function duet-triggers "duet-triggers" ())

(defun duet-menu-bar--session-p ()
  "Return non-nil if there is a session here."
  (and (duet-actions-session t) t))

(defun duet-menu-bar--busy-p ()
  "Return non-nil if something in the session here can be interrupted."
  (when-let ((session (duet-actions-session t)))
    (duet-actions-interruptible-p session)))

(defun duet-menu-bar--worktree-p ()
  "Return non-nil if the session here has a worktree."
  (when-let ((session (duet-actions-session t)))
    (duet-session-worktree-directory session)))

(defun duet-menu-bar--attempts-p ()
  "Return non-nil if the session here is one of several attempts."
  (when-let ((session (duet-actions-session t)))
    (duet-session-attempts session)))

(defconst duet-menu-bar--session
  '(["Continue" duet-continue :enable (duet-menu-bar--session-p)
     :help "Write the next prompt of this session"]
    ["Rewind" duet-rewind :enable (duet-menu-bar--session-p)]
    ["Fork" duet-fork :enable (duet-menu-bar--session-p)
     :help "Write a prompt for a copy of this session"]
    ["Interrupt" duet-interrupt :enable (duet-menu-bar--busy-p)
     :help "Interrupt the turn, or stop the agent's background work"]
    ["Changes" duet-diff :enable (duet-menu-bar--session-p)
     :help "Show the turn's changes, to accept or revert"]
    ["All Changes" duet-diff-all :enable (duet-menu-bar--session-p)
     :help "Show the changes of all turns together"]
    ["Write to a File…" duet-export-session :enable (duet-menu-bar--session-p)
     :help "Write the session to a file, as Markdown or JSON"]
    ["Land the Worktree" duet-land :enable (duet-menu-bar--worktree-p)
     :help "Bring the changes in the session's worktree to your branch"]
    ["Discard the Worktree…" duet-discard-worktree :enable (duet-menu-bar--worktree-p)
     :help "Delete the session's worktree and its branch"]
    ["Compare the Attempts" duet-attempts :enable (duet-menu-bar--attempts-p)
     :help "Compare the work of several agents on the same prompt"]
    ["Visit the Worktree" duet-worktree-dired :enable (duet-menu-bar--worktree-p)
     :help "Visit the directory of the session's worktree"]
    ["Rename…" duet-rename :enable (duet-menu-bar--session-p)]
    ["Permissions…" duet-set-mode :enable (duet-menu-bar--session-p)
     :help "Choose which tools ask you"]
    ["Model…" duet-set-model :enable (duet-menu-bar--session-p)]
    ["Agent's Option…" duet-set-option :enable (duet-menu-bar--session-p)]
    ["Another Agent…" duet-set-agent :enable (duet-menu-bar--session-p)
     :help "Continue the session with another agent"]
    "---")
  "Menu items of the commands on a session.")

(defconst duet-menu-bar--project
  '(["Next Question" duet-approval-next
     :help "Go to the next waiting question of any session"]
    ["Waiting Questions" duet-approvals]
    ["Search All Sessions…" duet-search]
    ["Go to Session or Turn…" duet-visit]
    "---"
    ["Agents" duet-agents]
    ["Agent of New Sessions…" duet-choose-agent]
    ["Take Over an Agent's Session…" duet-adopt-session
     :help "Continue a session of an agent's own program"]
    ["New Terminal" duet-terminal]
    ["Terminals" duet-terminals]
    ["Build" duet-build :help "Build the project, and list its errors"]
    ["Preview" duet-preview :help "Show the project's pages in a browser"]
    ["Triggers" duet-triggers :help "Actions that events start"]
    "---"
    ["All Commands" duet-menu-or-help]
    ["Options" (customize-group 'duet)]
    ["Manual" (info "(duet)")]
    ["Stop the Server" duet-stop])
  "Menu items of the commands on a project.")

(defun duet-menu-bar-add (map items)
  "Add a menu with ITEMS and the items of a project to MAP, the keymap of a list."
  (easy-menu-define nil map "Menu of a list."
    `("Duet" ,@items "---" ,@duet-menu-bar--project)))

(easy-menu-define nil duet-sessions-mode-map
  "Menu of the list of sessions."
  `("Duet"
    ["New Session" duet-sessions-compose :help "Ask an agent for something new"]
    ["Open" duet-sessions-open :enable (duet-menu-bar--session-p)]
    ,@duet-menu-bar--session
    ["Mark" duet-mark :enable (duet-menu-bar--session-p)]
    ["Unmark All" duet-unmark-all]
    ["Archive" duet-archive-marked :enable (duet-menu-bar--session-p)
     :help "Put the marked sessions away, or that at point; in the archive, take them back"]
    ["Delete…" duet-delete :enable (duet-menu-bar--session-p)
     :help "Delete the marked sessions, or that at point, for good"]
    ["Show the Archive" duet-sessions-toggle-archived
     :style toggle :selected duet-sessions--archived]
    ["Refresh or Start" duet-sessions-refresh]
    ["All Projects" duet-projects :help "Show the sessions of all projects"]
    "---"
    ,@duet-menu-bar--project))

(easy-menu-define nil duet-transcript-mode-map
  "Menu of transcripts."
  `("Duet"
    ,@duet-menu-bar--session
    ["Send Now" duet-reply-send-now :enable (duet-reply-busy-p)
     :help "Send the reply box's text to the agent while it works"]
    ["Next Prompt" duet-prompt-next]
    ["Previous Prompt" duet-prompt-previous]
    ["Fold or Unfold All" duet-section-toggle-all]
    ["Earlier Messages" duet-transcript-earlier
     :enable (duet-session-before duet-session)]
    ["Archive" duet-archive]
    ["Delete…" duet-delete :help "Delete this session for good"]
    ["Refresh" duet-transcript-refresh]
    "---"
    ["All Sessions" duet]
    ,@duet-menu-bar--project))

(defun duet-menu-bar--question-p ()
  "Return non-nil if there is a question at point in the list of questions."
  (and (tabulated-list-get-id) t))

(defun duet-menu-bar--always (enable)
  "Return the items that make rules.  ENABLE is a form, whether they are enabled."
  (mapcar (lambda (scope)
            (vector (concat (duet-approval-words scope) "…")
                    (alist-get scope duet-approval-commands) :enable enable))
          '(session project)))

(easy-menu-define nil duet-approvals-mode-map
  "Menu of the list of questions."
  `("Duet"
    ["Allow" duet-approval-allow :enable (duet-menu-bar--question-p)]
    ["Deny" duet-approval-deny :enable (duet-menu-bar--question-p)]
    ["Deny and say why…" duet-approval-deny-and-tell :enable (duet-menu-bar--question-p)]
    ["Edit" duet-approval-edit :enable (duet-menu-bar--question-p)]
    ["Answer…" duet-approval-respond :enable (duet-menu-bar--question-p)]
    ,@(duet-menu-bar--always '(duet-menu-bar--question-p))
    ["View" duet-approval-view :enable (duet-menu-bar--question-p)]
    ["Refresh" duet-approvals-refresh]
    "---"
    ,@duet-menu-bar--project))

(defun duet-menu-bar--tool-p ()
  "Return non-nil if the buffer shows a tool call that waits for permission."
  (and duet-approval (not (duet-approval-question-p duet-approval))
       (duet-approval-connection duet-approval) t))

(easy-menu-define nil duet-approval-view-mode-map
  "Menu of a question."
  `("Duet"
    ["Allow" duet-approval-allow :enable (duet-menu-bar--tool-p)]
    ["Deny" duet-approval-deny :enable (duet-menu-bar--tool-p)]
    ["Deny and say why…" duet-approval-deny-and-tell :enable (duet-menu-bar--tool-p)]
    ["Edit" duet-approval-edit
     :enable (and (duet-menu-bar--tool-p) (duet-approval-editable-p duet-approval))]
    ["Answer…" duet-approval-respond
     :enable (and duet-approval (not (duet-menu-bar--tool-p)))]
    ,@(duet-menu-bar--always '(duet-menu-bar--tool-p))
    ["Next Change" diff-hunk-next]
    ["Previous Change" diff-hunk-prev]
    "---"
    ,@duet-menu-bar--project))

(easy-menu-define nil duet-approval-edit-mode-map
  "Menu of the input of a tool."
  '("Duet"
    ["Allow with your edit" duet-approval-edit-send]
    ["Leave It" duet-approval-edit-cancel :help "Duet keeps your changes for the next time"]))

(easy-menu-define nil duet-compose-mode-map
  "Menu of the compose buffer."
  '("Duet"
    ["Send" duet-compose-send]
    ["Send Now" duet-compose-send-now :enable (duet-compose--busy-p)
     :help "Give it to the agent while it works"]
    ["In a Worktree" duet-compose-toggle-worktree :enable (null duet-session)
     :style toggle :selected duet-compose--worktree
     :help "Run the new session in its own git worktree"]
    ["Several Agents…" duet-compose-agents :enable (null duet-session)
     :help "Give the prompt to several agents, each in its own git worktree"]
    ["Do Not Send" duet-compose-cancel :help "Keep the text for the next prompt"]
    ["Attach a File…" duet-attach-file :help "Attach a file to the prompt"]
    ["Attach the Clipboard's Image" duet-attach-clipboard :enable (display-graphic-p)]
    ["Do Not Attach…" duet-attach-remove :enable duet-attach--items]
    ["Complete" completion-at-point :help "Complete a file name after @"]
    ["Earlier Prompt" duet-compose-previous]
    ["Later Prompt" duet-compose-next :enable duet-compose--place]
    "---"
    ["Agent of New Sessions…" duet-choose-agent]
    ["Manual" (info "(duet)Prompts")]))

(easy-menu-define nil duet-diff-mode-map
  "Menu of the changes of a turn."
  `("Duet"
    ["Accept" duet-diff-accept :help "Note that the change at point was reviewed"]
    ["Revert" duet-diff-revert :help "Take the change at point back"]
    ["Accept File" duet-diff-accept-file]
    ["Revert File" duet-diff-revert-file]
    ["Undo" duet-diff-undo]
    ["Visit the File" duet-diff-visit]
    ["Ediff" duet-diff-ediff]
    ["Earlier Turn" duet-diff-earlier-turn]
    ["Later Turn" duet-diff-later-turn]
    ["Refresh" duet-diff-refresh]
    "---"
    ["All Sessions" duet]
    ,@duet-menu-bar--project))


;;; The context menu

(defun duet-menu-bar--at-click (click)
  "Return the commands for the thing at CLICK, as (NAME . FUNCTION)."
  (save-window-excursion
    (save-excursion
      (mouse-set-point click)
      (let ((approval (get-text-property (point) 'duet-approval))
            (listed (and (derived-mode-p 'duet-approvals-mode) (tabulated-list-get-id)))
            (message (and (derived-mode-p 'duet-transcript-mode)
                          (duet-transcript-message-at-point)))
            (session (and (derived-mode-p 'duet-sessions-mode) (tabulated-list-get-id)))
            (connection duet-connection))
        (cl-flet ((ask (name command thing)
                    (cons name (lambda () (interactive) (funcall command thing)))))
          (cond
           ((or approval listed)
            (let ((question (or approval listed)))
              (if (duet-approval-question-p question)
                  (list (ask "Answer…" #'duet-approval-respond question)
                        (ask "View" #'duet-approval-view question))
                `(,(ask "Allow" #'duet-approval-allow question)
                  ,(ask "Deny" #'duet-approval-deny question)
                  ,(ask "Deny and say why…" #'duet-approval-deny-and-tell question)
                  ,@(and (duet-approval-editable-p question)
                         (list (ask "Edit" #'duet-approval-edit question)))
                  ,(ask "View" #'duet-approval-view question)))))
           ((and (duet-message-p message) (duet-message-text message))
            (list (ask "Copy This Message" #'kill-new
                       (duet-visible-trim (duet-message-text message)))))
           (session
            (list (ask "Open" (lambda (session)
                                (duet-transcript-show connection session))
                       session)
                  (ask "Interrupt" #'duet-interrupt session)
                  (ask "Changes" #'duet-diff session)))))))))

(defun duet-menu-bar--context (menu click)
  "Add the commands for the thing at CLICK to MENU, and return MENU.
One of `context-menu-functions'."
  (when-let ((items (duet-menu-bar--at-click click)))
    (define-key-after menu [duet-separator] menu-bar-separator)
    (pcase-dolist (`(,name . ,function) items)
      (define-key-after menu (vector (intern (concat "duet " name)))
        (list 'menu-item name function))))
  menu)

(defun duet-menu-bar--setup ()
  "Add the commands of the current buffer to its context menu."
  (add-hook 'context-menu-functions #'duet-menu-bar--context nil t))

(dolist (hook '(duet-sessions-mode-hook duet-transcript-mode-hook duet-approvals-mode-hook))
  (add-hook hook #'duet-menu-bar--setup))

(provide 'duet-menu-bar)
;;; duet-menu-bar.el ends here
