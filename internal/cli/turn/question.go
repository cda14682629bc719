package turn

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/form"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// This file lays out what a person is shown of an agent's question
// before deciding: the tool and what it acts on, its whole input but for what
// the diff shows already, the diff, the answers to choose from. Every character
// of it can be seen (internal/visible). What is too long for a screen is cut in
// the middle, and says by how much.

// A Question is what an agent asks.
type Question struct {
	Tool    string // empty: it asks a human something
	Title   string // the agent's own words
	Subject string
	Input   json.RawMessage // of the tool
	Diff    string          // what it would change, as a unified diff
	Details string          // what the agent says about the tool call beside its title and input
	Plan    string          // what the agent would do next, if it asks whether it may
	Options []string        // the answers to choose from
	Dir     string          // the session's directory, to which the diff's names are relative; or empty
	Cut     bool            // parts of it were too long for a message

	Fields []form.Field // of a form that is to be filled in
	Link   *link        // that is to be opened; nil: there is none

	// Reopened is why it is asked again, where it was answered before; or empty.
	Reopened string
}

// Lay lays out a question.
func Lay(q Question, m visible.Marks) sheet {
	diffs := filesOf(q.Diff)
	s := sheet{q.Tool != "", []section{sheetHeading(q, m)}}
	if q.Reopened != "" {
		s.sections = append(s.sections, section{head: []QuestionLine{{Remark, m.Line(q.Reopened)}}})
	}
	if q.Tool != "" {
		for _, text := range []string{q.Plan, q.Details} {
			if text == "" {
				continue
			}
			var body []QuestionLine
			for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
				body = append(body, QuestionLine{questionText, "  " + m.Exact(strings.TrimSuffix(line, "\r"))})
			}
			s.sections = append(s.sections, section{body: body})
		}
		shown := shownBy(diffs, q.Dir)
		shown.plan = q.Plan
		if body := inputLines(q.Input, shown, m); len(body) > 0 {
			s.sections = append(s.sections, section{body: body})
		}
	}
	for _, f := range diffs {
		s.sections = append(s.sections, f.section(m))
	}
	if len(q.Fields) > 0 {
		s.sections = append(s.sections, section{body: fieldLines(q.Fields, m)})
	}
	if q.Link != nil { // always whole
		s.sections = append(s.sections, section{head: q.Link.lines(m)})
	}
	if len(q.Options) > 0 {
		var body []QuestionLine
		for i, option := range q.Options {
			body = append(body, QuestionLine{questionText, fmt.Sprintf("  %d  %s", i+1, m.Line(option))})
		}
		s.sections = append(s.sections, section{body: body})
	}
	if q.Cut {
		s.sections = append(s.sections, section{head: []QuestionLine{{Remark, "… it is too long for one message: what was left out of it is said where it was"}}})
	}
	return s
}

// sheetHeading is the tool and the agent's words for what it does. Of a question
// to a human, every line is shown.
func sheetHeading(q Question, m visible.Marks) section {
	if q.Tool != "" {
		text := m.Line(q.Title)
		if tool := m.Line(q.Tool); !strings.Contains(text, tool) {
			text = strings.TrimSuffix(tool+": "+text, ": ")
		}
		return section{body: []QuestionLine{{questionHeading, "? " + text}}}
	}
	var body []QuestionLine
	mark := "? "
	for line := range strings.SplitSeq(strings.Trim(q.Title+"\n"+q.Subject, "\n"), "\n") {
		body = append(body, QuestionLine{questionHeading, mark + m.Exact(strings.TrimSuffix(line, "\r"))})
		mark = "  "
	}
	return section{body: body}
}

// Diff lays out a unified diff alone.
func Diff(diff string, m visible.Marks) []QuestionLine {
	var s sheet
	for _, f := range filesOf(diff) {
		s.sections = append(s.sections, f.section(m))
	}
	return s.Whole()
}
