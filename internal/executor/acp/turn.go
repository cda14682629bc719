package acp

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// A turn is a task that an agent runs, with its open questions and tool calls.
type turn struct {
	*task.Task
	*record // of the agent; a replay has its own

	isReplay    bool            // of a Replay: the hub has none of its terminals
	servers     []acp.MCPServer // the servers offered to the agent; nil: not prepared yet
	spentBefore float64         // what the session had cost before the turn

	prompted   chan struct{}     // closed when the prompt was written to the agent
	sent       sync.Once         // closes prompted
	cancelSent chan struct{}     // closed when the cancel was sent to the agent, or the turn is over
	signalled  chan struct{}     // of a turn without a prompt: closed at the agent's end signal
	signal     sync.Once         // closes signalled
	yields     chan struct{}     // buffer of 1: yielding became true
	idle       chan promptResult // has the result once the turn has ended

	answers deliveries
	tools   toolCalls
	silence *silenceWatch

	// Only the goroutine that reads the agent uses these.
	plans      []namedPlan
	said       saidText
	messageIDs []string // of its latest messages

	// taking is locked while the turn processes output of the agent, which waits for the hub. So no
	// output is assigned to a turn that has ended. It guards the fields below.
	taking     sync.Mutex
	ended      bool               // later output belongs to another turn
	accepted   bool               // the agent has taken the prompt
	active     bool               // it has reported that it works since the prompt was sent
	earlier    catalog.TokenUsage // of the agent's own work that was running when the turn began
	idleResult *promptResult      // the agent is idle, but not its sub-agents

	mu         sync.Mutex                 // guards the fields below; held for a moment only
	arrived    map[string][]*openQuestion // permission requests that requestPermission has not seen, by params
	trouble    apiTrouble
	promptID   string  // the id of the prompt's request, as raw JSON; "": it is not being sent
	modeChosen bool    // the agent has the mode of the prompt, or has refused it
	modeSeen   *string // the mode that entersMode reported last
	yielding   bool    // of a turn without a prompt: it must end because a prompt waits
}

func newTurn(of *task.Task, o Options) *turn {
	t := &turn{
		Task: of, record: &record{},
		prompted: make(chan struct{}), cancelSent: make(chan struct{}), signalled: make(chan struct{}),
		yields: make(chan struct{}, 1), idle: make(chan promptResult, 1),
	}
	if of.Params.Unprompted {
		t.sent.Do(func() { close(t.prompted) })
	}
	after := cmp.Or(time.Duration(of.Launch.SilentAfterMS)*time.Millisecond, o.SilentAfter)
	inTool := cmp.Or(time.Duration(of.Launch.SilentToolAfterMS)*time.Millisecond, o.SilentToolAfter)
	if of.Params.Unprompted { // its silence usually is its end
		after = inTool
	}
	t.silence = newSilence(after, inTool, func(s catalog.Silence) { t.Event(catalog.EventSilence, s) })
	return t
}

// sending notes that the prompt is being written as the request with that id.
func (t *turn) sending(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.promptID = id
}

// sentAs returns the id of the prompt's request, or "" before it is written.
func (t *turn) sentAs() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.promptID
}

// yield notes that a prompt waits for the end of the turn.
func (t *turn) yield() {
	t.mu.Lock()
	t.yielding = true
	t.mu.Unlock()
	notify(t.yields)
}

func (t *turn) isYielding() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.yielding
}

// choseMode notes that the agent has the mode of the prompt, or has refused it.
func (t *turn) choseMode() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.modeChosen = true
}

// entersMode reports whether the agent has entered a mode that is new in the turn. It is false while
// Duet still chooses the mode of the prompt.
func (t *turn) entersMode(mode string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.Params.Unprompted && !t.modeChosen || t.modeSeen != nil && *t.modeSeen == mode {
		return false
	}
	t.modeSeen = &mode
	return true
}

// hasPrompt reports whether the prompt was written to the agent.
func (t *turn) hasPrompt() bool {
	select {
	case <-t.prompted:
		return true
	default:
		return false
	}
}

// used adds the usage of the agent's own work before it read the prompt. The caller holds taking.
func (t *turn) used(u *catalog.TokenUsage) {
	if u != nil {
		t.earlier.InputTokens += u.InputTokens
		t.earlier.OutputTokens += u.OutputTokens
		t.earlier.CacheReadTokens += u.CacheReadTokens
		t.earlier.CacheWriteTokens += u.CacheWriteTokens
	}
}

// usage returns the turn's usage, with the work before it. u is nil if the agent has not reported
// any.
func (t *turn) usage(u *catalog.TokenUsage) *catalog.TokenUsage {
	t.taking.Lock()
	defer t.taking.Unlock()
	if t.earlier == (catalog.TokenUsage{}) {
		return u
	}
	t.used(u)
	sum := t.earlier.Bounded()
	return &sum
}

// awaitCancel waits until the cancel was sent to the agent. A missing answer that arrives first
// would make the agent go on without it. isToEnd means that the turn will be stopped within soon,
// if it was not yet. life ends with the agent.
func (t *turn) awaitCancel(life context.Context, isToEnd bool, soon time.Duration) {
	if isToEnd && !t.Stopped() {
		patience := time.NewTimer(soon)
		defer patience.Stop()
		select {
		case <-t.Context().Done():
		case <-life.Done():
		case <-patience.C:
		}
	}
	if !t.Stopped() || !t.hasPrompt() {
		return
	}
	select {
	case <-t.cancelSent:
	case <-life.Done():
	}
}

// workingOn returns the agent that runs a task, or nil.
func (d *Driver) workingOn(task string) *agent {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.sessions {
		if a := c.latest.Load(); a != nil {
			if t := a.turns.now(); t != nil && t.ID == task {
				return a
			}
		}
	}
	return nil
}
