;;; duet-approval.el --- A question: its words, its answers, rules  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; An agent asks for permission to run a tool, or asks a question.  These commands
;; answer it.  They act on the question at point, in the list of open questions
;; (duet-approvals.el), in a transcript, and in a question's own buffer
;; (duet-approval-view.el).
;;
;; No command waits for the server.  An unfinished answer survives C-g.  If another
;; client has answered meanwhile, the command says so.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-connection)
(require 'duet-form)
(require 'duet-look)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-render)

(declare-function duet-approval-edit "duet-approval-view" (approval))
(declare-function duet-approval-next "duet-approvals" ())
(declare-function duet-approval-view "duet-approval-view" (approval))
(declare-function duet-menu-or-help "duet-actions" ())

;;; Keys and words

;; The server's table has the keys, the words and their meanings.  They are the same in
;; the shell and in VS Code.

(defconst duet-approval-commands
  '((allow . duet-approval-allow)
    (deny . duet-approval-deny)
    (tell . duet-approval-deny-and-tell)
    (session . duet-approval-always)
    (project . duet-approval-always-in-project)
    (edit . duet-approval-edit)
    (keys . duet-approval-help))
  "The commands for the answers of `duet-protocol-answers'.")

(defun duet-approval-words (answer)
  "Return the words for ANSWER, a name in `duet-protocol-answers'."
  (nth 2 (assq answer duet-protocol-answers)))

(defun duet-approval-label (answer)
  "Return the label of a button for ANSWER, a name in `duet-protocol-answers'."
  (format "[%s] %s" (nth 1 (assq answer duet-protocol-answers)) (duet-approval-words answer)))

(defun duet-approval-status-words (status)
  "Return the words for STATUS of a question, a symbol or a string."
  (or (alist-get (if (stringp status) (intern status) status) duet-protocol-status-words)
      (format "%s" status)))

;;; Commands

(defvar-local duet-approval nil
  "The question that the buffer shows.")

(defvar-local duet-approval-at-point-function nil
  "Function that returns the question at point, in a buffer with several.")

(defvar duet-session)

(defvar duet-approval-deny-history nil
  "History of reasons for denials.")
(defvar duet-approval-answer-history nil
  "History of answers to questions.")

(defvar duet-approval--drafts (make-hash-table :test #'equal)
  "Unfinished answers to questions, by their ids.")

(defvar duet-approval--sending (make-hash-table :test #'equal)
  "The ids of questions whose answer is being sent.")

(defvar duet-approval--own (make-hash-table :test #'equal)
  "The ids of questions that were answered here.")

(defun duet-approval-here ()
  "Return the question at point, or the question that the buffer shows."
  (or (get-text-property (point) 'duet-approval)
      duet-approval
      (and duet-approval-at-point-function
           (funcall duet-approval-at-point-function))
      (when-let ((session (bound-and-true-p duet-session)))
        (let ((approvals (duet-session-approvals session)))
          (and approvals (null (cdr approvals)) (car approvals))))
      (user-error "No question is here; %s goes to the next one"
                  (duet-look-key #'duet-approval-next 'duet-transcript-mode-map))))

;; Elsewhere `n' and `p' move.  A user who moves must not answer the question on which
;; point arrives.  Nor must a key answer another question than the user saw: the question
;; at point can change when another client answers.  In both cases the first press only
;; says what the key does.

(defconst duet-approval--motions
  (concat "\\`\\(?:next\\|previous\\|forward\\|backward\\|left\\|right\\|up\\|down\\|beginning\\|end\\|back-to\\|move"
          "\\|scroll\\|goto\\|evil\\|isearch\\|recenter\\|mouse\\|mwheel\\|pixel\\|avy"
          "\\|diff-\\(?:hunk\\|file\\)\\|tabulated-list-\\(?:next\\|previous\\)"
          "\\|duet-\\(?:section\\|prompt\\|scroll\\|diff\\|search\\|approvals-\\(?:forward\\|backward\\)\\)\\)\\(?:-\\|\\'\\)")
  "Regexp for the names of commands that move.
A command too many costs the user one more press of a key.")

(defconst duet-approval--pause 0.3
  "Minimum time between the two presses of a key that would answer by accident.
A key that is held down repeats faster.")

(defvar duet-approval--warned nil
  "The last warning about a key: (QUESTION KEY TIME), or nil.")

(defvar-local duet-approval--seen nil
  "The question at point after the last command.")

(defun duet-approval--look ()
  "Remember the question at point."
  (setq duet-approval--seen (or (get-text-property (point) 'duet-approval)
                                (and duet-approval-at-point-function
                                     (funcall duet-approval-at-point-function)))))

(defun duet-approval-watch ()
  "Remember the question at point after each command in the current buffer."
  (add-hook 'post-command-hook #'duet-approval--look nil t))

(defun duet-approval--accident (approval key)
  "Return why KEY, a character, may not be meant for APPROVAL, or nil.
The value is one of the symbols `moved' and `replaced'."
  (let ((seen duet-approval--seen))
    (cond
     ((and seen (not (eq seen approval))
           (not (duet-approval-connection seen))
           (not (gethash (duet-approval-id seen) duet-approval--own)))
      'replaced)
     ((and (memq key '(?n ?p)) (symbolp last-command)
           (string-match-p duet-approval--motions (symbol-name last-command)))
      'moved))))

(defun duet-approval--show-whole (approval)
  "Scroll the selected window so that it shows all of APPROVAL, if point is on it."
  (when (and (eq (window-buffer) (current-buffer))
             (eq approval (get-text-property (point) 'duet-approval)))
    (let ((end (next-single-property-change (point) 'duet-approval nil (point-max))))
      (unless (pos-visible-in-window-p (1- end))
        (recenter 0)))))

(defun duet-approval-meant (verb)
  "Return the question at point, or nil if the key may not be meant for it.
VERB describes the effect of the key, such as \"denies\"; the message about
the key contains it.  The second press of the key is meant."
  (let* ((approval (duet-approval-here))
         (keys (this-command-keys-vector))
         (key (and (= (length keys) 1) (aref keys 0)))
         (warned (and (eq approval (car duet-approval--warned))
                      (eq key (cadr duet-approval--warned))
                      (eq last-command this-command)
                      (float-time (time-since (caddr duet-approval--warned)))))
         (why (and (characterp key) (not (duet-approval-sending-p approval))
                   (if warned (and (< warned duet-approval--pause) 'moved)
                     (duet-approval--accident approval key)))))
    (if (null why)
        (progn (setq duet-approval--warned nil)
               approval)
      (setq duet-approval--warned (list approval key (current-time)))
      (duet-approval--show-whole approval)
      (message "%s%c %s: press it again%s"
               (if (eq why 'replaced)
                   (format "%s was answered elsewhere.  " (duet-approval-name duet-approval--seen))
                 "")
               key (format verb (duet-approval-name approval))
               (pcase key (?n ", or TAB moves on") (?p ", or S-TAB moves back") (_ "")))
      (setq duet-approval--seen approval)
      nil)))

(defun duet-approval-connection (approval)
  "Return the connection of APPROVAL, or nil if APPROVAL is closed."
  (let (found)
    (maphash (lambda (_ connection)
               (when (eq approval (gethash (duet-approval-id approval)
                                           (duet-model-approvals
                                            (duet-connection-model connection))))
                 (setq found connection)))
             duet-connections)
    found))

(defun duet-approval-session (approval connection)
  "Return the session of CONNECTION that asks APPROVAL, or nil."
  (gethash (duet-approval-turn approval)
           (duet-model-turns (duet-connection-model connection))))

(defun duet-approval-sending-p (approval)
  "Return non-nil if the answer to APPROVAL is being sent."
  (gethash (duet-approval-id approval) duet-approval--sending))


;;;; The answer

(defun duet-approval-turn-number (approval)
  "Return the number of the turn that waits for APPROVAL, or nil."
  (or (duet-get-string (duet-approval-data approval) :turn)
      (when-let* ((connection (duet-approval-connection approval))
                  (session (duet-approval-session approval connection))
                  (turn (duet-session-turn session (duet-approval-turn approval))))
        (duet-turn-number turn))))

(defun duet-approval-check (approval)
  "Signal a `user-error' if APPROVAL cannot be answered."
  (unless (duet-approval-connection approval)
    (user-error "%s: already answered" (duet-approval-name approval)))
  (when (duet-approval-sending-p approval)
    (user-error "The answer is on its way")))

(defun duet-approval-send (approval decision words &rest params)
  "Answer APPROVAL with DECISION, a string, and PARAMS of approval.decide.
WORDS are the message after success.  This does not wait.  If it fails, the
question stays open."
  (duet-approval-check approval)
  (let* ((id (duet-approval-id approval))
         (input (plist-get params :updated_input))
         (name (duet-approval-name (if input (duet-approval--edited approval input) approval)))
         (connection (duet-approval-connection approval))
         (model (duet-connection-model connection)))
    (puthash id t duet-approval--sending)
    (puthash id t duet-approval--own)
    (duet-approval--close-help)
    ;; A view of the question alone is no longer needed.
    (when (derived-mode-p 'duet-approval-view-mode) (quit-window))
    (duet-model-announce model 'approval (duet-approval-session approval connection)
                         approval)
    (duet-connection-request
     connection 'approval.decide
     `(:approval ,id :decision ,decision :client "Emacs" ,@params)
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
                    (status (format "another client was faster: it is already %s"
                                    (duet-approval-status-words status))))))
       (duet-approval--forget model approval))
     :error-fn
     (lambda (err)
       (remhash id duet-approval--sending)
       (duet-model-announce model 'approval (duet-approval-session approval connection)
                            approval 'not-sent)
       (message "Duet: not answered; the question still waits: %s"
                (duet-connection-error-text err))))))

(defun duet-approval--edited (approval input)
  "Return a copy of APPROVAL with INPUT, a table, as the input of its tool."
  (let* ((copy (copy-sequence approval))
         (members (cl-loop for name being the hash-keys of input using (hash-values value)
                           nconc (list (intern (concat ":" (format "%s" name))) value)))
         (old (duet-approval-command approval)))
    (setf (duet-approval-data copy)
          (append (list :tool_input members) (duet-approval-data approval)))
    ;; The title of a tool call may be its command.
    (when-let ((new (and old (duet-approval-title copy) (duet-approval-command copy))))
      (setf (duet-approval-title copy)
            (string-replace old new (duet-approval-title copy))))
    copy))

(defun duet-approval--forget (model approval)
  "Remove APPROVAL from MODEL, if no event has done so.
No event reports a decision that precedes the subscription."
  (when (gethash (duet-approval-id approval) (duet-model-approvals model))
    (remhash (duet-approval-id approval) (duet-model-approvals model))
    (duet-model-vanish model (duet-approval-id approval))
    (duet-model-announce model 'approval-resolved
                         (gethash (duet-approval-turn approval) (duet-model-turns model))
                         approval)))

(defvar duet-approval--answer-map
  (let ((map (make-sparse-keymap)))
    (define-key map " " #'self-insert-command)
    (define-key map "?" #'self-insert-command)
    map)
  "Keymap with priority over the minibuffer's.")

(defun duet-approval--read (approval read)
  "Call READ with the unfinished answer to APPROVAL, and return its text.
An unfinished answer is kept until APPROVAL is answered."
  (duet-approval-check approval)
  (let* ((id (duet-approval-id approval))
         (text (minibuffer-with-setup-hook
                   (lambda ()
                     ;; An answer may have several words, also beside options.
                     (use-local-map (make-composed-keymap duet-approval--answer-map
                                                          (current-local-map)))
                     (add-hook 'minibuffer-exit-hook
                               (lambda ()
                                 (puthash id (minibuffer-contents-no-properties)
                                          duet-approval--drafts))
                               nil t))
                 (funcall read (gethash id duet-approval--drafts)))))
    (unless (duet-approval-connection approval)
      (user-error "%s: answered meanwhile" (duet-approval-name approval)))
    text))

(defun duet-approval-allow (approval)
  "Let the tool of APPROVAL run; answer it if it is a question."
  (interactive (list (duet-approval-meant "allows %s"))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (cond
   ((null approval))
   ((duet-approval-question-p approval) (duet-approval-respond approval))
   (t (duet-approval-send approval "approve" "Allowed" :type "function_call"))))

(defun duet-approval-deny (approval &optional reason)
  "Do not let the tool of APPROVAL run.
With a prefix argument read a REASON, which is stored in the session.
Most agents cannot receive it; `duet-approval-deny-and-tell' sends it.
A form, an address to open or a choice is declined."
  (interactive (let ((approval (duet-approval-meant "denies %s")))
                 (list approval
                       (and approval current-prefix-arg
                            (not (duet-approval-question-p approval))
                            (duet-approval--reason approval "Why not %s? "))))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (cond
   ((null approval))
   ((duet-approval-declinable-p approval)
    (duet-approval--elicited approval 'decline))
   ((duet-approval-question-p approval)
    (user-error "Answer a question with %s"
                (duet-look-key #'duet-approval-respond 'duet-approval-map)))
   (t (duet-approval-send approval "deny" "Denied" :type "function_call"
                          :comment (if (or (null reason) (string-empty-p reason)) "denied"
                                     reason)))))

(defun duet-approval--reason (approval prompt)
  "Read the reason for denying the tool of APPROVAL, after PROMPT with its name."
  (string-trim (duet-approval--read
                approval
                (lambda (draft)
                  (read-string (format prompt (duet-approval-name approval))
                               draft 'duet-approval-deny-history)))))

(defun duet-approval--elicited (approval answer)
  "Answer APPROVAL, a form or an address, with ANSWER.
ANSWER is a table of values, t, or one of the symbols `decline' and `cancel'."
  (pcase answer
    ('decline (duet-approval-send approval "deny" "Declined" :comment "declined"))
    ('cancel (duet-approval-send approval "cancel" "Left without an answer"))
    ('t (duet-approval-send approval "respond" "Agreed" :comment "agreed to open it"))
    (_ (duet-approval-send approval "respond" "Sent" :content answer))))

(defun duet-approval--elicit (approval)
  "Ask the user to answer APPROVAL, a form or an address."
  (duet-approval-check approval)
  (let* ((data (duet-approval-data approval))
         (answer (if (duet-form-p data)
                     (duet-form-fill (duet-approval-id approval) data)
                   (duet-form-open data))))
    (unless (duet-approval-connection approval)
      (user-error "%s: answered meanwhile" (duet-approval-name approval)))
    (duet-approval--elicited approval answer)))

(defun duet-approval-deny-and-tell (approval)
  "Do not let the tool of APPROVAL run, and send the agent the reason.
An agent that cannot receive a reason gets it as its next prompt."
  (interactive (list (duet-approval-here))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (when (duet-approval-question-p approval)
    (user-error "Answer a question with %s"
                (duet-look-key #'duet-approval-respond 'duet-approval-map)))
  (let ((words (duet-approval--reason approval "Why not %s? The agent gets the reason: ")))
    (when (string-empty-p words)
      (user-error "Not denied: type a reason"))
    (duet-approval-send approval "deny" "Denied with a reason" :type "function_call"
                        :comment words :tell t)))

(defun duet-approval-respond (approval)
  "Answer the question APPROVAL, with one of its options or with a text.
Fill in a form; open an address or decline it."
  (interactive (list (duet-approval-here))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (if (duet-approval-elicits-p approval)
      (duet-approval--elicit approval)
    (duet-approval--respond approval)))

(defun duet-approval--respond (approval)
  "Read an answer to the question APPROVAL and send it."
  (unless (duet-approval-question-p approval)
    (user-error "This is a permission: %s allows, %s denies"
                (duet-look-key #'duet-approval-allow 'duet-approval-map)
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
If OPTION, an id, is non-nil, the answer is that option."
  (apply #'duet-approval-send approval "respond" (format "Answered %s" answer)
         :type "human_contact" :comment answer
         (and option (list :option option))))

(defun duet-approval-choose ()
  "Answer the question at point with the option of the typed number.
A question about a tool has no numbers."
  (interactive nil duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (let* ((number (- (logand last-command-event 127) ?0))
         (approval (duet-approval-meant (format "chooses option %d of %%s" number))))
    (when approval
      (unless (duet-approval-question-p approval)
        (user-error "A digit does not answer this question; %s shows the keys"
                    (duet-look-key #'duet-approval-help 'duet-approval-map)))
      (unless (nth (1- number) (duet-approval-options approval))
        (user-error "There is no option %d" number))
      (duet-approval-take approval number))))

(defun duet-approval-take (approval number)
  "Answer APPROVAL with its agent's option NUMBER, from 1."
  (let ((option (nth (1- number) (duet-approval-options approval)))
        (data (nth (1- number) (duet-get-objects (duet-approval-data approval) :options))))
    (cond
     ((duet-approval-question-p approval)
      (duet-approval--answer approval (car option) (cdr option)))
     ((duet-approval-option-rejects-p data)
      (duet-approval-send approval "deny" (format "Denied (%s)" (car option))
                          :type "function_call" :comment (car option) :option (cdr option)))
     (t (duet-approval-send approval "approve" (format "Allowed (%s)" (car option))
                            :type "function_call" :option (cdr option))))))

(defun duet-approval-answers-to (approval)
  "Return the possible answers to APPROVAL, about a tool, with Duet's words.
They are names in `duet-protocol-answers', in its order."
  (cl-loop for (answer) in duet-protocol-answers
           when (pcase answer
                  ((or 'session 'project) (duet-approval-rule-p approval))
                  ('edit (duet-approval-editable-p approval))
                  (_ (alist-get answer duet-approval-commands)))
           collect answer))

(defvar duet-approval-map
  (let ((map (make-sparse-keymap)))
    (pcase-dolist (`(,answer ,key) duet-protocol-answers)
      (when-let ((command (alist-get answer duet-approval-commands)))
        (define-key map key command)))
    (define-key map "r" #'duet-approval-respond)
    (define-key map "v" #'duet-approval-view)
    (dotimes (i 9)
      (define-key map (number-to-string (1+ i)) #'duet-approval-choose))
    map)
  "Keymap of a question at point.")

;;; Help

(defconst duet-approval--help "*duet keys*"
  "The name of the buffer that explains the keys of a question.")

(defun duet-approval--explained (approval)
  "Return the keys that answer APPROVAL: a list of (KEY WORDS MEANING)."
  (append
   (if (duet-approval-question-p approval)
       (append
        '(("r" "Answer" "Reads your answer."))
        (and (duet-approval-declinable-p approval)
             '(("n" "Decline" "The agent gets no answer, and goes on.")))
        (cl-loop for (name) in (duet-approval-options approval)
                 for number from 1 to 9
                 collect (list (number-to-string number) name "Gives this answer.")))
     (mapcar (lambda (answer) (cdr (assq answer duet-protocol-answers)))
             (remq 'keys (duet-approval-answers-to approval))))
   '(("v" "View" "Shows the whole question in a buffer of its own.")
     ("TAB" "Go on" "Moves to the next button, hunk or question.  S-TAB moves back.")
     ("j" "Next" "Goes to the next open question.")
     ("?" "More" "A second ? shows the menu of all commands."))))

(defun duet-approval--close-help ()
  "Close the window that explains the keys of a question."
  (when-let ((window (get-buffer-window duet-approval--help t)))
    (quit-window t window)))

(defun duet-approval-help ()
  "Explain the keys of the question at point.
Without a question, or when called twice in a row, show the menu of Duet."
  (interactive nil duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (let ((approval (and (not (eq last-command 'duet-approval-help))
                       (ignore-error user-error (duet-approval-here)))))
    (if (null approval)
        (progn (duet-approval--close-help)
               (setq this-command 'duet-menu-or-help)
               (duet-menu-or-help))
      (let ((help-window-select nil)
            (keys (duet-approval--explained approval)))
        (save-selected-window
          (with-help-window duet-approval--help
            (with-current-buffer standard-output
              (let ((width (apply #'max (mapcar (lambda (key) (string-width (nth 1 key))) keys))))
                (insert "Keys for " (duet-approval-name approval) "\n\n")
                (pcase-dolist (`(,key ,words ,meaning) keys)
                  (insert (propertize
                           (concat (propertize (format "%-4s" key)
                                               'font-lock-face 'help-key-binding)
                                   words (make-string (- (+ width 2) (string-width words)) ?\s)
                                   meaning "\n")
                           'wrap-prefix (make-string (+ width 6) ?\s))))
                (setq word-wrap t)))))
        (message "%s shows the menu of all commands"
                 (substitute-command-keys "\\<duet-approval-map>\\[duet-approval-help]"))))))

;;; Rules

;; The user can allow a tool from now on, in its session or in the whole project.  The
;; server then creates a rule.  The command first shows the rule's subject, a command
;; or a pattern of files, for the user to change.

(defun duet-approval-always-rule (approval scope)
  "Return the subject of a rule of SCOPE, a keyword, for APPROVAL, or nil."
  (duet-get (duet-approval-data approval) :rule_preview scope))

(defun duet-approval-always-covers (approval)
  "Return in words the subject of a rule for APPROVAL, or nil."
  (when-let ((text (duet-get-string (duet-approval-always-rule approval :session) :text)))
    (let ((text (string-remove-suffix ", in this session" text))
          (command (duet-approval-command approval)))
      (if (and command (equal text (concat "the command " command)))
          "this command"
        (duet-approval-always--line text)))))

(defun duet-approval-always--line (text)
  "Return TEXT of the server about a rule as one line."
  ;; The server writes the home directory in full.
  (duet-approval-line (string-replace (concat " " (expand-file-name "~/")) " ~/" text)))

(defun duet-approval-always--what (approval)
  "Return in words the tool, or the command, that a rule for APPROVAL allows."
  (let ((tool (duet-approval-tool approval)))
    (if (equal (duet-get-string (duet-approval-data approval) :tool_kind) "execute")
        (format "%s %s" tool (duet-approval--subject approval))
      tool)))

(defun duet-approval-always (approval)
  "Let the tool of APPROVAL run, now and always in this session.
If the tool runs commands, this allows this command only; if it changes
files, all files of the project.  You can give another pattern."
  (interactive (list (duet-approval-meant "allows %s always in this session"))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (when approval (duet-approval-always--scoped approval 'session)))

(defun duet-approval-always-in-project (approval)
  "Let the tool of APPROVAL run, now and always in this project.
It allows the same as `duet-approval-always'."
  (interactive (list (duet-approval-meant "allows %s always in this project"))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (when approval (duet-approval-always--scoped approval 'project)))

(defun duet-approval-always--scoped (approval scope)
  "Allow APPROVAL with SCOPE, a symbol, after the user has confirmed the rule."
  (when (duet-approval-question-p approval)
    (user-error "Only a permission can become a rule"))
  (when (duet-approval-plan approval)
    (user-error "A plan is allowed once; it cannot become a rule"))
  (unless (duet-approval-rule-p approval)
    (user-error "Cannot make a rule: Duet cannot tell what else it would allow"))
  (duet-approval-check approval)
  (let* ((rule (duet-approval-always-rule approval (intern (format ":%s" scope))))
         (words (duet-approval-words scope))
         (text (duet-get-string rule :text))
         (pattern (duet-get-string rule :pattern))
         ;; The same words as in VS Code; the rule is in those of the server.
         (says (concat "Allowed without a question: "
                       (if text (duet-approval-always--line text)
                         (format "%s, in this %s" (duet-approval-always--what approval) scope))))
         (given (and pattern
                     (string-trim (read-string (concat says "\nPattern: ") pattern)))))
    (unless (duet-approval-connection approval)
      (user-error "%s: answered meanwhile" (duet-approval-name approval)))
    (when (equal given "")
      (user-error "Not answered: choose what the rule is for"))
    (if (or given
            (y-or-n-p (concat says "? ")))
        (apply #'duet-approval-send approval "approve"
               (format "Allowed, %s" (downcase words))
               :type "function_call" :scope (symbol-name scope)
               (and given (not (equal given pattern)) (list :pattern given)))
      (message "Not answered"))))

;;; Words

;; The texts about a question: its name, its tool, its subject in one line, its
;; possible answers, and its end.

(defun duet-approval-question-p (approval)
  "Return non-nil if APPROVAL is a question, not a request to run a tool."
  (equal (duet-approval-type approval) "human_contact"))

(defun duet-approval-elicits-p (approval)
  "Return non-nil if APPROVAL is a form, or an address to open."
  (let ((data (duet-approval-data approval)))
    (or (duet-form-p data) (duet-form-link-p data))))

(defun duet-approval-editable-p (approval)
  "Return non-nil if the tool of APPROVAL can run with a changed input.
If the server does not say, it can."
  (not (or (duet-approval-question-p approval)
           (eq (plist-get (duet-approval-data approval) :input_editable) :json-false))))

(defun duet-approval-tool (approval)
  "Return the name of the tool of APPROVAL."
  (if (duet-approval-question-p approval)
      "question"
    (duet-approval-line (or (duet-get-string (duet-approval-data approval) :tool_name)
                             "tool"))))

(defun duet-approval-name (approval)
  "Return APPROVAL in a few words."
  (let* ((title (duet-approval-line (or (duet-approval-title approval) "a question")))
         (name (if (and (not (duet-approval-question-p approval))
                        (equal title (duet-approval-tool approval))
                        (duet-approval-input approval))
                   ;; The name of the tool alone says too little.
                   (concat title " " (duet-approval--subject approval))
                 title)))
    (truncate-string-to-width name 70 nil nil "…")))

(defconst duet-approval--longest 400
  "Number of characters of a text in one line.")

(defun duet-approval-line (text)
  "Return TEXT as one line, cut with a note if it is too long."
  (concat (duet-visible-line (substring text 0 (min duet-approval--longest (length text))))
          (if (> (length text) duet-approval--longest) "…" "")))

(defun duet-approval-input (approval)
  "Return the input of the tool of APPROVAL, or nil."
  (duet-get (duet-approval-data approval) :tool_input))

(defun duet-approval--counts (data)
  "Return the numbers of added and removed lines in DATA of a question, or nil.
The value is a text.  An event has old and new texts, a reply a unified diff."
  (let ((diffs (duet-get-objects data :diffs))
        (diff (duet-get-string data :diff))
        (added 0)
        (removed 0))
    (cond
     (diffs (duet-render--counts diffs))
     (diff
      (dolist (line (split-string diff "\n"))
        (cond ((string-match-p "\\`\\(?:---\\|\\+\\+\\+\\) " line))
              ((string-prefix-p "+" line) (cl-incf added))
              ((string-prefix-p "-" line) (cl-incf removed))))
      (duet-render-counts added removed)))))

(defun duet-approval-command (approval)
  "Return the command that the tool of APPROVAL runs, as in a shell, or nil."
  (let ((command (and (not (duet-approval-question-p approval))
                      (duet-get (duet-approval-input approval) :command))))
    (cond
     ((stringp command) (and (not (string-blank-p command)) command))
     ((and (vectorp command) (> (length command) 0) (cl-every #'stringp command))
      (mapconcat #'duet-approval--quoted command " ")))))

(defun duet-approval--quoted (word)
  "Return WORD of a command, quoted for a shell if necessary."
  (if (string-match-p "\\`[-+@%:,./=_[:alnum:]]+\\'" word) word
    (concat "'" (string-replace "'" "'\\''" word) "'")))

(defun duet-approval-says-command-p (text command)
  "Return non-nil if TEXT of an agent contains COMMAND and little else.
The beginning of COMMAND is enough."
  (cl-flet ((plain (text)
              (string-trim
               (replace-regexp-in-string
                "[[:space:]]+" " "
                (replace-regexp-in-string "^[ \t]*\\(?:```[^`\n]*\\|\\$ \\)\\|`" "" text)))))
    (let ((text (plain text))
          (command (plain command)))
      (or (string-prefix-p (string-trim-right text "…\\|\\.\\.\\.") command)
          ;; A verb, or the name of the tool, may precede it.
          (and (string-suffix-p command text)
               (< (- (length text) (length command)) 20))))))

(defun duet-approval-summary (approval &optional root)
  "Return in one line the subject of APPROVAL: a command, a file, a question.
Files are shown relative to ROOT, and a command after a shell prompt."
  (if-let ((command (duet-approval-command approval)))
      (propertize (concat "$ " (duet-approval-line command)) 'face 'duet-code)
    (duet-approval--subject approval root)))

(defun duet-approval--subject (approval &optional root)
  "Return in one line the subject of APPROVAL: a command, a file, a question.
Files are shown relative to ROOT."
  (let* ((data (duet-approval-data approval))
         (input (duet-approval-input approval))
         (command (duet-approval-command approval))
         (paths (duet-get-strings data :paths))
         (counts (duet-approval--counts data)))
    (cond
     ((duet-approval-question-p approval) (duet-approval-name approval))
     (command (duet-approval-line command))
     (paths
      (concat (mapconcat (lambda (path)
                           (duet-approval-line
                            (or (and root (duet-remote-inside path root))
                                (duet-remote-abbreviate path))))
                         (seq-take paths 3) ", ")
              (if (nthcdr 3 paths) (format " and %d more" (- (length paths) 3)) "")
              (if counts (concat " " counts) "")))
     ((and (consp input) (keywordp (car input)))
      (duet-approval-line
       (mapconcat (lambda (key)
                    (let ((value (plist-get input key)))
                      (format "%s: %s" (duet-get-name key)
                              (if (stringp value) value (duet-log-brief value)))))
                  (cl-loop for key in input by #'cddr collect key) ", ")))
     (t (duet-approval-line (or (duet-approval-title approval) ""))))))

(defun duet-approval-options (approval)
  "Return the answers that APPROVAL offers: a list of (NAME . ID)."
  (delq nil
        (mapcar (lambda (option)
                  (let ((id (duet-get-string option :option_id))
                        (name (duet-get-string option :name)))
                    (and (or id name)
                         (cons (duet-approval-line (or name id)) (or id name)))))
                (duet-get-objects (duet-approval-data approval) :options))))

(defun duet-approval-options-only-p (approval)
  "Return non-nil if only options can answer APPROVAL.
The protocol of an agent that offers a choice has no place for a text."
  (eq (duet-get (duet-approval-data approval) :options_only) t))

(defun duet-approval-declinable-p (approval)
  "Return non-nil if the user can decline APPROVAL, a question."
  (eq (duet-get (duet-approval-data approval) :declinable) t))

(defun duet-approval-rule-p (approval)
  "Return non-nil if an answer to APPROVAL can create a rule.
The daemon reports the subject of the rule; an event that is too long lacks
it."
  (let ((data (duet-approval-data approval)))
    (and (not (duet-approval-question-p approval))
         (not (duet-approval-plan approval))
         (or (duet-get data :rule_preview) (duet-get data :truncated)))))

(defun duet-approval-plan (approval)
  "Return the plan that the agent of APPROVAL wants to carry out, or nil."
  (duet-get-string (duet-approval-data approval) :plan))

(defun duet-approval-option-rejects-p (option)
  "Return non-nil if OPTION of an agent rejects its request."
  (string-prefix-p "reject_" (or (duet-get-string option :kind) "")))

;; Only the first word counts, so that an ambiguous name is explained.
(defconst duet-approval--allowing
  (concat "\\`\\(?:always +\\)?"
          (regexp-opt '("accept" "allow" "approve" "confirm" "ok" "permit" "proceed" "run"
                        "yes")
                      'words))
  "Regexp for names of options that allow.")

(defconst duet-approval--denying
  (concat "\\`\\(?:always +\\)?"
          (regexp-opt '("cancel" "decline" "deny" "disallow" "do not" "don't" "never" "no"
                        "refuse" "reject")
                      'words))
  "Regexp for names of options that deny.")

(defun duet-approval--effect (name kind)
  "Return the effect of an agent's option called NAME, of KIND, as text.
It is empty if the name says the same."
  (let* ((case-fold-search t)
         (remembered (member kind '("allow_always" "reject_always")))
         (does (pcase kind
                 ((or "allow_once" "allow_always")
                  (unless (string-match-p duet-approval--allowing name) "allows"))
                 ((or "reject_once" "reject_always")
                  (unless (string-match-p duet-approval--denying name) "denies"))))
         (effects (delq nil (list does (and remembered "the agent remembers it")))))
    (if effects (format " (%s)" (string-join effects "; ")) "")))

(defun duet-approval-answers (approval)
  "Return the texts of the options that the agent of APPROVAL offers."
  (mapcar (lambda (option)
            (let ((name (duet-approval-line (or (duet-get-string option :name)
                                                (duet-get-string option :option_id) ""))))
              (concat name (duet-approval--effect name (duet-get-string option :kind)))))
          (duet-get-objects (duet-approval-data approval) :options)))

(defconst duet-approval--plain
  '(("allow_once" "accept" "allow" "allow once" "approve" "ok" "proceed" "yes")
    ("reject_once" "decline" "deny" "no" "reject" "reject once"))
  "Kinds of options, and names that say no more than the kind.")

(defun duet-approval-plain-p (approval number)
  "Return non-nil if a key of Duet chooses option NUMBER of APPROVAL.
Allowing chooses the first option that allows once, and denying the first
that rejects."
  (let* ((options (duet-get-objects (duet-approval-data approval) :options))
         (option (nth (1- number) options))
         (kind (duet-get-string option :kind)))
    (and (member (downcase (or (duet-get-string option :name) ""))
                 (cdr (assoc kind duet-approval--plain)))
         (eq option (cl-find kind options :test #'equal
                             :key (lambda (other) (duet-get-string other :kind)))))))

(defun duet-approval-outcome (data)
  "Return in words the end of a question: DATA of the event that reports it."
  (let ((status (or (duet-get-string data :status) "answered"))
        (comment (duet-get-string data :response)))
    (pcase (duet-get-string data :decided_by)
      ("end" "was withdrawn: the turn has ended")
      ("timeout" "has expired")
      ("overtaken" "was withdrawn: the session continued without an answer")
      ("changed" "was replaced: the agent changed the tool call")
      (by (let ((why (if (member by '(nil "user")) comment
                       (duet-get-string data :explanation))))
            (format "was %s %s%s"
                    (duet-approval-status-words status)
                    (duet-render-decider by (or (duet-get-string data :decided_in)
                                                "another client"))
                    (if why (format ": %s" (duet-approval-line why)) "")))))))

(provide 'duet-approval)
;;; duet-approval.el ends here
