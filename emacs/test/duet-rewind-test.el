;;; duet-rewind-test.el --- Tests of rewinding to before a turn  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The test with a server enables checkpoints, which need git.

;;; Code:

(require 'duet-test-lib)
(require 'duet-actions)
(require 'duet-compose)
(require 'duet-transcript)

(defun duet-rewind-test-answer (char)
  "Return a function that answers a multiple-choice question with CHAR."
  (lambda (_ choices &rest _) (assq char choices)))

(ert-deftest duet-rewind-test-files-and-prompt ()
  "Rewinding restores the files and the prompt; it can be undone for the files."
  (duet-test-need "git")
  (duet-test-with-project connection
    (let* ((root (duet-connection-root connection))
           (folder (expand-file-name "../config/duet/" root))
           (demo (expand-file-name "demo.txt" root)))
      (make-directory folder t)
      (with-temp-file (expand-file-name "config.toml" folder)
        (insert "default_agent = \"demo\"\n[checkpoints]\nenabled = true\n"))
      (with-temp-file (expand-file-name "large" root)
        (insert-char ?x (* 11 1024 1024)))
      (let* ((session (duet-test-launch connection "first" :mode "acceptEdits"))
             (buffer (duet-transcript-open connection session))
             (shown nil))
        (duet-test-wait-for-state session 'completed)
        (duet-test-wait-for (file-exists-p demo))
        (with-current-buffer buffer
          (cl-letf (((symbol-function 'read-multiple-choice)
                     (lambda (prompt choices &rest _)
                       (setq shown (list prompt
                                         (with-current-buffer "*duet rewind*" (buffer-string))))
                       (assq ?n choices))))
            (call-interactively #'duet-rewind)
            (duet-test-wait-for shown))
          (should (equal (car shown) "Restore 1 file?"))
          (should (string-match-p "^is deleted +demo.txt  \\+0 -1$" (cadr shown)))
          (should (string-match-p "^stays, not recorded +large$" (cadr shown)))
          (should (file-exists-p demo))
          (cl-letf (((symbol-function 'read-multiple-choice) (duet-rewind-test-answer ?y)))
            (call-interactively #'duet-rewind)
            (duet-test-wait-for (cl-find-if (lambda (buffer)
                                                (with-current-buffer buffer
                                                  (derived-mode-p 'duet-compose-mode)))
                                              (buffer-list)))))
        (should-not (file-exists-p demo))
        (with-current-buffer (cl-find-if (lambda (buffer)
                                           (with-current-buffer buffer
                                             (derived-mode-p 'duet-compose-mode)))
                                         (buffer-list))
          (should-not duet-session) ; nothing is before the turn
          (should (equal (buffer-string) "first")))
        (with-current-buffer buffer
          (let ((current-prefix-arg t)) (call-interactively #'duet-rewind))
          (duet-test-wait-for (file-exists-p demo)))))))

;; `?' shows the choices in a window, and asks again.
(ert-deftest duet-rewind-test-help-at-the-question ()
  "At the question about the files, ? shows the choices; the next key answers."
  (dolist (case '((?y (session.rewind :turn "run"))
                  (?a (session.rewind :turn "run" :all t))
                  (?k composed)
                  (?n)))
    (let ((unread-command-events (list ?? (car case)))
          (done nil))
      (cl-letf (((symbol-function 'duet-actions--show-rewind) #'ignore)
                ((symbol-function 'duet-connection-directory) #'ignore)
                ((symbol-function 'duet-actions--compose-rewound)
                 (lambda (&rest _) (push 'composed done)))
                ((symbol-function 'duet-connection-request)
                 (lambda (_ method parameters &rest _) (push (cons method parameters) done))))
        (duet-actions--ask-rewind nil nil "run"
                                  '(:checkpoint t :files ((:path "a") (:path "b" :left "edited")))))
      (should (equal done (cdr case)))
      (should-not unread-command-events))))

(provide 'duet-rewind-test)
;;; duet-rewind-test.el ends here
