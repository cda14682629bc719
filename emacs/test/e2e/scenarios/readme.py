"""Compares the Emacs screens in the README with a real Emacs."""

import os
import re

from steps import BOX, SCREENS, ask, scenario, start
from terminal import settled, wait_for

README = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "..", "..", "README.md")


def shown(terminal):
    """Returns the screen as the README shows it: without empty lines and the echo area."""
    lines = [line.rstrip() for line in terminal.screen().rstrip("\n").splitlines() if not line.startswith("File Edit")]
    while lines and not re.search(r"\(Duet", lines[-1]):
        lines.pop()
    lines = [re.sub(r" \d+[smh]$", lambda age: "now".rjust(len(age.group())), line) for line in lines]
    return re.sub(r"\n\n\n+", "\n\n", "\n".join(lines)) + "\n"


def plain(screen):
    """Removes what differs between Emacs versions: the layout of the mode line, and the position of point."""
    return re.sub(r"^-UUU:.*?(\*duet.*\*).*(\(Duet[^)]*\)).*(Duet\[1!\])-*$", r"\1 \2 \3", screen, flags=re.MULTILINE)


def compare(terminal, number, words):
    """Fails unless the screen equals the text block with that number in the README; --update writes the block."""
    with open(README, encoding="utf-8") as file:
        text = file.read()
    found = list(re.finditer(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))[number]
    if SCREENS["update"]:
        now = settled(lambda: shown(terminal))
        if plain(now) != plain(found.group(1)):
            with open(README, "w", encoding="utf-8") as file:
                file.write(text[:found.start(1)] + now + text[found.end(1):])
        return
    wait_for(lambda: plain(shown(terminal)) == plain(found.group(1)),
             f"{words} of the README, which --update writes anew:\n{found.group(1)}", screen=terminal.screen)


@scenario
def readme_screens(home, emacs):
    """The README shows the list of sessions and the transcript as Emacs draws them."""
    home.init(BOX)
    terminal = start(home, emacs, lines=36)
    ask(terminal, "quiet tools:3")
    terminal.see(r"^ ● +completed +[0-9]+ quiet tools:3")
    terminal.press("C-x", "1", "M-<", "l")
    terminal.see_no(r"\(Duet\)")
    ask(terminal, "Greet the README's reader")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.see(r"\[y\] Allow")
    terminal.press("C-c", "C-j")
    terminal.see_cursor_at(r"^\? Write +demo\.txt")
    terminal.press("C-x", "1")
    terminal.see_no(r"Duet-Sessions")
    terminal.press("M-<")
    terminal.see(r"^❯ Greet[^❯]*remembers it\)")
    compare(terminal, 1, "the transcript")
    terminal.press("l")
    terminal.see(r"^ \? +waiting for you")
    ask(terminal, "quiet stream:3000@10")
    terminal.see(r"^ ◐ +running")
    terminal.press("C-x", "1", "M-<", "l")
    terminal.see_no(r"\(Duet\)")
    terminal.see(r"^ ◐ +running.*\n \? +waiting for you.*\n ● +completed")
    terminal.press("M-<")
    compare(terminal, 0, "the list of sessions")
