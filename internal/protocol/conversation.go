package protocol

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

type ConversationParams struct {
	SessionID       string `json:"session_id,omitempty" doc:"The session; every id of the run will do. This or claude_session_id is needed."`
	ClaudeSessionID string `json:"claude_session_id,omitempty" doc:"The agent's own id of the conversation."`
	Offset          uint   `json:"offset,omitempty" doc:"How many events to leave out at the beginning."`
	Limit           *uint  `json:"limit,omitempty" doc:"How many events; absent or 0: all that fit, 10,000 at most."`
}

func (p ConversationParams) Check() error {
	if p.ClaudeSessionID != "" {
		return nil
	}
	return NotEmpty("session_id", p.SessionID)
}

type ConversationResult struct {
	Events     []*ConversationEvent `json:"events"`
	Total      int                  `json:"total" doc:"How many events there are."`
	NextOffset *int                 `json:"next_offset,omitempty" doc:"There are more: pass this as offset."`
}

// A ConversationEvent is one of HumanLayer's, and ours.
type ConversationEvent struct {
	ID              int64     `json:"id"`
	SessionID       string    `json:"session_id" doc:"Of the session in which it happened."`
	ClaudeSessionID string    `json:"claude_session_id"`
	Sequence        int       `json:"sequence" doc:"From 1, over the whole conversation."`
	EventType       string    `json:"event_type" doc:"message, thinking, tool_call, tool_result or system; with LSP framing also plan, diff for a file that the session has changed, and approval for what a human has answered."`
	CreatedAt       time.Time `json:"created_at"`
	Role            string    `json:"role,omitempty" doc:"user or assistant."`
	Content         string    `json:"content,omitempty"`

	ToolID            string `json:"tool_id,omitempty"`
	ToolName          string `json:"tool_name,omitempty"`
	ToolInputJSON     string `json:"tool_input_json,omitempty" doc:"The input, as a string that holds JSON."`
	ParentToolUseID   string `json:"parent_tool_use_id,omitempty"`
	ToolResultForID   string `json:"tool_result_for_id,omitempty"`
	ToolResultContent string `json:"tool_result_content,omitempty"`
	IsCompleted       bool   `json:"is_completed" doc:"Of a tool call: it has ended. Of anything else: it is whole."`
	ApprovalStatus    string `json:"approval_status,omitempty" doc:"pending, approved, denied, responded, expired or cancelled."`
	ApprovalID        string `json:"approval_id,omitempty"`
	RefusedBy         string `json:"refused_by,omitempty" doc:"Of a tool call and its result: who did not let it run, as an approval's decided_by. One that failed otherwise has none."`
	Refusal           string `json:"refusal,omitempty" doc:"Why, in words."`

	Seq      int64           `json:"seq,omitempty" doc:"Of the event in the log that changed it last."`
	Key      string          `json:"key,omitempty" doc:"By which message_delta and thinking_delta name it."`
	Title    string          `json:"title,omitempty" doc:"Of a tool call: what it does, in words."`
	ToolKind string          `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Status   string          `json:"status,omitempty" doc:"Of a tool call: pending, in_progress, completed or failed. Of a message: cancelled, if it was taken back before the agent was given it; the agent is not told of it later."`
	Data     json.RawMessage `json:"data,omitempty" doc:"Of a tool call: paths, diffs, terminal, attachments, _meta. Of a message or a thought: attachments, _meta: the agent's own, at most 8 KiB. Of a plan: entries. Of a diff: path, added, removed, binary. Of an approval: approval_id, type, decision, title, response_text, input_was_edited, decided_by, explanation."`
}

func (e *ConversationEvent) Texts() []*string {
	return []*string{&e.Content, &e.ToolInputJSON, &e.ToolResultContent, &e.Refusal}
}

type SearchParams struct {
	Query  string `json:"query" doc:"The words: 64 at most, each counted once."`
	Limit  *uint  `json:"limit,omitempty" doc:"How many; 20 unless told, 200 at most."`
	Offset uint   `json:"offset,omitempty" doc:"How many to leave out at the beginning."`
}

func (p SearchParams) Check() error { return NotEmpty("query", p.Query) }

type SearchResult struct {
	Hits       []*SearchHit `json:"hits"`
	NextOffset *int         `json:"next_offset,omitempty" doc:"There may be more: pass this as offset."`
}

type SearchHit struct {
	SessionID string    `json:"session_id"`
	RunID     string    `json:"run_id"`
	ThreadID  string    `json:"thread_id"`
	Title     string    `json:"title" doc:"Of the session."`
	Agent     string    `json:"agent"`
	EventID   int64     `json:"event_id" doc:"The id of the event in getConversation, which has plans, diffs and approvals with LSP framing only."`
	EventType string    `json:"event_type"`
	Role      string    `json:"role,omitempty"`
	ToolName  string    `json:"tool_name,omitempty"`
	Snippet   string    `json:"snippet" doc:"What was found, marked by « and »."`
	Rank      float64   `json:"rank" doc:"Lower is better."`
	CreatedAt time.Time `json:"created_at"`
}

func (s *SearchHit) Texts() []*string { return []*string{&s.Snippet, &s.Title} }

type SnapshotsResult struct {
	Snapshots []*Snapshot `json:"snapshots"`
	Diff      string      `json:"diff" doc:"All changes as one unified diff, to be applied in the session's directory."`
}

// A Snapshot is a file that a session changed.
type Snapshot struct {
	SessionID string    `json:"session_id"`
	ToolID    string    `json:"tool_id" doc:"Always empty: what counts is what the session made of the file."`
	FilePath  string    `json:"file_path"`
	Content   string    `json:"content" doc:"The file before the session; empty if there was none."`
	Before    *string   `json:"before" doc:"The file before the session; null if there was none, or it is binary."`
	After     *string   `json:"after" doc:"The file as it was left; null if it is gone, or binary."`
	Binary    bool      `json:"binary"`
	Diff      string    `json:"diff" doc:"The change as a unified diff."`
	Hunks     []Hunk    `json:"hunks" doc:"The hunks of diff, in order; session.decideChange decides about each. None where it is binary, an empty file, or too much to be told."`
	State     string    `json:"state" doc:"open, accepted or reverted: what was decided about all of it; open, too, where its hunks differ."`
	CreatedAt time.Time `json:"created_at"`
}

// A Hunk is one change of a file, with the lines around it.
type Hunk struct {
	ID       string `json:"id" doc:"The same as long as the change is."`
	OldStart int    `json:"old_start" doc:"As in its head in diff: of no lines 0."`
	OldLines int    `json:"old_lines"`
	NewStart int    `json:"new_start" doc:"In the file as the session left it; what was reverted is not reckoned in."`
	NewLines int    `json:"new_lines"`
	Added    int    `json:"added" doc:"How many lines."`
	Removed  int    `json:"removed"`
	State    string `json:"state" doc:"open, accepted or reverted."`
}

func (s *Snapshot) Texts() []*string {
	list := []*string{&s.Content, &s.Diff}
	for _, text := range []*string{s.Before, s.After} {
		if text != nil {
			list = append(list, text)
		}
	}
	return list
}

type DecideChangeParams struct {
	SessionID string         `json:"session_id" doc:"The session that has made the change; every id of the run will do."`
	Path      string         `json:"path" doc:"A file_path of getSessionSnapshots; one that is relative is so to the session's directory."`
	Hunk      string         `json:"hunk,omitempty" doc:"The id of one hunk; absent: all of the file, all or nothing."`
	Decision  ChangeDecision `json:"decision" doc:"accept: it was seen, and stays. revert: it is taken back in the file on the disk; a file that the session made is deleted, one that it deleted is there again. reopen: nothing is decided any more; what was reverted is in the file again."`
}

func (p DecideChangeParams) Check() error {
	return cmp.Or(NotEmpty("session_id", p.SessionID), NotEmpty("path", p.Path))
}

// A ChangeDecision is a person's decision about a change.
type ChangeDecision string

// Accepted implements schema.Enum.
func (ChangeDecision) Accepted() []string {
	return []string{"accept", "revert", "reopen"}
}

type DecideChangeResult struct {
	Path  string `json:"path"`
	State string `json:"state" doc:"Of all of the file, as of getSessionSnapshots."`
	Hunks []Hunk `json:"hunks" doc:"All of the file, as they are now."`
}

type AttachmentParams struct {
	ID     string `json:"id" doc:"The attachment_id."`
	Offset uint   `json:"offset,omitempty" doc:"How many bytes to leave out at the beginning."`
	Limit  *uint  `json:"limit,omitempty" doc:"How many bytes; absent or 0: all that fit."`
}

func (p AttachmentParams) Check() error { return NotEmpty("id", p.ID) }

type AttachmentResult struct {
	ID         string `json:"id"`
	MIMEType   string `json:"mime_type,omitempty" doc:"As it was said first; absent: nobody said."`
	Size       int64  `json:"size" doc:"Of all of it, in bytes."`
	Data       string `json:"data" doc:"In base64."`
	NextOffset *int64 `json:"next_offset,omitempty" doc:"There is more: pass this as offset."`
}

// PromptContent is the content of a prompt beside its text.
type PromptContent struct {
	Content []catalog.ContentBlock `json:"content,omitempty" doc:"What goes with it, as the content blocks of the Agent Client Protocol: images, audio, resources and links to some. Texts are added to it. Images, audio and resources have at most 10 MiB each, all together 20 MiB. A session whose agent does not take them fails, and says what the agent takes; a resource becomes a link instead."`
}
