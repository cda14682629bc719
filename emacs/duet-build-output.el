;;; duet-build-output.el --- What a build has printed, and the places in it  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What a build prints is shown as it comes.  A line that tells of a mistake is a
;; link to its place; which lines do, the server tells.  RET goes there, and
;; `next-error' to the next one.

;;; Code:

(require 'ansi-color)
(require 'cl-lib)
(require 'compile)
(require 'subr-x)
(require 'duet-connection)
(require 'duet-remote)
(require 'duet-render)
(require 'duet-visible)

(defvar-local duet-build--counts nil
  "How many errors, warnings and notes were found, a list.")
(defvar-local duet-build--output nil
  "A marker: where what is printed begins.")
(defvar-local duet-build--current nil
  "Where the mistake stands whose place was shown last, or nil.")
(defvar-local duet-build--located nil
  "A marker: behind the line to which the last mistake belongs.")

(defun duet-build--printed (text)
  "Return TEXT, which a build has printed, as it is shown."
  (let ((colored (let ((ansi-color-context nil)) (ansi-color-apply text))))
    ;; What is drawn over a line by a carriage return replaces it.
    (duet-visible (mapconcat #'duet-build--drawn (split-string colored "\n") "\n"))))

(defun duet-build--drawn (line)
  "Return what of LINE is seen behind its carriage returns."
  (let ((end (length line))
        (beg 0)
        next)
    (while (and (> end 0) (eq (aref line (1- end)) ?\r))
      (setq end (1- end)))
    (while (and (setq next (string-search "\r" line beg)) (< next end))
      (setq beg (1+ next)))
    (substring line beg end)))

(defun duet-build--insert (text)
  "Insert TEXT at the end of the buffer.
As in a buffer of `compile' windows follow the end if point was put there, or
if `compilation-scroll-output' is set."
  (let* ((inhibit-read-only t)
         (end (point-max))
         (windows (cl-remove-if-not (lambda (window)
                                      (duet-build--follows-p (window-point window)))
                                    (get-buffer-window-list nil nil t)))
         (follow (duet-build--follows-p (point))))
    (save-excursion
      (goto-char end)
      (insert (duet-render-wrap text (- (point) (line-beginning-position)))))
    (set-buffer-modified-p nil)
    (when follow (goto-char (point-max)))
    (dolist (window windows)
      (set-window-point window (point-max)))))

(defun duet-build--follows-p (place)
  "Return non-nil if PLACE, of point, is to follow the end of the buffer."
  (or compilation-scroll-output
      (and (= place (point-max)) (> place (point-min)))))

(defun duet-build--found (diagnostic)
  "Make the line that tells of DIAGNOSTIC a link to its place.
It is an object of the server's.  The server tells of it after what was printed."
  (let* ((severity (duet-get-string diagnostic :severity))
         (line (or (duet-build--line diagnostic) (duet-build--add-line diagnostic)))
         (inhibit-read-only t))
    (cl-incf (nth (pcase severity ("error" 0) ("warning" 1) (_ 2)) duet-build--counts))
    (save-excursion
      (goto-char line)
      (let ((end (line-end-position)))
        (add-text-properties line end
                             (list 'duet-build-diagnostic diagnostic
                                   'mouse-face 'highlight
                                   'help-echo (duet-visible
                                               (or (duet-get-string diagnostic :message) ""))))
        (add-face-text-property line end (pcase severity
                                           ("error" 'compilation-error)
                                           ("warning" 'compilation-warning)
                                           (_ 'compilation-info)))
        (set-marker duet-build--located (min (point-max) (1+ end)))))
    (set-buffer-modified-p nil)
    (force-mode-line-update)))

(defconst duet-build--search-most 20000000
  "How many characters are searched in a build's output for its mistakes.
A mistake that is not found has a line of its own at the end.")

(defvar-local duet-build--searched 0
  "How many characters were searched in this output for mistakes.")

(defun duet-build--line (diagnostic)
  "Return where the line that tells of DIAGNOSTIC begins, or nil.
That is one with the file's name and the number of the line which is no other
mistake's; tools call a file by the directory in which they run."
  (when-let ((file (duet-get-string diagnostic :file))
             (number (duet-get-number diagnostic :line)))
    (let ((regexp (concat "\\(?:^\\|[^[:alnum:]_.-]\\)"
                          (regexp-quote (file-name-nondirectory file))
                          "[\"']?\\(?:[:(]\\|, line \\)" (number-to-string number)
                          "\\(?:[^[:digit:]]\\|$\\)")))
      (save-excursion
        (cl-loop for from in (list duet-build--located duet-build--output)
                 while (< duet-build--searched duet-build--search-most)
                 thereis (progn
                           (goto-char from)
                           (prog1 (cl-loop while (re-search-forward regexp nil 'move)
                                           unless (get-text-property (line-beginning-position)
                                                                     'duet-build-diagnostic)
                                           return (line-beginning-position)
                                           do (forward-line 1))
                             (setq duet-build--searched
                                   (+ duet-build--searched (- (point) from))))))))))

(defun duet-build--add-line (diagnostic)
  "Add a line that tells of DIAGNOSTIC; return where it begins."
  (let ((beg (point-max)))
    (duet-build--insert
     (concat (if (eq (char-before beg) ?\n) "" "\n")
             (duet-visible-line
              (concat (string-join
                       (delq nil (list (or (duet-get-string diagnostic :file) "?")
                                       (when-let ((line (duet-get-number diagnostic :line)))
                                         (number-to-string line))
                                       (when-let ((column (duet-get-number diagnostic :column)))
                                         (number-to-string column))))
                       ":")
                      ": " (or (duet-get-string diagnostic :severity) "error") ": "
                      (or (duet-get-string diagnostic :message) "")))
             "\n"))
    (save-excursion
      (goto-char beg)
      (if (eolp) (1+ beg) beg))))

(defun duet-build--move (count)
  "Move point to the COUNTth place from here; return non-nil if there is one."
  (let ((start (point))
        (found t))
    (dotimes (_ (abs count))
      (setq found (and found (if (> count 0) (duet-build--forward) (duet-build--backward)))))
    (unless found (goto-char start))
    found))

(defun duet-build--forward ()
  "Go to the next line with a place; return nil if there is none."
  (forward-line 1)
  (while (not (or (eobp) (get-text-property (point) 'duet-build-diagnostic)))
    (goto-char (next-single-property-change (point) 'duet-build-diagnostic nil (point-max))))
  (not (eobp)))

(defun duet-build--backward ()
  "Go to the line before with a place; return nil if there is none."
  (let (found)
    (beginning-of-line)
    (while (not (or found (bobp)))
      (forward-line -1)
      (setq found (get-text-property (point) 'duet-build-diagnostic)))
    (and found t)))

(defun duet-build-next (&optional count)
  "Go to the next mistake, or the COUNTth."
  (interactive "p" duet-build-mode)
  (unless (duet-build--move (or count 1))
    (user-error "There are no more")))

(defun duet-build-previous (&optional count)
  "Go to the mistake before, or the COUNTth."
  (interactive "p" duet-build-mode)
  (duet-build-next (- (or count 1))))

(defun duet-build-next-error (count reset)
  "Show the place of the COUNTth mistake from that which was shown last.
If RESET is non-nil begin with the first.  The `next-error-function' of the
buffer."
  (goto-char (or (and (not reset) duet-build--current) (point-min)))
  (unless (or (zerop count)
              (and reset (= count 1) (get-text-property (point) 'duet-build-diagnostic))
              (duet-build--move count))
    (user-error "There are no more"))
  (dolist (window (get-buffer-window-list nil nil t))
    (set-window-point window (point)))
  (duet-build-visit))

(defun duet-build-visit (&optional stay)
  "Go to the place of the mistake at point.
If STAY is non-nil its window is not selected."
  (interactive nil duet-build-mode)
  (let* ((diagnostic (or (get-text-property (line-beginning-position) 'duet-build-diagnostic)
                         (user-error "No mistake is told of here")))
         (file (or (duet-get-string diagnostic :file)
                   (user-error "It is not told where that is")))
         (name (duet-remote-name file (duet-connection-directory duet-connection)))
         (line (duet-get-number diagnostic :line))
         (column (duet-get-number diagnostic :column)))
    (setq duet-build--current (line-beginning-position))
    (unless (file-exists-p name)
      (user-error "There is no file %s" (duet-visible-line file)))
    (let* ((buffer (find-file-noselect name))
           (window (if stay (display-buffer buffer '(nil (inhibit-same-window . t)))
                     (pop-to-buffer buffer '((display-buffer-reuse-window
                                              display-buffer-use-some-window
                                              display-buffer-pop-up-window)
                                             (inhibit-same-window . t)))
                     (selected-window))))
      (with-selected-window window
        (unless (<= (point-min) 1 (point-max)) (widen))
        (when line
          (push-mark nil t)
          (save-restriction
            (widen)
            (goto-char (point-min))
            (forward-line (1- line))
            (when column
              (goto-char (min (line-end-position) (+ (point) (1- column)))))))))))

(defun duet-build-display ()
  "Show the place of the mistake at point, and stay here."
  (interactive nil duet-build-mode)
  (duet-build-visit t))

(defun duet-build-visit-mouse (event)
  "Go to the place of the mistake where EVENT, a click, was."
  (interactive "e" duet-build-mode)
  (mouse-set-point event)
  (duet-build-visit))

(provide 'duet-build-output)
;;; duet-build-output.el ends here
