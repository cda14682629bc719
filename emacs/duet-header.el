;;; duet-header.el --- The header line of transcripts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The header line of a transcript shows the state of its session: questions that wait,
;; the agent, and its usage.  In a narrow window the least important parts are left
;; out, here and in the header lines of other views.

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
  "Functions that add something to the header line of a transcript.
Each is called with the `duet-session' and returns a string or nil.")

(defun duet-header-number (number)
  "Return NUMBER, which may be large, in a few characters."
  (cond ((< number 1000) (number-to-string number))
        ((< number 1000000) (format "%.1fk" (/ number 1000.0)))
        (t (format "%.1fM" (/ number 1000000.0)))))

(defun duet-header-key (command words map)
  "Return WORDS behind the key of COMMAND, as `duet-look-key' finds it in MAP.
A click on them calls COMMAND in the window whose header line it is."
  (propertize (concat (duet-look-key command map) " " words)
              'local-map (duet-header-click command)
              'mouse-face 'highlight
              'help-echo (format "mouse-1: %s" words)))

(defun duet-header-room ()
  "Return how many columns the header line of the current buffer has.
Where no window shows the buffer there is room for all."
  (let ((window (if (eq (window-buffer) (current-buffer)) (selected-window)
                  (get-buffer-window nil t))))
    (if window (window-width window) most-positive-fixnum)))

(defun duet-header-fit (parts &optional taken)
  "Return PARTS of a header line, one after the other, as many as fit.
Each is a string, or (RANK . STRING), or nil.  Where not all fit those of the
highest rank are left out first, the last of them at first; a mere string
stays.  TAKEN columns are taken by something else."
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
  "Return what KEYS in MAP, a symbol, do, as parts for `duet-header-fit'.
Each of KEYS is (RANK COMMAND WORDS), or nil."
  (mapcar (lambda (key)
            (pcase-let ((`(,rank ,command ,words) key))
              (cons rank (concat ", " (duet-header-key command words map)))))
          (delq nil keys)))

(defun duet-header-name ()
  "Return the name of the current buffer for its mode line, shortened to fit.
The text behind it, such as the number of waiting questions, stays visible."
  (let ((room (max 18 (- (min 200 (duet-header-room)) 44)))
        (name (buffer-name)))
    (propertize (replace-regexp-in-string
                 "%" "%%" (if (<= (string-width name) room) name
                            (concat (truncate-string-to-width name (1- room) nil nil "…") "*"))
                 t t)
                'face 'mode-line-buffer-id 'help-echo name)))

(defun duet-header-click (command)
  "Return a keymap by which a click calls COMMAND in the window that it is in."
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
  "Return the branch of SESSION's worktree, or that it is gone; nil without one.
A click on the branch visits the directory."
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
              (0 . ,(when-let ((status (duet-connection-status connection)))
                      (propertize status 'face 'duet-failed)))
              (1 . ,(when (eq (duet-session-loaded session) 'loading) "loading…"))
              (2 . ,(when (> queued 0) (format "%d queued" queued)))
              (1 . ,(duet-actions-background-words session))
              (3 . ,(duet-session-agent session))
              (5 . ,(duet-actions-session-llm session))
              (4 . ,(duet-actions-session-mode session))
              (3 . ,(duet-header-worktree session))
              (1 . ,(duet-gates-header session))
              (6 . ,(when-let ((used (plist-get usage :context_used))
                               (size (plist-get usage :context_size)))
                      (format "context %d%%" (round (* 100.0 used) (max 1 size)))))
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
      ;; A % in a name is no construct of a mode line.
      (replace-regexp-in-string
       "%" "%%"
       (duet-header-fit (cons (concat " " (cdar parts))
                              (mapcar (lambda (part)
                                        (cons (car part) (concat separator (cdr part))))
                                      (cdr parts))))
       t t))))

(provide 'duet-header)
;;; duet-header.el ends here
