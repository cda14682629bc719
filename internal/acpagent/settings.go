package acpagent

import (
	"context"
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/wire"
	"github.com/duet-rpc/duet-rpc/server"
)

// untilDone is of calls that take as long as the agent takes.
var untilDone = client.WithTimeout(0)

// look asks the hub how the session is set.
func (s *session) look(ctx context.Context) (view, error) {
	hub := s.agent.hub
	agents, err := wire.Agents(ctx, hub)
	if err != nil {
		return view{}, err
	}
	b := s.beginning()
	var state wire.Session
	if b == nil {
		if state, _, err = wire.SessionState(ctx, hub, s.id); err != nil {
			return view{}, err
		}
		if another := state.RequestedAgent; another != "" { // it has told nothing in this session yet
			d, err := wire.DescribeAgent(ctx, hub, another, "")
			if err != nil {
				return view{}, err
			}
			d.AgentSession.Info = nil
			state.Agent, state.AgentMode, state.Model, state.Modes, state.AgentSession = another, "", "", d.Modes, d.AgentSession
		}
	} else {
		d, err := wire.DescribeAgent(ctx, hub, b.agent, "")
		if err != nil {
			return view{}, err
		}
		state = wire.Session{
			Agent: d.Agent, Modes: d.Modes, AgentSession: d.AgentSession, RequestedMode: b.mode, RequestedModel: b.model, RequestedOptions: b.options,
		}
	}
	return s.viewOf(state, agents), nil
}

// setMode sets the mode.
func (a *agent) setMode(ctx context.Context, p schema.SetModeRequest) (schema.Present, error) {
	s, err := a.find(p.SessionID)
	if err != nil {
		return schema.Present{}, err
	}
	if err := s.set(ctx, "modeId", configMode, p.ModeID); err != nil {
		return schema.Present{}, err
	}
	s.order.Lock()
	defer s.order.Unlock()
	s.settingsChanged()
	return schema.Present{}, nil
}

// setConfigOption sets one of the choices, and tells all.
func (a *agent) setConfigOption(ctx context.Context, p schema.SetConfigOptionRequest) (schema.ConfigOptions, error) {
	s, err := a.find(p.SessionID)
	if err != nil {
		return schema.ConfigOptions{}, err
	}
	if s.version2 {
		if err := s.checkValueType(ctx, p); err != nil {
			return schema.ConfigOptions{}, err
		}
	}
	value := ""
	var yes bool
	if json.Unmarshal(p.Value, &yes) == nil {
		value = strconv.FormatBool(yes)
	} else if json.Unmarshal(p.Value, &value) != nil {
		return schema.ConfigOptions{}, server.InvalidParam(server.ParamError{Param: "value", Expected: "a string or a boolean", Received: "something else"})
	}
	if err := s.set(ctx, "value", p.ConfigID, value); err != nil {
		return schema.ConfigOptions{}, err
	}
	s.order.Lock()
	defer s.order.Unlock()
	s.settingsChanged()
	return schema.ConfigOptions{ConfigOptions: s.settings.options}, nil
}

// checkValueType checks the type of a value that a client of version 2 sets.
func (s *session) checkValueType(ctx context.Context, p schema.SetConfigOptionRequest) error {
	var value any
	_ = json.Unmarshal(p.Value, &value) // nil is neither
	_, isText := value.(string)
	_, isBoolean := value.(bool)
	switch {
	case p.Type != schema.ValueID && p.Type != schema.ValueBoolean:
		return invalidValue("type", "id or boolean", p.Type)
	case p.Type == schema.ValueID && !isText:
		return server.InvalidParam(server.ParamError{Param: "value", Expected: "a string", Received: "something else"})
	case p.Type == schema.ValueBoolean && !isBoolean:
		return server.InvalidParam(server.ParamError{Param: "value", Expected: "a boolean", Received: "something else"})
	}
	v, err := s.look(ctx)
	if err != nil {
		return refused(err)
	}
	for _, o := range v.options {
		if o.ID == p.ConfigID && (o.Type == "boolean") != (p.Type == schema.ValueBoolean) {
			return invalidValue("type", "that of the choice, which is "+o.Type, p.Type)
		}
	}
	return nil
}

// set sets something: at the agent, or for the first prompt. param is what the client
// calls the value.
func (s *session) set(ctx context.Context, param, id, value string) error {
	v, err := s.look(ctx)
	if err != nil {
		return refused(err)
	}
	if err := v.offers(param, id, value); err != nil {
		return err
	}
	if b := s.beginning(); b != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch id {
		case configAgent:
			if b.from != "" && value != b.agent {
				return invalidValue(param, "the agent of the session that this is a fork of", value)
			}
			if value != b.agent {
				b.agent, b.mode, b.model, b.options = value, "", "", nil // which are names that the other one need not know
			}
		case configMode:
			b.mode = value
		case configModel:
			b.model = value
		default:
			if b.options == nil {
				b.options = make(map[string]string)
			}
			b.options[agentsID(id)] = value
		}
		return nil
	}
	params := map[string]any{"session_id": s.id}
	switch id {
	case configAgent:
		if v.working {
			return server.NewError(jsonrpc2.CodeInvalidRequest, "the session is at work: it can get another agent when its turn has ended", nil)
		}
		params[id] = value
	case configMode, configModel:
		params[id] = value
	default:
		params["options"] = map[string]string{agentsID(id): value}
	}
	return refused(s.agent.hub.Call(ctx, "session.set", params, nil, untilDone))
}

// settingsChanged tells the client what is set otherwise than it knows; s.order is held.
func (s *session) settingsChanged() {
	v, err := s.look(s.ctx)
	if err != nil {
		return // it is told with the next change
	}
	before := s.settings
	s.settings = v
	if !reflect.DeepEqual(before.commands, v.commands) {
		s.tell(v.commandsUpdate())
	}
	if v.modes != nil && (before.modes == nil || before.modes.Current != v.modes.Current) {
		s.tell(schema.ModeUpdate{Kind: schema.KindMode, Current: v.modes.Current})
	}
	if !reflect.DeepEqual(before.options, v.options) {
		s.tell(schema.ConfigUpdate{Kind: schema.KindConfig, ConfigOptions: v.options})
	}
	if before.title != v.title && v.title != "" {
		s.tell(schema.InfoUpdate{Kind: schema.KindInfo, Title: v.title})
	}
}
