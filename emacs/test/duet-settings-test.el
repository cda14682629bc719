;;; duet-settings-test.el --- Tests of an agent's settings  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-settings)
(require 'duet-compose)

(ert-deftest duet-settings-test-mode ()
  "An agent in the mode that accepts edits edits without approval."
  (duet-test-with-project connection
    (let ((session (duet-test-launch connection "quiet")))
      (duet-test-wait-for-state session 'completed)
      (with-current-buffer (duet-transcript-open connection session)
        (should (eq 'quit (condition-case nil
                              (duet-test-typing "C-g" (call-interactively #'duet-set-mode))
                            (quit 'quit))))
        (duet-test-typing "Accept TAB RET" (call-interactively #'duet-set-mode))
        (duet-test-wait-for (equal (duet-session-mode session) "acceptEdits"))
        (duet-test-request connection 'session.prompt
                           (list :session (duet-session-leaf-id session)
                                 :prompt "edit"))
        (duet-test-wait-for (cdr (duet-session-turns session)))
        (duet-test-wait-for-state session 'completed 'waiting_input)
        (should (eq (duet-session-state session) 'completed))
        ;; A mode that allows everything needs a confirmation.
        (duet-test-typing "Bypass TAB RET no RET"
          (duet-test-should-say "Mode unchanged"
            (call-interactively #'duet-set-mode)))
        (duet-test-request connection 'ping nil)
        (should (equal (duet-session-mode session) "acceptEdits"))
        (duet-test-typing "Bypass TAB RET yes RET"
          (call-interactively #'duet-set-mode))
        (duet-test-wait-for (equal (duet-session-mode session) "bypassPermissions"))
        (duet-test-typing "SPC RET"
          (duet-test-should-say "No model given" (call-interactively #'duet-set-model)))
        (duet-test-typing "big SPC RET" (call-interactively #'duet-set-model))
        (duet-test-wait-for
         (equal (duet-get-string (duet-test-request
                                  connection 'turn.get
                                  (list :turn (duet-session-leaf-id session)))
                                 :turn :model)
                "big"))
        (duet-test-should-say "The agent reports no options"
          (call-interactively #'duet-set-option)))
      (with-temp-buffer
        (dolist (command '(duet-set-mode duet-set-model duet-set-option))
          (duet-test-should-say "There is no session here"
            (call-interactively command)))))))

(defvar duet-settings-test-told
  '(:agent (:name "choosy")
    :mode (:current "ask"
           :available [(:id "ask" :name "Ask" :description "Asks first")
                       (:id "code" :name "Code")])
    :model (:current "m-large"
            :available [(:id "m-large" :name "Large") (:id "m-small" :name "Small")])
    :options [(:id "model" :category "model" :current "m-large"
               :values [(:id "m-large")])
              (:id "thought" :name "Thinking" :current "low"
               :values [(:id "low" :name "Low") (:id "high" :name "High")])
              (:id "fast" :name "Fast" :type "boolean" :current "false"
               :values [(:id "true") (:id "false")])
              (:id "colour" :name "Colour" :values [])]
    :commands [(:name "review" :description "Review it" :input_hint "what")
               (:name "compact")])
  "The settings that an agent of this kind reports.")

(defmacro duet-settings-test-with (&rest body)
  "Run BODY with `session', whose agent has settings, and `asked'.
`asked' has the requests to the server, the last first: (METHOD . PARAMETERS)."
  (declare (debug (body)))
  `(let* ((model (duet-model-create))
          (session (make-duet-session :id "thread" :model model :agent "choosy"
                                      :mode "default"))
          (asked '()))
     (setf (duet-session-modes session)
           '((:id "ask" :name "Ask" :description "Asks first" :by "agent")
             (:id "code" :name "Code" :by "agent")
             (:id "default" :name "Default" :by "duet")
             (:id "acceptEdits" :name "Accept edits" :by "duet")))
     (puthash "thread" session (duet-model-sessions model))
     (puthash "run" session (duet-model-turns model))
     (duet-events-apply model (list :seq 1 :kind "agent.session" :turn_uuid "run"
                                    :data duet-settings-test-told))
     (cl-letf (((symbol-function 'duet-connection-request)
                (lambda (_ method parameters &rest _)
                  (push (cons method parameters) asked)))
               ((symbol-function 'duet-connection-here) #'ignore)
               ((symbol-function 'duet-actions-session) (lambda (&rest _) session)))
       ,@body)))

(ert-deftest duet-settings-test-modes-as-they-are ()
  "The minibuffer offers the current modes of the agent, not outdated ones."
  (duet-test-with-project connection
    (let ((session (duet-test-launch connection "quiet"))
          offered)
      (duet-test-wait-for-state session 'completed)
      (with-current-buffer (duet-transcript-open connection session)
        (setf (duet-session-modes session) '((:id "default")))
        (minibuffer-with-setup-hook
            (lambda () (setq offered (all-completions "" minibuffer-completion-table)))
          (duet-test-should-quit "C-g" (call-interactively #'duet-set-mode))))
      (should (> (length offered) 2))
      (should (> (length (duet-session-modes session)) 2))
      ;; Without a reply it offers the known modes, or those that all agents have.
      (cl-letf (((symbol-function 'duet-rpc-request)
                 (lambda (&rest _) (signal 'duet-rpc-timeout '("late")))))
        (setf (duet-session-modes session) '((:id "default")))
        (should (equal (duet-settings--modes-of session) '((:id "default"))))
        (setf (duet-session-modes session) nil)
        (should (equal (length (duet-settings--modes-of session)) 4))))))

(ert-deftest duet-settings-test-own ()
  "The minibuffer offers the agent's own modes, models and options."
  (duet-settings-test-with
   (with-temp-buffer
     (duet-test-typing "Code RET" (call-interactively #'duet-set-mode))
     (should (equal (car asked) '(session.set :session "thread" :mode "code")))
     (duet-test-typing "Accept TAB RET" (call-interactively #'duet-set-mode))
     (should (equal (plist-get (cdar asked) :mode) "acceptEdits"))
     (duet-test-typing "Small RET" (call-interactively #'duet-set-model))
     (should (equal (car asked) '(session.set :session "thread" :model "m-small")))
     (duet-test-typing "Thinking RET High RET" (call-interactively #'duet-set-option))
     (should (equal (car asked)
                    '(session.set :session "thread" :options (:thought "high"))))
     (let (offered)
       (minibuffer-with-setup-hook
           (lambda () (setq offered (all-completions "" minibuffer-completion-table)))
         (duet-test-typing "RET" (call-interactively #'duet-set-mode)))
       (should (equal offered '("Ask" "Code" "Default" "Accept edits")))
       ;; The current mode is the default.
       (should (equal (plist-get (cdar asked) :mode) "ask"))))))

(ert-deftest duet-settings-test-next-mode ()
  "The next mode is one of Duet's that the agent has, never the one without questions."
  (duet-settings-test-with
   (push '(:id "bypassPermissions" :name "Bypass permissions" :by "duet") (duet-session-modes session))
   (with-temp-buffer
     (dolist (mode '("acceptEdits" "default" "acceptEdits"))
       (call-interactively #'duet-next-mode)
       (should (equal (car asked) (list 'session.set :session "thread" :mode mode)))
       (setf (duet-session-mode session) mode))
     (setf (duet-session-mode session) "bypassPermissions")
     (call-interactively #'duet-next-mode)
     (should (equal (plist-get (cdar asked) :mode) "default"))
     (setf (duet-session-modes session) '((:id "ask" :name "Ask" :by "agent")))
     (duet-test-should-say "The agent has none of Duet.s modes; ./mode. sets one of its own"
       (call-interactively #'duet-next-mode)))))

(ert-deftest duet-settings-test-said ()
  "The message has the agent's name of a setting, and when it takes effect."
  (let (now)
    (duet-settings-test-with
     (cl-letf (((symbol-function 'duet-connection-request)
                (lambda (_ _ _ &rest rest)
                  (funcall (plist-get rest :success-fn) (list :live now)))))
       (duet-test-listening
         (duet-set-model session "m-small")
         (should (duet-test-heard "^Model: Small, from the next prompt on$"))
         (setq now t)
         (duet-set-mode session "code")
         (should (duet-test-heard "^Mode: Code$"))
         (duet-set-option session "thought" "high")
         (should (duet-test-heard "^Thinking is High$")))))))

(defun duet-settings-test-event (model seq kind &rest data)
  "Apply to MODEL an event of KIND with the number SEQ and DATA."
  (duet-events-apply model (list :seq seq :kind kind :turn_uuid "run" :data data)))

(ert-deftest duet-settings-test-told ()
  "Settings that an agent reports are shown by their names, and updated."
  (duet-settings-test-with
   (should (equal (duet-actions-session-llm session) "Large"))
   (should (equal (duet-actions-session-mode session) "Ask"))
   (duet-settings-test-event model 2 "session.changed" :model "m-small" :mode "acceptEdits")
   (should (equal (duet-actions-session-llm session) "Large"))
   (should (equal (duet-actions-session-mode session) "Ask, Accept edits"))
   (duet-settings-test-event model 3 "agent.session"
                             :model '(:current "m-small" :available [(:id "m-small")])
                             :mode '(:current "code" :available [(:id "code")]))
   (should (equal (duet-actions-session-llm session) "m-small"))
   (should (equal (duet-actions-session-mode session) "code, Accept edits"))
   (should (duet-get-objects (duet-session-agent-info session) :commands))
   ;; An agent that has left plan mode shows its new mode.
   (duet-settings-test-event model 4 "session.changed" :mode "plan")
   (duet-settings-test-event model 5 "session.changed" :agent_mode "default")
   (should-not (duet-actions-session-mode session))
   (duet-settings-test-event model 6 "session.changed" :agent_mode "auto")
   (should (equal (duet-session-mode session) "auto"))
   (should (equal (duet-actions-session-mode session) "auto"))
   ;; One of Duet's modes holds again after the agent has left its plan mode.
   (duet-settings-test-event model 7 "session.changed" :mode "acceptEdits")
   (dolist (mode '("plan" "code"))
     (duet-settings-test-event model 8 "session.changed" :agent_mode mode))
   (should (equal (duet-session-mode session) "acceptEdits"))
   (duet-settings-test-event model 9 "agent.session" :mode '(:current "plan"))
   (should (equal (duet-actions-session-mode session) "Plan"))))

(ert-deftest duet-settings-test-commands ()
  "A slash at the beginning of a prompt completes to a command."
  (duet-settings-test-with
   (with-temp-buffer
     (setq-local duet-session session)
     (should-not (duet-compose-complete-command))
     (insert "/rev")
     (let* ((data (duet-compose-complete-command))
            (annotate (plist-get (nthcdr 3 data) :annotation-function)))
       (should (equal (all-completions "/" (nth 2 data))
                      '("/review" "/compact" "/model" "/mode" "/budget" "/thought" "/fast")))
       (should (equal (funcall annotate "/review") " [what]  Review it"))
       (should (equal (funcall annotate "/compact") "")))
     (let ((completion-at-point-functions '(duet-compose-complete-command)))
       (completion-at-point))
     (should (equal (buffer-string) "/review "))
     (insert "this /com")
     (should-not (duet-compose-complete-command)))))

(provide 'duet-settings-test)
;;; duet-settings-test.el ends here
