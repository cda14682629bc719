;;; duet-triggers-try.el --- What triggers would do  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-triggers-test' asks the server what each trigger would do for an event that
;; somebody makes up.  Nothing is done.

;;; Code:

(require 'cl-lib)
(require 'duet-connection)
(require 'duet-look)
(require 'duet-remote)
(require 'duet-triggers)
(require 'duet-visible)

(defconst duet-triggers--events
  '(("run" "queued" "starting" "running" "waiting_input" "completed" "failed" "timed_out"
     "cancelled" "interrupted")
    ("approval" "requested" "resolved")
    ("cron" "fired")
    ("file" "create" "modify" "delete"))
  "The types of events: what is in front of the dot, and behind it.")

(defun duet-triggers--source (type)
  "Return the source of events of TYPE."
  (pcase (car (split-string type "\\."))
    ("cron" "schedule") ("file" "watch") (kind kind)))

;;;###autoload
(defun duet-triggers-test (type payload)
  "Show what each trigger would do for an event of TYPE with PAYLOAD; none does it.
PAYLOAD is a JSON object: what the event has besides, such as
{\"path\": \"main.go\"}.  It may be empty."
  (interactive
   (list (completing-read "Type of the event: "
                          (cl-loop for (kind . names) in duet-triggers--events
                                   append (mapcar (lambda (name) (concat kind "." name)) names)))
         (read-string "What it has besides, as JSON (nothing: RET): ")))
  (when (string-blank-p type) (user-error "An event has a type"))
  (let ((connection (duet-connection-here))
        (object (and (not (string-blank-p payload))
                     (condition-case nil
                         (json-parse-string payload :object-type 'plist :null-object nil
                                            :false-object :json-false)
                       (error (user-error "That is not JSON: %s" payload))))))
    (duet-connection-request
     connection 'automation.test
     `(:type ,type :source ,(duet-triggers--source type) ,@(and object (list :payload object)))
     :success-fn (lambda (result) (duet-triggers--tried connection type result)))))

(defun duet-triggers--tried (connection type result)
  "Show RESULT: what the triggers of CONNECTION would do for an event of TYPE."
  (let ((rules (duet-get-objects result :rules)))
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
                    (propertize (duet-visible-line (or (duet-get-string rule :ruleId) ""))
                                'face 'bold)
                    "  "
                    (if fits (duet-triggers--action (duet-get rule :does))
                      (propertize (duet-visible-line (or (duet-get-string rule :why)
                                                         "is not for it"))
                                  'face 'duet-dim))
                    "\n")))))))

(defun duet-triggers--fits-p (rule)
  "Return non-nil if RULE, the outcome of a test, fits its event."
  (eq (duet-get rule :fits) t))

(provide 'duet-triggers-try)
;;; duet-triggers-try.el ends here
