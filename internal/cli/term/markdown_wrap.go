package term

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// sgr are the parameters that turn a style on (ECMA-48, SGR).
var sgr = []struct {
	style style
	code  string
}{{bold, "1"}, {italic, "3"}, {struck, "9"}, {coded, "36"}, {linked, "4"}, {dimmed, "2"}}

// base is the style that all text has.
func (r *Renderer) base() style {
	if r.Dim {
		return dimmed
	}
	return 0
}

// painted is text in a style.
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

// A row is a line as it is shown, and how wide that is.
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

// wrapped lays runs out in rows of at most so many columns; lines stay lines. A
// word that is longer is cut.
func wrapped(runs []run, columns int) []row {
	columns = max(columns, 1)
	var rows []row
	var line, word row
	space := 0 // columns of white space before the word
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
			if line.runs[len(line.runs)-1].style&word.runs[0].style&linked == 0 { // one of them has no line below
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
			if word.width+width > columns { // too long for any row
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
