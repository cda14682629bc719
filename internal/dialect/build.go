package dialect

import (
	"github.com/sourcegraph/jsonrpc2"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/server"
)

// codeBuildFailed is the code of a build that has failed, as application boundaries have it.
const codeBuildFailed = -32001

// BuildFailed is the error of a build that has failed; data has its diagnostics.
func BuildFailed(message string, data any) *jsonrpc2.Error {
	return server.NewError(codeBuildFailed, "Build failed: "+message, data)
}

// A Diagnostic is something that is wrong at a place, as clients see it.
type Diagnostic struct {
	File     string `json:"file" doc:"Relative to the project's directory, or absolute if it is outside."`
	Line     int    `json:"line,omitempty" doc:"From 1; absent: not known."`
	Column   int    `json:"column,omitempty" doc:"From 1, in the tool's own units; absent: not known."`
	Severity string `json:"severity" doc:"error, warning or note."`
	Message  string `json:"message"`
	Source   string `json:"source,omitempty" doc:"What says it: go, gcc, typescript, rust, eslint, pytest, make, ..."`
}

// DiagnosticOf is a diagnostic as clients see it.
func DiagnosticOf(d domain.Diagnostic) Diagnostic { return Diagnostic(d) }

// DiagnosticsOf are diagnostics as clients see them; a list, even if it is empty.
func DiagnosticsOf(list []domain.Diagnostic) []Diagnostic {
	out := make([]Diagnostic, 0, len(list))
	for _, d := range list {
		out = append(out, Diagnostic(d))
	}
	return out
}

type buildData struct {
	BuildID     string       `json:"build_id"`
	Name        string       `json:"name"`
	Stage       string       `json:"stage"`
	Command     []string     `json:"command"`
	DurationMS  int64        `json:"duration_ms,omitempty"`
	Errors      int          `json:"errors,omitempty"`
	Warnings    int          `json:"warnings,omitempty"`
	Diagnostics []Diagnostic `json:"diagnostics,omitempty"`
	Reason      string       `json:"reason,omitempty"`
}

func buildDataOf(p domain.BuildProgressed) buildData {
	d := buildData{
		BuildID: p.BuildID, Name: p.Name, Stage: p.Stage, Command: append([]string{}, p.Command...), DurationMS: p.Duration.Milliseconds(),
		Errors: p.Errors, Warnings: p.Warnings, Reason: p.Reason,
	}
	if len(p.Diagnostics) > 0 {
		d.Diagnostics = DiagnosticsOf(p.Diagnostics)
	}
	return d
}
