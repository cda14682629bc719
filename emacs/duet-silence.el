;;; duet-silence.el --- Agents that give no sign of life  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Where a model's API is down an agent tries again for minutes, and says
;; nothing.  The header line of its transcript, and the transcript's end, tell
;; since when, and what the agent complains of.  A timer counts the seconds while
;; somebody sees that, and no longer.

;;; Code:

(require 'subr-x)
(require 'duet-model)
(require 'duet-render)
(require 'duet-header)
(require 'duet-transcript)

(defvar duet-silence--timer nil
  "The timer that counts the seconds while they are shown.")

(defvar-local duet-silence--overlay nil
  "The overlay at the end of a transcript that tells of silence.")

(defun duet-silence-length (since)
  "Return in words how long ago SINCE was, a time as the protocol writes it."
  (let ((seconds (max 0 (floor (float-time (time-since (date-to-time since)))))))
    (if (< seconds 120)
        (format "%d s" seconds)
      (format "%d min" (/ seconds 60)))))

(defun duet-silence--header (session)
  "Return for the header line since when SESSION's agent has said nothing."
  (when-let ((silence (duet-session-silence session)))
    (duet-silence--count)
    (propertize (format "silent for %s" (duet-silence-length (plist-get silence :since)))
                'face 'duet-attention
                'help-echo (duet-silence--words session silence))))

(add-hook 'duet-header-functions #'duet-silence--header)

(defun duet-silence--words (session silence)
  "Return a sentence about the SILENCE of the agent of SESSION."
  (concat (duet-visible-line (or (duet-session-agent session) "The agent"))
          " has said nothing for " (duet-silence-length (plist-get silence :since))
          (if-let ((tool (plist-get silence :tool)))
              (concat ", in the middle of: " (duet-visible-line tool))
            "")
          (if-let ((note (plist-get silence :note)))
              (concat ": " (duet-visible-line note))
            "")))

(defun duet-silence--show ()
  "Bring the end of the current buffer, a transcript, up to date."
  (let ((silence (and duet-session (duet-session-silence duet-session))))
    (cond
     ((null silence)
      (when duet-silence--overlay
        (delete-overlay duet-silence--overlay)
        (setq duet-silence--overlay nil)))
     (t
      (unless duet-silence--overlay
        (setq duet-silence--overlay (make-overlay (point-max) (point-max) nil t t)))
      (move-overlay duet-silence--overlay (point-max) (point-max))
      (overlay-put duet-silence--overlay 'after-string
                   (concat (if (or (bobp) (eq (char-before (point-max)) ?\n)) "" "\n")
                           (propertize (duet-silence--words duet-session silence)
                                       'face 'duet-dim)
                           "\n"))))
    silence))

(defun duet-silence--count ()
  "Count the seconds while a window shows an agent that is silent."
  (unless duet-silence--timer
    (setq duet-silence--timer (run-at-time 1 1 #'duet-silence--tick))))

(defun duet-silence--tick ()
  "Show how long agents have been silent by now, where somebody sees it."
  (let ((seen nil))
    (dolist (buffer (buffer-list))
      (when (and (eq (buffer-local-value 'major-mode buffer) 'duet-transcript-mode)
                 (get-buffer-window buffer 'visible))
        (with-current-buffer buffer
          (when (duet-log-guard "Silence" (duet-silence--show))
            (setq seen t)
            (force-mode-line-update)))))
    (unless seen
      (cancel-timer duet-silence--timer)
      (setq duet-silence--timer nil))))

(defun duet-silence--observe (_model kind session _object _extra)
  "Show at the end of its transcripts that SESSION's agent is silent, or no more.
KIND is that of the change."
  (when (and (eq kind 'session) session)
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (when (and (derived-mode-p 'duet-transcript-mode) (eq duet-session session)
                   (or duet-silence--overlay (duet-session-silence session)))
          (duet-silence--show))))))

(duet-model-add-observer #'duet-silence--observe)

(provide 'duet-silence)
;;; duet-silence.el ends here
