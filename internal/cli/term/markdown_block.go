package term

import (
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// A kind is what a block is.
type kind int

const (
	paragraph kind = iota
	heading
	rule
	fence    // its first line
	code     // a line in a fence
	fenceEnd // its last line
	indented // code that is indented
	item     // of a list
	quote
	table
)

// A block is a part of a text that is rendered for itself.
type block struct {
	kind  kind
	lines []string
	apart bool // an empty line stands before it
}

// A splitter takes a text line by line and gives its blocks as soon as they are
// complete.
type splitter struct {
	block   // what is not complete
	open    bool
	empty   bool   // the last line was empty
	begun   bool   // a block was given
	offset  int    // of an item: how far its contents are indented
	closing string // of a fence: what its last line begins with; or ""
	inset   int    // of a fence: how far it is indented
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

// next takes a line, and gives what it completes.
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
	if s.open && s.kind == item && indent >= s.offset { // it is part of the item
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
	case s.open && s.kind == paragraph && len(s.lines) == 1 && delimiterLine().MatchString(line) && strings.Contains(s.lines[0], "|") && len(cells(s.lines[0])) == len(cells(line)):
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
	if s.open && size(s.lines) > longestBlock { // so that what waits is bounded
		finish()
	}
	return done
}

// longestBlock is how long a block may be, in bytes, before a part of it counts as
// complete.
const longestBlock = 64 << 10

func size(lines []string) (n int) {
	for _, line := range lines {
		n += len(line)
	}
	return n
}

// rest gives what is there of the block that is not complete. A fence stays open.
func (s *splitter) rest() (done []block) {
	if s.open {
		b := s.block
		b.apart = b.apart && s.begun
		s.begun, s.open = true, false
		done = append(done, b)
	}
	return done
}

// startsBlock tells whether a line ends the table before it.
func startsBlock(line string) bool {
	return headingLine().MatchString(line) || ruleLine().MatchString(line) || fenceLine().MatchString(line) || quoteLine().MatchString(line) || itemLine().MatchString(line)
}

// interrupts tells whether an item may follow a paragraph without an empty line:
// not a year that ends a sentence, nor a dash alone.
func interrupts(line string) bool {
	m := itemLine().FindStringSubmatch(line)
	return len(m[0]) < len(line) && (len(m[2]) == 1 || m[2] == "1." || m[2] == "1)")
}

// isClosing tells whether a line ends a fence that has begun with these marks.
func isClosing(line, marks string) bool {
	trimmed := strings.TrimSpace(line)
	return indentOf(line) < 4 && len(trimmed) >= len(marks) && strings.Trim(trimmed, marks[:1]) == ""
}

// indentOf is how far a line is indented, in columns.
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

// withoutIndent takes up to so many columns of white space away.
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
			if at += 4 - at%4; at > columns { // a tab that is cut
				return strings.Repeat(" ", at-columns) + line[i+1:]
			}
		default:
			return line[i:]
		}
	}
	return ""
}

// contentOffset is how far the contents of an item are indented.
func contentOffset(line string) int {
	m := itemLine().FindStringSubmatch(line)
	marker := len(m[1]) + len(m[2])
	if spaces := indentOf(line[marker:]); len(m[0]) < len(line) && spaces <= 4 {
		return marker + spaces
	}
	return marker + 1
}
