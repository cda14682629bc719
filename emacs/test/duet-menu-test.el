;;; duet-menu-test.el --- Tests of the menu  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-menu)

(defun duet-menu-test-suffixes (layout)
  "Return the suffixes in LAYOUT, what transient keeps, as property lists."
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
            (when bound
              (should (equal (list command (key-description bound))
                             (list command (plist-get suffix :key)))))))))))

(ert-deftest duet-menu-test-heading ()
  "The menu tells how the project and the session are doing."
  (with-temp-buffer
    (setq default-directory "/")
    (should (string-match-p "not started" (duet-menu--describe))))
  (duet-test-with-project connection
    (let ((session (duet-test-launch connection "hello")))
      (duet-test-wait-for (duet-session-approvals session))
      (with-temp-buffer
        (should (string-match-p "1 waiting for you · 1 running" (duet-menu--describe)))
        (should-not (duet-menu--session)))
      (with-current-buffer (duet-transcript-open connection session)
        (should (string-match-p "\nhello  waiting_input · demo" (duet-menu--describe)))
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
                (should (cl-find 'duet-new transient--suffixes
                                 :key (lambda (suffix) (oref suffix command)))))
            (transient-quit-all)
            (transient--emergency-exit)))))))

(provide 'duet-menu-test)
;;; duet-menu-test.el ends here
