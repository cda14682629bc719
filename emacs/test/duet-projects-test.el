;;; duet-projects-test.el --- Tests of the list of all projects, with the real server  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-menu)
(require 'duet-projects)

(defun duet-projects-test-other (connection name)
  "Make a project NAME beside that of CONNECTION; return its directory."
  (let ((root (file-name-as-directory
               (expand-file-name name (concat (duet-connection-root connection) "..")))))
    (make-directory root t)
    (write-region "default_agent = \"demo\"\n" nil (concat root ".duet.toml") nil 'silent)
    root))

(defun duet-projects-test-prompt (root prompt)
  "Run PROMPT with duet-rpc in the project ROOT, and wait for its end."
  (let ((command (duet-command root "prompt" "--yes" prompt)))
    (with-temp-buffer
      (unless (zerop (apply #'call-process (car command) nil t nil (cdr command)))
        (ert-fail (buffer-string))))))

(defmacro duet-projects-test-with-list (names &rest body)
  "Run BODY in the list of all projects.
NAMES is a list of two symbols: for a connection, and for the directory of
a project without one.  Each project has a session."
  (declare (indent 1) (debug (sexp body)))
  (pcase-let ((`(,connection ,other) names))
    `(duet-test-with-project ,connection
       (let ((,other (duet-projects-test-other ,connection "other")))
         (duet-projects-test-prompt ,other "quiet elsewhere")
         (duet-test-wait-for-state (duet-test-launch ,connection "quiet here") 'completed)
         (save-window-excursion
           (duet-projects)
           (duet-test-wait-for (zerop duet-projects--asking))
           ,@body)))))

(defun duet-projects-test-go-to (regexp)
  "Go to the line of the current buffer that REGEXP matches."
  (goto-char (point-min))
  (re-search-forward regexp)
  (beginning-of-line))

(ert-deftest duet-projects-test-lists ()
  "The list has sessions of all projects, with or without a running daemon."
  (duet-projects-test-with-list (connection other)
    (should (string-match-p "● +completed +other +1 quiet elsewhere +demo +now"
                            (duet-test-text (current-buffer))))
    (should (string-match-p "● +completed +project +1 quiet here +demo +now"
                            (duet-test-text (current-buffer))))
    ;; The request starts no server, and point stays.
    (should-not (gethash other duet-connections))
    (duet-projects-test-go-to "elsewhere")
    ;; Connected projects are updated by events.
    (duet-test-launch connection "hello")
    (duet-test-wait-for-text (current-buffer) "\\? +waiting for you +project +[0-9]+ hello")
    (should (looking-at-p ".*elsewhere"))
    ;; Other projects are updated by a refresh.
    (duet-projects-test-prompt other "quiet later")
    (duet-test-press "g" #'duet-projects-refresh)
    (duet-test-wait-for-text (current-buffer) "● +completed +other +2 quiet later")
    (duet-projects-test-prompt other "quiet last")
    (duet-test-end-daemon other)
    (duet-test-press "g" #'duet-projects-refresh)
    (duet-test-wait-for-text (current-buffer) "● +completed +other +3 quiet last")
    (should (looking-at-p ".*elsewhere"))))

(ert-deftest duet-projects-test-open ()
  "RET opens a session with the connection of its own project."
  (duet-projects-test-with-list (connection other)
    (let ((list (current-buffer)))
      (duet-projects-test-go-to "elsewhere")
      (duet-test-press "RET" #'duet-projects-open)
      (let ((its (gethash other duet-connections)))
        (unwind-protect
            (progn
              (should-not (eq its connection))
              (duet-test-wait-for-transcript)
              (should (eq duet-connection its))
              (duet-test-wait-for-text (current-buffer) "❯ quiet elsewhere\n\nHello")
              ;; A session in the archive, which is not listed, is found, too.
              (let ((session duet-session))
                (duet-test-request its 'session.archive
                                   (list :sessions (vector (duet-session-id session))
                                         :archived t))
                (kill-buffer)
                (clrhash (duet-model-sessions (duet-connection-model its)))
                (clrhash (duet-model-turns (duet-connection-model its)))
                (duet-bookmark--ask its (duet-session-id session) nil)
                (duet-test-wait-for-transcript)
                (should (equal (duet-session-id duet-session) (duet-session-id session)))))
          (duet-test-end its)))
      (switch-to-buffer list)
      (duet-projects-test-go-to "here")
      (duet-test-press "RET" #'duet-projects-open)
      (duet-test-wait-for-transcript)
      (should (eq duet-connection connection)))))

(ert-deftest duet-projects-test-narrow ()
  "`l' lists the sessions of a project, `P' those of all projects."
  (duet-projects-test-with-list (connection other)
    (ignore other)
    (duet-projects-test-go-to "here")
    (duet-test-press "l" #'duet-projects-narrow)
    (should (derived-mode-p 'duet-sessions-mode))
    (should (eq duet-connection connection))
    (should (equal (duet-session-name (duet-actions-session)) "quiet here"))
    (duet-test-press "l" #'duet)
    (should (derived-mode-p 'duet-sessions-mode))
    (duet-test-press "P" #'duet-projects)
    (should (derived-mode-p 'duet-projects-mode))
    (duet-projects-test-go-to "here")
    (duet-test-press "c" #'duet-projects-compose)
    (duet-test-write-and-send "quiet more")
    (duet-test-wait-for-transcript)
    (should (eq duet-connection connection))))

(ert-deftest duet-projects-test-session-keys ()
  "Session keys work on the session at point, and start its server if necessary."
  (duet-projects-test-with-list (connection other)
    (let ((list (current-buffer))
          (root (duet-connection-root connection)))
      (dolist (key '("i" "r" "f" "/" "T" "W" "D" "=" "M-="))
        (should (equal (list key (key-binding (kbd key)))
                       (list key (lookup-key duet-sessions-mode-map (kbd key))))))
      (should (eq (key-binding "z") #'duet-archive))
      ;; The menu starts no server.
      (duet-projects-test-go-to "elsewhere")
      (should (equal (duet-session-name (duet-actions-session t)) "quiet elsewhere"))
      (should-not (gethash other duet-connections))
      (unwind-protect
          (progn
            (duet-test-typing "C-a C-k Renamed RET" (duet-test-press "T" #'duet-rename))
            (duet-test-wait-for-text list "other +1 Renamed")
            (should (gethash other duet-connections))
            ;; A command is for its session, wherever point is by then.
            (duet-projects-test-go-to "Renamed")
            (let ((session (duet-actions-session)))
              (duet-projects-test-go-to "here")
              (duet-rename session "Renamed again"))
            (duet-test-wait-for-text list "other +1 Renamed again")
            (duet-projects-test-go-to "Renamed")
            (duet-test-press "r" #'duet-continue)
            (should (equal (duet-connection-root duet-connection) other))
            (duet-test-write-and-send "quiet hang")
            (duet-test-wait-for-transcript)
            (switch-to-buffer list)
            (duet-test-wait-for-text list "running +other +1 Renamed")
            (duet-projects-test-go-to "Renamed")
            (duet-test-press "i" #'duet-interrupt)
            (duet-test-wait-for-text list "interrupted +other +1 Renamed")
            (duet-projects-test-go-to "here")
            (duet-test-press "z" #'duet-archive)
            (duet-test-wait-for (not (string-match-p "quiet here" (duet-test-text list))))
            ;; The command `duet', on any key, shows the project at point.
            (duet-projects-test-go-to "Renamed")
            (call-interactively #'duet)
            (should (derived-mode-p 'duet-sessions-mode))
            (should (equal (duet-connection-root duet-connection) other))
            (switch-to-buffer list)
            (goto-char (point-max))
            (should (equal (duet-connection-directory-here) default-directory)))
        (when-let ((its (gethash other duet-connections))) (duet-test-end its)))
      (should (equal root (duet-connection-root connection))))))

(ert-deftest duet-projects-test-start ()
  "A session stays in the list, and point on it, while its project's server starts."
  (duet-projects-test-with-list (connection other)
    (ignore connection)
    (duet-projects-test-go-to "elsewhere")
    (let* ((its (duet-connection-ensure other))
           (model (duet-connection-model its))
           (stays '()))
      (duet-model-follow (lambda (&rest _)
                           (duet-projects--print)
                           (push (looking-at-p ".*elsewhere") stays))
                         model)
      (unwind-protect
          (progn
            (duet-test-wait-for (not (zerop (hash-table-count (duet-model-sessions model)))))
            (should stays)
            (should-not (memq nil stays))
            ;; From then on the server alone says what there is.
            (duet-test-request its 'session.delete
                               (list :session (duet-session-id (duet-projects--session))))
            (duet-test-wait-for (not (string-match-p "elsewhere"
                                                     (duet-test-text (current-buffer))))))
        (duet-test-end its)))))

(ert-deftest duet-projects-test-menu ()
  "The menu's key for lists does what the same key does in the buffers."
  (duet-projects-test-with-list (connection other)
    (ignore other)
    (duet-projects-test-go-to "here")
    (call-interactively #'duet-menu-sessions)
    (should (derived-mode-p 'duet-sessions-mode))
    (switch-to-buffer (duet-transcript-open
                       connection (car (duet-model-session-list
                                        (duet-connection-model connection)))))
    (call-interactively #'duet-menu-sessions)
    (should (derived-mode-p 'duet-sessions-mode))
    (should (eq duet-connection connection))))

(ert-deftest duet-projects-test-click ()
  "A click opens the session at its position, not the one at point."
  (duet-projects-test-with-list (connection other)
    (ignore other)
    (duet-projects-test-go-to "here")
    (duet-test-click #'duet-projects-open-mouse)
    (duet-test-wait-for-transcript)
    (should (eq duet-connection connection))
    (should (equal (duet-session-name duet-session) "quiet here"))))

(ert-deftest duet-projects-test-problems ()
  "Projects that fail are named below the others; no session is at point there."
  (duet-projects-test-with-list (connection other)
    (ignore connection)
    ;; A running daemon would keep its configuration.
    (duet-test-end-daemon other)
    (write-region "default_agent =" nil (concat other ".duet.toml") nil 'silent)
    (duet-test-press "g" #'duet-projects-refresh)
    (duet-test-wait-for-text (current-buffer) "^ .*/other/: .*toml")
    (should (string-match-p "quiet here" (duet-test-text (current-buffer))))
    (should-not (string-match-p "elsewhere" (duet-test-text (current-buffer))))
    (goto-char (point-max))
    (duet-test-should-say "There is no session here" (duet-test-press "RET" #'duet-projects-open))))

(ert-deftest duet-projects-test-names ()
  "Projects with equal names are distinguished; remote ones show their machine."
  (let ((name (duet-projects--names
               (mapcar (lambda (root) (duet-model-create :root root))
                       '("/a/web/" "/b/web/" "/a/api/" "/ssh:box:/srv/tool/")))))
    (should (equal (mapcar name '("/a/web/" "/b/web/" "/a/api/" "/ssh:box:/srv/tool/" "/"))
                   '("a/web" "b/web" "api" "tool@box" "/")))))

(provide 'duet-projects-test)
;;; duet-projects-test.el ends here
