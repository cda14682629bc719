;;; duet-message.el --- Something in a conversation  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A message has a place of its own in a conversation: a prompt, what an agent says
;; or thinks, a call of a tool.  Its text comes in pieces, and is joined when it is
;; read.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-run)

(declare-function duet-session-run "duet-model" (session id))

(cl-defstruct (duet-message (:copier nil))
  "Something in a conversation that has a place of its own."
  (key nil :documentation "A string that no other message of the session has.")
  (kind nil :documentation "Of which kind it is, a symbol; see duet-render.el.")
  (session nil :documentation "The `duet-session' that has it.")
  (run nil :documentation "The id of the run that it belongs to.")
  (open nil :documentation "Whether it is still being written.")
  (seq 0 :documentation "The number of the last event that changed it.")
  (created nil :documentation "When it began, as the protocol writes it.")
  (chunks nil :documentation "Its text in pieces, the last first.")
  (size 0 :documentation "How many characters its text has.")
  (loaded nil :documentation "Whether the next piece may begin in what it has.")
  (cut nil :documentation "Whether an event has left out a part: nil, t or `loading'.")
  (data nil :documentation "Of a plan: its entries; of a diff: the event's data.")
  (attachments nil :documentation "What it has beside text, a list of objects.")
  (parent nil :documentation "The id of the tool call of the sub-agent that it is from."))

(cl-defstruct (duet-tool (:include duet-message) (:copier nil))
  "A tool call."
  id name title tool-kind status input result paths diffs terminal approval
  (refused-by nil :documentation "Who did not let it run, as the protocol has it.")
  (refusal nil :documentation "Why, in words."))

(defun duet-message-text (message)
  "Return the text of MESSAGE."
  (let ((chunks (duet-message-chunks message)))
    ;; What was joined once need not be joined again.
    (if (cdr chunks)
        (car (setf (duet-message-chunks message)
                   (list (apply #'concat (reverse chunks)))))
      (or (car chunks) ""))))

(defun duet-message-set-text (message text)
  "Make TEXT the text of MESSAGE."
  (setf (duet-message-chunks message) (list text)
        (duet-message-size message) (length text)))

(defun duet-message-append (message text)
  "Add TEXT to the text of MESSAGE."
  (push text (duet-message-chunks message))
  (cl-incf (duet-message-size message) (length text)))

(defun duet-message--units (text)
  "Return how many UTF-16 code units TEXT takes."
  (+ (length text) (cl-count-if (lambda (char) (> char #xffff)) text)))

(defun duet-message-news (message text length)
  "Return what of TEXT, the next piece of MESSAGE, is not there yet.
LENGTH is how many UTF-16 code units MESSAGE has with it, or nil.  The server
joins pieces, so that the first after a page was loaded may begin in it."
  (if (not (and (duet-message-loaded message) length))
      text
    (let ((known (- (+ (duet-message--units (duet-message-text message))
                       (duet-message--units text))
                    length))
          (place 0))
      (while (and (> known 0) (< place (length text)))
        (setq known (- known (if (> (aref text place) #xffff) 2 1))
              place (1+ place)))
      (substring text place))))

(defun duet-message-tail (message start)
  "Return the text of MESSAGE from START on, without a look at what precedes it."
  (let ((missing (- (duet-message-size message) start))
        (chunks (duet-message-chunks message))
        (tail '()))
    (while (and chunks (> missing 0))
      (let ((length (length (car chunks))))
        (push (if (> length missing) (substring (car chunks) (- missing)) (car chunks))
              tail)
        (setq missing (- missing length)
              chunks (cdr chunks))))
    (if (cdr tail) (apply #'concat tail) (or (car tail) ""))))

(defun duet-message-run-state (message)
  "Return the state of the run that MESSAGE belongs to, or nil."
  (when-let ((run (duet-session-run (duet-message-session message)
                                    (duet-message-run message))))
    (duet-run-state run)))

(defun duet-message-queued-p (message)
  "Return non-nil if MESSAGE is a prompt that waits for its turn."
  (and (eq (duet-message-kind message) 'prompt)
       (eq (duet-message-run-state message) 'queued)))

(provide 'duet-message)
;;; duet-message.el ends here
