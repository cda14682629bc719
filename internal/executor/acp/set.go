package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// A setter sets something of an agent by a call that the agent answers.
type setter struct {
	*agent
	call func(method string, params any) (json.RawMessage, error)
}

// An unknownError says that an agent has nothing of that name.
type unknownError struct{ message string }

func (e *unknownError) Error() string { return e.message }

// ours are the permission modes that Duet holds to without the agent: questions
// that the agent asks are answered for the human. Plan is not among them: an
// agent whose modes are others may change something without asking.
var ours = []string{catalog.ModeDefault, catalog.ModeAcceptEdits, catalog.ModeBypass}

// choose sets the agent to what the prompt asks for, and tells the hub what it is
// set to then. What the agent does not have, or does not take, fails the prompt:
// it would be another one.
func (a *agent) choose(t *turn) *task.Failure {
	s := setter{a, func(method string, params any) (json.RawMessage, error) {
		return callWithin[json.RawMessage](a, a.driver.opts.StartTimeout, method, params)
	}}
	defer a.reportSettings(t)
	err := s.chooseMode(t)
	if config := t.Conversation.ModelConfig; err == nil && config != nil {
		err = s.setModel(config.Model)
	}
	if err == nil {
		err = s.setOptions(t.Conversation.Options)
	}
	switch {
	case err == nil, t.Stopped():
		return nil
	case a.gone():
		return a.exited()
	}
	return &task.Failure{Code: task.CodeSetting, Message: a.name + ": " + err.Error()}
}

// chooseMode sets the mode to go on in, or else the one that people ask for.
func (s setter) chooseMode(t *turn) error {
	now, wanted, last := s.settings.session(), t.Params.PermissionMode, t.Conversation.AgentMode
	told := now.Mode != nil && len(now.Mode.Choices) > 0
	switch {
	case last != "" && told && has(now.Mode.Choices, last), last != "" && now.Mode == nil:
		if err := s.setMode(last); err != nil {
			t.Problem(task.CodeSetting, fmt.Sprintf("the agent does not go on in the mode %q: %v", last, err))
		}
		return nil
	case wanted == "":
		return nil
	case told && has(now.Mode.Choices, wanted):
		err := s.setMode(wanted)
		if err != nil && wanted == catalog.ModeDefault { // which nobody need have asked for, and in which everything is asked
			t.Problem(task.CodeSetting, err.Error())
			return nil
		}
		return err
	case slices.Contains(ours, wanted):
		return s.leavePlan()
	case !told && wanted == catalog.ModePlan:
		return nil
	case now.Mode == nil: // a session that was there before, of which it says nothing
		return s.setMode(wanted)
	}
	return noMode(now, wanted)
}

// leavePlan sets an agent that plans to its default, if it has one: people want
// something else, which it has no mode for.
func (s setter) leavePlan() error {
	m := s.settings.session().Mode
	if m == nil || m.Current != catalog.ModePlan || !has(m.Choices, catalog.ModeDefault) {
		return nil
	}
	return s.setMode(catalog.ModeDefault)
}

// noMode says which modes there are.
func noMode(now catalog.Session, wanted string) error {
	if now.Mode == nil || len(now.Mode.Choices) == 0 {
		return &unknownError{fmt.Sprintf("there is no mode %q: the agent has no modes of its own; Duet has %s", wanted, listed(append(slices.Clone(ours), catalog.ModePlan)))}
	}
	return &unknownError{fmt.Sprintf("there is no mode %q: the agent has %s; %s are Duet's own", wanted, listed(ids(now.Mode.Choices)), listed(ours))}
}

// setMode sets one of the agent's modes. The agent must be in it then.
func (s setter) setMode(id string) error {
	now := s.settings.session()
	if now.Mode != nil && now.Mode.Current == id {
		return nil
	}
	if o := option(now.Options, categoryMode); o != nil && has(o.Choices, id) {
		if err := s.setOption(*o, id); err != nil {
			return err
		}
	} else {
		s.settings.mu.Lock()
		told := s.settings.toldMode
		s.settings.mu.Unlock()
		if _, err := s.call(acp.AgentMethodSessionSetMode, acp.SetSessionModeRequest{SessionId: s.session, ModeId: acp.SessionModeId(id)}); err != nil {
			return fmt.Errorf("the agent did not take the mode %q: %w", id, err)
		}
		s.settings.mu.Lock()
		if s.settings.toldMode == told { // else it has said itself in which it is
			s.settings.switchMode(id)
		}
		s.settings.mu.Unlock()
	}
	if now = s.settings.session(); now.Mode != nil && now.Mode.Current != id {
		return fmt.Errorf("the agent did not take the mode %q: it is in %q", id, now.Mode.Current)
	}
	return nil
}

// setModel sets the model. An agent that does not say which it has is left alone.
func (s setter) setModel(id string) error {
	now := s.settings.session()
	switch {
	case id == "", now.Model != nil && now.Model.Current == id:
		return nil
	case now.Model == nil || len(now.Model.Choices) == 0:
		s.driver.log.Debug("the agent does not say which models it has", "agent", s.name, "model", id)
		return nil
	case !has(now.Model.Choices, id):
		return &unknownError{fmt.Sprintf("there is no model %q: the agent has %s", id, listed(ids(now.Model.Choices)))}
	}
	if o := option(now.Options, categoryModel); o != nil && has(o.Choices, id) {
		return s.setOption(*o, id)
	}
	if _, err := s.call(acp.AgentMethodSessionSetModel, map[string]any{"sessionId": s.session, "modelId": id}); err != nil {
		return fmt.Errorf("the agent did not take the model %q: %w", id, err)
	}
	s.settings.mu.Lock()
	defer s.settings.mu.Unlock()
	s.settings.switchModel(id)
	return nil
}

// setOptions sets options, in the agent's order: one may depend on another.
func (s setter) setOptions(wanted map[string]string) error {
	known := s.settings.session().Options
	for id := range wanted {
		if !slices.ContainsFunc(known, func(o catalog.Option) bool { return o.ID == id }) {
			all := make([]string, len(known))
			for i, o := range known {
				all[i] = o.ID
			}
			return &unknownError{fmt.Sprintf("there is no option %q: the agent has %s", id, listed(all))}
		}
	}
	for _, before := range known {
		value, ask := wanted[before.ID]
		if !ask {
			continue
		}
		for _, o := range s.settings.session().Options {
			if o.ID != before.ID || o.Current == value {
				continue
			}
			if len(o.Choices) > 0 && !has(o.Choices, value) {
				return &unknownError{fmt.Sprintf("the option %q has no value %q: it has %s", o.ID, value, listed(ids(o.Choices)))}
			}
			if err := s.setOption(o, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// setOption sets an option. What the agent answers counts, which is all options.
func (s setter) setOption(o catalog.Option, value string) error {
	params := map[string]any{"sessionId": s.session, "configId": o.ID, "value": value}
	if o.Type == "boolean" {
		params["type"], params["value"] = o.Type, value == "true"
	}
	s.settings.mu.Lock()
	told := s.settings.toldAny[o.ID]
	s.settings.mu.Unlock()
	result, err := s.call(acp.AgentMethodSessionSetConfigOption, params)
	if err != nil {
		return fmt.Errorf("the agent did not take %q for its option %q: %w", value, o.ID, err)
	}
	var r struct {
		ConfigOptions json.RawMessage `json:"configOptions"`
	}
	json.Unmarshal(result, &r)
	s.settings.mu.Lock()
	defer s.settings.mu.Unlock()
	if options, ok := optionsOf(r.ConfigOptions); ok {
		s.settings.toldOptions(options)
	} else if s.settings.toldAny[o.ID] == told { // it says nothing more
		s.settings.switchOption(o.ID, value)
	}
	return nil
}

// set is what a human wants of an agent that works on a prompt.
func (a *agent) set(ctx context.Context, t *turn, p catalog.SetSessionParams) error {
	s := setter{a, func(method string, params any) (json.RawMessage, error) {
		defer a.responses.Took()
		return acp.SendRequest[json.RawMessage](a.conn, ctx, method, params)
	}}
	defer a.reportChanged(t)
	if p.Mode != "" {
		now := a.settings.session()
		switch {
		case now.Mode != nil && has(now.Mode.Choices, p.Mode), now.Mode == nil && !slices.Contains(ours, p.Mode) && p.Mode != catalog.ModePlan:
			if err := s.setMode(p.Mode); err != nil {
				return err
			}
		case slices.Contains(ours, p.Mode):
			if err := s.leavePlan(); err != nil {
				return err
			}
		case p.Mode == catalog.ModePlan && (now.Mode == nil || len(now.Mode.Choices) == 0): // Duet's own
		default:
			return noMode(now, p.Mode)
		}
	}
	if err := s.setModel(p.Model); err != nil {
		return err
	}
	return s.setOptions(p.Options)
}

// SetSession changes what the agent of a conversation is set to, while it works on
// a prompt. It waits until the agent has that.
func (d *Driver) SetSession(ctx context.Context, p catalog.SetSessionParams) catalog.SetSessionResult {
	d.mu.Lock()
	c := d.conversations[p.SessionID]
	d.mu.Unlock()
	if c == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	}
	a := c.working.Load()
	if a == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	}
	t := a.current.Load()
	if t == nil {
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	}
	ctx, cancel := context.WithTimeout(ctx, d.opts.StartTimeout)
	defer cancel()
	select {
	case <-t.prompted:
	case <-t.Context().Done():
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	case <-a.life.Done():
		return catalog.SetSessionResult{Status: catalog.SessionIdle}
	case <-ctx.Done():
		return refused(ctx.Err())
	}
	if err := a.set(ctx, t, p); err != nil {
		return refused(err)
	}
	return catalog.SetSessionResult{Status: catalog.SessionSet}
}

func refused(err error) catalog.SetSessionResult {
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("the agent did not answer in time")
	}
	return catalog.SetSessionResult{Status: catalog.SessionRefused, Message: err.Error()}
}

// listed are names for a human.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
