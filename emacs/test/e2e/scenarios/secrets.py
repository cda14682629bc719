"""Keys of services, and the places that must not have them."""

import os
import subprocess

from steps import ask, expect, scenario, start

KEY = "sesame-4711"

CONFIG = '''default_agent = "locked"
[agents.locked]
driver = "command"
command = ["/bin/sh", "-c", "printf 'The key has %s characters' $(printf %s \\"$THE_KEY\\" | wc -c)"]
keys = { THE_KEY = "cave" }
'''

# The key is concatenated, so that the search itself does not contain it.
INIT = f'''
(setq duet-events-buffer-size 200000)
(defun look-for-the-key ()
  (interactive)
  (let ((key (concat "{KEY[:4]}" "{KEY[4:]}")))
    (message "It is in these buffers: %S"
             (delq nil (mapcar (lambda (buffer)
                                 (with-current-buffer buffer
                                   (save-restriction
                                     (widen)
                                     (and (string-search key (buffer-string))
                                          (buffer-name)))))
                               (buffer-list))))))
'''


@scenario
def gives_a_key(home, emacs):
    """Without a key, the user reads what to write; then the agent gets the key, and no file or log has it."""
    home.init(INIT)
    home.configure(CONFIG)
    terminal = start(home, emacs, columns=140)
    ask(terminal, "open up")
    terminal.see(r"^Duet: an agent needs a key for cave\.  Add a line to .*: machine cave login apikey password KEY$")
    terminal.see(r"^ ✗ failed")
    authinfo = os.path.join(home.path, ".authinfo")
    with open(authinfo, "w", encoding="utf-8") as file:
        file.write(f"machine cave login apikey password {KEY}\n")
    ask(terminal, "open now", key="r")
    terminal.see(rf"^The key has {len(KEY)} characters")
    terminal.see(r"^ ● completed")
    terminal.command("look-for-the-key")
    terminal.see(r"^It is in these buffers: nil$")
    found = subprocess.run(["grep", "-rlaF", KEY, home.path], capture_output=True, text=True).stdout.split()
    expect(found == [authinfo], f"the key is in {found}", terminal)
