;;; duet-directive.el --- Words of a prompt that set the agent  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A prompt may begin with words for Duet instead of the agent: `/model NAME',
;; `/mode NAME', `/agent NAME' in a new session, and `/OPTION VALUE' with an option
;; of the agent's own.  They set the agent and are left out of what it is told; a
;; prompt of nothing else is not sent.  `/budget turns=20,cost=2' says what the turns
;; from there on may use (duet-budget.el).  Where the agent has a slash command of
;; that name, it is the agent's.
;;
;; The words and what can stand behind them are completed at point, and so are the
;; agent's slash commands.  A value that the agent is known not to have is refused,
;; with those that it has, before anything is sent.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-budget)
(require 'duet-settings)
(require 'duet-visible)

(declare-function duet-agents-usable "duet-agents" (connection))

(defun duet-directive--words (session &optional agent)
  "Return the words that set the agent of SESSION, or of a new one if nil.
AGENT is the name of that of a new one, nil for the one that was described.
Each is (WORD CATEGORY ABOUT CHOICES), CHOICES being what can stand behind
it, as `duet-settings-choices' returns them, or nil if that is not known."
  (let* ((described (and (or (null agent)
                             (equal agent (duet-get-string duet-settings-described :agent)))
                         duet-settings-described))
         (told (if session (duet-session-told session)
                 (duet-get described :agent_session)))
         (modes (if session (duet-session-modes session)
                  (duet-get-objects described :modes)))
         (commands (mapcar (lambda (command) (duet-get-string command :name))
                           (duet-get-objects told :commands)))
         (words
          (append
           (list (list "model" 'duet-model "the model that the agent uses"
                       (duet-settings-choices (duet-get-objects told :model :available)))
                 (list "mode" 'duet-mode "what the agent may do"
                       (duet-settings-mode-choices modes session))
                 (list "budget" 'duet-budget "what a turn may use" nil))
           (unless session
             (list (list "agent" 'duet-agent "the agent that is asked"
                         (and (featurep 'duet-agents)
                              (mapcar (lambda (name) (list name name ""))
                                      (duet-agents-usable duet-connection))))))
           (mapcar (lambda (option)
                     (list (duet-get-string option :id) 'duet-option-value
                           (or (duet-get-string option :name) "an option of the agent")
                           (duet-settings-choices (duet-get-objects option :values))))
                   (duet-settings-options told)))))
    (cl-remove-if (lambda (word)
                    (or (member (car word) commands)
                        ;; Nobody could type it, or it is another word.
                        (not (string-match-p "\\`[^/[:space:]]+\\'" (car word)))
                        (not (eq word (assoc (car word) words)))))
                  words)))

(defun duet-directive--scan (text words)
  "Return how TEXT begins with some of WORDS.
That is a list of (WORD . VALUE), and where the rest begins; VALUE is nil if
there is none."
  (let ((place (string-match-p "[^ \t\n]\\|\\'" text))
        (found '())
        word)
    (while (and (eq place (string-match "/\\([^/ \t\n]+\\)\\(?:[ \t]+\\([^/ \t\n][^ \t\n]*\\)\\)?\\(?:[ \t\n]+\\|\\'\\)"
                                        text place))
                (< place (length text))
                (setq word (assoc (match-string 1 text) words)))
      (push (cons word (match-string 2 text)) found)
      (setq place (match-end 0)))
    (cons (nreverse found) place)))

(defun duet-directive--value (word value)
  "Return the id that VALUE stands for behind WORD, or signal a `user-error'."
  (pcase-let ((`(,name ,_ ,_ ,choices) word))
    (cond
     ((equal name "budget") (duet-budget-parse (or value "")))
     ((null value)
      (user-error "/%s takes one of: %s" name (duet-directive--list choices)))
     ((or (null choices) (cl-find value choices :key #'cadr :test #'equal)) value)
     ((cadr (cl-find value choices :key #'car :test #'cl-equalp)))
     (t (user-error "/%s %s: there is no such one, but: %s" name
                    (duet-visible-line value) (duet-directive--list choices))))))

(defun duet-directive--list (choices)
  "Return CHOICES in words."
  (if choices (mapconcat (lambda (choice) (duet-visible-line (cadr choice))) choices ", ")
    "what the agent has, which is not known yet"))

(defun duet-directive-take (text session)
  "Return what TEXT, a prompt for SESSION or a new one, sets: (REST . SETTINGS).
REST is what the agent is told.  SETTINGS is a property list of :agent, :mode,
:model, :options and :budget, or nil.  A value that cannot be is a `user-error'."
  (let* ((scan (duet-directive--scan
                text (duet-directive--words
                      session (and (null session) (duet-directive-agent text)))))
         (settings '())
         (options '()))
    (pcase-dolist (`(,word . ,value) (car scan))
      (setq value (duet-directive--value word value))
      (pcase (car word)
        ((and name (or "agent" "mode" "model" "budget"))
         (setq settings (plist-put settings (intern (concat ":" name)) value)))
        (name (setq options (plist-put options (intern (concat ":" name)) value)))))
    (when options (setq settings (plist-put settings :options options)))
    (when (equal (plist-get settings :mode) "bypassPermissions")
      (duet-settings-confirm-bypass))
    (cons (if settings (substring text (cdr scan)) text) settings)))

(defun duet-directive-agent (text)
  "Return the agent that TEXT, a prompt for a new session, names, or nil."
  (cdr (assoc "agent" (mapcar (lambda (found) (cons (caar found) (cdr found)))
                              (car (duet-directive--scan
                                    text (duet-directive--words nil)))))))


;;; Completion

(defun duet-directive-complete (session)
  "Complete what sets the agent of SESSION, or a slash command of its.
Return what a `completion-at-point' function does.  The prompt is all that the
buffer shows."
  (let* ((end (point))
         (beg (save-excursion (skip-chars-backward "^ \t\n") (point)))
         (before (buffer-substring-no-properties (point-min) beg))
         (agent (and (null session) (duet-directive-agent before)))
         (words (progn
                  (when agent (duet-settings-describe duet-connection agent))
                  (duet-directive--words session agent)))
         (scan (duet-directive--scan before words))
         (last (car (last (car scan)))))
    (cond
     ;; Something else stands before it.
     ((< (cdr scan) (length before)) nil)
     ((and last (null (cdr last)) (not (eq (char-after beg) ?/)))
      (if (equal (caar last) "budget") (duet-budget-complete beg end)
        (duet-directive--complete-value beg end (car last))))
     ((eq (char-after beg) ?/)
      (duet-directive--complete-word beg end words
                                     (unless (car scan) (duet-settings-commands session)))))))

(defun duet-directive--complete-word (beg end words commands)
  "Complete from BEG to END one of WORDS, or of COMMANDS, the agent's."
  (let ((candidates
         (append
          (mapcar (lambda (command)
                    (list (concat "/" (duet-get-string command :name))
                          (concat
                           (when-let ((hint (duet-get-string command :input_hint)))
                             (format " [%s]" (duet-visible-line hint)))
                           (when-let ((about (duet-get-string command :description)))
                             (concat "  " (duet-visible-line about))))))
                  commands)
          (mapcar (lambda (word)
                    (list (concat "/" (car word))
                          (concat "  " (duet-visible-line (nth 2 word)))))
                  words))))
    (list beg end (duet-settings-table candidates 'duet-command)
          :exclusive 'no
          :annotation-function (lambda (candidate) (cadr (assoc candidate candidates)))
          :exit-function #'duet-directive--completed)))

(defun duet-directive--complete-value (beg end word)
  "Complete from BEG to END what stands behind WORD."
  (pcase-let* ((`(,_ ,category ,_ ,choices) word)
               (candidates (mapcar (lambda (choice)
                                     (list (cadr choice)
                                           (duet-directive--about choice)))
                                   choices)))
    (list beg end (duet-settings-table candidates category)
          :exclusive 'no
          :annotation-function (lambda (candidate) (cadr (assoc candidate candidates)))
          :exit-function #'duet-directive--completed)))

(defun duet-directive--about (choice)
  "Return what there is to say of CHOICE, as `duet-settings-choices' returns it."
  (pcase-let ((`(,words ,id ,about) choice))
    (let ((parts (cl-remove-if #'string-empty-p
                               (list (if (equal words id) "" words) (or about "")))))
      (if parts (concat "  " (duet-visible-line (string-join parts ": "))) ""))))

(defun duet-directive--completed (_ status)
  "Go on behind what was completed with STATUS."
  (when (and (eq status 'finished) (eobp)) (insert " ")))

(provide 'duet-directive)
;;; duet-directive.el ends here
