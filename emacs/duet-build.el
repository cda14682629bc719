;;; duet-build.el --- Builds, their output and their diagnostics  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; `duet-build' lets the server build the project, and shows the output as it
;; arrives.  Its buffer works like that of `compile': RET goes to the place of an
;; error, `next-error' to the next one from anywhere, C-c C-k ends the build, g
;; begins another.  The server sends the errors and their places; Emacs does not guess
;; them from the text.
;;
;; Flymake shows them, too: see duet-build-flymake.el.

;;; Code:

(require 'ansi-color)
(require 'cl-lib)
(require 'compile)
(require 'subr-x)
(require 'duet-actions)
(require 'duet-connection)
(require 'duet-header)
(require 'duet-log)
(require 'duet-menu-bar)
(require 'duet-remote)
(require 'duet-render)
(require 'duet-visible)

(declare-function duet "duet" (&optional directory))

;;; Builds

(defvar-local duet-build--counts nil
  "The numbers of errors, warnings and notes, a list.")
(defvar-local duet-build--output nil
  "A marker at the beginning of the output.")
(defvar-local duet-build--located nil
  "A marker after the line of the last diagnostic.")
(defvar-local duet-build--searched 0
  "The number of characters of this output that were searched for diagnostics.")
(defvar-local duet-build--current nil
  "The position of the last visited diagnostic, or nil.")
(defvar-local duet-build--name nil
  "The name of the build, from the server's list; nil for the first.")
(defvar-local duet-build--request nil
  "The id of the request of the running build, or nil.")
(defvar-local duet-build--id nil
  "The server's id of the running build, once it is known.")
(defvar-local duet-build--given-up nil
  "The server's ids of builds that the user stopped for another one.")
(defvar-local duet-build--outcome nil
  "The state of the build, a string with a face.")

(defvar duet-build-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map special-mode-map)
    (define-key map (kbd "RET") #'duet-build-visit)
    (define-key map [mouse-2] #'duet-build-visit-mouse)
    (define-key map [follow-link] 'mouse-face)
    (define-key map (kbd "C-o") #'duet-build-display)
    (define-key map "n" #'duet-build-next)
    (define-key map "p" #'duet-build-previous)
    (define-key map "g" #'duet-build-again)
    (define-key map (kbd "C-c C-k") #'duet-build-cancel)
    (define-key map "j" #'duet-approval-next)
    (define-key map "l" #'duet)
    (define-key map "?" #'duet-menu-or-help)
    map)
  "Keymap of `duet-build-mode'.")

(define-derived-mode duet-build-mode special-mode "Duet-Build"
  "Major mode of the output of a build.

\\{duet-build-mode-map}"
  (setq buffer-undo-list t
        next-error-function #'duet-build-next-error
        mode-line-process '(:eval (duet-build--mode-line))
        header-line-format '(:eval (duet-build--header))))

(duet-menu-bar-add duet-build-mode-map
                   '(["Go to the Place" duet-build-visit]
                     ["Build Again" duet-build-again :enable (not duet-build--request)]
                     ["End the Build" duet-build-cancel :enable duet-build--request]))


;;;; Begin and end

;;;###autoload
(defun duet-build (&optional name)
  "Build the project, and show the output and its diagnostics.
NAME is a name from the server's list of builds; nil is the first of them.
With a prefix argument choose it."
  (interactive)
  (let ((connection (duet-connection-here)))
    (if (and current-prefix-arg (called-interactively-p 'any))
        (duet-build--choose connection)
      (duet-build--show connection name))))

(defun duet-build--choose (connection)
  "Let the user choose a build of CONNECTION, and begin it."
  (duet-connection-request
   connection 'build.list nil
   :success-fn
   (lambda (result)
     (let ((names (mapcar (lambda (target) (duet-get-string target :name))
                          (duet-get-objects result :builds))))
       (if (null names)
           (message "Found nothing to build; define [[builds]] in the configuration")
         ;; Not in the process filter, which a minibuffer would block.
         (run-at-time 0 nil
                      (lambda ()
                        (duet-log-quit
                          (duet-build--show
                           connection
                           (completing-read (format-prompt "Build" (car names))
                                            names nil t nil nil (car names)))))))))))

(defun duet-build-buffer (connection)
  "Return the buffer of the builds of CONNECTION; create it if needed."
  (let ((buffer (duet-connection-buffer connection "build" #'duet-build-mode
                                        #'duet-build--follow)))
    (with-current-buffer buffer
      (add-hook 'kill-buffer-query-functions #'duet-build--kill-p nil t)
      (add-hook 'kill-buffer-hook #'duet-build--drop nil t))
    buffer))

(defun duet-build--show (connection name)
  "Begin the build NAME, or the first one if nil, for CONNECTION, and show it."
  (let ((buffer (duet-build-buffer connection)))
    (with-current-buffer buffer
      (when duet-build--request
        (unless (yes-or-no-p "A build is running; stop it? ")
          (user-error "The build continues"))
        (duet-build--drop))
      (setq duet-build--name name)
      (duet-build--begin))
    (setq next-error-last-buffer buffer)
    (let ((window (display-buffer buffer)))
      (when (and window (eq (selected-window) window))
        (goto-char (point-min))))))

(defun duet-build--save ()
  "Offer to save the files of the project, as `compile' does."
  (let ((root (file-name-as-directory (duet-connection-root duet-connection))))
    (save-some-buffers (not compilation-ask-about-save)
                       (or compilation-save-buffers-predicate
                           (lambda ()
                             (and buffer-file-name
                                  (string-prefix-p root buffer-file-name)))))))

(defun duet-build--begin ()
  "Begin a build in the current buffer, and erase the output of the last one."
  (duet-build--save)
  (let ((inhibit-read-only t)
        (buffer (current-buffer))
        id)
    (erase-buffer)
    (setq duet-build--outcome (propertize "run" 'face 'compilation-mode-line-run)
          duet-build--counts (list 0 0 0)
          duet-build--output (copy-marker (point-min))
          duet-build--located (copy-marker (point-min))
          duet-build--searched 0
          duet-build--current nil
          duet-build--id nil
          duet-build--request t)
    (cl-flet ((answer (function)
                ;; Ignore the reply to a build that was stopped for another one.
                (lambda (reply)
                  (when (buffer-live-p buffer)
                    (with-current-buffer buffer
                      (when (memq duet-build--request (list id t))
                        (duet-build--end (funcall function reply))))))))
      (setq id (duet-connection-request
                duet-connection 'build.run
                (and duet-build--name (list :name duet-build--name))
                :success-fn (answer #'duet-build--succeeded)
                :error-fn (answer #'duet-build--failed)))
      ;; Without a server the request has already failed.
      (when duet-build--request
        (setq duet-build--request id)))))

(defun duet-build--succeeded (result)
  "Return the end of a build, from the server's RESULT, for `duet-build--end'."
  (list "Build finished" "exit [ok]" 'compilation-mode-line-exit result))

(defun duet-build--failed (err)
  "Return the end of a build, from the server's error ERR, for `duet-build--end'."
  (cond
   ((eql (plist-get err :code) -32800)
    (list "Build ended by you" "cancelled" 'compilation-mode-line-fail))
   ((equal (duet-get-string (plist-get err :data) :kind) "build_failed")
    (list (concat "Build failed: " (duet-connection-error-text err))
          (let ((code (duet-get-number (plist-get err :data) :exit_code)))
            (if (and code (> code 0)) (format "exit [%d]" code) "failed"))
          'compilation-mode-line-fail (plist-get err :data)))
   (t (list (concat "Nothing was built: " (duet-connection-error-text err))
            "failed" 'compilation-mode-line-fail))))

(defun duet-build--time (data)
  "Return a line with the duration of the build in DATA, and the time."
  (concat (if-let ((duration (duet-get-number data :duration_ms)))
              (format "It took %.1f s, until " (/ duration 1000.0))
            "That was at ")
          (format-time-string "%T\n")))

(defun duet-build--end (end)
  "Show in the buffer that its build has ended.
END is a list of a text, a state, a face and the server's data."
  (pcase-let ((`(,text ,outcome ,face ,data) end))
    (setq duet-build--request nil
          duet-build--outcome (propertize outcome 'face face))
    (duet-build--insert (concat (if (bolp) "" "\n") "\n"
                                (propertize text 'face (if (eq face 'compilation-mode-line-exit)
                                                           'duet-done 'duet-failed))
                                "\n" (propertize (duet-build--time data) 'face 'duet-dim)))
    (duet-log-guard "compilation-finish-functions"
      (run-hook-with-args 'compilation-finish-functions (current-buffer)
                          (if (eq face 'compilation-mode-line-exit) "finished\n"
                            (concat text "\n"))))
    (force-mode-line-update)
    (message "%s%s" text
             (if (zerop (apply #'+ duet-build--counts)) ""
               (substitute-command-keys "; \\[next-error] goes to the first place")))))

(defun duet-build--drop ()
  "Cancel the build of the current buffer, if one runs."
  (when-let ((id duet-build--request)
             (rpc (and duet-connection (duet-connection-rpc duet-connection))))
    (setq duet-build--request nil)
    (when duet-build--id (push duet-build--id duet-build--given-up))
    (duet-rpc-cancel rpc id)))

(defun duet-build--kill-p ()
  "Return non-nil if the buffer can be killed; ask if its build runs."
  (or (null duet-build--request)
      (yes-or-no-p "A build is running; stop it? ")))

(defun duet-build-cancel ()
  "End the running build, with all processes that it has started."
  (interactive (duet-only-in 'duet-build-mode) duet-build-mode)
  (let ((rpc (duet-connection-rpc duet-connection)))
    (unless (and duet-build--request rpc)
      (user-error "No build is running"))
    (setq duet-build--outcome (propertize "ending" 'face 'compilation-mode-line-run))
    (duet-rpc-cancel rpc duet-build--request)
    (force-mode-line-update)))

(defun duet-build-again ()
  "Begin the same build again."
  (interactive (duet-only-in 'duet-build-mode) duet-build-mode)
  (duet-build--show duet-connection duet-build--name))


;;;; Events of the server

(defun duet-build--follow (_model kind _session data _extra)
  "Show DATA of the change KIND, if they belong to the current buffer's build."
  (when (and duet-build--request (memq kind '(build-progress build-diagnostic)))
    (let ((id (duet-get-string data :build_id)))
      ;; Emacs gets notifications only of its own builds, and runs one at a time.
      (unless (or duet-build--id (member id duet-build--given-up))
        (setq duet-build--id id))
      (when (equal id duet-build--id)
        (if (eq kind 'build-diagnostic) (duet-build--found data)
          (duet-build--progress data))))))

(defun duet-build--progress (data)
  "Show the progress of the build, from DATA of the notification."
  (pcase (duet-get-string data :stage)
    ("waiting"
     (duet-build--insert (propertize "Waits for another build to end…\n" 'face 'duet-dim)))
    ("started"
     (let ((directory (duet-get-string data :directory)))
       (duet-build--insert
        (concat (propertize (duet-visible
                             (concat (if directory (format "cd %s && " directory) "")
                                     (string-join (duet-get-strings data :command) " ")))
                            'face 'bold)
                "\n\n")))
     (set-marker duet-build--output (point-max))
     (set-marker duet-build--located (point-max)))
    ("output"
     (duet-build--insert (duet-build--printed (or (duet-get-string data :output) ""))))))


;;;; State


(defun duet-build--mode-line ()
  "Return the state of the build for the mode line."
  (if (null duet-build--outcome) ""
    (pcase-let ((`(,errors ,warnings ,notes) duet-build--counts))
      (concat ":" duet-build--outcome
              " [" (propertize (number-to-string errors) 'face 'compilation-error
                               'help-echo "Errors")
              " " (propertize (number-to-string warnings) 'face 'compilation-warning
                              'help-echo "Warnings")
              " " (propertize (number-to-string notes) 'face 'compilation-info
                              'help-echo "Notes")
              "]"))))

(defun duet-build--header ()
  "Return the header line."
  (duet-header-fit
   (cons (concat " Build"
                 (if duet-build--name
                     (concat " " (propertize (replace-regexp-in-string
                                              "%" "%%" (duet-visible-line duet-build--name))
                                             'face 'bold))
                   ""))
         (duet-header-keys 'duet-build-mode-map
                           (if duet-build--request '(1 duet-build-cancel "ends it")
                             '(1 duet-build-again "builds again"))
                           '(2 duet-build-visit "goes to the place")))))

;;; Output

;; The output of a build is shown as it arrives.  A line with a diagnostic of the
;; server is a link to its place.

(defun duet-build--printed (text)
  "Return TEXT, output of a build, for display."
  (let ((colored (let ((ansi-color-context nil)) (ansi-color-apply text))))
    ;; Text after a carriage return replaces the line.
    (duet-visible (mapconcat #'duet-build--drawn (split-string colored "\n") "\n"))))

(defun duet-build--drawn (line)
  "Return the part of LINE after its last carriage return that text follows."
  (let ((end (length line))
        (beg 0)
        next)
    (while (and (> end 0) (eq (aref line (1- end)) ?\r))
      (setq end (1- end)))
    (while (and (setq next (string-search "\r" line beg)) (< next end))
      (setq beg (1+ next)))
    (substring line beg end)))

(defun duet-build--insert (text)
  "Insert TEXT at the end of the buffer.
A window follows the end if its point is there, or if
`compilation-scroll-output' is non-nil, as in a buffer of `compile'."
  (let* ((inhibit-read-only t)
         (end (point-max))
         (windows (cl-remove-if-not (lambda (window)
                                      (duet-build--follows-p (window-point window)))
                                    (get-buffer-window-list nil nil t)))
         (follow (duet-build--follows-p (point))))
    (save-excursion
      (goto-char end)
      (insert (duet-render-wrap text (- (point) (line-beginning-position)))))
    (set-buffer-modified-p nil)
    (when follow (goto-char (point-max)))
    (dolist (window windows)
      (set-window-point window (point-max)))))

(defun duet-build--follows-p (place)
  "Return non-nil if PLACE, a position of point, follows the end of the buffer."
  (or compilation-scroll-output
      (and (= place (point-max)) (> place (point-min)))))

(defun duet-build--found (diagnostic)
  "Make the line of DIAGNOSTIC a link to its place.
DIAGNOSTIC is an object that the server sends after the output."
  (let* ((severity (duet-get-string diagnostic :severity))
         (line (or (duet-build--line diagnostic) (duet-build--add-line diagnostic)))
         (inhibit-read-only t))
    (cl-incf (nth (pcase severity ("error" 0) ("warning" 1) (_ 2)) duet-build--counts))
    (save-excursion
      (goto-char line)
      (let ((end (line-end-position)))
        (add-text-properties line end
                             (list 'duet-build-diagnostic diagnostic
                                   'mouse-face 'highlight
                                   'help-echo (duet-visible
                                               (or (duet-get-string diagnostic :message) ""))))
        (add-face-text-property line end (pcase severity
                                           ("error" 'compilation-error)
                                           ("warning" 'compilation-warning)
                                           (_ 'compilation-info)))
        (set-marker duet-build--located (min (point-max) (1+ end)))))
    (set-buffer-modified-p nil)
    (force-mode-line-update)))

(defconst duet-build--search-most 20000000
  "Maximum number of characters of output to search for diagnostics.
After it, a diagnostic gets a line of its own at the end.")

(defun duet-build--line (diagnostic)
  "Return the beginning of the output line that reports DIAGNOSTIC, or nil.
It has the name of the file without its directory, and the line number, and
no other diagnostic.  Tools print names relative to their own directory."
  (when-let ((file (duet-get-string diagnostic :file))
             (number (duet-get-number diagnostic :line)))
    (let ((regexp (concat "\\(?:^\\|[^[:alnum:]_.-]\\)"
                          (regexp-quote (file-name-nondirectory file))
                          "[\"']?\\(?:[:(]\\|, line \\)" (number-to-string number)
                          "\\(?:[^[:digit:]]\\|$\\)")))
      (save-excursion
        (cl-loop for from in (list duet-build--located duet-build--output)
                 while (< duet-build--searched duet-build--search-most)
                 thereis (progn
                           (goto-char from)
                           (prog1 (cl-loop while (re-search-forward regexp nil 'move)
                                           unless (get-text-property (line-beginning-position)
                                                                     'duet-build-diagnostic)
                                           return (line-beginning-position)
                                           do (forward-line 1))
                             (setq duet-build--searched
                                   (+ duet-build--searched (- (point) from))))))))))

(defun duet-build--add-line (diagnostic)
  "Add a line that reports DIAGNOSTIC; return its beginning."
  (let ((beg (point-max)))
    (duet-build--insert
     (concat (if (eq (char-before beg) ?\n) "" "\n")
             (duet-visible-line
              (concat (string-join
                       (delq nil (list (or (duet-get-string diagnostic :file) "?")
                                       (when-let ((line (duet-get-number diagnostic :line)))
                                         (number-to-string line))
                                       (when-let ((column (duet-get-number diagnostic :column)))
                                         (number-to-string column))))
                       ":")
                      ": " (or (duet-get-string diagnostic :severity) "error") ": "
                      (or (duet-get-string diagnostic :message) "")))
             "\n"))
    (save-excursion
      (goto-char beg)
      (if (eolp) (1+ beg) beg))))

(defun duet-build--move (count)
  "Move point to the COUNTth diagnostic from here; return nil if there is none."
  (let ((start (point))
        (found t))
    (dotimes (_ (abs count))
      (setq found (and found (if (> count 0) (duet-build--forward) (duet-build--backward)))))
    (unless found (goto-char start))
    found))

(defun duet-build--forward ()
  "Go to the next line with a diagnostic; return nil if there is none."
  (forward-line 1)
  (while (not (or (eobp) (get-text-property (point) 'duet-build-diagnostic)))
    (goto-char (next-single-property-change (point) 'duet-build-diagnostic nil (point-max))))
  (not (eobp)))

(defun duet-build--backward ()
  "Go to the previous line with a diagnostic; return nil if there is none."
  (let (found)
    (beginning-of-line)
    (while (not (or found (bobp)))
      (forward-line -1)
      (setq found (get-text-property (point) 'duet-build-diagnostic)))
    (and found t)))

(defun duet-build-next (&optional count)
  "Go to the next diagnostic, or the COUNTth."
  (interactive "p" duet-build-mode)
  (unless (duet-build--move (or count 1))
    (user-error "No more errors")))

(defun duet-build-previous (&optional count)
  "Go to the previous diagnostic, or the COUNTth."
  (interactive "p" duet-build-mode)
  (duet-build-next (- (or count 1))))

(defun duet-build-next-error (count reset)
  "Visit the place of the COUNTth diagnostic from the last visited one.
If RESET is non-nil, count from the beginning.  This is the
`next-error-function' of the buffer."
  (goto-char (or (and (not reset) duet-build--current) (point-min)))
  (unless (or (zerop count)
              (and reset (= count 1) (get-text-property (point) 'duet-build-diagnostic))
              (duet-build--move count))
    (user-error "No more errors"))
  (dolist (window (get-buffer-window-list nil nil t))
    (set-window-point window (point)))
  (duet-build-visit))

(defun duet-build-visit (&optional stay)
  "Visit the place of the diagnostic at point.
If STAY is non-nil, do not select its window."
  (interactive nil duet-build-mode)
  (let* ((diagnostic (or (get-text-property (line-beginning-position) 'duet-build-diagnostic)
                         (user-error "No error on this line")))
         (file (or (duet-get-string diagnostic :file)
                   (user-error "The position is unknown")))
         (name (duet-host-visit-name
                (duet-remote-name file (duet-connection-directory duet-connection))))
         (line (duet-get-number diagnostic :line))
         (column (duet-get-number diagnostic :column)))
    (setq duet-build--current (line-beginning-position))
    (unless (file-exists-p name)
      (user-error "There is no file %s" (duet-visible-line file)))
    (let* ((buffer (find-file-noselect name))
           (window (if stay (display-buffer buffer '(nil (inhibit-same-window . t)))
                     (pop-to-buffer buffer '((display-buffer-reuse-window
                                              display-buffer-use-some-window
                                              display-buffer-pop-up-window)
                                             (inhibit-same-window . t)))
                     (selected-window))))
      (with-selected-window window
        (unless (<= (point-min) 1 (point-max)) (widen))
        (when line
          (push-mark nil t)
          (save-restriction
            (widen)
            (goto-char (point-min))
            (forward-line (1- line))
            (when column
              (goto-char (min (line-end-position) (+ (point) (1- column)))))))))))

(defun duet-build-display ()
  "Show the place of the diagnostic at point, and stay here."
  (interactive nil duet-build-mode)
  (duet-build-visit t))

(defun duet-build-visit-mouse (event)
  "Visit the place of the diagnostic at the click EVENT."
  (interactive "e" duet-build-mode)
  (mouse-set-point event)
  (duet-build-visit))

(provide 'duet-build)
;;; duet-build.el ends here
