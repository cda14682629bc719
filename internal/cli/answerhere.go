package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/inbox"
	"github.com/duet-rpc/duet-rpc/internal/cli/interrupt"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/reach"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// answerHere answers a question where no hub runs. The agent that asked is gone; what
// an answer lets go on goes on in this process, which is the hub until that ends, or
// in a daemon where the configuration wants one.
func answerHere(cmd *cobra.Command, s *settings, id string, decide func(wire.Approval) (wire.Decision, error)) error {
	isAsked := func(ctx context.Context, c *client.Client) error {
		_, _, err := inbox.Find(ctx, c, id)
		return err
	}
	if err := lookedUp(cmd, s, isAsked); err != nil { // before a hub begins
		return err
	}
	out, side := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if s.json {
		out, side = io.Discard, io.Discard
	}
	view := turn.NewView(out, side, s.NoColor, false)
	h, err := reach.Open(cmd.Context(), &s.Settings, s.levelGiven(cmd), view.Note)
	if err != nil {
		return err
	}
	defer h.Close()
	ctx := h.Context()
	a, _, err := inbox.Find(ctx, h.Client, id)
	if err != nil {
		return err
	}
	d, err := decide(a)
	if err != nil {
		return err
	}
	d.ID = a.ID
	view.Note(whatFollows(a, d, h.Here()))
	if err := sendDecision(ctx, cmd, s, h.Client, d); err != nil {
		return err
	}
	session, _, err := wire.SessionState(ctx, h.Client, a.ThreadID) // the last in it
	if err != nil || wire.Ended(session.State) || !h.Here() {
		return err
	}
	session, interrupted, err := turn.Attend(ctx, h.Client, view, session, turn.Options{
		Signals: h.Interrupts, EndNow: func() { os.Exit(interrupt.Status) },
		SilentAfter: s.AnswerWithin, WhySilent: func() string { return whySilent(ctx, s) },
	})
	if err != nil {
		return err
	}
	view.End(session)
	return statusOf(session, interrupted)
}

// whatFollows says what an answer leads to whose agent is gone.
func whatFollows(a wire.Approval, d wire.Decision, here bool) string {
	where := "in this process, until it ends"
	if !here {
		where = "in the hub that was started for it"
	}
	if d.Decision == wire.Approve || d.Decision == wire.Respond || d.Tell {
		return output.Line("no hub ran here, and the agent that asked is gone: its session goes on after " + a.TaskID + ", " + where)
	}
	return output.Line("no hub ran here, and the agent that asked is gone: the answer is kept, and nothing goes on before " + a.TaskID + " is continued")
}

// sendDecision answers a question, and says how it was taken.
func sendDecision(ctx context.Context, cmd *cobra.Command, s *settings, c *client.Client, d wire.Decision) error {
	r, raw, err := wire.Decide(ctx, c, d)
	if err != nil {
		return err
	}
	if s.json {
		if err := output.Raw(cmd.OutOrStdout(), raw); err != nil || r.Success {
			return err
		}
		return exitStatus(1)
	}
	if !r.Success {
		return errors.New(output.Line(cmp.Or(r.Error, "the question could not be answered")))
	}
	progress(cmd, s, "%s: %s", inbox.ShortID(d.ID), r.Status)
	if r.ToldTaskID != "" {
		progress(cmd, s, "the agent is told with its next prompt: %s", r.ToldTaskID)
	}
	return nil
}
