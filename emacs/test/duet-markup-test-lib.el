;;; duet-markup-test-lib.el --- Transcripts with Markdown, for tests  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(defmacro duet-markup-test-with (message &rest body)
  "Run BODY in a transcript; MESSAGE is bound to its only message, an open one."
  (declare (indent 1) (debug (symbolp body)))
  `(let* ((model (duet-model-create :root "/nowhere/"))
          (session (make-duet-session :id "t" :model model :loaded t))
          (,message (make-duet-message :key "m" :kind 'text :session session
                                       :turn "r" :open t))
          ;; The test also passes on a slow machine.
          (duet-code--patience 1000))
     (duet-model-add-message ,message)
     (with-temp-buffer
       (duet-transcript-mode)
       (setq duet-session session)
       (unwind-protect (progn ,@body)
         (dolist (timer (list duet-transcript--timer duet-code--timer))
           (when timer (cancel-timer timer)))
         (setq duet-session nil)))))

(defun duet-markup-test-say (message text)
  "Add TEXT to MESSAGE, and notify the transcript."
  (duet-message-append message text)
  (duet-transcript--note message 'append))

(defun duet-markup-test-look (&optional message)
  "Fontify the whole buffer as if it were displayed.
If MESSAGE is non-nil, it is complete from now on."
  (when message
    (setf (duet-message-open message) nil)
    (duet-transcript--note message 'redraw))
  (dotimes (_ 2)
    (duet-transcript-flush)
    (jit-lock-fontify-now)
    (while (duet-code-work (+ 1 (float-time))))))

(defun duet-markup-test-properties ()
  "Return the text of the buffer and its visible properties."
  (let ((place (point-min))
        (found '()))
    (while (< place (point-max))
      (let ((next (next-property-change place nil (point-max))))
        (let ((this (cons (buffer-substring-no-properties place next)
                          (cl-loop for property in (cons 'duet-colored
                                                         duet-prose-properties)
                                   for value = (get-text-property place property)
                                   when value collect (cons property value)))))
          (if (and found (equal (cdr this) (cdar found)))
              (setf (caar found) (concat (caar found) (car this)))
            (push this found)))
        (setq place next)))
    (nreverse found)))

(defun duet-markup-test-screen (beg end)
  "Return the text from BEG to END as a screen shows it."
  (let ((place beg)
        (parts '()))
    (while (< place end)
      (let* ((display (get-text-property place 'display))
             (next (next-single-char-property-change
                    place 'display nil
                    ;; A string in a display property replaces its text as a whole.
                    (if (stringp display) end
                      (next-single-char-property-change place 'invisible nil end)))))
        (cond
         ((stringp display) (push (substring-no-properties display) parts))
         ((not (invisible-p place))
          (push (buffer-substring-no-properties place next) parts)))
        (setq place next)))
    (apply #'concat (nreverse parts))))

(defun duet-markup-test-shown (text &optional size)
  "Return TEXT as a screen shows it, added SIZE characters at a time, or at once."
  (duet-markup-test-with message
    (duet-markup-test-say-all message text (or size (max 1 (length text))))
    (duet-markup-test-look message)
    (let ((section (duet-section-get "m")))
      (duet-markup-test-screen (duet-section-beg section) (duet-section-end section)))))

(defun duet-markup-test-say-all (message text size)
  "Add TEXT to MESSAGE, SIZE characters at a time, and display it meanwhile."
  (duet-markup-test-say-pieces message text
                               (cl-loop for place from size below (length text) by size
                                        collect place)))

(defun duet-markup-test-say-pieces (message text cuts)
  "Add TEXT to MESSAGE, cut at the positions CUTS, and display it meanwhile."
  (let ((start 0))
    (dolist (end (append cuts (list (length text))))
      (when (< start end)
        (duet-markup-test-say message (substring text start end))
        (duet-transcript-flush)
        (jit-lock-fontify-now)
        (setq start end)))))

(defun duet-markup-test-borders (text)
  "Return the positions in TEXT where its syntax may change, in order.
A border is between two characters that are neither both word nor both space."
  (cl-flet ((kind (char) (cond ((memq (char-syntax char) '(?w)) 'word)
                               ((eq char ?\s) 'space))))
    (cl-loop for place from 1 below (length text)
             for kind = (kind (aref text place))
             unless (and kind (eq kind (kind (aref text (1- place)))))
             collect place)))

(defun duet-markup-test-some (places count)
  "Return COUNT random elements of PLACES in order, or all if there are fewer."
  (let ((places (copy-sequence places)))
    (sort (cl-loop repeat count while places
                   collect (let ((place (nth (random (length places)) places)))
                             (setq places (delq place places))
                             place))
          #'<)))

(defun duet-markup-test-seed ()
  "Start a series of random numbers, and print its seed.
The environment variable DUET_TEST_SEED repeats a series."
  (let ((seed (or (getenv "DUET_TEST_SEED")
                  (format "%06x" (random #x1000000)))))
    (message "DUET_TEST_SEED=%s" seed)
    (random seed)
    seed))

(defun duet-markup-test-faces (text)
  "Return the parts of TEXT with a face, a list of (STRING . FACE)."
  (duet-markup-test-with message
    (duet-markup-test-say-all message text (max 1 (length text)))
    (duet-markup-test-look message)
    (cl-loop for (string . properties) in (duet-markup-test-properties)
             for face = (alist-get 'face properties)
             when (and face (not (alist-get 'invisible properties)))
             collect (cons string face))))

(defun duet-markup-test-random (pieces count)
  "Return a text of COUNT random elements of PIECES."
  (apply #'concat (cl-loop repeat count collect (nth (random (length pieces)) pieces))))

(defconst duet-markup-test-pieces
  '("*" "**" "_" "__" "`" "``" "```\n" "\n```sh\n" "~~~\n" "~~" "[" "](" ")" "]" "<" ">"
    "\n> " "\n- " "\n1. " "\n# " "\n## " " ##\n" "\n\n" "\n" "\n---\n" "\n===\n" "\n    "
    "\t" "| a | b |\n" "|---|:-:|\n" "|" "\\" "\\*" "word" "wide 名字" "a_b" "*.el" "x = 'y'"
    " " " " "." "https://a.org/x_y" "[t](http://b.org)" "<br>" "!" "😀")
  "Pieces of valid and invalid Markdown.")

(provide 'duet-markup-test-lib)
;;; duet-markup-test-lib.el ends here
