;;; duet-form.el --- Questions that ask for values or show an address  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; An agent may ask the user to fill in a form.  The minibuffer reads each field, and
;; shows the whole form before it is sent.  An agent may also ask the user to open an
;; address, which needs the user's consent here.  Fields are checked here, and by the
;; server.  Values are kept until the question is answered, also after C-g.

;;; Code:

(require 'cl-lib)
(require 'subr-x)
(require 'duet-inline)
(require 'duet-look)
(require 'duet-model)
(require 'duet-visible)

(defvar duet-form-history nil
  "History of values of fields.")

(defvar duet-form--values (make-hash-table :test #'equal)
  "Values so far: a table by the names of fields for each question's id.")

(defvar duet-form--drafts (make-hash-table :test #'equal)
  "Texts of fields that the user has not finished, like `duet-form--values'.")

(defun duet-form-p (data)
  "Return non-nil if the question in DATA is a form."
  (equal (duet-get-string data :mode) "form"))

(defun duet-form-link-p (data)
  "Return non-nil if the question in DATA asks to open an address."
  (equal (duet-get-string data :mode) "url"))


;;; Fields, each an alist

(defun duet-form--choices (schema)
  "Return the choices of SCHEMA: a list of (TITLE . VALUE)."
  (or (mapcar (lambda (option)
                (let ((value (or (duet-get-string option :const) "")))
                  (cons (or (duet-get-string option :title) value) value)))
              (append (duet-get-objects schema :oneOf) (duet-get-objects schema :anyOf)))
      (let ((values (append (duet-get schema :enum) nil))
            (names (append (duet-get schema :enumNames) nil)))
        (unless (= (length values) (length names)) (setq names values))
        (cl-mapcar #'cons names values))))

(defun duet-form-fields (data)
  "Return the fields of the form in DATA, in the agent's order.
Each is a list (NAME SCHEMA REQUIRED)."
  (let ((required (append (duet-get data :schema :required) nil)))
    (cl-loop for (key schema) on (duet-get data :schema :properties) by #'cddr
             for name = (duet-get-name key)
             collect (list name schema (and (member name required) t)))))

(defun duet-form--kind (schema)
  "Return the kind of the values of SCHEMA, a symbol."
  (pcase (duet-get-string schema :type)
    ("string" (if (duet-form--choices schema) 'choice 'text))
    ("array" (if (duet-form--choices (duet-get schema :items)) 'choices 'other))
    ((and type (or "integer" "number" "boolean")) (intern type))
    (_ 'other)))

(defun duet-form--limits (schema least most unit)
  "Return the limits LEAST and MOST of SCHEMA in words with UNIT, or \"\"."
  (let ((least (duet-get-number schema least))
        (most (duet-get-number schema most)))
    (cond ((and least most)
           (format " %s %s to %s%s" (if (string-empty-p unit) "from" "of") least most unit))
          (least (format " of at least %s%s" least unit))
          (most (format " of at most %s%s" most unit))
          (t ""))))

(defconst duet-form--most-choices 60
  "Maximum length of the choices in a prompt; TAB lists all.")

(defun duet-form--among (words schema)
  "Return WORDS and the choices of SCHEMA, or their number if they are too long."
  (let* ((names (mapcar (lambda (choice) (duet-visible-line (car choice)))
                        (duet-form--choices schema)))
         (all (string-join names ", ")))
    (concat words " " (if (<= (length all) duet-form--most-choices) all
                        (format "%d choices" (length names))))))

(defun duet-form--expects (schema)
  "Return a description of the valid values of SCHEMA."
  (pcase (duet-form--kind schema)
    ('text (concat (pcase (duet-get-string schema :format)
                     ("email" "an email address")
                     ("uri" "a URI")
                     ("date" "a date like 2006-01-02")
                     ("date-time" "a time like 2006-01-02T15:04:05Z")
                     (_ "a text"))
                   (duet-form--limits schema :minLength :maxLength " characters")))
    ('integer (concat "a whole number" (duet-form--limits schema :minimum :maximum "")))
    ('number (concat "a number" (duet-form--limits schema :minimum :maximum "")))
    ('boolean "yes or no")
    ('choice (duet-form--among "one of" schema))
    ('choices (concat (duet-form--among "some of" (duet-get schema :items))
                      (let ((limits (duet-form--limits schema :minItems :maxItems "")))
                        (if (string-empty-p limits) "" (concat "," limits)))))
    (_ "JSON")))

(defun duet-form--label (field)
  "Return the title or name of FIELD, on one line."
  (duet-visible-line (or (duet-get-string (nth 1 field) :title) (car field))))

(defun duet-form--words (field value)
  "Return VALUE of FIELD in words."
  (let ((choices (or (duet-form--choices (nth 1 field))
                     (duet-form--choices (duet-get (nth 1 field) :items)))))
    (cl-flet ((title (value) (or (car (rassoc value choices)) (format "%s" value))))
      (duet-visible-line
       (cond ((eq value t) "yes")
             ((eq value :json-false) "no")
             ((vectorp value) (mapconcat #'title value ","))
             ((or (consp value) (hash-table-p value)) (json-encode value))
             (t (title value)))))))

(defun duet-form-lines (data)
  "Return lines that describe the form or the address in DATA of a question."
  (cond
   ((duet-form-p data)
    (mapcar (lambda (field)
              (concat (duet-form--label field) ": " (duet-form--expects (nth 1 field))
                      (let ((default (plist-get (nth 1 field) :default)))
                        (cond (default (format " [%s]" (duet-form--words field default)))
                              ((nth 2 field) "")
                              (t ", or nothing")))))
            (duet-form-fields data)))
   ((duet-form-link-p data)
    (append (list (duet-visible-line (or (duet-get-string data :url) "")))
            (when-let ((host (duet-get-string data :url_host)))
              (list (concat "leads to " (duet-visible-line host))))
            (mapcar (lambda (warning) (concat "careful: " (duet-visible-line warning)))
                    (append (duet-get data :url_warnings) nil))))))


;;; Reading values

(defvar duet-form--map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-b") #'duet-form--back)
    (define-key map (kbd "C-c C-k") #'duet-form--discard)
    map)
  "Keymap that precedes the minibuffer's while the user fills in a form.")

(defun duet-form--back ()
  "Go back to the previous field."
  (interactive)
  (duet-form--leave 'duet-form--back))

(defun duet-form--discard ()
  "Discard all values, and begin again with those of the agent."
  (interactive)
  (duet-form--leave 'duet-form--discard))

(defun duet-form--leave (step)
  "Leave the current field for STEP, a symbol."
  (condition-case nil
      (throw 'duet-form--leave step)
    (no-catch (user-error "No form here"))))

(defun duet-form--within-p (number schema least most)
  "Return non-nil if NUMBER is within the limits LEAST and MOST of SCHEMA."
  (let ((least (duet-get-number schema least))
        (most (duet-get-number schema most)))
    (and (or (null least) (>= number least)) (or (null most) (<= number most)))))

(defun duet-form--parse (field text)
  "Return the value of TEXT for FIELD.
If TEXT is invalid, signal a `user-error' with the reason as a sentence."
  (let ((schema (nth 1 field)))
    (pcase (duet-form--kind schema)
      ('text (if (duet-form--within-p (length text) schema :minLength :maxLength) text
               (user-error "%s is not %s" text (duet-form--expects schema))))
      ((and kind (or 'integer 'number))
       (let ((number (and (string-match-p "\\`[-+]?[0-9]+\\(?:\\.[0-9]+\\)?\\(?:[eE][-+]?[0-9]+\\)?\\'" text)
                          (string-to-number text))))
         (if (and number (or (eq kind 'number) (integerp number))
                  (duet-form--within-p number schema :minimum :maximum))
             number
           (user-error "%s is not %s" text (duet-form--expects schema)))))
      ('boolean (if (equal text "yes") t :json-false))
      ('choice (cdr (assoc text (duet-form--choices schema))))
      ('choices (let ((choices (duet-form--choices (duet-get schema :items))))
                  (vconcat (mapcar (lambda (title)
                                     (or (cdr (assoc title choices))
                                         (user-error "%s is not %s" title
                                                     (duet-form--among "one of" (duet-get schema :items)))))
                                   (split-string text "," t "[ \t]+")))))
      (_ (condition-case nil
             (json-parse-string text :object-type 'hash-table :null-object nil
                                :false-object :json-false)
           (json-error (user-error "%s is not JSON" text)))))))

(defun duet-form--prompt (field default problem &optional kept)
  "Return the prompt for FIELD; empty input means DEFAULT, if non-nil.
PROBLEM is the reason for asking again, a sentence for the line above, or nil.
KEPT says that the form has the values of an earlier start."
  (concat (if problem (concat (propertize problem 'face 'duet-failed) "\n") "")
          (duet-form--label field) " ("
          (duet-form--expects (nth 1 field))
          (cond (default (concat ", default " default))
                ((nth 2 field) "")
                (t ", or nothing"))
          (substitute-command-keys
           (if kept "; \\<duet-form--map>\\[duet-form--discard] discards all): "
             "; \\<duet-form--map>\\[duet-form--back] goes back): "))))

(defun duet-form--read (field value wrong &optional drafts kept)
  "Read FIELD, whose value is VALUE or nil, in the minibuffer.
Return the text, or one of the symbols `duet-form--back' and
`duet-form--discard'.  WRONG is the invalid input before and the reason,
\(TEXT . SENTENCE), or nil.  DRAFTS is a table of unfinished texts, or nil.
KEPT is as for `duet-form--prompt'."
  (let* ((schema (nth 1 field))
         (known (and value (duet-form--words field value)))
         (chosen (memq (duet-form--kind schema) '(boolean choice)))
         (draft (and drafts (not chosen) (gethash (car field) drafts)))
         (initial (or (car wrong) draft known))
         (prompt (duet-form--prompt field (and chosen known) (cdr wrong) kept)))
    (catch 'duet-form--leave
      (minibuffer-with-setup-hook
          (lambda ()
            (use-local-map (make-composed-keymap duet-form--map (current-local-map)))
            (when drafts
              (add-hook 'minibuffer-exit-hook
                        (lambda ()
                          (puthash (car field) (minibuffer-contents-no-properties) drafts))
                        nil t)))
        (pcase (duet-form--kind schema)
          ('boolean (completing-read prompt '("yes" "no") nil t nil nil
                                     (or known (if (nth 2 field) "yes" ""))))
          ('choice (completing-read prompt (mapcar #'car (duet-form--choices schema)) nil t
                                    nil nil (or known "")))
          ('choices (string-join
                     (completing-read-multiple
                      prompt (mapcar #'car (duet-form--choices (duet-get schema :items)))
                      nil t initial)
                     ","))
          (_ (read-string prompt initial 'duet-form-history)))))))

(defun duet-form--defaults (fields)
  "Return a table of the default values of FIELDS."
  (let ((values (make-hash-table :test #'equal)))
    (dolist (field fields values)
      (when-let ((default (plist-get (nth 1 field) :default)))
        (puthash (car field) default values)))))

(defun duet-form-fill (id data)
  "Let the user fill in the form in DATA of the question ID.
Return a table of its values, or one of the symbols `decline' and `cancel'.
After \\`C-g' the question stays open.  The form then starts with the values so
far, and with the text of the unfinished field; a key discards them."
  (let* ((fields (or (duet-form-fields data)
                     (user-error "This form is too long to fill in here")))
         (kept (gethash id duet-form--values))
         (values (or kept (puthash id (duet-form--defaults fields) duet-form--values)))
         (drafts (or (gethash id duet-form--drafts)
                     (puthash id (make-hash-table :test #'equal) duet-form--drafts)))
         (at 0) wrong answer)
    (while (null answer)
      (if (= at (length fields))
          (pcase (duet-form--look-over fields values)
            (?y (setq answer values))
            (?b (setq at (1- at)))
            (?n (setq answer 'decline))
            (?c (setq answer 'cancel))
            (_ (signal 'quit nil)))
        (let* ((field (nth at fields))
               (text (duet-form--read field (gethash (car field) values) wrong drafts
                                      (and kept (= at 0)))))
          (setq wrong nil)
          (unless (eq text 'duet-form--back) (remhash (car field) drafts))
          (cond
           ((eq text 'duet-form--back) (setq at (max 0 (1- at))))
           ((eq text 'duet-form--discard)
            (clrhash drafts)
            (setq kept nil
                  values (puthash id (duet-form--defaults fields) duet-form--values)
                  at 0))
           ((and (string-empty-p text) (not (nth 2 field)))
            (remhash (car field) values)
            (setq at (1+ at)))
           ((string-empty-p text) (setq wrong (cons nil "This has to be filled in")))
           (t (condition-case err
                  (progn
                    (puthash (car field) (duet-form--parse field text) values)
                    (setq at (1+ at)))
                (user-error (setq wrong (cons text (cadr err))))))))))
    answer))

(defun duet-form--look-over (fields values)
  "Show VALUES of FIELDS, and return the user's key for the next step."
  (read-char-choice
   (format "%s\nSend this?  y send, b back, n decline, c leave without an answer "
           (mapconcat (lambda (field)
                        (let ((value (gethash (car field) values 'none)))
                          (format "%s: %s" (duet-form--label field)
                                  (if (eq value 'none) "—"
                                    (duet-form--words field value)))))
                      fields "\n"))
   '(?y ?b ?n ?c)))

(defun duet-form-forget (id)
  "Forget the values for the question ID."
  (remhash id duet-form--values)
  (remhash id duet-form--drafts))

(defun duet-form-open (data)
  "Ask whether to open the address in DATA; open it if the user agrees.
Return non-nil, or one of the symbols `decline' and `cancel'."
  (let* ((url (or (duet-get-string data :url) ""))
         (web (duet-link-web-p url))
         (key (read-char-choice
               (format "%s\n%sy agree, and open it elsewhere, n decline, c leave without an answer "
                       (string-join (duet-form-lines data) "\n")
                       (if web "o open in a browser, " ""))
               (if web '(?o ?y ?n ?c) '(?y ?n ?c)))))
    (pcase key
      (?n 'decline)
      (?c 'cancel)
      (_ (when (eq key ?o) (duet-link-browse url)) t))))

(provide 'duet-form)
;;; duet-form.el ends here
