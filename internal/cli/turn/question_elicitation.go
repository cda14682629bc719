package turn

import (
	"github.com/duet-rpc/duet-rpc/internal/form"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// A link is an address that a person is asked to open.
type link struct {
	URL      string
	Host     string   // where it leads; empty: nobody knows
	Warnings []string // what to look at before
}

// fieldLines are the fields of a form: what each is called, what it takes, and
// what it is unless somebody says otherwise.
func fieldLines(fields []form.Field, m visible.Marks) []QuestionLine {
	var lines []QuestionLine
	for _, f := range fields {
		text := m.Line(f.Label())
		if f.Label() != f.Name {
			text += " (" + m.Line(f.Name) + ")"
		}
		text += ": " + m.Line(f.Expects())
		if f.Default != nil {
			text += " [" + m.Line(f.InWords(f.Default)) + "]"
		} else if !f.Required {
			text += ", or nothing"
		}
		lines = append(lines, QuestionLine{questionText, "  " + text})
		if f.Description != "" {
			lines = append(lines, QuestionLine{Remark, "    " + m.Line(f.Description)})
		}
	}
	return lines
}

// lines are the whole address, the host that it leads to, and what there is to be
// said of it.
func (l link) lines(m visible.Marks) []QuestionLine {
	lines := []QuestionLine{{input, "  " + m.Line(l.URL)}}
	if l.Host != "" {
		lines = append(lines, QuestionLine{questionHeading, "  leads to " + m.Line(l.Host)})
	}
	for _, w := range l.Warnings {
		lines = append(lines, QuestionLine{removed, "  careful: " + m.Line(w)})
	}
	return lines
}
