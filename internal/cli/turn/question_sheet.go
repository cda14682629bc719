package turn

// A questionKind says what a line is, for its colour.
type questionKind int

// The kinds of lines.
const (
	questionText    questionKind = iota
	questionHeading              // what is asked
	input                        // of the tool
	fileName                     // in a diff
	hunk                         // where in the file
	added
	removed
	Remark // ours: what is not shown
)

// A QuestionLine is a line as it can be printed.
type QuestionLine struct {
	Kind questionKind
	Text string
}

// A section is a part that is cut for itself. Its head is always shown.
type section struct {
	head, body []QuestionLine
	remark     string // instead of the body, where that is not for reading
}

// A sheet is a question, laid out. It is not changed any more.
type sheet struct {
	tool     bool // it is about one
	sections []section
}

// Details is all but the heading of a question about a tool, and all of
// another one.
func (s sheet) Details() []QuestionLine {
	if s.tool {
		return sheet{sections: s.sections[1:]}.Whole()
	}
	return s.Whole()
}

// Heading is its first line.
func (s sheet) Heading() []QuestionLine {
	whole := s.Whole()
	return whole[:min(1, len(whole))]
}

// Whole is all of it.
func (s sheet) Whole() []QuestionLine {
	var lines []QuestionLine
	for _, part := range s.sections {
		lines = append(append(lines, part.head...), part.body...)
	}
	return lines
}
