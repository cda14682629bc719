package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
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
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

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
	all := make([]listedOnHost, len(hosts))
	ctx, cancel := context.WithTimeout(ctx, hostsWithin)
	defer cancel()
	unlikely, giveUp := context.WithCancel(ctx)
	defer giveUp()
	var asking, others sync.WaitGroup
	var answered atomic.Bool
	for i, name := range slices.Sorted(maps.Keys(hosts)) {
		all[i] = listedOnHost{Host: name, Projects: []listedProject{}}
		h, err := s.hostNamed(name)
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
