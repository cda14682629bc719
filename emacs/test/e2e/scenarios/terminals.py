"""Terminals of the server."""

from steps import scenario, start


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
