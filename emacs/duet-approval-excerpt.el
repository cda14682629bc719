;;; duet-approval-excerpt.el --- What a tool would get, as far as there is room  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; At a question stands what is decided: the beginning and the end of what the
;; tool would get, and how much of it is hidden.  `duet-approval-view' shows all.
;; What an event leaves out because it is too long is asked for.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'subr-x)
(require 'duet-approval)
(require 'duet-render)
(require 'duet-visible)

(defconst duet-approval-lines 8
  "How many lines of what a tool gets stand at a question.")

(defconst duet-approval--width 300
  "How many characters of each such line.")

(defconst duet-approval-heading 60
  "How many columns of its summary stand above what a tool gets.")

(defun duet-approval--below (input)
  "Return INPUT, what a tool gets, without a command that stands above it."
  (let ((command (duet-get input :command)))
    (if (and (stringp command)
             (equal (duet-visible command) (duet-approval-line command))
             (<= (string-width (duet-visible command)) duet-approval-heading))
        (cl-loop for (key value) on input by #'cddr
                 unless (eq key :command) append (list key value))
      input)))

(defun duet-approval-excerpt (approval)
  "Return the beginning and the end of what the tool of APPROVAL gets.
The value is a list of lines, in which one says how much is hidden; nil if
its summary has all of it.  What a diff shows is left out, and so is a
command that its summary has."
  (let* ((data (duet-approval-data approval))
         (input (duet-approval--below
                 (duet-render-beside (duet-approval-input approval)
                                     (duet-get-objects data :diffs))))
         (command (and (duet-get input :command) (null (cddr input))
                       (duet-get-string input :command)))
         (text (cond ((duet-approval-question-p approval)
                      (duet-approval-title approval))
                     ((duet-approval-plan approval))
                     (command (if (equal (duet-visible command) (duet-approval-line command))
                                  "" command))
                     ((null input) "")
                     ((and (consp input) (keywordp (car input)))
                      (string-join (cl-loop for (key value) on input by #'cddr
                                            collect (duet-approval--member key value))
                                   "\n"))
                     (t (duet-approval--json input))))
         (details (duet-get-string data :details))
         (text (if details
                   (string-join (cons details (and text (not (string-empty-p text))
                                                   (list text)))
                                "\n")
                 text)))
    (cond
     ((and (duet-get data :truncated) (null input))
      (list "… it is too long to stand here: [v] view shows all of it"))
     ((or (null text) (string-empty-p text)
          (and (duet-approval-question-p approval)
               (equal text (duet-approval-name approval))))
      nil)
     (t (duet-approval--cut (split-string text "\n"))))))

(defun duet-approval--member (key value)
  "Return the lines of the member KEY of an input, which is VALUE.
Those after the first are indented, so that none looks like another member."
  (format "%s: %s" (duet-get-name key)
          (replace-regexp-in-string "\n" "\n    "
                                    (if (stringp value) value (duet-approval--json value))
                                    t t)))

(defun duet-approval--cut (lines)
  "Return the first and the last of LINES, and between them what is hidden."
  (let* ((left (- (length lines) duet-approval-lines))
         (tail (/ duet-approval-lines 3)))
    (mapcar
     (lambda (line)
       (let ((more (- (length line) duet-approval--width)))
         (duet-visible
          (if (<= more 0) line
            (format "%s … %d characters hidden: [v] view shows all … %s"
                    (substring line 0 (- duet-approval--width 100)) more
                    (substring line -100))))))
     (if (<= left 0) lines
       (append (butlast lines (+ left tail))
               (list (format "… %d more lines, %d characters hidden: [v] view shows all" left
                             (apply #'+ left (mapcar #'length
                                                     (seq-subseq lines
                                                                 (- duet-approval-lines tail)
                                                                 (- tail))))))
               (last lines tail))))))

(defun duet-approval--named (input)
  "Return INPUT, whose members have names that are text (`duet-get-name')."
  (cond ((vectorp input) (cl-map 'vector #'duet-approval--named input))
        ((and (consp input) (keywordp (car input)))
         (cl-loop for (key value) on input by #'cddr
                  append (list (intern (concat ":" (duet-get-name key)))
                               (duet-approval--named value))))
        (t input)))

(defun duet-approval--json (input)
  "Return INPUT, what a tool gets, as JSON for people."
  (if (null input)
      "{}"
    (let ((json-encoding-pretty-print t)
          (json-encoding-default-indentation "  "))
      (condition-case nil
          (json-encode (duet-approval--named input))
        (error (format "%S" input))))))

(defvar duet-approval--fetched (make-hash-table :test #'equal)
  "The ids of questions all of which was asked for.")

(defun duet-approval-complete (approval)
  "Ask the server for what an event has left out of APPROVAL, once."
  (when-let* ((id (duet-approval-id approval))
              (connection (and (duet-get (duet-approval-data approval) :truncated)
                               (not (gethash id duet-approval--fetched))
                               (duet-approval-connection approval))))
    (puthash id t duet-approval--fetched)
    (duet-connection-request
     connection 'getApproval (list :approval_id id)
     :error-fn (lambda (_) (remhash id duet-approval--fetched))
     :success-fn
     (lambda (result)
       (let ((data (copy-sequence (duet-approval-data approval)))
             (whole (duet-get result :approval)))
         (dolist (key '(:tool_input :diff :plan :details :schema :truncated))
           (setq data (plist-put data key (plist-get whole key))))
         (setf (duet-approval-data approval) data)
         ;; Told again, as after another start of the server, it is asked for again.
         (unless (duet-get data :truncated) (remhash id duet-approval--fetched))
         (when (eq connection (duet-approval-connection approval))
           (duet-model-announce (duet-connection-model connection) 'approval
                                (duet-approval-session approval connection)
                                approval)))))))

(provide 'duet-approval-excerpt)
;;; duet-approval-excerpt.el ends here
