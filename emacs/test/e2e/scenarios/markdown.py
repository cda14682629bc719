"""Markdown in messages of agents."""

import os
import re

from steps import ask, expect, scenario, start
from terminal import wait_for

# A program that answers each prompt with a page.
CONFIG = """default_agent = "page"

[agents.page]
driver = "command"
command = ["sh", "-c", "cat page.md", "{prompt}"]
"""

PAGE = """# The plan

Some **bold** words, `code` and a_b_c, *.el:

- look at src/main.py:2
- read [the manual](https://example.org/manual)
  1. twice

> Well said,
> *somebody*

```python
def answer():
    return 42  # of course
```

| Name | 名字 | Count |
|------|:----:|------:|
| **a** | 一 | 1 |
| a longer one | 二二 | 1000 |

---

The end.
"""

SHOWN = r"""^The plan

Some bold words, code and a_b_c, \*\.el:

• look at src/main\.py:2
• read the manual
  1\. twice

│ Well said,
│ somebody

── python
def answer\(\):
    return 42  # of course
──

│ Name         │ 名字 │ Count │
├──────────────┼──────┼───────┤
│ a            │  一  │     1 │
│ a longer one │ 二二 │  1000 │

────────────────────────────────────────

The end\.$"""


def page(home, emacs, **arguments):
    """Starts Emacs, lets an agent send the page, and returns the terminal."""
    home.configure(CONFIG)
    home.write("page.md", PAGE)
    os.mkdir(os.path.join(home.project, "src"))
    home.write("src/main.py", "one\ntwo\nthree\n")
    terminal = start(home, emacs, lines=60, **arguments)
    ask(terminal, "say it")
    terminal.see(r"^ ● completed")
    terminal.press("C-x", "1")
    return terminal


@scenario
def markdown_is_shown(home, emacs):
    """A page of Markdown is rendered; one key shows its source, another copies its code."""
    terminal = page(home, emacs)
    terminal.see(SHOWN)
    terminal.press("`")
    terminal.see(r"^\| \*\*a\*\* \| 一 \| 1 \|$")
    terminal.see(r"^# The plan$")
    terminal.press("`")
    terminal.see(SHOWN)
    terminal.press("Y")
    terminal.see(r"^Copied 2 lines of python$")
    terminal.press("M-<", "n", "C-@", "M->", "M-w", "C-x", "b")
    terminal.see(r"^Switch to buffer")
    terminal.type("copy")
    terminal.press("Enter")
    terminal.press("C-y")
    terminal.see(r"^The end\.$")
    terminal.press("C-x", "C-w")
    terminal.see(r"^Write file")
    terminal.type("/copied.md")
    terminal.press("C-a", "C-k")
    terminal.type(os.path.join(home.project, "copied.md"))
    terminal.press("Enter")
    copied = wait_for(lambda: home.read("copied.md"), "the copy", screen=terminal.screen)
    expect(copied.strip() == PAGE.strip(), f"copied: {copied!r}", terminal)


@scenario
def markdown_in_sixty_columns(home, emacs):
    """The page is rendered the same in a narrow window."""
    terminal = page(home, emacs, columns=60)
    terminal.see(SHOWN)


@scenario
def markdown_links(home, emacs):
    """RET opens a named file at its line, and asks before it opens a hidden address."""
    terminal = page(home, emacs)
    terminal.see(SHOWN)
    terminal.press("M-<", "C-s")
    terminal.see(r"I-search:")
    terminal.type("the man")
    terminal.press("Enter", "Enter")
    terminal.see(r"^Open https://example\.org/manual\? \(y or n\)")
    terminal.press("n")
    terminal.see(r"^Not opened$")
    terminal.press("M-<", "C-s")
    terminal.see(r"I-search:")
    terminal.type("src/m")
    terminal.press("Enter", "Enter")
    terminal.see(r"main\.py +All")
    terminal.see_cursor_at(r"^two$")


@scenario
def headings_in_imenu(home, emacs):
    """Imenu goes to a heading of the agent."""
    terminal = page(home, emacs)
    terminal.see(SHOWN)
    terminal.command("imenu")
    terminal.see(r"^Index item")
    terminal.type("Headings")
    terminal.press("Enter")
    terminal.see(r"^Index item")
    terminal.type("The plan")
    terminal.press("Enter")
    terminal.see_cursor_at(r"^The plan$")


@scenario
def code_keeps_the_message(home, emacs):
    """The echo area keeps its message while Emacs loads the mode of a language for the colours of code."""
    home.init("""(with-eval-after-load 'duet-block
  (advice-add 'duet-code--hidden :before (lambda (mode) (unless (featurep 'python) (message "Said before %s" mode)))))
""")
    home.configure(CONFIG)
    home.write("page.md", PAGE)
    terminal = start(home, emacs, lines=60)
    ask(terminal, "say it")
    wait_for(lambda: re.search(r"\x1b\[[\d;]+mdef\x1b", terminal.styled()), "the colours of code", screen=terminal.screen)
    expect(terminal.shows(r"^Said before python-mode$"), "the message is gone", terminal)


@scenario
def next_error_in_a_transcript(home, emacs):
    """M-g n visits the locations that the agent names, from the transcript and from the file."""
    home.write("rows.txt", "one\ntwo\nthree\n")
    terminal = start(home, emacs)
    ask(terminal, "quiet look at rows.txt:2 and at rows.txt:3")
    terminal.see(r"^ ● completed")
    terminal.see(r"That is all\.")
    terminal.press("M-g", "n")
    terminal.see(r"rows\.txt +All +L2 ")
    terminal.press("M-g", "n")
    terminal.see(r"rows\.txt +All +L3 ")
    terminal.press("M-g", "p")
    terminal.see(r"rows\.txt +All +L2 ")
    terminal.see(r"\*duet: quiet look")
