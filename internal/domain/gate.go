package domain

import (
	"fmt"
	"time"
)

// A Gate is a command that has to succeed before the work of an agent counts as done.
type Gate struct {
	Name       string `json:"name"`                 // as people know it: the command line itself, or its name in the configuration
	Configured bool   `json:"configured,omitempty"` // Name is that of one of the configuration, which has the command
}

// A GateLoop is work that goes on, prompt after prompt, until its gates pass: after each run
// that completes they are checked, and what has failed is the next prompt of the thread.
type GateLoop struct {
	ID            int64        `db:"id,auto"`
	Thread        int64        `db:"thread,fixed"`
	Run           int64        `db:"run"` // the one that works, or whose work is checked; of a loop that is over the last one
	Gates         []Gate       `db:"gates,fixed"`
	MaxIterations int          `db:"max_iterations,fixed"` // how many runs there may be
	Iteration     int          `db:"iteration"`            // which one Run is, from 1
	State         string       `db:"state"`                // one of the Loop constants
	Reason        string       `db:"reason"`               // of a loop that is over and has not passed: why, in words
	Results       []GateResult `db:"results"`
}

// Values of GateLoop.State.
const (
	LoopWorking  = "working"  // an agent works, or is to
	LoopChecking = "checking" // the gates are checked
	LoopPassed   = "passed"   // they pass
	LoopFailed   = "failed"   // they do not, and nothing more is tried
	LoopStopped  = "stopped"  // a run failed, or somebody ended it: whether they pass is not known
)

// IsOver reports whether nothing more comes of the loop. One that is stopped goes on with a
// run that continues its last one, if that was interrupted.
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

// A GateResult is what came of a gate.
type GateResult struct {
	Gate     string        `json:"gate"`
	Passed   bool          `json:"passed,omitempty"`
	Reason   string        `json:"reason,omitempty"`   // why it did not pass, such as "exit status 2"
	Findings []Diagnostic  `json:"findings,omitempty"` // of more than a few dozen the first
	Errors   int           `json:"errors,omitempty"`   // in all
	Warnings int           `json:"warnings,omitempty"`
	Output   string        `json:"output,omitempty"` // the first and the last lines; nothing where it has passed
	Duration time.Duration `json:"duration,omitempty"`
}

// IterationStarted says that a run of a loop begins.
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

// GateChecked says what came of a gate.
type GateChecked struct {
	GateResult
	Iteration     int `json:"iteration"`
	MaxIterations int `json:"max"`
}

// LoopEnded says that nothing more comes of a loop.
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

// Kind is EventIteration.
func (IterationStarted) Kind() EventKind { return EventIteration }

// Kind is EventGateStart.
func (GateStarted) Kind() EventKind { return EventGateStart }

// Kind is EventGate.
func (GateChecked) Kind() EventKind { return EventGate }

// Kind is EventLoopEnded.
func (LoopEnded) Kind() EventKind { return EventLoopEnded }

// Size is as of Payload.
func (p IterationStarted) Size() int { return fieldsSize + textsSize(p.Gates) }

// Size is as of Payload.
func (p GateStarted) Size() int { return fieldsSize + len(p.Gate) }

// Size is as of Payload.
func (p GateChecked) Size() int {
	n := fieldsSize + len(p.Gate) + len(p.Reason) + len(p.Output)
	for _, d := range p.Findings {
		n += fieldsSize + len(d.File) + len(d.Message)
	}
	return n
}

// Size is as of Payload.
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
	SeverityNote    = "note" // it belongs to what was said before
)

// A Diagnostic is something that a compiler, a linter or a test says is wrong at a place.
type Diagnostic struct {
	File     string `json:"file" doc:"Relative to the project's directory, or absolute if it is outside."`             // relative to the project's root with slashes, or absolute where it is outside
	Line     int    `json:"line,omitempty" doc:"From 1; absent: not known."`                                           // from 1; 0: not known
	Column   int    `json:"column,omitempty" doc:"From 1, in the tool's own units; absent: not known."`                // from 1, in the tool's own units; 0: not known
	Severity string `json:"severity" doc:"error, warning or note."`                                                    // SeverityError, SeverityWarning or SeverityNote
	Message  string `json:"message"`                                                                                   // in a line
	Source   string `json:"source,omitempty" doc:"What says it: go, gcc, typescript, rust, eslint, pytest, make, ..."` // what said it: go, gcc, typescript, rust, eslint, pytest, make, ...; "" where that is not known
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

	// Of one that has ended.
	Duration    time.Duration `json:"duration,omitempty"`
	Diagnostics []Diagnostic  `json:"diagnostics,omitempty"` // of more than a few hundred the first
	Errors      int           `json:"errors,omitempty"`      // in all
	Warnings    int           `json:"warnings,omitempty"`
	Reason      string        `json:"reason,omitempty"` // of one that has failed: why, in words
}

// Kind is EventBuild.
func (BuildProgressed) Kind() EventKind { return EventBuild }

// Size is as of Payload.
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
