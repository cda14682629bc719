;;; duet-link.el --- Where links in what agents say lead  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A link leads to a page of the web or to a file of the project.  Its text is an
;; agent's, or that of a page that the agent has read, so a person sees where it
;; leads before anything is opened: in the echo area, and where the text does not
;; say it, in a question.  Nothing is opened but by RET or a click.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'url-parse)
(require 'duet-visible)

(defconst duet-link--longest 2000
  "How many characters the name of a file or the text of a link has at most.")

(defconst duet-link--file
  (concat "\\(?:\\.\\{0,2\\}/\\)?[[:alnum:]_@][-+@~._[:alnum:]]*\\(?:/[-+@~._[:alnum:]]+\\)*")
  "Regexp for the name of a file in prose.")

(defconst duet-link--line
  "\\(?::\\([0-9]+\\)\\(?:[:-][0-9]+\\)*\\|#L\\([0-9]+\\)\\(?:-L?[0-9]+\\)?\\)?"
  "Regexp for what says in which line of a file something is.")

(defun duet-link-target-p (target)
  "Return non-nil if TARGET, of a link, is one that can be followed."
  (or (string-match-p "\\`https?://[^/]" target)
      (not (string-match-p "\\`[[:alpha:]][-+.[:alnum:]]*:[^0-9]\\|\\`[#?]\\|\\`/\\'\\|\\`//" target))))

(defun duet-link-web-p (target)
  "Return non-nil if TARGET is a page of the web."
  (string-match-p "\\`https?://" target))

(defun duet-link--host (address)
  "Return the host of ADDRESS, a page of the web."
  (downcase (or (ignore-errors (url-host (url-generic-parse-url address))) "")))

(defun duet-link-honest-p (text target)
  "Return non-nil if TEXT, of a link to TARGET, claims no other target."
  (let ((case-fold-search t)
        (text (replace-regexp-in-string "[*_`~\\]" "" text)))
    (cond
     ;; No address is so long, and the regexps below take quadratic time.
     ((length> text duet-link--longest) nil)
     ((string-match "[a-z]+://[^ ]*" text)
      (string-prefix-p (downcase (match-string 0 text)) (downcase target)))
     ((and (duet-link-web-p target)
           (string-match "\\(?:[-[:alnum:]]+\\.\\)+[[:alpha:]]\\{2,\\}" text))
      ;; It looks like a host, or like a file.
      (let ((named (downcase (match-string 0 text)))
            (host (duet-link--host target)))
        (or (equal named host)
            (string-suffix-p (concat "." named) host)
            (string-suffix-p (concat "/" named) (downcase (car (split-string target "[?#]")))))))
     (t t))))

(defun duet-link-url-end (start end)
  "Return where the address ends that begins at START, before END."
  (save-excursion
    (goto-char start)
    (skip-chars-forward "^ \t\n<>\"`|，。；：！？、）」』”’" end)
    (let ((moving t))
      (while moving
        (skip-chars-backward ".,:;!?*_~'\\\\" start)
        (pcase (char-before)
          ((and close (or ?\) ?\]))
           (let ((open (if (eq close ?\)) "(" "["))
                 (text (buffer-substring-no-properties start (point))))
             (if (> (cl-count close text) (cl-count (aref open 0) text))
                 (backward-char)
               (setq moving nil))))
          (_ (setq moving nil)))))
    (point)))


;;; Files of the project

(defun duet-link--path (name)
  "Return NAME, of a file, as it is called in full; nil outside of the project.
The project is that of the current buffer.  Nothing is looked at on the disk."
  (unless (or (file-remote-p default-directory) (string-prefix-p "~" name))
    (let* ((file-name-handler-alist nil)
           (root (expand-file-name (file-name-as-directory default-directory)))
           (file (expand-file-name name root)))
      (and (string-prefix-p root file)
           (not (string= root file))
           file))))

(defun duet-link-file (target)
  "Return the file of the project that TARGET names, and the line: (FILE . LINE).
Return nil if there is none; LINE is nil where only the file is named."
  (when (and (length< target duet-link--longest)
             (string-match (concat "\\`\\(.*?\\)" duet-link--line "\\'") target))
    (let ((line (or (match-string 2 target) (match-string 3 target)))
          (file (duet-link--path (match-string 1 target))))
      (when (and file
                 (let ((file-name-handler-alist nil)) (file-regular-p file)))
        (cons file (and line (string-to-number line)))))))

(defun duet-link-references (beg end)
  "Return the files of the project that the text between BEG and END names.
They are (BEG END TARGET), as an agent writes them: src/main.go:12."
  (save-excursion
    (goto-char beg)
    (let ((case-fold-search nil)
          (found '())
          (name (concat "\\(" duet-link--file "\\)" duet-link--line)))
      ;; Each has a dot or a slash.
      (while (and (< (point) end)
                  (progn (skip-chars-forward "^./" end) (< (point) end)))
        (let ((next (1+ (point))))
          (skip-chars-backward "-+@~._/[:alnum:]" (max beg (- (point) 200)))
          (when (and (looking-at name) (<= (match-beginning 0) end))
            (let* ((start (point))
                   (last (min end (match-end 0)))
                   (text (buffer-substring-no-properties start last)))
              (when (and (string-match "[^.]\\(\\.+\\)\\'" text))
                ;; A full stop ends a sentence.
                (setq last (- last (length (match-string 1 text)))
                      text (buffer-substring-no-properties start last)))
              (when (and (string-match-p "[./]." text) (duet-link-file text))
                (push (list start last text) found))
              (setq next (max next last))))
          (goto-char (min end next))))
      found)))


;;; Following

(defun duet-link-words (target)
  "Return TARGET for people: the address, or the name of the file."
  (duet-visible-line target))

(defun duet-link-help (window object place)
  "Return where the link at PLACE of OBJECT leads; WINDOW is ignored."
  (ignore window)
  (let ((target (get-text-property place 'duet-link
                                   (if (bufferp object) object (current-buffer)))))
    (and target (concat (duet-link-words target) "\nmouse-1, RET: follow this link"))))

(defun duet-link-at-point ()
  "Return where the link at point leads, or nil."
  (get-text-property (point) 'duet-link))

(defun duet-link--says-p (target)
  "Return non-nil if the text of the link at point is TARGET itself."
  (let ((beg (previous-single-property-change (1+ (point)) 'duet-link nil (point-min)))
        (end (next-single-property-change (point) 'duet-link nil (point-max))))
    (string= (buffer-substring-no-properties beg end) target)))

(defun duet-link-browse (url)
  "Open URL, which an agent or a project wrote, in a browser.
Only addresses of the web are opened: `browse-url' runs programs for others,
such as ssh for file:///ssh:host:/x, and man for man:x."
  (unless (duet-link-web-p url)
    (user-error "Only http and https addresses are opened, not %s" (duet-link-words url)))
  (browse-url url))

(defun duet-link-follow (target)
  "Open TARGET, to which the link at point leads.
A page whose address is not what the link says is asked about."
  (if (duet-link-web-p target)
      (if (or (duet-link--says-p target)
              (y-or-n-p (format "Open %s? " (duet-link-words target))))
          (duet-link-browse target)
        (message "Not opened"))
    (let ((place (duet-link-file target)))
      (unless place
        (user-error "The project has no file %s" (duet-link-words target)))
      (unless (file-in-directory-p (car place) default-directory)
        (user-error "%s leads out of the project" (duet-link-words target)))
      (find-file-other-window (car place))
      (when (cdr place)
        (goto-char (point-min))
        (forward-line (1- (cdr place)))))))

(provide 'duet-link)
;;; duet-link.el ends here
