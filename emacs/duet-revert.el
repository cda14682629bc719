;;; duet-revert.el --- Buffers follow their files  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The changes of agents appear in the buffers that visit the files.  Emacs rereads a
;; file without a question, keeps point, and records the change for undo.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)
(require 'duet-log)
(require 'duet-model)
(require 'duet-remote)

(defcustom duet-revert-buffers t
  "Whether buffers follow changes of their files by agents.
A buffer with unsaved changes stays as it is."
  :type 'boolean
  :group 'duet)

(defvar duet-revert--paths '()
  "Files that agents have written, and whose buffers have not followed yet.")
(defvar duet-revert--timer nil
  "The timer that updates their buffers.")

(defconst duet-revert--delay 0.05
  "Delay before buffers are updated, in seconds, to collect several files.")

(defconst duet-revert--seconds 0.05
  "Maximum time of the comparison of a file with its buffer, in seconds.
After that, the remaining text is replaced as a whole.")

(defun duet-revert-read (buffer)
  "Reread the file of BUFFER, without a question or a message.
Point stays on its text, in all windows."
  (with-current-buffer buffer
    (let ((inhibit-message t)
          (message-log-max nil)
          (revert-buffer-insert-file-contents-function #'duet-revert--insert))
      (revert-buffer t t t))))

(defun duet-revert--insert (file _auto-save)
  "Replace the text of the current buffer, which visits FILE, with FILE's text.
A value of `revert-buffer-insert-file-contents-function'."
  (let ((buffer (current-buffer)) coding)
    (with-temp-buffer
      (insert-file-contents file)
      (setq coding last-coding-system-used)
      (let ((text (current-buffer)))
        (with-current-buffer buffer
          (save-excursion
            (save-restriction
              (widen)
              ;; The file may be locked by now, or newer; neither matters.
              (let ((buffer-file-name nil) (inhibit-read-only t))
                (replace-buffer-contents text duet-revert--seconds)))))))
    (when coding (setq buffer-file-coding-system coding))
    (set-buffer-modified-p nil)
    (set-visited-file-modtime)))


;;; Changes of agents

(defun duet-revert--observe (model kind _session path _extra)
  "Handle a change of MODEL: KIND `file' reports that PATH was written.
After KIND `worktree', any file of the project may have changed."
  (cond
   ((not duet-revert-buffers))
   ((and (eq kind 'file) (stringp path)
         (file-name-absolute-p path) (not (file-remote-p path)))
    (duet-revert-file (duet-remote-name path (and model (duet-model-root model)))))
   ((and (eq kind 'worktree) (not (file-remote-p (duet-model-root model))))
    (duet-revert--project (duet-model-root model)))))

(defun duet-revert-file (path)
  "Schedule an update of the buffer that visits PATH."
  (cl-pushnew path duet-revert--paths :test #'equal)
  (duet-revert--soon))

(defun duet-revert--project (root)
  "Schedule an update of the buffers that visit files below ROOT."
  (dolist (buffer (buffer-list))
    (let ((file (buffer-file-name buffer)))
      (when (and file (string-prefix-p root file))
        (cl-pushnew file duet-revert--paths :test #'equal))))
  (duet-revert--soon))

(defun duet-revert--soon ()
  "Schedule the update of the buffers."
  (remove-hook 'minibuffer-exit-hook #'duet-revert--soon)
  (unless duet-revert--timer
    (setq duet-revert--timer (run-at-time duet-revert--delay nil #'duet-revert--work))))

(defun duet-revert--work ()
  "Update the buffers; in the minibuffer, postpone that until its exit."
  (setq duet-revert--timer nil)
  (if (active-minibuffer-window)
      (add-hook 'minibuffer-exit-hook #'duet-revert--soon)
    (let ((paths duet-revert--paths))
      (setq duet-revert--paths (seq-filter #'duet-revert--busy-p paths))
      (dolist (path (seq-difference paths duet-revert--paths))
        (duet-log-guard (concat "Buffer that visits " path)
          (duet-revert--follow path)))
      (when duet-revert--paths (duet-revert--soon)))))

(defun duet-revert--busy-p (path)
  "Return non-nil if PATH's buffer must wait because TRAMP is busy."
  (and (file-remote-p path) (get-file-buffer path) (duet-remote-busy-p path)))

(defun duet-revert--visiting (path)
  "Return the buffer that visits PATH, or nil.
Access another machine only if a buffer visits PATH by this name."
  (if (file-remote-p path) (get-file-buffer path) (find-buffer-visiting path)))

(defun duet-revert--follow (path)
  "Reread PATH in the buffer that visits it, unless that would lose changes."
  (when-let ((buffer (duet-revert--visiting path))
             ;; TRAMP's cache has the state before the change.
             (remote-file-name-inhibit-cache t))
    (unless (or (buffer-modified-p buffer)
                (not (duet-remote-same-p (buffer-file-name buffer) path))
                ;; TRAMP's times are too coarse for this check.
                (and (not (file-remote-p path)) (verify-visited-file-modtime buffer))
                (not (file-readable-p path)))
      (duet-revert-read buffer))))

(duet-model-add-observer #'duet-revert--observe)

(provide 'duet-revert)
;;; duet-revert.el ends here
