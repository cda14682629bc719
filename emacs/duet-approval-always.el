;;; duet-approval-always.el --- Answers that hold from now on  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A tool that asks for leave may be let run now and from now on, in its session or
;; in the whole project: the server makes a rule of that.  What the rule would be
;; for is said before, and can be changed: a command, or a pattern of files.

;;; Code:

(require 'subr-x)
(require 'duet-approval)

(defun duet-approval-always-rule (approval scope)
  "Return what a rule of SCOPE, a keyword, of APPROVAL would hold for, or nil."
  (duet-get (duet-approval-data approval) :rule_preview scope))

(defun duet-approval-always-covers (approval)
  "Return in words what a rule of APPROVAL would hold for, or nil."
  (when-let ((text (duet-get-string (duet-approval-always-rule approval :session) :text)))
    (duet-approval-line
     ;; The server writes out where one's home is.
     (string-replace (concat " " (expand-file-name "~/")) " ~/"
                     (string-remove-suffix ", in this session" text)))))

(defun duet-approval-always--what (approval)
  "Return what a rule made of APPROVAL would allow."
  (let ((tool (duet-approval-tool approval)))
    (if (equal (duet-get-string (duet-approval-data approval) :tool_kind) "execute")
        (format "%s %s" tool (substring-no-properties
                              (duet-approval-summary approval)))
      tool)))

(defun duet-approval-always (approval)
  "Let the tool of APPROVAL run, now and whenever this session wants to.
Of a tool that runs commands that is this command only, of one that changes
files those of the same directory, unless you give another pattern."
  (interactive (list (duet-approval-here))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (duet-approval-always--scoped approval "session"))

(defun duet-approval-always-in-project (approval)
  "Let the tool of APPROVAL run, now and whenever the project wants to.
It is for the same as with `duet-approval-always'."
  (interactive (list (duet-approval-here))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (duet-approval-always--scoped approval "project"))

(defun duet-approval-always--scoped (approval scope)
  "Approve APPROVAL with SCOPE, a string, once the user has said so twice."
  (when (duet-approval-question-p approval)
    (user-error "A question has no standing answer"))
  (when (duet-approval-plan approval)
    (user-error "A plan is agreed to for itself: there is no rule of it"))
  (unless (duet-approval-rule-p approval)
    (user-error "Cannot make a rule: Duet cannot tell what else it would allow"))
  (duet-approval-check approval)
  (let* ((rule (duet-approval-always-rule approval (intern (concat ":" scope))))
         (text (duet-get-string rule :text))
         (pattern (duet-get-string rule :pattern))
         (given (and pattern
                     (string-trim
                      (read-string (format "Unasked in this %s from now on, %s: " scope
                                           (if (equal (duet-get-string rule :covers) "files")
                                               (format "%s of files" (duet-approval-tool approval))
                                             "the command"))
                                   pattern)))))
    (unless (duet-approval-connection approval)
      (user-error "%s: this was decided meanwhile" (duet-approval-name approval)))
    (when (equal given "")
      (user-error "Nothing is decided: a rule is for something"))
    (if (or given
            (y-or-n-p (if text (format "Unasked from now on: %s? " (duet-approval-line text))
                        (format "Let %s run in this %s from now on, unasked? "
                                (duet-approval-always--what approval) scope))))
        (apply #'duet-approval-send approval "approve"
               (format "Allowed in this %s from now on" scope)
               :type "function_call" :scope scope
               (and given (not (equal given pattern)) (list :pattern given)))
      (message "Nothing is decided"))))

(provide 'duet-approval-always)
;;; duet-approval-always.el ends here
