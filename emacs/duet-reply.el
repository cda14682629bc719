;;; duet-reply.el --- A box for prompts at the end of a transcript  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A transcript ends in a box for the next prompt, as in a chat, unless
;; `duet-reply-box' is nil: RET sends the prompt.  While the agent works, RET queues it, and C-c C-n
;; sends it to the agent at once.  The box is the last section.  Its text has a
;; keymap in which letters insert themselves; all other text is read-only.  In the
;; box the keys that answer a question follow C-c C-q.
;;
;; A buffer of its own (duet-compose.el) suits a long prompt: it has undo and
;; attachments.  A key moves the text there.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-approval)
(require 'duet-compose)
(require 'duet-header)
(require 'duet-look)
(require 'duet-section)
(require 'duet-transcript)

(declare-function duet-approval-next "duet-approvals" ())
(declare-function duet-approvals "duet-approvals" ())

(defcustom duet-reply-box t
  "Whether a transcript ends in a box for the next prompt.
If nil, prompts are written in a buffer of their own.  Customize adds the
box to open transcripts or removes it; Lisp code calls `duet-reply-setup'
in each transcript."
  :type 'boolean
  :set (lambda (symbol value)
         (set-default symbol value)
         (when (fboundp 'duet-reply-setup)
           (dolist (buffer (buffer-list))
             (with-current-buffer buffer
               (when (derived-mode-p 'duet-transcript-mode) (duet-reply-setup))))))
  :group 'duet)

(defvar duet-reply-map
  (let ((map (make-sparse-keymap)))
    ;; Letters insert themselves, although the mode binds them.
    (dotimes (i 95)
      (define-key map (vector (+ ?\s i)) #'self-insert-command))
    (define-key map [?\S-\s] #'self-insert-command)
    ;; At the end of the buffer the map of the mode applies.
    (define-key map [remap self-insert-command] #'duet-reply--self-insert)
    (define-key map [remap yank] #'duet-reply--yank)
    (define-key map (kbd "DEL") #'delete-backward-char)
    (define-key map (kbd "RET") #'duet-reply-send)
    (define-key map (kbd "C-c C-c") #'duet-reply-send)
    (define-key map (kbd "C-c C-n") #'duet-reply-send-now)
    (define-key map (kbd "C-j") #'duet-reply-newline)
    (define-key map (kbd "S-<return>") #'duet-reply-newline)
    (define-key map (kbd "M-RET") #'duet-reply-newline)
    (define-key map (kbd "C-c C-k") #'duet-reply-clear)
    (define-key map (kbd "C-c C-e") #'duet-reply-compose)
    (define-key map (kbd "<backtab>") #'duet-next-mode)
    ;; The same commands as j and w above the box.
    (define-key map (kbd "C-c C-j") #'duet-approval-next)
    (define-key map (kbd "C-c C-w") #'duet-approvals)
    ;; The letters of a question, after this prefix.
    (define-key map (kbd "C-c C-q") (make-composed-keymap nil duet-approval-map))
    (define-key map (kbd "C-a") #'duet-reply-beginning)
    (define-key map (kbd "M-p") #'duet-compose-previous)
    (define-key map (kbd "M-n") #'duet-compose-next)
    (define-key map (kbd "M-r") #'duet-compose-search)
    (define-key map (kbd "TAB") #'completion-at-point)
    map)
  "Keymap of the box at the end of a transcript.")

(defvar-local duet-reply--start nil
  "A marker at the beginning of the text in the box, or nil without a box.")

(defun duet-reply--bounds ()
  "Return the bounds of the text in the box, (BEG . END), or nil without a box."
  (when-let ((section (and duet-reply--start (duet-section-get 'reply))))
    (cons (marker-position duet-reply--start)
          (marker-position (duet-section-end section)))))

(defun duet-reply--changed (beg end _length)
  "Make the text inserted from BEG to END part of the box, if it is in the box."
  (when-let ((bounds (duet-reply--bounds)))
    (when (<= (car bounds) beg end (cdr bounds))
      (restore-buffer-modified-p nil)
      (with-silent-modifications
        ;; Copied text must look like typed text.
        (set-text-properties beg end (list 'keymap duet-reply-map
                                           'duet-section (duet-section-get 'reply)))))))

;; Emacs does not redraw the header line of a window when point moves.

(defvar-local duet-reply--in-box nil
  "Whether point was in the box after the last command.")

(defun duet-reply--follow-point ()
  "Show the keys of the box in the header line while point is in the box."
  (let ((in-box (when-let ((bounds (duet-reply--bounds)))
                  (<= (car bounds) (point)))))
    (unless (eq in-box duet-reply--in-box)
      (setq duet-reply--in-box in-box)
      (force-mode-line-update))))

(defun duet-reply-setup ()
  "Add or remove the box of the current transcript, as `duet-reply-box' says."
  (let ((section (duet-section-get 'reply)))
    (cond
     ((and section (not duet-reply-box))
      (duet-compose-remember (duet-compose--text))
      (duet-section-delete section)
      (setq duet-reply--start nil
            duet-compose-bounds-function nil
            buffer-read-only t)
      (duet-transcript-follow))
     ((and (not section) duet-reply-box)
      (setq section
            (duet-section-insert
             'reply nil
             (propertize (concat (duet-look-sign "❯") " ")
                         'face 'duet-prompt 'rear-nonsticky t 'fontified t
                         'help-echo "The next prompt; RET sends it")))
      (setq duet-reply--start (copy-marker (duet-section-end section))
            duet-compose-bounds-function #'duet-reply--bounds)
      (with-silent-modifications
        ;; All text but that of the box is read-only.
        (remove-text-properties duet-reply--start (point-max) '(front-sticky nil))
        (put-text-property duet-reply--start (point-max) 'keymap duet-reply-map))
      (setq buffer-read-only nil)
      (duet-compose--list-files)
      (add-hook 'after-change-functions #'duet-reply--changed nil t)
      (add-hook 'completion-at-point-functions #'duet-reply--complete nil t)
      (add-hook 'kill-buffer-hook #'duet-reply--keep nil t)
      (add-hook 'post-command-hook #'duet-reply--follow-point nil t)
      (duet-transcript-follow)))))

(add-hook 'duet-transcript-shown-hook #'duet-reply-setup)

(defun duet-reply--keep ()
  "Add the text in the box to the prompt history, before the buffer is killed."
  (when (duet-reply--bounds)
    (duet-compose-remember (duet-compose--text))))

(defun duet-reply--complete ()
  "Complete the text in the box, a `completion-at-point' function."
  (when-let ((bounds (duet-reply--bounds)))
    (when (<= (car bounds) (point) (cdr bounds))
      (save-restriction
        (narrow-to-region (car bounds) (cdr bounds))
        (or (duet-compose-complete) (duet-compose-complete-command))))))

(defun duet-reply--here ()
  "Signal a `user-error' unless the current buffer has a box."
  (unless (and (derived-mode-p 'duet-transcript-mode) (duet-reply--bounds))
    (user-error "No prompt box here")))

(defun duet-reply-go (session)
  "Move point to the box for the next prompt of SESSION.
Return nil if the current buffer has no such box."
  (when-let ((bounds (and (derived-mode-p 'duet-transcript-mode)
                          (eq session duet-session)
                          (duet-reply--bounds))))
    (push-mark)
    (goto-char (cdr bounds))
    t))

(add-hook 'duet-actions-continue-functions #'duet-reply-go)

(defun duet-reply-send ()
  "Send the prompt in the box.
While an agent works in the session, the prompt is queued."
  (interactive (duet-reply--here) duet-transcript-mode)
  (duet-reply--submit nil))

(defun duet-reply-send-now ()
  "Send the prompt in the box at once, also to an agent that works.
The agent gets the prompt during its turn.  An agent that does not support
that gets the prompt when the turn has ended."
  (interactive (duet-reply--here) duet-transcript-mode)
  (duet-reply--submit t))

(defun duet-reply-busy-p ()
  "Return non-nil if point is in a box and the agent of its session works."
  (when-let ((bounds (duet-reply--bounds)))
    (and (<= (car bounds) (point))
         (duet-compose--busy-p))))

(defun duet-reply--answers (session)
  "Return the keys that answer the question of SESSION, for the header line.
Return nil unless point is in the box and exactly one question is open."
  (when-let* ((bounds (duet-reply--bounds))
              (approvals (and (<= (car bounds) (point)) (duet-session-approvals session))))
    (unless (or (cdr approvals) (duet-approval-sending-p (car approvals)))
      (cl-flet ((key (command words) (duet-header-key command words 'duet-reply-map)))
        (let ((keys (if (duet-approval-question-p (car approvals))
                        (list (key #'duet-approval-respond "Answer"))
                      (list (key #'duet-approval-allow (duet-approval-words 'allow))
                            (string-remove-prefix
                             "C-c C-q " (key #'duet-approval-deny (duet-approval-words 'deny)))))))
          (unless (string-prefix-p "M-x" (car keys))
            (string-join keys ", ")))))))

(add-hook 'duet-header-functions #'duet-reply--answers t)

(defun duet-reply--header (_session)
  "Return the key that sends a prompt now, for the header line.
Return nil unless point is in the box and the agent works."
  (when (duet-reply-busy-p)
    (let ((key (duet-header-key #'duet-reply-send-now "now" 'duet-reply-map)))
      ;; While a menu such as `duet-dispatch' is open, the key does something else.
      (unless (string-prefix-p "M-x" key) key))))

(add-hook 'duet-header-functions #'duet-reply--header t)

(defun duet-reply--submit (now)
  "Send the prompt in the box; with NOW, also to an agent that works."
  (let ((buffer (current-buffer)))
    (duet-compose-submit
     nil
     (lambda (result)
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (setq duet-compose--sending nil
                 duet-compose--place nil)
           (when (duet-reply--bounds)
             (duet-compose--replace ""))))
       (when result
         (duet-events-sent (duet-connection-model
                           (buffer-local-value 'duet-connection buffer))
                          result)))
     now)))

(defun duet-reply--enter ()
  "Move point into the box if it is after the box."
  (when-let ((bounds (duet-reply--bounds)))
    (when (> (point) (cdr bounds))
      (goto-char (cdr bounds)))))

(defun duet-reply--self-insert (count)
  "Insert the typed character COUNT times; after the box, insert it in the box."
  (interactive (progn (duet-reply--here) (list (prefix-numeric-value current-prefix-arg)))
               duet-transcript-mode)
  (duet-reply--enter)
  (self-insert-command count))

(put 'duet-reply--self-insert 'delete-selection t)

(defun duet-reply--yank (&optional argument)
  "Insert the last killed text; after the box, insert it in the box.
ARGUMENT is as for `yank'."
  (interactive (progn (duet-reply--here) (list current-prefix-arg)) duet-transcript-mode)
  (duet-reply--enter)
  (setq this-command 'yank)
  (yank argument))

(defun duet-reply-newline ()
  "Insert a line break into the prompt."
  (interactive (duet-reply--here) duet-transcript-mode)
  (insert "\n"))

(defun duet-reply-beginning ()
  "Move point to the beginning of the line, or of the prompt in that line."
  (interactive (duet-reply--here) duet-transcript-mode)
  (goto-char (max (line-beginning-position)
                  (if (>= (point) duet-reply--start) (marker-position duet-reply--start)
                    (point-min)))))

(defun duet-reply-clear ()
  "Empty the box; \\<duet-reply-map>\\[duet-compose-previous] restores the prompt."
  (interactive (duet-reply--here) duet-transcript-mode)
  (duet-compose-remember (duet-compose--text))
  (setq duet-compose--place nil)
  (duet-compose--replace ""))

(defun duet-reply-compose ()
  "Continue with the prompt in a buffer of its own."
  (interactive (duet-reply--here) duet-transcript-mode)
  (let ((text (duet-compose--written)))
    (duet-compose--replace "")
    (duet-compose duet-connection duet-session)
    (goto-char (point-max))
    (insert text)))

(provide 'duet-reply)
;;; duet-reply.el ends here
