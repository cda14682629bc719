;;; duet-hunk.el --- Hunks of a diff, and files that they apply to  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A hunk is one change of a unified diff.  It is applied to a file or taken
;; back where the file has the lines that it expects, in the place that it names
;; or in one other place alone; anywhere else it is refused, and the file stays
;; as it is.
;;
;; Files are read and written byte for byte, whatever their line ends are.  A
;; buffer that visits one follows; one with changes that are not saved is a
;; reason to refuse.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-revert)

(cl-defstruct (duet-hunk (:copier nil))
  "One change of a file."
  (text nil :documentation "As it stands in the diff, with its header.")
  (line 1 :documentation "The number of its first line in the new file.")
  (old "" :documentation "The lines that it replaces, and those around them.")
  (new "" :documentation "The lines that it puts in their place.")
  (whole t :documentation "Whether it has as many lines as its header says.")
  (state nil :documentation "nil, `accepted' or `reverted'."))

(defconst duet-hunk--header
  "^@@ -\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)? \\+\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)? @@.*\n"
  "What matches the header of a hunk.")

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
  "Return non-nil if the lines of TEXT stand at POSITION."
  (let ((end (+ position (length text))))
    (and (<= end (point-max))
         (or (string-suffix-p "\n" text) (= end (point-max)))
         (string= text (buffer-substring-no-properties position end)))))

(defun duet-hunk--find (text line)
  "Return where the lines of TEXT stand: at LINE, or in one other place alone.
Return nil if they stand nowhere, or in several places, neither of them
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


;;; Files

(defun duet-hunk-check-file (file)
  "Signal a `user-error' if FILE has changes in a buffer that are not saved."
  (when-let ((buffer (find-buffer-visiting file)))
    (when (buffer-modified-p buffer)
      (let ((name (file-name-nondirectory file)))
        (user-error "%s has changes that are not saved%s; save or undo them first" name
                    (if (equal name (buffer-name buffer)) ""
                      (format " in the buffer %s" (buffer-name buffer))))))))

(defun duet-hunk-file-text (file)
  "Return what FILE has in it, byte for byte; nil if there is none."
  ;; An agent may have written it since TRAMP looked.
  (let ((remote-file-name-inhibit-cache t))
    (and (file-exists-p file)
         (with-temp-buffer
           (let ((coding-system-for-read 'utf-8-unix))
             (insert-file-contents file))
           (buffer-string)))))

(defun duet-hunk-write-file (file text)
  "Make TEXT what FILE has in it; if it is nil, delete FILE.
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

(provide 'duet-hunk)
;;; duet-hunk.el ends here
