;;; duet-approval-view.el --- A question in full, its excerpt, its input to edit  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-approval-view' shows a whole question, with the diff of an edit.
;; `duet-approval-edit' edits the input of its tool.  A transcript and the list of
;; questions show an excerpt of that input.

;;; Code:

(require 'cl-lib)
(require 'diff-mode)
(require 'json)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-approval)
(require 'duet-connection)
(require 'duet-header)
(require 'duet-remote)
(require 'duet-render)
(require 'duet-visible)

(declare-function duet-approval-next "duet-approvals" ())

;;; The whole question

(defvar duet-approval-view-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map (make-composed-keymap duet-approval-map special-mode-map))
    (dolist (key '("TAB" "M-n"))
      (define-key map (kbd key) #'diff-hunk-next))
    (dolist (key '("<backtab>" "M-p"))
      (define-key map (kbd key) #'diff-hunk-prev))
    (define-key map (kbd "RET") #'diff-goto-source)
    (define-key map "j" #'duet-approval-next)
    map)
  "Keymap of `duet-approval-view-mode'.")

(define-derived-mode duet-approval-view-mode diff-mode "Duet-Question"
  "Major mode that shows a question and the diff of its edit.

\\{duet-approval-view-mode-map}"
  (setq buffer-read-only t
        buffer-undo-list t
        bidi-paragraph-direction 'left-to-right
        mode-line-buffer-identification '(:eval (duet-header-name))
        header-line-format '(:eval (duet-approval-view--header)))
  (setq-local truncate-lines nil
              word-wrap t)
  ;; `diff-mode' has keys for read-only buffers that would hide ours.
  (setq-local minor-mode-overriding-map-alist nil)
  (setq-local revert-buffer-function (lambda (&rest _) (duet-approval-view--load))))

(defconst duet-approval-view--ranks
  '((allow . 0) (deny . 0) (keys . 1) (tell . 2) (session . 3) (project . 4) (edit . 5))
  "The ranks of answers in a narrow header line, as for `duet-header-fit'.")

(defun duet-approval-keys (approval &rest more)
  "Return the keys that answer APPROVAL, as many as fit into a header line.
MORE are further parts for `duet-header-fit'."
  (cl-flet ((key (command words) (duet-header-key command words 'duet-approval-map)))
    (duet-header-fit
     (append
      (if (duet-approval-question-p approval)
          (list (concat " " (key #'duet-approval-respond "Answer"))
                (and (duet-approval-declinable-p approval)
                     (concat ", " (key #'duet-approval-deny "Decline")))
                (cons 1 (concat ", " (key #'duet-approval-help (duet-approval-words 'keys)))))
        (cl-loop for answer in (duet-approval-answers-to approval)
                 for before = " " then ", "
                 collect (cons (alist-get answer duet-approval-view--ranks)
                               (concat before (key (alist-get answer duet-approval-commands)
                                                   (duet-approval-words answer))))))
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
  "Return a buffer in MODE that shows APPROVAL, or nil."
  (cl-find-if (lambda (buffer)
                (and (or (eq (buffer-local-value 'major-mode buffer) mode)
                         (and (eq mode 'duet-approval-edit-mode)
                              (buffer-local-value 'duet-approval-text-mode buffer)))
                     (eq (buffer-local-value 'duet-approval buffer) approval)))
              (buffer-list)))

(defun duet-approval-view (approval)
  "Show APPROVAL in full, with the diff of its edit."
  (interactive (list (duet-approval-here))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (let ((buffer (or (duet-approval-view--buffer approval 'duet-approval-view-mode)
                    (generate-new-buffer
                     (format "*duet question: %s*" (duet-approval-name approval)))))
        (connection (or (duet-approval-connection approval)
                        (user-error "This question is already answered"))))
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
  "Request the buffer's whole question from the server; events have no diff."
  (unless (duet-approval-connection duet-approval)
    (user-error "This question is already answered"))
  (duet-connection-request
   duet-connection 'approval.get
   (list :approval (duet-approval-id duet-approval))
   :success-fn
   (duet-latest
    (lambda (result)
      ;; It may have been decided meanwhile.
      (when (duet-approval-connection duet-approval)
        (duet-approval-view--print (duet-get result :approval)))))))

(defun duet-approval-view--print (data)
  "Show the question in DATA, from the server."
  (let* ((inhibit-read-only t)
         (line (line-number-at-pos))
         (approval duet-approval)
         (session (duet-approval-session approval duet-connection))
         (title (or (duet-get-string data :title) (duet-approval-tool approval)))
         ;; An event may lack the input.
         (command (duet-approval-command (let ((whole (copy-sequence approval)))
                                           (setf (duet-approval-data whole) data)
                                           whole)))
         (input (duet-approval--without-command
                 (duet-render-beside (duet-get data :tool_input)
                                     (duet-get-objects (duet-approval-data approval) :diffs)
                                     (duet-get-string data :diff))
                 command)))
    (erase-buffer)
    (unless (and command (duet-approval-says-command-p title command))
      (insert (propertize
               ;; The title of a tool comes from the agent.  It must not look like a diff.
               (funcall (if (duet-approval-question-p approval) #'duet-visible #'duet-visible-line)
                        (duet-render-wrap-diff title))
               'font-lock-face 'duet-waiting)
              "\n"))
    (when command
      (insert (propertize (duet-render-wrap-diff (duet-visible (duet-approval--shell command)))
                          'font-lock-face 'duet-code)
              "\n"))
    ;; The change stands below the header line, which has the keys.
    (when-let ((diff (duet-get-string data :diff)))
      (insert (duet-render-wrap-diff (duet-visible diff)))
      (unless (bolp) (insert "\n")))
    (insert "\n")
    (cl-loop for (label text) in
             `(("Tool" ,(and (not (duet-approval-question-p approval))
                             (duet-approval-tool approval)))
               ("Subject" ,(duet-get-string data :subject))
               ("Session" ,(and session (duet-session-label session (duet-approval-turn-number approval))))
               ("Agent" ,(and session (duet-session-agent session)))
               ("Project" ,(if (duet-connection-host duet-connection)
                               (duet-connection-project duet-connection)
                             (duet-remote-abbreviate (duet-connection-root duet-connection))))
               ("Stale" ,(and (duet-get data :stale)
                              "the agent is gone; an answer continues the session"))
               ("Again" ,(duet-get-string data :reopened))
               ("Options" ,(and (duet-approval-question-p approval)
                                (string-join (mapcar #'car (duet-approval-options approval))
                                             ", ")))
               ("Always" ,(let ((covers (duet-approval-always-covers approval)))
                            (and covers (concat "is for " covers))))
               ("Files" ,(mapconcat (if (file-remote-p (duet-connection-root duet-connection))
                                        #'identity #'abbreviate-file-name)
                                    (duet-get-strings data :paths) ", ")))
             do (when (and text (not (string-empty-p text)))
                  (insert (propertize
                           (concat (propertize (format "%-9s" label) 'font-lock-face 'duet-dim)
                                   (duet-render-wrap-diff (duet-visible-line text)) "\n")
                           'wrap-prefix (make-string 9 ?\s)))))
    (when (duet-get data :truncated)
      ;; In an event the text is missing; the server's reply has it, with notes about cuts.
      (insert (propertize (if (eq data (duet-approval-data approval))
                              "The long text is loading"
                            "The text is too long for one message; parts are left out")
                          'font-lock-face 'duet-failed)
              "\n"))
    (dolist (line (duet-form-lines data))
      (insert "  " line "\n"))
    (unless (duet-approval-question-p approval)
      (cl-loop for answer in (duet-approval-answers approval)
               for number from 1
               unless (duet-approval-plain-p approval number)
               do (insert (propertize (format "%-9s" "Or") 'font-lock-face 'duet-dim)
                          (let ((number number))
                            (make-text-button
                             (format "[%s]" answer) nil 'face 'duet-button 'follow-link t
                             'help-echo "RET, mouse-1: do this"
                             'action (lambda (_) (duet-approval-take approval number))))
                          "\n")))
    (pcase-dolist (`(,heading ,text) `(("Plan" ,(duet-get-string data :plan))
                                       ("Details" ,(duet-approval--details data command))))
      (when text
        (insert "\n" (propertize heading 'font-lock-face 'duet-heading) "\n"
                (replace-regexp-in-string "^" "  " (duet-render-wrap (duet-visible text))) "\n")))
    ;; The input that neither the diff nor the command shows.
    (when (and input (not (duet-approval-question-p approval)))
      (insert "\n" (propertize "Input" 'font-lock-face 'duet-heading) "\n"
              ;; No line of the input must look like a line of a diff.
              (replace-regexp-in-string
               "^" "  " (duet-render-wrap (duet-visible (duet-approval--json input))))
              "\n"))
    (goto-char (point-min))
    (forward-line (1- line))
    (restore-buffer-modified-p nil)))


(defun duet-approval-view-resolved (approval data)
  "Close the buffers that show APPROVAL, which was decided; DATA is the event.
DATA is nil if the decision was made here.  If another client decided and
the buffer is selected, the buffer shows the decision instead: the user's
next key must not reach another buffer."
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

;;; Excerpts

;; A question shows the change directly above its keys, hunk by hunk, as far as the window
;; has room.  Of the rest of the tool's input it shows the beginning and the end.  It says
;; how much is hidden.  `duet-approval-view' shows all.  The server is asked for
;; input that is too long for an event.

(defconst duet-approval-lines 8
  "Number of lines of a tool's input in a question.")

(defconst duet-approval--width 300
  "Number of characters of each such line.")

(defconst duet-approval-heading 60
  "Width of the summary above a tool's input, in columns.")

(defun duet-approval-command-fits-p (command)
  "Return non-nil if the heading of a question shows COMMAND unchanged."
  (and (equal (duet-visible command) (duet-approval-line command))
       (<= (+ 2 (string-width (duet-visible command))) duet-approval-heading)))

(defun duet-approval--shell (command)
  "Return COMMAND after a shell prompt, with its further lines indented."
  (concat "$ " (replace-regexp-in-string "\n" "\n  " command t t)))

(defun duet-approval--without-command (input command)
  "Return INPUT of a tool, without the member that has COMMAND if non-nil."
  (if (null command) input
    (cl-loop for (key value) on input by #'cddr
             unless (eq key :command) append (list key value))))

(defun duet-approval--details (data command)
  "Return the agent's description of its tool in DATA, unless it is COMMAND."
  (when-let ((details (duet-get-string data :details)))
    (unless (and command (duet-approval-says-command-p details command))
      details)))

(defun duet-approval-hunks (approval root)
  "Return the hunks of the change that APPROVAL is about, as texts.
Files are shown relative to ROOT.  An event has the old and the new texts, a
reply a unified diff."
  (let ((data (duet-approval-data approval)))
    (if-let ((diffs (duet-get-objects data :diffs)))
        (cl-mapcan (lambda (diff) (duet-render-hunks diff root)) diffs)
      (when-let ((diff (duet-get-string data :diff)))
        (duet-approval--unified-hunks diff root)))))

(defun duet-approval--unified-hunks (diff root)
  "Return the hunks of DIFF, a unified diff, as texts; files are relative to ROOT."
  (let ((rest (split-string (string-remove-suffix "\n" diff) "\n"))
        (path "") start lines hunks)
    (cl-flet ((end ()
                (when start
                  (push (duet-render-hunk path root start (nreverse lines)) hunks))
                (setq start nil lines nil)))
      (while rest
        (let ((line (pop rest)))
          (cond
           ;; A removed and an added line can look like the names of a file.
           ((and (string-prefix-p "--- " line)
                 (string-prefix-p "+++ " (or (car rest) ""))
                 (string-prefix-p "@@" (or (cadr rest) "")))
            (end)
            (let ((new (substring (pop rest) 4)))
              (setq path (replace-regexp-in-string
                          "\\`[ab]/" "" (if (equal new "/dev/null") (substring line 4) new)))
              ;; A relative name is relative to the session's directory.
              (setq path (duet-remote-local (duet-remote-name path root)))))
           ((string-match "\\`@@ -[0-9,]+ \\+\\([0-9]+\\)" line)
            (let ((next (max 1 (string-to-number (match-string 1 line)))))
              (end)
              (setq start next)))
           (start (push line lines)))))
      (end))
    (nreverse hunks)))

(defun duet-approval-change (approval root room width)
  "Return the change that APPROVAL is about as lines of text, or nil.
Files are shown relative to ROOT.  The lines take ROOM rows of WIDTH columns:
whole hunks as far as they fit, and a line that counts what is hidden."
  (let* ((hunks (mapcar (lambda (hunk) (split-string (duet-visible hunk) "\n"))
                        (duet-approval-hunks approval root)))
         (hunks (mapcar (lambda (hunk) (mapcar #'duet-approval--cut-line hunk)) hunks))
         (rows (lambda (lines)
                 (apply #'+ (mapcar (lambda (line)
                                      (max 1 (ceiling (string-width line) (max 1 width))))
                                    lines))))
         (left (if (<= (funcall rows (apply #'append hunks)) room) most-positive-fixnum
                 (1- room)))
         (shown '()))
    (while (and hunks (<= (funcall rows (car hunks)) left))
      (cl-decf left (funcall rows (car hunks)))
      (setq shown (append shown (pop hunks))))
    ;; Of a hunk that is longer than the room, the beginning is shown.
    (when (and hunks (null shown))
      (let ((hunk (pop hunks))
            (part '()))
        (while (and hunk (or (null (cdr part)) (<= (funcall rows (list (car hunk))) left)))
          (cl-decf left (funcall rows (list (car hunk))))
          (push (pop hunk) part))
        (setq shown (nreverse part))
        (when hunk (push hunk hunks))))
    (append shown
            (when hunks
              ;; A hunk that is shown in part has no heading here.
              (let* ((lines (apply #'append hunks))
                     (headings (cl-count-if (lambda (line) (string-prefix-p "  @@ " line)) lines)))
                (list (format "  … %s%d more lines: [v] View shows all"
                              (pcase headings (0 "") (1 "1 more hunk, ")
                                     (n (format "%d more hunks, " n)))
                              (- (length lines) headings))))))))

(defun duet-approval--cut-line (line)
  "Return LINE of a change, cut with a note if it is too long."
  (let ((more (- (length line) duet-approval--width)))
    (if (<= more 0) line
      (concat (substring line 0 duet-approval--width)
              (format " … %d characters hidden: [v] View shows all" more)))))

(defun duet-approval-excerpt (approval)
  "Return the beginning and the end of the input of APPROVAL's tool.
The value is a list of lines; one of them says how much is hidden.  It is
nil if the summary shows everything.  It leaves out the members that a diff
shows, and a command that the summary shows."
  (let* ((data (duet-approval-data approval))
         (command (duet-approval-command approval))
         (input (duet-approval--without-command
                 (duet-render-beside (duet-approval-input approval)
                                     (duet-get-objects data :diffs)
                                     (duet-get-string data :diff))
                 command))
         (text (cond ((duet-approval-question-p approval)
                      (duet-approval-title approval))
                     ((duet-approval-plan approval))
                     ((null input) "")
                     ((and (consp input) (keywordp (car input)))
                      (string-join (cl-loop for (key value) on input by #'cddr
                                            collect (duet-approval--member key value))
                                   "\n"))
                     (t (duet-approval--json input))))
         (text (string-join
                (cl-remove-if (lambda (part) (or (null part) (string-empty-p part)))
                              (list (and command (not (duet-approval-command-fits-p command))
                                         (duet-approval--shell command))
                                    (duet-approval--details data command)
                                    text))
                "\n")))
    (cond
     ((and (duet-get data :truncated) (null input) (null command))
      (list "… too long to show here: [v] View shows all of it"))
     ((or (string-empty-p text)
          (and (duet-approval-question-p approval)
               (equal text (duet-approval-name approval))))
      nil)
     (t (duet-approval--cut (split-string text "\n"))))))

(defun duet-approval--member (key value)
  "Return the lines for the member KEY of an input, with VALUE.
Further lines are indented, so that none looks like another member."
  (format "%s: %s" (duet-get-name key)
          (replace-regexp-in-string "\n" "\n    "
                                    (if (stringp value) value (duet-approval--json value))
                                    t t)))

(defun duet-approval--cut (lines)
  "Return the first and the last of LINES, and a line for the hidden ones."
  (let* ((left (- (length lines) duet-approval-lines))
         (tail (/ duet-approval-lines 3)))
    (mapcar
     (lambda (line)
       (let ((more (- (length line) duet-approval--width)))
         (duet-visible
          (if (<= more 0) line
            (format "%s … %d characters hidden: [v] View shows all … %s"
                    (substring line 0 (- duet-approval--width 100)) more
                    (substring line -100))))))
     (if (<= left 0) lines
       (append (butlast lines (+ left tail))
               (list (format "… %d more lines, %d characters hidden: [v] View shows all" left
                             (apply #'+ left (mapcar #'length
                                                     (seq-subseq lines
                                                                 (- duet-approval-lines tail)
                                                                 (- tail))))))
               (last lines tail))))))

(defun duet-approval--named (input)
  "Return INPUT with readable names of its members (`duet-get-name')."
  (cond ((vectorp input) (cl-map 'vector #'duet-approval--named input))
        ((and (consp input) (keywordp (car input)))
         (cl-loop for (key value) on input by #'cddr
                  append (list (intern (concat ":" (duet-get-name key)))
                               (duet-approval--named value))))
        (t input)))

(defun duet-approval--json (input)
  "Return INPUT of a tool as JSON for people."
  (if (null input)
      "{}"
    (let ((json-encoding-pretty-print t)
          (json-encoding-default-indentation "  "))
      (condition-case nil
          (json-encode (duet-approval--named input))
        (error (format "%S" input))))))

(defvar duet-approval--fetched (make-hash-table :test #'equal)
  "The ids of the questions that were requested in full.")

(defun duet-approval-complete (approval)
  "Request the parts of APPROVAL that its event lacks from the server, once."
  (when-let* ((id (duet-approval-id approval))
              (connection (and (duet-get (duet-approval-data approval) :truncated)
                               (not (gethash id duet-approval--fetched))
                               (duet-approval-connection approval))))
    (puthash id t duet-approval--fetched)
    (duet-connection-request
     connection 'approval.get (list :approval id)
     :error-fn (lambda (_) (remhash id duet-approval--fetched))
     :success-fn
     (lambda (result)
       (let ((data (copy-sequence (duet-approval-data approval)))
             (whole (duet-get result :approval)))
         (dolist (key '(:tool_input :diff :plan :details :schema :truncated))
           (setq data (plist-put data key (plist-get whole key))))
         (setf (duet-approval-data approval) data)
         ;; An event that repeats the question, as after a restart of the server, fetches it again.
         (unless (duet-get data :truncated) (remhash id duet-approval--fetched))
         (when (eq connection (duet-approval-connection approval))
           (duet-model-announce (duet-connection-model connection) 'approval
                                (duet-approval-session approval connection)
                                approval)))))))

;;; Editing the input

;; The user can change what a tool gets, and allow it with the change.  A new text of a
;; file, or of a part of it, and a command are edited as text, in the major mode of the
;; file.  Other input is edited as JSON.

(defvar-local duet-approval-edit--original nil
  "The text that the buffer had at first.")

(defvar-local duet-approval-edit--member nil
  "The member of the tool's input that the buffer shows as text, or nil for all.")

(defvar-local duet-approval-edit--input nil
  "The whole input of the tool, as JSON, if the buffer shows one member.")

(defun duet-approval-edit--text-member (data)
  "Return the member to edit as text of a question's DATA: its key and its text.
The server names it.  Return nil if there is none, or if its characters are
not all visible: then the user edits JSON, which shows their codes."
  (when-let* ((name (duet-get-string data :input_text_member))
              (key (intern (concat ":" name)))
              (text (duet-get-string data :tool_input key)))
    (and (equal (duet-visible text) text)
         (cons key text))))

(defun duet-approval-edit--mode (data member)
  "Return the major mode for MEMBER of the input in DATA, by the name of its file.
The text itself is the agent's, and does not choose a mode."
  (let* ((paths (duet-get-strings data :paths))
         (mode (cond ((eq member :command) 'sh-mode)
                     ((and paths (null (cdr paths)))
                      (assoc-default (file-name-nondirectory (car paths)) auto-mode-alist
                                     #'string-match-p)))))
    (if (and mode (symbolp mode) (fboundp mode)) mode 'text-mode)))

(defvar duet-approval-edit-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'duet-approval-edit-send)
    (define-key map (kbd "C-c C-k") #'duet-approval-edit-cancel)
    map)
  "Keymap of `duet-approval-edit-mode'.")

(define-derived-mode duet-approval-edit-mode prog-mode "Duet-Input"
  "Major mode to edit the input of a tool, as JSON.

\\{duet-approval-edit-mode-map}"
  (modify-syntax-entry ?\" "\"")
  (modify-syntax-entry ?\\ "\\")
  (setq-local indent-tabs-mode nil
              font-lock-defaults
              '((("\\(\"\\(?:[^\"\\\n]\\|\\\\.\\)*\"\\)[ \t]*:"
                  1 font-lock-keyword-face t)
                 ("\\_<\\(?:true\\|false\\|null\\)\\_>" . font-lock-constant-face)))
              indent-line-function #'indent-relative
              header-line-format '(:eval (duet-approval-edit--header))))

(defvar duet-approval-text-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'duet-approval-edit-send)
    (define-key map (kbd "C-c C-k") #'duet-approval-edit-cancel)
    map)
  "Keymap of `duet-approval-text-mode'.")

(define-minor-mode duet-approval-text-mode
  "Minor mode to edit the text that a tool gets, in the major mode of its file.

\\{duet-approval-text-mode-map}"
  :lighter " Duet-Edit"
  (setq header-line-format (and duet-approval-text-mode
                                '(:eval (duet-approval-edit--header)))))

(defun duet-approval-edit--header ()
  "Return the header line."
  (cond
   ((null duet-approval) "")
   ((not (duet-approval-connection duet-approval))
    (propertize " This is decided already; this text is not used" 'face 'duet-failed))
   (t (cl-flet ((key (command words)
                  (duet-header-key command words
                                   (if duet-approval-text-mode 'duet-approval-text-mode-map
                                     'duet-approval-edit-mode-map))))
        (concat " " (key #'duet-approval-edit-send "Allow with your edit")
                ", " (key #'duet-approval-edit-cancel "Leave it"))))))

(defun duet-approval-edit (approval)
  "Edit the input of the tool of APPROVAL, then allow it.
Earlier edits are kept."
  (interactive (list (duet-approval-here))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (when (duet-approval-question-p approval)
    (user-error "A question has no input to edit"))
  (unless (duet-approval-editable-p approval)
    (user-error "This agent runs the tool with its own input; deny it and say what to run"))
  (duet-approval-check approval)
  (let ((buffer (duet-approval-view--buffer approval 'duet-approval-edit-mode))
        (connection (duet-approval-connection approval))
        (input (duet-approval-input approval)))
    (cond
     (buffer (duet-approval-edit--show buffer))
     ;; An event lacks an input that is too long.
     ((or (duet-get (duet-approval-data approval) :truncated)
          (duet-approval--ambiguous-p input))
      (duet-connection-request
       connection 'approval.get (list :approval (duet-approval-id approval))
       :exact t
       :success-fn
       (lambda (result)
         (if (duet-get result :approval :truncated)
             (message "Duet: the input is too long to edit here")
           (duet-approval-edit--open
            approval connection
            (let ((json-null :null))
              (duet-approval--json (duet-get result :approval :tool_input)))
            (duet-get result :approval))))))
     (t (duet-approval-edit--open approval connection (duet-approval--json input)
                                  (duet-approval-data approval))))))

(defun duet-approval--ambiguous-p (input)
  "Return non-nil if INPUT is nil or contains nil, which is null or {}."
  (cond ((null input) t)
        ((vectorp input) (cl-some #'duet-approval--ambiguous-p input))
        ((consp input) (cl-loop for (_ value) on input by #'cddr
                                thereis (duet-approval--ambiguous-p value)))))

(defun duet-approval-edit--open (approval connection json data)
  "Show a buffer to edit the input in DATA, that of the tool of APPROVAL.
JSON is the text of the input.  CONNECTION is the connection of APPROVAL."
  (let* ((member (duet-approval-edit--text-member data))
         (buffer (generate-new-buffer
                  (format "*duet edit: %s*" (duet-approval-name approval)))))
    (with-current-buffer buffer
      (if (null member)
          (progn (duet-approval-edit-mode)
                 (insert (duet-visible-json json) "\n"))
        (insert (cdr member))
        ;; A mode that fails must not keep the user from the text.
        (condition-case err (funcall (duet-approval-edit--mode data (car member)))
          (error (duet-log "The mode for an edit: %s" (error-message-string err))
                 (fundamental-mode)))
        (setq duet-approval-edit--member (car member)
              duet-approval-edit--input json))
      (goto-char (point-min))
      (setq duet-approval approval
            duet-connection connection
            default-directory (duet-connection-root connection)
            buffer-undo-list nil
            duet-approval-edit--original (buffer-substring-no-properties
                                          (point-min) (point-max)))
      (set-buffer-modified-p nil)
      ;; Its header line needs the question.
      (when member (duet-approval-text-mode)))
    (duet-approval-edit--show buffer)))

(defun duet-approval-edit--show (buffer)
  "Show BUFFER, an input to edit."
  (pop-to-buffer buffer '((display-buffer-reuse-window display-buffer-below-selected)
                          (window-height . 14))))

(defun duet-approval-edit--parse ()
  "Parse the buffer and return its object.
If it is not valid, move point to the mistake and signal an error."
  (let ((start (point))
        (parsed nil))
    (goto-char (point-min))
    (condition-case err
        (progn
          (setq parsed (json-parse-buffer :null-object nil :false-object :json-false))
          (skip-chars-forward " \t\r\n"))
      (json-error
       (let ((place (car (last err))))
         (goto-char (if (integerp place)
                        (max (point-min) (min place (point-max)))
                      (point-max))))
       (user-error "Not valid JSON; see point")))
    (unless (eobp)
      (user-error "Text after the JSON; see point"))
    (goto-char start)
    (unless (hash-table-p parsed)
      (user-error "The input must be an object: { … }"))
    parsed))

(defun duet-approval-edit--changed ()
  "Return the tool's input with the text in the buffer, as a hash table."
  (if (null duet-approval-edit--member)
      (duet-approval-edit--parse)
    (let ((input (json-parse-string duet-approval-edit--input
                                    :null-object nil :false-object :json-false)))
      (puthash (duet-get-name duet-approval-edit--member)
               (buffer-substring-no-properties (point-min) (point-max))
               input)
      input)))

(defun duet-approval-edit-send ()
  "Allow, with the text in the buffer."
  (interactive nil duet-approval-edit-mode duet-approval-text-mode)
  (let ((approval duet-approval)
        (input (save-restriction (widen) (duet-approval-edit--changed))))
    (if (if duet-approval-edit--member
            (equal (gethash (duet-get-name duet-approval-edit--member) input)
                   duet-approval-edit--original)
          (string= (string-trim (buffer-string))
                   (string-trim duet-approval-edit--original)))
        (duet-approval-send approval "approve" "Allowed" :type "function_call")
      (duet-approval-send approval "approve" "Allowed with your edit"
                          :type "function_call" :updated_input input))
    (set-buffer-modified-p nil)
    (quit-window)))

(defun duet-approval-edit-cancel ()
  "Close the buffer without an answer; the next edit continues with its text."
  (interactive nil duet-approval-edit-mode duet-approval-text-mode)
  (quit-window)
  (message "Not answered"))

(provide 'duet-approval-view)
;;; duet-approval-view.el ends here
