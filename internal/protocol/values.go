package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/form"
	"github.com/duet-rpc/duet-rpc/internal/toolinput"
)

// ReadOptions decodes a client's options.
func ReadOptions(raw json.RawMessage) (options []domain.Option, err error) {
	if len(raw) > 0 {
		err = json.Unmarshal(raw, &options)
	}
	return options, err
}

// List returns list, or an empty list for nil, so that clients never get null.
func List[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// ToolDetails are the files, terminal and content of a tool call.
type ToolDetails struct {
	Paths    []string      `json:"paths,omitempty"`
	Diffs    []domain.Diff `json:"diffs,omitempty"`
	Terminal string        `json:"terminal,omitempty"`

	Attachments []Attachment    `json:"attachments,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

func ToolDetailsOf(d domain.ToolDetails) *ToolDetails {
	return &ToolDetails{d.Paths, d.Diffs, d.Terminal, AttachmentsOf(d.Blocks), d.Meta}
}

// RulePreviews are the rules that a decision would make, by its scope.
type RulePreviews map[string]RulePreview

// A RulePreview is a rule that a decision would make.
type RulePreview struct {
	ToolName string `json:"tool_name"`
	Covers   string `json:"covers" doc:"command, files, input (exactly this input) or tool (any input)."`
	Pattern  string `json:"pattern,omitempty" doc:"The pattern of the command or files. approval.decide accepts another one."`
	Text     string `json:"text" doc:"The whole rule, for people."`
}

// longestPattern limits the pattern that clients show and may edit, in bytes. The question itself
// contains longer ones.
const longestPattern = 2048

// RulePreviewsOf describes a rule for each scope; nil for nil.
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
		domain.CoversFiles:   p.Tool + " of files " + filesInWords(named),
		domain.CoversInput:   p.Tool + " with the very same input",
		domain.CoversTool:    p.Tool + ", whatever its input",
	}[p.Covers]
	list := RulePreviews{}
	for _, scope := range domain.RuleScopes() {
		list[scope] = RulePreview{p.Tool, p.Covers, pattern, what + ", " + domain.ScopeText(scope)}
	}
	return list
}

// filesInWords describes the files of a pattern.
func filesInWords(pattern string) string {
	if dir, all := strings.CutSuffix(pattern, "/**"); all && !strings.ContainsAny(dir, `*?[\\`) {
		return "in " + dir + " and below"
	}
	return pattern
}

// TextMember returns [Approval.TextMember].
func TextMember(editable bool, input json.RawMessage) string {
	if !editable {
		return ""
	}
	return toolinput.TextMember(input)
}

// ItemData encodes the data of an item's kind as an object, or returns nil.
func ItemData(data domain.ItemData) json.RawMessage {
	switch d := data.(type) {
	case domain.ToolDetails:
		return encode(ToolDetailsOf(d))
	case domain.MessageContent:
		return encode(messageContent{AttachmentsOf(d.Blocks), d.Meta})
	case domain.Plan:
		return encode(domain.Plan{Entries: List(d.Entries)})
	case domain.FileNote:
		return encode(d)
	case domain.ApprovalNote:
		return encode(d)
	}
	return nil
}

// encode encodes a value for clients.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil { // third-party text that is not JSON
		b, _ = json.Marshal(map[string]string{"malformed": err.Error()})
	}
	return b
}

// An Attachment describes content that is not text. attachment.get returns its bytes.
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

func AttachmentsOf(blocks []domain.Block) []Attachment {
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

// An Elicitation is a form to fill in or an address to open, as part of an approval.
type Elicitation struct {
	Mode        string          `json:"mode" doc:"form or url: the user fills in a form or opens an address. The answer is respond, deny (declined) or cancel."`
	Schema      json.RawMessage `json:"schema,omitempty" doc:"form: a flat JSON Schema object, as in ACP's elicitation. The answer's content must fit it."`
	URL         string          `json:"url,omitempty" doc:"The address to open. Open it only after the user agrees; respond says that the user agrees."`
	URLHost     string          `json:"url_host,omitempty" doc:"The host of url. Show it next to the address."`
	URLWarnings []string        `json:"url_warnings,omitempty" doc:"What the user should check before opening url. Show them."`
}

// ElicitationOf converts an elicitation for clients; nil if there is none.
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

// ErrorText returns why a turn failed, or "".
func ErrorText(r domain.Turn) string {
	if r.Error == "" && r.State == domain.TimedOut {
		return "the time limit was reached"
	}
	return r.Error
}

// DurationMS returns how long a turn ran, in milliseconds; nil if it has not started or not ended. It
// leaves out the time by which the clock was set, and the time in which the machine slept.
func DurationMS(r domain.Turn) *int64 {
	if r.Started.IsZero() || r.Ended.IsZero() {
		return nil
	}
	ms := max(0, r.Ended.Sub(r.Started)-r.ClockOff).Milliseconds()
	return &ms
}

// Cut shortens a text to about most bytes and appends how much is missing.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return fmt.Sprintf("%s… [%d of %d bytes left out]", text[:end], len(text)-end, len(text))
}

// IsContextOverflow reports whether a turn failed because its prompt and history do not fit into the
// model's context.
func IsContextOverflow(r domain.Turn) bool { return r.ErrorCode == "AGENT_CONTEXT_OVERFLOW" } // a failure of package task

// isoMillis is a time format: ISO 8601 in UTC with milliseconds.
const isoMillis = "2006-01-02T15:04:05.000Z"

// Timestamp formats a time in UTC with milliseconds, as AIWG and application boundaries do.
func Timestamp(t time.Time) string { return t.UTC().Format(isoMillis) }

// TimestampOrNull is Timestamp, or nil for the zero time.
func TimestampOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := Timestamp(t)
	return &s
}

// A PermissionMode says what an agent may do without asking.
type PermissionMode string

// Accepted implements schema.Enum.
func (PermissionMode) Accepted() []string {
	return []string{"default", "acceptEdits", "bypassPermissions", "plan"}
}

// A Sandbox is a level of a sandbox. "" is none.
type Sandbox string

// Accepted implements schema.Enum.
func (Sandbox) Accepted() []string { return append([]string{""}, domain.SandboxLevels()...) }
