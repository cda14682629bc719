"""Steps of scenarios that use a terminal."""

from terminal import DEADLINE, Failure, Terminal

ALL = {}

# Whether to compare or to write the screens of views (scenarios/screens.py), and the deadline.
SCREENS = {"update": False, "deadline": DEADLINE}


# Most scenarios are about a transcript without the reply box (`run` sets that); this gives the default back.
BOX = "(makunbound 'duet-reply-box)\n"


def scenario(function):
    """Adds a scenario: a function of a home directory and an Emacs to start there."""
    ALL[function.__name__] = function
    return function


def start(home, emacs, **arguments):
    """Starts Emacs and shows the sessions of the project."""
    terminal = Terminal(home, emacs, **arguments)
    terminal.command("duet")
    terminal.see(r"^ (No sessions yet|[○◐?●✗■] )")
    return terminal


def ask(terminal, prompt, key="c"):
    """Writes a prompt for an agent, and sends it."""
    terminal.press(key)
    terminal.see(r"C-c C-c send")
    terminal.type(prompt)
    terminal.see(prompt[-20:])
    terminal.press("C-c", "C-c")
    terminal.see_no(r"C-c C-c send")


def expect(condition, what, terminal):
    """Fails with a description and the screen, unless condition is true."""
    if not condition:
        raise Failure(f"{what}\n{terminal.screen()}")


def replace(terminal, old, new):
    """Replaces text in the buffer."""
    terminal.press("M-<")
    terminal.command("replace-string")
    terminal.see(r"^Replace string")
    terminal.type(old)
    terminal.press("Enter")
    terminal.see(r"with:$")
    terminal.type(new)
    terminal.press("Enter")
    terminal.see(r"^Replaced 1 occurrence$")
