package acp

import (
	"cmp"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// members are the members of an agent's JSON object. Reading a member removes it; the unknown
// rest is passed on.
type members map[string]json.RawMessage

func membersOf(raw json.RawMessage) members {
	var m members
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// text removes and returns a string member. Null is no string.
func (m members) text(name string) (text string) {
	raw, there := m[name]
	if there && json.Unmarshal(raw, &text) == nil {
		delete(m, name)
	}
	return text
}

// list removes and returns a member that is a list of objects.
func (m members) list(name string) (list []members, ok bool) {
	raw, there := m[name]
	if !there {
		return nil, false
	}
	if list, ok = listOf(raw); ok {
		delete(m, name)
	}
	return list, ok
}

// rest returns the members that were not read.
func (m members) rest() json.RawMessage {
	for name, value := range m {
		if string(value) == "null" {
			delete(m, name)
		}
	}
	if len(m) == 0 {
		return nil
	}
	raw, _ := json.Marshal(m) // it was JSON
	return raw
}

// listOf returns the objects of a JSON list. It skips other values.
func listOf(raw json.RawMessage) (list []members, ok bool) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil || items == nil {
		return nil, false
	}
	list = []members{}
	for _, item := range items {
		if m := membersOf(item); m != nil {
			list = append(list, m)
		}
	}
	return list, true
}

// choicesOf converts a list of objects to choices; id names the member with the id. It skips an
// object without one.
func choicesOf(list []members, id, group string) []domain.Choice {
	var choices []domain.Choice
	for _, m := range list {
		c := domain.Choice{ID: m.text(id), Name: m.text("name"), Description: m.text("description"), Group: group}
		if c.ID == "" {
			continue
		}
		c.Extra = m.rest()
		choices = append(choices, c)
	}
	return choices
}

// An offer is the settings that an agent reports when it opens a session.
type offer struct {
	modes, models *catalog.Selection    // nil: not reported
	options       []catalog.Option      // nil: not reported
	commands      []domain.AgentCommand // nil: not reported
}

// readOffer reads the result of session/new, session/load or session/resume. A malformed member
// counts as absent.
func readOffer(result json.RawMessage) offer {
	m := membersOf(result)
	options, _ := optionsOf(m["configOptions"])
	commands, _ := commandsOf(m["availableCommands"])
	return offer{
		commands: commands,
		modes:    selectionOf(m["modes"], "currentModeId", "availableModes", "id"),
		models:   selectionOf(m["models"], "currentModelId", "availableModels", "modelId"),
		options:  options,
	}
}

// selectionOf reads the modes or models in the result of session/new. It returns nil if there are
// none.
func selectionOf(raw json.RawMessage, current, available, id string) *catalog.Selection {
	m := membersOf(raw)
	if m == nil {
		return nil
	}
	list, _ := m.list(available)
	return &catalog.Selection{Current: m.text(current), Choices: choicesOf(list, id, "")}
}

// optionsOf reads configuration options, those of unknown types included. ok is false if raw is
// no list.
func optionsOf(raw json.RawMessage) (options []catalog.Option, ok bool) {
	list, ok := listOf(raw)
	if !ok {
		return nil, false
	}
	options = []catalog.Option{}
	for _, m := range list {
		o := catalog.Option{ID: cmp.Or(
			m.text("id"), m.text("configId"),
		), Name: m.text("name"), Description: m.text("description"), Category: m.text("category"), Type: m.text("type")}
		if o.ID == "" {
			continue
		}
		if o.Current = m.text("currentValue"); o.Type == "boolean" {
			var on bool
			if json.Unmarshal(m["currentValue"], &on) == nil {
				delete(m, "currentValue")
			}
			o.Current, o.Choices = "false", []domain.Choice{{ID: "true"}, {ID: "false"}}
			if on {
				o.Current = "true"
			}
		}
		if values, ok := m.list("options"); ok {
			o.Choices = append(o.Choices, valuesOf(values)...)
		}
		o.Extra = m.rest()
		options = append(options, o)
	}
	return options, true
}

// valuesOf returns the values of an option, also those in groups.
func valuesOf(list []members) (choices []domain.Choice) {
	for _, m := range list {
		if grouped, ok := m.list("options"); ok {
			heading := m.text("name")
			if group := m.text("group"); heading == "" {
				heading = group
			}
			choices = append(choices, choicesOf(grouped, "value", heading)...)
			continue
		}
		choices = append(choices, choicesOf([]members{m}, "value", "")...)
	}
	return choices
}

// commandsOf reads slash commands. ok is false if raw is no list.
func commandsOf(raw json.RawMessage) (commands []domain.AgentCommand, ok bool) {
	list, ok := listOf(raw)
	if !ok {
		return nil, false
	}
	commands = []domain.AgentCommand{}
	for _, m := range list {
		c := domain.AgentCommand{Name: m.text("name"), Description: m.text("description")}
		if c.Name == "" {
			continue
		}
		if input := membersOf(m["input"]); input != nil {
			c.InputHint = input.text("hint")
			if len(input) == 0 {
				delete(m, "input")
			}
		}
		c.Extra = m.rest()
		commands = append(commands, c)
	}
	return commands, true
}

// infoAfter returns a session's info after an update. An absent member changes nothing, and null
// removes a value.
func infoAfter(before *domain.SessionInfo, raw json.RawMessage) *domain.SessionInfo {
	var info domain.SessionInfo
	if before != nil {
		info = *before
	}
	m := membersOf(raw)
	for name, field := range map[string]*string{"title": &info.Title, "updatedAt": &info.Updated} {
		if _, there := m[name]; there {
			*field = m.text(name)
		}
	}
	return &info
}
