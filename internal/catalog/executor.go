// Package catalog is the contract between the hub and an executor: every message as a Go type, and
// the two roles as interfaces. Package catalogrpc carries it over JSON-RPC; docs/executors.md lists
// the methods.
//
// An [Executor] runs prompts and terminals and has no database. A [Daemon] keeps everything and
// knows no agents. "Ours" marks an addition to the executor catalog: other executors omit it,
// other daemons ignore it.
package catalog

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An Executor runs prompts with agents, and terminals. Its methods may be called from any
// goroutine.
type Executor interface {
	// ExecutePrompt runs a prompt to its end. If the agent fails, the result has status failed. An
	// error means that the executor could not serve the call, or has ended.
	ExecutePrompt(context.Context, ExecutePromptParams) (ExecutePromptResult, error)
	// StopTask begins to stop a task and returns at once.
	StopTask(context.Context, StopTaskParams) (StopTaskResult, error)
	SpawnTerminal(context.Context, SpawnTerminalParams) (SpawnTerminalResult, error)
	TerminalWrite(context.Context, TerminalWriteParams) error
	TerminalResize(context.Context, TerminalResizeParams) error
	TerminalClose(context.Context, TerminalCloseParams) (TerminalCloseResult, error)
	// TerminalDescriptor stops reading a terminal and returns its descriptor, the master of the
	// PTY, for another reader and writer. Output read before has been reported when it returns. The
	// caller must close the file.
	TerminalDescriptor(context.Context, TerminalDescriptorParams) (*os.File, error)
	// TerminalReturn lets the executor read the terminal again.
	TerminalReturn(context.Context, TerminalReturnParams) error
	// PauseNotifications makes the executor stop reading its agents until
	// ResumeNotifications.
	PauseNotifications(context.Context) error
	ResumeNotifications(context.Context) error
	// SetSession changes the mode, model or options of a session's agent while a prompt runs.
	// A refusal is a result, not an error.
	SetSession(context.Context, SetSessionParams) (SetSessionResult, error)
	// Steer sends a message to the agent in the middle of a task's turn. A refusal is a
	// result, not an error.
	Steer(context.Context, SteerParams) (SteerResult, error)
	// YieldTurn asks for the early end of a task without a prompt, because a prompt waits. A
	// refusal is a result, not an error.
	YieldTurn(context.Context, YieldTurnParams) (YieldTurnResult, error)
	// ReleaseSession ends the idle agent of a session, unless it is busy.
	ReleaseSession(context.Context, ReleaseSessionParams) (ReleaseSessionResult, error)
	// RunCommand runs a command to its end. The end of ctx has the effect of StopCommand. A command
	// that cannot be started is a result, not an error.
	RunCommand(context.Context, RunCommandParams) (RunCommandResult, error)
	// StopCommand begins to stop a command that was reported as started, and returns at once.
	StopCommand(context.Context, StopCommandParams) (StopCommandResult, error)
	// Shutdown ends the executor when its work is done, at the latest after the timeout.
	Shutdown(context.Context, ShutdownParams) (ShutdownResult, error)
}

// Permission modes.
const (
	ModeDefault     = "default"
	ModeAcceptEdits = "acceptEdits"
	ModeBypass      = "bypassPermissions"
	ModePlan        = "plan"
)

// ModeName returns the name of a mode. If the id is a URL, that is the part after "#", as in
// Copilot's https://agentclientprotocol.com/protocol/session-modes#plan. Otherwise it is the id.
func ModeName(id string) string {
	if scheme, rest, ok := strings.Cut(id, "://"); ok && scheme != "" {
		if _, name, ok := strings.Cut(rest, "#"); ok && name != "" {
			return name
		}
	}
	return id
}

// ExecutePromptParams are a prompt and its settings.
type ExecutePromptParams struct {
	SessionToken   string   `json:"session_token,omitempty"`
	SessionID      string   `json:"session_id,omitempty" doc:"The caller's id of the conversation. Prompts with the same id run one after the other."`
	TaskID         string   `json:"task_id,omitempty" doc:"The caller's id of this prompt. It must be new, and not a number, such as 12.3."`
	Prompt         string   `json:"prompt"`
	CWD            string   `json:"cwd,omitempty" doc:"The agent's working directory."`
	Tools          []string `json:"tools,omitempty" doc:"The allowed tools. Absent or empty: all."`
	PermissionMode string   `json:"permission_mode,omitempty" doc:"default, acceptEdits, bypassPermissions, plan, or one of the agent's own modes."`
	TimeoutMS      int64    `json:"timeout_ms,omitempty" doc:"Time limit in milliseconds. Default 300000, also for values below 1."`
	Stream         *bool    `json:"stream,omitempty" doc:"false: complete messages and no deltas. Default true."`
	AgenticTool    string   `json:"agentic_tool,omitempty" doc:"Alias of agent."`

	// Ours.
	Agent   string         `json:"agent,omitempty" doc:"The agent's name in the configuration."`
	Content []ContentBlock `json:"content,omitempty" doc:"Content in addition to the prompt's text."`
	Launch  *AgentLaunch   `json:"launch,omitempty" doc:"Only from the hub to its own executor: how to start the agent."`
	// Context saves the executor a request, which delays the prompt.
	Context *GetExecutionContextResult `json:"context,omitempty" doc:"Only from the hub to its own executor: the result of get_execution_context with unanswered."`

	Meta json.RawMessage `json:"_meta,omitempty" doc:"The _meta of the prompt of an ACP editor."`

	Unprompted bool `json:"unprompted,omitempty" doc:"The agent already works: the executor asked for this task with begin_turn, and there is no prompt to send."`
}

// An AgentLaunch describes how to start an agent. Ours.
type AgentLaunch struct {
	Name              string            `json:"name"`
	Driver            string            `json:"driver" doc:"acp or command."`
	Command           []string          `json:"command"`
	Install           string            `json:"install,omitempty" doc:"How to install the command's program, for people."`
	Prompt            string            `json:"prompt,omitempty" doc:"Driver command: arg or stdin."`
	History           string            `json:"history,omitempty" doc:"Driver command: transcript or none."`
	Files             string            `json:"files,omitempty" doc:"Driver acp: the file methods that the agent is offered: read-write, write or none."`
	StartTimeoutMS    int64             `json:"start_timeout_ms,omitempty" doc:"Driver acp: time limit for the response to initialize; 0: 30 s."`
	SilentAfterMS     int64             `json:"silent_after_ms,omitempty" doc:"Driver acp: time without a sign of life until the silence is reported; 0: 5 s."`
	SilentToolAfterMS int64             `json:"silent_tool_after_ms,omitempty" doc:"Driver acp: the same during a tool call; 0: 30 s."`
	QuietMS           int64             `json:"quiet_ms,omitempty" doc:"Driver acp: an agent-initiated turn ends after this silence, if the agent does not report its end; 0: 10 s."`
	Protocol          int               `json:"protocol,omitempty" doc:"Driver acp: the newest version of the Agent Client Protocol to offer; 0: the newest."`
	Program           string            `json:"program,omitempty" doc:"The program found on the client's PATH. Absent: that of command."`
	Env               map[string]string `json:"env,omitempty" doc:"Variables of the agent's configuration. They override those of environment."`
	EnvFrom           []string          `json:"env_from,omitempty" doc:"Names of variables that the configuration passes on; a * at the end of one stands for any ending. Their values are in environment."`
	Environment       map[string]string `json:"environment,omitempty" doc:"The rest of the agent's environment: variables of the client that launched the run, or of the hub. Never logged. Absent: the executor's environment. A running agent keeps its own."`
	Keys              map[string]string `json:"keys,omitempty" doc:"Environment variables, and the service whose key each one holds."`
	Root              string            `json:"root" doc:"Files outside of this directory are not read or written for the agent."`
	StateDir          string            `json:"state_dir,omitempty" doc:"The hub's own directory, whose files are never read or written for the agent."`
	Sandbox           *Sandbox          `json:"sandbox,omitempty" doc:"The sandbox of the agent and of the programs in its terminals. Absent: none."`
}

// A Sandbox describes the sandbox of an agent. Ours.
type Sandbox struct {
	Level   string   `json:"level" doc:"workspace or offline."`
	Program string   `json:"program" doc:"The path of bwrap."`
	Write   []string `json:"write,omitempty" doc:"Paths that the agent may write, besides its directories."`
	Hide    []string `json:"hide,omitempty" doc:"Paths that are empty for the agent, besides those with the user's secrets."`
}

// Values of AgentLaunch.Files: the file methods of the Agent Client Protocol that an agent is
// offered. An agent without them uses the file system itself.
const (
	FilesReadWrite = "read-write"
	FilesWrite     = "write"
	FilesNone      = "none"
)

// ExecutePromptResult is the outcome of a prompt.
type ExecutePromptResult struct {
	Status       string          `json:"status" doc:"completed, failed or cancelled."`
	MessageCount int             `json:"message_count"`
	TokenUsage   *TokenUsage     `json:"token_usage,omitempty"`
	Error        *ExecutionError `json:"error,omitempty"`

	// Ours.
	StopReason string `json:"stop_reason,omitempty" doc:"The agent's stop reason: end_turn, max_tokens, max_turn_requests, refusal or cancelled."`
	Agent      string `json:"agent,omitempty" doc:"The agent that runs the prompt."`
}

// Values of ExecutePromptResult.Status.
const (
	StatusCompleted = "completed"
	StatusFailed    = "failed"
	StatusCancelled = "cancelled"
)

// ExecutionError is why a prompt failed.
type ExecutionError struct {
	Message string `json:"message"`
	Code    string `json:"code" doc:"In capitals, such as EXECUTOR_ERROR or TIMEOUT."`

	// Ours.
	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty" doc:"The sign-in methods that the agent offers. Present if the user must sign in first."`
}

// TokenUsage is the number of tokens that a prompt used.
type TokenUsage struct {
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	CacheReadTokens  int64 `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
}

// The largest accepted figures of usage. Agents may report any number, and the hub adds up many
// runs.
const (
	mostTokens = 1 << 40
	mostUSD    = 1e6
)

// Bounded replaces each figure that is negative or too large by 0, which means unknown.
func (u TokenUsage) Bounded() TokenUsage {
	for _, n := range []*int64{&u.InputTokens, &u.OutputTokens, &u.CacheReadTokens, &u.CacheWriteTokens} {
		*n = boundedTokens(*n)
	}
	return u
}

func boundedTokens(n int64) int64 {
	if n < 0 || n > mostTokens {
		return 0
	}
	return n
}

// StopTaskParams name a task to stop.
type StopTaskParams struct {
	SessionToken string `json:"session_token,omitempty"`
	TaskID       string `json:"task_id"`
	Reason       string `json:"reason,omitempty" doc:"user_cancelled, timeout, ..."`
}

// StopTaskResult reports whether the task is being stopped.
type StopTaskResult struct {
	Stopped bool   `json:"stopped"`
	Message string `json:"message,omitempty"`
}

// SpawnTerminalParams describe a terminal.
type SpawnTerminalParams struct {
	SessionToken    string            `json:"session_token,omitempty"`
	CWD             string            `json:"cwd,omitempty"`
	Shell           string            `json:"shell,omitempty" doc:"The program. Default: the user's shell."`
	Env             map[string]string `json:"env,omitempty"`
	UseTmux         bool              `json:"use_tmux,omitempty" doc:"Run tmux, so that the terminal outlives the executor."`
	TmuxSessionName string            `json:"tmux_session_name,omitempty"`
	TmuxWindowName  string            `json:"tmux_window_name,omitempty"`
	Cols            int               `json:"cols,omitempty" doc:"Default 80, also for values below 1."`
	Rows            int               `json:"rows,omitempty" doc:"Default 24, also for values below 1."`

	// Ours.
	Args       []string `json:"args,omitempty" doc:"The program's arguments."`
	Descriptor bool     `json:"descriptor,omitempty" doc:"Do not read the terminal. Pass its file descriptor with the result, as terminal.descriptor does."`
}

// SpawnTerminalResult names a terminal.
type SpawnTerminalResult struct {
	TerminalID string `json:"terminal_id"`
	PTYPID     int    `json:"pty_pid"`

	// Ours: the started program, if the executor reports it.
	Program string   `json:"program,omitempty"`
	Args    []string `json:"args,omitempty"`
	Cols    int      `json:"cols,omitempty"`
	Rows    int      `json:"rows,omitempty"`
	File    *os.File `json:"-"` // the descriptor, if requested; the caller closes it. It is sent next to the message.
}

// TerminalWriteParams are input for a terminal.
type TerminalWriteParams struct {
	TerminalID string `json:"terminal_id"`
	Data       string `json:"data"`
	Encoding   string `json:"encoding,omitempty" doc:"utf-8 (the default) or base64."`
}

// TerminalResizeParams are a terminal's new size.
type TerminalResizeParams struct {
	TerminalID string `json:"terminal_id"`
	Cols       int    `json:"cols"`
	Rows       int    `json:"rows"`
}

// TerminalCloseParams name a terminal to close.
type TerminalCloseParams struct {
	TerminalID string `json:"terminal_id"`
}

// TerminalCloseResult reports that the terminal was closed.
type TerminalCloseResult struct {
	Closed bool `json:"closed"`
}

// TerminalDescriptorParams name a terminal that another process will read. Ours.
type TerminalDescriptorParams struct {
	TerminalID string `json:"terminal_id"`
}

// TerminalReturnParams name a terminal that the executor shall read again. Ours.
type TerminalReturnParams struct {
	TerminalID string `json:"terminal_id"`
}

// SetSessionParams are the new settings of an agent. Ours.
type SetSessionParams struct {
	SessionID string            `json:"session_id" doc:"The conversation, as in execute_prompt."`
	Mode      string            `json:"mode,omitempty" doc:"One of the agent's modes. Absent: no change."`
	Model     string            `json:"model,omitempty" doc:"One of the agent's models. Absent: no change."`
	Options   map[string]string `json:"options,omitempty" doc:"Values of the agent's options, by option id."`
}

// SetSessionResult is the outcome. Before it, the executor reports the new settings as the events
// mode and session.
type SetSessionResult struct {
	Status  string `json:"status" doc:"set, refused, or idle (no prompt runs, so there is no agent to change)."`
	Message string `json:"message,omitempty" doc:"Why it was refused."`
}

// Values of SetSessionResult.Status.
const (
	SessionSet     = "set"
	SessionRefused = "refused"
	SessionIdle    = "idle"
)

// SteerParams are a message for a working agent. Ours.
type SteerParams struct {
	TaskID string `json:"task_id"`
	Text   string `json:"text"`
}

// SteerResult is the outcome. The executor reports an accepted message as the event
// user_message before it answers.
type SteerResult struct {
	Outcome string `json:"outcome" doc:"injected, or refused: the agent does not accept messages during a turn, or its turn has ended."`
}

// Values of SteerResult.Outcome.
const (
	SteerInjected = "injected"
	SteerRefused  = "refused"
)

// YieldTurnParams name the task of an agent-initiated turn. Ours.
type YieldTurnParams struct {
	TaskID string `json:"task_id"`
}

// YieldTurnResult reports whether the task ends in favour of a prompt.
type YieldTurnResult struct {
	Outcome string `json:"outcome" doc:"yielding: the task ends when the agent waits for no answer, and its work continues. refused: the agent accepts no prompt while it works. unknown: the task does not exist, or not yet."`
}

// Values of YieldTurnResult.Outcome.
const (
	YieldYielding = "yielding"
	YieldRefused  = "refused"
	YieldUnknown  = "unknown"
)

// ReleaseSessionParams name a session in which no prompt runs. Ours.
type ReleaseSessionParams struct {
	SessionID string `json:"session_id" doc:"The conversation, as in execute_prompt."`
	Force     bool   `json:"force,omitempty" doc:"Also end an agent that works in the background or has a program in a terminal."`

	Background string `json:"background,omitempty" doc:"Stop only this background task, by the id in the agent's report. The agent stays."`
}

// ReleaseSessionResult reports whether the agent has ended, or none was running.
type ReleaseSessionResult struct {
	Released bool   `json:"released"`
	Reason   string `json:"reason,omitempty" doc:"Why the agent has not ended: busy (a prompt runs), terminals (its program runs in one) or background (it works in the background). With force or background also cancelled: the agent stops that work, and stays. With background also kept: the agent cannot stop that task alone."`

	Error string `json:"error,omitempty" doc:"With kept: the agent's error."`
}

// Values of ReleaseSessionResult.Reason for a background task.
const (
	ReleaseCancelled = "cancelled"
	ReleaseKept      = "kept"
)

// ShutdownParams end an executor.
type ShutdownParams struct {
	Reason    string `json:"reason,omitempty" doc:"server_restart, idle_timeout, ..."`
	TimeoutMS int64  `json:"timeout_ms,omitempty"`
}

// ShutdownResult is the outcome of the executor's work.
type ShutdownResult struct {
	Status string `json:"status" doc:"completed, interrupted or idle."`
}

// A LeaseRequest describes the executor that the hub needs.
type LeaseRequest struct {
	Session string   // the session's id; "" for a terminal of a person
	Agent   string   // the agent's name in the configuration; "" for a terminal
	Driver  string   // acp, command or executor; "" means command
	Command []string // driver executor: the third-party program
}

// A Lease is an executor in use. Its methods may be called from any goroutine.
type Lease interface {
	Executor
	// Release returns the executor, which may then end if it has no other user. It may be called
	// more than once.
	Release()
	// Kill ends the executor and all of its agents at once.
	Kill()
}

const (
	// MarkVariable is set in the environment of every process of an agent, so that the hub
	// recognises processes that escaped.
	MarkVariable = "DUET_AGENT_MARK"
)

// MarkIn returns the mark in a variable NAME=value of an environment. An empty value is none.
func MarkIn(variable string) (mark string, ok bool) {
	name, value, _ := strings.Cut(variable, "=")
	return value, value != "" && name == MarkVariable
}

// OtherTool is the name of a tool whose name and kind are both unknown.
const OtherTool = "other"

// toolsOfKinds has the names of tools by their kind in the Agent Client Protocol. If only the kind
// is known, a tool gets the first name.
var toolsOfKinds = map[string][]string{
	"read":        {"Read", "NotebookRead", "LS"},
	"edit":        {"Edit", "Write", "MultiEdit", "NotebookEdit"},
	"delete":      {"Delete"},
	"move":        {"Move"},
	"search":      {"Grep", "Glob", "LS"},
	"execute":     {"Bash"},
	"think":       {"Think", "Task", "TodoWrite"},
	"fetch":       {"WebFetch", "WebSearch"},
	"switch_mode": {"ExitPlanMode"},
}

// ToolsOfKind lists the names that rules and people use for tools of a kind; none for other, and
// for unknown kinds.
func ToolsOfKind(kind string) []string { return slices.Clone(toolsOfKinds[kind]) }

// ToolOfKind returns the name of a tool if only its kind is known.
func ToolOfKind(kind string) string {
	if names := toolsOfKinds[kind]; len(names) > 0 {
		return names[0]
	}
	return OtherTool
}
