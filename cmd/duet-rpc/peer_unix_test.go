//go:build unix

package main_test

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

// A peer is the common part of all clients, whatever their framing: it sends requests and stores
// received messages. Its methods are safe for concurrent use.
type peer struct {
	t      testing.TB
	write  func(message string) error // frames and sends a message
	closed chan struct{}              // closes after the last message

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	serial  int
	replies map[string]reply // by the JSON text of the id
	events  []event
	heard   func(event) // receives the events instead of the field
	notes   []taskNote
	note    func(taskNote) // receives the notes instead of the field
	patient time.Duration  // limit of a wait; 0: less than a process lives
	err     error          // the reason for the end of the messages
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
	var d struct{ Kind string }
	_ = json.Unmarshal(e.Data, &d)
	return d.Kind
}

// An event is an event as a subscriber receives it.
type event struct {
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

// A taskNote is a broadcast about a task.
type taskNote struct {
	Method string `json:"method"`
	Params struct {
		TaskID string `json:"taskId"`
	} `json:"params"`
}

// newPeer returns a peer that sends with write. The caller starts read.
func newPeer(t testing.TB, write func(string) error) *peer {
	p := &peer{t: t, write: write, closed: make(chan struct{}), replies: make(map[string]reply)}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// read passes each message from next to take, until an error. It holds the lock during take.
func (p *peer) read(next func() ([]byte, error), take func([]byte) error) {
	defer close(p.closed)
	for {
		body, err := next()
		p.mu.Lock()
		if err == nil {
			err = take(body)
		}
		p.err = err
		p.changed.Broadcast()
		p.mu.Unlock()
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
func (p *peer) takeEvent(in eventParams) error {
	raw := in.Event.Data
	if in.Kind != "" {
		raw = in.Data
	}
	e := event{Seq: max(in.Seq, in.Event.Seq), Type: cmp.Or(in.Kind, in.Event.Type), Raw: raw, Data: eventData{SessionID: in.Turn}}
	if err := json.Unmarshal(raw, &e.Data); err != nil {
		return fmt.Errorf("%w: %.300q", err, raw)
	}
	if p.heard != nil {
		p.heard(e)
		return nil
	}
	p.events = append(p.events, e)
	return nil
}

// takeNote stores a broadcast about a task. The caller holds the lock.
func (p *peer) takeNote(message []byte) error {
	var n taskNote
	if err := json.Unmarshal(message, &n); err != nil {
		return err
	}
	if p.note != nil {
		p.note(n)
		return nil
	}
	p.notes = append(p.notes, n)
	return nil
}

// requireGoodEnd waits for the end of the messages and requires that all of them were valid.
func (p *peer) requireGoodEnd() {
	p.t.Helper()
	<-p.closed
	p.mu.Lock()
	defer p.mu.Unlock()
	if !errors.Is(p.err, io.EOF) && !errors.Is(p.err, io.ErrUnexpectedEOF) && !errors.Is(p.err, os.ErrClosed) {
		require.NoError(p.t, p.err)
	}
}

// errGone is the error of a request to a process that has ended.
var errGone = errors.New("the process has gone")

// try sends a request and waits for its response. The error is errGone, a *wireError or a timeout.
func (p *peer) try(method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.serial++
	id := strconv.Itoa(p.serial)
	// The lock keeps two requests from mixing.
	err = p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, raw))
	p.mu.Unlock()
	if err != nil {
		return errGone
	}
	r, err := p.reply(id)
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

// tryAgain is try with one retry after hub_lost.
func (p *peer) tryAgain(method string, params, result any) error {
	err := p.try(method, params, result)
	var lost *wireError
	if errors.As(err, &lost) && lost.kind() == "hub_lost" {
		return p.try(method, params, result)
	}
	return err
}

// reply waits for the response to a request. id is the JSON text of the request's id.
func (p *peer) reply(id string) (reply, error) {
	late, stop := p.deadline()
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if r, ok := p.replies[id]; ok {
			delete(p.replies, id)
			return r, nil
		}
		if p.err != nil {
			return reply{}, errGone
		}
		if *late {
			return reply{}, errors.New("no reply came")
		}
		p.changed.Wait()
	}
}

// deadline wakes waiting goroutines after the limit of a wait. The lock guards late.
func (p *peer) deadline() (late *bool, stop func() bool) {
	late = new(bool)
	p.mu.Lock()
	patient := cmp.Or(p.patient, watchdog*2/3)
	p.mu.Unlock()
	timer := time.AfterFunc(patient, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		*late = true
		p.changed.Broadcast()
	})
	return late, timer.Stop
}

// call is try for a request that must succeed.
func (p *peer) call(method string, params, result any) {
	p.t.Helper()
	require.NoError(p.t, p.try(method, params, result), "%s %v", method, params)
}

// refused returns the error of a request that must fail.
func (p *peer) refused(method string, params any) *wireError {
	p.t.Helper()
	err := p.try(method, params, nil)
	var e *wireError
	require.ErrorAs(p.t, err, &e, "%s %v", method, params)
	return e
}

// until waits until done returns true. It calls done with the lock held.
func (p *peer) until(what string, done func() bool) {
	p.t.Helper()
	late, stop := p.deadline()
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !done() {
		if p.err != nil || *late {
			require.Fail(p.t, "timeout, or the end of the messages", "%s: %v; %d events%s\n%d notes %v", what, p.err, len(p.events), tailOf(p.events), len(p.notes), p.notes[max(0, len(p.notes)-12):])
		}
		p.changed.Wait()
	}
}

// await waits for an event that fits, and considers earlier events first.
func (p *peer) await(what string, fits func(event) bool) (found event) {
	p.t.Helper()
	next := 0
	p.until(what, func() bool {
		for ; next < len(p.events); next++ {
			if fits(p.events[next]) {
				found = p.events[next]
				return true
			}
		}
		return false
	})
	return found
}

// awaitNote waits for a broadcast about a task.
func (p *peer) awaitNote(method, task string) {
	p.t.Helper()
	p.until(method+" of "+task, func() bool { return countNotes(p.notes, method, task) > 0 })
}

// count returns the number of broadcasts of a method about a task so far.
func (p *peer) count(method, task string) int { return countNotes(p.noted(), method, task) }

func countNotes(notes []taskNote, method, task string) (n int) {
	for _, note := range notes {
		if note.Method == method && note.Params.TaskID == task {
			n++
		}
	}
	return n
}

// awaitState waits until a session reaches a state.
func (p *peer) awaitState(session, state string) event {
	p.t.Helper()
	return p.await(fmt.Sprintf("session %s becoming %s", session, state), func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.SessionID == session && e.Data.State == state
	})
}

// awaitEnd waits until a session has ended.
func (p *peer) awaitEnd(session string) event {
	p.t.Helper()
	return p.await("the end of session "+session, func(e event) bool {
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

// launch starts a session.
func (p *peer) launch(query, agent string) launched {
	p.t.Helper()
	return p.begins("launchSession", object{"query": query, "agent": agent})
}

// begins starts or continues a session.
func (p *peer) begins(method string, params object) (l launched) {
	p.t.Helper()
	p.call(method, params, &l)
	return l
}

// runs starts a session with the default agent and requires its completion.
func (p *peer) runs(query string) launched {
	p.t.Helper()
	l := p.launch(query, "")
	p.completes(l)
	return l
}

// completes waits for the end of a session and requires its completion.
func (p *peer) completes(l launched) {
	p.t.Helper()
	end := p.awaitEnd(l.SessionID)
	require.Equal(p.t, "completed", end.Data.State, "%s", end.Raw)
}

// endsAs waits for the end of a session and requires its state and error code.
func (p *peer) endsAs(session, state, code string) event {
	p.t.Helper()
	end := p.awaitEnd(session)
	require.Equal(p.t, state, end.Data.State, "%s", end.Raw)
	require.Equal(p.t, code, end.Data.ErrorCode, "%s", end.Raw)
	return end
}

// awaitText waits for a text of a session's agent.
func (p *peer) awaitText(l launched) event {
	p.t.Helper()
	return p.await("text", func(e event) bool { return e.Type == "message_delta" && e.Data.SessionID == l.SessionID })
}

// awaitThread waits until a session of a conversation has completed.
func (p *peer) awaitThread(thread string) event {
	p.t.Helper()
	return p.await("the end of a session of "+thread, func(e event) bool {
		return e.Type == "session_status_changed" && e.Data.ThreadID == thread && e.Data.State == "completed"
	})
}

// awaitQuestionOrEnd waits for the first question of a session, or its end.
func (p *peer) awaitQuestionOrEnd(l launched) event {
	p.t.Helper()
	return p.await("a question or the end", func(e event) bool {
		return e.Data.SessionID == l.SessionID && (e.Type == "new_approval" || e.Type == "session_status_changed" && ended(e.Data.State))
	})
}

// awaitAnswer waits for the decision on a question.
func (p *peer) awaitAnswer(approval string) event {
	p.t.Helper()
	return p.await("the answer", func(e event) bool { return e.Type == "approval_resolved" && e.Data.ApprovalID == approval })
}

// interrupt interrupts a session and waits for its end.
func (p *peer) interrupt(l launched) {
	p.t.Helper()
	p.call("interruptSession", object{"session_id": l.SessionID}, nil)
	end := p.awaitEnd(l.SessionID)
	require.Equal(p.t, "interrupted", end.Data.State, "%s", end.Raw)
}

// awaitQuestion waits for a question of a session.
func (p *peer) awaitQuestion(session string) event {
	p.t.Helper()
	return p.await("a question of session "+session, func(e event) bool {
		return e.Type == "new_approval" && e.Data.SessionID == session
	})
}

// asks starts a session and waits for its question.
func (p *peer) asks(query, agent string) (launched, event) {
	p.t.Helper()
	l := p.launch(query, agent)
	return l, p.awaitQuestion(l.SessionID)
}

// approve approves a question.
func (p *peer) approve(approval string) {
	p.t.Helper()
	p.call("sendDecision", object{"approval_id": approval, "decision": "approve"}, nil)
}

// issues returns the status and the issues of health.
func (p *peer) issues() (status string, issues []string) {
	p.t.Helper()
	var r struct {
		Status string
		Issues []string
	}
	p.call("health", object{}, &r)
	return r.Status, r.Issues
}

// requireIssue requires that the issues of health contain a text.
func (p *peer) requireIssue(text string) {
	p.t.Helper()
	_, issues := p.issues()
	require.Contains(p.t, strings.Join(issues, "\n"), text)
}

// requireDegraded is requireIssue with the status degraded. It returns all issues.
func (p *peer) requireDegraded(text string) []string {
	p.t.Helper()
	status, issues := p.issues()
	require.Equal(p.t, "degraded", status)
	require.Contains(p.t, strings.Join(issues, "\n"), text)
	return issues
}

// requireNoIssue requires the status ok and no issues.
func (p *peer) requireNoIssue() {
	p.t.Helper()
	status, issues := p.issues()
	require.Equal(p.t, "ok", status, "%v", issues)
	require.Empty(p.t, issues)
}

// seen returns the events so far.
func (p *peer) seen() []event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]event(nil), p.events...)
}

func (p *peer) noted() []taskNote {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]taskNote(nil), p.notes...)
}

// tailOf returns the last events as readable text.
func tailOf(events []event) string {
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

// items returns all items of a session's conversation.
func (p *peer) items(session string) []item {
	p.t.Helper()
	var r struct{ Events []item }
	p.call("getConversation", object{"session_id": session}, &r)
	return r.Events
}

// A launched is the result of launchSession and continueSession.
type launched struct {
	SessionID string `json:"session_id"`
	RunID     string `json:"run_id"`
	TaskID    string `json:"task_id"`
	ThreadID  string `json:"thread_id"`
}

// A shownSession is a session in the result of getSessionState or listSessions.
type shownSession struct {
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
	Agent       reportedSession       `json:"agent_session"`
}

// A reportedSession holds the members of an agent's report about its session that the tests check.
type reportedSession struct{ Commands []struct{ Name string } }

func (p *peer) session(id string) shownSession {
	p.t.Helper()
	var r struct{ Session shownSession }
	require.NoError(p.t, p.tryAgain("getSessionState", object{"session_id": id}, &r))
	return r.Session
}

// A daemonStatus is the result of daemon.status.
type daemonStatus struct {
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

func (p *peer) status() (s daemonStatus) {
	p.t.Helper()
	p.call("daemon.status", object{}, &s)
	return s
}

// approval returns the result of getApproval.
func (p *peer) approval(id string) shownApproval {
	p.t.Helper()
	var r struct{ Approval shownApproval }
	p.call("getApproval", object{"approval_id": id}, &r)
	return r.Approval
}

// A shownApproval is an approval in the result of fetchApprovals or getApproval.
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
}
