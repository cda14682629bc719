//go:build unix && clients

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With tmux the terminal is a window on a session that others join, and that
// outlives it.
func TestAttachToTmux(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir, tmux := newTmux(t)
	s.daemon()
	c := s.lines()
	spawn := func() (id string) {
		var r struct {
			ID string `json:"terminal_id"`
		}
		c.call("spawn_terminal", object{
			"use_tmux": true, "tmux_session_name": "work", "tmux_window_name": "w1", "cwd": s.root,
			"env": object{"TMUX_TMPDIR": dir, "SHELL": "/bin/sh", "PS1": "$ "},
		}, &r)
		return r.ID
	}
	w := s.window(80, 24, "attach", spawn())
	w.shows("w1")
	w.types("echo o-n-e | tr -d -\r")
	w.shows("one")
	require.Equal(t, "work", s.terminals()[0].Tmux)
	out, err := s.command("attach")
	require.NoError(t, err)
	assert.Contains(t, out, "tmux work, ")

	// A second terminal is in the same session; when the first is closed, the
	// session is still there.
	other := s.window(80, 24, "attach", spawn())
	other.shows("one")
	c.call("terminal.close", object{"terminal_id": s.terminals()[0].ID}, nil)
	w.leaves()
	other.types("echo t-w-o | tr -d -\r")
	other.shows("two")
	_, err = s.command("daemon", "stop", "--force")
	require.NoError(t, err)
	assert.Equal(t, 1, other.leaves(), "its hub has gone")
	out, err = tmux("list-sessions", "-F", "#{session_name}")
	require.NoError(t, err, out)
	assert.Equal(t, "work\n", out)
}

// A command runs in a tmux session, too, and its end is the end of attach, whatever
// standard input is.
func TestAttachRunsACommandInTmux(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	dir, _ := newTmux(t)
	s.env = append(s.env, "TMUX_TMPDIR="+dir)
	s.daemon()
	_, err := s.command("--root", s.root, "attach", "--new", "--tmux", "work", "--", "sh", "-c", "echo ran >ran.txt")
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(s.root, "ran.txt"))
	require.NoError(t, err)
	assert.Equal(t, "ran\n", string(text))
	_, err = s.command("daemon", "stop", "--force")
	require.NoError(t, err)
}

// newTmux is a directory for the sockets of a tmux of the test's own, and how to run a
// command of that tmux. It is ended with the test.
func newTmux(t *testing.T) (dir string, tmux func(args ...string) (string, error)) {
	t.Helper()
	program := testkit.NeedTool(t, "tmux")
	dir, err := os.MkdirTemp("/tmp", "tmux") // a socket's path has to be short
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	tmux = func(args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Env = append(cleanEnvironment(), "TMUX_TMPDIR="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() { _, _ = tmux("kill-server") })
	return dir, tmux
}
