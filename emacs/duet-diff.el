;;; duet-diff.el --- Changes of a turn, to accept or revert  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-diff' shows the changes of a turn of a session, as a diff.  The user
;; accepts each change, which only marks it as seen, or reverts it in its file; undo
;; withdraws either.  The server does this for all clients: it keeps the decisions and
;; changes the files.  It refuses to revert a change if the file has changed since.
;; `duet-diff-all' shows the changes of all turns.

;;; Code:

(require 'cl-lib)
(require 'diff-mode)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-diff-view)
(require 'duet-header)
(require 'duet-model)
(require 'duet-render)
(require 'duet-revert)
(require 'duet-worktree)

(declare-function duet "duet" (&optional directory))
(declare-function duet-approval-next "duet-approvals" ())
(declare-function duet-worktree "duet-menu" ())
(declare-function duet-transcript-message-at-point "duet-transcript" ())
(defvar duet-session)

;;; The mode

(defvar-local duet-diff--loading nil
  "The (TURN WHOLE) of the open request to the server, or nil.")
(defvar-local duet-diff--again nil
  "Non-nil if the reply to the open request may be out of date.")
(defvar-local duet-diff--deciding nil
  "Non-nil while the server processes a decision of this buffer.")
(defvar-local duet-diff--decided nil
  "Hunks and files with a decision of this buffer, the last decided first.")

(defvar duet-diff-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map special-mode-map)
    (define-key map "a" #'duet-diff-accept)
    (define-key map "A" #'duet-diff-accept-file)
    (define-key map "k" #'duet-diff-revert)
    (define-key map "K" #'duet-diff-revert-file)
    (define-key map "u" #'duet-diff-undo)
    (define-key map "E" #'duet-diff-ediff)
    (define-key map (kbd "RET") #'duet-diff-visit)
    (define-key map [mouse-2] #'duet-diff-visit)
    (define-key map (kbd "TAB") #'duet-diff-toggle)
    (define-key map "n" #'duet-diff-next)
    (define-key map "p" #'duet-diff-previous)
    (define-key map (kbd "M-n") #'duet-diff-next-file)
    (define-key map (kbd "M-p") #'duet-diff-previous-file)
    (define-key map "=" #'duet-diff-all)
    (define-key map "%" #'duet-worktree)
    (define-key map "[" #'duet-diff-earlier-turn)
    (define-key map "]" #'duet-diff-later-turn)
    (define-key map "g" #'duet-diff-refresh)
    (define-key map "/" #'duet-search-or-say)
    (define-key map "j" #'duet-approval-next)
    (define-key map "l" #'duet)
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-diff-mode'.")

(define-derived-mode duet-diff-mode diff-mode "Duet-Diff"
  "Major mode of the changes of a turn.

\\{duet-diff-mode-map}"
  (setq buffer-read-only t
        buffer-undo-list t
        mode-line-buffer-identification '(:eval (duet-header-name))
        header-line-format '(:eval (duet-diff--header)))
  ;; Else the keys of `diff-mode' for read-only buffers precede ours.
  (setq-local minor-mode-overriding-map-alist nil)
  (setq-local revert-buffer-function (lambda (&rest _) (duet-diff-refresh))
              next-error-function #'duet-diff--next-error)
  (add-to-invisibility-spec '(duet-diff . t)))

(defun duet-diff--header ()
  "Return the header line: the number of changes left, and the keys."
  (let* ((items (duet-diff--items))
         (left (cl-count-if-not #'duet-diff--state items)))
    (duet-header-fit
     (append
      (list
       (concat " "
               (cond (duet-diff--loading "loading…")
                     ((null items) "")
                     ((zerop left) (propertize "all reviewed" 'face 'duet-done))
                     (t (format "%d of %d reviewed" (- (length items) left)
                                (length items)))))
       (when-let ((number (and duet-session duet-diff--turn
                               (duet-diff--number duet-session duet-diff--turn))))
         (propertize (concat " · " number) 'face 'duet-dim))
       (cond (duet-diff--whole (propertize " · all turns" 'face 'duet-dim))
             ((and duet-session duet-diff--turn
                   (not (eq (duet-session-turn duet-session duet-diff--turn)
                            (duet-session-leaf duet-session))))
              (propertize " · an earlier turn" 'face 'duet-dim))))
      (when items
        (list (concat " · " (duet-header-key #'duet-diff-accept "accept" 'duet-diff-mode-map)
                      ", " (duet-header-key #'duet-diff-revert "revert" 'duet-diff-mode-map))
              (cons 1 (substitute-command-keys
                       ", \\<duet-diff-mode-map>\\[duet-diff-accept-file]/\\[duet-diff-revert-file] file"))))
      (when items
        (duet-header-keys 'duet-diff-mode-map '(2 duet-diff-undo "undo")
                          '(3 duet-diff-visit "source") '(4 duet-diff-ediff "ediff")))))))

(defun duet-diff--number (session turn)
  "Return the number of TURN, an id or a number, of SESSION, or nil."
  (when-let ((number (if-let ((known (duet-session-turn session turn))) (duet-turn-number known)
                       (and (string-match-p "\\`[0-9]+\\.[0-9]+\\'" turn) turn))))
    (duet-visible-line number)))


;;;; The buffer

(defun duet-diff (session &optional turn whole)
  "Show the changes of a turn of SESSION.
It is TURN, an id; or else the turn at point in a transcript, or the last one.
If WHOLE is non-nil, show the changes of all turns up to it."
  (interactive (list (duet-actions-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (let* ((connection (duet-connection-here session))
         (message (and (null turn) (derived-mode-p 'duet-transcript-mode)
                       (duet-transcript-message-at-point)))
         (turn (or turn
                   (and message (duet-message-turn message))
                   (duet-session-leaf-id session)))
         (buffer (or (cl-find-if
                      (lambda (buffer)
                        (and (eq (buffer-local-value 'major-mode buffer) 'duet-diff-mode)
                             (eq (buffer-local-value 'duet-session buffer) session)))
                      (buffer-list))
                     (generate-new-buffer
                      (format "*duet diff: %s*" (duet-session-name session))))))
    (with-current-buffer buffer
      (unless (derived-mode-p 'duet-diff-mode)
        (duet-diff-mode)
        (duet-model-follow #'duet-diff--changed (duet-connection-model connection)))
      (setq duet-connection connection
            duet-session session
            duet-diff--turn turn
            duet-diff--whole whole
            default-directory (duet-connection-directory connection session))
      (duet-diff-refresh))
    (pop-to-buffer buffer)))

(defun duet-diff-all (session)
  "Show the changes of all turns of SESSION together.
If the buffer shows them, show the changes of the last turn again."
  (interactive (list (duet-actions-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (duet-diff session (duet-session-leaf-id session)
             (not (and (derived-mode-p 'duet-diff-mode) duet-diff--whole))))

(defun duet-diff--changed (_model kind session &optional object extra)
  "Handle a change of KIND of the model, of SESSION, with OBJECT and EXTRA.
If the turn has ended, or events may be missing, load the changes again."
  (pcase kind
    ((and 'session (guard (eq session duet-session)))
     (let* ((turn (duet-session-turn session duet-diff--turn))
            (state (and turn (duet-turn-state turn)))
            (before duet-diff--state))
       (setq duet-diff--state state)
       (when (and before (not (eq before state))
                  (not (memq state duet-turn-active-states)))
         (duet-diff-refresh))))
    ('decided
     (duet-diff--take extra (duet-get-string object :path)
                      (duet-get-string object :hunk) (duet-get-string object :decision)))
    ((or 'lagged (and 'connection (guard (eq object 'ready))))
     (duet-diff-refresh))))

(defun duet-diff-refresh ()
  "Load the changes of the turn again."
  (interactive (duet-only-in 'duet-diff-mode) duet-diff-mode)
  (let ((asked (list duet-diff--turn duet-diff--whole)))
    (if (equal asked duet-diff--loading) (setq duet-diff--again t)
      (let* ((known (duet-session-turn duet-session duet-diff--turn))
             ;; The user may choose another turn meanwhile.
             (here (duet-latest
                    (lambda (function)
                      (when (eq asked duet-diff--loading)
                        (setq duet-diff--loading nil)
                        (funcall function)
                        (when duet-diff--again (duet-diff-refresh)))))))
        (setq duet-diff--loading asked
              duet-diff--again nil
              duet-diff--state (and known (duet-turn-state known)))
        (duet-diff-turns-load
         duet-connection duet-session duet-diff--turn duet-diff--whole
         (lambda (snapshots)
           (funcall here (lambda ()
                           (setq duet-diff--files (mapcar #'duet-diff--file snapshots))
                           (duet-diff--print))))
         (lambda (err)
           (funcall here #'force-mode-line-update)
           (message "Duet: %s" (duet-connection-error-text err))))))))

(defun duet-diff-earlier-turn (&optional later)
  "Show the changes of the previous turn; if LATER is non-nil, of the next."
  (interactive (duet-only-in 'duet-diff-mode) duet-diff-mode)
  (let* ((turns (duet-session-turns duet-session))
         (place (cl-position duet-diff--turn turns :key #'duet-turn-id :test #'equal))
         (next (and place (if later (1- place) (1+ place))))
         (turn (and next (>= next 0) (nth next turns))))
    (unless turn
      (user-error (if later "This is the last turn" "No earlier turn is known")))
    (setq duet-diff--turn (duet-turn-id turn)
          duet-diff--whole nil)
    (duet-diff-refresh)))

(defun duet-diff-later-turn ()
  "Show the changes of the next turn."
  (interactive (duet-only-in 'duet-diff-mode) duet-diff-mode)
  (duet-diff-earlier-turn t))


;;;; Decisions

(defun duet-diff--take (turn path hunk decision)
  "Show the DECISION of a client, a string, about the change of TURN in PATH.
HUNK is the id of a hunk, or nil for the whole file."
  (when duet-diff--loading (setq duet-diff--again t))
  (when-let* ((name (duet-remote-name path))
              (file (cl-find name duet-diff--files :key #'duet-diff-file-path :test #'equal))
              (change (cl-find turn (duet-diff-file-turns file)
                               :key #'duet-diff-turn-id :test #'equal)))
    (let* ((parts (duet-diff-turn-states change))
           (items (duet-diff--changes file))
           (before (mapcar #'duet-diff--state items)))
      (if (and hunk (not (assoc hunk parts)))
          ;; The server sends no hunks for a change that is too long.
          (duet-diff-refresh)
        (dolist (part (if hunk (list (assoc hunk parts)) parts))
          (setcdr part (pcase decision
                         ("accept" (or (cdr part) 'accepted))
                         ("revert" 'reverted))))
        (duet-diff--settle file)
        (cl-loop for item in items
                 for state in before
                 unless (eq state (duet-diff--state item)) do (duet-diff--update item))))))

(defun duet-diff--changes (file)
  "Return the items of FILE that can be decided: its hunks, or FILE itself."
  (or (duet-diff-file-hunks file) (list file)))

(defun duet-diff--decision (file item)
  "Return the decision on ITEM of FILE that undo withdraws, or nil.
If ITEM cannot be decided alone, return `reverted' if any part of FILE
is reverted, or else `accepted' if any part is accepted."
  (if (duet-diff--single-p file item) (duet-diff--state item)
    (let ((states (mapcan (lambda (turn) (mapcar #'cdr (duet-diff-turn-states turn)))
                          (duet-diff-file-turns file))))
      (or (car (memq 'reverted states)) (car (delq nil states))))))

(defun duet-diff--whole-p (file)
  "Return non-nil if FILE can only be decided as a whole."
  (or (null (duet-diff-file-hunks file))
      (memq (duet-diff--kind file) '(new deleted))))

(defun duet-diff--single-p (file item)
  "Return non-nil if ITEM is a hunk of FILE that can be decided alone."
  (and (duet-hunk-p item) (duet-hunk-id item) (not (duet-diff--whole-p file))))

(defun duet-diff--part (file item)
  "Return the part to decide: ITEM, or FILE if it is decided as a whole.
Signal a `user-error' if ITEM cannot be decided alone."
  (cond
   ((duet-diff--single-p file item) item)
   ((duet-diff--whole-p file) file)
   ((cdr (duet-diff-file-turns file))
    (duet-diff-refuse
     file (substitute-command-keys
           "several turns have changed it; \\<duet-diff-mode-map>\\[duet-diff-accept-file], \\[duet-diff-revert-file] and \\[duet-diff-undo] decide about all of it, \\[duet-diff-all] and \\[duet-diff-earlier-turn] show one turn")))
   (t
    (duet-diff-refuse
     file (substitute-command-keys
           "this is too long to be decided singly; \\<duet-diff-mode-map>\\[duet-diff-accept-file] and \\[duet-diff-revert-file] decide about all of the file")))))

(defun duet-diff--check (file disk)
  "Signal a `user-error' if a decision on FILE cannot be sent now.
DISK is non-nil if the decision changes FILE on the disk."
  (when duet-diff--deciding
    (user-error "The previous decision is not stored yet; try again in a moment"))
  (when disk (duet-hunk-check-file (duet-diff-file-path file))))

(defun duet-diff--send (file part decision done)
  "Send DECISION, a string, on PART, which is FILE or one of its hunks.
Send it for each turn that has changed FILE; a revert begins with the last
turn.  Stop at the first error.  After the last turn, call DONE in the
buffer, if it still shows the same turn."
  (let* ((shown (list duet-diff--turn duet-diff--whole))
         (turns (mapcar #'duet-diff-turn-id (duet-diff-file-turns file)))
         (turns (if (equal decision "revert") (reverse turns) turns)))
    (setq duet-diff--deciding t)
    (duet-diff--send-next (current-buffer) duet-connection file part decision turns (length turns)
                          (lambda ()
                            (when (equal shown (list duet-diff--turn duet-diff--whole))
                              (funcall done))))))

(defun duet-diff--send-next (buffer connection file part decision turns all done)
  "Send DECISION on PART of FILE to CONNECTION for TURNS, the last ones of ALL.
TURNS is a list of ids, and ALL the number of all turns.
BUFFER and DONE are as in `duet-diff--send'."
  (let ((path (duet-diff-file-path file))
        (hunk (and (duet-hunk-p part) (duet-hunk-id part))))
    (duet-connection-request
     connection (intern (concat "change." decision))
     `(:turn ,(car turns) :path ,(duet-remote-local path) ,@(and hunk (list :hunk hunk)))
     :success-fn
     (lambda (_)
       (unless (equal decision "accept") (duet-revert-file path))
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (duet-diff--take (car turns) (duet-remote-local path) hunk decision)
           (unless (cdr turns)
             (setq duet-diff--deciding nil)
             (funcall done))))
       (when (cdr turns)
         (duet-diff--send-next buffer connection file part decision (cdr turns) all done)))
     :error-fn
     (lambda (err)
       (when (buffer-live-p buffer)
         (with-current-buffer buffer (setq duet-diff--deciding nil)))
       (message "Duet: %s%s"
                (if (= all 1) ""
                  (format "%s %d of the %d turns that changed %s, the %s first; the rest is unchanged: "
                          (pcase decision
                            ("accept" "Accepted") ("revert" "Reverted") (_ "Reopened"))
                          (- all (length turns)) all (file-name-nondirectory path)
                          (if (equal decision "revert") "last" "earliest")))
                (duet-connection-error-text err))))))

(defun duet-diff--decide (file part decision &optional words)
  "Send DECISION, \"accept\" or \"revert\", on PART of FILE.
Then move point to the next undecided change, unless the user has moved it,
and show the message WORDS."
  (duet-diff--send
   file part decision
   (lambda ()
     (let* ((file (cl-find (duet-diff-file-path file) duet-diff--files
                           :key #'duet-diff-file-path :test #'equal))
            (items (and file (if (duet-hunk-p part) (list (duet-diff--place part))
                               (duet-diff--changes file))))
            (last (car (last items))))
       (dolist (item items)
         ;; Accepting the file does not change a reverted hunk.
         (unless (and (equal decision "accept") (eq (duet-diff--state item) 'reverted))
           (setq duet-diff--decided (cons item (remq item duet-diff--decided)))))
       (when last
         (let* ((all (duet-diff--items))
                (next (or (cl-find-if-not #'duet-diff--state (memq last all))
                          (cl-find-if-not #'duet-diff--state all)))
                (there (duet-diff--position (or next last)))
                (still (lambda (position)
                         (and (eq (get-text-property position 'duet-diff-file) file)
                              (memq (or (get-text-property position 'duet-diff-item)
                                        (car items))
                                    items)))))
           (dolist (window (get-buffer-window-list nil nil t))
             (when (funcall still (window-point window))
               (set-window-point window there)))
           (when (funcall still (point)) (goto-char there))
           (unless next (message "All changes are reviewed"))))
       (when words (message "%s" words))))))

(defun duet-diff-accept ()
  "Accept the change at point, which marks it as seen; its file stays unchanged."
  (interactive nil duet-diff-mode)
  (pcase-let ((`(,file . ,item) (duet-diff--here)))
    (when (eq (duet-diff--state item) 'reverted)
      (user-error "This is reverted; undo that first"))
    (let ((part (duet-diff--part file item)))
      (duet-diff--check file nil)
      (duet-diff--decide file part "accept"))))

(defun duet-diff-accept-file ()
  "Accept all changes of the file at point, which marks them as seen."
  (interactive nil duet-diff-mode)
  (let ((file (duet-diff--file-here)))
    (when (eq (duet-diff-file-state file) 'reverted)
      (user-error "The whole file is reverted"))
    (duet-diff--check file nil)
    (duet-diff--decide file file "accept")))

(defun duet-diff-revert ()
  "Revert the change at point in its file, without a question.
\\<duet-diff-mode-map>\\[duet-diff-undo] undoes it."
  (interactive nil duet-diff-mode)
  (pcase-let ((`(,file . ,item) (duet-diff--here)))
    (when (eq (duet-diff--state item) 'reverted)
      (user-error "This is reverted already; %s"
                  (concat (duet-look-key #'duet-diff-undo 'duet-diff-mode-map) " undoes that")))
    (let ((part (duet-diff--part file item)))
      (if (eq part file) (duet-diff-revert-file)
        (duet-diff--check file t)
        (duet-diff--decide file part "revert"
                           (format "Reverted in %s; %s puts it back" (duet-diff--name file)
                                   (duet-look-key #'duet-diff-undo 'duet-diff-mode-map)))))))

(defun duet-diff-revert-file ()
  "Revert the file at point to its state before the turn.
Delete a file that the turn has created; restore one that it has deleted.
If the buffer shows several turns, revert their changes, the last first."
  (interactive nil duet-diff-mode)
  (let* ((file (duet-diff--file-here))
         (name (duet-diff--name file))
         (turns (if duet-diff--whole "these turns have" "this turn has")))
    (when (eq (duet-diff-file-state file) 'reverted)
      (user-error "The whole file is reverted already"))
    (duet-diff--check file t)
    (if (y-or-n-p (pcase (duet-diff--kind file)
                    ('new (format "Delete %s, which %s made? " name turns))
                    ('deleted (format "Make %s again, which %s deleted? " name turns))
                    (_ (format "Revert all that %s changed in %s? " turns name))))
        (duet-diff--decide file file "revert" (format "Reverted %s" name))
      (message "Nothing reverted"))))

(defun duet-diff-undo ()
  "Undo the decision on the change at point, or the last decision of this buffer.
Put a reverted change back into its file."
  (interactive nil duet-diff-mode)
  (pcase-let* ((owner (lambda (item)
                        (cl-find-if (lambda (file) (memq item (duet-diff--changes file)))
                                    duet-diff--files)))
               (`(,file . ,item) (duet-diff--here)))
    (unless (duet-diff--decision file item)
      (setq item (or (cl-find-if (lambda (item) (duet-diff--decision (funcall owner item) item))
                                 (delq nil (mapcar #'duet-diff--place duet-diff--decided)))
                     (user-error "This change is not decided"))
            file (funcall owner item)))
    (goto-char (duet-diff--position item))
    (let* ((part (if (duet-diff--single-p file item) item file))
           (back (eq (duet-diff--decision file item) 'reverted))
           (name (duet-diff--name file)))
      (duet-diff--check file back)
      (let ((items (if (eq part file) (duet-diff--changes file) (list part))))
        (setq duet-diff--decided
              (cl-remove-if (lambda (item) (memq (duet-diff--place item) items))
                            duet-diff--decided))
        (duet-diff--send file part "reopen"
                         (lambda () (when back (message "Put back into %s" name))))))))


;;;; Visiting files

(defun duet-diff--line (file hunk)
  "Return the current line of HUNK of FILE, after the reverts of earlier hunks."
  (let ((line (duet-hunk-line hunk)))
    (cl-loop for other in (duet-diff-file-hunks file)
             until (eq other hunk)
             do (when (eq (duet-hunk-state other) 'reverted)
                  (cl-incf line (duet-hunk-shift other))))
    line))

(defun duet-diff-visit ()
  "Visit the file at point, at the line of point."
  (interactive nil duet-diff-mode)
  (when (mouse-event-p last-input-event)
    (mouse-set-point last-input-event))
  (pcase-let* ((`(,file . ,item) (duet-diff--here))
               (path (duet-host-visit-name
                      (duet-worktree-file duet-connection duet-session (duet-diff-file-path file))))
               (line (and (duet-hunk-p item)
                          (duet-diff--line-at-point file item))))
    (unless (file-exists-p path)
      (duet-diff-refuse file "there is no such file any more"))
    (find-file-other-window path)
    (when line
      (goto-char (point-min))
      (forward-line (1- line)))))

(defun duet-diff--next-error (count &optional reset)
  "Visit the COUNTth change from here in its file; from the first if RESET.
It is the `next-error-function' of the buffer."
  (when reset (goto-char (point-min)))
  (let ((here (point)))
    (unless (zerop count)
      (duet-diff-next count)
      (when (= here (point))
        (user-error (if (> count 0) "This is the last change" "This is the first change")))))
  (when-let ((window (get-buffer-window)))
    (set-window-point window (point)))
  (duet-diff-visit))

(defun duet-diff--line-at-point (file hunk)
  "Return the line of FILE for the line of point in HUNK."
  (let ((line (duet-diff--line file hunk))
        (end (line-beginning-position)))
    (save-excursion
      (goto-char (duet-diff--position hunk))
      (forward-line 1)
      (while (< (point) end)
        (unless (memq (char-after) '(?- ?\\))
          (cl-incf line))
        (forward-line 1)))
    line))

;;; Changes of turns

;; The server sends the files that a turn has changed, before and after it.  For a
;; whole session, a file has its text before its first change and after its last
;; one.  A file with the same text at both times is left out.

(defun duet-diff-turns-load (connection session turn whole done fail)
  "Load the changes of the turn TURN, an id, of SESSION at CONNECTION.
If WHOLE is non-nil, load those of all turns up to it.  Call DONE with a
list of files as the server sends them, or FAIL with an error."
  (if whole
      (duet-diff-turns--before connection session turn '() done fail)
    (duet-diff-turns--ask connection turn done fail)))

(defun duet-diff-turns--ask (connection turn done fail)
  "Request the changes of TURN from CONNECTION; call DONE with the files, or FAIL."
  (duet-connection-request
   connection 'change.list (list :turn turn)
   :success-fn (lambda (result)
                 (funcall done (mapcar (lambda (file)
                                         (append (list :turn_uuid (plist-get result :turn_uuid)) file))
                                       (duet-get-objects result :changes))))
   :error-fn fail))

(defun duet-diff-turns--before (connection session turn later done fail)
  "Request the changes of TURN of SESSION, and of earlier turns, from CONNECTION.
LATER has a list of files for each later turn, the earliest first.  Call
DONE with all turns joined to one change, or FAIL with an error."
  (duet-diff-turns--ask
   connection turn
   (lambda (files)
     (let ((turns (cons files later)))
       (duet-diff-turns--parent
        connection session turn
        (lambda (parent)
          (if parent
              (duet-diff-turns--before connection session parent turns done fail)
            (funcall done (duet-diff-turns-join turns))))
        fail)))
   fail))

(defun duet-diff-turns--parent (connection session turn done fail)
  "Call DONE with the id of the turn of SESSION before TURN, or nil; else FAIL.
Request it from CONNECTION if it is unknown."
  (let ((known (duet-session-turn session turn)))
    (if (and known (duet-turn-parent known))
        (duet-diff-turns--own connection session (duet-turn-parent known) done fail)
      (duet-connection-request
       connection 'turn.get (list :turn turn)
       :success-fn
       (lambda (result)
         (let ((parent (duet-get-string result :turn :parent)))
           (if parent (duet-diff-turns--own connection session parent done fail)
             (funcall done nil))))
       :error-fn fail))))

(defun duet-diff-turns--own (connection session turn done fail)
  "Call DONE with TURN if it belongs to SESSION, else with nil; or FAIL.
TURN is an id or a number.  The turn before a fork belongs to another session.
Request an unknown turn from CONNECTION."
  (if-let ((owner (if (duet-session-turn session turn) session
                    (gethash turn (duet-model-turns (duet-session-model session))))))
      (funcall done (and (eq owner session) turn))
    (duet-connection-request
     connection 'turn.get (list :turn turn)
     :success-fn
     (lambda (result)
       (funcall done (and (equal (duet-get-string result :turn :session_uuid)
                                 (duet-session-id session))
                          turn)))
     :error-fn fail)))


;;;; Several turns as one change

(defun duet-diff-turns-join (turns)
  "Return the files with the joined changes of TURNS, lists of files.
The first turn comes first."
  (let ((paths '())
        (changes (make-hash-table :test #'equal)))
    (dolist (files turns)
      (dolist (file files)
        (let ((path (duet-get-string file :path)))
          (unless (gethash path changes) (push path paths))
          (push file (gethash path changes)))))
    (delq nil (mapcar (lambda (path) (duet-diff-turns--file path (reverse (gethash path changes))))
                      (nreverse paths)))))

(defun duet-diff-turns--file (path changes)
  "Return the joined CHANGES of turns in the file PATH, or nil if they cancel out.
The value has CHANGES as :turns, if there are several."
  (let* ((last (car (last changes)))
         (before (plist-get (car changes) :before))
         (after (plist-get last :after)))
    (cond
     ((null (cdr changes)) last)
     ((or (duet-get (car changes) :binary) (duet-get last :binary))
      (append (list :binary t :turns changes) last))
     ((equal before after) nil)
     (t (list :path path :before before :after after :turns changes
              :diff (duet-diff-turns-text before after))))))

(defun duet-diff-turns-text (before after)
  "Return the difference from the text BEFORE to AFTER, as a unified diff.
Either is nil if the file does not exist."
  (mapconcat (lambda (hunk) (duet-diff-turns--hunk hunk before after))
             (duet-lines-hunks before after) ""))

(defun duet-diff-turns--hunk (hunk before after)
  "Return HUNK of the texts BEFORE and AFTER in the format of a unified diff."
  (let* ((lines (duet-lines-hunk-lines hunk))
         (old (cl-count ?+ lines :key (lambda (line) (aref line 0)) :test-not #'eq))
         (new (cl-count ?- lines :key (lambda (line) (aref line 0)) :test-not #'eq))
         (old-end (+ (duet-lines-hunk-old hunk) old -1))
         (new-end (+ (duet-lines-hunk-new hunk) new -1))
         (open-old (duet-diff-turns--open-p before old-end))
         (open-new (duet-diff-turns--open-p after new-end))
         (last-old (cl-position ?+ lines :key (lambda (line) (aref line 0))
                                :test-not #'eq :from-end t))
         (last-new (cl-position ?- lines :key (lambda (line) (aref line 0))
                                :test-not #'eq :from-end t)))
    (concat
     ;; The header of an empty range has the line before it.
     (format "@@ -%d,%d +%d,%d @@\n"
             (if (zerop old) (1- (duet-lines-hunk-old hunk)) (duet-lines-hunk-old hunk)) old
             (if (zerop new) (1- (duet-lines-hunk-new hunk)) (duet-lines-hunk-new hunk)) new)
     (cl-loop for line in lines
              for i from 0
              concat line concat "\n"
              when (or (and open-old (eql i last-old)) (and open-new (eql i last-new)))
              concat "\\ No newline at end of file\n"))))

(defun duet-diff-turns--open-p (text line)
  "Return non-nil if LINE is the last of TEXT and does not end with a newline."
  (and text (not (string-empty-p text))
       (not (string-suffix-p "\n" text))
       (= line (1+ (cl-count ?\n text)))))

(provide 'duet-diff)
;;; duet-diff.el ends here
