package policy

import (
	"path"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/config"
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

// matchesCommand reports whether a command fits a glob. To be allowed, one
// that chains has to be what the rule says word for word.
func matchesCommand(effect, glob, command string) bool {
	return matches(glob, command) && (effect == config.EffectDeny || glob == "*" || glob == command || !chains(command))
}

// fitsTool reports whether a call fits a tool of a list, spelled as agents' own
// lists are: Bash, Bash(git:*), Bash(make test), mcp__x__*.
func (c Call) fitsTool(effect, pattern string) bool {
	name, inner, _ := strings.Cut(pattern, "(")
	inner = strings.TrimSuffix(inner, ")")
	whole := inner == "" || inner == "*"
	if name == "" || !c.isTool(effect, !whole, func(tool string) bool { return matches(strings.TrimSpace(name), tool) }) {
		return false
	}
	if effect == config.EffectAllow && c.IsAmbiguous() {
		return false
	}
	if whole {
		return true
	}
	if prefix, ok := strings.CutSuffix(inner, ":*"); ok {
		return c.runs(effect, func(command string) bool {
			return command == prefix || strings.HasPrefix(command, prefix+" ") && (effect == config.EffectDeny || !chains(command))
		})
	}
	return c.runs(effect, func(command string) bool { return command == inner }) ||
		c.touches(effect, func(name string) bool { return name == inner })
}
