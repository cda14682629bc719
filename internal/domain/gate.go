package domain

import (
	"fmt"
	"time"
)

// A Gate is a command that must succeed before the agent's work is done.
type Gate struct {
	Name       string `json:"name"`                 // the command line, or its name in the configuration
	Configured bool   `json:"configured,omitempty"` // Name is a name in the configuration
}

// A GateLoop is work that continues, prompt after prompt, until its gates pass. They are checked
// after each completed turn, and the failures are the session's next prompt.
type GateLoop struct {
	ID            int64        `db:"id,auto"`
	Session       int64        `db:"session,fixed"`
	Turn          int64        `db:"turn"` // the working or checked turn; of a loop that is over, the last one
	Gates         []Gate       `db:"gates,fixed"`
	MaxIterations int          `db:"max_iterations,fixed"` // how many turns there may be
	Iteration     int          `db:"iteration"`            // which one Turn is, from 1
	State         string       `db:"state"`                // one of the Loop constants
	Reason        string       `db:"reason"`               // why a loop that is over did not pass
	Results       []GateResult `db:"results"`
}

// Values of GateLoop.State.
const (
	LoopWorking  = "working"  // an agent works, or will
	LoopChecking = "checking" // the gates are checked
	LoopPassed   = "passed"   // they pass
	LoopFailed   = "failed"   // they fail, and no more turns are tried
	LoopStopped  = "stopped"  // a turn failed or was ended; the gates were not checked
)

// IsOver reports whether the loop has ended. A stopped loop resumes with a turn that continues its
// interrupted last one.
func (l GateLoop) IsOver() bool { return l.State != LoopWorking && l.State != LoopChecking }

// Failing are the results of the gates that did not pass.
func (l GateLoop) Failing() (out []GateResult) {
	for _, r := range l.Results {
		if !r.Passed {
			out = append(out, r)
		}
	}
	return out
}

// A GateResult is the result of a gate.
type GateResult struct {
	Gate     string        `json:"gate"`
	Passed   bool          `json:"passed,omitempty"`
	Reason   string        `json:"reason,omitempty"`   // why it did not pass, such as "exit status 2"
	Findings []Diagnostic  `json:"findings,omitempty"` // the first few dozen
	Errors   int           `json:"errors,omitempty"`   // in all
	Warnings int           `json:"warnings,omitempty"`
	Output   string        `json:"output,omitempty"` // the first and the last lines; "" if it passed
	Duration time.Duration `json:"duration,omitempty"`
}

// IterationStarted says that a turn of a loop begins.
type IterationStarted struct {
	Iteration     int      `json:"iteration"`
	MaxIterations int      `json:"max"`
	Gates         []string `json:"gates"`
}

// GateStarted says that a gate is checked.
type GateStarted struct {
	Gate      string `json:"gate"`
	Iteration int    `json:"iteration"`
}

// GateChecked is the result of a gate.
type GateChecked struct {
	GateResult
	Iteration     int `json:"iteration"`
	MaxIterations int `json:"max"`
}

// LoopEnded says that a loop is over.
type LoopEnded struct {
	State         string   `json:"state"` // LoopPassed, LoopFailed or LoopStopped
	Reason        string   `json:"reason,omitempty"`
	Iteration     int      `json:"iteration"`
	MaxIterations int      `json:"max"`
	Failing       []string `json:"failing,omitempty"` // gates that did not pass
}

// Kinds of the events of loops.
const (
	EventIteration EventKind = "gate.iteration"
	EventGateStart EventKind = "gate.started"
	EventGate      EventKind = "gate.checked"
	EventLoopEnded EventKind = "gate.ended"
)

func (IterationStarted) Kind() EventKind { return EventIteration }
func (GateStarted) Kind() EventKind      { return EventGateStart }
func (GateChecked) Kind() EventKind      { return EventGate }
func (LoopEnded) Kind() EventKind        { return EventLoopEnded }

func (p IterationStarted) Size() int { return fieldsSize + textsSize(p.Gates) }
func (p GateStarted) Size() int      { return fieldsSize + len(p.Gate) }

func (p GateChecked) Size() int {
	n := fieldsSize + len(p.Gate) + len(p.Reason) + len(p.Output)
	for _, d := range p.Findings {
		n += fieldsSize + len(d.File) + len(d.Message)
	}
	return n
}

func (p LoopEnded) Size() int { return fieldsSize + len(p.Reason) + textsSize(p.Failing) }

func textsSize(list []string) (n int) {
	for _, s := range list {
		n += len(s)
	}
	return n
}

// Severities of a [Diagnostic].
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
	SeverityNote    = "note" // part of the previous diagnostic
)

// A Diagnostic is a problem at a place in a file, from a compiler, a linter or a test.
type Diagnostic struct {
	File     string `json:"file" doc:"Relative to the project's directory, or absolute if outside of it."`         // relative to the project's root with slashes, or absolute where it is outside
	Line     int    `json:"line,omitempty" doc:"From 1. Absent: unknown."`                                         // from 1; 0: not known
	Column   int    `json:"column,omitempty" doc:"From 1, in the tool's own units. Absent: unknown."`              // from 1, in the tool's own units; 0: not known
	Severity string `json:"severity" doc:"error, warning or note."`                                                // SeverityError, SeverityWarning or SeverityNote
	Message  string `json:"message"`                                                                               // in a line
	Source   string `json:"source,omitempty" doc:"The tool: go, gcc, typescript, rust, eslint, pytest, make, ..."` // the tool: go, gcc, typescript, rust, eslint, pytest, make, ..., or ""
}

// Stages of a build.
const (
	BuildStarted   = "started"
	BuildSucceeded = "succeeded"
	BuildFailed    = "failed"
	BuildCancelled = "cancelled"
)

// BuildProgressed says that a build has begun, or ended.
type BuildProgressed struct {
	BuildID string   `json:"build"`
	Name    string   `json:"name"`
	Stage   string   `json:"stage"`
	Command []string `json:"command,omitempty"`

	// Of a build that has ended.
	Duration    time.Duration `json:"duration,omitempty"`
	Diagnostics []Diagnostic  `json:"diagnostics,omitempty"` // the first few hundred
	Errors      int           `json:"errors,omitempty"`      // in all
	Warnings    int           `json:"warnings,omitempty"`
	Reason      string        `json:"reason,omitempty"` // of a failed build
}

func (BuildProgressed) Kind() EventKind { return EventBuild }

func (p BuildProgressed) Size() int {
	n := fieldsSize
	for _, d := range p.Diagnostics {
		n += fieldsSize + len(d.File) + len(d.Message)
	}
	return n
}

// Text is a diagnostic as compilers print it.
func (d Diagnostic) Text() string {
	place := d.File
	if d.Line > 0 {
		place += fmt.Sprintf(":%d", d.Line)
		if d.Column > 0 {
			place += fmt.Sprintf(":%d", d.Column)
		}
	}
	return place + ": " + d.Severity + ": " + d.Message
}
