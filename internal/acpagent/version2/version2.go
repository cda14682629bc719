// Package version2 spells what an agent says as the draft of the Agent Client Protocol's
// version 2 has it (https://agentclientprotocol.com/protocol/v2/schema), from what it
// says in version 1: as far as that is the same thing. It has no modes beside the choices
// of a session, no terminals of the client, and the end of a turn is a state.
package version2

import (
	"github.com/duet-rpc/duet-rpc/internal/acpagent/schema"
	"github.com/duet-rpc/duet-rpc/internal/diff"
)

type object = map[string]any

// Initialized is the answer to initialize.
func Initialized(r schema.InitializeResponse) any {
	present := object{}
	return object{
		"protocolVersion": schema.Version2, "info": r.AgentInfo, "authMethods": []schema.AuthMethod{}, // auth/login is not served
		"capabilities": object{"session": object{
			"prompt": object{"image": present, "audio": present, "embeddedContext": present},
			"mcp":    object{"stdio": present, "http": present},
			"delete": present, "additionalDirectories": present,
		}},
	}
}

// Opened is the answer to what makes or opens a session.
func Opened(o schema.Opened) any {
	r := object{"configOptions": configOptions(o.ConfigOptions)}
	if o.SessionID != "" {
		r["sessionId"] = o.SessionID
	}
	return r
}

// Accepted is the answer to a prompt, which says nothing of its end.
func Accepted(schema.PromptResponse) any { return object{} }

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

// Update is an update, or nil where there is nothing of the kind. id is that of a message
// which has none.
func Update(u any, id string) any {
	switch u := u.(type) {
	case schema.Chunk:
		if u.MessageID == "" {
			u.MessageID = id
		}
		return u
	case schema.ToolCall:
		u.Kind = schema.KindToolUpdate
		return toolCall(u)
	case schema.Plan:
		return object{"sessionUpdate": "plan_update", "plan": object{"type": "items", "planId": "plan", "entries": u.Entries}}
	case schema.ConfigUpdate:
		return object{"sessionUpdate": u.Kind, "configOptions": configOptions(u.ConfigOptions)}
	case schema.Commands:
		return object{"sessionUpdate": u.Kind, "availableCommands": commands(u.Commands)}
	case schema.ModeUpdate:
		return nil // it is one of the choices
	case schema.InfoUpdate, schema.UsageUpdate, StateUpdate:
		return u
	}
	return nil // an agent's own, in version 1
}

type calledTool struct {
	schema.ToolCall
	Content []any `json:"content,omitzero"`
}

// toolCall is a tool call, whose diffs are patches.
func toolCall(u schema.ToolCall) any {
	c := calledTool{ToolCall: u}
	for _, content := range u.Content {
		if content.Type != "diff" {
			c.Content = append(c.Content, content)
			continue
		}
		operation := "modify"
		if content.OldText == nil {
			operation = "add"
		}
		c.Content = append(c.Content, object{
			"type": "diff", "changes": []object{{"operation": operation, "path": content.Path}},
			"patch": object{"format": "git_patch", "text": diff.Unified("/", content.Path, content.OldText, content.NewText)},
		})
	}
	return c
}

func commands(list []schema.Command) []object {
	commands := make([]object, len(list))
	for i, c := range list {
		commands[i] = object{"name": c.Name, "description": c.Description}
		if c.Input != nil {
			commands[i]["input"] = object{"type": "text", "hint": c.Input.Hint}
		}
	}
	return commands
}

// Permission is a question about a tool call.
func Permission(r schema.PermissionRequest) any {
	return object{
		"sessionId": r.SessionID, "title": r.ToolCall.Title, "options": r.Options,
		"subject": object{"type": "tool_call", "toolCall": toolCall(r.ToolCall)},
	}
}

// A StateUpdate says whether the agent is at work.
type StateUpdate struct {
	Kind       string `json:"sessionUpdate"`
	State      string `json:"state"`
	StopReason string `json:"stopReason,omitempty"`
}

// States.
const (
	Running        = "running"
	Idle           = "idle"
	RequiresAction = "requires_action"
)

// Failed is why a turn that failed stopped: the protocol has no word for it.
const Failed = "_duet_failed"

// State is a new state; stopReason is empty unless the agent is idle now.
func State(state, stopReason string) StateUpdate {
	return StateUpdate{"state_update", state, stopReason}
}
