package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/database"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/wire"
)

// This file lists the sessions of all projects of this machine: it asks the hub of
// each, and starts one where none runs.

// A listing is what --json prints.
type listing struct {
	Projects []listedProject `json:"projects"`
}

// A listedProject project has its sessions, or why they cannot be told.
type listedProject struct {
	Root     string            `json:"root"`
	Hub      bool              `json:"hub"` // one ran before it was asked
	Sessions []json.RawMessage `json:"sessions"`
	Error    string            `json:"error,omitempty"`

	read []wire.Session // Sessions
}

// roots are the projects of this machine, that of the settings among them.
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

// sameDirectory reports whether two paths lead to one directory, also on a file system on
// which names in two cases are one.
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

// ask asks all projects for their sessions, some at a time, in the order of roots. Those
// of which nothing is kept are left out.
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
	told := []listedProject{}
	for _, p := range all {
		if p != nil {
			told = append(told, *p)
		}
	}
	return told
}

// askOne asks one project; nil: nothing is kept of it.
func askOne(ctx context.Context, s *hubprocess.Settings, root string, params any) *listedProject {
	one := &listedProject{Root: root, Sessions: []json.RawMessage{}}
	kept, err := one.ask(ctx, s, params)
	if err == nil && !kept {
		return nil
	}
	if err != nil {
		one.Error = err.Error()
	}
	return one
}

// listingIdle is after how long a daemon ends by itself that was started for a listing alone.
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
		if !database.Exists(p) {
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
	r, _, err := wire.Call[struct{ Sessions []json.RawMessage }](ctx, c, "listSessions", params)
	if err != nil {
		return err
	}
	read := make([]wire.Session, len(r.Sessions))
	for i, raw := range r.Sessions {
		if err := json.Unmarshal(raw, &read[i]); err != nil {
			return err
		}
	}
	l.Sessions, l.read = append(l.Sessions, r.Sessions...), read
	return nil
}

// newest leaves the sessions that were active last in all projects together, most of
// them; all if most is 0.
func newest(all []listedProject, most int) {
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
	for i := range all {
		p := &all[i]
		var kept []json.RawMessage
		var read []wire.Session
		for n, s := range p.read {
			if activity(s).After(active[most]) {
				kept, read = append(kept, p.Sessions[n]), append(read, s)
			}
		}
		p.Sessions, p.read = append([]json.RawMessage{}, kept...), read
	}
}

func activity(s wire.Session) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, s.LastActivity) // what is no time is the oldest
	return at
}

// A row is a session of a project.
type row struct {
	root string
	wire.Session
}

// rows are the sessions of all projects, that which was active last first.
func rows(all []listedProject) (list []row) {
	for _, p := range all {
		for _, s := range p.read {
			list = append(list, row{p.Root, s})
		}
	}
	slices.SortStableFunc(list, func(a, b row) int {
		return cmp.Or(activity(b.Session).Compare(activity(a.Session)), cmp.Compare(a.root, b.root))
	})
	return list
}

// allprojectsOptions are what the list needs of the shell.
type allprojectsOptions struct {
	Settings *hubprocess.Settings
	JSON     func() bool
	// Progress says something beside the result.
	Progress func(cmd *cobra.Command, what string)
}

// addAllProjects lets `session list` list the sessions of all projects, with --all-projects.
// params are those of listSessions, and limit is the flag for how many.
func addAllProjects(cmd *cobra.Command, o allprojectsOptions, params any, limit *int) {
	var everywhere bool
	cmd.Flags().BoolVar(&everywhere, "all-projects", false, "the sessions of all projects in which a hub has run on this machine")
	own := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !everywhere {
			return own(cmd, args)
		}
		return o.list(cmd, params, *limit)
	}
}

func (o allprojectsOptions) list(cmd *cobra.Command, params any, limit int) error {
	found, err := roots(o.Settings)
	if err != nil {
		return err
	}
	ctx, stop := term.UntilInterrupted(cmd.Context())
	defer stop()
	all := ask(ctx, o.Settings, found, params)
	if ctx.Err() != nil {
		return term.ErrInterrupted
	}
	newest(all, limit)
	if o.JSON() {
		raw, err := json.Marshal(listing{all})
		if err != nil {
			return err
		}
		return term.Raw(cmd.OutOrStdout(), raw)
	}
	for _, p := range all {
		if p.Error != "" {
			o.Progress(cmd, term.HomePath(p.Root)+": "+p.Error)
		}
	}
	t := term.NewTable(cmd.OutOrStdout(), "PROJECT", "TASK", "STATUS", "AGENT", "ACTIVE", "TITLE")
	t.Spare("AGENT")
	t.Empty("no session is kept of any project that is known on this machine: `duet-rpc prompt \"…\"` begins one here")
	for _, s := range rows(all) {
		t.Row(term.HomePath(s.root), s.TaskID, sessionStatus(s.Session), s.Agent, term.Age(s.LastActivity), term.Short(s.Called()))
	}
	return t.Flush()
}
