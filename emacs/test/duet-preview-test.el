;;; duet-preview-test.el --- Tests of the preview of pages  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'url)
(require 'duet-test-lib)
(require 'duet-preview)

(defmacro duet-preview-test-with (&rest body)
  "Run BODY in a project that has a page, with its preview open.
`connection', `root' and `preview', the buffer of the preview, are bound.
`opened' is bound to the addresses that the browser received."
  (declare (indent 0) (debug (body)))
  `(duet-test-with-project connection
     (let* ((root (duet-connection-root connection))
            (opened '())
            (duet-preview-browse-function (lambda (address) (push address opened)))
            preview process)
       (make-directory (expand-file-name "dist" root))
       (write-region "<h1>Hello</h1>" nil (expand-file-name "dist/index.html" root) nil 'quiet)
       (write-region "one\ntwo(\nthree\n" nil (expand-file-name "dist/app.js" root) nil 'quiet)
       (save-window-excursion
         (with-current-buffer (duet-sessions-buffer connection)
           (call-interactively #'duet-preview))
         (setq preview (get-buffer (format "*duet preview: %s*" (duet-remote-abbreviate root)))
               process (buffer-local-value 'duet-preview--process preview))
         (unwind-protect
             (progn
               (duet-test-wait-for opened)
               ,@body)
           (when (buffer-live-p preview) (kill-buffer preview))
           ;; The process ends with its buffer.
           (duet-test-wait-for (not (process-live-p process))))))))

(ert-deftest duet-preview-test-whole ()
  "A preview opens, and console messages of its pages are listed as they arrive."
  (duet-preview-test-with
    (should (string-match-p "\\`http://[a-z0-9]+\\.localhost:[0-9]+/" (car opened)))
    (with-current-buffer (let (url-show-status url-cookie-storage)
                           ;; The system may not resolve this host name.
                           (url-retrieve-synchronously
                            (replace-regexp-in-string "//[a-z0-9]+\\.localhost" "//127.0.0.1" (car opened))
                            t nil 30))
      (should (string-match-p "Hello" (buffer-string)))
      (kill-buffer))
    (with-current-buffer preview
      ;; Only the browser gets the token.
      (should-not (string-match-p "token\\|\\?\\|localhost" (duet-preview--header)))
      (should (string-match-p "Preview on port [0-9]+" (duet-preview--header)))
      (duet-test-should-say "report no errors" (duet-preview-ask)))
    (duet-test-request connection 'console '(:message "fine" :url "/"))
    (duet-test-wait-for-text preview "log +fine  /")
    (duet-test-request connection 'error '(:message "two is\nnot a function\e[31m" :url "/app.js?v=1"
                                           :line 2 :column 4 :stack "at two"))
    (duet-test-wait-for-text preview "error +two is\nnot a function.*/app\\.js\\?v=1:2:4\n  at two")
    ;; A repeated message is counted in its line.
    (duet-test-request connection 'console '(:message "fine" :url "/"))
    (duet-test-request connection 'console '(:level "warn" :message "``` odd" :url "/none.js"))
    (duet-test-wait-for-text preview "warn +``` odd")
    (with-current-buffer preview
      (should-not (string-search "\e" (buffer-string)))
      (should (<= 1 (how-many "fine" (point-min) (point-max)) 2))
      (goto-char (point-min))
      (unless (get-text-property (point) 'duet-preview-message) (duet-preview-next))
      (duet-test-press "n" #'duet-preview-next)
      (should (looking-at ".*two is"))
      (save-window-excursion
        (duet-test-press "RET" #'duet-preview-visit)
        (should (equal (file-name-nondirectory buffer-file-name) "app.js"))
        (should (looking-at "(")))
      (save-window-excursion
        (switch-to-buffer preview)
        (goto-char (point-min))
        (search-forward "two is")
        (duet-test-click #'duet-preview-visit-mouse)
        (should (equal (file-name-nondirectory buffer-file-name) "app.js")))
      (goto-char (point-max))
      (duet-test-press "p" #'duet-preview-previous)
      (duet-test-should-say "No file of the project" (duet-preview-visit))
      ;; A prompt quotes warnings and errors, and nothing else.
      (duet-test-press "c" #'duet-preview-ask))
    (let ((compose (cl-find-if (lambda (buffer)
                                 (with-current-buffer buffer
                                   (derived-mode-p 'duet-compose-mode)))
                               (buffer-list))))
      (should (string-match-p "```\nerror: two is\nnot a function.*(/app.js\\?v=1:2:4)\nwarn: ''' odd (/none.js)\n```"
                              (duet-test-text compose)))
      (should-not (string-match-p "fine" (duet-test-text compose))))))

(ert-deftest duet-preview-test-again ()
  "A running preview is opened again; an ended one is restarted."
  (duet-preview-test-with
    (with-current-buffer preview
      (call-interactively #'duet-preview)
      (should (equal (length opened) 2))
      (should (equal (car opened) (cadr opened)))
      (duet-test-press "C-o" #'duet-preview-open)
      (should (equal (length opened) 3))
      (duet-test-listening
        (duet-test-press "g" #'duet-preview-reload)
        (duet-test-wait-for (duet-test-heard "loaded again")))
      (duet-test-press "C-c C-k" #'duet-preview-stop)
      (duet-test-wait-for (not (process-live-p process)))
      (duet-test-should-say "has ended" (duet-preview-open))
      (duet-test-should-say "has ended" (duet-preview-stop))
      (should (string-match-p "has ended" (duet-preview--header)))
      (call-interactively #'duet-preview)
      (setq process duet-preview--process)
      (duet-test-wait-for (= (length opened) 4)))))

(ert-deftest duet-preview-test-parts ()
  "Output of the process arrives in pieces, and may be invalid JSON."
  (with-temp-buffer
    (duet-preview-mode)
    (let ((duet-preview--most 2))
      (duet-preview--printed "nonsense\n{\"id\":1,\"kind\":\"console\",\"level\":\"log\",\"mess")
      (should (equal (buffer-string) ""))
      (duet-preview--printed "age\":\"a\",\"count\":1}\n{\"id\":2,\"kind\":\"error\",\"message\":\"b\"}\n")
      (should (equal (duet-test-text (current-buffer)) "log    a\nerror  b\n"))
      (duet-preview--printed "{\"id\":1,\"kind\":\"console\",\"level\":\"log\",\"message\":\"a\",\"count\":3}\n")
      (should (equal (duet-test-text (current-buffer)) "log    a  ×3\nerror  b\n"))
      (duet-preview--printed "{\"id\":1,\"kind\":\"console\",\"level\":\"log\",\"message\":\"a\",\"count\":4}\n")
      (should (equal (duet-test-text (current-buffer)) "log    a  ×4\nerror  b\n"))
      (should (string-match-p "\\`navigation Home error +forged\n\\'"
                              (duet-preview--line '(:kind "navigation" :message "Home\nerror  forged"))))
      ;; The oldest messages are dropped.
      (duet-preview--printed "{\"id\":3,\"kind\":\"console\",\"level\":\"log\",\"message\":\"c\"}\n")
      (should (equal (duet-test-text (current-buffer)) "error  b\nlog    c\n")))))

(ert-deftest duet-preview-test-remote ()
  "For a preview on another machine, a message says how to see its pages."
  (duet-test-should-say "run `?‘?duet-rpc preview --port 8080"
    (with-temp-buffer
      (setq duet-connection (make-duet-connection :root "/ssh:there:/project/"))
      (cl-letf (((symbol-function 'duet-remote-abbreviate) #'identity))
        (duet-preview)))))

(provide 'duet-preview-test)
;;; duet-preview-test.el ends here
