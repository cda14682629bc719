"""A user at a desktop: Emacs in a window under Xvfb, pressed keys, and pictures of the window."""

import json
import os
import re
import select
import shutil
import subprocess

from terminal import DEADLINE, Failure, Missing, wait_for

# The text of the window, so that a step can wait for a pattern as in a terminal.
LISP = r"""
(require 'server)
(setq server-socket-dir "SOCKETS" inhibit-startup-screen t
      frame-title-format "Duet" ring-bell-function #'ignore
      use-dialog-box nil)
(menu-bar-mode -1) (tool-bar-mode -1) (scroll-bar-mode -1) (blink-cursor-mode -1)
(when (stringp 'THEME) (load-theme (intern 'THEME) t))
(defun window-text ()
  (redisplay t)
  (mapconcat
   (lambda (window)
     (with-selected-window window
       (concat (and header-line-format (concat (format-mode-line header-line-format) "\n"))
               (let ((place (window-start)) (end (window-end nil t)) text)
                 (while (< place end)
                   (let ((next (min end (next-single-char-property-change place 'invisible))))
                     (unless (invisible-p place)
                       (push (buffer-substring-no-properties place next) text))
                     (setq place next)))
                 (apply #'concat (nreverse text)))
               "\n" (format-mode-line mode-line-format) "\n")))
   (append (window-list nil 'no (frame-first-window))
           (list (minibuffer-window)))
   ""))
(defun window-press (keys)
  (setq unread-command-events (append unread-command-events (listify-key-sequence keys)))
  nil)
(defun window-picture (file)
  (redisplay t)
  (let ((coding-system-for-write 'binary) (picture (x-export-frames nil 'png)))
    (with-temp-file file (set-buffer-multibyte nil) (insert picture)))
  nil)
(server-start)
"""

NAMES = {"Enter": "RET", "Tab": "TAB", "Escape": "ESC"}


def end(process, what):
    """Kills a process, and waits for its end."""
    process.kill()
    try:
        process.wait(DEADLINE)
    except subprocess.TimeoutExpired:
        raise Failure(f"waited {DEADLINE} s for {what} to end, which was killed") from None


class Desktop:
    """An X server without a screen, for this program alone."""

    def __init__(self):
        if shutil.which("Xvfb") is None:
            raise Missing("Xvfb (apt-get install xvfb)")
        read, write = os.pipe()
        # Without -noreset the server restarts after its last client has gone, and drops a client
        # that connects meanwhile.
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", "2400x2400x24", "-nolisten", "tcp", "-noreset"],
            pass_fds=[write], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as told:
            ready, _, _ = select.select([told], [], [], DEADLINE)
            number = told.readline().strip() if ready else ""
        if not number:
            self.close()
            raise Failure("Xvfb does not start" if ready else f"waited {DEADLINE} s for Xvfb to start")
        self.display = f":{number}"

    def close(self):
        end(self.server, "Xvfb")


class Window:
    """Emacs in a window, with the methods of a terminal."""

    def __init__(self, home, emacs, desktop, columns=80, lines=50, theme=None, extra=""):
        self.home = home
        sockets = os.path.join(home.path, "run", "emacs")
        os.mkdir(sockets, 0o700)
        self.socket = os.path.join(sockets, "server")
        lisp = LISP.replace("SOCKETS", sockets).replace("'THEME", json.dumps(theme) if theme else "nil")
        home.init(lisp + extra)
        # The home closes the window, like a terminal.
        home.terminals.append(self)
        self.said = os.path.join(home.path, "run", "said")
        with open(self.said, "wb") as said:
            self.emacs = subprocess.Popen(
                [emacs, "--geometry", f"{columns}x{lines}"], cwd=home.project,
                # GTK finds no desktop services behind this display.
                env={**home.environment(), "DISPLAY": desktop.display, "LANG": "C.UTF-8", "NO_AT_BRIDGE": "1",
                     "GSETTINGS_BACKEND": "memory", "DBUS_SESSION_BUS_ADDRESS": "disabled:"},
                stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        wait_for(lambda: os.path.exists(self.socket) or self.ended(), "Emacs to start", screen=self.told)
        if self.ended():
            raise Failure(f"Emacs has ended by itself, with {self.emacs.returncode}:\n{self.told()}")

    def ended(self):
        """Reports whether Emacs has ended."""
        return self.emacs.poll() is not None

    def told(self):
        """Returns the output of Emacs."""
        with open(self.said, encoding="utf-8", errors="replace") as text:
            return text.read()

    def evaluate(self, form):
        """Evaluates a form in Emacs, and returns its value in printed form."""
        try:
            done = subprocess.run(["emacsclient", "--socket-name", self.socket, "--eval", form], capture_output=True,
                                  text=True, timeout=DEADLINE, env={**os.environ, "LC_ALL": "C.UTF-8"})
        except subprocess.TimeoutExpired:
            raise Failure(f"waited {DEADLINE} s for Emacs to evaluate {form}\n{self.told()}") from None
        if done.returncode:
            raise Failure(f"{form}: {done.stdout}{done.stderr}")
        return done.stdout.rstrip("\n")

    def screen(self):
        file = os.path.join(self.home.path, "run", "screen")
        self.evaluate(f'(let ((text (window-text)) (coding-system-for-write (quote utf-8-unix)))'
                      f' (write-region text nil "{file}" nil (quote quiet)))')
        with open(file, encoding="utf-8", errors="replace") as text:
            return text.read()

    def press(self, *keys):
        for key in keys:
            self.evaluate(f'(window-press (kbd {json.dumps(NAMES.get(key, key))}))')

    def type(self, text):
        self.evaluate(f"(window-press {json.dumps(text, ensure_ascii=False)})")

    def command(self, name, prefix=()):
        """Calls a command as a key would."""
        self.evaluate(f"(progn (define-key global-map (kbd \"<f9>\") (quote {name})) (window-press (kbd \"<f9>\")))")

    def see(self, pattern, deadline=DEADLINE):
        regexp = re.compile(pattern, re.MULTILINE)
        return wait_for(lambda: regexp.search(self.screen()), f"{pattern!r} in the window", deadline, self.screen)

    def see_no(self, pattern, deadline=DEADLINE):
        regexp = re.compile(pattern, re.MULTILINE)
        wait_for(lambda: not regexp.search(self.screen()), f"the window to be without {pattern!r}", deadline,
                 self.screen)

    def shows(self, pattern):
        return re.search(pattern, self.screen(), re.MULTILINE) is not None

    def picture(self, file):
        """Writes a picture of the window into a PNG file."""
        self.evaluate(f'(window-picture "{file}")')

    def close(self):
        end(self.emacs, "Emacs")
        return []
