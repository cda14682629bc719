;;; duet-search-test.el --- Tests of the search in all sessions  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-search)

(defun duet-search-test-results (connection query)
  "Search for QUERY in CONNECTION's project; return the buffer of results."
  (with-current-buffer (duet-sessions-buffer connection)
    (save-window-excursion
      (duet-test-typing (concat (mapconcat (lambda (char)
                                             (concat "C-q " (key-description (string char))))
                                           query " ")
                                " RET")
        (duet-test-press "/" #'duet-search-or-say))))
  (let ((buffer (cl-find-if (lambda (buffer)
                              (eq (buffer-local-value 'major-mode buffer)
                                  'duet-search-mode))
                            (buffer-list))))
    (duet-test-wait-for
     (not (string-match-p "Searching…" (duet-test-text buffer))))
    buffer))

(ert-deftest duet-search-test-finds ()
  "A search finds messages and highlights the words; RET opens the message."
  (duet-test-with-project connection
    (let ((one (duet-test-launch connection "quiet about zebras and lions"))
          (two (duet-test-launch connection "quiet about tigers")))
      (duet-test-wait-for-state one 'completed)
      (duet-test-wait-for-state two 'completed)
      (let ((results (duet-search-test-results connection "zebr")))
        (with-current-buffer results
          (goto-char (point-min))
          (should (search-forward "zebras" nil t))
          ;; The title has the word, too, and is not highlighted.
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
        (should (string-match-p "No message has these words" (duet-test-text results)))))))

(ert-deftest duet-search-test-numbers ()
  "Matches, and the lists and header lines of sessions, have numbers."
  (duet-test-with-project connection
    (let ((one (duet-test-launch connection "quiet about zebras"))
          (two (duet-test-launch connection "quiet about tigers")))
      (duet-test-wait-for-state one 'completed)
      (duet-test-wait-for-state two 'completed)
      (duet-test-request connection 'session.prompt '(:session 1 :prompt "quiet more zebras"))
      (duet-test-wait-for (and (cdr (duet-session-turns one))
                               (eq (duet-session-state one) 'completed)))
      (let ((results (duet-search-test-results connection "zebr")))
        (should (string-match-p "^1\\.1 .*you" (duet-test-text results)))
        (should (string-match-p "^1\\.2 .*you" (duet-test-text results))))
      (let ((sessions (duet-sessions-buffer connection)))
        (duet-test-wait-for-text sessions "completed +1 quiet about zebras")
        (duet-test-wait-for-text sessions "completed +2 quiet about tigers")
        ;; They are sorted as numbers.
        (with-current-buffer sessions
          (setq tabulated-list-sort-key '("#"))
          (setf (duet-session-number two) "10")
          (duet-sessions--print)
          (should (string-match-p " 1 quiet.*\n.* 10 quiet" (buffer-string)))))
      (should (string-match-p " · 1\\.2 · demo" (duet-header one connection)))
      (should (equal (duet-session-label one "1.1") "1.1 quiet about zebras")))))

(defun duet-search-test-visit (keys)
  "Go to the session or turn that KEYS type in the minibuffer."
  (duet-test-typing keys (call-interactively #'duet-visit)))

(ert-deftest duet-search-test-visit ()
  "The minibuffer accepts the number of a session or of a turn, and names."
  (duet-test-with-project connection
    (let ((one (duet-test-launch connection "quiet first"))
          (two (duet-test-launch connection "quiet other")))
      (duet-test-wait-for-state one 'completed)
      (duet-test-wait-for-state two 'completed)
      (dolist (prompt '("quiet second" "quiet third tools:60"))
        (duet-test-request connection 'session.prompt (list :session 1 :prompt prompt))
        (duet-test-wait-for (not (eq (duet-session-state one) 'completed)))
        (duet-test-wait-for-state one 'completed))
      (save-window-excursion
        (with-current-buffer (duet-sessions-buffer connection)
          (duet-search-test-visit "2 RET")
          (let ((other (duet-test-wait-for (duet-transcript-buffer two))))
            (duet-test-wait-for (eq (window-buffer) other)))
          (let ((duet-history-messages 10))
            (dolist (turn '(("1.2" . "❯ quiet second") ("1.3" . "❯ quiet third")
                            ("1.1" . "❯ quiet first")))
              (duet-search-test-visit (concat (car turn) " RET"))
              (let ((buffer (duet-test-wait-for (duet-transcript-buffer one))))
                (with-current-buffer buffer
                  (duet-test-wait-for (looking-at-p (cdr turn)))))))
          ;; The candidates have the number and the name of each session.
          (duet-search-test-visit "2 C-q SPC q TAB RET")
          (duet-test-wait-for (eq (window-buffer) (duet-transcript-buffer two)))
          (duet-test-should-say "Type the number" (duet-search-test-visit "none RET"))
          (duet-test-listening
            (duet-search-test-visit "9.9 RET")
            (duet-test-wait-for (duet-test-heard "9\\.9"))))))))

(ert-deftest duet-search-test-far-back ()
  "Opening a match loads an unknown session and its earlier messages."
  (duet-test-with-project connection
    (let* ((session (duet-test-launch connection "quiet tools:130 pelican"))
           (uuid (duet-session-id session))
           (duet-history-messages 20))
      (duet-test-wait-for-state session 'completed)
      (let ((results (duet-search-test-results connection "pelican")))
        ;; As if the session were older than all listed ones.
        (remhash uuid (duet-model-sessions (duet-connection-model connection)))
        (clrhash (duet-model-turns (duet-connection-model connection)))
        (save-window-excursion
          (with-current-buffer results
            (goto-char (point-min))
            (call-interactively #'duet-search-visit))
          (let ((buffer (duet-test-wait-for
                         (when-let ((new (duet-connection-session connection uuid)))
                           (duet-transcript-buffer new)))))
            (duet-test-wait-for (with-current-buffer buffer
                                  (looking-at-p "pelican")))
            (with-current-buffer buffer
              (should-not (duet-session-before duet-session))
              (should (equal (get-text-property (point) 'duet-section)
                             (duet-section-at (point-min)))))))))))

(ert-deftest duet-search-test-moves-and-more ()
  "Matches are listed page by page, and `n' and `p' move among them."
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
              (duet-test-press "+" #'duet-search-more)
              (duet-test-wait-for (not (eql before duet-search--next)))))
          (duet-test-should-say "No more matches"
            (duet-test-press "+" #'duet-search-more))
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
            (should (bobp)))
          (let ((first (get-text-property (point) 'duet-hit)))
            (duet-test-press "n" #'duet-search-next)
            (should-not (eq (get-text-property (point) 'duet-hit) first))
            (duet-test-press "n" #'duet-search-next)
            (duet-test-press "p" #'duet-search-previous 2)
            (should (eq (get-text-property (point) 'duet-hit) first))
            ;; Point stops at both ends.
            (duet-test-press "p" #'duet-search-previous)
            (should (bobp)))
          (duet-test-press "g" #'duet-search-refresh)
          (should (string-match-p "Searching…" (buffer-string)))
          (duet-test-wait-for (= (funcall count) 2)))))))

(ert-deftest duet-search-test-other-window ()
  "C-o shows a match and stays in the list; a click goes to it."
  (duet-test-with-project connection
    (let ((session (duet-test-launch connection "quiet about zebras")))
      (duet-test-wait-for-state session 'completed)
      (let ((results (duet-search-test-results connection "zebras")))
        (save-window-excursion
          (switch-to-buffer results)
          (delete-other-windows)
          (goto-char (point-min))
          (duet-test-press "C-o" #'duet-search-display)
          (let ((buffer (duet-test-wait-for (duet-transcript-buffer session))))
            (duet-test-wait-for (with-current-buffer buffer (looking-at-p "zebras")))
            (should (get-buffer-window buffer))
            (should (eq (window-buffer) results))
            (with-current-buffer buffer (goto-char (point-max)))
            (set-buffer results)
            (search-forward "zebras")
            (duet-test-click #'duet-search-visit-mouse)
            (duet-test-wait-for (with-current-buffer buffer (looking-at-p "zebras")))
            (should (eq (window-buffer) buffer)))
          (switch-to-buffer results)
          (goto-char (point-max))
          (pcase-dolist (`(,key . ,command) '(("RET" . duet-search-visit)
                                              ("C-o" . duet-search-display)))
            (duet-test-should-say "No match here"
              (duet-test-press key command))))))))

(ert-deftest duet-search-test-errors ()
  "An empty or odd query and a missing server are reported."
  (duet-test-with-project connection
    (with-current-buffer (duet-sessions-buffer connection)
      (duet-test-typing "SPC RET"
        (duet-test-should-say "nothing to search for"
          (call-interactively #'duet-search)))
      (should (eq 'quit (condition-case nil
                            (duet-test-typing "a C-g" (call-interactively #'duet-search))
                          (quit 'quit)))))
    (dolist (query '("\"" "(" "a OR" "*" "-x" "«" "a\nb" "%s" "x:y"))
      (with-current-buffer (duet-search-test-results connection query)
        (should (> (buffer-size) 0))
        (should (stringp (format-mode-line header-line-format)))))
    (duet-test-end connection)
    (should (string-match-p "not running" (duet-test-text
                                           (duet-search-test-results connection "word"))))))

(provide 'duet-search-test)
;;; duet-search-test.el ends here
