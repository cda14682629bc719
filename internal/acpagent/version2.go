package acpagent

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// Version 2 of the Agent Client Protocol (https://agentclientprotocol.com/protocol/v2/schema),
// made of the types of version 1. It has no modes beside a session's choices, and no terminals
// or files of the client; each message has an id, and a turn ends with a state.

type object2 = map[string]any

// initialized2 is the answer to initialize.
func initialized2(r acp.InitializeResponse) any {
	present := object2{}
	return object2{
		"protocolVersion": acp.Version2, "info": r.AgentInfo, "authMethods": authMethods2(r.AuthMethods), "_meta": r.Meta,
		"capabilities": object2{"session": object2{
			"prompt": object2{"image": present, "audio": present, "embeddedContext": present},
			"mcp":    object2{"stdio": present, "http": present},
			"delete": present, "fork": present, "additionalDirectories": present, "systemPrompt": present,
		}},
	}
}

type authMethod struct {
	ID string `json:"methodId"`
	acp.AuthMethod
	Type string `json:"type"`
	Old  string `json:"id,omitempty"` // hides version 1's
}

// authMethods2 are ways to sign in.
func authMethods2(list []acp.AuthMethod) []any {
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

// opened2 is the answer to what makes or opens a session.
func opened2(o acp.OpenedSession) any {
	r := object2{"configOptions": configOption2(o.ConfigOptions), "availableCommands": commands(o.Commands)}
	if o.SessionID != "" {
		r["sessionId"] = o.SessionID
	}
	return r
}

// accepted2 is the answer to a prompt that is in the conversation.
func accepted2(r acp.PromptResponse) any { return object2{"messageId": r.MessageID} }

// configOptions2 is the answer to the choice of a value.
func configOptions2(c acp.ConfigOptions) any {
	return object2{"configOptions": configOption2(c.ConfigOptions)}
}

type configOption struct {
	ID string `json:"configId"`
	acp.ConfigOption
	Old string `json:"id,omitempty"` // hides version 1's
}

func configOption2(list []acp.ConfigOption) []configOption {
	options := make([]configOption, len(list))
	for i, o := range list {
		options[i] = configOption{ID: o.ID, ConfigOption: o}
	}
	return options
}

// updates2 are updates that tell of one thing. The pieces of a message of the user are one
// update; updates that version 2 does not have are left out.
func updates2(list []any) (updates []any) {
	for _, u := range list {
		if c, ok := u.(acp.MessageChunk); ok && c.Kind == acp.KindUserMessageChunk {
			if last := len(updates) - 1; last >= 0 {
				if message, ok := updates[last].(acp.MessageUpdate); ok && message.MessageID == c.MessageID {
					message.Content = append(message.Content, c.Content)
					updates[last] = message
					continue
				}
			}
			updates = append(updates, userMessage2(c.MessageID, c.Content))
			continue
		}
		if u = update(u); u != nil {
			updates = append(updates, u)
		}
	}
	return updates
}

// replayed2 are updates that tell again of one thing that was said or done: a message of the
// agent begins anew, since a client adds each piece to what it has.
func replayed2(list []any) []any {
	if len(list) == 0 {
		return list
	}
	c, ok := list[0].(acp.MessageChunk)
	switch {
	case ok && c.Kind == acp.KindAgentMessageChunk:
		list = slices.Insert(list, 0, any(acp.MessageUpdate{Kind: acp.KindAgentMessage, MessageID: c.MessageID, Content: []any{}}))
	case ok && c.Kind == acp.KindAgentThoughtChunk:
		list = slices.Insert(list, 0, any(acp.MessageUpdate{Kind: acp.KindAgentThought, MessageID: c.MessageID, Content: []any{}}))
	}
	return list
}

// userMessage2 is a message of the user with its content blocks.
func userMessage2(id string, content ...any) acp.MessageUpdate {
	return acp.MessageUpdate{Kind: acp.KindUserMessage, MessageID: id, Content: content}
}

// update is an update, or nil where there is nothing of the kind.
func update(u any) any {
	switch u := u.(type) {
	case acp.MessageChunk:
		if u.MessageID == "" {
			u.MessageID = uuid.NewString()
		}
		return u
	case acp.ToolCall:
		u.Kind = acp.KindToolUpdate
		return toolCall(u)
	case acp.PlanUpdate:
		return object2{"sessionUpdate": acp.KindPlanUpdate, "plan": object2{"type": "items", "planId": "plan", "entries": u.Entries}}
	case acp.ConfigUpdate:
		return object2{"sessionUpdate": u.Kind, "configOptions": configOption2(u.ConfigOptions)}
	case acp.CommandsUpdate:
		return object2{"sessionUpdate": u.Kind, "availableCommands": commands(u.Commands)}
	case acp.ModeUpdate:
		return nil // it is one of the choices
	}
	return u
}

type calledTool struct {
	acp.ToolCall
	Content   []any          `json:"content,omitzero"`
	Locations []acp.Location `json:"locations,omitzero"`
}

// toolCall is a tool call. Its diffs are patches, and its paths are absolute.
func toolCall(u acp.ToolCall) any {
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

func commands(list []acp.Command) []object2 {
	commands := make([]object2, len(list))
	for i, c := range list {
		commands[i] = object2{"type": "command", "name": c.Name, "description": c.Description}
		if c.Input != nil {
			commands[i]["input"] = object2{"type": "text", "hint": c.Input.Hint}
		}
	}
	return commands
}

// diffOf is a change of a file: what it does to which path, and a patch. Where the path is
// not absolute, which version 2 wants, it is a diff as text.
func diffOf(c acp.ToolContent) any {
	if !filepath.IsAbs(c.Path) {
		text := acp.TextContent("```diff\n" + diff.Unified("/", c.Path, c.OldText, c.NewText) + "```\n")
		return acp.ToolContent{Type: "content", Content: &text}
	}
	operation := "modify"
	if c.OldText == nil {
		operation = "add"
	}
	d := object2{"type": "diff", "changes": []object2{{"operation": operation, "path": c.Path}}}
	if text := patch(c); text != "" {
		d["patch"] = object2{"format": "git_patch", "text": text}
	}
	return d
}

// patch is a change as git writes it, but with absolute paths, and without the prefixes
// a/ and b/. It is empty if nothing changes.
func patch(c acp.ToolContent) string {
	unified := diff.Unified("/", c.Path, c.OldText, c.NewText)
	_, hunks, _ := strings.Cut("\n"+unified, "\n@@")
	if hunks == "" && c.OldText != nil {
		return ""
	}
	path := quoted(c.Path)
	var b strings.Builder
	fmt.Fprintf(&b, "diff --git %s %s\n", path, path)
	before := path
	if c.OldText == nil {
		b.WriteString("new file mode 100644\n")
		before = "/dev/null"
	}
	if hunks != "" {
		fmt.Fprintf(&b, "--- %s\n+++ %s\n@@%s", ended2(before), ended2(path), hunks)
	}
	return b.String()
}

// ended2 is a path in a line of its own: git puts a tab behind one with spaces.
func ended2(path string) string {
	if strings.Contains(path, " ") && path[0] != '"' {
		return path + "\t"
	}
	return path
}

// quoted is a path as git quotes it.
func quoted(path string) string {
	isSpecial := func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }
	if !strings.ContainsFunc(path, isSpecial) {
		return path
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case isSpecial(rune(c)):
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

type permissionOption2 struct {
	SessionID   string                 `json:"sessionId"`
	Title       string                 `json:"title"`
	Description string                 `json:"description,omitempty"`
	Subject     any                    `json:"subject,omitempty"`
	Options     []acp.PermissionOption `json:"options"`
}

// permission2 is the request for the answer to a question. Its subject is the tool call
// that it is about, if there is one.
func permission2(q wire.Approval, r acp.PermissionRequest) any {
	p := permissionOption2{SessionID: r.SessionID, Title: cmp.Or(q.Title, q.Subject, q.ToolName, "The agent asks."), Options: r.Options}
	var texts []string
	for _, text := range []string{q.Details, q.Reopened} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	p.Description = strings.Join(texts, "\n\n")
	if q.ToolUseID != "" || q.Type != domain.HumanContact {
		p.Subject = object2{"type": "tool_call", "toolCall": toolCall(r.ToolCall)}
	}
	return p
}
