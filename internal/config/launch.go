package config

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
)

// StartCommand is the agent's command with its program where it was found,
// whatever PATH says where it is started.
func (a Agent) StartCommand() []string {
	command := slices.Clone(a.Command)
	if a.Path != "" {
		command[0] = a.Path
	}
	return command
}

// ProgramOn finds the agent's program on a PATH. It returns "" if there is none, or if the
// command names a file and not a program.
func (a Agent) ProgramOn(path string) string {
	if len(a.Command) == 0 || strings.ContainsRune(a.Command[0], filepath.Separator) {
		return ""
	}
	return lookPath(a.Command[0], func(string) string { return path })
}

// VariablesFrom returns the names in env_from of the agents that the user trusts, sorted, each
// once.
func (c *Config) VariablesFrom() []string {
	var names []string
	for _, a := range c.Agents {
		if a.Trusted {
			names = append(names, a.EnvFrom...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Variables are the agent's variables where a client launches it, but for those that hold keys.
// For the client and getenv see [clientenv.Environment.For].
func (a Agent) Variables(client clientenv.Environment, getenv func(string) string) map[string]string {
	env := client.For(a.EnvFrom, getenv)
	maps.Copy(env, a.Env)
	return env
}

// KeyVariable is the variable of the environment that has the key of a service
// for which nothing is configured.
func KeyVariable(service string) string { return strings.ToUpper(service) + "_API_KEY" }

// FetchKeys gets the agent's keys, by the variables that get them, without asking
// anybody. What could not be had is told in missing, in words.
func (c *Config) FetchKeys(ctx context.Context, a Agent, getenv func(string) string) (keys map[string]string, missing []string) {
	keys = make(map[string]string, len(a.Keys))
	for _, name := range slices.Sorted(maps.Keys(a.Keys)) {
		service := a.Keys[name]
		key, configured := c.Keys[service]
		if !configured {
			key = Key{Env: KeyVariable(service)}
		}
		value, err := key.Fetch(ctx, getenv)
		if err != nil {
			missing = append(missing, fmt.Sprintf("the key of %s (%s): %v", service, name, err))
			continue
		}
		keys[name] = value
	}
	return keys, missing
}
