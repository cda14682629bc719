//go:build unix

package e2e

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

// Next continues a session.
func (c *Client) Next(from Launched, query string) Launched {
	c.T.Helper()
	return c.Begins("continueSession", object{"session_id": from.SessionID, "query": query})
}

// GoesOn continues a session with a prompt and requires its completion.
func (c *Client) GoesOn(from Launched, query string) Launched {
	c.T.Helper()
	l := c.Next(from, query)
	c.Completes(l)
	return l
}

// A Client is an editor at the pipes of a process that it has started.
type Client struct {
	*Process
	*Peer
	T    testing.TB
	site *Site // nil: the test ends its hub
}

// NewClient returns an editor at the pipes of a process.
func NewClient(p *Process) *Client {
	c := &Client{Process: p, T: p.T}
	c.Peer = NewPeer(p.T, func(message string) error {
		_, err := io.WriteString(p.Stdin, Framed(message))
		return err
	})
	go c.Read(c.Frames.Next, c.take)
	return c
}

// take stores a message. The caller holds the lock.
func (c *Client) take(body []byte) error {
	var m struct {
		ID     *int        `json:"id"`
		Method string      `json:"method"`
		Params eventParams `json:"params"`
		Reply
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
		c.Replies[strconv.Itoa(*m.ID)] = m.Reply
	case m.Method == "": // an error without one of our requests
		return fmt.Errorf("a message that is not expected: %.300s", body)
	}
	return nil
}

// Subscribe subscribes to all events from the first one.
func (c *Client) Subscribe() {
	c.T.Helper()
	c.Call("Subscribe", object{"since": 0}, nil)
}

// ApproveAll approves every question of a session until its end, and returns the event of its end.
func (c *Client) ApproveAll(session string) Event {
	c.T.Helper()
	done := make(map[string]bool)
	for {
		e := c.Await("a question or the end of session "+session, func(e Event) bool {
			return e.Data.SessionID == session &&
				(e.Type == "new_approval" && !done[e.Data.ApprovalID] || e.Type == "session_status_changed" && Ended(e.Data.State))
		})
		if e.Type != "new_approval" {
			return e
		}
		done[e.Data.ApprovalID] = true
		err := c.Try("sendDecision", object{"approval_id": e.Data.ApprovalID, "decision": "approve"}, nil)
		require.NoError(c.T, err)
	}
}

// Sessions returns the sessions of listSessions.
func (c *Client) Sessions() []ShownSession {
	c.T.Helper()
	var r struct{ Sessions []ShownSession }
	c.Call("listSessions", object{}, &r)
	return r.Sessions
}

// Pending returns the approvals of fetchApprovals, by id.
func (c *Client) Pending() map[string]ShownApproval {
	c.T.Helper()
	var r struct{ Approvals []ShownApproval }
	c.Call("fetchApprovals", object{}, &r)
	m := make(map[string]ShownApproval)
	for _, a := range r.Approvals {
		m[a.ID] = a
	}
	return m
}

// Said returns the agent's text in a session.
func (c *Client) Said(session string) (said string) {
	c.T.Helper()
	for _, e := range c.Items(session) {
		if e.Type == "message" && e.Role == "assistant" {
			said += e.Content
		}
	}
	return said
}

// Crash kills the program and the site's hub, as a system without memory does, and reads the
// remaining output.
func (c *Client) Crash() {
	c.T.Helper()
	require.NoError(c.T, c.Cmd.Process.Kill()) // first: a living client would start another hub
	if c.site != nil {
		c.site.CrashHub()
		defer c.site.left()
	}
	<-c.Ended
	c.RequireGoodEnd()
}

// Leave has clients leave, one after the other.
func Leave(clients ...*Client) {
	for _, c := range clients {
		c.T.Helper()
		c.Leave()
	}
}

// Leave closes the program's stdin, as an editor does at its end, and requires the end of the
// program.
func (c *Client) Leave() {
	c.T.Helper()
	watch := StartStopwatch(c.T)
	c.CloseStdin()
	c.RequireGoneWithin(GoneAfter+RaceSlack, watch)
	c.RequireGoodEnd()
	if c.site != nil {
		c.site.left()
	}
}

// RaceSlack is the extra time that a busy machine and the race detector may need.
const RaceSlack = 500 * time.Millisecond

// RequireCore requires that the methods without a store work.
func (c *Client) RequireCore() {
	c.T.Helper()
	var pong struct{ Pong bool }
	c.Call("ping", object{}, &pong)
	require.True(c.T, pong.Pong)
	c.Call("initialize", object{}, nil)
	c.Call("version", object{}, nil)
	c.Call("listMethods", object{}, nil)
}

// RequireUnavailable requires that methods of each family report the missing store and the reason.
func (c *Client) RequireUnavailable(why string) {
	c.T.Helper()
	for method, params := range map[string]object{
		"task.stats": {}, "task.submit": {"prompt": "quiet"}, "listSessions": {}, "launchSession": {"query": "quiet"},
		"fetchApprovals": {}, "Subscribe": {}, "execute_prompt": {"session_id": "s", "task_id": "t", "prompt": "quiet", "agentic_tool": "demo"},
	} {
		e := c.Refused(method, params)
		require.Equal(c.T, "subsystem_unavailable", e.Kind(), "%s: %v", method, e)
		require.Contains(c.T, e.Message, why, method)
		require.LessOrEqual(c.T, strings.Count(e.Message, "sessions are not available"), 1, e.Message)
	}
}

// Connect connects to the socket of a hub that has just started.
func Connect(t testing.TB, path string) (conn *net.UnixConn) {
	t.Helper()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), Watchdog/3)
		defer cancel()
		c, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err != nil {
			return false
		}
		conn = c.(*net.UnixConn)
		return true
	}, Watchdog/3, PollEvery, "no process listens on %s", path)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A LineClient sends and receives one JSON value per line, as the clients of AIWG and HumanLayer
// do.
type LineClient struct {
	*Peer
	Conn net.Conn

	// Guarded by the peer's lock.
	Lines   []string // all received lines, unless quiet
	Quiet   bool
	Longest int // the length of the longest line, in bytes
}

// NewLineClient returns a client on the socket of a hub that has just started.
func NewLineClient(t testing.TB, path string) *LineClient { return LinesOn(t, Connect(t, path)) }

// LinesOn returns a client on a connection to a socket.
func LinesOn(t testing.TB, conn net.Conn) *LineClient {
	c := &LineClient{Conn: conn}
	c.Peer = NewPeer(t, func(message string) error {
		_, err := io.WriteString(conn, message+"\n")
		return err
	})
	c.Serial = 1_000_000 // far from the ids in requests that tests write themselves
	in := bufio.NewReaderSize(conn, 16<<10)
	go c.Read(func() ([]byte, error) { return in.ReadBytes('\n') }, c.take)
	return c
}

// take stores a line. The caller holds the lock.
func (c *LineClient) take(line []byte) error {
	c.Longest = max(c.Longest, len(line))
	if !c.Quiet {
		c.Lines = append(c.Lines, strings.TrimSuffix(string(line), "\n"))
	}
	if line[0] == '[' { // replies to a batch
		return nil
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params eventParams     `json:"params"`
		Reply
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
		c.Replies[string(m.ID)] = m.Reply
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

// Say sends a line unchanged.
func (c *LineClient) Say(line string) {
	c.T.Helper()
	_, err := io.WriteString(c.Conn, line+"\n")
	require.NoError(c.T, err)
}

// Said returns the lines so far.
func (c *LineClient) Said() []string {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return append([]string(nil), c.Lines...)
}

// RequireClosed requires that the hub ends the connection.
func (c *LineClient) RequireClosed() {
	c.T.Helper()
	select {
	case <-c.Closed:
	case <-time.After(Watchdog / 3):
		require.Fail(c.T, "the connection is not closed")
	}
}

// FramesOn returns an editor's client on a connection to a socket.
func FramesOn(t testing.TB, conn *net.UnixConn) *Client {
	t.Helper()
	file, err := conn.File()
	require.NoError(t, err)
	t.Cleanup(func() { file.Close() })
	return NewClient(&Process{T: t, Stdin: file, Stdout: file, Frames: NewFrameReader(file), Log: &testkit.Text{}})
}

// HubOf returns the process id of the hub that answers a client.
func HubOf(t testing.TB, c interface {
	TryAgain(method string, params, result any) error
},
) int {
	t.Helper()
	var status struct{ PID int }
	require.NoError(t, c.TryAgain("daemon.status", object{}, &status))
	return status.PID
}

// AwaitOwnTurn waits for the nth agent-initiated turn and returns its session.
func (c *Client) AwaitOwnTurn(n int) (session string) {
	c.T.Helper()
	seen := make(map[string]bool)
	e := c.Await("a session that an agent began", func(e Event) bool {
		if e.Data.Subtype == "went_on" {
			seen[e.Data.SessionID] = true
		}
		return len(seen) == n
	})
	return e.Data.SessionID
}

// Open waits for an open question that fits.
func (c *Client) Open(fits func(ShownApproval) bool) ShownApproval {
	c.T.Helper()
	return c.OpenWithin(Watchdog/3, fits)
}

// OpenWithin is Open with a limit of the wait.
func (c *Client) OpenWithin(d time.Duration, fits func(ShownApproval) bool) (found ShownApproval) {
	c.T.Helper()
	require.Eventually(c.T, func() bool {
		var r struct{ Approvals []ShownApproval }
		if c.Try("fetchApprovals", object{}, &r) != nil { // the hub was replaced: the next round asks again
			return false
		}
		for _, a := range r.Approvals {
			if fits(a) {
				found = a
				return true
			}
		}
		return false
	}, d, PollEvery, "no such question is open")
	return found
}

// AnyQuestion fits any question.
func AnyQuestion(ShownApproval) bool { return true }
