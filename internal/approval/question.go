package approval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/form"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
	"github.com/duet-rpc/duet-rpc/internal/store"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// supersede closes the question of a dead process that is asked again, because one question has one
// answer. It returns the latest of those that repeats an answered question, or nil.
func (in *Inbox) supersede(t store.Tx, a domain.Approval) (reopened *domain.Approval, err error) {
	stale, err := t.StaleApprovals(in.ctx, a.Session)
	if err != nil {
		return nil, err
	}
	for _, old := range stale {
		if old.Question != a.Question {
			continue
		}
		old.Status, old.DecidedBy = domain.ApprovalCancelled, domain.DecidedByEnd
		if err := in.close(t, old); err != nil {
			return nil, err
		}
		if old.Reopens != "" {
			reopened = &old
		}
	}
	return reopened, nil
}

// overtaken returns the repeated question that the current turn closed when it began, or nil.
func (in *Inbox) overtaken(t store.Tx, a domain.Approval) (*domain.Approval, error) {
	old, err := t.OvertakenApproval(in.ctx, a.Session, a.Question)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	answered, err := t.Approval(in.ctx, old.Reopens)
	if err != nil || answered.ReopenedAs != old.ID { // asked and answered again since
		return nil, err
	}
	return &old, nil
}

// askReplacing is ask for a question that a dead process may have left open. The warning that the
// call may have run is kept.
func (in *Inbox) askReplacing(t store.Tx, a *domain.Approval, turn *domain.Turn) error {
	old, err := in.supersede(t, *a)
	if err == nil && old == nil {
		old, err = in.overtaken(t, *a)
	}
	if err != nil {
		return err
	}
	if old != nil {
		a.Reopens, a.Reopened = old.Reopens, old.Reopened
		answered, err := t.Approval(in.ctx, old.Reopens)
		if err != nil {
			return err
		}
		answered.ReopenedAs = a.ID
		if err := t.UpdateApproval(answered); err != nil {
			return err
		}
	}
	return in.ask(t, a, turn)
}

// ask stores a question and makes its turn wait.
func (in *Inbox) ask(t store.Tx, a *domain.Approval, turn *domain.Turn) error {
	if err := in.transcript.CloseMessage(t, turn); err != nil {
		return err
	}
	if err := t.InsertApproval(a); err != nil {
		return err
	}
	if err := in.linkTool(t, a, *turn); err != nil {
		return err
	}
	if err := in.announceQuestion(t, *turn, *a); err != nil {
		return err
	}
	if turn.State == domain.Running {
		return in.turns.AwaitInput(t, turn)
	}
	return nil
}

// linkTool connects a question with its tool call, and creates the call if the agent has not
// reported it yet. Either of them may know the sub-agent.
func (in *Inbox) linkTool(t store.Tx, a *domain.Approval, turn domain.Turn) error {
	item, err := t.ToolItem(in.ctx, turn.ID, a.ToolUseID())
	switch {
	case err == nil:
		item.Approval = a.ID
		item.ParentID = cmp.Or(item.ParentID, a.ParentID)
		a.ParentID = item.ParentID
		if details, ok := item.Data.(domain.ToolDetails); ok { // perhaps refused before
			details.RefusedBy, details.Refusal = "", ""
			item.Data = details
		}
		return t.UpdateItem(item)
	case !errors.Is(err, store.ErrNotFound):
		return err
	case a.Type != domain.FunctionCall || a.CallID == a.ID: // not a tool call of the agent
		return nil
	}
	return in.transcript.BeginTool(t, turn, *a)
}

// announceQuestion announces an open question.
func (in *Inbox) announceQuestion(t store.Tx, turn domain.Turn, a domain.Approval) error {
	session, err := t.Session(in.ctx, turn.Session)
	if err != nil {
		return err
	}
	return in.announce(t, turn, Requested(a, in.DirectoriesOf(session.CWD)))
}

// announce adds an event of a turn to the log.
func (in *Inbox) announce(t store.Tx, turn domain.Turn, p domain.Payload) error {
	_, err := t.Append(turn.Event(p))
	return err
}

// Requested returns a question as an event. Data too long for an event is only in the approval. in are
// the directories of its session.
func Requested(a domain.Approval, in Directories) domain.ApprovalRequested {
	ambiguity, title := Presented(a)
	r := domain.ApprovalRequested{
		ApprovalID: a.ID, CallID: a.CallID, ToolUseID: a.ToolUseID(), ParentID: a.ParentID, Type: a.Type, Tool: a.Tool, Input: a.Input,
		ToolKind:      a.ToolKind,
		InputEditable: a.InputEditable(), Ambiguity: ambiguity, Title: title, Subject: a.Subject, Options: a.Options, Paths: a.Paths,
		Diffs: a.Diffs, Plan: a.Plan, Details: a.Details, TakesComment: a.TakesComment(),
		Stale: a.Stale, Reopens: a.Reopens, Reopened: a.Reopened, Elicitation: a.Elicitation,
	}
	if r.Rule = RulePreview(a, in); r.Rule != nil && len(r.Rule.Pattern) > domain.MaxEventText {
		r.Rule = nil
	}
	for _, text := range []*string{&r.Plan, &r.Details} {
		if len(*text) > domain.MaxEventText {
			*text, r.Truncated = "", true
		}
	}
	if len(r.Input) > domain.MaxEventText {
		r.Input, r.Truncated = nil, true
	}
	if len(r.Elicitation.Schema) > domain.MaxEventText {
		r.Elicitation.Schema, r.Truncated = nil, true
	}
	if domain.SizeOfDiffs(r.Diffs) > domain.MaxEventText {
		r.Diffs, r.Truncated = nil, true
	}
	return r
}

// resolvedOf returns the end of a question as an event.
func resolvedOf(a domain.Approval) domain.ApprovalResolved {
	return domain.ApprovalResolved{
		ApprovalID: a.ID, CallID: a.CallID, ToolUseID: a.ToolUseID(), Type: a.Type, Status: a.Status, Response: cmp.Or(a.Response, a.Comment),
		Comment: a.Comment,
		Option:  a.Option, DecidedBy: a.DecidedBy, Title: titleOf(a), Tool: a.Tool, InputEdited: a.UpdatedInput != nil,
		Explanation: a.Explanation,
	}
}

// RulePreview returns the rule that a decision on a question would create in a session with these
// directories, or nil if it cannot become a rule.
func RulePreview(a domain.Approval, in Directories) *domain.RulePreview {
	if rule, ok := rulePreview(a, in); ok {
		return &rule
	}
	return nil
}

// asked is the latest request with a question_id.
type asked struct {
	revision int
	approval string // approval id
}

// latest notes that approval id asks the question that p names, and returns the approval that asked
// it before, or "". ok is false for a request that a later revision has overtaken.
func (in *Inbox) latest(turn int64, p catalog.RequestPermissionParams, id string) (earlier string, ok bool) {
	if p.QuestionID == "" {
		return "", true
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	before, known := in.asked[turn][p.QuestionID]
	if known && before.revision > p.Revision {
		return "", false
	}
	if in.asked[turn] == nil {
		in.asked[turn] = make(map[string]asked)
	}
	in.asked[turn][p.QuestionID] = asked{p.Revision, id}
	return before.approval, true
}

// forgetAsked drops the question_ids of a turn that has ended.
func (in *Inbox) forgetAsked(turn int64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.asked, turn)
}

// changed returns the question that a replaces because the agent has changed the tool call, or nil
// if it needs no action. If a human answered it, a says that the answer was for another tool call.
func (in *Inbox) changed(t store.Tx, earlier string, a *domain.Approval) (*domain.Approval, error) {
	if earlier == "" {
		return nil, nil
	}
	old, err := t.Approval(in.ctx, earlier)
	switch {
	case errors.Is(err, store.ErrNotFound): // the policy had answered it
		return nil, nil
	case err != nil:
		return nil, err
	case old.Status == domain.ApprovalPending:
		return &old, nil
	case old.AwaitedBy == a.Turn:
		a.Reopens, a.Reopened = old.ID, fmt.Sprintf(againChanged, inWords(old))
		return &old, nil
	}
	return nil, nil
}

// replace closes the question that a replaces. found is the immediate answer to a.
func (in *Inbox) replace(t store.Tx, old, a domain.Approval, found answer) error {
	switch {
	case old.Status == domain.ApprovalPending:
		old.Status, old.DecidedBy = domain.ApprovalCancelled, domain.DecidedByChanged
		return in.close(t, old)
	case found != (answer{}):
		return in.giveUp(t, old, givenUpChanged)
	}
	old.AwaitedBy, old.ReopenedAs = 0, a.ID
	return t.UpdateApproval(old)
}

// checkElicitation validates an elicitation before it is asked. Its error is of domain.KindInvalid.
func checkElicitation(e domain.Elicitation, message string) error {
	if strings.TrimSpace(message) == "" {
		return domain.Invalid("title", "what is asked, in words", "an empty string")
	}
	switch e.Mode {
	case domain.ElicitForm:
		if _, err := form.Read(e.Schema); err != nil {
			return domain.Invalid("schema", "an object of JSON Schema whose properties are the form's fields", "another one: "+err.Error())
		}
	case domain.ElicitURL:
		if e.URL == "" {
			return domain.Invalid("url", "an address to open", "nothing")
		}
	default:
		return domain.Invalid("mode", "a mode of elicitation", fmt.Sprintf("%q", e.Mode), domain.ElicitForm, domain.ElicitURL)
	}
	return nil
}

// elicitationIdentity identifies an elicitation when it is asked again. Consent is for the exact
// address; another address is another question.
func elicitationIdentity(a domain.Approval) string {
	e := a.Elicitation
	what := e.Schema
	if e.Mode == domain.ElicitURL {
		what = asJSON(e.URL)
	}
	return inputHash("elicitation\x00"+e.Mode+"\x00"+a.Title, what)
}

// ofAsking are members that say when and why an agent asks, not what it does. They are codex's,
// whose inputs are its request events. Other tools may use these names differently.
var ofAsking = []string{"call_id", "turn_id", "approval_id", "started_at_ms", "process_id", "reason", "parsed_cmd"}

// callIdentity returns a tool call's input without what changes when the same call is asked again:
// the members of ofAsking, and the spacing of commands. call is the agent's id of the call, which
// marks such inputs. The result identifies questions; it is not for running.
func callIdentity(input json.RawMessage, call string) json.RawMessage {
	in := toolinput.Read(input)
	members, err := toolinput.Members(input)
	if err != nil || in.Ambiguity != "" {
		return input
	}
	changed := false
	set := func(value any) {
		if raw, err := json.Marshal(value); err == nil {
			members["command"], changed = raw, true
		}
	}
	var said string
	if call != "" && toolinput.Take(members, "call_id", &said) == nil && said == call {
		for _, name := range ofAsking {
			delete(members, name)
		}
		changed = true
	}
	if in.Words != nil {
		if words := shellcommand.CanonicalWords(in.Words); !slices.Equal(words, in.Words) {
			set(words)
		}
	} else if command := in.Command(); command != "" {
		if canonical := shellcommand.Canonical(command); canonical != command {
			set(canonical)
		}
	}
	if !changed {
		return input
	}
	identity, err := json.Marshal(members)
	if err != nil {
		return input
	}
	return identity
}

// approvalOf returns an executor's request as an approval.
func approvalOf(p catalog.RequestPermissionParams) domain.Approval {
	input := p.ToolInput
	if input == nil {
		input = p.ToolParams
	}
	done := callIdentity(input, p.ToolUseID)
	a := domain.Approval{
		ID: uuid.NewString(), Type: domain.FunctionCall, CallID: p.ToolUseID, ParentID: p.ParentID, Tool: p.ToolName, Input: input,
		Title:    p.Title,
		ToolKind: p.ToolKind, Paths: p.Paths, Status: domain.ApprovalPending, Question: inputHash(p.ToolName, done), InputFixed: p.InputFixed,
		NameByKind: p.NameByKind, Plan: p.Plan, Details: p.Details,
	}
	switch {
	case p.Elicitation != nil:
		a.Elicitation = domain.Elicitation(*p.Elicitation)
		a.Type, a.Question = domain.HumanContact, elicitationIdentity(a)
	case p.IsQuestion:
		a.Type = domain.HumanContact
		a.Question = inputHash(p.ToolName+"\x00"+p.Title, input)
	case toolinput.IsEmpty(input): // then the shown diffs and paths identify it
		a.Question = inputHash(p.ToolName+"\x00"+p.Title, asJSON(struct {
			Paths   []string
			Diffs   []domain.Diff
			Details string `json:",omitempty"`
		}{p.Paths, withoutLines(p.Diffs), p.Details}))
	default: // an agent's input may contain only the file
		if beyond := diffsBeyondInput(p.Diffs, input); len(beyond) > 0 {
			a.Question = inputHash(p.ToolName+"\x00"+inputHash("", done), asJSON(withoutLines(beyond)))
		}
	}
	a.Diffs = p.Diffs
	for _, o := range p.Options {
		a.Options = append(a.Options, domain.Option{ID: o.OptionID, Name: o.Name, Kind: domain.OptionKind(o.Kind)})
	}
	a.CallID = cmp.Or(a.CallID, a.ID)
	return a
}

// diffsBeyondInput returns the parts of diffs that the tool's input does not contain. A text in the
// input is written whatever the file held before, and that may differ when the question is asked
// again. A diff may be a hunk with some of the input's lines, and none exists if the file already
// has the text.
func diffsBeyondInput(diffs []domain.Diff, input json.RawMessage) []domain.Diff {
	var said []string
	for decoder := json.NewDecoder(bytes.NewReader(input)); ; {
		token, err := decoder.Token()
		if err != nil {
			break
		}
		if text, ok := token.(string); ok && text != "" {
			said = append(said, text)
		}
	}
	var beyond []domain.Diff
	for _, d := range diffs {
		if d.NewText != "" && slices.ContainsFunc(said, func(text string) bool { return hasLines(text, d.NewText) }) {
			if slices.Contains(said, d.Path) {
				continue
			}
			d.OldText, d.NewText = nil, ""
		}
		beyond = append(beyond, d)
	}
	return beyond
}

// withoutLines returns diffs without their places in the files, which other changes move.
func withoutLines(diffs []domain.Diff) []domain.Diff {
	diffs = slices.Clone(diffs)
	for i := range diffs {
		diffs[i].Line = 0
	}
	return diffs
}

// hasLines reports whether text contains lines as consecutive whole lines.
func hasLines(text, lines string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], lines)
		if i < 0 {
			return false
		}
		begin, end := from+i, from+i+len(lines)
		if (begin == 0 || text[begin-1] == '\n') && (end == len(text) || text[end-1] == '\n') {
			return true
		}
		next := strings.IndexByte(text[begin:], '\n')
		if next < 0 {
			return false
		}
		from = begin + next + 1
	}
}

// Presented returns the title of a question for people, and why programs may read the tool's input
// differently ("" if they do not). The title includes that reason, because a client may show only
// one reading.
func Presented(a domain.Approval) (ambiguity, title string) {
	if a.Type != domain.FunctionCall {
		return "", a.Title
	}
	if ambiguity = toolinput.Read(a.Input).Ambiguity; ambiguity == "" {
		return "", a.Title
	}
	return ambiguity, "[programs may read this input differently: " + ambiguity + "] " + cmp.Or(a.Title, a.Tool)
}

// asJSON encodes plain strings, lists and objects.
func asJSON(v any) json.RawMessage {
	b, _ := json.Marshal(v) // cannot fail for those
	return b
}
