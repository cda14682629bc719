package term

import (
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// Markdown on a terminal: CommonMark's blocks and emphasis, and GitHub's tables, strikethrough
// and task lists.
//
// No library does this fast enough. Each editor process would pay for it at its start:
// goldmark takes 1.3 ms, glamour more than 10 ms, and the first reply takes 5 ms in all.
// Streaming also needs to know, line by line, which blocks are complete.

// Renderer renders Markdown for a terminal of a given width. Marks makes control and invisible
// characters visible. Dim is for secondary text, such as thoughts: all of it is faint, and
// code has no colours.
type Renderer struct {
	Columns int
	Marks   visible.Marks
	Dim     bool
}

// Text renders a whole text. The result ends with a newline, unless it is empty.
func (r *Renderer) Text(text string) string {
	s := Stream{Renderer: *r}
	return s.Next(text) + s.End()
}

// Stream renders a text that arrives in pieces, block by block. It is not safe for concurrent
// use. The caller may change Columns between two pieces.
type Stream struct {
	Renderer
	chars   *visible.Stream
	split   splitter
	line    string // an incomplete line
	code    *codeBlock
	written bool // there was output
}

// Next adds a piece and returns the lines of the blocks that it completes.
func (s *Stream) Next(piece string) string {
	if s.chars == nil {
		s.chars = s.Marks.Stream()
	}
	return s.take(s.chars.Next(piece))
}

func (s *Stream) take(text string) string {
	var out strings.Builder
	s.line += text
	for {
		line, rest, whole := strings.Cut(s.line, "\n")
		if !whole && len(s.line) > longestBlock {
			line, rest, whole = s.line, "", true
		}
		if !whole {
			return out.String()
		}
		s.line = rest
		s.write(&out, s.split.next(strings.TrimSuffix(line, "\r")))
	}
}

// Pending returns the raw text of the incomplete block, including an incomplete line. An empty
// line precedes it if one will precede the rendered block.
func (s *Stream) Pending() string {
	text, apart := s.line, s.split.empty && s.written
	if s.split.open {
		text, apart = strings.Join(s.split.lines, "\n"), s.split.apart && s.written
		if s.line != "" {
			text += "\n" + s.line
		}
	}
	if apart && text != "" {
		return "\n" + text
	}
	return text
}

// End returns the rest of the text so far. Further pieces continue the same text.
func (s *Stream) End() string {
	var out strings.Builder
	if s.chars != nil {
		out.WriteString(s.take(s.chars.End()))
	}
	if s.line != "" {
		s.write(&out, s.split.next(strings.TrimSuffix(s.line, "\r")))
		s.line = ""
	}
	s.write(&out, s.split.rest())
	return out.String()
}

// write renders blocks.
func (s *Stream) write(out *strings.Builder, blocks []block) {
	for _, b := range blocks {
		if b.apart && s.written {
			out.WriteByte('\n')
		}
		s.written = true
		if s.code == nil {
			s.code = &codeBlock{plain: s.Dim}
		}
		for _, line := range s.render(b, s.Columns, 0, s.code) {
			out.WriteString(line + "\n")
		}
	}
}

// deepest is how deep lists and quotes may be nested. Deeper ones are shown in raw form.
const deepest = 12

// render returns the lines of a block.
func (r *Renderer) render(b block, columns, depth int, inFence *codeBlock) (lines []string) {
	switch b.kind {
	case heading:
		return r.heading(b.lines, columns)
	case rule:
		return []string{painted(strings.Repeat("─", max(1, min(columns, 40))), dimmed)}
	case fence:
		inFence.begin(fenceLine().FindStringSubmatch(b.lines[0])[3])
		return nil
	case code:
		return []string{inFence.line(b.lines[0])}
	case fenceEnd:
		return nil
	case indented:
		none := &codeBlock{plain: r.Dim}
		for _, line := range trimmedEnd(b.lines) {
			lines = append(lines, none.line(withoutIndent(line, 4)))
		}
		return lines
	case table:
		return r.table(b.lines, columns)
	}
	if depth < deepest {
		switch b.kind {
		case item:
			return r.item(b.lines, columns, depth)
		case quote:
			return r.quote(b.lines, columns, depth)
		}
	}
	return r.paragraph(b.lines, columns, 0)
}

func (r *Renderer) paragraph(lines []string, columns int, base style) (out []string) {
	text := make([]string, len(lines))
	for i, line := range lines {
		text[i] = strings.TrimRight(strings.TrimLeft(line, " \t"), " \t")
		if i < len(lines)-1 && strings.HasSuffix(text[i], `\`) && !strings.HasSuffix(text[i], `\\`) {
			text[i] = strings.TrimSuffix(text[i], `\`)
		}
	}
	for _, x := range wrapped(inline(strings.Join(text, "\n"), base|r.base(), r.Marks), columns) {
		out = append(out, x.String())
	}
	return out
}

var closingHashes = lazyregexp.New(`(^|[ \t])#+[ \t]*$`)

func (r *Renderer) heading(lines []string, columns int) []string {
	if len(lines) > 1 { // with an underline in the source
		return r.paragraph(lines[:len(lines)-1], columns, bold)
	}
	text := strings.TrimLeft(lines[0], " ")
	level := len(text) - len(strings.TrimLeft(text, "#"))
	base := bold
	if level == 1 {
		base |= linked // with an underline, too
	}
	return r.paragraph([]string{closingHashes().ReplaceAllString(text[level:], "")}, columns, base)
}

var task = lazyregexp.New(`^\[([ xX])\][ \t]+`)

func (r *Renderer) item(lines []string, columns, depth int) []string {
	m := itemLine().FindStringSubmatch(lines[0])
	offset := contentOffset(lines[0])
	first := withoutIndent(lines[0][len(m[1])+len(m[2]):], offset-len(m[1])-len(m[2]))
	marker := m[2]
	if len(marker) == 1 {
		marker = "•"
		if t := task().FindStringSubmatch(first); t != nil {
			marker = "☐"
			if t[1] != " " {
				marker = "☑"
			}
			first = first[len(t[0]):]
		}
	}
	inner := []string{first}
	for _, line := range trimmedEnd(lines[1:]) {
		inner = append(inner, withoutIndent(line, offset))
	}
	marker = r.Marks.Signs(marker)
	width := len([]rune(marker)) + 1
	return prefixed(r.blocks(inner, columns-width, depth+1), painted(marker, r.base())+" ", strings.Repeat(" ", width))
}

func (r *Renderer) quote(lines []string, columns, depth int) []string {
	inner := make([]string, len(lines))
	for i, line := range lines {
		inner[i] = strings.TrimPrefix(line, quoteLine().FindString(line))
	}
	bar := painted("│", dimmed) + " "
	return prefixed(r.blocks(inner, columns-2, depth+1), bar, bar)
}

// blocks renders the contents of an item or a quote.
func (r *Renderer) blocks(lines []string, columns, depth int) (out []string) {
	columns = max(columns, narrowest)
	var s splitter
	inFence := &codeBlock{plain: r.Dim}
	var all []block
	for _, line := range lines {
		all = append(all, s.next(line)...)
	}
	for _, b := range append(all, s.rest()...) {
		if b.apart && len(out) > 0 {
			out = append(out, "")
		}
		out = append(out, r.render(b, columns, depth, inFence)...)
	}
	return out
}

func prefixed(lines []string, first, rest string) []string {
	if len(lines) == 0 {
		lines = []string{""}
	}
	for i, line := range lines {
		prefix := rest
		if i == 0 {
			prefix = first
		}
		if line == "" {
			prefix = strings.TrimRight(prefix, " ")
		}
		lines[i] = prefix + line
	}
	return lines
}

func trimmedEnd(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// sgr has the SGR parameters (ECMA-48) of each style.
var sgr = []struct {
	style style
	code  string
}{{bold, "1"}, {italic, "3"}, {struck, "9"}, {coded, "36"}, {linked, "4"}, {dimmed, "2"}}

// base returns the style of all text.
func (r *Renderer) base() style {
	if r.Dim {
		return dimmed
	}
	return 0
}

// painted formats text in a style.
func painted(text string, s style) string {
	if s == 0 || text == "" {
		return text
	}
	var codes []string
	for _, c := range sgr {
		if s&c.style != 0 {
			codes = append(codes, c.code)
		}
	}
	return "\x1b[" + strings.Join(codes, ";") + "m" + text + "\x1b[0m"
}

// row is a line of output and its width.
type row struct {
	runs  []run
	width int
}

func (r *row) add(text string, s style, width int) {
	r.width += width
	if n := len(r.runs); n > 0 && r.runs[n-1].style == s {
		r.runs[n-1].text += text
		return
	}
	r.runs = append(r.runs, run{text, s})
}

func (r *row) String() string {
	var b strings.Builder
	for _, x := range r.runs {
		b.WriteString(painted(x.text, x.style))
	}
	return b.String()
}

// wrapped breaks runs into rows of at most this width. Line breaks stay. A word that is too
// long is cut.
func wrapped(runs []run, columns int) []row {
	columns = max(columns, 1)
	var rows []row
	var line, word row
	space := 0 // width of the white space before the word
	var spaceStyle style
	endWord := func() {
		if word.width == 0 && len(word.runs) == 0 {
			return
		}
		if line.width > 0 && line.width+space+word.width > columns {
			rows = append(rows, line)
			line = row{}
		} else if line.width > 0 && space > 0 {
			between := spaceStyle
			if line.runs[len(line.runs)-1].style&word.runs[0].style&linked == 0 { // one of them is not underlined
				between &^= linked
			}
			line.add(strings.Repeat(" ", space), between, space)
		}
		for _, r := range word.runs {
			line.add(r.text, r.style, displaywidth.String(r.text))
		}
		word, space = row{}, 0
	}
	for _, r := range runs {
		clusters := displaywidth.StringGraphemes(r.text)
		for clusters.Next() {
			text, width := clusters.Value(), clusters.Width()
			switch text {
			case "\n", "\r\n":
				endWord()
				rows = append(rows, line)
				line, space = row{}, 0
				continue
			case " ", "\t":
				if word.width > 0 {
					endWord()
					space = 0
				}
				space, spaceStyle = 1, r.style
				continue
			}
			if word.width+width > columns { // the word does not fit in any row
				endWord()
				rows = append(rows, line)
				line, space = row{}, 0
			}
			word.add(text, r.style, width)
		}
	}
	endWord()
	return append(rows, line)
}
