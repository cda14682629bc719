package acp

import (
	"cmp"
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// members are those of an object of an agent's. What was taken of them is there no
// more; what is left is what nobody here knows, and is passed on.
type members map[string]json.RawMessage

func membersOf(raw json.RawMessage) members {
	var m members
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

// text takes a member that is a text. Null is no text.
func (m members) text(name string) (text string) {
	raw, there := m[name]
	if there && json.Unmarshal(raw, &text) == nil {
		delete(m, name)
	}
	return text
}

// list takes a member that is a list of objects.
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

// rest is what was not taken.
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

// listOf are the objects of a list. What is no object is left out.
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

// choicesOf are choices whose ids are the members of a name; one without is left
// out.
func choicesOf(list []members, id, group string) []catalog.Choice {
	var choices []catalog.Choice
	for _, m := range list {
		c := catalog.Choice{ID: m.text(id), Name: m.text("name"), Description: m.text("description"), Group: group}
		if c.ID == "" {
			continue
		}
		c.Extra = m.rest()
		choices = append(choices, c)
	}
	return choices
}

// An offer is what an agent says of its settings when it opens a session.
type offer struct {
	modes, models *catalog.Selection // nil: it says nothing
	options       []catalog.Option   // nil: it says nothing
	commands      []catalog.Command  // nil: it says nothing
}

// readOffer reads the result of session/new, session/load or session/resume. What is
// not as it should be was not said.
func readOffer(result json.RawMessage) offer {
	m := membersOf(result)
	options, _ := optionsOf(m["configOptions"])
	commands, _ := commandsOf(m["availableCommands"]) // in version 2 of the protocol
	return offer{
		commands: commands,
		modes:    selectionOf(m["modes"], "currentModeId", "availableModes", "id"),
		models:   selectionOf(m["models"], "currentModelId", "availableModels", "modelId"),
		options:  options,
	}
}

// selectionOf is what the members of session/new's result, modes and models, say;
// nil if there is none.
func selectionOf(raw json.RawMessage, current, available, id string) *catalog.Selection {
	m := membersOf(raw)
	if m == nil {
		return nil
	}
	list, _ := m.list(available)
	return &catalog.Selection{Current: m.text(current), Choices: choicesOf(list, id, "")}
}

// optionsOf are configuration options, those of unknown types included; not ok if
// that is no list.
func optionsOf(raw json.RawMessage) (options []catalog.Option, ok bool) {
	list, ok := listOf(raw)
	if !ok {
		return nil, false
	}
	options = []catalog.Option{}
	for _, m := range list {
		o := catalog.Option{ID: cmp.Or(m.text("id"), m.text("configId")), Name: m.text("name"), Description: m.text("description"), Category: m.text("category"), Type: m.text("type")}
		if o.ID == "" {
			continue
		}
		if o.Current = m.text("currentValue"); o.Type == "boolean" {
			var on bool
			if json.Unmarshal(m["currentValue"], &on) == nil {
				delete(m, "currentValue")
			}
			o.Current, o.Choices = "false", []catalog.Choice{{ID: "true"}, {ID: "false"}}
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

// valuesOf are the values of an option, also those in groups.
func valuesOf(list []members) (choices []catalog.Choice) {
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

// commandsOf are slash commands; not ok if that is no list.
func commandsOf(raw json.RawMessage) (commands []catalog.Command, ok bool) {
	list, ok := listOf(raw)
	if !ok {
		return nil, false
	}
	commands = []catalog.Command{}
	for _, m := range list {
		c := catalog.Command{Name: m.text("name"), Description: m.text("description")}
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

// infoAfter is what a session is called after an update, of which an absent member
// changes nothing and null takes away.
func infoAfter(before *catalog.SessionInfo, raw json.RawMessage) *catalog.SessionInfo {
	var info catalog.SessionInfo
	if before != nil {
		info = *before
	}
	m := membersOf(raw)
	for name, field := range map[string]*string{"title": &info.Title, "updatedAt": &info.UpdatedAt} {
		if _, there := m[name]; there {
			*field = m.text(name)
		}
	}
	return &info
}
