;;; duet-daemon-test-lib.el --- The daemons of tests  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Each test has its own directory, with the state of its projects below it.
;; The daemons of these projects end with the test.

;;; Code:

(defun duet-daemon-test-environment (home)
  "Return environment variables that keep state and configuration below HOME."
  (list (concat "XDG_STATE_HOME=" home "state")
        (concat "XDG_CONFIG_HOME=" home "config")
        "XDG_RUNTIME_DIR" "DUET_STATE_HOME" "DUET_ROOT" "DUET_AGENT"))

(defun duet-daemon-test-pid (state)
  "Return the process id of the daemon of the project with the directory STATE.
Return nil if no daemon runs."
  (let* ((lock (expand-file-name "lock" state))
         (pid (and (file-exists-p lock)
                   (with-temp-buffer
                     (insert-file-contents lock)
                     (string-to-number (buffer-string)))))
         (arguments (and pid (alist-get 'args (process-attributes pid)))))
    ;; The file outlives the daemon; another process may have that id then.
    (and arguments
         (string-match-p " daemon start .*--root " arguments)
         pid)))

(defun duet-daemon-test-end (state)
  "End the daemon of the project with the directory STATE, and wait for its end."
  (let ((deadline (+ (float-time) 60))
        told pid)
    (while (setq pid (duet-daemon-test-pid state))
      (when (> (float-time) deadline)
        (error "The daemon %d of %s does not end" pid state))
      ;; A second signal would kill it before its agents have ended.
      (unless (eql pid told)
        (setq told pid)
        (signal-process pid 'SIGTERM))
      (accept-process-output nil 0.01))))

(defun duet-daemon-test-end-all (home)
  "End the daemons of all projects that have their state below HOME."
  (mapc #'duet-daemon-test-end (file-expand-wildcards (concat home "state/duet/projects/*"))))

(provide 'duet-daemon-test-lib)
;;; duet-daemon-test-lib.el ends here
