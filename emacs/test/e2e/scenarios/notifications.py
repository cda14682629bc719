"""Desktop notifications while Emacs has no focus."""

import os

from steps import ask, expect, scenario, start
from terminal import wait_for

INIT = '''
(setq duet-notify-long-turn 0
      duet-notify-function
      (lambda (title text _)
        (write-region (format "%s: %s\\n" title (string-replace "\\n" ", " text)) nil "~/told" t 'quiet)))
(add-function :after after-focus-change-function
              (lambda () (message "Has the focus: %s" (frame-focus-state))))
'''


@scenario
def notifies(home, emacs):
    """A question and the end of a turn cause a notification, only while the terminal has no focus."""
    def told():
        try:
            with open(os.path.join(home.path, "told"), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    home.init(INIT)
    terminal = start(home, emacs)
    terminal.attach()
    terminal.see(r"^Has the focus: t$")
    ask(terminal, "hello")
    terminal.see(r"Duet\[1!\]")
    terminal.press("j", "y")
    terminal.see(r"^ ● completed")
    terminal.see_no(r"Duet\[")
    expect(told() == "", "one who looks was told", terminal)
    terminal.focus(False)
    terminal.see(r"^Has the focus: nil$")
    ask(terminal, "once more", key="r")
    terminal.see(r"Duet\[1!\]")
    question = "An agent asks for permission: Write demo.txt, 1.2 hello\n"
    wait_for(lambda: told() == question, "a question to be told", screen=terminal.screen)
    terminal.press("j", "y")
    terminal.see(r"^ ● completed")
    wait_for(lambda: told() == question + "An agent is done: 1.2 hello\n", "an end to be told", screen=terminal.screen)
    terminal.focus(True)
    terminal.see(r"^Has the focus: t$")
    terminal.see_no(r"Duet\[")
    ask(terminal, "quiet now", key="r")
    terminal.see(r"You asked: quiet now That is all")
    terminal.see(r"^ ● completed")
    expect(told().count("\n") == 2, "one who looks again was told", terminal)
    # An agent that continues by itself asks, too.
    ask(terminal, "quiet background", key="r")
    terminal.see(r"^❯ quiet background$")
    terminal.focus(False)
    wait_for(lambda: told().endswith(question.replace("1.2", "1.5")), "a question after the turn to be told", screen=terminal.screen)
