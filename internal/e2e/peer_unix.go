//go:build unix

package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A Peer is the common part of all clients, whatever their framing: it sends requests and stores
// received messages. Its methods are safe for concurrent use.
type Peer struct {
	T      testing.TB
	Write  func(message string) error // frames and sends a message
	Closed chan struct{}              // closes after the last message

	Mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	Serial  int
	Replies map[string]Reply // by the JSON text of the id
	Events  []Event
	Heard   func(Event) // receives the events instead of the field
	notes   []TaskNote
	Note    func(TaskNote) // receives the notes instead of the field
	Patient time.Duration  // limit of a wait; 0: less than a process lives
	err     error          // the reason for the end of the messages
}

// A Reply is a response.
type Reply struct {
	Result json.RawMessage `json:"result"`
	Error  *WireError      `json:"error"`
}

// A WireError is the error of a response.
type WireError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *WireError) Error() string { return fmt.Sprintf("%d %s %s", e.Code, e.Message, e.Data) }

// Kind returns data.kind.
func (e *WireError) Kind() string {
	var d struct{ Kind string }
	_ = json.Unmarshal(e.Data, &d)
	return d.Kind
}

// KindOf returns data.kind of an error.
func KindOf(t testing.TB, err error) string {
	t.Helper()
	var e *WireError
	require.True(t, errors.As(err, &e), "%v", err)
	return e.Kind()
}

// An Event is an event as a subscriber receives it.
type Event struct {
	Seq  int64
	Type string
	Raw  json.RawMessage // its data
	Data eventData
}

// eventData holds the members of event data that the tests check.
type eventData struct {
	SessionID  string          `json:"session_id"`
	TaskID     string          `json:"task_id"`
	ThreadID   string          `json:"thread_id"`
	State      string          `json:"state"`
	ErrorCode  string          `json:"error_code"`
	Error      string          `json:"error"`
	ApprovalID string          `json:"approval_id"`
	ToolName   string          `json:"tool_name"`
	ToolInput  json.RawMessage `json:"tool_input"`
	Stale      bool            `json:"stale"`
	Decision   string          `json:"decision"`
	MessageID  string          `json:"message_id"`
	Delta      string          `json:"delta"`
	Subtype    string          `json:"subtype"`
	Content    string          `json:"content"`
	Role       string          `json:"role"`
	Code       string          `json:"code"`
	Message    string          `json:"message"`
	Update     json.RawMessage `json:"update"`
	FromSeq    int64           `json:"from_seq"`
	ToSeq      int64           `json:"to_seq"`
}

// A TaskNote is a broadcast about a task.
type TaskNote struct {
	Method string `json:"method"`
	Params struct {
		TaskID string `json:"taskId"`
	} `json:"params"`
}

// NewPeer returns a peer that sends with write. The caller starts Read.
func NewPeer(t testing.TB, write func(string) error) *Peer {
	p := &Peer{T: t, Write: write, Closed: make(chan struct{}), Replies: make(map[string]Reply)}
	p.changed = sync.NewCond(&p.Mu)
	return p
}

// Read passes each message from next to take, until an error. It holds the lock during take.
func (p *Peer) Read(next func() ([]byte, error), take func([]byte) error) {
	defer close(p.Closed)
	for {
		body, err := next()
		p.Mu.Lock()
		if err == nil {
			err = take(body)
		}
		p.err = err
		p.changed.Broadcast()
		p.Mu.Unlock()
		if err != nil {
			return
		}
	}
}

// An eventParams is an event in either form: native, or HumanLayer's in both framings.
type eventParams struct {
	Seq  int64           `json:"seq"`
	Type string          `json:"type"` // of a heartbeat
	Kind string          `json:"kind"`
	Turn string          `json:"turn_uuid"`
	Data json.RawMessage `json:"data"`

	Event struct {
		Seq  int64           `json:"seq"`
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	} `json:"event"`
}

// takeEvent stores an event. The caller holds the lock.
func (p *Peer) takeEvent(in eventParams) error {
	raw := in.Event.Data
	if in.Kind != "" {
		raw = in.Data
	}
	e := Event{Seq: max(in.Seq, in.Event.Seq), Type: cmp.Or(in.Kind, in.Event.Type), Raw: raw, Data: eventData{SessionID: in.Turn}}
	if err := json.Unmarshal(raw, &e.Data); err != nil {
		return fmt.Errorf("%w: %.300q", err, raw)
	}
	if p.Heard != nil {
		p.Heard(e)
		return nil
	}
	p.Events = append(p.Events, e)
	return nil
}

// takeNote stores a broadcast about a task. The caller holds the lock.
func (p *Peer) takeNote(message []byte) error {
	var n TaskNote
	if err := json.Unmarshal(message, &n); err != nil {
		return err
	}
	if p.Note != nil {
		p.Note(n)
		return nil
	}
	p.notes = append(p.notes, n)
	return nil
}

// RequireGoodEnd waits for the end of the messages and requires that all of them were valid.
func (p *Peer) RequireGoodEnd() {
	p.T.Helper()
	<-p.Closed
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if !errors.Is(p.err, io.EOF) && !errors.Is(p.err, io.ErrUnexpectedEOF) && !errors.Is(p.err, os.ErrClosed) {
		require.NoError(p.T, p.err)
	}
}

// ErrGone is the error of a request to a process that has ended.
var ErrGone = errors.New("the process has gone")

// Try sends a request and waits for its response. The error is ErrGone, a *WireError or a timeout.
func (p *Peer) Try(method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	p.Mu.Lock()
	p.Serial++
	id := strconv.Itoa(p.Serial)
	// The lock keeps two requests from mixing.
	err = p.Write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, raw))
	p.Mu.Unlock()
	if err != nil {
		return ErrGone
	}
	r, err := p.Reply(id)
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

// TryAgain is Try with one retry after hub_lost.
func (p *Peer) TryAgain(method string, params, result any) error {
	err := p.Try(method, params, result)
	var lost *WireError
	if errors.As(err, &lost) && lost.Kind() == "hub_lost" {
		return p.Try(method, params, result)
	}
	return err
}

// Reply waits for the response to a request. id is the JSON text of the request's id.
func (p *Peer) Reply(id string) (Reply, error) {
	late, stop := p.deadline()
	defer stop()
	p.Mu.Lock()
	defer p.Mu.Unlock()
	for {
		if r, ok := p.Replies[id]; ok {
			delete(p.Replies, id)
			return r, nil
		}
		if p.err != nil {
			return Reply{}, ErrGone
		}
		if *late {
			return Reply{}, errors.New("no reply came")
		}
		p.changed.Wait()
	}
}

// deadline wakes waiting goroutines after the limit of a wait. The lock guards late.
func (p *Peer) deadline() (late *bool, stop func() bool) {
	late = new(bool)
	p.Mu.Lock()
	patient := cmp.Or(p.Patient, Watchdog*2/3)
	p.Mu.Unlock()
	timer := time.AfterFunc(patient, func() {
		p.Mu.Lock()
		defer p.Mu.Unlock()
		*late = true
		p.changed.Broadcast()
	})
	return late, timer.Stop
}

// Call is Try for a request that must succeed.
func (p *Peer) Call(method string, params, result any) {
	p.T.Helper()
	require.NoError(p.T, p.Try(method, params, result), "%s %v", method, params)
}

// Refused returns the error of a request that must fail.
func (p *Peer) Refused(method string, params any) *WireError {
	p.T.Helper()
	err := p.Try(method, params, nil)
	var e *WireError
	require.ErrorAs(p.T, err, &e, "%s %v", method, params)
	return e
}

// Until waits until done returns true. It calls done with the lock held.
func (p *Peer) Until(what string, done func() bool) {
	p.T.Helper()
	late, stop := p.deadline()
	defer stop()
	p.Mu.Lock()
	defer p.Mu.Unlock()
	for !done() {
		if p.err != nil || *late {
			require.Fail(
				p.T, "timeout, or the end of the messages", "%s: %v; %d events%s\n%d notes %v", what, p.err, len(p.Events), tailOf(p.Events),
				len(p.notes), p.notes[max(0, len(p.notes)-12):],
			)
		}
		p.changed.Wait()
	}
}

// Await waits for an event that fits, and considers earlier events first.
func (p *Peer) Await(what string, fits func(Event) bool) (found Event) {
	p.T.Helper()
	next := 0
	p.Until(what, func() bool {
		for ; next < len(p.Events); next++ {
			if fits(p.Events[next]) {
				found = p.Events[next]
				return true
			}
		}
		return false
	})
	return found
}

// AwaitNote waits for a broadcast about a task.
func (p *Peer) AwaitNote(method, task string) {
	p.T.Helper()
	p.Until(method+" of "+task, func() bool { return countNotes(p.notes, method, task) > 0 })
}

// Count returns the number of broadcasts of a method about a task so far.
func (p *Peer) Count(method, task string) int { return countNotes(p.Noted(), method, task) }

func countNotes(notes []TaskNote, method, task string) (n int) {
	for _, note := range notes {
		if note.Method == method && note.Params.TaskID == task {
			n++
		}
	}
	return n
}

// AwaitState waits until a session reaches a state.
func (p *Peer) AwaitState(session, state string) Event {
	p.T.Helper()
	return p.Await(fmt.Sprintf("session %s becoming %s", session, state), func(e Event) bool {
		return e.Type == "session_status_changed" && e.Data.SessionID == session && e.Data.State == state
	})
}

// AwaitEnd waits until a session has ended.
func (p *Peer) AwaitEnd(session string) Event {
	p.T.Helper()
	return p.Await("the end of session "+session, func(e Event) bool {
		return e.Type == "session_status_changed" && e.Data.SessionID == session && Ended(e.Data.State)
	})
}

// Ended reports whether a state is final.
func Ended(state string) bool {
	switch state {
	case "completed", "failed", "timed_out", "interrupted", "cancelled":
		return true
	}
	return false
}

// Launch starts a session.
func (p *Peer) Launch(query, agent string) Launched {
	p.T.Helper()
	return p.Begins("launchSession", object{"query": query, "agent": agent})
}

// Begins starts or continues a session.
func (p *Peer) Begins(method string, params object) (l Launched) {
	p.T.Helper()
	p.Call(method, params, &l)
	return l
}

// Runs starts a session with the default agent and requires its completion.
func (p *Peer) Runs(query string) Launched {
	p.T.Helper()
	l := p.Launch(query, "")
	p.Completes(l)
	return l
}

// Completes waits for the end of a session and requires its completion.
func (p *Peer) Completes(l Launched) {
	p.T.Helper()
	end := p.AwaitEnd(l.SessionID)
	require.Equal(p.T, "completed", end.Data.State, "%s", end.Raw)
}

// EndsAs waits for the end of a session and requires its state and error code.
func (p *Peer) EndsAs(session, state, code string) Event {
	p.T.Helper()
	end := p.AwaitEnd(session)
	require.Equal(p.T, state, end.Data.State, "%s", end.Raw)
	require.Equal(p.T, code, end.Data.ErrorCode, "%s", end.Raw)
	return end
}

// AwaitText waits for a text of a session's agent.
func (p *Peer) AwaitText(l Launched) Event {
	p.T.Helper()
	return p.Await("text", func(e Event) bool { return e.Type == "message_delta" && e.Data.SessionID == l.SessionID })
}

// AwaitThread waits until a turn of a session, by HumanLayer's thread_id, has completed.
func (p *Peer) AwaitThread(thread string) Event {
	p.T.Helper()
	return p.Await("the end of a turn of "+thread, func(e Event) bool {
		return e.Type == "session_status_changed" && e.Data.ThreadID == thread && e.Data.State == "completed"
	})
}

// AwaitQuestionOrEnd waits for the first question of a session, or its end.
func (p *Peer) AwaitQuestionOrEnd(l Launched) Event {
	p.T.Helper()
	return p.Await("a question or the end", func(e Event) bool {
		return e.Data.SessionID == l.SessionID && (e.Type == "new_approval" || e.Type == "session_status_changed" && Ended(e.Data.State))
	})
}

// AwaitAnswer waits for the decision on a question.
func (p *Peer) AwaitAnswer(approval string) Event {
	p.T.Helper()
	return p.Await("the answer", func(e Event) bool { return e.Type == "approval_resolved" && e.Data.ApprovalID == approval })
}

// Interrupt interrupts a session and waits for its end.
func (p *Peer) Interrupt(l Launched) {
	p.T.Helper()
	p.Call("interruptSession", object{"session_id": l.SessionID}, nil)
	end := p.AwaitEnd(l.SessionID)
	require.Equal(p.T, "interrupted", end.Data.State, "%s", end.Raw)
}

// AwaitQuestion waits for a question of a session.
func (p *Peer) AwaitQuestion(session string) Event {
	p.T.Helper()
	return p.Await("a question of session "+session, func(e Event) bool {
		return e.Type == "new_approval" && e.Data.SessionID == session
	})
}

// Asks starts a session and waits for its question.
func (p *Peer) Asks(query, agent string) (Launched, Event) {
	p.T.Helper()
	l := p.Launch(query, agent)
	return l, p.AwaitQuestion(l.SessionID)
}

// Approve approves a question.
func (p *Peer) Approve(approval string) {
	p.T.Helper()
	p.Call("sendDecision", object{"approval_id": approval, "decision": "approve"}, nil)
}

// Issues returns the status and the issues of health.
func (p *Peer) Issues() (status string, issues []string) {
	p.T.Helper()
	var r struct {
		Status string
		Issues []string
	}
	p.Call("health", object{}, &r)
	return r.Status, r.Issues
}

// RequireIssue requires that the issues of health contain a text.
func (p *Peer) RequireIssue(text string) {
	p.T.Helper()
	_, issues := p.Issues()
	require.Contains(p.T, strings.Join(issues, "\n"), text)
}

// RequireDegraded is RequireIssue with the status degraded. It returns all issues.
func (p *Peer) RequireDegraded(text string) []string {
	p.T.Helper()
	status, issues := p.Issues()
	require.Equal(p.T, "degraded", status)
	require.Contains(p.T, strings.Join(issues, "\n"), text)
	return issues
}

// RequireNoIssue requires the status ok and no issues.
func (p *Peer) RequireNoIssue() {
	p.T.Helper()
	status, issues := p.Issues()
	require.Equal(p.T, "ok", status, "%v", issues)
	require.Empty(p.T, issues)
}

// Seen returns the events so far.
func (p *Peer) Seen() []Event {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return append([]Event(nil), p.Events...)
}

// Noted returns the broadcasts about tasks so far.
func (p *Peer) Noted() []TaskNote {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return append([]TaskNote(nil), p.notes...)
}

// tailOf returns the last events as readable text.
func tailOf(events []Event) string {
	var b strings.Builder
	for _, e := range events[max(0, len(events)-12):] {
		fmt.Fprintf(&b, "\n%d %s %.300s", e.Seq, e.Type, e.Raw)
	}
	return b.String()
}

// An item is an item of a conversation, as getConversation returns it.
type item struct {
	Type     string `json:"event_type"`
	Role     string `json:"role"`
	Content  string `json:"content"`
	ID       string `json:"tool_id"`
	Tool     string `json:"tool_name"`
	Parent   string `json:"parent_tool_use_id"`
	Input    string `json:"tool_input_json"`
	Status   string `json:"status"`
	Approval string `json:"approval_status"`
	By       string `json:"refused_by"`
	Why      string `json:"refusal"`
	Result   string `json:"tool_result_content"`
}

// Items returns all items of a session.
func (p *Peer) Items(session string) []item {
	p.T.Helper()
	var r struct{ Events []item }
	p.Call("getConversation", object{"session_id": session}, &r)
	return r.Events
}

// A Launched is the result of launchSession and continueSession.
type Launched struct {
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	TaskID    string `json:"task_id"`
	ThreadID  string `json:"thread_id"`
}

// A ShownSession is a session in the result of getSessionState or listSessions.
type ShownSession struct {
	ID        string `json:"id"`
	TaskID    string `json:"task_id"`
	ThreadID  string `json:"thread_id"`
	Query     string `json:"query"`
	State     string `json:"state"`
	Status    string
	Title     string
	Error     string `json:"error"`
	ErrorCode string `json:"error_code"`

	Started     time.Time             `json:"started_at"`
	Completed   time.Time             `json:"completed_at"`
	SilentSince *time.Time            `json:"silent_since"`
	AuthMethods []struct{ ID string } `json:"auth_methods"`
	Agent       ReportedSession       `json:"agent_session"`
}

// A ReportedSession holds the members of an agent's report about its session that the tests check.
type ReportedSession struct{ Commands []struct{ Name string } }

// Session returns the session of getSessionState.
func (p *Peer) Session(id string) ShownSession {
	p.T.Helper()
	var r struct{ Session ShownSession }
	require.NoError(p.T, p.TryAgain("getSessionState", object{"session_id": id}, &r))
	return r.Session
}

// A DaemonStatus is the result of daemon.status.
type DaemonStatus struct {
	PID        int
	Health     string
	Issues     []string
	Subsystems struct {
		IPC     struct{ Clients int }
		Watcher struct{ Directories int } `json:"file_watcher"`
		Store   struct {
			LastSeq int64 `json:"last_seq"`
		}
	}
}

// Status returns the result of daemon.status.
func (p *Peer) Status() (s DaemonStatus) {
	p.T.Helper()
	p.Call("daemon.status", object{}, &s)
	return s
}

// Approval returns the result of getApproval.
func (p *Peer) Approval(id string) ShownApproval {
	p.T.Helper()
	var r struct{ Approval ShownApproval }
	p.Call("getApproval", object{"approval_id": id}, &r)
	return r.Approval
}

// A ShownApproval is an approval in the result of fetchApprovals or getApproval.
type ShownApproval struct {
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
}

// AttachedTo is the result of terminal.start and terminal.attach.
type AttachedTo struct {
	ID     string `json:"terminal_id"`
	PID    int    `json:"pty_pid"`
	Cols   int
	Recent string
	Taken  bool
}

// Spawn starts a terminal.
func (p *Peer) Spawn(params object) (r AttachedTo) {
	p.T.Helper()
	p.Call("terminal.start", params, &r)
	return r
}
