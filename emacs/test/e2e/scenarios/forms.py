"""Forms from agents."""

from steps import ask, scenario, start


@scenario
def fills_in_a_form(home, emacs):
    """Each field is read; an invalid value is refused with a message; C-g keeps the values."""
    terminal = start(home, emacs)
    ask(terminal, "quiet form")
    terminal.see(r"^\? What shall I order\?")
    terminal.see(r"Colour: one of red, green, blue \[green\]$")
    terminal.see(r"^ +\[r\] Answer  \[n\] Decline")
    terminal.press("r")
    terminal.see(r"^Colour \(")
    terminal.type("red")
    terminal.press("Enter")
    terminal.see(r"^How many \(")
    terminal.type("12")
    terminal.press("Enter")
    terminal.see(r"^12 is not a whole number from 1 to 9$")
    terminal.see(r"^How many \(.*\): 12$")
    terminal.quit()
    terminal.see(r"Duet\[1!\]")
    terminal.press("r")
    terminal.see(r"^Colour \(one of red, green, blue, default red; C-c C-k discards all\):$")
    terminal.press("Enter")
    terminal.see(r"^How many \(.*\): 12$")
    terminal.press("C-a", "C-k")
    terminal.type("3")
    terminal.press("Enter")
    terminal.see(r"^Wrapped as a gift \(")
    terminal.press("Enter")
    terminal.see(r"^Name on it \(")
    terminal.type("A")
    terminal.press("Enter")
    terminal.see(r"^A is not a text of 2 to 20 characters$")
    terminal.press("C-a", "C-k")
    terminal.type("Ann")
    terminal.press("Enter")
    terminal.see(r"^Colour: red$")
    terminal.see(r"^Name on it: Ann$")
    terminal.press("y")
    terminal.see(r'You answered: .*"count":3.*"name":"Ann"')
    terminal.see(r"^ ● completed")


@scenario
def declines_a_form(home, emacs):
    """One key declines a form; the minibuffer can leave it without an answer."""
    terminal = start(home, emacs)
    ask(terminal, "quiet form")
    terminal.see(r"^ +\[r\] Answer  \[n\] Decline")
    terminal.press("n")
    terminal.see(r"^Declined: What shall I order\?$")
    terminal.see(r"You declined\.")
    terminal.see(r"^ ● completed")
