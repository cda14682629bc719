package hub

import (
	"path/filepath"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/clientenv"
	"github.com/duet-rpc/duet-rpc/internal/config"
)

// leaseFor is what is asked of the executors for an agent of a thread.
func leaseFor(thread string, agent config.Agent) catalog.LeaseRequest {
	return catalog.LeaseRequest{Thread: thread, Agent: agent.Name, Driver: agent.Driver, Command: agent.Command}
}

// launchOf says to an executor of ours how an agent is started for a client; one that
// another program has written knows it itself.
func (h *Hub) launchOf(a config.Agent, client clientenv.Environment) *catalog.AgentLaunch {
	if a.Driver == config.DriverExecutor {
		return nil
	}
	return &catalog.AgentLaunch{
		Name: a.Name, Driver: a.Driver, Command: a.StartCommand(), Install: a.HowToInstall(), Prompt: a.Prompt, History: a.History, Files: a.Files, StartTimeoutMS: a.StartTimeout.Milliseconds(), SilentAfterMS: a.SilentAfter.Milliseconds(), SilentToolAfterMS: a.SilentToolAfter.Milliseconds(), QuietMS: a.Quiet.Milliseconds(), Protocol: a.Protocol, Env: a.Env, EnvFrom: a.EnvFrom, Keys: a.Keys, Root: h.opts.Root,
		StateDir: filepath.Dir(h.opts.Database), Environment: client.For(a.EnvFrom, h.opts.Getenv), Program: programFor(a, client),
	}
}

// programFor finds the program of an agent on the PATH of a client. It returns "" if the
// program of the agent's command is the one to start.
func programFor(a config.Agent, client clientenv.Environment) string {
	if client == nil {
		return ""
	}
	return a.ProgramOn(client["PATH"])
}
