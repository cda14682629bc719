;;; duet-terminals.el --- The list of the server's terminals  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-terminals' lists what runs in terminals of the server, whoever began it.
;; RET attaches Emacs to one, see duet-terminal.el.

;;; Code:

(require 'cl-lib)
(require 'tabulated-list)
(require 'duet-command)
(require 'duet-connection)
(require 'duet-menu-bar)
(require 'duet-remote)
(require 'duet-terminal)
(declare-function duet "duet" (&optional directory))
(declare-function duet-approval-next "duet-approvals" ())

(defvar duet-terminals-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map tabulated-list-mode-map)
    (define-key map (kbd "RET") #'duet-terminals-attach)
    (define-key map "c" #'duet-terminal)
    (define-key map "k" #'duet-terminals-close)
    (define-key map "g" #'duet-terminals-refresh)
    (define-key map "j" #'duet-approval-next)
    (define-key map "l" #'duet)
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-terminals-mode'.")

(define-derived-mode duet-terminals-mode tabulated-list-mode "Duet-Terminals"
  "Major mode of the list of the server's terminals.

\\{duet-terminals-mode-map}"
  (setq tabulated-list-format [("Terminal" 14 t) ("Runs" 26 t) ("Where" 17 t)
                               ("" 0 nil)]
        tabulated-list-padding 1)
  (tabulated-list-init-header))

(duet-menu-bar-add duet-terminals-mode-map
                   '(["Attach" duet-terminals-attach]
                     ["Close" duet-terminals-close]
                     ["Refresh" duet-terminals-refresh]))

(defvar-local duet-terminals--known nil
  "The terminals, as the server lists them.")

;;;###autoload
(defun duet-terminals ()
  "List the terminals of the current project's server."
  (interactive)
  (let* ((connection (duet-connection-here))
         (buffer (get-buffer-create
                  (format "*duet terminals: %s*"
                          (duet-remote-abbreviate (duet-connection-root connection))))))
    (with-current-buffer buffer
      (unless (derived-mode-p 'duet-terminals-mode)
        (duet-terminals-mode)
        (setq duet-connection connection
              default-directory (duet-connection-root connection))
        (duet-model-follow #'duet-terminals--changed (duet-connection-model connection)))
      (duet-terminals-refresh))
    (pop-to-buffer buffer)))

(defun duet-terminals--changed (_model kind _session _object extra)
  "Bring the list up to date if KIND and EXTRA may be the end of a terminal."
  (when (or (and (eq kind 'terminal) (equal extra "terminal_exit"))
            (memq kind '(connection lagged)))
    (duet-terminals-refresh)))

(defun duet-terminals-list (connection function)
  "Call FUNCTION with the terminals of the server of CONNECTION, a list.
A server that cannot list them has none."
  (duet-connection-request
   connection 'terminal.list nil
   :success-fn (lambda (result)
                 (funcall function (duet-get-objects result :terminals)))
   :error-fn (lambda (err)
               (unless (memql (plist-get err :code) '(-1 -32601))
                 (message "Duet: %s" (duet-connection-error-text err)))
               (funcall function nil))))

(defun duet-terminals-refresh ()
  "Ask the server for its terminals again."
  (interactive (duet-only-in 'duet-terminals-mode) duet-terminals-mode)
  (duet-terminals-list duet-connection (duet-latest #'duet-terminals--print)))

(defun duet-terminals--print (terminals)
  "Show TERMINALS in the buffer."
  (setq duet-terminals--known terminals
        tabulated-list-entries
        (mapcar (lambda (terminal)
                  (list (duet-get-string terminal :terminal_id)
                        (vector (truncate-string-to-width
                                 (or (duet-get-string terminal :terminal_id) "") 13)
                                (duet-terminals--program terminal)
                                (file-relative-name
                                 (duet-remote-local (or (duet-get-string terminal :cwd)
                                                        default-directory))
                                 (duet-remote-local (duet-connection-root duet-connection)))
                                (duet-terminals--remark terminal))))
                terminals))
  (tabulated-list-print t)
  (unless terminals
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert (substitute-command-keys
               "\n No terminals.  \\<duet-terminals-mode-map>\\[duet-terminal] starts one."))
      (goto-char (point-min))))
  (restore-buffer-modified-p nil))

(defun duet-terminals--program (terminal)
  "Return what runs in TERMINAL, in one line."
  (let ((text (string-join
               (cons (file-name-nondirectory (or (duet-get-string terminal :program) ""))
                     (duet-get-strings terminal :args))
               " ")))
    (duet-visible-line (truncate-string-to-width text 200 nil nil "…"))))

(defun duet-terminals--remark (terminal)
  "Return what else there is to say of TERMINAL."
  (string-join
   (delq nil
         (list (when (duet-get terminal :read_only) "an agent's")
               (when-let ((tmux (duet-get-string terminal :tmux_session)))
                 (concat "tmux " tmux))
               (cond ((duet-get terminal :taken) "taken")
                     ((> (or (duet-get-number terminal :attached) 0) 0)
                      (format "%d attached" (duet-get-number terminal :attached))))))
   ", "))

(defun duet-terminals--at-point ()
  "Return the terminal at point, as the server lists it."
  (or (cl-find (tabulated-list-get-id) duet-terminals--known
               :key (lambda (terminal) (duet-get-string terminal :terminal_id))
               :test #'equal)
      (user-error "There is no terminal here")))

(defun duet-terminals-attach ()
  "Show the terminal at point."
  (interactive nil duet-terminals-mode)
  (let ((terminal (duet-terminals--at-point)))
    (duet-terminal-attach duet-connection (duet-get-string terminal :terminal_id)
                          (duet-terminals--program terminal))))

(defun duet-terminals-close ()
  "Close the terminal at point and end what runs in it."
  (interactive nil duet-terminals-mode)
  (let* ((terminal (duet-terminals--at-point))
         (buffer (current-buffer)))
    (when (yes-or-no-p (format "End %s? " (duet-terminals--program terminal)))
      (duet-connection-request
       duet-connection 'terminal.close
       (list :terminal_id (duet-get-string terminal :terminal_id))
       :success-fn (lambda (_)
                     (when (buffer-live-p buffer)
                       (with-current-buffer buffer (duet-terminals-refresh))))))))

(provide 'duet-terminals)
;;; duet-terminals.el ends here
