package cli

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
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
		return term.ErrInterrupted
	case session.Gates.Failed():
		return invocation.ExitStatus(gatesFail)
	case session.Status == wire.Completed && (session.Gates == nil || session.Gates.State == wire.GatesPassed):
		return nil
	case session.Status == wire.Interrupted && interrupted:
		return term.ErrInterrupted
	}
	return invocation.ExitStatus(1)
}

// attending are the options of how a session is attended.
func attending(ctx context.Context, s *invocation.Settings, signals <-chan os.Signal) turn.Options {
	return turn.Options{
		Signals: signals, EndNow: func() { os.Exit(term.Status) },
		SilentAfter: s.AnswerWithin, WhySilent: func() string { return whySilent(ctx, s) },
	}
}

// sendDecision answers a question, and says how it was taken.
func sendDecision(ctx context.Context, cmd *cobra.Command, s *invocation.Settings, c *client.Client, d wire.Decision) error {
	r, raw, err := wire.Decide(ctx, c, d)
	if err != nil {
		return err
	}
	if s.JSON {
		if err := term.Raw(cmd.OutOrStdout(), raw); err != nil || r.Success {
			return err
		}
		return invocation.ExitStatus(1)
	}
	if !r.Success {
		return errors.New(term.Line(cmp.Or(r.Error, "the question could not be answered")))
	}
	invocation.Progress(cmd, s, "%s: %s", turn.ShortID(d.ID), r.Status)
	if r.ToldTaskID != "" {
		invocation.Progress(cmd, s, "the agent is told with its next prompt: %s", r.ToldTaskID)
	}
	return nil
}
