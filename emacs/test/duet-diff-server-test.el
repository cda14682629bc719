;;; duet-diff-server-test.el --- Tests of diffs from the server  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-diff)

(ert-deftest duet-diff-test-server ()
  "The server returns the changes of each turn."
  (duet-test-with-project connection
    (let ((session (duet-test-launch connection "hello"))
          (file (expand-file-name "demo.txt" (duet-connection-root connection))))
      (save-window-excursion
        (let ((approval (duet-test-wait-for (car (duet-session-approvals session)))))
          (duet-diff session)
          (duet-test-wait-for (not duet-diff--loading))
          (should (string-match-p "no changed file so far" (buffer-string)))
          (duet-test-request connection 'approval.decide
                             (list :approval (duet-approval-id approval)
                                   :decision "approve" :scope "session")))
        ;; The buffer updates when the turn ends.
        (duet-test-wait-for-text (current-buffer) "^● demo.txt  new file$")
        (duet-test-request connection 'session.prompt
                           (list :session (duet-session-leaf-id session)
                                 :prompt "more"))
        (duet-test-wait-for (and (cdr (duet-session-turns session))
                                 (eq (duet-session-state session) 'completed)))
        (duet-diff session)
        (duet-test-wait-for-text (current-buffer) "^● demo.txt  modified$")
        (duet-test-wait-for-text (current-buffer) "^\\+Turn 2: more$")
        (duet-test-go "@@")
        (cl-letf (((symbol-function 'y-or-n-p) #'always)) (duet-diff-revert))
        (duet-test-wait-for (equal (duet-test-demo-file connection) "Turn 1: hello\n"))
        (duet-test-should-say "the last turn"
          (duet-test-press "]" #'duet-diff-later-turn))
        (duet-test-press "[" #'duet-diff-earlier-turn)
        (duet-test-wait-for-text (current-buffer) "^● demo.txt  new file$")
        (should (string-match-p "an earlier turn" (duet-diff--header)))
        (duet-test-should-say "No earlier turn"
          (duet-test-press "[" #'duet-diff-earlier-turn))
        (duet-test-go "@@")
        (cl-letf (((symbol-function 'y-or-n-p) (lambda (_) t)))
          (duet-test-wait-for (not duet-diff--deciding))
          (duet-diff-revert))
        (duet-test-wait-for (not (file-exists-p file)))
        (duet-test-press "]" #'duet-diff-later-turn)
        (duet-test-wait-for-text (current-buffer) "^● demo.txt  modified$")
        (should (equal (duet-test-log) ""))
        ;; Without a server the buffer keeps its text.
        (duet-test-wait-for (not duet-diff--loading))
        (call-interactively #'duet-stop)
        (duet-test-listening
          (duet-test-press "g" #'duet-diff-refresh)
          (should (duet-test-heard "not running")))
        (should-not duet-diff--loading)
        (should (string-match-p "^● demo.txt  modified$" (buffer-string)))))))

(ert-deftest duet-diff-test-key ()
  "`=' shows the changes of the session at point, or of the turn at point."
  (duet-test-with-project connection
    (let ((session (duet-test-launch connection "quiet")))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for (duet-session-leaf-id session))
      (duet-test-request connection 'updateSessionSettings
                         (list :session_id (duet-session-leaf-id session)
                               :permission_mode "acceptEdits"))
      (duet-test-request connection 'session.prompt
                         (list :session (duet-session-leaf-id session) :prompt "edit"))
      (duet-test-wait-for (and (cdr (duet-session-turns session))
                               (eq (duet-session-state session) 'completed)))
      (save-window-excursion
        (switch-to-buffer (duet-sessions-buffer connection))
        (duet-test-wait-for-text (current-buffer) "completed +[0-9]+ quiet")
        (goto-char (point-min))
        (duet-test-press "=" #'duet-diff)
        (duet-test-wait-for-text (current-buffer) "^● demo.txt  new file$")
        (let ((transcript (duet-transcript-open connection session)))
          (duet-test-wait-for-text transcript "❯ edit")
          (switch-to-buffer transcript)
          (goto-char (point-min))
          (duet-test-press "=" #'duet-diff)
          (duet-test-wait-for-text (current-buffer) "has reported no changed file\\.")
          (should-not (string-match-p "vc-diff" (buffer-string)))
          (when (executable-find "git")
            (call-process "git" nil nil nil "init" "-q")
            (duet-test-press "g" #'duet-diff-refresh)
            (duet-test-wait-for-text (current-buffer) "C-x v D (vc-root-diff) shows")
            (duet-test-wait-for-text (current-buffer) "C-x v = (vc-diff) in"))
          (switch-to-buffer transcript)
          (goto-char (point-max))
          (duet-test-press "=" #'duet-diff)
          (duet-test-wait-for-text (current-buffer) "^● demo.txt  new file$"))
        (with-temp-buffer
          (duet-test-should-say "no session here" (call-interactively #'duet-diff)))))))

(provide 'duet-diff-server-test)
;;; duet-diff-server-test.el ends here
