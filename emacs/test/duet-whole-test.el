;;; duet-whole-test.el --- Tests of showing a text in full  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-transcript)

(ert-deftest duet-whole-test-show ()
  "RET at an omission shows the whole text, with invisible characters written out."
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
       (list :seq 1000000 :kind "item.changed" :time "2030-01-01T00:00:00Z"
             :turn_uuid (duet-session-leaf-id session)
             :data (list :type "tool_call" :key "x" :tool_name "Bash" :status "completed"
                         :result lines)))
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
      (duet-test-should-say "Nothing is hidden" (call-interactively #'duet-whole-show)))))

(ert-deftest duet-whole-test-load ()
  "A result that an event has cut is loaded when the user asks for all of it."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet"))
           (buffer (duet-transcript-open connection session))
           (turn (duet-session-leaf-id session))
           (result (concat (make-string 3000 ?a) "\nthe error"))
           (asked 0))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "That is all")
      (duet-events-apply
       (duet-connection-model connection)
       (list :seq 1000000 :kind "item.changed" :time "2030-01-01T00:00:00Z" :turn_uuid turn
             :data (list :type "tool_call" :key "x" :tool_name "Bash" :status "failed"
                         :truncated t :result (make-string 3000 ?a))))
      (cl-letf (((symbol-function 'duet-connection-request)
                 (lambda (_connection method params &rest keys)
                   (should (eq method 'session.items))
                   (should (equal params (list :turn turn :key "x")))
                   (setq asked (1+ asked))
                   (funcall (plist-get keys :success-fn)
                            `(:items [( :id 1 :turn_uuid ,turn :turn_state "completed"
                                        :type "tool_call" :key "x" :seq 1000000
                                        :tool_name "Bash" :status "failed"
                                        :tool_input (:command "make") :result ,result)])))))
        (save-window-excursion
          (switch-to-buffer buffer)
          ;; The end of the loaded part is not shown as the end of the result.
          (duet-test-wait-for-text buffer "… cut: the rest is not loaded yet")
          (should (equal (duet-render-summary (duet-session-message session (concat turn "/x")))
                         "more than 3000 characters"))
          (goto-char (point-min))
          (search-forward "Bash")
          (duet-test-press "TAB" #'duet-section-toggle)
          (should (= asked 1))
          (duet-transcript-flush)
          (should (string-match-p "the error" (duet-test-text buffer)))
          (should (string-match-p "make" (duet-test-text buffer)))
          (should-not (string-match-p "… cut" (duet-test-text buffer)))
          (should (equal (duet-render-summary (duet-session-message session (concat turn "/x")))
                         "the error")))))))

(provide 'duet-whole-test)
;;; duet-whole-test.el ends here
