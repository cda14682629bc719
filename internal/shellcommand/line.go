package shellcommand

import (
	"path/filepath"
	"strings"
)

// Line is a command as a shell would be given it: of one that a shell
// is given, that one.
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
