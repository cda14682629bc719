;;; duet-transcript-move-test.el --- Tests of moving from prompt to prompt  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-transcript)

(ert-deftest duet-transcript-move-test-moving ()
  "Keys go from prompt to prompt, say where there is none, and Imenu lists all."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet one"))
           (buffer (duet-transcript-open connection session))
           (imenu-use-popup-menu nil)
           (imenu-max-items 25)
           (at (lambda () (buffer-substring-no-properties (point) (line-end-position)))))
      (dolist (query '("quiet two\nand more" "quiet one"))
        (duet-test-wait-for-state session 'completed)
        (duet-test-request connection 'continueSession
                           (list :session_id (duet-session-leaf-id session) :query query))
        (duet-test-wait-for-text buffer (concat "❯ " query)))
      (duet-test-wait-for-text buffer "❯ quiet one\\(.\\|\n\\)*❯ quiet one")
      (save-window-excursion
        (switch-to-buffer buffer)
        (goto-char (point-max))
        (duet-test-press "M-p" #'duet-prompt-previous)
        (should (equal (funcall at) "❯ quiet one"))
        (duet-test-press "M-p" #'duet-prompt-previous)
        (should (equal (funcall at) "❯ quiet two"))
        (forward-line 2)
        (duet-test-press "M-p" #'duet-prompt-previous)
        (should (equal (funcall at) "❯ quiet two"))
        (goto-char (point-min))
        (duet-test-press "M-n" #'duet-prompt-next 2)
        (should (equal (funcall at) "❯ quiet one"))
        (should (search-backward "quiet two" nil t))
        (goto-char (point-max))
        (duet-test-listening
          (duet-test-press "M-n" #'duet-prompt-next)
          (should (= (point) (point-max)))
          (should (duet-test-heard "the last prompt"))
          (goto-char (point-min))
          (duet-test-press "M-p" #'duet-prompt-previous)
          (should (duet-test-heard "the first prompt$"))
          (setf (duet-session-offset session) 3)
          (duet-test-press "M-p" #'duet-prompt-previous)
          (should (duet-test-heard "[+] loads earlier ones$")))
        (should (equal (cl-remove "*Rescan*" (mapcar #'car (imenu--make-index-alist))
                                  :test #'equal)
                       '("quiet one" "quiet two" "quiet one <2>")))
        (imenu "quiet two")
        (should (equal (funcall at) "❯ quiet two")))
      (with-temp-buffer
        (duet-test-should-say "duet-transcript only" (call-interactively #'duet-prompt-next))
        (duet-test-should-say "duet-transcript only" (call-interactively #'duet-prompt-previous))))))

(provide 'duet-transcript-move-test)
;;; duet-transcript-move-test.el ends here
