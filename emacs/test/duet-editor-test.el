;;; duet-editor-test.el --- Tests of the tools of Emacs for agents  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'flymake)
(require 'duet-editor)

(defmacro duet-editor-test-with-files (&rest body)
  "Run BODY in the file a.el of a project; b.el exists, and is not visited.
`connection' is the project's connection, and `call' returns a tool's result."
  (declare (debug (body)))
  `(duet-test-with-project connection
     (let ((root (duet-connection-root connection)))
       (with-temp-file (expand-file-name "a.el" root)
         (insert "(defun duet-editor-test-a ()\n  (car))\n\n(defvar duet-editor-test-b 1)\n"))
       (with-temp-file (expand-file-name "b.el" root)
         (insert "(defun duet-editor-test-c ()\n  (duet-editor-test-a))\n"))
       (load (expand-file-name "a.el" root) nil t t)
       (cl-flet ((call (tool &rest params)
                   (duet-editor-answer connection (intern (concat "editor." tool)) params)))
         (ignore #'call)
         (save-window-excursion
           (delete-other-windows)
           (switch-to-buffer (find-file-noselect (expand-file-name "a.el" root)))
           ,@body)))))

(defun duet-editor-test-paths (result name)
  "Return the file names and lines of the places in the member NAME of RESULT."
  (mapcar (lambda (one)
            (cons (file-name-nondirectory (plist-get one :path)) (plist-get one :line)))
          (plist-get result name)))

(ert-deftest duet-editor-test-an-agent-asks ()
  "An agent reads the user's selection without an approval."
  (duet-editor-test-with-files
   (search-forward "(car)")
   (let ((transient-mark-mode t))
     (push-mark (match-beginning 0) t t)
     (let ((session (duet-test-launch connection "editor:selection")))
       (duet-test-wait-for-state session 'completed)
       (duet-transcript-show connection session)
       (duet-test-wait-for-text (current-buffer) "The editor said: ")
       (let ((text (duet-test-text (current-buffer))))
         (should (string-match-p "\"text\": *\"(car)\"" text))
         (should (string-match-p "\"line\": *2" text)))))))

(ert-deftest duet-editor-test-saved ()
  "The server learns which files of the project the user saves."
  (duet-editor-test-with-files
   (let ((request (symbol-function 'duet-connection-request))
         (sent nil))
     (cl-letf (((symbol-function 'duet-connection-request)
                (lambda (connection method params &rest more)
                  (when (eq method 'editor.saved)
                    (push (append (plist-get params :paths) nil) sent))
                  (apply request connection method params more))))
       (insert " ")
       (save-buffer)
       (should (equal sent (list (list (file-truename buffer-file-name)))))
       (with-temp-buffer (run-hooks 'after-save-hook))
       (should (length= sent 1))))))

(ert-deftest duet-editor-test-places ()
  "Tools find definitions, references and symbols, and leave no new buffer."
  (duet-editor-test-with-files
   (let ((before (buffer-list)))
     (should (equal (duet-editor-test-paths
                     (call "definition" :path (expand-file-name "b.el" root) :line 2
                           :symbol "duet-editor-test-a")
                     :locations)
                    '(("a.el" . 1))))
     (should (member '("b.el" . 2)
                     (duet-editor-test-paths
                      (call "references" :path buffer-file-name :line 1 :symbol "duet-editor-test-a")
                      :locations)))
     (let ((symbols (plist-get (call "symbols" :path (expand-file-name "b.el" root)) :symbols)))
       (should (equal (mapcar (lambda (one) (plist-get one :name)) symbols) '("duet-editor-test-c"))))
     (should (seq-find (lambda (one) (equal (plist-get one :name) "duet-editor-test-b"))
                       (plist-get (call "symbols" :path buffer-file-name :query "TEST-B") :symbols)))
     (should-not (seq-difference (seq-filter #'buffer-file-name (buffer-list)) before)))
   (pcase-dolist (`(,params ,why)
                  `(((:path ,(expand-file-name "none.el" root) :line 1) "There is no file")
                    ((:path ,buffer-file-name :line 1 :symbol "nowhere") "is not in line 1, which is: (defun")
                    ((:path ,buffer-file-name :line 3) "There is no symbol")
                    ((:path ,buffer-file-name) "The line is missing")
                    ((:line 1) "The path is missing")))
     (let ((err (should-error (apply #'call "definition" params) :type 'jsonrpc-error)))
       (should (string-match-p why (alist-get 'jsonrpc-error-message (cddr err))))))))

(ert-deftest duet-editor-test-diagnostics ()
  "The tool returns the diagnostics of Flymake, errors first."
  (duet-editor-test-with-files
   (let ((flymake-diagnostic-functions
          (list (lambda (report &rest _)
                  (funcall report
                           (list (flymake-make-diagnostic (current-buffer) 1 7 :warning "unused")
                                 (flymake-make-diagnostic (current-buffer) 33 36 :error "no argument")))))))
     (flymake-mode)
     (flymake-start)
     (duet-test-wait-for (flymake-diagnostics))
     (let ((found (call "diagnostics" :path buffer-file-name)))
       (should (equal (plist-get found :total) 2))
       (should (equal (mapcar (lambda (one)
                                (list (plist-get one :severity) (plist-get one :line)
                                      (plist-get one :column) (plist-get one :message)))
                              (plist-get found :diagnostics))
                      '(("error" 2 4 "no argument") ("warning" 1 1 "unused"))))
       (should-not (plist-get found :note)))
     (should (equal (plist-get (call "diagnostics") :total) 2))
     (let ((other (call "diagnostics" :path (expand-file-name "b.el" root))))
       (should (equal (plist-get other :total) 0))
       (should (string-match-p "not open" (plist-get other :note))))
     (flymake-mode -1))))

(ert-deftest duet-editor-test-buffers ()
  "The tool lists open files of the project, with unsaved text."
  (duet-editor-test-with-files
   (let ((outside (make-temp-file "duet-editor-test")))
     (unwind-protect
         (progn
           (find-file-noselect outside)
           (should (equal (plist-get (aref (plist-get (call "buffers") :buffers) 0) :modified) :json-false))
           (goto-char (point-max))
           (insert "changed" (string (unibyte-char-to-multibyte 200)))
           (let* ((buffers (plist-get (call "buffers") :buffers))
                  (one (aref buffers 0)))
             (should (equal (length buffers) 1))
             (should (equal (list (plist-get one :active) (plist-get one :visible) (plist-get one :modified))
                            '(t t t)))
             (should (string-suffix-p "changed\xfffd" (plist-get one :text)))
             (should (json-serialize (list :buffers buffers))))
           (set-buffer-modified-p nil))
       (kill-buffer (get-file-buffer outside))
       (delete-file outside)))))

(ert-deftest duet-editor-test-open ()
  "The tool shows a place, and the user's window and point stay."
  (duet-editor-test-with-files
   (let ((window (selected-window))
         (point (point)))
     (should (equal (plist-get (call "open" :path (expand-file-name "b.el" root) :line 2) :line) 2))
     (should (eq (selected-window) window))
     (should (equal (window-point window) point))
     (let ((other (get-buffer-window (get-file-buffer (expand-file-name "b.el" root)))))
       (should other)
       (should (equal (with-current-buffer (window-buffer other)
                        (line-number-at-pos (window-point other)))
                      2))))))

(ert-deftest duet-editor-test-nothing-asks ()
  "A tool never asks the user: a question becomes an error."
  (duet-editor-test-with-files
   (with-temp-file (expand-file-name "c.el" root)
     (insert "(defun c ())\n;; Local " "Variables:\n;; eval: (setq duet-editor-test-ran t)\n;; End:\n"))
   (defvar duet-editor-test-ran)
   (setq duet-editor-test-ran nil)
   (should (equal (plist-get (call "symbols" :path (expand-file-name "c.el" root)) :total) 1))
   (should-not duet-editor-test-ran)
   (let ((find-file-hook (list (lambda () (y-or-n-p "Really? ")))))
     (should-error (call "symbols" :path (expand-file-name "b.el" root)) :type 'jsonrpc-error))
   (let ((find-file-hook (list (lambda () (signal 'quit nil))))) ; C-g
     (should-error (call "symbols" :path (expand-file-name "b.el" root)) :type 'jsonrpc-error))
   (should-error (call "format") :type 'jsonrpc-error)
   (let ((duet-editor-tools nil))
     (should-error (call "buffers") :type 'jsonrpc-error))))

(provide 'duet-editor-test)
;;; duet-editor-test.el ends here
