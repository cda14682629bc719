package catalog

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Event types of report_message, those of the executor catalog first. The hub stores events of
// other types unchanged.
const (
	EventContentDelta  = "content_block_delta" // ContentDelta
	EventThinkingChunk = "thinking_chunk"      // ContentDelta
	EventToolCall      = "tool_call"           // ToolCall
	EventToolResult    = "tool_result"         // ToolCall, with its result
	EventMessageStart  = "message_start"       // MessageMark
	EventMessageStop   = "message_stop"        // MessageMark
	EventUsage         = "usage"               // Usage
	EventError         = "error"               // ReportedError

	// Ours.
	EventToolUpdate    = "tool_update"    // ToolCall: only what changed
	EventPlan          = "plan"           // Plan
	EventMode          = "mode"           // Mode
	EventSession       = "session"        // Session
	EventFileChange    = "file_change"    // FileChange
	EventNativeSession = "native_session" // NativeSession
	EventProcess       = "process"        // Process
	EventSilence       = "agent_silent"   // Silence: it began, has a new note, or has ended
	EventContent       = "content"        // MessageContent
	EventRaw           = "raw"            // an update of an unknown kind, unchanged
	// ElicitationDone, if the agent reports it.
	EventElicitationDone = "elicitation_done"
	// PermissionTaken, before the event that shows it. If an executor omits it, any later report
	// counts as proof that the agent got the answers.
	EventPermissionTaken = "permission_taken"
	// An empty object, at the end of a turn that an agent ended after a denial.
	EventDenialEndedTurn = "denial_ended_turn"
	// A [UserMessage] that the agent accepted during its turn.
	EventUserMessage = "user_message"
	EventNotice      = "notice"     // Notice
	EventCompaction  = "compaction" // Compaction
)

// A Notice is an agent's message to the user outside of the transcript's text.
type Notice struct {
	Severity    string `json:"severity" doc:"info, warning, error, or another word of the agent."`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

// A Compaction is the state of an agent's attempt to shorten its context.
type Compaction struct {
	Status  string `json:"status" doc:"in_progress, completed, failed, cancelled, or another word of the agent."`
	Summary string `json:"summary,omitempty" doc:"What the agent keeps, for people."`
	Error   string `json:"error,omitempty"`
}

// UserMessage is a message of the user to a working agent.
type UserMessage struct {
	Text string `json:"text"`
}

// ContentDelta is a piece of a message or a thought.
type ContentDelta struct {
	MessageID string `json:"message_id,omitempty" doc:"The agent's id of the message. Pieces without one belong to the open message."`
	Delta     Delta  `json:"delta"`
	ParentID  string `json:"parent_id,omitempty" doc:"The tool call of the speaking sub-agent. Ours."`

	Meta json.RawMessage `json:"_meta,omitempty" doc:"The agent's _meta of this piece: an object, at most 8 KiB."`
}

// Delta is the text of a [ContentDelta].
type Delta struct {
	Text string `json:"text"`
}

// MessageMark begins or ends a message.
type MessageMark struct {
	MessageID string `json:"message_id,omitempty"`
}

// ToolCall is a tool call, or a change of one: an empty field means no change.
type ToolCall struct {
	ToolID   string          `json:"tool_id,omitempty" doc:"The agent's id of the call."`
	Tool     string          `json:"tool,omitempty" doc:"The tool's name."`
	Title    string          `json:"title,omitempty" doc:"What the call does, for people."`
	Kind     string          `json:"kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Status   string          `json:"status,omitempty" doc:"pending, in_progress, completed or failed."`
	Input    json.RawMessage `json:"input,omitempty"`
	Result   json.RawMessage `json:"result,omitempty" doc:"Usually a string."`
	Paths    []string        `json:"paths,omitempty"`
	Diffs    []domain.Diff   `json:"diffs,omitempty"`
	Terminal string          `json:"terminal,omitempty" doc:"The terminal in which it runs."`
	ParentID string          `json:"parent_id,omitempty"`

	Meta    json.RawMessage `json:"_meta,omitempty" doc:"The agent's _meta: an object, at most 8 KiB. Each member replaces the earlier one of that name; null removes it."`
	Content []ContentBlock  `json:"content,omitempty" doc:"All results that are not text. Replaces earlier content."`
}

// MaxMeta limits the _meta that is kept for a tool call or passed on with an update, in bytes.
const MaxMeta = 8 << 10

// Usage is the usage so far.
type Usage struct {
	TokenUsage
	ContextUsed int64   `json:"context_used,omitempty" doc:"Tokens in the context."`
	ContextSize int64   `json:"context_size,omitempty" doc:"Size of the context in tokens."`
	CostUSD     float64 `json:"cost_usd,omitempty"`

	Meta json.RawMessage `json:"_meta,omitempty" doc:"The agent's _meta of this update: an object, at most 8 KiB."`
}

// Bounded works like [TokenUsage.Bounded].
func (u Usage) Bounded() Usage {
	u.TokenUsage = u.TokenUsage.Bounded()
	u.ContextUsed, u.ContextSize = boundedTokens(u.ContextUsed), boundedTokens(u.ContextSize)
	if !(u.CostUSD >= 0 && u.CostUSD <= mostUSD) { // also NaN
		u.CostUSD = 0
	}
	return u
}

// Plan is the agent's plan, whole.
type Plan struct {
	Entries []domain.PlanEntry `json:"entries"`
}

// Mode is the agent's current mode and its available modes.
type Mode struct {
	Current   string   `json:"current"`
	Available []string `json:"available,omitempty"`

	Choices []domain.Choice `json:"choices,omitempty" doc:"The modes of available, with names."`
}

// Session is an agent's report about its session. An absent part has not changed.
type Session struct {
	Agent    *domain.AgentInfo     `json:"agent,omitempty"`
	Mode     *Selection            `json:"mode,omitempty" doc:"The current mode and all modes. Without choices: the agent has no modes."`
	Model    *Selection            `json:"model,omitempty" doc:"The current model and all models. Without choices: the agent does not list its models."`
	Options  []Option              `json:"options,omitzero" doc:"All options, in the agent's order, with those that choose its mode and model."`
	Commands []domain.AgentCommand `json:"commands,omitzero" doc:"All slash commands."`
	Info     *domain.SessionInfo   `json:"info,omitempty"`
	Takes    *domain.PromptTakes   `json:"takes,omitempty" doc:"What prompts may contain in addition to text and links."`

	Background []domain.BackgroundTask `json:"background,omitzero" doc:"All background work of the agent, reported while no prompt runs."`
	Ended      bool                    `json:"ended,omitempty" doc:"The agent has ended, and its background work was cut off."`
}

// A Selection is a set of choices and the current one.
type Selection struct {
	Current string          `json:"current,omitempty"`
	Choices []domain.Choice `json:"choices,omitempty"`
}

// An Option is a setting of an agent's session.
type Option struct {
	ID          string          `json:"id"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Category    string          `json:"category,omitempty" doc:"mode, model, thought_level, or another word."`
	Type        string          `json:"type,omitempty" doc:"select, boolean, or another word whose meaning is unknown."`
	Current     string          `json:"current,omitempty" doc:"boolean: true or false."`
	Choices     []domain.Choice `json:"choices,omitempty"`
	Extra       json.RawMessage `json:"extra,omitempty" doc:"The agent's other members: an object."`
}

// FileChange is a file that a turn changed, before the turn and now. Before and After are nil for a
// file that does not exist then.
type FileChange struct {
	Path   string  `json:"path" doc:"Absolute."`
	Before *string `json:"before,omitempty"`
	After  *string `json:"after,omitempty"`
	Binary bool    `json:"binary,omitempty" doc:"Not text, or too long to keep. before and after are absent."`
}

// NativeSession is the agent's own session for a task.
type NativeSession struct {
	SessionID string `json:"session_id"`
	Resumed   bool   `json:"resumed,omitempty" doc:"The session existed before."`
	Forked    bool   `json:"forked,omitempty" doc:"A fork of another session, with that session's whole history."`
	Primed    bool   `json:"primed,omitempty" doc:"The agent lost its session. A new one got the transcript."`
}

// ElicitationDone says that the user has finished at the address, as the agent reports.
type ElicitationDone struct {
	ApprovalID string `json:"approval_id"`
}

// PermissionTaken names answers on which the agent was seen to act. Writing an answer to the agent
// is not enough: the agent may die before it reads the answer.
type PermissionTaken struct {
	ApprovalIDs []string `json:"approval_ids" doc:"The approval_id values of request_permission results."`
}

// Starting is the first line of the note of a silence before the agent has its prompt.
const Starting = "it is starting, or opening its session"

// Silence says that an agent has given no sign of life for a while, although its turn does not wait
// for a person.
type Silence struct {
	SinceMS int64  `json:"since_ms" doc:"Time of the last sign of life, in milliseconds since 1970."`
	Note    string `json:"note,omitempty" doc:"The agent's error output since then, at most a few lines."`
	ToolID  string `json:"tool_id,omitempty" doc:"The tool call in progress. The silence is then often normal."`
	Tool    string `json:"tool,omitempty" doc:"What that tool call does, for people."`
	Ended   bool   `json:"ended,omitempty" doc:"The agent works again, or the prompt has ended."`

	LastedMS int64 `json:"lasted_ms,omitempty" doc:"With ended: how long the silence lasted, in milliseconds. Setting the clock does not change it. Absent: until now, by the clock."`
}

// Process is an agent's process group, so that the hub can end it without the executor.
type Process struct {
	PID  int    `json:"pid"`
	Mark string `json:"mark" doc:"The value of DUET_AGENT_MARK in its environment. It identifies the process later."`
}

// ReplayedPart is a part of a session that an agent replays: a report of an event, or the user's
// text if Role is user.
type ReplayedPart struct {
	EventType string
	EventData json.RawMessage

	Role    string
	Text    string
	Content []ContentBlock // in addition to Text
}

// A ContentBlock is a content block of the Agent Client Protocol. Ours, an addition to the executor
// catalog.
type ContentBlock struct {
	Type        string    `json:"type" doc:"text, image, audio, resource or resource_link."`
	Text        string    `json:"text,omitempty" doc:"text: the text."`
	MIMEType    string    `json:"mimeType,omitempty" doc:"Such as image/png. Required for image and audio."`
	Data        string    `json:"data,omitempty" doc:"image and audio: the bytes in base64."`
	URI         string    `json:"uri,omitempty" doc:"resource_link: the address. image: its origin."`
	Name        string    `json:"name,omitempty" doc:"resource_link: the name."`
	Title       string    `json:"title,omitempty"`
	Description string    `json:"description,omitempty"`
	Size        int64     `json:"size,omitempty" doc:"resource_link: the size in bytes."`
	Resource    *Resource `json:"resource,omitempty" doc:"resource: its contents."`

	Annotations json.RawMessage `json:"annotations,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// A Resource is the contents of a file or a similar resource.
type Resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty" doc:"The text. Either this or blob."`
	Blob     string  `json:"blob,omitempty" doc:"The bytes in base64."`
}

// MessageContent is a part of an agent's message or thought that is not text. It is separate from
// the messages.
type MessageContent struct {
	Content  ContentBlock `json:"content"`
	ParentID string       `json:"parent_id,omitempty" doc:"The tool call of the speaking sub-agent. Ours."`
	Thought  bool         `json:"thought,omitempty" doc:"The content is part of a thought. Ours."`
}

// Encodings of a terminal's bytes in a message: UTF-8, or base64 (RFC 4648) if they are not UTF-8.
const (
	EncodingUTF8   = "utf-8"
	EncodingBase64 = "base64"
)

// EncodeBytes returns bytes as text for a message, and its encoding.
func EncodeBytes(b []byte) (data, encoding string) {
	if utf8.Valid(b) {
		return string(b), EncodingUTF8
	}
	return base64.StdEncoding.EncodeToString(b), EncodingBase64
}

// DecodeBytes is the inverse of [EncodeBytes]; an empty encoding is utf-8. If data does not fit its
// encoding, it returns an error and the bytes before it. For an unknown encoding it returns an
// error and data unchanged.
func DecodeBytes(data, encoding string) ([]byte, error) {
	switch encoding {
	case "", EncodingUTF8:
		return []byte(data), nil
	case EncodingBase64:
		return base64.StdEncoding.DecodeString(data)
	}
	return []byte(data), fmt.Errorf("there is no encoding %q", encoding)
}

// RunCommandParams are a configured command to run to its end. Ours, only from the hub to its own
// executor.
type RunCommandParams struct {
	CommandID string            `json:"command_id" doc:"The caller's id of this command. It must be new."`
	Command   []string          `json:"command" doc:"The program and its arguments."`
	CWD       string            `json:"cwd" doc:"The working directory."`
	Env       map[string]string `json:"env,omitempty" doc:"Variables in addition to those that every child gets."`
	Mark      string            `json:"mark" doc:"The value of DUET_AGENT_MARK in its environment, which the hub has recorded before."`
	Sandbox   *Sandbox          `json:"sandbox,omitempty" doc:"The sandbox of the command. Absent: none."`
}

// RunCommandResult is the outcome of a command. Its process group is gone then, and its output has
// been reported.
type RunCommandResult struct {
	ExitCode   int    `json:"exit_code" doc:"128 plus the signal's number, if a signal ended it."`
	Signal     string `json:"signal,omitempty" doc:"The signal that ended it, such as SIGTERM."`
	StartError string `json:"start_error,omitempty" doc:"Why the command did not start."`
}

// StopCommandParams name a command to stop: SIGINT, SIGTERM and SIGKILL to its process group, at
// intervals. Ours.
type StopCommandParams struct {
	CommandID string `json:"command_id"`
}

// StopCommandResult reports whether the command is being stopped. The result of run_command reports
// its end.
type StopCommandResult struct {
	Stopped bool `json:"stopped"`
}

// CommandStartedParams report that a command runs. Ours.
type CommandStartedParams struct {
	CommandID string `json:"command_id"`
	PID       int    `json:"pid" doc:"Process id of the leader of its process group."`
}

// CommandOutputParams report output of a command, stdout or stderr. Ours.
type CommandOutputParams struct {
	CommandID string `json:"command_id"`
	Data      string `json:"data"`
	Encoding  string `json:"encoding,omitempty" doc:"utf-8 (the default) or base64."`
}
