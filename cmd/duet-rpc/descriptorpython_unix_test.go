//go:build unix && clients

package main_test

import (
	"context"
	"os/exec"
	"testing"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
	_, err = s.command("daemon", "stop", "--force")
	require.NoError(t, err)
}
