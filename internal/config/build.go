package config

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// builder merges layers one over another.
type builder struct {
	c      *Config
	getenv func(string) string
}

func defaultLimits() Limits { return Limits{MaxRuns: 3, QueueCap: 1000, RunTimeout: 2 * time.Hour} }

// A runBounds holds the limits of runs, which an untrusted project may lower.
type runBounds struct {
	limits Limits
	budget Budget
}

// runBounds returns the defaults overridden by the layer.
func (l *layer) runBounds() runBounds {
	return runBounds{l.limits(defaultLimits()), l.budget.Over(Budget{}, true)}
}

// limits returns the limits below, overridden by the layer.
func (l *layer) limits(below Limits) Limits {
	below.MaxRuns = override(below.MaxRuns, l.maxRuns)
	below.QueueCap = override(below.QueueCap, l.queueCap)
	below.RunTimeout = override(below.RunTimeout, l.runTimeout)
	if l.idleAgents != nil {
		below.IdleAgents = l.idleAgents
	}
	return below
}

// override returns the value of a layer, or that below if the layer has none.
func override[T any](below T, value *T) T {
	if value != nil {
		return *value
	}
	return below
}

func newBuilder(getenv func(string) string, projectFile string) *builder {
	b := &builder{getenv: getenv, c: &Config{
		Limits: defaultLimits(),
		Budget: Budget{},

		ProbeServers: true,
		EditorTools:  true,
		Checkpoints:  true,
		DaemonIdle:   DefaultDaemonIdle,
		WhenAlone:    AloneContinue,
		Automation:   DefaultAutomation(),
		Worktrees:    Worktrees{Use: WorktreeNever, Timeout: DefaultTimeout},
		Agents:       map[string]Agent{demoAgent: demo()},
		Keys:         map[string]Key{},
		projectFile:  projectFile,
		origins:      map[string]string{},
	}}
	for _, known := range builtIns() {
		b.c.Agents[known.name] = Agent{
			Name: known.name, Title: known.title, Driver: DriverACP, Prompt: "arg", History: "transcript", Files: cmp.Or(known.files, catalog.FilesReadWrite),
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

// set overrides a value with that of a layer, and records its source.
func set[T any](b *builder, to, value *T, key, source string) {
	if value != nil {
		*to = *value
		b.c.origins[key] = source
	}
}

// setLimit is set for a limit. A layer that is not trusted can only lower it.
func setLimit[T cmp.Ordered](b *builder, to, value *T, key string, l *layer, trusted bool) {
	if trusted || !raises(value, *to) {
		set(b, to, value, key, l.source)
	}
}

// apply merges a layer over those below. Of an untrusted layer only lower limits and deny rules
// apply. Its agents are kept to be displayed, and refused. Its changes to existing agents are
// dropped, so that it cannot disable an agent of its user.
func (b *builder) apply(l *layer, trusted bool) {
	c := b.c
	var waiting []Value
	if !trusted {
		waiting = b.waitingForTrust(l)
	}
	setLimit(b, &c.Limits.MaxRuns, l.maxRuns, "limits.max_runs", l, trusted)
	setLimit(b, &c.Limits.QueueCap, l.queueCap, "limits.queue_cap", l, trusted)
	setLimit(b, &c.Limits.RunTimeout, l.runTimeout, "limits.run_timeout", l, trusted)
	if l.idleAgents != nil && (trusted || !raises(l.idleAgents, c.Limits.MostIdle())) {
		set(b, &c.Limits.IdleAgents, &l.idleAgents, "limits.idle_agents", l.source)
	}
	b.applyBudget(l, trusted)
	b.applyPreview(l, trusted)
	set(b, &c.DaemonIdle, l.daemonIdle, "daemon.idle", l.source)
	set(b, &c.WhenAlone, l.whenAlone, "daemon.when_alone", l.source)
	set(b, &c.ProbeServers, l.probeServers, "mcp.probe", l.source)
	set(b, &c.EditorTools, l.editorTools, "mcp.editor", l.source)
	set(b, &c.Checkpoints, l.checkpoints, "checkpoints.enabled", l.source)
	set(b, &c.ACP.SavedFiles, l.savedFiles, "acp.saved_files", l.source) // trust does not matter: the agent can read a file on the disk anyway
	for name, t := range l.agents {
		if _, known := c.Agents[name]; trusted || !known {
			b.applyAgent(name, t, l.source, trusted)
		}
	}
	var rules []Rule
	for _, r := range l.rules {
		if trusted || r.Effect == EffectDeny {
			rules = append(rules, r)
		}
	}
	c.Rules = append(rules, c.Rules...)
	if !trusted {
		c.Untrusted = append(c.Untrusted, l.Path)
		c.waiting = append(c.waiting, waiting...)
		for _, g := range l.gates {
			c.WaitingGates = append(c.WaitingGates, g.Name)
		}
		c.WorktreesWait = c.WorktreesWait || len(l.worktrees.settings()) > 0
		return
	}
	set(b, &c.DefaultAgent, l.defaultAgent, "default_agent", l.source)
	b.applyTriggers(l)
	c.Builds = overCommands(c.Builds, l.builds)
	c.Gates = overCommands(c.Gates, l.gates)
	c.Worktrees = l.worktrees.over(c.Worktrees)
	for _, s := range l.worktrees.settings() {
		c.origins[s.name] = l.source
	}
	for service, key := range l.services {
		c.Keys[service] = key
		c.origins["keys."+service] = l.source
	}
}

// applyBudget merges the budget of a layer over that below: of an untrusted layer, only the
// lower limits.
func (b *builder) applyBudget(l *layer, trusted bool) {
	above := l.budget.Over(b.c.Budget, trusted)
	raised := l.budget.Raised(b.c.Budget)
	for _, setting := range l.budget.Settings() {
		if trusted || !slices.Contains(raised, setting) {
			b.c.origins[setting.Key] = l.source
		}
	}
	b.c.Budget = above
}

// applyPreview merges the preview of a layer over that below: of an untrusted layer, no
// directory outside the project.
func (b *builder) applyPreview(l *layer, trusted bool) {
	for _, setting := range l.preview.Settings() {
		if trusted || !slices.Contains(l.preview.NeedTrust(), setting) {
			b.c.origins[setting.Key] = l.source
		}
	}
	b.c.Preview = l.preview.Over(b.c.Preview, trusted)
}

// applyTriggers adds the triggers of a trusted layer. A trigger replaces another one with the
// same id.
func (b *builder) applyTriggers(l *layer) {
	for _, trigger := range l.triggers {
		b.c.Triggers = slices.DeleteFunc(b.c.Triggers, func(below Trigger) bool { return below.ID == trigger.ID })
		b.c.Triggers = append(b.c.Triggers, trigger)
	}
	set(b, &b.c.Automation, l.automation, "automation", l.source)
}

// waitingForTrust returns the settings of an untrusted layer that wait for trust, except its own agents,
// which are among the others.
func (b *builder) waitingForTrust(l *layer) []Value {
	rest := *l
	rest.agents = map[string]agentTable{}
	for name, t := range l.agents {
		if _, known := b.c.Agents[name]; known {
			rest.agents[name] = t
		}
	}
	values := rest.needTrust(runBounds{b.c.Limits, b.c.Budget}, false)
	for i := range values {
		values[i].Waits = true
	}
	return values
}

// applyAgent changes an agent, or adds it. Texts and the command replace the previous ones;
// tables and lists are merged.
func (b *builder) applyAgent(name string, t agentTable, source string, trusted bool) {
	a, known := b.c.Agents[name]
	if !known {
		a = Agent{Name: name, Title: name, Driver: DriverACP, Prompt: "arg", History: "transcript", Files: catalog.FilesReadWrite, Trusted: true}
	}
	key := func(field string) string { return "agents." + name + "." + field }
	a.Source = source
	a.Trusted = a.Trusted && trusted
	a.FromProject = a.FromProject || source == SourceProject
	set(b, &a.Title, t.title, key("title"), source)
	set(b, &a.Driver, t.driver, key("driver"), source)
	set(b, &a.Prompt, t.prompt, key("prompt"), source)
	set(b, &a.History, t.history, key("history"), source)
	set(b, &a.Files, t.files, key("files"), source)
	set(b, &a.StartTimeout, t.startTimeout, key("start_timeout"), source)
	set(b, &a.SilentAfter, t.silentAfter, key("silent_after"), source)
	set(b, &a.SilentToolAfter, t.silentToolAfter, key("silent_tool_after"), source)
	set(b, &a.Quiet, t.quiet, key("quiet"), source)
	set(b, &a.Protocol, t.protocol, key("protocol"), source)
	if t.command != nil {
		a.Command = t.command
	}
	a.Env = merged(a.Env, t.env)
	a.Keys = merged(a.Keys, t.keys)
	a.EnvFrom = union(a.EnvFrom, t.envFrom)
	for _, s := range t.mcpServers {
		a.MCPServers = slices.DeleteFunc(slices.Clone(a.MCPServers), func(old catalog.MCPServer) bool { return old.Name == s.Name })
		a.MCPServers = append(a.MCPServers, s)
		b.c.origins[key("mcp_servers."+s.Name)] = source
	}
	for _, f := range t.fields(false) {
		b.c.origins[key(f.name)] = source
	}
	b.c.Agents[name] = a
}

// union returns a list with the missing elements of another added.
func union(list, more []string) []string {
	if len(more) == 0 {
		return list
	}
	has := make(map[string]bool, len(list)+len(more))
	for _, s := range list {
		has[s] = true
	}
	list = slices.Clip(list)
	for _, s := range more {
		if !has[s] {
			has[s], list = true, append(list, s)
		}
	}
	return list
}

// merged returns below with the entries of above added.
func merged(below, above map[string]string) map[string]string {
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

// finish assigns the available keys to built-in agents, and looks up the program of every agent
// that may run. It skips the others, because even a look-up of some names has an effect, such as
// on a server.
func (b *builder) finish() *Config {
	for _, known := range builtIns() {
		a := b.c.Agents[known.name]
		_, isKey := b.c.Keys[known.keyService]
		_, chosen := a.Keys[known.keyVariable]
		if isKey && !chosen {
			a.Keys = merged(a.Keys, map[string]string{known.keyVariable: known.keyService})
			b.c.Agents[known.name] = a
		}
	}
	for name, a := range b.c.Agents {
		if len(a.Command) > 0 && a.Trusted {
			a.Path = lookPath(a.Command[0], b.getenv)
		}
		a.Available = a.Path != ""
		if known, ok := a.builtIn(); ok && !a.Available && known.cli != "" {
			a.CLI = lookPath(known.cli, b.getenv)
		}
		b.c.Agents[name] = a
	}
	return b.c
}
