;;; duet.el --- Work with coding agents  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;; Author: The Duet authors
;; URL: https://github.com/duet-rpc/duet-rpc
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, processes, convenience

;;; Commentary:

;; `M-x duet' shows the agents' sessions in the project of the current buffer.
;; There, `c' begins a session, RET shows a session, and `?' shows the menu.
;;
;; Sessions belong to the project's daemon, a process of the program duet-rpc.
;; They continue when Emacs ends, and other editors show them too.
;;
;; The files, by subject:
;;
;; The data, from the server to the model:
;;   duet-rpc.el            one server process, and requests to it
;;   duet-connection.el     the connection of a project, which outlives its server
;;   duet-remote.el         projects on other machines, by TRAMP
;;   duet-host.el           projects on hosts, by duet-rpc
;;   duet-command.el        commands of duet-rpc, and their output
;;   duet-events.el         events and replies, into the model
;;   duet-model.el          sessions, turns, messages and questions of a project
;;   duet-history.el        earlier messages of a session, page by page
;;   duet-protocol.el       names and words of the protocol, made from the server
;;   duet-log.el            the log of problems
;;
;; The sessions:
;;   duet-sessions.el       the list of a project's sessions, marks, deleting
;;   duet-projects.el       the list of the sessions of all projects
;;   duet-adopt.el          sessions from an agent's own program
;;   duet-actions.el        commands on a session
;;   duet-worktree.el       sessions in git worktrees: land, discard
;;   duet-search.el         search in all sessions
;;   duet-export.el         sessions in files
;;   duet-bookmark.el       bookmarks of lists and transcripts
;;
;; A session:
;;   duet-transcript.el     the buffer: updates, RET, moving
;;   duet-section.el        a buffer as a sequence of sections
;;   duet-header.el         the header line
;;   duet-progress.el       duration and silence of a turn
;;   duet-render.el         the text of messages
;;   duet-markup.el         Markdown: paragraphs, headings, copying
;;   duet-block.el          blocks of code, and their colours
;;   duet-table.el          tables
;;   duet-inline.el         markup inside a paragraph, links
;;   duet-look.el           faces, and the signs of states
;;   duet-visible.el        invisible characters made visible
;;
;; Prompts:
;;   duet-compose.el        the buffer of a prompt, its completion and history
;;   duet-reply.el          the box at the end of a transcript
;;   duet-queue.el          queued prompts: edit, move, withdraw
;;   duet-ask.el            prompts about a region or a diagnostic
;;   duet-editor.el         the tools of Emacs for agents
;;   duet-attach.el         images and files in prompts and messages
;;   duet-settings.el       mode, model and options of an agent; directives in prompts;
;;                          budgets
;;   duet-agents.el         the list of agents, choosing one, signing in
;;   duet-secrets.el        keys for agents, from auth-source
;;
;; Questions and permissions:
;;   duet-approvals.el      all questions, in a list and in transcripts
;;   duet-approval.el       one question: its words, its answers, rules
;;   duet-approval-view.el  one question in full, its excerpt, its input to edit
;;   duet-form.el           questions that ask for values
;;   duet-rules.el          the list of rules
;;   duet-trust.el          trust in a project's .duet.toml
;;   duet-notify.el         desktop notifications
;;
;; The work:
;;   duet-diff.el           changes of a turn, to accept or revert
;;   duet-diff-view.el      the buffer of a diff, with its hunks
;;   duet-attempts.el       attempts of several agents at one prompt
;;   duet-revert.el         buffers that follow their files
;;   duet-build.el          builds, their output and their errors
;;   duet-build-flymake.el  errors of builds in Flymake
;;   duet-preview.el        preview of pages, and their messages
;;   duet-terminal.el       terminals of the server, and their list
;;   duet-triggers.el       triggers of the configuration, and their log
;;
;; The editor:
;;   duet-menu.el           the menu of all commands
;;   duet-menu-bar.el       the menu in the menu bar
;;   duet-evil.el           keys beside those of Evil

;;; Code:

(require 'cl-lib)
(require 'duet-approvals)
(require 'duet-attach)
(require 'duet-attempts)
(require 'duet-bookmark)
(require 'duet-build-flymake)
(require 'duet-compose)
(require 'duet-connection)
(require 'duet-diff)
(require 'duet-diff-view)
(require 'duet-evil)
(require 'duet-export)
(require 'duet-host)
(require 'duet-menu-bar)
(require 'duet-notify)
(require 'duet-progress)
(require 'duet-queue)
(require 'duet-remote)
(require 'duet-reply)
(require 'duet-revert)
(require 'duet-secrets)
(require 'duet-sessions)
(require 'duet-transcript)
(require 'duet-trust)
(require 'duet-worktree)

;; These libraries load other packages of Emacs, so they are autoloaded.  This also
;; works without an installed package, if the directory is in `load-path'.
(eval-and-compile
  (defun duet--autoloads (library)
    "Return the autoload forms for the autoload cookies of LIBRARY."
    (with-temp-buffer
      (insert-file-contents (expand-file-name (concat library ".el")
                                              (file-name-directory (macroexp-file-name))))
      (let ((forms '()))
        (while (re-search-forward "^;;;###autoload" nil t)
          (push (pcase (read (current-buffer))
                  (`(defun ,name ,_ ,words . ,_) `(autoload ',name ,library ,words t))
                  ;; An alias, or a form on the line of the cookie.
                  (form form))
                forms))
        (nreverse forms)))))

(defmacro duet--autoload (&rest libraries)
  "Autoload the commands of LIBRARIES that have autoload cookies."
  (macroexp-progn (apply #'append (mapcar #'duet--autoloads libraries))))

(duet--autoload "duet-adopt" "duet-agents" "duet-ask" "duet-build" "duet-menu" "duet-preview"
                "duet-projects" "duet-rules" "duet-search" "duet-terminal" "duet-triggers")

;;;###autoload
(defun duet (&optional directory)
  "Show the sessions of the project of DIRECTORY.
The default is the project of the current buffer, or the one at point in the
list of all projects.  A prefix argument reads a host and DIRECTORY there."
  (interactive (list (and current-prefix-arg (duet-connection-read-directory))))
  (duet-sessions-show (duet--connection directory (called-interactively-p 'any))))

;;;###autoload
(defun duet-new (&optional directory)
  "Begin a new session in the project of DIRECTORY.
The default is the project of the current buffer.  A prefix argument reads a
host and DIRECTORY there."
  (interactive (list (and current-prefix-arg (duet-connection-read-directory))))
  (duet-compose (duet--connection directory (called-interactively-p 'any))))

(defun duet--connection (directory ask)
  "Return the connection of the project of DIRECTORY.
The default is the project of the current buffer.  If there is no project and
ASK is non-nil, ask for one."
  (duet-connection-ensure
   (or directory (duet-connection-directory-here))
   ask))

(defun duet-stop ()
  "End the server of the current buffer's project.
Agents continue in the project's daemon."
  (interactive)
  (let ((connection (gethash (duet-project-root (duet-connection-directory-here))
                             duet-connections)))
    (unless (and connection (duet-connection-rpc connection))
      (user-error "No server runs for this project"))
    (duet-connection-stop connection)
    (let ((turns (cl-count-if #'duet-session-active-turn
                              (duet-model-session-list (duet-connection-model connection)))))
      (message "The server is stopped%s"
               (pcase turns
                 (0 "")
                 (1 "; its agents go on with 1 turn")
                 (_ (format "; its agents go on with %d turns" turns)))))))

(provide 'duet)
;;; duet.el ends here
