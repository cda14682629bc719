package acp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// toolUpdate is a tool_call, a tool_call_update, or the toolCall of a
// permission request. Names count as they are spelled: what people are asked
// about is what the agent said, in whichever way that is read.
type toolUpdate struct {
	ToolCallID string
	Name       string // what the agent calls the tool
	Title      string
	Kind       string
	Status     string
	Content    []toolContent
	Locations  []string // paths
	RawInput   json.RawMessage
	RawOutput  json.RawMessage
	Meta       json.RawMessage

	text     string                 // what its content says, "" if there is no text in it
	shown    []catalog.ContentBlock // its content that is no text
	parent   string                 // the tool call of the sub-agent that it comes from, if that has a session of its own
	repaired bool                   // it came as no UTF-8
	strange  bool                   // it has content that nobody knows
}

// toolContent is what a tool call shows.
type toolContent struct {
	Type       string
	Content    json.RawMessage
	Path       string
	OldText    *string
	NewText    string
	TerminalID string
}

// touched is the type of content that names a file and shows nothing of it.
const touched = "touched file"

// UnmarshalJSON implements json.Unmarshaler. A message in which a name stands
// twice, or in two cases, is an error.
func (u *toolUpdate) UnmarshalJSON(raw []byte) error {
	m, err := toolinput.Members(bytes.Clone(raw)) // it is borrowed
	if err != nil {
		return err
	}
	*u = toolUpdate{RawInput: m["rawInput"], RawOutput: m["rawOutput"], Meta: m["_meta"]}
	var content, locations []json.RawMessage
	err = errors.Join(
		toolinput.Take(m, "toolCallId", &u.ToolCallID), toolinput.Take(m, "name", &u.Name), toolinput.Take(m, "title", &u.Title), toolinput.Take(m, "kind", &u.Kind),
		toolinput.Take(m, "status", &u.Status), toolinput.Take(m, "content", &content), toolinput.Take(m, "locations", &locations),
	)
	if err != nil {
		return err
	}
	if u.Status == "cancelled" { // of version 2
		u.Status = "failed"
	}
	for _, item := range locations {
		path := ""
		if m, err = toolinput.Members(item); err == nil {
			err = toolinput.Take(m, "path", &path)
		}
		if err != nil {
			return err
		}
		u.Locations = append(u.Locations, path)
	}
	return u.takeContent(content)
}

// takeContent reads what the tool call shows.
func (u *toolUpdate) takeContent(content []json.RawMessage) error {
	u.Content = make([]toolContent, 0, len(content))
	for _, item := range content {
		m, err := toolinput.Members(item)
		if err != nil {
			return err
		}
		c := toolContent{Content: m["content"]}
		var changes []fileChange
		var patch struct{ Format, Text string }
		err = errors.Join(
			toolinput.Take(m, "type", &c.Type), toolinput.Take(m, "path", &c.Path), toolinput.Take(m, "oldText", &c.OldText),
			toolinput.Take(m, "newText", &c.NewText), toolinput.Take(m, "terminalId", &c.TerminalID),
			toolinput.Take(m, "changes", &changes), toolinput.Take(m, "patch", &patch),
		)
		if err != nil {
			return err
		}
		if changes == nil {
			u.Content = append(u.Content, c)
			continue
		}
		u.Content = append(u.Content, contentOfDiff(changes, patch.Text)...)
	}
	u.readContent()
	return nil
}

// readContent takes apart what the tool call shows.
func (u *toolUpdate) readContent() {
	var texts []string
	for i := range u.Content {
		c := &u.Content[i]
		if c.Type != "content" {
			continue
		}
		if kind, _ := frame.Text(frame.Member(c.Content, "type")); string(kind) == "text" {
			if text, ok := frame.Text(frame.Member(c.Content, "text")); ok {
				texts = append(texts, string(text))
			}
			continue
		}
		var known bool
		u.shown, known = addBlock(u.shown, c.Content)
		u.strange = u.strange || !known
	}
	u.text = strings.Join(texts, "\n")
}

// call is the update in the hub's terms.
func (u *toolUpdate) call() catalog.ToolCall {
	c := catalog.ToolCall{
		ToolID: u.ToolCallID, Title: u.Title, Kind: u.Kind, Status: u.Status,
		Input: present(u.RawInput), ParentID: cmp.Or(u.parent, parentOf(u.Meta)), Content: u.shown,
	}
	c.Meta = boundedMeta(u.Meta)
	for _, l := range u.Locations {
		c.Paths = appendNew(c.Paths, l)
	}
	for i := range u.Content {
		switch b := &u.Content[i]; b.Type {
		case "diff":
			c.Paths = appendNew(c.Paths, b.Path)
			c.Diffs = append(c.Diffs, catalog.FileDiff{Path: b.Path, OldText: b.OldText, NewText: b.NewText})
		case touched:
			c.Paths = appendNew(c.Paths, b.Path)
		case "terminal":
			c.Terminal = b.TerminalID
		}
	}
	return c
}

// hasStarted reports whether the update says that the tool runs, or ran.
func (u *toolUpdate) hasStarted() bool { return u.Status != "" && u.Status != "pending" }

// result is the text of the tool's content, or else its raw output.
func (u *toolUpdate) result() json.RawMessage {
	if u.text != "" {
		raw, _ := task.JSON(u.text)
		return raw
	}
	if len(u.shown) > 0 { // the raw output would be its bytes again
		return nil
	}
	return present(u.RawOutput)
}

// parentOf is the tool call of the sub-agent that an update comes from, as claude
// says it, or empty.
func parentOf(meta json.RawMessage) string { return metaString(meta, "claudeCode", "parentToolUseId") }

// metaString is the string at meta.family.name, or empty.
func metaString(meta json.RawMessage, family, name string) string {
	if len(meta) == 0 {
		return ""
	}
	var s string
	json.Unmarshal(toolinput.At(meta, family, name), &s)
	return s
}
