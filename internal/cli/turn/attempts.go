package turn

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/duet-rpc/duet-rpc/client"
	"github.com/duet-rpc/duet-rpc/client/eventstream"
	"github.com/duet-rpc/duet-rpc/internal/cli/term"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/hubclient"
	"github.com/duet-rpc/duet-rpc/internal/protocol"
)

// AttendAll waits until the work of several sessions has ended. It shows what each does, in one
// line that changes or, without a terminal, in a line for each tool call, and says when each ends. It asks
// their agents' questions on the terminal, one at a time, as [Inbox] does. It returns the last turn of
// each session, in the same order. The first signal interrupts all of them, the second ends the
// process. If the user leaves the questions, the error says how to go on. c must not reconnect to another
// hub.
func AttendAll(
	ctx context.Context, c *client.Client, view *View, sessions []protocol.Turn, o Options,
) (ended []protocol.Turn, interrupted bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	a := newAsker(o, view, c)
	a.isInbox = true
	defer a.release()
	from := newSources(cancel)
	defer from.close()
	defer a.watch(ctx, &running)()
	all := &attempts{
		asker: a, running: &running, sessions: sessions, isOver: make([]bool, len(sessions)), tools: make(map[string]string),
		shown: make(map[string]bool),
	}
	a.interrupt = func(sig os.Signal) { a.interruptTurns(ctx, sig, all.working(), from, &running) }
	ticks, stopped := view.work()
	defer stopped()
	from.ticks = ticks
	if err := all.begin(ctx, from); err != nil {
		return all.sessions, false, err
	}
	err = a.loop(ctx, all, from)
	return all.sessions, a.interrupts, err
}

// attempts are sessions that work at the same time.
type attempts struct {
	*asker
	running  *sync.WaitGroup
	sessions []protocol.Turn
	isOver   []bool
	tools    map[string]string // the tool call of each working turn; "": it writes
	shown    map[string]bool   // tool calls, where nothing is redrawn
}

// begin subscribes to the sessions, and asks the open questions. What was shown before is not shown again.
func (w *attempts) begin(ctx context.Context, from *sources) error {
	for _, s := range w.sessions {
		var since *int64
		if !w.Again {
			since = new(int64)
		}
		if err := from.subscribe(ctx, w.hub, eventstream.Options{
			Session: s.SessionUUID, Since: since,
			Kinds: []string{
				protocol.KindApprovalOpened, protocol.KindApprovalClosed, protocol.KindTurnState, protocol.KindGatesEnded, protocol.KindSecret,
				protocol.KindItemAdded, protocol.KindItemChanged,
			},
		}, w.running); err != nil {
			return err
		}
	}
	open, _, err := hubclient.OpenApprovals(ctx, w.hub, "")
	if err != nil {
		return err
	}
	for _, approval := range open {
		if w.index(ctx, approval.TurnUUID) >= 0 {
			w.ask(ctx, approval)
		}
	}
	for i := range w.sessions {
		now, _, err := hubclient.Turn(ctx, w.hub, w.sessions[i].ID)
		if err == nil && (w.Again || now.ErrorCode == domain.CodeStoreFull) { // there may be no event of its end
			err = w.update(ctx, i, w.sessions[i].ID, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *attempts) wait(context.Context) (bool, error) {
	w.view.status.tool = w.doing()
	switch {
	case len(w.working()) == 0:
		return true, nil
	case w.hasLeft:
		return true, errors.New("the attempts go on: duet-rpc approvals answers their questions, duet-rpc attempts compares them")
	}
	return false, nil
}

func (w *attempts) event(ctx context.Context, e eventstream.Event) (bool, error) {
	event := hubclient.DataOf(e)
	switch d := event.(type) {
	case *protocol.ApprovalClosedEvent:
		if w.seen[d.ApprovalID] {
			w.resolved(d)
		}
		return false, nil
	case *protocol.Item:
		w.show(e.TurnUUID, d)
		return false, nil
	}
	i := w.index(ctx, e.TurnUUID)
	if i < 0 {
		return false, nil
	}
	switch d := event.(type) {
	case *protocol.ApprovalOpenedEvent:
		w.askWhole(ctx, e, d)
		return false, nil
	case *protocol.SecretEvent:
		w.giveKey(ctx, d, w.running)
		return false, nil
	}
	return false, w.update(ctx, i, e.TurnUUID, isEnd(event))
}

// show takes an item of a turn. Where nothing is redrawn it prints the start of a tool call.
func (w *attempts) show(turn string, d *protocol.Item) {
	i := slices.IndexFunc(w.sessions, func(s protocol.Turn) bool { return s.ID == turn })
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
		w.view.Note(term.Line(w.sessions[i].Name + " · " + w.sessions[i].Agent + ": " + w.tools[turn]))
	}
}

// doing says on one line what the working sessions do.
func (w *attempts) doing() string {
	var parts []string
	for i, s := range w.sessions {
		if w.isOver[i] {
			continue
		}
		what := domain.State(s.State).Words()
		if tool, known := w.tools[s.ID]; known && s.State == domain.Running {
			what = cmp.Or(tool, "writes")
		}
		parts = append(parts, s.Agent+": "+what)
	}
	return strings.Join(parts, " · ")
}

// index returns the place of the session of a turn, or -1.
func (w *attempts) index(ctx context.Context, session string) int {
	s, _, err := hubclient.Turn(ctx, w.hub, session)
	if err != nil {
		return -1 // it is deleted
	}
	for i, one := range w.sessions {
		if one.SessionUUID == s.SessionUUID {
			return i
		}
	}
	return -1
}

// working returns the sessions whose work has not ended.
func (w *attempts) working() (ids []string) {
	for i, s := range w.sessions {
		if !w.isOver[i] {
			ids = append(ids, s.ID)
		}
	}
	return ids
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
func (w *attempts) update(ctx context.Context, i int, session string, ends bool) error {
	s, _, err := hubclient.Turn(ctx, w.hub, session)
	if err == nil && ends && s.GoesOnIn() != "" { // after its gates have failed
		s, _, err = hubclient.Turn(ctx, w.hub, s.GoesOnIn())
	}
	if err != nil {
		return err
	}
	was := w.isOver[i]
	w.sessions[i], w.isOver[i] = s, was || ends && s.State.Ended() && !s.AreChecked()
	is := w.isOver[i]
	if is && !was {
		text := s.Name + " · " + s.Agent + " · " + domain.State(s.State).Words()
		if s.Error != "" {
			text += ": " + s.Error
		}
		w.view.Note(term.Line(text))
	}
	return nil
}
