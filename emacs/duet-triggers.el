;;; duet-triggers.el --- Triggers of the configuration, and their log  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A trigger of the configuration begins a session, notifies people, or calls an
;; address when an event happens.  `duet-triggers' lists them with the times of their
;; last and next actions, and switches them on and off.  `duet-triggers-log' shows past
;; actions; `duet-triggers-test' shows the actions for an event.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'tabulated-list)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-header)
(require 'duet-look)
(require 'duet-menu-bar)
(require 'duet-remote)
(require 'duet-sessions)
(require 'duet-transcript)
(require 'duet-visible)

(declare-function duet "duet" (&optional directory))

;;; Triggers

(defvar-local duet-triggers--all-on t
  "Non-nil unless all triggers are switched off.")
(defvar-local duet-triggers--of nil
  "The id of the trigger whose log the buffer shows; nil means all triggers.")

(defun duet-triggers--keymap (open open-mouse refresh)
  "Return a keymap for a list; OPEN, OPEN-MOUSE and REFRESH are its commands."
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map tabulated-list-mode-map)
    (define-key map (kbd "RET") open)
    (define-key map [mouse-2] open-mouse)
    (define-key map [follow-link] 'mouse-face)
    (define-key map "g" refresh)
    (define-key map "j" #'duet-approval-next)
    (define-key map "l" #'duet)
    (define-key map "?" #'duet-menu-or-help)
    map))

(defvar duet-triggers-mode-map
  (let ((map (duet-triggers--keymap #'duet-triggers-log #'duet-triggers-log-mouse
                                    #'duet-triggers-refresh)))
    (define-key map "x" #'duet-triggers-switch)
    (define-key map "F" #'duet-triggers-test)
    (define-key map (kbd "C-o") #'duet-triggers-display)
    map)
  "Keymap of `duet-triggers-mode'.")

(define-derived-mode duet-triggers-mode tabulated-list-mode "Duet-Triggers"
  "Major mode of the list of a project's triggers.

\\{duet-triggers-mode-map}"
  (setq tabulated-list-format [("" 3 t) ("Trigger" 11 t) ("When" 17 t) ("Does" 24 nil)
                               ("Last" 4 nil) ("Next" 6 nil)]
        tabulated-list-padding 1
        mode-line-process '(:eval (if duet-triggers--all-on ""
                                    (concat " " (propertize "[all off]" 'face 'duet-attention)))))
  (tabulated-list-init-header))

(duet-menu-bar-add duet-triggers-mode-map
                   '(["Switch On or Off" duet-triggers-switch]
                     ["Past Actions" duet-triggers-log]
                     ["Test with an Event…" duet-triggers-test]
                     ["Open Its Definition" duet-triggers-display]
                     ["Refresh" duet-triggers-refresh]))

(defun duet-triggers--buffer (connection mode kind refresh)
  "Return the buffer of KIND for CONNECTION, in MODE.
Call REFRESH in the buffer after each action of a trigger."
  (duet-connection-buffer connection kind mode
                          (lambda (_model kind &rest _)
                            (when (eq kind 'trigger) (funcall refresh)))))

(defun duet-triggers--print (entries hint)
  "Show ENTRIES in the buffer, or HINT if there are none."
  (setq tabulated-list-entries entries)
  (tabulated-list-print t)
  (unless entries
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert "\n " hint "\n")
      (duet-sessions-fill-hint)
      (goto-char (point-min))))
  (restore-buffer-modified-p nil)
  (force-mode-line-update))


;;;; The list

;;;###autoload
(defun duet-triggers ()
  "List the triggers of the current project."
  (interactive)
  (let ((buffer (duet-triggers--buffer (duet-connection-here) 'duet-triggers-mode
                                       "triggers" #'duet-triggers-refresh)))
    (with-current-buffer buffer (duet-triggers-refresh))
    (pop-to-buffer buffer)))

(defun duet-triggers-refresh ()
  "Reload the triggers from the server."
  (interactive (duet-only-in 'duet-triggers-mode) duet-triggers-mode)
  (duet-connection-request
   duet-connection 'trigger.list nil
   :success-fn (duet-latest #'duet-triggers--show)))

(defun duet-triggers--show (status)
  "Show the triggers in STATUS, the server's reply."
  (setq duet-triggers--all-on (eq (duet-get status :enabled) t))
  (let ((rules (duet-get-objects status :triggers))
        (problem (duet-get-string status :problem)))
    (duet-triggers--print
     (duet-triggers--fitted
      (mapcar (lambda (rule) (list rule (duet-triggers--columns rule))) rules))
     (concat "No triggers are configured.  Add [[triggers]] to .duet.toml or to your own config.toml."
             (if problem (concat "\n " (duet-visible problem)) "")))
    ;; Below the list are a remark if all triggers are off, and the problem.
    (when rules
      (let ((inhibit-read-only t))
        (save-excursion
          (goto-char (point-max))
          (unless duet-triggers--all-on
            (insert "\n " (propertize (substitute-command-keys
                                       "All triggers are off; \\<duet-triggers-mode-map>\\[universal-argument] \\[duet-triggers-switch] switches them on.")
                                      'face 'duet-running)
                    "\n"))
          (when problem
            (insert "\n " (propertize (duet-visible problem) 'face 'duet-failed) "\n"))))
      (restore-buffer-modified-p nil))))

(defun duet-triggers--fitted (entries)
  "Return ENTRIES of the list, and fit its columns to them.
Names and times get at most a quarter of a wide window each, the column of
actions the rest."
  (let ((most (/ (duet-header-room) 4)))
    (setq tabulated-list-format (copy-tree tabulated-list-format t))
    (pcase-dolist (`(,number . ,least) '((1 . 11) (2 . 17)))
      (let ((column (aref tabulated-list-format number)))
        (setf (nth 1 column)
              (min (max least most)
                   (apply #'max (string-width (car column))
                          (mapcar (lambda (entry) (string-width (aref (cadr entry) number)))
                                  entries))))))
    (duet-sessions-fit 3 10)
    (tabulated-list-init-header)
    entries))

(defun duet-triggers--columns (rule)
  "Return the columns of RULE, a trigger from the server's reply."
  (let ((on (and (eq (duet-get rule :enabled) t) duet-triggers--all-on)))
    (vector (propertize (if (eq (duet-get rule :enabled) t) "on" "off")
                        'face (if on 'duet-done 'duet-dim))
            (propertize (duet-visible-line (or (duet-get-string rule :trigger) ""))
                        'mouse-face 'highlight
                        'help-echo (duet-triggers--help rule))
            (duet-visible-line (or (duet-get-string rule :when) ""))
            (concat (if (eq (duet-get rule :requires_approval) t) "asks, then " "")
                    (duet-triggers--action (duet-get rule :action)))
            (duet-sessions--age (duet-get-string rule :last_fired))
            (duet-triggers--until (duet-get-string rule :next_fire)))))

(defun duet-triggers--help (rule)
  "Return the full description of RULE."
  (string-join
   (delq nil (list (when-let ((text (duet-get-string rule :description)))
                     (duet-visible text))
                   (when-let ((cooldown (duet-get-number rule :cooldown_ms)))
                     (and (> cooldown 0)
                          (format "Then it rests for %s" (format-seconds "%hh %mm %ss%z" (/ cooldown 1000)))))
                   (when-let ((file (duet-get-string rule :file)))
                     (format "%s:%s" (duet-visible-line file)
                             (or (duet-get-number rule :line) 1)))))
   "\n"))

(defun duet-triggers--action (action)
  "Return the effect of ACTION, an object, in words."
  (cl-flet ((part (key) (duet-visible-line (or (duet-get-string action key) ""))))
    (pcase (duet-get-string action :type)
      ("agent" (format "%s: %s" (if (duet-get-string action :agent) (part :agent) "agent")
                       (part :prompt)))
      ("notify" (concat "notifies: " (part :message)))
      ("webhook" (concat "sends to " (part :url)))
      (type (duet-visible-line (or type "?"))))))

(defun duet-triggers--until (time)
  "Return the time until TIME in a few characters; empty if TIME is nil."
  (if-let ((at (and time (ignore-errors (date-to-time time)))))
      (let ((seconds (max 0 (- (float-time at) (float-time)))))
        (cond ((< seconds 3600) (format "in %dm" (ceiling seconds 60)))
              ((< seconds 86400) (format "in %dh" (/ seconds 3600)))
              (t (format "in %dd" (/ seconds 86400)))))
    ""))

(defun duet-triggers--at-point ()
  "Return the id of the trigger at point, or nil."
  (duet-get-string (tabulated-list-get-id) :trigger))

(defun duet-triggers-switch (&optional all)
  "Switch the trigger at point on or off; with a prefix argument ALL, all triggers.
The server keeps the setting after a restart."
  (interactive "P" duet-triggers-mode)
  (duet-only-in 'duet-triggers-mode)
  (let* ((rule (and (not all)
                    (or (tabulated-list-get-id) (user-error "There is no trigger here"))))
         (id (and rule (duet-get-string rule :trigger)))
         (on (not (if rule (eq (duet-get rule :enabled) t) duet-triggers--all-on)))
         (buffer (current-buffer)))
    (duet-connection-request
     duet-connection (if on 'trigger.enable 'trigger.disable)
     (and id (list :trigger id))
     :success-fn
     (lambda (_)
       (message "%s"
                (cond (id (format "%s is %s" (duet-visible-line id) (if on "on" "off")))
                      (on "Triggers are on, those that are on one by one")
                      (t "All triggers are off")))
       (when (buffer-live-p buffer)
         (with-current-buffer buffer (duet-triggers-refresh))))
     :error-fn
     (lambda (err) ; the configuration may have changed
       (message "Duet: %s" (duet-connection-error-text err))
       (when (buffer-live-p buffer)
         (with-current-buffer buffer (duet-triggers-refresh)))))))

(defun duet-triggers-display ()
  "Show the place of the trigger at point in the configuration; stay here."
  (interactive nil duet-triggers-mode)
  (let* ((rule (or (tabulated-list-get-id) (user-error "There is no trigger here")))
         (file (or (duet-get-string rule :file)
                   (user-error "Its place in the configuration is unknown")))
         (name (duet-host-visit-name
                (duet-remote-name file (duet-connection-root duet-connection)))))
    (unless (file-readable-p name)
      (user-error "Cannot read %s" (duet-visible-line file)))
    (with-selected-window (display-buffer (find-file-noselect name)
                                          '(nil (inhibit-same-window . t)))
      (goto-char (point-min))
      (forward-line (1- (or (duet-get-number rule :line) 1)))
      (recenter))))


;;;; The log

(defvar duet-triggers-log-mode-map
  (duet-triggers--keymap #'duet-triggers-open #'duet-triggers-open-mouse
                         #'duet-triggers-log-refresh)
  "Keymap of `duet-triggers-log-mode'.")

(define-derived-mode duet-triggers-log-mode tabulated-list-mode "Duet-Triggers-Log"
  "Major mode of the log of triggers, the newest action first.

\\{duet-triggers-log-mode-map}"
  (setq tabulated-list-format [("Age" 4 nil) ("Trigger" 14 t) ("For" 18 t) ("Outcome" 34 nil)]
        tabulated-list-padding 1)
  (tabulated-list-init-header))

(duet-menu-bar-add duet-triggers-log-mode-map
                   '(["Open" duet-triggers-open]
                     ["Refresh" duet-triggers-log-refresh]))

;;;###autoload
(defun duet-triggers-log (&optional trigger)
  "List the actions of TRIGGER, the newest first; the server keeps 500.
In the list of triggers, TRIGGER is the one at point.  Elsewhere, and with a
prefix argument, list the actions of all triggers."
  (interactive (list (and (not current-prefix-arg)
                          (derived-mode-p 'duet-triggers-mode)
                          (duet-triggers--at-point))))
  (let ((buffer (duet-triggers--buffer (duet-connection-here) 'duet-triggers-log-mode
                                       "triggers log" #'duet-triggers-log-refresh)))
    (with-current-buffer buffer
      (setq duet-triggers--of trigger
            mode-line-process (and trigger (concat " [" (duet-visible-line trigger) "]")))
      (duet-triggers-log-refresh))
    (pop-to-buffer buffer)))

(defun duet-triggers-log-mouse (event)
  "List the actions of the trigger at the place of EVENT, a click."
  (interactive "e" duet-triggers-mode)
  (mouse-set-point event)
  (duet-triggers-log (duet-triggers--at-point)))

(defun duet-triggers-log-refresh ()
  "Reload the log from the server."
  (interactive (duet-only-in 'duet-triggers-log-mode) duet-triggers-log-mode)
  (duet-connection-request
   duet-connection 'trigger.log
   `(:limit 200 ,@(and duet-triggers--of (list :trigger duet-triggers--of)))
   :success-fn (duet-latest
                (lambda (result)
                  (duet-sessions-fit 3 20)
                  (duet-triggers--print
                   (mapcar (lambda (execution)
                             (list execution (duet-triggers--execution execution)))
                           (duet-get-objects result :executions))
                   (if duet-triggers--of
                       (format "The trigger %s has done nothing yet."
                               (duet-visible-line duet-triggers--of))
                     "No trigger has done anything yet."))))))

(defun duet-triggers--execution (execution)
  "Return the columns of EXECUTION, an action of a trigger."
  (let ((status (or (duet-get-string execution :status) "")))
    (vector (duet-sessions--age (duet-get-string execution :time))
            (duet-visible-line (or (duet-get-string execution :trigger) ""))
            (duet-visible-line (or (duet-get-string execution :event_type) ""))
            (concat (propertize (duet-triggers--status status) 'mouse-face 'highlight
                                'face (duet-triggers--status-face status))
                    (if-let ((why (duet-get-string execution :error)))
                        (concat ": " (duet-visible-line why))
                      (let ((does (duet-get execution :does)))
                        (if does (concat "  " (duet-triggers--action does)) "")))))))

(defun duet-triggers--status (status)
  "Return STATUS of an execution in words."
  (pcase status
    ("submitted" "session begun")
    ("notified" "shown")
    ("webhook_sent" "sent")
    ("waiting_approval" "waiting for you")
    ("skipped_no_approver" "no answer")
    ("error" "failed")
    ("unknown_action_type" "unknown action")
    ("depth_limited" "limit of triggers in a row")
    ("rate_limited" "limit of the hour")
    (_ (replace-regexp-in-string "_" " " (duet-visible-line status)))))

(defun duet-triggers--status-face (status)
  "Return the face for STATUS of an execution."
  (pcase status
    ((or "submitted" "notified" "webhook_sent") 'duet-done)
    ((or "waiting_approval" "sending") 'duet-running)
    ((or "denied" "skipped_no_approver") 'duet-dim)
    (_ 'duet-failed)))

(defun duet-triggers-open ()
  "Show the session or the open question of the action at point."
  (interactive nil duet-triggers-log-mode)
  (let* ((execution (or (tabulated-list-get-id) (user-error "There is nothing here")))
         (model (duet-connection-model duet-connection))
         (question (gethash (duet-get-string execution :approval)
                            (duet-model-approvals model)))
         (turn (duet-get-string execution :turn_uuid))
         (session (and turn (duet-connection-session duet-connection turn))))
    (cond
     ((and question session) (duet-approvals-go-to question duet-connection session))
     (session (duet-transcript-show duet-connection session))
     (turn (duet-connection-ask duet-connection turn)
           (user-error "That session is not listed; loading it"))
     (t (user-error "It has no session")))))

(defun duet-triggers-open-mouse (event)
  "Do what `duet-triggers-open' does at the place of EVENT, a click."
  (interactive "e" duet-triggers-log-mode)
  (mouse-set-point event)
  (duet-triggers-open))

;;; Testing events

;; `duet-triggers-test' asks the server for the action of each trigger for an event
;; that the user enters.  The server runs none of them.

(defconst duet-triggers--events
  '(("turn" "queued" "starting" "running" "waiting_input" "completed" "failed" "timed_out"
     "cancelled" "interrupted")
    ("approval" "requested" "resolved")
    ("cron" "fired")
    ("file" "create" "modify" "delete"))
  "The types of events: the part before the dot, and the parts behind it.")

(defun duet-triggers--source (type)
  "Return the source of events of TYPE."
  (pcase (car (split-string type "\\."))
    ("cron" "schedule") ("file" "watch") (kind kind)))

;;;###autoload
(defun duet-triggers-test (type payload)
  "Show the action of each trigger for an event of TYPE with PAYLOAD; run none.
PAYLOAD is a JSON object with the other members of the event, such as
{\"path\": \"main.go\"}.  It may be empty."
  (interactive
   (list (completing-read "Type of the event: "
                          (cl-loop for (kind . names) in duet-triggers--events
                                   append (mapcar (lambda (name) (concat kind "." name)) names)))
         (read-string "Data as JSON (RET for none): ")))
  (when (string-blank-p type) (user-error "An event needs a type"))
  (let ((connection (duet-connection-here))
        (object (and (not (string-blank-p payload))
                     (condition-case nil
                         (json-parse-string payload :object-type 'plist :null-object nil
                                            :false-object :json-false)
                       (error (user-error "That is not JSON: %s" payload))))))
    (duet-connection-request
     connection 'trigger.test
     `(:type ,type :source ,(duet-triggers--source type) ,@(and object (list :payload object)))
     :success-fn (lambda (result) (duet-triggers--tried connection type result)))))

(defun duet-triggers--tried (connection type result)
  "Show RESULT, the actions of CONNECTION's triggers for an event of TYPE."
  (let ((rules (duet-get-objects result :trials)))
    (with-help-window (format "*duet triggers test: %s*"
                              (duet-remote-abbreviate (duet-connection-root connection)))
      (with-current-buffer standard-output
        (insert (format "For an event %s:\n\n" (duet-visible-line type)))
        (unless rules (insert "No triggers are configured.\n"))
        (dolist (rule (cl-stable-sort (append rules nil)
                                      (lambda (a b) (and (duet-triggers--fits-p a)
                                                         (not (duet-triggers--fits-p b))))))
          (let ((fits (duet-triggers--fits-p rule)))
            (insert (duet-look-signed (if fits "✓" "·") (if fits 'duet-done 'duet-dim))
                    (propertize (duet-visible-line (or (duet-get-string rule :trigger) ""))
                                'face 'bold)
                    "  "
                    (if fits (duet-triggers--action (duet-get rule :does))
                      (propertize (duet-visible-line (or (duet-get-string rule :why)
                                                         "is not for it"))
                                  'face 'duet-dim))
                    "\n")))))))

(defun duet-triggers--fits-p (rule)
  "Return non-nil if the trigger in RULE, a result of a test, fits its event."
  (eq (duet-get rule :fits) t))

(provide 'duet-triggers)
;;; duet-triggers.el ends here
