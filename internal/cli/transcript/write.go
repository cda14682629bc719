package transcript

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/visible"

	"github.com/duet-rpc/duet-rpc/internal/cli/attachment"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// A Look is how a conversation looks at a terminal.
type Look struct {
	Columns int
	Color   bool // Markdown is rendered, and what differs has colours
}

// mostNested is how many levels of sub-agents are told apart.
const mostNested = 8

// Text is the conversation for people at a terminal, in which every character can be
// seen. What is part of a tool call, such as what a sub-agent says and does, is
// indented below it.
func (r Conversation) Text(look Look) string {
	var b strings.Builder
	depths := make(map[string]int) // of what is part of a tool call
	attached := make(map[string][]wire.Attachment)
	for _, e := range resultsLast(r.Entries) {
		indent := strings.Repeat("  ", depths[e.ParentTool])
		if e.EventType == wire.EntryToolCall && e.ToolID != "" {
			depths[e.ToolID] = min(depths[e.ParentTool]+1, mostNested)
			attached[e.ToolID] = e.Attachments()
		}
		for line := range strings.Lines(look.within(indent).entry(e, attached[e.ResultFor])) {
			if strings.TrimSpace(line) != "" {
				line = indent + line
			}
			b.WriteString(line)
		}
	}
	if r.Diff != "" {
		b.WriteString(look.diff(term.Exact(r.Diff)))
	}
	return b.String()
}

// resultsLast are the entries with each result of a tool call behind all that is part of
// the call, as it came; a conversation has it beside the call.
func resultsLast(entries []wire.Entry) []wire.Entry {
	parents, last := make(map[string]string), make(map[string]int)
	for i, e := range entries {
		if e.EventType == wire.EntryToolCall && e.ToolID != "" {
			parents[e.ToolID] = e.ParentTool
		}
		for call, depth := e.ParentTool, 0; call != "" && depth < mostNested; call, depth = parents[call], depth+1 {
			last[call] = i
		}
	}
	list := make([]wire.Entry, 0, len(entries))
	waiting := make(map[int][]wire.Entry) // behind the entry of an index, the outermost first
	for i, e := range entries {
		if behind := last[e.ResultFor]; e.EventType == wire.EntryToolResult && behind > i {
			waiting[behind] = append(waiting[behind], e)
			continue
		}
		list = append(list, e)
		results := waiting[i]
		slices.Reverse(results)
		list = append(list, results...)
	}
	return list
}

// within is the look of what stands behind an indent.
func (l Look) within(indent string) Look {
	l.Columns = max(l.Columns-len(indent), 1)
	return l
}

// entry is an entry for people at a terminal. attached is what a tool gave back
// beside a result.
func (l Look) entry(e wire.Entry, attached []wire.Attachment) string {
	switch e.EventType {
	case wire.EntryMessage:
		list := e.Attachments()
		if e.Role == "user" {
			return l.painted("1", "❯ "+trimmed(term.Marks.Prose(e.Content))) + "\n" + l.labels("  ", list) + "\n"
		}
		if len(list) > 0 { // its text says the same
			return l.labels("", list) + "\n"
		}
		return l.markdown(e.Content, false) + "\n\n"
	case wire.EntryThinking:
		if list := e.Attachments(); len(list) > 0 {
			return l.labels("✻ ", list) + "\n"
		}
		if l.Color {
			return l.markdown(e.Content, true) + "\n\n"
		}
		return "  (" + term.Indented(trimmed(term.Marks.Prose(e.Content))) + ")\n\n"
	case wire.EntryToolCall:
		return l.painted("1", "● "+term.Line(cmp.Or(e.Title, e.ToolName))+term.Line(inputOf(e))) + "\n"
	case wire.EntryToolResult:
		text := trimmed(term.Exact(visible.WithoutColors(cmp.Or(e.Refusal, e.Result))))
		if text != "" {
			text = l.painted("2", "  "+term.Indented(text)) + "\n"
		}
		return text + l.labels("  ", attached) + "\n"
	case "approval":
		return l.painted("2", "? "+term.Line(decisionOf(e))) + "\n\n"
	case wire.EntrySystem:
		return l.painted("2", "— "+term.Indented(term.Exact(e.Content))) + "\n\n"
	}
	return ""
}

// labels say what there is that is no text, and how to get it, a line each.
func (l Look) labels(indent string, list []wire.Attachment) string {
	var b strings.Builder
	for _, a := range list {
		line := a.Label()
		if how := attachment.HowToSave(a); how != "" {
			line += " · " + how
		}
		b.WriteString(l.painted("2", indent+term.Line(line)) + "\n")
	}
	return b.String()
}

func trimmed(text string) string { return strings.TrimRight(text, "\n") }

// painted paints the lines of a text.
func (l Look) painted(color, text string) string {
	if !l.Color {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "\x1b[" + color + "m" + line + "\x1b[0m"
		}
	}
	return strings.Join(lines, "\n")
}

// markdown renders what an agent has written.
func (l Look) markdown(text string, dim bool) string {
	if !l.Color {
		return trimmed(term.Marks.Prose(text))
	}
	r := term.Renderer{Columns: l.Columns, Marks: term.Marks, Dim: dim}
	return trimmed(r.Text(text))
}

// diff paints a unified diff.
func (l Look) diff(text string) string {
	if !l.Color {
		return text
	}
	r := term.Renderer{Columns: l.Columns, Marks: term.Marks}
	return r.Code("diff", text)
}

// inputOf is the command or the file that a tool call is about, behind a colon, as far
// as its title does not say it.
func inputOf(e wire.Entry) string {
	var input struct {
		Command any    `json:"command"`
		Path    string `json:"file_path"`
	}
	if json.Unmarshal([]byte(e.ToolInput), &input) != nil {
		return ""
	}
	about := input.Path
	if command, ok := input.Command.(string); ok {
		about = cmp.Or(command, about)
	}
	if about == "" || strings.Contains(e.Title, about) {
		return ""
	}
	return ": " + about
}

// decisionOf is what was asked and decided.
func decisionOf(e wire.Entry) string {
	var d struct {
		Title     string `json:"title"`
		Decision  string `json:"decision"`
		DecidedBy string `json:"decided_by"`
		Response  string `json:"response_text"`
	}
	_ = json.Unmarshal(e.Data, &d) // what it does not say is not shown
	text := strings.TrimSpace(d.Title + " " + d.Decision)
	if d.DecidedBy != "" {
		text += " by " + d.DecidedBy
	}
	if d.Response != "" {
		text += ": " + d.Response
	}
	return text
}

// Markdown is the conversation as CommonMark: what people and agents wrote, tool calls with
// their inputs and results in code blocks, and the changes of files. No text in it passes
// for the document's own headings and lines.
func (r Conversation) Markdown() string {
	var b strings.Builder
	s := r.Session
	fmt.Fprintf(&b, "# %s\n\n", heading(cmp.Or(s.Title, s.Summary, s.TaskID)))
	for _, about := range [][2]string{
		{"Session", s.ID},
		{"Task", s.TaskID},
		{"Agent", s.Agent},
		{"Model", s.Model},
		{"Directory", s.WorkingDir},
		{"Begun", s.CreatedAt},
		{"Ended", s.CompletedAt},
		{"Status", s.Outcome()},
	} {
		if about[1] != "" {
			fmt.Fprintf(&b, "- %s: %s\n", about[0], heading(about[1]))
		}
	}
	for _, e := range r.Entries {
		switch e.EventType {
		case wire.EntryMessage:
			who := "Agent"
			switch {
			case e.Role == "user":
				who = "User"
			case e.ParentTool != "":
				who = "Sub-agent"
			}
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", who, guest(e.Content))
		case wire.EntryThinking:
			fmt.Fprintf(&b, "\n## Thoughts\n\n%s\n", guest(e.Content))
		case wire.EntryToolCall:
			fmt.Fprintf(&b, "\n### Tool: %s\n", heading(cmp.Or(e.Title, e.ToolName)))
			if e.ToolInput != "" && e.ToolInput != "{}" {
				b.WriteString("\n" + fenced("json", indented(e.ToolInput)))
			}
		case wire.EntryToolResult:
			if e.Refusal != "" {
				fmt.Fprintf(&b, "\nNot allowed: %s\n", heading(e.Refusal))
			}
			if e.Result != "" {
				fmt.Fprintf(&b, "\nResult (%s):\n\n%s", heading(cmp.Or(e.Status, "completed")), fenced("", e.Result))
			}
		case "approval":
			fmt.Fprintf(&b, "\n> Question: %s\n", heading(decisionOf(e)))
		case wire.EntrySystem:
			fmt.Fprintf(&b, "\n> Note: %s\n", heading(e.Content))
		}
	}
	if len(r.Files) > 0 {
		b.WriteString("\n## Changes\n")
	}
	for _, f := range r.Files {
		fmt.Fprintf(&b, "\n### %s\n", heading(f.Path))
		if f.Diff != "" {
			b.WriteString("\n" + fenced("diff", f.Diff))
		}
	}
	return b.String()
}

// heading is a text on one line, without HTML.
func heading(text string) string {
	line := strings.Join(strings.Fields(shown(text)), " ")
	return withoutHTML(line, balanced([]string{line}))
}

// indented is JSON as people read it, or the text as it is.
func indented(text string) string {
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return text
	}
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return text
	}
	return string(raw)
}

// fenced is a code block around a text, whatever that has in it
// (https://spec.commonmark.org/0.31.2/#fenced-code-blocks).
func fenced(language, text string) string {
	text = shown(text)
	fence := visible.Fence(text)
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}
