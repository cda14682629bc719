"""Projects on other machines, by TRAMP."""

from steps import ask, scenario
from terminal import Terminal

# The other machine is this one: TRAMP starts a shell here, as in its own tests.
MOCK = """
(require 'tramp)
(add-to-list 'tramp-methods
             '("mock" (tramp-login-program "sh") (tramp-login-args (("-i")))
               (tramp-remote-shell "/bin/sh") (tramp-remote-shell-args ("-c"))
               (tramp-connection-timeout 60)))
(add-to-list 'tramp-default-host-alist (list "\\\\`mock\\\\'" nil (system-name)))
(setq enable-remote-dir-locals nil vc-handled-backends nil auto-save-default nil make-backup-files nil)
"""


@scenario
def other_machine(home, emacs):
    """In a session on another machine a question is answered, its file visited, its change reverted."""
    home.init(MOCK + f"""
(connection-local-set-profile-variables
 'duet-there '((duet-rpc-command . ("{home.programs}/duet-rpc"))))
(connection-local-set-profiles '(:application tramp :protocol "mock") 'duet-there)
(setq duet-rpc-command '("nowhere-here"))
""")
    terminal = Terminal(home, emacs, lines=40)
    terminal.press("C-x", "C-f")
    terminal.see(r"^Find file: ")
    terminal.press("C-a", "C-k")
    terminal.type(f"/mock::{home.project}/new.txt")
    terminal.press("Enter")
    terminal.see(r"new\.txt")
    terminal.command("duet")
    terminal.see(r"^ No sessions yet")
    ask(terminal, "hello Grüße")
    terminal.see(r"\[y\] Allow")
    terminal.press("y")
    terminal.see(r"^ ● completed")
    terminal.press("C-x", "1")
    terminal.see(r"^  @@ demo\.txt:1$")
    terminal.press("=")
    terminal.see(r"^● demo\.txt  new file$")
    terminal.see(r"^\+Turn 1: hello Grüße$")
    terminal.press("C-x", "1", "M-<", "Enter")
    terminal.see(r"^Turn 1: hello Grüße$")
    terminal.see(r"demo\.txt .*\(Text")
    terminal.press("C-x", "b", "*duet d", "Tab", "Enter")
    terminal.see(r"^● demo\.txt  new file$")
    terminal.press("M-<", "k")
    terminal.see(r"\(y or n\)")
    terminal.press("y")
    terminal.see(r"1 of 1 reviewed|all reviewed")
    terminal.command("duet-projects")
    terminal.see(r"● +completed +project@\S* +[0-9]+ hello Grüße")
