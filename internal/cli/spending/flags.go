// Package spending is what the shell says of what tasks use: the flags that limit a run,
// and the report of `task stats --cost`.
package spending

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/flagvalue"
)

// Flags limit what a run may use.
type Flags struct {
	turns, tokens int
	cost          float64
	work          time.Duration
}

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.turns, "max-turns", 0, "interrupt it after `N` rounds of tool calls (default: [budget.run] turns)")
	flags.IntVar(&f.tokens, "max-tokens", 0, "interrupt it when it has used `N` tokens (default: [budget.run] tokens)")
	flags.Float64Var(&f.cost, "max-cost", 0, "interrupt it when it has cost so many `DOLLARS` (default: [budget.run] cost)")
	flags.Var((*flagvalue.Duration)(&f.work), "max-time", "interrupt it when it has worked so long, without what it waits for you (default: [budget.run] time)")
}

// Into puts what was asked for into the parameters of a launch.
func (f *Flags) Into(params map[string]any) error {
	if f.turns < 0 || f.tokens < 0 || f.cost < 0 {
		return errors.New("--max-turns, --max-tokens and --max-cost take what is above 0")
	}
	budget := map[string]any{}
	if f.turns > 0 {
		budget["turns"] = f.turns
	}
	if f.tokens > 0 {
		budget["tokens"] = f.tokens
	}
	if f.cost > 0 {
		budget["cost_usd"] = f.cost
	}
	if f.work > 0 {
		budget["time_ms"] = f.work.Milliseconds()
	}
	if len(budget) > 0 {
		params["budget"] = budget
	}
	return nil
}
