package invocation

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/reach"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// HubStatusHelp is what the commands over a hub have in common.
const HubStatusHelp = `
This talks to the project's hub, and starts a daemon if none runs. With --json the
hub's answer is printed unchanged.

Exit status: 0 if it succeeded; 1 if it was refused or failed, or no hub answers;
130 if you interrupted it (C-c twice ends at once).`

// WithHub runs do with a connection to the project's hub, until a signal
// comes. What the hub refuses is said in its own words.
func WithHub(cmd *cobra.Command, s *Settings, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	return turn.InWords(Connected(cmd, s, do, opts...))
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
			return term.Raw(cmd.OutOrStdout(), raw)
		}
		return print(r)
	})
}

// Connected is [WithHub] that leaves errors as they are.
func Connected(cmd *cobra.Command, s *Settings, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	ctx, stop := term.UntilInterrupted(cmd.Context())
	defer stop()
	err := reach.Do(ctx, reach.Options{Settings: &s.Settings, Client: opts, Begins: cmd.Annotations[begins] != ""}, do)
	var status ExitStatus
	if err != nil && ctx.Err() != nil && !errors.As(err, &status) {
		return term.ErrInterrupted
	}
	return err
}

// begins is the annotation of a command that can be the first in a project.
const begins = "begins"

// Begins are the annotations of a command that can be the first in a project: others are refused
// where nothing is kept.
func Begins() map[string]string { return map[string]string{begins: "work"} }

// Progress says something beside the result.
func Progress(cmd *cobra.Command, s *Settings, format string, args ...any) {
	if !s.JSON {
		side := cmd.ErrOrStderr()
		fmt.Fprintln(side, term.Lines(side, "— "+term.Line(fmt.Sprintf(format, args...))))
	}
}

// An ExitStatus ends the process with a status, and nothing more is said.
type ExitStatus int

func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }
