package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const taskHelp = `A task is a prompt that an agent works on in the hub while you do something else.
Name it by its own id (task-0001) or by that of its session.
`

func newTaskCommand(s *settings) *cobra.Command {
	return commandGroup("task", "Submit tasks to the project's hub, list and cancel them", taskHelp+hubStatusHelp,
		newTaskSubmitCommand(s), newTaskListCommand(s), newTaskGetCommand(s), newTaskCancelCommand(s), newTaskStatsCommand(s))
}

func newTaskSubmitCommand(s *settings) *cobra.Command {
	var p struct {
		Prompt   string `json:"prompt"`
		Agent    string `json:"agent,omitempty"`
		CWD      string `json:"cwd,omitempty"`
		Title    string `json:"title,omitempty"`
		Priority int    `json:"priority,omitempty"`
		gateFlags
	}
	var wait bool
	cmd := &cobra.Command{
		Use:         "submit [TEXT...]",
		Annotations: begins(),
		Short:       "Start a task, or queue it, and print its id",
		Long: "Start a task, or queue it if no slot is free, and print its id. The prompt is\n" +
			"the arguments, or standard input if there are none.\n" +
			"With --gate COMMAND the agent continues until the command succeeds (docs/gates.md).\n" + hubStatusHelp,
		Example: "  duet-rpc task submit \"Say hello\"\n  duet-rpc task submit --agent claude --wait \"Why does the build fail?\"",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if p.Prompt, err = readPromptText(cmd.InOrStdin(), args); err != nil {
				return err
			}
			if p.CWD, err = fullPath(p.CWD); err != nil {
				return err
			}
			if err := p.gateFlags.Check(); err != nil {
				return err
			}
			return startWork(cmd, s, "task.submit", p, wait)
		},
	}
	agentFlag(cmd, s, &p.Agent, "the agent to run (default: the configured one)")
	cmd.Flags().StringVar(&p.CWD, "cwd", "", "the directory in which the agent works (default: the project's root)")
	directories(cmd, "cwd")
	cmd.Flags().StringVar(&p.Title, "title", "", "a title for it")
	cmd.Flags().IntVar(&p.Priority, "priority", 0, "of tasks that wait, the highest priority starts first")
	p.gateFlags.Add(cmd)
	waitFlag(cmd, &wait)
	return cmd
}

// taskStates are the states that task list takes, in the words of the shell.
func taskStates() []string {
	return []string{"queued", "running", "completed", "failed", hubclient.Interrupted}
}

func newTaskListCommand(s *settings) *cobra.Command {
	var p struct {
		State string `json:"state,omitempty"`
		Agent string `json:"agent,omitempty"`
		Limit int    `json:"limit,omitempty"`
	}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tasks, the newest first",
		Long:  "List tasks, the newest first.\n" + hubStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p.State != "" && !slices.Contains(taskStates(), p.State) {
				return fmt.Errorf("--state: expected one of %s, received %q", strings.Join(taskStates(), ", "), p.State)
			}
			params := p
			if p.State == hubclient.Interrupted {
				params.State = hubclient.Cancelled // AIWG's name of it
			}
			return askHub(cmd, s, "task.list", params, func(tasks []protocol.Task) error {
				t := term.NewTable(cmd.OutOrStdout(), "TASK", "STATE", "AGENT", "AGE", "PROMPT")
				t.Spare("AGENT")
				t.Empty(noTask(p.State, p.Agent))
				for _, task := range tasks {
					t.Row(task.ID, task.StateInWords(), protocol.Value(task.Agent), term.AgeOf(task.CreatedAt), term.Short(task.Summary))
				}
				return t.Flush()
			})
		},
	}
	oneOf(cmd, &p.State, "state", "only tasks in this state", taskStates()...)
	agentFlag(cmd, s, &p.Agent, "only tasks of this agent")
	cmd.Flags().IntVar(&p.Limit, "limit", 20, "how many at most, up to 1000")
	return cmd
}

func newTaskGetCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:               "get ID",
		Short:             "Show a task and what its agent has said so far",
		Long:              "Show a task and what its agent has said so far.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, taskCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return askHub(cmd, s, "task.get", protocol.TaskParams{TaskID: args[0]}, func(t protocol.Task) error {
				out := cmd.OutOrStdout()
				err := term.Fields(out, term.Field{"task", t.ID}, term.Field{"state", t.StateInWords()}, term.Field{"gates", t.Gates.Words()}, term.Field{"agent", protocol.Value(t.Agent)}, term.Field{"prompt", t.Prompt},
					term.Field{"title", t.Title}, term.Field{"directory", t.CWD}, term.Field{"created", term.TimeOf(t.CreatedAt)}, term.Field{"started", term.TimeOf(protocol.Value(t.StartedAt))},
					term.Field{"ended", term.TimeOf(protocol.Value(t.CompletedAt))}, term.Field{"error", protocol.Value(t.Error)}, term.Field{"error code", t.ErrorCode}, term.Field{"session", t.SessionID})
				term.Body(out, t.Output, !s.NoColor)
				return err
			})
		},
	}
}

func newTaskCancelCommand(s *settings) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "cancel ID",
		Short:             "Cancel a task that is queued or running",
		Long:              "Cancel a task that is queued or running. A running one may take a moment to end.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, taskCandidates),
		RunE: func(cmd *cobra.Command, args []string) error {
			return askHub(cmd, s, "task.cancel", protocol.TaskCancelParams{TaskID: args[0], Reason: reason}, func(r protocol.TaskCancelResult) error {
				if !r.Cancelled {
					return fmt.Errorf("%s was not interrupted", args[0])
				}
				progress(cmd, s, "%s is interrupted", args[0])
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
		Short: "Count tasks by state, or show their usage",
		Long: "Count tasks by state; with --cost, show their usage as far as their agents report it,\nfor each day, agent, conversation or model. Agents that report no\ntokens count as 0.\n" +
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
			return askHub(cmd, s, "task.stats", nil, func(r protocol.TaskStats) error {
				return term.Fields(cmd.OutOrStdout(), term.Field{"running", strconv.Itoa(r.Running)}, term.Field{"queued", strconv.Itoa(r.Queued)},
					term.Field{"completed", strconv.Itoa(r.Completed)}, term.Field{"failed", strconv.Itoa(r.Failed)},
					term.Field{"interrupted", strconv.Itoa(r.Cancelled)}, term.Field{"total", strconv.Itoa(r.Total)})
			})
		},
	}
	report.Add(cmd)
	return cmd
}
