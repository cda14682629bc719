;;; duet-approval.el --- A question that waits, and its answer  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; An agent asks for leave to run a tool, or asks a question.  Here are the commands
;; that answer it.  They act on the question at point, whatever the buffer: the list
;; of all that wait (duet-approvals.el), a transcript, or a question's own buffer
;; (duet-approval-view.el).  What it asks, in words, is in duet-approval-words.el.
;;
;; Nothing waits for the server.  What was typed outlives a C-g, and a question
;; that somebody else has answered meanwhile says so.

;;; Code:

(require 'subr-x)
(require 'duet-connection)
(require 'duet-form)
(require 'duet-look)
(require 'duet-approval-words)

(declare-function duet-approval-always "duet-approval-always" (approval))
(declare-function duet-approval-always-in-project "duet-approval-always" (approval))
(declare-function duet-approval-edit "duet-approval-edit" (approval))
(declare-function duet-approval-view "duet-approval-view" (approval))

(defvar-local duet-approval nil
  "The question that the buffer is about.")

(defvar-local duet-approval-at-point-function nil
  "Function that returns the question at point, where a buffer shows several.")

(defvar duet-session)

(defvar duet-approval-deny-history nil
  "Reasons that were given for not running a tool.")
(defvar duet-approval-answer-history nil
  "Answers that were given to questions.")

(defvar duet-approval--drafts (make-hash-table :test #'equal)
  "What was begun to be typed in answer to a question, by its id.")

(defvar duet-approval--sending (make-hash-table :test #'equal)
  "The ids of questions whose answer is on its way.")

(defun duet-approval-here ()
  "Return the question at point, or that the buffer is about."
  (or (get-text-property (point) 'duet-approval)
      duet-approval
      (and duet-approval-at-point-function
           (funcall duet-approval-at-point-function))
      (when-let ((session (bound-and-true-p duet-session)))
        (let ((approvals (duet-session-approvals session)))
          (and approvals (null (cdr approvals)) (car approvals))))
      (user-error "No question is here; j goes to the next one")))

(defun duet-approval-connection (approval)
  "Return the connection whose server asks APPROVAL; nil if it waits no more."
  (let (found)
    (maphash (lambda (_ connection)
               (when (eq approval (gethash (duet-approval-id approval)
                                           (duet-model-approvals
                                            (duet-connection-model connection))))
                 (setq found connection)))
             duet-connections)
    found))

(defun duet-approval-session (approval connection)
  "Return the session of CONNECTION in which APPROVAL is asked, or nil."
  (gethash (duet-approval-run approval)
           (duet-model-runs (duet-connection-model connection))))

(defun duet-approval-sending-p (approval)
  "Return non-nil if the answer to APPROVAL is on its way."
  (gethash (duet-approval-id approval) duet-approval--sending))


;;; The answer

(defun duet-approval-check (approval)
  "Signal a `user-error' if APPROVAL cannot be answered."
  (unless (duet-approval-connection approval)
    (user-error "%s: this is decided already" (duet-approval-name approval)))
  (when (duet-approval-sending-p approval)
    (user-error "The answer is on its way")))

(defun duet-approval-send (approval decision words &rest params)
  "Answer APPROVAL with DECISION, a string, and PARAMS of sendDecision.
WORDS say that it is done.  This does not wait; if it fails the question
goes on waiting."
  (duet-approval-check approval)
  (let* ((id (duet-approval-id approval))
         (name (duet-approval-name approval))
         (connection (duet-approval-connection approval))
         (model (duet-connection-model connection)))
    (puthash id t duet-approval--sending)
    ;; Who looks at the question alone has seen enough of it.
    (when (derived-mode-p 'duet-approval-view-mode) (quit-window))
    (duet-model-announce model 'approval (duet-approval-session approval connection)
                         approval)
    (duet-connection-request
     connection 'sendDecision
     `(:approval_id ,id :decision ,decision ,@params)
     :success-fn
     (lambda (result)
       (remhash id duet-approval--sending)
       (if (duet-get result :success)
           (progn
             (remhash id duet-approval--drafts)
             (duet-form-forget id)
             (message "%s: %s" words name))
         (message "Duet: %s: %s" name
                  (pcase (duet-get-string result :status)
                    ('nil (or (duet-get-string result :error) "not answered"))
                    (status (format "somebody else was faster, it is %s already"
                                    status)))))
       (duet-approval--forget model approval))
     :error-fn
     (lambda (err)
       (remhash id duet-approval--sending)
       (duet-model-announce model 'approval (duet-approval-session approval connection)
                            approval 'not-sent)
       (message "Duet: not answered, it goes on waiting: %s"
                (duet-connection-error-text err))))))

(defun duet-approval--forget (model approval)
  "Take APPROVAL out of MODEL, if no event has done so.
There is none that tells what was decided before we subscribed."
  (when (gethash (duet-approval-id approval) (duet-model-approvals model))
    (remhash (duet-approval-id approval) (duet-model-approvals model))
    (duet-model-vanish model (duet-approval-id approval))
    (duet-model-announce model 'approval-resolved
                         (gethash (duet-approval-run approval) (duet-model-runs model))
                         approval)))

(defvar duet-approval--answer-map
  (let ((map (make-sparse-keymap)))
    (define-key map " " #'self-insert-command)
    (define-key map "?" #'self-insert-command)
    map)
  "Keymap that goes before that of the minibuffer.")

(defun duet-approval--read (approval read)
  "Return the text that READ returns, a function of what was typed before.
What is typed about APPROVAL is kept until it is answered."
  (duet-approval-check approval)
  (let* ((id (duet-approval-id approval))
         (text (minibuffer-with-setup-hook
                   (lambda ()
                     ;; An answer may have several words, even where some are offered.
                     (use-local-map (make-composed-keymap duet-approval--answer-map
                                                          (current-local-map)))
                     (add-hook 'minibuffer-exit-hook
                               (lambda ()
                                 (puthash id (minibuffer-contents-no-properties)
                                          duet-approval--drafts))
                               nil t))
                 (funcall read (gethash id duet-approval--drafts)))))
    (unless (duet-approval-connection approval)
      (user-error "%s: this was decided meanwhile" (duet-approval-name approval)))
    text))

(defun duet-approval-approve (approval)
  "Let the tool of APPROVAL run; answer it if it is a question."
  (interactive (list (duet-approval-here))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (if (duet-approval-question-p approval)
      (duet-approval-respond approval)
    (duet-approval-send approval "approve" "Approved" :type "function_call")))

(defun duet-approval-deny (approval &optional reason)
  "Do not let the tool of APPROVAL run.
With a prefix argument a REASON is read, which is kept in the conversation.
Few agents are told it; `duet-approval-deny-and-tell' tells it.
A form, an address to be opened or a choice is declined."
  (interactive (let ((approval (duet-approval-here)))
                 (list approval
                       (and current-prefix-arg
                            (not (duet-approval-question-p approval))
                            (duet-approval--reason approval "Why not %s? "))))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (cond
   ((duet-approval-declinable-p approval)
    (duet-approval--elicited approval 'decline))
   ((duet-approval-question-p approval)
    (user-error "A question is answered, with %s"
                (duet-look-key #'duet-approval-respond 'duet-approval-map)))
   (t (duet-approval-send approval "deny" "Denied" :type "function_call"
                          :comment (if (or (null reason) (string-empty-p reason)) "denied"
                                     reason)))))

(defun duet-approval--reason (approval prompt)
  "Read why the tool of APPROVAL is not to run, after PROMPT with its name."
  (string-trim (duet-approval--read
                approval
                (lambda (draft)
                  (read-string (format prompt (duet-approval-name approval))
                               draft 'duet-approval-deny-history)))))

(defun duet-approval--elicited (approval answer)
  "Answer APPROVAL, a form or an address, with ANSWER.
That is a table of values, t, or one of the symbols `decline' and `cancel'."
  (pcase answer
    ('decline (duet-approval-send approval "deny" "Declined" :comment "declined"))
    ('cancel (duet-approval-send approval "cancel" "Left without an answer"))
    ('t (duet-approval-send approval "respond" "Agreed" :comment "agreed to open it"))
    (_ (duet-approval-send approval "respond" "Sent" :content answer))))

(defun duet-approval--elicit (approval)
  "Have APPROVAL, a form or an address, answered by the user."
  (duet-approval-check approval)
  (let* ((data (duet-approval-data approval))
         (answer (if (duet-form-p data)
                     (duet-form-fill (duet-approval-id approval) data)
                   (duet-form-open data))))
    (unless (duet-approval-connection approval)
      (user-error "%s: this was decided meanwhile" (duet-approval-name approval)))
    (duet-approval--elicited approval answer)))

(defun duet-approval-deny-and-tell (approval)
  "Do not let the tool of APPROVAL run, and tell the agent what to do instead.
An agent that is told nothing with a decision is told that with its next prompt."
  (interactive (list (duet-approval-here))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (when (duet-approval-question-p approval)
    (user-error "A question is answered, with %s"
                (duet-look-key #'duet-approval-respond 'duet-approval-map)))
  (let ((words (duet-approval--reason approval "Deny %s, and tell the agent: ")))
    (when (string-empty-p words)
      (user-error "Not denied: there is nothing to tell"))
    (duet-approval-send approval "deny" "Denied, and told" :type "function_call"
                        :comment words :tell t)))

(defun duet-approval-respond (approval)
  "Answer the question APPROVAL, with one of its options or in other words.
A form is filled in; an address is opened, or not."
  (interactive (list (duet-approval-here))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (if (duet-approval-elicits-p approval)
      (duet-approval--elicit approval)
    (duet-approval--respond approval)))

(defun duet-approval--respond (approval)
  "Answer the question APPROVAL with what is read."
  (unless (duet-approval-question-p approval)
    (user-error "This wants leave: %s approves, %s denies"
                (duet-look-key #'duet-approval-approve 'duet-approval-map)
                (duet-look-key #'duet-approval-deny 'duet-approval-map)))
  (let* ((options (duet-approval-options approval))
         (only (duet-approval-options-only-p approval))
         (prompt (concat (duet-approval-name approval)
                         (if only (format " (%s) " (string-join (mapcar #'car options) ", "))
                           " ")))
         (answer (string-trim
                  (duet-approval--read
                   approval
                   (lambda (draft)
                     (if options
                         (let ((completion-ignore-case t))
                           (completing-read prompt (mapcar #'car options) nil only draft
                                            'duet-approval-answer-history))
                       (read-string prompt draft 'duet-approval-answer-history)))))))
    (when (string-empty-p answer)
      (user-error "Not answered"))
    (duet-approval--answer approval answer (cdr (assoc-string answer options t)))))

(defun duet-approval--answer (approval answer &optional option)
  "Answer the question APPROVAL with ANSWER.
If OPTION, an id, is non-nil that is what the answer stands for."
  (apply #'duet-approval-send approval "respond" (format "Answered %s" answer)
         :type "human_contact" :comment answer
         (and option (list :option option))))

(defun duet-approval-choose ()
  "Give the answer whose number was typed, of those that are offered at point."
  (interactive nil duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (let* ((approval (duet-approval-here))
         (number (- (logand last-command-event 127) ?0))
         (option (nth (1- number) (duet-approval-options approval))))
    (unless option
      (user-error "There is no option %d" number))
    (duet-approval-take approval number)))

(defun duet-approval-take (approval number)
  "Give APPROVAL the answer NUMBER, from 1, of those that its agent offers."
  (let ((option (nth (1- number) (duet-approval-options approval)))
        (data (nth (1- number) (duet-get-objects (duet-approval-data approval) :options))))
    (cond
     ((duet-approval-question-p approval)
      (duet-approval--answer approval (car option) (cdr option)))
     ((duet-approval-option-rejects-p data)
      (duet-approval-send approval "deny" (format "Denied, %s" (car option))
                          :type "function_call" :comment (car option) :option (cdr option)))
     (t (duet-approval-send approval "approve" (format "Approved, %s" (car option))
                            :type "function_call" :option (cdr option))))))

(defvar duet-approval-map
  (let ((map (make-sparse-keymap)))
    (define-key map "a" #'duet-approval-approve)
    (define-key map "d" #'duet-approval-deny)
    (define-key map "t" #'duet-approval-deny-and-tell)
    (define-key map "e" #'duet-approval-edit)
    (define-key map "s" #'duet-approval-always)
    (define-key map "P" #'duet-approval-always-in-project)
    (define-key map "r" #'duet-approval-respond)
    (define-key map "v" #'duet-approval-view)
    (dotimes (i 9)
      (define-key map (number-to-string (1+ i)) #'duet-approval-choose))
    map)
  "What keys do with a question at point.")

(provide 'duet-approval)
;;; duet-approval.el ends here
