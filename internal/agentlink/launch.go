package agentlink

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
)

// A Launch is how an agent is started.
type Launch struct {
	Name        string // for people
	Command     []string
	Environment map[string]string // beyond what each child gets; keys among them
	Keys        []string          // the values of those that are keys
}

// Askable is an error for an agent that cannot be asked about itself: it is not
// installed, or speaks another protocol.
func Askable(a config.Agent) error {
	switch {
	case a.Driver != config.DriverACP:
		return fmt.Errorf("%s has the driver %q; only those that speak the Agent Client Protocol can be asked", a.Name, a.Driver)
	case a.CLI != "":
		return fmt.Errorf("%s is installed and its adapter is not: %s", a.Name, cmp.Or(a.HowToInstall(), a.Install()))
	case !a.Available:
		return fmt.Errorf("%s is not installed: %s", a.Name, cmp.Or(a.HowToInstall(), a.Install()))
	}
	return nil
}

// LaunchOf is how an agent is started, and in words which of its keys could not be
// had: it is started without them. Nobody is asked for a key. ctx may have the environment of
// the client that asks (package clientenv); else it is that of this process, by getenv.
func LaunchOf(ctx context.Context, c *config.Config, a config.Agent, getenv func(string) string) (l Launch, missing []string) {
	env := a.Variables(clientenv.From(ctx), getenv)
	keys, missing := c.FetchKeys(ctx, a, getenv)
	maps.Copy(env, keys)
	return Launch{Name: a.Name, Command: a.StartCommand(), Environment: env, Keys: slices.Collect(maps.Values(keys))}, missing
}
