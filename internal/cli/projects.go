package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

const projectsHelp = `List the projects with sessions on this machine, the last used first:
how many sessions each has, the size of its state, and whether its directory
is missing.

A project that was moved on one disk finds its sessions by itself. A copy of a
project begins with none.

Exit status: 0 if they could be listed, 1 if not.`

const projectsKeepHelp = `Restore the rules, trust and answers from before the project's directory was deleted
and created again. Its sessions are kept in any case. Until then nothing is allowed
in the new directory, because it may be anything.

Exit status: 0 if what you allowed counts, 1 if the project has no sessions.`

func newProjectsCommand(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "projects",
		Short: "List the projects with sessions, or move or forget them",
		Long:  projectsHelp,
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return listProjects(cmd, s) },
	}
	cmd.AddCommand(newProjectsMoveCommand(s), newProjectsForgetCommand(s), newProjectsKeepCommand(s))
	return cmd
}

func listProjects(cmd *cobra.Command, s *settings) error {
	list, err := host.Projects{Settings: &s.Settings}.List(cmd.Context())
	if err != nil {
		return err
	}
	if s.JSON {
		return term.JSON(cmd.OutOrStdout(), protocol.ProjectList{Projects: list})
	}
	table := term.NewTable(cmd.OutOrStdout(), "PROJECT", "SESSIONS", "SIZE", "USED", "NOTE")
	table.Empty("no project has sessions yet")
	for _, p := range list {
		note := p.Error
		switch {
		case p.Missing:
			note = "missing"
		case p.Replaced:
			note = "replaced; see `duet-rpc projects keep`"
		}
		table.Row(term.Line(term.HomePath(p.Root)), term.Number(p.Sessions), fmt.Sprintf("%.1f MB", float64(p.Bytes)/1e6),
			term.Age(p.LastUsed), note)
	}
	return table.Flush()
}

func newProjectsMoveCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "move OLD NEW",
		Short: "Give the sessions of the project at OLD to the directory NEW",
		Long: "Give the sessions of the project at OLD to the directory NEW, for example after a move\nto another disk. OLD need not exist; " +
			"NEW must have no sessions.\n\nExit status: 0 if NEW has the sessions, 1 if not.",
		Args: exactly("OLD", "NEW"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := (host.Projects{Settings: &s.Settings}).Move(cmd.Context(), args[0], args[1]); err != nil {
				return err
			}
			return printDone(cmd, s, map[string]any{"from": args[0], "to": args[1]}, "the sessions of %s belong to %s now", args[0], args[1])
		},
	}
}

func newProjectsForgetCommand(s *settings) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "forget PATH",
		Short: "Delete all sessions of the project at PATH for good",
		Long: "Delete all sessions, rules and logs of the project at PATH for good. The\nfiles of the project are left alone. PATH need not " +
			"exist. Git worktrees of\nsessions are deleted; if one has work that is not landed, nothing is.\n\nExit status: 0 if all was deleted; " +
			"1 if nothing was, because a daemon runs there or the answer was no.",
		Args: exactly("PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				question := fmt.Sprintf("Delete all sessions of %s for good?", term.Quoted(args[0]))
				if err := askYes(cmd, s, question, "nothing was deleted", "duet-rpc projects forget"); err != nil {
					return err
				}
			}
			kept, err := host.Projects{Settings: &s.Settings}.Forget(cmd.Context(), args[0])
			if kept != "" {
				progress(cmd, s, "the worktrees in %s stay: their repository is gone", term.Line(kept))
			}
			if err != nil {
				return err
			}
			return printDone(cmd, s, map[string]any{"forgotten": args[0]}, "all sessions of %s are deleted", args[0])
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "delete without asking")
	return cmd
}

func newProjectsKeepCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "keep",
		Short: "Restore the rules, trust and answers from before the directory was replaced",
		Long:  projectsKeepHelp,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := s.Project()
			if err != nil {
				return err
			}
			kept, err := host.KeepProject(p)
			switch {
			case err != nil:
				return err
			case !kept:
				return printDone(cmd, s, map[string]any{"root": p.Root, "kept": false}, "%s was not replaced: everything that you allowed counts",
					p.Root)
			}
			return printDone(cmd, s, map[string]any{"root": p.Root, "kept": true}, "what you allowed in %s counts again", p.Root)
		},
	}
}

// printDone prints the result of a command.
func printDone(cmd *cobra.Command, s *settings, asJSON map[string]any, format string, paths ...string) error {
	if s.JSON {
		return term.JSON(cmd.OutOrStdout(), asJSON)
	}
	args := make([]any, len(paths))
	for i, path := range paths {
		args[i] = term.Line(path)
	}
	text := fmt.Sprintf(format, args...)
	_, err := fmt.Fprintln(cmd.OutOrStdout(), strings.ToUpper(text[:1])+text[1:]+".")
	return err
}

// Turns of all projects of this machine. Each hub is asked, and started if it is not
// running.

// listing is what --json prints.
type listing struct {
	Projects []listedProject `json:"projects"`
	Hosts    []listedOnHost  `json:"hosts,omitempty"`
}

// listedOnHost has the projects of a host, or the error of asking it.
type listedOnHost struct {
	Host     string          `json:"host"`
	Projects []listedProject `json:"projects"`
	Error    string          `json:"error,omitempty"`
}

// listedProject is a project with its turns, or the error of listing them.
type listedProject struct {
	Root  string            `json:"root"`
	Hub   bool              `json:"hub"` // a hub was already running
	Turns []json.RawMessage `json:"turns"`
	Error string            `json:"error,omitempty"`

	read []protocol.Turn // the decoded Turns
}

// roots returns the roots of all projects of this machine, including the one of the settings.
func roots(s *hubprocess.Settings) ([]string, error) {
	records, err := project.All(os.Getenv)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, r := range records {
		if info, err := os.Stat(string(r.Root)); err == nil && info.IsDir() {
			found = append(found, string(r.Root))
		}
	}
	if here, err := s.Project(); err == nil && !slices.ContainsFunc(found, func(root string) bool { return sameDirectory(root, here.Root) }) {
		found = append(found, here.Root)
	}
	return found, nil
}

// sameDirectory reports whether two paths lead to the same directory, also on file systems
// that ignore case.
func sameDirectory(a, b string) bool {
	if a == b {
		return true
	}
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// ask asks the hubs of all projects for their turns, a few at once. The result is in the
// order of roots, without projects that have no state.
func ask(ctx context.Context, s *hubprocess.Settings, roots []string, params any) []listedProject {
	all := make([]*listedProject, len(roots))
	var asking sync.WaitGroup
	room := make(chan struct{}, max(2, runtime.NumCPU()))
	for i, root := range roots {
		asking.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			all[i] = askOne(ctx, s, root, params)
		})
	}
	asking.Wait()
	withState := []listedProject{}
	for _, p := range all {
		if p != nil {
			withState = append(withState, *p)
		}
	}
	return withState
}

// askOne asks the hub of one project; the result is nil if the project has no state.
func askOne(ctx context.Context, s *hubprocess.Settings, root string, params any) *listedProject {
	one := &listedProject{Root: root, Turns: []json.RawMessage{}}
	kept, err := one.ask(ctx, s, params)
	if err == nil && !kept {
		return nil
	}
	if err != nil {
		one.Error = err.Error()
	}
	return one
}

// listingIdle is after how long an idle daemon ends that was started only for a listing.
const listingIdle = 5 * time.Second

func (l *listedProject) ask(ctx context.Context, s *hubprocess.Settings, params any) (kept bool, err error) {
	there := *s
	there.Root, there.Idle = l.Root, listingIdle
	p, err := there.Project()
	if err != nil {
		return true, err
	}
	c, err := hubprocess.Dial(ctx, &there, p)
	l.Hub = err == nil
	if hubprocess.IsNone(err) {
		if !p.HasDatabase() {
			return false, nil
		}
		c, err = dialHub(ctx, &there, false)
	}
	if err != nil {
		return true, err
	}
	defer c.Close()
	return true, turn.InWords(l.take(ctx, c, params))
}

func (l *listedProject) take(ctx context.Context, c *client.Client, params any) error {
	r, _, err := hubclient.Call[struct{ Turns []json.RawMessage }](ctx, c, "turn.list", params)
	if err != nil {
		return err
	}
	read := make([]protocol.Turn, len(r.Turns))
	for i, raw := range r.Turns {
		if err := json.Unmarshal(raw, &read[i]); err != nil {
			return err
		}
	}
	l.Turns, l.read = append(l.Turns, r.Turns...), read
	return nil
}

// readTurns decodes the turns of a project of a host.
func (l *listedProject) readTurns() error {
	l.read = make([]protocol.Turn, len(l.Turns))
	for i, raw := range l.Turns {
		if err := json.Unmarshal(raw, &l.read[i]); err != nil {
			return err
		}
	}
	return nil
}

// listHere asks the hubs of this machine for their turns.
func listHere(ctx context.Context, s *settings, params any) ([]listedProject, error) {
	found, err := roots(&s.Settings)
	if err != nil {
		return nil, err
	}
	return ask(ctx, &s.Settings, found, params), nil
}

// hostsWithin is how long a host may take in a list. One that failed the last time delays the others by
// failedHostsGrace at most.
const (
	hostsWithin      = 5 * time.Second
	failedHostsGrace = 300 * time.Millisecond
)

// askHosts asks all hosts for the turns of their projects, at once.
func askHosts(ctx context.Context, s *settings, params any) ([]listedOnHost, error) {
	hosts, err := config.Hosts(os.Getenv)
	targets := hubprocess.MadeHosts() // for any project of this machine
	for name, h := range hosts {
		if !h.IsMade() { // one that has to be made is not there
			targets = append(targets, hubprocess.Made{Name: name})
		}
	}
	slices.SortStableFunc(targets, func(a, b hubprocess.Made) int { return strings.Compare(a.Name, b.Name) })
	all := make([]listedOnHost, len(targets))
	ctx, cancel := context.WithTimeout(ctx, hostsWithin)
	defer cancel()
	unlikely, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var asking, others sync.WaitGroup
	var answered atomic.Bool
	for i, target := range targets {
		all[i] = listedOnHost{Host: target.Name, Projects: []listedProject{}}
		h, err := s.hostOf(target)
		switch {
		case err != nil:
			all[i].Error = err.Error()
		case h.HasFailed():
			others.Go(func() { all[i].ask(unlikely, h, params) })
		default:
			asking.Go(func() {
				if all[i].ask(ctx, h, params) {
					answered.Store(true)
				}
			})
		}
	}
	asking.Wait()
	if answered.Load() {
		time.AfterFunc(failedHostsGrace, giveUp)
	}
	others.Wait()
	return all, err
}

// ask reports whether the host has answered.
func (l *listedOnHost) ask(ctx context.Context, h *hubprocess.Host, params any) bool {
	var its listing
	err := h.Ask(ctx, hubprocess.ListMethod, params, &its)
	for i := range its.Projects {
		if err == nil {
			err = its.Projects[i].readTurns()
		}
	}
	switch {
	case err == nil:
		l.Projects = append(l.Projects, its.Projects...)
	case ctx.Err() != nil:
		l.Error = "no answer yet"
	default:
		l.Error = strings.TrimPrefix(err.Error(), l.Host+": ")
	}
	return err == nil
}

// newest keeps only the most recently active turns of all projects together, at most this
// many; all if most is 0.
func newest(all []*listedProject, most int) {
	var active []time.Time
	for _, p := range all {
		for _, s := range p.read {
			active = append(active, activity(s))
		}
	}
	if most <= 0 || len(active) <= most {
		return
	}
	slices.SortFunc(active, func(a, b time.Time) int { return b.Compare(a) })
	for _, p := range all {
		var kept []json.RawMessage
		var read []protocol.Turn
		for n, s := range p.read {
			if activity(s).After(active[most]) {
				kept, read = append(kept, p.Turns[n]), append(read, s)
			}
		}
		p.Turns, p.read = append([]json.RawMessage{}, kept...), read
	}
}

func activity(s protocol.Turn) time.Time { return s.ActiveAt }

// row is a turn and its project.
type row struct {
	project string
	protocol.Turn
}

// projects returns all projects, with their names for people.
func (l *listing) projects() (all []*listedProject, names map[*listedProject]string) {
	names = map[*listedProject]string{}
	for i := range l.Projects {
		p := &l.Projects[i]
		all, names[p] = append(all, p), term.HomePath(p.Root)
	}
	for _, h := range l.Hosts {
		for i := range h.Projects {
			p := &h.Projects[i]
			all, names[p] = append(all, p), h.Host+":"+p.Root
		}
	}
	return all, names
}

// rows returns the turns of projects, the most recently active first.
func rows(all []*listedProject, names map[*listedProject]string) (list []row) {
	for _, p := range all {
		for _, s := range p.read {
			list = append(list, row{names[p], s})
		}
	}
	slices.SortStableFunc(list, func(a, b row) int {
		return cmp.Or(activity(b.Turn).Compare(activity(a.Turn)), cmp.Compare(a.project, b.project))
	})
	return list
}

// addAllProjects adds --all-projects to `session list`, which lists the sessions of all
// projects. params are the parameters of turn.list, and limit is the flag for the number of
// sessions.
func addAllProjects(cmd *cobra.Command, s *settings, params func() (protocol.ListTurnsParams, error), limit *uint) {
	var everywhere bool
	cmd.Flags().BoolVar(&everywhere, "all-projects", false, "the sessions of all projects, on this machine and on your hosts")
	own := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !everywhere {
			return own(cmd, args)
		}
		p, err := params()
		if err != nil {
			return err
		}
		return listEverywhere(cmd, s, p, int(*limit))
	}
}

func listEverywhere(cmd *cobra.Command, s *settings, params any, limit int) error {
	ctx, stop := term.UntilInterrupted(cmd.Context())
	defer stop()
	var l listing
	var onHosts error
	var asking sync.WaitGroup
	asking.Go(func() { l.Hosts, onHosts = askHosts(ctx, s, params) })
	var err error
	l.Projects, err = listHere(ctx, s, params)
	asking.Wait()
	if ctx.Err() != nil {
		return term.ErrInterrupted
	}
	if err := cmp.Or(err, onHosts); err != nil {
		return err
	}
	all, names := l.projects()
	newest(all, limit)
	if s.JSON {
		raw, err := json.Marshal(l)
		if err != nil {
			return err
		}
		return term.Raw(cmd.OutOrStdout(), raw)
	}
	for _, p := range all {
		if p.Error != "" {
			progress(cmd, s, "%s: %s", names[p], p.Error)
		}
	}
	for _, h := range l.Hosts {
		if h.Error != "" {
			progress(cmd, s, "%s: %s", h.Host, h.Error)
		}
	}
	t := term.NewTable(cmd.OutOrStdout(), "PROJECT", "TURN", "STATE", "AGENT", "ACTIVE", "TITLE")
	t.Spare("AGENT")
	t.Empty("no project on this machine has sessions: `duet-rpc prompt \"…\"` begins one here")
	for _, x := range rows(all, names) {
		t.Row(term.Line(x.project), term.Line(x.Name), sessionStatus(x.Turn), term.Line(x.Agent), term.Age(x.ActiveAt), term.Short(x.Called()))
	}
	return t.Flush()
}
