package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

const (
	// quietAfter is how long an agent that does not tell the end of a turn of its own has to
	// be silent, with nothing open, until the turn has ended; see catalog.AgentLaunch.
	quietAfter = 10 * time.Second
	// signalPatience is how many times longer that is for an agent that does tell the end: it
	// may think for longer, and what it says outside of its turns has no end.
	signalPatience = 6
	// taskWithin is how long the hub may take to send a task that it has begun.
	taskWithin = 10 * time.Second
	// cancelQuiet is the same for an agent that was told to end its turn.
	cancelQuiet = time.Second
)

// ownTurns is what an agent does while no prompt runs. Agents go on by themselves: a
// background task ends, and the model is told; /goal of codex begins turn after turn. The
// first thing that the agent says, does or asks then has the hub begin a task, and until
// that is there the agent is not read.
type ownTurns struct {
	wants     atomic.Bool   // the agent is not read until it has a turn
	wanted    chan struct{} // has room for one: wants has become true
	changed   chan struct{} // has room for one: the agent has another turn, or none
	answered  chan struct{} // has room for one: a question was answered
	retired   chan struct{} // closed when the agent is to end
	questions atomic.Int64  // that have arrived, and were not answered
	signals   atomic.Bool   // the agent tells when its turns end
	refused   *lastTask     // the hub has refused a task after this one; belongs to who reads the agent
}

func newOwnTurns() ownTurns {
	return ownTurns{wanted: make(chan struct{}, 1), changed: make(chan struct{}, 1), answered: make(chan struct{}, 1), retired: make(chan struct{})}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// isRetired reports whether the agent is to end.
func (o *ownTurns) isRetired() bool {
	select {
	case <-o.retired:
		return true
	default:
		return false
	}
}

func (o *ownTurns) turnChanged() { notify(o.changed) }

func (o *ownTurns) questionAnswered() {
	o.questions.Add(-1)
	notify(o.answered)
}

// take gives something that the agent says to its turn. Work of an agent that has none
// begins one. It reports false where there is no turn. It is called by who reads the agent.
func (a *agent) take(isWork func() bool, trigger func() *catalog.TurnTrigger, give func(*turn)) bool {
	for {
		t := a.current.Load()
		if t != nil {
			t.taking.Lock()
			if !t.ended || !isWork() { // a turn that has just ended takes the rest of what is told of it
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

// awaitTurn waits until the agent has another turn than the one that has ended, and has the
// hub begin one. It reports false if there will be none.
func (a *agent) awaitTurn(ended *turn, trigger *catalog.TurnTrigger) bool {
	last := a.last.Load()
	if last == nil || last.conversation == "" || a.own.refused == last { // nobody comes back to it
		return false
	}
	a.own.wants.Store(true)
	defer a.own.wants.Store(false)
	notify(a.own.wanted)
	ctx, cancel := context.WithCancel(a.driver.ctx)
	defer cancel()
	var begun chan error         // what the hub answers
	var overdue <-chan time.Time // the task that has begun does not come
	for {
		switch t := a.current.Load(); {
		case t != nil && t != ended:
			return true
		case t == nil && begun == nil:
			answer := make(chan error, 1)
			begun = answer
			a.driver.work.Go(func() {
				_, err := a.driver.hub.BeginTurn(ctx, catalog.BeginTurnParams{SessionID: last.conversation, TaskID: last.task, Trigger: trigger})
				answer <- err
			})
		}
		select {
		case <-a.own.changed:
		case <-overdue: // it was ended before it came here
			begun, overdue = nil, nil
		case err := <-begun:
			if err == nil {
				overdue = time.After(taskWithin)
				continue
			}
			a.driver.log.Warn("an agent goes on by itself, and what it says is lost: the hub begins no task for it", "agent", a.name, "err", err)
			a.own.refused = last
			return false
		case <-a.own.retired:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// ownTurn waits for the end of a turn that nobody has prompted.
func (a *agent) ownTurn(t *turn) (string, *task.Failure) {
	quiet := cmp.Or(time.Duration(t.Launch.QuietMS)*time.Millisecond, quietAfter)
	if a.settings.Session().Mode != nil {
		a.reportSettings(t)
	}
	stopping, told := t.Context().Done(), (<-chan struct{})(nil)
	look := time.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-t.signalled:
		case <-a.own.answered:
		case <-look.C:
		case <-stopping:
			stopping, told = nil, t.told
		case <-told:
			told, quiet = nil, cancelQuiet
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
		if failed := a.troubled(t); failed != nil && signalled {
			return "", failed
		}
		return "end_turn", nil
	}
}

// endQuiet ends a turn that nobody has prompted if the agent has told its end, or has been
// silent for long enough, and nothing is open. Else it returns when to look again.
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
	case a.own.questions.Load() > 0:
		return quiet, signalled // it is looked at when they are answered
	case signalled:
	case isOpen:
		return quiet, false
	case a.own.signals.Load() && !t.Stopped() && silent < signalPatience*quiet:
		return signalPatience*quiet - silent, false
	case silent < quiet:
		return quiet - silent, false
	}
	t.ended = true
	return 0, signalled
}

// isQuestion reports whether a request of an agent asks people something.
func isQuestion(method string) bool {
	return method == acp.ClientMethodSessionRequestPermission || method == acp.ClientMethodElicitationCreate
}

// isWorkRequest reports whether an agent that sends such a request does something.
func isWorkRequest(method string) bool {
	switch method {
	case acp.ClientMethodFsReadTextFile, acp.ClientMethodFsWriteTextFile, acp.ClientMethodTerminalCreate, qwenStartTurn:
		return true
	}
	return isQuestion(method)
}

// isWork reports whether an agent that sends such an update says or does something, rather
// than telling of its session.
func isWork(kind string, update []byte, status codexStatus) bool {
	switch kind {
	case "agent_message_chunk", "agent_thought_chunk":
		c := readChunk(update)
		return !c.isText || len(c.text) > 0
	case "tool_call", "tool_call_update", "plan":
		return true
	}
	return status.Codex.ThreadStatus.Type == "active"
}

// Extensions of the protocol by which agents tell of turns that nobody has prompted.
const (
	qwenStartTurn = "_qwencode/start_turn" // a request
	qwenEndTurn   = "_qwencode/end_turn"
	turnEnded     = "_session/turn_ended"
)

// notice takes a notification that is no update.
func (a *agent) notice(method string, _ []byte) {
	if method != qwenEndTurn && method != turnEnded {
		return
	}
	a.own.signals.Store(true)
	a.take(func() bool { return false }, nil, a.tellsEnd)
}

// tellsEnd notes that the agent tells the end of its turn. One that nobody has prompted ends
// with that, unless people are still to answer something; taking is held.
func (a *agent) tellsEnd(t *turn) {
	t.ended = t.ended || t.Params.Unprompted && a.own.questions.Load() == 0
	t.signal.Do(func() { close(t.signalled) })
}

// isEnd reports whether an update tells that a turn which nobody has prompted has ended, and
// notes that the agent tells such things.
//
//   - claude-agent-acp 0.101: usage_update with the origin of the turn in _meta, which is
//     "human" for a prompt;
//   - codex-acp 2: session_info_update with the status of its thread in _meta.
func (o *ownTurns) isEnd(kind string, update []byte, status codexStatus) bool {
	switch now := status.Codex.ThreadStatus.Type; {
	case now != "":
		o.signals.Store(true)
		return now != "active"
	case kind == "usage_update":
		var meta struct {
			Origin struct{ Kind string } `json:"_claude/origin"`
		}
		if raw := frame.Member(update, "_meta"); raw == nil || json.Unmarshal(raw, &meta) != nil || meta.Origin.Kind == "" {
			return false
		}
		o.signals.Store(true)
		return meta.Origin.Kind != "human"
	}
	return false
}

// workTrigger is why an agent does what an update tells, where it says so: qwen-code names
// the background task that has ended.
func workTrigger(update []byte) func() *catalog.TurnTrigger {
	return func() *catalog.TurnTrigger {
		var meta struct {
			Source         string
			BackgroundTask struct{ CommandLabel, Label string }
		}
		if raw := frame.Member(update, "_meta"); raw == nil || json.Unmarshal(raw, &meta) != nil || meta.Source == "" {
			return nil
		}
		return &catalog.TurnTrigger{Kind: meta.Source, Label: bounded(cmp.Or(meta.BackgroundTask.CommandLabel, meta.BackgroundTask.Label))}
	}
}

// requestTrigger is workTrigger for a request.
func requestTrigger(method string, params []byte) func() *catalog.TurnTrigger {
	return func() *catalog.TurnTrigger {
		var p struct{ Source string }
		if method != qwenStartTurn || json.Unmarshal(params, &p) != nil || p.Source == "" {
			return nil
		}
		return &catalog.TurnTrigger{Kind: p.Source}
	}
}
