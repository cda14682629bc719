;;; duet-notify-test.el --- Tests of notifications  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-approvals)
(require 'duet-notify)

(defvar duet-notify-test--shown nil
  "Notifications that were shown, the last first: (TITLE TEXT ACTION).")

(defmacro duet-notify-test-with-project (name focus &rest body)
  "Run BODY in a project, with NAME bound to its connection.
FOCUS is the focus state of all frames."
  (declare (indent 2) (debug (symbolp form body)))
  `(duet-test-with-project ,name
     (let ((duet-notify-test--shown nil)
           (duet-notify-function (lambda (&rest arguments)
                                   (push arguments duet-notify-test--shown)))
           (duet-notify-long-turn 0)
           (global-mode-string nil))
       (duet-model-add-observer #'duet-notify--observe)
       (cl-letf (((symbol-function 'frame-focus-state) (lambda (&rest _) ,focus))
                 ((symbol-function 'terminal-name) (lambda (&rest _) "/dev/tty7")))
         ,@body))))

(defun duet-notify-test--titles ()
  "Return the titles of the notifications, in order."
  (reverse (mapcar #'car duet-notify-test--shown)))

(defun duet-notify-test--turn (connection)
  "Run a turn of the agent of CONNECTION that asks a question and ends."
  (let* ((session (duet-test-launch connection "hello"))
         (approval (duet-test-wait-for (car (duet-session-approvals session)))))
    (duet-test-request connection 'approval.decide
                       (list :approval (duet-approval-id approval)
                             :decision "approve"))
    (duet-test-wait-for-state session 'completed)))

(ert-deftest duet-notify-test-unfocused ()
  "Without focus, a question and the end of a turn cause one notification each."
  (duet-notify-test-with-project connection nil
    (duet-notify-test--turn connection)
    (duet-test-wait-for (cdr duet-notify-test--shown))
    (should (equal (duet-notify-test--titles) '("An agent asks for permission" "An agent is done")))
    (should (equal (nth 1 (cadr duet-notify-test--shown)) "Write demo.txt\n1.1 hello"))
    ;; A click shows the session.
    (save-window-excursion
      (funcall (nth 2 (car duet-notify-test--shown)))
      (should (derived-mode-p 'duet-transcript-mode)))
    ;; Replayed questions and short turns cause none.
    (setq duet-notify-test--shown nil)
    (let* ((duet-notify-long-turn 1000)
           (session (duet-test-launch connection "quiet")))
      (duet-test-wait-for-state session 'completed)
      (duet-events-apply (duet-connection-model connection)
                        `(:seq 100000 :kind "approval.opened"
                               :turn_uuid ,(duet-session-leaf-id session)
                               :data (:approval "x" :replayed t :type "human_contact")))
      (should-not duet-notify-test--shown))))

(ert-deftest duet-notify-test-focused ()
  "With focus, with unknown focus, or if disabled, there are no notifications."
  (dolist (focus '(t unknown))
    (duet-notify-test-with-project connection focus
      (duet-notify-test--turn connection)
      (should-not duet-notify-test--shown)))
  (duet-notify-test-with-project connection nil
    (let ((duet-notify nil))
      (duet-notify-test--turn connection)
      (should-not duet-notify-test--shown))
    (let ((duet-notify 'approvals))
      (duet-notify-test--turn connection)
      (should (equal (duet-notify-test--titles) '("An agent asks for permission"))))
    (should (equal (duet-test-log) ""))))

(ert-deftest duet-notify-test-click ()
  "A click shows the question of the notification, not an older one."
  (duet-notify-test-with-project connection nil
    (let* ((back nil)
           (duet-notify-function (lambda (title _text action)
                                   (push (list title action) duet-notify-test--shown)
                                   (lambda () (push title back))))
           (ask (lambda ()
                  (let ((session (duet-test-launch connection "hello")))
                    (car (duet-test-wait-for (duet-session-approvals session))))))
           (approvals (list (funcall ask) (funcall ask)))
           (shown (duet-test-wait-for (and (length= duet-notify-test--shown 2)
                                           duet-notify-test--shown))))
      (save-window-excursion
        (pcase-dolist (`(,approval . (,_title ,action))
                       (cl-mapcar #'cons approvals (reverse shown)))
          (with-temp-buffer (funcall action))
          (duet-test-look)
          (should (eq (duet-approval-here) approval))
          (should (get-text-property (point) 'duet-approval)))
        ;; An answered question is not shown any more.
        (call-interactively #'duet-approval-allow)
        (duet-test-wait-for back)
        (should (length= back 1))
        (duet-test-listening ; the end of the turn may be reported meanwhile, too
         (funcall (nth 1 (car shown)))
         (should (duet-test-heard "already answered")))))))

(ert-deftest duet-notify-test-frames ()
  "A terminal with unknown focus has it if the last input was in its frame."
  (let (states last)
    (cl-letf (((symbol-function 'duet-notify--frames) (lambda () (mapcar #'car states)))
              ((symbol-function 'frame-focus-state)
               (lambda (&optional frame) (alist-get frame states)))
              ((symbol-function 'daemonp) (lambda () "daemon")))
      (pcase-dolist (`(,expected ,now . ,frames)
                     '((t nil)                                   ; no frame at all
                       (nil a (a . t)) (t a (a . nil))
                       (nil a (a . unknown)) (nil gone (a . unknown))
                       (nil a (a . nil) (b . t)) (t a (a . nil) (b . nil))
                       (t a (a . nil) (b . unknown))
                       (nil b (a . nil) (b . unknown))
                       (nil b (a . t) (b . unknown))))
        (setq states frames last now)
        (let ((last-event-frame last))
          (should (equal (list now frames (and (duet-notify-unseen-p) t))
                         (list now frames expected))))))))

(ert-deftest duet-notify-test-no-desktop ()
  "Without D-Bus, or with a missing bus, nothing happens."
  (dolist (address '(nil "unix:path=/nowhere/at/all"))
    (let ((process-environment (cons (if address
                                         (concat "DBUS_SESSION_BUS_ADDRESS=" address)
                                       "DBUS_SESSION_BUS_ADDRESS")
                                     process-environment))
          (duet-notify--listening nil))
      (duet-notify-desktop "Title" "Text" #'ignore))))

(ert-deftest duet-notify-test-escape ()
  "Text that a desktop would take for markup is escaped."
  (should (equal (duet-notify--escape "a < b && c > d") "a &lt; b &amp;&amp; c &gt; d")))

(provide 'duet-notify-test)
;;; duet-notify-test.el ends here
