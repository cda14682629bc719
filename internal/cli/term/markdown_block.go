package term

import (
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// kind is the kind of a block.
type kind int

const (
	paragraph kind = iota
	heading
	rule
	fence    // the first line of a fence
	code     // a line in a fence
	fenceEnd // the last line of a fence
	indented // a code block by indentation
	item     // of a list
	quote
	table
)

// block is a part of a text that is rendered on its own.
type block struct {
	kind  kind
	lines []string
	apart bool // an empty line precedes it
}

// splitter splits a text into blocks, line by line. It returns each block as soon as it is
// complete.
type splitter struct {
	block   // the incomplete block
	open    bool
	empty   bool   // the last line was empty
	begun   bool   // a block was returned
	offset  int    // of an item: the indentation of its contents
	closing string // of a fence: how its last line begins; or ""
	inset   int    // of a fence: its indentation
}

var (
	headingLine   = lazyregexp.New(`^ {0,3}#{1,6}(?:[ \t]|$)`)
	ruleLine      = lazyregexp.New(`^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$`)
	fenceLine     = lazyregexp.New("^( {0,3})(`{3,}|~{3,})[ \t]*([^`]*)$")
	itemLine      = lazyregexp.New(`^( {0,3})([-+*]|\d{1,9}[.)])(?:[ \t]+|$)`)
	quoteLine     = lazyregexp.New(`^ {0,3}> ?`)
	delimiterLine = lazyregexp.New(`^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$`)
	underline     = lazyregexp.New(`^ {0,3}(?:=+|-+)[ \t]*$`)
)

// next adds a line and returns the blocks that it completes.
func (s *splitter) next(line string) (done []block) {
	give := func(b block) {
		b.apart = b.apart && s.begun
		s.begun = true
		done = append(done, b)
	}
	finish := func() {
		if s.open {
			give(s.block)
			s.open = false
		}
	}
	begin := func(k kind) {
		finish()
		s.block, s.open = block{k, []string{line}, s.empty}, true
		s.empty = false
	}
	whole := func(k kind) {
		begin(k)
		finish()
	}
	if s.closing != "" {
		if isClosing(line, s.closing) {
			s.closing = ""
			give(block{fenceEnd, []string{line}, false})
		} else {
			give(block{code, []string{withoutIndent(line, s.inset)}, false})
		}
		return done
	}
	if strings.TrimSpace(line) == "" {
		if s.open && (s.kind == item || s.kind == indented) {
			s.lines = append(s.lines, "")
		} else {
			finish()
		}
		s.empty = true
		return done
	}
	indent := indentOf(line)
	if s.open && s.kind == item && indent >= s.offset { // the line is part of the item
		s.lines, s.empty = append(s.lines, line), false
		return done
	}
	inText := s.open && !s.empty && (s.kind == paragraph || s.kind == item || s.kind == quote)
	switch {
	case s.open && s.kind == indented && indent >= 4, s.open && s.kind == quote && !s.empty && quoteLine().MatchString(line),
		s.open && s.kind == table && !startsBlock(line):
		s.lines = append(s.lines, line)
	case indent >= 4 && !inText:
		begin(indented)
	case headingLine().MatchString(line):
		whole(heading)
	case s.open && s.kind == paragraph && underline().MatchString(line):
		s.kind, s.lines = heading, append(s.lines, line)
		finish()
	case s.open && s.kind == paragraph && len(s.lines) == 1 && delimiterLine().MatchString(line) && strings.Contains(
		s.lines[0], "|",
	) && len(cells(s.lines[0])) == len(cells(line)):
		s.kind, s.lines = table, append(s.lines, line)
	case ruleLine().MatchString(line):
		whole(rule)
	case fenceLine().MatchString(line):
		m := fenceLine().FindStringSubmatch(line)
		s.closing, s.inset = m[2], len(m[1])
		whole(fence)
	case quoteLine().MatchString(line):
		begin(quote)
	case itemLine().MatchString(line) && !(inText && s.kind == paragraph && !interrupts(line)):
		begin(item)
		s.offset = contentOffset(line)
	case inText:
		s.lines = append(s.lines, line)
	default:
		begin(paragraph)
	}
	s.empty = false
	if s.open && size(s.lines) > longestBlock { // limits the buffered text
		finish()
	}
	return done
}

// longestBlock is the size in bytes from which a part of a block is rendered before the block
// is complete.
const longestBlock = 64 << 10

func size(lines []string) (n int) {
	for _, line := range lines {
		n += len(line)
	}
	return n
}

// rest returns the incomplete block. A fence stays open.
func (s *splitter) rest() (done []block) {
	if s.open {
		b := s.block
		b.apart = b.apart && s.begun
		s.begun, s.open = true, false
		done = append(done, b)
	}
	return done
}

// startsBlock reports whether a line ends the table before it.
func startsBlock(line string) bool {
	return headingLine().MatchString(line) || ruleLine().MatchString(line) || fenceLine().MatchString(line) || quoteLine().MatchString(line) || itemLine().MatchString(line)
}

// interrupts reports whether an item may follow a paragraph without an empty line. A year at
// the end of a sentence or a single dash may not.
func interrupts(line string) bool {
	m := itemLine().FindStringSubmatch(line)
	return len(m[0]) < len(line) && (len(m[2]) == 1 || m[2] == "1." || m[2] == "1)")
}

// isClosing reports whether a line ends a fence that began with these marks.
func isClosing(line, marks string) bool {
	trimmed := strings.TrimSpace(line)
	return indentOf(line) < 4 && len(trimmed) >= len(marks) && strings.Trim(trimmed, marks[:1]) == ""
}

// indentOf returns the indentation of a line in columns.
func indentOf(line string) (columns int) {
	for _, c := range line {
		switch c {
		case ' ':
			columns++
		case '\t':
			columns += 4 - columns%4
		default:
			return columns
		}
	}
	return columns
}

// withoutIndent removes up to this many columns of white space.
func withoutIndent(line string, columns int) string {
	at := 0
	for i := range len(line) {
		if at >= columns {
			return line[i:]
		}
		switch line[i] {
		case ' ':
			at++
		case '\t':
			if at += 4 - at%4; at > columns { // split the tab
				return strings.Repeat(" ", at-columns) + line[i+1:]
			}
		default:
			return line[i:]
		}
	}
	return ""
}

// contentOffset returns the indentation of an item's contents.
func contentOffset(line string) int {
	m := itemLine().FindStringSubmatch(line)
	marker := len(m[1]) + len(m[2])
	if spaces := indentOf(line[marker:]); len(m[0]) < len(line) && spaces <= 4 {
		return marker + spaces
	}
	return marker + 1
}

// codeBlock is the code in a fence and how it is shown. Its lines are not wrapped, so that
// users can copy them.
type codeBlock struct {
	plain bool // faint, without colours
	diff  bool
	code  *Highlighter // nil: the language is unknown
}

// Code highlights a text as code of a language. All characters must be visible already.
func (r *Renderer) Code(language, text string) string {
	c := codeBlock{plain: r.Dim}
	c.begin(language)
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(c.line(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

// begin starts a block with this info string.
func (c *codeBlock) begin(info string) {
	word, _, _ := strings.Cut(strings.TrimSpace(info), " ")
	word, _, _ = strings.Cut(strings.Trim(word, "{}"), ",")
	c.diff = word == "diff" || word == "patch"
	c.code = For(word)
}

// line formats the next line.
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

// diffLine colours a line of a diff.
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

// cells returns the raw cells of a table row.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}
	var list []string
	var cell strings.Builder
	inCode := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '|':
			cell.WriteByte('|')
			i++
		case c == '|' && !inCode:
			list = append(list, strings.TrimSpace(cell.String()))
			cell.Reset()
		default:
			if c == '`' && (inCode || strings.IndexByte(line[i+1:], '`') >= 0) {
				inCode = !inCode
			}
			cell.WriteByte(c)
		}
	}
	return append(list, strings.TrimSpace(cell.String()))
}

// narrowest is the smallest width of a table column.
const narrowest = 8

// table lays out a table in columns that fit.
func (r *Renderer) table(lines []string, columns int) []string {
	var align []string
	for _, cell := range cells(lines[1]) {
		align = append(align, strings.Trim(cell, "-"))
	}
	var grid [][][]run
	widths := make([]int, len(align))
	for i, line := range lines {
		if i == 1 {
			continue
		}
		base := r.base()
		if i == 0 {
			base |= bold
		}
		found := cells(line)
		cellsOf := make([][]run, len(align))
		for c := range align {
			if c < len(found) {
				cellsOf[c] = inline(found[c], base, r.Marks)
				widths[c] = max(widths[c], wrapped(cellsOf[c], 1<<30)[0].width)
			}
		}
		grid = append(grid, cellsOf)
	}
	const between = " │ "
	room := columns - 3*(len(widths)-1)
	for sum(widths) > room {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= narrowest {
			return r.records(grid, columns)
		}
		widths[widest]--
	}
	var out []string
	for i, cellsOf := range grid {
		var parts [][]row
		height := 1
		for c, runs := range cellsOf {
			parts = append(parts, wrapped(runs, max(widths[c], 1)))
			height = max(height, len(parts[c]))
		}
		for h := range height {
			var b strings.Builder
			for c, rows := range parts {
				var x row
				if h < len(rows) {
					x = rows[h]
				}
				gap := widths[c] - x.width
				left := 0
				switch align[c] {
				case ":":
					if strings.HasSuffix(cells(lines[1])[c], ":") && !strings.HasPrefix(cells(lines[1])[c], ":") {
						left = gap
					}
				case "::":
					left = gap / 2
				}
				if c > 0 {
					b.WriteString(painted(between, dimmed))
				}
				b.WriteString(strings.Repeat(" ", left) + x.String())
				if c < len(parts)-1 {
					b.WriteString(strings.Repeat(" ", gap-left))
				}
			}
			out = append(out, b.String())
		}
		if i == 0 {
			var b strings.Builder
			for c, w := range widths {
				if c > 0 {
					b.WriteString("─┼─")
				}
				b.WriteString(strings.Repeat("─", w))
			}
			out = append(out, painted(b.String(), dimmed))
		}
	}
	return out
}

// records lays out a table that is too wide for columns: one line for each cell.
func (r *Renderer) records(grid [][][]run, columns int) (out []string) {
	for i, cellsOf := range grid[1:] {
		if i > 0 {
			out = append(out, painted(strings.Repeat("─", min(columns, 20)), dimmed))
		}
		for c, runs := range cellsOf {
			line := append(slices.Clone(grid[0][c]), run{": ", 0})
			for _, x := range wrapped(append(line, runs...), columns) {
				out = append(out, x.String())
			}
		}
	}
	return out
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}
