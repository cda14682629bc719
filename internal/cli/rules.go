package cli

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

func newRulesCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "rules",
		Short: "List the rules that were made by answers with --scope",
		Long:  "List the rules that were made by answers with --scope: what they match is not asked\nany more.\n" + hubStatusHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return askHub(cmd, s, "getRules", struct{}{}, func(r struct{ Rules []wire.Rule }) error {
				t := term.NewTable(cmd.OutOrStdout(), "ID", "RULE", "FOR", "WHERE", "AGE")
				t.Below("FOR", "WHERE")
				t.Empty("no rule was made: an answer with --scope makes one, such as `duet-rpc approvals approve ID --scope session`")
				for _, rule := range r.Rules {
					t.Row(strconv.FormatInt(rule.ID, 10), rule.Effect, term.Short(rule.Subject()), term.Short(rule.Where()), term.Age(rule.CreatedAt))
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
