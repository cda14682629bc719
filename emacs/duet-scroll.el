;;; duet-scroll.el --- A transcript that is scrolled by the mouse  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A window follows what is written as long as its point is at the end of the
;; buffer.  The mouse wheel and the scroll bar take the point along when they
;; leave the end, and leave it behind when they come back.  Here they bring it
;; back: who scrolls down to the end follows it again.

;;; Code:

(require 'duet-section)
(require 'duet-transcript)

(declare-function duet-approvals-catch "duet-approvals-footer" ())

(defconst duet-scroll--commands
  '(mwheel-scroll pixel-scroll-precision scroll-bar-toolkit-scroll scroll-bar-drag)
  "Commands by which the mouse scrolls, on one system or another.")

(defun duet-scroll--back-p (event)
  "Return non-nil if EVENT is that of a wheel that does not turn to the end."
  (memq (event-basic-type event)
        '(wheel-up wheel-left wheel-right mouse-4 mouse-6 mouse-7)))

(defun duet-scroll--command (event)
  "Return the command of `duet-scroll--commands' that EVENT calls elsewhere."
  (let ((area (posn-area (event-start event)))
        (type (event-basic-type event)))
    (car (memq (key-binding (if area (vector area type) (vector type)) nil t)
               duet-scroll--commands))))

(defun duet-scroll-mouse (event)
  "Scroll as EVENT asks for; follow what is written if that leads to the end."
  (interactive "e")
  (let ((command (duet-scroll--command event))
        (window (posn-window (event-start event))))
    (unless command
      (user-error "Nothing scrolls by this"))
    (setq this-command command)
    (condition-case nil
        (call-interactively command nil (vector event))
      (end-of-buffer nil))
    (when (and (window-live-p window) (not (duet-scroll--back-p event)))
      (duet-scroll--follow window))))

(defun duet-scroll--follow (window)
  "Have WINDOW follow the end of its transcript if it shows that."
  (with-current-buffer (window-buffer window)
    (when (and (derived-mode-p 'duet-transcript-mode)
               (pos-visible-in-window-p (point-max) window))
      (when (< (window-point window) (duet-transcript--end))
        (set-window-point window (point-max))
        (when (fboundp 'duet-approvals-catch) (duet-approvals-catch)))
      (duet-transcript-fill window))))

;; A search goes on while the text is scrolled.
(put 'duet-scroll-mouse 'scroll-command t)
(put 'duet-scroll-mouse 'isearch-scroll t)

(dolist (command duet-scroll--commands)
  (define-key duet-transcript-mode-map (vector 'remap command) #'duet-scroll-mouse))

(provide 'duet-scroll)
;;; duet-scroll.el ends here
