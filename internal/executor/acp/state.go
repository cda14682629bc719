package acp

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

// The answer to a prompt means that the agent has taken it. state_update reports when the agent begins
// to work and when it is idle again, for a prompt or without one. Package acp makes the states of an
// agent of version 1 from its answer (https://agentclientprotocol.com/protocol/v2/prompt-lifecycle).

// A state is the content of a state_update.
type state struct {
	name       string
	result     promptResult     // of acp.StateIdle
	background []backgroundItem // all background work; nil: not reported
}

// A backgroundItem is background work that a state_update lists.
type backgroundItem struct {
	Type       string
	TerminalID string
	ToolCallID string
	SessionID  string // of a sub-agent
}

// id returns the agent's id of the item.
func (i backgroundItem) id() string { return cmp.Or(i.TerminalID, i.ToolCallID, i.SessionID) }

// readState reads a state_update. A malformed member counts as absent.
func readState(update []byte) (s state) {
	member := func(name string, value any) {
		if raw := rawjson.Member(update, name); raw != nil {
			_ = json.Unmarshal(raw, value)
		}
	}
	member("state", &s.name)
	member("stopReason", &s.result.StopReason)
	member("error", &s.result.Error)
	member(acp.MemberEnds, &s.result.Ends)
	s.result.Usage = bytes.Clone(rawjson.Member(update, "usage"))
	var items []json.RawMessage
	if member("background", &items); items != nil {
		s.background = make([]backgroundItem, len(items))
		for i, raw := range items {
			_ = json.Unmarshal(raw, &s.background[i])
		}
	}
	return s
}

// stateUpdate handles a state_update: work without a prompt begins a turn, and idle ends one.
// Only the goroutine that reads the agent calls it.
func (a *agent) stateUpdate(update []byte) {
	s := readState(update)
	isActive := s.name == acp.StateRunning || s.name == acp.StateRequiresAction
	if !isActive && s.name != acp.StateIdle {
		return
	}
	wasActive, cut := a.turns.reported(isActive)
	if s.background != nil {
		a.background.listed(s.background)
	}
	late := a.turns.latest() // the task for usage that no turn takes
	none := func() *catalog.TurnTrigger { return nil }
	taken := a.take(func() bool { return isActive }, none, func(t *turn) {
		t.silence.Sign()
		switch {
		case isActive:
			t.active, t.idleResult = t.active || t.isSent(), nil
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
			if t.idleResult == nil || s.result.StopReason != "" { // else it is a repetition with another list of background work
				r := s.result // a copy: a cancel changes its stop reason while the state is still read
				t.idleResult = &r
			}
			a.endIdle(t)
		case t.ended && t.Params.Unprompted: // the turn is already ending
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
	if u := s.result.usage(); !isActive && u != nil && late != nil && late.session != "" && !a.history.isLoading() {
		a.reportLate(*late, catalog.EventUsage, catalog.Usage{TokenUsage: *u})
	}
	if a.turns.now() == nil && s.background != nil { // else the end of the turn reports it
		a.reportBackground()
	}
}

// isIdle reports whether an idle state ends the agent's work in the turn. A state from before the
// agent took the prompt belongs to earlier work. One without a stop reason, when the agent has
// not worked since, is a repetition, such as one with another list of background work. The caller
// holds taking.
func (t *turn) isIdle(s state) bool {
	return !t.ended && (t.Params.Unprompted || t.accepted && (t.active || s.result.StopReason != ""))
}

// accepts notes that the agent has taken the prompt: it has answered it, or sent its text back.
// The caller holds taking.
func (t *turn) accepts() {
	t.accepted = t.accepted || t.isSent()
}

// isSent reports whether the prompt is being written or has been: the agent may answer it
// before the write returns.
func (t *turn) isSent() bool { return t.sentAs() != "" }

// awaitIdle waits until the agent is idle after a prompt that it has taken.
func (a *agent) awaitIdle(t *turn) (promptResult, error) {
	select {
	case r := <-t.idle:
		return r, r.failed()
	case <-a.conn.Done():
	}
	select { // everything read before the end has been processed
	case r := <-t.idle:
		return r, r.failed()
	default:
		return promptResult{}, acp.ErrClosed
	}
}

// failed returns the error that ended the turn, or nil.
func (r promptResult) failed() error {
	switch {
	case r.StopReason != acp.StopError:
		return nil
	case r.Error == nil || r.Error.Message == "":
		return acp.InternalError("it stopped with an error that it does not explain")
	}
	return r.Error
}

// terminalUpdate handles an update of a terminal that the agent runs itself. It returns false for
// an unreadable update. Only the goroutine that reads the agent calls it.
func (a *agent) terminalUpdate(update []byte) bool {
	task := ""
	if last := a.turns.latest(); last != nil {
		task = last.task
	}
	if t := a.turns.now(); t != nil {
		t.silence.Sign()
	}
	return a.history.isLoading() || a.shown.update(update, task, a.driver)
}
