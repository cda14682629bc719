;;; duet-events.el --- From the server's events to a model  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-events-apply' takes one event as it came over the wire.  Whatever it is
;; given, it signals nothing: what cannot be understood is logged.
;;
;; The same may come twice, from a request and as an event, and after a
;; reconnection: a message knows the number of the event that changed it last,
;; and nothing older changes it.  When a message is whole, its text comes whole
;; too and settles what may have been missed.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-events-messages)
(require 'duet-gates)
(require 'duet-log)
(require 'duet-model)

(defconst duet-events--orphans 200
  "How many events of runs that nobody knows are kept.")

(defun duet-events-apply (model params)
  "Apply to MODEL an event: PARAMS of the notification `event'.
Nothing is signalled, whatever PARAMS are."
  (duet-log-guard (concat "An event that was not understood: " (duet-log-brief params))
    (let ((type (duet-get-string params :event :type))
          (seq (duet-get-number params :seq)))
      (if (null type)
          (duet-log "An event without a type: %s" (duet-log-brief params))
        (when (and seq (> seq (or (duet-model-seq model) -1)))
          (setf (duet-model-seq model) seq))
        (duet-events--apply model type (duet-get params :event :data)
                            (or seq 0) (duet-get-string params :event :timestamp))))))

(defun duet-events--apply (model type data seq time)
  "Apply to MODEL an event: TYPE, DATA, its number SEQ and its TIME."
  (pcase type
    ("session_status_changed" (duet-events--status model data time))
    ((or "terminal_output" "terminal_exit")
     (duet-model-announce model 'terminal nil data type))
    ("secret_requested" (duet-model-announce model 'secret nil data))
    ;; These may be no session's.
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
    ("new_approval" (duet-events--asks model data time))
    (_
     (let* ((run (duet-get-string data :session_id))
            (session (and run (gethash run (duet-model-runs model)))))
       (cond
        ((null run) (duet-log "Event %s tells no session: %s" type (duet-log-brief data)))
        ((null session) (duet-events--orphan model run (list type data seq time)))
        ((not (member type duet-events--message-types))
         (duet-events--settings session type data))
        (t
         (duet-events--touch session time)
         (when (equal type "queue_changed")
           (duet-model-arrange-runs session (duet-get-strings data :order)))
         (when (and (equal (duet-get-string data :event_type) "message")
                    (equal (duet-get-string data :role) "user"))
           (duet-events--prompt session data))
         (when (equal (duet-get-string data :subtype) "budget_near")
           (duet-events--near session run data))
         (pcase (duet-session-loaded session)
           ('loading (push (list type data seq time) (duet-session-held session)))
           ('t (duet-events--message session run type data seq time)))))))))

(defun duet-events--trigger (model data)
  "Tell of what a trigger has done, DATA, in the project of MODEL."
  (when (equal (duet-get-string data :status) "notified")
    (message "%s: %s"
             (duet-visible-line (or (duet-get-string data :channel)
                                    (duet-get-string data :trigger) "A trigger"))
             (duet-visible-line (or (duet-get-string data :message) ""))))
  (duet-model-announce model 'trigger nil data))

(defun duet-events--touch (session time)
  "Note that something happened in SESSION at TIME."
  (when (and time (duet-get-time-before-p (duet-session-changed session) time))
    (setf (duet-session-changed session) time)))

(defun duet-events--prompt (session data)
  "Name SESSION by its prompt, which DATA tell, until the server says its name.
Who is told of a question at once is to know whose it is."
  (unless (or (duet-session-summary session)
              (duet-get-string data :parent_tool_use_id))
    (when-let ((content (duet-get-string data :content)))
      (setf (duet-session-summary session)
            (substring content 0 (min 1000 (length content))))
      (duet-model-announce (duet-session-model session) 'session session))))

(defun duet-events--near (session id data)
  "Note that the run ID of SESSION has nearly used up a budget, as DATA tell.
The conversation tells that, too."
  (when-let ((run (duet-session-run session id)))
    (setf (duet-run-near run) (duet-get-string data :content))
    (duet-model-announce (duet-session-model session) 'session session)))

(defun duet-events--orphan (model run event)
  "Keep EVENT of RUN until MODEL learns what session that is."
  (let ((known (assoc run (duet-model-orphans model))))
    (if known
        (when (< (length (cdr known)) duet-events--orphans)
          (push event (cdr known)))
      (push (list run event) (duet-model-orphans model))
      (when-let ((rest (nthcdr 20 (duet-model-orphans model))))
        (setcdr rest nil))
      (duet-model-announce model 'unknown-run nil run))))

(defun duet-events--adopt (model session run)
  "Note that RUN, an id, belongs to SESSION of MODEL; apply what was kept for it."
  (puthash run session (duet-model-runs model))
  (when-let ((events (assoc run (duet-model-orphans model))))
    (setf (duet-model-orphans model) (delq events (duet-model-orphans model)))
    (dolist (event (reverse (cdr events)))
      (apply #'duet-events--apply model event))))


;;; Sessions

(defun duet-events--session (model id)
  "Return the session ID of MODEL; make it if there is none."
  (or (gethash id (duet-model-sessions model))
      (puthash id (make-duet-session :id id :model model)
               (duet-model-sessions model))))

(defun duet-events--run (session id created)
  "Return the run ID of SESSION; make it if there is none, as CREATED then."
  (or (duet-session-run session id)
      (let ((run (make-duet-run :id id :created (or created ""))))
        (setf (duet-session-runs session)
              (cl-merge 'list (list run) (duet-session-runs session)
                        (lambda (a b)
                          (duet-get-time-before-p (duet-run-created b)
                                              (duet-run-created a)))))
        run)))

(defun duet-events--status (model data time)
  "Apply to MODEL a change of a run's state: DATA at TIME."
  (let ((id (duet-get-string data :session_id))
        (thread (duet-get-string data :thread_id))
        (state (or (duet-get-string data :state) (duet-get-string data :new_status))))
    (if (not (and id thread state))
        (duet-log "A change of state that tells too little: %s" (duet-log-brief data))
      (let* ((session (duet-events--session model thread))
             (run (duet-events--run session id time)))
        (setf (duet-session-heard session) (duet-model-tick model))
        (duet-run-change run (intern state) time (duet-get-string data :error)
                         (duet-get-string data :error_code))
        (when-let ((parent (duet-get-string data :parent_session_id)))
          (setf (duet-run-parent run) parent)
          (duet-model-arrange-run session run))
        (when-let ((title (duet-get-string data :title)))
          (setf (duet-session-title session) title))
        (when-let ((agent (duet-get-string data :agent)))
          (when (or (eq run (duet-session-leaf session)) (null (duet-session-agent session)))
            (duet-session-set-agent session agent)))
        (duet-events--touch session time)
        (duet-events--adopt model session id)
        (when (eq (duet-session-loaded session) t)
          (duet-events--ended session run))
        (duet-model-announce model 'session session)))))

(defun duet-events--deleted (model data)
  "Take out of MODEL the runs that are no more, as DATA tell.
What others were forked from is left, in the archive."
  (when-let* ((id (duet-get-string data :thread_id))
              (session (gethash id (duet-model-sessions model))))
    (setf (duet-session-heard session) (duet-model-tick model))
    (seq-doseq (run (duet-get data :session_ids))
      (duet-model-vanish model run)
      (remhash run (duet-model-runs model))
      (maphash (lambda (key approval)
                 (when (equal (duet-approval-run approval) run)
                   (duet-model-vanish model key)
                   (remhash key (duet-model-approvals model))
                   (duet-model-announce model 'approval-resolved session approval)))
               (duet-model-approvals model))
      (setf (duet-session-runs session)
            (cl-remove run (duet-session-runs session)
                       :key #'duet-run-id :test #'equal)))
    (if (duet-session-runs session)
        (setf (duet-session-archived session) t)
      (remhash id (duet-model-sessions model)))
    (duet-model-announce model 'sessions)))

(defun duet-events-sent (model id thread agent)
  "Note in MODEL that the run ID of THREAD was asked for, from AGENT.
The events that tell of it may come after the reply that did."
  (unless (gethash id (duet-model-runs model))
    (let* ((session (duet-events--session model thread))
           (run (duet-events--run session id (format-time-string "%FT%T.%NZ" nil t))))
      (duet-run-change run 'queued nil nil nil)
      (when agent (setf (duet-session-agent session) agent))
      (duet-events--touch session (duet-run-created run))
      (duet-events--adopt model session id)
      (duet-model-announce model 'session session))))

(defun duet-events--ended (session run)
  "Say in SESSION that RUN did not end well, and why, if that is so."
  (let ((state (duet-run-state run))
        (key (concat "end:" (duet-run-id run))))
    (unless (or (not (memq state '(failed timed_out interrupted cancelled)))
                (duet-session-message session key))
      (let ((message (make-duet-message :key key :session session :run (duet-run-id run)
                                        :kind (if (eq state 'failed) 'error 'system))))
        (duet-message-set-text
         message
         (concat (capitalize (replace-regexp-in-string "_" " " (symbol-name state)))
                 (if (duet-run-error run) (concat ": " (duet-run-error run)) "")))
        (duet-events--add session message)))))

(defun duet-events--settings (session type data)
  "Apply to SESSION what an event of TYPE tells that is no message: DATA."
  (let ((now (duet-model-tick (duet-session-model session))))
    ;; Some agents tell their usage all the time, and nothing else with it.
    (if (equal type "usage") (setf (duet-session-counted session) now)
      (setf (duet-session-heard session) now)))
  (pcase type
    ("session_settings_changed"
     (when (plist-member data :title)
       (setf (duet-session-title session) (duet-get-string data :title)))
     (when-let ((agent (duet-get-string data :requested_agent)))
       (duet-session-set-agent session agent))
     (when-let ((mode (duet-get-string data :permission_mode)))
       (setf (duet-session-mode session) mode))
     (when-let ((llm (duet-get-string data :model)))
       ;; What was asked for is not what an agent has confirmed.
       (unless (duet-get-string (duet-session-told session) :model :current)
         (setf (duet-session-llm session) llm)))
     (when-let ((mode (duet-get-string data :agent_mode)))
       (duet-session-set-agent-mode session mode))
     (when (plist-member data :archived)
       (setf (duet-session-archived session) (duet-get data :archived))))
    ("agent_session"
     (duet-session-tell session data)
     (when-let ((mode (duet-get-string data :mode :current)))
       (duet-session-set-agent-mode session mode)))
    ("usage" (duet-events-add-usage session data))
    ("agent_silent"
     (when-let ((run (duet-session-run session (duet-get-string data :session_id))))
       (duet-run-be-silent run
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
  "Add to the usage of SESSION what DATA tells.
The members are :input_tokens, :output_tokens, :context_used,
:context_size and :cost_usd; those that DATA lacks stay."
  (dolist (key '(:input_tokens :output_tokens :context_used :context_size :cost_usd))
    (when-let ((value (duet-get-number data key)))
      (when (> value 0)
        (setf (duet-session-usage session)
              (plist-put (duet-session-usage session) key value))))))


;;; Questions

(defun duet-events--asks (model data time)
  "Apply to MODEL that an agent asks what DATA tell, at TIME."
  (let ((id (or (duet-get-string data :approval_id) (duet-get-string data :id)))
        (now (duet-model-tick model)))
    (remhash id (duet-model-gone model))
    (duet-events--approval model data time now)))

(defun duet-events--approval (model data time &optional now)
  "Add to MODEL the question that DATA, of an event at TIME, tell of.
NOW is when it came, by the clock of MODEL; nil if it is from a reply."
  (if-let ((id (or (duet-get-string data :approval_id) (duet-get-string data :id))))
      (let* ((run (duet-get-string data :session_id))
             (old (gethash id (duet-model-approvals model)))
             (approval (or old (make-duet-approval :id id))))
        (unless (or (null time) (duet-get-string data :created_at))
          (setq data (append data (list :created_at time))))
        (setf (duet-approval-call approval) (or (duet-get-string data :tool_use_id)
                                                (duet-get-string data :call_id))
              (duet-approval-run approval) run
              (duet-approval-type approval) (duet-get-string data :type)
              (duet-approval-title approval) (or (duet-get-string data :title)
                                                 (duet-get-string data :tool_name))
              (duet-approval-stale approval) (and (duet-get data :stale) t)
              (duet-approval-data approval) data
              (duet-approval-heard approval) (or now (duet-approval-heard approval)))
        (puthash id approval (duet-model-approvals model))
        (when (and run (not (gethash run (duet-model-runs model))))
          (duet-model-announce model 'unknown-run nil run))
        (duet-model-announce model 'approval
                             (and run (gethash run (duet-model-runs model)))
                             approval))
    (duet-log "A question without an id: %s" (duet-log-brief data))))

(defun duet-events--answered (session data seq time)
  "Keep in SESSION what was answered, as DATA tell, SEQ and TIME.
That is what a human has said, and what a rule or a mode has denied.
The server tells of the same answers in a conversation that is loaded."
  (when (and session (eq (duet-session-loaded session) t)
             (or (equal (duet-get-string data :decision) "denied")
                 (and (equal (duet-get-string data :decided_by) "user")
                      (or (not (equal (duet-get-string data :decision) "approved"))
                          (duet-get data :input_was_edited)))))
    (duet-events--put session (duet-get-string data :session_id)
                      (duet-events--answer-key (duet-get-string data :approval_id))
                      'answer data (or seq 0) time)))

(defun duet-events--resolved (model data &optional seq time)
  "Take out of MODEL the question whose answer DATA tell, SEQ and TIME."
  (when-let* ((id (duet-get-string data :approval_id))
              (approval (or (gethash id (duet-model-approvals model))
                            (make-duet-approval :id id))))
    (remhash id (duet-model-approvals model))
    (duet-model-vanish model id)
    (setf (duet-approval-status approval)
          (intern (or (duet-get-string data :decision) "resolved")))
    (let ((session (gethash (duet-get-string data :session_id) (duet-model-runs model))))
      (duet-events--answered session data seq time)
      (duet-model-announce model 'approval-resolved session approval data))))

(provide 'duet-events)
;;; duet-events.el ends here
