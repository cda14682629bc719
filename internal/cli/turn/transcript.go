package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// Export of a session: as text for a terminal, as Markdown, and as JSON for other tools
// (docs/export.md).

// Conversation is a session up to a turn, and the files that the turn changed.
type Conversation struct {
	Session protocol.Turn
	Items   []*protocol.SessionItem
	Files   []ChangedFile
	Diff    string // of all files

	turn  json.RawMessage // the raw JSON of the fields above
	items []json.RawMessage
	files []json.RawMessage
}

// ChangedFile is a file that the turn changed.
type ChangedFile struct {
	Path   string `json:"path"`
	Diff   string `json:"diff"`
	Binary bool   `json:"binary"`
}

// ReadConversation reads a session up to a turn.
func ReadConversation(ctx context.Context, c *client.Client, id string) (Conversation, error) {
	var r Conversation
	s, _, err := hubclient.Call[struct{ Turn json.RawMessage }](ctx, c, "turn.get", protocol.TurnParams{Turn: protocol.Ref(id)})
	if err != nil {
		return r, err
	}
	r.turn = s.Turn
	if err := json.Unmarshal(s.Turn, &r.Session); err != nil {
		return r, err
	}
	err = hubclient.Items(ctx, c, r.Session.ID, func(i *protocol.SessionItem, raw json.RawMessage) error {
		r.Items, r.items = append(r.Items, i), append(r.items, raw)
		return nil
	})
	if err != nil {
		return r, err
	}
	return r, r.readFiles(ctx, c)
}

func (r *Conversation) readFiles(ctx context.Context, c *client.Client) error {
	changed, _, err := hubclient.Call[struct {
		Changes []json.RawMessage `json:"changes"`
		Diff    string            `json:"diff"`
	}](ctx, c, "change.list", protocol.TurnParams{Turn: protocol.Ref(r.Session.ID)})
	if err != nil {
		return err
	}
	r.files, r.Diff = changed.Changes, changed.Diff
	r.Files, err = decoded[ChangedFile](r.files)
	return err
}

func decoded[T any](list []json.RawMessage) ([]T, error) {
	out := make([]T, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// JSON returns the session in the format of docs/export.md.
func (r Conversation) JSON() ([]byte, error) {
	return json.MarshalIndent(struct {
		Format  string            `json:"format"`
		Version int               `json:"version"`
		Turn    json.RawMessage   `json:"turn"`
		Items   []json.RawMessage `json:"items"`
		Files   []json.RawMessage `json:"files"`
		Diff    string            `json:"diff"`
	}{"duet-session", 1, r.turn, protocol.List(r.items), protocol.List(r.files), r.Diff}, "", "  ")
}

// A Markdown export contains texts by several authors. The code below keeps each text in its
// place: no text can add a heading, a line or HTML that looks like the export's own
// (https://spec.commonmark.org/0.31.2/).

// deepest is the level of the export's deepest heading. Headings in texts get deeper levels.
const deepest = 3

var (
	// A heading, possibly in a list or a quotation.
	atxHeading = lazyregexp.New(`^((?:[ \t]*(?:>|[-*+]|[0-9]{1,9}[.)]))*[ \t]*)(#{1,6})([ \t]|$)`)
	// The underline of a heading.
	underline = lazyregexp.New(`^([ \t>]*)(=+|-+)[ \t]*$`)
	listItem  = lazyregexp.New(`^[ \t>]*(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)`)
	codeFence = lazyregexp.New("^( {0,3})(`{3,}|~{3,})([^`]*)$")
	// Lines that look like the export's own.
	ownLine   = lazyregexp.New(`^([ \t>]*>[ \t]*(?:Question|Note)[ \t]*|[ \t]*Result[ \t]+|[ \t]*Not[ \t]+allowed[ \t]*)([:(])`)
	autolink  = lazyregexp.New("^<(?:https?://|mailto:)[^\\s<>`|]*>")
	backquote = lazyregexp.New("`+")
)

// shown returns a text with all characters visible.
func shown(text string) string { return visible.Brackets.Prose(visible.WithoutColors(text)) }

// guestMarkdown returns a text as Markdown that is safe in the export: code blocks stay unchanged,
// headings are deeper than the export's, and HTML becomes text.
func guestMarkdown(text string) string {
	lines := strings.Split(strings.TrimRight(shown(text), "\n"), "\n")
	inline := balanced(lines)
	inList, blank := false, true // state of the previous line
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := codeFence().FindStringSubmatch(line); m != nil {
			end := i
			if inList && m[1] != "" {
				end = endInList(lines[i:], m[2], len(m[1])) + i
			} else if end = endOf(lines[i:], m[2]) + i; end == i {
				return strings.Join(append(lines, m[2]), "\n")
			}
			if end > i {
				i, blank = end, false
				continue
			}
			// Programs may disagree about its end, so this is no code block.
			line = m[1] + strings.NewReplacer("`", "\\`", "~", `\~`).Replace(line[len(m[1]):])
		}
		lines[i] = guestLine(line, blank, inList, inline)
		was := blank
		blank = strings.TrimSpace(line) == ""
		switch {
		case listItem().MatchString(line):
			inList = true
		case was && !blank && columns(line) == 0:
			inList = false
		}
	}
	return strings.Join(lines, "\n")
}

// endOf returns the index of the line that ends the code block at the start of lines, or 0 if
// no line does.
func endOf(lines []string, fence string) int {
	for i := 1; i < len(lines); i++ {
		if columns(lines[i]) <= 3 && closes(lines[i], fence) {
			return i
		}
	}
	return 0
}

// endInList is endOf for an indented code block that may be in a list. It returns 0 unless the
// end is the same with and without a list.
func endInList(lines []string, fence string, indent int) int {
	for i := 1; i < len(lines); i++ {
		at := columns(lines[i])
		switch {
		case strings.TrimSpace(lines[i]) == "":
		case at < indent:
			return 0
		case closes(lines[i], fence):
			if at > 3 {
				return 0
			}
			return i
		}
	}
	return 0
}

// columns returns the indentation of a line in columns.
func columns(line string) (n int) {
	for _, c := range line {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n
		}
	}
	return n
}

// closes reports whether a line ends a code block if its indentation is small enough.
func closes(line, fence string) bool {
	line = strings.Trim(line, " \t")
	return len(line) >= len(fence) && strings.Trim(line, fence[:1]) == ""
}

// guestLine makes a line outside of fenced code blocks safe. afterBlank means that the
// previous line is empty.
func guestLine(line string, afterBlank, inList, inline bool) string {
	code := !inList && columns(line) >= 4
	if m := atxHeading().FindStringSubmatch(line); m != nil && !(code && afterBlank) {
		level := min(len(m[2])+deepest, 6)
		line = m[1] + strings.Repeat("#", level) + line[len(m[1])+len(m[2]):]
	} else if m := underline().FindStringSubmatch(line); m != nil && !afterBlank {
		line = m[1] + `\` + line[len(m[1]):]
	} else if m := ownLine().FindStringSubmatch(line); m != nil {
		line = m[1] + `\` + line[len(m[1]):]
	}
	return withoutHTML(line, inline)
}

// withoutHTML inserts a space after each < that would start HTML, so that it is text even
// where programs disagree about code. Addresses in angle brackets stay unchanged. So does code
// in backquotes if inline is set.
func withoutHTML(line string, inline bool) string {
	if !strings.Contains(line, "<") {
		return line
	}
	var spans [][2]int
	if inline {
		spans, _ = codeSpans(line)
	}
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		if len(spans) > 0 && i == spans[0][0] {
			b.WriteString(line[i:spans[0][1]])
			i = spans[0][1] - 1
			spans = spans[1:]
			continue
		}
		b.WriteByte(line[i])
		if line[i] != '<' || i+1 == len(line) {
			continue
		}
		if link := autolink().FindString(line[i:]); link != "" {
			b.WriteString(link[1:])
			i += len(link) - 1
		} else if c := line[i+1]; c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("/!?", c) >= 0 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// balanced reports whether no code in backquotes spans lines. Then each line alone shows which
// parts are code.
func balanced(lines []string) bool {
	for _, line := range lines {
		if codeFence().MatchString(line) {
			continue
		}
		if _, ok := codeSpans(line); !ok {
			return false
		}
	}
	return true
}

// codeSpans finds code in backquotes. ok is false if a span may continue on another line, or
// if programs may disagree about its end.
func codeSpans(line string) (spans [][2]int, ok bool) {
	if strings.Contains(line, "\\`") {
		return nil, false
	}
	runs := backquote().FindAllStringIndex(line, -1)
	for len(runs) > 0 {
		begin := runs[0]
		end := 1
		for end < len(runs) && runs[end][1]-runs[end][0] != begin[1]-begin[0] {
			end++
		}
		if end == len(runs) || strings.Contains(line[begin[0]:runs[end][1]], "|") { // in a table, | ends a cell
			return nil, false
		}
		spans = append(spans, [2]int{begin[0], runs[end][1]})
		runs = runs[end+1:]
	}
	return spans, true
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
func (r Conversation) Text(look Look) string {
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
		return l.painted("2", "? "+term.Line(decisionOf(p.SessionItem))) + "\n\n"
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

// decisionOf returns a question and its decision.
func decisionOf(i *protocol.SessionItem) string {
	a := protocol.Value(i.Answer)
	text := strings.TrimSpace(a.Title + " " + a.Status)
	if a.DecidedBy != "" {
		text += " by " + a.DecidedBy
	}
	if a.Response != "" {
		text += ": " + a.Response
	}
	return text
}

// Markdown returns the session as CommonMark: the texts of users and agents, tool calls
// with inputs and results in code blocks, and the changes of files. No text in it can imitate
// the document's own headings and lines.
func (r Conversation) Markdown() string {
	var b strings.Builder
	s := r.Session
	fmt.Fprintf(&b, "# %s\n\n", heading(cmp.Or(s.Title, s.Summary, s.Name)))
	for _, about := range [][2]string{
		{"Turn", s.Name},
		{"Session", s.SessionUUID},
		{"Agent", s.Agent},
		{"Model", s.Model},
		{"Directory", s.WorkingDir},
		{"Begun", written(s.CreatedAt)},
		{"Ended", written(protocol.Value(s.EndedAt))},
		{"Status", s.Outcome()},
	} {
		if about[1] != "" {
			fmt.Fprintf(&b, "- %s: %s\n", about[0], heading(about[1]))
		}
	}
	for _, i := range r.Items {
		writeItem(&b, i)
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

// writeItem writes an item as Markdown.
func writeItem(b *strings.Builder, i *protocol.SessionItem) {
	switch i.Type {
	case protocol.ItemMessage:
		who := "Agent"
		switch {
		case i.Role == "user":
			who = "User"
		case i.ParentID != "":
			who = "Sub-agent"
		}
		fmt.Fprintf(b, "\n## %s\n\n%s\n", who, guestMarkdown(i.Text))
	case protocol.ItemThought:
		fmt.Fprintf(b, "\n## Thoughts\n\n%s\n", guestMarkdown(i.Text))
	case protocol.ItemToolCall:
		fmt.Fprintf(b, "\n### Tool: %s\n", heading(cmp.Or(i.Title, i.ToolName)))
		if input := string(i.ToolInput); input != "" && input != "{}" {
			b.WriteString("\n" + fenced("json", indented(input)))
		}
		if i.Refusal != "" {
			fmt.Fprintf(b, "\nNot allowed: %s\n", heading(i.Refusal))
		}
		if i.Result != "" {
			fmt.Fprintf(b, "\nResult (%s):\n\n%s", heading(cmp.Or(i.Status, "completed")), fenced("", i.Result))
		}
	case protocol.ItemAnswer:
		fmt.Fprintf(b, "\n> Question: %s\n", heading(decisionOf(i)))
	case protocol.ItemNotice:
		fmt.Fprintf(b, "\n> Note: %s\n", heading(i.Text))
	}
}

// heading formats a text as one line without HTML.
func heading(text string) string {
	line := strings.Join(strings.Fields(shown(text)), " ")
	return withoutHTML(line, balanced([]string{line}))
}

// indented returns indented JSON, or the text unchanged if it is not JSON.
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

// fenced returns a code block that can contain any text
// (https://spec.commonmark.org/0.31.2/#fenced-code-blocks).
func fenced(language, text string) string {
	text = shown(text)
	fence := visible.Fence(text)
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}

// written formats a time as in RFC 3339, or as "" if it is zero.
func written(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format(time.RFC3339Nano)
}
