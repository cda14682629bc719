package sessions

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// offered is how many sessions can be picked from.
const offered = 500

func newPick(o Options) *cobra.Command {
	return &cobra.Command{
		Use: "pick", Args: o.Exactly(),
		Short: "Choose a session with a few typed letters, and print its id",
		Long: "Choose a session on the terminal, and print the id of its task. Letters that you type\n" +
			"narrow the list, the arrows or C-n and C-p move in it, RET chooses, ESC or C-c\ndoes not.\n" + o.Help,
		Example: "  duet-rpc prompt --continue \"$(duet-rpc session pick)\" \"And now fix it\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !term.IsTerminal(os.Stdin) || !term.IsTerminal(os.Stderr) {
				return errors.New("there is no terminal to choose on; session list lists the sessions")
			}
			return o.Hub(cmd, func(ctx context.Context, c *client.Client) error {
				list, _, err := wire.Call[struct{ Sessions []wire.Session }](ctx, c, "listSessions", map[string]any{"limit": offered, "archived": false})
				if err != nil {
					return err
				}
				chosen, err := term.Pick(ctx, os.Stdin, os.Stderr, offeredLines(list.Sessions))
				if err != nil {
					return err
				}
				if chosen < 0 {
					return errors.New("nothing was chosen")
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), term.Line(list.Sessions[chosen].TaskID))
				return err
			})
		},
	}
}

// offeredLines are a line for each session, in columns.
func offeredLines(list []wire.Session) (lines []string) {
	var task, status int
	for _, s := range list {
		task, status = max(task, len(s.TaskID)), max(status, len(s.Status))
	}
	for _, s := range list {
		lines = append(lines, fmt.Sprintf("%-*s  %-3s  %-*s  %s", task, s.TaskID, term.Age(s.LastActivity), status, s.Status, term.Line(s.Called())))
	}
	return lines
}
