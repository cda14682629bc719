;;; duet-queue.el --- Queued prompts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; These commands edit, move or withdraw the queued prompt at point in a transcript.
;; Each requests the queue first, since a prompt may begin at any time.  The
;; transcript follows the server's event, as it does for changes by other clients.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-compose)
(require 'duet-connection)
(require 'duet-settings)
(require 'duet-history)
(require 'duet-look)
(require 'duet-transcript)

(defvar duet-attach--items)

(defun duet-queue--message ()
  "Return the queued prompt at point, or signal a `user-error'."
  (let ((message (and (bound-and-true-p duet-session)
                      (duet-transcript-message-at-point))))
    (unless (and (duet-message-p message) (duet-message-queued-p message))
      (user-error "No queued prompt here"))
    message))

(defun duet-queue--ask (turn then)
  "Request the queue with the prompt of TURN.
Call THEN with the editable queued prompts and the position of that prompt.
If the prompt has begun, or cannot be edited, show a message instead."
  (duet-connection-request
   (duet-connection-here) 'session.get (list :session turn)
   :success-fn
   (lambda (result)
     (cl-flet ((place (list) (cl-position turn list :test #'equal
                                          :key (lambda (prompt)
                                                 (duet-get-string prompt :turn_uuid)))))
       (let* ((queued (duet-get-objects result :queued))
              (editable (cl-remove-if-not (lambda (prompt) (duet-get prompt :editable)) queued)))
         (cond ((place editable) (funcall then editable (place editable)))
               ((place queued)
                (message "Only your own prompts can be edited or moved"))
               (t (message "The prompt has begun"))))))))

(defun duet-take-back ()
  "Remove the queued prompt at point; if its turn has begun, interrupt that.
\\<duet-compose-mode-map>\\[duet-compose-previous] in a new prompt inserts its text."
  (interactive nil duet-transcript-mode)
  (let* ((message (duet-queue--message))
         (text (duet-message-text message)))
    (duet-connection-request
     (duet-connection-here) 'turn.interrupt
     (list :turn (duet-message-turn message) :reason "taken back in Emacs")
     :success-fn
     (lambda (result)
       (duet-compose-remember text)
       (message (if (equal (duet-get-string result :state) "interrupting")
                    "Its turn has begun already; interrupting it"
                  "Taken back; M-p in a new prompt has it"))))))


;;; Moving

(defun duet-move-queued-up ()
  "Move the queued prompt at point before the one above it."
  (interactive nil duet-transcript-mode)
  (duet-queue--move -1))

(defun duet-move-queued-down ()
  "Move the queued prompt at point after the one below it."
  (interactive nil duet-transcript-mode)
  (duet-queue--move 1))

(defun duet-queue--move (step)
  "Move the queued prompt at point by STEP, 1 or -1."
  (let ((connection (duet-connection-here))
        (turn (duet-message-turn (duet-queue--message))))
    (duet-queue--ask
     turn
     (lambda (queued place)
       (if (not (< -1 (+ place step) (length queued)))
           (message (if (> step 0) "This prompt runs last already"
                      "This prompt runs next already"))
         (let ((before (nth (if (> step 0) (+ place 2) (1- place)) queued)))
           (duet-connection-request
            connection 'turn.move
            (append (list :turn turn)
                    (and before
                         (list :before (duet-get-string before :turn_uuid)))))))))))


;;; Editing

(defun duet-edit-queued ()
  "Edit the queued prompt at point in its own buffer."
  (interactive nil duet-transcript-mode)
  (let ((connection (duet-connection-here))
        (session duet-session)
        (message (duet-queue--message)))
    (duet-queue--ask
     (duet-message-turn message)
     (lambda (&rest _)
       (let ((edit (lambda (&optional err)
                     (if (or err (duet-message-cut message))
                         (message "Duet: the prompt was not loaded: %s"
                                  (if err (duet-connection-error-text err) "it has changed"))
                       (duet-compose connection session nil
                                     (cons (duet-message-turn message)
                                           (duet-message-text message)))))))
         (if (duet-message-cut message) (duet-history-complete connection message edit)
           (funcall edit)))))))

(defun duet-queue-save ()
  "Save the text of the current buffer as its queued prompt.
If the prompt has begun, the text stays here as a new prompt."
  (let ((buffer (current-buffer))
        (key (duet-look-key #'duet-compose-send 'duet-compose-mode-map))
        (text (duet-compose--text)))
    (when (string-empty-p text)
      (user-error "There is nothing to save; %s cancels"
                  (duet-look-key #'duet-compose-cancel 'duet-compose-mode-map)))
    (when duet-compose--sending
      (user-error "Already saving"))
    (when (or (cdr (duet-directive-take text duet-session))
              (bound-and-true-p duet-attach--items))
      (user-error "Only the text of a queued prompt can be changed"))
    (setq duet-compose--sending t)
    (duet-connection-request
     duet-connection 'turn.edit (list :turn duet-compose--queued :prompt text)
     :success-fn (lambda (_)
                   (duet-compose--close buffer)
                   (message "Saved; the prompt is queued"))
     :error-fn
     (lambda (err)
       (let ((begun (equal (duet-get-string err :data :kind) "bad_state")))
         (when (buffer-live-p buffer)
           (with-current-buffer buffer
             (setq duet-compose--sending nil)
             (when begun
               (setq duet-compose--queued nil)
               (force-mode-line-update))))
         (message "Duet: not saved: %s"
                  (if begun
                      (format "the prompt has begun; %s sends the text as a new prompt" key)
                    (duet-connection-error-text err))))))))

(define-key duet-transcript-mode-map "k" #'duet-take-back)
(define-key duet-transcript-mode-map "e" #'duet-edit-queued)
(define-key duet-transcript-mode-map (kbd "M-<up>") #'duet-move-queued-up)
(define-key duet-transcript-mode-map (kbd "M-<down>") #'duet-move-queued-down)

(provide 'duet-queue)
;;; duet-queue.el ends here
