;;; duet-agents-test.el --- Tests of the choice of an agent  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-agents)

(defmacro duet-agents-test-with (&rest body)
  "Run BODY with `connection' and `list', the buffer that lists its agents."
  (declare (debug (body)))
  `(duet-test-with-project connection
     (let ((duet-agents-chosen (make-hash-table :test #'equal))
           (root (duet-connection-root connection))
           list)
       (with-temp-file (expand-file-name ".duet.toml" root)
         (insert "[agents.theirs]\ndriver = \"command\"\ncommand = [\"echo\", \"x\"]\n"))
       (with-temp-file (expand-file-name "../config/duet/config.toml" root)
         (make-directory (expand-file-name "../config/duet" root) t)
         (insert "default_agent = \"demo\"\n[agents.mine]\ndriver = \"command\"\ncommand = [\"echo\", \"mine:\"]\n"))
       (duet-test-end connection)
       (duet-connection-restart connection)
       (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
       (save-window-excursion
         (with-current-buffer (duet-sessions-buffer connection)
           (call-interactively #'duet-agents))
         (setq list (window-buffer (selected-window)))
         (duet-test-wait-for-text list "^ \\* +demo ")
         ,@body))))

(defun duet-agents-test-go-to (name)
  "Move point to the agent NAME."
  (goto-char (point-min))
  (while (not (equal (tabulated-list-get-id) name))
    (should (zerop (forward-line 1)))))

(ert-deftest duet-agents-test-choose ()
  "RET chooses the agent of new sessions; an unusable agent has a reason."
  (duet-agents-test-with
   (with-current-buffer list
     (should (string-match-p "theirs.*you do not trust" (buffer-string)))
     (should (string-match-p "codex.*not installed: npm install" (buffer-string)))
     (pcase-dolist (`(,name . ,words) '(("codex" . "is not installed: npm")
                                        ("theirs" . "do not trust: M-x duet-trust")))
       (duet-agents-test-go-to name)
       (duet-test-should-say words (duet-test-press "RET" #'duet-agents-choose)))
     (duet-agents-test-go-to "codex")
     (duet-test-press "M-w" #'duet-agents-copy-install)
     (should (string-match-p "npm install" (car kill-ring)))
     (duet-agents-test-go-to "mine")
     (duet-test-should-say "no known install command"
       (duet-test-press "M-w" #'duet-agents-copy-install))
     (goto-char (point-max))
     (pcase-dolist (`(,key . ,command) '(("RET" . duet-agents-choose)
                                         ("M-w" . duet-agents-copy-install)))
       (duet-test-should-say "There is no agent here" (duet-test-press key command)))
     (duet-agents-test-go-to "mine")
     (duet-test-press "RET" #'duet-agents-choose)
     (duet-test-wait-for-text list "^ \\* +mine ")
     (should (equal (tabulated-list-get-id) "mine")))
   (with-current-buffer (duet-sessions-buffer connection)
     (call-interactively #'duet-sessions-compose)
     (duet-test-write-and-send "hello"))
   (let ((session (duet-test-wait-for
                   (car (duet-model-session-list (duet-connection-model connection))))))
     (duet-test-wait-for-state session 'completed)
     (should (equal (duet-session-agent session) "mine")))
   (with-current-buffer list (duet-test-press "u" #'duet-agents-unchoose))
   (duet-test-wait-for-text list "^ \\* +demo ")))

;; The list shows the last known login of an agent with its version.
(ert-deftest duet-agents-test-status ()
  "The list shows versions and the state of each login."
  (duet-agents-test-with
   (with-current-buffer list
     (should (string-match-p "^ \\* +demo +[0-9][^ ]* +not needed" (buffer-string)))
     (duet-agents--print
      `((:name "told" :available t :trusted t :version "1.2.3" :signed_in "no"
         :account "log in first"
         :signed_in_at ,(format-time-string "%FT%TZ" (time-subtract nil 7200) t))
        (:name "hinted" :available t :trusted t :signed_in "unknown"
         :signed_in_hint "it is given A_KEY")
        (:name "silent" :available t :trusted t :signed_in "unknown")
        (:name "odd" :available t :trusted t :version "1\n2" :signed_in "\e[2J"
         :signed_in_at "whenever")))
     (should (string-match-p "^ +told +1\\.2\\.3 +no " (buffer-string)))
     (should (string-match-p "^ +hinted +likely" (buffer-string)))
     (should (string-match-p "^ +silent +not known" (buffer-string)))
     (should-not (string-match-p "\e" (buffer-string)))
     (goto-char (point-min))
     (search-forward " no ")
     (should (equal (get-text-property (- (point) 2) 'help-echo)
                    "log in first\nReported 2 h ago."))
     (search-forward "likely")
     (should (string-prefix-p "it is given A_KEY\n"
                              (get-text-property (1- (point)) 'help-echo))))))

(ert-deftest duet-agents-test-refresh ()
  "`g' updates the list; if the program fails, an error shows and the list stays."
  (duet-agents-test-with
   (with-current-buffer list
     (with-temp-file (expand-file-name "../config/duet/config.toml" root)
       (insert "default_agent = \"demo\"\n[agents.newer]\ndriver = \"command\"\ncommand = [\"echo\", \"x\"]\n"))
     (duet-test-press "g" #'duet-agents-refresh)
     (duet-test-wait-for-text list "^ +newer ")
     (let ((duet-rpc-command '("no-such-program-anywhere")))
       (duet-test-listening
         (duet-test-press "g" #'duet-agents-refresh)
         (should (duet-test-heard "no-such-program-anywhere"))))
     (should (string-match-p "^ +newer " (buffer-string))))))

(ert-deftest duet-agents-test-read ()
  "The minibuffer offers the usable agents."
  (duet-agents-test-with
   (with-current-buffer (duet-sessions-buffer connection)
     (let (offered)
       (minibuffer-with-setup-hook
           (lambda () (setq offered (all-completions "" minibuffer-completion-table)))
         (duet-test-typing "min TAB RET"
           (call-interactively #'duet-choose-agent)
           (duet-test-wait-for (duet-agents-chosen connection))))
       ;; It does not offer the others.
       (should (equal (sort offered #'string<) '("demo" "mine"))))
     (should (equal (duet-agents-chosen connection) "mine"))
     ;; C-g keeps the choice.
     (duet-test-typing "C-g"
       (call-interactively #'duet-choose-agent)
       (duet-test-wait-for (length< unread-command-events 4)))
     (should (equal (duet-agents-chosen connection) "mine"))
     ;; The default is the current choice.
     (duet-test-listening
       (duet-test-typing "RET"
         (call-interactively #'duet-choose-agent)
         (duet-test-wait-for (duet-test-heard "^New sessions use mine$")))))))

(ert-deftest duet-agents-test-set ()
  "A session changes to another agent, chosen from the usable ones."
  (duet-agents-test-with
   (let* ((session (duet-test-launch connection "quiet first"))
          (offered 'none)
          (set (lambda (keys)
                 (with-current-buffer (duet-transcript-open connection session)
                   (duet-test-listening
                     (minibuffer-with-setup-hook
                         (lambda () (setq offered (all-completions "" minibuffer-completion-table)))
                       (duet-test-typing keys
                         (call-interactively #'duet-set-agent)
                         (duet-test-wait-for
                          (duet-test-heard "The next prompt goes to .*$\\|No other agent")))))))))
     (duet-test-wait-for-state session 'completed)
     (duet-test-wait-for (duet-session-modes session))
     (duet-session-merge-agent-info session '(:model (:current "theirs")))
     (funcall set "mi TAB RET")
     ;; Neither the session's own agent nor an unusable one is offered.
     (should (equal offered '("mine")))
     (duet-test-wait-for (equal (duet-session-agent session) "mine"))
     ;; The data of the previous agent are dropped.
     (should-not (duet-session-agent-info session))
     (should-not (duet-session-llm session))
     ;; A refresh from the server agrees.
     (duet-connection-refresh connection)
     (let ((listed nil))
       (duet-connection-request connection 'turn.get
                                (list :turn (duet-session-leaf-id session))
                                :success-fn (lambda (result) (setq listed (duet-get result :turn))))
       (duet-test-wait-for listed)
       (should (equal (duet-get-string listed :requested_agent) "mine")))
     (duet-test-request connection 'session.prompt
                        (list :session (duet-session-leaf-id session) :prompt "second"))
     (duet-test-wait-for-text (duet-transcript-open connection session) "mine:")
     (duet-test-wait-for-state session 'completed)
     (should (equal (duet-session-agent session) "mine"))
     ;; Other clients learn of the change by an event.
     (duet-test-request connection 'session.set
                        (list :session (duet-session-id session) :agent "demo"))
     (duet-test-wait-for (equal (duet-session-agent session) "demo"))
     ;; The agent cannot change during a turn.
     (let ((busy (duet-test-launch connection "quiet hang")))
       (duet-test-wait-for-state busy 'running)
       (with-current-buffer (duet-transcript-open connection busy)
         (should (string-match-p "interrupt it, or wait"
                                 (cadr (should-error (call-interactively #'duet-set-agent)
                                                     :type 'user-error)))))))))

(provide 'duet-agents-test)
;;; duet-agents-test.el ends here
