;;; duet-search.el --- Search in all sessions  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-search' searches the project's sessions for words, and lists the
;; matches.  RET on a match opens its transcript there.  If that part of the
;; session is not loaded yet, it is loaded first.

;;; Code:

(require 'ansi-color)
(require 'cl-lib)
(require 'pulse)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-events)
(require 'duet-header)
(require 'duet-history)
(require 'duet-look)
(require 'duet-menu-bar)
(require 'duet-section)
(require 'duet-settings)
(require 'duet-transcript)

(declare-function duet "duet" (&optional directory))

;;; The search

(defcustom duet-search-limit 50
  "Number of matches to list at once; the server's maximum is 200."
  :type 'natnum
  :group 'duet)

(defface duet-search-match '((t :inherit match))
  "Face of the matched words."
  :group 'duet)

(defvar duet-search-history nil
  "History of searches.")

(defvar-local duet-search--query nil
  "The query of the buffer.")
(defvar-local duet-search--next nil
  "The offset of the next matches to load, or nil.")
(defvar-local duet-search--request 0
  "The number of the latest request; replies to earlier ones are ignored.")

(defvar duet-search-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map special-mode-map)
    (define-key map (kbd "RET") #'duet-search-visit)
    (define-key map [mouse-2] #'duet-search-visit-mouse)
    (define-key map [follow-link] 'mouse-face)
    (define-key map (kbd "C-o") #'duet-search-display)
    (define-key map "n" #'duet-search-next)
    (define-key map "p" #'duet-search-previous)
    (define-key map "+" #'duet-search-more)
    (define-key map "/" #'duet-search)
    (define-key map "g" #'duet-search-refresh)
    (define-key map "j" #'duet-approval-next)
    (define-key map "l" #'duet)
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-search-mode'.")

(define-derived-mode duet-search-mode special-mode "Duet-Search"
  "Major mode of the list of matches in sessions.

\\{duet-search-mode-map}"
  (setq truncate-lines t
        buffer-undo-list t
        next-error-function #'duet-search-next-error
        header-line-format '(:eval (duet-search--header))))

(duet-menu-bar-add duet-search-mode-map
                   '(["Open" duet-search-visit]
                     ["Open in Another Window" duet-search-display]
                     ["More" duet-search-more :enable duet-search--next]
                     ["Search Again" duet-search-refresh]))

(defun duet-search--header ()
  "Return the header line."
  (duet-header-fit
   (cons
    (concat " Search: " (propertize (replace-regexp-in-string
                                   "%" "%%" (or duet-search--query ""))
                                  'face 'bold)
            "  " (duet-header-key #'duet-search-visit "open" 'duet-search-mode-map))
    (duet-header-keys 'duet-search-mode-map
                      '(2 duet-search "search anew")
                      (and duet-search--next '(1 duet-search-more "more"))))))

;;;###autoload
(defun duet-search (query)
  "List the messages of the project's sessions with the words in QUERY.
The last word may be incomplete."
  (interactive
   (list (read-string (format-prompt "Search sessions" nil)
                      nil 'duet-search-history)))
  (when (string-blank-p query)
    (user-error "Nothing to search for"))
  (let ((buffer (duet-connection-buffer (duet-connection-here) "search" #'duet-search-mode)))
    (with-current-buffer buffer
      (setq duet-search--query query)
      (duet-search-refresh))
    (pop-to-buffer buffer)))

(defun duet-search-refresh ()
  "Repeat the search."
  (interactive (duet-only-in 'duet-search-mode) duet-search-mode)
  (let ((inhibit-read-only t))
    (erase-buffer)
    (insert (propertize "\n Searching…" 'face 'duet-dim)))
  (setq duet-search--next nil)
  (duet-search--fetch 0))

(defun duet-search-more ()
  "List more matches."
  (interactive (duet-only-in 'duet-search-mode) duet-search-mode)
  (unless duet-search--next
    (user-error "No more matches"))
  (duet-search--fetch duet-search--next))

(defun duet-search--fetch (offset)
  "Request the matches from OFFSET on."
  (let ((buffer (current-buffer))
        (request (cl-incf duet-search--request)))
    (cl-flet ((show (function)
                (when (buffer-live-p buffer)
                  (with-current-buffer buffer
                    (when (= request duet-search--request)
                      (funcall function))))))
      (duet-connection-request
       duet-connection 'session.search
       (list :query duet-search--query :limit duet-search-limit :offset offset)
       :success-fn (lambda (result)
                     (show (lambda () (duet-search--show result offset))))
       :error-fn (lambda (err)
                   (show (lambda ()
                           (duet-search--say (duet-connection-error-text err)))))))))

(defun duet-search--say (text)
  "Show TEXT instead of matches."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (insert "\n " text "\n")
    (goto-char (point-min))))

(defun duet-search--show (result offset)
  "Show the matches in RESULT, the server's reply, from OFFSET on."
  (let ((inhibit-read-only t)
        (hits (duet-get-objects result :hits)))
    (setq duet-search--next (duet-get-number result :next_offset))
    (if (and (zerop offset) (null hits))
        (duet-search--say "No message has these words.")
      (when (zerop offset) (erase-buffer))
      (save-excursion
        (goto-char (point-max))
        (mapc #'duet-search--insert hits))
      (when (zerop offset) (goto-char (point-min))))
    (set-buffer-modified-p nil)
    (force-mode-line-update)))

(defun duet-search--insert (hit)
  "Insert HIT, a match from the server's reply."
  (let* ((beg (point))
         (who (concat "  " (string-join (delq nil (list (duet-search--speaker hit)
                                                        (duet-search--date hit)))
                                        " · "))))
    (insert (propertize (truncate-string-to-width
                         (duet-search--line (concat (when-let ((turn (duet-get-string hit :turn)))
                                                      (concat turn " "))
                                                    (or (duet-get-string hit :title) "untitled")))
                         ;; Leave room for the speaker and the time.
                         (max 20 (- (min 200 (duet-header-room)) (string-width who) 1))
                         nil nil "…")
                        'face 'bold)
            (propertize who 'face 'duet-dim)
            "\n    "
            (duet-search--highlight (duet-search--line
                                     (or (duet-get-string hit :snippet) "")))
            "\n\n")
    (put-text-property beg (1- (point)) 'mouse-face 'highlight)
    (put-text-property beg (point) 'duet-hit hit)))

(defun duet-search--line (text)
  "Return TEXT as one line."
  (duet-visible-prose
   (string-trim (replace-regexp-in-string "[[:cntrl:][:space:]]+" " "
                                          (ansi-color-filter-apply text)))))

(defun duet-search--speaker (hit)
  "Return the speaker of HIT."
  (if-let ((tool (duet-get-string hit :tool_name)))
      (duet-visible-line tool)
    (if (equal (duet-get-string hit :role) "user") "you"
      (duet-get-string hit :agent))))

(defun duet-search--date (hit)
  "Return the time of HIT in a few characters."
  (when-let* ((time (duet-get-string hit :created_at))
              (time (ignore-errors (date-to-time time))))
    (format-time-string "%F %R" time)))

(defun duet-search--highlight (text)
  "Return TEXT with its matched words highlighted; « and » mark them."
  (replace-regexp-in-string "«\\([^»]*\\)»"
                            (lambda (match)
                              (propertize (substring match 1 -1)
                                          'face 'duet-search-match))
                            text t t))


;;;; Moving

(defun duet-search-next (&optional count)
  "Go to the next match, or to the COUNTth; backward if it is negative."
  (interactive "p" duet-search-mode)
  (duet-search--move (or count 1)))

(defun duet-search-previous (&optional count)
  "Go to the previous match, or to the COUNTth before."
  (interactive "p" duet-search-mode)
  (duet-search--move (- (or count 1))))

(defun duet-search--move (count)
  "Move by COUNT matches; if there are too few, stay and return nil."
  (let ((start (point)))
    (dotimes (_ (abs count))
      (if (> count 0)
          (goto-char (next-single-property-change (point) 'duet-hit nil (point-max)))
        (goto-char (previous-single-property-change
                    (if (or (bobp) (not (eq (get-text-property (point) 'duet-hit)
                                            (get-text-property (1- (point)) 'duet-hit))))
                        (point)
                      (next-single-property-change (point) 'duet-hit nil (point-max)))
                    'duet-hit nil (point-min)))))
    (if (and (/= (point) start) (get-text-property (point) 'duet-hit))
        t
      (goto-char start)
      nil)))

(defun duet-search-next-error (count reset)
  "Show the COUNTth match from here, or from the start if RESET is non-nil.
The `next-error-function' of the list."
  (when reset (goto-char (point-min)))
  (unless (or (zerop count) (and reset (= count 1)) (duet-search--move count))
    (user-error "No more matches"))
  (duet-search-visit))

;;; Visiting a match

;; RET on a match opens the transcript there.  Earlier messages are loaded until the
;; matched message is among them.

(defun duet-search--words (hit)
  "Return a regexp for the matched words of HIT, or nil."
  (let ((text (or (duet-get-string hit :snippet) ""))
        (start 0)
        words)
    (while (string-match "«\\([^»]+\\)»" text start)
      (push (match-string 1 text) words)
      (setq start (match-end 0)))
    (and words (regexp-opt (delete-dups words)))))

(defun duet-search-visit (&optional other)
  "Open the transcript at the match at point.
If OTHER is non-nil, do not select its window."
  (interactive nil duet-search-mode)
  (let ((hit (or (get-text-property (point) 'duet-hit)
                 (user-error "No match here")))
        (connection duet-connection))
    (duet-search--with-session
     connection (duet-get-string hit :session_uuid) (duet-get-string hit :turn_uuid)
     (lambda (session)
       (let ((buffer (duet-transcript-open connection session)))
         (if other (display-buffer buffer) (pop-to-buffer buffer))
         (duet-search--reveal buffer (duet-events-key hit) (duet-search--words hit)))))))

(defun duet-search-display ()
  "Show the transcript at the match at point in another window."
  (interactive nil duet-search-mode)
  (duet-search-visit t))

(defun duet-search-visit-mouse (event)
  "Open the transcript at the match at EVENT, a click."
  (interactive "e" duet-search-mode)
  (mouse-set-point event)
  (duet-search-visit))

(defun duet-search--with-session (connection id turn function)
  "Call FUNCTION with the session of CONNECTION whose id is ID.
If the model does not have it, request the session of TURN, one of its turns."
  (if-let ((session (duet-connection-session connection id)))
      (funcall function session)
    (let* ((model (duet-connection-model connection))
           (asked (duet-model-clock model)))
      (duet-connection-request
       connection 'turn.get (list :turn turn)
       :success-fn
       (lambda (result)
         (if-let ((session (duet-pages-load-session model (duet-get result :turn) asked)))
             (funcall function session)
           (message "Duet: the session was not found")))))))

(defun duet-search--reveal (buffer key words &optional patience)
  "Go to the message KEY in BUFFER, a transcript, and to WORDS in it, a regexp.
Load earlier messages until KEY is among them.  PATIENCE is the maximum
number of checks whether the session is loaded."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (let ((patience (or patience 200)))
        (cond
         ((not (eq (duet-session-loaded duet-session) t))
          (if (zerop patience)
              (message "Duet: the session is not loaded yet")
            (run-at-time 0.05 nil #'duet-search--reveal buffer key words (1- patience))))
         ((duet-session-message duet-session key)
          (duet-transcript-flush)
          (duet-search--go-to buffer key words))
         ((duet-session-before duet-session)
          (duet-history-load-older
           duet-connection duet-session
           (lambda (err)
             (if err
                 (message "Duet: %s" (duet-connection-error-text err))
               ;; A timer lets Emacs handle input between the pages.
               (run-at-time 0 nil #'duet-search--reveal buffer key words patience)))))
         (t (message "Duet: the place was not found in the session")))))))

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


;;; Going to a session or a turn

(defvar duet-visit-history nil
  "History of sessions and turns in the minibuffer.")

(defun duet-visit--read (connection)
  "Read a session or a turn of CONNECTION's project in the minibuffer.
Return its number, such as 12 or 12.3, as a string."
  (let* ((sessions (cl-remove-if-not #'duet-session-number
                                     (duet-model-session-list (duet-connection-model connection))))
         (labels (mapcar #'duet-session-label sessions))
         (chosen (completing-read (format-prompt "Session or turn, such as 12 or 12.3"
                                                 (car labels))
                                  (duet-settings-table labels 'duet-session)
                                  nil nil nil 'duet-visit-history (car labels))))
    (if (string-match "\\`[[:space:]]*\\([0-9]+\\(?:\\.[0-9]+\\)?\\)\\(?:[[:space:]]\\|\\'\\)" chosen)
        (match-string 1 chosen)
      (user-error "Type the number of a session or a turn, such as 12 or 12.3"))))

;;;###autoload
(defun duet-visit (connection name)
  "Open the transcript of the session or turn NAME of CONNECTION's project.
NAME is its number: \"12\" is a session, and \"12.3\" its third turn.  The
minibuffer completes the sessions of the project."
  (interactive (let ((connection (duet-connection-here)))
                 (list connection (duet-visit--read connection))))
  (let* ((model (duet-connection-model connection))
         (asked (duet-model-clock model)))
    (duet-connection-request
     connection 'turn.get (list :turn name)
     :success-fn
     (lambda (result)
       (if-let ((session (duet-pages-load-session model (duet-get result :turn) asked)))
           (if (not (string-search "." name))
               (duet-transcript-show connection session)
             (let ((buffer (duet-transcript-open connection session)))
               (pop-to-buffer buffer)
               (duet-visit--reveal connection buffer name)))
         (message "Duet: %s was deleted" name))))))

(defun duet-visit--reveal (connection buffer turn)
  "Go to the first message of TURN, a number, in BUFFER.
BUFFER is a transcript of CONNECTION."
  (duet-connection-request
   connection 'session.items (list :turn turn :after 0 :limit 1)
   :success-fn
   (lambda (result)
     (if-let ((first (car (duet-get-objects result :items))))
         (duet-search--reveal buffer (duet-events-key first) nil)
       (message "Duet: turn %s has no messages" turn)))))

(provide 'duet-search)
;;; duet-search.el ends here
