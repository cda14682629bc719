"""A user at a terminal: Emacs in tmux, keys that are pressed, a screen that is read.

Nothing here sleeps for a guessed time. Each step waits for its condition until a
deadline, and the error shows the screen.
"""

import glob
import os
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

DEADLINE = 180
POLL = 0.03
MINIBUFFER = r"^File .* Minibuf"  # the menu bar, while the minibuffer is active


class Failure(Exception):
    """A step did not have the expected effect."""


class Missing(Exception):
    """This machine lacks a requirement of a scenario."""


def wait_for(condition, what, deadline=DEADLINE, screen=None):
    """Returns the value of condition when it is true; fails at the deadline."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            shown = "" if screen is None else "\n" + screen()
            raise Failure(f"waited {deadline} s for {what}{shown}")
        time.sleep(POLL)


def settled(screen):
    """Returns the value of the function screen when it has been the same for some time."""
    last, since = None, time.monotonic()
    end = since + DEADLINE
    while time.monotonic() < end:
        now = screen()
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > 1:
            return now
        time.sleep(POLL)
    raise Failure(f"the screen does not settle\n{last}")


def children(pid):
    """Returns the running child processes of pid, with their names."""
    found = {}
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat=,comm="], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        child, parent, state, name = line.split(None, 3)
        if int(parent) == pid and not state.startswith("Z"):
            found[int(child)] = os.path.basename(name)
    return found


class Home:
    """A home directory without configuration, with the package installed, and a project."""

    def __init__(self, package, programs):
        self.path = os.path.realpath(tempfile.mkdtemp(prefix="duet-e2e-"))
        self.project = os.path.join(self.path, "project")
        self.programs = programs
        self.terminals = []
        os.mkdir(self.project)
        open(os.path.join(self.project, ".duet.toml"), "x").close()  # otherwise Emacs asks whether it is a project
        os.mkdir(os.path.join(self.path, "run"), 0o700)
        if package:
            shutil.copytree(package, os.path.join(self.path, ".emacs.d", "elpa"))

    def environment(self):
        """Returns the environment of a program that the user starts."""
        return {
            "HOME": self.path,
            "PATH": self.programs + ":/usr/local/bin:/usr/bin:/bin",
            "TERM": "screen-256color",
            "LC_ALL": "C.UTF-8",
            "SHELL": "/bin/sh",
            "XDG_RUNTIME_DIR": os.path.join(self.path, "run"),
            "DUET_DEMO_DELAY": "2ms",
        }

    def init(self, text, name="init.el", add=False):
        """Writes the user's init file, or adds to it."""
        with open(os.path.join(self.path, ".emacs.d", name), "a" if add else "w", encoding="utf-8") as file:
            file.write(text)

    def configure(self, text):
        """Writes the user's configuration of the server."""
        folder = os.path.join(self.path, ".config", "duet")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "config.toml"), "w", encoding="utf-8") as file:
            file.write(text)

    def write(self, name, text):
        """Writes a file of the project."""
        with open(os.path.join(self.project, name), "w", encoding="utf-8") as file:
            file.write(text)

    def read(self, name):
        """Returns the text of a file of the project, or None if there is none."""
        try:
            with open(os.path.join(self.project, name), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def has_manual(self):
        """Reports whether the installation of the package has built the manual."""
        return bool(glob.glob(os.path.join(self.path, ".emacs.d", "elpa", "duet-*", "duet.info")))

    def run(self, *command):
        """Runs a program as the user would in a shell; returns its output."""
        done = subprocess.run(command, cwd=self.project, env=self.environment(), capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def daemon(self, state=None):
        """Returns the process id of the daemon of the project, or of the one with the directory state, or None."""
        states = [state] if state else glob.glob(os.path.join(self.path, ".local/state/duet/projects/project-*"))
        for lock in (os.path.join(state, "lock") for state in states):
            try:
                with open(lock, encoding="utf-8") as file:
                    pid = file.read().strip()
            except FileNotFoundError:
                continue
            # The file outlives the daemon.
            listing = subprocess.run(["ps", "-o", "args=", "-p", pid], capture_output=True, text=True)
            if " daemon start " in listing.stdout and self.path in listing.stdout:
                return int(pid)
        return None

    def end_daemons(self):
        """Ends the daemons of all projects of this home, and waits until they have ended."""
        for state in glob.glob(os.path.join(self.path, ".local/state/duet/projects/*")):
            pid = self.daemon(state)
            if pid:
                os.kill(pid, signal.SIGTERM)
                wait_for(lambda: self.daemon(state) is None, "a daemon to end")

    def close(self):
        """Ends all processes, and removes the directory; returns the last messages of each Emacs that responds."""
        try:
            Terminal.await_end([pid for terminal in self.terminals for pid in terminal.close()])
        finally:
            self.end_daemons()
        try:
            with open(os.path.join(self.path, "said"), encoding="utf-8", errors="replace") as file:
                said = file.read()
        except FileNotFoundError:
            said = ""
        shutil.rmtree(self.path, ignore_errors=True)
        return said


class Terminal:
    """Emacs in a terminal of its own."""

    count = 0

    def __init__(self, home, emacs, columns=80, lines=24, arguments=("-nw", "--no-splash")):
        Terminal.count += 1
        self.home = home
        self.socket = f"duet-e2e-{os.getpid()}-{Terminal.count}"
        home.terminals.append(self)
        environment = [f"{name}={value}" for name, value in home.environment().items()]
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines), "-c", home.project,
                   "env", "-i", *environment, emacs, *arguments)
        self.pid = int(self._tmux("display-message", "-p", "#{pane_pid}"))
        self.see(r"\*scratch\*")

    def _tmux(self, *arguments):
        done = subprocess.run(["tmux", "-L", self.socket, *arguments], capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"tmux {arguments[0]}: {done.stderr}")
        return done.stdout

    def attach(self):
        """Shows the terminal in a desktop window, which has the focus."""
        self._tmux("set-option", "-g", "focus-events", "on")
        self.window, other = pty.openpty()
        client = subprocess.Popen(["tmux", "-L", self.socket, "attach-session"], stdin=other, stdout=other,
                                  stderr=other, env={**os.environ, "TERM": "xterm-256color"}, start_new_session=True)
        os.close(other)

        def draw():
            try:
                while os.read(self.window, 65536):
                    pass
            except OSError:  # the other end is closed
                pass
            client.wait()
            os.close(self.window)
        threading.Thread(target=draw).start()
        wait_for(lambda: "focused" in self._tmux("list-clients", "-F", "#{client_flags}"), "a client of tmux",
                 screen=self._framed)

    def focus(self, has):
        """Gives the window the focus, or takes it away."""
        os.write(self.window, b"\x1b[I" if has else b"\x1b[O")

    def screen(self):
        """Returns the text of the screen."""
        return self._tmux("capture-pane", "-p")

    def styled(self):
        """Returns the text of the screen with SGR sequences."""
        return self._tmux("capture-pane", "-e", "-p")

    def _framed(self):
        try:
            text = self.screen()
        except Failure as failure:
            return f"(no screen: {failure})"
        width = max([len(line) for line in text.splitlines()] + [20])
        body = "\n".join("| " + line for line in text.rstrip("\n").splitlines())
        return f"+{'-' * width}\n{body}\n+{'-' * width}"

    def press(self, *keys):
        """Presses keys, with the names of tmux: c, C-c, M-x, Enter, Tab."""
        for key in keys:
            self._tmux("send-keys", key)

    def type(self, text):
        """Types text, each character as a key."""
        self._tmux("send-keys", "-l", text)

    def command(self, name, prefix=()):
        """Calls a command by its name, after the keys of a prefix argument."""
        self.press(*prefix, "M-x")
        self.see(r"M-x$")
        self.type(name)
        self.see(rf"M-x {re.escape(name)}$")
        self.press("Enter")

    def see(self, pattern, deadline=DEADLINE):
        """Waits until pattern matches the screen; returns the match."""
        regexp = re.compile(pattern, re.MULTILINE)
        return wait_for(lambda: regexp.search(self.screen()), f"{pattern!r} on the screen", deadline, self._framed)

    def see_no(self, pattern, deadline=DEADLINE):
        """Waits until pattern does not match the screen."""
        regexp = re.compile(pattern, re.MULTILINE)
        wait_for(lambda: not regexp.search(self.screen()), f"the screen to be without {pattern!r}", deadline,
                 self._framed)

    def cursor(self):
        """Returns the line number of the cursor, from 0."""
        return int(self._tmux("display-message", "-p", "#{cursor_y}"))

    def see_cursor_at(self, pattern, deadline=DEADLINE):
        """Waits until pattern matches the line of the cursor."""
        def there():
            line = self.cursor()
            return re.search(pattern, (self.screen().splitlines() + [""] * line)[line])
        wait_for(there, f"the cursor at {pattern!r}", deadline, self._framed)

    def shows(self, pattern):
        """Reports whether pattern matches the screen now."""
        return re.search(pattern, self.screen(), re.MULTILINE) is not None

    def press_until(self, keys, pattern, deadline=DEADLINE):
        """Presses keys repeatedly, until pattern matches the screen."""
        regexp = re.compile(pattern, re.MULTILINE)

        def pressed():
            if regexp.search(self.screen()):
                return True
            self.press(*keys)
            return False
        wait_for(pressed, f"{pattern!r} on the screen", deadline, self._framed)

    def quit_menu(self):
        """Presses C-g until the menu is gone: a C-g during redisplay may be lost, see quit."""
        menu, end = r"i +Interrupt", time.monotonic() + DEADLINE
        while self.shows(menu):
            self.press("C-g")
            again = time.monotonic() + DEADLINE / 12
            while self.shows(menu) and time.monotonic() < again:
                time.sleep(POLL)
            if time.monotonic() > end:
                self.see_no(menu, 0)

    def quit(self):
        """Presses C-g until Emacs says Quit, or the minibuffer is closed.

        C-g is a signal to Emacs, not a key.  During redisplay it may be lost, for example
        under load on a slow machine.  During other work Emacs says Quit, and the minibuffer
        stays open.  So this presses it again, as a user would.

        The same happens without Duet.  Measurements in emacs -nw -Q in tmux, with a C-g right
        after a typed word: none of 60 was lost in an idle Emacs, or while a process prints.
        None of 120 was lost with a timer that does nothing each 10 ms, or that inserts a word
        into the displayed buffer each 50 ms.  With an insertion each 10 ms, 11 of 200 were
        lost in Emacs 28.2, and 3 of 80 in 30.1; with with-local-quit in the timer, 2 of 120.
        Duet updates each 50 ms, see duet-transcript-delay.  duet-transcript-test-quit-waits
        checks that no timer and no filter of Duet loses a C-g.
        """
        asked = self.shows(MINIBUFFER)
        regexp = re.compile(r"^Quit$", re.MULTILINE)
        end = time.monotonic() + DEADLINE
        while True:
            self.press("C-g")
            again = time.monotonic() + DEADLINE / 6
            while time.monotonic() < again:
                screen = self.screen()
                if regexp.search(screen) and not (asked and re.search(MINIBUFFER, screen)):
                    return
                time.sleep(POLL)
            if time.monotonic() > end:
                raise Failure(f"waited {DEADLINE} s for C-g to have an effect\n{self._framed()}")

    def aftermath(self):
        """Returns screens that help to understand a failure: the redrawn screen, the messages, the last keys."""
        shown = []
        for keys, buffer in ((("C-l",), None), (("C-g", "C-g", "C-h", "e"), r"\*Messages\*"), (("C-h", "l"), r"\*Help\*")):
            try:
                self.press(*keys)
                if buffer:
                    self.see(buffer, 5)
                else:
                    settled(self.screen)
            except Failure:
                pass
            shown.append(self._framed())
        return "\n".join(shown)

    def server(self):
        """Returns the process id of the server that this Emacs has started."""
        return wait_for(lambda: next((pid for pid, name in children(self.pid).items() if name == "duet-rpc"), None),
                        "a server", screen=self._framed)

    def kill(self):
        """Kills Emacs without notice, like a crash or a power failure."""
        os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: not alive(self.pid), "Emacs to be gone")

    def close(self):
        """Ends Emacs and its terminal; returns its servers, which end too."""
        server = [pid for pid, name in children(self.pid).items() if name == "duet-rpc"]
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True)
        # At its exit Emacs writes into its home.
        wait_for(lambda: not alive(self.pid), "Emacs to end")
        return server

    @staticmethod
    def await_end(server):
        """Waits until servers have ended."""
        try:
            wait_for(lambda: not any(map(alive, server)), "a server to end with its Emacs")
        except Failure:
            for pid in filter(alive, server):
                os.kill(pid, signal.SIGKILL)
            raise


class Narrow(Terminal):
    """A terminal in which matching text may be wrapped."""

    def see(self, pattern, deadline=DEADLINE):
        regexp = re.compile(pattern, re.MULTILINE)

        def seen():
            screen = self.screen()
            return regexp.search(screen) or regexp.search(" ".join(line.strip() for line in screen.splitlines()))
        return wait_for(seen, f"{pattern!r} on the screen", deadline, self._framed)


def alive(pid):
    """Reports whether the process pid exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
