;;; duet-triggers-test.el --- Tests of triggers  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-triggers)

(defconst duet-triggers-test-two
  "default_agent = \"demo\"

[[triggers]]
id = \"mend\"
description = \"Says what went wrong\"
type = \"turn.completed\"
conditions = [{ field = \"payload.prompt\", operator = \"contains\", value = \"again\" }]
action = { type = \"agent\", prompt = \"quiet {{payload.state}}\" }

[[triggers]]
id = \"tell\"
type = \"turn.completed\"
action = { type = \"notify\", channel = \"office\", message = \"{{payload.task_id}} is done\" }
"
  "A configuration with two triggers.")

(defmacro duet-triggers-test-with (configuration &rest body)
  "Run BODY in the list of triggers of a project with CONFIGURATION.
`connection' and `folder', the configuration directory, are bound."
  (declare (indent 1) (debug (form body)))
  `(duet-test-with-project connection
     (let ((folder (expand-file-name "../config/duet/" (duet-connection-root connection))))
       (make-directory folder t)
       (with-temp-file (expand-file-name "config.toml" folder) (insert ,configuration))
       (save-window-excursion
         (with-current-buffer (duet-sessions-buffer connection)
           (call-interactively #'duet-triggers))
         (duet-test-look)
         ,@body))))

(ert-deftest duet-triggers-test-none ()
  "Without triggers the list says how to configure one."
  (duet-triggers-test-with ""
    (duet-test-wait-for-text (current-buffer) "No triggers are configured")
    (dolist (command '(duet-triggers-switch duet-triggers-display))
      (duet-test-should-say "no trigger here" (call-interactively command)))
    (duet-triggers-log nil)
    (duet-test-wait-for-text (window-buffer) "No trigger has done anything")
    (with-current-buffer (window-buffer)
      (duet-test-should-say "nothing here" (duet-test-press "RET" #'duet-triggers-open)))))

(ert-deftest duet-triggers-test-columns ()
  "Columns are as wide as their text; the action gets the rest."
  (with-temp-buffer
    (duet-triggers-mode)
    (cl-flet ((shown (id when)
                (duet-triggers--show
                 `( :enabled t
                    :triggers [( :trigger ,id :enabled t :when ,when
                              :action (:type "notify" :message "walnuts"))]))
                (cl-map 'list #'cadr (seq-take tabulated-list-format 3))))
      (should (equal (shown "a" "b") '(3 7 4)))
      (should (equal (shown "mend-what-is-broken" "watch tests/") '(3 19 12)))
      (should (string-match-p "on  mend-what-is-broken watch tests/ notifies: walnuts"
                              (duet-test-text (current-buffer))))
      (cl-letf (((symbol-function 'duet-header-room) (lambda () 60)))
        (should (equal (shown (make-string 40 ?a) (make-string 40 ?b)) '(3 15 17)))))))

(ert-deftest duet-triggers-test-list ()
  "The list shows the action of each; `x' switches one, with a prefix argument all."
  (duet-triggers-test-with duet-triggers-test-two
    (let ((list (current-buffer)))
      (duet-test-wait-for-text list "^ on +mend +.*demo\\|^ on +mend +.*agent: quiet")
      (duet-test-wait-for-text list "^ on +tell +.*notifies: {{payload")
      (goto-char (point-min))
      (should (equal (duet-triggers--at-point) "mend"))
      (should (string-match-p "went wrong" (get-text-property (progn (search-forward "mend")
                                                                     (1- (point)))
                                                              'help-echo)))
      (duet-test-press "x" #'duet-triggers-switch)
      (duet-test-wait-for-text list "^ off +mend ")
      (should (string-match-p "^ on +tell " (buffer-string)))
      (duet-test-press "x" #'duet-triggers-switch)
      (duet-test-wait-for-text list "^ on +mend ")
      (duet-test-press "x" #'duet-triggers-switch '(4))
      (duet-test-wait-for-text list "All triggers are off")
      (duet-test-press "x" #'duet-triggers-switch '(4))
      (duet-test-wait-for (not (string-match-p "All triggers" (buffer-string))))
      (goto-char (point-min))
      (duet-test-press "g" #'duet-triggers-refresh)
      (duet-test-press "C-o" #'duet-triggers-display)
      (with-current-buffer (duet-test-wait-for (get-file-buffer
                                                (expand-file-name "config.toml" folder)))
        (should (looking-at "\\[\\[triggers\\]\\]\\|id = \"mend\""))))
    (should-not (string-match-p "Observer\\|Reply\\|vent" (duet-test-log)))))

(ert-deftest duet-triggers-test-fires ()
  "The list is updated when a trigger fires.
The session of an agent action can be opened; a notification is shown."
  (duet-triggers-test-with duet-triggers-test-two
    (let ((list (current-buffer)))
      (duet-test-wait-for-text list "^ on +mend ")
      (should-not (string-match-p "^ on +tell .* now" (buffer-string)))
      (duet-test-listening
        (duet-test-launch connection "quiet again")
        (duet-test-wait-for (duet-test-heard "^office: [^ ]+ is done$")))
      ;; No request has caused this.
      (duet-test-wait-for-text list "^ on +tell .* now")
      (duet-test-wait-for-text list "^ on +mend .* now")
      (goto-char (point-min))
      (duet-test-press "RET" #'duet-triggers-log)
      (duet-test-look)
      (duet-test-wait-for-text (current-buffer) "^ now +mend +turn\\.completed +session begun +agent: quiet completed")
      (should-not (string-match-p "tell" (buffer-string)))
      (duet-test-press "g" #'duet-triggers-log-refresh)
      (duet-test-wait-for
       (= 2 (length (duet-model-session-list (duet-connection-model connection)))))
      (goto-char (point-min))
      (duet-test-press "RET" #'duet-triggers-open)
      (duet-test-wait-for-transcript)
      (duet-test-wait-for-text (current-buffer) "quiet completed")
      ;; The mouse does the same.
      (switch-to-buffer list)
      (goto-char (point-min))
      (duet-test-click #'duet-triggers-log-mouse)
      (duet-test-look)
      (duet-test-wait-for-text (current-buffer) "^ now +mend ")
      (goto-char (point-min))
      (duet-test-click #'duet-triggers-open-mouse)
      (duet-test-wait-for-transcript))
    (should-not (string-match-p "Observer\\|Reply\\|vent" (duet-test-log)))))

(ert-deftest duet-triggers-test-test ()
  "A dry run shows the actions of triggers for an event, and does nothing."
  (duet-triggers-test-with duet-triggers-test-two
    (duet-test-wait-for-text (current-buffer) "^ on +mend ")
    (duet-test-should-say "not JSON" (duet-triggers-test "turn.completed" "{"))
    (duet-test-should-quit "C-g" (duet-test-press "F" #'duet-triggers-test))
    (duet-triggers-test "turn.completed" "{\"task_id\": \"t1\", \"prompt\": \"x\"}")
    (let ((shown (duet-test-wait-for (get-buffer (format "*duet triggers test: %s*"
                                                         (duet-remote-abbreviate
                                                          (duet-connection-root connection)))))))
      (duet-test-wait-for-text shown "[✓x] tell  notifies: t1 is done")
      (duet-test-wait-for-text shown "[·-] mend  .")
      ;; Triggers that match come first.
      (should (string-match-p "tell\\(.\\|\n\\)*mend" (duet-test-text shown))))
    (should-not (duet-model-session-list (duet-connection-model connection)))))

(provide 'duet-triggers-test)
;;; duet-triggers-test.el ends here
