;;; duet-section.el --- A buffer as a sequence of sections  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A section is a range of a buffer with a key.  Text can be added at its end, at the
;; cost of that text alone; the section can be redrawn; and all but its first line
;; can be folded.  A blank line follows each section and belongs to none.  So text at
;; the end of a section is never at the beginning of the next.
;;
;; Between two folded sections the blank line is hidden, which makes them dense.
;;
;; Blank lines at the end of a section itself can be hidden, too.  They stay in the
;; buffer: new text follows them, and copied text includes them.

;;; Code:

(require 'cl-lib)
(require 'duet-look)

(cl-defstruct (duet-section (:copier nil))
  "A range of a buffer that shows one object."
  (key nil :documentation "The key that identifies it, compared with `equal'.")
  (object nil :documentation "The object that it shows.")
  (beg nil :documentation "A marker at its beginning.")
  (end nil :documentation "A marker behind its last character.")
  (fold nil :documentation "The overlay that hides its body, or nil.")
  (shown 0 :documentation "The number of characters of its object's text that it shows.")
  (summary nil :documentation "The text behind its first line while it is folded, or nil.")
  (by-default nil :documentation "Whether it appeared folded, and the user has not changed that.")
  (blank nil :documentation "The overlay that hides blank lines at its end, or nil.")
  (blocks nil :documentation "Its blocks of code and tables; see duet-block.el."))

(defvar-local duet-sections nil
  "The sections of the buffer by their keys, a hash table.")

(defun duet-section-setup ()
  "Prepare the current buffer for sections."
  (setq duet-sections (make-hash-table :test #'equal)
        buffer-undo-list t
        ;; A folded section ends in dots that are not part of its line.
        buffer-display-table (make-display-table))
  (set-display-table-slot buffer-display-table 'selective-display
                          (vconcat (mapcar (lambda (sign) (make-glyph-code sign 'duet-dim))
                                           " ...")))
  (add-to-invisibility-spec '(duet-fold . t))
  (add-to-invisibility-spec 'duet-blank)
  (add-to-invisibility-spec 'duet-dense))

(defun duet-section-get (key)
  "Return the section of the buffer whose key is KEY, or nil."
  (and duet-sections (gethash key duet-sections)))

(defun duet-section-at (&optional position)
  "Return the section at POSITION, or at point; nil if there is none."
  (let ((position (or position (point))))
    (or (get-text-property (min position (point-max)) 'duet-section)
        (and (> position (point-min))
             (get-text-property (1- position) 'duet-section)))))

(defun duet-section--own (section beg end)
  "Make the text from BEG to END part of SECTION, and read-only.
The buffer itself may be writable, see duet-reply.el."
  (add-text-properties beg end (list 'duet-section section
                                     'read-only t 'front-sticky '(read-only))))

(defun duet-section-insert (key object text &optional before)
  "Insert a section for OBJECT with the key KEY and with TEXT; return it.
Insert it in front of the section BEFORE, or at the end of the buffer.
Windows at the end stay there, and others keep their place."
  (let ((inhibit-read-only t)
        (section (make-duet-section :key key :object object))
        (place (if before (marker-position (duet-section-beg before)) (point-max)))
        (windows '()))
    ;; Otherwise the start of such a window would move with its end.
    (dolist (window (get-buffer-window-list nil nil t))
      (when (and (= (window-start window) place)
                 (or (= (window-point window) (point-max))
                     ;; Questions and the reply box belong to the end, too.
                     (and before (memq (duet-section-key before) '(footer reply))
                          (>= (window-point window) place))))
        (push window windows)))
    (save-excursion
      (goto-char place)
      (let ((beg (point)))
        (insert-before-markers text)
        (let ((end (point)))
          (insert-before-markers "\n\n")
          (duet-section--own section beg (point))
          (setf (duet-section-beg section) (copy-marker beg)
                (duet-section-end section) (copy-marker end t)))))
    (dolist (window windows)
      (set-window-start window place t))
    (duet-section--space-around section)
    (restore-buffer-modified-p nil)
    (puthash key section duet-sections)))

(defun duet-section-append (section text)
  "Add TEXT at the end of SECTION."
  (let ((inhibit-read-only t))
    (save-excursion
      (goto-char (duet-section-end section))
      (let ((beg (point)))
        (insert text)
        (duet-section--own section beg (point))))
    (restore-buffer-modified-p nil)))

(defun duet-section-hide-blank (section)
  "Hide the blank lines at the end of SECTION, and show earlier ones again."
  ;; This uses an overlay, since markup sets and clears the text property `invisible'.
  ;; An alias of that property in `char-property-alias-alist' made Emacs 28 lose one
  ;; quit in ten while the buffer was changing.
  (let* ((end (marker-position (duet-section-end section)))
         (overlay (duet-section-blank section))
         (from (save-excursion
                 (goto-char end)
                 (skip-chars-backward " \t\r\n" (duet-section-beg section))
                 ;; Spaces at the end of an incomplete line are not a blank line.
                 (skip-chars-forward " \t\r" end)
                 (point))))
    (cond
     ((= from end)
      (when overlay
        (delete-overlay overlay)
        (setf (duet-section-blank section) nil)))
     (overlay (move-overlay overlay from end))
     (t
      (setq overlay (make-overlay from end nil t))
      (overlay-put overlay 'invisible 'duet-blank)
      (setf (duet-section-blank section) overlay)))))

(defun duet-section-redraw (section text)
  "Replace the text of SECTION by TEXT.
A point in the section, in any window, keeps its line and column."
  (let* ((inhibit-read-only t)
         (beg (marker-position (duet-section-beg section)))
         (end (marker-position (duet-section-end section)))
         (folded (duet-section-folded-p section))
         (place (lambda (point)
                  (when (and (<= beg point) (<= point end))
                    (save-excursion
                      (goto-char point)
                      (cons (count-lines beg (line-beginning-position))
                            (- point (line-beginning-position)))))))
         (points (mapcar (lambda (window)
                           (cons window (funcall place (window-point window))))
                         (get-buffer-window-list nil nil t)))
         (own (funcall place (point)))
         (find (lambda (place)
                 (save-excursion
                   (goto-char beg)
                   (forward-line (car place))
                   (min (+ (point) (cdr place)) (line-end-position)
                        (marker-position (duet-section-end section)))))))
    (duet-section-unfold section)
    (save-excursion
      (goto-char beg)
      (delete-region beg end)
      (insert text)
      (duet-section--own section beg (point)))
    (restore-buffer-modified-p nil)
    (when folded (duet-section-fold-up section))
    (when own (goto-char (funcall find own)))
    (pcase-dolist (`(,window . ,place) points)
      (when place (set-window-point window (funcall find place))))))

(defun duet-section-delete (section)
  "Delete SECTION."
  (let ((inhibit-read-only t)
        (before (duet-section--before section)))
    (duet-section-unfold section)
    (when (duet-section-blank section) (delete-overlay (duet-section-blank section)))
    (delete-region (duet-section-beg section)
                   (min (point-max) (+ 2 (duet-section-end section))))
    (when before (duet-section--space before))
    (restore-buffer-modified-p nil)
    (set-marker (duet-section-beg section) nil)
    (set-marker (duet-section-end section) nil)
    (remhash (duet-section-key section) duet-sections)))


;;; Folding

(defconst duet-section--least 12
  "Minimum width of a summary, in columns; with less room it is left out.")

(defun duet-section--before (section)
  "Return the section before SECTION, or nil."
  (let ((beg (marker-position (duet-section-beg section))))
    (and (> beg (point-min)) (get-text-property (1- beg) 'duet-section))))

(defun duet-section--space (section)
  "Show the blank line behind SECTION, or hide it between two folded sections."
  (when-let ((fold (duet-section-fold section)))
    (let* ((end (marker-position (duet-section-end section)))
           (next (and (< (+ 2 end) (point-max))
                      (get-text-property (+ 2 end) 'duet-section)))
           ;; The second of its two newlines ends the visible line.
           (hidden (if (and next (duet-section-fold next)) (1+ end) end)))
      (unless (= hidden (overlay-end fold))
        (move-overlay fold (overlay-start fold) hidden)))))

(defun duet-section--space-around (section)
  "Show or hide the blank lines around SECTION."
  (when-let ((before (duet-section--before section)))
    (duet-section--space before))
  (duet-section--space section))

(defun duet-section--ending (section columns)
  "Return the text behind the first line of SECTION when it is folded, or nil.
COLUMNS is the width of the line."
  (let ((room (- (if-let ((window (get-buffer-window nil t))) (window-width window)
                   (frame-width))
                 columns 6))
        (summary (duet-section-summary section)))
    (when (and summary (>= room duet-section--least))
      (propertize (concat " ... " (truncate-string-to-width summary room nil nil "…"))
                  'face 'duet-dim))))

(defun duet-section-folded-p (section)
  "Return non-nil if SECTION is folded."
  (and (duet-section-fold section) t))

(defun duet-section-fold-up (section)
  "Hide all of SECTION except its first line.
The reply box is never folded."
  (unless (or (duet-section-fold section) (eq (duet-section-key section) 'reply))
    (let* ((end (marker-position (duet-section-end section)))
           (body (save-excursion
                   (goto-char (duet-section-beg section))
                   (min end (line-end-position))))
           (ending (duet-section--ending
                    section (string-width (buffer-substring-no-properties
                                           (duet-section-beg section) body))))
           ;; The overlay also hides text that is added at the end.
           (overlay (make-overlay body end nil nil t)))
      (overlay-put overlay 'invisible (if (or ending (= body end)) 'duet-dense 'duet-fold))
      (overlay-put overlay 'after-string ending)
      (overlay-put overlay 'isearch-open-invisible
                   (lambda (_) (duet-section-unfold section)))
      (overlay-put overlay 'evaporate nil)
      (setf (duet-section-fold section) overlay)
      (duet-section--space-around section))))

(defvar duet-section-unfold-functions nil
  "Functions that are called with a section that the user unfolds.")

(defun duet-section-unfold (section)
  "Show all of SECTION."
  (when (duet-section-fold section)
    (delete-overlay (duet-section-fold section))
    (setf (duet-section-fold section) nil)
    (duet-section--space-around section)))

(defun duet-section-toggle ()
  "Fold the section at point, or unfold it."
  (interactive nil duet-transcript-mode)
  (let ((section (duet-section-at)))
    (when section (setf (duet-section-by-default section) nil))
    (cond
     ((null section) (user-error "There is nothing to fold here"))
     ((duet-section-folded-p section)
      (duet-section-unfold section)
      (run-hook-with-args 'duet-section-unfold-functions section))
     (t
      (duet-section-fold-up section)
      (goto-char (duet-section-beg section))))))

(defun duet-section-toggle-all ()
  "Fold all sections, or unfold them if all are folded."
  (interactive nil duet-transcript-mode)
  (let (sections)
    (unless duet-sections (user-error "There is nothing to fold here"))
    (maphash (lambda (key section) (unless (eq key 'reply) (push section sections)))
             duet-sections)
    (dolist (section sections) (setf (duet-section-by-default section) nil))
    (if (cl-every #'duet-section-folded-p sections)
        (mapc #'duet-section-unfold sections)
      (mapc #'duet-section-fold-up sections))))


;;; Moving

(defun duet-section-next (&optional count)
  "Go to the next section, or to the COUNTth; backward if it is negative."
  (interactive "p" duet-transcript-mode)
  (let ((count (or count 1)))
    (dotimes (_ (abs count))
      (if (> count 0)
          (let ((here (duet-section-at)))
            (goto-char (if here (min (point-max) (+ 2 (duet-section-end here)))
                         (next-single-property-change (point) 'duet-section
                                                      nil (point-max)))))
        (let ((here (get-text-property (point) 'duet-section)))
          (if (and here (> (point) (duet-section-beg here)))
              (goto-char (duet-section-beg here))
            (when (> (point) (point-min))
              (let ((before (get-text-property (1- (point)) 'duet-section)))
                (goto-char (if before (duet-section-beg before)
                             (point-min)))))))))))

(defun duet-section-previous (&optional count)
  "Go to the beginning of this section, or of the COUNTth before it."
  (interactive "p" duet-transcript-mode)
  (duet-section-next (- (or count 1))))

(provide 'duet-section)
;;; duet-section.el ends here
