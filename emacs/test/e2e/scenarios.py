"""What users do, and what they then see."""

import os
import signal

from terminal import Failure, Terminal, wait_for

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


def expect(condition, what, terminal):
    """Fails with what is wrong and the screen, unless condition is true."""
    if not condition:
        raise Failure(f"{what}\n{terminal.screen()}")


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
    expect(not terminal.shows(r"chunk 2000"), "the turn was not interrupted in its midst", terminal)
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
    """Emacs dies while an agent works and while a question waits: another one has both."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"waits for you")
    terminal.press("l")
    ask(terminal, "quiet stream:2000@20")
    terminal.see(r"chunk 5 ")
    terminal.kill()
    terminal = start(home, emacs)
    terminal.see(r"^ ■ +interrupted +quiet stream")
    terminal.see(r"Duet\[1!\]")
    terminal.press("j")
    terminal.see(r"^\? Write +demo\.txt.*stale")
    terminal.press("a")
    terminal.see(r"^ ● completed")
    terminal.see_no(r"Duet\[")
    expect(home.read("demo.txt") == "Turn 1: hello\n", f"demo.txt: {home.read('demo.txt')!r}", terminal)


@scenario
def approves(home, emacs):
    """A question is seen from any buffer, looked at with its diff, and approved."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"^ \? waits for you · demo · .*1 waiting: j")
    terminal.see(r"^\? Write +demo\.txt \+1")
    terminal.press("C-x", "b")
    terminal.see(r"^Switch to buffer")
    terminal.type("*scratch*")
    terminal.press("Enter")
    terminal.see(r"Duet\[1!\]")
    terminal.command("duet-approvals")
    terminal.see(r"^ +Write +demo\.txt \+1")
    terminal.press("v")
    terminal.see(r"^Write demo\.txt$")
    terminal.press_until(["n"], r"^\+Turn 1: hello$")
    expect(home.read("demo.txt") is None, "the file was written unasked", terminal)
    terminal.press("a")
    terminal.see(r"^Approved: Write demo\.txt$")
    terminal.see(r"Nothing waits for you\.")
    terminal.see_no(r"Duet\[")
    wait_for(lambda: home.read("demo.txt") == "Turn 1: hello\n", "demo.txt", screen=terminal.screen)


@scenario
def denies(home, emacs):
    """C-g in the prompt for a reason loses nothing; then the agent is told the reason."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "d")
    terminal.see(r"^Why not Write demo\.txt\?$")
    terminal.type("it is not my")
    terminal.see(r"^Why not Write demo\.txt\? it is not my$")
    terminal.press("C-g")
    terminal.see(r"^Quit$")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("d")
    terminal.see(r"^Why not Write demo\.txt\? it is not my$")
    terminal.type(" file")
    terminal.press("Enter")
    terminal.see(r"^ ● completed")
    terminal.see(r"^Nothing was changed\. That is all\.")
    terminal.press("C-x", "1", "M-<")
    terminal.see(r"^✗ Write demo\.txt")
    terminal.see_no(r"Duet\[")
    expect(home.read("demo.txt") is None, "the file was written", terminal)


@scenario
def edits_and_answers(home, emacs):
    """The input of a tool is changed before it is approved; a question has an answer."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "e")
    terminal.see(r"Turn 1: hello\\n")
    terminal.press("M-<")
    terminal.press("M-x")
    terminal.type("replace-string")
    terminal.press("Enter")
    terminal.see(r"^Replace string")
    terminal.type("hello")
    terminal.press("Enter")
    terminal.see(r"with:$")
    terminal.type("goodbye")
    terminal.press("Enter")
    terminal.see(r"Turn 1: goodbye\\n")
    terminal.press("C-c", "C-c")
    terminal.see(r"^ ● completed")
    wait_for(lambda: home.read("demo.txt") == "Turn 1: goodbye\n", "the changed text in demo.txt",
             screen=terminal.screen)
    terminal.see_no(r"^\? Write")  # whose r is another one
    ask(terminal, "ask", key="r")
    terminal.see(r"^\? .*\n +\[r\] answer +\[1\]")
    terminal.press("j", "1")
    terminal.see(r"^ ● completed")
    terminal.see_no(r"Duet\[")


@scenario
def two_emacsen(home, emacs):
    """Two Emacsen have a project open: each shows the session, and an answer counts in both."""
    first = start(home, emacs)
    second = start(home, emacs)
    ask(first, "hello")
    first.see(r"^\? Write +demo\.txt")
    second.see(r"^ \? +waits for you +hello +demo")
    second.see(r"Duet\[1!\]")
    first.see(r"Duet\[1!\]")
    second.press("j")
    second.see(r"^\? Write +demo\.txt")
    second.press("a")
    first.see(r"^Duet: Write demo\.txt was approved elsewhere$")
    first.see_no(r"^\? Write")
    for terminal in first, second:
        terminal.see(r"^ ● completed")
        terminal.see_no(r"Duet\[")
    # The one that has the hub ends; its server stays for the other, and no longer.
    server = first.close(stays=True)
    ask(second, "quiet alone", key="r")
    second.see(r"^❯ quiet alone$")
    second.see(r"^ ● completed")
    second.see(r"^Hello from")
    second.close()
    second.await_end(server)


@scenario
def reviews_changes(home, emacs):
    """What a turn has changed is shown; one change is reverted, and that is undone."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "a")
    terminal.see(r"^ ● completed")
    terminal.press("D")
    terminal.see(r"^\+Turn 1: hello$")
    terminal.press_until(["n"], r"demo\.txt")
    terminal.press("r")
    terminal.see(r"^Delete demo\.txt, which this turn has made\? \(y or n\)")
    terminal.press("y")
    wait_for(lambda: home.read("demo.txt") is None, "the change to be taken back", screen=terminal.screen)
    terminal.press("u")
    wait_for(lambda: home.read("demo.txt") == "Turn 1: hello\n", "the change to be there again",
             screen=terminal.screen)


@scenario
def menu(home, emacs):
    """The menu is there in each buffer, and begins things."""
    terminal = start(home, emacs)
    terminal.press("?")
    terminal.see(r"c +Ask something new")
    terminal.press("c")
    terminal.see(r"New session.*C-c C-c send")
    terminal.type("quiet from the menu")
    terminal.see(r"^quiet from the menu$")
    terminal.press("C-c", "C-c")
    terminal.see(r"^ ● completed")
    terminal.press("?")
    terminal.see(r"i +Interrupt")
    terminal.press("C-g")
    terminal.see_no(r"i +Interrupt")
    terminal.press("?")
    terminal.see(r"X +Stop server$")
    terminal.press("X")
    terminal.see(r"\(Duet-Sessions \[stopped\]\)")


@scenario
def terminals(home, emacs):
    """A program runs in a terminal of the server, and what is typed reaches it."""
    terminal = start(home, emacs)
    terminal.command("duet-terminal")
    terminal.see(r"\*duet terminal")
    terminal.see(r"^[#$] *$")
    terminal.type("echo $((40 + 2)) is it")
    terminal.press("Enter")
    terminal.see(r"^42 is it$")
    terminal.type("exit")
    terminal.press("Enter")
    terminal.see(r"^Process .* finished$")


@scenario
def trusts(home, emacs):
    """What a project would run is shown and asked about once; with a yes it runs."""
    home.write(".duet.toml", 'default_agent = "parrot"\n[agents.parrot]\ndriver = "command"\n'
               'command = ["/bin/echo", "Parrot says {prompt}"]\n')
    terminal = Terminal(home, emacs)
    terminal.command("duet")
    terminal.see(r"Trust this file\?  y yes, n no")
    terminal.see(r"/bin/echo")
    terminal.press("y")
    terminal.see_no(r"Trust this file\?")
    terminal.command("duet")
    ask(terminal, "hello there")
    terminal.see(r"^Parrot says hello there")
    terminal.see(r"^ ● completed · parrot")
    terminal.kill()
    terminal = start(home, emacs)
    terminal.see(r"completed +hello there +parrot")
    expect(not terminal.shows(r"Trust this file\?"), "what is trusted was asked about again", terminal)


@scenario
def reads_the_manual(home, emacs):
    """The manual came with the package, and is in the list of manuals."""
    if not home.has_manual():
        return  # there is no makeinfo, which make manual tells
    terminal = Terminal(home, emacs)
    terminal.press("C-h", "i", "m")
    terminal.see(r"^Menu item")
    terminal.type("Duet")
    terminal.press("Enter")
    terminal.see(r"^Duet shows in Emacs what coding agents do")
    terminal.press("m")
    terminal.see(r"^Menu item")
    terminal.type("Questions")
    terminal.press("Enter")
    terminal.see(r"An agent asks for leave before it runs a tool")
