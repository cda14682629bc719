package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const taskHelp = `Other names of commands: task submit is session launch, task list is session list
--turns, task get is session show, task cancel is session interrupt, and task stats is
usage.
`

// newTaskCommand returns commands that scripts may still call by these names.
func newTaskCommand(s *settings) *cobra.Command {
	cmd := commandGroup("task", "Other names of session launch, list, show and interrupt, and of usage", taskHelp+hubStatusHelp,
		newTaskSubmitCommand(s), newTaskListCommand(s), newTaskGetCommand(s), newTaskCancelCommand(s), newTaskStatsCommand(s))
	cmd.Hidden = true
	return cmd
}

func newTaskSubmitCommand(s *settings) *cobra.Command {
	return newStartingCommand(s, "task submit", "Start a session, or queue it, and print its turn")
}

func newTaskListCommand(s *settings) *cobra.Command {
	var p protocol.ListTurnsParams
	var state stateFlag
	var limit uint
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List turns, the newest first",
		Long:  "List the turns of all sessions, the newest first.\n" + hubStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			p.Limit = &limit
			if p.States, err = state.States(); err != nil {
				return err
			}
			return askHub(cmd, s, "turn.list", p, func(r protocol.TurnList) error {
				t := term.NewTable(cmd.OutOrStdout(), "TURN", "STATE", "AGENT", "AGE", "PROMPT")
				t.Spare("AGENT")
				t.Empty(noTurn(state.word, p.Agent))
				for _, x := range r.Turns {
					t.Row(x.Name, x.StateInWords(), x.Agent, term.Age(x.CreatedAt), term.Short(x.Summary))
				}
				return t.Flush()
			})
		},
	}
	state.Add(cmd)
	agentFlag(cmd, s, &p.Agent, "only turns of this agent")
	cmd.Flags().UintVar(&limit, "limit", 20, "at most `N`, up to 1000")
	return cmd
}

func newTaskGetCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:               "get ID",
		Short:             "Show a turn and its agent's last message",
		Long:              "Show a turn and its agent's last message.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, turnCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return askHub(cmd, s, "turn.get", protocol.TurnParams{Turn: protocol.Ref(args[0])}, func(r protocol.TurnResult) error {
				return printSessionList(cmd.OutOrStdout(), r.Turn, !s.NoColor)
			})
		},
	}
}

func newTaskCancelCommand(s *settings) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "cancel ID",
		Short:             "Interrupt a turn that is queued or running",
		Long:              "Interrupt a turn that is queued or running. A running one may take a moment to end.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, turnCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return askHub(cmd, s, "turn.interrupt", protocol.InterruptTurnParams{
				Turn: protocol.Ref(args[0]), Reason: reason,
			}, func(r protocol.InterruptTurnResult) error {
				progress(cmd, s, "%s is interrupted", r.Turn)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

func newTaskStatsCommand(s *settings) *cobra.Command {
	var report spendingReport
	var cost bool
	cmd := &cobra.Command{
		Use:     "stats",
		Short:   "Count turns by state, or show their usage",
		Long:    "Count turns by state; with --cost, show their usage, as duet-rpc usage does.\n" + hubStatusHelp,
		Example: "  duet-rpc task stats\n  duet-rpc task stats --cost --by agent --since 7d",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cost {
				return report.Print(cmd, s)
			}
			for _, name := range []string{"by", "since", "until", "csv"} {
				if cmd.Flags().Changed(name) {
					return fmt.Errorf("--%s goes with --cost", name)
				}
			}
			return printCounts(cmd, s)
		},
	}
	cmd.Flags().BoolVar(&cost, "cost", false, "show their usage instead: tokens, cost and time")
	report.Add(cmd, "with --cost, ")
	return cmd
}
