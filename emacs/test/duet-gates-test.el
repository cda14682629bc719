;;; duet-gates-test.el --- Tests of gates  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-model)

(ert-deftest duet-gates-test-run ()
  "The transcript shows the results of gates; its header line shows their state."
  (duet-test-with-project connection
    ;; A file of the project would need trust before its programs run.
    (delete-file (expand-file-name ".duet.toml" (duet-connection-root connection)))
    (let* ((seen '())
           (note (lambda (_model kind session &rest _)
                   (when (and session (memq kind '(session gate)))
                     (cl-pushnew (substring-no-properties (or (duet-gates-header session) ""))
                                 seen :test #'equal)))))
      (duet-model-add-observer note (duet-connection-model connection))
      (let* ((session (duet-test-launch connection "quiet hello" :agent "demo" :max_iterations 1
                                        :gates ["echo main.c:3:1: error: wrong; exit 1"]))
             (transcript (duet-transcript-open connection session)))
        (duet-test-wait-for (equal (duet-gates-header session) "gates failed"))
        (should (member "turn 1 of 1" seen))
        (should (cl-some (lambda (text) (string-match-p "\\`turn 1 of 1, checks echo main" text))
                         seen))
        (duet-test-wait-for-text transcript "main\\.c:3:1")
        (with-current-buffer transcript
          (should (string-match-p "gates failed" (duet-header session connection))))
        ;; A request to the server returns the same.
        (setf (duet-session-gates session) nil)
        (duet-connection-ask connection (duet-turn-id (duet-session-leaf session)))
        (duet-test-wait-for (equal (duet-gates-header session) "gates failed")))
      (should (equal (duet-test-log) "")))))

(ert-deftest duet-gates-test-passed ()
  "Gates that pass are shown; a session without gates shows nothing."
  (duet-test-with-project connection
    (delete-file (expand-file-name ".duet.toml" (duet-connection-root connection)))
    (let ((session (duet-test-launch connection "quiet hello" :agent "demo" :gates ["true"])))
      (duet-test-wait-for (equal (duet-gates-header session) "gates passed"))
      (let ((without (duet-test-launch connection "quiet hello")))
        (duet-test-wait-for-state without 'completed)
        (should-not (duet-gates-header without)))
      (should (equal (duet-test-log) "")))))

(provide 'duet-gates-test)
;;; duet-gates-test.el ends here
