package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/attach"
	"github.com/duet-rpc/duet-rpc/internal/cli/candidate"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

const attachHelp = `Work in a terminal of the project's hub as if it were this one: what you type
goes there, and what it prints appears here. C-] detaches; the program goes on.
Any number of people can attach to a terminal; its size is that of the one who
attached, or resized, last.

Without TERMINAL the terminals are listed. An agent's terminal can only be
watched.

--new starts a program in a new terminal: the given command, else your shell. With
--tmux NAME it runs in a tmux session, which others join with the same flags. The
program gets TERM, EDITOR, SSH_AUTH_SOCK and similar variables from here.

First you see what the terminal printed last. If standard input is not a
terminal, its contents are typed there, followed by C-d.

Exit status: that of the program; 128 or more if a signal ended it; 0 if you
detached; 1 if there is no such terminal, or no hub runs here, or the hub ended.`

func newAttachCommand(s *invocation.Settings) *cobra.Command {
	var o attach.Options
	cmd := &cobra.Command{
		Use: "attach [TERMINAL] | attach --new [COMMAND...]", Annotations: invocation.Begins(),
		Short:   "Work in a terminal of the project's hub",
		Long:    attachHelp,
		Example: "  duet-rpc attach --new\n  duet-rpc attach --new -- ls -la\n  duet-rpc attach --new --tmux work",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.New || len(args) == 0 {
				return nil
			}
			return invocation.Exactly("TERMINAL (or --new)")(cmd, args)
		},
		ValidArgsFunction: completeFirst(s, candidate.Terminals),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.CWD, err = invocation.FullPath(cmp.Or(o.CWD, ".")); err != nil {
				return err
			}
			if o.New {
				o.Command = args
			} else if len(args) > 0 {
				o.Terminal = args[0]
			}
			return invocation.WithHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				if !o.New && o.Terminal == "" {
					return listTerminals(ctx, cmd, s, c)
				}
				status, err := attach.Run(ctx, c, cmd.ErrOrStderr(), o)
				if err == nil && status != 0 {
					err = invocation.ExitStatus(status)
				}
				return err
			}, client.WithQueue(attach.Queue))
		},
	}
	cmd.Flags().BoolVar(&o.New, "new", false, "start a program in a new terminal")
	cmd.Flags().StringVar(&o.CWD, "cwd", "", "the directory in which a new terminal starts (default: this one)")
	cmd.Flags().StringVar(&o.Tmux, "tmux", "", "the tmux session in which a new terminal runs")
	cmd.Flags().SetInterspersed(false) // flags behind the command are the command's
	return cmd
}

// listTerminals prints the terminals of the hub.
func listTerminals(ctx context.Context, cmd *cobra.Command, s *invocation.Settings, c *client.Client) error {
	terminals, raw, err := wire.Terminals(ctx, c)
	if err != nil {
		return err
	}
	if s.JSON {
		return term.Raw(cmd.OutOrStdout(), raw)
	}
	if len(terminals) == 0 {
		invocation.Progress(cmd, s, "no terminal runs; duet-rpc attach --new starts one")
		return nil
	}
	return attach.PrintList(cmd.OutOrStdout(), terminals)
}
