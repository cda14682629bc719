;;; duet-diff-turns.el --- What turns have changed, as the server tells it  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; The server tells for each turn the files that it has changed, before and after.
;; For a whole session each file is as it was before the first turn that changed it
;; and after the last; what was changed back is left out.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-connection)
(require 'duet-render)
(require 'duet-model)
(require 'duet-events)

(defun duet-diff-turns-load (connection session run whole done fail)
  "Ask CONNECTION what the turn RUN of SESSION, an id, has changed.
If WHOLE is non-nil, what all turns up to it have.  Call DONE with a list
of files as the server tells them, or FAIL with an error."
  (if whole
      (duet-diff-turns--before connection session run '() done fail)
    (duet-diff-turns--ask connection run done fail)))

(defun duet-diff-turns--ask (connection run done fail)
  "Ask CONNECTION what RUN has changed; call DONE with the files, or FAIL."
  (duet-connection-request
   connection 'getSessionSnapshots (list :session_id run)
   :success-fn (lambda (result) (funcall done (duet-get-objects result :snapshots)))
   :error-fn fail))

(defun duet-diff-turns--before (connection session run later done fail)
  "Ask CONNECTION what RUN of SESSION has changed, and the turns before it.
LATER has a list of files for each later turn, the first first.  Call DONE
with all of it as one change, or FAIL with an error."
  (duet-diff-turns--ask
   connection run
   (lambda (files)
     (let ((turns (cons files later)))
       (duet-diff-turns--parent
        connection session run
        (lambda (parent)
          (if parent
              (duet-diff-turns--before connection session parent turns done fail)
            (funcall done (duet-diff-turns-join turns))))
        fail)))
   fail))

(defun duet-diff-turns--parent (connection session run done fail)
  "Call DONE with the id of the turn of SESSION before RUN, or nil; else FAIL.
What is not known yet CONNECTION is asked for."
  (let ((known (duet-session-run session run)))
    (if (and known (duet-run-parent known))
        (duet-diff-turns--own connection session (duet-run-parent known) done fail)
      (duet-connection-request
       connection 'getSessionState (list :session_id run)
       :success-fn
       (lambda (result)
         (let ((parent (duet-get-string result :session :parent_session_id)))
           (if parent (duet-diff-turns--own connection session parent done fail)
             (funcall done nil))))
       :error-fn fail))))

(defun duet-diff-turns--own (connection session run done fail)
  "Call DONE with RUN if it is one of SESSION, else with nil; or FAIL.
The turn that a fork began after is another session's.  CONNECTION is
asked for one that is not known."
  (if-let ((owner (gethash run (duet-model-runs (duet-session-model session)))))
      (funcall done (and (eq owner session) run))
    (duet-connection-request
     connection 'getSessionState (list :session_id run)
     :success-fn
     (lambda (result)
       (funcall done (and (equal (duet-get-string result :session :thread_id)
                                 (duet-session-id session))
                          run)))
     :error-fn fail)))


;;; All as one change

(defun duet-diff-turns-join (turns)
  "Return what TURNS, lists of files, the first first, have changed together."
  (let ((paths '())
        (first (make-hash-table :test #'equal))
        (last (make-hash-table :test #'equal)))
    (dolist (files turns)
      (dolist (file files)
        (let ((path (duet-get-string file :file_path)))
          (unless (gethash path first)
            (puthash path file first)
            (push path paths))
          (puthash path file last))))
    (delq nil
          (mapcar (lambda (path)
                    (duet-diff-turns--file path (gethash path first) (gethash path last)))
                  (nreverse paths)))))

(defun duet-diff-turns--file (path first last)
  "Return the change of the file PATH from before FIRST to after LAST, or nil."
  (let ((before (plist-get first :before))
        (after (plist-get last :after)))
    (cond
     ((eq first last) first)
     ((or (duet-get first :binary) (duet-get last :binary))
      (append '(:binary t) last))
     ((equal before after) nil)
     (t (list :file_path path :before before :after after
              :diff (duet-diff-turns-text before after))))))

(defun duet-diff-turns-text (before after)
  "Return how the text AFTER differs from BEFORE, as a unified diff.
Either may be nil, of a file that is not there."
  (mapconcat (lambda (hunk) (duet-diff-turns--hunk hunk before after))
             (duet-lines-hunks before after) ""))

(defun duet-diff-turns--hunk (hunk before after)
  "Return HUNK of the texts BEFORE and AFTER as a unified diff has it."
  (let* ((lines (duet-lines-hunk-lines hunk))
         (old (cl-count ?+ lines :key (lambda (line) (aref line 0)) :test-not #'eq))
         (new (cl-count ?- lines :key (lambda (line) (aref line 0)) :test-not #'eq))
         (old-end (+ (duet-lines-hunk-old hunk) old -1))
         (new-end (+ (duet-lines-hunk-new hunk) new -1))
         (open-old (duet-diff-turns--open-p before old-end))
         (open-new (duet-diff-turns--open-p after new-end))
         (last-old (cl-position ?+ lines :key (lambda (line) (aref line 0))
                                :test-not #'eq :from-end t))
         (last-new (cl-position ?- lines :key (lambda (line) (aref line 0))
                                :test-not #'eq :from-end t)))
    (concat
     ;; Of what has no lines the header names the line before.
     (format "@@ -%d,%d +%d,%d @@\n"
             (if (zerop old) (1- (duet-lines-hunk-old hunk)) (duet-lines-hunk-old hunk)) old
             (if (zerop new) (1- (duet-lines-hunk-new hunk)) (duet-lines-hunk-new hunk)) new)
     (cl-loop for line in lines
              for i from 0
              concat line concat "\n"
              when (or (and open-old (eql i last-old)) (and open-new (eql i last-new)))
              concat "\\ No newline at end of file\n"))))

(defun duet-diff-turns--open-p (text line)
  "Return non-nil if LINE is the last of TEXT, and no newline ends it."
  (and text (not (string-empty-p text))
       (not (string-suffix-p "\n" text))
       (= line (1+ (cl-count ?\n text)))))

(provide 'duet-diff-turns)
;;; duet-diff-turns.el ends here
