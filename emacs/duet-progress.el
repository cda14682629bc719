;;; duet-progress.el --- Duration and silence of a turn  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; While a turn runs, the header line of its transcript shows its duration, and a
;; sign that turns with each message of the agent.  A still sign means a silent agent.
;;
;; An agent whose model API is down retries for minutes without a message.  The
;; header line and the end of the transcript show how long the agent has been
;; silent, and its complaint.
;;
;; A timer updates the seconds only while a window shows them.

;;; Code:

(require 'subr-x)
(require 'duet-header)
(require 'duet-model)
(require 'duet-render)
(require 'duet-transcript)

(defvar duet-progress--timer nil
  "The timer that updates the seconds while a window shows them.")

(defun duet-progress--count ()
  "Start the timer for the seconds, if it does not run."
  (unless duet-progress--timer
    (setq duet-progress--timer (run-at-time 1 1 #'duet-progress--tick))))

(defun duet-progress--tick ()
  "Update the durations of turns and silences in visible windows.
Stop the timer if there are none."
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


;;; Duration of a turn

(defvar duet-progress--elapsed-counts (make-hash-table :test #'eq :weakness 'key)
  "The numbers of messages and changes of messages, by session.")

(defconst duet-progress--elapsed-signs ["-" "\\" "|" "/"]
  "The sign's characters, in their order.")

(defun duet-progress-words (seconds)
  "Return SECONDS as a duration such as \"2m 05s\"."
  (let ((seconds (max 0 (floor seconds))))
    (cond ((< seconds 60) (format "%ds" seconds))
          ((< seconds 3600) (format "%dm %02ds" (/ seconds 60) (% seconds 60)))
          (t (format "%dh %02dm" (/ seconds 3600) (% (/ seconds 60) 60))))))

(defun duet-progress--elapsed-header (session)
  "Return the duration of SESSION's turn for the header line, or nil."
  (when-let* ((turn (duet-session-active-turn session))
              ((memq (duet-turn-state turn) '(starting running)))
              (since (ignore-errors (date-to-time (duet-turn-changed turn)))))
    (duet-progress--count)
    (concat (duet-progress-words (float-time (time-since since)))
            " "
            (propertize (aref duet-progress--elapsed-signs
                              (% (gethash session duet-progress--elapsed-counts 0)
                                 (length duet-progress--elapsed-signs)))
                        'help-echo "The sign turns with each sign of life of the agent"))))

(add-hook 'duet-header-functions #'duet-progress--elapsed-header)

(defun duet-progress--elapsed-observe (_model kind session _object _extra)
  "Count a change of a message of SESSION; KIND is the kind of the change."
  (when (and session (memq kind '(message-added message-text message-changed)))
    (puthash session (1+ (gethash session duet-progress--elapsed-counts 0)) duet-progress--elapsed-counts)))

(duet-model-add-observer #'duet-progress--elapsed-observe)


;;; Budgets

(defun duet-progress--budget-header (session)
  "Return a warning for the header line if SESSION's turn nears a budget, or nil."
  (when-let* ((turn (duet-session-active-turn session))
              (near (duet-turn-near turn)))
    (propertize "budget nearly used" 'face 'duet-attention
                'help-echo (duet-visible near))))

(add-hook 'duet-header-functions #'duet-progress--budget-header t)


;;; Silence

(defvar-local duet-progress--silence-overlay nil
  "The overlay at the end of a transcript that shows a silence.")

(defun duet-progress-silence-length (since)
  "Return the time since SINCE, a time as the protocol writes it, in words."
  (let ((seconds (max 0 (floor (float-time (time-since (date-to-time since)))))))
    (if (< seconds 120)
        (format "%d s" seconds)
      (format "%d min" (/ seconds 60)))))

(defun duet-progress--silence-header (session)
  "Return the silence of SESSION's agent for the header line, or nil."
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

(defun duet-progress--silence-sentence ()
  "Return a sentence about the silence of the current transcript, or nil.
The silence is that of the daemon, or else of the agent."
  (or (when-let ((trouble (and duet-connection (duet-connection-trouble duet-connection))))
        (duet-visible-line trouble))
      (when-let ((silence (and duet-session (duet-session-silence duet-session))))
        (duet-progress--silence-words duet-session silence))))

(defun duet-progress--silence-show ()
  "Show or remove the silence at the end of the current buffer, a transcript.
Return the sentence about it, or nil."
  (let ((sentence (duet-progress--silence-sentence)))
    (cond
     ((null sentence)
      (when duet-progress--silence-overlay
        (delete-overlay duet-progress--silence-overlay)
        (setq duet-progress--silence-overlay nil)))
     (t
      (unless duet-progress--silence-overlay
        (setq duet-progress--silence-overlay (make-overlay (point-max) (point-max) nil t t)))
      (move-overlay duet-progress--silence-overlay (point-max) (point-max))
      (overlay-put duet-progress--silence-overlay 'after-string
                   (concat (if (or (bobp) (eq (char-before (point-max)) ?\n)) "" "\n")
                           (propertize sentence 'face 'duet-dim)
                           "\n"))))
    sentence))

(defun duet-progress--silence-observe (model kind session _object _extra)
  "Update the silence at the end of SESSION's transcripts.
KIND is the kind of the change.  A change of the connection is one for all
sessions of MODEL."
  (when (or (and (eq kind 'session) session) (eq kind 'connection))
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (when (and (derived-mode-p 'duet-transcript-mode) duet-session
                   (if (eq kind 'connection) (eq (duet-session-model duet-session) model)
                     (eq duet-session session))
                   (or duet-progress--silence-overlay (duet-progress--silence-sentence)))
          (duet-progress--silence-show)
          (force-mode-line-update))))))

(duet-model-add-observer #'duet-progress--silence-observe)

(provide 'duet-progress)
;;; duet-progress.el ends here
