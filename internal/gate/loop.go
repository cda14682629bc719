package gate

import (
	"cmp"
	"context"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Resume repeats the checks that a dead process did not finish.
func (e *Engine) Resume(ctx context.Context) error {
	loops, err := e.opts.Store.CheckedLoops(ctx)
	for _, l := range loops {
		e.start(l.Turn)
	}
	return err
}

// Begin gives a turn gates and replaces its existing ones. The caller has checked spec.
func (e *Engine) Begin(t store.Tx, turn domain.Turn, spec Spec) error {
	if len(spec.Gates) == 0 {
		return nil
	}
	l, has, err := found(t.GateLoop(e.ctx, turn.ID))
	if err != nil {
		return err
	}
	if has {
		l.State, l.Reason = domain.LoopStopped, "other gates were asked for"
		if err := t.UpdateGateLoop(l); err != nil {
			return err
		}
	}
	configured, err := e.configured()
	if err != nil {
		return err
	}
	l = domain.GateLoop{
		Session: turn.Session, Turn: turn.ID, MaxIterations: cmp.Or(spec.MaxIterations, DefaultIterations),
		Iteration: 1, State: domain.LoopWorking,
	}
	for _, name := range spec.Gates {
		_, is, err := configured.trusted(name)
		if err != nil {
			return err
		}
		l.Gates = append(l.Gates, domain.Gate{Name: name, Configured: is})
	}
	return t.InsertGateLoop(&l)
}

// Follow adds a new turn to the loop of the previous turn in its session, if that was
// interrupted.
func (e *Engine) Follow(t store.Tx, turn domain.Turn) error {
	if turn.Parent == 0 || turn.Restricted {
		return nil
	}
	l, has, err := found(t.GateLoop(e.ctx, turn.Parent))
	if err != nil || !has || l.Turn != turn.Parent || l.Session != turn.Session || l.State != domain.LoopStopped {
		return err
	}
	parent, err := t.Turn(e.ctx, turn.Parent)
	if err != nil || parent.State == domain.Completed || parent.State == domain.Discarded {
		return err
	}
	l.Turn, l.State, l.Reason = turn.ID, domain.LoopWorking, ""
	return t.UpdateGateLoop(l)
}

// Changed handles a state change of a turn: the gates are checked when it has completed.
func (e *Engine) Changed(t store.Tx, turn domain.Turn) error {
	if turn.State != domain.Starting && !turn.State.Ended() {
		return nil
	}
	l, has, err := found(t.GateLoop(e.ctx, turn.ID))
	if err != nil || !has || l.Turn != turn.ID || l.State != domain.LoopWorking {
		return err
	}
	switch turn.State {
	case domain.Starting:
		return announce(t, turn, domain.IterationStarted{
			Iteration: l.Iteration, MaxIterations: l.MaxIterations, Gates: names(l.Gates),
		})
	case domain.Completed:
		l.State = domain.LoopChecking
		t.AfterCommit(func() { e.start(turn.ID) })
		return t.UpdateGateLoop(l)
	}
	return e.end(t, l, turn, domain.LoopStopped, cmp.Or(turn.Error, "the turn is "+turn.State.Words()))
}

// Stop ends the loop of an ended turn and stops its check. If a later turn of the loop is active,
// current is its id and the caller must end it; otherwise current is 0.
func (e *Engine) Stop(t store.Tx, turn domain.Turn, reason string) (stopped bool, current int64, err error) {
	l, has, err := found(t.GateLoop(e.ctx, turn.ID))
	if err != nil || !has {
		return false, 0, err
	}
	switch l.State {
	case domain.LoopWorking:
		return false, l.Turn, nil
	case domain.LoopChecking:
		last, err := t.Turn(e.ctx, l.Turn)
		if err != nil {
			return false, 0, err
		}
		e.opts.Turns.MayStart(t)
		t.AfterCommit(func() { e.cancel(last.ID) })
		return true, 0, e.end(t, l, last, domain.LoopStopped, reason)
	}
	return false, 0, nil
}

func names(gates []domain.Gate) []string {
	list := make([]string, len(gates))
	for i, g := range gates {
		list[i] = g.Name
	}
	return list
}

// Await waits until the loop of a turn has ended, or ctx ends. has is false if the turn has no loop.
func (e *Engine) Await(ctx context.Context, turn int64) (l domain.GateLoop, has bool, err error) {
	if l, has, err = e.Of(ctx, turn); err != nil || !has {
		return l, has, err
	}
	over := make(chan struct{})
	e.mu.Lock()
	e.awaiting[l.ID] = append(e.awaiting[l.ID], over)
	e.mu.Unlock()
	defer e.stopAwaiting(l.ID, over)
	// The loop may have ended before the waiter was registered.
	if l, has, err = e.Of(ctx, turn); err != nil || !has || l.IsOver() {
		return l, has, err
	}
	select {
	case <-over:
		return e.Of(ctx, turn)
	case <-ctx.Done():
		return l, true, ctx.Err()
	case <-e.ctx.Done():
		return l, true, domain.ErrEnding
	}
}

// stopAwaiting removes a waiter.
func (e *Engine) stopAwaiting(loop int64, waiter chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := slices.DeleteFunc(e.awaiting[loop], func(c chan struct{}) bool { return c == waiter })
	if len(left) == 0 {
		delete(e.awaiting, loop)
		return
	}
	e.awaiting[loop] = left
}
