package turn

import (
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/question"
)

// Colours and weights, as ECMA-48 numbers them (SGR).
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

// lineColors are the colours of the lines of a question.
var lineColors = map[question.Kind]string{
	question.Heading: bold, question.Input: "", question.FileName: bold, question.Hunk: cyan, question.Added: green, question.Removed: red, question.Remark: dim,
}

// Note says something. Only its first line is at the margin, where ours are: the
// text may be an agent's.
func (v *View) Note(text string) {
	v.aside(output.Lines(v.side, "— "+output.Indented(output.Exact(text))), dim)
}

// lines prints lines that were laid out.
func (v *View) lines(list []question.Line) {
	v.endLine()
	for _, line := range list {
		switch line.Kind {
		case question.Remark, question.Heading, question.Text: // words
			v.aside(output.Lines(v.side, line.Text), lineColors[line.Kind])
			continue
		}
		fmt.Fprintln(v.side, v.paint(line.Text, lineColors[line.Kind]))
	}
}

// aside prints lines on side, in a colour on a terminal.
func (v *View) aside(text, color string) {
	v.endLine()
	for line := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(v.side, v.paint(output.Exact(line), color))
	}
}

func (v *View) paint(text, color string) string {
	if !v.color || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// endLine ends the line on out, or that of a question on side, if one is begun, and
// takes away what is drawn over: whatever comes next stays.
func (v *View) endLine() {
	if v.rendered != nil {
		v.rendered.Columns = v.region.Columns()
		v.region.Print(v.rendered.End())
	}
	v.hide()
	if v.asking {
		fmt.Fprintln(v.side)
		v.asking = false
	}
	if v.words != nil {
		fmt.Fprint(v.out, v.words.End())
	}
	if v.midLine {
		fmt.Fprintln(v.out)
		v.midLine = false
	}
}

// hide takes what is drawn over away.
func (v *View) hide() {
	if v.region != nil {
		v.region.Clear()
	}
}
