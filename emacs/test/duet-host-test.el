;;; duet-host-test.el --- Tests of projects on hosts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The host devbox is this machine: its prefix is the program env.  Its projects are in
;; another directory.

;;; Code:

(require 'duet-test-lib)
(require 'duet-ask)
(require 'duet-attach)
(require 'duet-compose)
(require 'duet-host)
(require 'duet-notify)
(require 'duet-progress)
(require 'duet-projects)
(require 'duet-secrets)
(require 'duet-sessions)
(require 'duet-terminal)
(require 'duet-transcript)
(require 'duet-worktree)
(require 'duet-worktree-test)

(defmacro duet-host-test-with-host (there &rest body)
  "Run BODY in a local project, beside the host devbox.
THERE is bound to the local name of the project on the host; the local
project has the same name.  `connection' is the one of the local project."
  (declare (indent 1) (debug (symbolp body)))
  `(duet-test-with-project connection
     (let* ((home (expand-file-name "../" (duet-connection-root connection)))
            (,there (concat home "there/project/"))
            (duet-host--projects (make-hash-table :test #'equal)))
       (make-directory ,there t)
       (with-temp-file (concat ,there ".duet.toml")
         (insert "default_agent = \"demo\"\n"))
       (make-directory (concat home "config/duet") t)
       (with-temp-file (concat home "config/duet/config.toml")
         (insert (format "[hosts.devbox]\ncommand = [\"env\"]\ndirectory = %S\nprogram = %S\n"
                         (concat home "there") (car duet-rpc-command))))
       ,@body)))

(defmacro duet-host-test-with-connection (there &rest body)
  "Run BODY with `remote' bound to the connection of the project on the host.
THERE is bound to its local name."
  (declare (indent 1) (debug (symbolp body)))
  `(duet-host-test-with-host ,there
     (let* ((duet-host "devbox")
            (remote (duet-connection-ensure (duet-connection-directory-here))))
       (duet-test-wait-for (eq (duet-connection-state remote) 'ready))
       ,@body)))

(defun duet-host-test-fake (host)
  "Return a connection of a project on HOST without a server."
  (let ((root (format "/duet@%s/srv/parser/" host)))
    (puthash root (make-duet-connection :root root :state 'ready
                                        :model (duet-model-create :root root))
             duet-connections)))


;;; Names

(ert-deftest duet-host-test-names ()
  "The name of a file on a host is never that of a local file."
  (let* ((root (duet-host-file "devbox" "/tmp/"))
         (passwd (duet-host-file "devbox" "/etc/passwd"))
         (default-directory root))
    (should (equal (duet-host-of passwd) "devbox"))
    (should-not (duet-host-of "/etc/passwd"))
    (should (equal (file-remote-p passwd 'localname) "/etc/passwd"))
    (should (equal (file-remote-p passwd 'host) "devbox"))
    (should (equal (concat (file-remote-p passwd) "/etc/passwd") passwd))
    (should (equal (expand-file-name "a/../b") (concat root "b")))
    (should (equal (expand-file-name "../../../etc/passwd") passwd))
    (should (equal (expand-file-name "/etc/passwd") "/etc/passwd"))
    (should (equal (directory-file-name "/duet@devbox/") "/duet@devbox/"))
    (should (equal (duet-remote-name "/etc/passwd" root) passwd))
    (should (equal (duet-remote-name "a.go" root) (concat root "a.go")))
    (should (equal (duet-remote-local passwd) "/etc/passwd"))
    (should (equal (duet-remote-inside "/tmp/a.go" root) "a.go"))
    ;; An agent of this machine cannot name a host.
    (should-not (duet-host-of (duet-remote-name "/duet@devbox/x" "/srv/")))
    (should-not (or (file-exists-p passwd) (file-readable-p passwd) (file-regular-p passwd)
                    (file-directory-p root) (file-attributes passwd)
                    (locate-dominating-file root "etc")))
    (dolist (visit (list (lambda () (insert-file-contents passwd))
                         (lambda () (find-file-noselect passwd))
                         (lambda () (directory-files root))
                         (lambda () (write-region "x" nil passwd))
                         (lambda () (file-local-copy passwd))))
      (with-temp-buffer
        (duet-test-should-say "is on devbox; to visit files there, set .duet-host-files."
          (funcall visit))))
    (duet-test-should-say "Emacs starts no program on devbox"
      (process-file "true"))))

(ert-deftest duet-host-test-names-after-tramp ()
  "TRAMP does not take names on hosts for its own, whatever is loaded first."
  (require 'tramp)
  (let ((file-name-handler-alist (copy-sequence file-name-handler-alist)))
    (tramp-register-file-name-handlers)
    (should (eq (find-file-name-handler "/duet@devbox/srv/" 'file-remote-p)
                #'duet-host-handler))
    (should-not (tramp-tramp-file-p "/duet@devbox/srv/a:b"))))

(ert-deftest duet-host-test-visit-name ()
  "Emacs visits files on a host by the prefix of the user, or says how to set one."
  (let ((duet-host-files '(("devbox" . "/ssh:devbox:"))))
    (should (equal (duet-host-visit-name "/duet@devbox/srv/a.go") "/ssh:devbox:/srv/a.go"))
    (should (equal (duet-host-visit-name "/srv/a.go") "/srv/a.go"))
    (duet-test-should-say "/srv/a.go is on other; .*set .duet-host-files..*(\"other\" \\. \"/ssh:other:\")"
      (duet-host-visit-name "/duet@other/srv/a.go"))))

(ert-deftest duet-host-test-option-is-asked-for ()
  "Emacs asks before it takes a host or a prefix from a project's .dir-locals.el."
  (should-not (safe-local-variable-p 'duet-host "devbox"))
  (should-not (safe-local-variable-p 'duet-host-send t))
  (should (risky-local-variable-p 'duet-host-files)))


;;; Connections

(ert-deftest duet-host-test-connections ()
  "A project has a connection for this machine and one for a host at the same time."
  (duet-host-test-with-connection there
    (should-not (eq connection remote))
    (should (equal (duet-connection-root remote) (duet-host-file "devbox" there)))
    (should (eq (duet-connection-state connection) 'ready))
    (let ((session (duet-test-launch remote "quiet over there")))
      (duet-test-wait-for-state session 'completed)
      (should (equal (duet-session-cwd session) (directory-file-name there)))
      (should-not (duet-model-session-list (duet-connection-model connection)))
      ;; The default of the host is the same project as its directory by name.
      (should (eq remote (duet-connection-ensure
                          (duet-host-project "devbox" (expand-file-name "~/") there)))))
    (let ((duet-host nil))
      (should (eq connection (duet-connection-ensure (duet-connection-directory-here)))))))

(ert-deftest duet-host-test-read ()
  "A prefix argument reads a host and a directory there, with the host's default."
  (duet-host-test-with-host there
    (duet-test-typing "devb TAB RET RET"
      (should (equal (duet-host-read default-directory) (duet-host-file "devbox" there))))
    (duet-test-typing "RET"
      (should-not (duet-host-read default-directory)))
    (make-directory (concat there "../other"))
    (duet-test-typing (format "devbox RET %s../other RET" there)
      (should (equal (duet-host-read default-directory)
                     (duet-host-file "devbox" (expand-file-name "../other/" there)))))
    (duet-test-should-say "there is no directory"
      (duet-test-typing "devbox RET nowhere RET" (duet-host-read default-directory)))
    (dolist (command '(duet duet-new duet-projects duet-approvals))
      (let ((read nil)
            (current-prefix-arg '(4)))
        (save-window-excursion
          (cl-letf (((symbol-function 'duet-host-read)
                     (lambda (_) (setq read t) (duet-connection-root connection))))
            (call-interactively command)))
        (should (equal (list command read) (list command t)))))))

(ert-deftest duet-host-test-without-hosts ()
  "Without a host in the configuration, no command asks for one."
  (duet-test-with-project connection
    (should-not (duet-host-read default-directory))))

(ert-deftest duet-host-test-refusals ()
  "Emacs says why it cannot reach a host, and that TRAMP does not go with hosts."
  (duet-host-test-with-host there
    (let ((duet-host "nowhere"))
      (duet-test-should-say "there is no host \"nowhere\""
        (duet-connection-directory-here)))
    (let ((duet-host "devbox")
          (duet-host-send nil))
      (delete-directory there t)
      (duet-test-should-say "there is no directory"
        (duet-connection-directory-here))
      (let ((default-directory "/ssh:box:/srv/"))
        (duet-test-should-say "cannot combine TRAMP with a host"
          (duet-connection-directory-here))))
    (let ((duet-rpc-command (append duet-rpc-command '("--host" "devbox"))))
      (duet-test-should-say "set .duet-host. instead"
        (duet-rpc-process-words)))))

(ert-deftest duet-host-test-variable ()
  "A server of a local project stays here, whatever DUET_HOST says."
  (let ((process-environment (cons "DUET_HOST=nowhere" process-environment)))
    (duet-test-with-project connection
      (duet-test-wait-for-state (duet-test-launch connection "quiet here") 'completed)
      (let ((paths nil))
        (duet-command-json default-directory '("paths") (lambda (result) (setq paths result)))
        (duet-test-wait-for paths)
        (should (equal (duet-get-string paths :root)
                       (directory-file-name default-directory)))))))


;;; Sessions that begin with the files of this machine

(defmacro duet-host-test-with-repository (there &rest body)
  "Run BODY in a local repository with the changed file a, beside the host devbox.
The host has no project yet; THERE is bound to the local name that it will
have.  Messages are recorded."
  (declare (indent 1) (debug (symbolp body)))
  `(progn
     (duet-test-need "git")
     (duet-host-test-with-host ,there
       (delete-directory (concat home "there") t)
       (with-temp-file (concat home "line.sh")
         (insert (format "cd %S && exec \"$@\"\n" home)))
       (with-temp-file (concat home "config/duet/config.toml")
         (insert (format "default_agent = \"demo\"\n[hosts.devbox]\ncommand = [\"sh\", %S]\ndirectory = \"there\"\nprogram = %S\n"
                         (concat home "line.sh") (car duet-rpc-command))))
       (write-region "one\n" nil "a" nil 'quiet)
       (duet-worktree-test-init default-directory)
       (write-region "two\n" nil "a" nil 'quiet)
       (save-window-excursion
         (duet-test-listening
           (let ((duet-host "devbox"))
             ,@body))))))

(defun duet-host-test-new (prompt)
  "Begin a session with PROMPT in the project of the current buffer, and return it.
Wait for the end of its turn."
  (call-interactively #'duet-new)
  (duet-test-write-and-send prompt)
  (duet-test-wait-for-transcript)
  (duet-test-wait-for-state duet-session 'completed)
  duet-session)

(ert-deftest duet-host-test-not-sent ()
  "The user reads which files did not go to the host."
  (duet-test-listening
    (duet-compose--say-sent "devbox" '(:count 5 :first ["a/" "b\nc" "d" "e"]))
    (should (duet-test-heard "\\`devbox has your files, without 5 that are not committed, .*: a/, b.+c, d, …\\'"))))

(ert-deftest duet-host-test-send ()
  "A session begins on a host that has no such project, with the user's files."
  (duet-host-test-with-repository there
    (let ((local default-directory)
          ;; The session itself is the reason to look again.
          (duet-connection--mended 1000))
      (call-interactively #'duet)
      (let ((list (current-buffer))
            (remote duet-connection))
        (should (equal (duet-connection-root remote) (duet-host-file "devbox" there)))
        (duet-test-wait-for-text list "there is no\\s-+directory .*there/project$")
        (should (string-match-p "^ c begins a session with your files" (duet-test-text list)))
        (duet-compose remote)
        (should (string-match-p "begins with your files" (duet-compose--header)))
        (let ((compose (current-buffer)))
          (duet-test-write-and-send "quiet one")
          (should (duet-test-heard "\\`Sending your files to devbox…\\'"))
          (should (string-match-p "\\` Sending your files to devbox…\\'"
                                  (with-current-buffer compose (duet-compose--header))))
          (duet-test-wait-for-transcript)
          (should (duet-test-heard "\\`devbox has your files\\'"))
          (should-not (buffer-live-p compose)))
        (duet-test-wait-for-state duet-session 'completed)
        (should (eq (duet-connection-state remote) 'ready))
        (duet-test-wait-for-text list "quiet one")
        ;; The agent has the file that is not committed, and the project there has not.
        (duet-test-wait-for (duet-session-worktree duet-session))
        (should (equal (duet-worktree-test-text
                        (concat (duet-get-string (duet-session-worktree duet-session) :dir) "/a"))
                       "two\n"))
        (should (equal (duet-worktree-test-text (concat there "a")) "one\n"))
        ;; Only a new session has files to send.
        (duet-compose remote duet-session)
        (should-not (plist-get (duet-compose--parameters) :send)))
      (let ((default-directory local)
            (duet-host-send nil))
        (let ((session (duet-host-test-new "quiet two")))
          (should-not (duet-session-worktree session))
          (should (equal (duet-session-cwd session) (directory-file-name there))))))))

(ert-deftest duet-host-test-send-toggle ()
  "The user chooses for each prompt whether the session begins with the files here."
  (duet-host-test-with-repository there
    (call-interactively #'duet-new)
    (should (equal (duet-compose--parameters) '(:send t)))
    (duet-test-press "C-c C-t" #'duet-compose-toggle-worktree)
    (should (duet-test-heard "\\`The agent works in the project's directory on devbox\\'"))
    (should-not (duet-compose--parameters))
    (should-not (string-match-p "your files" (duet-compose--header)))
    (duet-test-press "C-c C-t" #'duet-compose-toggle-worktree)
    (should (duet-test-heard "\\`The session begins with your files, in a git worktree on devbox\\'"))
    ;; Several agents do not get the files.
    (should-not (plist-member (duet-compose--attempts '((:agent "a")) '(:send t)) :send))))

(ert-deftest duet-host-test-send-without-repository ()
  "Without a repository here, the user reads why no session begins."
  (duet-host-test-with-repository there
    (delete-directory (concat default-directory ".git") t)
    (call-interactively #'duet-new)
    (duet-test-write-and-send "quiet one")
    (duet-test-wait-for (duet-test-heard "\\`Duet: not sent: .*is in no git repository: run git init"))
    (should (string-match-p "begins with your files" (duet-compose--header)))
    (should (equal (buffer-string) "quiet one"))))

(ert-deftest duet-host-test-send-whose-files ()
  "Emacs sends the files of the local project that the user works in, and no others."
  (duet-host-test-with-repository there
    ;; A list of projects connects to one whose local project is not known.
    (let ((remote (duet-connection-ensure (duet-host-file "devbox" there))))
      (should-not (duet-compose-sends remote))
      (should (eq remote (duet-connection-ensure (duet-connection-directory-here))))
      (should (equal (duet-compose-sends remote) "devbox"))
      (should (equal (duet-connection-local remote) default-directory))
      (duet-host-test-new "quiet one"))
    ;; No file of the home directory is sent because Emacs happens to be there.
    (with-temp-buffer
      (setq default-directory (duet-host-local-directory))
      (duet-test-should-say "there is no directory" (duet-connection-directory-here))
      (make-directory (concat home "there/" (file-name-nondirectory
                                             (directory-file-name default-directory))))
      (should-not (duet-host-local-project (duet-connection-directory-here))))))

(ert-deftest duet-host-test-send-land ()
  "The work of a session that began with the user's files lands here."
  (duet-host-test-with-repository there
    (let* ((local default-directory)
           (demo (concat local "demo.txt"))
           (session (progn (call-interactively #'duet-new)
                           (duet-test-write-and-send "/mode acceptEdits hello")
                           (duet-test-wait-for-transcript)
                           duet-session))
           (remote duet-connection)
           (again (lambda ()
                    (let ((turn (duet-get-string
                                 (duet-test-request remote 'session.prompt
                                                    (list :session (duet-session-id session)
                                                          :prompt "again"))
                                 :turn_uuid)))
                      (duet-test-wait-for (equal (duet-session-leaf-id session) turn))
                      (duet-test-wait-for-state session 'completed))))
           (press (lambda (text)
                    (with-current-buffer "*duet land*"
                      (goto-char (point-min))
                      (search-forward text)
                      (push-button (1- (point))))
                    (duet-test-look))))
      (duet-test-wait-for-state session 'completed)
      ;; The files in the way are those of this machine.
      (write-region "mine\n" nil demo nil 'quiet)
      (duet-land session)
      (duet-test-wait-for (duet-test-heard "\\`Nothing was landed: 1 file of yours would be overwritten\\'"))
      (save-current-buffer
        (funcall press "  demo.txt")
        (should (equal (buffer-file-name) demo))
        (kill-buffer))
      (delete-file demo)
      (duet-worktree-test-commit local)
      (duet-land session)
      (duet-test-wait-for (duet-test-heard "\\`Landed on main: "))
      (should-not (file-exists-p (concat there "demo.txt")))
      ;; The buffer of the local file follows.
      (let ((buffer (find-file-noselect demo)))
        (funcall again)
        (setq duet-test-said nil)
        (duet-land session)
        (duet-test-wait-for (duet-test-heard "\\`Landed on main: "))
        (duet-test-wait-for (string-match-p "again" (with-current-buffer buffer (buffer-string)))))
      ;; The agent gets the user's branch under the name that it has there.
      (funcall again)
      (write-region "other\n" nil demo nil 'quiet)
      (duet-worktree-test-commit local)
      (duet-land session)
      (duet-test-wait-for (duet-test-heard "\\`Nothing was landed: 1 file conflicts with your branch\\'"))
      (funcall press "[Let the agent")
      (should (equal (buffer-string)
                     (format "Merge refs/duet/from/%s into yours and resolve the conflicts"
                             (duet-session-id session)))))))


;;; Where a session is

(ert-deftest duet-host-test-shown ()
  "Lists, transcripts and questions name the host and the project."
  (duet-host-test-with-connection there
    (let* ((session (duet-test-launch remote "hello"))
           (approval (duet-test-question session))
           (shown '()))
      (save-window-excursion
        (duet-sessions-show remote)
        (should (equal (buffer-name) "*duet: devbox:project*"))
        (duet-transcript-show remote session)
        (should (string-match-p "devbox:project" (duet-header session remote)))
        (should-not (string-match-p "devbox" (duet-header session connection)))
        (duet-approvals)
        (should (string-match-p "devbox:project" (duet-test-text (current-buffer))))
        (duet-approval-view approval)
        (should (string-match-p "^Project +devbox:project$"
                                (duet-test-text (duet-approval-view--buffer approval 'duet-approval-view-mode))))
        (duet-projects)
        (duet-test-wait-for (zerop duet-projects--asking))
        (duet-projects--print)
        (should-not duet-projects--problems)
        ;; The host is this machine, so its list has two projects of this name.
        (should (string-match-p "devbox:there/project" (duet-test-text (current-buffer)))))
      (cl-letf (((symbol-function 'duet-notify-unseen-p) #'always))
        (let ((duet-notify-function (lambda (_ text _) (push text shown) nil)))
          (clrhash duet-notify--asked)
          (duet-notify--observe (duet-connection-model remote) 'approval session approval nil)
          (should (string-match-p "devbox:project" (car shown))))))))


(ert-deftest duet-host-test-projects ()
  "The list of all projects has those of hosts, as they were last if a host is away."
  (duet-host-test-with-host there
    (let ((line (concat home "line.sh")))
      (with-temp-file line (insert "exec \"$@\"\n"))
      (with-temp-file (concat home "config/duet/config.toml")
        (insert (format "[hosts.devbox]\ncommand = [\"sh\", %S]\ndirectory = %S\nprogram = %S\n"
                        line (concat home "there") (car duet-rpc-command))))
      (should (zerop (call-process (car duet-rpc-command) nil nil nil
                                   "--host" "devbox" "--root" there "prompt" "quiet there")))
      (cl-flet ((text ()
                  (save-window-excursion
                    (duet-projects)
                    (duet-test-wait-for (zerop duet-projects--asking))
                    (duet-projects--print)
                    (duet-test-text (current-buffer)))))
        (should (string-match-p "devbox:there/project .*quiet there" (text)))
        (should-not duet-projects--problems)
        (with-temp-file line (insert "echo no route >&2; exit 7\n"))
        (let ((text (text)))
          (should (string-match-p "devbox:there/project .*quiet there" text))
          (should (string-match-p "devbox: no route (last seen: now)" text)))))))


;;; Files

(ert-deftest duet-host-test-visit ()
  "Visiting opens the host's file by its prefix, and never a local file of its name."
  (duet-host-test-with-connection there
    (write-region "one\n" nil (concat there "demo.txt") nil 'quiet)
    (let* ((session (duet-test-launch remote "hello"))
           (approval (duet-test-question session)))
      (duet-test-request remote 'approval.decide
                         (list :approval (duet-approval-id approval) :decision "approve"))
      (duet-test-wait-for-state session 'completed)
      (save-window-excursion
        (duet-transcript-show remote session)
        (duet-test-wait-for-text (current-buffer) "demo.txt")
        (dolist (visit (list (lambda () (duet-test-go "@@ demo.txt") (duet-transcript-visit))
                             (lambda () (duet-transcript-visit--file "/etc/passwd" 1))
                             (lambda () (duet-transcript-visit--file "../../../../../../etc/passwd" 1))))
          (duet-test-should-say "is on devbox; to visit files there, set .duet-host-files."
            (funcall visit)))
        (let ((duet-host-files (list (cons "devbox" (concat home "seen")))))
          (make-directory (concat home "seen" there) t)
          (write-region "here\n" nil (concat home "seen" there "demo.txt") nil 'quiet)
          (duet-test-go "@@ demo.txt")
          (duet-transcript-visit)
          (should (equal (buffer-file-name (window-buffer))
                         (concat home "seen" there "demo.txt"))))
        (duet-diff session)
        (duet-test-wait-for-text (window-buffer) "demo.txt")
        (with-current-buffer (window-buffer)
          (duet-test-go "demo.txt")
          (duet-test-should-say "is on devbox; to visit files there" (duet-diff-visit)))))))

(ert-deftest duet-host-test-place-in-prose ()
  "RET on a name in prose says that the file is on the host."
  (let ((duet-connections (make-hash-table :test #'equal)))
    (with-temp-buffer
      (setq default-directory "/duet@devbox/etc/")
      (insert "See passwd.go:3 and /etc/passwd, not here.")
      (goto-char 8)
      (should (equal (duet-transcript-visit--place) '("passwd.go" . 3)))
      (goto-char 25)
      (should (equal (duet-transcript-visit--place) '("/etc/passwd")))
      (goto-char (point-max))
      (should-not (duet-transcript-visit--place))
      (should-not (duet-link-file "passwd")))))

(ert-deftest duet-host-test-revert ()
  "A change on a host does not update the buffer of the local file of that name."
  (let* ((file (make-temp-file "duet-host" nil nil "one\n"))
         (duet-revert--paths nil)
         (model (duet-model-create :root (duet-host-file "devbox" (file-name-directory file))))
         (inhibit-message t))
    (unwind-protect
        (with-current-buffer (find-file-noselect file)
          (write-region "two\n" nil file nil 'quiet)
          (set-file-times file (time-add nil 100))
          (duet-revert--observe model 'file nil file nil)
          (duet-revert--observe model 'worktree nil nil nil)
          (duet-revert--work)
          (should (equal (buffer-string) "one\n"))
          (set-buffer-modified-p nil)
          (kill-buffer))
      (delete-file file))))

(ert-deftest duet-host-test-attachments ()
  "Only the text of a local file goes to a host, and the prompt says whose file it is."
  (let ((duet-connections (make-hash-table :test #'equal))
        (file (make-temp-file "duet-host" nil ".txt" "words\n")))
    (unwind-protect
        (progn
          (with-temp-buffer
            (setq default-directory (duet-host-file "devbox" (file-name-directory file)))
            (should-not (duet-attach-content
                         (format "@%s @%s" (file-name-nondirectory file) file)))
            (let ((resource (plist-get (duet-attach--block file) :resource)))
              (should (equal (plist-get resource :text) "words\n"))
              (should (string-prefix-p "attachment:" (plist-get resource :uri))))
            (should-not (duet-host-of (duet-attach--from))))
          (with-current-buffer (find-file-noselect file)
            (set-mark (point-min))
            (goto-char (point-max))
            (should (string-match-p "\\`\\[a file of another machine, not of devbox\\] "
                                    (duet-compose-region-text "devbox")))
            (should-not (string-match-p "machine" (duet-compose-region-text)))
            (let ((duet-host "devbox"))
              (should (string-match-p "not of devbox" (duet-ask--quote (point-min) (point-max)))))
            (kill-buffer)))
      (delete-file file))))


;;; The line

(defun duet-host-test-children (pid)
  "Return the ids of the child processes of PID."
  (cl-remove-if-not (lambda (child) (eql pid (alist-get 'ppid (process-attributes child))))
                    (list-system-processes)))

(ert-deftest duet-host-test-line-breaks ()
  "The transcript says why the line to a host broke, and continues afterwards."
  (duet-host-test-with-host there
    (let* ((down (concat home "down"))
           (duet-host "devbox"))
      (with-temp-file (concat home "line.sh")
        (insert (format "if [ -e %s ]; then echo 'ssh: 100%% of the route is gone' >&2; exit 255; fi
" down)
                "exec \"$@\"\n"))
      (with-temp-file (concat home "config/duet/config.toml")
        (insert (format "[hosts.devbox]\ncommand = [\"sh\", %S]\ndirectory = %S\nprogram = %S\n"
                        (concat home "line.sh") (concat home "there") (car duet-rpc-command))))
      (duet-model-add-observer #'duet-progress--silence-observe)
      (let ((remote (duet-connection-ensure (duet-connection-directory-here))))
        (duet-test-wait-for (eq (duet-connection-state remote) 'ready))
        (let* ((session (duet-test-launch remote "hello"))
               (approval (duet-test-question session)))
          (save-window-excursion
            (duet-transcript-show remote session)
            (duet-test-wait-for-text (current-buffer) "You asked: hello")
            (write-region "" nil down nil 'quiet)
            (dolist (line (duet-host-test-children
                           (process-id (jsonrpc--process (duet-connection-rpc remote)))))
              (signal-process line 'SIGKILL))
            (duet-test-wait-for
             (and duet-progress--silence-overlay
                  (string-match-p "devbox: ssh: 100% of the route is gone"
                                  (overlay-get duet-progress--silence-overlay 'after-string))))
            (should (string-match-p "no answer" (duet-header session remote)))
            (should (eq (duet-connection-state remote) 'ready))
            (delete-file down)
            (duet-test-wait-for (null (duet-connection-trouble remote)))
            (should-not duet-progress--silence-overlay)
            (duet-test-request remote 'approval.decide
                               (list :approval (duet-approval-id approval) :decision "approve"))
            (duet-test-wait-for-text (current-buffer) "That is all")))))))

(ert-deftest duet-host-test-line-silent ()
  "The transcript shows the words of the daemon's notice until the daemon answers."
  (let* ((duet-connections (make-hash-table :test #'equal))
         (connection (duet-host-test-fake "devbox"))
         (model (duet-connection-model connection))
         (duet-model-observers (list #'duet-progress--silence-observe))
         (inhibit-message t))
    (with-temp-buffer
      (duet-transcript-mode)
      (setq duet-connection connection
            duet-session (make-duet-session :id "s" :model model))
      (duet-connection--notified
       connection 'event '(:kind "daemon.silent" :data (:message "the line to devbox is silent")))
      (should (string-match-p "the line to devbox is silent"
                              (overlay-get duet-progress--silence-overlay 'after-string)))
      (should (equal (duet-connection-status connection) "the line to devbox is silent"))
      (duet-connection--notified
       connection 'event '(:kind "daemon.answers" :data (:message "it answers")))
      (should-not duet-progress--silence-overlay)
      (should-not (duet-connection-status connection)))))


;;; What a host may ask

(ert-deftest duet-host-test-no-tools ()
  "A host gets no tools of Emacs and no trust, and none of its requests has an effect."
  (let* ((duet-connections (make-hash-table :test #'equal))
         (connection (duet-host-test-fake "devbox"))
         (duet-connection-trust-function (lambda (_) t))
         (sent '()))
    (cl-letf (((symbol-function 'duet-connection-request)
               (lambda (_ method params &rest _) (push (cons method params) sent))))
      (duet-connection--greet connection)
      (should (assq 'event.subscribe sent))
      (should-not (assq 'editor.offer sent))
      (should-not (plist-member (alist-get 'initialize sent) :workspaceTrusted))
      ;; A restriction is no trust.
      (let ((duet-connection-trust-function (lambda (_) 'restricted)))
        (duet-connection--greet connection)
        (should (eq (plist-get (alist-get 'initialize sent) :workspaceTrusted) :json-false)))
      (setq sent nil)
      (let ((file (make-temp-file "duet-host" nil nil "secret\n")))
        (unwind-protect
            (with-current-buffer (find-file-noselect file)
              (pcase-dolist (`(,method . ,_) duet-editor--methods)
                (let ((err (should-error (duet-editor-answer
                                          connection method
                                          (list :path file :line 1 :query "s"))
                                         :type 'jsonrpc-error)))
                  (should (equal (alist-get 'jsonrpc-error-code (cddr err)) -32601))))
              (duet-editor--saved)
              (should-not sent)
              (kill-buffer))
          (delete-file file))))))

(defmacro duet-host-test-with-secret (lines &rest body)
  "Run BODY after a host has asked for a key, beside an authinfo file of LINES.
`answers' has the keys sent, `asked' the questions; the user types typed to a
question, after yes."
  (declare (indent 1) (debug (form body)))
  `(let* ((duet-connections (make-hash-table :test #'equal))
          (connection (duet-host-test-fake "devbox"))
          (file (make-temp-file "duet-host" nil nil ,lines))
          (auth-sources (list file))
          (duet-secrets--waiting nil) (duet-secrets--timer nil) (duet-secrets--declined nil)
          (inhibit-message t)
          (agrees t) (typed "typed-1") (asked '()) (answers '()))
     (ignore agrees typed)
     (unwind-protect
         (cl-letf (((symbol-function 'duet-secrets--provide)
                    (lambda (_ _ service secret)
                      (push (cons service (copy-sequence secret)) answers)))
                   ((symbol-function 'y-or-n-p)
                    (lambda (prompt) (push prompt asked) agrees))
                   ((symbol-function 'read-passwd)
                    (lambda (prompt &rest _) (push prompt asked) (copy-sequence typed)))
                   ((symbol-function 'auth-source-search)
                    (lambda (&rest _) (ert-fail "Emacs has looked a key up"))))
           (duet-secrets--observe (duet-connection-model connection) 'secret nil
                                  '(:request_id "r" :service "anthropic") nil)
           ,@body)
       (delete-file file))))

(ert-deftest duet-host-test-secret ()
  "A host gets a key only if the user types it, and the question names the host."
  (duet-host-test-with-secret "machine anthropic login apikey password s3cret-1\n"
    (duet-test-wait-for answers)
    (should (equal answers '(("anthropic" . "typed-1"))))
    (should (cl-every (lambda (prompt) (string-match-p "the host devbox" prompt)) asked))
    (should (string-match-p "devbox:parser" (cadr asked)))))

(ert-deftest duet-host-test-secret-declined ()
  "A host gets no key if the user declines, and does not ask again at once."
  (duet-host-test-with-secret "machine anthropic login apikey password s3cret-1\n"
    (setq agrees nil)
    (duet-test-wait-for answers)
    (should (equal answers '(("anthropic" . ""))))
    (duet-secrets--observe (duet-connection-model connection) 'secret nil
                           '(:request_id "r2" :service "anthropic") nil)
    (duet-test-wait-for (length= answers 2))
    (should (length= asked 1))
    (duet-secrets--observe (duet-connection-model connection) 'connection nil 'ready nil)
    (should-not duet-secrets--declined)))

(ert-deftest duet-host-test-trust-and-preview ()
  "Trust and previews of a project on a host are refused in words."
  (let* ((duet-connections (make-hash-table :test #'equal))
         (duet-connection (duet-host-test-fake "devbox")))
    (duet-test-should-say "decided there: run .duet-rpc --host devbox --root /srv/parser trust."
      (duet-trust))
    (duet-test-should-say "duet-rpc --host devbox preview" (duet-preview))))

(provide 'duet-host-test)
;;; duet-host-test.el ends here
