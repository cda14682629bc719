;;; duet-terminal-test.el --- Tests of the server's terminals  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-terminal)

(defun duet-terminal-test-end (buffer)
  "End the process of BUFFER."
  (when (process-live-p (get-buffer-process buffer))
    (set-process-query-on-exit-flag (get-buffer-process buffer) nil)
    (delete-process (get-buffer-process buffer))))

(ert-deftest duet-terminal-test-new ()
  "A new terminal runs in the project, on the server that Emacs has started."
  (duet-test-with-project connection
    (save-window-excursion
      (let ((duet-terminal-backend 'term) buffer)
        (with-current-buffer (duet-sessions-buffer connection)
          (duet-test-typing
              (concat (mapconcat (lambda (char) (key-description (string char)))
                                 "sh -c 'echo it is $(basename $PWD); read x; echo got $x'"
                                 " ")
                      " RET")
            (let ((current-prefix-arg '(4))) (call-interactively #'duet-terminal))))
        (setq buffer (window-buffer (selected-window)))
        (unwind-protect
            (progn
              (duet-test-wait-for-text buffer "it is project")
              (with-current-buffer buffer
                (should (eq duet-connection connection))
                (term-send-raw-string "word\r"))
              (duet-test-wait-for-text buffer "got word")
              (duet-test-wait-for (not (process-live-p (get-buffer-process buffer)))))
          (duet-terminal-test-end buffer))))))

(ert-deftest duet-terminal-test-detach-and-attach ()
  "Killing the buffer detaches, and the list attaches again."
  (duet-test-with-project connection
    (save-window-excursion
      (let ((duet-terminal-backend 'term) list)
        (with-current-buffer (duet-sessions-buffer connection)
          (duet-terminal '("sh" "-c" "echo first; while read x; do echo got $x; done")))
        (let ((buffer (window-buffer (selected-window))))
          (duet-test-wait-for-text buffer "first")
          (kill-buffer buffer))
        (with-current-buffer (duet-sessions-buffer connection)
          (call-interactively #'duet-terminals))
        (setq list (window-buffer (selected-window)))
        (duet-test-wait-for-text list "sh -c echo first")
        (with-current-buffer list
          (goto-char (point-min))
          (duet-test-press "RET" #'duet-terminals-attach))
        (let ((buffer (window-buffer (selected-window))))
          (unwind-protect
              (progn
                (should (buffer-local-value 'duet-terminal-id buffer))
                (duet-test-wait-for-text buffer "first")
                (with-current-buffer buffer (term-send-raw-string "again\r"))
                (duet-test-wait-for-text buffer "got again")
                ;; A second attach shows the same buffer.
                (with-current-buffer list (call-interactively #'duet-terminals-attach))
                (should (eq (window-buffer (selected-window)) buffer)))
            (duet-terminal-test-end buffer)))
        (with-current-buffer list
          (goto-char (point-min))
          (duet-test-typing "no RET" (duet-test-press "k" #'duet-terminals-close))
          ;; The terminal is still running.
          (duet-test-press "g" #'duet-terminals-refresh)
          (duet-test-request connection 'ping nil)
          (should (string-match-p "sh -c echo first" (buffer-string)))
          (duet-test-typing "yes RET" (duet-test-press "k" #'duet-terminals-close)))
        (duet-test-wait-for-text list "No terminals")
        (with-current-buffer list
          (pcase-dolist (`(,key . ,command) '(("RET" . duet-terminals-attach)
                                              ("k" . duet-terminals-close)))
            (duet-test-should-say "There is no terminal here"
              (duet-test-press key command))))))))

(ert-deftest duet-terminal-test-attach-again ()
  "After a detach a key attaches again; after the program's end it is an error."
  (duet-test-with-project connection
    (save-window-excursion
      (let ((duet-terminal-backend 'term)
            (buffers (buffer-list))
            (new (lambda (&rest command)
                   (with-current-buffer (duet-sessions-buffer connection)
                     (duet-terminal command))
                   (duet-test-look)))
            name)
        (duet-test-should-say "Not a detached terminal" (call-interactively #'duet-terminal-attach-again))
        (unwind-protect
            (progn
              (funcall new "sh" "-c" "echo it is; while read x; do echo got $x; done")
              (duet-test-wait-for-text (current-buffer) "it is")
              (setq name (buffer-name))
              (term-send-raw-string "\C-]")
              (duet-test-wait-for (bound-and-true-p duet-terminal-ended-mode))
              (should (string-match-p "Detached: g attaches again, q buries" header-line-format))
              (let ((old (current-buffer)) (window (selected-window)))
                (duet-test-press "g" #'duet-terminal-attach-again)
                (should-not (buffer-live-p old))
                (should (eq (selected-window) window)))
              (duet-test-look)
              (should (equal (buffer-name) name))
              (duet-test-wait-for-text (current-buffer) "it is")
              (term-send-raw-string "again\r")
              (duet-test-wait-for-text (current-buffer) "got again")
              (term-send-raw-string "\C-]")
              (duet-test-wait-for (bound-and-true-p duet-terminal-ended-mode))
              (let ((buffer (current-buffer)))
                (should (eq (key-binding "q") #'quit-window))
                (call-interactively (key-binding "q"))
                (should (buffer-live-p buffer))
                (should-not (eq (window-buffer) buffer)))
              (funcall new "true")
              (duet-test-wait-for (bound-and-true-p duet-terminal-ended-mode))
              (should (string-match-p "Ended: q buries" header-line-format))
              (duet-test-should-say "has ended"
                (duet-test-press "g" #'duet-terminal-attach-again)))
          (mapc #'duet-terminal-test-end (cl-set-difference (buffer-list) buffers)))))))

(ert-deftest duet-terminal-test-environment ()
  "Programs get the terminal's type and the user's environment variables."
  (duet-test-with-project connection
    (save-window-excursion
      (let ((duet-terminal-backend 'term)
            (process-environment (append '("EDITOR=emacsclient" "SSH_AUTH_SOCK=/some/socket")
                                         process-environment)))
        (with-current-buffer (duet-sessions-buffer connection)
          (duet-terminal '("sh" "-c" "tput colors; echo $TERM,$EDITOR,$SSH_AUTH_SOCK; read x")))
        (let ((buffer (window-buffer)))
          (unwind-protect
              (duet-test-wait-for-text buffer
                                       "^[1-9][0-9]*\neterm-color,emacsclient,/some/socket$")
            (duet-terminal-test-end buffer)))))))

(ert-deftest duet-terminal-test-keys ()
  "The list starts a terminal with the configured shell.
A missing server or a missing program is reported."
  (duet-test-with-project connection
    (save-window-excursion
      (let ((duet-terminal-backend 'term)
            (duet-terminal-shell '("sh" "-c" "echo ready; read x"))
            list)
        (with-current-buffer (duet-sessions-buffer connection)
          (call-interactively #'duet-terminals))
        (setq list (window-buffer))
        (duet-test-wait-for-text list "No terminals\\.  [ct] starts one")
        (with-current-buffer list
          (duet-test-press "c" #'duet-terminal))
        (let ((buffer (window-buffer)))
          (unwind-protect
              (progn
                (duet-test-wait-for-text buffer "ready")
                (with-current-buffer list (duet-test-press "g" #'duet-terminals-refresh))
                (duet-test-wait-for-text list "sh -c echo ready")
                ;; A terminal that has ended is not listed.
                (with-current-buffer buffer (term-send-raw-string "\r"))
                (duet-test-wait-for-text list "No terminals"))
            (duet-terminal-test-end buffer)))
        (let ((buffers (buffer-list)))
          (with-current-buffer list
            (let ((duet-rpc-command '("no-such-program-anywhere")))
              (duet-test-should-say "Cannot find the program no-such-program-anywhere"
                (duet-test-press "c" #'duet-terminal)))
            (call-interactively #'duet-stop)
            (duet-test-should-say "The server is not running"
              (duet-test-press "c" #'duet-terminal)))
          (should-not (cl-set-difference (buffer-list) buffers)))))))

(ert-deftest duet-terminal-test-no-list ()
  "A server that cannot list terminals has none."
  (duet-test-with-project connection
    (let ((request (symbol-function 'duet-connection-request)) terminals)
      (cl-letf (((symbol-function 'duet-connection-request)
                 (lambda (connection method &rest rest)
                   (apply request connection
                          (if (eq method 'terminal.list) 'no.such.method method)
                          rest))))
        (duet-terminals-list connection (lambda (list) (setq terminals (list list))))
        (duet-test-wait-for terminals)
        (should (equal terminals '(nil)))
        (save-window-excursion
          (with-current-buffer (duet-sessions-buffer connection) (duet-terminals))
          (duet-test-wait-for-text (window-buffer (selected-window)) "No terminals"))))))

(ert-deftest duet-terminal-test-command ()
  "A command line is split as a shell does, or passed to a shell."
  (let ((shell-file-name "/bin/sh") (shell-command-switch "-c"))
    (pcase-dolist (`(,typed . ,command)
                   '(("" . nil) ("  " . nil) ("htop" . ("htop"))
                     ("make -k  'a b' \"c d\"" . ("make" "-k" "a b" "c d"))
                     ("ls *.el" . ("/bin/sh" "-c" "ls *.el"))
                     ("a | b" . ("/bin/sh" "-c" "a | b"))
                     ("A=1 b" . ("/bin/sh" "-c" "A=1 b"))
                     ("sh -c 'echo $HOME'" . ("/bin/sh" "-c" "sh -c 'echo $HOME'"))
                     ("cd x; ls" . ("/bin/sh" "-c" "cd x; ls"))))
      (should (equal (list typed (duet-terminal--parse typed)) (list typed command))))))

(ert-deftest duet-terminal-test-backends ()
  "The error for a missing backend names it; term is always available."
  (let ((duet-terminal-backend 'term))
    (should (eq (duet-terminal-backend) 'term)))
  (let ((duet-terminal-backend 'vterm))
    (cl-letf (((symbol-function 'locate-library) #'ignore))
      (should-error (duet-terminal-backend) :type 'user-error)
      (let ((duet-terminal-backend 'auto))
        (should (memq (duet-terminal-backend) '(eat term)))))))

(provide 'duet-terminal-test)
;;; duet-terminal-test.el ends here
