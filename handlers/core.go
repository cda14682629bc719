package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// ProtocolVersion is the version of JSON-RPC that initialize reports.
const ProtocolVersion = "2.0"

// MethodHint is the hint in the error for an unknown method, for [server.Options].
const MethodHint = "listMethods lists the methods"

// A Core has the dependencies of the core methods.
type Core struct {
	Version  string         // of duet-rpc
	LogLevel *slog.LevelVar // setLogLevel sets it
	Now      func() time.Time
	Logger   *slog.Logger // logs requests to shut down; may be nil
	// Trust, if set, trusts the current configuration of the project.
	Trust func() error
	// Workspaces, if set, stores which connections do not trust the workspace, and the
	// environments of clients.
	Workspaces *Workspaces
	// Build, if set, notes the build of a connection's client, "" if it is unknown, and returns the
	// daemon's answer. It must not block.
	Build func(ctx context.Context, conn *server.Conn, p protocol.ClientBuildParams) DaemonBuild
	// Unwatched, if set, remembers sessions that worked without a client.
	Unwatched *Unwatched
	// Issues, if set, lists problems and remedies. It must not block.
	Issues func() []string
}

// RegisterCore registers the methods that need no hub (docs/methods.md).
func RegisterCore(reg *server.Registry, core Core) {
	server.Handle(reg, "initialize", core.initialize(reg),
		server.Doc("Returns the server's name and version. No handshake is needed. A client that sends its capabilities gets those of duet-rpc."))
	server.Handle(reg, "ping", core.ping, server.Doc("Returns the current time."))
	server.Handle(reg, "health", core.health, server.Doc("Returns whether everything works."))
	server.HandleRaw(reg, "echo", echo, server.Doc("Returns its params unchanged; null if there are none."))
	server.Handle(reg, "version", core.version, server.Doc("Returns the version of duet-rpc."))
	server.Handle(reg, "listMethods", listMethods(reg), server.Doc("Lists the methods."))
	server.Handle(reg, "describeMethods", describeMethods(reg), server.Doc("Lists the methods with their parameters and results as text."))
	server.Handle(reg, "rpc.discover", discover(reg, core.Version),
		server.Doc("Describes the methods as an OpenRPC document with JSON Schemas."))
	server.Handle(reg, "setLogLevel", core.setLogLevel, server.Doc("Sets the log level until the process ends."))
	server.Handle(reg, "shutdown", core.shutdown, server.Final(), server.Doc("Ends the connection, and the process that an editor started "+
		"for it. Later input is dropped, and running requests get time to end. With reason or timeout_ms, it waits for them first and reports "+
		"the outcome. The project's daemon and its work continue."))
	server.Handle(reg, "client.environment", core.clientEnvironment, server.Doc("Sets the client's environment for the agents, builds, "+
		"gates and terminals that it starts on this connection. Another call replaces it. The daemon keeps it only in memory. Without it, they "+
		"get the daemon's environment."))
	server.Handle(reg, "client.build", core.clientBuild, server.Doc("Sends the build of a client that could start a daemon itself. A daemon "+
		"of another build ends if it is idle and has no client of its own build. Otherwise it continues until then, and health reports it."))
	server.HandleRaw(reg, "exit", exit, server.Final(), server.Doc("Ends the connection, and the process if an editor started it."))
}

type none = protocol.Empty

// families lists the method families. A family is offered if reg has its method.
var families = []struct{ name, method string }{
	{"core", "initialize"},
	{"editor", "editor.offer"},
	{"task", "task.submit"},
	{"session", "launchSession"},
	{"executor", "execute_prompt"},
	{"terminal", "terminal.write"},
}

// offerMethods adds the method families of reg, and the kinds of events.
func offerMethods(c *protocol.Capabilities, reg *server.Registry) {
	methods := map[string]bool{}
	for _, m := range reg.Methods() {
		methods[m.Name] = true
	}
	for _, f := range families {
		if methods[f.method] {
			c.MethodFamilies = append(c.MethodFamilies, f.name)
		}
	}
	if methods["event.subscribe"] {
		c.EventKinds = protocol.SubscribedKinds
	}
}

func (c Core) initialize(reg *server.Registry) func(context.Context, protocol.InitializeParams) (protocol.InitializeResult, error) {
	return func(ctx context.Context, p protocol.InitializeParams) (protocol.InitializeResult, error) {
		result := protocol.InitializeResult{
			ServerInfo: protocol.ServerInfo{Name: "duet-rpc", Version: c.Version}, ProtocolVersion: ProtocolVersion,
		}
		if trusted := p.WorkspaceTrusted; trusted != nil {
			if *trusted && c.Trust != nil {
				if err := c.Trust(); err != nil {
					return result, fmt.Errorf("trusting the workspace: %w", err)
				}
			}
			c.Workspaces.trust(server.ConnFrom(ctx), *trusted)
		}
		if p.Capabilities != nil && string(p.Capabilities) != "null" {
			limits := server.ConnFrom(ctx).Limits()
			result.Capabilities = &protocol.Capabilities{
				Batch: true, Cancellation: true, Charset: "utf-8",
				MaxFrameBytes: limits.MaxFrame, MaxHeaderBytes: limits.MaxHeader,
				LongRunning: longRunning(reg),
			}
			offerMethods(result.Capabilities, reg)
		}
		return result, nil
	}
}

// longRunning returns the names of the methods that run beside other requests.
func longRunning(reg *server.Registry) []string {
	names := []string{}
	for _, m := range reg.Methods() {
		if m.LongRunning {
			names = append(names, m.Name)
		}
	}
	return names
}

func (c Core) ping(context.Context, none) (protocol.PingResult, error) {
	return protocol.PingResult{Pong: true, Timestamp: protocol.Timestamp(c.Now())}, nil
}

func (c Core) health(context.Context, none) (protocol.Health, error) {
	r := protocol.Health{Status: "ok", Version: c.Version}
	if c.Issues != nil {
		r.Issues = c.Issues()
	}
	if len(r.Issues) > 0 {
		r.Status = "degraded"
	}
	return r, nil
}

func echo(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil }

func (c Core) version(context.Context, none) (protocol.VersionResult, error) {
	return protocol.VersionResult{Version: c.Version}, nil
}

func listMethods(reg *server.Registry) func(context.Context, none) ([]protocol.MethodListed, error) {
	return func(context.Context, none) ([]protocol.MethodListed, error) {
		var list []protocol.MethodListed
		for _, m := range reg.Methods() {
			list = append(list, protocol.MethodListed{Name: m.Name, Description: m.Doc})
		}
		return list, nil
	}
}

func describeMethods(reg *server.Registry) func(context.Context, none) ([]protocol.MethodDescribed, error) {
	return func(context.Context, none) ([]protocol.MethodDescribed, error) {
		var list []protocol.MethodDescribed
		for _, m := range reg.Methods() {
			d := protocol.MethodDescribed{
				Name: m.Name, Description: m.Doc, Params: []string{}, Returns: m.Result().String(), LongRunning: m.LongRunning,
			}
			for _, p := range m.Params().Properties {
				d.Params = append(d.Params, p.String())
			}
			list = append(list, d)
		}
		return list, nil
	}
}

func discover(reg *server.Registry, version string) func(context.Context, none) (OpenRPCDocument, error) {
	return func(context.Context, none) (OpenRPCDocument, error) {
		return Describe(reg, version), nil
	}
}

func (c Core) setLogLevel(_ context.Context, p protocol.SetLogLevelParams) (protocol.SetLogLevelResult, error) {
	c.LogLevel.Set(p.Level.Slog())
	return protocol.SetLogLevelResult{Level: p.Level, Success: true}, nil
}

// clientEnvironment stores the environment of a client; see package clientenv.
func (c Core) clientEnvironment(ctx context.Context, p protocol.ClientEnvironmentParams) (protocol.Success, error) {
	if p.Environment == nil {
		return protocol.Success{}, server.InvalidParam(server.ParamError{
			Param: "environment", Expected: "an object of strings", Received: "null",
		})
	}
	if err := p.Environment.Check(); err != nil {
		return protocol.Success{}, server.InvalidParam(server.ParamError{
			Param: "environment", Expected: "variables within the limits", Received: err.Error(),
		})
	}
	c.Workspaces.setEnvironment(ctx, p.Environment)
	return protocol.Success{Success: true}, nil
}

// A DaemonBuild is the answer to client.build.
type DaemonBuild struct {
	Version  string `json:"version" doc:"The daemon's version."`
	Protocol int    `json:"protocol" doc:"Version of the protocol between clients and the daemon. A client of another build uses the daemon only if the versions are equal."`
	Notice   string `json:"notice,omitempty" doc:"With notices: as in the result of event.subscribe."`
	Ends     bool   `json:"ends" doc:"true: the daemon closes the connection and ends, so that the client can start another one."`
}

func (c Core) clientBuild(ctx context.Context, p protocol.ClientBuildParams) (DaemonBuild, error) {
	if c.Build == nil {
		return DaemonBuild{Version: c.Version}, nil
	}
	answer := c.Build(ctx, server.ConnFrom(ctx), p)
	if p.Notices && !answer.Ends {
		answer.Notice = c.Unwatched.Notice()
	}
	return answer, nil
}

const maxShutdownMS = 60_000

// shutdown ends the connection (docs/protocol.md). The executor catalog defines reason and timeout_ms.
func (c Core) shutdown(ctx context.Context, p protocol.ShutdownParams) (protocol.ShutdownResult, error) {
	conn := server.ConnFrom(ctx)
	c.logShutdown(p.Reason)
	result := protocol.ShutdownResult{Message: "Shutting down gracefully"}
	wait := time.Duration(0)
	if p.TimeoutMS != nil {
		wait = time.Duration(min(*p.TimeoutMS, maxShutdownMS)) * time.Millisecond
	}
	if p.Reason != nil || p.TimeoutMS != nil {
		result.Status = "idle"
		if conn.InFlight() > 0 {
			result.Status = "completed"
			ctx, cancel := context.WithTimeout(ctx, wait)
			defer cancel()
			if !conn.Wait(ctx) {
				result.Status = "interrupted"
			}
		}
	}
	return result, nil
}

// logShutdown logs a client's request to end its connection, with the reason.
func (c Core) logShutdown(reason *string) {
	switch {
	case c.Logger == nil:
	case reason == nil:
		c.Logger.Info("shutdown requested")
	default:
		c.Logger.Info("shutdown requested", "reason", *reason)
	}
}

func exit(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }
