//go:build unix

package main_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/duet-rpc/duet-rpc/internal/socket"
)

// socketPath is where the hub of the site listens, or would.
func (s *site) socketPath() string {
	s.t.Helper()
	path, err := socket.Find(s.state())
	require.NoError(s.t, err)
	return path
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
	}, watchdog/3, pollEvery, "nobody listens on %s", path)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A lineClient speaks one JSON value a line, as the clients of seeds 000 and
// 001 do.
type lineClient struct {
	t      testing.TB
	conn   net.Conn
	closed chan struct{} // when nothing more can come

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	serial  int              // far from ids that tests say themselves
	replies map[string]reply // by raw id
	lines   []string         // all that came, unless quiet
	quiet   bool
	events  []event
	heard   func(event) // gets the events instead
	notes   []taskNote
	note    func(taskNote) // gets the notes instead
	longest int            // line, in bytes
	patient time.Duration  // for a reply; 0: as long as a process lives at most
	err     error
}

// A taskNote is a broadcast about a task.
type taskNote struct {
	Method string `json:"method"`
	Params struct {
		TaskID string `json:"taskId"`
	} `json:"params"`
}

func newLineClient(t testing.TB, path string) *lineClient { return linesOn(t, connect(t, path)) }

func linesOn(t testing.TB, conn net.Conn) *lineClient {
	c := &lineClient{t: t, conn: conn, closed: make(chan struct{}), replies: make(map[string]reply), serial: 1_000_000}
	c.changed = sync.NewCond(&c.mu)
	go c.read()
	return c
}

// lines is a client on the project's own socket.
func (s *site) lines() *lineClient {
	s.t.Helper()
	return newLineClient(s.t, s.socketPath())
}

func (c *lineClient) read() {
	defer close(c.closed)
	in := bufio.NewReaderSize(c.conn, 16<<10)
	for {
		line, err := in.ReadBytes('\n')
		c.mu.Lock()
		if err == nil {
			err = c.take(line)
		}
		c.err = err
		c.changed.Broadcast()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
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
		var n taskNote
		if err := json.Unmarshal(line, &n); err != nil {
			return err
		}
		if c.note != nil {
			c.note(n)
			return nil
		}
		c.notes = append(c.notes, n)
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
		e := event{Seq: r.Event.Seq, Type: r.Event.Type, Raw: r.Event.Data}
		if err := json.Unmarshal(e.Raw, &e.Data); err != nil {
			return fmt.Errorf("%w: %.300q", err, line)
		}
		if c.heard != nil {
			c.heard(e)
			return nil
		}
		c.events = append(c.events, e)
	}
	return nil
}

// say sends a line as it is.
func (c *lineClient) say(line string) {
	c.t.Helper()
	_, err := io.WriteString(c.conn, line+"\n")
	require.NoError(c.t, err)
}

// try sends a request and waits for its reply. It may be called from any
// goroutine. The error is errGone, a *wireError or says that it took too long.
func (c *lineClient) try(method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.serial++
	id := strconv.Itoa(c.serial)
	_, err = fmt.Fprintf(c.conn, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":%q,\"params\":%s}\n", id, method, raw)
	c.mu.Unlock()
	if err != nil {
		return errGone
	}
	r, err := c.reply(id)
	switch {
	case err != nil:
		return err
	case r.Error != nil:
		return r.Error
	case result == nil:
		return nil
	}
	return json.Unmarshal(r.Result, result)
}

// reply is the reply to a request that was sent with an id, as it is written.
func (c *lineClient) reply(id string) (reply, error) {
	late, stop := c.deadline()
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if r, ok := c.replies[id]; ok {
			delete(c.replies, id)
			return r, nil
		}
		if c.err != nil {
			return reply{}, errGone
		}
		if *late {
			return reply{}, errors.New("no reply came")
		}
		c.changed.Wait()
	}
}

// deadline wakes who waits when it takes too long; late is guarded by the lock.
func (c *lineClient) deadline() (late *bool, stop func() bool) {
	late = new(bool)
	timer := time.AfterFunc(cmp.Or(c.patient, watchdog*2/3), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		*late = true
		c.changed.Broadcast()
	})
	return late, timer.Stop
}

// call is try for a request that must succeed.
func (c *lineClient) call(method string, params, result any) {
	c.t.Helper()
	require.NoError(c.t, c.try(method, params, result), "%s %v", method, params)
}

// await waits until something is true of what has come, which is looked at
// with the lock held.
func (c *lineClient) await(what string, done func() bool) {
	c.t.Helper()
	late, stop := c.deadline()
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !done() {
		if c.err != nil || *late {
			require.Fail(c.t, "it did not come", "%s: %v; %d events%s\n%d notes %v", what, c.err, len(c.events), tailOf(c.events), len(c.notes), c.notes[max(0, len(c.notes)-12):])
		}
		c.changed.Wait()
	}
}

// awaitNote waits for a broadcast about a task.
func (c *lineClient) awaitNote(method, task string) {
	c.t.Helper()
	c.await(method+" of "+task, func() bool {
		for _, n := range c.notes {
			if n.Method == method && n.Params.TaskID == task {
				return true
			}
		}
		return false
	})
}

// awaitEnd waits until a session has ended.
func (c *lineClient) awaitEnd(session string) (end event) {
	c.t.Helper()
	c.await("the end of session "+session, func() bool {
		for _, e := range c.events {
			if e.Type == "session_status_changed" && e.Data.SessionID == session && ended(e.Data.State) {
				end = e
				return true
			}
		}
		return false
	})
	return end
}

// said is what came so far.
func (c *lineClient) said() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.lines...)
}

func (c *lineClient) noted() []taskNote {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]taskNote(nil), c.notes...)
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
	file, err := connect(s.t, s.socketPath()).File()
	require.NoError(s.t, err)
	s.t.Cleanup(func() { file.Close() })
	return newClient(&process{t: s.t, stdin: file, stdout: file, frames: newFrameReader(file), log: &recorder{}})
}

// lockHolder is the process that is the hub of the site, as its lock says.
func (s *site) lockHolder() int {
	s.t.Helper()
	text, err := os.ReadFile(s.state() + "/lock")
	require.NoError(s.t, err)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// hubOf is the process that answers a client. What was asked of a hub that has
// just died is asked again, as the error says that it may be.
func hubOf(t testing.TB, c interface {
	try(method string, params, result any) error
},
) int {
	t.Helper()
	var status struct {
		PID int `json:"pid"`
	}
	err := c.try("daemon.status", object{}, &status)
	var lost *wireError
	if errors.As(err, &lost) && lost.kind() == "hub_lost" {
		err = c.try("daemon.status", object{}, &status)
	}
	require.NoError(t, err)
	return status.PID
}
