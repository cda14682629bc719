"""What a project may run."""

from steps import ask, expect, scenario, start
from terminal import Terminal


@scenario
def trusts(home, emacs):
    """What a project would run is shown and asked about once; with a yes it runs."""
    home.write(".duet.toml", 'default_agent = "parrot"\n[agents.parrot]\ndriver = "command"\n'
               'command = ["/bin/echo", "Parrot says {prompt}"]\n')
    terminal = Terminal(home, emacs)
    terminal.command("duet")
    terminal.see(r"Trust this file\?  y yes, n no")
    terminal.see(r"/bin/echo")
    terminal.press("y")
    terminal.see_no(r"Trust this file\?")
    terminal.command("duet")
    ask(terminal, "hello there")
    terminal.see(r"^Parrot says hello there")
    terminal.see(r"^ ● completed · parrot")
    terminal.kill()
    terminal = start(home, emacs)
    terminal.see(r"completed +hello there +parrot")
    expect(not terminal.shows(r"Trust this file\?"), "what is trusted was asked about again", terminal)
