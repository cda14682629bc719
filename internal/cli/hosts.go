package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/server/stdio"
)

// newConnectCommand returns the command that runs on a host for --host of another machine.
func newConnectCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:    "connect",
		Short:  "Connect standard input and output with the project's daemon (started by --host)",
		Hidden: true,
		Args:   noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			near, err := stdio.Take()
			if err != nil {
				return err
			}
			if err := hubprocess.Bridge(cmd.Context(), &s.Settings, near, hubprocess.Answers{
				hubprocess.DescribeMethod: func(ctx context.Context, _ json.RawMessage) (any, error) { return s.describe(ctx), nil },
				hubprocess.ListMethod: func(ctx context.Context, params json.RawMessage) (any, error) {
					return s.answerHere(ctx, inquiry{params: params, method: "turn.list", member: "turns"})
				},
				hubprocess.ApprovalsMethod: func(ctx context.Context, raw json.RawMessage) (any, error) {
					q := openQuestions()
					var params questionsParams
					err := json.Unmarshal(raw, &params)
					if q.begun = params.Begun; err != nil {
						return nil, err
					}
					return s.answerHere(ctx, q)
				},
			}); err != nil {
				return exitStatus(1) // the other end has the reason
			}
			return nil
		},
	}
}

// answerHere answers the inquiry of another machine.
func (s *settings) answerHere(ctx context.Context, q inquiry) (any, error) {
	projects, err := q.here(ctx, s)
	return listing{Projects: projects}, err
}

// describe describes this machine as a host.
func (s *settings) describe(ctx context.Context) hubprocess.Description {
	d := hubprocess.Description{
		Version: s.Version, Protocol: hubprocess.Protocol, System: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU(), Agents: []string{},
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil { // Linux
		first, _, _ := strings.Cut(string(text), " ")
		if load, err := strconv.ParseFloat(first, 64); err == nil {
			d.Load = &load
		}
	}
	if out, err := exec.CommandContext(ctx, "git", "--version").Output(); err == nil {
		d.Git = strings.TrimPrefix(strings.TrimSpace(string(out)), "git version ")
	}
	if list, err := (host.Projects{Settings: &s.Settings}).List(ctx); err == nil {
		for _, p := range list {
			d.Projects++
			d.Sessions += p.Sessions
		}
	}
	own := s.Settings
	own.Root = string(filepath.Separator) // agents of the user, not of a project
	if c, err := own.Config(); err == nil {
		for _, a := range c.List() {
			if a.Available && a.Name != "demo" {
				d.Agents = append(d.Agents, a.Name)
			}
		}
	}
	return d
}

const hostsHelp = `List the hosts of your configuration: machines and containers on which agents work
(docs/hosts.md). ` + "`duet-rpc --host NAME`" + ` before any command, or alone, works with the
sessions there.

Exit status: 0 if they could be listed, also if some cannot be reached.`

func newHosts(s *settings) *cobra.Command {
	var names bool
	cmd := &cobra.Command{
		Use:   "hosts",
		Short: "List, check and add machines and containers on which agents work",
		Long:  hostsHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hosts, err := config.Hosts(os.Getenv)
			if err != nil {
				return err
			}
			if !names {
				return listHosts(cmd, s, hosts)
			}
			for _, name := range s.hostNames(hosts) {
				fmt.Fprintln(cmd.OutOrStdout(), name)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&names, "names", false, "print only their names, one in each line, and ask no host")
	cmd.AddCommand(newHostsCheck(s), newHostsAdd(s), newHostsStop(s))
	return cmd
}

// hostNames returns the names of the hosts, sorted, with those that were made for sessions of the project here.
func (s *settings) hostNames(hosts map[string]config.Host) []string {
	names := slices.Concat(slices.Collect(maps.Keys(hosts)), s.MadeHere())
	slices.Sort(names)
	return slices.Compact(names)
}

// A listedHost is a host with its description, or the reason why there is none.
type listedHost struct {
	Name    string                  `json:"host"`
	Command []string                `json:"command"`
	State   string                  `json:"state"` // reached, failed, or not_made
	Error   string                  `json:"error,omitempty"`
	Itself  *hubprocess.Description `json:"description,omitempty"`
	Seen    *hubprocess.Description `json:"last_description,omitempty"` // of a host that failed now
	SeenAt  *time.Time              `json:"last_seen,omitempty"`
}

// on returns a host of the configuration for requests that are about no project there. A host that is made for each
// project is that of the project here, by its root on this machine; "": of the current one.
func (s *settings) on(h config.Host, here string) (*hubprocess.Host, error) {
	own := s.Settings
	own.Root, own.Here = ".", here
	if here == "" && s.Host == "" {
		own.Here = s.Root
	} else if here == "" {
		own.Here = s.Here
	}
	own.Host = h.Name
	return own.On(h)
}

// lookAt asks a host for its description.
func (s *settings) lookAt(
	ctx context.Context, at config.Host, within time.Duration,
	look func(*hubprocess.Host, context.Context) (hubprocess.Description, error),
) listedHost {
	l := listedHost{Name: at.Name, Command: at.Command, State: "reached"}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	h, err := s.on(at, "")
	if err == nil {
		var d hubprocess.Description
		if d, err = look(h, ctx); err == nil {
			l.Itself = &d
			return l
		}
		if seen, at := h.Seen(); seen != nil {
			l.Seen, l.SeenAt = seen, &at
		}
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%s: no answer within %v", at.Name, within)
	}
	l.State, l.Error = "failed", strings.TrimPrefix(err.Error(), at.Name+": ")
	return l
}

// notMade is the state of a host that is made when it is needed, and is not there.
const notMade = "not_made"

func notMadeWords(h config.Host) string {
	if h.Per == config.PerSession {
		return "made for each session"
	}
	return "made when needed"
}

func listHosts(cmd *cobra.Command, s *settings, hosts map[string]config.Host) error {
	ctx, stop := term.UntilInterrupted(cmd.Context())
	defer stop()
	names := s.hostNames(hosts)
	all := make([]listedHost, len(names))
	made := s.MadeHere()
	var looking sync.WaitGroup
	for i, name := range names {
		h, err := config.HostIn(hosts, name)
		if err == nil && h.IsMade() && !slices.Contains(made, name) {
			all[i] = listedHost{Name: name, Command: h.Command, State: notMade}
			continue
		}
		looking.Go(func() { all[i] = s.lookAt(ctx, h, hostsWithin, (*hubprocess.Host).Look) })
	}
	looking.Wait()
	if ctx.Err() != nil {
		return term.ErrInterrupted
	}
	if s.JSON {
		return term.JSON(cmd.OutOrStdout(), map[string]any{"hosts": all})
	}
	t := term.NewTable(cmd.OutOrStdout(), "HOST", "STATE", "VERSION", "LOAD", "SESSIONS")
	t.Empty("your configuration names no host: `duet-rpc hosts add NAME COMMAND…` adds one")
	for _, l := range all {
		if l.State == notMade {
			t.Row(l.Name, notMadeWords(hosts[l.Name]), "", "", "")
			continue
		}
		if l.Itself == nil {
			state, version, sessions := "failed: "+term.Short(l.Error), "", ""
			if l.Seen != nil {
				state, version, sessions = state+"; seen "+term.Age(*l.SeenAt)+" ago", term.Line(l.Seen.Version), term.Number(l.Seen.Sessions)
			}
			t.Row(l.Name, state, version, "", sessions)
			continue
		}
		load := ""
		if l.Itself.Load != nil {
			load = fmt.Sprintf("%.1f of %d", *l.Itself.Load, l.Itself.Processors)
		}
		t.Row(l.Name, "reached", term.Line(l.Itself.Version), load, term.Number(l.Itself.Sessions))
	}
	return t.Flush()
}

const hostsCheckHelp = `Check a host: whether its command reaches it, whether duet-rpc and git are there, and
which agents. What is missing is printed with the line that mends it. duet-rpc is
copied there if it is missing and the system is that of this machine.

Exit status: 0 if agents can work there, 1 if something is missing.`

func newHostsCheck(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:               "check HOST",
		Short:             "Check what a host has, and say how to get what is missing",
		Long:              hostsCheckHelp,
		Args:              exactly("HOST"),
		ValidArgsFunction: completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := config.HostNamed(args[0], os.Getenv)
			if err != nil {
				return err
			}
			name, is := s.toCheck(h)
			if !is {
				return printNotMade(cmd, s, h)
			}
			if h.IsMade() {
				if h, err = config.HostNamed(name, os.Getenv); err != nil {
					return err
				}
				there, err := s.on(h, "")
				if err != nil {
					return err
				}
				h = there.Host
			}
			ctx, stop := term.UntilInterrupted(cmd.Context())
			defer stop()
			l := s.lookAt(ctx, h, checkWithin, (*hubprocess.Host).Describe)
			if ctx.Err() != nil {
				return term.ErrInterrupted
			}
			missing := missingOn(h, l)
			if s.JSON {
				err = term.JSON(cmd.OutOrStdout(), struct {
					listedHost
					Missing []string `json:"missing"`
				}{l, append([]string{}, missing...)})
			} else {
				printHost(cmd.OutOrStdout(), l, missing)
			}
			if err == nil && len(missing) > 0 {
				err = exitStatus(1)
			}
			return err
		},
	}
}

// toCheck returns the name of the host to check for one of the configuration: itself, or one that was made. There may be none.
func (s *settings) toCheck(h config.Host) (name string, is bool) {
	if !h.IsMade() || h.Of != "" {
		return h.Name, true
	}
	for _, name := range s.MadeHere() {
		if made, err := config.HostNamed(name, os.Getenv); err == nil && (name == h.Name || made.Of == h.Name) {
			return name, true
		}
	}
	return "", false
}

func printNotMade(cmd *cobra.Command, s *settings, h config.Host) error {
	if s.JSON {
		return term.JSON(cmd.OutOrStdout(), listedHost{Name: h.Name, Command: h.Command, State: notMade})
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, with: %s\nnothing is checked: `duet-rpc prompt --on %s \"Say hello\"` makes one\n", h.Name,
		notMadeWords(h), term.Line(inShell(h.Start)), h.Name)
	return err
}

// checkWithin is how long hosts check may take, which may copy the program.
const checkWithin = 5 * time.Minute

// missingOn returns what a host has not, each with the line that mends it.
func missingOn(h config.Host, l listedHost) (missing []string) {
	run := func(words ...string) string {
		return inShell(h.CommandLine(words[0], words[1:]...))
	}
	if l.Itself == nil {
		return []string{l.Error + "; try: " + run("uname", "-a")}
	}
	if l.Itself.Git == "" {
		missing = append(missing, "git is missing: without it there are no worktrees and no rewind; install it with the host's packages")
	}
	if len(l.Itself.Agents) == 0 {
		missing = append(missing, "no agent is installed there: install one as its makers say, and sign in there")
	}
	return missing
}

func printHost(out io.Writer, l listedHost, missing []string) {
	if d := l.Itself; d != nil {
		fmt.Fprintf(out, "%s: duet-rpc %s, %s, %s\n", l.Name, term.Line(d.Version), term.Line(d.System), term.Count(d.Sessions, "session"))
		if d.Git != "" {
			fmt.Fprintf(out, "git %s\n", term.Line(d.Git))
		}
		if len(d.Agents) > 0 {
			fmt.Fprintf(out, "agents: %s\n", term.Line(strings.Join(d.Agents, ", ")))
		}
	}
	for _, m := range missing {
		fmt.Fprintln(out, term.Lines(out, "! "+term.Line(m)))
	}
}

const hostsAddHelp = `Add a host to your config.toml: its name, and the command behind which a command
line runs there. With --shell, or if the program is ssh, a shell there reads the line.
The command must not ask anything: for ssh use keys.

Exit status: 0 if it was added, 1 if not.`

func newHostsAdd(s *settings) *cobra.Command {
	var h config.Host
	cmd := &cobra.Command{
		Use:   "add [--directory DIR] HOST COMMAND...",
		Short: "Add a host to your configuration",
		Long:  hostsAddHelp,
		Example: "  duet-rpc hosts add devbox ssh -o BatchMode=yes -o ServerAliveInterval=10 devbox\n" +
			"  duet-rpc hosts add --directory /src box podman exec -i box",
		Args: atLeast("HOST", "COMMAND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			h.Name, h.Command = args[0], args[1:]
			if strings.HasPrefix(h.Command[0], "-") {
				return fmt.Errorf("%s stands behind the name of the host, so it counts as its command: flags of hosts add come first", h.Command[0])
			}
			if !cmd.Flags().Changed("shell") {
				h.Shell = filepath.Base(h.Command[0]) == "ssh"
			}
			edit, err := config.AddHost(h, os.Getenv)
			if err != nil {
				return err
			}
			if err := edit.Write(); err != nil {
				return err
			}
			if s.JSON {
				return term.JSON(cmd.OutOrStdout(), map[string]any{"host": h.Name, "file": edit.File})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is added to %s: `duet-rpc hosts check %s` says what is missing there.\n", h.Name,
				term.Line(edit.File), h.Name)
			return err
		},
	}
	cmd.Flags().BoolVar(&h.Shell, "shell", false, "a shell there reads the command line (default: if the program is ssh)")
	cmd.Flags().StringVar(&h.Directory, "directory", "", "the directory of projects there")
	cmd.Flags().SetInterspersed(false) // flags behind the command belong to it
	return cmd
}

// completeHosts offers the names of the hosts.
func completeHosts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	hosts, _ := config.Hosts(os.Getenv)
	var s settings
	return s.hostNames(hosts), cobra.ShellCompDirectiveNoFileComp
}

// root returns the root of the project; "" if it is on a host.
func (s *settings) root() (string, error) {
	if s.Host != "" {
		return "", nil
	}
	p, err := s.Project()
	return p.Root, err
}

// runsThere reports whether a command runs as a whole on the host of --host: it needs the files of the project,
// or of its user there. The others are clients of the daemon there.
func runsThere(cmd *cobra.Command) bool {
	name := cmd.CommandPath()
	_, name, _ = strings.Cut(name, " ")
	name, _, _ = strings.Cut(name, " ")
	switch name {
	case "agents", "config", "daemon", "doctor", "paths", "projects", "trust":
		return true
	case "approvals", "session":
		all, _ := cmd.Flags().GetBool(allProjects)
		return all
	}
	return false
}

// runThere runs the command of these arguments on the host, with this process's standard input and output,
// and returns its exit status as an error.
func (s *settings) runThere(cmd *cobra.Command, args []string) error {
	h, err := s.Remote()
	if err != nil {
		return err
	}
	if _, err := h.Describe(cmd.Context()); err != nil { // it also copies the program there
		return err
	}
	line := h.CommandLine(withoutPlace(args)...)
	run := exec.CommandContext(cmd.Context(), line[0], line[1:]...)
	out, errs := term.Shown(cmd.OutOrStdout()), term.Shown(cmd.ErrOrStderr())
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, out, errs
	err = errors.Join(run.Run(), out.Close(), errs.Close())
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return exitStatus(exit.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return nil
}

// signsIn signs in to an agent in this terminal, unless the agent is on a host.
func (s *settings) signsIn(ctx context.Context, agent, method string) error {
	if s.Host != "" {
		return fmt.Errorf("the agent is on %s: sign in on a terminal there, with the command agents login %s", s.Host, agent)
	}
	return s.login(ctx, os.Stderr, agent, method)
}

// onHost matches a session or turn of a host, such as 12@devbox, also as the value of a flag.
var onHost = lazyregexp.New(`^(--?[a-z-]+=)?(\d+(?:\.\d+)?)@([A-Za-z0-9][A-Za-z0-9._-]*)$`)

// withHost returns arguments in which a session of a host, such as 12@devbox, is written as --host devbox and 12.
func withHost(args []string) []string {
	for i, arg := range args {
		if arg == "--" {
			break
		}
		if !strings.Contains(arg, "@") {
			continue
		}
		if m := onHost().FindStringSubmatch(arg); m != nil {
			return withHost(slices.Concat([]string{"--host", m[3]}, args[:i], []string{m[1] + m[2]}, args[i+1:]))
		}
	}
	return args
}

// withoutPlace returns arguments without --host and --root.
func withoutPlace(args []string) (rest []string) {
	for i := 0; i < len(args); i++ {
		name, _, hasValue := strings.Cut(args[i], "=")
		switch {
		case args[i] == "--":
			return append(rest, args[i:]...)
		case name == "--host" || name == "--root":
			if !hasValue {
				i++
			}
		default:
			rest = append(rest, args[i])
		}
	}
	return rest
}

// remoteShell returns the command that runs a line of the shell in a directory of the host.
func remoteShell(h *hubprocess.Host) func(ctx context.Context, dir, line string) *exec.Cmd {
	if h == nil {
		return nil
	}
	return func(ctx context.Context, dir, line string) *exec.Cmd {
		root, _ := h.Project()
		if dir == "" {
			dir = root
		}
		words := h.Host.CommandLine("sh", "-c", `cd -- "$1" && eval "$2"`, "sh", dir, line)
		return exec.CommandContext(ctx, words[0], words[1:]...)
	}
}
