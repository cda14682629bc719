;;; duet-evil-test.el --- Tests of the keys with Evil  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; This runs in a separate Emacs: Evil changes the keys of all buffers.

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'duet)

(defun duet-evil-test-path ()
  "Return the directories of Evil and its dependency; nil if it is missing."
  (cl-loop for (file . pattern) in '(("evil" . "evil-[0-9]*") ("goto-chg" . "goto-chg-[0-9]*"))
           for found = (or (locate-library file)
                           (car (file-expand-wildcards
                                 (format "/usr/share/emacs/site-lisp/elpa-src/%s/%s.el"
                                         pattern file))))
           unless found return nil
           collect (file-name-directory found)))

(defconst duet-evil-test-looked
  '(progn
     (require 'duet)
     (require 'evil)
     (evil-mode 1)
     (defun duet-evil-test-question ()
       (duet-transcript-mode)
       (let ((inhibit-read-only t))
         (save-excursion (insert (propertize "?" 'keymap duet-approvals-inline-map)))))
     (prin1
      (mapcar (lambda (look)
                (with-temp-buffer
                  (funcall (car look))
                  (evil-initialize-state)
                  (evil-normalize-keymaps)
                  (list (car look) evil-state
                        (mapcar (lambda (key) (key-binding (kbd key))) (cdr look)))))
              '((duet-transcript-mode "j" "k" "g g" "g j" "x" "g l" "g r" "y" "c" "n" "RET" "?")
                (duet-approvals-mode "j" "y" "n" "t" "s" "p" "e" "?" "TAB" "g j")
                (duet-approval-view-mode "j" "y" "n" "t" "s" "p" "e" "?" "M-n")
                (duet-evil-test-question "j" "y" "n" "t" "s" "p" "e" "?" "TAB")
                (duet-diff-mode "k" "x" "X" "a" "u" "g r" "/" "g /")
                (duet-build-mode "j" "n" "RET" "g r")
                (duet-triggers-mode "j" "x" "RET" "g r")
                (duet-triggers-log-mode "j" "RET" "g r")
                (duet-preview-mode "j" "n" "c" "g r")
                (duet-search-mode "/" "g /" "+")
                (duet-compose-mode "C-c C-c")))))
  "A form that prints the states and key bindings of buffers with Evil.")

(ert-deftest duet-evil-test-keys ()
  "With Evil, motion keys move and other keys are Duet's; compose buffers insert."
  (let ((path (duet-evil-test-path)))
    (unless path
      (when (equal (getenv "CI") "true")
        (ert-fail "Evil is not installed, and with CI=true all is tested"))
      (ert-skip "Evil is not installed"))
    (dolist (first '(nil t))
      (with-temp-buffer
        ;; Evil and Duet can load in either order.
        (should (eq 0 (apply #'call-process
                             (expand-file-name invocation-name invocation-directory)
                             nil '(t nil) nil "-Q" "--batch"
                             (append
                              (cl-mapcan (lambda (folder) (list "-L" folder))
                                         (cons (file-name-directory (locate-library "duet")) path))
                              (and first '("-l" "evil"))
                              '("-l" "duet-search" "-l" "duet-build" "-l" "duet-triggers"
                                "-l" "duet-preview")
                              (list "--eval" (prin1-to-string duet-evil-test-looked))))))
        (goto-char (point-min))
        (should (equal (read (current-buffer))
                       '((duet-transcript-mode
                          motion (evil-next-line evil-previous-line evil-goto-first-line
                                  duet-approval-next duet-take-back duet duet-transcript-refresh
                                  duet-approval-allow duet-new
                                  duet-section-next duet-transcript-visit duet-menu-or-help))
                         (duet-approvals-mode
                          motion (evil-next-line duet-approval-allow duet-approval-deny
                                  duet-approval-deny-and-tell duet-approval-always
                                  duet-approval-always-in-project duet-approval-edit
                                  duet-approval-help
                                  next-line duet-approval-next))
                         (duet-approval-view-mode
                          motion (evil-next-line duet-approval-allow duet-approval-deny
                                  duet-approval-deny-and-tell duet-approval-always
                                  duet-approval-always-in-project duet-approval-edit
                                  duet-approval-help
                                  diff-hunk-next))
                         (duet-evil-test-question
                          motion (evil-next-line duet-approval-allow duet-approval-deny
                                  duet-approval-deny-and-tell duet-approval-always
                                  duet-approval-always-in-project duet-approval-edit
                                  duet-approval-help
                                  duet-approvals-forward))
                         (duet-diff-mode
                          motion (evil-previous-line duet-diff-revert duet-diff-revert-file
                                  duet-diff-accept duet-diff-undo duet-diff-refresh
                                  evil-search-forward duet-search-or-say))
                         (duet-build-mode
                          motion (evil-next-line duet-build-next duet-build-visit duet-build-again))
                         (duet-triggers-mode
                          motion (evil-next-line duet-triggers-switch duet-triggers-log
                                  duet-triggers-refresh))
                         (duet-triggers-log-mode
                          motion (evil-next-line duet-triggers-open duet-triggers-log-refresh))
                         (duet-preview-mode
                          motion (evil-next-line duet-preview-next duet-preview-ask
                                  duet-preview-reload))
                         (duet-search-mode motion (evil-search-forward duet-search duet-search-more))
                         (duet-compose-mode insert (duet-compose-send)))))))))

(provide 'duet-evil-test)
;;; duet-evil-test.el ends here
