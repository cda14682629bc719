;;; duet-projects.el --- The list of sessions of all projects  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-projects' lists the sessions of all projects.  The program duet-rpc knows
;; the projects of a machine, and asks the daemon of each.  If this Emacs is connected
;; to a project's server, the list shows its own model and follows it.  Of other
;; projects it shows the state at the time of the request.
;;
;; The list asks this machine, and each machine with a project that is open by TRAMP.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'tabulated-list)
(require 'duet-actions)
(require 'duet-bookmark)
(require 'duet-command)
(require 'duet-compose)
(require 'duet-connection)
(require 'duet-diff)
(require 'duet-export)
(require 'duet-menu-bar)
(require 'duet-events)
(require 'duet-remote)
(require 'duet-sessions)

(declare-function duet-worktree "duet-menu" ())

(defconst duet-projects--limit 300
  "Maximum number of sessions that the program returns.")

(defvar-local duet-projects--models nil
  "The program's reply: a list of models, one for each project.")
(defvar-local duet-projects--problems nil
  "The errors of machines and projects: lines of text.")
(defvar-local duet-projects--asking 0
  "The number of awaited replies.")
(defvar-local duet-projects--question 0
  "The number of the latest request; replies to older ones are ignored.")
(defvar duet-projects-mode-map
  (let ((map (duet-sessions-keymap #'duet-projects-open #'duet-projects-open-mouse
                                   #'duet-projects-compose #'duet-projects-refresh)))
    (define-key map "l" #'duet-projects-narrow)
    (define-key map "i" #'duet-interrupt)
    (define-key map "r" #'duet-continue)
    (define-key map "f" #'duet-fork)
    (define-key map "G" #'duet-rewind)
    (define-key map "%" #'duet-worktree)
    (define-key map "/" #'duet-search-or-say)
    (define-key map "z" #'duet-archive)
    (define-key map "T" #'duet-rename)
    (define-key map "W" #'duet-export-session)
    (define-key map "D" #'duet-delete)
    (define-key map "=" #'duet-diff)
    (define-key map (kbd "M-=") #'duet-diff-all)
    map)
  "Keymap of `duet-projects-mode'.")

(define-derived-mode duet-projects-mode tabulated-list-mode "Duet-Projects"
  "Major mode of the list of the sessions of all projects.

\\{duet-projects-mode-map}"
  (setq tabulated-list-format (vector (list "" 2 nil) (list "State" 16 t)
                                      (list "Project" 16 t)
                                      (list "#" 2 #'duet-sessions-number-before-p
                                            :right-align t)
                                      (list "Session" 30 t) (list "Agent" 10 t) (list "Age" 4 nil))
        tabulated-list-padding 1
        duet-actions-session-at-point-function #'duet-projects--session
        duet-actions-ready-function #'duet-projects--ready
        duet-connection-root-at-point-function #'duet-projects--root
        default-directory (expand-file-name "~/")
        mode-line-process '(:eval (if (> duet-projects--asking 0) " [asking…]" "")))
  (setq-local mode-line-position nil)
  (tabulated-list-init-header))

;;;###autoload
(defun duet-projects (&optional host)
  "Show the sessions of all projects, the last active first.
If HOST is non-nil, as with a prefix argument, read a host first, and show
its sessions, too."
  (interactive "P")
  (when host (duet-connection-read-host))
  (let ((buffer (get-buffer-create "*duet: all projects*")))
    (with-current-buffer buffer
      (unless (derived-mode-p 'duet-projects-mode)
        (duet-projects-mode)
        (duet-sessions-follow #'duet-projects--print))
      (duet-projects--ask))
    (pop-to-buffer buffer '((display-buffer-reuse-window display-buffer-same-window)))
    (duet-projects--print)))


;;; The list

(defun duet-projects--ask ()
  "Ask the program for the sessions of all projects, on each machine."
  (let ((buffer (current-buffer))
        (question (cl-incf duet-projects--question))
        (models '())
        (problems '())
        (hosts (duet-projects--hosts)))
    (setq duet-projects--asking (length hosts))
    (dolist (host hosts)
      (cl-flet ((answered ()
                  (when (and (buffer-live-p buffer)
                             (= question (buffer-local-value 'duet-projects--question buffer)))
                    (with-current-buffer buffer
                      (when (zerop (cl-decf duet-projects--asking))
                        (setq duet-projects--models models
                              duet-projects--problems problems)
                        (duet-projects--print))))))
        (duet-command-json
         (concat host "~/")
         (list "session" "list" "--all-projects"
               "--limit" (number-to-string duet-projects--limit))
         (lambda (result)
           (cl-flet ((take (prefix list)
                       (dolist (project list)
                         (let ((root (file-name-as-directory
                                      (concat prefix (duet-get-string project :root))))
                               (problem (duet-get-string project :error)))
                           (if problem
                               (push (format "%s: %s" (duet-remote-abbreviate root) problem) problems)
                             (push (duet-projects--model root (duet-get project :turns)) models))))))
             (take host (duet-get-objects result :projects))
             ;; Another machine's hosts are not those of this one.
             (dolist (on (unless host (duet-get-objects result :hosts)))
               (let ((name (duet-get-string on :host)))
                 (when-let ((problem (duet-get-string on :error)))
                   (push (duet-projects--missed name problem (duet-get-string on :last_seen))
                         problems))
                 (take (duet-host-file name "") (duet-get-objects on :projects)))))
           (answered))
         (lambda (reason)
           (push (if host (concat host " " reason) reason) problems)
           (answered)))))))

(defun duet-projects--missed (host problem seen)
  "Return the line for PROBLEM of HOST, whose sessions are as of the time SEEN."
  (concat host ": " problem
          (if seen (format " (last seen: %s)" (duet-sessions--age seen)) "")))

(defun duet-projects--hosts ()
  "Return the machines to ask: prefixes of TRAMP, and nil for this machine.
This machine's answer has the hosts of duet-rpc."
  (let ((hosts (list nil)))
    (maphash (lambda (root _)
               (when (duet-remote-tramp-p root)
                 (cl-pushnew (file-remote-p root) hosts :test #'equal)))
             duet-connections)
    hosts))

(defun duet-projects--model (root objects)
  "Return a model of the project ROOT with the sessions in the vector OBJECTS.
OBJECTS has the newest turn of a session first; the others are ignored."
  (let ((model (duet-model-create :root root))
        (seen (make-hash-table :test #'equal)))
    (seq-doseq (object objects)
      (let ((session (duet-get-string object :session_uuid)))
        (unless (gethash session seen)
          (puthash session t seen)
          (duet-pages-load-session model object))))
    model))

(defun duet-projects--all ()
  "Return a model for each project: this Emacs's own once it has its sessions."
  (let ((roots (make-hash-table :test #'equal)))
    (dolist (model duet-projects--models)
      (puthash (duet-model-root model) model roots))
    (maphash (lambda (root connection)
               (let ((model (duet-connection-model connection)))
                 (when (and (eq (duet-connection-state connection) 'ready)
                            (duet-model-listed model))
                   (puthash root model roots))))
             duet-connections)
    (hash-table-values roots)))

(defun duet-projects--names (models)
  "Return a function from the root of each of MODELS to a short name for it.
Projects of the same name also get the name of the parent directory."
  (let ((roots (mapcar #'duet-model-root models)))
    (lambda (root)
      (let ((name (duet-projects--last root 1)))
        (concat (if-let ((host (duet-host-of root))) (concat host ":") "")
                (if (cl-some (lambda (other)
                               (and (not (equal other root))
                                    (duet-remote-same-p other root)
                                    (equal (duet-projects--last other 1) name)))
                             roots)
                    (duet-projects--last root 2)
                  name)
                (if (duet-remote-tramp-p root) (concat "@" (file-remote-p root 'host)) ""))))))

(defun duet-projects--last (root count)
  "Return the last COUNT parts of the file name ROOT."
  (let ((name (or (file-remote-p root 'localname) root)))
    (if (equal name "/") name
      (string-join (last (split-string name "/" t) count) "/"))))

(defun duet-projects--print ()
  "Print the list anew; keep point on its session."
  (let* ((models (duet-projects--all))
         (name (duet-projects--names models))
         (sessions (cl-remove-if #'duet-session-archived
                                 (cl-mapcan #'duet-model-session-list models))))
    (setq sessions (sort sessions (lambda (a b)
                                    (duet-get-time-before-p (duet-session-changed b)
                                                        (duet-session-changed a)))))
    (setq tabulated-list-entries
          (mapcar (lambda (session) (duet-projects--entry session name)) sessions))
    (duet-projects--fit)
    (tabulated-list-print t)
    (when (or duet-projects--problems (null sessions))
      (let ((inhibit-read-only t))
        (save-excursion
          (goto-char (point-max))
          (insert (duet-projects--remarks sessions)))))
    (restore-buffer-modified-p nil)
    (force-mode-line-update)))

(defun duet-projects--fit ()
  "Fit the columns of the list to the width of its window."
  (let ((narrow (when-let ((window (get-buffer-window nil t)))
                  (< (window-width window) 76))))
    (setf (nth 1 (aref tabulated-list-format 2)) (if narrow 11 16)
          (nth 1 (aref tabulated-list-format 5)) (if narrow 6 10))
    (duet-sessions-fit-numbers 3)
    (duet-sessions-fit 4 12)))

(defun duet-projects--remarks (sessions)
  "Return the text below the list of SESSIONS: a hint if empty, and the errors."
  (concat
   (cond (sessions "")
         ((> duet-projects--asking 0) "\n Asking for the sessions of all projects…\n")
         (t (substitute-command-keys
             "\n No sessions in any project yet.  \\[duet] lists those of one project, and begins the first.\n")))
   (mapconcat (lambda (problem)
                (concat "\n " (propertize (duet-visible-line problem) 'face 'duet-attention)))
              duet-projects--problems "")))

(defun duet-projects--entry (session name)
  "Return the line of SESSION; NAME is a function from a root to a short name."
  (pcase-let ((`(,_ [,sign ,state ,number ,title ,agent ,age]) (duet-sessions-entry session))
              (root (duet-model-root (duet-session-model session))))
    (list (cons root (duet-session-id session))
          (vector sign state
                  (propertize (duet-visible-line (funcall name root))
                              'help-echo (duet-remote-abbreviate root))
                  number title agent age))))


;;; Commands

(defun duet-projects--here ()
  "Return the project and the session at point: (ROOT . ID)."
  (or (tabulated-list-get-id)
      (user-error "There is no session here")))

(defun duet-projects--root ()
  "Return the root of the project at point, or nil."
  (car (tabulated-list-get-id)))

(defun duet-projects--session ()
  "Return the session at point, or nil.
If this Emacs is connected to its project, return the session of that model."
  (when-let ((id (tabulated-list-get-id)))
    (let ((connection (gethash (car id) duet-connections)))
      (or (and connection (duet-connection-session connection (cdr id)))
          (when-let ((model (cl-find (car id) duet-projects--models
                                     :key #'duet-model-root :test #'equal)))
            (gethash (cdr id) (duet-model-sessions model)))))))

(defconst duet-projects--patience 10
  "Maximum time that a command waits for the server of a project, in seconds.")

(defun duet-projects--ready (session)
  "Return SESSION from the server of its project; start that if necessary.
This is the only function that waits for a server; \\`C-g' ends the wait."
  (let* ((id (duet-session-id session))
         (root (duet-model-root (duet-session-model session)))
         (connection (duet-connection-ensure root))
         (end (+ (float-time) duet-projects--patience)))
    (unless (duet-connection-session connection id)
      (message "Connecting to %s…" (duet-remote-abbreviate root)))
    (while (not (or (duet-connection-session connection id) (> (float-time) end)))
      (accept-process-output nil 0.05))
    (or (duet-connection-session connection id)
        (user-error "The server of %s has not sent this session%s"
                    (duet-remote-abbreviate root)
                    (if-let ((status (duet-connection-status connection)))
                        (concat ": " status)
                      "; RET asks for it")))))

(defun duet-projects-open ()
  "Show the session at point, in its project."
  (interactive (duet-only-in 'duet-projects-mode) duet-projects-mode)
  (pcase-let ((`(,root . ,id) (duet-projects--here)))
    (duet-bookmark-visit root id)))

(defun duet-projects-open-mouse (event)
  "Show the session at the place of EVENT, a click."
  (interactive "e" duet-projects-mode)
  (mouse-set-point event)
  (duet-projects-open))

(defun duet-projects-compose ()
  "Write the first prompt of a new session in the project of the session at point."
  (interactive (duet-only-in 'duet-projects-mode) duet-projects-mode)
  (duet-compose (duet-connection-ensure (car (duet-projects--here)))))

(defun duet-projects-narrow ()
  "Show only the sessions of the project at point."
  (interactive (duet-only-in 'duet-projects-mode) duet-projects-mode)
  (pcase-let* ((`(,root . ,id) (duet-projects--here))
               (connection (duet-connection-ensure root)))
    (duet-sessions-show connection)
    (when-let ((session (duet-connection-session connection id)))
      (duet-sessions-go-to (current-buffer) session))))

(defun duet-projects-refresh ()
  "Reload the sessions of all projects."
  (interactive (duet-only-in 'duet-projects-mode) duet-projects-mode)
  (duet-projects--ask)
  (duet-projects--print))

(duet-menu-bar-add duet-projects-mode-map
                   '(["Open" duet-projects-open]
                     ["New Session" duet-projects-compose
                      :help "Ask an agent for something in the project of the session at point"]
                     ["Sessions of This Project" duet-projects-narrow]
                     ["Refresh" duet-projects-refresh]))

(provide 'duet-projects)
;;; duet-projects.el ends here
