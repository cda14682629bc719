package config

import (
	"cmp"
	"maps"
	"slices"
)

// needTrust lists what a project's file asks for that waits until the user
// trusts it: whatever chooses or runs a program, changes what one gets, says
// where a secret is, takes on more than the limits below it, or lets a tool call
// pass. Values that may be secret are shown where withValues is set.
func (l *layer) needTrust(under bounding, withValues bool) []Value {
	if l.source != SourceProject {
		return nil
	}
	below := under.limits
	var out []Value
	add := func(key string, v any) { out = append(out, Value{Key: key, Value: v, Source: l.source}) }
	if l.defaultAgent != nil {
		add("default_agent", *l.defaultAgent)
	}
	if raises(l.maxRuns, below.MaxRuns) {
		add("limits.max_runs", *l.maxRuns)
	}
	if raises(l.queueCap, below.QueueCap) {
		add("limits.queue_cap", *l.queueCap)
	}
	if raises(l.runTimeout, below.RunTimeout) {
		add("limits.run_timeout", shortDuration(*l.runTimeout))
	}
	if raises(l.idleAgents, below.MostIdle()) {
		add("limits.idle_agents", *l.idleAgents)
	}
	for _, raised := range l.budget.Raised(under.budget) {
		add(raised.Key, raised.Value)
	}
	for _, name := range slices.Sorted(maps.Keys(l.agents)) {
		a := l.agents[name]
		before := len(out)
		for _, field := range a.fields(withValues) {
			add("agents."+name+"."+field.name, field.value)
		}
		if len(out) == before {
			add("agents."+name, map[string]string{})
		}
	}
	for _, service := range slices.Sorted(maps.Keys(l.services)) {
		key, v := l.services[service].source()
		add("keys."+service+"."+key, v)
	}
	for _, r := range l.rules {
		if r.Effect == EffectAllow {
			add("rules", phrase(r.String()))
		}
	}
	for _, b := range l.builds {
		add("builds."+b.Name, phrase(commandText(b.Definition, withValues)))
	}
	for _, g := range l.gates {
		add("gates."+g.Name, phrase(commandText(g.Definition, withValues)))
	}
	for _, s := range l.preview.NeedTrust() {
		add(s.Key, s.Value)
	}
	for _, t := range l.triggers {
		add("triggers", phrase(quoteControls(t.String())))
	}
	return out
}

// raises reports whether a limit was given and is above another.
func raises[T cmp.Ordered](limit *T, below T) bool { return limit != nil && *limit > below }

func (a agentTable) fields(withValues bool) []field {
	var out []field
	text := func(name string, s *string) {
		if s != nil {
			out = append(out, field{name, *s})
		}
	}
	text("title", a.title)
	text("driver", a.driver)
	if a.command != nil {
		out = append(out, field{"command", a.command})
	}
	text("prompt", a.prompt)
	text("history", a.history)
	text("files", a.files)
	if a.startTimeout != nil {
		out = append(out, field{"start_timeout", shortDuration(*a.startTimeout)})
	}
	if a.silentAfter != nil {
		out = append(out, field{"silent_after", shortDuration(*a.silentAfter)})
	}
	if a.silentToolAfter != nil {
		out = append(out, field{"silent_tool_after", shortDuration(*a.silentToolAfter)})
	}
	if a.quiet != nil {
		out = append(out, field{"quiet", shortDuration(*a.quiet)})
	}
	if a.protocol != nil {
		out = append(out, field{"protocol", *a.protocol})
	}
	if a.env != nil && withValues {
		out = append(out, field{"env", a.env})
	} else if a.env != nil {
		out = append(out, field{"env", hidden(a.env)})
	}
	if a.envFrom != nil {
		out = append(out, field{"env_from", a.envFrom})
	}
	if a.keys != nil {
		out = append(out, field{"keys", a.keys})
	}
	for _, s := range a.mcpServers {
		out = append(out, field{"mcp_servers." + s.Name, phrase(serverText(s, withValues))})
	}
	return out
}
