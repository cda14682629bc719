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

	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/hubprocess"
	"github.com/duet-rpc/duet-rpc/internal/project"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// What the daemons of all projects have, on this machine and on hosts. Each is asked, and started if it is
// not running.

// listing is what --json prints.
type listing struct {
	Projects []listedProject `json:"projects"`
	Hosts    []listedOnHost  `json:"hosts,omitempty"`
}

// listedOnHost has the projects of a host. With an error they are as they were seen last.
type listedOnHost struct {
	Host     string          `json:"host"`
	Projects []listedProject `json:"projects"`
	Error    string          `json:"error,omitempty"`
	SeenAt   *time.Time      `json:"last_seen,omitempty"` // of projects with an error

	here string // the root of the project of this machine for which the host was made; "": it was not made
}

// listedProject is a project with its turns or open questions, or the error of listing them.
type listedProject struct {
	Root      string            `json:"root"`
	Hub       bool              `json:"hub"`                // a hub was already running
	Turns     []json.RawMessage `json:"turns,omitzero"`     // nil: they were not asked for
	Approvals []json.RawMessage `json:"approvals,omitzero"` // likewise
	Error     string            `json:"error,omitempty"`

	read []protocol.Turn      // the decoded Turns
	open []hubclient.Approval // the decoded Approvals
}

// An inquiry is what all projects are asked.
type inquiry struct {
	line   string // the request for a host
	params any    // of line and method
	method string // the request for a daemon
	member string // of its answer
	isKept bool   // the answer of a host is kept for when it cannot be reached
	begun  bool   // only projects whose daemon runs are asked

	// each, if set, gets what a host has answered, or this machine (""), as soon as it has.
	each func(host, here string, projects []listedProject)
}

// turnsOf asks for turns. A host's answer is kept if it has all of them.
func turnsOf(params protocol.ListTurnsParams) inquiry {
	isWhole := len(params.States) == 0 && params.Agent == "" && (params.Archived == nil || !*params.Archived)
	return inquiry{line: hubprocess.ListMethod, params: params, method: "turn.list", member: "turns", isKept: isWhole}
}

// questionsParams are those of the request for open questions.
type questionsParams struct {
	Begun bool `json:"begun,omitempty"` // only of projects whose daemon runs
}

// openQuestions asks for open questions.
func openQuestions() inquiry {
	return inquiry{line: hubprocess.ApprovalsMethod, params: questionsParams{}, method: "approval.list", member: "approvals"}
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

// ask asks the hubs of projects, a few at once. The result is in the order of roots, without projects that
// have no state.
func (q inquiry) ask(ctx context.Context, s *hubprocess.Settings, roots []string) []listedProject {
	all := make([]*listedProject, len(roots))
	var asking sync.WaitGroup
	room := make(chan struct{}, max(2, runtime.NumCPU()))
	for i, root := range roots {
		asking.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			all[i] = q.askOne(ctx, s, root)
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
func (q inquiry) askOne(ctx context.Context, s *hubprocess.Settings, root string) *listedProject {
	one := &listedProject{Root: root}
	has, err := one.ask(ctx, s, q)
	if err == nil && !has {
		return nil
	}
	if err != nil {
		one.Error = err.Error()
		_ = one.take(q.member, nil) // its lists are empty, not absent
	}
	return one
}

// listingIdle is after how long an idle daemon ends that was started only for a listing.
const listingIdle = 5 * time.Second

// ask reports whether the project has a state.
func (l *listedProject) ask(ctx context.Context, s *hubprocess.Settings, q inquiry) (has bool, err error) {
	there := *s
	there.Root, there.Idle = l.Root, listingIdle
	p, err := there.Project()
	if err != nil {
		return true, err
	}
	c, err := hubprocess.Dial(ctx, &there, p)
	l.Hub = err == nil
	if hubprocess.IsNone(err) {
		if q.begun || !p.HasDatabase() {
			return false, nil
		}
		c, err = dialHub(ctx, &there, false)
	}
	if err != nil {
		return true, err
	}
	defer c.Close()
	var params any
	if q.method == "turn.list" {
		params = q.params
	}
	answer, _, err := hubclient.Call[map[string]json.RawMessage](ctx, c, q.method, params)
	if err != nil {
		return true, turn.InWords(err)
	}
	return true, l.take(q.member, answer[q.member])
}

// take takes the list of an answer's member.
func (l *listedProject) take(member string, list json.RawMessage) error {
	raw := []json.RawMessage{}
	if list != nil {
		if err := json.Unmarshal(list, &raw); err != nil {
			return err
		}
	}
	if member == "approvals" {
		l.Approvals = raw
	} else {
		l.Turns = raw
	}
	return l.decode()
}

// decode decodes the lists.
func (l *listedProject) decode() (err error) {
	if l.read, err = decoded[protocol.Turn](l.Turns); err == nil {
		l.open, err = decoded[hubclient.Approval](l.Approvals)
	}
	return err
}

func decoded[T any](list []json.RawMessage) ([]T, error) {
	all := make([]T, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// here asks the hubs of this machine.
func (q inquiry) here(ctx context.Context, s *settings) ([]listedProject, error) {
	found, err := roots(&s.Settings)
	if err != nil {
		return nil, err
	}
	return q.ask(ctx, &s.Settings, found), nil
}

// hostsWithin is how long a host may take in a list. One that failed the last time delays the others by
// failedHostsGrace at most. A terminal shows what is known after firstScreen.
const (
	hostsWithin      = 5 * time.Second
	failedHostsGrace = 300 * time.Millisecond
	firstScreen      = 250 * time.Millisecond
)

// everywhere asks this machine and all hosts at once. After firstScreen it calls first, which may be nil, with what
// it knows until then.
func (q inquiry) everywhere(ctx context.Context, s *settings, first func(listing)) (listing, error) {
	hosts, failed := config.Hosts(os.Getenv)
	targets := hostsThere(hosts)
	l := listing{Projects: []listedProject{}, Hosts: make([]listedOnHost, len(targets))}
	within, cancel := context.WithTimeout(ctx, hostsWithin)
	defer cancel()
	unlikely, giveUp := context.WithCancel(within)
	defer giveUp()

	var likely, others []func()
	var asking sync.WaitGroup
	var answered atomic.Bool
	answers := make(chan func(), 1+len(targets))
	for i, target := range targets {
		name := target.Name
		l.Hosts[i] = listedOnHost{Host: name, Projects: []listedProject{}, here: target.here}
		h, err := s.on(target.Host, target.here)
		if err != nil {
			l.Hosts[i].Error = err.Error()
			answers <- func() {}
			continue
		}
		l.Hosts[i].recall(h, q)
		ask := func(ctx context.Context) (hasAnswered bool) {
			its, err := q.askHost(ctx, h)
			answers <- func() { l.Hosts[i].take(ctx, its, err); q.tell(name, target.here, its) }
			return err == nil
		}
		if h.HasFailed() {
			others = append(others, func() { ask(unlikely) })
			continue
		}
		asking.Add(1)
		likely = append(likely, func() {
			defer asking.Done()
			if ask(within) {
				answered.Store(true)
			}
		})
	}
	soon := time.After(firstScreen)
	go func() {
		projects, err := q.here(ctx, s)
		answers <- func() { l.Projects, failed = projects, cmp.Or(failed, err); q.tell("", "", projects) }
	}()
	go fewAtOnce(slices.Concat(likely, others))
	go func() {
		asking.Wait()
		if answered.Load() {
			time.AfterFunc(failedHostsGrace, giveUp)
		}
	}()
	for left := cap(answers); left > 0; {
		select {
		case take := <-answers:
			take()
			left--
		case <-soon:
			if first != nil {
				first(l)
			}
		}
	}
	if ctx.Err() != nil {
		return l, term.ErrInterrupted
	}
	return l, failed
}

func (q inquiry) tell(host, here string, projects []listedProject) {
	if q.each != nil {
		q.each(host, here, projects)
	}
}

const (
	mostAtOnce = 16                     // commands of hosts that begin at once: more would take the processors from the screen
	beginsIn   = 300 * time.Millisecond // after which a host that is silent holds no other up
)

// fewAtOnce runs functions, and returns when the last one has begun.
func fewAtOnce(all []func()) {
	room := make(chan struct{}, mostAtOnce)
	for _, do := range all {
		room <- struct{}{}
		leave := sync.OnceFunc(func() { <-room })
		late := time.AfterFunc(beginsIn, leave)
		go func() {
			do()
			late.Stop()
			leave()
		}()
	}
}

// A hostThere is a host that need not be made.
type hostThere struct {
	config.Host
	here string // the root of the project of this machine for which it was made
}

// hostsThere returns the hosts of the configuration, and of those that are made when needed the ones that were, by name.
func hostsThere(hosts map[string]config.Host) (list []hostThere) {
	for _, h := range hosts {
		if !h.IsMade() {
			list = append(list, hostThere{Host: h})
		}
	}
	for _, m := range hubprocess.MadeHosts() {
		if h, err := config.HostIn(hosts, m.Name); err == nil {
			list = append(list, hostThere{h, m.Root})
		}
	}
	slices.SortStableFunc(list, func(a, b hostThere) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// askHost asks a host, and keeps its answer.
func (q inquiry) askHost(ctx context.Context, h *hubprocess.Host) (projects []listedProject, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var raw json.RawMessage
	if err := h.Ask(ctx, q.line, q.params, &raw); err != nil {
		return nil, err
	}
	if projects, err = q.projectsIn(raw); err == nil && q.isKept {
		h.Keep(raw)
	}
	return projects, err
}

// projectsIn reads the answer of a host.
func (q inquiry) projectsIn(raw json.RawMessage) ([]listedProject, error) {
	var its listing
	if err := json.Unmarshal(raw, &its); err != nil {
		return nil, err
	}
	for i := range its.Projects {
		p := &its.Projects[i]
		if err := p.decode(); err != nil {
			return nil, err
		}
		if q.member == "turns" && p.Turns == nil || q.member == "approvals" && p.Approvals == nil {
			_ = p.take(q.member, nil) // a host may leave out what it should not
		}
	}
	return append([]listedProject{}, its.Projects...), nil
}

// noAnswerYet is the error of a host that has not answered.
const noAnswerYet = "no answer yet"

// recall takes what a host has answered last, until it answers.
func (l *listedOnHost) recall(h *hubprocess.Host, q inquiry) {
	l.Error = noAnswerYet
	if !q.isKept {
		return
	}
	if raw, at := h.Kept(); raw != nil {
		if projects, err := q.projectsIn(raw); err == nil {
			l.Projects, l.SeenAt = projects, &at
		}
	}
}

// take takes the answer of a host, or the reason why there is none.
func (l *listedOnHost) take(ctx context.Context, projects []listedProject, err error) {
	switch {
	case err == nil:
		*l = listedOnHost{Host: l.Host, Projects: projects, here: l.here}
	case ctx.Err() == nil:
		l.Error = strings.TrimPrefix(err.Error(), l.Host+": ")
	}
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
	cmd.Flags().BoolVar(&everywhere, allProjects, false, "the sessions of all projects, on this machine and on your hosts")
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

func listEverywhere(cmd *cobra.Command, s *settings, params protocol.ListTurnsParams, limit int) error {
	return printEverywhere(cmd, s, turnsOf(params), func(all []*listedProject, names map[*listedProject]string) *term.Table {
		newest(all, limit)
		t := term.NewTable(cmd.OutOrStdout(), "PROJECT", "TURN", "STATE", "AGENT", "ACTIVE", "TITLE")
		t.Spare("AGENT")
		t.Empty("no project on this machine has sessions: `duet-rpc prompt \"…\"` begins one here")
		for _, x := range rows(all, names) {
			t.Row(term.Line(x.project), term.Line(x.Name), sessionStatus(x.Turn), term.Line(x.Agent), term.Age(x.ActiveAt), term.Short(x.Called()))
		}
		return t
	})
}

// questionsEverywhere prints the open questions of all projects, the oldest first.
func questionsEverywhere(cmd *cobra.Command, s *settings) error {
	return printEverywhere(cmd, s, openQuestions(), func(all []*listedProject, names map[*listedProject]string) *term.Table {
		t := term.NewTable(cmd.OutOrStdout(), "PROJECT", "ID", "TURN", "AGENT", "AGE", "ASKS")
		t.Spare("AGENT")
		t.Empty("no question is open in any project")
		open := questionsOf(all)
		var ids []hubclient.Approval
		for _, q := range open {
			ids = append(ids, q.Approval)
		}
		for _, q := range open {
			t.Row(names[q.of], turn.UniqueID(q.ApprovalID, ids), q.Turn, q.Agent, term.Age(q.CreatedAt), term.Short(turn.Asks(q.Approval)))
		}
		return t
	})
}

// A question is an open question and its project.
type question struct {
	hubclient.Approval
	of *listedProject
}

// questionsOf returns the open questions of projects, the oldest first.
func questionsOf(all []*listedProject) (open []question) {
	for _, p := range all {
		for _, a := range p.open {
			open = append(open, question{a, p})
		}
	}
	slices.SortStableFunc(open, func(a, b question) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return open
}

// reviewEverywhere asks the open questions of all projects on the terminal.
func reviewEverywhere(cmd *cobra.Command, s *settings, o turn.InboxOptions) error {
	signals, stop := term.Interrupts()
	defer stop()
	o.Signals = signals
	view := s.newView(cmd.OutOrStdout(), cmd.ErrOrStderr(), false)
	f := &projectFinder{settings: s, connected: make(map[listedAt]bool)}
	_, err := turn.InboxOfAll(cmd.Context(), view, o, f.find)
	return err
}

// listedAt is a project, and its host; "": this machine. here is as in [listedOnHost].
type listedAt struct{ host, here, root string }

func (p listedAt) String() string {
	if p.host == "" {
		return term.HomePath(p.root)
	}
	return p.host + ":" + p.root
}

// projectFinder connects the projects that have daemons, and those with open questions.
type projectFinder struct {
	settings  *settings
	mu        sync.Mutex
	connected map[listedAt]bool
}

// How often it looks again. That asks this machine little, and a host for a new line.
const (
	looksHere    = 2 * time.Second
	looksAtHosts = time.Minute
)

// find looks for projects until ctx ends, as [turn.InboxOfAll] requires.
func (f *projectFinder) find(ctx context.Context, add func(*turn.Project) context.Context, looked func([]string)) {
	var running, trying sync.WaitGroup
	defer running.Wait()
	found := func(at listedAt) {
		trying.Add(1)
		running.Go(func() { f.connect(ctx, at, add, sync.OnceFunc(trying.Done)) })
	}
	isKnown := func(at listedAt) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.connected[at]
	}
	f.settings.lookEverywhere(ctx, found, isKnown, func(without []string) {
		trying.Wait()
		looked(without)
	})
}

// lookEverywhere looks for projects whose daemon runs, or which have open questions, again and again until ctx ends. found gets each
// of them each time, but those of this machine only while isKnown is false for them. looked, after the first time, gets those that did
// not answer, with the reasons.
func (s *settings) lookEverywhere(ctx context.Context, found func(listedAt), isKnown func(listedAt) bool, looked func(without []string)) {
	var running sync.WaitGroup
	defer running.Wait()
	q := openQuestions()
	q.each = func(host, here string, projects []listedProject) {
		for _, p := range projects {
			if p.Hub || len(p.open) > 0 {
				found(listedAt{host, here, p.Root})
			}
		}
	}
	l, err := q.everywhere(ctx, s, nil)
	var without []string
	if err != nil {
		without = append(without, err.Error())
	}
	for _, p := range l.Projects {
		if p.Error != "" {
			without = append(without, listedAt{root: p.Root}.String()+": "+p.Error)
		}
	}
	for _, h := range l.Hosts {
		if h.Error != "" {
			without = append(without, h.Host+": "+h.Error)
		}
	}
	looked(without)
	q.begun, q.params = true, questionsParams{Begun: true}
	running.Go(func() {
		for isAliveAfter(ctx, looksHere) {
			all, _ := roots(&s.Settings)
			q.each("", "", q.ask(ctx, &s.Settings, slices.DeleteFunc(all, func(root string) bool { return isKnown(listedAt{root: root}) })))
		}
	})
	hosts, _ := config.Hosts(os.Getenv)
	for _, h := range hostsThere(hosts) {
		running.Go(func() {
			for isAliveAfter(ctx, looksAtHosts) {
				within, cancel := context.WithTimeout(ctx, hostsWithin)
				if at, err := s.on(h.Host, h.here); err == nil {
					projects, _ := q.askHost(within, at)
					q.each(h.Name, h.here, projects)
				}
				cancel()
			}
		})
	}
	<-ctx.Done()
}

// connect connects a project, unless it is connected, and again after its line has broken, until ctx ends. A daemon that
// has ended is found again once it runs. tried is called after the first attempt.
func (f *projectFinder) connect(ctx context.Context, at listedAt, add func(*turn.Project) context.Context, tried func()) {
	defer tried()
	f.mu.Lock()
	known := f.connected[at]
	f.connected[at] = true
	f.mu.Unlock()
	if known {
		return
	}
	own := *f.settings
	if own.Host, own.Root = at.host, at.root; at.here != "" {
		own.Here = at.here
	}
	c, err := dialHub(ctx, &own.Settings, false)
	for pause := time.Second; ; {
		if err == nil {
			connection := add(&turn.Project{Name: term.Line(at.String()), Hub: c, Named: own.named})
			tried()
			<-connection.Done()
			pause = time.Second
		}
		tried() // a line that breaks at once holds up no other project
		if at.host == "" || err != nil && !hubprocess.IsBroken(err) || !isAliveAfter(ctx, pause) {
			break
		}
		pause = min(2*pause, looksAtHosts)
		var h *hubprocess.Host
		if h, err = own.Remote(); err == nil {
			c, err = h.Dial(ctx, hubprocess.StartNever)
		}
	}
	f.mu.Lock()
	delete(f.connected, at)
	f.mu.Unlock()
}

// isAliveAfter waits, and reports whether ctx is still alive.
func isAliveAfter(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// goToQuestion makes the project of an open question that of the command. It leaves the command's own project if no
// other has the question.
func (s *settings) goToQuestion(ctx context.Context, word string) error {
	l, err := openQuestions().everywhere(ctx, s, nil)
	if err != nil {
		return err
	}
	all, names := l.projects()
	open := questionsOf(all)
	var ids []hubclient.Approval
	for _, q := range open {
		ids = append(ids, q.Approval)
	}
	id, err := turn.Meant(word, ids)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(open, func(q question) bool { return q.ApprovalID == id })
	if i < 0 {
		var without []string
		for _, p := range all {
			if p.Error != "" {
				without = append(without, names[p])
			}
		}
		for _, h := range l.Hosts {
			if h.Error != "" {
				without = append(without, h.Host)
			}
		}
		if len(without) > 0 {
			return fmt.Errorf("no question %q is open in the projects that have answered; without an answer: %s", word, strings.Join(without, ", "))
		}
		return fmt.Errorf("no question %q is open in any project: `duet-rpc approvals --all-projects --list` lists the open ones", word)
	}
	s.Host, s.Root = "", open[i].of.Root
	for _, h := range l.Hosts {
		for n := range h.Projects {
			if &h.Projects[n] == open[i].of {
				s.Host = h.Host
				if h.here != "" {
					s.Here = h.here
				}
			}
		}
	}
	return nil
}

// printEverywhere asks all projects and prints the table that layOut returns. A terminal shows what is known until
// all have answered.
func printEverywhere(
	cmd *cobra.Command, s *settings, q inquiry, layOut func(all []*listedProject, names map[*listedProject]string) *term.Table,
) error {
	ctx, stop := term.UntilInterrupted(cmd.Context())
	defer stop()
	out := cmd.OutOrStdout()
	screen := term.NewRegion(out, func() (columns, rows int) { columns, rows, _ = term.Size(out); return columns, rows })
	var first func(listing)
	if !s.JSON && term.Draws(out) {
		first = func(l listing) {
			waiting := "— asking your projects"
			if names := l.silent(); len(names) > 0 {
				waiting = "— asking " + few(names)
			}
			screen.DrawTop(append([]string{waiting}, layOut(l.clone().projects()).Lines()...)...)
		}
	}
	l, err := q.everywhere(ctx, s, first)
	screen.Clear()
	if err != nil {
		return err
	}
	all, names := l.projects()
	table := layOut(all, names)
	if s.JSON {
		raw, err := json.Marshal(l)
		if err != nil {
			return err
		}
		return term.Raw(out, raw)
	}
	for _, p := range all {
		if p.Error != "" {
			progress(cmd, s, "%s: %s", names[p], p.Error)
		}
	}
	if names := l.silent(); len(names) > 0 {
		progress(cmd, s, "no answer yet from %s", few(names))
	}
	for _, h := range l.Hosts {
		switch {
		case h.Error == "", h.Error == noAnswerYet:
		case h.SeenAt != nil:
			progress(cmd, s, "%s: %s; its sessions are shown as of %s ago", h.Host, h.Error, term.Age(*h.SeenAt))
		default:
			progress(cmd, s, "%s: %s", h.Host, h.Error)
		}
	}
	return table.Flush()
}

// clone returns a copy whose projects can be changed.
func (l *listing) clone() *listing {
	c := &listing{Projects: slices.Clone(l.Projects), Hosts: slices.Clone(l.Hosts)}
	for i := range c.Hosts {
		c.Hosts[i].Projects = slices.Clone(c.Hosts[i].Projects)
	}
	return c
}

// silent returns the hosts that have not answered.
func (l *listing) silent() (names []string) {
	for _, h := range l.Hosts {
		if h.Error == noAnswerYet {
			names = append(names, h.Host)
		}
	}
	return names
}

// few lists names, and counts those beyond the first.
func few(names []string) string {
	const most = 3
	if n := len(names) - most; n > 0 {
		return fmt.Sprintf("%s and %s", strings.Join(names[:most], ", "), term.Count(n, "other host"))
	}
	return strings.Join(names, ", ")
}
