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

// Text is the message in words; an error may have several lines.
func (m PageMessage) Text() string {
	var text strings.Builder
	message := strings.TrimPrefix(m.Message, "Uncaught ")
	switch place := m.place(); m.Kind {
	case "navigation":
		text.WriteString("page: " + m.URL)
		if m.Message != "" {
			text.WriteString(" (" + m.Message + ")")
		}
	case "error":
		text.WriteString("uncaught: " + message)
		if place != "" {
			text.WriteString(" (" + place + ")")
		}
	default:
		text.WriteString(m.Level + ": " + m.Message)
		if place != "" {
			text.WriteString(" (" + place + ")")
		}
	}
	if m.Count > 1 {
		fmt.Fprintf(&text, " [%d times]", m.Count)
	}
	// Some browsers begin a stack with the message.
	stack := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(m.Stack), message))
	for line := range strings.Lines(stack) {
		text.WriteString("\n    " + strings.TrimSpace(line))
	}
	return text.String()
}

func (m PageMessage) place() string {
	if m.URL == "" || m.Line == 0 {
		return m.URL
	}
	return fmt.Sprintf("%s:%d:%d", m.URL, m.Line, m.Column)
}
