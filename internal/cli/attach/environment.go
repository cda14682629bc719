package attach

import (
	"slices"
	"strings"
)

// ofTerminal are the variables that tell programs what this terminal can do, and
// which emulator it is. Its size is not among them: others may be attached.
var ofTerminal = []string{
	"TERM", "TERMINFO", "TERMINFO_DIRS", "TERMCAP", "COLORTERM",
	"INSIDE_EMACS", "EMACS_VTERM_PATH", "EAT_SHELL_INTEGRATION_DIR",
}

// ofUser are the variables that are the same in all terminals of a user. The
// hub may lack them: an editor or a daemon has started it.
var ofUser = []string{
	"USER", "LOGNAME", "EDITOR", "VISUAL", "PAGER", "SSH_AUTH_SOCK",
	"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "LANG",
}

// passedOn is what of this environment, NAME=VALUE each, a terminal gets that
// somebody starts by hand; more if this is a terminal.
func passedOn(environ []string, isTerminal bool) map[string]string {
	env := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		passed := slices.Contains(ofUser, name) || strings.HasPrefix(name, "LC_") ||
			isTerminal && slices.Contains(ofTerminal, name)
		if passed && value != "" {
			env[name] = value
		}
	}
	return env
}
