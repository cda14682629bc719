;;; duet-export-test.el --- Tests of writing sessions to files  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-export)

(defmacro duet-export-test-with-session (names query &rest body)
  "Run BODY after a session for QUERY has ended.
NAMES is a list of two symbols for the connection and the session."
  (declare (indent 2) (debug (sexp form body)))
  (pcase-let ((`(,connection ,session) names))
    `(duet-test-with-project ,connection
       (let ((,session (duet-test-launch ,connection ,query)))
         (duet-test-wait-for-state ,session 'completed)
         (save-window-excursion
           (switch-to-buffer (duet-sessions-buffer ,connection))
           (duet-sessions-go-to (current-buffer) ,session)
           (duet-test-listening ,@body))))))

(defun duet-export-test-program (connection session format)
  "Return what the program prints for SESSION of CONNECTION in FORMAT."
  (with-temp-buffer
    (let ((command (duet-command (duet-connection-root connection) "session" "show"
                                 (duet-session-leaf-id session) "--export" format))
          (coding-system-for-read 'utf-8-unix))
      (should (zerop (apply #'call-process (car command) nil '(t nil) nil (cdr command)))))
    (buffer-string)))

(defun duet-export-test-file (file)
  "Return the content of FILE."
  (with-temp-buffer
    (let ((coding-system-for-read 'utf-8-unix)) (insert-file-contents file))
    (buffer-string)))

(defun duet-export-test-write (name &rest answers)
  "Press W, and write to the file NAME; return that file.
ANSWERS are for the questions whether to overwrite."
  (let (offered file)
    (cl-letf (((symbol-function 'read-file-name)
               (lambda (_ &rest arguments)
                 (setq offered (nth 3 arguments)
                       file (expand-file-name (or name offered)))))
              ((symbol-function 'y-or-n-p) (lambda (&rest _) (pop answers))))
      (duet-test-press "W" #'duet-export-session))
    file))

(ert-deftest duet-export-test-files ()
  "The extension of the file selects the format; the program writes the text."
  (duet-export-test-with-session (connection session) "quiet Grüße — 日本語 \"a/b\""
    (let ((default-directory (duet-connection-root connection)))
      (pcase-dolist (`(,name ,written ,format)
                     '((nil "quiet-grüße-日本語-a-b.md" "md") ("it.json" "it.json" "json")
                       ("it" "it.md" "md")))
        (setq duet-test-said nil)
        (duet-export-test-write name)
        (duet-test-wait-for (duet-test-heard "\\`Wrote "))
        (let ((text (duet-export-test-file written)))
          (should (string-match-p "Grüße — 日本語" text))
          (should (equal text (duet-export-test-program connection session format)))))
      (with-temp-buffer
        (insert-file-contents "it.json")
        (should (equal (duet-get-string (json-parse-buffer :object-type 'plist) :format)
                       "duet-session"))))))

(ert-deftest duet-export-test-refusals ()
  "An existing file needs a confirmation, and other file types are refused."
  (duet-export-test-with-session (connection session) "quiet one"
    (let* ((default-directory (duet-connection-root connection))
           (file (expand-file-name "mine.md")))
      (should (eq session (duet-actions-session)))
      (write-region "mine" nil file nil 'silent)
      (duet-test-should-say "Not written" (duet-export-test-write "mine.md" nil))
      (should (equal (duet-export-test-file file) "mine"))
      (duet-export-test-write "mine.md" t)
      (duet-test-wait-for (duet-test-heard "\\`Wrote "))
      (should (string-match-p "quiet one" (duet-export-test-file file)))
      (duet-test-should-say "ends in \\.md or \\.json" (duet-export-test-write "it.html")))))

(ert-deftest duet-export-test-buffer ()
  "A prefix argument shows the export in a buffer, also from a transcript."
  (duet-export-test-with-session (connection session) "quiet one"
    (duet-transcript-show connection session)
    (dolist (format '("md" "json"))
      (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) format)))
        (duet-test-press "W" #'duet-export-session '(4)))
      (let ((buffer (duet-test-wait-for
                     (get-buffer (format "*duet %s: quiet one*" format)))))
        (should (equal (duet-test-text buffer)
                       (duet-export-test-program connection session format)))
        (should-not (buffer-modified-p buffer))))))

(ert-deftest duet-export-test-gone ()
  "If the session is deleted, the program's error is shown and no file is written."
  (duet-export-test-with-session (connection session) "quiet one"
    (let ((default-directory (duet-connection-root connection)))
      (duet-test-request connection 'session.delete
                         (list :session (duet-session-id session)))
      (setf (duet-session-turns session)
            (list (make-duet-turn :id "2d0bb6ba-0000-0000-0000-000000000000")))
      (duet-export-session session "md" (expand-file-name "it.md"))
      (duet-test-wait-for (duet-test-heard "2d0bb6ba"))
      (should-not (file-exists-p "it.md")))))

(provide 'duet-export-test)
;;; duet-export-test.el ends here
