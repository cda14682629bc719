package eventrow

import (
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store/sqlite/rowjson"
)

type buildRow struct {
	BuildID     string               `json:"build"`
	Name        string               `json:"name"`
	Stage       string               `json:"stage"`
	Command     []string             `json:"command,omitempty"`
	Duration    time.Duration        `json:"duration,omitempty"`
	Diagnostics []rowjson.Diagnostic `json:"diagnostics,omitempty"`
	Errors      int                  `json:"errors,omitempty"`
	Warnings    int                  `json:"warnings,omitempty"`
	Reason      string               `json:"reason,omitempty"`
}

func buildRowOf(p domain.BuildProgressed) buildRow {
	r := buildRow{BuildID: p.BuildID, Name: p.Name, Stage: p.Stage, Command: p.Command, Duration: p.Duration, Errors: p.Errors, Warnings: p.Warnings, Reason: p.Reason}
	r.Diagnostics = rowjson.DiagnosticsOf(p.Diagnostics)
	return r
}

func (r buildRow) payload() domain.BuildProgressed {
	p := domain.BuildProgressed{BuildID: r.BuildID, Name: r.Name, Stage: r.Stage, Command: r.Command, Duration: r.Duration, Errors: r.Errors, Warnings: r.Warnings, Reason: r.Reason}
	p.Diagnostics = rowjson.Diagnostics(r.Diagnostics)
	return p
}
