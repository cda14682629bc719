;;; duet-header.el --- The header line of transcripts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The header line of a transcript shows the state of its session: open questions,
;; the agent, and its usage.  A narrow window shows only the most important parts, here
;; and in the header lines of other views.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-connection)
(require 'duet-model)
(require 'duet-look)
(require 'duet-render)
(require 'duet-actions)

(declare-function duet-worktree-dired "duet-worktree" (session))

(defvar duet-header-functions nil
  "Functions that return further parts of the header line of a transcript.
Each is called with the `duet-session' and returns a string or nil.")

(defun duet-header-number (number)
  "Return NUMBER as a short string, with k for thousands and M for millions."
  (cond ((< number 1000) (number-to-string number))
        ((< number 1000000) (format "%.1fk" (/ number 1000.0)))
        (t (format "%.1fM" (/ number 1000000.0)))))

(defun duet-header-key (command words map)
  "Return the key of COMMAND, as `duet-look-key' finds it in MAP, and WORDS.
A click on them calls COMMAND in the window of the header line."
  (propertize (concat (duet-look-key command map) " " words)
              'local-map (duet-header-click command)
              'mouse-face 'highlight
              'help-echo (format "mouse-1: %s" words)))

(defun duet-header-room ()
  "Return the width of the header line of the current buffer in columns.
If no window shows the buffer, the width is unlimited."
  (let ((window (if (eq (window-buffer) (current-buffer)) (selected-window)
                  (get-buffer-window nil t))))
    (if window (window-width window) most-positive-fixnum)))

(defun duet-header-fit (parts &optional taken)
  "Return those of PARTS of a header line that fit, joined.
Each part is a string, or (RANK . STRING), or nil.  If not all fit, leave
out parts of the highest rank first, the last of them first.  A plain
string always stays.  TAKEN columns are not available."
  (let* ((parts (mapcar (lambda (part) (if (stringp part) (cons 0 part) part))
                        (delq nil parts)))
         (room (- (duet-header-room) (or taken 0)))
         (width (apply #'+ (mapcar (lambda (part) (string-width (cdr part))) parts))))
    (while (and (> width room)
                (let ((worst nil))
                  (dolist (part parts)
                    (when (and (> (car part) 0) (>= (car part) (if worst (car worst) 0)))
                      (setq worst part)))
                  (when worst
                    (setq width (- width (string-width (cdr worst)))
                          parts (remq worst parts))))))
    (duet-look-on-line (mapconcat #'cdr parts ""))))

(defun duet-header-keys (map &rest keys)
  "Return the keys and words for KEYS in MAP, as parts for `duet-header-fit'.
MAP is a symbol.
Each of KEYS is (RANK COMMAND WORDS), or nil."
  (mapcar (lambda (key)
            (pcase-let ((`(,rank ,command ,words) key))
              (cons rank (concat ", " (duet-header-key command words map)))))
          (delq nil keys)))

(defun duet-header-name ()
  "Return the name of the current buffer for its mode line, shortened to fit.
The text after it, such as the number of open questions, stays visible."
  (let ((room (max 18 (- (min 200 (duet-header-room)) 44)))
        (name (buffer-name)))
    (propertize (replace-regexp-in-string
                 "%" "%%" (if (<= (string-width name) room) name
                            (concat (truncate-string-to-width name (1- room) nil nil "…") "*"))
                 t t)
                'face 'mode-line-buffer-id 'help-echo name)))

(defun duet-header-click (command)
  "Return a keymap in which a click calls COMMAND in the window of the click."
  (or (get command 'duet-header-click)
      (let ((map (make-sparse-keymap)))
        (define-key map [header-line mouse-1]
                    (lambda (event)
                      (interactive "e")
                      (select-window (posn-window (event-start event)))
                      (call-interactively command)))
        (put command 'duet-header-click map)
        map)))

(defun duet-header-worktree (session)
  "Return words for the worktree of SESSION, or nil if it has none.
They are its branch, or that it is gone.  A click visits the directory."
  (when-let ((words (duet-actions-worktree-words session 40)))
    (if (duet-session-lost-worktree-p session) words
      (propertize words
                  'local-map (duet-header-click #'duet-worktree-dired)
                  'mouse-face 'highlight
                  'help-echo (concat (get-text-property 0 'help-echo words)
                                     "\nmouse-1: visit the directory")))))

(defun duet-header (session connection)
  "Return the header line of the transcript of SESSION of CONNECTION.
It shows the state of the session; it is empty if SESSION is nil."
  (if (null session)
      ""
    (let* ((usage (duet-session-usage session))
           (queued (duet-session-queued session))
           (separator (concat " " (propertize (duet-look-sign "·") 'face 'duet-dim) " "))
           (parts
            `((0 . ,(duet-look-state-header (duet-session-state session)))
              (0 . ,(when (duet-connection-host connection)
                      (duet-visible-line (duet-connection-project connection))))
              (0 . ,(when-let ((status (duet-connection-status connection)))
                      ;; The end of the transcript has the reason, which may be long.
                      (if (duet-connection-trouble connection)
                          (propertize "no answer" 'face 'duet-failed 'help-echo status)
                        (propertize status 'face 'duet-failed))))
              (1 . ,(when (eq (duet-session-loaded session) 'loading) "loading…"))
              (2 . ,(when-let ((number (duet-session-turn-number session)))
                      (duet-visible-line number)))
              (2 . ,(when (> queued 0) (format "%d queued" queued)))
              (1 . ,(duet-actions-background-words session))
              (3 . ,(duet-session-agent session))
              (5 . ,(duet-actions-session-llm session))
              (4 . ,(duet-actions-session-mode session))
              (3 . ,(duet-header-worktree session))
              (1 . ,(duet-gates-header session))
              (6 . ,(when-let ((used (plist-get usage :context_used))
                               (size (plist-get usage :context_size)))
                      (format "context %d %%" (round (* 100.0 used) (max 1 size)))))
              (8 . ,(when-let ((in (plist-get usage :input_tokens))
                               (out (plist-get usage :output_tokens)))
                      (format "%s in %s out" (duet-header-number in)
                              (duet-header-number out))))
              (7 . ,(when-let ((cost (plist-get usage :cost_usd)))
                      (format "$%.2f" cost)))
              ,@(mapcar (lambda (function)
                          (cons 1 (duet-log-guard "Header line"
                                    (funcall function session))))
                        duet-header-functions)))
           (parts (cl-delete nil parts :key #'cdr)))
      ;; A % in a name does not begin a construct of the mode line.
      (replace-regexp-in-string
       "%" "%%"
       (duet-header-fit (cons (concat " " (cdar parts))
                              (mapcar (lambda (part)
                                        (cons (car part) (concat separator (cdr part))))
                                      (cdr parts))))
       t t))))

(provide 'duet-header)
;;; duet-header.el ends here
