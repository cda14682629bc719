package sessions

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

func newQueue(o Options) *cobra.Command {
	var edit, before string
	var last bool
	cmd := &cobra.Command{
		Use: "queue ID", Args: o.Exactly("ID"), ValidArgsFunction: o.Completes,
		Short: "Show the prompts that wait in a session's conversation, edit or move one",
		Long: "Show the prompts that wait for their turn in a session's conversation, the next one\n" +
			"first. With a flag, change the one that ID names. task cancel takes one back.\n" + o.Help,
		Example: "  duet-rpc session queue last\n  duet-rpc session queue task-0003 --edit \"Use the other file\"\n  duet-rpc session queue task-0003 --before task-0002",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := o.Find(cmd, args[0])
			if err != nil {
				return err
			}
			method, params := "session.queue", map[string]string{"session_id": s.ID}
			flags := cmd.Flags()
			switch {
			case flags.Changed("edit"):
				method, params["query"] = "session.editQueued", edit
			case flags.Changed("before"):
				next, err := o.Find(cmd, before)
				if err != nil {
					return err
				}
				method, params["before"] = "session.moveQueued", next.ID
			case last:
				method = "session.moveQueued"
			}
			return o.Hub(cmd, func(ctx context.Context, c *client.Client) error {
				_, raw, err := wire.Call[json.RawMessage](ctx, c, method, params)
				if err != nil {
					return err
				}
				if o.JSON() {
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				var r struct {
					Queued []struct {
						TaskID    string `json:"task_id"`
						CreatedAt string `json:"created_at"`
						Query     string
					}
				}
				if err := json.Unmarshal(raw, &r); err != nil {
					return err
				}
				t := term.NewTable(cmd.OutOrStdout(), "TASK", "AGE", "PROMPT")
				t.Empty("no prompt waits in the conversation of " + s.TaskID)
				for _, p := range r.Queued {
					t.Row(p.TaskID, term.Age(p.CreatedAt), term.Short(p.Query))
				}
				return t.Flush()
			})
		},
	}
	cmd.Flags().StringVar(&edit, "edit", "", "change the prompt to `TEXT`")
	cmd.Flags().StringVar(&before, "before", "", "have the prompt run before that of `ID`")
	cmd.Flags().BoolVar(&last, "last", false, "have the prompt run after all others")
	_ = cmd.RegisterFlagCompletionFunc("before", o.Completes)
	cmd.MarkFlagsMutuallyExclusive("edit", "before", "last")
	return cmd
}
