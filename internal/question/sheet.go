package question

// A Kind says what a line is, for its colour.
type Kind int

// The kinds of lines.
const (
	Text     Kind = iota
	Heading       // what is asked
	Input         // of the tool
	FileName      // in a diff
	Hunk          // where in the file
	Added
	Removed
	Remark // ours: what is not shown
)

// A Line is a line as it can be printed.
type Line struct {
	Kind Kind
	Text string
}

// A section is a part that is cut for itself. Its head is always shown.
type section struct {
	head, body []Line
	remark     string // instead of the body, where that is not for reading
}

// A Sheet is a question, laid out. It is not changed any more.
type Sheet struct {
	tool     bool // it is about one
	sections []section
}

// Details is all but the heading of a question about a tool, and all of
// another one.
func (s Sheet) Details() []Line {
	if s.tool {
		return Sheet{sections: s.sections[1:]}.Whole()
	}
	return s.Whole()
}

// Heading is its first line.
func (s Sheet) Heading() []Line {
	whole := s.Whole()
	return whole[:min(1, len(whole))]
}

// Whole is all of it.
func (s Sheet) Whole() []Line {
	var lines []Line
	for _, part := range s.sections {
		lines = append(append(lines, part.head...), part.body...)
	}
	return lines
}
