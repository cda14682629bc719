;;; duet-link-test.el --- Tests of links in messages  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'browse-url)
(require 'duet-markup-test-lib)

(defmacro duet-link-test-with-files (files &rest body)
  "Run BODY in a new directory with FILES of three lines."
  (declare (indent 1) (debug (form body)))
  `(let ((default-directory (file-name-as-directory
                             (file-truename (make-temp-file "duet-markup" t)))))
     (unwind-protect
         (progn
           (dolist (file ,files)
             (make-directory (file-name-directory (expand-file-name file)) t)
             (write-region "one\ntwo\nthree\n" nil file nil 'silent))
           ,@body)
       (delete-directory default-directory t))))

(defun duet-link-test-links (text)
  "Return the displayed links in TEXT, a list of (WORDS . TARGET)."
  (let ((here default-directory))
    (duet-markup-test-with message
      (setq default-directory here)
      (duet-markup-test-say-all message text 1000)
      (duet-markup-test-look message)
      (let ((place (point-min))
            (links '()))
        (while (setq place (text-property-not-all place (point-max) 'duet-link nil))
          (let ((end (next-single-property-change place 'duet-link nil (point-max))))
            (push (cons (duet-markup-test-screen place end)
                        (get-text-property place 'duet-link))
                  links)
            (setq place end)))
        (nreverse links)))))

(ert-deftest duet-link-test-found ()
  "Addresses of the web and files of the project are links."
  (duet-link-test-with-files '("src/main.go" "notes.txt" ".hidden/x.el")
    (pcase-dolist
        (`(,text . ,links)
         '(("[text](https://a.org/x) b" ("text" . "https://a.org/x"))
           ("[*a* `b`](https://a.org)" ("a b" . "https://a.org"))
           ("<https://a.org/x_y_z>" ("https://a.org/x_y_z" . "https://a.org/x_y_z"))
           ("See https://a.org/w_(x), https://b.org/y. (http://c.org/)"
            ("https://a.org/w_(x)" . "https://a.org/w_(x)")
            ("https://b.org/y" . "https://b.org/y") ("http://c.org/" . "http://c.org/"))
           ("看https://a.org/x，然后" ("https://a.org/x" . "https://a.org/x"))
           ("[w](https://a.org/w_(x))" ("w" . "https://a.org/w_(x)"))
           ;; Only files of the project are links.
           ("src/main.go:2 and `notes.txt`." ("src/main.go:2" . "src/main.go:2")
            ("notes.txt" . "notes.txt"))
           ("./src/main.go:2:7, src/main.go#L3" ("./src/main.go:2:7" . "./src/main.go:2:7")
            ("src/main.go#L3" . "src/main.go#L3"))
           ("[the file](src/main.go:3)" ("the file" . "src/main.go:3"))
           ("nowhere.txt:3 and/or e.g. 1.5 /etc/passwd ../x ~/.profile /ssh:h:/x.y")
           ;; These are not links.
           ("[a](javascript:alert) [b](file:///etc/passwd) [c](data:x) [d](#e)")
           ("[a] (b) []() [](https://a.org)" ("https://a.org" . "https://a.org"))))
      (should (equal (cons text (duet-link-test-links text)) (cons text links))))
    (should (equal (duet-link-file (concat default-directory "notes.txt:2"))
                   (cons (expand-file-name "notes.txt") 2)))
    (should-not (duet-link-file "src/../../../etc/passwd"))))

(ert-deftest duet-link-test-honest-links ()
  "A link whose text claims another target shows its real target."
  (pcase-dolist
      (`(,text ,shown)
       '(("[good.org](https://evil.org/x)" "[good.org](https://evil.org/x)")
         ("[https://good.org](https://evil.org)" "[https://good.org](https://evil.org)")
         ("[**good**.org/login](https://evil.org)" "[**good**.org/login](https://evil.org)")
         ("[good.org](https://good.org.evil.org)" "[good.org](https://good.org.evil.org)")
         ("[good.org](https://good.org@evil.org)" "[good.org](https://good.org@evil.org)")
         ("[good.org](https://www.good.org/x)" "good.org")
         ("[https://good.org](https://good.org/x)" "https://good.org")
         ("[README.md](https://a.org/b/README.md)" "README.md")
         ("[here](https://evil.org)" "here")
         ("![here](https://evil.org/x.png)" "![here](https://evil.org/x.png)")
         ("[here](https://evil.org \"title\")" "[here](https://evil.org \"title\")")))
    (should (equal (list text (duet-markup-test-shown text)) (list text shown))))
  ;; Invisible characters are written out as everywhere.
  (should (equal (duet-markup-test-shown "**a\u202eb** [x\u200by](https://a.org/\u200b)")
                 "a⟨U+202E⟩b x⟨U+200B⟩y")))

;; RET on file:///ssh:host:/x once started ssh, and on man:x man.
(ert-deftest duet-link-test-only-the-web ()
  "RET opens only addresses of the web."
  (duet-link-test-with-files '()
    (let ((here default-directory)
          (opened '()))
      (duet-markup-test-with message
        (setq default-directory here)
        (duet-markup-test-say-all
         message "file:///ssh:attacker:/x man:ls mailto:a@b.org HTTP://a.org/y" 1000)
        (duet-markup-test-look message)
        (cl-letf ((browse-url-browser-function (lambda (url &rest _) (push url opened)))
                  (browse-url-handlers nil)
                  ((symbol-function 'y-or-n-p) (lambda (_) t)))
          (dolist (address '("file:///ssh" "man:l" "mailto:a"))
            (goto-char (point-min))
            (search-forward address)
            (duet-test-should-say "Only http and https addresses are opened"
              (duet-transcript-visit)))
          (should-not opened)
          (search-forward "HTTP://a")
          (duet-transcript-visit)
          (should (length= opened 1)))))))

(ert-deftest duet-link-test-following ()
  "RET opens a link; a hidden address needs a confirmation."
  (duet-link-test-with-files '("src/main.go")
    (let ((here default-directory)
          (opened '())
          (asked '())
          (answer nil))
      (duet-markup-test-with message
        (setq default-directory here)
        (duet-markup-test-say-all
         message "[here](https://evil.org/x) https://a.org/y [f](src/main.go:2)" 1000)
        (duet-markup-test-look message)
        (cl-letf ((browse-url-browser-function (lambda (url &rest _) (push url opened)))
                  ((symbol-function 'y-or-n-p) (lambda (text) (push text asked) answer)))
          (goto-char (point-min))
          (search-forward "her")
          (should (string-match-p "\\`https://evil.org/x\n"
                                  (duet-link-help nil (current-buffer) (point))))
          (duet-test-listening (duet-test-press "RET" #'duet-transcript-visit))
          (should-not opened)
          (should (equal asked '("Open https://evil.org/x? ")))
          (setq answer t)
          (duet-test-press "RET" #'duet-transcript-visit)
          (should (equal opened '("https://evil.org/x")))
          (search-forward "https://a")
          (duet-test-press "RET" #'duet-transcript-visit)
          (should (equal opened '("https://a.org/y" "https://evil.org/x")))
          (should (length= asked 2))
          (search-forward "[")
          (save-window-excursion
            (duet-test-press "RET" #'duet-transcript-visit)
            (should (equal (list (buffer-file-name (window-buffer))
                                 (with-current-buffer (window-buffer) (line-number-at-pos)))
                           (list (expand-file-name "src/main.go" here) 2)))
            (kill-buffer (window-buffer)))
          ;; A symbolic link leads out of the project.
          (delete-file (expand-file-name "src/main.go" here))
          (make-symbolic-link "/etc/passwd" (expand-file-name "src/main.go" here))
          (duet-test-should-say "is outside the project"
            (duet-test-press "RET" #'duet-transcript-visit)))))))

(provide 'duet-link-test)
;;; duet-link-test.el ends here
