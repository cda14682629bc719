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

// A Launch is the data to start an agent with.
type Launch struct {
	Name        string // for display
	Command     []string
	Environment map[string]string // in addition to the variables of each child; contains keys
	Keys        []string          // the values that are keys
}

// Askable returns an error if an agent cannot report about itself: it is not installed, or
// speaks another protocol.
func Askable(a config.Agent) error {
	switch {
	case a.Driver != config.DriverACP:
		return fmt.Errorf("%s has the driver %q; only agents that speak the Agent Client Protocol can be asked", a.Name, a.Driver)
	case a.CLI != "":
		return fmt.Errorf("%s is installed and its adapter is not: %s", a.Name, cmp.Or(a.HowToInstall(), a.Install()))
	case !a.Available:
		return fmt.Errorf("%s is not installed: %s", a.Name, cmp.Or(a.HowToInstall(), a.Install()))
	}
	return nil
}

// LaunchOf returns how to start an agent, and descriptions of the missing keys: the agent starts
// without them. It does not prompt for a key. If ctx has the environment of a client (package
// clientenv), that is used; else that of this process, by getenv.
func LaunchOf(ctx context.Context, c *config.Config, a config.Agent, getenv func(string) string) (l Launch, missing []string) {
	env := a.Variables(clientenv.From(ctx), getenv)
	keys, missing := c.FetchKeys(ctx, a, getenv)
	maps.Copy(env, keys)
	return Launch{Name: a.Name, Command: a.StartCommand(), Environment: env, Keys: slices.Collect(maps.Values(keys))}, missing
}
