"""What a turn has changed."""

from steps import ask, scenario, start
from terminal import wait_for


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
