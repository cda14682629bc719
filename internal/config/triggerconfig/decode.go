package triggerconfig

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config/document"
	"github.com/duet-rpc/duet-rpc/internal/trigger/schedule"
)

const (
	mostConditions = 50
	mostText       = 32 << 10 // bytes of a prompt or a message
	mostPattern    = 1024     // bytes
	leastDebounce  = 50 * time.Millisecond
	mostDebounce   = 10 * time.Minute
	mostCooldown   = 30 * 24 * time.Hour
)

// Operators are those of conditions, with their other names.
var Operators = []string{"eq", "equals", "neq", "not_equals", "contains", "matches", "gt", "lt", "gte", "lte", "exists", "not_exists"}

// Decode reads [[triggers]].
func Decode(t document.Table, fromProject bool) Trigger {
	t.Only([]string{
		"id", "description", "type", "source", "pattern", "conditions", "action", "cooldown", "requires_approval", "enabled",
		"paths", "extensions", "ignore", "debounce", "cron", "time_zone",
	})
	trigger := Trigger{
		ID: text(t, "id", document.CheckName), Description: text(t, "description", atMost(mostText)),
		Type: text(t, "type", atMost(mostPattern)), Source: text(t, "source", document.OneOf(SourceWatch, SourceSchedule, SourceRun, SourceApproval)), Pattern: text(t, "pattern", checkPattern),
		Paths: t.Texts("paths", checkPath), Extensions: t.Texts("extensions", checkExtension), Ignore: t.Texts("ignore", atMost(mostPattern)),
		Cron: text(t, "cron", func(s string) error { _, err := schedule.Parse(s, ""); return err }), TimeZone: text(t, "time_zone", checkZone),
		Enabled: true, Debounce: DefaultDebounce, FromProject: fromProject,
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

// checkEvent notes what cannot be meant.
func checkEvent(t document.Table, trigger Trigger) {
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

func decodeCondition(t document.Table) Condition {
	t.Only([]string{"field", "operator", "value"})
	c := Condition{Field: text(t, "field", atMost(mostPattern)), Operator: text(t, "operator", document.OneOf(Operators...)), Value: t.Values["value"]}
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
		t.Missing("value", "what the member is compared with")
	default:
		t.Wrong("value", "a string, a number, true or false", "")
	}
	return c
}

func decodeAction(t document.Table, a *Action) {
	action, ok := t.Sub("action")
	if !ok {
		if !t.Has("action") {
			t.Missing("action", `what is done, such as { type = "agent", prompt = "…" }`)
		}
		return
	}
	action.Only([]string{"type", "prompt", "agent", "priority", "message", "channel", "url"})
	*a = Action{
		Type: text(action, "type", document.OneOf(ActionAgent, ActionNotify, ActionWebhook)), Prompt: text(action, "prompt", atMost(mostText)), Agent: text(action, "agent", document.CheckName),
		Message: text(action, "message", atMost(mostText)), Channel: text(action, "channel", atMost(mostPattern)), URL: text(action, "url", checkURL),
	}
	if n := action.Whole("priority", -1000, 1000); n != nil {
		a.Priority = *n
	}
	if !action.Has("type") {
		action.Missing("type", `"agent", "notify" or "webhook"`)
	}
	for kind, its := range map[string][]string{ActionAgent: {"prompt", "agent", "priority"}, ActionNotify: {"message", "channel"}, ActionWebhook: {"url"}} {
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

// DecodeAutomation reads [automation], with the defaults for what it does not say.
func DecodeAutomation(t document.Table) Automation {
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

// text is a string that check says nothing against, or "".
func text(t document.Table, key string, check func(string) error) string {
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
	_, err := schedule.Parse("* * * * *", s)
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

// AllowsWebhook reports whether the user lets events be sent to an address: its host is
// among WebhookHosts, with the port that the address has, or without one where it is that
// of the scheme.
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
