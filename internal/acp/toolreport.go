package acp

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// A ToolReport is a tool call as an agent sends it: a tool_call, a tool_call_update, or the tool call
// of a permission request. Member names are case-sensitive, so that the user is asked about the same
// call that any other parser reads.
type ToolReport struct {
	ToolCallID string
	Name       string // the agent's name of the tool
	Title      string
	Kind       string
	Status     string
	Content    []ReportedContent
	Locations  []string // paths
	RawInput   json.RawMessage
	RawOutput  json.RawMessage
	Meta       json.RawMessage
}

// ReportedContent is an item of a tool call's content. A diff with a patch has an item for each hunk.
type ReportedContent struct {
	Type       string
	Content    json.RawMessage
	Path       string
	OldText    *string
	NewText    string
	Line       int // as in domain.Diff
	TerminalID string
}

// Touched is the type of content that names a file without its text.
const Touched = "touched file"

// UnmarshalJSON implements json.Unmarshaler. It fails for a message with a repeated member name,
// also in another case.
func (r *ToolReport) UnmarshalJSON(raw []byte) error {
	m, err := toolinput.Members(bytes.Clone(raw)) // raw is borrowed
	if err != nil {
		return err
	}
	*r = ToolReport{RawInput: m["rawInput"], RawOutput: m["rawOutput"], Meta: m["_meta"]}
	var content, locations []json.RawMessage
	err = errors.Join(
		toolinput.Take(m, "toolCallId", &r.ToolCallID), toolinput.Take(m, "name", &r.Name),
		toolinput.Take(m, "title", &r.Title), toolinput.Take(m, "kind", &r.Kind),
		toolinput.Take(m, "status", &r.Status), toolinput.Take(m, "content", &content),
		toolinput.Take(m, "locations", &locations),
	)
	if err != nil {
		return err
	}
	if r.Status == ToolCancelled {
		r.Status = ToolFailed
	}
	for _, item := range locations {
		path := ""
		if m, err = toolinput.Members(item); err == nil {
			err = toolinput.Take(m, "path", &path)
		}
		if err != nil {
			return err
		}
		r.Locations = append(r.Locations, path)
	}
	r.Content, err = ReadContent(content)
	return err
}

// ReadContent reads the content of a tool call.
func ReadContent(list []json.RawMessage) ([]ReportedContent, error) {
	content := make([]ReportedContent, 0, len(list))
	for _, item := range list {
		m, err := toolinput.Members(item)
		if err != nil {
			return content, err
		}
		c := ReportedContent{Content: m["content"]}
		var changes []fileChange
		var patch struct{ Format, Text string }
		err = errors.Join(
			toolinput.Take(m, "type", &c.Type), toolinput.Take(m, "path", &c.Path),
			toolinput.Take(m, "oldText", &c.OldText), toolinput.Take(m, "newText", &c.NewText),
			toolinput.Take(m, "terminalId", &c.TerminalID),
			toolinput.Take(m, "changes", &changes), toolinput.Take(m, "patch", &patch),
		)
		if err != nil {
			return content, err
		}
		if changes == nil {
			content = append(content, c)
			continue
		}
		content = append(content, patched(changes, patch.Text)...)
	}
	return content, nil
}

// A QuestionReport is a permission request as an agent sends it.
type QuestionReport struct {
	Title       string // of the question, not of the tool call
	Description string
	Call        ToolReport
	IsAboutCall bool // the agent names a tool call
	Options     []PermissionOption
	Meta        json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler, as [ToolReport] does. The tool call is a member
// (version 1), or the subject of the question; the subject may be a command instead, or absent.
func (q *QuestionReport) UnmarshalJSON(raw []byte) error {
	m, err := toolinput.Members(raw)
	if err != nil {
		return err
	}
	*q = QuestionReport{Meta: m["_meta"]}
	var options []json.RawMessage
	err = errors.Join(toolinput.Take(m, "toolCall", &q.Call), toolinput.Take(m, "options", &options))
	if _, q.IsAboutCall = m["toolCall"]; err == nil && !q.IsAboutCall {
		err = q.readSubject(m)
		q.IsAboutCall = q.Call.ToolCallID != ""
	}
	if err != nil {
		return err
	}
	q.Options = make([]PermissionOption, len(options))
	for i, item := range options {
		if m, err = toolinput.Members(item); err != nil {
			return err
		}
		o := &q.Options[i]
		err = errors.Join(
			toolinput.Take(m, "optionId", &o.OptionID), toolinput.Take(m, "name", &o.Name), toolinput.Take(m, "kind", &o.Kind),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// readSubject reads the subject of a question, from the members of the request. A command becomes a
// tool call that runs it.
func (q *QuestionReport) readSubject(request map[string]json.RawMessage) error {
	err := errors.Join(toolinput.Take(request, "title", &q.Title), toolinput.Take(request, "description", &q.Description))
	subject := request["subject"]
	if err != nil || len(subject) == 0 || string(subject) == "null" {
		return err
	}
	m, err := toolinput.Members(subject)
	if err != nil {
		return err
	}
	var kind, command, dir, call string
	err = errors.Join(
		toolinput.Take(m, "type", &kind), toolinput.Take(m, "toolCall", &q.Call),
		toolinput.Take(m, "command", &command), toolinput.Take(m, "cwd", &dir), toolinput.Take(m, "toolCallId", &call),
	)
	if err != nil || kind != "command" {
		return err
	}
	q.Call.ToolCallID, q.Call.Kind, q.Title = call, "execute", command
	q.Call.RawInput, err = rawjson.Encode(map[string]string{"command": command, "cwd": dir})
	return err
}
