;;; duet-queue-test.el --- Tests of queued prompts  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)

(defmacro duet-queue-test-with (names prompts &rest body)
  "Run BODY in the transcript of a running session with queued PROMPTS.
NAMES is a list of two symbols for the connection and the session."
  (declare (indent 2) (debug (sexp form body)))
  (pcase-let ((`(,connection ,session) names))
    `(duet-test-with-project ,connection
       (let ((duet-compose-history (make-ring 10))
             (,session (duet-test-launch ,connection "quiet stream:100000@20")))
         (save-window-excursion
           (switch-to-buffer (duet-transcript-open ,connection ,session))
           (duet-test-wait-for-state ,session 'running)
           (dolist (prompt ,prompts)
             (duet-test-request ,connection 'session.prompt
                                (list :session (duet-session-leaf-id ,session)
                                      :prompt prompt)))
           (duet-queue-test-wait-for ,prompts)
           (duet-test-listening ,@body))))))

(defun duet-queue-test-wait-for (prompts)
  "Wait until the current buffer shows PROMPTS as the queued ones, in order."
  (duet-test-wait-for
   (let ((text (duet-test-text (current-buffer)))
         (place 0)
         (shown '()))
     (while (string-match "^❯ (1\\.[0-9]+: queued, e edits it, k takes it back) \\(.*\\)" text place)
       (push (match-string 1 text) shown)
       (setq place (match-end 0)))
     (equal (nreverse shown) prompts))))

(defun duet-queue-test-go-to (text)
  "Go to TEXT, in the selected window."
  (duet-test-look)
  (goto-char (point-min))
  (search-forward text)
  (goto-char (match-beginning 0)))

(defun duet-queue-test-edit (text)
  "Edit the queued prompt TEXT, and make its compose buffer current."
  (duet-queue-test-go-to text)
  (duet-test-press "e" #'duet-edit-queued)
  (duet-test-wait-for (progn (duet-test-look) (derived-mode-p 'duet-compose-mode))))

(defun duet-queue-test-turn (session prompt)
  "Return the id of the turn of SESSION whose prompt is PROMPT."
  (duet-message-turn (cl-find-if (lambda (message)
                                  (and (eq (duet-message-kind message) 'prompt)
                                       (equal (duet-message-text message) prompt)))
                                (duet-session-order session))))

(defun duet-queue-test-interrupt (session)
  "Interrupt the turn of SESSION, so that the next prompt begins."
  (duet-test-look)
  (duet-interrupt session))

(ert-deftest duet-queue-test-edit ()
  "Saving an edited prompt replaces the text of the queued one, which then runs."
  (duet-queue-test-with (connection session) '("quiet one" "quiet two")
    (let ((transcript (current-buffer)))
      (goto-char (point-min))
      (duet-test-should-say "No queued prompt" (duet-test-press "e" #'duet-edit-queued))
      (duet-queue-test-edit "quiet one")
      (should (equal (buffer-string) "quiet one"))
      (should (equal (substring-no-properties (duet-compose--header))
                     " Edit queued prompt 1.2: C-c C-c save, C-c C-k cancel"))
      (duet-test-should-say "is sent in its turn"
        (duet-test-press "C-c C-n" #'duet-compose-send-now))
      ;; Unchanged text does not go into the history.
      (duet-test-press "C-c C-k" #'duet-compose-cancel)
      (should (duet-test-heard "^Not saved; the queued prompt is unchanged$"))
      (should (ring-empty-p duet-compose-history))
      (duet-queue-test-edit "quiet one")
      (erase-buffer)
      (duet-test-should-say "nothing to save" (duet-test-press "C-c C-c" #'duet-compose-send))
      (insert "/model big and more")
      (duet-test-should-say "Only the text"
        (duet-test-press "C-c C-c" #'duet-compose-send))
      (erase-buffer)
      (insert "quiet other")
      (duet-test-press "C-c C-c" #'duet-compose-send)
      (duet-test-wait-for (duet-test-heard "^Saved; the prompt is queued$"))
      (should (eq (duet-test-look) transcript))
      (duet-queue-test-wait-for '("quiet other" "quiet two"))
      (should (member "quiet other" (ring-elements duet-compose-history)))
      (duet-queue-test-interrupt session)
      (duet-test-wait-for-text transcript
                               "^❯ quiet other\n+Hello.*You asked: quiet other")
      (duet-test-wait-for-text transcript "You asked: quiet two"))))

(ert-deftest duet-queue-test-move ()
  "A queued prompt moves with point, and the prompts run in the new order."
  (duet-queue-test-with (connection session) '("quiet one" "quiet two" "quiet three")
    (let ((last (duet-queue-test-turn session "quiet two")))
      (duet-queue-test-go-to "quiet three")
      (duet-test-press "M-<up>" #'duet-move-queued-up)
      (duet-queue-test-wait-for '("quiet one" "quiet three" "quiet two"))
      (should (looking-at "quiet three"))
      (should (= (point) (window-point)))
      (duet-test-press "M-<up>" #'duet-move-queued-up)
      (duet-queue-test-wait-for '("quiet three" "quiet one" "quiet two"))
      (should (looking-at "quiet three"))
      (duet-test-press "M-<up>" #'duet-move-queued-up)
      (duet-test-wait-for (duet-test-heard "^This prompt runs next already$"))
      (duet-queue-test-go-to "quiet two")
      (duet-test-press "M-<down>" #'duet-move-queued-down)
      (duet-test-wait-for (duet-test-heard "^This prompt runs last already$"))
      (duet-queue-test-go-to "quiet one")
      (duet-test-press "M-<down>" #'duet-move-queued-down)
      (duet-queue-test-wait-for '("quiet three" "quiet two" "quiet one"))
      (duet-test-press "M-<up>" #'duet-move-queued-up)
      (duet-queue-test-wait-for '("quiet three" "quiet one" "quiet two"))
      (should (equal (duet-session-leaf-id session) last))
      (duet-queue-test-interrupt session)
      (duet-test-wait-for-text
       (current-buffer)
       "You asked: quiet three\\(.*\n\\)+.*You asked: quiet one\\(.*\n\\)+.*You asked: quiet two")
      (duet-test-wait-for-state session 'completed)
      ;; An Emacs without the events of the moves also continues after the last prompt.
      (kill-buffer)
      (let ((model (duet-connection-model connection)))
        (clrhash (duet-model-sessions model))
        (clrhash (duet-model-turns model))
        (duet-connection-refresh connection)
        (setq session (duet-test-wait-for (duet-connection-session connection last)))
        (switch-to-buffer (duet-transcript-open connection session))
        (duet-test-wait-for-text (current-buffer) "You asked: quiet two")
        (duet-test-wait-for (= (length (duet-session-turns session)) 4))
        (should (equal (duet-session-leaf-id session) last))))))

(ert-deftest duet-queue-test-begun ()
  "A prompt that starts while it is edited keeps its text.
The edited text becomes a new prompt."
  (duet-queue-test-with (connection session) '("quiet one")
    (let ((transcript (current-buffer))
          (compose (progn (duet-queue-test-edit "quiet one") (current-buffer))))
      (insert " more")
      (with-current-buffer transcript (duet-interrupt session))
      (duet-test-wait-for-text transcript "You asked: quiet one")
      (duet-test-wait-for-state session 'completed)
      (should (eq (duet-test-look) compose))
      (duet-test-press "C-c C-c" #'duet-compose-send)
      (duet-test-wait-for
       (duet-test-heard "not saved: the prompt has begun; C-c C-c sends the text as a new"))
      (should (eq (duet-test-look) compose))
      (should (equal (buffer-string) "quiet one more"))
      (should (string-match-p "^ Continue" (duet-compose--header)))
      (duet-test-press "C-c C-c" #'duet-compose-send)
      (duet-test-wait-for-text transcript "^❯ quiet one\n\\(.*\n\\)+❯ quiet one more\n")
      (duet-test-wait-for-text transcript "You asked: quiet one more")
      ;; The prompt can no longer be edited.
      (duet-queue-test-go-to "❯ quiet one more")
      (duet-test-should-say "No queued prompt"
        (duet-test-press "e" #'duet-edit-queued)))))

(ert-deftest duet-queue-test-another-client ()
  "The transcript shows edits and moves by another client, as does a new one."
  (duet-queue-test-with (connection session) '("quiet one" "quiet two")
    (let* ((one (duet-queue-test-turn session "quiet one"))
           (two (duet-queue-test-turn session "quiet two"))
           (long (format "quiet long\n%send" (apply #'concat (make-list 40000 "words\n")))))
      (duet-queue-test-go-to "quiet two")
      (duet-test-request connection 'turn.edit
                         (list :turn one :prompt "quiet new"))
      (duet-test-request connection 'turn.move (list :turn one))
      (duet-queue-test-wait-for '("quiet two" "quiet new"))
      (should (looking-at "quiet two"))
      ;; An event has only the beginning of a long text.
      (duet-test-request connection 'turn.edit (list :turn two :prompt long))
      (duet-test-wait-for-text (current-buffer) "^  … cut: the rest is not loaded")
      (duet-queue-test-edit "quiet long\n")
      (should (equal (buffer-string) long))
      (duet-test-press "C-c C-k" #'duet-compose-cancel)
      (duet-test-request connection 'turn.edit (list :turn two :prompt "quiet 2"))
      (duet-test-look)
      (duet-queue-test-wait-for '("quiet 2" "quiet new"))
      (kill-buffer)
      (switch-to-buffer (duet-transcript-open connection session))
      (duet-queue-test-wait-for '("quiet 2" "quiet new"))
      (duet-queue-test-interrupt session)
      (duet-test-wait-for-text
       (current-buffer) "❯ quiet 2\n\\(.*\n\\)+.*You asked: quiet 2\\(.*\n\\)+❯ quiet new\n"))))

(provide 'duet-queue-test)
;;; duet-queue-test.el ends here
