;;; duet-approval-view.el --- A question in full  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Before a question is answered one may look at all of it, with what an edit
;; would change.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'json)
(require 'diff-mode)
(require 'duet-actions)
(require 'duet-approval)
(require 'duet-approval-always)
(require 'duet-approval-excerpt)
(require 'duet-connection)
(require 'duet-header)
(require 'duet-remote)

(declare-function duet-approval-edit "duet-approval-edit" (approval))

(defvar duet-approval-view-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map (make-composed-keymap duet-approval-map special-mode-map))
    (define-key map "n" #'diff-hunk-next)
    (define-key map "p" #'diff-hunk-prev)
    (define-key map (kbd "RET") #'diff-goto-source)
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-approval-view-mode'.")

(define-derived-mode duet-approval-view-mode diff-mode "Duet-Question"
  "Major mode that shows a question and what an edit would change.

\\{duet-approval-view-mode-map}"
  (setq buffer-read-only t
        buffer-undo-list t
        bidi-paragraph-direction 'left-to-right
        mode-line-buffer-identification '(:eval (duet-header-name))
        header-line-format '(:eval (duet-approval-view--header)))
  (setq-local truncate-lines nil
              word-wrap t)
  ;; The keys of `diff-mode' for buffers that cannot be changed go before ours.
  (setq-local minor-mode-overriding-map-alist nil)
  (setq-local revert-buffer-function (lambda (&rest _) (duet-approval-view--load))))

(defun duet-approval-keys (approval &rest more)
  "Return which keys answer APPROVAL, as much as a header line has room for.
MORE are parts of `duet-header-fit' that come after them."
  (cl-flet ((key (command words) (duet-header-key command words 'duet-approval-map)))
    (duet-header-fit
     (append
      (if (duet-approval-question-p approval)
          (list (concat " " (key #'duet-approval-respond "answer"))
                (and (duet-approval-declinable-p approval)
                     (concat ", " (key #'duet-approval-deny "decline"))))
        (list (concat " " (key #'duet-approval-approve "approve")
                      ", " (key #'duet-approval-deny "deny"))
              (cons 1 (concat ", " (key #'duet-approval-deny-and-tell "tell why not")))
              (and (duet-approval-editable-p approval)
                   (cons 2 (concat ", " (key #'duet-approval-edit "edit"))))
              (when (duet-approval-rule-p approval)
                (cons 3 (concat ", always: " (key #'duet-approval-always "session"))))
              (when (duet-approval-rule-p approval)
                (cons 4 (concat ", " (key #'duet-approval-always-in-project "project"))))))
      more))))

(defun duet-approval-view--header ()
  "Return the header line."
  (cond
   ((null duet-approval) "")
   ((not (duet-approval-connection duet-approval))
    (propertize " This is decided" 'face 'duet-done))
   ((duet-approval-sending-p duet-approval) " The answer is on its way")
   (t (duet-approval-keys duet-approval))))

(defun duet-approval-view--buffer (approval mode)
  "Return a buffer in MODE that is about APPROVAL, or nil."
  (cl-find-if (lambda (buffer)
                (and (eq (buffer-local-value 'major-mode buffer) mode)
                     (eq (buffer-local-value 'duet-approval buffer) approval)))
              (buffer-list)))

(defun duet-approval-view (approval)
  "Show all that is known of APPROVAL, and what it would change."
  (interactive (list (duet-approval-here))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (let ((buffer (or (duet-approval-view--buffer approval 'duet-approval-view-mode)
                    (generate-new-buffer
                     (format "*duet question: %s*" (duet-approval-name approval)))))
        (connection (or (duet-approval-connection approval)
                        (user-error "This is decided already"))))
    (with-current-buffer buffer
      (unless (derived-mode-p 'duet-approval-view-mode)
        (duet-approval-view-mode))
      (let ((session (duet-approval-session approval connection)))
        (setq duet-approval approval
              duet-connection connection
              default-directory (duet-connection-directory connection session)))
      (duet-approval-view--print (duet-approval-data approval))
      (duet-approval-view--load))
    (pop-to-buffer buffer)))

(defun duet-approval-view--load ()
  "Ask the server for all of the buffer's question; events have no diff."
  (unless (duet-approval-connection duet-approval)
    (user-error "This is decided"))
  (duet-connection-request
   duet-connection 'getApproval
   (list :approval_id (duet-approval-id duet-approval))
   :success-fn
   (duet-latest
    (lambda (result)
      ;; It may be decided meanwhile.
      (when (duet-approval-connection duet-approval)
        (duet-approval-view--print (duet-get result :approval)))))))

(defun duet-approval-view--print (data)
  "Show the question that DATA, from the server, tell of."
  (let* ((inhibit-read-only t)
         (line (line-number-at-pos))
         (approval duet-approval)
         (session (duet-approval-session approval duet-connection))
         (input (duet-get data :tool_input)))
    (erase-buffer)
    (insert (propertize
             ;; Of a tool it is the agent's words, which must not look like what follows.
             (funcall (if (duet-approval-question-p approval) #'duet-visible #'duet-visible-line)
                      (duet-render-wrap-diff
                       (or (duet-get-string data :title) (duet-approval-tool approval))))
             'font-lock-face 'duet-waiting)
            "\n\n")
    (cl-loop for (label text) in
             `(("Tool" ,(and (not (duet-approval-question-p approval))
                             (duet-approval-tool approval)))
               ("Subject" ,(duet-get-string data :subject))
               ("Session" ,(and session (duet-session-name session)))
               ("Agent" ,(and session (duet-session-agent session)))
               ("Project" ,(duet-remote-abbreviate
                            (duet-connection-root duet-connection)))
               ("Stale" ,(and (duet-get data :stale)
                              "who asked is gone; an answer continues the session"))
               ("Again" ,(duet-get-string data :reopened))
               ("Options" ,(and (duet-approval-question-p approval)
                                (string-join (mapcar #'car (duet-approval-options approval))
                                             ", ")))
               ("Always" ,(let ((covers (duet-approval-always-covers approval)))
                            (and covers (concat "is for " covers))))
               ("Files" ,(mapconcat #'abbreviate-file-name
                                    (duet-get-strings data :paths) ", ")))
             do (when (and text (not (string-empty-p text)))
                  (insert (propertize
                           (concat (propertize (format "%-9s" label) 'font-lock-face 'duet-dim)
                                   (duet-render-wrap-diff (duet-visible-line text)) "\n")
                           'wrap-prefix (make-string 9 ?\s)))))
    (when (duet-get data :truncated)
      ;; An event leaves it out; the server's reply says where, and how much.
      (insert (propertize (if (eq data (duet-approval-data approval))
                              "It is long, and comes in a moment"
                            "It is too long for a message: parts of it are left out")
                          'font-lock-face 'duet-failed)
              "\n"))
    (dolist (line (duet-form-lines data))
      (insert "  " line "\n"))
    (unless (duet-approval-question-p approval)
      (cl-loop for answer in (duet-approval-answers approval)
               for number from 1
               do (insert (propertize (format "%-9d" number) 'font-lock-face 'duet-dim)
                          answer "\n")))
    (pcase-dolist (`(,heading ,key) '(("Plan" :plan) ("Details" :details)))
      (when-let ((text (duet-get-string data key)))
        (insert "\n" (propertize heading 'font-lock-face 'duet-heading) "\n"
                (replace-regexp-in-string "^" "  " (duet-render-wrap (duet-visible text))) "\n")))
    (when-let ((diff (duet-get-string data :diff)))
      (insert "\n" (duet-render-wrap-diff (duet-visible diff)))
      (unless (bolp) (insert "\n")))
    ;; Below the diff, which tells the same of most tools, and is what one decides by.
    (when (and input (not (duet-approval-question-p approval)))
      (insert "\n" (propertize "Input" 'font-lock-face 'duet-heading) "\n"
              ;; No line of it must look like one of a diff.
              (replace-regexp-in-string
               "^" "  " (duet-render-wrap (duet-visible (duet-approval--json input))))
              "\n"))
    (goto-char (point-min))
    (forward-line (1- line))
    (restore-buffer-modified-p nil)))


(defun duet-approval-view-resolved (approval data)
  "Put away what shows APPROVAL, which is decided as DATA tell.
DATA are nil if it was decided here.  Whoever looks at one that somebody
else has decided is told that there: a key that is on its way must not
meet what is behind it."
  (dolist (mode '(duet-approval-view-mode duet-approval-edit-mode))
    (when-let ((buffer (duet-approval-view--buffer approval mode)))
      (cond
       ((not (and data (eq buffer (window-buffer))))
        (with-current-buffer buffer (set-buffer-modified-p nil))
        (dolist (window (get-buffer-window-list buffer nil t))
          (quit-restore-window window 'kill))
        (when (buffer-live-p buffer) (kill-buffer buffer)))
       ((eq mode 'duet-approval-view-mode)
        (with-current-buffer buffer
          (let ((inhibit-read-only t))
            (erase-buffer)
            (insert (duet-approval-name approval) " " (duet-approval-outcome data) ".\n")
            (goto-char (point-min))
            (restore-buffer-modified-p nil))
          (force-mode-line-update)))
       (t (with-current-buffer buffer (force-mode-line-update)))))))

(provide 'duet-approval-view)
;;; duet-approval-view.el ends here
