package acpagent

import (
	"context"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/acpagent/version2"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// A foreground is what runs in a conversation, whichever client has begun it: version 2 of
// the protocol has a session's state told, and answers a prompt when it is in the
// conversation. A run that waits for its turn is not: its prompt is held back.
// session.mu guards the fields; they change with session.order held.
type foreground struct {
	runs       []*run // that have not ended, in the order in which they came
	state      string // as the client knows it; "": idle
	background []wire.BackgroundTask
	ended      chan struct{} // closed when no run is left; nil unless something waits for that
}

// A run is one of the hub's sessions that are a conversation.
type run struct {
	id       string
	state    string          // of the hub
	prompt   *schema.Message // that is held back; nil: there is none
	inserted bool            // the conversation has it
}

// get is a run, which is new where it is not known.
func (f *foreground) get(id string) *run {
	if r := f.find(id); r != nil {
		return r
	}
	r := &run{id: id, state: wire.Queued}
	f.runs = append(f.runs, r)
	return r
}

// find is a run, or nil.
func (f *foreground) find(id string) *run {
	if i := slices.IndexFunc(f.runs, func(r *run) bool { return r.id == id }); i >= 0 {
		return f.runs[i]
	}
	return nil
}

// remove forgets a run that has ended, and returns it; nil if it was not known.
func (f *foreground) remove(id string) *run {
	r := f.find(id)
	f.runs = slices.DeleteFunc(f.runs, func(other *run) bool { return other == r })
	if len(f.runs) == 0 && f.ended != nil {
		close(f.ended)
		f.ended = nil
	}
	return r
}

// whenEnded is closed when no run is left.
func (f *foreground) whenEnded() <-chan struct{} {
	if f.ended == nil {
		f.ended = make(chan struct{})
	}
	ended := f.ended
	if len(f.runs) == 0 {
		close(f.ended)
		f.ended = nil
	}
	return ended
}

// now is the state that a client is told.
func (f *foreground) now() string {
	state := schema.StateIdle
	for _, r := range f.runs {
		switch {
		case !r.inserted:
		case r.state == wire.WaitingInput:
			state = schema.StateRequiresAction
		default:
			return schema.StateRunning
		}
	}
	return state
}

// hold keeps back the prompt of a run that has not begun, and reports whether it does.
func (s *session) hold(id string, updates []any) bool {
	messages := version2.Updates(updates)
	if len(messages) != 1 {
		return false
	}
	message, ok := messages[0].(schema.Message)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.work.get(id)
	if !ok || r.inserted {
		return false
	}
	r.prompt = &message
	return true
}

// runChanged takes a new state of a run that has not ended.
func (s *session) runChanged(id, state string) {
	if !s.version2 || state == wire.Draft {
		return
	}
	s.mu.Lock()
	r := s.work.get(id)
	r.state = state
	s.mu.Unlock()
	if state == wire.Running || state == wire.WaitingInput {
		s.insert(r)
		s.tellState(false)
	}
}

// insert tells the client the prompt of a run that begins, and answers it where it is the
// client's. The client's own prompt is told as the client wrote it.
func (s *session) insert(r *run) {
	s.mu.Lock()
	message, isInserted := r.prompt, r.inserted
	r.prompt, r.inserted = nil, true
	i := slices.IndexFunc(s.turns, func(t *turn) bool { return t.run == r.id })
	if i >= 0 && !isInserted {
		if message == nil {
			message = &schema.Message{Kind: schema.KindUserMessage, MessageID: uuid.NewString()}
		}
		message.Content = make([]any, len(s.turns[i].prompt))
		for n, block := range s.turns[i].prompt {
			message.Content[n] = block
		}
	}
	s.mu.Unlock()
	if message == nil || isInserted {
		return // the agent has begun it by itself, or it was told again
	}
	s.tell(*message)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endTurns(r.id, outcome{inserted: message.MessageID})
}

// runEnded takes the end of a run. isAwaited says that its prompt is the client's, and has
// no answer yet.
func (s *session) runEnded(id string, o outcome, isAwaited bool) {
	why, failed := o.stopped()
	s.mu.Lock()
	r := s.work.remove(id)
	s.mu.Unlock()
	if r != nil && !r.inserted {
		if isAwaited && (failed || why == schema.Cancelled) || !failed && why == schema.Cancelled {
			return // it never was in the conversation; the answer to the prompt says so
		}
		s.insert(r)
		s.tell(s.stateUpdate(schema.StateRunning)...)
	}
	s.mu.Lock()
	state := s.work.now()
	s.mu.Unlock()
	if state != schema.StateIdle {
		s.tellState(false)
		return
	}
	updates := s.stateUpdate(state)
	end := updates[len(updates)-1].(schema.StateUpdate)
	response, err := s.ending(s.ctx, id, o)
	end.StopReason, end.Usage = response.StopReason, response.Usage
	if err != nil {
		end.StopReason, end.Error = schema.StoppedByError, err
	}
	updates[len(updates)-1] = end
	s.tell(updates...)
}

// requiresAction takes that the agent asks something in a run. The hub tells the run's new
// state behind the question.
func (s *session) requiresAction(id string) {
	s.mu.Lock()
	r := s.work.find(id)
	waits := r != nil && r.inserted && r.state == wire.Running
	if waits {
		r.state = wire.WaitingInput
	}
	s.mu.Unlock()
	if waits {
		s.tellState(false)
	}
}

// backgroundChanged takes what the agent does in the background now; nil is not told.
func (s *session) backgroundChanged(tasks []wire.BackgroundTask) {
	if !s.version2 || tasks == nil {
		return
	}
	s.mu.Lock()
	isSame := len(tasks) == 0 && len(s.work.background) == 0 || reflect.DeepEqual(tasks, s.work.background)
	s.work.background = tasks
	s.mu.Unlock()
	if !isSame {
		s.tellState(true)
	}
}

// tellState tells the client the state of the session, if that is another one than it
// knows, or always.
func (s *session) tellState(always bool) {
	s.mu.Lock()
	state, known := s.work.now(), s.work.state
	s.mu.Unlock()
	if known == "" {
		known = schema.StateIdle
	}
	if always || state != known {
		s.tell(s.stateUpdate(state)...)
	}
}

// stateUpdate is a state with what goes on in the background. What the client does not
// know of that comes before.
func (s *session) stateUpdate(state string) []any {
	s.mu.Lock()
	s.work.state = state
	tasks := s.work.background
	s.mu.Unlock()
	updates, items := s.translator.Background(tasks)
	return append(updates, schema.StateUpdate{Kind: schema.KindState, State: state, Background: items})
}

// runsOf are the runs of a conversation that have not ended, the first one first, by its
// last one.
func (a *agent) runsOf(ctx context.Context, last wire.Session) (runs []*run, err error) {
	for s := last; ; {
		switch {
		case s.State == wire.Draft, s.State == wire.Cancelled: // which say nothing of those before
		case wire.Ended(s.State):
			return runs, nil
		default:
			runs = slices.Insert(runs, 0, &run{id: s.ID, state: s.State, inserted: s.State == wire.Running || s.State == wire.WaitingInput})
		}
		if s.ParentID == "" {
			return runs, nil
		}
		before, _, err := wire.SessionState(ctx, a.hub, s.ParentID)
		if err != nil || before.ThreadID != last.ThreadID {
			return runs, err
		}
		s = before
	}
}
