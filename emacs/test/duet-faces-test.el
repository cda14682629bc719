;;; duet-faces-test.el --- Tests of the contrast of faces  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'term/tty-colors)

(defun duet-faces-test-luminance (color)
  "Return the luminance of COLOR, a name: 0 to 1, as WCAG 2 defines it."
  (apply #'+ (cl-mapcar (lambda (part weight)
                          (let ((part (/ part 65535.0)))
                            (* weight (if (<= part 0.03928) (/ part 12.92)
                                        (expt (/ (+ part 0.055) 1.055) 2.4)))))
                        (cdr (assoc color color-name-rgb-alist))
                        '(0.2126 0.7152 0.0722))))

(defun duet-faces-test-contrast (one other)
  "Return the contrast of the colors ONE and OTHER: 1 to 21."
  (let ((lights (sort (mapcar #'duet-faces-test-luminance (list one other)) #'>)))
    (/ (+ (car lights) 0.05) (+ (cadr lights) 0.05))))

(ert-deftest duet-faces-test-attention ()
  "The face for the mode line has a background of its own with enough contrast."
  (should (> (duet-faces-test-contrast "white" "black") 20.9))
  (should (< (duet-faces-test-contrast "orange" "gray75") 1.5))
  (pcase-dolist (`(,display . ,attributes) (face-default-spec 'duet-attention))
    (should (plist-member attributes :inverse-video))
    (if (eq display t)
        (should (plist-get attributes :weight))
      (should (> (duet-faces-test-contrast (plist-get attributes :foreground)
                                           (plist-get attributes :background))
                 7)))))

(defun duet-faces-test-hex (color)
  "Return COLOR, a name or #rrggbb, as an entry of `color-name-rgb-alist'."
  (if (string-prefix-p "#" color)
      (cons color (mapcar (lambda (place)
                            (* 257 (string-to-number (substring color place (+ 2 place)) 16)))
                          '(1 3 5)))
    (assoc (downcase color) color-name-rgb-alist)))

(ert-deftest duet-faces-test-contrast-on-light ()
  "Colours for a light background are readable on it, and in a header line."
  (let ((seen 0))
    (dolist (face (face-list))
      (when (string-prefix-p "duet-" (symbol-name face))
        (pcase-dolist (`(,display . ,attributes) (face-default-spec face))
          (let* ((attributes (if (listp (car attributes)) (car attributes) attributes))
                 (foreground (plist-get attributes :foreground)))
            (when (and foreground (not (plist-get attributes :background))
                       (not (and (consp display) (member '(background dark) display))))
              (cl-incf seen)
              (let ((color-name-rgb-alist (list (duet-faces-test-hex foreground)
                                                (duet-faces-test-hex "#ffffff")
                                                (duet-faces-test-hex "#e5e5e5"))))
                (dolist (background '("#ffffff" "#e5e5e5"))
                  (should (>= (duet-faces-test-contrast (caar color-name-rgb-alist) background)
                              4.5)))))))))
    (should (> seen 5))))

(ert-deftest duet-faces-test-where ()
  "The mode line and the header line use that face, and no other text colour."
  (let ((faces (lambda (text)
                 (delete-dups (cl-loop for place below (length text)
                                       collect (get-text-property place 'face text))))))
    (should (equal (funcall faces (duet-look-state-header 'waiting_input))
                   '(duet-attention)))
    (dolist (state '(starting running interrupting))
      (should (equal (funcall faces (duet-look-state-header state)) '(bold))))
    (duet-test-with-project connection
      (duet-model-add-observer #'duet-approvals--observe)
      (let* ((duet-approvals--lighter-text nil)
             (global-mode-string nil)
             (session (duet-test-launch connection "hello"))
             (buffer (duet-transcript-open connection session)))
        (duet-test-wait-for duet-approvals--lighter-text)
        (should (equal (funcall faces (string-trim-left duet-approvals--lighter-text))
                       '(duet-attention)))
        (with-current-buffer buffer
          (should (memq 'duet-attention (funcall faces (duet-header duet-session duet-connection))))
          (should-not (cl-intersection '(duet-waiting duet-running warning)
                                       (funcall faces (duet-header duet-session duet-connection)))))
        (with-current-buffer (duet-sessions-buffer connection)
          (let ((duet-connections (make-hash-table)))
            (duet-connection--enter connection 'starting)
            (should (equal (funcall faces (string-trim-left (duet-sessions--mode-line)))
                           '(duet-attention)))))))))

(ert-deftest duet-faces-test-on-a-dark-terminal ()
  "A header line in a terminal has no text colours; questions stand out."
  (let ((line (duet-look-on-line (concat (propertize "a" 'face 'help-key-binding) " b"
                                         (propertize "·" 'face 'duet-dim)
                                         (propertize "c" 'face 'duet-attention)))))
    (should (equal (mapcar (lambda (place) (get-text-property place 'face line)) '(0 1 3 4))
                   '(bold nil nil duet-attention))))
  (with-temp-buffer
    (setq header-line-format (duet-header-fit (list (propertize "completed" 'face 'duet-done))))
    (should (eq (get-text-property 0 'face header-line-format) 'bold)))
  ;; The colours of a diff suit its background, and these faces have none.
  (dolist (face '(duet-added duet-removed duet-button))
    (let* ((attributes (cdr (or (assoc '((class color) (min-colors 88) (background dark))
                                       (face-default-spec face))
                                (assoc '((class color) (min-colors 88)) (face-default-spec face)))))
           (background (or (plist-get attributes :background) "#1e1e1e"))
           (foreground (plist-get attributes :foreground))
           (color-name-rgb-alist (list (duet-faces-test-hex background)
                                       (duet-faces-test-hex foreground))))
      (should (>= (duet-faces-test-contrast (caar color-name-rgb-alist)
                                            (car (nth 1 color-name-rgb-alist)))
                  7)))))

(ert-deftest duet-faces-test-noise ()
  "Text that Emacs adds to a transcript looks different from messages."
  (with-temp-buffer
    (duet-transcript-mode)
    (should (equal (mapcar #'glyph-char
                           (display-table-slot buffer-display-table 'selective-display))
                   (string-to-list " ...")))
    (should (equal (cdr (assq 'continuation fringe-indicator-alist)) '(nil nil)))
    (should (equal (cdr (assq 'truncation fringe-indicator-alist))
                   (cdr (assq 'truncation (default-value 'fringe-indicator-alist)))))
    (let ((inhibit-read-only t)) (insert "[y] Allow"))
    (goto-char (point-min))
    (should-not (funcall show-paren-data-function))))

(provide 'duet-faces-test)
;;; duet-faces-test.el ends here
