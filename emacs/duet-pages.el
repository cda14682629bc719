;;; duet-pages.el --- From the server's replies to a model  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; These functions take what requests returned: sessions, a part of a
;; conversation, questions that wait.  As `duet-events-apply' does with events,
;; they signal nothing, and what is older than an event that came before
;; changes nothing.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-events)

(defun duet-pages-load-session (model object &optional asked)
  "Apply to MODEL a session as the server lists it: OBJECT; return it.
Return nil if that is none, or none any more.  ASKED is when it was asked
for, by the clock of MODEL; what an event has told since is newer."
  (let ((id (duet-get-string object :id))
        (thread (duet-get-string object :thread_id))
        (state (or (duet-get-string object :state) (duet-get-string object :status))))
    (cond
     ((not (and id thread state))
      (duet-log "A session that tells too little: %s" (duet-log-brief object)))
     ((duet-model-gone-p model id asked) nil)
     (t
      (let* ((session (duet-events--session model thread))
             (run (duet-events--run session id (duet-get-string object :created_at)))
             (changed (or (duet-get-string object :last_activity_at) ""))
             (old (duet-pages-old-p session asked)))
        (setf (duet-run-query run) (or (duet-get-string object :query) "")
              (duet-run-parent run) (duet-get-string object :parent_session_id))
        (duet-model-arrange-run session run)
        (duet-run-change run (intern state) changed (duet-get-string object :error)
                         (duet-get-string object :error_code))
        (when (and (memq (duet-run-state run) '(starting running)) (not old))
          (duet-run-be-silent run (duet-get-string object :silent_since)
                              (duet-get-string object :silent_note)
                              (duet-get-string object :silent_tool)))
        (setf (duet-session-cwd session) (duet-get-string object :working_dir))
        (unless old
          (setf (duet-session-title session) (duet-get-string object :title)
                (duet-session-archived session) (duet-get object :archived)
                (duet-session-background session) (duet-get-objects object :background)))
        ;; A conversation may have had another agent before.
        (when (or (null (duet-session-agent session))
                  (and (eq run (duet-session-leaf session)) (not old)))
          (duet-session-set-agent session (duet-pages-agent object)))
        (duet-pages-settings session object asked)
        (when-let ((name (or (duet-get-string object :conversation_title)
                             (and (eq run (duet-session-leaf session))
                                  (duet-get-string object :summary)))))
          (setf (duet-session-summary session) name))
        (when (eq run (duet-session-leaf session))
          (unless old
            (duet-gates-load session (duet-get object :gates)))
          (unless (and asked (> (duet-session-counted session) asked))
            (duet-events-add-usage session object)
            (duet-events-add-usage
             session (list :context_used (duet-get object :effective_context_tokens)
                           :context_size (duet-get object :context_limit)))))
        (duet-events--touch session changed)
        (duet-events--adopt model session id)
        (duet-pages--ended session run)
        session)))))

(defun duet-pages-agent (object)
  "Return the agent that the conversation of OBJECT, its last run, goes on with."
  (or (duet-get-string object :requested_agent) (duet-get-string object :agent)))

(defun duet-pages-old-p (session asked)
  "Return non-nil if an event has told of SESSION after it was ASKED for.
ASKED is a time by the clock of its model, or nil for now."
  (and asked (> (duet-session-heard session) asked)))

(defun duet-pages-settings (session object &optional asked)
  "Take into SESSION what OBJECT, its last run, has of its agent's settings.
A list has less than the state of one session, and changes less.  ASKED
is that of `duet-pages-load-session'."
  (when (and (equal (duet-get-string object :id) (duet-session-leaf-id session))
             (not (duet-pages-old-p session asked)))
    (setf (duet-session-agent-mode session) (duet-get-string object :agent_mode)
          (duet-session-mode session) (duet-get-string object :permission_mode)
          (duet-session-llm session) (duet-get-string object :model)))
  (when-let ((modes (duet-get-objects object :modes)))
    (setf (duet-session-modes session) modes))
  (when-let ((told (duet-get object :agent_session)))
    (unless (and (duet-session-told session) (duet-pages-old-p session asked))
      (duet-session-tell session told))))

(defun duet-pages-load-sessions (model objects &optional asked)
  "Apply to MODEL sessions as the server lists them: the vector OBJECTS.
ASKED is that of `duet-pages-load-session'.  Return those of which an event
has told since, so that not all of the list was taken."
  (duet-log-guard "A list of sessions that was not understood"
    (let ((old '()))
      (seq-do (lambda (object)
                (when-let ((session (duet-pages-load-session model object asked)))
                  (when (duet-pages-old-p session asked) (cl-pushnew session old))))
              objects)
      (duet-model-announce model 'sessions)
      old)))


;;; Pages of a conversation

(defun duet-pages-load (session objects where)
  "Take into SESSION a part of its conversation: the vector OBJECTS.
WHERE is `older' if it precedes what is there, else `newer'.  Return the
messages that are new."
  (duet-log-guard "A conversation that was not understood"
    (let ((new '()))
      (seq-do (lambda (object)
                (duet-log-guard "A part of a conversation that was not understood"
                  (when-let ((message (duet-pages--events session object)))
                    (puthash (duet-message-key message) message
                             (duet-session-messages session))
                    (push message new))))
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
  "Return the key of the message that OBJECT, a part of a conversation, is of."
  (let ((type (duet-get-string object :event_type))
        (run (or (duet-get-string object :session_id) ""))
        (data (duet-get object :data)))
    (cond
     ((member type '("tool_call" "tool_result"))
      (concat run "/" (or (duet-get-string object :tool_id)
                          (duet-get-string object :tool_result_for_id))))
     ((equal type "plan") (duet-events--plan-key run))
     ((equal type "diff") (duet-events--diff-key run (duet-get-string data :path)))
     ((equal type "approval")
      (duet-events--answer-key (duet-get-string data :approval_id)))
     (t (or (duet-get-string object :key) (format "item-%s" (duet-get object :id)))))))

(defun duet-pages--events (session object)
  "Return the new message that OBJECT, a part of SESSION's conversation, is.
Return nil if it is there already; it is brought up to date then."
  (let* ((type (duet-get-string object :event_type))
         (tool (member type '("tool_call" "tool_result")))
         (run (or (duet-get-string object :session_id) ""))
         (data (duet-get object :data))
         (key (duet-pages-key object))
         (seq (or (duet-get-number object :seq) 0))
         (old (duet-session-message session key))
         (text (or (duet-get-string object :content) ""))
         (open (not (duet-get object :is_completed)))
         (message
          (or old
              (if tool
                  (make-duet-tool :key key :kind 'tool :session session :run run
                                  :id (substring key (1+ (length run))))
                (make-duet-message :key key :session session :run run
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
        ;; What an event has brought has the diff itself.
        ((or 'diff 'answer) (unless old (setf (duet-message-data message) data)))
        (_ (unless (and old (string= text (duet-message-text old)))
             (duet-message-set-text message text))
           (setf (duet-message-cut message) nil)
           (setf (duet-message-loaded message) open)))
      (when old
        ;; One that this very page has brought is not shown yet.
        (when (memq old (duet-session-order session))
          (duet-events--changed old))))
    (and (not old) message)))

(defun duet-pages-loaded (session)
  "End the loading of SESSION: apply the events that have waited for it."
  (let ((held (reverse (duet-session-held session)))
        (duet-model-late t))
    (setf (duet-session-loaded session) t
          (duet-session-held session) nil)
    (pcase-dolist (`(,type ,data ,seq ,time) held)
      (duet-log-guard "An event that was not understood"
        (duet-events--message session (duet-get-string data :session_id)
                              type data seq time)))
    (dolist (run (reverse (duet-session-runs session)))
      (duet-pages--ended session run))))

(defun duet-pages--ended (session run)
  "Say in SESSION how RUN ended, if that was not well and RUN is shown.
No part of the conversation tells it."
  (when (and (eq (duet-session-loaded session) t)
             (cl-find (duet-run-id run) (duet-session-order session)
                      :key #'duet-message-run :test #'equal))
    (duet-events--ended session run)))


;;; Questions

(defun duet-pages-load-approvals (model objects &optional asked)
  "Make the questions in the vector OBJECTS those that wait in MODEL.
What was asked or answered after they were ASKED for, by the clock of
MODEL, they do not tell; nil is now."
  (duet-log-guard "A list of questions that was not understood"
    (let ((ids (mapcar (lambda (object) (duet-get-string object :approval_id)) objects)))
      (dolist (approval (duet-model-approval-list model))
        (unless (or (member (duet-approval-id approval) ids)
                    (and asked (> (duet-approval-heard approval) asked)))
          (duet-events--resolved model (list :approval_id (duet-approval-id approval)
                                             :session_id (duet-approval-run approval)))))
      (seq-do (lambda (object)
                (unless (duet-model-gone-p model (duet-get-string object :approval_id) asked)
                  (duet-events--approval model object nil)))
              objects))))

(provide 'duet-pages)
;;; duet-pages.el ends here
