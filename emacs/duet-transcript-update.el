;;; duet-transcript-update.el --- Brings a transcript up to date  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What is new is noted, and shown a little later, for a short time at once: Emacs
;; stays free for other things however much comes.  A timer of the buffer goes on
;; with what is left.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-block)
(require 'duet-code)
(require 'duet-log)
(require 'duet-markup)
(require 'duet-model)
(require 'duet-render)
(require 'duet-section)

(defvar duet-session)                   ; of duet-transcript.el

(defcustom duet-transcript-delay 0.05
  "How many seconds may pass until a transcript shows what was said."
  :type 'number
  :group 'duet)

(defconst duet-transcript--slice 0.008
  "How many seconds a transcript is worked on before Emacs may do other things.")

(defconst duet-transcript--pause 0.005
  "How many seconds Emacs has for those before it goes on.")

(defvar-local duet-transcript--dirty nil
  "Messages to be brought up to date, the last first.")
(defvar-local duet-transcript--how nil
  "A hash table: how each of those is to be brought up to date.
`append' or `redraw'.")
(defvar-local duet-transcript--markup nil
  "Sections that are to be looked at for blocks of code.")
(defvar-local duet-transcript--next 0
  "From when on more may be shown of what was said, as `float-time' tells it.")
(defvar-local duet-transcript--timer nil
  "The timer that brings the buffer up to date.")

(defun duet-transcript--tail ()
  "Return the section that what is said comes in front of, or nil."
  ;; What waits for the user stays at the end.
  (or (duet-section-get 'footer) (duet-section-get 'reply)))

(defun duet-transcript--end ()
  "Return where what is said ends."
  (if-let ((tail (duet-transcript--tail))) (duet-section-beg tail)
    (point-max)))

(defun duet-transcript-fill (window)
  "Have the end of the transcript at the bottom of WINDOW, if it shows the end.
Emacs leaves it where it was when the window was lower, or what stands above
a question was shorter."
  (when (and (window-live-p window)
             (eq (buffer-local-value 'major-mode (window-buffer window))
                 'duet-transcript-mode))
    (with-current-buffer (window-buffer window)
      (when (>= (window-point window)
                (duet-transcript--end))
        (let ((start (save-excursion
                       (goto-char (point-max))
                       (vertical-motion (- 1 (window-body-height window)) window)
                       (point))))
          ;; What is at the end may be higher than the window.
          (unless (or (= start (window-start window)) (< (window-point window) start))
            (set-window-start window start t)))))))

(defun duet-transcript-follow ()
  "Have the end of the transcript at the bottom of all windows that show it."
  (dolist (window (get-buffer-window-list nil nil t))
    (duet-transcript-fill window)))

(defun duet-transcript--note (message &optional how)
  "Note that MESSAGE is to be brought up to date, HOW: `append' or `redraw'."
  (let ((before (gethash message duet-transcript--how)))
    (unless before (push message duet-transcript--dirty))
    (puthash message (if (eq before 'redraw) 'redraw (or how 'append))
             duet-transcript--how)
    (duet-transcript--soon)))

(defun duet-transcript--soon (&optional delay)
  "Bring the buffer up to date in DELAY seconds, or `duet-transcript-delay'."
  (unless duet-transcript--timer
    (setq duet-transcript--timer
          (run-at-time (or delay duet-transcript-delay) nil
                       (let ((buffer (current-buffer)))
                         (lambda ()
                           (when (buffer-live-p buffer)
                             (with-current-buffer buffer
                               (setq duet-transcript--timer nil)
                               (duet-log-guard "Transcript"
                                 (duet-transcript--work))))))))))

(defun duet-transcript-flush ()
  "Bring the buffer up to date now, whatever time it takes."
  (while (progn (setq duet-transcript--next 0)
                (duet-transcript--work))))

(defun duet-transcript--work ()
  "Bring the buffer up to date, for a short time at most.
Return non-nil if something is left to do; a timer goes on with it.
A key that waits ends it, too, when there was some progress."
  (let* ((start (float-time))
         (end (+ start duet-transcript--slice))
         (more t))
    (cl-flet ((more-p () (setq more (and (< (float-time) end) (not (input-pending-p))))))
      ;; To draw what changes costs Emacs more than to change it.  So while there is
      ;; more to do than time for it, what comes in is shown no more often than else.
      (when (and duet-transcript--dirty (>= start duet-transcript--next))
        (let ((work (nreverse duet-transcript--dirty)))
          (setq duet-transcript--dirty nil)
          (while (and work more)
            (let* ((message (pop work))
                   (how (gethash message duet-transcript--how)))
              (remhash message duet-transcript--how)
              (duet-transcript--update message how)
              (more-p)))
          (setq duet-transcript--dirty (nconc duet-transcript--dirty (nreverse work))
                duet-transcript--next (if duet-transcript--dirty 0
                                        (+ start duet-transcript-delay))
                more t)))
      (while (and duet-transcript--markup more)
        (unless (duet-block-scan (car duet-transcript--markup))
          (pop duet-transcript--markup))
        (more-p)))
    (duet-markup-in-sight)
    (duet-transcript-follow)
    (cond
     ((or (duet-code-work end) duet-transcript--markup)
      (duet-transcript--soon duet-transcript--pause)
      t)
     (duet-transcript--dirty
      (duet-transcript--soon (max duet-transcript--pause (- duet-transcript--next start)))
      t))))

(defun duet-transcript--update (message how)
  "Bring the section of MESSAGE up to date, HOW: `append' or `redraw'."
  (let ((section (duet-section-get (duet-message-key message))))
    (cond
     ((not (eq message (duet-session-message duet-session (duet-message-key message)))))
     ((null section) (duet-transcript--insert message))
     ((duet-render-streams-p message)
      (duet-transcript--stream section message how))
     (t
      (setf (duet-section-summary section) (duet-render-summary message))
      (duet-section-redraw section (duet-render message))))))

(defun duet-transcript--stream (section message how)
  "Add to SECTION what MESSAGE has gained; if HOW is `redraw' look at all of it."
  (let* ((shown (duet-section-shown section))
         (tail (duet-message-tail message shown))
         (thinking (eq (duet-message-kind message) 'thinking)))
    (unless (string-empty-p tail)
      (setf (duet-section-shown section) (+ shown (length tail)))
      (setq tail (duet-render-prose tail (save-excursion
                                           (goto-char (duet-section-end section))
                                           (- (point) (line-beginning-position)))))
      (when thinking
        (setq tail (propertize tail 'face 'duet-thinking)))
      (duet-section-append section (duet-render-below message tail)))
    (when (and (eq how 'redraw)
               (or thinking
                   (not (string= (duet-render-prose (duet-message-text message))
                                 (buffer-substring-no-properties
                                  (duet-section-beg section) (duet-section-end section))))))
      (duet-section-redraw section (duet-render message))
      (setf (duet-section-shown section) (duet-message-size message)
            (duet-section-blocks section) nil))
    (duet-section-hide-blank section)
    (unless thinking (duet-transcript--mark-up section))))

(defun duet-transcript--insert (message &optional before)
  "Insert a section for MESSAGE, in front of the section BEFORE.
Without BEFORE it goes where the model has it.  Return it."
  (let ((section (duet-section-insert
                  (duet-message-key message) message (duet-render message)
                  (or before
                      (duet-transcript--section-after message)
                      (duet-transcript--tail)))))
    (setf (duet-section-shown section) (duet-message-size message))
    (when (duet-render-streams-p message)
      (duet-section-hide-blank section))
    (setf (duet-section-summary section) (duet-render-summary message))
    (when (duet-render-folded-p message)
      (duet-section-fold-up section))
    (when (eq (duet-message-kind message) 'text)
      (duet-transcript--mark-up section))
    section))

(defun duet-transcript--reorder (messages)
  "Move the sections of MESSAGES to where the model has MESSAGES.
Point stays in the section that it is in, in each window."
  (let* ((shown (cl-remove-if-not (lambda (message)
                                    (duet-section-get (duet-message-key message)))
                                  messages))
         (sections (mapcar (lambda (message) (duet-section-get (duet-message-key message)))
                           shown))
         (place (lambda (point)
                  (when-let ((section (car (memq (duet-section-at point) sections))))
                    (cons (duet-section-key section) (- point (duet-section-beg section))))))
         (find (lambda (place) (+ (duet-section-beg (duet-section-get (car place)))
                                  (cdr place))))
         (own (funcall place (point)))
         (points (mapcar (lambda (window)
                           (cons window (funcall place (window-point window))))
                         (get-buffer-window-list nil nil t)))
         (folded (cl-remove-if-not #'duet-section-folded-p sections)))
    (unless (or (null (cdr sections))
                (apply #'< (mapcar #'duet-section-beg sections)))
      (mapc #'duet-section-delete sections)
      (mapc #'duet-transcript--insert shown)
      (dolist (section folded)
        (duet-section-fold-up (duet-section-get (duet-section-key section))))
      (when own (goto-char (funcall find own)))
      (pcase-dolist (`(,window . ,place) points)
        (when place (set-window-point window (funcall find place)))))))

(defun duet-transcript--section-after (message)
  "Return the section of what follows MESSAGE, the next that has one, or nil."
  (let ((section nil))
    (cl-loop for other in (duet-session-order duet-session)
             until (eq other message)
             do (setq section (or (duet-section-get (duet-message-key other)) section)))
    section))

(defun duet-transcript--mark-up (section)
  "Have SECTION looked at for blocks of code soon."
  (unless (memq section duet-transcript--markup)
    (setq duet-transcript--markup (nconc duet-transcript--markup (list section)))
    (duet-transcript--soon)))

(provide 'duet-transcript-update)
;;; duet-transcript-update.el ends here
