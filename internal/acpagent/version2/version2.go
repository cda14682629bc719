// Package version2 writes what an agent says as the Agent Client Protocol's version 2 has
// it (https://agentclientprotocol.com/protocol/v2/schema), from the types of package
// schema. Version 2 has no modes beside the choices of a session, and no terminals or
// files of the client; each message has an id, and a turn ends with a state.
package version2

import (
	"path/filepath"
	"slices"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
)

type object = map[string]any

// Initialized is the answer to initialize.
func Initialized(r schema.InitializeResponse) any {
	present := object{}
	return object{
		"protocolVersion": schema.Version2, "info": r.AgentInfo, "authMethods": AuthMethods(r.AuthMethods), "_meta": r.Meta,
		"capabilities": object{"session": object{
			"prompt": object{"image": present, "audio": present, "embeddedContext": present},
			"mcp":    object{"stdio": present, "http": present},
			"delete": present, "fork": present, "additionalDirectories": present, "systemPrompt": present,
		}},
	}
}

type authMethod struct {
	ID string `json:"methodId"`
	schema.AuthMethod
	Type string `json:"type"`
	Old  string `json:"id,omitempty"` // hides version 1's
}

// AuthMethods are ways to sign in.
func AuthMethods(list []schema.AuthMethod) []any {
	methods := make([]any, len(list))
	for i, m := range list {
		kind := m.Type
		if kind == "" {
			kind = "agent"
		}
		methods[i] = authMethod{ID: m.ID, AuthMethod: m, Type: kind}
	}
	return methods
}

// Opened is the answer to what makes or opens a session.
func Opened(o schema.Opened) any {
	r := object{"configOptions": configOptions(o.ConfigOptions), "availableCommands": commands(o.Commands)}
	if o.SessionID != "" {
		r["sessionId"] = o.SessionID
	}
	return r
}

// Accepted is the answer to a prompt that is in the conversation.
func Accepted(r schema.PromptResponse) any { return object{"messageId": r.MessageID} }

// ConfigOptions is the answer to the choice of a value.
func ConfigOptions(c schema.ConfigOptions) any {
	return object{"configOptions": configOptions(c.ConfigOptions)}
}

type configOption struct {
	ID string `json:"configId"`
	schema.ConfigOption
	Old string `json:"id,omitempty"` // hides version 1's
}

func configOptions(list []schema.ConfigOption) []configOption {
	options := make([]configOption, len(list))
	for i, o := range list {
		options[i] = configOption{ID: o.ID, ConfigOption: o}
	}
	return options
}

// Updates are updates that tell of one thing. The pieces of a message of the user are one
// update; updates that version 2 does not have are left out.
func Updates(list []any) (updates []any) {
	for _, u := range list {
		if c, ok := u.(schema.Chunk); ok && c.Kind == schema.UserMessageChunk {
			if last := len(updates) - 1; last >= 0 {
				if message, ok := updates[last].(schema.Message); ok && message.MessageID == c.MessageID {
					message.Content = append(message.Content, c.Content)
					updates[last] = message
					continue
				}
			}
			updates = append(updates, UserMessage(c.MessageID, c.Content))
			continue
		}
		if u = update(u); u != nil {
			updates = append(updates, u)
		}
	}
	return updates
}

// Replayed are updates that tell again of one thing that was said or done: a message of the
// agent begins anew, since a client adds each piece to what it has.
func Replayed(list []any) []any {
	if len(list) == 0 {
		return list
	}
	c, ok := list[0].(schema.Chunk)
	switch {
	case ok && c.Kind == schema.AgentMessageChunk:
		list = slices.Insert(list, 0, any(schema.Message{Kind: schema.KindAgentMessage, MessageID: c.MessageID, Content: []any{}}))
	case ok && c.Kind == schema.AgentThoughtChunk:
		list = slices.Insert(list, 0, any(schema.Message{Kind: schema.KindAgentThought, MessageID: c.MessageID, Content: []any{}}))
	}
	return list
}

// UserMessage is a message of the user with its content blocks.
func UserMessage(id string, content ...any) schema.Message {
	return schema.Message{Kind: schema.KindUserMessage, MessageID: id, Content: content}
}

// update is an update, or nil where there is nothing of the kind.
func update(u any) any {
	switch u := u.(type) {
	case schema.Chunk:
		if u.MessageID == "" {
			u.MessageID = uuid.NewString()
		}
		return u
	case schema.ToolCall:
		u.Kind = schema.KindToolUpdate
		return toolCall(u)
	case schema.Plan:
		return object{"sessionUpdate": schema.KindPlanUpdate, "plan": object{"type": "items", "planId": "plan", "entries": u.Entries}}
	case schema.ConfigUpdate:
		return object{"sessionUpdate": u.Kind, "configOptions": configOptions(u.ConfigOptions)}
	case schema.Commands:
		return object{"sessionUpdate": u.Kind, "availableCommands": commands(u.Commands)}
	case schema.ModeUpdate:
		return nil // it is one of the choices
	}
	return u
}

type calledTool struct {
	schema.ToolCall
	Content   []any             `json:"content,omitzero"`
	Locations []schema.Location `json:"locations,omitzero"`
}

// toolCall is a tool call. Its diffs are patches, and its paths are absolute.
func toolCall(u schema.ToolCall) any {
	c := calledTool{ToolCall: u}
	for _, content := range u.Content {
		if content.Type == "diff" {
			c.Content = append(c.Content, diffOf(content))
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

func commands(list []schema.Command) []object {
	commands := make([]object, len(list))
	for i, c := range list {
		commands[i] = object{"type": "command", "name": c.Name, "description": c.Description}
		if c.Input != nil {
			commands[i]["input"] = object{"type": "text", "hint": c.Input.Hint}
		}
	}
	return commands
}
