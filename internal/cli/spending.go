package cli

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// Budgets and costs: flags that limit a turn, and the report of `usage`.

// limitFlags limit the resources of a turn.
type limitFlags struct {
	turns, tokens int
	cost          float64
	work          time.Duration
}

// Add adds the flags to a command.
func (f *limitFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var((*countValue)(&f.turns), "max-turns", "interrupt it after `N` rounds of tool calls (default: [budget.turn] rounds)")
	flags.Var((*countValue)(&f.tokens), "max-tokens", "interrupt it when it has used `N` tokens (default: [budget.turn] tokens)")
	flags.Var((*dollarsValue)(&f.cost), "max-cost", "interrupt it when it has cost this many `DOLLARS` (default: [budget.turn] cost)")
	flags.Var((*durationValue)(&f.work), "max-time",
		"interrupt it when it has worked this long; waiting for you does not count (default: [budget.turn] time)")
}

// Budget returns the limits for the parameters of a launch; nil without limits.
func (f *limitFlags) Budget() *protocol.TurnBudget {
	if *f == (limitFlags{}) {
		return nil
	}
	return &protocol.TurnBudget{Turns: uint(f.turns), Tokens: uint(f.tokens), CostUSD: f.cost, TimeMS: uint(f.work.Milliseconds())}
}

const usageHelp = `Count the turns by state, and show what they used, as far as their agents report it: tokens,
cost and time for each day, agent, session or model. Agents that report no tokens count
as 0. --csv and --json print the use alone.
`

func newUsageCommand(s *settings) *cobra.Command {
	var report spendingReport
	cmd := &cobra.Command{
		Use:     "usage",
		Short:   "Count turns, and show their tokens, cost and time",
		Long:    usageHelp + hubStatusHelp,
		Example: "  duet-rpc usage\n  duet-rpc usage --by agent --since 7d\n  duet-rpc usage --csv > usage.csv",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if report.csv || s.JSON {
				return report.Print(cmd, s)
			}
			if err := printCounts(cmd, s); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout())
			return report.Print(cmd, s)
		},
	}
	report.Add(cmd)
	return cmd
}

// printCounts prints the number of turns in each state.
func printCounts(cmd *cobra.Command, s *settings) error {
	return askHub(cmd, s, "turn.count", nil, func(r protocol.TurnCounts) error {
		sum := func(states ...domain.State) (n int) {
			for _, state := range states {
				n += r.States[state]
			}
			return n
		}
		rows := []struct {
			name string
			n    int
		}{
			{"running", sum(domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting)},
			{"queued", sum(domain.Queued)},
			{"completed", sum(domain.Completed)},
			{"failed", sum(domain.Failed, domain.TimedOut)},
			{"interrupted", sum(domain.Cancelled, domain.Interrupted)},
		}
		var fields []term.Field
		total := 0
		for _, row := range rows {
			fields = append(fields, term.Field{row.name, strconv.Itoa(row.n)})
			total += row.n
		}
		return term.Fields(cmd.OutOrStdout(), append(fields, term.Field{"total", strconv.Itoa(total)})...)
	})
}

// spendingReport holds the flags of a report.
type spendingReport struct {
	csv              bool
	by, since, until string
}

// Add adds the flags to a command.
func (r *spendingReport) Add(cmd *cobra.Command) {
	f := cmd.Flags()
	oneOf(cmd, &r.by, "by", "for each", "day", "agent", "session", "model")
	f.StringVar(&r.since, "since", "", "only prompts since `TIME`: 2026-01-31, or 7d, 12h ago")
	f.StringVar(&r.until, "until", "", "only prompts before `TIME`")
	f.BoolVar(&r.csv, "csv", false, "as comma separated values")
}

// Print asks the hub for the usage and prints it.
func (r *spendingReport) Print(cmd *cobra.Command, s *settings) error {
	by := r.by
	if by == "" && !s.JSON {
		by = "day"
	}
	params := protocol.UsageParams{By: by, Since: r.since, Until: r.until}
	now := time.Now()
	for name, at := range map[string]*string{"since": &params.Since, "until": &params.Until} {
		if *at != "" {
			var err error
			if *at, err = timeOf(*at, now); err != nil {
				return fmt.Errorf("--%s: %w", name, err)
			}
		}
	}
	return askHub(cmd, s, "usage.get", params, func(u protocol.UsageResult) error {
		if r.csv {
			return writeCSV(cmd.OutOrStdout(), by, u)
		}
		return printTable(cmd.OutOrStdout(), by, u)
	})
}

// timeOf converts a time for the hub: a date or time stays as it is, and a number of days or
// hours is subtracted from now.
func timeOf(text string, now time.Time) (string, error) {
	if days, err := strconv.Atoi(text[:len(text)-1]); err == nil && text[len(text)-1] == 'd' && days >= 0 {
		return now.AddDate(0, 0, -days).Format(time.RFC3339), nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago).Format(time.RFC3339), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if _, err := time.Parse(layout, text); err == nil {
			return text, nil
		}
	}
	return "", fmt.Errorf("%q is not a time: give a date such as 2026-01-31, or an age such as 7d or 12h", term.Short(text))
}

func writeCSV(out io.Writer, by string, u protocol.UsageResult) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{by, "title", "turns", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd", "time_ms"}) // Flush returns the error
	for _, row := range u.Rows {
		n := func(n int64) string { return strconv.FormatInt(n, 10) }
		_ = w.Write([]string{
			safeCell(row.Key), safeCell(row.Title), strconv.Itoa(row.Turns), n(row.InputTokens), n(row.OutputTokens), n(row.CacheReadTokens),
			n(row.CacheWriteTokens),
			strconv.FormatFloat(row.CostUSD, 'f', -1, 64), n(row.TimeMS),
		})
	}
	w.Flush()
	return w.Error()
}

// safeCell escapes a text that spreadsheet programs would evaluate as a formula.
func safeCell(text string) string {
	if text != "" && (text[0] == '=' || text[0] == '+' || text[0] == '-' || text[0] == '@' || text[0] == '\t' || text[0] == '\r') {
		return "'" + text
	}
	return text
}

func printTable(out io.Writer, by string, u protocol.UsageResult) error {
	heading := map[string]string{"day": "DAY", "agent": "AGENT", "session": "SESSION", "model": "MODEL"}[by]
	t := term.NewTable(out, heading, "TURNS", "IN", "OUT", "CACHED", "COST", "TIME")
	t.Spare("CACHED", "TIME", "TURNS")
	row := func(name string, u protocol.Usage) {
		t.Row(name, strconv.Itoa(u.Turns), number(u.InputTokens), number(u.OutputTokens), number(u.CacheReadTokens+u.CacheWriteTokens), domain.Dollars(u.CostUSD),
			(time.Duration(u.TimeMS) * time.Millisecond).Round(time.Second).String())
	}
	for _, r := range u.Rows {
		name := r.Key
		switch {
		case by == "session" && r.Title != "":
			name += " · " + term.Short(r.Title)
		case name == "":
			name = "(unknown)"
		}
		row(name, r.Usage)
	}
	if len(u.Rows) != 1 {
		row("all", u.Total)
	}
	return t.Flush()
}

func number(n int64) string { return term.Number(int(n)) }

// Gates: the flags that name them, and their results.

// gateFlags select the gates of a turn.
type gateFlags struct {
	Gates         []string `json:"gates,omitempty"`
	MaxIterations int      `json:"max_iterations,omitempty"`
}

// Add adds the flags to a command.
func (f *gateFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.Gates, "gate", nil, "let the agent continue until `COMMAND` succeeds: a line for the shell, or a name of "+
		"[[gates]]; may be given several times")
	flags.Var((*countValue)(&f.MaxIterations), "max-iterations", "with --gate: give up after `N` turns (default: 5)")
}

// Check returns an error if the flags are wrong.
func (f *gateFlags) Check() error {
	if f.MaxIterations > 0 && len(f.Gates) == 0 {
		return errors.New("--max-iterations limits the turns for a --gate, and there is none")
	}
	return nil
}

// Gated returns the gates for the parameters of a launch.
func (f *gateFlags) Gated() protocol.Gated {
	return protocol.Gated{Gates: f.Gates, MaxIterations: f.MaxIterations}
}
