;;; duet-commands-test.el --- Every command has a test  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; This file reads the tests of all files, and does not run them.  It expands their
;; macros and looks for calls in the result.  Comments and quoted names do not count.
;; Calls through functions of the test's file count.
;; 
;; A command counts as called by `call-interactively', by `duet-test-press', by
;; `duet-test-click', and, unless it reads arguments, as a function.

;;; Code:

(require 'cl-lib)
(require 'duet-test-lib)
(require 'transient)

(defconst duet-commands-test-folder
  (file-name-directory (locate-library "duet-test-lib.el" t))
  "The directory of the tests.")

(defun duet-commands-test-load ()
  "Load all files of the package, and all macros of the tests."
  (dolist (folder (list (file-name-directory (locate-library "duet"))
                        duet-commands-test-folder))
    (dolist (file (directory-files folder nil "\\`duet.*\\.el\\'"))
      (require (intern (file-name-base file))
               (expand-file-name file folder)))))

(defun duet-commands-test-all ()
  "Return all commands of Duet, without aliases and modes."
  (let (commands)
    (mapatoms
     (lambda (symbol)
       (when (and (string-prefix-p "duet" (symbol-name symbol))
                  (not (string-match-p "-test-" (symbol-name symbol)))
                  (commandp symbol)
                  (not (symbolp (symbol-function symbol)))
                  ;; Not all modes have a parent.
                  (not (string-suffix-p "-mode" (symbol-name symbol))))
         (push symbol commands))))
    (sort commands #'string<)))

(defun duet-commands-test-reads-p (command)
  "Return non-nil if COMMAND reads arguments when it is called interactively."
  (let ((spec (cadr (interactive-form command))))
    (and spec (not (equal spec "")))))


;;; What forms call

(defvar duet-commands-test--found nil
  "The calls found: conses of `call' or `press' and a symbol.")

(defun duet-commands-test-calls (form)
  "Return the calls in FORM: conses of `call' or `press' and a symbol."
  (let ((duet-commands-test--found '())
        ;; The expansion of `should' would hide the call in it.
        (plain (lambda (form &rest _) form)))
    (duet-commands-test--walk
     (macroexpand-all form
                      (append (mapcar (lambda (name) (cons name plain))
                                      '(should should-not should-error skip-unless))
                              '((declare-function . ignore))
                              macroexpand-all-environment)))
    (delete-dups duet-commands-test--found)))

(defun duet-commands-test--name (form)
  "Return the symbol that FORM quotes, or nil."
  (and (memq (car-safe form) '(quote function))
       (symbolp (cadr form))
       (cadr form)))

(defun duet-commands-test--walk (form)
  "Record the calls in FORM, whose macros are expanded."
  (pcase form
    ((pred (not consp)))
    (`(quote . ,_))
    (`(function (lambda ,_ . ,body)) (mapc #'duet-commands-test--walk body))
    (`(function . ,_))
    (`(interactive . ,_))
    (`(,(or 'let 'let*) ,bindings . ,body)
     (dolist (binding bindings)
       (duet-commands-test--walk (car (cdr-safe binding))))
     (mapc #'duet-commands-test--walk body))
    (`(cond . ,clauses)
     (dolist (clause clauses) (mapc #'duet-commands-test--walk clause)))
    (`(condition-case ,_ ,body . ,handlers)
     (duet-commands-test--walk body)
     (dolist (handler handlers) (mapc #'duet-commands-test--walk (cdr handler))))
    (`(,function . ,arguments)
     (let ((name (duet-commands-test--name
                  (nth (if (eq function 'duet-test-press) 1 0) arguments))))
       (cond
        ((null name))
        ((memq function '(call-interactively command-execute
                                             duet-test-press duet-test-click))
         (push (cons 'press name) duet-commands-test--found))
        ((memq function '(funcall apply))
         (push (cons 'call name) duet-commands-test--found))))
     (if (symbolp function)
         (push (cons 'call function) duet-commands-test--found)
       (duet-commands-test--walk function))
     (mapc #'duet-commands-test--walk arguments))))

(defun duet-commands-test-called ()
  "Return the calls in all tests: conses of `call' or `press' and a symbol.
This includes the calls in functions that the tests use."
  (let ((functions (make-hash-table))
        (called '())
        (rest '()))
    ;; The performance tests do not run with the others.
    (dolist (file (remove (expand-file-name "duet-perf-test.el" duet-commands-test-folder)
                          (directory-files duet-commands-test-folder t
                                           "\\`duet.*\\.el\\'")))
      (with-temp-buffer
        (insert-file-contents file)
        (let (form)
          (while (setq form (ignore-error end-of-file (read (current-buffer))))
            (pcase form
              (`(ert-deftest ,_ ,_ . ,body)
               (setq rest (append (duet-commands-test-calls (macroexp-progn body)) rest)))
              (`(defun ,name ,_ . ,body)
               (puthash name (macroexp-progn body) functions)))))))
    (while rest
      (let ((call (pop rest)))
        (unless (member call called)
          (push call called)
          (when-let ((body (and (eq (car call) 'call) (gethash (cdr call) functions))))
            (setq rest (append (duet-commands-test-calls body) rest))))))
    ;; A call of an alias counts for its command.
    (append (cl-loop for (kind . name) in called
                     for real = (and (fboundp name) (symbol-function name))
                     when (and real (symbolp real)) collect (cons kind real))
            called)))


;;; Commands outside their buffers

(defun duet-commands-test-trouble (command)
  "Call COMMAND by a click, with \\`C-g' typed; return what goes wrong.
A user error is not a fault."
  (let* ((click (list 'mouse-2 (list (selected-window) (point) '(0 . 0) 0)))
         (last-command-event ?1)
         (last-input-event ?1))
    (unwind-protect
        (condition-case err
            (progn (duet-test-typing "" (call-interactively command nil (vector click)))
                   nil)
          ((user-error quit) nil)
          (error err))
      (when (bound-and-true-p transient--prefix)
        (transient-quit-all)
        (transient--emergency-exit)))))

(defun duet-commands-test-harm (command)
  "Call COMMAND in a buffer that is not Duet's; return what goes wrong."
  (save-window-excursion
    (let ((buffer (generate-new-buffer "letter to a friend")))
      (unwind-protect
          (let ((buffer-file-name nil))
            (switch-to-buffer buffer)
            (insert "Dear friend,\n")
            (goto-char 3)
            (or (duet-commands-test-trouble command)
                (and (not (buffer-live-p buffer)) 'killed)
                (and (not (equal (with-current-buffer buffer (buffer-string))
                                 "Dear friend,\n"))
                     'changed)))
        (when (buffer-live-p buffer) (kill-buffer buffer))))))


;;; The tests

(ert-deftest duet-commands-test-every-command ()
  "For each command of the package a test calls it interactively."
  (duet-commands-test-load)
  (let* ((called (duet-commands-test-called))
         (untested (cl-remove-if
                    (lambda (command)
                      (or (member (cons 'press command) called)
                          (and (not (duet-commands-test-reads-p command))
                               (member (cons 'call command) called))))
                    (duet-commands-test-all))))
    (should (equal untested '()))))

(ert-deftest duet-commands-test-what-counts ()
  "Only calls of a command count, not other mentions."
  (pcase-dolist
      (`(,form . ,called)
       '(((duet-archive 1) (call . duet-archive))
         ((call-interactively #'duet-archive) (press . duet-archive))
         ((duet-test-press "A" #'duet-archive) (press . duet-archive))
         ((should-error (duet-archive 1) :type 'user-error) (call . duet-archive))
         ((let ((duet-archive (duet-stop))) duet-archive) (call . duet-stop))
         ((mapc (lambda (_) (duet-stop)) '(1)) (call . duet-stop))
         ((when-let ((x (duet-stop))) x) (call . duet-stop))
         ((should (eq (key-binding "A") #'duet-archive)))
         ((cl-letf (((symbol-function 'duet-archive) #'ignore)) (ignore)))
         ((ignore "(duet-archive)" 'duet-archive '(duet-archive)))))
    (should (equal (cons form (cl-remove-if-not
                               (lambda (call)
                                 (memq (cdr call) '(duet-archive duet-stop)))
                               (duet-commands-test-calls form)))
                   (cons form called)))))

(ert-deftest duet-commands-test-elsewhere ()
  "A command that is called in a foreign buffer does no harm there.
This holds both with a running server and with one that cannot start."
  (duet-commands-test-load)
  (dolist (gone '(nil t))
    (duet-test-with-project connection
      (when gone
        (duet-connection-stop connection)
        (setq duet-rpc-command '("no-such-program-anywhere")))
      (cl-letf (((symbol-function 'customize-group) #'ignore))
        (dolist (command (duet-commands-test-all))
          (should (equal (list command (duet-commands-test-harm command))
                         (list command nil))))))))

(defun duet-commands-test-keys (map)
  "Return the commands of Duet in MAP; those that close their buffer are last."
  (let (commands)
    (map-keymap (lambda (_ binding)
                  (cond ((keymapp binding)
                         (setq commands (append (duet-commands-test-keys binding) commands)))
                        ((and (symbolp binding)
                              (string-prefix-p "duet-" (symbol-name binding)))
                         (push binding commands))))
                map)
    (sort (delete-dups commands) (lambda (one other)
                     (and (not (memq one '(duet-compose-cancel duet-trust-no)))
                          (memq other '(duet-compose-cancel duet-trust-no)))))))

(defun duet-commands-test-buffers (connection)
  "Return buffers of all modes of Duet, for a session of CONNECTION.
The session has an open question, and point is on something in each buffer."
  (let* ((session (duet-test-launch connection "hello"))
         (approval (duet-test-wait-for (car (duet-session-approvals session))))
         (here (duet-sessions-buffer connection))
         (transcript (duet-transcript-open connection session))
         (show (lambda (function &rest arguments)
                 (with-current-buffer here
                   (goto-char (point-min))
                   (apply function arguments))
                 (window-buffer)))
         (buffers (list here transcript
                        (funcall show #'duet-approvals)
                        (funcall show #'duet-approval-view approval)
                        (funcall show #'duet-approval-edit approval)
                        (funcall show #'duet-diff session)
                        (funcall show #'duet-search "hello")
                        (funcall show #'duet-terminals)
                        (funcall show #'duet-agents)
                        (funcall show #'duet-compose connection session))))
    (duet-test-wait-for-text transcript "^❯ hello")
    (duet-test-wait-for-text here "waiting for you")
    (duet-test-wait-for-text (nth 6 buffers) "you")
    (duet-test-wait-for-text (nth 7 buffers) "No terminals")
    (duet-test-wait-for-text (nth 8 buffers) "demo")
    (with-current-buffer (car (last buffers)) (insert "Not lost"))
    (dolist (buffer (butlast buffers))
      (with-current-buffer buffer (goto-char (point-min))))
    buffers))

(ert-deftest duet-commands-test-no-server ()
  "Without a server each command only reports an error, and nothing is lost."
  (duet-commands-test-load)
  (duet-test-with-project connection
    (duet-model-add-observer #'duet-approvals--observe)
    (let* ((buffers (save-window-excursion (duet-commands-test-buffers connection)))
           (duet-restart-delays '(1000))
           (duet-compose-history (make-ring 10))
           (called 0))
      (setq duet-rpc-command '("no-such-program-anywhere"))
      (signal-process (process-id (jsonrpc--process (duet-connection-rpc connection)))
                      'SIGKILL)
      (duet-test-wait-for (eq (duet-connection-state connection) 'lost))
      (duet-test-listening
        (dolist (buffer buffers)
          (dolist (command (with-current-buffer buffer
                             (duet-commands-test-keys (current-local-map))))
            (save-window-excursion
              (switch-to-buffer buffer)
              (cl-incf called)
              (let ((mode major-mode))
                (should (equal (list mode command (duet-commands-test-trouble command))
                               (list mode command nil)))))))
        (should-not (duet-test-heard "Wrong type\\|void")))
      (should (> called 80))
      (should-not (string-match-p "Wrong type\\|void\\|Symbol" (duet-test-log)))
      (should (equal (ring-elements duet-compose-history) '("Not lost"))))))

(provide 'duet-commands-test)
;;; duet-commands-test.el ends here
