;;; perf.el --- How long a real Emacs is kept from its user  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The program `perf' beside this loads it into an Emacs in a terminal.  A timer
;; that is due every 10 ms tells how long Emacs was busy; F5 to F9 are keys whose
;; time of arrival on the screen is noted.

;;; Code:

(require 'duet)

(defvar perf-gaps nil "Seconds by which the timer was late.")
(defvar perf-shown nil
  "Keys, and when they had been handled and the screen was drawn.")
(defvar perf-last nil "When the timer was called last.")
(defvar perf-collected nil
  "How often garbage had been collected before, and for how many seconds.")

(defun perf-begin ()
  "Begin to measure."
  (garbage-collect)
  (setq perf-gaps nil perf-shown nil
        perf-collected (cons gcs-done gc-elapsed)
        perf-last (float-time)))

(run-at-time 0 0.01
             (lambda ()
               (let ((now (float-time)))
                 (when perf-last (push (max 0 (- now perf-last 0.01)) perf-gaps))
                 (setq perf-last now))))

(defun perf-key ()
  "Move, draw the screen, and note when that is done."
  (interactive)
  (ignore-errors (if (zerop (% (length perf-shown) 2))
                     (duet-section-previous)
                   (goto-char (point-max))))
  (redisplay t)
  (push (vector (upcase (symbol-name last-command-event)) (float-time)) perf-shown))

(dolist (key '("<f5>" "<f6>" "<f7>" "<f8>" "<f9>"))
  (global-set-key (kbd key) #'perf-key))

(defun perf-write (file)
  "Write what was measured to FILE, as JSON."
  (with-temp-file file
    (insert (json-serialize (list :gaps (vconcat perf-gaps)
                                  :shown (vconcat (reverse perf-shown))
                                  :collections (- gcs-done (car perf-collected))
                                  :collecting (- gc-elapsed (cdr perf-collected)))))))

(defun perf-delta (session seq key text)
  "Add TEXT to the message KEY of SESSION, by an event with number SEQ."
  (duet-events-apply
   (duet-session-model session)
   (list :seq seq :kind "text.delta" :time "2026-01-01T00:00:01Z"
         :turn_uuid (duet-session-leaf-id session)
         :data (list :key key :text text))))

(defun perf-fill ()
  "Make the transcript 5 MB long, in 100 parts, one each 20 ms."
  (interactive)
  (perf-feed 100 0.02 1
             (let ((line "Some **prose** with `code` in it, as agents write it all day.\n"))
               (substring (apply #'concat (make-list 1000 line)) 0 50000))
             25 "It is full."))

(defconst perf-page
  (concat "## A heading\n\nSome **prose** with `code` in it, [a link](https://a.org), and\n"
          "a second *line* of src/main.go:12.\n\n- an item\n- **another** one\n\n"
          "```python\ndef answer(x):\n    # of course\n    return \"42\" + x\n```\n\n"
          "| Name | Count |\n|---|--:|\n| **a** | 1 |\n| `longer` | 1000 |\n\n> quoted\n\n")
  "A little of all of Markdown.")

(defun perf-fill-markdown ()
  "Make the transcript 5 MB longer by Markdown, in 100 parts, one each 20 ms."
  (interactive)
  (perf-feed 100 0.02 1
             (substring (apply #'concat (make-list 300 perf-page)) 0 50000)
             25 "It is full, too."))

(defun perf-stream-markdown ()
  "Add 2,000 deltas of Markdown a second for three seconds to the transcript."
  (interactive)
  (perf-feed 6000 0.01 20
             (let ((place 0))
               (lambda ()
                 (prog1 (substring perf-page place (min (length perf-page) (+ place 11)))
                   (setq place (if (< (+ place 11) (length perf-page)) (+ place 11) 0)))))
             6000 "It is said, too."))

(defun perf-stream ()
  "Add 2,000 deltas a second for three seconds to the transcript."
  (interactive)
  (perf-feed 6000 0.01 20 "some words " 6000 "It is said."))

(defun perf-feed (count delay step text per end)
  "Add COUNT times TEXT, every DELAY seconds STEP times, PER to a message.
TEXT may be a function that returns it.  END is said in the end."
  (let ((session duet-session)
        (done 0)
        (name (format "perf-%s" (float-time)))
        timer)
    (setq timer
          (run-at-time
           0 delay
           (lambda ()
             (dotimes (_ step)
               (perf-delta session (1+ (duet-model-seq (duet-session-model session)))
                           (format "%s-%d" name (/ done per))
                           (if (functionp text) (funcall text) text))
               (setq done (1+ done)))
             (when (>= done count)
               (cancel-timer timer)
               (perf-delta session (1+ (duet-model-seq (duet-session-model session)))
                           (concat name "-end") end)))))))

(provide 'perf)
;;; perf.el ends here
