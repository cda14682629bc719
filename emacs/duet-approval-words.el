;;; duet-approval-words.el --- What a question asks, in words  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A question of an agent as the server tells it, and what is said of it: its
;; name, its tool, what it is about in one line, what it can be answered with, and
;; how it ended.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-form)
(require 'duet-model)
(require 'duet-remote)
(require 'duet-render)

(defun duet-approval-question-p (approval)
  "Return non-nil if APPROVAL is a question, not a tool that wants to run."
  (equal (duet-approval-type approval) "human_contact"))

(defun duet-approval-elicits-p (approval)
  "Return non-nil if APPROVAL is a form, or an address to be opened."
  (let ((data (duet-approval-data approval)))
    (or (duet-form-p data) (duet-form-link-p data))))

(defun duet-approval-editable-p (approval)
  "Return non-nil if the tool of APPROVAL would run with another input.
A server that says nothing of it takes one."
  (not (or (duet-approval-question-p approval)
           (eq (plist-get (duet-approval-data approval) :input_editable) :json-false))))

(defun duet-approval-tool (approval)
  "Return the name of the tool that APPROVAL is about."
  (if (duet-approval-question-p approval)
      "question"
    (duet-approval-line (or (duet-get-string (duet-approval-data approval) :tool_name)
                             "tool"))))

(defun duet-approval-name (approval)
  "Return what APPROVAL asks in a few words."
  (let* ((title (duet-approval-line (or (duet-approval-title approval) "a question")))
         (name (if (and (not (duet-approval-question-p approval))
                        (equal title (duet-approval-tool approval))
                        (duet-approval-input approval))
                   ;; It says too little.
                   (concat title " " (substring-no-properties
                                      (duet-approval-summary approval)))
                 title)))
    (truncate-string-to-width name 70 nil nil "…")))

(defconst duet-approval--longest 400
  "How many characters of a text stand on a line.")

(defun duet-approval-line (text)
  "Return TEXT as one line; what is too long for that is cut, and says so."
  (concat (duet-visible-line (substring text 0 (min duet-approval--longest (length text))))
          (if (> (length text) duet-approval--longest) "…" "")))

(defun duet-approval-input (approval)
  "Return the input of the tool that APPROVAL is about, or nil."
  (duet-get (duet-approval-data approval) :tool_input))

(defun duet-approval--counts (data)
  "Return how many lines DATA of a question add and remove, as text, or nil.
An event has old and new texts, a reply a unified diff."
  (let ((diffs (duet-get-objects data :diffs))
        (diff (duet-get-string data :diff))
        (added 0)
        (removed 0))
    (cond
     (diffs (duet-render--counts diffs))
     (diff
      (dolist (line (split-string diff "\n"))
        (cond ((string-match-p "\\`\\(?:---\\|\\+\\+\\+\\) " line))
              ((string-prefix-p "+" line) (cl-incf added))
              ((string-prefix-p "-" line) (cl-incf removed))))
      (duet-render-counts added removed)))))

(defun duet-approval-summary (approval &optional root)
  "Return in one line what APPROVAL is about: a command, a file, a question.
Files are shown relative to ROOT."
  (let* ((data (duet-approval-data approval))
         (input (duet-approval-input approval))
         (command (duet-get input :command))
         (paths (duet-get-strings data :paths))
         (counts (duet-approval--counts data)))
    (cond
     ((duet-approval-question-p approval) (duet-approval-name approval))
     ((stringp command) (propertize (duet-approval-line command) 'face 'duet-code))
     ((and (vectorp command) (cl-every #'stringp command))
      (propertize (duet-approval-line (string-join command " ")) 'face 'duet-code))
     (paths
      (concat (mapconcat (lambda (path)
                           (duet-approval-line
                            (or (and root (duet-remote-inside path root))
                                (duet-remote-abbreviate path))))
                         (seq-take paths 3) ", ")
              (if (nthcdr 3 paths) (format " and %d more" (- (length paths) 3)) "")
              (if counts (concat " " counts) "")))
     ((and (consp input) (keywordp (car input)))
      (duet-approval-line
       (mapconcat (lambda (key)
                    (let ((value (plist-get input key)))
                      (format "%s: %s" (duet-get-name key)
                              (if (stringp value) value (duet-log-brief value)))))
                  (cl-loop for key in input by #'cddr collect key) ", ")))
     (t (duet-approval-line (or (duet-approval-title approval) ""))))))

(defun duet-approval-options (approval)
  "Return the answers that APPROVAL offers: a list of (NAME . ID)."
  (delq nil
        (mapcar (lambda (option)
                  (let ((id (duet-get-string option :option_id))
                        (name (duet-get-string option :name)))
                    (and (or id name)
                         (cons (duet-approval-line (or name id)) (or id name)))))
                (duet-get-objects (duet-approval-data approval) :options))))

(defun duet-approval-options-only-p (approval)
  "Return non-nil if APPROVAL is answered with one of its options alone.
So it is where an agent lets one choose: its protocol has no place for words."
  (eq (duet-get (duet-approval-data approval) :options_only) t))

(defun duet-approval-declinable-p (approval)
  "Return non-nil if APPROVAL, a question, need not be answered to go on."
  (eq (duet-get (duet-approval-data approval) :declinable) t))

(defun duet-approval-rule-p (approval)
  "Return non-nil if an answer to APPROVAL can become a rule for good.
The hub says what a rule would cover; an event that is too long leaves
that out."
  (let ((data (duet-approval-data approval)))
    (and (not (duet-approval-question-p approval))
         (not (duet-approval-plan approval))
         (or (duet-get data :rule_preview) (duet-get data :truncated)))))

(defun duet-approval-plan (approval)
  "Return the plan that the agent of APPROVAL wants to carry out, or nil."
  (duet-get-string (duet-approval-data approval) :plan))

(defun duet-approval-option-rejects-p (option)
  "Return non-nil if an agent that is given OPTION does not do what it asks for."
  (string-prefix-p "reject_" (or (duet-get-string option :kind) "")))

;; By its first word, so that one that says two things is explained.
(defconst duet-approval--allowing
  (concat "\\`\\(?:always +\\)?"
          (regexp-opt '("accept" "allow" "approve" "confirm" "ok" "permit" "proceed" "run"
                        "yes")
                      'words))
  "Regexp for names of answers that say that they allow.")

(defconst duet-approval--denying
  (concat "\\`\\(?:always +\\)?"
          (regexp-opt '("cancel" "decline" "deny" "disallow" "do not" "don't" "never" "no"
                        "refuse" "reject")
                      'words))
  "Regexp for names of answers that say that they deny.")

(defun duet-approval--effect (name kind)
  "Return what an answer of an agent's called NAME, of KIND, does, as text.
It is empty where the name says it."
  (let* ((case-fold-search t)
         (remembered (member kind '("allow_always" "reject_always")))
         (does (pcase kind
                 ((or "allow_once" "allow_always")
                  (unless (string-match-p duet-approval--allowing name) "allows"))
                 ((or "reject_once" "reject_always")
                  (unless (string-match-p duet-approval--denying name) "denies"))))
         (effects (delq nil (list does (and remembered "the agent remembers it")))))
    (if effects (format " (%s)" (string-join effects "; ")) "")))

(defun duet-approval-answers (approval)
  "Return the answers of its own that the agent of APPROVAL offers, in words."
  (mapcar (lambda (option)
            (let ((name (duet-approval-line (or (duet-get-string option :name)
                                                (duet-get-string option :option_id) ""))))
              (concat name (duet-approval--effect name (duet-get-string option :kind)))))
          (duet-get-objects (duet-approval-data approval) :options)))

(defconst duet-approval--plain
  '(("allow_once" "accept" "allow" "allow once" "approve" "ok" "proceed" "yes")
    ("reject_once" "decline" "deny" "no" "reject" "reject once"))
  "Kinds of answers, and names that say no more than the kind.")

(defun duet-approval-plain-p (approval number)
  "Return non-nil if answer NUMBER of the agent of APPROVAL is what a key does.
To approve takes the first that allows once, and to deny the first that rejects."
  (let* ((options (duet-get-objects (duet-approval-data approval) :options))
         (option (nth (1- number) options))
         (kind (duet-get-string option :kind)))
    (and (member (downcase (or (duet-get-string option :name) ""))
                 (cdr (assoc kind duet-approval--plain)))
         (eq option (cl-find kind options :test #'equal
                             :key (lambda (other) (duet-get-string other :kind)))))))

(defun duet-approval-outcome (data)
  "Return in words how a question ended: DATA of the event that tells it."
  (let ((decision (or (duet-get-string data :decision) "answered"))
        (comment (duet-get-string data :response_text)))
    ;; A rule or a mode is named behind an equal sign.
    (pcase (car (split-string (or (duet-get-string data :decided_by) "") "="))
      ("end" "was withdrawn: the run has ended")
      ("timeout" "has expired")
      ("overtaken" "was withdrawn: the conversation went on without it")
      ("changed" "was replaced: the agent changed the tool call")
      ((and by (or "rule" "mode")) (format "was %s by a %s" decision by))
      (_ (format "was %s elsewhere%s"
                 (if (equal decision "responded") "answered" decision)
                 (if comment (format ": %s" (duet-approval-line comment)) ""))))))

(provide 'duet-approval-words)
;;; duet-approval-words.el ends here
