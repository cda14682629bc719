// Package executor is the hub's child process that runs agents and terminals. It implements
// catalog.Executor and calls catalog.Daemon; it has no database and keeps no keys.
//
// It gives each prompt to one of two drivers. executor/acp speaks the Agent Client Protocol with
// an agent that lives across the prompts of a session; command.go starts a program for each
// prompt. Reports go through executor/task, in order. Users' terminals are in terminal.go,
// commands of the configuration in command.go. executor/process owns all processes,
// executor/workspace the files that an agent may access.
//
// The Executor owns tasks, acp.Driver its agents, Terminals the terminals, and process.Runner the
// processes with their goroutines. Close ends them in that order and returns when nothing is left.
//
// An agent's fault (garbage, long lines, silence, a crash) ends its own prompt at most. The
// executor does not read an agent while its reports wait for the hub, so no report is dropped.
package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/acp"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/server"
)

// stopKept is how long a stop waits for a task that has not arrived yet. It is far longer than a
// hub waits before it kills the executor.
const stopKept = time.Minute

// A driver runs a task to its end, with the agent protocol that it implements.
type driver interface {
	Run(*task.Task) (stopReason string, failed *task.Failure)
}

// An Executor implements catalog.Executor. Its methods may be called from any goroutine. The
// caller must close it.
//
// It owns the tasks. The drivers own the agents, [Terminals] the terminals, commands the commands
// of the configuration, and a process.Runner the processes of all.
// processes of all to a process.Runner.
type Executor struct {
	daemon catalog.Daemon
	opts   Options
	log    *slog.Logger

	processes *process.Runner
	terminals *Terminals
	commands  *commands
	agents    *acp.Driver
	drivers   map[string]driver // by the driver name in a launch

	ctx    context.Context // ends with Close: reports are abandoned
	cancel context.CancelFunc

	mu      sync.Mutex // guards the fields below
	closing bool       // no new prompts or terminals
	tasks   map[string]*task.Task
	stopped map[string]time.Time // when a stop arrived, for tasks that have not
	idle    chan struct{}        // closed when tasks is empty; nil if no goroutine waits
	work    sync.WaitGroup
}

var _ catalog.Executor = (*Executor)(nil)

// New makes an Executor that calls daemon.
func New(daemon catalog.Daemon, opts Options) *Executor {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	x := &Executor{daemon: daemon, opts: opts, log: opts.Logger, tasks: make(map[string]*task.Task), stopped: make(map[string]time.Time)}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	x.processes = process.NewRunner(x.ctx, x.log,
		process.Grace{Interrupt: opts.Grace.Interrupt, Terminate: opts.Grace.Terminate, HangUp: opts.Grace.HangUp})
	x.terminals = NewTerminals(x.ctx, x.processes, daemon)
	x.commands = newCommands(x.ctx, x.processes, opts.Subreaper, daemon)
	x.agents = acp.New(x.ctx, daemon, x.processes, x.log, acp.Options{
		EditorFiles:  opts.EditorFiles,
		StartTimeout: opts.StartTimeout, CancelGrace: opts.Grace.Cancel, SilentAfter: opts.SilentAfter, SilentToolAfter: opts.SilentToolAfter,
	})
	x.drivers = map[string]driver{"acp": x.agents, "command": newCommandDriver(x.processes)}
	return x
}

// ExecutePrompt implements catalog.Executor. The end of ctx is the same as StopTask. TimeoutMS is
// ignored: the hub enforces it.
func (x *Executor) ExecutePrompt(ctx context.Context, p catalog.ExecutePromptParams) (catalog.ExecutePromptResult, error) {
	if p.Launch == nil || len(p.Launch.Command) == 0 || p.Launch.Command[0] == "" {
		return catalog.ExecutePromptResult{}, server.InvalidParam(server.ParamError{
			Param: "launch", Expected: "how the agent is started, with its command", Received: "none",
		})
	}
	t := task.New(ctx, x.ctx, x.daemon, x.log, p)
	if err := x.begin(t); err != nil {
		t.Close()
		return catalog.ExecutePromptResult{}, err
	}
	defer x.end(t)
	result := t.Result(x.run(t))
	// Before the answer, which is lost if the link breaks now.
	if err := x.daemon.ReportCompletion(ctx, catalog.ReportCompletionParams{
		SessionToken: p.SessionToken, TaskID: p.TaskID, Status: result.Status, TokenUsage: result.TokenUsage, Error: result.Error,
	}); err != nil {
		x.log.Debug("the end of a task could not be reported", "task", p.TaskID, "err", err)
	}
	return result, nil
}

// run passes a task to its driver.
func (x *Executor) run(t *task.Task) (stopReason string, failed *task.Failure) {
	ctx := t.Context()
	if t.Params.Unprompted { // its agent already works, even if the task is to be stopped
		ctx = x.ctx
	}
	if t.Params.Context == nil {
		known, err := x.daemon.GetExecutionContext(ctx, catalog.GetExecutionContextParams{SessionToken: t.Params.SessionToken, Unanswered: true})
		if err != nil {
			return "", task.ContextFailure(err)
		}
		t.Params.Context = &known
	}
	t.Prepare(*t.Params.Context)
	d := x.drivers[cmp.Or(t.Launch.Driver, "acp")]
	if d == nil {
		return "", &task.Failure{Code: task.CodeExecutor, Message: fmt.Sprintf("%s: there is no driver %q: it is acp or command", t.Launch.Name,
			t.Launch.Driver)}
	}
	return d.Run(t)
}

// begin registers a task, whose id must be unique.
func (x *Executor) begin(t *task.Task) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closing {
		return errClosing()
	}
	if _, there := x.tasks[t.ID]; there {
		return server.InvalidParam(server.ParamError{
			Param: "task_id", Expected: "an id that is not in use", Received: "the id of a running task",
		})
	}
	if _, stopped := x.stopped[t.ID]; stopped {
		delete(x.stopped, t.ID)
		t.Stop()
	}
	x.tasks[t.ID] = t
	x.work.Add(1)
	return nil
}

func (x *Executor) end(t *task.Task) {
	t.Close()
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.tasks, t.ID)
	if len(x.tasks) == 0 && x.idle != nil {
		close(x.idle)
		x.idle = nil
	}
	x.work.Done()
}

func errClosing() error {
	return server.NewError(jsonrpc2.CodeInternalError, "Internal error: the executor is shutting down", struct {
		Kind string `json:"kind"`
	}{"shutting_down"})
}

// StopTask implements catalog.Executor. It may arrive before its task, which is sent at the same
// time. The stop is then stored, and the task ends when it begins. It may also arrive just after
// its task has ended; then it stops the work that the agent continues by itself. Since an ended
// task looks the same as one that has not arrived, StopTask accepts every task id.
func (x *Executor) StopTask(_ context.Context, p catalog.StopTaskParams) (catalog.StopTaskResult, error) {
	if p.TaskID == "" {
		return catalog.StopTaskResult{Message: "no task is named"}, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.tasks[p.TaskID]; t != nil {
		t.Stop() // does not block
	} else if !x.closing {
		maps.DeleteFunc(x.stopped, func(_ string, at time.Time) bool { return time.Since(at) > stopKept })
		x.stopped[p.TaskID] = time.Now()
		x.agents.StopEnded(p.TaskID)
	}
	return catalog.StopTaskResult{Stopped: true}, nil
}

func (x *Executor) PauseNotifications(context.Context) error {
	x.processes.Flow.Pause()
	return nil
}

func (x *Executor) ResumeNotifications(context.Context) error {
	x.processes.Flow.Resume()
	return nil
}

func (x *Executor) SetSession(ctx context.Context, p catalog.SetSessionParams) (catalog.SetSessionResult, error) {
	return x.agents.SetSession(ctx, p), nil
}

func (x *Executor) Steer(ctx context.Context, p catalog.SteerParams) (catalog.SteerResult, error) {
	return x.agents.Steer(ctx, p), nil
}

func (x *Executor) YieldTurn(_ context.Context, p catalog.YieldTurnParams) (catalog.YieldTurnResult, error) {
	return x.agents.YieldTurn(p), nil
}

func (x *Executor) ReleaseSession(_ context.Context, p catalog.ReleaseSessionParams) (catalog.ReleaseSessionResult, error) {
	return x.agents.ReleaseSession(p), nil
}

func (x *Executor) SpawnTerminal(_ context.Context, p catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
	x.mu.Lock()
	closing := x.closing
	x.mu.Unlock()
	if closing {
		return catalog.SpawnTerminalResult{}, errClosing()
	}
	result, err := x.terminals.Spawn(p)
	if errors.Is(err, ErrClosed) { // closed since the check
		err = errClosing()
	}
	return result, err
}

// TerminalWrite implements catalog.Executor. It does not wait for the program to read.
func (x *Executor) TerminalWrite(_ context.Context, p catalog.TerminalWriteParams) error {
	return x.terminals.Write(p)
}

func (x *Executor) TerminalResize(_ context.Context, p catalog.TerminalResizeParams) error {
	return x.terminals.Resize(p)
}

// TerminalClose implements catalog.Executor. It does not wait for the end, which terminal_exit
// reports.
func (x *Executor) TerminalClose(_ context.Context, p catalog.TerminalCloseParams) (catalog.TerminalCloseResult, error) {
	return x.terminals.Hangup(p)
}

func (x *Executor) TerminalDescriptor(ctx context.Context, p catalog.TerminalDescriptorParams) (*os.File, error) {
	return x.terminals.Descriptor(ctx, p)
}

func (x *Executor) TerminalReturn(_ context.Context, p catalog.TerminalReturnParams) error {
	return x.terminals.Return(p)
}

func (x *Executor) RunCommand(ctx context.Context, p catalog.RunCommandParams) (catalog.RunCommandResult, error) {
	result, err := x.commands.Run(ctx, p)
	if errors.Is(err, errCommandsClosed) {
		err = errClosing()
	}
	return result, err
}

func (x *Executor) StopCommand(_ context.Context, p catalog.StopCommandParams) (catalog.StopCommandResult, error) {
	return catalog.StopCommandResult{Stopped: x.commands.Stop(p.CommandID)}, nil
}

// Shutdown implements catalog.Executor. Its status is idle if nothing ran, completed if
// everything ended by itself, interrupted otherwise.
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

// refuse makes the executor refuse new work. It returns a channel that is closed when nothing
// runs; nil if nothing runs now.
func (x *Executor) refuse() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closing = true
	if len(x.tasks) == 0 {
		return nil
	}
	if x.idle == nil {
		x.idle = make(chan struct{})
	}
	return x.idle
}

// Close ends every task, agent, terminal and command: gently while ctx lasts, and with SIGKILL
// after that. It returns when all processes and goroutines have ended. It may be called more than
// once.
func (x *Executor) Close(ctx context.Context) {
	idle := x.refuse()
	// Resume reports, because a task ends only after its last reports.
	x.processes.Flow.Resume()
	x.stopTasks()
	killed := make(chan struct{})
	spare := context.AfterFunc(ctx, func() {
		defer close(killed)
		x.kill()
	})
	defer func() {
		if !spare() {
			<-killed
		}
	}()
	if idle != nil {
		<-idle
	}
	x.terminals.Close()
	x.commands.Close()
	x.agents.Close()
	x.terminals.Wait()
	x.commands.Wait()
	x.work.Wait()
	x.cancel()
	x.processes.Close()
}

// kill ends everything at once. It abandons calls that wait for the hub.
func (x *Executor) kill() {
	x.refuse()
	x.cancel()
	x.processes.Flow.Resume()
	x.stopTasks()
	x.processes.Kill()
}

func (x *Executor) stopTasks() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.tasks {
		t.Stop() // does not block
	}
}

// Options configure an Executor. The zero value means the defaults.
type Options struct {
	// Logger receives log messages. Default: no logging. Keys are never logged, and agents'
	// output only at debug level.
	Logger *slog.Logger
	// Grace sets the time limits of ending an agent.
	Grace Grace
	// StartTimeout is how long an agent may take to answer initialize. Opening
	// a session may take four times as long. Default 30 s.
	StartTimeout time.Duration
	// SilentAfter is how long an agent may show no activity before the executor reports silence.
	// SilentToolAfter is the same limit during a tool call. Default 5 s and 30 s.
	SilentAfter, SilentToolAfter time.Duration
	// Subreaper is a command that calls [process.RunSubreaper] with the arguments after its own.
	// It runs each command of the configuration and ends all of its descendants. Linux only.
	// Default: none, so that a process which leaves its group and drops its mark outlives its
	// command.
	Subreaper []string
	// Exit, if set, is called when Shutdown is done, before its reply is sent.
	Exit func()
	// EditorFiles, if set, provides unsaved files that agents read.
	EditorFiles catalog.EditorFiles
}

// Grace sets how long each step of ending an agent may take before the next, harsher one:
// session/cancel, SIGINT, SIGTERM, and last SIGKILL to the process group.
type Grace struct {
	Cancel    time.Duration // after session/cancel; default 3 s
	Interrupt time.Duration // after SIGINT; default 2 s
	Terminate time.Duration // after SIGTERM; default 2 s
	HangUp    time.Duration // after SIGHUP, of a terminal's program; default 1 s
}
