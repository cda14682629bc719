package intake

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// between names the source of a report outside a prompt: a session, and the last task there.
type between struct{ session, task string }

var errOthersTask = errors.New("the task is not part of that session")

// recordBetween stores the session data that an agent reports between prompts. A report counts
// while its task is the last of Duet's session: the next task gets the full data when it begins.
func (w *recorder) recordBetween(t store.Tx, from between, s catalog.Session) error {
	if from.task == "" && !s.Ended { // only the supervisor omits the task, when an executor ends
		return errOthersTask
	}
	turn, err := w.turnOf(t, from)
	if err != nil {
		return err
	}
	if s.Background != nil {
		if err := w.recordBackground(t, turn, s); err != nil {
			return err
		}
		s.Background, s.Ended = nil, false
	}
	last, err := t.LastTurn(w.ctx, turn.Session)
	if err != nil || last.ID != turn.ID {
		return err
	}
	if session, err := t.Session(w.ctx, turn.Session); err != nil || session.Agent != turn.Agent { // the session has another agent now
		return err
	}
	if err := json.Unmarshal(w.opts.Keys(turn.Session).JSON(encode(s)), &s); err != nil {
		return err
	}
	if err := w.recordAgentSession(t, turn, s); err != nil || s.Mode == nil || s.Mode.Current == "" {
		return err
	}
	return w.recordMode(t, turn, catalog.Mode{Current: s.Mode.Current})
}

// recordLate stores what an agent reports after its turn has ended: the rest of a message, an update
// of a tool call, a notice, or further usage.
func (w *recorder) recordLate(t store.Tx, r report) error {
	turn, err := w.turnOf(t, *r.between)
	if err != nil {
		return err
	}
	secrets := w.opts.Keys(turn.Session)
	r.turn, r.between, r.data = turn.ID, nil, secrets.JSON(r.data)
	switch r.kind {
	case catalog.EventContentDelta, catalog.EventThinkingChunk:
		if r.delta.Meta != nil {
			r.delta.Meta = secrets.JSON(r.delta.Meta)
		}
		return w.opts.Transcript.Late(t, turn, r.delta, r.kind == catalog.EventThinkingChunk, secrets.Text)
	case catalog.EventNotice, catalog.EventCompaction:
		return w.recordNote(t, turn, r)
	case catalog.EventUsage:
		return decoded(r, func(u catalog.Usage) error { return w.recordUsage(t, turn, u) })
	}
	var failed error
	unpacked := unpacker{secrets: secrets, pass: func(r report) {
		if r.kind == catalog.EventError { // the turn it belongs to is over
			w.opts.Logger.Info("content of a late tool call was left out", "turn", turn.UUID)
			return
		}
		failed = decoded(r, func(call catalog.ToolCall) error {
			if _, err := t.ToolItem(w.ctx, turn.ID, call.ToolID); err != nil {
				return err
			}
			return w.opts.Transcript.Tool(t, &turn, call, r.blocks, r.kind == catalog.EventToolResult)
		})
	}}
	unpacked.take(r)
	return failed
}

// recordBackground stores the background work of a session's agent. If the agent has
// ended, the session gets a message that names the work that was cut short.
func (w *recorder) recordBackground(t store.Tx, turn domain.Turn, s catalog.Session) error {
	if err := json.Unmarshal(w.opts.Keys(turn.Session).JSON(encode(s)), &s); err != nil {
		return err
	}
	before, err := t.AgentSession(w.ctx, turn.Session)
	if err != nil || len(before.Background) == 0 && len(s.Background) == 0 {
		return err
	}
	if s.Ended && len(before.Background) > 0 {
		if err := w.opts.Transcript.BackgroundCut(t, turn, before.Background); err != nil {
			return err
		}
	}
	turn.Agent = cmp.Or(before.Agent, turn.Agent) // the session may use another agent by now
	if err := w.recordAgentSession(t, turn, catalog.Session{Background: s.Background}); err != nil {
		return err
	}
	now := sessionOf(s).Background
	t.AfterCommit(func() { w.background.set(turn.Session, now) })
	return nil
}

// CutBackground adds a message to each session whose agent had background work when the
// previous hub process ended.
func (in *Intake) CutBackground(t store.Tx) error {
	sessions, err := t.BackgroundSessions(in.recorder.ctx)
	if err != nil {
		return err
	}
	for _, s := range sessions {
		turn, err := t.LastTurn(in.recorder.ctx, s.Session)
		if err == nil {
			err = in.opts.Transcript.BackgroundCut(t, turn, s.Background)
		}
		if err == nil {
			err = in.recorder.recordAgentSession(t, turn, catalog.Session{Background: []domain.BackgroundTask{}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Background returns the background work of a session's agent.
func (in *Intake) Background(session int64) []domain.BackgroundTask {
	return in.recorder.background.of(session)
}

// WorksInBackground reports whether an agent has background work.
func (in *Intake) WorksInBackground() bool {
	b := &in.recorder.background
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.tasks) > 0
}

// background is the background work of all agents, by session.
type background struct {
	mu    sync.Mutex // guards tasks
	tasks map[int64][]domain.BackgroundTask
}

func (b *background) set(session int64, tasks []domain.BackgroundTask) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(tasks) == 0 {
		delete(b.tasks, session)
		return
	}
	if b.tasks == nil {
		b.tasks = make(map[int64][]domain.BackgroundTask)
	}
	b.tasks[session] = tasks
}

func (b *background) of(session int64) []domain.BackgroundTask {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tasks[session]
}

// turnOf returns the turn that a report between prompts follows.
func (w *recorder) turnOf(t store.Tx, from between) (domain.Turn, error) {
	if from.task == "" { // from the supervisor: the executor has ended
		session, err := t.FindSession(w.ctx, from.session)
		if err != nil {
			return domain.Turn{}, err
		}
		return t.LastTurn(w.ctx, session)
	}
	id, err := t.Find(w.ctx, from.task)
	if err != nil {
		return domain.Turn{}, err
	}
	turn, err := t.Turn(w.ctx, id)
	if err != nil {
		return turn, err
	}
	session, err := t.Session(w.ctx, turn.Session)
	if err == nil && (turn.UUID != from.task || session.UUID != from.session) {
		err = errOthersTask
	}
	return turn, err
}

// recordAgentSession stores the session data that the agent of a turn reports, and announces what
// has changed.
func (w *recorder) recordAgentSession(t store.Tx, turn domain.Turn, s catalog.Session) error {
	changed, err := w.updateAgentSession(t, &turn, sessionOf(s))
	if err != nil || changed == nil || reflect.DeepEqual(*changed, domain.AgentSession{Takes: changed.Takes}) { // only the hub uses that
		return err
	}
	event := domain.AgentSessionChanged{AgentSession: *changed}
	if event.Size() > domain.MaxEventText { // clients request it instead
		event.Options, event.Commands, event.Truncated = nil, nil, true
	}
	if event.Size() > domain.MaxEventText {
		event.Modes, event.Models = nil, nil
	}
	return announce(t, turn, event)
}

// recordMode stores and announces the mode of a turn's agent.
func (w *recorder) recordMode(t store.Tx, turn domain.Turn, m catalog.Mode) error {
	now := domain.AgentSession{Modes: &domain.Selection{Current: m.Current, Choices: m.Choices}}
	if len(m.Choices) == 0 {
		for _, id := range m.Available {
			now.Modes.Choices = append(now.Modes.Choices, domain.Choice{ID: id})
		}
	}
	if _, err := w.updateAgentSession(t, &turn, now); err != nil {
		return err
	}
	return announce(t, turn, domain.AgentModeChanged{Mode: m.Current, Modes: m.Available, Choices: m.Choices})
}

// updateAgentSession stores the reported parts of now, and returns those that have changed, or nil.
func (w *recorder) updateAgentSession(t store.Tx, turn *domain.Turn, now domain.AgentSession) (*domain.AgentSession, error) {
	seen, err := t.AgentSession(w.ctx, turn.Session)
	if err != nil {
		return nil, err
	}
	if seen.Session == 0 || seen.Agent != turn.Agent {
		seen = domain.AgentSessionSeen{Session: turn.Session, Agent: turn.Agent}
	}
	if m := now.Modes; m != nil && seen.Modes != nil && m.Current != "" && (len(m.Choices) == 0 || isBare(m.Choices, seen.Modes.Choices)) {
		now.Modes = &domain.Selection{Current: m.Current, Choices: seen.Modes.Choices}
	}
	changed, some := seen.Update(now)
	if some {
		seen.Seen = t.Latest()
		if err := t.PutAgentSession(seen); err != nil {
			return nil, err
		}
	}
	if err := w.confirm(t, turn, now); err != nil || !some {
		return nil, err
	}
	return &changed, nil
}

// isBare reports whether choices are only the ids of known choices.
func isBare(choices, known []domain.Choice) bool {
	for _, c := range choices {
		if c.Name != "" || c.Description != "" {
			return false
		}
	}
	return slices.Equal(domain.IDs(choices), domain.IDs(known))
}

// confirm stores in a turn the settings that its agent reports. The policy and later turns use them.
func (w *recorder) confirm(t store.Tx, turn *domain.Turn, now domain.AgentSession) error {
	was := *turn
	if mode := now.Mode(); mode != "" {
		turn.AgentMode = mode
	}
	if model := now.Model(); model != "" {
		turn.Model = model
	}
	if turn.AgentMode == was.AgentMode && turn.Model == was.Model {
		return nil
	}
	if err := t.UpdateTurn(*turn); err != nil {
		return err
	}
	w.opts.Turns.Changed(t, turn.ID)
	if turn.AgentMode == was.AgentMode {
		return nil
	}
	if err := w.modeTaken(t, *turn); err != nil {
		return err
	}
	return w.opts.Answers.Reconsider(t, turn.Session)
}

// modeTaken notes that the agent is in the mode that the user has chosen during its turn: what the agent
// reports after that counts, as it does in a turn without a change of the mode.
func (w *recorder) modeTaken(t store.Tx, turn domain.Turn) error {
	session, err := t.Session(w.ctx, turn.Session)
	if err != nil || turn.ID > session.Settings.ModeTurn || catalog.ModeName(turn.AgentMode) != catalog.ModeName(session.Mode) {
		return err
	}
	session.Settings.ModeTurn = turn.ID - 1
	return t.UpdateSession(session)
}

func sessionOf(s catalog.Session) domain.AgentSession {
	now := domain.AgentSession{
		Agent: s.Agent, Modes: selection(s.Mode), Models: selection(s.Model), Commands: s.Commands, Info: s.Info, Takes: s.Takes,
		Background: s.Background,
	}
	if s.Options != nil {
		now.Options = []domain.AgentOption{}
	}
	for _, o := range s.Options {
		now.Options = append(now.Options, domain.AgentOption(o))
	}
	return now
}

func selection(s *catalog.Selection) *domain.Selection {
	if s == nil {
		return nil
	}
	return &domain.Selection{Current: s.Current, Choices: s.Choices}
}
