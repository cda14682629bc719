;;; duet-quit.el --- What ends with Emacs or with a server  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; When Emacs ends, so do the servers that it has started, and the turns that
;; agents work on there are interrupted.  Somebody who ends either is told how
;; many, and asked first.
;;
;; A server may only pass on what the hub of the project says, which another
;; editor or a daemon is; then nothing ends.  The program tells who is the hub.
;; It is asked when agents begin to work, since a turn ends with its hub.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-command)
(require 'duet-connection)
(require 'duet-remote)

(defcustom duet-confirm-kill-emacs t
  "Whether to ask before Emacs ends while agents work in servers of its own."
  :type 'boolean
  :group 'duet)

(defvar duet-quit--hubs (make-hash-table :test #'eq :weakness 'key)
  "What is known of who works for a connection: t while that is asked, or a pid.")

(defun duet-quit--active (connection)
  "Return the number of turns that agents work on in the project of CONNECTION."
  (cl-count-if #'duet-session-active-run
               (duet-model-session-list (duet-connection-model connection))))

(defun duet-quit--observe (model kind &rest _)
  "Find out who works for MODEL's connection if KIND says that somebody begins."
  (when (memq kind '(session sessions))
    (when-let ((connection (duet-connection-of model)))
      (cond
       ((zerop (duet-quit--active connection)) (remhash connection duet-quit--hubs))
       ((null (gethash connection duet-quit--hubs)) (duet-quit--ask connection))))))

(defun duet-quit--ask (connection)
  "Ask the program who is the hub of the project of CONNECTION."
  (puthash connection t duet-quit--hubs)
  (duet-command-json
   (duet-connection-root connection) '("daemon" "status")
   (lambda (status)
     (when (gethash connection duet-quit--hubs)
       (puthash connection (or (duet-get-number status :pid) t) duet-quit--hubs)))
   #'ignore))

(defun duet-quit--elsewhere-p (connection)
  "Return non-nil if it is known that no process of ours works for CONNECTION."
  (let* ((pid (gethash connection duet-quit--hubs))
         (process (jsonrpc--process (duet-connection-rpc connection)))
         (own (process-id process)))
    (and (integerp pid)
         own
         ;; What processes another machine has is not known here.
         (not (duet-remote-p process))
         ;; The program may have been started by another, which is ours.
         (cl-loop for ancestor = pid
                  then (alist-get 'ppid (process-attributes ancestor))
                  repeat 10
                  while (and ancestor (> ancestor 1))
                  never (eql ancestor own)))))

(defun duet-quit-turns (connection)
  "Return how many turns are interrupted when the server of CONNECTION ends."
  (if (or (null (duet-connection-rpc connection))
          (duet-quit--elsewhere-p connection))
      0
    (duet-quit--active connection)))

(defun duet-quit-query ()
  "Ask whether Emacs may end though agents work; return non-nil if it may.
One of `kill-emacs-query-functions'."
  (or (not duet-confirm-kill-emacs)
      (let ((turns 0))
        (maphash (lambda (_ connection)
                   (setq turns (+ turns (or (duet-log-guard "Turns"
                                              (duet-quit-turns connection))
                                            0))))
                 duet-connections)
        (or (zerop turns)
            (y-or-n-p (format "%d turn%s of agents would be interrupted; exit anyway? "
                              turns (if (= turns 1) "" "s")))))))

(add-hook 'kill-emacs-query-functions #'duet-quit-query)
(duet-model-add-observer #'duet-quit--observe)

(provide 'duet-quit)
;;; duet-quit.el ends here
