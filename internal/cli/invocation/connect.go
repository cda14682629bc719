package invocation

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

// HubStatusHelp is what the commands over a hub have in common.
const HubStatusHelp = `
This talks to the project's hub, which is an editor's process or a daemon
(` + "`duet-rpc daemon start`" + `). Where none runs, what was kept can be listed, shown,
renamed, put away and deleted. With --json the hub's answer is printed unchanged.

Exit status: 0 if it succeeded; 1 if it was refused or failed, or it needs a hub
and none runs or answers; 130 if you interrupted it (C-c twice ends at once).`

// WithHub runs do with a connection to the project's hub, until a signal
// comes. What the hub refuses is said in its own words.
func WithHub(cmd *cobra.Command, s *Settings, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	return refusal.InWords(Connected(cmd, s, do, opts...))
}

// AskHub calls a method of the project's hub, and prints what it answers: by print,
// or with --json as it came.
func AskHub[R any](cmd *cobra.Command, s *Settings, method string, params any, print func(R) error) error {
	return WithHub(cmd, s, func(ctx context.Context, c *client.Client) error {
		r, raw, err := wire.Call[R](ctx, c, method, params)
		if err != nil {
			return err
		}
		if s.JSON {
			return output.Raw(cmd.OutOrStdout(), raw)
		}
		return print(r)
	})
}

// Connected is [WithHub] that leaves errors as they are.
func Connected(cmd *cobra.Command, s *Settings, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	return ConnectedOr(cmd, s, reach.Without(cmd.Annotations[WithoutHub]), do, opts...)
}

// ConnectedOr is [Connected] for a command that something else serves where no hub runs.
func ConnectedOr(cmd *cobra.Command, s *Settings, ServedWithout reach.Without, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	ctx, stop := interrupt.Until(cmd.Context())
	defer stop()
	o := Reaching(cmd, s, ServedWithout)
	o.Client = opts
	err := reach.Do(ctx, o, do)
	var status ExitStatus
	if err != nil && ctx.Err() != nil && !errors.As(err, &status) {
		return interrupt.Err
	}
	return err
}

// Reaching are the options of how a command reaches a hub.
func Reaching(cmd *cobra.Command, s *Settings, ServedWithout reach.Without) reach.Options {
	return reach.Options{
		Settings: &s.Settings, Without: ServedWithout, LevelGiven: s.LevelGiven(cmd),
		OnlyKept: func() { Progress(cmd, s, "no hub runs here; this is what was kept") },
	}
}

// LookedUp runs do with a connection to the project's hub, or with what was kept, and
// says nothing of that. do prints nothing: it may run more than once.
func LookedUp(cmd *cobra.Command, s *Settings, do func(context.Context, *client.Client) error) error {
	o := Reaching(cmd, s, reach.Kept)
	o.OnlyKept = nil
	return reach.LookUp(cmd.Context(), o, do)
}

// WithoutHub is the annotation of a command that says what serves it where no hub
// runs, a [reach.Without]; others have nothing to do with a hub that knows nothing
// yet.
const WithoutHub = "without-hub"

// ServedWithout is the annotation [WithoutHub].
func ServedWithout(w reach.Without) map[string]string {
	return map[string]string{WithoutHub: string(w)}
}

// Progress says something beside the result.
func Progress(cmd *cobra.Command, s *Settings, format string, args ...any) {
	if !s.JSON {
		side := cmd.ErrOrStderr()
		fmt.Fprintln(side, output.Lines(side, "— "+output.Line(fmt.Sprintf(format, args...))))
	}
}

// An ExitStatus ends the process with a status, and nothing more is said.
type ExitStatus int

func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
