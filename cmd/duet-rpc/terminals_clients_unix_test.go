//go:build unix && clients

package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// With tmux the terminal is a window on a session that others join, and that
// outlives it.
func TestAttachToTmux(t *testing.T) {
	s := newSite(parallel(t))
	dir, tmux := newTmux(t)
	s.daemon()
	c := s.lines()
	spawn := func() (id string) {
		return c.spawn(object{
			"use_tmux": true, "tmux_session_name": "work", "tmux_window_name": "w1", "cwd": s.root,
			"env": object{"TMUX_TMPDIR": dir, "SHELL": "/bin/sh", "PS1": "$ "},
		}).ID
	}
	w := s.window(80, 24, "attach", spawn())
	w.shows("w1")
	w.types("echo o-n-e | tr -d -\r")
	w.shows("one")
	require.Equal(t, "work", s.terminals()[0].Tmux)
	out := s.run("attach")
	assert.Contains(t, out, "tmux work, ")

	// A second terminal is in the same session; when the first is closed, the
	// session is still there.
	other := s.window(80, 24, "attach", spawn())
	other.shows("one")
	c.call("terminal.close", object{"terminal_id": s.terminals()[0].ID}, nil)
	w.leaves()
	other.types("echo t-w-o | tr -d -\r")
	other.shows("two")
	s.run("daemon", "stop", "--force")
	assert.Equal(t, 1, other.leaves(), "its hub has gone")
	out, err := tmux("list-sessions", "-F", "#{session_name}")
	require.NoError(t, err, out)
	assert.Equal(t, "work\n", out)
}

// A command runs in a tmux session, too, and its end is the end of attach, whatever
// standard input is.
func TestAttachRunsACommandInTmux(t *testing.T) {
	s := newSite(parallel(t))
	dir, _ := newTmux(t)
	s.env = append(s.env, "TMUX_TMPDIR="+dir)
	s.daemon()
	s.run("--root", s.root, "attach", "--new", "--tmux", "work", "--", "sh", "-c", "echo ran >ran.txt")
	text := readFile(t, filepath.Join(s.root, "ran.txt"))
	assert.Equal(t, "ran\n", text)
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

// pythonClient is a client in Python: it starts a terminal, works in it by its
// descriptor, gives it back, and works in it by events.
const pythonClient = `
import json, os, select, socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.settimeout(30)
s.connect(sys.argv[1])
pending, fds, events = b"", [], []

def message():
    global pending
    while b"\n" not in pending:
        data, new, flags, _ = socket.recv_fds(s, 65536, 4)
        assert data, "the hub has gone"
        assert not flags & socket.MSG_CTRUNC
        pending, fds[len(fds):] = pending + data, new
    line, pending = pending.split(b"\n", 1)
    return json.loads(line)

def call(method, **params):
    s.sendall(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode() + b"\n")
    while True:
        m = message()
        if m.get("id") == method:
            return m["result"]
        events.append(m["result"]["event"])

def read_until(fd, text):
    seen, until = b"", time.time() + 30
    while text not in seen:
        assert select.select([fd], [], [], until - time.time())[0], seen
        seen += os.read(fd, 4096)

def event(kind):
    e = events.pop(0) if events else message()["result"]["event"]
    assert e["type"] == kind, e
    return e["data"]

t = call("spawn_terminal", shell="sh", args=["-c", sys.argv[2]], cols=33, rows=7, descriptor=True)
(fd,) = fds
fds.clear()
read_until(fd, b"7 33\r\n")
os.write(fd, b"snake\r")
read_until(fd, b"got snake\r\n")
os.close(fd)
assert call("terminal.detach", terminal_id=t["terminal_id"]) == {"detached": True}
assert not call("terminal.attach", terminal_id=t["terminal_id"])["taken"]
call("terminal.write", terminal_id=t["terminal_id"], data="event\r")
seen = ""
while "got event\r\n" not in seen:
    seen += event("terminal_output")["data"]
call("terminal.write", terminal_id=t["terminal_id"], data="bye\r")
assert event("terminal_exit")["exit_code"] == 3
assert not fds
print("well")
`

func TestAPythonClientTakesADescriptor(t *testing.T) {
	t.Parallel()
	python := testkit.NeedTool(t, "python3")
	s := newSite(t)
	s.daemon()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog/3)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "-c", pythonClient, s.socketPath(), echoes).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Equal(t, "well\n", string(out))
}
