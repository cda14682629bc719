package dialect

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/jsonwalk"
)

type option struct {
	ID   string            `json:"option_id,omitempty"`
	Name string            `json:"name,omitempty"`
	Kind domain.OptionKind `json:"kind,omitempty"`
}

// Options are answers that were offered, as clients see and send them:
// [{option_id,name,kind}]; absent where list is nil.
func Options(list []domain.Option) json.RawMessage {
	if list == nil {
		return nil
	}
	shown := make([]json.RawMessage, len(list))
	for i, o := range list {
		shown[i], _ = jsonwalk.OpenjsonWrite(option{o.ID, o.Name, o.Kind}, o.Extra) // strings: it cannot fail
	}
	return encode(shown)
}

// ReadOptions are the options that a client sends. An error says that they are
// none.
func ReadOptions(raw json.RawMessage) ([]domain.Option, error) {
	var list []json.RawMessage
	if len(raw) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &list); err != nil || list == nil {
		return nil, err
	}
	options := make([]domain.Option, len(list))
	for i, item := range list {
		var o option
		extra, err := jsonwalk.OpenjsonRead(item, &o)
		if err != nil {
			return nil, err
		}
		options[i] = domain.Option{ID: o.ID, Name: o.Name, Kind: o.Kind, Extra: extra}
	}
	return options, nil
}

type fileDiff struct {
	Path    string  `json:"path"`
	OldText *string `json:"old_text,omitempty"`
	NewText string  `json:"new_text"`
}

func fileDiffs(diffs []domain.Diff) []fileDiff {
	list := make([]fileDiff, len(diffs))
	for i, d := range diffs {
		list[i] = fileDiff(d)
	}
	return list
}

type toolDetails struct {
	Paths    []string   `json:"paths,omitempty"`
	Diffs    []fileDiff `json:"diffs,omitempty"`
	Terminal string     `json:"terminal,omitempty"`

	Attachments []Attachment    `json:"attachments,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

func toolDetailsOf(d domain.ToolDetails) *toolDetails {
	return &toolDetails{d.Paths, fileDiffs(d.Diffs), d.Terminal, attachments(d.Blocks), d.Meta}
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

type planNote struct {
	Entries []planEntry `json:"entries"`
}

type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority,omitempty"`
	Status   string `json:"status,omitempty"`
}

func planEntries(entries []domain.PlanEntry) []planEntry {
	list := make([]planEntry, len(entries))
	for i, e := range entries {
		list[i] = planEntry(e)
	}
	return list
}

type fileNote struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
}

type approvalNote struct {
	ApprovalID  string `json:"approval_id"`
	Type        string `json:"type"`
	Decision    string `json:"decision"`
	Title       string `json:"title"`
	Response    string `json:"response_text,omitempty"`
	DecidedBy   string `json:"decided_by,omitempty"`
	Edited      bool   `json:"input_was_edited,omitempty"`
	Explanation string `json:"explanation,omitempty"`
	Delivery    string `json:"delivery,omitempty"`
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
		return encode(planNote{planEntries(d.Entries)})
	case domain.FileNote:
		return encode(fileNote(d))
	case domain.ApprovalNote:
		return encode(approvalNote(d))
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
