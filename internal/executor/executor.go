package executor

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/server"
	"github.com/sourcegraph/jsonrpc2"
)

// Error codes of results and reports that are the executor's own.
const (
	CodeExecutor     = "EXECUTOR_ERROR"      // the hub did not give what the prompt needs, or the parameters are wrong
	CodeNoKey        = "NO_API_KEY"          // a key that the agent needs could not be had
	CodeNotFound     = "AGENT_NOT_FOUND"     // the agent's program is not there
	CodeStart        = "AGENT_START_FAILED"  // the program is there and could not be started
	CodeTimeout      = "AGENT_TIMEOUT"       // the agent does not answer
	CodeExited       = "AGENT_EXITED"        // the agent ended in mid-run
	CodeAgent        = "AGENT_ERROR"         // the agent answered with an error
	CodeAuthRequired = "AGENT_AUTH_REQUIRED" // somebody has to log in
	CodePermission   = "PERMISSION_FAILED"   // the hub could not be asked for leave
	CodeOutput       = "OUTPUT_MISSING"      // the hub did not take what the agent said
	CodeLineTooLong  = "AGENT_LINE_TOO_LONG" // report_error: a line was dropped
	CodeGarbage      = "AGENT_GARBAGE"       // report_error: lines that were no protocol
)

// An Executor implements catalog.Executor. Its methods may be called from any
// goroutine. It has to be closed.
type Executor struct {
	daemon  catalog.Daemon
	opts    Options
	log     *slog.Logger
	spawner *spawner
	gate    gate

	ctx    context.Context // ends with Close: reports are given up
	cancel context.CancelFunc

	mu        sync.Mutex // guards the fields below
	closing   bool       // no new prompts or terminals
	runs      map[string]*run
	seats     map[string]*seat // by session
	children  map[*process]struct{}
	terminals map[string]*terminal
	idle      chan struct{} // closed when runs is empty; nil if nobody waits
	work      sync.WaitGroup
}

var _ catalog.Executor = (*Executor)(nil)

// New makes an Executor that asks and tells daemon.
func New(daemon catalog.Daemon, opts Options) *Executor {
	opts = opts.withDefaults()
	x := &Executor{
		daemon: daemon, opts: opts, log: opts.Logger,
		spawner:   newSpawner(),
		runs:      make(map[string]*run),
		seats:     make(map[string]*seat),
		children:  make(map[*process]struct{}),
		terminals: make(map[string]*terminal),
	}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

// ExecutePrompt implements catalog.Executor. The end of ctx is the same as
// StopTask. TimeoutMS is not looked at: the hub keeps the clock.
func (x *Executor) ExecutePrompt(ctx context.Context, p catalog.ExecutePromptParams) (catalog.ExecutePromptResult, error) {
	if p.Launch == nil || len(p.Launch.Command) == 0 || p.Launch.Command[0] == "" {
		return catalog.ExecutePromptResult{}, server.InvalidParam(server.ParamError{
			Param: "launch", Expected: "how the agent is started, with its command", Received: "none",
		})
	}
	r := newRun(ctx, x, p)
	if err := x.begin(r); err != nil {
		return catalog.ExecutePromptResult{}, err
	}
	defer x.end(r)
	result := r.execute()
	// Before the answer, which is lost if the link breaks now (seed 002, stop_task).
	if err := x.daemon.ReportCompletion(ctx, catalog.ReportCompletionParams{
		SessionToken: p.SessionToken, TaskID: p.TaskID, Status: result.Status, TokenUsage: result.TokenUsage, Error: result.Error,
	}); err != nil {
		x.log.Debug("the end of a task could not be reported", "task", p.TaskID, "err", err)
	}
	return result, nil
}

// begin notes a run, which must be the only one of its name.
func (x *Executor) begin(r *run) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closing {
		return errClosing()
	}
	if _, there := x.runs[r.task]; there {
		return server.InvalidParam(server.ParamError{
			Param: "task_id", Expected: "an id that is not in use", Received: "the id of a running task",
		})
	}
	x.runs[r.task] = r
	x.work.Add(1)
	return nil
}

func (x *Executor) end(r *run) {
	r.finish()
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.runs, r.task)
	if len(x.runs) == 0 && x.idle != nil {
		close(x.idle)
		x.idle = nil
	}
	x.work.Done()
}

func errClosing() error {
	return internalError("the executor is shutting down", kindData{Kind: "shutting_down"})
}

func internalError(message string, data kindData) error {
	return server.NewError(jsonrpc2.CodeInternalError, "Internal error: "+message, data)
}

// withoutPath is an error of the system without the file's name: no path goes
// out.
func withoutPath(err error) error {
	if about := (*fs.PathError)(nil); errors.As(err, &about) {
		return about.Err
	}
	return err
}

type kindData struct {
	Kind string `json:"kind"`
	Code string `json:"code,omitempty"`
}

// StopTask implements catalog.Executor.
func (x *Executor) StopTask(_ context.Context, p catalog.StopTaskParams) (catalog.StopTaskResult, error) {
	x.mu.Lock()
	r := x.runs[p.TaskID]
	x.mu.Unlock()
	if r == nil {
		return catalog.StopTaskResult{Message: "no such task is running"}, nil
	}
	r.stop()
	return catalog.StopTaskResult{Stopped: true}, nil
}

// PauseNotifications implements catalog.Executor.
func (x *Executor) PauseNotifications(context.Context) error {
	x.gate.shut()
	return nil
}

// ResumeNotifications implements catalog.Executor.
func (x *Executor) ResumeNotifications(context.Context) error {
	x.gate.open()
	return nil
}

// Shutdown implements catalog.Executor. Its status is idle if nothing ran,
// completed if what ran came to its end, interrupted if it was cut short.
func (x *Executor) Shutdown(ctx context.Context, p catalog.ShutdownParams) (catalog.ShutdownResult, error) {
	x.log.Info("shutting down", "reason", p.Reason)
	status := "idle"
	if idle := x.refuse(); idle != nil {
		status = "completed"
		timeout := time.NewTimer(time.Duration(max(p.TimeoutMS, 0)) * time.Millisecond)
		defer timeout.Stop()
		select {
		case <-idle:
		case <-timeout.C:
			status = "interrupted"
		case <-ctx.Done():
			status = "interrupted"
		}
	}
	x.Close(ctx)
	if x.opts.Exit != nil {
		x.opts.Exit()
	}
	return catalog.ShutdownResult{Status: status}, nil
}

// refuse makes the executor take nothing new, and returns a channel that is
// closed when nothing runs any more; nil if nothing runs now.
func (x *Executor) refuse() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closing = true
	if len(x.runs) == 0 {
		return nil
	}
	if x.idle == nil {
		x.idle = make(chan struct{})
	}
	return x.idle
}

// Close ends every run, agent and terminal, gently while ctx lasts and with
// SIGKILL when it has ended, and returns when none is left. It may be called
// more than once.
func (x *Executor) Close(ctx context.Context) {
	idle := x.refuse()
	// Reports are let through: a run ends only when its last ones are out.
	x.gate.open()
	for _, r := range snapshot(x, x.runs) {
		r.stop()
	}
	kill := context.AfterFunc(ctx, x.kill)
	defer kill()
	if idle != nil {
		<-idle
	}
	for _, t := range snapshot(x, x.terminals) {
		t.close()
	}
	var ending sync.WaitGroup
	for _, s := range snapshot(x, x.seats) {
		ending.Go(s.clear)
	}
	ending.Wait()
	x.work.Wait()
	x.cancel()
	x.spawner.close()
}

// kill ends everything at once. What waits for the hub is given up.
func (x *Executor) kill() {
	x.refuse()
	x.cancel()
	x.gate.open()
	for _, r := range snapshot(x, x.runs) {
		r.stop()
	}
	x.mu.Lock()
	children := make([]*process, 0, len(x.children))
	for p := range x.children {
		children = append(children, p)
	}
	x.mu.Unlock()
	for _, p := range children {
		p.kill()
	}
}

func snapshot[V any](x *Executor, m map[string]V) []V {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := make([]V, 0, len(m))
	for _, v := range m {
		all = append(all, v)
	}
	return all
}
