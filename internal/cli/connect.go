package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/interrupt"
	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/logging"
)

// hubStatusHelp is what the commands over a hub have in common.
const hubStatusHelp = `
This talks to the project's hub, which is an editor's process or a daemon
(` + "`duet-rpc daemon start`" + `). With --json the hub's answer is printed unchanged.

Exit status: 0 if it succeeded; 1 if it was refused or failed, or no hub runs
here or answers; 130 if you interrupted it (press C-c twice to end at once).`

// withHub runs do with a connection to the project's hub, until a signal
// comes. What the hub refuses is said in its own words.
func withHub(cmd *cobra.Command, s *settings, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	return wire.Refusal(connected(cmd, s, do, opts...))
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
	ctx, stop := interrupt.Until(cmd.Context())
	defer stop()
	err := reached(ctx, cmd, s, cmd.Annotations[readsHistory] != "", do, opts...)
	var status exitStatus
	if err != nil && ctx.Err() != nil && !errors.As(err, &status) {
		return interrupt.Err
	}
	return err
}

// reached is connected that leaves signals to do, and says whether what was kept does
// where no hub runs.
func reached(ctx context.Context, cmd *cobra.Command, s *settings, history bool, do func(context.Context, *client.Client) error, opts ...client.Option) error {
	p, err := s.Project()
	if err != nil {
		return err
	}
	if logging.LogsMessages(os.Getenv) {
		log := s.OpenLog()
		defer log.Close(logGrace)
		messages := log.Messages()
		opts = append(opts, client.WithTrace(func(sent bool, message []byte) { messages("hub", sent, message) }))
	}
	if history {
		c, end, kept, err := host.Reach(ctx, &s.Settings, p, opts...)
		if err == nil {
			defer end()
			if err = do(ctx, c); err == nil && kept {
				progress(cmd, s, "no hub runs here; this is what was kept")
			}
		}
		return err
	}
	c, err := host.Dial(ctx, &s.Settings, p, opts...)
	if err != nil && cmd.Annotations[startsDaemon] != "" && host.MayComeYet(err) && host.WantsDaemon(&s.Settings) {
		if err = host.EnsureDaemon(ctx, &s.Settings, p); err == nil {
			c, err = host.Dial(ctx, &s.Settings, p, opts...)
		}
	}
	if err == nil {
		defer c.Close()
		err = do(ctx, c)
	}
	return err
}

// startsDaemon marks a command for which a daemon is started where none runs
// and the configuration wants one; others have nothing to do with a hub that
// knows nothing yet.
const startsDaemon = "starts-daemon"

// startingDaemon is the mark.
func startingDaemon() map[string]string { return map[string]string{startsDaemon: "yes"} }

// readsHistory marks a command that asks of what is kept alone, and is answered where
// no hub runs, too.
const readsHistory = "reads-history"

// readingHistory is the mark.
func readingHistory() map[string]string { return map[string]string{readsHistory: "yes"} }

// progress says something beside the result.
func progress(cmd *cobra.Command, s *settings, format string, args ...any) {
	if !s.json {
		fmt.Fprintf(cmd.ErrOrStderr(), "— %s\n", output.Line(fmt.Sprintf(format, args...)))
	}
}
