;;; duet-latest.el --- Of several answers the one that was asked for last  -*- lexical-binding: t; -*-

;; Copyright (c) 2026 The Duet authors
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A view that asks again before it was answered gets two answers, and the older
;; one may come last.  It tells how things were before, so it is left out.

;;; Code:

(require 'cl-lib)

(defvar-local duet-latest--asked 0
  "How many answers the buffer has asked for.")

(defvar-local duet-latest--answered 0
  "Which of them was the last that the buffer has taken.")

(defun duet-latest (function)
  "Return a function that takes the answer to what the buffer asks for now.
It calls FUNCTION with its arguments, in the current buffer, while that
lives, unless the answer to what was asked for later came before."
  (let ((buffer (current-buffer))
        (number (cl-incf duet-latest--asked)))
    (lambda (&rest arguments)
      (when (and (buffer-live-p buffer)
                 (> number (buffer-local-value 'duet-latest--answered buffer)))
        (with-current-buffer buffer
          (setq duet-latest--answered number)
          (apply function arguments))))))

(provide 'duet-latest)
;;; duet-latest.el ends here
