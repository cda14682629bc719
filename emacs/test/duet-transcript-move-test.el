;;; duet-transcript-move-test.el --- Tests of moving between prompts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-transcript)

(ert-deftest duet-transcript-move-test-moving ()
  "Keys move between prompts, report the ends, and Imenu lists all prompts."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet one"))
           (buffer (duet-transcript-open connection session))
           (imenu-use-popup-menu nil)
           (imenu-max-items 25)
           (at (lambda () (buffer-substring-no-properties (point) (line-end-position)))))
      (dolist (query '("quiet two\nand more" "quiet one"))
        (duet-test-wait-for-state session 'completed)
        (duet-test-request connection 'session.prompt
                           (list :session (duet-session-leaf-id session) :prompt query))
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
          (setf (duet-session-before session) 3)
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

(ert-deftest duet-transcript-move-test-next-error ()
  "From anywhere, `next-error' visits locations of tools, output and prose."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet first"))
           (buffer (duet-transcript-open connection session))
           (folder (concat (duet-connection-root connection) "src/"))
           (seq 1000000))
      (make-directory folder)
      (dolist (name '("rows.py" "main.go" "odd.c"))
        (write-region "1\n2\n3\n4\n5\n" nil (concat folder name) nil 'silent))
      (duet-test-wait-for-state session 'completed)
      (duet-test-request connection 'session.prompt
                         (list :session (duet-session-leaf-id session) :prompt "quiet second"))
      (duet-test-wait-for-text buffer "❯ quiet second\\(.\\|\n\\)*That is all")
      (duet-test-wait-for-state session 'completed)
      (cl-flet ((event (kind &rest data)
                  (duet-events-apply
                   (duet-connection-model connection)
                   (list :seq (cl-incf seq) :kind kind :time "2100-01-01T00:00:01Z"
                         :turn_uuid (duet-session-leaf-id session) :data data))))
        (event "item.changed" :type "tool_call" :key "x" :tool_name "Bash"
               :status "pending" :tool_input '(:command "make"))
        (event "item.changed" :type "tool_call" :key "x" :status "failed"
               :result (concat "src/rows.py:2:1: error: it is lost\n12:30: no file\n"
                               "File \"src/odd.c\", line 4\nsrc/gone.py:3: no file\n"
                               "src/main.go(3,2): too\nit failed here\n"))
        (event "text.delta" :key "m"
               :text "See `src/main.go:5`, and src/rows.py (line 9) is as it was.\n"))
      (with-current-buffer buffer
        (duet-transcript-flush)
        (should (string-match-p "src/main.go:5" (buffer-string))))
      (save-window-excursion
        (delete-other-windows)
        (switch-to-buffer buffer)
        (goto-char (point-max))
        (cl-flet ((go (&rest arguments)
                    (apply #'next-error arguments)
                    (duet-test-look)
                    (list (file-name-nondirectory buffer-file-name)
                          (line-number-at-pos) (current-column))))
          (should (equal (go) '("rows.py" 2 0)))
          ;; Folded text becomes visible.
          (with-current-buffer buffer
            (should (looking-at "src/rows.py:2"))
            (should-not (duet-section-folded-p (duet-section-at))))
          (should (equal (go) '("odd.c" 4 0)))
          (should (get-buffer-window buffer))
          (should (equal (go) '("main.go" 3 1)))
          (should (equal (go) '("main.go" 5 0)))
          (should-error (next-error) :type 'user-error)
          (should (equal (go -2) '("odd.c" 4 0)))
          (should (equal (go 1 t) '("rows.py" 2 0)))
          (should (get-buffer-window buffer))))
      (dolist (name '("rows.py" "main.go" "odd.c"))
        (kill-buffer (get-file-buffer (concat folder name)))))))

(provide 'duet-transcript-move-test)
;;; duet-transcript-move-test.el ends here
