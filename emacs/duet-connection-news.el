;;; duet-connection-news.el --- What a project's server tells  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; What the server tells goes into the model (duet-events.el).  What it does not tell
;; of, a session that is new, or all there are at the beginning, it is asked for.

;;; Code:

(require 'cl-lib)
(require 'duet-connection-request)
(require 'duet-events)
(require 'duet-get)
(require 'duet-log)
(require 'duet-model)
(require 'duet-pages)

(defcustom duet-sessions-limit 300
  "How many sessions are listed at most when a server has started."
  :type 'natnum
  :group 'duet)

(defun duet-connection--notified (connection method params)
  "Handle the notification METHOD with PARAMS of the server of CONNECTION."
  (let ((model (duet-connection-model connection)))
    (pcase method
      ('event
       (duet-events-apply model params)
       (when-let ((path (and (equal (duet-get-string params :event :type) "diff_updated")
                             (duet-get-string params :event :data :path))))
         (duet-model-announce model 'file nil path))
       (when (member (duet-get-string params :event :type)
                     '("session_status_changed" "new_approval"))
         (duet-connection--complete connection params)))
      ('buildProgress (duet-model-announce model 'build-progress nil params))
      ('buildWarning (duet-model-announce model 'build-diagnostic nil params))
      ('heartbeat)
      (_ (duet-log "A notification that is not known: %s" method)))
    (when (duet-model-orphans model)
      (pcase-dolist (`(,run . ,_) (duet-model-orphans model))
        (duet-connection-ask connection run)))))

(defun duet-connection--complete (connection params)
  "Ask CONNECTION for what PARAMS, an event, do not tell of a session."
  (let* ((id (duet-get-string params :event :data :session_id))
         (session (and id (duet-connection-session connection id)))
         (run (and session (duet-session-run session id))))
    (when (and id (or (null run) (null (duet-run-query run))))
      (duet-connection-ask connection id))))

(defun duet-connection-ask (connection id)
  "Ask the server of CONNECTION for the session that ID names.
The model is told what comes."
  (unless (member id (duet-connection-asking connection))
    (push id (duet-connection-asking connection))
    (let ((done (lambda ()
                  (setf (duet-connection-asking connection)
                        (remove id (duet-connection-asking connection)))))
          (asked (duet-model-clock (duet-connection-model connection)))
          (model (duet-connection-model connection)))
      (duet-connection-request
       connection 'getSessionState (list :session_id id)
       :success-fn (lambda (result)
                     (funcall done)
                     (when-let ((session (duet-pages-load-session
                                          model (duet-get result :session) asked)))
                       (duet-model-announce model 'session session)
                       (when (duet-pages-old-p session asked)
                         (duet-connection-ask connection id))))
       :error-fn (lambda (err)
                   (funcall done)
                   (setf (duet-model-orphans model)
                         (cl-remove id (duet-model-orphans model)
                                    :key #'car :test #'equal))
                   (duet-log "Session %s: %s" id (plist-get err :message)))))))

(defun duet-connection--refresh (connection)
  "Do what `duet-connection-refresh' says, with CONNECTION that is well."
  (duet-connection--list connection nil 0)
  (let* ((model (duet-connection-model connection))
         (asked (duet-model-clock model)))
    (duet-connection-request
     connection 'fetchApprovals nil
     :success-fn (lambda (result)
                   (duet-pages-load-approvals model (duet-get result :approvals) asked))
     :error-fn (lambda (err) (duet-log "fetchApprovals: %s" (plist-get err :message))))))

(defun duet-connection--list (connection before count)
  "Ask CONNECTION for the sessions older than BEFORE; COUNT are there already.
They come in small pages, since Emacs can do nothing else while it reads
one."
  (let* ((model (duet-connection-model connection))
         (asked (duet-model-clock model)))
    (duet-connection-request
     connection 'getSessionLeaves
     `(:limit 50 ,@(and before (list :before before)))
     :success-fn
     (lambda (result)
       (let ((sessions (duet-get result :sessions))
             (next (duet-get-string result :next_before)))
         (dolist (session (duet-pages-load-sessions model sessions asked))
           (duet-connection-ask connection (duet-session-leaf-id session)))
         (setq count (+ count (length sessions)))
         (when (and next (< count duet-sessions-limit))
           (duet-connection--list connection next count))))
     :error-fn (lambda (err)
                 (unless (eql (plist-get err :code) -1)
                   (message "Duet: %s" (duet-connection-error-text err)))))))

(provide 'duet-connection-news)
;;; duet-connection-news.el ends here
