package term

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// This file has somebody choose a line on a terminal, with a few typed letters.

// shownAtMost is how many lines are shown at once, where the terminal has room.
const shownAtMost = 12

// Pick shows lines on out, and returns which one was chosen by what is typed on in, or
// -1. It returns at the latest when the input ends; ctx is looked at with each key.
func Pick(ctx context.Context, in, out *os.File, lines []string) (chosen int, err error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return -1, fmt.Errorf("reading keys from the terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }()
	columns, rows, ok := Size(out)
	if !ok {
		columns, rows = 80, 24
	}
	l := newList(lines, columns, min(shownAtMost, max(1, rows-2)))
	shown := Terminal(out)
	fmt.Fprint(shown, l.screen())
	defer func() { fmt.Fprint(shown, l.cleared()) }()
	keys := make([]byte, 256)
	for {
		n, err := in.Read(keys)
		if ctx.Err() != nil {
			return -1, ctx.Err()
		}
		if n > 0 {
			if done, chosen := l.take(keys[:n]); done {
				return chosen, nil
			}
			fmt.Fprint(shown, l.cleared()+l.screen())
		}
		if err == io.EOF || err != nil && n == 0 {
			return -1, nil
		}
	}
}

// A list is what is shown of the lines, and what was typed.
type list struct {
	lines   []string
	columns int
	rows    int // of lines that are shown

	typed string
	fit   []int // which lines fit what was typed
	at    int   // which of these is marked
	tall  int   // how many rows were printed above the cursor
}

func newList(lines []string, columns, rows int) *list {
	l := &list{lines: lines, columns: columns, rows: rows}
	l.narrow()
	return l
}

// narrow finds the lines that have all words that were typed, in any case.
func (l *list) narrow() {
	l.fit, l.at = l.fit[:0], 0
	words := strings.Fields(strings.ToLower(l.typed))
next:
	for i, line := range l.lines {
		lower := strings.ToLower(line)
		for _, word := range words {
			if !strings.Contains(lower, word) {
				continue next
			}
		}
		l.fit = append(l.fit, i)
	}
}

// take takes what was typed, as the terminal sends it. done says that it is over, with
// the line that was chosen or -1.
func (l *list) take(keys []byte) (done bool, chosen int) {
	text := string(keys)
	for text != "" {
		size := 1
		switch {
		case strings.HasPrefix(text, "\x1b[A"), strings.HasPrefix(text, "\x1bOA"):
			l.at, size = max(0, l.at-1), 3
		case strings.HasPrefix(text, "\x1b[B"), strings.HasPrefix(text, "\x1bOB"):
			l.at, size = min(max(0, len(l.fit)-1), l.at+1), 3
		case strings.HasPrefix(text, "\x1b[") && len(text) > 2:
			size = len(text) // another key of the terminal's
		case text[0] == 16: // C-p
			l.at = max(0, l.at-1)
		case text[0] == 14: // C-n
			l.at = min(max(0, len(l.fit)-1), l.at+1)
		case text[0] == 3, text[0] == 4, text[0] == 7, text[0] == 27: // C-c, C-d, C-g, ESC
			return true, -1
		case text[0] == '\r' || text[0] == '\n':
			if len(l.fit) > 0 {
				return true, l.fit[l.at]
			}
		case text[0] == 127 || text[0] == 8:
			_, last := utf8.DecodeLastRuneInString(l.typed)
			l.typed = l.typed[:len(l.typed)-last]
			l.narrow()
		case text[0] == 21: // C-u
			l.typed = ""
			l.narrow()
		case text[0] >= 32:
			var r rune
			r, size = utf8.DecodeRuneInString(text)
			if r != utf8.RuneError {
				l.typed += string(r)
				l.narrow()
			}
		}
		text = text[size:]
	}
	return false, -1
}

// screen is what is shown, with the cursor behind what was typed.
func (l *list) screen() string {
	var b strings.Builder
	first := max(0, l.at-l.rows+1)
	shown := l.fit[first:min(len(l.fit), first+l.rows)]
	for i, n := range shown {
		mark := "  "
		if first+i == l.at {
			mark = "> "
		}
		b.WriteString(CutToFit(mark+l.lines[n], l.columns-1) + "\r\n")
	}
	l.tall = len(shown)
	b.WriteString(CutToFit(fmt.Sprintf("%d/%d ❯ %s", len(l.fit), len(l.lines), Line(l.typed)), l.columns-1))
	return b.String()
}

// cleared takes away what is shown.
func (l *list) cleared() string {
	up := ""
	if l.tall > 0 {
		up = fmt.Sprintf("\x1b[%dA", l.tall)
	}
	return "\r" + up + "\x1b[J"
}
