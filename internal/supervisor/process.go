package supervisor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/catalogrpc"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/server"
)

// A process is an executor.
type process struct {
	supervisor *Supervisor
	kind       string
	command    []string
	foreign    bool          // third-party
	started    chan struct{} // closed when it runs, or failed to
	exited     chan struct{} // closed when it has gone
	replaces   *process      // it starts after that one has gone; or nil
	failure    error         // why it failed; set before started is closed
	executor   catalog.Executor
	pauses     pauses
	inventory  inventory

	// The supervisor's mu guards these.
	sessions  map[purpose]int // sessions with an agent here, and how often each is used
	uses      int
	ending    bool
	replaced  bool // another process has its place
	idleSince time.Time
	idle      *time.Timer

	mu    sync.Mutex // guards child
	child *child     // nil until it is started
}

// has reports whether a session's agent is in this process. The supervisor's mu is held.
func (p *process) has(of purpose) bool {
	_, there := p.sessions[of]
	return there
}

// holds reports whether the process has the agent of a session.
func (p *process) holds(session string) bool {
	p.supervisor.mu.Lock()
	defer p.supervisor.mu.Unlock()
	return session != "" && p.has(purpose{p.kind, session})
}

// use counts a use. The supervisor's mu is held.
func (p *process) use() {
	p.uses++
	if p.idle != nil {
		p.idle.Stop()
	}
}

// run starts the process and waits until it has gone.
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
	child, err := s.launch(p.command)
	if err != nil {
		p.failure = fmt.Errorf("starting an executor: %w", err)
		close(p.started)
		return
	}
	p.mu.Lock()
	p.child = child
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reg := server.NewRegistry()
	catalogrpc.RegisterDaemon(reg, daemon{s.opts.Daemon, s.opts.WireError, p})
	if s.opts.EditorFiles != nil {
		catalogrpc.RegisterEditorFiles(reg, editorFiles{s.opts.EditorFiles, p})
	}
	var trace func(*server.Conn, bool, []byte)
	if t := s.opts.Trace; t != nil {
		trace = func(_ *server.Conn, sent bool, message []byte) { t(child.pid, sent, message) }
	}
	conn := server.New(reg, server.Options{
		Limits:         frame.Limits{MaxFrame: catalogrpc.MaxMessage, Timeout: 10 * time.Minute},
		Logger:         log,
		Trace:          trace,
		Observer:       server.Observer{Unserved: func(_ *server.Conn, method string, err error) { p.unserved(method, err) }},
		MaxLongRunning: 4096, MaxLine: catalogrpc.MaxMessage, MaxQueued: 8 << 20,
		Grace: 100 * time.Millisecond, CallTimeout: 10 * time.Minute,
	}).Connect(ctx, child.link, frame.NDJSON)
	p.executor = catalogrpc.Executor(conn)
	if s.isClosed() { // Close has not seen the link
		p.hangUp()
	}
	exit := make(chan error, 1)
	go func() { exit <- child.wait() }()
	if err := p.greet(ctx); err != nil {
		p.failure = err
		p.disconnected()
		child.kill()
	}
	close(p.started)

	select {
	case err = <-exit:
	case <-conn.Done(): // it hung up: then it has nothing more to do
		p.disconnected()
		select {
		case err = <-exit:
		case <-time.After(time.Second):
			child.kill()
			err = <-exit
		}
	}
	log.Debug("an executor ended", "pid", child.pid, "err", err)
	cancel()
	<-conn.Done()
	agents, terminals := p.inventory.close()
	KillAgents(agents) // which it should have ended itself
	p.endTerminals(terminals)
	if !s.isClosed() { // else the next hub reports it
		p.endBackground()
	}
}

// greet waits until the executor answers: any answer about an unknown task will do. A
// third-party executor is not checked.
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

// end requests the end of the process, which has no more work.
func (p *process) end(reason string) {
	p.supervisor.work.Go(func() {
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

// hangUp closes the link: an executor then ends its agents, and itself.
func (p *process) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child != nil {
		p.child.link.Close()
	}
}

// disconnected records that the connection has broken, before a caller that sees the error
// acquires another executor: it must not get this one.
func (p *process) disconnected() {
	p.supervisor.mu.Lock()
	defer p.supervisor.mu.Unlock()
	p.ending = true
	p.supervisor.roomChanged()
}

// kill ends the process at once.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.child != nil {
		p.child.kill()
	}
}

// endBackground reports that the background work of the process's agents has ended.
func (p *process) endBackground() {
	var sessions []string
	p.supervisor.mu.Lock()
	for of := range p.sessions {
		if of.session != "" {
			sessions = append(sessions, of.session)
		}
	}
	p.supervisor.mu.Unlock()
	for _, session := range sessions {
		ended := catalog.ReportSessionParams{SessionID: session, Session: catalog.Session{Background: []domain.BackgroundTask{}, Ended: true}}
		if err := p.supervisor.opts.Daemon.ReportSession(context.Background(), ended); err != nil {
			p.supervisor.opts.Logger.Debug("cannot record the end of an agent", "err", err)
		}
	}
}

// endTerminals reports the end of the process's terminals.
func (p *process) endTerminals(left map[string]string) {
	for id, task := range left {
		exit := catalog.TerminalExitParams{TerminalID: id, TaskID: task, ExitCode: -1, Signal: "executor gone"}
		if err := p.supervisor.opts.Daemon.TerminalExit(context.Background(), exit); err != nil {
			p.supervisor.opts.Logger.Debug("cannot record the end of a terminal", "err", err)
		}
	}
}

// A child is the program of an executor, and the hub's end of its link.
type child struct {
	pid  int
	link net.Conn
	wait func() error // returns when the program has ended; called once
	kill func()       // ends the program at once, and its process group
}

// startChild starts a program, connected by a socketpair. The Supervisor owns the goroutine that
// reads its standard error.
func (s *Supervisor) startChild(command []string) (*child, error) {
	if len(command) == 0 {
		return nil, errors.New("no command is configured")
	}
	near, far, err := socketpair()
	if err != nil {
		return nil, err
	}
	defer far.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(append([]string{}, s.opts.Environment...), catalogrpc.FDVariable+"=3")
	cmd.ExtraFiles = append(cmd.ExtraFiles, far)
	inOwnGroup(cmd)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		near.Close()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		near.Close()
		return nil, err
	}
	s.work.Go(func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			s.opts.Logger.Debug("executor", "pid", cmd.Process.Pid, "says", lines.Text())
		}
		_, _ = io.Copy(io.Discard, stderr) // a line that is too long ends the scan; the program must not block
	})
	return &child{pid: cmd.Process.Pid, link: socket.ReceivingFiles(near), wait: cmd.Wait, kill: func() { killGroup(cmd) }}, nil
}
