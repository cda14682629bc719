package rowjson

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

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

// ItemDataOf is what an item of its kind alone has, as rows have it: a value to
// be encoded, or nil.
func ItemDataOf(data domain.ItemData) any {
	switch d := data.(type) {
	case domain.ToolDetails:
		return ToolDetailsOf(d)
	case domain.MessageContent:
		return messageContent{BlocksOf(d.Blocks), d.Meta}
	case domain.Plan:
		return PlanOf(d)
	case domain.FileNote:
		return fileNote(d)
	case domain.ApprovalNote:
		return approvalNote(d)
	}
	return nil
}

// ItemData is what an item of a kind alone has, from the JSON of a row. Of JSON
// that is another thing, what can be read is; it is nil for kinds that have
// nothing, and for JSON that is no object.
func ItemData(kind string, data []byte) domain.ItemData {
	if len(data) == 0 || data[0] != '{' {
		return nil
	}
	switch kind {
	case domain.ItemTool:
		return read[ToolDetails](data).Value()
	case domain.ItemMessage, domain.ItemThinking:
		if c := read[messageContent](data); c.Blocks != nil || c.Meta != nil {
			return domain.MessageContent{Blocks: Blocks(c.Blocks), Meta: c.Meta}
		}
	case domain.ItemPlan:
		return read[Plan](data).Value()
	case domain.ItemFile:
		return domain.FileNote(read[fileNote](data))
	case domain.ItemApproval:
		return domain.ApprovalNote(read[approvalNote](data))
	}
	return nil
}

// read is what can be read of JSON.
func read[T any](data []byte) (v T) {
	_ = json.Unmarshal(data, &v) // it goes on behind a member of another type
	return v
}
