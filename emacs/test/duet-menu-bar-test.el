;;; duet-menu-bar-test.el --- Tests of the menu bar and of M-x  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-menu-bar)

(defun duet-menu-bar-test-sound (items)
  "Check that ITEMS of a menu are commands, and that their forms signal nothing."
  (pcase-dolist (`(,name ,binding ,properties) items)
    (should (equal (list name (commandp binding)) (list name t)))
    (eval (plist-get properties :enable) t)
    (eval (plist-get (cdr (plist-get properties :button)) :toggle) t)))

(defun duet-menu-bar-test-items ()
  "Return the items of the menu of the current buffer: (NAME BINDING PROPERTIES)."
  (let (items)
    (map-keymap (lambda (_ item)
                  (when (nth 2 item)
                    (push (list (nth 1 item) (nth 2 item) (nthcdr 3 item)) items)))
                (lookup-key (current-local-map) [menu-bar Duet]))
    (nreverse items)))

(ert-deftest duet-menu-bar-test-menus ()
  "The menus have existing commands, and those that do not apply are disabled."
  (duet-test-with-project connection
    (let ((enabled (lambda (name)
                     (let ((item (assoc name (duet-menu-bar-test-items))))
                       (should item)
                       (or (not (plist-member (nth 2 item) :enable))
                           (eval (plist-get (nth 2 item) :enable) t))))))
      (save-window-excursion
        (switch-to-buffer (duet-sessions-buffer connection))
        (should (funcall enabled "New Session"))
        (should-not (funcall enabled "Continue"))
        (should-not (funcall enabled "Interrupt"))
        (let* ((session (duet-test-launch connection "hello"))
               (buffers (list (current-buffer) (duet-transcript-open connection session)
                              (progn (duet-approvals) (current-buffer)))))
          (duet-test-wait-for-text (car buffers) "waiting for you")
          (duet-approvals-flush)
          (dolist (buffer buffers)
            (set-buffer buffer)
            (goto-char (point-min))
            (let ((items (duet-menu-bar-test-items)))
              (should (> (length items) 10))
              (duet-menu-bar-test-sound items)))
          (set-buffer (nth 0 buffers))
          (should (funcall enabled "Continue"))
          (set-buffer (nth 1 buffers))
          (should (funcall enabled "Interrupt"))
          (should-not (funcall enabled "Earlier Messages"))
          (set-buffer (nth 2 buffers))
          (duet-approvals--first)
          (should (funcall enabled "Allow"))
          (goto-char (point-max))
          (should-not (funcall enabled "Allow")))))))

(ert-deftest duet-menu-bar-test-everywhere ()
  "All buffers of Duet have the menu, also before they show anything."
  (require 'duet-search)
  (require 'duet-rules)
  (require 'duet-agents)
  (require 'duet-terminal)
  (dolist (mode '(duet-sessions-mode duet-transcript-mode duet-approvals-mode
                  duet-approval-view-mode duet-approval-edit-mode duet-compose-mode
                  duet-diff-mode duet-search-mode duet-rules-mode duet-agents-mode
                  duet-terminals-mode))
    (with-temp-buffer
      (use-local-map (symbol-value (intern (format "%s-map" mode))))
      (should (equal (list mode (and (cdr (duet-menu-bar-test-items)) t)) (list mode t)))
      (when (memq mode '(duet-approval-view-mode duet-compose-mode duet-diff-mode
                         duet-search-mode duet-rules-mode duet-agents-mode))
        (duet-menu-bar-test-sound (duet-menu-bar-test-items))))))

(defun duet-menu-bar-test-context (text)
  "Return the menu for a click on TEXT, as (NAME . FUNCTION)."
  (duet-test-look)
  (goto-char (point-min))
  (search-forward text)
  (let ((click `(mouse-3 (,(selected-window) ,(1- (point)) (0 . 0) 0)))
        (menu (make-sparse-keymap))
        items)
    ;; The position of the click decides, not point.
    (goto-char (point-max))
    (should (memq #'duet-menu-bar--context context-menu-functions))
    (duet-menu-bar--context menu click)
    (map-keymap (lambda (_ item)
                  (when (nth 2 item) (push (cons (nth 1 item) (nth 2 item)) items)))
                menu)
    (nreverse items)))

(ert-deftest duet-menu-bar-test-context ()
  "The context menu has the commands for the item under the mouse."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (buffer (duet-transcript-open connection session)))
      (switch-to-buffer (duet-sessions-buffer connection))
      (duet-test-wait-for-text (current-buffer) "waiting for you .*hello")
      (should (equal (mapcar #'car (duet-menu-bar-test-context "hello"))
                     '("Open" "Interrupt" "Changes")))
      (call-interactively (alist-get "Open" (duet-menu-bar-test-context "hello")
                                     nil nil #'equal))
      (duet-test-look)
      (should (eq (current-buffer) buffer))
      (duet-test-wait-for-text buffer "You asked")
      (duet-approvals-flush)
      (call-interactively (cdar (duet-menu-bar-test-context "You asked")))
      (should (equal (current-kill 0) "Hello from the demo agent. You asked: hello"))
      (call-interactively (alist-get "Allow" (duet-menu-bar-test-context "? Write")
                                     nil nil #'equal))
      (duet-test-wait-for-state session 'completed))))

(ert-deftest duet-menu-bar-test-completion ()
  "M-x can leave out commands that do not apply in the current buffer."
  (let ((offered (lambda (command mode)
                   (with-temp-buffer
                     (setq major-mode mode)
                     (and (command-completion-default-include-p command (current-buffer))
                          t)))))
    (pcase-dolist (`(,command . ,modes)
                   '((duet-diff-revert duet-diff-mode)
                     (duet-section-toggle duet-transcript-mode)
                     (duet-sessions-open duet-sessions-mode)
                     (duet-approval-allow duet-approvals-mode duet-transcript-mode
                                            duet-approval-view-mode)
                     (duet-approval-edit-send duet-approval-edit-mode)
                     (duet-continue duet-sessions-mode duet-transcript-mode duet-diff-mode)))
      (should-not (funcall offered command 'text-mode))
      (dolist (mode modes)
        (should (equal (list command mode (funcall offered command mode))
                       (list command mode t)))))
    (dolist (command '(duet duet-new duet-approval-next duet-approvals duet-search duet-stop
                            duet-terminal duet-send-region duet-dispatch))
      (should (funcall offered command 'text-mode)))))

(provide 'duet-menu-bar-test)
;;; duet-menu-bar-test.el ends here
