package dialect

import (
	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// codeGateFailed is the code of work whose gates still fail, as application boundaries have it.
const codeGateFailed = -32002

// GateFailed is the error of work whose gates still fail; data says which.
func GateFailed(message string, data any) *jsonrpc2.Error {
	return server.NewError(codeGateFailed, "Gate failed: "+message, data)
}

// A GateResult is what came of a gate, as clients see it.
type GateResult struct {
	Gate       string       `json:"gate" doc:"The command line, or the name of [[gates]]."`
	Passed     bool         `json:"passed"`
	Reason     string       `json:"reason,omitempty" doc:"Why it did not pass, such as: exit status 2."`
	Findings   []Diagnostic `json:"findings" doc:"What its output says is wrong where; at most 50."`
	Errors     int          `json:"errors,omitempty" doc:"How many of the findings are errors, in all."`
	Warnings   int          `json:"warnings,omitempty"`
	Output     string       `json:"output,omitempty" doc:"Where it has failed: the first and the last lines that it printed."`
	DurationMS int64        `json:"duration_ms"`
}

// GateResultOf is what came of a gate as clients see it.
func GateResultOf(r domain.GateResult) GateResult {
	return GateResult{r.Gate, r.Passed, r.Reason, DiagnosticsOf(r.Findings), r.Errors, r.Warnings, r.Output, r.Duration.Milliseconds()}
}

// GateResultsOf are what came of gates as clients see them; a list, even if it is empty.
func GateResultsOf(list []domain.GateResult) []GateResult {
	out := make([]GateResult, 0, len(list))
	for _, r := range list {
		out = append(out, GateResultOf(r))
	}
	return out
}

type iterationData struct {
	ids
	Iteration     int      `json:"iteration"`
	MaxIterations int      `json:"max_iterations"`
	Gates         []string `json:"gates"`
}

type gateStartData struct {
	ids
	Gate      string `json:"gate"`
	Iteration int    `json:"iteration"`
}

type gateData struct {
	ids
	GateResult
	Iteration     int `json:"iteration"`
	MaxIterations int `json:"max_iterations"`
}

type gatesEndedData struct {
	ids
	State         string   `json:"gates_state"`
	Reason        string   `json:"reason,omitempty"`
	Iteration     int      `json:"iteration"`
	MaxIterations int      `json:"max_iterations"`
	Failing       []string `json:"failing,omitempty"`
}

// gatesData is the data of an event of work that has gates.
func gatesData(ids ids, payload domain.Payload) any {
	switch p := payload.(type) {
	case domain.IterationStarted:
		return iterationData{ids, p.Iteration, p.MaxIterations, p.Gates}
	case domain.GateStarted:
		return gateStartData{ids, p.Gate, p.Iteration}
	case domain.GateChecked:
		return gateData{ids, GateResultOf(p.GateResult), p.Iteration, p.MaxIterations}
	case domain.LoopEnded:
		return gatesEndedData{ids, p.State, p.Reason, p.Iteration, p.MaxIterations, p.Failing}
	}
	return struct{}{}
}
