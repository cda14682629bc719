;;; duet-attempts.el --- Attempts of several agents at one prompt  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A prompt can be sent to several agents (`duet-compose-agents').  Each attempt is a
;; session in a git worktree of its own.  `duet-attempts' compares the attempts, and
;; `duet-attempts-choose' lands one and discards the others.

;;; Code:

(require 'cl-lib)
(require 'diff-mode)
(require 'subr-x)
(require 'tabulated-list)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-look)
(require 'duet-menu-bar)
(require 'duet-model)
(require 'duet-progress)
(require 'duet-remote)
(require 'duet-sessions)
(require 'duet-transcript)
(require 'duet-visible)
(require 'duet-worktree)

(declare-function duet "duet" (&optional directory))
(declare-function duet-approval-next "duet-approvals" ())
(declare-function duet-approvals "duet-approvals" ())
(declare-function duet-worktree "duet-menu" ())

(defvar-local duet-attempts--group nil
  "The common group id of the sessions of all attempts.")
(defvar-local duet-attempts--one nil
  "The id of the session of one of the attempts, for requests.")
(defvar-local duet-attempts--prompt ""
  "The prompt of all attempts.")
(defvar-local duet-attempts--all nil
  "The attempts, from the server's last comparison.")
(defvar-local duet-attempts--unfolded nil
  "The ids of the sessions of attempts with visible files.")
(defvar-local duet-attempts--discarded nil
  "Results for the other attempts: conses of a session's id and a line of text.")
(defvar-local duet-attempts--seen nil
  "The states of the sessions at the last request.")

(defvar duet-attempts-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map tabulated-list-mode-map)
    (define-key map (kbd "RET") #'duet-attempts-visit)
    (define-key map [mouse-2] #'duet-attempts-visit-mouse)
    (define-key map [follow-link] 'mouse-face)
    (define-key map (kbd "TAB") #'duet-attempts-toggle)
    (define-key map "=" #'duet-attempts-patch)
    (define-key map "a" #'duet-attempts-choose)
    (define-key map "%" #'duet-worktree)
    (define-key map "r" #'duet-continue)
    (define-key map "i" #'duet-interrupt)
    (define-key map "g" #'duet-attempts-refresh)
    (define-key map "j" #'duet-approval-next)
    (define-key map "w" #'duet-approvals)
    (define-key map "l" #'duet)
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-attempts-mode'.")

(define-derived-mode duet-attempts-mode tabulated-list-mode "Duet-Attempts"
  "Major mode that compares the attempts of several agents at one prompt.

\\{duet-attempts-mode-map}"
  (setq tabulated-list-padding 1
        tabulated-list-printer #'duet-attempts--print-entry
        duet-actions-session-at-point-function #'duet-attempts--session))

(duet-menu-bar-add duet-attempts-mode-map
                   '(["Open" duet-attempts-visit]
                     ["Files" duet-attempts-toggle :help "Show which files the attempt has changed"]
                     ["Changes" duet-attempts-patch :help "Show the attempt's changes"]
                     ["Choose…" duet-attempts-choose :help "Land this attempt, and discard the others"]
                     ["Continue" duet-continue :help "Write the next prompt of this attempt"]
                     ["Refresh" duet-attempts-refresh]))

;;; The buffer

(defun duet-attempts-session ()
  "Return a session that is one of several attempts.
It is the session of the buffer or at point, or else the project's last one."
  (let ((session (duet-actions-session t)))
    (cond ((null session)
           (or (cl-find-if #'duet-session-attempts
                           (duet-model-session-list
                            (duet-connection-model (duet-connection-here))))
               (user-error "%s" (substitute-command-keys
                                 "No prompt had several agents; \\<duet-compose-mode-map>\\[duet-compose-agents] in a new prompt names them"))))
          ((duet-session-attempts (setq session (duet-actions-session))) session)
          (t (user-error "This session is not one of several attempts")))))

;;;###autoload
(defun duet-attempts (session)
  "Compare SESSION with the other attempts at its prompt.
Without a session here, compare the last attempts of the project."
  (interactive (list (duet-attempts-session)))
  (let ((buffer (duet-attempts--buffer (duet-connection-here session) session)))
    (with-current-buffer buffer (duet-attempts--ask))
    (pop-to-buffer buffer)))

(defun duet-attempts-show-launched (connection session)
  "Compare SESSION of CONNECTION, just launched, with the other attempts.
Select the window unless the minibuffer is in use."
  (let ((buffer (duet-attempts--buffer connection session)))
    (with-current-buffer buffer (duet-attempts--ask))
    (if (active-minibuffer-window) (display-buffer buffer) (pop-to-buffer buffer))))

(defun duet-attempts--buffer (connection session)
  "Return the buffer that compares SESSION of CONNECTION; create it if needed."
  (or (cl-find-if
       (lambda (buffer)
         (with-current-buffer buffer
           (and (derived-mode-p 'duet-attempts-mode)
                (eq duet-connection connection)
                (or (and duet-attempts--group
                         (equal duet-attempts--group (duet-session-attempts session)))
                    ;; The group is unknown until the server has replied.
                    (equal duet-attempts--one (duet-session-id session))
                    (memq session (duet-attempts--sessions))))))
       (buffer-list))
      (with-current-buffer (generate-new-buffer "*duet attempts*")
        (duet-attempts-mode)
        (setq duet-connection connection
              default-directory (duet-connection-root connection)
              duet-attempts--group (duet-session-attempts session)
              duet-attempts--one (duet-session-id session))
        (duet-model-follow #'duet-attempts--observe (duet-connection-model connection))
        (current-buffer))))

(defun duet-attempts--observe (_model kind &rest _)
  "Compare again if a change of KIND has changed the state of an attempt."
  (when (and (memq kind '(sessions session gate worktree))
             (not (equal duet-attempts--seen (duet-attempts--states))))
    (duet-attempts--ask)))

(defun duet-attempts--session-of (attempt)
  "Return the session of ATTEMPT, or nil if it is not loaded."
  (duet-connection-session duet-connection (duet-get-string attempt :session_uuid)))

(defun duet-attempts--sessions ()
  "Return the loaded sessions of the attempts."
  (delq nil (mapcar #'duet-attempts--session-of duet-attempts--all)))

(defun duet-attempts--states ()
  "Return the parts of the sessions that a comparison depends on."
  (mapcar (lambda (session)
            (list (duet-session-id session) (duet-session-leaf-id session)
                  (duet-session-state session) (duet-session-gates session)
                  (duet-session-lost-worktree-p session)))
          (duet-attempts--sessions)))

(defun duet-attempts-refresh ()
  "Compare the attempts again."
  (interactive (duet-only-in 'duet-attempts-mode) duet-attempts-mode)
  (duet-attempts--ask))

(defun duet-attempts--ask ()
  "Ask the server to compare the attempts, and show the result."
  (setq duet-attempts--seen (duet-attempts--states))
  (duet-connection-request
   duet-connection 'attempt.list (list :session duet-attempts--one)
   :success-fn (duet-latest
                (lambda (result)
                  (let ((first (null duet-attempts--all)))
                    (setq duet-attempts--prompt (or (duet-get-string result :prompt) "")
                          duet-attempts--all (duet-get-objects result :attempts))
                    (unless duet-attempts--group
                      (setq duet-attempts--group
                            (cl-some #'duet-session-attempts (duet-attempts--sessions))))
                    (duet-attempts--print)
                    ;; Before the first reply the sessions are unknown, so
                    ;; changes of them were missed.
                    (when first
                      (rename-buffer (format "*duet attempts: %s*"
                                             (truncate-string-to-width
                                              (duet-visible-line duet-attempts--prompt)
                                              60 nil nil "…"))
                                     t)
                      (duet-attempts--ask)))))))


;;;; Contents

(defun duet-attempts--agent (attempt)
  "Return the agent of ATTEMPT, and its model if the user chose one."
  (let ((model (duet-get-string attempt :model)))
    (duet-visible-line (concat (duet-get-string attempt :agent)
                               (and model (format " (%s)" model))))))

(defun duet-attempts--name (attempt)
  "Return the name of ATTEMPT: its agent and its turn."
  (format "%s (%s)" (duet-attempts--agent attempt)
          (duet-visible-line (or (duet-get-string attempt :turn) "?"))))

(defun duet-attempts--gates (attempt)
  "Return the state of the gates of ATTEMPT in words, or an empty string."
  (let ((state (duet-get-string attempt :gates :state))
        (failing (duet-get-strings (duet-get attempt :gates) :failing)))
    (duet-visible-line
     (concat state (and failing (concat ": " (string-join failing ", ")))))))

(defun duet-attempts--lines (attempt)
  "Return the number of changed lines of ATTEMPT, and whether it landed."
  (let ((landed (duet-get attempt :landed))
        (lines (concat (propertize (format "+%d" (or (duet-get-number attempt :added) 0))
                                   'face 'duet-done)
                       " "
                       (propertize (format "-%d" (or (duet-get-number attempt :removed) 0))
                                   'face 'duet-failed))))
    (cond ((duet-get-string attempt :unknown) "")
          ((null landed) lines)
          ((duet-get-objects attempt :files) (concat lines ", landed"))
          (t "no change"))))

(defun duet-attempts--columns (attempt)
  "Return the columns of ATTEMPT: conses of a heading and text."
  (let ((state (intern (or (duet-get-string attempt :state) "unknown")))
        (cost (or (duet-get-number attempt :usage :cost_usd) 0)))
    (list (cons "" (duet-look-state state))
          (cons "State" (duet-look-state-name state))
          (cons "Turn" (duet-visible-line (or (duet-get-string attempt :turn) "")))
          (cons "Agent" (propertize (duet-attempts--agent attempt)
                                    'mouse-face 'highlight
                                    'help-echo "mouse-1, RET: show this session"))
          (cons "Gates" (duet-attempts--gates attempt))
          (cons "Files" (if (duet-get-string attempt :unknown) "?"
                          (number-to-string (duet-attempts--count attempt))))
          (cons "Lines" (duet-attempts--lines attempt))
          (cons "Time" (duet-progress-words
                        (/ (or (duet-get-number attempt :usage :time_ms) 0) 1000)))
          (cons "Cost" (if (= cost 0) "" (format "$%.2f" cost))))))

(defun duet-attempts--count (attempt)
  "Return the number of changed files of ATTEMPT."
  (+ (length (duet-get-objects attempt :files)) (or (duet-get-number attempt :more) 0)))

(defun duet-attempts--print ()
  "Show the attempts, and keep point on its line in each window."
  (let* ((gated (cl-some (lambda (attempt) (duet-get attempt :gates)) duet-attempts--all))
         (rows (mapcar (lambda (attempt)
                         (let ((columns (duet-attempts--columns attempt)))
                           (if gated columns (cl-remove "Gates" columns :key #'car :test #'equal))))
                       duet-attempts--all))
         (here (duet-attempts--place))
         (windows (mapcar (lambda (window)
                            (cons window (save-excursion (goto-char (window-point window))
                                                         (duet-attempts--place))))
                          (get-buffer-window-list nil nil t))))
    (setq tabulated-list-format (duet-attempts--format rows)
          tabulated-list-entries
          (cl-mapcar (lambda (attempt row)
                       (list (duet-get-string attempt :session_uuid) (vconcat (mapcar #'cdr row))))
                     duet-attempts--all rows))
    (when-let ((agent (cl-position "Agent" tabulated-list-format :key #'car :test #'equal)))
      (let* ((column (aref tabulated-list-format agent))
             (width (nth 1 column)))
        (setf (nth 1 column) -1)
        (duet-sessions-fit agent 8)
        (setf (nth 1 column) (min width (nth 1 column)))))
    (tabulated-list-init-header)
    (tabulated-list-print)
    (let ((inhibit-read-only t))
      (goto-char (point-max))
      (insert (duet-attempts--remarks)))
    (restore-buffer-modified-p nil)
    (goto-char (duet-attempts--position here))
    (pcase-dolist (`(,window . ,place) windows)
      (set-window-point window (duet-attempts--position place)))))

(defun duet-attempts--format (rows)
  "Return the format of a list of ROWS, with columns as wide as their contents."
  (apply #'vector
         (cl-loop for (heading) in (car rows)
                  for number from 0
                  collect (list heading
                                (apply #'max 2 (string-width heading)
                                       (mapcar (lambda (row) (string-width (cdr (nth number row))))
                                               rows))
                                nil))))

(defun duet-attempts--remarks ()
  "Return the text below the attempts: the prompt and the main keys."
  (concat "\n " (propertize (truncate-string-to-width (duet-visible-line duet-attempts--prompt)
                                                      500 nil nil "…")
                            'face 'bold)
          "\n "
          (propertize (substitute-command-keys
                       "\\<duet-attempts-mode-map>\\[duet-attempts-toggle] files, \\[duet-attempts-patch] changes, \\[duet-attempts-visit] session, \\[duet-attempts-choose] chooses")
                      'face 'duet-dim)
          "\n"))

(defun duet-attempts--print-entry (session columns)
  "Insert the line of the attempt SESSION, an id, with COLUMNS and the lines below."
  (tabulated-list-print-entry session columns)
  (pcase-dolist (`(,text . ,file) (duet-attempts--below (duet-attempts--find session)))
    (insert (propertize (concat "     " text "\n")
                        'tabulated-list-id session 'duet-attempts-file file))))

(defun duet-attempts--below (attempt)
  "Return the lines below ATTEMPT: conses of text and the name of a file or nil."
  (append
   (when-let ((text (or (cdr (assoc (duet-get-string attempt :session_uuid) duet-attempts--discarded))
                        (duet-get-string attempt :unknown))))
     (list (list (propertize (duet-visible-line text) 'face 'duet-dim))))
   (when-let ((text (duet-get-string attempt :error)))
     (list (list (propertize (duet-visible-line text) 'face 'duet-failed))))
   (when (member (duet-get-string attempt :session_uuid) duet-attempts--unfolded)
     (append
      (mapcar (lambda (file)
                (let ((path (or (duet-get-string file :path) "")))
                  (cons (concat (propertize (duet-visible-line path) 'mouse-face 'highlight)
                                (if (duet-get file :binary) "  binary"
                                  (format "  +%d -%d" (or (duet-get-number file :added) 0)
                                          (or (duet-get-number file :removed) 0))))
                        path)))
              (duet-get-objects attempt :files))
      (when-let ((more (duet-get-number attempt :more)))
        (list (list (format "and %d more" more))))))))

(defun duet-attempts--find (session)
  "Return the attempt with the id SESSION, or nil."
  (cl-find session duet-attempts--all
           :test #'equal :key (lambda (attempt) (duet-get-string attempt :session_uuid))))

(defun duet-attempts--place ()
  "Return the place of point: (SESSION . FILE)."
  (cons (tabulated-list-get-id) (get-text-property (point) 'duet-attempts-file)))

(defun duet-attempts--position (place)
  "Return the position of PLACE, or of its attempt, or of the first line."
  (save-excursion
    (let (line)
      (goto-char (point-min))
      (while (not (eobp))
        (let ((this (duet-attempts--place)))
          (when (and (car place) (equal (car this) (car place))
                     (or (null line) (equal this place)))
            (setq line (point))))
        (forward-line 1))
      (or line (point-min)))))


;;; Commands

(defun duet-attempts--here ()
  "Return the attempt at point."
  (or (duet-attempts--find (tabulated-list-get-id)) (user-error "There is no attempt here")))

(defun duet-attempts--session ()
  "Return the session of the attempt at point, or nil."
  (when-let ((session (tabulated-list-get-id)))
    (duet-connection-session duet-connection session)))

(defun duet-attempts-visit ()
  "Show the session of the attempt at point, or the file at point."
  (interactive nil duet-attempts-mode)
  (let ((session (duet-actions-session))
        (file (get-text-property (point) 'duet-attempts-file)))
    (if (null file) (duet-transcript-show duet-connection session)
      (find-file-other-window
       (duet-host-visit-name
        (duet-worktree-file duet-connection session
                            (concat (duet-worktree--directory duet-connection session) file)))))))

(defun duet-attempts-visit-mouse (event)
  "Show the session or the file at the click EVENT."
  (interactive "e" duet-attempts-mode)
  (mouse-set-point event)
  (duet-attempts-visit))

(defun duet-attempts-toggle ()
  "Show the changed files of the attempt at point, or hide them."
  (interactive (duet-only-in 'duet-attempts-mode) duet-attempts-mode)
  (let ((session (duet-get-string (duet-attempts--here) :session_uuid)))
    (setq duet-attempts--unfolded (if (member session duet-attempts--unfolded)
                                      (delete session duet-attempts--unfolded)
                                    (cons session duet-attempts--unfolded)))
    (duet-attempts--print)))

(defvar duet-attempts-patch-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map (make-composed-keymap special-mode-map diff-mode-map))
    (define-key map (kbd "RET") #'diff-goto-source)
    (define-key map "n" #'diff-hunk-next)
    (define-key map "p" #'diff-hunk-prev)
    (define-key map (kbd "M-n") #'diff-file-next)
    (define-key map (kbd "M-p") #'diff-file-prev)
    map)
  "Keymap of `duet-attempts-patch-mode'.")

(define-derived-mode duet-attempts-patch-mode diff-mode "Duet-Patch"
  "Major mode of the changes of an attempt.

\\{duet-attempts-patch-mode-map}"
  (setq buffer-read-only t
        buffer-undo-list t)
  ;; Else the keys of `diff-mode' for read-only buffers precede ours.
  (setq-local minor-mode-overriding-map-alist nil))

(defun duet-attempts-patch ()
  "Show the changes of the attempt at point as a diff."
  (interactive (duet-only-in 'duet-attempts-mode) duet-attempts-mode)
  (let ((attempt (duet-attempts--here))
        (connection duet-connection))
    (duet-connection-request
     connection 'attempt.list (list :session duet-attempts--one :patch t)
     :success-fn
     (duet-latest
      (lambda (result)
        (setq duet-attempts--all (duet-get-objects result :attempts))
        (duet-attempts--print)
        (let ((session (duet-get-string attempt :session_uuid)))
          (duet-attempts--show-patch
           connection (or (duet-attempts--find session) attempt))))))))

(defun duet-attempts--show-patch (connection attempt)
  "Show the patch of ATTEMPT of CONNECTION."
  (let ((patch (duet-get-string attempt :patch))
        (directory (duet-get-string attempt :worktree :dir)))
    (if (or (null patch) (string-empty-p patch))
        (message "%s" (if-let ((why (duet-get-string attempt :unknown))) (duet-visible-line why)
                        (format "%s has changed nothing" (duet-attempts--name attempt))))
      (with-current-buffer (get-buffer-create
                            (format "*duet changes: %s*" (duet-attempts--name attempt)))
        (let ((inhibit-read-only t))
          (erase-buffer)
          (insert (duet-visible patch))
          (when (duet-get attempt :patch_cut)
            (insert (propertize (format "The rest is too long: git -C %s diff\n"
                                        (duet-visible-line (or directory "")))
                                'face 'duet-dim))))
        (duet-attempts-patch-mode)
        (setq duet-connection connection
              default-directory
              (if (and directory (not (duet-get attempt :worktree :gone)))
                  (file-name-as-directory
                   (duet-remote-name directory (duet-connection-root connection)))
                (duet-connection-root connection)))
        (set-buffer-modified-p nil)
        (goto-char (point-min))
        (pop-to-buffer (current-buffer))))))


;;; Choosing

(defun duet-attempts--chooseable ()
  "Return the session here, if it is one of several attempts and can be landed."
  (let ((session (duet-worktree-session)))
    (unless (duet-session-attempts session)
      (user-error "This session is not one of several attempts"))
    (when (duet-session-active-turn session)
      (user-error "The agent of this attempt still works; interrupt it, or wait"))
    session))

(defun duet-attempts-choose (session &optional method message)
  "Land the worktree of SESSION, and discard the other attempts at its prompt.
Ask first.  Git refs keep the work of the others, and the comparison shows
their names.  If landing fails, discard nothing.

METHOD and MESSAGE are as for `duet-land'; a prefix argument asks for them."
  (interactive (cons (duet-attempts--chooseable)
                     (and current-prefix-arg (duet-worktree--read-method)))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode
               duet-attempts-mode)
  (let ((connection (duet-connection-here)))
    (duet-connection-request
     connection 'attempt.list (list :session (duet-session-id session))
     :success-fn
     (lambda (result)
       ;; The minibuffer must not be entered in a process filter.
       (run-at-time 0 nil #'duet-attempts--ask-choose connection session
                    (duet-get-objects result :attempts)
                    (duet-worktree--land-parameters session method message))))))

(defun duet-attempts--ask-choose (connection session attempts parameters)
  "Ask whether to land SESSION of CONNECTION and discard the other ATTEMPTS.
PARAMETERS are parameters of attempt.choose."
  (let* ((chosen (cl-find (duet-session-id session) attempts :test #'equal
                          :key (lambda (attempt) (duet-get-string attempt :session_uuid))))
         (others (cl-remove-if (lambda (attempt) (duet-get attempt :worktree :gone))
                               (remq chosen attempts))))
    (if (y-or-n-p
         (format "Land %s%s? " (duet-attempts--name chosen)
                 (if others (concat ", and discard " (mapconcat #'duet-attempts--name others ", "))
                   "")))
        (duet-attempts--choose connection session parameters)
      (message "Nothing was landed"))))

(defun duet-attempts--choose (connection session parameters)
  "Land SESSION of CONNECTION, and discard the others, with PARAMETERS."
  (duet-worktree--land
   connection session 'attempt.choose parameters
   (lambda (result) (duet-attempts--chosen connection session result))
   (lambda (err)
     (when (and (equal (duet-get-string (plist-get err :data) :kind) "bad_state")
                (not (plist-get parameters :interrupt)))
       (run-at-time 0 nil #'duet-attempts--ask-interrupt connection session parameters err)
       t))))

(defun duet-attempts--ask-interrupt (connection session parameters err)
  "Ask whether to interrupt the attempts in ERR, which still work.
If so, land SESSION of CONNECTION with PARAMETERS."
  (let ((working (car (split-string (duet-connection-error-text err) ": "))))
    (if (y-or-n-p (format "%s.  Interrupt and discard them? "
                          (concat (upcase (substring working 0 1)) (substring working 1))))
        (duet-attempts--choose connection session (append parameters (list :interrupt t)))
      (message "Nothing was landed, because %s" working))))

(defun duet-attempts--chosen (connection session result)
  "Report the results for all attempts, from RESULT of attempt.choose.
Show the buffer that compares SESSION of CONNECTION, since it has the refs."
  (let* ((discarded (duet-get-objects result :discarded))
         (stay (cl-count-if (lambda (one) (duet-get-string one :error)) discarded))
         (gone (- (length discarded) stay)))
    (with-current-buffer (duet-attempts--buffer connection session)
      (dolist (one discarded)
        (when-let ((other (duet-connection-session connection (duet-get-string one :turn_uuid))))
          (push (cons (duet-session-id other) (duet-attempts--became one))
                duet-attempts--discarded)))
      (duet-attempts--ask)
      (display-buffer (current-buffer)))
    (message "%s%s%s" (duet-worktree--landed-words result)
             (if (> gone 0) (format "; discarded %s" (duet-worktree--count gone "other attempt")) "")
             (if (> stay 0) (format "; %s" (if (= stay 1) "1 stays" (format "%d stay" stay))) ""))))

(defun duet-attempts--became (discarded)
  "Return the result for DISCARDED, an attempt that was not chosen, in words."
  (let ((problem (duet-get-string discarded :error))
        (ref (duet-get-string discarded :ref)))
    (string-join
     (delq nil
           (list (cond (problem (concat "not discarded: " problem))
                       (ref (format "discarded; git branch NAME %s brings its work back" ref))
                       (t "discarded"))
                 (and (duet-get discarded :branch_kept)
                      "its branch stays, because another working tree has it checked out")
                 (when-let ((cleanup (duet-get-string discarded :cleanup_error)))
                   (concat "cleanup failed: " cleanup))))
     "; ")))

(provide 'duet-attempts)
;;; duet-attempts.el ends here
