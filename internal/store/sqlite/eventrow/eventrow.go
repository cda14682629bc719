// Package eventrow spells entries of the log as their rows have them, and reads
// them back, those of all earlier formats included. It knows no database.
//
// The column type of a row has the kind of its payload, and data has the payload
// as JSON with the members below. Rows of formats up to 8 are spelled as in
// old.go: their types are others, so each row says itself how it is to be read. A
// delta has columns of its own, key and text, and no data.
package eventrow

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/rowjson"
)

// A payloadCodec writes and reads the data of one kind of rows.
type payloadCodec struct {
	encode func(domain.RunRef, domain.Payload) (string, error)
	decode func(data string) (domain.RunRef, domain.Payload, error)
}

// A payloadRow is the data of a row. R is spelled as its members say.
type payloadRow[R any] struct {
	Run     runRefRow `json:"run,omitzero"`
	Payload R         `json:"payload"`
}

type runRefRow struct {
	SessionID string `json:"session"`
	RunID     string `json:"id"`
	Task      int64  `json:"task"`
}

// codecOf spells payloads of the type P as values of the type R.
func codecOf[P domain.Payload, R any](row func(P) R, payload func(R) P) payloadCodec {
	return payloadCodec{
		encode: func(ref domain.RunRef, p domain.Payload) (string, error) {
			return rowjson.Encode(&payloadRow[R]{runRefRow(ref), row(p.(P))})
		},
		decode: func(data string) (domain.RunRef, domain.Payload, error) {
			var r payloadRow[R]
			err := json.Unmarshal([]byte(data), &r)
			return domain.RunRef(r.Run), payload(r.Payload), err
		},
	}
}

// payloadCodecs are those of the kinds that are kept, but for deltas.
var payloadCodecs = map[domain.EventKind]payloadCodec{
	domain.EventRunState: codecOf(
		runStateRowOf, runStateRow.payload),
	domain.EventMessage:           codecOf(messageRowOf, messageRow.payload),
	domain.EventToolCall:          codecOf(toolCallRowOf, toolCallRow.payload),
	domain.EventApprovalRequested: codecOf(requestedRowOf, requestedRow.payload),
	domain.EventApprovalResolved: codecOf(
		func(p domain.ApprovalResolved) resolvedRow { return resolvedRow(p) },
		func(r resolvedRow) domain.ApprovalResolved { return domain.ApprovalResolved(r) }),
	domain.EventSettings: codecOf(
		func(p domain.SettingsChanged) settingsRow { return settingsRow(p) },
		func(r settingsRow) domain.SettingsChanged { return domain.SettingsChanged(r) }),
	domain.EventNativeSession: codecOf(
		func(p domain.NativeSessionChanged) nativeSessionRow { return nativeSessionRow(p) },
		func(r nativeSessionRow) domain.NativeSessionChanged { return domain.NativeSessionChanged(r) }),
	domain.EventAgentMode: codecOf(
		func(p domain.AgentModeChanged) agentModeRow {
			return agentModeRow{p.Mode, p.Modes, rowjson.ChoicesOf(p.Choices)}
		},
		func(r agentModeRow) domain.AgentModeChanged {
			return domain.AgentModeChanged{Mode: r.Mode, Modes: r.Modes, Choices: rowjson.Choices(r.Choices)}
		}),
	domain.EventAgentSession: codecOf(
		func(p domain.AgentSessionChanged) agentSessionChangedRow {
			return agentSessionChangedRow{rowjson.AgentSessionOf(p.AgentSession), p.Truncated}
		},
		func(r agentSessionChangedRow) domain.AgentSessionChanged {
			return domain.AgentSessionChanged{AgentSession: r.Value(), Truncated: r.Truncated}
		}),
	domain.EventPlan: codecOf(
		func(p domain.PlanChanged) rowjson.Plan { return rowjson.PlanOf(domain.Plan(p)) },
		func(r rowjson.Plan) domain.PlanChanged { return domain.PlanChanged(r.Value()) }),
	domain.EventUsage: codecOf(
		func(p domain.UsageReported) usageRow { return usageRow(p) },
		func(r usageRow) domain.UsageReported { return domain.UsageReported(r) }),
	domain.EventFileChange: codecOf(
		func(p domain.FileChanged) fileChangeRow { return fileChangeRow(p) },
		func(r fileChangeRow) domain.FileChanged { return domain.FileChanged(r) }),
	domain.EventChangeDecided: codecOf(
		func(p domain.ChangeDecided) changeDecidedRow { return changeDecidedRow(p) },
		func(r changeDecidedRow) domain.ChangeDecided { return domain.ChangeDecided(r) }),
	domain.EventQueue: codecOf(
		func(p domain.QueueChanged) queueRow { return queueRow(p) },
		func(r queueRow) domain.QueueChanged { return domain.QueueChanged(r) }),
	domain.EventProgress: codecOf(
		func(p domain.ProgressReported) reportRow { return reportRow(p) },
		func(r reportRow) domain.ProgressReported { return domain.ProgressReported(r) }),
	domain.EventAgentError: codecOf(
		func(p domain.AgentErrorReported) reportRow { return reportRow(p) },
		func(r reportRow) domain.AgentErrorReported { return domain.AgentErrorReported(r) }),
	domain.EventAgentUpdate: codecOf(
		func(p domain.AgentUpdated) agentUpdateRow { return agentUpdateRow(p) },
		func(r agentUpdateRow) domain.AgentUpdated { return domain.AgentUpdated(r) }),
	domain.EventAgentSilent: codecOf(
		func(p domain.AgentSilent) agentSilentRow { return agentSilentRow(p) },
		func(r agentSilentRow) domain.AgentSilent { return domain.AgentSilent(r) }),
	domain.EventTrigger: codecOf(
		func(p domain.TriggerExecuted) triggerRow { return triggerRow(p) },
		func(r triggerRow) domain.TriggerExecuted { return domain.TriggerExecuted(r) }),
	domain.EventBuild:         codecOf(buildRowOf, buildRow.payload),
	domain.EventIteration:     iterationCodec,
	domain.EventGateStart:     gateStartedCodec,
	domain.EventGate:          gateCodec,
	domain.EventLoopEnded:     loopEndedCodec,
	domain.EventThreadDeleted: codecOf(threadDeletedRowOf, threadDeletedRow.payload),
	domain.EventErased: codecOf(
		func(domain.Erased) struct{} { return struct{}{} },
		func(struct{}) domain.Erased { return domain.Erased{} }),
	domain.EventTerminalExit: codecOf(
		func(p domain.TerminalExited) terminalExitRow { return terminalExitRow(p) },
		func(r terminalExitRow) domain.TerminalExited { return domain.TerminalExited(r) }),
}

// Each row has the fields of its payload, so that Go converts one to the other
// where no field has a type of its own.

type runStateRow struct {
	ThreadUUID    string       `json:"thread"`
	From          domain.State `json:"from,omitempty"`
	To            domain.State `json:"to"`
	ParentSession string       `json:"parent_session,omitempty"`
	Title         string       `json:"title,omitempty"`
	Agent         string       `json:"agent,omitempty"`
	Reason        string       `json:"reason,omitempty"`
	Error         string       `json:"error,omitempty"`
	ErrorCode     string       `json:"error_code,omitempty"`
	StopReason    string       `json:"stop_reason,omitempty"`

	SignIn []rowjson.AuthMethod `json:"sign_in,omitempty"`
}

func runStateRowOf(p domain.RunStateChanged) runStateRow {
	return runStateRow{
		p.ThreadUUID, p.From, p.To, p.ParentSession, p.Title, p.Agent, p.Reason, p.Error, p.ErrorCode, p.StopReason,
		rowjson.AuthMethodsOf(p.SignIn),
	}
}

func (r runStateRow) payload() domain.RunStateChanged {
	return domain.RunStateChanged{
		ThreadUUID: r.ThreadUUID, From: r.From, To: r.To, ParentSession: r.ParentSession, Title: r.Title, Agent: r.Agent,
		Reason: r.Reason, Error: r.Error, ErrorCode: r.ErrorCode, StopReason: r.StopReason, SignIn: rowjson.AuthMethods(r.SignIn),
	}
}

// deltaRow is what a delta has beside its key and its text.
type deltaRow struct {
	ParentID string          `json:"parent,omitempty"`
	Meta     json.RawMessage `json:"_meta,omitempty"`
}

type messageRow struct {
	NativeSession string          `json:"native,omitempty"`
	Type          string          `json:"type"`
	Key           string          `json:"key"`
	ParentID      string          `json:"parent,omitempty"`
	Role          string          `json:"role,omitempty"`
	Text          string          `json:"text,omitempty"`
	Subtype       string          `json:"subtype,omitempty"`
	Truncated     bool            `json:"truncated,omitempty"`
	Blocks        []rowjson.Block `json:"blocks,omitempty"`
	Meta          json.RawMessage `json:"_meta,omitempty"`
}

func messageRowOf(p domain.MessageAdded) messageRow {
	return messageRow{p.NativeSession, p.Type, p.Key, p.ParentID, p.Role, p.Text, p.Subtype, p.Truncated, rowjson.BlocksOf(p.Blocks), p.Meta}
}

func (r messageRow) payload() domain.MessageAdded {
	return domain.MessageAdded{
		NativeSession: r.NativeSession, Type: r.Type, Key: r.Key, ParentID: r.ParentID, Role: r.Role, Text: r.Text, Subtype: r.Subtype, Truncated: r.Truncated,
		Blocks: rowjson.Blocks(r.Blocks), Meta: r.Meta,
	}
}

type toolCallRow struct {
	NativeSession string               `json:"native,omitempty"`
	ID            string               `json:"id"`
	Name          string               `json:"name,omitempty"`
	Title         string               `json:"title,omitempty"`
	ToolKind      string               `json:"kind,omitempty"`
	Status        string               `json:"status,omitempty"`
	ParentID      string               `json:"parent,omitempty"`
	Input         json.RawMessage      `json:"input,omitempty"`
	Details       *rowjson.ToolDetails `json:"details,omitempty"`
	Ended         bool                 `json:"ended,omitempty"`
	Result        string               `json:"result,omitempty"`
	Truncated     bool                 `json:"truncated,omitempty"`
}

func toolCallRowOf(p domain.ToolCallChanged) toolCallRow {
	r := toolCallRow{
		NativeSession: p.NativeSession, ID: p.ID, Name: p.Name, Title: p.Title, ToolKind: p.ToolKind, Status: p.Status, ParentID: p.ParentID,
		Input: p.Input, Ended: p.Ended, Result: p.Result, Truncated: p.Truncated,
	}
	if p.Details != nil {
		details := rowjson.ToolDetailsOf(*p.Details)
		r.Details = &details
	}
	return r
}

func (r toolCallRow) payload() domain.ToolCallChanged {
	return domain.ToolCallChanged{
		NativeSession: r.NativeSession, ID: r.ID, Name: r.Name, Title: r.Title, ToolKind: r.ToolKind, Status: r.Status, ParentID: r.ParentID,
		Input: r.Input, Details: detailsOrNil(r.Details), Ended: r.Ended, Result: r.Result, Truncated: r.Truncated,
	}
}

func detailsOrNil(row *rowjson.ToolDetails) *domain.ToolDetails {
	if row == nil {
		return nil
	}
	details := row.Value()
	return &details
}

type requestedRow struct {
	ApprovalID    string               `json:"id"`
	CallID        string               `json:"call"`
	ToolUseID     string               `json:"tool_use,omitempty"`
	ParentID      string               `json:"parent,omitempty"`
	Type          string               `json:"type"`
	Tool          string               `json:"tool,omitempty"`
	Input         json.RawMessage      `json:"input,omitempty"`
	ToolKind      string               `json:"tool_kind,omitempty"`
	InputEditable bool                 `json:"input_editable,omitempty"`
	Ambiguity     string               `json:"ambiguity,omitempty"`
	Title         string               `json:"title,omitempty"`
	Subject       string               `json:"subject,omitempty"`
	Options       rowjson.Options      `json:"options,omitzero"`
	Paths         []string             `json:"paths,omitempty"`
	Diffs         []rowjson.Diff       `json:"diffs,omitzero"`
	Plan          string               `json:"plan,omitempty"`
	Details       string               `json:"details,omitempty"`
	TakesComment  bool                 `json:"takes_comment,omitempty"`
	Rule          *rowjson.RulePreview `json:"rule,omitempty"`
	Stale         bool                 `json:"stale,omitempty"`
	Reopens       string               `json:"reopens,omitempty"`
	Reopened      string               `json:"reopened,omitempty"`
	Replayed      bool                 `json:"replayed,omitempty"`
	Truncated     bool                 `json:"truncated,omitempty"`

	Elicitation *rowjson.Elicitation `json:"elicitation,omitempty"`
}

func requestedRowOf(p domain.ApprovalRequested) requestedRow {
	return requestedRow{
		ApprovalID: p.ApprovalID, CallID: p.CallID, ToolUseID: p.ToolUseID, ParentID: p.ParentID, Type: p.Type, Tool: p.Tool, Input: p.Input, ToolKind: p.ToolKind,
		InputEditable: p.InputEditable, Ambiguity: p.Ambiguity, Title: p.Title, Subject: p.Subject, Options: p.Options, Paths: p.Paths,
		Diffs: rowjson.DiffsOf(p.Diffs), Plan: p.Plan, Details: p.Details, TakesComment: p.TakesComment, Rule: (*rowjson.RulePreview)(p.Rule), Stale: p.Stale, Reopens: p.Reopens, Reopened: p.Reopened, Replayed: p.Replayed, Truncated: p.Truncated,
		Elicitation: rowjson.ElicitationOf(p.Elicitation),
	}
}

func (r requestedRow) payload() domain.ApprovalRequested {
	return domain.ApprovalRequested{
		ApprovalID: r.ApprovalID, CallID: r.CallID, ToolUseID: r.ToolUseID, ParentID: r.ParentID, Type: r.Type, Tool: r.Tool, Input: r.Input, ToolKind: r.ToolKind,
		InputEditable: r.InputEditable, Ambiguity: r.Ambiguity, Title: r.Title, Subject: r.Subject, Options: r.Options, Paths: r.Paths,
		Diffs: rowjson.Diffs(r.Diffs), Plan: r.Plan, Details: r.Details, TakesComment: r.TakesComment, Rule: (*domain.RulePreview)(r.Rule), Stale: r.Stale, Reopens: r.Reopens, Reopened: r.Reopened, Replayed: r.Replayed, Truncated: r.Truncated,
		Elicitation: r.Elicitation.Value(),
	}
}

type resolvedRow struct {
	ApprovalID  string `json:"id"`
	CallID      string `json:"call"`
	ToolUseID   string `json:"tool_use,omitempty"`
	Type        string `json:"type"`
	Status      string `json:"status"`
	Response    string `json:"response,omitempty"`
	Comment     string `json:"comment,omitempty"`
	Option      string `json:"option,omitempty"`
	DecidedBy   string `json:"decided_by,omitempty"`
	Title       string `json:"title,omitempty"`
	Tool        string `json:"tool,omitempty"`
	InputEdited bool   `json:"input_edited,omitempty"`
	Explanation string `json:"explanation,omitempty"`
}

type settingsRow struct {
	Title           *string   `json:"title,omitempty"`
	Mode            *string   `json:"mode,omitempty"`
	Model           *string   `json:"model,omitempty"`
	AutoAcceptEdits *bool     `json:"auto_accept_edits,omitempty"`
	SkipPermissions *bool     `json:"skip_permissions,omitempty"`
	SkipUntil       time.Time `json:"skip_until,omitzero"`
	Archived        *bool     `json:"archived,omitempty"`
	Reason          string    `json:"reason,omitempty"`

	Options map[string]string `json:"options,omitempty"`
	Agent   *string           `json:"agent,omitempty"`
}

type nativeSessionRow struct {
	NativeSession string `json:"native"`
	Replaced      bool   `json:"replaced,omitempty"`
	Forked        bool   `json:"forked,omitempty"`
}

type agentModeRow struct {
	Mode    string           `json:"mode"`
	Modes   []string         `json:"modes,omitempty"`
	Choices []rowjson.Choice `json:"choices,omitempty"`
}

type agentSessionChangedRow struct {
	rowjson.AgentSession
	Truncated bool `json:"truncated,omitempty"`
}

type usageRow struct {
	InputTokens      int64   `json:"input,omitempty"`
	OutputTokens     int64   `json:"output,omitempty"`
	CacheReadTokens  int64   `json:"cache_read,omitempty"`
	CacheWriteTokens int64   `json:"cache_write,omitempty"`
	ContextUsed      int64   `json:"context_used,omitempty"`
	ContextSize      int64   `json:"context_size,omitempty"`
	CostUSD          float64 `json:"cost_usd,omitempty"`

	Meta json.RawMessage `json:"_meta,omitempty"`
}

type changeDecidedRow struct {
	Path     string `json:"path"`
	Decision string `json:"decision"`
	Hunk     string `json:"hunk,omitempty"`
}

type queueRow struct {
	Text      *string  `json:"text,omitempty"`
	Truncated bool     `json:"truncated,omitempty"`
	Order     []string `json:"order"`
}

type fileChangeRow struct {
	Path      string `json:"path"`
	Diff      string `json:"diff,omitempty"`
	Added     int    `json:"added,omitempty"`
	Removed   int    `json:"removed,omitempty"`
	Binary    bool   `json:"binary,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

type triggerRow struct {
	Execution int64  `json:"execution"`
	Trigger   string `json:"trigger"`
	EventType string `json:"event"`
	Action    string `json:"action"`
	Status    string `json:"status"`
	Message   string `json:"message,omitempty"`
	Channel   string `json:"channel,omitempty"`
	Approval  string `json:"approval,omitempty"`
	Error     string `json:"error,omitempty"`
}

type reportRow struct {
	Report json.RawMessage `json:"report,omitempty"`
}

type agentUpdateRow struct {
	Update json.RawMessage `json:"update,omitempty"`
}

type agentSilentRow struct {
	Since  time.Time `json:"since"`
	Note   string    `json:"note,omitempty"`
	ToolID string    `json:"tool_id,omitempty"`
	Tool   string    `json:"tool,omitempty"`
	Ended  bool      `json:"ended,omitempty"`
}

type terminalExitRow struct {
	TerminalID string `json:"terminal"`
	TaskID     string `json:"task,omitempty"`
	ExitCode   int    `json:"exit_code"`
	Signal     string `json:"signal,omitempty"`
}

type threadDeletedRow struct {
	Thread string          `json:"thread"`
	Runs   []deletedRunRow `json:"runs"`
	Kept   int             `json:"kept,omitempty"`
}

type deletedRunRow struct {
	SessionID string `json:"session"`
	RunID     string `json:"run"`
	Task      int64  `json:"task"`
}

func threadDeletedRowOf(p domain.ThreadDeleted) threadDeletedRow {
	r := threadDeletedRow{Thread: p.ThreadUUID, Kept: p.Kept}
	for _, ref := range p.Runs {
		r.Runs = append(r.Runs, deletedRunRow(ref))
	}
	return r
}

func (r threadDeletedRow) payload() domain.ThreadDeleted {
	p := domain.ThreadDeleted{ThreadUUID: r.Thread, Kept: r.Kept}
	for _, one := range r.Runs {
		p.Runs = append(p.Runs, domain.RunRef(one))
	}
	return p
}

// Columns are what a row has of an event, apart from its numbers and its time. Nil is
// NULL: most rows have only one of Key, Text and Data.
type Columns struct {
	Type string // the kind of the payload
	Key  *string
	Text *string
	Data *string // JSON
}

// Encode spells an event as the columns of its row. It fails for payloads that
// the log does not keep.
func Encode(e domain.Event) (Columns, error) {
	row := Columns{Type: string(e.Payload.Kind())}
	if d, ok := e.Payload.(domain.MessageDelta); ok {
		row.Key = &d.Key
		if d.Text != "" {
			row.Text = &d.Text
		}
		if d.ParentID != "" || d.Meta != nil { // rare
			data, err := rowjson.Encode(deltaRow{d.ParentID, d.Meta})
			if err != nil {
				return Columns{}, err
			}
			row.Data = &data
		}
		return row, nil
	}
	codec, ok := payloadCodecs[e.Payload.Kind()]
	if !ok {
		return Columns{}, fmt.Errorf("%T is not kept in the log", e.Payload)
	}
	data, err := codec.encode(e.Ref, e.Payload)
	if err != nil {
		return Columns{}, err
	}
	row.Data = &data
	return row, nil
}

// Decode reads what Encode made, or what a program up to format 8 did. An error
// means that no program wrote such a row: it is damaged.
func Decode(row Columns) (domain.RunRef, domain.Payload, error) {
	switch row.Type {
	case string(domain.EventDelta), oldDelta:
		return domain.RunRef{}, deltaOf(row, false), nil
	case string(domain.EventThoughtDelta), oldThoughtDelta:
		return domain.RunRef{}, deltaOf(row, true), nil
	}
	if codec, ok := payloadCodecs[domain.EventKind(row.Type)]; ok {
		return codec.decode(deref(row.Data))
	}
	if decode, ok := oldPayloads[row.Type]; ok {
		return decode([]byte(deref(row.Data)))
	}
	return domain.RunRef{}, nil, errUnknownType
}

// deltaOf reads a delta. Damaged data counts as absent.
func deltaOf(row Columns, thought bool) domain.MessageDelta {
	var more deltaRow
	if row.Data != nil {
		_ = json.Unmarshal([]byte(*row.Data), &more)
	}
	return domain.MessageDelta{Key: deref(row.Key), ParentID: more.ParentID, Text: deref(row.Text), Thought: thought, Meta: more.Meta}
}

// deref is what p points to, or the empty text.
func deref(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

var errUnknownType = errors.New("a row of the log says nothing that is known")
