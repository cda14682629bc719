;;; duet-bookmark-test.el --- Tests of bookmarks  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'bookmark)
(require 'duet-test-lib)
(require 'duet-bookmark)

(ert-deftest duet-bookmark-test-jump ()
  "A bookmark returns to a list, a transcript and changes, also in a new Emacs."
  (duet-test-with-project connection
    (let* ((bookmark-alist nil)
           (bookmark-save-flag nil)
           (root (duet-connection-root connection))
           (session (duet-test-launch connection "quiet words"))
           (id (duet-session-id session)))
      (duet-test-wait-for-state session 'completed)
      (save-window-excursion
        (with-current-buffer (duet-sessions-buffer connection) (bookmark-set "list"))
        (with-current-buffer (duet-transcript-open connection session)
          (duet-test-typing "RET" (bookmark-set nil))
          (bookmark-set "words"))
        (duet-diff session)
        (bookmark-set "changes")
        (should (member "quiet words" (bookmark-all-names)))
        (pcase-dolist (`(,name . ,mode) '(("list" . duet-sessions-mode)
                                          ("words" . duet-transcript-mode)
                                          ("changes" . duet-diff-mode)))
          (switch-to-buffer "*scratch*")
          (bookmark-jump name)
          (should (eq (buffer-local-value 'major-mode (window-buffer)) mode)))
        ;; As in a new Emacs, without any state.
        (duet-test-end connection)
        (mapc (lambda (buffer)
                (when (with-current-buffer buffer
                        (derived-mode-p 'duet-transcript-mode 'duet-sessions-mode 'duet-diff-mode))
                  (kill-buffer buffer)))
              (buffer-list))
        (clrhash duet-connections)
        (bookmark-jump "words")
        (should (eq (buffer-local-value 'major-mode (window-buffer)) 'duet-sessions-mode))
        (let ((next (gethash root duet-connections)))
          (unwind-protect
              (progn
                (duet-test-wait-for-transcript)
                (should (equal (duet-session-id duet-session) id)))
            (duet-test-end next)))))))

(ert-deftest duet-bookmark-test-gone ()
  "A bookmark of a deleted session reports an error."
  (duet-test-with-project connection
    (let ((bookmark-alist `(("gone" (project . ,(duet-connection-root connection))
                             (session . "nobody") (handler . duet-bookmark-jump))))
          (bookmark-save-flag nil))
      (save-window-excursion
        (duet-test-listening
          (bookmark-jump "gone")
          (duet-connection-refresh connection)
          (duet-test-wait-for (duet-test-heard "this session no longer exists")))))))

(provide 'duet-bookmark-test)
;;; duet-bookmark-test.el ends here
