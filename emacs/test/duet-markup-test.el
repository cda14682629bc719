;;; duet-markup-test.el --- Tests of when text gets its faces  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(ert-deftest duet-markup-test-before-it-is-drawn ()
  "What is written in sight has its faces before Emacs draws it.
A \\`C-g' that comes while Emacs draws and calls a function for the faces
would be lost."
  (let* ((model (duet-model-create :root "/nowhere/"))
         (session (make-duet-session :id "t" :model model :loaded t))
         (message (make-duet-message :key "m" :kind 'text :session session
                                     :run "r" :open t)))
    (duet-model-add-message message)
    (save-window-excursion
      (with-temp-buffer
        (duet-transcript-mode)
        (setq duet-session session)
        (dolist (shown '(nil t))
          (when shown
            (set-window-buffer (selected-window) (current-buffer))
            (goto-char (point-max))
            (set-window-point (selected-window) (point-max)))
          (dotimes (_ 3)
            (duet-markup-test--say message "some **bold** text\n")
            (duet-transcript-flush))
          ;; Nobody sees it, nobody pays for it.
          (should (eq (and (text-property-any (point-min) (point-max) 'fontified nil) t)
                      (not shown))))
        (cancel-timer (or duet-transcript--timer (timer-create)))
        (setq duet-session nil)
        (goto-char (point-max))
        (search-backward "bold")
        (should (eq (get-text-property (point) 'face) 'bold))))))

(defun duet-markup-test--say (message text)
  "Add TEXT to MESSAGE, and note that in the transcript."
  (duet-message-append message text)
  (duet-transcript--note message 'append))

(provide 'duet-markup-test)
;;; duet-markup-test.el ends here
