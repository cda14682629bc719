package intake

import (
	"reflect"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// recordAgentSession keeps what the agent of a run tells of its session, and
// announces what of it is not as it was.
func (w *recorder) recordAgentSession(t store.Tx, run domain.Run, s catalog.Session) error {
	changed, err := w.updateAgentSession(t, &run, sessionOf(s))
	if err != nil || changed == nil || reflect.DeepEqual(*changed, domain.AgentSession{Takes: changed.Takes}) { // that is for us alone
		return err
	}
	event := domain.AgentSessionChanged{AgentSession: *changed}
	if event.Size() > domain.MaxEventText { // clients ask for it
		event.Options, event.Commands, event.Truncated = nil, nil, true
	}
	if event.Size() > domain.MaxEventText {
		event.Modes, event.Models = nil, nil
	}
	return announce(t, run, event)
}

// recordMode keeps and announces in which mode the agent of a run is.
func (w *recorder) recordMode(t store.Tx, run domain.Run, m catalog.Mode) error {
	now := domain.AgentSession{Modes: &domain.Selection{Current: m.Current, Choices: choices(m.Choices)}}
	if len(m.Choices) == 0 {
		for _, id := range m.Available {
			now.Modes.Choices = append(now.Modes.Choices, domain.Choice{ID: id})
		}
	}
	if _, err := w.updateAgentSession(t, &run, now); err != nil {
		return err
	}
	return announce(t, run, domain.AgentModeChanged{Mode: m.Current, Modes: m.Available, Choices: choices(m.Choices)})
}

// updateAgentSession keeps the parts of now that are told, and returns those that
// are not as they were, or nil.
func (w *recorder) updateAgentSession(t store.Tx, run *domain.Run, now domain.AgentSession) (*domain.AgentSession, error) {
	seen, err := t.AgentSession(w.ctx, run.Thread)
	if err != nil {
		return nil, err
	}
	if seen.Thread == 0 || seen.Agent != run.Agent {
		seen = domain.AgentSessionSeen{Thread: run.Thread, Agent: run.Agent}
	}
	if m := now.Modes; m != nil && seen.Modes != nil && m.Current != "" && (len(m.Choices) == 0 || isBare(m.Choices, seen.Modes.Choices)) {
		now.Modes = &domain.Selection{Current: m.Current, Choices: seen.Modes.Choices}
	}
	changed, some := seen.Update(now)
	if some {
		seen.Seen = t.Now()
		if err := t.PutAgentSession(seen); err != nil {
			return nil, err
		}
	}
	if err := w.confirm(t, run, now); err != nil || !some {
		return nil, err
	}
	return &changed, nil
}

// isBare reports whether choices are the ids alone of others that are known.
func isBare(choices, known []domain.Choice) bool {
	for _, c := range choices {
		if c.Name != "" || c.Description != "" {
			return false
		}
	}
	return slices.Equal(domain.IDs(choices), domain.IDs(known))
}

// confirm notes in a run what its agent says that it is set to: the policy, and
// what follows the run, go by that.
func (w *recorder) confirm(t store.Tx, run *domain.Run, now domain.AgentSession) error {
	was := *run
	if mode := now.Mode(); mode != "" {
		run.AgentMode = mode
	}
	if model := now.Model(); model != "" {
		run.Model = model
	}
	if run.AgentMode == was.AgentMode && run.Model == was.Model {
		return nil
	}
	if err := t.UpdateRun(*run); err != nil {
		return err
	}
	w.opts.Runs.Changed(t, run.ID)
	if run.AgentMode == was.AgentMode {
		return nil
	}
	return w.opts.Answers.Reconsider(t, run.Thread)
}

func sessionOf(s catalog.Session) domain.AgentSession {
	now := domain.AgentSession{Agent: (*domain.AgentInfo)(s.Agent), Modes: selection(s.Mode), Models: selection(s.Model), Takes: (*domain.PromptTakes)(s.Takes)}
	if s.Options != nil {
		now.Options = []domain.AgentOption{}
	}
	for _, o := range s.Options {
		now.Options = append(now.Options, domain.AgentOption{
			ID: o.ID, Name: o.Name, Description: o.Description, Category: o.Category, Type: o.Type, Current: o.Current, Choices: choices(o.Choices), Extra: o.Extra,
		})
	}
	if s.Commands != nil {
		now.Commands = []domain.AgentCommand{}
	}
	for _, c := range s.Commands {
		now.Commands = append(now.Commands, domain.AgentCommand(c))
	}
	if s.Background != nil {
		now.Background = []domain.BackgroundTask{}
	}
	for _, b := range s.Background {
		now.Background = append(now.Background, domain.BackgroundTask(b))
	}
	if s.Info != nil {
		now.Info = &domain.AgentSessionInfo{Title: s.Info.Title, Updated: s.Info.UpdatedAt}
	}
	return now
}

func selection(s *catalog.Selection) *domain.Selection {
	if s == nil {
		return nil
	}
	return &domain.Selection{Current: s.Current, Choices: choices(s.Choices)}
}

func choices(list []catalog.Choice) (made []domain.Choice) {
	for _, c := range list {
		made = append(made, domain.Choice(c))
	}
	return made
}
