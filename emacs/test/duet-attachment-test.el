;;; duet-attachment-test.el --- Tests of images and files in a session  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-attach)

(defconst duet-attachment-test-image
  '(:type "image" :attachment_id "abc" :mime_type "image/png" :size 12345))

(defun duet-attachment-test-session (&rest items)
  "Return a session with ITEMS, which are data of events."
  (let ((model (duet-model-create :root "/nowhere/"))
        (seq 1))
    (cl-flet ((apply-event (kind data)
                (duet-events-apply
                 model (list :subscription_id "sub" :seq seq :kind kind :turn_uuid "r1"
                             :time "2026-01-01T00:00:00Z" :data data))
                (setq seq (1+ seq))))
      (apply-event "turn.state" '(:session_uuid "t1" :state "running" :agent "demo"))
      (setf (duet-session-loaded (duet-model-session model "t1")) t)
      (dolist (item items)
        (apply-event "item.added" item)))
    (duet-model-session model "t1")))

(defun duet-attachment-test-lines (session)
  "Return the rendered messages of SESSION, one string each."
  (mapcar (lambda (message) (substring-no-properties (duet-render message)))
          (duet-session-message-list session)))

(ert-deftest duet-attachment-test-label ()
  (should (equal (duet-attachment-label duet-attachment-test-image)
                 "[image image/png 12 kB]"))
  (should (equal (duet-attachment-label (append '(:uri "file:///a%20b/c%20d.png")
                                                duet-attachment-test-image))
                 "[image c d.png image/png 12 kB]"))
  (should (equal (duet-attachment-label '(:type "resource_link" :name "a" :uri "file:///a"))
                 "[resource link a file:///a]")))

(ert-deftest duet-attachment-test-messages ()
  "Prompts, messages and tool calls show their attachments beside text."
  (let* ((session
          (duet-attachment-test-session
           (list :type "message" :key "m1" :role "user" :text "Look"
                 :attachments (vector duet-attachment-test-image))
           (list :type "message" :key "m2" :role "assistant"
                 :text "[image image/png 12 KB]"
                 :attachments (vector duet-attachment-test-image))
           (list :type "tool_call" :key "x" :tool_name "Read"
                 :status "completed"
                 :details (list :attachments (vector duet-attachment-test-image)))))
         (lines (duet-attachment-test-lines session)))
    (should (string-suffix-p "Look\n  [image image/png 12 kB]" (nth 0 lines)))
    (should (equal (nth 1 lines) "  [image image/png 12 kB]"))
    (should (string-suffix-p "Read\n  [image image/png 12 kB]" (nth 2 lines)))
    (let ((text (duet-render (nth 1 (duet-session-message-list session)))))
      (should (equal (get-text-property 4 'duet-attachment text)
                     duet-attachment-test-image)))))

(ert-deftest duet-attachment-test-thoughts ()
  "A thought that is an image is shown as a thought, and does not stream."
  (let* ((session
          (duet-attachment-test-session
           (list :type "thought" :key "m1" :role "assistant"
                 :text "[image image/png 12 KB]"
                 :attachments (vector duet-attachment-test-image))))
         (message (car (duet-session-message-list session)))
         (text (duet-render message)))
    (should (string-match "\\`[^\n]*Thought\n  \\[image image/png 12 kB\\]\\'" text))
    (should (equal (get-text-property (1- (length text)) 'duet-attachment text)
                   duet-attachment-test-image))
    (should-not (duet-render-streams-p message))))

(ert-deftest duet-attachment-test-name-that-steers ()
  "A file name from an agent cannot control the display."
  (let ((line (duet-attachment--line nil '(:type "resource" :name "a\n\e[31m\u202eb"))))
    (should-not (string-match-p "[\n\e\u202e]" line))))

(ert-deftest duet-attachment-test-nesting ()
  "A tool call of a sub-agent is indented below the call of the sub-agent."
  (should (equal
           (mapcar (lambda (line) (car (split-string line "[^ ]" )))
                   (duet-attachment-test-lines
                    (duet-attachment-test-session
                     '(:type "tool_call" :key "a" :tool_name "Task")
                     '(:type "tool_call" :key "b" :tool_name "Task"
                                   :parent_tool_use_id "a")
                     '(:type "tool_call" :key "c" :tool_name "Bash"
                                   :parent_tool_use_id "b")
                     ;; This call is its own parent.
                     '(:type "tool_call" :key "d" :tool_name "Bash"
                                   :parent_tool_use_id "d"))))
           (list "" "  " "    " (make-string 16 ?\s)))))

(ert-deftest duet-attachment-test-nested-words ()
  "Text of a sub-agent is shown below the call of the sub-agent."
  (let* ((session (duet-attachment-test-session
                   '(:type "tool_call" :key "a" :tool_name "Task")
                   '(:type "message" :key "m" :role "assistant"
                                 :text "One\ntwo" :parent_tool_use_id "a")
                   '(:type "message" :key "n" :role "assistant"
                                 :text "Mine" :parent_tool_use_id "")))
         (texts (mapcar #'duet-render (duet-session-message-list session))))
    (should (equal (substring-no-properties (nth 1 texts)) "One\ntwo"))
    (dolist (property '(line-prefix wrap-prefix))
      (should (equal (get-text-property 0 property (nth 1 texts)) "  "))
      (should (equal (get-text-property 5 property (nth 1 texts)) "  "))
      (should-not (get-text-property 0 property (nth 2 texts))))))

(ert-deftest duet-attachment-test-nested-images ()
  "Images of a sub-agent and of its tools are shown below its call."
  (let* ((session (duet-attachment-test-session
                   '(:type "tool_call" :key "a" :tool_name "Task")
                   (list :type "message" :key "m" :role "assistant"
                         :text "[image image/png 12 KB]" :parent_tool_use_id "a"
                         :attachments (vector duet-attachment-test-image))
                   (list :type "tool_call" :key "b"
                         :tool_name "Read" :status "completed" :parent_tool_use_id "a"
                         :details
                         (list :attachments (vector duet-attachment-test-image)))))
         (texts (mapcar #'duet-render (cdr (duet-session-message-list session)))))
    (should (equal (substring-no-properties (car texts)) "  [image image/png 12 kB]"))
    (should (equal (get-text-property 0 'line-prefix (car texts)) "  "))
    (should (string-match "\\`  .*Read\n  \\[image image/png 12 kB\\]\\'" (cadr texts)))
    (should-not (get-text-property 0 'line-prefix (cadr texts)))
    (should (equal (get-text-property (string-search "[" (cadr texts)) 'line-prefix
                                      (cadr texts))
                   "  "))))

(ert-deftest duet-attachment-test-colors ()
  "Coloured output of a tool has faces, and no escape sequences."
  (let* ((session (duet-attachment-test-session
                   '(:type "tool_call" :key "x" :tool_name "Bash"
                                 :status "completed"
                                 :result "\e[32mPASS\e[0m one")))
         (text (duet-render (car (duet-session-message-list session))))
         (place (string-match "PASS" text)))
    (should place)
    (should-not (string-search "\e" text))
    (should-not (equal (get-text-property place 'face text)
                       (get-text-property (+ place 6) 'face text)))))

(ert-deftest duet-attachment-test-fetch ()
  "The client fetches the bytes in parts."
  (let (asked got)
    (cl-letf (((symbol-function 'duet-connection-request)
               (lambda (_ method params &rest more)
                 (push (list method (plist-get params :offset)) asked)
                 (funcall (plist-get more :success-fn)
                          (if (eql 0 (plist-get params :offset))
                              '(:data "AAE=" :next_offset 2 :mime_type "image/png")
                            '(:data "Ag==" :mime_type "image/png"))))))
      (duet-attachment-fetch nil "abc" (lambda (bytes type) (setq got (list bytes type)))))
    (should (equal (reverse asked) '((attachment.get 0) (attachment.get 2))))
    (should (equal got (list (unibyte-string 0 1 2) "image/png")))))

(ert-deftest duet-attachment-test-image-that-comes-later ()
  "An image is fetched once, and its message is redrawn when it arrives."
  (let* ((session (duet-attachment-test-session
                   (list :type "message" :key "m1" :role "user" :text "Look"
                         :attachments (vector duet-attachment-test-image))))
         (message (car (duet-session-message-list session)))
         (duet-connection (make-duet-connection :root "/nowhere/"))
         (asked '())
         (announced '()))
    (duet-model-add-observer (lambda (_model kind _session object _extra)
                               (push (cons kind object) announced))
                             (duet-session-model session))
    (cl-letf (((symbol-function 'display-graphic-p) #'always)
              ((symbol-function 'image-type-available-p) #'always)
              ((symbol-function 'create-image) (lambda (bytes &rest _) (list 'image :data bytes)))
              ((symbol-function 'duet-attachment-fetch)
               (lambda (_connection id success &rest _) (push (cons id success) asked))))
      (dotimes (_ 2)
        (should-not (text-property-not-all 0 (length (duet-render message)) 'display nil
                                           (duet-render message))))
      (should (equal (mapcar #'car asked) '("abc")))
      (should-not announced)
      (funcall (cdar asked) "bytes" "image/png")
      (should (equal announced (list (cons 'message-changed message))))
      (let ((text (duet-render message)))
        (should (equal (get-text-property (1- (length text)) 'display text)
                       '(image :data "bytes"))))
      (should (length= asked 1)))))

(provide 'duet-attachment-test)
;;; duet-attachment-test.el ends here
