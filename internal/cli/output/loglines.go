package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// LogLines writes what it is given of a log line by line, so that nothing in it
// talks to the terminal: a log can have come with a project. As JSON a line is an
// object: the members that it has, or its text where it is of another form, as
// what a crash prints. Close writes a last line that has no end.
type LogLines struct {
	Out  io.Writer
	JSON bool
	rest []byte
}

func (l *LogLines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		if err := l.print(string(line)); err != nil {
			return 0, err
		}
		l.rest = rest
	}
}

func (l *LogLines) Close() error {
	if len(l.rest) == 0 {
		return nil
	}
	return l.print(string(l.rest))
}

func (l *LogLines) print(line string) error {
	if !l.JSON {
		_, err := fmt.Fprintln(l.Out, Exact(line))
		return err
	}
	members, ok := logMembers(line)
	if !ok {
		members = map[string]string{"text": line}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return Raw(l.Out, raw)
}

// logMembers are the members of a line as log/slog writes it: name=value, where
// either may be quoted as in Go.
func logMembers(line string) (members map[string]string, ok bool) {
	members = make(map[string]string)
	for line != "" {
		name, rest, ok := word(line, "=")
		if !ok || name == "" || !strings.HasPrefix(rest, "=") {
			return nil, false
		}
		value, rest, ok := word(rest[1:], " ")
		if !ok {
			return nil, false
		}
		members[name] = value
		line = strings.TrimPrefix(rest, " ")
	}
	return members, members["time"] != "" && members["level"] != ""
}

// word is what a text begins with, up to an end unless it is quoted.
func word(text, end string) (word, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		i := strings.Index(text, end)
		if i < 0 {
			i = len(text)
		}
		return text[:i], text[i:], true
	}
	quoted, err := strconv.QuotedPrefix(text)
	if err != nil {
		return "", "", false
	}
	word, err = strconv.Unquote(quoted)
	return word, text[len(quoted):], err == nil
}
