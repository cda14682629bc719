;;; duet-diff-view.el --- The buffer of a diff, with its hunks  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The buffer of `duet-diff': the files that a turn has changed, their hunks, the
;; decisions on them, and commands to move among them.  The server keeps the
;; decisions of all clients.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-look)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-render)

(declare-function ediff-buffers "ediff" (buffer-a buffer-b &optional startup-hooks job-name))
(declare-function ediff-setup-windows-plain "ediff-wind"
                  (buffer-a buffer-b buffer-c control-buffer))
(defvar ediff-window-setup-function)
(defvar ediff-quit-hook)
(defvar duet-session)

;;; Hunks

(cl-defstruct (duet-hunk (:copier nil))
  "One change of a file: a hunk of lines, or a change of its mode."
  (text nil :documentation "Its text in the diff, with its header.")
  (line 1 :documentation "The number of its first line in the new file.")
  (shift 0 :documentation "The number of lines that its revert adds to the file.")
  (id nil :documentation "The server's id; nil if it cannot be decided alone.")
  (state nil :documentation "nil, `accepted' or `reverted'."))

(defconst duet-hunk--header
  "^@@ -[0-9]+\\(?:,\\([0-9]+\\)\\)? \\+\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)? @@.*\n"
  "A regexp that matches the header of a hunk.")

(defun duet-hunk-list (diff)
  "Return the hunks of DIFF, the unified diff of one file."
  (with-temp-buffer
    (insert diff)
    (unless (bolp) (insert "\n"))
    (goto-char (point-min))
    (let ((going (re-search-forward duet-hunk--header nil t))
          (hunks '()))
      (while going
        (let* ((beg (match-beginning 0))
               (count (lambda (group)
                        (if (match-string group) (string-to-number (match-string group)) 1)))
               (old (funcall count 1))
               (new (funcall count 3))
               (line (string-to-number (match-string 2))))
          (setq going (re-search-forward duet-hunk--header nil t))
          (push (make-duet-hunk :text (buffer-substring-no-properties
                                       beg (if going (match-beginning 0) (point-max)))
                                ;; The header of an empty range has the line before it.
                                :line (if (zerop new) (1+ line) line)
                                :shift (- old new))
                hunks)))
      (nreverse hunks))))


;;;; Files

(defun duet-hunk-check-file (file)
  "Signal a `user-error' if a buffer of FILE has unsaved changes."
  (when-let ((buffer (find-buffer-visiting file)))
    (when (buffer-modified-p buffer)
      (let ((name (file-name-nondirectory file)))
        (user-error "%s has changes that are not saved%s; save or undo them first" name
                    (if (equal name (buffer-name buffer)) ""
                      (format " in the buffer %s" (buffer-name buffer))))))))

;;; The view

(cl-defstruct (duet-diff-turn (:copier nil))
  "A turn that has changed a file."
  (id nil :documentation "Its id.")
  (states nil :documentation "A list of (ID . STATE) for the mode and the hunks, in order.
If the server sends none, it has one element, with the ID nil, for the file."))

(cl-defstruct (duet-diff-file (:copier nil))
  "A file that one or several turns have changed."
  path before after binary cut hunks state
  (turns nil :documentation "A list of `duet-diff-turn', the first turn first.")
  (renamed nil :documentation "The path of the deleted file with the same text, or nil."))

(defvar-local duet-diff--turn nil
  "The id of the turn whose changes the buffer shows.")
(defvar-local duet-diff--whole nil
  "Non-nil if the buffer shows the changes of all turns up to that turn.")
(defvar-local duet-diff--files nil
  "The files of the buffer.")
(defvar-local duet-diff--state nil
  "The last known state of the turn.")

(defun duet-diff--items ()
  "Return all items that can be accepted: hunks, and files without hunks."
  (mapcan (lambda (file)
            (copy-sequence (or (duet-diff-file-hunks file) (list file))))
          duet-diff--files))

(defun duet-diff--state (item)
  "Return the state of ITEM, a hunk or a file."
  (if (duet-hunk-p item) (duet-hunk-state item) (duet-diff-file-state item)))


;;;; Objects of the server

(defun duet-diff--cut-p (text)
  "Return non-nil if the server has shortened TEXT."
  (and text (string-match-p "… \\[[0-9]+ of [0-9]+ bytes left out\\]\\'" text)))

(defun duet-diff--file (object)
  "Return the file of OBJECT, from the server."
  (let* ((text (lambda (key)
                 ;; Distinguish an empty file from a missing one.
                 (let ((value (plist-get object key)))
                   (and (stringp value) value))))
         (path (or (duet-get-string object :path) ""))
         (diff (or (duet-get-string object :diff) ""))
         (binary (and (duet-get object :binary) t))
         (file (make-duet-diff-file
                :path (duet-remote-name path) :binary binary
                :renamed (when-let ((old (duet-get-string object :renamed_from)))
                           (duet-remote-name old))
                :before (funcall text :before) :after (funcall text :after)
                :cut (or (duet-diff--cut-p diff)
                         (duet-diff--cut-p (funcall text :before))
                         (duet-diff--cut-p (funcall text :after))))))
    (setf (duet-diff-file-hunks file)
          (nconc (when-let ((mode (plist-get object :mode)))
                   (list (make-duet-hunk :text (format "mode %s → %s\n"
                                                       (duet-get-string mode :old)
                                                       (duet-get-string mode :new)))))
                 (and (not binary) (duet-hunk-list diff)))
          (duet-diff-file-turns file)
          (mapcar #'duet-diff--turn-of (or (plist-get object :turns) (list object))))
    (unless (cdr (duet-diff-file-turns file))
      (cl-loop for hunk in (duet-diff-file-hunks file)
               for (id) in (duet-diff-turn-states (car (duet-diff-file-turns file)))
               do (setf (duet-hunk-id hunk) id)))
    (duet-diff--settle file)
    file))

(defun duet-diff--turn-of (object)
  "Return the turn of the change OBJECT, from the server."
  (let ((state (lambda (object)
                 (pcase (duet-get-string object :state)
                   ("accepted" 'accepted)
                   ("reverted" 'reverted)))))
    (make-duet-diff-turn
     :id (duet-get-string object :turn_uuid)
     :states (or (mapcar (lambda (hunk) (cons (duet-get-string hunk :id) (funcall state hunk)))
                         (append (when-let ((mode (plist-get object :mode))) (list mode))
                                 (duet-get-objects object :hunks)))
                 (list (cons nil (funcall state object)))))))

(defun duet-diff--settle (file)
  "Set the states of FILE and its hunks from the states of its turns.
FILE has a state if all hunks of all turns have it."
  (let* ((turns (duet-diff-file-turns file))
         (states (delete-dups (mapcar #'cdr (mapcan (lambda (turn)
                                                      (copy-sequence (duet-diff-turn-states turn)))
                                                    turns)))))
    (setf (duet-diff-file-state file) (and (null (cdr states)) (car states)))
    (dolist (hunk (duet-diff-file-hunks file))
      (setf (duet-hunk-state hunk)
            (if-let ((id (duet-hunk-id hunk)))
                (alist-get id (duet-diff-turn-states (car turns)) nil nil #'equal)
              (duet-diff-file-state file))))))

(defun duet-diff-refuse (file why)
  "Signal a `user-error' that names FILE, with the reason WHY."
  (user-error "%s: %s" (duet-diff--name file) why))

(defun duet-diff--name (file)
  "Return the name of FILE: its path relative to the session's directory."
  (let ((path (duet-diff-file-path file)))
    (or (duet-remote-inside path default-directory)
        (duet-remote-abbreviate path))))

(defun duet-diff--kind (file)
  "Return `new', `deleted' or `modified' for FILE, or nil if it is binary."
  (cond ((duet-diff-file-binary file) nil)
        ((null (duet-diff-file-before file)) 'new)
        ((null (duet-diff-file-after file)) 'deleted)
        (t 'modified)))


;;;; The buffer

(defun duet-diff--print ()
  "Show the files, and keep point on its item."
  (let* ((inhibit-read-only t)
         (here (get-text-property (point) 'duet-diff-item))
         (place (and here (duet-diff--place here)))
         (empty (= (point-min) (point-max))))
    (remove-overlays)
    (erase-buffer)
    (if (null duet-diff--files)
        (insert (duet-diff--nothing))
      (mapc #'duet-diff--insert duet-diff--files))
    (restore-buffer-modified-p nil)
    (goto-char (or (and place (duet-diff--position place))
                   (and empty (duet-diff--position (car (duet-diff--items))))
                   (point-min)))
    (dolist (window (get-buffer-window-list nil nil t))
      (set-window-point window (point)))
    (force-mode-line-update)))

(defun duet-diff--nothing ()
  "Return the text of a buffer without files.
Some agents do not report their changes."
  (concat "\n " (if duet-diff--whole "No turn has left a file changed"
                  "The agent has reported no changed file")
          (if (memq duet-diff--state duet-turn-active-states) " so far.\n" ".\n")
          (substitute-command-keys
           (concat
            (if (vc-responsible-backend default-directory t)
                "\n \\[vc-root-diff] (vc-root-diff) shows all changes since the last commit,\n \\[vc-diff] (vc-diff) in a file's buffer the changes of that file.\n"
              "")
            (if (cdr (duet-session-turns duet-session))
                "\n \\<duet-diff-mode-map>\\[duet-diff-earlier-turn] shows the turn before, \\[duet-diff-later-turn] the next.\n"
              "")))))

(defun duet-diff--place (item)
  "Return the item that replaces ITEM after a reload, or nil."
  (cl-find-if (lambda (other)
                (and (eq (type-of item) (type-of other))
                     (if (duet-hunk-p item)
                         (and (equal (duet-hunk-id item) (duet-hunk-id other))
                              (string= (duet-hunk-text item) (duet-hunk-text other)))
                       (string= (duet-diff-file-path item) (duet-diff-file-path other)))))
              (duet-diff--items)))

(defun duet-diff--position (item)
  "Return the beginning of ITEM in the buffer, or nil."
  (and item (text-property-any (point-min) (point-max) 'duet-diff-item item)))

(defun duet-diff--words (file)
  "Return the description of FILE for its heading."
  (concat (pcase (duet-diff--kind file)
            ((and 'new (guard (duet-diff-file-renamed file)))
             (concat "renamed from "
                     (duet-visible-line
                      (file-relative-name (duet-diff-file-renamed file)
                                          (file-name-directory (duet-diff-file-path file))))))
            ('new (if (duet-diff-file-hunks file) "new file" "new file, empty"))
            ('deleted (if (duet-diff-file-hunks file) "deleted" "deleted; it was empty"))
            ('modified "modified")
            (_ "binary: its content is not kept, it can neither be shown nor reverted"))
          (if (duet-diff-file-cut file)
              "; too long to be shown whole"
            "")))

(defun duet-diff--insert (file)
  "Insert FILE: its heading and its hunks."
  (let ((beg (point))
        (hunks (duet-diff-file-hunks file))
        (name (duet-visible-line (duet-diff--name file))))
    (insert (duet-look-sign "●") " " name "  " (duet-diff--words file) "\n")
    ;; An overlay, since Font Lock fontifies it as a line of a diff.
    (overlay-put (make-overlay beg (+ beg 2 (length name))) 'face 'duet-heading)
    (if (null hunks)
        (progn
          (put-text-property beg (point) 'duet-diff-item file)
          (duet-diff--mark file beg (1- (point)) (1- (point))))
      (insert (if (eq (duet-diff--kind file) 'new) "--- /dev/null\n"
                (format "--- a/%s\n" name))
              (if (eq (duet-diff--kind file) 'deleted) "+++ /dev/null\n"
                (format "+++ b/%s\n" name)))
      (dolist (hunk hunks)
        (let ((start (point)))
          (insert (duet-render-wrap-diff (duet-visible (duet-hunk-text hunk))))
          (put-text-property start (point) 'duet-diff-item hunk)
          (duet-diff--mark hunk start
                           (save-excursion (goto-char start) (line-end-position))
                           (1- (point))))))
    (insert "\n")
    (put-text-property beg (point) 'duet-diff-file file)))

(defun duet-diff--mark (item beg body end)
  "Show the state of ITEM, from BEG to END, by overlays.
If ITEM is decided, hide it from BODY on."
  (pcase-let ((`(,sign ,text ,face) (pcase (duet-diff--state item)
                                      ('accepted '("✓" "accepted" duet-done))
                                      ('reverted '("✗" "reverted" duet-failed)))))
    (when text
      (let ((mark (make-overlay beg body)))
        (overlay-put mark 'before-string
                     (propertize (format "%s %s  " (duet-look-sign sign) text)
                                 'face face))
        (overlay-put mark 'face 'duet-dim)
        (overlay-put mark 'duet-diff item))
      (when (> end body)
        (let ((fold (make-overlay body end)))
          (overlay-put fold 'invisible 'duet-diff)
          (overlay-put fold 'isearch-open-invisible #'delete-overlay)
          (overlay-put fold 'duet-diff item))))))

(defun duet-diff--update (item)
  "Show the current state of ITEM."
  (dolist (overlay (overlays-in (point-min) (point-max)))
    (when (eq (overlay-get overlay 'duet-diff) item)
      (delete-overlay overlay)))
  (when-let ((beg (duet-diff--position item)))
    (let ((end (next-single-property-change beg 'duet-diff-item nil (point-max))))
      (duet-diff--mark item beg
                       (save-excursion (goto-char beg) (line-end-position))
                       (1- end))))
  (force-mode-line-update))

(defun duet-diff-toggle ()
  "Fold the change at point, or unfold it."
  (interactive nil duet-diff-mode)
  (pcase-let* ((`(,_ . ,hunk) (duet-diff--here))
               (beg (duet-diff--position hunk))
               (body (save-excursion (goto-char beg) (line-end-position)))
               (end (1- (next-single-property-change beg 'duet-diff-item nil (point-max))))
               (fold (cl-find-if (lambda (overlay) (overlay-get overlay 'invisible))
                                 (overlays-in body end))))
    (cond
     (fold (delete-overlay fold))
     ((> end body)
      (goto-char beg)
      (let ((fold (make-overlay body end)))
        (overlay-put fold 'invisible 'duet-diff)
        (overlay-put fold 'duet-diff hunk))))))


;;;; Moving

(defun duet-diff--here ()
  "Return the change at point: (FILE . HUNK), or (FILE . FILE) without hunks."
  (let* ((file (or (get-text-property (point) 'duet-diff-file)
                   (user-error "No change here")))
         (item (or (get-text-property (point) 'duet-diff-item)
                   (car (duet-diff-file-hunks file))
                   file)))
    (cons file item)))

(defun duet-diff--file-here ()
  "Return the file at point."
  (car (duet-diff--here)))

(defun duet-diff-next (&optional count)
  "Go to the next change, or to the COUNTth; go back if it is negative."
  (interactive "p" duet-diff-mode)
  (let* ((count (or count 1))
         (starts (delq nil (mapcar #'duet-diff--position (duet-diff--items))))
         (there (if (< count 0)
                    (nth (1- (- count))
                         (nreverse (cl-remove-if-not (lambda (start) (< start (point)))
                                                     starts)))
                  (nth (1- count) (cl-remove-if-not (lambda (start) (> start (point)))
                                                    starts)))))
    (if there (goto-char there)
      (message (if (< count 0) "This is the first change" "This is the last change")))))

(defun duet-diff-previous (&optional count)
  "Go to the previous change, or to the COUNTth before."
  (interactive "p" duet-diff-mode)
  (duet-diff-next (- (or count 1))))

(defun duet-diff-next-file (&optional count)
  "Go to the next file, or to the COUNTth; go back if it is negative."
  (interactive "p" duet-diff-mode)
  (let* ((count (or count 1))
         (file (get-text-property (point) 'duet-diff-file))
         (place (or (cl-position file duet-diff--files)
                    (if (> count 0) -1 (length duet-diff--files))))
         (there (and (>= (+ place count) 0) (nth (+ place count) duet-diff--files))))
    (if there
        (goto-char (duet-diff--position (or (car (duet-diff-file-hunks there)) there)))
      (message (if (< count 0) "This is the first file" "This is the last file")))))

(defun duet-diff-previous-file (&optional count)
  "Go to the previous file, or to the COUNTth before."
  (interactive "p" duet-diff-mode)
  (duet-diff-next-file (- (or count 1))))


;;;; A file before and after a turn, with Ediff

(defun duet-diff-ediff ()
  "Compare the file at point before the turn and after it, with Ediff.
At the end, restore the windows."
  (interactive nil duet-diff-mode)
  (require 'ediff)
  (let* ((file (duet-diff--file-here))
         (name (duet-diff--name file))
         (windows (current-window-configuration))
         buffers)
    (when (or (duet-diff-file-binary file) (duet-diff-file-cut file))
      (duet-diff-refuse file "the server has not sent its text"))
    (setq buffers
          (mapcar (lambda (side)
                    (with-current-buffer (generate-new-buffer
                                          (format "%s (%s)" name (car side)))
                      (insert (or (cdr side) ""))
                      (let ((buffer-file-name (duet-diff-file-path file))
                            (enable-local-variables nil))
                        (delay-mode-hooks (ignore-errors (set-auto-mode))))
                      (setq buffer-read-only t)
                      (set-buffer-modified-p nil)
                      (current-buffer)))
                  (list (cons "before" (duet-diff-file-before file))
                        (cons "after" (duet-diff-file-after file)))))
    (condition-case err
        ;; In the current frame.
        (let ((ediff-window-setup-function #'ediff-setup-windows-plain))
          (ediff-buffers
           (car buffers) (cadr buffers)
           (list (lambda ()
                   (setq-local ediff-window-setup-function #'ediff-setup-windows-plain)
                   (add-hook 'ediff-quit-hook
                             (lambda () (duet-diff-ediff--ended buffers windows))
                             t t)))))
      ((error quit)
       (duet-diff-ediff--ended buffers windows)
       (signal (car err) (cdr err))))))

(defun duet-diff-ediff--ended (buffers windows)
  "Kill BUFFERS and restore the configuration WINDOWS."
  (dolist (buffer buffers)
    (when (buffer-live-p buffer) (kill-buffer buffer)))
  (set-window-configuration windows))

(provide 'duet-diff-view)
;;; duet-diff-view.el ends here
