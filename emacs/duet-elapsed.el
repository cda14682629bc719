;;; duet-elapsed.el --- How long a turn has taken, and that it goes on  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; While a turn runs, the header line of its transcript tells for how long, and
;; has a sign that turns whenever the agent has said or done something: one that
;; stands still is that of an agent that does.

;;; Code:

(require 'subr-x)
(require 'duet-model)
(require 'duet-header)
(require 'duet-transcript)

(defvar duet-elapsed--counts (make-hash-table :test #'eq :weakness 'key)
  "How often the agents of sessions have said or done something.")

(defconst duet-elapsed--signs ["-" "\\" "|" "/"]
  "What the sign shows, one after the other.")

(defun duet-elapsed-words (seconds)
  "Return SECONDS in words."
  (let ((seconds (max 0 (floor seconds))))
    (cond ((< seconds 60) (format "%ds" seconds))
          ((< seconds 3600) (format "%dm %02ds" (/ seconds 60) (% seconds 60)))
          (t (format "%dh %02dm" (/ seconds 3600) (% (/ seconds 60) 60))))))

(defun duet-elapsed--header (session)
  "Return for the header line how long the turn of SESSION has taken, or nil."
  (when-let* ((run (duet-session-active-run session))
              ((memq (duet-run-state run) '(starting running)))
              (since (ignore-errors (date-to-time (duet-run-changed run)))))
    (duet-elapsed--count)
    (concat (duet-elapsed-words (float-time (time-since since)))
            " "
            (propertize (aref duet-elapsed--signs
                              (% (gethash session duet-elapsed--counts 0)
                                 (length duet-elapsed--signs)))
                        'help-echo "It turns when the agent says or does something"))))

(add-hook 'duet-header-functions #'duet-elapsed--header)

(defvar duet-elapsed--timer nil
  "The timer that counts the seconds while somebody sees them.")

(defun duet-elapsed--count ()
  "Count the seconds while a window shows a turn that runs."
  (unless duet-elapsed--timer
    (setq duet-elapsed--timer (run-at-time 1 1 #'duet-elapsed--tick))))

(defun duet-elapsed--tick ()
  "Show how long turns have taken by now, where somebody sees it."
  (let ((seen nil))
    (dolist (window (duet-elapsed--windows))
      (with-current-buffer (window-buffer window)
        (when (memq (duet-session-state duet-session) '(starting running))
          (setq seen t)
          (force-mode-line-update))))
    (unless seen
      (cancel-timer duet-elapsed--timer)
      (setq duet-elapsed--timer nil))))

(defun duet-elapsed--windows ()
  "Return the windows that somebody sees and that show a session."
  (let ((windows '()))
    (dolist (frame (visible-frame-list))
      (dolist (window (window-list frame 'no-minibuffer))
        (when (and (eq (buffer-local-value 'major-mode (window-buffer window))
                       'duet-transcript-mode)
                   (buffer-local-value 'duet-session (window-buffer window)))
          (push window windows))))
    windows))

(defun duet-elapsed--observe (_model kind session _object _extra)
  "Count what the agent of SESSION says and does, KIND by kind."
  (when (and session (memq kind '(message-added message-text message-changed)))
    (puthash session (1+ (gethash session duet-elapsed--counts 0)) duet-elapsed--counts)))

(duet-model-add-observer #'duet-elapsed--observe)

(provide 'duet-elapsed)
;;; duet-elapsed.el ends here
