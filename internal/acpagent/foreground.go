package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// A foreground is the unfinished turns of a session, for a client with states.
// They determine the session's state, whichever client began them. A prompt enters the
// session when its turn begins: until then the client gets neither the message nor the
// response. session.mu guards the fields; they change only while session.order is locked.
type foreground struct {
	turns      []*hubTurn // unfinished turns, in the order of their prompts
	state      string     // as sent to the client; "": idle
	background []domain.BackgroundTask
	ended      chan struct{} // closed when no turn is left; nil if no goroutine waits
}

// A hubTurn is a turn of the hub in the session.
type hubTurn struct {
	id       string
	state    domain.State       // the hub's state
	prompt   *acp.MessageUpdate // until it is inserted, or nil
	inserted bool               // it has begun
	edited   string             // another client's edit of the waiting prompt; "": none
}

// get returns a turn, and adds an unknown one.
func (f *foreground) get(id string) *hubTurn {
	if r := f.find(id); r != nil {
		return r
	}
	r := &hubTurn{id: id, state: domain.Queued}
	f.turns = append(f.turns, r)
	return r
}

// find returns a turn, or nil.
func (f *foreground) find(id string) *hubTurn {
	if i := slices.IndexFunc(f.turns, func(r *hubTurn) bool { return r.id == id }); i >= 0 {
		return f.turns[i]
	}
	return nil
}

// remove removes a turn that has ended, and returns it, or nil if it is unknown.
func (f *foreground) remove(id string) *hubTurn {
	r := f.find(id)
	f.turns = slices.DeleteFunc(f.turns, func(other *hubTurn) bool { return other == r })
	if len(f.turns) == 0 && f.ended != nil {
		close(f.ended)
		f.ended = nil
	}
	return r
}

// whenEnded returns a channel that is closed when no turn is left.
func (f *foreground) whenEnded() <-chan struct{} {
	if f.ended == nil {
		f.ended = make(chan struct{})
	}
	ended := f.ended
	if len(f.turns) == 0 {
		close(f.ended)
		f.ended = nil
	}
	return ended
}

// now returns the state of the session.
func (f *foreground) now() string {
	state := acp.StateIdle
	for _, r := range f.turns {
		switch {
		case !r.inserted:
		case r.state == domain.WaitingInput:
			state = acp.StateRequiresAction
		default:
			return acp.StateRunning
		}
	}
	return state
}

// hold stores the prompt of a turn until the turn begins. It returns false if the turn has begun.
func (s *session) hold(id string, updates []any) bool {
	messages := s.translator.Client.Updates(updates...)
	if len(messages) != 1 {
		return false
	}
	message, ok := messages[0].(acp.MessageUpdate)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.work.get(id)
	if !ok || r.inserted {
		return false
	}
	r.prompt = &message
	return true
}

// turnChanged handles a new state of a turn that has not ended.
func (s *session) turnChanged(id string, state domain.State) {
	if !s.hasStates || state == domain.Draft {
		return
	}
	s.mu.Lock()
	r := s.work.get(id)
	r.state = state
	s.mu.Unlock()
	if state == domain.Running || state == domain.WaitingInput {
		s.insert(r)
		s.sendState(false)
	}
}

// insert sends the prompt of a turn that begins. If it is the client's own prompt, insert answers
// the client's request, with the content as the client wrote it.
func (s *session) insert(r *hubTurn) {
	s.mu.Lock()
	message, isInserted := r.prompt, r.inserted
	r.prompt, r.inserted = nil, true
	i := slices.IndexFunc(s.turns, func(t *turn) bool { return t.id == r.id })
	if i >= 0 && !isInserted {
		if message == nil {
			message = &acp.MessageUpdate{Kind: acp.KindUserMessage, MessageID: uuid.NewString()}
		}
		message.Content = make([]any, len(s.turns[i].prompt))
		for n, block := range s.turns[i].prompt {
			message.Content[n] = block
		}
	}
	if message != nil && r.edited != "" {
		message.Content = withText(message.Content, r.edited)
	}
	s.mu.Unlock()
	if message == nil || isInserted {
		return // the agent began the turn by itself, or the replay had the prompt
	}
	s.send(*message)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endTurns(r.id, outcome{inserted: message.MessageID})
}

// promptEdited handles a new text of a waiting prompt. A client without states already has the
// prompt, so it gets a message with the new text.
func (s *session) promptEdited(turn string, d *protocol.QueueEvent) {
	text := protocol.Value(d.Prompt)
	if text == "" {
		return // the prompt was only moved in the queue
	}
	if d.Truncated {
		text += " […]"
	}
	if !s.hasStates {
		s.send(words("\n\n[a prompt that waits was changed to: %s]\n", text))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.work.find(turn); r != nil && !r.inserted {
		r.edited = text
	}
}

// withText replaces all texts in a prompt's content blocks by one. The other blocks stay.
func withText(blocks []any, text string) []any {
	list := []any{acp.TextContent(text)}
	for _, block := range blocks {
		raw, err := json.Marshal(block)
		var kind struct{ Type string }
		if err == nil && json.Unmarshal(raw, &kind) == nil && kind.Type != "text" {
			list = append(list, block)
		}
	}
	return list
}

// turnEnded handles the end of a turn. isAwaited means that the client waits for the response to
// its prompt. The session is idle if no other turn has begun.
func (s *session) turnEnded(id string, o outcome, isAwaited bool) {
	why, failed := o.stopped()
	s.mu.Lock()
	r := s.work.remove(id)
	s.mu.Unlock()
	if r != nil && !r.inserted {
		if isAwaited && (failed || why == acp.StopCancelled) || !failed && why == acp.StopCancelled {
			return // its prompt was never inserted, and the response reports that
		}
		s.insert(r)
		s.send(s.stateUpdate(acp.StateRunning)...)
	}
	s.mu.Lock()
	state := s.work.now()
	s.mu.Unlock()
	if state != acp.StateIdle {
		s.sendState(false)
		return
	}
	updates := s.stateUpdate(state)
	end := updates[len(updates)-1].(acp.StateUpdate)
	response, err := s.ending(s.ctx, id, o)
	end.StopReason, end.Usage = response.StopReason, response.Usage
	if err != nil {
		end.StopReason, end.Error = acp.StopError, err
	}
	updates[len(updates)-1] = end
	s.send(updates...)
}

// requiresAction handles a question in a turn. The hub sends the new state after the question, but
// the protocol requires the state first.
func (s *session) requiresAction(id string) {
	s.mu.Lock()
	r := s.work.find(id)
	waits := r != nil && r.inserted && r.state == domain.Running
	if waits {
		r.state = domain.WaitingInput
	}
	s.mu.Unlock()
	if waits {
		s.sendState(false)
	}
}

// backgroundChanged handles a new list of the agent's background work; nil means no change.
func (s *session) backgroundChanged(tasks []domain.BackgroundTask) {
	if !s.hasStates || tasks == nil {
		return
	}
	s.mu.Lock()
	isSame := len(tasks) == 0 && len(s.work.background) == 0 || reflect.DeepEqual(tasks, s.work.background)
	s.work.background = tasks
	s.mu.Unlock()
	if !isSame {
		s.sendState(true)
	}
}

// sendState sends the state of the session if it has changed, or always.
func (s *session) sendState(always bool) {
	s.mu.Lock()
	state, known := s.work.now(), s.work.state
	s.mu.Unlock()
	if known == "" {
		known = acp.StateIdle
	}
	if always || state != known {
		s.send(s.stateUpdate(state)...)
	}
}

// stateUpdate returns a state with the background work, after updates for its terminals and tool
// calls that the client does not know.
func (s *session) stateUpdate(state string) []any {
	s.mu.Lock()
	s.work.state = state
	tasks := s.work.background
	s.mu.Unlock()
	updates, items := s.translator.Background(tasks)
	return append(updates, acp.StateUpdate{Kind: acp.KindState, State: state, Background: items})
}

// turnsOf returns the turns of a session that have not ended, the oldest first. last is
// the session's last turn.
func (a *agent) turnsOf(ctx context.Context, last protocol.Turn) (turns []*hubTurn, err error) {
	for s := last; ; {
		switch {
		case s.State == domain.Draft, s.State == domain.Cancelled: // an earlier turn may be active
		case s.State.Ended():
			return turns, nil
		default:
			turns = slices.Insert(turns, 0,
				&hubTurn{id: s.ID, state: s.State, inserted: s.State != domain.Queued && s.State != domain.Starting})
		}
		if s.Parent == "" {
			return turns, nil
		}
		before, _, err := hubclient.Turn(ctx, a.hub, s.Parent)
		if err != nil || before.SessionUUID != last.SessionUUID {
			return turns, err
		}
		s = before
	}
}

// A turn is an unanswered prompt of the client.
type turn struct {
	id        string // the id of the hub's turn, once it has begun; guarded by session.mu
	cancelled bool   // guarded by session.mu
	claimed   bool   // its handler has started; guarded by session.mu
	ended     chan outcome
	prompt    []json.RawMessage // its content blocks, once it is claimed; guarded by session.mu
	before    <-chan struct{}   // closed when the previous prompt has begun, or never will; nil: no previous prompt
	begun     chan struct{}
	markBegun func() // closes begun
}

// An outcome is how a turn ended.
type outcome struct {
	state                 domain.State
	stopReason, err, code string
	authMethods           []domain.AuthMethod

	inserted string // for a client with states: the id of the prompt, if the turn has just begun and not ended
}

func outcomeOf(d *protocol.TurnStateEvent) outcome {
	return outcome{state: d.State, stopReason: d.StopReason, err: d.Error, code: d.ErrorCode, authMethods: d.AuthMethods}
}

func newTurn() *turn {
	t := &turn{ended: make(chan outcome, 1), begun: make(chan struct{})}
	t.markBegun = sync.OnceFunc(func() { close(t.begun) })
	return t
}

// end ends the turn, once.
func (t *turn) end(o outcome) {
	select {
	case t.ended <- o:
	default:
	}
}

// interruptOwn ends the client's turns, and waits until each interrupt was sent.
func (s *session) interruptOwn() {
	s.mu.Lock()
	var ids []string
	for id, goesOn := range s.ours {
		if goesOn {
			ids = append(ids, id)
		}
	}
	for _, t := range s.turns {
		t.cancelled = true
	}
	s.mu.Unlock()
	for _, id := range ids {
		s.interrupt(id)
	}
}

// endWithin limits the wait of session/close for the turns to end.
const endWithin = 30 * time.Second

// endWork ends the turns of a session, waits until their ends were sent to the client, and
// ends the background work.
func (s *session) endWork(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, endWithin)
	defer cancel()
	for _, id := range s.cancelled() {
		s.interrupt(id)
	}
	s.mu.Lock()
	ended := s.work.whenEnded()
	s.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-s.conn.Stopping():
		return
	}
	s.order.Lock() // waits for the last state update
	defer s.order.Unlock()
	s.mu.Lock()
	isBusy := len(s.work.background) > 0
	s.mu.Unlock()
	if isBusy {
		s.interrupt(s.id)
	}
}

// interrupt starts to end a turn of the hub.
func (s *session) interrupt(id string) {
	err := s.agent.hub.Call(
		context.Background(), "turn.interrupt", protocol.InterruptTurnParams{Turn: protocol.Ref(id), Reason: "user_cancelled"}, nil,
	)
	if err != nil {
		s.agent.opts.Logger.Debug("a turn could not be interrupted", "err", err) // usually the turn has just ended
	}
}

// cancelTask stops a terminal or a tool call of the agent's background work.
func (a *agent) cancelTask(ctx context.Context, p acp.CancelWorkRequest) (acp.Empty, error) {
	s, err := a.find(p.SessionID)
	if err != nil {
		return acp.Empty{}, err
	}
	id := cmp.Or(p.TerminalID, p.ToolCallID)
	s.order.Lock()
	s.mu.Lock()
	task := s.translator.BackgroundTask(s.work.background, id)
	s.mu.Unlock()
	s.order.Unlock()
	if task == "" {
		return acp.Empty{}, server.NewError(
			jsonrpc2.CodeInvalidParams,
			"Invalid params: the agent does not run "+strconv.Quote(id)+" in the background; session/cancel ends its turn", nil,
		)
	}
	err = a.hub.Call(ctx, "turn.interrupt", protocol.InterruptTurnParams{Turn: protocol.Ref(s.id), Background: task, Reason: "user_cancelled"},
		nil)
	return acp.Empty{}, refusedFor(s.id, err)
}

// stopped returns the stop reason of a turn, or whether it failed. A turn also fails if its
// process died or its time limit was reached.
func (o outcome) stopped() (why string, failed bool) {
	switch {
	case o.code != "":
		return acp.StopEndTurn, true
	case o.state == domain.Completed:
		switch o.stopReason {
		case acp.StopMaxTokens, acp.StopMaxTurnRequests, acp.StopRefusal, acp.StopCancelled:
			return o.stopReason, false
		}
		return acp.StopEndTurn, false
	case o.state == domain.Cancelled, o.state == domain.Interrupted, o.state == domain.Discarded:
		return acp.StopCancelled, false
	}
	return acp.StopEndTurn, true
}
