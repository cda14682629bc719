package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config/commandconfig"
	"github.com/duet-rpc/duet-rpc/internal/config/document"
)

// Value is one setting and where it comes from.
type Value struct {
	Key    string `json:"key"`   // such as limits.max_runs
	Value  any    `json:"value"` // string, int, []string or map[string]string
	Source string `json:"source"`
	Waits  bool   `json:"waits_for_trust,omitempty"` // it has no effect until its file is trusted
}

// phrase is a string whose parts are quoted where they need to be.
type phrase string

// ValueText is a value as TOML would have it. Control characters are escaped,
// so that a file cannot play with the terminal that it is shown on.
func ValueText(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case phrase:
		return string(v)
	case []string:
		words := make([]string, len(v))
		for i, word := range v {
			words[i] = strconv.Quote(word)
		}
		return "[" + strings.Join(words, ", ") + "]"
	case map[string]string:
		if len(v) == 0 {
			return "{}"
		}
		pairs := make([]string, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			key := name
			if document.CheckVariable(name) != nil {
				key = strconv.Quote(name)
			}
			pairs = append(pairs, key+" = "+strconv.Quote(v[name]))
		}
		return "{ " + strings.Join(pairs, ", ") + " }"
	}
	return fmt.Sprint(v)
}

// quoteControls is a text in which nothing plays with a terminal.
func quoteControls(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// hidden is m with its values, which may be secrets, made unreadable.
func hidden(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for name := range m {
		out[name] = "…"
	}
	return out
}

// field is one key of [agents.NAME] that was given.
type field struct {
	name  string
	value any
}

// String is a rule in one line.
func (r Rule) String() string {
	s := fmt.Sprintf("%s tool %s", r.Effect, strconv.Quote(r.Tool))
	for _, part := range []struct{ name, value string }{{"path", r.Path}, {"command", r.Command}, {"agent", r.Agent}} {
		if part.value != "" {
			s += fmt.Sprintf(", %s %s", part.name, strconv.Quote(part.value))
		}
	}
	return s
}

// serverText is an MCP server in one line. The values of variables and headers
// are shown only where the file is shown to be judged.
func serverText(s catalog.MCPServer, withValues bool) string {
	if s.Command == "" {
		return fmt.Sprintf("%s %s%s", s.Type, strconv.Quote(s.URL), withText(" headers ", s.Headers, withValues))
	}
	return cmp.Or(s.Type, "stdio") + " " + ValueText(append([]string{s.Command}, s.Args...)) + withText(" env ", s.Env, withValues)
}

func withText(what string, m map[string]string, withValues bool) string {
	if len(m) == 0 {
		return ""
	}
	if !withValues {
		m = hidden(m)
	}
	return what + ValueText(m)
}

// commandText is a command of a user in one line; the values of variables are shown as in
// serverText.
func commandText(b commandconfig.Definition, withValues bool) string {
	s := ValueText(b.Text())
	if b.Directory != "" {
		s += " in " + strconv.Quote(b.Directory)
	}
	return s + withText(" env ", b.Env, withValues)
}
