package terminal

import (
	"slices"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

const (
	// scrollbackMost limits, in bytes, the output kept for later views.
	scrollbackMost = 64 << 10
	// scrollbackLine limits how far the cut moves to reach the end of a line.
	scrollbackLine = 4 << 10
)

// scrollback is the last output of a terminal.
type scrollback struct{ kept []byte }

func (s *scrollback) add(b []byte) {
	if s.kept = append(s.kept, b...); len(s.kept) > 2*scrollbackMost {
		s.kept = append(s.kept[:0], end(s.kept)...)
	}
}

// bytes returns a copy.
func (s *scrollback) bytes() []byte { return slices.Clone(end(s.kept)) }

// end returns the end of b, beginning at a line or at least a character.
func end(b []byte) []byte {
	if len(b) <= scrollbackMost {
		return b
	}
	b = b[len(b)-scrollbackMost:]
	for i, c := range b[:scrollbackLine] {
		if c == '\n' {
			return b[i+1:]
		}
	}
	for i := range utf8.UTFMax {
		if utf8.RuneStart(b[i]) {
			return b[i:]
		}
	}
	return b
}

// queries match a program's requests to the terminal: type, state and cursor position (DA, DSR,
// DECRQM, XTVERSION, the kitty keyboard), colours (OSC) and settings (DECRQSS, XTGETTCAP).
var queries = lazyregexp.New(`\x1b\[[0-9;?>=]*[cn]|\x1b\[\?[0-9;]*\$p|\x1b\[>[0-9]*q|\x1b\[\?u|` +
	`\x1b\][0-9;]*;\?(?:\x07|\x1b\\)|\x1bP[+$]q[^\x1b]*\x1b\\`)

// withoutQueries removes queries from old output: they have been answered, and a second answer
// would be typed into the program.
func withoutQueries(b []byte) []byte { return queries().ReplaceAll(b, nil) }
