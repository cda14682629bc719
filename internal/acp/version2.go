package acp

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
)

// What an agent writes in version 2 of the protocol (https://agentclientprotocol.com/protocol/v2/schema).
// The types encode as in version 1. Version 2 has no modes beside a session's options, and no terminals
// or files of the client. Each message has an id, and a turn ends with a state.

type object = map[string]any

func (r InitializeResponse) version2() any {
	can := r.AgentCapabilities
	prompt, mcp := object{}, object{"stdio": Empty{}}
	for name, has := range map[string]bool{
		"image": can.PromptCapabilities.Image, "audio": can.PromptCapabilities.Audio, "embeddedContext": can.PromptCapabilities.EmbeddedContext,
	} {
		if has {
			prompt[name] = Empty{}
		}
	}
	if can.MCPCapabilities.HTTP {
		mcp["http"] = Empty{}
	}
	session := object{"prompt": prompt, "mcp": mcp}
	for name, value := range map[string]json.RawMessage{
		"delete": can.SessionCapabilities.Delete, "fork": can.SessionCapabilities.Fork,
		"additionalDirectories": can.SessionCapabilities.AdditionalDirectories, "systemPrompt": can.SessionCapabilities.SystemPrompt,
	} {
		if Has(value) {
			session[name] = value
		}
	}
	capabilities := object{"session": session}
	if can.Meta != nil {
		capabilities["_meta"] = can.Meta
	}
	return object{
		"protocolVersion": Version2, "info": r.AgentInfo, "authMethods": authMethods2(r.AuthMethods), "_meta": r.Meta,
		"capabilities": capabilities,
	}
}

type authMethod2 struct {
	ID string `json:"methodId"`
	AuthMethod
	Type string `json:"type"`
	Old  string `json:"id,omitempty"` // hides the member of version 1
}

func authMethods2(list []AuthMethod) []any {
	methods := make([]any, len(list))
	for i, m := range list {
		kind := m.Type
		if kind == "" {
			kind = "agent"
		}
		methods[i] = authMethod2{ID: m.ID, AuthMethod: m, Type: kind}
	}
	return methods
}

func (o OpenedSession) version2() any {
	r := object{"configOptions": configOptions2(o.ConfigOptions), "availableCommands": commands2(o.Commands)}
	if o.SessionID != "" {
		r["sessionId"] = o.SessionID
	}
	return r
}

func (r PromptResponse) version2() any { return object{"messageId": r.MessageID} }

func (c ConfigOptions) version2() any {
	return object{"configOptions": configOptions2(c.ConfigOptions)}
}

type configOption2 struct {
	ID string `json:"configId"`
	ConfigOption
	Old string `json:"id,omitempty"` // hides the member of version 1
}

func configOptions2(list []ConfigOption) []configOption2 {
	options := make([]configOption2, len(list))
	for i, o := range list {
		options[i] = configOption2{ID: o.ID, ConfigOption: o}
	}
	return options
}

// updates1 drops updates that version 1 does not have.
func updates1(list []any) []any {
	isState := func(u any) bool { _, is := u.(StateUpdate); return is }
	if !slices.ContainsFunc(list, isState) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), isState)
}

// updates2 converts updates about one item. It merges the pieces of a user message into one
// update, and drops updates that version 2 does not have.
func updates2(list []any) (updates []any) {
	for _, u := range list {
		if c, ok := u.(MessageChunk); ok && c.Kind == KindUserMessageChunk {
			if last := len(updates) - 1; last >= 0 {
				if message, ok := updates[last].(MessageUpdate); ok && message.MessageID == c.MessageID {
					message.Content = append(message.Content, c.Content)
					updates[last] = message
					continue
				}
			}
			updates = append(updates, UserMessage(c.MessageID, c.Content))
			continue
		}
		if u = update2(u); u != nil {
			updates = append(updates, u)
		}
	}
	return updates
}

// Replayed returns replayed updates about one item, for a client with states. It begins a message of
// the agent again, since such a client appends each piece to what it has.
func Replayed(list []any) []any {
	if len(list) == 0 {
		return list
	}
	c, ok := list[0].(MessageChunk)
	switch {
	case ok && c.Kind == KindAgentMessageChunk:
		list = slices.Insert(list, 0, any(MessageUpdate{Kind: KindAgentMessage, MessageID: c.MessageID, Content: []any{}}))
	case ok && c.Kind == KindAgentThoughtChunk:
		list = slices.Insert(list, 0, any(MessageUpdate{Kind: KindAgentThought, MessageID: c.MessageID, Content: []any{}}))
	}
	return list
}

// UserMessage returns a message of the user with its content blocks, for a client with states.
func UserMessage(id string, content ...any) MessageUpdate {
	return MessageUpdate{Kind: KindUserMessage, MessageID: id, Content: content}
}

// update2 converts an update. It returns nil if version 2 has no equivalent.
func update2(u any) any {
	switch u := u.(type) {
	case MessageChunk:
		if u.MessageID == "" {
			u.MessageID = uuid.NewString()
		}
		return u
	case ToolCall:
		u.Kind = KindToolUpdate
		return u.version2()
	case PlanUpdate:
		return object{"sessionUpdate": KindPlanUpdate, "plan": object{"type": "items", "planId": "plan", "entries": u.Entries}}
	case ConfigUpdate:
		return object{"sessionUpdate": u.Kind, "configOptions": configOptions2(u.ConfigOptions)}
	case CommandsUpdate:
		return object{"sessionUpdate": u.Kind, "availableCommands": commands2(u.Commands)}
	case ModeUpdate:
		return nil // the mode is an option there
	}
	return u
}

type toolCall2 struct {
	ToolCall
	Content   []any      `json:"content,omitzero"`
	Locations []Location `json:"locations,omitzero"`
}

// version2 converts a tool call: its diffs become patches, and its paths are absolute.
func (u ToolCall) version2() any {
	c := toolCall2{ToolCall: u}
	for _, content := range u.Content {
		if content.Type == "diff" {
			c.Content = append(c.Content, diff2(content))
		} else {
			c.Content = append(c.Content, content)
		}
	}
	for _, l := range u.Locations {
		if filepath.IsAbs(l.Path) {
			c.Locations = append(c.Locations, l)
		}
	}
	return c
}

func commands2(list []Command) []object {
	commands := make([]object, len(list))
	for i, c := range list {
		commands[i] = object{"type": "command", "name": c.Name, "description": c.Description}
		if c.Input != nil {
			commands[i]["input"] = object{"type": "text", "hint": c.Input.Hint}
		}
	}
	return commands
}

type permissionRequest2 struct {
	SessionID   string             `json:"sessionId"`
	Title       string             `json:"title"`
	Description string             `json:"description,omitempty"`
	Subject     any                `json:"subject,omitempty"`
	Options     []PermissionOption `json:"options"`
}

// version2 converts a permission request. Its subject is the tool call, if it is about one.
func (q PermissionRequest) version2() any {
	p := permissionRequest2{SessionID: q.SessionID, Title: q.Title, Description: q.Description, Options: q.Options}
	if q.IsAboutCall {
		p.Subject = object{"type": "tool_call", "toolCall": q.ToolCall.version2()}
	}
	return p
}
