//go:build linux || darwin

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	duet "github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/e2e"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// A fileClient is a client on the project's socket that takes descriptors.
type fileClient struct {
	*e2e.LineClient
	files *socket.FileConn
}

func newFileClient(s *e2e.Site) *fileClient {
	s.T.Helper()
	s.Begin()
	files := socket.NewFileConn(e2e.Connect(s.T, s.SocketPath()))
	s.T.Cleanup(func() { files.Close() })
	return &fileClient{e2e.LinesOn(s.T, files), files}
}

// file returns the descriptor that came with the last reply.
func (c *fileClient) file() *held {
	c.T.Helper()
	f, err := c.files.NextFile()
	require.NoError(c.T, err)
	h := &held{t: c.T, f: f}
	c.T.Cleanup(func() { f.Close() })
	return h
}

// exitOf waits for the end of a terminal and returns the exit code.
func (c *fileClient) exitOf(id string) (code int) {
	c.T.Helper()
	c.Until("the end of the terminal "+id, func() bool {
		for _, e := range c.Events {
			var d struct {
				ID   string `json:"terminal_id"`
				Code int    `json:"exit_code"`
			}
			if e.Type == "terminal.exited" && json.Unmarshal(e.Raw, &d) == nil && d.ID == id {
				code = d.Code
				return true
			}
		}
		return false
	})
	return code
}

// printed returns the output of a terminal, from the client's events.
func printed(c *e2e.LineClient) string { return e2e.PrintedIn(c.Events) }

// A held is a terminal whose descriptor this process holds.
type held struct {
	t    testing.TB
	f    *os.File
	seen strings.Builder
}

func (h *held) types(text string) {
	h.t.Helper()
	_, err := io.WriteString(h.f, text)
	require.NoError(h.t, err)
}

// shows reads until the terminal has printed a text.
func (h *held) shows(text string) {
	h.t.Helper()
	require.NoError(h.t, h.f.SetReadDeadline(time.Now().Add(e2e.Watchdog/3)))
	buf := make([]byte, 4096)
	for !strings.Contains(h.seen.String(), text) {
		n, err := h.f.Read(buf)
		require.NoError(h.t, err, "%q does not come: %s", text, h.seen.String())
		h.seen.Write(buf[:n])
	}
}

// echoes is a program that answers each line.
const echoes = `stty -echo; stty size; while read a; do case "$a" in bye) exit 3;; size) stty size;; *) echo "got $a";; esac; done`

func TestATerminalsDescriptorIsPassed(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Daemon()
	holder, other := newFileClient(s), s.Lines()
	r := holder.Spawn(object{"program": "sh", "args": []string{"-c", echoes}, "cols": 66, "rows": 11, "descriptor": true})
	tty := holder.file()
	tty.shows("11 66\r\n") // its very first output
	tty.types("one\r")
	tty.shows("got one\r\n")
	other.Call("terminal.resize", object{"terminal_id": r.ID, "cols": 50, "rows": 12}, nil)
	tty.types("size\r")
	tty.shows("12 50\r\n")
	assert.True(t, listTerminals(s)[0].Taken)

	// Other clients cannot use the terminal meanwhile.
	for method, params := range map[string]object{
		"terminal.attach": {"terminal_id": r.ID},
		"terminal.write":  {"terminal_id": r.ID, "data": "x"},
	} {
		assert.Equal(t, "terminal_taken", e2e.KindOf(t, other.Try(method, params, nil)), method)
	}
	assert.Equal(t, "terminal_taken", e2e.KindOf(t, newFileClient(s).Try("terminal.attach", object{"terminal_id": r.ID, "descriptor": true}, nil)))
	w := s.Window(80, 24, "attach", r.ID)
	assert.Equal(t, 1, w.Leaves())
	w.Shows("watch it when that client has given")

	// After a detach, the hub reads the terminal again, and other clients see its output.
	require.NoError(t, tty.f.Close())
	var detached struct{ Detached bool }
	holder.Call("terminal.detach", object{"terminal_id": r.ID}, &detached)
	assert.True(t, detached.Detached)
	holder.Call("terminal.detach", object{"terminal_id": r.ID}, &detached)
	assert.False(t, detached.Detached, "the client was detached already")
	holder.Until("no event has come", func() bool { return printed(holder.LineClient) == "" })
	other.Call("terminal.attach", object{"terminal_id": r.ID}, nil)
	other.Call("terminal.write", object{"terminal_id": r.ID, "data": "two\r"}, nil)
	other.Until("output as events", func() bool { return printed(other) == "got two\r\n" })

	// The hub passes the descriptor only if no other client watches the terminal.
	assert.Equal(t, "terminal_taken", e2e.KindOf(t, holder.Try("terminal.attach", object{"terminal_id": r.ID, "descriptor": true}, nil)))
	other.Call("terminal.detach", object{"terminal_id": r.ID}, nil)
	holder.Call("terminal.attach", object{"terminal_id": r.ID}, nil)
	holder.Until("the recent output", func() bool { return printed(holder.LineClient) == "got two\r\n" })
	holder.Call("terminal.attach", object{"terminal_id": r.ID, "descriptor": true, "cols": 40, "rows": 10}, &r)
	tty = holder.file()
	assert.Equal(t, "got two\r\n", r.Recent)
	assert.True(t, r.Taken)
	assert.Equal(t, 40, r.Cols)
	tty.types("three\rsize\r")
	tty.shows("got three\r\n10 40\r\n")
	assert.Equal(t, "got three\r\n10 40\r\n", tty.seen.String(), "each output once")

	// The end of the connection returns the terminal to the hub, even with a blocking descriptor.
	require.NoError(t, syscall.SetNonblock(int(tty.f.Fd()), false))
	require.NoError(t, holder.Conn.Close())
	require.Eventually(t, func() bool { return !listTerminals(s)[0].Taken }, e2e.Watchdog/3, e2e.PollEvery, "the hub does not take the terminal back")
	again := newFileClient(s)
	again.Call("terminal.attach", object{"terminal_id": r.ID}, nil)
	again.Call("terminal.write", object{"terminal_id": r.ID, "data": "four\r"}, nil)
	again.Until("output as events", func() bool { return strings.HasSuffix(printed(again.LineClient), "got four\r\n") })

	// The holder of the descriptor receives the end of the program, and reads the remaining output.
	again.Call("terminal.attach", object{"terminal_id": r.ID, "descriptor": true}, nil)
	tty = again.file()
	tty.types("five\rbye\r")
	assert.Equal(t, 3, again.exitOf(r.ID))
	tty.shows("got five\r\n")
	_, err := tty.f.Read(make([]byte, 1))
	require.Error(t, err)
	assert.True(t, errors.Is(err, syscall.EIO) || errors.Is(err, io.EOF), "%v", err)
	assert.Empty(t, listTerminals(s))

	// The descriptor has the output of a program that ends at once.
	r = again.Spawn(object{"program": "sh", "args": []string{"-c", "echo brief"}, "descriptor": true})
	tty = again.file()
	tty.shows("brief\r\n")
	assert.Zero(t, again.exitOf(r.ID))
}

// The client package takes descriptors, too.
func TestTheGoClientTakesADescriptor(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Daemon()
	ctx := context.Background()
	c, err := duet.Dial(ctx, duet.Socket(s.SocketPath()))
	require.NoError(t, err)
	defer c.Close()
	_, err = c.NextFile()
	require.Error(t, err)
	var r e2e.AttachedTo
	require.NoError(t, c.Call(ctx, "spawn_terminal", object{"shell": "sh", "args": []string{"-c", echoes}, "descriptor": true}, &r))
	f, err := c.NextFile()
	require.NoError(t, err)
	defer f.Close()
	tty := &held{t: t, f: f}
	tty.types("hello\r")
	tty.shows("got hello\r\n")
}

// Only a single request on the socket can receive a descriptor. Any other request is an error with
// an explanation, and starts no terminal.
func TestDescriptorsAreForTheSocketAlone(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	hub, joined := s.Start(), s.Start()
	require.Equal(t, e2e.HubOf(t, hub), e2e.HubOf(t, joined))
	r := hub.Spawn(object{"program": "cat"})
	for name, c := range map[string]*e2e.Client{"the first editor": hub, "another": joined} {
		for method, params := range map[string]object{
			"terminal.start":  {"program": "cat", "descriptor": true},
			"spawn_terminal":  {"shell": "cat", "descriptor": true},
			"terminal.attach": {"terminal_id": r.ID, "descriptor": true},
		} {
			e := c.Refused(method, params)
			assert.Equal(t, -32602, e.Code)
			assert.Contains(t, string(e.Data), `"param":"descriptor"`)
			assert.Contains(t, e.Message, "expected to be left out: only a", "%s: %s", name, method)
		}
		c.Call("terminal.attach", object{"terminal_id": r.ID, "descriptor": false}, nil)
	}
	c := s.Lines()
	before := len(c.Said())
	c.Say(`[{"jsonrpc":"2.0","id":1,"method":"spawn_terminal","params":{"shell":"cat","descriptor":true}}]`)
	c.Until("the answer", func() bool { return len(c.Lines) > before })
	assert.Contains(t, c.Said()[before], `"code":-32602`)
	require.Len(t, listTerminals(s), 1)
	c.Conn.Close()
	e2e.Leave(joined, hub)
}

// A holder whose executor dies learns that the terminal has ended.
func TestTheExecutorOfADescriptorDies(t *testing.T) {
	s := e2e.NewSite(e2e.Parallel(t))
	s.Daemon()
	c := newFileClient(s)
	r := c.Spawn(object{"program": "sh", "args": []string{"-c", "echo $PPID; exec cat"}, "descriptor": true})
	tty := c.file()
	tty.shows("\r\n")
	var executor int
	_, err := fmt.Sscan(tty.seen.String(), &executor)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(executor, syscall.SIGKILL))
	assert.Equal(t, -1, c.exitOf(r.ID))
	c.Call("terminal.detach", object{"terminal_id": r.ID}, nil)
	require.Eventually(t, func() bool { return len(listTerminals(s)) == 0 }, e2e.Watchdog/3, e2e.PollEvery)
	require.NoError(t, tty.f.Close())
}

// Clients that come and go leave nothing open in the hub and the executor.
func TestTerminalsLeaveNothingOpen(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the test counts open files in /proc")
	}
	s := e2e.NewSite(t)
	hub := s.Daemon()
	c := newFileClient(s)
	executor := 0
	open := func() (n int) {
		for _, pid := range []int{hub, executor} {
			list, err := os.ReadDir(filepath.Join("/proc", fmt.Sprint(pid), "fd"))
			require.NoError(t, err)
			n += len(list)
		}
		return n
	}
	round := func() {
		r := c.Spawn(object{"program": "sh", "args": []string{"-c", "echo $PPID; " + echoes}, "descriptor": true})
		tty := c.file()
		tty.shows("24 80\r\n")
		_, err := fmt.Sscan(tty.seen.String(), &executor)
		require.NoError(t, err)
		require.NoError(t, tty.f.Close())
		c.Call("terminal.detach", object{"terminal_id": r.ID}, nil)
		c.Call("terminal.attach", object{"terminal_id": r.ID}, nil)
		passing := newFileClient(s)
		passing.Call("terminal.attach", object{"terminal_id": r.ID}, nil)
		require.NoError(t, passing.Conn.Close())
		c.Call("terminal.detach", object{"terminal_id": r.ID}, nil)
		require.Eventually(t, func() bool {
			var list struct{ Terminals []listed }
			c.Call("terminal.list", object{}, &list)
			return len(list.Terminals) == 1 && list.Terminals[0].Attached == 0 && !list.Terminals[0].Taken
		}, e2e.Watchdog/3, e2e.PollEvery, "the connection that closed is still attached")
		c.Call("terminal.attach", object{"terminal_id": r.ID, "descriptor": true}, nil)
		require.NoError(t, c.file().f.Close())
		c.Call("terminal.close", object{"terminal_id": r.ID}, nil)
		c.exitOf(r.ID)
	}
	round()
	before := open()
	for range 50 {
		round()
	}
	last := 0
	require.Eventually(t, func() bool { last = open(); return last <= before+2 }, e2e.Watchdog/3, e2e.PollEvery,
		"%s", e2e.Deferred(func() string { return fmt.Sprintf("%d files were open, and %d are now", before, last) }))
}
