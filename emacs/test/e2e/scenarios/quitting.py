"""C-g in each prompt."""

from steps import ask, expect, scenario, start
from terminal import Terminal, alive, wait_for

# How to open the prompt, what the screen shows then, and the text to type before the C-g.
PROMPTS = [
    (lambda terminal: terminal.press("T"), r"^Title: quiet stream:5000@20", " or so"),
    (lambda terminal: terminal.press("/"), r"^Search sessions:", "chunk"),
    (lambda terminal: terminal.command("duet-choose-agent"), r"^Agent for new sessions \(default demo\):", "dem"),
    (lambda terminal: terminal.command("duet-set-mode"), r"^Mode \(default Default\)", "Accept"),
    (lambda terminal: terminal.command("duet-set-model"), r"^Model:", "large"),
    (lambda terminal: terminal.command("duet", prefix=["C-u"]), r"^Project: ~/project/", "other"),
    (lambda terminal: terminal.command("duet-terminal", prefix=["C-u"]), r"^Run in a terminal:", "cat"),
]


def see_clean_log(terminal):
    """Checks that the log has nothing unexpected."""
    terminal.command("duet-log-show")
    terminal.see(r"\*duet-log\* .*\(Duet-Log\)")
    expect(not terminal.shows(r"^20\d\d-\d\d-\d\d "), "something was logged", terminal)


@scenario
def quits_prompts(home, emacs):
    """C-g in any prompt changes nothing, and the agent continues."""
    terminal = start(home, emacs)
    ask(terminal, "quiet stream:5000@20")
    terminal.see(r"chunk \d+ ")
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
    terminal.see(r"^ ◐ running · [0-9.]+ · demo")
    terminal.press("i")
    terminal.see(r"^■ Interrupted")
    terminal.press("f")
    terminal.see(r"Fork 1\.1: quiet stream.*C-c C-c send")
    terminal.type("quiet fork")
    terminal.see(r"^quiet fork$")
    terminal.quit()
    terminal.see(r"^quiet fork$")
    terminal.press("C-c", "C-k")
    terminal.see_no(r"C-c C-c send")
    terminal.press("l")
    terminal.see(r"^ ■ +interrupted +[0-9]+ quiet stream:5000@20 +demo")
    see_clean_log(terminal)


@scenario
def quits_questions(home, emacs):
    """C-g leaves a question, and the trust question, unanswered."""
    home.write(".duet.toml", '[agents.parrot]\ndriver = "command"\ncommand = ["/bin/echo", "Parrot says {prompt}"]\n')
    terminal = Terminal(home, emacs)
    terminal.command("duet")
    terminal.see(r"Trust this file\?  C-c C-c yes, C-c C-k no")
    terminal.quit()
    terminal.see(r"Trust this file\?  C-c C-c yes, C-c C-k no")
    # Without a decision the question goes away, and the file is not trusted.
    terminal.press("q")
    terminal.see_no(r"Trust this file\?")
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j")
    for keys, prompt in ("C-u n", r"^Why not Write demo\.txt\?"), ("s", r"^Allowed without a question: Write of files in (.*\n){1,3}Pattern: "), \
            ("p", r"^Allowed without a question: Write of files in (.*\n){1,3}Pattern: "):
        terminal.press(*keys.split())
        terminal.see(prompt)
        terminal.quit()
        terminal.see(r"^\? Write +demo\.txt")
    terminal.press("e")
    terminal.see(r"Allow with your edit")
    terminal.quit()
    terminal.press("C-c", "C-k")
    terminal.see(r"Duet\[1!\]")
    terminal.see_no(r"Allow with your edit")
    see_clean_log(terminal)
    expect(home.read("demo.txt") is None, "the file was written", terminal)


@scenario
def quits_emacs(home, emacs):
    """Emacs exits without a question while an agent works; the next one has the turn and the draft."""
    terminal = start(home, emacs)
    ask(terminal, "quiet stream:5000@20")
    terminal.see(r"chunk \d+ ")
    terminal.press("r")
    terminal.see(r"C-c C-c send")
    terminal.type("half a thought")
    terminal.see(r"^half a thought")
    terminal.press("C-x", "C-c")
    wait_for(lambda: not alive(terminal.pid), "Emacs to be gone", screen=terminal.screen)
    terminal = start(home, emacs)
    terminal.see(r"^ ◐ +running +[0-9]+ quiet stream:5000@20 +demo")
    terminal.press("c")
    terminal.see(r"C-c C-c send")
    terminal.press("M-p")
    terminal.see(r"^half a thought")
    terminal.press("C-c", "C-k")
    terminal.see_no(r"C-c C-c send")
    terminal.press("i")
    terminal.see(r"^ ■ +interrupted +[0-9]+ quiet stream:5000@20 +demo")
    terminal.press("C-x", "C-c")
    wait_for(lambda: not alive(terminal.pid), "Emacs to be gone", screen=terminal.screen)


@scenario
def stops_the_server(home, emacs):
    """The server of a project is stopped, and running turns continue; it can be started again at once."""
    one = start(home, emacs)
    one.see(r"No sessions yet")
    other = start(home, emacs)
    ask(other, "quiet stream:200@25")
    other.see(r"chunk \d+ ")
    one.see(r"^ ◐ +running")
    one.command("duet-stop")
    one.see(r"^The server is stopped; its agents go on with 1 turn$")
    one.see(r"\[stopped\]")
    # Emacs and the agent still run well after the time to kill a hanging server.
    other.see(r"chunk 199 ")
    other.see(r"^ ● completed · [0-9.]+ · demo")
    for _ in range(3):
        one.press("g")
        one.see(r"^ ● +completed +[0-9]+ quiet stream")
        one.see_no(r"\[(stopped|starting…|server lost.*)\]")
        one.command("duet-stop")
        one.see(r"\[stopped\]")
    one.press("g")
    one.see_no(r"\[stopped\]")
    expect(not one.shows(r"another try"), "the new server has ended", one)
