"""Actions on whole sessions."""

import os

from steps import ask, scenario, start


@scenario
def forks(home, emacs):
    """A fork has the messages up to the turn at point, and the original session is unchanged."""
    terminal = start(home, emacs, lines=50)
    ask(terminal, "quiet first words")
    terminal.see(r"^ ● completed")
    ask(terminal, "quiet second words", key="r")
    terminal.see(r"^❯ quiet second words$")
    terminal.see(r"^ ● completed")
    terminal.press("M-<")
    ask(terminal, "quiet other words", key="f")
    terminal.see(r"^❯ quiet other words$")
    terminal.see(r"^ ● completed")
    terminal.press("C-x", "1")
    terminal.see_no(r"^❯ quiet second words$")
    terminal.see(r"^❯ quiet first words$")
    terminal.press("l")
    terminal.see(r"^ ● +completed +[0-9]+ quiet other words +demo")
    terminal.see(r"^ ● +completed +[0-9]+ quiet first words +demo")
    # From the list the fork has all messages, and is also a new session.
    terminal.press("M-<")
    ask(terminal, "quiet last words", key="f")
    terminal.see(r"^❯ quiet last words$")
    terminal.see(r"^ ● completed")
    terminal.press("C-x", "1")
    terminal.see(r"^❯ quiet first words$")
    terminal.see(r"^❯ quiet other words$")
    terminal.press("l")
    for name in "last", "other", "first":
        terminal.see(rf"^ ● +completed +[0-9]+ quiet {name} words +demo")


@scenario
def archives(home, emacs):
    """Marked sessions are archived and restored, with their names."""
    terminal = start(home, emacs)
    for prompt in "quiet one", "quiet two", "quiet three":
        ask(terminal, prompt)
        terminal.see(rf"^❯ {prompt}$")
        terminal.see(r"^ ● completed")
        terminal.press("l")
        terminal.see(rf"^ ● +completed +[0-9]+ {prompt} ")
    terminal.press("C-x", "1", "M-<", "m", "m")
    terminal.see(r"^\* *● +completed +[0-9]+ quiet three")
    terminal.see(r"^\* *● +completed +[0-9]+ quiet two")
    terminal.press("z")
    terminal.see(r"^2 archived; Z shows the archive$")
    terminal.see_no(r"quiet (two|three)")
    terminal.see(r"quiet one")
    terminal.press("Z")
    terminal.see(r"^The archive; Z leaves it$")
    terminal.see(r"^ ● +completed +[0-9]+ quiet two")
    terminal.see_no(r"quiet one")
    terminal.press("M-<", "z")
    terminal.see(r"^Taken back from the archive$")
    terminal.press("Z")
    terminal.see(r"^All but the archive$")
    terminal.see(r"quiet one")
    terminal.see(r"quiet (two|three)")
    terminal.press("U", "M-<", "m", "m", "z")
    terminal.see(r"^2 archived; Z shows the archive$")
    terminal.see(r"^ All sessions are in the archive\.  Z shows it, c begins another\.")


@scenario
def deletes(home, emacs):
    """Sessions are deleted after a confirmation; one with an open question is refused, with the remedy."""
    terminal = start(home, emacs)
    for prompt in "quiet one", "quiet two", "quiet three":
        ask(terminal, prompt)
        terminal.see(rf"^❯ {prompt}$")
        terminal.see(r"^ ● completed")
        terminal.press("l")
        terminal.see(rf"^ ● +completed +[0-9]+ {prompt} ")
    terminal.press("C-x", "1", "M-<", "D")
    terminal.see(r'Delete "quiet three" for good')
    terminal.type("no")
    terminal.press("Enter")
    terminal.see(r"^Nothing deleted$")
    terminal.press("m", "m", "D")
    terminal.see(r"Delete 2 sessions \(quiet three, quiet two\) for good")
    terminal.type("yes")
    terminal.press("Enter")
    terminal.see(r"^2 deleted$")
    terminal.see_no(r"quiet (two|three)")
    terminal.see(r"quiet one")
    ask(terminal, "hello")
    terminal.see(r"\[y\] Allow")
    terminal.press("D")
    terminal.see(r"hello is not over; interrupt it first \(i\)$")
    terminal.press("i")
    terminal.see(r"^ ■ interrupted")
    terminal.press("D")
    terminal.see(r'Delete "hello" for good')
    terminal.type("yes")
    terminal.press("Enter")
    terminal.see(r"^1 deleted$")
    terminal.see(r"^ ● +completed +[0-9]+ quiet one ")
    terminal.see_no(r"hello")


@scenario
def exports(home, emacs):
    """A session is exported to a file or a buffer, with the program's output."""
    terminal = start(home, emacs)
    ask(terminal, "quiet Grüße")
    terminal.see(r"^ ● completed")
    terminal.press("l")
    terminal.see(r"^ ● +completed +[0-9]+ quiet Grüße ")
    terminal.press("C-x", "1", "W")
    terminal.see(r"^Write the session to \(\.md or \.json\): ~/project/quiet-grüße\.md$")
    terminal.press("Enter")
    terminal.see(r"^Wrote ~/project/quiet-grüße\.md$")
    terminal.press("C-u", "W")
    terminal.see(r"^Show it as")
    terminal.press("Enter")
    terminal.see(r"^# quiet Grüße$")
    terminal.press("C-x", "k", "Enter")
    terminal.press("W")
    terminal.see(r"project/quiet-grüße\.md$")
    terminal.press("Enter")
    terminal.see(r"quiet-grüße\.md exists; overwrite it\? \(y or n\)")
    terminal.press("n")
    terminal.see(r"^Not written$")


@scenario
def projects(home, emacs):
    """One list has the sessions of all projects; each opens with the server of its project."""
    other = os.path.join(home.path, "other")
    os.mkdir(other)
    open(os.path.join(other, ".duet.toml"), "x").close()
    terminal = start(home, emacs)
    ask(terminal, "quiet here")
    terminal.see(r"^ ● completed")
    terminal.command("duet", prefix=("C-u",))
    terminal.see(r"^Project: ")
    terminal.press("C-a", "C-k")
    terminal.type("~/other/")
    terminal.press("Enter")
    terminal.see(r"^ No sessions yet")
    ask(terminal, "hello")
    terminal.see(r"\[y\] Allow")
    terminal.press("l")
    terminal.see(r"^ \? +waiting for you +[0-9]+ hello ")
    terminal.press("C-x", "1", "P")
    terminal.see(r"^ \? +waiting for you +other +[0-9]+ hello +demo")
    terminal.see(r"^ ● +completed +project +[0-9]+ quiet here +demo")
    terminal.press("M-<", "Enter")
    terminal.see(r"\[y\] Allow")
    terminal.press("P", "C-x", "1")
    terminal.see(r"^ ● +completed +project +[0-9]+ quiet here +demo")
    terminal.press("M-<", "C-n")
    terminal.see_cursor_at(r"● +completed +project +[0-9]+ quiet here")
    terminal.press("Enter")
    terminal.see(r"^❯ quiet here$")
