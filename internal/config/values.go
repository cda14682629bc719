package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Values lists every effective setting, and those that wait for trust, with its source. It hides
// the values of env and of headers.
func (c *Config) Values() []Value {
	var out []Value
	add := func(key string, v any) {
		source := c.origins[key]
		if source == "" {
			source = SourceDefault
		}
		out = append(out, Value{Key: key, Value: v, Source: source})
	}
	agent := c.DefaultAgent
	if agent == "" {
		agent = c.firstAgent()
	}
	add("default_agent", agent)
	add("limits.max_runs", c.Limits.MaxRuns)
	add("limits.queue_cap", c.Limits.QueueCap)
	add("limits.run_timeout", shortDuration(c.Limits.RunTimeout))
	add("limits.idle_agents", c.Limits.MostIdle())
	add("daemon.idle", shortDuration(c.DaemonIdle))
	add("daemon.when_alone", c.WhenAlone)
	add("mcp.probe", c.ProbeServers)
	add("mcp.editor", c.EditorTools)
	add("checkpoints.enabled", c.Checkpoints)
	add("acp.saved_files", c.ACP.SavedFiles)
	for _, limit := range c.Budget.Settings() {
		add(limit.Key, limit.Value)
	}
	for _, s := range c.Preview.Settings() {
		add(s.Key, s.Value)
	}
	for _, s := range c.Worktrees.settings() {
		add(s.name, s.value)
	}
	for _, a := range c.List() {
		for _, f := range a.fields() {
			key := "agents." + a.Name + "." + f.name
			v := Value{Key: key, Value: f.value, Source: c.origins[key], Waits: !a.Trusted}
			if v.Source == "" {
				v.Source = a.Source
			}
			out = append(out, v)
		}
	}
	for _, service := range slices.Sorted(maps.Keys(c.Keys)) {
		name, v := c.Keys[service].source()
		out = append(out, Value{Key: "keys." + service + "." + name, Value: v, Source: c.origins["keys."+service]})
	}
	for _, r := range c.Rules {
		out = append(out, Value{Key: "rules", Value: phrase(r.String()), Source: r.Source})
	}
	for _, b := range c.Builds {
		out = append(out, Value{Key: "builds." + b.Name, Value: phrase(commandText(b.Definition, false)), Source: b.Source})
	}
	for _, g := range c.Gates {
		out = append(out, Value{Key: "gates." + g.Name, Value: phrase(commandText(g.Definition, false)), Source: g.Source})
	}
	return append(append(out, c.triggerValues()...), c.waiting...)
}

// fields returns the configurable fields of an agent, without values that may be secret.
func (a Agent) fields() []field {
	out := []field{{"title", a.Title}, {"driver", a.Driver}, {"command", a.Command}}
	if a.Driver == DriverCommand {
		out = append(out, field{"prompt", a.Prompt}, field{"history", a.History})
	}
	if a.Driver == DriverACP {
		out = append(out, field{"files", a.Files})
		for _, d := range []struct {
			name  string
			value time.Duration
		}{{"start_timeout", a.StartTimeout}, {"silent_after", a.SilentAfter}, {"silent_tool_after", a.SilentToolAfter}, {"quiet", a.Quiet}} {
			if d.value > 0 {
				out = append(out, field{d.name, shortDuration(d.value)})
			}
		}
		if a.Protocol > 0 {
			out = append(out, field{"protocol", a.Protocol})
		}
	}
	if len(a.Env) > 0 {
		out = append(out, field{"env", hidden(a.Env)})
	}
	if len(a.EnvFrom) > 0 {
		out = append(out, field{"env_from", a.EnvFrom})
	}
	if len(a.Keys) > 0 {
		out = append(out, field{"keys", a.Keys})
	}
	for _, s := range a.MCPServers {
		out = append(out, field{"mcp_servers." + s.Name, phrase(serverText(s, false))})
	}
	return out
}

// Value is one setting and its source.
type Value struct {
	Key    string `json:"key"`   // such as limits.max_runs
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

// field is one configured key of [agents.NAME].
type field struct {
	name  string
	value any
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
