package domain

import (
	"encoding/json"
	"time"
)

// An Item is an entry of a conversation, folded from events: a message, a
// thought, or a tool call with its result.
type Item struct {
	ID       int64
	Thread   int64
	Run      int64
	Seq      int64  // of the event that made or changed it last
	Kind     string // ItemMessage, ...
	Key      string // the agent's id of it, or one of ours
	Role     string // user or assistant
	Content  string
	Tool     string
	Title    string
	ToolKind string
	Input    json.RawMessage // of a tool: the agent's own JSON, in its spelling
	Status   string          // of a tool call: pending, in_progress, completed, failed
	Result   string
	ParentID string
	Data     ItemData // of the type that belongs to Kind; nil: there is none, or it could not be read
	Approval string   // the id of the last approval that it needed
	Created  time.Time
	Updated  time.Time
}

// Kinds of items.
const (
	ItemMessage  = "message"
	ItemThinking = "thinking"
	ItemTool     = "tool_call"
	ItemSystem   = "system"   // what the hub has to say
	ItemPlan     = "plan"     // of which a run has one
	ItemFile     = "diff"     // that a run has changed a file
	ItemApproval = "approval" // what a human was asked and has answered
)

// A Hit is an item that a search found.
type Hit struct {
	Item
	Snippet string // what was found, marked by « and »
	Rank    float64
}

// Events is how many events of a conversation the item is: a tool call has its
// result behind it, as soon as there is one.
func (i Item) Events() int {
	if i.Kind == ItemTool && (i.Status == "completed" || i.Status == "failed" || i.Result != "") {
		return 2
	}
	return 1
}

// IsNote reports whether the item is what no agent and no human has said: a
// plan, a changed file, an answer. Some clients are told nothing of them.
func (i Item) IsNote() bool { return IsNote(i.Kind) }

// IsNote reports whether items of a kind are notes, as of [Item.IsNote].
func IsNote(kind string) bool { return kind == ItemPlan || kind == ItemFile || kind == ItemApproval }
