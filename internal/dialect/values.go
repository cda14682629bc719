package dialect

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/openjson"
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
		shown[i], _ = openjson.Write(option{o.ID, o.Name, o.Kind}, o.Extra) // strings: it cannot fail
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
		extra, err := openjson.Read(item, &o)
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

	Attachments []Attachment `json:"attachments,omitempty"`
}

func toolDetailsOf(d domain.ToolDetails) *toolDetails {
	return &toolDetails{d.Paths, fileDiffs(d.Diffs), d.Terminal, attachments(d.Blocks)}
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
	ApprovalID string `json:"approval_id"`
	Type       string `json:"type"`
	Decision   string `json:"decision"`
	Title      string `json:"title"`
	Response   string `json:"response_text,omitempty"`
	DecidedBy  string `json:"decided_by,omitempty"`
	Edited     bool   `json:"input_was_edited,omitempty"`
	Delivery   string `json:"delivery,omitempty"`
}

// ItemData is what an item of its kind alone has, as clients see it: an object,
// or absent.
func ItemData(data domain.ItemData) json.RawMessage {
	switch d := data.(type) {
	case domain.ToolDetails:
		return encode(toolDetailsOf(d))
	case domain.MessageContent:
		return encode(messageContent{attachments(d.Blocks)})
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
