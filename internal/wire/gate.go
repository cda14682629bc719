package wire

import (
	"fmt"
	"strings"
	"time"
)

// States of work that has gates.
const (
	GatesWorking  = "working"
	GatesChecking = "checking"
	GatesPassed   = "passed"
	GatesFailed   = "failed"
	GatesStopped  = "stopped"
)

// Gates are where the work of a session stands that has gates.
type Gates struct {
	State         string       `json:"state"`
	Reason        string       `json:"reason"`
	Iteration     int          `json:"iteration"`
	MaxIterations int          `json:"max_iterations"`
	Gates         []string     `json:"gates"`
	Failing       []string     `json:"failing"`
	Results       []GateResult `json:"results"`
	SessionID     string       `json:"session_id"` // that works, or did last
	TaskID        string       `json:"task_id"`
}

// A GateResult is what came of a gate.
type GateResult struct {
	Gate         string       `json:"gate"`
	Passed       bool         `json:"passed"`
	Reason       string       `json:"reason"`
	Findings     []Diagnostic `json:"findings"`
	Output       string       `json:"output"`
	Milliseconds int64        `json:"duration_ms"`
}

// Outcome says what came of it, and how long that took.
func (r GateResult) Outcome() string {
	took := (time.Duration(r.Milliseconds) * time.Millisecond).Round(10 * time.Millisecond).String()
	if r.Passed {
		return r.Gate + " (" + took + ")"
	}
	return r.Gate + ": " + r.Reason + " (" + took + ")"
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

// AreChecked reports whether the gates of this session's own turn run now.
func (s Session) AreChecked() bool {
	return s.Gates != nil && s.Gates.State == GatesChecking && s.Gates.SessionID == s.ID
}

// GoesOnIn is the session in which the work of one that has ended goes on, since its gates
// failed; "": in none.
func (s Session) GoesOnIn() string {
	if s.Gates == nil || s.Gates.SessionID == s.ID || s.Gates.State != GatesWorking && s.Gates.State != GatesChecking {
		return ""
	}
	return s.Gates.SessionID
}

// Named are the gates. g may be nil.
func (g *Gates) Named() []string {
	if g == nil {
		return nil
	}
	return g.Gates
}

// IsOver reports whether nothing more comes of the work. g may be nil, which is false.
func (g *Gates) IsOver() bool {
	return g != nil && (g.State == GatesPassed || g.State == GatesFailed || g.State == GatesStopped)
}

// Failed reports whether gates still fail, and nothing more is tried. g may be nil.
func (g *Gates) Failed() bool { return g != nil && g.State == GatesFailed }

// Words are where the work stands, in words; "" where there are no gates.
func (g *Gates) Words() string {
	if g == nil {
		return ""
	}
	turn := fmt.Sprintf("turn %d of %d", g.Iteration, g.MaxIterations)
	switch g.State {
	case GatesPassed:
		return fmt.Sprintf("passed in %s", turn)
	case GatesFailed:
		return fmt.Sprintf("failed, %s: %s", strings.Join(g.Failing, ", "), g.Reason)
	case GatesStopped:
		return fmt.Sprintf("stopped in %s: %s", turn, g.Reason)
	case GatesChecking:
		return "checked after " + turn
	}
	return turn
}

// Short is the same in a word or two, behind the state of a task; "" where that is clear
// without.
func (g *Gates) Short() string {
	if g == nil {
		return ""
	}
	switch g.State {
	case GatesPassed:
		return ", gates passed"
	case GatesFailed:
		return ", gates failed"
	case GatesChecking:
		return ", gates checked"
	case GatesWorking:
		return fmt.Sprintf(", turn %d/%d", g.Iteration, g.MaxIterations)
	}
	return ""
}
