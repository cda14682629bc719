;;; duet-approval-edit.el --- The input of a tool, to be edited  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; Who is asked whether a tool may run can change what it is to get, as JSON, and
;; approve that.

;;; Code:

(require 'cl-lib)
(require 'json)
(require 'subr-x)
(require 'duet-approval)
(require 'duet-approval-view)
(require 'duet-connection)
(require 'duet-header)
(require 'duet-visible)

(defvar-local duet-approval-edit--original nil
  "The text that the buffer had at first.")

(defvar duet-approval-edit-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "C-c C-c") #'duet-approval-edit-send)
    (define-key map (kbd "C-c C-k") #'duet-approval-edit-cancel)
    map)
  "Keymap of `duet-approval-edit-mode'.")

(define-derived-mode duet-approval-edit-mode prog-mode "Duet-Input"
  "Major mode in which the input of a tool is changed, as JSON.

\\{duet-approval-edit-mode-map}"
  (modify-syntax-entry ?\" "\"")
  (modify-syntax-entry ?\\ "\\")
  (setq-local indent-tabs-mode nil
              font-lock-defaults
              '((("\\(\"\\(?:[^\"\\\n]\\|\\\\.\\)*\"\\)[ \t]*:"
                  1 font-lock-keyword-face t)
                 ("\\_<\\(?:true\\|false\\|null\\)\\_>" . font-lock-constant-face)))
              indent-line-function #'indent-relative
              header-line-format '(:eval (duet-approval-edit--header))))

(defun duet-approval-edit--header ()
  "Return the header line."
  (cond
   ((null duet-approval) "")
   ((not (duet-approval-connection duet-approval))
    (propertize " This is decided; what is written here is not used" 'face 'duet-failed))
   (t (cl-flet ((key (command words)
                  (duet-header-key command words 'duet-approval-edit-mode-map)))
        (concat " " (key #'duet-approval-edit-send "approves with this input")
                ", " (key #'duet-approval-edit-cancel "leaves it"))))))

(defun duet-approval-edit (approval)
  "Change the input of the tool of APPROVAL, then approve.
What was changed before is gone on with."
  (interactive (list (duet-approval-here))
               duet-transcript-mode duet-approvals-mode duet-approval-view-mode)
  (when (duet-approval-question-p approval)
    (user-error "A question has no input to edit"))
  (unless (duet-approval-editable-p approval)
    (user-error "This agent runs the tool with its own input; deny, and tell it what to run"))
  (duet-approval-check approval)
  (let ((buffer (duet-approval-view--buffer approval 'duet-approval-edit-mode))
        (connection (duet-approval-connection approval)))
    (cond
     (buffer (duet-approval-edit--show buffer))
     ;; An event leaves out an input that is too long.
     ((duet-get (duet-approval-data approval) :truncated)
      (duet-connection-request
       connection 'getApproval (list :approval_id (duet-approval-id approval))
       :success-fn (lambda (result)
                     (if (duet-get result :approval :truncated)
                         (message "Duet: the input is too long to be edited here")
                       (duet-approval-edit--input
                        approval connection (duet-get result :approval :tool_input))))))
     (t (duet-approval-edit--input approval connection (duet-approval-input approval))))))

(defun duet-approval-edit--input (approval connection input)
  "Show a buffer to edit INPUT of the tool of APPROVAL of CONNECTION.
In INPUT, which jsonrpc.el has read, {} and null are the same.  Where it
has either, the conversation is asked for the JSON itself."
  (let* ((session (duet-approval-session approval connection))
         (open (lambda (&rest _)
                 (duet-approval-edit--open approval connection
                                           (duet-approval--json input))))
         (ask (lambda (offset then)
                (duet-connection-request
                 connection 'getConversation
                 (list :session_id (duet-session-leaf-id session)
                       :offset offset :limit 50)
                 :error-fn open :success-fn then))))
    (if (not (and session (duet-approval--ambiguous-p input)))
        (funcall open)
      ;; Beyond the end there is nothing but the number.
      (funcall ask 1000000000
               (lambda (end)
                 (funcall ask (max 0 (- (or (duet-get-number end :total) 0) 50))
                          (lambda (result)
                            (if-let ((text (duet-approval-edit--find
                                            approval input
                                            (duet-get-objects result :events))))
                                (duet-approval-edit--open approval connection text)
                              (funcall open)))))))))

(defun duet-approval--ambiguous-p (input)
  "Return non-nil if INPUT, or something in it, is nil."
  (cond ((null input) t)
        ((vectorp input) (cl-some #'duet-approval--ambiguous-p input))
        ((consp input) (cl-loop for (_ value) on input by #'cddr
                                thereis (duet-approval--ambiguous-p value)))))

(defun duet-approval--normal (input)
  "Return INPUT in a form in which the order of members does not matter."
  (cond ((vectorp input) (cl-map 'vector #'duet-approval--normal input))
        ((consp input)
         (sort (cl-loop for (key value) on input by #'cddr
                        collect (cons key (duet-approval--normal value)))
               (lambda (a b) (string< (car a) (car b)))))
        (t input)))

(defun duet-approval-edit--find (approval input events)
  "Return the JSON of INPUT as EVENTS of the conversation have it, or nil.
That is the tool call that APPROVAL is about, if its input is INPUT."
  (cl-some
   (lambda (event)
     (when-let ((text (and (equal (duet-get-string event :tool_id)
                                  (duet-approval-call approval))
                           (equal (duet-get-string event :session_id)
                                  (duet-approval-run approval))
                           (duet-get-string event :tool_input_json))))
       (condition-case nil
           (when (equal (duet-approval--normal
                         (json-parse-string text :object-type 'plist :null-object nil
                                            :false-object :json-false))
                        (duet-approval--normal input))
             (with-temp-buffer
               (insert text)
               (json-pretty-print-buffer)
               (buffer-string)))
         (error nil))))
   events))

(defun duet-approval-edit--open (approval connection text)
  "Show a buffer to edit TEXT, the JSON of the input of the tool of APPROVAL.
The server of CONNECTION has asked it."
  (let ((buffer (generate-new-buffer
                 (format "*duet input: %s*" (duet-approval-name approval)))))
    (with-current-buffer buffer
      (duet-approval-edit-mode)
      (insert (duet-visible-json text) "\n")
      (goto-char (point-min))
      (setq duet-approval approval
            duet-connection connection
            default-directory (duet-connection-root connection)
            buffer-undo-list nil
            duet-approval-edit--original (buffer-string))
      (set-buffer-modified-p nil))
    (duet-approval-edit--show buffer)))

(defun duet-approval-edit--show (buffer)
  "Show BUFFER, an input to edit."
  (pop-to-buffer buffer '((display-buffer-reuse-window display-buffer-below-selected)
                          (window-height . 14))))

(defun duet-approval-edit--parse ()
  "Return the object that the buffer spells.
If it does not, point goes where that is seen and it is an error."
  (let ((start (point))
        (parsed nil))
    (goto-char (point-min))
    (condition-case err
        (progn
          (setq parsed (json-parse-buffer :null-object nil :false-object :json-false))
          (skip-chars-forward " \t\r\n"))
      (json-error
       (let ((place (car (last err))))
         (goto-char (if (integerp place)
                        (max (point-min) (min place (point-max)))
                      (point-max))))
       (user-error "This is no JSON, see point")))
    (unless (eobp)
      (user-error "Something follows the JSON, see point"))
    (goto-char start)
    (unless (hash-table-p parsed)
      (user-error "The input must be an object: { … }"))
    parsed))

(defun duet-approval-edit-send ()
  "Approve, with the input that is in the buffer."
  (interactive nil duet-approval-edit-mode)
  (let ((approval duet-approval)
        (input (duet-approval-edit--parse)))
    (if (string= (string-trim (buffer-string))
                 (string-trim duet-approval-edit--original))
        (duet-approval-send approval "approve" "Approved" :type "function_call")
      (duet-approval-send approval "approve" "Approved with another input"
                          :type "function_call" :updated_input input))
    (set-buffer-modified-p nil)
    (quit-window)))

(defun duet-approval-edit-cancel ()
  "Leave the input as it is; what was changed is there again next time."
  (interactive nil duet-approval-edit-mode)
  (quit-window)
  (message "Nothing is decided"))

(provide 'duet-approval-edit)
;;; duet-approval-edit.el ends here
