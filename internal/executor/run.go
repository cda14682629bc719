package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

const (
	// maxEvent bounds what one report carries, so that it fits the link.
	maxEvent = 48 << 20
	// garbageReports is how many lines that are no protocol are shown in a run.
	garbageReports = 5
	garbageShown   = 200 // bytes of each
)

// A run is one prompt on its way through an agent.
type run struct {
	x      *Executor
	params catalog.ExecutePromptParams
	launch *catalog.AgentLaunch
	task   string

	ctx      context.Context // ends when the run is to be stopped
	cancel   context.CancelFunc
	unhook   func() bool
	prompted chan struct{} // closed when the agent has the prompt
	sent     sync.Once
	files    *changes
	given    givenAnswers

	directories []string // that the agent may use beside root and cwd

	// An agent tells what its session has cost; the run's share is what was
	// added to it.
	spent       *atomic.Uint64
	spentBefore float64

	mu       sync.Mutex // guards the fields below, and keeps reports in order
	closed   bool       // the result is out: nothing more is reported
	sequence int64
	messages int
	lastID   string // of the message that is open
	open     bool
	garbage  int
	usage    *catalog.TokenUsage
	tools    map[string]*tool
	spoilt   *failure // why it has not completed, whatever the agent says; the first counts
}

// A failure is why a run failed.
type failure struct{ code, message string }

func newRun(ctx context.Context, x *Executor, p catalog.ExecutePromptParams) *run {
	if p.CWD == "" {
		p.CWD = p.Launch.Root
	}
	if abs, err := filepath.Abs(p.CWD); err == nil { // agents insist on it
		p.CWD = abs
	}
	r := &run{
		x: x, params: p, launch: p.Launch, task: p.TaskID,
		prompted: make(chan struct{}), tools: make(map[string]*tool),
	}
	r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	r.unhook = context.AfterFunc(ctx, r.stop)
	r.files = newChanges(r)
	return r
}

// stop begins to end the run.
func (r *run) stop() { r.cancel() }

func (r *run) stopped() bool { return r.ctx.Err() != nil }

// finish is called when the result is known.
func (r *run) finish() {
	r.unhook()
	r.cancel()
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
}

func (r *run) execute() catalog.ExecutePromptResult {
	hub, err := r.x.daemon.GetExecutionContext(r.ctx, catalog.GetExecutionContextParams{SessionToken: r.params.SessionToken})
	if err != nil {
		return r.result("", &failure{CodeExecutor, "the hub did not tell what the prompt stands on: " + err.Error()})
	}
	r.directories = hub.AdditionalDirectories
	r.files.place.add(r.directories...)
	var stopReason string
	var failed *failure
	switch r.launch.Driver {
	case "acp", "":
		stopReason, failed = r.promptAgent(hub)
	case "command":
		failed = r.runCommand(hub)
	default:
		failed = &failure{CodeExecutor, fmt.Sprintf("%s: there is no driver %q: it is acp or command", r.launch.Name, r.launch.Driver)}
	}
	r.files.settle()
	r.tellGarbage()
	return r.result(stopReason, failed)
}

func (r *run) result(stopReason string, failed *failure) catalog.ExecutePromptResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := catalog.ExecutePromptResult{
		Status: catalog.StatusCompleted, MessageCount: r.messages, TokenUsage: r.usage,
		StopReason: stopReason, Agent: r.launch.Name,
	}
	if failed == nil {
		failed = r.spoilt
	}
	switch {
	case failed != nil && !r.stopped(): // also where the agent took it for a wish to stop
		result.Status = catalog.StatusFailed
		result.Error = &catalog.ExecutionError{Code: failed.code, Message: strings.ToValidUTF8(failed.message, "\uFFFD")}
	case r.stopped(), stopReason == "cancelled":
		result.Status = catalog.StatusCancelled
		result.StopReason = "cancelled"
	}
	return result
}

// environment is the agent's environment. Keys are fetched for it now and are
// kept nowhere else.
func (r *run) environment() (environment, *failure) {
	env := newEnvironment(r.launch.Env)
	for _, name := range slices.Sorted(maps.Keys(r.launch.Keys)) {
		service := r.launch.Keys[name]
		key, err := r.x.daemon.GetAPIKey(r.ctx, catalog.GetAPIKeyParams{SessionToken: r.params.SessionToken, Service: service})
		if err != nil {
			reason := err.Error()
			if wire := (*jsonrpc2.Error)(nil); errors.As(err, &wire) {
				reason = strings.TrimPrefix(wire.Message, "Internal error: ") // which says nothing of this one
			}
			return nil, &failure{CodeNoKey, fmt.Sprintf("%s needs the key of %s (%s): %s", r.launch.Name, service, name, reason)}
		}
		env[name] = key.APIKey
	}
	return env, nil
}

// reportProcess tells the hub what to kill if this process dies.
func (r *run) reportProcess(p *process) {
	r.report(catalog.EventProcess, catalog.Process{PID: p.pid, Mark: p.mark})
}

// report reports one event. It waits for the hub.
func (r *run) report(kind string, payload any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reportLocked(kind, payload)
}

func (r *run) reportLocked(kind string, payload any) {
	if r.closed {
		return
	}
	data, ok := payload.(json.RawMessage)
	if !ok {
		var err error
		if data, err = marshal(payload); err != nil {
			r.x.log.Error("an event could not be encoded", "type", kind, "err", err)
			r.spoilLocked(CodeOutput, fmt.Sprintf("output is missing: an event of type %s could not be encoded", kind))
			return
		}
	}
	if len(data) > maxEvent {
		r.complainLocked(CodeLineTooLong, fmt.Sprintf("an event of type %s and %d bytes was dropped: it is longer than %d bytes", kind, len(data), maxEvent))
		return
	}
	r.sequence++
	err := r.x.daemon.ReportMessage(r.x.ctx, catalog.ReportMessageParams{
		SessionToken: r.params.SessionToken, TaskID: r.task, Sequence: r.sequence,
		Timestamp: time.Now().UnixMilli(), EventType: kind, EventData: data,
	})
	if err != nil {
		r.x.log.Debug("a report was not taken", "type", kind, "err", err)
		r.spoilLocked(CodeOutput, "output is missing: the hub did not take what the agent said: "+err.Error())
	}
}

// spoil notes that the run will not have completed.
func (r *run) spoil(code, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spoilLocked(code, message)
}

func (r *run) spoilLocked(code, message string) {
	if r.spoilt == nil {
		r.spoilt = &failure{code, message}
	}
}

// complain reports an error that does not end the run.
func (r *run) complain(code, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complainLocked(code, message)
}

func (r *run) complainLocked(code, message string) {
	if r.closed {
		return
	}
	err := r.x.daemon.ReportError(r.x.ctx, catalog.ReportErrorParams{
		SessionToken: r.params.SessionToken, TaskID: r.task,
		Error: catalog.ReportedError{Code: code, Message: strings.ToValidUTF8(message, "\uFFFD")},
	})
	if err != nil {
		r.x.log.Debug("an error report was not taken", "code", code, "err", err)
	}
}

// text reports a piece of a message. An empty one is nothing.
func (r *run) text(id, text string) {
	if text == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open || id != r.lastID {
		r.messages++
		r.open, r.lastID = true, id
	}
	r.reportLocked(catalog.EventContentDelta, catalog.ContentDelta{MessageID: id, Delta: catalog.Delta{Text: text}})
}

// closeMessage notes that what comes next is another message.
func (r *run) closeMessage() {
	r.mu.Lock()
	r.open = false
	r.mu.Unlock()
}

// dropGarbage reports a line that is no protocol, unless there were too many.
func (r *run) dropGarbage(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.garbage++
	if r.garbage <= garbageReports {
		shown := strings.ToValidUTF8(string(line[:min(len(line), garbageShown)]), "\uFFFD")
		r.complainLocked(CodeGarbage, "the agent printed a line that is no message of the protocol: "+shown)
	}
}

func (r *run) tellGarbage() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.garbage > garbageReports {
		r.complainLocked(CodeGarbage, fmt.Sprintf("the agent printed %d lines in all that are no messages of the protocol", r.garbage))
	}
}

// marshal is JSON as it goes to the hub: as short as it was.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
