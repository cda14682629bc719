package approval

import (
	"path"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/shellcommand"
)

// matches reports whether text fits a glob; "" fits everything. Unlike a
// path's, * also stands for slashes: rm -rf * must fit what it says.
func matches(glob, text string) bool {
	if glob == "" || glob == "*" {
		return true
	}
	const slash = "\x00"
	ok, err := path.Match(strings.ReplaceAll(glob, "/", slash), strings.ReplaceAll(text, "/", slash))
	return ok && err == nil
}

// isInPath reports whether a file's name fits the pattern of a rule that somebody's
// decision has become. Unlike in the configuration * stands for no slash there, so
// that a directory's pattern is for what is in that alone; what is below it is
// src/**.
func isInPath(pattern, name string) bool {
	pattern = strings.TrimPrefix(pattern, "./")
	above, all := strings.CutSuffix(pattern, "/**")
	if !all {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	for dir := path.Dir(name); ; {
		if ok, err := path.Match(above, dir); ok && err == nil {
			return true
		}
		switch slash := strings.LastIndexByte(dir, '/'); { // path.Dir would read all of it again
		case dir == "." || dir == "/":
			return false
		case slash < 0:
			dir = "."
		default:
			dir = dir[:max(1, slash)]
		}
	}
}

// A condition is what a rule says of a call that it is for in all other respects.
type condition struct {
	command *shellcommand.Pattern // of what it runs; nil: whatever that is
	reason  string                // by which a ruling names the rule

	explanation string // what the rule is, in words
}

// meets reports whether a call meets a condition by itself.
func (c call) meets(effect string, of condition) bool {
	switch {
	case of.command == nil:
		return true
	case effect == config.EffectAllow:
		return c.allowedBy(*of.command)
	}
	return c.couldRun(*of.command)
}

// firstMet is the first condition that a call meets, or nil. Of a command with
// several parts each may be allowed by another rule; then it is the first that is
// needed.
func (c call) firstMet(effect string, conditions []condition) *condition {
	for i, of := range conditions {
		if c.meets(effect, of) {
			return &conditions[i]
		}
	}
	if effect != config.EffectAllow || len(conditions) < 2 {
		return nil
	}
	patterns := make([]shellcommand.Pattern, len(conditions))
	for i, of := range conditions {
		patterns[i] = *of.command
	}
	if !c.allowedBy(patterns...) {
		return nil
	}
	for i := range conditions {
		if !c.allowedBy(slices.Delete(slices.Clone(patterns), i, i+1)...) {
			return &conditions[i]
		}
	}
	return &conditions[0]
}

// listed is the condition of a tool of a list, spelled as agents' own lists are:
// Bash, Bash(git:*), Bash(make test), mcp__x__*. It is not ok if that is for other
// calls.
func (c call) listed(effect, pattern string) (of condition, ok bool) {
	of.reason = "rule=" + pattern
	name, inner, _ := strings.Cut(pattern, "(")
	inner = strings.TrimSuffix(inner, ")")
	whole := inner == "" || inner == "*"
	if name == "" || !c.isTool(effect, !whole, func(tool string) bool { return matches(strings.TrimSpace(name), tool) }) {
		return of, false
	}
	if effect == config.EffectAllow && (c.IsAmbiguous() || c.unknown) {
		return of, false
	}
	if whole || c.unknown || c.touches(effect, func(name string) bool { return name == inner }) {
		return of, true
	}
	command := shellcommand.Exactly(inner)
	if prefix, ok := strings.CutSuffix(inner, ":*"); ok {
		command = shellcommand.BeginsWith(prefix)
	}
	of.command = &command
	return of, true
}
