package doctor

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/mcpprobe"
)

// serverTime is how long an MCP server may take to start and answer; some fetch
// themselves first.
const serverTime = 10 * time.Second

// A configuredServer is an MCP server, and the agents that are to use it in the
// same environment.
type configuredServer struct {
	catalog.MCPServer
	env    process.Environment
	agents []string
}

// checkServers asks the MCP servers of each agent that can be used whether they
// work. What waits for trust is not part of the configuration in force.
func checkServers(c *config.Config, root string) []Finding {
	var servers []*configuredServer
	for _, a := range c.List() {
		if !a.Available {
			continue
		}
		env := environmentOf(a)
	next:
		for _, s := range a.MCPServers {
			for _, known := range servers {
				if reflect.DeepEqual(known.MCPServer, s) && reflect.DeepEqual(known.env, env) {
					known.agents = append(known.agents, a.Name)
					continue next
				}
			}
			servers = append(servers, &configuredServer{s, env, []string{a.Name}})
		}
	}
	findings := make([]Finding, len(servers))
	var checking sync.WaitGroup
	for i, s := range servers {
		checking.Go(func() { findings[i] = checkServer(s, root) })
	}
	checking.Wait()
	return findings
}

func checkServer(s *configuredServer, root string) Finding {
	ctx, cancel := context.WithTimeout(context.Background(), serverTime)
	defer cancel()
	f := Finding{Check: "MCP server " + s.Name, State: OK}
	found, problem := mcpprobe.Check(ctx, s.MCPServer, root, s.env)
	if problem != nil {
		f.State, found, f.Todo = Wrong, problem.Cause, problem.Todo
	}
	f.Found = fmt.Sprintf("of %s: %s", strings.Join(s.agents, ", "), found)
	return f
}

// environmentOf is an agent's environment but for the keys that it is given.
func environmentOf(a config.Agent) process.Environment {
	env := process.NewEnvironment()
	for _, name := range a.EnvFrom {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	return process.NewEnvironment(env, a.Env)
}
