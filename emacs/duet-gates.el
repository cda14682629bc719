;;; duet-gates.el --- Commands that have to succeed before work is done  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Work may have gates: commands that run after each turn, and of which those that fail are
;; the agent's next prompt.  The transcript tells what came of them; here is where
;; they stand, which the header line of the transcript shows.

;;; Code:

(require 'duet-model)
(require 'duet-visible)

(defconst duet-gates-events '("iteration_start" "gate_start" "gate_result" "gates_complete")
  "The types of events that tell of gates.")

(defun duet-gates-apply (session type data)
  "Note in SESSION what an event of TYPE, one of `duet-gates-events', tells: DATA."
  (setf (duet-session-gates session)
        (list :state (pcase type
                       ((or "gate_start" "gate_result") "checking")
                       ("gates_complete" (duet-get-string data :gates_state))
                       (_ "working"))
              :iteration (or (duet-get-number data :iteration)
                             (plist-get (duet-session-gates session) :iteration))
              :max_iterations (or (duet-get-number data :max_iterations)
                                  (plist-get (duet-session-gates session) :max_iterations))
              :gate (and (equal type "gate_start") (duet-get-string data :gate))))
  (when (equal type "gate_result")
    (duet-model-announce (duet-session-model session) 'gate session data)))

(defun duet-gates-load (session object)
  "Note in SESSION what OBJECT, the gates as the server tells of them, says."
  (setf (duet-session-gates session)
        (and (duet-get-string object :state)
             (list :state (duet-get-string object :state)
                   :iteration (duet-get-number object :iteration)
                   :max_iterations (duet-get-number object :max_iterations)))))

(defun duet-gates-header (session)
  "Return where the gates of SESSION stand, for the header line, or nil."
  (when-let ((gates (duet-session-gates session)))
    (let ((turn (format "turn %s of %s" (or (plist-get gates :iteration) "?")
                        (or (plist-get gates :max_iterations) "?"))))
      (pcase (plist-get gates :state)
        ("working" turn)
        ("checking" (concat turn ", checks "
                            (duet-visible-line (or (plist-get gates :gate) "gates"))))
        ("passed" (propertize "gates passed" 'face 'duet-done))
        ("failed" (propertize "gates failed" 'face 'duet-failed))
        (_ nil)))))

(provide 'duet-gates)
;;; duet-gates.el ends here
