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
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/leftopen"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/reach"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// answerHere answers a question where no hub runs. The agent that asked is gone; what
// an answer lets go on goes on in this process, which is the hub until that ends, or
// in a daemon where the configuration wants one.
func answerHere(cmd *cobra.Command, s *invocation.Settings, id string, decide func(wire.Approval) (wire.Decision, error)) error {
	isAsked := func(ctx context.Context, c *client.Client) error {
		_, _, err := inbox.Find(ctx, c, id)
		return err
	}
	if err := invocation.LookedUp(cmd, s, isAsked); err != nil { // before a hub begins
		return err
	}
	view := turn.NewView(cmd.OutOrStdout(), cmd.ErrOrStderr(), s.NoColor, false)
	if s.JSON {
		view = turn.NewView(io.Discard, io.Discard, s.NoColor, false)
	}
	h, err := reach.Open(cmd.Context(), &s.Settings, s.LevelGiven(cmd), view.Note)
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
	view.Note(leftopen.WhatFollows(a, d, h.Here()))
	if err := sendDecision(ctx, cmd, s, h.Client, d); err != nil {
		return err
	}
	session, _, err := wire.SessionState(ctx, h.Client, a.ThreadID) // the last in it
	if err != nil || wire.Ended(session.State) || !h.Here() {
		return err
	}
	session, interrupted, err := turn.Attend(ctx, h.Client, view, session, attending(ctx, s, h.Interrupts))
	if err != nil {
		return err
	}
	view.Here = h.Here()
	view.End(session)
	return statusOf(session, interrupted)
}

// goThroughHere is goThrough where no hub runs.
func goThroughHere(cmd *cobra.Command, s *invocation.Settings, session string) error {
	if err := invocation.LookedUp(cmd, s, leftopen.Any(session)); err != nil { // before a hub begins
		return err
	}
	view := turn.NewView(cmd.OutOrStdout(), cmd.ErrOrStderr(), s.NoColor, false)
	h, err := reach.Open(cmd.Context(), &s.Settings, s.LevelGiven(cmd), view.Note)
	if err != nil {
		return err
	}
	defer h.Close()
	return leftopen.GoThrough(h.Context(), h.Client, view, leftopen.Options{Session: session, Here: h.Here(), Attend: attending(h.Context(), s, h.Interrupts)})
}

// attending are the options of how a session is attended.
func attending(ctx context.Context, s *invocation.Settings, signals <-chan os.Signal) turn.Options {
	return turn.Options{
		Signals: signals, EndNow: func() { os.Exit(interrupt.Status) },
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
		if err := output.Raw(cmd.OutOrStdout(), raw); err != nil || r.Success {
			return err
		}
		return invocation.ExitStatus(1)
	}
	if !r.Success {
		return errors.New(output.Line(cmp.Or(r.Error, "the question could not be answered")))
	}
	invocation.Progress(cmd, s, "%s: %s", inbox.ShortID(d.ID), r.Status)
	if r.ToldTaskID != "" {
		invocation.Progress(cmd, s, "the agent is told with its next prompt: %s", r.ToldTaskID)
	}
	return nil
}
