;;; duet-diff-view.el --- The buffer of a diff, with its hunks  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The buffer of `duet-diff': the files that a turn has changed, each with its
;; hunks, the decisions on them, and commands that move among them.  Decisions are
;; kept when all is read anew.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-look)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-render)
(require 'duet-revert)

(declare-function ediff-buffers "ediff" (buffer-a buffer-b &optional startup-hooks job-name))
(declare-function ediff-setup-windows-plain "ediff-wind"
                  (buffer-a buffer-b buffer-c control-buffer))
(defvar ediff-window-setup-function)
(defvar ediff-quit-hook)
(defvar duet-session)

;;; Hunks

;; A hunk is one change of a unified diff.  It is applied to a file or taken
;; back where the file has the lines that it expects, in the place that it names
;; or in one other place alone; anywhere else it is refused, and the file stays
;; as it is.
;;
;; Files are read and written byte for byte, whatever their line ends are.  A
;; buffer that visits one follows; one with changes that are not saved is a
;; reason to refuse.

(cl-defstruct (duet-hunk (:copier nil))
  "One change of a file."
  (text nil :documentation "Its text in the diff, with its header.")
  (line 1 :documentation "The number of its first line in the new file.")
  (old "" :documentation "The lines that it replaces, and those around them.")
  (new "" :documentation "The lines that it puts in their place.")
  (whole t :documentation "Whether it has as many lines as its header says.")
  (state nil :documentation "nil, `accepted' or `reverted'."))

(defconst duet-hunk--header
  "^@@ -\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)? \\+\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)? @@.*\n"
  "A regexp that matches the header of a hunk.")

(defun duet-hunk-list (diff)
  "Return the hunks of DIFF, the unified diff of one file."
  (with-temp-buffer
    (insert diff)
    (unless (bolp) (insert "\n"))
    (goto-char (point-min))
    (let (hunks)
      (while (re-search-forward duet-hunk--header nil t)
        (push (duet-hunk--parse) hunks))
      (nreverse hunks))))

(defun duet-hunk--parse ()
  "Return the hunk whose header was just matched; point goes to its end."
  (let* ((beg (match-beginning 0))
         (count (lambda (group)
                  (if (match-string group) (string-to-number (match-string group)) 1)))
         (old-left (funcall count 2))
         (new-left (funcall count 4))
         (line (string-to-number (match-string 3)))
         ;; Of what has no lines the header names the line before.
         (line (if (zerop new-left) (1+ line) line))
         (old '())
         (new '())
         (mark nil)
         (going t))
    (while (and going (not (eobp)))
      (let* ((mark-now (char-after))
             (text (buffer-substring-no-properties
                    (min (1+ (point)) (line-end-position))
                    (min (point-max) (line-beginning-position 2)))))
        (cond
         ((eq mark-now ?\\)
          ;; The line before has no newline at its end.
          (when (memq mark '(?\s ?-))
            (setcar old (string-remove-suffix "\n" (car old))))
          (when (memq mark '(?\s ?+))
            (setcar new (string-remove-suffix "\n" (car new)))))
         ((and (memq mark-now '(?\s ?\n)) (> old-left 0) (> new-left 0))
          (push text old) (push text new)
          (cl-decf old-left) (cl-decf new-left))
         ((and (eq mark-now ?-) (> old-left 0))
          (push text old) (cl-decf old-left))
         ((and (eq mark-now ?+) (> new-left 0))
          (push text new) (cl-decf new-left))
         (t (setq going nil)))
        (setq mark mark-now)
        (when going (forward-line 1))))
    (make-duet-hunk :text (buffer-substring-no-properties beg (point))
                    :line line
                    :old (apply #'concat (nreverse old))
                    :new (apply #'concat (nreverse new))
                    :whole (and (zerop old-left) (zerop new-left)))))

(defun duet-hunk--lines (text)
  "Return how many lines TEXT has."
  (let ((count (cl-count ?\n text)))
    (if (or (string-empty-p text) (string-suffix-p "\n" text)) count (1+ count))))

(defun duet-hunk-shift (hunk)
  "Return by how many lines a file is longer once HUNK is reverted."
  (- (duet-hunk--lines (duet-hunk-old hunk)) (duet-hunk--lines (duet-hunk-new hunk))))

(defun duet-hunk--at-p (text position)
  "Return non-nil if the lines of TEXT are at POSITION."
  (let ((end (+ position (length text))))
    (and (<= end (point-max))
         (or (string-suffix-p "\n" text) (= end (point-max)))
         (string= text (buffer-substring-no-properties position end)))))

(defun duet-hunk--find (text line)
  "Return where the lines of TEXT are: at LINE, or in one other place alone.
Return nil if they are nowhere, or in several places, neither of them
LINE."
  (goto-char (point-min))
  (cond
   ((string-empty-p text) (and (= (point-min) (point-max)) (point-min)))
   ((and (zerop (forward-line (1- line))) (bolp) (duet-hunk--at-p text (point)))
    (point))
   (t
    (let ((first (aref text 0))
          (places '()))
      (goto-char (point-min))
      (while (not (or (eobp) (cdr places)))
        (when (and (eq (char-after) first) (duet-hunk--at-p text (point)))
          (push (point) places))
        (forward-line 1))
      (and places (null (cdr places)) (car places))))))

(defun duet-hunk-swap (hunk line &optional forward)
  "Take HUNK back in the current buffer, where it is expected at LINE.
If FORWARD is non-nil put it in again.  Return nil, and change nothing, if
the buffer does not have the lines that are needed."
  (let* ((case-fold-search nil)
         (from (if forward (duet-hunk-old hunk) (duet-hunk-new hunk)))
         (to (if forward (duet-hunk-new hunk) (duet-hunk-old hunk)))
         (place (and (duet-hunk-whole hunk) (duet-hunk--find from line))))
    (when place
      (goto-char place)
      (delete-char (length from))
      (insert to)
      t)))


;;;; Files

(defun duet-hunk-check-file (file)
  "Signal a `user-error' if FILE has changes in a buffer that are not saved."
  (when-let ((buffer (find-buffer-visiting file)))
    (when (buffer-modified-p buffer)
      (let ((name (file-name-nondirectory file)))
        (user-error "%s has changes that are not saved%s; save or undo them first" name
                    (if (equal name (buffer-name buffer)) ""
                      (format " in the buffer %s" (buffer-name buffer))))))))

(defun duet-hunk-file-text (file)
  "Return the content of FILE, byte for byte; nil if there is none."
  ;; An agent may have written it since TRAMP looked.
  (let ((remote-file-name-inhibit-cache t))
    (and (file-exists-p file)
         (with-temp-buffer
           (let ((coding-system-for-read 'utf-8-unix))
             (insert-file-contents file))
           (buffer-string)))))

(defun duet-hunk-write-file (file text)
  "Make TEXT the content of FILE; if it is nil, delete FILE.
A buffer that visits FILE follows."
  (duet-hunk-check-file file)
  (let ((buffer (find-buffer-visiting file))
        (remote-file-name-inhibit-cache t))
    (if (null text)
        (delete-file file t)
      ;; Where it is behind its file Emacs asks before it writes.
      (when (and buffer (not (verify-visited-file-modtime buffer)))
        (duet-revert-read buffer))
      (make-directory (file-name-directory file) t)
      (with-temp-buffer
        (insert text)
        (let ((coding-system-for-write 'utf-8-unix)
              (inhibit-message t))
          (write-region nil nil file nil 'quiet)))
      (when buffer (duet-revert-read buffer)))))

;;; The view

(cl-defstruct (duet-diff-file (:copier nil))
  "A file that a turn has changed."
  path before after binary cut hunks state
  (renamed nil :documentation "The path of the deleted file whose text it has, or nil."))

(defvar-local duet-diff--run nil
  "The id of the run whose changes the buffer shows.")
(defvar-local duet-diff--whole nil
  "Whether it shows what all turns up to that run have changed.")
(defvar-local duet-diff--files nil
  "The files that the buffer shows.")
(defvar-local duet-diff--state nil
  "The state that the run had when it was last looked at.")

(defvar duet-diff--states (make-hash-table :test #'equal)
  "Decisions: states by (RUN PATH TEXT), TEXT of a hunk or nil.")

(defun duet-diff--items ()
  "Return all that can be accepted: hunks, and files that have none."
  (mapcan (lambda (file)
            (copy-sequence (or (duet-diff-file-hunks file) (list file))))
          duet-diff--files))

(defun duet-diff--state (item)
  "Return the state of ITEM, a hunk or a file."
  (if (duet-hunk-p item) (duet-hunk-state item) (duet-diff-file-state item)))


;;;; Objects of the server

(defun duet-diff--cut-p (text)
  "Return non-nil if the server has left out some of TEXT."
  (and text (string-match-p "… \\[[0-9]+ of [0-9]+ bytes left out\\]\\'" text)))

(defun duet-diff--file (object)
  "Return the file that OBJECT, from the server, describes."
  (let* ((text (lambda (key)
                 ;; An empty file is not the same as none.
                 (let ((value (plist-get object key)))
                   (and (stringp value) value))))
         (path (or (duet-get-string object :file_path) ""))
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
    (setf (duet-diff-file-hunks file) (and (not binary) (duet-hunk-list diff))
          (duet-diff-file-state file) (duet-diff--remembered file nil))
    (dolist (hunk (duet-diff-file-hunks file))
      (setf (duet-hunk-state hunk) (duet-diff--remembered file hunk)))
    file))

(defun duet-diff--key (file hunk)
  "Return the key of HUNK of FILE, or of FILE if HUNK is nil."
  (list duet-diff--run (duet-diff-file-path file)
        (if hunk (duet-hunk-text hunk) (sxhash (duet-diff-file-after file)))))

(defun duet-diff--remembered (file hunk)
  "Return the decision on HUNK of FILE, or on FILE if HUNK is nil."
  (gethash (duet-diff--key file hunk) duet-diff--states))

(defun duet-diff--set (file item state)
  "Note the decision STATE on ITEM, which is FILE or a hunk of it."
  (if (duet-hunk-p item)
      (setf (duet-hunk-state item) state)
    (setf (duet-diff-file-state file) state))
  (puthash (duet-diff--key file (and (duet-hunk-p item) item)) state duet-diff--states))

(defun duet-diff-refuse (file why)
  "Say that FILE was left alone, and WHY."
  (user-error "%s: %s" (duet-diff--name file) why))

(defun duet-diff--name (file)
  "Return the name of FILE: its path in the session's directory."
  (let ((path (duet-diff-file-path file)))
    (or (duet-remote-inside path default-directory)
        (duet-remote-abbreviate path))))

(defun duet-diff--kind (file)
  "Return whether FILE is new, deleted or modified, or nil if not known."
  (cond ((duet-diff-file-binary file) nil)
        ((null (duet-diff-file-before file)) 'new)
        ((null (duet-diff-file-after file)) 'deleted)
        (t 'modified)))


;;;; The buffer

(defun duet-diff--print ()
  "Show the files; keep point on its item."
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
  "Return the text of a buffer without a file.
Some agents do not report their changes."
  (concat "\n " (if duet-diff--whole "No turn has left a file changed"
                  "The agent has reported no changed file")
          (if (memq duet-diff--state duet-run-active-states) " so far.\n" ".\n")
          (substitute-command-keys
           (concat
            (if (vc-responsible-backend default-directory t)
                "\n \\[vc-root-diff] (vc-root-diff) shows all that differs from the last commit,\n \\[vc-diff] (vc-diff) in the buffer of a file what differs there.\n"
              "")
            (if (cdr (duet-session-runs duet-session))
                "\n \\<duet-diff-mode-map>\\[duet-diff-earlier-turn] shows the turn before, \\[duet-diff-later-turn] the next.\n"
              "")))))

(defun duet-diff--place (item)
  "Return the item that replaces ITEM after all was read anew."
  (cl-find-if (lambda (other)
                (and (eq (type-of item) (type-of other))
                     (if (duet-hunk-p item)
                         (string= (duet-hunk-text item) (duet-hunk-text other))
                       (string= (duet-diff-file-path item) (duet-diff-file-path other)))))
              (duet-diff--items)))

(defun duet-diff--position (item)
  "Return where ITEM begins in the buffer, or nil."
  (and item (text-property-any (point-min) (point-max) 'duet-diff-item item)))

(defun duet-diff--words (file)
  "Return the heading of FILE."
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
              "; too long to be shown whole, or reverted as a whole"
            "")))

(defun duet-diff--insert (file)
  "Insert FILE: a heading, and its hunks."
  (let ((beg (point))
        (hunks (duet-diff-file-hunks file))
        (name (duet-visible-line (duet-diff--name file))))
    (insert (duet-look-sign "●") " " name "  " (duet-diff--words file) "\n")
    ;; Font Lock takes it for a line of a diff.
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
  "Show the state of ITEM, which goes from BEG to END, by overlays.
From BODY on it is hidden once it is decided."
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
  "Show the state of ITEM as it is now."
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
  "Return the change at point: its file, and its hunk or again the file."
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
  "Go to the next change, or to the COUNTth; back if it is negative."
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
  "Go to the change before, or to the COUNTth before."
  (interactive "p" duet-diff-mode)
  (duet-diff-next (- (or count 1))))

(defun duet-diff-next-file (&optional count)
  "Go to the next file, or to the COUNTth; back if it is negative."
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
  "Go to the file before, or to the COUNTth before."
  (interactive "p" duet-diff-mode)
  (duet-diff-next-file (- (or count 1))))


;;;; A file before and after a turn, with Ediff

(defun duet-diff-ediff ()
  "Compare the file at point as it was before the turn and after it, with Ediff.
The windows are as they were when that ends."
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
        ;; In the frame that we are in.
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
