package shellcommand

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// A dialect is a shell's way to read a script.
type dialect = syntax.LangVariant

const (
	bash  = syntax.LangBash
	posix = syntax.LangPOSIX
	zsh   = syntax.LangZsh
)

// unknownShell are the dialects that a text is read in if nobody says for which
// shell it is.
var unknownShell = []dialect{bash, posix, zsh}

// dialectsOf are those of a shell by its program, nil if it is no shell that
// can be read.
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

// isPlain reports whether a text has no character that shells, terminals or
// systems treat in their own ways: controls, and white space that only some take
// for a blank.
func isPlain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && unicode.IsControl(r) || r > unicode.MaxASCII && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)) ||
			r == Anything || r == AnyWord
	})
}
