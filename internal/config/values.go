package config

import (
	"maps"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/config/document"
)

// Values lists every setting that is in effect, and those that wait for trust,
// with its source. Values of env and of headers are hidden.
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
	add("limits.run_timeout", document.ShortDuration(c.Limits.RunTimeout))
	add("limits.idle_agents", c.Limits.MostIdle())
	add("daemon.idle", document.ShortDuration(c.DaemonIdle))
	add("daemon.when_alone", c.WhenAlone)
	add("mcp.probe", c.ProbeServers)
	add("acp.saved_files", c.ACP.SavedFiles)
	for _, limit := range c.Budget.Settings() {
		add(limit.Key, limit.Value)
	}
	for _, s := range c.Preview.Settings() {
		add(s.Key, s.Value)
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

// fields are what of an agent can be configured, without values that may be
// secret.
func (a Agent) fields() []field {
	out := []field{{"title", a.Title}, {"driver", a.Driver}, {"command", a.Command}}
	if a.Driver == DriverCommand {
		out = append(out, field{"prompt", a.Prompt}, field{"history", a.History})
	}
	if a.Driver == DriverACP {
		out = append(out, field{"files", a.Files})
		if a.StartTimeout > 0 {
			out = append(out, field{"start_timeout", document.ShortDuration(a.StartTimeout)})
		}
		if a.SilentAfter > 0 {
			out = append(out, field{"silent_after", document.ShortDuration(a.SilentAfter)})
		}
		if a.SilentToolAfter > 0 {
			out = append(out, field{"silent_tool_after", document.ShortDuration(a.SilentToolAfter)})
		}
		if a.Quiet > 0 {
			out = append(out, field{"quiet", document.ShortDuration(a.Quiet)})
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
