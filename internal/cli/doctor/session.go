package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/logging"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/socket"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// examineSessions looks at what sessions need: the project, its
// configuration, its database, agents, and a run.
func examineSessions(s *hubprocess.Settings) []Finding {
	p, err := s.Project()
	if err != nil {
		return []Finding{{Check: "project", State: Wrong, Found: err.Error(), Todo: "name a directory with --root"}}
	}
	if err := p.Check(); err != nil {
		return []Finding{{Check: "project", State: Wrong, Found: err.Error(), Todo: "sessions are not available until this is fixed; nothing was touched"}}
	}
	found := p.Root + "; `duet-rpc paths` prints where its sessions are"
	list := []Finding{{Check: "project", State: OK, Found: found}}
	for _, note := range p.Notes {
		what, todo, _ := strings.Cut(note, ": ")
		list = append(list, Finding{Check: "project", State: Note, Found: what, Todo: todo})
	}
	list = append(list, checkHub(s, p), checkDatabase(p))
	list = append(list, checkTree(p)...)
	c, err := s.Config()
	if err != nil {
		list = append(list, Finding{Check: "configuration", State: Wrong, Found: strings.ReplaceAll(err.Error(), "\n", "; "), Todo: "fix the lines that are named; `duet-rpc config --defaults` describes every key"})
		return list
	}
	list = append(list, checkTrust(c), checkAgents(c))
	list = append(list, checkNode(c)...)
	list = append(list, checkKeys(c)...)
	list = append(list, checkPreview(c, p.Root)...)
	list = append(list, checkServers(c, p.Root)...)
	return append(list, checkSession(s))
}

// checkHub looks whether a hub answers, and starts none.
func checkHub(s *hubprocess.Settings, p project.Project) Finding {
	f := Finding{Check: "hub", State: OK}
	ctx, cancel := context.WithTimeout(context.Background(), 2*s.AnswerWithin)
	defer cancel()
	var status wire.HubStatus
	c, err := hubprocess.Dial(ctx, s.ForAnyBuild(), p)
	if err == nil {
		defer c.Close()
		status, err = wire.Status(ctx, c)
	}
	var nobody *socket.NobodyError
	switch {
	case err == nil:
		f.Found = strings.Join(append([]string{fmt.Sprintf("process %d, %s", status.PID, status.Version)}, status.Subsystems.IPC.Unserved...), "; ")
		if len(status.Issues) > 0 { // they say what to do
			f.State, f.Found = Wrong, f.Found+": "+strings.ReplaceAll(strings.Join(status.Issues, "; "), "; `duet-rpc doctor` says more", "")
		}
	case errors.As(err, &nobody):
		f.Found = "none runs here; an editor or a command starts a daemon"
	case errors.As(err, new(*hubprocess.SilentError)):
		f.State, f.Found, f.Todo = Wrong, err.Error(), "look at `duet-rpc daemon logs` for what it did last"
	default:
		f.State, f.Found, f.Todo = Wrong, err.Error(), "look at `duet-rpc daemon logs`, and end the process that has the project open"
	}
	return f
}

// checkTrust looks whether the project's file waits for trust.
func checkTrust(c *config.Config) Finding {
	f := Finding{Check: "configuration", State: OK, Found: "nothing wrong"}
	if len(c.Untrusted) > 0 {
		f.State, f.Found = Note, "parts of it have no effect: the project's .duet.toml is not trusted"
		f.Todo = "review what it would run, and trust it: duet-rpc trust"
	}
	return f
}

// checkAgents says which agents can be used.
func checkAgents(c *config.Config) Finding {
	var here []string
	for _, a := range c.List() {
		if a.Available {
			here = append(here, a.Name)
		}
	}
	f := Finding{Check: "agents", State: OK, Found: strings.Join(here, ", ")}
	a, err := c.Resolve("")
	switch {
	case err != nil:
		f.State, f.Found, f.Todo = Wrong, err.Error(), "choose another default_agent; `duet-rpc agents` lists them"
	case a.Name == "demo":
		f.State, f.Todo = Note, "only the demo agent answers; `duet-rpc agents` says how to get others"
	default:
		f.Found += "; " + a.Name + " is the default"
		f.Todo = "`duet-rpc agents check` starts them, and says who is signed in"
	}
	return f
}

// checkNode looks whether Node.js is too old for the current versions of agents.
func checkNode(c *config.Config) []Finding {
	ctx, cancel := context.WithTimeout(context.Background(), nodeTime)
	defer cancel()
	printed, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil { // agents that need it say so themselves
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
	return []Finding{{
		Check: "Node.js", State: Note,
		Found: fmt.Sprintf("%s; npm installs old versions of %s on it, such as claude-agent-acp 0.49", term.Line(version), strings.Join(names, ", ")),
		Todo:  fmt.Sprintf("install Node.js %d or later, then install these agents again", needs),
	}}
}

// nodeTime is how long `node --version` may take.
const nodeTime = 5 * time.Second

// keyTime is how long commands that print keys may take.
const keyTime = 10 * time.Second

// checkKeys looks whether the agents that can be used get the API keys that are
// configured for them.
func checkKeys(c *config.Config) (findings []Finding) {
	ctx, cancel := context.WithTimeout(context.Background(), keyTime)
	defer cancel()
	for _, a := range c.List() {
		if !a.Available {
			continue
		}
		if _, missing := c.FetchKeys(ctx, a, os.Getenv); len(missing) > 0 {
			findings = append(findings, Finding{
				Check: "keys of " + a.Name, State: Wrong, Found: strings.Join(missing, "; "),
				Todo: "set the variable, or correct [keys] or the agent's keys in the configuration",
			})
		}
	}
	return findings
}

// checkSession runs a prompt with the demo agent in a directory of its own,
// so that database, executor and agent are seen at work.
func checkSession(s *hubprocess.Settings) Finding {
	f := Finding{Check: "session", State: OK}
	began := time.Now()
	if err := trySession(*s); err != nil {
		f.State, f.Found, f.Todo = Wrong, err.Error(), "run duet-rpc prompt --agent demo --log-level debug quiet, and look at what it logs"
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
