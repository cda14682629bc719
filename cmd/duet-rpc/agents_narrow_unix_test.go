//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// In a narrow terminal the list of agents keeps what it is for: how the missing ones
// are got is not cut.
func TestAgentsAreListedAtSixtyColumns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	programs := filepath.Join(s.home, "programs")
	require.NoError(t, os.MkdirAll(programs, 0o700))
	for name, text := range map[string]string{"claude": "", "gemini": "echo 1.2.3"} {
		testkit.Program(t, filepath.Join(programs, name), "#!/bin/sh\n"+text+"\n")
	}
	s.env = append(s.env, "PATH="+programs+":/usr/bin:/bin", "TERM=xterm-256color")
	p := s.onTerminal(t, 60, "agents")
	p.sees("` asks.")
	require.Zero(t, p.status())
	said := strings.ReplaceAll(p.tty.printed.String(), "\r", "")
	table, notes, ok := strings.Cut(said, "\n\n")
	require.True(t, ok, said)
	for line := range strings.Lines(table) {
		assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), 60, line)
	}
	assert.Regexp(t, `(?m)^ +AGENT +STATE +(SOURCE +)?VERSION +SIGNED IN$`, table)
	assert.Regexp(t, `(?m)^.. gemini +available .* 1\.2\.3 +not known$`, table)
	assert.Regexp(t, `(?m)^.. claude +needs adapter .*- +-$`, table)
	notes = strings.Join(strings.Fields(notes), " ") // its lines are wrapped
	assert.Contains(t, notes, "claude: npm install -g @agentclientprotocol/claude-agent-acp (")
	assert.Contains(t, notes, "`duet-rpc agents check scripted gemini` asks.")
}
