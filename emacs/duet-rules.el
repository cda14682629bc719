;;; duet-rules.el --- The list of rules  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; An answer for the whole session or project is a rule: agents do not ask the same
;; question again.  `duet-rules' lists the rules, and removes them.

;;; Code:

(require 'tabulated-list)
(require 'duet-connection)
(require 'duet-render)
(require 'duet-actions)
(require 'duet-menu-bar)
(require 'duet-sessions)

(declare-function duet "duet" (&optional directory))
(declare-function duet-menu-or-help "duet-menu" ())

(defvar duet-rules-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map tabulated-list-mode-map)
    (define-key map "k" #'duet-rules-take-back)
    (define-key map "g" #'duet-rules-refresh)
    (define-key map "j" #'duet-approval-next)
    (define-key map "l" #'duet)
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-rules-mode'.")

(define-derived-mode duet-rules-mode tabulated-list-mode "Duet-Rules"
  "Major mode of the list of rules.

\\{duet-rules-mode-map}"
  (setq tabulated-list-format [("Rule" 6 t) ("Tool" 10 t) ("For" 26 t) ("Where" 24 t)
                               ("" 0 nil)]
        tabulated-list-padding 1)
  (tabulated-list-init-header))

(duet-menu-bar-add duet-rules-mode-map
                   '(["Take Back" duet-rules-take-back]
                     ["Refresh" duet-rules-refresh]))

;;;###autoload
(defun duet-rules ()
  "List the rules of the current project and its sessions."
  (interactive)
  (let ((buffer (duet-connection-buffer (duet-connection-here) "rules" #'duet-rules-mode)))
    (with-current-buffer buffer (duet-rules-refresh))
    (pop-to-buffer buffer)))

(defun duet-rules-refresh ()
  "Reload the rules from the server."
  (interactive (duet-only-in 'duet-rules-mode) duet-rules-mode)
  (duet-connection-request
   duet-connection 'rule.list nil
   :success-fn (duet-latest
                (lambda (result)
                  (duet-rules--print (duet-get-objects result :rules))))))

(defun duet-rules--print (rules)
  "Show RULES, from the server's reply, in the buffer."
  (let ((model (duet-connection-model duet-connection)))
    (setq tabulated-list-entries
          (mapcar (lambda (rule) (list (duet-get-number rule :rule_id)
                                       (duet-rules--columns rule model)))
                  rules)))
  (tabulated-list-print t)
  (unless rules
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert "\n No rules yet: agents ask before each action that their mode does not allow.\n")
      (duet-sessions-fill-hint)
      (goto-char (point-min))))
  (restore-buffer-modified-p nil))

(defun duet-rules--files (pattern)
  "Return PATTERN, of files, relative to the project if it begins there."
  (let ((root (file-name-as-directory (duet-remote-local (duet-connection-root duet-connection)))))
    (if (string-prefix-p root pattern)
        (concat "./" (substring pattern (length root)))
      pattern)))

(defun duet-rules--columns (rule model)
  "Return the columns of RULE of the project, or of a session of MODEL."
  (let ((allow (equal (duet-get-string rule :effect) "allow"))
        (number (duet-get-number rule :session))
        (session (duet-model-session model (duet-get-string rule :session_uuid))))
    (vector (propertize (if allow "allow" "deny")
                        'face (if allow 'duet-done 'duet-failed))
            (duet-visible-line (or (duet-get-string rule :tool_name) ""))
            (cond ((duet-get-string rule :command)
                   (propertize (duet-visible-line (duet-get-string rule :command))
                               'face 'duet-code))
                  ((duet-get-string rule :path)
                   (propertize (duet-visible-line
                                (duet-rules--files (duet-get-string rule :path)))
                               'face 'duet-code))
                  ((duet-get rule :same_input) "the same input")
                  (t "whatever it gets"))
            (cond ((null (duet-get-string rule :session_uuid)) "the whole project")
                  (session (duet-session-label session))
                  (t (concat (and number (format "%d " number))
                             (duet-visible-line (or (duet-get-string rule :title) "a session")))))
            "")))

(defun duet-rules-take-back ()
  "Remove the rule at point, so that agents ask again."
  (interactive nil duet-rules-mode)
  (let ((id (or (tabulated-list-get-id) (user-error "There is no rule here")))
        (buffer (current-buffer)))
    (duet-connection-request
     duet-connection 'rule.delete (list :rule_id id)
     :success-fn (lambda (_)
                   (message "Rule removed; the agent asks again")
                   (when (buffer-live-p buffer)
                     (with-current-buffer buffer (duet-rules-refresh)))))))

(provide 'duet-rules)
;;; duet-rules.el ends here
