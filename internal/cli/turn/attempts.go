package turn

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// A Place is a daemon, with some of the sessions that [AttendAll] attends.
type Place struct {
	Host string // its name; "": the machine of the project
	// Hub must not reconnect by itself.
	Hub *client.Client
	// Lost says that the connection has ended, and what happens now; "": Again will return an error.
	Lost func() string
	// Again returns a new connection then. It tries until ctx ends, and note shows the user why.
	Again func(ctx context.Context, note func(text string)) (*client.Client, error)
	// Named, if set, completes the commands that a note names.
	Named func(note string) string

	ctx    context.Context // ends with the connection
	end    context.CancelFunc
	isLost bool
}

// A Member is one of several sessions: its last turn, and where it is.
type Member struct {
	protocol.Turn
	*Place
}

// Label names the turn for any command, such as 1.1@devbox.
func (m Member) Label() string { return labelAt(m.Name, m.Host) }

func labelAt(name, host string) string {
	if host == "" {
		return name
	}
	return name + "@" + host
}

// AttendAll waits until the work of several sessions has ended, at one place or several. It shows what each does, in one
// line that changes or, without a terminal, in a line for each tool call, and says when each ends. It asks
// their agents' questions on the terminal, one at a time, as [Inbox] does. It returns the last turn of
// each session, in the same order. The first signal interrupts all of them, the second ends the
// process. If the user leaves the questions, the error says how to go on. A place that is lost delays no other one.
// ended, which may be nil, is called when the work of a session has ended.
func AttendAll(ctx context.Context, view *View, members []Member, o Options, ended func(Member)) (last []Member, interrupted bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	silentAfter := o.SilentAfter
	o.SilentAfter = 0
	a := newAsker(o, view, members[0].Hub)
	a.isInbox = true
	defer a.release()
	from := newSources(cancel)
	defer from.close()
	defer a.watch(ctx, &running)()
	all := &attempts{
		asker: a, running: &running, from: from, members: members, isOver: make([]bool, len(members)), ended: ended,
		tools: make(map[string]string), shown: make(map[string]bool),
	}
	for _, m := range members {
		if !slices.Contains(all.places, m.Place) {
			all.places = append(all.places, m.Place)
		}
	}
	defer func() {
		for _, p := range all.places {
			if p.end != nil {
				p.end()
			}
		}
	}()
	if len(all.places) == 1 { // a silent place among several does not keep the user from the others
		all.silentAfter = silentAfter
		silence := make(chan bool)
		all.silent, a.silence = silence, silence
	}
	a.interrupt = func(sig os.Signal) { all.interruptAll(ctx, sig) }
	a.gone = all.lost
	ticks, stopped := view.work()
	defer stopped()
	from.ticks = ticks
	for _, p := range all.places {
		if err := all.begin(ctx, p, false); err != nil {
			return all.members, false, err
		}
	}
	err = a.loop(ctx, all, from)
	return all.members, a.interrupts, err
}

// attempts are sessions that work at the same time.
type attempts struct {
	*asker
	running     *sync.WaitGroup
	from        *sources
	places      []*Place
	members     []Member
	isOver      []bool
	ended       func(Member)
	tools       map[string]string // the tool call of each working turn; "": it writes
	shown       map[string]bool   // tool calls, where nothing is redrawn
	silentAfter time.Duration     // 0: no place is watched
	silent      chan<- bool
}

// begin subscribes to the sessions of a place, and asks their open questions. again says that it was connected before:
// what was shown is not shown again.
func (w *attempts) begin(ctx context.Context, p *Place, again bool) error {
	hub := p.Hub
	p.isLost = false
	p.ctx, p.end = hubclient.WhileConnected(ctx, hub)
	context.AfterFunc(p.ctx, func() {
		w.from.call(ctx, func() error { return w.lost(ctx, hub) })
	})
	if w.silentAfter > 0 {
		within := p.ctx
		w.running.Go(func() { watchSilence(within, ping(hub), w.silentAfter, w.silent) })
	}
	err := w.subscribe(p, again)
	if p.ctx.Err() != nil && ctx.Err() == nil {
		return nil // it is lost again
	}
	return err
}

func (w *attempts) subscribe(p *Place, again bool) error {
	w.at(p)
	for _, m := range w.members {
		if m.Place != p {
			continue
		}
		var since *int64
		if !again {
			since = new(int64)
		}
		if err := w.from.subscribe(p.ctx, p.Hub, eventstream.Options{
			Session: m.SessionUUID, Since: since,
			Kinds: []string{
				protocol.KindApprovalOpened, protocol.KindApprovalClosed, protocol.KindTurnState, protocol.KindGatesEnded, protocol.KindSecret,
				protocol.KindItemAdded, protocol.KindItemChanged,
			},
		}, w.running); err != nil {
			return err
		}
	}
	open, _, err := hubclient.OpenApprovals(p.ctx, p.Hub, "")
	if err != nil {
		return err
	}
	for _, approval := range open {
		if w.index(p, approval.TurnUUID) >= 0 {
			w.ask(p.ctx, approval)
		}
	}
	for i, m := range w.members {
		if m.Place != p {
			continue
		}
		id := m.ID
		if again { // a turn that ended with its daemon may have been continued
			id = m.SessionUUID
		}
		now, _, err := hubclient.Turn(p.ctx, p.Hub, id)
		if err == nil && (again || now.ErrorCode == domain.CodeStoreFull) { // there may be no event of its end
			err = w.update(p, i, now.ID, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// at makes a place that of the next question.
func (w *attempts) at(p *Place) { w.hub, w.host, w.view.Named = p.Hub, p.Host, p.Named }

// lost has a place connected again. Its questions are asked again then.
func (w *attempts) lost(ctx context.Context, hub *client.Client) error {
	n := slices.IndexFunc(w.places, func(p *Place) bool { return p.Hub == hub })
	if n < 0 || w.places[n].isLost {
		return nil
	}
	p := w.places[n]
	p.end()
	p.isLost = true
	w.at(p)
	text := p.Lost()
	if w.interrupts {
		text = ""
	}
	w.drop(hub, text)
	if w.interrupts {
		w.leave(p)
		return nil
	}
	w.running.Go(func() {
		note := func(text string) {
			w.from.call(ctx, func() error { w.view.Note(text); return nil })
		}
		again, err := p.Again(ctx, note)
		if err == nil && ctx.Err() != nil {
			again.Close()
		}
		w.from.call(ctx, func() error {
			switch {
			case err != nil && len(w.places) == 1:
				return err
			case err != nil:
				w.view.Note(term.Line(err.Error()))
				w.leave(p)
				return nil
			}
			p.Hub = again
			return w.begin(ctx, p, true)
		})
	})
	return nil
}

// leave gives up the working sessions of a place that is lost.
func (w *attempts) leave(p *Place) {
	for i, m := range w.members {
		if m.Place == p && !w.isOver[i] {
			w.isOver[i] = true
			w.view.Note(term.Line(m.Label() + " goes on: " + cmp.Or(p.Host, "the daemon") + " cannot be reached"))
		}
	}
}

// interruptAll interrupts all working sessions that can be reached.
func (w *attempts) interruptAll(ctx context.Context, sig os.Signal) {
	var turns []string
	var hubs []*client.Client
	for i, m := range w.members {
		if !w.isOver[i] && !m.isLost {
			turns, hubs = append(turns, m.ID), append(hubs, m.Hub)
		}
	}
	w.interruptTurns(ctx, sig, turns, hubs, w.from, w.running)
	for _, p := range w.places {
		if p.isLost {
			w.leave(p)
		}
	}
}

func (w *attempts) wait(context.Context) (bool, error) {
	w.view.status.tool = w.doing()
	switch {
	case !slices.Contains(w.isOver, false):
		return true, nil
	case w.hasLeft:
		return true, errors.New("the attempts go on: duet-rpc approvals answers their questions, duet-rpc attempts compares them")
	}
	return false, nil
}

func (w *attempts) event(_ context.Context, e eventstream.Event) (bool, error) {
	n := slices.IndexFunc(w.places, func(p *Place) bool { return p.Hub == w.hub })
	if n < 0 || w.places[n].isLost { // it is the last of a connection that is gone
		return false, nil
	}
	p := w.places[n]
	w.at(p)
	err := w.eventAt(p, e)
	if err != nil && p.ctx.Err() != nil {
		return false, nil // it is lost
	}
	return false, err
}

func (w *attempts) eventAt(p *Place, e eventstream.Event) error {
	event := hubclient.DataOf(e)
	switch d := event.(type) {
	case *protocol.ApprovalClosedEvent:
		if w.seen[d.ApprovalID] {
			w.resolved(d)
		}
		return nil
	case *protocol.Item:
		w.show(p, e.TurnUUID, d)
		return nil
	}
	i := w.index(p, e.TurnUUID)
	if i < 0 {
		return nil
	}
	switch d := event.(type) {
	case *protocol.ApprovalOpenedEvent:
		w.askWhole(p.ctx, e, d)
		return nil
	case *protocol.SecretEvent:
		w.giveKey(p.ctx, d, w.running)
		return nil
	}
	return w.update(p, i, e.TurnUUID, isEnd(event))
}

// show takes an item of a turn. Where nothing is redrawn it prints the start of a tool call.
func (w *attempts) show(p *Place, turn string, d *protocol.Item) {
	i := slices.IndexFunc(w.members, func(m Member) bool { return m.Place == p && m.ID == turn })
	if i < 0 || d.ParentID != "" {
		return
	}
	w.tools[turn] = ""
	if d.Type != protocol.ItemToolCall || d.Ended() {
		return
	}
	w.tools[turn] = cmp.Or(d.Title, d.ToolName)
	if id := turn + d.Key; w.view.region == nil && !w.shown[id] && (d.Status != "pending" || !hasNoInput(d)) {
		w.shown[id] = true
		w.view.Note(term.Line(w.members[i].Label() + " · " + w.members[i].Agent + ": " + w.tools[turn]))
	}
}

// doing says on one line what the working sessions do.
func (w *attempts) doing() string {
	var parts []string
	for i, m := range w.members {
		if w.isOver[i] {
			continue
		}
		what := domain.State(m.State).Words()
		tool, known := w.tools[m.ID]
		switch {
		case m.isLost:
			what = "cannot be reached"
		case known && m.State == domain.Running:
			what = cmp.Or(tool, "writes")
		}
		parts = append(parts, labelAt(m.Agent, m.Host)+": "+what)
	}
	return strings.Join(parts, " · ")
}

// index returns the place of the session of a turn among the members, or -1.
func (w *attempts) index(p *Place, turn string) int {
	s, _, err := hubclient.Turn(p.ctx, p.Hub, turn)
	if err != nil {
		return -1 // it is deleted
	}
	return slices.IndexFunc(w.members, func(m Member) bool { return m.Place == p && m.SessionUUID == s.SessionUUID })
}

// isEnd reports whether an event is the end of a turn, or of its gates.
func isEnd(event any) bool {
	switch d := event.(type) {
	case *protocol.TurnStateEvent:
		return d.State.Ended()
	case *protocol.GatesEndedEvent:
		return true
	}
	return false
}

// update reads the state of a turn, and says so if the work of its session has ended. ends is false after an
// event that precedes the end: the turn may have ended since, but later events of it are not shown yet.
func (w *attempts) update(p *Place, i int, turn string, ends bool) error {
	s, _, err := hubclient.Turn(p.ctx, p.Hub, turn)
	if err == nil && ends && s.GoesOnIn() != "" { // after its gates have failed
		s, _, err = hubclient.Turn(p.ctx, p.Hub, s.GoesOnIn())
	}
	if err != nil {
		return err
	}
	was := w.isOver[i]
	goesOn := IsOrphan(s) && !w.interrupts // once the place is connected again
	w.members[i].Turn, w.isOver[i] = s, was || ends && s.State.Ended() && !s.AreChecked() && !goesOn
	if !w.isOver[i] || was {
		return nil
	}
	text := w.members[i].Label() + " · " + s.Agent + " · " + domain.State(s.State).Words()
	if s.Error != "" {
		text += ": " + s.Error
	}
	w.view.Note(term.Line(text))
	if w.ended != nil {
		w.ended(w.members[i])
	}
	return nil
}
