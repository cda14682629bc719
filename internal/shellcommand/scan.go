package shellcommand

import (
	"path"
	"slices"
	"strings"
)

// scan reports whether a text, or any command that it may hold, fits. It knows
// nothing of quotes, so what it finds need not be a command. Of those that
// shells are given, so many deep are looked at.
func scan(text string, shells int, fits func(command string) bool) bool {
	if fits(text) || scanScript(text, shells, fits) {
		return true
	}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(chaining, r) }) {
		for part, left := strings.TrimSpace(part), mostLeading; ; left-- {
			// Each look reads all of the part. Behind more leading words it could be anything.
			if left == 0 || fits(part) || part != text && scanScript(part, shells, fits) {
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

// mostLeading is how many leading words of a command are looked behind.
const mostLeading = 32

func scanScript(text string, shells int, fits func(command string) bool) bool {
	script, ok := scriptIn(text)
	return ok && shells > 0 && scan(script, shells-1, fits)
}

// scriptIn is what a shell seems to be given, as in bash -lc 'make test', without
// the quotes around it.
func scriptIn(text string) (script string, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
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

// leading are the words of a shell's own behind which a command may stand.
var leading = []string{"!", "{", "if", "then", "elif", "else", "while", "until", "do", "time"}

// chaining are the characters that join shell commands.
const chaining = ";&|`$<>\n()"
