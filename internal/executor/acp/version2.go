package acp

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// In version 2 of the protocol the answer to a prompt means that the agent has taken it.
// state_update says when the agent begins to work and when it is idle again, for a prompt or
// without one (https://agentclientprotocol.com/protocol/v2/prompt-lifecycle).

// States of state_update.
const (
	stateRunning        = "running"
	stateRequiresAction = "requires_action"
	stateIdle           = "idle"
)

// stopError is the stop reason of work that failed.
const stopError = "error"

// A state is a state_update.
type state struct {
	name       string
	result     promptResult     // of stateIdle
	background []backgroundItem // all background work; nil: not reported
}

// A backgroundItem is background work that a state_update lists.
type backgroundItem struct {
	Type       string
	TerminalID string
	ToolCallID string
	SessionID  string // of a sub-agent
}

// id is the agent's id of it.
func (i backgroundItem) id() string { return cmp.Or(i.TerminalID, i.ToolCallID, i.SessionID) }

// readState reads a state_update. A malformed member counts as absent.
func readState(update []byte) (s state) {
	member := func(name string, value any) {
		if raw := frame.Member(update, name); raw != nil {
			_ = json.Unmarshal(raw, value)
		}
	}
	member("state", &s.name)
	member("stopReason", &s.result.StopReason)
	member("error", &s.result.Error)
	s.result.Usage = bytes.Clone(frame.Member(update, "usage"))
	var items []json.RawMessage
	if member("background", &items); items != nil {
		s.background = make([]backgroundItem, len(items))
		for i, raw := range items {
			_ = json.Unmarshal(raw, &s.background[i])
		}
	}
	return s
}

// stateUpdate takes a state_update: work without a prompt begins a turn, and idle ends one.
// Only the goroutine that reads the agent calls it.
func (a *agent) stateUpdate(update []byte) {
	s := readState(update)
	isActive := s.name == stateRunning || s.name == stateRequiresAction
	if !isActive && s.name != stateIdle {
		return
	}
	wasActive := a.own.foreground.Swap(isActive)
	if s.background != nil {
		a.background.listed(s.background)
	}
	late := a.last.Load() // the run of usage that no turn takes
	var cut *lastTask
	if !isActive {
		cut = a.own.cut.Swap(nil)
	}
	none := func() *catalog.TurnTrigger { return nil }
	taken := a.take(func() bool { return isActive }, none, func(t *turn) {
		t.silence.Sign()
		switch {
		case isActive:
			t.active, t.held = t.active || t.isSent(), nil
		case !t.Params.Unprompted && !t.accepted: // the end of the agent's own work, before it reads the prompt
			t.active = false
			switch {
			case !wasActive:
			case cut != nil:
				late = cut
				return
			default:
				t.used(s.result.usage())
			}
		case t.isIdle(s):
			if u := s.result.usage(); u != nil && t.Params.Unprompted {
				t.Usage(*u)
			}
			if t.held == nil || s.result.StopReason != "" { // else it is repeated, with another list of background work
				t.held = &s.result
			}
			a.endHeld(t)
		case t.ended && t.Params.Unprompted: // it is being ended
			if u := s.result.usage(); u != nil && wasActive {
				t.Usage(*u)
			}
		case t.ended:
			return
		}
		late = nil
	})
	if !taken && cut != nil {
		late = cut
	}
	if u := s.result.usage(); !isActive && u != nil && late != nil && late.conversation != "" && !a.loading.Load() {
		a.reportLate(*late, catalog.EventUsage, catalog.Usage{TokenUsage: *u})
	}
	if a.current.Load() == nil && s.background != nil { // else the end of the turn reports it
		a.tellBackground()
	}
}

// isIdle reports whether an idle state ends the agent's own work in the turn. A state from
// before the agent took the prompt belongs to earlier work; one without a stop reason where the
// agent has not worked since is a repetition, such as one with another list of background work.
// taking is held.
func (t *turn) isIdle(s state) bool {
	return !t.ended && (t.Params.Unprompted || t.accepted && (t.active || s.result.StopReason != ""))
}

// accepts notes that the agent has taken the prompt: it has answered it, or sent its text
// back. taking is held.
func (t *turn) accepts() {
	t.accepted = t.accepted || t.isSent()
}

// isSent reports whether the prompt is being written or has been: the agent may answer it
// before the write returns.
func (t *turn) isSent() bool { return t.promptID.Load() != nil }

// awaitIdle waits until the agent is idle after a prompt that it has taken.
func (a *agent) awaitIdle(t *turn) (promptResult, error) {
	select {
	case r := <-t.idle:
		return r, r.failed()
	case <-a.conn.Done():
	}
	select { // what was read before the end has been taken
	case r := <-t.idle:
		return r, r.failed()
	default:
		return promptResult{}, acp.ErrClosed
	}
}

// failed is the error that ended the turn, or nil.
func (r promptResult) failed() error {
	switch {
	case r.StopReason != stopError:
		return nil
	case r.Error == nil || r.Error.Message == "":
		return acp.InternalError("it stopped with an error that it does not explain")
	}
	return r.Error
}

// terminalUpdate takes an update of a terminal of the agent's own. It returns false if that
// cannot be read. Only the goroutine that reads the agent calls it.
func (a *agent) terminalUpdate(update []byte) bool {
	task := ""
	if last := a.last.Load(); last != nil {
		task = last.task
	}
	if t := a.current.Load(); t != nil {
		t.silence.Sign()
	}
	return a.loading.Load() || a.shown.update(update, task, a.driver)
}
