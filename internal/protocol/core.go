// Package protocol has the messages of the client protocol (docs/protocol.md): the parameters and
// results of each native method, one file per family; and the data of events (events.go, values.go).
// Values that clients see unchanged have their types in package domain. Package handlers has the
// methods. The packages of internal/dialect have the messages of HumanLayer, AIWG and others.
package protocol

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/server"
)

type InitializeParams struct {
	Capabilities     json.RawMessage `json:"capabilities,omitempty" doc:"The client's capabilities. If present, the result has those of duet-rpc."`
	WorkspaceTrusted *bool           `json:"workspaceTrusted,omitempty" doc:"true: the user trusts this workspace in the editor, so the current .duet.toml of the project takes effect, as after duet-rpc trust. false: programs of .duet.toml do not run for this connection, even if it was trusted before; other clients are not affected. Absent: duet-rpc trust decides."`
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
	Batch          bool     `json:"batch" doc:"Whether batches are supported."`
	Cancellation   bool     `json:"cancellation" doc:"$/cancelRequest cancels a long-running request."`
	MaxFrameBytes  int      `json:"maxFrameBytes" doc:"Maximum size of a message body."`
	MaxHeaderBytes int      `json:"maxHeaderBytes" doc:"Maximum size of a header section."`
	Charset        string   `json:"charset" doc:"The charset of messages."`
	LongRunning    []string `json:"longRunning" doc:"Methods whose requests run concurrently and can be cancelled."`
	MethodFamilies []string `json:"methodFamilies" doc:"Supported families of methods: core, task, session, executor, terminal."`
	EventKinds     []string `json:"eventKinds,omitempty" doc:"The kinds of events that event.subscribe accepts."`
}

type PingResult struct {
	Pong      bool   `json:"pong"`
	Timestamp string `json:"timestamp" doc:"The current time, ISO 8601 in UTC with milliseconds."`
}

type Health struct {
	Status  string   `json:"status" doc:"ok or degraded."`
	Version string   `json:"version"`
	Issues  []string `json:"issues,omitempty" doc:"The problems and their remedies."`
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
	Params      []string `json:"params" doc:"name: type, or name?: type if it is optional."`
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
	Environment clientenv.Environment `json:"environment" doc:"At most 256 variables and 64 KiB. docs/configuration.md says which programs get which variables."`
}

type ClientBuildParams struct {
	Build    string `json:"build,omitempty" doc:"The build id of the program that the client would start as a daemon."`
	Version  string `json:"version,omitempty" doc:"The program's version."`
	Notices  bool   `json:"notices,omitempty" doc:"The client shows the notice in the result to its user."`
	Observes bool   `json:"observes,omitempty" doc:"The client only follows what happens. Its connection keeps no idle daemon running, and replaces none."`
}

type ShutdownParams struct {
	Reason    *string `json:"reason,omitempty" doc:"The reason, for the log."`
	TimeoutMS *uint   `json:"timeout_ms,omitempty" doc:"Time for running requests, in milliseconds; at most 60000."`
}

type ShutdownResult struct {
	Status  string `json:"status,omitempty" doc:"With reason or timeout_ms: idle (no request was running), completed (all requests ended) or interrupted (some did not)."`
	Message string `json:"message"`
}

type DaemonStatus struct {
	PID           int        `json:"pid"`
	UptimeSeconds int64      `json:"uptime_seconds"`
	StartedAt     string     `json:"started_at"`
	Health        string     `json:"health" doc:"healthy or degraded."`
	Issues        []string   `json:"issues,omitempty" doc:"The problems and their remedies."`
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
	Sockets []string `json:"sockets,omitempty" doc:"Paths of the sockets."`

	Unserved []string `json:"unserved,omitempty" doc:"Clients that look for a daemon here and cannot reach this one, with the reason. Examples: AIWG's command line, if a daemon of AIWG runs; clients of a socket of --listen that cannot be opened."`
}

type SupervisorStatus struct {
	Running        int             `json:"running"`
	Queued         int             `json:"queued"`
	MaxConcurrency int             `json:"maxConcurrency"`
	Tasks          SupervisedTasks `json:"tasks"`
}

type SupervisedTasks struct {
	Running []RunningTask `json:"running"`
	Queued  []QueuedTask  `json:"queued" doc:"In the order in which they start."`
}

type RunningTask struct {
	ID        string  `json:"id"`
	Prompt    string  `json:"prompt" doc:"The first 80 characters."`
	Agent     *string `json:"agent"`
	StartedAt *string `json:"startedAt"`
	PID       *int    `json:"pid"`
	Turn      string  `json:"turn" doc:"The turn's number, such as 12.3."`
	TurnUUID  string  `json:"turn_uuid"`
	State     string  `json:"state"`
}

type QueuedTask struct {
	ID       string  `json:"id"`
	Prompt   string  `json:"prompt" doc:"The first 80 characters."`
	Agent    *string `json:"agent"`
	Priority int     `json:"priority"`
	Turn     string  `json:"turn" doc:"The turn's number, such as 12.3."`
	TurnUUID string  `json:"turn_uuid"`
}

type WatcherStatus struct {
	Enabled        bool     `json:"enabled"`
	Paths          []string `json:"paths" doc:"Watched paths, relative to the project."`
	EventsReceived int64    `json:"events_received"`
	Directories    int      `json:"directories" doc:"Number of watched directories."`
	Problem        string   `json:"problem,omitempty" doc:"Why some paths are not watched, and the remedy."`
}

type SchedulerStatus struct {
	Enabled   bool              `json:"enabled"`
	Jobs      int               `json:"jobs" doc:"Number of triggers with a schedule."`
	LastFires map[string]string `json:"last_fires" doc:"The last scheduled time of each trigger since the start."`
}

type MessagingStatus struct {
	Enabled bool `json:"enabled"`
}

type StoreStatus struct {
	Path    string `json:"path,omitempty" doc:"The database file."`
	LastSeq int64  `json:"last_seq" doc:"Number of the last event."`
}

type ExecutorsStatus struct {
	Running int `json:"running"`
}

type ApprovalsStatus struct {
	Pending int `json:"pending"`
}

type StopDaemonParams struct {
	Force bool `json:"force,omitempty" doc:"End running turns immediately."`
}

type StopDaemonResult struct {
	Stopping bool `json:"stopping"`
}

type ListenParams struct {
	Path string `json:"path" doc:"An absolute path. Missing directories are created."`
}

func (p ListenParams) Check() error { return absolute("path", p.Path) }

// absolute refuses a relative path, which depends on the caller's working directory.
func absolute(param, path string) error {
	if filepath.IsAbs(path) {
		return nil
	}
	return server.InvalidParam(server.ParamError{Param: param, Expected: "an absolute path", Received: strconv.Quote(frame.Excerpt(path))})
}

// Success is the result of a method that returns no data.
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
