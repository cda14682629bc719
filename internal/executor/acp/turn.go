package acp

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// A turn is a task in the hands of an agent: what was asked and answered in it,
// and which tools ran.
type turn struct {
	*task.Task
	prompted chan struct{} // closed when the agent has the prompt
	sent     sync.Once     // closes prompted
	told     chan struct{} // closed when the agent was told that the turn is to end, or the turn is over
	answers  deliveries

	background *backgroundWork // of the agent; a replay has its own
	terminals  *ownTerminals   // of the agent; a replay has its own
	subagents  *subagents      // of the agent; a replay has its own

	tools   toolCalls
	silence *silenceWatch
	mu      sync.Mutex                 // guards arrived and trouble
	arrived map[string][]*openQuestion // permission requests that requestPermission has not seen, by params
	trouble apiTrouble
	servers []mcpServer // that the agent is told of; nil: not yet put together

	// An agent tells what its session has cost; the turn's share is what was
	// added to it.
	spent       *atomic.Uint64
	spentBefore float64

	promptID atomic.Pointer[string] // the id of the request that has the prompt, as it is written

	taking    sync.Mutex    // guards ended; held while the turn takes something that the agent says
	ended     bool          // what the agent says from now on belongs to another turn
	signalled chan struct{} // of a turn without a prompt: closed when the agent has told its end
	signal    sync.Once     // closes signalled
	yielding  atomic.Bool   // of a turn without a prompt: it is to end because a prompt waits
	yields    chan struct{} // buffer of 1: yielding became true

	// Of an agent of version 2; taking guards accepted, active and earlier.
	accepted bool               // the agent has taken the prompt
	active   bool               // it has said that it works since it was sent the prompt
	earlier  catalog.TokenUsage // of the agent's own work that went on when the turn began
	held     *promptResult      // the agent is idle, but not its sub-agents; guarded by taking
	idle     chan promptResult  // has the result once the turn has ended

	isKimi   *atomic.Bool // the agent is Kimi Code
	isReplay bool         // of a Replay: the hub has none of its terminals
	plans    []namedPlan  // only the goroutine that reads the agent uses it
	said     saidText     // only the goroutine that reads the agent uses it

	messageIDs []string // of its latest messages; only the goroutine that reads the agent uses it
}

func newTurn(of *task.Task, o Options) *turn {
	t := &turn{Task: of, prompted: make(chan struct{}), told: make(chan struct{}), signalled: make(chan struct{}), yields: make(chan struct{}, 1), background: &backgroundWork{}, terminals: &ownTerminals{}, subagents: &subagents{}, idle: make(chan promptResult, 1), isKimi: new(atomic.Bool)}
	if of.Params.Unprompted {
		t.sent.Do(func() { close(t.prompted) })
	}
	after := cmp.Or(time.Duration(of.Launch.SilentAfterMS)*time.Millisecond, o.SilentAfter)
	inTool := cmp.Or(time.Duration(of.Launch.SilentToolAfterMS)*time.Millisecond, o.SilentToolAfter)
	if of.Params.Unprompted { // its silence is its end, mostly
		after = inTool
	}
	t.silence = newSilence(after, inTool, func(s catalog.Silence) { t.Event(catalog.EventSilence, s) })
	return t
}

// hasPrompt reports whether the agent has the prompt.
func (t *turn) hasPrompt() bool {
	select {
	case <-t.prompted:
		return true
	default:
		return false
	}
}

// used adds what the agent's own work used before it read the prompt. taking is held.
func (t *turn) used(u *catalog.TokenUsage) {
	if u != nil {
		t.earlier.InputTokens += u.InputTokens
		t.earlier.OutputTokens += u.OutputTokens
		t.earlier.CacheReadTokens += u.CacheReadTokens
		t.earlier.CacheWriteTokens += u.CacheWriteTokens
	}
}

// usage is what the turn used, with the work before it; u is nil if the agent has not told.
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

// delivered reports answers that the agent goes on from, before what shows it.
func (t *turn) delivered(approvals []string) {
	if len(approvals) > 0 {
		t.Event(catalog.EventPermissionTaken, catalog.PermissionTaken{ApprovalIDs: approvals})
	}
}

// awaitCancel waits until the agent was told that the turn is to end, before it is told
// that nobody has answered it: it would go on without what it has asked for. isToEnd says
// that the turn will be stopped, if it was not yet: soon, or that is not waited for. life
// ends with the agent.
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
	case <-t.told:
	case <-life.Done():
	}
}
