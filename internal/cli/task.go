package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/dialect/aiwg"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const taskHelp = `Prompts that agents work on while you do something else. A turn is named by its number,
such as 12.3: the third of session 12.
`

func newTaskCommand(s *settings) *cobra.Command {
	return commandGroup("task", "Submit prompts to the project's hub, list and cancel their turns", taskHelp+hubStatusHelp,
		newTaskSubmitCommand(s), newTaskListCommand(s), newTaskGetCommand(s), newTaskCancelCommand(s), newTaskStatsCommand(s))
}

func newTaskSubmitCommand(s *settings) *cobra.Command {
	var p protocol.StartParams
	var gates gateFlags
	var wait bool
	cmd := &cobra.Command{
		Use:         "submit [TEXT...]",
		Annotations: begins(),
		Short:       "Start a session, or queue it, and print its turn",
		Long: "Start a session, or queue it if no slot is free, and print the number of its turn. The\n" +
			"prompt is the arguments, or standard input if there are none.\n" +
			"With --gate COMMAND the agent continues until the command succeeds (docs/gates.md).\n" + hubStatusHelp,
		Example: "  duet-rpc task submit \"Say hello\"\n  duet-rpc task submit --agent claude --wait \"Why does the build fail?\"",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if p.Prompt, err = readPromptText(cmd.InOrStdin(), args); err != nil {
				return err
			}
			if p.WorkingDir, err = fullPath(p.WorkingDir); err != nil {
				return err
			}
			if err := gates.Check(); err != nil {
				return err
			}
			p.Gated = gates.Gated()
			return startWork(cmd, s, hubclient.SessionStart, p, wait)
		},
	}
	agentFlag(cmd, s, &p.Agent, "the agent to run (default: the configured one)")
	cmd.Flags().StringVar(&p.WorkingDir, "cwd", "", "the directory in which the agent works (default: the project's root)")
	directories(cmd, "cwd")
	cmd.Flags().StringVar(&p.Title, "title", "", "a title for it")
	cmd.Flags().IntVar(&p.Priority, "priority", 0, "of prompts that wait, the highest priority starts first")
	gates.Add(cmd)
	waitFlag(cmd, &wait)
	return cmd
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
				t.Empty(noTask(state.word, p.Agent))
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
			return askHub(cmd, s, "turn.interrupt", protocol.InterruptTurnParams{Turn: protocol.Ref(args[0]), Reason: reason}, func(r protocol.InterruptTurnResult) error {
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
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count turns by state, or show their usage",
		Long: "Count turns by state; with --cost, show their usage as far as their agents report it,\nfor each day, agent, session or model. Agents that report no tokens count as 0.\n" +
			hubStatusHelp,
		Example: "  duet-rpc task stats\n  duet-rpc task stats --cost --by agent --since 7d\n  duet-rpc task stats --cost --csv > usage.csv",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wanted, err := report.Wanted(cmd); wanted || err != nil {
				if err != nil {
					return err
				}
				return report.Print(cmd, s)
			}
			return askHub(cmd, s, "task.stats", nil, func(r aiwg.TaskStats) error {
				return term.Fields(cmd.OutOrStdout(), term.Field{"running", strconv.Itoa(r.Running)}, term.Field{"queued", strconv.Itoa(r.Queued)},
					term.Field{"completed", strconv.Itoa(r.Completed)}, term.Field{"failed", strconv.Itoa(r.Failed)},
					term.Field{"interrupted", strconv.Itoa(r.Cancelled)}, term.Field{"total", strconv.Itoa(r.Total)})
			})
		},
	}
	report.Add(cmd)
	return cmd
}
