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
  "An empty list names the key that starts a session."
  (duet-sessions-test-with-list connection buffer
    (duet-test-wait-for-text buffer "No sessions yet\\.  c begins")
    (call-interactively #'duet-sessions-toggle-archived)
    (duet-test-wait-for-text buffer "Nothing is in the archive")
    (pcase-dolist (`(,key . ,command)
                   '(("RET" . duet-sessions-open) ("i" . duet-interrupt)
                     ("r" . duet-continue) ("f" . duet-fork) ("T" . duet-rename)
                     ("z" . duet-archive-marked) ("m" . duet-mark) ("D" . duet-delete) ("=" . duet-diff)))
      (duet-test-should-say "There is no session here"
        (duet-test-press key command)))))

(ert-deftest duet-sessions-test-live ()
  "The list is updated by events, and point stays on its session."
  (duet-sessions-test-with-list connection buffer
    (let ((first (duet-test-launch connection "quiet one")))
      (duet-test-wait-for-text buffer "● +completed +[0-9]+ quiet one +demo +now")
      (duet-sessions-test-go-to buffer "quiet one")
      (dolist (name '("hello" "fail"))
        (duet-test-launch connection name))
      (duet-test-wait-for-text buffer "\\? +waiting for you +[0-9]+ hello")
      (duet-test-wait-for-text buffer "✗ +failed +[0-9]+ fail ")
      (should (eq (tabulated-list-get-id) first))
      (should (string-match-p "quiet one" (thing-at-point 'line))))))

(ert-deftest duet-sessions-test-background ()
  "The list shows an agent that works in the background, and `i' ends it."
  (duet-sessions-test-with-list connection buffer
    (let ((session (duet-test-launch connection "slow background")))
      (duet-test-wait-for-text
       buffer "● +completed +[0-9]+ slow background +\\(?:works \\)?in \\(?:the \\)?background: 1")
      (should (equal (duet-session-background-titles session) '("sleep 60")))
      (duet-sessions-test-go-to buffer "slow background")
      (should (duet-menu--running))
      (should (duet-menu-bar--busy-p))
      (duet-test-press "RET" #'duet-sessions-open)
      (duet-test-wait-for-text (current-buffer) "my turn ends")
      (should (string-match-p "completed · 1\\.1 · works in the background: 1 task · demo"
                              (duet-header session connection)))
      (duet-test-press "i" #'duet-interrupt)
      (duet-test-wait-for-text
       (current-buffer)
       "^■ The agent has ended, and with it what it did in the background: sleep 60$")
      (duet-test-wait-for-text buffer "● +completed +[0-9]+ slow background +demo")
      (should-not (duet-menu--running))
      (should-not (string-match-p "background: 1 task" (duet-header session connection)))
      (duet-test-should-say "Nothing is running in this session"
        (duet-test-press "i" #'duet-interrupt)))))

(ert-deftest duet-sessions-test-commands ()
  "The keys of the list run their commands."
  (duet-sessions-test-with-list connection buffer
    (duet-test-press "c" #'duet-sessions-compose)
    (duet-test-write-and-send "quiet stream:1000@50")
    (duet-test-wait-for-transcript)
    (duet-test-wait-for-text (current-buffer) "chunk 1 ")
    (duet-test-wait-for-text buffer "◐ +running +[0-9]+ quiet stream")
    (switch-to-buffer buffer)
    (duet-sessions-test-go-to buffer "quiet stream")
    (duet-test-press "i" #'duet-interrupt)
    (duet-test-wait-for-text buffer "■ +interrupted +[0-9]+ quiet stream")
    (duet-sessions-test-go-to buffer "quiet stream")
    (duet-test-press "RET" #'duet-sessions-open)
    (should (derived-mode-p 'duet-transcript-mode))
    (switch-to-buffer buffer)
    (duet-test-press "r" #'duet-continue)
    (duet-test-write-and-send "quiet again")
    (duet-test-wait-for-text buffer "● +completed +[0-9]+ quiet stream")
    ;; Fork after the last turn from the list, and after the first one from here.
    (duet-sessions-test-go-to buffer "quiet stream")
    (duet-test-press "RET" #'duet-sessions-open)
    (duet-test-wait-for-text (current-buffer) "quiet again")
    (goto-char (point-min))
    (search-forward "quiet stream")
    (duet-test-press "f" #'duet-fork)
    (duet-test-write-and-send "quiet elsewhere")
    (duet-test-wait-for (= (length (duet-model-session-list
                                    (duet-connection-model connection)))
                           2))
    (duet-test-wait-for-text buffer "● +completed +[0-9]+ quiet elsewhere")
    (duet-test-wait-for-transcript)
    (duet-test-wait-for-text (current-buffer) "chunk 1 [^z-a]*❯ quiet elsewhere")
    (should-not (string-match-p "quiet again" (duet-test-text (current-buffer))))
    ;; Now the archive.
    (switch-to-buffer buffer)
    (duet-sessions-test-go-to buffer "quiet elsewhere")
    (duet-test-press "z" #'duet-archive-marked)
    (duet-test-wait-for (not (string-match-p "elsewhere" (duet-test-text buffer))))
    (duet-test-press "Z" #'duet-sessions-toggle-archived)
    (duet-test-wait-for-text buffer "elsewhere")))

(ert-deftest duet-sessions-test-listed-after-restart ()
  "Sessions of an earlier Emacs are listed, and can be opened and continued."
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
              (duet-test-wait-for-text buffer "● +completed +[0-9]+ quiet first +demo")
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
  (duet-test-with-clock-stopped
    (cl-loop for (seconds . age) in '((0 . "now") (59 . "now") (61 . "1m") (3601 . "1h")
                                      (90000 . "1d"))
             do (should (equal (duet-sessions--age
                                (format-time-string "%FT%T.%NZ"
                                                    (time-subtract duet-test-now seconds) t))
                               age))))
  (should (equal (duet-sessions--age "") "")))

(ert-deftest duet-sessions-test-rename ()
  "`T' asks for another name; a quit or an empty name changes nothing."
  (duet-sessions-test-with-list connection buffer
    (let ((session (duet-test-launch connection "quiet one")))
      (duet-test-wait-for-text buffer "● +completed +[0-9]+ quiet one")
      (duet-sessions-test-go-to buffer "quiet one")
      (duet-test-should-quit "C-a x C-g"
        (duet-test-press "T" #'duet-rename))
      (duet-test-listening
        (duet-test-typing "C-a C-k SPC RET"
          (duet-test-should-say "needs a name"
            (duet-test-press "T" #'duet-rename)))
        ;; The prompt has the old name as initial input.
        (duet-test-typing "SPC 100 % RET"
          (duet-test-press "T" #'duet-rename))
        (duet-test-wait-for (duet-test-heard "^Renamed: quiet one 100%$")))
      (duet-test-wait-for-text buffer "quiet one 100%")
      ;; The server has the new name too.
      (should (equal (duet-get-string (duet-test-request
                                       connection 'turn.get
                                       (list :turn (duet-session-leaf-id session)))
                                      :turn :title)
                     "quiet one 100%")))))

(ert-deftest duet-sessions-test-new-line ()
  "After a prompt from the list, point is at the line of its session."
  (duet-sessions-test-with-list connection buffer
    (duet-test-launch connection "quiet one")
    (duet-test-wait-for-text buffer "● +completed +[0-9]+ quiet one")
    (duet-sessions-test-go-to buffer "quiet one")
    (duet-test-press "c" #'duet-sessions-compose)
    (duet-test-write-and-send "quiet two")
    (duet-test-wait-for-transcript)
    (switch-to-buffer buffer)
    (duet-test-wait-for-text buffer "● +completed +[0-9]+ quiet two")
    (should (string-match-p "quiet two" (thing-at-point 'line)))
    ;; A prompt from elsewhere does not move point.
    (duet-sessions-test-go-to buffer "quiet one")
    (with-temp-buffer
      (setq default-directory (duet-connection-root connection))
      (call-interactively #'duet-new)
      (duet-test-write-and-send "quiet three"))
    (duet-test-wait-for-text buffer "● +completed +[0-9]+ quiet three")
    (with-current-buffer buffer
      (should (string-match-p "quiet one" (thing-at-point 'line))))))

(ert-deftest duet-sessions-test-archive-line ()
  "After `z' point is on the next session, and the archive has a title."
  (duet-sessions-test-with-list connection buffer
    (dolist (name '("quiet one" "quiet two" "quiet three"))
      (duet-test-launch connection name)
      (duet-test-wait-for-text buffer (concat "● +completed +[0-9]+ " name)))
    (set-buffer buffer)
    (let ((names (mapcar #'duet-session-name (duet-sessions--shown)))
          (title (lambda () (format "%s" header-line-format))))
      (goto-char (point-min))
      (forward-line 1)
      (duet-test-listening
        (duet-test-press "z" #'duet-archive-marked)
        (duet-test-wait-for (duet-test-heard "^Archived; Z shows the archive$")))
      (duet-test-wait-for (length= (duet-sessions--shown) 2))
      (should (equal (duet-session-name (tabulated-list-get-id)) (nth 2 names)))
      (should (= (line-number-at-pos) 2))
      ;; After the last session, point is on the one before it.
      (duet-test-press "z" #'duet-archive-marked)
      (duet-test-wait-for (length= (duet-sessions--shown) 1))
      (should (equal (duet-session-name (tabulated-list-get-id)) (nth 0 names)))
      (should-not (string-match-p "archive" (funcall title)))
      (tabulated-list-sort 3)
      (duet-test-press "Z" #'duet-sessions-toggle-archived)
      (should (string-match-p "Session (archive)" (funcall title)))
      (should (= (point) (point-min)))
      (should (length= (duet-sessions--shown) 2))
      (duet-test-press "Z" #'duet-sessions-toggle-archived)
      (should-not (string-match-p "archive" (funcall title))))))

(ert-deftest duet-sessions-test-archive ()
  "A session is archived from its transcript, and restored."
  (duet-sessions-test-with-list connection buffer
    (let ((session (duet-test-launch connection "quiet one")))
      (duet-test-wait-for-text buffer "● +completed +[0-9]+ quiet one")
      (duet-test-listening
        (with-current-buffer (duet-transcript-open connection session)
          (call-interactively #'duet-archive)
          (duet-test-wait-for (duet-test-heard "^Archived; Z in the list of sessions shows the archive$"))
          (duet-test-wait-for-text buffer "All sessions are in the archive")
          (call-interactively #'duet-archive)
          (duet-test-wait-for (duet-test-heard "^Taken back from the archive$"))
          (duet-test-wait-for-text buffer "quiet one"))
        (with-temp-buffer
          (duet-test-should-say "There is no session here"
            (call-interactively #'duet-archive)))))))

(ert-deftest duet-sessions-test-mouse ()
  "A click opens the session at its position."
  (duet-sessions-test-with-list connection buffer
    (let ((session (duet-test-launch connection "quiet one")))
      (duet-test-wait-for-state session 'completed)
      (duet-test-wait-for-state (duet-test-launch connection "quiet two") 'completed)
      (duet-test-wait-for-text buffer "quiet two.*\n.*quiet one")
      (duet-sessions-test-go-to buffer "quiet one")
      (duet-test-click #'duet-sessions-open-mouse)
      (should (eq duet-session session))
      (switch-to-buffer buffer)
      (goto-char (point-max))
      (duet-test-should-say "There is no session here"
        (call-interactively #'duet-sessions-open-mouse nil
                            (vector `(mouse-2 (,(selected-window) ,(point-max) (0 . 0) 0))))))))

(ert-deftest duet-sessions-test-refresh ()
  "`g' refreshes from the server, and starts it if it was stopped."
  (duet-sessions-test-with-list connection buffer
    (let* ((session (duet-test-launch connection "quiet one"))
           (sessions (duet-model-sessions (duet-connection-model connection))))
      (duet-test-wait-for-text buffer "● +completed +[0-9]+ quiet one")
      ;; As if no event had reported the session.
      (remhash (duet-session-id session) sessions)
      (duet-sessions--print)
      (should (string-match-p "No sessions yet" (buffer-string)))
      (duet-test-press "g" #'duet-sessions-refresh)
      (duet-test-wait-for-text buffer "● +completed +[0-9]+ quiet one")
      (call-interactively #'duet-stop)
      (should (eq (duet-connection-state connection) 'stopped))
      (duet-test-wait-for (string-match-p "stopped" (duet-sessions--mode-line)))
      (let ((duet-rpc-command '("no-such-program-anywhere")))
        (duet-test-should-say "Cannot find the program no-such-program-anywhere"
          (duet-test-press "g" #'duet-sessions-refresh)))
      (duet-test-press "g" #'duet-sessions-refresh)
      (duet-test-wait-for (eq (duet-connection-state connection) 'ready)))))

(ert-deftest duet-sessions-test-entry ()
  "The command shows the list from any buffer of the project, or of a chosen one."
  (duet-test-with-project connection
    (let* ((root (duet-connection-root connection))
           (other (file-name-as-directory (expand-file-name "../other" root))))
      (make-directory (expand-file-name "sub" root))
      (make-directory (expand-file-name ".git" other) t)
      (save-window-excursion
        (with-temp-buffer
          (setq default-directory (expand-file-name "sub/" root))
          (call-interactively #'duet))
        (duet-test-look)
        (should (derived-mode-p 'duet-sessions-mode))
        (should (eq duet-connection connection))
        ;; A transcript belongs to its project, in any directory of its agent.
        (let ((session (duet-test-launch connection "quiet one")))
          (switch-to-buffer (duet-transcript-open connection session))
          (setq default-directory other)
          (duet-test-press "l" #'duet)
          (should (derived-mode-p 'duet-sessions-mode))
          (should (eq duet-connection connection)))
        (should (eq 'quit (condition-case nil
                              (let ((current-prefix-arg '(4)))
                                (duet-test-typing "C-g" (call-interactively #'duet)))
                            (quit 'quit))))
        (let ((current-prefix-arg '(4)))
          (duet-test-typing (concat "C-a C-k " (key-description other) " RET")
            (call-interactively #'duet)))
        (should (derived-mode-p 'duet-sessions-mode))
        (should (equal (duet-connection-root duet-connection) other))
        (let ((second duet-connection))
          (duet-test-wait-for (eq (duet-connection-state second) 'ready))
          (duet-test-end second))
        (duet-test-with-no-machine away
          (with-temp-buffer
            (setq default-directory away)
            (duet-test-should-say "Cannot look for a project on /away:box:"
              (call-interactively #'duet))
            (duet-test-should-say "Cannot look for a project on /away:box:"
              (call-interactively #'duet-new))
            (setq default-directory temporary-file-directory)))))))

(ert-deftest duet-sessions-test-new ()
  "The prompt of a new session can be composed from any buffer of the project."
  (duet-test-with-project connection
    (save-window-excursion
      (with-temp-buffer
        (setq default-directory (duet-connection-root connection))
        (call-interactively #'duet-new))
      (duet-test-look)
      (should (derived-mode-p 'duet-compose-mode))
      (should-not duet-session)
      (duet-test-write-and-send "quiet please")
      (duet-test-wait-for-transcript)
      (should (eq duet-connection connection))
      (let ((first duet-session))
        (call-interactively #'duet-new)
        (should-not duet-session)
        (duet-test-write-and-send "quiet again")
        (duet-test-wait-for-transcript (duet-transcript-buffer first))
        (should-not (eq duet-session first))))))

(ert-deftest duet-sessions-test-no-project ()
  "Outside a project, nothing is started or written before a confirmation."
  (duet-test-with-project connection
    (let* ((folder (file-name-as-directory
                    (expand-file-name "../elsewhere" (duet-connection-root connection))))
           (asked '())
           (answer nil))
      (make-directory folder)
      (save-window-excursion
        (with-temp-buffer
          (setq default-directory folder)
          (cl-letf (((symbol-function 'y-or-n-p)
                     (lambda (prompt) (push prompt asked) answer)))
            (dolist (command (list #'duet #'duet-new #'duet-connection-here))
              (setq asked nil)
              (duet-test-should-say "Not started"
                (if (commandp command) (call-interactively command) (funcall command)))
              (should (string-match-p "\\`There is no project around .*elsewhere/; work in it\\? \\'"
                                      (car asked))))
            (should-not (directory-files folder nil "duet"))
            (should (= (hash-table-count duet-connections) 1))
            ;; A directory that project.el takes for a project is one.
            (let ((project-find-functions (list (lambda (dir) (cons 'transient dir)))))
              (should-not (duet-project-confirm folder)))
            (setq answer t)
            (call-interactively #'duet)
            (let ((other (gethash (expand-file-name folder) duet-connections)))
              (should other)
              (unwind-protect
                  (progn
                    (duet-test-wait-for (eq (duet-connection-state other) 'ready))
                    (setq asked nil)
                    (call-interactively #'duet)
                    (should-not asked))
                (duet-test-end other)))))))))

(provide 'duet-sessions-test)
;;; duet-sessions-test.el ends here
