package trigger

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

var happened = Event{
	Type: "file.modify", Source: "watch", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	Payload: map[string]any{"path": "a/b.go", "paths": []string{"a/b.go", "c.md"}, "count": int64(2), "share": 0.5, "truncated": false, "error": nil},
}

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		field, operator string
		value           any
		holds           bool
	}{
		{"payload.path", "eq", "a/b.go", true},
		{"payload.path", "equals", "a", false},
		{"payload.path", "neq", "a", true},
		{"payload.path", "not_equals", "a/b.go", false},
		{"payload.count", "eq", 2.0, true},
		{"payload.count", "eq", "2", false},
		{"payload.truncated", "eq", false, true},
		{"payload.nothing", "eq", false, false},
		{"payload.nothing", "neq", "x", true},
		{"payload.path", "contains", "b.g", true},
		{"payload.path", "contains", int64(1), false},
		{"payload.paths", "contains", "c.md", true},
		{"payload.paths", "contains", "c", false},
		{"payload.count", "contains", "2", false},
		{"payload.path", "matches", `\.go$`, true},
		{"payload.path", "matches", `^b`, false},
		{"payload.count", "matches", `2`, false},
		{"payload.count", "gt", int64(1), true},
		{"payload.count", "gt", int64(2), false},
		{"payload.count", "gte", int64(2), true},
		{"payload.count", "lt", 2.5, true},
		{"payload.count", "lte", int64(1), false},
		{"payload.share", "lte", 0.5, true},
		{"payload.path", "gt", int64(0), false},
		{"payload.count", "gt", "1", false},
		{"payload.path", "exists", nil, true},
		{"payload.error", "exists", nil, false},
		{"payload.error", "not_exists", nil, true},
		{"payload.paths.1", "eq", "c.md", true},
		{"payload.paths.2", "exists", nil, false},
		{"payload.paths.-1", "exists", nil, false},
		{"payload.path.x", "exists", nil, false},
		{"type", "eq", "file.modify", true},
		{"timestamp", "matches", "^2026-01-02T03:04:05", true},
	} {
		is := holds(config.Condition{Field: c.field, Operator: c.operator, Value: c.value}, happened)
		assert.Equal(t, c.holds, is, "%s %s %v", c.field, c.operator, c.value)
	}
	for _, operator := range config.Operators {
		value := any("a/b.go")
		field := "payload.path"
		if strings.HasPrefix(operator, "gt") || strings.HasPrefix(operator, "lt") {
			field, value = "payload.count", 2.0
		}
		one := holds(config.Condition{Field: field, Operator: operator, Value: value}, happened)
		other := holds(config.Condition{Field: "payload.nothing", Operator: operator, Value: value}, happened)
		assert.True(t, one || other || operator == "gt" || operator == "lt", "each operator is known: %s", operator)
	}
}

func TestTemplates(t *testing.T) {
	for template, want := range map[string]string{
		"{{payload.path}} of {{ payload.count }}": "a/b.go of 2",
		"{{payload.paths}}":                       "a/b.go, c.md",
		"{{payload.paths.0}}":                     "a/b.go",
		"{{payload.nothing}} {{payload.error}}":   "{{payload.nothing}} {{payload.error}}",
		"{{payload.share}} {{payload.truncated}}": "0.5 false",
		"{{type}}:{{source}}":                     "file.modify:watch",
		"{{payload.path}":                         "{{payload.path}",
		"{{payload path}}":                        "{{payload path}}",
	} {
		assert.Equal(t, want, render(template, happened), template)
	}
	e := happened
	e.Payload = map[string]any{"a": "{{payload.b}}", "b": strings.Repeat("ä", mostRendered)}
	assert.Equal(t, "{{payload.b}}", render("{{payload.a}}", e), "what an event says is no template")
	assert.LessOrEqual(t, len(render("x{{payload.b}}", e)), mostRendered+len("…"))
}

func TestWhichEventsATriggerIsFor(t *testing.T) {
	for _, c := range []struct {
		trigger config.Trigger
		fits    bool
	}{
		{config.Trigger{Type: "file.modify"}, true},
		{config.Trigger{Type: "file.create"}, false},
		{config.Trigger{Source: "watch"}, true},
		{config.Trigger{Source: "turn"}, false},
		{config.Trigger{Pattern: `^file\..*:watch$`}, true},
		{config.Trigger{Pattern: `turn`}, false},
		{config.Trigger{Cron: "* * * * *"}, false},
		{config.Trigger{Source: "watch", Conditions: []config.Condition{{Field: "payload.count", Operator: "gt", Value: int64(1)}, {Field: "payload.count", Operator: "lt", Value: int64(2)}}}, false},
	} {
		fits, why := Fits(c.trigger, happened)
		assert.Equal(t, c.fits, fits, "%+v: %s", c.trigger, why)
		assert.Equal(t, c.fits, why == "")
	}
	theirs := happened
	theirs.of = "other"
	fits, _ := Fits(config.Trigger{ID: "t", Source: "watch"}, theirs)
	assert.False(t, fits)
}
