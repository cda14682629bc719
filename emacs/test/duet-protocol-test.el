;;; duet-protocol-test.el --- Tests of duet-protocol  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Code:

(require 'cl-lib)
(require 'ert)
(require 'duet-protocol)

(defun duet-protocol-test--names (regexp)
  "Return what group 1 of REGEXP matches in the package's files."
  (let (names)
    (dolist (file (directory-files (file-name-directory (locate-library "duet-protocol"))
                                   t "\\`duet.*\\.el\\'"))
      (unless (string-suffix-p "duet-protocol.el" file)
        (with-temp-buffer
          (insert-file-contents file)
          (while (re-search-forward regexp nil t)
            (cl-pushnew (match-string 1) names :test #'equal)))))
    names))

(ert-deftest duet-protocol-test-methods-and-kinds-exist ()
  "The package names only methods and kinds of events that the server has."
  (let ((methods (mapcar #'symbol-name duet-protocol-methods))
        (called (duet-protocol-test--names "[ \n(]'\\([a-z]+\\.[a-zA-Z]+\\)\\_>"))
        (told (duet-protocol-test--names
               (concat "\"\\(" (regexp-opt (delete-dups
                                         (mapcar (lambda (kind) (car (split-string kind "\\.")))
                                                 duet-protocol-kinds)))
                       "\\.[a-z]+\\)\""))))
    (should (member "session.start" called))
    (should (member "turn.state" told))
    (should-not (cl-set-difference (cl-remove "editor.open" called :test #'equal) ; Emacs serves it
                                      methods :test #'equal))
    (should-not (cl-set-difference told (append duet-protocol-kinds methods) :test #'equal))))

(provide 'duet-protocol-test)
;;; duet-protocol-test.el ends here
