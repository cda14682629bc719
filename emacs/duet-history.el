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
  "The number of a session's last parts that are loaded at first.
Each request for earlier parts loads the same number."
  :type 'natnum
  :group 'duet)

(defconst duet-history--page 10
  "The number of parts in one request.
Emacs 28 takes 0.3 s to parse a megabyte.")

(defun duet-history-load (connection session &optional done)
  "Load the end of SESSION through CONNECTION.
Then call DONE with nil or an error.  From then on the model keeps the
session's messages up to date.  After a loss of events, call this again."
  (setf (duet-session-loaded session) 'loading)
  (let ((fail (lambda (err)
                (setf (duet-session-loaded session) nil)
                (when done (funcall done err)))))
    (duet-connection-request
     connection 'getConversation
    ;; At an offset beyond the end, the reply has only the total number.
     (list :session_id (duet-session-leaf-id session) :offset 1000000000 :limit 1)
     :error-fn fail
     :success-fn
     (lambda (result)
       (let* ((total (or (duet-get-number result :total) 0))
              (offset (max 0 (- total duet-history--page))))
         (duet-history--newer
          connection session offset fail
          (lambda ()
            (duet-pages-loaded session)
            (duet-history-load-older
             connection session done
             (- duet-history-messages duet-history--page)))))))))

(defun duet-history--newer (connection session offset fail done)
  "Load the parts of SESSION from OFFSET on through CONNECTION.
Then call DONE, or FAIL with the error."
  (duet-connection-request
   connection 'getConversation
   (list :session_id (duet-session-leaf-id session)
         :offset offset :limit duet-history--page)
   :error-fn fail
   :success-fn
   (lambda (result)
     (let ((first (null (duet-session-order session))))
       (duet-pages-load session (duet-get result :events) 'newer)
       (duet-history--ask connection session (duet-get result :events))
       (when first (setf (duet-session-offset session) offset)))
     (if-let ((next (duet-get-number result :next_offset)))
         (duet-history--newer connection session next fail done)
       (funcall done)))))

(defun duet-history-load-older (connection session &optional done count)
  "Load COUNT parts before the loaded messages of SESSION through CONNECTION.
COUNT is `duet-history-messages' if nil.  Then call DONE with nil or an
error."
  (let* ((count (or count duet-history-messages))
         (end (duet-session-offset session))
         (offset (max 0 (- end (min count duet-history--page)))))
    (if (or (<= count 0) (<= end 0))
        (when done (funcall done nil))
      (duet-connection-request
       connection 'getConversation
       (list :session_id (duet-session-leaf-id session)
             :offset offset :limit (- end offset))
       :error-fn (or done (lambda (err) (message "Duet: %s" (duet-connection-error-text err))))
       :success-fn
       (lambda (result)
         (let ((events (duet-get result :events)))
           (if (or (not (vectorp events)) (< (length events) (- end offset)))
               ;; They did not fit into one reply: request the rest.
               (duet-history--fill connection session offset events end done count)
             (setf (duet-session-offset session) offset)
             (duet-pages-load session events 'older)
             (duet-history--ask connection session events)
             (duet-history-load-older connection session done
                                      (- count (- end offset))))))))))

(defun duet-history--fill (connection session offset events end done count)
  "Complete EVENTS of SESSION, from OFFSET on, up to END; then load older parts.
CONNECTION, DONE and COUNT are as for `duet-history-load-older'."
  (let ((have (+ offset (length events))))
    (duet-connection-request
     connection 'getConversation
     (list :session_id (duet-session-leaf-id session)
           :offset have :limit (- end have))
     :error-fn (or done #'ignore)
     :success-fn
     (lambda (result)
       (let* ((more (duet-get result :events))
              (all (vconcat events more)))
         (if (and (> (length more) 0) (< (length all) (- end offset)))
             (duet-history--fill connection session offset all end done count)
           (setf (duet-session-offset session) offset)
           (duet-pages-load session all 'older)
           (duet-history--ask connection session all)
           (duet-history-load-older connection session done
                                    (- count (- end offset)))))))))

(defun duet-history-complete (connection message &optional done)
  "Load through CONNECTION the parts of MESSAGE that events lacked.
Then call DONE with nil or an error.  No request can name one part of a
conversation, so load pages from the end until they contain MESSAGE."
  (setf (duet-message-cut message) 'loading)
  (let* ((session (duet-message-session message))
         (key (duet-message-key message))
         (begun nil) ; whether its first part was found: a result follows its call
         (end-with (lambda (err)
                     (when (eq (duet-message-cut message) 'loading)
                       (setf (duet-message-cut message) t))
                     (when done (funcall done err)))))
    (cl-labels
        ((ask (offset limit then)
           (duet-connection-request
            connection 'getConversation
            (list :session_id (duet-session-leaf-id session) :offset offset :limit limit)
            :error-fn end-with :success-fn then))
         ;; BEG is the beginning of the current page.
         (page (beg offset end)
           (ask offset (- end offset)
                (lambda (result)
                  (let* ((events (append (duet-get result :events) nil))
                         (have (+ offset (length events)))
                         (mine (cl-remove-if-not
                                (lambda (object) (equal (duet-pages-key object) key))
                                events)))
                    (when mine (duet-pages-load session (vconcat mine) 'newer))
                    (unless (cl-every (lambda (object)
                                        (equal (duet-get-string object :event_type)
                                               "tool_result"))
                                      mine)
                      (setq begun t))
                    (cond
             ;; A large page arrives in several replies.
                     ((and events (< have end)) (page beg have end))
                     ((or (= beg 0) begun)
                      (funcall end-with nil))
                     (t (let ((next (max 0 (- beg duet-history--page))))
                          (page next next beg)))))))))
      (ask 1000000000 1
           (lambda (result)
             (let* ((end (or (duet-get-number result :total) 0))
                    (beg (max 0 (- end duet-history--page))))
               (if (= end 0) (funcall end-with nil) (page beg beg end))))))))

(defun duet-history--ask (connection session objects)
  "Request from CONNECTION the turns in OBJECTS that SESSION lacks.
OBJECTS are a part of its conversation, which does not contain the states
of turns.  Also request turns whose place is unknown: the list of sessions does
not name the turns before them."
  (let ((turns (delete-dups (delq nil (mapcar (lambda (object)
                                                (duet-get-string object :session_id))
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
