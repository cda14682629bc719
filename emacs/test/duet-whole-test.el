;;; duet-whole-test.el --- Tests of what is shown whole  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-transcript-visit)

(ert-deftest duet-whole-test-show ()
  "RET where something is left out shows all of it, as it is safe to look at."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet"))
           (buffer (duet-transcript-open connection session))
           (lines (concat (mapconcat (lambda (n) (format "line %d 100%%" n))
                                     (number-sequence 1 300) "\n")
                          "\e[31mred\e[0m")))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "That is all")
      (duet-events-apply
       (duet-connection-model connection)
       (list :seq 1000000
             :event (list :type "conversation_updated" :timestamp "2030-01-01T00:00:00Z"
                          :data (list :session_id (duet-session-leaf-id session)
                                      :event_type "tool_result" :tool_result_for_id "x"
                                      :tool_name "Bash" :tool_status "completed"
                                      :tool_result_content lines))))
      (save-window-excursion
        (switch-to-buffer buffer)
        (duet-test-wait-for-text buffer "characters in all")
        (goto-char (point-min))
        (search-forward "● Bash")
        (duet-test-press "RET" #'duet-transcript-visit)
        (search-forward "characters in all")
        (backward-char)
        (should-not (invisible-p (point)))
        (duet-test-press "RET" #'duet-transcript-visit)
        (should (derived-mode-p 'duet-transcript-whole-mode))
        (should (equal (buffer-substring-no-properties (point-min) (point-max))
                       (concat (string-remove-suffix "\e[31mred\e[0m" lines) "red\n")))
        (should (string-match-p "Bash" header-line-format))
        (duet-test-press "q" #'quit-window)))
    (with-temp-buffer
      (duet-test-should-say "Nothing is left out" (call-interactively #'duet-whole-show)))))

(provide 'duet-whole-test)
;;; duet-whole-test.el ends here
