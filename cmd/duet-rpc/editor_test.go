//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

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

// take sorts a message. The lock is held.
func (c *client) take(body []byte) error {
	var m struct {
		ID     *int   `json:"id"`
		Method string `json:"method"`
		Params struct {
			Seq   int64 `json:"seq"`
			Event struct {
				Type string          `json:"type"`
				Data json.RawMessage `json:"data"`
			} `json:"event"`
		} `json:"params"`
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
		return c.takeEvent(m.Params.Seq, m.Params.Event.Type, m.Params.Event.Data)
	case strings.HasPrefix(m.Method, "event.task"):
		return c.takeNote(body)
	case m.Method == "" && m.ID != nil:
		c.replies[strconv.Itoa(*m.ID)] = m.reply
	case m.Method == "": // an error that answers nothing we sent
		return fmt.Errorf("a message that is not expected: %.300s", body)
	}
	return nil
}

// subscribe asks for all events from the first on.
func (c *client) subscribe() {
	c.t.Helper()
	c.call("Subscribe", object{"since": 0}, nil)
}

// A launched is what launchSession and continueSession answer.
type launched struct {
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	TaskID    string `json:"task_id"`
	ThreadID  string `json:"thread_id"`
}

func (c *client) launch(query, agent string) (l launched) {
	c.t.Helper()
	c.call("launchSession", object{"query": query, "agent": agent}, &l)
	return l
}

// awaitQuestion waits for a question of a session.
func (c *client) awaitQuestion(session string) event {
	c.t.Helper()
	return c.await("a question of session "+session, func(e event) bool {
		return e.Type == "new_approval" && e.Data.SessionID == session
	})
}

// approveAll answers every question of a session until it has ended, and
// returns that end.
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

// A shownSession is what getSessionState says.
type shownSession struct {
	ID        string `json:"id"`
	TaskID    string `json:"task_id"`
	ThreadID  string `json:"thread_id"`
	Query     string `json:"query"`
	State     string `json:"state"`
	Error     string `json:"error"`
	ErrorCode string `json:"error_code"`
}

func (c *client) session(id string) shownSession {
	c.t.Helper()
	var r struct {
		Session shownSession `json:"session"`
	}
	require.NoError(c.t, c.tryAgain("getSessionState", object{"session_id": id}, &r))
	return r.Session
}

// A shownApproval is what fetchApprovals says.
type shownApproval struct {
	ID        string          `json:"id"`
	SessionID string          `json:"session_id"`
	ThreadID  string          `json:"thread_id"`
	Status    string          `json:"status"`
	Stale     bool            `json:"stale"`
	ToolName  string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	Reopens   string          `json:"reopens"`
	Reopened  string          `json:"reopened"`
	Reopening string          `json:"reopened_as"`
	TakenAt   string          `json:"taken_at"`
	DecidedBy string          `json:"decided_by"`
}

func (c *client) pending() map[string]shownApproval {
	c.t.Helper()
	var r struct {
		Approvals []shownApproval `json:"approvals"`
	}
	c.call("fetchApprovals", object{}, &r)
	m := make(map[string]shownApproval)
	for _, a := range r.Approvals {
		m[a.ID] = a
	}
	return m
}

// conversation is what the agent said in a session.
func (c *client) conversation(session string) (said string) {
	c.t.Helper()
	for _, e := range c.items(session) {
		if e.Type == "message" && e.Role == "assistant" {
			said += e.Content
		}
	}
	return said
}

// crash kills the program and its hub as a machine out of memory does, and takes what it
// still said.
func (c *client) crash() {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Kill()) // first: it would start another hub
	if c.site != nil {
		c.site.crashHub()
		defer c.site.left()
	}
	<-c.ended
	c.requireGoodEnd()
}

// leave closes standard input, as an editor that ends, and requires that the
// program does too.
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

// raceSlack is what a busy machine and the race detector may add to a time.
const raceSlack = 500 * time.Millisecond

// issues are what health says is wrong.
func (c *client) issues() (status string, issues []string) {
	c.t.Helper()
	var r struct {
		Status string   `json:"status"`
		Issues []string `json:"issues"`
	}
	c.call("health", object{}, &r)
	return r.Status, r.Issues
}

// requireCore requires that the methods work that need no store.
func (c *client) requireCore() {
	c.t.Helper()
	var pong struct {
		Pong bool `json:"pong"`
	}
	c.call("ping", object{}, &pong)
	require.True(c.t, pong.Pong)
	c.call("initialize", object{}, nil)
	c.call("version", object{}, nil)
	c.call("listMethods", object{}, nil)
}

// requireUnavailable requires that methods of each family say that there is
// no store, and why.
func (c *client) requireUnavailable(why string) {
	c.t.Helper()
	for method, params := range map[string]object{
		"task.stats": {}, "task.submit": {"prompt": "quiet"}, "listSessions": {}, "launchSession": {"query": "quiet"},
		"fetchApprovals": {}, "Subscribe": {}, "execute_prompt": {"session_id": "s", "task_id": "t", "prompt": "quiet", "agentic_tool": "demo"},
	} {
		e := c.refused(method, params)
		require.Equal(c.t, "subsystem_unavailable", e.kind(), "%s: %v", method, e)
		require.Contains(c.t, e.Message, why, method)
	}
}
