// Package usercommand runs a command that a user has written down in a configuration, to
// its end, in an executor: so it has a process group of its own and a mark in its
// environment, and ends with whoever asked for it, with the executor and with the hub.
//
// A [Runner] knows nothing of what a command is for. It notes the mark of each before that
// is started, so that the next hub finds what was left behind should this one and its
// executor die in the same moment.
package usercommand

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// endsWithin is how long an executor may take to end a command; its own graces (SIGINT, 2 s,
// SIGTERM, 2 s, SIGKILL) are shorter. One that takes longer is stuck, and is ended itself.
const endsWithin = 15 * time.Second

// An Executor runs commands; see [catalog.Executor].
type Executor interface {
	RunCommand(context.Context, catalog.RunCommandParams) (catalog.RunCommandResult, error)
	StopCommand(context.Context, catalog.StopCommandParams) (catalog.StopCommandResult, error)
	// Release gives it back; it may be ended when nobody uses it.
	Release()
	// Kill ends it at once, with all that it runs.
	Kill()
}

// Options are what a Runner needs. All but Logger are required.
type Options struct {
	// Acquire gets an executor for a command.
	Acquire func(context.Context) (Executor, error)
	// Write keeps a change.
	Write  func(context.Context, func(store.Tx) error) error
	Logger *slog.Logger
}

// A Runner runs commands. Its methods may be called from any goroutine.
type Runner struct {
	opts Options
	ctx  context.Context // ends with the runner

	mu      sync.Mutex // guards the field below
	running map[string]*running
}

// New makes a Runner whose commands end when ctx does.
func New(ctx context.Context, opts Options) *Runner {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Runner{opts: opts, ctx: ctx, running: make(map[string]*running)}
}

// A Command is what to run. Exactly one of Argv and Shell is set.
type Command struct {
	Argv      []string // a program and its arguments
	Shell     string   // a line for `sh -c`
	Directory string   // in which it runs; absolute
	Env       map[string]string
	// Timeout ends the command when it has run so long; 0: never.
	Timeout time.Duration
	// Output, if set, gets what the command prints (standard output and standard error
	// together) as it comes, from one goroutine at a time. The command is held up while it
	// does not return, which it has to do when ctx ends.
	Output func(ctx context.Context, piece []byte)
	// Keep is how much of the output the result has, in bytes: half of it from the beginning,
	// half from the end. Default 128 KiB.
	Keep int
}

// argv is the program and its arguments.
func (c Command) argv() []string {
	if c.Shell != "" {
		return []string{"sh", "-c", c.Shell}
	}
	return c.Argv
}

// A Result is how a command ended.
type Result struct {
	ExitCode int    // 128 and the signal's number, if one ended it; -1 if that is not known
	Signal   string // such as SIGTERM
	Duration time.Duration
	TimedOut bool // it was ended because it took longer than Timeout
	Output   Excerpt
}

// Succeeded reports whether the command came to its end with status 0.
func (r Result) Succeeded() bool { return r.ExitCode == 0 && r.Signal == "" && !r.TimedOut }

// A StartError says that a command could not be started.
type StartError struct {
	Program string
	Reason  string
}

func (e *StartError) Error() string {
	return fmt.Sprintf("%s could not be started: %s", e.Program, e.Reason)
}

// Run runs a command to its end. It returns when nothing of the command's process group is
// left, also when ctx ends before that: then the group is ended (SIGINT, SIGTERM, SIGKILL,
// 2 seconds between them), and the error is that of ctx, with a result that has what there
// is. Programs that a command leaves in the background end with it.
//
// A command that fails is a result. The error is a *StartError, that of ctx, a
// *domain.Error where no executor can be had or it has died, or that of the store.
func (r *Runner) Run(ctx context.Context, c Command) (Result, error) {
	if len(c.argv()) == 0 || c.argv()[0] == "" {
		return Result{ExitCode: -1}, &StartError{Program: "the command", Reason: "it is empty"}
	}
	executor, err := r.opts.Acquire(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return Result{ExitCode: -1}, ctx.Err()
		}
		return Result{ExitCode: -1}, &domain.Error{Kind: domain.KindExecutor, Message: "no executor could be started: " + err.Error(), Err: err}
	}
	defer executor.Release()
	return r.runIn(ctx, executor, c)
}

// runIn is Run in an executor.
func (r *Runner) runIn(caller context.Context, executor Executor, c Command) (Result, error) {
	ctx, cancel := context.WithCancel(caller) // ends when the command is to end
	defer cancel()
	if c.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	run := newRunning(ctx, c)
	if err := r.note(ctx, run.mark, 0); err != nil {
		return Result{ExitCode: -1}, err
	}
	r.add(run)
	var beside sync.WaitGroup
	beside.Go(func() { r.noteProcess(run) })
	beside.Go(func() { r.stopWhen(ctx, executor, run) })
	begin := time.Now()
	ended, err := executor.RunCommand(r.ctx, catalog.RunCommandParams{CommandID: run.id, Command: c.argv(), CWD: c.Directory, Env: c.Env, Mark: run.mark})
	result := Result{ExitCode: -1, Duration: time.Since(begin)}
	result.TimedOut = caller.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
	close(run.answered)
	cancel() // whoever takes output is not waited for
	r.remove(run)
	beside.Wait()
	result.Output = run.finish()
	if err != nil {
		return result, r.lost(caller, err)
	}
	if err := r.forget(run.mark); err != nil {
		r.opts.Logger.Debug("the end of a command was not noted", "err", err)
	}
	if ended.StartError != "" {
		return result, &StartError{Program: c.argv()[0], Reason: ended.StartError}
	}
	result.ExitCode, result.Signal = ended.ExitCode, ended.Signal
	return result, caller.Err()
}

// lost is the error of a command whose executor did not answer.
func (r *Runner) lost(caller context.Context, err error) error {
	switch {
	case caller.Err() != nil:
		return caller.Err()
	case r.ctx.Err() != nil:
		return domain.ErrEnding
	}
	return &domain.Error{Kind: domain.KindExecutor, Message: "the executor ended while the command ran: start it again", Err: err}
}

// stopWhen ends a command when ctx ends, until it was answered.
func (r *Runner) stopWhen(ctx context.Context, executor Executor, run *running) {
	select {
	case <-ctx.Done():
	case <-run.answered:
		return
	}
	stuck := time.NewTimer(endsWithin)
	defer stuck.Stop()
	select {
	case <-run.started: // before that the executor does not know it
		call, cancel := context.WithTimeout(r.ctx, endsWithin)
		defer cancel()
		if _, err := executor.StopCommand(call, catalog.StopCommandParams{CommandID: run.id}); err != nil {
			r.opts.Logger.Debug("an executor did not take the end of a command", "err", err)
		}
	case <-run.answered:
		return
	case <-stuck.C:
	}
	select {
	case <-run.answered:
	case <-stuck.C:
		r.opts.Logger.Warn("an executor did not end a command, so it is ended itself")
		executor.Kill()
	}
}

// CommandStarted takes that a command runs; with CommandOutput it is what [catalog.Daemon]
// has of commands.
func (r *Runner) CommandStarted(_ context.Context, p catalog.CommandStartedParams) error {
	run, err := r.command(p.CommandID)
	if err == nil {
		run.hasStarted(p.PID)
	}
	return err
}

// CommandOutput takes what a command printed, and returns when that was passed on.
func (r *Runner) CommandOutput(_ context.Context, p catalog.CommandOutputParams) error {
	run, err := r.command(p.CommandID)
	if err != nil {
		return err
	}
	data, err := catalog.DecodeBytes(p.Data, p.Encoding)
	if err == nil {
		run.print(data)
	}
	return err
}

func (r *Runner) command(id string) (*running, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run := r.running[id]; run != nil {
		return run, nil
	}
	return nil, domain.Errorf(domain.KindInvalid, "no command has the id %q", id)
}

func (r *Runner) add(run *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running[run.id] = run
}

func (r *Runner) remove(run *running) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, run.id)
}

// noteProcess writes down which process leads the group of a command, for systems on which
// its mark alone does not find it.
func (r *Runner) noteProcess(run *running) {
	select {
	case <-run.started:
	case <-run.answered:
		return
	}
	if err := r.note(r.ctx, run.mark, run.pid); err != nil {
		r.opts.Logger.Debug("the process of a command was not noted", "err", err)
	}
}

// note writes down the mark of a command: whoever opens the database next ends what has it.
func (r *Runner) note(ctx context.Context, mark string, pid int) error {
	return r.opts.Write(ctx, func(t store.Tx) error { return t.PutProcess(domain.Process{PID: pid, Mark: mark}) })
}

// forget notes that nothing has a mark any more.
func (r *Runner) forget(mark string) error {
	return r.opts.Write(r.ctx, func(t store.Tx) error { return t.DropProcess(mark) })
}
