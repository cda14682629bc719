;;; duet-approvals-footer.el --- Questions at the end of a transcript  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The questions of a session stand at the end of its transcript, with buttons
;; that say which keys answer them.  The keys are those of the text there, so
;; whoever is at the end of the buffer, as after a prompt was sent, is taken to
;; the first button when a question comes.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-approval)
(require 'duet-approval-always)
(require 'duet-approval-edit)
(require 'duet-approval-excerpt)
(require 'duet-approval-view)
(require 'duet-header)
(require 'duet-section)
(require 'duet-transcript)

(defvar duet-approvals-inline-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map duet-approval-map)
    (define-key map (kbd "RET") #'duet-approvals-act)
    (define-key map [mouse-2] #'duet-approvals-act-mouse)
    map)
  "Keymap of a question in a transcript.")

(defun duet-approvals--button (label command &optional option)
  "Return a button with LABEL that calls COMMAND.
If OPTION, a number, is non-nil it is for that answer of the agent's."
  (propertize label 'face 'duet-button 'mouse-face 'highlight 'follow-link t
              'duet-action command 'duet-option option
              'help-echo "RET, mouse-1: do this"))

(defun duet-approvals--choices (names &optional without)
  "Return a button for each answer of an agent's own; NAMES are what they say.
WITHOUT is a function that returns non-nil for the number of one that has none."
  (cl-loop for name in names
           for number from 1
           unless (and without (funcall without number))
           collect (duet-approvals--button
                    (if (< number 10) (format "[%d] %s" number name) name)
                    #'duet-approvals--take number)))

(defun duet-approvals--rows (buttons)
  "Return BUTTONS in as many lines as they take; none is broken that fits in one.
They stand closer together where all fit into one line by that."
  (let* ((room (- (min 200 (duet-header-room)) 3))
         (widths (mapcar #'string-width buttons))
         (close (+ (apply #'+ widths) (length buttons) -1))
         (gap (if (and (<= close room) (> (+ close (length buttons) -1) room)) " " "  "))
         (taken 0)
         (parts '()))
    (dolist (button buttons)
      (let ((width (string-width button)))
        (cond ((zerop taken) (setq taken width))
              ((<= (+ taken (length gap) width) room)
               (push gap parts)
               (setq taken (+ taken (length gap) width)))
              (t (push "\n  " parts)
                 (setq taken width)))
        (push button parts)))
    (apply #'concat (nreverse parts))))

(defun duet-approvals--inline (approval root)
  "Return APPROVAL as text for a transcript; files are relative to ROOT."
  (let* ((excerpt (append (duet-approval-excerpt approval)
                          (duet-form-lines (duet-approval-data approval))))
         (choices (duet-approvals--choices
                   (duet-approval-answers approval)
                   (lambda (number) (duet-approval-plain-p approval number))))
         (text
          (concat
           (propertize "? " 'face 'duet-waiting)
           (propertize (if (duet-approval-question-p approval)
                           (duet-approval-name approval)
                         (duet-approval-tool approval))
                       'face 'duet-waiting)
           (if (duet-approval-question-p approval) ""
             (let ((summary (duet-approval-summary approval root)))
               ;; All of it is below.
               (concat "  " (if excerpt
                                (truncate-string-to-width summary duet-approval-heading
                                                          nil nil "…")
                              summary))))
           (if (duet-approval-stale approval)
               (propertize "  (stale: an answer continues the session)" 'face 'duet-dim) "")
           (mapconcat (lambda (line) (concat "\n  │ " (propertize line 'face 'duet-code)))
                      excerpt "")
           (if-let ((why (duet-get-string (duet-approval-data approval) :reopened)))
               (concat "\n  " (propertize (duet-approval-line why) 'face 'duet-failed)) "")
           "\n  "
           (cond
            ((duet-approval-sending-p approval)
             (propertize "the answer is on its way…" 'face 'duet-dim))
            ((duet-approval-question-p approval)
             (duet-approvals--rows
              (append
               (list (duet-approvals--button "[r] answer" #'duet-approval-respond))
               (and (duet-approval-declinable-p approval)
                    (list (duet-approvals--button "[d] decline" #'duet-approval-deny)))
               (duet-approvals--choices (mapcar #'car (duet-approval-options approval))))))
            (t (duet-approvals--rows
                `(,(duet-approvals--button "[a] approve" #'duet-approval-approve)
                  ,(duet-approvals--button "[d] deny" #'duet-approval-deny)
                  ,@(and (duet-approval-editable-p approval)
                         (list (duet-approvals--button "[e] edit" #'duet-approval-edit)))
                  ,(duet-approvals--button "[t] tell why not" #'duet-approval-deny-and-tell)
                  ,(duet-approvals--button "[v] view" #'duet-approval-view)))))
           (if (or (duet-approval-question-p approval) (duet-approval-sending-p approval))
               ""
             (concat
              ;; Few lines: the question has to be seen above them in a small window.
              (if (not (duet-approval-rule-p approval)) ""
                (concat "\n  always: "
                        (duet-approvals--button "[s] session" #'duet-approval-always) "  "
                        (duet-approvals--button "[P] project"
                                                #'duet-approval-always-in-project)
                        (if-let ((covers (duet-approval-always-covers approval)))
                            (concat "  " (propertize (concat "for " covers) 'face 'duet-dim))
                          "")))
              (if choices (concat "\n  " (duet-approvals--rows choices)) ""))))))
    (propertize text 'duet-approval approval
                'wrap-prefix "  "
                'keymap (unless (duet-approval-sending-p approval)
                          duet-approvals-inline-map))))

(defun duet-approvals--take ()
  "Answer the question at point with the option at point."
  (interactive nil duet-transcript-mode)
  (duet-approval-take (duet-approval-here) (get-text-property (point) 'duet-option)))

(defun duet-approvals-act ()
  "Do what the button at point says, or show the question at point."
  (interactive nil duet-transcript-mode)
  (call-interactively (or (get-text-property (point) 'duet-action) #'duet-approval-view)))

(defun duet-approvals-act-mouse (event)
  "Do what the button says where EVENT, a click, was."
  (interactive "e" duet-transcript-mode)
  (mouse-set-point event)
  (duet-approvals-act))

;; The section is in front of nothing: duet-transcript.el inserts messages before it.
(defvar-local duet-approvals--shown nil
  "What the transcript shows of questions.")
(defvar-local duet-approvals--known nil
  "The questions that the transcript shows.")

(defun duet-approvals--footer ()
  "Show the questions of the transcript's session at its end."
  (when (and duet-session duet-connection)
    (let* ((model (duet-connection-model duet-connection))
           (approvals (cl-remove-if-not
                       (lambda (approval)
                         (eq duet-session (gethash (duet-approval-run approval)
                                                   (duet-model-runs model))))
                       (duet-model-approval-list model)))
           (section (duet-section-get 'footer))
           (text (and approvals
                      (mapconcat (lambda (approval)
                                   (duet-approvals--inline approval default-directory))
                                 approvals "\n")))
           (new (cl-set-difference approvals duet-approvals--known))
           (others (null (cl-intersection approvals duet-approvals--known))))
      (cond
       ((and (null text) section) (duet-section-delete section))
       ((null text))
       ((null section)
        (duet-section-insert 'footer nil text (duet-section-get 'reply)))
       ((not (equal-including-properties text duet-approvals--shown))
        (duet-section-redraw section text)))
      (setq duet-approvals--shown text
            duet-approvals--known approvals)
      (when new (duet-approvals-catch others))
      (duet-transcript-follow)
      (force-mode-line-update))))

(defun duet-approvals-catch (&optional others)
  "Go to the first question of the transcript, from the end of the buffer.
That is where point is after a prompt was sent, and there the keys that
the question tells of do something else.  A point elsewhere is left alone.
If OTHERS is non-nil the questions are others than before: who was at one of
those has answered it, and goes to the first, too."
  (when-let* ((section (duet-section-get 'footer))
              (end (point-max))
              (button (text-property-not-all (duet-section-beg section) end
                                             'duet-action nil)))
    (cl-flet ((behind-p (place)
                (or (= place end)
                    (and others (<= (duet-section-beg section) place
                                    (duet-section-end section))))))
      (when (behind-p (point)) (goto-char button))
      (dolist (window (get-buffer-window-list nil nil t))
        (when (behind-p (window-point window)) (set-window-point window button))))))

(provide 'duet-approvals-footer)
;;; duet-approvals-footer.el ends here
