package output

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/duet-rpc/duet-rpc/internal/cli/markdown"
	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
)

// A Table is printed in columns when all rows are there.
type Table struct{ w *tabwriter.Writer }

// NewTable begins a table with its heading.
func NewTable(out io.Writer, columns ...string) Table {
	t := Table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.Row(columns...)
	return t
}

// Row adds a row of texts from anywhere.
func (t Table) Row(cells ...string) {
	for i, cell := range cells {
		cells[i] = Line(cell)
	}
	fmt.Fprintln(t.w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
}

// Flush prints it.
func (t Table) Flush() error { return t.w.Flush() }

// A Field is a line of what is known about one thing: its name and its value.
type Field [2]string

// Fields prints those that have a value.
func Fields(out io.Writer, fields ...Field) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		if name, value := f[0], f[1]; value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, Line(value))
		}
	}
	return w.Flush()
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
		fmt.Fprintf(out, "\n%s", r.Text(text))
	default:
		fmt.Fprintf(out, "\n%s\n", Marks.Prose(text))
	}
}
