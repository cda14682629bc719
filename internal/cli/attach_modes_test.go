package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestModesAreReset(t *testing.T) {
	for output, want := range map[string]string{
		"plain":                             "",
		"\x1b[?1049h":                       "\x1b[?1049l\x1b[m",
		"\x1b[?1049hx\x1b[?1049l":           "",
		"\x1b[?25l":                         "\x1b[?25h\x1b[m",
		"\x1b[?25l\x1b[?25h":                "",
		"\x1b[?1000;1006h\x1b[?2004h":       "\x1b[?2004l\x1b[?1006l\x1b[?1000l\x1b[m",
		"\x1b[?2004h\x1b[?1049h\x1b[?2004h": "\x1b[?2004l\x1b[?1049l\x1b[m",
		"\x1b[?7l (lines wrap) and \x1b[4h (insert)": "",
	} {
		var m modes
		m.note([]byte(output))
		assert.Equal(t, want, m.undo(), "%q", output)
	}
}

// Output comes in pieces, cut anywhere.
func TestModesAreFoundInSplitOutput(t *testing.T) {
	const output = "a\x1b[?1049h\x1b[?25lb\x1b[?1000;1006h"
	for i := range len(output) {
		for j := i; j < len(output); j++ {
			var m modes
			for _, piece := range []string{output[:i], output[i:j], output[j:]} {
				m.note([]byte(piece))
			}
			assert.Equal(t, "\x1b[?1006l\x1b[?1000l\x1b[?25h\x1b[?1049l\x1b[m", m.undo(), "%q, %q and %q", output[:i], output[i:j], output[j:])
		}
	}
}

func TestEnvironmentOfNewTerminal(t *testing.T) {
	environ := []string{"TERM=xterm", "EDITOR=vi", "LC_TIME=C", "LANG=", "SECRET=x", "COLUMNS=80", "odd"}
	assert.Equal(t, map[string]string{"TERM": "xterm", "EDITOR": "vi", "LC_TIME": "C"}, passedOn(environ, true))
	assert.Equal(t, map[string]string{"EDITOR": "vi", "LC_TIME": "C"}, passedOn(environ, false))
}
