package config

import (
	"maps"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// builder puts layers one over another.
type builder struct {
	c      *Config
	getenv func(string) string
}

func newBuilder(getenv func(string) string, projectFile string) *builder {
	b := &builder{getenv: getenv, c: &Config{
		Hub:         HubEmbedded,
		Limits:      Limits{MaxRuns: 3, QueueCap: 1000, RunTimeout: 2 * time.Hour},
		Agents:      map[string]Agent{demoAgent: demo()},
		Keys:        map[string]Key{},
		projectFile: projectFile,
		origins:     map[string]string{},
	}}
	for _, known := range builtIns() {
		b.c.Agents[known.name] = Agent{
			Name: known.name, Title: known.title, Driver: DriverACP, Prompt: "arg", History: "transcript",
			Command: known.command, EnvFrom: append(known.envFrom, commonEnvironment()...),
			Source: SourceBuiltIn, Trusted: true,
		}
		if known.keyVariable != "" && getenv(known.keyVariable) != "" {
			b.c.Keys[known.keyService] = Key{Env: known.keyVariable}
			b.c.origins["keys."+known.keyService] = SourceEnvironment
		}
	}
	return b
}

// set puts the value of a layer in the place of what is there, and remembers
// where it comes from.
func set[T any](b *builder, to, value *T, key, source string) {
	if value != nil {
		*to = *value
		b.c.origins[key] = source
	}
}

// pointer is a value of a layer as one that may be missing in the end.
func pointer[T any](value *T) **T {
	if value == nil {
		return nil
	}
	return &value
}

// apply puts a layer over those below. Of one that is not trusted, limits, the
// default agent and deny rules count; its agents are kept to be shown, and
// refused.
func (b *builder) apply(l *layer, trusted bool) {
	c := b.c
	set(b, &c.DefaultAgent, l.defaultAgent, "default_agent", l.source)
	set(b, &c.Limits.MaxRuns, l.maxRuns, "limits.max_runs", l.source)
	set(b, &c.Limits.QueueCap, l.queueCap, "limits.queue_cap", l.source)
	set(b, &c.Limits.RunTimeout, l.runTimeout, "limits.run_timeout", l.source)
	set(b, &c.Limits.IdleAgents, pointer(l.idleAgents), "limits.idle_agents", l.source)
	for name, t := range l.agents {
		b.applyAgent(name, t, l.source, trusted)
	}
	var rules []Rule
	for _, r := range l.rules {
		if trusted || r.Effect == EffectDeny {
			rules = append(rules, r)
		}
	}
	c.Rules = append(rules, c.Rules...)
	if !trusted {
		b.keepWaiting(l)
		return
	}
	set(b, &c.Hub, l.hub, "hub", l.source)
	for service, key := range l.services {
		c.Keys[service] = key
		c.origins["keys."+service] = l.source
	}
}

// keepWaiting remembers what a layer that is not trusted asks for, but for its
// agents, which are among the others.
func (b *builder) keepWaiting(l *layer) {
	b.c.Untrusted = append(b.c.Untrusted, l.path)
	onlyRest := *l
	onlyRest.agents = nil
	for _, v := range onlyRest.needTrust() {
		v.Waits = true
		b.c.waiting = append(b.c.waiting, v)
	}
}

// applyAgent changes an agent, or adds it. Texts and the command take the place
// of what is there; tables and lists are added to.
func (b *builder) applyAgent(name string, t agentTable, source string, trusted bool) {
	a, known := b.c.Agents[name]
	if !known {
		a = Agent{Name: name, Title: name, Driver: DriverACP, Prompt: "arg", History: "transcript", Trusted: true}
	}
	key := func(field string) string { return "agents." + name + "." + field }
	a.Source = source
	a.Trusted = a.Trusted && trusted
	set(b, &a.Title, t.title, key("title"), source)
	set(b, &a.Driver, t.driver, key("driver"), source)
	set(b, &a.Prompt, t.prompt, key("prompt"), source)
	set(b, &a.History, t.history, key("history"), source)
	if t.command != nil {
		a.Command = t.command
	}
	a.Env = over(a.Env, t.env)
	a.Keys = over(a.Keys, t.keys)
	for _, variable := range t.envFrom {
		if !slices.Contains(a.EnvFrom, variable) {
			a.EnvFrom = append(slices.Clip(a.EnvFrom), variable)
		}
	}
	for _, s := range t.mcpServers {
		a.MCPServers = slices.DeleteFunc(slices.Clone(a.MCPServers), func(old catalog.MCPServer) bool { return old.Name == s.Name })
		a.MCPServers = append(a.MCPServers, s)
		b.c.origins[key("mcp_servers."+s.Name)] = source
	}
	for _, f := range t.fields() {
		b.c.origins[key(f.name)] = source
	}
	b.c.Agents[name] = a
}

// over is below with the entries of above added.
func over(below, above map[string]string) map[string]string {
	if len(above) == 0 {
		return below
	}
	out := maps.Clone(below)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, above)
	return out
}

// finish gives built-in agents the keys that there are, and looks for every
// agent's program.
func (b *builder) finish() *Config {
	for _, known := range builtIns() {
		a := b.c.Agents[known.name]
		_, isKey := b.c.Keys[known.keyService]
		_, chosen := a.Keys[known.keyVariable]
		if isKey && !chosen {
			a.Keys = over(a.Keys, map[string]string{known.keyVariable: known.keyService})
			b.c.Agents[known.name] = a
		}
	}
	for name, a := range b.c.Agents {
		if len(a.Command) > 0 {
			a.Path = lookPath(a.Command[0], b.getenv)
		}
		a.Available = a.Path != ""
		b.c.Agents[name] = a
	}
	return b.c
}
