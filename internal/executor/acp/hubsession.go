package acp

import (
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A hubSession keeps the agent of one hub session from prompt to prompt.
type hubSession struct {
	busy  chan struct{} // holds a token while the agent is in use
	agent *agent        // nil, or an agent that may have died; only the token holder accesses it

	latest atomic.Pointer[agent] // that of the current or the latest turn, until it is dismissed
}

// enter waits until no other prompt of the session runs. It returns nil if the task is
// stopped first.
func (d *Driver) enter(t *turn) *hubSession {
	name := t.Params.SessionID
	if name == "" { // without an id no later prompt can reuse the session
		name = "task " + t.ID
	}
	for {
		d.mu.Lock()
		c := d.sessions[name]
		if c == nil {
			c = &hubSession{busy: make(chan struct{}, 1)}
			d.sessions[name] = c
		}
		d.mu.Unlock()
		stop := t.Context().Done()
		if t.Params.Unprompted { // the agent is already working and must be stopped
			stop = d.ctx.Done()
		}
		select {
		case c.busy <- struct{}{}:
		case <-stop:
			return nil
		}
		d.mu.Lock()
		same := d.sessions[name] == c
		d.mu.Unlock()
		if same {
			return c
		}
		<-c.busy // it was released during the wait
	}
}

// leave lets the next prompt in. The agent stays, unless the session has no id.
func (d *Driver) leave(t *turn, c *hubSession) {
	if t.Params.SessionID == "" {
		c.dismiss()
		d.forget("task " + t.ID)
	}
	<-c.busy
}

func (d *Driver) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, name)
}

// ReleaseSession ends the agent of a session, unless it is busy: with a prompt, a program in
// a terminal, or background work. With Force, an agent that can cancel its background work is
// asked to, and stays.
func (d *Driver) ReleaseSession(p catalog.ReleaseSessionParams) catalog.ReleaseSessionResult {
	d.mu.Lock()
	c := d.sessions[p.SessionID]
	d.mu.Unlock()
	if c == nil {
		return catalog.ReleaseSessionResult{Released: true}
	}
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	default:
		if a := c.latest.Load(); a != nil && p.Background != "" {
			return a.cancelTask(p.Background)
		}
		return catalog.ReleaseSessionResult{Reason: "busy"}
	}
	if p.Background != "" {
		if c.agent == nil {
			return catalog.ReleaseSessionResult{Released: true}
		}
		return c.agent.cancelTask(p.Background)
	}
	if a := c.agent; a != nil && !p.Force {
		tasks, more := a.backgroundTasks()
		switch {
		case len(a.programs.running()) > 0:
			return catalog.ReleaseSessionResult{Reason: "terminals"}
		case a.turns.isWanted():
			return catalog.ReleaseSessionResult{Reason: "busy"}
		case len(tasks) > 0 || more:
			return catalog.ReleaseSessionResult{Reason: "background"}
		}
	}
	if a := c.agent; a != nil && p.Force && len(a.programs.running()) == 0 && !a.turns.isWanted() && a.cancelBackground() {
		return catalog.ReleaseSessionResult{Reason: "cancelled"}
	}
	c.dismiss()
	d.forget(p.SessionID)
	return catalog.ReleaseSessionResult{Released: true}
}

// end ends the agent when no prompt uses it.
func (c *hubSession) end() {
	c.busy <- struct{}{}
	c.dismiss()
	<-c.busy
}

// dismiss ends the agent, if there is one. The caller holds the token.
func (c *hubSession) dismiss() {
	if c.agent != nil {
		c.agent.retire()
		c.agent = nil
		c.latest.Store(nil)
	}
}

// StopEnded cancels what an agent does by itself after a task that has ended. It does nothing once
// the session's next task has begun.
func (d *Driver) StopEnded(task string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.sessions {
		if a := c.latest.Load(); a != nil && a.isAfter(task) {
			d.work.Go(func() { c.cancelAfter(task) })
			return
		}
	}
}

// isAfter reports whether a task was the agent's latest.
func (a *agent) isAfter(task string) bool {
	last := a.turns.latest()
	return last != nil && last.task == task
}

// cancelAfter sends session/cancel to an idle agent, if a task was its latest.
func (c *hubSession) cancelAfter(task string) {
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	default:
		return // its next task begins
	}
	a := c.agent
	if a == nil || a.session == "" || !a.isAfter(task) {
		return
	}
	sent := make(chan struct{})
	a.driver.work.Go(func() { // concurrently, because an agent that does not read would block it
		defer close(sent)
		_ = a.conn.Notify(acp.MethodSessionCancel, acp.SessionParams{SessionID: a.session})
	})
	select {
	case <-sent:
	case <-time.After(a.driver.opts.CancelGrace):
	case <-a.driver.ctx.Done():
	}
}
