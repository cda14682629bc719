;;; duet-silence-test.el --- Tests of silent agents  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-model-test)

(defun duet-silence-test-event (seq seconds &rest data)
  "Return params of an event: silent for SECONDS, with number SEQ and DATA."
  (apply #'duet-model-test-event "agent.silent" seq "r1"
         :since (format-time-string "%FT%T.%3NZ" (time-subtract duet-test-now seconds) t)
         data))

(defmacro duet-silence-test-with-transcript (session model &rest body)
  "Run BODY in a transcript of SESSION, a session of MODEL, in a window."
  (declare (indent 2))
  `(let* ((,model (duet-model-test-model t))
          (,session (duet-model-session ,model "t1")))
     (with-temp-buffer
       (duet-transcript-mode)
       (setq duet-session ,session)
       (save-window-excursion
         (switch-to-buffer (current-buffer))
         (unwind-protect (duet-test-with-clock-stopped ,@body)
           (when duet-progress--timer
             (cancel-timer duet-progress--timer)
             (setq duet-progress--timer nil)))))))

(defun duet-silence-test-tail ()
  "Return the text after the end of the current transcript."
  (and duet-progress--silence-overlay (overlay-get duet-progress--silence-overlay 'after-string)))

(ert-deftest duet-silence-test-shown ()
  "The header line and the end of a transcript show silence, and its end."
  (duet-silence-test-with-transcript session model
    (should-not (duet-progress--silence-header session))
    (should-not duet-progress--timer)
    (duet-events-apply model (duet-silence-test-event 2 12 :note "API error 500"))
    (should (equal (substring-no-properties (duet-progress--silence-header session))
                   "silent for 12 s"))
    (should (string-match-p "^demo has said nothing for 12 s: API error 500\n"
                            (duet-silence-test-tail)))
    (should duet-progress--timer)
    (duet-events-apply model (duet-silence-test-event 3 300 :tool_title "Look into it"))
    (duet-progress--tick)
    (should (string-match-p "^demo has said nothing for 5 min, in the middle of: Look into it\n"
                            (duet-silence-test-tail)))
    (let ((inhibit-read-only t)) (goto-char (point-max)) (insert "more\n"))
    (should (= (overlay-start duet-progress--silence-overlay) (point-max)))
    (duet-events-apply model (duet-silence-test-event 4 300 :ended t))
    (should-not (duet-silence-test-tail))
    (should-not (duet-progress--silence-header session))
    ;; The turn continues, and its time is counted.
    (duet-progress--tick)
    (should duet-progress--timer)
    (duet-events-apply model (duet-model-test-event
                              "turn.state" 5 "r1" :session_uuid "t1"
                              :state "completed"))
    (duet-progress--tick)
    (should-not duet-progress--timer)))

(ert-deftest duet-silence-test-over ()
  "Silence ends with the turn, with an interrupt, and with a question."
  (dolist (state '("waiting_input" "interrupting" "completed"))
    (duet-silence-test-with-transcript session model
      (duet-events-apply model (duet-silence-test-event 2 12))
      (should (duet-session-silence session))
      (duet-events-apply model (duet-model-test-event
                               "turn.state" 3 "r1" :session_uuid "t1"
                               :state state))
      (should-not (duet-session-silence session))
      (should-not (duet-silence-test-tail)))))

(ert-deftest duet-silence-test-unseen ()
  "The timer stops if no window shows the transcript."
  (duet-silence-test-with-transcript session model
    (duet-events-apply model (duet-silence-test-event 2 12))
    (duet-progress--silence-header session)
    (should duet-progress--timer)
    (switch-to-buffer "*scratch*")
    (duet-progress--tick)
    (should-not duet-progress--timer)))

(ert-deftest duet-silence-test-listed ()
  "A listed session shows whether its agent is silent."
  (let ((model (duet-model-create :root "/nowhere/"))
        (object (lambda (&rest more)
                  (append more '(:turn_uuid "r1" :session_uuid "t1" :state "running" :agent "demo"
                                 :created_at "2026-01-01T00:00:00Z"
                                 :active_at "2026-01-01T00:00:00Z")))))
    (duet-pages-load-sessions
     model (vector (funcall object :silent_since "2026-01-01T00:00:00Z" :silent_note "n")))
    (let ((session (duet-model-session model "t1")))
      (should (equal (plist-get (duet-session-silence session) :note) "n"))
      (should (string-match-p "silent" (aref (cadr (duet-sessions-entry session)) 1)))
      (duet-pages-load-sessions model (vector (funcall object)))
      (should-not (duet-session-silence session)))))

(provide 'duet-silence-test)
;;; duet-silence-test.el ends here
