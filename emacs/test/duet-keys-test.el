;;; duet-keys-test.el --- Tests that each key has one meaning  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Each key has one meaning in all views and in the menu.  A list here has the commands
;; for each meaning: a new command on a key must be added to it.  The manual has a table
;; of keys and views, which is made from this list.  With DUET_TEST_UPDATE=1 the test
;; writes the table.

;;; Code:

(require 'cl-lib)
(require 'duet-manual-test)

(defconst duet-keys-test-meanings
  '(("RET" "Visit or open the item at point"
     duet-transcript-visit duet-diff-visit duet-sessions-open duet-search-visit
     duet-terminals-attach duet-trust-visit duet-approvals-act duet-approval-view
     duet-agents-choose duet-projects-open duet-build-visit
     duet-triggers-log duet-triggers-open duet-preview-visit duet-attempts-visit)
    ("TAB" "Fold or unfold the item at point; at a question, go on to the next button"
     duet-section-toggle duet-diff-toggle duet-attempts-toggle duet-approvals-forward)
    ("<backtab>" "Fold or unfold all; at a question, go back to the previous button"
     duet-section-toggle-all duet-approvals-backward)
    ("n" "Deny the question, or decline it; elsewhere, go to the next line, section, change or place"
     duet-approval-deny duet-section-next duet-diff-next duet-search-next duet-build-next
     duet-preview-next)
    ("p" "Allow it always in the project; elsewhere, go to the previous one"
     duet-approval-always-in-project duet-section-previous duet-diff-previous duet-search-previous duet-build-previous
     duet-preview-previous)
    ("M-n" "Go to the next prompt or file" duet-prompt-next duet-diff-next-file)
    ("M-p" "Go to the previous prompt or file" duet-prompt-previous duet-diff-previous-file)
    ("M-<up>" "Run a queued prompt earlier" duet-move-queued-up)
    ("M-<down>" "Run a queued prompt later" duet-move-queued-down)
    ("[" "Show the previous turn" duet-diff-earlier-turn)
    ("]" "Show the next turn" duet-diff-later-turn)
    ("+" "Show more: earlier messages, more places"
     duet-transcript-earlier duet-search-more)
    ("C-o" "Show it in another window, and stay here"
     duet-search-display duet-build-display duet-triggers-display duet-preview-open)
    ("a" "Accept the change, choose the attempt (asks)"
     duet-diff-accept duet-attempts-choose)
    ("A" "Accept all changes of the file" duet-diff-accept-file)
    ("t" "Deny the question and say why; in the menu, choose whether to trust the project"
     duet-approval-deny-and-tell duet-trust)
    ("e" "Edit a queued prompt; edit what a tool gets, then allow it"
     duet-approval-edit duet-edit-queued)
    ("s" "Allow it always in the session" duet-approval-always)
    ("1" "Choose the first answer of a question; 2 to 9 choose the others"
     duet-approval-choose)
    ("r" "Reply: answer the question, continue the session"
     duet-approval-respond duet-continue)
    ("v" "View the question in full" duet-approval-view)
    ("c" "Begin a new one: a prompt, a terminal"
     duet-new duet-sessions-compose duet-projects-compose duet-terminal duet-preview-ask)
    ("f" "Fork the session" duet-fork)
    ("G" "Go back to before the turn: files and session (asks)" duet-rewind)
    ("i" "Interrupt the turn" duet-interrupt)
    ("H" "Take over a session of the agent's own program" duet-adopt-session)
    ("k" "Remove a queued prompt or a rule, close a terminal, revert a change on the disk"
     duet-take-back duet-rules-take-back duet-terminals-close duet-diff-revert)
    ("K" "Revert all changes of the file, on the disk (asks)" duet-diff-revert-file)
    ("u" "Undo a mark, a choice, or a decision on a change"
     duet-unmark duet-agents-unchoose duet-diff-undo)
    ("U" "Remove all marks" duet-unmark-all)
    ("m" "Mark the session" duet-mark)
    ("z" "Archive the session, or restore it" duet-archive duet-archive-marked duet-menu-archive)
    ("Z" "Show the archive" duet-sessions-toggle-archived)
    ("T" "Give the session another title" duet-rename)
    ("W" "Write the session to a file" duet-export-session)
    ("D" "Delete the session (asks; cannot be undone)" duet-delete)
    ("=" "Show the changes of the turn; in them, the changes of all turns"
     duet-diff duet-diff-all duet-attempts-patch)
    ("M-=" "Show the changes of all turns" duet-diff-all)
    ("%" "Land, discard or visit the worktree of the session" duet-worktree)
    ("E" "Compare with Ediff" duet-diff-ediff)
    ("/" "Search all sessions" duet-search duet-search-or-say)
    ("#" "Go to a session or a turn by its number" duet-visit)
    ("j" "Go to the next open question" duet-approval-next)
    ("w" "List the open questions" duet-approvals)
    ("l" "List the sessions of the project"
     duet duet-projects-narrow duet-menu-sessions)
    ("P" "List the sessions of all projects" duet-projects)
    ("x" "Switch it on or off (with a prefix argument: all)" duet-triggers-switch)
    ("F" "Show which triggers match an event" duet-triggers-test)
    ("g" "Reload, attach again, or run again"
     duet-build-again duet-preview-reload duet-triggers-refresh duet-triggers-log-refresh
     duet-transcript-refresh duet-rules-refresh duet-diff-refresh duet-sessions-refresh duet-projects-refresh
     duet-search-refresh duet-terminals-refresh duet-approvals-refresh duet-agents-refresh
     duet-terminal-attach-again duet-trust duet-menu-restart duet-attempts-refresh)
    ("I" "Sign in" duet-login)
    ("O" "Sign out" duet-logout)
    ("Y" "Copy the block of code at point" duet-markup-copy-code)
    ("`" "Switch between rendered Markdown and its source"
     duet-markup-toggle)
    ("M-w" "Copy the command that installs the agent" duet-agents-copy-install)
    ("C-c C-c" "Trust the file" duet-trust-yes)
    ("C-c C-n" "Send the text of the reply box now" duet-reply-send-now)
    ("C-c C-k" "Do not trust the file; end the build or the preview"
     duet-trust-no duet-build-cancel duet-preview-stop)
    ("o" "Choose the agent's permission mode" duet-set-mode)
    ("M" "Choose the model" duet-set-model)
    ("S" "Set another option of the agent" duet-set-option)
    ("B" "Continue the session with another agent" duet-set-agent)
    ("N" "Choose the agent of new sessions" duet-choose-agent)
    ("L" "List the agents" duet-agents)
    ("R" "List the rules" duet-rules)
    ("V" "List the terminals" duet-terminals)
    ("h" "List the triggers" duet-triggers)
    ("b" "Build the project" duet-build)
    ("&" "Start a terminal" duet-terminal)
    ("." "Begin a prompt with the region" duet-send-region)
    ("!" "Begin a prompt about the error at point" duet-ask-about-error)
    ("y" "Allow what the question is about; answer a question" duet-approval-allow)
    ("$" "Show the log" duet-log-show)
    (":" "Change options" duet-menu-customize)
    ("X" "Stop the server" duet-stop)
    ("?" "Show the menu; at a question, explain its keys (twice: the menu)"
     duet-menu-or-help duet-approval-help))
  "Keys, what each means, and the commands that do that.")

(defconst duet-keys-test-views
  '((duet-sessions-mode-map . "sessions") (duet-projects-mode-map . "projects")
    (duet-transcript-mode-map . "transcript")
    (duet-approval-map . "question") (duet-approval-view-mode-map . "question")
    (duet-approvals-inline-map . "question") (duet-approvals-mode-map . "questions")
    (duet-diff-mode-map . "changes") (duet-attempts-mode-map . "attempts") (duet-search-mode-map . "search")
    (duet-terminals-mode-map . "terminals") (duet-terminal-ended-mode-map . "terminals")
    (duet-agents-mode-map . "agents") (duet-rules-mode-map . "rules")
    (duet-triggers-mode-map . "triggers") (duet-triggers-log-mode-map . "triggers")
    (duet-build-mode-map . "build") (duet-preview-mode-map . "preview")
    (duet-trust-mode-map . "trust") (duet-transcript-whole-mode-map . "text") (menu . "menu"))
  "Keymaps, and the views that they are of, in the order of the table.")

(defconst duet-keys-test-written
  '(duet-compose-mode-map duet-approval-edit-mode-map duet-approval-text-mode-map duet-reply-map)
  "Keymaps of text input, in which each letter inserts itself.")

(defun duet-keys-test-bindings (name)
  "Return the bindings of the keymap or menu NAME: conses of a key and a command."
  (if (eq name 'menu)
      (cl-remove-if-not (lambda (binding) (string-prefix-p "duet" (symbol-name (cdr binding))))
                        (duet-manual-test-suffixes (get 'duet-dispatch 'transient--layout)))
    (mapcar (lambda (binding) (cons (duet-manual-test-key (car binding)) (cdr binding)))
            (duet-manual-test-bindings (symbol-value name)))))

(defun duet-keys-test-table ()
  "Return the rows of the table, as they are in the manual."
  (mapconcat
   (pcase-lambda (`(,key ,meaning . ,commands))
     (let ((views (cl-loop for (map . view) in duet-keys-test-views
                           when (cl-some (lambda (binding)
                                           (and (equal (car binding) key)
                                                (memq (cdr binding) commands)))
                                         (duet-keys-test-bindings map))
                           collect view)))
       (format "@item @kbd{%s} @tab %s @tab %s\n" key meaning
               (string-join (delete-dups views) ", "))))
   duet-keys-test-meanings ""))

(ert-deftest duet-keys-test-one-meaning ()
  "Each key has the same meaning in all views."
  (duet-manual-test-with-manual
    (let (wrong used)
      (pcase-dolist (`(,map . ,_) duet-keys-test-views)
        (pcase-dolist (`(,key . ,command) (duet-keys-test-bindings map))
          (let ((meaning (assoc (if (string-match-p "\\`[2-9]\\'" key) "1" key)
                                duet-keys-test-meanings)))
            (push (cons (car meaning) command) used)
            (unless (memq command (cddr meaning))
              (push (list map key command) wrong)))))
      (should-not wrong)
      ;; The list has no outdated entry.
      (pcase-dolist (`(,key ,_ . ,commands) duet-keys-test-meanings)
        (dolist (command commands)
          (should (equal (list key command (and (member (cons key command) used) t))
                         (list key command t))))))))

(ert-deftest duet-keys-test-every-view ()
  "The list of views has the keymap of each view."
  (duet-manual-test-with-manual
    (let (missing)
      (mapatoms
       (lambda (name)
         (when (and (string-match-p "\\`duet-\\([^-]\\|-[^-]\\)*-map\\'" (symbol-name name))
                    (boundp name) (keymapp (symbol-value name))
                    (duet-manual-test-bindings (symbol-value name))
                    (not (assq name duet-keys-test-views))
                    (not (memq name duet-keys-test-written)))
           (push name missing))))
      (should-not missing))))

(ert-deftest duet-keys-test-manual ()
  "The table in the manual is up to date."
  (duet-manual-test-with-manual
    (goto-char (point-min))
    (search-forward "@c keys, made by duet-keys-test.el\n")
    (let ((beg (progn (re-search-forward "^@headitem .*\n") (point)))
          (end (progn (search-forward "@end multitable") (line-beginning-position)))
          (table (duet-keys-test-table)))
      (if (not (getenv "DUET_TEST_UPDATE"))
          (should (equal (buffer-substring-no-properties beg end) table))
        (delete-region beg end)
        (goto-char beg)
        (insert table)
        (let ((coding-system-for-write 'utf-8-unix))
          (write-region nil nil (duet-manual-test-file) nil 'silent))))))

(provide 'duet-keys-test)
;;; duet-keys-test.el ends here
