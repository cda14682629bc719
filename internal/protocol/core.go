package protocol

import (
	"encoding/json"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/server"
)

type InitializeParams struct {
	Capabilities     json.RawMessage `json:"capabilities,omitempty" doc:"What the caller can do. If it is there, the result tells what duet-rpc can do."`
	WorkspaceTrusted *bool           `json:"workspaceTrusted,omitempty" doc:"True: the user trusts this workspace in the editor, so what the project's .duet.toml runs, as it is now, may run, as after duet-rpc trust. False: nothing of that runs for what this connection launches, even where it was trusted before; others are not concerned. Absent: as duet-rpc trust has it."`
}

type InitializeResult struct {
	ServerInfo      ServerInfo    `json:"serverInfo"`
	ProtocolVersion string        `json:"protocolVersion"`
	Capabilities    *Capabilities `json:"capabilities,omitempty"`
}

type ServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type Capabilities struct {
	Batch          bool     `json:"batch" doc:"Batches are answered."`
	Cancellation   bool     `json:"cancellation" doc:"$/cancelRequest cancels a long-running request."`
	MaxFrameBytes  int      `json:"maxFrameBytes" doc:"The longest body that is accepted."`
	MaxHeaderBytes int      `json:"maxHeaderBytes" doc:"The longest header section that is accepted."`
	Charset        string   `json:"charset" doc:"The charset of messages."`
	LongRunning    []string `json:"longRunning" doc:"The methods whose requests run beside others and can be cancelled."`
	MethodFamilies []string `json:"methodFamilies" doc:"Which families of methods are served: core, task, session, executor, terminal."`
	EventTypes     []string `json:"eventTypes,omitempty" doc:"The types of events that Subscribe can choose."`
}

type PingResult struct {
	Pong      bool   `json:"pong"`
	Timestamp string `json:"timestamp" doc:"The time, ISO 8601 in UTC with milliseconds."`
}

type Health struct {
	Status  string   `json:"status" doc:"ok or degraded."`
	Version string   `json:"version"`
	Issues  []string `json:"issues,omitempty" doc:"What is wrong, and what to do."`
}

type VersionResult struct {
	Version string `json:"version"`
}

type MethodListed struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type MethodDescribed struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Params      []string `json:"params" doc:"name: type, or name?: type where it may be left out."`
	Returns     string   `json:"returns"`
	LongRunning bool     `json:"longRunning,omitempty"`
}

type SetLogLevelParams struct {
	Level logging.Level `json:"level"`
}

type SetLogLevelResult struct {
	Level   logging.Level `json:"level"`
	Success bool          `json:"success"`
}

type ClientEnvironmentParams struct {
	Environment clientenv.Environment `json:"environment" doc:"Variables, at most 256 and 64 KiB. docs/configuration.md says which of them reach what."`
}

type ClientBuildParams struct {
	Build   string `json:"build,omitempty" doc:"The build id of the program that the client would start as a daemon."`
	Version string `json:"version,omitempty" doc:"Its version."`
	Notices bool   `json:"notices,omitempty" doc:"The client shows its user the notice of the result."`
}

type ShutdownParams struct {
	Reason    *string `json:"reason,omitempty" doc:"Why, for the log."`
	TimeoutMS *uint   `json:"timeout_ms,omitempty" doc:"How long running requests may take, in milliseconds; 60000 at most."`
}

type ShutdownResult struct {
	Status  string `json:"status,omitempty" doc:"With reason or timeout_ms: idle (nothing ran), completed (what ran has ended) or interrupted (it has not)."`
	Message string `json:"message"`
}

type DaemonStatus struct {
	PID           int        `json:"pid"`
	UptimeSeconds int64      `json:"uptime_seconds"`
	StartedAt     string     `json:"started_at"`
	Health        string     `json:"health" doc:"healthy or degraded."`
	Issues        []string   `json:"issues,omitempty" doc:"What is wrong, and what to do."`
	Version       string     `json:"version"`
	Hub           string     `json:"hub,omitempty" doc:"daemon."`
	Subsystems    Subsystems `json:"subsystems"`
}

type Subsystems struct {
	IPC         IPCStatus        `json:"ipc"`
	Supervisor  SupervisorStatus `json:"supervisor"`
	Automation  AutomationStatus `json:"automation"`
	FileWatcher WatcherStatus    `json:"file_watcher"`
	Scheduler   SchedulerStatus  `json:"scheduler"`
	Messaging   MessagingStatus  `json:"messaging"`
	Store       StoreStatus      `json:"store"`
	Executors   ExecutorsStatus  `json:"executors"`
	Approvals   ApprovalsStatus  `json:"approvals"`
}

type IPCStatus struct {
	Clients int      `json:"clients"`
	Sockets []string `json:"sockets,omitempty" doc:"Where it listens."`

	Unserved []string `json:"unserved,omitempty" doc:"Who looks for a daemon and cannot reach this one, and why: AIWG's command line, where a daemon of AIWG runs."`
}

type SupervisorStatus struct {
	Running        int             `json:"running"`
	Queued         int             `json:"queued"`
	MaxConcurrency int             `json:"maxConcurrency"`
	Tasks          SupervisedTasks `json:"tasks"`
}

type SupervisedTasks struct {
	Running []RunningTask `json:"running"`
	Queued  []QueuedTask  `json:"queued" doc:"In the order in which they will start."`
}

type RunningTask struct {
	ID        string  `json:"id"`
	Prompt    string  `json:"prompt" doc:"Its first 80 characters."`
	Agent     *string `json:"agent"`
	StartedAt *string `json:"startedAt"`
	PID       *int    `json:"pid"`
	SessionID string  `json:"session_id"`
	Status    string  `json:"status"`
}

type QueuedTask struct {
	ID        string  `json:"id"`
	Prompt    string  `json:"prompt" doc:"Its first 80 characters."`
	Agent     *string `json:"agent"`
	Priority  int     `json:"priority"`
	SessionID string  `json:"session_id"`
}

type WatcherStatus struct {
	Enabled        bool     `json:"enabled"`
	Paths          []string `json:"paths" doc:"What is watched, relative to the project."`
	EventsReceived int64    `json:"events_received"`
	Directories    int      `json:"directories" doc:"How many are watched."`
	Problem        string   `json:"problem,omitempty" doc:"Why not all is watched, and what to do."`
}

type SchedulerStatus struct {
	Enabled   bool              `json:"enabled"`
	Jobs      int               `json:"jobs" doc:"How many triggers have a time."`
	LastFires map[string]string `json:"last_fires" doc:"When the time of each has come last, since the start."`
}

type MessagingStatus struct {
	Enabled bool `json:"enabled"`
}

type StoreStatus struct {
	Path    string `json:"path,omitempty" doc:"The database."`
	LastSeq int64  `json:"last_seq" doc:"The last event's number."`
}

type ExecutorsStatus struct {
	Running int `json:"running"`
}

type ApprovalsStatus struct {
	Pending int `json:"pending"`
}

type StopDaemonParams struct {
	Force bool `json:"force,omitempty" doc:"End running tasks at once."`
}

type StopDaemonResult struct {
	Stopping bool `json:"stopping"`
}

// Success is the result of what either works or is an error.
type Success struct {
	Success bool `json:"success"`
}

// NotEmpty refuses an empty parameter, with an error of server.InvalidParam.
func NotEmpty(param, value string) error {
	if strings.TrimSpace(value) != "" {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: param, Expected: "a string that is not empty", Received: "an empty string"})
}

// NotEmptyIfGiven is NotEmpty for a parameter that may be absent.
func NotEmptyIfGiven(param string, value *string) error {
	if value == nil {
		return nil
	}
	return NotEmpty(param, *value)
}
