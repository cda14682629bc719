;;; duet-approvals-test.el --- Tests of the list of questions  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-approvals)

(ert-deftest duet-approvals-test-width ()
  "The list of questions uses the width of its window."
  (save-window-excursion
    (with-temp-buffer
      (duet-approvals-mode)
      (set-window-buffer (selected-window) (current-buffer))
      (pcase-dolist (`(,width . ,input) '((40 . 16) (62 . 18) (100 . 52) (180 . 132)))
        (cl-letf (((symbol-function 'window-width) (lambda (&rest _) width)))
          (duet-approvals--print)
          (should (equal (list width (nth 1 (aref tabulated-list-format 1)))
                         (list width input)))))
      ;; Each list has its own widths.
      (with-temp-buffer
        (duet-approvals-mode)
        (should (= (nth 1 (aref tabulated-list-format 1)) 32))))))

(ert-deftest duet-approvals-test-list-keys ()
  "Keys of the list view a question, go to it, and refresh from the servers."
  (duet-test-with-questions connection
    (call-interactively #'duet-approvals)
    (pcase-dolist (`(,key . ,command) '(("y" . duet-approval-allow)
                                        ("v" . duet-approval-view)))
      (duet-test-should-say "No question is here" (duet-test-press key command)))
    (duet-test-should-say "No question waits for you"
      (duet-test-press "j" #'duet-approval-next))
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-test-question session))
           (list (current-buffer)))
      (duet-approvals-flush)
      (duet-test-press "RET" #'duet-approval-view)
      (should (derived-mode-p 'duet-approval-view-mode))
      (pop-to-buffer list)
      (duet-test-press "j" #'duet-approval-next)
      (should (derived-mode-p 'duet-transcript-mode))
      (should (eq duet-session session))
      (duet-test-press "j" #'duet-approval-next)
      (should (duet-test-heard "the only question"))
      (duet-test-press "w" #'duet-approvals)
      (should (eq (current-buffer) list))
      ;; As if no event had reported the question.
      (remhash (duet-approval-id approval)
               (duet-model-approvals (duet-connection-model connection)))
      (should (string-match-p "No question waits" (duet-test-questions-text)))
      (duet-test-press "g" #'duet-approvals-refresh)
      (duet-test-wait-for (string-match-p "Write +demo" (duet-test-questions-text)))
      ;; Without a server the question stays, and the answer is not lost.
      (let ((duet-restart-delays '(1000)))
        (signal-process (process-id (jsonrpc--process (duet-connection-rpc connection)))
                        'SIGKILL)
        (duet-test-wait-for (eq (duet-connection-state connection) 'lost)))
      (duet-test-press "g" #'duet-approvals-refresh)
      (duet-test-press "y" #'duet-approval-allow)
      (should (duet-test-heard "not answered; the question still waits: "))
      (should (string-match-p "Write +demo" (duet-test-questions-text))))))

(ert-deftest duet-approvals-test-order ()
  "A question is shown whether its tool call arrives before or after it."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "quiet"))
           (buffer (duet-transcript-open connection session))
           (turn (progn (duet-test-wait-for-state session 'completed)
                       (duet-test-wait-for (eq (duet-session-loaded session) t))
                       (duet-session-leaf-id session)))
           (seq 1000000)
           (tell (lambda (kind &rest data)
                   (duet-events-apply
                    (duet-connection-model connection)
                    (list :seq (cl-incf seq) :kind kind :turn_uuid turn
                          :time (format "2100-01-01T00:00:00.%dZ" seq) :data data))))
           (ask (lambda (id)
                  (funcall tell "approval.opened" :approval id :call_id id
                           :type "function_call" :tool_name "Bash"
                           :title (concat "Run " id)
                           :rule_preview '(:session (:tool "Bash"))
                           :tool_input (list :command (concat "run " id)))))
           (call (lambda (id status)
                   (funcall tell "item.changed" :type "tool_call" :key id
                            :tool_name "Bash" :title (concat "Call " id)
                            :status status))))
      (funcall ask "one")
      (funcall call "one" "pending")
      (funcall call "two" "pending")
      (funcall ask "two")
      (funcall call "two" "in_progress")
      (duet-approvals-flush)
      (duet-test-wait-for-text
       buffer "\\? Bash  \\$ run one\n  \\[y\\] Allow  \\[n\\] Deny  .*\n\\(  .*\n\\)?\\? Bash  \\$ run two\n  \\[y\\]")
      ;; A question stands for its tool call.
      (should-not (string-match-p "Call" (duet-test-text buffer)))
      (funcall tell "approval.closed" :approval "one" :status "approved"
               :decided_by "user")
      (duet-approvals-flush)
      (duet-test-wait-for-text buffer "Call one[^?]*\\? Bash  \\$ run two\n")
      (should-not (string-match-p "Call two" (duet-test-text buffer)))
      (should-not (string-match-p "\\? Bash  \\$ run one" (duet-test-text buffer)))
      (should (duet-test-heard "^Duet: Run one was allowed by you in another client$"))
      (funcall tell "approval.closed" :approval "two" :status "cancelled"
               :decided_by "end")
      (should (duet-test-heard "^Duet: Run two was withdrawn"))
      (duet-test-wait-for-text buffer "Call one[^?]*Call two"))))

(ert-deftest duet-approvals-test-projects ()
  "The list has the questions of all connected projects, the oldest first."
  (let ((duet-connections (make-hash-table :test #'equal))
        (duet-model-observers nil)
        (global-mode-string nil)
        (duet-approvals--lighter-text nil))
    (cl-loop
     for (root state time tool) in '(("/b/beta/" ready "2026-01-01T00:00:02Z" "Second")
                                     ("/a/alpha/" lost "2026-01-01T00:00:01.5Z" "First")
                                     ("/c/gamma/" stopped "2026-01-01T00:00:00Z" "Hidden"))
     do (let ((model (duet-model-create :root root)))
          (puthash root (make-duet-connection :root root :model model :state state)
                   duet-connections)
          (duet-events-apply
           model `(:seq 1 :kind "approval.opened" :time ,time :turn_uuid "r"
                          :data (:approval ,tool :type "function_call" :stale t
                                           :tool_name ,tool :tool_input (:x "y"))))))
    (unwind-protect
        (save-window-excursion
          (duet-approvals)
          (should (string-match-p "First +stale x: y +… +alpha .*\n.*Second +stale x: y +… +beta"
                                  (duet-test-questions-text)))
          (should-not (string-match-p "Hidden" (duet-test-questions-text)))
          (should (equal (substring-no-properties duet-approvals--lighter-text) " Duet[2!]"))
          (should (string-match-p "alpha: server lost" (duet-approvals--mode-line)))
          (should (eq (tabulated-list-get-id) (car (duet-approvals-all))))
          (forward-line 1)
          ;; After a decision point is on the next question, or on the previous one.
          (duet-events-apply (duet-connection-model (gethash "/b/beta/" duet-connections))
                            '(:seq 2 :kind "approval.closed" :turn_uuid "r"
                                   :data (:approval "Second")))
          (duet-approvals-flush)
          (should (eq (tabulated-list-get-id) (car (duet-approvals-all))))
          (let ((duet-lighter nil))
            (duet-approvals-flush)
            (should-not duet-approvals--lighter-text)))
      (kill-buffer "*duet questions*")
      (when duet-approvals--timer
        (cancel-timer duet-approvals--timer)
        (setq duet-approvals--timer nil)))))

(defun duet-approvals-test-lose (lose code)
  "Check that a question stays open when the function LOSE loses its answer.
LOSE takes the connection.  CODE is the code of the error."
  (duet-test-with-questions connection
    (save-window-excursion (duet-approvals))
    (let* ((session (duet-test-launch connection "hello"))
           (approval (duet-test-question session))
           (id (duet-approval-id approval))
           (stale (eql code -32042))
           fail)
      (cl-letf (((symbol-function 'duet-connection-request)
                 (lambda (&rest arguments) (setq fail (plist-get (cdddr arguments) :error-fn)))))
        (duet-approval-allow approval))
      (should (duet-approval-sending-p approval))
      (should-error (duet-approval-allow approval) :type 'user-error)
      (should (string-match-p "sending" (duet-test-questions-text)))
      (funcall lose connection)
      (funcall fail (list :code code :message "Server died"))
      (duet-test-wait-for (duet-test-heard "still waits"))
      (should-not (duet-approval-sending-p approval))
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
      ;; The next server knows the question.
      (let ((again (duet-test-wait-for
                    (let ((approval (gethash id (duet-model-approvals
                                                 (duet-connection-model connection)))))
                      (and approval (eq (and (duet-approval-stale approval) t) stale)
                           approval)))))
        (duet-test-wait-for (string-match-p (if stale "stale demo.txt \\+1 −0" "Write +demo.txt \\+1 −0")
                                            (duet-test-questions-text)))
        (duet-approval-allow again)
        (duet-test-wait-for-state session 'completed)
        (should (equal (duet-test-demo-file connection) "Turn 1: hello\n"))))))

(ert-deftest duet-approvals-test-lost-server ()
  "A question stays open if the server dies before it stores the answer."
  (duet-approvals-test-lose #'duet-test-kill-server -1))

(ert-deftest duet-approvals-test-lost-daemon ()
  "A question stays open, as a stale one, if the daemon dies before the answer."
  (duet-approvals-test-lose #'duet-test-kill-daemon -32042))

(provide 'duet-approvals-test)
;;; duet-approvals-test.el ends here
