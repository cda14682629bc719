package sessions

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

func newDelete(o Options) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete ID", Args: o.Exactly("ID"), ValidArgsFunction: o.Completes,
		Short: "Delete a session's conversation for good",
		Long: "Delete a session's conversation with all that only it has: what was said and done,\n" +
			"attachments, questions, rules and the former contents of files. Files of the\nproject stay as they are. A conversation that runs has to be interrupted first.\n" +
			"Sessions that others were forked from stay for those, in the archive.\n" + o.Help,
		Example: "  duet-rpc session delete task-0001",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := o.Find(cmd, args[0])
			if err != nil {
				return err
			}
			if !yes {
				question := fmt.Sprintf("Delete the conversation of %s (%s) for good?", s.TaskID, term.Short(s.Called()))
				if err := o.AskYes(cmd, question, s.TaskID+" was not deleted", "duet-rpc session delete "+s.TaskID); err != nil {
					return err
				}
			}
			return o.Hub(cmd, func(ctx context.Context, c *client.Client) error {
				r, raw, err := wire.Call[struct{ Deleted, Kept int }](ctx, c, "session.delete", map[string]string{"session_id": s.ID})
				if err != nil {
					return err
				}
				if o.JSON() {
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				text := term.Count(r.Deleted, "session") + " deleted"
				if r.Kept > 0 {
					text += "; " + term.Count(r.Kept, "session") + " kept in the archive, since others were forked from there"
				}
				o.Progress(cmd, text)
				return nil
			})
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}
