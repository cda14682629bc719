;;; duet-directive-test.el --- Tests of directives in prompts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-agents)
(require 'duet-compose)
(require 'duet-settings)
(require 'duet-reply)

(defun duet-directive-test-session (&rest commands)
  "Return a session with the slash COMMANDS, whose agent has its own settings."
  (make-duet-session
   :id "thread" :model (duet-model-create) :agent "choosy" :mode "default"
   :modes '((:id "ask" :name "Ask" :by "agent") (:id "code" :name "Code" :by "agent")
            (:id "bypassPermissions" :name "Bypass permissions" :by "duet"))
   :agent-info (list :model '(:current "m-large"
                        :available [(:id "m-large" :name "Large")
                                    (:id "m-small" :name "Small" :description "Cheap")])
               :options [(:id "model" :category "model" :current "m-large"
                          :values [(:id "m-large")])
                         (:id "effort" :name "Effort" :values [(:id "low") (:id "high")])]
               :commands (vconcat (mapcar (lambda (name) (list :name name)) commands)))))

(ert-deftest duet-directive-test-take ()
  "Directives at the beginning of a prompt set the agent, and are not sent to it."
  (let ((session (duet-directive-test-session)))
    (pcase-dolist (`(,text . ,taken)
                   '(("fix it" "fix it")
                     ("/model m-small fix it" "fix it" :model "m-small")
                     ("/model small\n\nfix\n it" "fix\n it" :model "m-small")
                     ("/mode code /effort high /model m-large fix /mode ask"
                      "fix /mode ask" :mode "code" :model "m-large" :options (:effort "high"))
                     ("/mode ask" "" :mode "ask")
                     ;; These are the agent's own, or unknown.
                     ("/review model m-small" "/review model m-small")
                     ("/modeling" "/modeling")
                     ("fix /model m-small" "fix /model m-small")
                     ("/agent demo" "/agent demo")
                     ("/usr/bin/model is gone" "/usr/bin/model is gone")
                     ("/model/x y" "/model/x y")))
      (should (equal (duet-directive-take text session) taken)))
    ;; A value that the agent does not have is an error, before anything is sent.
    (duet-test-should-say "/model tiny is unknown; known are: m-large, m-small"
      (duet-directive-take "/model tiny fix it" session))
    (duet-test-should-say "/effort takes one of: low, high"
      (duet-directive-take "/effort" session))
    (duet-test-should-say "/effort takes one of: low, high"
      (duet-directive-take "/effort /model m-small" session))
    (cl-letf (((symbol-function 'yes-or-no-p) #'ignore))
      (duet-test-should-say "Mode unchanged"
        (duet-directive-take "/mode bypassPermissions fix it" session)))
    ;; A slash command of the agent precedes a directive.
    (should (equal (duet-directive-take "/model tiny" (duet-directive-test-session "model"))
                   '("/model tiny")))
    ;; While the values are unknown, any value is accepted.
    (should (equal (duet-directive-take "/mode x /model y z" (make-duet-session :id "new"))
                   '("z" :mode "x" :model "y")))))

(ert-deftest duet-directive-test-sandbox ()
  "A new session gets a sandbox where one works, and the mode without questions recommends it."
  (let ((duet-settings-described '(:agent "choosy" :sandboxes ["workspace" "offline"]
					  :modes [(:id "bypassPermissions" :by "duet")]))
        (asked '()))
    (cl-letf (((symbol-function 'duet-directive-agent-choices) #'ignore))
      (should (equal (duet-directive-take "/sandbox offline fix it" nil)
                     '("fix it" :sandbox "offline")))
      (should (equal (duet-compose--chosen '(:sandbox "offline")) '(:sandbox "offline")))
      (duet-test-should-say "/sandbox takes one of: workspace, offline"
			    (duet-directive-take "/sandbox" nil))
      (cl-letf (((symbol-function 'yes-or-no-p) (lambda (text) (push text asked))))
	(duet-directive-take "/mode bypassPermissions fix it" nil)
	(should (string-prefix-p "/sandbox workspace keeps its writes in the project." (pop asked)))
	(duet-directive-take "/sandbox workspace /mode bypassPermissions fix it" nil)
	(should (string-prefix-p "Let the agent run" (pop asked)))
	;; A session that exists keeps what it has.
	(duet-directive-take "/mode bypassPermissions fix it" (duet-directive-test-session))
	(should (string-prefix-p "Let the agent run" (pop asked)))
	(should (equal (duet-directive-take "/sandbox offline it" (duet-directive-test-session))
                       '("/sandbox offline it"))))
      (let ((duet-settings-described '(:agent "choosy")))
	(should (equal (duet-directive-take "/sandbox offline it" nil) '("/sandbox offline it")))))))

(ert-deftest duet-directive-test-complete ()
  "Directives and their values complete at the beginning of a prompt."
  (let ((session (duet-directive-test-session "review")))
    (cl-flet ((offered (text)
                (with-temp-buffer
                  (insert text)
                  (pcase (duet-directive-complete session)
                    (`(,beg ,end ,table . ,more)
                     (list (buffer-substring beg end)
                           (completion-metadata-get
                            (completion-metadata "" table nil) 'category)
                           (mapcar (lambda (candidate)
                                     (concat candidate
                                             (funcall (plist-get more :annotation-function)
                                                      candidate)))
                                   (all-completions (buffer-substring beg end) table))))))))
      (should (equal (offered "/m")
                     '("/m" duet-command ("/model  the model that the agent uses"
                                          "/mode  the agent's permissions"))))
      (should (equal (nth 2 (offered "/r")) '("/review")))
      (should (equal (offered "/model ")
                     '("" duet-model ("m-large  Large" "m-small  Small: Cheap"))))
      (should (equal (offered "/model m-small /effort h") '("h" duet-option-value ("high"))))
      (should (equal (nth 1 (offered "/mode ")) 'duet-mode))
      ;; The agent's commands complete only at the beginning.
      (should (equal (nth 2 (offered "/effort low /r")) '()))
      (should (equal (nth 2 (offered "/effort low /e")) '("/effort  Effort")))
      (dolist (text '("fix /m" "/model m-small fix" "/model m-small fix /m" "/review " ""))
        (should-not (offered text))))))

(ert-deftest duet-directive-test-compose ()
  "A prompt sets the agent of its session; a refused prompt stays."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "quiet"))
           (count (progn (duet-test-wait-for-state session 'completed)
                         (length (duet-session-turns session)))))
      (duet-compose connection session)
      (duet-test-wait-for (duet-session-modes session))
      ;; A prompt that has only directives is not sent.
      (insert "/mode acceptEdits")
      (duet-compose-send)
      (duet-test-wait-for (equal (duet-session-mode session) "acceptEdits"))
      (duet-test-wait-for (not (derived-mode-p 'duet-compose-mode)))
      (should (= count (length (duet-session-turns session))))
      ;; The prompt is sent without its directives.
      (duet-compose connection session)
      (insert "/mode plan quiet")
      (duet-compose-send)
      (duet-test-wait-for (> (length (duet-session-turns session)) count))
      (duet-test-wait-for-state session 'completed)
      (should (equal (duet-session-mode session) "plan"))
      (duet-test-wait-for (member "quiet" (mapcar #'duet-message-text
                                                  (duet-session-message-list session))))
      ;; An invalid value is reported, and the prompt stays.
      (duet-compose connection session)
      (insert "/mode lazy quiet")
      (duet-test-should-say "/mode lazy is unknown; known are: .*plan"
        (duet-compose-send))
      (should (equal (buffer-string) "/mode lazy quiet"))
      (erase-buffer)
      ;; The same holds if only the server knows the values.
      (cl-letf (((duet-session-modes session) nil))
        (insert "/mode lazy quiet")
        (duet-compose-send)
        (duet-test-wait-for (duet-test-heard "not sent: .*lazy")))
      (should (equal (buffer-string) "/mode lazy quiet"))
      (should-not duet-compose--sending)
      (erase-buffer)
      (duet-compose-cancel))))

(ert-deftest duet-directive-test-new-session ()
  "A prompt for a new session names its agent, model and mode."
  (duet-test-with-project connection
    (let (asked session)
      (duet-compose connection)
      (duet-test-wait-for duet-settings-described)
      (insert "/mode plan")
      (duet-test-should-say "nothing to send but" (duet-compose-send))
      (erase-buffer)
      (insert "/agent demo /mode plan quiet")
      (cl-letf* ((request (symbol-function 'duet-connection-request))
                 ((symbol-function 'duet-connection-request)
                  (lambda (connection method params &rest more)
                    (when (eq method 'session.start) (setq asked params))
                    (apply request connection method params more))))
        (duet-compose-send))
      (should (equal (list (plist-get asked :prompt) (plist-get asked :agent)
                           (plist-get asked :mode) (plist-get asked :title))
                     '("quiet" "demo" "plan" "quiet")))
      (duet-test-wait-for (with-current-buffer (window-buffer)
                            (setq session (and (derived-mode-p 'duet-transcript-mode)
                                               duet-session))))
      (duet-test-wait-for-state session 'completed)
      (should (equal (duet-session-mode session) "plan")))))

(provide 'duet-directive-test)
;;; duet-directive-test.el ends here
