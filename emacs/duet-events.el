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

;; Events of messages, tool calls, plans and changes become `duet-message's.  A message
;; ignores an event that is older than its state.

(defconst duet-events--message-types
  '("message_delta" "thinking_delta" "conversation_updated" "plan" "diff_updated"
    "task_error" "queue_changed")
  "Types of events that change messages.")

(defun duet-events--add (session message)
  "Add MESSAGE to SESSION, and announce it."
  (duet-model-add-message message)
  (duet-model-announce (duet-session-model session) 'message-added session message))

(defun duet-events--changed (message)
  "Announce that MESSAGE has changed."
  (let ((session (duet-message-session message)))
    (duet-model-announce (duet-session-model session) 'message-changed session message)))

(defun duet-events--message (session turn type data seq time)
  "Apply to SESSION an event of TURN about a message.
The event has TYPE, DATA, the number SEQ and the TIME."
  (pcase type
    ((or "message_delta" "thinking_delta")
     (duet-events--delta session turn (if (equal type "message_delta") 'text 'thinking)
                         data seq time))
    ("conversation_updated"
     (pcase (duet-get-string data :event_type)
       ((or "tool_call" "tool_result") (duet-events--tool session turn data seq time))
       ((and kind (or "message" "thinking" "system"))
        (duet-events--whole session turn kind data seq time))
       (kind (duet-log "A message of a kind that is not known: %s" (duet-log-brief kind)))))
    ("queue_changed" (duet-events--queue session turn data seq))
    ("plan" (duet-events--put session turn (duet-events--plan-key turn) 'plan
                              (duet-get-objects data :entries) seq time))
    ("diff_updated"
     (when-let ((path (duet-get-string data :path)))
       (duet-events--put session turn (duet-events--diff-key turn path) 'diff
                         data seq time)))
    ;; These errors also arrive as messages of the conversation.
    ((and "task_error" (guard (not (member (duet-get-string data :code)
                                           '("MCP_SERVER_FAILED" "CONTENT_REFUSED"
                                             "SETTING_IGNORED" "RULES_NOT_ASKED")))))
     (let ((message (make-duet-message :key (format "error:%s" seq) :kind 'error
                                       :session session :turn turn :seq seq
                                       :created time)))
       (duet-message-set-text message (or (duet-get-string data :message)
                                          "The agent reports an error"))
       (duet-events--add session message)))))

(defun duet-events--plan-key (turn)
  "Return the key of the plan of TURN."
  (concat "plan:" turn))

(defun duet-events--diff-key (turn path)
  "Return the key of the change of TURN in the file PATH."
  (format "diff:%s:%s" turn path))

(defun duet-events--answer-key (id)
  "Return the key of the answer to the question ID."
  (concat "answer:" id))

(defun duet-events--delta (session turn kind data seq time)
  "Add the text in DATA to a message of TURN in SESSION, of KIND.
SEQ and TIME are the event's."
  (let ((key (duet-get-string data :message_id))
        (delta (duet-get-string data :delta)))
    (when (and key delta)
      (let ((message (duet-session-message session key)))
        (cond
         ((null message)
          (duet-events--add session (make-duet-message
                                     :key key :kind kind :session session :turn turn
                                     :parent (duet-get-string data :parent_tool_use_id)
                                     :open t :seq seq :created time
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

(defun duet-events--kind (type role)
  "Return the kind of a message of the protocol's TYPE, in ROLE."
  (pcase type
    ("thinking" 'thinking)
    ("system" 'system)
    ("plan" 'plan)
    ("diff" 'diff)
    ("approval" 'answer)
    (_ (if (equal role "user") 'prompt 'text))))

(defun duet-events--attachments (data)
  "Return the attachments in DATA of an event or a conversation."
  (or (duet-get-objects data :attachments)
      (duet-get-objects (duet-get data :data) :attachments)))

(defun duet-events--said-kind (type data)
  "Return the kind of a message of the protocol's TYPE, with DATA.
An agent's message with attachments is `content', its thought `sketch'."
  (let ((kind (duet-events--kind type (duet-get-string data :role))))
    (cond
     ((null (duet-events--attachments data)) kind)
     ((eq kind 'text) 'content)
     ((eq kind 'thinking) 'sketch)
     (t kind))))

(defun duet-events--whole (session turn type data seq time)
  "Complete a message of TURN in SESSION, of TYPE, from its whole text in DATA.
SEQ and TIME are the event's."
  (when-let ((key (duet-get-string data :message_id)))
    (let ((message (duet-session-message session key))
          (text (or (duet-get-string data :content) "")))
      (cond
       ((null message)
        (duet-events--add session (make-duet-message
                                   :key key :session session :turn turn :seq seq
                                   :kind (duet-events--said-kind type data)
                                   :parent (duet-get-string data :parent_tool_use_id)
                                   :attachments (duet-events--attachments data)
                                   :created time :chunks (list text)
                                   :cut (and (duet-get data :truncated) t)
                                   :size (length text))))
       ((>= seq (duet-message-seq message))
        (unless (if (duet-get data :truncated)
                    (string-prefix-p text (duet-message-text message))
                  (string= text (duet-message-text message)))
          (duet-message-set-text message text)
          (setf (duet-message-cut message) (and (duet-get data :truncated) t)))
        (setf (duet-message-open message) nil
              (duet-message-seq message) seq)
        (duet-events--changed message))))))

(defun duet-events--queue (session turn data seq)
  "Apply to SESSION a change of its queue: DATA of the event SEQ of TURN.
A text in DATA is the new prompt of TURN."
  (let ((text (duet-get-string data :content))
        (prompt (cl-find-if (lambda (message)
                              (and (eq (duet-message-kind message) 'prompt)
                                   (equal (duet-message-turn message) turn)))
                            (duet-session-order session))))
    (when (and text prompt (>= seq (duet-message-seq prompt)))
      (duet-message-set-text prompt text)
      (setf (duet-message-seq prompt) seq
            (duet-message-cut prompt) (and (duet-get data :truncated) t))
      (duet-events--changed prompt)))
  (duet-model-arrange-messages session (duet-get-strings data :order)))

(defun duet-events--put (session turn key kind data seq time)
  "Set the data of the message KEY of TURN in SESSION, of KIND, to DATA.
SEQ and TIME are the event's."
  (let ((message (duet-session-message session key)))
    (cond
     ((null message)
      (duet-events--add session (make-duet-message
                                 :key key :kind kind :session session :turn turn
                                 :seq seq :created time :data data)))
     ((>= seq (duet-message-seq message))
      (setf (duet-message-data message) data
            (duet-message-seq message) seq)
      (duet-events--changed message)))))

(defun duet-events--tool (session turn data seq time)
  "Apply to SESSION the tool call of TURN in DATA.
SEQ and TIME are the event's."
  (when-let ((id (or (duet-get-string data :tool_result_for_id)
                     (duet-get-string data :tool_id))))
    ;; An agent may use the same id in each turn.
    (let* ((key (concat turn "/" id))
           (old (duet-session-message session key))
           (tool (or old (make-duet-tool :key key :kind 'tool :session session :turn turn
                                         :id id :seq seq :created time))))
      (when (>= seq (duet-message-seq tool))
        (setf (duet-message-seq tool) seq)
        (duet-events--tool-members tool data)
        (if old
            (duet-events--changed tool)
          (duet-events--add session tool))))))

(defun duet-events--tool-members (tool data)
  "Store the members of DATA, of an event or a conversation, in TOOL."
  (cl-macrolet ((take (accessor &rest keys)
                  `(when-let ((value (or ,@(mapcar (lambda (key)
                                                     `(duet-get-string data ,key))
                                                   keys))))
                     (setf (,accessor tool) value))))
    (take duet-tool-name :tool_name)
    (take duet-tool-title :tool_title :title)
    (take duet-tool-tool-kind :tool_kind)
    (take duet-tool-result :tool_result_content)
    (take duet-tool-approval :approval_id)
    (take duet-tool-refused-by :refused_by)
    (take duet-tool-refusal :refusal)
    (take duet-tool-parent :parent_tool_use_id))
  (when-let ((status (or (duet-get-string data :tool_status)
                         (duet-get-string data :status))))
    (setf (duet-tool-status tool) (intern status)))
  (when-let ((input (or (duet-get data :tool_input)
                        (duet-events--json (duet-get-string data :tool_input_json)))))
    (setf (duet-tool-input tool) input))
  (when-let ((more (or (duet-get data :tool_data)
                       (and (not (duet-get-string data :tool_result_for_id))
                            (duet-get data :data)))))
    (setf (duet-tool-paths tool) (duet-get-strings more :paths)
          (duet-tool-diffs tool) (duet-get-objects more :diffs)
          (duet-tool-terminal tool) (duet-get-string more :terminal)
          (duet-message-attachments tool) (duet-get-objects more :attachments)))
  (cond ((duet-get data :truncated) (setf (duet-message-cut tool) t))
        ;; A page has the whole input and result.
        ((or (duet-get-string data :tool_input_json) (plist-member data :is_completed))
         (setf (duet-message-cut tool) nil)))
  (setf (duet-message-open tool)
        (not (memq (duet-tool-status tool) '(completed failed)))))

(defun duet-events--json (text)
  "Return the JSON in TEXT, or TEXT if it is invalid; return nil for nil."
  (and text
       (condition-case nil
           (json-parse-string text :object-type 'plist
                              :null-object nil :false-object :json-false)
         (error text))))

;;; Events

(defconst duet-events--orphans 200
  "Maximum number of events to keep for an unknown turn.")

(defun duet-events-apply (model params)
  "Apply to MODEL an event: PARAMS of the notification `event'.
Signal no error, whatever PARAMS are."
  (duet-log-guard (concat "An event that was not understood: " (duet-log-brief params))
    (let ((type (duet-get-string params :event :type))
          (seq (duet-get-number params :seq)))
      (if (null type)
          (duet-log "An event without a type: %s" (duet-log-brief params))
        (when (and seq (> seq (or (duet-model-seq model) -1)))
          (setf (duet-model-seq model) seq))
        (duet-events--apply model type (duet-get params :event :data)
                            (or seq 0) (duet-get-string params :event :timestamp)
                            (duet-get-string params :turn))))))

(defun duet-events--apply (model type data seq time &optional number)
  "Apply to MODEL an event: TYPE, DATA, its number SEQ and its TIME.
NUMBER is the number of its number, or nil."
  (pcase type
    ("session_status_changed" (duet-events--status model data time number))
    ((or "terminal_output" "terminal_exit")
     (duet-model-announce model 'terminal nil data type))
    ("change_decided" (duet-model-announce model 'decided nil data))
    ("secret_requested" (duet-model-announce model 'secret nil data))
    ;; These may belong to no session.
    ("build_progress" (duet-model-announce model 'build nil data))
    ("trigger_executed" (duet-events--trigger model data))
    ("lagged" (duet-model-announce model 'lagged nil data))
    ((or "hub_silent" "hub_answers")
     (message "duet: %s" (or (duet-get-string data :message) type)))
    ("log_damaged"
     (duet-log "%s" (or (duet-get-string data :message) "The database is damaged"))
     (duet-model-announce model 'lagged nil data))
    ("approval_resolved" (duet-events--resolved model data seq time))
    ("session_deleted" (duet-events--deleted model data))
    ("new_approval" (duet-events--asks model data time number))
    (_
     (let* ((turn (duet-get-string data :session_id))
            (session (and turn (gethash turn (duet-model-turns model)))))
       (cond
        ((null turn) (duet-log "Event %s names no session: %s" type (duet-log-brief data)))
        ((null session) (duet-events--orphan model turn (list type data seq time number)))
        ((not (member type duet-events--message-types))
         (duet-events--settings session type data))
        (t
         (duet-events--touch session time)
         (when (equal type "queue_changed")
           (duet-model-arrange-turns session (duet-get-strings data :order)))
         (when (and (equal (duet-get-string data :event_type) "message")
                    (equal (duet-get-string data :role) "user"))
           (duet-events--prompt session data))
         (when (equal (duet-get-string data :subtype) "budget_near")
           (duet-events--near session turn data))
         (pcase (duet-session-loaded session)
           ('loading (push (list type data seq time) (duet-session-held session)))
           ('t (duet-events--message session turn type data seq time)))))))))

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
    (when-let ((content (duet-get-string data :content)))
      (setf (duet-session-summary session)
            (substring content 0 (min 1000 (length content))))
      (duet-model-announce (duet-session-model session) 'session session))))

(defun duet-events--near (session id data)
  "Record that the turn ID of SESSION has nearly used up a budget, from DATA.
The conversation shows that, too."
  (when-let ((turn (duet-session-turn session id)))
    (setf (duet-turn-near turn) (duet-get-string data :content))
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
      (apply #'duet-events--apply model event))))


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

(defun duet-events--status (model data time &optional number)
  "Apply to MODEL a change of a turn's state, from DATA at TIME.
NUMBER is the number of the turn, or nil."
  (let ((id (duet-get-string data :session_id))
        (uuid (duet-get-string data :thread_id))
        (state (or (duet-get-string data :state) (duet-get-string data :new_status))))
    (if (not (and id uuid state))
        (duet-log "A change of state with members missing: %s" (duet-log-brief data))
      (let* ((session (duet-events--session model uuid))
             (turn (duet-events--turn session id time)))
        (duet-events--name session turn number)
        (setf (duet-session-heard session) (duet-model-tick model))
        (duet-turn-change turn (intern state) time (duet-get-string data :error)
                          (duet-get-string data :error_code))
        (when-let ((parent (duet-get-string data :parent_session_id)))
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
  (when-let* ((id (duet-get-string data :thread_id))
              (session (gethash id (duet-model-sessions model))))
    (setf (duet-session-heard session) (duet-model-tick model))
    (seq-doseq (turn (duet-get data :session_ids))
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

(defun duet-events--settings (session type data)
  "Apply to SESSION an event of TYPE with DATA that changes no message."
  (let ((now (duet-model-tick (duet-session-model session))))
    ;; Some agents send their usage very often, and nothing else with it.
    (if (equal type "usage") (setf (duet-session-counted session) now)
      (setf (duet-session-heard session) now)))
  (pcase type
    ("session_settings_changed"
     (when (plist-member data :title)
       (setf (duet-session-title session) (duet-get-string data :title)))
     (when-let ((agent (duet-get-string data :requested_agent)))
       (duet-session-set-agent session agent))
     (when-let ((mode (duet-get-string data :permission_mode)))
       (setf (duet-session-mode session) mode
             (duet-session-asked-mode session) mode))
     (when-let ((llm (duet-get-string data :model)))
       ;; A requested model is not a confirmed one.
       (unless (duet-get-string (duet-session-agent-info session) :model :current)
         (setf (duet-session-llm session) llm)))
     (when-let ((mode (duet-get-string data :agent_mode)))
       (duet-session-set-agent-mode session mode))
     (when (plist-member data :archived)
       (setf (duet-session-archived session) (duet-get data :archived))))
    ("agent_session"
     (duet-session-merge-agent-info session data)
     (when-let ((mode (duet-get-string data :mode :current)))
       (duet-session-set-agent-mode session mode)))
    ("usage" (duet-events-add-usage session data))
    ("agent_silent"
     (when-let ((turn (duet-session-turn session (duet-get-string data :session_id))))
       (duet-turn-be-silent turn
                            (and (not (eq (duet-get data :ended) t))
                                 (duet-get-string data :since))
                            (duet-get-string data :note)
                            (duet-get-string data :tool_title))))
    ((pred (lambda (type) (member type duet-gates-events)))
     (duet-gates-apply session type data))
    ((or "task_progress" "agent_update"))
    (_ (duet-log "An event of a type that is not known: %s" type)))
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

(defun duet-events--asks (model data time number)
  "Apply to MODEL an agent's new question in DATA, at TIME, of NUMBER, a number."
  (let ((now (duet-model-tick model)))
    (remhash (duet-events--approval-id data) (duet-model-gone model))
    (duet-events--approval model (if number (append data (list :turn number)) data) time now)))

(defun duet-events--approval-id (data)
  "Return the id of the question in DATA, of an event or a reply."
  (or (duet-get-string data :approval) (duet-get-string data :approval_id)))

(defun duet-events--approval (model data time &optional now)
  "Add to MODEL the question in DATA, of an event at TIME.
NOW is its time by the clock of MODEL, or nil if it is from a reply."
  (if-let ((id (duet-events--approval-id data)))
      (let* ((turn (or (duet-get-string data :turn_uuid) (duet-get-string data :session_id)))
             (old (gethash id (duet-model-approvals model)))
             (approval (or old (make-duet-approval :id id))))
        (unless (or (null time) (duet-get-string data :created_at))
          (setq data (append data (list :created_at time))))
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

(defun duet-events--answered (session data seq time)
  "Add to SESSION the answer in DATA, of an event with SEQ and TIME.
It is the answer of the user, or the denial by a rule or a mode.
The server sends the same answers in the pages of a conversation."
  (when (and session (eq (duet-session-loaded session) t)
             (or (equal (duet-get-string data :decision) "denied")
                 (and (equal (duet-get-string data :decided_by) "user")
                      (or (not (equal (duet-get-string data :decision) "approved"))
                          (duet-get data :input_was_edited)))))
    (duet-events--put session (duet-get-string data :session_id)
                      (duet-events--answer-key (duet-get-string data :approval_id))
                      'answer data (or seq 0) time)))

(defun duet-events--resolved (model data &optional seq time)
  "Remove the question in DATA, an event of SEQ and TIME, from MODEL."
  (when-let* ((id (duet-get-string data :approval_id))
              (approval (or (gethash id (duet-model-approvals model))
                            (make-duet-approval :id id))))
    (remhash id (duet-model-approvals model))
    (duet-model-vanish model id)
    (setf (duet-approval-status approval)
          (intern (or (duet-get-string data :decision) "resolved")))
    (let ((session (gethash (duet-get-string data :session_id) (duet-model-turns model))))
      (duet-events--answered session data seq time)
      (duet-model-announce model 'approval-resolved session approval data))))

;;; Replies

;; These functions apply the results of requests: sessions, parts of a conversation,
;; open questions.  A reply that is older than an event changes nothing.

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
          (setf (duet-session-title session) (duet-get-string object :title)
                (duet-session-archived session) (duet-get object :archived)
                (duet-session-background session) (duet-get-objects object :background)))
        ;; The conversation may have had another agent earlier.
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
  "Return the agent for the next prompt of OBJECT, a conversation's last turn."
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


;;;; Pages of a conversation

(defun duet-pages-load (session objects where)
  "Add to SESSION a part of its conversation: the vector OBJECTS.
WHERE is `older' if it precedes the loaded part, else `newer'.  Return the
new messages."
  (duet-log-guard "A conversation that was not understood"
    (let ((new '())
          (after (when-let (((eq where 'older))
                            (first (car (last (duet-session-order session)))))
                   (duet-message-turn first))))
      (seq-do-indexed
       (lambda (object index)
         (duet-log-guard "A part of a conversation that was not understood"
           (dolist (message
                    (list (duet-pages--events session object)
                          (duet-pages--end session object
                                           (if (< (1+ index) (length objects))
                                               (duet-get-string (elt objects (1+ index))
                                                                :session_id)
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

(defun duet-pages-key (object)
  "Return the key of the message of OBJECT, a part of a conversation."
  (let ((type (duet-get-string object :event_type))
        (turn (or (duet-get-string object :session_id) ""))
        (data (duet-get object :data)))
    (cond
     ((member type '("tool_call" "tool_result"))
      (concat turn "/" (or (duet-get-string object :tool_id)
                           (duet-get-string object :tool_result_for_id))))
     ((equal type "plan") (duet-events--plan-key turn))
     ((equal type "diff") (duet-events--diff-key turn (duet-get-string data :path)))
     ((equal type "approval")
      (duet-events--answer-key (duet-get-string data :approval_id)))
     (t (or (duet-get-string object :key) (format "item-%s" (duet-get object :id)))))))

(defun duet-pages--events (session object)
  "Return the new message of OBJECT, a part of SESSION's conversation.
If the message exists already, update it and return nil."
  (let* ((type (duet-get-string object :event_type))
         (tool (member type '("tool_call" "tool_result")))
         (turn (or (duet-get-string object :session_id) ""))
         (data (duet-get object :data))
         (key (duet-pages-key object))
         (seq (or (duet-get-number object :seq) 0))
         (old (duet-session-message session key))
         (text (or (duet-get-string object :content) ""))
         (open (not (duet-get object :is_completed)))
         (message
          (or old
              (if tool
                  (make-duet-tool :key key :kind 'tool :session session :turn turn
                                  :id (substring key (1+ (length turn))))
                (make-duet-message :key key :session session :turn turn
                                   :parent (duet-get-string object :parent_tool_use_id)
                                   :attachments (duet-events--attachments object)
                                   :kind (duet-events--said-kind type object))))))
    (when (>= seq (duet-message-seq message))
      (setf (duet-message-seq message) seq
            (duet-message-open message) open)
      (unless (duet-message-created message)
        (setf (duet-message-created message) (duet-get-string object :created_at)))
      (pcase (duet-message-kind message)
        ('tool (duet-events--tool-members message object))
        ('plan (setf (duet-message-data message) (duet-get-objects data :entries)))
        ;; A message from an event already has the diff.
        ((or 'diff 'answer) (unless old (setf (duet-message-data message) data)))
        (_ (unless (and old (string= text (duet-message-text old)))
             (duet-message-set-text message text))
           (setf (duet-message-cut message) nil)
           (setf (duet-message-loaded message) open)))
      (when old
        ;; A message of this page is not shown yet.
        (when (memq old (duet-session-order session))
          (duet-events--changed old))))
    (and (not old) message)))

(defun duet-pages-loaded (session)
  "End the loading of SESSION: apply the events that were held for it."
  (let ((held (reverse (duet-session-held session)))
        (duet-model-late t))
    (setf (duet-session-loaded session) t
          (duet-session-held session) nil)
    (pcase-dolist (`(,type ,data ,seq ,time) held)
      (duet-log-guard "An event that was not understood"
        (duet-events--message session (duet-get-string data :session_id)
                              type data seq time)))
    (dolist (turn (reverse (duet-session-turns session)))
      (duet-pages--ended session turn))))

(defun duet-pages--end (session object next)
  "Return a message about the end of the turn of OBJECT, a part of SESSION.
NEXT is the turn of the part behind it, or nil if that is unknown.  Return nil
if the turn goes on there or ended well, or if SESSION has the message."
  (when-let ((state (duet-get-string object :session_state))
             (id (duet-get-string object :session_id))
             ((and next (not (equal next id)))))
    (let ((turn (duet-session-turn session id)))
      (duet-events--end session id (intern state) (and turn (duet-turn-error turn))))))

(defun duet-pages--ended (session turn)
  "Add a message to SESSION if TURN, which has messages, did not end well.
No part of the conversation has that message."
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
          (duet-events--resolved model (list :approval_id (duet-approval-id approval)
                                             :session_id (duet-approval-turn approval)))))
      (seq-do (lambda (object)
                (unless (duet-model-gone-p model (duet-get-string object :approval) asked)
                  (duet-events--approval model object nil)))
              objects))))

(provide 'duet-events)
;;; duet-events.el ends here
