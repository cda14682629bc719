;;; duet-trust-test.el --- Tests of the trust in a project's configuration  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-agents)
(require 'duet-trust)

(defconst duet-trust-test-config "default_agent = \"mine\"
[agents.mine]
driver = \"command\"
command = [\"echo\", \"from the project\"]
"
  "A configuration that asks for trust.")

(defun duet-trust-test-buffer ()
  "Return the buffer of the trust question, or nil."
  (cl-find-if (lambda (buffer) (string-prefix-p "*duet trust" (buffer-name buffer)))
              (buffer-list)))

(defmacro duet-trust-test-with (config &rest body)
  "Run BODY with a project's `connection' and `root', configured by CONFIG."
  (declare (indent 1) (debug (form body)))
  `(duet-test-with-project connection
     (let* ((root (duet-connection-root connection))
            (duet-trust-file (expand-file-name "../untrusted.eld" root)))
       (with-temp-file (expand-file-name ".duet.toml" root) (insert ,config))
       (duet-model-add-observer #'duet-trust--observe)
       ,@body)))

(defun duet-trust-test-launch (connection)
  "Launch a session for CONNECTION; return the result or the error's text."
  (let (outcome)
    (duet-connection-request
     connection 'session.start '(:prompt "hello" :agent "mine")
     :success-fn (lambda (result) (setq outcome result))
     :error-fn (lambda (err) (setq outcome (plist-get err :message))))
    (duet-test-wait-for outcome)))

(defun duet-trust-test-restart (connection)
  "Restart the server of CONNECTION."
  (duet-test-end connection)
  (duet-connection-restart connection)
  (duet-test-wait-for (eq (duet-connection-state connection) 'ready)))

(ert-deftest duet-trust-test-yes ()
  "The question shows the programs; after a yes they run, without asking again."
  (duet-trust-test-with duet-trust-test-config
    (save-window-excursion
      (should (string-match-p "not trusted" (duet-trust-test-launch connection)))
      (duet-trust-test-restart connection)
      (let ((buffer (duet-test-wait-for (duet-trust-test-buffer))))
        (duet-test-wait-for-text buffer "agents.mine.command = echo \"from the project\"$")
        (with-current-buffer buffer (call-interactively #'duet-trust-yes))
        (duet-test-wait-for (not (buffer-live-p buffer))))
      (let ((session (duet-test-launch connection "hello")))
        (duet-test-wait-for-state session 'completed)
        (duet-test-wait-for-text (duet-transcript-open connection session)
                                 "from the project"))
      (should-not (file-exists-p duet-trust-file))
      (let (asked looked)
        (cl-letf (((symbol-function 'duet-trust--ask)
                   (lambda (&rest _) (setq asked t))))
          (advice-add 'duet-trust--ask-if-needed :after (lambda (&rest _) (setq looked t))
                      '((name . duet-trust-test)))
          (unwind-protect
              (progn (duet-trust-test-restart connection)
                     (duet-test-wait-for looked))
            (advice-remove 'duet-trust--ask-if-needed 'duet-trust-test))
          (should-not asked))))))

(ert-deftest duet-trust-test-no ()
  "A no holds while the file is unchanged, and can be revised."
  (duet-trust-test-with duet-trust-test-config
    (save-window-excursion
      (duet-trust-test-restart connection)
      (with-current-buffer (duet-test-wait-for (duet-trust-test-buffer))
        (call-interactively #'duet-trust-no))
      (should-not (duet-trust-test-buffer))
      (let (looked)
        (cl-letf (((symbol-function 'duet-trust--look) (lambda (&rest _) (setq looked t))))
          (duet-trust-test-restart connection)
          (duet-test-request connection 'ping nil)
          (should-not looked)
          (with-temp-file (expand-file-name ".duet.toml" root)
            (insert duet-trust-test-config "\n"))
          (duet-trust-test-restart connection)
          (should looked)))
      (with-current-buffer (duet-sessions-buffer connection)
        (call-interactively #'duet-trust))
      (with-current-buffer (duet-test-wait-for (duet-trust-test-buffer))
        (call-interactively #'duet-trust-yes))
      (duet-test-wait-for (not (duet-trust-test-buffer)))
      ;; Change the decision back.
      (with-current-buffer (duet-sessions-buffer connection)
        (call-interactively #'duet-trust))
      (with-current-buffer (duet-test-wait-for (duet-trust-test-buffer))
        (should (string-match-p "is trusted" (buffer-string)))
        (call-interactively #'duet-trust-no))
      (duet-test-wait-for (not (duet-trust-test-buffer)))
      (should (string-match-p "not trusted" (duet-trust-test-launch connection))))))

(ert-deftest duet-trust-test-function ()
  "The function decides about a project: no decision, trusted, or restricted here."
  (let ((duet-trust-ask nil))
    (duet-trust-test-with duet-trust-test-config
      (let ((duet-connection-trust-function #'always))
        (duet-trust-test-restart connection))
      (should-not (stringp (duet-trust-test-launch connection)))
      (duet-trust-test-restart connection) ; nil keeps existing trust
      (should-not (stringp (duet-trust-test-launch connection)))
      (let ((duet-connection-trust-function (lambda (_) 'restricted)))
        (duet-trust-test-restart connection))
      (should (string-match-p "this editor does not trust" (duet-trust-test-launch connection)))
      (duet-trust-test-restart connection) ; `restricted' affects only that server
      (should-not (stringp (duet-trust-test-launch connection))))))

(ert-deftest duet-trust-test-changed-meanwhile ()
  "A yes applies only to the displayed version of the file."
  (duet-trust-test-with duet-trust-test-config
    (save-window-excursion
      (duet-trust-test-restart connection)
      (with-current-buffer (duet-test-wait-for (duet-trust-test-buffer))
        (with-temp-file (expand-file-name ".duet.toml" root)
          (insert duet-trust-test-config "env = { PATH = \"/evil\" }\n"))
        (should-error (call-interactively #'duet-trust-yes) :type 'user-error)
        (duet-test-wait-for-text (current-buffer) "agents.mine.env.*/evil"))
      (should (string-match-p "not trusted" (duet-trust-test-launch connection))))))

(ert-deftest duet-trust-test-nothing-to-ask ()
  "A file that runs no program needs no trust; its text cannot hide anything."
  (duet-trust-test-with "[limits]\nmax_turns = 1\n"
    (duet-trust-test-restart connection)
    (let (said)
      (cl-letf (((symbol-function 'message)
                 (lambda (format &rest arguments)
                   (when format (setq said (apply #'format format arguments))))))
        (with-current-buffer (duet-sessions-buffer connection)
          (call-interactively #'duet-trust))
        (duet-test-wait-for (and said (string-match-p "needs your trust" said)))))
    (should-not (duet-trust-test-buffer))
    (should (equal (duet-trust--text "a\e[2J\nb\u202ec") (duet-visible "a\e[2J\\nb\u202ec")))
    (should-not (string-match-p "[\e\u202e]" (duet-trust--text "a\e[2J\nb\u202ec")))
    (delete-file (expand-file-name ".duet.toml" root))
    (with-current-buffer (duet-sessions-buffer connection)
      (should-error (call-interactively #'duet-trust) :type 'user-error))))

(ert-deftest duet-trust-test-words ()
  "Values of a file are shown in its syntax, not as Lisp."
  (pcase-dolist (`(,value . ,text)
                 '((["/bin/echo" "Parrot says {prompt}"] . "/bin/echo \"Parrot says {prompt}\"")
                   ((:A "1" :B "x \"y\"\nz") . "{ A = 1, B = \"x \\\"y\\\"\\nz\" }")
                   ((:servers [(:name "a") (:on t :off :json-false)])
                    . "{ servers = { name = a } { on = true, off = false } }")
                   ([] . "") (nil . "nothing") (3 . "3") ("plain" . "plain")))
    (should (equal (duet-trust--text value) text))))

(ert-deftest duet-trust-test-visit ()
  "RET visits the file of the question, and `g' reads it again."
  (duet-trust-test-with duet-trust-test-config
    (save-window-excursion
      (duet-trust-test-restart connection)
      (set-buffer (duet-test-wait-for (duet-trust-test-buffer)))
      (duet-test-press "RET" #'duet-trust-visit)
      (should (equal (file-name-nondirectory (buffer-file-name (window-buffer)))
                     ".duet.toml"))
      (with-temp-file (expand-file-name ".duet.toml" root)
        (insert duet-trust-test-config "env = { GREETING = \"hi\" }\n"))
      (set-buffer (duet-trust-test-buffer))
      (duet-test-press "g" #'duet-trust)
      (duet-test-wait-for-text (duet-trust-test-buffer) "GREETING.*hi")
      (set-buffer (duet-trust-test-buffer))
      (let ((duet-rpc-command '("no-such-program-anywhere")))
        (duet-test-press "C-c C-c" #'duet-trust-yes))
      (should (duet-trust-test-buffer))
      (duet-test-press "C-c C-k" #'duet-trust-no)
      (should-not (duet-trust-test-buffer)))))

(ert-deftest duet-trust-test-stray-keys ()
  "The question takes focus only from an idle list, and no letter answers it."
  (duet-trust-test-with duet-trust-test-config
    (save-window-excursion
      (dolist (case '(list pending other asked))
        (delete-other-windows)
        (if (memq case '(list pending))
            (duet-sessions-show connection)
          (switch-to-buffer "*scratch*"))
        (cl-letf (((symbol-function 'input-pending-p)
                   (lambda (&rest _) (eq case 'pending))))
          (if (eq case 'asked)
              (let ((default-directory root)) (call-interactively #'duet-trust))
            (duet-trust-test-restart connection))
          (let ((buffer (duet-test-wait-for (duet-trust-test-buffer))))
            (duet-test-wait-for (get-buffer-window buffer))
            (should (equal (list case (eq (window-buffer) buffer))
                           (list case (and (memq case '(list asked)) t))))
            (with-current-buffer buffer
              (dolist (key '("y" "n" "a" "d" "c" "i"))
                (should (memq (key-binding key) '(undefined nil))))
              (should (string-match-p "C-c C-c trusts this version, C-c C-k does not"
                                      (buffer-string)))
              (should (string-match-p "C-c C-c yes, C-c C-k no" (duet-trust--header))))
            (kill-buffer buffer)))))))

(provide 'duet-trust-test)
;;; duet-trust-test.el ends here
