;;; duet-settings.el --- Settings of a session's agent, directives, budgets  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; An agent has modes, models, its own options, and slash commands.  `duet-set-mode',
;; `duet-set-model' and `duet-set-option' choose from them.  The choice takes effect at
;; once while the agent works, else from the next prompt on.  A prompt can contain
;; settings, too; see the directives below.
;;
;; A session shows the settings that the agent has confirmed.  The choices of an agent
;; are requested when a session is shown; later events update them.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-events)
(require 'duet-model)
(require 'duet-protocol)
(require 'duet-visible)

(declare-function duet-agents-usable "duet-agents" (connection))

;;; Settings

(defun duet-settings-learn (connection session &optional function)
  "Request the settings and choices of SESSION's agent from CONNECTION.
Do so only if they are unknown, or if FUNCTION is non-nil.  Call FUNCTION after
the reply."
  (when (or function (null (duet-session-modes session)))
    (let ((asked (duet-model-clock (duet-session-model session))))
      (duet-connection-request
       connection 'turn.get (list :turn (duet-session-leaf-id session))
       :success-fn
       (lambda (result)
         (duet-settings--take connection session (duet-get result :turn) asked)
         (when function (funcall function)))
       :error-fn #'ignore))))

(defun duet-settings--take (connection session object asked)
  "Store the settings in OBJECT, from CONNECTION's server, in SESSION.
ASKED is the time of the request by the model's clock.  If an event has changed
the session since, request it again."
  (unless (duet-pages-old-p session asked)
    (when-let ((agent (duet-pages-agent object)))
      (duet-session-set-agent session agent)))
  (duet-pages-settings session object asked)
  (duet-model-announce (duet-session-model session) 'session session)
  (when (duet-pages-old-p session asked)
    (duet-connection-ask connection (duet-session-leaf-id session))))


;;;; Reading a choice

(defun duet-settings-table (candidates category)
  "Return a completion table of CANDIDATES with the category CATEGORY.
Other packages use the category, for example to act on a candidate."
  (lambda (string predicate action)
    (if (eq action 'metadata) `(metadata (category . ,category))
      (complete-with-action action candidates string predicate))))

(defun duet-settings--read (prompt choices default category)
  "Read one of CHOICES with PROMPT; return its id.
CHOICES are (WORDS ID ABOUT): the text to read, the id, and a description;
their category is CATEGORY.  DEFAULT is the id of one, or nil."
  (let* ((words (car (cl-find default choices :key #'cadr :test #'equal)))
         (completion-ignore-case t)
         (completion-extra-properties
          (list :annotation-function
                (lambda (candidate)
                  (when-let ((about (nth 2 (assoc candidate choices))))
                    (concat "  " (duet-visible-line about))))))
         (chosen (completing-read (format-prompt prompt words)
                                  (duet-settings-table choices category)
                                  nil t nil nil words)))
    (cadr (assoc chosen choices))))

(defun duet-settings-choices (objects)
  "Return OBJECTS, choices from the server, as a list of (WORDS ID ABOUT).
Equal names are followed by their ids."
  (let ((names (mapcar (lambda (object)
                         (duet-visible-line (or (duet-get-string object :name)
                                                (duet-get-string object :id) "")))
                       objects)))
    (cl-mapcar (lambda (object name)
                 (let ((id (duet-get-string object :id)))
                   (list (if (> (cl-count name names :test #'equal) 1)
                             (format "%s (%s)" name id)
                           name)
                         id
                         (string-join (delq nil (list (duet-get-string object :group)
                                                      (duet-get-string object :description)))
                                      ": "))))
               objects names)))

(defun duet-settings--set (session what done)
  "Set the agent of SESSION to WHAT, parameters of session.set; then show DONE."
  (duet-settings-set (duet-connection-here session) session what
                     (lambda (live)
                       (message "%s%s" done (if live "" ", from the next prompt on")))))

(defun duet-settings-set (connection session what success-fn &optional error-fn)
  "Set the agent of SESSION on CONNECTION to WHAT, parameters of session.set.
Then call SUCCESS-FN with non-nil if the setting is in effect already, nil if
it takes effect with the next turn.  ERROR-FN is as for
`duet-connection-request'."
  (let ((asked (duet-model-clock (duet-session-model session))))
    (duet-connection-request
     connection 'session.set
     (append (list :session (duet-session-id session)) what)
     :success-fn
     (lambda (result)
       (duet-settings--take connection session (duet-get result :turn) asked)
       (funcall success-fn (eq (duet-get result :live) t)))
     :error-fn error-fn)))


;;;; Modes

(defun duet-settings--modes-of (session)
  "Return the modes of the agent of SESSION.
Request them from the server, since the known ones may be old, and wait for
3 seconds at most."
  (let* ((connection (duet-connection-of (duet-session-model session)))
         (rpc (and connection (duet-connection-rpc connection)))
         (asked (duet-model-clock (duet-session-model session))))
    (when rpc
      (ignore-error jsonrpc-error
        (duet-settings--take connection session
                             (duet-get (duet-rpc-request
                                        rpc 'turn.get
                                        (list :turn (duet-session-leaf-id session))
                                        :timeout 3)
                                       :turn)
                             asked)))
    (or (duet-session-modes session)
        (mapcar (lambda (mode) (list :id (car mode) :name (cdr mode))) duet-protocol-modes))))

(defun duet-settings-confirm-bypass (&optional hint)
  "Ask the user to confirm the mode without questions, or signal a `user-error'.
HINT is a sentence before the question, or nil."
  (unless (yes-or-no-p (concat hint "Let the agent run and change anything without asking? "))
    (user-error "Mode unchanged")))

(defun duet-set-mode (session mode)
  "Set the permission mode of the agent of SESSION to MODE, the id of one."
  (interactive
   (let* ((session (duet-actions-session))
          (mode (duet-settings--read "Mode"
                                     (duet-settings-choices (duet-settings--modes-of session))
                                     (or (duet-session-own-mode session)
                                         (duet-session-mode session) "default")
                                     'duet-mode)))
     (unless mode (user-error "No mode chosen"))
     (when (equal mode "bypassPermissions") (duet-settings-confirm-bypass))
     (list session mode))
   duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (duet-settings--set session (list :mode mode)
                      (concat "Mode: " (duet-session-mode-name session mode))))

(defun duet-next-mode (session)
  "Set the permission mode of the agent of SESSION to the next of Duet's modes.
The mode without questions is left out."
  (interactive (list (duet-settings--session-of-prompt))
               duet-transcript-mode duet-compose-mode)
  (let* ((known (mapcar (lambda (mode) (duet-get-string mode :id))
                        (or (duet-session-modes session) (duet-settings--modes-of session))))
         (modes (cl-remove-if-not (lambda (mode) (member mode known))
                                  '("default" "acceptEdits" "plan")))
         (at (cl-position (or (duet-session-mode session) "default") modes :test #'equal)))
    (unless modes
      (user-error "The agent has none of Duet's modes; `/mode' sets one of its own"))
    (duet-set-mode session (nth (mod (1+ (or at -1)) (length modes)) modes))))

(defun duet-settings--session-of-prompt ()
  "Return the session that gets the prompt in the current buffer."
  (when (and (derived-mode-p 'duet-compose-mode)
             (or (null (bound-and-true-p duet-session)) (bound-and-true-p duet-compose--turn)))
    (user-error "Begin the prompt with /mode to choose the mode of a new session"))
  (duet-actions-session))


;;;; Models

(defvar duet-settings--models nil
  "History of models that the user typed.")

(defun duet-set-model (session model)
  "Set the model of the agent of SESSION to MODEL, the id of one."
  (interactive
   (let* ((session (duet-actions-session))
          (known (duet-get-objects (duet-session-agent-info session) :model :available)))
     (list session
           (or (if known
                   (duet-settings--read "Model" (duet-settings-choices known)
                                        (duet-session-llm session) 'duet-model)
                 (string-trim (read-string "Model: " nil 'duet-settings--models)))
               "")))
   duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (when (string-empty-p model) (user-error "No model given"))
  (duet-settings--set session (list :model model)
                      (concat "Model: " (duet-session-choice-name session :model model))))


;;;; Options

(defun duet-settings-options (info)
  "Return the options in INFO, an agent's data, except its mode and its model."
  (cl-remove-if (lambda (option)
                  (or (member (duet-get-string option :category) '("mode" "model"))
                      (null (duet-get-objects option :values))))
                (duet-get-objects info :options)))

(defun duet-set-option (session option value)
  "Set OPTION of the agent of SESSION to VALUE; both are ids."
  (interactive
   (let* ((session (duet-actions-session))
          (options (or (duet-settings-options (duet-session-agent-info session))
                       (user-error "The agent reports no options")))
          (id (or (if (cdr options)
                      (duet-settings--read "Option" (duet-settings-choices options) nil
                                           'duet-option)
                    (duet-get-string (car options) :id))
                  (user-error "No option chosen")))
          (option (cl-find id options :test #'equal
                           :key (lambda (option) (duet-get-string option :id))))
          (value (duet-settings--read
                  (duet-visible-line (or (duet-get-string option :name) id))
                  (duet-settings-choices (duet-get-objects option :values))
                  (duet-get-string option :current) 'duet-option-value)))
     (list session id (or value (user-error "No value chosen"))))
   duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (let ((object (cl-find option (duet-settings-options (duet-session-agent-info session)) :test #'equal
                         :key (lambda (object) (duet-get-string object :id)))))
    (duet-settings--set session
                        ;; The agent chooses the name of this member.
                        (list :options (list (intern (concat ":" option)) value))
                        (format "%s is %s"
                                (duet-visible-line (or (duet-get-string object :name) option))
                                (or (car (cl-find value
                                                  (duet-settings-choices
                                                   (duet-get-objects object :values))
                                                  :key #'cadr :test #'equal))
                                    (duet-visible-line value))))))


;;;; Slash commands

(defvar-local duet-settings-described nil
  "The result of agent.describe for the agent of a new session.")

(defvar-local duet-settings--asked nil
  "The agent of the last request for a description, in a list.
Nil in the list is the default agent.")

(defun duet-settings-commands (session)
  "Return the slash commands of SESSION's agent, or of a new session's if nil."
  (duet-get-objects (if session (duet-session-agent-info session)
                      (duet-get duet-settings-described :agent_session))
                    :commands))

(defun duet-settings-describe (connection agent)
  "Request the description of AGENT from CONNECTION for the current buffer.
AGENT is nil for the default agent."
  (let ((buffer (current-buffer)))
    (unless (equal (list agent) duet-settings--asked)
      (setq duet-settings--asked (list agent))
      (duet-connection-request
       connection 'agent.describe (and agent (list :agent agent))
       :success-fn (lambda (result)
                     (when (buffer-live-p buffer)
                       (with-current-buffer buffer
                         (when (equal (list agent) duet-settings--asked)
                           (setq duet-settings-described result)))))
       :error-fn #'ignore))))

;;; Budgets

;; A budget limits each turn of a session: rounds of tool calls, time, tokens,
;; money.  A turn that reaches a limit is interrupted.  The format of a budget is
;; `turns=20,time=30m,tokens=200k,cost=2.50'.  The option `duet-budget' has the budget
;; of all sessions that begin here; a prompt can begin with `/budget'.  The default of
;; other limits is [budget.turn] in the configuration.

(defcustom duet-budget nil
  "The budget of each turn of a session that begins in this Emacs.
A string such as \"turns=20,time=30m,tokens=200k,cost=2.50\".  The units of
the time are s, m and h; tokens may end in k or M; the cost is in US
dollars; repeats limits consecutive calls of the same tool with the same
input.  Nil, and limits that the string omits, mean [budget.turn] of the
configuration.  A prompt that begins with /budget has its own budget."
  :type '(choice (const :tag "As configured" nil) string)
  :group 'duet)

(defconst duet-budget--parts
  '(("turns" :turns integer "rounds of tool calls, as in turns=20")
    ("time" :time_ms time "how long the agent may work, as in time=1h30m")
    ("tokens" :tokens integer "tokens, read and written, as in tokens=200k")
    ("cost" :cost_usd number "US dollars, as in cost=2.50")
    ("repeats" :repeats integer "the same tool call in a row, as in repeats=10"))
  "The limits of a budget: (NAME MEMBER KIND ABOUT), MEMBER for the protocol.")

(defun duet-budget--number (kind text)
  "Return the number of TEXT, a limit of KIND in a budget, or nil if invalid.
A time is in milliseconds."
  (let ((case-fold-search nil))
    (pcase kind
      ('time
       (when (string-match-p "\\`\\(?:[0-9]+\\(?:\\.[0-9]+\\)?[smh]\\)+\\'" text)
         (let ((place 0) (sum 0))
           (while (string-match "\\([0-9.]+\\)\\([smh]\\)" text place)
             (setq sum (+ sum (* (string-to-number (match-string 1 text))
                                 (pcase (match-string 2 text)
                                   ("s" 1000) ("m" 60000) (_ 3600000))))
                   place (match-end 0)))
           (round sum))))
      ('number
       (when (string-match-p "\\`[0-9]+\\(?:\\.[0-9]+\\)?\\'" text)
         (string-to-number text)))
      (_
       (when (string-match "\\`\\([0-9]+\\)\\([kM]?\\)\\'" text)
         (* (string-to-number (match-string 1 text))
            (pcase (match-string 2 text) ("k" 1000) ("M" 1000000) (_ 1))))))))

(defun duet-budget-parse (text)
  "Return the budget in TEXT as an object of the protocol, or nil for nil.
If TEXT is invalid, signal a `user-error' that describes the format."
  (let ((budget '()))
    (dolist (part (and text (split-string text ",")))
      (let* ((pair (split-string (string-trim part) "="))
             (known (assoc (car pair) duet-budget--parts))
             (number (and known (= (length pair) 2)
                          (duet-budget--number (nth 2 known) (cadr pair)))))
        (unless known
          (user-error "Write a budget as turns=20,time=30m,tokens=200k,cost=2.50%s"
                      (if (string-blank-p part) "" (format ", and has no %s" (string-trim part)))))
        (unless (and number (< 0 number 1e15))
          (user-error "%s is not a budget: %s" (string-trim part) (nth 3 known)))
        (setq budget (plist-put budget (nth 1 known) number))))
    budget))

(defun duet-budget-default ()
  "Return the budget in the option `duet-budget', or nil."
  (unless (or (null duet-budget) (stringp duet-budget))
    (user-error "`duet-budget' must be a string, such as \"turns=20,cost=2.50\", or nil"))
  (duet-budget-parse duet-budget))

(defun duet-budget-complete (beg end)
  "Complete the last part of the budget from BEG to END.
Return the value for a `completion-at-point' function."
  (let* ((place (save-excursion
                  (goto-char end)
                  (skip-chars-backward "^," beg)
                  (point)))
         (written (mapcar (lambda (part) (car (split-string part "=")))
                          (split-string (buffer-substring-no-properties beg place) "," t)))
         (candidates (cl-loop for (name _ _ about) in duet-budget--parts
                              unless (member name written)
                              collect (list (concat name "=") about))))
    (list place end candidates
          :exclusive 'no
          :annotation-function (lambda (candidate)
                                 (concat "  " (cadr (assoc candidate candidates)))))))

;;; Directives

;; A prompt may begin with directives for Duet: `/model NAME', `/mode NAME', and
;; `/OPTION VALUE' with an option of the agent.  A new session also has `/agent NAME',
;; `/agents NAME,NAME', `/worktree' and, where it works, `/sandbox LEVEL'.  `/budget turns=20,cost=2' limits the turns from
;; there on.  Duet removes the directives from the prompt, and does not send a prompt
;; without other text.  A slash command of the agent precedes a directive of the same
;; name: Duet sends it to the agent.
;;
;; Directives, their values and the agent's slash commands complete at point.  Before
;; it sends a prompt, Duet refuses a value that a known agent does not have, and lists
;; the valid ones.

(defun duet-directive--words (session &optional agent)
  "Return the directives for the agent of SESSION, or of a new session if nil.
AGENT is the name of a new session's agent, nil for the described one.
A directive is (WORD CATEGORY ABOUT CHOICES).  CHOICES are its values, as
`duet-settings-choices' returns them, or nil if they are unknown.  A directive
without a CATEGORY has no value."
  (let* ((described (and (or (null agent)
                             (equal agent (duet-get-string duet-settings-described :agent)))
                         duet-settings-described))
         (info (if session (duet-session-agent-info session)
                 (duet-get described :agent_session)))
         (modes (if session (duet-session-modes session)
                  (duet-get-objects described :modes)))
         (commands (mapcar (lambda (command) (duet-get-string command :name))
                           (duet-get-objects info :commands)))
         (words
          (append
           (list (list "model" 'duet-model "the model that the agent uses"
                       (duet-settings-choices (duet-get-objects info :model :available)))
                 (list "mode" 'duet-mode "the agent's permissions"
                       (duet-settings-choices modes))
                 (list "budget" 'duet-budget "the limit of a turn" nil))
           (unless session
             (list (list "agent" 'duet-agent "the agent of the session"
                         (duet-directive-agent-choices))
                   (list "agents" 'duet-agent "several agents, each in its own git worktree"
                         (duet-directive-agent-choices))
                   (list "worktree" nil "the agent works in its own git worktree" nil)))
           (when-let ((levels (and (null session) (duet-settings--sandboxes described))))
             (list (list "sandbox" 'duet-sandbox "what the agent can reach" levels)))
           (mapcar (lambda (option)
                     (list (duet-get-string option :id) 'duet-option-value
                           (or (duet-get-string option :name) "an option of the agent")
                           (duet-settings-choices (duet-get-objects option :values))))
                   (duet-settings-options info)))))
    (cl-remove-if (lambda (word)
                    (or (member (car word) commands)
                        ;; The user cannot type the word, or another directive has it.
                        (not (string-match-p "\\`[^/[:space:]]+\\'" (car word)))
                        (not (eq word (assoc (car word) words)))))
                  words)))

(defun duet-settings--sandboxes (described)
  "Return the levels of a sandbox in DESCRIBED, an agent's description, as choices."
  (mapcar (lambda (level)
            (list level level (if (equal level "offline") "as workspace, and no network"
                                "it writes only in the project and in its own directories")))
          (duet-get described :sandboxes)))

(defun duet-directive--scan (text words)
  "Return the directives at the beginning of TEXT, each one of WORDS.
The value is a cons of a list of (WORD . VALUE) and the start of the rest.
VALUE is nil if there is none."
  (let ((place (string-match-p "[^ \t\n]\\|\\'" text))
        (found '())
        word)
    (while (and (eq place (string-match "/\\([^/ \t\n]+\\)\\(?:[ \t]+\\([^/ \t\n][^ \t\n]*\\)\\)?\\(?:[ \t\n]+\\|\\'\\)"
                                        text place))
                (< place (length text))
                (setq word (assoc (match-string 1 text) words)))
      (if (cadr word)
          (progn (push (cons word (match-string 2 text)) found)
                 (setq place (match-end 0)))
        (push (list word) found)
        (setq place (string-match-p "[^ \t\n]\\|\\'" text (match-end 1)))))
    (cons (nreverse found) place)))

(defun duet-directive--value (word value)
  "Return the id for VALUE of the directive WORD, or signal a `user-error'."
  (pcase-let ((`(,name ,_ ,_ ,choices) word))
    (cond
     ((equal name "budget") (duet-budget-parse (or value "")))
     ((equal name "agents") (duet-directive-parse-agents (split-string (or value "") ",") choices))
     ((null (cadr word)) t)
     ((null value)
      (user-error "/%s takes one of: %s" name (duet-directive--list choices)))
     ((or (null choices) (cl-find value choices :key #'cadr :test #'equal)) value)
     ((cadr (cl-find value choices :key #'car :test #'cl-equalp)))
     (t (user-error "/%s %s is unknown; known are: %s" name
                    (duet-visible-line value) (duet-directive--list choices))))))

(defun duet-directive-agent-choices ()
  "Return the usable agents in the format of `duet-settings-choices'."
  (and (featurep 'duet-agents)
       (mapcar (lambda (name) (list name name "")) (duet-agents-usable duet-connection))))

(defun duet-directive-parse-agents (names choices)
  "Return the agents in NAMES as objects of the protocol.
NAMES are strings such as \"claude\" or \"codex=MODEL\".  CHOICES
are the usable agents, or nil if they are unknown."
  (unless (cdr names)
    (user-error "Name two agents or more, such as claude,codex or claude=MODEL,claude=OTHER"))
  (mapcar (lambda (text)
            (pcase-let* ((`(,name . ,model) (split-string (string-trim text) "="))
                         (model (string-join model "=")))
              (unless (or (null choices) (cl-find name choices :key #'cadr :test #'equal))
                (user-error "The agent %s is unknown; known are: %s"
                            (duet-visible-line name) (duet-directive--list choices)))
              (append (list :agent name)
                      (and (not (string-empty-p model)) (list :model model)))))
          names))

(defun duet-directive--list (choices)
  "Return CHOICES in words."
  (if choices (mapconcat (lambda (choice) (duet-visible-line (cadr choice))) choices ", ")
    "those of the agent, which are not known yet"))

(defun duet-directive-take (text session)
  "Return the directives of TEXT, a prompt for SESSION or nil: (REST . SETTINGS).
REST is the prompt for the agent.  SETTINGS is a property list of :agent,
:agents, :mode, :model, :options, :budget, :sandbox and :worktree, or nil.
Signal a `user-error' for an invalid value."
  (let* ((scan (duet-directive--scan
                text (duet-directive--words
                      session (and (null session) (duet-directive-agent text)))))
         (settings '())
         (options '()))
    (pcase-dolist (`(,word . ,value) (car scan))
      (setq value (duet-directive--value word value))
      (pcase (car word)
        ((and name (or "agent" "agents" "mode" "model" "budget" "sandbox" (guard (null (cadr word)))))
         (setq settings (plist-put settings (intern (concat ":" name)) value)))
        (name (setq options (plist-put options (intern (concat ":" name)) value)))))
    (when options (setq settings (plist-put settings :options options)))
    (when (equal (plist-get settings :mode) "bypassPermissions")
      (duet-settings-confirm-bypass
       (and (null session) (null (plist-get settings :sandbox))
            (duet-settings--sandboxes duet-settings-described)
            "/sandbox workspace keeps its writes in the project.  ")))
    (cons (if settings (substring text (cdr scan)) text) settings)))

(defun duet-directive-agent (text)
  "Return the agent in the directives of TEXT, a new session's prompt, or nil."
  (cdr (assoc "agent" (mapcar (lambda (found) (cons (caar found) (cdr found)))
                              (car (duet-directive--scan
                                    text (duet-directive--words nil)))))))


;;;; Completion

(defun duet-directive-complete (session)
  "Complete a directive for SESSION, or a slash command of its agent.
Return the value for a `completion-at-point' function.  The prompt is the
accessible part of the buffer."
  (let* ((end (point))
         (beg (save-excursion (skip-chars-backward "^ \t\n") (point)))
         (before (buffer-substring-no-properties (point-min) beg))
         (agent (and (null session) (duet-directive-agent before)))
         (words (progn
                  (when agent (duet-settings-describe duet-connection agent))
                  (duet-directive--words session agent)))
         (scan (duet-directive--scan before words))
         (last (car (last (car scan)))))
    (cond
     ;; The text before point has more than directives.
     ((< (cdr scan) (length before)) nil)
     ((and last (cadar last) (null (cdr last)) (not (eq (char-after beg) ?/)))
      (pcase (caar last)
        ("budget" (duet-budget-complete beg end))
        ;; A comma and another name may follow a name.
        ("agents" (duet-directive--complete-value
                   (save-excursion (skip-chars-backward "^,\n" beg) (point)) end (car last) #'ignore))
        (_ (duet-directive--complete-value beg end (car last)))))
     ((eq (char-after beg) ?/)
      (duet-directive--complete-word beg end words
                                     (unless (car scan) (duet-settings-commands session)))))))

(defun duet-directive--complete-word (beg end words commands)
  "Complete one of WORDS, or of the agent's COMMANDS, from BEG to END."
  (let ((candidates
         (append
          (mapcar (lambda (command)
                    (list (concat "/" (duet-get-string command :name))
                          (concat
                           (when-let ((hint (duet-get-string command :input_hint)))
                             (format " [%s]" (duet-visible-line hint)))
                           (when-let ((about (duet-get-string command :description)))
                             (concat "  " (duet-visible-line about))))))
                  commands)
          (mapcar (lambda (word)
                    (list (concat "/" (car word))
                          (concat "  " (duet-visible-line (nth 2 word)))))
                  words))))
    (list beg end (duet-settings-table candidates 'duet-command)
          :exclusive 'no
          :annotation-function (lambda (candidate) (cadr (assoc candidate candidates)))
          :exit-function #'duet-directive--completed)))

(defun duet-directive--complete-value (beg end word &optional done)
  "Complete the value of WORD from BEG to END.
DONE is the exit function; the default is `duet-directive--completed'."
  (pcase-let* ((`(,_ ,category ,_ ,choices) word)
               (candidates (mapcar (lambda (choice)
                                     (list (cadr choice)
                                           (duet-directive--about choice)))
                                   choices)))
    (list beg end (duet-settings-table candidates category)
          :exclusive 'no
          :annotation-function (lambda (candidate) (cadr (assoc candidate candidates)))
          :exit-function (or done #'duet-directive--completed))))

(defun duet-directive--about (choice)
  "Return the annotation of CHOICE, one of `duet-settings-choices'."
  (pcase-let ((`(,words ,id ,about) choice))
    (let ((parts (cl-remove-if #'string-empty-p
                               (list (if (equal words id) "" words) (or about "")))))
      (if parts (concat "  " (duet-visible-line (string-join parts ": "))) ""))))

(defun duet-directive--completed (_ status)
  "Insert a space at the end of the buffer if the STATUS is `finished'."
  (when (and (eq status 'finished) (eobp)) (insert " ")))

(provide 'duet-settings)
;;; duet-settings.el ends here
