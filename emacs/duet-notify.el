;;; duet-notify.el --- Notifications of the desktop  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A notification of the desktop says that an agent waits, or that a long turn has
;; ended, while the user is in another window.  That needs D-Bus, and an Emacs that
;; knows that it has no focus: where it has it, or cannot know, as in most terminals,
;; nothing is shown.
;;
;; The desktop is asked without waiting for its answer.

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
  "Whether the desktop shows questions and ends while Emacs has no focus."
  :type '(choice (const :tag "Questions, and the ends of long turns" t)
                 (const :tag "Questions" approvals)
                 (const :tag "Nothing" nil))
  :group 'duet)

(defcustom duet-notify-long-run 30
  "How many seconds a turn must have taken for its end to be shown."
  :type 'number
  :group 'duet)

(defcustom duet-notify-function #'duet-notify-desktop
  "Function that shows a notification.
It is called with a title, a text, and a function to call when the user
clicks on it; it must return at once.  It may return a function that takes
the notification back, which is called when a question has been answered."
  :type 'function
  :group 'duet)

(defvar duet-notify--asked (make-hash-table :test #'equal)
  "The ids of questions that were shown.
The values are functions that take the notification back, or t.")
(defvar duet-notify--running (make-hash-table :test #'equal)
  "When runs were first seen at work, in seconds since the epoch, by their ids.")
(defvar duet-notify--actions nil
  "What to do for a click: (ID . FUNCTION), the latest first.")
(defvar duet-notify--listening nil
  "Whether clicks are listened to.")

(defun duet-notify--frames ()
  "Return the frames that a user may see: a daemon has another one."
  (cl-remove "initial_terminal" (frame-list)
             :key (lambda (frame) (terminal-name frame))
             :test #'equal))

(defun duet-notify-unseen-p ()
  "Return non-nil if no frame of Emacs has the focus, as far as it knows.
A terminal that does not report it counts as looked at if there is nothing but
such terminals, or if the last key was typed there."
  (let* ((frames (duet-notify--frames))
         (states (mapcar #'frame-focus-state frames)))
    (cond
     ((null frames) (and (daemonp) t))
     ((memq t states) nil)
     (t (and (memq nil states)
             (not (and (memq last-event-frame frames)
                       (eq (frame-focus-state last-event-frame) 'unknown))))))))

(defun duet-notify--show (title text action)
  "Show TITLE and TEXT if Emacs has no focus; ACTION is for a click.
Return what `duet-notify-function' does."
  (when (duet-notify-unseen-p)
    (duet-log-guard "Notification"
      (funcall duet-notify-function title text action))))

(defun duet-notify--observe (model kind session object _extra)
  "Tell of a change of MODEL, if it is worth it: its KIND, SESSION and OBJECT."
  (when duet-notify
    (pcase kind
      ('approval
       (let ((id (duet-approval-id object)))
         (unless (or (gethash id duet-notify--asked)
                     (duet-approval-sending-p object))
           (puthash id t duet-notify--asked)
           ;; What has been waiting since before is shown again at each start.
           (unless (duet-get (duet-approval-data object) :replayed)
             (when-let ((back (duet-notify--show
                               (if (duet-approval-question-p object)
                                   "An agent has a question"
                                 "An agent wants leave")
                               (concat (duet-approval-name object)
                                       (if session
                                           (format "\n%s" (duet-session-name session))
                                         ""))
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
          (duet-visible (or (duet-get-string object :message) ""))
          #'duet-notify--raise)))
      ('session
       (when (eq duet-notify t)
         (dolist (run (seq-take (duet-session-runs session) 3))
           (duet-notify--run model session run)))))))

(defun duet-notify--run (model session run)
  "Tell of the end of RUN of SESSION of MODEL, if it took long."
  (let* ((id (duet-run-id run))
         (state (duet-run-state run))
         (since (gethash id duet-notify--running)))
    (cond
     ((memq state duet-run-active-states)
      (unless since (puthash id (float-time) duet-notify--running)))
     ((and since (memq state duet-run-ended-states))
      (remhash id duet-notify--running)
      (when (and (>= (- (float-time) since) duet-notify-long-run)
                 ;; A user did that, and knows.
                 (not (memq state '(interrupted cancelled))))
        (duet-notify--show
         (if (eq state 'completed) "An agent is done" "An agent has failed")
         (concat (duet-session-name session)
                 (if (duet-run-error run) (format "\n%s" (duet-visible (duet-run-error run))) ""))
         (lambda ()
           (duet-notify--raise)
           (when-let ((connection (duet-connection-of model)))
             (duet-transcript-show connection session)))))))))

(defun duet-notify--raise ()
  "Bring Emacs to the front: a frame on the desktop, the selected one if it is."
  (let ((frame (cl-find-if #'display-graphic-p (cons (selected-frame) (frame-list)))))
    (cond
     (frame (select-frame-set-input-focus frame))
     ((and (null (duet-notify--frames)) (getenv "DISPLAY"))
      (select-frame-set-input-focus (make-frame-on-display (getenv "DISPLAY")))))))

(defun duet-notify--visit (approval)
  "Bring Emacs to the front, and go to APPROVAL."
  (duet-notify--raise)
  (let* ((connection (duet-approval-connection approval))
         (session (and connection (duet-approval-session approval connection))))
    (if session
        (duet-approvals-go-to approval connection session)
      (message "%s: already answered" (duet-approval-name approval)))))

(duet-model-add-observer #'duet-notify--observe)


;;; The desktop

(defconst duet-notify--service "org.freedesktop.Notifications"
  "The name of the service, which is that of its interface, too.")
(defconst duet-notify--path "/org/freedesktop/Notifications"
  "Where the service has its object.")

(defun duet-notify-desktop (title text action)
  "Have the desktop show TITLE and TEXT; call ACTION for a click on it.
Return a function that takes it back.  Without D-Bus nothing happens."
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
  "Have the desktop show the notification ID no longer."
  (setq duet-notify--actions (assq-delete-all id duet-notify--actions))
  (condition-case err
      (dbus-call-method-asynchronously
       :session duet-notify--service duet-notify--path duet-notify--service
       "CloseNotification" nil :uint32 id)
    (dbus-error (duet-log "No notification: %s" (error-message-string err)))))

(defun duet-notify--escape (text)
  "Return TEXT without what the desktop would take for markup."
  (replace-regexp-in-string
   "[<>&]" (lambda (sign) (pcase sign ("<" "&lt;") (">" "&gt;") (_ "&amp;"))) text))

(defun duet-notify--listen ()
  "Listen to clicks on notifications."
  (unless duet-notify--listening
    (dbus-register-signal :session duet-notify--service duet-notify--path
                          duet-notify--service "ActionInvoked" #'duet-notify--clicked)
    (setq duet-notify--listening t)))

(defun duet-notify--clicked (id &rest _)
  "Do what is to be done for a click on the notification ID."
  (when-let ((action (alist-get id duet-notify--actions)))
    ;; Some desktops leave it there.
    (duet-notify--close id)
    (funcall action)))

(provide 'duet-notify)
;;; duet-notify.el ends here
