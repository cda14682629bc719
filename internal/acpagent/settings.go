package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// untilDone removes the timeout of calls that wait for the agent.
var untilDone = client.WithTimeout(0)

// look asks the hub for the session's settings.
func (s *session) look(ctx context.Context) (view, error) {
	hub := s.agent.hub
	agents, err := hubclient.Agents(ctx, hub)
	if err != nil {
		return view{}, err
	}
	b := s.beginning()
	var state protocol.Turn
	if b == nil {
		if state, _, err = hubclient.Turn(ctx, hub, s.id); err != nil {
			return view{}, err
		}
		if another := state.RequestedAgent; another != "" { // it has reported nothing in this session yet
			d, err := hubclient.DescribeAgent(ctx, hub, another, "")
			if err != nil {
				return view{}, err
			}
			if d.AgentSession != nil {
				d.AgentSession.Info = nil
			}
			state.Agent, state.AgentMode, state.Model, state.Modes, state.AgentSession = another, "", "", d.Modes, d.AgentSession
		}
	} else {
		d, err := hubclient.DescribeAgent(ctx, hub, b.agent, "")
		if err != nil {
			return view{}, err
		}
		state = protocol.Turn{
			Agent: d.Agent, Modes: d.Modes, AgentSession: d.AgentSession, RequestedMode: b.mode, RequestedModel: b.model,
			RequestedOptions: b.options,
		}
	}
	return s.viewOf(state, agents), nil
}

// setMode sets the mode.
func (a *agent) setMode(ctx context.Context, p acp.SetModeRequest) (acp.Empty, error) {
	s, err := a.find(p.SessionID)
	if err != nil {
		return acp.Empty{}, err
	}
	if err := s.set(ctx, "modeId", configMode, p.ModeID); err != nil {
		return acp.Empty{}, err
	}
	s.order.Lock()
	defer s.order.Unlock()
	s.settingsChanged()
	return acp.Empty{}, nil
}

// setConfigOption sets an option, and returns all options.
func (a *agent) setConfigOption(ctx context.Context, p acp.SetConfigOptionRequest) (acp.ConfigOptions, error) {
	s, err := a.find(p.SessionID)
	if err != nil {
		return acp.ConfigOptions{}, err
	}
	if s.translator.Client.RequiresTypes() {
		if err := s.checkValueType(ctx, p); err != nil {
			return acp.ConfigOptions{}, err
		}
	}
	value := ""
	var yes bool
	if json.Unmarshal(p.Value, &yes) == nil {
		value = strconv.FormatBool(yes)
	} else if json.Unmarshal(p.Value, &value) != nil {
		return acp.ConfigOptions{}, server.InvalidParam(server.ParamError{
			Param: "value", Expected: "a string or a boolean", Received: "something else",
		})
	}
	if err := s.set(ctx, "value", p.ConfigID, value); err != nil {
		return acp.ConfigOptions{}, err
	}
	s.order.Lock()
	defer s.order.Unlock()
	s.settingsChanged()
	return acp.ConfigOptions{ConfigOptions: s.settings.options}, nil
}

// checkValueType checks the type of an option's value, from a client that has to name it.
func (s *session) checkValueType(ctx context.Context, p acp.SetConfigOptionRequest) error {
	var value any
	_ = json.Unmarshal(p.Value, &value) // nil is neither
	_, isText := value.(string)
	_, isBoolean := value.(bool)
	switch {
	case p.Type != acp.ValueID && p.Type != acp.ValueBoolean:
		return invalidValue("type", "id or boolean", p.Type)
	case p.Type == acp.ValueID && !isText:
		return server.InvalidParam(server.ParamError{Param: "value", Expected: "a string", Received: "something else"})
	case p.Type == acp.ValueBoolean && !isBoolean:
		return server.InvalidParam(server.ParamError{Param: "value", Expected: "a boolean", Received: "something else"})
	}
	v, err := s.look(ctx)
	if err != nil {
		return refused(err)
	}
	for _, o := range v.options {
		if o.ID == p.ConfigID && (o.Type == "boolean") != (p.Type == acp.ValueBoolean) {
			return invalidValue("type", "that of the choice, which is "+o.Type, p.Type)
		}
	}
	return nil
}

// set changes a setting: at the agent, or for the first prompt. param is the client's name of the
// value, for errors.
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
				b.agent, b.mode, b.model, b.options = value, "", "", nil // another agent may not know their names
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
	params := protocol.SetSessionParams{Session: protocol.Ref(s.id)}
	switch id {
	case configAgent:
		if v.working {
			return server.NewError(jsonrpc2.CodeInvalidRequest, "the session is running a turn; change its agent when the turn has ended", nil)
		}
		params.Agent = &value
	case configMode:
		params.Mode = &value
	case configModel:
		params.Model = &value
	default:
		params.Options = map[string]string{agentsID(id): value}
	}
	return refused(s.agent.hub.Call(ctx, "session.set", params, nil, untilDone))
}

// settingsChanged sends changed settings to the client. The caller holds s.order.
func (s *session) settingsChanged() {
	v, err := s.look(s.ctx)
	if err != nil {
		return // the next change reports it
	}
	before := s.settings
	s.settings = v
	if !reflect.DeepEqual(before.commands, v.commands) {
		s.send(v.commandsUpdate())
	}
	if v.modes != nil && (before.modes == nil || before.modes.Current != v.modes.Current) {
		s.send(acp.ModeUpdate{Kind: acp.KindMode, Current: v.modes.Current})
	}
	if !reflect.DeepEqual(before.options, v.options) {
		s.send(acp.ConfigUpdate{Kind: acp.KindConfig, ConfigOptions: v.options})
	}
	if before.title != v.title && v.title != "" {
		s.send(acp.InfoUpdate{Kind: acp.KindInfo, Title: v.title})
	}
}

// Ids of the options of every session.
const (
	configAgent = "agent"
	configMode  = "mode"
	configModel = "model"
)

// A view is a session's settings in the client's form.
type view struct {
	modes    *acp.SessionModes
	options  []acp.ConfigOption
	commands []acp.Command
	title    string
	working  bool // a turn runs or waits
}

// viewOf converts a session's settings to the client's form.
func (s *session) viewOf(state protocol.Turn, agents []domain.Agent) view {
	v := view{title: state.Title, working: state.State != "" && !state.State.Ended()}
	if v.title == "" && state.Reported().Info != nil {
		v.title = state.Reported().Info.Title
	}
	v.options = append(v.options, agentOption(state.Agent, agents))
	mode := cmp.Or(state.Mode, state.RequestedMode, state.AgentMode)
	if mode == "" && state.Reported().Mode != nil {
		mode = state.Reported().Mode.Current
	}
	if len(state.Modes) > 0 {
		modes, current := valuesOf(protocol.ModeChoices(state.Modes), cmp.Or(mode, "default"))
		v.modes = &acp.SessionModes{Current: current}
		for _, m := range modes {
			v.modes.Available = append(v.modes.Available, acp.SessionMode{ID: m.Value, Name: m.Name, Description: m.Description})
		}
		v.options = append(v.options,
			acp.ConfigOption{ID: configMode, Name: "Mode", Category: "mode", Type: "select", CurrentValue: current, Options: modes})
	}
	if m := state.Reported().Model; m != nil && len(m.Choices) > 0 {
		models, current := valuesOf(m.Choices, cmp.Or(state.RequestedModel, m.Current, state.Model))
		v.options = append(v.options,
			acp.ConfigOption{ID: configModel, Name: "Model", Category: "model", Type: "select", CurrentValue: current, Options: models})
	}
	for _, o := range state.Reported().Options {
		if option, ok := s.ownOption(o, state.RequestedOptions[o.ID]); ok {
			v.options = append(v.options, option)
		}
	}
	v.commands = commandsOf(state.Reported().Commands)
	return v
}

// agentOption is the option that chooses the agent behind the session.
func agentOption(current string, agents []domain.Agent) acp.ConfigOption {
	o := acp.ConfigOption{
		ID: configAgent, Name: "Agent", Description: "The agent behind Duet. Another agent receives the transcript so far.",
		Category: "_duet_agent", Type: "select", CurrentValue: current,
	}
	for _, a := range agents {
		if a.Available || a.Name == current {
			o.Options = append(o.Options, acp.ConfigValue{Value: a.Name, Name: cmp.Or(a.Title, a.Name)})
		}
	}
	if !slices.ContainsFunc(o.Options, func(v acp.ConfigValue) bool { return v.Value == current }) {
		o.Options = append(o.Options, acp.ConfigValue{Value: current, Name: current})
	}
	return o
}

// ownOption returns an option of the agent itself, unless every session has it.
func (s *session) ownOption(o domain.AgentOption, wanted string) (acp.ConfigOption, bool) {
	current := cmp.Or(wanted, o.Current)
	option := acp.ConfigOption{
		ID: optionID(o.ID), Name: cmp.Or(o.Name, o.ID), Description: o.Description, Category: o.Category, Type: "select", CurrentValue: current,
	}
	switch {
	case o.Category == "mode", o.Category == "model":
		return option, false
	case o.Type == "boolean" && acp.Has(s.agent.client.capabilities().Session.ConfigOptions.Boolean):
		option.Type, option.CurrentValue = "boolean", current == "true"
		return option, true
	case o.Type == "boolean":
		option.Options = []acp.ConfigValue{{Value: "true", Name: "On"}, {Value: "false", Name: "Off"}}
		return option, true
	case len(o.Choices) == 0:
		return option, false
	}
	option.Options, option.CurrentValue = valuesOf(o.Choices, current)
	return option, true
}

// optionID returns the client's id of an agent's own option, which must differ from the ids of
// Duet's options. agentsID is the reverse.
func optionID(id string) string {
	if id == configAgent || id == configMode || id == configModel {
		return ownPrefix + id
	}
	return id
}

const ownPrefix = "agent:"

func agentsID(id string) string {
	for _, ours := range []string{configAgent, configMode, configModel} {
		if id == ownPrefix+ours {
			return ours
		}
	}
	return id
}

// valuesOf converts choices, and adds a missing current one.
func valuesOf(choices []domain.Choice, current string) ([]acp.ConfigValue, string) {
	values := make([]acp.ConfigValue, 0, len(choices)+1)
	known := false
	for _, c := range choices {
		known = known || c.ID == current
		values = append(values, acp.ConfigValue{Value: c.ID, Name: cmp.Or(c.Name, c.ID), Description: c.Description})
	}
	if !known && current != "" {
		values = append(values, acp.ConfigValue{Value: current, Name: current})
	}
	return values, cmp.Or(current, values[0].Value)
}

// offers returns an error unless an option has that value. param is the client's name of the
// value.
func (v view) offers(param, id, value string) error {
	for _, o := range v.options {
		if o.ID != id {
			continue
		}
		if o.Type == "boolean" || slices.ContainsFunc(o.Options, func(c acp.ConfigValue) bool { return c.Value == value }) {
			return nil
		}
		known := make([]string, len(o.Options))
		for i, c := range o.Options {
			known[i] = c.Value
		}
		return invalidValue(param, "one of "+strings.Join(known, ", "), value)
	}
	return invalidValue("configId", "a choice that the session has", id)
}

func invalidValue(param, expected, received string) error {
	return server.InvalidParam(server.ParamError{Param: param, Expected: expected, Received: strconv.Quote(received)})
}

func (v view) commandsUpdate() acp.CommandsUpdate {
	return acp.CommandsUpdate{Kind: acp.KindCommands, Commands: v.commands}
}

// Duet's own slash commands.
const (
	commandAgent = "agent"
	commandInbox = "inbox"
	commandQueue = "queue"
)

var ownCommands = []acp.Command{
	{Name: commandAgent, Description: "Duet: show the agents, or choose the one behind this " +
		"session", Input: &acp.CommandInput{Hint: "name of an agent"}},
	{Name: commandInbox, Description: "Duet: show what waits for an answer in any session, or answer " +
		"it", Input: &acp.CommandInput{Hint: "number, and an answer: yes, no, or the number of an option"}},
	{Name: commandQueue, Description: "Duet: show the prompts that wait in this session; edit, move or drop " +
		"one", Input: &acp.CommandInput{Hint: "number, and edit TEXT, up, down or drop"}},
}

// commandsOf returns the commands of the agent behind the session, and Duet's. The agent's
// command wins over one of Duet with the same name.
func commandsOf(agents []domain.AgentCommand) []acp.Command {
	list := make([]acp.Command, 0, len(agents)+len(ownCommands))
	for _, c := range agents {
		command := acp.Command{Name: c.Name, Description: c.Description}
		if c.InputHint != "" {
			command.Input = &acp.CommandInput{Hint: c.InputHint}
		}
		list = append(list, command)
	}
	for _, own := range ownCommands {
		if !slices.ContainsFunc(list, func(c acp.Command) bool { return c.Name == own.Name }) {
			list = append(list, own)
		}
	}
	return list
}
