"""Builds, and what is done when something happens."""

from steps import ask, expect, scenario, start

CONFIG = """default_agent = "demo"

[[builds]]
name = "all"
shell = '''
echo begins
if test -e fixed; then exit 0; fi
if test -e slow; then exec sleep 1000; fi
echo "main.txt:2:5: error: this is wrong"
echo "main.txt:3: warning: this is odd"
exit 3
'''

[[triggers]]
id = "tell"
type = "run.completed"
action = { type = "notify", channel = "office", message = "the walnuts are cracked" }
"""


@scenario
def builds(home, emacs):
    """The project is built; one goes from mistake to mistake as with compile, and ends what takes too long."""
    home.configure(CONFIG)
    home.write("main.txt", "one\ntwo (2\nthree\n")
    terminal = start(home, emacs, columns=120)  # a newer Emacs lays the mode line out wider
    terminal.press("?")
    terminal.see(r"b +Build")
    terminal.press("b")
    terminal.see(r"^Build failed: all failed: exit status 3")
    terminal.see(r"exit \[3\] \[1 1 0\]")
    terminal.command("next-error")
    terminal.see_cursor_at(r"^two \(2$")
    terminal.command("next-error")
    terminal.see_cursor_at(r"^three$")
    # What Flymake knows, whoever has built.
    terminal.command("flymake-mode")
    terminal.see(r"Flymake\[1 1\]|Flymake\[1 1 0\]")
    home.write("slow", "")
    terminal.command("duet-build")
    terminal.see(r"^begins\n")
    terminal.see(r":run \[0 0 0\]")
    terminal.press("C-x", "o")
    terminal.press("C-c", "C-k")
    terminal.see(r"^Build ended by you")
    home.write("fixed", "")
    terminal.press("g")
    terminal.see(r"^Build finished$")
    terminal.see(r"Flymake\[0 0\]|Flymake\[0 0 0\]")


@scenario
def triggers(home, emacs):
    """A trigger is seen to do something, and is switched off."""
    home.configure(CONFIG)
    terminal = start(home, emacs)
    terminal.command("duet-triggers")
    terminal.see(r"^ on +tell +")
    terminal.press("l")
    ask(terminal, "quiet hello")
    terminal.see(r"^ ● completed")
    terminal.command("duet-triggers")
    terminal.see(r"^ on +tell .* now")
    terminal.press("Enter")
    terminal.see(r"^ now +tell +run\.completed +told  tells: the walnuts are cracked")
    terminal.command("duet-triggers")
    terminal.see_cursor_at(r"^ on +tell ")
    terminal.press("x")
    terminal.see(r"^ off +tell ")
    terminal.press("F")
    terminal.see(r"^Type of the event")
    terminal.type("run.completed")
    terminal.press("Enter")
    terminal.see(r"JSON")
    terminal.press("Enter")
    terminal.see(r"^✓ tell  tells: the walnuts are cracked")
    expect(not terminal.shows(r"rror"), "something went wrong", terminal)
