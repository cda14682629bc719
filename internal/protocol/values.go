package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/form"
)

// optionsJSON are offered answers as clients see and send them: a list of objects with option_id,
// name and kind; absent where list is nil.
func optionsJSON(list []domain.Option) json.RawMessage {
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
	if err != nil { // third-party text that is not JSON
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

// ErrorText is why a run failed, in words; "" where it did not.
func ErrorText(r domain.Run) string {
	if r.Error == "" && r.State == domain.TimedOut {
		return "the time limit was reached"
	}
	return r.Error
}

// ExecutionError is why a run failed, as the executor catalog tells it: neither
// its message nor its code, in capitals, is ever empty.
func ExecutionError(r domain.Run) (message, code string) {
	byDefault := "EXECUTOR_ERROR"
	if r.State == domain.TimedOut {
		byDefault = "TIMEOUT"
	}
	return cmp.Or(ErrorText(r), "the agent failed and did not say why"), cmp.Or(r.ErrorCode, byDefault)
}

// AgentOfTool is the agent that the executor catalog means by the name of a tool.
func AgentOfTool(tool string) string {
	if tool == "claude-code" {
		return "claude"
	}
	return tool
}

// DurationMS is how long a run ran, in milliseconds; nil where it did not, or has
// not ended.
func DurationMS(r domain.Run) *int64 {
	if r.Started.IsZero() || r.Ended.IsZero() {
		return nil
	}
	ms := r.Ended.Sub(r.Started).Milliseconds()
	return &ms
}

// Cut shortens a text to about most bytes, and says so in its place.
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

// IsContextOverflow reports whether a run failed since its prompt, with what was said
// before, does not fit into the model's context.
func IsContextOverflow(r domain.Run) bool { return r.ErrorCode == "AGENT_CONTEXT_OVERFLOW" } // a failure of package task
