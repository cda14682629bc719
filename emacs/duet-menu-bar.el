;;; duet-menu-bar.el --- The menu in the menu bar  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The list of sessions, transcripts and the list of questions have a menu
;; "Duet" in the menu bar, with what is done there most.

;;; Code:

(require 'easymenu)
(require 'duet-actions)
(require 'duet-approvals)
(require 'duet-diff)
(require 'duet-marks)
(require 'duet-prompts)
(require 'duet-sessions)
(require 'duet-transcript)

(declare-function duet-agents "duet-agents" ())
(declare-function duet-choose-agent "duet-agents" ())
(declare-function duet-set-mode "duet-agents" (session mode))
(declare-function duet-set-model "duet-agents" (session model))
(declare-function duet-search "duet-search" (query))
(declare-function duet-stop "duet" ())
(declare-function duet-terminal "duet-terminal" (&optional command))
(declare-function duet-terminals "duet-terminal" ())

(defun duet-menu-bar--session-p ()
  "Return non-nil if there is a session here."
  (and (duet-session-here t) t))

(defun duet-menu-bar--busy-p ()
  "Return non-nil if something runs or waits in the session here."
  (when-let ((session (duet-session-here t)))
    (or (duet-session-active-run session) (> (duet-session-queued session) 0))))

(defconst duet-menu-bar--session
  '(["Continue" duet-continue :enable (duet-menu-bar--session-p)
     :help "Write the next prompt of this session"]
    ["Fork" duet-fork :enable (duet-menu-bar--session-p)
     :help "Write a prompt for a session that begins as this one did"]
    ["Interrupt" duet-interrupt :enable (duet-menu-bar--busy-p)
     :help "Interrupt the turn; it can be continued"]
    ["Changes" duet-diff :enable (duet-menu-bar--session-p)
     :help "Show what the turn has changed, to accept or revert"]
    ["Rename…" duet-rename :enable (duet-menu-bar--session-p)]
    ["Permissions…" duet-set-mode :enable (duet-menu-bar--session-p)
     :help "Say what the agent may do without asking"]
    ["Model…" duet-set-model :enable (duet-menu-bar--session-p)]
    "---")
  "What is done with a session.")

(defconst duet-menu-bar--project
  '(["Next Question" duet-approval-next
     :help "Go to the next question that waits, in whatever session"]
    ["Waiting Questions" duet-approvals]
    ["Search All Conversations…" duet-search]
    "---"
    ["Agents" duet-agents]
    ["Agent of New Sessions…" duet-choose-agent]
    ["New Terminal" duet-terminal]
    ["Terminals" duet-terminals]
    "---"
    ["All That Can Be Done" duet-menu-or-help]
    ["Options" (customize-group 'duet)]
    ["Manual" (info "(duet)")]
    ["Stop the Server" duet-stop])
  "What is done in a project.")

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
    ["Show the Archive" duet-sessions-toggle-archived
     :style toggle :selected duet-sessions--archived]
    ["Refresh or Start" duet-sessions-refresh]
    "---"
    ,@duet-menu-bar--project))

(easy-menu-define nil duet-transcript-mode-map
  "Menu of transcripts."
  `("Duet"
    ,@duet-menu-bar--session
    ["Next Prompt" duet-prompt-next]
    ["Previous Prompt" duet-prompt-previous]
    ["Fold or Unfold All" duet-section-toggle-all]
    ["Earlier Messages" duet-transcript-earlier
     :enable (> (duet-session-offset duet-session) 0)]
    ["Archive" duet-archive]
    ["Refresh" duet-transcript-refresh]
    "---"
    ["All Sessions" duet]
    ,@duet-menu-bar--project))

(defun duet-menu-bar--question-p ()
  "Return non-nil if a question is at point in the list of questions."
  (and (tabulated-list-get-id) t))

(easy-menu-define nil duet-approvals-mode-map
  "Menu of the list of questions."
  `("Duet"
    ["Approve" duet-approval-approve :enable (duet-menu-bar--question-p)]
    ["Deny…" duet-approval-deny :enable (duet-menu-bar--question-p)]
    ["Edit" duet-approval-edit :enable (duet-menu-bar--question-p)]
    ["Answer…" duet-approval-respond :enable (duet-menu-bar--question-p)]
    ["Always in This Session" duet-approval-always :enable (duet-menu-bar--question-p)]
    ["Always in This Project" duet-approval-always-in-project
     :enable (duet-menu-bar--question-p)]
    ["View" duet-approval-view :enable (duet-menu-bar--question-p)]
    ["Refresh" duet-approvals-refresh]
    "---"
    ,@duet-menu-bar--project))

(provide 'duet-menu-bar)
;;; duet-menu-bar.el ends here
