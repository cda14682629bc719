"""What users do, and what they then see."""

import os
import signal

from terminal import Failure, Terminal, alive, wait_for

ALL = {}


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


@scenario
def first_start(home, emacs):
    """Nothing is configured; the first command says what to do, and the demo agent does it."""
    terminal = Terminal(home, emacs)
    terminal.command("duet")
    terminal.see(r"No sessions yet\.  c asks an agent for something, \? tells")
    ask(terminal, "quiet please")
    terminal.see(r"^❯ quiet please$")
    terminal.see(r"^Hello from")
    terminal.see(r"^ ● completed · demo")
    terminal.press("l")
    terminal.see(r"^ ● +completed +quiet please +demo +now$")


@scenario
def no_server(home, emacs):
    """The program is not there: the message names it, and what to do."""
    home.programs = "/usr/bin"
    terminal = Terminal(home, emacs)
    terminal.command("duet")
    terminal.see(r"Cannot find the program duet-rpc; install it or set ‘?.?duet-rpc-command")
    terminal.see(r"\*scratch\*")


@scenario
def streams_and_is_interrupted(home, emacs):
    """What an agent says is there as it comes; i ends it, and r goes on."""
    terminal = start(home, emacs)
    ask(terminal, "quiet stream:2000@20")
    terminal.see(r"chunk 5 ")
    terminal.see(r"^ ◐ running")
    terminal.press("i")
    terminal.see(r"^■ Interrupted")
    terminal.see(r"^ ■ interrupted")
    if terminal.shows(r"chunk 2000"):
        raise Failure("the turn was not interrupted in its midst")
    ask(terminal, "quiet once more", key="r")
    terminal.see(r"^❯ quiet once more$")
    terminal.see(r"^ ● completed")


@scenario
def compose_loses_nothing(home, emacs):
    """C-g, C-c C-k and a killed buffer leave what was written within reach."""
    terminal = start(home, emacs)
    terminal.press("c")
    terminal.see(r"New session.*C-c C-c send")
    terminal.type("quiet words that took long")
    terminal.see(r"^quiet words that took long$")
    terminal.press("C-g")
    terminal.see(r"^Quit$")
    terminal.see(r"^quiet words that took long$")
    terminal.press("C-c", "C-k")
    terminal.see(r"Not sent; M-p in a new prompt brings it back")
    terminal.see_no(r"C-c C-c send")
    terminal.press("c")
    terminal.see(r"C-c C-c send")
    terminal.press("M-p")
    terminal.see(r"^quiet words that took long$")
    terminal.press("C-x", "k", "Enter")
    terminal.see_no(r"C-c C-c send")
    terminal.press("c")
    terminal.see(r"C-c C-c send")
    terminal.press("M-p", "C-c", "C-c")
    terminal.see(r"^❯ quiet words that took long$")
    terminal.see(r"^ ● completed")


@scenario
def server_killed(home, emacs):
    """A server that dies in the midst of a turn is started again; the turn can be continued."""
    terminal = start(home, emacs)
    ask(terminal, "quiet stream:2000@20")
    terminal.see(r"chunk 5 ")
    first = terminal.server()
    os.kill(first, signal.SIGKILL)
    terminal.see(r"(?i)■ interrupted")
    wait_for(lambda: terminal.server() != first, "another server", screen=terminal.screen)
    terminal.see(r"^ ■ interrupted · demo")
    ask(terminal, "quiet and on", key="r")
    terminal.see(r"^❯ quiet and on$")
    terminal.see(r"^ ● completed")


@scenario
def emacs_killed(home, emacs):
    """Emacs dies while an agent works and while a question waits: another one has both sessions."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"waits for you")
    terminal.press("l")
    ask(terminal, "quiet stream:2000@20")
    terminal.see(r"chunk 5 ")
    server = terminal.server()
    terminal.kill()
    terminal = start(home, emacs)
    terminal.see(r"^ ■ +interrupted +quiet stream")
    terminal.see(r"^ .*hello")
