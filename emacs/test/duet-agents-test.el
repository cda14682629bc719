;;; duet-agents-test.el --- Tests of the choice of an agent, and of a session's settings  -*- lexical-binding: t; -*-

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
         (insert "default_agent = \"demo\"\n[agents.theirs]\ndriver = \"command\"\ncommand = [\"echo\", \"x\"]\n"))
       (with-temp-file (expand-file-name "../config/duet/config.toml" root)
         (make-directory (expand-file-name "../config/duet" root) t)
         (insert "[agents.mine]\ndriver = \"command\"\ncommand = [\"echo\", \"mine:\"]\n"))
       (duet-test-end connection)
       (duet-connection-restart connection)
       (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
       (save-window-excursion
         (with-current-buffer (duet-sessions-buffer connection) (duet-agents))
         (setq list (window-buffer (selected-window)))
         (duet-test-wait-for-text list "^ \\* +demo ")
         ,@body))))

(defun duet-agents-test-go-to (name)
  "Move point to the agent NAME."
  (goto-char (point-min))
  (while (not (equal (tabulated-list-get-id) name))
    (should (zerop (forward-line 1)))))

(ert-deftest duet-agents-test-choose ()
  "RET chooses who is asked in new sessions; what cannot be asked says why."
  (duet-agents-test-with
   (with-current-buffer list
     (should (string-match-p "theirs.*you do not trust" (buffer-string)))
     (should (string-match-p "codex.*not installed: npm install" (buffer-string)))
     (dolist (name '("codex" "theirs"))
       (duet-agents-test-go-to name)
       (should-error (call-interactively #'duet-agents-choose) :type 'user-error))
     (duet-agents-test-go-to "codex")
     (call-interactively #'duet-agents-copy-install)
     (should (string-match-p "npm install" (car kill-ring)))
     (duet-agents-test-go-to "mine")
     (call-interactively #'duet-agents-choose)
     (duet-test-wait-for-text list "^ \\* +mine ")
     (should (equal (tabulated-list-get-id) "mine")))
   (with-current-buffer (duet-sessions-buffer connection)
     (call-interactively #'duet-sessions-compose)
     (duet-test-write-and-send "hello"))
   (let ((session (duet-test-wait-for
                   (car (duet-model-session-list (duet-connection-model connection))))))
     (duet-test-wait-for-state session 'completed)
     (should (equal (duet-session-agent session) "mine")))
   (with-current-buffer list (call-interactively #'duet-agents-unchoose))
   (duet-test-wait-for-text list "^ \\* +demo ")))

(ert-deftest duet-agents-test-read ()
  "The agent can be chosen in the minibuffer, from those that can be asked."
  (duet-agents-test-with
   (let (offered)
     (cl-letf (((symbol-function 'completing-read)
                (lambda (_prompt names &rest _) (setq offered names) "mine")))
       (with-current-buffer (duet-sessions-buffer connection)
         (call-interactively #'duet-choose-agent)
         (duet-test-wait-for (duet-agents-chosen connection))))
     (should (equal (duet-agents-chosen connection) "mine"))
     (should (equal (sort offered #'string<) '("demo" "mine"))))
   ;; C-g leaves it as it was.
   (let (asked)
     (cl-letf (((symbol-function 'completing-read)
                (lambda (&rest _) (setq asked t) (signal 'quit nil))))
       (with-current-buffer (duet-sessions-buffer connection)
         (call-interactively #'duet-choose-agent)
         (duet-test-wait-for asked)))
     (should (equal (duet-agents-chosen connection) "mine")))))

(ert-deftest duet-agents-test-mode ()
  "A session whose agent may edit edits without asking."
  (duet-test-with-project connection
    (let ((session (duet-test-launch connection "quiet")))
      (duet-test-wait-for-state session 'completed)
      (with-current-buffer (duet-transcript-open connection session)
        (duet-set-mode session "acceptEdits")
        (duet-test-wait-for (equal (duet-session-mode session) "acceptEdits"))
        (duet-test-request connection 'continueSession
                           (list :session_id (duet-session-leaf-id session)
                                 :query "edit"))
        (duet-test-wait-for (cdr (duet-session-runs session)))
        (duet-test-wait-for-state session 'completed 'waiting_input)
        (should (eq (duet-session-state session) 'completed))
        ;; To let it do all takes a yes.
        (cl-letf (((symbol-function 'completing-read)
                   (lambda (&rest _) "asks nothing"))
                  ((symbol-function 'yes-or-no-p) #'ignore))
          (should-error (call-interactively #'duet-set-mode) :type 'user-error))
        (duet-test-request connection 'ping nil)
        (should (equal (duet-session-mode session) "acceptEdits"))
        (cl-letf (((symbol-function 'read-string) (lambda (&rest _) " big ")))
          (call-interactively #'duet-set-model))
        (duet-test-wait-for
         (equal (duet-get-string (duet-test-request
                                  connection 'getSessionState
                                  (list :session_id (duet-session-leaf-id session)))
                                 :session :model)
                "big"))))))

(provide 'duet-agents-test)
;;; duet-agents-test.el ends here
