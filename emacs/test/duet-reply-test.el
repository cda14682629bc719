;;; duet-reply-test.el --- Tests of the box at the end of transcripts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(defun duet-reply-test-type (text)
  "Type TEXT at point, key by key."
  (seq-do (lambda (char)
            (duet-test-press (if (eq char ?\s) "SPC" (string char))
                             #'duet-reply--self-insert))
          text))

(defmacro duet-reply-test-with (names &rest body)
  "Run BODY in a transcript with a box.
NAMES is a list of two symbols for the connection and the session.
The session has finished its first turn."
  (declare (indent 1) (debug ((symbolp symbolp) body)))
  `(duet-test-with-project ,(car names)
     (let* ((duet-compose-history (make-ring 10))
            (kill-ring '())
            (interprogram-cut-function nil)
            (interprogram-paste-function nil)
            (duet-reply-box t)
            (,(cadr names) (duet-test-launch ,(car names) "quiet first")))
       (duet-test-wait-for-state ,(cadr names) 'completed)
       (save-window-excursion
         (switch-to-buffer (duet-transcript-open ,(car names) ,(cadr names)))
         (duet-test-wait-for-text (current-buffer) "That is all")
         ,@body))))

(ert-deftest duet-reply-test-default ()
  "A transcript has the box, unless the user has removed it."
  (should (eq (eval (car (get 'duet-reply-box 'standard-value)) t) t)))

(ert-deftest duet-reply-test-next-mode ()
  "S-TAB in the box changes the mode; elsewhere in the transcript it keeps its meaning."
  (duet-reply-test-with (connection session)
    (goto-char (point-min))
    (duet-test-press "r" #'duet-continue)
    (should (equal (duet-session-mode session) "default"))
    (duet-reply-test-type "x")
    (duet-test-listening
      (duet-test-press "<backtab>" #'duet-next-mode)
      (duet-test-wait-for (equal (duet-session-mode session) "acceptEdits"))
      (duet-test-wait-for (duet-test-heard "^Mode: Accept edits")))
    (should (string-suffix-p "\n❯ x\n\n" (duet-test-text (current-buffer))))
    (goto-char (point-min))
    (should (eq (key-binding (kbd "<backtab>")) #'duet-section-toggle-all))
    ;; A prompt buffer for the same session has the key; one for a new session says what to type.
    (with-current-buffer (progn (duet-compose connection session) (current-buffer))
      (duet-test-press "<backtab>" #'duet-next-mode)
      (duet-test-wait-for (equal (duet-session-mode session) "plan"))
      (kill-buffer))
    (with-current-buffer (progn (duet-compose connection) (current-buffer))
      (duet-test-should-say "Begin the prompt with /mode"
        (duet-test-press "<backtab>" #'duet-next-mode))
      (kill-buffer))))

(ert-deftest duet-reply-test-switched-on ()
  "A box that is enabled in an open transcript is at the bottom of its window."
  (duet-test-with-project connection
    (let* ((duet-reply-box nil)
           (session (duet-test-launch connection "quiet stream:300@4000"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "chunk 300 That is all")
      (save-window-excursion
        (delete-other-windows)
        (switch-to-buffer buffer)
        (goto-char (point-max))
        ;; Emacs by itself puts the end in the middle.
        (set-window-start nil (save-excursion (forward-line (- (/ (window-body-height) 2))) (point)))
        (customize-set-variable 'duet-reply-box t)
        (should (duet-section-get 'reply))
        (should (<= (- (window-body-height) (count-screen-lines (window-start) (point-max)) 1) 0))
        (customize-set-variable 'duet-reply-box nil)
        (should-not (duet-section-get 'reply))
        (should (<= (- (window-body-height) (count-screen-lines (window-start) (point-max)) 1) 0))))))

(ert-deftest duet-reply-test-sends ()
  "RET sends the text at the end; messages appear before the box."
  (duet-reply-test-with (connection session)
    (goto-char (point-min))
    (duet-test-press "r" #'duet-continue)
    (duet-reply-test-type "quiet 2nd n x")
    (should (string-suffix-p "\n❯ quiet 2nd n x\n\n" (duet-test-text (current-buffer))))
    (duet-test-press "DEL" #'delete-backward-char 1)
    (duet-test-press "C-j" #'duet-reply-newline)
    (duet-reply-test-type "y")
    (duet-test-press "RET" #'duet-reply-send)
    (duet-test-wait-for-text (current-buffer)
                             "❯ quiet 2nd n \ny\n\nHello\\(.*\n\\)*\n❯ \n\n\\'")
    (should (equal (ring-ref duet-compose-history 0) "quiet 2nd n \ny"))
    (duet-test-wait-for-state session 'completed)
    ;; Point is in the box for the next prompt.
    (duet-reply-test-type "z")
    (should (string-suffix-p "\n❯ z\n\n" (duet-test-text (current-buffer))))
    ;; The rest of the buffer is read-only.
    (dolist (place (list (point-min) (1- (point-max)) (point-max)
                         (1- (car (duet-reply--bounds)))))
      (goto-char place)
      (unless (= place (cdr (duet-reply--bounds)))
        (should-error (insert "no") :type 'text-read-only)
        (when (< place (point-max))
          (should-error (delete-char 1) :type 'text-read-only))))
    ;; The end of the buffer cannot be deleted.
    (goto-char (cdr (duet-reply--bounds)))
    (should-error (delete-region (point) (point-max)) :type 'text-read-only)
    (should-error (delete-char 1) :type 'text-read-only)
    (goto-char (point-max))
    (duet-reply-test-type "nq")
    (kill-new "yanked")
    (duet-test-press "C-y" #'duet-reply--yank)
    (should (string-suffix-p "\n❯ znqyanked\n\n" (duet-test-text (current-buffer))))
    (should (equal (duet-test-log) ""))))

(ert-deftest duet-reply-test-pasted ()
  "Pasted text is part of the box, and can be edited."
  (duet-reply-test-with (connection session)
    (duet-reply-go session)
    (insert (propertize "pasted text" 'face 'bold 'invisible t))
    (should (equal (buffer-substring (car (duet-reply--bounds)) (cdr (duet-reply--bounds)))
                   "pasted text"))
    (goto-char (car (duet-reply--bounds)))
    (should-not (get-text-property (point) 'invisible))
    (duet-reply-test-type "n")
    (delete-region (point) (+ (point) 3))
    (should (equal (duet-compose--text) "nted text"))
    (duet-test-press "C-a" #'duet-reply-beginning)
    (should (= (point) (car (duet-reply--bounds))))
    (should (eq (duet-section-at) (duet-section-get 'reply)))
    ;; Folding all sections does not hide the box.
    (insert "one\ntwo ")
    (call-interactively #'duet-section-toggle-all)
    (should-not (invisible-p (1- (cdr (duet-reply--bounds)))))
    ;; Reloading the session keeps the box.
    (duet-transcript-refresh)
    (duet-test-wait-for-text (current-buffer) "That is all\\(.*\n\\)*\n❯ one\ntwo nted text\n\n\\'")))

(ert-deftest duet-reply-test-keys ()
  "The box has earlier prompts, completion, and a key for a compose buffer."
  (duet-reply-test-with (connection session)
    (duet-compose-remember "quiet earlier")
    (duet-compose-remember "another\nof two lines")
    (duet-reply-go session)
    (insert "draft")
    (duet-test-press "M-p" #'duet-compose-previous)
    (should (equal (duet-compose--text) "another\nof two lines"))
    (duet-test-press "M-p" #'duet-compose-previous)
    (should (equal (duet-compose--text) "quiet earlier"))
    (duet-test-press "M-n" #'duet-compose-next 2)
    (should (equal (duet-compose--text) "draft"))
    (duet-test-typing "earl TAB RET" (duet-test-press "M-r" #'duet-compose-search))
    (should (equal (duet-compose--text) "quiet earlier"))
    (duet-test-press "C-c C-k" #'duet-reply-clear)
    (should (equal (duet-compose--text) ""))
    ;; @file
    (write-region "x" nil (expand-file-name "some-file.txt" (duet-connection-root connection))
                  nil 'silent)
    (duet-compose--list-files)
    (duet-test-wait-for duet-compose--files)
    (insert "see @some")
    (duet-test-press "TAB" #'completion-at-point)
    (should (equal (duet-compose--text) "see @some-file.txt"))
    ;; This is a command of the agent.
    (duet-session-merge-agent-info session '(:commands [(:name "review" :description "Look")]))
    (duet-compose--replace "/rev")
    (duet-test-press "TAB" #'completion-at-point)
    (should (string-prefix-p "/review" (duet-compose--text)))
    (let ((transcript (current-buffer)))
      (duet-test-press "C-c C-e" #'duet-reply-compose)
      (should (derived-mode-p 'duet-compose-mode))
      (should (string-prefix-p "/review" (buffer-string)))
      (with-current-buffer transcript
        (should (equal (duet-compose--text) ""))
        ;; The text is not lost.
        (insert "unsent")
        (kill-buffer)))
    (should (equal (ring-ref duet-compose-history 0) "unsent"))))

(ert-deftest duet-reply-test-question ()
  "A question appears before the box, and does not take typed text."
  (duet-reply-test-with (connection session)
    (duet-reply-go session)
    (duet-test-listening
      (duet-test-request connection 'session.prompt
                         (list :session (duet-session-leaf-id session) :prompt "hello"))
      (duet-test-wait-for (car (duet-session-approvals session)))
      (duet-approvals--footer)
      (duet-reply-test-type "ada")
      (should (string-match-p "\n\\? Write\\(.*\n\\)*\n❯ ada\n\n\\'"
                              (duet-test-text (current-buffer))))
      (should (car (duet-session-approvals session)))
      ;; The header line names a key that works at point.
      (should (string-match-p "1 open: C-c C-j\\_>" (duet-header session connection)))
      (duet-test-press "C-c C-j" #'duet-approval-next)
      (should (get-text-property (point) 'duet-approval))
      (should (string-match-p "1 open: j\\_>" (duet-header session connection)))
      (should (eq (key-binding "y") #'duet-approval-allow)))))

(ert-deftest duet-reply-test-answers ()
  "In the box, the keys of a question work after a prefix that the header names."
  (duet-reply-test-with (connection session)
    (duet-reply-go session)
    (cl-flet ((ask (query)
                (duet-test-request connection 'session.prompt
                                   (list :session (duet-session-leaf-id session) :prompt query))
                (prog1 (duet-test-question session)
                  (duet-test-wait-for-state session 'waiting_input)
                  (duet-approvals-flush)
                  (duet-reply-test-type "ad"))))
      (should-not (string-match-p "C-c C-q" (duet-header session connection)))
      (ask "hello")
      (should (string-match-p "1 open: C-c C-j\\_>.*C-c C-q y Allow, n Deny"
                              (duet-header session connection)))
      (save-excursion
        (goto-char (point-min))
        (should-not (string-match-p "C-c C-q" (duet-header session connection))))
      (duet-test-press "C-c C-q v" #'duet-approval-view)
      (should (derived-mode-p 'duet-approval-view-mode))
      (quit-window)
      (duet-test-press "C-c C-q y" #'duet-approval-allow)
      (duet-test-wait-for-state session 'completed)
      (should (equal (duet-test-demo-file connection) "Turn 2: hello\n"))
      (ask "hello again")
      (duet-test-press "C-c C-q n" #'duet-approval-deny)
      (duet-test-wait-for-state session 'completed)
      (should (equal (duet-test-demo-file connection) "Turn 2: hello\n"))
      (ask "ask")
      (should (string-match-p "C-c C-q r Answer" (duet-header session connection)))
      (let ((last-command-event ?2))
        (duet-test-press "C-c C-q 2" #'duet-approval-choose))
      (duet-test-wait-for-text (current-buffer) "You answered: green")
      ;; The draft is still there.
      (should (equal (duet-compose--text) "adadad"))
      (duet-test-wait-for-state session 'completed)
      (duet-test-should-say "No question is here; C-c C-j goes to the next one"
        (call-interactively #'duet-approval-allow)))))

(ert-deftest duet-reply-test-header ()
  "The header line is redrawn when point enters or leaves the box."
  (duet-reply-test-with (connection session)
    (goto-char (point-min))
    (run-hooks 'post-command-hook)
    (cl-flet ((drawn ()
                (let ((count 0))
                  (cl-letf (((symbol-function 'force-mode-line-update)
                             (lambda (&optional _all) (setq count (1+ count)))))
                    (run-hooks 'post-command-hook))
                  count)))
      (duet-reply-go session)
      (should (= (drawn) 1))
      (insert "words")
      (should (= (drawn) 0))
      (goto-char (point-min))
      (should (= (drawn) 1)))))

(ert-deftest duet-reply-test-now ()
  "A key sends the text to the agent while it works; RET queues it."
  (duet-reply-test-with (connection session)
    (duet-reply-go session)
    (should-not (string-match-p "C-c C-n" (duet-header session connection)))
    (duet-test-listening
      (insert "quiet permit:1")
      (duet-test-press "C-c C-n" #'duet-reply-send-now)
      ;; An idle agent gets the text like any other prompt.
      (duet-test-wait-for (duet-test-heard "\\`Sent\\'"))
      (duet-test-wait-for (car (duet-session-approvals session)))
      (duet-test-wait-for-state session 'waiting_input)
      (should (string-match-p " C-c C-n now" (duet-header session connection)))
      (save-excursion
        (goto-char (point-min))
        (should-not (string-match-p "C-c C-n" (duet-header session connection))))
      (insert "Use the other file")
      (duet-test-press "C-c C-n" #'duet-reply-send-now)
      (duet-test-wait-for (duet-test-heard "\\`Sent: the agent has it\\'"))
      (insert "quiet last")
      (duet-test-press "RET" #'duet-reply-send)
      (duet-test-wait-for (duet-test-heard "\\`Queued: it runs when this turn has ended\\'"))
      (should (equal (duet-compose--text) "")))
    (duet-test-request connection 'approval.decide
                       (list :approval (duet-approval-id (car (duet-session-approvals session)))
                             :decision "approve"))
    (duet-test-wait-for-text (current-buffer) "❯ quiet last\n\nHello.*That is all")
    (duet-test-wait-for-state session 'completed)
    (should-not (string-match-p "C-c C-n" (duet-header session connection)))
    (let ((text (duet-test-text (current-buffer))))
      (should (string-match-p
               "❯ quiet permit:1\n\\(.*\n\\)*❯ Use the other file\n\nYou said meanwhile: Use the other file\\(.*\n\\)*❯ quiet last"
               text))
      ;; The transcript shows the text once.
      (should (= (length (split-string text "❯ Use the other file")) 2)))
    (should (equal (duet-test-log) ""))))

(defconst duet-reply-test-deaf-agent
  "#!/bin/sh
answer() { printf '{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\\n' \"$id\" \"$1\"; }
while read -r line; do
	id=${line#*'\"id\":'} id=${id%%,*}
	case $line in
	*'\"initialize\"'*) answer '\"result\":{\"protocolVersion\":1,\"agentInfo\":{\"name\":\"theirs\"}}' ;;
	*'\"session/new\"'*) answer '\"result\":{\"sessionId\":\"s\"}' ;;
	esac
done
"
  "An agent whose turn never ends, and that accepts no message meanwhile.")

(ert-deftest duet-reply-test-now-deaf ()
  "A message that the agent cannot take while it works is queued.
This also works from a compose buffer."
  (duet-test-with-agent duet-reply-test-deaf-agent "theirs" folder
    (let* ((duet-reply-box t)
           (session (duet-test-launch connection "go" :agent "theirs")))
      (duet-test-wait-for-state session 'running)
      (save-window-excursion
        (switch-to-buffer (duet-transcript-open connection session))
        (duet-test-wait-for-text (current-buffer) "❯ go")
        (duet-reply-go session)
        (duet-test-listening
          (insert "and this")
          (duet-test-press "C-c C-n" #'duet-reply-send-now)
          (duet-test-wait-for
           (duet-test-heard "\\`Queued: it runs when this turn has ended (the agent cannot take it now)\\'")))
        (duet-test-wait-for (= (duet-session-queued session) 1))
        (duet-test-listening
          (insert "and that")
          (duet-test-press "C-c C-e" #'duet-reply-compose)
          (should (string-match-p " C-c C-c send, C-c C-n now, C-c C-k cancel" (duet-compose--header)))
          (duet-test-press "C-c C-n" #'duet-compose-send-now)
          (duet-test-wait-for (duet-test-heard "the agent cannot take it now")))
        (duet-test-wait-for (= (duet-session-queued session) 2))))))

(ert-deftest duet-reply-test-refused ()
  "Text that the server refuses stays in the box."
  (duet-reply-test-with (connection session)
    (duet-reply-go session)
    (insert "quiet later")
    (let ((duet-restart-delays '(1000)))
      (signal-process (process-id (jsonrpc--process (duet-connection-rpc connection)))
                      'SIGKILL)
      (duet-test-wait-for (eq (duet-connection-state connection) 'lost))
      (duet-test-listening
        (duet-test-press "RET" #'duet-reply-send)
        (duet-test-wait-for (duet-test-heard "not sent"))))
    (should (equal (duet-compose--text) "quiet later"))
    (duet-connection-restart connection)
    (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
    (duet-test-press "RET" #'duet-reply-send)
    (duet-test-wait-for-text (current-buffer) "❯ quiet later\n\nHello")))

(ert-deftest duet-reply-test-none ()
  "Without the option there is no box, and prompts have a compose buffer."
  (duet-test-with-project connection
    (let ((session (duet-test-launch connection "quiet")))
      (save-window-excursion
        (switch-to-buffer (duet-transcript-open connection session))
        (should-not (duet-section-get 'reply))
        (duet-test-should-say "No prompt box" (call-interactively #'duet-reply-send))
        (duet-test-press "r" #'duet-continue)
        (should (derived-mode-p 'duet-compose-mode))))))

(provide 'duet-reply-test)
;;; duet-reply-test.el ends here
