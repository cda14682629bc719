package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
)

// listedRule is what is read of a standing rule.
type listedRule struct {
	ID        int64  `json:"rule_id"`
	Effect    string `json:"effect"`
	Tool      string `json:"tool_name"`
	Command   string `json:"command"`
	SameInput bool   `json:"same_input"`
	Scope     string `json:"scope"`
	Title     string `json:"title"`
	ThreadID  string `json:"thread_id"`
	CreatedAt string `json:"created_at"`
}

// holdsFor is what a rule is about, in words.
func (r listedRule) holdsFor() string {
	switch {
	case r.Command != "":
		return r.Tool + ": " + r.Command
	case r.SameInput:
		return r.Tool + ", with the same input"
	}
	return r.Tool
}

func (r listedRule) where() string {
	if r.Scope == "session" {
		return "session " + firstText(r.Title, r.ThreadID)
	}
	return r.Scope
}

func newRulesCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "rules",
		Short: "List what was decided for good, with --scope",
		Long:  "List what was decided for good, with --scope, and is not asked any more.\n" + hubStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				r, raw, err := ask[struct{ Rules []listedRule }](ctx, c, "getRules", struct{}{})
				if err != nil {
					return err
				}
				if s.json {
					return printRaw(cmd.OutOrStdout(), raw)
				}
				t := newTable(cmd.OutOrStdout(), "ID", "RULE", "FOR", "WHERE", "AGE")
				for _, rule := range r.Rules {
					t.row(strconv.FormatInt(rule.ID, 10), rule.Effect, short(rule.holdsFor()), short(rule.where()), age(rule.CreatedAt))
				}
				return t.flush()
			})
		},
	}
}

func newForgetCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "forget ID",
		Short:   "Take back what was decided for good, so that it is asked again",
		Long:    "Take back what was decided for good, so that it is asked again.\n" + hubStatusHelp,
		Example: "  duet-rpc approvals forget 3",
		Args:    exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return fmt.Errorf("%q is not the number of a rule; `duet-rpc approvals rules` lists them", args[0])
			}
			return withHub(cmd, s, func(ctx context.Context, c *client.Client) error {
				_, raw, err := ask[struct{}](ctx, c, "deleteRule", map[string]int64{"rule_id": id})
				if err != nil || !s.json {
					return err
				}
				return printRaw(cmd.OutOrStdout(), raw)
			})
		},
	}
}
