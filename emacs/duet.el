;;; duet.el --- Work with coding agents  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;; Author: The Duet authors
;; URL: https://github.com/duet-rpc/duet-rpc
;; Version: 0.1.0
;; Package-Requires: ((emacs "28.1"))
;; Keywords: tools, processes, convenience

;;; Commentary:

;; `M-x duet' shows the sessions that agents have in the project of the current
;; buffer.  There, `c' asks an agent for something, RET shows what was said, and
;; `?' tells what else there is.
;;
;; Sessions belong to the project's daemon, a process of the program duet-rpc.
;; They go on when Emacs ends, and other editors show them too.
;;
;; What is where, in the order in which data flow:
;;
;;   duet-rpc.el         one server, from its start to its end (requests:
;;                       duet-rpc-request.el, the process: duet-rpc-process.el)
;;   duet-connection.el  the connection of a project, which outlives its server
;;                       (what it is asked: duet-connection-request.el, what it
;;                       tells: duet-connection-news.el)
;;                       (which project: duet-project.el)
;;                       (on other machines: duet-remote.el)
;;   duet-events.el      from events to the model (messages: duet-events-messages.el,
;;                       gates: duet-gates.el, from replies: duet-pages.el)
;;   duet-model.el       what is known of a project's sessions (duet-run.el and
;;                       duet-message.el, read by duet-get.el)
;;   duet-history.el     earlier messages of a session, page by page
;;   duet-sessions.el    the list of sessions
;;   duet-projects.el    the sessions of all projects
;;   duet-transcript.el  a session (sections: duet-section.el, above it:
;;                       duet-header.el, a turn that goes on: duet-progress.el,
;;                       what is new: duet-transcript-update.el,
;;                       looks: duet-render.el, duet-render-text.el, duet-look.el,
;;                       duet-lines.el, duet-visible.el, what RET visits:
;;                       duet-transcript-visit.el, from prompt to prompt, and the
;;                       mouse wheel: duet-transcript-move.el)
;;   duet-markup.el      what agents say as the Markdown that it is (blocks:
;;                       duet-block.el, paragraphs: duet-prose.el, marks in a line:
;;                       duet-inline.el, tables: duet-table.el, colours of code:
;;                       duet-code.el, links: duet-link.el)
;;   duet-compose.el     where prompts are written (what completes there:
;;                       duet-compose-complete.el, earlier ones:
;;                       duet-compose-history.el, at the end of a transcript:
;;                       duet-reply.el)
;;   duet-queue.el       queued prompts: edit, move, take back
;;   duet-actions.el     what can be done with a session
;;   duet-approvals.el   questions that wait (one: duet-approval.el, in words:
;;                       duet-approval-words.el, from now on:
;;                       duet-approval-always.el and duet-rules.el, in full:
;;                       duet-approval-view.el, its input: duet-approval-edit.el,
;;                       at the end of a transcript: duet-approvals-footer.el with
;;                       duet-approval-excerpt.el, forms: duet-form.el)
;;   duet-attach.el      files that go with a prompt
;;   duet-attachment.el  images and files in a conversation
;;   duet-notify.el      notifications of the desktop
;;   duet-diff.el        what a turn has changed, to accept or revert (its
;;                       buffer: duet-diff-view.el, from the server:
;;                       duet-diff-turns.el, files: duet-hunk.el)
;;   duet-revert.el      buffers that visit what agents write
;;   duet-menu.el        all of this in one menu (in the menu bar: duet-menu-bar.el)
;;   duet-marks.el       marks in the list of sessions; deleting
;;   duet-export.el      sessions written to files
;;   duet-search.el      where in all conversations something was said (the way
;;                       there: duet-search-visit.el)
;;   duet-build.el       builds (what they print, and the mistakes in it:
;;                       duet-build-output.el, in the buffers of the files:
;;                       duet-build-flymake.el)
;;   duet-preview.el     the pages that the project makes, and what they say
;;                       (duet-preview-messages.el)
;;   duet-triggers.el    what is done when something happens (what would be:
;;                       duet-triggers-try.el)
;;   duet-terminal.el    the server's terminals (their list: duet-terminals.el)
;;   duet-agents.el      which agents there are; signing in to them
;;   duet-adopt.el       sessions that were begun in an agent's own program
;;   duet-settings.el    what a session's agent is set to, and can be
;;   duet-budget.el      what a turn may use
;;   duet-ask.el         prompts about what a buffer has
;;   duet-secrets.el     keys for agents, from auth-source
;;   duet-trust.el       whether a project's .duet.toml may run programs
;;   duet-bookmark.el    bookmarks of lists and transcripts
;;   duet-evil.el        keys where Evil is there
;;   duet-command.el     what the program says on its command line

;;; Code:

(require 'cl-lib)
(require 'duet-approvals)
(require 'duet-attach)
(require 'duet-bookmark)
(require 'duet-build-flymake)
(require 'duet-compose)
(require 'duet-connection)
(require 'duet-diff)
(require 'duet-diff-view)
(require 'duet-evil)
(require 'duet-export)
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

;; These take other packages of Emacs with them, so they come when they are
;; needed, also where no package was installed and `load-path' has their folder.
(eval-and-compile
  (defun duet--autoloads (library)
    "Return the forms that autoload what LIBRARY has autoload cookies for."
    (with-temp-buffer
      (insert-file-contents (expand-file-name (concat library ".el")
                                              (file-name-directory (macroexp-file-name))))
      (let ((forms '()))
        (while (re-search-forward "^;;;###autoload" nil t)
          (push (pcase (read (current-buffer))
                  (`(defun ,name ,_ ,words . ,_) `(autoload ',name ,library ,words t))
                  ;; Another name, or a form on the line of the cookie.
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
  "Show the sessions of the project that DIRECTORY is in.
That is the current buffer's if nil; with a prefix argument ask."
  (interactive (list (and current-prefix-arg
                          (read-directory-name "Project: " nil nil t))))
  (duet-sessions-show (duet--connection directory (called-interactively-p 'any))))

;;;###autoload
(defun duet-new ()
  "Ask an agent for something in the project of the current buffer."
  (interactive)
  (duet-compose (duet--connection nil (called-interactively-p 'any))))

(defun duet--connection (directory ask)
  "Return the connection of the project that DIRECTORY is in.
It is that of the current buffer if DIRECTORY is nil.  Where there is no
project ask, if ASK is non-nil."
  (duet-connection-ensure
   (or directory (if duet-connection (duet-connection-root duet-connection)
                   default-directory))
   ask))

(defun duet-stop ()
  "End the server of the current buffer's project.
Agents go on in the project's daemon."
  (interactive)
  (let ((connection (gethash (duet-project-root
                              (if duet-connection (duet-connection-root duet-connection)
                                default-directory))
                             duet-connections)))
    (unless (and connection (duet-connection-rpc connection))
      (user-error "No server runs for this project"))
    (duet-connection-stop connection)
    (let ((turns (cl-count-if #'duet-session-active-run
                              (duet-model-session-list (duet-connection-model connection)))))
      (message "The server is stopped%s"
               (pcase turns
                 (0 "")
                 (1 "; its agents go on with 1 turn")
                 (_ (format "; its agents go on with %d turns" turns)))))))

(provide 'duet)
;;; duet.el ends here
