;;; duet-events.el --- Events and replies of the server, into the model  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-events-apply' applies one event from the server to the model.  The functions
;; with the prefix `duet-pages-' apply replies.  They signal no error: invalid data are
;; logged.
;;
;; The same data may arrive twice: from a request and as an event, or after a
;; reconnection.  So a message keeps the number of the last event that changed it,
;; and ignores older ones.  When a message is complete, the server sends its whole
;; text, which replaces what may be incomplete here.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-log)
(require 'duet-model)

;;; Messages of a session

;; A message is made of an item, from an event or from a page of `session.items': they
;; have the same members.  A message ignores an item that is older than its state.

(defconst duet-events--message-kinds
  '("text.delta" "thought.delta" "item.added" "item.changed" "plan" "change.made"
    "agent.error" "queue.changed")
  "Kinds of events that change messages.")

(defun duet-events--add (session message)
  "Add MESSAGE to SESSION, and announce it."
  (duet-model-add-message message)
  (duet-model-announce (duet-session-model session) 'message-added session message))

(defun duet-events--changed (message)
  "Announce that MESSAGE has changed."
  (let ((session (duet-message-session message)))
    (duet-model-announce (duet-session-model session) 'message-changed session message)))

(defun duet-events--turn-of (event)
  "Return the id of the turn of EVENT, or nil."
  (duet-get-string event :turn_uuid))

(defun duet-events--seq (event)
  "Return the number of EVENT, 0 if it has none."
  (or (duet-get-number event :seq) 0))

(defun duet-events--message (session event)
  "Apply to SESSION an EVENT about a message."
  (let ((data (duet-get event :data)))
    (pcase (duet-get-string event :kind)
      ("text.delta" (duet-events--delta session 'text event data))
      ("thought.delta" (duet-events--delta session 'thinking event data))
      ("queue.changed" (duet-events--queue session event data))
      ("agent.error" (duet-events--error session event data))
      ("plan" (duet-events--put session event (cl-list* :type "plan" data)))
      ("change.made"
       (duet-events--put session event (list :type "change" :change data
                                             :key (duet-get-string data :path))))
      ("approval.closed"
       (duet-events--put session event (list :type "answer" :answer data
                                             :key (duet-get-string data :approval))))
      (_ (duet-events--put session event data)))))

(defun duet-events--put (session event item)
  "Store ITEM, which EVENT has, in SESSION."
  (when-let ((new (duet-events--item
                   session
                   (cl-list* :turn_uuid (duet-events--turn-of event)
                             :seq (duet-events--seq event)
                             :created_at (duet-get-string event :time)
                             item))))
    (duet-events--add session new)))

(defun duet-events--error (session event data)
  "Add to SESSION a message about the agent's error in DATA of EVENT.
Some of these errors also arrive as notices, which are shown instead."
  (unless (member (duet-get-string data :code)
                  '("MCP_SERVER_FAILED" "CONTENT_REFUSED" "SETTING_IGNORED"
                    "RULES_NOT_ASKED"))
    (let* ((seq (duet-events--seq event))
           (message (make-duet-message :key (format "error:%s" seq) :kind 'error
                                       :session session :turn (duet-events--turn-of event)
                                       :seq seq :created (duet-get-string event :time))))
      (duet-message-set-text message (or (duet-get-string data :message)
                                         "The agent reports an error"))
      (duet-events--add session message))))

(defun duet-events--delta (session kind event data)
  "Add the text in DATA of EVENT to a message of SESSION, of KIND."
  (let ((key (duet-get-string data :key))
        (delta (duet-get-string data :text))
        (seq (duet-events--seq event)))
    (when (and key delta)
      (let ((message (duet-session-message session key)))
        (cond
         ((null message)
          (duet-events--add session (make-duet-message
                                     :key key :kind kind :session session
                                     :turn (duet-events--turn-of event)
                                     :parent (duet-get-string data :parent_tool_use_id)
                                     :open t :seq seq :created (duet-get-string event :time)
                                     :chunks (list delta)
                                     :size (length delta))))
         ((and (duet-message-open message)
               (or (eql seq 0) (> seq (duet-message-seq message))))
          (setq delta (duet-message-news message delta (duet-get-number data :length)))
          (duet-message-append message delta)
          (setf (duet-message-seq message) seq
                (duet-message-loaded message) nil)
          (duet-model-announce (duet-session-model session)
                               'message-text session message delta)))))))

(defun duet-events--queue (session event data)
  "Apply to SESSION a change of its queue, from DATA of EVENT.
A prompt in DATA is the new prompt of the turn of EVENT."
  (let ((text (duet-get-string data :prompt))
        (seq (duet-events--seq event))
        (prompt (cl-find-if (lambda (message)
                              (and (eq (duet-message-kind message) 'prompt)
                                   (equal (duet-message-turn message)
                                          (duet-events--turn-of event))))
                            (duet-session-order session))))
    (when (and text prompt (>= seq (duet-message-seq prompt)))
      (duet-message-set-text prompt text)
      (setf (duet-message-seq prompt) seq
            (duet-message-cut prompt) (and (duet-get data :truncated) t))
      (duet-events--changed prompt)))
  (duet-model-arrange-messages session (duet-get-strings data :order)))

;;;; Items

(defun duet-events-key (item)
  "Return the key of the message of ITEM, which is unique in its session.
ITEM is one of the server's items, or a match of a search.  Return nil if it
is invalid."
  (let ((turn (or (duet-get-string item :turn_uuid) ""))
        (key (duet-get-string item :key)))
    (pcase (duet-get-string item :type)
      ("plan" (concat "plan:" turn))
      ((guard (null key)) nil)
      ("change" (format "diff:%s:%s" turn key))
      ("answer" (concat "answer:" key))
      ;; An agent may use the same id in each turn.
      ("tool_call" (concat turn "/" key))
      ((or "message" "thought" "notice") key))))

(defun duet-events--kind (item)
  "Return the kind of the message of ITEM.
An agent's message with attachments is `content', its thought `sketch'."
  (let ((attached (duet-get-objects item :attachments)))
    (pcase (duet-get-string item :type)
      ("tool_call" 'tool)
      ("plan" 'plan)
      ("change" 'diff)
      ("answer" 'answer)
      ("notice" 'system)
      ("thought" (if attached 'sketch 'thinking))
      (_ (cond ((equal (duet-get-string item :role) "user") 'prompt)
               (attached 'content)
               (t 'text))))))

(defun duet-events--item (session item)
  "Store ITEM in SESSION, and return its message if that is new.
A new message is not in the order of SESSION yet.  An older ITEM than the
message is ignored."
  (let* ((key (duet-events-key item))
         (old (and key (duet-session-message session key)))
         (seq (or (duet-get-number item :seq) 0)))
    (cond
     ((null key) (duet-log "An item that is not known: %s" (duet-log-brief item)) nil)
     ((and old (< seq (duet-message-seq old))) nil)
     (t
      (let ((message (or old (duet-events--new session key item))))
        (setf (duet-message-seq message) seq)
        (unless (duet-message-created message)
          (setf (duet-message-created message) (duet-get-string item :created_at)))
        (duet-events--store message item)
        (cond
         ((null old) message)
         ;; A message of a page that is being loaded is not shown yet.
         ((memq old (duet-session-order session))
          (duet-events--changed old)
          nil)))))))

(defun duet-events--new (session key item)
  "Return a message for SESSION with KEY and the place and kind of ITEM."
  (let ((turn (or (duet-get-string item :turn_uuid) ""))
        (kind (duet-events--kind item)))
    (if (eq kind 'tool)
        (make-duet-tool :key key :kind kind :session session :turn turn
                        :id (duet-get-string item :key))
      (make-duet-message :key key :kind kind :session session :turn turn
                         :parent (duet-get-string item :parent_tool_use_id)
                         :attachments (duet-get-objects item :attachments)))))

(defun duet-events--store (message item)
  "Store the members of ITEM in MESSAGE."
  (if (duet-tool-p message)
      (duet-events--tool-members message item)
    (setf (duet-message-open message) (and (duet-get item :open) t))
    (pcase (duet-get-string item :type)
      ("plan" (setf (duet-message-data message) (duet-get-objects item :entries)))
      ;; A page lacks the diff.
      ("change" (unless (and (duet-message-data message)
                             (not (duet-get-string item :change :diff)))
                  (setf (duet-message-data message) (duet-get item :change))))
      ("answer" (setf (duet-message-data message) (duet-get item :answer)))
      (_ (duet-events--text message item)))))

(defun duet-events--text (message item)
  "Store the text of ITEM in MESSAGE.
If it is cut, it does not shorten the text that MESSAGE has."
  (let ((text (or (duet-get-string item :text) ""))
        (cut (and (duet-get item :truncated) t)))
    (unless (and cut (string-prefix-p text (duet-message-text message)))
      (unless (string= text (duet-message-text message))
        (duet-message-set-text message text))
      (setf (duet-message-cut message) cut))
    (setf (duet-message-loaded message) (duet-message-open message))))

(defun duet-events--tool-members (tool item)
  "Store the members of ITEM, a tool call, in TOOL.
Members that ITEM lacks stay."
  (cl-macrolet ((take (accessor key)
                  `(when-let ((value (duet-get-string item ,key)))
                     (setf (,accessor tool) value))))
    (take duet-tool-name :tool_name)
    (take duet-tool-title :title)
    (take duet-tool-tool-kind :tool_kind)
    (take duet-tool-result :result)
    (take duet-tool-refused-by :refused_by)
    (take duet-tool-refusal :refusal)
    (take duet-tool-approval :approval)
    (take duet-tool-parent :parent_tool_use_id))
  (when-let ((status (duet-get-string item :status)))
    (setf (duet-tool-status tool) (intern status)))
  (when-let ((input (duet-get item :tool_input)))
    (setf (duet-tool-input tool) input))
  (when-let ((details (duet-get item :details)))
    (setf (duet-tool-paths tool) (duet-get-strings details :paths)
          (duet-tool-diffs tool) (duet-get-objects details :diffs)
          (duet-tool-terminal tool) (duet-get-string details :terminal)
          (duet-message-attachments tool) (duet-get-objects details :attachments)))
  (cond ((duet-get item :truncated) (setf (duet-message-cut tool) t))
        ;; An item of a page is whole; an event may have only a part.
        ((duet-get-string item :turn_state) (setf (duet-message-cut tool) nil)))
  (setf (duet-message-open tool)
        (not (memq (duet-tool-status tool) '(completed failed)))))

;;; Events

(defconst duet-events--orphans 200
  "Maximum number of events to keep for an unknown turn.")

(defun duet-events-apply (model event)
  "Apply to MODEL an EVENT: the params of the notification `event'.
Signal no error, whatever EVENT is."
  (duet-log-guard (concat "An event that was not understood: " (duet-log-brief event))
    (let ((seq (duet-get-number event :seq)))
      (if (null (duet-get-string event :kind))
          (duet-log "An event without a kind: %s" (duet-log-brief event))
        (when (and seq (> seq (or (duet-model-seq model) -1)))
          (setf (duet-model-seq model) seq))
        (duet-events--apply model event)))))

(defun duet-events--apply (model event)
  "Apply EVENT to MODEL."
  (let* ((kind (duet-get-string event :kind))
         (data (duet-get event :data))
         (turn (duet-events--turn-of event))
         (session (and turn (gethash turn (duet-model-turns model)))))
    (pcase kind
      ("turn.state" (duet-events--status model event data))
      ((or "terminal.output" "terminal.exited")
       (duet-model-announce model 'terminal nil data kind))
      ("terminal.lagged")
      ("change.decided" (duet-model-announce model 'decided session data turn))
      ("secret.requested" (duet-model-announce model 'secret nil data))
      ;; These may belong to no session.
      ("build.progress" (duet-model-announce model 'build nil data))
      ("trigger.fired" (duet-events--trigger model data))
      ("lagged" (duet-model-announce model 'lagged nil data))
      ((or "daemon.silent" "daemon.answers")
       (message "duet: %s" (or (duet-get-string data :message) kind)))
      ("log.damaged"
       (duet-log "%s" (or (duet-get-string data :message) "The database is damaged"))
       (duet-model-announce model 'lagged nil data))
      ("approval.opened" (duet-events--asks model event data))
      ("approval.closed" (duet-events--resolved model event data))
      ("session.deleted" (duet-events--deleted model data))
      ((guard (null turn)) (duet-log "Event %s names no turn: %s" kind (duet-log-brief data)))
      ((guard (null session)) (duet-events--orphan model turn event))
      ((guard (not (member kind duet-events--message-kinds)))
       (duet-events--settings session event data))
      (_
       (duet-events--touch session (duet-get-string event :time))
       (when (equal kind "queue.changed")
         (duet-model-arrange-turns session (duet-get-strings data :order)))
       (when (and (equal (duet-get-string data :type) "message")
                  (equal (duet-get-string data :role) "user"))
         (duet-events--prompt session data))
       (when (equal (duet-get-string data :subtype) "budget_near")
         (duet-events--near session turn data))
       (pcase (duet-session-loaded session)
         ('loading (push event (duet-session-held session)))
         ('t (duet-events--message session event)))))))

(defun duet-events--trigger (model data)
  "Announce the action DATA of a trigger in the project of MODEL."
  (when (equal (duet-get-string data :status) "notified")
    (message "%s: %s"
             (duet-visible-line (or (duet-get-string data :channel)
                                    (duet-get-string data :trigger) "A trigger"))
             (duet-visible-line (or (duet-get-string data :message) ""))))
  (duet-model-announce model 'trigger nil data))

(defun duet-events--touch (session time)
  "Record that SESSION changed at TIME."
  (when (and time (duet-get-time-before-p (duet-session-changed session) time))
    (setf (duet-session-changed session) time)))

(defun duet-events--prompt (session data)
  "Name SESSION by its prompt in DATA until the server sends its name.
An early question can then show the name of its session."
  (unless (or (duet-session-summary session)
              (duet-get-string data :parent_tool_use_id))
    (when-let ((text (duet-get-string data :text)))
      (setf (duet-session-summary session)
            (substring text 0 (min 1000 (length text))))
      (duet-model-announce (duet-session-model session) 'session session))))

(defun duet-events--near (session id data)
  "Record that the turn ID of SESSION has nearly used up a budget, from DATA.
The transcript shows that, too."
  (when-let ((turn (duet-session-turn session id)))
    (setf (duet-turn-near turn) (duet-get-string data :text))
    (duet-model-announce (duet-session-model session) 'session session)))

(defun duet-events--orphan (model turn event)
  "Keep EVENT of TURN until MODEL knows the session of TURN."
  (let ((known (assoc turn (duet-model-orphans model))))
    (if known
        (when (< (length (cdr known)) duet-events--orphans)
          (push event (cdr known)))
      (push (list turn event) (duet-model-orphans model))
      (when-let ((rest (nthcdr 20 (duet-model-orphans model))))
        (setcdr rest nil))
      (duet-model-announce model 'unknown-turn nil turn))))

(defun duet-events--adopt (model session turn)
  "Record that TURN, an id, belongs to SESSION of MODEL; apply its kept events."
  (puthash turn session (duet-model-turns model))
  (when-let ((events (assoc turn (duet-model-orphans model))))
    (setf (duet-model-orphans model) (delq events (duet-model-orphans model)))
    (dolist (event (reverse (cdr events)))
      (duet-events--apply model event))))


;;;; Sessions

(defun duet-events--session (model id)
  "Return the session ID of MODEL; create it if needed."
  (or (gethash id (duet-model-sessions model))
      (puthash id (make-duet-session :id id :model model)
               (duet-model-sessions model))))

(defun duet-events--turn (session id created)
  "Return the turn ID of SESSION; create it if needed, with the time CREATED."
  (or (duet-session-turn session id)
      (let ((turn (make-duet-turn :id id :created (or created ""))))
        (setf (duet-session-turns session)
              (cl-merge 'list (list turn) (duet-session-turns session)
                        (lambda (a b)
                          (duet-get-time-before-p (duet-turn-created b)
                                              (duet-turn-created a)))))
        turn)))

(defun duet-events--name (session turn number)
  "Record that NUMBER is the number of TURN of SESSION, unless it is nil.
It begins with the number of SESSION."
  (when number
    (setf (duet-turn-number turn) number
          (duet-session-number session) (car (split-string number "\\.")))))

(defun duet-events--status (model event data)
  "Apply to MODEL a change of a turn's state, from DATA of EVENT."
  (let ((id (duet-events--turn-of event))
        (uuid (duet-get-string data :session_uuid))
        (state (duet-get-string data :state))
        (time (duet-get-string event :time)))
    (if (not (and id uuid state))
        (duet-log "A change of state with members missing: %s" (duet-log-brief event))
      (let* ((session (duet-events--session model uuid))
             (turn (duet-events--turn session id time)))
        (duet-events--name session turn (duet-get-string event :turn))
        (setf (duet-session-heard session) (duet-model-tick model))
        (duet-turn-change turn (intern state) time (duet-get-string data :error)
                          (duet-get-string data :error_code))
        (when-let ((parent (duet-get-string data :parent_uuid)))
          (setf (duet-turn-parent turn) parent)
          (duet-model-arrange-turn session turn))
        (when-let ((title (duet-get-string data :title)))
          (setf (duet-session-title session) title))
        (when-let ((agent (duet-get-string data :agent)))
          (when (or (eq turn (duet-session-leaf session)) (null (duet-session-agent session)))
            (duet-session-set-agent session agent)))
        (duet-events--touch session time)
        (duet-events--adopt model session id)
        (when (eq (duet-session-loaded session) t)
          (duet-events--ended session turn))
        (duet-model-announce model 'session session)))))

(defun duet-events--deleted (model data)
  "Remove from MODEL the deleted turns of a session in DATA.
If turns remain, because others were forked from them, archive the session."
  (when-let* ((id (duet-get-string data :session_uuid))
              (session (gethash id (duet-model-sessions model))))
    (setf (duet-session-heard session) (duet-model-tick model))
    (seq-doseq (turn (duet-get data :turn_uuids))
      (duet-model-vanish model turn)
      (remhash turn (duet-model-turns model))
      (maphash (lambda (key approval)
                 (when (equal (duet-approval-turn approval) turn)
                   (duet-model-vanish model key)
                   (remhash key (duet-model-approvals model))
                   (duet-model-announce model 'approval-resolved session approval)))
               (duet-model-approvals model))
      (setf (duet-session-turns session)
            (cl-remove turn (duet-session-turns session)
                       :key #'duet-turn-id :test #'equal)))
    (if (duet-session-turns session)
        (setf (duet-session-archived session) t)
      (remhash id (duet-model-sessions model)))
    (duet-model-announce model 'sessions)))

(defun duet-events-sent (model sent)
  "Record in MODEL the turn of SENT, the server's reply to a new prompt.
Its events may arrive after the reply."
  (let ((id (duet-get-string sent :turn_uuid))
        (agent (duet-get-string sent :agent)))
    (unless (gethash id (duet-model-turns model))
      (let* ((session (duet-events--session model (duet-get-string sent :session_uuid)))
             (turn (duet-events--turn session id (format-time-string "%FT%T.%NZ" nil t))))
        (duet-events--name session turn (duet-get-string sent :turn))
        (duet-turn-change turn 'queued nil nil nil)
        (when agent (setf (duet-session-agent session) agent))
        (duet-events--touch session (duet-turn-created turn))
        (duet-events--adopt model session id)
        (duet-model-announce model 'session session)))))

(defun duet-events--end (session turn state err)
  "Return a new message for SESSION if TURN, an id, did not end well.
STATE is that of the turn, and ERR the reason or nil.  Return nil if SESSION
has the message."
  (let ((key (concat "end:" turn)))
    (unless (or (not (memq state '(failed timed_out interrupted cancelled)))
                (duet-session-message session key))
      (let ((message (make-duet-message :key key :session session :turn turn
                                        :kind (if (eq state 'failed) 'error 'system))))
        (duet-message-set-text
         message (concat (capitalize (replace-regexp-in-string "_" " " (symbol-name state)))
                         (if err (concat ": " err) "")))
        message))))

(defun duet-events--ended (session turn)
  "Add a message to SESSION with the reason if TURN did not end well."
  (when-let ((message (duet-events--end session (duet-turn-id turn) (duet-turn-state turn)
                                        (duet-turn-error turn))))
    (duet-events--add session message)))

(defun duet-events--settings (session event data)
  "Apply to SESSION an EVENT with DATA that changes no message."
  (let ((now (duet-model-tick (duet-session-model session))))
    ;; Some agents send their usage very often, and nothing else with it.
    (if (equal (duet-get-string event :kind) "usage") (setf (duet-session-counted session) now)
      (setf (duet-session-heard session) now)))
  (pcase (duet-get-string event :kind)
    ("session.changed"
     (duet-session-take session data)
     (when-let ((agent (duet-get-string data :requested_agent)))
       (duet-session-set-agent session agent))
     (when-let ((mode (duet-get-string data :mode)))
       (setf (duet-session-mode session) mode
             (duet-session-asked-mode session) mode))
     (when-let ((llm (duet-get-string data :model)))
       ;; A requested model is not a confirmed one.
       (unless (duet-get-string (duet-session-agent-info session) :model :current)
         (setf (duet-session-llm session) llm)))
     (when-let ((mode (duet-get-string data :agent_mode)))
       (duet-session-set-agent-mode session mode)))
    ("agent.session"
     (duet-session-merge-agent-info session data)
     (when-let ((mode (duet-get-string data :mode :current)))
       (duet-session-set-agent-mode session mode)))
    ("usage" (duet-events-add-usage session data))
    ("agent.silent"
     (when-let ((turn (duet-session-turn session (duet-events--turn-of event))))
       (duet-turn-be-silent turn
                            (and (not (eq (duet-get data :ended) t))
                                 (duet-get-string data :since))
                            (duet-get-string data :note)
                            (duet-get-string data :tool_title))))
    ((and kind (guard (member kind duet-gates-events)))
     (duet-gates-apply session kind data))
    ((or "progress" "agent.update"))
    (kind (duet-log "An event of a kind that is not known: %s" kind)))
  (duet-model-announce (duet-session-model session) 'session session))

(defun duet-events-add-usage (session data)
  "Update the usage of SESSION from DATA.
The members are :input_tokens, :output_tokens, :context_used,
:context_size and :cost_usd.  Members that DATA lacks stay."
  (dolist (key '(:input_tokens :output_tokens :context_used :context_size :cost_usd))
    (when-let ((value (duet-get-number data key)))
      (when (> value 0)
        (setf (duet-session-usage session)
              (plist-put (duet-session-usage session) key value))))))


;;;; Questions

(defun duet-events--asks (model event data)
  "Apply to MODEL an agent's new question, from DATA of EVENT."
  (let ((now (duet-model-tick model)))
    (remhash (duet-get-string data :approval) (duet-model-gone model))
    (duet-events--approval model
                           (cl-list* :turn_uuid (duet-events--turn-of event)
                                     :turn (duet-get-string event :turn)
                                     :created_at (duet-get-string event :time)
                                     data)
                           now)))

(defun duet-events--approval (model data &optional now)
  "Add to MODEL the question in DATA, as approval.list has it.
NOW is its time by the clock of MODEL, or nil if it is from a reply."
  (if-let ((id (duet-get-string data :approval)))
      (let* ((turn (duet-get-string data :turn_uuid))
             (old (gethash id (duet-model-approvals model)))
             (approval (or old (make-duet-approval :id id))))
        (setf (duet-approval-call approval) (or (duet-get-string data :tool_use_id)
                                                (duet-get-string data :call_id))
              (duet-approval-turn approval) turn
              (duet-approval-type approval) (duet-get-string data :type)
              (duet-approval-title approval) (or (duet-get-string data :title)
                                                 (duet-get-string data :tool_name))
              (duet-approval-stale approval) (and (duet-get data :stale) t)
              (duet-approval-data approval) data
              (duet-approval-heard approval) (or now (duet-approval-heard approval)))
        (puthash id approval (duet-model-approvals model))
        (when (and turn (not (gethash turn (duet-model-turns model))))
          (duet-model-announce model 'unknown-turn nil turn))
        (duet-model-announce model 'approval
                             (and turn (gethash turn (duet-model-turns model)))
                             approval))
    (duet-log "A question without an id: %s" (duet-log-brief data))))

(defun duet-events--answered (session event data)
  "Add to SESSION the answer in DATA of EVENT.
It is the answer of the user, or the denial by a rule or a mode.
The server has the same answers among the items of a session."
  (when (and session (eq (duet-session-loaded session) t)
             (or (equal (duet-get-string data :status) "denied")
                 (and (equal (duet-get-string data :decided_by) "user")
                      (or (not (equal (duet-get-string data :status) "approved"))
                          (duet-get data :input_was_edited)))))
    (when-let ((tool (duet-session-message
                      session (concat (duet-events--turn-of event) "/"
                                      (or (duet-get-string data :tool_use_id)
                                          (duet-get-string data :call_id))))))
      (setf (duet-tool-approval tool) (duet-get-string data :approval)
            (duet-tool-refused-in tool) (duet-get-string data :decided_in)))
    (duet-events--message session event)))

(defun duet-events--resolved (model event data)
  "Remove the question in DATA of EVENT from MODEL."
  (when-let* ((id (duet-get-string data :approval))
              (approval (or (gethash id (duet-model-approvals model))
                            (make-duet-approval :id id))))
    (remhash id (duet-model-approvals model))
    (duet-model-vanish model id)
    (setf (duet-approval-status approval)
          (intern (or (duet-get-string data :status) "resolved")))
    (let ((session (gethash (duet-events--turn-of event) (duet-model-turns model))))
      (duet-events--answered session event data)
      (duet-model-announce model 'approval-resolved session approval data))))

;;; Replies

;; These functions apply the results of requests: sessions, pages of items, open
;; questions.  A reply that is older than an event changes nothing.

(defun duet-pages-load-session (model object &optional asked)
  "Apply to MODEL a session from the server's OBJECT, and return it.
Return nil if OBJECT is invalid, or if the session is gone.  ASKED is the
time of the request by the clock of MODEL.  Later events are newer."
  (let ((id (duet-get-string object :turn_uuid))
        (uuid (duet-get-string object :session_uuid))
        (state (duet-get-string object :state)))
    (cond
     ((not (and id uuid state))
      (duet-log "A session with members missing: %s" (duet-log-brief object)))
     ((duet-model-gone-p model id asked) nil)
     (t
      (let* ((session (duet-events--session model uuid))
             (turn (duet-events--turn session id (duet-get-string object :created_at)))
             (changed (or (duet-get-string object :active_at) ""))
             (old (duet-pages-old-p session asked)))
        (duet-events--name session turn (duet-get-string object :turn))
        (setf (duet-turn-query turn) (or (duet-get-string object :prompt) ""))
        ;; Lists do not contain it.
        (when-let ((parent (duet-get-string object :parent)))
          (setf (duet-turn-parent turn) parent))
        (duet-model-arrange-turn session turn)
        (duet-turn-change turn (intern state) changed (duet-get-string object :error)
                          (duet-get-string object :error_code))
        (when (and (memq (duet-turn-state turn) '(starting running)) (not old))
          (duet-turn-be-silent turn (duet-get-string object :silent_since)
                               (duet-get-string object :silent_note)
                               (duet-get-string object :silent_tool)))
        (setf (duet-session-cwd session) (duet-get-string object :working_dir)
              (duet-session-worktree session) (duet-get object :worktree)
              (duet-session-attempts session) (duet-get-string object :attempts))
        (unless old
          ;; An earlier turn has the title that its session had then.
          (when (eq turn (duet-session-leaf session))
            (duet-session-take session object))
          (setf (duet-session-background session) (duet-get-objects object :background)))
        ;; The session may have had another agent earlier.
        (when (or (null (duet-session-agent session))
                  (and (eq turn (duet-session-leaf session)) (not old)))
          (duet-session-set-agent session (duet-pages-agent object)))
        (duet-pages-settings session object asked)
        (when-let ((name (or (duet-get-string object :session_title)
                             (and (eq turn (duet-session-leaf session))
                                  (duet-get-string object :summary)))))
          (setf (duet-session-summary session) name))
        (when (eq turn (duet-session-leaf session))
          (unless old
            (duet-gates-load session (duet-get object :gates)))
          (unless (and asked (> (duet-session-counted session) asked))
            (duet-events-add-usage session object)
            (duet-events-add-usage
             session (list :context_used (duet-get object :context_tokens)
                           :context_size (duet-get object :context_size)))))
        (duet-events--touch session changed)
        (duet-events--adopt model session id)
        (duet-pages--ended session turn)
        session)))))

(defun duet-pages-agent (object)
  "Return the agent for the next prompt of OBJECT, a session's last turn."
  (or (duet-get-string object :requested_agent) (duet-get-string object :agent)))

(defun duet-pages-old-p (session asked)
  "Return non-nil if an event has changed SESSION since the request at ASKED.
ASKED is a time of the clock of its model, or nil for now."
  (and asked (> (duet-session-heard session) asked)))

(defun duet-pages-settings (session object &optional asked)
  "Store the agent's settings in OBJECT, the last turn, in SESSION.
An object of a list has fewer members than the state of one session, and
changes less.  ASKED is as for `duet-pages-load-session'."
  (when (and (equal (duet-get-string object :turn_uuid) (duet-session-leaf-id session))
             (not (duet-pages-old-p session asked)))
    (setf (duet-session-agent-mode session) (duet-get-string object :agent_mode)
          (duet-session-mode session) (duet-get-string object :mode)
          (duet-session-asked-mode session) (or (duet-get-string object :requested_mode)
                                                (duet-get-string object :mode))
          (duet-session-llm session) (duet-get-string object :model)))
  (when-let ((modes (duet-get-objects object :modes)))
    (setf (duet-session-modes session) modes))
  (when-let ((info (duet-get object :agent_session)))
    (unless (and (duet-session-agent-info session) (duet-pages-old-p session asked))
      (duet-session-merge-agent-info session info))))

(defun duet-pages-load-sessions (model objects &optional asked)
  "Apply to MODEL the server's list of sessions, the vector OBJECTS.
ASKED is as for `duet-pages-load-session'.  Return the sessions with later
events, for which the list is outdated."
  (duet-log-guard "A list of sessions that was not understood"
    (let ((old '()))
      (seq-do (lambda (object)
                (when-let ((session (duet-pages-load-session model object asked)))
                  (when (duet-pages-old-p session asked) (cl-pushnew session old))))
              objects)
      (duet-model-announce model 'sessions)
      old)))


;;;; Pages of items

(defun duet-pages-load (session objects where)
  "Add to SESSION a page of its items: the vector OBJECTS.
WHERE is `older' if it precedes the loaded messages, else `newer'.  Return
the new messages."
  (duet-log-guard "A page of items that was not understood"
    (let ((new '())
          (after (when-let (((eq where 'older))
                            (first (car (last (duet-session-order session)))))
                   (duet-message-turn first))))
      (seq-do-indexed
       (lambda (object index)
         (duet-log-guard "An item that was not understood"
           (dolist (message
                    (list (duet-events--item session object)
                          (duet-pages--end session object
                                           (if (< (1+ index) (length objects))
                                               (duet-get-string (elt objects (1+ index))
                                                                :turn_uuid)
                                             after))))
             (when message
               (puthash (duet-message-key message) message
                        (duet-session-messages session))
               (push message new)))))
       objects)
      (if (eq where 'older)
          (setf (duet-session-order session) (nconc (duet-session-order session)
                                                    (copy-sequence new)))
        (dolist (message (reverse new))
          (duet-model-add-message message)))
      (duet-model-announce (duet-session-model session) 'messages-loaded
                           session (reverse new) where)
      (reverse new))))

(defun duet-pages-loaded (session)
  "End the loading of SESSION: apply the events that were held for it."
  (let ((held (reverse (duet-session-held session)))
        (duet-model-late t))
    (setf (duet-session-loaded session) t
          (duet-session-held session) nil)
    (dolist (event held)
      (duet-log-guard "An event that was not understood"
        (duet-events--message session event)))
    (dolist (turn (reverse (duet-session-turns session)))
      (duet-pages--ended session turn))))

(defun duet-pages--end (session object next)
  "Return a message about the end of the turn of OBJECT, an item of SESSION.
NEXT is the turn of the item behind it, or nil if that is unknown.  Return nil
if the turn goes on there or ended well, or if SESSION has the message."
  (when-let ((state (duet-get-string object :turn_state))
             (id (duet-get-string object :turn_uuid))
             ((and next (not (equal next id)))))
    (let ((turn (duet-session-turn session id)))
      (duet-events--end session id (intern state) (and turn (duet-turn-error turn))))))

(defun duet-pages--ended (session turn)
  "Add a message to SESSION if TURN, which has messages, did not end well.
No item has that message."
  (when (and (eq (duet-session-loaded session) t)
             (cl-find (duet-turn-id turn) (duet-session-order session)
                      :key #'duet-message-turn :test #'equal))
    (duet-events--ended session turn)))


;;;; Questions

(defun duet-pages-load-approvals (model objects &optional asked)
  "Replace the open questions of MODEL by the questions in the vector OBJECTS.
Keep later changes: ASKED is the time of the request by the clock of MODEL,
or nil for now."
  (duet-log-guard "A list of questions that was not understood"
    (let ((ids (mapcar (lambda (object) (duet-get-string object :approval)) objects)))
      (dolist (approval (duet-model-approval-list model))
        (unless (or (member (duet-approval-id approval) ids)
                    (and asked (> (duet-approval-heard approval) asked)))
          (duet-events--resolved model (list :turn_uuid (duet-approval-turn approval))
                                 (list :approval (duet-approval-id approval)))))
      (seq-do (lambda (object)
                (unless (duet-model-gone-p model (duet-get-string object :approval) asked)
                  (duet-events--approval model object)))
              objects))))

(provide 'duet-events)
;;; duet-events.el ends here
