;;; duet-approvals-footer-test.el --- Tests of questions in transcripts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-approvals)

(defun duet-approvals-footer-test-ask (connection session id)
  "Create a question about the tool ID in SESSION of CONNECTION; return it."
  (duet-test-request connection 'createApproval
                     (list :session_id (duet-session-leaf-id session)
                           :tool_name id :tool_input (list :command id)))
  (duet-test-wait-for (cl-find id (duet-session-approvals session)
                               :key #'duet-approval-tool :test #'equal)))

(ert-deftest duet-approvals-footer-test-keys-at-the-end ()
  "At the end of a transcript, point goes to a new question, and back afterwards."
  (duet-test-with-questions connection
    (let ((shown (progn (duet-compose connection)
                        (duet-test-write-and-send "hello")
                        (duet-test-wait-for-transcript))))
      (should (eq (current-buffer) (window-buffer)))
      (goto-char (point-max))
      (duet-test-wait-for (progn (duet-approvals-flush) (duet-session-approvals duet-session)))
      (duet-test-wait-for-text shown "^❯ hello")
      (duet-approvals-flush)
      (should (looking-at-p "\\[y\\] Allow"))
      (pcase-dolist (`(,key . ,command) '(("s" . duet-approval-always)
                                          ("e" . duet-approval-edit)
                                          ("p" . duet-approval-always-in-project)
                                          ("v" . duet-approval-view)))
        (should (eq (key-binding key) command)))
      ;; A second question does not move point from elsewhere.
      (goto-char (point-min))
      (let ((other (duet-approvals-footer-test-ask connection duet-session "Other")))
        (duet-approvals-flush)
        (should (= (point) (point-min)))
        (duet-test-request connection 'approval.decide
                           (list :approval (duet-approval-id other)
                                 :type "function_call" :decision "approve")))
      ;; Queueing a prompt moves point to the end, too.
      (duet-compose connection duet-session)
      (duet-test-write-and-send "quiet more")
      (duet-test-wait-for-transcript)
      (should (eq (current-buffer) shown))
      (duet-approvals-flush)
      (duet-test-wait-for (looking-at-p "\\[y\\] Allow"))
      (duet-test-press "y" #'duet-approval-allow)
      (duet-test-wait-for-state duet-session 'completed)
      (duet-test-wait-for-text shown "❯ quiet more\n[^❯]*You asked: quiet more")
      (duet-approvals-flush)
      (should (eobp)))))

(ert-deftest duet-approvals-footer-test-follows ()
  "A window shows a question at its end in full when the text above grows."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "quiet hang"))
           (buffer (duet-transcript-open connection session))
           (model (duet-connection-model connection)))
      (duet-test-wait-for-text buffer "^❯ quiet hang")
      (save-window-excursion
        (delete-other-windows)
        (switch-to-buffer buffer)
        (goto-char (point-max))
        (duet-approvals-footer-test-ask connection session "One")
        (duet-approvals-flush)
        (should (looking-at-p "\\[y\\] Allow"))
        (dotimes (i 3)
          (duet-events-apply
           model (list :seq (+ 1000000 i) :kind "text.delta" :time "2100-01-01T00:00:01Z"
                       :turn_uuid (duet-session-leaf-id session)
                       :data (list :key "long"
                                   :text (apply #'concat (make-list 9 "a line\n")))))
          (duet-transcript-flush)
          (should (<= (count-screen-lines (window-start) (point-max)) (window-body-height))))
        (should (looking-at-p "\\[y\\] Allow"))
        (should (> (window-start) (point-min)))
        ;; A window that shows earlier text does not move.
        (goto-char (point-min))
        (set-window-start nil (point-min))
        (duet-transcript-follow)
        (should (= (window-start) (point-min)))))))

(ert-deftest duet-approvals-footer-test-unseen ()
  "A window that is not selected and a hidden buffer show the question, too."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "quiet hang"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-text buffer "^❯ quiet hang")
      (with-current-buffer buffer (goto-char (point-max)))
      (duet-approvals-footer-test-ask connection session "One")
      (duet-approvals-flush)
      (with-current-buffer buffer (should (looking-at-p "\\[y\\] Allow")))
      (let ((window (display-buffer buffer t)))
        (should-not (eq window (selected-window)))
        (set-window-point window (with-current-buffer buffer (point-max)))
        (duet-approvals-footer-test-ask connection session "Two")
        (duet-approvals-flush)
        (with-current-buffer buffer
          (should (eq (get-text-property (window-point window) 'duet-action)
                      #'duet-approval-allow))
          (should (equal (duet-approval-tool
                          (get-text-property (window-point window) 'duet-approval))
                         "One")))))))

(ert-deftest duet-approvals-footer-test-next-of-this-session ()
  "In a transcript `j' goes to its own questions first, then to all others."
  (duet-test-with-questions connection
    (let* ((old (duet-test-launch connection "quiet hang old"))
           (own (duet-test-launch connection "quiet hang own"))
           (new (duet-test-launch connection "quiet hang new"))
           (at (lambda () (duet-approval-tool (get-text-property (point) 'duet-approval))))
           (next (lambda ()
                   (duet-test-press "j" #'duet-approval-next)
                   (funcall at))))
      (pcase-dolist (`(,session . ,name) `((,old . "old 1") (,own . "own 1") (,new . "new 1")
                                           (,old . "old 2") (,own . "own 2")))
        (duet-test-wait-for-state session 'running 'waiting_input)
        (duet-approvals-footer-test-ask connection session name))
      (duet-transcript-show connection own)
      (duet-test-wait-for-text (current-buffer) "^❯ quiet hang own")
      (duet-approvals-flush)
      (goto-char (point-min))
      (should (equal (cl-loop repeat 6 collect (funcall next))
                     '("own 1" "own 2" "new 1" "old 1" "old 2" "own 1")))
      (should (eq duet-session own))
      ;; Outside Duet the oldest question is the first.
      (switch-to-buffer "*scratch*")
      (call-interactively #'duet-approval-next)
      (should (equal (funcall at) "old 1")))))

(ert-deftest duet-approvals-footer-test-asked-again ()
  "A question that is asked again shows the reason on a line."
  (let ((text (duet-approvals--inline
               (make-duet-approval :id "q" :type "function_call" :title "Bash: make" :stale t
                                   :data '( :tool_name "Bash" :tool_input (:command "make")
                                            :reopened "approved before, but\nwho knows"))
               "/")))
    (should (string-match-p "\n  approved before, but who knows\n  \\[y\\] Allow" text))))

(ert-deftest duet-approvals-footer-test-command ()
  "A command is shown once, after a shell prompt, with the rest of the input."
  (cl-flet ((shown (command &optional details)
              (substring-no-properties
               (duet-approvals--inline
                (make-duet-approval :id "q" :type "function_call" :title "Bash"
                                    :data `( :tool_name "Bash" :details ,details
                                             :tool_input (:command ,command :timeout 5)))
                "/"))))
    (should (string-prefix-p "? Bash  $ rm -rf build\n  │ timeout: 5\n  [y] Allow"
                             (shown "rm -rf build" "`rm -rf build`")))
    (should (string-prefix-p "? Bash  $ make 'a b'\n  │ To see\n  │ timeout: 5\n  [y] Allow"
                             (shown ["make" "a b"] "To see")))
    ;; A command that is too long or has escapes is shown below.
    (dolist (command (list (concat "echo " (make-string 60 ?a)) "one\ntwo" "one\ttwo"))
      (should (string-prefix-p
               (concat "? Bash\n  │ $ " (string-replace "\n" "\n  │   " command)
                       "\n  │ timeout: 5\n  [y] Allow")
               (shown command))))))

(ert-deftest duet-approvals-footer-test-names ()
  "The name of a member is shown as the agent wrote it, also outside ASCII."
  (let* ((input (json-parse-string "{\"größe\":{\"ü\":1},\"b\":\"ö\"}" :object-type 'plist))
         (approval (make-duet-approval :id "q" :type "function_call" :title "Size: it"
                                       :data `(:tool_name "Size" :tool_input ,input))))
    (should (member "b: ö" (duet-approval-excerpt approval)))
    (should (string-match-p "größe: " (duet-approval-summary approval "/")))
    (should (string-match-p "│ größe: {\n  │ +\"ü\": 1\n"
                            (duet-approvals--inline approval "/")))
    (should (equal (json-parse-string (duet-approval--json input) :object-type 'plist)
                   input))))

(ert-deftest duet-approvals-footer-test-transcript ()
  "The transcript ends with the question, and its keys answer it."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "permit:2"))
           (buffer (duet-transcript-open connection session))
           (approval (duet-test-question session)))
      (duet-test-wait-for-text buffer "^❯ permit:2")
      (duet-approvals-flush)
      (with-current-buffer buffer
        (should (string-match-p "1 open: j" (duet-header duet-session duet-connection)))
        (should (string-match-p "\n? .*\n  \\[y\\] Allow  \\[n\\] Deny  .*\n\\(  .*\n\\)*  \\[Always allow .*\n\n\\'"
                                (duet-test-text buffer)))
        ;; The tool call may arrive later, and is shown before the question.
        (goto-char (point-max))
        (search-backward "[n] Deny")
        (should (eq (key-binding "y") #'duet-approval-allow))
        (should (eq (key-binding (kbd "TAB")) #'duet-approvals-forward))
        (should (eq (key-binding (kbd "M-n")) #'duet-prompt-next))
        (should (eq (duet-approval-here) approval))
        (goto-char (point-min))
        (should (eq (key-binding "t") #'undefined)))
      (should-not (eq (current-buffer) buffer))
      (call-interactively #'duet-approval-next)
      (should (eq (current-buffer) buffer))
      (should (eq (get-text-property (point) 'duet-approval) approval))
      ;; At the end of the buffer the keys work as well.
      (goto-char (point-max))
      (call-interactively (key-binding "y"))
      ;; The next key is not an answer.
      (search-backward "the answer is on its way")
      (should (eq (key-binding "t") #'undefined))
      (duet-test-wait-for (let ((next (car (duet-session-approvals session))))
                            (and next (not (eq next approval)))))
      (duet-approvals-flush)
      (goto-char (point-min))
      (search-forward "[y] Allow")
      (backward-char)
      (duet-test-press "RET" #'duet-approvals-act)
      (duet-test-wait-for-state session 'completed)
      (duet-approvals-flush)
      (should-not (string-match-p "\\[y\\] Allow" (duet-test-text buffer)))
      (duet-test-should-say "No question waits for you"
        (duet-test-press "j" #'duet-approval-next))
      (dolist (key '("y" "v"))
        (duet-test-should-say "No question is here" (call-interactively (key-binding key)))))))

(ert-deftest duet-approvals-footer-test-buttons ()
  "RET and a click push the buttons below a question in a transcript."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (buffer (duet-transcript-open connection session))
           (approval (duet-test-question session)))
      (duet-approvals-flush)
      (switch-to-buffer buffer)
      (goto-char (point-max))
      (search-backward "[v] View")
      (duet-test-click #'duet-approvals-act-mouse)
      (should (derived-mode-p 'duet-approval-view-mode))
      (should (eq duet-approval approval))
      (switch-to-buffer buffer)
      (goto-char (point-max))
      ;; Outside the buttons RET shows the question in full.
      (search-backward "? Write")
      (duet-test-press "RET" #'duet-approvals-act)
      (should (derived-mode-p 'duet-approval-view-mode))
      (duet-test-press "y" #'duet-approval-allow)
      (duet-test-wait-for-state session 'completed))
    (dolist (press (list (lambda () (duet-test-press "RET" #'duet-approvals-act))
                         (lambda () (duet-test-click #'duet-approvals-act-mouse))
                         (lambda () (call-interactively #'duet-approvals--take))))
      (let* ((session (duet-test-launch connection "quiet ask"))
             (buffer (duet-transcript-open connection session)))
        (duet-test-question session)
        (duet-approvals-flush)
        (switch-to-buffer buffer)
        (goto-char (point-max))
        (search-backward "[2] green")
        (funcall press)
        (duet-test-wait-for-text buffer "answered: green")))
    (with-temp-buffer
      (duet-test-should-say "No question is here" (call-interactively #'duet-approvals-act))
      (duet-test-should-say "No question is here"
        (call-interactively #'duet-approvals--take)))))

(ert-deftest duet-approvals-footer-test-plan ()
  "A plan is shown as text, and no rule is offered for it."
  (let* ((duet-connections (make-hash-table))
         (approval (make-duet-approval
                    :id "p" :type "function_call" :title "Ready to code?"
                    :data '(:tool_name "ExitPlanMode" :plan "1. write it\n2. test it"
                            :tool_input (:plan "1. write it\n2. test it")
                            :options [(:option_id "auto" :name "Yes, and auto-accept edits"
                                       :kind "allow_always")
                                      (:option_id "plan" :name "No, keep planning"
                                       :kind "reject_once")])))
         (text (duet-approvals--inline approval "/")))
    (should (string-match-p (concat "│ 1. write it\n.*│ 2. test it\n"
                                    "\\(.*\n\\)*"
                                    "  \\[Yes, and auto-accept edits (the agent remembers it)\\]"
                                    "  \\[No, keep planning\\]")
                            text))
    (should-not (string-match-p "Always in\\|Always is" text))
    (should-error (duet-approval-always--scoped approval 'session) :type 'user-error)))

(ert-deftest duet-approvals-footer-test-plain-answers ()
  "An agent's answer has a button only if it differs from Duet's answers."
  (let ((duet-connections (make-hash-table)))
    (pcase-dolist
        (`(,options . ,shown)
         '(((("Allow" "allow_once") ("Always allow" "allow_always") ("Reject" "reject_once"))
            "Always allow (the agent remembers it)")
           ((("Yes" "allow_once") ("No" "reject_once")))
           ;; A denial named Allow has a button, and so has a second approval.
           ((("Allow" "reject_once")) "Allow (denies)")
           ((("Allow" "allow_once") ("Yes" "allow_once")) "Yes")
           ((("No, and stop" "reject_once")) "No, and stop")))
      (let* ((approval (make-duet-approval
                        :id "p" :type "function_call" :title "Run it"
                        :data `(:tool_name "Bash"
                                :options ,(vconcat
                                           (mapcar (lambda (option)
                                                     (list :option_id (car option)
                                                           :name (car option)
                                                           :kind (cadr option)))
                                                   options)))))
             (text (duet-approvals--inline approval "/"))
             (found '())
             (start 0))
        (while (string-match "\\[\\([^]\n]\\{2,\\}\\)\\]\\(?:  \\|$\\)" text start)
          (push (match-string 1 text) found)
          (setq start (match-end 0)))
        (should (equal (mapcar #'substring-no-properties (nreverse found)) shown))
        (should (eq (get-text-property (string-match "\\[y\\]" text) 'face text)
                    'duet-button))))))

(provide 'duet-approvals-footer-test)
;;; duet-approvals-footer-test.el ends here
