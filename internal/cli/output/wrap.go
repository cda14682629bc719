package output

import (
	"fmt"
	"io"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/duet-rpc/duet-rpc/internal/cli/tty"
)

// Wrapped is a line broken between its words where it is wider than so many columns;
// what follows the first line begins with indent. What stands in backquotes, which is
// there to be copied, is broken only if it has no room on a line. 0: as it is.
func Wrapped(line string, columns int, indent string) string {
	if columns <= 0 {
		return line
	}
	if line = Marks.Signs(line); displaywidth.String(line) <= columns {
		return line
	}
	if len(indent) > columns/2 {
		indent = "  "
	}
	var b strings.Builder
	text := strings.TrimLeft(line, " ")
	at := len(line) - len(text)
	b.WriteString(line[:at])
	for i, word := range strings.Split(joinQuoted(text, columns-len(indent)), " ") {
		word = strings.ReplaceAll(word, joint, " ")
		width := displaywidth.String(word)
		switch {
		case i > 0 && at+1+width > columns:
			begin := indent
			if width > columns-len(indent) { // a path, which is better whole than in its column
				begin = "  "
			}
			b.WriteString("\n" + begin)
			at = len(begin)
		case i > 0:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at += width
	}
	return b.String()
}

// joint stands for a space at which a line is not broken.
const joint = "\x00"

// joinQuoted joins the words in backquotes that have room in so many columns.
func joinQuoted(line string, columns int) string {
	parts := strings.Split(line, "`")
	for i := 1; i < len(parts)-1; i += 2 {
		if displaywidth.String(parts[i])+2 < columns {
			parts[i] = strings.ReplaceAll(parts[i], " ", joint)
		}
	}
	return strings.Join(parts, "`")
}

// Lines are those of a message of ours, broken for the terminal that out is.
func Lines(out io.Writer, text string) string {
	columns, _, _ := tty.Size(out)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = Wrapped(line, columns, "  ")
	}
	return strings.Join(lines, "\n")
}

// Asking is a question to which tty.Yes adds the answers, with them on the next line
// where the terminal that out is has no room for both.
func Asking(out io.Writer, question string) string {
	if Fits(out, question+" [y/N] y") {
		return question
	}
	return Lines(out, question) + "\n "
}

// Fits tells whether a line has room on the terminal that out is, if it is one.
func Fits(out io.Writer, line string) bool {
	columns, _, _ := tty.Size(out)
	return columns == 0 || displaywidth.String(Marks.Signs(line)) <= columns
}

// below is what stands before a text on a line of its own.
const below = "     "

// Listing prints rows whose last cell is a text: on a terminal it is broken between its
// words, and goes on below itself, or where that is a narrow column and it does not fit,
// has lines of its own.
func Listing(out io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row[:len(row)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], displaywidth.String(Line(cell)))
		}
	}
	columns, _, _ := tty.Size(out)
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row[:len(row)-1] {
			cell = Line(cell)
			line.WriteString(cell + strings.Repeat(" ", widths[i]-displaywidth.String(cell)+columnGap))
		}
		indent, last := displaywidth.String(line.String()), Line(row[len(row)-1])
		if room := columns - indent; columns > 0 && room < columns/2 && displaywidth.String(Marks.Signs(last)) > room {
			if begin := strings.TrimRight(line.String(), " "); begin != "" {
				b.WriteString(begin + "\n")
			}
			line.Reset()
			line.WriteString(below)
			indent = len(below) + columnGap
		}
		b.WriteString(strings.TrimRight(Wrapped(line.String()+last, columns, strings.Repeat(" ", indent)), " ") + "\n")
	}
	_, err := fmt.Fprint(out, b.String())
	return err
}
