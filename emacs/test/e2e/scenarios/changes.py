"""The changes of a turn."""

from steps import ask, expect, replace, scenario, start
from terminal import Terminal, settled, wait_for


@scenario
def reviews_changes(home, emacs):
    """The changes of a turn are shown; one is reverted, and the revert is undone."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "y")
    terminal.see(r"^ ● completed")
    terminal.press("=")
    terminal.see(r"^\+Turn 1: hello$")
    terminal.press_until(["n"], r"demo\.txt")
    terminal.press("k")
    terminal.see(r"^Delete demo\.txt, which this turn has made\? \(y or n\)")
    terminal.press("y")
    wait_for(lambda: home.read("demo.txt") is None, "the change to be taken back", screen=terminal.screen)
    terminal.see(r"^✗ reverted")
    terminal.press("u")
    wait_for(lambda: home.read("demo.txt") == "Turn 1: hello\n", "the change to be there again",
             screen=terminal.screen)


@scenario
def shares_decisions_with_a_shell(home, emacs):
    """A decision made in a shell is shown at once, and the shell lists one made in Emacs."""
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "y")
    terminal.see(r"^ ● completed")
    terminal.press("=")
    terminal.see(r"^ 0 of 1 reviewed")
    home.run("duet-rpc", "changes", "--accept", "demo.txt")
    terminal.see(r"^✓ accepted  @@")
    home.run("duet-rpc", "changes", "--revert", "demo.txt")
    terminal.see(r"^✗ reverted  @@")
    terminal.press("u")
    terminal.see(r"^Put back into demo\.txt$")
    expect("open" in home.run("duet-rpc", "changes"), "the shell lists another state", terminal)
    expect(home.read("demo.txt") == "Turn 1: hello\n", "the change is not in the file again", terminal)


@scenario
def reverts_one_of_two(home, emacs):
    """One of two changes in a file is reverted on disk, unless a buffer has unsaved edits of the file."""
    lines = [f"line {number}" for number in range(1, 21)]
    home.write("demo.txt", "".join(line + "\n" for line in lines))
    terminal = start(home, emacs, lines=50)
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "e")
    terminal.see(r"C-c C-c Allow with your edit")
    replace(terminal, "line 3", "LINE THREE")
    terminal.press("C-c", "C-c")
    terminal.see(r"^ ● completed")
    terminal.see(r"^● Write demo\.txt \+2 −1\n +@@ demo\.txt:3\n")
    terminal.press("=")
    terminal.see(r"^ 0 of 2 reviewed")
    terminal.see(r"^\+LINE THREE$")
    terminal.see(r"^\+Turn 1: hello$")
    terminal.press("a")
    terminal.see(r"^ 1 of 2 reviewed")
    terminal.see_no(r"^\+LINE THREE$")
    terminal.press("p", "u")
    terminal.see(r"^ 0 of 2 reviewed")
    terminal.press("k")
    terminal.see(r"^Reverted in demo\.txt; u puts it back$")
    whole = "".join(line + "\n" for line in [*lines, "Turn 1: hello"])
    wait_for(lambda: home.read("demo.txt") == whole, "one change to be taken back", screen=terminal.screen)
    # Unsaved edits prevent a revert.
    terminal.press("Enter")
    terminal.see_cursor_at(r"^line 18$")
    terminal.type("mine ")
    terminal.see(r"^mine line 18$")
    terminal.press("C-x", "o")
    terminal.see_cursor_at(r"^@@ -18")
    terminal.press("k")
    terminal.see(r"^demo\.txt has changes that are not saved; save or undo them first$")
    expect(home.read("demo.txt") == whole, "demo.txt was changed", terminal)
    terminal.see(r"^mine line 18$")


@scenario
def follows_what_an_agent_writes(home, emacs):
    """A buffer is updated when an agent writes its file; without that, reverting a change still works."""
    home.write("demo.txt", "one\n")
    terminal = Terminal(home, emacs)
    terminal.press("C-x", "C-f")
    terminal.type("demo.txt")
    terminal.press("Enter")
    terminal.see(r"^one$")
    terminal.command("duet")
    terminal.see(r"^ No sessions yet")
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "y")
    terminal.see(r"^ ● completed")
    terminal.press("C-x", "b")
    terminal.type("demo.txt")
    terminal.press("Enter")
    terminal.see(r"^Turn 1: hello$")
    terminal.press("M-:")
    terminal.type("(setq duet-revert-buffers nil)")
    terminal.press("Enter")
    terminal.see(r"^nil$")
    terminal.press("C-x", "1")
    terminal.command("duet")
    ask(terminal, "again")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "y")
    terminal.see(r"^ ● completed")
    terminal.press("=")
    terminal.see(r"^\+Turn 1: again$")
    terminal.press("k")
    terminal.see(r"^Reverted in demo\.txt; u puts it back$")
    wait_for(lambda: home.read("demo.txt") == "one\nTurn 1: hello\n", "the change to be taken back",
             screen=terminal.screen)
    terminal.press("C-x", "b")
    terminal.type("demo.txt")
    terminal.press("Enter")
    terminal.press("C-x", "1")
    terminal.see_no(r"again")
    terminal.see(r"^Turn 1: hello$")


@scenario
def compares_with_ediff(home, emacs):
    """Ediff shows a file before and after a turn, and restores the windows."""
    home.write("demo.txt", "one\n")
    terminal = start(home, emacs)
    ask(terminal, "hello")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "y")
    terminal.see(r"^ ● completed")
    terminal.see_no(r"Duet\[")
    terminal.press("=")
    terminal.see(r"^\+Turn 1: hello$")
    before = settled(lambda: shown(terminal))
    terminal.press("E")
    terminal.see(r"^ *A: .*demo\.txt \(before\)")
    terminal.see(r"^ *B: .*demo\.txt \(after\)")
    terminal.press("n")
    terminal.see(r"diff 1 of 1")
    terminal.press("q")
    terminal.see(r"Quit this Ediff session\? \(y or n\)")
    terminal.press("y")
    wait_for(lambda: shown(terminal) == before, "the windows to be as they were", screen=terminal.screen)
    terminal.command("list-buffers")
    terminal.see(r"^\S* +\*duet diff: hello\*")
    expect(not terminal.shows(r"Control Panel|\(before\)|\(after\)"), "Ediff has left buffers behind", terminal)


def shown(terminal):
    """Returns the screen without the echo area."""
    return terminal.screen().splitlines()[:-1]


@scenario
def chooses_an_attempt(home, emacs):
    """Two agents get a prompt; one attempt is landed, and a ref keeps the work of the other."""
    for command in (("init", "-qb", "main"), ("config", "user.name", "Ann"), ("config", "user.email", "ann@example.org"),
                    ("add", "-A"), ("commit", "-qm", "files")):
        home.run("git", *command)
    terminal = start(home, emacs, columns=120, lines=40)
    terminal.press("c")
    terminal.see(r"New session.*C-c C-s several agents")
    terminal.press("C-c", "C-s")
    terminal.see(r"^Agents, or AGENT=MODEL")
    terminal.type("demo,demo")
    terminal.press("Enter")
    terminal.see(r"New session · demo, demo: several attempts")
    terminal.type("fix it")
    terminal.press("C-c", "C-c")
    terminal.see(r"waiting for you +1\.1 +demo(.*\n)+.*waiting for you +2\.1 +demo")
    for _ in range(2):
        terminal.press("j")
        terminal.see(r"^ . waiting for you · [0-9.]+ · demo · duet/fix-it-demo")
        terminal.press("y")
        terminal.see(r"^ ● completed · [0-9.]+ · demo · duet/fix-it-demo")
    terminal.press("%")
    terminal.see(r"a +Compare the attempts")
    terminal.press("a")
    terminal.see(r"completed +1\.1 +demo +1 +\+1 -0(.*\n)+.*completed +2\.1 +demo +1 +\+1 -0")
    terminal.press("=")
    terminal.see(r"^\+Turn 1: fix it$")
    terminal.press("q", "a")
    terminal.see(r"^Land demo \(1\.1\), and discard demo \(2\.1\)\?")
    terminal.press("y")
    terminal.see(r"^Landed on main: 1 commit, 1 file; discarded 1 other attempt$")
    terminal.see(r"git branch NAME refs/duet/discarded/fix-it-demo-2 brings its work back")
    expect(home.read("demo.txt") == "Turn 1: fix it\n", "it was not landed", terminal)
    expect("Turn 1: fix it" in home.run("git", "show", "refs/duet/discarded/fix-it-demo-2:demo.txt"),
           "the work was not kept", terminal)


@scenario
def lands_a_worktree(home, emacs):
    """A session works in a worktree; its work lands, and discarded work is kept in a ref."""
    for command in (("init", "-qb", "main"), ("config", "user.name", "Ann"), ("config", "user.email", "ann@example.org"),
                    ("add", "-A"), ("commit", "-qm", "files")):
        home.run("git", *command)
    terminal = start(home, emacs, columns=100, lines=40)
    terminal.press("c")
    terminal.see(r"New session.*C-c C-t worktree")
    terminal.press("C-c", "C-t")
    terminal.see(r"New session · demo, in a worktree")
    terminal.type("fix it")
    terminal.press("C-c", "C-c")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.see(r"· duet/fix-it ·")
    terminal.press("j", "y")
    terminal.see(r"^ ● completed .*duet/fix-it")
    expect(home.read("demo.txt") is None, "the project was changed", terminal)
    terminal.press("%")
    terminal.see(r"k +Discard")
    terminal.press("l")
    terminal.see(r"^Landed on main: 1 commit, 1 file$")
    terminal.see(r"^■ Landed duet/fix-it on main")
    expect(home.read("demo.txt") == "Turn 1: fix it\n", "it was not landed", terminal)
    ask(terminal, "fix more", key="r")
    terminal.see(r"^\? Write +demo\.txt")
    terminal.press("j", "y")
    terminal.see(r"^ ● completed")
    home.write("demo.txt", "mine\n")
    terminal.press("%", "l")
    terminal.see(r"^Nothing was landed: these files of yours are not committed")
    terminal.see(r"^Nothing was landed: 1 file of yours would be overwritten$")
    terminal.press("%", "k")
    terminal.see(r"^Changed file that is not committed:\n  demo\.txt$")
    terminal.see(r"^Discard the worktree with this work\?")
    terminal.press("y")
    terminal.see(r"its work is kept, git branch NAME refs/duet/discarded/fix-it")
    terminal.see(r"^ ● completed .*worktree gone")
    expect(home.read("demo.txt") == "mine\n", "a file of the user was changed", terminal)
    expect("Turn 2: fix more" in home.run("git", "show", "refs/duet/discarded/fix-it:demo.txt"), "the work was not kept",
           terminal)
