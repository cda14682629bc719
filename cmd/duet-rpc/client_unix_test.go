//go:build unix

package main_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/testkit"
)

// next continues a session.
func (c *client) next(from launched, query string) launched {
	c.t.Helper()
	return c.begins("continueSession", object{"session_id": from.SessionID, "query": query})
}

// goesOn continues a session with a prompt and requires its completion.
func (c *client) goesOn(from launched, query string) launched {
	c.t.Helper()
	l := c.next(from, query)
	c.completes(l)
	return l
}

// A client is an editor at the pipes of a process that it has started.
type client struct {
	*process
	*peer
	t    testing.TB
	site *site // nil: the test ends its hub
}

func newClient(p *process) *client {
	c := &client{process: p, t: p.t}
	c.peer = newPeer(p.t, func(message string) error {
		_, err := io.WriteString(p.stdin, framed(message))
		return err
	})
	go c.read(c.frames.next, c.take)
	return c
}

// take stores a message. The caller holds the lock.
func (c *client) take(body []byte) error {
	var m struct {
		ID     *int        `json:"id"`
		Method string      `json:"method"`
		Params eventParams `json:"params"`
		reply
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return fmt.Errorf("%w: %.300s", err, body)
	}
	if !utf8.Valid(body) {
		return fmt.Errorf("not UTF-8: %.300q", body)
	}
	switch {
	case m.Method == "event":
		return c.takeEvent(m.Params)
	case strings.HasPrefix(m.Method, "event.task"):
		return c.takeNote(body)
	case m.Method == "" && m.ID != nil:
		c.replies[strconv.Itoa(*m.ID)] = m.reply
	case m.Method == "": // an error without one of our requests
		return fmt.Errorf("a message that is not expected: %.300s", body)
	}
	return nil
}

// subscribe subscribes to all events from the first one.
func (c *client) subscribe() {
	c.t.Helper()
	c.call("Subscribe", object{"since": 0}, nil)
}

// approveAll approves every question of a session until its end, and returns the event of its end.
func (c *client) approveAll(session string) event {
	c.t.Helper()
	done := make(map[string]bool)
	for {
		e := c.await("a question or the end of session "+session, func(e event) bool {
			return e.Data.SessionID == session &&
				(e.Type == "new_approval" && !done[e.Data.ApprovalID] || e.Type == "session_status_changed" && ended(e.Data.State))
		})
		if e.Type != "new_approval" {
			return e
		}
		done[e.Data.ApprovalID] = true
		err := c.try("sendDecision", object{"approval_id": e.Data.ApprovalID, "decision": "approve"}, nil)
		require.NoError(c.t, err)
	}
}

// sessions returns the sessions of listSessions.
func (c *client) sessions() []shownSession {
	c.t.Helper()
	var r struct{ Sessions []shownSession }
	c.call("listSessions", object{}, &r)
	return r.Sessions
}

func (c *client) pending() map[string]shownApproval {
	c.t.Helper()
	var r struct{ Approvals []shownApproval }
	c.call("fetchApprovals", object{}, &r)
	m := make(map[string]shownApproval)
	for _, a := range r.Approvals {
		m[a.ID] = a
	}
	return m
}

// conversation returns the agent's text in a session's conversation.
func (c *client) conversation(session string) (said string) {
	c.t.Helper()
	for _, e := range c.items(session) {
		if e.Type == "message" && e.Role == "assistant" {
			said += e.Content
		}
	}
	return said
}

// crash kills the program and the site's hub, as a system without memory does, and reads the
// remaining output.
func (c *client) crash() {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Kill()) // first: a living client would start another hub
	if c.site != nil {
		c.site.crashHub()
		defer c.site.left()
	}
	<-c.ended
	c.requireGoodEnd()
}

// leave has clients leave, one after the other.
func leave(clients ...*client) {
	for _, c := range clients {
		c.t.Helper()
		c.leave()
	}
}

// leave closes the program's stdin, as an editor does at its end, and requires the end of the
// program.
func (c *client) leave() {
	c.t.Helper()
	watch := startStopwatch(c.t)
	c.closeStdin()
	c.requireGoneWithin(goneAfter+raceSlack, watch)
	c.requireGoodEnd()
	if c.site != nil {
		c.site.left()
	}
}

// raceSlack is the extra time that a busy machine and the race detector may need.
const raceSlack = 500 * time.Millisecond

// requireCore requires that the methods without a store work.
func (c *client) requireCore() {
	c.t.Helper()
	var pong struct{ Pong bool }
	c.call("ping", object{}, &pong)
	require.True(c.t, pong.Pong)
	c.call("initialize", object{}, nil)
	c.call("version", object{}, nil)
	c.call("listMethods", object{}, nil)
}

// requireUnavailable requires that methods of each family report the missing store and the reason.
func (c *client) requireUnavailable(why string) {
	c.t.Helper()
	for method, params := range map[string]object{
		"task.stats": {}, "task.submit": {"prompt": "quiet"}, "listSessions": {}, "launchSession": {"query": "quiet"},
		"fetchApprovals": {}, "Subscribe": {}, "execute_prompt": {"session_id": "s", "task_id": "t", "prompt": "quiet", "agentic_tool": "demo"},
	} {
		e := c.refused(method, params)
		require.Equal(c.t, "subsystem_unavailable", e.kind(), "%s: %v", method, e)
		require.Contains(c.t, e.Message, why, method)
		require.LessOrEqual(c.t, strings.Count(e.Message, "sessions are not available"), 1, e.Message)
	}
}

// connect connects to the socket of a hub that has just started.
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

// A lineClient sends and receives one JSON value per line, as the clients of AIWG and HumanLayer
// do.
type lineClient struct {
	*peer
	conn net.Conn

	// Guarded by the peer's lock.
	lines   []string // all received lines, unless quiet
	quiet   bool
	longest int // the length of the longest line, in bytes
}

func newLineClient(t testing.TB, path string) *lineClient { return linesOn(t, connect(t, path)) }

func linesOn(t testing.TB, conn net.Conn) *lineClient {
	c := &lineClient{conn: conn}
	c.peer = newPeer(t, func(message string) error {
		_, err := io.WriteString(conn, message+"\n")
		return err
	})
	c.serial = 1_000_000 // far from the ids in requests that tests write themselves
	in := bufio.NewReaderSize(conn, 16<<10)
	go c.read(func() ([]byte, error) { return in.ReadBytes('\n') }, c.take)
	return c
}

// take stores a line. The caller holds the lock.
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
		Params eventParams     `json:"params"`
		reply
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return fmt.Errorf("%w: %.300q", err, line)
	}
	switch {
	case m.Method == "event":
		return c.takeEvent(m.Params)
	case m.Method != "":
		return c.takeNote(line)
	case m.ID != nil:
		c.replies[string(m.ID)] = m.reply
	default:
		var r eventParams
		if err := json.Unmarshal(m.Result, &r); err != nil {
			return fmt.Errorf("%w: %.300q", err, line)
		}
		if r.Type == "heartbeat" {
			return nil
		}
		return c.takeEvent(r)
	}
	return nil
}

// say sends a line unchanged.
func (c *lineClient) say(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, line+"\n")
	require.NoError(c.t, err)
}

// said returns the lines so far.
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

// framesOn returns an editor's client on a connection to a socket.
func framesOn(t testing.TB, conn *net.UnixConn) *client {
	t.Helper()
	file, err := conn.File()
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return newClient(&process{t: t, stdin: file, stdout: file, frames: newFrameReader(file), log: &testkit.Text{}})
}

// hubOf returns the process id of the hub that answers a client.
func hubOf(t testing.TB, c interface {
	tryAgain(method string, params, result any) error
},
) int {
	t.Helper()
	var status struct{ PID int }
	require.NoError(t, c.tryAgain("daemon.status", object{}, &status))
	return status.PID
}
