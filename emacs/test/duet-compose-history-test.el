;;; duet-compose-history-test.el --- Tests of stored prompts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(defmacro duet-compose-history-test-with (&rest body)
  "Run BODY with a history file of its own, in the variable FILE."
  (declare (indent 0) (debug t))
  `(let* ((folder (file-name-as-directory (make-temp-file "duet-test" t)))
          (file (concat folder "history.eld"))
          (duet-compose-history-file file))
     (unwind-protect (duet-compose-history-test-emacs ,@body)
       (when duet-compose-history--timer
         (cancel-timer duet-compose-history--timer)
         (setq duet-compose-history--timer nil))
       (delete-directory folder t))))

(defmacro duet-compose-history-test-emacs (&rest body)
  "Run BODY as if Emacs had just started."
  (declare (indent 0) (debug t))
  `(let ((duet-compose-history (make-ring 10))
         (duet-compose-history--loaded nil)
         (duet-compose-history--new nil))
     ,@body))

(defun duet-compose-history-test-all ()
  "Return all remembered prompts."
  (duet-compose-history-load)
  (ring-elements duet-compose-history))

(ert-deftest duet-compose-history-test-restart ()
  "Sent, cancelled, killed and unfinished prompts are in the next Emacs."
  (duet-compose-history-test-with
    (duet-test-with-project connection
      (save-window-excursion
        (duet-compose connection)
        (insert "cancelled: Ünïcode \"quoted\"\n\nof two paragraphs")
        (call-interactively #'duet-compose-cancel)
        (duet-compose connection)
        (insert "killed")
        (kill-buffer)
        (duet-compose connection)
        (insert "being written")
        (duet-compose-history-keep)
        (kill-buffer))
      (should (= (file-modes file) #o600))
      (should-not (cdr (directory-files folder nil "history")))
      (duet-compose-history-test-emacs
        (save-window-excursion
          (duet-compose connection)
          (call-interactively #'duet-compose-previous)
          (should (equal (buffer-string) "being written"))
          (call-interactively #'duet-compose-previous)
          (should (equal (buffer-string) "killed"))
          (call-interactively #'duet-compose-previous)
          (should (equal (buffer-string)
                         "cancelled: Ünïcode \"quoted\"\n\nof two paragraphs")))))))

(ert-deftest duet-compose-history-test-idle ()
  "New prompts are saved when Emacs is idle, so that a crash loses nothing."
  (duet-compose-history-test-with
    (duet-compose-remember "one")
    (should (memq duet-compose-history--timer timer-idle-list))
    (timer-event-handler duet-compose-history--timer)
    (should-not duet-compose-history--timer)
    (duet-compose-history-test-emacs
      (should (equal (duet-compose-history-test-all) '("one"))))))

(ert-deftest duet-compose-history-test-two ()
  "Two Emacs processes keep each other's prompts; the file has a maximum size."
  (duet-compose-history-test-with
    (duet-compose-remember "first")
    (duet-compose-history-test-emacs
      (duet-compose-remember "second")
      (duet-compose-history-save))
    (duet-compose-history-save)
    (duet-compose-history-test-emacs
      (should (equal (duet-compose-history-test-all) '("first" "second")))
      (duet-compose-remember "second")
      (duet-compose-history-save)
      (dotimes (n 300) (duet-compose-remember (format "%d" n)))
      (duet-compose-history-save))
    (duet-compose-history-test-emacs
      (setq duet-compose-history (make-ring 1000))
      (let ((all (duet-compose-history-test-all)))
        (should (= (length all) 200))
        (should (equal (car all) "299"))))))

(ert-deftest duet-compose-history-test-broken ()
  "A file that cannot be read or written causes no error, and is kept."
  (duet-compose-history-test-with
    (write-region "(\"a\" nonsense" nil file nil 'silent)
    (should-not (duet-compose-history-test-all))
    (should (string-match-p "history.eld: End of file" (duet-test-log)))
    (duet-compose-remember "b")
    (duet-compose-history-save)
    (should (equal (with-temp-buffer (insert-file-contents (concat file "~"))
                                     (buffer-string))
                   "(\"a\" nonsense"))
    (duet-compose-history-test-emacs
      (should (equal (duet-compose-history-test-all) '("b"))))
    (let ((duet-compose-history-file (concat folder "not/there")))
      (duet-compose-remember "c")
      (duet-compose-history-save)
      (should (string-match-p "not/there" (duet-test-log)))
      (should (equal (car (duet-compose-history-test-all)) "c")))
    (let ((duet-compose-history-file (directory-file-name folder)))
      (duet-compose-history-save)
      (should (file-directory-p folder)))
    ;; The history is saved where that is possible.
    (duet-compose-history-save)
    (duet-compose-history-test-emacs
      (should (equal (duet-compose-history-test-all) '("c" "b"))))
    (let ((duet-compose-history-file nil))
      (duet-compose-remember "d")
      (duet-compose-history-keep))))

(provide 'duet-compose-history-test)
;;; duet-compose-history-test.el ends here
