// Package executorcall answers executors that ask something of the hub for the run that
// their session token stands for: what the run stands on, leave for a tool, a message
// for its conversation.
package executorcall

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/approval"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/conversation"
	"github.com/duet-rpc/duet-rpc/internal/credential"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/query"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Agents knows the configured agents.
type Agents interface {
	// AgentFor is the agent of a name for somebody who may be restricted. Its error can
	// be told.
	AgentFor(restricted bool, name string) (config.Agent, error)
	// ConfirmsAnswers reports whether the executor of an agent tells which answers the
	// agent has taken.
	ConfirmsAnswers(agent string) bool
}

// Reports are what agents say, as it is taken in.
type Reports interface {
	// EndMessage ends the message that a run's agent is writing: what was said before is
	// on its way to the store when it returns.
	EndMessage(ctx context.Context, run int64)
	// Answered notes that the agent of a run has an answer, which counts as taken when
	// the agent goes on.
	Answered(run int64, approval string)
}

// Options say what Calls stand on. All but the last are required.
type Options struct {
	Store        store.Reader
	Query        *query.Queries
	Write        func(ctx context.Context, change func(store.Tx) error) error // its error can be told
	Tokens       *credential.Tokens
	Keys         *credential.Keys
	Conversation *conversation.Writer
	Approvals    *approval.Inbox
	Reports      Reports
	Agents       Agents
	// GetsServers, if set, is told which MCP servers the agent of a run gets. It must not block.
	GetsServers func(s domain.Session, agent config.Agent, servers []catalog.MCPServer)
}

// Calls answers executors. Its methods may be called from any goroutine; their errors
// can be told.
type Calls struct {
	opts Options
	ctx  context.Context
}

// New makes Calls. When ctx ends, nothing is written any more.
func New(ctx context.Context, opts Options) *Calls { return &Calls{opts: opts, ctx: ctx} }
