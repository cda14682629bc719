package protocol

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/server"
)

type ConversationParams struct {
	SessionID       string `json:"session_id,omitempty" doc:"The session, by any id of the run. This or claude_session_id is required."`
	ClaudeSessionID string `json:"claude_session_id,omitempty" doc:"The agent's id of its session."`
	Offset          uint   `json:"offset,omitempty" doc:"Number of events to skip."`
	Limit           *uint  `json:"limit,omitempty" doc:"Maximum number of events. Absent or 0: as many as fit, at most 10,000."`
}

func (p ConversationParams) Check() error {
	if p.ClaudeSessionID != "" {
		return nil
	}
	return NotEmpty("session_id", p.SessionID)
}

type ConversationResult struct {
	Events     []*ConversationEvent `json:"events"`
	Total      int                  `json:"total" doc:"Total number of events."`
	NextOffset *int                 `json:"next_offset,omitempty" doc:"Present if there are more: pass it as offset."`
}

// A ConversationEvent is an event of a conversation: HumanLayer's members and ours.
type ConversationEvent struct {
	ID              int64     `json:"id"`
	SessionID       string    `json:"session_id" doc:"The session in which the event happened."`
	ClaudeSessionID string    `json:"claude_session_id"`
	Sequence        int       `json:"sequence" doc:"Position in the whole conversation, from 1."`
	EventType       string    `json:"event_type" doc:"message, thinking, tool_call, tool_result or system. With LSP framing also plan, diff (a file that the session changed) and approval (a user's answer)."`
	CreatedAt       time.Time `json:"created_at"`
	Role            string    `json:"role,omitempty" doc:"user or assistant."`
	Content         string    `json:"content,omitempty"`

	ToolID            string `json:"tool_id,omitempty"`
	ToolName          string `json:"tool_name,omitempty"`
	ToolInputJSON     string `json:"tool_input_json,omitempty" doc:"The input, as a string that contains JSON."`
	ParentToolUseID   string `json:"parent_tool_use_id,omitempty"`
	ToolResultForID   string `json:"tool_result_for_id,omitempty"`
	ToolResultContent string `json:"tool_result_content,omitempty"`
	IsCompleted       bool   `json:"is_completed" doc:"Tool call: it has ended. Other events: the text is complete."`
	ApprovalStatus    string `json:"approval_status,omitempty" doc:"pending, approved, denied, responded, expired or cancelled."`
	ApprovalID        string `json:"approval_id,omitempty"`
	RefusedBy         string `json:"refused_by,omitempty" doc:"Tool call and its result: what refused the call, as decided_by of an approval. Absent if the call failed for another reason."`
	Refusal           string `json:"refusal,omitempty" doc:"The reason, for people."`

	SessionState string `json:"session_state,omitempty" doc:"Only if the session did not end well: interrupted, failed, timed_out or cancelled."`

	Seq      int64           `json:"seq,omitempty" doc:"Number of the log event that changed it last."`
	Key      string          `json:"key,omitempty" doc:"The message_id in message_delta and thinking_delta."`
	Title    string          `json:"title,omitempty" doc:"Tool call: what it does, for people."`
	ToolKind string          `json:"tool_kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Status   string          `json:"status,omitempty" doc:"Tool call: pending, in_progress, completed or failed. Message: cancelled if it was withdrawn before the agent got it; the agent never gets it."`
	Data     json.RawMessage `json:"data,omitempty" doc:"Tool call: paths, diffs, terminal, attachments, _meta. Message or thought: attachments, _meta (the agent's own, at most 8 KiB). Plan: entries. Diff: path, added, removed, binary. Approval: approval_id, type, decision, title, response_text, input_was_edited, decided_by, decided_in (the client in which the user decided), explanation."`
}

func (e *ConversationEvent) Texts() []*string {
	return []*string{&e.Content, &e.ToolInputJSON, &e.ToolResultContent, &e.Refusal}
}

type SearchParams struct {
	Query  string `json:"query" doc:"Words to find: at most 64, and duplicates count once."`
	Limit  *uint  `json:"limit,omitempty" doc:"Default 20, at most 200."`
	Offset uint   `json:"offset,omitempty" doc:"Number of hits to skip."`
}

func (p SearchParams) Check() error { return NotEmpty("query", p.Query) }

type SearchResult struct {
	Hits       []*SearchHit `json:"hits"`
	NextOffset *int         `json:"next_offset,omitempty" doc:"Present if there may be more: pass it as offset."`
}

type SearchHit struct {
	Turn      string    `json:"turn" doc:"Such as 12.3."`
	Session   int64     `json:"session" doc:"The session's number in the project."`
	SessionID string    `json:"session_id"`
	RunID     string    `json:"run_id"`
	ThreadID  string    `json:"thread_id"`
	Title     string    `json:"title" doc:"The session's title."`
	Agent     string    `json:"agent"`
	EventID   int64     `json:"event_id" doc:"The event's id in getConversation, which has plans, diffs and approvals only with LSP framing."`
	EventType string    `json:"event_type"`
	Role      string    `json:"role,omitempty"`
	ToolName  string    `json:"tool_name,omitempty"`
	Snippet   string    `json:"snippet" doc:"At most 400 characters of the text around the match, which is marked by « and »; … is text left out."`
	Rank      float64   `json:"rank" doc:"Lower is better."`
	CreatedAt time.Time `json:"created_at"`
}

func (s *SearchHit) Texts() []*string { return []*string{&s.Snippet, &s.Title} }

type SnapshotsResult struct {
	Snapshots []*Snapshot `json:"snapshots"`
	Diff      string      `json:"diff" doc:"All changes as one unified diff, relative to the session's directory."`
	// NotRecorded tells an empty list that is certain from one that may lack what commands changed.
	NotRecorded bool `json:"not_recorded,omitempty" doc:"true: the list is empty, and there is no checkpoint of before the session, or no longer. Changes of the agent's commands may be missing."`
}

// A Snapshot is a file that a session changed.
type Snapshot struct {
	SessionID string    `json:"session_id"`
	ToolID    string    `json:"tool_id" doc:"Always empty: a snapshot covers the whole session, not one tool call."`
	FilePath  string    `json:"file_path"`
	Renamed   string    `json:"renamed_from,omitempty" doc:"The path of a file that the session has deleted and whose text this new one has, in whole or for the most part. It has a snapshot of its own."`
	Content   string    `json:"content" doc:"The file before the session. Empty if it did not exist."`
	Before    *string   `json:"before" doc:"The file before the session. null if it did not exist, or is binary."`
	After     *string   `json:"after" doc:"The file after the session. null if it no longer exists, or is binary."`
	Binary    bool      `json:"binary"`
	Diff      string    `json:"diff" doc:"The change as a unified diff."`
	Hunks     []Hunk    `json:"hunks" doc:"The hunks of diff, in order, for session.decideChange. Empty if the file is binary or empty, or if they do not fit into the result."`
	Mode      *FileMode `json:"mode,omitempty" doc:"The change of the file's executable bit. A decision about the whole file includes it. Absent if there is none."`
	State     string    `json:"state" doc:"The decision about the whole file: open, accepted or reverted. open also if its hunks differ."`
	CreatedAt time.Time `json:"created_at"`
}

// A Hunk is one change of a file, with the lines around it.
type Hunk struct {
	ID       string `json:"id" doc:"Stable while the change exists."`
	OldStart int    `json:"old_start" doc:"As in the hunk's header in diff; 0 if there are no lines."`
	OldLines int    `json:"old_lines"`
	NewStart int    `json:"new_start" doc:"Line in the file as the session left it, without regard to reverted hunks."`
	NewLines int    `json:"new_lines"`
	Added    int    `json:"added" doc:"Number of added lines."`
	Removed  int    `json:"removed"`
	State    string `json:"state" doc:"open, accepted or reverted."`
}

// FileMode is a change of a file's executable bit.
type FileMode struct {
	ID    string `json:"id" doc:"For session.decideChange, as that of a hunk."`
	Old   string `json:"old" doc:"The mode before the session, as git has it: 100644 or 100755."`
	New   string `json:"new"`
	State string `json:"state" doc:"open, accepted or reverted."`
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
	SessionID string         `json:"session_id" doc:"The session that made the change, by any id of the run."`
	Path      string         `json:"path" doc:"A file_path from getSessionSnapshots. A relative path is relative to the session's directory."`
	Hunk      string         `json:"hunk,omitempty" doc:"The id of one hunk, or of the change of the mode. Absent: the whole file, all or nothing."`
	Decision  ChangeDecision `json:"decision" doc:"accept: the user has seen the change and keeps it. revert: undo the change on the disk; this deletes a file that the session created, and restores one that it deleted. reopen: withdraw the decision; a reverted change is applied again."`
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
	Path  string    `json:"path"`
	State string    `json:"state" doc:"The state of the whole file, as in getSessionSnapshots."`
	Hunks []Hunk    `json:"hunks" doc:"All hunks of the file, in their current state."`
	Mode  *FileMode `json:"mode,omitempty" doc:"As in getSessionSnapshots."`
}

type RewindParams struct {
	SessionID string `json:"session_id" doc:"The session before which the files are to be as they were, by any id of the run."`
	All       bool   `json:"all,omitempty" doc:"Also restore the files that others have changed since."`
	Preview   bool   `json:"preview,omitempty" doc:"Change nothing, only return what would change."`
	Undo      bool   `json:"undo,omitempty" doc:"Undo the last rewind to before this session that is not undone: its files become as they were before it. Files that were edited after it are left alone; the same call tries them again once. Without all and preview."`
}

func (p RewindParams) Check() error {
	if p.Undo && (p.All || p.Preview) {
		return server.InvalidParam(server.ParamError{Param: "undo", Expected: "no other than session_id with undo", Received: "all or preview"})
	}
	return NotEmpty("session_id", p.SessionID)
}

type RewindResult struct {
	Checkpoint      bool          `json:"checkpoint" doc:"false: the files before the session are not recorded, or no longer, so no file is restored. Checkpoints need git, and can be disabled in the configuration."`
	Files           []RewindFile  `json:"files" doc:"The files that differ from those before the session, by path."`
	More            int           `json:"more" doc:"How many more files there are, which do not fit into the result."`
	NotRecorded     []NotRecorded `json:"not_recorded,omitempty" doc:"Files that are not recorded, and so stay as they are."`
	MoreNotRecorded int           `json:"more_not_recorded,omitempty" doc:"How many more of them there are."`
	ForkTurn        string        `json:"fork_turn,omitempty" doc:"The turn before, such as 12.2: session.fork continues the session from there. Absent: the session begins with this turn."`
	ForkFrom        string        `json:"fork_from,omitempty" doc:"The session before: continueSession with fork continues the conversation from there. Absent: the conversation begins with this session."`
	Prompt          string        `json:"prompt" doc:"The prompt of the session."`
}

func (r *RewindResult) Texts() []*string { return []*string{&r.Prompt} }

// NotRecorded is a file that checkpoints do not have.
type NotRecorded struct {
	Path   string `json:"path" doc:"Empty for untracked."`
	Reason string `json:"reason" doc:"too-large (over 10 MB), special (a socket, named pipe or device), nested-repository, unreadable, reserved (a name of git), untracked (all files that git does not track, because there are too many), or changed (while files were first recorded)."`
}

// A RewindFile is a file that session.rewind restores or leaves.
type RewindFile struct {
	Path    string `json:"path"`
	Change  string `json:"change" doc:"What happens to the file: added (it is there again), deleted, modified, mode (only its executable bit) or type (a link becomes a file, or the reverse)."`
	Added   int    `json:"added" doc:"Number of lines that come back."`
	Removed int    `json:"removed" doc:"Number of lines that go."`
	Left    string `json:"left,omitempty" doc:"The file stays as it is, because: edited (it was edited after the conversation's last change of it), other (the conversation has not changed it) or busy (see detail). With all, edited and other are restored."`
	Detail  string `json:"detail,omitempty" doc:"Why a file could not be restored."`
}

type AttachmentParams struct {
	ID     string `json:"id" doc:"The attachment_id."`
	Offset uint   `json:"offset,omitempty" doc:"Number of bytes to skip."`
	Limit  *uint  `json:"limit,omitempty" doc:"Maximum number of bytes. Absent or 0: as many as fit."`
}

func (p AttachmentParams) Check() error { return NotEmpty("id", p.ID) }

type AttachmentResult struct {
	ID         string `json:"id"`
	MIMEType   string `json:"mime_type,omitempty" doc:"As first reported. Absent: unknown."`
	Size       int64  `json:"size" doc:"Total size in bytes."`
	Data       string `json:"data" doc:"Base64."`
	NextOffset *int64 `json:"next_offset,omitempty" doc:"Present if there is more: pass it as offset."`
}

// PromptContent is the content of a prompt in addition to its text.
type PromptContent struct {
	Content []catalog.ContentBlock `json:"content,omitempty" doc:"Content blocks of the Agent Client Protocol: images, audio, resources and resource links. Text blocks are appended to the prompt. Limits: 10 MiB for each image, audio or resource, 20 MiB in total. If the agent does not accept images or audio, the session fails and lists what it accepts; a resource becomes a link."`
}
