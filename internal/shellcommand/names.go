package shellcommand

import (
	"slices"
	"strings"
)

// shellNames are programs that run a script.
var shellNames = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh", "rbash", "nu", "xonsh", "elvish"}

// runners are commands that run what their arguments say.
var runners = []string{
	"!", "-", ".", "ash", "builtin", "bwrap", "busybox", "caffeinate", "chroot", "chrt", "command", "coproc", "csh", "dbus-run-session", "doas", "entr", "env", "eval",
	"exec", "expect", "fd", "fdfind", "find", "flock", "foreach", "gtimeout", "ionice", "ltrace", "mksh", "nice", "nocorrect", "noglob", "nohup", "nsenter", "parallel", "pkexec", "prlimit",
	"proot", "rbash", "repeat", "rlwrap", "runuser", "script", "setpriv", "setsid", "source", "ssh", "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset", "tcsh", "time", "timeout", "toybox",
	"trap", "unbuffer", "unshare", "watch", "xargs", "bash", "dash", "fish", "ksh", "sh", "zsh", "alias", "nu", "xonsh", "elvish", "pwsh", "powershell", "powershell.exe", "cmd", "cmd.exe",
}

// changers are commands after which others are not what they are called, or
// that change where they run or what variables they see.
var changers = []string{
	"autoload", "bind", "bindkey", "cd", "chdir", "compdef", "complete", "declare", "disable", "emulate", "enable", "export", "fc", "float", "function", "functions", "getopts", "hash", "history",
	"integer", "let", "local", "mapfile", "popd", "print", "printf", "pushd", "read", "readarray", "readonly", "rehash", "set", "setopt", "shopt", "select", "typeset", "unalias",
	"unfunction", "unhash", "unset", "unsetopt", "zcompile", "zle", "zmodload", "zparseopts", "zstyle", "vared", "fg", "bg", "aliases", "setenv", "[[",
}

// mustSay are the words of a simple command that a rule has to have itself to
// allow it.
func mustSay(words []word) (says []string) {
	name := words[0].text()
	base := name[strings.LastIndexByte(name, '/')+1:]
	if base == "printf" && !slices.ContainsFunc(words, func(w word) bool { return !w.isLiteral || strings.HasPrefix(w.text(), "-v") }) {
		return nil // it writes
	}
	if slices.Contains(runners, base) || slices.Contains(changers, base) {
		says = append(says, name)
	}
	if base == "find" || base == "fd" || base == "fdfind" {
		for _, w := range words[1:] {
			if !w.isLiteral {
				says = append(says, "-exec")
			}
			for _, prefix := range []string{"-exec", "-ok", "-delete", "-fprint", "-fls", "-x", "-X", "--exec"} {
				if strings.HasPrefix(w.text(), prefix) {
					says = append(says, w.text())
					break
				}
			}
		}
	}
	return says
}
