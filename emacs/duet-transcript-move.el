;;; duet-transcript-move.el --- Moving and scrolling in a transcript  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; In a transcript `M-n' and `M-p' go to the next and the previous prompt, and
;; Imenu lists all that are loaded, and the headings of what agents say.
;;
;; A window follows what is written as long as its point is at the end of the
;; buffer.  The mouse wheel and the scroll bar take the point along when they
;; leave the end, and leave it behind when they come back.  Here they bring it
;; back: who scrolls down to the end follows it again.

;;; Code:

(require 'cl-lib)
(require 'imenu)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-markup)
(require 'duet-section)
(require 'duet-transcript)

(declare-function duet-approvals-catch "duet-approvals-footer" ())


;;; Prompts

(defun duet-transcript-move-prompts ()
  "Return the prompts that the transcript shows: (MESSAGE . POSITION), in order."
  (cl-loop for message in (duet-session-message-list duet-session)
           for section = (and (eq (duet-message-kind message) 'prompt)
                              (duet-section-get (duet-message-key message)))
           when section
           collect (cons message (marker-position (duet-section-beg section)))))

(defun duet-prompt-next (&optional count)
  "Go to the next prompt, or to the COUNTth; back if it is negative."
  (interactive (or (duet-only-in 'duet-transcript-mode)
                   (list (prefix-numeric-value current-prefix-arg)))
               duet-transcript-mode)
  (let* ((count (or count 1))
         (places (mapcar #'cdr (duet-transcript-move-prompts)))
         (there (cond ((zerop count) (point))
                      ((> count 0)
                       (nth (1- count) (cl-remove-if (lambda (place) (<= place (point)))
                                                     places)))
                      (t (nth (1- (- count))
                              (nreverse (cl-remove-if (lambda (place) (>= place (point)))
                                                      places)))))))
    (cond
     (there (goto-char there)
            ;; With what follows it.
            (when (and (eq (window-buffer) (current-buffer))
                       (not (pos-visible-in-window-p (line-end-position 2))))
              (recenter 1)))
     ((> count 0) (message "This is the last prompt"))
     ((> (duet-session-offset duet-session) 0)
      (message (substitute-command-keys
                "This is the first prompt that is loaded; \\<duet-transcript-mode-map>\\[duet-transcript-earlier] loads earlier ones")))
     (t (message "This is the first prompt")))))

(defun duet-prompt-previous (&optional count)
  "Go to the prompt before, or to the COUNTth before."
  (interactive (or (duet-only-in 'duet-transcript-mode)
                   (list (prefix-numeric-value current-prefix-arg)))
               duet-transcript-mode)
  (duet-prompt-next (- (or count 1))))

(defun duet-transcript-move--index ()
  "Return the prompts of the transcript, and what agents call parts, for Imenu."
  (append (duet-transcript-move--entries
           (mapcar (lambda (prompt)
                     (cons (car (split-string (duet-visible-trim (duet-message-text (car prompt)))
                                              "\n"))
                           (cdr prompt)))
                   (duet-transcript-move-prompts)))
          (when-let ((headings (duet-markup-headings)))
            (list (cons "Headings" (duet-transcript-move--entries headings))))))

(defun duet-transcript-move--entries (places)
  "Return PLACES, (WORDS . POSITION) each, as entries for Imenu.
Those that are alike are numbered."
  (let ((counts (make-hash-table :test #'equal)))
    (mapcar (lambda (place)
              (let* ((name (truncate-string-to-width (car place) 70 nil nil "…"))
                     (count (puthash name (1+ (gethash name counts 0)) counts)))
                (cons (if (= count 1) name (format "%s <%d>" name count))
                      (copy-marker (cdr place)))))
            places)))

(defun duet-transcript-move--setup ()
  "Have Imenu list the prompts of the transcript in the current buffer."
  (setq-local imenu-create-index-function #'duet-transcript-move--index
              imenu-auto-rescan t
              ;; What is listed is not looked for in the text.
              imenu-auto-rescan-maxout most-positive-fixnum))

(add-hook 'duet-transcript-mode-hook #'duet-transcript-move--setup)

(define-key duet-transcript-mode-map (kbd "M-n") #'duet-prompt-next)
(define-key duet-transcript-mode-map (kbd "M-p") #'duet-prompt-previous)


;;; The mouse wheel

(defconst duet-transcript-move--scroll-commands
  '(mwheel-scroll pixel-scroll-precision scroll-bar-toolkit-scroll scroll-bar-drag)
  "Commands by which the mouse scrolls, on one system or another.")

(defun duet-transcript-move--scroll-back-p (event)
  "Return non-nil if EVENT is that of a wheel that does not turn to the end."
  (memq (event-basic-type event)
        '(wheel-up wheel-left wheel-right mouse-4 mouse-6 mouse-7)))

(defun duet-transcript-move--scroll-command (event)
  "Return which of the commands that scroll EVENT calls elsewhere."
  (let ((area (posn-area (event-start event)))
        (type (event-basic-type event)))
    (car (memq (key-binding (if area (vector area type) (vector type)) nil t)
               duet-transcript-move--scroll-commands))))

(defun duet-scroll-mouse (event)
  "Scroll as EVENT asks for; follow what is written if that leads to the end."
  (interactive "e")
  (let ((command (duet-transcript-move--scroll-command event))
        (window (posn-window (event-start event))))
    (unless command
      (user-error "Nothing scrolls by this"))
    (setq this-command command)
    (condition-case nil
        (call-interactively command nil (vector event))
      (end-of-buffer nil))
    (when (and (window-live-p window) (not (duet-transcript-move--scroll-back-p event)))
      (duet-transcript-move--scroll-follow window))))

(defun duet-transcript-move--scroll-follow (window)
  "Have WINDOW follow the end of its transcript if it shows that."
  (with-current-buffer (window-buffer window)
    (when (and (derived-mode-p 'duet-transcript-mode)
               (pos-visible-in-window-p (point-max) window))
      (when (< (window-point window) (duet-transcript--end))
        (set-window-point window (point-max))
        (when (fboundp 'duet-approvals-catch) (duet-approvals-catch)))
      (duet-transcript-fill window))))

;; A search goes on while the text is scrolled.
(put 'duet-scroll-mouse 'scroll-command t)
(put 'duet-scroll-mouse 'isearch-scroll t)

(dolist (command duet-transcript-move--scroll-commands)
  (define-key duet-transcript-mode-map (vector 'remap command) #'duet-scroll-mouse))

(provide 'duet-transcript-move)
;;; duet-transcript-move.el ends here
