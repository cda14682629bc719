// Package config reads what the user and the project want: from flags, the
// environment, the project's .duet.toml, the user's config.toml and defaults,
// in this order of precedence. What a project's file would run waits until the
// user trusts that file.
//
// Everything that is wrong is told at once, with its place, in an [*Error]; no
// default ever stands in for a value that could not be read. What is loaded is
// not changed afterwards and may be used by many goroutines.
package config

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Where a value comes from; see [Value] and [Agent].
const (
	SourceDefault     = "default"
	SourceBuiltIn     = "built-in"
	SourceUser        = "user"
	SourceProject     = "project"
	SourceEnvironment = "environment"
	SourceFlag        = "flag"
)

// Values of [Config.WhenAlone].
const (
	AloneContinue  = "continue"
	AloneInterrupt = "interrupt"
)

// Values of [Agent.Driver].
const (
	DriverACP      = "acp"
	DriverCommand  = "command"
	DriverExecutor = "executor"
)

// Values of [Rule.Effect].
const (
	EffectAllow = "allow"
	EffectDeny  = "deny"
)

// DefaultDaemonIdle is [Config.DaemonIdle] where nothing is configured.
const DefaultDaemonIdle = 15 * time.Minute

// Config is the effective configuration.
type Config struct {
	DefaultAgent string        // as configured; empty if none was chosen, see [Config.Resolve]
	WhenAlone    string        // continue or interrupt: what a daemon does with the work of clients once none has been there for a minute
	DaemonIdle   time.Duration // after which a daemon ends that has nothing to do: up to 168 h, default 15 min; 0: never
	Limits       Limits
	ProbeServers bool // MCP servers that agents get are tried
	ACP          ACP
	Budget       Budget
	Agents       map[string]Agent // by name, built-in ones among them
	Keys         map[string]Key   // by service; none from a file that is not trusted
	Gates        []Gate           // as Builds
	WaitingGates []string         // the names of gates in files that are not trusted
	Preview      Preview
	Builds       []Build   // the project's before the user's; none from a file that is not trusted
	Triggers     []Trigger // none from a file that is not trusted
	Automation   Automation
	Rules        []Rule // the project's before the user's; no allow rule from a file that is not trusted

	// Untrusted are the files that ask for something that waits for the user's
	// trust.
	Untrusted []string
	// Notes tell of files that were passed over, and what to do where they were
	// meant.
	Notes []string

	projectFile string
	origins     map[string]string // key → source, for Values
	waiting     []Value
}

// Limits bound what the hub takes on.
type Limits struct {
	MaxRuns    int           // at once: 1 to 100, default 3
	QueueCap   int           // waiting runs: 1 to 100,000, default 1,000
	RunTimeout time.Duration // of one run: 1 s to 168 h, default 2 h
	IdleAgents *int          // kept for the next prompt, 0 to 1,000; nil: as many as MaxRuns
}

// ACP is how `duet-rpc acp` serves editors.
type ACP struct {
	SavedFiles bool // agents read files from the disk also where the editor offers what is not saved
}

// MostIdle is how many agents are kept that have nothing to do.
func (l Limits) MostIdle() int {
	if l.IdleAgents == nil {
		return l.MaxRuns
	}
	return *l.IdleAgents
}

// Agent is a program that can be given a prompt.
type Agent struct {
	Name    string
	Driver  string   // acp, command or executor
	Command []string // the program and its arguments; "{prompt}" stands for the prompt (driver command)
	Prompt  string   // driver command: arg or stdin
	History string   // driver command: transcript or none
	Files   string   // driver acp: read-write, write or none
	// StartTimeout is how long one of driver acp may take to say that it is there;
	// 0: nothing was said of it.
	StartTimeout time.Duration
	// SilentAfter and SilentToolAfter are how long an agent of driver acp may be without a
	// sign of life, and in the middle of a tool call, before its silence is reported;
	// 0: the executor's defaults.
	SilentAfter, SilentToolAfter time.Duration
	// Quiet is how long an agent of driver acp that works without a prompt, and does not
	// tell the end of that, has to be silent until that work counts as done; 0: the
	// executor's default.
	Quiet time.Duration
	// Protocol is the newest version of the Agent Client Protocol that an agent of driver acp
	// is offered; 0: the newest that Duet knows.
	Protocol   int
	Env        map[string]string
	EnvFrom    []string          // names taken from Duet's own environment
	Keys       map[string]string // environment variable → service whose key it gets
	MCPServers []catalog.MCPServer
	Source     string // built-in, user or project: the last that said anything of it
	Title      string // for people
	Trusted    bool   // false: from a project's file that the user does not trust; never to be run
	// FromProject tells that the project's file defines it, or changes it.
	FromProject bool
	Available   bool   // the program was found; never found where Trusted is false
	Path        string // the program, absolute; empty where it was not found
	// CLI is the agent's command line, where that was found and the program with
	// which it speaks the Agent Client Protocol was not.
	CLI string
}

// Rule decides about tool calls before anybody is asked. Empty patterns match
// everything. A deny rule wins over an allow rule.
type Rule struct {
	Effect  string // allow or deny
	Tool    string // glob over the tool's name
	Path    string // glob over the file that it touches
	Command string // glob over the commands that it runs
	Agent   string // the name of an agent
	Source  string // user or project
	File    string // in which it stands, as people are told of it; "": in none
	Line    int    // of File, from 1
}

//go:embed defaults.toml
var defaults string

// Defaults is a configuration file in which every key is described and nothing
// is set: a line that begins with "# " is prose, one that begins with "#" alone
// is TOML to be uncommented.
func Defaults() string { return defaults }

// Error is everything that is wrong with a configuration.
type Error struct {
	Problems []Problem
}

func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(append(lines, "(`duet-rpc config --defaults` shows every key and what it may be)"), "\n")
}

// Explain begins the list of what is wrong on a line of its own, where editors
// and terminals find the places in it. Another error stays as it is.
func Explain(err error) error {
	var wrong *Error
	if errors.As(err, &wrong) {
		return fmt.Errorf("the configuration is wrong\n%w", err)
	}
	return err
}

// mostProblems are how many are told: the rest is seldom other.
const mostProblems = 100

// cut leaves out the problems that are too many.
func (e *Error) cut() *Error {
	if more := len(e.Problems) - mostProblems; more > 0 {
		name := e.Problems[mostProblems].Name
		e.Problems = append(e.Problems[:mostProblems:mostProblems], Problem{Name: name, Message: fmt.Sprintf("and %d more", more)})
	}
	return e
}

// A Description is what people and clients are told of an agent without starting it.
type Description struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Driver    string `json:"driver" doc:"acp, command or executor."`
	Default   bool   `json:"default" doc:"It is asked where nobody names an agent."`
	Available bool   `json:"available" doc:"Its program was found."`
	Path      string `json:"path,omitempty" doc:"Where its program is."`
	Install   string `json:"install,omitempty" doc:"How to get it, where it is not available."`
	CLI       string `json:"cli,omitempty" doc:"Where the agent's own command line is, if its adapter for the Agent Client Protocol is missing."`
	Source    string `json:"source" doc:"Who said of it last: built-in, user or project."`
	Trusted   bool   `json:"trusted" doc:"False: a project's file defines it that the user has not trusted, so it is not started."`
}

// Describe describes every agent, in the order of [Config.List].
func (c *Config) Describe() []Description {
	list := []Description{}
	for _, a := range c.List() {
		d := Description{
			Name: a.Name, Title: a.Title, Driver: a.Driver, Default: a.Name == c.Default(),
			Available: a.Available, Path: a.Path, Source: a.Source, Trusted: a.Trusted,
		}
		if !a.Available {
			d.Install, d.CLI = a.Install(), a.CLI
		}
		list = append(list, d)
	}
	return list
}
