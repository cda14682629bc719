;;; duet-progress.el --- Duration and silence of a turn  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; While a turn runs, the header line of its transcript shows its duration,
;; and a sign that turns whenever the agent has said or done something: it is still
;; while the agent is.
;;
;; Where a model's API is down an agent tries again for minutes, and says
;; nothing.  The header line, and the transcript's end, show since when, and
;; the complaint of the agent.
;;
;; A timer counts the seconds while a window shows them, and no longer.

;;; Code:

(require 'subr-x)
(require 'duet-header)
(require 'duet-model)
(require 'duet-render)
(require 'duet-transcript)

(defvar duet-progress--timer nil
  "The timer that counts the seconds while they are shown.")

(defun duet-progress--count ()
  "Count the seconds while a window shows a turn that runs, or is silent."
  (unless duet-progress--timer
    (setq duet-progress--timer (run-at-time 1 1 #'duet-progress--tick))))

(defun duet-progress--tick ()
  "Show how long turns take, and agents are silent, in visible windows."
  (let ((seen nil))
    (dolist (buffer (buffer-list))
      (when (and (eq (buffer-local-value 'major-mode buffer) 'duet-transcript-mode)
                 (buffer-local-value 'duet-session buffer)
                 (get-buffer-window buffer 'visible))
        (with-current-buffer buffer
          (when (or (duet-log-guard "Silence" (duet-progress--silence-show))
                    (memq (duet-session-state duet-session) '(starting running)))
            (setq seen t)
            (force-mode-line-update)))))
    (unless (or seen (null duet-progress--timer))
      (cancel-timer duet-progress--timer)
      (setq duet-progress--timer nil))))


;;; How long a turn has taken

(defvar duet-progress--elapsed-counts (make-hash-table :test #'eq :weakness 'key)
  "How often the agents of sessions have said or done something.")

(defconst duet-progress--elapsed-signs ["-" "\\" "|" "/"]
  "What the sign shows, one after the other.")

(defun duet-progress-words (seconds)
  "Return SECONDS in words."
  (let ((seconds (max 0 (floor seconds))))
    (cond ((< seconds 60) (format "%ds" seconds))
          ((< seconds 3600) (format "%dm %02ds" (/ seconds 60) (% seconds 60)))
          (t (format "%dh %02dm" (/ seconds 3600) (% (/ seconds 60) 60))))))

(defun duet-progress--elapsed-header (session)
  "Return for the header line how long the turn of SESSION has taken, or nil."
  (when-let* ((run (duet-session-active-run session))
              ((memq (duet-run-state run) '(starting running)))
              (since (ignore-errors (date-to-time (duet-run-changed run)))))
    (duet-progress--count)
    (concat (duet-progress-words (float-time (time-since since)))
            " "
            (propertize (aref duet-progress--elapsed-signs
                              (% (gethash session duet-progress--elapsed-counts 0)
                                 (length duet-progress--elapsed-signs)))
                        'help-echo "It turns when the agent says or does something"))))

(add-hook 'duet-header-functions #'duet-progress--elapsed-header)

(defun duet-progress--elapsed-observe (_model kind session _object _extra)
  "Count what the agent of SESSION says and does, KIND by kind."
  (when (and session (memq kind '(message-added message-text message-changed)))
    (puthash session (1+ (gethash session duet-progress--elapsed-counts 0)) duet-progress--elapsed-counts)))

(duet-model-add-observer #'duet-progress--elapsed-observe)


;;; Budgets

(defun duet-progress--budget-header (session)
  "Return for the header line that the turn of SESSION nears a budget, or nil."
  (when-let* ((run (duet-session-active-run session))
              (near (duet-run-near run)))
    (propertize "budget nearly used" 'face 'duet-attention
                'help-echo (duet-visible near))))

(add-hook 'duet-header-functions #'duet-progress--budget-header t)


;;; Silence

(defvar-local duet-progress--silence-overlay nil
  "The overlay at the end of a transcript that shows a silence.")

(defun duet-progress-silence-length (since)
  "Return in words how long ago SINCE was, a time as the protocol writes it."
  (let ((seconds (max 0 (floor (float-time (time-since (date-to-time since)))))))
    (if (< seconds 120)
        (format "%d s" seconds)
      (format "%d min" (/ seconds 60)))))

(defun duet-progress--silence-header (session)
  "Return for the header line since when SESSION's agent has said nothing."
  (when-let ((silence (duet-session-silence session)))
    (duet-progress--count)
    (propertize (format "silent for %s" (duet-progress-silence-length (plist-get silence :since)))
                'face 'duet-attention
                'help-echo (duet-progress--silence-words session silence))))

(add-hook 'duet-header-functions #'duet-progress--silence-header t)

(defun duet-progress--silence-words (session silence)
  "Return a sentence about the SILENCE of the agent of SESSION."
  (concat (duet-visible-line (or (duet-session-agent session) "The agent"))
          " has said nothing for " (duet-progress-silence-length (plist-get silence :since))
          (if-let ((tool (plist-get silence :tool)))
              (concat ", in the middle of: " (duet-visible-line tool))
            "")
          (if-let ((note (plist-get silence :note)))
              (concat ": " (duet-visible-line note))
            "")))

(defun duet-progress--silence-show ()
  "Bring the end of the current buffer, a transcript, up to date."
  (let ((silence (and duet-session (duet-session-silence duet-session))))
    (cond
     ((null silence)
      (when duet-progress--silence-overlay
        (delete-overlay duet-progress--silence-overlay)
        (setq duet-progress--silence-overlay nil)))
     (t
      (unless duet-progress--silence-overlay
        (setq duet-progress--silence-overlay (make-overlay (point-max) (point-max) nil t t)))
      (move-overlay duet-progress--silence-overlay (point-max) (point-max))
      (overlay-put duet-progress--silence-overlay 'after-string
                   (concat (if (or (bobp) (eq (char-before (point-max)) ?\n)) "" "\n")
                           (propertize (duet-progress--silence-words duet-session silence)
                                       'face 'duet-dim)
                           "\n"))))
    silence))

(defun duet-progress--silence-observe (_model kind session _object _extra)
  "Show at the end of its transcripts that SESSION's agent is silent, or no more.
KIND is that of the change."
  (when (and (eq kind 'session) session)
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (when (and (derived-mode-p 'duet-transcript-mode) (eq duet-session session)
                   (or duet-progress--silence-overlay (duet-session-silence session)))
          (duet-progress--silence-show))))))

(duet-model-add-observer #'duet-progress--silence-observe)

(provide 'duet-progress)
;;; duet-progress.el ends here
