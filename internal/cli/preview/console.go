package preview

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// newConsole makes the command that prints what pages have said.
func newConsole(s *invocation.Settings) *cobra.Command {
	var session string
	var problems bool
	limit := uint(100)
	cmd := &cobra.Command{
		Use: "console", Args: invocation.NoArguments,
		Short: "Print what pages of the preview have said",
		Long: "Print what pages of the preview have written to their consoles, what went wrong in\n" +
			"them, and where they were, the oldest first. The last thousand messages are kept.\n\n" +
			"Exit status: 0, also if there is nothing; 1 if it could not be read.",
		Example: "  duet-rpc preview console --problems\n  duet-rpc preview console --problems | duet-rpc prompt --last \"What is wrong there?\"",
		RunE: func(cmd *cobra.Command, _ []string) error {
			params := map[string]any{"limit": limit, "problems": problems}
			if session != "" {
				params["session_id"] = session
			}
			return invocation.AskHub(cmd, s, "listPageMessages", params, func(r wire.PageMessages) error {
				for _, m := range r.Messages {
					fmt.Fprintln(cmd.OutOrStdout(), term.Exact(m.Text()))
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&session, "session", "", "only what is kept with a session, by any id (default: all)")
	cmd.Flags().BoolVar(&problems, "problems", false, "only errors and warnings")
	cmd.Flags().UintVar(&limit, "limit", limit, "the last ones")
	return cmd
}

// newNavigate makes the command that sends pages somewhere.
func newNavigate(s *invocation.Settings) *cobra.Command {
	return &cobra.Command{
		Use: "navigate ADDRESS", Args: invocation.Exactly("ADDRESS"),
		Short: "Have whoever shows the preview go to an address",
		Long: "Have whoever shows the preview go to an address, such as /about: editors, and browsers\n" +
			"of `duet-rpc preview --capture`.\n\n" +
			"Exit status: 0, also if nobody shows it; 1 if there is no such page, or no hub.",
		Example: "  duet-rpc preview navigate /about",
		RunE: func(cmd *cobra.Command, args []string) error {
			return tell(cmd, s, "navigate", map[string]any{"url": args[0]})
		},
	}
}

// newRefresh makes the command that loads pages again.
func newRefresh(s *invocation.Settings) *cobra.Command {
	return &cobra.Command{
		Use: "refresh", Args: invocation.NoArguments,
		Short: "Have whoever shows the preview load it again",
		Long: "Have whoever shows the preview load it again: editors, and browsers of\n" +
			"`duet-rpc preview --capture`.\n\n" +
			"Exit status: 0, also if nobody shows it; 1 if there is no hub.",
		Example: "  duet-rpc build && duet-rpc preview refresh",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return tell(cmd, s, "refresh", map[string]any{})
		},
	}
}

func tell(cmd *cobra.Command, s *invocation.Settings, method string, params any) error {
	return invocation.AskHub(cmd, s, method, params, func(r wire.PreviewShown) error {
		if r.Shown == 0 {
			invocation.Progress(cmd, s, "nobody shows the preview: start `duet-rpc preview --capture`, and open what it prints")
		}
		return nil
	})
}
