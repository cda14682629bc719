;;; duet-diff-test.el --- Tests of diffs and what is done with them  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-diff)
(require 'ediff)

(defun duet-diff-test--lines (&rest changes)
  "Return a text of 30 lines in which CHANGES, (NUMBER . TEXT), are made."
  (mapconcat (lambda (number)
               (let ((change (assq number changes)))
                 (if change (cdr change) (format "line %d\n" number))))
             (number-sequence 1 30) ""))

(defun duet-diff-test--diff (before after)
  "Return the unified diff from BEFORE to AFTER, without names."
  (let ((old (make-temp-file "duet-old"))
        (new (make-temp-file "duet-new")))
    (unwind-protect
        (progn
          (let ((coding-system-for-write 'utf-8-unix))
            (write-region before nil old nil 'quiet)
            (write-region after nil new nil 'quiet))
          (with-temp-buffer
            (call-process "diff" nil t nil "-u" old new)
            (buffer-string)))
      (delete-file old)
      (delete-file new))))

(ert-deftest duet-diff-test-hunks ()
  "Hunks are taken back and put in again, however the file ends."
  (pcase-dolist
      (`(,before ,after ,count)
       `(("a\nb\n" "a\nc\n" 1)
         ("a\nb" "a\nc" 1)
         ("a\nb" "a\nb\n" 1)
         ("a\nb\n" "a\nb" 1)
         ("" "a\n" 1)
         ("a\n" "" 1)
         ("a\r\nb\r\n" "a\r\nü\r\n" 1)
         ("\n\n\nx\n\n\n" "\n\n\ny\n\n\n" 1)
         ("- a\n+ b\n" "-- a\n++ b\n@@ -1 +1 @@\n" 1)
         (,(duet-diff-test--lines)
          ,(duet-diff-test--lines '(3 . "") '(15 . "one\ntwo\n") '(29 . "end\n")) 3)))
    (let ((hunks (duet-hunk-list (duet-diff-test--diff before after))))
      (should (equal (list before (length hunks)) (list before count)))
      (should (cl-every #'duet-hunk-whole hunks))
      (with-temp-buffer
        (insert after)
        (dolist (hunk (reverse hunks))
          (should (duet-hunk-swap hunk (duet-hunk-line hunk))))
        (should (equal (buffer-string) before))
        (let ((shift (cl-reduce #'+ (mapcar #'duet-hunk-shift hunks))))
          (dolist (hunk (reverse hunks))
            (cl-decf shift (duet-hunk-shift hunk))
            (should (duet-hunk-swap hunk (+ (duet-hunk-line hunk) shift) t))))
        (should (equal (buffer-string) after))))))

(ert-deftest duet-diff-test-renamed ()
  "A heading names the file whose text a new one has."
  (with-temp-buffer
    (pcase-dolist (`(,old ,words) '((nil "new file, empty") ("/p/a/old" "renamed from old")
                                    ("/p/b/old\u202e" "renamed from ../b/old⟨U+202E⟩")))
      (should (equal (duet-diff--words
                      (duet-diff--file (list :file_path "/p/a/new" :after "x\n" :before :null
                                             :diff "" :renamed_from old)))
                     words)))))

(ert-deftest duet-diff-test-hunk-moved ()
  "A hunk that has moved is found; one that stands twice, or not at all, is not."
  (let* ((before "x\na\nb\n")
         (hunk (car (duet-hunk-list (duet-diff-test--diff before "x\na\nc\n")))))
    (pcase-dolist (`(,text ,expected)
                   '(("0\n1\nx\na\nc\nend\n" "0\n1\nx\na\nb\nend\n")
                     ("x\na\nc\nx\na\nc\n" "x\na\nb\nx\na\nc\n")
                     ("0\nx\na\nc\nx\na\nc\n" nil)
                     ("xx\na\nc\n" nil) ("x\na\nC\n" nil) ("x\na\nc" nil) ("" nil)))
      (with-temp-buffer
        (insert text)
        (should (equal (list text (and (duet-hunk-swap hunk 1) (buffer-string)))
                       (list text expected)))
        (unless expected (should (equal (buffer-string) text)))))
    ;; What the server has cut short is not touched.
    (let ((cut (car (duet-hunk-list "@@ -1,3 +1,3 @@\n x\n a… [9 of 40 bytes left out]"))))
      (should-not (duet-hunk-whole cut))
      (with-temp-buffer
        (insert "x\n")
        (should-not (duet-hunk-swap cut 1))))))

(defmacro duet-diff-test-with-files (files &rest body)
  "Run BODY in the diff of FILES: a list of (NAME BEFORE AFTER BINARY).
The directory `default-directory' has them as they are after."
  (declare (indent 1) (debug (form body)))
  `(duet-diff-test--call ,files (lambda () ,@body)))

(defun duet-diff-test--object (name before after &optional binary)
  "Return what the server tells of the file NAME, BEFORE and AFTER, or BINARY."
  (list :file_path (expand-file-name name) :before before :after after
        :binary (or binary :json-false)
        :diff (cond (binary (format "Binary file %s differs\n" name))
                    ((equal before after) "")
                    (t (replace-regexp-in-string
                        "\\`--- .*\n\\+\\+\\+ .*\n"
                        (format "--- a/%s\n+++ b/%s\n" name name)
                        (duet-diff-test--diff (or before "") (or after "")))))))

(defun duet-diff-test--call (files function)
  "Call FUNCTION in the diff of FILES."
  (let* ((default-directory (file-name-as-directory (make-temp-file "duet-diff" t)))
         (root default-directory)
         (model (duet-model-create :root root))
         (session (make-duet-session
                   :id "t" :model model :cwd root
                   :runs (list (make-duet-run :id "r" :state 'completed))))
         (duet-connection (make-duet-connection :root root :model model))
         (duet-diff--states (make-hash-table :test #'equal))
         (objects (mapcar (lambda (file) (apply #'duet-diff-test--object file)) files))
         (inhibit-message t))
    (pcase-dolist (`(,name ,_ ,after ,binary) files)
      (when (or after binary)
        (make-directory (file-name-directory (expand-file-name name)) t)
        (write-region (or after "\0") nil name nil 'quiet)))
    (unwind-protect
        (cl-letf (((symbol-function 'duet-connection-request)
                   (lambda (_ method params &rest functions)
                     (should (eq method 'getSessionSnapshots))
                     (should (equal params '(:session_id "r")))
                     (funcall (plist-get functions :success-fn)
                              (list :snapshots (vconcat objects)))))
                  ((symbol-function 'y-or-n-p) (lambda (_) t)))
          (save-window-excursion
            (duet-diff session)
            (unwind-protect (funcall function)
              (kill-buffer))))
      (dolist (buffer (buffer-list))
        (when (and (buffer-file-name buffer)
                   (string-prefix-p root (buffer-file-name buffer)))
          (with-current-buffer buffer (set-buffer-modified-p nil))
          (kill-buffer buffer)))
      (delete-directory root t))))

(defun duet-diff-test--visible ()
  "Return what of the buffer can be seen, with the marks."
  (let ((text "")
        (position (point-min)))
    (while (< position (point-max))
      (dolist (overlay (overlays-at position))
        (when (and (= (overlay-start overlay) position) (overlay-get overlay 'before-string))
          (setq text (concat text (overlay-get overlay 'before-string)))))
      (unless (invisible-p position)
        (setq text (concat text (buffer-substring-no-properties position (1+ position)))))
      (cl-incf position))
    text))

(defmacro duet-diff-test-should-refuse (regexp form)
  "Check that FORM is refused with words that REGEXP matches."
  `(should (string-match-p ,regexp (cadr (should-error ,form :type 'user-error)))))

(ert-deftest duet-diff-test-hunk-by-hunk ()
  "Each change is accepted or reverted in the file, in any order, and undone."
  (let ((before (duet-diff-test--lines))
        (after (duet-diff-test--lines '(2 . "") '(15 . "one\ntwo\nthree\n") '(29 . "end\n"))))
    (duet-diff-test-with-files `(("f.txt" ,before ,after))
      (let ((text (lambda () (duet-hunk-file-text (expand-file-name "f.txt")))))
        (should (string-match-p "0 of 3 reviewed" (duet-diff--header)))
        (should (looking-at "@@ -1,5"))
        (call-interactively #'duet-diff-accept)
        ;; Point goes on to what is left.
        (should (looking-at "@@ -12,7"))
        (should (equal (funcall text) after))
        (call-interactively #'duet-diff-revert)
        (should (equal (funcall text) (duet-diff-test--lines '(2 . "") '(29 . "end\n"))))
        (should (looking-at "@@ -2[0-9],"))
        (call-interactively #'duet-diff-revert)
        (should (equal (funcall text) (duet-diff-test--lines '(2 . ""))))
        (should (string-match-p "all reviewed" (duet-diff--header)))
        (should (string-match-p
                 "✓ accepted  @@ -1.*\n✗ reverted  @@ -12.*\n✗ reverted  @@ -2"
                 (duet-diff-test--visible)))
        (should-not (string-match-p "three" (duet-diff-test--visible)))
        (duet-diff-test-should-refuse "reverted" (duet-diff-revert))
        (duet-diff-test-should-refuse "reverted" (duet-diff-accept))
        ;; What was decided outlives another look.
        (duet-test-press "g" #'duet-diff-refresh)
        (should (string-match-p "all reviewed" (duet-diff--header)))
        (duet-test-go "@@ -12")
        (call-interactively #'duet-diff-undo)
        (should (equal (funcall text)
                       (duet-diff-test--lines '(2 . "") '(15 . "one\ntwo\nthree\n"))))
        ;; Where nothing is decided about what point is on, it is what was decided last.
        (call-interactively #'duet-diff-undo)
        (should (equal (funcall text) after))
        (should (looking-at "@@ -2[0-9],"))
        (call-interactively #'duet-diff-undo)
        (should (looking-at "@@ -1,"))
        (duet-diff-test-should-refuse "is not decided" (duet-diff-undo))
        (should (equal (funcall text) after))
        (should (string-match-p "0 of 3 reviewed" (duet-diff--header)))
        (call-interactively #'duet-diff-revert-file)
        (should (equal (funcall text) before))
        (duet-diff-test-should-refuse "reverted" (duet-diff-revert-file))
        (dolist (hunk '("@@ -1," "@@ -12" "@@ -26"))
          (duet-test-go hunk)
          (call-interactively #'duet-diff-undo))
        (should (equal (funcall text) after))))))

(ert-deftest duet-diff-test-twins ()
  "Changes that look the same are told from each other, whatever is reverted before."
  (let* ((block (lambda (&optional five)
                  (format "1\n2\n3\n4\n%s6\n7\n8\n9\n" (or five "5\n"))))
         (five (funcall block "five\n"))
         (before (concat (funcall block) (funcall block) (funcall block) (funcall block)))
         (after (concat (funcall block "5\n5 and a\n5 and b\n") five (funcall block) five)))
    (duet-diff-test-with-files `(("f.txt" ,before ,after))
      (let ((file (expand-file-name "f.txt")))
        (should (= (length (duet-diff--items)) 3))
        (duet-diff-revert)
        (duet-diff-revert)
        (should (equal (duet-hunk-file-text file)
                       (concat (funcall block) (funcall block) (funcall block) five)))
        (goto-char (point-min))
        (duet-diff-next)
        (duet-diff-undo)
        (duet-diff-next)
        (duet-diff-undo)
        (should (equal (duet-hunk-file-text file) after))))))

(ert-deftest duet-diff-test-asks ()
  "What changes a file on the disk asks before; with a no nothing happens."
  (let ((before (duet-diff-test--lines))
        (after (duet-diff-test--lines '(2 . "two\n") '(20 . "twenty\n"))))
    (duet-diff-test-with-files `(("f.txt" ,before ,after))
      (let ((text (lambda () (duet-hunk-file-text (expand-file-name "f.txt"))))
            (asked '())
            (yes nil))
        (cl-letf (((symbol-function 'y-or-n-p)
                   (lambda (prompt) (push prompt asked) yes)))
          (duet-test-press "k" #'duet-diff-revert)
          (duet-test-press "K" #'duet-diff-revert-file)
          (should (equal (funcall text) after))
          (setq yes t)
          (duet-test-press "k" #'duet-diff-revert)
          (should-not (equal (funcall text) after))
          (setq yes nil)
          (duet-test-press "u" #'duet-diff-undo)
          (should-not (equal (funcall text) after))
          (setq yes t)
          ;; Point has gone on, and back.
          (duet-test-press "u" #'duet-diff-undo)
          (should (equal (funcall text) after))
          (should (= (length asked) 5))
          (should (cl-every (lambda (prompt) (string-match-p "f\\.txt.*\\? \\'" prompt)) asked)))
        ;; r is what it is elsewhere, and changes nothing here.
        (should-not (eq (key-binding "r") #'duet-diff-revert))))))

(ert-deftest duet-diff-test-changed-since ()
  "A file that has changed since is left alone where that is in the way."
  (let ((before (duet-diff-test--lines))
        (after (duet-diff-test--lines '(3 . "three\n") '(20 . "twenty\n"))))
    (duet-diff-test-with-files `(("f.txt" ,before ,after))
      (let ((file (expand-file-name "f.txt"))
            (edit (lambda (text)
                    (write-region text nil "f.txt" nil 'quiet))))
        ;; In the hunk itself.
        (funcall edit (duet-diff-test--lines '(3 . "THREE\n") '(20 . "twenty\n")))
        (duet-test-go "@@ -1")
        (duet-diff-test-should-refuse "f.txt: it has changed here since" (duet-diff-revert))
        (duet-diff-test-should-refuse "changed here since" (duet-diff-revert-file))
        (should (equal (duet-hunk-file-text file)
                       (duet-diff-test--lines '(3 . "THREE\n") '(20 . "twenty\n"))))
        (should (string-match-p "0 of 2" (duet-diff--header)))
        ;; Elsewhere.
        (funcall edit (concat "new\nnew\n" after))
        (duet-test-go "@@ -17")
        (duet-diff-revert)
        (should (equal (duet-hunk-file-text file)
                       (concat "new\nnew\n" (duet-diff-test--lines '(3 . "three\n")))))
        (delete-file file)
        (duet-test-go "@@ -1")
        (duet-diff-test-should-refuse "gone" (duet-diff-revert))))))

(ert-deftest duet-diff-test-visited ()
  "A buffer that visits the file follows; one with unsaved changes is in the way."
  (duet-diff-test-with-files '(("f.txt" "a\r\nb\r\n" "a\r\nc\r\n"))
    (let* ((file (expand-file-name "f.txt"))
           (visiting (find-file-noselect file)))
      (with-current-buffer visiting (insert "mine"))
      (duet-diff-test-should-refuse "not saved" (duet-diff-revert))
      (with-current-buffer visiting
        (erase-buffer)
        (insert "a\nc\n")
        (set-buffer-modified-p nil))
      (duet-diff-revert)
      (should (equal (duet-hunk-file-text file) "a\r\nb\r\n"))
      (with-current-buffer visiting
        (should (equal (buffer-string) "a\nb\n"))
        (should-not (buffer-modified-p)))
      (duet-diff-undo)
      (with-current-buffer visiting (should (equal (buffer-string) "a\nc\n")))
      ;; RET goes to the line.
      (duet-test-go "+c")
      (save-window-excursion
        (duet-test-press "RET" #'duet-diff-visit)
        (should (eq (current-buffer) visiting))
        (should (looking-at "c$"))))))

;; Where Emacs would ask "really edit the buffer?" it reads standard input here,
;; and fails.
(ert-deftest duet-diff-test-visited-before ()
  "A file that was visited before the turn wrote it is reverted all the same.
Who looks at it stays in place; a buffer with changes is named."
  (duet-diff-test-with-files
      `(("f.txt" ,(duet-diff-test--lines)
         ,(duet-diff-test--lines '(2 . "") '(20 . "twenty\n"))))
    (let* ((file (expand-file-name "f.txt"))
           (after (duet-hunk-file-text file))
           visiting)
      (write-region (duet-diff-test--lines) nil file nil 'quiet)
      (setq visiting (find-file-noselect file))
      (with-current-buffer visiting
        (goto-char (point-min))
        (search-forward "line 12"))
      ;; An agent writes.
      (write-region after nil (concat file "~") nil 'quiet)
      (rename-file (concat file "~") file t)
      (set-file-times file (time-add nil 5))
      (should-not (verify-visited-file-modtime visiting))
      (duet-test-go "@@ -17")
      (duet-diff-revert)
      (should (equal (duet-hunk-file-text file) (duet-diff-test--lines '(2 . ""))))
      (with-current-buffer visiting
        (should (equal (buffer-string) (duet-diff-test--lines '(2 . ""))))
        (should-not (buffer-modified-p))
        (should (verify-visited-file-modtime))
        (should (looking-back "^line 12" (line-beginning-position))))
      ;; Behind the file again, and with changes.
      (with-current-buffer visiting
        (goto-char (point-max))
        (insert "mine\n")
        (rename-buffer "mine"))
      (set-file-times file (time-add nil 10))
      (duet-test-go "@@ -17")
      (duet-test-should-say "in the buffer mine" (duet-diff-undo))
      (with-current-buffer visiting (should (string-suffix-p "mine\n" (buffer-string))))
      (should (equal (duet-hunk-file-text file) (duet-diff-test--lines '(2 . "")))))))

(ert-deftest duet-diff-test-new-deleted-binary ()
  "New, deleted, empty and binary files are told of, and reverted if they can be."
  (duet-diff-test-with-files '(("bin" nil nil t) ("d/new.txt" nil "n\n")
                               ("empty" nil "") ("gone.txt" "g\n" nil))
    (let ((default-directory default-directory)
          (text (duet-diff-test--visible)))
      (should (string-match-p "^● bin  binary: " text))
      (should (string-match-p "^● d/new.txt  new file\n--- /dev/null\n\\+\\+\\+ b/d/new.txt\n@@" text))
      (should (string-match-p "^● empty  new file, empty\n" text))
      (should (string-match-p "^● gone.txt  deleted\n--- a/gone.txt\n\\+\\+\\+ /dev/null\n@@" text))
      (should (string-match-p "0 of 4" (duet-diff--header)))
      (duet-test-go "● bin")
      (duet-diff-test-should-refuse "no copy of a binary" (duet-diff-revert))
      (duet-diff-test-should-refuse "not sent" (duet-diff-ediff))
      (duet-diff-accept)
      ;; A file that the turn has made.
      (should (looking-at "@@"))
      (write-region "mine" nil "d/new.txt" nil 'quiet)
      (duet-diff-test-should-refuse "changed since" (duet-diff-revert))
      (write-region "n\n" nil "d/new.txt" nil 'quiet)
      (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
        (duet-diff-revert)
        (should (file-exists-p "d/new.txt")))
      (duet-diff-revert)
      (should-not (file-exists-p "d/new.txt"))
      (duet-test-go "+n")
      (duet-diff-test-should-refuse "no such file" (duet-diff-visit))
      (duet-diff-undo)
      (should (equal (duet-hunk-file-text (expand-file-name "d/new.txt")) "n\n"))
      (duet-test-go "● empty")
      (duet-diff-revert)
      (should-not (file-exists-p "empty"))
      ;; One that it has deleted.
      (write-region "other" nil "gone.txt" nil 'quiet)
      (duet-test-go "-g")
      (duet-diff-test-should-refuse "there again" (duet-diff-revert))
      (delete-file "gone.txt")
      (duet-diff-revert)
      (should (equal (duet-hunk-file-text (expand-file-name "gone.txt")) "g\n")))))

(ert-deftest duet-diff-test-moving ()
  "The keys go from change to change and from file to file, and fold."
  (duet-diff-test-with-files `(("a" "1\n" "2\n") ("bin" nil nil t)
                               ("c" ,(duet-diff-test--lines)
                                ,(duet-diff-test--lines '(3 . "") '(20 . ""))))
    (let ((at (lambda () (list (duet-diff--name (get-text-property (point) 'duet-diff-file))
                               (char-after)))))
      (should (equal (funcall at) '("a" ?@)))
      (duet-test-press "n" #'duet-diff-next)
      (should (equal (funcall at) '("bin" ?●)))
      (duet-test-press "n" #'duet-diff-next 2)
      (should (equal (funcall at) '("c" ?@)))
      (should (looking-at "@@ -17"))
      (duet-test-press "n" #'duet-diff-next)
      (should (looking-at "@@ -17"))
      (duet-test-press "p" #'duet-diff-previous)
      (should (looking-at "@@ -1,"))
      (duet-test-press "M-p" #'duet-diff-previous-file)
      (should (equal (funcall at) '("bin" ?●)))
      (duet-test-press "M-p" #'duet-diff-previous-file)
      (should (equal (funcall at) '("a" ?@)))
      (duet-test-press "M-n" #'duet-diff-next-file 2)
      (should (looking-at "@@ -1,"))
      (forward-line 2)
      (duet-test-press "TAB" #'duet-diff-toggle)
      (should (looking-at "@@ -1,"))
      (should-not (string-match-p "-line 3" (duet-diff-test--visible)))
      (duet-test-press "TAB" #'duet-diff-toggle)
      (should (string-match-p "-line 3" (duet-diff-test--visible)))
      (duet-test-press "A" #'duet-diff-accept-file)
      (should (string-match-p "2 of 4" (duet-diff--header)))
      ;; Ends are said, and nothing moves.
      (duet-test-listening
        (pcase-dolist (`(,key ,command ,words)
                       '(("n" duet-diff-next "last change") ("p" duet-diff-previous "first change")
                         ("M-n" duet-diff-next-file "last file")
                         ("M-p" duet-diff-previous-file "first file")))
          (let ((here (point)))
            (duet-test-press key command 9)
            (should (duet-test-heard words))
            (should (= (point) here)))))
      (goto-char (point-max))
      (dolist (key '("a" "A" "k" "K" "u" "E" "RET" "TAB"))
        (duet-test-should-say "No change here" (call-interactively (key-binding (kbd key)))))
      (pcase-dolist (`(,key . ,command) '(("a" . duet-diff-accept) ("n" . duet-diff-next)
                                          ("k" . duet-diff-revert)))
        (should (eq (key-binding (kbd key)) command))))))

(ert-deftest duet-diff-test-next-error ()
  "From anywhere `next-error' goes to the next change, in its file."
  (duet-diff-test-with-files `(("a.txt" "a\nb\n" "a\nc\n")
                               ("f.txt" ,(duet-diff-test--lines)
                                ,(duet-diff-test--lines '(2 . "two\n") '(20 . "twenty\n"))))
    (let ((next-error-last-buffer (current-buffer))
          (visited '()))
      (goto-char (point-min))
      (dolist (count '(1 1 1 -1))
        (save-window-excursion
          (next-error count)
          (set-buffer (window-buffer))
          (push (list (file-name-nondirectory buffer-file-name) (line-number-at-pos)) visited)))
      (should (equal (nreverse visited)
                     '(("a.txt" 1) ("f.txt" 1) ("f.txt" 17) ("f.txt" 1))))
      (duet-test-should-say "first change" (previous-error 5)))))

(ert-deftest duet-diff-test-ediff ()
  "Ediff shows the file before and after, and the windows are back when it ends."
  (duet-diff-test-with-files '(("f.txt" "a\nb\n" "a\nc\n"))
    (delete-other-windows)
    (let ((windows (mapcar #'window-buffer (window-list)))
          (diff (current-buffer))
          (buffers (buffer-list)))
      (cl-letf (((symbol-function 'y-or-n-p) (lambda (_) t)))
        (duet-test-press "E" #'duet-diff-ediff)
        (should (equal (sort (mapcar (lambda (window) (buffer-name (window-buffer window)))
                                     (window-list))
                             #'string<)
                       '("*Ediff Control Panel*" "f.txt (after)" "f.txt (before)")))
        (let ((control (cl-find-if (lambda (buffer)
                                     (eq (buffer-local-value 'major-mode buffer) 'ediff-mode))
                                   (buffer-list))))
          (should control)
          (with-current-buffer control
            (should (eq ediff-window-setup-function #'ediff-setup-windows-plain))
            (ediff-really-quit nil))))
      (should (equal (mapcar #'window-buffer (window-list)) windows))
      (should (eq (window-buffer) diff))
      (dolist (buffer (buffer-list))
        (should-not (and (not (memq buffer buffers))
                         (string-match-p "f.txt (" (buffer-name buffer))))))))

(provide 'duet-diff-test)
;;; duet-diff-test.el ends here
