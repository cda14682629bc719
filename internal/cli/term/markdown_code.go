package term

import (
	"strings"
)

// A codeBlock is the code between two fences, as far as what stands in the first
// matters to how it is shown. Its lines are not wrapped: they may be copied.
type codeBlock struct {
	plain bool // it is faint, without colours
	diff  bool
	code  *Highlighter // nil: its language is not known
}

// Code renders a text in which every character is seen as code of a language.
func (r *Renderer) Code(language, text string) string {
	c := codeBlock{plain: r.Dim}
	c.begin(language)
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(c.line(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

// begin begins a block behind a fence with this info string.
func (c *codeBlock) begin(info string) {
	word, _, _ := strings.Cut(strings.TrimSpace(info), " ")
	word, _, _ = strings.Cut(strings.Trim(word, "{}"), ",")
	c.diff = word == "diff" || word == "patch"
	c.code = For(word)
}

// line is the next line.
func (c *codeBlock) line(line string) string {
	switch {
	case line == "":
		return ""
	case c.plain:
		return painted(line, dimmed)
	case c.diff:
		return diffLine(line)
	case c.code != nil:
		return c.code.Line(line)
	}
	return painted(line, coded)
}

// diffLine is a line of a diff.
func diffLine(line string) string {
	color := ""
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		color = "1"
	case strings.HasPrefix(line, "+"):
		color = "32"
	case strings.HasPrefix(line, "-"):
		color = "31"
	case strings.HasPrefix(line, "@@"):
		color = "36"
	default:
		return line
	}
	return "\x1b[" + color + "m" + line + "\x1b[0m"
}
