package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/executor/process"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/mcp"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
)

const doctorHelp = `Check everything that duet-rpc needs, and say what was found, what is wrong and
what to do about it.

It starts this program as an editor would, exchanges messages with it, and runs a
prompt with the demo agent. With --exchange the messages are shown.

With --keys it checks nothing: it lists when agents of this project last asked for
API keys, for which service and session, and where the key came from. No key is
ever kept.

Exit status: 0 if everything is well; 1 if something is wrong.`

func newDoctorCommand(s *settings) *cobra.Command {
	var showExchange, showKeys bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what duet-rpc needs, and print each problem with its solution",
		Long:  doctorHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showKeys {
				p, err := s.Project()
				if err != nil {
					return err
				}
				return showKeyAccesses(cmd.Context(), p, s.JSON, cmd.OutOrStdout())
			}
			show := io.Discard
			if showExchange && !s.JSON {
				show = cmd.OutOrStdout()
			}
			findings := examine(&s.Settings, versionLine(s.Version), show)
			out := cmd.OutOrStdout()
			var err error
			if s.JSON {
				err = term.JSON(out, map[string]any{"findings": findings})
			} else {
				err = printFindings(out, findings)
			}
			if err != nil {
				return err
			}
			for _, f := range findings {
				if f.State == findingWrong {
					return fmt.Errorf("something is wrong: %s", f.Check)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&showExchange, "exchange", false, "show the messages that go between an editor and duet-rpc")
	cmd.Flags().BoolVar(&showKeys, "keys", false, "list when agents asked for API keys, and where the keys came from")
	return cmd
}

// The checks of duet-rpc doctor: findings, problems and remedies.

// finding is the result of one check.
type finding struct {
	Check string       `json:"check"`
	State findingState `json:"state"`
	Found string       `json:"found"`
	Todo  string       `json:"todo,omitempty"` // the remedy
}

// findingState says what a finding means for the user.
type findingState string

// The states of a finding.
const (
	findingOK    findingState = "ok"
	findingNote  findingState = "note"
	findingWrong findingState = "wrong"
)

// examine runs all checks. It starts the program as an editor would, and writes the messages
// exchanged with it to show. version is the version of this program.
func examine(s *hubprocess.Settings, version string, show io.Writer) []finding {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return append([]finding{
		{Check: "program", State: findingOK, Found: fmt.Sprintf("%s at %s", version, self)},
		checkPath(self),
		checkLog(os.Getenv("DUET_RPC_LOG")),
		checkLimits(s),
		checkExchange(self, show),
	}, examineSessions(s)...)
}

// checkPath checks whether an editor that starts "duet-rpc" gets this program.
func checkPath(self string) finding {
	f := finding{Check: "PATH"}
	found, err := exec.LookPath("duet-rpc")
	switch {
	case err != nil:
		f.State, f.Found = findingNote, "duet-rpc is not on PATH"
		f.Todo = fmt.Sprintf("put %s on PATH, or name this program in the editor's settings", filepath.Dir(self))
	case !project.SameFile(found, self):
		f.State, f.Found = findingNote, "another duet-rpc comes first on PATH: "+found
		f.Todo = "remove it, or name this program in the editor's settings"
	default:
		f.State, f.Found = findingOK, found
	}
	return f
}

// checkLog checks whether the log can be written.
func checkLog(path string) finding {
	f := finding{Check: "log", State: findingOK, Found: "standard error"}
	if path == "" {
		return f
	}
	f.Found = path
	file, err := logging.OpenFile(path)
	if err != nil {
		f.State, f.Found = findingWrong, err.Error()
		f.Todo = "set DUET_RPC_LOG to a file in a directory that can be written"
		return f
	}
	file.Close()
	return f
}

func checkLimits(s *hubprocess.Settings) finding {
	l := s.Limits
	return finding{
		Check: "limits", State: findingOK,
		Found: fmt.Sprintf("messages of at most %d bytes, headers of at most %d bytes, %v for one to arrive", l.MaxFrame, l.MaxHeader, l.Timeout),
	}
}

// checkExchange starts the program as an editor would and talks to it.
func checkExchange(self string, show io.Writer) finding {
	f := finding{Check: "exchange", State: findingOK}
	began := time.Now()
	n, err := exchange(self, show)
	if err != nil {
		f.State, f.Found = findingWrong, err.Error()
		f.Todo = "run duet-rpc --log-level debug and look at what it logs"
		return f
	}
	f.Found = fmt.Sprintf("%d requests answered in %v", n, time.Since(began).Round(100*time.Microsecond))
	return f
}

// printFindings prints findings as a table.
func printFindings(w io.Writer, findings []finding) error {
	var rows [][]string
	for _, f := range findings {
		rows = append(rows, []string{string(f.State), f.Check, f.Found})
		if f.Todo != "" {
			rows = append(rows, []string{"", "", "→ " + f.Todo})
		}
	}
	return term.Listing(w, rows)
}

// checkDatabase checks whether the database can be used, without changing it.
func checkDatabase(p project.Project) finding {
	f := finding{Check: "database", State: findingOK}
	if !p.HasDatabase() {
		f.Found = "none yet; it is made with the first session"
		return f
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tellsTodo := false
	info, err := os.Stat(p.Database())
	if err == nil {
		tellsTodo, err = host.CheckDatabase(ctx, p)
	}
	switch {
	case tellsTodo:
		f.State, f.Found = findingWrong, err.Error()
		f.Todo = "sessions are not available until this is fixed; the file was not touched"
	case err != nil:
		f.State, f.Found, f.Todo = findingWrong, err.Error(), "look at the permissions of the file and its directory"
	default:
		f.Found = fmt.Sprintf("%.1f MB, nothing wrong", float64(info.Size())/1e6)
	}
	return f
}

// checkTree reports a state directory that an earlier build has left in the project.
func checkTree(p project.Project) []finding {
	dir := filepath.Join(p.Root, ".duet")
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return nil
	}
	return []finding{{
		Check: "old state", State: findingNote, Found: dir + " was made by an earlier duet-rpc, or came with the project, and is not read",
		Todo: "remove it if you need nothing in it",
	}}
}

// exchangeTimeout bounds the whole exchange.
const exchangeTimeout = 10 * time.Second

// step is one request of the exchange and what its reply must contain.
type step struct {
	request string
	check   func(result json.RawMessage, errorCode int) bool
}

// steps are requests that an editor typically sends first.
var steps = []step{
	{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
		func(result json.RawMessage, _ int) bool {
			var r struct{ ServerInfo struct{ Name string } }
			return json.Unmarshal(result, &r) == nil && r.ServerInfo.Name == "duet-rpc"
		},
	},
	{
		`{"jsonrpc":"2.0","id":2,"method":"ping","params":null}`,
		func(result json.RawMessage, _ int) bool {
			var r struct{ Pong bool }
			return json.Unmarshal(result, &r) == nil && r.Pong
		},
	},
	{
		`{"jsonrpc":"2.0","id":3,"method":"echo","params":["größer ✓ 二重奏"]}`,
		func(result json.RawMessage, _ int) bool { return string(result) == `["größer ✓ 二重奏"]` },
	},
	{
		`{"jsonrpc":"2.0","id":4,"method":"setLogLevel","params":{"level":"loud"}}`,
		func(_ json.RawMessage, code int) bool { return code == -32602 },
	},
	{
		`{"jsonrpc":"2.0","id":5,"method":"shutdown"}`,
		func(result json.RawMessage, code int) bool { return code == 0 && len(result) > 0 },
	},
}

// exchange starts program as an editor would, sends the requests of steps, and waits for the
// program to end. It writes each message to show and returns how many requests were answered
// as expected. The program gets a temporary project. Otherwise a slow program would open the
// database of the user's project, which doctor must not change.
func exchange(program string, show io.Writer) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), exchangeTimeout)
	defer cancel()
	root, err := os.MkdirTemp("", "duet-doctor")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(root)
	cmd := exec.CommandContext(ctx, program, "--stdio", "--log-level", "error", "--root", root)
	cmd.Env = append(os.Environ(), project.StateVariable+"="+filepath.Join(root, "state")) // removed with root
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("cannot start it: %w", err)
	}
	n, err := converse(stdin, frame.NewReader(stdout, frame.LSP, frame.Limits{}), show)
	stdin.Close()
	if waitErr := cmd.Wait(); err == nil && waitErr != nil {
		err = fmt.Errorf("it did not end as it should: %w", waitErr)
	}
	return n, err
}

// converse sends the requests of steps to the program.
func converse(in io.Writer, out *frame.Reader, show io.Writer) (int, error) {
	for i, s := range steps {
		request := frame.Append(nil, frame.LSP, []byte(s.request))
		fmt.Fprintf(show, "editor → duet-rpc\n%s\n\n", indented(request))
		began := time.Now()
		if _, err := in.Write(request); err != nil {
			return i, fmt.Errorf("it does not accept requests: %w", err)
		}
		var m frame.Message
		if err := out.Next(&m); err != nil {
			return i, fmt.Errorf("request %d was not answered: %w", i+1, err)
		}
		fmt.Fprintf(show, "duet-rpc → editor, %v later\n%s\n\n",
			time.Since(began).Round(10*time.Microsecond), indented(frame.Append(nil, frame.LSP, m.Body)))
		var e struct{ Code int }
		if m.Error != nil {
			_ = json.Unmarshal(m.Error, &e) // if this is no error object the code stays 0, and the check fails
		}
		if !s.check(json.RawMessage(m.Result), e.Code) {
			return i, fmt.Errorf("request %d was answered with %s", i+1, m.Body)
		}
	}
	return len(steps), nil
}

// indented formats a frame for the screen: header lines, a blank line, and the body.
func indented(raw []byte) string {
	return "    " + strings.ReplaceAll(string(raw), "\r\n", "\n    ")
}

const (
	// shownAccesses is how many key accesses are shown.
	shownAccesses = 100
	// readAccessesWithin bounds reading them from the database.
	readAccessesWithin = 20 * time.Second
)

// showKeyAccesses prints when agents of a project asked for API keys, and the result.
func showKeyAccesses(ctx context.Context, p project.Project, asJSON bool, out io.Writer) error {
	if err := p.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readAccessesWithin)
	defer cancel()
	list, err := host.KeyAccesses(ctx, p, shownAccesses)
	switch {
	case err != nil:
		return err
	case asJSON:
		return term.JSON(out, map[string]any{"accesses": append([]domain.KeyAccess{}, list...)})
	case len(list) == 0:
		_, err := fmt.Fprintln(out, "no agent has asked for a key here")
		return err
	}
	table := term.NewTable(out, "TIME", "SERVICE", "OUTCOME", "SESSION")
	table.Below("SESSION")
	for _, a := range list {
		table.Row(a.At.Local().Format(time.DateTime), a.Service, a.Outcome, a.HumanLayerSession)
	}
	return table.Flush()
}

// serverTime is how long an MCP server may take to start and answer; some download themselves
// first.
const serverTime = 10 * time.Second

// configuredServer is an MCP server and the agents that use it in the same environment.
type configuredServer struct {
	catalog.MCPServer
	env    process.Environment
	agents []string
}

// checkServers checks the MCP servers of each usable agent. It skips configuration that is not
// trusted yet.
func checkServers(c *config.Config, root string) []finding {
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
	findings := make([]finding, len(servers))
	var checking sync.WaitGroup
	for i, s := range servers {
		checking.Go(func() { findings[i] = checkServer(s, root) })
	}
	checking.Wait()
	return findings
}

func checkServer(s *configuredServer, root string) finding {
	ctx, cancel := context.WithTimeout(context.Background(), serverTime)
	defer cancel()
	f := finding{Check: "MCP server " + s.Name, State: findingOK}
	found, problem := mcp.CheckServers(ctx, s.MCPServer, root, s.env)
	if problem != nil {
		f.State, found, f.Todo = findingWrong, problem.Cause, problem.Todo
	}
	f.Found = fmt.Sprintf("of %s: %s", strings.Join(s.agents, ", "), found)
	return f
}

// environmentOf returns an agent's environment without its API keys.
func environmentOf(a config.Agent) process.Environment {
	return process.NewEnvironment(a.Variables(nil, os.Getenv))
}

// checkGit checks whether git, which records the files of a project, is installed.
func checkGit(c *config.Config) []finding {
	if _, err := exec.LookPath("git"); err == nil || !c.Checkpoints {
		return nil
	}
	return []finding{{Check: "git", State: findingNote, Found: "git is not installed: Duet cannot see which files the commands of agents " +
		"change, and cannot restore files to before a turn", Todo: "install git 2.39 or newer, or set checkpoints.enabled = false"}}
}

// checkPreview checks that the configured directory of [preview] exists.
func checkPreview(c *config.Config, root string) []finding {
	if c.Preview.Directory == nil {
		return nil
	}
	directory := *c.Preview.Directory
	f := finding{Check: "preview", State: findingOK, Found: directory}
	if !filepath.IsAbs(directory) {
		directory = filepath.Join(root, directory)
	}
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		f.State, f.Found, f.Todo = findingNote, "there is no directory "+f.Found, "build the project, or name another one in [preview]"
	}
	return []finding{f}
}

// examineSessions checks what sessions need: the project, its configuration, its database,
// agents, and a turn.
func examineSessions(s *hubprocess.Settings) []finding {
	p, err := s.Project()
	if err != nil {
		return []finding{{Check: "project", State: findingWrong, Found: err.Error(), Todo: "name a directory with --root"}}
	}
	if err := p.Check(); err != nil {
		return []finding{{
			Check: "project", State: findingWrong, Found: err.Error(), Todo: "sessions are not available until this is fixed; nothing was touched",
		}}
	}
	found := p.Root + "; `duet-rpc paths` prints where its sessions are"
	list := []finding{{Check: "project", State: findingOK, Found: found}}
	for _, note := range p.Notes {
		what, todo, _ := strings.Cut(note, ": ")
		list = append(list, finding{Check: "project", State: findingNote, Found: what, Todo: todo})
	}
	list = append(list, checkHub(s, p), checkDatabase(p))
	list = append(list, checkTree(p)...)
	c, err := s.Config()
	if err != nil {
		list = append(list, finding{Check: "configuration", State: findingWrong, Found: strings.ReplaceAll(
			err.Error(), "\n", "; ",
		), Todo: "fix the lines that are named; `duet-rpc config --defaults` describes every key"})
		return list
	}
	list = append(list, checkTrust(c), checkAgents(c))
	list = append(list, checkNode(c)...)
	list = append(list, checkKeys(c)...)
	list = append(list, checkVariables(c)...)
	list = append(list, checkGit(c)...)
	list = append(list, checkSandbox())
	list = append(list, checkPreview(c, p.Root)...)
	list = append(list, checkServers(c, p.Root)...)
	return append(list, checkSession(s))
}

// checkHub checks whether a hub answers. It does not start one.
func checkHub(s *hubprocess.Settings, p project.Project) finding {
	f := finding{Check: "hub", State: findingOK}
	ctx, cancel := context.WithTimeout(context.Background(), 2*s.AnswerWithin)
	defer cancel()
	var status hubclient.HubStatus
	c, err := hubprocess.Dial(ctx, s.ForAnyBuild(), p)
	if err == nil {
		defer c.Close()
		status, err = hubclient.Status(ctx, c)
	}
	var unserved *socket.NoListenerError
	switch {
	case err == nil:
		f.Found = strings.Join(append([]string{fmt.Sprintf("process %d, %s", status.PID, status.Version)}, status.Subsystems.IPC.Unserved...),
			"; ")
		if len(status.Issues) > 0 { // the issues include the remedy
			f.State, f.Found = findingWrong, f.Found+": "+strings.ReplaceAll(strings.Join(status.Issues, "; "), "; `duet-rpc doctor` says more", "")
		}
	case errors.As(err, &unserved):
		f.Found = "none runs here; an editor or a command starts a daemon"
	case errors.As(err, new(*hubprocess.SilentError)):
		f.State, f.Found, f.Todo = findingWrong, err.Error(), "`duet-rpc daemon logs` shows its last actions"
	default:
		f.State, f.Found, f.Todo = findingWrong, err.Error(), "look at `duet-rpc daemon logs`, and end the process that has the project open"
	}
	return f
}

// checkTrust checks whether the project's file waits for trust.
func checkTrust(c *config.Config) finding {
	f := finding{Check: "configuration", State: findingOK, Found: "nothing wrong"}
	if len(c.Untrusted) > 0 {
		f.State, f.Found = findingNote, "parts of it have no effect: the project's .duet.toml is not trusted"
		f.Todo = "review what it would run, and trust it: duet-rpc trust"
	}
	return f
}

// checkAgents reports which agents can be used.
func checkAgents(c *config.Config) finding {
	var here []string
	for _, a := range c.List() {
		if _, host := a.OnHost(); host != "" {
			here = append(here, a.Name+" (on "+host+")")
		} else if a.Available {
			here = append(here, a.Name)
		}
	}
	f := finding{Check: "agents", State: findingOK, Found: strings.Join(here, ", ")}
	a, err := c.Resolve("")
	switch {
	case err != nil:
		f.State, f.Found, f.Todo = findingWrong, err.Error(), "choose another default_agent; `duet-rpc agents` lists them"
	case a.Name == "demo":
		f.State, f.Todo = findingNote, "only the demo agent answers; `duet-rpc agents` says how to get others"
	default:
		f.Found += "; " + a.Name + " is the default"
		f.Todo = "`duet-rpc agents check` starts them, and prints their sign-ins"
	}
	return f
}

// checkNode checks whether Node.js is too old for the current versions of agents.
func checkNode(c *config.Config) []finding {
	ctx, cancel := context.WithTimeout(context.Background(), nodeTime)
	defer cancel()
	printed, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil { // agents that need Node.js report that themselves
		return nil
	}
	version := strings.TrimSpace(string(printed))
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	has, err := strconv.Atoi(major)
	if err != nil {
		return nil
	}
	var names []string
	needs := 0
	for _, a := range c.List() {
		if oldest := a.OldestNode(); oldest > has {
			names, needs = append(names, a.Name), max(needs, oldest)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []finding{{
		Check: "Node.js", State: findingNote,
		Found: fmt.Sprintf("%s; npm installs old versions of %s on it, such as claude-agent-acp 0.49", term.Line(version),
			strings.Join(names, ", ")),
		Todo: fmt.Sprintf("install Node.js %d or later, then install these agents again", needs),
	}}
}

// nodeTime is how long `node --version` may take.
const nodeTime = 5 * time.Second

// keyTime is how long commands that print keys may take.
const keyTime = 10 * time.Second

// checkKeys checks whether the usable agents get the API keys that are configured for them.
func checkKeys(c *config.Config) (findings []finding) {
	ctx, cancel := context.WithTimeout(context.Background(), keyTime)
	defer cancel()
	for _, a := range c.List() {
		if !a.Available {
			continue
		}
		if _, missing := c.FetchKeys(ctx, a, os.Getenv); len(missing) > 0 {
			findings = append(findings, finding{
				Check: "keys of " + a.Name, State: findingWrong, Found: strings.Join(missing, "; "),
				Todo: "set the variable, or correct [keys] or the agent's keys in the configuration",
			})
		}
	}
	return findings
}

// checkVariables names the variables with keys that the usable agents do not get.
func checkVariables(c *config.Config) (findings []finding) {
	for _, a := range c.List() {
		if names := a.KeptBack(os.Environ()); a.Available && !a.IsDemo() && len(names) > 0 {
			findings = append(findings, finding{
				Check: "variables of " + a.Name, State: findingOK, Found: "it does not get " + strings.Join(names, ", "),
				Todo: "if it needs one, name it under env_from in [agents." + a.Name + "] of the configuration",
			})
		}
	}
	return findings
}

// checkSession runs a prompt with the demo agent in a temporary directory. This tests the
// database, the executor and the agent.
func checkSession(s *hubprocess.Settings) finding {
	f := finding{Check: "session", State: findingOK}
	began := time.Now()
	if err := trySession(*s); err != nil {
		f.State, f.Found, f.Todo = findingWrong, err.Error(), "run duet-rpc prompt --agent demo --log-level debug quiet, and look at what it logs"
		return f
	}
	f.Found = fmt.Sprintf("the demo agent answered in %v", time.Since(began).Round(time.Millisecond))
	return f
}

func trySession(s hubprocess.Settings) error {
	log := logging.Open(logging.Options{Level: slog.LevelError, NoColor: s.NoColor})
	defer log.Close(400 * time.Millisecond)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return host.TryDemoAgent(ctx, s, log)
}
