;;; duet-mouse-test.el --- Tests of mouse commands  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'mwheel)
(require 'duet-test-lib)

(defun duet-mouse-test--find (text)
  "Go into the first TEXT of the buffer, and check that mouse-1 follows it."
  (goto-char (point-min))
  (search-forward text)
  (backward-char)
  (should (get-text-property (point) 'mouse-face))
  (should (eq (key-binding [follow-link]) 'mouse-face)))

(ert-deftest duet-mouse-test-lists ()
  "A click opens entries in the lists of sessions and of questions."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (buffer (duet-sessions-buffer connection)))
      (switch-to-buffer buffer)
      (duet-test-wait-for-text buffer "waiting for you .*hello")
      (duet-mouse-test--find "hello")
      (duet-test-click #'duet-sessions-open-mouse)
      (duet-test-look)
      (should (eq duet-session session))
      (duet-approvals)
      (duet-mouse-test--find "demo.txt")
      (duet-test-click #'duet-approvals-view-mouse)
      (duet-test-look)
      (should (derived-mode-p 'duet-approval-view-mode)))))

(ert-deftest duet-mouse-test-transcript ()
  "A click in a transcript folds the section of a heading, and visits a file."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "tools:1"))
           (buffer (duet-transcript-open connection session)))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-text buffer "Bash echo")
      (switch-to-buffer buffer)
      (dolist (word '("Bash" "echo"))
        (duet-mouse-test--find word)
        (let* ((section (duet-section-at))
               (folded (duet-section-folded-p section)))
          (duet-test-click #'duet-transcript-visit-mouse)
          (should-not (eq folded (duet-section-folded-p section))))))))

(ert-deftest duet-mouse-test-links ()
  "An address in a message is a link, without the punctuation after it."
  (let* ((model (duet-model-create :root "/nowhere/"))
         (session (make-duet-session :id "t" :model model :loaded t))
         (message (make-duet-message :key "m" :kind 'text :session session :turn "r")))
    (duet-model-add-message message)
    (duet-message-append message "See https://example.org/a_b?c=1, or (http://x.org/).")
    (with-temp-buffer
      (duet-transcript-mode)
      (setq duet-session session)
      (duet-transcript--note message 'append)
      (duet-transcript-flush)
      (cancel-timer (or duet-transcript--timer (timer-create)))
      (setq duet-session nil)
      (jit-lock-fontify-now)
      (let ((links '()) (place (point-min)))
        (while (setq place (text-property-not-all place (point-max) 'mouse-face nil))
          (let ((end (next-single-property-change place 'mouse-face nil (point-max))))
            (push (buffer-substring-no-properties place end) links)
            (setq place end)))
        (should (equal links '("http://x.org/" "https://example.org/a_b?c=1")))))))

(defun duet-mouse-test--header-click (words)
  "Click on WORDS in the selected window's header line, from another window."
  (let* ((text (eval (nth 1 header-line-format) t))
         (place (string-match (regexp-quote words) text))
         (window (selected-window))
         (map (and place (get-text-property place 'local-map text))))
    (should map)
    (select-window (split-window))
    (switch-to-buffer "*scratch*")
    (call-interactively (lookup-key map [header-line mouse-1]) nil
                        (vector `(mouse-1 (,window header-line (0 . 0) 0))))
    (duet-test-look)))

(ert-deftest duet-mouse-test-header ()
  "Items of the header line can be clicked, also in an unselected window."
  (duet-test-with-questions connection
    (let* ((session (duet-test-launch connection "hello"))
           (buffer (duet-sessions-buffer connection)))
      (switch-to-buffer buffer)
      (duet-test-wait-for-text buffer "waiting for you .*hello")
      (duet-approvals)
      (delete-other-windows)
      (duet-mouse-test--header-click "View")
      (should (derived-mode-p 'duet-approval-view-mode))
      (delete-other-windows)
      (duet-mouse-test--header-click "Allow")
      (duet-test-wait-for-state session 'completed)
      (delete-other-windows)
      (switch-to-buffer buffer)
      (duet-sessions-compose)
      (delete-other-windows)
      (duet-test-look)
      (insert "quiet")
      (duet-mouse-test--header-click "send")
      (duet-test-wait-for-text buffer "completed .*quiet"))))

(ert-deftest duet-mouse-test-scrolling ()
  "A window that is scrolled to the end follows it again, and no other does."
  (let ((seen nil)
        (called nil))
    (save-window-excursion
      (with-temp-buffer
        (duet-transcript-mode)
        (let ((inhibit-read-only t)) (insert "one\ntwo\n"))
        (set-window-buffer (selected-window) (current-buffer))
        (use-local-map (copy-keymap (current-local-map)))
        (dolist (wheel '(wheel-down wheel-up mouse-4 mouse-5))
          (local-set-key (vector wheel) #'mwheel-scroll)
          ;; Emacs calls this command.
          (should (eq (key-binding (vector wheel)) #'duet-scroll-mouse)))
        (cl-letf (((symbol-function 'mwheel-scroll)
                   (lambda (_event) (interactive "e")
                     (setq called t)
                     (when (eq seen 'beyond) (signal 'end-of-buffer nil))))
                  ((symbol-function 'pos-visible-in-window-p) (lambda (&rest _) seen)))
          (pcase-dolist (`(,wheel ,visible ,follows)
                         '((wheel-down nil nil) (mouse-5 t t) (wheel-down t t)
                           (wheel-down beyond t) (wheel-up t nil) (mouse-4 t nil)))
            (goto-char (point-min))
            (set-window-point (selected-window) (point-min))
            (setq seen visible called nil)
            (let ((event (list wheel (list (selected-window) (point) '(0 . 0) 0))))
              (call-interactively #'duet-scroll-mouse nil (vector event)))
            (should called)
            (should (equal (list wheel visible (= (window-point) (point-max)))
                           (list wheel visible follows)))))))))

(provide 'duet-mouse-test)
;;; duet-mouse-test.el ends here
