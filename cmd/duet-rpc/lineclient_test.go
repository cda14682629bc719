//go:build unix

package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// socketPath is where the hub of the site listens, or would.
func (s *site) socketPath() string {
	s.t.Helper()
	path, err := socket.Find(s.state())
	require.NoError(s.t, err)
	return path
}

// begin starts a daemon if none runs.
func (s *site) begin() {
	s.t.Helper()
	if (project.Project{StateDir: s.state()}).Unlocked() {
		stays := s.daemonStays.Load()
		_, err := s.command("daemon", "start")
		require.NoError(s.t, err)
		s.daemonStays.Store(stays)
	}
}

// connect connects to a socket of a hub that has just been started.
func connect(t testing.TB, path string) (conn *net.UnixConn) {
	t.Helper()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), watchdog/3)
		defer cancel()
		c, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err != nil {
			return false
		}
		conn = c.(*net.UnixConn)
		return true
	}, watchdog/3, pollEvery, "no process listens on %s", path)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A lineClient speaks one JSON value a line, as the clients of AIWG and
// HumanLayer do.
type lineClient struct {
	*peer
	conn net.Conn

	// Guarded by the peer's lock.
	lines   []string // all that came, unless quiet
	quiet   bool
	longest int // line, in bytes
}

func newLineClient(t testing.TB, path string) *lineClient { return linesOn(t, connect(t, path)) }

func linesOn(t testing.TB, conn net.Conn) *lineClient {
	c := &lineClient{conn: conn}
	c.peer = newPeer(t, func(message string) error {
		_, err := io.WriteString(conn, message+"\n")
		return err
	})
	c.serial = 1_000_000 // far from ids that tests say themselves
	in := bufio.NewReaderSize(conn, 16<<10)
	go c.read(func() ([]byte, error) { return in.ReadBytes('\n') }, c.take)
	return c
}

// lines is a client on the project's own socket.
func (s *site) lines() *lineClient {
	s.t.Helper()
	s.begin()
	return newLineClient(s.t, s.socketPath())
}

// take sorts a line. The lock is held.
func (c *lineClient) take(line []byte) error {
	c.longest = max(c.longest, len(line))
	if !c.quiet {
		c.lines = append(c.lines, strings.TrimSuffix(string(line), "\n"))
	}
	if line[0] == '[' { // replies to a batch
		return nil
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		reply
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return fmt.Errorf("%w: %.300q", err, line)
	}
	switch {
	case m.Method != "":
		return c.takeNote(line)
	case m.ID != nil:
		c.replies[string(m.ID)] = m.reply
	default:
		var r struct {
			Type  string `json:"type"`
			Event struct {
				Seq  int64           `json:"seq"`
				Type string          `json:"type"`
				Data json.RawMessage `json:"data"`
			} `json:"event"`
		}
		if err := json.Unmarshal(m.Result, &r); err != nil {
			return fmt.Errorf("%w: %.300q", err, line)
		}
		if r.Type == "heartbeat" {
			return nil
		}
		return c.takeEvent(r.Event.Seq, r.Event.Type, r.Event.Data)
	}
	return nil
}

// say sends a line as it is.
func (c *lineClient) say(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, line+"\n")
	require.NoError(c.t, err)
}

// said is what came so far.
func (c *lineClient) said() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.lines...)
}

// requireClosed requires that the hub ends the connection.
func (c *lineClient) requireClosed() {
	c.t.Helper()
	select {
	case <-c.closed:
	case <-time.After(watchdog / 3):
		require.Fail(c.t, "the connection is not closed")
	}
}

// frames is an editor's client on the project's own socket.
func (s *site) framesOnSocket() *client {
	s.t.Helper()
	s.begin()
	file, err := connect(s.t, s.socketPath()).File()
	require.NoError(s.t, err)
	s.t.Cleanup(func() { file.Close() })
	return newClient(&process{t: s.t, stdin: file, stdout: file, frames: newFrameReader(file), log: &testkit.Text{}})
}

// lockHolder is the process that is the hub of the site, as its lock says.
func (s *site) lockHolder() int {
	s.t.Helper()
	text, err := os.ReadFile(s.state() + "/lock")
	require.NoError(s.t, err)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// crashHub kills the process that is the hub. A client that needs one starts another.
func (s *site) crashHub() {
	s.t.Helper()
	pid := s.lockHolder()
	hub, err := os.FindProcess(pid)
	require.NoError(s.t, err)
	require.NoError(s.t, hub.Kill())
	s.awaitRelease(pid)
}

// awaitRelease waits until a process does not have the lock any more. The next one may take it
// before it is seen to be free.
func (s *site) awaitRelease(pid int) {
	s.t.Helper()
	released := project.Project{StateDir: s.state()}.Released()
	for s.lockHolder() == pid {
		select {
		case <-released:
			return
		case <-time.After(pollEvery):
		}
	}
}

// hubOf is the process that answers a client.
func hubOf(t testing.TB, c interface {
	tryAgain(method string, params, result any) error
},
) int {
	t.Helper()
	var status struct {
		PID int `json:"pid"`
	}
	require.NoError(t, c.tryAgain("daemon.status", object{}, &status))
	return status.PID
}
