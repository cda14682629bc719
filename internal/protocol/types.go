package protocol

import (
	"encoding/json"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/form"
)

// Types of events, as clients know them (docs/protocol.md, "Events").
const (
	TypeStatus       = "session_status_changed"
	TypeConversation = "conversation_updated"
	TypeApproval     = "new_approval"
	TypeResolved     = "approval_resolved"
	TypeSettings     = "session_settings_changed"
	TypeDelta        = "message_delta"
	TypeThinking     = "thinking_delta"
	TypePlan         = "plan"
	TypeUsage        = "usage"
	TypeDiff         = "diff_updated"
	TypeTerminal     = "terminal_output"
	TypeTerminalExit = "terminal_exit"
	TypeProgress     = "task_progress"
	TypeError        = "task_error"
	TypeUpdate       = "agent_update"
	TypeSilent       = "agent_silent"
	TypeLagged       = "lagged"
	TypeLogDamaged   = "log_damaged"
	TypeSecret       = "secret_requested"
	TypeAgentSession = "agent_session"
	TypeDeleted      = "session_deleted"
	TypeTrigger      = "trigger_executed"
	TypeBuild        = "build_progress"
	TypeIteration    = "iteration_start"
	TypeGateStart    = "gate_start"
	TypeGate         = "gate_result"
	TypeGatesEnded   = "gates_complete"
	TypeDecided      = "change_decided"
	TypeQueue        = "queue_changed"
)

// EventTypes are those that a subscription can choose.
var EventTypes = []string{
	TypeStatus, TypeConversation, TypeApproval, TypeResolved, TypeSettings,
	TypeDelta, TypeThinking, TypePlan, TypeUsage, TypeDiff, TypeTerminal, TypeTerminalExit,
	TypeProgress, TypeError, TypeUpdate, TypeGate, TypeBuild, TypeLagged, TypeLogDamaged, TypeSecret, TypeAgentSession,
	TypeSilent, TypeDeleted, TypeTrigger, TypeIteration, TypeGateStart, TypeGatesEnded, TypeDecided, TypeQueue,
}

// eventTypes are what clients call the kinds of events.
var eventTypes = map[domain.EventKind]string{
	domain.EventRunState:          TypeStatus,
	domain.EventMessage:           TypeConversation,
	domain.EventToolCall:          TypeConversation,
	domain.EventDelta:             TypeDelta,
	domain.EventThoughtDelta:      TypeThinking,
	domain.EventApprovalRequested: TypeApproval,
	domain.EventApprovalResolved:  TypeResolved,
	domain.EventSettings:          TypeSettings,
	domain.EventNativeSession:     TypeSettings,
	domain.EventAgentMode:         TypeSettings,
	domain.EventAgentSession:      TypeAgentSession,
	domain.EventPlan:              TypePlan,
	domain.EventUsage:             TypeUsage,
	domain.EventFileChange:        TypeDiff,
	domain.EventChangeDecided:     TypeDecided,
	domain.EventQueue:             TypeQueue,
	domain.EventProgress:          TypeProgress,
	domain.EventAgentError:        TypeError,
	domain.EventAgentUpdate:       TypeUpdate,
	domain.EventAgentSilent:       TypeSilent,
	domain.EventTerminalOutput:    TypeTerminal,
	domain.EventTerminalExit:      TypeTerminalExit,
	domain.EventTerminalLagged:    TypeLagged,
	domain.EventSecretRequested:   TypeSecret,
	domain.EventThreadDeleted:     TypeDeleted,
	domain.EventTrigger:           TypeTrigger,
	domain.EventBuild:             TypeBuild,
	domain.EventIteration:         TypeIteration,
	domain.EventGateStart:         TypeGateStart,
	domain.EventGate:              TypeGate,
	domain.EventLoopEnded:         TypeGatesEnded,
	domain.EventLagged:            TypeLagged,
	domain.EventLogDamaged:        TypeLogDamaged,
}

// formerTypes are names by which HumanLayer's terminal client of June 2025 subscribes, and
// what it wants: it knows the events themselves by the later names.
var formerTypes = map[string]string{
	TypeApproval: "approval_requested",
	TypeResolved: "approval_responded",
	TypeStatus:   "session_updated",
}

// Kinds are the kinds of events that clients call by one of the names; nil, for
// all, where there are no names. Names of no kind are ignored.
func Kinds(types []string) []domain.EventKind {
	if len(types) == 0 {
		return nil
	}
	kinds := []domain.EventKind{}
	for kind, name := range eventTypes {
		former, has := formerTypes[name]
		if slices.Contains(types, name) || has && slices.Contains(types, former) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// Options are offered answers as clients see and send them: a list of objects with option_id,
// name and kind; absent where list is nil.
func Options(list []domain.Option) json.RawMessage {
	if list == nil {
		return nil
	}
	return encode(list)
}

// ReadOptions reads the options that a client sends.
func ReadOptions(raw json.RawMessage) (options []domain.Option, err error) {
	if len(raw) > 0 {
		err = json.Unmarshal(raw, &options)
	}
	return options, err
}

// List makes a list that clients get even if it is empty.
func List[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

type toolDetails struct {
	Paths    []string      `json:"paths,omitempty"`
	Diffs    []domain.Diff `json:"diffs,omitempty"`
	Terminal string        `json:"terminal,omitempty"`

	Attachments []Attachment    `json:"attachments,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

func toolDetailsOf(d domain.ToolDetails) *toolDetails {
	return &toolDetails{d.Paths, d.Diffs, d.Terminal, attachments(d.Blocks), d.Meta}
}

// RulePreviews are what a rule would hold for that is made of a question, by the
// scope of the decision.
type RulePreviews map[string]RulePreview

// A RulePreview is one of them.
type RulePreview struct {
	ToolName string `json:"tool_name"`
	Covers   string `json:"covers" doc:"command, files, input (the same one), or tool (whatever it does)."`
	Pattern  string `json:"pattern,omitempty" doc:"Of the command or the files; sendDecision takes another one."`
	Text     string `json:"text" doc:"All of it in words, for people."`
}

// longestPattern is the longest pattern that is shown, and may be edited, in bytes:
// what is longer is in the question already.
const longestPattern = 2048

// RulePreviewsOf spells what a rule would hold for; nil of nil.
func RulePreviewsOf(p *domain.RulePreview) RulePreviews {
	if p == nil {
		return nil
	}
	pattern, named := p.Pattern, p.Pattern
	if len(pattern) > longestPattern {
		pattern, named = "", "that is asked about"
	}
	what := map[string]string{
		domain.CoversCommand: "the command " + named,
		domain.CoversFiles:   p.Tool + " of files " + named,
		domain.CoversInput:   p.Tool + " with the very same input",
		domain.CoversTool:    p.Tool + ", whatever its input",
	}[p.Covers]
	list := RulePreviews{}
	for _, scope := range []string{"session", "project"} {
		list[scope] = RulePreview{p.Tool, p.Covers, pattern, what + ", in this " + scope}
	}
	return list
}

// ItemData is what an item of its kind alone has, as clients see it: an object,
// or absent.
func ItemData(data domain.ItemData) json.RawMessage {
	switch d := data.(type) {
	case domain.ToolDetails:
		return encode(toolDetailsOf(d))
	case domain.MessageContent:
		return encode(messageContent{attachments(d.Blocks), d.Meta})
	case domain.Plan:
		return encode(domain.Plan{Entries: List(d.Entries)})
	case domain.FileNote:
		return encode(d)
	case domain.ApprovalNote:
		return encode(d)
	}
	return nil
}

// encode is what clients are sent, as JSON.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil { // raw JSON of somebody else's that is none
		b, _ = json.Marshal(map[string]string{"malformed": err.Error()})
	}
	return b
}

// An Attachment is content that is no text, as clients see it: getAttachment has
// its bytes.
type Attachment struct {
	Type        string          `json:"type"`
	ID          string          `json:"attachment_id,omitempty"`
	MIMEType    string          `json:"mime_type,omitempty"`
	Size        int64           `json:"size,omitempty"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	URI         string          `json:"uri,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

func attachments(blocks []domain.Block) []Attachment {
	if blocks == nil {
		return nil
	}
	list := make([]Attachment, len(blocks))
	for i, b := range blocks {
		list[i] = Attachment{b.Type, b.Attachment, b.MIMEType, b.Size, b.Name, b.Title, b.Description, b.URI, b.Annotations, b.Meta}
	}
	return list
}

type messageContent struct {
	Attachments []Attachment    `json:"attachments,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// An Elicitation is what a person is asked to fill in or to open, as a part of
// the question.
type Elicitation struct {
	Mode        string          `json:"mode" doc:"form or url: of a question that asks a person to fill in a form or to open an address. It is answered with respond, deny (declined) or cancel."`
	Schema      json.RawMessage `json:"schema,omitempty" doc:"Of a form: a flat object of JSON Schema, as of ACP's elicitation. The answer's content has to fit it."`
	URL         string          `json:"url,omitempty" doc:"The address to open. It is opened by nobody unless a person says so; responding says that a person agrees to open it."`
	URLHost     string          `json:"url_host,omitempty" doc:"The host that url leads to: show it beside."`
	URLWarnings []string        `json:"url_warnings,omitempty" doc:"What to look at before url is opened, in words for people; show them."`
}

// ElicitationOf is nil for none.
func ElicitationOf(e domain.Elicitation) *Elicitation {
	if e.Mode == "" {
		return nil
	}
	r := &Elicitation{Mode: e.Mode, Schema: e.Schema, URL: e.URL}
	if e.Mode == domain.ElicitURL {
		link := form.LinkOf(e.URL)
		r.URLHost, r.URLWarnings = link.Host, link.Warnings
	}
	return r
}
