;;; duet-compose-history.el --- Prompts that were written before  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What was sent, cancelled or killed, and what was being written when Emacs
;; ended, can be had again, in the next Emacs too: it is kept in a file.  Of
;; several Emacsen each adds to the file what it has of its own.
;;
;; Nothing here signals: who writes a prompt has better things to do than to mend
;; a file.  The log tells what went wrong.

;;; Code:

(require 'cl-lib)
(require 'ring)
(require 'seq)
(require 'subr-x)
(require 'duet-log)
(require 'duet-visible)

(declare-function duet-compose--text "duet-compose" ())

(defvar duet-compose-bounds-function)

(defcustom duet-compose-history-size 200
  "How many prompts are kept for \\<duet-compose-mode-map>\\[duet-compose-previous]."
  :type 'natnum
  :group 'duet)

(defcustom duet-compose-history-file (locate-user-emacs-file "duet-history.eld")
  "The file in which prompts are kept when Emacs ends; nil means none."
  :type '(choice file (const :tag "None" nil))
  :group 'duet)

(defconst duet-compose-history--most 200
  "How many prompts the file has at most.")

(defvar duet-compose-history (make-ring duet-compose-history-size)
  "Prompts that were written, the last first.")

(defvar duet-compose-history--loaded nil
  "The file that was read already.")
(defvar duet-compose-history--new nil
  "Prompts that are not in the file yet, the last first.")
(defvar duet-compose-history--timer nil
  "The timer that writes them when Emacs is idle.")

(defun duet-compose-remember (text)
  "Add TEXT to the history of prompts."
  (duet-compose-history-load)
  (unless (or (string-empty-p text)
              (and (not (ring-empty-p duet-compose-history))
                   (string= text (ring-ref duet-compose-history 0))))
    (ring-insert duet-compose-history text)
    (push text duet-compose-history--new)
    (unless duet-compose-history--timer
      (setq duet-compose-history--timer
            (run-with-idle-timer 3 nil #'duet-compose-history-save)))))

(defun duet-compose-history-load ()
  "Add what the file has to the history, unless that was done."
  (when (and duet-compose-history-file
             (not (equal duet-compose-history--loaded duet-compose-history-file)))
    (setq duet-compose-history--loaded duet-compose-history-file)
    (let ((known (ring-elements duet-compose-history)))
      (dolist (text (duet-compose-history--read))
        (unless (or (member text known)
                    (>= (ring-length duet-compose-history)
                        (ring-size duet-compose-history)))
          (ring-insert-at-beginning duet-compose-history text))))))

(defun duet-compose-history--read ()
  "Return the prompts in the file, the last first.
What is there and is no such list is put aside when the file is written."
  (condition-case err
      (when (file-exists-p duet-compose-history-file)
        (with-temp-buffer
          (let ((coding-system-for-read 'utf-8-emacs-unix))
            (insert-file-contents duet-compose-history-file))
          (let ((texts (read (current-buffer))))
            (unless (and (proper-list-p texts) (cl-every #'stringp texts))
              (error "It is no list of prompts"))
            texts)))
    (error (duet-log "%s: %s" duet-compose-history-file (error-message-string err))
           (unless (eq (car err) 'file-error)
             (duet-log-guard "Put aside"
               (rename-file duet-compose-history-file
                            (concat duet-compose-history-file "~") t)))
           nil)))

(defun duet-compose-history-read ()
  "Have the user choose an earlier prompt, by any of its words; return it."
  (duet-compose-history-load)
  (when (ring-empty-p duet-compose-history)
    (user-error "No prompt was written before"))
  (let* ((lines (mapcar (lambda (text)
                          (cons (truncate-string-to-width (duet-visible-line text)
                                                          200 nil nil "…")
                                text))
                        (delete-dups (ring-elements duet-compose-history))))
         (completion-ignore-case t)
         (completion-styles '(substring partial-completion flex))
         ;; The last one comes first.
         (table (lambda (string predicate action)
                  (if (eq action 'metadata)
                      '(metadata (category . duet-prompt) (display-sort-function . identity)
                                 (cycle-sort-function . identity))
                    (complete-with-action action lines string predicate))))
         (chosen (completing-read "Earlier prompt: " table nil t)))
    (or (cdr (assoc chosen lines))
        (user-error "No prompt is chosen"))))

(defun duet-compose-history-save ()
  "Write to the file what it does not have yet."
  (when duet-compose-history--timer
    (cancel-timer duet-compose-history--timer)
    (setq duet-compose-history--timer nil))
  (when (and duet-compose-history-file duet-compose-history--new)
    (duet-log-guard "History of prompts"
      (unless (or (file-readable-p duet-compose-history-file)
                  (not (file-exists-p duet-compose-history-file)))
        (error "%s cannot be read" duet-compose-history-file))
      ;; Another Emacs may have written it meanwhile.
      (let* ((texts (seq-take (delete-dups (append duet-compose-history--new
                                                   (duet-compose-history--read)))
                              duet-compose-history--most))
             (file (file-truename duet-compose-history-file))
             ;; Only its owner may read a file that this makes.
             (new (make-temp-file (concat file "."))))
        (unwind-protect
            (let ((print-length nil)
                  (print-level nil)
                  (coding-system-for-write 'utf-8-emacs-unix))
              (with-temp-buffer
                (insert ";; Prompts for agents, the last first; see duet-compose-history.el.\n")
                (prin1 (mapcar #'substring-no-properties texts) (current-buffer))
                (insert "\n")
                (write-region nil nil new nil 'silent))
              (rename-file new file t)
              (setq duet-compose-history--new nil))
          (when (file-exists-p new) (delete-file new)))))))

(defun duet-compose-history-keep ()
  "Keep what is being written, since Emacs ends."
  (dolist (buffer (buffer-list))
    (with-current-buffer buffer
      (when (or (derived-mode-p 'duet-compose-mode)
                (bound-and-true-p duet-compose-bounds-function))
        (duet-log-guard "Prompt" (duet-compose-remember (duet-compose--text))))))
  (duet-compose-history-save))

(add-hook 'kill-emacs-hook #'duet-compose-history-keep)

(provide 'duet-compose-history)
;;; duet-compose-history.el ends here
