;;; duet-transcript-test.el --- Tests of lists and transcripts with the real server  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(ert-deftest duet-transcript-test-launch-and-stream ()
  "What an agent says is shown as it comes, and whole in the end."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet think stream:50@100"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-text buffer "chunk 2")
      (should-not (string-match-p "chunk 50" (duet-test-text buffer)))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "chunk 50")
      (let ((text (duet-test-text buffer)))
        (should (string-match-p "^❯ quiet think stream:50@100$" text))
        (should (string-match-p "Thought" text))
        (should (= (length (split-string text "chunk 1 ")) 2)))
      (should (equal (duet-test-log) "")))))

(provide 'duet-transcript-test)
;;; duet-transcript-test.el ends here
