;;; duet-worktree.el --- Sessions in git worktrees  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The agent of a session may work in a git worktree: a directory outside of the
;; project, on a branch of its own.  `duet-land' brings the changes to the user's
;; branch, `duet-discard-worktree' deletes directory and branch.  The menu
;; `duet-worktree' (duet-menu.el) has these commands.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-visible)

(declare-function duet-compose "duet-compose" (connection &optional session run queued))

(defun duet-worktree-session ()
  "Return the session of the buffer or at point, which has a worktree."
  (let ((session (duet-actions-session)))
    (cond ((null (duet-session-worktree session))
           (user-error "The agent of this session works in the project's directory"))
          ((duet-session-lost-worktree-p session)
           (user-error "The worktree of this session is gone"))
          (t session))))

(defun duet-worktree--directory (connection session)
  "Return the top of the worktree of SESSION of CONNECTION, as Emacs can visit it."
  (file-name-as-directory
   (duet-remote-name (duet-get-string (duet-session-worktree session) :dir)
                     (duet-connection-root connection))))

(defun duet-worktree--top (connection session)
  "Return the top of the repository with CONNECTION's project, for Emacs to visit.
Where the project is below the top, so is the agent of SESSION in its worktree."
  (let* ((root (duet-connection-root connection))
         (top (file-name-as-directory (duet-get-string (duet-session-worktree session) :dir)))
         (cwd (file-name-as-directory (or (duet-session-cwd session) top)))
         (below (and (string-prefix-p top cwd) (substring cwd (length top)))))
    (if (and below (string-suffix-p (concat "/" below) root))
        (substring root 0 (- (length root) (length below)))
      root)))

(defun duet-worktree-file (connection session file)
  "Return FILE, or the project's if FILE was in the lost worktree of SESSION.
CONNECTION is the session's; names are as Emacs can visit them."
  (let ((top (and (duet-session-lost-worktree-p session)
                  (duet-worktree--directory connection session))))
    (if (and top (string-prefix-p top file))
        (concat (duet-worktree--top connection session) (substring file (length top)))
      file)))

(defun duet-worktree-dired (session)
  "Visit the directory of the worktree of SESSION."
  (interactive (list (duet-worktree-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode
               duet-attempts-mode)
  (dired-other-window (duet-worktree--directory (duet-connection-here) session)))


;;; Showing paths

(defun duet-worktree--count (count what)
  "Return COUNT and WHAT, in the plural where that is right."
  (format "%d %s%s" count what (if (= count 1) "" "s")))

(defun duet-worktree--show (name insert)
  "Show the buffer NAME in another window, with what the function INSERT inserts."
  (with-current-buffer (get-buffer-create name)
    (special-mode)
    (let ((inhibit-read-only t))
      (erase-buffer)
      (funcall insert))
    (set-buffer-modified-p nil)
    (goto-char (point-min))
    (display-buffer (current-buffer))))

(defun duet-worktree--insert-button (text action)
  "Insert a button with TEXT that calls the function ACTION."
  (insert-text-button text 'action (lambda (_) (funcall action)) 'follow-link t))


;;; Landing

(defconst duet-worktree--methods
  '((?m "merge" "Add a merge commit, or none if your branch can be moved forward.")
    (?s "squash" "Make one commit of all changes.")
    (?r "rebase" "Repeat each commit on your branch, without a merge commit.")
    (?p "patch" "Change your files, without a commit."))
  "How changes are landed: choices of `read-multiple-choice'.")

(defun duet-worktree--read-method ()
  "Have the user choose how to land; return the arguments METHOD and MESSAGE.
See `duet-land'."
  (let ((method (nth 1 (read-multiple-choice "Land how?" duet-worktree--methods))))
    (list method
          (and (equal method "squash")
               (read-string "Message of the commit (empty for a plain one): ")))))

(defun duet-land (session &optional method message)
  "Bring the changes in the worktree of SESSION to your branch.
That is the one that was checked out when the session began.  Files that are not
committed become a commit.  If files conflict, or uncommitted files of yours are
in the way, nothing is changed.

METHOD is merge, squash, rebase or patch, nil for merge; a prefix argument asks
for it.  MESSAGE is that of a new commit, nil or empty for a plain one."
  (interactive (cons (duet-worktree-session)
                     (and current-prefix-arg (duet-worktree--read-method)))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode
               duet-attempts-mode)
  (duet-worktree--land
   (duet-connection-here) session 'session.land
   (duet-worktree--land-parameters session method message)
   (lambda (result) (message "%s" (duet-worktree--landed-words result)))))

(defun duet-worktree--land-parameters (session method message)
  "Return the parameters that land SESSION with METHOD and MESSAGE.
See `duet-land'."
  (append (list :session_id (duet-session-leaf-id session))
          (and method (list :method method))
          (and message (not (string-empty-p message)) (list :message message))))

(defun duet-worktree--land (connection session method parameters done &optional refused)
  "Land the worktree of SESSION of CONNECTION: request METHOD with PARAMETERS.
DONE is called with the result.  An error is shown, unless the function REFUSED
returns non-nil for it."
  (let ((top (duet-worktree--directory connection session)))
    (save-some-buffers nil (lambda () (string-prefix-p top (or buffer-file-name ""))))
    (duet-connection-request
     connection method parameters
     :success-fn
     (lambda (result)
       ;; What an earlier attempt has shown is not so any more.
       (when (get-buffer "*duet land*") (quit-windows-on "*duet land*" t))
       ;; Buffers that visit these files follow.
       (dolist (file (duet-get-strings result :files))
         (duet-model-announce (duet-connection-model connection) 'file session
                              (duet-remote-local
                               (concat (duet-worktree--top connection session) file))))
       (funcall done result))
     :error-fn (lambda (err)
                 (unless (and refused (funcall refused err))
                   (duet-worktree--not-landed connection session err))))))

(defun duet-worktree--landed-words (result)
  "Return what was landed, from RESULT of session.land."
  (let ((branch (duet-get-string result :branch))
        (commits (length (duet-get-strings result :commits)))
        (files (+ (length (duet-get-strings result :files))
                  (or (duet-get-number result :more) 0)))
        (nested (duet-get-strings result :nested)))
    (concat
     (cond ((= 0 commits files) "There is nothing new to land")
           (branch (format "Landed on %s: %s, %s" (duet-visible-line branch)
                           (duet-worktree--count commits "commit")
                           (duet-worktree--count files "file")))
           (t (concat "Landed without a commit: " (duet-worktree--count files "file"))))
     (when nested
       (concat "; not landed, " (if (cdr nested) "repositories of their own: "
                                  "a repository of its own: ")
               (mapconcat #'duet-visible-line nested ", "))))))

(defun duet-worktree--not-landed (connection session err)
  "Say why the worktree of SESSION of CONNECTION was not landed: ERR."
  (let* ((data (plist-get err :data))
         (paths (duet-get-strings data :paths))
         (more (or (duet-get-number data :more) 0))
         (all (+ (length paths) more))
         (count (duet-worktree--count all "file"))
         (overlap (equal (duet-get-string data :kind) "overlap")))
    (if (null paths)
        (message "Duet: %s" (duet-connection-error-text err))
      (duet-worktree--show
       "*duet land*"
       (lambda ()
         (insert "Nothing was landed: "
                 (if overlap "these files of yours are not committed and would be overwritten.\n\n"
                   "these files conflict with your branch.\n\n"))
         (dolist (path paths)
           (insert "  ")
           (duet-worktree--insert-button
            (duet-visible-line path)
            (lambda () (find-file-other-window
                        (concat (if overlap (duet-worktree--top connection session)
                                  (duet-worktree--directory connection session))
                                path))))
           (insert "\n"))
         (when (> more 0) (insert (format "  and %d more\n" more)))
         (insert "\n")
         (if overlap (insert "Commit or stash them first.\n")
           (duet-worktree--insert-button
            "[Let the agent merge]"
            (lambda () (duet-worktree--ask-to-merge connection session)))
           (insert " and land again.\n"))))
      (message "Nothing was landed: %s %s" count
               (cond (overlap "of yours would be overwritten")
                     ((= all 1) "conflicts with your branch")
                     (t "conflict with your branch"))))))

(defun duet-worktree--ask-to-merge (connection session)
  "Begin a prompt that has the agent of SESSION of CONNECTION merge."
  (duet-compose connection session)
  (when (= (buffer-size) 0)
    (insert "Merge my branch into yours and resolve the conflicts")))


;;; Discarding

(defun duet-discard-worktree (session)
  "Delete the worktree of SESSION, and its branch.
If work is not landed you are shown it and asked.  It is kept in a git ref then.
The session stays; a fork continues it in the project's directory."
  (interactive (list (duet-worktree-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode
               duet-attempts-mode)
  (duet-worktree--discard (duet-connection-here) session nil))

(defun duet-worktree--discard (connection session force)
  "Delete the worktree of SESSION of CONNECTION, with FORCE also work in it."
  (duet-connection-request
   connection 'session.discard
   (append (list :session_id (duet-session-leaf-id session)) (and force (list :force t)))
   :success-fn
   (lambda (result)
     (let ((ref (duet-get-string result :ref)))
       (message "The worktree is discarded%s%s"
                (if ref (format "; its work is kept, git branch NAME %s brings it back" ref) "")
                (if (duet-get result :branch_kept)
                    "; its branch stays, because another working tree has it checked out"
                  ""))))
   :error-fn
   (lambda (err)
     (if-let ((losses (and (not force) (duet-get (plist-get err :data) :losses))))
         ;; The minibuffer must not be entered in a process filter.
         (run-at-time 0 nil #'duet-worktree--ask-discard connection session losses)
       (message "Duet: %s" (duet-connection-error-text err))))))

(defconst duet-worktree--losses
  '((:commits . "commit that is not landed")
    (:uncommitted . "changed file that is not committed")
    (:untracked . "new file that is not committed")
    (:nested . "repository of its own, which is not kept")
    (:ignored . "ignored file or directory, which is not kept"))
  "What a worktree may have that is not landed, in words.")

(defun duet-worktree--ask-discard (connection session losses)
  "Show LOSSES, work in the worktree of SESSION of CONNECTION, and ask."
  (if (save-window-excursion
        (duet-worktree--show "*duet discard*"
                             (lambda () (duet-worktree--insert-losses losses)))
        (nth 2 (read-multiple-choice "Discard the worktree with this work?"
                                     '((?y "yes" t) (?n "no" nil)))))
      (duet-worktree--discard connection session t)
    (message "Nothing was discarded")))

(defun duet-worktree--insert-losses (losses)
  "Insert LOSSES, as session.discard lists them."
  (pcase-dolist (`(,member . ,what) duet-worktree--losses)
    (when-let ((list (duet-get losses member)))
      (let* ((first (duet-get-strings list :first))
             (more (- (or (duet-get-number list :count) 0) (length first))))
        (insert (upcase-initials (substring what 0 1)) (substring what 1) ":\n")
        (dolist (name first) (insert "  " (duet-visible-line name) "\n"))
        (when (> more 0) (insert (format "  and %d more\n" more)))))))

(provide 'duet-worktree)
;;; duet-worktree.el ends here
