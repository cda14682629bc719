;;; duet-model-test.el --- Tests of the model alone  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(defun duet-model-test-event (kind seq turn &rest data)
  "Return params of an event of KIND with number SEQ, of TURN, with DATA."
  (list :subscription_id "sub" :seq seq :kind kind :time "2026-01-01T00:00:00Z"
        :turn_uuid turn :data data))

(defun duet-model-test-model (&optional loaded)
  "Return a model with a session of one turn; LOADED is the state of its messages."
  (let ((model (duet-model-create :root "/nowhere/")))
    (duet-events-apply model (duet-model-test-event
                             "turn.state" 1 "r1" :session_uuid "t1"
                             :state "running" :agent "demo"))
    (when loaded
      (setf (duet-session-loaded (duet-model-session model "t1")) t))
    model))

(defun duet-model-test-delta (seq text &optional turn)
  "Return params of an event that adds TEXT to a message of TURN, as number SEQ."
  (duet-model-test-event "text.delta" seq (or turn "r1") :key "m1" :text text))

(defun duet-model-test-whole (seq text &rest more)
  "Return params of an event with the whole message TEXT, number SEQ and MORE data."
  (apply #'duet-model-test-event "item.added" seq "r1"
         :type "message" :key "m1" :role "assistant" :text text more))

(defconst duet-model-test-odd
  (let ((deep nil))
    (dotimes (_ 1000) (setq deep (list :x deep)))
    (list nil t 0 -1 1.5 "" "x" :json-false [] [nil] [1 "a" []] '(:a) '(:a . 1)
          '(a b) '(1 2) (make-hash-table) deep (make-string 10000 ?x)
          '(:kind "text.delta") '(:turn_uuid "r1") '(:turn_uuid 3)
          '(:kind "text.delta" :turn_uuid "r1" :data 5) '(:kind "plan" :turn_uuid "r1" :seq "x")
          '(:key 7 :text []) '(:session_uuid [] :state "running")
          '(:session_uuid "t1" :state 4)
          '(:type "message" :key "m" :text (:a 1))
          '(:turn_uuid "r1" :type "message" :key "n" :text (:a 1) :turn_state 5)
          '(:type "tool_call" :key "x" :status [] :details 5)
          '(:type "tool_call" :key "y" :details (:paths "p" :diffs [1 (:path 2)]))
          '(:type "nonsense" :key "z") '(:type "change" :key "c" :change 5)
          '(:type "answer" :key "a" :answer []) '(:type "plan" :entries (:a 1))
          '(:entries [1 "x" (:content 5)] :path 3 :title [])
          '(:order ["r1" 5 "r1" nil "x"] :prompt 5 :truncated "x")
          '(:path "p" :diff 3 :added "x")
          '(:approval "a" :options 3)
          '(:approval 9 :status [])))
  "Malformed data, which no server sends.")

(ert-deftest duet-model-test-deleted ()
  "A deleted session disappears with its questions."
  (let ((model (duet-model-test-model)))
    (duet-events-apply model (duet-model-test-event
                             "turn.state" 2 "r2" :session_uuid "t1"
                             :state "running" :agent "demo"))
    (duet-events-apply model (duet-model-test-event
                             "approval.opened" 3 "r2" :approval "a"))
    (should (= 1 (hash-table-count (duet-model-approvals model))))
    (duet-events-apply model (duet-model-test-event
                             "session.deleted" 4 nil :session_uuid "t1" :turn_uuids ["r2"] :kept 1))
    (should (zerop (hash-table-count (duet-model-approvals model))))
    (should (duet-session-archived (duet-model-session model "t1")))
    (should (= 1 (length (duet-session-turns (duet-model-session model "t1")))))
    (duet-events-apply model (duet-model-test-event
                             "session.deleted" 5 nil :session_uuid "t1" :turn_uuids ["r1"]))
    (should-not (duet-model-session model "t1"))
    (should-not (duet-model-session-list model))))

(ert-deftest duet-model-test-order-of-what-has-waited ()
  "An event that waited for a page precedes newer entries of the page."
  (let* ((model (duet-model-test-model))
         (session (duet-model-session model "t1")))
    (setf (duet-session-loaded session) 'loading)
    (duet-events-apply model (duet-model-test-event "plan" 5 "r1" :entries []))
    (duet-pages-load
     session
     (vector '(:id 1 :turn_uuid "r1" :type "message" :key "m1" :role "user" :text "Do"
                   :seq 2 :created_at "2026-01-01T00:00:00Z")
             '(:id 2 :turn_uuid "r1" :type "message" :key "m2" :role "assistant"
                   :text "Done" :seq 7 :created_at "2026-01-01T00:00:00Z")
             '(:id 3 :turn_uuid "r1" :type "message" :key "m3" :role "assistant"
                   :text "More" :seq 8 :created_at "2026-01-01T00:00:01Z"))
     'newer)
    (duet-pages-loaded session)
    (should (equal (mapcar (lambda (message)
                             (list (duet-message-kind message) (duet-message-seq message)))
                           (duet-session-message-list session))
                   '((prompt 2) (plan 5) (text 7) (text 8))))))

;; A reply about a running run once arrived before the event that it was queued.
;; Then the desktop showed that it had failed.
(ert-deftest duet-model-test-state-does-not-go-back ()
  "The state of a turn is the latest one in replies and events."
  (let* ((model (duet-model-create :root "/nowhere/"))
         (at (lambda (second) (format "2026-01-01T00:00:0%d.5Z" second)))
         (event (lambda (state second)
                  (duet-events-apply
                   model `(:kind "turn.state" :time ,(funcall at second) :turn_uuid "r1"
                                 :data (:session_uuid "t1" :state ,state)))))
         (reply (lambda (state second)
                  (duet-pages-load-session
                   model `(:turn_uuid "r1" :session_uuid "t1" :state ,state :prompt "Do"
                               :active_at ,(funcall at second)))))
         (state (lambda () (duet-session-state (duet-model-session model "t1")))))
    (duet-events-sent model '(:turn_uuid "r1" :session_uuid "t1" :agent "demo"))
    (should (eq (funcall state) 'queued))
    (funcall reply "starting" 1)
    (funcall event "queued" 1)
    (should (eq (funcall state) 'starting))
    (funcall event "starting" 1)
    (funcall event "running" 2)
    (funcall event "waiting_input" 3)
    (funcall reply "running" 2)
    (should (eq (funcall state) 'waiting_input))
    (funcall event "running" 3)
    (should (eq (funcall state) 'running))
    ;; The clock is set back.
    (funcall event "completed" 0)
    (should (eq (funcall state) 'completed))
    (funcall reply "running" 0)
    (should (eq (funcall state) 'completed))))

(ert-deftest duet-model-test-errors-in-session ()
  "An error or an omission is shown once: in the session."
  (let ((model (duet-model-test-model t))
        (seq 1000))
    (pcase-dolist (`(,kind . ,data)
                   '(("agent.error" :code "MCP_SERVER_FAILED" :message "the server x ended")
                     ("item.added" :type "notice" :key "sys-1" :text "the server x ended")
                     ("agent.error" :code "CONTENT_REFUSED" :message "an image was left out")
                     ("item.added" :type "notice" :key "sys-2" :text "an image was left out")
                     ("agent.error" :code "SETTING_IGNORED" :message "it has no models")
                     ("item.added" :type "notice" :key "sys-3" :text "it has no models")
                     ("agent.error" :code "OTHER" :message "something else")))
      (duet-events-apply
       model (apply #'duet-model-test-event kind (cl-incf seq) "r1" data)))
    (let ((said (mapcar (lambda (message)
                          (cons (duet-message-kind message) (duet-message-text message)))
                        (hash-table-values (duet-session-messages (duet-model-session model "t1"))))))
      (dolist (text '("the server x ended" "an image was left out" "it has no models"))
        (should (equal (seq-count (lambda (one) (equal (cdr one) text)) said) 1)))
      (should (member '(error . "something else") said)))))

(ert-deftest duet-model-test-odd-events-signal-nothing ()
  "Malformed events signal no error, and a transcript shows the rest."
  (let ((model (duet-model-test-model t))
        (kinds '("text.delta" "thought.delta" "item.added" "item.changed" "plan" "usage"
                 "change.made" "agent.error" "turn.state" "approval.opened"
                 "approval.closed" "session.changed" "session.deleted" "lagged"
                 "terminal.output" "terminal.exited" "terminal.lagged" "secret.requested"
                 "progress" "agent.update" "agent.silent" "queue.changed" "change.decided"
                 "gate.started" "no.such" "" nil 5 [] (:a 1))))
    (mapc (lambda (odd) (duet-events-apply model odd)) duet-model-test-odd)
    (dolist (kind kinds)
      (mapc (lambda (odd)
              (dolist (seq '(nil 0 7 "x" 1.5))
                (dolist (turn '("r1" nil 5))
                  (duet-events-apply model (list :seq seq :kind kind :turn_uuid turn
                                                 :data odd)))))
            duet-model-test-odd))
    (dolist (odd duet-model-test-odd)
      (duet-pages-load-sessions model odd)
      (duet-pages-load-sessions model (vector odd odd))
      (duet-pages-load-approvals model odd)
      (duet-pages-load-approvals model (vector odd))
      (duet-pages-load (duet-model-session model "t1") odd 'newer)
      (duet-pages-load (duet-model-session model "t1") (vector odd) 'older))
    (should (> (length (duet-test-log)) 0))
    (dolist (message (duet-session-message-list (duet-model-session model "t1")))
      (should (stringp (duet-render message))))
    ;; The model still works.
    (duet-events-apply model (duet-model-test-delta 100 "good"))
    (should (equal (duet-message-text
                    (duet-session-message (duet-model-session model "t1") "m1"))
                   "good"))))

(ert-deftest duet-model-test-observer-that-fails ()
  "The failure of an observer is logged, and the other observers are called."
  (let* ((model (duet-model-create :root "/nowhere/"))
          (told 0))
    (duet-model-add-observer (lambda (&rest _) (cl-incf told)) model)
    (duet-model-add-observer (lambda (&rest _) (error "Broken")) model)
    (duet-events-apply model (duet-model-test-event
                             "turn.state" 1 "r1" :session_uuid "t1"
                             :state "running"))
    (should (= told 1))
    (should (string-match-p "Broken" (duet-test-log)))))

(ert-deftest duet-model-test-deltas-twice ()
  "A delta that is replayed after a reconnection adds nothing."
  (let* ((model (duet-model-test-model t))
         (session (duet-model-session model "t1")))
    (dolist (event '((2 . "a") (3 . "b") (2 . "a") (3 . "b") (4 . "c")))
      (duet-events-apply model (duet-model-test-delta (car event) (cdr event))))
    (should (equal (duet-message-text (duet-session-message session "m1")) "abc"))
    (should (= (duet-message-size (duet-session-message session "m1")) 3))))

(ert-deftest duet-model-test-whole-message-settles ()
  "A whole message replaces missed deltas; a truncated one does not shorten it."
  (let* ((model (duet-model-test-model t))
         (message (lambda () (duet-session-message (duet-model-session model "t1") "m1"))))
    (duet-events-apply model (duet-model-test-delta 2 "Hello wor"))
    (duet-events-apply model (duet-model-test-whole 5 "Hello wo" :truncated t))
    (should (equal (duet-message-text (funcall message)) "Hello wor"))
    (should-not (duet-message-open (funcall message)))
    (duet-events-apply model (duet-model-test-whole 6 "Hello world"))
    (should (equal (duet-message-text (funcall message)) "Hello world"))
    ;; A delta adds nothing to a whole message.
    (duet-events-apply model (duet-model-test-delta 7 "!"))
    (should (equal (duet-message-text (funcall message)) "Hello world"))))

(ert-deftest duet-model-test-events-before-their-session ()
  "Events of an unknown turn wait until the turn is known."
  (let* ((model (duet-model-test-model))
         (unknown '()))
    (duet-model-add-observer (lambda (_ kind _s object _e)
                               (when (eq kind 'unknown-turn) (push object unknown)))
                             model)
    (duet-events-apply model (duet-model-test-event
                             "usage" 2 "r9" :input_tokens 7))
    (duet-events-apply model (duet-model-test-event
                             "usage" 3 "r9" :output_tokens 8))
    (should (equal unknown '("r9")))
    (duet-pages-load-session model '(:turn_uuid "r9" :session_uuid "t9" :state "running"))
    (should (equal (duet-session-usage (duet-model-session model "t9"))
                   '(:input_tokens 7 :output_tokens 8)))
    (should-not (duet-model-orphans model))))

(ert-deftest duet-model-test-queued-prompt-stays-last ()
  "Messages of a turn come before the prompt that is queued behind it."
  (let* ((model (duet-model-test-model t))
         (session (duet-model-session model "t1")))
    (duet-events-apply model (duet-model-test-delta 2 "one"))
    (duet-events-apply model (duet-model-test-event
                             "turn.state" 3 "r2" :session_uuid "t1"
                             :state "queued" :parent_uuid "r1"))
    (duet-events-apply model (duet-model-test-event
                             "item.added" 4 "r2" :type "message" :key "m2"
                             :role "user" :text "next"))
    (duet-events-apply model (duet-model-test-event
                             "item.changed" 5 "r1" :type "tool_call"
                             :key "call" :tool_name "Bash" :status "pending"))
    (should (equal (mapcar #'duet-message-key (duet-session-message-list session))
                   '("m1" "r1/call" "m2")))
    (should (duet-message-queued-p (duet-session-message session "m2")))
    (should (eq (duet-session-state session) 'running))
    (should (= (duet-session-queued session) 1))
    (duet-events-apply model (duet-model-test-event
                             "turn.state" 6 "r1" :session_uuid "t1"
                             :state "completed"))
    (should (eq (duet-session-state session) 'queued))))

(ert-deftest duet-model-test-moved-prompt-is-not-the-last ()
  "The parents of turns decide their order, in any order of arrival."
  (dolist (order '(("r4" "r1" "r2" "r3") ("r2" "r4" "r3" "r1") ("r3" "r2" "r1" "r4")))
    (let ((model (duet-model-test-model)))
      (dolist (id order)
        ;; Created in the order r1, r2, r3, r4; run in the order r1, r4, r3, r2.
        (duet-pages-load-session
         model (list :turn_uuid id :session_uuid "t1" :state "completed"
                     :created_at (format "2026-01-01T00:00:0%sZ" (substring id 1))
                     :parent (alist-get id '(("r4" . "r1") ("r3" . "r4") ("r2" . "r3"))
                                                   nil nil #'equal))))
      (should (equal (mapcar #'duet-turn-id
                             (duet-session-turns (duet-model-session model "t1")))
                     '("r2" "r3" "r4" "r1"))))))

(ert-deftest duet-model-test-queue-changed ()
  "A change of the queue updates prompts and order, also while pages are loaded."
  (dolist (loaded '(t loading))
    (let* ((model (duet-model-test-model t))
           (session (duet-model-session model "t1"))
           (queue (lambda (seq turn &rest data)
                    (duet-events-apply
                     model (apply #'duet-model-test-event "queue.changed" seq turn data)))))
      (pcase-dolist (`(,turn . ,seq) '(("r2" . 2) ("r3" . 4) ("r4" . 6)))
        (duet-events-apply
         model (list :seq seq :kind "turn.state" :turn_uuid turn
                     :time (format "2026-01-01T00:00:0%dZ" seq)
                     :data (list :session_uuid "t1" :state "queued")))
        (duet-events-apply model (duet-model-test-event
                                  "item.added" (1+ seq) turn :type "message"
                                  :key (concat "m" turn) :role "user" :text turn)))
      (setf (duet-session-loaded session) loaded)
      (funcall queue 8 "r4" :order ["r4" "unknown" "r2" "r3"])
      (funcall queue 9 "r2" :order ["r4" "r2" "r3"] :prompt "new")
      (funcall queue 10 "r3" :order ["r4" "r2" "r3"] :prompt "long" :truncated t)
      (funcall queue 8 "r2" :order ["r4" "r2" "r3"] :content "older")
      (should (equal (mapcar #'duet-turn-id (duet-session-turns session))
                     '("r3" "r2" "r4" "r1")))
      (when (eq loaded 'loading)
        (duet-pages-loaded session))
      (should (equal (mapcar (lambda (message)
                               (list (duet-message-turn message) (duet-message-text message)
                                     (duet-message-cut message)))
                             (duet-session-message-list session))
                     '(("r4" "r4" nil) ("r2" "new" nil) ("r3" "long" t))))
      ;; Malformed data remove no turn.
      (funcall queue 11 "r2" :order ["r2" "r2" 5])
      (duet-model-arrange-turn session (duet-session-turn session "r2"))
      (should (= (length (duet-session-turns session)) 4))
      ;; A prompt that is sent now runs last.
      (duet-events-sent model '(:turn_uuid "r5" :session_uuid "t1" :agent "demo"))
      (should (equal (duet-session-leaf-id session) "r5")))))

(ert-deftest duet-model-test-events-during-loading ()
  "Events that arrive while a session loads are applied once, after it."
  (let* ((model (duet-model-test-model))
         (session (duet-model-session model "t1")))
    (setf (duet-session-loaded session) 'loading)
    (dolist (event '((2 . "a") (3 . "b") (4 . "c")))
      (duet-events-apply model (duet-model-test-delta (car event) (cdr event))))
    (duet-pages-load session
                     [(:turn_uuid "r1" :type "message" :role "assistant" :text "ab" :seq 3
                                  :key "m1" :open t)]
                     'newer)
    (duet-pages-loaded session)
    (duet-events-apply model (duet-model-test-delta 5 "d"))
    (should (equal (duet-message-text (duet-session-message session "m1")) "abcd"))))

(ert-deftest duet-model-test-delta-begins-in-what-was-loaded ()
  "The first delta after a page that has a part of it adds only the new part.
The length of its message is in UTF-16 code units; some characters take two."
  (pcase-dolist (`(,delta ,length ,text) '(("b🙂c" 7 "a🙂b🙂c") ("🙂b🙂" 6 "a🙂b🙂")
                                           ("b" 4 "a🙂b") ("c" 5 "a🙂bc")
                                           ("c" nil "a🙂bc") ("z" 90 "a🙂bz")))
    (let* ((model (duet-model-test-model))
           (session (duet-model-session model "t1")))
      (setf (duet-session-loaded session) t)
      (duet-pages-load session
                       [(:turn_uuid "r1" :type "message" :role "assistant" :text "a🙂b"
                                    :seq 3 :key "m1" :open t)]
                       'newer)
      ;; The delta after that adds all of its text.
      (pcase-dolist (`(,seq ,more ,length) `((6 ,delta ,length) (7 "!" 1)))
        (duet-events-apply model (duet-model-test-event
                                  "text.delta" seq "r1" :key "m1" :text more
                                  :length length)))
      (should (equal (duet-message-text (duet-session-message session "m1"))
                     (concat text "!"))))))

(ert-deftest duet-model-test-ends-of-turns-that-were-loaded ()
  "A turn that did not end well is marked behind its last part, in each page."
  (let* ((model (duet-model-test-model))
         (session (duet-model-session model "t1")))
    (cl-flet ((load (where &rest parts)
                (duet-pages-load
                 session
                 (vconcat (mapcar (pcase-lambda (`(,id ,turn ,state))
                                    (list :turn_uuid turn :type "message" :role "assistant"
                                          :text id :key id :turn_state state))
                                  parts))
                 where)))
      (load 'newer '("c" "two" "interrupted") '("d" "two" "interrupted") '("e" "three" "running"))
      (load 'older '("a" "one" "timed_out") '("b" "one" "timed_out"))
      (load 'newer '("f" "three" "completed") '("g" "four" "failed"))
      (should (equal (mapcar #'duet-message-text (duet-session-message-list session))
                     '("a" "b" "Timed Out" "c" "d" "Interrupted" "e" "f" "g"))))))

(ert-deftest duet-model-test-tail ()
  "The tail of a text does not depend on its chunks."
  (let ((message (make-duet-message)))
    (dotimes (n 10) (duet-message-append message (make-string n (+ ?a n))))
    (let ((text (apply #'concat (reverse (duet-message-chunks message)))))
      (dotimes (start (1+ (length text)))
        (should (equal (duet-message-tail message start) (substring text start))))
      (should (equal (duet-message-text message) text))
      (should (equal (duet-message-tail message 40) (substring text 40))))))

(ert-deftest duet-model-test-approvals ()
  "A question stays open until its end arrives, or until it is no longer listed."
  (let ((model (duet-model-test-model)))
    (duet-events-apply model (duet-model-test-event
                             "approval.opened" 2 "r1" :approval "a1"
                             :call_id "call" :type "function_call" :tool_name "Write"))
    (duet-events-apply model (duet-model-test-event
                             "approval.opened" 3 "r1" :approval "a2"
                             :call_id "call2" :type "function_call" :tool_name "Write"))
    (should (= (length (duet-session-approvals (duet-model-session model "t1"))) 2))
    (duet-events-apply model (duet-model-test-event
                             "approval.closed" 4 "r1" :approval "a1"
                             :status "approved"))
    (should (equal (mapcar #'duet-approval-id (duet-model-approval-list model)) '("a2")))
    (duet-pages-load-approvals model [])
    (should-not (duet-model-approval-list model))))

;; A reply to a request from before an event has the older state.

(defconst duet-model-test--question
  '(:approval "a" :turn_uuid "r" :type "function_call" :tool_name "Write")
  "An entry of the server's list of questions.")

(defconst duet-model-test--asked
  '(:approval "a" :type "function_call" :tool_name "Write")
  "The data of an event with the same question.")

(defun duet-model-test--listed (&rest changes)
  "Return an entry of the server's list of sessions, with CHANGES."
  (append changes
          (list :turn_uuid "r" :session_uuid "t" :state "completed" :agent "demo" :title "Old"
                :prompt "Do it" :mode "default" :active_at "2026-01-01T00:00:01Z")))

(defun duet-model-test--tell (model kind &rest data)
  "Apply an event of KIND with DATA, of the turn \"r\", to MODEL."
  (duet-events-apply model (list :seq 1 :kind kind :time "2026-01-01T00:00:02Z" :turn_uuid "r"
                                 :data data)))

(ert-deftest duet-model-test-named-by-its-prompt ()
  "A session is named after its prompt at once, then gets the server's name."
  (let* ((model (duet-model-test-model))
         (session (duet-model-session model "t1"))
         (says (lambda (seq role content &rest more)
                 (duet-events-apply model
                                    (apply #'duet-model-test-event "item.added" seq "r1"
                                           :role role :text content
                                           :key (format "m%d" seq)
                                           (append more '(:type "message")))))))
    (should (equal (duet-session-name session) "untitled"))
    (funcall says 2 "assistant" "Hello")
    (funcall says 3 "user" "for a sub-agent" :parent_tool_use_id "c1")
    (funcall says 3 "user" "for you" :type "notice")
    (should (equal (duet-session-name session) "untitled"))
    (funcall says 4 "user" (concat "Mend it" (make-string 3000 ?\s) "x"))
    (should (equal (string-trim (duet-session-name session) nil "[ …]+") "Mend it"))
    (should (= (length (duet-session-summary session)) 1000))
    (funcall says 5 "user" "And then")
    (should (string-prefix-p "Mend it" (duet-session-name session)))
    (duet-pages-load-session model '(:turn_uuid "r1" :session_uuid "t1" :state "running"
                                         :prompt "Mend it all" :summary "Mend it all"))
    (should (equal (duet-session-name session) "Mend it all"))))

(ert-deftest duet-model-test-named-by-its-first-prompt ()
  "A session that its agent continued is named after its first prompt.
Its last turn has no prompt, and the model requests nothing more."
  (let* ((model (duet-model-create))
         (session (duet-pages-load-session
                   model '(:turn_uuid "r2" :session_uuid "t1" :state "running" :parent "r1"
                               :prompt "" :summary "Continued by itself"
                               :session_title "Mend it" :source "agent"))))
    (should (equal (duet-session-name session) "Mend it"))
    (should (equal (duet-turn-query (duet-session-leaf session)) ""))))

(ert-deftest duet-model-test-earlier-turn-keeps-the-title ()
  "An earlier turn, which has the old title, does not rename its session."
  (let* ((model (duet-model-create))
         (session (duet-pages-load-session
                   model '(:turn_uuid "r2" :session_uuid "t1" :state "completed" :parent "r1"
                               :created_at "2026-01-02T03:04:06Z" :title "Colours"))))
    (duet-pages-load-session
     model '(:turn_uuid "r1" :session_uuid "t1" :state "completed"
                 :created_at "2026-01-02T03:04:05Z" :title "edit"))
    (should (equal (duet-session-name session) "Colours"))))

(ert-deftest duet-model-test-answered-before-the-list-came ()
  "A question that was answered after the request for the list does not return."
  (let* ((model (duet-model-create))
         (asked (duet-model-clock model))
         (list (vector duet-model-test--question)))
    (duet-pages-load-approvals model list asked)
    (should (gethash "a" (duet-model-approvals model)))
    (duet-model-test--tell model "approval.closed" :approval "a" :status "approved")
    (duet-pages-load-approvals model list asked)
    (should-not (gethash "a" (duet-model-approvals model)))
    ;; A later list counts: the server has opened the question again.
    (duet-pages-load-approvals model list (duet-model-clock model))
    (should (gethash "a" (duet-model-approvals model)))))

(ert-deftest duet-model-test-asked-before-the-list-came ()
  "A question that arrives after the request for the list stays."
  (let* ((model (duet-model-create))
         (asked (duet-model-clock model)))
    (apply #'duet-model-test--tell model "approval.opened" duet-model-test--asked)
    (duet-pages-load-approvals model [] asked)
    (should (gethash "a" (duet-model-approvals model)))
    (duet-pages-load-approvals model [] (duet-model-clock model))
    (should-not (gethash "a" (duet-model-approvals model)))
    (setq asked (duet-model-clock model))
    (apply #'duet-model-test--tell model "approval.opened" duet-model-test--asked)
    (duet-pages-load-approvals model (vector duet-model-test--question) asked)
    (should (gethash "a" (duet-model-approvals model)))))

(ert-deftest duet-model-test-set-before-the-list-came ()
  "A setting from an event survives a list that was requested before."
  (let* ((model (duet-model-create))
         (session (duet-pages-load-session model (duet-model-test--listed)))
         (asked (duet-model-clock model)))
    (duet-model-test--tell model "session.changed" :title "New" :mode "plan"
                           :archived t)
    (duet-model-test--tell model "agent.silent" :ended t)
    (duet-model-test--tell model "usage" :input_tokens 7)
    ;; The function reports that, so that the list is requested again.
    (should (equal (duet-pages-load-sessions
                    model (vector (duet-model-test--listed :input_tokens 3)) asked)
                   (list session)))
    (should (equal (duet-session-title session) "New"))
    (should (equal (duet-session-mode session) "plan"))
    (should (duet-session-archived session))
    (should (equal (plist-get (duet-session-usage session) :input_tokens) 7))
    ;; A list that was requested later is applied.
    (should-not (duet-pages-load-sessions
                 model (vector (duet-model-test--listed :title "Newer" :input_tokens 9
                                                       :archived :json-false))
                 (duet-model-clock model)))
    (should (equal (duet-session-title session) "Newer"))
    (should-not (duet-session-archived session))
    (should (equal (plist-get (duet-session-usage session) :input_tokens) 9))))

(ert-deftest duet-model-test-deleted-before-the-list-came ()
  "A session that was deleted after the request for the list does not return."
  (let* ((model (duet-model-create))
         (asked (duet-model-clock model)))
    (duet-pages-load-session model (duet-model-test--listed))
    (duet-model-test--tell model "session.deleted" :session_uuid "t" :turn_uuids ["r"])
    (duet-pages-load-sessions model (vector (duet-model-test--listed)) asked)
    (should-not (duet-model-session-list model))))

(ert-deftest duet-model-test-began-before-the-list-came ()
  "A list adds the data that the events of a new session lack."
  (let* ((model (duet-model-create))
         (asked (duet-model-clock model)))
    (duet-model-test--tell model "turn.state" :session_uuid "t" :state "running")
    (duet-pages-load-sessions
     model (vector (duet-model-test--listed :state "queued" :working_dir "/tmp")) asked)
    (let ((session (duet-model-session model "t")))
      (should (eq (duet-session-state session) 'running))
      (should (equal (duet-session-agent session) "demo"))
      (should (equal (duet-session-cwd session) "/tmp"))
      (should (equal (duet-turn-query (duet-session-leaf session)) "Do it")))))

(ert-deftest duet-model-test-numbers ()
  "Turns and sessions have their numbers, from events and from replies."
  (let ((model (duet-model-create)))
    (duet-events-apply model '(:seq 1 :kind "turn.state" :time "2026-01-01T00:00:00Z"
                                    :session 12 :turn "12.1" :turn_uuid "r1"
                                    :data (:session_uuid "t1" :state "completed")))
    (duet-pages-load-session model '(:turn_uuid "r3" :turn "12.3" :session 12 :parent "12.2"
                                     :session_uuid "t1" :state "queued" :prompt "Third"
                                     :created_at "2026-01-01T00:00:02Z"))
    (duet-pages-load-session model '(:turn_uuid "r2" :turn "12.2" :session 12 :parent "12.1"
                                     :session_uuid "t1" :state "running" :prompt "Second"
                                     :created_at "2026-01-01T00:00:03Z"))
    (let ((session (duet-model-session model "t1")))
      (should (equal (duet-session-number session) "12"))
      ;; The numbers of parents give the order, which differs from that of the times.
      (should (equal (mapcar #'duet-turn-number (duet-session-turns session))
                     '("12.3" "12.2" "12.1")))
      (should (equal (duet-turn-id (duet-session-turn session "12.3")) "r3"))
      ;; A list, which does not name parents, leaves them as they are.
      (duet-pages-load-session model '(:turn_uuid "r3" :turn "12.3" :session 12
                                       :session_uuid "t1" :state "queued" :prompt "Third"))
      (should (equal (duet-turn-parent (duet-session-turn session "12.3")) "12.2"))
      (duet-events-sent model '(:turn_uuid "r4" :turn "13.1" :session_uuid "t2" :agent "demo"))
      (should (equal (duet-session-number (duet-model-session model "t2")) "13")))))

(provide 'duet-model-test)
;;; duet-model-test.el ends here
