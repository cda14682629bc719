package terminal

import (
	"slices"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

const (
	// scrollbackMost is how much of its output is kept for whoever comes later, in
	// bytes.
	scrollbackMost = 64 << 10
	// scrollbackLine is how far the cut is moved to the end of a line.
	scrollbackLine = 4 << 10
)

// A scrollback is the end of what a terminal printed.
type scrollback struct{ kept []byte }

func (s *scrollback) add(b []byte) {
	if s.kept = append(s.kept, b...); len(s.kept) > 2*scrollbackMost {
		s.kept = append(s.kept[:0], end(s.kept)...)
	}
}

// bytes is a copy of it.
func (s *scrollback) bytes() []byte { return slices.Clone(end(s.kept)) }

// end is the end of b, from the beginning of a line or at least of a character
// on.
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

// queries are what programs ask a terminal: its kind, its state and where
// the cursor is (DA, DSR, DECRQM, XTVERSION, the kitty keyboard), colours
// (OSC) and settings (DECRQSS, XTGETTCAP).
var queries = lazyregexp.New(`\x1b\[[0-9;?>=]*[cn]|\x1b\[\?[0-9;]*\$p|\x1b\[>[0-9]*q|\x1b\[\?u|` +
	`\x1b\][0-9;]*;\?(?:\x07|\x1b\\)|\x1bP[+$]q[^\x1b]*\x1b\\`)

// withoutQueries is old output without its queries: they were answered when they
// were asked, and a second answer would be typed into the program.
func withoutQueries(b []byte) []byte { return queries().ReplaceAll(b, nil) }
