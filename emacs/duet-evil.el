;;; duet-evil.el --- Keys for Evil  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; With Evil, Duet's buffers for reading are in its motion state, with Duet's keys,
;; and its buffers for writing begin in insert state.  The motion keys h, j, k, l, gg,
;; G and / keep their meaning in Evil.  Duet's commands on these keys move to other
;; keys.

;;; Code:

(require 'subr-x)

(declare-function evil-define-key* "evil-core" (state keymap key def &rest bindings))
(declare-function evil-make-overriding-map "evil-core" (keymap &optional state copy))
(declare-function evil-set-initial-state "evil-core" (mode state))

(defconst duet-evil--read
  '(duet-sessions-mode duet-projects-mode duet-transcript-mode duet-approvals-mode
    duet-approval-view-mode duet-diff-mode duet-search-mode duet-terminals-mode duet-terminal-ended-mode
    duet-agents-mode duet-rules-mode duet-trust-mode duet-transcript-whole-mode
    duet-build-mode duet-triggers-mode duet-triggers-log-mode duet-preview-mode duet-attempts-mode
    duet-attempts-patch-mode)
  "Modes of buffers for reading.")

(defconst duet-evil--written '(duet-compose-mode duet-approval-edit-mode)
  "Modes of buffers for writing.")

(defconst duet-evil--moved '(("j" . "gj") ("k" . "x") ("K" . "X") ("l" . "gl") ("g" . "gr") ("G" . "gG")
                             ("/" . "g/"))
  "Keys of Duet that Evil uses, and the keys that replace them.")

(defconst duet-evil--own '(("h" . evil-backward-char) ("j" . evil-next-line)
                           ("k" . evil-previous-line) ("l" . evil-forward-char)
                           ("gg" . evil-goto-first-line) ("G" . evil-goto-line)
                           ("/" . evil-search-forward))
  "Keys of Evil, and their commands.")

(defun duet-evil--map (mode)
  "Return the keymap of MODE, or nil if it is not loaded."
  (let ((name (intern (format "%s-map" mode))))
    (and (boundp name) (symbol-value name))))

(defun duet-evil--set-up-map (map)
  "Use the keys of MAP in the motion state, with Evil's motion keys."
  (evil-make-overriding-map map 'motion)
  (pcase-dolist (`(,key . ,other) duet-evil--moved)
    (let ((command (lookup-key map (kbd key))))
      (when (and command (symbolp command))
        (evil-define-key* 'motion map (kbd (if (= (length other) 2)
                                               (format "%c %c" (aref other 0) (aref other 1))
                                             other))
                          command))))
  (pcase-dolist (`(,key . ,command) duet-evil--own)
    (evil-define-key* 'motion map (string-to-vector key) command)))

(defvar duet-evil--done nil
  "Keymaps that are set up for Evil.")

(defun duet-evil--enter ()
  "Set up the keymap of the current mode for Evil, once.
Some files of Duet are loaded only when they are needed."
  (when-let ((map (duet-evil--map major-mode)))
    (unless (memq map duet-evil--done)
      (push map duet-evil--done)
      (duet-evil--set-up-map map))))

(defun duet-evil-set-up ()
  "Set up the buffers of Duet for Evil, which is loaded."
  (dolist (mode duet-evil--read)
    (evil-set-initial-state mode 'motion)
    (add-hook (intern (format "%s-hook" mode)) #'duet-evil--enter))
  (dolist (mode duet-evil--written)
    (evil-set-initial-state mode 'insert)))

(if (featurep 'evil) (duet-evil-set-up)
  (add-hook 'evil-after-load-hook #'duet-evil-set-up))

(provide 'duet-evil)
;;; duet-evil.el ends here
