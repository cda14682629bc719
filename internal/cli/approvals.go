package cli

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/candidate"
	"github.com/duet-rpc/duet-rpc/internal/cli/invocation"
	"github.com/duet-rpc/duet-rpc/internal/cli/reach"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

const approvalsHelp = `Answer the questions that agents ask: whether a tool may run, or anything else. A
question stays open until somebody answers it; the first answer counts.

On a terminal this goes through the open questions, the oldest first, each with its
command or diff and answered by one key, and waits for the next; s leaves one open,
q or C-c ends. Elsewhere, and with --list, they are listed.

An id may be shortened, as long as no other open question begins the same.
`

func newApprovalsCommand(s *invocation.Settings) *cobra.Command {
	var wait, list, once bool
	var session string
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "List and answer the questions of agents",
		Long:  approvalsHelp + invocation.HubStatusHelp,
		Args:  invocation.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if term.IsTerminal(os.Stdin) && term.IsTerminal(cmd.OutOrStdout()) && !s.JSON && !wait && !list {
				return turn.InWords(goThrough(cmd, s, turn.InboxOptions{Session: session, Once: once}))
			}
			return invocation.WithHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				if wait {
					if err := turn.AwaitQuestion(ctx, c, session); err != nil {
						return err
					}
				}
				open, raw, err := wire.OpenApprovals(ctx, c, session)
				if err != nil {
					return err
				}
				if s.JSON {
					return term.Raw(cmd.OutOrStdout(), raw)
				}
				if len(open) == 0 {
					invocation.Progress(cmd, s, "no question is open: no agent waits for an answer; `duet-rpc approvals --wait` waits for the next")
				} else if term.IsTerminal(cmd.OutOrStdout()) {
					invocation.Progress(cmd, s, "answer one with: duet-rpc approvals approve ID, deny ID or respond ID")
				}
				t := term.NewTable(cmd.OutOrStdout(), "ID", "TASK", "AGENT", "AGE", "ASKS")
				t.Spare("AGENT")
				for _, a := range open {
					t.Row(turn.UniqueID(a.ID, open), a.TaskID, a.Agent, term.Age(a.CreatedAt), term.Short(turn.AsksAgain(a)+a.Asks()))
				}
				return t.Flush()
			})
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until there is a question, and list it")
	cmd.Flags().BoolVar(&list, "list", false, "list them on a terminal, too")
	cmd.Flags().BoolVar(&once, "once", false, "on a terminal: go through the questions that are open, and end")
	cmd.Flags().StringVar(&session, "session", "", "only questions of this session, by any of its ids")
	_ = cmd.RegisterFlagCompletionFunc("session", completeAll(s, candidate.Tasks))
	cmd.AddCommand(newApprovalsShowCommand(s), newApproveCommand(s), newDenyCommand(s), newRespondCommand(s), newRulesCommand(s), newForgetCommand(s))
	return cmd
}

// goThrough puts the open questions to whoever sits at the terminal.
func goThrough(cmd *cobra.Command, s *invocation.Settings, o turn.InboxOptions) error {
	signals, stop := term.Interrupts()
	defer stop()
	o.Signals = signals
	return reach.Do(cmd.Context(), reach.Options{Settings: &s.Settings}, func(ctx context.Context, c *client.Client) error {
		_, err := turn.Inbox(ctx, c, turn.NewView(cmd.OutOrStdout(), cmd.ErrOrStderr(), s.NoColor, false), o)
		return err
	})
}

func newApprovalsShowCommand(s *invocation.Settings) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a whole question: the tool's input, the diff, the options",
		Long: "Show a whole question: the tool's input, what it would change, and the options; on\n" +
			"a terminal with $PAGER or less.\n" + invocation.HubStatusHelp,
		Args:              invocation.Exactly("ID"),
		ValidArgsFunction: completeFirst(s, candidate.Approvals),
		RunE: func(cmd *cobra.Command, args []string) error {
			return invocation.WithHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				a, raw, err := turn.FindApproval(ctx, c, args[0])
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				if s.JSON {
					return term.Raw(out, raw)
				}
				stale := ""
				if a.Stale {
					stale = "the agent that asked is gone; approving continues its session"
				}
				fields := []term.Field{
					{"question", a.ID},
					{"task", a.TaskID},
					{"agent", a.Agent},
					{"status", a.Status},
					{"asks", a.Asks()},
					{"subject", a.Subject},
					{"stale", stale},
					{"asked", a.CreatedAt},
					{"deadline", a.Deadline},
					{"decided by", a.DecidedBy},
					{"because", a.Explanation},
					{"rule, session", a.Rules["session"].Text},
					{"rule, project", a.Rules["project"].Text},
					{"comment", a.Comment},
					{"response", a.Response},
				}
				for i, o := range a.Options {
					fields = append(fields, term.Field{"option " + strconv.Itoa(i+1), o.InWords()})
				}
				text := &strings.Builder{}
				_ = term.Fields(text, fields...)                        // a Builder takes all
				session, _, _ := wire.SessionState(ctx, c, a.SessionID) // else names stay as they are
				for i, line := range turn.Sheet(a, session.WorkingDir).Details() {
					if i == 0 {
						text.WriteString("\n")
					}
					text.WriteString(line.Text + "\n")
				}
				return term.Page(out, text.String())
			})
		},
	}
}
