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

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// permissionRequest is the agent's question.
type permissionRequest struct {
	toolUpdate
	options []catalog.PermissionOption

	// Of the question, not of the tool call, in version 2.
	title, description string

	isAboutCall bool // the agent names a tool call

	meta json.RawMessage // of the request and of its tool call, an object; nil: none
}

// UnmarshalJSON implements json.Unmarshaler, as toolUpdate does. In version 2 the tool call
// stands in the subject, which may be a command instead, or absent.
func (p *permissionRequest) UnmarshalJSON(raw []byte) error {
	m, err := toolinput.Members(raw)
	if err != nil {
		return err
	}
	var options []json.RawMessage
	if err := errors.Join(toolinput.Take(m, "toolCall", &p.toolUpdate), toolinput.Take(m, "options", &options)); err != nil {
		return err
	}
	p.isAboutCall = true
	if _, isVersion1 := m["toolCall"]; !isVersion1 {
		if err := p.readSubject(m); err != nil {
			return err
		}
	}
	p.meta = joinedMeta(m["_meta"], p.Meta)
	p.options = make([]catalog.PermissionOption, len(options))
	for i, item := range options {
		if m, err = toolinput.Members(item); err != nil {
			return err
		}
		o := &p.options[i]
		if err := errors.Join(toolinput.Take(m, "optionId", &o.OptionID), toolinput.Take(m, "name", &o.Name), toolinput.Take(m, "kind", &o.Kind)); err != nil {
			return err
		}
	}
	return nil
}

// readSubject reads what version 2 asks about, from the members of the request.
func (p *permissionRequest) readSubject(request map[string]json.RawMessage) error {
	if err := errors.Join(toolinput.Take(request, "title", &p.title), toolinput.Take(request, "description", &p.description)); err != nil {
		return err
	}
	if subject := present(request["subject"]); subject != nil {
		m, err := toolinput.Members(subject)
		if err != nil {
			return err
		}
		var kind, command, dir, call string
		err = errors.Join(
			toolinput.Take(m, "type", &kind), toolinput.Take(m, "toolCall", &p.toolUpdate),
			toolinput.Take(m, "command", &command), toolinput.Take(m, "cwd", &dir), toolinput.Take(m, "toolCallId", &call),
		)
		if err != nil {
			return err
		}
		if kind == "command" {
			p.ToolCallID, p.Kind, p.title = call, "execute", command
			if p.RawInput, err = task.JSON(map[string]string{"command": command, "cwd": dir}); err != nil {
				return err
			}
		}
	}
	p.isAboutCall = p.ToolCallID != ""
	if !p.isAboutCall { // the question is about nothing that the agent has shown
		p.ToolCallID = process.RandomID("permission_")
	}
	return nil
}

// joinedMeta is the _meta of a permission request together with that of its tool call, which
// wins; nil if there is none, or more than is kept.
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

// offers reports whether an answer of a kind is among those to choose from.
func (p *permissionRequest) offers(kind string) bool {
	return slices.ContainsFunc(p.options, func(o catalog.PermissionOption) bool { return o.Kind == kind })
}

var cancelledAnswer = acp.PermissionResponse{Outcome: acp.PermissionOutcome{Outcome: acp.Cancelled}}

// requestPermission asks the hub, and waits until somebody has decided, the
// turn is to be stopped or the agent has gone.
func (a *agent) requestPermission(ctx context.Context, raw json.RawMessage) (acp.PermissionResponse, error) {
	t := a.current.Load()
	if t == nil {
		return cancelledAnswer, nil
	}
	open, err := t.takePermission(raw)
	if err != nil {
		t.Problem(task.CodePermission, "the agent asked for permission in a message that cannot be read, so nobody was asked and it was refused: "+err.Error())
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
		t.Problem(task.CodePermission, fmt.Sprintf("the agent asked for permission (%s) in a message that is no UTF-8: what it would run is not what could be shown, so it was refused", question.Title))
		return acp.PermissionResponse{}, acp.InvalidParams(err)
	case errors.Is(err, errNoOptions):
		t.Problem(task.CodePermission, fmt.Sprintf("the agent asked for permission (%s) without an answer to choose, so it was told that nobody decided", question.Title))
		return cancelledAnswer, nil
	case ctx.Err() != nil, err == nil && answer.Cancelled:
		t.awaitCancel(a.life, answer.Cancelled && !answer.Dismissed, a.driver.opts.CancelGrace)
		return cancelledAnswer, nil
	case err != nil:
		// Not a denial: the agent would keep to it when it is resumed, and nobody
		// has given one.
		why := fmt.Sprintf("the hub could not be asked for permission (%s), so the agent was told that nobody decided: %v", question.Title, err)
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
	errNotUTF8   = errors.New("the tool call is no valid UTF-8")
	errNoOptions = errors.New("the request has no options")
)

// decision asks the hub until it has decided about the tool call as it is then: where
// the agent changes the call meanwhile, the question is asked again. A denial stands
// whatever has changed. It returns the question that was decided.
func (a *agent) decision(ctx context.Context, t *turn, open *openQuestion) (catalog.RequestPermissionResult, catalog.RequestPermissionParams, error) {
	type reply struct {
		result catalog.RequestPermissionResult
		err    error
	}
	var q catalog.RequestPermissionParams
	closed := func() chan struct{} { c := make(chan struct{}); close(c); return c }()
	earlier, latest := closed, closed // closed when the hub has answered the request before the latest one, and that
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
		case len(q.Options) == 0: // no decision could be told
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

// reportMeta adds the _meta of a permission request to its tool call, which begins with it if the
// agent asks before it reports the call.
func (t *turn) reportMeta(open *openQuestion, q catalog.RequestPermissionParams) {
	meta := open.request.meta
	if meta == nil || bytes.Equal(meta, open.meta) || !open.known && q.IsQuestion || !open.request.isAboutCall {
		return
	}
	call := catalog.ToolCall{ToolID: q.ToolUseID, Meta: meta}
	if !open.known {
		call.Tool, call.Title, call.Kind, call.Input, call.Paths, call.Diffs, call.ParentID = q.ToolName, q.Title, q.ToolKind, q.ToolInput, q.Paths, q.Diffs, q.ParentID
	}
	t.Event(catalog.EventToolUpdate, call)
}

// permissionArrived opens the question of a permission request, in the order of what the
// agent prints: an update behind the request changes the question. One that cannot be
// read is left to takePermission.
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

// takePermission is the question of a request that has arrived. Requests with the same
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
	return t.openQuestion(params) // it arrived in the turn before
}

func (t *turn) openQuestion(params []byte) (*openQuestion, error) {
	var p permissionRequest
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	p.parent = t.subagents.callOf(frame.Member(params, "sessionId"))
	if t.isKimi.Load() {
		p.nameByTitle()
	}
	open, known := t.tools.ask(p)
	t.Files.Mention(known.kind, "pending", known.paths, known.diffs)
	return open, nil
}

// question is what the hub is asked: the request, and what else is known of the tool
// call.
func (a *agent) question(t *turn, p *permissionRequest, known toolCall) catalog.RequestPermissionParams {
	u := &p.toolUpdate
	q := catalog.RequestPermissionParams{
		SessionToken: t.Params.SessionToken, TaskID: t.ID, ToolUseID: u.ToolCallID, ParentID: cmp.Or(u.parent, parentOf(u.Meta)),
		ToolName: known.name(), NameByKind: known.ownName() == "", ToolInput: known.input, Title: cmp.Or(known.title, p.title), ToolKind: known.kind, Paths: known.paths, Diffs: known.diffs,
		InputFixed: string(toolinput.At(a.info.CapabilityMeta, "duet", "updatedInput")) != "true",
	}
	for _, d := range known.diffs { // known from before, perhaps, and shown
		q.Paths = appendNew(slices.Clip(q.Paths), d.Path)
	}
	q.Options, q.Plan = p.options, known.asPlan().Plan()
	if q.Plan == "" {
		q.Details = known.details()
		if p.description != "" {
			q.Details = strings.TrimPrefix(q.Details+"\n\n"+p.description, "\n\n")
		}
	}
	for _, o := range p.options {
		if !strings.HasPrefix(o.Kind, "allow_") && !strings.HasPrefix(o.Kind, "reject_") {
			q.IsQuestion = true
		}
	}
	if string(toolinput.At(u.Meta, "duet", "question")) == "true" {
		q.IsQuestion = true
	}
	if q.ToolInput == nil && a.info.Info != nil && a.info.Info.Name == titleTeller {
		q.ToolInput = titledInput(titledCall{Kind: q.ToolKind, Title: q.Title, Text: p.text, Keeps: p.offers("allow_always")})
	}
	return q
}

// choose picks the option for a decision: the one that it names, or else the
// one that goes least far.
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

// maxTitle bounds what a denial says of a command, in bytes.
const maxTitle = 200

// allowed asks the hub whether the policy denies what the agent has us do: it
// may not have asked for permission. An error is for the agent.
func (a *agent) allowed(ctx context.Context, q catalog.RequestPermissionParams) error {
	t := a.current.Load()
	if t == nil {
		return fmt.Errorf("%s: not between prompts", q.Title)
	}
	q.SessionToken, q.TaskID = t.Params.SessionToken, t.ID
	q.Unasked = t.tools.names(q)
	answer, err := a.driver.hub.RequestPermission(ctx, q)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: the hub could not be asked whether it is allowed: %w", q.Title, err)
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

// writing is the question whether path may be written. What changes a file may
// be an edit of it; what makes one is not.
func (a *agent) writing(path string) catalog.RequestPermissionParams {
	path = a.workspace.Absolute(path)
	input, _ := task.JSON(map[string]string{"file_path": path})
	q := catalog.RequestPermissionParams{ToolName: "Write", ToolKind: "edit", Title: "Write " + path, ToolInput: input, Paths: []string{path}}
	if a.workspace.Has(path) {
		q.Unasked = []string{"Edit"}
	}
	return q
}

// running is the question whether a program may be run.
func running(argv []string) catalog.RequestPermissionParams {
	line := shellcommand.Line(argv)
	input, _ := task.JSON(map[string]string{"command": line})
	title := line
	if len(title) > maxTitle {
		title = strings.ToValidUTF8(title[:maxTitle], "") + "…"
	}
	return catalog.RequestPermissionParams{ToolName: "Bash", ToolKind: "execute", Title: "Run " + title, ToolInput: input}
}

// Gemini CLI sends no tool input: the command is in the title of the tool call, and the question's
// text has the rest.
//
//   - Since 0.36 the title is the command alone. The text is "[in DIR]", or
//     "[current working directory DIR]" if the model named no directory; then
//     " (the description by the model)", and " [background]".
//   - Before, the title had all of that behind the command, and the text was empty. The end of the
//     command can then be ambiguous: the command may contain brackets, and so may the description.
//
// The result has the form of other agents' input (internal/toolinput), with each possible
// reading, so that rules and people look at one place.

// titleTeller is what an agent calls itself whose titles are commands. Those of others
// are words for people, which no rule is held against.
const titleTeller = "gemini-cli"

// A titledCall is what a question says of a tool call.
type titledCall struct {
	Kind  string // as of the Agent Client Protocol
	Title string
	Text  string // what it shows
	// Keeps says that an answer which allows it for good is among those to choose
	// from. There is none where the call wants leave for more than to run the command
	// (to write or to connect where its sandbox does not let it), which the agent says
	// nowhere else.
	Keeps bool
}

const (
	inDirectory = "[in "
	inCurrent   = "[current working directory "
	described   = "("
	background  = "[background]"
)

// mostReadings is how many ways to read a title are told at each end of their list,
// besides the whole of it. Where there are more, nobody can say what the command is.
const mostReadings = 100

// titledInput is the input of a call that runs something: the command; if its title can be
// read in several ways, the other ones; where it runs, unless that is the session's
// directory; and whether it wants more. It is nil if the call runs nothing.
func titledInput(c titledCall) json.RawMessage {
	if c.Kind != "execute" || strings.TrimSpace(c.Title) == "" {
		return nil
	}
	input := object{Command: c.Title}
	if strings.HasPrefix(c.Text, inDirectory) || strings.HasPrefix(c.Text, inCurrent) {
		input.inDirectories(directories(c.Text))
	} else {
		input.Readings = readings(c.Title)
		input.inDirectories(directoriesIn(c.Title))
	}
	if !c.Keeps {
		input.Permissions = "perhaps: the agent offers no answer that allows this for good"
	}
	raw, err := task.JSON(input)
	if err != nil {
		return nil // texts can be written
	}
	return raw
}

// An object is an input as other agents spell it.
type object struct {
	Command     string   `json:"command"`
	Readings    []string `json:"command_readings,omitempty"` // see toolinput.Input
	Dir         any      `json:"cwd,omitempty"`              // a text, or a list of texts: one of them
	Permissions string   `json:"additional_permissions,omitempty"`
}

func (o *object) inDirectories(dirs []string) {
	switch len(dirs) {
	case 0:
	case 1:
		o.Dir = dirs[0]
	default:
		o.Dir = dirs
	}
}

// readings are what the command may be if it is not the whole title: whatever stands
// before something that could be behind it, the shortest first.
func readings(title string) (list []string) {
	rest, _ := strings.CutSuffix(title, " "+background)
	if rest != title {
		list = append(list, rest)
	}
	if strings.HasSuffix(rest, ")") || strings.HasSuffix(rest, "]") {
		for at := range len(rest) {
			for _, mark := range []string{inDirectory, inCurrent, described} {
				if strings.HasPrefix(rest[at:], " "+mark) && strings.TrimSpace(rest[:at]) != "" {
					list = append(list, rest[:at])
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return len(a) - len(b) })
	list = slices.Compact(list)
	if len(list) > 2*mostReadings {
		list = append(list[:mostReadings], list[len(list)-mostReadings:]...)
		list = append(list, "") // which no rule allows
	}
	return list
}

// directoriesIn are those that a title may name in any way to read it, and the
// session's, if one may be named: that can be the command's own words.
func directoriesIn(title string) (list []string) {
	for at := range len(title) {
		if rest, ok := strings.CutPrefix(title[at:], " "); ok && strings.HasPrefix(rest, inDirectory) {
			list = append(list, directories(rest)...)
		}
		if len(list) > mostReadings { // one is too many already
			break
		}
	}
	if len(list) == 0 {
		return nil
	}
	return append(list, ".")
}

// directories are those that a text may name which begins with one, and in which the
// command may run for it. None: it names none, and the command runs in the session's.
func directories(text string) (list []string) {
	inside, ok := strings.CutPrefix(text, inDirectory)
	if !ok {
		return nil
	}
	for at := range len(inside) {
		rest, ends := strings.CutPrefix(inside[at:], "]")
		if ends && (rest == "" || strings.HasPrefix(rest, " "+described) || strings.HasPrefix(rest, " "+background)) {
			list = append(list, inside[:at])
		}
		if len(list) > mostReadings {
			break
		}
	}
	if len(list) == 0 { // it is cut short
		return []string{inside, text}
	}
	return list
}
