package term

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The list: the user chooses a line by typing a few letters.

// shownAtMost is how many lines are shown at once.
const shownAtMost = 12

// A List is lines, of which the user chooses one: typed letters narrow it. It reads and writes no terminal:
// Take takes keys, and Screen is what to print.
type List struct {
	lines   []string
	columns int
	rows    int // number of visible lines

	typed string
	fit   []int // indexes of the lines that match the filter
	at    int   // index in fit of the marked line
	tall  int   // number of rows above the cursor
}

// NewList returns a list for a terminal of this size.
func NewList(lines []string, columns, rows int) *List {
	l := &List{lines: lines, columns: columns, rows: min(shownAtMost, max(1, rows-2))}
	l.narrow()
	return l
}

// narrow finds the lines that contain all typed words, ignoring case.
func (l *List) narrow() {
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

// Take handles keys. isDone means that the list is closed; chosen is the chosen line, or -1.
func (l *List) Take(keys []Key) (isDone bool, chosen int) {
	for _, k := range keys {
		if k.Pasted != "" {
			l.types(k.Pasted)
		} else if isDone, chosen = l.press(k); isDone {
			return true, chosen
		}
	}
	return false, -1
}

// press handles one key.
func (l *List) press(k Key) (isDone bool, chosen int) {
	switch k.name() {
	case "up", "ctrl+p":
		l.at = max(0, l.at-1)
	case "down", "ctrl+n":
		l.at = min(max(0, len(l.fit)-1), l.at+1)
	case "ctrl+c", "ctrl+d", "ctrl+g", "esc":
		return true, -1
	case "enter", "ctrl+j":
		if len(l.fit) > 0 {
			return true, l.fit[l.at]
		}
	case "backspace", "ctrl+h":
		_, last := utf8.DecodeLastRuneInString(l.typed)
		l.typed = l.typed[:len(l.typed)-last]
		l.narrow()
	case "ctrl+u":
		l.typed = ""
		l.narrow()
	default:
		l.types(k.press.Text)
	}
	return false, -1
}

// types adds to the filter.
func (l *List) types(text string) {
	if text != "" {
		l.typed += text
		l.narrow()
	}
}

// Screen returns the output of the list, with the cursor after the filter.
func (l *List) Screen() string {
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

// Cleared returns the output that removes the list from the screen.
func (l *List) Cleared() string {
	up := ""
	if l.tall > 0 {
		up = fmt.Sprintf("\x1b[%dA", l.tall)
	}
	return "\r" + up + "\x1b[J"
}
