package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
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
	servers []acp.MCPServer // that the agent is told of; nil: not yet put together

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

// methodSteering is a protocol extension of claude-agent-acp and codex-acp: a message for the
// agent in the middle of its turn. _meta.steering.supported of initialize announces it.
const methodSteering = "_session/steering"

// steering is a message in flight to a working agent. The goroutine that reads the agent
// records the message when it reads the answer, so it precedes the text that reacts to it.
type steering struct {
	one sync.Mutex // held from request to answer

	mu   sync.Mutex // guards the fields below
	text string     // the message in flight, or ""
	id   string     // its request id as raw JSON; "" before it is written
}

type steerRequest struct {
	SessionID string          `json:"sessionId"`
	Prompt    []acp.Content   `json:"prompt"`
	Meta      json.RawMessage `json:"_meta"`
}

// refuseIdle makes an idle agent refuse the message instead of starting a turn.
var refuseIdle = json.RawMessage(`{"steering":{"idleBehavior":"promptRequired"}}`)

// Steer sends a message to the agent in the middle of a task's turn.
func (d *Driver) Steer(ctx context.Context, p catalog.SteerParams) catalog.SteerResult {
	refused := catalog.SteerResult{Outcome: catalog.SteerRefused}
	a := d.workingOn(p.TaskID)
	if a == nil || string(toolinput.At(a.info.Meta, "steering", "supported")) != "true" {
		return refused
	}
	s := &a.steering
	s.one.Lock()
	defer s.one.Unlock()
	t := a.current.Load()
	if t == nil || t.ID != p.TaskID {
		return refused
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.StartTimeout)
	defer cancel()
	select {
	case <-t.prompted:
	case <-t.Context().Done():
	case <-a.life.Done():
	case <-ctx.Done():
	}
	if t.Stopped() || !t.hasPrompt() {
		return refused
	}
	s.begin(p.Text)
	defer s.begin("")
	result, err := acp.Call[steerAnswer](ctx, a.conn, methodSteering, steerRequest{
		SessionID: a.session, Prompt: []acp.Content{acp.TextContent(p.Text)}, Meta: refuseIdle,
	})
	if err != nil || result.Outcome != catalog.SteerInjected {
		return refused
	}
	return catalog.SteerResult{Outcome: catalog.SteerInjected}
}

type steerAnswer struct {
	Outcome string `json:"outcome"`
}

// workingOn returns the agent that runs a task, or nil.
func (d *Driver) workingOn(task string) *agent {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conversations {
		if a := c.working.Load(); a != nil {
			if t := a.current.Load(); t != nil && t.ID == task {
				return a
			}
		}
	}
	return nil
}

func (s *steering) begin(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text, s.id = text, ""
}

// written records the id of the request that carries the message.
func (s *steering) written(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text != "" && s.id == "" && string(frame.Member(message, "method")) == `"`+methodSteering+`"` {
		s.id = string(frame.Member(message, "id"))
	}
}

// answered returns the message if this is the answer that accepts it, or "".
func (s *steering) answered(id, result []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var answer steerAnswer
	if s.id == "" || s.id != string(id) || json.Unmarshal(result, &answer) != nil || answer.Outcome != catalog.SteerInjected {
		return ""
	}
	return s.text
}

// deliveries are the answers of humans that a turn's agent was given, until it
// is seen to go on from them. The zero value has none.
//
// That an answer is in the agent's pipe shows nothing: the agent may die before
// it reads it. What shows that it went on, once the answer is on its way, is
//
//   - what it tells of the very tool call that the answer is about, beyond that
//     the call waits;
//   - whatever else it says or wants, if it was silent while it waited and had
//     nothing else open: then there was nothing else to go on from;
//   - the end of its turn, of its own accord and without an error.
type deliveries struct {
	mu      sync.Mutex          // guards the fields below
	asking  int                 // questions that wait for their answers
	calls   map[string]struct{} // that have begun and not ended
	acted   int                 // how often the agent said or wanted something
	asked   map[string]int      // acted as it was when each of them was asked, by call
	answers []delivery
	denied  *string // the call that was denied last, if the agent has done nothing since; nil: none
}

type delivery struct {
	approval string
	call     string
	body     []byte // as it is written
	written  bool
	acted    int  // when it was asked
	alone    bool // whatever the agent does next, it does because of this
}

// questionAsked notes a question of a tool call, and returns the answers that
// this shows to be taken.
func (d *deliveries) questionAsked(call string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := d.actedLocked()
	d.asking++
	if d.asked == nil {
		d.asked = make(map[string]int)
	}
	d.asked[call] = d.acted
	return taken
}

// questionClosed notes that a question has its answer, or was given up.
func (d *deliveries) questionClosed(call string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asking--
	delete(d.asked, call)
}

// answered notes an answer that is about to be written.
func (d *deliveries) answered(approval, call string, answer any) {
	body, err := json.Marshal(answer)
	if err != nil { // then it is not written either
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers = append(d.answers, delivery{approval: approval, call: call, body: body, acted: d.asked[call]})
}

// refused notes that the agent is told that a call was denied.
func (d *deliveries) refused(call string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.denied = &call
}

// endedByDenial reports whether the agent has done nothing since a call was denied,
// but to tell that this has failed.
func (d *deliveries) endedByDenial() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.denied != nil
}

// written notes what is written to the agent: which answer it is, by its result.
func (d *deliveries) written(message []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.ContainsFunc(d.answers, func(a delivery) bool { return !a.written }) {
		return
	}
	result := frame.Member(message, "result")
	for i := range d.answers {
		a := &d.answers[i]
		if a.written || !bytes.Equal(result, a.body) {
			continue
		}
		a.written = true
		others := len(d.calls)
		if _, open := d.calls[a.call]; open {
			others--
		}
		a.alone = others == 0 && d.asking == 0 && a.acted == d.acted
		return
	}
}

// agentActed notes that the agent says or wants something, and returns the
// answers that this shows to be taken.
func (d *deliveries) agentActed() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.actedLocked()
}

func (d *deliveries) actedLocked() []string {
	d.acted++
	d.denied = nil
	return d.take(func(a delivery) bool { return a.alone })
}

// toolCallUpdated notes what the agent tells of a tool call, and returns the
// answers that this shows to be taken.
func (d *deliveries) toolCallUpdated(id, status string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, open := d.calls[id]
	waits := status == "" || status == "pending"
	var taken []string
	denied := d.denied != nil && *d.denied == id
	if !denied {
		d.denied = nil
	}
	if !open { // it begins
		taken = d.actedLocked()
		if denied && status == "failed" { // of which the agent had not told before
			d.denied = &id
		}
	}
	if !waits {
		d.acted++
		taken = append(taken, d.take(func(a delivery) bool { return a.call == id })...)
	}
	if status == "completed" || status == "failed" {
		delete(d.calls, id)
	} else if open || len(d.calls) < maxToolCalls {
		if d.calls == nil {
			d.calls = make(map[string]struct{})
		}
		d.calls[id] = struct{}{}
	}
	return taken
}

// turnEnded returns the answers that the end of the turn shows to be taken.
func (d *deliveries) turnEnded() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.take(func(delivery) bool { return true })
}

// take removes what was written and fits; mu is held.
func (d *deliveries) take(fits func(delivery) bool) (taken []string) {
	if len(d.answers) == 0 { // nearly always
		return nil
	}
	d.answers = slices.DeleteFunc(d.answers, func(a delivery) bool {
		if !a.written || !fits(a) {
			return false
		}
		taken = append(taken, a.approval)
		return true
	})
	return taken
}

// acted notes that the agent wants something of us.
func (a *agent) acted() {
	if t := a.current.Load(); t != nil {
		t.delivered(t.answers.agentActed())
	}
}
