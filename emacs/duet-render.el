;;; duet-render.el --- Text of messages  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-render' returns the whole text of a message, with faces.  Streamed text is
;; inserted as it arrives.  duet-markup.el adds the faces of the markup of an agent's
;; text when a window shows it.

;;; Code:

(require 'ansi-color)
(require 'cl-lib)
(require 'diff-mode)
(require 'subr-x)
(require 'duet-look)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-visible)

(declare-function duet-whole-show "duet-transcript" ())

;;; Messages

(defvar duet-render-functions nil
  "Functions that add text to a message.
Each is called with a `duet-message' and returns nil or a text without a
newline at its end, to show below the message.  They are not called for the
messages that stream: an agent's text and thoughts.")

(defun duet-render (message)
  "Return the text of MESSAGE with faces, without a newline at its end."
  (let ((text (pcase (duet-message-kind message)
                ('prompt (duet-render--prompt message))
                ('text (duet-render-prose (duet-message-text message)))
                ('thinking (concat (duet-render--thinking-heading message) "\n"
                                   (propertize
                                    (duet-render-prose (duet-message-text message))
                                    'face 'duet-thinking)))
                ('tool (duet-visible (duet-render--tool message)))
                ('plan (duet-render--plan message))
                ('diff (duet-visible (duet-render--diff message)))
                ('answer (duet-visible (duet-render--answer message)))
                ('content "")
                ('sketch (propertize (concat (duet-look-sign "✻") " Thought")
                                     'face 'duet-thinking))
                ('error (propertize (concat (duet-look-sign "✗") " "
                                            (duet-message-text message))
                                    'face 'duet-failed))
                (_ (propertize (concat (duet-look-sign "■") " "
                                       (duet-message-text message))
                               'face 'duet-dim)))))
    (unless (memq (duet-message-kind message) '(text thinking))
      (setq text (duet-render-wrap (duet-visible-prose text))))
    (dolist (function (unless (duet-render-streams-p message) duet-render-functions))
      (when-let ((more (duet-log-guard "duet-render-functions"
                         (funcall function message))))
        (setq text (if (string-empty-p text) more (concat text "\n" more)))))
    (duet-render-below message text)))

(defun duet-render-below (message text)
  "Return TEXT of MESSAGE, indented below the call of its sub-agent.
The first line of a tool call is indented already."
  (let ((nesting (duet-render--nesting message))
        (rest (if (duet-tool-p message) (string-search "\n" text) 0)))
    (if (or (string-empty-p nesting) (null rest))
        text
      (concat (substring text 0 rest)
              (propertize (substring text rest)
                          'line-prefix nesting 'wrap-prefix nesting)))))


(defun duet-render-streams-p (message)
  "Return non-nil if MESSAGE streams: its text grows at the end."
  (memq (duet-message-kind message) '(text thinking)))

(defun duet-render-folded-p (message)
  "Return non-nil if MESSAGE is folded at first."
  (pcase (duet-message-kind message)
    ((or 'thinking 'diff) t)
    ('tool (null (duet-tool-diffs message)))))

(defun duet-render-summary (message)
  "Return a short summary of the result of MESSAGE, a tool call, or nil."
  (when (duet-tool-p message)
    (let ((result (duet-tool-result message)))
      (cond
       ((duet-render--refused-p message) (duet-render--refusal message))
       ((or (null result) (string-blank-p result)) nil)
      ;; Only the beginning of the text may be loaded.
       ((duet-message-cut message) (format "more than %d characters" (length result)))
       (t (duet-render--in-brief (duet-render--unfenced result)
                                 (eq (duet-tool-status message) 'failed)
                                 (member (duet-tool-tool-kind message)
                                         '("read" "search" "fetch"))))))))

(defun duet-render--in-brief (text failed long)
  "Return a short summary of TEXT, the result of a tool, or nil if it is empty.
The summary is the last line, or the number of lines if that is a lone word.
If the tool has FAILED, an earlier line is better than the number.  If LONG is
non-nil, return the number of several lines, as for the text of a file."
  (let ((count (duet-render--count-lines text))
        (lines (nreverse (duet-render--last-lines text))))
    (cond
     ((null lines) nil)
     ((and long (not failed) (> count 1)) (format "%d lines" count))
     ((not (duet-render--lone-p (car lines))) (car lines))
     ((and failed (cl-find-if-not #'duet-render--lone-p lines)))
     (t (format "%d line%s" count (if (= count 1) "" "s"))))))

(defconst duet-render--fence "\\(?:```+\\|~~~+\\)"
  "Regexp for the fence of a block of code.")

(defconst duet-render--reach 2000
  "Maximum distance of examined lines from the ends of a tool's result.")

(defun duet-render--unfenced (text)
  "Return TEXT without a fence around it, and without blank lines at its end."
  (let ((text (duet-render--trim-end text)))
    ;; Examine only the ends of the text: it may be long.
    (if (string-match (format "\\`[ \t\n]*%s[^`\n]*\n" duet-render--fence)
                      (substring text 0 (min (length text) duet-render--reach)))
        (let ((beg (match-end 0)))
          (substring text beg
                     (max beg (or (string-match (format "\n?[ \t]*%s\\'" duet-render--fence) text
                                                (max (1- beg) (- (length text) 100)))
                                  (length text)))))
      text)))

(defun duet-render--lone-p (line)
  "Return non-nil if LINE is a lone word without information, such as a bracket.
Text in a language without spaces is not a lone word."
  (and (not (string-match-p "[[:space:]]" line))
       (= (length line) (string-width line))))

(defun duet-render--last-lines (text)
  "Return the last lines of TEXT without blank lines and fences, as a list."
  (cl-remove-if (lambda (line)
                  (string-match-p (format "\\`%s" duet-render--fence) line))
                (mapcar (lambda (line) (duet-visible-line (ansi-color-filter-apply line)))
                        (split-string (substring text (max 0 (- (length text) duet-render--reach)))
                                      "[\r\n]+[ \t]*" t "[ \t\r\n]+"))))

(defun duet-render--count-lines (text)
  "Return the number of lines of TEXT."
  (let ((count 0)
        (place 0))
    (while (and place (< place (length text)))
      (setq count (1+ count)
            place (when-let ((newline (string-search "\n" text place))) (1+ newline))))
    count))


(defun duet-render--prompt (message)
  "Return the text of MESSAGE, a prompt."
  (concat (duet-render--shown
           (propertize (duet-look-signed "❯" 'duet-prompt)
                       'help-echo (when-let ((number (duet-message-turn-number message)))
                                    (concat "turn " (duet-visible-line number)))))
          (if (duet-message-queued-p message)
              (duet-render--shown
               (propertize (concat "("
                                   (when-let ((number (duet-message-turn-number message)))
                                     (concat (duet-visible-line number) ": "))
                                   "queued, e edits it, k takes it back) ")
                           'face 'duet-running
                           'help-echo "M-<up>, M-<down>: run it earlier or later"))
            "")
          (propertize (duet-render-wrap (duet-visible-trim (duet-message-text message)))
                      'face 'duet-prompt)
          (or (duet-render--rest message "  ") "")))

(defun duet-render--thinking-heading (message)
  "Return the first line of MESSAGE, a thought of an agent."
  (duet-render--foldable
   (propertize (concat (duet-look-sign "✻")
                       (if (duet-message-open message) " Thinking" " Thought"))
               'face 'duet-thinking)))

(defun duet-render--plan (message)
  "Return the text of MESSAGE, a plan."
  (concat
   (propertize "Plan" 'face 'duet-heading)
   (mapconcat
    (lambda (entry)
      (let ((text (or (duet-get-string entry :content) "")))
        (pcase (duet-get-string entry :status)
          ("completed" (concat "\n  " (duet-look-signed "✓" 'duet-done)
                               (propertize text 'face 'duet-dim)))
          ("in_progress" (concat "\n  " (duet-look-signed "▸" 'duet-running) text))
          (_ (concat "\n  " (duet-look-signed "○" 'duet-dim) text)))))
    (duet-message-data message) "")))

(defun duet-render-decider (by &optional where)
  "Return the decider of a question in words; BY is the server's name for it.
WHERE is the client in which the user answered."
  (pcase by
    ((or 'nil "user") (concat "by you" (and where (concat " in " (duet-visible-line where)))))
    ("rule=session" "by a rule of the session")
    ("rule=project" "by a rule of the project")
    ("rule=user" "by a rule of your configuration")
    ("rule=tools" "by the tools that the session may use")
    ("mode=bypassPermissions" "by the session, which asks nothing")
    ("mode=acceptEdits" "by the session, which accepts edits")
    ((guard (string-prefix-p "rule=" by))
     (concat "by rule " (duet-visible-line (string-remove-prefix "rule=" by))))
    ((guard (string-prefix-p "mode=" by))
     (concat "by " (duet-visible-line (string-remove-prefix "mode=" by)) " mode"))
    (_ (concat "by " (duet-visible-line by)))))

(defun duet-render--answer (message)
  "Return the text of MESSAGE, the answer to a question."
  (let* ((data (duet-message-data message))
         (denied (equal (duet-get-string data :status) "denied"))
         (text (duet-get-string data :response))
         ;; These words of the server are not a reason.
         (declined (and denied (equal text "declined")))
         (said (or (and (not (and denied (equal text "denied"))) (not declined) text)
                   (duet-get-string data :explanation)))
         (by (duet-render-decider (duet-get-string data :decided_by)
                                  (duet-get-string data :decided_in))))
    (concat (duet-look-signed "❯" 'duet-prompt)
            (propertize
             (pcase (duet-get-string data :status)
               ("denied" (format "%s %s: " (if declined "Declined" "Denied") by))
               ("approved" (format "Allowed %s, with an edit: " by))
               (_ (format "Answered %s: " by)))
             'face 'duet-dim)
            (or (duet-get-string data :title) (duet-get-string data :tool_name)
                "a question")
            (if said
                (concat "\n" (propertize (concat (duet-render--shown "  ")
                                                (propertize (duet-render-wrap (duet-visible-trim said))
                                                            'face 'duet-prompt))
                                        'wrap-prefix "  "))
              ""))))


;;;; What is said elsewhere

;; A transcript says each thing once.  A tool call shows its denial and the change of a
;; file.  While the tool waits for the user, the question shows what it would do.

(defun duet-render-said-p (message)
  "Return non-nil if another part of the transcript says what MESSAGE says."
  (pcase (duet-message-kind message)
    ('tool (duet-render--asked-p message))
    ('answer (duet-render--answered-call message))
    ('diff (duet-render--changed-by-one-call-p message))))

(defun duet-render--asked-p (tool)
  "Return non-nil if an open question is about TOOL."
  (let ((session (duet-message-session tool)))
    (and session (duet-session-model session)
         (cl-some (lambda (approval)
                    (and (equal (duet-approval-call approval) (duet-tool-id tool))
                         (equal (duet-approval-turn approval) (duet-message-turn tool))))
                  (duet-session-approvals session)))))

(defun duet-render--of-turn (message)
  "Return the tool calls of the turn of MESSAGE that are loaded."
  (let ((session (duet-message-session message)))
    (and session
         (cl-loop for other in (duet-session-order session)
                  until (and (eq (duet-message-kind other) 'prompt)
                             (equal (duet-message-turn other) (duet-message-turn message)))
                  when (and (duet-tool-p other)
                            (equal (duet-message-turn other) (duet-message-turn message)))
                  collect other))))

(defun duet-render--answered-call (message)
  "Return the tool call that shows the denial in MESSAGE, an answer, or nil."
  (let ((data (duet-message-data message)))
    (and (equal (duet-get-string data :status) "denied")
         (cl-find-if (lambda (tool)
                       (and (equal (duet-tool-approval tool) (duet-get-string data :approval))
                            (not (eq (duet-tool-status tool) 'completed))))
                     (duet-render--of-turn message)))))

(defun duet-render--changed-by-one-call-p (message)
  "Return non-nil if one tool call shows the change of a file in MESSAGE."
  (let* ((root (duet-render--root message))
         (data (duet-message-data message))
         (name (lambda (path)
                 (duet-remote-local (duet-remote-name (or path "") root))))
         (path (funcall name (duet-get-string data :path)))
         ;; The changes of the file, call by call.
         (calls (cl-loop for tool in (duet-render--of-turn message)
                         for diffs = (and (eq (duet-tool-status tool) 'completed)
                                          (cl-remove-if-not
                                           (lambda (diff)
                                             (equal path (funcall name (duet-get-string diff :path))))
                                           (duet-tool-diffs tool)))
                         when diffs collect diffs)))
    (when (and calls (null (cdr calls)))
      (let ((counts (mapcar (lambda (diff) (duet-lines-count (duet-render--hunks diff)))
                            (car calls))))
        (and (eql (apply #'+ (mapcar #'car counts)) (duet-get-number data :added))
             (eql (apply #'+ (mapcar #'cdr counts)) (duet-get-number data :removed)))))))


;;;; Tools


(defconst duet-render--heading 1000
  "Maximum width of a tool call's title, in columns.")

(defun duet-render--root (message)
  "Return the working directory of the agent of MESSAGE."
  (let ((session (duet-message-session message)))
    (let ((model (duet-session-model session))
          (cwd (duet-session-cwd session)))
      (cond ((null cwd) (duet-model-root model))
            ;; The agent's directory is on the machine of the project.
            (model (duet-remote-name cwd (duet-model-root model)))
            (t cwd)))))

(defun duet-render--tool (tool)
  "Return the text of TOOL, a tool call."
  (let* ((name (or (duet-tool-name tool) (duet-tool-tool-kind tool) "tool"))
         (title (duet-render--title (or (duet-tool-title tool) name) name))
         (root (duet-render--root tool))
         (input (duet-tool-input tool))
         (result (duet-tool-result tool))
         (diffs (duet-tool-diffs tool)))
    (concat
     (duet-render--nesting tool)
     (if (duet-render--refused-p tool)
         (propertize (duet-look-sign "⊘") 'face 'duet-dim)
       (duet-look-state (or (duet-tool-status tool) 'pending)))
     " "
     (duet-render--foldable
      (propertize (truncate-string-to-width title duet-render--heading nil nil "…")
                  'face 'duet-heading))
     (if-let ((subject (duet-render--subject tool title)))
         (concat " " (duet-render--foldable
                      (propertize (truncate-string-to-width subject 70 nil nil "…")
                                  'face 'duet-code)))
       "")
     (if diffs (concat " " (duet-render--counts diffs)) "")
     (mapconcat (lambda (path)
                  (concat "\n  " (duet-render-file path root)))
                ;; The hunks name the changed files.
                (cl-set-difference (duet-tool-paths tool)
                                   (mapcar (lambda (diff) (duet-get-string diff :path)) diffs)
                                   :test #'equal)
                "")
     (if-let ((rest (duet-render--unsaid tool title (duet-render-beside input diffs))))
         (duet-render--input rest)
       "")
     (mapconcat (lambda (diff) (concat "\n" (duet-render--tool-diff diff root)))
                diffs "")
     (if (duet-render--refused-p tool)
         (concat "\n  " (propertize (duet-render--refusal tool) 'face 'duet-dim))
       "")
     ;; The result of a denied call is the agent's name for the denial.
     (if (and result (not (string-blank-p result)) (not (duet-render--refused-p tool)))
         (concat "\n" (duet-render--cut (duet-render--colored (duet-render--trim-end result))
                                        'duet-dim "  " tool))
       "")
     (or (duet-render--rest tool "  ") ""))))

(defun duet-render--title (title name)
  "Return the first line of TITLE that is not a fence of a block of code, or NAME."
  (or (cl-find-if-not (lambda (line)
                        (and (length< line duet-render--reach) ; Emacs 28 cannot match longer ones
                             (string-match-p (format "\\`%s[^`]*\\'" duet-render--fence) line)))
                      (split-string title "[\r\n]+" t "[ \t]+"))
      name))

(defun duet-render--subject (tool title)
  "Return the text behind TITLE, the heading of TOOL, or nil.
It is the first line of a command that TITLE does not contain.  If TITLE is a
lone word, it is a file, or else the first text in the input."
  (let* ((input (duet-tool-input tool))
         (command (duet-get input :command))
         (text (cond ((stringp command) (unless (string-search command title) command))
                     ((not (duet-render--lone-p title)) nil)
                     ((car (duet-tool-paths tool))
                      (substring-no-properties
                       (duet-render-file (car (duet-tool-paths tool)) (duet-render--root tool))))
                     ((and (consp input) (keywordp (car input)))
                      (cl-loop for (_ value) on input by #'cddr
                               when (and (stringp value) (not (string-blank-p value)))
                               return value)))))
    (and text (car (split-string text "\n" t)))))

(defun duet-render--unsaid (tool title input)
  "Return the members of INPUT of TOOL that the lines above them do not show.
Those have TITLE, and a command or the names of files."
  (if (not (and (consp input) (keywordp (car input))))
      input
    (let* ((command (duet-get input :command))
           ;; `string-trim' takes quadratic time on long white space.
           (said (and (stringp command)
                      (< (length command) 70)
                      (not (string-search "\n" (string-trim-right command)))
                      (or (string-search command title)
                          (equal (string-trim command)
                                 (string-trim (or (duet-render--subject tool title) "")))))))
      (cl-loop for (key value) on input by #'cddr
               unless (or (and said (eq key :command))
                          (and (memq key '(:file_path :filePath :path :notebook_path))
                               (member value (duet-tool-paths tool)))
                          ;; After the call, the hunks of the whole text say enough.
                          (and (memq key '(:content :contents :file_text))
                               (stringp value)
                               (eq (duet-tool-status tool) 'completed)
                               (duet-tool-diffs tool)
                               (cl-every (lambda (diff)
                                           (string-search (or (duet-get-string diff :new_text) "")
                                                          value))
                                         (duet-tool-diffs tool))))
               append (list key value)))))

(defun duet-render--trim-end (text)
  "Return TEXT without the white space at its end."
  (let ((end (length text)))
    (while (and (> end 0) (memq (aref text (1- end)) '(?\s ?\t ?\n ?\r)))
      (setq end (1- end)))
    (substring text 0 end)))

(defun duet-render--refused-p (tool)
  "Return non-nil if TOOL did not run because it was denied."
  (and (duet-tool-refused-by tool)
       (not (eq (duet-tool-status tool) 'completed))))

(defun duet-render--refusal (tool)
  "Return a remark that TOOL was denied, with the decider and the reason."
  (let ((by (duet-tool-refused-by tool))
        (why (duet-tool-refusal tool)))
    (duet-visible-line
     (concat "not run: denied " (duet-render-decider by (duet-tool-refused-in tool))
             ;; This word of the server is not a reason.
             (if (and why (not (equal why "denied"))) (concat ": " why) "")))))

(defun duet-render--nesting (message)
  "Return the indentation of MESSAGE, two spaces for each call that contains it."
  (let ((depth 0)
        (session (duet-message-session message)))
    (while (and message (duet-message-parent message) (< depth 8))
      (setq depth (1+ depth)
            message (duet-session-message session (concat (duet-message-turn message) "/"
                                                          (duet-message-parent message)))))
    (make-string (* 2 depth) ?\s)))

(defun duet-render--colored (text)
  "Return TEXT, the output of a program, with its colours as faces."
  (if (not (string-search "\e[" text))
      text
    (let* ((ansi-color-context nil)
           (colored (ansi-color-apply text)))
      ;; Without font-lock, `font-lock-face' has no effect.
      (let ((place 0))
        (while (< place (length colored))
          (let ((next (next-single-property-change place 'font-lock-face colored
                                                   (length colored)))
                (face (get-text-property place 'font-lock-face colored)))
            (when face (put-text-property place next 'face face colored))
            (setq place next))))
      colored)))

(defun duet-render-beside (input diffs &optional unified)
  "Return the members of a tool's INPUT that DIFFS do not show.
UNIFIED is the same change as a unified diff; a question may have only that.
Without a change, return INPUT."
  (if (or (not (or diffs unified)) (not (and (consp input) (keywordp (car input)))))
      input
    (cl-flet ((shown-p (value &rest keys)
                (and (stringp value)
                     (if diffs
                         (cl-some (lambda (diff)
                                    (cl-some (lambda (key) (equal value (plist-get diff key)))
                                             keys))
                                  diffs)
                       (if (equal keys '(:path))
                           (string-search (file-name-nondirectory value) unified)
                         (cl-every (lambda (line) (string-search line unified))
                                   (split-string value "\n")))))))
      (cl-loop for (key value) on input by #'cddr
               unless (or (and (memq key '(:file_path :filePath :path :notebook_path))
                               (shown-p value :path))
                          (and (memq key '(:content :contents :text :new_string :newString
                                           :new_text :newText :new_str :old_string :oldString
                                           :old_text :oldText :old_str :file_text))
                               (shown-p value :old_text :new_text)))
               append (list key value)))))

(defun duet-render--input (input)
  "Return the lines of INPUT, the input of a tool."
  (cond
   ((stringp input) (concat "\n" (duet-render--cut input 'duet-dim "  ")))
   ((and (consp input) (keywordp (car input)))
    (let (lines)
      (cl-loop for (key value) on input by #'cddr
               do (push (concat "\n  "
                                (propertize (concat (duet-get-name key) ": ")
                                            'face 'duet-dim)
                                (string-trim-left
                                 (duet-render--cut
                                  (cond ((stringp value) value)
                                        ((memq value '(nil :json-false)) "no")
                                        ((eq value t) "yes")
                                        ((numberp value) (number-to-string value))
                                        (t (condition-case nil (json-serialize value)
                                             (error (format "%S" value)))))
                                  nil "    ")))
                        lines))
      (apply #'concat (nreverse lines))))
   (t "")))


;;;; Diffs

(defvar duet-render--known-hunks (make-hash-table :test #'eq :weakness 'key)
  "A cache of the hunks of tools' diffs, which never change.")

(defun duet-render--hunks (diff)
  "Return the hunks of DIFF, the old and the new text of a file."
  (or (gethash diff duet-render--known-hunks)
      (puthash diff (duet-lines-hunks (duet-get-string diff :old_text)
                                      (duet-get-string diff :new_text))
               duet-render--known-hunks)))

(defun duet-render-counts (added removed)
  "Return the numbers of lines ADDED and REMOVED as text."
  (concat (propertize (format "+%d" added) 'face 'duet-added) " "
          (propertize (format "%s%d" (duet-look-sign "−") removed)
                      'face 'duet-removed)))

(defun duet-render--counts (diffs)
  "Return the numbers of added and removed lines of DIFFS of a tool call, as text."
  (let ((counts (mapcar (lambda (diff) (duet-lines-count (duet-render--hunks diff)))
                        diffs)))
    (duet-render-counts (apply #'+ (mapcar #'car counts))
                        (apply #'+ (mapcar #'cdr counts)))))

(defun duet-render--tool-diff (diff root)
  "Return DIFF of a tool call in the directory ROOT as text."
  (if-let ((hunks (duet-render-hunks diff root)))
      (string-join hunks "\n")
    (concat "  " (duet-render-file (or (duet-get-string diff :path) "") root)
            (propertize " is unchanged" 'face 'duet-dim))))

(defun duet-render-hunks (diff root)
  "Return the hunks of DIFF of a tool call in the directory ROOT as texts."
  (mapcar (lambda (hunk)
            (duet-render-hunk (or (duet-get-string diff :path) "") root
                              (+ (duet-lines-hunk-new hunk)
                                 ;; The texts may be a part of the file.
                                 (max 0 (1- (or (duet-get-number diff :line) 1))))
                              (duet-lines-hunk-lines hunk)))
          (duet-render--hunks diff)))

(defun duet-render-hunk (path root start lines)
  "Return a hunk of the file PATH, relative to ROOT, as text.
START is the number of its first line in the new text.  LINES are its lines,
each with its sign."
  ;; The heading has the line of the first change, not of the context before it.
  (let ((line (+ start (or (cl-position ?\s lines :test-not #'eq
                                        :key (lambda (line) (if (string-empty-p line) ?\s (aref line 0))))
                           0))))
    (concat "  " (propertize "@@ " 'face 'diff-hunk-header)
            (propertize (duet-render-file path root line) 'face 'diff-hunk-header)
            (propertize (format ":%d" line) 'face 'diff-hunk-header) "\n"
            (duet-render-diff (string-join lines "\n")))))

(defun duet-render-diff (text)
  "Return TEXT, lines of a unified diff, with the faces of `diff-mode'."
  (string-remove-suffix
   "\n"
   (mapconcat
    (lambda (line)
      (concat
       (duet-render--shown "  ")
       ;; Include the newline, so that the background extends to the window's edge.
       (propertize (concat line "\n") 'face
                   (pcase (and (> (length line) 0) (aref line 0))
                     ((guard (string-match-p "\\`\\(---\\|\\+\\+\\+\\) " line))
                      'diff-file-header)
                     (?+ 'diff-added)
                     (?- 'diff-removed)
                     (?@ 'diff-hunk-header)
                     (_ 'diff-context)))))
    (split-string (duet-render--cut (string-remove-suffix "\n" text) nil "") "\n")
    "")))

(defun duet-render--diff (message)
  "Return the text of MESSAGE, the change of a file by a turn."
  (let* ((data (duet-message-data message))
         (root (duet-render--root message))
         (diff (duet-get-string data :diff))
         (path (or (duet-get-string data :path) "")))
    (concat (duet-look-signed "±" 'duet-heading)
            (duet-render-file (duet-remote-local (duet-remote-name path root)) root) " "
            (duet-render-counts (or (duet-get-number data :added) 0)
                                (or (duet-get-number data :removed) 0))
            (if diff
                (duet-render--foldable (propertize "  changed by this turn"
                                                   'face 'duet-dim))
              (propertize (substitute-command-keys
                           "  changed by this turn, \\<duet-transcript-mode-map>\\[duet-diff] shows how")
                          'face 'duet-dim))
            (if diff (concat "\n" (duet-render-diff diff)) "")
            (if (duet-get data :truncated)
                (propertize
                 (substitute-command-keys
                  "\n  … cut: \\<duet-transcript-mode-map>\\[duet-diff] shows all of this change")
                 'face 'duet-dim)
              ""))))

;;; Parts of text

;; The views of messages use these functions: wrapped lines, text that is not copied,
;; text that a click folds, the beginning of long text, file names.

(defcustom duet-render-lines 200
  "Maximum number of lines to show of a tool's result or of a diff."
  :type 'natnum
  :group 'duet)

(defconst duet-render--characters 20000
  "Maximum number of characters to show of a tool's result or of a diff.")

(defun duet-render-prose (text &optional column)
  "Return TEXT, prose that begins in COLUMN, ready for insertion."
  (duet-render-wrap (duet-visible-prose text) column))

(defconst duet-render-line-length 5000
  "Maximum length of a line, in characters.
Emacs before version 29 displays much longer lines very slowly.  Inserted
line ends have the text property `duet-show', so they are not copied.")

(defun duet-render-wrap (text &optional column indent)
  "Return TEXT, which begins in COLUMN, with its long lines broken.
INDENT, a string that is not copied, follows each break.
A text gets the same breaks as a whole and piece by piece."
  (let ((column (or column 0))
        (length (length text))
        (start 0)
        (newline -1)
        (parts '()))
    (if (not (duet-render--long-p text column))
        text
      (while (< start length)
        (when (and newline (< newline start))
          (setq newline (string-search "\n" text start)))
        (let ((end (or newline length))
              (room (- duet-render-line-length column)))
          (if (> (- end start) room)
              (progn
                (push (substring text start (+ start room)) parts)
                (push (propertize (concat "\n" indent) 'duet-show t) parts)
                (setq start (+ start room)
                      column 0))
            (push (substring text start (min length (1+ end))) parts)
            (setq column (if newline 0 (+ column (- end start)))
                  start (1+ end)))))
      (apply #'concat (nreverse parts)))))

(defun duet-render--long-p (text column)
  "Return non-nil if TEXT, which begins in COLUMN, has a line to break."
  (let ((length (length text))
        (start (- column)))
    (while (and start (< (+ start duet-render-line-length) length))
      ;; With a newline in reach the line is short; the last one in reach is best.
      (let ((next (string-search "\n" text (max 0 start))))
        (setq start (and next (<= (- next start) duet-render-line-length) (1+ next)))))
    (null start)))

(defun duet-render-wrap-diff (text)
  "Return TEXT, a diff, with its long lines broken.
The rest of a broken line is indented, so it never looks like a line of a diff."
  (duet-render-wrap text nil "  "))

(defun duet-render--foldable (text)
  "Return TEXT, the beginning of a section, so that a click folds the section."
  (propertize text 'mouse-face 'highlight 'duet-fold t
              'help-echo "mouse-1, TAB: fold or unfold"))

(defun duet-render--shown (text)
  "Return TEXT as text that is shown, but not copied."
  (propertize text 'duet-show t))

(defconst duet-render--path 4096
  "Maximum length of a file name, in characters.
The conversion of a longer one to a relative name takes quadratic time.")

(defun duet-render-file (path &optional root line)
  "Return PATH as text that `duet-transcript-visit' can visit, at LINE.
The text is relative to ROOT if PATH is inside."
  (let ((shown (cond ((length> path duet-render--path)
                      (concat (substring path 0 duet-render--path) "…"))
                     ((and root (duet-remote-inside path root)))
                     (t (duet-remote-abbreviate path)))))
    (propertize (string-replace "\n" "\\n" shown) 'duet-file path 'duet-line line
                'mouse-face 'highlight 'help-echo "mouse-1, RET: visit this file")))

(defun duet-render--rest (message indent)
  "Return a line with INDENT that loads the rest of MESSAGE, or nil if complete."
  (when (duet-message-cut message)
    (concat "\n" indent
            (propertize (if (eq (duet-message-cut message) 'loading) "… the rest is being loaded"
                          "… cut: the rest is not loaded yet")
                        'face 'link 'mouse-face 'highlight
                        'duet-action #'duet-whole-show 'duet-rest message
                        'help-echo "RET, mouse-1: load all of it"))))

(defun duet-render--cut (text face indent &optional message)
  "Return the beginning of TEXT in FACE, with INDENT, and a link to the rest.
If TEXT is the result of MESSAGE, its rest may not be loaded yet."
  (let* ((cut (> (length text) duet-render--characters))
         (part (if cut (substring text 0 duet-render--characters) text))
         (lines (split-string part "\n"))
         (left (nthcdr duet-render-lines lines)))
    (when left (setq lines (butlast lines (length left))))
    (concat
     (mapconcat (lambda (line)
                 (let ((line (copy-sequence line)))
                   (when face (add-face-text-property 0 (length line) face t line))
                   (concat (duet-render--shown indent) (duet-render-wrap line nil indent))))
                lines "\n")
     (if (or cut left)
         (concat "\n" indent
                 (propertize (format (if (and message (duet-message-cut message))
                                         "… more than %d characters"
                                       "… %d characters in all")
                                     (length text))
                             'face 'link 'mouse-face 'highlight
                             'duet-action #'duet-whole-show 'duet-whole text 'duet-rest message
                             'help-echo "RET, mouse-1: show all of it"))
       ""))))

;;; Differences between two texts

;; An agent sends an edit as the old and the new text.  These functions return the
;; hunks, by the greedy algorithm of E. Myers, "An O(ND) Difference Algorithm and Its
;; Variations" (1986).  The time grows with the number of differences.  Beyond a limit,
;; everything between the common beginning and the common end is one change.

(defconst duet-lines--most 150
  "Maximum number of differing lines for the search for the shortest path.
That search takes some 5 ms.")

(defconst duet-lines--context 3
  "Number of unchanged lines around a change.")

(cl-defstruct (duet-lines-hunk (:copier nil))
  "A hunk: a range of lines in which two texts differ."
  (old 1 :documentation "The number of its first line in the old text.")
  (new 1 :documentation "The number of its first line in the new text.")
  (lines nil :documentation "Its lines, each with a space, minus or plus before it."))

(defun duet-lines--of (text)
  "Return the lines of TEXT as a vector, which is empty for nil."
  (if (or (null text) (string-empty-p text)) []
    (vconcat (split-string (string-remove-suffix "\n" text) "\n"))))

(defun duet-lines-hunks (old new)
  "Return the differences from the text OLD to NEW, a list of `duet-lines-hunk'.
Nil is a text without lines."
  (let* ((a (duet-lines--of old))
         (b (duet-lines--of new))
         (end-a (length a))
         (end-b (length b))
         (begin 0))
    (while (and (< begin end-a) (< begin end-b)
                (string= (aref a begin) (aref b begin)))
      (cl-incf begin))
    (while (and (> end-a begin) (> end-b begin)
                (string= (aref a (1- end-a)) (aref b (1- end-b))))
      (cl-decf end-a)
      (cl-decf end-b))
    (duet-lines--group a b (duet-lines--matches a b begin end-a end-b))))

(defun duet-lines-count (hunks)
  "Return the numbers of lines that HUNKS add and remove, as a cons."
  (let ((added 0) (removed 0))
    (dolist (hunk hunks)
      (dolist (line (duet-lines-hunk-lines hunk))
        (pcase (aref line 0)
          (?+ (cl-incf added))
          (?- (cl-incf removed)))))
    (cons added removed)))

(defun duet-lines--matches (a b begin end-a end-b)
  "Return the equal lines of the vectors A and B as a list of (I . J), in order.
The lines before BEGIN, and from END-A and END-B on, are equal."
  (nconc (cl-loop for i below begin collect (cons i i))
         (duet-lines--shortest a b begin end-a end-b)
         (cl-loop for i from end-a below (length a)
                  for j from end-b collect (cons i j))))

(defun duet-lines--shortest (a b begin end-a end-b)
  "Return the equal lines of A and B on the shortest path from A to B.
The path leads from BEGIN to END-A and END-B.  Return nil if it is longer
than `duet-lines--most'."
  (let* ((n (- end-a begin))
         (m (- end-b begin))
         (most (min (+ n m) duet-lines--most))
         (middle (1+ most))
         (far (make-vector (+ 3 (* 2 most)) 0))
         (trace '())
         (found nil)
         (d 0))
    (unless (or (zerop n) (zerop m))
      (while (and (not found) (<= d most))
        (push (copy-sequence far) trace)
        (cl-loop
         for k from (- d) to d by 2
         for x = (if (duet-lines--down-p far middle k d) (aref far (+ middle k 1))
                   (1+ (aref far (+ middle k -1))))
         for y = (- x k)
         until found
         do (while (and (< x n) (< y m)
                        (string= (aref a (+ begin x)) (aref b (+ begin y))))
              (setq x (1+ x) y (1+ y)))
         (aset far (+ middle k) x)
         (when (and (>= x n) (>= y m)) (setq found t)))
        (setq d (1+ d)))
      (when found (duet-lines--back trace begin n m middle)))))

(defun duet-lines--down-p (far middle k d)
  "Return non-nil if the path to the diagonal K with D steps comes from above.
FAR has the ends of the other paths, with the diagonal 0 at MIDDLE."
  (or (= k (- d))
      (and (/= k d)
           (< (aref far (+ middle k -1)) (aref far (+ middle k 1))))))

(defun duet-lines--back (trace begin n m middle)
  "Return the equal lines on the path back from N and M, by TRACE.
Add BEGIN to each number.  MIDDLE is the index of the diagonal 0."
  (let ((x n) (y m)
        (d (1- (length trace)))
        (same '()))
    (dolist (far trace)
      (let* ((k (- x y))
             (before (if (duet-lines--down-p far middle k d) (1+ k) (1- k)))
             (x0 (if (zerop d) 0 (aref far (+ middle before))))
             (y0 (if (zerop d) 0 (- x0 before))))
        (while (and (> x x0) (> y y0))
          (setq x (1- x) y (1- y))
          (push (cons (+ begin x) (+ begin y)) same))
        (setq x x0 y y0 d (1- d))))
    same))

(defun duet-lines--group (a b same)
  "Return the hunks from A to B; SAME is the list of their equal lines."
  (let ((hunks '())
        (i 0) (j 0)
        hunk quiet)
    (cl-flet
        ((change (sign line)
           (unless hunk
             (let ((before (min duet-lines--context i j)))
               (setq hunk (make-duet-lines-hunk :old (1+ (- i before)) :new (1+ (- j before))))
               (cl-loop for n from (- i before) below i
                        do (push (concat " " (aref a n)) (duet-lines-hunk-lines hunk)))))
           (dolist (line (reverse quiet))
             (push (concat " " line) (duet-lines-hunk-lines hunk)))
           (setq quiet nil)
           (push (concat sign line) (duet-lines-hunk-lines hunk)))
         (end ()
           (when hunk
             (dolist (line (seq-take (reverse quiet) duet-lines--context))
               (push (concat " " line) (duet-lines-hunk-lines hunk)))
             (cl-callf nreverse (duet-lines-hunk-lines hunk))
             (push hunk hunks))
           (setq hunk nil quiet nil)))
      (pcase-dolist (`(,x . ,y) (append same (list (cons (length a) (length b)))))
        (while (< i x) (change "-" (aref a i)) (cl-incf i))
        (while (< j y) (change "+" (aref b j)) (cl-incf j))
        (when (< x (length a))
          (when hunk
            (push (aref a x) quiet)
            (when (> (length quiet) (* 2 duet-lines--context)) (end)))
          (setq i (1+ x) j (1+ y))))
      (end))
    (nreverse hunks)))

(provide 'duet-render)
;;; duet-render.el ends here
