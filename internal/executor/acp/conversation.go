package acp

import (
	"sync/atomic"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// A conversation keeps the agent of one session of the hub from prompt to
// prompt.
type conversation struct {
	busy  chan struct{} // holds a token while somebody uses it
	agent *agent        // nil, or one that may have died; whoever holds the token has it

	working atomic.Pointer[agent] // while it has a turn
}

// enter waits until no other prompt of the conversation runs. It returns nil if
// the task is to stop first.
func (d *Driver) enter(t *turn) *conversation {
	name := t.Params.SessionID
	if name == "" { // nobody can come back to it
		name = "task " + t.ID
	}
	for {
		d.mu.Lock()
		c := d.conversations[name]
		if c == nil {
			c = &conversation{busy: make(chan struct{}, 1)}
			d.conversations[name] = c
		}
		d.mu.Unlock()
		stop := t.Context().Done()
		if t.Params.Unprompted { // the agent is at work, and has to be told
			stop = d.ctx.Done()
		}
		select {
		case c.busy <- struct{}{}:
		case <-stop:
			return nil
		}
		d.mu.Lock()
		same := d.conversations[name] == c
		d.mu.Unlock()
		if same {
			return c
		}
		<-c.busy // it was released while we waited
	}
}

// leave lets the next prompt in. The agent stays, unless nobody can come back
// to it.
func (d *Driver) leave(t *turn, c *conversation) {
	if t.Params.SessionID == "" {
		c.dismiss()
		d.forget("task " + t.ID)
	}
	<-c.busy
}

func (d *Driver) forget(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conversations, name)
}

// ReleaseSession ends the agent of a conversation, unless it has something to do: a prompt,
// a program of its own in a terminal, or work in the background. With Force, an agent that can
// stop its background work is asked to, and stays.
func (d *Driver) ReleaseSession(p catalog.ReleaseSessionParams) catalog.ReleaseSessionResult {
	d.mu.Lock()
	c := d.conversations[p.SessionID]
	d.mu.Unlock()
	if c == nil {
		return catalog.ReleaseSessionResult{Released: true}
	}
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	default:
		if a := c.working.Load(); a != nil && p.Background != "" {
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
		case a.hasPrograms():
			return catalog.ReleaseSessionResult{Reason: "terminals"}
		case a.own.wants.Load():
			return catalog.ReleaseSessionResult{Reason: "busy"}
		case len(tasks) > 0 || more:
			return catalog.ReleaseSessionResult{Reason: "background"}
		}
	}
	if a := c.agent; a != nil && p.Force && !a.hasPrograms() && !a.own.wants.Load() && a.cancelBackground() {
		return catalog.ReleaseSessionResult{Reason: "cancelled"}
	}
	c.dismiss()
	d.forget(p.SessionID)
	return catalog.ReleaseSessionResult{Released: true}
}

// end ends the agent when nobody uses it any more.
func (c *conversation) end() {
	c.busy <- struct{}{}
	c.dismiss()
	<-c.busy
}

// dismiss ends the agent, if there is one. Whoever calls it holds the token.
func (c *conversation) dismiss() {
	if c.agent != nil {
		c.agent.retire()
		c.agent = nil
	}
}
