;;; duet-diff-test.el --- Tests of diffs and decisions on hunks  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'duet-test-lib)
(require 'duet-diff)
(require 'ediff)

(defun duet-diff-test--lines (&rest changes)
  "Return a text of 30 lines with CHANGES, which are conses (NUMBER . TEXT)."
  (mapconcat (lambda (number)
               (let ((change (assq number changes)))
                 (if change (cdr change) (format "line %d\n" number))))
             (number-sequence 1 30) ""))

(ert-deftest duet-diff-test-renamed ()
  "A heading names the original of a renamed file."
  (with-temp-buffer
    (pcase-dolist (`(,old ,words) '((nil "new file, empty") ("/p/a/old" "renamed from old")
                                    ("/p/b/old\u202e" "renamed from ../b/old⟨U+202E⟩")))
      (should (equal (duet-diff--words
                      (duet-diff--file (list :path "/p/a/new" :after "x\n" :before :null
                                             :diff "" :renamed_from old)))
                     words)))))

(defconst duet-diff-test-agent
  "#!/bin/sh
turn=${0%/*}/turn
say() { printf '{\"jsonrpc\":\"2.0\",%s}\\n' \"$1\"; }
while read -r line; do
	id=${line#*'\"id\":'} id=${id%%,*}
	case $line in
	*'\"initialize\"'*) say '\"id\":'$id',\"result\":{\"protocolVersion\":1}' ;;
	*'\"session/new\"'*) say '\"id\":'$id',\"result\":{\"sessionId\":\"s1\"}' ;;
	*'\"session/prompt\"'*)
		prompt=$id
		say \"$(cat \"$turn/call\")\"
		say '\"id\":\"known\",\"method\":\"duet/none\"' ;;
	*'\"known\"'*)
		sh -e \"$turn/work\"
		say '\"id\":'$prompt',\"result\":{\"stopReason\":\"end_turn\"}' ;;
	*'\"method\"'*'\"id\"'* | *'\"id\"'*'\"method\"'*) say '\"id\":'$id',\"error\":{\"code\":-32601,\"message\":\"no such method\"}' ;;
	esac
done
"
  "An agent that names files, and changes them after the server has read them.")

(defmacro duet-diff-test-with-files (files &rest body)
  "Run BODY in the diff of FILES, which an agent has changed.
FILES is a list of (NAME BEFORE AFTER BINARY), see `duet-diff-test-turn'.
`default-directory' has the files as they are after the change."
  (declare (indent 1) (debug (form body)))
  `(duet-diff-test--call ,files (lambda () ,@body)))

(defun duet-diff-test--call (files function)
  "Call FUNCTION in the diff of FILES."
  (duet-test-with-agent duet-diff-test-agent "theirs" folder
    (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
    (pcase-dolist (`(,name ,before) files)
      (when before (duet-diff-test-write name before)))
    (save-window-excursion
      (duet-diff (duet-diff-test-turn connection nil files))
      (duet-test-wait-for (not duet-diff--loading))
      (cl-letf (((symbol-function 'y-or-n-p) #'always))
        (duet-test-listening (funcall function))))))

(defun duet-diff-test-turn (connection session files)
  "Let an agent change FILES in a turn of SESSION or a new one; return the session.
FILES is a list of (NAME BEFORE AFTER BINARY) in the project of CONNECTION.
The agent deletes a file with AFTER nil, and rewrites one with BINARY non-nil.
If BINARY is `executable', a command of the agent makes the file executable,
once the repository of the project has a checkpoint: what a command changes
before that is part of it."
  (let* ((root (duet-connection-root connection))
         (turn (expand-file-name "../config/duet/turn/" root)))
    (duet-diff-test-write
     (expand-file-name "call" turn)
     (concat "\"method\":\"session/update\",\"params\":"
             (json-encode
              `((sessionId . "s1")
                (update (sessionUpdate . "tool_call") (toolCallId . "c1") (title . "Work")
                        (kind . ,(if (cl-find 'executable files :key #'cadddr) "execute" "edit"))
                        (status . "in_progress")
                        (locations . ,(vconcat (mapcar (lambda (file)
                                                         `((path . ,(expand-file-name (car file) root))))
                                                       files))))))))
    (duet-diff-test-write
     (expand-file-name "work" turn)
     (mapconcat (pcase-lambda (`(,name ,_ ,after ,binary))
                  (let ((name (expand-file-name name root))
                        (copy (make-temp-name (expand-file-name "after" turn))))
                    (cond
                     ((eq binary 'executable)
                      (format "until git -C '%s' for-each-ref refs/duet | grep -q .; do sleep 0.05; done\nchmod 755 '%s'\n"
                              (directory-file-name root) name))
                     ((not (or after binary)) (format "rm '%s'\n" name))
                     (t
                      (duet-diff-test-write copy (or after "\0"))
                      (format "mkdir -p '%s'\ncp '%s' '%s'\n"
                              (file-name-directory name) copy name)))))
                files ""))
    (if session
        (duet-test-request connection 'session.prompt
                           (list :session (duet-session-leaf-id session) :prompt "more"))
      (setq session (duet-test-launch connection "work")))
    (duet-test-wait-for (and (equal (duet-get-string
                                     (duet-test-request connection 'turn.get
                                                        (list :turn (duet-session-leaf-id session)))
                                     :turn :state)
                                    "completed")
                             (eq (duet-session-state session) 'completed)))
    session))

(defun duet-diff-test-write (name text)
  "Make TEXT the content of the file NAME."
  (make-directory (file-name-directory (expand-file-name name)) t)
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region text nil name nil 'quiet)))

(defun duet-diff-test-read (name)
  "Return the content of the file NAME, byte for byte; nil if there is none."
  (and (file-exists-p name)
       (with-temp-buffer
         (let ((coding-system-for-read 'utf-8-unix))
           (insert-file-contents name))
         (buffer-string))))

(defun duet-diff-test-press (key command)
  "Press KEY, which calls COMMAND, and wait until its decision is stored."
  (duet-test-press key command)
  (duet-test-wait-for (not duet-diff--deciding)))

(defun duet-diff-test-should-fail (regexp key command)
  "Check that the server refuses the decision of KEY, which calls COMMAND.
REGEXP matches the message."
  (let ((before (duet-diff-test--visible)))
    (setq duet-test-said nil)
    (duet-diff-test-press key command)
    (should (duet-test-heard (concat "\\`Duet: .*" regexp)))
    (should (equal (duet-diff-test--visible) before))))

(defun duet-diff-test--visible ()
  "Return the visible text of the buffer, with the marks."
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

(ert-deftest duet-diff-test-hunk-by-hunk ()
  "Each hunk is accepted, reverted in the file, or undone, in any order."
  (let ((before (duet-diff-test--lines))
        (after (duet-diff-test--lines '(2 . "") '(15 . "one\ntwo\nthree\n") '(29 . "end\n"))))
    (duet-diff-test-with-files `(("f.txt" ,before ,after))
      (let ((text (lambda () (duet-diff-test-read "f.txt"))))
        (should (string-match-p "0 of 3 reviewed" (duet-diff--header)))
        (should (looking-at "@@ -1,5"))
        (duet-diff-test-press "a" #'duet-diff-accept)
        ;; Point moves to the next open hunk.
        (should (looking-at "@@ -12,7"))
        (should (equal (funcall text) after))
        (duet-diff-test-press "k" #'duet-diff-revert)
        (should (equal (funcall text) (duet-diff-test--lines '(2 . "") '(29 . "end\n"))))
        (should (looking-at "@@ -2[0-9],"))
        (duet-diff-test-press "k" #'duet-diff-revert)
        (should (equal (funcall text) (duet-diff-test--lines '(2 . ""))))
        (should (string-match-p "all reviewed" (duet-diff--header)))
        (should (duet-test-heard "^All changes are reviewed$"))
        (should (string-match-p
                 "✓ accepted  @@ -1.*\n✗ reverted  @@ -12.*\n✗ reverted  @@ -2"
                 (duet-diff-test--visible)))
        (should-not (string-match-p "three" (duet-diff-test--visible)))
        (duet-test-should-say "reverted" (duet-diff-revert))
        (duet-test-should-say "reverted" (duet-diff-accept))
        ;; A refresh keeps the decisions.
        (duet-test-press "g" #'duet-diff-refresh)
        (duet-test-wait-for (not duet-diff--loading))
        (should (string-match-p "all reviewed" (duet-diff--header)))
        (duet-test-go "@@ -12")
        (duet-diff-test-press "u" #'duet-diff-undo)
        (should (equal (funcall text)
                       (duet-diff-test--lines '(2 . "") '(15 . "one\ntwo\nthree\n"))))
        ;; If the hunk at point has no decision, `u' undoes the last one.
        (duet-diff-test-press "u" #'duet-diff-undo)
        (should (equal (funcall text) after))
        (should (looking-at "@@ -2[0-9],"))
        (duet-diff-test-press "u" #'duet-diff-undo)
        (should (looking-at "@@ -1,"))
        (duet-test-should-say "is not decided" (duet-diff-undo))
        (should (equal (funcall text) after))
        (should (string-match-p "0 of 3 reviewed" (duet-diff--header)))
        (duet-diff-test-press "K" #'duet-diff-revert-file)
        (should (equal (funcall text) before))
        (duet-test-should-say "reverted" (duet-diff-revert-file))
        (duet-test-should-say "reverted" (duet-diff-accept-file))
        (dolist (hunk '("@@ -1," "@@ -12" "@@ -26"))
          (duet-test-go hunk)
          (duet-diff-test-press "u" #'duet-diff-undo))
        (should (equal (funcall text) after))
        ;; Accepting a file skips reverted hunks, and becomes the last decision.
        (duet-test-go "@@ -26")
        (duet-diff-test-press "k" #'duet-diff-revert)
        (duet-diff-test-press "A" #'duet-diff-accept-file)
        (should (string-match-p "✓ accepted  @@ -1.*\n✓ accepted  @@ -12.*\n✗ reverted  @@ -2"
                                (duet-diff-test--visible)))
        (duet-test-go "@@ -1,")
        (duet-diff-test-press "u" #'duet-diff-undo)
        (duet-diff-test-press "u" #'duet-diff-undo)
        (should (string-match-p "^@@ -1.*\n\\(.*\n\\)*@@ -12.*\n\\(.*\n\\)*✗ reverted  @@ -2"
                                (duet-diff-test--visible)))))))

(ert-deftest duet-diff-test-mode ()
  "A change of the executable bit can be accepted and reverted."
  (duet-test-need "git")
  (duet-test-with-agent duet-diff-test-agent "theirs" folder
    (write-region "\n[checkpoints]\nenabled = true\n" nil
                  (expand-file-name "config.toml" folder) t 'quiet)
    (duet-test-wait-for (eq (duet-connection-state connection) 'ready))
    (let ((script (expand-file-name "script" (duet-connection-root connection))))
      (duet-diff-test-write script "run\n")
      (set-file-modes script #o644)
      (should (zerop (call-process "git" nil nil nil "-C" (duet-connection-root connection) "init" "-q")))
      (save-window-excursion
        (duet-diff (duet-diff-test-turn connection nil '(("script" nil nil executable))))
        (duet-test-wait-for (not duet-diff--loading))
        (should (string-match-p "^● script  modified\n--- a/script\n\\+\\+\\+ b/script\nmode 100644 → 100755\n"
                                (duet-diff-test--visible)))
        (cl-letf (((symbol-function 'y-or-n-p) #'always))
          (duet-diff-test-press "k" #'duet-diff-revert))
        (should (equal (file-modes script) #o644))
        (should (string-match-p "✗ reverted  mode 100644" (duet-diff-test--visible)))
        (cl-letf (((symbol-function 'y-or-n-p) #'always))
          (duet-diff-test-press "u" #'duet-diff-undo))
        (should (equal (file-modes script) #o755))))))

(ert-deftest duet-diff-test-twice ()
  "A repeated key before the server's reply decides nothing more."
  (duet-diff-test-with-files `(("f.txt" ,(duet-diff-test--lines)
                                ,(duet-diff-test--lines '(3 . "") '(20 . ""))))
    (duet-test-press "a" #'duet-diff-accept)
    (dolist (key '("a" "A" "k" "K"))
      (duet-test-should-say "not stored yet" (call-interactively (key-binding key))))
    ;; If the user moves point meanwhile, it stays there.
    (goto-char (point-max))
    (duet-test-wait-for (not duet-diff--deciding))
    (should (eobp))
    (should (string-match-p "1 of 2 reviewed" (duet-diff--header)))))

(ert-deftest duet-diff-test-other-client ()
  "A decision of another client is shown at once, also after a lost connection."
  (duet-diff-test-with-files `(("f.txt" ,(duet-diff-test--lines)
                                ,(duet-diff-test--lines '(3 . "") '(20 . ""))))
    (let* ((connection duet-connection)
           (session duet-session)
           (visiting (find-file-noselect "f.txt"))
           (turn duet-diff--turn)
           (file (expand-file-name "f.txt"))
           (shown (lambda () (duet-diff-test--visible)))
           (decide (lambda (server decision &rest hunk)
                     (duet-test-request
                      server (intern (concat "change." decision))
                      `(:turn ,turn :path ,file ,@hunk))))
           ;; A second Emacs has its own connections.
           (duet-connections (make-hash-table :test #'equal))
           (other (duet-connection-ensure default-directory)))
      (unwind-protect
          (let ((id (duet-hunk-id (cadr (duet-diff-file-hunks (car duet-diff--files))))))
            (duet-model-add-observer #'duet-revert--observe)
            (duet-test-wait-for (eq (duet-connection-state other) 'ready))
            (funcall decide other "revert" :hunk id)
            (duet-test-wait-for (string-match-p "^✗ reverted  @@ -17" (funcall shown)))
            (should-not (string-match-p "^✗ reverted  @@ -1," (funcall shown)))
            (duet-test-wait-for-text visiting "^line 20$")
            (funcall decide other "accept")
            (duet-test-wait-for (string-match-p "^✓ accepted  @@ -1,.*\n✗ reverted  @@ -17"
                                                (funcall shown)))
            (funcall decide other "reopen")
            (duet-test-wait-for (string-match-p "0 of 2" (duet-diff--header)))
            ;; Other clients get this decision from the server.
            (duet-diff-test-press "a" #'duet-diff-accept)
            (should (equal (mapcar (lambda (hunk) (duet-get-string hunk :state))
                                   (duet-get-objects
                                    (car (duet-get-objects
                                          (duet-test-request other 'change.list (list :turn turn))
                                          :changes))
                                    :hunks))
                           '("accepted" "open")))
            (should (equal (duet-test-log) ""))
            ;; Here no event arrives.
            (let ((duet-restart-delays '(60)))
              (duet-test-kill-server connection)
              (duet-test-wait-for (eq (duet-connection-state connection) 'lost)))
            ;; As if no event had arrived before either: then the server replays none.
            (setf (duet-model-seq (duet-connection-model connection)) nil)
            (funcall decide other "revert" :hunk id)
            (should-not (string-match-p "reverted" (funcall shown)))
            (duet-connection-restart connection)
            (duet-test-wait-for (string-match-p "^✓ accepted  @@ -1,.*\n✗ reverted  @@ -17"
                                                (funcall shown)))
            ;; An Emacs without events gets the same from the server.
            (with-temp-buffer
              (setq duet-connection other)
              (duet-diff (duet-test-wait-for
                          (duet-connection-session other (duet-session-id session)))))
            (duet-test-look)
            (should (eq duet-connection other))
            (duet-test-wait-for-text (current-buffer) "^@@ -17")
            (should (string-match-p "all reviewed" (duet-diff--header))))
        (duet-test-end other)))))

(ert-deftest duet-diff-test-twins ()
  "Equal hunks are distinguished, whichever is reverted first."
  (let* ((block (lambda (&optional five)
                  (format "1\n2\n3\n4\n%s6\n7\n8\n9\n" (or five "5\n"))))
         (five (funcall block "five\n"))
         (before (concat (funcall block) (funcall block) (funcall block) (funcall block)))
         (after (concat (funcall block "5\n5 and a\n5 and b\n") five (funcall block) five)))
    (duet-diff-test-with-files `(("f.txt" ,before ,after))
      (should (= (length (duet-diff--items)) 3))
      (duet-diff-test-press "k" #'duet-diff-revert)
      (duet-diff-test-press "k" #'duet-diff-revert)
      (should (equal (duet-diff-test-read "f.txt")
                     (concat (funcall block) (funcall block) (funcall block) five)))
      (goto-char (point-min))
      (duet-diff-next)
      (duet-diff-test-press "u" #'duet-diff-undo)
      (duet-diff-next)
      (duet-diff-test-press "u" #'duet-diff-undo)
      (should (equal (duet-diff-test-read "f.txt") after)))))

(ert-deftest duet-diff-test-asks ()
  "A file is reverted after a confirmation, and one change at once; a key undoes both."
  (let ((before (duet-diff-test--lines))
        (after (duet-diff-test--lines '(2 . "two\n") '(20 . "twenty\n"))))
    (duet-diff-test-with-files `(("f.txt" ,before ,after))
      (let ((text (lambda () (duet-diff-test-read "f.txt")))
            (asked '())
            (yes nil))
        (cl-letf (((symbol-function 'y-or-n-p)
                   (lambda (prompt) (push prompt asked) yes)))
          (duet-diff-test-press "K" #'duet-diff-revert-file)
          (should (equal (funcall text) after))
          (should (= (length asked) 1))
          (should (string-match-p "f\\.txt\\? \\'" (car asked)))
          (duet-diff-test-press "k" #'duet-diff-revert)
          (should-not (equal (funcall text) after))
          (should (duet-test-heard "^Reverted in f\\.txt; u puts it back$"))
          ;; Point has moved to the next hunk and back.
          (duet-diff-test-press "u" #'duet-diff-undo)
          (should (equal (funcall text) after))
          (should (duet-test-heard "^Put back into f\\.txt$"))
          (should (= (length asked) 1)))
        ;; The key r has its usual meaning, and changes nothing here.
        (should-not (eq (key-binding "r") #'duet-diff-revert))))))

(ert-deftest duet-diff-test-changed-since ()
  "A revert that conflicts with a later change leaves the file alone."
  (let ((before (duet-diff-test--lines))
        (after (duet-diff-test--lines '(3 . "three\n") '(20 . "twenty\n"))))
    (duet-diff-test-with-files `(("f.txt" ,before ,after))
      ;; The later change is in the hunk.
      (duet-diff-test-write "f.txt" (duet-diff-test--lines '(3 . "THREE\n") '(20 . "twenty\n")))
      (duet-test-go "@@ -1")
      (duet-diff-test-should-fail "f.txt was changed here since" "k" #'duet-diff-revert)
      (should (looking-at "@@ -1"))
      (duet-diff-test-should-fail "changed here since" "K" #'duet-diff-revert-file)
      (should (equal (duet-diff-test-read "f.txt")
                     (duet-diff-test--lines '(3 . "THREE\n") '(20 . "twenty\n"))))
      (should (string-match-p "0 of 2" (duet-diff--header)))
      ;; The later change is elsewhere.
      (duet-diff-test-write "f.txt" (concat "new\nnew\n" after))
      (duet-test-go "@@ -17")
      (duet-diff-test-press "k" #'duet-diff-revert)
      (should (equal (duet-diff-test-read "f.txt")
                     (concat "new\nnew\n" (duet-diff-test--lines '(3 . "three\n")))))
      (delete-file "f.txt")
      (duet-test-go "@@ -1")
      (duet-diff-test-should-fail "no longer exists" "k" #'duet-diff-revert))))

(ert-deftest duet-diff-test-visited ()
  "A buffer that visits the file is updated; unsaved changes prevent a revert."
  (duet-diff-test-with-files '(("f.txt" "a\r\nb\r\n" "a\r\nc\r\n"))
    (let ((visiting (find-file-noselect "f.txt"))
          (duet-revert-buffers nil))
      (with-current-buffer visiting (insert "mine"))
      (duet-test-should-say "not saved" (duet-diff-revert))
      (duet-test-should-say "not saved" (duet-diff-revert-file))
      (with-current-buffer visiting
        (erase-buffer)
        (insert "a\nc\n")
        (set-buffer-modified-p nil))
      (duet-diff-test-press "k" #'duet-diff-revert)
      (should (equal (duet-diff-test-read "f.txt") "a\r\nb\r\n"))
      (duet-test-wait-for-text visiting "\\`a\nb\n\\'")
      (should-not (buffer-modified-p visiting))
      (duet-diff-test-press "u" #'duet-diff-undo)
      (duet-test-wait-for-text visiting "\\`a\nc\n\\'")
      ;; RET visits the line.
      (duet-test-go "+c")
      (save-window-excursion
        (duet-test-press "RET" #'duet-diff-visit)
        (should (eq (current-buffer) visiting))
        (should (looking-at "c$"))))))

;; Where Emacs would ask "really edit the buffer?" it reads standard input here,
;; and fails.
(ert-deftest duet-diff-test-visited-before ()
  "A file that was visited before the turn wrote it is reverted all the same.
Its buffer keeps point; an error names a buffer with unsaved changes."
  (duet-diff-test-with-files
      `(("f.txt" ,(duet-diff-test--lines)
         ,(duet-diff-test--lines '(2 . "") '(20 . "twenty\n"))))
    (let ((after (duet-diff-test-read "f.txt"))
          visiting)
      (duet-diff-test-write "f.txt" (duet-diff-test--lines))
      (setq visiting (find-file-noselect "f.txt"))
      (with-current-buffer visiting
        (goto-char (point-min))
        (search-forward "line 12"))
      ;; An agent writes the file.
      (duet-diff-test-write "f.txt~" after)
      (rename-file "f.txt~" "f.txt" t)
      (set-file-times "f.txt" (time-add nil 5))
      (should-not (verify-visited-file-modtime visiting))
      (duet-test-go "@@ -17")
      (duet-diff-test-press "k" #'duet-diff-revert)
      (should (equal (duet-diff-test-read "f.txt") (duet-diff-test--lines '(2 . ""))))
      (duet-test-wait-for (verify-visited-file-modtime visiting))
      (with-current-buffer visiting
        (should (equal (buffer-string) (duet-diff-test--lines '(2 . ""))))
        (should-not (buffer-modified-p))
        (should (looking-back "^line 12" (line-beginning-position))))
      ;; The buffer is outdated again, and has unsaved changes.
      (with-current-buffer visiting
        (goto-char (point-max))
        (insert "mine\n")
        (rename-buffer "mine"))
      (set-file-times "f.txt" (time-add nil 10))
      (duet-test-go "@@ -17")
      (duet-test-should-say "in the buffer mine" (duet-diff-undo))
      (with-current-buffer visiting (should (string-suffix-p "mine\n" (buffer-string))))
      (should (equal (duet-diff-test-read "f.txt") (duet-diff-test--lines '(2 . "")))))))

(ert-deftest duet-diff-test-new-deleted-binary ()
  "New, deleted, empty and binary files are shown, and reverted if possible."
  (duet-diff-test-with-files '(("bin" "\0\0" nil t) ("d/new.txt" nil "n\n")
                               ("empty" nil "") ("gone.txt" "g\n" nil))
    (let ((text (duet-diff-test--visible)))
      (should (string-match-p "^● bin  binary: " text))
      (should (string-match-p "^● d/new.txt  new file\n--- /dev/null\n\\+\\+\\+ b/d/new.txt\n@@" text))
      (should (string-match-p "^● empty  new file, empty\n" text))
      (should (string-match-p "^● gone.txt  deleted\n--- a/gone.txt\n\\+\\+\\+ /dev/null\n@@" text))
      (should (string-match-p "0 of 4" (duet-diff--header)))
      (duet-test-go "● bin")
      (duet-diff-test-should-fail "is not kept" "k" #'duet-diff-revert)
      (duet-test-should-say "not sent" (duet-diff-ediff))
      (duet-diff-test-press "a" #'duet-diff-accept)
      ;; This is a file that the turn has created.
      (should (looking-at "@@"))
      (duet-diff-test-write "d/new.txt" "mine")
      (duet-diff-test-should-fail "not as the session has left it" "k" #'duet-diff-revert)
      (duet-diff-test-write "d/new.txt" "n\n")
      (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
        (duet-diff-revert)
        (should (file-exists-p "d/new.txt")))
      (let ((visiting (find-file-noselect "d/new.txt")))
        (duet-diff-test-press "k" #'duet-diff-revert)
        (should-not (file-exists-p "d/new.txt"))
        (should (buffer-live-p visiting)))
      (duet-test-go "+n")
      (duet-test-should-say "no such file" (duet-diff-visit))
      (duet-diff-test-press "u" #'duet-diff-undo)
      (should (equal (duet-diff-test-read "d/new.txt") "n\n"))
      (duet-test-go "● empty")
      (duet-diff-test-press "k" #'duet-diff-revert)
      (should-not (file-exists-p "empty"))
      ;; This is a file that the turn has deleted.
      (duet-diff-test-write "gone.txt" "other")
      (duet-test-go "-g")
      (duet-diff-test-should-fail "not as the session has left it" "k" #'duet-diff-revert)
      (delete-file "gone.txt")
      (duet-diff-test-press "k" #'duet-diff-revert)
      (should (equal (duet-diff-test-read "gone.txt") "g\n")))))

(ert-deftest duet-diff-test-moving ()
  "Keys move between hunks and between files, and fold."
  (duet-diff-test-with-files `(("a" "1\n" "2\n") ("bin" "\0\0" nil t)
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
      (duet-diff-test-press "A" #'duet-diff-accept-file)
      (should (string-match-p "2 of 4" (duet-diff--header)))
      ;; At the ends a message is shown, and point stays.
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
  "`next-error' visits the next hunk in its file, from any buffer."
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
  "Ediff shows the file before and after, and restores the windows at its end."
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
