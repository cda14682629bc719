package supervisor

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// releaseWithin is how long an executor may take to end an agent that has
// nothing to do: its own ladder is shorter.
const releaseWithin = 10 * time.Second

// markIdle notes that a conversation has nothing to do, and ends the agents of
// those that have waited too long, or of which there are too many. mu is held.
func (s *Supervisor) markIdle(p *process, of purpose) {
	i := &idleThread{process: p, of: of}
	i.timer = time.AfterFunc(s.opts.IdleAfter, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.retire(i)
	})
	s.idle = append(s.idle, i)
	s.trim()
}

// trim ends the agents of conversations of which there are too many; mu is
// held.
func (s *Supervisor) trim() {
	for _, i := range s.idle.surplus(s.opts.MostIdle) {
		s.retire(i)
	}
}

// markBusy notes that a conversation has something to do again; mu is held.
func (s *Supervisor) markBusy(p *process, of purpose) {
	if i := s.idle.of(p, of); i != nil {
		s.idle.remove(i)
	}
}

// retire begins to end the agent of a conversation that has nothing to do; mu
// is held.
func (s *Supervisor) retire(i *idleThread) {
	if s.closed || i.ending || i.process.ending || s.idle.of(i.process, i.of) != i {
		return
	}
	i.ending, i.works = true, false
	s.work.Go(func() {
		released := i.process.release(i.of.thread)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.retired(i, released)
	})
}

// retired is told what came of retire; mu is held.
func (s *Supervisor) retired(i *idleThread, released bool) {
	i.ending = false
	p := i.process
	switch {
	case s.closed || p.ending || s.idle.of(p, i.of) != i: // or it has something to do again
	case !released:
		i.works = true // it is asked again
		i.timer.Reset(s.opts.IdleAfter)
	default:
		s.idle.remove(i)
		delete(p.threads, i.of)
		if p.uses > 0 || len(p.threads) > 0 {
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

// isSpare reports whether an executor has neither agents nor something to do,
// so that the next conversation can have it; the supervisor's mu is held.
func (p *process) isSpare() bool {
	return p.kind == kindACP && p.uses == 0 && len(p.threads) == 0 && !p.ending
}

// hasSpare reports whether there is a spare executor beside one; mu is held.
func (s *Supervisor) hasSpare(beside *process) bool {
	for p := range s.processes {
		if p != beside && p.isSpare() {
			return true
		}
	}
	return false
}

// linger lets an executor that has nothing wait for the next conversation, or
// command, but not for long. mu is held.
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

// release asks the executor to end the agent of a conversation, and reports
// whether it has none now. One that somebody else wrote has no word for that: it
// has one conversation alone, and is ended as a whole.
func (p *process) release(thread string) bool {
	<-p.started
	if p.foreign || p.failure != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	result, err := p.executor.ReleaseSession(ctx, catalog.ReleaseSessionParams{SessionID: thread})
	if err != nil {
		p.supervisor.opts.Logger.Debug("an executor did not end an agent that has nothing to do", "err", err)
	}
	return err != nil || result.Released
}

// An idleThread is a conversation of which no prompt runs, and whose agent
// waits for the next one in an executor.
type idleThread struct {
	process *process
	of      purpose
	timer   *time.Timer // ends its agent
	ending  bool        // its agent is being ended
	works   bool        // its agent has a program in a terminal: it is no idle one
}

// idleThreads are the conversations that have nothing to do, the one that has
// waited longest first. The supervisor's mu guards them.
type idleThreads []*idleThread

// of finds a conversation, or returns nil.
func (l idleThreads) of(p *process, of purpose) *idleThread {
	for _, i := range l {
		if i.process == p && i.of == of {
			return i
		}
	}
	return nil
}

// works reports whether an agent of a process has refused to be ended, since it works.
func (l idleThreads) works(p *process) bool {
	return slices.ContainsFunc(l, func(i *idleThread) bool { return i.process == p && i.works })
}

// remove takes a conversation out of the list.
func (l *idleThreads) remove(gone *idleThread) {
	gone.timer.Stop()
	*l = slices.DeleteFunc(*l, func(i *idleThread) bool { return i == gone })
}

// surplus are those that have waited longest beyond so many.
func (l idleThreads) surplus(most int) []*idleThread {
	var idle []*idleThread
	for _, i := range l {
		if !i.ending && !i.works && !i.process.ending {
			idle = append(idle, i)
		}
	}
	return idle[:max(len(idle)-most, 0)]
}

// pauses are the leases that want one executor, which may have several, to
// pause. It does while there is one. The zero value has none.
type pauses struct {
	telling sync.Mutex // held while the executor is told, so that it is told in order

	mu     sync.Mutex // guards the fields below
	by     map[*lease]struct{}
	paused bool // what the executor was told last
	unsure bool // it may not have been
}

// set notes whether a lease wants the executor to pause, and tells it.
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
	return p.tell(ctx, x)
}

// leave ends the pause of a lease, for good, and reports whether the executor
// is to be told something.
func (p *pauses) leave(l *lease) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.released = true
	delete(p.by, l)
	return p.unsure || p.paused != (len(p.by) > 0)
}

// tell tells the executor what counts now, unless it was told that last.
func (p *pauses) tell(ctx context.Context, x catalog.Executor) error {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.mu.Lock()
	pause := len(p.by) > 0
	known := pause == p.paused && !p.unsure
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
	p.paused, p.unsure = pause, err != nil
	return err
}
