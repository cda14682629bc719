"""The box at the end of a transcript for the next prompt."""

from steps import BOX, ask, scenario, start


@scenario
def replies_in_the_transcript(home, emacs):
    """RET sends the text at the end, and typed text is never a command."""
    home.init(BOX)
    terminal = start(home, emacs, lines=40)
    ask(terminal, "quiet first")
    terminal.see(r"^ ● completed")
    terminal.see(r"^❯ quiet first\n\nHello(.*\n)+❯ *$")
    terminal.press("M-<", "r")
    terminal.type("quiet a second one")
    terminal.see(r"^❯ quiet first\n\nHello(.*\n)+❯ quiet a second one$")
    terminal.press("Enter")
    terminal.see(r"^❯ quiet a second one\n\nHello(.*\n)+\n❯ *$")
    terminal.see(r"^ ● completed")
    terminal.press("M-p")
    terminal.see(r"^❯ quiet a second one\n\nHello(.*\n)+\n❯ quiet a second one$")
    terminal.press("C-c", "C-k", "M-r")
    terminal.see(r"^Earlier prompt:")
    terminal.type("first")
    terminal.press("Tab", "Enter")
    terminal.see(r"That is all\.\s+❯ quiet first$")
    terminal.press("C-c", "C-k")
    # A question arrives; typed text stays text.
    terminal.type("hello")
    terminal.press("Enter")
    terminal.see(r"^\? Write +demo\.txt(.*\n)+❯ *$")
    terminal.type("add")
    terminal.see(r"^\? Write +demo\.txt(.*\n)+❯ add$")
    terminal.see(r"Duet\[1!\]")
    terminal.press("M-<")
    terminal.press("y")
    terminal.see(r"^ ● completed")
    terminal.press("r")
    terminal.see(r"^❯ add$")


@scenario
def counts_the_seconds(home, emacs):
    """While a turn runs the header shows the elapsed time."""
    terminal = start(home, emacs)
    ask(terminal, "quiet stream:2000@20")
    terminal.see(r"^ ◐ running · [0-9.]+ · demo · (\d+m )?\d+s [-|/\\]")
    terminal.see(r"^ ◐ running · [0-9.]+ · demo · ([2-9]|\d\d|\d+m \d+)s [-|/\\]")
    terminal.press("i")
    terminal.see(r"^ ■ interrupted · [0-9.]+ · demo( · \d+ in \d+ out)?$")


@scenario
def sends_now_while_the_agent_works(home, emacs):
    """While the agent works, C-c C-n sends it the text, and RET queues the text."""
    home.init(BOX)
    terminal = start(home, emacs, lines=40)
    ask(terminal, "quiet slow permit:1")
    terminal.see(r"^\? Bash +\$ echo 1")
    terminal.press("M-<", "r")
    terminal.type("Use the other file")
    terminal.see(r"^ \? waiting for you · .*1 open: C-c C-j · C-c C-q y Allow, n Deny · C-c C-n now")
    terminal.press("C-c", "C-n")
    terminal.see(r"^Sent: the agent has it$")
    terminal.see(r"^❯ Use the other file$")
    terminal.type("quiet after that")
    terminal.press("Enter")
    terminal.see(r"^Queued: it runs when this turn has ended$")
    terminal.press("C-c", "C-j")
    terminal.see_no(r"C-c C-n now")
    terminal.press("y")
    terminal.see(r"^❯ Use the other file\n\nYou said meanwhile: Use the other file That is all\. *\n\n❯ quiet after that\n\nHello")
    terminal.see(r"^ ● completed")


@scenario
def answers_from_the_box(home, emacs):
    """The header line names keys that answer the question while point is in the box."""
    home.init(BOX)
    terminal = start(home, emacs, lines=40)
    ask(terminal, "quiet permit:2")
    terminal.see(r"^\? Bash +\$ echo 1")
    terminal.press("M-<", "r")
    terminal.type("quiet a draft")
    terminal.see(r"^ \? waiting for you · .*1 open: C-c C-j · C-c C-q y Allow, n Deny")
    terminal.press("C-c", "C-q", "y")
    terminal.see(r"^\? Bash +\$ echo 2(.*\n)+❯ quiet a draft$")
    terminal.press("C-c", "C-q", "n")
    terminal.see(r"^ ● completed")
    terminal.see(r"^❯ quiet a draft$")
    terminal.press("C-c", "C-q", "y")
    terminal.see(r"^No question is here; C-c C-j goes to the next one$")
