;;; duet-remote-test.el --- Tests of projects on other machines  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The other machine is this one: a method of TRAMP starts a shell here, as in TRAMP's
;; own tests.

;;; Code:

(require 'tramp)
(require 'duet-test-lib)
(require 'duet-attach)
(require 'duet-sessions)
(require 'duet-export)
(require 'duet-projects)
(require 'duet-remote)
(require 'duet-secrets)
(require 'duet-terminal)
(require 'duet-worktree-test)

(defmacro duet-remote-test-with-method (&rest body)
  "Run BODY with a TRAMP method mock that starts a shell on this machine."
  (declare (indent 0) (debug (body)))
  `(let ((tramp-methods
          (cons '("mock" (tramp-login-program "sh") (tramp-login-args (("-i")))
                  (tramp-remote-shell "/bin/sh") (tramp-remote-shell-args ("-c"))
                  (tramp-connection-timeout 60))
                tramp-methods))
         (tramp-default-host-alist (list (list "\\`mock\\'" nil (system-name))))
         (tramp-persistency-file-name nil)
         (tramp-verbose 0)
         (enable-remote-dir-locals nil))
     (skip-unless (not (memq system-type '(windows-nt ms-dos))))
     (unwind-protect (progn ,@body)
       (tramp-cleanup-all-connections)
       (tramp-cleanup-all-buffers))))

(defmacro duet-remote-test-with-project (connection &rest body)
  "Run BODY with CONNECTION to a project on another machine."
  (declare (indent 1) (debug (symbolp body)))
  (let ((local (make-symbol "local")))
    `(duet-remote-test-with-method
       (duet-test-with-project ,local
         (let* ((root (duet-connection-root ,local))
                (default-directory (concat "/mock::" root))
                (,connection nil))
           (duet-test-end ,local)
           (duet-test-end-daemon root)
           (remhash root duet-connections)
           (setq ,connection (duet-connection-ensure default-directory))
           (unwind-protect
               (progn
                 (duet-test-wait-for (eq (duet-connection-state ,connection) 'ready))
                 ,@body)
             (duet-test-end ,connection)))))))


;;; Names

(ert-deftest duet-remote-test-names ()
  "A file name of the server becomes one for Emacs, and the other way round."
  (let ((there "/ssh:box:/srv/p/") (here "/srv/p/"))
    (pcase-dolist (`(,name ,directory ,want)
                   `(("/a/b" ,here "/a/b") ("a/b" ,here "/srv/p/a/b")
                     ("/a/b" ,there "/ssh:box:/a/b") ("a/b" ,there "/ssh:box:/srv/p/a/b")
                     ("~/x" ,there "/ssh:box:~/x")
                     ;; An agent cannot choose the machine.
                     ("/ssh:evil:/x" ,here "/:/ssh:evil:/x")
                     ("/ssh:evil:/x" ,there "/ssh:box:/:/ssh:evil:/x")
                     ("/sudo::/etc/passwd" ,here "/:/sudo::/etc/passwd")))
      (should (equal (list name directory (duet-remote-name name directory))
                     (list name directory want))))
    (pcase-dolist (`(,name . ,want)
                   '(("/srv/p/a" . "/srv/p/a") ("/ssh:box:/srv/p/a" . "/srv/p/a")
                     ("/sudo:root@box:/a" . "/a") ("/:/ssh:evil:/x" . "/ssh:evil:/x")
                     ("/ssh:box:/:/ssh:evil:/x" . "/ssh:evil:/x")))
      (should (equal (duet-remote-local name) want)))
    (pcase-dolist (`(,name . ,want)
                   '(("/srv/p/a/b" . "a/b") ("/ssh:box:/srv/p/a" . "a") ("a" . "a")
                     ("/srv/pq" . nil) ("/srv/p/../x" . nil) ("/etc/x" . nil)))
      (should (equal (list name (duet-remote-inside name there)) (list name want))))
    (should-not (duet-remote-inside "/ssh:evil:/srv/p/a" here))
    (should (duet-remote-same-p "/ssh:box:/x" there))
    (should-not (duet-remote-same-p "/x" there))))

(ert-deftest duet-remote-test-output-is-gone ()
  "A remote program may end after the buffer of its output was killed."
  (let ((output (generate-new-buffer " *output*" t)))
    (kill-buffer output)
    (let ((errors (duet-command--split output)))
      (unwind-protect (should (equal (with-current-buffer errors (buffer-string)) ""))
        (kill-buffer errors)))))

(ert-deftest duet-remote-test-output ()
  "Output of a program is separated from the text before and after it."
  (should (equal (duet-remote-output "Welcome!\nduet: ready\nwords\n\0oops\n")
                 '("words\n" . "oops\n")))
  (should (equal (duet-remote-output "duet: ready\r\nwords") '("words" . ""))))


;;; The server

(ert-deftest duet-remote-test-frames ()
  "Frames of all sizes and characters are transferred unchanged."
  (duet-remote-test-with-method
    (let* ((directory (file-name-as-directory (make-temp-file "duet-remote" t)))
           (connection (duet-rpc-connect :command (append (duet-test-server) '("--test-methods"))
                                         :directory (concat "/mock::" directory))))
      (unwind-protect
          (dolist (text (list "" "Grüße — 日本語 😀 \u0001\u0003\u0004\t\n\r\u007f^S^Q"
                              (make-string 100000 ?ü) (make-string (* 1024 1024) ?x)
                              (apply #'concat (make-list 50000 "日本語😀"))))
            (should (equal (plist-get (duet-rpc-request connection 'echo (list :text text)
                                                        :timeout duet-test-deadline)
                                      :text)
                           text)))
        (duet-rpc-shutdown connection t)
        (delete-directory directory t)))))

(ert-deftest duet-remote-test-last-words ()
  "The end of a remote server is reported with its status and last output."
  (duet-remote-test-with-method
    (let* ((gone nil)
           (connection (duet-rpc-connect
                        :command '("sh" "-c" "read line; echo early >&2; echo späte Worte >&2; exit 3")
                        :directory (concat "/mock::" temporary-file-directory)
                        :on-shutdown (lambda (_) (setq gone t)))))
      (unwind-protect
          (should (string-match-p
                   "exit status 3): späte Worte"
                   (error-message-string
                    (should-error (duet-rpc-request connection 'ping nil
                                                    :timeout duet-test-deadline)
                                  :type 'duet-rpc-died))))
        (duet-test-wait-for gone)
        (duet-rpc-shutdown connection t)))))

(ert-deftest duet-remote-test-no-program ()
  "If the program is missing, a message says what to install and what to set."
  (duet-remote-test-with-method
    (let ((default-directory (concat "/mock::" temporary-file-directory))
          (duet-rpc-command '("duet-rpc-that-is-nowhere")))
      (duet-test-should-say
          "Cannot find the program duet-rpc-that-is-nowhere on /mock:.*; install it there, or set ‘duet-rpc-command’"
        (duet-rpc-connect)))))

(ert-deftest duet-remote-test-command-of-a-host ()
  "Each machine may have its own command, by a connection-local variable."
  (duet-remote-test-with-method
    (let* ((profiles connection-local-profile-alist)
           (criteria connection-local-criteria-alist)
           (directory (concat "/mock::" temporary-file-directory)))
      (connection-local-set-profile-variables
       'duet-remote-test `((duet-rpc-command . ,(duet-test-server))))
      (connection-local-set-profiles '(:application tramp :protocol "mock") 'duet-remote-test)
      (should-not (equal (duet-rpc-process-words) (duet-test-server)))
      (unwind-protect
          (let ((connection (duet-rpc-connect :directory directory)))
            (should (eq t (plist-get (duet-rpc-request connection 'ping nil) :pong)))
            (duet-rpc-shutdown connection t))
        (setq connection-local-profile-alist profiles
              connection-local-criteria-alist criteria)))))


;;; Complete sessions

(ert-deftest duet-remote-test-session ()
  "A remote session works like a local one: its file names can be visited."
  (duet-remote-test-with-project connection
    (should (file-remote-p (duet-connection-root connection)))
    (duet-model-add-observer #'duet-revert--observe)
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-test-question session))
           (transcript (duet-transcript-open connection session)))
      (should-not (file-remote-p (duet-test-wait-for (duet-session-cwd session))))
      (duet-test-request connection 'approval.decide
                         (list :approval (duet-approval-id approval) :decision "approve"))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text transcript "^  @@ demo\\.txt:1$")
      (save-window-excursion
        (switch-to-buffer transcript)
        (should (equal default-directory (duet-connection-root connection)))
        (goto-char (point-min))
        (search-forward "\n  @@ demo.txt")
        (duet-test-press "RET" #'duet-transcript-visit)
        (duet-test-look)
        (should (equal (duet-remote-local buffer-file-name)
                       (duet-remote-local (expand-file-name "demo.txt" (duet-connection-root connection)))))
        (should (file-remote-p buffer-file-name))
        (should (equal (buffer-string) "Turn 1: hello\n"))
        ;; The buffer follows the agent's changes of the file.
        (let ((visiting (current-buffer)))
          (duet-test-request connection 'updateSessionSettings
                             (list :session_id (duet-session-leaf-id session)
                                   :permission_mode "acceptEdits"))
          (duet-test-request connection 'session.prompt
                             (list :session (duet-session-leaf-id session) :prompt "again"))
          (duet-test-wait-for (and (cdr (duet-session-turns session))
                                   (eq (duet-session-state session) 'completed)))
          (duet-test-wait-for-text visiting "Turn 2: again")
          (kill-buffer visiting))
        ;; The changes can be reverted.
        (switch-to-buffer transcript)
        (goto-char (point-max))
        (duet-test-press "=" #'duet-diff)
        (duet-test-look)
        (duet-test-wait-for-text (current-buffer) "^\\+Turn 2: again$")
        (should (string-match-p "^● demo\\.txt" (duet-test-text (current-buffer))))
        (goto-char (point-min))
        (search-forward "+Turn 2")
        (cl-letf (((symbol-function 'y-or-n-p) #'always))
          (duet-test-press "k" #'duet-diff-revert))
        (duet-test-wait-for (equal (duet-test-demo-file connection) "Turn 1: hello\n"))))))

(defun duet-remote-test-server (connection)
  "Return the process id of the server of CONNECTION on the other machine."
  (let ((shell (process-id (jsonrpc--process (duet-connection-rpc connection)))))
    (cl-find-if (lambda (pid)
                  (and (string-match-p "\\`[^ ]+ --stdio\\'"
                                       (or (alist-get 'args (process-attributes pid)) ""))
                       (cl-loop for ancestor = pid
                                then (alist-get 'ppid (process-attributes ancestor))
                                while (and ancestor (> ancestor 1))
                                thereis (eql ancestor shell))))
                (list-system-processes))))

(ert-deftest duet-remote-test-busy ()
  "While Emacs waits for a machine, a timer sends it no request, and retries later."
  (duet-remote-test-with-project connection
    (let* ((root (duet-connection-root connection))
           (file (concat root "f.txt"))
           (tramp (tramp-get-connection-process (tramp-dissect-file-name root)))
           (duet-revert--paths '())
           (asked '()))
      (write-region "old" nil file nil 'quiet)
      (with-current-buffer (find-file-noselect file)
        (write-region "new" nil (duet-remote-local file) nil 'quiet)
        (signal-process (duet-remote-test-server connection) 'SIGKILL)
        (duet-test-wait-for (eq (duet-connection-state connection) 'lost))
        (tramp-set-connection-property tramp "locked" t)
        (cl-letf* ((handle (symbol-function 'tramp-file-name-handler))
                   ((symbol-function 'tramp-file-name-handler)
                    (lambda (&rest arguments)
                      (when (memq (car arguments) '(make-process insert-file-contents file-attributes))
                        (push (car arguments) asked))
                      (apply handle arguments))))
          (duet-revert--observe (duet-connection-model connection) 'file nil (duet-remote-local file) nil)
          (let ((end (+ (float-time) 0.3)))
            (while (< (float-time) end) (accept-process-output nil 0.02)))
          (should-not asked)
          (should (eq (duet-connection-state connection) 'lost)))
        (tramp-flush-connection-property tramp "locked")
        (duet-test-wait-for (equal (buffer-string) "new"))
        (duet-test-wait-for (eq (duet-connection-state connection) 'ready))))))

(ert-deftest duet-remote-test-restart ()
  "A remote server that dies is restarted; a lost machine gets no requests."
  (duet-remote-test-with-project connection
    (let ((model (duet-connection-model connection))
          (session (duet-test-launch connection "quiet stream:10000@50"))
          (states '()))
      (duet-test-wait-for-state session 'running)
      (duet-model-add-observer (lambda (_ kind _session state _extra)
                                 (when (eq kind 'connection) (push state states)))
                               model)
      (signal-process (duet-remote-test-server connection) 'SIGKILL)
      (duet-test-wait-for (memq 'lost states))
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
      ;; The connection breaks.
      (duet-test-listening
        (delete-process (jsonrpc--process (duet-connection-rpc connection)))
        (duet-test-wait-for (eq (duet-connection-state connection) 'lost))
        (should-not (duet-connection-timer connection))
        (should-not (duet-connection-next connection))
        (should (duet-test-heard "g in the list of sessions tries again")))
      (with-current-buffer (duet-sessions-buffer connection)
        (duet-test-press "g" #'duet-sessions-refresh))
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
      ;; The agent has continued there.
      (should (eq (duet-session-state session) 'running))
      (should (equal (duet-get-string (duet-test-request connection 'turn.get
                                                         (list :turn (duet-session-leaf-id session)))
                                      :turn :state)
                     "running")))))

(ert-deftest duet-remote-test-terminal ()
  "A terminal runs on the remote machine, and is shown here."
  (duet-remote-test-with-project connection
    (let ((duet-terminal-backend 'term))
      (save-window-excursion
        (duet-terminal '("/bin/sh" "-c" "echo it is $((6 * 7)) in ${PWD##*/}; exec cat"))
        (duet-test-wait-for-text (current-buffer) "it is 42 in project")
        (kill-buffer)))))

(ert-deftest duet-remote-test-keys ()
  "After a confirmation, a local key goes to another machine without asking again."
  (let ((there (make-duet-connection :root "/mock:box:/srv/p/"))
        (here (make-duet-connection :root "/srv/p/"))
        (duet-secrets--sent-to nil)
        (sent '()) (asked 0) (answer nil))
    (cl-letf (((symbol-function 'duet-secrets--look-up) (lambda (_) (copy-sequence "sk-1")))
              ((symbol-function 'duet-secrets--provide)
               (lambda (_ _ _ secret) (push (copy-sequence secret) sent)))
              ((symbol-function 'y-or-n-p)
               (lambda (prompt)
                 (should (string-match-p "on /mock:box: asks for the key of openai" prompt))
                 (cl-incf asked)
                 (if (eq answer 'quit) (signal 'quit nil) answer))))
      (let ((inhibit-message t))
        (duet-secrets--answer here "1" "openai")
        (should (equal sent '("sk-1")))
        (should (= asked 0))
        (duet-secrets--answer there "2" "openai")
        (setq answer 'quit)
        (duet-secrets--answer there "3" "openai")
        (should (equal sent '("" "" "sk-1")))
        (setq answer t)
        (duet-secrets--answer there "4" "openai")
        (duet-secrets--answer there "5" "openai")
        (should (equal sent '("sk-1" "sk-1" "" "" "sk-1")))
        (should (= asked 3))))))

(ert-deftest duet-remote-test-attached-from-here ()
  "A local file is attached to a prompt without a location on the remote machine."
  (let ((default-directory "/mock:box:/srv/p/")
        (file (make-temp-file "duet remote" nil ".txt" "words")))
    (unwind-protect
        (let ((resource (plist-get (duet-attach--block file) :resource)))
          (should (equal (plist-get resource :text) "words"))
          (should (equal (plist-get resource :uri)
                         (concat "attachment:"
                                 (url-hexify-string (file-name-nondirectory file))))))
      (delete-file file))))

(ert-deftest duet-remote-test-mentioned ()
  "Files of the remote project complete and are attached under their names there."
  (duet-remote-test-with-project connection
    (write-region "Grüße\n" nil (expand-file-name "notes.txt") nil 'silent)
    (with-temp-buffer
      (setq default-directory (duet-connection-root connection))
      (let* ((content (duet-attach-content "Look at @notes.txt."))
             (resource (plist-get (car content) :resource)))
        (should (length= content 1))
        (should (equal (plist-get resource :text) "Grüße\n"))
        (should (equal (plist-get resource :uri)
                       (concat "file://" (duet-remote-local (expand-file-name "notes.txt"))))))
      (let ((duet-attach--most-mentioned 1))
        (should (equal (plist-get (car (duet-attach-content "@notes.txt")) :uri)
                       (concat "file://" (duet-remote-local (expand-file-name "notes.txt")))))))
    (save-window-excursion
      (duet-compose connection)
      (duet-test-wait-for (member "notes.txt" duet-compose--files))
      (set-buffer-modified-p nil))))

(ert-deftest duet-remote-test-lists ()
  "Remote sessions are in the list of all projects, exported and deleted."
  (duet-remote-test-with-project connection
    (let ((session (duet-test-launch connection "quiet Grüße")))
      (duet-test-wait-for-state session 'completed)
      (duet-test-listening
        (save-window-excursion
          (duet-projects)
          (duet-test-wait-for (zerop duet-projects--asking))
          (should (string-match-p "● +completed +project@.* +[0-9]+ quiet Grüße"
                                  (duet-test-text (current-buffer))))
          (duet-sessions-show connection)
          (duet-sessions-go-to (current-buffer) session)
          (duet-export-session session "md" (expand-file-name "out.md"))
          (duet-test-wait-for (duet-test-heard "\\`Wrote /mock:"))
          (should (string-match-p "\\`# quiet Grüße\n"
                                  (with-temp-buffer (insert-file-contents "out.md")
                                                    (buffer-string))))
          (cl-letf (((symbol-function 'yes-or-no-p) #'always))
            (duet-test-press "D" #'duet-delete))
          (duet-test-wait-for (duet-test-heard "\\`1 deleted\\'")))))))


;;; Worktrees

(ert-deftest duet-remote-test-worktree ()
  "Changes in a remote worktree land there, and buffers are updated."
  (duet-test-need "git")
  (duet-remote-test-with-project connection
    (let* ((here (duet-remote-local root))
           (demo (concat (duet-connection-root connection) "demo.txt")))
      (duet-model-add-observer #'duet-revert--observe)
      (write-region "one\n" nil (concat here "demo.txt") nil 'quiet)
      (duet-worktree-test-init here)
      (let* ((session (duet-worktree-test-launch connection "first"))
             (directory (duet-worktree--directory connection session))
             (visiting (find-file-noselect demo)))
        (should (string-prefix-p "/mock:" directory))
        (should (equal (duet-worktree-test-text (concat directory "demo.txt"))
                       "one\nTurn 1: first\n"))
        (with-current-buffer (duet-sessions-buffer connection)
          (duet-land session)
          (duet-test-wait-for (equal (with-current-buffer visiting (buffer-string))
                                     "one\nTurn 1: first\n"))
          (duet-discard-worktree session))
        (duet-test-wait-for (duet-session-lost-worktree-p session))
        (should (equal (duet-worktree-file connection session (concat directory "demo.txt"))
                       demo))))))

(provide 'duet-remote-test)
;;; duet-remote-test.el ends here
