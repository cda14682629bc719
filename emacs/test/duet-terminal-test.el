;;; duet-terminal-test.el --- Tests of the server's terminals  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-terminal)

(defun duet-terminal-test-end (buffer)
  "End what BUFFER shows."
  (when (process-live-p (get-buffer-process buffer))
    (set-process-query-on-exit-flag (get-buffer-process buffer) nil)
    (delete-process (get-buffer-process buffer))))

(defun duet-terminal-test-lists-p (connection)
  "Return non-nil if the server of CONNECTION can list its terminals."
  (let (outcome)
    (duet-connection-request connection 'terminal.list nil
                             :success-fn (lambda (_) (setq outcome '(t)))
                             :error-fn (lambda (_) (setq outcome '(nil))))
    (car (duet-test-wait-for outcome))))

(ert-deftest duet-terminal-test-new ()
  "A new terminal runs in the project, and in the server that Emacs has started."
  (duet-test-with-project connection
    (save-window-excursion
      (let ((duet-terminal-backend 'term) buffer)
        (with-current-buffer (duet-sessions-buffer connection)
          (duet-terminal '("sh" "-c" "echo it is $(basename $PWD); read x; echo got $x"))
          (setq buffer (current-buffer)))
        (setq buffer (window-buffer (selected-window)))
        (unwind-protect
            (progn
              (duet-test-wait-for-text buffer "it is project")
              (with-current-buffer buffer
                (should (eq duet-connection connection))
                (term-send-raw-string "word\r"))
              (duet-test-wait-for-text buffer "got word")
              (duet-test-wait-for (not (process-live-p (get-buffer-process buffer)))))
          (duet-terminal-test-end buffer))))))

(ert-deftest duet-terminal-test-detach-and-attach ()
  "To kill the buffer detaches, and the list attaches again."
  (duet-test-with-project connection
    (skip-unless (duet-terminal-test-lists-p connection))
    (save-window-excursion
      (let ((duet-terminal-backend 'term) list)
        (with-current-buffer (duet-sessions-buffer connection)
          (duet-terminal '("sh" "-c" "echo first; while read x; do echo got $x; done")))
        (let ((buffer (window-buffer (selected-window))))
          (duet-test-wait-for-text buffer "first")
          (kill-buffer buffer))
        (with-current-buffer (duet-sessions-buffer connection)
          (duet-terminals))
        (setq list (window-buffer (selected-window)))
        (duet-test-wait-for-text list "sh -c echo first")
        (with-current-buffer list
          (goto-char (point-min))
          (call-interactively #'duet-terminals-attach))
        (let ((buffer (window-buffer (selected-window))))
          (unwind-protect
              (progn
                (should (buffer-local-value 'duet-terminal-id buffer))
                (duet-test-wait-for-text buffer "first")
                (with-current-buffer buffer (term-send-raw-string "again\r"))
                (duet-test-wait-for-text buffer "got again")
                ;; Once more is the same buffer.
                (with-current-buffer list (call-interactively #'duet-terminals-attach))
                (should (eq (window-buffer (selected-window)) buffer)))
            (duet-terminal-test-end buffer)))
        (with-current-buffer list
          (cl-letf (((symbol-function 'yes-or-no-p) #'always))
            (goto-char (point-min))
            (call-interactively #'duet-terminals-close)))
        (duet-test-wait-for-text list "No terminals")))))

(ert-deftest duet-terminal-test-no-list ()
  "A server that cannot list terminals has none."
  (duet-test-with-project connection
    (let ((request (symbol-function 'duet-connection-request)) terminals)
      (cl-letf (((symbol-function 'duet-connection-request)
                 (lambda (connection method &rest rest)
                   (apply request connection
                          (if (eq method 'terminal.list) 'no.such.method method)
                          rest))))
        (duet-terminals-list connection (lambda (list) (setq terminals (list list))))
        (duet-test-wait-for terminals)
        (should (equal terminals '(nil)))
        (save-window-excursion
          (with-current-buffer (duet-sessions-buffer connection) (duet-terminals))
          (duet-test-wait-for-text (window-buffer (selected-window)) "No terminals"))))))

(ert-deftest duet-terminal-test-backends ()
  "A backend that is not installed is named; term always is there."
  (let ((duet-terminal-backend 'term))
    (should (eq (duet-terminal-backend) 'term)))
  (let ((duet-terminal-backend 'vterm))
    (cl-letf (((symbol-function 'locate-library) #'ignore))
      (should-error (duet-terminal-backend) :type 'user-error)
      (let ((duet-terminal-backend 'auto))
        (should (memq (duet-terminal-backend) '(eat term)))))))

(provide 'duet-terminal-test)
;;; duet-terminal-test.el ends here
