package wire

import (
	"fmt"
	"strings"
)

// A PreviewFile is what fetch answers.
type PreviewFile struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    []byte            `json:"body"` // in base64
}

// PreviewShown is what navigate and refresh answer.
type PreviewShown struct {
	URL   string `json:"url"`
	Shown int    `json:"shown"`
}

// PageMessages is what listPageMessages answers.
type PageMessages struct {
	Messages []PageMessage `json:"messages"`
}

// A PageMessage is what a page of a preview has said, also as the notification pageMessage
// tells it.
type PageMessage struct {
	Kind    string `json:"kind"` // console, error or navigation
	Level   string `json:"level"`
	Message string `json:"message"`
	URL     string `json:"url"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Stack   string `json:"stack"`
	Count   int    `json:"count"`
}

// Text is the message in words. Its first line is the only one that begins with no space,
// so that nothing that a page says passes for another message.
func (m PageMessage) Text() string {
	var text strings.Builder
	said := indented(m.Message)
	message := strings.TrimPrefix(said, "Uncaught ")
	switch place := m.place(); m.Kind {
	case "navigation":
		text.WriteString("page: " + oneLine(m.URL))
		if m.Message != "" {
			text.WriteString(" (" + oneLine(m.Message) + ")")
		}
	case "error":
		text.WriteString("uncaught: " + message)
		if place != "" {
			text.WriteString(" (" + place + ")")
		}
	default:
		text.WriteString(oneLine(m.Level) + ": " + said)
		if place != "" {
			text.WriteString(" (" + place + ")")
		}
	}
	if m.Count > 1 {
		fmt.Fprintf(&text, " [%d times]", m.Count)
	}
	// Some browsers begin a stack with the message.
	stack := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(m.Stack), strings.TrimPrefix(m.Message, "Uncaught ")))
	if stack != "" {
		text.WriteString("\n    " + indented(stack))
	}
	return text.String()
}

func (m PageMessage) place() string {
	if m.URL == "" || m.Line == 0 {
		return oneLine(m.URL)
	}
	return fmt.Sprintf("%s:%d:%d", oneLine(m.URL), m.Line, m.Column)
}

// endsLine reports whether a character ends a line, for some program that shows a text.
func endsLine(r rune) bool {
	return '\n' <= r && r <= '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

// indented is a text whose lines begin with spaces, but for the first one. Empty lines
// are left out.
func indented(text string) string {
	var lines []string
	for line := range strings.FieldsFuncSeq(text, endsLine) {
		if line = strings.TrimSpace(line); line != "" || len(lines) == 0 {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n    ")
}

// oneLine is a text with spaces in place of its ends of lines.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if endsLine(r) {
			return ' '
		}
		return r
	}, text)
}
