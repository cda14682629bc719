// Package handlers has the methods of duet-rpc, one file a family, with typed parameters and results.
// Package server reads and writes the messages.
package handlers

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/server"
)

// A Domain has the dependencies of the methods that need the hub. All functions may be called from
// any goroutine.
type Domain struct {
	// Hub returns the hub. If there is none, the error is a *domain.Error of KindUnavailable with the
	// reason.
	Hub     func(ctx context.Context) (*hub.Hub, error)
	Version string
	Now     func() time.Time
	// Stop begins to end the process, after the reply is queued, and does not block. With force, the
	// process does not wait for running work.
	Stop func(force bool)
	// Configuration returns the project's current configuration; restricted, the one for a client
	// that does not trust the workspace.
	Configuration func(restricted bool) (*config.Config, error)
	Clients       func() int      // open connections
	Sockets       func() []string // paths on which the daemon listens; may be nil
	// Listen opens another socket, unless the daemon listens there already. It may wait for a lock on the
	// socket's directory; nil: this process has no sockets.
	Listen   func(ctx context.Context, path string) error
	Unserved func() []string // clients that look for a daemon here and cannot find it, with the reason; may be nil
	Projects Projects        // nil: this process is no daemon
	Logger   *slog.Logger
	// EditorFiles, if set, has the connections that read files for turns.
	EditorFiles *Readers
	// Workspaces, if set, has the connections that do not trust the workspace.
	Workspaces *Workspaces
	// Unwatched, if set, remembers sessions that worked without a client.
	Unwatched *Unwatched
	// AgentNotes, if set, has the last reports of agents.
	AgentNotes *agentlink.Notes
}

// RegisterDomain registers the native methods that need the hub. flush waits until all subscribers have
// all events so far, or its context ends.
func RegisterDomain(reg *server.Registry, d Domain) (flush func(context.Context)) {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	registerUsage(reg, d)
	registerDaemon(reg, d)
	registerProjects(reg, d)
	registerTriggers(reg, d)
	registerSessions(reg, d, registerEditor(reg, d))
	registerAgents(reg, d)
	registerSignIn(reg, d)
	registerNativeSessions(reg, d)
	registerBuilds(reg, d)
	registerGates(reg, d)
	registerItems(reg, d)
	registerExport(reg, d)
	registerChanges(reg, d)
	registerAttachments(reg, d)
	registerApprovals(reg, d)
	registerRules(reg, d)
	registerAsking(reg, d)
	registerMCP(reg, d)
	registerPreview(reg, d)
	w := newWatching()
	s := registerEvents(reg, d, w)
	registerTerminals(reg, d, w)
	return s.flushed
}

// checkParams checks the rules for parameters that are not in their schema. The error is one of
// server.InvalidParam.
func checkParams(params any) error {
	switch p := params.(type) {
	case protocol.StartParams:
		return checkStart(p)
	case protocol.PromptParams:
		return checkPrompt(p)
	case protocol.ForkParams:
		return checkFork(p)
	case protocol.StartAttemptsParams:
		return checkAttempts(p)
	case protocol.DecisionParams:
		return checkDecision(p)
	case protocol.AskParams:
		return checkAsk(p)
	case protocol.CallToolParams:
		return checkCallTool(p)
	case protocol.SubscribeParams:
		return checkSubscribe(p)
	case protocol.UsageParams:
		return checkUsage(p)
	case protocol.StartTerminalParams:
		return checkTerminal(p)
	case protocol.WriteTerminalParams:
		return checkWrite(p)
	case protocol.ResizeTerminalParams:
		return checkResize(p)
	case protocol.AttachTerminalParams:
		return checkAttach(p)
	case interface{ Check() error }:
		return p.Check()
	}
	return nil
}

// handle registers a method of the hub. The method checks its parameters first. The hub's errors get
// the codes of the family.
func handle[P, R any](reg *server.Registry, d Domain, f protocol.Family, name string,
	h func(ctx context.Context, hb *hub.Hub, p P) (R, error), options ...server.Option,
) {
	server.Handle(reg, name, func(ctx context.Context, p P) (R, error) {
		var none R
		if err := checkParams(p); err != nil {
			return none, f.Error(err)
		}
		hb, err := d.Hub(ctx)
		if err != nil {
			return none, f.Error(err)
		}
		result, err := h(d.Workspaces.Context(ctx), hb, p)
		if err != nil {
			return none, f.Error(hb.OrEnding(ctx, err))
		}
		return result, nil
	}, options...)
}

// hubKind returns the kind of a *domain.Error, or "".
func hubKind(err error) string {
	var e *domain.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// beforeRow returns the row of the turn with an id, for paging, or 0 for "".
func beforeRow(ctx context.Context, h *hub.Hub, id string) (int64, error) {
	if id == "" {
		return 0, nil
	}
	s, err := h.Query().Turn(ctx, id)
	return s.ID, err
}

// Workspaces stores which connections belong to an editor whose user does not trust the workspace
// (initialize), and the environments of clients (client.environment). It forgets a connection when
// that ends. A nil one is empty. Its methods may be called from any goroutine.
type Workspaces struct {
	mu           sync.Mutex
	restricted   map[*server.Conn]struct{}
	environments map[*server.Conn]clientenv.Environment
}

// NewWorkspaces returns an empty one.
func NewWorkspaces() *Workspaces {
	return &Workspaces{restricted: make(map[*server.Conn]struct{}), environments: make(map[*server.Conn]clientenv.Environment)}
}

// Context returns the context of a request with the trust and the environment of its connection.
func (w *Workspaces) Context(ctx context.Context) context.Context {
	if w == nil {
		return ctx
	}
	conn := server.ConnFrom(ctx)
	w.mu.Lock()
	_, restrict := w.restricted[conn]
	e := w.environments[conn]
	w.mu.Unlock()
	if restrict {
		ctx = clientenv.Restrict(ctx)
	}
	if e != nil {
		ctx = clientenv.Context(ctx, e)
	}
	return ctx
}

// setEnvironment stores a client's environment until its connection ends. ctx must be the context of
// an inline handler.
func (w *Workspaces) setEnvironment(ctx context.Context, e clientenv.Environment) {
	conn := server.ConnFrom(ctx)
	if w == nil || conn == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.environments[conn]; !known {
		context.AfterFunc(ctx, func() { // the context of inline handlers ends with the connection
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.environments, conn)
		})
	}
	w.environments[conn] = e
}

// trust stores whether an editor's user trusts the workspace, until its connection ends.
func (w *Workspaces) trust(conn *server.Conn, trusted bool) {
	if w == nil || conn == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if trusted {
		delete(w.restricted, conn)
		return
	}
	if _, known := w.restricted[conn]; known {
		return
	}
	started := conn.Go(func(ctx context.Context) {
		<-ctx.Done()
		w.trust(conn, true)
	})
	if started {
		w.restricted[conn] = struct{}{}
	}
}

func (w *Workspaces) isRestricted(conn *server.Conn) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, restricted := w.restricted[conn]
	return restricted
}

// Unwatched stores which sessions ran when the last subscription ended. The next client then shows
// that they continued, once for each user. A nil one stores nothing. Its methods may be called from
// any goroutine.
type Unwatched struct {
	once func() bool // returns true once for each user

	mu       sync.Mutex // guards the fields below
	watching int        // number of subscriptions
	sessions []string   // names of their turns
}

// NewUnwatched returns an empty one. once must return true once for each user.
func NewUnwatched(once func() bool) *Unwatched { return &Unwatched{once: once} }

// statusWithin is how long the hub may take to list the running sessions.
const statusWithin = 200 * time.Millisecond

func (u *Unwatched) begin() {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.watching++
}

func (u *Unwatched) end(h *hub.Hub) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.watching--; u.watching > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), statusWithin)
	defer cancel()
	status, err := h.Status(ctx)
	if err != nil { // the hub is ending, and its sessions end with it
		return
	}
	u.sessions = nil
	for _, s := range status.Running {
		if s.State != domain.WaitingInput {
			u.sessions = append(u.sessions, s.Name())
		}
	}
}

// Notice returns a message that sessions continued without a client, for the client to show. It
// returns "" if none did, or if the user got the message before.
func (u *Unwatched) Notice() string {
	if u == nil {
		return ""
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.sessions) == 0 || !u.once() {
		return ""
	}
	which := strings.Join(u.sessions, ", ")
	u.sessions = nil
	return which + " continued without an editor or shell; see when_alone in [daemon]"
}
