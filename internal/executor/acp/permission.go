package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/rawjson"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// permissionRequest is the agent's permission request.
type permissionRequest struct {
	toolUpdate
	asked acp.QuestionReport
	meta  json.RawMessage // of the request and of its tool call, an object; nil: none
}

// readPermission reads a permission request. A question about no tool call gets an id of its own.
func readPermission(params []byte) (p permissionRequest, err error) {
	if err = json.Unmarshal(params, &p.asked); err != nil {
		return p, err
	}
	p.toolUpdate = newToolUpdate(p.asked.Call)
	p.meta = joinedMeta(p.asked.Meta, p.asked.Call.Meta)
	if !p.asked.IsAboutCall {
		p.ToolCallID = process.RandomID("permission_")
	}
	return p, nil
}

// joinedMeta merges the _meta of a permission request with that of its tool call, which wins. It
// returns nil if there is none, or if it is too long.
func joinedMeta(request, call json.RawMessage) json.RawMessage {
	request, call = boundedMeta(request), boundedMeta(call)
	if request == nil {
		return call
	}
	all := map[string]json.RawMessage{}
	if json.Unmarshal(request, &all) != nil || call != nil && json.Unmarshal(call, &all) != nil {
		return nil
	}
	joined, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return boundedMeta(joined)
}

// offers reports whether the request offers an option of a kind.
func (p *permissionRequest) offers(kind string) bool {
	return slices.ContainsFunc(p.asked.Options, func(o acp.PermissionOption) bool { return o.Kind == kind })
}

var cancelledAnswer = acp.PermissionResponse{Outcome: acp.PermissionOutcome{Outcome: acp.Cancelled}}

// requestPermission asks the hub. It waits for a decision, the stop of the turn or the agent's
// exit.
func (a *agent) requestPermission(ctx context.Context, raw json.RawMessage) (acp.PermissionResponse, error) {
	t := a.turns.now()
	if t == nil {
		return cancelledAnswer, nil
	}
	open, err := t.takePermission(raw)
	if err != nil {
		t.Problem(task.CodePermission, "permission refused without asking the user, because the agent's request cannot be read: "+err.Error())
		return acp.PermissionResponse{}, acp.InvalidParams(err)
	}
	defer t.tools.close(open)
	if t.Stopped() {
		t.awaitCancel(a.life, true, a.driver.opts.CancelGrace)
		return cancelledAnswer, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.Context(), cancel)()
	call := open.request.ToolCallID
	t.delivered(t.answers.questionAsked(call))
	defer t.answers.questionClosed(call)
	answer, question, err := a.decision(ctx, t, open)
	switch {
	case errors.Is(err, errNotUTF8):
		t.Problem(task.CodePermission, fmt.Sprintf(
			"permission (%s) refused: the agent's request is not valid UTF-8, so what runs could differ from what you see", question.Title,
		))
		return acp.PermissionResponse{}, acp.InvalidParams(err)
	case errors.Is(err, errNoOptions):
		t.Problem(task.CodePermission,
			fmt.Sprintf("the agent asked for permission (%s) without options to choose from, so Duet cancelled the request", question.Title))
		return cancelledAnswer, nil
	case ctx.Err() != nil, err == nil && answer.Cancelled:
		t.awaitCancel(a.life, answer.Cancelled && !answer.Dismissed, a.driver.opts.CancelGrace)
		return cancelledAnswer, nil
	case err != nil:
		// Not a denial: the agent would remember a denial when it is resumed, and no user has
		// denied anything.
		why := fmt.Sprintf("cannot ask the hub for permission (%s), so Duet cancelled the request: %v", question.Title, err)
		t.Problem(task.CodePermission, why)
		t.Fail(task.CodePermission, why)
		return cancelledAnswer, nil
	}
	chosen := choose(question.Options, answer)
	if !answer.Approved {
		t.answers.refused(call)
	}
	if answer.ApprovalID != "" && chosen.Outcome.Outcome == acp.Selected {
		t.answers.answered(answer.ApprovalID, call, chosen)
	}
	return chosen, nil
}

var (
	errNotUTF8   = errors.New("the tool call is not valid UTF-8")
	errNoOptions = errors.New("the request has no options")
)

// decision asks the hub for a decision about the tool call in its current state. If the agent
// changes the call meanwhile, it asks again. A denial holds whatever has changed. It returns the
// question that was decided.
func (a *agent) decision(
	ctx context.Context, t *turn, open *openQuestion,
) (catalog.RequestPermissionResult, catalog.RequestPermissionParams, error) {
	type reply struct {
		result catalog.RequestPermissionResult
		err    error
	}
	var q catalog.RequestPermissionParams
	closed := func() chan struct{} { c := make(chan struct{}); close(c); return c }()
	earlier, latest := closed, closed // closed when the hub has answered the request before the latest one, and the latest one
	for revision := 0; ; revision++ {
		// An agent may change its call as fast as it writes: two requests are open at most.
		select {
		case <-earlier:
		case <-ctx.Done():
			return catalog.RequestPermissionResult{}, q, ctx.Err()
		}
		call := t.tools.state(open)
		q = a.question(t, &open.request, call)
		switch {
		case call.repaired:
			return catalog.RequestPermissionResult{}, q, errNotUTF8
		case len(q.Options) == 0: // no decision could be sent to the agent
			return catalog.RequestPermissionResult{}, q, errNoOptions
		}
		if revision == 0 {
			t.reportMeta(open, q)
		}
		asked := q
		asked.QuestionID, asked.Revision = open.id, revision
		replies, answered := make(chan reply, 1), make(chan struct{})
		earlier, latest = latest, answered
		go func() {
			defer close(answered)
			result, err := a.driver.hub.RequestPermission(ctx, asked)
			replies <- reply{result, err}
		}()
		isSame := func() bool {
			call := t.tools.state(open)
			now := a.question(t, &open.request, call)
			if toolinput.Same(now.ToolInput, q.ToolInput) {
				now.ToolInput = q.ToolInput
			}
			if q.NameByKind && now.ToolName == q.ToolName {
				// The user sees the same question, and rules can only have been stricter for
				// it. claude-agent-acp names the tool of a sub-agent after it has asked.
				now.NameByKind = true
			}
			return !call.repaired && reflect.DeepEqual(now, q)
		}
		for waiting := true; waiting; {
			select {
			case r := <-replies:
				if r.err != nil || !r.result.Approved || isSame() {
					return r.result, q, r.err
				}
				waiting = false
			case <-open.changed:
				waiting = isSame()
			}
		}
	}
}

// reportMeta adds the _meta of a permission request to its tool call. If the agent asks before it
// reports the call, this report begins the call.
func (t *turn) reportMeta(open *openQuestion, q catalog.RequestPermissionParams) {
	meta := open.request.meta
	if meta == nil || bytes.Equal(meta, open.meta) || !open.known && q.IsQuestion || !open.request.asked.IsAboutCall {
		return
	}
	call := catalog.ToolCall{ToolID: q.ToolUseID, Meta: meta}
	if !open.known {
		call.Tool, call.Title, call.Kind, call.Input, call.Paths, call.Diffs, call.ParentID = q.ToolName, q.Title, q.ToolKind, q.ToolInput, q.Paths, q.Diffs, q.ParentID
	}
	t.Event(catalog.EventToolUpdate, call)
}

// permissionArrived opens the question of a permission request, in the order of the agent's
// output: a later update changes the question. takePermission reports an unreadable request.
func (t *turn) permissionArrived(params []byte) {
	open, err := t.openQuestion(params)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.arrived == nil {
		t.arrived = make(map[string][]*openQuestion)
	}
	t.arrived[string(params)] = append(t.arrived[string(params)], open)
}

// takePermission returns the question of a request that has arrived. Requests with the same
// params are interchangeable.
func (t *turn) takePermission(params []byte) (*openQuestion, error) {
	t.mu.Lock()
	if waiting := t.arrived[string(params)]; len(waiting) > 0 {
		defer t.mu.Unlock()
		if t.arrived[string(params)] = waiting[1:]; len(waiting) == 1 {
			delete(t.arrived, string(params))
		}
		return waiting[0], nil
	}
	t.mu.Unlock()
	return t.openQuestion(params) // it arrived in the previous turn
}

func (t *turn) openQuestion(params []byte) (*openQuestion, error) {
	p, err := readPermission(params)
	if err != nil {
		return nil, err
	}
	p.parent = t.subagents.callOf(rawjson.Member(params, "sessionId"))
	if t.settings.isProgram(kimiCode) {
		p.nameByTitle()
	}
	t.locate(&p.toolUpdate)
	open, known := t.tools.ask(p)
	t.Files.Mention(known.kind, "pending", known.paths, known.diffs)
	return open, nil
}

// question returns the request for the hub: the agent's request with everything known about the
// tool call.
func (a *agent) question(t *turn, p *permissionRequest, known toolCall) catalog.RequestPermissionParams {
	u := &p.toolUpdate
	q := catalog.RequestPermissionParams{
		SessionToken: t.Params.SessionToken, TaskID: t.ID, ToolUseID: u.ToolCallID, ParentID: cmp.Or(u.parent, parentOf(u.Meta)),
		ToolName: known.name(), NameByKind: known.ownName() == "", ToolInput: known.input, Title: cmp.Or(known.title, p.asked.Title),
		ToolKind: known.kind, Paths: known.paths, Diffs: known.diffs,
		InputFixed: string(toolinput.At(a.info.CapabilityMeta, "duet", "updatedInput")) != "true",
	}
	for _, d := range known.diffs { // known from earlier updates and possibly shown
		q.Paths = appendNew(slices.Clip(q.Paths), d.Path)
	}
	q.Options = make([]catalog.PermissionOption, len(p.asked.Options))
	for i, o := range p.asked.Options {
		q.Options[i] = catalog.PermissionOption(o)
	}
	q.Plan = known.asPlan().Plan()
	if q.Plan == "" {
		q.Details = known.details()
		if p.asked.Description != "" {
			q.Details = strings.TrimPrefix(q.Details+"\n\n"+p.asked.Description, "\n\n")
		}
	}
	for _, o := range p.asked.Options {
		if !strings.HasPrefix(o.Kind, "allow_") && !strings.HasPrefix(o.Kind, "reject_") {
			q.IsQuestion = true
		}
	}
	if string(toolinput.At(u.Meta, "duet", "question")) == "true" {
		q.IsQuestion = true
	}
	if q.ToolInput == nil && a.settings.isProgram(geminiCLI) {
		q.ToolInput = titledInput(titledCall{Kind: q.ToolKind, Title: q.Title, Text: p.text, Keeps: p.offers("allow_always")})
	}
	return q
}

// choose picks the option for a decision: the named one, or else the one with the narrowest
// effect.
func choose(options []catalog.PermissionOption, d catalog.RequestPermissionResult) acp.PermissionResponse {
	kinds := []string{"reject_once", "reject_always"}
	if d.Approved {
		kinds = []string{"allow_once", "allow_always"}
	}
	answer := acp.PermissionResponse{Outcome: acp.PermissionOutcome{Outcome: acp.Selected}}
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
	if answer.Outcome.OptionID == "" && d.Approved { // a question without options: the text is the answer
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
	duetMeta := map[string]any{}
	if d.UpdatedInput != nil {
		duetMeta["updatedInput"] = d.UpdatedInput
	}
	if d.Comment != "" {
		duetMeta["comment"] = d.Comment
	}
	if len(duetMeta) > 0 {
		answer.Meta = map[string]any{"duet": duetMeta}
	}
	return answer
}

// maxTitle limits how much of a command a denial quotes, in bytes.
const maxTitle = 200

// allowed asks the hub whether the policy denies a request of the agent, because the agent may
// not have asked for permission. The error is for the agent.
func (a *agent) allowed(ctx context.Context, q catalog.RequestPermissionParams) error {
	t := a.turns.now()
	if t == nil {
		return fmt.Errorf("%s: not between prompts", q.Title)
	}
	q.SessionToken, q.TaskID = t.Params.SessionToken, t.ID
	q.Unasked = t.tools.names(q)
	answer, err := a.driver.hub.RequestPermission(ctx, q)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: cannot ask the hub for permission: %w", q.Title, err)
		if ctx.Err() == nil && !t.Stopped() {
			t.Problem(task.CodePermission, err.Error())
			t.Fail(task.CodePermission, err.Error())
		}
		return err
	case answer.Cancelled:
		return errors.New("the turn is being ended")
	case !answer.Approved:
		return fmt.Errorf("%s: denied by %s", q.Title, answer.Reason)
	}
	return nil
}

// writing returns the question whether path may be written. Changing an existing file may count
// as an edit; creating a file does not.
func (a *agent) writing(path string) catalog.RequestPermissionParams {
	path = a.workspace.Absolute(path)
	input, _ := task.JSON(map[string]string{"file_path": path})
	q := catalog.RequestPermissionParams{ToolName: "Write", ToolKind: "edit", Title: "Write " + path, ToolInput: input, Paths: []string{path}}
	if a.workspace.Has(path) {
		q.Unasked = []string{"Edit"}
	}
	return q
}

// running returns the question whether a program may be run.
func running(argv []string) catalog.RequestPermissionParams {
	line := shellcommand.Line(argv)
	input, _ := task.JSON(map[string]string{"command": line})
	title := line
	if len(title) > maxTitle {
		title = strings.ToValidUTF8(title[:maxTitle], "") + "…"
	}
	return catalog.RequestPermissionParams{ToolName: "Bash", ToolKind: "execute", Title: "Run " + title, ToolInput: input}
}
