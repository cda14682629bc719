"""One session with each kind of content, shown in every view, for screens and for pictures."""

import os
import sys

from showcase import OLD

PROMPT = "A row that ends with a comma is lost. Find out why, and mend it."

HERE = os.path.dirname(os.path.realpath(__file__))

CONFIG = """default_agent = "showcase"

[[triggers]]
id = "mend"
description = "Says what is broken"
type = "turn.failed"
action = {{ type = "agent", prompt = "{{{{payload.task_id}}}} failed: say why" }}
requires_approval = true

[[triggers]]
id = "tests"
source = "watch"
paths = ["tests/"]
action = {{ type = "notify", message = "Tests were changed" }}

[[triggers]]
id = "morning"
cron = "0 9 * * 1-5"
action = {{ type = "agent", prompt = "What was done yesterday?" }}

[[builds]]
name = "check"
command = ["cat", "check.log", "missing.log"]

[agents.showcase]
driver = "acp"
command = ["{python}", "-B", "{agent}"]
"""


def configure(home):
    """Makes the agent of the tour the default one, in a project with the files of the tour."""
    home.configure(CONFIG.format(python=sys.executable, agent=os.path.join(HERE, "showcase.py")))
    os.mkdir(os.path.join(home.project, "src"))
    home.write("src/rows.py", OLD)
    home.write("check.log", "checking src\nsrc/rows.py:4:5: error: a row is lost\n"
               "src/rows.py:6: warning: not covered\n")


def tour(emacs, shot, pages):
    """Plays the session; shot records a screen under a name, pages records each page of the buffer."""
    emacs.command("duet")
    emacs.see(r"No sessions yet")
    shot("sessions-none")
    emacs.press("c")
    emacs.see(r"C-c C-c send")
    emacs.type(PROMPT)
    emacs.see(PROMPT[-20:])
    shot("compose")
    emacs.press("C-c", "C-c")
    emacs.see(r"^\? Edit")
    shot("working")
    emacs.press("w")
    emacs.see(r"^ .*Edit +src/rows\.py")
    shot("approvals")
    emacs.press("v")
    emacs.see(r"^Edit src/rows\.py$")
    shot("approval-edit")
    emacs.press("y")
    emacs.see(r"^ Bash +\$ rm -rf")  # in the list, which may be behind the transcript
    emacs.press("v")
    emacs.see(r"^\$ rm -rf build/ && make all$")
    shot("approval-command")
    emacs.press("n")
    emacs.see(r"Which reader next\?")
    emacs.press("j")
    emacs.see(r"^\? Which reader next")
    emacs.press("C-x", "1")
    shot("question")
    emacs.press("2")
    emacs.see(r"What shall the commit say\?")
    emacs.see(r"^ +\[r\] Answer")
    shot("form")
    emacs.press("r")
    emacs.see(r"^Title")
    emacs.type("Rows: an empty field counts")
    shot("form-field")
    emacs.press("Enter")
    emacs.see(r"^Kind \(")
    emacs.press("Enter")
    emacs.see(r"^As a draft \(")
    emacs.press("Enter")
    emacs.see(r"^Title: Rows")
    emacs.press("y")
    emacs.see(r"● completed")
    emacs.see(r"which make check does not run")
    # The echo area shows "Sent: ..." and is still as high as the question. A key empties it and gives the lines back.
    emacs.press("C-a")
    shot("end")
    pages("transcript")
    emacs.press("?")
    emacs.see(r"i +Interrupt")
    shot("menu")
    emacs.quit_menu()
    emacs.press("=")
    emacs.see(r"^\+.*Empty fields count")
    shot("diff")
    emacs.press("q")
    emacs.see(r"● completed")
    emacs.press("C-x", "1", "l")
    emacs.see(r"● +completed ")
    emacs.press("C-x", "1")
    shot("sessions")
    emacs.press("?")
    emacs.see(r"i +Interrupt")
    shot("menu-sessions")
    emacs.quit_menu()
