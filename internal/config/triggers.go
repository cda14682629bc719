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

// mostTriggers is the maximum number of triggers of a file.
const mostTriggers = 100

// decodeTriggers reads [[triggers]] and [automation].
func (l *layer) decodeTriggers(top Table) {
	known := map[string]bool{}
	for _, t := range top.List("triggers", "triggers", mostTriggers) {
		trigger := DecodeTrigger(t, l.source == SourceProject)
		if known[trigger.ID] {
			t.Wrong("id", "an id that no other trigger of the file has", quoteShort(trigger.ID))
		}
		known[trigger.ID] = trigger.ID != ""
		l.triggers = append(l.triggers, trigger)
	}
	t, ok := top.Sub("automation")
	switch {
	case !ok:
	case l.source == SourceProject:
		t.WrongHere("[automation] decides where events may be sent, so it belongs only in your own configuration")
	default:
		a := decodeAutomation(t)
		l.automation = &a
	}
}

// triggerValues returns the triggers, and their common settings, as settings.
func (c *Config) triggerValues() (out []Value) {
	if source := c.origins["automation"]; source != "" {
		out = append(out, Value{Key: "automation.webhook_hosts", Value: c.Automation.WebhookHosts, Source: source},
			Value{Key: "automation.max_depth", Value: c.Automation.MaxDepth, Source: source}, Value{Key: "automation.max_per_hour", Value: c.Automation.MaxPerHour, Source: source})
	}
	for _, t := range c.Triggers {
		source := SourceUser
		if t.FromProject {
			source = SourceProject
		}
		out = append(out, Value{Key: "triggers", Value: phrase(quoteControls(t.String())), Source: source})
	}
	return out
}

// The types, defaults and checks of [[triggers]] and [automation] in a configuration. The code
// reads no file.

const (
	mostConditions = 50
	mostText       = 32 << 10 // bytes of a prompt or a message
	mostPattern    = 1024     // bytes
	leastDebounce  = 50 * time.Millisecond
	mostDebounce   = 10 * time.Minute
	mostCooldown   = 30 * 24 * time.Hour
)

// Operators are the operators of conditions, with their aliases.
var Operators = []string{"eq", "equals", "neq", "not_equals", "contains", "matches", "gt", "lt", "gte", "lte", "exists", "not_exists"}

// DecodeTrigger reads [[triggers]].
func DecodeTrigger(t Table, fromProject bool) Trigger {
	t.Only([]string{
		"id", "description", "type", "source", "pattern", "conditions", "action", "cooldown", "requires_approval", "enabled",
		"paths", "extensions", "ignore", "debounce", "cron", "time_zone",
	})
	trigger := Trigger{
		ID: text(t, "id", checkName), Description: text(t, "description", atMost(mostText)),
		Type: text(t, "type", checkEventType), Source: text(t, "source", oneOf(SourceWatch, SourceSchedule, SourceRun, SourceApproval)), Pattern: text(t, "pattern", checkPattern),
		Paths: t.Texts("paths", checkPath), Extensions: t.Texts("extensions", checkExtension), Ignore: t.Texts("ignore", atMost(mostPattern)),
		Cron: text(t, "cron", func(s string) error { _, err := ParseSchedule(s, ""); return err }), TimeZone: text(t, "time_zone", checkZone),
		Enabled: true, Debounce: defaultDebounce, FromProject: fromProject,
	}
	trigger.File, trigger.Line = t.File(), t.At().Line
	if on := t.Flag("enabled"); on != nil {
		trigger.Enabled = *on
	}
	if asks := t.Flag("requires_approval"); asks != nil {
		trigger.RequiresApproval = *asks
	}
	if d := t.Duration("cooldown", 0, mostCooldown); d != nil {
		trigger.Cooldown = *d
	}
	if d := t.Duration("debounce", leastDebounce, mostDebounce); d != nil {
		trigger.Debounce = *d
	}
	for _, c := range t.List("conditions", "triggers.conditions", mostConditions) {
		trigger.Conditions = append(trigger.Conditions, decodeCondition(c))
	}
	if !t.Has("id") {
		t.Missing("id", "a name by which it is switched on and off")
	}
	decodeAction(t, &trigger.Action)
	checkEvent(t, trigger)
	return trigger
}

// checkEvent records impossible combinations.
func checkEvent(t Table, trigger Trigger) {
	switch watches := trigger.watchesPaths(); {
	case !t.Has("type") && !t.Has("source") && !t.Has("pattern") && !t.Has("cron") && !watches:
		t.Missing("source", `what it is for: "watch" with paths, "run" with a type such as "run.failed", or cron`)
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

func decodeCondition(t Table) Condition {
	t.Only([]string{"field", "operator", "value"})
	c := Condition{Field: text(t, "field", atMost(mostPattern)), Operator: text(t, "operator", oneOf(Operators...)), Value: t.Values["value"]}
	for key, what := range map[string]string{"field": "a member of the event, such as payload.path", "operator": "one of " + strings.Join(Operators, ", ")} {
		if !t.Has(key) {
			t.Missing(key, what)
		}
	}
	_, isText := c.Value.(string)
	switch c.Operator {
	case "", "exists", "not_exists":
		return c
	case "matches":
		if !isText {
			t.Wrong("value", "a regular expression", "")
		} else if err := checkPattern(c.Value.(string)); err != nil {
			t.Wrong("value", err.Error(), "")
		}
		return c
	}
	switch c.Value.(type) {
	case string, int64, float64, bool:
	case nil:
		t.Missing("value", "the value to compare the member with")
	default:
		t.Wrong("value", "a string, a number, true or false", "")
	}
	return c
}

func decodeAction(t Table, a *domain.TriggerAction) {
	action, ok := t.Sub("action")
	if !ok {
		if !t.Has("action") {
			t.Missing("action", `what is done, such as { type = "agent", prompt = "…" }`)
		}
		return
	}
	action.Only([]string{"type", "prompt", "agent", "priority", "message", "channel", "url"})
	*a = domain.TriggerAction{
		Type: text(action, "type", oneOf(domain.ActionAgent, domain.ActionNotify, domain.ActionWebhook)), Prompt: text(action, "prompt", atMost(mostText)), Agent: text(action, "agent", checkName),
		Message: text(action, "message", atMost(mostText)), Channel: text(action, "channel", atMost(mostPattern)), URL: text(action, "url", checkURL),
	}
	if n := action.Whole("priority", -1000, 1000); n != nil {
		a.Priority = *n
	}
	if !action.Has("type") {
		action.Missing("type", `"agent", "notify" or "webhook"`)
	}
	for kind, its := range map[string][]string{domain.ActionAgent: {"prompt", "agent", "priority"}, domain.ActionNotify: {"message", "channel"}, domain.ActionWebhook: {"url"}} {
		for i, key := range its {
			switch {
			case a.Type == kind && i == 0 && !action.Has(key):
				action.Missing(key, fmt.Sprintf("an action of type %q needs it", kind))
			case a.Type != "" && a.Type != kind && action.Has(key):
				action.Wrong(key, fmt.Sprintf("nothing, for an action of type %q", a.Type), "")
			}
		}
	}
}

// decodeAutomation reads [automation], with defaults for missing values.
func decodeAutomation(t Table) Automation {
	t.Only([]string{"webhook_hosts", "max_depth", "max_per_hour"})
	a := DefaultAutomation()
	a.WebhookHosts = t.Texts("webhook_hosts", checkHost)
	if n := t.Whole("max_depth", 1, 10); n != nil {
		a.MaxDepth = *n
	}
	if n := t.Whole("max_per_hour", 1, 10_000); n != nil {
		a.MaxPerHour = *n
	}
	return a
}

// text returns a string that check accepts, or "".
func text(t Table, key string, check func(string) error) string {
	if s := t.Checked(key, check); s != nil {
		return *s
	}
	return ""
}

func atMost(bytes int) func(string) error {
	return func(s string) error {
		if len(s) > bytes {
			return fmt.Errorf("at most %d bytes", bytes)
		}
		return nil
	}
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
	for _, state := range runStates {
		known = append(known, "run."+state)
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
	SourceRun      = "run"      // states of runs
	SourceApproval = "approval" // approvals
)

// Types of events of the sources watch, schedule and approval. For runs they are "run." and a
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

// runStates are the states of runs that have events.
var runStates = []string{"queued", "starting", "running", "waiting_input", "interrupting", "completed", "failed", "timed_out", "cancelled", "interrupted", "discarded"}

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

// FollowsRuns reports whether the trigger reacts to runs and approvals.
func (t Trigger) FollowsRuns() bool {
	return slices.ContainsFunc(runStates, func(state string) bool { return t.FitsType("run."+state, SourceRun) }) ||
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
