package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// The types, defaults and checks of [[triggers]] and [automation] in a configuration. The code
// reads no file.

const (
	mostText    = 32 << 10 // bytes of a prompt or a message
	mostPattern = 1024     // bytes
)

// Operators are the operators of conditions, with their aliases.
var Operators = []string{"eq", "equals", "neq", "not_equals", "contains", "matches", "gt", "lt", "gte", "lte", "exists", "not_exists"}

// checkTrigger completes a trigger and records impossible combinations.
func checkTrigger(t Table, trigger *Trigger, source string) {
	trigger.FromProject, trigger.File, trigger.Line = source == SourceProject, t.doc.Name, t.At().Line
	switch watches := trigger.watchesPaths(); {
	case !t.Has("type") && !t.Has("source") && !t.Has("pattern") && !t.Has("cron") && !watches:
		t.Missing("source", `what it is for: "watch" with paths, "turn" with a type such as "turn.failed", or cron`)
	case t.Has("cron") && watches:
		t.Wrong("cron", "nothing, for a trigger that watches files", "")
	case t.Has("cron") && trigger.Source != "" && trigger.Source != SourceSchedule:
		t.Wrong("source", `"schedule", or nothing, for a trigger that has cron`, "")
	case watches && trigger.Source != "" && trigger.Source != SourceWatch:
		t.Wrong("source", `"watch", or nothing, for a trigger that has paths, extensions or ignore`, "")
	case t.Has("time_zone") && !t.Has("cron"):
		t.Wrong("time_zone", "nothing, for a trigger that has no cron", "")
	}
}

// checkCondition records a value that does not fit the operator.
func checkCondition(t Table, c *Condition) {
	text, isText := c.Value.(string)
	switch c.Operator {
	case "", "exists", "not_exists":
		return
	case "matches":
		if !isText {
			t.Wrong("value", "a regular expression", "")
		} else if err := checkPattern(text); err != nil {
			t.Wrong("value", err.Error(), "")
		}
		return
	}
	switch c.Value.(type) {
	case string, int64, float64, bool:
	case nil:
		t.Missing("value", "the value to compare the member with")
	default:
		t.Wrong("value", "a string, a number, true or false", "")
	}
}

// checkAction records the keys that an action of its type must and must not have.
func checkAction(t Table, a domain.TriggerAction) {
	for kind, its := range map[string][]string{
		domain.ActionAgent: {"prompt", "agent", "priority"}, domain.ActionNotify: {"message", "channel"}, domain.ActionWebhook: {"url"},
	} {
		for i, key := range its {
			switch {
			case a.Type == kind && i == 0 && !t.Has(key):
				t.Missing(key, fmt.Sprintf("an action of type %q needs it", kind))
			case a.Type != "" && a.Type != kind && t.Has(key):
				t.Wrong(key, fmt.Sprintf("nothing, for an action of type %q", a.Type), "")
			}
		}
	}
}

func checkSchedule(s string) error {
	_, err := ParseSchedule(s, "")
	return err
}

func checkPattern(s string) error {
	if len(s) > mostPattern {
		return fmt.Errorf("a regular expression of at most %d bytes", mostPattern)
	}
	if _, err := regexp.Compile(s); err != nil {
		return errors.New("a regular expression (https://golang.org/s/re2syntax)")
	}
	return nil
}

// checkEventType refuses a type that no event has: its trigger would never act.
func checkEventType(s string) error {
	known := []string{FileCreate, FileModify, FileDelete, CronFired, ApprovalRequested, ApprovalResolved}
	for _, state := range turnStates {
		known = append(known, "turn."+state)
	}
	if slices.Contains(known, s) {
		return nil
	}
	return errors.New("a type of event of docs/automation.md" + didYouMean(s, known))
}

func checkPath(s string) error {
	if s == "" || len(s) > mostPattern || strings.HasPrefix(s, "!") {
		return errors.New("a directory or a file of the project, or a pattern as in .gitignore")
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == ".." {
			return errors.New("a path below the project")
		}
	}
	return nil
}

func checkExtension(s string) error {
	if len(s) < 2 || s[0] != '.' || strings.ContainsAny(s, "/*?") {
		return errors.New(`the end of a file's name with its dot, such as ".go"`)
	}
	return nil
}

func checkZone(s string) error {
	_, err := ParseSchedule("* * * * *", s)
	return err
}

func checkURL(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil {
		return errors.New("an address of https or http, without a user in it")
	}
	return nil
}

func checkHost(s string) error {
	u, err := url.Parse("https://" + s)
	if err != nil || s == "" || u.Host != s || u.Hostname() == "" {
		return errors.New("HOST or HOST:PORT, such as hooks.example.com")
	}
	return nil
}

// AllowsWebhook reports whether the user allows events to be sent to an address. WebhookHosts
// must contain its host with its port; the port may be missing if it is that of the scheme.
func (a Automation) AllowsWebhook(address string) bool {
	u, err := url.Parse(address)
	if err != nil || checkURL(address) != nil {
		return false
	}
	port := u.Port()
	standard := map[string]string{"https": "443", "http": "80"}[u.Scheme]
	for _, host := range a.WebhookHosts {
		allowed, err := url.Parse("https://" + host)
		if err != nil || !strings.EqualFold(allowed.Hostname(), u.Hostname()) {
			continue
		}
		switch allowed.Port() {
		case "":
			if port == "" || port == standard {
				return true
			}
		case port:
			return true
		case standard:
			if port == "" {
				return true
			}
		}
	}
	return false
}

// Sources of events: values of [Trigger.Source].
const (
	SourceWatch    = "watch"    // files
	SourceSchedule = "schedule" // times
	SourceTurn     = "turn"     // states of turns
	SourceApproval = "approval" // approvals
)

// Types of events of the sources watch, schedule and approval. For turns they are "turn." and a
// state.
const (
	FileCreate        = "file.create"
	FileModify        = "file.modify"
	FileDelete        = "file.delete"
	CronFired         = "cron.fired"
	ApprovalRequested = "approval.requested"
	ApprovalResolved  = "approval.resolved"
)

// A Trigger defines the reaction to an event.
type Trigger struct {
	ID          string
	Description string
	Type        string // of events; "": any
	Source      string // of events; "": any
	Pattern     string // a regular expression for TYPE:SOURCE; "": any
	Conditions  []Condition
	Action      domain.TriggerAction
	// Cooldown is the minimum time between two actions.
	Cooldown         time.Duration
	RequiresApproval bool // a person must approve each action
	Enabled          bool // as configured; people enable and disable it

	Paths      []string // watched directories and files of the project, as in .gitignore; none: all
	Extensions []string // of files, with the dot; none: all
	Ignore     []string // ignored paths, as in .gitignore
	Debounce   time.Duration

	Cron     string // five fields; "": not a schedule
	TimeZone string // of Cron; "": UTC

	FromProject bool   // it comes from the project's file
	File        string // its file, for display
	Line        int
}

// A Condition compares a member of an event.
type Condition struct {
	Field    string // such as payload.path
	Operator string
	Value    any // string, int64, float64, bool, or nil
}

// Automation holds the common settings of all triggers. Only the user's own file has it.
type Automation struct {
	WebhookHosts []string // HOST or HOST:PORT to which events may be sent
	MaxDepth     int      // maximum length of a chain of sessions begun by triggers
	MaxPerHour   int      // maximum number of actions of a trigger
}

// DefaultAutomation returns the settings without configuration.
func DefaultAutomation() Automation { return Automation{MaxDepth: 3, MaxPerHour: 60} }

// defaultDebounce is how long files must stay unchanged before a trigger receives their changes.
const defaultDebounce = 2 * time.Second

// turnStates are the states of turns that have events.
var turnStates = []string{
	"queued", "starting", "running", "waiting_input", "interrupting", "completed", "failed", "timed_out", "cancelled", "interrupted",
	"discarded",
}

// FitsType reports whether the trigger accepts events of a type and a source, apart from its
// other conditions.
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

// Watches reports whether the trigger reacts to changes of files.
func (t Trigger) Watches() bool {
	return slices.ContainsFunc([]string{FileCreate, FileModify, FileDelete}, func(kind string) bool { return t.FitsType(kind, SourceWatch) })
}

// FollowsRuns reports whether the trigger reacts to turns and approvals.
func (t Trigger) FollowsRuns() bool {
	return slices.ContainsFunc(turnStates, func(state string) bool { return t.FitsType("turn."+state, SourceTurn) }) ||
		slices.ContainsFunc([]string{ApprovalRequested, ApprovalResolved}, func(kind string) bool { return t.FitsType(kind, SourceApproval) })
}

// When describes the trigger's event in words.
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

// String describes the trigger in one line, for a person who reviews a configuration.
func (t Trigger) String() string {
	s := t.ID + ": " + t.When() + " → " + t.Action.String()
	if t.RequiresApproval {
		s += " (asks first)"
	}
	return s
}
