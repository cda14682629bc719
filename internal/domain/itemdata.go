package domain

import (
	"bytes"
	"encoding/json"
	"slices"
)

// ItemData is what an item has that those of other kinds have not: a value of
// one of the types below, which is never changed.
type ItemData interface {
	// Size is about how many bytes its texts are.
	Size() int
	itemData()
}

// ToolDetails are what a tool call touches (ItemTool).
type ToolDetails struct {
	Paths    []string // files
	Diffs    []Diff
	Terminal string // in which it runs, or ""

	RefusedBy string          // who denied it, as Approval.DecidedBy; "": not known
	Refusal   string          // why, in words
	Blocks    []Block         // what it gave back that is no text
	Meta      json.RawMessage // the agent's own, an object; nil: none
}

// MessageContent is what a message has beside its text (ItemMessage, ItemThinking).
type MessageContent struct {
	Blocks []Block
	Meta   json.RawMessage // the agent's own, an object of at most catalog.MaxMeta bytes; nil: none
}

// Equal reports whether two say the same.
func (d ToolDetails) Equal(other ToolDetails) bool {
	return d.Terminal == other.Terminal && d.RefusedBy == other.RefusedBy && d.Refusal == other.Refusal && slices.Equal(d.Paths, other.Paths) && slices.EqualFunc(d.Diffs, other.Diffs, Diff.Equal) &&
		slices.EqualFunc(d.Blocks, other.Blocks, Block.same) && bytes.Equal(d.Meta, other.Meta)
}

// Plan is an agent's plan, whole (ItemPlan).
type Plan struct{ Entries []PlanEntry }

// A PlanEntry is a step of a plan.
type PlanEntry struct {
	Content  string
	Priority string // high, medium or low
	Status   string // pending, in_progress or completed
}

// FileNote says that a run has changed a file (ItemFile); the Change has its texts.
type FileNote struct {
	Path    string
	Added   int // lines
	Removed int
	Binary  bool
}

// ApprovalNote is what a human was asked and has answered (ItemApproval).
type ApprovalNote struct {
	ApprovalID  string
	Type        string // FunctionCall or HumanContact
	Decision    string // as Approval.Status
	Title       string
	Response    string
	DecidedBy   string // if not the user
	Edited      bool   // the input
	Explanation string // as Approval.Explanation
	Delivery    string // what became of the answer, where the agent is not known to have taken it
}

func (ToolDetails) itemData()    {}
func (MessageContent) itemData() {}
func (Plan) itemData()           {}
func (FileNote) itemData()       {}
func (ApprovalNote) itemData()   {}
