package executor

import (
	"context"
	"errors"
	"io/fs"
	"os/exec"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
)

// This file runs commands of the configuration to their end: builds, gates,
// and what else a user has written down to be run.
//
// A [commands] owns the commands of an executor. What one prints goes to a [commandReporter], in
// order, and while that takes its time the command is not read.

// errCommandsClosed is what Run returns after Close.
var errCommandsClosed = errors.New("the commands have been ended")

// A commandReporter is told of commands.
type commandReporter interface {
	CommandStarted(context.Context, catalog.CommandStartedParams) error
	// CommandOutput returns when the output has been taken.
	CommandOutput(context.Context, catalog.CommandOutputParams) error
}

// A commands owns commands. Its methods may be called from any goroutine. It has to be
// closed.
type commands struct {
	ctx       context.Context // reports are given up when it ends
	processes *process.Runner
	subreaper []string
	reporter  commandReporter

	mu      sync.Mutex // guards the fields below
	closed  bool
	running map[string]context.CancelFunc // by id; begins to end the command
	work    sync.WaitGroup
}

// newCommands makes a Set without commands. Reports wait as long as ctx lasts. The subreaper is
// that of a [process.Spec].
func newCommands(ctx context.Context, processes *process.Runner, subreaper []string, reporter commandReporter) *commands {
	return &commands{ctx: ctx, processes: processes, subreaper: subreaper, reporter: reporter, running: make(map[string]context.CancelFunc)}
}

// Run runs a command to its end, or that of ctx, and returns when nothing that it has started
// is left and its output has been reported. The error is ErrClosed.
func (s *commands) Run(ctx context.Context, p catalog.RunCommandParams) (catalog.RunCommandResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !s.begin(p.CommandID, cancel) {
		return catalog.RunCommandResult{}, errCommandsClosed
	}
	defer s.end(p.CommandID)
	proc, err := s.start(p)
	if err != nil {
		return catalog.RunCommandResult{ExitCode: -1, StartError: reason(err)}, nil
	}
	var beside sync.WaitGroup
	beside.Go(func() {
		select {
		case <-ctx.Done():
			proc.Interrupt()
		case <-proc.Done():
		}
	})
	_ = s.reporter.CommandStarted(s.ctx, catalog.CommandStartedParams{CommandID: p.CommandID, PID: proc.PID})
	taken := true
	proc.ReadOutput(s.ctx, func(b []byte) {
		if taken { // else nobody is there any more, and it is only read to its end
			report := catalog.CommandOutputParams{CommandID: p.CommandID}
			report.Data, report.Encoding = catalog.EncodeBytes(b)
			taken = s.reporter.CommandOutput(s.ctx, report) == nil
		}
	})
	<-proc.Done()
	beside.Wait()
	result := catalog.RunCommandResult{}
	result.ExitCode, result.Signal = proc.ExitStatus()
	return result, nil
}

// start starts the program of a command.
func (s *commands) start(p catalog.RunCommandParams) (*process.Process, error) {
	if len(p.Command) == 0 {
		return nil, errors.New("no command is given")
	}
	env := process.NewEnvironment(p.Env)
	path, err := env.Find(p.Command[0], p.CWD)
	if err != nil {
		return nil, err
	}
	return s.processes.Start(process.Spec{Path: path, Argv: p.Command, CWD: p.CWD, Env: env, Merge: true, Mark: p.Mark, Subreaper: s.subreaper})
}

// Stop begins to end a command, and reports whether it runs.
func (s *commands) Stop(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop, ok := s.running[id]
	if ok {
		stop()
	}
	return ok
}

// Close begins to end every command; Wait waits for that.
func (s *commands) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, stop := range s.running {
		stop()
	}
}

// Wait returns when no command is left, after Close.
func (s *commands) Wait() { s.work.Wait() }

func (s *commands) begin(id string, stop context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running[id] = stop
	s.work.Add(1)
	return true
}

func (s *commands) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, id)
	s.work.Done()
}

// reason is why a program was not started, in words and without its path, which whoever
// asked for it knows.
func reason(err error) string {
	var about *fs.PathError
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "no such program, or no such directory"
	case errors.As(err, &about):
		return about.Err.Error()
	}
	return err.Error()
}
