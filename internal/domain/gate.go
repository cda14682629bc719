package domain

import (
	"time"
)

// A Gate is a command that has to succeed before the work of an agent counts as done.
type Gate struct {
	Name       string // as people know it: the command line itself, or its name in the configuration
	Configured bool   // Name is that of one of the configuration, which has the command
}

// A GateLoop is work that goes on, prompt after prompt, until its gates pass: after each run
// that completes they are checked, and what has failed is the next prompt of the thread.
type GateLoop struct {
	ID            int64
	Thread        int64
	Run           int64 // the one that works, or whose work is checked; of a loop that is over the last one
	Gates         []Gate
	MaxIterations int    // how many runs there may be
	Iteration     int    // which one Run is, from 1
	State         string // one of the Loop constants
	Reason        string // of a loop that is over and has not passed: why, in words
	Results       []GateResult
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
	Gate     string
	Passed   bool
	Reason   string       // why it did not pass, such as "exit status 2"
	Findings []Diagnostic // of more than a few dozen the first
	Errors   int          // in all
	Warnings int
	Output   string // the first and the last lines; nothing where it has passed
	Duration time.Duration
}

// IterationStarted says that a run of a loop begins.
type IterationStarted struct {
	Iteration, MaxIterations int
	Gates                    []string
}

// GateStarted says that a gate is checked.
type GateStarted struct {
	Gate      string
	Iteration int
}

// GateChecked says what came of a gate.
type GateChecked struct {
	GateResult
	Iteration, MaxIterations int
}

// LoopEnded says that nothing more comes of a loop.
type LoopEnded struct {
	State                    string // LoopPassed, LoopFailed or LoopStopped
	Reason                   string
	Iteration, MaxIterations int
	Failing                  []string // gates that did not pass
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
	File     string // relative to the project's root with slashes, or absolute where it is outside
	Line     int    // from 1; 0: not known
	Column   int    // from 1, in the tool's own units; 0: not known
	Severity string // SeverityError, SeverityWarning or SeverityNote
	Message  string // in a line
	Source   string // what said it: go, gcc, typescript, rust, eslint, pytest, make, ...; "" where that is not known
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
	BuildID string
	Name    string
	Stage   string
	Command []string

	// Of one that has ended.
	Duration    time.Duration
	Diagnostics []Diagnostic // of more than a few hundred the first
	Errors      int          // in all
	Warnings    int
	Reason      string // of one that has failed: why, in words
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
