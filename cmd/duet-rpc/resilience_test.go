//go:build unix

package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// A site is a project with a user of its own: nothing that a test does there
// is seen by another test, and what it starts can be told by its HOME.
type site struct {
	t    testing.TB
	root string // of the project
	home string // no other process on the machine has this one
	args []string
	env  []string

	binary string // the program, if it is not the one with the race detector
}

// newSite makes a project whose default agent is the demo agent, without its
// pauses.
func newSite(t testing.TB) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, root: filepath.Join(dir, "project"), home: filepath.Join(dir, "home")}
	require.NoError(t, os.MkdirAll(s.root, 0o755))
	require.NoError(t, os.MkdirAll(s.home, 0o755))
	s.agents("")
	t.Cleanup(func() { s.requireNobody("when the test has ended") })
	return s
}

// agents writes the user's configuration: the demo agent, and more.
func (s *site) agents(more string) {
	s.t.Helper()
	agent, err := fastProgram() // what is tested is who runs it
	require.NoError(s.t, err)
	text := fmt.Sprintf(`default_agent = "scripted"
[agents.scripted]
driver = "acp"
command = [%q, "demo-agent"]
env = { DUET_DEMO_DELAY = "0", DUET_DEMO_STATE = %q }
%s`, agent, filepath.Join(s.home, "demo"), more)
	path := filepath.Join(s.home, "config", "duet", "config.toml")
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
}

func (s *site) state() string    { return filepath.Join(s.root, ".duet") }
func (s *site) database() string { return filepath.Join(s.state(), "duet.db") }

// launch is how the program is started there.
func (s *site) launch() launch {
	return launch{
		binary: s.binary,
		args:   append([]string{"--root", s.root}, s.args...),
		env: append([]string{
			"HOME=" + s.home, "DUET_DEMO_DELAY=0",
			"XDG_CONFIG_HOME=" + filepath.Join(s.home, "config"), "XDG_STATE_HOME=" + filepath.Join(s.home, "state"),
			"XDG_DATA_HOME=" + filepath.Join(s.home, "data"), "XDG_CACHE_HOME=" + filepath.Join(s.home, "cache"),
		}, s.env...),
	}
}

// start starts the program with a client.
func (s *site) start() *client { return newClient(s.launch().start(s.t)) }

// requireNobody requires that nothing of what was started there lives.
func (s *site) requireNobody(when string) {
	s.t.Helper()
	var left []string
	require.Eventually(s.t, func() bool { left = s.processes(); return len(left) == 0 }, time.Minute, 5*time.Millisecond,
		"processes are left %s: %s", when, deferred(func() string { return strings.Join(left, "; ") }))
}

// deferred is a text that is made when it is printed.
type deferred func() string

func (d deferred) String() string { return d() }

// A client is an editor: it asks, and keeps the events that it gets.
type client struct {
	*process
	t      testing.TB
	closed chan struct{} // when nothing more can come

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	serial  int
	replies map[int]reply
	events  []event
	heard   func(event) // gets the events instead
	noted   []string    // event.task… notifications: the end of the method, and the task
	wrong   error       // a message that none should be
	over    bool
}

type reply struct {
	Result json.RawMessage `json:"result"`
	Error  *wireError      `json:"error"`
}

type wireError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *wireError) Error() string { return fmt.Sprintf("%d %s %s", e.Code, e.Message, e.Data) }

func (e *wireError) kind() string {
	var d struct {
		Kind string `json:"kind"`
	}
	_ = json.Unmarshal(e.Data, &d)
	return d.Kind
}

// An event is one as a subscriber gets it.
type event struct {
	Seq  int64
	Type string
	Raw  json.RawMessage // its data
	Data eventData
}

// eventData are the members of events' data that tests look at.
type eventData struct {
	SessionID  string          `json:"session_id"`
	TaskID     string          `json:"task_id"`
	ThreadID   string          `json:"thread_id"`
	State      string          `json:"state"`
	ErrorCode  string          `json:"error_code"`
	Error      string          `json:"error"`
	ApprovalID string          `json:"approval_id"`
	ToolName   string          `json:"tool_name"`
	ToolUseID  string          `json:"tool_use_id"`
	ToolInput  json.RawMessage `json:"tool_input"`
	Stale      bool            `json:"stale"`
	Decision   string          `json:"decision"`
	MessageID  string          `json:"message_id"`
	Delta      string          `json:"delta"`
	Content    string          `json:"content"`
	Role       string          `json:"role"`
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Update     json.RawMessage `json:"update"`
	FromSeq    int64           `json:"from_seq"`
	ToSeq      int64           `json:"to_seq"`
}

func newClient(p *process) *client {
	c := &client{process: p, t: p.t, closed: make(chan struct{}), replies: make(map[int]reply)}
	c.changed = sync.NewCond(&c.mu)
	go c.read()
	return c
}

// read takes what the program says, to the end.
func (c *client) read() {
	defer close(c.closed)
	for {
		body, err := c.frames.next()
		c.mu.Lock()
		if err == nil {
			err = c.take(body)
		}
		if err != nil {
			c.over = true
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, os.ErrClosed) {
				c.wrong = err
			}
		}
		c.changed.Broadcast()
		over := c.over
		c.mu.Unlock()
		if over {
			return
		}
	}
}

// take sorts a message. The lock is held.
func (c *client) take(body []byte) error {
	var m struct {
		ID     *int   `json:"id"`
		Method string `json:"method"`
		Params struct {
			Seq    int64  `json:"seq"`
			TaskID string `json:"taskId"`
			Event  struct {
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
		e := event{Seq: m.Params.Seq, Type: m.Params.Event.Type, Raw: m.Params.Event.Data}
		if err := json.Unmarshal(e.Raw, &e.Data); err != nil {
			return fmt.Errorf("%w: %.300s", err, body)
		}
		if c.heard != nil {
			c.heard(e)
			return nil
		}
		c.events = append(c.events, e)
	case strings.HasPrefix(m.Method, "event.task"):
		c.noted = append(c.noted, strings.TrimPrefix(m.Method, "event.task")+" "+m.Params.TaskID)
	case m.Method == "" && m.ID != nil:
		c.replies[*m.ID] = m.reply
	case m.Method == "": // an error that answers nothing we sent
		return fmt.Errorf("a message that is not expected: %.300s", body)
	}
	return nil
}

// errGone is what a request gets whose process has ended.
var errGone = errors.New("the process has gone")

// try sends a request and waits for its reply. It may be called from any
// goroutine. The error is errGone or a *wireError.
func (c *client) try(method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.serial++
	id := c.serial
	// Inside the lock: no two requests may mix.
	_, err = io.WriteString(c.stdin, framed(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, raw)))
	defer c.mu.Unlock()
	if err != nil {
		return errGone
	}
	for {
		if r, ok := c.replies[id]; ok {
			delete(c.replies, id)
			switch {
			case r.Error != nil:
				return r.Error
			case result == nil:
				return nil
			}
			return json.Unmarshal(r.Result, result)
		}
		if c.over {
			return errGone
		}
		c.changed.Wait()
	}
}

// call is try for a request that must succeed.
func (c *client) call(method string, params, result any) {
	c.t.Helper()
	require.NoError(c.t, c.try(method, params, result), "%s %v", method, params)
}

// refused is the error that a request must get.
func (c *client) refused(method string, params any) *wireError {
	c.t.Helper()
	err := c.try(method, params, nil)
	var e *wireError
	require.ErrorAs(c.t, err, &e, "%s %v", method, params)
	return e
}

type object = map[string]any

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

// seen is what came so far.
func (c *client) seen() []event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]event(nil), c.events...)
}

// await waits for an event that fits, from the beginning on, and tells what
// it waited for if it does not come.
func (c *client) await(what string, fits func(event) bool) event {
	c.t.Helper()
	timeout := time.AfterFunc(watchdog/2, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.over = true
		c.wrong = errors.New("it took too long")
		c.changed.Broadcast()
	})
	defer timeout.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := 0; ; {
		for ; i < len(c.events); i++ {
			if fits(c.events[i]) {
				return c.events[i]
			}
		}
		if c.over {
			require.Fail(c.t, "no event", "%s did not come: %v\nthe last events: %s", what, c.wrong, tailOf(c.events))
		}
		c.changed.Wait()
	}
}

func tailOf(events []event) string {
	var b strings.Builder
	for _, e := range events[max(0, len(events)-12):] {
		fmt.Fprintf(&b, "\n%d %s %.300s", e.Seq, e.Type, e.Raw)
	}
	return b.String()
}

// awaitState waits until a session has come to a state.
func (c *client) awaitState(session, state string) event {
	c.t.Helper()
	return c.await(fmt.Sprintf("session %s becoming %s", session, state), func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.SessionID == session && e.Data.State == state
	})
}

// awaitEnd waits until a session has ended.
func (c *client) awaitEnd(session string) event {
	c.t.Helper()
	return c.await("the end of session "+session, func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.SessionID == session && ended(e.Data.State)
	})
}

func ended(state string) bool {
	switch state {
	case "completed", "failed", "timed_out", "interrupted", "cancelled":
		return true
	}
	return false
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
	c.call("getSessionState", object{"session_id": id}, &r)
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
	var r struct {
		Events []struct {
			Role    string `json:"role"`
			Content string `json:"content"`
			Type    string `json:"event_type"`
		} `json:"events"`
	}
	c.call("getConversation", object{"session_id": session}, &r)
	for _, e := range r.Events {
		if e.Type == "message" && e.Role == "assistant" {
			said += e.Content
		}
	}
	return said
}

// crash kills the program as a machine out of memory does, and takes what it
// still said.
func (c *client) crash() {
	c.t.Helper()
	require.NoError(c.t, c.cmd.Process.Kill())
	<-c.ended
	<-c.closed
	require.NoError(c.t, c.wrong)
}

// leave closes standard input, as an editor that ends, and requires that the
// program does too.
func (c *client) leave() {
	c.t.Helper()
	began := time.Now()
	c.closeStdin()
	c.requireGoneWithin(goneAfter+raceSlack, began)
	<-c.closed
	require.NoError(c.t, c.wrong)
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
