package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// A Transcript has the items of a session up to a turn, and what the turn changed.
type Transcript struct {
	Items []*protocol.SessionItem
	Diff  string // of all files
}

// ReadTranscript reads a session up to a turn.
func ReadTranscript(ctx context.Context, c *client.Client, id string) (Transcript, error) {
	var r Transcript
	s, _, err := hubclient.Turn(ctx, c, id)
	if err != nil {
		return r, err
	}
	err = hubclient.Items(ctx, c, s.ID, func(i *protocol.SessionItem) error {
		r.Items = append(r.Items, i)
		return nil
	})
	if err != nil {
		return r, err
	}
	changed, _, err := hubclient.Call[struct {
		Diff string `json:"diff"`
	}](ctx, c, "change.list", protocol.TurnParams{Turn: protocol.Ref(s.ID)})
	r.Diff = changed.Diff
	return r, err
}

// Look is the format of a session on a terminal.
type Look struct {
	Columns int
	Color   bool // render Markdown and colour diffs
}

// transcriptMostNested limits how far nested sub-agents are indented.
const transcriptMostNested = 8

// Text returns the session for a terminal, with all characters visible. Items that
// belong to a tool call, such as those of a sub-agent, are indented below it.
func (r Transcript) Text(look Look) string {
	var b strings.Builder
	depths := make(map[string]int) // of items in tool calls
	for _, p := range partsOf(r.Items) {
		indent := strings.Repeat("  ", depths[p.ParentID])
		if p.Type == protocol.ItemToolCall && p.Key != "" {
			depths[p.Key] = min(depths[p.ParentID]+1, transcriptMostNested)
		}
		for line := range strings.Lines(look.within(indent).part(p)) {
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

// underBox is how many lines of the screen stay free below the end of a session: for notes and the prompt box.
const underBox = 7

// ShowEnd prints the end of a session that fits on the screen. isCut says that the transcript lacks its
// beginning. how is the command that prints all.
func (v *View) ShowEnd(t Transcript, isCut bool, how string) {
	columns, rows, ok := term.Size(v.side)
	if !ok {
		columns, rows = 80, 24
	}
	text := strings.TrimRight(t.Text(Look{Columns: columns, Color: v.color}), "\n")
	if text == "" {
		return
	}
	lines := strings.Split(text, "\n")
	first, room := len(lines), max(rows-underBox, underBox)
	for first > 0 {
		if room -= 1 + displaywidth.String(lines[first-1])/columns; room < 0 {
			break
		}
		first--
	}
	switch {
	case first > 0:
		v.Note(term.Count(first, "line") + " of the session above: " + how)
	case isCut:
		v.Note("more of the session above: " + how)
	}
	v.endLine()
	for _, line := range lines[first:] {
		fmt.Fprintln(v.side, line)
	}
}

// A part is an item, or the result of a tool call apart from its call.
type part struct {
	*protocol.SessionItem
	isResult bool
}

// hasResult reports whether a tool call has ended, or has a result already.
func hasResult(i *protocol.SessionItem) bool {
	return i.Type == protocol.ItemToolCall && (i.Ended() || i.Result != "")
}

// partsOf returns the parts of items in the order of arrival: the result of a tool call is behind
// all items of the call.
func partsOf(items []*protocol.SessionItem) (parts []part) {
	type call struct{ turn, key string } // an agent may use a key again in another turn
	parents, last := make(map[call]string), make(map[call]int)
	for n, i := range items {
		if i.Type == protocol.ItemToolCall {
			parents[call{i.TurnUUID, i.Key}] = i.ParentID
			last[call{i.TurnUUID, i.Key}] = n
		}
		at := call{i.TurnUUID, i.ParentID}
		for depth := 0; at.key != "" && depth < transcriptMostNested; depth++ {
			last[at] = n
			at.key = parents[at]
		}
	}
	waiting := make(map[int][]part) // by index of the last item before them, the outermost call first
	for n, i := range items {
		parts = append(parts, part{SessionItem: i})
		if hasResult(i) {
			behind := last[call{i.TurnUUID, i.Key}]
			waiting[behind] = append(waiting[behind], part{i, true})
		}
		results := waiting[n]
		slices.Reverse(results)
		parts = append(parts, results...)
	}
	return parts
}

// within returns the look for text after an indentation.
func (l Look) within(indent string) Look {
	l.Columns = max(l.Columns-len(indent), 1)
	return l
}

// part formats a part for a terminal.
func (l Look) part(p part) string {
	switch p.Type {
	case protocol.ItemMessage:
		if p.Role == "user" {
			return l.painted("1", "❯ "+trimmed(term.Marks.Prose(p.Text))) + "\n" + l.labels("  ", p.Attachments) + "\n"
		}
		if len(p.Attachments) > 0 { // the text says the same
			return l.labels("", p.Attachments) + "\n"
		}
		return l.markdown(p.Text, false) + "\n\n"
	case protocol.ItemThought:
		if len(p.Attachments) > 0 {
			return l.labels("✻ ", p.Attachments) + "\n"
		}
		if l.Color {
			return l.markdown(p.Text, true) + "\n\n"
		}
		return "  (" + term.Indented(trimmed(term.Marks.Prose(p.Text))) + ")\n\n"
	case protocol.ItemToolCall:
		if p.isResult {
			return l.result(p.SessionItem)
		}
		return l.painted("1", "● "+term.Line(cmp.Or(p.Title, p.ToolName))+term.Line(inputOf(p.SessionItem))) + "\n"
	case protocol.ItemAnswer:
		return l.painted("2", "? "+term.Line(protocol.Value(p.Answer).Words())) + "\n\n"
	case protocol.ItemNotice:
		return l.painted("2", "— "+term.Indented(term.Exact(p.Text))) + "\n\n"
	}
	return ""
}

// result formats the result of a tool call.
func (l Look) result(i *protocol.SessionItem) string {
	text := trimmed(term.Exact(visible.WithoutColors(cmp.Or(i.Refusal, i.Result))))
	if text != "" {
		text = l.painted("2", "  "+term.Indented(text)) + "\n"
	}
	return text + l.labels("  ", protocol.Value(i.Details).Attachments) + "\n"
}

// labels lists attachments and the commands that save them, one line each.
func (l Look) labels(indent string, list []protocol.Attachment) string {
	var b strings.Builder
	for _, a := range list {
		line := a.Label()
		if how := howToSave(a); how != "" {
			line += " · " + how
		}
		b.WriteString(l.painted("2", indent+term.Line(line)) + "\n")
	}
	return b.String()
}

func trimmed(text string) string { return strings.TrimRight(text, "\n") }

// painted colours the lines of a text.
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

// markdown renders an agent's text.
func (l Look) markdown(text string, dim bool) string {
	if !l.Color {
		return trimmed(term.Marks.Prose(text))
	}
	r := term.Renderer{Columns: l.Columns, Marks: term.Marks, Dim: dim}
	return trimmed(r.Text(text))
}

// diff colours a unified diff.
func (l Look) diff(text string) string {
	if !l.Color {
		return text
	}
	r := term.Renderer{Columns: l.Columns, Marks: term.Marks}
	return r.Code("diff", text)
}

// inputOf returns the command or the file of a tool call after a colon, unless the title
// contains it.
func inputOf(i *protocol.SessionItem) string {
	var input struct {
		Command any    `json:"command"`
		Path    string `json:"file_path"`
	}
	if json.Unmarshal(i.ToolInput, &input) != nil {
		return ""
	}
	about := input.Path
	if command, ok := input.Command.(string); ok {
		about = cmp.Or(command, about)
	}
	if about == "" || strings.Contains(i.Title, about) {
		return ""
	}
	return ": " + about
}
