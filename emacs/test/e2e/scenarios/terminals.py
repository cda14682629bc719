"""Terminals of the server."""

import glob

from steps import scenario, start
from terminal import Missing

# Only Debian's Emacs finds Debian's vterm, which works in others.
VTERM = "/usr/share/emacs/site-lisp/elpa-src/vterm-*"
INIT = f"""
(unless (locate-library "vterm")
  (dolist (pattern '("{VTERM}" "/usr/lib/*/emacs-libvterm"))
    (setq load-path (append (file-expand-wildcards pattern) load-path))))
"""


@scenario
def terminals_in_term(home, emacs):
    """With term, a terminal is started, shared by two Emacs processes, left and attached again."""
    share(home, emacs, "term", r"^Process .* finished$")


@scenario
def terminals_in_vterm(home, emacs):
    """The same works with vterm."""
    if not glob.glob(VTERM):
        raise Missing("vterm")
    home.init(INIT)
    share(home, emacs, "vterm", r"\*duet terminal: sh\*.*\(VTerm: ended\)")


def share(home, emacs, backend, ended):
    """Two Emacs processes share a terminal, one leaves it, and it ends."""
    home.init(f"(setq duet-terminal-backend '{backend})\n", add=True)
    first = start(home, emacs)
    second = start(home, emacs)
    first.command("duet-terminal")
    first.see(r"\*duet terminal: project\*")
    first.see(r"^[#$] *$")
    # Programs know the capabilities of their terminal.
    first.type("tput colors && echo it has $(tput colors) colours")
    first.press("Enter")
    first.see(r"^it has [1-9]\d* colours$")
    first.type("N=42; echo $N it is")
    first.press("Enter")
    first.see(r"^42 it is$")
    second.command("duet-terminals")
    second.see(r"^ term_\S+ +sh +\. +1 attached$")
    second.press("M-<", "Enter")
    second.see(r"\*duet terminal: sh\*")
    second.see(r"^42 it is$")
    second.type("echo $N again")
    second.press("Enter")
    first.see(r"^42 again$")
    # Killing the buffer does not end the terminal.
    first.press("C-x", "k", "Enter")
    first.see_no(r"\*duet terminal: project\*")
    second.type("echo $N alone")
    second.press("Enter")
    second.see(r"^42 alone$")
    first.command("duet-terminals")
    first.see(r"^ term_\S+ +sh +\. +1 attached$")
    first.press("M-<", "Enter")
    first.see(r"\*duet terminal: sh\*")
    first.see(r"^42 alone$")
    first.type("exit")
    first.press("Enter")
    first.see(ended)
    second.see(ended)
    second.see(r"No terminals\.  c starts one")


@scenario
def ends_a_terminal(home, emacs):
    """A program runs in a terminal without a buffer; k in the list ends it after a confirmation."""
    home.init("(setq duet-terminal-backend 'term)\n")
    terminal = start(home, emacs)
    terminal.command("duet-terminal", prefix=["C-u"])
    terminal.see(r"^Run in a terminal:$")
    terminal.type("cat -n")
    terminal.press("Enter")
    terminal.see(r"C-\] detaches")
    terminal.type("words")
    terminal.press("Enter")
    terminal.see(r"^ +1 +words$")
    terminal.press("C-]")
    terminal.see(r"^— detached; the program is still running")
    terminal.see(r"^Process .* finished$")
    terminal.see(r"^ Detached: g attaches again, q buries this buffer")
    terminal.press("g")
    terminal.see_no(r"Detached")
    terminal.see(r"^ +1 +words$")
    terminal.type("more")
    terminal.press("Enter")
    terminal.see(r"^ +2 +more$")
    terminal.press("C-]")
    terminal.see(r"^ Detached: g attaches again, q buries this buffer")
    terminal.press("q")
    terminal.see_no(r"Detached")
    terminal.command("duet-terminals")
    terminal.see(r"^ term_\S+ +cat -n +\.$")
    terminal.press("M-<", "k")
    terminal.see(r"^End cat -n\? \(yes or no\)")
    terminal.quit()
    terminal.see(r"^ term_\S+ +cat -n +\.$")
    terminal.press("k")
    terminal.see(r"^End cat -n\? \(yes or no\)")
    terminal.type("yes")
    terminal.press("Enter")
    terminal.see(r"No terminals\.  c starts one")
