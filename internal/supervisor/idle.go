package supervisor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// releaseWithin is how long an executor may take to end an idle agent: its own timeouts are
// shorter.
const releaseWithin = 10 * time.Second

// markIdle records that a session is idle, and ends agents that have waited too long, or
// that exceed the limit. mu is held.
func (s *Supervisor) markIdle(p *process, of purpose) {
	i := &idleSession{process: p, of: of}
	i.timer = time.AfterFunc(s.opts.IdleAfter, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.retire(i)
	})
	s.idle = append(s.idle, i)
	s.trim()
}

// trim ends the idle agents beyond the limit; mu is held.
func (s *Supervisor) trim() {
	for _, i := range s.idle.surplus(s.opts.MostIdle) {
		s.retire(i)
	}
}

// markBusy records that a session is busy again; mu is held.
func (s *Supervisor) markBusy(p *process, of purpose) {
	if i := s.idle.of(p, of); i != nil {
		s.idle.remove(i)
	}
}

// retire begins to end the agent of an idle session; mu is held.
func (s *Supervisor) retire(i *idleSession) {
	if s.closed || i.ending || i.process.ending || s.idle.of(i.process, i.of) != i {
		return
	}
	i.ending, i.works = true, false
	s.work.Go(func() {
		released := i.process.release(i.of.session)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.retired(i, released)
	})
}

// retired handles the result of retire; mu is held.
func (s *Supervisor) retired(i *idleSession, released bool) {
	i.ending = false
	p := i.process
	switch {
	case s.closed || p.ending || s.idle.of(p, i.of) != i: // or it is busy again
	case !released:
		i.works = true // retire tries again later
		i.timer.Reset(s.opts.IdleAfter)
	default:
		s.idle.remove(i)
		delete(p.sessions, i.of)
		if p.uses > 0 || len(p.sessions) > 0 {
			return
		}
		s.roomChanged()
		if p.foreign || s.hasSpare(p) {
			p.ending = true
			p.end("idle_timeout")
			return
		}
		s.linger(p)
	}
}

// isSpare reports whether an executor has neither agents nor work, so that the next session
// can use it; the supervisor's mu is held.
func (p *process) isSpare() bool {
	return p.kind == kindACP && p.uses == 0 && len(p.sessions) == 0 && !p.ending
}

// hasSpare reports whether there is a spare executor besides one; mu is held.
func (s *Supervisor) hasSpare(beside *process) bool {
	for p := range s.processes {
		if p != beside && p.isSpare() {
			return true
		}
	}
	return false
}

// linger keeps a spare executor for the next session, or command, for a limited time. mu is
// held.
func (s *Supervisor) linger(p *process) {
	p.idleSince = time.Now()
	p.idle = time.AfterFunc(s.opts.IdleAfter, func() {
		s.mu.Lock()
		ending := p.uses == 0 && !p.ending && !s.closed
		p.ending = p.ending || ending
		s.mu.Unlock()
		if ending {
			p.end("idle_timeout")
		}
	})
}

// release makes the executor end the agent of a session, and reports whether it now has
// none. A third-party executor has no method for that: it has only one session, and is
// ended as a whole.
func (p *process) release(session string) bool {
	<-p.started
	if p.foreign || p.failure != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	result, err := p.executor.ReleaseSession(ctx, catalog.ReleaseSessionParams{SessionID: session})
	if err != nil {
		p.supervisor.opts.Logger.Debug("an executor did not end an agent that has nothing to do", "err", err)
	}
	return err != nil || result.Released
}

// An idleSession is a session without a running prompt, whose agent waits for the next one
// in an executor.
type idleSession struct {
	process *process
	of      purpose
	timer   *time.Timer // ends its agent
	ending  bool        // its agent is being ended
	works   bool        // its agent has a program in a terminal, so it does not count as idle
}

// idleSessions are the idle sessions, the longest idle first. The supervisor's mu guards
// them.
type idleSessions []*idleSession

// of finds a session, or returns nil.
func (l idleSessions) of(p *process, of purpose) *idleSession {
	for _, i := range l {
		if i.process == p && i.of == of {
			return i
		}
	}
	return nil
}

// works reports whether an agent of a process has refused to end, because it works.
func (l idleSessions) works(p *process) bool {
	return slices.ContainsFunc(l, func(i *idleSession) bool { return i.process == p && i.works })
}

// remove removes a session from the list.
func (l *idleSessions) remove(gone *idleSession) {
	gone.timer.Stop()
	*l = slices.DeleteFunc(*l, func(i *idleSession) bool { return i == gone })
}

// surplus returns the longest idle sessions beyond a limit.
func (l idleSessions) surplus(most int) []*idleSession {
	var idle []*idleSession
	for _, i := range l {
		if !i.ending && !i.works && !i.process.ending {
			idle = append(idle, i)
		}
	}
	return idle[:max(len(idle)-most, 0)]
}

// pauses are the leases that want one executor to pause; several may share it. It pauses while
// there is one. The zero value has none.
type pauses struct {
	sending sync.Mutex // held during the call to the executor, to keep the order

	mu         sync.Mutex // guards the fields below
	by         map[*lease]struct{}
	paused     bool // the last value sent to the executor
	sendFailed bool // that call may have failed
}

// set records whether a lease wants the executor to pause, and notifies the executor.
func (p *pauses) set(ctx context.Context, x catalog.Executor, l *lease, pause bool) error {
	p.mu.Lock()
	if p.by == nil {
		p.by = make(map[*lease]struct{})
	}
	if pause && !l.released {
		p.by[l] = struct{}{}
	} else {
		delete(p.by, l)
	}
	p.mu.Unlock()
	return p.send(ctx, x)
}

// leave permanently ends the pause of a lease, and reports whether the executor needs a
// notification.
func (p *pauses) leave(l *lease) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.released = true
	delete(p.by, l)
	return p.sendFailed || p.paused != (len(p.by) > 0)
}

// send sends the executor the current state, unless that was sent last.
func (p *pauses) send(ctx context.Context, x catalog.Executor) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	p.mu.Lock()
	pause := len(p.by) > 0
	known := pause == p.paused && !p.sendFailed
	p.mu.Unlock()
	if known {
		return nil
	}
	send := x.ResumeNotifications
	if pause {
		send = x.PauseNotifications
	}
	err := send(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused, p.sendFailed = pause, err != nil
	return err
}
