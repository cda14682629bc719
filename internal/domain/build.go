package domain

import "time"

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
