package shellcommand

import (
	"path"

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
