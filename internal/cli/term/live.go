package term

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// The live region: the last lines of the terminal, redrawn until they are final.

// A Region is the last lines of a terminal. One goroutine uses it at a time, and
// clears it before anything else writes to the terminal.
type Region struct {
	out   io.Writer
	size  func() (columns, rows int)
	drawn []string // rows without line ends; the cursor is behind the last one
}

// NewRegion makes a region of the terminal that out writes to; size tells how large that
// is.
func NewRegion(out io.Writer, size func() (columns, rows int)) *Region {
	return &Region{out: out, size: size}
}

// Columns is how wide a row may be, so that the terminal does not wrap it.
func (r *Region) Columns() int {
	columns, _ := r.size()
	return max(1, columns-1)
}

// most is how many rows the region has at most: what has left the screen cannot be
// drawn over.
func (r *Region) most() int {
	_, rows := r.size()
	return max(1, min(rows-2, 15))
}

// Draw shows rows in place of those that are there: text with colours alone, no
// wider than Columns. Of too many the last ones are shown. Only what differs is
// written.
func (r *Region) Draw(rows ...string) { r.Print("", rows...) }

// Clear takes the region away, so that others can write where it was.
func (r *Region) Clear() { r.Print("") }

// Shown reports whether the region has a row.
func (r *Region) Shown() bool { return len(r.drawn) > 0 }

// Above writes whole lines above the region, which stays as it is.
func (r *Region) Above(text string) { r.Print(text, slices.Clone(r.drawn)...) }

// Print writes whole lines above the region, which shows rows from then on.
func (r *Region) Print(text string, rows ...string) {
	if n := r.most(); len(rows) > n {
		rows = rows[len(rows)-n:]
	}
	var b strings.Builder
	same := 0      // rows that stay
	atEnd := false // the cursor is behind the last of them
	if text == "" {
		for same < min(len(r.drawn), len(rows)) && r.drawn[same] == rows[same] {
			same++
		}
		last := len(r.drawn) - 1
		switch {
		case same == len(r.drawn) && same == len(rows):
			return
		case same == last && len(rows) > last && strings.HasPrefix(rows[last], r.drawn[last]):
			b.WriteString(rows[last][len(r.drawn[last]):]) // it has only become longer
			same, atEnd = same+1, true
		case same == len(r.drawn):
			atEnd = same > 0
		case same == len(rows): // the last one is drawn again, for the cursor
			same = max(0, same-1)
		}
	}
	if !atEnd && len(r.drawn) > 0 {
		r.back(&b, same)
	}
	b.WriteString(text)
	for i := same; i < len(rows); i++ {
		if i > same || atEnd {
			b.WriteByte('\n')
		}
		b.WriteString(rows[i])
	}
	r.drawn = append(r.drawn[:0], rows...)
	_, _ = io.WriteString(r.out, b.String())
}

// back goes to the beginning of a row that is drawn, and takes it and what is below
// away.
func (r *Region) back(b *strings.Builder, row int) {
	columns, _ := r.size()
	up := len(r.drawn) - 1 - row
	for _, text := range r.drawn[row:] {
		if width := liveEscapes.String(text); columns > 0 && width > columns { // it has become narrower, and wrapped what was drawn
			up += (width - 1) / columns
		}
	}
	b.WriteByte('\r')
	if up > 0 {
		fmt.Fprintf(b, "\x1b[%dA", up)
	}
	b.WriteString("\x1b[J")
}

// liveEscapes measures text with colours.
var liveEscapes = displaywidth.Options{ControlSequences: true}

// Rows cuts text in which every character is seen, of any number of lines, in rows
// of so many columns, between words where it can.
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
				if i := strings.LastIndexByte(text, ' '); cluster != " " && i > len(text)/2 { // between two words
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
