package handlers_test

import (
	"context"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/checkpoint"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hub"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// fakeProject implements [hub.Project] and [hub.Configuration]. A nil function returns zero values.
type fakeProject struct {
	config.Agents
	openStore     func(context.Context, store.Options) (store.Store, error)
	openWorktrees func(ctx context.Context, trusts bool) (hub.Worktrees, error)
	checkpoints   func(dir string) (checkpoint.Options, bool)
	current       func(restricted bool) (*config.Config, error)
	rules         func() []config.Rule

	unchanged chan struct{} // never receives: the configuration does not change
}

// fakeOf returns the project that a test may change.
func fakeOf(o *hub.Options) *fakeProject { return o.Project.(*fakeProject) }

// configure gives a project a configuration.
func configure(o *hub.Options, c config.Config) {
	fakeOf(o).current = func(bool) (*config.Config, error) { return &c, nil }
}

func (f *fakeProject) OpenStore(ctx context.Context, opts store.Options) (store.Store, error) {
	return f.openStore(ctx, opts)
}

func (f *fakeProject) OpenWorktrees(ctx context.Context, trusts bool) (hub.Worktrees, error) {
	return f.openWorktrees(ctx, trusts)
}

func (f *fakeProject) Checkpoints(dir string) (opts checkpoint.Options, on bool) {
	if f.checkpoints == nil {
		return checkpoint.Options{}, false
	}
	return f.checkpoints(dir)
}

func (f *fakeProject) Current(restricted bool) (*config.Config, error) {
	if f.current == nil {
		return f.onlyAgent()
	}
	return f.current(restricted)
}

// onlyAgent returns a configuration with the default agent and nothing else.
func (f *fakeProject) onlyAgent() (*config.Config, error) {
	agent, err := f.Resolve("")
	agent.Trusted = true
	return &config.Config{DefaultAgent: agent.Name, Agents: map[string]config.Agent{agent.Name: agent}}, err
}

func (f *fakeProject) Rules() []config.Rule {
	if f.rules == nil {
		return nil
	}
	return f.rules()
}

func (f *fakeProject) Valid() error                                  { return nil }
func (f *fakeProject) Replaced() time.Time                           { return time.Time{} }
func (f *fakeProject) Budget() config.Budget                         { return config.Budget{} }
func (f *fakeProject) Generation() uint64                            { return 0 }
func (f *fakeProject) Revoked() bool                                 { return false }
func (f *fakeProject) Watch() (changed <-chan struct{}, stop func()) { return f.unchanged, func() {} }
func (f *fakeProject) EditorServer(string) *catalog.MCPServer        { return nil }
func (f *fakeProject) SignInSeen(config.Agent, bool)                 {}
