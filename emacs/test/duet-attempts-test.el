;;; duet-attempts-test.el --- Tests of several agents for one prompt  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; They use the real server, and need git.  Both agents are the demo agent.

;;; Code:

(require 'duet-test-lib)
(require 'duet-agents)
(require 'duet-attempts)
(require 'duet-compose)
(require 'duet-menu)
(require 'duet-sessions)
(require 'duet-transcript)
(require 'duet-worktree-test)

(defun duet-attempts-test-look ()
  "Wait until the selected window compares attempts, and make its buffer current."
  (set-buffer (duet-test-wait-for
               (let ((buffer (window-buffer)))
                 (and (eq (buffer-local-value 'major-mode buffer) 'duet-attempts-mode)
                      (buffer-local-value 'duet-attempts--all buffer)
                      buffer)))))

(defun duet-attempts-test-launch (connection text)
  "Send TEXT to the demo agent of CONNECTION twice, and show the comparison."
  (duet-compose connection)
  (duet-test-write-and-send (concat "/agents demo,demo /mode acceptEdits " text))
  (duet-attempts-test-look)
  (duet-test-wait-for (cl-every #'duet-session-attempts (duet-attempts--sessions))))

(defun duet-attempts-test-go (number)
  "Go to the line of the attempt NUMBER, and return its session."
  (goto-char (point-min))
  (let ((session (duet-get-string (nth number duet-attempts--all) :session_uuid)))
    (while (not (equal (tabulated-list-get-id) session)) (forward-line 1))
    (duet-attempts--session)))

(defun duet-attempts-test-wait (regexp)
  "Wait until the comparison in the current buffer has text that REGEXP matches."
  (duet-test-wait-for-text (current-buffer) regexp))

(defmacro duet-attempts-test-answering (answer &rest body)
  "Run BODY; give ANSWER to each question, and collect the questions in `asked'."
  (declare (indent 1) (debug (form body)))
  `(cl-letf (((symbol-function 'y-or-n-p)
              (lambda (prompt) (push prompt asked) ,answer)))
     ,@body))

(defconst duet-attempts-test-both "\\(?:completed.*\\(?:.\\|\n\\)*?\\)\\{2\\}"
  "Matches a comparison in which both attempts have ended.")

(ert-deftest duet-attempts-test-compose ()
  "The user chooses several agents for a new session, and each gets the prompt."
  (duet-worktree-test-with-project connection
    (duet-compose connection)
    (duet-test-wait-for (duet-agents-usable connection))
    (duet-test-typing "demo,demo=swift RET"
      (duet-test-press "C-c C-s" #'duet-compose-agents))
    (should (string-match-p "New session · demo, demo=swift: several attempts"
                            (duet-compose--header)))
    (duet-test-should-say "two agents or more" (duet-compose-agents '("demo")))
    (duet-test-should-say "agent other is unknown" (duet-compose-agents '("demo" "other")))
    (insert "/model x fix")
    (duet-test-should-say "so /model cannot be set" (call-interactively #'duet-compose-send))
    (should-not duet-compose--sending)
    (erase-buffer)
    (duet-compose-agents nil)
    (should-not (string-match-p "several attempts" (duet-compose--header)))
    (duet-compose-agents '("demo" "demo"))
    (duet-compose-toggle-worktree)
    (duet-test-write-and-send "quiet one")
    (duet-attempts-test-look)
    (should (equal (buffer-name) "*duet attempts: quiet one*"))
    (duet-attempts-test-wait duet-attempts-test-both)
    (let ((sessions (duet-attempts--sessions)))
      (should (= (length sessions) 2))
      (should (duet-session-attempts (car sessions)))
      (should (equal (duet-session-attempts (car sessions)) (duet-session-attempts (cadr sessions))))
      (should (string-match-p "^  ? ?quiet one" (duet-test-text (current-buffer))))
      ;; A list that is wide enough marks attempts.
      (with-temp-buffer
        (pcase-dolist (`(,room . ,shown) '((60 . t) (39 . nil)))
          (setq tabulated-list-format (vector (list "Session" room t)))
          (should (eq (and (string-match-p "quiet one  attempt  duet/"
                                           (aref (cadr (duet-sessions-entry (car sessions))) 3))
                           t)
                      shown))))
      ;; The next prompt goes to one agent.
      (duet-compose connection (car sessions))
      (duet-test-should-say "Only a new session" (call-interactively #'duet-compose-agents)))))

(ert-deftest duet-attempts-test-directive ()
  "The directive /agents names several agents, and only in new sessions."
  (with-temp-buffer
    (setq duet-connection (make-duet-connection :root "/p/"))
    (should (equal (duet-directive-take "/agents a,b=m/1=2 /mode plan fix it" nil)
                   '("fix it" :agents ((:agent "a") (:agent "b" :model "m/1=2")) :mode "plan")))
    (duet-test-should-say "two agents or more" (duet-directive-take "/agents a fix" nil))
    (duet-test-should-say "two agents or more" (duet-directive-take "/agents" nil))
    (let ((session (make-duet-session :id "t" :model (duet-model-create))))
      (should (equal (duet-directive-take "/agents a,b fix" session) '("/agents a,b fix"))))
    ;; Settings for one agent do not apply to several.
    (should (equal (duet-compose--attempts
                    '((:agent "a") (:agent "b" :model "m"))
                    '(:worktree t :agent "c" :model "n" :budget (:turns 1) :mode "plan"))
                   '(:agents [(:agent "a" :mode "plan")
                              (:agent "b" :model "m" :mode "plan")]
                     :budget (:turns 1))))
    (puthash "/p/" '((:name "ann" :available t :trusted t) (:name "bob" :available t :trusted t))
             duet-agents--known)
    (unwind-protect
        (progn
          (duet-test-should-say "agent cid is unknown; known are: ann, bob"
            (duet-directive-take "/agents ann,cid fix" nil))
          (insert "/agents ann,b")
          (pcase (duet-directive-complete nil)
            (`(,beg ,end ,table . ,_)
             (should (equal (all-completions (buffer-substring beg end) table) '("bob"))))
            (_ (ert-fail "Nothing is completed"))))
      (remhash "/p/" duet-agents--known))))

(ert-deftest duet-attempts-test-refused ()
  "The prompt stays if no worktree can be made."
  (duet-test-with-project connection
    (save-window-excursion
      (duet-test-listening
        (duet-compose connection)
        (duet-test-write-and-send "/agents demo,demo quiet one")
        (duet-test-wait-for (duet-test-heard "not sent: .*git"))
        (should (equal (buffer-string) "/agents demo,demo quiet one"))
        (should-not (duet-model-session-list (duet-connection-model connection)))))))

(ert-deftest duet-attempts-test-compare ()
  "The comparison shows each attempt with its files, changes and session."
  (duet-worktree-test-with-project connection
    (duet-attempts-test-launch connection "first")
    (let ((buffer (current-buffer)))
      ;; It updates when the sessions change.
      (duet-attempts-test-wait duet-attempts-test-both)
      (should (string-match-p "completed +1\\.1 +demo +1 +\\+1 -0 " (buffer-string)))
      (should-not (string-match-p "Gates" (format "%s" tabulated-list-format)))
      (let ((session (duet-attempts-test-go 1)))
        (duet-test-press "TAB" #'duet-attempts-toggle)
        (should (eq (duet-attempts--session) session))
        (forward-line 1)
        (should (looking-at-p " +demo\\.txt +\\+1 -0$"))
        (should (eq (duet-attempts--session) session))
        ;; Point stays on the file.
        (setq duet-test-said nil)
        (duet-test-press "g" #'duet-attempts-refresh)
        (let ((tick (buffer-chars-modified-tick)))
          (duet-test-wait-for (> (buffer-chars-modified-tick) tick)))
        (should (looking-at-p " +demo\\.txt +\\+1 -0$"))
        (duet-test-press "RET" #'duet-attempts-visit)
        (should (equal (buffer-file-name (window-buffer))
                       (concat (duet-worktree--directory connection session) "demo.txt")))
        (pop-to-buffer buffer)
        (duet-test-press "TAB" #'duet-attempts-toggle)
        (should-not (string-match-p "demo\\.txt" (buffer-string)))
        (should (eq (duet-attempts--session) session))
        (duet-test-press "=" #'duet-attempts-patch)
        (duet-test-wait-for (with-current-buffer (window-buffer) (derived-mode-p 'diff-mode)))
        (duet-test-look)
        (should (string-match-p "^\\+Turn 1: first$" (buffer-string)))
        (should buffer-read-only)
        (should (eq (key-binding "q") #'quit-window))
        (goto-char (point-max))
        (forward-line -1)
        (duet-test-press "RET" #'diff-goto-source)
        (should (equal (buffer-file-name (window-buffer))
                       (concat (duet-worktree--directory connection session) "demo.txt")))
        (set-buffer (duet-test-wait-for (get-buffer "*duet changes: demo (2.1)*")))
        (should (equal default-directory (duet-worktree--directory connection session)))
        (pop-to-buffer buffer)
        (should (eq (duet-attempts--session) session))
        (duet-test-click #'duet-attempts-visit-mouse)
        (duet-test-look)
        (should (derived-mode-p 'duet-transcript-mode))
        (should (eq duet-session session))
        (call-interactively #'duet-attempts)
        (should (eq (window-buffer) buffer))))))

(ert-deftest duet-attempts-test-from-anywhere ()
  "Without a session the latest attempts are compared.
A session that is not an attempt has no comparison."
  (duet-worktree-test-with-project connection
    (with-current-buffer (duet-sessions-buffer connection)
      (duet-test-should-say "No prompt had several agents; C-c C-s"
        (call-interactively #'duet-attempts)))
    (let ((alone (duet-test-launch connection "quiet")))
      (duet-attempts-test-launch connection "quiet two")
      (let ((buffer (current-buffer)))
        (with-temp-buffer
          (setq default-directory (duet-connection-root connection))
          (call-interactively #'duet-attempts))
        (should (eq (window-buffer) buffer)))
      (with-current-buffer (duet-transcript-open connection alone)
        (duet-test-should-say "not one of several" (call-interactively #'duet-attempts))))))

(ert-deftest duet-attempts-test-choose ()
  "After a confirmation one attempt lands and the others are discarded.
Refs keep the work of the discarded ones."
  (duet-worktree-test-with-project connection
    (let ((root (duet-connection-root connection))
          asked)
      (duet-attempts-test-launch connection "first")
      (duet-attempts-test-wait duet-attempts-test-both)
      (let ((session (duet-attempts-test-go 1))
            (other (car (duet-attempts--sessions))))
        (duet-attempts-test-answering nil
          (duet-test-press "a" #'duet-attempts-choose)
          (duet-test-wait-for (duet-test-heard "\\`Nothing was landed\\'")))
        (should (equal asked '("Land demo (2.1), and discard demo (1.1)? ")))
        (should-not (file-exists-p (expand-file-name "demo.txt" root)))
        (duet-attempts-test-answering t
          (cl-letf (((symbol-function 'read-multiple-choice)
                     (lambda (_ choices &rest _) (assq ?s choices)))
                    ((symbol-function 'read-string) (lambda (&rest _) "Fix it all")))
            (duet-test-press "a" #'duet-attempts-choose '(4)))
          (duet-test-wait-for
           (duet-test-heard "\\`Landed on main: 1 commit, 1 file; discarded 1 other attempt\\'")))
        (should (equal (duet-worktree-test-git root "log" "-1" "--format=%s") "Fix it all"))
        (should (equal (duet-worktree-test-text (expand-file-name "demo.txt" root))
                       "Turn 1: first\n"))
        (duet-attempts-test-wait "git branch NAME refs/[^ ]+ brings its work back")
        (duet-attempts-test-wait "\\+1 -0, landed\\|no change")
        (let ((text (duet-test-text (current-buffer))))
          (string-match "NAME \\(refs/[^ ]+\\)" text)
          (should (equal (duet-worktree-test-git
                          root "show" (concat (match-string 1 text) ":demo.txt"))
                         "Turn 1: first")))
        (duet-test-wait-for (duet-session-lost-worktree-p other))
        (should-not (duet-session-lost-worktree-p session))
        (duet-attempts-test-go 0)
        (duet-test-should-say "worktree of this session is gone"
          (call-interactively #'duet-attempts-choose))))))

(ert-deftest duet-attempts-test-interrupt ()
  "After a confirmation the other running attempts are interrupted."
  (duet-worktree-test-with-project connection
    (let (asked)
      (duet-attempts-test-launch connection "quiet stream:1000000@20")
      (let ((first (car (duet-attempts--sessions)))
            (session (cadr (duet-attempts--sessions))))
        (duet-test-wait-for-state first 'running)
        (duet-test-wait-for-state session 'running)
        (duet-attempts-test-go 1)
        (duet-test-should-say "still works" (call-interactively #'duet-attempts-choose))
        (duet-test-press "i" #'duet-interrupt)
        (duet-test-wait-for-state session 'interrupted)
        (duet-attempts-test-wait "interrupted +2\\.1")
        (duet-attempts-test-answering (= (length asked) 1)
          (duet-test-press "a" #'duet-attempts-choose)
          (duet-test-wait-for (duet-test-heard "\\`Nothing was landed, because other attempts")))
        (should (equal (car asked)
                       "Other attempts still work (1.1).  Interrupt and discard them? "))
        (should (eq (duet-session-state first) 'running))
        (duet-attempts-test-answering t
          (duet-test-press "a" #'duet-attempts-choose)
          (duet-test-wait-for (duet-test-heard "discarded 1 other attempt\\'")))
        (duet-test-wait-for-state first 'interrupted)
        (duet-test-wait-for (duet-session-lost-worktree-p first))))))

(ert-deftest duet-attempts-test-overlap ()
  "A failed landing is shown as by `duet-land', and nothing is discarded."
  (duet-worktree-test-with-project connection
    (let ((demo (expand-file-name "demo.txt" (duet-connection-root connection)))
          asked)
      (duet-attempts-test-launch connection "first")
      (duet-attempts-test-wait duet-attempts-test-both)
      (write-region "mine\n" nil demo nil 'quiet)
      (duet-attempts-test-go 0)
      (duet-attempts-test-answering t
        (duet-test-press "a" #'duet-attempts-choose)
        (duet-test-wait-for
         (duet-test-heard "\\`Nothing was landed: 1 file of yours would be overwritten\\'")))
      (with-current-buffer "*duet land*"
        (should (string-match-p "^  demo\\.txt$" (buffer-string))))
      (should-not (cl-some #'duet-session-lost-worktree-p (duet-attempts--sessions))))))

(ert-deftest duet-attempts-test-menu ()
  "The worktree's menu has the comparison only for attempts."
  (duet-worktree-test-with-project connection
    (let ((alone (duet-worktree-test-launch connection "quiet")))
      (duet-attempts-test-launch connection "quiet two")
      (duet-attempts-test-go 0)
      (should (duet-menu--attempts))
      (unwind-protect
          (progn
            (duet-test-press "%" #'duet-worktree)
            (let ((commands (mapcar (lambda (suffix) (oref suffix command)) transient--suffixes)))
              (should (memq 'duet-attempts commands))
              (should (memq 'duet-attempts-choose commands))))
        (transient-quit-all)
        (transient--emergency-exit))
      (switch-to-buffer (duet-transcript-open connection alone))
      (should-not (duet-menu--attempts)))))

(ert-deftest duet-attempts-test-lines ()
  "Gates, unknown changes, binary files and errors are shown."
  (with-temp-buffer
    (duet-attempts-mode)
    (setq duet-connection (make-duet-connection :root "/p/")
          duet-attempts--prompt "Fix\nit"
          duet-attempts--unfolded '("t1")
          duet-attempts--all
          '((:session_uuid "t1" :turn "1.1" :agent "claude" :model "opus" :state "completed"
             :gates (:state "failed" :failing ["make test"])
             :usage (:time_ms 61000 :cost_usd 0.125)
             :files [(:path "a.png" :added 0 :removed 0 :binary t)] :more 2 :added 3 :removed 4
             :landed t)
            (:session_uuid "t2" :turn "2.1" :agent "codex" :state "failed" :error "It broke"
             :usage (:time_ms 0 :cost_usd 0) :unknown "the worktree was discarded" :files [])))
    (duet-attempts--print)
    (should (equal (split-string (duet-test-text (current-buffer)) "\n" t)
                   '(" ●  completed 1.1  claude (opus) failed: make test 3     +3 -4, landed 1m 01s $0.12"
                     "     a.png  binary"
                     "     and 2 more"
                     " ✗  failed    2.1  codex                       ?                   0s     "
                     "     the worktree was discarded"
                     "     It broke"
                     " Fix it"
                     " TAB files, = changes, RET session, a chooses")))))

(provide 'duet-attempts-test)
;;; duet-attempts-test.el ends here
