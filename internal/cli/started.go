package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// waitFlag adds --wait.
func waitFlag(cmd *cobra.Command, wait *bool) {
	cmd.Flags().BoolVar(wait, "wait", false, "show what the agent does until it ends; exit status 1 unless it completes")
}

// startWork has the hub start a session or a task, and prints its id, or waits for
// its end.
func startWork(cmd *cobra.Command, s *invocation.Settings, method string, params any, wait bool) error {
	return invocation.WithHub(cmd, s, func(ctx context.Context, c *client.Client) error {
		r, raw, err := wire.Call[wire.Started](ctx, c, method, params)
		if err != nil {
			return err
		}
		return sayStarted(ctx, cmd, s, c, r, raw, wait)
	})
}

// sayStarted prints the id of a task that was started, or waits for its end.
func sayStarted(ctx context.Context, cmd *cobra.Command, s *invocation.Settings, c *client.Client, r wire.Started, raw json.RawMessage, wait bool) error {
	id := cmp.Or(r.TaskID, r.Task)
	if !s.JSON {
		state := cmp.Or(r.State, r.Status)
		switch r.Delivered {
		case wire.DeliveredInjected:
			state = "the agent has it while it works"
		case wire.DeliveredQueued:
			state = "queued"
		}
		invocation.Progress(cmd, s, "%s · agent %s · %s", id, r.Agent, state)
	}
	switch {
	case wait:
		return waitFor(ctx, cmd, s, c, id, r.SessionID)
	case s.JSON:
		return term.Raw(cmd.OutOrStdout(), raw)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), term.Line(id))
	return err
}

// waitFor shows a task from its beginning to its end, and then tells how it
// ended by its exit status. With --json it prints what task.get tells at the
// end, and nothing else. The task goes on if this is interrupted.
func waitFor(ctx context.Context, cmd *cobra.Command, s *invocation.Settings, c *client.Client, task, session string) error {
	ctx, cancel := wire.WhileConnected(ctx, c)
	defer cancel()
	out, side := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if s.JSON {
		out, side = io.Discard, io.Discard
	}
	last, err := turn.Watch(ctx, c, turn.NewView(out, side, s.NoColor, false), session)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		invocation.Progress(cmd, s, "%s goes on; cancel it with: duet-rpc task cancel %s", task, task)
	}
	if err != nil {
		return wire.OrGone(ctx, err)
	}
	t, raw, err := wire.Call[wire.TaskState](ctx, c, "task.get", map[string]string{"taskId": last})
	if err != nil {
		return wire.OrGone(ctx, err)
	}
	if s.JSON {
		err = term.Raw(cmd.OutOrStdout(), raw)
	} else {
		invocation.Progress(cmd, s, "%s %s; go on with: duet-rpc session continue %s \"…\"", t.ID, t.Outcome(), t.ID)
	}
	switch {
	case err == nil && t.Gates.Failed():
		err = invocation.ExitStatus(gatesFail)
	case err == nil && (t.State != wire.Completed || t.Gates != nil && t.Gates.State != wire.GatesPassed):
		err = invocation.ExitStatus(1)
	}
	return err
}
