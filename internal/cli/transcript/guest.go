package transcript

import (
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// An export is one Markdown document of texts by several authors. What is here keeps each
// text in its place: it makes no heading, no line and no HTML that could pass for the
// export's own (https://spec.commonmark.org/0.31.2/).

// deepest is the level of the export's deepest heading. Headings of texts are below it.
const deepest = 3

var (
	// A heading, also in a list or a quotation.
	atxHeading = lazyregexp.New(`^((?:[ \t]*(?:>|[-*+]|[0-9]{1,9}[.)]))*[ \t]*)(#{1,6})([ \t]|$)`)
	// The line below the text of a heading.
	underline = lazyregexp.New(`^([ \t>]*)(=+|-+)[ \t]*$`)
	listItem  = lazyregexp.New(`^[ \t>]*(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]|$)`)
	codeFence = lazyregexp.New("^( {0,3})(`{3,}|~{3,})([^`]*)$")
	// Lines as the export writes them itself.
	ownLine   = lazyregexp.New(`^([ \t>]*>[ \t]*(?:Question|Note)[ \t]*|[ \t]*Result[ \t]+|[ \t]*Not[ \t]+allowed[ \t]*)([:(])`)
	autolink  = lazyregexp.New("^<(?:https?://|mailto:)[^\\s<>`|]*>")
	backquote = lazyregexp.New("`+")
)

// shown is a text in which each character is seen.
func shown(text string) string { return visible.Brackets.Prose(visible.WithoutColors(text)) }

// guest is a text that stays Markdown: code blocks are as they are, headings are deeper than
// the export's, and HTML is text.
func guest(text string) string {
	lines := strings.Split(strings.TrimRight(shown(text), "\n"), "\n")
	inline := balanced(lines)
	inList, blank := false, true // what the line before is in
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
			// Programs may differ about where it ends: it is none.
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

// endOf is where a code block ends that begins with lines, or 0 if it does not.
func endOf(lines []string, fence string) int {
	for i := 1; i < len(lines); i++ {
		if columns(lines[i]) <= 3 && closes(lines[i], fence) {
			return i
		}
	}
	return 0
}

// endInList is as endOf for one that is indented and may be in a list. It is 0 unless the
// block ends there whether it is in a list or not.
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

// columns is how far a line is indented.
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

// closes reports whether a line ends a code block, if it is not indented too far.
func closes(line, fence string) bool {
	line = strings.Trim(line, " \t")
	return len(line) >= len(fence) && strings.Trim(line, fence[:1]) == ""
}

// guestLine is a line that is in no fenced code block. afterBlank tells that the one before
// is empty.
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

// withoutHTML puts a space between each < and a letter that would begin HTML: so it is text
// also in what some programs take for code. Addresses in angle brackets stay; so does code
// in backquotes where inline is set.
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

// balanced reports whether no code in backquotes of a text goes on in another line: then
// each line tells what is code in it.
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

// codeSpans finds code in backquotes. ok is false if one may go on in another line, or
// programs may differ about where it ends.
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
		if end == len(runs) || strings.Contains(line[begin[0]:runs[end][1]], "|") { // a table has its own ends
			return nil, false
		}
		spans = append(spans, [2]int{begin[0], runs[end][1]})
		runs = runs[end+1:]
	}
	return spans, true
}
