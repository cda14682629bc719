;;; duet-worktree-test.el --- Tests of sessions in git worktrees  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; These tests use the real server, and need git.

;;; Code:

(require 'dired)
(require 'duet-test-lib)
(require 'duet-compose)
(require 'duet-diff)
(require 'duet-menu)
(require 'duet-sessions)
(require 'duet-transcript)
(require 'duet-worktree)

(defun duet-worktree-test-git (directory &rest arguments)
  "Run git with ARGUMENTS in DIRECTORY, and return its output."
  (let ((default-directory directory))
    (with-temp-buffer
      (should (eql 0 (apply #'call-process "git" nil t nil arguments)))
      (string-trim (buffer-string)))))

(defun duet-worktree-test-commit (root)
  "Commit all files of ROOT."
  (duet-worktree-test-git root "add" "-A")
  (duet-worktree-test-git root "commit" "-qm" "files"))

(defun duet-worktree-test-init (root)
  "Make ROOT a git repository, and commit all files."
  (duet-worktree-test-git root "init" "-qb" "main")
  (duet-worktree-test-git root "config" "user.name" "Ann")
  (duet-worktree-test-git root "config" "user.email" "ann@example.org")
  (duet-worktree-test-commit root))

(defmacro duet-worktree-test-with-project (name &rest body)
  "Run BODY in a git repository, with NAME bound to its connection.
Messages are recorded."
  (declare (indent 1) (debug (symbolp body)))
  `(progn
     (duet-test-need "git")
     (duet-test-with-project ,name
       (duet-worktree-test-init (duet-connection-root ,name))
       (save-window-excursion
         (duet-test-listening ,@body)))))

(defun duet-worktree-test-launch (connection query &rest more)
  "Launch a session in a worktree for QUERY through CONNECTION; return it.
Wait for the end of its turn.  MORE are other parameters."
  (let ((session (apply #'duet-test-launch connection query :worktree t :title "Fix it"
                        :mode "acceptEdits" more)))
    (duet-test-wait-for-state session 'completed)
    (duet-test-wait-for (duet-session-worktree session))
    session))

(defun duet-worktree-test-text (file)
  "Return the content of FILE, or nil."
  (and (file-exists-p file)
       (with-temp-buffer (insert-file-contents file) (buffer-string))))

(ert-deftest duet-worktree-test-compose ()
  "A prompt starts a session in a worktree only if the user chooses that."
  (duet-worktree-test-with-project connection
    (duet-compose connection)
    (should-not (string-match-p "in a worktree" (duet-compose--header)))
    (duet-test-press "C-c C-t" #'duet-compose-toggle-worktree)
    (should (string-match-p "in a worktree" (duet-compose--header)))
    (duet-test-press "C-c C-t" #'duet-compose-toggle-worktree)
    (should-not (duet-compose--parameters))
    (call-interactively #'duet-compose-toggle-worktree)
    (duet-test-write-and-send "quiet one")
    (duet-test-wait-for-transcript)
    (let* ((transcript (current-buffer))
           (session duet-session))
      (duet-test-wait-for (duet-session-worktree session))
      (should (string-prefix-p "duet/quiet-one"
                               (duet-get-string (duet-session-worktree session) :branch)))
      ;; The transcript's directory is the worktree.
      (duet-test-wait-for (equal (with-current-buffer transcript default-directory)
                                 (duet-worktree--directory connection session)))
      (should (string-match-p "duet/quiet-one"
                              (with-current-buffer transcript (duet-header session connection))))
      (duet-test-wait-for-state session 'completed)
      ;; The next prompt of a session has no such choice.
      (duet-compose connection session)
      (duet-test-should-say "Only a new session"
        (call-interactively #'duet-compose-toggle-worktree)))
    (duet-compose connection)
    (should-not duet-compose--worktree)
    (duet-test-write-and-send "/worktree quiet two")
    (duet-test-wait-for-transcript)
    (duet-test-wait-for (duet-session-worktree duet-session))
    (should (equal (duet-turn-query (duet-session-leaf duet-session)) "quiet two"))))

(ert-deftest duet-worktree-test-directive ()
  "The directive /worktree has no value, and is only for new sessions."
  (let ((session (make-duet-session :id "t" :model (duet-model-create))))
    (with-temp-buffer
      (setq duet-connection (make-duet-connection :root "/p/"))
      (pcase-dolist (`(,text . ,taken)
                     '(("/worktree fix it" "fix it" :worktree t)
                       ("/worktree\nfix it" "fix it" :worktree t)
                       ("/model m /worktree /mode plan fix" "fix" :model "m" :worktree t :mode "plan")
                       ("/worktree" "" :worktree t)
                       ("/worktrees fix" "/worktrees fix")))
        (should (equal (duet-directive-take text nil) taken)))
      (should (equal (duet-directive-take "/worktree fix" session) '("/worktree fix")))
      (insert "/wor")
      (pcase (duet-directive-complete nil)
        (`(,beg ,end ,table . ,_)
         (should (equal (all-completions (buffer-substring beg end) table) '("/worktree"))))
        (_ (ert-fail "Nothing is completed")))
      (erase-buffer)
      (insert "/worktree fi")
      (should-not (duet-directive-complete nil)))))

(ert-deftest duet-worktree-test-refused ()
  "The prompt stays if no worktree can be made."
  (duet-test-with-project connection
    (save-window-excursion
      (duet-test-listening
        (duet-compose connection)
        (call-interactively #'duet-compose-toggle-worktree)
        (duet-test-write-and-send "quiet one")
        (duet-test-wait-for (duet-test-heard "not sent: .*git"))
        (should (equal (buffer-string) "quiet one"))))))

(ert-deftest duet-worktree-test-land ()
  "Landing brings the changes to the project, and updates its buffers."
  (duet-worktree-test-with-project connection
    (let* ((root (duet-connection-root connection))
           (demo (expand-file-name "demo.txt" root)))
      (duet-model-add-observer #'duet-revert--observe)
      (write-region "one\n" nil demo nil 'quiet)
      (duet-worktree-test-commit root)
      (set-file-times demo (time-subtract nil 10))
      (let* ((session (duet-worktree-test-launch connection "first"))
             (visiting (find-file-noselect demo))
             (branch (duet-get-string (duet-session-worktree session) :branch)))
        (should (equal (duet-worktree-test-text demo) "one\n"))
        (switch-to-buffer (duet-sessions-buffer connection))
        (duet-sessions-go-to (current-buffer) session)
        (should (string-match-p (regexp-quote branch) (buffer-string)))
        (call-interactively #'duet-land)
        (duet-test-wait-for (duet-test-heard "\\`Landed on main: 1 commit, 1 file\\'"))
        (should (equal (duet-worktree-test-text demo) "one\nTurn 1: first\n"))
        (duet-test-wait-for (equal (with-current-buffer visiting (buffer-string))
                                   "one\nTurn 1: first\n"))
        (call-interactively #'duet-land)
        (duet-test-wait-for (duet-test-heard "\\`There is nothing new to land\\'"))
        ;; Nothing would be lost, so there is no question.
        (call-interactively #'duet-discard-worktree)
        (duet-test-wait-for (duet-test-heard "\\`The worktree is discarded\\'"))
        (duet-test-wait-for (duet-session-lost-worktree-p session))
        (duet-sessions--print)
        (should (string-match-p "worktree gone" (buffer-string)))
        (duet-test-should-say "The worktree of this session is gone"
          (call-interactively #'duet-land))
        (duet-test-should-say "fork it (f)" (call-interactively #'duet-continue))
        ;; The transcript's directory is the project now.
        (let ((transcript (duet-transcript-open connection session)))
          (duet-test-wait-for-text transcript "Wrote\\|Write")
          (with-current-buffer transcript
            (should (equal default-directory root))
            (should (string-match-p "worktree gone" (duet-header session connection)))
            (goto-char (point-min))
            (search-forward "Write demo.txt")
            (call-interactively #'duet-transcript-visit))
          (should (equal (buffer-file-name (window-buffer)) demo)))))))

(ert-deftest duet-worktree-test-methods ()
  "A prefix argument asks for the method, and for the message of a single commit."
  (duet-worktree-test-with-project connection
    (let* ((root (duet-connection-root connection))
           (session (duet-worktree-test-launch connection "first")))
      (write-region "*.txt filter=git-crypt\n" nil
                    (expand-file-name ".git/info/attributes" root) nil 'quiet)
      (with-current-buffer (duet-transcript-open connection session)
        (cl-letf (((symbol-function 'read-multiple-choice)
                   (lambda (_ choices &rest _) (assq ?s choices)))
                  ((symbol-function 'read-string) (lambda (&rest _) "Fix it all")))
          (let ((current-prefix-arg t)) (call-interactively #'duet-land)))
        (duet-test-wait-for
         (duet-test-heard (concat "\\`Landed on main: 1 commit, 1 file; committed without the filter"
                                  " that .gitattributes names (look before you push): demo.txt\\'")))
        (should (equal (duet-worktree-test-git root "log" "-1" "--format=%s") "Fix it all")))
      (let ((patched (duet-worktree-test-launch connection "second")))
        (duet-land patched "patch")
        (duet-test-wait-for (duet-test-heard "\\`Landed without a commit: 1 file\\'"))
        (should (equal (duet-worktree-test-git root "status" "--short") "M demo.txt"))))))

(ert-deftest duet-worktree-test-not-landed ()
  "A failed landing shows the obstacle and the remedy."
  (duet-worktree-test-with-project connection
    (let* ((root (duet-connection-root connection))
           (demo (expand-file-name "demo.txt" root))
           (session (duet-worktree-test-launch connection "first")))
      (write-region "mine\n" nil demo nil 'quiet)
      (duet-land session)
      (duet-test-wait-for
       (duet-test-heard "\\`Nothing was landed: 1 file of yours would be overwritten\\'"))
      (with-current-buffer "*duet land*"
        (should (string-match-p "are not committed and would be overwritten" (buffer-string)))
        (should (string-match-p "^Commit or stash" (buffer-string)))
        (goto-char (point-min))
        (search-forward "demo.txt")
        (push-button (1- (point))))
      (should (equal (buffer-file-name (window-buffer)) demo))
      (should (equal (duet-worktree-test-text demo) "mine\n"))
      (duet-worktree-test-commit root)
      (duet-land session)
      (duet-test-wait-for
       (duet-test-heard "\\`Nothing was landed: 1 file conflicts with your branch\\'"))
      (should (equal (duet-worktree-test-text demo) "mine\n"))
      (with-current-buffer "*duet land*"
        (goto-char (point-min))
        (search-forward "demo.txt")
        (save-current-buffer (push-button (1- (point))))
        (search-forward "[Let the agent")
        (push-button (1- (point))))
      (duet-test-look)
      (should (derived-mode-p 'duet-compose-mode))
      (should (equal (buffer-string) "Merge my branch into yours and resolve the conflicts"))
      (should (cl-find (expand-file-name "demo.txt" (duet-worktree--directory connection session))
                       (buffer-list) :key #'buffer-file-name :test #'equal)))))

(ert-deftest duet-worktree-test-discard ()
  "Unlanded work is shown, and discarded after a confirmation; a ref keeps it."
  (duet-worktree-test-with-project connection
    (let* ((root (duet-connection-root connection))
           (session (duet-worktree-test-launch connection "first"))
           (directory (duet-worktree--directory connection session))
           (answer ?n)
           shown)
      (cl-letf (((symbol-function 'read-multiple-choice)
                 (lambda (prompt choices &rest _)
                   (setq shown (cons prompt (with-current-buffer "*duet discard*" (buffer-string))))
                   (assq answer choices))))
        (with-current-buffer (duet-transcript-open connection session)
          (call-interactively #'duet-discard-worktree)
          (duet-test-wait-for (duet-test-heard "\\`Nothing was discarded\\'"))
          (should (equal shown (cons "Discard the worktree with this work?"
                                     "New file that is not committed:\n  demo.txt\n")))
          (should (file-exists-p (concat directory "demo.txt")))
          (setq answer ?y)
          (call-interactively #'duet-discard-worktree)
          (duet-test-wait-for
           (duet-test-heard "is discarded; its work is kept, git branch NAME \\(refs/[^ ]+\\) brings"))
          (should-not (file-exists-p directory))
          (let ((said (cl-find-if (lambda (line) (string-match "NAME \\(refs/[^ ]+\\)" line))
                                  duet-test-said)))
            (should (equal (duet-worktree-test-git
                            root "show" (concat (match-string 1 said) ":demo.txt"))
                           "Turn 1: first"))))))))

(ert-deftest duet-worktree-test-delete ()
  "A session with unlanded work is not deleted; a message says what to do."
  (duet-worktree-test-with-project connection
    (let ((session (duet-worktree-test-launch connection "first"))
          question)
      (switch-to-buffer (duet-sessions-buffer connection))
      (duet-sessions-go-to (current-buffer) session)
      (cl-letf (((symbol-function 'yes-or-no-p)
                 (lambda (prompt) (setq question prompt) t)))
        (duet-test-press "D" #'duet-delete)
        (should (string-match-p "Files stay, but worktrees are deleted" question))
        (duet-test-wait-for
         (duet-test-heard "not deleted: .* not landed; land or discard it first (%)"))
        (duet-land session)
        (duet-test-wait-for (duet-test-heard "\\`Landed on main"))
        (duet-test-press "D" #'duet-delete)
        (duet-test-wait-for (duet-test-heard "\\`1 deleted\\'"))))))

(ert-deftest duet-worktree-test-files ()
  "Transcripts, changes and Dired use the files of the worktree.
`duet' in such a file shows the project."
  (duet-worktree-test-with-project connection
    (let* ((root (duet-connection-root connection))
           (session (duet-worktree-test-launch connection "first"))
           (directory (duet-worktree--directory connection session))
           (demo (concat directory "demo.txt")))
      (should-not (string-prefix-p root directory))
      (with-current-buffer (duet-transcript-open connection session)
        (duet-test-wait-for-text (current-buffer) "Write demo.txt")
        (goto-char (point-min))
        (search-forward "Write demo.txt")
        (call-interactively #'duet-transcript-visit))
      (duet-test-look)
      (should (equal buffer-file-name demo))
      (should (equal (duet-project-root default-directory) root))
      (should (equal (duet-project-buffer-name) "demo.txt"))
      (should (eq (duet-connection-ensure default-directory) connection))
      (let ((duet-connections (make-hash-table :test #'equal)))
        (should (equal (duet-project-root default-directory) root)))
      (duet-diff session)
      (duet-test-wait-for-text (current-buffer) "Turn 1: first")
      (should (string-match-p "^.*\\_<demo\\.txt" (buffer-string)))
      (duet-test-go "Turn 1: first")
      (call-interactively #'duet-diff-visit)
      (should (equal (buffer-file-name (window-buffer)) demo))
      ;; A mention in a prompt is a file of the worktree, too.
      (duet-compose connection session)
      (should (equal default-directory directory))
      (should (equal (duet-attach--mentioned "Look at @demo.txt") (list (file-truename demo))))
      (with-current-buffer (duet-transcript-open connection session)
        (call-interactively #'duet-worktree-dired))
      (duet-test-look)
      (should (derived-mode-p 'dired-mode))
      (should (equal default-directory directory)))))

(ert-deftest duet-worktree-test-menu ()
  "The key % shows the commands for the worktree, if there is one."
  (duet-worktree-test-with-project connection
    (let ((session (duet-worktree-test-launch connection "first"))
          (other (duet-test-launch connection "quiet")))
      (switch-to-buffer (duet-transcript-open connection session))
      (unwind-protect
          (progn
            (duet-test-press "%" #'duet-worktree)
            (should (eq (oref transient--prefix command) 'duet-worktree))
            (should (equal (seq-take (mapcar (lambda (suffix) (oref suffix command))
                                             transient--suffixes)
                                     3)
                           '(duet-land duet-discard-worktree duet-worktree-dired))))
        (transient-quit-all)
        (transient--emergency-exit))
      (should (duet-menu--worktree))
      (switch-to-buffer (duet-transcript-open connection other))
      (should-not (duet-menu--worktree))
      (duet-test-should-say "works in the project.s directory"
        (duet-test-press "%" #'duet-worktree)))))

(ert-deftest duet-worktree-test-narrow ()
  "A list cuts the branch to the room beside the session's name."
  (with-temp-buffer
    (let* ((worktree (list :branch "duet/fix-the-parser-of-rows" :dir "/w/x"))
           (session (make-duet-session :id "t" :title "Fix the parser of rows"
                                       :model (duet-model-create) :worktree worktree))
           (shown (lambda (room)
                    (setq tabulated-list-format (vector (list "Session" room t)))
                    (substring-no-properties (aref (cadr (duet-sessions-entry session)) 3)))))
      (should (equal (funcall shown 80)
                     "Fix the parser of rows  duet/fix-the-parser-of-rows"))
      (should (equal (funcall shown 40) "Fix the parser of…  duet/fix-the-parser…"))
      (should (equal (funcall shown 20) "Fix the p…  worktree"))
      (setf (duet-session-worktree session) (append worktree '(:gone t)))
      (should (equal (funcall shown 40) "Fix the parser of rows  worktree gone"))
      (should (equal (funcall shown 20) "Fix the parse…  gone")))))

(ert-deftest duet-worktree-test-elsewhere ()
  "Another client's actions on a worktree are shown."
  (duet-worktree-test-with-project connection
    (let* ((root (duet-connection-root connection))
           (demo (expand-file-name "demo.txt" root)))
      (duet-model-add-observer #'duet-revert--observe)
      (write-region "one\n" nil demo nil 'quiet)
      (duet-worktree-test-commit root)
      (set-file-times demo (time-subtract nil 10))
      (let ((session (duet-worktree-test-launch connection "first"))
            (visiting (find-file-noselect demo)))
        (dolist (command '("land" "discard"))
          (let ((process-environment (cons "NO_COLOR=1" process-environment))
                (default-directory root))
            (should (eql 0 (call-process (car (duet-test-server)) nil nil nil "--root" root command)))))
        (duet-test-wait-for (equal (with-current-buffer visiting (buffer-string))
                                   "one\nTurn 1: first\n"))
        (duet-test-wait-for (duet-session-lost-worktree-p session))))))

(ert-deftest duet-worktree-test-below-the-top ()
  "Landed files are announced, also for a project below a repository's top."
  (duet-test-need "git")
  (duet-test-with-project outer
    (let* ((top (duet-connection-root outer))
           (root (concat top "inside/"))
           (files '()))
      (make-directory root)
      (copy-file (concat top ".duet.toml") root)
      (duet-worktree-test-init top)
      (let ((connection (duet-connection-ensure root)))
        (should (equal (duet-connection-root connection) root))
        (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
        (let ((session (duet-worktree-test-launch connection "first")))
          (duet-model-add-observer (lambda (_model kind _session path _extra)
                                     (when (eq kind 'file) (push path files))))
          (duet-test-listening
            (with-current-buffer (duet-sessions-buffer connection) (duet-land session))
            (duet-test-wait-for (duet-test-heard "\\`Landed on main: 1 commit, 1 file\\'")))
          (should (equal files (list (concat root "demo.txt"))))
          (should (file-exists-p (car files))))))))

(ert-deftest duet-worktree-test-top ()
  "The top of the repository is derived from names alone, on any machine."
  (pcase-dolist (`(,root ,dir ,cwd ,top)
                 '(("/p/sub/" "/w/x" "/w/x/sub" "/p/")
                   ("/p/sub/" "/w/x" "/w/x" "/p/sub/")
                   ("/p/sub/" "/w/x" "/w/x/sub/deeper" "/p/sub/")
                   ("/p/" "/w/x" nil "/p/")
                   ("/ssh:box:/p/sub/" "/w/x" "/w/x/sub" "/ssh:box:/p/")))
    (let ((session (make-duet-session :id "t" :cwd cwd
                                      :worktree (list :branch "duet/x" :dir dir :gone t)))
          (connection (make-duet-connection :root root)))
      (should (equal (duet-worktree--top connection session) top))
      (should (equal (duet-worktree-file connection session
                                         (concat (file-remote-p root) "/w/x/a.txt"))
                     (concat top "a.txt")))
      (should (equal (duet-worktree-file connection session "/q/a.txt") "/q/a.txt")))))

;; `?' shows the choices in a window, and asks again.
(ert-deftest duet-worktree-test-help-at-the-questions ()
  "At the questions of a worktree, ? shows the choices; the next key answers."
  (dolist (key '(?y ?n))
    (let ((unread-command-events (list ?? key))
          (discarded nil))
      (cl-letf (((symbol-function 'duet-worktree--discard)
                 (lambda (&rest _) (setq discarded t))))
        (duet-worktree--ask-discard nil nil nil))
      (should (eq discarded (eq key ?y)))))
  (let ((unread-command-events (list ?? ?r)))
    (should (equal (duet-worktree--read-method) '("rebase" nil)))))

(provide 'duet-worktree-test)
;;; duet-worktree-test.el ends here
