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

// A turn is a task that an agent runs, with its open questions and tool calls.
type turn struct {
	*task.Task
	prompted   chan struct{} // closed when the prompt was written to the agent
	sent       sync.Once     // closes prompted
	cancelSent chan struct{} // closed when the cancel was sent to the agent, or the turn is over
	answers    deliveries

	background *backgroundWork // of the agent; a replay has its own
	terminals  *ownTerminals   // of the agent; a replay has its own
	subagents  *subagents      // of the agent; a replay has its own

	tools   toolCalls
	silence *silenceWatch
	mu      sync.Mutex                 // guards arrived and trouble
	arrived map[string][]*openQuestion // permission requests that requestPermission has not seen, by params
	trouble apiTrouble
	servers []acp.MCPServer // the servers offered to the agent; nil: not prepared yet

	// The agent reports the cost of its session so far. The turn's share is the difference.
	spent       *atomic.Uint64
	spentBefore float64

	modeChosen atomic.Bool            // the agent has the mode of the prompt, or has refused it
	modeSeen   atomic.Pointer[string] // the mode that warnUnasked checked last
	promptID   atomic.Pointer[string] // the id of the prompt's request, as raw JSON

	taking    sync.Mutex    // guards ended; locked while the turn processes output of the agent
	ended     bool          // later output belongs to another turn
	signalled chan struct{} // of a turn without a prompt: closed at the agent's end signal
	signal    sync.Once     // closes signalled
	yielding  atomic.Bool   // of a turn without a prompt: it must end because a prompt waits
	yields    chan struct{} // buffer of 1: yielding became true

	// Of an agent of version 2; taking guards accepted, active and earlier.
	accepted   bool               // the agent has taken the prompt
	active     bool               // it has reported that it works since the prompt was sent
	earlier    catalog.TokenUsage // of the agent's own work that was running when the turn began
	idleResult *promptResult      // the agent is idle, but not its sub-agents; guarded by taking
	idle       chan promptResult  // has the result once the turn has ended

	isKimi   *atomic.Bool // the agent is Kimi Code
	isReplay bool         // of a Replay: the hub has none of its terminals
	plans    []namedPlan  // only the goroutine that reads the agent uses it
	said     saidText     // only the goroutine that reads the agent uses it

	messageIDs []string // of its latest messages; only the goroutine that reads the agent uses it
}

func newTurn(of *task.Task, o Options) *turn {
	t := &turn{Task: of, prompted: make(chan struct{}), cancelSent: make(chan struct{}), signalled: make(chan struct{}), yields: make(chan struct{}, 1), background: &backgroundWork{}, terminals: &ownTerminals{}, subagents: &subagents{}, idle: make(chan promptResult, 1), isKimi: new(atomic.Bool)}
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

// delivered reports the answers from which the agent went on. Call it before the update that
// shows that is reported.
func (t *turn) delivered(approvals []string) {
	if len(approvals) > 0 {
		t.Event(catalog.EventPermissionTaken, catalog.PermissionTaken{ApprovalIDs: approvals})
	}
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

// methodSteering is a protocol extension of claude-agent-acp and codex-acp: a message for the
// agent in the middle of its turn. _meta.steering.supported of initialize announces it.
const methodSteering = "_session/steering"

// steering is a message in flight to a working agent. The goroutine that reads the agent records
// the message when it reads the answer, so it precedes the text that reacts to it.
type steering struct {
	one sync.Mutex // locked from request to answer

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
		if a := c.latest.Load(); a != nil {
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

// deliveries are the user's answers that were sent to a turn's agent, until the agent visibly
// continues from them. The zero value is empty.
//
// A written answer proves nothing: the agent may die before it reads it. After the answer is
// written, these events prove that the agent went on:
//
//   - an update of the tool call that the answer is about, unless it says that the call waits;
//   - any other update or request, if the agent was silent while it waited and had nothing else
//     open;
//   - the successful end of the turn that the agent itself reports.
type deliveries struct {
	mu      sync.Mutex          // guards the fields below
	asking  int                 // questions without an answer yet
	calls   map[string]struct{} // open tool calls
	acted   int                 // number of the agent's updates and requests
	asked   map[string]int      // acted at the time of each question, by call
	answers []delivery
	denied  *string // the latest denied call, if the agent has done nothing since; nil: none
}

type delivery struct {
	approval string
	call     string
	body     []byte // as it is written
	written  bool
	acted    int  // acted at the time of the question
	alone    bool // any next action of the agent proves the delivery
}

// questionAsked notes a question about a tool call. It returns the answers whose delivery this
// proves.
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

// questionClosed notes that a question was answered or withdrawn.
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

// refused notes that the agent receives a denial of a call.
func (d *deliveries) refused(call string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.denied = &call
}

// endedByDenial reports whether the agent has done nothing since a denial except to report the
// denied call as failed.
func (d *deliveries) endedByDenial() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.denied != nil
}

// written notes a message written to the agent, and recognizes an answer by its result.
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

// agentActed notes an update or request of the agent. It returns the answers whose delivery this
// proves.
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

// toolCallUpdated notes an update of a tool call. It returns the answers whose delivery this
// proves.
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
	if !open { // the call begins
		taken = d.actedLocked()
		if denied && status == "failed" { // the agent had not reported it before
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

// turnEnded returns the answers whose delivery the end of the turn proves.
func (d *deliveries) turnEnded() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.take(func(delivery) bool { return true })
}

// take removes and returns the written answers that fit. The caller holds mu.
func (d *deliveries) take(fits func(delivery) bool) (taken []string) {
	if len(d.answers) == 0 { // the usual case
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

// acted notes a request of the agent.
func (a *agent) acted() {
	if t := a.current.Load(); t != nil {
		t.delivered(t.answers.agentActed())
	}
}
