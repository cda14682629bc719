package hub

import (
	"context"
	"log/slog"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Options configure a Hub. A field without "if set" is required.
type Options struct {
	Project       Project
	Configuration Configuration

	Database string // path of the store
	Root     string // of the project
	StateDir string // of the project: triggers do not watch it, and changes in it are not reverted
	// WorktreesDir is the directory with the git worktrees of sessions, absolute and free of links.
	// "": no session gets one. A session has a worktree if its working directory is below
	// WorktreesDir; nothing else is stored, because git knows the worktrees.
	WorktreesDir string

	Limits    config.Limits
	Executors func(catalog.Daemon) Executors // makes the executors, once
	Getenv    func(string) string
	Logger    *slog.Logger // nil: no log
	// Now is the clock of stored times; nil: time.Now. Tests set it.
	Now func() time.Time
	// Private, if set, returns the paths that an agent in a sandbox must not see: the configuration,
	// state and sockets of Duet, and files with keys.
	Private func() []string
	// KillAgents, if set, ends the agents that a dead process left behind.
	KillAgents func([]domain.Process)
	// Idle, if set, is called a moment after the last turn has ended. It can return memory to the
	// system.
	Idle func()
	// Removed, if set, receives a value when the database, or what [Project.Valid] checks, may have
	// been removed or replaced. Otherwise the hub polls each second.
	Removed <-chan struct{}
	// Lost, if set, is called once if the database was removed or replaced, or if [Project.Valid]
	// failed. The hub stores nothing more, and the caller must close the hub, but not from within
	// Lost. Lost must not block.
	Lost func(error)
}

// Configuration is the project's configuration as it is now. The hub reads it again each time that
// it needs a value, from any goroutine. [config.Live] implements it.
type Configuration interface {
	config.Agents
	ConfigChanges
	// Current returns the configuration for clients that trust the workspace or, with restricted, for
	// those that do not; see package clientenv. With an error it may return the last valid one.
	Current(restricted bool) (*config.Config, error)
	// Rules returns the rules that apply, also while the configuration cannot be read.
	Rules() []config.Rule
	// Budget returns the budgets that apply, also while the configuration cannot be read. It is
	// called for each tool call.
	Budget() config.Budget
}

// Project is the hub's access to the files and programs of its project. The hub calls it from any
// goroutine.
type Project interface {
	// OpenStore opens the store with the hub's callbacks.
	OpenStore(ctx context.Context, opts store.Options) (store.Store, error)
	// OpenWorktrees opens the project's git repository. trusts is false for a client that does not
	// trust the workspace.
	OpenWorktrees(ctx context.Context, trusts bool) (Worktrees, error)
	// Checkpoints returns how the files of a working directory are recorded before a turn; on is
	// false if they are not.
	Checkpoints(dir string) (opts checkpoint.Options, on bool)
	// EditorServer returns the MCP server with the tools of the user's editor for agents of a
	// session, by its UUID; nil if there is none.
	EditorServer(session string) *catalog.MCPServer
	// Valid returns an error if this process is no longer the project's hub. It is called often and
	// must be cheap.
	Valid() error
	// Replaced returns when the project's directory was replaced, or the zero time. Earlier rules and
	// answers do not count.
	Replaced() time.Time
	// SignInSeen is called when the end of a turn shows the agent's sign-in: the agent answered, or
	// requires a sign-in. The turn's own goroutine calls it, not the store's writer. The end of the
	// turn is stored after it returns, so a client that sees the end can read the sign-in state.
	SignInSeen(agent config.Agent, answered bool)
}

// Executors starts and finds executors.
type Executors interface {
	// Acquire returns an executor for a purpose and starts one if necessary. It waits until one is
	// available.
	Acquire(ctx context.Context, want catalog.LeaseRequest) (catalog.Lease, error)
	// HasRoom reports whether Acquire would return without waiting. The hub calls it again when a
	// turn has ended, after releasing its lease.
	HasRoom(want catalog.LeaseRequest) bool
	// Count returns the number of executors.
	Count() int
}
