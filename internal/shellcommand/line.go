// Package shellcommand parses the shell commands of agents, once for all uses: the rules that
// allow or deny a command, the key of its approval, and the displayed text.
//
// A [Command] is made from one text, as for a shell, or from the words of one program. If the
// program is a shell with a script (bash -lc '…'), the script counts. A script is split into
// [Part]s, the simple commands that it could run. A part may be after && or a newline, in a
// substitution, a function, a loop, after env or nohup, or in the script of another shell.
//
// The shell of a text is not always known, and shells parse some texts differently. So a text
// has a reading for each possible shell, and is allowed only if its parts are allowed in all of
// them.
//
// There are two tests, and doubt counts against the command in both. [Command.AllowedBy] is
// strict: a rule must match each part, and unknown text (eval, variables, anything that is not a
// shell script) matches none. [Command.CouldRun] is broad: one part that could match the rule is
// enough, also behind a variable, or in the text as written.
//
// The package does not examine a program's arguments, except those of programs whose purpose is
// to run another program.
package shellcommand

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Line returns a command as shell input; for a shell with a script, the script.
func Line(argv []string) string {
	switch filepath.Base(argv[0]) {
	case "sh", "bash", "dash", "zsh", "ksh", "fish":
		if len(argv) == 3 && strings.HasPrefix(argv[1], "-") && strings.HasSuffix(argv[1], "c") {
			return argv[2]
		}
	}
	words := make([]string, len(argv))
	for i, word := range argv {
		if word == "" || strings.ContainsAny(word, " \t\n\"'\\$`|&;<>()*?[]{}~#!") && i > 0 {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words[i] = word
	}
	return strings.Join(words, " ")
}

// A dialect is a shell's script syntax.
type dialect = syntax.LangVariant

const (
	bash  = syntax.LangBash
	posix = syntax.LangPOSIX
	zsh   = syntax.LangZsh
)

// unknownShell are the dialects for a text without a known shell.
var unknownShell = []dialect{bash, posix, zsh}

// dialectsOf returns the dialects of a shell by its program, nil if it is not a supported shell.
func dialectsOf(program string) []dialect {
	switch path.Base(program) {
	case "bash":
		return []dialect{bash}
	case "sh", "dash", "ash":
		return []dialect{posix, bash}
	case "zsh":
		return []dialect{zsh, bash}
	}
	return nil
}

// isPlain reports whether a text has no character that shells, terminals or systems interpret
// differently: control characters, and white space that only some treat as a blank.
func isPlain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && unicode.IsControl(r) || r > unicode.MaxASCII && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)) ||
			r == Anything || r == AnyWord
	})
}

// shellNames are programs that run a script.
var shellNames = []string{"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh", "rbash", "nu", "xonsh", "elvish"}

// runners are commands that run their arguments.
var runners = []string{
	"!", "-", ".", "ash", "builtin", "bwrap", "busybox", "caffeinate", "chroot", "chrt", "command", "coproc", "csh", "dbus-run-session", "doas", "entr", "env", "eval",
	"exec", "expect", "fd", "fdfind", "find", "flock", "foreach", "gtimeout", "ionice", "ltrace", "mksh", "nice", "nocorrect", "noglob", "nohup", "nsenter", "parallel", "pkexec", "prlimit",
	"proot", "rbash", "repeat", "rlwrap", "runuser", "script", "setpriv", "setsid", "source", "ssh", "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset", "tcsh", "time", "timeout", "toybox",
	"trap", "unbuffer", "unshare", "watch", "xargs", "bash", "dash", "fish", "ksh", "sh", "zsh", "alias", "nu", "xonsh", "elvish", "pwsh", "powershell", "powershell.exe", "cmd", "cmd.exe",
}

// changers are commands that change the meaning of later names, or their directory or variables.
var changers = []string{
	"autoload", "bind", "bindkey", "cd", "chdir", "compdef", "complete", "declare", "disable", "emulate", "enable", "export", "fc", "float", "function", "functions", "getopts", "hash", "history",
	"integer", "let", "local", "mapfile", "popd", "print", "printf", "pushd", "read", "readarray", "readonly", "rehash", "set", "setopt", "shopt", "select", "typeset", "unalias",
	"unfunction", "unhash", "unset", "unsetopt", "zcompile", "zle", "zmodload", "zparseopts", "zstyle", "vared", "fg", "bg", "aliases", "setenv", "[[",
}

// requiredWords returns the words of a simple command that a rule must contain to allow it.
func requiredWords(words []word) (says []string) {
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

// Canonical returns the same text for scripts that differ only in blanks and comments, for any
// shell. A script that shells could parse differently equals only itself.
func Canonical(script string) string {
	if !isPlain(script) || isTooMuch(script) || strings.Contains(script, "<<") || strings.Contains(script, "`") {
		return script
	}
	canonical := ""
	for _, shell := range unknownShell {
		text, ok := minified(script, shell)
		if again, still := minified(text, shell); !ok || !still || again != text || canonical != "" && canonical != text {
			return script
		}
		canonical = text
	}
	return canonical
}

// minified returns a script as the printer writes it for a shell.
func minified(script string, shell dialect) (text string, ok bool) {
	defer func() {
		if recover() != nil {
			text, ok = "", false
		}
	}()
	file, err := syntax.NewParser(syntax.Variant(shell)).Parse(strings.NewReader(script), "")
	if err != nil {
		return "", false
	}
	var b strings.Builder
	if err := syntax.NewPrinter(syntax.Minify(true)).Print(&b, file); err != nil {
		return "", false
	}
	return strings.TrimSuffix(b.String(), "\n"), b.Len() > 0
}

// CanonicalWords returns the words of a program, with the Canonical form of a shell's script
// among them.
func CanonicalWords(argv []string) []string {
	words := make([]word, len(argv))
	for i, text := range argv {
		words[i] = literal(text)
	}
	if _, script, ok := scriptOf(words); ok {
		for i, text := range argv {
			if i > 0 && text == script {
				canonical := append([]string(nil), argv...)
				canonical[i] = Canonical(script)
				return canonical
			}
		}
	}
	return argv
}
