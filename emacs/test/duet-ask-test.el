;;; duet-ask-test.el --- Tests of prompts that quote a buffer  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'flymake)
(require 'duet-ask)

(defmacro duet-ask-test-with-file (&rest body)
  "Run BODY in a buffer that visits the file a/code.el of the project `connection'."
  (declare (debug (body)))
  `(duet-test-with-project connection
     (let ((folder (expand-file-name "a/" (duet-connection-root connection))))
       (make-directory folder)
       (with-temp-file (expand-file-name "code.el" folder)
         (insert ";; one\n(two)\n(three \"```\")\n;; four\n;; five\n"))
       (save-window-excursion
         (with-current-buffer (find-file-noselect (expand-file-name "code.el" folder))
           ,@body)))))

(defun duet-ask-test-prompt ()
  "Return the text of the selected compose buffer."
  (with-current-buffer (window-buffer (selected-window))
    (should (derived-mode-p 'duet-compose-mode))
    (buffer-string)))

(ert-deftest duet-ask-test-region ()
  "The prompt quotes the region, or else the line, with its location."
  (duet-ask-test-with-file
   (let ((transient-mark-mode t))
     (goto-char (point-min))
     (forward-line 1)
     (call-interactively #'duet-send-region)
     (should (equal (duet-ask-test-prompt)
                    "a/code.el:2-2\n```emacs-lisp\n(two)\n```\n\n"))
     ;; A draft stays, and the fence is longer than those in the quoted text.
     (with-current-buffer (find-file-noselect (expand-file-name "code.el" folder))
       (goto-char (point-min))
       (push-mark (point) t t)
       (goto-char (point-max))
       (call-interactively #'duet-send-region)
       (should-not mark-active))
     (should (string-match-p
              "\\`a/code.el:2-2\n\\(?:.*\n\\)*\na/code.el:1-5\n````emacs-lisp\n;; one\n\\(?:.*\n\\)*;; five\n````\n\n\\'"
              (duet-ask-test-prompt))))))

(ert-deftest duet-ask-test-continue ()
  "With a prefix argument the prompt continues the last session."
  (duet-ask-test-with-file
   (let ((current-prefix-arg '(4)))
     (should-error (call-interactively #'duet-send-region) :type 'user-error))
   (let ((session (duet-test-launch connection "quiet")))
     (duet-test-wait-for-state session 'completed)
     (let ((current-prefix-arg '(4)))
       (call-interactively #'duet-send-region))
     (with-current-buffer (window-buffer (selected-window))
       (should (eq duet-session session))
       (call-interactively #'duet-compose-send))
     (duet-test-wait-for (cdr (duet-session-turns session))))))

(ert-deftest duet-ask-test-error ()
  "The prompt quotes a diagnostic with the lines around it, if there is one."
  (duet-ask-test-with-file
   (should-error (call-interactively #'duet-ask-about-error) :type 'user-error)
   (emacs-lisp-mode)
   (setq flymake-diagnostic-functions nil)
   (add-hook 'flymake-diagnostic-functions
             (lambda (report &rest _)
               (funcall report (list (flymake-make-diagnostic
                                      (current-buffer) 8 11 :error "no such function"))))
             nil t)
   (let ((flymake-start-on-flymake-mode t) (duet-ask-error-lines 1))
     (flymake-mode 1)
     (flymake-start)
     (duet-test-wait-for (flymake-diagnostics))
     (goto-char (point-max))
     (should-error (call-interactively #'duet-ask-about-error) :type 'user-error)
     (goto-char 12)
     (call-interactively #'duet-ask-about-error)
     (should (equal (duet-ask-test-prompt)
                    (concat "a/code.el:2: no such function\n\n"
                            "a/code.el:1-3\n````emacs-lisp\n;; one\n(two)\n"
                            "(three \"```\")\n````\n\n"
                            "What is the cause, and how do I fix it?"))))))

(provide 'duet-ask-test)
;;; duet-ask-test.el ends here
