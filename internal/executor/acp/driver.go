// Package acp is the driver of agents that speak the Agent Client Protocol
// (https://agentclientprotocol.com) on stdin and stdout.
//
// An agent lives from prompt to prompt of a session and has one turn at a time. Its work
// between prompts is a turn of its own (ownturn.go). Updates become reports of the turn's task, in
// order (updates.go). Requests of the agent are answered in client.go; permissions go to the hub
// (permission.go). Text that comes after the end of its turn is in latetext.go. What only one agent
// does is in a file with its name, such as codex.go. An agent is read no faster than the hub takes
// the reports. Messages have the form of version 2 of the protocol: package acp translates version 1.
//
// The [Driver] owns the agents and their goroutines; the process.Runner owns the processes.
package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/acp"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/executor/task"
)

// A Hub is the part of the hub's API that agents need beyond that of a task.
type Hub interface {
	RequestPermission(context.Context, catalog.RequestPermissionParams) (catalog.RequestPermissionResult, error)
	BeginTurn(context.Context, catalog.BeginTurnParams) (catalog.BeginTurnResult, error)
	ReportLate(context.Context, catalog.ReportLateParams) error
	ReportSession(context.Context, catalog.ReportSessionParams) error
	TerminalStarted(context.Context, catalog.TerminalStartedParams) error
	TerminalOutput(context.Context, catalog.TerminalOutputParams) error
	TerminalExit(context.Context, catalog.TerminalExitParams) error
}

// Options configure a Driver. The zero value means the defaults.
type Options struct {
	// EditorFiles, if set, provides unsaved files that the agent reads.
	EditorFiles catalog.EditorFiles
	// StartTimeout is how long an agent may take to answer initialize. Opening
	// a session may take four times as long. Default 30 s.
	StartTimeout time.Duration
	// CancelGrace is how long an agent may take to end its turn after
	// session/cancel, before it gets signals. Default 3 s.
	CancelGrace time.Duration
	// SilentAfter is how long an agent may show no activity before the driver reports silence.
	// Default 5 s.
	SilentAfter time.Duration
	// SilentToolAfter is the same limit during a tool call. Default 30 s, and never less than
	// SilentAfter.
	SilentToolAfter time.Duration
}

// A Driver runs prompts with agents and keeps the agents for later prompts. Its methods may be
// called from any goroutine. The caller must close it.
type Driver struct {
	ctx       context.Context // when it ends, the driver stops all waiting
	hub       Hub
	processes *process.Runner
	log       *slog.Logger
	opts      Options

	mu       sync.Mutex // guards sessions
	sessions map[string]*hubSession
	work     sync.WaitGroup
}

// New makes a Driver without agents. Its reports to the hub are retried until ctx ends.
func New(ctx context.Context, hub Hub, processes *process.Runner, log *slog.Logger, opts Options) *Driver {
	opts.StartTimeout = cmp.Or(opts.StartTimeout, 30*time.Second)
	opts.CancelGrace = cmp.Or(opts.CancelGrace, 3*time.Second)
	opts.SilentAfter = cmp.Or(opts.SilentAfter, 5*time.Second)
	opts.SilentToolAfter = max(cmp.Or(opts.SilentToolAfter, 30*time.Second), opts.SilentAfter)
	return &Driver{ctx: ctx, hub: hub, processes: processes, log: log, opts: opts, sessions: make(map[string]*hubSession)}
}

// Run runs a task to its end with the agent of its session, and starts the agent if needed.
func (d *Driver) Run(of *task.Task) (stopReason string, failed *task.Failure) {
	t := newTurn(of, d.opts)
	c := d.enter(t)
	if c == nil {
		return "", nil // stopped
	}
	defer d.leave(t, c)
	if failed = d.ready(t, c); failed != nil {
		return "", failed
	}
	a := c.agent
	if t.Stopped() && !t.Params.Unprompted { // else the agent works, and guard stops it
		if a != nil {
			a.finish(t)
			if a.session == "" { // this turn has started it; it may hang
				a.proc.Interrupt()
				c.dismiss()
			}
		}
		return "", nil
	}
	c.latest.Store(a)
	finished := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() { a.guard(t, finished) })
	watching.Go(func() { t.silence.Run(finished) })
	if t.Params.Unprompted {
		stopReason, failed = a.ownTurn(t)
	} else {
		stopReason, failed = a.prompt(t)
	}
	close(finished)
	watching.Wait()
	a.finish(t)
	a.noteGoal(t)
	a.reportBackground()
	needsSignIn := failed != nil && failed.Code == task.CodeAuthRequired
	if a.gone() || needsSignIn && len(a.programs.running()) == 0 { // a new process picks up a sign-in that happened meanwhile
		c.dismiss()
	}
	return stopReason, failed
}

// ready makes the session's agent ready for a turn. It starts the agent if there is none, or
// if the launch has changed.
func (d *Driver) ready(t *turn, c *hubSession) (failed *task.Failure) {
	if t.Params.Unprompted {
		if c.agent == nil {
			return &task.Failure{Code: task.CodeExited, Message: t.Launch.Name + " has ended meanwhile"}
		}
		c.agent.begin(t)
		return nil
	}
	if a := c.agent; a != nil && (a.key != launchKey(t) || a.proc.Ended()) {
		c.dismiss()
	}
	if t.Stopped() {
		return nil
	}
	if c.agent == nil {
		c.agent, failed = d.start(t)
		return failed
	}
	c.agent.begin(t)
	return nil
}

// Close ends each agent once it is idle, and returns when all have ended. The caller must send no
// prompt after it.
func (d *Driver) Close() {
	d.mu.Lock()
	all := make([]*hubSession, 0, len(d.sessions))
	for _, c := range d.sessions {
		all = append(all, c)
	}
	d.mu.Unlock()
	var ending sync.WaitGroup
	for _, c := range all {
		ending.Go(c.end)
	}
	ending.Wait()
	d.work.Wait()
}

// sessionRequest returns the request that opens a session for a turn: the session with that id,
// or a new one.
func (a *agent) sessionRequest(t *turn, id string) acp.OpenSessionRequest {
	servers, err := json.Marshal(a.mcpServers(t))
	if err != nil {
		panic("encoding texts: " + err.Error())
	}
	r := acp.OpenSessionRequest{
		SessionID: id, Workspace: acp.Workspace{CWD: t.Params.CWD, AdditionalDirectories: a.directories(t), MCPServers: servers},
	}
	if prompt := t.Session.SystemPrompt; prompt != "" && acp.Has(a.info.Session.SystemPrompt) {
		r.SystemPrompt = &acp.SystemPrompt{Mode: acp.SystemPromptAppend, Content: []acp.Content{acp.TextContent(prompt)}}
	}
	return r
}

func (a *agent) directories(t *turn) []string {
	if !acp.Has(a.info.Session.AdditionalDirectories) {
		return nil
	}
	return t.Session.AdditionalDirectories
}

// mcpServers returns the MCP servers that the agent can use, in the form that it expects.
//
// It reports servers that the agent cannot use and programs that are missing, because agents do
// not report servers that fail to start.
func (a *agent) mcpServers(t *turn) []acp.MCPServer {
	if t.servers != nil { // an attempt with them lost the session
		return t.servers
	}
	list := []acp.MCPServer{}
	can := a.info.MCP
	for _, s := range t.Session.MCPServers {
		switch {
		case s.Name == catalog.EditorServer && !can.Stdio: // the user did not configure it, so no notice is needed
		case s.Type == "http" && can.HTTP, s.Type == "sse" && can.SSE:
			list = append(list, acp.MCPServer{Type: s.Type, Name: s.Name, URL: s.URL, Headers: pairs(s.Headers)})
		case s.Type == "" || s.Type == "stdio":
			server := acp.MCPServer{Name: s.Name, Command: s.Command, Args: s.Args, Env: pairs(s.Env)}
			own := a.env.With(s.Env)
			path, err := own.Find(s.Command, t.Params.CWD)
			if err != nil {
				t.Problem(task.CodeMCPServer, fmt.Sprintf(
					"the MCP server %s will not start: the program %q %s; install it, or correct its command in the configuration", s.Name, s.Command,
					notStarted(err),
				))
			}
			if err != nil || !filepath.IsAbs(path) {
				path = ""
			}
			list = append(list, a.info.Program(server, path))
		default:
			t.Problem(task.CodeMCPServer,
				fmt.Sprintf("%s continues without the MCP server %s: the agent does not support servers of the type %s", a.name, s.Name, s.Type))
		}
	}
	t.servers = list
	return list
}

// notStarted explains why a program cannot be started.
func notStarted(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "is not an executable file"
	}
	return "was not found"
}
