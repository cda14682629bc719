;;; duet-compose-test.el --- Tests of compose buffers  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(defmacro duet-compose-test-with (connection &rest body)
  "Run BODY in a compose buffer of a project with CONNECTION."
  (declare (indent 1) (debug (symbolp body)))
  `(duet-test-with-project ,connection
     (let ((duet-compose-history (make-ring 10)))
       (save-window-excursion
         (duet-compose ,connection)
         ,@body))))

(ert-deftest duet-compose-test-nothing-is-lost ()
  "Cancelled, killed and sent prompts can be recalled."
  (duet-compose-test-with connection
    (should-error (call-interactively #'duet-compose-send) :type 'user-error)
    (insert "cancelled")
    (call-interactively #'duet-compose-cancel)
    (duet-compose connection)
    (should (string-empty-p (buffer-string)))
    (insert "killed")
    (kill-buffer)
    (duet-compose connection)
    (insert "draft")
    (call-interactively #'duet-compose-previous)
    (should (equal (buffer-string) "killed"))
    (call-interactively #'duet-compose-previous)
    (should (equal (buffer-string) "cancelled"))
    (should-error (call-interactively #'duet-compose-previous) :type 'user-error)
    (call-interactively #'duet-compose-next)
    (call-interactively #'duet-compose-next)
    (should (equal (buffer-string) "draft"))
    (should-error (call-interactively #'duet-compose-next) :type 'user-error)
    (erase-buffer)
    (duet-test-write-and-send "quiet sent")
    (duet-test-wait-for-transcript)
    (should (equal (ring-ref duet-compose-history 0) "quiet sent"))))

(ert-deftest duet-compose-test-search ()
  "M-r finds an earlier prompt by any of its words."
  (duet-compose-test-with connection
    (duet-test-should-say "No earlier prompt"
      (duet-test-press "M-r" #'duet-compose-search))
    (dolist (text '("first words" "second\nhas two lines" "third"))
      (duet-compose-remember text))
    (insert "draft")
    (duet-test-typing "two TAB RET" (duet-test-press "M-r" #'duet-compose-search))
    (should (equal (buffer-string) "second\nhas two lines"))
    ;; M-p continues from there.
    (duet-test-press "M-p" #'duet-compose-previous)
    (should (equal (buffer-string) "first words"))
    (duet-test-press "M-n" #'duet-compose-next 3)
    (should (equal (buffer-string) "draft"))))

(ert-deftest duet-compose-test-refused ()
  "A prompt that cannot be sent stays, and can be sent later."
  (duet-compose-test-with connection
    (let ((buffer (current-buffer))
          (duet-restart-delays '(1000)))
      (signal-process (process-id (jsonrpc--process (duet-connection-rpc connection)))
                      'SIGKILL)
      (duet-test-wait-for (eq (duet-connection-state connection) 'lost))
      (duet-test-write-and-send "quiet later")
      (should (buffer-live-p buffer))
      (should (equal (with-current-buffer buffer (buffer-string)) "quiet later"))
      (duet-connection-restart connection)
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
      (with-current-buffer buffer (call-interactively #'duet-compose-send))
      (duet-test-wait-for (not (buffer-live-p buffer))))))

(ert-deftest duet-compose-test-gone-on-with ()
  "Composing for the same session resumes the draft; another session has its own."
  (duet-compose-test-with connection
    (let ((buffer (current-buffer))
          (session (make-duet-session :id "t" :model (duet-connection-model connection))))
      (insert "begun")
      (duet-compose connection session)
      (should-not (eq (current-buffer) buffer))
      (duet-compose connection)
      (should (eq (current-buffer) buffer))
      (should (equal (buffer-string) "begun")))))

(ert-deftest duet-compose-test-fork-of-the-last-turn ()
  "A session can be forked from its last turn after that has ended."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet first"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-state session 'completed)
      (save-window-excursion
        (set-buffer buffer)
        (goto-char (point-max))
        (call-interactively #'duet-fork)
        (duet-test-write-and-send "/mode acceptEdits quiet second")
        (duet-test-wait-for-transcript buffer)
        (should-not (eq duet-session session))
        (duet-test-wait-for-state duet-session 'completed)
        (duet-test-wait-for-text (current-buffer) "first\\(.\\|\n\\)*second")
        ;; The mode comes with the session's description, which Emacs asks for.
        (duet-test-wait-for (equal (duet-session-mode duet-session) "acceptEdits")))
      (should (= (length (duet-session-turns session)) 1)))
    (let ((session (duet-test-launch connection "quiet hang")))
      (duet-test-wait-for-state session 'running)
      (with-current-buffer (duet-transcript-open connection session)
        (should-error (duet-fork session) :type 'user-error)))))

(ert-deftest duet-compose-test-context ()
  "`@' is completed to files, the region and diagnostics."
  (duet-test-with-project connection
    (let* ((root (duet-connection-root connection))
           (file (expand-file-name "some-file.txt" root))
           (duet-compose-history (make-ring 10)))
      (write-region "one\ntwo\nthree\n" nil file nil 'silent)
      (save-window-excursion
        (find-file file)
        (transient-mark-mode)
        (goto-char (point-min))
        (forward-line 1)
        (push-mark (point) t t)
        (forward-line 1)
        (duet-compose connection)
        (insert "Look at @some")
        (let* ((data (duet-compose-complete))
               (all (all-completions "@some" (nth 2 data))))
          (should (equal (buffer-substring (nth 0 data) (nth 1 data)) "@some"))
          (should (equal all '("@some-file.txt"))))
        (completion-at-point)
        (should (equal (buffer-string) "Look at @some-file.txt"))
        (insert "\n@reg")
        (completion-at-point)
        (should (string-suffix-p "some-file.txt:2-2\n```\ntwo\n```\n" (buffer-string)))
        ;; An e-mail address is not a mention.
        (insert "me@some")
        (should-not (duet-compose-complete))))))

(ert-deftest duet-compose-test-header ()
  "The header line names the recipient of the prompt and its session."
  (duet-compose-test-with connection
    (let ((shown (lambda () (substring-no-properties (duet-compose--header)))))
      (duet-test-wait-for (string-match-p "\\` New session · demo — C-c C-c send, C-c C-k cancel"
                                          (funcall shown)))
      (let ((duet-compose-parameters-functions
             (list (lambda () '(:agent "mine" :model "big%1" :mode "plan")))))
        (should (string-match-p "\\` New session · mine, big%%1, plan — " (funcall shown))))
      (let ((session (duet-test-launch connection "quiet")))
        (duet-test-wait-for-state session 'completed)
        (duet-test-request connection 'updateSessionSettings
                           (list :session_id (duet-session-leaf-id session)
                                 :title "`100%' \\[it]" :model "big"
                                 :permission_mode "acceptEdits"))
        (duet-test-wait-for (equal (duet-session-title session) "`100%' \\[it]"))
        (duet-compose connection session)
        (should (string-match-p
                 (regexp-quote " Continue 1: `100%%' \\[it] · demo, big, Accept edits — C-c")
                 (funcall shown)))
        ;; The list of sessions has the model too.
        (setf (duet-session-llm session) nil)
        (duet-connection-refresh connection)
        (duet-test-wait-for (equal (duet-session-llm session) "big"))))))

(ert-deftest duet-compose-test-parameters ()
  "A hook function can add parameters to a launch."
  (let ((duet-compose-parameters-functions (list (lambda () '(:title "Called so")))))
    (duet-compose-test-with connection
      (duet-test-write-and-send "quiet please")
      (duet-test-wait-for
       (cl-find "Called so" (duet-model-session-list (duet-connection-model connection))
                :key #'duet-session-title :test #'equal)))))

(defun duet-compose-test-queue (session text)
  "Queue a prompt TEXT in SESSION, whose transcript is the current buffer."
  (call-interactively #'duet-continue)
  (duet-test-write-and-send text)
  (duet-test-wait-for (not (derived-mode-p 'duet-compose-mode)))
  (duet-test-look)
  (duet-test-wait-for-text (current-buffer) (concat "^❯ ([0-9]+\\.[0-9]+: queued, e edits it, k takes it back) " text))
  (should (> (duet-session-queued session) 0)))

(ert-deftest duet-compose-test-take-back ()
  "A queued prompt is taken back and can be edited again."
  (duet-test-with-project connection
    (let* ((duet-compose-history (make-ring 10))
           (session (duet-test-launch connection "quiet stream:5000@20")))
      (save-window-excursion
        (switch-to-buffer (duet-transcript-open connection session))
        (duet-test-wait-for-state session 'running)
        (duet-compose-test-queue session "quiet one")
        (duet-compose-test-queue session "quiet two")
        (goto-char (point-min))
        (duet-test-should-say "No queued prompt" (duet-test-press "k" #'duet-take-back))
        (search-forward "quiet one")
        (setq duet-compose-history (make-ring 10))
        (duet-test-listening
          (duet-test-press "k" #'duet-take-back)
          (duet-test-wait-for (duet-test-heard "Taken back; M-p in a new prompt has it")))
        (duet-test-wait-for (= (duet-session-queued session) 1))
        (should (equal (ring-elements duet-compose-history) '("quiet one")))
        (should (eq (duet-session-state session) 'running))
        ;; The other queued prompt runs next.
        (duet-test-listening
          (duet-test-press "i" #'duet-interrupt)
          (duet-test-wait-for
           (duet-test-heard "^Interrupting; the queued prompt runs next$")))
        (duet-test-wait-for-text (current-buffer) "You asked: quiet two")
        (should-not (string-match-p "You asked: quiet one"
                                    (duet-test-text (current-buffer))))
        (with-temp-buffer
          (duet-test-should-say "No queued prompt"
            (call-interactively #'duet-take-back)))))))

(provide 'duet-compose-test)
;;; duet-compose-test.el ends here
