// Package screen is the contents of a terminal for tests and pictures: lines of text, each part with
// its style.
package screen

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
)

// A Style is the look of a part of a line. Fore and Back are colours as SGR parameters of
// ECMA-48 name them, such as 31 or 38;5;240; "" is the terminal's default.
type Style struct {
	Bold, Dim, Italic, Underline, Reverse, Struck bool

	Fore, Back string
}

// A Part is text of one style.
type Part struct {
	Text string
	Style
}

// A Line is one line of a terminal, from the left.
type Line []Part

// Text returns the text of the line.
func (l Line) Text() string {
	var b strings.Builder
	for _, p := range l {
		b.WriteString(p.Text)
	}
	return b.String()
}

// sequences are the escape sequences in a capture of a terminal: SGR, and others, which are
// dropped.
var sequences = lazyregexp.New("\x1b\\[([0-9;:]*)m|\x1b\\[[0-9;?]*[A-Za-z]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[\x0e\x0f\r]")

// Parse parses lines whose styles are SGR sequences, as `tmux capture-pane -e` prints them.
func Parse(text string) (lines []Line) {
	var style Style
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		var l Line
		rest := line
		for rest != "" {
			at := sequences().FindStringSubmatchIndex(rest)
			if at == nil {
				l = l.with(rest, style)
				break
			}
			l = l.with(rest[:at[0]], style)
			if at[2] >= 0 {
				style.apply(rest[at[2]:at[3]])
			}
			rest = rest[at[1]:]
		}
		lines = append(lines, l.trimmed())
	}
	for len(lines) > 0 && len(lines[len(lines)-1]) == 0 {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// with returns the line with text appended.
func (l Line) with(text string, style Style) Line {
	switch last := len(l) - 1; {
	case text == "":
		return l
	case last >= 0 && l[last].Style == style:
		l[last].Text += text
		return l
	}
	return append(l, Part{text, style})
}

// trimmed returns the line without invisible spaces at its end.
func (l Line) trimmed() Line {
	for len(l) > 0 {
		last := &l[len(l)-1]
		if last.Back != "" || last.Reverse || last.Underline {
			break
		}
		if last.Text = strings.TrimRight(last.Text, " "); last.Text != "" {
			break
		}
		l = l[:len(l)-1]
	}
	return l
}

// apply changes a style by the parameters of an SGR sequence.
func (s *Style) apply(parameters string) {
	list := strings.Split(strings.ReplaceAll(parameters, ":", ";"), ";")
	for i := 0; i < len(list); i++ {
		n, _ := strconv.Atoi(list[i]) // "" is 0
		switch {
		case n == 0:
			*s = Style{}
		case n == 1:
			s.Bold = true
		case n == 2:
			s.Dim = true
		case n == 3:
			s.Italic = true
		case n == 4:
			s.Underline = true
		case n == 7:
			s.Reverse = true
		case n == 9:
			s.Struck = true
		case n == 22:
			s.Bold, s.Dim = false, false
		case n == 23:
			s.Italic = false
		case n == 24:
			s.Underline = false
		case n == 27:
			s.Reverse = false
		case n == 29:
			s.Struck = false
		case n == 38 || n == 48:
			length := 3 // 38;5;COLOUR
			if i+1 < len(list) && list[i+1] == "2" {
				length = 5 // 38;2;RED;GREEN;BLUE
			}
			colour := strings.Join(list[i:min(len(list), i+length)], ";")
			if n == 38 {
				s.Fore = colour
			} else {
				s.Back = colour
			}
			i += length - 1
		case n == 39:
			s.Fore = ""
		case n == 49:
			s.Back = ""
		case n >= 30 && n < 38 || n >= 90 && n < 98:
			s.Fore = list[i]
		case n >= 40 && n < 48 || n >= 100 && n < 108:
			s.Back = list[i]
		}
	}
}

// sequence returns the SGR sequence that begins a style, or "".
func (s Style) sequence() string {
	var list []string
	for _, c := range []struct {
		has       bool
		parameter string
	}{
		{s.Bold, "1"},
		{s.Dim, "2"},
		{s.Italic, "3"},
		{s.Underline, "4"},
		{s.Reverse, "7"},
		{s.Struck, "9"},
		{s.Fore != "", s.Fore},
		{s.Back != "", s.Back},
	} {
		if c.has {
			list = append(list, c.parameter)
		}
	}
	if list == nil {
		return ""
	}
	return "\x1b[" + strings.Join(list, ";") + "m"
}

// Replace replaces each match, which may span several parts: the new text has the style of the
// first.
func (l Line) Replace(pattern *regexp.Regexp, by func(match string) string) Line {
	text := l.Text()
	matches := pattern.FindAllStringIndex(text, -1)
	if matches == nil {
		return l
	}
	var out Line
	at := 0 // start of the part in the text
	for _, p := range l {
		end := at + len(p.Text)
		for at < end {
			i := slices.IndexFunc(matches, func(m []int) bool { return m[1] > at })
			if i < 0 || matches[i][0] >= end {
				out = out.with(text[at:end], p.Style)
				break
			}
			from, to := matches[i][0], matches[i][1]
			if at <= from { // it begins in this part
				out = out.with(text[at:from], p.Style)
				out = out.with(by(text[from:to]), p.Style)
			}
			at = min(to, end)
		}
		at = end
	}
	return out.trimmed()
}

// Wrap breaks lines as a terminal of that width does.
func Wrap(lines []Line, columns int) (wrapped []Line) {
	for _, l := range lines {
		var row Line
		room := columns
		for _, p := range l {
			g := displaywidth.StringGraphemes(p.Text)
			for g.Next() {
				if width := g.Width(); width > room {
					wrapped = append(wrapped, row.trimmed())
					row, room = nil, columns
				}
				room -= g.Width()
				row = row.with(g.Value(), p.Style)
			}
		}
		wrapped = append(wrapped, row.trimmed())
	}
	return wrapped
}

// Plain returns lines without their styles.
func Plain(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text() + "\n")
	}
	return b.String()
}

// Colored returns lines with their styles as SGR sequences. Lines that look the same have the
// same sequences, whichever terminal they came from.
func Colored(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		for _, p := range l {
			if begin := p.sequence(); begin != "" {
				b.WriteString(begin + p.Text + "\x1b[0m")
			} else {
				b.WriteString(p.Text)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
