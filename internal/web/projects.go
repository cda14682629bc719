package web

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// A Place is where a project is.
type Place struct {
	Root string
	Host string // "": this machine
	Here string // the root of the project of this machine for which the host was made; "": it was not made
	Name string // for people, such as parser@devbox
}

// id names a project to pages.
func (p Place) id() string {
	if p.Host == "" {
		return p.Root
	}
	return p.Host + ":" + p.Root
}

// A Source reaches the projects of a user. Its functions may be called from any goroutine.
type Source struct {
	// Find looks for projects whose daemon runs, or which have open questions, again and again until ctx ends. found gets each of
	// them each time, but those of this machine only while isKnown is false for them.
	Find func(ctx context.Context, found func(Place), isKnown func(Place) bool)
	// List asks all projects for their turns, and calls each with each answer, or with the reason why there is none. seen is
	// when a list with a reason was last true.
	List func(ctx context.Context, each func(p Place, turns []json.RawMessage, reason string, seen *time.Time)) error
	// Observe connects to the daemon of a project if one runs. The connection keeps no daemon running. broken reports that a later
	// attempt may succeed, because the line to a host failed.
	Observe func(ctx context.Context, p Place) (c *client.Client, broken bool, err error)
	// Dial connects to the daemon of a project. It starts one if none runs, also when the connection was lost.
	Dial func(ctx context.Context, p Place) (*client.Client, error)
}

// A Project is a project, for pages.
type Project struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Root     string     `json:"root"`
	Host     string     `json:"host,omitempty"`
	State    string     `json:"state"` // connected, asleep (its daemon does not run) or unreachable
	Error    string     `json:"error,omitempty"`
	LastSeen *time.Time `json:"last_seen,omitempty"` // of an unreachable one
}

// Values of Project.State.
const (
	connected   = "connected"
	asleep      = "asleep"
	unreachable = "unreachable"
)

// A Question is an open question of a project.
type Question struct {
	Project  string          `json:"project"`
	Approval json.RawMessage `json:"approval"`

	read protocol.Approval
}

// projectSessions are the sessions of a project, each by its last turn, the most recently active first.
type projectSessions struct {
	Project  string            `json:"project"`
	Sessions []json.RawMessage `json:"sessions"`
	Error    string            `json:"error,omitempty"`
	LastSeen *time.Time        `json:"last_seen,omitempty"`
}

// projects follow all projects of the user. Their lists are as of the last time at which a daemon answered: nothing changes
// while none runs.
type projects struct {
	source  Source
	log     *slog.Logger
	changed func() // a project has another state
	asks    func() // there are other open questions

	following sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	byID map[string]*followed
}

// followed is what is known of a project.
type followed struct {
	place  Place
	client *client.Client // nil: its daemon does not run, or cannot be reached
	turns  []json.RawMessage
	error  string
	seen   *time.Time
	open   []Question
	asked  bool // open is known

	following bool // a goroutine follows it
}

func newProjects(source Source, log *slog.Logger) *projects {
	return &projects{source: source, log: log, byID: map[string]*followed{}}
}

// run follows the projects until ctx ends.
func (p *projects) run(ctx context.Context) {
	var listing sync.WaitGroup
	listing.Go(func() {
		err := p.source.List(ctx, func(place Place, turns []json.RawMessage, reason string, seen *time.Time) {
			p.update(place, func(f *followed) { f.turns, f.error, f.seen = turns, reason, seen })
			p.changed()
		})
		if err != nil && ctx.Err() == nil {
			p.log.Warn("some projects cannot be listed", "err", err)
		}
	})
	p.source.Find(ctx, func(place Place) { p.follow(ctx, place) }, p.isFollowed)
	listing.Wait()
}

// update changes what is known of a project, which it adds.
func (p *projects) update(place Place, change func(*followed)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.byID[place.id()]
	if f == nil {
		f = &followed{place: place}
		p.byID[place.id()] = f
	}
	f.place = place
	change(f)
}

// asked are the events after which a project has other open questions.
var asked = []string{"approval.opened", "approval.closed", "session.deleted"}

// together is how long to wait for events that come together.
const together = 20 * time.Millisecond

// follow follows the questions of a project until its daemon has ended, or ctx does, unless it does that already. It does not
// wait.
func (p *projects) follow(ctx context.Context, place Place) {
	var known bool
	p.update(place, func(f *followed) { known, f.following = f.following, true })
	if known || ctx.Err() != nil {
		return
	}
	p.following.Go(func() {
		defer p.update(place, func(f *followed) { f.following = false })
		for pause := time.Second; ; pause = min(2*pause, mostPause) {
			c, broken, err := p.source.Observe(ctx, place)
			if err == nil {
				pause = time.Second
				p.watch(ctx, place, c)
			} else {
				p.update(place, func(f *followed) {
					if f.error = ""; broken {
						f.error = err.Error()
					}
				})
				p.changed()
			}
			if err != nil && !broken || !isAliveAfter(ctx, pause) {
				return
			}
		}
	})
}

func (p *projects) isFollowed(place Place) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.byID[place.id()]
	return f != nil && f.following
}

// mostPause is the longest time between two attempts to reach a host.
const mostPause = time.Minute

// watch follows the questions of a project over a connection until that is lost, and closes it.
func (p *projects) watch(ctx context.Context, place Place, c *client.Client) {
	defer c.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.OnState(func(state client.State) {
		if state != client.Connected {
			cancel()
		}
	})
	p.update(place, func(f *followed) { f.client, f.error, f.seen = c, "", nil })
	p.changed()
	defer p.changed()
	defer p.update(place, func(f *followed) { f.client = nil })
	again := make(chan struct{}, 1)
	again <- struct{}{}
	_, err := eventstream.Subscribe(ctx, c, eventstream.Options{Kinds: asked}, func(eventstream.Event) {
		select {
		case again <- struct{}{}:
		default:
		}
	})
	for err == nil && c.State() == client.Connected {
		select {
		case <-ctx.Done():
			return
		case <-again:
		}
		err = p.ask(ctx, place, c)
		isAliveAfter(ctx, together)
	}
}

// The inbox is one message. A host may send long questions, and many; those of other projects have room all the same.
const (
	mostOfQuestion = 64 << 10 // bytes; of a longer one the page asks for the rest
	mostOfProject  = 512 << 10
	mostOfInbox    = 8 << 20
)

// ask asks a daemon for its open questions.
func (p *projects) ask(ctx context.Context, place Place, c *client.Client) error {
	var list struct {
		Approvals []json.RawMessage `json:"approvals"`
	}
	if err := c.Call(ctx, "approval.list", struct{}{}, &list); err != nil {
		return err
	}
	open := []Question{}
	size := 0
	for _, raw := range list.Approvals {
		q, ok := questionOf(place, raw)
		if !ok {
			continue
		}
		if size += len(q.Approval); size > mostOfProject {
			p.log.Warn("a project has more open questions than the inbox takes", "project", place.id())
			break
		}
		open = append(open, q)
	}
	p.update(place, func(f *followed) { f.open, f.asked = open, true })
	p.asks()
	return nil
}

// inRow are the members of a question that its row in the inbox needs.
var inRow = []string{
	"approval", "call_id", "turn", "session", "turn_uuid", "session_uuid", "agent", "status", "stale", "created_at", "fingerprint", "tool_name", "tool_kind",
	"input_editable", "takes_comment", "title", "type",
}

// questionOf reads a question, of which a host may make anything. A long one has only what its row needs, and is truncated.
func questionOf(place Place, raw json.RawMessage) (q Question, ok bool) {
	q = Question{Project: place.id(), Approval: raw}
	if json.Unmarshal(raw, &q.read) != nil {
		return q, false
	}
	if len(raw) <= mostOfQuestion {
		return q, true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return q, false
	}
	row := map[string]json.RawMessage{"truncated": json.RawMessage("true"), "tool_input": json.RawMessage("{}")}
	for _, name := range inRow {
		if value, has := members[name]; has {
			row[name] = value
		}
	}
	short, err := json.Marshal(row)
	if err != nil || len(short) > mostOfQuestion {
		return q, false
	}
	q.Approval, q.read.Truncated = short, true
	return q, true
}

// wereAsked returns the ids of the projects whose questions are known.
func (p *projects) wereAsked() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := map[string]bool{}
	for id, f := range p.byID {
		if f.asked {
			ids[id] = true
		}
	}
	return ids
}

// place returns the place of the project with an id.
func (p *projects) place(id string) (Place, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.byID[id]
	if f == nil {
		return Place{}, false
	}
	return f.place, true
}

// nameOf returns the name of a project for people.
func (p *projects) nameOf(id string) string {
	place, _ := p.place(id)
	return place.Name
}

// sorted returns the projects by their names.
func (p *projects) sorted() []*followed {
	var all []*followed
	for _, f := range p.byID {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *followed) int {
		return cmp.Or(cmp.Compare(a.place.Name, b.place.Name), cmp.Compare(a.place.id(), b.place.id()))
	})
	return all
}

// list returns all projects.
func (p *projects) list() []Project {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []Project{}
	for _, f := range p.sorted() {
		state := asleep
		switch {
		case f.client != nil:
			state = connected
		case f.error != "":
			state = unreachable
		}
		all = append(all, Project{f.place.id(), f.place.Name, f.place.Root, f.place.Host, state, f.error, f.seen})
	}
	return all
}

// inbox returns the open questions of all projects, the oldest first.
func (p *projects) inbox() []Question {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []Question{}
	for _, f := range p.sorted() {
		all = append(all, f.open...)
	}
	slices.SortStableFunc(all, func(a, b Question) int { return a.read.CreatedAt.Compare(b.read.CreatedAt) })
	size := 0
	for i, q := range all {
		if size += len(q.Approval); size > mostOfInbox {
			return all[:i]
		}
	}
	return all
}

// sessions returns the sessions of all projects. It asks those whose daemon runs.
func (p *projects) sessions(ctx context.Context) []projectSessions {
	p.mu.Lock()
	all := p.sorted()
	lists := make([]projectSessions, len(all))
	var asking sync.WaitGroup
	for i, f := range all {
		lists[i] = projectSessions{f.place.id(), f.turns, f.error, f.seen}
		place, c := f.place, f.client
		if c == nil {
			continue
		}
		asking.Go(func() {
			within, cancel := context.WithTimeout(ctx, listsWithin)
			defer cancel()
			var raw struct {
				Turns []json.RawMessage `json:"turns"`
			}
			if err := c.Call(within, "turn.list", struct{}{}, &raw); err != nil {
				return // as of the last time
			}
			p.update(place, func(f *followed) { f.turns = raw.Turns })
			lists[i].Sessions = raw.Turns
		})
	}
	p.mu.Unlock()
	asking.Wait()
	for i := range lists {
		lists[i].Sessions = lastTurns(lists[i].Sessions) // never nil
	}
	return lists
}

// listsWithin is how long a daemon may take in a list of all projects.
const listsWithin = 5 * time.Second

// mostSessions are the sessions of a project in a list of all projects.
const mostSessions = 200

// notListed are the long members of a turn that a list does not show.
var notListed = []string{"agent_session", "modes", "metadata", "result", "progress", "auth_methods", "gates", "prompt"}

// lastTurns returns the last turn of each session of a list that has the newest turns first, without what a list does not show.
func lastTurns(turns []json.RawMessage) []json.RawMessage {
	seen := map[string]bool{}
	last := []json.RawMessage{}
	for _, raw := range turns {
		var t struct {
			Session string `json:"session_uuid"`
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &t) != nil || seen[t.Session] || len(last) == mostSessions || json.Unmarshal(raw, &members) != nil {
			continue
		}
		seen[t.Session] = true
		for _, name := range notListed {
			delete(members, name)
		}
		short, err := json.Marshal(members)
		if err == nil {
			last = append(last, short)
		}
	}
	return last
}
