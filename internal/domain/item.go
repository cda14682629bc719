package domain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// An Item is an entry of a conversation, folded from events: a message, a
// thought, or a tool call with its result.
type Item struct {
	ID       int64           `db:"id,auto"`
	Thread   int64           `db:"thread,fixed"`
	Run      int64           `db:"run,fixed"`
	Seq      int64           `db:"seq"`        // of the event that made or changed it last
	Kind     string          `db:"kind,fixed"` // ItemMessage, ...
	Key      string          `db:"key,fixed"`  // the agent's id of it, or one of ours
	Role     string          `db:"role,fixed"` // user or assistant
	Content  string          `db:"content"`
	Tool     string          `db:"tool"`
	Title    string          `db:"title"`
	ToolKind string          `db:"tool_kind"`
	Input    json.RawMessage `db:"input"`  // of a tool: the agent's own JSON, in its spelling
	Status   string          `db:"status"` // of a tool call: pending, in_progress, completed, failed
	Result   string          `db:"result"`
	ParentID string          `db:"parent_id"`
	Data     ItemData        // of the type that belongs to Kind; nil: there is none, or it could not be read
	Approval string          `db:"approval"` // the id of the last approval that it needed
	Created  time.Time       `db:"created,fixed"`
	Updated  time.Time       `db:"updated"`
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

// ItemData is what an item has that those of other kinds have not: a value of
// one of the types below, which is never changed.
type ItemData interface {
	// Size is about how many bytes its texts are.
	Size() int
	itemData()
}

// ToolDetails are what a tool call touches (ItemTool).
type ToolDetails struct {
	Paths    []string `json:"paths,omitempty"` // files
	Diffs    []Diff   `json:"diffs,omitempty"`
	Terminal string   `json:"terminal,omitempty"` // in which it runs, or ""

	RefusedBy string          `json:"refused_by,omitempty"`  // who denied it, as Approval.DecidedBy; "": not known
	Refusal   string          `json:"refusal,omitempty"`     // why, in words
	Blocks    []Block         `json:"attachments,omitempty"` // what it gave back that is no text
	Meta      json.RawMessage `json:"_meta,omitempty"`       // the agent's own, an object; nil: none
}

// MessageContent is what a message has beside its text (ItemMessage, ItemThinking).
type MessageContent struct {
	Blocks []Block         `json:"attachments,omitempty"`
	Meta   json.RawMessage `json:"_meta,omitempty"` // the agent's own, an object of at most catalog.MaxMeta bytes; nil: none
}

// Equal reports whether two say the same.
func (d ToolDetails) Equal(other ToolDetails) bool {
	return d.Terminal == other.Terminal && d.RefusedBy == other.RefusedBy && d.Refusal == other.Refusal && slices.Equal(d.Paths, other.Paths) && slices.EqualFunc(d.Diffs, other.Diffs, Diff.Equal) &&
		slices.EqualFunc(d.Blocks, other.Blocks, Block.same) && bytes.Equal(d.Meta, other.Meta)
}

// Plan is an agent's plan, whole (ItemPlan).
type Plan struct {
	Entries []PlanEntry `json:"entries"`
}

// A PlanEntry is a step of a plan.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority,omitempty"` // high, medium or low
	Status   string `json:"status,omitempty"`   // pending, in_progress or completed
}

// FileNote says that a run has changed a file (ItemFile); the Change has its texts.
type FileNote struct {
	Path    string `json:"path"`
	Added   int    `json:"added"` // lines
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
}

// ApprovalNote is what a human was asked and has answered (ItemApproval).
type ApprovalNote struct {
	ApprovalID  string `json:"approval_id"`
	Type        string `json:"type"`     // FunctionCall or HumanContact
	Decision    string `json:"decision"` // as Approval.Status
	Title       string `json:"title"`
	Response    string `json:"response_text,omitempty"`
	DecidedBy   string `json:"decided_by,omitempty"`       // if not the user
	Edited      bool   `json:"input_was_edited,omitempty"` // the input
	Explanation string `json:"explanation,omitempty"`      // as Approval.Explanation
	Delivery    string `json:"delivery,omitempty"`         // what became of the answer, where the agent is not known to have taken it
}

func (ToolDetails) itemData()    {}
func (MessageContent) itemData() {}
func (Plan) itemData()           {}
func (FileNote) itemData()       {}
func (ApprovalNote) itemData()   {}

// A Block is a piece of content that is no text of a conversation: of a prompt,
// of what an agent says, or of what a tool gives back. It has no bytes, but says
// under which id they are kept.
type Block struct {
	Type        string          `json:"type"`                // BlockImage, ...
	MIMEType    string          `json:"mime_type,omitempty"` // "" if nobody said
	Name        string          `json:"name,omitempty"`      // such as a file's, or ""
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	URI         string          `json:"uri,omitempty"`
	Attachment  string          `json:"attachment_id,omitempty"` // the ID of its bytes; "" of a link
	Size        int64           `json:"size,omitempty"`          // in bytes; of a link what was said of it, 0 if nothing was
	Binary      bool            `json:"binary,omitempty"`        // of a resource: it came as bytes rather than as text
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// Types of blocks, as the Agent Client Protocol calls them.
const (
	BlockImage        = "image"
	BlockAudio        = "audio"
	BlockResource     = "resource"      // a file's text or bytes
	BlockResourceLink = "resource_link" // where such a thing can be had
)

// Content is a block with its bytes, which are nil for a link.
type Content struct {
	Block
	Data []byte
}

// An Attachment is the bytes of blocks, kept once however often they were said.
type Attachment struct {
	ID       string `db:"id"`   // the SHA-256 of Data, in hexadecimal
	MIMEType string `db:"mime"` // as it was said first, or ""
	Data     []byte `db:"data"`
}

// AttachmentID is the ID of bytes.
func AttachmentID(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Attached is the bytes of a block that has some.
func (c Content) Attached() Attachment {
	return Attachment{ID: c.Attachment, MIMEType: c.MIMEType, Data: c.Data}
}

// AttachmentInfo is an attachment without its bytes.
type AttachmentInfo struct {
	ID       string `db:"id"`
	MIMEType string `db:"mime"`
	Size     int64  `db:"size,read"` // in bytes
}

// same reports whether two blocks say the same.
func (b Block) same(other Block) bool {
	return bytes.Equal(b.Annotations, other.Annotations) && bytes.Equal(b.Meta, other.Meta) && b.MIMEType == other.MIMEType && b.Type == other.Type && b.Name == other.Name && b.Title == other.Title &&
		b.Description == other.Description && b.URI == other.URI && b.Attachment == other.Attachment && b.Size == other.Size && b.Binary == other.Binary
}

// BlocksOf are blocks without their bytes, nil of nil.
func BlocksOf(list []Content) []Block {
	if list == nil {
		return nil
	}
	blocks := make([]Block, len(list))
	for i, c := range list {
		blocks[i] = c.Block
	}
	return blocks
}

// SizeOfBlocks is about how many bytes the texts of blocks are.
func SizeOfBlocks(blocks []Block) (n int) {
	for _, b := range blocks {
		n += fieldsSize + len(b.MIMEType) + len(b.Name) + len(b.Title) + len(b.Description) + len(b.URI) + len(b.Annotations) + len(b.Meta)
	}
	return n
}

// fieldsSize is about how long the fields of a payload are together that are
// never long: ids, names, states.
const fieldsSize = 256

// Size is as of Payload.
func (p RunStateChanged) Size() int {
	n := fieldsSize + len(p.Title) + len(p.Error)
	for _, m := range p.SignIn {
		n += 64 + len(m.ID) + len(m.Name) + len(m.Description)
	}
	return n
}

// Size is as of Payload.
func (d MessageDelta) Size() int { return len(d.Key) + len(d.Text) + len(d.Meta) }

// Size is as of Payload.
func (p MessageAdded) Size() int {
	return fieldsSize + len(p.Text) + SizeOfBlocks(p.Blocks) + len(p.Meta)
}

// Size is as of Payload.
func (p ToolCallChanged) Size() int {
	details := 0
	if p.Details != nil {
		details = p.Details.Size()
	}
	return fieldsSize + len(p.Title) + len(p.Input) + details + len(p.Result)
}

// Size is as of Payload.
func (p ApprovalRequested) Size() int {
	return fieldsSize + len(p.Input) + len(p.Ambiguity) + len(p.Title) + len(p.Subject) + sizeOfOptions(p.Options) + SizeOfDiffs(p.Diffs) + len(p.Elicitation.Schema) + len(p.Elicitation.URL)
}

// Size is as of Payload.
func (p ApprovalResolved) Size() int {
	return fieldsSize + len(p.Response) + len(p.Comment) + len(p.Title)
}

// Size is as of Payload.
func (p SettingsChanged) Size() int { return fieldsSize }

// Size is as of Payload.
func (p NativeSessionChanged) Size() int { return fieldsSize }

// Size is as of Payload.
func (p AgentModeChanged) Size() int { return fieldsSize + sizeOf(p.Choices) }

// Size is as of Payload.
func (p PlanChanged) Size() int {
	return fieldsSize + Plan(p).Size()
}

// Size is as of Payload.
func (p UsageReported) Size() int { return fieldsSize + len(p.Meta) }

// Size is as of Payload.
func (p FileChanged) Size() int { return fieldsSize + len(p.Diff) }

// Size is as of Payload.
func (p ProgressReported) Size() int { return fieldsSize + len(p.Report) }

// Size is as of Payload.
func (p AgentErrorReported) Size() int { return fieldsSize + len(p.Report) }

// Size is as of Payload.
func (p AgentUpdated) Size() int { return fieldsSize + len(p.Update) }

// Size is as of Payload.
func (p AgentSilent) Size() int { return fieldsSize + len(p.Note) + len(p.Tool) }

// Size is as of Payload.
func (p TerminalPrinted) Size() int { return fieldsSize + len(p.Data) }

// Size is as of Payload.
func (p TerminalExited) Size() int { return fieldsSize }

// Size is as of Payload.
func (p TerminalLagged) Size() int { return fieldsSize }

// Size is as of Payload.
func (p SecretRequested) Size() int { return fieldsSize }

// Size is as of Payload.
func (p Lagged) Size() int { return fieldsSize }

// Size is as of Payload.
func (p LogDamaged) Size() int { return fieldsSize }

// Size is as of Payload.
func (p ThreadDeleted) Size() int { return fieldsSize + len(p.Runs)*entrySize }

// Size is as of Payload.
func (p Erased) Size() int { return 0 }

// Size is as of Payload.
func (p Unreadable) Size() int { return fieldsSize }

// entrySize is about how long the fields of an entry of a list are together that
// are never long.
const entrySize = 64

// SizeOfDiffs is about how many bytes the texts of diffs are.
func SizeOfDiffs(diffs []Diff) (n int) {
	for _, d := range diffs {
		n += entrySize + len(d.Path) + len(d.NewText)
		if d.OldText != nil {
			n += len(*d.OldText)
		}
	}
	return n
}

func sizeOfOptions(options []Option) (n int) {
	for _, o := range options {
		n += entrySize + len(o.ID) + len(o.Name)
		for name, value := range o.Extra {
			n += len(name) + len(value)
		}
	}
	return n
}

// Size is as of ItemData.
func (d ToolDetails) Size() int {
	n := len(d.Terminal) + len(d.Refusal) + len(d.Meta) + SizeOfDiffs(d.Diffs) + SizeOfBlocks(d.Blocks)
	for _, p := range d.Paths {
		n += len(p) + 4
	}
	return n
}

// Size is as of ItemData.
func (c MessageContent) Size() int { return SizeOfBlocks(c.Blocks) + len(c.Meta) }

// Size is as of ItemData.
func (p Plan) Size() (n int) {
	for _, e := range p.Entries {
		n += entrySize + len(e.Content)
	}
	return n
}

// Size is as of ItemData.
func (n FileNote) Size() int { return fieldsSize + len(n.Path) }

// Size is as of ItemData.
func (n ApprovalNote) Size() int {
	return fieldsSize + len(n.Title) + len(n.Response) + len(n.Explanation) + len(n.Delivery)
}

// Size is about how many bytes its texts are.
func (s MCPServer) Size() int {
	n := entrySize + len(s.Name) + len(s.Command) + len(s.URL)
	for _, a := range s.Args {
		n += len(a)
	}
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for name, value := range m {
			n += len(name) + len(value)
		}
	}
	return n
}
