package domain

import "time"

// A Budget is how much the runs of a conversation may use each, beside what the
// configuration says. What is 0 is not limited.
type Budget struct {
	Turns   int           `json:"turns,omitempty"`  // rounds of tool calls
	Time    time.Duration `json:"time,omitempty"`   // that the agent works; waiting for a person is none
	Tokens  int64         `json:"tokens,omitempty"` // read and written
	CostUSD float64       `json:"cost_usd,omitempty"`
	Repeats int           `json:"repeats,omitempty"` // of the same tool call, one after the other
}

// Codes of runs that were interrupted since a budget was used up: values of Run.ErrorCode.
const (
	CodeRunBudget    = "RUN_BUDGET_REACHED"
	CodeThreadBudget = "THREAD_BUDGET_REACHED"
	CodeDayBudget    = "DAY_BUDGET_REACHED"
)

// IsBudgetCode reports whether a run with this ErrorCode was interrupted since a budget
// was used up.
func IsBudgetCode(code string) bool {
	return code == CodeRunBudget || code == CodeThreadBudget || code == CodeDayBudget
}

// Usage is what runs have used, as far as their agents have told.
type Usage struct {
	Runs   int
	Tokens Tokens        // summed, but for the context
	Time   time.Duration // that they took, without what they waited for people; a run that goes on counts up to now
}

// A UsageFilter chooses runs by when they were asked for. The zero value means all.
type UsageFilter struct {
	Thread     int64
	After      int64 // only runs with a larger row
	Since, Til time.Time
}

// What usage can be told by: values of [UsageBy].
const (
	UsageByDay    UsageBy = "day" // in the time zone of this machine
	UsageByAgent  UsageBy = "agent"
	UsageByThread UsageBy = "session"
	UsageByModel  UsageBy = "model"
)

// A UsageBy says what usage is told by.
type UsageBy string

// A UsageRow is what the runs of one day, agent, conversation or model have used.
type UsageRow struct {
	Key   string // a date, a name, or a thread's UUID; "" where it is not known
	Title string // of a conversation
	Usage
}
