package cli

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/output"
	"github.com/duet-rpc/duet-rpc/internal/cli/wire"
)

// ruleSubject is what a rule is about, in words.
func ruleSubject(r wire.Rule) string {
	switch {
	case r.Command != "":
		return r.Tool + ": " + r.Command
	case r.Path != "":
		return r.Tool + ": " + r.Path
	case r.SameInput:
		return r.Tool + ", with the same input"
	}
	return r.Tool
}

// ruleScope is where a rule holds, in words.
func ruleScope(r wire.Rule) string {
	if r.Scope == "session" {
		return "session " + cmp.Or(r.Title, r.ThreadID)
	}
	return r.Scope
}

func newRulesCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Annotations: readingHistory(),
		Use:         "rules",
		Short:       "List the rules that were made by answers with --scope",
		Long:        "List the rules that were made by answers with --scope: what they match is not asked\nany more.\n" + hubStatusHelp,
		Args:        noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return askHub(cmd, s, "getRules", struct{}{}, func(r struct{ Rules []wire.Rule }) error {
				t := output.NewTable(cmd.OutOrStdout(), "ID", "RULE", "FOR", "WHERE", "AGE")
				for _, rule := range r.Rules {
					t.Row(strconv.FormatInt(rule.ID, 10), rule.Effect, output.Short(ruleSubject(rule)), output.Short(ruleScope(rule)), output.Age(rule.CreatedAt))
				}
				return t.Flush()
			})
		},
	}
}

func newForgetCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:     "forget ID",
		Short:   "Delete a rule, so that questions are asked again",
		Long:    "Delete a rule that an answer with --scope has made, so that questions are asked\nagain.\n" + hubStatusHelp,
		Example: "  duet-rpc approvals forget 3",
		Args:    exactly("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return fmt.Errorf("%q is not the number of a rule; `duet-rpc approvals rules` lists them", args[0])
			}
			return askHub(cmd, s, "deleteRule", map[string]int64{"rule_id": id}, func(struct{}) error { return nil })
		},
	}
}
