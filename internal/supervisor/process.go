package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/catalogrpc"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// linkLimit bounds a message between hub and executor, in bytes: an agent's
// own limit is below it.
const linkLimit = 64 << 20

// A process is an executor.
type process struct {
	supervisor *Supervisor
	kind       string
	command    []string
	foreign    bool          // somebody else wrote it
	started    chan struct{} // closed when it runs, or failed to
	exited     chan struct{} // closed when it has gone
	replaces   *process      // it starts when that one has gone; or nil
	failure    error         // why it does not run; set before started is closed
	executor   catalog.Executor
	holds      holds

	// The supervisor's mu guards these.
	threads   map[purpose]int // those whose agents are there, and how often each is used
	uses      int
	ending    bool
	succeeded bool // another one has its place
	idleSince time.Time
	idle      *time.Timer

	mu     sync.Mutex // guards the fields below
	cmd    *exec.Cmd
	link   net.Conn
	agents map[string]domain.Process // by mark
	// terminals: true while they run, false if one ended before its start was
	// answered; nil once the process has gone
	terminals map[string]bool
	tasks     map[string]string   // of agents' terminals among them
	given     map[string]struct{} // every task that it was given: agents' terminals outlive them
}

// has reports whether a conversation's agent is there. The supervisor's mu is
// held.
func (p *process) has(of purpose) bool {
	_, there := p.threads[of]
	return there
}

// use counts a use. The supervisor's mu is held.
func (p *process) use() {
	p.uses++
	if p.idle != nil {
		p.idle.Stop()
	}
}

// run starts the process and stays with it until it has gone.
func (p *process) run() {
	s := p.supervisor
	log := s.opts.Logger
	defer close(p.exited)
	defer s.forget(p)
	if p.replaces != nil {
		<-p.replaces.exited
		p.replaces = nil
	}
	if s.isClosed() {
		p.failure = errClosed
		close(p.started)
		return
	}
	if err := p.spawn(); err != nil {
		p.failure = fmt.Errorf("starting an executor: %w", err)
		close(p.started)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reg := server.NewRegistry()
	catalogrpc.RegisterDaemon(reg, daemon{s.opts.Daemon, s.opts.WireError, p})
	var trace func(*server.Conn, bool, []byte)
	if t := s.opts.Trace; t != nil {
		pid := p.cmd.Process.Pid
		trace = func(_ *server.Conn, sent bool, message []byte) { t(pid, sent, message) }
	}
	conn := server.New(reg, server.Options{
		Limits:         frame.Limits{MaxFrame: linkLimit, Timeout: 10 * time.Minute},
		Logger:         log,
		Trace:          trace,
		Unserved:       func(_ *server.Conn, method string, err error) { p.unserved(method, err) },
		MaxLongRunning: 4096, MaxLine: linkLimit, MaxQueued: 8 << 20,
		Grace: 100 * time.Millisecond, CallTimeout: 10 * time.Minute,
	}).Connect(ctx, p.link, frame.NDJSON)
	p.executor = catalogrpc.Executor(conn)
	if s.isClosed() { // Close has not seen the link
		p.hangUp()
	}
	exit := make(chan error, 1)
	go func() { exit <- p.cmd.Wait() }()
	if err := p.greet(ctx); err != nil {
		p.failure = err
		p.lose()
		p.kill()
	}
	close(p.started)

	var err error
	select {
	case err = <-exit:
	case <-conn.Done(): // it hung up: then it has nothing more to do
		p.lose()
		select {
		case err = <-exit:
		case <-time.After(time.Second):
			p.kill()
			err = <-exit
		}
	}
	log.Debug("an executor ended", "pid", p.cmd.Process.Pid, "err", err)
	cancel()
	<-conn.Done()
	p.killAgents()
	p.endTerminals()
}

// greet waits until the executor answers: whatever it says of a task that
// there is not will do. One that somebody else wrote is taken at its word.
func (p *process) greet(ctx context.Context) error {
	if p.foreign {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.supervisor.opts.StartWithin)
	defer cancel()
	_, err := p.executor.StopTask(ctx, catalog.StopTaskParams{})
	var answered *jsonrpc2.Error
	switch {
	case err == nil || errors.As(err, &answered):
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("an executor did not answer within %s", p.supervisor.opts.StartWithin)
	}
	return fmt.Errorf("an executor ended at once: %w", err)
}

// spawn starts the program, joined by a socketpair.
func (p *process) spawn() error {
	if len(p.command) == 0 {
		return errors.New("no command is configured")
	}
	near, far, err := socketpair()
	if err != nil {
		return err
	}
	defer far.Close()
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Env = append(append([]string{}, p.supervisor.opts.Environment...), "DUET_EXECUTOR_FD=3")
	cmd.ExtraFiles = append(cmd.ExtraFiles, far)
	inOwnGroup(cmd)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		near.Close()
		return err
	}
	if err := cmd.Start(); err != nil {
		near.Close()
		return err
	}
	p.mu.Lock()
	p.cmd, p.link, p.agents = cmd, socket.ReceivingFiles(near), make(map[string]domain.Process)
	p.terminals, p.tasks = make(map[string]bool), make(map[string]string)
	p.mu.Unlock()
	p.supervisor.ended.Go(func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			p.supervisor.opts.Logger.Debug("executor", "pid", cmd.Process.Pid, "says", lines.Text())
		}
		_, _ = io.Copy(io.Discard, stderr) // a line that is too long ends the scan; nobody is to wait for us
	})
	return nil
}

// end asks the process to end; it has nothing to do any more.
func (p *process) end(reason string) {
	p.supervisor.ended.Go(func() {
		<-p.started
		if p.failure != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if _, err := p.executor.Shutdown(ctx, catalog.ShutdownParams{Reason: reason}); err != nil {
			p.supervisor.opts.Logger.Debug("an executor did not take shutdown", "err", err)
		}
		p.hangUp()
	})
}

// hangUp closes the link: an executor ends its agents then, and itself.
func (p *process) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link != nil {
		p.link.Close()
	}
}

// lose notes that the connection has broken, before whoever was told so asks
// for an executor again: it is not to get this one.
func (p *process) lose() {
	p.supervisor.mu.Lock()
	defer p.supervisor.mu.Unlock()
	p.ending = true
	p.supervisor.roomChanged()
}

// kill ends the process at once.
func (p *process) kill() {
	p.mu.Lock()
	cmd := p.cmd
	p.mu.Unlock()
	if cmd != nil {
		killGroup(cmd)
	}
}

// killAgents ends what the process should have ended itself.
func (p *process) killAgents() {
	p.mu.Lock()
	defer p.mu.Unlock()
	KillAgents(slices.Collect(maps.Values(p.agents)))
	p.agents = nil
}

// give notes a task that the process is given.
func (p *process) give(task string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given == nil {
		p.given = make(map[string]struct{})
	}
	p.given[task] = struct{}{}
}

// runs reports whether the process was given a task, or none is meant.
func (p *process) runs(task string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, given := p.given[task]
	return given || task == ""
}

// noteTerminal remembers a terminal that runs in the process, or that it has
// ended.
func (p *process) noteTerminal(id string, running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminals == nil {
		return
	}
	delete(p.tasks, id)
	if _, known := p.terminals[id]; known {
		delete(p.terminals, id) // it ended, or had ended before its start was answered
		return
	}
	p.terminals[id] = running
}

// noteAgentTerminal remembers a terminal of an agent.
func (p *process) noteAgentTerminal(id, task string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminals != nil {
		p.terminals[id], p.tasks[id] = true, task
	}
}

// endTerminals tells of the terminals that ended with the process.
func (p *process) endTerminals() {
	p.mu.Lock()
	left, tasks := p.terminals, p.tasks
	p.terminals, p.tasks = nil, nil
	p.mu.Unlock()
	for id, running := range left {
		if !running {
			continue
		}
		exit := catalog.TerminalExitParams{TerminalID: id, TaskID: tasks[id], ExitCode: -1, Signal: "executor gone"}
		if err := p.supervisor.opts.Daemon.TerminalExit(context.Background(), exit); err != nil {
			p.supervisor.opts.Logger.Debug("the end of a terminal was not taken", "err", err)
		}
	}
}

// noteAgent remembers an agent that the executor has started.
func (p *process) noteAgent(data json.RawMessage) {
	var agent catalog.Process
	if json.Unmarshal(data, &agent) != nil || agent.PID <= 1 || agent.Mark == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.agents != nil {
		p.agents[agent.Mark] = domain.Process{PID: agent.PID, Mark: agent.Mark}
	}
}

// A lease is one use of a process.
type lease struct {
	catalog.Executor
	process *process
	release func()
	left    bool // it is released, and holds nothing up any more; guarded by holds.mu
}

func (l *lease) Release() {
	if p := l.process; p.holds.leave(l) {
		p.supervisor.ended.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			if err := p.holds.tell(ctx, p.executor); err != nil {
				p.supervisor.opts.Logger.Debug("an executor was not told to go on", "err", err)
			}
		})
	}
	l.release()
}

// PauseNotifications holds the executor up until the lease lets it go on, or is
// released.
func (l *lease) PauseNotifications(ctx context.Context) error {
	return l.process.holds.set(ctx, l.Executor, l, true)
}

func (l *lease) ResumeNotifications(ctx context.Context) error {
	return l.process.holds.set(ctx, l.Executor, l, false)
}

func (l *lease) Kill() { l.process.kill() }

// SpawnTerminal remembers the terminal, whose end must be told even if the
// executor dies.
func (l *lease) SpawnTerminal(ctx context.Context, p catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
	result, err := l.Executor.SpawnTerminal(ctx, p)
	if err == nil {
		l.process.noteTerminal(result.TerminalID, true)
	}
	return result, err
}

// ExecutePrompt turns an error that the executor answered into a result: only
// an executor that has gone is an error.
func (l *lease) ExecutePrompt(ctx context.Context, p catalog.ExecutePromptParams) (catalog.ExecutePromptResult, error) {
	l.process.give(p.TaskID)
	result, err := l.Executor.ExecutePrompt(ctx, p)
	var answered *jsonrpc2.Error
	switch {
	case errors.Is(err, jsonrpc2.ErrClosed):
		l.process.lose()
	case errors.As(err, &answered):
		return catalog.ExecutePromptResult{
			Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Code: "EXECUTOR_ERROR", Message: answered.Message},
		}, nil
	}
	return result, err
}
