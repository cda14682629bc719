// Package config reads the configuration of the user and the project: from the environment, the
// project's .duet.toml, the user's config.toml and defaults, in this order of precedence. Commands
// of a project's file wait until the user trusts that file. table.go lists all keys.
//
// An [*Error] reports all mistakes at once, each with its place; a default never replaces a
// value that could not be read. A loaded configuration does not change and may be used by many
// goroutines.
package config

import (
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
	DefaultAgent    string   // as configured; empty if none was, see [Config.Resolve]
	SafeDirectories []string // where Duet accepts the files of other users; see [project.Owners]
	WhenAlone       string   // continue or interrupt: what a daemon does with the work of clients after a minute without clients
	DaemonIdle      time.Duration
	Limits          Limits
	ProbeServers    bool // MCP servers for agents are probed
	EditorTools     bool // agents get the tools of the user's editor
	Checkpoints     bool // the files are recorded before each turn
	ACP             ACP
	Budget          Budget
	Agents          map[string]Agent // by name, including built-in ones
	Keys            map[string]Key   // by service; none from a file that is not trusted
	Hosts           map[string]Host  // by name; none from a project's file
	Web             Web
	Notify          Notify
	Gates           []Gate   // as Builds
	WaitingGates    []string // the names of gates in files that are not trusted
	Preview         Preview
	Worktrees       Worktrees
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

// standard returns the defaults of all keys.
func standard() *Config {
	return &Config{
		DaemonIdle: DefaultDaemonIdle, WhenAlone: AloneContinue,
		Limits:       Limits{MaxTurns: 3, QueueCap: 1000, TurnTimeout: 2 * time.Hour},
		ProbeServers: true, EditorTools: true, Checkpoints: true,
		Automation: DefaultAutomation(),
		Worktrees:  Worktrees{Use: WorktreeNever, Timeout: DefaultTimeout},
		Agents:     map[string]Agent{},
		Keys:       map[string]Key{},
		Hosts:      map[string]Host{},
		origins:    map[string]string{},
	}
}

// Limits bound the work of the hub.
type Limits struct {
	MaxTurns    int // at once
	QueueCap    int // waiting turns
	TurnTimeout time.Duration
	IdleAgents  *int // kept for the next prompt; nil: as many as MaxTurns
}

// MostIdle returns how many idle agents are kept.
func (l Limits) MostIdle() int {
	if l.IdleAgents == nil {
		return l.MaxTurns
	}
	return *l.IdleAgents
}

// BudgetLimits are the limits of usage. A nil field is not limited.
type BudgetLimits struct {
	Rounds  *int           // of a turn only: rounds of tool calls
	Repeats *int           // of a turn only: identical tool calls in a row
	Turns   *int           // of a session or a day only
	Time    *time.Duration // working time of agents, without the time that they wait for a person
	Tokens  *int           // input and output, as agents report them
	Cost    *float64       // in US dollars, as agents report it
}

// A Budget holds the limits of a turn, a session and a day.
type Budget struct{ Turn, Session, Day BudgetLimits }

// UnattendedRepeats is how often an unattended turn may repeat the same tool call, if neither the
// configuration nor its session sets a limit. A person watches the turns that they start.
// Some turns repeat calls for good reasons, such as waiting for a job to end.
const UnattendedRepeats = 50

// ACP configures how `duet-rpc acp` serves editors.
type ACP struct {
	SavedFiles bool // agents read files from the disk even if the editor offers unsaved text
}

// A Preview selects the files to show. A nil field is not configured.
type Preview struct {
	// Directory holds the files: relative to the project's root, or absolute.
	Directory *string
	// Fallback reports whether the directory's index.html answers for addresses without a file,
	// for pages that make their own addresses. Absent: it does.
	Fallback *bool
}

// Values of [Worktrees.Use].
const (
	WorktreeNever   = "never"
	WorktreeSession = "session"
	WorktreeTurn    = "turn"
)

// Worktrees configures the git worktrees of sessions: the key worktree and [worktrees].
type Worktrees struct {
	// Use says which new sessions get a worktree if their client does not choose: never,
	// session (each), or turn, which also brings a worktree that is landed to the user's commit
	// before each turn.
	Use     string
	Copy    []string      // patterns of files that git does not track, relative to the project
	Setup   []string      // the program and arguments that run in a new worktree
	Cleanup []string      // the same, before a worktree is deleted
	Timeout time.Duration // of Setup and of Cleanup
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
	Protocol     int
	Env          map[string]string
	EnvFrom      []string          // names taken from Duet's own environment
	Keys         map[string]string // environment variable → service whose key it gets
	MCPServers   []catalog.MCPServer
	Host         string   // on which it works, or AGENT@HOST ([Agent.OnHost]); "": this machine
	Sandbox      string   // the level, one of the domain.Sandbox constants; "": none
	SandboxWrite []string // paths that it may write in a sandbox, besides its own
	Source       string   // built-in, user or project: the last source that set anything
	Title        string   // for display
	Trusted      bool     // false: from a project's file that the user does not trust; it never runs
	// FromProject reports that the project's file defines or changes it.
	FromProject bool
	Available   bool   // the program was found; always false if Trusted is false
	Path        string // the program, absolute; empty if it was not found
	// CLI is the agent's command line, if it was found but the program that speaks the Agent
	// Client Protocol was not.
	CLI string
}

// newAgent returns an agent with its defaults.
func newAgent(name string) Agent {
	return Agent{
		Name: name, Title: name, Driver: DriverACP, Prompt: "arg", History: "transcript", Files: catalog.FilesReadWrite, Trusted: true,
	}
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

// A Definition is a command with a name.
type Definition struct {
	Name      string
	Command   []string // a program and its arguments; nil if Shell is set
	Shell     string   // a line for `sh -c`
	Directory string   // working directory, relative to a base that its use defines; "" is the base itself
	Timeout   time.Duration
	Env       map[string]string
	Source    string // user or project
}

// DefaultTimeout is the time that a command of the user may take.
const DefaultTimeout = 30 * time.Minute

// Text returns the command for display.
func (d Definition) Text() []string {
	if d.Shell != "" {
		return []string{"sh", "-c", d.Shell}
	}
	return d.Command
}

// A Build is a command that builds a part of the project. Its directory is relative to the
// project's root.
type Build struct {
	Definition
	Backend bool // buildBackend builds it
}

// A Gate is a command that must succeed. Its directory is relative to the agent's working
// directory.
type Gate struct{ Definition }

// ShellGate returns the gate of a shell line that is not in a configuration.
func ShellGate(shell string) Gate {
	return Gate{Definition{Name: shell, Shell: shell, Timeout: DefaultTimeout}}
}

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
		return fmt.Errorf("the configuration is wrong:\n%w", err)
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
			Available: a.Available, Path: a.Path, Source: a.Source, Trusted: a.Trusted, Sandbox: a.Sandbox,
		}
		if _, d.Host = a.OnHost(); d.Host == "" && !a.Available {
			d.Install, d.CLI = a.Install(), a.CLI
		}
		list = append(list, d)
	}
	return list
}
