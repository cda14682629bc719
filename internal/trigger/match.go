package trigger

import (
	"regexp"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/config"
)

// Fits reports whether a trigger matches an event, whatever it has done before. why says why not.
func Fits(t config.Trigger, e Event) (fits bool, why string) {
	if e.of != "" && e.of != t.ID {
		return false, "the event is for the trigger " + e.of
	}
	if !t.FitsType(e.Type, e.Source) {
		return false, "type, source or pattern is another"
	}
	if t.Cron != "" && e.member("payload.job_id") != t.ID {
		return false, "the event is for another schedule"
	}
	for _, c := range t.Conditions {
		if !holds(c, e) {
			return false, "the condition " + c.Field + " " + c.Operator + " does not hold"
		}
	}
	return true, ""
}

// holds reports whether an event satisfies a condition. Values of different types are neither equal
// nor ordered.
func holds(c config.Condition, e Event) bool {
	value := e.member(c.Field)
	switch c.Operator {
	case "eq", "equals":
		return equal(value, c.Value)
	case "neq", "not_equals":
		return !equal(value, c.Value)
	case "contains":
		return contains(value, c.Value)
	case "matches":
		text, isText := value.(string)
		pattern, _ := c.Value.(string)
		compiled, err := regexp.Compile(pattern)
		return isText && err == nil && compiled.MatchString(text)
	case "exists":
		return value != nil
	case "not_exists":
		return value == nil
	}
	has, isNumber := number(value)
	wants, wantsNumber := number(c.Value)
	if !isNumber || !wantsNumber {
		return false
	}
	switch c.Operator {
	case "gt":
		return has > wants
	case "lt":
		return has < wants
	case "gte":
		return has >= wants
	case "lte":
		return has <= wants
	}
	return false
}

func equal(a, b any) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case string, bool:
		return a == b
	}
	return a == nil && b == nil
}

func contains(value, wanted any) bool {
	switch value := value.(type) {
	case string:
		part, ok := wanted.(string)
		return ok && strings.Contains(value, part)
	case []string:
		part, ok := wanted.(string)
		return ok && slices.Contains(value, part)
	case []any:
		return slices.ContainsFunc(value, func(v any) bool { return equal(v, wanted) })
	}
	return false
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
