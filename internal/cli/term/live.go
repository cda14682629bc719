package term

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// The live region: the last lines of the terminal, redrawn until they are final.

// Region is the last lines of a terminal. It is not safe for concurrent use. The caller must
// clear it before anything else writes to the terminal.
type Region struct {
	out   io.Writer
	size  func() (columns, rows int)
	drawn []string // rows without newlines; the cursor is after the last one

	// Cursor, if set, returns where the cursor is to be: how many rows above the last one, and in
	// which column.
	Cursor func() (up, column int, ok bool)
	at     [2]int // where Cursor has put it
	moved  bool   // it did; otherwise the cursor is after the last row
}

// NewRegion returns a region of the terminal that out writes to. size returns the terminal's
// size.
func NewRegion(out io.Writer, size func() (columns, rows int)) *Region {
	return &Region{out: out, size: size}
}

// Columns is the largest width of a row that the terminal does not wrap.
func (r *Region) Columns() int {
	columns, _ := r.size()
	return max(1, columns-1)
}

// most is the largest number of rows. Rows that have scrolled off the screen cannot be
// redrawn.
func (r *Region) most() int {
	_, rows := r.size()
	return max(1, min(rows-2, 15))
}

// Draw replaces the rows of the region. A row is text with colours, at most Columns wide. If
// there are too many rows, it shows the last ones. It writes only the differences.
func (r *Region) Draw(rows ...string) { r.Print("", rows...) }

// DrawTop is Draw, but shows the first rows if there are too many.
func (r *Region) DrawTop(rows ...string) { r.Draw(rows[:min(len(rows), r.most())]...) }

// Clear removes the region from the screen.
func (r *Region) Clear() { r.Print("") }

// Forget forgets the rows: another program has used the screen since they were drawn.
func (r *Region) Forget() { r.drawn, r.moved = nil, false }

// Shown reports whether the region has a row.
func (r *Region) Shown() bool { return len(r.drawn) > 0 }

// Above writes whole lines above the region.
func (r *Region) Above(text string) { r.Print(text, slices.Clone(r.drawn)...) }

// Print writes whole lines above the region and replaces its rows.
func (r *Region) Print(text string, rows ...string) {
	if n := r.most(); len(rows) > n {
		rows = rows[len(rows)-n:]
	}
	var at [2]int
	moves := false
	if r.Cursor != nil && len(rows) > 0 {
		at[0], at[1], moves = r.Cursor()
	}
	if text == "" && moves == r.moved && at == r.at && slices.Equal(rows, r.drawn) {
		return
	}
	var b strings.Builder
	if r.moved {
		b.WriteString("\x1b8")
	}
	r.print(&b, text, rows)
	if moves {
		b.WriteString("\x1b7\r")
		if at[0] > 0 {
			fmt.Fprintf(&b, "\x1b[%dA", at[0])
		}
		if at[1] > 0 {
			fmt.Fprintf(&b, "\x1b[%dC", at[1])
		}
	}
	r.at, r.moved = at, moves
	_, _ = io.WriteString(r.out, b.String())
}

// print writes the differences to b.
func (r *Region) print(b *strings.Builder, text string, rows []string) {
	same := 0      // unchanged rows
	atEnd := false // the cursor is after the last of them
	if text == "" {
		for same < min(len(r.drawn), len(rows)) && r.drawn[same] == rows[same] {
			same++
		}
		last := len(r.drawn) - 1
		switch {
		case same == len(r.drawn) && same == len(rows):
			return
		case same == last && len(rows) > last && strings.HasPrefix(rows[last], r.drawn[last]):
			b.WriteString(rows[last][len(r.drawn[last]):]) // only text was appended
			same, atEnd = same+1, true
		case same == len(r.drawn):
			atEnd = same > 0
		case same == len(rows): // redraw the last one to position the cursor
			same = max(0, same-1)
		}
	}
	if !atEnd && len(r.drawn) > 0 {
		r.back(b, same)
	}
	b.WriteString(text)
	for i := same; i < len(rows); i++ {
		if i > same || atEnd {
			b.WriteByte('\n')
		}
		b.WriteString(rows[i])
	}
	r.drawn = append(r.drawn[:0], rows...)
}

// back moves the cursor to the beginning of a row, and clears that row and those below.
func (r *Region) back(b *strings.Builder, row int) {
	columns, _ := r.size()
	up := len(r.drawn) - 1 - row
	for _, text := range r.drawn[row:] {
		if width := liveEscapes.String(text); columns > 0 && width > columns { // the terminal became narrower and has wrapped the row
			up += (width - 1) / columns
		}
	}
	b.WriteByte('\r')
	if up > 0 {
		fmt.Fprintf(b, "\x1b[%dA", up)
	}
	b.WriteString("\x1b[J")
}

// liveEscapes measures the width of text with colours.
var liveEscapes = displaywidth.Options{ControlSequences: true}

// Rows splits text of any number of lines into rows of a width, between words if possible. All
// characters must be visible already.
func Rows(text string, columns int) (rows []string) {
	columns = max(columns, 2)
	for line := range strings.SplitSeq(text, "\n") {
		var row strings.Builder
		at := 0
		clusters := displaywidth.StringGraphemes(line)
		for clusters.Next() {
			cluster, width := clusters.Value(), clusters.Width()
			if cluster == "\t" {
				cluster, width = " ", 1
			}
			if at+width > columns {
				text := row.String()
				row.Reset()
				at = 0
				if i := strings.LastIndexByte(text, ' '); cluster != " " && i > len(text)/2 { // split between two words
					row.WriteString(text[i+1:])
					text, at = text[:i], displaywidth.String(text[i+1:])
				}
				rows = append(rows, text)
			}
			row.WriteString(cluster)
			at += width
		}
		rows = append(rows, row.String())
	}
	return rows
}
