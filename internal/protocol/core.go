package protocol

import (
	"encoding/json"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/logging"
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
