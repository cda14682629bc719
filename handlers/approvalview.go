package handlers

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/dialect"
	"github.com/duet-rpc/duet-rpc/internal/diff"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An approvalType is what is asked of a human.
type approvalType string

// Accepted implements schema.Enum.
func (approvalType) Accepted() []string { return []string{"function_call", "human_contact"} }

// An approvalView is a question to a human in both of HumanLayer's shapes: flat, as
// today's clients have it, and by type, as its specification does.
type approvalView struct {
	ID           string               `json:"id"`
	ApprovalID   string               `json:"approval_id" doc:"The same as id."`
	CallID       string               `json:"call_id" doc:"The same as tool_use_id, or where another approval has that already, made of it: no two have the same."`
	RunID        string               `json:"run_id"`
	SessionID    string               `json:"session_id"`
	TaskID       string               `json:"task_id,omitempty"`
	ThreadID     string               `json:"thread_id,omitempty"`
	Agent        string               `json:"agent,omitempty"`
	Status       string               `json:"status" doc:"pending, approved, denied, responded, expired or cancelled."`
	Stale        bool                 `json:"stale" doc:"The process that asked is gone: approving resumes the session."`
	Reopens      string               `json:"reopens,omitempty" doc:"The approval that this one asks again: it was answered, and the agent is not known to have acted on that."`
	Reopened     string               `json:"reopened,omitempty" doc:"Why it is asked again, in words for people; show it."`
	ReopenedAs   string               `json:"reopened_as,omitempty" doc:"The approval that asks this one again."`
	TakenAt      *time.Time           `json:"taken_at,omitempty" doc:"When the agent was seen to go on from the answer."`
	CreatedAt    time.Time            `json:"created_at"`
	Deadline     *time.Time           `json:"deadline,omitempty" doc:"When it expires."`
	ToolName     string               `json:"tool_name"`
	ToolInput    json.RawMessage      `json:"tool_input"`
	Editable     bool                 `json:"input_editable" doc:"Whether a decision may have an updated_input: most agents would run the tool with their own input all the same."`
	Ambiguity    string               `json:"input_ambiguity,omitempty" doc:"Why programs may read tool_input differently, such as a member that stands there twice; the title says so too. No rule allows such a call, and it can be approved once alone."`
	ToolUseID    string               `json:"tool_use_id,omitempty" doc:"The agent's own id of the tool call that waits, as in events and conversations; agents use one again in another session."`
	ToolKind     string               `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Title        string               `json:"title" doc:"What is asked, in words."`
	Subject      string               `json:"subject,omitempty"`
	Options      json.RawMessage      `json:"options,omitempty" doc:"The answers that the agent offers: [{option_id,name,kind}]."`
	OptionsOnly  bool                 `json:"options_only,omitempty" doc:"Of a human_contact: it is answered with one of its options alone, since whoever asks can be told nothing else. Other words are refused."`
	Declinable   bool                 `json:"declinable,omitempty" doc:"Of a human_contact: it can be denied too, which says that nothing was chosen, filled in or opened."`
	Paths        []string             `json:"paths,omitempty" doc:"The files that it touches."`
	Diff         string               `json:"diff,omitempty" doc:"What it would change, as a unified diff."`
	Details      string               `json:"details,omitempty" doc:"What the agent says about the tool call beside its title and input: a text for people. Of an agent that sends no input it is all that is known of the call."`
	Plan         string               `json:"plan,omitempty" doc:"What the agent would do next, where it asks to leave its plan mode: a text, mostly Markdown. No rule is made of the answer."`
	Rules        dialect.RulePreviews `json:"rule_preview,omitempty" doc:"What a decision with a scope would hold for, by scope: session and project. Absent: no rule can be made of it. It is Duet's rule; what an option of the kind allow_always makes the agent remember is the agent's, and its name says it."`
	TakesComment bool                 `json:"takes_comment" doc:"Whether the agent is told the comment with the decision. Else a decision with tell gives it as the next prompt."`
	Channel      json.RawMessage      `json:"channel,omitempty"`
	RespondedAt  *time.Time           `json:"responded_at,omitempty"`
	DecidedBy    string               `json:"decided_by,omitempty" doc:"user, rule=…, mode=…, timeout, end, overtaken (the conversation went on without it), or changed (the agent changed the tool call, and another approval asks again)."`
	Explanation  string               `json:"explanation,omitempty" doc:"What the rule or mode that decided is, in words: of a rule of a file, which one and where it stands."`
	Comment      string               `json:"comment,omitempty"`
	Response     string               `json:"response,omitempty"`
	Option       string               `json:"option,omitempty" doc:"The option that was chosen."`
	UpdatedInput json.RawMessage      `json:"updated_input,omitempty" doc:"The input as a human changed it."`
	Truncated    bool                 `json:"truncated,omitempty" doc:"Parts of the input were left out, to fit into a message."`
	*dialect.Elicitation
	Content json.RawMessage `json:"content,omitempty" doc:"The values of the form as a human filled them in."`

	Type         approvalType         `json:"type"`
	FunctionCall *functionCallRequest `json:"function_call,omitempty"`
	HumanContact *humanContactRequest `json:"human_contact,omitempty"`
}

func (a *approvalView) texts() []*string {
	return []*string{&a.Diff, &a.Plan, &a.Details, &a.Explanation, &a.Subject, &a.Comment, &a.Response}
}

// trim cuts the inputs to at most most bytes each.
func (a *approvalView) trim(most int) {
	inputs := []*json.RawMessage{&a.ToolInput, &a.UpdatedInput}
	if a.FunctionCall != nil {
		inputs = append(inputs, &a.FunctionCall.Spec.Kwargs)
	}
	for _, input := range inputs {
		if len(*input) > most {
			*input, a.Truncated = fitRaw(*input, most), true
		}
	}
	if a.Elicitation != nil && len(a.Schema) > most { // a part of it would be another form
		whole := *a.Elicitation
		whole.Schema = nil
		a.Elicitation, a.Truncated = &whole, true
	}
}

// fitApprovals shortens approvals until all of them fit into most bytes: a
// question that is not listed would wait for ever.
func fitApprovals(list []*approvalView, most int) []*approvalView {
	for _, limit := range textCaps {
		if fitting(list, most) == len(list) {
			return list
		}
		for _, a := range list {
			a.trim(limit)
		}
	}
	return fit(list, most)
}

type functionCallRequest struct {
	RunID  string             `json:"run_id"`
	CallID string             `json:"call_id"`
	Spec   functionCallSpec   `json:"spec"`
	Status functionCallStatus `json:"status"`
}

type functionCallSpec struct {
	Fn            string          `json:"fn"`
	Kwargs        json.RawMessage `json:"kwargs"`
	Channel       json.RawMessage `json:"channel,omitempty"`
	RejectOptions json.RawMessage `json:"reject_options,omitempty"`
}

type functionCallStatus struct {
	RequestedAt time.Time  `json:"requested_at"`
	RespondedAt *time.Time `json:"responded_at,omitempty"`
	Approved    *bool      `json:"approved,omitempty"`
	Comment     string     `json:"comment,omitempty"`
}

type humanContactRequest struct {
	RunID  string             `json:"run_id"`
	CallID string             `json:"call_id"`
	Spec   humanContactSpec   `json:"spec"`
	Status humanContactStatus `json:"status"`
}

type humanContactSpec struct {
	Msg             string           `json:"msg"`
	Subject         string           `json:"subject,omitempty"`
	Channel         json.RawMessage  `json:"channel,omitempty"`
	ResponseOptions []responseOption `json:"response_options,omitempty"`
}

type responseOption struct {
	Name  string `json:"name"`
	Title string `json:"title,omitempty"`
}

type humanContactStatus struct {
	RequestedAt        time.Time  `json:"requested_at"`
	RespondedAt        *time.Time `json:"responded_at,omitempty"`
	Response           string     `json:"response,omitempty"`
	ResponseOptionName string     `json:"response_option_name,omitempty"`
}

// approvalOf is an approval of the session s.
func approvalOf(a domain.Approval, s domain.Session) *approvalView {
	ambiguity, title := approval.Presented(a)
	answers := a.Answers()
	r := &approvalView{
		ID: a.ID, ApprovalID: a.ID, CallID: cmp.Or(a.CallID, a.ID), RunID: s.RunID, SessionID: s.SessionID, ThreadID: s.Thread.UUID, Agent: s.Agent,
		Status: a.Status, Stale: a.Stale, Reopens: a.Reopens, Reopened: a.Reopened,
		ReopenedAs: a.ReopenedAs, TakenAt: timeOrNil(a.Taken), CreatedAt: a.Created.UTC(), Deadline: timeOrNil(a.Deadline),
		ToolName: a.Tool, ToolInput: orEmptyObject(a.Input), Editable: a.InputEditable(), ToolUseID: a.ToolUseID(), ToolKind: a.ToolKind,
		Ambiguity: ambiguity, Title: title, Subject: a.Subject, Options: dialect.Options(a.Options), OptionsOnly: answers.OptionsOnly, Declinable: answers.Declinable, Paths: a.Paths, Diff: approvalDiff(s.Thread.CWD, a.Diffs), Channel: a.Channel,
		Plan: a.Plan, Details: a.Details, Rules: rulesOf(a, s.Thread.CWD), TakesComment: a.TakesComment(), Explanation: a.Explanation,
		RespondedAt: timeOrNil(a.Decided), DecidedBy: a.DecidedBy, Comment: a.Comment, Response: a.Response, Option: a.Option,
		UpdatedInput: a.UpdatedInput, Type: approvalType(a.Type), Elicitation: dialect.ElicitationOf(a.Elicitation), Content: a.Content,
	}
	if s.Task > 0 {
		r.TaskID = domain.TaskName(s.Task)
	}
	if r.Type == humanContact {
		r.HumanContact = &humanContactRequest{
			RunID: r.RunID, CallID: r.CallID,
			Spec:   humanContactSpec{a.Title, a.Subject, a.Channel, responseOptions(a.Options)},
			Status: humanContactStatus{r.CreatedAt, r.RespondedAt, a.Response, a.Option},
		}
		return r
	}
	r.Type = functionCall
	r.FunctionCall = &functionCallRequest{
		RunID: r.RunID, CallID: r.CallID,
		Spec:   functionCallSpec{Fn: a.Tool, Kwargs: r.ToolInput, Channel: a.Channel},
		Status: functionCallStatus{RequestedAt: r.CreatedAt, RespondedAt: r.RespondedAt, Approved: approvedOrNil(a.Status), Comment: a.Comment},
	}
	return r
}

// rulesOf is what a rule of an approval would hold for.
func rulesOf(a domain.Approval, cwd string) dialect.RulePreviews {
	return dialect.RulePreviewsOf(approval.RulePreview(a, cwd))
}

// approvedOrNil is nil while nobody has decided.
func approvedOrNil(status string) *bool {
	if status == "pending" {
		return nil
	}
	yes := status == "approved"
	return &yes
}

func orEmptyObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

// responseOptions are an agent's options as HumanLayer has them.
func responseOptions(options []domain.Option) []responseOption {
	list := make([]responseOption, 0, len(options))
	for _, o := range options {
		list = append(list, responseOption{cmp.Or(o.ID, o.Name), o.Name})
	}
	return list
}

// approvalDiff is what a tool would change, as a unified diff.
func approvalDiff(cwd string, diffs []domain.Diff) string {
	var all strings.Builder
	for _, d := range diffs {
		all.WriteString(diff.Unified(cwd, d.Path, d.OldText, &d.NewText))
	}
	return all.String()
}
