;;; duet-budget.el --- What a turn of an agent may use  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A budget is what each turn of a conversation may use: rounds of tool calls,
;; time, tokens, money.  A turn that has reached it is interrupted.  It is written
;; as `turns=20,time=30m,tokens=200k,cost=2.50', in the option `duet-budget' for
;; all sessions that begin here, or behind `/budget' in a prompt (duet-directive.el).
;; What it does not name is as [budget.run] of the configuration has it.

;;; Code:

(require 'cl-lib)
(require 'subr-x)

(defcustom duet-budget nil
  "What each turn of a session that begins in this Emacs may use.
A string such as \"turns=20,time=30m,tokens=200k,cost=2.50\", where the time
has the units s, m and h, tokens may have k or M behind them, and the cost is
in US dollars; repeats is how often one after the other the same tool may be
called with the same input.  Nil, or what is not named, is as [budget.run] of
the configuration has it.  A prompt that begins with /budget has its own."
  :type '(choice (const :tag "As configured" nil) string)
  :group 'duet)

(defconst duet-budget--parts
  '(("turns" :turns integer "rounds of tool calls, as in turns=20")
    ("time" :time_ms time "how long the agent may work, as in time=1h30m")
    ("tokens" :tokens integer "tokens, read and written, as in tokens=200k")
    ("cost" :cost_usd number "US dollars, as in cost=2.50")
    ("repeats" :repeats integer "the same tool call in a row, as in repeats=10"))
  "What a budget can name: (NAME MEMBER KIND ABOUT), MEMBER being the protocol's.")

(defun duet-budget--number (kind text)
  "Return the number that TEXT, a part of a budget of KIND, spells; nil if none.
A time is in milliseconds."
  (let ((case-fold-search nil))
    (pcase kind
      ('time
       (when (string-match-p "\\`\\(?:[0-9]+\\(?:\\.[0-9]+\\)?[smh]\\)+\\'" text)
         (let ((place 0) (sum 0))
           (while (string-match "\\([0-9.]+\\)\\([smh]\\)" text place)
             (setq sum (+ sum (* (string-to-number (match-string 1 text))
                                 (pcase (match-string 2 text)
                                   ("s" 1000) ("m" 60000) (_ 3600000))))
                   place (match-end 0)))
           (round sum))))
      ('number
       (when (string-match-p "\\`[0-9]+\\(?:\\.[0-9]+\\)?\\'" text)
         (string-to-number text)))
      (_
       (when (string-match "\\`\\([0-9]+\\)\\([kM]?\\)\\'" text)
         (* (string-to-number (match-string 1 text))
            (pcase (match-string 2 text) ("k" 1000) ("M" 1000000) (_ 1))))))))

(defun duet-budget-parse (text)
  "Return the budget that TEXT spells, as the protocol has it, or nil for nil.
What is no budget is a `user-error' that says what one is."
  (let ((budget '()))
    (dolist (part (and text (split-string text ",")))
      (let* ((pair (split-string (string-trim part) "="))
             (known (assoc (car pair) duet-budget--parts))
             (number (and known (= (length pair) 2)
                          (duet-budget--number (nth 2 known) (cadr pair)))))
        (unless known
          (user-error "A budget is written as turns=20,time=30m,tokens=200k,cost=2.50%s"
                      (if (string-blank-p part) "" (format ", and has no %s" (string-trim part)))))
        (unless (and number (< 0 number 1e15))
          (user-error "%s is no budget: %s" (string-trim part) (nth 3 known)))
        (setq budget (plist-put budget (nth 1 known) number))))
    budget))

(defun duet-budget-default ()
  "Return the budget that the option `duet-budget' spells, or nil."
  (unless (or (null duet-budget) (stringp duet-budget))
    (user-error "`duet-budget' must be a string, such as \"turns=20,cost=2.50\", or nil"))
  (duet-budget-parse duet-budget))

(defun duet-budget-complete (beg end)
  "Complete the last part of the budget that is written from BEG to END.
Return what a `completion-at-point' function does."
  (let* ((place (save-excursion
                  (goto-char end)
                  (skip-chars-backward "^," beg)
                  (point)))
         (written (mapcar (lambda (part) (car (split-string part "=")))
                          (split-string (buffer-substring-no-properties beg place) "," t)))
         (candidates (cl-loop for (name _ _ about) in duet-budget--parts
                              unless (member name written)
                              collect (list (concat name "=") about))))
    (list place end candidates
          :exclusive 'no
          :annotation-function (lambda (candidate)
                                 (concat "  " (cadr (assoc candidate candidates)))))))

(provide 'duet-budget)
;;; duet-budget.el ends here
