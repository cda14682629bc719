"""What agents ask, and how it is answered."""

from steps import ask, expect, scenario, start
from terminal import wait_for


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
