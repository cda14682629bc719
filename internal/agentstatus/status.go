// Package agentstatus tells what is known of agents without starting them: which
// version is installed, and who was signed in when an agent told that last.
package agentstatus

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/agentlink"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/project"
)

// Values of [Status.SignedIn] beside those of [agentlink.Report.SignedIn].
const (
	// Answered says that it has answered a prompt, which it might not have without.
	Answered = "answered"
	// Unknown says that it has told nothing yet, or not since its login was changed.
	Unknown = "unknown"
)

// A Status is what is known of an agent.
type Status struct {
	Version  string     `json:"version,omitempty" doc:"Of its program, or of the adapter through which it is spoken with; absent: not known without starting it."`
	SignedIn string     `json:"signed_in,omitempty" doc:"What it told last: yes, no, not_needed, opens_sessions (as of agent.check), answered: it has answered a prompt; or unknown: agent.check asks it. Absent: it cannot be asked."`
	Account  string     `json:"account,omitempty" doc:"As whom, in its words; or why not."`
	ToldAt   *time.Time `json:"signed_in_at,omitempty" doc:"When it told that."`
	Hint     string     `json:"signed_in_hint,omitempty" doc:"Where that is not known: what speaks for that somebody is signed in, in words."`
}

// An Agent is one with what is known of it.
type Agent struct {
	config.Description
	Status
}

// Options say how agents are looked at.
type Options struct {
	Notes   *Notes
	Version string // of this program, which is that of its own agent
	Getenv  func(string) string
	// Run lets the program of a built-in agent be run with --version, where nothing else
	// tells it: for two seconds at the most, and once for each file.
	Run bool
}

// Describe describes every agent of a configuration, in the order of
// [config.Config.List]. It takes no time to speak of, but for Options.Run.
func Describe(ctx context.Context, c *config.Config, o Options) []Agent {
	const atOnce = 4
	room := make(chan struct{}, atOnce)
	described, agents := c.Describe(), c.List()
	list := make([]Agent, len(agents))
	var work sync.WaitGroup
	for i, a := range agents {
		list[i].Description = described[i]
		if !a.Available || !a.Trusted || a.Driver != config.DriverACP {
			continue
		}
		work.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			list[i].Status = o.look(ctx, c, a)
		})
	}
	work.Wait()
	return list
}

// look is what is known of an agent that can be asked.
func (o Options) look(ctx context.Context, c *config.Config, a config.Agent) Status {
	if a.IsDemo() {
		return Status{Version: o.Version, SignedIn: agentlink.NotNeeded}
	}
	s := Status{Version: versionOf(ctx, a, o.Notes, o.Run), SignedIn: Unknown}
	login := a.LoginFile(o.Getenv)
	changed, there := modified(login)
	if told := o.Notes.read(a.Name, a.StartCommand()).SignIn; told != nil && (told.State != agentlink.SignedOut || !changed.After(told.At)) {
		s.SignedIn, s.Account, s.ToldAt = told.State, told.Account, &told.At
		return s
	}
	switch keys := c.KeysAtHand(a, o.Getenv); {
	case len(keys) > 0:
		s.Hint = "it is given " + strings.Join(keys, ", ")
	case there:
		s.Hint = "it has a login in " + (project.Project{}).ShortenPaths(login)
	}
	return s
}
