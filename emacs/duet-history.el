;;; duet-history.el --- Earlier messages of a session, page by page  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A session may be long, and Emacs blocks while it parses a reply.  So a
;; session is loaded from its end, in small pages.  Older messages are loaded on
;; demand.

;;; Code:

(require 'cl-lib)
(require 'duet-connection)

(defcustom duet-history-messages 60
  "The number of a session's last messages and tool calls that are loaded at first.
Each request for earlier ones loads the same number."
  :type 'natnum
  :group 'duet)

(defconst duet-history--page 10
  "The number of items in one request.
Emacs 28 takes 0.3 s to parse a megabyte.")

(defun duet-history-load (connection session &optional done)
  "Load the end of SESSION through CONNECTION.
Then call DONE with nil or an error.  From then on the model keeps the
session's messages up to date.  After a loss of events, call this again."
  (setf (duet-session-loaded session) 'loading)
  (duet-connection-request
   connection 'session.items
   (list :session (duet-session-leaf-id session) :limit duet-history--page)
   :error-fn (lambda (err)
               (setf (duet-session-loaded session) nil)
               (when done (funcall done err)))
   :success-fn
   (lambda (result)
     (when (null (duet-session-order session))
       (setf (duet-session-before session) (duet-get-number result :next_before)))
     (duet-history--page-loaded connection session result 'newer)
     (duet-pages-loaded session)
     (duet-history-load-older connection session done
                              (- duet-history-messages duet-history--page)))))

(defun duet-history--page-loaded (connection session result where)
  "Load the items in RESULT, a reply of CONNECTION's server, into SESSION.
WHERE is as for `duet-pages-load'."
  (duet-pages-load session (duet-get result :items) where)
  (duet-history--ask connection session (duet-get result :items)))

(defun duet-history-load-older (connection session &optional done count)
  "Load COUNT items before the loaded messages of SESSION through CONNECTION.
COUNT is `duet-history-messages' if nil.  Then call DONE with nil or an
error."
  (let ((count (or count duet-history-messages))
        (before (duet-session-before session)))
    (if (or (<= count 0) (null before))
        (when done (funcall done nil))
      (duet-connection-request
       connection 'session.items
       (list :session (duet-session-leaf-id session)
             :before before :limit (min count duet-history--page))
       :error-fn (or done (lambda (err) (message "Duet: %s" (duet-connection-error-text err))))
       :success-fn
       (lambda (result)
         (setf (duet-session-before session) (duet-get-number result :next_before))
         (duet-history--page-loaded connection session result 'older)
         (duet-history-load-older connection session done
                                  (- count (length (duet-get result :items)))))))))

(defun duet-history-complete (connection message &optional done)
  "Load through CONNECTION the parts of MESSAGE that events lacked.
Then call DONE with nil or an error."
  (setf (duet-message-cut message) 'loading)
  (let ((end-with (lambda (err)
                    (when (eq (duet-message-cut message) 'loading)
                      (setf (duet-message-cut message) t))
                    (when done (funcall done err)))))
    (duet-connection-request
     connection 'session.items
     (list :turn (duet-message-turn message)
           :key (if (duet-tool-p message) (duet-tool-id message)
                  (duet-message-key message)))
     :error-fn end-with
     :success-fn (lambda (result)
                   (duet-pages-load (duet-message-session message)
                                    (duet-get result :items) 'newer)
                   (funcall end-with nil)))))

(defun duet-history--ask (connection session objects)
  "Request from CONNECTION the turns of OBJECTS that SESSION lacks.
OBJECTS are a page of its items, which does not contain the states of
turns.  Also request turns whose place is unknown: the list of sessions does
not name the turns before them."
  (let ((turns (delete-dups (delq nil (mapcar (lambda (object)
                                                (duet-get-string object :turn_uuid))
                                              objects)))))
    (dolist (turn turns)
      (when-let ((known (duet-session-turn session turn)))
        (unless (or (duet-turn-parent known)
                    ;; The first of the session.
                    (string-suffix-p ".1" (or (duet-turn-number known) ".1")))
          (duet-connection-ask connection turn))))
    (dolist (turn turns)
      (unless (duet-session-turn session turn)
        (duet-connection-ask connection turn)))))

(provide 'duet-history)
;;; duet-history.el ends here
