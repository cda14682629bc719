;;; duet-run.el --- One prompt and its execution  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A run is one prompt and its execution; the protocol's session_id names it.  What
;; tells of one may overtake what was told before: the latest state is kept.

;;; Code:

(require 'cl-lib)
(require 'duet-get)

(cl-defstruct (duet-run (:copier nil))
  "One prompt and its execution, or work that an agent has begun by itself."
  (id nil :documentation "The protocol's session_id.")
  (state nil :documentation "A symbol: queued, starting, running, ...")
  (changed "" :documentation "When it got into that state, as the protocol writes it.")
  (created "" :documentation "A time as the protocol writes it.")
  (parent nil :documentation "The id of the run before it.")
  (query nil :documentation "The prompt; empty without one, nil until the server has told.")
  (silence nil :documentation "Since when its agent gives no sign of life, see `duet-run-be-silent'.")
  (near nil :documentation "Which budget it has nearly used up, in words, or nil.")
  (error nil :documentation "Why it failed, in words.")
  (error-code nil :documentation "Why it failed, such as ORPHANED."))

(defconst duet-run-active-states '(starting running waiting_input interrupting)
  "States of a run that an agent works on.")

(defconst duet-run-ended-states '(completed failed timed_out cancelled interrupted discarded)
  "States of a run that nothing more comes of.")

(defun duet-run-change (run state time error code)
  "Let RUN be in STATE since TIME, with ERROR and CODE, those of its failure.
A reply may overtake events, and events a reply.  So what is older than
what is known changes nothing, nor does what is as old and comes earlier
in the life of a run.  An end is an end, whatever the clock did."
  (let ((known (duet-run-changed run))
        (rank (lambda (state)
                (cond ((memq state '(nil draft)) 0)
                      ((eq state 'queued) 1)
                      ((eq state 'starting) 2)
                      ((memq state duet-run-active-states) 3)
                      (t 4)))))
    (unless (and (or (duet-get-time-before-p time known)
                     (and (not (duet-get-time-before-p known time))
                          (< (funcall rank state) (funcall rank (duet-run-state run)))))
                 (or (memq (duet-run-state run) duet-run-ended-states)
                     (not (memq state duet-run-ended-states))))
      (setf (duet-run-state run) state
            (duet-run-changed run) (or time known)
            (duet-run-error run) error
            (duet-run-error-code run) code)
      ;; Who waits for a person is not silent, nor is who has ended.
      (unless (memq state '(starting running))
        (setf (duet-run-silence run) nil)))))

(defun duet-run-be-silent (run since note tool)
  "Note that the agent of RUN gives no sign of life SINCE a time; nil: it does.
NOTE is what it has complained of, and TOOL the tool call that it is in the
middle of; each may be nil."
  (setf (duet-run-silence run)
        (and since (ignore-errors (date-to-time since))
             (list :since since :note note :tool tool))))

(provide 'duet-run)
;;; duet-run.el ends here
