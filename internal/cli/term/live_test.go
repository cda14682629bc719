package term

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// screen is a terminal that interprets the output of a Region.
type screen struct {
	columns, rows int
	lines         []string
	row, column   int
	written       int
}

func (s *screen) Write(p []byte) (int, error) {
	s.written += len(p)
	text := string(p)
	for text != "" {
		for len(s.lines) <= s.row {
			s.lines = append(s.lines, "")
		}
		switch {
		case strings.HasPrefix(text, "\x1b[J"):
			s.lines = append(s.lines[:s.row], s.lines[s.row][:min(s.column, len(s.lines[s.row]))])
			text = text[3:]
		case strings.HasPrefix(text, "\x1b["):
			n, rest := 0, text[2:]
			for ; rest[0] != 'A'; rest = rest[1:] {
				n = 10*n + int(rest[0]-'0')
			}
			s.row -= n
			text = rest[1:]
		case text[0] == '\r':
			s.column, text = 0, text[1:]
		case text[0] == '\n':
			s.row, s.column, text = s.row+1, 0, text[1:]
			for len(s.lines) <= s.row {
				s.lines = append(s.lines, "")
			}
		default:
			line := s.lines[s.row]
			s.lines[s.row] = line[:s.column] + text[:1] + line[min(len(line), s.column+1):]
			s.column, text = s.column+1, text[1:]
		}
	}
	return len(p), nil
}

func (s *screen) String() string { return strings.Join(s.lines, "\n") }

func TestRegionRedrawsRows(t *testing.T) {
	s := &screen{columns: 20, rows: 8}
	r := NewRegion(s, func() (int, int) { return s.columns, s.rows })
	assert.Equal(t, 19, r.Columns())
	for _, step := range []struct {
		text string
		rows []string
		want string
	}{
		{"", []string{"a"}, "a"},
		{"", []string{"abc"}, "abc"},
		{"", []string{"abc", "d", "e"}, "abc\nd\ne"},
		{"", []string{"abc", "x", "e"}, "abc\nx\ne"},
		{"", []string{"abc"}, "abc"},
		{"done\nand\n", []string{"abc", "f"}, "done\nand\nabc\nf"},
		{"", nil, "done\nand\n"},
		{"", []string{"1", "2", "3", "4", "5", "6", "7", "8"}, "done\nand\n3\n4\n5\n6\n7\n8"},
		{"end\n", nil, "done\nand\nend\n"},
	} {
		r.Print(step.text, step.rows...)
		assert.Equal(t, step.want, s.String(), "%q above %q", step.text, step.rows)
		assert.Equal(t, step.rows != nil, r.Shown())
	}
}

// Unchanged rows are not written again, because slow connections would flicker.
func TestRegionWritesOnlyDifferences(t *testing.T) {
	s := &screen{columns: 80, rows: 24}
	r := NewRegion(s, func() (int, int) { return s.columns, s.rows })
	r.Draw("first", "second")
	s.written = 0
	r.Draw("first", "second")
	assert.Zero(t, s.written)
	r.Draw("first", "second one")
	assert.Equal(t, len(" one"), s.written)
}

// A terminal that became narrower has wrapped the rows.
func TestRegionClearsAfterTerminalShrinks(t *testing.T) {
	s := &screen{columns: 20, rows: 24}
	r := NewRegion(s, func() (int, int) { return s.columns, s.rows })
	r.Draw("0123456789abcde")
	s.columns = 10
	s.lines, s.row, s.column = []string{"0123456789", "abcde"}, 1, 5
	r.Clear()
	assert.Equal(t, "", s.String())
}

func TestRowsSplitText(t *testing.T) {
	assert.Equal(t, []string{"one two", "three", "abcdefghij", "k"}, Rows("one two three\nabcdefghijk", 10))
	assert.Equal(t, []string{"abcd", "ef", "", "漢字", "漢 x"}, Rows("abcdef\n\n漢字漢\tx", 4))
}
