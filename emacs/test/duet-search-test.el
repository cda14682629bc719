;;; duet-search-test.el --- Tests of the search in all conversations  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-search)

(defun duet-search-test-results (connection query)
  "Search for QUERY in CONNECTION's project; return the buffer of results."
  (with-current-buffer (duet-sessions-buffer connection)
    (save-window-excursion (duet-search query)))
  (let ((buffer (cl-find-if (lambda (buffer)
                              (eq (buffer-local-value 'major-mode buffer)
                                  'duet-search-mode))
                            (buffer-list))))
    (duet-test-wait-for
     (not (string-match-p "Searching…" (duet-test-text buffer))))
    buffer))

(ert-deftest duet-search-test-finds ()
  "What was said is found, the words are highlighted, and RET opens it there."
  (duet-test-with-project connection
    (let ((one (duet-test-launch connection "quiet about zebras and lions"))
          (two (duet-test-launch connection "quiet about tigers")))
      (duet-test-wait-for-state one 'completed)
      (duet-test-wait-for-state two 'completed)
      (let ((results (duet-search-test-results connection "zebr")))
        (with-current-buffer results
          (goto-char (point-min))
          (should (search-forward "zebras" nil t))
          ;; The title has it, too, and is not highlighted.
          (let ((found nil))
            (goto-char (point-min))
            (while (search-forward "zebras" nil t)
              (when (eq (get-text-property (match-beginning 0) 'face)
                        'duet-search-match)
                (setq found t)))
            (should found))
          (should-not (string-match-p "tigers\\|[«»]" (buffer-string)))
          (goto-char (point-min))
          (save-window-excursion
            (call-interactively #'duet-search-visit)
            (let ((buffer (duet-test-wait-for (duet-transcript-buffer one))))
              (duet-test-wait-for (with-current-buffer buffer
                                    (looking-at-p "zebras")))))))
      (let ((results (duet-search-test-results connection "crocodiles")))
        (should (string-match-p "Nobody has said that" (duet-test-text results)))))))

(ert-deftest duet-search-test-far-back ()
  "A place that is not loaded yet is loaded, in a session that is not known yet."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet tools:130 pelican"))
           (thread (duet-session-id session))
           (duet-history-messages 20))
      (duet-test-wait-for-state session 'completed)
      (let ((results (duet-search-test-results connection "pelican")))
        ;; As if it were older than all that are listed.
        (remhash thread (duet-model-sessions (duet-connection-model connection)))
        (clrhash (duet-model-runs (duet-connection-model connection)))
        (save-window-excursion
          (with-current-buffer results
            (goto-char (point-min))
            (call-interactively #'duet-search-visit))
          (let ((buffer (duet-test-wait-for
                         (when-let ((new (duet-connection-session connection thread)))
                           (duet-transcript-buffer new)))))
            (duet-test-wait-for (with-current-buffer buffer
                                  (looking-at-p "pelican")))
            (with-current-buffer buffer
              (should (zerop (duet-session-offset duet-session)))
              (should (equal (get-text-property (point) 'duet-section)
                             (duet-section-at (point-min)))))))))))

(ert-deftest duet-search-test-moves-and-more ()
  "Places are listed page by page, and n and p move among them."
  (duet-test-with-project connection
    (let ((sessions (mapcar (lambda (n)
                              (duet-test-launch connection
                                                (format "quiet walrus number %d" n)))
                            '(1 2 3)))
          (duet-search-limit 2))
      (dolist (session sessions) (duet-test-wait-for-state session 'completed))
      (with-current-buffer (duet-search-test-results connection "walrus")
        (let ((count (lambda () (how-many "^    " (point-min) (point-max)))))
          (should (= (funcall count) 2))
          (call-interactively #'duet-search-more)
          (duet-test-wait-for (> (funcall count) 2))
          (while duet-search--next
            (let ((before duet-search--next))
              (call-interactively #'duet-search-more)
              (duet-test-wait-for (not (eql before duet-search--next)))))
          (should-error (call-interactively #'duet-search-more) :type 'user-error)
          (goto-char (point-min))
          (let ((hits (list (get-text-property (point) 'duet-hit))))
            (while (duet-search--move 1)
              (push (get-text-property (point) 'duet-hit) hits))
            (should (= (length hits) (funcall count)))
            (should (= (length (delete-dups (copy-sequence hits))) (length hits)))
            (let ((back (list (get-text-property (point) 'duet-hit))))
              (while (duet-search--move -1)
                (push (get-text-property (point) 'duet-hit) back))
              (should (equal back (nreverse hits))))
            (should (bobp))))))))

(ert-deftest duet-search-test-errors ()
  "Nothing, odd words and a server that is not there are no accident."
  (duet-test-with-project connection
    (with-current-buffer (duet-sessions-buffer connection)
      (should-error (duet-search " ") :type 'user-error))
    (dolist (query '("\"" "(" "a OR" "*" "-x" "«" "a\nb" "%s" "x:y"))
      (with-current-buffer (duet-search-test-results connection query)
        (should (> (buffer-size) 0))
        (should (stringp (format-mode-line header-line-format)))))
    (duet-test-end connection)
    (should (string-match-p "." (duet-test-text
                                 (duet-search-test-results connection "word"))))))

(provide 'duet-search-test)
;;; duet-search-test.el ends here
