"""A user's day, from the first prompt to the landed change."""

import json
import os
import signal

from steps import BOX, expect, scenario
from terminal import Terminal, wait_for

STEPS = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..", "..", "..", "testdata", "day.json")


@scenario
def day(home, emacs):
    """Emacs plays the steps of testdata/day.json with its own keys, and shows the same words as the shell."""
    home.run("git", "init", "-q", "-b", "main")
    home.write("README", "hello\n")
    home.run("git", "add", ".")
    home.run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "one")
    home.configure('worktree = "session"\n')
    home.init(BOX + "(require (quote duet))\n")
    terminal = Terminal(home, emacs, lines=60)
    with open(STEPS, encoding="utf-8") as file:
        steps = json.load(file)
    for step in steps:
        if step.get("do") == "kill the daemon":
            os.kill(home.daemon(), signal.SIGKILL)
        terminal.press(*step["emacs"])

        def shown(words=step["says"] + step.get("emacs_says", [])):
            screen = " ".join(terminal.screen().split())
            return all(word in screen for word in words)
        wait_for(shown, f"the words of the step {step['step']!r}: {step['says']}", screen=terminal.screen)
    landed = home.run("git", "show", "main:demo.txt")
    expect(landed == "Turn 2: edit again\nTurn 1: fail early in May\n", f"the landed change is {landed!r}", terminal)
