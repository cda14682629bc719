package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// markdown is CommonMark: the texts of users and agents, tool calls with inputs and results in code
// blocks, and the changes of files. No text in it can imitate the document's own headings and lines.
type markdown struct{}

func (markdown) Head(t *protocol.Turn) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", heading(cmp.Or(t.Title, t.Summary, t.Name)))
	for _, about := range [][2]string{
		{"Turn", t.Name},
		{"Session", t.SessionUUID},
		{"Agent", t.Agent},
		{"Model", t.Model},
		{"Directory", t.WorkingDir},
		{"Begun", written(t.CreatedAt)},
		{"Ended", written(protocol.Value(t.EndedAt))},
		{"Status", t.Outcome()},
	} {
		if about[1] != "" {
			fmt.Fprintf(&b, "- %s: %s\n", about[0], heading(about[1]))
		}
	}
	return b.String(), nil
}

func (markdown) Item(i *protocol.SessionItem, _ bool) (string, error) {
	var b strings.Builder
	writeItem(&b, i)
	return b.String(), nil
}

func (markdown) Tail(changed protocol.ChangeList, _ bool) (string, error) {
	var b strings.Builder
	if len(changed.Changes) > 0 {
		b.WriteString("\n## Changes\n")
	}
	for _, c := range changed.Changes {
		fmt.Fprintf(&b, "\n### %s\n", heading(c.Path))
		if c.Diff != "" {
			b.WriteString("\n" + fenced("diff", c.Diff))
		}
	}
	return b.String(), nil
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
			fmt.Fprintf(b, "\nResult (%s):\n\n%s", heading(string(cmp.Or(i.Status, protocol.ToolCompleted))), fenced("", i.Result))
		}
	case protocol.ItemAnswer:
		fmt.Fprintf(b, "\n> Question: %s\n", heading(protocol.Value(i.Answer).Words()))
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
