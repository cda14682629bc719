package turn

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/visible"
)

// A file is one of a unified diff.
type file struct {
	head, lines   []string
	from, to      string // its names; /dev/null stays as it is
	before, after []byte // of its text, what the diff shows
	added, gone   int    // lines
}

// filesOf takes a unified diff apart. Inside of a hunk every line begins with a
// sign, and before the next hunk of the same file there is a line that has not
// changed: so three lines like the head of a file are one.
func filesOf(diff string) []file {
	var files []file
	lines := strings.SplitAfter(diff, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	for i := 0; i < len(lines); i++ {
		if i+2 < len(lines) && strings.HasPrefix(lines[i], "--- ") && strings.HasPrefix(lines[i+1], "+++ ") && strings.HasPrefix(lines[i+2], "@@") {
			files = append(files, file{
				head: []string{clean(lines[i]), clean(lines[i+1])},
				from: nameOf(lines[i], "--- ", "a/"), to: nameOf(lines[i+1], "+++ ", "b/"),
			})
			i++
			continue
		}
		if len(files) == 0 { // no diff of ours
			files = append(files, file{})
		}
		files[len(files)-1].take(lines[i])
	}
	return files
}

func clean(line string) string { return strings.TrimSuffix(line, "\n") }

func nameOf(line, sign, prefix string) string {
	return strings.TrimPrefix(strings.TrimPrefix(clean(line), sign), prefix)
}

var newline = []byte("\n")

// take takes a line below the head.
func (f *file) take(line string) {
	f.lines = append(f.lines, clean(line))
	switch line[0] {
	case '+':
		f.after = append(f.after, line[1:]...)
		f.added++
	case '-':
		f.before = append(f.before, line[1:]...)
		f.gone++
	case ' ':
		f.before = append(f.before, line[1:]...)
		f.after = append(f.after, line[1:]...)
	case '\\': // the line before it has no end
		switch last := f.lines[max(0, len(f.lines)-2)]; {
		case strings.HasPrefix(last, "+"):
			f.after = bytes.TrimSuffix(f.after, newline)
		case strings.HasPrefix(last, "-"):
			f.before = bytes.TrimSuffix(f.before, newline)
		default:
			f.before, f.after = bytes.TrimSuffix(f.before, newline), bytes.TrimSuffix(f.after, newline)
		}
	}
}

// section lays out the diff of a file.
func (f *file) section(m visible.Marks) section {
	var s section
	for _, line := range f.head {
		s.head = append(s.head, QuestionLine{fileName, m.Exact(line)})
	}
	for _, line := range f.lines {
		kind := questionText
		switch {
		case strings.HasPrefix(line, "@@"):
			kind = hunk
		case strings.HasPrefix(line, "+"):
			kind = added
		case strings.HasPrefix(line, "-"):
			kind = removed
		}
		s.body = append(s.body, QuestionLine{kind, m.Exact(line)})
	}
	if bytes.IndexByte(f.before, 0) >= 0 || bytes.IndexByte(f.after, 0) >= 0 {
		s.remark = fmt.Sprintf("… binary: %s before, %s after", bytesOf(len(f.before)), bytesOf(len(f.after)))
	}
	return s
}
