package acpagent

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/wire"
	"github.com/duet-rpc/duet-rpc/server"
)

// The ids of the choices that every session has.
const (
	configAgent = "agent"
	configMode  = "mode"
	configModel = "model"
)

// A view is what a client is told of a session's settings.
type view struct {
	modes    *schema.Modes
	options  []schema.ConfigOption
	commands []schema.Command
	title    string
	working  bool // a turn is under way, or waits
}

// viewOf is how a session is set, as the client is told it.
func (s *session) viewOf(state wire.Session, agents []wire.Agent) view {
	v := view{title: state.Title, working: state.State != "" && !wire.Ended(state.State)}
	if v.title == "" && state.AgentSession.Info != nil {
		v.title = state.AgentSession.Info.Title
	}
	v.options = append(v.options, agentOption(state.Agent, agents))
	mode := cmp.Or(state.RequestedMode, state.Mode, state.AgentMode)
	if mode == "" && state.AgentSession.Mode != nil {
		mode = state.AgentSession.Mode.Current
	}
	if len(state.Modes) > 0 {
		modes, current := valuesOf(state.Modes, cmp.Or(mode, "default"))
		v.modes = &schema.Modes{Current: current}
		for _, m := range modes {
			v.modes.Available = append(v.modes.Available, schema.Mode{ID: m.Value, Name: m.Name, Description: m.Description})
		}
		v.options = append(v.options, schema.ConfigOption{ID: configMode, Name: "Mode", Category: "mode", Type: "select", CurrentValue: current, Options: modes})
	}
	if m := state.AgentSession.Model; m != nil && len(m.Available) > 0 {
		models, current := valuesOf(m.Available, cmp.Or(state.RequestedModel, m.Current, state.Model))
		v.options = append(v.options, schema.ConfigOption{ID: configModel, Name: "Model", Category: "model", Type: "select", CurrentValue: current, Options: models})
	}
	for _, o := range state.AgentSession.Options {
		if option, ok := s.ownOption(o, state.RequestedOptions[o.ID]); ok {
			v.options = append(v.options, option)
		}
	}
	v.commands = commandsOf(state.AgentSession.Commands)
	return v
}

// agentOption chooses the agent behind.
func agentOption(current string, agents []wire.Agent) schema.ConfigOption {
	o := schema.ConfigOption{ID: configAgent, Name: "Agent", Description: "The agent behind Duet. Another one is told what was said so far.", Category: "_duet_agent", Type: "select", CurrentValue: current}
	for _, a := range agents {
		if a.Available || a.Name == current {
			o.Options = append(o.Options, schema.ConfigValue{Value: a.Name, Name: cmp.Or(a.Title, a.Name)})
		}
	}
	if !slices.ContainsFunc(o.Options, func(v schema.ConfigValue) bool { return v.Value == current }) {
		o.Options = append(o.Options, schema.ConfigValue{Value: current, Name: current})
	}
	return o
}

// ownOption is a setting of the agent's own, where it is none of those that every
// session has.
func (s *session) ownOption(o wire.AgentOption, wanted string) (schema.ConfigOption, bool) {
	current := cmp.Or(wanted, o.Current)
	option := schema.ConfigOption{ID: optionID(o.ID), Name: cmp.Or(o.Name, o.ID), Description: o.Description, Category: o.Category, Type: "select", CurrentValue: current}
	switch {
	case o.Category == "mode", o.Category == "model":
		return option, false
	case o.Type == "boolean" && schema.Has(s.agent.client.capabilities().Session.ConfigOptions.Boolean):
		option.Type, option.CurrentValue = "boolean", current == "true"
		return option, true
	case o.Type == "boolean":
		option.Options = []schema.ConfigValue{{Value: "true", Name: "On"}, {Value: "false", Name: "Off"}}
		return option, true
	case len(o.Values) == 0:
		return option, false
	}
	option.Options, option.CurrentValue = valuesOf(o.Values, current)
	return option, true
}

// optionID is the id of an agent's own setting, which must be none of ours; agentsID
// the agent's.
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

// valuesOf are choices with the current one among them.
func valuesOf(choices []wire.Choice, current string) ([]schema.ConfigValue, string) {
	values := make([]schema.ConfigValue, 0, len(choices)+1)
	known := false
	for _, c := range choices {
		known = known || c.ID == current
		values = append(values, schema.ConfigValue{Value: c.ID, Name: cmp.Or(c.Name, c.ID), Description: c.Description})
	}
	if !known && current != "" {
		values = append(values, schema.ConfigValue{Value: current, Name: current})
	}
	return values, cmp.Or(current, values[0].Value)
}

// offers reports whether a value can be chosen, which the client calls param.
func (v view) offers(param, id, value string) error {
	for _, o := range v.options {
		if o.ID != id {
			continue
		}
		if o.Type == "boolean" || slices.ContainsFunc(o.Options, func(c schema.ConfigValue) bool { return c.Value == value }) {
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

func (v view) commandsUpdate() schema.Commands {
	return schema.Commands{Kind: schema.KindCommands, Commands: v.commands}
}

// Duet's own slash commands.
const (
	commandAgent = "agent"
	commandInbox = "inbox"
	commandQueue = "queue"
)

var ownCommands = []schema.Command{
	{Name: commandAgent, Description: "Duet: show the agents, or choose the one behind this session", Input: &schema.CommandInput{Hint: "name of an agent"}},
	{Name: commandInbox, Description: "Duet: show what waits for an answer in any session, or answer it", Input: &schema.CommandInput{Hint: "number, and an answer: yes, no, or the number of an option"}},
	{Name: commandQueue, Description: "Duet: show the prompts that wait in this session; edit, move or drop one", Input: &schema.CommandInput{Hint: "number, and edit TEXT, up, down or drop"}},
}

// commandsOf are the commands of the agent behind, and Duet's. Of two with one name the
// agent's counts.
func commandsOf(agents []wire.AgentCommand) []schema.Command {
	list := make([]schema.Command, 0, len(agents)+len(ownCommands))
	for _, c := range agents {
		command := schema.Command{Name: c.Name, Description: c.Description}
		if c.InputHint != "" {
			command.Input = &schema.CommandInput{Hint: c.InputHint}
		}
		list = append(list, command)
	}
	for _, own := range ownCommands {
		if !slices.ContainsFunc(list, func(c schema.Command) bool { return c.Name == own.Name }) {
			list = append(list, own)
		}
	}
	return list
}
