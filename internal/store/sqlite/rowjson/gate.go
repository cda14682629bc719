package rowjson

import (
	"encoding/json"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A Diagnostic is one of a build or of a gate.
type Diagnostic struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Source   string `json:"source,omitempty"`
}

// DiagnosticsOf spells diagnostics.
func DiagnosticsOf(list []domain.Diagnostic) []Diagnostic {
	return converted(list, func(d domain.Diagnostic) Diagnostic { return Diagnostic(d) })
}

// Diagnostics are what was spelled.
func Diagnostics(list []Diagnostic) []domain.Diagnostic {
	return converted(list, func(d Diagnostic) domain.Diagnostic { return domain.Diagnostic(d) })
}

// A GateResult is what came of a gate.
type GateResult struct {
	Gate     string        `json:"gate"`
	Passed   bool          `json:"passed,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	Findings []Diagnostic  `json:"findings,omitempty"`
	Errors   int           `json:"errors,omitempty"`
	Warnings int           `json:"warnings,omitempty"`
	Output   string        `json:"output,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
}

// GateResultOf spells a result.
func GateResultOf(r domain.GateResult) GateResult {
	return GateResult{r.Gate, r.Passed, r.Reason, DiagnosticsOf(r.Findings), r.Errors, r.Warnings, r.Output, r.Duration}
}

// Value is the result that was spelled.
func (r GateResult) Value() domain.GateResult {
	return domain.GateResult{
		Gate: r.Gate, Passed: r.Passed, Reason: r.Reason, Findings: Diagnostics(r.Findings), Errors: r.Errors, Warnings: r.Warnings, Output: r.Output, Duration: r.Duration,
	}
}

// GateResultsText spells results; "" where there are none.
func GateResultsText(list []domain.GateResult) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	return Encode(converted(list, GateResultOf))
}

// GateResults are the results of a text; none where it cannot be read.
func GateResults(text json.RawMessage) []domain.GateResult {
	var list []GateResult
	_ = json.Unmarshal(text, &list)
	return converted(list, GateResult.Value)
}
