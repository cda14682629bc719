package supervisor

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Acquire returns an executor for a purpose, and starts one if there is none. It waits for a
// free place.
func (s *Supervisor) Acquire(ctx context.Context, want catalog.LeaseRequest) (catalog.Lease, error) {
	of := purposeOf(want)
	p, err := s.choose(ctx, of, want)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.started:
	case <-ctx.Done():
		s.release(p, of)
		return nil, ctx.Err()
	}
	if p.failure != nil {
		s.release(p, of)
		return nil, p.failure
	}
	return &lease{Executor: p.executor, process: p, release: sync.OnceFunc(func() { s.release(p, of) })}, nil
}

// HasRoom reports whether Acquire would not have to wait.
func (s *Supervisor) HasRoom(want catalog.LeaseRequest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, room := s.find(purposeOf(want))
	return room || s.closed
}

// choose finds or makes the process for a purpose, and counts the use.
func (s *Supervisor) choose(ctx context.Context, purpose purpose, want catalog.LeaseRequest) (*process, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, errClosed
		}
		if c, room := s.find(purpose); room {
			defer s.mu.Unlock()
			p := c.use
			if p == nil {
				p = s.start(purpose, want, c.instead)
			}
			s.markBusy(p, purpose)
			p.sessions[purpose]++
			p.use()
			return p, nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// A choice is the place for a purpose: an existing process, or else a new one, in a free place
// or instead of another.
type choice struct{ use, instead *process }

// find looks for room; mu is held.
func (s *Supervisor) find(of purpose) (c choice, room bool) {
	places := 1
	if of.kind != kindCommand {
		places = s.opts.Most - 1 // the executor for commands has a place of its own
	}
	taken := 0
	var going, spare, shared, idle *process
	for p := range s.processes {
		switch {
		case p.replaced, (p.kind == kindCommand) != (of.kind == kindCommand):
			continue
		case p.ending:
			going = p
		case p.has(of):
			return choice{use: p}, true
		case p.kind == of.kind && p.isSpare():
			spare = p
		case p.kind == of.kind && of.kind == kindACP && (shared == nil || p.uses < shared.uses):
			shared = p
		case p.uses == 0 && !s.idle.works(p) && (idle == nil || p.idleSince.Before(idle.idleSince)):
			idle = p
		}
		taken++
	}
	switch {
	case spare != nil:
		return choice{use: spare}, true
	case taken < places:
		return choice{}, true
	case going != nil:
		return choice{instead: going}, true
	case shared != nil:
		return choice{use: shared}, true
	case idle != nil:
		return choice{instead: idle}, true
	}
	return choice{}, false
}

// start makes a process and begins to start it. If it replaces another, it ends that one first
// and waits for its end.
func (s *Supervisor) start(of purpose, want catalog.LeaseRequest, replaces *process) *process {
	if replaces != nil {
		replaces.replaced = true
		if !replaces.ending {
			replaces.ending = true
			replaces.end("room for another")
		}
	}
	p := &process{
		supervisor: s, kind: of.kind, sessions: make(map[purpose]int), started: make(chan struct{}), exited: make(chan struct{}),
		replaces: replaces,
	}
	if want.Driver == "executor" {
		p.command, p.foreign = want.Command, true
	} else {
		p.command = s.opts.Command()
	}
	s.processes[p] = struct{}{}
	s.work.Go(p.run)
	return p
}

// release counts the end of a use.
func (s *Supervisor) release(p *process, of purpose) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.uses--
	p.sessions[of]--
	if p.ending {
		return
	}
	if p.uses == 0 {
		s.roomChanged()
		p.idleSince = time.Now()
	}
	if of.session != "" {
		if p.sessions[of] == 0 {
			s.markIdle(p, of)
		}
		return // it has agents
	}
	if p.uses == 0 {
		s.linger(p)
	}
}

// Close ends all executors with their agents, and waits for their end. When ctx ends it kills
// them.
func (s *Supervisor) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.roomChanged()
	for _, i := range s.idle {
		i.timer.Stop()
	}
	s.idle = nil
	var all []*process
	for p := range s.processes {
		p.ending = true
		all = append(all, p)
	}
	s.mu.Unlock()
	for _, p := range all {
		p.hangUp()
	}
	for _, p := range all {
		select {
		case <-p.exited:
		case <-ctx.Done():
			p.kill()
		}
	}
	_ = s.work.Close(context.Background()) // all goroutines end with the processes
}

// A lease is one use of a process.
type lease struct {
	catalog.Executor
	process  *process
	release  func()
	released bool // and no longer wants a pause; guarded by pauses.mu
}

func (l *lease) Release() {
	if p := l.process; p.pauses.leave(l) {
		p.supervisor.work.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			if err := p.pauses.send(ctx, p.executor); err != nil {
				p.supervisor.opts.Logger.Debug("cannot resume an executor", "err", err)
			}
		})
	}
	l.release()
}

// PauseNotifications makes the executor pause until the lease resumes it, or is released.
func (l *lease) PauseNotifications(ctx context.Context) error {
	return l.process.pauses.set(ctx, l.Executor, l, true)
}

func (l *lease) ResumeNotifications(ctx context.Context) error {
	return l.process.pauses.set(ctx, l.Executor, l, false)
}

func (l *lease) Kill() { l.process.kill() }

// SpawnTerminal remembers the terminal, whose end must be reported even if the executor dies.
func (l *lease) SpawnTerminal(ctx context.Context, p catalog.SpawnTerminalParams) (catalog.SpawnTerminalResult, error) {
	result, err := l.Executor.SpawnTerminal(ctx, p)
	if err == nil {
		l.process.inventory.terminal(result.TerminalID, true)
	}
	return result, err
}

// ExecutePrompt turns an error response of the executor into a result: only the loss of the
// executor is an error.
func (l *lease) ExecutePrompt(ctx context.Context, p catalog.ExecutePromptParams) (catalog.ExecutePromptResult, error) {
	defer l.process.inventory.give(p.TaskID)()
	result, err := l.Executor.ExecutePrompt(ctx, p)
	var answered *jsonrpc2.Error
	switch {
	case errors.Is(err, jsonrpc2.ErrClosed):
		l.process.disconnected()
	case errors.As(err, &answered):
		return catalog.ExecutePromptResult{
			Status: catalog.StatusFailed, Error: &catalog.ExecutionError{Code: "EXECUTOR_ERROR", Message: answered.Message},
		}, nil
	}
	return result, err
}

// SetSession treats an executor without this method, a third-party one, as one that has no agent
// yet.
func (l *lease) SetSession(ctx context.Context, p catalog.SetSessionParams) (catalog.SetSessionResult, error) {
	result, err := l.Executor.SetSession(ctx, p)
	var answered *jsonrpc2.Error
	if errors.As(err, &answered) && answered.Code == jsonrpc2.CodeMethodNotFound {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}, nil
	}
	return result, err
}

// Steer treats an executor without this method, a third-party one, as one that refuses the
// message.
func (l *lease) Steer(ctx context.Context, p catalog.SteerParams) (catalog.SteerResult, error) {
	result, err := l.Executor.Steer(ctx, p)
	var answered *jsonrpc2.Error
	if errors.As(err, &answered) && answered.Code == jsonrpc2.CodeMethodNotFound {
		return catalog.SteerResult{Outcome: catalog.SteerRefused}, nil
	}
	return result, err
}

// YieldTurn treats an executor without this method, a third-party one, as one that refuses.
func (l *lease) YieldTurn(ctx context.Context, p catalog.YieldTurnParams) (catalog.YieldTurnResult, error) {
	result, err := l.Executor.YieldTurn(ctx, p)
	var answered *jsonrpc2.Error
	if errors.As(err, &answered) && answered.Code == jsonrpc2.CodeMethodNotFound {
		return catalog.YieldTurnResult{Outcome: catalog.YieldRefused}, nil
	}
	return result, err
}

// RunCommand remembers the command, because its processes must end if the executor dies. An
// error means that the executor could not serve the call, or has gone.
func (l *lease) RunCommand(ctx context.Context, p catalog.RunCommandParams) (catalog.RunCommandResult, error) {
	ended := l.process.inventory.command(p.CommandID, p.Mark)
	result, err := l.Executor.RunCommand(ctx, p)
	var answered *jsonrpc2.Error
	switch {
	case errors.Is(err, jsonrpc2.ErrClosed):
		l.process.disconnected()
	case err == nil, errors.As(err, &answered):
		ended()
	}
	return result, err
}
