;;; duet-approval-view-test.el --- Tests of the view of a question  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-approvals)

(ert-deftest duet-approval-view-test-view ()
  "The view shows a question in full, with the diff of an edit."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approval-view approval)
    (duet-test-wait-for-text (current-buffer) "^\\+Turn 1: hello\n")
    ;; The diff covers the whole input of the tool.
    (should-not (string-match-p "^Input$\\|\"content\"" (buffer-string)))
    (should (derived-mode-p 'diff-mode))
    (should (string-match-p "^Session  1\\.1 hello$" (buffer-string)))
    (should (eq (key-binding "y") #'duet-approval-allow))
    (should (eq (key-binding (kbd "TAB")) #'diff-hunk-next))
    (should (eq (key-binding (kbd "M-p")) #'diff-hunk-prev))
    (should (eq (key-binding "n") #'duet-approval-deny))
    (cl-letf (((symbol-function 'duet-header-room) (lambda () 200)))
      (should (string-match-p "y Allow, n Deny, t Deny and say why, s Always in this session, p Always in this project, e Edit, \\? Keys"
                              (duet-approval-view--header))))
    (call-interactively (key-binding "y"))
    (duet-test-wait-for-state session 'completed)))

;; internal/acp refuses messages of agents that nest deeper than 100 levels.
(ert-deftest duet-approval-view-test-deep ()
  "An input that nests as deep as an agent's message may is readable."
  (let* ((json (concat "{\"a\":" (make-string 99 ?\[) "7" (make-string 99 ?\]) "}"))
         (input (json-parse-string json :object-type 'plist)))
    (should (equal (replace-regexp-in-string "[ \n]" "" (duet-approval--json input)) json))))

(defun duet-approval-view-test-text (title input &rest more)
  "Return the view of a question of the tool TITLE with INPUT.
MORE are other members of the question's data."
  (let ((approval (make-duet-approval :id "q" :type "function_call" :title title
                                      :data `(:tool_name "Bash" :title ,title :tool_input ,input
                                              ,@more))))
    (with-temp-buffer
      (duet-approval-view-mode)
      (setq duet-approval approval
            duet-connection (make-duet-connection :root "/" :model (duet-model-create :root "/")))
      (duet-approval-view--print (duet-approval-data approval))
      (buffer-substring-no-properties (point-min) (point-max)))))

(ert-deftest duet-approval-view-test-command-once ()
  "A command is shown once, after a shell prompt.
The JSON has only the other members of the input."
  (dolist (title '("rm -rf build" "`rm -rf build`" "Bash: rm -rf build" "rm -rf…"))
    (should (equal (duet-approval-view-test-text
                    title '(:command "rm -rf build")
                    :details "```sh\nrm -rf build\n```"
                    :rule_preview '(:session ( :text "the command rm -rf build, in this session"
                                               :pattern "rm -rf build")))
                   "$ rm -rf build\n\nTool     Bash\nProject  /\nAlways   is for this command\n")))
  (should (equal (duet-approval-view-test-text
                  "Clean" '(:command "one\ntwo" :timeout 5) :details "It is old")
                 (concat "Clean\n$ one\n  two\n\nTool     Bash\nProject  /\n\nDetails\n  It is old\n"
                         "\nInput\n  {\n    \"timeout\": 5\n  }\n")))
  ;; A list of words is quoted for the shell.
  (should (string-prefix-p "Run it\n$ sh -c 'echo '\\''a b'\\''' ''\n\nTool"
                           (duet-approval-view-test-text
                            "Run it" '(:command ["sh" "-c" "echo 'a b'" ""]))))
  ;; An input that is not a command is shown as JSON.
  (should (string-match-p "\\`Other\n\n\\(.*\n\\)*Input\n  {\n    \"command\": \\[\n *1\n"
                          (duet-approval-view-test-text "Other" '(:command [1])))))

(defun duet-approval-view-test-change (data room)
  "Return the lines of the change of a question with DATA, in ROOM rows."
  (mapcar #'substring-no-properties
          (duet-approval-change
           (make-duet-approval :id "q" :type "function_call" :title "Edit a.txt"
                               :data (append data '(:tool_name "Edit")))
           "/etc/" room 80)))

(defconst duet-approval-view-test-unified
  "--- a/a.txt
+++ b/a.txt
@@ -1,3 +1,4 @@
 one
+--- two
 three
 four
@@ -40,2 +41,2 @@
-forty
+FORTY
 more
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+new
"
  "A unified diff of two files.")

(ert-deftest duet-approval-view-test-change ()
  "A question shows its change by hunk with true line numbers, and counts the rest."
  (let* ((lines (mapcar (lambda (n) (format "line %d" n)) (number-sequence 1 40)))
         (old (concat (string-join lines "\n") "\n"))
         (new (replace-regexp-in-string "^line \\(5\\|30\\)$" "LINE \\1" old))
         (diffs `(:diffs [(:path "/etc/a.txt" :old_text ,old :new_text ,new :line 100)]))
         (whole (duet-approval-view-test-change diffs 100)))
    (should (= (length whole) 18))
    ;; The old text begins in line 100 of the file.
    (should (equal (nth 0 whole) "  @@ a.txt:104"))
    (should (equal (nth 9 whole) "  @@ a.txt:129"))
    (should (equal (duet-approval-view-test-change diffs 18) whole))
    (should (equal (duet-approval-view-test-change diffs 17)
                   (append (seq-take whole 9) '("  … 1 more hunk, 8 more lines: [v] View shows all"))))
    (should (equal (duet-approval-view-test-change diffs 5)
                   (append (seq-take whole 4)
                           '("  … 1 more hunk, 13 more lines: [v] View shows all"))))
    ;; The heading and a line are always there.
    (should (equal (duet-approval-view-test-change diffs 1)
                   (append (seq-take whole 2)
                           '("  … 1 more hunk, 15 more lines: [v] View shows all")))))
  ;; A reply has a unified diff.
  (let ((diff `(:diff ,duet-approval-view-test-unified)))
    (should (equal (duet-approval-view-test-change diff 100)
                   '("  @@ a.txt:2" "   one" "  +--- two" "   three" "   four"
                     "  @@ a.txt:41" "  -forty" "  +FORTY" "   more"
                     "  @@ new.txt:1" "  +new")))
    (should (equal (car (last (duet-approval-view-test-change diff 6)))
                   "  … 2 more hunks, 4 more lines: [v] View shows all")))
  ;; A very long line says how much is hidden.
  (should (string-suffix-p " … 4702 characters hidden: [v] View shows all"
                           (nth 1 (duet-approval-view-test-change
                                   `(:diffs [(:path "/p/a" :new_text ,(make-string 5000 ?x))])
                                   100))))
  (should-not (duet-approval-view-test-change '(:tool_input (:command "ls")) 100)))

(ert-deftest duet-approval-view-test-change-once ()
  "The whole question and the question in a transcript show the change once."
  (let* ((text (duet-approval-view-test-text
                "Edit a.txt" '(:file_path "/etc/a.txt" :new_string "FORTY")
                :diff duet-approval-view-test-unified :paths ["/etc/a.txt"]))
         (approval (make-duet-approval
                    :id "q" :type "function_call" :title "Edit a.txt"
                    :data `( :tool_name "Edit" :paths ["/etc/a.txt"]
                             :tool_input (:file_path "/etc/a.txt" :new_string "FORTY")
                             :diff ,duet-approval-view-test-unified))))
    ;; In its own buffer the change is directly below the keys.
    (should (string-prefix-p "Edit a.txt\n--- a/a.txt\n" text))
    (should (string-match-p "^\\+new\n\nTool " text))
    ;; In a transcript it is directly above them.
    (should (string-match-p "\\`\\? Edit  a.txt \\+3 −1\n  @@ a.txt:2\n\\(.*\n\\)*  \\+new\n  \\[y\\] Allow"
                            (duet-approvals--inline approval "/etc/")))
    (let ((case-fold-search nil))
      (should (= 2 (length (split-string (duet-approvals--inline approval "/etc/") "FORTY")))))
    ;; In half of a terminal of 24 lines everything has 7 rows, beside the reply box.
    (cl-letf (((symbol-function 'duet-approvals--height) (lambda () 9))
              ((symbol-function 'duet-header-room) (lambda () 80)))
      (setf (duet-approval-data approval)
            (append (duet-approval-data approval)
                    '( :options [(:option_id "a" :name "Always allow" :kind "allow_always")]
                       :rule_preview (:session (:text "Edit of files in /etc and below, in this session")))))
      (should (equal (split-string (substring-no-properties
                                    (duet-approvals--inline approval "/etc/"))
                                   "\n")
                     '("? Edit  a.txt +3 −1"
                       "  @@ a.txt:2"
                       "   one"
                       "  … 2 more hunks, 7 more lines: [v] View shows all"
                       "  [y] Allow  [n] Deny  [t] Deny and say why  [s] Always in this session"
                       "  [p] Always in this project  [e] Edit  [v] View (1 more answer)  [?] Keys"))))
    ;; The line that counts the rest is a button.
    (cl-letf (((symbol-function 'duet-approvals--room) (lambda (_) 4)))
      (let ((text (duet-approvals--inline approval "/etc/")))
        (should (eq (get-text-property (1+ (string-match "… 2 more hunks" text)) 'duet-action text)
                    #'duet-approval-view))))))

(ert-deftest duet-approval-view-test-edit ()
  "The user edits a tool's input as JSON; invalid JSON is refused and stays."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approvals)
    ;; As if the input had no new text.
    (cl-letf (((symbol-function 'duet-approval-edit--text-member) #'ignore))
      (duet-test-press "e" #'duet-approval-edit))
    (should (derived-mode-p 'duet-approval-edit-mode))
    (should (string-match-p "\"content\": \"Turn 1: hello\\\\n\"" (buffer-string)))
    ;; A member has no value.
    (goto-char (point-min))
    (insert "{\"content\": ")
    (duet-test-should-say "Not valid JSON"
      (duet-test-press "C-c C-c" #'duet-approval-edit-send))
    (should (buffer-live-p (current-buffer)))
    (dolist (text '("" "[1]" "{} {}" "{\"a\": }" "\"text\""))
      (erase-buffer)
      (insert text)
      (duet-test-should-say "Not valid JSON\\|after the JSON\\|must be an object"
        (duet-test-press "C-c C-c" #'duet-approval-edit-send)))
    (should (duet-approval-connection approval))
    ;; A cancelled edit is resumed.
    (erase-buffer)
    (insert (format "{\"content\": \"Ünother\\n\", \"file_path\": %s, \"list\": [], \"no\": false}"
                    (json-encode (expand-file-name "demo.txt"
                                                   (duet-connection-root connection)))))
    (let ((buffer (current-buffer)))
      (duet-test-press "C-c C-k" #'duet-approval-edit-cancel)
      (should (duet-test-heard "^Not answered$"))
      (duet-approvals)
      (duet-test-press "e" #'duet-approval-edit)
      (should (eq (current-buffer) buffer))
      (duet-test-press "C-c C-c" #'duet-approval-edit-send))
    (duet-test-wait-for-state session 'completed)
    (duet-test-wait-for (duet-test-heard "^Allowed with your edit: Write demo.txt$"))
    (let ((result (duet-test-approval connection approval)))
      (should (equal (duet-get-string result :updated_input :content)
                     "Ünother\n"))
      (should (equal (plist-get (duet-get result :updated_input) :no)
                     :json-false))
      (should (equal (duet-get result :updated_input :list) [])))))

(ert-deftest duet-approval-view-test-edit-text ()
  "The new text of a file is edited as text, in the mode of the file."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approvals)
    (duet-test-press "e" #'duet-approval-edit)
    (should (equal (buffer-string) "Turn 1: hello\n"))
    (should (derived-mode-p 'text-mode))
    (should (string-match-p "C-c C-c Allow with your edit, C-c C-k Leave it"
                            (duet-approval-edit--header)))
    (goto-char (point-max))
    (insert "{ünd \"more\"}\n")
    ;; A cancelled edit is resumed.
    (let ((buffer (current-buffer)))
      (duet-test-press "C-c C-k" #'duet-approval-edit-cancel)
      (should (duet-approval-connection approval))
      (duet-approvals)
      (duet-test-press "e" #'duet-approval-edit)
      (should (eq (current-buffer) buffer)))
    (duet-test-press "C-c C-c" #'duet-approval-edit-send)
    (duet-test-wait-for-state session 'completed)
    (duet-test-wait-for (duet-test-heard "^Allowed with your edit: Write demo.txt$"))
    (should (equal (duet-test-demo-file connection) "Turn 1: hello\n{ünd \"more\"}\n"))
    (should (string-suffix-p "demo.txt" (duet-get-string (duet-test-approval connection approval)
                                                         :updated_input :file_path)))))

(ert-deftest duet-approval-view-test-edited-command ()
  "After a command was allowed with an edit, Emacs shows the command that runs."
  (duet-test-with-question (connection session approval) "permit:1"
    (duet-approvals)
    (duet-test-press "e" #'duet-approval-edit)
    (erase-buffer)
    (insert "echo seven")
    (duet-test-press "C-c C-c" #'duet-approval-edit-send)
    (duet-test-wait-for (duet-test-heard "^Allowed with your edit: Bash \\(\\$ \\)?echo seven$"))
    (duet-test-wait-for-state session 'completed)
    (let ((buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-text buffer "^● Bash echo seven")
      (should-not (string-match-p "echo 1" (duet-test-text buffer)))))
  ;; The title of the call may be the command.
  (let ((approval (make-duet-approval :id "a" :type "function_call" :title "`echo 1`"
                                      :data '(:tool_name "Bash" :tool_input (:command "echo 1")))))
    (should (equal (duet-approval-name
                    (duet-approval--edited approval #s(hash-table test equal data ("command" "echo 2"))))
                   "`echo 2`"))))

(ert-deftest duet-approval-view-test-edit-decided-elsewhere ()
  "An edit says that another client has answered the question; its text stays."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approval-edit approval)
    (let ((buffer (current-buffer)))
      (should (eq buffer (window-buffer)))
      (duet-test-request connection 'approval.decide
                         (list :approval (duet-approval-id approval) :decision "deny" :comment "no"))
      (duet-test-wait-for (not (duet-approval-connection approval)))
      (set-buffer buffer)
      (should (string-match-p "decided already" (duet-approval-edit--header)))
      (duet-test-should-say "already answered"
        (duet-test-press "C-c C-c" #'duet-approval-edit-send)))))

(ert-deftest duet-approval-view-test-text-member ()
  "The text that the server names is edited as text; all else as JSON."
  (pcase-dolist (`(,input ,member ,path ,text ,mode)
                 '(((:content "a = 1") "content" "/x/a.py" "a = 1" python-mode)
                   ((:old_string "1" :new_string "2") "new_string" "a.el" "2" emacs-lisp-mode)
                   ((:content "-*- mode: emacs-lisp -*-") "content" "/x/unknown"
                    "-*- mode: emacs-lisp -*-" text-mode)
                   ((:command "make all" :timeout 5) "command" nil "make all" sh-mode)
                   ((:content "no file") "content" nil "no file" text-mode)
                   ((:content "not named") nil "/x/a" nil nil)
                   ;; An invisible character has to be seen.
                   ((:content "a\u202eb") "content" "/x/a" nil nil)))
    (let* ((data (list :tool_input input :input_text_member member
                       :paths (and path (vector path))))
           (found (duet-approval-edit--text-member data)))
      (should (equal (list input (cdr found)) (list input text)))
      (when found
        (should (eq (duet-approval-edit--mode data (car found)) mode))))))

(ert-deftest duet-approval-view-test-closes ()
  "A decision closes the view of the question, also from another window."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approval-view approval)
    (duet-test-wait-for-text (current-buffer) "^\\+Turn 1: hello")
    (let ((view (current-buffer)))
      (delete-other-windows)
      (duet-test-press "e" #'duet-approval-edit)
      (goto-char (point-min))
      (search-forward "hello")
      (replace-match "goodbye")
      (should (get-buffer-window view))
      (duet-test-press "C-c C-c" #'duet-approval-edit-send)
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for (not (buffer-live-p view))))))

(ert-deftest duet-approval-view-test-decided-elsewhere ()
  "The view of a question reports a decision of another client."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approval-view approval)
    (duet-test-wait-for-text (current-buffer) "^\\+Turn 1: hello")
    (let ((view (current-buffer)))
      (duet-test-request connection 'approval.decide
                         (list :approval (duet-approval-id approval)
                               :decision "deny" :comment "no no" :client "VS Code"))
      (duet-test-wait-for-text view "\\`Write demo.txt was denied by you in VS Code: no no\\.\n\\'")
      (should (eq (window-buffer) view))
      (set-buffer view)
      (duet-test-should-say "already answered" (duet-test-press "y" #'duet-approval-allow))
      (duet-test-should-say "already answered" (revert-buffer)))))

(ert-deftest duet-approval-view-test-edit-unchanged ()
  "An unchanged input is not sent as an edited one."
  (duet-test-with-question (connection session approval) "hello"
    (duet-approval-view approval)
    (duet-test-press "e" #'duet-approval-edit)
    (duet-test-press "C-c C-c" #'duet-approval-edit-send)
    (duet-test-wait-for-state session 'completed)
    (let ((result (duet-test-approval connection approval)))
      (should (equal (duet-get-string result :status) "approved"))
      (should-not (duet-get result :updated_input)))))

(ert-deftest duet-approval-view-test-not-editable ()
  "Editing is not offered if the agent would ignore the edited input."
  (dolist (editable '(t :json-false))
    (let* ((duet-approval (make-duet-approval
                           :id "a" :type "function_call"
                           :data `(:tool_name "Bash" :tool_input (:command "ls")
                                   :input_editable ,editable)))
           (wanted (if (eq editable t) #'identity #'not)))
      (should (funcall wanted (duet-approval-editable-p duet-approval)))
      (should (funcall wanted (string-match-p "Edit" (duet-approval-keys duet-approval))))
      (should (funcall wanted (string-match-p
                               "Edit" (duet-approvals--inline duet-approval "/"))))
      (should-error (duet-approval-edit duet-approval) :type 'user-error)
      (when (eq editable :json-false)
        (duet-test-should-say "its own input; deny"
          (duet-approval-edit duet-approval)))))
  (should (duet-approval-editable-p (make-duet-approval :id "a" :type "function_call")))
  (should-not (duet-approval-editable-p (make-duet-approval :id "a" :type "human_contact"))))

(ert-deftest duet-approval-view-test-edit-exact ()
  "An empty object in an input stays empty, although jsonrpc.el reads it as null."
  (should (duet-approval--ambiguous-p '(:path "x" :list [(:deep nil)])))
  (should (duet-approval--ambiguous-p nil))
  (should-not (duet-approval--ambiguous-p '(:path "x" :list [1 (:a "")] :no :json-false)))
  (duet-test-with-questions connection
    (let ((session (duet-test-launch connection "hello")))
      (duet-test-question session)
      (duet-test-request connection 'createApproval
                         (list :session_id (duet-session-leaf-id session)
                               :tool_name "Other"
                               :tool_input (list :filter (make-hash-table)
                                                 :list (vector '(:deep nil))
                                                 :no :json-false)))
      (let ((other (duet-test-wait-for
                    (cl-find "Other" (duet-session-approvals session)
                             :key #'duet-approval-tool :test #'equal))))
        (duet-approval-edit other)
        (set-buffer (duet-test-wait-for
                     (duet-approval-view--buffer other 'duet-approval-edit-mode))))
      (should (eq (window-buffer) (current-buffer)))
      (let ((parsed (duet-approval-edit--parse)))
        (should (hash-table-p (gethash "filter" parsed)))
        (should-not (gethash "deep" (aref (gethash "list" parsed) 0) t))
        (should (eq (gethash "no" parsed) :json-false)))
      ;; Later replies have nil for null.
      (should-not (plist-get (duet-get (duet-test-approval connection duet-approval)
                                       :tool_input)
                             :filter)))))

(provide 'duet-approval-view-test)
;;; duet-approval-view-test.el ends here
