"""A user at a terminal: Emacs in tmux, keys that are pressed, a screen that is read.

Nothing here sleeps for a length of time that something is guessed to take: what
is expected is looked for until a deadline, and if it does not come, the error
shows the screen.
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
MINIBUFFER = r"^File .* Minibuf"  # the menu bar, while something is asked for


class Failure(Exception):
    """A step that did not do what was expected of it."""


class Missing(Exception):
    """What a scenario takes is not on this machine."""


def wait_for(condition, what, deadline=DEADLINE, screen=None):
    """Returns what condition returns once that is true, until the deadline."""
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
    """Returns what screen, a function, returns when that has been the same for some time."""
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
    """The processes that the process pid has started and that run yet, with their names."""
    found = {}
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat=,comm="], capture_output=True, text=True, check=True)
    for line in listing.stdout.splitlines():
        child, parent, state, name = line.split(None, 3)
        if int(parent) == pid and not state.startswith("Z"):
            found[int(child)] = os.path.basename(name)
    return found


class Home:
    """A home directory in which nothing is configured, with the package installed, and a project."""

    def __init__(self, package, programs):
        self.path = os.path.realpath(tempfile.mkdtemp(prefix="duet-e2e-"))
        self.project = os.path.join(self.path, "project")
        self.programs = programs
        self.terminals = []
        os.mkdir(self.project)
        open(os.path.join(self.project, ".duet.toml"), "x").close()  # else Emacs asks whether it is a project
        os.mkdir(os.path.join(self.path, "run"), 0o700)
        if package:
            shutil.copytree(package, os.path.join(self.path, ".emacs.d", "elpa"))

    def environment(self):
        """What a program that the user starts finds in its environment."""
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
        """Tells whether the manual could be built when the package was."""
        return bool(glob.glob(os.path.join(self.path, ".emacs.d", "elpa", "duet-*", "duet.info")))

    def run(self, *command):
        """Runs a program as the user would in a shell; returns what it printed."""
        done = subprocess.run(command, cwd=self.project, env=self.environment(), capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def daemon(self, state=None):
        """Returns the process id of the project's daemon, or None; of another project if its state directory is given."""
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
        """Ends all that was started, and removes the directory; returns what was said by each Emacs that could."""
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
        """Shows it in a window of a desktop, which has the focus."""
        self._tmux("set-option", "-g", "focus-events", "on")
        self.window, other = pty.openpty()
        client = subprocess.Popen(["tmux", "-L", self.socket, "attach-session"], stdin=other, stdout=other,
                                  stderr=other, env={**os.environ, "TERM": "xterm-256color"}, start_new_session=True)
        os.close(other)

        def draw():
            try:
                while os.read(self.window, 65536):
                    pass
            except OSError:  # there is nobody any more at the other end
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
        """Returns what the screen shows."""
        return self._tmux("capture-pane", "-p")

    def styled(self):
        """Returns what the screen shows, with SGR sequences for how."""
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
        """Presses keys, named as tmux names them: c, C-c, M-x, Enter, Tab."""
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
        """Waits until the screen shows what pattern matches; returns the match."""
        regexp = re.compile(pattern, re.MULTILINE)
        return wait_for(lambda: regexp.search(self.screen()), f"{pattern!r} on the screen", deadline, self._framed)

    def see_no(self, pattern, deadline=DEADLINE):
        """Waits until the screen shows nothing that pattern matches."""
        regexp = re.compile(pattern, re.MULTILINE)
        wait_for(lambda: not regexp.search(self.screen()), f"the screen to be without {pattern!r}", deadline,
                 self._framed)

    def cursor(self):
        """Returns the number of the line that the cursor is in, from 0."""
        return int(self._tmux("display-message", "-p", "#{cursor_y}"))

    def see_cursor_at(self, pattern, deadline=DEADLINE):
        """Waits until the cursor is in a line that pattern matches."""
        def there():
            line = self.cursor()
            return re.search(pattern, (self.screen().splitlines() + [""] * line)[line])
        wait_for(there, f"the cursor at {pattern!r}", deadline, self._framed)

    def shows(self, pattern):
        """Tells whether the screen shows now what pattern matches."""
        return re.search(pattern, self.screen(), re.MULTILINE) is not None

    def press_until(self, keys, pattern, deadline=DEADLINE):
        """Presses keys again and again, until the screen shows what pattern matches."""
        regexp = re.compile(pattern, re.MULTILINE)

        def pressed():
            if regexp.search(self.screen()):
                return True
            self.press(*keys)
            return False
        wait_for(pressed, f"{pattern!r} on the screen", deadline, self._framed)

    def quit_menu(self):
        """Presses C-g until the menu is gone: one that comes while Emacs draws may be lost, see quit."""
        menu, end = r"i +Interrupt", time.monotonic() + DEADLINE
        while self.shows(menu):
            self.press("C-g")
            again = time.monotonic() + DEADLINE / 12
            while self.shows(menu) and time.monotonic() < again:
                time.sleep(POLL)
            if time.monotonic() > end:
                self.see_no(menu, 0)

    def quit(self):
        """Presses C-g until that is said, or what is asked for in the minibuffer is gone.

        It is a signal to Emacs, and no key.  One that comes while Emacs draws may be lost,
        as happens where much comes in on a slow machine; one that comes while it does
        something else says Quit, and stays in the minibuffer.  So it is pressed once more,
        as anybody would.

        That is so without Duet.  In emacs -nw -Q in tmux, each C-g right behind a typed
        word: of 60, none was lost in an Emacs where nothing goes on, or where a process
        prints; of 120, none beside a timer each 10 ms that does nothing or one each 50 ms
        that inserts a word into the buffer that is shown; but of 200 beside one that does
        so each 10 ms, 11 (Emacs 28.2), and of 80, 3 (30.1).  Where that timer's function
        is in with-local-quit it was 2 of 120.  Duet draws each 50 ms, see
        duet-transcript-delay.  duet-transcript-test-quit-waits holds that no timer and
        no filter of Duet swallows one.
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
        """Returns screens that help to understand a failure: all drawn anew, the messages, the last keys."""
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
        """Kills Emacs as a crash or a power failure does: it is told nothing."""
        os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: not alive(self.pid), "Emacs to be gone")

    def close(self):
        """Ends Emacs and its terminal; returns its servers, which end too."""
        server = [pid for pid, name in children(self.pid).items() if name == "duet-rpc"]
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True)
        # At its end Emacs writes into its home.
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
    """A terminal in which what is looked for may be broken into lines."""

    def see(self, pattern, deadline=DEADLINE):
        regexp = re.compile(pattern, re.MULTILINE)

        def seen():
            screen = self.screen()
            return regexp.search(screen) or regexp.search(" ".join(line.strip() for line in screen.splitlines()))
        return wait_for(seen, f"{pattern!r} on the screen", deadline, self._framed)


def alive(pid):
    """Tells whether the process pid is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
