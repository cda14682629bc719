package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
)

const taskHelp = `A task is a prompt that an agent works on in the hub, while you do something
else. Every command takes every id of it: task-0001, or that of its session.
`

// listedTask is what the table of tasks shows.
type listedTask struct {
	ID        string `json:"id"`
	Prompt    string `json:"prompt"`
	Agent     string `json:"agent"`
	Priority  int    `json:"priority"`
	State     string `json:"state"`
	CreatedAt string `json:"createdAt"`
}

func newTaskCommand(s *settings) *cobra.Command {
	return group("task", "Give tasks to the project's hub, and look after them", taskHelp+hubStatusHelp,
		newTaskSubmitCommand(s), newTaskListCommand(s), newTaskGetCommand(s), newTaskCancelCommand(s), newTaskStatsCommand(s))
}

func newTaskSubmitCommand(s *settings) *cobra.Command {
	var p struct {
		Prompt   string `json:"prompt"`
		Agent    string `json:"agent,omitempty"`
		CWD      string `json:"cwd,omitempty"`
		Title    string `json:"title,omitempty"`
		Priority int    `json:"priority,omitempty"`
	}
	var wait bool
	cmd := &cobra.Command{
		Use:         "submit [TEXT...]",
		Annotations: beginning(),
		Short:       "Start a task, or queue it, and print its id",
		Long: "Start a task, or queue it if no place is free, and print its id. The prompt is\n" +
			"the arguments, or standard input if there are none.\n" + hubStatusHelp,
		Example: "  duet-rpc task submit \"Say hello\"\n  duet-rpc task submit --agent claude --wait \"Why does the build fail?\"",
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if p.Prompt, err = promptText(cmd.InOrStdin(), args); err != nil {
				return err
			}
			if p.CWD, err = fullPath(p.CWD); err != nil {
				return err
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				r, raw, err := ask[started](ctx, c, "task.submit", p)
				if err != nil {
					return err
				}
				return r.say(ctx, cmd, s, c, raw, wait)
			})
		},
	}
	agentFlag(cmd, s, &p.Agent, "the agent to run (default: the configured one)")
	cmd.Flags().StringVar(&p.CWD, "cwd", "", "the directory in which it works (default: the project's root)")
	directories(cmd, "cwd")
	cmd.Flags().StringVar(&p.Title, "title", "", "what to call it")
	cmd.Flags().IntVar(&p.Priority, "priority", 0, "which goes first when others wait: the higher one")
	waitFlag(cmd, &wait)
	return cmd
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
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				tasks, raw, err := ask[[]listedTask](ctx, c, "task.list", p)
				if err != nil {
					return err
				}
				if s.json {
					return printRaw(cmd.OutOrStdout(), raw)
				}
				t := newTable(cmd.OutOrStdout(), "TASK", "STATE", "AGENT", "AGE", "PROMPT")
				for _, task := range tasks {
					t.row(task.ID, task.State, task.Agent, age(task.CreatedAt), short(task.Prompt))
				}
				return t.flush()
			})
		},
	}
	oneOf(cmd, &p.State, "state", "only tasks in this state", "queued", "running", "completed", "failed", "cancelled")
	agentFlag(cmd, s, &p.Agent, "only tasks of this agent")
	cmd.Flags().IntVar(&p.Limit, "limit", 20, "how many, 1000 at most")
	return cmd
}

func newTaskGetCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:               "get ID",
		Short:             "Show a task, with what the agent said so far",
		Long:              "Show a task, with what the agent said so far.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				t, raw, err := ask[taskState](ctx, c, "task.get", map[string]string{"taskId": args[0]})
				if err != nil {
					return err
				}
				out := cmd.OutOrStdout()
				if s.json {
					return printRaw(out, raw)
				}
				err = printFields(out, field{"task", t.ID}, field{"state", t.State}, field{"agent", t.Agent}, field{"prompt", t.Prompt},
					field{"title", t.Title}, field{"directory", t.CWD}, field{"created", t.CreatedAt}, field{"started", t.StartedAt},
					field{"ended", t.CompletedAt}, field{"error", t.Error}, field{"error code", t.ErrorCode}, field{"session", t.SessionID})
				printBody(out, t.Output)
				return err
			})
		},
	}
}

func newTaskCancelCommand(s *settings) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:               "cancel ID",
		Short:             "Cancel a queued task, or begin to end a running one",
		Long:              "Cancel a queued task, or begin to end a running one.\n" + hubStatusHelp,
		Args:              exactly("ID"),
		ValidArgsFunction: completeFirst(s, taskIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				params := map[string]string{"taskId": args[0]}
				if reason != "" {
					params["reason"] = reason
				}
				r, raw, err := ask[struct{ Cancelled bool }](ctx, c, "task.cancel", params)
				if err != nil {
					return err
				}
				if s.json {
					return printRaw(cmd.OutOrStdout(), raw)
				}
				if !r.Cancelled {
					return fmt.Errorf("%s was not cancelled", args[0])
				}
				progress(cmd, s, "%s is cancelled", args[0])
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}

func newTaskStatsCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "stats",
		Short: "Count tasks by state",
		Long:  "Count tasks by state.\n" + hubStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				r, raw, err := ask[struct{ Total, Running, Queued, Completed, Failed, Cancelled int }](ctx, c, "task.stats", nil)
				if err != nil {
					return err
				}
				if s.json {
					return printRaw(cmd.OutOrStdout(), raw)
				}
				return printFields(cmd.OutOrStdout(), field{"running", strconv.Itoa(r.Running)}, field{"queued", strconv.Itoa(r.Queued)},
					field{"completed", strconv.Itoa(r.Completed)}, field{"failed", strconv.Itoa(r.Failed)},
					field{"cancelled", strconv.Itoa(r.Cancelled)}, field{"total", strconv.Itoa(r.Total)})
			})
		},
	}
}
