;;; duet-sessions.el --- The list of sessions, and its marks  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-sessions-show' shows the sessions of a project, the last active first.  The
;; list follows the model and keeps point on its session.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'tabulated-list)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-look)
(require 'duet-remote)
(require 'duet-transcript)

(declare-function duet "duet" (&optional directory))
(declare-function duet-compose "duet-compose" (connection &optional session turn))
(declare-function duet-approval-next "duet-approvals" ())
(declare-function duet-approvals "duet-approvals" ())
(declare-function duet-diff "duet-diff" (session))
(declare-function duet-projects "duet-projects" ())
(declare-function duet-diff-all "duet-diff" (session))
(declare-function duet-worktree "duet-menu" ())

;;; The list

(defvar-local duet-sessions--archived nil
  "Whether the list shows the archived sessions.")

(defun duet-sessions-archive-p ()
  "Return non-nil if the current list shows the archived sessions."
  duet-sessions--archived)

(defun duet-sessions-keymap (open open-mouse compose refresh)
  "Return a keymap for a list of sessions, with the keys of all such lists.
OPEN, OPEN-MOUSE, COMPOSE and REFRESH are the list's own commands."
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map tabulated-list-mode-map)
    (define-key map (kbd "RET") open)
    (define-key map [mouse-2] open-mouse)
    (define-key map [follow-link] 'mouse-face)
    (define-key map "c" compose)
    (define-key map "g" refresh)
    (define-key map "j" #'duet-approval-next)
    (define-key map "w" #'duet-approvals)
    (define-key map "?" #'duet-menu-or-help)
    map))

(defvar duet-sessions-mode-map
  (let ((map (duet-sessions-keymap #'duet-sessions-open #'duet-sessions-open-mouse
                                   #'duet-sessions-compose #'duet-sessions-refresh)))
    (define-key map "i" #'duet-interrupt)
    (define-key map "r" #'duet-continue)
    (define-key map "f" #'duet-fork)
    (define-key map "G" #'duet-rewind)
    (define-key map "%" #'duet-worktree)
    (define-key map "/" #'duet-search-or-say)
    (define-key map "z" #'duet-archive)
    (define-key map "Z" #'duet-sessions-toggle-archived)
    (define-key map "T" #'duet-rename)
    (define-key map "l" #'duet)
    (define-key map "P" #'duet-projects)
    (define-key map "=" #'duet-diff)
    (define-key map (kbd "M-=") #'duet-diff-all)
    map)
  "Keymap of `duet-sessions-mode'.")

(define-derived-mode duet-sessions-mode tabulated-list-mode "Duet-Sessions"
  "Major mode of the list of a project's sessions.

\\{duet-sessions-mode-map}"
  (setq tabulated-list-format (vector (list "" 2 nil) (list "State" 17 t)
                                      (list "#" 2 #'duet-sessions-number-before-p
                                            :right-align t)
                                      (list "Session" 48 t) (list "Agent" 12 t)
                                      (list "Age" 4 nil))
        tabulated-list-padding 1
        duet-actions-session-at-point-function #'tabulated-list-get-id
        mode-line-process '(:eval (duet-sessions--mode-line)))
  ;; This leaves room for the number of open questions, at the end.
  (setq-local mode-line-position nil)
  (tabulated-list-init-header))

(defun duet-sessions-buffer (connection)
  "Return the list of the sessions of CONNECTION, a buffer; make it if necessary."
  (let* ((root (duet-connection-root connection))
         (name (format "*duet: %s*" (if (duet-connection-host connection)
                                        (duet-connection-project connection)
                                      (duet-remote-abbreviate root)))))
    (or (cl-find-if (lambda (buffer)
                      (and (eq (buffer-local-value 'major-mode buffer)
                               'duet-sessions-mode)
                           (eq (buffer-local-value 'duet-connection buffer)
                               connection)))
                    (buffer-list))
        (with-current-buffer (generate-new-buffer name)
          (duet-sessions-mode)
          (setq duet-connection connection
                default-directory root)
          (duet-sessions-follow #'duet-sessions--print (duet-connection-model connection))
          (duet-sessions--print)
          (current-buffer)))))

(defun duet-sessions-show (connection)
  "Show the sessions of CONNECTION in a window."
  (pop-to-buffer (duet-sessions-buffer connection)
                 '((display-buffer-reuse-window display-buffer-same-window))))

(defun duet-sessions-follow (print &optional model)
  "Call PRINT in the current buffer, a list of sessions, soon after a change.
The change may be one of a session of MODEL, or of any model if that is nil.
It may also be a new size of a window of the list."
  (let* ((buffer (current-buffer))
         (timer nil)
         (tick (lambda ()
                 (setq timer nil)
                 (when (buffer-live-p buffer)
                   (with-current-buffer buffer
                     (duet-log-guard "List of sessions"
                       (funcall print))))))
         (later (lambda (seconds)
                  (unless timer
                    (setq timer (run-at-time seconds nil tick))))))
    (duet-model-follow
     (lambda (_model kind &rest _)
       (when (memq kind '(sessions session approval approval-resolved connection))
         ;; Print a long list less often.
         (funcall later (+ 0.1 (* 0.001 (length tabulated-list-entries))))))
     model)
    (add-hook 'window-size-change-functions (lambda (_window) (funcall later 0)) nil t)
    (add-hook 'kill-buffer-hook (lambda () (when timer (cancel-timer timer))) nil t)))

(defun duet-sessions-fit (number least)
  "Give the column NUMBER of a list the remaining width of the window.
Its minimum width is LEAST."
  (let ((column (aref tabulated-list-format number))
        (room (- (if-let ((window (get-buffer-window nil t)))
                     (window-width window)
                   (frame-width))
                 tabulated-list-padding
                 ;; A heading in the buffer ends in a space.
                 (if tabulated-list-use-header-line 0 1))))
    (seq-doseq (other tabulated-list-format)
      (setq room (- room 1 (if (eq other column) 0 (nth 1 other)))))
    (unless (= (nth 1 column) (max room least))
      (setf (nth 1 column) (max room least))
      (tabulated-list-init-header))))

(defun duet-sessions-fit-numbers (number)
  "Give the column NUMBER of a list, of numbers of sessions, the needed width."
  (setf (nth 1 (aref tabulated-list-format number))
        (apply #'max 2 (mapcar (lambda (entry) (string-width (aref (cadr entry) number)))
                               tabulated-list-entries))))

(defun duet-sessions-number-before-p (a b)
  "Return non-nil if the session of the line A has a lower number than that of B."
  (let ((column (cl-position "#" tabulated-list-format :key #'car :test #'equal)))
    (< (string-to-number (aref (cadr a) column)) (string-to-number (aref (cadr b) column)))))

(defun duet-sessions--print ()
  "Print the list anew; keep point on its session.
If that session is gone, move point to the one that followed it."
  (let* (;; The printed lines of 300 sessions cause four garbage collections, which take
         ;; longer than the rest; one at the end is enough.
         (gc-cons-threshold (max gc-cons-threshold 16000000))
         (sessions (cl-remove-if-not
                    (lambda (session)
                      (eq (and (duet-session-archived session) t)
                          duet-sessions--archived))
                    (duet-model-session-list (duet-connection-model duet-connection))))
         (was (duet-sessions--shown))
         (here (tabulated-list-get-id))
         (windows (mapcar (lambda (window)
                            (cons window (save-excursion
                                           (goto-char (window-point window))
                                           (tabulated-list-get-id))))
                          (remq (selected-window)
                                (get-buffer-window-list nil nil t)))))
    (setq tabulated-list-entries (mapcar #'duet-sessions-entry sessions))
    (duet-sessions-fit-numbers 2)
    (duet-sessions-fit 3 16)
    (tabulated-list-print t)
    (unless sessions
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert (duet-sessions--hint))
        (duet-sessions-fill-hint)
        (goto-char (point-min))))
    (restore-buffer-modified-p nil)
    (when (and here (not (memq here sessions)))
      (goto-char (duet-sessions--place-after here was)))
    (pcase-dolist (`(,window . ,id) windows)
      (when id
        (set-window-point window (duet-sessions--place-after id was))))
    (force-mode-line-update)))

(defun duet-sessions--shown ()
  "Return the sessions in the buffer, in their order."
  (let (sessions)
    (save-excursion
      (goto-char (point-min))
      (while (not (eobp))
        (when-let ((session (tabulated-list-get-id))) (push session sessions))
        (forward-line 1)))
    (nreverse sessions)))

(defun duet-sessions--place (session)
  "Return the start of the line of SESSION, or nil."
  (save-excursion
    (goto-char (point-min))
    (while (not (or (eobp) (eq (tabulated-list-get-id) session)))
      (forward-line 1))
    (and (not (eobp)) (point))))

(defun duet-sessions--place-after (session was)
  "Return the place of SESSION, or of the next listed one in the list WAS.
If there is none, return the place of the previous one, or the first line."
  (let ((rest (memq session was)))
    (or (cl-some #'duet-sessions--place rest)
        (cl-some #'duet-sessions--place (reverse (butlast was (length rest))))
        (point-min))))

(defun duet-sessions-go-to (buffer session)
  "Go to the line of SESSION in BUFFER, a list of sessions, in all its windows."
  (with-current-buffer buffer
    (duet-sessions--print)
    (when-let ((place (duet-sessions--place session)))
      (goto-char place)
      (dolist (window (get-buffer-window-list nil nil t))
        (set-window-point window place)))))

(defun duet-sessions-fill-hint ()
  "Fill the lines of the hint in the current buffer, an empty list."
  (let ((fill-column (max 20 (- (min 80 (frame-width)) 2)))
        (fill-prefix " "))
    (fill-region (point-min) (point-max))))

(defun duet-sessions--hint ()
  "Return the hint for an empty list."
  (let ((status (duet-connection-status duet-connection)))
    (concat "\n "
            (cond
             ((memq (duet-connection-state duet-connection) '(lost refused))
              (concat (or (duet-connection-reason duet-connection) "") "\n\n "
                      (if (and (eq (duet-connection-state duet-connection) 'refused)
                               duet-host-send (duet-connection-local duet-connection))
                          (substitute-command-keys
                           "\\<duet-sessions-mode-map>\\[duet-sessions-compose] begins a session with your files, which brings the project there.")
                        status)))
             (status status)
             (duet-sessions--archived
              (substitute-command-keys
               "Nothing is in the archive.  \\<duet-sessions-mode-map>\\[duet-sessions-toggle-archived] shows the other sessions."))
             ((cl-some #'duet-session-archived
                       (duet-model-session-list (duet-connection-model duet-connection)))
              (substitute-command-keys
               "All sessions are in the archive.  \\<duet-sessions-mode-map>\\[duet-sessions-toggle-archived] shows it, \\[duet-sessions-compose] begins another."))
             (t
              (substitute-command-keys
               "No sessions yet.  \\<duet-sessions-mode-map>\\[duet-sessions-compose] begins one, \\[duet-menu-or-help] lists all commands."))))))

(defun duet-sessions--background (session)
  "Return the background work of SESSION's agent in words, or nil.
The words leave room for a name in the column of names."
  (when-let ((words (duet-actions-background-words session)))
    (if (<= (+ (string-width words) 22) (duet-sessions--room))
        words
      (replace-regexp-in-string "\\`works in the background: \\([0-9]+\\).*" "in background: \\1" words))))

(defun duet-sessions--room ()
  "Return the width of the column of names in the current buffer, a list."
  (or (nth 1 (cl-find "Session" tabulated-list-format :key #'car :test #'equal))
      most-positive-fixnum))

(defun duet-sessions--beside (words session)
  "Return the name of SESSION, cut so that WORDS fit beside it."
  (truncate-string-to-width (duet-session-name session)
                            (max 8 (- (duet-sessions--room) (string-width words) 2))
                            nil nil "…"))

(defun duet-sessions--remarks (session)
  "Return the text beside the name of SESSION, or nil.
It contains background work, the word attempt, and the worktree."
  (when-let ((remarks (delq nil (list (duet-sessions--background session)
                                      (and (duet-session-attempts session)
                                           (>= (duet-sessions--room) 40)
                                           (propertize "attempt" 'face 'duet-dim 'help-echo
                                                       "One of several agents at this prompt"))
                                      (duet-actions-worktree-words
                                       session (max 10 (min 40 (/ (duet-sessions--room) 2))))))))
    (string-join remarks "  ")))

(defun duet-sessions-entry (session)
  "Return the line of SESSION."
  (let* ((state (duet-session-state session))
         (queued (duet-session-queued session))
         (waiting (length (duet-session-approvals session)))
         (remarks (duet-sessions--remarks session))
         (err (and (memq state '(failed timed_out)) (duet-session-error session))))
    (list session
          (vector (duet-look-state state)
                  (concat (duet-look-state-name state)
                          (if (duet-session-silence session) ", silent" "")
                          (if (> waiting 1) (format " (%d)" waiting) "")
                          (if (and (> queued 0) (not (eq state 'queued)))
                              (format " +%d" queued) ""))
                  (duet-visible-line (or (duet-session-number session) ""))
                  (concat (propertize (if remarks (duet-sessions--beside remarks session)
                                        (duet-session-name session))
                                      'mouse-face 'highlight
                                      'help-echo "mouse-1, RET: show this session")
                          (if remarks (concat "  " remarks) "")
                          (if err (propertize (concat "  " (duet-visible-line (car (split-string err "\n"))))
                                              'face 'duet-failed)
                            ""))
                  (duet-visible-line (or (duet-session-agent session) ""))
                  (duet-sessions--age (duet-session-changed session))))))

(defun duet-sessions--seconds (time)
  "Return TIME, as the protocol writes it, in seconds since the epoch, or 0.
This is many times faster than `parse-time-string'."
  (if (string-match "\\`\\(....\\)-\\(..\\)-\\(..\\)T\\(..\\):\\(..\\):\\(..\\)" time)
      (cl-flet ((part (n) (string-to-number (match-string n time))))
        (float-time (encode-time (list (part 6) (part 5) (part 4) (part 3) (part 2)
                                       (part 1) nil nil t))))
    0))

(defun duet-sessions--age (time)
  "Return the time since TIME, in a few characters."
  (if (or (null time) (string-empty-p time))
      ""
    (let ((seconds (max 0 (float-time (time-since (duet-sessions--seconds time))))))
      (cond ((< seconds 60) "now")
            ((< seconds 3600) (format "%dm" (/ seconds 60)))
            ((< seconds 86400) (format "%dh" (/ seconds 3600)))
            (t (format "%dd" (/ seconds 86400)))))))

(defun duet-sessions--mode-line ()
  "Return the state of the connection for the mode line."
  (if-let ((status (and duet-connection (duet-connection-status duet-connection))))
      (concat " " (propertize (concat "[" (string-replace "%" "%%" status) "]")
                              'face 'duet-attention))
    ""))


;;;; Commands

(defun duet-sessions-open ()
  "Show the session at point."
  (interactive nil duet-sessions-mode)
  (duet-transcript-show duet-connection (duet-actions-session)))

(defun duet-sessions-open-mouse (event)
  "Show the session at the place of EVENT, a click."
  (interactive "e" duet-sessions-mode)
  (mouse-set-point event)
  (duet-sessions-open))

(defun duet-sessions-compose ()
  "Write the first prompt of a new session."
  (interactive (duet-only-in 'duet-sessions-mode) duet-sessions-mode)
  (duet-compose duet-connection))

(defun duet-sessions-toggle-archived ()
  "Show the archived sessions, or the other ones again."
  (interactive (duet-only-in 'duet-sessions-mode) duet-sessions-mode)
  (setq duet-sessions--archived (not duet-sessions--archived))
  (let* ((column (aref tabulated-list-format 3))
         (sorted (equal (car tabulated-list-sort-key) (car column))))
    (setcar column (if duet-sessions--archived "Session (archive)" "Session"))
    (when sorted (setcar tabulated-list-sort-key (car column)))
    (tabulated-list-init-header))
  (duet-sessions--print)
  (message (substitute-command-keys
            (if duet-sessions--archived
                "The archive; \\<duet-sessions-mode-map>\\[duet-sessions-toggle-archived] leaves it"
              "All but the archive"))))

(defun duet-sessions-refresh ()
  "Reload the sessions from the server; start it if it does not run."
  (interactive (duet-only-in 'duet-sessions-mode) duet-sessions-mode)
  (if (duet-connection-rpc duet-connection)
      (duet-connection-refresh duet-connection)
    (duet-connection-restart duet-connection))
  (duet-sessions--print))

;;; Marks

;; In the list of sessions `m' marks a session, `u' and `U' unmark, and `z' archives
;; the marked sessions, or the one at point.  In the archive it unarchives them.  `D'
;; deletes them after a question with the consequences.  A running session must be
;; interrupted first.  The marks survive an update of the list.

(defface duet-mark '((t :inherit warning :weight bold))
  "Face of marks in the list of sessions."
  :group 'duet)

(defvar-local duet-marks--sessions nil
  "The marked sessions.")

(defun duet-marks--setup ()
  "Show marks in the current buffer, a list of sessions."
  (setq tabulated-list-printer #'duet-marks--print))

(defun duet-marks--print (id columns)
  "Insert the line of the session ID, with COLUMNS, and its mark."
  (let ((beg (point)))
    (tabulated-list-print-entry id columns)
    (when (memq id duet-marks--sessions)
      (save-excursion
        (goto-char beg)
        (tabulated-list-put-tag (propertize "*" 'face 'duet-mark))))))

(defun duet-marks ()
  "Return the marked sessions of the list, in its order."
  (let ((listed (mapcar #'car tabulated-list-entries)))
    (cl-remove-if-not (lambda (session) (memq session duet-marks--sessions)) listed)))

(defun duet-mark ()
  "Mark the session at point and go to the next."
  (interactive (duet-only-in 'duet-sessions-mode) duet-sessions-mode)
  (cl-pushnew (duet-actions-session) duet-marks--sessions)
  (tabulated-list-put-tag (propertize "*" 'face 'duet-mark) t))

(defun duet-unmark ()
  "Unmark the session at point and go to the next."
  (interactive (duet-only-in 'duet-sessions-mode) duet-sessions-mode)
  (setq duet-marks--sessions (delq (duet-actions-session) duet-marks--sessions))
  (tabulated-list-put-tag " " t))

(defun duet-unmark-all ()
  "Unmark all sessions."
  (interactive (duet-only-in 'duet-sessions-mode) duet-sessions-mode)
  (setq duet-marks--sessions nil)
  (tabulated-list-clear-all-tags))

(defun duet-archive-marked ()
  "Archive or unarchive the marked sessions, or the session at point."
  (interactive nil duet-sessions-mode)
  ;; The visible list decides between the two: another editor may just have archived
  ;; a session that the list still shows.
  (let ((archived (not (duet-sessions-archive-p)))
        (sessions (duet-marks)))
    (cond ((null sessions)
           (duet-actions-set-archived (duet-actions-session) archived))
          ((or (length< sessions 10)
               (y-or-n-p (format (if archived "Archive %d sessions? "
                                   "Take %d sessions back? ")
                                 (length sessions))))
           (duet-marks--archive duet-connection sessions archived (current-buffer))))))

(defun duet-marks--archive (connection sessions archived buffer)
  "Archive SESSIONS of CONNECTION if ARCHIVED is non-nil, else unarchive them.
Remove the marks of the changed sessions in BUFFER."
  (let ((ids (mapcar #'duet-session-id sessions))
        (hint (if archived (duet-actions-archive-hint) "")))
    (duet-connection-request
     connection 'session.archive
     (list :sessions (vconcat ids) :archived (if archived t :json-false))
     :success-fn
     (lambda (result)
       (let* ((failed (duet-get-strings result :failed))
              (done (cl-remove-if (lambda (session)
                                    (member (duet-session-id session) failed))
                                  sessions)))
         (dolist (session done)
           (setf (duet-session-archived session) archived))
         (when (buffer-live-p buffer)
           (with-current-buffer buffer
             (setq duet-marks--sessions
                   (cl-set-difference duet-marks--sessions done))))
         (duet-model-announce (duet-connection-model connection) 'sessions)
         (message "%d %s%s%s" (length done)
                  (if archived "archived" "taken back from the archive")
                  (if failed (format "; %d could not be changed" (length failed)) "")
                  hint))))))

(add-hook 'duet-sessions-mode-hook #'duet-marks--setup)

(define-key duet-sessions-mode-map "m" #'duet-mark)
(define-key duet-sessions-mode-map "u" #'duet-unmark)
(define-key duet-sessions-mode-map "U" #'duet-unmark-all)
(define-key duet-sessions-mode-map "z" #'duet-archive-marked)


;;;; Deleting

(defun duet-delete (sessions)
  "Delete SESSIONS with their messages.  This cannot be undone.
The sessions are the one at point, or in a list the marked ones."
  (interactive (list (or (and (derived-mode-p 'duet-sessions-mode) (duet-marks))
                         (list (duet-actions-session))))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (let ((connection (duet-connection-here))
        (busy (cl-remove-if-not #'duet-marks--delete-busy-p sessions)))
    (when busy
      (user-error "%s; interrupt %s first%s" (duet-marks--delete-which busy "is not over" "are not over")
                  (if (cdr busy) "them" "it")
                  (format " (%s)" (duet-look-key #'duet-interrupt 'duet-sessions-mode-map))))
    (if (not (yes-or-no-p (duet-marks--delete-question sessions)))
        (message "Nothing deleted")
      (duet-marks--delete-send connection sessions))))

(defun duet-marks--delete-busy-p (session)
  "Return non-nil if SESSION has a running turn or a queued prompt."
  (or (duet-session-active-turn session) (> (duet-session-queued session) 0)))

(defun duet-marks--delete-which (sessions one many)
  "Return a clause about SESSIONS: the name of a single one with ONE, else MANY."
  (if (cdr sessions)
      (format "%d sessions %s" (length sessions) many)
    (format "%s %s" (duet-session-name (car sessions)) one)))

(defun duet-marks--delete-question (sessions)
  "Return the question for confirmation before SESSIONS are deleted."
  (format "Delete %s for good, with all its messages?  Files stay%s.  "
          (if (cdr sessions)
              (format "%d sessions (%s)" (length sessions)
                      (truncate-string-to-width
                       (mapconcat #'duet-session-name sessions ", ") 200 nil nil "…"))
            (format "\"%s\"" (duet-session-name (car sessions))))
          (if (cl-some #'duet-session-worktree-directory sessions)
              ", but worktrees are deleted, too"
            "")))

(defun duet-marks--delete-send (connection sessions)
  "Delete SESSIONS on the server of CONNECTION, and report the result."
  (let ((left (length sessions))
        (key (duet-look-key #'duet-worktree 'duet-sessions-mode-map))
        (deleted 0) (kept 0) (stays '()) (refused '()))
    (dolist (session sessions)
      (cl-flet ((done ()
                  (when (zerop (cl-decf left))
                    (message "%s" (duet-marks--delete-outcome deleted kept stays
                                                              (nreverse refused))))))
        (duet-connection-request
         connection 'session.delete (list :session (duet-session-id session))
         :success-fn (lambda (result)
                       (unless (eql (duet-get-number result :deleted) 0)
                         (cl-incf deleted))
                       (when-let ((directory (duet-get-string result :worktree)))
                         (push directory stays))
                       (cl-incf kept (or (duet-get-number result :kept) 0))
                       (duet-marks--delete-close connection session)
                       (done))
         :error-fn (lambda (err)
                     (push (duet-marks--delete-refusal session err key) refused)
                     (done)))))))

(defun duet-marks--delete-refusal (session err key)
  "Return why SESSION was not deleted, from ERR, and what to do next.
KEY is the key of `duet-worktree'."
  (if (equal (duet-get-string (plist-get err :data) :kind) "would_lose_work")
      (format "%s has work in its worktree that is not landed; land or discard it first (%s)"
              (duet-session-name session) key)
    (duet-connection-error-text err)))

(defun duet-marks--delete-outcome (deleted kept stays refused)
  "Return the report on the numbers of DELETED sessions and KEPT turns.
STAYS are worktrees that were not deleted, REFUSED the errors."
  (string-join
   (delq nil
         (list (cond ((> deleted 0) (format "%d deleted" deleted))
                     ((null refused) "Nothing deleted"))
               (unless (zerop kept)
                 (format "%d turn%s kept in the archive, since other sessions were forked from there"
                         kept (if (= kept 1) " is" "s are")))
               (when stays
                 (concat "a worktree stays: " (mapconcat #'duet-visible-line stays ", ")))
               (when refused
                 (format "%s not deleted: %s"
                         (if (zerop deleted) "Was" (format "%d" (length refused)))
                         (string-join (delete-dups refused) "; ")))))
   "; "))

(defun duet-marks--delete-close (connection session)
  "Kill the buffers that show SESSION.
If the selected window shows one, show the list of CONNECTION instead."
  (dolist (buffer (buffer-list))
    (when (and (eq (buffer-local-value 'duet-session buffer) session)
               (with-current-buffer buffer
                 (derived-mode-p 'duet-transcript-mode 'duet-diff-mode)))
      (when (eq buffer (window-buffer))
        (duet-sessions-show connection))
      (kill-buffer buffer))))

(define-key duet-sessions-mode-map "D" #'duet-delete)
(define-key duet-transcript-mode-map "D" #'duet-delete)

(provide 'duet-sessions)
;;; duet-sessions.el ends here
