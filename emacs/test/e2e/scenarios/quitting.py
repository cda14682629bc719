"""C-g, wherever one is asked for something."""

from steps import ask, expect, scenario, start
from terminal import Terminal, alive, wait_for

# How one is asked, what is then shown, and what is typed before the C-g.
PROMPTS = [
    (lambda terminal: terminal.press("T"), r"^Title: quiet stream:5000@20", " or so"),
    (lambda terminal: terminal.press("s"), r"^Search conversations:", "chunk"),
    (lambda terminal: terminal.command("duet-choose-agent"), r"^Agent for new sessions \(default demo\):", "dem"),
    (lambda terminal: terminal.command("duet-set-mode"), r"^The agent \(default asks", "edits"),
    (lambda terminal: terminal.command("duet-set-model"), r"^Model:", "large"),
    (lambda terminal: terminal.command("duet", prefix=["C-u"]), r"^Project: ~/project/", "other"),
    (lambda terminal: terminal.command("duet-terminal", prefix=["C-u"]), r"^Run in a terminal:", "cat"),
]


def see_clean_log(terminal):
    """Sees that nothing odd was logged."""
    terminal.command("duet-log-show")
    terminal.see(r"\*duet-log\* .*\(Duet-Log\)")
    expect(not terminal.shows(r"^20\d\d-\d\d-\d\d "), "something was logged", terminal)


@scenario
def quits_prompts(home, emacs):
    """C-g at any prompt leaves all as it was, and what an agent does goes on."""
    terminal = start(home, emacs)
    ask(terminal, "quiet stream:5000@20")
    terminal.see(r"chunk 5 ")
    for call, prompt, text in PROMPTS:
        call(terminal)
        terminal.see(prompt)
        terminal.type(text)
        terminal.see(rf"{prompt}.*{text}$")
        terminal.quit()
        terminal.see_no(r"Minibuf")
    terminal.press("f")
    terminal.see(r"^This turn is not over; fork an earlier one, or wait$")
    terminal.quit()
    terminal.see(r"^ ◐ running · demo")
    terminal.press("i")
    terminal.see(r"^■ Interrupted")
    terminal.press("f")
    terminal.see(r"Fork: quiet stream.*C-c C-c send")
    terminal.type("quiet fork")
    terminal.see(r"^quiet fork$")
    terminal.quit()
    terminal.see(r"^quiet fork$")
    terminal.press("C-c", "C-k")
    terminal.see_no(r"C-c C-c send")
    terminal.press("l")
    terminal.see(r"^ ■ +interrupted +quiet stream:5000@20 +demo")
    see_clean_log(terminal)


@scenario
def quits_questions(home, emacs):
    """C-g leaves a question, and the question whether a project is trusted, as they are."""
    home.write(".duet.toml", '[agents.parrot]\ndriver = "command"\ncommand = ["/bin/echo", "Parrot says {prompt}"]\n')
    terminal = Terminal(home, emacs)
    terminal.command("duet")
    terminal.see(r"Trust this file\?  y yes, n no")
    terminal.quit()
    terminal.see(r"Trust this file\?  y yes, n no")
    # Whoever does not want to say anything is left alone, and it is no.
    terminal.press("q")
    terminal.see_no(r"Trust this file\?")
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j")
    for key, prompt in ("d", r"^Why not Write demo\.txt\?"), ("s", r"^Let Write run in this session from now on"), \
            ("P", r"^Let Write run in this project from now on"):
        terminal.press(key)
        terminal.see(prompt)
        terminal.quit()
        terminal.see(r"^\? Write +demo\.txt")
    terminal.press("e")
    terminal.see(r"Turn 1: hello\\n")
    terminal.quit()
    terminal.press("C-c", "C-k")
    terminal.see(r"Duet\[1!\]")
    terminal.see_no(r"Turn 1: hello\\n")
    see_clean_log(terminal)
    expect(home.read("demo.txt") is None, "the file was written", terminal)


@scenario
def leaves(home, emacs):
    """To leave Emacs takes a yes if a prompt is not sent, else none; what ran can be continued."""
    home.init("(setq duet-terminal-backend 'term)\n")
    terminal = start(home, emacs)
    terminal.press("c")
    terminal.see(r"New session.*C-c C-c send")
    terminal.type("quiet stream:5000@20")
    terminal.see(r"^quiet stream:5000@20$")
    terminal.press("C-x", "C-c")
    terminal.see(r"^A prompt is not sent; leave it behind\? \(yes or no\)")
    terminal.quit()
    terminal.see(r"^quiet stream:5000@20$")
    terminal.press("C-c", "C-c")
    terminal.see(r"chunk 5 ")
    terminal.command("duet-terminal")
    terminal.see(r"^[#$] *$")
    server = terminal.server()
    terminal.press("C-x", "o", "C-x", "C-c")
    wait_for(lambda: not alive(terminal.pid), "Emacs to end", screen=terminal.screen)
    terminal.await_end([server])
    terminal = start(home, emacs)
    terminal.see(r"^ ■ +interrupted +quiet stream")
    ask(terminal, "quiet and on", key="r")
    terminal.see(r"^❯ quiet and on$")
    terminal.see(r"^ ● completed")
