;;; duet-menu-test.el --- Tests of the menu  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-menu)

(defun duet-menu-test-suffixes (layout)
  "Return the suffixes in LAYOUT, the layout of a transient, as property lists."
  (cond ((and (consp layout) (keywordp (car layout)))
         (and (plist-get layout :command) (list layout)))
        ((consp layout)
         (let ((found '()))
           (while (consp layout)
             (setq found (append found (duet-menu-test-suffixes (pop layout)))))
           found))
        ((vectorp layout)
         (cl-mapcan #'duet-menu-test-suffixes (append layout nil)))))

(ert-deftest duet-menu-test-commands ()
  "Every key of the menu has a command, and buffers have it on the same key."
  (let* ((suffixes (duet-menu-test-suffixes (get 'duet-dispatch 'transient--layout)))
         (keys (mapcar (lambda (suffix) (plist-get suffix :key)) suffixes)))
    (should (> (length suffixes) 20))
    (should (equal (delete-dups (copy-sequence keys)) keys))
    (dolist (suffix suffixes)
      (let ((command (plist-get suffix :command)))
        (should (commandp command))
        (should (or (plist-get suffix :description) command))
        (dolist (map (list duet-sessions-mode-map duet-transcript-mode-map))
          (let ((bound (where-is-internal command (list map) t)))
            ;; The menu bar has the command, too.
            (when (and bound (not (eq (aref bound 0) 'menu-bar)))
              (should (equal (list command (key-description bound))
                             (list command (plist-get suffix :key)))))))))))

(ert-deftest duet-menu-test-heading ()
  "The menu shows the state of the project and the session."
  (with-temp-buffer
    (setq default-directory "/")
    (should (string-match-p "not started" (duet-menu--describe))))
  (duet-test-with-project connection
    (let ((session (duet-test-launch connection "hello")))
      ;; The question arrives first, then the state of its session.
      (duet-test-wait-for (duet-session-approvals session))
      (duet-test-wait-for-state session 'waiting_input)
      (with-temp-buffer
        (should (string-match-p "1 waiting for you · 1 running" (duet-menu--describe)))
        (should-not (duet-menu--session)))
      (with-current-buffer (duet-transcript-open connection session)
        (should (string-match-p "\\`1 hello  waiting for you · demo\\'" (duet-menu--describe)))
        (should (duet-menu--session))
        (should (duet-menu--running)))
      (with-current-buffer (duet-sessions-buffer connection)
        (goto-char (point-max))
        (should-not (duet-menu--session))
        (goto-char (point-min))
        (should (eq (duet-menu--session) session))))))

(ert-deftest duet-menu-test-shows ()
  "The menu opens in all kinds of buffers."
  (duet-test-with-project connection
    (let ((session (duet-test-launch connection "quiet")))
      (duet-test-wait-for-state session 'completed)
      (dolist (buffer (list (duet-sessions-buffer connection)
                            (duet-transcript-open connection session)
                            (get-buffer-create "*scratch*")))
        (save-window-excursion
          (switch-to-buffer buffer)
          (call-interactively #'duet-menu)
          (unwind-protect
              (progn
                (should transient--prefix)
                (should (eq (oref transient--prefix command) 'duet-dispatch))
                (should (cl-find 'duet-menu-sessions transient--suffixes
                                 :key (lambda (suffix) (oref suffix command)))))
            (transient-quit-all)
            (transient--emergency-exit)))))))

(ert-deftest duet-menu-test-same-keys ()
  "Keys of the menu do the same as in the current buffer; `q' closes it."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet"))
           (keys (lambda ()
                   (call-interactively #'duet-menu)
                   (unwind-protect
                       (mapcar (lambda (suffix) (cons (oref suffix key) (oref suffix command)))
                               transient--suffixes)
                     (transient-quit-all)
                     (transient--emergency-exit)))))
      (duet-test-wait-for-state session 'completed)
      (save-window-excursion
        ;; The list and the transcript have the same keys: c and r, l and P.
        (dolist (buffer (list (duet-sessions-buffer connection)
                              (duet-transcript-open connection session)))
          (switch-to-buffer buffer)
          (let ((keys (funcall keys)))
            (pcase-dolist (`(,key . ,command) '(("c" . duet-new) ("r" . duet-continue)
                                                ("l" . duet-menu-sessions) ("P" . duet-projects)
                                                ("q" . transient-quit-one)))
              (should (equal (list key (alist-get key keys nil nil #'equal))
                             (list key command)))))
          (should (memq (key-binding "c") '(duet-sessions-compose duet-new)))
          (should (eq (key-binding "r") 'duet-continue))
          (should (eq (key-binding "l") 'duet))
          (should (eq (key-binding "P") 'duet-projects))
          (dolist (key '("a" "C"))
            (should (memq (key-binding key) '(nil undefined))))
          (save-window-excursion
            (call-interactively (key-binding "c"))
            (should (derived-mode-p 'duet-compose-mode))
            (should-not duet-session)
            (call-interactively #'duet-compose-cancel)))))))

(ert-deftest duet-menu-test-narrow ()
  "The menu fits into 50 columns in each state."
  (duet-test-with-project connection
    (cl-letf* ((columns 50)
               ((symbol-function 'frame-width) (lambda (&rest _) columns))
               (duet-reply-box t)
               (width (lambda ()
                        (call-interactively #'duet-menu)
                        (unwind-protect
                            (with-current-buffer transient--buffer-name
                              (should (string-match-p "X Stop" (buffer-string)))
                              (apply #'max (mapcar #'string-width
                                                   (split-string (buffer-string) "\n"))))
                          (transient-quit-all)
                          (transient--emergency-exit)))))
      (let ((session (duet-test-launch connection "hello, a session with a long name and more")))
        (duet-test-question session)
        (duet-test-wait-for-state session 'waiting_input)
        (setf (duet-connection-state connection) 'starting)
        (puthash (duet-connection-root connection) "an agent with a long name" duet-agents-chosen)
        (save-window-excursion
          (switch-to-buffer (get-buffer-create " *narrow menu*"))
          (setq default-directory (duet-connection-root connection))
          (should (< (funcall width) columns))
          (switch-to-buffer (duet-sessions-buffer connection))
          (should (< (funcall width) columns))
          (goto-char (point-max))
          (should (< (funcall width) columns))
          (switch-to-buffer (duet-transcript-open connection session))
          (duet-reply-setup)
          (duet-reply-go session)
          (should (duet-reply-busy-p))
          (should (< (funcall width) columns)))))))

(ert-deftest duet-menu-test-help ()
  "`?' shows the menu in the buffers of Duet."
  (duet-test-with-project connection
    (save-window-excursion
      (switch-to-buffer (duet-sessions-buffer connection))
      (unwind-protect
          (progn
            (duet-test-press "?" #'duet-menu-or-help)
            (should (eq (oref transient--prefix command) 'duet-dispatch)))
        (transient-quit-all)
        (transient--emergency-exit)))))

(ert-deftest duet-menu-test-archive ()
  "The menu archives and restores the marked sessions, or else the session."
  (duet-test-with-project connection
    (let ((sessions (mapcar (lambda (n)
                              (duet-test-launch connection (format "quiet no %d" n)))
                            '(1 2 3)))
          (buffer (duet-sessions-buffer connection)))
      (dolist (session sessions) (duet-test-wait-for-state session 'completed))
      (with-current-buffer buffer
        (duet-sessions--print)
        (goto-char (point-min))
        (duet-test-press "m" #'duet-mark)
        (duet-test-press "m" #'duet-mark)
        (call-interactively #'duet-menu-archive)
        (duet-test-wait-for (length= (cl-remove-if #'duet-session-archived sessions) 1)))
      (let ((session (cl-find-if-not #'duet-session-archived sessions)))
        (with-current-buffer (duet-transcript-open connection session)
          (call-interactively #'duet-menu-archive)
          (duet-test-wait-for (duet-session-archived session))
          (call-interactively #'duet-menu-archive)
          (duet-test-wait-for (not (duet-session-archived session)))))
      (with-temp-buffer
        (duet-test-should-say "There is no session here"
          (call-interactively #'duet-menu-archive))))))

(ert-deftest duet-menu-test-restart ()
  "The menu refreshes from the server, and starts it if it is gone."
  (duet-test-with-project connection
    (with-temp-buffer
      (setq default-directory (duet-connection-root connection))
      (duet-test-listening
        (call-interactively #'duet-menu-restart)
        (should (duet-test-heard "Asked the server again"))
        (call-interactively #'duet-stop)
        (should (duet-test-heard "The server is stopped"))
        (call-interactively #'duet-menu-restart)
        (duet-test-wait-for (eq (duet-connection-state connection) 'ready))))))

(ert-deftest duet-menu-test-buffers ()
  "The menu shows the options and the log."
  (save-window-excursion
    (call-interactively #'duet-menu-customize)
    (duet-test-look)
    (unwind-protect
        (should (string-match-p "Duet Rpc Command" (buffer-string)))
      (kill-buffer))
    (duet-log "something odd: %s" "100%")
    (call-interactively #'duet-log-show)
    (should (derived-mode-p 'duet-log-mode))
    (should (string-match-p "something odd: 100%" (buffer-string)))
    (kill-buffer)
    ;; The log can be shown while it is empty.
    (call-interactively #'duet-log-show)
    (should (derived-mode-p 'duet-log-mode))))

(provide 'duet-menu-test)
;;; duet-menu-test.el ends here
