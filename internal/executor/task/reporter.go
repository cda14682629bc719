package task

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

const (
	// maxEvent bounds what one report carries, in bytes, so that it fits the
	// link.
	maxEvent = 48 << 20
	// garbageReports is how many lines that are no protocol are shown of a task.
	garbageReports = 5
	garbageShown   = 200 // bytes of each
)

// A Reporter sends what becomes of a task to the hub, one report after the
// other, and waits for the hub with each. Its methods may be called from any
// goroutine.
type Reporter struct {
	life  context.Context // reports wait as long as it lasts
	hub   Hub
	log   *slog.Logger
	token string
	task  string

	mu       sync.Mutex // guards the fields below, and keeps reports in order
	closed   bool       // the result is out: nothing more is reported
	sequence int64
	messages int
	lastID   string // of the message that is open
	parent   string // of that message
	open     bool
	garbage  int
	usage    *catalog.TokenUsage
	failure  *Failure // why it has not completed, whatever the agent says; the first counts
}

func newReporter(life context.Context, hub Hub, log *slog.Logger, token, task string) *Reporter {
	return &Reporter{life: life, hub: hub, log: log, token: token, task: task}
}

// Event reports one event, whose payload is what the catalog says of its type. It
// returns false if the result is out, after which nothing is reported.
func (r *Reporter) Event(kind string, payload any) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event(kind, payload)
	return !r.closed
}

func (r *Reporter) event(kind string, payload any) {
	if r.closed {
		return
	}
	data, ok := payload.(json.RawMessage)
	if !ok {
		var err error
		if data, err = JSON(payload); err != nil {
			r.log.Error("an event could not be encoded", "type", kind, "err", err)
			r.fail(CodeOutput, fmt.Sprintf("output is missing: an event of type %s could not be encoded", kind))
			return
		}
	}
	if len(data) > maxEvent {
		r.problem(CodeLineTooLong, fmt.Sprintf("an event of type %s and %d bytes was dropped: it is longer than %d bytes", kind, len(data), maxEvent))
		return
	}
	r.sequence++
	err := r.hub.ReportMessage(r.life, catalog.ReportMessageParams{
		SessionToken: r.token, TaskID: r.task, Sequence: r.sequence,
		Timestamp: time.Now().UnixMilli(), EventType: kind, EventData: data,
	})
	if err != nil {
		r.log.Debug("a report was not taken", "type", kind, "err", err)
		r.fail(CodeOutput, "output is missing: the hub did not take what the agent said: "+err.Error())
	}
}

// Fail notes why the task will not have completed, whatever the agent says. The
// first reason counts.
func (r *Reporter) Fail(code, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail(code, message)
}

func (r *Reporter) fail(code, message string) {
	if r.failure == nil {
		r.failure = &Failure{Code: code, Message: message}
	}
}

// Problem reports an error that does not end the task.
func (r *Reporter) Problem(code, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem(code, message)
}

func (r *Reporter) problem(code, message string) {
	if r.closed {
		return
	}
	err := r.hub.ReportError(r.life, catalog.ReportErrorParams{
		SessionToken: r.token, TaskID: r.task,
		Error: catalog.ReportedError{Code: code, Message: strings.ToValidUTF8(message, "\uFFFD")},
	})
	if err != nil {
		r.log.Debug("an error report was not taken", "code", code, "err", err)
	}
}

// Text reports a piece of a message: that of a sub-agent has the tool call of that as
// its parent. An empty piece is nothing.
func (r *Reporter) Text(id, parent, text string) {
	r.Delta(catalog.ContentDelta{MessageID: id, ParentID: parent, Delta: catalog.Delta{Text: text}})
}

// Delta is Text with the agent's own _meta.
func (r *Reporter) Delta(d catalog.ContentDelta) {
	if d.Delta.Text == "" {
		return
	}
	id, parent := d.MessageID, d.ParentID
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open || id != r.lastID || parent != r.parent {
		r.messages++
		r.open, r.lastID, r.parent = true, id, parent
	}
	r.event(catalog.EventContentDelta, d)
}

// Content reports a part of what the agent says, or thinks, that is no text: that of a
// sub-agent has the tool call of that as its parent.
func (r *Reporter) Content(c catalog.MessageContent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !c.Thought {
		r.messages++
	}
	r.open = false
	r.event(catalog.EventContent, c)
}

// EndMessage notes that what comes next is another message.
func (r *Reporter) EndMessage() {
	r.mu.Lock()
	r.open = false
	r.mu.Unlock()
}

// Usage reports what the task cost as a whole, which its result says too.
func (r *Reporter) Usage(usage catalog.TokenUsage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event(catalog.EventUsage, catalog.Usage{TokenUsage: usage})
	r.usage = &usage
}

// Garbage reports a line that is no protocol, unless there were too many.
func (r *Reporter) Garbage(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.garbage++
	if r.garbage <= garbageReports {
		shown := strings.ToValidUTF8(string(line[:min(len(line), garbageShown)]), "\uFFFD")
		r.problem(CodeGarbage, "the agent printed a line that is no message of the protocol: "+shown)
	}
}

// finish reports how much garbage there was, and returns what the result says.
func (r *Reporter) finish() (messages int, usage *catalog.TokenUsage, failure *Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.garbage > garbageReports {
		r.problem(CodeGarbage, fmt.Sprintf("the agent printed %d lines in all that are no messages of the protocol", r.garbage))
	}
	return r.messages, r.usage, r.failure
}

func (r *Reporter) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// JSON is a value as it goes to the hub: as short as it was, with nothing
// escaped that need not be.
func JSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
