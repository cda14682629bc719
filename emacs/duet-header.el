;;; duet-header.el --- The header line of transcripts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Above a transcript stands how its session is doing: its state, what waits,
;; who works, and what that has used.

;;; Code:

(require 'subr-x)
(require 'duet-connection)
(require 'duet-look)
(require 'duet-render)
(require 'duet-actions)

(defvar duet-header-functions nil
  "Functions that add something to the header line of a transcript.
Each is called with the `duet-session' and returns a string or nil.")

(defun duet-header-number (number)
  "Return NUMBER, which may be large, in a few characters."
  (cond ((< number 1000) (number-to-string number))
        ((< number 1000000) (format "%.1fk" (/ number 1000.0)))
        (t (format "%.1fM" (/ number 1000000.0)))))

(defun duet-header-key (command words map)
  "Return WORDS behind the key of COMMAND in MAP, a symbol, for a header line.
A click on them calls COMMAND in the window whose header line it is."
  (propertize (concat (substitute-command-keys (format "\\<%s>\\[%s]" map command))
                      " " words)
              'local-map (duet-header-click command)
              'mouse-face 'highlight
              'help-echo (format "mouse-1: %s" words)))

(defun duet-header-click (command)
  "Return a keymap by which a click calls COMMAND in the window that it is in."
  (or (get command 'duet-header-click)
      (let ((map (make-sparse-keymap)))
        (define-key map [header-line mouse-1]
                    (lambda (event)
                      (interactive "e")
                      (select-window (posn-window (event-start event)))
                      (call-interactively command)))
        (put command 'duet-header-click map)
        map)))

(defun duet-header (session connection)
  "Return the header line of the transcript of SESSION of CONNECTION.
It tells how the session is doing; it is empty if SESSION is nil."
  (if (null session)
      ""
    (let* ((usage (duet-session-usage session))
           (queued (duet-session-queued session))
           (parts
            (list
             (duet-look-state-header (duet-session-state session))
             (when-let ((status (duet-connection-status connection)))
               (propertize status 'face 'duet-failed))
             (when (eq (duet-session-loaded session) 'loading) "loading…")
             (when (> queued 0) (format "%d queued" queued))
             (duet-session-agent session)
             (duet-actions-session-llm session)
             (duet-actions-session-mode session)
             (when-let ((used (plist-get usage :context_used))
                        (size (plist-get usage :context_size)))
               (format "context %d%%" (round (* 100.0 used) (max 1 size))))
             (when-let ((in (plist-get usage :input_tokens))
                        (out (plist-get usage :output_tokens)))
               (format "%s in %s out" (duet-header-number in) (duet-header-number out)))
             (when-let ((cost (plist-get usage :cost_usd)))
               (format "$%.2f" cost)))))
      ;; What others called something is no construct of a mode line.
      (replace-regexp-in-string
       "%" "%%"
       (concat " " (string-join
                    (delq nil (append parts
                                      (mapcar (lambda (function)
                                                (duet-log-guard "Header line"
                                                  (funcall function session)))
                                              duet-header-functions)))
                    (concat " " (propertize (duet-look-sign "·") 'face 'duet-dim)
                            " ")))
       t t))))

(provide 'duet-header)
;;; duet-header.el ends here
