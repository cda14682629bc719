;;; duet-approvals-test.el --- Tests of questions and answers  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-approvals)

(defun duet-approvals-test--wait (session)
  "Wait until a question waits in SESSION, and return it."
  (duet-test-wait-for (car (duet-session-approvals session))))

(defun duet-approvals-test--list ()
  "Return the text of the list of questions, as it is now."
  (duet-approvals-flush)
  (with-current-buffer "*duet questions*"
    (buffer-substring-no-properties (point-min) (point-max))))

(defun duet-approvals-test--go-to (approval)
  "Go to APPROVAL in the list of questions."
  (duet-approvals)
  (goto-char (point-min))
  (while (not (eq (tabulated-list-get-id) approval))
    (should (zerop (forward-line 1)))))

(defun duet-approvals-test--file (connection)
  "Return what is in the file that the demo agent of CONNECTION edits, or nil."
  (let ((file (expand-file-name "demo.txt" (duet-connection-root connection))))
    (and (file-exists-p file)
         (with-temp-buffer (insert-file-contents file) (buffer-string)))))

(ert-deftest duet-approvals-test-approve ()
  "A question is listed, counted in the mode line, and gone once it is answered."
  (duet-test-with-questions connection
    (save-window-excursion (duet-approvals))
    (should (string-match-p "Nothing waits" (duet-approvals-test--list)))
    (let ((session (duet-test-launch connection "hello")))
      (duet-approvals-test--wait session)
      (duet-test-wait-for (string-match-p "Write +demo\\.txt \\+1 −0 +hello +project +now"
                                          (duet-approvals-test--list)))
      (should (equal (substring-no-properties duet-lighter--text) " Duet[1!]"))
      (should (memq 'duet-lighter--text global-mode-string))
      (duet-approvals)
      (should (tabulated-list-get-id))
      (call-interactively #'duet-approval-approve)
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for (duet-test-heard "^Approved: Write demo.txt$"))
      (should (string-match-p "Nothing waits" (duet-approvals-test--list)))
      (should-not duet-lighter--text)
      (should-error (call-interactively #'duet-approval-approve) :type 'user-error)
      (should-not (duet-test-heard "elsewhere"))
      (should (equal (duet-approvals-test--file connection) "Turn 1: hello\n"))
      (should (equal (duet-test-log) "")))))

(ert-deftest duet-approvals-test-deny ()
  "Who denies may say why; with \\`C-g' nothing is decided."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-approvals-test--wait session)))
      (duet-approvals)
      (should (eq 'quit (condition-case nil
                            (duet-test-typing "C-g"
                              (duet-test-press "d" #'duet-approval-deny))
                          (quit 'quit))))
      (should (eq (duet-approvals-test--wait session) approval))
      (duet-test-typing "not SPC today RET"
        (duet-test-press "d" #'duet-approval-deny))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for (duet-test-heard "^Denied: Write demo.txt$"))
      (should-not (duet-approvals-test--file connection))
      (let ((result (duet-test-request connection 'getApproval
                                       (list :approval_id (duet-approval-id approval)))))
        (should (equal (duet-get-string result :approval :comment) "not today"))))))

(ert-deftest duet-approvals-test-quit-keeps-draft ()
  "What was typed before a \\`C-g' is there when the question is looked at again."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-approvals-test--wait session)))
      (duet-approvals)
      (dolist (word '("because " "it " "is "))
        (should (eq 'quit (condition-case nil
                              (duet-test-typing (concat (key-description word) " C-g")
                                (duet-test-press "d" #'duet-approval-deny))
                            (quit 'quit)))))
      (duet-test-typing "late RET"
        (duet-test-press "d" #'duet-approval-deny))
      (duet-test-wait-for-state session 'completed)
      (let ((result (duet-test-request connection 'getApproval
                                       (list :approval_id (duet-approval-id approval)))))
        (should (equal (duet-get-string result :approval :comment)
                       "because it is late"))))))

(ert-deftest duet-approvals-test-deny-without-a-reason ()
  "Nobody has to say why, unless the agent is to be told."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-approvals-test--wait session)))
      (duet-approvals)
      (duet-test-typing "SPC RET"
        (duet-test-should-say "nothing to tell"
          (duet-test-press "t" #'duet-approval-deny-and-tell)))
      (duet-test-typing "RET"
        (duet-test-press "d" #'duet-approval-deny))
      (duet-test-wait-for-state session 'completed)
      (let ((result (duet-test-request connection 'getApproval
                                       (list :approval_id (duet-approval-id approval)))))
        (should (equal (duet-get-string result :approval :comment) "denied"))))))

(ert-deftest duet-approvals-test-agents-own-answers ()
  "Each answer that an agent offers can be chosen, by its number."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-approvals-test--wait session))
           (answers (duet-approval-answers approval))
           (number (1+ (cl-position-if (lambda (answer)
                                         (string-match-p "(denies)" answer))
                                       answers))))
      (duet-approvals-test--go-to approval)
      (duet-test-press (number-to-string number) #'duet-approval-choose)
      (duet-test-wait-for-state session 'completed)
      (should-not (duet-approvals-test--file connection))
      (let* ((approval (duet-get (duet-test-request
                                  connection 'getApproval
                                  (list :approval_id (duet-approval-id approval)))
                                 :approval))
             (option (nth (1- number) (duet-get-objects approval :options))))
        (should (equal (duet-get-string approval :option)
                       (duet-get-string option :option_id)))))))

(ert-deftest duet-approvals-test-plan ()
  "A plan is shown as the text that it is, and there is no rule of it."
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
                                    "  \\[t\\] tell why not  \\[1\\] Yes, and auto-accept edits (allows; the agent remembers it)"
                                    "  \\[2\\] No, keep planning (denies)")
                            text))
    (should-not (string-match-p "always:" text))
    (should-error (duet-approval--scoped approval "session") :type 'user-error)))

(ert-deftest duet-approvals-test-refused-tool ()
  "A tool that was refused looks otherwise than one that failed, and says why."
  (let* ((session (make-duet-session))
         (model (duet-model-create :root "/"))
         (tool (make-duet-tool :session session :name "Bash" :title "touch made" :status 'failed)))
    (setf (duet-session-model session) model)
    (should (string-match-p "\\`✗ " (duet-render--tool tool)))
    (setf (duet-tool-refused-by tool) "mode=plan"
          (duet-tool-refusal tool) "the session is in plan mode")
    (should (string-match-p
             "\\`⊘ touch made\n  not run: denied by mode=plan: the session is in plan mode"
             (duet-render--tool tool)))
    (setf (duet-tool-refused-by tool) "user" (duet-tool-refusal tool) "not now")
    (should (string-match-p "not run: denied: not now" (duet-render--tool tool)))))

(ert-deftest duet-approvals-test-edit ()
  "The input of a tool is edited as JSON; what is none is refused, and stays."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-approvals-test--wait session)))
      (duet-approvals)
      (duet-test-press "e" #'duet-approval-edit)
      (should (derived-mode-p 'duet-approval-edit-mode))
      (should (string-match-p "\"content\": \"Turn 1: hello\\\\n\"" (buffer-string)))
      ;; A member without a value.
      (goto-char (point-min))
      (insert "{\"content\": ")
      (duet-test-should-say "This is no JSON"
        (duet-test-press "C-c C-c" #'duet-approval-edit-send))
      (should (buffer-live-p (current-buffer)))
      (dolist (text '("" "[1]" "{} {}" "{\"a\": }" "\"text\""))
        (erase-buffer)
        (insert text)
        (duet-test-should-say "no JSON\\|follows the JSON\\|must be an object"
          (duet-test-press "C-c C-c" #'duet-approval-edit-send)))
      (should (duet-approval-connection approval))
      ;; Cancelled, and gone on with.
      (erase-buffer)
      (insert (format "{\"content\": \"Ünother\\n\", \"file_path\": %s, \"list\": [], \"no\": false}"
                      (json-encode (expand-file-name "demo.txt"
                                                     (duet-connection-root connection)))))
      (let ((buffer (current-buffer)))
        (duet-test-press "C-c C-k" #'duet-approval-edit-cancel)
        (should (duet-test-heard "^Nothing is decided$"))
        (duet-approvals)
        (duet-test-press "e" #'duet-approval-edit)
        (should (eq (current-buffer) buffer))
        (duet-test-press "C-c C-c" #'duet-approval-edit-send))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for (duet-test-heard "^Approved with another input"))
      (let ((result (duet-test-request connection 'getApproval
                                       (list :approval_id (duet-approval-id approval)))))
        (should (equal (duet-get-string result :approval :updated_input :content)
                       "Ünother\n"))
        (should (equal (plist-get (duet-get result :approval :updated_input) :no)
                       :json-false))
        (should (equal (duet-get result :approval :updated_input :list) []))))))

(ert-deftest duet-approvals-test-edit-unchanged ()
  "An input that was not changed is not sent as one that was."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-approvals-test--wait session)))
      (duet-approval-view approval)
      (duet-test-press "e" #'duet-approval-edit)
      (duet-test-press "C-c C-c" #'duet-approval-edit-send)
      (duet-test-wait-for-state session 'completed)
      (let ((result (duet-test-request connection 'getApproval
                                       (list :approval_id (duet-approval-id approval)))))
        (should (equal (duet-get-string result :approval :status) "approved"))
        (should-not (duet-get result :approval :updated_input))))))

(ert-deftest duet-approvals-test-not-editable ()
  "Editing is not offered where the agent would run its own input all the same."
  (dolist (editable '(t :json-false))
    (let* ((duet-approval (make-duet-approval
                           :id "a" :type "function_call"
                           :data `(:tool_name "Bash" :tool_input (:command "ls")
                                   :input_editable ,editable)))
           (wanted (if (eq editable t) #'identity #'not)))
      (should (funcall wanted (duet-approval-editable-p duet-approval)))
      (should (funcall wanted (string-match-p "edit" (duet-approval-keys duet-approval))))
      (should (funcall wanted (string-match-p
                               "edit" (duet-approvals--inline duet-approval "/"))))
      (should-error (duet-approval-edit duet-approval) :type 'user-error)
      (when (eq editable :json-false)
        (duet-test-should-say "its own input; deny"
          (duet-approval-edit duet-approval)))))
  (should (duet-approval-editable-p (make-duet-approval :id "a" :type "function_call")))
  (should-not (duet-approval-editable-p (make-duet-approval :id "a" :type "human_contact"))))

(ert-deftest duet-approvals-test-denied-by-policy ()
  "What the policy denied says so."
  (should (equal (duet-approval-outcome '(:decision "denied" :decided_by "mode=plan"))
                 "was denied by a mode"))
  (should (string-match-p
           "Denied by rule=user: Write x"
           (duet-render--answer
            (make-duet-message :data '(:decision "denied" :decided_by "rule=user"
                                       :title "Write x"))))))

(ert-deftest duet-approvals-test-edit-exact ()
  "An empty object in an input stays one, though jsonrpc.el reads it as null."
  (let ((approval (make-duet-approval :id "a" :call "c" :run "r"))
        (input '(:path "x" :filter nil :list [(:deep nil)] :no :json-false)))
    (should (duet-approval--ambiguous-p input))
    (should (duet-approval--ambiguous-p nil))
    (should-not (duet-approval--ambiguous-p '(:path "x" :list [1 (:a "")] :no :json-false)))
    (pcase-dolist
        (`(,call ,run ,json ,found)
         '(("c" "r" "{\"filter\":{},\"path\":\"x\",\"no\":false,\"list\":[{\"deep\":null}]}" t)
           ("c" "r" "{\"filter\":1,\"path\":\"x\",\"no\":false,\"list\":[{\"deep\":null}]}" nil)
           ("d" "r" "{\"filter\":{},\"path\":\"x\",\"no\":false,\"list\":[{\"deep\":null}]}" nil)
           ("c" "s" "{\"filter\":{},\"path\":\"x\",\"no\":false,\"list\":[{\"deep\":null}]}" nil)
           ("c" "r" "no JSON" nil) ("c" "r" nil nil)))
      (let ((text (duet-approval-edit--find
                   approval input
                   (list (list :tool_id call :session_id run :tool_input_json json)))))
        (if (not found)
            (should-not text)
          (with-temp-buffer
            (insert text)
            (let ((parsed (duet-approval-edit--parse)))
              (should (hash-table-p (gethash "filter" parsed)))
              (should-not (gethash "deep" (aref (gethash "list" parsed) 0)))
              (should (eq (gethash "no" parsed) :json-false)))))))))

(ert-deftest duet-approvals-test-edit-from-conversation ()
  "The JSON of an input is found in the conversation, or the question's is taken."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-approvals-test--wait session))
           (find (symbol-function 'duet-approval-edit--find))
           found)
      (cl-letf (((symbol-function 'duet-approval--ambiguous-p) #'always)
                ((symbol-function 'duet-approval-edit--find)
                 (lambda (&rest arguments) (setq found (apply find arguments)))))
        (duet-approval-edit approval)
        (set-buffer (duet-test-wait-for
                     (duet-approval-view--buffer approval 'duet-approval-edit-mode))))
      (should (eq (window-buffer) (current-buffer)))
      (should (string-match-p "demo.txt" found))
      (should (string-match-p "demo.txt" (buffer-string)))
      (duet-approval-edit-cancel)
      ;; One that no tool call of the conversation has asked.
      (duet-test-request connection 'createApproval
                         (list :session_id (duet-session-leaf-id session)
                               :tool_name "Other"
                               :tool_input (list :a (make-hash-table))))
      (let ((other (duet-test-wait-for
                    (cl-find "Other" (duet-session-approvals session)
                             :key #'duet-approval-tool :test #'equal))))
        (duet-approval-edit other)
        (set-buffer (duet-test-wait-for
                     (duet-approval-view--buffer other 'duet-approval-edit-mode)))
        (should (equal (buffer-string) "{\n  \"a\": null\n}\n"))))))

(ert-deftest duet-approvals-test-scopes ()
  "A tool that is allowed in the session or the project asks no more."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "permit:2"))
           (approval (duet-approvals-test--wait session)))
      (duet-approvals)
      (duet-test-typing "C-a C-k RET"
        (duet-test-should-say "Nothing is decided"
          (duet-test-press "s" #'duet-approval-always)))
      (should (eq 'quit (condition-case nil
                            (duet-test-typing "C-g"
                              (duet-test-press "s" #'duet-approval-always))
                          (quit 'quit))))
      (should-not (duet-approval-sending-p approval))
      (duet-test-typing "RET" (duet-test-press "s" #'duet-approval-always))
      (duet-test-wait-for (duet-test-heard "^Allowed in this session")))
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-approvals-test--wait session)))
      ;; The first session asks for another command meanwhile.
      (duet-approvals-test--go-to approval)
      (should (string-match-p "of files .*/\\*\\'" (duet-approval-covers approval)))
      (duet-test-typing "* RET" (duet-test-press "P" #'duet-approval-always-in-project))
      (duet-test-wait-for-state session 'completed)
      (should (string-suffix-p
               "/**" (duet-get-string (aref (duet-get (duet-test-request
                                                       connection 'getRules nil)
                                                      :rules)
                                            1)
                                      :path)))
      (setq session (duet-test-launch connection "hello again"))
      (duet-test-wait-for-state session 'completed)
      (should (equal (duet-approvals-test--file connection)
                     "Turn 1: hello\nTurn 1: hello again\n")))))

(ert-deftest duet-approvals-test-respond ()
  "A question is answered with an option, by its number or in other words."
  (duet-test-with-questions connection
    (pcase-dolist (`(,answer . ,said) '(("BLUE" . "answered: blue") (?2 . "answered: green")))
      (let* ((session (duet-test-launch connection "quiet ask"))
             (buffer (duet-transcript-open connection session))
             (approval (duet-approvals-test--wait session)))
        (duet-approvals)
        (pcase-dolist (`(,key ,command ,words)
                       '(("d" duet-approval-deny "is answered, with r")
                         ("e" duet-approval-edit "no input")
                         ("s" duet-approval-always "no standing answer")
                         ("P" duet-approval-always-in-project "no standing answer")))
          (duet-test-should-say words (duet-test-press key command)))
        (if (numberp answer)
            (with-current-buffer buffer
              (duet-approvals-flush)
              (goto-char (point-min))
              (search-forward "[2] green")
              (duet-test-should-say "no option 7"
                (duet-test-press "7" #'duet-approval-choose))
              (duet-test-press (string answer) #'duet-approval-choose))
          (duet-test-typing "SPC RET"
            (duet-test-should-say "Not answered"
              (duet-test-press "r" #'duet-approval-respond)))
          ;; Other words cannot be told to the agent.
          (duet-test-typing "C-a C-k dark SPC red RET"
            (duet-test-press "r" #'duet-approval-respond))
          (duet-test-wait-for (duet-test-heard "not answered, it goes on waiting: .*red.*green.*blue"))
          (should-not (duet-approval-sending-p approval))
          (duet-test-typing (concat "C-a C-k " answer " RET")
            ;; To approve a question is to answer it.
            (duet-test-press "a" #'duet-approval-approve)))
        (duet-test-wait-for-state session 'completed)
        (duet-test-wait-for-text buffer said)))))

(ert-deftest duet-approvals-test-not-sent ()
  "Who is told that an answer was not taken can give another with the next key."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "quiet ask"))
           (buffer (duet-transcript-open connection session))
           (bound '()))
      (duet-approvals-test--wait session)
      (duet-approvals-flush)
      (switch-to-buffer buffer)
      (goto-char (point-max))
      (search-backward "? Which")
      (cl-letf (((symbol-function 'message)
                 (lambda (format &rest _)
                   (when (string-match-p "not answered" (or format ""))
                     (with-current-buffer buffer
                       (push (key-binding "r") bound))))))
        (duet-test-typing "dark SPC red RET"
          (duet-test-press "r" #'duet-approval-respond))
        ;; On its way it takes no other.
        (should-not (eq (key-binding "r") #'duet-approval-respond))
        (duet-test-wait-for bound))
      (should (equal bound '(duet-approval-respond))))))

(ert-deftest duet-approvals-test-transcript ()
  "A question stands at the end of the transcript, and its keys answer it."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "permit:2"))
           (buffer (duet-transcript-open connection session))
           (approval (duet-approvals-test--wait session)))
      (duet-test-wait-for-text buffer "^❯ permit:2")
      (duet-approvals-flush)
      (with-current-buffer buffer
        (should (string-match-p "1 waiting: j" (duet-header duet-session duet-connection)))
        (should (string-match-p "\n? .*\n  \\[a\\] approve  \\[d\\] deny  .*\n\\(  .*\n\\)*  \\[t\\] tell .*\n\n\\'"
                                (duet-test-text buffer)))
        ;; The tool call may become known later, and stands before it.
        (goto-char (point-max))
        (search-backward "[d] deny")
        (should (eq (key-binding "a") #'duet-approval-approve))
        (should (eq (key-binding (kbd "TAB")) #'duet-section-toggle))
        (should (eq (duet-approval-here) approval))
        (goto-char (point-min))
        (should (eq (key-binding "e") #'duet-transcript-earlier)))
      (should-not (eq (current-buffer) buffer))
      (call-interactively #'duet-approval-next)
      (should (eq (current-buffer) buffer))
      (should (eq (get-text-property (point) 'duet-approval) approval))
      ;; Who reads on at the end need not go there.
      (goto-char (point-max))
      (call-interactively (key-binding "a"))
      ;; The next key is not taken for an answer any more.
      (search-backward "the answer is on its way")
      (should (eq (key-binding "e") #'duet-transcript-earlier))
      (duet-test-wait-for (let ((next (car (duet-session-approvals session))))
                            (and next (not (eq next approval)))))
      (duet-approvals-flush)
      (goto-char (point-min))
      (search-forward "[a] approve")
      (backward-char)
      (duet-test-press "RET" #'duet-approvals-act)
      (duet-test-wait-for-state session 'completed)
      (duet-approvals-flush)
      (should-not (string-match-p "\\[a\\] approve" (duet-test-text buffer)))
      (duet-test-should-say "Nothing waits for you"
        (duet-test-press "j" #'duet-approval-next))
      (dolist (key '("a" "d" "v"))
        (duet-test-should-say "No question is here" (call-interactively (key-binding key)))))))

(ert-deftest duet-approvals-test-width ()
  "The list of questions takes the width that its window has."
  (save-window-excursion
    (with-temp-buffer
      (duet-approvals-mode)
      (set-window-buffer (selected-window) (current-buffer))
      (pcase-dolist (`(,width . ,input) '((40 . 16) (62 . 16) (100 . 53) (180 . 133)))
        (cl-letf (((symbol-function 'window-width) (lambda (&rest _) width)))
          (duet-approvals--print)
          (should (equal (list width (nth 1 (aref tabulated-list-format 1)))
                         (list width input)))))
      ;; Other lists have their own.
      (with-temp-buffer
        (duet-approvals-mode)
        (should (= (nth 1 (aref tabulated-list-format 1)) 32))))))

(ert-deftest duet-approvals-test-buttons ()
  "What stands below a question in a transcript is done by RET or by a click."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (buffer (duet-transcript-open connection session))
           (approval (duet-approvals-test--wait session)))
      (duet-approvals-flush)
      (switch-to-buffer buffer)
      (goto-char (point-max))
      (search-backward "[v] view")
      (duet-test-click #'duet-approvals-act-mouse)
      (should (derived-mode-p 'duet-approval-view-mode))
      (should (eq duet-approval approval))
      (switch-to-buffer buffer)
      (goto-char (point-max))
      ;; Beside the buttons it is shown in full, too.
      (search-backward "? Write")
      (duet-test-press "RET" #'duet-approvals-act)
      (should (derived-mode-p 'duet-approval-view-mode))
      (duet-test-press "a" #'duet-approval-approve)
      (duet-test-wait-for-state session 'completed))
    (dolist (press (list (lambda () (duet-test-press "RET" #'duet-approvals-act))
                         (lambda () (duet-test-click #'duet-approvals-act-mouse))
                         (lambda () (call-interactively #'duet-approvals--take))))
      (let* ((session (duet-test-launch connection "quiet ask"))
             (buffer (duet-transcript-open connection session)))
        (duet-approvals-test--wait session)
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

(ert-deftest duet-approvals-test-list-keys ()
  "The list shows a question in full, goes to it, and asks the servers again."
  (duet-test-with-questions connection
    (call-interactively #'duet-approvals)
    (pcase-dolist (`(,key . ,command) '(("a" . duet-approval-approve)
                                        ("v" . duet-approval-view)))
      (duet-test-should-say "No question is here" (duet-test-press key command)))
    (duet-test-should-say "Nothing waits for you"
      (duet-test-press "j" #'duet-approval-next))
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-approvals-test--wait session))
           (list (current-buffer)))
      (duet-approvals-flush)
      (duet-test-press "RET" #'duet-approval-view)
      (should (derived-mode-p 'duet-approval-view-mode))
      (pop-to-buffer list)
      (duet-test-press "o" #'duet-approval-next)
      (should (derived-mode-p 'duet-transcript-mode))
      (should (eq duet-session session))
      (duet-test-press "j" #'duet-approval-next)
      (should (duet-test-heard "the only question"))
      (duet-test-press "w" #'duet-approvals)
      (should (eq (current-buffer) list))
      ;; As if no event had told of it.
      (remhash (duet-approval-id approval)
               (duet-model-approvals (duet-connection-model connection)))
      (should (string-match-p "Nothing waits" (duet-approvals-test--list)))
      (duet-test-press "g" #'duet-approvals-refresh)
      (duet-test-wait-for (string-match-p "Write +demo" (duet-approvals-test--list)))
      ;; Without a server the question stays, and the answer is not lost on the way.
      (let ((duet-restart-delays '(1000)))
        (signal-process (process-id (jsonrpc--process (duet-connection-rpc connection)))
                        'SIGKILL)
        (duet-test-wait-for (eq (duet-connection-state connection) 'lost)))
      (duet-test-press "g" #'duet-approvals-refresh)
      (duet-test-press "a" #'duet-approval-approve)
      (should (duet-test-heard "not answered, it goes on waiting: "))
      (should (string-match-p "Write +demo" (duet-approvals-test--list))))))

(ert-deftest duet-approvals-test-order ()
  "A question shows whether its tool call is told of before it or after."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "quiet"))
           (buffer (duet-transcript-open connection session))
           (run (progn (duet-test-wait-for-state session 'completed)
                       (duet-test-wait-for (eq (duet-session-loaded session) t))
                       (duet-session-leaf-id session)))
           (seq 1000000)
           (tell (lambda (type &rest data)
                   (duet-model-apply
                    (duet-connection-model connection)
                    (list :seq (cl-incf seq)
                          :event (list :type type
                                       :timestamp (format "2100-01-01T00:00:00.%dZ" seq)
                                       :data (append (list :session_id run) data))))))
           (ask (lambda (id)
                  (funcall tell "new_approval" :approval_id id :call_id id
                           :type "function_call" :tool_name "Bash"
                           :title (concat "Run " id)
                           :tool_input (list :command (concat "run " id)))))
           (call (lambda (id status)
                   (funcall tell "conversation_updated" :event_type "tool_call"
                            :tool_id id :tool_name "Bash" :tool_title (concat "Call " id)
                            :tool_status status))))
      (funcall ask "one")
      (funcall call "one" "pending")
      (funcall call "two" "pending")
      (funcall ask "two")
      (funcall call "two" "in_progress")
      (duet-approvals-flush)
      (duet-test-wait-for-text
       buffer "Call one[^?]*Call two[^?]*\\? Bash  run one\n  \\[a\\].*\n\\? Bash  run two\n  \\[a\\]")
      (funcall tell "approval_resolved" :approval_id "one" :decision "approved"
               :decided_by "user" :approved t)
      (duet-approvals-flush)
      (duet-test-wait-for-text buffer "Call two[^?]*\\? Bash  run two\n")
      (should-not (string-match-p "\\? Bash  run one" (duet-test-text buffer)))
      (should (duet-test-heard "^Duet: Run one was approved elsewhere$"))
      (funcall tell "approval_resolved" :approval_id "two" :decision "cancelled"
               :decided_by "end")
      (should (duet-test-heard "^Duet: Run two was withdrawn")))))

(ert-deftest duet-approvals-test-projects ()
  "The list has the questions of all projects that are connected, the oldest first."
  (let ((duet-connections (make-hash-table :test #'equal))
        (duet-model-observers nil)
        (global-mode-string nil)
        (duet-lighter--text nil))
    (cl-loop
     for (root state time tool) in '(("/b/beta/" ready "2026-01-01T00:00:02Z" "Second")
                                     ("/a/alpha/" lost "2026-01-01T00:00:01.5Z" "First")
                                     ("/c/gamma/" stopped "2026-01-01T00:00:00Z" "Hidden"))
     do (let ((model (duet-model-create :root root)))
          (puthash root (make-duet-connection :root root :model model :state state)
                   duet-connections)
          (duet-model-apply
           model `(:seq 1 :event (:type "new_approval" :timestamp ,time
                                        :data (:approval_id ,tool :type "function_call"
                                                            :session_id "r" :stale t
                                                            :tool_name ,tool
                                                            :tool_input (:x "y")))))))
    (unwind-protect
        (save-window-excursion
          (duet-approvals)
          (should (string-match-p "First +stale x: y +… +alpha .*\n.*Second +stale x: y +… +beta"
                                  (duet-approvals-test--list)))
          (should-not (string-match-p "Hidden" (duet-approvals-test--list)))
          (should (equal (substring-no-properties duet-lighter--text) " Duet[2!]"))
          (should (string-match-p "alpha: server lost" (duet-approvals--mode-line)))
          (should (eq (tabulated-list-get-id) (car (duet-approvals-all))))
          (forward-line 1)
          ;; Point is on what follows, or precedes, what is decided.
          (duet-model-apply (duet-connection-model (gethash "/b/beta/" duet-connections))
                            '(:seq 2 :event (:type "approval_resolved"
                                                   :data (:approval_id "Second"))))
          (duet-approvals-flush)
          (should (eq (tabulated-list-get-id) (car (duet-approvals-all))))
          (let ((duet-lighter nil))
            (duet-approvals-flush)
            (should-not duet-lighter--text)))
      (kill-buffer "*duet questions*")
      (when duet-approvals--timer
        (cancel-timer duet-approvals--timer)
        (setq duet-approvals--timer nil)))))

(ert-deftest duet-approvals-test-somebody-else ()
  "What somebody else has decided disappears, with a word; a second answer says so."
  (duet-test-with-questions connection
    (save-window-excursion (duet-approvals))
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-approvals-test--wait session))
           (view (save-window-excursion (duet-approval-view approval) (current-buffer))))
      (duet-test-request connection 'sendDecision
                         (list :approval_id (duet-approval-id approval)
                               :decision "deny" :comment "no no"))
      (duet-test-wait-for (duet-test-heard
                           "^Duet: Write demo.txt was denied elsewhere: no no$"))
      (should (string-match-p "Nothing waits" (duet-approvals-test--list)))
      (should-not (buffer-live-p view))
      (should-error (duet-approval-approve approval) :type 'user-error)
      ;; As if no event had told of it.
      (puthash (duet-approval-id approval) approval
               (duet-model-approvals (duet-connection-model connection)))
      (duet-approval-approve approval)
      (duet-test-wait-for (duet-test-heard "denied already"))
      (should-not (duet-approval-connection approval)))))

(ert-deftest duet-approvals-test-view ()
  "A question is shown in full, with the diff of an edit."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-approvals-test--wait session)))
      (duet-approval-view approval)
      ;; What it would change stands before what the tool gets.
      (duet-test-wait-for-text (current-buffer) "^\\+Turn 1: hello\n\\(.*\n\\)*Input\n  {$")
      (should (derived-mode-p 'diff-mode))
      (should (string-match-p "^Session  hello$" (buffer-string)))
      (should (eq (key-binding "a") #'duet-approval-approve))
      (should (eq (key-binding "n") #'diff-hunk-next))
      (should (string-match-p "a approve, d deny, t tell why not, e edit"
                              (duet-approval-view--header)))
      (call-interactively (key-binding "a"))
      (duet-test-wait-for-state session 'completed))))

(ert-deftest duet-approvals-test-lost-server ()
  "An answer that does not reach the server is not lost: the question goes on waiting."
  (duet-test-with-questions connection
    (save-window-excursion (duet-approvals))
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-approvals-test--wait session))
           (id (duet-approval-id approval))
           (process (jsonrpc--process (duet-connection-rpc connection)))
           fail)
      (cl-letf (((symbol-function 'duet-connection-request)
                 (lambda (&rest arguments) (setq fail (plist-get (cdddr arguments) :error-fn)))))
        (duet-approval-approve approval))
      (should (duet-approval-sending-p approval))
      (should-error (duet-approval-approve approval) :type 'user-error)
      (should (string-match-p "sending" (duet-approvals-test--list)))
      (signal-process process 'KILL)
      (duet-test-wait-for (not (eq (duet-connection-state connection) 'ready)))
      (funcall fail (list :code -1 :message "Server died"))
      (duet-test-wait-for (duet-test-heard "it goes on waiting"))
      (should-not (duet-approval-sending-p approval))
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
      ;; The one that comes after it knows the question, as a stale one.
      (let ((again (duet-test-wait-for
                    (let ((approval (gethash id (duet-model-approvals
                                                 (duet-connection-model connection)))))
                      (and approval (duet-approval-stale approval) approval)))))
        (duet-test-wait-for (string-match-p "stale demo.txt \\+1 −0"
                                            (duet-approvals-test--list)))
        (duet-approval-approve again)
        (duet-test-wait-for-state session 'completed)
        (should (equal (duet-approvals-test--file connection) "Turn 1: hello\n"))))))

(provide 'duet-approvals-test)
;;; duet-approvals-test.el ends here
