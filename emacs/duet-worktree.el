;;; duet-worktree.el --- Sessions in git worktrees  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The agent of a session may work in a git worktree: a directory outside of the
;; project, with its own branch.  `duet-land' lands the changes on the user's branch,
;; `duet-discard-worktree' deletes the directory and the branch.  The menu
;; `duet-worktree' (duet-menu.el) has these commands.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-revert)
(require 'duet-visible)

(declare-function duet-compose "duet-compose" (connection &optional session turn queued))

(defun duet-worktree-session ()
  "Return the session of the buffer or at point; it must have a worktree."
  (let ((session (duet-actions-session)))
    (cond ((null (duet-session-worktree session))
           (user-error "The agent of this session works in the project's directory"))
          ((duet-session-lost-worktree-p session)
           (user-error "The worktree of this session is gone"))
          (t session))))

(defun duet-worktree--directory (connection session)
  "Return the top of SESSION's worktree on CONNECTION, for Emacs to visit."
  (file-name-as-directory
   (duet-remote-name (duet-get-string (duet-session-worktree session) :dir)
                     (duet-connection-root connection))))

(defun duet-worktree--local-top (connection session)
  "Return the top of the local repository if the work of SESSION lands there.
That is so if SESSION of CONNECTION began on a host with its files."
  (when-let ((local (duet-connection-local connection))
             (top (locate-dominating-file local ".git")))
    (let ((default-directory local))
      ;; Duet keeps the work of the session under this name.
      (and (eql 0 (ignore-error file-error
                    (call-process "git" nil nil nil "show-ref" "--verify" "--quiet"
                                  (concat "refs/duet/hosts/" (duet-session-id session)))))
           (expand-file-name (file-name-as-directory top))))))

(defun duet-worktree--top (connection session)
  "Return the top of the repository in which the work of SESSION lands.
It is that of CONNECTION's project or the local one, for Emacs to visit."
  (or (duet-worktree--local-top connection session)
      (duet-worktree--top-there connection session)))

(defun duet-worktree--top-there (connection session)
  "Return the top of the repository with CONNECTION's project, for Emacs to visit.
If the project is below the top, the agent of SESSION works at the same place
below the top of its worktree."
  (let* ((root (duet-connection-root connection))
         (top (file-name-as-directory (duet-get-string (duet-session-worktree session) :dir)))
         (cwd (file-name-as-directory (or (duet-session-cwd session) top)))
         (below (and (string-prefix-p top cwd) (substring cwd (length top)))))
    (if (and below (string-suffix-p (concat "/" below) root))
        (substring root 0 (- (length root) (length below)))
      root)))

(defun duet-worktree-file (connection session file)
  "Return FILE, or the project's file if FILE was in SESSION's lost worktree.
CONNECTION is the session's; file names are those for Emacs."
  (let ((top (and (duet-session-lost-worktree-p session)
                  (duet-worktree--directory connection session))))
    (if (and top (string-prefix-p top file))
        (concat (duet-worktree--top connection session) (substring file (length top)))
      file)))

(defun duet-worktree-dired (session)
  "Visit the directory of SESSION's worktree."
  (interactive (list (duet-worktree-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode
               duet-attempts-mode)
  (dired-other-window
   (duet-host-visit-name (duet-worktree--directory (duet-connection-here session) session))))


;;; Showing paths

(defun duet-worktree--count (count what)
  "Return COUNT and the noun WHAT, in the plural if necessary."
  (format "%d %s%s" count what (if (= count 1) "" "s")))

(defun duet-worktree--show (name insert)
  "Show the buffer NAME in another window; the function INSERT inserts its text."
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
  "Methods of landing: choices of `read-multiple-choice'.")

(defun duet-worktree--read-method ()
  "Read a method of landing; return the arguments METHOD and MESSAGE.
See `duet-land'."
  (let ((method (nth 1 (read-multiple-choice "Land how?" duet-worktree--methods))))
    (list method
          (and (equal method "squash")
               (read-string "Message of the commit (empty for a plain one): ")))))

(defun duet-land (session &optional method message)
  "Land the changes in the worktree of SESSION on your branch.
That is the branch that was checked out when the session began.  Uncommitted
files become a commit.  If files conflict, or if the landing would overwrite
your uncommitted files, nothing changes.

METHOD is merge, squash, rebase or patch; nil means merge.  A prefix argument
reads it.  MESSAGE is the message of a new commit; nil or empty means a plain
one."
  (interactive (cons (duet-worktree-session)
                     (and current-prefix-arg (duet-worktree--read-method)))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode
               duet-attempts-mode)
  (duet-worktree--land
   (duet-connection-here session) session 'session.land
   (duet-worktree--land-parameters session method message)
   (lambda (result) (message "%s" (duet-worktree--landed-words result)))))

(defun duet-worktree--land-parameters (session method message)
  "Return the parameters to land SESSION with METHOD and MESSAGE.
See `duet-land'."
  (append (list :session (duet-session-id session))
          (and method (list :method method))
          (and message (not (string-empty-p message)) (list :message message))))

(defun duet-worktree--land (connection session method parameters done &optional refused)
  "Land SESSION's worktree on CONNECTION: request METHOD with PARAMETERS.
Call DONE with the result.  Show an error unless the function REFUSED returns
non-nil for it."
  (let ((top (duet-worktree--directory connection session))
        (local (duet-worktree--local-top connection session)))
    (save-some-buffers nil (lambda () (string-prefix-p top (or buffer-file-name ""))))
    (duet-connection-request
     connection method parameters
     :success-fn
     (lambda (result)
       ;; The report of an earlier attempt is out of date.
       (when (get-buffer "*duet land*") (quit-windows-on "*duet land*" t))
       ;; Update the buffers that visit these files.
       (dolist (file (duet-get-strings result :files))
         (if local (when duet-revert-buffers (duet-revert-file (concat local file)))
           (duet-model-announce (duet-connection-model connection) 'file session
                                (duet-remote-local
                                 (concat (duet-worktree--top connection session) file)))))
       (funcall done result))
     :error-fn (lambda (err)
                 (unless (and refused (funcall refused err))
                   (duet-worktree--not-landed connection session err))))))

(defun duet-worktree--landed-words (result)
  "Return a report on RESULT of session.land."
  (let ((branch (duet-get-string result :branch))
        (commits (length (duet-get-strings result :commits)))
        (files (+ (length (duet-get-strings result :files))
                  (or (duet-get-number result :more) 0)))
        (nested (duet-get-strings result :nested))
        (unfiltered (plist-get result :unfiltered)))
    (concat
     (cond ((= 0 commits files) "There is nothing new to land")
           (branch (format "Landed on %s: %s, %s" (duet-visible-line branch)
                           (duet-worktree--count commits "commit")
                           (duet-worktree--count files "file")))
           (t (concat "Landed without a commit: " (duet-worktree--count files "file"))))
     (when nested
       (concat "; not landed, " (if (cdr nested) "nested repositories: "
                                  "a nested repository: ")
               (mapconcat #'duet-visible-line nested ", ")))
     (when unfiltered
       (let* ((names (duet-get-strings unfiltered :first))
              (more (- (or (duet-get-number unfiltered :count) 0) (length names))))
         (concat "; committed without the filter that .gitattributes names"
                 " (look before you push): "
                 (mapconcat #'duet-visible-line names ", ")
                 (when (> more 0) (format " and %d more" more))))))))

(defun duet-worktree--not-landed (connection session err)
  "Report that SESSION's worktree on CONNECTION was not landed, because of ERR."
  (let* ((data (plist-get err :data))
         (paths (duet-get-strings data :paths))
         (more (or (duet-get-number data :more) 0))
         (all (+ (length paths) more))
         (ref (duet-get-string data :ref))
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
                        (duet-host-visit-name
                         (concat (if overlap (duet-worktree--top connection session)
                                   (duet-worktree--directory connection session))
                                 path)))))
           (insert "\n"))
         (when (> more 0) (insert (format "  and %d more\n" more)))
         (insert "\n")
         (if overlap (insert "Commit or stash them first.\n")
           (duet-worktree--insert-button
            "[Let the agent merge]"
            (lambda () (duet-worktree--ask-to-merge connection session ref)))
           (insert " and land again.\n"))))
      (message "Nothing was landed: %s %s" count
               (cond (overlap "of yours would be overwritten")
                     ((= all 1) "conflicts with your branch")
                     (t "conflict with your branch"))))))

(defun duet-worktree--ask-to-merge (connection session ref)
  "Begin a prompt that asks the agent of SESSION on CONNECTION to merge.
REF is the name that the user's branch has for the agent, or nil."
  (duet-compose connection session)
  (when (= (buffer-size) 0)
    (insert (format "Merge %s into yours and resolve the conflicts"
                    (if ref (duet-visible-line ref) "my branch")))))


;;; Discarding

(defun duet-discard-worktree (session)
  "Delete the worktree of SESSION, and its branch.
If that would lose work, show the work and ask.  Git keeps the work in a ref.
The session stays; a fork continues it in the project's directory."
  (interactive (list (duet-worktree-session))
               duet-sessions-mode duet-projects-mode duet-transcript-mode duet-diff-mode
               duet-attempts-mode)
  (duet-worktree--discard (duet-connection-here session) session nil))

(defun duet-worktree--discard (connection session force)
  "Delete SESSION's worktree on CONNECTION; with FORCE, even if it has work."
  (duet-connection-request
   connection 'session.discard
   (append (list :session (duet-session-id session)) (and force (list :force t)))
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
        ;; A process filter must not enter the minibuffer.
         (run-at-time 0 nil #'duet-worktree--ask-discard connection session losses)
       (message "Duet: %s" (duet-connection-error-text err))))))

(defconst duet-worktree--losses
  '((:commits . "commit that is not landed")
    (:uncommitted . "changed file that is not committed")
    (:untracked . "new file that is not committed")
    (:nested . "nested repository, which is not kept")
    (:ignored . "ignored file or directory, which is not kept"))
  "Kinds of work in a worktree that are not landed, in words.")

(defun duet-worktree--ask-discard (connection session losses)
  "Show LOSSES of SESSION's worktree on CONNECTION, and ask for confirmation."
  (if (save-window-excursion
        (duet-worktree--show "*duet discard*"
                             (lambda () (duet-worktree--insert-losses losses)))
        (eq ?y (car (read-multiple-choice "Discard the worktree with this work?"
                                          '((?y "yes") (?n "no"))))))
      (duet-worktree--discard connection session t)
    (message "Nothing was discarded")))

(defun duet-worktree--insert-losses (losses)
  "Insert LOSSES, from the error of session.discard."
  (pcase-dolist (`(,member . ,what) duet-worktree--losses)
    (when-let ((list (duet-get losses member)))
      (let* ((first (duet-get-strings list :first))
             (more (- (or (duet-get-number list :count) 0) (length first))))
        (insert (upcase-initials (substring what 0 1)) (substring what 1) ":\n")
        (dolist (name first) (insert "  " (duet-visible-line name) "\n"))
        (when (> more 0) (insert (format "  and %d more\n" more)))))))

(provide 'duet-worktree)
;;; duet-worktree.el ends here
