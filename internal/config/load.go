package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Sources are the sources of a configuration.
type Sources struct {
	Project string              // the project's file, which need not exist; empty for none
	User    string              // the user's file, see [UserFile]; empty for none
	Getenv  func(string) string // nil means os.Getenv
	Trust   *Store              // nil means the store of [DefaultTrust]
	// Restricted treats the project's file as not trusted, whatever the user has trusted.
	Restricted bool
}

// Load reads the configuration. All problems together are one [*Error]; the configuration is
// then nil.
func Load(s Sources) (*Config, error) {
	if s.Getenv == nil {
		s.Getenv = os.Getenv
	}
	user := readUser(s.User, s.Getenv)
	project := readProject(s.Project, user, s.Getenv)
	environment := environmentLayer(s.Getenv)

	requirePrograms(user, project)
	var failed Error
	for _, l := range []*layer{project, user, environment} {
		failed.Problems = append(failed.Problems, l.Problems...)
		failed.Unread = failed.Unread || l.unread
	}
	if len(failed.Problems) > 0 {
		return nil, failed.cut()
	}

	c := unconfigured(s.Getenv)
	c.projectFile = s.Project
	c.apply(user, true)
	trusted, err := trusts(s, project, c)
	if err != nil {
		return nil, err
	}
	c.apply(project, trusted)
	c.apply(environment, true)
	if project.foreign != nil {
		c.Notes = append(c.Notes, project.foreign.Error())
	}
	c.findPrograms(s.Getenv)
	return c, nil
}

// trusts reports whether the user trusts the project's file. It reads the store only if the file
// needs trust.
func trusts(s Sources, project *layer, below *Config) (bool, error) {
	if len(project.needTrust(below, false)) == 0 {
		return true, nil
	}
	if s.Restricted {
		return false, nil
	}
	store := s.Trust
	if store == nil {
		var err error
		if store, err = DefaultTrust(s.Getenv); err != nil {
			return false, err
		}
	}
	return store.Trusts(project.Path, project.Content)
}

// unconfigured returns the configuration without any file.
func unconfigured(getenv func(string) string) *Config {
	c := standard()
	c.Agents[demoAgent] = demo()
	for _, known := range builtIns() {
		a := newAgent(known.name)
		a.Title, a.Files, a.Source = known.title, cmp.Or(known.files, a.Files), SourceBuiltIn
		a.Command, a.EnvFrom = known.command, append(known.envFrom, commonEnvironment()...)
		c.Agents[a.Name] = a
		if known.keyVariable != "" && getenv(known.keyVariable) != "" {
			c.Keys[known.keyService] = Key{Env: known.keyVariable}
			c.origins["keys."+known.keyService] = SourceEnvironment
		}
	}
	return c
}

// findPrograms assigns the available keys to built-in agents, and looks up the program of every agent
// that may run. It skips the others, because even a look-up of some names has an effect, such as
// on a server.
func (c *Config) findPrograms(getenv func(string) string) {
	for _, known := range builtIns() {
		a := c.Agents[known.name]
		_, isKey := c.Keys[known.keyService]
		_, chosen := a.Keys[known.keyVariable]
		if isKey && !chosen {
			a.Keys = maps.Clone(a.Keys)
			if a.Keys == nil {
				a.Keys = map[string]string{}
			}
			a.Keys[known.keyVariable] = known.keyService
			c.Agents[known.name] = a
		}
	}
	for name, a := range c.Agents {
		if len(a.Command) > 0 && a.Trusted && a.Host == "" {
			a.Path = lookPath(a.Command[0], getenv)
		}
		a.Available = a.Path != ""
		if known, ok := a.builtIn(); ok && !a.Available && known.cli != "" && a.Host == "" {
			a.CLI = lookPath(known.cli, getenv)
		}
		c.Agents[name] = a
	}
}

// The code below finds agents and API keys in the current configuration, for clients that trust
// the workspace and for those that do not.

// Agents finds the configured agents.
type Agents interface {
	// Resolve returns the agent of a name, or the default one for "".
	Resolve(name string) (Agent, error)
}

// A Configuration gives access to the current configuration, which may change at any time. Its
// methods may be called from any goroutine.
type Configuration struct {
	Agents Agents
	// Current returns the configuration for clients that trust the workspace or, with restricted, for
	// those that do not; see package clientenv.
	Current func(restricted bool) (*Config, error)
	Logger  *slog.Logger
}

// AgentIn finds an agent in a configuration. Errors are of [domain.KindUnknownAgent],
// KindNotTrusted, KindAgentOnHost or KindExecutor, and name the remedy.
func AgentIn(agents Agents, name string) (Agent, error) {
	agent, err := agents.Resolve(name)
	var unknown *UnknownAgentError
	var untrusted *NotTrustedError
	switch {
	case errors.As(err, &unknown):
		return agent, &domain.Error{
			Kind: domain.KindUnknownAgent, Param: "agent", Expected: "the name of an agent", Received: fmt.Sprintf("%q", name),
			Accepted: unknown.Known,
			Message:  err.Error(), Err: err,
		}
	case errors.As(err, &untrusted):
		return agent, &domain.Error{Kind: domain.KindNotTrusted, Message: err.Error(), Err: err}
	case err != nil:
		return agent, &domain.Error{Kind: domain.KindExecutor, Message: err.Error(), Err: err}
	}
	if there, host := agent.OnHost(); host != "" {
		return agent, domain.Errorf(domain.KindAgentOnHost, "the agent %s works on the host %s, not here: choose the host %s and the agent %s in "+
			"your editor, or run: duet-rpc prompt --agent %s", agent.Name, host, host, there, agent.Name)
	}
	return agent, nil
}

// Agent finds an agent, or the default one for "". Errors are those of [AgentIn].
func (c *Configuration) Agent(name string) (Agent, error) { return AgentIn(c.Agents, name) }

// AgentFor is Agent for a client that may be restricted.
func (c *Configuration) AgentFor(restricted bool, name string) (Agent, error) {
	if !restricted {
		return c.Agent(name)
	}
	its, err := c.Current(true)
	if err != nil {
		return Agent{}, &domain.Error{Kind: domain.KindExecutor, Message: "the configuration cannot be read: " + err.Error(), Err: err}
	}
	agent, err := AgentIn(its, name)
	if untrusted, ok := errors.AsType[*NotTrustedError](err); ok {
		return agent, &domain.Error{Kind: domain.KindNotTrusted, Err: err, Message: fmt.Sprintf(
			"the agent %q is defined by this project's %s, and this editor does not trust the workspace (workspaceTrusted is false): trust it in "+
				"the editor, or take another agent",
			untrusted.Agent, filepath.Base(untrusted.File))}
	}
	return agent, err
}

// Known returns an agent, or the known part of one that does not exist. It is for callers that
// do not need the agent yet: the error comes when they do.
func (c *Configuration) Known(name string) Agent {
	agent, err := c.Agent(name)
	if err != nil {
		return Agent{Name: name}
	}
	return agent
}

// ConfirmsAnswers reports whether the executor of an agent reports which answers the agent has
// received: our executor does.
func (c *Configuration) ConfirmsAnswers(agent string) bool {
	a, err := c.Agent(agent)
	return err != nil || a.Driver != DriverExecutor
}

// KeysOf returns the API keys for a turn.
func (c *Configuration) KeysOf(turn domain.Turn) map[string]Key {
	its, err := c.Current(turn.Restricted)
	if err != nil {
		c.Logger.Warn("the configuration cannot be read", "err", err)
		return nil
	}
	return its.Keys
}
