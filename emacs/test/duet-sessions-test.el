;;; duet-sessions-test.el --- Tests of the list of sessions with the real server  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(defmacro duet-sessions-test-with-list (connection buffer &rest body)
  "Run BODY with CONNECTION to a project and BUFFER, the list of its sessions."
  (declare (indent 2) (debug (symbolp symbolp body)))
  `(duet-test-with-project ,connection
     (let ((,buffer (duet-sessions-buffer ,connection)))
       (save-window-excursion
         (switch-to-buffer ,buffer)
         ,@body))))

(defun duet-sessions-test-go-to (buffer regexp)
  "Go to the line of BUFFER that REGEXP matches."
  (set-buffer buffer)
  (goto-char (point-min))
  (re-search-forward regexp)
  (beginning-of-line))

(ert-deftest duet-sessions-test-empty ()
  "An empty list tells which key asks an agent for something."
  (duet-sessions-test-with-list connection buffer
    (duet-test-wait-for-text buffer "No sessions yet\\.  c asks")
    (call-interactively #'duet-sessions-toggle-archived)
    (duet-test-wait-for-text buffer "Nothing is in the archive")
    (should-error (call-interactively #'duet-sessions-open) :type 'user-error)
    (should-error (call-interactively #'duet-interrupt) :type 'user-error)))

(ert-deftest duet-sessions-test-live ()
  "The list follows the sessions, and point stays on its own."
  (duet-sessions-test-with-list connection buffer
    (let ((first (duet-test-launch connection "quiet one")))
      (duet-test-wait-for-text buffer "● +completed +quiet one +demo +now")
      (duet-sessions-test-go-to buffer "quiet one")
      (dolist (name '("hello" "fail"))
        (duet-test-launch connection name))
      (duet-test-wait-for-text buffer "\\? +waits for you +hello")
      (duet-test-wait-for-text buffer "✗ +failed +fail ")
      (should (eq (tabulated-list-get-id) first))
      (should (string-match-p "quiet one" (thing-at-point 'line))))))

(ert-deftest duet-sessions-test-commands ()
  "The keys of the list do what they promise."
  (duet-sessions-test-with-list connection buffer
    (call-interactively (key-binding "c"))
    (duet-test-write-and-send "quiet stream:1000@50")
    (duet-test-wait-for-transcript)
    (duet-test-wait-for-text (current-buffer) "chunk 1 ")
    (duet-test-wait-for-text buffer "◐ +running +quiet stream")
    (switch-to-buffer buffer)
    (duet-sessions-test-go-to buffer "quiet stream")
    (call-interactively (key-binding "i"))
    (duet-test-wait-for-text buffer "■ +interrupted +quiet stream")
    (duet-sessions-test-go-to buffer "quiet stream")
    (call-interactively (key-binding (kbd "RET")))
    (should (derived-mode-p 'duet-transcript-mode))
    (switch-to-buffer buffer)
    (call-interactively (key-binding "r"))
    (duet-test-write-and-send "quiet again")
    (duet-test-wait-for-text buffer "● +completed +quiet stream")
    ;; Fork: from the list after the last turn, here after the first.
    (duet-sessions-test-go-to buffer "quiet stream")
    (call-interactively (key-binding (kbd "RET")))
    (duet-test-wait-for-text (current-buffer) "quiet again")
    (goto-char (point-min))
    (search-forward "quiet stream")
    (call-interactively (key-binding "f"))
    (duet-test-write-and-send "quiet elsewhere")
    (duet-test-wait-for (= (length (duet-model-session-list
                                    (duet-connection-model connection)))
                           2))
    (duet-test-wait-for-text buffer "● +completed +quiet elsewhere")
    (duet-test-wait-for-transcript)
    (duet-test-wait-for-text (current-buffer) "chunk 1 [^z-a]*❯ quiet elsewhere")
    (should-not (string-match-p "quiet again" (duet-test-text (current-buffer))))
    ;; The archive.
    (switch-to-buffer buffer)
    (duet-sessions-test-go-to buffer "quiet elsewhere")
    (call-interactively (key-binding "A"))
    (duet-test-wait-for (not (string-match-p "elsewhere" (duet-test-text buffer))))
    (call-interactively (key-binding "a"))
    (duet-test-wait-for-text buffer "elsewhere")
    (call-interactively (key-binding "g"))
    (duet-sessions-test-go-to buffer "elsewhere")
    (duet-rename (duet-session-here) "A new name")
    (duet-test-wait-for-text buffer "A new name")))

(ert-deftest duet-sessions-test-listed-after-restart ()
  "Sessions of an earlier Emacs are listed, and can be opened and gone on with."
  (duet-test-with-project connection
    (let ((session (duet-test-launch connection "quiet first")))
      (duet-test-wait-for-state session 'completed)
      (duet-test-end connection)
      (clrhash duet-connections)
      (let* ((again (duet-connection-ensure default-directory))
             (buffer (duet-sessions-buffer again)))
        (unwind-protect
            (progn
              (should-not (eq again connection))
              (duet-test-wait-for-text buffer "● +completed +quiet first +demo")
              (with-current-buffer buffer
                (duet-sessions-test-go-to buffer "quiet first")
                (save-window-excursion
                  (call-interactively #'duet-sessions-open)
                  (duet-test-wait-for-text (current-buffer) "❯ quiet first\n\nHello")
                  (call-interactively #'duet-continue)
                  (duet-test-write-and-send "quiet second"))
                (duet-test-wait-for-text (duet-transcript-buffer
                                          (duet-connection-session
                                           again (duet-session-id session)))
                                         "Hello[^z-a]*❯ quiet second\n\nHello")))
          (duet-test-end again))))))

(ert-deftest duet-sessions-test-age ()
  "Ages are short."
  (cl-loop for (seconds . age) in '((0 . "now") (59 . "now") (61 . "1m") (3601 . "1h")
                                    (90000 . "1d"))
           do (should (equal (duet-sessions--age
                              (format-time-string "%FT%T.123456789Z"
                                                  (- (float-time) seconds) t))
                             age)))
  (should (equal (duet-sessions--age "") "")))

(provide 'duet-sessions-test)
;;; duet-sessions-test.el ends here
