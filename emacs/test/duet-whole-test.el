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
      (duet-test-should-say "Nothing is hidden" (call-interactively #'duet-whole-show)))))

(ert-deftest duet-whole-test-load ()
  "A result that an event has cut is loaded when the user asks for all of it."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet"))
           (buffer (duet-transcript-open connection session))
           (turn (duet-session-leaf-id session))
           (result (concat (make-string 3000 ?a) "\nthe error"))
           (item (lambda (type &rest members)
                   `( :id 1 :session_id ,turn :event_type ,type :seq 1000000
                      :is_completed t :status "failed" ,@members)))
           (others (lambda (count) (make-list count (list :id 9 :session_id turn
                                                          :event_type "message"
                                                          :content "x" :key "other"))))
           (conversation
            (vconcat (funcall others 5)
                     (list (funcall item "tool_call" :tool_id "x" :tool_name "Bash"
                                    :tool_input_json "{\"command\":\"make\"}")
                           (funcall item "tool_result" :tool_result_for_id "x"
                                    :tool_result_content result))
                     (funcall others 14)))
           (asked 0))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "That is all")
      (duet-events-apply
       (duet-connection-model connection)
       (list :seq 1000000
             :event (list :type "conversation_updated" :timestamp "2030-01-01T00:00:00Z"
                          :data (list :session_id turn :event_type "tool_result"
                                      :tool_result_for_id "x" :tool_name "Bash"
                                      :tool_status "failed" :truncated t
                                      :tool_result_content (make-string 3000 ?a)))))
      (cl-letf (((symbol-function 'duet-connection-request)
                 (lambda (_connection method params &rest keys)
                   (should (eq method 'getConversation))
                   (setq asked (1+ asked))
                   (let* ((total (length conversation))
                          (beg (min total (plist-get params :offset)))
                          ;; Four lines fit into a reply.
                          (end (min total (+ beg (min 4 (plist-get params :limit))))))
                     (funcall (plist-get keys :success-fn)
                              (list :events (seq-subseq conversation beg end)
                                    :total total))))))
        (save-window-excursion
          (switch-to-buffer buffer)
          ;; The end of the loaded part is not shown as the end of the result.
          (duet-test-wait-for-text buffer "… cut: the rest is not loaded yet")
          (should (equal (duet-render-summary (duet-session-message session (concat turn "/x")))
                         "more than 3000 characters"))
          (goto-char (point-min))
          (search-forward "Bash")
          (duet-test-press "TAB" #'duet-section-toggle)
          (should (= asked 7))
          (duet-transcript-flush)
          (should (string-match-p "the error" (duet-test-text buffer)))
          (should (string-match-p "make" (duet-test-text buffer)))
          (should-not (string-match-p "… cut" (duet-test-text buffer)))
          (should (equal (duet-render-summary (duet-session-message session (concat turn "/x")))
                         "the error")))))))

(provide 'duet-whole-test)
;;; duet-whole-test.el ends here
