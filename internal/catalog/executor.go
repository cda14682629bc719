package catalog

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// An Executor runs prompts with agents, and terminals. All methods may be
// called from any goroutine.
type Executor interface {
	// ExecutePrompt runs a prompt to its end. An agent that fails is a result
	// with status failed; an error means that the executor could not serve the
	// call, or has gone.
	ExecutePrompt(context.Context, ExecutePromptParams) (ExecutePromptResult, error)
	// StopTask begins to end a task and returns at once.
	StopTask(context.Context, StopTaskParams) (StopTaskResult, error)
	SpawnTerminal(context.Context, SpawnTerminalParams) (SpawnTerminalResult, error)
	TerminalWrite(context.Context, TerminalWriteParams) error
	TerminalResize(context.Context, TerminalResizeParams) error
	TerminalClose(context.Context, TerminalCloseParams) (TerminalCloseResult, error)
	// TerminalDescriptor stops the reading of a terminal and returns its
	// descriptor, the master of the PTY, for somebody who reads and writes
	// there instead. What was read before has been reported when it returns.
	// The file is the caller's.
	TerminalDescriptor(context.Context, TerminalDescriptorParams) (*os.File, error)
	// TerminalReturn lets the executor read the terminal again.
	TerminalReturn(context.Context, TerminalReturnParams) error
	// PauseNotifications makes the executor stop reading its agents until
	// ResumeNotifications.
	PauseNotifications(context.Context) error
	ResumeNotifications(context.Context) error
	// SetSession changes what the agent of a conversation is set to, while a
	// prompt runs. An agent that refuses is a result, too.
	SetSession(context.Context, SetSessionParams) (SetSessionResult, error)
	// Steer sends a message to the agent in the middle of a task's turn. A refusal is a
	// result, not an error.
	Steer(context.Context, SteerParams) (SteerResult, error)
	// YieldTurn asks for the early end of a task without a prompt, because a prompt waits. A
	// refusal is a result, not an error.
	YieldTurn(context.Context, YieldTurnParams) (YieldTurnResult, error)
	// ReleaseSession ends the agent that waits for the next prompt of a
	// conversation, unless it has something to do.
	ReleaseSession(context.Context, ReleaseSessionParams) (ReleaseSessionResult, error)
	// RunCommand runs a command to its end; that of ctx is the same as StopCommand. One
	// that cannot be started is a result, too.
	RunCommand(context.Context, RunCommandParams) (RunCommandResult, error)
	// StopCommand begins to end a command that was reported as started, and returns at once.
	StopCommand(context.Context, StopCommandParams) (StopCommandResult, error)
	// Shutdown ends the executor when its work is done, at the latest after
	// the timeout.
	Shutdown(context.Context, ShutdownParams) (ShutdownResult, error)
}

// Permission modes.
const (
	ModeDefault     = "default"
	ModeAcceptEdits = "acceptEdits"
	ModeBypass      = "bypassPermissions"
	ModePlan        = "plan"
)

// ModeName returns the name of a mode whose id may be a URL: the part behind its "#", as of
// Copilot's https://agentclientprotocol.com/protocol/session-modes#plan. Other ids are names.
func ModeName(id string) string {
	if scheme, rest, ok := strings.Cut(id, "://"); ok && scheme != "" {
		if _, name, ok := strings.Cut(rest, "#"); ok && name != "" {
			return name
		}
	}
	return id
}

// ExecutePromptParams are a prompt and how to run it.
type ExecutePromptParams struct {
	SessionToken   string   `json:"session_token,omitempty"`
	SessionID      string   `json:"session_id,omitempty" doc:"The caller's own id of the conversation. Prompts with the same one follow each other."`
	TaskID         string   `json:"task_id,omitempty" doc:"The caller's own id of this prompt; it must be new."`
	Prompt         string   `json:"prompt"`
	CWD            string   `json:"cwd,omitempty" doc:"The directory in which the agent works."`
	Tools          []string `json:"tools,omitempty" doc:"The tools that are allowed; absent or empty: all."`
	PermissionMode string   `json:"permission_mode,omitempty" doc:"default, acceptEdits, bypassPermissions, plan, or one of the agent's own modes."`
	TimeoutMS      int64    `json:"timeout_ms,omitempty" doc:"How long it may run, in milliseconds; 300000 unless above 0."`
	Stream         *bool    `json:"stream,omitempty" doc:"False: no deltas, whole messages only. Default true."`
	AgenticTool    string   `json:"agentic_tool,omitempty" doc:"Another name for agent."`

	// Ours.
	Agent   string         `json:"agent,omitempty" doc:"The agent's name in the configuration."`
	Content []ContentBlock `json:"content,omitempty" doc:"What goes with the prompt beside its text."`
	Launch  *AgentLaunch   `json:"launch,omitempty" doc:"From the hub to its executor alone: how the agent is started."`

	Meta json.RawMessage `json:"_meta,omitempty" doc:"The _meta that an ACP editor gave with the prompt."`

	Unprompted bool `json:"unprompted,omitempty" doc:"The agent works already: the task is what the executor has asked for with begin_turn, and there is no prompt to send."`
}

// An AgentLaunch says how an agent is started. Ours.
type AgentLaunch struct {
	Name              string            `json:"name"`
	Driver            string            `json:"driver" doc:"acp or command."`
	Command           []string          `json:"command"`
	Install           string            `json:"install,omitempty" doc:"What to do where the command's program is not there, in words."`
	Prompt            string            `json:"prompt,omitempty" doc:"Driver command: arg or stdin."`
	History           string            `json:"history,omitempty" doc:"Driver command: transcript or none."`
	Files             string            `json:"files,omitempty" doc:"Driver acp: read-write, write or none: which methods for files it is offered."`
	StartTimeoutMS    int64             `json:"start_timeout_ms,omitempty" doc:"Driver acp: how long it may take to answer initialize; 0: 30 s."`
	SilentAfterMS     int64             `json:"silent_after_ms,omitempty" doc:"Driver acp: after how long without a sign of life its silence is reported; 0: 5 s."`
	SilentToolAfterMS int64             `json:"silent_tool_after_ms,omitempty" doc:"Driver acp: the same in the middle of a tool call; 0: 30 s."`
	QuietMS           int64             `json:"quiet_ms,omitempty" doc:"Driver acp: how long an agent that works without a prompt, and does not tell the end of that, has to be silent until the turn has ended; 0: 10 s."`
	Protocol          int               `json:"protocol,omitempty" doc:"Driver acp: the newest version of the Agent Client Protocol that it is offered; 0: the newest."`
	Program           string            `json:"program,omitempty" doc:"The program as the PATH of the client has it; absent: that of the command."`
	Env               map[string]string `json:"env,omitempty" doc:"Variables of the agent's configuration. They win over those of environment."`
	EnvFrom           []string          `json:"env_from,omitempty" doc:"Names of variables that the configuration passes on. Their values are in environment."`
	Environment       map[string]string `json:"environment,omitempty" doc:"The rest of the agent's environment: variables of the client that launched the run, or else of the hub. It is in no log. Absent: that of the executor. An agent that runs already keeps its own."`
	Keys              map[string]string `json:"keys,omitempty" doc:"Names of environment variables, and the services whose keys they hold."`
	Root              string            `json:"root" doc:"Files outside of it are not read or written for the agent."`
	StateDir          string            `json:"state_dir,omitempty" doc:"The hub's own directory, in which none are, wherever it is."`
}

// Values of AgentLaunch.Files: which methods for files an agent is offered, of those that
// the Agent Client Protocol has an editor offer. An agent without them uses the
// file system by itself.
const (
	FilesReadWrite = "read-write"
	FilesWrite     = "write"
	FilesNone      = "none"
)

// ExecutePromptResult is how a prompt ended.
type ExecutePromptResult struct {
	Status       string          `json:"status" doc:"completed, failed or cancelled."`
	MessageCount int             `json:"message_count"`
	TokenUsage   *TokenUsage     `json:"token_usage,omitempty"`
	Error        *ExecutionError `json:"error,omitempty"`

	// Ours.
	StopReason string `json:"stop_reason,omitempty" doc:"The agent's own: end_turn, max_tokens, max_turn_requests, refusal or cancelled."`
	Agent      string `json:"agent,omitempty" doc:"The agent that was taken."`
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
	AuthMethods []domain.AuthMethod `json:"auth_methods,omitempty" doc:"Somebody has to sign in first: the ways that the agent offers."`
}

// TokenUsage is what a prompt cost.
type TokenUsage struct {
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	CacheReadTokens  int64 `json:"cache_read_tokens,omitempty"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
}

// The largest figures of usage that are taken: agents make them up as they like, and those of
// many runs are added up.
const (
	mostTokens = 1 << 40
	mostUSD    = 1e6
)

// Bounded has 0, which says nothing, in place of each figure that is negative or too large.
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

// StopTaskParams name a task to end.
type StopTaskParams struct {
	SessionToken string `json:"session_token,omitempty"`
	TaskID       string `json:"task_id"`
	Reason       string `json:"reason,omitempty" doc:"user_cancelled, timeout, ..."`
}

// StopTaskResult tells whether the end was begun.
type StopTaskResult struct {
	Stopped bool   `json:"stopped"`
	Message string `json:"message,omitempty"`
}

// SpawnTerminalParams describe a terminal.
type SpawnTerminalParams struct {
	SessionToken    string            `json:"session_token,omitempty"`
	CWD             string            `json:"cwd,omitempty"`
	Shell           string            `json:"shell,omitempty" doc:"The program; absent: the user's shell."`
	Env             map[string]string `json:"env,omitempty"`
	UseTmux         bool              `json:"use_tmux,omitempty" doc:"Run tmux, so that the terminal outlives us."`
	TmuxSessionName string            `json:"tmux_session_name,omitempty"`
	TmuxWindowName  string            `json:"tmux_window_name,omitempty"`
	Cols            int               `json:"cols,omitempty" doc:"80 unless above 0."`
	Rows            int               `json:"rows,omitempty" doc:"24 unless above 0."`

	// Ours.
	Args       []string `json:"args,omitempty" doc:"Arguments of the program."`
	Descriptor bool     `json:"descriptor,omitempty" doc:"Nothing of it is read; its descriptor comes with the result, as of terminal.descriptor."`
}

// SpawnTerminalResult names a terminal.
type SpawnTerminalResult struct {
	TerminalID string `json:"terminal_id"`
	PTYPID     int    `json:"pty_pid"`

	// Ours: what was started, where the executor tells.
	Program string   `json:"program,omitempty"`
	Args    []string `json:"args,omitempty"`
	Cols    int      `json:"cols,omitempty"`
	Rows    int      `json:"rows,omitempty"`
	File    *os.File `json:"-"` // the descriptor if it was asked for; the caller's. On the wire it goes beside.
}

// TerminalWriteParams are keys for a terminal.
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

// TerminalCloseResult tells that it was closed.
type TerminalCloseResult struct {
	Closed bool `json:"closed"`
}

// TerminalDescriptorParams name a terminal that somebody else is to read.
// Ours.
type TerminalDescriptorParams struct {
	TerminalID string `json:"terminal_id"`
}

// TerminalReturnParams name a terminal that the executor reads again. Ours.
type TerminalReturnParams struct {
	TerminalID string `json:"terminal_id"`
}

// SetSessionParams say what an agent is to be set to. Ours.
type SetSessionParams struct {
	SessionID string            `json:"session_id" doc:"As of execute_prompt."`
	Mode      string            `json:"mode,omitempty" doc:"One of the agent's modes; absent: as it is."`
	Model     string            `json:"model,omitempty" doc:"One of the agent's models; absent: as it is."`
	Options   map[string]string `json:"options,omitempty" doc:"Values of the agent's options, by their ids."`
}

// SetSessionResult tells what became of it. What the agent is set to then is
// reported as the events mode and session, before this.
type SetSessionResult struct {
	Status  string `json:"status" doc:"set, refused, or idle: no prompt runs, so there is no agent to tell."`
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

// YieldTurnParams name a task in which an agent works by itself. Ours.
type YieldTurnParams struct {
	TaskID string `json:"task_id"`
}

// YieldTurnResult says whether the task ends for the sake of a prompt.
type YieldTurnResult struct {
	Outcome string `json:"outcome" doc:"yielding: the task ends as soon as the agent waits for no answer; its work goes on. refused: the agent takes no prompt while it works. unknown: there is no such task, or not yet."`
}

// Values of YieldTurnResult.Outcome.
const (
	YieldYielding = "yielding"
	YieldRefused  = "refused"
	YieldUnknown  = "unknown"
)

// ReleaseSessionParams name a conversation of which no prompt runs. Ours.
type ReleaseSessionParams struct {
	SessionID string `json:"session_id" doc:"As of execute_prompt."`
	Force     bool   `json:"force,omitempty" doc:"Also an agent that works in the background, or has a program in a terminal."`

	Background string `json:"background,omitempty" doc:"Stop this background task alone, by the id in the agent's report. The agent stays."`
}

// ReleaseSessionResult tells whether the agent has ended, or there was none.
type ReleaseSessionResult struct {
	Released bool   `json:"released"`
	Reason   string `json:"reason,omitempty" doc:"Why not: busy (a prompt runs), terminals (a program of the agent's runs in one) or background (the agent works in the background). With force or a background task also cancelled: the agent stops that work, and stays. With a background task also kept: the agent cannot stop it alone."`

	Error string `json:"error,omitempty" doc:"Of kept: what the agent answered."`
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

// ShutdownResult is what became of the executor's work.
type ShutdownResult struct {
	Status string `json:"status" doc:"completed, interrupted or idle."`
}

// A LeaseRequest says what the hub needs an executor for.
type LeaseRequest struct {
	Thread  string   // the conversation's id; "" for a terminal of a person
	Agent   string   // the agent's name in the configuration; "" for a terminal
	Driver  string   // acp, command or executor; "" means command
	Command []string // driver executor: the program that somebody else wrote
}

// A Lease is an executor that somebody uses. Its methods may be called from any
// goroutine.
type Lease interface {
	Executor
	// Release gives it back; it may be ended when nobody uses it. It may be
	// called more than once.
	Release()
	// Kill ends the executor and all of its agents at once.
	Kill()
}

const (
	// MarkVariable is in the environment of every process that runs for an agent,
	// so that one that got away is known again.
	MarkVariable = "DUET_AGENT_MARK"
	// EarlierMarkVariable was MarkVariable in earlier versions. It is also the
	// setting that says which agent whoever names none gets, so it is looked for,
	// and not set any more.
	EarlierMarkVariable = "DUET_AGENT"
)

// MarkIn is the mark that a variable of an environment, NAME=value, holds; an
// empty value is none.
func MarkIn(variable string) (mark string, ok bool) {
	name, value, _ := strings.Cut(variable, "=")
	return value, value != "" && (name == MarkVariable || name == EarlierMarkVariable)
}

// OtherTool is the name of a tool of which neither a name nor a kind is known.
const OtherTool = "other"

// toolsOfKinds are the names of tools by their kind in the Agent Client
// Protocol. A tool of which no more is known than its kind goes by the first.
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

// ToolsOfKind are the names under which tools of a kind are known to rules and
// to people; none for other, or what is no kind of the Agent Client Protocol.
func ToolsOfKind(kind string) []string { return slices.Clone(toolsOfKinds[kind]) }

// ToolOfKind is the name of a tool of which no more is known than its kind.
func ToolOfKind(kind string) string {
	if names := toolsOfKinds[kind]; len(names) > 0 {
		return names[0]
	}
	return OtherTool
}
