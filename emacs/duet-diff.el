;;; duet-diff.el --- Changes of a turn, to accept or revert  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-diff' shows the files that a turn of a session has changed, as a diff.
;; Each change is accepted, which only marks it as seen, or reverted in its file;
;; either can be undone.  The server does that, for all clients: it keeps the decisions
;; and changes the files, and refuses where a file has changed since.
;; `duet-diff-all' shows what all turns have changed.

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
  "The (RUN WHOLE) that the server was asked for, or nil.")
(defvar-local duet-diff--again nil
  "Whether its reply may be out of date.")
(defvar-local duet-diff--deciding nil
  "Whether a decision of this buffer is on its way to the server.")
(defvar-local duet-diff--decided nil
  "Changes and files that were decided about here, the last first.")

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
  "Major mode that shows what a turn has changed.

\\{duet-diff-mode-map}"
  (setq buffer-read-only t
        buffer-undo-list t
        mode-line-buffer-identification '(:eval (duet-header-name))
        header-line-format '(:eval (duet-diff--header)))
  ;; The keys of `diff-mode' for buffers that cannot be changed go before ours.
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
       (cond (duet-diff--whole (propertize " · all turns" 'face 'duet-dim))
             ((and duet-session duet-diff--run
                   (not (eq (duet-session-run duet-session duet-diff--run)
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


;;;; The buffer

(defun duet-diff (session &optional run whole)
  "Show what a turn of SESSION has changed.
That is RUN, an id; or the turn at point in a transcript, else the last.
If WHOLE is non-nil show what all turns up to that have changed."
  (interactive (list (duet-actions-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (let* ((connection (duet-connection-here))
         (message (and (null run) (derived-mode-p 'duet-transcript-mode)
                       (duet-transcript-message-at-point)))
         (run (or run
                  (and message (duet-message-run message))
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
            duet-diff--run run
            duet-diff--whole whole
            default-directory (duet-connection-directory connection session))
      (duet-diff-refresh))
    (pop-to-buffer buffer)))

(defun duet-diff-all (session)
  "Show what all turns of SESSION together have changed.
Where that is shown, show the last turn's changes again."
  (interactive (list (duet-actions-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode)
  (duet-diff session (duet-session-leaf-id session)
             (not (and (derived-mode-p 'duet-diff-mode) duet-diff--whole))))

(defun duet-diff--changed (_model kind session &optional object _extra)
  "Note a change of the model of KIND, of SESSION, with OBJECT.
When the turn has ended, or events may be missing, look at the changes again."
  (pcase kind
    ((and 'session (guard (eq session duet-session)))
     (let* ((run (duet-session-run session duet-diff--run))
            (state (and run (duet-run-state run)))
            (before duet-diff--state))
       (setq duet-diff--state state)
       (when (and before (not (eq before state))
                  (not (memq state duet-run-active-states)))
         (duet-diff-refresh))))
    ('decided
     (duet-diff--take (duet-get-string object :session_id) (duet-get-string object :path)
                      (duet-get-string object :hunk) (duet-get-string object :decision)))
    ((or 'lagged (and 'connection (guard (eq object 'ready))))
     (duet-diff-refresh))))

(defun duet-diff-refresh ()
  "Ask the server again for what the turn has changed."
  (interactive (duet-only-in 'duet-diff-mode) duet-diff-mode)
  (let ((asked (list duet-diff--run duet-diff--whole)))
    (if (equal asked duet-diff--loading) (setq duet-diff--again t)
      (let* ((known (duet-session-run duet-session duet-diff--run))
             ;; Another turn may have been chosen meanwhile.
             (here (duet-latest
                    (lambda (function)
                      (when (eq asked duet-diff--loading)
                        (setq duet-diff--loading nil)
                        (funcall function)
                        (when duet-diff--again (duet-diff-refresh)))))))
        (setq duet-diff--loading asked
              duet-diff--again nil
              duet-diff--state (and known (duet-run-state known)))
        (duet-diff-turns-load
         duet-connection duet-session duet-diff--run duet-diff--whole
         (lambda (snapshots)
           (funcall here (lambda ()
                           (setq duet-diff--files (mapcar #'duet-diff--file snapshots))
                           (duet-diff--print))))
         (lambda (err)
           (funcall here #'force-mode-line-update)
           (message "Duet: %s" (duet-connection-error-text err))))))))

(defun duet-diff-earlier-turn (&optional later)
  "Show what the turn before has changed; if LATER is non-nil the next."
  (interactive (duet-only-in 'duet-diff-mode) duet-diff-mode)
  (let* ((runs (duet-session-runs duet-session))
         (place (cl-position duet-diff--run runs :key #'duet-run-id :test #'equal))
         (next (and place (if later (1- place) (1+ place))))
         (run (and next (>= next 0) (nth next runs))))
    (unless run
      (user-error (if later "This is the last turn" "No earlier turn is known")))
    (setq duet-diff--run (duet-run-id run)
          duet-diff--whole nil)
    (duet-diff-refresh)))

(defun duet-diff-later-turn ()
  "Show what the next turn has changed."
  (interactive (duet-only-in 'duet-diff-mode) duet-diff-mode)
  (duet-diff-earlier-turn t))


;;;; Deciding

(defun duet-diff--take (run path hunk decision)
  "Show the DECISION of a client, a string, on the change of RUN in PATH.
HUNK is the id of a hunk, or nil for the whole file."
  (when duet-diff--loading (setq duet-diff--again t))
  (when-let* ((name (duet-remote-name path))
              (file (cl-find name duet-diff--files :key #'duet-diff-file-path :test #'equal))
              (turn (cl-find run (duet-diff-file-turns file)
                             :key #'duet-diff-turn-run :test #'equal)))
    (let* ((parts (duet-diff-turn-states turn))
           (items (duet-diff--changes file))
           (before (mapcar #'duet-diff--state items)))
      (if (and hunk (not (assoc hunk parts)))
          ;; The server sends no hunks of a change that is too long.
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
  "Return the items of FILE to decide about: its hunks, or FILE itself."
  (or (duet-diff-file-hunks file) (list file)))

(defun duet-diff--decision (file item)
  "Return the decision on ITEM of FILE that undo withdraws, or nil.
If ITEM cannot be decided singly it is `reverted' where any part of FILE is
reverted, and `accepted' where one is accepted."
  (if (duet-diff--single-p file item) (duet-diff--state item)
    (let ((states (mapcan (lambda (turn) (mapcar #'cdr (duet-diff-turn-states turn)))
                          (duet-diff-file-turns file))))
      (or (car (memq 'reverted states)) (car (delq nil states))))))

(defun duet-diff--whole-p (file)
  "Return non-nil if FILE comes and goes as a whole."
  (or (null (duet-diff-file-hunks file))
      (memq (duet-diff--kind file) '(new deleted))))

(defun duet-diff--single-p (file item)
  "Return non-nil if ITEM is a hunk of FILE that can be decided singly."
  (and (duet-hunk-p item) (duet-hunk-id item) (not (duet-diff--whole-p file))))

(defun duet-diff--part (file item)
  "Return the part to decide: ITEM, or FILE if it comes and goes as a whole.
Signal a `user-error' if ITEM cannot be decided singly."
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
If DISK is non-nil the decision changes FILE on the disk."
  (when duet-diff--deciding
    (user-error "The previous decision is not stored yet; try again in a moment"))
  (when disk (duet-hunk-check-file (duet-diff-file-path file))))

(defun duet-diff--send (file part decision done)
  "Send DECISION, a string, on PART, which is FILE or one of its hunks.
Each turn that has changed FILE gets it; a revert begins with the last turn.
The first error stops the rest.  After the last turn DONE is called in the
buffer, if that still shows the same turn."
  (let* ((shown (list duet-diff--run duet-diff--whole))
         (runs (mapcar #'duet-diff-turn-run (duet-diff-file-turns file)))
         (runs (if (equal decision "revert") (reverse runs) runs)))
    (setq duet-diff--deciding t)
    (duet-diff--send-next (current-buffer) duet-connection file part decision runs (length runs)
                          (lambda ()
                            (when (equal shown (list duet-diff--run duet-diff--whole))
                              (funcall done))))))

(defun duet-diff--send-next (buffer connection file part decision runs all done)
  "Send DECISION on PART of FILE for each of RUNS, the rest of ALL, to CONNECTION.
BUFFER and DONE are as in `duet-diff--send'."
  (let ((path (duet-diff-file-path file))
        (hunk (and (duet-hunk-p part) (duet-hunk-id part))))
    (duet-connection-request
     connection 'session.decideChange
     `(:session_id ,(car runs) :path ,(duet-remote-local path) :decision ,decision
                   ,@(and hunk (list :hunk hunk)))
     :success-fn
     (lambda (_)
       (unless (equal decision "accept") (duet-revert-file path))
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (duet-diff--take (car runs) (duet-remote-local path) hunk decision)
           (unless (cdr runs)
             (setq duet-diff--deciding nil)
             (funcall done))))
       (when (cdr runs)
         (duet-diff--send-next buffer connection file part decision (cdr runs) all done)))
     :error-fn
     (lambda (err)
       (when (buffer-live-p buffer)
         (with-current-buffer buffer (setq duet-diff--deciding nil)))
       (message "Duet: %s%s"
                (if (= all 1) ""
                  (format "%s %d of the %d turns that changed %s, the %s first; the rest is as it was: "
                          (pcase decision
                            ("accept" "Accepted") ("revert" "Reverted") (_ "Reopened"))
                          (- all (length runs)) all (file-name-nondirectory path)
                          (if (equal decision "revert") "last" "earliest")))
                (duet-connection-error-text err))))))

(defun duet-diff--decide (file part decision &optional words)
  "Send DECISION, \"accept\" or \"revert\", on PART of FILE.
Then point goes to the next open change, unless it has moved meanwhile, and
the message WORDS is shown."
  (duet-diff--send
   file part decision
   (lambda ()
     (let* ((file (cl-find (duet-diff-file-path file) duet-diff--files
                           :key #'duet-diff-file-path :test #'equal))
            (items (and file (if (duet-hunk-p part) (list (duet-diff--place part))
                               (duet-diff--changes file))))
            (last (car (last items))))
       (dolist (item items)
         ;; A hunk that was reverted before stays so if the file is accepted.
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
  "Mark the change at point as seen; its file stays as it is."
  (interactive nil duet-diff-mode)
  (pcase-let ((`(,file . ,item) (duet-diff--here)))
    (when (eq (duet-diff--state item) 'reverted)
      (user-error "This is reverted; undo that first"))
    (let ((part (duet-diff--part file item)))
      (duet-diff--check file nil)
      (duet-diff--decide file part "accept"))))

(defun duet-diff-accept-file ()
  "Mark all changes of the file at point as seen."
  (interactive nil duet-diff-mode)
  (let ((file (duet-diff--file-here)))
    (when (eq (duet-diff-file-state file) 'reverted)
      (user-error "All of it is reverted"))
    (duet-diff--check file nil)
    (duet-diff--decide file file "accept")))

(defun duet-diff-revert ()
  "Take the change at point back, in its file.
\\<duet-diff-mode-map>\\[duet-diff-undo] puts it there again."
  (interactive nil duet-diff-mode)
  (pcase-let ((`(,file . ,item) (duet-diff--here)))
    (when (eq (duet-diff--state item) 'reverted)
      (user-error "This is reverted already; %s"
                  (concat (duet-look-key #'duet-diff-undo 'duet-diff-mode-map) " undoes that")))
    (let ((part (duet-diff--part file item)))
      (if (eq part file) (duet-diff-revert-file)
        (duet-diff--check file t)
        (if (y-or-n-p (format "Take this change back, in %s on the disk? " (duet-diff--name file)))
            (duet-diff--decide file part "revert"
                               (format "Reverted in %s" (duet-diff--name file)))
          (message "Nothing reverted"))))))

(defun duet-diff-revert-file ()
  "Make the file at point as it was before the turn.
A file that the turn has made is deleted, one that it has deleted is made.
If several turns are shown their changes of it are reverted, the last first."
  (interactive nil duet-diff-mode)
  (let* ((file (duet-diff--file-here))
         (name (duet-diff--name file))
         (turns (if duet-diff--whole "these turns have" "this turn has")))
    (when (eq (duet-diff-file-state file) 'reverted)
      (user-error "All of it is reverted already"))
    (duet-diff--check file t)
    (if (y-or-n-p (pcase (duet-diff--kind file)
                    ('new (format "Delete %s, which %s made? " name turns))
                    ('deleted (format "Make %s again, which %s deleted? " name turns))
                    (_ (format "Revert all that %s changed in %s? " turns name))))
        (duet-diff--decide file file "revert" (format "Reverted %s" name))
      (message "Nothing reverted"))))

(defun duet-diff-undo ()
  "Undo the decision on the change at point, or the last one made here.
What was reverted is put into its file again."
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
      (if (or (not back)
              (y-or-n-p (format "Put this change into %s again, on the disk? " name)))
          (let ((items (if (eq part file) (duet-diff--changes file) (list part))))
            (setq duet-diff--decided
                  (cl-remove-if (lambda (item) (memq (duet-diff--place item) items))
                                duet-diff--decided))
            (duet-diff--send file part "reopen"
                             (lambda () (when back (message "Put back into %s" name)))))
        (message "It stays reverted")))))


;;;; Another look

(defun duet-diff--line (file hunk)
  "Return the line where HUNK of FILE is now, after what was reverted before it."
  (let ((line (duet-hunk-line hunk)))
    (cl-loop for other in (duet-diff-file-hunks file)
             until (eq other hunk)
             do (when (eq (duet-hunk-state other) 'reverted)
                  (cl-incf line (duet-hunk-shift other))))
    line))

(defun duet-diff-visit ()
  "Visit the file at point, at the line that point is on."
  (interactive nil duet-diff-mode)
  (when (mouse-event-p last-input-event)
    (mouse-set-point last-input-event))
  (pcase-let* ((`(,file . ,item) (duet-diff--here))
               (path (duet-worktree-file duet-connection duet-session (duet-diff-file-path file)))
               (line (and (duet-hunk-p item)
                          (duet-diff--line-at-point file item))))
    (unless (file-exists-p path)
      (duet-diff-refuse file "there is no such file any more"))
    (find-file-other-window path)
    (when line
      (goto-char (point-min))
      (forward-line (1- line)))))

(defun duet-diff--next-error (count &optional reset)
  "Visit the change that is COUNT further, in its file; from the first if RESET.
This is what `next-error' does."
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
  "Return the line of FILE that point is on in HUNK."
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

;; The server sends the files that a turn has changed, before and after.  For a whole
;; session each file is that before the first turn that changed it and that after the
;; last; a file that was changed back is left out.

(defun duet-diff-turns-load (connection session run whole done fail)
  "Ask CONNECTION what the turn RUN of SESSION, an id, has changed.
If WHOLE is non-nil, what all turns up to it have.  Call DONE with a list
of files as the server sends them, or FAIL with an error."
  (if whole
      (duet-diff-turns--before connection session run '() done fail)
    (duet-diff-turns--ask connection run done fail)))

(defun duet-diff-turns--ask (connection run done fail)
  "Ask CONNECTION what RUN has changed; call DONE with the files, or FAIL."
  (duet-connection-request
   connection 'getSessionSnapshots (list :session_id run)
   :success-fn (lambda (result) (funcall done (duet-get-objects result :snapshots)))
   :error-fn fail))

(defun duet-diff-turns--before (connection session run later done fail)
  "Ask CONNECTION what RUN of SESSION has changed, and the turns before it.
LATER has a list of files for each later turn, the first first.  Call DONE
with all of it as one change, or FAIL with an error."
  (duet-diff-turns--ask
   connection run
   (lambda (files)
     (let ((turns (cons files later)))
       (duet-diff-turns--parent
        connection session run
        (lambda (parent)
          (if parent
              (duet-diff-turns--before connection session parent turns done fail)
            (funcall done (duet-diff-turns-join turns))))
        fail)))
   fail))

(defun duet-diff-turns--parent (connection session run done fail)
  "Call DONE with the id of the turn of SESSION before RUN, or nil; else FAIL.
What is not known yet CONNECTION is asked for."
  (let ((known (duet-session-run session run)))
    (if (and known (duet-run-parent known))
        (duet-diff-turns--own connection session (duet-run-parent known) done fail)
      (duet-connection-request
       connection 'getSessionState (list :session_id run)
       :success-fn
       (lambda (result)
         (let ((parent (duet-get-string result :session :parent_session_id)))
           (if parent (duet-diff-turns--own connection session parent done fail)
             (funcall done nil))))
       :error-fn fail))))

(defun duet-diff-turns--own (connection session run done fail)
  "Call DONE with RUN if it is one of SESSION, else with nil; or FAIL.
The turn that a fork began after is another session's.  CONNECTION is
asked for one that is not known."
  (if-let ((owner (gethash run (duet-model-runs (duet-session-model session)))))
      (funcall done (and (eq owner session) run))
    (duet-connection-request
     connection 'getSessionState (list :session_id run)
     :success-fn
     (lambda (result)
       (funcall done (and (equal (duet-get-string result :session :thread_id)
                                 (duet-session-id session))
                          run)))
     :error-fn fail)))


;;;; All as one change

(defun duet-diff-turns-join (turns)
  "Return the files that TURNS, lists of files, have changed together.
The first turn comes first."
  (let ((paths '())
        (changes (make-hash-table :test #'equal)))
    (dolist (files turns)
      (dolist (file files)
        (let ((path (duet-get-string file :file_path)))
          (unless (gethash path changes) (push path paths))
          (push file (gethash path changes)))))
    (delq nil (mapcar (lambda (path) (duet-diff-turns--file path (reverse (gethash path changes))))
                      (nreverse paths)))))

(defun duet-diff-turns--file (path changes)
  "Return what CHANGES, of turns, have done together to the file PATH, or nil.
It has CHANGES as :turns."
  (let* ((last (car (last changes)))
         (before (plist-get (car changes) :before))
         (after (plist-get last :after)))
    (cond
     ((null (cdr changes)) last)
     ((or (duet-get (car changes) :binary) (duet-get last :binary))
      (append (list :binary t :turns changes) last))
     ((equal before after) nil)
     (t (list :file_path path :before before :after after :turns changes
              :diff (duet-diff-turns-text before after))))))

(defun duet-diff-turns-text (before after)
  "Return how the text AFTER differs from BEFORE, as a unified diff.
Either may be nil, of a file that is not there."
  (mapconcat (lambda (hunk) (duet-diff-turns--hunk hunk before after))
             (duet-lines-hunks before after) ""))

(defun duet-diff-turns--hunk (hunk before after)
  "Return HUNK of the texts BEFORE and AFTER as a unified diff has it."
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
     ;; Of what has no lines the header names the line before.
     (format "@@ -%d,%d +%d,%d @@\n"
             (if (zerop old) (1- (duet-lines-hunk-old hunk)) (duet-lines-hunk-old hunk)) old
             (if (zerop new) (1- (duet-lines-hunk-new hunk)) (duet-lines-hunk-new hunk)) new)
     (cl-loop for line in lines
              for i from 0
              concat line concat "\n"
              when (or (and open-old (eql i last-old)) (and open-new (eql i last-new)))
              concat "\\ No newline at end of file\n"))))

(defun duet-diff-turns--open-p (text line)
  "Return non-nil if LINE is the last of TEXT, and no newline ends it."
  (and text (not (string-empty-p text))
       (not (string-suffix-p "\n" text))
       (= line (1+ (cl-count ?\n text)))))

(provide 'duet-diff)
;;; duet-diff.el ends here
