"""Search in sessions."""

from steps import ask, expect, scenario, start


@scenario
def searches(home, emacs):
    """Matches are listed with their sessions; RET goes to one, also in old messages."""
    terminal = start(home, emacs)
    ask(terminal, "quiet walnuts grow here")
    terminal.see(r"^ ● completed")
    ask(terminal, "quiet stream:200 almonds", key="r")
    terminal.see(r"^❯ quiet stream:200 almonds$|chunk 200 ")
    terminal.see(r"^ ● completed")
    terminal.press("l")
    ask(terminal, "quiet walnuts of another kind")
    terminal.see(r"^ ● completed")
    terminal.press("l", "/")
    terminal.see(r"^Search sessions: ?$")
    terminal.type("walnuts grow")
    terminal.press("Enter")
    terminal.see(r"Search: walnuts grow  RET open")
    terminal.see(r"^1\.1 quiet walnuts grow here  you · 20")
    expect(not terminal.shows(r"^ +quiet walnuts of another"), "what has not both words was found", terminal)
    terminal.press("Enter")
    terminal.see(r"^❯ quiet walnuts grow here$")
    terminal.see_cursor_at(r"^❯ quiet walnuts grow here$")
    # C-g cancels a search without matches.
    terminal.press("/")
    terminal.see(r"^Search sessions: ?$")
    terminal.type("pistachios")
    terminal.press("Enter")
    terminal.see(r"^ No message has these words\.$")
    terminal.press("/")
    terminal.see(r"^Search sessions: ?$")
    terminal.type("chestnuts")
    terminal.see(r"^Search sessions: chestnuts$")
    terminal.quit()
    terminal.see(r"Search: pistachios")
    terminal.press("l")
    terminal.see_cursor_at(r"^ ● +completed +[0-9]+ quiet walnuts")
