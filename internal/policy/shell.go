package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// runs reports whether what a call would run fits: for an allow rule all
// of it, for a deny rule any part, in any of the ways in which it can be read.
// What may not run may not run behind something else either.
func (c Call) runs(effect string, fits func(command string) bool) bool {
	if effect == config.EffectAllow {
		return !c.commandNotText && fits(c.command)
	}
	return runsPart(c.command, mostShells, fits) ||
		slices.ContainsFunc(c.alternatives.commands, func(command string) bool { return runsPart(command, mostShells, fits) })
}

// mostShells is how many shells may stand behind each other in a command in
// which a part is looked for.
const mostShells = 8

// runsPart reports whether a command, or any that it runs, fits. Of those that
// shells are given, so many deep are looked at.
func runsPart(command string, shells int, fits func(command string) bool) bool {
	if fits(command) || runsInShell(command, shells, fits) {
		return true
	}
	for part := range strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune(chaining, r) }) {
		for part = strings.TrimSpace(part); ; {
			if fits(part) || part != command && runsInShell(part, shells, fits) {
				return true
			}
			word, rest, _ := strings.Cut(part, " ")
			if !slices.Contains(leading, word) {
				break
			}
			part = strings.TrimSpace(rest)
		}
	}
	return false
}

func runsInShell(command string, shells int, fits func(command string) bool) bool {
	script, ok := inShell(command)
	return ok && shells > 0 && runsPart(script, shells-1, fits)
}

// inShell is what a shell is given to run, as in bash -lc 'make test': agents
// say so of each of their commands. The script is without the quotes around it.
func inShell(command string) (script string, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(command), " ")
	if !slices.Contains(shellNames, path.Base(word)) {
		return "", false
	}
	for {
		word, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
		if !strings.HasPrefix(word, "-") {
			return "", false
		}
		if !strings.HasPrefix(word, "--") && strings.HasSuffix(word, "c") {
			return strings.Trim(strings.TrimSpace(rest), `'"`), true
		}
	}
}

var shellNames = []string{"sh", "bash", "dash", "ksh", "zsh", "fish"}

// leading are the words of a shell's own behind which a command may stand.
var leading = []string{"!", "{", "if", "then", "elif", "else", "while", "until", "do", "time"}

// chaining are the characters that join shell commands.
const chaining = ";&|`$<>\n()"

// chains reports whether a shell command holds more than one, so that its
// beginning says nothing of the rest.
func chains(command string) bool { return strings.ContainsAny(command, chaining) }
