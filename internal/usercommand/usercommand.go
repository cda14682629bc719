// Package usercommand runs a configured command to its end in an executor. The command has its own
// process group and a mark in its environment. It ends with its caller, with the executor and with
// the hub.
//
// A [Runner] knows nothing of the command's purpose. It stores the mark before the start, so that
// the next hub can end the command if this one and its executor crash together.
package usercommand

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// endsWithin limits how long an executor may take to end a command. Its own steps (SIGINT, 2 s,
// SIGTERM, 2 s, SIGKILL) are shorter. An executor that exceeds it is stuck and is killed.
const endsWithin = 15 * time.Second

// An Executor runs commands; see [catalog.Executor].
type Executor interface {
	RunCommand(context.Context, catalog.RunCommandParams) (catalog.RunCommandResult, error)
	StopCommand(context.Context, catalog.StopCommandParams) (catalog.StopCommandResult, error)
	// Release returns it; an unused executor may be ended.
	Release()
	// Kill ends it at once, with everything that it runs.
	Kill()
}

// Options configure a Runner. All but Logger are required.
type Options struct {
	// Acquire returns an executor for a command.
	Acquire func(context.Context) (Executor, error)
	// Write runs a transaction.
	Write  func(context.Context, func(store.Tx) error) error
	Logger *slog.Logger
}

// A Runner runs commands. Its methods may be called from any goroutine.
type Runner struct {
	opts Options
	ctx  context.Context // ends with the runner

	mu      sync.Mutex // guards running
	running map[string]*running
}

// New returns a Runner whose commands end with ctx.
func New(ctx context.Context, opts Options) *Runner {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Runner{opts: opts, ctx: ctx, running: make(map[string]*running)}
}

// Command describes a command. Exactly one of Argv and Shell is set.
type Command struct {
	Argv      []string // program and arguments
	Shell     string   // line for `sh -c`
	Directory string   // working directory; absolute
	Env       map[string]string
	Sandbox   *catalog.Sandbox // confines it; nil: it runs without a sandbox
	// Timeout limits the run time; 0: unlimited.
	Timeout time.Duration
	// Output, if set, gets the output as it arrives (standard output and standard error together),
	// from one goroutine at a time. It blocks the command until it returns, and must return when
	// ctx ends.
	Output func(ctx context.Context, piece []byte)
	// Keep limits the output in the result, in bytes: half from the beginning, half from the end.
	// Default 128 KiB.
	Keep int
}

// argv returns the program and its arguments.
func (c Command) argv() []string {
	if c.Shell != "" {
		return []string{"sh", "-c", c.Shell}
	}
	return c.Argv
}

// Result is the outcome of a command.
type Result struct {
	ExitCode int    // 128 plus the signal's number after a signal; -1 if unknown
	Signal   string // such as SIGTERM
	Duration time.Duration
	TimedOut bool // ended by Timeout
	Output   Excerpt
}

// Failure says why a command did not succeed, or returns "". An error that is no [StartError] is
// returned unchanged.
func (c Command) Failure(r Result, err error) (reason string, _ error) {
	var start *StartError
	switch {
	case errors.As(err, &start):
		return start.Error(), nil
	case err != nil:
		return "", err
	case r.TimedOut:
		return fmt.Sprintf("it took longer than %s", c.Timeout), nil
	case r.Signal != "":
		return "ended by " + r.Signal, nil
	case r.ExitCode != 0:
		return fmt.Sprintf("exit status %d", r.ExitCode), nil
	}
	return "", nil
}

// StartError means that a command could not be started.
type StartError struct {
	Program string
	Reason  string
}

func (e *StartError) Error() string {
	return fmt.Sprintf("%s could not be started: %s", e.Program, e.Reason)
}

// Run runs a command to its end. It returns when the command's process group is gone, including
// programs left in the background. If ctx ends first, the group is ended (SIGINT, SIGTERM, SIGKILL,
// 2 seconds between them); the error is then that of ctx, with a partial result.
//
// A failed command is a result. The error is a *StartError, that of ctx, a *domain.Error if no
// executor is available or it has died, or that of the store.
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

// runIn is Run in a given executor.
func (r *Runner) runIn(caller context.Context, executor Executor, c Command) (Result, error) {
	ctx, cancel := context.WithCancel(caller) // cancelled to end the command
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
	ended, err := executor.RunCommand(r.ctx,
		catalog.RunCommandParams{CommandID: run.id, Command: c.argv(), CWD: c.Directory, Env: c.Env, Mark: run.mark, Sandbox: c.Sandbox})
	result := Result{ExitCode: -1, Duration: time.Since(begin)}
	result.TimedOut = caller.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
	close(run.answered)
	cancel() // do not wait for Output
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

// lost returns the error of a command whose executor did not answer.
func (r *Runner) lost(caller context.Context, err error) error {
	switch {
	case caller.Err() != nil:
		return caller.Err()
	case r.ctx.Err() != nil:
		return domain.ErrEnding
	}
	return &domain.Error{Kind: domain.KindExecutor, Message: "the executor ended while the command ran: start it again", Err: err}
}

// stopWhen ends a command when ctx ends, unless it has been answered.
func (r *Runner) stopWhen(ctx context.Context, executor Executor, run *running) {
	select {
	case <-ctx.Done():
	case <-run.answered:
		return
	}
	stuck := time.NewTimer(endsWithin)
	defer stuck.Stop()
	select {
	case <-run.started: // earlier the executor does not know it
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

// CommandStarted handles the start of a command. With CommandOutput it implements the command part
// of [catalog.Daemon].
func (r *Runner) CommandStarted(_ context.Context, p catalog.CommandStartedParams) error {
	run, err := r.command(p.CommandID)
	if err == nil {
		run.hasStarted(p.PID)
	}
	return err
}

// CommandOutput handles output of a command, and returns after passing it on.
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

// noteProcess stores the leader of a command's process group, for systems on which the mark alone
// does not find it.
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

// note stores the mark of a command, so that the next hub can end its processes.
func (r *Runner) note(ctx context.Context, mark string, pid int) error {
	return r.opts.Write(ctx, func(t store.Tx) error { return t.PutProcess(domain.Process{PID: pid, Mark: mark}) })
}

// forget deletes an unused mark.
func (r *Runner) forget(mark string) error {
	return r.opts.Write(r.ctx, func(t store.Tx) error { return t.DropProcess(mark) })
}

// running is a command in an executor.
type running struct {
	id, mark string
	ctx      context.Context // cancelled to end the command
	output   func(context.Context, []byte)
	answered chan struct{} // closed when the executor has answered

	once    sync.Once
	pid     int           // set before started is closed
	started chan struct{} // closed when it runs

	mu      sync.Mutex // guards the fields below; held while passing on output
	over    bool
	printed Excerpt
}

func newRunning(ctx context.Context, c Command) *running {
	return &running{
		id: random(), mark: random(), ctx: ctx, output: c.Output, answered: make(chan struct{}), started: make(chan struct{}),
		printed: Excerpt{limit: cmp.Or(c.Keep, keptOutput)},
	}
}

// hasStarted records the start of the command.
func (r *running) hasStarted(pid int) {
	r.once.Do(func() {
		r.pid = pid
		close(r.started)
	})
}

// print handles output of the command.
func (r *running) print(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return
	}
	r.printed.add(p)
	if r.output != nil {
		r.output(r.ctx, p)
	}
}

// finish returns the output; later output is dropped.
func (r *running) finish() Excerpt {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	r.printed.trim()
	return r.printed
}

// random returns 128 random bits.
func random() string {
	var b [16]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

const keptOutput = 128 << 10

// Excerpt is a command's output: all of it, or its beginning and end.
type Excerpt struct {
	Head    []byte // the beginning; all of it if nothing is missing
	Tail    []byte // the end, after the missing part
	Missing int64  // dropped bytes between them

	limit int
}

// add appends output.
func (e *Excerpt) add(p []byte) {
	half := e.limit / 2
	if room := half - len(e.Head); room > 0 {
		n := min(room, len(p))
		e.Head = append(e.Head, p[:n]...)
		p = p[n:]
	}
	if len(p) == 0 {
		return
	}
	e.Tail = append(e.Tail, p...)
	if len(e.Tail) > 2*half { // not with every piece
		e.trim()
	}
}

// trim truncates the end to its limit.
func (e *Excerpt) trim() {
	if over := len(e.Tail) - e.limit/2; over > 0 {
		e.Tail = append(e.Tail[:0], e.Tail[over:]...)
		e.Missing += int64(over)
	}
}

// Text returns the excerpt as text, with a line about the missing part.
func (e Excerpt) Text() string {
	if e.Missing == 0 {
		return string(e.Head) + string(e.Tail)
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", e.Head, e.Missing, e.Tail)
}
