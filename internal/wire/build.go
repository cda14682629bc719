package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
)

// Stages of a build, as buildProgress tells them; others say that it has ended.
const (
	BuildWaits   = "waiting"
	BuildStarted = "started"
	BuildOutput  = "output"
)

// Builds are what listBuilds answers.
type Builds struct {
	Builds []BuildTarget `json:"builds"`
}

// A BuildTarget is something that can be built.
type BuildTarget struct {
	Name     string   `json:"name"`
	Command  []string `json:"command"`
	Backend  bool     `json:"backend"`
	Detected bool     `json:"detected"`
}

// Line is the command as somebody would type it.
func (t BuildTarget) Line() string { return commandLine(t.Command) }

// BuildProgress is what the notification buildProgress has.
type BuildProgress struct {
	Name    string   `json:"name"`
	Stage   string   `json:"stage"`
	Command []string `json:"command"`
	Output  string   `json:"output"`
}

// Line is the command as somebody would type it.
func (p BuildProgress) Line() string { return commandLine(p.Command) }

func commandLine(words []string) string {
	if len(words) == 3 && words[0] == "sh" && words[1] == "-c" {
		return words[2]
	}
	return strings.Join(words, " ")
}

// A Diagnostic is something that is wrong at a place.
type Diagnostic struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Source   string `json:"source"`
}

// Built is what a build answers that has succeeded.
type Built struct {
	Name     string       `json:"name"`
	Warnings []Diagnostic `json:"warnings"`
}

// Found says how many warnings there are, behind what else is said; "" if there are none.
func (b Built) Found() string {
	n := 0
	for _, d := range b.Warnings {
		if d.Severity == "warning" {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return ", 1 warning"
	}
	return fmt.Sprintf(", %d warnings", n)
}

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

// Automation is what triggers there are (automation.status).
type Automation struct {
	Enabled bool      `json:"enabled"`
	Rules   []Trigger `json:"rules"`
	Problem string    `json:"problem"`
	Issues  []string  `json:"issues"`
}

// A Trigger does something when something happens.
type Trigger struct {
	ID               string        `json:"id"`
	Action           TriggerAction `json:"action"`
	Enabled          bool          `json:"enabled"`
	RequiresApproval bool          `json:"requiresApproval"`
	CooldownMs       int64         `json:"cooldownMs"`
	Description      string        `json:"description"`
	When             string        `json:"when"`
	LastFired        string        `json:"lastFired"`
	NextFire         string        `json:"nextFire"`
	File             string        `json:"file"`
	Line             int           `json:"line"`

	Raw json.RawMessage `json:"-"` // as the hub told it
}

// UnmarshalJSON keeps the trigger as it came, too.
func (t *Trigger) UnmarshalJSON(text []byte) error {
	type plain Trigger
	err := json.Unmarshal(text, (*plain)(t))
	t.Raw = append(json.RawMessage(nil), text...)
	return err
}

// State says whether it is switched on.
func (t Trigger) State() string {
	if t.Enabled {
		return "on"
	}
	return "off"
}

// Does says what it does.
func (t Trigger) Does() string {
	if t.RequiresApproval {
		return t.Action.String() + " (asks first)"
	}
	return t.Action.String()
}

// A TriggerAction is what a trigger does.
type TriggerAction struct {
	Type    string `json:"type"`
	Prompt  string `json:"prompt"`
	Agent   string `json:"agent"`
	Message string `json:"message"`
	URL     string `json:"url"`
}

// String says what is done.
func (a TriggerAction) String() string {
	text := a.Prompt + a.Message + a.URL
	if a.Agent != "" {
		return a.Type + " " + a.Agent + ": " + text
	}
	return a.Type + ": " + text
}

// A TriggerExecution is what a trigger has done (automation.log).
type TriggerExecution struct {
	RuleID    string `json:"ruleId"`
	EventType string `json:"eventType"`
	Status    string `json:"status"`
	Timestamp string `json:"timestamp"`
	TaskID    string `json:"taskId"`
	Error     string `json:"error"`
}

// A TriggerTrial is what a trigger would do (automation.test).
type TriggerTrial struct {
	RuleID string        `json:"ruleId"`
	Fits   bool          `json:"fits"`
	Why    string        `json:"why"`
	Does   TriggerAction `json:"does"`
}

// A Terminal is a terminal that runs in the hub.
type Terminal struct {
	ID        string   `json:"terminal_id"`
	Program   string   `json:"program"`
	Args      []string `json:"args"`
	CWD       string   `json:"cwd"`
	Cols      int      `json:"cols"`
	Rows      int      `json:"rows"`
	Tmux      string   `json:"tmux_session"`
	TaskID    string   `json:"task_id"`
	ReadOnly  bool     `json:"read_only"`
	Attached  int      `json:"attached"`
	Taken     bool     `json:"taken"`
	StartedAt string   `json:"started_at"`
}

// Terminals are those of the hub.
func Terminals(ctx context.Context, c *client.Client) ([]Terminal, json.RawMessage, error) {
	r, raw, err := Call[struct{ Terminals []Terminal }](ctx, c, "terminal.list", nil)
	return r.Terminals, raw, err
}
