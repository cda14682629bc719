package agentsetting

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Sessions are what agents have told of their sessions, as of the store's ThreadReader.
type Sessions interface {
	AgentSession(ctx context.Context, thread int64) (domain.AgentSessionSeen, error)
	LastAgentSession(ctx context.Context, agent string) (domain.AgentSessionSeen, error)
}

// ReportedBy is what the agent of a thread has told of its session, or else, told last
// in another thread. thread may be 0.
func ReportedBy(ctx context.Context, from Sessions, thread int64, agent string) (domain.AgentSession, error) {
	if thread != 0 {
		seen, err := from.AgentSession(ctx, thread)
		if err != nil || seen.Agent == agent && seen.Agent != "" {
			return seen.AgentSession, err
		}
	}
	seen, err := from.LastAgentSession(ctx, agent)
	return seen.AgentSession, err
}
