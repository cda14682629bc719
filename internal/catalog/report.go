package catalog

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Event types of report_message. Those of the executor catalog come first; an event of a
// type that is not listed is kept as it came.
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
	EventSilence       = "agent_silent"   // Silence: it began, goes on with new words, or has ended
	EventContent       = "content"        // MessageContent
	EventRaw           = "raw"            // whatever an agent sent that nobody knows
	// ElicitationDone, when the agent says so.
	EventElicitationDone = "elicitation_done"
	// PermissionTaken, before what shows it. An executor that leaves it out is
	// taken to have passed answers on when it reports anything later.
	EventPermissionTaken = "permission_taken"
	// An empty object, at the end of a turn that an agent ended because it was
	// denied permission.
	EventDenialEndedTurn = "denial_ended_turn"
	// A [UserMessage] that the agent has taken in the middle of its turn.
	EventUserMessage = "user_message"
	EventNotice      = "notice"     // Notice
	EventCompaction  = "compaction" // Compaction
)

// A Notice is what an agent tells the user beside its messages.
type Notice struct {
	Severity    string `json:"severity" doc:"info, warning, error, or another word of the agent's."`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

// A Compaction is what becomes of an attempt of an agent's to make its context shorter.
type Compaction struct {
	Status  string `json:"status" doc:"in_progress, completed, failed, cancelled, or another word of the agent's."`
	Summary string `json:"summary,omitempty" doc:"What the agent keeps, for people."`
	Error   string `json:"error,omitempty"`
}

// UserMessage is what a user says while an agent works.
type UserMessage struct {
	Text string `json:"text"`
}

// ContentDelta is a piece of a message or a thought.
type ContentDelta struct {
	MessageID string `json:"message_id,omitempty" doc:"The agent's own id of the message. Pieces without one belong to the message that is open."`
	Delta     Delta  `json:"delta"`
	ParentID  string `json:"parent_id,omitempty" doc:"The tool call of the sub-agent that says it. Ours."`

	Meta json.RawMessage `json:"_meta,omitempty" doc:"The agent's own _meta of this piece, an object, up to 8 KiB."`
}

// Delta is the text of a [ContentDelta].
type Delta struct {
	Text string `json:"text"`
}

// MessageMark begins or ends a message.
type MessageMark struct {
	MessageID string `json:"message_id,omitempty"`
}

// ToolCall is a tool that an agent runs, or what changed of one: an empty
// field means no change.
type ToolCall struct {
	ToolID   string          `json:"tool_id,omitempty" doc:"The agent's own id of the call."`
	Tool     string          `json:"tool,omitempty" doc:"The tool's name."`
	Title    string          `json:"title,omitempty" doc:"What it does, in words."`
	Kind     string          `json:"kind,omitempty" doc:"read, edit, delete, move, search, execute, think, fetch or other."`
	Status   string          `json:"status,omitempty" doc:"pending, in_progress, completed or failed."`
	Input    json.RawMessage `json:"input,omitempty"`
	Result   json.RawMessage `json:"result,omitempty" doc:"Mostly a string."`
	Paths    []string        `json:"paths,omitempty"`
	Diffs    []domain.Diff   `json:"diffs,omitempty"`
	Terminal string          `json:"terminal,omitempty" doc:"The terminal in which it runs."`
	ParentID string          `json:"parent_id,omitempty"`

	Meta    json.RawMessage `json:"_meta,omitempty" doc:"The agent's own _meta, an object, up to 8 KiB. Each member replaces the one of that name; null removes it."`
	Content []ContentBlock  `json:"content,omitempty" doc:"What it gave back that is no text: all of it, in the place of what was reported before."`
}

// MaxMeta is how many bytes of _meta are kept of a tool call or passed on with an update.
const MaxMeta = 8 << 10

// Usage is what was used so far.
type Usage struct {
	TokenUsage
	ContextUsed int64   `json:"context_used,omitempty" doc:"Tokens in the context."`
	ContextSize int64   `json:"context_size,omitempty" doc:"Tokens that fit into the context."`
	CostUSD     float64 `json:"cost_usd,omitempty"`

	Meta json.RawMessage `json:"_meta,omitempty" doc:"The agent's own _meta of this update, an object, up to 8 KiB."`
}

// Bounded is as of [TokenUsage.Bounded].
func (u Usage) Bounded() Usage {
	u.TokenUsage = u.TokenUsage.Bounded()
	u.ContextUsed, u.ContextSize = boundedTokens(u.ContextUsed), boundedTokens(u.ContextSize)
	if !(u.CostUSD >= 0 && u.CostUSD <= mostUSD) { // also what is no number
		u.CostUSD = 0
	}
	return u
}

// Plan is the agent's plan, whole.
type Plan struct {
	Entries []domain.PlanEntry `json:"entries"`
}

// Mode is the agent's mode, and those that it has.
type Mode struct {
	Current   string   `json:"current"`
	Available []string `json:"available,omitempty"`

	Choices []domain.Choice `json:"choices,omitempty" doc:"Those of available, with their names."`
}

// Session is what an agent tells of its session. A part that is absent did not
// change.
type Session struct {
	Agent    *domain.AgentInfo     `json:"agent,omitempty"`
	Mode     *Selection            `json:"mode,omitempty" doc:"The mode, and those that the agent has; without choices: it has none."`
	Model    *Selection            `json:"model,omitempty" doc:"The model, and those that the agent has; without choices: it does not say."`
	Options  []Option              `json:"options,omitzero" doc:"All of its options, in its order; those that choose its mode and its model are among them."`
	Commands []domain.AgentCommand `json:"commands,omitzero" doc:"All of its slash commands."`
	Info     *domain.SessionInfo   `json:"info,omitempty"`
	Takes    *domain.PromptTakes   `json:"takes,omitempty" doc:"What prompts may have beside text and links."`

	Background []domain.BackgroundTask `json:"background,omitzero" doc:"All that the agent does in the background, told while no prompt runs."`
	Ended      bool                    `json:"ended,omitempty" doc:"The agent has ended: what it did in the background was cut short."`
}

// A Selection is one of the choices that there are.
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
	Type        string          `json:"type,omitempty" doc:"select, boolean, or another word, of which nothing is known."`
	Current     string          `json:"current,omitempty" doc:"Of a boolean true or false."`
	Choices     []domain.Choice `json:"choices,omitempty"`
	Extra       json.RawMessage `json:"extra,omitempty" doc:"An object of what else the agent says of it."`
}

// FileChange is a file that a run changed, as it was before the run and as it
// is now. A file that did not exist, or does no more, is absent.
type FileChange struct {
	Path   string  `json:"path" doc:"Absolute."`
	Before *string `json:"before,omitempty"`
	After  *string `json:"after,omitempty"`
	Binary bool    `json:"binary,omitempty" doc:"Not text, or too long to keep: before and after are absent."`
}

// NativeSession is the agent's own session that a task runs in.
type NativeSession struct {
	SessionID string `json:"session_id"`
	Resumed   bool   `json:"resumed,omitempty" doc:"The session was there before."`
	Forked    bool   `json:"forked,omitempty" doc:"It is a fork of another one, which knows all that was said there."`
	Primed    bool   `json:"primed,omitempty" doc:"The agent had lost its session: a new one was given the transcript."`
}

// ElicitationDone says that what a person agreed to do at an address is done, as the
// agent has it.
type ElicitationDone struct {
	ApprovalID string `json:"approval_id"`
}

// PermissionTaken names answers from which the agent is seen to go on. That an
// answer was written to the agent is not enough: it may die before it reads it.
type PermissionTaken struct {
	ApprovalIDs []string `json:"approval_ids" doc:"Of results of request_permission."`
}

// Starting is the first line of the note of a silence before the agent has its prompt.
const Starting = "it is starting, or opening its session"

// Silence is that an agent has given no sign of life for a while, though nobody
// else has to do something first.
type Silence struct {
	SinceMS int64  `json:"since_ms" doc:"When its last sign of life was, in milliseconds since 1970."`
	Note    string `json:"note,omitempty" doc:"What it has complained of since then, on its standard error; at most a few lines."`
	ToolID  string `json:"tool_id,omitempty" doc:"The tool call that it is in the middle of. Then it need not be trouble."`
	Tool    string `json:"tool,omitempty" doc:"What that does, in words."`
	Ended   bool   `json:"ended,omitempty" doc:"It goes on, or the prompt has ended."`
}

// Process is the process group that an agent runs in, so that it can be ended
// whatever happens to the executor.
type Process struct {
	PID  int    `json:"pid"`
	Mark string `json:"mark" doc:"The value of DUET_AGENT_MARK in its environment, or of DUET_AGENT as in earlier versions, by which it is known again."`
}

// Retold is a part of a conversation that an agent had before, as it tells it
// again: a report of an event, or, if Role is user, what the human said.
type Retold struct {
	EventType string
	EventData json.RawMessage

	Role    string
	Text    string
	Content []ContentBlock // what went with it
}

// A ContentBlock is a piece of content as the Agent Client Protocol spells it. Ours,
// in what the executor catalog has.
type ContentBlock struct {
	Type        string    `json:"type" doc:"text, image, audio, resource or resource_link."`
	Text        string    `json:"text,omitempty" doc:"Of a text."`
	MIMEType    string    `json:"mimeType,omitempty" doc:"Such as image/png. An image and a sound need one."`
	Data        string    `json:"data,omitempty" doc:"Of an image and a sound: the bytes, in base64."`
	URI         string    `json:"uri,omitempty" doc:"Of a link: where it can be had. Of an image: where it came from."`
	Name        string    `json:"name,omitempty" doc:"Of a link: what it is called."`
	Title       string    `json:"title,omitempty"`
	Description string    `json:"description,omitempty"`
	Size        int64     `json:"size,omitempty" doc:"Of a link: in bytes."`
	Resource    *Resource `json:"resource,omitempty" doc:"Of a resource."`

	Annotations json.RawMessage `json:"annotations,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// A Resource is a file's contents, or what is like one.
type Resource struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty" doc:"This or blob."`
	Blob     string  `json:"blob,omitempty" doc:"The bytes, in base64."`
}

// MessageContent is a part of what an agent says, or thinks, that is no text. It stands by
// itself, between messages.
type MessageContent struct {
	Content  ContentBlock `json:"content"`
	ParentID string       `json:"parent_id,omitempty" doc:"The tool call of the sub-agent that says it. Ours."`
	Thought  bool         `json:"thought,omitempty" doc:"It is part of a thought. Ours."`
}

// Encodings are how bytes of a terminal stand in a message: as they are, or
// where they are no UTF-8 in base64 (RFC 4648).
const (
	EncodingUTF8   = "utf-8"
	EncodingBase64 = "base64"
)

// EncodeBytes gives bytes as a message has them.
func EncodeBytes(b []byte) (data, encoding string) {
	if utf8.Valid(b) {
		return string(b), EncodingUTF8
	}
	return base64.StdEncoding.EncodeToString(b), EncodingBase64
}

// DecodeBytes is the opposite of [EncodeBytes]; no encoding is utf-8. The error is
// for data that is not in its encoding, and comes with what could be read; and for
// an encoding that there is not, with the data as it is.
func DecodeBytes(data, encoding string) ([]byte, error) {
	switch encoding {
	case "", EncodingUTF8:
		return []byte(data), nil
	case EncodingBase64:
		return base64.StdEncoding.DecodeString(data)
	}
	return []byte(data), fmt.Errorf("there is no encoding %q", encoding)
}

// RunCommandParams are a command of the configuration to run to its end. Ours, from
// the hub to its executor alone.
type RunCommandParams struct {
	CommandID string            `json:"command_id" doc:"The caller's own id of this command; it must be new."`
	Command   []string          `json:"command" doc:"The program and its arguments."`
	CWD       string            `json:"cwd" doc:"The directory in which it runs."`
	Env       map[string]string `json:"env,omitempty" doc:"Its environment beyond what every child gets."`
	Mark      string            `json:"mark" doc:"The value of DUET_AGENT_MARK in its environment, which the hub has noted before."`
}

// RunCommandResult is how a command ended. Nothing of its process group is left then,
// and its output has been reported.
type RunCommandResult struct {
	ExitCode   int    `json:"exit_code" doc:"128 and the signal's number, if one ended it."`
	Signal     string `json:"signal,omitempty" doc:"The signal that ended it, such as SIGTERM."`
	StartError string `json:"start_error,omitempty" doc:"It was not started: why."`
}

// StopCommandParams name a command to end: SIGINT, SIGTERM and SIGKILL to its process
// group, with a while between them. Ours.
type StopCommandParams struct {
	CommandID string `json:"command_id"`
}

// StopCommandResult tells whether the end was begun; the result of run_command tells when
// it has come.
type StopCommandResult struct {
	Stopped bool `json:"stopped"`
}

// CommandStartedParams report that a command runs. Ours.
type CommandStartedParams struct {
	CommandID string `json:"command_id"`
	PID       int    `json:"pid" doc:"Of the process that leads its group."`
}

// CommandOutputParams report what a command printed, on its standard output or its
// standard error. Ours.
type CommandOutputParams struct {
	CommandID string `json:"command_id"`
	Data      string `json:"data"`
	Encoding  string `json:"encoding,omitempty" doc:"utf-8 (the default) or base64."`
}
