;;; duet-notify.el --- Desktop notifications  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A desktop notification shows that an agent waits, or that a long turn has ended,
;; while the user is in another window.  That needs D-Bus, and an Emacs that knows
;; that it has no focus.  Nothing is shown if Emacs has the focus, or cannot know, as
;; in most terminals.
;;
;; The calls to the desktop are asynchronous.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-connection)
(require 'duet-approval)

(declare-function dbus-call-method-asynchronously "dbus"
                  (bus service path interface method handler &rest args))
(declare-function dbus-register-signal "dbus"
                  (bus service path interface signal handler &rest args))
(declare-function duet-approvals-go-to "duet-approvals" (approval connection session))
(declare-function duet-transcript-show "duet-transcript" (connection session))
(defvar dbus-debug)

(defcustom duet-notify t
  "Whether to notify of questions and ended turns while Emacs has no focus."
  :type '(choice (const :tag "Questions, and the ends of long turns" t)
                 (const :tag "Questions" approvals)
                 (const :tag "Nothing" nil))
  :group 'duet)

(defcustom duet-notify-long-turn 30
  "Minimum duration of a turn, in seconds, for a notification of its end."
  :type 'number
  :group 'duet)

(defcustom duet-notify-function #'duet-notify-desktop
  "Function that shows a notification.
It is called with a title, a text, and a function to call when the user
clicks on it; it must return at once.  It may return a function that
withdraws the notification.  Duet calls that once the question is answered."
  :type 'function
  :group 'duet)

(defvar duet-notify--asked (make-hash-table :test #'equal)
  "The ids of notified questions.
The values are functions that withdraw the notification, or t.")
(defvar duet-notify--running (make-hash-table :test #'equal)
  "The times when turns were first seen active, in seconds since the epoch, by id.")
(defvar duet-notify--actions nil
  "The actions for clicks: (ID . FUNCTION), the latest first.")
(defvar duet-notify--listening nil
  "Non-nil if the handler of clicks is registered.")

(defun duet-notify--frames ()
  "Return the frames that the user may see, without the initial one of a daemon."
  (cl-remove "initial_terminal" (frame-list)
             :key (lambda (frame) (terminal-name frame))
             :test #'equal))

(defun duet-notify-unseen-p ()
  "Return non-nil if no frame of Emacs has the focus, as far as Emacs knows.
Some terminals do not report the focus.  A frame there counts as focused if
no other frame reports its focus, or if it got the last key."
  (let* ((frames (duet-notify--frames))
         (states (mapcar #'frame-focus-state frames)))
    (cond
     ((null frames) (and (daemonp) t))
     ((memq t states) nil)
     (t (and (memq nil states)
             (not (and (memq last-event-frame frames)
                       (eq (frame-focus-state last-event-frame) 'unknown))))))))

(defun duet-notify--show (title text action)
  "Show TITLE and TEXT if Emacs has no focus; a click calls ACTION.
Return the value of `duet-notify-function'."
  (when (duet-notify-unseen-p)
    (duet-log-guard "Notification"
      (funcall duet-notify-function title text action))))

(defun duet-notify--observe (model kind session object _extra)
  "Notify of a change of MODEL if it needs that: its KIND, SESSION and OBJECT."
  (when duet-notify
    (pcase kind
      ('approval
       (let ((id (duet-approval-id object)))
         (unless (or (gethash id duet-notify--asked)
                     (duet-approval-sending-p object))
           (puthash id t duet-notify--asked)
          ;; The server sends open questions again at each start.
           (unless (duet-get (duet-approval-data object) :replayed)
             (when-let ((back (duet-notify--show
                               (if (duet-approval-question-p object)
                                   "An agent has a question"
                                 "An agent asks for permission")
                               (concat (duet-approval-name object)
                                       (if session
                                           (format "\n%s" (duet-session-label
                                                             session (duet-approval-turn-number object)))
                                         "")
                                       (duet-notify--where model))
                               (lambda () (duet-notify--visit object)))))
               (puthash id back duet-notify--asked))))))
      ('approval-resolved
       (let ((back (gethash (duet-approval-id object) duet-notify--asked)))
         (remhash (duet-approval-id object) duet-notify--asked)
         (when (functionp back)
           (duet-log-guard "Notification" (funcall back)))))
      ('trigger
       (when (equal (duet-get-string object :status) "notified")
         (duet-notify--show
          (duet-visible-line (or (duet-get-string object :channel)
                                 (duet-get-string object :trigger) "A trigger"))
          (concat (duet-visible (or (duet-get-string object :message) ""))
                  (duet-notify--where model))
          #'duet-notify--raise)))
      ('session
       (when (eq duet-notify t)
         (dolist (turn (seq-take (duet-session-turns session) 3))
           (duet-notify--turn model session turn)))))))

(defun duet-notify--where (model)
  "Return a line with the project of MODEL if it is on a host, or an empty string."
  (if (and model (duet-host-of (duet-model-root model)))
      (concat "\n" (duet-visible-line (duet-remote-project (duet-model-root model))))
    ""))

(defun duet-notify--turn (model session turn)
  "Notify of the end of TURN of SESSION of MODEL, if it took long."
  (let* ((id (duet-turn-id turn))
         (state (duet-turn-state turn))
         (since (gethash id duet-notify--running)))
    (cond
     ((memq state duet-turn-active-states)
      (unless since (puthash id (float-time) duet-notify--running)))
     ((and since (memq state duet-turn-ended-states))
      (remhash id duet-notify--running)
      (when (and (>= (- (float-time) since) duet-notify-long-turn)
                 ;; The user caused that, and knows.
                 (not (memq state '(interrupted cancelled))))
        (duet-notify--show
         (if (eq state 'completed) "An agent is done" "An agent has failed")
         (concat (duet-session-label session (duet-turn-number turn))
                 (duet-notify--where model)
                 (if (duet-turn-error turn) (format "\n%s" (duet-visible (duet-turn-error turn))) ""))
         (lambda ()
           (duet-notify--raise)
           (when-let ((connection (duet-connection-of model)))
             (duet-transcript-show connection session)))))))))

(defun duet-notify--raise ()
  "Raise Emacs: a graphical frame, the selected one if it is graphical."
  (let ((frame (cl-find-if #'display-graphic-p (cons (selected-frame) (frame-list)))))
    (cond
     (frame (select-frame-set-input-focus frame))
     ((and (null (duet-notify--frames)) (getenv "DISPLAY"))
      (select-frame-set-input-focus (make-frame-on-display (getenv "DISPLAY")))))))

(defun duet-notify--visit (approval)
  "Raise Emacs, and go to APPROVAL."
  (duet-notify--raise)
  (let* ((connection (duet-approval-connection approval))
         (session (and connection (duet-approval-session approval connection))))
    (if session
        (duet-approvals-go-to approval connection session)
      (message "%s: already answered" (duet-approval-name approval)))))

(duet-model-add-observer #'duet-notify--observe)


;;; The desktop

(defconst duet-notify--service "org.freedesktop.Notifications"
  "The name of the service, and of its interface.")
(defconst duet-notify--path "/org/freedesktop/Notifications"
  "The path of the service's object.")

(defun duet-notify-desktop (title text action)
  "Show TITLE and TEXT as a desktop notification; a click on it calls ACTION.
Return a function that withdraws it.  Without D-Bus, do nothing and return nil."
  (when (and (featurep 'dbusbind) (getenv "DBUS_SESSION_BUS_ADDRESS")
             (require 'dbus nil t))
    (condition-case err
        (let* ((shown nil)
               (taken nil)
               (close (lambda ()
                        (setq taken t)
                        (when shown (duet-notify--close shown)))))
          (duet-notify--listen)
          (dbus-call-method-asynchronously
           :session duet-notify--service duet-notify--path duet-notify--service "Notify"
           (lambda (id &rest _)
             (setq shown id)
             (if taken (duet-notify--close id)
               (push (cons id action) duet-notify--actions)
               (when-let ((rest (nthcdr 20 duet-notify--actions)))
                 (setcdr rest nil))))
           :string "Emacs" :uint32 0 :string "emacs"
           :string title :string (duet-notify--escape text)
           '(:array :string "default" :string "Show")
           '(:array :signature "{sv}") :int32 -1)
          close)
      (dbus-error (duet-log "No notification: %s" (error-message-string err))
                  nil))))

(defun duet-notify--close (id)
  "Close the desktop notification ID."
  (setq duet-notify--actions (assq-delete-all id duet-notify--actions))
  (condition-case err
      (dbus-call-method-asynchronously
       :session duet-notify--service duet-notify--path duet-notify--service
       "CloseNotification" nil :uint32 id)
    (dbus-error (duet-log "No notification: %s" (error-message-string err)))))

(defun duet-notify--escape (text)
  "Return TEXT with its markup characters escaped."
  (replace-regexp-in-string
   "[<>&]" (lambda (sign) (pcase sign ("<" "&lt;") (">" "&gt;") (_ "&amp;"))) text))

(defun duet-notify--listen ()
  "Register the handler of clicks on notifications."
  (unless duet-notify--listening
    (dbus-register-signal :session duet-notify--service duet-notify--path
                          duet-notify--service "ActionInvoked" #'duet-notify--clicked)
    (setq duet-notify--listening t)))

(defun duet-notify--clicked (id &rest _)
  "Run the action of the notification ID, on which the user clicked."
  (when-let ((action (alist-get id duet-notify--actions)))
    ;; Some desktops do not close it.
    (duet-notify--close id)
    (funcall action)))

(provide 'duet-notify)
;;; duet-notify.el ends here
