package domain

import (
	"strconv"
	"time"
)

// A Budget limits each turn of a session, in place of the configuration. 0 is no limit.
type Budget struct {
	Turns   int           `json:"turns,omitempty"`  // rounds of tool calls
	Time    time.Duration `json:"time,omitempty"`   // of work; waiting for a person does not count
	Tokens  int64         `json:"tokens,omitempty"` // read and written
	CostUSD float64       `json:"cost_usd,omitempty"`
	Repeats int           `json:"repeats,omitempty"` // of the same tool call in a row
}

// Dollars formats a cost. Only small amounts have fractions of a cent.
func Dollars(usd float64) string {
	digits := 2
	if usd < 0.1 {
		digits = 4
	}
	return "$" + strconv.FormatFloat(usd, 'f', digits, 64)
}

// Values of Turn.ErrorCode for turns that a used-up budget interrupted.
const (
	CodeTurnBudget    = "RUN_BUDGET_REACHED"
	CodeSessionBudget = "THREAD_BUDGET_REACHED"
	CodeDayBudget     = "DAY_BUDGET_REACHED"
)

// IsBudgetCode reports whether an ErrorCode says that a budget was used up.
func IsBudgetCode(code string) bool {
	return code == CodeTurnBudget || code == CodeSessionBudget || code == CodeDayBudget
}

// Usage is the usage of turns, as their agents report it.
type Usage struct {
	Turns  int
	Tokens Tokens        // summed, but for the context
	Time   time.Duration // without waiting for people; an active turn counts up to now
}

// A UsageFilter chooses turns by their creation time. The zero value means all.
type UsageFilter struct {
	Session    int64
	After      int64 // only turns with a larger row
	Since, Til time.Time
}

// Values of [UsageBy].
const (
	UsageByDay     UsageBy = "day" // in the time zone of this machine
	UsageByAgent   UsageBy = "agent"
	UsageBySession UsageBy = "session"
	UsageByModel   UsageBy = "model"
)

// A UsageBy is the grouping of a usage report.
type UsageBy string

// A UsageRow is the usage of one day, agent, session or model.
type UsageRow struct {
	Key   string // a date, a name, or a session's number; "" if unknown
	Title string // of a session
	Usage
}
