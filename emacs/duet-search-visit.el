;;; duet-search-visit.el --- From a place that was found to the conversation  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; RET in a list of places (duet-search.el) opens the transcript there: earlier
;; messages are loaded until that has come in which the words stand.

;;; Code:

(require 'cl-lib)
(require 'pulse)
(require 'subr-x)
(require 'duet-connection)
(require 'duet-history)
(require 'duet-events)
(require 'duet-section)
(require 'duet-transcript)

(defconst duet-search--page 50
  "How many parts of a conversation are looked through at once.")

(defun duet-search--words (hit)
  "Return a regexp for the words of HIT that were found, or nil."
  (let ((text (or (duet-get-string hit :snippet) ""))
        (start 0)
        words)
    (while (string-match "«\\([^»]+\\)»" text start)
      (push (match-string 1 text) words)
      (setq start (match-end 0)))
    (and words (regexp-opt (delete-dups words)))))

(defun duet-search-visit (&optional other)
  "Open the transcript at the place that point is on.
If OTHER is non-nil do not select its window."
  (interactive nil duet-search-mode)
  (let ((hit (or (get-text-property (point) 'duet-hit)
                 (user-error "There is no place here")))
        (connection duet-connection))
    (duet-search--with-session
     connection (or (duet-get-string hit :thread_id) (duet-get-string hit :session_id))
     (duet-get-string hit :session_id)
     (lambda (session)
       (let ((buffer (duet-transcript-open connection session)))
         (if other (display-buffer buffer) (pop-to-buffer buffer))
         (duet-search--find-key
          connection hit
          (lambda (key)
            (if key
                (duet-search--reveal buffer key (duet-search--words hit))
              (message "Duet: the place was not found in the conversation")))))))))

(defun duet-search-display ()
  "Show the transcript at the place that point is on in another window."
  (interactive nil duet-search-mode)
  (duet-search-visit t))

(defun duet-search-visit-mouse (event)
  "Open the transcript at the place where EVENT, a click, was."
  (interactive "e" duet-search-mode)
  (mouse-set-point event)
  (duet-search-visit))

(defun duet-search--with-session (connection thread run function)
  "Call FUNCTION with the session of CONNECTION that THREAD names.
If it is not known yet, ask the server for RUN, one of its runs."
  (if-let ((session (duet-connection-session connection thread)))
      (funcall function session)
    (let* ((model (duet-connection-model connection))
           (asked (duet-model-clock model)))
      (duet-connection-request
       connection 'getSessionState (list :session_id run)
       :success-fn
       (lambda (result)
         (if-let ((session (duet-pages-load-session model (duet-get result :session) asked)))
             (funcall function session)
           (message "Duet: the session was not found")))))))

(defun duet-search--find-key (connection hit function)
  "Call FUNCTION with the key of the message of CONNECTION that HIT is in, or nil.
It is near the end of what was said up to its run."
  (let ((run (duet-get-string hit :session_id))
        (id (duet-get-number hit :event_id)))
    (cl-labels
        ((look (start from end)
           ;; Of the parts from START to END those before FROM are seen.
           (duet-connection-request
            connection 'getConversation
            (list :session_id run :offset from :limit (max 1 (- end from)))
            :success-fn
            (lambda (result)
              (let* ((events (duet-get-objects result :events))
                     (event (cl-find id events
                                     :key (lambda (event) (duet-get event :id))))
                     (have (+ from (length events)))
                     (before (max 0 (- start duet-search--page))))
                (cond
                 (event (funcall function (duet-search--key event)))
                 ;; They did not fit into one reply.
                 ((and events (< have end)) (look start have end))
                 ((> start 0) (look before before start))
                 (t (funcall function nil))))))))
      (duet-connection-request
       connection 'getConversation
       (list :session_id run :offset 1000000000 :limit 1)
       :success-fn (lambda (result)
                     (let* ((end (or (duet-get-number result :total) 0))
                            (start (max 0 (- end duet-search--page))))
                       (look start start end)))))))

(defun duet-search--key (event)
  "Return the key of the message that EVENT, a part of a conversation, is in.
It is as `duet-pages-load' makes it."
  (let ((run (or (duet-get-string event :session_id) "")))
    (if-let ((tool (and (member (duet-get-string event :event_type)
                                '("tool_call" "tool_result"))
                        (or (duet-get-string event :tool_id)
                            (duet-get-string event :tool_result_for_id)))))
        (concat run "/" tool)
      (or (duet-get-string event :key) (format "item-%s" (duet-get event :id))))))

(defun duet-search--reveal (buffer key words &optional patience)
  "Go to the message KEY in BUFFER, a transcript, and to WORDS in it, a regexp.
What precedes the messages there is loaded until it has come.  PATIENCE
is how often to look whether the conversation is loaded."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (let ((patience (or patience 200)))
        (cond
         ((not (eq (duet-session-loaded duet-session) t))
          (if (zerop patience)
              (message "Duet: the conversation is not loaded yet")
            (run-at-time 0.05 nil #'duet-search--reveal buffer key words (1- patience))))
         ((duet-session-message duet-session key)
          (duet-transcript-flush)
          (duet-search--go-to buffer key words))
         ((> (duet-session-offset duet-session) 0)
          (duet-history-load-older
           duet-connection duet-session
           (lambda (err)
             (if err
                 (message "Duet: %s" (duet-connection-error-text err))
               ;; In a timer, so that a long way is not one long wait.
               (run-at-time 0 nil #'duet-search--reveal buffer key words patience)))))
         (t (message "Duet: the place was not found in the conversation")))))))

(defun duet-search--go-to (buffer key words)
  "Move point in BUFFER, and in its windows, to WORDS in the message KEY."
  (with-current-buffer buffer
    (when-let ((section (duet-section-get key)))
      (goto-char (duet-section-beg section))
      (when (duet-section-folded-p section)
        (duet-section-toggle))
      (let ((case-fold-search t))
        (when (and words (re-search-forward words (duet-section-end section) t))
          (goto-char (match-beginning 0))))
      (let ((place (point)))
        (dolist (window (get-buffer-window-list buffer nil t))
          (with-selected-window window
            (goto-char place)
            (recenter)
            (unless noninteractive
              (pulse-momentary-highlight-one-line place))))))))

(provide 'duet-search-visit)
;;; duet-search-visit.el ends here
