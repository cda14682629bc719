package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// permissionRequest is the agent's question.
type permissionRequest struct {
	ToolCall json.RawMessage `json:"toolCall"`
	Options  []struct {
		OptionID string `json:"optionId"`
		Name     string `json:"name"`
		Kind     string `json:"kind"`
	} `json:"options"`
}

// permissionAnswer is what the agent is told. The protocol has no place for a
// changed input or for words, so they are in _meta.duet. Only an agent that
// says so in the _meta of its capabilities, {"duet":{"updatedInput":true}},
// runs a tool with a changed input.
type permissionAnswer struct {
	Meta    map[string]any    `json:"_meta,omitempty"`
	Outcome permissionOutcome `json:"outcome"`
}

type permissionOutcome struct {
	Outcome  string `json:"outcome"` // selected or cancelled
	OptionID string `json:"optionId,omitempty"`
}

const selected = "selected"

var cancelledAnswer = permissionAnswer{Outcome: permissionOutcome{Outcome: "cancelled"}}

// requestPermission asks the hub, and waits until somebody has decided, the
// run is to be stopped or the agent has gone.
func (a *agent) requestPermission(ctx context.Context, p permissionRequest) (permissionAnswer, error) {
	r := a.current.Load()
	var u toolUpdate
	if err := json.Unmarshal(p.ToolCall, &u); err != nil {
		return permissionAnswer{}, err
	}
	if r == nil || r.stopped() {
		return cancelledAnswer, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)()
	question := r.question(p, &u)
	r.took(r.given.asks(u.ToolCallID))
	defer r.given.asksNoMore(u.ToolCallID)
	question.InputFixed = string(metaValue(a.hello.AgentCapabilities.Meta, "duet", "updatedInput")) != "true"
	if len(question.Options) == 0 { // whatever were decided, there is no answer that says so
		r.complain("PERMISSION_FAILED", fmt.Sprintf("the agent asked for leave (%s) without an answer to choose, so it was told that nobody decided", question.Title))
		return cancelledAnswer, nil
	}
	answer, err := a.x.daemon.RequestPermission(ctx, question)
	switch {
	case ctx.Err() != nil, err == nil && answer.Cancelled:
		return cancelledAnswer, nil
	case err != nil:
		r.complain("PERMISSION_FAILED", "the hub could not be asked for permission, so the tool was denied: "+err.Error())
	}
	chosen := choose(question.Options, answer)
	if answer.ApprovalID != "" && chosen.Outcome.Outcome == selected {
		r.given.give(answer.ApprovalID, u.ToolCallID, chosen)
	}
	return chosen, nil
}

// question is what the hub is asked: the request, and what was said of the
// tool call before.
func (r *run) question(p permissionRequest, u *toolUpdate) catalog.RequestPermissionParams {
	call := u.call()
	t := r.remember(u, call)
	r.files.mention(t.kind, "pending", t.paths, t.diffs)
	q := catalog.RequestPermissionParams{
		SessionToken: r.params.SessionToken, TaskID: r.task, ToolUseID: u.ToolCallID,
		ToolName: t.name, ToolInput: t.input, Title: t.title, ToolKind: t.kind, Paths: t.paths, Diffs: t.diffs,
	}
	for _, o := range p.Options {
		q.Options = append(q.Options, catalog.PermissionOption{OptionID: o.OptionID, Name: o.Name, Kind: o.Kind})
		if !strings.HasPrefix(o.Kind, "allow_") && !strings.HasPrefix(o.Kind, "reject_") {
			q.IsQuestion = true
		}
	}
	if string(metaValue(u.Meta, "duet", "question")) == "true" {
		q.IsQuestion = true
	}
	return q
}

// choose picks the option for a decision: the one that it names, or else the
// one that goes least far.
func choose(options []catalog.PermissionOption, d catalog.RequestPermissionResult) permissionAnswer {
	kinds := []string{"reject_once", "reject_always"}
	if d.Approved {
		kinds = []string{"allow_once", "allow_always"}
	}
	answer := permissionAnswer{Outcome: permissionOutcome{Outcome: selected}}
	for _, o := range options {
		if d.OptionID != "" && o.OptionID == d.OptionID {
			answer.Outcome.OptionID = o.OptionID
		}
	}
	for _, kind := range kinds {
		for _, o := range options {
			if answer.Outcome.OptionID == "" && o.Kind == kind {
				answer.Outcome.OptionID = o.OptionID
			}
		}
	}
	if answer.Outcome.OptionID == "" && d.Approved { // a question without a choice: the words are the answer
		for _, o := range options {
			if !strings.HasPrefix(o.Kind, "reject_") {
				answer.Outcome.OptionID = o.OptionID
				break
			}
		}
	}
	if answer.Outcome.OptionID == "" {
		answer = cancelledAnswer
	}
	ours := map[string]any{}
	if d.UpdatedInput != nil {
		ours["updatedInput"] = d.UpdatedInput
	}
	if d.Comment != "" {
		ours["comment"] = d.Comment
	}
	if len(ours) > 0 {
		answer.Meta = map[string]any{"duet": ours}
	}
	return answer
}
