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

// A peer is what all clients have in common, whatever their framing: it asks,
// and keeps what comes. Its methods may be called from any goroutine.
type peer struct {
	t      testing.TB
	write  func(message string) error // frames and sends a message
	closed chan struct{}              // when nothing more can come

	mu      sync.Mutex // guards the fields below
	changed *sync.Cond
	serial  int
	replies map[string]reply // by raw id
	events  []event
	heard   func(event) // gets the events instead
	notes   []taskNote
	note    func(taskNote) // gets the notes instead
	patient time.Duration  // for what is waited for; 0: less than a process lives
	err     error          // why nothing more comes
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

// newPeer makes a peer that sends by a function. The caller has to read.
func newPeer(t testing.TB, write func(string) error) *peer {
	p := &peer{t: t, write: write, closed: make(chan struct{}), replies: make(map[string]reply)}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// read sorts by take what next gives, to the end. take is called with the lock
// held.
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

// takeEvent keeps an event. The lock is held.
func (p *peer) takeEvent(seq int64, kind string, raw json.RawMessage) error {
	e := event{Seq: seq, Type: kind, Raw: raw}
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

// takeNote keeps a broadcast about a task. The lock is held.
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

// requireGoodEnd requires that nothing came that should not have, when nothing
// more comes.
func (p *peer) requireGoodEnd() {
	p.t.Helper()
	<-p.closed
	p.mu.Lock()
	defer p.mu.Unlock()
	if !errors.Is(p.err, io.EOF) && !errors.Is(p.err, io.ErrUnexpectedEOF) && !errors.Is(p.err, os.ErrClosed) {
		require.NoError(p.t, p.err)
	}
}

// errGone is what a request gets whose process has ended.
var errGone = errors.New("the process has gone")

// try sends a request and waits for its reply. The error is errGone, a
// *wireError or says that it took too long.
func (p *peer) try(method string, params, result any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.serial++
	id := strconv.Itoa(p.serial)
	// Inside the lock: no two requests may mix.
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

// tryAgain is try; what was asked of a hub that has just gone is asked again, as the
// error says that it may be.
func (p *peer) tryAgain(method string, params, result any) error {
	err := p.try(method, params, result)
	var lost *wireError
	if errors.As(err, &lost) && lost.kind() == "hub_lost" {
		return p.try(method, params, result)
	}
	return err
}

// reply is the reply to a request that was sent with an id, as it is written.
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

// deadline wakes waiting goroutines when it takes too long; late is guarded by the lock.
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

// refused is the error that a request must get.
func (p *peer) refused(method string, params any) *wireError {
	p.t.Helper()
	err := p.try(method, params, nil)
	var e *wireError
	require.ErrorAs(p.t, err, &e, "%s %v", method, params)
	return e
}

// until waits until something is true of what has come, which is looked at
// with the lock held.
func (p *peer) until(what string, done func() bool) {
	p.t.Helper()
	late, stop := p.deadline()
	defer stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !done() {
		if p.err != nil || *late {
			require.Fail(p.t, "it did not come", "%s: %v; %d events%s\n%d notes %v", what, p.err, len(p.events), tailOf(p.events), len(p.notes), p.notes[max(0, len(p.notes)-12):])
		}
		p.changed.Wait()
	}
}

// await waits for an event that fits, from the beginning on.
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

// count counts the broadcasts of a kind about a task that came so far.
func (p *peer) count(method, task string) int { return countNotes(p.noted(), method, task) }

func countNotes(notes []taskNote, method, task string) (n int) {
	for _, note := range notes {
		if note.Method == method && note.Params.TaskID == task {
			n++
		}
	}
	return n
}

// awaitState waits until a session has come to a state.
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

// seen is what came so far.
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

// tailOf are the last events, to be read by people.
func tailOf(events []event) string {
	var b strings.Builder
	for _, e := range events[max(0, len(events)-12):] {
		fmt.Fprintf(&b, "\n%d %s %.300s", e.Seq, e.Type, e.Raw)
	}
	return b.String()
}

// An item is one of a conversation, as getConversation says it.
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

// items is the whole conversation of a session.
func (p *peer) items(session string) []item {
	p.t.Helper()
	var r struct{ Events []item }
	p.call("getConversation", object{"session_id": session}, &r)
	return r.Events
}

// next continues a session.
func (c *client) next(from launched, query string) (l launched) {
	c.t.Helper()
	c.call("continueSession", object{"session_id": from.SessionID, "query": query}, &l)
	return l
}

// completes waits for the end of a session, which has to be a good one.
func (c *client) completes(l launched) {
	c.t.Helper()
	end := c.awaitEnd(l.SessionID)
	require.Equal(c.t, "completed", end.Data.State, "%s", end.Raw)
}
