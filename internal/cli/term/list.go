package term

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

// The list: the user chooses a line by typing a few letters.

// shownAtMost is how many lines are shown at once.
const shownAtMost = 12

// A List is lines, of which the user chooses one: typed letters narrow it. It reads and writes no terminal:
// Take takes keys, and Screen is what to print.
type List struct {
	lines []string

	typed string
	fit   []int    // indexes of the lines that match the filter
	at    int      // index in fit of the marked line
	shown []string // the rows of the last Screen
}

// NewList returns a list of lines.
func NewList(lines []string) *List {
	l := &List{lines: lines}
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

// Screen returns the output of the list for a terminal of this size, with the cursor after the filter.
func (l *List) Screen(columns, rows int) string {
	visible := min(shownAtMost, max(1, rows-2))
	first := max(0, l.at-visible+1)
	l.shown = nil
	for i, n := range l.fit[first:min(len(l.fit), first+visible)] {
		mark := "  "
		if first+i == l.at {
			mark = "> "
		}
		l.shown = append(l.shown, CutToFit(mark+l.lines[n], columns-1))
	}
	l.shown = append(l.shown, CutToFit(fmt.Sprintf("%d/%d ❯ %s", len(l.fit), len(l.lines), Line(l.typed)), columns-1))
	return strings.Join(l.shown, "\r\n")
}

// Cleared returns the output that removes the list from a screen of this width. A terminal that became narrower
// has wrapped its rows.
func (l *List) Cleared(columns int) string {
	up := len(l.shown) - 1
	for _, row := range l.shown {
		up += max(0, displaywidth.String(row)-1) / max(1, columns)
	}
	if up <= 0 {
		return "\r\x1b[J"
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", up)
}
