package diff

import (
	"fmt"
	"strconv"
	"strings"
)

// A Hunk is one change of a unified diff, with the lines around it. Lines keep their ends; the
// last one of a file may have none.
type Hunk struct {
	OldStart, OldLines int // as in its header: without lines, the start is 0
	NewStart, NewLines int
	Added, Removed     int    // lines
	Old, New           string // the text before and after the change
	Body               string // its lines in the diff, without the header
}

// Hunks returns the hunks of the diff of one file, as [Unified] makes it.
func Hunks(unified string) []Hunk {
	var hunks []Hunk
	var old, new, body strings.Builder
	end := func() {
		if len(hunks) > 0 {
			h := &hunks[len(hunks)-1]
			h.Old, h.New, h.Body = old.String(), new.String(), body.String()
		}
		old.Reset()
		new.Reset()
		body.Reset()
	}
	left := 0 // remaining lines of the hunk
	lines := splitLines(unified)
	for i, line := range lines {
		if left == 0 {
			if h, ok := head(line); ok {
				end()
				hunks = append(hunks, h)
				left = h.OldLines + h.NewLines
			} else if line[0] == '\\' && len(hunks) > 0 {
				body.WriteString(line)
			}
			continue
		}
		body.WriteString(line)
		if line[0] == '\\' {
			continue
		}
		text := line[1:]
		if i+1 < len(lines) && lines[i+1][0] == '\\' { // the file has no newline there
			text = strings.TrimSuffix(text, "\n")
		}
		h := &hunks[len(hunks)-1]
		switch line[0] {
		case ' ':
			old.WriteString(text)
			new.WriteString(text)
			left -= 2
		case '-':
			old.WriteString(text)
			h.Removed++
			left--
		case '+':
			new.WriteString(text)
			h.Added++
			left--
		}
	}
	end()
	return hunks
}

// Changes splits a hunk into its changes, blocks of added and removed lines. Each is a hunk that can
// be undone alone: the changes divide the unchanged lines between them. Two changes stay one if the
// last would have no text before or after the change, which nothing could find in a file.
func (h Hunk) Changes() []Hunk {
	lines := markedLines(h.Body)
	if firstChange(lines) == len(lines) {
		return []Hunk{h}
	}
	var list []Hunk
	for old, now := h.OldStart, h.NewStart; len(lines) > 0; {
		n := firstChange(lines)
		var oldLines, newLines int
		for _, line := range lines[:n] {
			if line[0] != '+' {
				oldLines++
			}
			if line[0] != '-' {
				newLines++
			}
		}
		header := fmt.Sprintf("@@ -%s +%s @@\n", lineRange(old, oldLines), lineRange(now, newLines))
		list = append(list, Hunks(header+strings.Join(lines[:n], ""))...)
		old, now, lines = old+oldLines, now+newLines, lines[n:]
	}
	return list
}

// Bare returns the position of a hunk's changed lines, without the unchanged lines around them and
// without texts. Without lines, a start is the line before.
func (h Hunk) Bare() Hunk {
	lines := markedLines(h.Body)
	before := 0
	for before < len(lines) && lines[before][0] == ' ' {
		before++
	}
	around := before
	for i := len(lines) - 1; i > before && lines[i][0] == ' '; i-- {
		around++
	}
	bare := Hunk{Added: h.Added, Removed: h.Removed, OldLines: h.OldLines - around, NewLines: h.NewLines - around}
	bare.OldStart, bare.NewStart = h.OldStart+before, h.NewStart+before
	if bare.OldLines == 0 && h.OldLines > 0 {
		bare.OldStart--
	}
	if bare.NewLines == 0 && h.NewLines > 0 {
		bare.NewStart--
	}
	return bare
}

// firstChange returns the number of lines that the first change of a hunk's lines has.
func firstChange(lines []string) int {
	end := 0
	skip := func(unchanged bool) {
		for end < len(lines) && (lines[end][0] == ' ') == unchanged {
			end++
		}
	}
	skip(true)
	skip(false)
	changed := end
	skip(true)
	if end == len(lines) {
		return end
	}
	cut := changed + (end-changed)/2
	if isOneSided(lines[:cut]) {
		cut++
	}
	if isOneSided(lines[cut:]) {
		return len(lines)
	}
	return cut
}

// isOneSided reports whether lines of a hunk are only added or only removed.
func isOneSided(lines []string) bool {
	for _, line := range lines {
		if line[0] == ' ' || line[0] != lines[0][0] {
			return false
		}
	}
	return true
}

// markedLines splits a hunk's body. The mark of a line without a newline stays with its line.
func markedLines(body string) (lines []string) {
	for line := range strings.Lines(body) {
		if line[0] == '\\' && len(lines) > 0 {
			lines[len(lines)-1] += line
		} else {
			lines = append(lines, line)
		}
	}
	return lines
}

// numbered corrects the hunk numbers in the new file, in a diff of one file: the library ignores
// the lines between two edits of a hunk when it numbers the next one. before is the number of lines
// of the file before the texts of the diff.
func numbered(unified string, before int) string {
	var b strings.Builder
	b.Grow(len(unified))
	left, shift := 0, 0
	for line := range strings.Lines(unified) {
		h, is := Hunk{}, false
		if left == 0 {
			h, is = head(line)
		}
		switch {
		case is:
			start := h.OldStart + shift
			if h.OldLines == 0 { // it names the line before
				start++
			}
			if h.NewLines == 0 {
				start--
			}
			line = fmt.Sprintf("@@ -%s +%s @@\n", lineRange(h.OldStart+before, h.OldLines), lineRange(start+before, h.NewLines))
			shift += h.NewLines - h.OldLines
			left = h.OldLines + h.NewLines
		case left > 0 && line[0] == ' ':
			left -= 2
		case left > 0 && line[0] != '\\':
			left--
		}
		b.WriteString(line)
	}
	return b.String()
}

// lineRange returns a range of a hunk's header.
func lineRange(start, lines int) string {
	if lines == 1 {
		return strconv.Itoa(start)
	}
	return fmt.Sprintf("%d,%d", start, lines)
}

// head parses the first line of a hunk.
func head(line string) (h Hunk, ok bool) {
	rest, ok := strings.CutPrefix(line, "@@ ")
	if !ok {
		return h, false
	}
	ranges, _, ok := strings.Cut(rest, " @@")
	if !ok {
		return h, false
	}
	before, after, ok := strings.Cut(ranges, " ")
	if !ok || !span(before, '-', &h.OldStart, &h.OldLines) || !span(after, '+', &h.NewStart, &h.NewLines) {
		return h, false
	}
	return h, true
}

// span parses the first line and the number of lines; a missing number means one.
func span(text string, mark byte, start, lines *int) bool {
	if text == "" || text[0] != mark {
		return false
	}
	if *lines = 1; !strings.Contains(text, ",") {
		_, err := fmt.Sscanf(text[1:], "%d", start)
		return err == nil
	}
	_, err := fmt.Sscanf(text[1:], "%d,%d", start, lines)
	return err == nil
}

func splitLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		lines = append(lines, line)
	}
	return lines
}
