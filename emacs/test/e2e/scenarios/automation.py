"""Builds, previews, budgets and triggers."""

import os

from steps import ask, expect, scenario, start

CONFIG = """default_agent = "demo"

[[builds]]
name = "all"
shell = '''
echo begins
if test -e fixed; then exit 0; fi
if test -e slow; then exec sleep 1000; fi
echo "main.txt:2:5: error: this is wrong"
echo "main.txt:3: warning: this is odd"
exit 3
'''

[[triggers]]
id = "tell"
type = "turn.completed"
action = { type = "notify", channel = "office", message = "the walnuts are cracked" }
"""


@scenario
def builds(home, emacs):
    """The user builds the project, visits each error as with compile, and cancels a long build."""
    home.configure(CONFIG)
    home.write("main.txt", "one\ntwo (2\nthree\n")
    terminal = start(home, emacs, columns=120)  # a newer Emacs lays the mode line out wider
    terminal.press("?")
    terminal.see(r"b +Build")
    terminal.press("b")
    terminal.see(r"^Build failed: all failed: exit status 3")
    terminal.see(r"exit \[3\] \[1 1 0\]")
    terminal.command("next-error")
    terminal.see_cursor_at(r"^two \(2$")
    terminal.command("next-error")
    terminal.see_cursor_at(r"^three$")
    # Flymake has the errors of any client's build.
    terminal.command("flymake-mode")
    terminal.see(r"Flymake\[1 1\]|Flymake\[1 1 0\]")
    home.write("slow", "")
    terminal.command("duet-build")
    terminal.see(r"^begins\n")
    terminal.see(r":run \[0 0 0\]")
    terminal.press("C-x", "o")
    terminal.press("C-c", "C-k")
    terminal.see(r"^Build ended by you")
    home.write("fixed", "")
    terminal.press("g")
    terminal.see(r"^Build finished$")
    terminal.see(r"Flymake\[0 0\]|Flymake\[0 0 0\]")


@scenario
def triggers(home, emacs):
    """A trigger fires, and the user disables it."""
    home.configure(CONFIG)
    terminal = start(home, emacs)
    terminal.command("duet-triggers")
    terminal.see(r"^ on +tell +")
    terminal.press("l")
    ask(terminal, "quiet hello")
    terminal.see(r"^ ● completed")
    terminal.command("duet-triggers")
    terminal.see(r"^ on +tell .* now")
    terminal.press("Enter")
    terminal.see(r"^ now +tell +turn\.completed +shown  notifies: the walnuts")
    terminal.command("duet-triggers")
    terminal.see_cursor_at(r"^ on +tell ")
    terminal.press("x")
    terminal.see(r"^ off +tell ")
    terminal.press("F")
    terminal.see(r"^Type of the event")
    terminal.type("turn.completed")
    terminal.press("Enter")
    terminal.see(r"JSON")
    terminal.press("Enter")
    terminal.see(r"^✓ tell  notifies: the walnuts are cracked")
    expect(not terminal.shows(r"rror"), "something went wrong", terminal)


@scenario
def previews(home, emacs):
    """A preview opens; console messages of its pages are listed, visited and quoted in a prompt."""
    os.mkdir(os.path.join(home.project, "dist"))
    home.write("dist/index.html", "<h1>Walnuts</h1><script src=app.js></script>")
    home.write("dist/app.js", "one\ntwo(\nthree\n")
    # This requests pages like a browser, and sends its own console messages.
    home.init("""
(setq duet-preview-browse-function
      (lambda (address)
        (with-current-buffer (url-retrieve-synchronously
                              (replace-regexp-in-string "//[a-z0-9]+[.]localhost" "//127.0.0.1" address) t)
          (goto-char (point-min))
          (message "The browser got %s" (if (search-forward "Walnuts" nil t) "the page" "another")))))
""")
    terminal = start(home, emacs)
    terminal.command("duet-preview")
    terminal.see(r"^ Preview on port \d+, C-o opens it")
    terminal.see(r"^The browser got the page")
    home.run("duet-rpc", "call", "console", '{"message": "all is well", "url": "/"}')
    terminal.see(r"^[\d:]+ log +all is well  /$")
    home.run("duet-rpc", "call", "error", '{"message": "two is not a function", "url": "/app.js", "line": 2, "column": 4,'
             ' "stack": "at two"}')
    terminal.see(r"^[\d:]+ error +two is not a function  /app\.js:2:4\n +at two$")
    home.run("duet-rpc", "call", "console", '{"level": "warn", "message": "an odd nut", "url": "/"}')
    terminal.see(r"^[\d:]+ warn +an odd nut  /$")
    terminal.press("C-x", "o", "M-<", "n")
    terminal.see_cursor_at(r"two is not a function")
    terminal.press("Enter")
    terminal.see_cursor_at(r"^two\($")
    terminal.command("duet-preview")
    terminal.see(r"^The browser got the page")
    terminal.see(r"c asks about errors")
    terminal.press("C-x", "o", "c")
    terminal.see(r"^error: two is not a function \(/app\.js:2:4\)\nwarn: an odd nut \(/\)$")
    expect(not terminal.shows(r"^log"), "what is no complaint is quoted", terminal)
    terminal.press("C-c", "C-k")
    terminal.see_no(r"C-c C-c send")


@scenario
def budgets(home, emacs):
    """A turn that reaches its budget is interrupted; an invalid budget is not sent."""
    home.configure(CONFIG)
    terminal = start(home, emacs)
    terminal.press("c")
    terminal.see(r"C-c C-c send")
    terminal.type("/budget turns=many tools:20")
    terminal.press("C-c", "C-c")
    terminal.see(r"^turns=many is not a budget: rounds of tool calls, as in turns=20")
    terminal.press("C-a", "C-k")
    terminal.type("/budget turns=3 tools:20")
    terminal.press("C-c", "C-c")
    terminal.see(r"^ ■ +interrupted +[0-9]+ tools:20")
    terminal.see(r"^■ Interrupted: this turn has had 3 rounds of tool calls, of 3 ")
