package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/interrupt"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/reach"
	"github.com/duet-rpc/duet-rpc/internal/cli/refusal"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// hubStatusHelp is what the commands over a hub have in common.
const hubStatusHelp = `
This talks to the project's hub, which is an editor's process or a daemon
(` + "`duet-rpc daemon start`" + `). Where none runs, what was kept can be listed, shown,
renamed, put away and deleted. With --json the hub's answer is printed unchanged.

Exit status: 0 if it succeeded; 1 if it was refused or failed, or it needs a hub
and none runs or answers; 130 if you interrupted it (C-c twice ends at once).`

// withHub runs do with a connection to the project's hub, until a signal
// comes. What the hub refuses is said in its own words.
func withHub(cmd *cobra.Command, s *settings, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	return refusal.InWords(connected(cmd, s, do, opts...))
}

// askHub calls a method of the project's hub, and prints what it answers: by print,
// or with --json as it came.
func askHub[R any](cmd *cobra.Command, s *settings, method string, params any, print func(R) error) error {
	return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
		r, raw, err := wire.Call[R](ctx, c, method, params)
		if err != nil {
			return err
		}
		if s.json {
			return output.Raw(cmd.OutOrStdout(), raw)
		}
		return print(r)
	})
}

// connected is withHub that leaves errors as they are.
func connected(cmd *cobra.Command, s *settings, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	return connectedOr(cmd, s, reach.Without(cmd.Annotations[withoutHub]), do, opts...)
}

// connectedOr is connected for a command that something else serves where no hub runs.
func connectedOr(cmd *cobra.Command, s *settings, without reach.Without, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	ctx, stop := interrupt.Until(cmd.Context())
	defer stop()
	o := reaching(cmd, s, without)
	o.Client = opts
	err := reach.Do(ctx, o, do)
	var status exitStatus
	if err != nil && ctx.Err() != nil && !errors.As(err, &status) {
		return interrupt.Err
	}
	return err
}

// reaching are the options of how a command reaches a hub.
func reaching(cmd *cobra.Command, s *settings, without reach.Without) reach.Options {
	return reach.Options{
		Settings: &s.Settings, Without: without, LevelGiven: s.levelGiven(cmd),
		OnlyKept: func() { progress(cmd, s, "no hub runs here; this is what was kept") },
	}
}

// lookedUp runs do with a connection to the project's hub, or with what was kept, and
// says nothing of that.
func lookedUp(cmd *cobra.Command, s *settings, do func(context.Context, *client.Client) error) error {
	o := reaching(cmd, s, reach.Kept)
	o.OnlyKept = nil
	return reach.Do(cmd.Context(), o, do)
}

// withoutHub is the annotation of a command that says what serves it where no hub
// runs, a [reach.Without]; others have nothing to do with a hub that knows nothing
// yet.
const withoutHub = "without-hub"

// without is the annotation.
func without(w reach.Without) map[string]string { return map[string]string{withoutHub: string(w)} }

// progress says something beside the result.
func progress(cmd *cobra.Command, s *settings, format string, args ...any) {
	if !s.json {
		side := cmd.ErrOrStderr()
		fmt.Fprintln(side, output.Lines(side, "— "+output.Line(fmt.Sprintf(format, args...))))
	}
}
