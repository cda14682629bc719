// Package triggerconfig is what a configuration says of triggers, [[triggers]], and of
// all of them together, [automation]: the types, their defaults and what is wrong with
// a value. It reads no file.
package triggerconfig

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Sources of events: values of [Trigger.Source].
const (
	SourceWatch    = "watch"    // files
	SourceSchedule = "schedule" // times
	SourceRun      = "run"      // states of runs
	SourceApproval = "approval" // questions
)

// Types of events of the sources watch, schedule and approval. Those of runs are "run."
// and a state.
const (
	FileCreate        = "file.create"
	FileModify        = "file.modify"
	FileDelete        = "file.delete"
	CronFired         = "cron.fired"
	ApprovalRequested = "approval.requested"
	ApprovalResolved  = "approval.resolved"
)

// Values of [Action.Type].
const (
	ActionAgent   = "agent"   // begins a session
	ActionNotify  = "notify"  // tells whoever is subscribed
	ActionWebhook = "webhook" // sends the event to an address
)

// A Trigger says what is done when something happens.
type Trigger struct {
	ID          string
	Description string
	Type        string // of events; "": any
	Source      string // of events; "": any
	Pattern     string // a regular expression for TYPE:SOURCE; "": any
	Conditions  []Condition
	Action      Action
	// Cooldown is how long it does nothing again once it has done something.
	Cooldown         time.Duration
	RequiresApproval bool // a person is asked before it does anything
	Enabled          bool // as configured; people switch it on and off

	Paths      []string // directories and files of the project that are watched, as in .gitignore; none: all
	Extensions []string // of files, with the dot; none: all
	Ignore     []string // what is not watched, as in .gitignore
	Debounce   time.Duration

	Cron     string // five fields; "": it is no schedule
	TimeZone string // of Cron; "": UTC

	FromProject bool   // it stands in the project's file
	File        string // in which it stands, for people
	Line        int
}

// A Condition compares a member of an event.
type Condition struct {
	Field    string // such as payload.path
	Operator string
	Value    any // string, int64, float64, bool, or nil
}

// An Action is what a trigger does.
type Action struct {
	Type     string `json:"type"`
	Prompt   string `json:"prompt,omitempty"`   // of ActionAgent, a template
	Agent    string `json:"agent,omitempty"`    // "": the default one
	Priority int    `json:"priority,omitempty"` // higher first
	Message  string `json:"message,omitempty"`  // of ActionNotify, a template
	Channel  string `json:"channel,omitempty"`  // for whoever is told
	URL      string `json:"url,omitempty"`      // of ActionWebhook
}

// Automation is what holds for all triggers. Only the user's own file has it.
type Automation struct {
	WebhookHosts []string // HOST or HOST:PORT to which events may be sent
	MaxDepth     int      // how many sessions triggers may begin one because of another
	MaxPerHour   int      // how often a trigger may do something
}

// DefaultAutomation is what holds where nothing is configured.
func DefaultAutomation() Automation { return Automation{MaxDepth: 3, MaxPerHour: 60} }

// DefaultDebounce is how long files have to stay as they are before a trigger is told
// that they were changed.
const DefaultDebounce = 2 * time.Second

// runStates are the states of runs of which events tell.
var runStates = []string{"queued", "starting", "running", "waiting_input", "interrupting", "completed", "failed", "timed_out", "cancelled", "interrupted", "discarded"}

// FitsType reports whether events of a type and a source are for the trigger, whatever
// else they are.
func (t Trigger) FitsType(kind, source string) bool {
	if t.Type != "" && t.Type != kind || t.Source != "" && t.Source != source {
		return false
	}
	if t.Cron != "" && source != SourceSchedule || t.watchesPaths() && source != SourceWatch {
		return false
	}
	if t.Pattern == "" {
		return true
	}
	pattern, err := regexp.Compile(t.Pattern)
	return err == nil && pattern.MatchString(kind+":"+source)
}

func (t Trigger) watchesPaths() bool {
	return len(t.Paths) > 0 || len(t.Extensions) > 0 || len(t.Ignore) > 0
}

// Watches reports whether the trigger is for changes of files.
func (t Trigger) Watches() bool {
	return slices.ContainsFunc([]string{FileCreate, FileModify, FileDelete}, func(kind string) bool { return t.FitsType(kind, SourceWatch) })
}

// FollowsRuns reports whether the trigger is for what becomes of runs and questions.
func (t Trigger) FollowsRuns() bool {
	return slices.ContainsFunc(runStates, func(state string) bool { return t.FitsType("run."+state, SourceRun) }) ||
		slices.ContainsFunc([]string{ApprovalRequested, ApprovalResolved}, func(kind string) bool { return t.FitsType(kind, SourceApproval) })
}

// When says in words what the trigger is for.
func (t Trigger) When() string {
	var parts []string
	if t.Cron != "" {
		zone := t.TimeZone
		if zone == "" {
			zone = "UTC"
		}
		return t.Cron + " (" + zone + ")"
	}
	for _, part := range []string{t.Type, t.Source, t.Pattern} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(t.Paths) > 0 {
		parts = append(parts, strings.Join(t.Paths, " "))
	}
	if len(t.Extensions) > 0 {
		parts = append(parts, "*"+strings.Join(t.Extensions, " *"))
	}
	return strings.Join(parts, " ")
}

// String is the trigger in one line, for whoever judges a configuration.
func (t Trigger) String() string {
	s := t.ID + ": " + t.When() + " → " + t.Action.String()
	if t.RequiresApproval {
		s += " (asks first)"
	}
	return s
}

// String is what is done, in one line.
func (a Action) String() string {
	switch a.Type {
	case ActionAgent:
		who := a.Agent
		if who == "" {
			who = "the default agent"
		}
		return "ask " + who + ": " + a.Prompt
	case ActionNotify:
		return "notify: " + a.Message
	case ActionWebhook:
		return "send to " + a.URL
	}
	return a.Type
}
