package domain

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"
)

// An Item is an entry of a transcript, folded from events: a message, a
// thought, or a tool call with its result.
type Item struct {
	ID       int64           `db:"id,auto"`
	Session  int64           `db:"session,fixed"`
	Turn     int64           `db:"turn,fixed"`
	Seq      int64           `db:"seq"`        // of the event that changed it last
	Kind     string          `db:"kind,fixed"` // ItemMessage, ...
	Key      string          `db:"key,fixed"`  // the agent's id, or one of ours
	Role     string          `db:"role,fixed"` // user or assistant
	Content  string          `db:"content"`
	Tool     string          `db:"tool"`
	Title    string          `db:"title"`
	ToolKind string          `db:"tool_kind"`
	Input    json.RawMessage `db:"input"`  // of a tool, as the agent sent it
	Status   string          `db:"status"` // of a tool call: pending, in_progress, completed, failed
	Result   string          `db:"result"`
	ParentID string          `db:"parent_id"`
	Data     ItemData        // of the type for Kind; nil: none, or unreadable
	Approval string          `db:"approval"` // the id of its last approval
	Created  time.Time       `db:"created,fixed"`
	Updated  time.Time       `db:"updated"`
}

// Kinds of items.
const (
	ItemMessage  = "message"
	ItemThinking = "thinking"
	ItemTool     = "tool_call"
	ItemSystem   = "system"   // a message of the hub
	ItemPlan     = "plan"     // one for each turn
	ItemFile     = "diff"     // a file that a turn changed
	ItemApproval = "approval" // an answered question
)

// A Hit is an item that a search found.
type Hit struct {
	Item
	Snippet string // with the match between « and »
	Rank    float64
}

// Events is the number of a transcript's events that the item is: a tool call with a result is
// two.
func (i Item) Events() int {
	if i.Kind == ItemTool && (i.Status == "completed" || i.Status == "failed" || i.Result != "") {
		return 2
	}
	return 1
}

// IsNote reports whether items of a kind are notes, which no agent or person said: a plan, a changed
// file, an answer. Some clients do not get notes.
func IsNote(kind string) bool { return kind == ItemPlan || kind == ItemFile || kind == ItemApproval }

// ItemData has the members of an item's kind: an immutable value of one of the types below.
type ItemData interface {
	// Size is the approximate length of its texts, in bytes.
	Size() int
	itemData()
}

// ToolDetails are the files, terminal and content of a tool call (ItemTool).
type ToolDetails struct {
	Paths    []string `json:"paths,omitempty"` // files
	Diffs    []Diff   `json:"diffs,omitempty"`
	Terminal string   `json:"terminal,omitempty"` // its terminal, or ""

	RefusedBy string          `json:"refused_by,omitempty"`  // as Approval.DecidedBy; "": unknown
	Refusal   string          `json:"refusal,omitempty"`     // the reason, for people
	Blocks    []Block         `json:"attachments,omitempty"` // its results that are not text
	Meta      json.RawMessage `json:"_meta,omitempty"`       // the agent's own, an object; nil: none
}

// MessageContent is a message's content in addition to its text (ItemMessage, ItemThinking).
type MessageContent struct {
	Blocks []Block         `json:"attachments,omitempty"`
	Meta   json.RawMessage `json:"_meta,omitempty"` // the agent's own, an object of at most catalog.MaxMeta bytes; nil: none
}

// Equal reports whether both are the same.
func (d ToolDetails) Equal(other ToolDetails) bool {
	return d.Terminal == other.Terminal && d.RefusedBy == other.RefusedBy && d.Refusal == other.Refusal && slices.Equal(
		d.Paths, other.Paths,
	) && slices.EqualFunc(d.Diffs, other.Diffs, Diff.Equal) &&
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

// FileNote is a file that a turn changed (ItemFile). The Change has its texts.
type FileNote struct {
	Path    string `json:"path"`
	Added   int    `json:"added"` // lines
	Removed int    `json:"removed"`
	Binary  bool   `json:"binary,omitempty"`
	Mode    string `json:"mode,omitempty"` // 100755 or 100644 if the executable bit was changed
}

// ApprovalNote is an answered question (ItemApproval).
type ApprovalNote struct {
	ApprovalID  string `json:"approval_id"`
	Type        string `json:"type"`     // FunctionCall or HumanContact
	Decision    string `json:"decision"` // as Approval.Status
	Title       string `json:"title"`
	Response    string `json:"response_text,omitempty"`
	DecidedBy   string `json:"decided_by,omitempty"`       // if not the user
	DecidedIn   string `json:"decided_in,omitempty"`       // as ApprovalResolved.DecidedIn
	Edited      bool   `json:"input_was_edited,omitempty"` // the input
	Explanation string `json:"explanation,omitempty"`      // as Approval.Explanation
	Delivery    string `json:"delivery,omitempty"`         // the way of the answer, if the agent was not seen to act on it
}

func (ToolDetails) itemData()    {}
func (MessageContent) itemData() {}
func (Plan) itemData()           {}
func (FileNote) itemData()       {}
func (ApprovalNote) itemData()   {}

// A Block is a piece of content that is not text: of a prompt, a message or a tool result. Its
// bytes are kept under the id Attachment.
type Block struct {
	Type        string          `json:"type"`                // BlockImage, ...
	MIMEType    string          `json:"mime_type,omitempty"` // or ""
	Name        string          `json:"name,omitempty"`      // such as a file's, or ""
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	URI         string          `json:"uri,omitempty"`
	Attachment  string          `json:"attachment_id,omitempty"` // the ID of its bytes; "" of a link
	Size        int64           `json:"size,omitempty"`          // in bytes; of a link as reported, or 0
	Binary      bool            `json:"binary,omitempty"`        // a resource that came as bytes, not as text
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// Types of blocks, as the Agent Client Protocol calls them.
const (
	BlockImage        = "image"
	BlockAudio        = "audio"
	BlockResource     = "resource"      // the text or bytes of a file
	BlockResourceLink = "resource_link" // the address of a resource
)

// Content is a block with its bytes. A link has none.
type Content struct {
	Block
	Data []byte
}

// An Attachment is the bytes of blocks, kept once.
type Attachment struct {
	ID       string `db:"id"`   // the SHA-256 of Data, in hexadecimal
	MIMEType string `db:"mime"` // as first reported, or ""
	Data     []byte `db:"data"`
}

// AttachmentID returns the ID of bytes.
func AttachmentID(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Attached returns the bytes of a block as an attachment.
func (c Content) Attached() Attachment {
	return Attachment{ID: c.Attachment, MIMEType: c.MIMEType, Data: c.Data}
}

// AttachmentInfo is an attachment without its bytes.
type AttachmentInfo struct {
	ID       string `db:"id"`
	MIMEType string `db:"mime"`
	Size     int64  `db:"size,read"` // in bytes
}

// same reports whether two blocks are the same.
func (b Block) same(other Block) bool {
	return bytes.Equal(b.Annotations, other.Annotations) && bytes.Equal(
		b.Meta, other.Meta,
	) && b.MIMEType == other.MIMEType && b.Type == other.Type && b.Name == other.Name && b.Title == other.Title &&
		b.Description == other.Description && b.URI == other.URI && b.Attachment == other.Attachment && b.Size == other.Size && b.Binary == other.Binary
}

// BlocksOf returns blocks without their bytes; nil for nil.
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

// SizeOfBlocks is the approximate length of the blocks' texts, in bytes.
func SizeOfBlocks(blocks []Block) (n int) {
	for _, b := range blocks {
		n += fieldsSize + len(b.MIMEType) + len(b.Name) + len(b.Title) + len(b.Description) + len(b.URI) + len(b.Annotations) + len(b.Meta)
	}
	return n
}

// fieldsSize is the approximate length of a payload's short fields: ids, names, states.
const fieldsSize = 256

func (p TurnStateChanged) Size() int {
	n := fieldsSize + len(p.Title) + len(p.Error)
	for _, m := range p.SignIn {
		n += 64 + len(m.ID) + len(m.Name) + len(m.Description)
	}
	return n
}

func (d MessageDelta) Size() int { return len(d.Key) + len(d.Text) + len(d.Meta) }

func (p MessageAdded) Size() int {
	return fieldsSize + len(p.Text) + SizeOfBlocks(p.Blocks) + len(p.Meta)
}

func (p ToolCallChanged) Size() int {
	details := 0
	if p.Details != nil {
		details = p.Details.Size()
	}
	return fieldsSize + len(p.Title) + len(p.Input) + details + len(p.Result)
}

func (p ApprovalRequested) Size() int {
	return fieldsSize + len(p.Input) + len(p.Ambiguity) + len(p.Title) + len(p.Subject) + sizeOfOptions(p.Options) + SizeOfDiffs(p.Diffs) + len(p.Elicitation.Schema) + len(p.Elicitation.URL)
}

func (p ApprovalResolved) Size() int {
	return fieldsSize + len(p.Response) + len(p.Comment) + len(p.Title)
}

func (p NativeSessionChanged) Size() int { return fieldsSize }

func (p AgentModeChanged) Size() int { return fieldsSize + sizeOf(p.Choices) }

func (p PlanChanged) Size() int {
	return fieldsSize + Plan(p).Size()
}

func (p UsageReported) Size() int { return fieldsSize + len(p.Meta) }
func (p FileChanged) Size() int   { return fieldsSize + len(p.Diff) }

func (p ProgressReported) Size() int   { return fieldsSize + len(p.Report) }
func (p AgentErrorReported) Size() int { return fieldsSize + len(p.Report) }

func (p AgentUpdated) Size() int { return fieldsSize + len(p.Update) }
func (p AgentSilent) Size() int  { return fieldsSize + len(p.Note) + len(p.Tool) }

func (p TerminalPrinted) Size() int { return fieldsSize + len(p.Data) }
func (p TerminalExited) Size() int  { return fieldsSize }

func (p TerminalLagged) Size() int  { return fieldsSize }
func (p SecretRequested) Size() int { return fieldsSize }

func (p Lagged) Size() int     { return fieldsSize }
func (p LogDamaged) Size() int { return fieldsSize }

func (p SessionDeleted) Size() int { return fieldsSize + len(p.Turns)*entrySize }
func (p Erased) Size() int         { return 0 }

func (p Unreadable) Size() int { return fieldsSize }

// entrySize is the approximate length of the short fields of a list's entry.
const entrySize = 64

// SizeOfDiffs is the approximate length of the diffs' texts, in bytes.
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

func (d ToolDetails) Size() int {
	n := len(d.Terminal) + len(d.Refusal) + len(d.Meta) + SizeOfDiffs(d.Diffs) + SizeOfBlocks(d.Blocks)
	for _, p := range d.Paths {
		n += len(p) + 4
	}
	return n
}

func (c MessageContent) Size() int { return SizeOfBlocks(c.Blocks) + len(c.Meta) }

func (p Plan) Size() (n int) {
	for _, e := range p.Entries {
		n += entrySize + len(e.Content)
	}
	return n
}

func (n FileNote) Size() int { return fieldsSize + len(n.Path) }

func (n ApprovalNote) Size() int {
	return fieldsSize + len(n.Title) + len(n.Response) + len(n.Explanation) + len(n.Delivery)
}

// Size is the approximate length of its texts, in bytes.
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
