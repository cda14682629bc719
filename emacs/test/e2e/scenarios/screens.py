"""The screen of each view, compared with the recorded one in screens/.

The layout of some views depends on the version of Emacs, so one version is compared.
"""

import difflib
import os
import re
import subprocess
import time

from steps import SCREENS, scenario
from terminal import POLL, Failure, Missing, Narrow, settled
from tour import configure, tour

VERSION = 30  # of the Emacs with recorded screens
FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "screens")

# A project with its own agent and server, which run only after the user trusts it.
TRUSTED = """default_agent = "parrot"

[agents.parrot]
driver = "command"
command = ["/bin/echo", "Parrot says {prompt}"]
env = { LANG = "C", DEBUG = "1" }
"""

# Text that depends on the run or the machine.
NORMAL = [
    # The mode line.
    (r"^-[UuCc=]{2,}\S*? *F1 +(\S.*?)(?: {2,}.*)?$", r"---- \1"),
    # Paths of programs.
    (r"(?<=  )/\S*\$?$", "/PATH"),
    (r"· (?:\d+h \d+m|\d+m \d+s|\d+s) [-\\|/](?=$| )", "· 1s /"),
    (r"\b\d+(?:\.\d+)? ms\b", "1 ms"),
    (r"^It took .*", "It took 1 s, until 12:00:00"),
    (r"\bin \d+[mhd]$", "later"),
    (r" (?:now|\d+[mhd])$", " now"),
    (r"20\d\d-\d\d-\d\d(?: \d\d:\d\d)?", "2026-01-01"),
    (r"/[^ ]*/duet-e2e-[^/ ]*/project", "~/project"),
    (r"/[^ ]*/duet-e2e-[^/ ]*", "~"),
    (r"^( ?[ *] .*(?:showcase|Demonstration)) /\S+$", r"\1 PROGRAM"),  # where it is installed
]


def normal(screen, cursor):
    """Returns the screen, with the cursor in a line, without text that depends on the run."""
    lines = screen.splitlines()
    if len(lines) > 2 and cursor < len(lines) - 1 and re.match("-[UuCc=]{2}", lines[-2]):
        # Messages in the echo area may disappear by themselves.
        lines = lines[:-1]
    for pattern, by in NORMAL:
        lines = [re.sub(pattern, by, line).rstrip() for line in lines]
    return "\n".join(lines).rstrip("\n") + "\n"


def kept(path):
    """Returns the recorded screen in path, or None."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


class Shots:
    """Compares the screens of a terminal with the recorded ones for its number of columns."""

    def __init__(self, terminal, columns):
        self.terminal = terminal
        self.columns = columns

    def screen(self):
        """Returns the current screen, without text that depends on the run."""
        return normal(self.terminal.screen(), self.terminal.cursor())

    def take(self, name):
        """Compares the screen, after waiting until it is as expected."""
        path = os.path.join(FOLDER, f"{self.columns}-{name}.txt")
        if SCREENS["update"]:
            with open(path, "w", encoding="utf-8") as file:
                file.write(settled(self.screen))
            return
        expected = kept(path)
        if expected is None:
            raise Failure(f"there is no {path}; --update makes it")
        end = time.monotonic() + SCREENS["deadline"]
        while (now := self.screen()) != expected:
            if time.monotonic() > end:
                difference = "\n".join(difflib.unified_diff(
                    expected.splitlines(), now.splitlines(), path, "on the screen", lineterm=""))
                raise Failure(f"{name} looks otherwise; --update keeps how it is\n{difference}")
            time.sleep(POLL)

    def pages(self, name):
        """Compares all pages of the buffer, from the beginning."""
        self.terminal.press("C-x", "1", "M-<")
        # Display each page once, so that its layout is final before the comparison.
        for _ in self.leaf():
            settled(self.screen)
        self.terminal.press("M-<")
        for page in self.leaf():
            self.take(f"{name}-{page}")

    def leaf(self):
        """Goes from page to page, to the last one; yields their numbers."""
        for page in range(1, 20):
            yield page
            if re.search(r"which make check does not run", self.terminal.screen()):
                return
            self.terminal.press("C-v")


def more(home, terminal, shots):
    """Shows views that the tour does not show."""
    terminal.press("/")
    terminal.see(r"^Search sessions")
    terminal.type("comma")
    terminal.press("Enter")
    terminal.see(r"Search: comma")
    terminal.press("C-x", "1")
    shots.take("search")
    for command, seen in (("duet-agents", r"^ \* +showcase"), ("duet-rules", r"(?i)rule"),
                          ("duet-triggers", r"on +tests"), ("duet-build", r"^Build failed"),
                          ("duet-projects", r"completed +project")):
        terminal.command(command)
        terminal.see(seen)
        if command == "duet-build":  # the window is not selected, as with compile
            terminal.press("C-x", "o")
        terminal.press("C-x", "1")
        shots.take(command.removeprefix("duet-"))
    terminal.press("Enter")
    terminal.see(r"^ ● completed")
    terminal.press("C-x", "1")
    terminal.command("duet-set-mode")
    terminal.see(r"^Mode")
    terminal.press("Tab", "Tab")
    terminal.see(r"\*Completions\*")
    shots.take("set-mode")
    terminal.quit()
    terminal.press("C-x", "1")
    home.write(".duet.toml", TRUSTED)
    terminal.command("duet-trust")
    terminal.see(r"Trust this file\?")
    shots.take("trust")
    terminal.press("C-c", "C-k")
    terminal.see(r"^ ● completed")
    terminal.press("C-x", "1", "M-:")
    terminal.see(r"^Eval:")
    terminal.type("(progn (setq duet-reply-box t) (duet-reply-setup) nil)")
    terminal.press("Enter")
    terminal.see(r"^nil$")
    terminal.press("M->")
    terminal.type("A reply that is being written")
    terminal.see(r"being written$")
    shots.take("reply")


def screens(home, emacs, columns, lines):
    version = subprocess.run([emacs, "-Q", "--batch", "--eval", "(princ emacs-major-version)"],
                             capture_output=True, text=True, check=True).stdout
    if int(version) != VERSION:
        raise Missing(f"Emacs {VERSION}, whose screens are kept")
    configure(home)
    terminal = Narrow(home, emacs, columns=columns, lines=lines)
    shots = Shots(terminal, columns)
    tour(terminal, shots.take, shots.pages)
    more(home, terminal, shots)


@scenario
def screens_of_60_columns(home, emacs):
    """All views in a narrow terminal."""
    screens(home, emacs, 60, 24)


@scenario
def screens_of_80_columns(home, emacs):
    """All views in a terminal of the usual size."""
    screens(home, emacs, 80, 24)


@scenario
def screens_of_120_columns(home, emacs):
    """All views in a wide terminal."""
    screens(home, emacs, 120, 40)
