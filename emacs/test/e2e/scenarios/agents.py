"""Agents: settings, attachments and logins."""

import os
import sys
import zlib

from steps import ask, scenario, start

AGENT = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "agent.py")

# A white pixel as a PNG file.
PIXEL = bytes.fromhex("89504e470d0a1a0a") + b"".join(
    len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")
    for kind, body in ((b"IHDR", bytes.fromhex("00000001000000010800000000")), (b"IDAT", zlib.compress(b"\0\xff")),
                       (b"IEND", b"")))


def configure(home, *arguments):
    """Makes choosy, an agent with its own settings, the default agent."""
    command = ", ".join(f'"{word}"' for word in (sys.executable, "-B", AGENT, *arguments))
    home.configure(f'default_agent = "choosy"\n[agents.choosy]\ndriver = "acp"\ncommand = [{command}]\n')


@scenario
def sets_an_agent(home, emacs):
    """The user sets the mode, the model and an option of an agent, between turns and during one."""
    configure(home)
    terminal = start(home, emacs, columns=110)
    ask(terminal, "hello")
    terminal.see(r"^Mode ask, model large, thinking low\.")
    terminal.see(r"^ ● completed · [0-9.]+ · choosy")
    terminal.command("duet-set-model")
    terminal.see(r"^Model \(default Large\):")
    terminal.type("gigantic")
    terminal.press("Enter")
    terminal.see(r"\[No match\]")
    terminal.press("C-a", "C-k")
    terminal.type("Sm")
    terminal.press("Tab")
    terminal.see(r"^Model \(default Large\): Small$")
    terminal.press("Enter")
    terminal.see(r"^Model: Small, from the next prompt on$")
    ask(terminal, "again", key="r")
    terminal.see(r"^Mode ask, model small, thinking low\.")
    terminal.see(r"^ ● completed · [0-9.]+ · choosy")
    # A setting that changes while the agent works takes effect at once.
    ask(terminal, "wait for it", key="r")
    terminal.see(r"^ ◐ running")
    terminal.command("duet-set-mode")
    terminal.see(r"^Mode \(default Ask first\):")
    terminal.type("Just")
    terminal.press("Tab")
    terminal.see(r"Just code$")
    terminal.press("Enter")
    terminal.see(r"^Mode code, model small, thinking low\.")
    terminal.see(r"^ ● completed · [0-9.]+ · choosy · Small · Just code")
    ask(terminal, "wait again", key="r")
    terminal.see(r"^ ◐ running")
    terminal.command("duet-set-option")
    terminal.see(r"^Thinking \(default Low\):")
    terminal.type("High")
    terminal.press("Enter")
    terminal.see(r"^Thinking is High")
    terminal.see(r"^Mode code, model small, thinking high\.")


@scenario
def sets_an_agent_in_a_prompt(home, emacs):
    """Directives of a prompt set the agent; an unknown value is an error, and the prompt stays."""
    configure(home)
    home.init("(setq duet-reply-box t)\n")
    terminal = start(home, emacs, columns=110, lines=40)
    ask(terminal, "hello")
    terminal.see(r"^Mode ask, model large, thinking low\.")
    terminal.see(r"^ ● completed · [0-9.]+ · choosy")
    # In the box, word by word.
    terminal.press("M-<", "r")
    terminal.type("/mod")
    terminal.press("Tab")
    terminal.see(r"^❯ /mode$")
    terminal.type("l")
    terminal.press("Tab")
    terminal.see(r"^❯ /model ?$")
    terminal.type(" sm")
    terminal.press("Tab")
    terminal.see(r"^❯ /model +small ?$")
    terminal.type(" /thou")
    terminal.press("Tab")
    terminal.see(r"^❯ /model +small +/thought ?$")
    terminal.type(" high go on")
    terminal.press("Enter")
    terminal.see(r"^❯ go on\n(.*\n)*Mode ask, model small, thinking high\.")
    terminal.see(r"^ ● completed · [0-9.]+ · choosy · Small")
    # An unknown value.
    terminal.press("M-<", "r")
    terminal.type("/model gigantic and on")
    terminal.press("Enter")
    terminal.see(r"^/model gigantic is unknown; known are: large, small$")
    terminal.see(r"^❯ /model gigantic and on$")
    terminal.press("C-c", "C-k")
    # A prompt that has only a directive is not sent.
    terminal.type("/mode code")
    terminal.press("Enter")
    terminal.see(r"^Set, from the next prompt on$")
    terminal.see(r"^❯ *$")
    # A new session.
    terminal.press("M-<", "q", "c")
    terminal.see(r"C-c C-c send")
    terminal.type("/agent demo quiet words")
    terminal.press("C-c", "C-c")
    terminal.see(r"^ ● completed · [0-9.]+ · demo")
    terminal.see(r"^❯ quiet words\n")


@scenario
def attaches_files(home, emacs):
    """An image is attached as a file; a file of the project is mentioned with @."""
    with open(os.path.join(home.project, "dot.png"), "wb") as file:
        file.write(PIXEL)
    home.write("notes.txt", "buy milk\n")
    terminal = start(home, emacs, columns=110)
    terminal.press("c")
    terminal.see(r"C-c C-c send")
    terminal.type("quiet content of @no")
    terminal.press("Tab")
    terminal.see(r"^quiet content of @notes\.txt")
    terminal.press("C-c", "C-y")
    terminal.see(r"^Emacs in a terminal cannot paste images: save it to a file, and attach that with C-c C-a$")
    terminal.press("C-c", "C-a")
    terminal.see(r"^Attach:")
    terminal.type("dot.png")
    terminal.press("Enter")
    terminal.see(r"^\[dot\.png, 67 B\]  C-c C-d takes it away$")
    terminal.press("C-c", "C-d")
    terminal.see(r"^Removed: dot\.png, 67 B$")
    terminal.see_no(r"^\[dot\.png")
    terminal.press("C-c", "C-a")
    terminal.see(r"^Attach:")
    terminal.type("dot.png")
    terminal.press("Enter")
    terminal.see(r"^\[dot\.png")
    terminal.press("C-c", "C-c")
    terminal.see(r"You gave me an image, image/png, \d+\s+characters\.")
    terminal.see(r"You gave me file://.*/notes\.txt: .*buy milk")
    terminal.see(r"^  \[image .*dot\.png.*image/png")
    terminal.see(r"^ ● completed")


@scenario
def takes_no_images(home, emacs):
    """An agent that takes no images reports an error, and the prompt is not lost."""
    configure(home)
    with open(os.path.join(home.project, "dot.png"), "wb") as file:
        file.write(PIXEL)
    terminal = start(home, emacs, columns=110)
    terminal.press("c")
    terminal.see(r"C-c C-c send")
    terminal.type("look at this")
    terminal.press("C-c", "C-a")
    terminal.see(r"^Attach:")
    terminal.type("dot.png")
    terminal.press("Enter")
    terminal.see(r"dot\.png")
    terminal.press("C-c", "C-c")
    terminal.see(r"^✗ Failed: choosy takes no content of the type image in prompts: it takes text and links")
    # The text is there again, for a prompt without the image.
    terminal.press("r")
    terminal.see(r"C-c C-c send")
    terminal.press("M-p")
    terminal.see(r"^look at this$")
    terminal.press("C-c", "C-c")
    terminal.see(r"^Mode ask, model large, thinking low\.")


@scenario
def signs_in(home, emacs):
    """An agent without a login names the remedy; the user signs in and out."""
    configure(home, "--account", os.path.join(home.path, "signed-in"))
    terminal = start(home, emacs, columns=110)
    ask(terminal, "hello")
    terminal.see(r"^✗ Failed: choosy wants you to log in: [^✗]*M-x duet-login")
    terminal.command("duet-login")  # the transcript provides the agent
    terminal.see(r"^Sign in to choosy:")
    terminal.type("Br")
    terminal.press("Tab", "Enter")
    terminal.see(r"^You are signed in to choosy$")
    ask(terminal, "again", key="r")
    terminal.see(r"^Mode ask, model large, thinking low\.")
    terminal.command("duet-logout")
    terminal.see(r"^Sign out of \(default choosy\):")
    terminal.press("Enter")
    terminal.see(r"^Signed out of choosy$")
