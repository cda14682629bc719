package cli

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/cli/interrupt"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// whySilent says of a hub that has been reached before why it does not answer.
func whySilent(ctx context.Context, s *invocation.Settings) string {
	silent := &hubprocess.SilentError{Held: true}
	if p, err := s.Project(); err == nil {
		silent.PID, _ = p.Holder(ctx)
	}
	return silent.Error()
}

// gatesFail is the exit status of work whose gates still fail.
const gatesFail = 4

// statusOf is how a session that was attended ended, as an error with the exit status.
func statusOf(session wire.Session, interrupted bool) error {
	switch {
	case session.Gates != nil && session.Gates.State == wire.GatesStopped && interrupted:
		return interrupt.Err
	case session.Gates.Failed():
		return invocation.ExitStatus(gatesFail)
	case session.Status == wire.Completed && (session.Gates == nil || session.Gates.State == wire.GatesPassed):
		return nil
	case session.Status == wire.Interrupted && interrupted:
		return interrupt.Err
	}
	return invocation.ExitStatus(1)
}
