package turn

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// What is shown of a question before anybody asks for more: it fits on a
// screen, also where lines are broken at 60 characters.
const (
	mostLines  = 20      // of the whole, of the 24 that a terminal has at least
	leastLines = 5       // of each file, however many there are
	mostBytes  = 1 << 10 // of a section
	longLine   = 600     // bytes
	mostFiles  = 5       // whose diffs are begun
)

// Excerpt is what fits on a screen, and whether that is not all. Where
// something is hidden, a line says how much, and then more, which says how to
// see it.
func (s sheet) Excerpt(more string) (lines []QuestionLine, hidden bool) {
	room := max(leastLines, mostLines/max(1, len(s.sections)-1))
	for i, part := range s.sections {
		if i >= mostFiles && len(s.sections) > mostFiles+1 {
			rest := sheet{sections: s.sections[i:]}.Whole()
			return append(lines, remark("… %d more files: %s", len(s.sections)-i, left(rest, more))), true
		}
		lines = append(lines, part.head...)
		if part.remark != "" {
			lines = append(lines, QuestionLine{Remark, part.remark + more})
			hidden = true
			continue
		}
		body, cut := excerpt(part.body, room, more)
		lines, hidden = append(lines, body...), hidden || cut
	}
	return lines, hidden
}

// excerpt is the head and the tail of lines.
func excerpt(all []QuestionLine, most int, more string) (lines []QuestionLine, cut bool) {
	shortened := make([]QuestionLine, len(all))
	sum := 0
	for i, line := range all {
		text, short := shortLine(line.Text, more)
		shortened[i] = QuestionLine{line.Kind, text}
		sum += len(text)
		cut = cut || short
	}
	if len(all) <= most && sum <= mostBytes {
		return shortened, cut
	}
	head, tail, used := 0, 0, 0
	for head+tail < most && head+tail < len(all) { // two at the head for one at the tail
		next := head
		if (head+tail)%3 == 2 {
			next = len(all) - 1 - tail
		}
		if used += len(shortened[next].Text); used > mostBytes && head > 0 {
			break
		}
		if next == head {
			head++
		} else {
			tail++
		}
	}
	if head+tail >= len(all) {
		return shortened, cut
	}
	lines = append(lines, shortened[:head]...)
	lines = append(lines, remark("… %s", left(all[head:len(all)-tail], more)))
	return append(lines, shortened[len(all)-tail:]...), true
}

// shortLine is the head and the tail of a long line.
func shortLine(text, more string) (short string, cut bool) {
	if len(text) <= longLine {
		return text, false
	}
	head, tail := longLine*2/3, len(text)-longLine/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s … %s hidden%s … %s", text[:head], bytesOf(tail-head), more, text[tail:]), true
}

// left says how much of something is not shown, and what shows it.
func left(lines []QuestionLine, more string) string {
	sum := 0
	for _, line := range lines {
		sum += len(line.Text) + 1
	}
	word := "lines"
	if len(lines) == 1 {
		word = "line"
	}
	return fmt.Sprintf("%s more %s, %s hidden%s", grouped(len(lines)), word, bytesOf(sum), more)
}

func remark(format string, args ...any) QuestionLine {
	return QuestionLine{Remark, fmt.Sprintf(format, args...)}
}

func bytesOf(n int) string {
	if n == 1 {
		return "1 byte"
	}
	return grouped(n) + " bytes"
}

// grouped is a number with commas, as people read it.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
