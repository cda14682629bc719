;;; duet-approvals.el --- All open questions, in a list and in transcripts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The buffer of `duet-approvals' lists the open questions of all sessions of all
;; connected projects.  The mode line shows their number.  A transcript shows the
;; questions of its session at its end, where the same keys answer them.
;; `duet-approval-next' moves to the next question, from any buffer.
;;
;; All of these show the models.  A question may arrive before or after its tool
;; call; both orders work.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'tabulated-list)
(require 'duet-approval)
(require 'duet-approval-view)
(require 'duet-header)
(require 'duet-section)
(require 'duet-sessions)
(require 'duet-transcript)

(declare-function duet "duet" (&optional directory))

;;; All questions

(defcustom duet-lighter t
  "Whether the mode line shows the number of open questions."
  :type 'boolean
  :group 'duet)

(defvar duet-approvals--timer nil
  "The timer that updates all views of questions.")

(defun duet-approvals-all ()
  "Return the open questions of all connected projects, the oldest first."
  (let (approvals)
    (maphash (lambda (_ connection)
               (unless (eq (duet-connection-state connection) 'stopped)
                 (setq approvals
                       (append (duet-model-approval-list (duet-connection-model connection))
                               approvals))))
             duet-connections)
    (sort approvals (lambda (a b)
                      (duet-get-time-before-p
                       (duet-get-string (duet-approval-data a) :created_at)
                       (duet-get-string (duet-approval-data b) :created_at))))))


;;;; Changes of the model

(defun duet-approvals--observe (model kind _session object extra)
  "Handle a change of MODEL: its KIND, OBJECT and EXTRA."
  (pcase kind
    ('approval-resolved
     (duet-approvals--say object extra)
     (duet-approval-view-resolved object
                                  (and (not (duet-approval-sending-p object)) extra))
     (duet-approvals--soon))
    ((and 'approval (guard (duet-get (duet-approval-data object) :truncated))
          (guard (not (duet-approval-sending-p object))))
     (duet-approval-complete object)
     (duet-approvals--soon))
    ;; Update at once: the user's next key may be meant for another question.
    ((and 'approval (guard (or (duet-approval-sending-p object) (eq extra 'not-sent))))
     (duet-approvals-flush))
    ((or 'approval 'connection) (duet-approvals--soon))
    ;; A question may arrive before its session is known or loaded.
    ((or 'session 'sessions 'messages-loaded)
     (unless (zerop (hash-table-count (duet-model-approvals model)))
       (duet-approvals--soon)))))

(defun duet-approvals--say (approval data)
  "Show a message about the decision DATA of APPROVAL, unless it was made here."
  (when (and (duet-approval-title approval)
             data
             (not (duet-approval-sending-p approval)))
    (message "Duet: %s %s" (duet-approval-name approval) (duet-approval-outcome data))))

(defun duet-approvals--soon ()
  "Schedule an update of all views of questions."
  (unless duet-approvals--timer
    (setq duet-approvals--timer (run-at-time 0.05 nil #'duet-approvals-flush))))

(defun duet-approvals-flush ()
  "Update all views of questions."
  (when duet-approvals--timer
    (cancel-timer duet-approvals--timer)
    (setq duet-approvals--timer nil))
  (duet-log-guard "Lighter" (duet-approvals--lighter-update))
  (dolist (buffer (buffer-list))
    (pcase (buffer-local-value 'major-mode buffer)
      ('duet-approvals-mode
       (with-current-buffer buffer
         (duet-log-guard "List of questions" (duet-approvals--print))))
      ('duet-transcript-mode
       (with-current-buffer buffer
         (duet-log-guard "Questions in a transcript" (duet-approvals--footer)))))))

(duet-model-add-observer #'duet-approvals--observe)


;;;; The mode line

(defvar duet-approvals--lighter-text nil
  "The text in the mode line.")
(put 'duet-approvals--lighter-text 'risky-local-variable t)

(defvar duet-approvals--lighter-map
  (let ((map (make-sparse-keymap)))
    (define-key map [mode-line mouse-1] #'duet-approvals)
    map)
  "Keymap of the number in the mode line.")

(defun duet-approvals--lighter-update ()
  "Update the number of open questions in the mode line."
  (let* ((count (length (duet-approvals-all)))
         (text (and duet-lighter (> count 0)
                    (concat " "
                            (propertize (format "Duet[%d!]" count)
                                        'face 'duet-attention
                                        'mouse-face 'mode-line-highlight
                                        'local-map duet-approvals--lighter-map
                                        'help-echo "Questions of agents wait
mouse-1: list them")))))
    (unless (equal text duet-approvals--lighter-text)
      (when text
        (unless global-mode-string (setq global-mode-string '("")))
        (when (stringp global-mode-string)
          (setq global-mode-string (list global-mode-string)))
        (unless (memq 'duet-approvals--lighter-text global-mode-string)
          (setq global-mode-string (append global-mode-string '(duet-approvals--lighter-text)))))
      (setq duet-approvals--lighter-text text)
      (force-mode-line-update t))))

(defun duet-approvals--header (session)
  "Return the questions of SESSION for the header line of its transcript."
  (when-let ((approvals (duet-session-approvals session)))
    (propertize (format "%d open: %s" (length approvals)
                        (duet-look-key #'duet-approval-next 'duet-transcript-mode-map))
                'face 'duet-attention
                'local-map (duet-header-click #'duet-approval-next)
                'mouse-face 'highlight
                'help-echo "mouse-1: go there")))

(add-hook 'duet-header-functions #'duet-approvals--header)


;;;; Moving between questions

(add-hook 'duet-transcript-mode-hook #'duet-approval-watch)

(defun duet-approvals--resized (window)
  "Fit the change of a question to WINDOW, which shows a transcript."
  (with-current-buffer (window-buffer window)
    (when (duet-section-get 'footer) (duet-approvals--soon))))

(add-hook 'duet-transcript-mode-hook
          (lambda ()
            (add-hook 'window-size-change-functions #'duet-approvals--resized nil t)
            (add-hook 'window-buffer-change-functions #'duet-approvals--resized nil t)))

(defun duet-approvals--sequence ()
  "Return all questions with a known session, in the order of `duet-approval-next'.
The questions of a session are together; the session with the oldest
question comes first."
  (let (groups)
    (dolist (approval (duet-approvals-all))
      (when-let ((session (duet-approvals--session approval)))
        (push approval (alist-get session groups))))
    (cl-mapcan (lambda (group) (reverse (cdr group))) (nreverse groups))))

;;;###autoload
(defun duet-approval-next ()
  "Move to the next open question, in its session's transcript.
In a transcript, move to the first question of its session, if point is on
no question.  Otherwise move to the next one of the session, or to the next
session with questions."
  (interactive)
  (let* ((all (duet-approvals--sequence))
         (listed (derived-mode-p 'duet-approvals-mode))
         (here (if listed (tabulated-list-get-id)
                 (get-text-property (point) 'duet-approval)))
         (approval (cond (listed here)
                         ((cadr (memq here all)))
                         (here (car all))
                         ((cl-find (bound-and-true-p duet-session) all
                                   :key #'duet-approvals--session))
                         (t (car all))))
         (connection (and approval (duet-approval-connection approval)))
         (session (and connection (duet-approval-session approval connection))))
    (cond
     ((null (or approval (duet-approvals-all))) (user-error "No question waits for you"))
     ((null session) (user-error "The session of this question is not known yet"))
     ((and (eq approval here) (eq (bound-and-true-p duet-session) session))
      (message "This is the only question"))
     (t (duet-approvals-go-to approval connection session)))))

(defun duet-approvals-go-to (approval connection session)
  "Move to APPROVAL, a question, in the transcript of SESSION of CONNECTION."
  (duet-transcript-show connection session)
  ;; While the minibuffer is in use, this does not select the window.
  (let ((buffer (duet-transcript-buffer session)))
    (with-current-buffer buffer
      (duet-approvals--footer)
      (goto-char (or (text-property-any (point-min) (point-max) 'duet-approval approval)
                     (point-max)))
      (when-let ((window (get-buffer-window)))
        (set-window-point window (point))))))

(defun duet-approvals--session (approval)
  "Return the session that asks APPROVAL, or nil."
  (when-let ((connection (duet-approval-connection approval)))
    (duet-approval-session approval connection)))


;;;; The list

(defvar duet-approvals-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map (make-composed-keymap duet-approval-map
                                                 tabulated-list-mode-map))
    (define-key map (kbd "RET") #'duet-approval-view)
    (define-key map [mouse-2] #'duet-approvals-view-mouse)
    (define-key map [follow-link] 'mouse-face)
    ;; These keys move in other lists, too.
    (dolist (key '("TAB" "M-n"))
      (define-key map (kbd key) #'next-line))
    (dolist (key '("<backtab>" "M-p"))
      (define-key map (kbd key) #'previous-line))
    (define-key map "j" #'duet-approval-next)
    (define-key map "l" #'duet)
    (define-key map "g" #'duet-approvals-refresh)
    map)
  "Keymap of `duet-approvals-mode'.")

(defvar-local duet-approvals--clock nil
  "The timer that updates the ages.")

(define-derived-mode duet-approvals-mode tabulated-list-mode "Duet-Questions"
  "Major mode of the list of open questions.

\\{duet-approvals-mode-map}"
  (setq tabulated-list-format (vector (list "Tool" 8 nil) (list "Input" 32 nil)
                                      (list "Session" 18 nil) (list "Project" 11 nil)
                                      (list "Age" 4 nil))
        tabulated-list-padding 1
        duet-approval-at-point-function #'tabulated-list-get-id
        mode-line-process '(:eval (duet-approvals--mode-line)))
  ;; The heading of the columns is in the buffer; the header line has the keys.
  (setq-local tabulated-list-use-header-line nil)
  (setq header-line-format
        '(:eval (duet-approvals--list-header)))
  (tabulated-list-init-header)
  (duet-approval-watch)
  (add-hook 'window-size-change-functions
            (lambda (window)
              (with-current-buffer (window-buffer window) (duet-approvals--soon)))
            nil t)
  (let ((buffer (current-buffer)))
    (setq duet-approvals--clock
          (run-at-time 30 30 (lambda ()
                               (when (get-buffer-window buffer t)
                                 (duet-approvals--soon))))))
  (add-hook 'kill-buffer-hook
            (lambda () (when duet-approvals--clock (cancel-timer duet-approvals--clock)))
            nil t))

(defun duet-approvals--list-header ()
  "Return the header line of the list: the keys for the question at point."
  (let ((approval (tabulated-list-get-id)))
    (if approval
        (apply #'duet-approval-keys approval
               (duet-header-keys 'duet-approvals-mode-map '(1 duet-approval-view "View")
                                 '(7 duet-approval-next "Go there")))
      " Questions of agents")))

(defun duet-approvals--mode-line ()
  "Return the failed connections for the mode line."
  (let (words)
    (maphash (lambda (_ connection)
               (when-let ((status (duet-connection-status connection)))
                 (push (string-replace
                        "%" "%%" (format "[%s: %s]"
                                         (duet-approvals--project connection) status))
                       words)))
             duet-connections)
    (mapconcat (lambda (word) (concat " " (propertize word 'face 'duet-attention)))
               words "")))

(defun duet-approvals--project (connection)
  "Return the name of the project of CONNECTION."
  (duet-connection-project connection))

(defun duet-approvals--entry (approval)
  "Return the line of APPROVAL."
  (let* ((connection (duet-approval-connection approval))
         (session (duet-approval-session approval connection)))
    (list approval
          (vector (propertize (duet-approval-tool approval) 'face 'duet-waiting)
                  (concat (if (duet-approval-sending-p approval)
                              (propertize "sending… " 'face 'duet-running) "")
                          (if (duet-approval-stale approval)
                              (propertize "stale " 'face 'duet-failed 'help-echo
                                          "The agent is gone; an answer continues the session")
                            "")
                          (propertize
                           (duet-approval-summary
                            approval (or (and session (duet-session-cwd session))
                                         (duet-connection-root connection)))
                           'mouse-face 'highlight
                           'help-echo "mouse-1, RET: show this question"))
                  (if session (duet-session-label session (duet-approval-turn-number approval)) "…")
                  (duet-approvals--project connection)
                  (duet-sessions--age
                   (duet-get-string (duet-approval-data approval) :created_at))))))

(defun duet-approvals--print ()
  "Update the list of questions, and keep point on its question."
  (when-let ((window (and (not (eq (window-buffer) (current-buffer)))
                          (get-buffer-window nil t))))
    (goto-char (window-point window)))
  (let* ((approvals (duet-approvals-all))
         (was (mapcar #'car tabulated-list-entries))
         (here (tabulated-list-get-id))
         (line (line-number-at-pos)))
    (setf (nth 1 (aref tabulated-list-format 2))
          (if (< (duet-header-room) 76) 14 18))
    (duet-sessions-fit 1 16)
    ;; Also if the width of that column is unchanged.
    (tabulated-list-init-header)
    (setq tabulated-list-entries (mapcar #'duet-approvals--entry approvals))
    (tabulated-list-print t)
    (unless approvals
      (let ((inhibit-read-only t))
        (erase-buffer)
        (insert "\n No question waits for you.\n")))
    ;; If the question at point is closed, point moves to the next one.  In a list
    ;; that was empty, point moves to the first.
    (cond
     ((null approvals) (goto-char (point-min)))
     ((and here (not (memq here approvals)))
      (goto-char (point-min))
      (forward-line (1- line))
      (when (eobp) (forward-line -1)))
     ((null was) (duet-approvals--first)))
    (dolist (window (get-buffer-window-list nil nil t))
      (unless (eq window (selected-window))
        (set-window-point window (point))))
    (restore-buffer-modified-p nil)
    (force-mode-line-update)))

(defun duet-approvals--first ()
  "Move to the first question of the list."
  (goto-char (point-min))
  (while (not (or (eobp) (tabulated-list-get-id)))
    (forward-line 1)))

;;;###autoload
(defun duet-approvals (&optional host)
  "List the open questions of all connected projects.
If HOST is non-nil, as with a prefix argument, read a host first, and connect
to a project there."
  (interactive "P")
  (when host (duet-connection-read-host))
  (let ((buffer (get-buffer-create "*duet questions*")))
    (with-current-buffer buffer
      (unless (derived-mode-p 'duet-approvals-mode) (duet-approvals-mode))
      (duet-approvals--print))
    (pop-to-buffer buffer)
    (unless (tabulated-list-get-id) (duet-approvals--first))))

(defun duet-approvals-view-mouse (event)
  "Show the question at EVENT, a click."
  (interactive "e" duet-approvals-mode)
  (mouse-set-point event)
  (duet-approval-view (duet-approval-here)))

(defun duet-approvals-refresh ()
  "Request the open questions from all servers again."
  (interactive (duet-only-in 'duet-approvals-mode) duet-approvals-mode)
  (maphash (lambda (_ connection)
             (when (duet-connection-rpc connection)
               (duet-connection-refresh connection)))
           duet-connections)
  (duet-approvals--print))

;;; Questions in a transcript

;; A transcript shows the questions of its session at its end, with buttons that name
;; the keys.  The keys work only on that text, where TAB moves to the next button, and
;; behind the last one to what follows.  When a question arrives and point is
;; at the end of the buffer, as after a prompt, point moves to the first button.

(defvar duet-approvals-inline-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map duet-approval-map)
    (define-key map (kbd "TAB") #'duet-approvals-forward)
    (define-key map (kbd "<backtab>") #'duet-approvals-backward)
    (define-key map (kbd "RET") #'duet-approvals-act)
    (define-key map [mouse-2] #'duet-approvals-act-mouse)
    map)
  "Keymap of a question in a transcript.")

(defun duet-approvals--button (label command &optional option)
  "Return a button with LABEL that calls COMMAND.
If OPTION, a number, is non-nil, the button chooses that option of the agent."
  (propertize label 'face 'duet-button 'mouse-face 'highlight 'follow-link t
              'duet-action command 'duet-option option
              'help-echo "RET, mouse-1: do this"))

(defun duet-approvals--choices (names keys &optional without)
  "Return a button for each option of an agent; NAMES are their labels.
If KEYS is non-nil, the labels have the digits that choose the options.
WITHOUT is a function that returns non-nil for the number of an option
without a button."
  (cl-loop for name in names
           for number from 1
           unless (and without (funcall without number))
           collect (duet-approvals--button
                    (if (and keys (< number 10)) (format "[%d] %s" number name)
                      (format "[%s]" name))
                    #'duet-approvals--take number)))

(defun duet-approvals--answer-button (answer)
  "Return the button for ANSWER, a name in `duet-protocol-answers'."
  (duet-approvals--button (duet-approval-label answer)
                          (alist-get answer duet-approval-commands)))

(defun duet-approvals--rows (buttons)
  "Return BUTTONS in lines, without a line break within a button that fits.
The space between them is smaller if all then fit into one line."
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

(defun duet-approvals--height ()
  "Return the number of rows of the window of the transcript."
  (if-let ((window (get-buffer-window nil t))) (window-body-height window) 20))

(defun duet-approvals--low-p ()
  "Return non-nil if the window has few rows, as half of a terminal of 24 lines.
A question then shows the change and the keys, and leaves out what `View' shows."
  (< (duet-approvals--height) 16))

(defun duet-approvals--room (count)
  "Return the number of rows for the change of each of COUNT questions.
The keys below it, the line above it and the reply box fit into the window, too."
  (max 3 (min 40 (/ (- (duet-approvals--height) (if (duet-approvals--low-p) 6 9))
                    (max 1 count)))))

(defun duet-approvals--change (approval root room)
  "Return the change of APPROVAL for a transcript, in ROOM rows.
Files are relative to ROOT."
  (mapconcat (lambda (line)
               (concat "\n"
                       (if (string-prefix-p "  … " line)
                           (concat "  " (duet-approvals--button (substring line 2)
                                                                #'duet-approval-view))
                         line)))
             (duet-approval-change approval root room (min 200 (duet-header-room))) ""))

(defun duet-approvals--inline (approval root &optional count)
  "Return APPROVAL as text for a transcript; files are relative to ROOT.
COUNT is the number of questions there."
  (let* ((excerpt (append (duet-approval-excerpt approval)
                          (duet-form-lines (duet-approval-data approval))))
         (choices (duet-approvals--choices
                   (duet-approval-answers approval) nil
                   (lambda (number) (duet-approval-plain-p approval number))))
         (low (and (duet-approvals--low-p) (not (duet-approval-plan approval))))
         (text
          (concat
           (propertize "? " 'face 'duet-waiting)
           (propertize (if (duet-approval-question-p approval)
                           (duet-approval-name approval)
                         (duet-approval-tool approval))
                       'face 'duet-waiting)
           (if (duet-approval-question-p approval) ""
             (let ((summary (duet-approval-summary approval root))
                   (command (duet-approval-command approval)))
               (cond
                ;; The whole text is below.
                ((and command (not (duet-approval-command-fits-p command))) "")
                (excerpt (concat "  " (truncate-string-to-width summary duet-approval-heading
                                                                nil nil "…")))
                (t (concat "  " summary)))))
           (if (duet-approval-stale approval)
               (propertize "  (stale: an answer continues the session)" 'face 'duet-dim) "")
           (mapconcat (lambda (line) (concat "\n  │ " (propertize line 'face 'duet-code)))
                      excerpt "")
           (if-let ((why (duet-get-string (duet-approval-data approval) :reopened)))
               (concat "\n  " (propertize (duet-approval-line why) 'face 'duet-failed)) "")
           (duet-approvals--change approval root (duet-approvals--room (or count 1)))
           "\n  "
           (cond
            ((duet-approval-sending-p approval)
             (propertize "the answer is on its way…" 'face 'duet-dim))
            ((duet-approval-question-p approval)
             (duet-approvals--rows
              (append
               (list (duet-approvals--button "[r] Answer" #'duet-approval-respond))
               (and (duet-approval-declinable-p approval)
                    (list (duet-approvals--button "[n] Decline" #'duet-approval-deny)))
               (duet-approvals--choices (mapcar #'car (duet-approval-options approval)) t)
               (list (duet-approvals--button "[v] View" #'duet-approval-view)
                     (duet-approvals--answer-button 'keys)))))
            (t (duet-approvals--rows
                (append
                 (mapcar #'duet-approvals--answer-button
                         (remq 'keys (duet-approval-answers-to approval)))
                 (list (duet-approvals--button
                        (if (and low choices)
                            (format "[v] View (%d more answer%s)" (length choices)
                                    (if (cdr choices) "s" ""))
                          "[v] View")
                        #'duet-approval-view)
                       (duet-approvals--answer-button 'keys))))))
           (if (or low (duet-approval-question-p approval) (duet-approval-sending-p approval))
               ""
             (concat
              ;; Few lines, so that a small window shows the question above them.
              (if-let ((covers (and (duet-approval-rule-p approval)
                                    (duet-approval-always-covers approval))))
                  (concat "\n  " (propertize (concat "Always is for " covers) 'face 'duet-dim))
                "")
              (if choices (concat "\n  " (duet-approvals--rows choices)) ""))))))
    (propertize text 'duet-approval approval
                'wrap-prefix "  "
                'keymap (unless (duet-approval-sending-p approval)
                          duet-approvals-inline-map))))

(defun duet-approvals--take ()
  "Answer the question at point with the option at point."
  (interactive nil duet-transcript-mode)
  (duet-approval-take (duet-approval-here) (get-text-property (point) 'duet-option)))

(defun duet-approvals-forward (&optional count)
  "Go to the next button of a question, or to the COUNTth.
Behind the last button go to the next section, or to the end of the buffer."
  (interactive "p" duet-transcript-mode)
  (let ((count (or count 1)))
    (dotimes (_ (abs count))
      (let ((place (duet-approvals--next-button (> count 0))))
        (cond (place (goto-char place))
              ((> count 0) (duet-section-next))
              (t (duet-section-previous)))))))

(defun duet-approvals-backward (&optional count)
  "Go to the previous button of a question, or to the COUNTth before.
Before the first button go to the beginning of the question."
  (interactive "p" duet-transcript-mode)
  (duet-approvals-forward (- (or count 1))))

(defun duet-approvals--next-button (forward)
  "Return the place of the next button of the questions here, or nil.
If FORWARD is nil, return the place of the previous one."
  (when-let ((section (duet-section-at)))
    (let ((beg (marker-position (duet-section-beg section)))
          (end (marker-position (duet-section-end section))))
      (if forward
          (let ((place (point)))
            (while (progn (setq place (next-single-property-change place 'duet-action nil end))
                          (and (< place end) (not (get-text-property place 'duet-action)))))
            (and (< place end) place))
        (let ((place (previous-single-property-change
                      (if (get-text-property (point) 'duet-action)
                          (previous-single-property-change (1+ (point)) 'duet-action nil beg)
                        (point))
                      'duet-action nil beg)))
          (while (and (> place beg) (not (get-text-property place 'duet-action)))
            (setq place (previous-single-property-change place 'duet-action nil beg)))
          (and (> place beg) place))))))

(defun duet-approvals-act ()
  "Press the button at point, or show the question at point."
  (interactive nil duet-transcript-mode)
  (call-interactively (cond ((get-text-property (point) 'duet-action))
                            ((get-text-property (point) 'duet-file) #'duet-transcript-visit)
                            (t #'duet-approval-view))))

(defun duet-approvals-act-mouse (event)
  "Press the button at EVENT, a click."
  (interactive "e" duet-transcript-mode)
  (mouse-set-point event)
  (duet-approvals-act))

;; The section stays at the end: duet-transcript.el inserts messages before it.
(defvar-local duet-approvals--shown nil
  "The text of questions in the transcript.")
(defvar-local duet-approvals--known nil
  "The questions that the transcript shows.")

(defun duet-approvals--footer ()
  "Show the questions of the transcript's session at its end."
  (when (and duet-session duet-connection)
    (let* ((model (duet-connection-model duet-connection))
           (approvals (cl-remove-if-not
                       (lambda (approval)
                         (eq duet-session (gethash (duet-approval-turn approval)
                                                   (duet-model-turns model))))
                       (duet-model-approval-list model)))
           (section (duet-section-get 'footer))
           (text (and approvals
                      (mapconcat (lambda (approval)
                                   (duet-approvals--inline approval default-directory
                                                           (length approvals)))
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
  "Move to the first question of the transcript, from the end of the buffer.
Point is at the end after a prompt was sent, and the keys of a question do
not work there.  Point elsewhere does not move, unless OTHERS is non-nil and
point was on a question: the questions have changed, so the user has
answered that one."
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

(provide 'duet-approvals)
;;; duet-approvals.el ends here
