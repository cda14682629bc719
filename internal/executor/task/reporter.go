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
	// maxEvent limits the size of a report, in bytes, so that it fits the link.
	maxEvent = 48 << 20
	// garbageReports limits the reported lines per task that are not protocol messages.
	garbageReports = 5
	garbageShown   = 200 // bytes of each
)

// A Reporter sends the events of a task to the hub, one report after the other, and waits for the
// hub each time. Its methods may be called from any goroutine.
type Reporter struct {
	life  context.Context // reports are retried as long as it lasts
	hub   Hub
	log   *slog.Logger
	token string
	task  string

	mu       sync.Mutex // guards the fields below, and keeps reports in order
	closed   bool       // the result was sent: no more reports
	sequence int64
	messages int
	lastID   string // of the open message
	parent   string // of that message
	open     bool
	garbage  int
	usage    *catalog.TokenUsage
	failure  *Failure // why the task failed, whatever the agent reports; the first one counts
}

func newReporter(life context.Context, hub Hub, log *slog.Logger, token, task string) *Reporter {
	return &Reporter{life: life, hub: hub, log: log, token: token, task: task}
}

// Event reports one event with the payload that the catalog defines for its type. It returns
// false, and reports nothing, after the result was sent.
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
		r.problem(CodeLineTooLong,
			fmt.Sprintf("an event of type %s and %d bytes was dropped: it is longer than %d bytes", kind, len(data), maxEvent))
		return
	}
	r.sequence++
	err := r.hub.ReportMessage(r.life, catalog.ReportMessageParams{
		SessionToken: r.token, TaskID: r.task, Sequence: r.sequence,
		Timestamp: time.Now().UnixMilli(), EventType: kind, EventData: data,
	})
	if err != nil {
		r.log.Debug("the hub did not accept a report", "type", kind, "err", err)
		r.fail(CodeOutput, "output is missing: the hub did not accept the agent's output: "+err.Error())
	}
}

// Fail makes the task fail, whatever the agent reports. The first reason counts.
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
		r.log.Debug("the hub did not accept an error report", "code", code, "err", err)
	}
}

// Text reports a piece of a message. parent is the tool call of the sub-agent that wrote it, or
// "". An empty piece is ignored.
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

// Content reports a part of the agent's message or thought that is not text. For a sub-agent, its
// parent is the sub-agent's tool call.
func (r *Reporter) Content(c catalog.MessageContent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !c.Thought {
		r.messages++
	}
	r.open = false
	r.event(catalog.EventContent, c)
}

// EndMessage makes the next text a new message.
func (r *Reporter) EndMessage() {
	r.mu.Lock()
	r.open = false
	r.mu.Unlock()
}

// Usage reports the total cost of the task, which its result contains, too.
func (r *Reporter) Usage(usage catalog.TokenUsage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event(catalog.EventUsage, catalog.Usage{TokenUsage: usage})
	r.usage = &usage
}

// Garbage reports a line that is not a protocol message, unless there were too many.
func (r *Reporter) Garbage(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.garbage++
	if r.garbage <= garbageReports {
		shown := strings.ToValidUTF8(string(line[:min(len(line), garbageShown)]), "\uFFFD")
		r.problem(CodeGarbage, "the agent printed a line that is no message of the protocol: "+shown)
	}
}

// finish reports the number of such lines, and returns the contents of the result.
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

// JSON encodes a value for the hub, without escapes that JSON does not require.
func JSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
