"""Questions of agents and their answers."""

import time

from steps import ask, expect, replace, scenario, start
from terminal import wait_for


@scenario
def approves(home, emacs):
    """A question is listed from any buffer, shown with its diff, and approved."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"^ \? waiting for you · [0-9.]+ · demo · .*1 open: j")
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
    terminal.see(r"^\+Turn 1: hello$")
    expect(home.read("demo.txt") is None, "the file was written unasked", terminal)
    terminal.press("y")
    terminal.see(r"^Allowed: Write demo\.txt$")
    terminal.see(r"No question waits for you\.")
    terminal.see_no(r"Duet\[")
    wait_for(lambda: home.read("demo.txt") == "Turn 1: hello\n", "demo.txt", screen=terminal.screen)


@scenario
def denies(home, emacs):
    """One key denies. C-g in the prompt for a reason loses nothing, and the reason is kept."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "n")
    terminal.see(r"^Denied: Write demo\.txt$")
    terminal.see(r"^ ● completed")
    ask(terminal, "hello again", key="r")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("C-u", "n")
    terminal.see(r"^Why not Write demo\.txt\?$")
    terminal.type("it is not my")
    terminal.see(r"^Why not Write demo\.txt\? it is not my$")
    terminal.quit()
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("C-u", "n")
    terminal.see(r"^Why not Write demo\.txt\? it is not my$")
    terminal.type(" file")
    terminal.press("Enter")
    terminal.see(r"^ ● completed")
    terminal.see(r"^Nothing was changed\. That is all\.")
    terminal.press("C-x", "1", "M->")
    terminal.see(r"^⊘ Write demo\.txt")
    terminal.see(r"^  not run: denied by you in Emacs: it is not my file$")
    terminal.see_no(r"Duet\[")
    expect(home.read("demo.txt") is None, "the file was written", terminal)


@scenario
def edits_and_answers(home, emacs):
    """The user edits the input of a tool before approval, and answers a question."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "e")
    terminal.see(r"C-c C-c Allow with your edit(.*\n)*Turn 1: hello$|Turn 1: hello\n(.*\n)*.*Allow with your edit")
    replace(terminal, "hello", "goodbye")
    terminal.see(r"^Turn 1: goodbye$")
    terminal.press("C-c", "C-c")
    terminal.see(r"^ ● completed")
    wait_for(lambda: home.read("demo.txt") == "Turn 1: goodbye\n", "the changed text in demo.txt",
             screen=terminal.screen)
    terminal.see_no(r"^\? Write")  # whose r is another one
    ask(terminal, "ask", key="r")
    terminal.see(r"^\? .*\n +\[r\] Answer +\[n\] Decline +\[1\]")
    terminal.press("j", "1")
    terminal.see(r"^ ● completed")
    terminal.see_no(r"Duet\[")


@scenario
def answers_in_words(home, emacs):
    """The prompt lists the answers, and takes no others; the question can be declined."""
    terminal = start(home, emacs, columns=110)
    ask(terminal, "ask")
    terminal.see(r"^\? Which colour do you like\?\n +\[r\] Answer +\[n\] Decline +\[1\] red")
    terminal.press("j", "r")
    terminal.see(r"^Which colour do you like\? \(red, green, blue\)$")
    terminal.type("none of")
    terminal.see(r"^Which colour do you like\? \(red, green, blue\) none of$")
    terminal.quit()
    terminal.see(r"Duet\[1!\]")
    terminal.press("r")
    terminal.see(r"^Which colour do you like\? \(red, green, blue\) none of$")
    terminal.press("Enter")
    terminal.see(r"none of \[No match\]$")
    terminal.press("C-a", "C-k", "g", "Tab")
    terminal.see(r"\) green$")
    terminal.press("Enter")
    terminal.see(r"You answered: green\.")
    terminal.see(r"^ ● completed")
    terminal.see_no(r"Duet\[")
    ask(terminal, "ask", key="r")
    terminal.see(r"^ +\[r\] Answer +\[n\] Decline")
    terminal.press("n")
    terminal.see(r"^Declined: Which colour do you like\?$")
    terminal.see_no(r"Duet\[")


@scenario
def allows_from_now_on(home, emacs):
    """A tool that is allowed in a session or a project needs no more approval there."""
    terminal = start(home, emacs, lines=50)
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "s")
    terminal.see(r"^Allowed without a question: Write of files in (.*\n){1,3}Pattern: ")
    terminal.quit()
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("s")
    terminal.see(r"^Allowed without a question: Write of files in (.*\n){1,3}Pattern: ")
    terminal.press("Enter")
    terminal.see(r"^Allowed, always in this session: Write demo\.txt$")
    terminal.see(r"^ ● completed")
    terminal.see_no(r"^\? Write")  # whose r is another one
    ask(terminal, "again", key="r")
    wait_for(lambda: "Turn 2: again\n" in (home.read("demo.txt") or ""), "a change that was not asked about",
             screen=terminal.screen)
    terminal.see(r"^ ● completed")
    # Another session still asks, until the user allows the tool in the project.
    terminal.press("l")
    ask(terminal, "hello two")
    terminal.see(r"^ \? waiting for you")
    terminal.press("j", "p")
    terminal.see(r"^Allowed without a question: Write of files in (.*\n){1,3}Pattern: ")
    terminal.press("Enter")
    terminal.see(r"^Allowed, always in this project: Write demo\.txt$")
    terminal.see(r"^ ● completed")
    terminal.press("l")
    ask(terminal, "hello three")
    terminal.see(r"^❯ hello three$")
    terminal.see(r"^ ● completed")
    expect("hello three" in home.read("demo.txt"), "demo.txt was not changed", terminal)


@scenario
def answers_at_once(home, emacs):
    """After a prompt is sent, the keys that its question names answer it at point."""
    terminal = start(home, emacs)
    ask(terminal, "permit:2")
    terminal.see(r"^ +\[y\] Allow")
    terminal.see_cursor_at(r"\[y\] Allow")
    terminal.press("s")
    terminal.see(r"^Allowed without a question: the command echo 1, in this session\nPattern: echo 1$")
    terminal.quit()
    terminal.see_cursor_at(r"\[y\] Allow")
    terminal.press("y")
    terminal.see(r"^Allowed: ")
    terminal.see(r"^ +\[y\] Allow")
    terminal.see_cursor_at(r"\[y\] Allow")
    terminal.press("y")
    terminal.see(r"^ ● completed · [0-9.]+ · demo")
    terminal.see_cursor_at(r"^$")
    # Point elsewhere in the buffer stays.
    ask(terminal, "hello", key="r")
    terminal.press("M-<")
    terminal.see(r"1 open: j")
    terminal.see_cursor_at(r"^❯ permit:2")
    terminal.press("j")
    terminal.see_cursor_at(r"^\? Write +demo\.txt")


@scenario
def does_not_deny_by_moving(home, emacs):
    """n and p move onto a question without answering it; the second press answers, and ? explains the keys."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt \+1 −0\n +@@ demo\.txt:1\n +\+Turn 1: hello\n +\[y\] Allow  \[n\] Deny")
    terminal.press("M-<")
    terminal.press_until(["n"], r"^n denies Write demo\.txt: press it again, or TAB moves on$")
    expect(terminal.shows(r"Duet\[1!\]"), "the question was answered", terminal)
    terminal.press("p")
    terminal.see(r"^Allowed without a question: Write of files in (.*\n){1,3}Pattern: ")
    terminal.quit()
    terminal.press("?")
    terminal.see(r"^y +Allow +The tool runs this once\.$")
    terminal.press("C-p", "n", "n")
    terminal.see(r"^n denies Write demo\.txt: press it again, or TAB moves on$")
    terminal.see(r"^\? Write(.*\n)+ +\[y\] Allow  \[n\] Deny")  # the question is visible
    time.sleep(0.5)  # a key that is held down does not answer
    terminal.press("n")
    terminal.see(r"^Denied: Write demo\.txt$")
    terminal.see_no(r"Duet\[1!\]")
    expect(home.read("demo.txt") is None, "the file was written", terminal)
