//go:build unix

package main_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Markdown is rendered, of thoughts too, on a terminal that can show it, and stays as the agent wrote
// it anywhere else.
func TestPromptRendersMarkdown(t *testing.T) {
	t.Parallel()
	const text = "# Head\n\nSome **bold** [x](http://a.b/c)\n"
	for _, c := range []struct {
		name     string
		env      []string
		rendered bool
	}{
		{"a terminal", []string{"TERM=xterm-256color"}, true},
		{"without colour", []string{"TERM=xterm-256color", "NO_COLOR=1"}, false},
		{"without a cursor", []string{"TERM=dumb"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.env = append(s.env, c.env...)
			s.played(playedStep{Update: thought("So **it** is.")}, playedStep{Say: "# Head\n\nSome **bo"}, playedStep{Say: "ld** [x](http://a.b/c)\n"})
			want, thought := text, "✻ So **it** is.\n"
			if c.rendered {
				thought = "\x1b[2m✻ \x1b[0m\x1b[2mSo \x1b[0m\x1b[1;2mit\x1b[0m\x1b[2m is.\x1b[0m\n"
				want = "\x1b[1mbold\x1b[0m \x1b[4mx\x1b[0m\x1b[2m (http://a.b/c)\x1b[0m\n"
			}
			p := s.onTerminal(t, 60, "prompt", "--agent", "played", "go")
			p.sees(thought)
			if c.rendered {
				p.sees("\x1b[1;4mHead\x1b[0m\n")
			}
			p.sees(want)
			p.sees("go on with: duet-rpc prompt --continue task-0001")
			assert.Equal(t, 0, p.status())

			editor := s.start()
			p = s.onTerminal(t, 60, "session", "show", "task-0001")
			p.sees(want)
			assert.Equal(t, 0, p.status())
			s.env = append(s.env, "PAGER=cat")
			p = s.onTerminal(t, 60, "session", "show", "--transcript", "task-0001")
			if c.rendered {
				p.sees("\x1b[1;2mit\x1b[0m")
			} else {
				p.sees("  (So **it** is.)\n")
			}
			p.sees(want)
			assert.Equal(t, 0, p.status())
			editor.leave()
		})
	}
}

// A change is shown in colours on a terminal, before it is allowed, and in none where
// they are not wanted.
func TestPromptColoursChanges(t *testing.T) {
	t.Parallel()
	for want, env := range map[string]string{
		"\x1b[36m@@ -0,0 +1 @@\x1b[0m\n\x1b[32m+Turn 1: hello\x1b[0m\n": "TERM=xterm-256color",
		"\n@@ -0,0 +1 @@\n+Turn 1: hello\n":                             "NO_COLOR=1",
	} {
		s := newSite(t)
		s.env = append(s.env, "TERM=xterm", env)
		p := s.onTerminal(t, 60, "prompt", "--yes", "hello")
		p.sees("? Write demo.txt")
		p.sees(want)
		assert.Zero(t, p.status())
	}
}

// thought is an update with a piece of what the agent thinks.
func thought(text string) map[string]any {
	return map[string]any{"sessionUpdate": "agent_thought_chunk", "content": map[string]any{"type": "text", "text": text}}
}
