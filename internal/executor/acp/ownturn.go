package acp

import (
	"cmp"
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
)

const (
	// quietAfter is the default of AgentLaunch.QuietMS: an agent-initiated turn without an end
	// signal ends after so long a silence, if no tool call or question is open.
	quietAfter = 10 * time.Second
	// signalPatience multiplies quietAfter for agents that send end signals. Their models may
	// think for longer, and text outside of a turn has no end signal.
	signalPatience = 6
	// taskWithin is how long execute_prompt may take to follow the answer to begin_turn.
	taskWithin = 10 * time.Second
	// maxLate is how often that may fail in a row.
	maxLate = 2
	// cancelQuiet replaces quietAfter once session/cancel was sent.
	cancelQuiet = time.Second
)

// An agent-initiated turn is a turn without a prompt: a background task ends and the agent's model
// continues, or /goal of codex starts turn after turn.
//
// The first message, tool call or request without a prompt makes the executor call begin_turn.
// The executor stops reading the agent until the hub has sent the task, so no update is lost
// and the order holds.

// take passes an update or a request to the current turn. If there is none and isWork, it
// starts an agent-initiated turn and waits for it. It returns false if there is no turn. Only
// the goroutine that reads the agent calls it.
func (a *agent) take(isWork func() bool, trigger func() *catalog.TurnTrigger, give func(*turn)) bool {
	for {
		t := a.turns.now()
		if t != nil {
			t.taking.Lock()
			if a.turns.now() != t { // it no longer accepts reports
				t.taking.Unlock()
				continue
			}
			if !t.ended || !isWork() { // late usage and session updates still belong to the ended turn
				give(t)
				t.taking.Unlock()
				return true
			}
			t.taking.Unlock()
		}
		if !isWork() || !a.awaitTurn(t, trigger()) {
			return false
		}
	}
}

// awaitTurn waits for the turn after the ended one, and asks the hub to start it. It returns
// false if there will be none.
func (a *agent) awaitTurn(ended *turn, trigger *catalog.TurnTrigger) bool {
	last := a.turns.mayBegin()
	if last == nil {
		return false
	}
	a.turns.want(true)
	defer a.turns.want(false)
	ctx, cancel := context.WithCancel(a.driver.ctx)
	defer cancel()
	var begun chan error         // the answer to begin_turn
	var overdue <-chan time.Time // fires when the task does not follow that answer
	late := 0
	for {
		switch t := a.turns.now(); {
		case t != nil && t != ended:
			return true
		case t == nil && begun == nil:
			answer := make(chan error, 1)
			begun = answer
			a.driver.work.Go(func() {
				_, err := a.driver.hub.BeginTurn(ctx, catalog.BeginTurnParams{SessionID: last.session, TaskID: last.task, Trigger: trigger})
				answer <- err
			})
		}
		select {
		case <-a.turns.changed:
		case <-overdue: // the turn was interrupted before the hub sent it, or could not start
			begun, overdue = nil, nil
			if late++; late == maxLate {
				a.driver.log.Warn("output of an agent without a prompt is dropped: the hub sends no task", "agent", a.name)
				a.turns.refuse(last)
				return false
			}
		case err := <-begun:
			if err == nil {
				overdue = time.After(taskWithin)
				continue
			}
			a.driver.log.Warn("output of an agent without a prompt is dropped: the hub refused begin_turn", "agent", a.name, "err", err)
			a.turns.refuse(last)
			return false
		case <-a.turns.retired:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// ownTurn waits for the end of an agent-initiated turn.
func (a *agent) ownTurn(t *turn) (string, *task.Failure) {
	quiet := cmp.Or(time.Duration(t.Launch.QuietMS)*time.Millisecond, quietAfter)
	if a.settings.Session().Mode != nil {
		a.reportSettings(t)
		a.warnUnasked(t)
	}
	stopping, cancelSent := t.Context().Done(), (<-chan struct{})(nil)
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-t.signalled:
		case <-t.yields:
		case <-a.requests.answered:
		case <-look.C:
		case <-stopping:
			stopping, cancelSent = nil, t.cancelSent
		case <-cancelSent:
			cancelSent, quiet = nil, cancelQuiet
			t.silence.Sign()
		case <-a.conn.Done():
			a.gone()
			return "", a.exited()
		}
		left, signalled := a.endQuiet(t, quiet)
		switch {
		case left > 0:
			look.Reset(left)
			continue
		case t.Stopped():
			return "cancelled", nil
		}
		t.delivered(t.answers.turnEnded())
		if failed := a.codexFailure(t); failed != nil && signalled {
			return "", failed
		}
		select {
		case r := <-t.idle: // of an agent that reports its states
			if err := r.failed(); err != nil {
				return "", a.failure(err)
			}
			return cmp.Or(r.StopReason, "end_turn"), nil
		default:
		}
		return "end_turn", nil
	}
}

// YieldTurn ends an agent-initiated turn early, because a prompt waits. The agent works on, and
// its later output belongs to the turn of the prompt. Only some agents take a prompt at any time and
// report when they have read it (acp.Initialized.TakesPromptsAtWork). The others do not
// distinguish the end of their own work from that of the prompt. A turn with an open question
// ends after the answer, since a prompt would withdraw the question. A turn with an open tool
// call ends after the call.
func (d *Driver) YieldTurn(p catalog.YieldTurnParams) catalog.YieldTurnResult {
	a := d.workingOn(p.TaskID)
	if a == nil {
		return catalog.YieldTurnResult{Outcome: catalog.YieldUnknown}
	}
	t := a.turns.now()
	if t == nil || t.ID != p.TaskID {
		return catalog.YieldTurnResult{Outcome: catalog.YieldUnknown}
	}
	if !t.Params.Unprompted || !a.info.TakesPromptsAtWork() {
		return catalog.YieldTurnResult{Outcome: catalog.YieldRefused}
	}
	t.yield()
	return catalog.YieldTurnResult{Outcome: catalog.YieldYielding}
}

// yieldAgain is the interval at which a yielding turn checks whether its tool calls have ended.
const yieldAgain = 50 * time.Millisecond

// endQuiet ends an agent-initiated turn in three cases: after an end signal, when a prompt waits
// that the agent accepts, or after a long enough silence with nothing open. Otherwise it returns
// when to check again.
func (a *agent) endQuiet(t *turn, quiet time.Duration) (again time.Duration, signalled bool) {
	t.taking.Lock()
	defer t.taking.Unlock()
	select {
	case <-t.signalled:
		signalled = true
	default:
	}
	silent, isOpen := t.silence.Rest()
	switch {
	case t.ended:
		return 0, signalled
	case a.requests.hasQuestion():
		return quiet, signalled // the answers wake ownTurn
	case signalled:
	case t.isYielding() && !t.Stopped() && isOpen:
		return min(quiet, yieldAgain), false // the end of a tool call belongs to its turn
	case t.isYielding() && !t.Stopped():
	case a.turns.isWorking() && !t.Stopped():
		return quiet, false
	case isOpen:
		return quiet, false
	case a.turns.sendsSignals() && !t.Stopped() && silent < signalPatience*quiet:
		return signalPatience*quiet - silent, false
	case silent < quiet:
		return quiet - silent, false
	}
	t.ended = true
	return 0, signalled
}

// isQuestion reports whether an agent's request asks the user something.
func isQuestion(method string) bool {
	return method == acp.MethodRequestPermission || method == acp.MethodElicit
}

// isWorkRequest reports whether a request starts an agent-initiated turn.
func isWorkRequest(method string) bool {
	switch method {
	case acp.MethodReadTextFile, acp.MethodWriteTextFile, acp.MethodTerminalCreate, qwenStartTurn:
		return true
	}
	return isQuestion(method)
}

// isWork reports whether an update starts an agent-initiated turn. Updates about the session
// itself, such as its title, its commands and its usage, do not.
func isWork(kind string, update []byte, status codexStatus) bool {
	switch kind {
	case "agent_message_chunk", "agent_thought_chunk":
		c := readChunk(update)
		return !c.isText || len(c.text) > 0
	case "agent_message", "agent_thought":
		return len(contentOf(update)) > 0
	case "subagent_update":
		s := readState(rawjson.Member(update, "state"))
		return s.name == acp.StateRunning || s.name == acp.StateRequiresAction
	case "tool_call", "tool_call_update", "tool_call_content_chunk", "plan", "plan_update":
		return true
	}
	return status.isActive()
}

// methodTurnEnded is a protocol extension: the notification that an agent-initiated turn has ended.
const methodTurnEnded = "_session/turn_ended"

// notice handles notifications other than session/update.
func (a *agent) notice(method string, params []byte) {
	if method == acp.MethodElicitationDone {
		a.elicited(params)
	}
	if method != qwenEndTurn && method != methodTurnEnded {
		return
	}
	a.turns.signalled()
	a.take(func() bool { return false }, nil, a.handleEndSignal)
}

// handleEndSignal handles an end signal. An agent-initiated turn ends with it, unless a question is
// still open. The caller holds taking.
func (a *agent) handleEndSignal(t *turn) {
	t.ended = t.ended || t.Params.Unprompted && !a.requests.hasQuestion()
	t.signal.Do(func() { close(t.signalled) })
}

// isEnd reports whether an update is the end signal of an agent-initiated turn, and notes that
// the agent sends such signals.
func (s *turns) isEnd(kind string, update []byte, status codexStatus) bool {
	isSignal, isEnd := status.endSignal()
	if !isSignal {
		isSignal, isEnd = claudeEndSignal(kind, update)
	}
	if isSignal {
		s.signalled()
	}
	return isEnd
}
