package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/duet-rpc/duet-rpc/internal/cli/markdown"
	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
)

const (
	columnGap    = 2  // between columns
	readableText = 48 // of a text, for which columns that can be spared go
	leastColumn  = 12 // to which a column is cut where the terminal is narrow
)

// A Table is printed in columns when all rows are there. On a terminal it fits the
// width: columns that may be spared are left out, those that may stand below their row
// do, and the widest are cut.
type Table struct {
	out   io.Writer
	rows  [][]string // the first is the heading
	spare []string   // columns that may be left out, the first at first
	below []string   // columns that may stand below their row, the first at first
	empty string     // what is said on a terminal instead of a heading without rows
	room  int        // columns of the terminal; 0: any number
}

// NewTable begins a table with its heading.
func NewTable(out io.Writer, columns ...string) *Table {
	t := &Table{out: out}
	t.room, _, _ = tty.Size(out)
	t.Row(columns...)
	return t
}

// Spare names columns that may be left out where there is no room for all; the first
// goes first.
func (t *Table) Spare(columns ...string) { t.spare = columns }

// Below names columns that stand below their row, whole, where there is no room for all;
// the first goes first.
func (t *Table) Below(columns ...string) { t.below = columns }

// Empty says what it means that there are no rows, and what to do about it. On a terminal
// that stands there instead of the heading.
func (t *Table) Empty(text string) { t.empty = text }

// Row adds a row of texts from anywhere.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		if row[i] = Line(cell); t.room > 0 {
			row[i] = Marks.Signs(row[i])
		}
	}
	t.rows = append(t.rows, row)
}

// Flush prints it.
func (t *Table) Flush() error {
	if len(t.rows) == 1 && t.room > 0 {
		if t.empty == "" {
			return nil
		}
		_, err := fmt.Fprintln(t.out, Wrapped(Line("— "+t.empty), t.room, "  "))
		return err
	}
	widths := t.fit()
	var b strings.Builder
	for n, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if widths[i] < 0 {
				continue
			}
			if t.room > 0 {
				cell = CutToFit(cell, widths[i])
			}
			line.WriteString(cell + strings.Repeat(" ", widths[i]-displaywidth.String(cell)+columnGap))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		for i, cell := range row {
			if widths[i] == standsBelow && n > 0 && cell != "" {
				b.WriteString(Wrapped(below+cell, t.room, below+"  ") + "\n")
			}
		}
	}
	_, err := io.WriteString(t.out, b.String())
	return err
}

// Widths of columns that are none.
const (
	isLeftOut   = -1
	standsBelow = -2
)

// fit is how wide each column is to be, or why it is none.
func (t *Table) fit() []int {
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], displaywidth.String(cell))
		}
	}
	if t.room <= 0 {
		return widths
	}
	wanted := func() (total int) {
		for _, w := range widths {
			if w >= 0 {
				total += w + columnGap
			}
		}
		return total - columnGap
	}
	// The last column is a text: of that much is to be read before others are there.
	last := len(widths) - 1
	for _, name := range t.spare {
		if wanted()-max(0, widths[last]-readableText) <= t.room {
			break
		}
		if i := slices.Index(t.rows[0], name); i >= 0 {
			widths[i] = isLeftOut
		}
	}
	for _, name := range t.below {
		if wanted() <= t.room {
			break
		}
		if i := slices.Index(t.rows[0], name); i >= 0 {
			widths[i] = standsBelow
		}
	}
	for over := wanted() - t.room; over > 0; over = wanted() - t.room {
		widest := last
		if widths[last] <= leastColumn {
			widest = slices.Index(widths, slices.Max(widths))
		}
		if widths[widest] <= leastColumn {
			break
		}
		widths[widest] = max(leastColumn, widths[widest]-over)
	}
	return widths
}

// A Field is a line of what is known about one thing: its name and its value.
type Field [2]string

// Fields prints those that have a value.
func Fields(out io.Writer, fields ...Field) error {
	var rows [][]string
	for _, f := range fields {
		if f[1] != "" {
			rows = append(rows, f[:])
		}
	}
	return Listing(out, rows)
}

// Body prints what an agent said below what is known of it: its Markdown rendered
// where colour is wanted and out is a terminal, else as it was written.
func Body(out io.Writer, text string, color bool) {
	text = strings.TrimRight(text, "\n")
	columns, _, _ := tty.Size(out)
	switch {
	case text == "":
	case color && tty.Draws(out):
		r := markdown.Renderer{Columns: columns, Marks: Marks}
		fmt.Fprintf(out, "\n%s", r.Text(Marks.Signs(text)))
	default:
		fmt.Fprintf(out, "\n%s\n", Marks.Prose(text))
	}
}
