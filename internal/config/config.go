// Package config reads the configuration of the user and the project: from flags, the
// environment, the project's .duet.toml, the user's config.toml and defaults, in this order of
// precedence. Commands of a project's file wait until the user trusts that file.
//
// An [*Error] reports all mistakes at once, each with its place; a default never replaces a
// value that could not be read. A loaded configuration does not change and may be used by many
// goroutines.
package config

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// Sources of a value; see [Value] and [Agent].
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

// DefaultDaemonIdle is [Config.DaemonIdle] without configuration.
const DefaultDaemonIdle = 15 * time.Minute

// Config is the effective configuration.
type Config struct {
	DefaultAgent string        // as configured; empty if none was, see [Config.Resolve]
	WhenAlone    string        // continue or interrupt: what a daemon does with the work of clients after a minute without clients
	DaemonIdle   time.Duration // how long an idle daemon lives: up to 168 h, default 15 min; 0: without limit
	Limits       Limits
	ProbeServers bool // MCP servers for agents are probed
	EditorTools  bool // agents get the tools of the user's editor
	Checkpoints  bool // the files are recorded before each turn
	ACP          ACP
	Budget       Budget
	Agents       map[string]Agent // by name, including built-in ones
	Keys         map[string]Key   // by service; none from a file that is not trusted
	Gates        []Gate           // as Builds
	WaitingGates []string         // the names of gates in files that are not trusted
	Preview      Preview
	Worktrees    Worktrees
	// WorktreesWait reports that a file that is not trusted configures worktrees.
	WorktreesWait bool
	Builds        []Build   // the project's before the user's; none from a file that is not trusted
	Triggers      []Trigger // none from a file that is not trusted
	Automation    Automation
	Rules         []Rule // the project's before the user's; no allow rule from a file that is not trusted

	// Untrusted are the files with settings that wait for the user's trust.
	Untrusted []string
	// Notes describe ignored files, and how to enable them.
	Notes []string

	projectFile string
	origins     map[string]string // key → source, for Values
	waiting     []Value
}

// Limits bound the work of the hub.
type Limits struct {
	MaxRuns    int           // at once: 1 to 100, default 3
	QueueCap   int           // waiting runs: 1 to 100,000, default 1,000
	RunTimeout time.Duration // of one run: 1 s to 168 h, default 2 h
	IdleAgents *int          // kept for the next prompt, 0 to 1,000; nil: as many as MaxRuns
}

// ACP configures how `duet-rpc acp` serves editors.
type ACP struct {
	SavedFiles bool // agents read files from the disk even if the editor offers unsaved text
}

// MostIdle returns how many idle agents are kept.
func (l Limits) MostIdle() int {
	if l.IdleAgents == nil {
		return l.MaxRuns
	}
	return *l.IdleAgents
}

// Agent is a program that takes a prompt.
type Agent struct {
	Name    string
	Driver  string   // acp, command or executor
	Command []string // the program and its arguments; the prompt replaces "{prompt}" (driver command)
	Prompt  string   // driver command: arg or stdin
	History string   // driver command: transcript or none
	Files   string   // driver acp: read-write, write or none
	// StartTimeout is how long an agent of driver acp may take to answer after its start; 0: not
	// configured.
	StartTimeout time.Duration
	// SilentAfter and SilentToolAfter are how long an agent of driver acp may be silent, and
	// silent during a tool call, before that is reported; 0: the executor's defaults.
	SilentAfter, SilentToolAfter time.Duration
	// Quiet is how long an agent of driver acp must be silent until its work without a prompt
	// counts as done. It applies to agents that do not report the end. 0: the executor's
	// default.
	Quiet time.Duration
	// Protocol is the newest version of the Agent Client Protocol offered to an agent of driver
	// acp; 0: the newest that Duet knows.
	Protocol   int
	Env        map[string]string
	EnvFrom    []string          // names taken from Duet's own environment
	Keys       map[string]string // environment variable → service whose key it gets
	MCPServers []catalog.MCPServer
	Source     string // built-in, user or project: the last source that set anything
	Title      string // for display
	Trusted    bool   // false: from a project's file that the user does not trust; it never runs
	// FromProject reports that the project's file defines or changes it.
	FromProject bool
	Available   bool   // the program was found; always false if Trusted is false
	Path        string // the program, absolute; empty if it was not found
	// CLI is the agent's command line, if it was found but the program that speaks the Agent
	// Client Protocol was not.
	CLI string
}

// Rule decides about tool calls before a person is asked. Empty patterns match everything. A
// deny rule wins over an allow rule.
type Rule struct {
	Effect  string // allow or deny
	Tool    string // glob over the tool's name
	Path    string // glob over the touched file
	Command string // glob over the executed commands
	Agent   string // the name of an agent
	Source  string // user or project
	File    string // its file, for display; "": none
	Line    int    // of File, from 1
}

//go:embed defaults.toml
var defaults string

// Defaults returns a configuration file that describes every key and sets none. A line that
// begins with "# " is prose; one that begins with "#" alone is TOML to be uncommented.
func Defaults() string { return defaults }

// Error holds all problems of a configuration.
type Error struct {
	Problems []Problem
	// Unread reports that a file could not be read, for example because the disk has failed. The next
	// attempt may succeed although the file has not changed.
	Unread bool
}

func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(append(lines, "(`duet-rpc config --defaults` shows every key and its values)"), "\n")
}

// Explain begins the list of problems on its own line, where editors and terminals find the
// places in it. It returns other errors unchanged.
func Explain(err error) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return fmt.Errorf("the configuration is wrong\n%w", err)
	}
	return err
}

// mostProblems is how many problems are reported: further ones are rarely different.
const mostProblems = 100

// cut removes the problems beyond the limit.
func (e *Error) cut() *Error {
	if more := len(e.Problems) - mostProblems; more > 0 {
		name := e.Problems[mostProblems].Name
		e.Problems = append(e.Problems[:mostProblems:mostProblems], Problem{Name: name, Message: fmt.Sprintf("and %d more", more)})
	}
	return e
}

// Describe describes every agent, in the order of [Config.List].
func (c *Config) Describe() []domain.ConfiguredAgent {
	list := []domain.ConfiguredAgent{}
	for _, a := range c.List() {
		d := domain.ConfiguredAgent{
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
