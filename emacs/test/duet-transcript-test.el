;;; duet-transcript-test.el --- Tests of transcripts with the real server  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(ert-deftest duet-transcript-test-launch-and-stream ()
  "Messages of an agent are shown as they arrive, and complete in the end."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet think stream:50@20"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-text buffer "chunk 2")
      (should-not (string-match-p "chunk 50" (duet-test-text buffer)))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "chunk 50")
      (let ((text (duet-test-text buffer)))
        (should (string-match-p "^❯ quiet think stream:50@20$" text))
        (should (string-match-p "Thought" text))
        (should (= (length (split-string text "chunk 1 ")) 2)))
      (should (equal (duet-test-log) "")))))

(ert-deftest duet-transcript-test-edit-and-question ()
  "A turn with an edit shows a plan, a tool call with its diff, and a question."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "hello"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-state session 'waiting_input)
      (duet-test-wait-for-text buffer "^Plan\n  ✓ Read the request\n  ▸ Edit demo.txt\n  ○ Sum up$")
      (duet-test-wait-for (duet-session-approvals session))
      (with-current-buffer buffer
        (duet-approvals--footer)
        ;; The question shows the change, directly above the keys; the tool call does not.
        (should (string-match-p
                 "\n\n\\? Write  demo.txt \\+1 −0\n  @@ demo.txt:1\n  \\+Turn 1: hello\n  \\[y\\] Allow"
                 (duet-test-text buffer)))
        (should-not (string-match-p "^○ Write" (duet-test-text buffer)))
        (goto-char (point-min))
        (search-forward "+Turn 1")
        (should (eq (get-text-property (point) 'face) 'diff-added))
        (should (string-match-p "waiting for you" (duet-header duet-session duet-connection)))
        (setf (duet-session-agent session) "100%b")
        (should (string-match-p "100%%b" (duet-header duet-session duet-connection)))
        ;; A percent sign follows a space, as in all clients.
        (setf (duet-session-usage session) '(:context_used 259 :context_size 1000))
        (should (string-match-p "context 26 %%" (duet-header duet-session duet-connection))))
      (let ((approval (duet-test-wait-for (car (duet-session-approvals session)))))
        (duet-test-request connection 'approval.decide
                           (list :approval (duet-approval-id approval)
                                 :decision "approve")))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "^● Write demo.txt \\+1 −0\n  @@ demo.txt:1")
      (duet-test-wait-for-text buffer "That is all")
      ;; The change of the turn is the same.
      (should-not (string-match-p "^±" (duet-test-text buffer)))
      (with-current-buffer buffer
        (goto-char (point-min))
        (search-forward "@@ demo")
        (save-window-excursion
          (duet-transcript-visit)
          (should (equal (file-name-nondirectory buffer-file-name) "demo.txt")))))))

(ert-deftest duet-transcript-test-places-in-prose ()
  "RET visits the file, the line or the address that an agent has written."
  (duet-test-with-project connection
    (let* ((file (expand-file-name "src/notes.txt" (duet-connection-root connection)))
           (session (progn
                      (make-directory (file-name-directory file))
                      (write-region "one\ntwo\nthree\n" nil file nil 'silent)
                      (duet-test-launch connection "quiet src/notes.txt:2, src/notes.txt. nowhere.txt:3 https://example.org/a?b=1")))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "That is all")
      (with-current-buffer buffer
        (cl-loop
         for (text . line) in '(("src/notes.txt:2" . 2) ("src/notes.txt." . 1))
         do (save-window-excursion
              (goto-char (point-min))
              (search-forward "You asked")
              (search-forward text)
              (goto-char (match-beginning 0))
              (call-interactively #'duet-transcript-visit)
              (should (equal (list buffer-file-name (line-number-at-pos))
                             (list file line)))
              (kill-buffer)))
        (goto-char (point-max))
        (search-backward "https:")
        (let* ((visited nil)
               (browse-url-browser-function (lambda (url &rest _) (setq visited url))))
          (call-interactively #'duet-transcript-visit)
          (should (equal visited "https://example.org/a?b=1")))
        ;; A missing file is a plain word; RET does not fold prose.
        (search-backward "nowhere")
        (duet-test-should-say "Nothing to go to here; TAB folds"
          (call-interactively #'duet-transcript-visit))
        (should-not (duet-section-folded-p (duet-section-at)))
        (duet-test-press "TAB" #'duet-section-toggle)
        (duet-test-press "RET" #'duet-transcript-visit)
        (should-not (duet-section-folded-p (duet-section-at)))))))

(ert-deftest duet-transcript-test-fold-and-move ()
  "Sections fold and unfold, and `n' and `p' move between them."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet tools:3"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "That is all")
      (with-current-buffer buffer
        (goto-char (point-min))
        (should (looking-at "❯ quiet"))
        (duet-test-press "n" #'duet-section-next)
        (should (looking-at "Hello from"))
        (duet-test-press "n" #'duet-section-next)
        (should (looking-at "● "))
        (let ((body (1+ (line-end-position))))
          (should (invisible-p body))
          (duet-test-press "TAB" #'duet-section-toggle)
          (should-not (invisible-p body))
          (goto-char body)
          (duet-test-press "TAB" #'duet-section-toggle)
          (should (invisible-p body))
          (should (looking-at "● "))
          (duet-test-press "<backtab>" #'duet-section-toggle-all)
          (duet-test-press "<backtab>" #'duet-section-toggle-all)
          (should-not (invisible-p body)))
        (duet-test-press "p" #'duet-section-previous)
        (should (looking-at "Hello from"))
        (duet-test-press "p" #'duet-section-previous 5)
        (should (bobp))
        (goto-char (point-max))
        (duet-test-press "p" #'duet-section-previous)
        (should (looking-at "The command\\|That\\|Tools\\|[A-Z]"))))))

(ert-deftest duet-transcript-test-changes-come-late ()
  "A tool call unfolds when it gets its changes, unless the user has folded it."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet tools:2"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "That is all")
      (with-current-buffer buffer
        (pcase-let ((`(,first ,second)
                     (cl-remove-if-not #'duet-tool-p (duet-session-message-list session))))
          (cl-flet ((section (tool) (duet-section-get (duet-message-key tool))))
            (goto-char (duet-section-beg (section second)))
            (duet-section-toggle)
            (duet-section-toggle)
            (dolist (tool (list first second))
              (should (duet-section-folded-p (section tool)))
              (setf (duet-tool-diffs tool)
                    '((:path "/a" :old_text "one\n" :new_text "two\n")))
              (duet-transcript--update tool 'redraw))
            (should-not (duet-section-folded-p (section first)))
            (should (duet-section-folded-p (section second)))
            (duet-transcript--update first 'redraw)
            (should-not (duet-section-folded-p (section first)))))))))

(ert-deftest duet-transcript-test-summaries ()
  "The line of a folded call shows its result."
  (pcase-dolist
      (`(,kind ,status ,result ,summary)
       '(("execute" completed "one\nand two\n\n" "and two")
         ("execute" failed "\e[31mtwo\e[0m  \n 1 of 3 failed\n" "1 of 3 failed")
         ("read" completed "a\nb\nc\n" "3 lines")
         ("read" completed "a\nb" "2 lines")
         ("search" completed "src/rows.py:1: a row\n" "src/rows.py:1: a row")
         ("read" failed "File not found\nNothing was read" "Nothing was read")
         ("execute" completed " \n" nil)
         ("execute" running nil nil)
         (nil completed "all is fine" "all is fine")
         ;; A fence and its language are skipped.
         ("execute" completed "```console\none\nand two\n```" "and two")
         ("execute" completed "~~~\nand two\n~~~\n" "and two")
         ("execute" completed "See:\n```\nand two\n```" "and two")
         ("execute" completed "```\n```" nil)
         ("execute" completed "{\n  \"a\": 1\n}\n" "3 lines")
         ("execute" completed "```json\n{\n  \"a\": 1\n}\n```\n" "3 lines")
         ("read" completed "```py\na\nb\n```\n" "2 lines")
         ("execute" completed "42\n" "1 line")
         ("search" completed "src/rows.py:1\n" "1 line")
         ("execute" failed "1 of 3 failed\nFAIL\n" "1 of 3 failed")
         ("execute" failed "FAIL\n" "1 line")
         (nil completed "完成しました" "完成しました")))
    (should (equal (duet-render-summary
                    (make-duet-tool :kind 'tool :tool-kind kind :status status
                                    :result result))
                   summary)))
  (should-not (duet-render-summary (make-duet-message :kind 'thinking)))
  (should (equal (duet-render-summary
                  (make-duet-tool :kind 'tool :status 'failed :refused-by "a rule"
                                  :refusal "no builds" :result "not run"))
                 "not run: denied by a rule: no builds")))

(ert-deftest duet-transcript-test-headings ()
  "The line of a folded call describes the call, with any title."
  (pcase-dolist
      (`(,title ,input ,paths ,heading)
       '(("Read src/rows.py" (:file_path "/p/src/rows.py") ("/p/src/rows.py") "Read src/rows.py")
         ("Read" (:file_path "/p/src/rows.py") ("/p/src/rows.py") "Read p/src/rows.py")
         ("Grep" (:count 3 :pattern "a row\nb") nil "Grep a row")
         ("Bash" (:command "make all\nmake test") nil "Bash make all")
         ("make all" (:command "make all") nil "make all")
         ("```sh\nmake all\n```" (:command "make all") nil "make all")
         ("```" nil nil "Tool")
         ("Task" nil nil "Task")))
    (let ((tool (make-duet-tool
                 :kind 'tool :name "Tool" :title title :input input :paths paths :status 'completed
                 :session (make-duet-session :model (duet-model-create :root "/")))))
      (should (equal (substring-no-properties (car (split-string (duet-render tool) "\n")))
                     (concat (substring-no-properties (duet-look-state 'completed)) " " heading))))))

(ert-deftest duet-transcript-test-interrupt-and-continue ()
  "An interrupted session is shown as such, and continues with the next prompt."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet stream:1000@50"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-text buffer "chunk 2")
      (with-current-buffer buffer
        (call-interactively #'duet-interrupt)
        (duet-test-wait-for-state session 'interrupted)
        (duet-test-wait-for-text buffer "^■ Interrupted")
        (should-error (call-interactively #'duet-interrupt) :type 'user-error)
        (save-window-excursion
          (call-interactively #'duet-continue)
          (duet-test-write-and-send "quiet once more"))
        (duet-test-wait-for-state session 'completed)
        (duet-test-wait-for-text buffer "❯ quiet once more\n\nHello")))))

(ert-deftest duet-transcript-test-queue ()
  "A prompt that is sent while the agent works is shown as queued, and runs later."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet stream:40@40"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-text buffer "chunk 2")
      (with-current-buffer buffer
        (save-window-excursion
          (call-interactively #'duet-continue)
          (duet-test-write-and-send "quiet and then this")))
      (duet-test-wait-for-text buffer "chunk [0-9]+ \n\n❯ (1\\.2: queued, e edits it, k takes it back) quiet and then this")
      (should (eq (duet-session-state session) 'running))
      (duet-test-wait-for (and (eq (duet-session-state session) 'completed)
                               (zerop (duet-session-queued session))))
      (duet-test-wait-for-text buffer "chunk 40.*\n\n❯ quiet and then this\n\nHello"))))

(ert-deftest duet-transcript-test-visit ()
  "RET and a click visit the named file, fold, and report a missing file."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "hello"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-request connection 'approval.decide
                         (list :approval
                               (duet-approval-id
                                (duet-test-wait-for (car (duet-session-approvals session))))
                               :decision "approve"))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "^● Write demo.txt \\+1 −0")
      (save-window-excursion
        (dolist (press (list (lambda () (duet-test-press "RET" #'duet-transcript-visit))
                             (lambda () (duet-test-click #'duet-transcript-visit-mouse))))
          (switch-to-buffer buffer)
          (goto-char (point-min))
          (search-forward "@@ demo")
          (funcall press)
          (should (equal (file-name-nondirectory (buffer-file-name (window-buffer)))
                         "demo.txt")))
        (switch-to-buffer buffer)
        (delete-file (expand-file-name "demo.txt" (duet-connection-root connection)))
        (search-backward "@@ demo")
        (duet-test-should-say "File .*demo.txt no longer exists"
          (duet-test-press "RET" #'duet-transcript-visit))
        ;; A heading without a file folds; the text below it does not.
        (goto-char (point-min))
        (search-forward "Read the request")
        (let ((place (point)))
          (duet-test-should-say "Nothing to go to here"
            (duet-test-press "RET" #'duet-transcript-visit))
          (search-backward "Plan")
          (duet-test-press "RET" #'duet-transcript-visit)
          (should (invisible-p place))
          (should (looking-at "Plan")))))))

(ert-deftest duet-transcript-test-not-connected ()
  "Without a server, each request reports an error, and nothing is lost."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet tools:60"))
           (duet-history-messages 30)
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for (eq (duet-session-loaded session) t))
      (duet-test-wait-for-text buffer "That is all")
      (with-current-buffer buffer
        (call-interactively #'duet-stop)
        (should (string-match-p "stopped" (duet-header duet-session duet-connection)))
        (duet-test-should-say "No server runs" (call-interactively #'duet-stop))
        (duet-test-listening
          (duet-test-typing "2 RET" (duet-test-press "T" #'duet-rename))
          (call-interactively #'duet-archive)
          (should (length= (seq-filter (lambda (text) (string-search "not running" text))
                                       duet-test-said)
                           2)))
        (should-not (duet-session-archived session))
        ;; The prompt stays in its buffer.
        (save-window-excursion
          (duet-test-press "r" #'duet-continue)
          (duet-test-listening
            (duet-test-write-and-send "quiet more")
            (should (duet-test-heard "not sent: .*not running")))
          (should (equal (buffer-string) "quiet more"))
          (call-interactively #'duet-connection-restart)
          (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
          (duet-test-listening
            (call-interactively #'duet-connection-restart)
            (should (duet-test-heard "the server is running")))
          (duet-test-press "C-c C-c" #'duet-compose-send)
          (duet-test-wait-for-transcript)))
      (duet-test-wait-for-text buffer "❯ quiet more\n\nHello"))))

(ert-deftest duet-transcript-test-fill ()
  "A window with point at the end shows as much text as fits; others do not move."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet stream:300@4000"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "chunk 300 That is all")
      (save-window-excursion
        (delete-other-windows)
        (switch-to-buffer buffer)
        (goto-char (point-max))
        (set-window-start nil (point-max))
        (duet-transcript-fill (selected-window))
        (should (string-match-p "chunk 290 " (buffer-substring (window-start) (point-max))))
        (goto-char (point-min))
        (set-window-start nil (point))
        (duet-transcript-fill (selected-window))
        (should (= (window-start) (point-min)))))))

(ert-deftest duet-transcript-test-windows ()
  "A window at the end follows new text, and another one stays."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet stream:60@100"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-text buffer "chunk 2")
      (save-window-excursion
        (delete-other-windows)
        (switch-to-buffer buffer)
        (let ((other (split-window)))
          (set-window-point other 3)
          (goto-char (point-max))
          (duet-test-wait-for-state session 'completed)
          (duet-test-wait-for-text buffer "chunk 60")
          (should (= (window-point other) 3))
          (should (= (window-point) (point-max)))))
      (with-current-buffer buffer
        (should-not (buffer-modified-p))
        (should (eq buffer-undo-list t))))))

(ert-deftest duet-transcript-test-failures ()
  "A failed turn shows the reason."
  (duet-test-with-project connection
    (dolist (word '("fail" "crash"))
      (let* ((session (duet-test-launch connection word))
             (buffer (duet-transcript-open connection session)))
        (duet-test-wait-for-state session 'failed 'interrupted)
        (duet-test-wait-for-text buffer "^[✗■] ")
        ;; The same holds for a transcript that is opened after the end.
        (kill-buffer buffer)
        (setq buffer (duet-transcript-open connection session))
        (duet-test-wait-for-text buffer "^[✗■] ")))))

;; On a terminal C-g is a signal to Emacs.  While a timer or a filter runs it only sets a
;; flag, which the command loop checks afterwards.

(ert-deftest duet-transcript-test-quit-waits ()
  "A C-g during an event or an update is still pending afterwards."
  (let* ((model (duet-model-create :root "/nowhere/"))
         (session (make-duet-session :id "t" :model model :loaded t))
         (message (make-duet-message :key "m" :kind 'prompt :session session :turn "r"))
         (press (lambda (&rest _) (setq quit-flag t) nil))
         (pressed (lambda (function)
                    (let ((inhibit-quit t))
                      (funcall function)
                      (prog1 quit-flag (setq quit-flag nil))))))
    (duet-message-set-text message "What is it?")
    (duet-model-add-message message)
    (with-temp-buffer
      (duet-transcript-mode)
      (setq duet-session session)
      (unwind-protect
          (let ((duet-render-functions (list press)))
            (duet-transcript--note message 'append)
            (should (funcall pressed (lambda () (timer-event-handler duet-transcript--timer))))
            ;; The update completes all the same.
            (should (string-search "What is it?" (buffer-string))))
        (when duet-transcript--timer (cancel-timer duet-transcript--timer))
        (setq duet-session nil)))
    (duet-model-add-observer press model)
    (should (funcall pressed
                     (lambda ()
                       (duet-connection--notified
                        (make-duet-connection :root "/nowhere/" :model model) 'event
                        '(:seq 1 :kind "trigger.fired" :data (:id "x"))))))))

(ert-deftest duet-transcript-test-tabs ()
  "Tabs are four columns wide, or as wide as the user has chosen."
  (pcase-dolist (`(,default ,shown) '((8 4) (2 2) (3 3)))
    (let ((before (default-value 'tab-width)))
      (unwind-protect
          (progn
            (setq-default tab-width default)
            (with-temp-buffer
              (duet-transcript-mode)
              (should (= tab-width shown))))
        (setq-default tab-width before)))))

(ert-deftest duet-transcript-test-pace ()
  "Under load new text is shown in steps, and completely in the end."
  (let* ((model (duet-model-create :root "/nowhere/"))
         (session (make-duet-session :id "t" :model model :loaded t))
         (message (make-duet-message :key "m" :kind 'text :session session
                                     :turn "r" :open t))
         (duet-transcript-delay 1000))
    (duet-model-add-message message)
    (with-temp-buffer
      (duet-transcript-mode)
      (setq duet-session session)
      (cl-flet ((say (text)
                  (duet-message-append message text)
                  (duet-transcript--note message 'append)
                  (duet-transcript--work)))
        (say "one\n")
        (should (string-match-p "one" (buffer-string)))
        (say "two\n")
        (should-not (string-match-p "two" (buffer-string)))
        ;; At the next step the text is shown.
        (setq duet-transcript--next 0)
        (duet-transcript--work)
        (should (string-match-p "one\ntwo" (buffer-string)))
        (say "three\n")
        (duet-transcript-flush)
        (should (string-match-p "two\nthree" (buffer-string)))
        (should-not duet-transcript--dirty))
      (cancel-timer (or duet-transcript--timer (timer-create)))
      (setq duet-session nil))))

(ert-deftest duet-transcript-test-markup ()
  "Headings, code and lists have faces, for any split of the text."
  (let ((text (concat "# Title\n\nSome **bold** and `code`.\n\n- item\n\n```text\n# no title\n```\n"
                      "````md\n```\nnested\n```\ninner\n````\n"
                      "~~~\nwave\n```\nstill\n~~~\n```one`\n\nend `x`")))
    (dolist (size '(1 3 1000))
      (let* ((model (duet-model-create :root "/nowhere/"))
             (session (make-duet-session :id "t" :model model :loaded t))
             (message (make-duet-message :key "m" :kind 'text :session session
                                         :turn "r" :open t)))
        (duet-model-add-message message)
        (with-temp-buffer
          (duet-transcript-mode)
          (setq duet-session session)
          (cl-loop for start from 0 below (length text) by size
                   do (duet-message-append
                       message (substring text start (min (length text) (+ start size))))
                   (duet-transcript--note message 'append)
                   (duet-transcript-flush)
                   ;; As if it were displayed.
                   (jit-lock-fontify-now))
          (setf (duet-message-open message) nil)
          (duet-transcript--note message 'redraw)
          (duet-transcript-flush)
          (cancel-timer (or duet-transcript--timer (timer-create)))
          (setq duet-session nil)
          (jit-lock-fontify-now)
          (cl-loop for (string . face) in '(("Title" . duet-markup-title)
                                            ("bold" . bold) ("code" . duet-code)
                                            ("no title" duet-code duet-code-block)
                                            ("x" . duet-code)
                                            ("nested" duet-code duet-code-block)
                                            ("inner" duet-code duet-code-block)
                                            ("wave" duet-code duet-code-block)
                                            ("still" duet-code duet-code-block)
                                            ("text" . duet-dim) ("md" . duet-dim)
                                            ("Some" . nil) ("end" . nil))
                   do (goto-char (point-min))
                   (let ((case-fold-search nil))
                     (re-search-forward (concat "\\b" string "\\b")))
                   (should (equal (list size string
                                        (get-text-property (match-beginning 0) 'face))
                                  (list size string face)))))))))

(ert-deftest duet-transcript-test-edit-of-many-lines ()
  "An edit shows the lines that it changes, with their locations."
  (let* ((rows (lambda (&rest others)
                 (mapconcat (lambda (n) (or (alist-get n others) (format "row %d" n)))
                            (number-sequence 1 40) "\n")))
         (session (make-duet-session :id "t" :cwd "/nowhere/"))
         (text (substring-no-properties
                (duet-render (make-duet-tool
                              :key "r/1" :kind 'tool :session session :turn "r" :name "Edit"
                              :diffs (list (list :path "/nowhere/a.txt" :old_text (funcall rows)
                                                 :new_text (funcall rows '(5 . "five") '(30 . "x")))
                                           (list :path "/nowhere/b.txt" :old_text "a"
                                                 :new_text "a")))))))
    (should (string-match-p "\\`○ Edit \\+2 −2\n  @@ /nowhere/a\\.txt:5\n   row 2\n" text))
    (should (string-match-p "\n  -row 5\n  \\+five\n   row 6\n" text))
    (should (string-match-p "\n  @@ /nowhere/a\\.txt:30\n   row 27\n" text))
    (should (string-match-p "\n  /nowhere/b\\.txt is unchanged\\'" text))
    (should-not (string-match-p "row 15" text))))

(ert-deftest duet-transcript-test-long-lines ()
  "Long lines are broken at the same positions for any split of the text."
  (let ((duet-render-line-length 10))
    (dolist (text '("" "0123456789" "0123456789\n" "01234567890" "01234567890\n"
                    "0123456789\n01234567890123456789\n\n0123456789012345678901"))
      (let ((whole (duet-render-wrap text)))
        (dolist (line (split-string whole "\n"))
          (should (<= (length line) 10)))
        (should (equal (replace-regexp-in-string "\n" "" whole)
                       (replace-regexp-in-string "\n" "" text)))
        (dolist (size '(1 2 3 7 10 11))
          (should (equal
                   (with-temp-buffer
                     (cl-loop for start from 0 below (length text) by size
                              do (insert (duet-render-wrap
                                          (substring text start
                                                     (min (length text) (+ start size)))
                                          (- (point) (line-beginning-position)))))
                     (buffer-string))
                   whole)))))
    (should (equal (duet-render-wrap "0123456789\n") "0123456789\n"))
    (should (equal (duet-render-wrap "01234567890") "0123456789\n0"))))

(provide 'duet-transcript-test)
;;; duet-transcript-test.el ends here
