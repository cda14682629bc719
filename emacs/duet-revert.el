;;; duet-revert.el --- Buffers follow their files  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Changes of agents appear in the buffers that visit the files.  A buffer is read anew
;; without a question, who looks at it stays in place, and the change can be
;; undone.

;;; Code:

(require 'cl-lib)
(require 'seq)
(require 'subr-x)
(require 'duet-log)
(require 'duet-model)
(require 'duet-remote)

(defcustom duet-revert-buffers t
  "Whether buffers follow when an agent writes the files that they visit.
A buffer with changes that are not saved is left as it is."
  :type 'boolean
  :group 'duet)

(defvar duet-revert--paths '()
  "Files that agents have written and that were not looked at since.")
(defvar duet-revert--timer nil
  "The timer that looks at them.")

(defconst duet-revert--delay 0.05
  "How many seconds a file waits for others that are written with it.")

(defconst duet-revert--seconds 0.05
  "How many seconds a file is compared with its buffer at most.
What is not done by then is replaced as a whole.")

(defun duet-revert-read (buffer)
  "Read anew the file that BUFFER visits, with nothing asked and nothing said.
Point stays on the text that it is on, in all windows."
  (with-current-buffer buffer
    (let ((inhibit-message t)
          (message-log-max nil)
          (revert-buffer-insert-file-contents-function #'duet-revert--insert))
      (revert-buffer t t t))))

(defun duet-revert--insert (file _auto-save)
  "Make the text of FILE that of the current buffer, which visits it.
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
              ;; The file may be locked by now, or behind; neither matters.
              (let ((buffer-file-name nil) (inhibit-read-only t))
                (replace-buffer-contents text duet-revert--seconds)))))))
    (when coding (setq buffer-file-coding-system coding))
    (set-buffer-modified-p nil)
    (set-visited-file-modtime)))


;;; Changes of agents

(defun duet-revert--observe (model kind _session path _extra)
  "Note a change of MODEL: of KIND `file', that PATH was written.
Of KIND `worktree', files of the project may have changed."
  (cond
   ((not duet-revert-buffers))
   ((and (eq kind 'file) (stringp path)
         (file-name-absolute-p path) (not (file-remote-p path)))
    (duet-revert-file (duet-remote-name path (and model (duet-model-root model)))))
   ((and (eq kind 'worktree) (not (file-remote-p (duet-model-root model))))
    (duet-revert--project (duet-model-root model)))))

(defun duet-revert-file (path)
  "Have the buffer that visits PATH follow, soon."
  (cl-pushnew path duet-revert--paths :test #'equal)
  (duet-revert--soon))

(defun duet-revert--project (root)
  "Have the buffers that visit files below ROOT follow, soon."
  (dolist (buffer (buffer-list))
    (let ((file (buffer-file-name buffer)))
      (when (and file (string-prefix-p root file))
        (cl-pushnew file duet-revert--paths :test #'equal))))
  (duet-revert--soon))

(defun duet-revert--soon ()
  "Have the buffers follow, soon."
  (remove-hook 'minibuffer-exit-hook #'duet-revert--soon)
  (unless duet-revert--timer
    (setq duet-revert--timer (run-at-time duet-revert--delay nil #'duet-revert--work))))

(defun duet-revert--work ()
  "Have the buffers follow, or once the minibuffer is left."
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
  "Return non-nil if the buffer that visits PATH has to wait for its machine."
  (and (file-remote-p path) (get-file-buffer path) (duet-remote-busy-p path)))

(defun duet-revert--visiting (path)
  "Return the buffer that visits PATH, or nil.
Another machine is asked only about a file that a buffer visits by this name."
  (if (file-remote-p path) (get-file-buffer path) (find-buffer-visiting path)))

(defun duet-revert--follow (path)
  "Read PATH anew where a buffer visits it, if that loses nothing."
  (when-let ((buffer (duet-revert--visiting path))
             ;; What TRAMP remembers of it is what it was before.
             (remote-file-name-inhibit-cache t))
    (unless (or (buffer-modified-p buffer)
                (not (duet-remote-same-p (buffer-file-name buffer) path))
                ;; By TRAMP times are too coarse to tell.
                (and (not (file-remote-p path)) (verify-visited-file-modtime buffer))
                (not (file-readable-p path)))
      (duet-revert-read buffer))))

(duet-model-add-observer #'duet-revert--observe)

(provide 'duet-revert)
;;; duet-revert.el ends here
