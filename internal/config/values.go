package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Value is one setting and its source.
type Value struct {
	Key    string `json:"key"`   // such as limits.max_turns
	Value  any    `json:"value"` // string, int, []string or map[string]string
	Source string `json:"source"`
	Waits  bool   `json:"waits_for_trust,omitempty"` // it has no effect until its file is trusted
}

// phrase is a string with its parts quoted as needed.
type phrase string

// ValueText returns a value in TOML syntax. It escapes control characters, so that a file cannot
// control the terminal.
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
			if checkVariable(name) != nil {
				key = strconv.Quote(name)
			}
			pairs = append(pairs, key+" = "+strconv.Quote(v[name]))
		}
		return "{ " + strings.Join(pairs, ", ") + " }"
	}
	return fmt.Sprint(v)
}

// quoteControls returns a text that cannot control a terminal.
func quoteControls(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// hidden returns m with its values, which may be secrets, masked.
func hidden(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for name := range m {
		out[name] = "…"
	}
	return out
}

// String returns a rule in one line.
func (r Rule) String() string {
	s := fmt.Sprintf("%s tool %s", r.Effect, strconv.Quote(r.Tool))
	for _, part := range []struct{ name, value string }{{"path", r.Path}, {"command", r.Command}, {"agent", r.Agent}} {
		if part.value != "" {
			s += fmt.Sprintf(", %s %s", part.name, strconv.Quote(part.value))
		}
	}
	return s
}

// serverText returns an MCP server in one line. It shows the values of variables and headers
// only in a review of the file.
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

// commandText returns a command of a user in one line; the values of variables are shown as in
// serverText.
func commandText(b Definition, withValues bool) string {
	s := ValueText(b.Text())
	if b.Directory != "" {
		s += " in " + strconv.Quote(b.Directory)
	}
	return s + withText(" env ", b.Env, withValues)
}
