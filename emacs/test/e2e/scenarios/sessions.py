"""Sessions: their start, their continuation, and lost processes."""

import os
import signal

from steps import ask, expect, scenario, start
from terminal import Missing, Terminal, wait_for


@scenario
def first_start(home, emacs):
    """Without configuration, the first command says what to do, and the demo agent does it."""
    terminal = Terminal(home, emacs)
    terminal.command("duet")
    terminal.see(r"No sessions yet\.  c begins one, \? lists")
    ask(terminal, "quiet please")
    terminal.see(r"^❯ quiet please$")
    terminal.see(r"^Hello from")
    terminal.see(r"^ ● completed · [0-9.]+ · demo")
    terminal.press("l")
    terminal.see(r"^ ● +completed +[0-9]+ quiet please +demo +now$")


@scenario
def no_server(home, emacs):
    """The error for a missing program names it, and the remedy."""
    home.programs = "/usr/bin"
    terminal = Terminal(home, emacs)
    terminal.command("duet")
    terminal.see(r"Cannot find the program duet-rpc; install it or set ‘?.?duet-rpc-command")
    terminal.see(r"\*scratch\*")


@scenario
def streams_and_is_interrupted(home, emacs):
    """Messages of an agent appear as they arrive; i interrupts the turn, and r continues."""
    terminal = start(home, emacs)
    ask(terminal, "quiet stream:2000@20")
    terminal.see(r"chunk \d+ ")
    terminal.see(r"^ ◐ running")
    terminal.press("i")
    terminal.see(r"^■ Interrupted")
    terminal.see(r"^ ■ interrupted")
    expect(not terminal.shows(r"chunk 2000"), "the turn was not interrupted in its midst", terminal)
    ask(terminal, "quiet once more", key="r")
    terminal.see(r"^❯ quiet once more$")
    terminal.see(r"^ ● completed")


@scenario
def goes_on_by_itself(home, emacs):
    """An agent continues after its turn: the transcript shows it, the user answers it, and i interrupts it."""
    terminal = start(home, emacs, lines=40)
    ask(terminal, "quiet background")
    terminal.see(r"my turn ends\. That is all\.\n\n■ Continued by itself\.\n\nThe background task has finished\.\n")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.see(r"^ \? waiting for you · [0-9.]+ · demo · .*1 open: j")
    terminal.see(r"^ \? +waiting for you +[0-9]+ quiet background +demo")
    terminal.see(r"Duet\[1!\]")
    terminal.press("M-<", "r")
    terminal.see(r"^ Queue 1: quiet background .*C-c C-c send")
    terminal.type("quiet after that")
    terminal.see(r"^quiet after that$")
    terminal.press("C-c", "C-c")
    terminal.see(r"^Queued: it runs when this turn has ended$")
    terminal.see(r"\([0-9.]+: queued, e edits it, k takes it back\) quiet after that$")
    terminal.press("j", "y")
    # An agent of version 2 gets the prompt while it continues by itself, after the edit.
    terminal.see(r"^❯ quiet after that\n(.*\n)*Hello(.*\n)+ *\n.*-UUU")
    expect(not terminal.shows(r"the turn ended before this did"), "the edit is cut short", terminal)
    terminal.see(r"^ ● completed")
    expect(home.read("demo.txt") == "Turn 2: quiet background\n", f"demo.txt: {home.read('demo.txt')!r}", terminal)
    ask(terminal, "quiet goal", key="r")
    terminal.see(r"^Turn 2 towards the goal\.")
    terminal.see(r"^ ◐ running")
    # Between its turns there is nothing to interrupt.
    terminal.press_until(["i"], r"^■ Interrupted$")
    terminal.see(r"^ ■ interrupted")
    terminal.see(r"^ ■ +interrupted +[0-9]+ quiet background +demo")
    expect(not terminal.shows(r"^❯ *$"), "there is a prompt without words", terminal)
    # i ends what the agent does in the background, too.
    ask(terminal, "slow background", key="r")
    terminal.see(r"^ ● completed · [0-9.]+ · works in the background: 1 task · demo")
    terminal.see(r"^ ● +completed +[0-9]+ quiet background  in background: 1 +demo")
    terminal.see(r"^ *◐ sleep 60")
    terminal.press("i")
    terminal.see(r"^■ The agent has ended, and with it what it did in the background: sleep 60$")
    terminal.see(r"^ ● completed · [0-9.]+ · demo")
    terminal.see(r"^ ● +completed +[0-9]+ quiet background +demo")
    # Another Emacs lists the session by its first prompt. It has seen none of its turns but the last.
    home.run("duet-rpc", "prompt", "--agent", "demo", "quiet background of a shell")
    terminal.see(r"^ \? +waiting for you +[0-9]+ quiet background of a shell")
    other = start(home, emacs)
    other.see(r"^ \? +waiting for you +[0-9]+ quiet background of a shell")


# This reports a silent agent sooner than a user would want.
SOON_SILENT = """
default_agent = "sleeper"
[agents.sleeper]
command = ["duet-rpc", "demo-agent"]
silent_after = "2s"
silent_tool_after = "2s"
"""


@scenario
def ends_what_hangs(home, emacs):
    """An agent that hangs is reported; i or its time limit ends it, with the reason."""
    home.configure(SOON_SILENT)
    terminal = start(home, emacs)
    ask(terminal, "hang")
    terminal.see(r"sleeper has said nothing for \d+ s")
    terminal.press("i")
    terminal.see(r"^ ◐ interrupting")
    terminal.see(r"^■ Interrupted")
    terminal.see(r"^ ■ interrupted")
    terminal.kill()
    home.end_daemons()  # limits count from the start of a daemon
    home.configure('[limits]\nturn_timeout = "1s"\n')
    terminal = start(home, emacs)
    ask(terminal, "hang")
    terminal.see(r"Timed Out: it took longer than it may .1s.")
    terminal.see(r"^ ✗ timed out")


@scenario
def ends_a_sub_agent_that_hangs(home, emacs):
    """A sub-agent that hangs ends with the turn, by i or by its time limit; its calls no longer show as running."""
    home.configure(SOON_SILENT)
    terminal = start(home, emacs)
    ask(terminal, "quiet stuck")
    terminal.see(r"^  ○ touch made$")
    terminal.see(r"^sleeper has said nothing for \d+ s, in the middle of: touch made$")
    terminal.press("i")
    terminal.see(r"^ ■ interrupted")
    terminal.see(r"^  ✗ touch made")
    terminal.see_no(r"○ (touch made|Look around)|has said nothing")
    terminal.kill()
    home.end_daemons()  # limits count from the start of a daemon
    home.configure('[limits]\nturn_timeout = "2s"\n')
    terminal = start(home, emacs)
    ask(terminal, "quiet stuck")
    terminal.see(r"^  ○ touch made$")
    terminal.see(r"Timed Out: it took longer than it may .2s.")
    terminal.see(r"^ ✗ timed out")
    terminal.see_no(r"○ (touch made|Look around)")


@scenario
def shows_a_thought_that_is_an_image(home, emacs):
    """A thought that is an image is shown with its label, between the text before and after it."""
    terminal = start(home, emacs)
    ask(terminal, "quiet think sketch")
    terminal.see(r"^✻ Thought$")
    terminal.see(r"^  \[image image/png 69 B\]$")
    terminal.see(r"^ ● completed")


@scenario
def compose_loses_nothing(home, emacs):
    """After C-g, C-c C-k or a killed buffer the text can be recalled."""
    terminal = start(home, emacs)
    terminal.press("c")
    terminal.see(r"New session.*C-c C-c send")
    terminal.type("quiet words that took long")
    terminal.see(r"^quiet words that took long$")
    terminal.quit()
    terminal.see(r"^quiet words that took long$")
    terminal.press("C-c", "C-k")
    terminal.see(r"Not sent; M-p in a new prompt brings it back")
    terminal.see_no(r"C-c C-c send")
    terminal.press("c")
    terminal.see(r"C-c C-c send")
    terminal.press("M-p")
    terminal.see(r"^quiet words that took long$")
    terminal.press("C-x", "k", "Enter")
    terminal.see_no(r"C-c C-c send")
    terminal.press("c")
    terminal.see(r"C-c C-c send")
    terminal.press("M-p", "C-c", "C-c")
    terminal.see(r"^❯ quiet words that took long$")
    terminal.see(r"^ ● completed")


@scenario
def shows_the_end(home, emacs):
    """Beside a list and a prompt the transcript keeps some room, and then shows its end again."""
    terminal = start(home, emacs)
    ask(terminal, "quiet words")
    terminal.see(r"^❯ quiet words$")
    terminal.see(r"^ ● completed")
    terminal.press("r")
    terminal.see(r"C-c C-c send")
    terminal.see(r"^ ● completed · [0-9.]+ · demo")
    terminal.press("C-c", "C-k")
    terminal.see_no(r"C-c C-c send")
    terminal.see(r"^❯ quiet words$")
    ask(terminal, "quiet crash", key="r")
    terminal.see(r"^❯ quiet crash$")
    terminal.see(r"^✗ Failed: demo exited with status 3")


@scenario
def server_killed(home, emacs):
    """A server that dies during a turn is restarted; the turn continues."""
    terminal = start(home, emacs)
    ask(terminal, "quiet stream:200@50")
    terminal.see(r"chunk \d+ ")
    first = terminal.server()
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: terminal.server() != first, "another server", screen=terminal.screen)
    terminal.see(r"chunk 199 ")
    terminal.see(r"^ ● completed · [0-9.]+ · demo")
    expect(not terminal.shows(r"(?i)interrupted"), "the turn was interrupted", terminal)
    ask(terminal, "quiet and on", key="r")
    terminal.see(r"^❯ quiet and on$")
    terminal.see(r"^ ● completed")


@scenario
def daemon_killed(home, emacs):
    """A daemon that dies during a turn is restarted; the user can continue the turn."""
    terminal = start(home, emacs)
    ask(terminal, "quiet stream:2000@20")
    terminal.see(r"chunk \d+ ")
    first, server = home.daemon(), terminal.server()
    os.kill(first, signal.SIGKILL)
    terminal.see(r"(?i)■ interrupted")
    wait_for(lambda: home.daemon() not in (None, first), "another daemon", screen=terminal.screen)
    terminal.see(r"^ ■ interrupted · [0-9.]+ · demo")
    ask(terminal, "quiet and on", key="r")
    terminal.see(r"^❯ quiet and on$")
    terminal.see(r"^ ● completed")
    expect(terminal.server() == server, "the server has ended with its daemon", terminal)


@scenario
def emacs_killed(home, emacs):
    """Emacs dies during a turn and an open question: both continue in another Emacs."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"waiting for you")
    terminal.press("l")
    ask(terminal, "quiet stream:2000@20")
    terminal.see(r"chunk \d+ ")
    terminal.kill()
    terminal = start(home, emacs)
    terminal.see(r"^ ◐ +running +[0-9]+ quiet stream")
    terminal.see(r"Duet\[1!\]")
    terminal.press("j")
    terminal.see(r"^\? Write +demo\.txt")
    expect(not terminal.shows(r"stale"), "the question is stale", terminal)
    terminal.press("y")
    terminal.see(r"^ ● completed")
    terminal.see_no(r"Duet\[")
    expect(home.read("demo.txt") == "Turn 1: hello\n", f"demo.txt: {home.read('demo.txt')!r}", terminal)


@scenario
def two_emacsen(home, emacs):
    """Two Emacs processes open a project: both show the session, and an answer counts in both."""
    first = start(home, emacs)
    second = start(home, emacs)
    ask(first, "hello")
    first.see(r"^\? Write +demo\.txt")
    second.see(r"^ \? +waiting for you +[0-9]+ hello +demo")
    second.see(r"Duet\[1!\]")
    first.see(r"Duet\[1!\]")
    second.press("j")
    second.see(r"^\? Write +demo\.txt")
    second.press("y")
    first.see(r"^Duet: Write demo\.txt was allowed by you in Emacs$")
    first.see_no(r"^\? Write")
    for terminal in first, second:
        terminal.see(r"^ ● completed")
        terminal.see_no(r"Duet\[")
    # The Emacs that started the daemon exits with its server; the daemon continues.
    first.await_end(first.close())
    ask(second, "quiet alone", key="r")
    second.see(r"^❯ quiet alone$")
    second.see(r"^ ● completed")
    second.see(r"^Hello from")


@scenario
def menu(home, emacs):
    """Each buffer has the menu, which starts commands."""
    terminal = start(home, emacs)
    terminal.press("?")
    terminal.see(r"c +New session")
    terminal.press("c")
    terminal.see(r"New session.*C-c C-c send")
    terminal.type("quiet from the menu")
    terminal.see(r"^quiet from the menu$")
    terminal.press("C-c", "C-c")
    terminal.see(r"^ ● completed")
    terminal.press("?")
    terminal.see(r"i +Interrupt")
    terminal.see(r"r +Continue")
    terminal.quit_menu()
    terminal.press("?")
    terminal.see(r"q +Close")
    terminal.press("q")
    terminal.see_no(r"i +Interrupt")
    terminal.see(r"^ ● completed")
    terminal.press("?")
    terminal.see(r"X +Stop")
    terminal.press("X")
    terminal.see(r"\(Duet-Sessions \[stopped\]\)")


@scenario
def menu_of_a_small_terminal(home, emacs):
    """The whole menu is visible in 50 columns and 24 lines, beside two windows."""
    terminal = start(home, emacs, columns=50)
    ask(terminal, "quiet hello")
    terminal.see(r"^ ● completed")
    terminal.press("?")
    terminal.see(r"i +Interrupt")
    terminal.see(r"q +Close$")
    terminal.see(r"R +Rules")
    terminal.see(r"X +Stop")
    terminal.see(r"= +All turns$")
    expect(not terminal.shows(r"\\$"), "a line of the menu is too long", terminal)
    terminal.press("q")
    terminal.see_no(r"i +Interrupt")


@scenario
def reads_the_manual(home, emacs):
    """The package contains the manual, and the list of manuals has it."""
    if not home.has_manual():
        raise Missing("makeinfo")
    terminal = Terminal(home, emacs)
    terminal.press("C-h", "i", "m")
    terminal.see(r"^Menu item")
    terminal.type("Duet")
    terminal.press("Enter")
    terminal.see(r"^-.*\(duet\) Top")
    terminal.press("m")
    terminal.see(r"^Menu item")
    terminal.type("Questions")
    terminal.press("Enter")
    terminal.see(r"^-.*\(duet\) Questions")


@scenario
def window_is_filled(home, emacs):
    """A transcript's window shows as much text as fits, down to the end, after other windows close."""
    terminal = start(home, emacs)
    ask(terminal, "quiet stream:400@2000")
    full = r"chunk 3\d\d(.*\n)*.*chunk 400(.*\n){1,5}-UUU.*Duet"
    terminal.see(r"^ ● completed")
    terminal.see(full)
    terminal.press("C-x", "1")
    terminal.see(r"chunk 2[5-9]\d(.*\n)*.*chunk 400(.*\n){1,5}-UUU.*Duet")
    terminal.press("r")
    terminal.see(r"C-c C-c send")
    terminal.see(full)
    terminal.press("C-c", "C-k")
    terminal.see(r"chunk 2[5-9]\d(.*\n)*.*chunk 400(.*\n){1,5}-UUU.*Duet")
