;;; duet-events-messages.el --- From events to the messages of a session  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What was said and done in a session: events of its messages, tool calls, plans and
;; changes become `duet-message's.  An event that is older than what a message
;; has already changes nothing.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-log)
(require 'duet-model)

(defconst duet-events--message-types
  '("message_delta" "thinking_delta" "conversation_updated" "plan" "diff_updated"
    "task_error" "queue_changed")
  "Types of events that change messages.")

(defun duet-events--add (session message)
  "Add MESSAGE to SESSION and say so."
  (duet-model-add-message message)
  (duet-model-announce (duet-session-model session) 'message-added session message))

(defun duet-events--changed (message)
  "Say that MESSAGE has changed."
  (let ((session (duet-message-session message)))
    (duet-model-announce (duet-session-model session) 'message-changed session message)))

(defun duet-events--message (session run type data seq time)
  "Apply to SESSION what an event of RUN tells of a message.
The event has TYPE, DATA, the number SEQ and the TIME."
  (pcase type
    ((or "message_delta" "thinking_delta")
     (duet-events--delta session run (if (equal type "message_delta") 'text 'thinking)
                         data seq time))
    ("conversation_updated"
     (pcase (duet-get-string data :event_type)
       ((or "tool_call" "tool_result") (duet-events--tool session run data seq time))
       ((and kind (or "message" "thinking" "system"))
        (duet-events--whole session run kind data seq time))
       (kind (duet-log "A message of a kind that is not known: %s" (duet-log-brief kind)))))
    ("queue_changed" (duet-events--queue session run data seq))
    ("plan" (duet-events--put session run (duet-events--plan-key run) 'plan
                              (duet-get-objects data :entries) seq time))
    ("diff_updated"
     (when-let ((path (duet-get-string data :path)))
       (duet-events--put session run (duet-events--diff-key run path) 'diff
                         data seq time)))
    ;; What the conversation has as well, its own event tells.
    ((and "task_error" (guard (not (member (duet-get-string data :code)
                                           '("MCP_SERVER_FAILED" "CONTENT_REFUSED"
                                             "SETTING_IGNORED" "RULES_NOT_ASKED")))))
     (let ((message (make-duet-message :key (format "error:%s" seq) :kind 'error
                                       :session session :run run :seq seq
                                       :created time)))
       (duet-message-set-text message (or (duet-get-string data :message)
                                          "The agent reports an error"))
       (duet-events--add session message)))))

(defun duet-events--plan-key (run)
  "Return the key of the plan of RUN."
  (concat "plan:" run))

(defun duet-events--diff-key (run path)
  "Return the key of what RUN has changed in the file PATH."
  (format "diff:%s:%s" run path))

(defun duet-events--answer-key (id)
  "Return the key of the answer to the question ID."
  (concat "answer:" id))

(defun duet-events--delta (session run kind data seq time)
  "Add to a message of RUN in SESSION, of KIND, the text in DATA.
SEQ and TIME are the event's."
  (let ((key (duet-get-string data :message_id))
        (delta (duet-get-string data :delta)))
    (when (and key delta)
      (let ((message (duet-session-message session key)))
        (cond
         ((null message)
          (duet-events--add session (make-duet-message
                                     :key key :kind kind :session session :run run
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
  "Return what a message is that the protocol calls TYPE, said in ROLE."
  (pcase type
    ("thinking" 'thinking)
    ("system" 'system)
    ("plan" 'plan)
    ("diff" 'diff)
    ("approval" 'answer)
    (_ (if (equal role "user") 'prompt 'text))))

(defun duet-events--attachments (data)
  "Return what DATA, an event's or a conversation's, have beside text."
  (or (duet-get-objects data :attachments)
      (duet-get-objects (duet-get data :data) :attachments)))

(defun duet-events--said-kind (type data)
  "Return what a message is that the protocol calls TYPE, as DATA tell.
What an agent says that is no text is `content', what it thinks `sketch'."
  (let ((kind (duet-events--kind type (duet-get-string data :role))))
    (cond
     ((null (duet-events--attachments data)) kind)
     ((eq kind 'text) 'content)
     ((eq kind 'thinking) 'sketch)
     (t kind))))

(defun duet-events--whole (session run type data seq time)
  "Settle a message of RUN in SESSION, of TYPE, that DATA holds whole.
SEQ and TIME are the event's."
  (when-let ((key (duet-get-string data :message_id)))
    (let ((message (duet-session-message session key))
          (text (or (duet-get-string data :content) "")))
      (cond
       ((null message)
        (duet-events--add session (make-duet-message
                                   :key key :session session :run run :seq seq
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

(defun duet-events--queue (session run data seq)
  "Apply to SESSION a change of its queue: DATA of the event SEQ of RUN.
A new text is that of the prompt of RUN."
  (let ((text (duet-get-string data :content))
        (prompt (cl-find-if (lambda (message)
                              (and (eq (duet-message-kind message) 'prompt)
                                   (equal (duet-message-run message) run)))
                            (duet-session-order session))))
    (when (and text prompt (>= seq (duet-message-seq prompt)))
      (duet-message-set-text prompt text)
      (setf (duet-message-seq prompt) seq
            (duet-message-cut prompt) (and (duet-get data :truncated) t))
      (duet-events--changed prompt)))
  (duet-model-arrange-messages session (duet-get-strings data :order)))

(defun duet-events--put (session run key kind data seq time)
  "Make DATA the data of the message KEY of RUN in SESSION, of KIND.
SEQ and TIME are the event's."
  (let ((message (duet-session-message session key)))
    (cond
     ((null message)
      (duet-events--add session (make-duet-message
                                 :key key :kind kind :session session :run run
                                 :seq seq :created time :data data)))
     ((>= seq (duet-message-seq message))
      (setf (duet-message-data message) data
            (duet-message-seq message) seq)
      (duet-events--changed message)))))

(defun duet-events--tool (session run data seq time)
  "Apply to SESSION what DATA tell of a tool call of RUN.
SEQ and TIME are the event's."
  (when-let ((id (or (duet-get-string data :tool_result_for_id)
                     (duet-get-string data :tool_id))))
    ;; An agent may use the same id in each run.
    (let* ((key (concat run "/" id))
           (old (duet-session-message session key))
           (tool (or old (make-duet-tool :key key :kind 'tool :session session :run run
                                         :id id :seq seq :created time))))
      (when (>= seq (duet-message-seq tool))
        (setf (duet-message-seq tool) seq)
        (duet-events--tool-members tool data)
        (if old
            (duet-events--changed tool)
          (duet-events--add session tool))))))

(defun duet-events--tool-members (tool data)
  "Take into TOOL what DATA tell, an event's or a conversation's."
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
        ;; A page has all of both.
        ((or (duet-get-string data :tool_input_json) (plist-member data :is_completed))
         (setf (duet-message-cut tool) nil)))
  (setf (duet-message-open tool)
        (not (memq (duet-tool-status tool) '(completed failed)))))

(defun duet-events--json (text)
  "Return the JSON in TEXT, or TEXT if it is none; nil is nil."
  (and text
       (condition-case nil
           (json-parse-string text :object-type 'plist
                              :null-object nil :false-object :json-false)
         (error text))))

(provide 'duet-events-messages)
;;; duet-events-messages.el ends here
