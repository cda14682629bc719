package eventrow

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

type buildRow struct {
	BuildID     string          `json:"build"`
	Name        string          `json:"name"`
	Stage       string          `json:"stage"`
	Command     []string        `json:"command,omitempty"`
	Duration    time.Duration   `json:"duration,omitempty"`
	Diagnostics []diagnosticRow `json:"diagnostics,omitempty"`
	Errors      int             `json:"errors,omitempty"`
	Warnings    int             `json:"warnings,omitempty"`
	Reason      string          `json:"reason,omitempty"`
}

type diagnosticRow struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Source   string `json:"source,omitempty"`
}

func buildRowOf(p domain.BuildProgressed) buildRow {
	r := buildRow{BuildID: p.BuildID, Name: p.Name, Stage: p.Stage, Command: p.Command, Duration: p.Duration, Errors: p.Errors, Warnings: p.Warnings, Reason: p.Reason}
	for _, d := range p.Diagnostics {
		r.Diagnostics = append(r.Diagnostics, diagnosticRow(d))
	}
	return r
}

func (r buildRow) payload() domain.BuildProgressed {
	p := domain.BuildProgressed{BuildID: r.BuildID, Name: r.Name, Stage: r.Stage, Command: r.Command, Duration: r.Duration, Errors: r.Errors, Warnings: r.Warnings, Reason: r.Reason}
	for _, d := range r.Diagnostics {
		p.Diagnostics = append(p.Diagnostics, domain.Diagnostic(d))
	}
	return p
}
