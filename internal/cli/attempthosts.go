package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/cli/turn"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/host"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
	"github.com/duet-rpc/duet-rpc/internal/worktree"
)

// This file has attempts on several hosts. Each daemon keeps its own, and all have the same id. The repository here
// knows those on hosts (worktree.SessionsAway).

// at returns the settings for the project of this machine on a host; "" is this machine.
func (s *settings) at(name string) *settings {
	own := *s
	if s.Host != "" {
		own.Host, own.Root = "", s.Here
	}
	if name != "" {
		own.Host, own.Here, own.Root = name, own.Root, ""
	}
	return &own
}

// startOnHosts starts the attempts one by one: on each host with the files of this machine, and here with its commit.
// They are drafts first, and begin when all daemons have theirs: if a host cannot be reached, none begins. What a killed process
// leaves of them, the next one deletes ([host.Sweep]).
func (w *attempting) startOnHosts() (err error) {
	signals, done := term.Interrupts()
	defer done()
	ctx, cancel := context.WithCancel(w.cmd.Context())
	defer cancel()
	w.id = uuid.NewString()
	starts := make([]protocol.StartParams, len(w.agents))
	for i, a := range w.agents {
		p := w.options.startParams(w.text)
		p.Agent, p.Model, p.Mode, p.Attempts, p.Worktree, p.Draft = a.Agent, a.Model, a.Mode, w.id, new(true), true
		starts[i] = p
	}
	begins := false
	drafts := make([]turn.Member, len(w.agents))
	aways := make([]*host.Away, len(w.agents)) // nil: this machine
	defer func() {
		if begins {
			return
		}
		w.undo(context.WithoutCancel(ctx), drafts, aways, starts)
		if err != nil && !errors.Is(err, term.ErrInterrupted) {
			err = fmt.Errorf("%w; no attempt has begun", turn.InWords(err))
		}
	}()
	for i, a := range w.agents {
		if a.host == "" {
			continue
		}
		own := w.settings.at(a.host)
		if aways[i], err = host.PrepareAway(ctx, &own.Settings, &starts[i]); err != nil {
			return err
		}
		w.agents[i].host = own.Host // perhaps one of its own
	}
	hosts := hostsOf(w.agents)
	var sent map[string]worktree.Sent
	if err := term.OrInterrupted(signals, cancel, func() (err error) {
		host.Sweep(ctx, &w.settings.Settings)
		sent, err = w.send(ctx, cancel, hosts, aways, starts)
		return err
	}); err != nil {
		return err
	}
	w.noteSent(hosts, sent)
	for i, a := range w.agents {
		p, err := w.placeOn(a.host, aways[i])
		if err != nil {
			return err
		}
		if a.host == "" {
			starts[i].Base = sent[hosts[0]].Base
		}
		if drafts[i], err = w.draft(p, starts[i]); err != nil {
			return whereFailed(a.host, err)
		}
	}
	begins = true
	return w.beginAll(drafts, aways)
}

// beginAll has the agents of all drafts begin. aways has the repository for those on hosts.
func (w *attempting) beginAll(drafts []turn.Member, aways []*host.Away) error {
	hasBegun := make([]bool, len(drafts))
	for _, isHere := range []bool{true, false} { // here first: host.Sweep finds drafts here by those on hosts
		for i := range drafts {
			m, away := &drafts[i], aways[i]
			if (away == nil) != isHere {
				continue
			}
			err := w.begin(m)
			hasBegun[i] = err == nil
			if away != nil {
				_ = away.Note(w.ctx, m.Turn) // otherwise the next fetch does
			}
			if err != nil {
				at := strings.TrimPrefix(m.Label(), m.Name)
				w.view.Note(term.Line(fmt.Sprintf("%s has not begun: %v; begin it with: duet-rpc prompt --continue %d%s PROMPT",
					m.Label(), turn.InWords(err), m.Session, at)))
			}
		}
	}
	for i, m := range drafts {
		if hasBegun[i] {
			w.members = append(w.members, m)
		}
	}
	if len(w.members) == 0 {
		return errors.New("no attempt has begun")
	}
	return nil
}

// undo deletes the drafts of attempts of which one cannot begin, and the hosts that were made for them. What cannot be deleted now
// never runs, and the next start deletes it ([host.Sweep]).
func (w *attempting) undo(ctx context.Context, drafts []turn.Member, aways []*host.Away, starts []protocol.StartParams) {
	isLeft := make([]bool, len(drafts))
	for i, m := range drafts {
		if m.SessionUUID != "" {
			_, _, err := hubclient.SessionDelete(ctx, m.Hub, protocol.SessionRefParams{Session: protocol.Ref(m.SessionUUID)})
			isLeft[i] = err != nil && client.KindOf(err) != "not_found"
		}
	}
	w.close() // the lines, before hosts are removed
	for i, a := range aways {
		if a == nil {
			continue
		}
		a.Refuse(starts[i].SessionUUID)
		a.Close(ctx)
		if !isLeft[i] {
			_, _ = a.Forget(ctx, starts[i].SessionUUID)
		}
	}
}

// whereFailed adds the name of the host to an error; "" is this machine.
func whereFailed(name string, err error) error {
	if name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", name, turn.InWords(err))
}

// send sends the files of this machine to all hosts at once, which it makes if they are made for a session. The first error ends all.
func (w *attempting) send(
	ctx context.Context, cancel func(), hosts []string, aways []*host.Away, starts []protocol.StartParams,
) (map[string]worktree.Sent, error) {
	sent := make(map[string]worktree.Sent)
	var failed error
	var mu sync.Mutex // guards sent and failed
	var sending sync.WaitGroup
	for _, name := range hosts {
		sending.Go(func() {
			for i := range starts {
				if w.agents[i].host != name {
					continue
				}
				s, err := aways[i].Begin(ctx, &starts[i])
				mu.Lock()
				sent[name] = s
				if err != nil && failed == nil {
					failed = err
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	sending.Wait()
	return sent, failed
}

// noteSent says which files the agents have.
func (w *attempting) noteSent(hosts []string, sent map[string]worktree.Sent) {
	isHere := slices.ContainsFunc(w.agents, func(a chosenAgent) bool { return a.host == "" })
	for i, name := range hosts {
		noteSent(w.view, name, sent[name], i == 0)
	}
	if n := sent[hosts[0]].Uncommitted; n > 0 && isHere {
		w.view.Note("attempts on this machine begin with your commit alone, without " + term.Count(n, "file that you did not commit", "files that you did not commit"))
	}
}

// placeOn returns the place of a host, which it connects once.
func (w *attempting) placeOn(name string, away *host.Away) (*attemptPlace, error) {
	for _, p := range w.places {
		if p.place.Host == name {
			return p, nil
		}
	}
	return w.open(w.settings.at(name), away)
}

// draft stores an attempt that has not begun. With an error, the result has a SessionUUID if it may be stored all the same.
func (w *attempting) draft(p *attemptPlace, params protocol.StartParams) (m turn.Member, err error) {
	m.Place = p.place
	started, _, err := hubclient.SessionStart(w.ctx, p.Client, params)
	if err == nil {
		m.SessionUUID = started.SessionUUID
	} else if !errors.As(err, new(*client.Error)) { // its answer is lost
		m.SessionUUID = params.SessionUUID
	}
	if err != nil {
		return m, err
	}
	stored, _, err := hubclient.Turn(w.ctx, p.Client, started.ID)
	if err == nil {
		m.Turn = stored
	}
	return m, err
}

// begin has the agent of a draft begin.
func (w *attempting) begin(m *turn.Member) error {
	started, _, err := hubclient.SessionPrompt(w.ctx, m.Hub, protocol.PromptParams{Session: protocol.Ref(m.ID)})
	if err != nil {
		return err
	}
	begun, _, err := hubclient.Turn(w.ctx, m.Hub, started.ID)
	if err == nil {
		m.Turn = begun
	}
	return err
}

// An attempt is one of several sessions with the same prompt, for a comparison.
type attempt struct {
	protocol.Attempt
	Host string `json:"host,omitempty"` // "": the machine of the project
	Away string `json:"away,omitempty"` // why the host cannot be reached: all else is as it came here last

	seen worktree.Session // of one on a host
}

// A group has the attempts at a prompt.
type group struct {
	settings *settings
	id       string // that all have; "": none is on a host that has files of this machine
	attempts protocol.AttemptsParams
	away     []worktree.Session // those on hosts

	prompt string
	list   []attempt
	raw    json.RawMessage // the answer of the only daemon
}

// groupOf returns the attempts with a session that the arguments name, by default the last ones.
func (s *settings) groupOf(ctx context.Context, args []string) (*group, error) {
	host.Sweep(ctx, &s.Settings)
	away := slices.DeleteFunc(s.at("").awayHere(), func(x worktree.Session) bool { return x.Attempts == "" })
	g := &group{settings: s}
	if s.Host != "" && len(args) > 0 {
		number, _, _ := strings.Cut(args[0], ".")
		for _, x := range away {
			if x.Host == s.Host && strconv.FormatInt(x.Number, 10) == number {
				g.id = x.Attempts
			}
		}
	} else if s.Host != "" {
		away = nil
	}
	if g.id == "" {
		one, err := s.oneAttempt(ctx, args, away)
		if err != nil {
			return nil, err
		}
		g.id, g.attempts = one.Attempts, protocol.AttemptsParams{Session: protocol.Ref(one.ID)}
	}
	g.away = slices.DeleteFunc(away, func(x worktree.Session) bool { return x.Attempts != g.id })
	if len(g.away) == 0 {
		g.id = ""
	} else {
		g.attempts = protocol.AttemptsParams{Attempts: g.id}
	}
	return g, nil
}

// oneAttempt returns the session that the arguments name, by default the last one that is one of several attempts, here or
// on a host.
func (s *settings) oneAttempt(ctx context.Context, args []string, away []worktree.Session) (one protocol.Turn, err error) {
	if len(args) == 0 {
		for _, x := range away {
			if x.Active.After(one.ActiveAt) {
				one = protocol.Turn{ID: x.ID, Attempts: x.Attempts, ActiveAt: x.Active}
			}
		}
	}
	err = withClient(ctx, &s.Settings, false, func(ctx context.Context, c *client.Client) error {
		if len(args) > 0 {
			one, _, err = hubclient.Turn(ctx, c, args[0])
			return err
		}
		sessions, _, err := hubclient.Sessions(ctx, c, protocol.SessionListParams{Filter: "normal", Limit: new(uint(200))})
		for _, x := range sessions {
			if x.Attempts != "" && x.ActiveAt.After(one.ActiveAt) {
				one = x
			}
		}
		return err
	})
	switch {
	case one.ID != "" && len(args) == 0: // perhaps all are on hosts
		return one, nil
	case err == nil && len(args) == 0:
		err = errors.New("no prompt had several agents: duet-rpc prompt --agents NAME,NAME TEXT")
	}
	return one, err
}

// read reads the attempts from all daemons at once. Of a host that cannot be reached it reads what came here.
func (g *group) read(ctx context.Context, patch bool) error {
	g.attempts.Patch = patch
	if g.id == "" {
		return withClient(ctx, &g.settings.Settings, false, func(ctx context.Context, c *client.Client) error {
			r, raw, err := hubclient.AttemptList(ctx, c, g.attempts)
			g.prompt, g.raw = r.Prompt, raw
			for _, a := range r.Attempts {
				g.list = append(g.list, attempt{Attempt: a})
			}
			return err
		})
	}
	if g.away == nil {
		g.away = slices.DeleteFunc(g.settings.at("").awayHere(), func(x worktree.Session) bool { return x.Attempts != g.id })
	}
	byHost := map[string][]worktree.Session{"": nil}
	for _, x := range g.away {
		byHost[x.Host] = append(byHost[x.Host], x)
	}
	names := slices.Sorted(maps.Keys(byHost))
	lists, prompts := make([][]attempt, len(names)), make([]string, len(names))
	var reading sync.WaitGroup
	for i, name := range names {
		reading.Go(func() { lists[i], prompts[i] = g.readAt(ctx, name, byHost[name], patch) })
	}
	reading.Wait()
	for i, list := range lists {
		g.list = append(g.list, list...)
		if g.prompt == "" {
			g.prompt = prompts[i]
		}
	}
	if len(g.list) == 0 {
		return errors.New("nothing is known of these attempts any more")
	}
	return ctx.Err()
}

// readAt reads the attempts of a host; "" is this machine.
func (g *group) readAt(ctx context.Context, name string, known []worktree.Session, patch bool) (list []attempt, prompt string) {
	own := g.settings.at(name)
	err := withClient(ctx, &own.Settings, false, func(ctx context.Context, c *client.Client) error {
		r, _, err := hubclient.AttemptList(ctx, c, g.attempts)
		prompt = r.Prompt
		for _, a := range r.Attempts {
			one := attempt{Attempt: a, Host: name}
			if name != "" {
				i := slices.IndexFunc(known, func(x worktree.Session) bool { return x.ID == a.SessionUUID })
				if i < 0 {
					continue // the host says so, but it did not begin with the files of this machine
				}
				one.Name, one.seen = a.Name+"@"+name, known[i]
			}
			list = append(list, one)
		}
		return err
	})
	if name == "" {
		return list, prompt // without a daemon, or with none of its own, there is none here
	}
	for i := range list { // the host does not know what was landed here
		if here := (attempt{Attempt: protocol.Attempt{SessionUUID: list[i].SessionUUID}}); !list[i].isGone() {
			here.readHere(ctx, own, false)
			list[i].Landed = list[i].Landed || here.Landed && slices.Equal(here.Files, list[i].Files)
		}
	}
	for _, x := range known {
		if slices.ContainsFunc(list, func(a attempt) bool { return a.SessionUUID == x.ID }) {
			continue
		}
		a := attempt{
			Attempt: protocol.Attempt{
				Name: fmt.Sprintf("%d@%s", x.Number, name), Session: x.Number, SessionUUID: x.ID, Agent: x.Agent, State: domain.State(x.State),
				Files: []protocol.FileChange{},
			},
			Host: name, seen: x, Away: "it is deleted there",
		}
		switch {
		case x.IsGone: // with its host, if that was made for it
			a.Away, a.Unknown = "", "the worktree was discarded"
			list = append(list, a)
			continue
		case err != nil:
			a.Away = turn.InWords(err).Error()
		}
		a.readHere(ctx, own, patch)
		list = append(list, a)
	}
	return list, prompt
}

// mostPatchHere is how many bytes of the work that came here a comparison shows.
const mostPatchHere = 1 << 20

// readHere reads the changes of an attempt from what came here.
func (a *attempt) readHere(ctx context.Context, on *settings, patch bool) {
	most := 0
	if patch {
		most = mostPatchHere
	}
	a.Unknown = "nothing came here yet"
	away, err := host.OpenAway(ctx, &on.Settings)
	if err != nil {
		return
	}
	c, fetched, err := away.Changes(ctx, a.SessionUUID, most)
	switch {
	case err != nil:
		a.Unknown = err.Error()
	case fetched:
		a.Unknown, a.Patch, a.PatchCut, a.Commits, a.Landed = "", c.Patch, c.IsCut, c.Commits.Count, c.Landed
		for _, f := range c.Files {
			a.Added += f.Added
			a.Removed += f.Removed
			a.Files = append(a.Files, protocol.FileChange{Path: f.Path, Added: f.Added, Removed: f.Removed, Binary: f.IsBinary})
		}
	}
}

// isWorking reports whether the agent of an attempt works, or its gates are checked.
func (a attempt) isWorking() bool {
	return a.State != domain.Draft && (!a.State.Ended() || a.Gates != nil && a.Gates.State == domain.LoopChecking)
}

// isGone reports whether the worktree of an attempt was discarded.
func (a attempt) isGone() bool { return a.Worktree == nil || a.Worktree.Gone }

// choose lands a session, and discards the other attempts of the group on all hosts. What is not landed is fetched
// before. A host that cannot be reached keeps its attempts. The same call again does the rest.
func (g *group) choose(
	ctx context.Context, cmd *cobra.Command, c *client.Client, params protocol.ChooseAttemptParams, chosen protocol.Turn,
) (r protocol.ChooseAttemptResult, raw json.RawMessage, err error) {
	s := g.settings
	if err := checkEnded(chosen); err != nil {
		return r, nil, err
	}
	if err := g.read(ctx, false); err != nil {
		return r, nil, err
	}
	others := slices.DeleteFunc(slices.Clone(g.list), func(a attempt) bool { return a.SessionUUID == chosen.SessionUUID })
	var working []string
	for _, a := range others {
		if a.Away == "" && a.isWorking() {
			working = append(working, a.Name)
		}
	}
	if len(working) > 0 && !params.Interrupt {
		still := "other attempts still work (" + strings.Join(working, ", ") + ")"
		again := fmt.Sprintf("duet-rpc land %s --discard-others", chosen.Name)
		if err := askYes(cmd, s, still+". Interrupt and discard them?", "nothing was landed, because "+still, again); err != nil {
			return r, nil, err
		}
	}
	if r.LandResult, _, err = s.land(ctx, c, chosen, params.LandParams); err != nil {
		return r, nil, err
	}
	r.Discarded = []protocol.DiscardedAttempt{}
	for _, a := range others {
		own := s.at(a.Host)
		if a.Away == "" && a.isGone() {
			own.forget(ctx, a)
			continue
		}
		d := protocol.DiscardedAttempt{Turn: a.Name, TurnUUID: a.ID, Agent: a.Agent}
		if a.Away != "" {
			d.Error = a.Away
		} else if d.DiscardResult, err = own.discardAttempt(ctx, a); err != nil {
			d.Error = turn.InWords(err).Error()
		}
		if d.Error != "" {
			d.Error += "; later: duet-rpc discard " + a.sessionLabel()
			if h, err := config.HostNamed(a.Host, os.Getenv); err == nil && h.Of != "" {
				d.Error += ", or discard --here " + a.sessionLabel() + " if " + a.Host + " is gone"
			}
		}
		r.Discarded = append(r.Discarded, d)
	}
	raw, err = json.Marshal(r)
	return r, raw, err
}

// sessionLabel names the session for any command.
func (a attempt) sessionLabel() string {
	if a.Host == "" {
		return strconv.FormatInt(a.Session, 10)
	}
	return fmt.Sprintf("%d@%s", a.Session, a.Host)
}

// forget deletes what a killed process has left of an attempt whose worktree on the host is deleted.
func (s *settings) forget(ctx context.Context, a attempt) {
	if a.Host == "" {
		return
	}
	if away, err := host.OpenAway(ctx, &s.Settings); err == nil {
		_ = away.Finish(ctx, a.SessionUUID, &protocol.DiscardResult{}) // otherwise a list still shows it
	}
}

// discardAttempt ends the work of an attempt, and discards its worktree.
func (s *settings) discardAttempt(ctx context.Context, a attempt) (r protocol.DiscardResult, err error) {
	err = withClient(ctx, &s.Settings, false, func(ctx context.Context, c *client.Client) error {
		if a.isWorking() {
			_, _, err := hubclient.TurnInterrupt(ctx, c, protocol.InterruptTurnParams{Turn: protocol.Ref(a.SessionUUID), Reason: "not_chosen"})
			if err == nil || errors.Is(err, client.Kind("not_running")) { // it has ended meanwhile
				_, _, err = hubclient.TurnWait(ctx, c, protocol.TurnParams{Turn: protocol.Ref(a.SessionUUID)})
			}
			if err != nil {
				return err
			}
		}
		session, _, err := hubclient.Turn(ctx, c, a.SessionUUID)
		if err != nil {
			return err
		}
		force := func(bool) (protocol.DiscardResult, error) {
			r, _, err := discard(ctx, c, session, true, nil)
			return r, err
		}
		if away, err2 := host.AwayOf(ctx, &s.Settings, session); err2 != nil {
			return err2
		} else if away != nil {
			r, err = away.Discard(ctx, c, session, false, force)
		} else {
			r, err = force(true)
		}
		return err
	})
	return r, err
}
