;;; duet-terminal.el --- Terminals of the server, and their list  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Agents run programs in terminals of the server, and so can the user.  Any number of
;; editors and shells may be attached to a terminal.  `duet-terminals' lists them,
;; `duet-terminal' starts one.
;;
;; `duet-rpc attach' shows a terminal in a terminal emulator of Emacs: eat or vterm
;; if they are installed, else term.  Killing the buffer detaches from the terminal;
;; its program continues.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'tabulated-list)
(require 'term)
(require 'duet-actions)
(require 'duet-command)
(require 'duet-connection)
(require 'duet-menu-bar)
(require 'duet-remote)

(declare-function duet "duet" (&optional directory))
(declare-function eat-mode "ext:eat")
(declare-function eat-exec "ext:eat" (buffer name command startfile switches))
(declare-function vterm-mode "ext:vterm")
(defvar vterm-shell)
(defvar vterm-kill-buffer-on-exit)
(defvar vterm-exit-functions)

;;; Terminals

(defcustom duet-terminal-backend 'auto
  "The terminal emulator that shows terminals.
The value auto means eat if it is installed, else vterm, else term, which
comes with Emacs."
  :type '(choice (const :tag "The best there is" auto)
                 (const eat) (const vterm) (const term))
  :group 'duet)

(defcustom duet-terminal-shell nil
  "Program and arguments of a new terminal, a list; nil means your shell."
  :type '(choice (const :tag "Your shell" nil) (repeat string))
  :group 'duet)

(defvar-local duet-terminal-id nil
  "The id of the buffer's terminal, or nil if the buffer started it.")
(defvar-local duet-terminal--name nil
  "The name of the terminal, a part of the buffer's name.")

(defun duet-terminal-backend ()
  "Return the terminal emulator: eat, vterm or term."
  (pcase duet-terminal-backend
    ('auto (cond ((require 'eat nil t) 'eat)
                 ((and (bound-and-true-p module-file-suffix)
                       (locate-library "vterm"))
                  'vterm)
                 (t 'term)))
    ((and backend (or 'eat 'vterm))
     (unless (locate-library (symbol-name backend))
       (user-error "The package %s is not installed; see `duet-terminal-backend'" backend))
     backend)
    (_ 'term)))


;;;; Buffers

(defun duet-terminal--run (connection name arguments &optional here)
  "Show `duet-rpc attach' with ARGUMENTS for CONNECTION in a buffer called NAME.
Return the buffer.  If HERE is non-nil, show it in the selected window."
  (duet-terminal-show connection name
                      (apply #'duet-command (duet-connection-root connection)
                             "attach" arguments)
                      here))

(defun duet-terminal-show (connection name command &optional here)
  "Run COMMAND for CONNECTION in a terminal emulator, in a buffer called NAME.
COMMAND ends when the buffer is killed: it does not run in a terminal of the
server.  Return the buffer.  If HERE is non-nil, show it in the selected
window."
  (let* ((root (duet-connection-root connection))
         (buffer (generate-new-buffer (format "*duet terminal: %s*" name)))
         (window nil))
    (unless (let ((default-directory (duet-command-directory root)))
              (duet-remote-program (car command)))
      (kill-buffer buffer)
      (user-error "Cannot find the program %s; install it or set `duet-rpc-command'"
                  (car command)))
    (with-current-buffer buffer
      (setq default-directory (duet-command-directory root)))
    ;; Show the buffer first: the terminal gets the size of its window.
    (setq window (display-buffer buffer `((,@(and here '(display-buffer-same-window))
                                           display-buffer-reuse-window
                                           display-buffer-pop-up-window
                                           display-buffer-use-some-window))))
    (when window (select-window window))
    (condition-case err
        (with-current-buffer buffer
          (let ((process-environment (cons "DUET_HOST" process-environment)))
            (duet-terminal--exec (duet-terminal-backend) buffer command))
          (setq default-directory root)
          (setq duet-connection connection
                duet-terminal--name name)
          (duet-terminal--await-end buffer))
      (error
       (duet-terminal--discard buffer)
       (signal (car err) (cdr err))))
    buffer))

(defun duet-terminal--discard (buffer)
  "Kill BUFFER and its process, without a question."
  (when-let ((process (get-buffer-process buffer)))
    (set-process-query-on-exit-flag process nil))
  (when (buffer-live-p buffer)
    (let ((kill-buffer-query-functions nil)) (kill-buffer buffer))))

(cl-defgeneric duet-terminal--exec (backend buffer command)
  "Run COMMAND in BUFFER, the current one, with the terminal emulator BACKEND.")

(cl-defmethod duet-terminal--exec ((_backend (eql term)) buffer command)
  "Run COMMAND in BUFFER with term."
  (term-mode)
  (duet-remote-call #'term-exec buffer (buffer-name buffer) (car command) nil
                    (cdr command))
  (term-char-mode)
  ;; C-x keeps its meaning in Emacs, as in `ansi-term'.
  (let (term-escape-char)
    (term-set-escape-char ?\C-x))
  (duet-terminal--detach-quietly buffer))

(cl-defmethod duet-terminal--exec ((_backend (eql eat)) buffer command)
  "Run COMMAND in BUFFER with eat."
  (eat-mode)
  (eat-exec buffer (buffer-name buffer) (car command) nil (cdr command))
  (duet-terminal--detach-quietly buffer))

(cl-defmethod duet-terminal--exec ((_backend (eql vterm)) buffer command)
  "Run COMMAND in BUFFER with vterm."
  (require 'vterm)
  (let ((vterm-shell (mapconcat #'shell-quote-argument command " "))
        (vterm-kill-buffer-on-exit nil))
    (vterm-mode))
  (set-process-sentinel (get-buffer-process buffer) #'duet-terminal--vterm-ended)
  (duet-terminal--detach-quietly buffer))

(defun duet-terminal--vterm-ended (process event)
  "Show in the mode line that PROCESS of a vterm buffer has ended; EVENT says how.
Without this sentinel vterm would kill the buffer, or Emacs would insert a
message into the terminal's text."
  (let ((buffer (process-buffer process)))
    (run-hook-with-args 'vterm-exit-functions (and (buffer-live-p buffer) buffer) event)
    (when (and (buffer-live-p buffer) (not (process-live-p process)))
      (with-current-buffer buffer
        (setq mode-line-process ": ended")
        (force-mode-line-update)))))

(defun duet-terminal--detach-quietly (buffer)
  "Make Emacs kill BUFFER without a question: the terminal's program continues."
  (when-let ((process (get-buffer-process buffer)))
    (set-process-query-on-exit-flag process nil)))

;;;; The end of a terminal

(defvar duet-terminal-ended-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "g" #'duet-terminal-attach-again)
    (define-key map "q" #'quit-window)
    (define-key map "l" #'duet)
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-terminal-ended-mode'.")

(define-minor-mode duet-terminal-ended-mode
  "Minor mode of a terminal's buffer whose process has ended.

\\{duet-terminal-ended-mode-map}"
  :interactive nil
  :lighter nil
  (setq buffer-read-only t
        header-line-format
        (substitute-command-keys
         (concat " \\<duet-terminal-ended-mode-map>"
                 (if duet-terminal-id "Detached: \\[duet-terminal-attach-again] attaches again, "
                   "Ended: ")
                 "\\[quit-window] buries this buffer, \\[duet] lists the sessions"))))

(defun duet-terminal--await-end (buffer)
  "Turn on `duet-terminal-ended-mode' in BUFFER once its process has ended."
  (let ((process (get-buffer-process buffer))
        (ended (lambda (process &rest _)
                 (when (and (buffer-live-p buffer) (not (process-live-p process)))
                   (with-current-buffer buffer
                     (setq duet-terminal-id (duet-terminal--detached-from))
                     (duet-terminal-ended-mode))))))
    (add-function :after (process-sentinel process) ended)
    ;; The process may have ended already.
    (funcall ended process)))

(defun duet-terminal--detached-from ()
  "Return the id of the terminal from the buffer's detach message, or nil."
  (save-excursion
    (goto-char (point-max))
    (let ((text (buffer-substring-no-properties
                 (or (search-backward "detached" nil t) (point-max)) (point-max))))
      ;; In a narrow window the id is broken into lines.
      (setq text (replace-regexp-in-string "[ \r\n]+" "" text))
      (and (string-match "attach\\(term_[[:xdigit:]]+\\)" text)
           (match-string 1 text)))))

(defun duet-terminal-attach-again ()
  "Attach again to the terminal of the current, detached buffer."
  (interactive nil duet-terminal-ended-mode)
  (unless (bound-and-true-p duet-terminal-ended-mode)
    (user-error "Not a detached terminal"))
  (let ((id (or duet-terminal-id
                (user-error "The program has ended; there is nothing to attach to")))
        (old (current-buffer))
        (name (buffer-name)))
    (with-current-buffer (duet-terminal--run duet-connection duet-terminal--name
                                             (list id) t)
      (setq duet-terminal-id id)
      (kill-buffer old)
      (rename-buffer name t))))


;;;; Starting and attaching

(defun duet-terminal--buffer (connection id)
  "Return a buffer that is attached to the terminal ID of CONNECTION, or nil."
  (cl-find-if (lambda (buffer)
                (and (equal (buffer-local-value 'duet-terminal-id buffer) id)
                     (eq (buffer-local-value 'duet-connection buffer) connection)
                     (process-live-p (get-buffer-process buffer))))
              (buffer-list)))

(defun duet-terminal--parse (text)
  "Return TEXT, a shell command, as a list of a program and its arguments.
If TEXT needs a shell, the program is the shell."
  (if (string-match-p "[][|&;<>()$`*?~#=!{}\n\\]" text)
      (if (file-remote-p default-directory) (list "/bin/sh" "-c" text)
        (list shell-file-name shell-command-switch text))
    (split-string-shell-command (string-trim text))))

;;;###autoload
(defun duet-terminal (&optional command)
  "Start a program in a new terminal of the server, in the project's directory.
The default is your shell, or `duet-terminal-shell'.  A prefix argument reads
COMMAND.  The program continues after the buffer is killed; `duet-terminals'
lists it."
  (interactive (list (and current-prefix-arg
                          (duet-terminal--parse
                           (read-shell-command "Run in a terminal: ")))))
  (let ((connection (duet-connection-here))
        (command (or command duet-terminal-shell)))
    (unless (duet-connection-rpc connection)
      (user-error "The server is not running; g in the list of sessions starts it"))
    (duet-terminal--run
     connection
     (if command (file-name-nondirectory (car command))
       (duet-connection-project connection))
     `("--cwd" ,(duet-remote-local
                 (directory-file-name (duet-connection-root connection))) "--new"
       ,@(and command (cons "--" command))))))

(defun duet-terminal-attach (connection id &optional name)
  "Show the terminal ID of CONNECTION in a buffer called NAME."
  (if-let ((buffer (duet-terminal--buffer connection id)))
      (pop-to-buffer buffer)
    (with-current-buffer (duet-terminal--run connection (or name id) (list id))
      (setq duet-terminal-id id))))

;;; The list

;; `duet-terminals' lists the server's terminals, including those of agents and other
;; clients.  RET attaches Emacs to one.

(defvar duet-terminals-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map tabulated-list-mode-map)
    (define-key map (kbd "RET") #'duet-terminals-attach)
    (define-key map "c" #'duet-terminal)
    (define-key map "k" #'duet-terminals-close)
    (define-key map "g" #'duet-terminals-refresh)
    (define-key map "j" #'duet-approval-next)
    (define-key map "l" #'duet)
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-terminals-mode'.")

(define-derived-mode duet-terminals-mode tabulated-list-mode "Duet-Terminals"
  "Major mode of the list of the server's terminals.

\\{duet-terminals-mode-map}"
  (setq tabulated-list-format [("Terminal" 14 t) ("Runs" 26 t) ("Where" 17 t)
                               ("" 0 nil)]
        tabulated-list-padding 1)
  (tabulated-list-init-header))

(duet-menu-bar-add duet-terminals-mode-map
                   '(["Attach" duet-terminals-attach]
                     ["Close" duet-terminals-close]
                     ["Refresh" duet-terminals-refresh]))

(defvar-local duet-terminals--known nil
  "The terminals from the server's last reply.")

;;;###autoload
(defun duet-terminals ()
  "List the terminals of the current project's server."
  (interactive)
  (let ((buffer (duet-connection-buffer (duet-connection-here) "terminals"
                                        #'duet-terminals-mode #'duet-terminals--changed)))
    (with-current-buffer buffer (duet-terminals-refresh))
    (pop-to-buffer buffer)))

(defun duet-terminals--changed (_model kind _session _object extra)
  "Reload the list if a change of KIND and EXTRA may be the end of a terminal."
  (when (or (and (eq kind 'terminal) (equal extra "terminal.exited"))
            (memq kind '(connection lagged)))
    (duet-terminals-refresh)))

(defun duet-terminals-list (connection function)
  "Call FUNCTION with the terminals of the server of CONNECTION, a list.
If the server cannot list them, call it with nil."
  (duet-connection-request
   connection 'terminal.list nil
   :success-fn (lambda (result)
                 (funcall function (duet-get-objects result :terminals)))
   :error-fn (lambda (err)
               (unless (memql (plist-get err :code) '(-1 -32601))
                 (message "Duet: %s" (duet-connection-error-text err)))
               (funcall function nil))))

(defun duet-terminals-refresh ()
  "Reload the terminals from the server."
  (interactive (duet-only-in 'duet-terminals-mode) duet-terminals-mode)
  (duet-terminals-list duet-connection (duet-latest #'duet-terminals--print)))

(defun duet-terminals--print (terminals)
  "Show TERMINALS in the buffer."
  (setq duet-terminals--known terminals
        tabulated-list-entries
        (mapcar (lambda (terminal)
                  (list (duet-get-string terminal :terminal_id)
                        (vector (truncate-string-to-width
                                 (or (duet-get-string terminal :terminal_id) "") 13)
                                (duet-terminals--program terminal)
                                (file-relative-name
                                 (duet-remote-local (or (duet-get-string terminal :cwd)
                                                        default-directory))
                                 (duet-remote-local (duet-connection-root duet-connection)))
                                (duet-terminals--remark terminal))))
                terminals))
  (tabulated-list-print t)
  (unless terminals
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert (substitute-command-keys
               "\n No terminals.  \\<duet-terminals-mode-map>\\[duet-terminal] starts one."))
      (goto-char (point-min))))
  (restore-buffer-modified-p nil))

(defun duet-terminals--program (terminal)
  "Return the program and arguments of TERMINAL in one line."
  (let ((text (string-join
               (cons (file-name-nondirectory (or (duet-get-string terminal :program) ""))
                     (duet-get-strings terminal :args))
               " ")))
    (duet-visible-line (truncate-string-to-width text 200 nil nil "…"))))

(defun duet-terminals--remark (terminal)
  "Return the remark on TERMINAL for the list."
  (string-join
   (delq nil
         (list (when (duet-get terminal :read_only) "an agent's")
               (when-let ((tmux (duet-get-string terminal :tmux_session)))
                 (concat "tmux " tmux))
               (cond ((duet-get terminal :taken) "taken")
                     ((> (or (duet-get-number terminal :attached) 0) 0)
                      (format "%d attached" (duet-get-number terminal :attached))))))
   ", "))

(defun duet-terminals--at-point ()
  "Return the terminal at point, an object from the server's reply."
  (or (cl-find (tabulated-list-get-id) duet-terminals--known
               :key (lambda (terminal) (duet-get-string terminal :terminal_id))
               :test #'equal)
      (user-error "There is no terminal here")))

(defun duet-terminals-attach ()
  "Show the terminal at point."
  (interactive nil duet-terminals-mode)
  (let ((terminal (duet-terminals--at-point)))
    (duet-terminal-attach duet-connection (duet-get-string terminal :terminal_id)
                          (duet-terminals--program terminal))))

(defun duet-terminals-close ()
  "Close the terminal at point and end its program."
  (interactive nil duet-terminals-mode)
  (let* ((terminal (duet-terminals--at-point))
         (buffer (current-buffer)))
    (when (yes-or-no-p (format "End %s? " (duet-terminals--program terminal)))
      (duet-connection-request
       duet-connection 'terminal.close
       (list :terminal_id (duet-get-string terminal :terminal_id))
       :success-fn (lambda (_)
                     (when (buffer-live-p buffer)
                       (with-current-buffer buffer (duet-terminals-refresh))))))))

(provide 'duet-terminal)
;;; duet-terminal.el ends here
