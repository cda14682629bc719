"""Trust in projects."""

from steps import ask, expect, scenario, start
from terminal import Terminal


@scenario
def trusts(home, emacs):
    """The programs of a project are shown in one question; after a yes they run."""
    home.write(".duet.toml", 'default_agent = "parrot"\n[agents.parrot]\ndriver = "command"\n'
               'command = ["/bin/echo", "Parrot says {prompt}"]\n')
    terminal = Terminal(home, emacs)
    terminal.command("duet")
    terminal.see(r"Trust this file\?  C-c C-c yes, C-c C-k no")
    terminal.see(r"/bin/echo")
    terminal.press("C-c", "C-c")
    terminal.see_no(r"Trust this file\?")
    terminal.command("duet")
    ask(terminal, "hello there")
    terminal.see(r"^Parrot says hello there")
    terminal.see(r"^ ● completed · [0-9.]+ · parrot")
    terminal.kill()
    terminal = start(home, emacs)
    terminal.see(r"completed +[0-9]+ hello there +parrot")
    expect(not terminal.shows(r"Trust this file\?"), "what is trusted was asked about again", terminal)


@scenario
def does_not_trust(home, emacs):
    """After a no the file has no effect, everything else works, and there is no second question."""
    home.write(".duet.toml", '[agents.parrot]\ndriver = "command"\ncommand = ["/bin/echo", "Parrot says {prompt}"]\n')
    terminal = Terminal(home, emacs)
    terminal.command("duet")
    terminal.see(r"Trust this file\?  C-c C-c yes, C-c C-k no")
    terminal.press("C-c", "C-k")
    terminal.see(r"^Not trusted; M-x duet-trust changes that$")
    terminal.see_no(r"Trust this file\?")
    terminal.command("duet-agents")
    terminal.see(r"^ +parrot +defined by this project")
    terminal.press("C-s")
    terminal.type("parrot")
    terminal.see(r"^I-search: parrot$")
    terminal.press("Enter", "Enter")
    terminal.see(r"^parrot is defined by this project, which you do not trust: M-x duet-trust$")
    terminal.press("q")
    terminal.command("duet")
    ask(terminal, "quiet hello")
    terminal.see(r"^Hello from the demo agent")
    terminal.see(r"^ ● completed · [0-9.]+ · demo")
    terminal.kill()
    terminal = start(home, emacs)
    terminal.see(r"completed +[0-9]+ quiet hello +demo")
    ask(terminal, "quiet more")
    terminal.see(r"^ ● completed · [0-9.]+ · demo")
    expect(not terminal.shows(r"Trust this file\?"), "what is not trusted was asked about again", terminal)
    # The command asks again, and a changed file causes a new question.
    terminal.command("duet-trust")
    terminal.see(r"Trust this file\?  C-c C-c yes, C-c C-k no")
    home.write(".duet.toml", '[agents.cat]\ndriver = "command"\ncommand = ["/bin/echo", "Meow"]\n')
    terminal.press("C-c", "C-c")
    terminal.see(r"^The file has changed; look at it again$")
    terminal.see(r"Meow")
    terminal.press("C-c", "C-c")
    terminal.see(r"^Trusted: this version$")
    terminal.see_no(r"Trust this file\?")
