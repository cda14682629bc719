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
	defer cancel()
	a := newAsker(o, view, c)
	left := false
	a.isInbox, a.leave = true, func() { left = true }
	defer a.release()
	defer a.watch(ctx, &running)()
	refused := make(chan error)
	all := &attempts{
		hub: c, view: view, sessions: sessions, isOver: make([]bool, len(sessions)), tools: make(map[string]string), shown: make(map[string]bool),
	}
	a.interrupt = func(sig os.Signal) {
		if a.interrupts {
			a.release()
			a.EndNow()
		}
		a.interrupts = true
		view.Note("interrupting all; press C-c again to end at once")
		running.Go(func() {
			for _, id := range all.working() {
				err := c.Call(ctx, "turn.interrupt", protocol.InterruptTurnParams{Turn: protocol.Ref(id), Reason: "user_cancelled"}, nil)
				if err == nil {
					continue
				}
				select {
				case refused <- err:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	ticks, stopped := view.work()
	defer stopped()
	events := make(chan eventstream.Event)
	silent := make(chan error, len(sessions))
	for _, s := range sessions {
		var since *int64 // what was shown before is not shown again
		if !o.Again {
			since = new(int64)
		}
		sub, err := eventstream.Subscribe(ctx, c, eventstream.Options{
			Session: s.SessionUUID, Since: since,
			Kinds: []string{
				protocol.KindApprovalOpened, protocol.KindApprovalClosed, protocol.KindTurnState, protocol.KindGatesEnded, protocol.KindSecret,
				protocol.KindItemAdded, protocol.KindItemChanged,
			},
		}, func(e eventstream.Event) {
			select {
			case events <- e:
			case <-ctx.Done():
			}
		})
		if err != nil {
			return sessions, false, err
		}
		running.Go(func() {
			<-sub.Done()
			silent <- sub.Err()
		})
		defer func() { cancel(); sub.Close() }()
	}
	open, _, err := hubclient.OpenApprovals(ctx, c, "")
	if err != nil {
		return sessions, false, err
	}
	for _, approval := range open {
		if all.index(ctx, approval.TurnUUID) >= 0 {
			a.ask(ctx, approval)
		}
	}
	for i := range sessions {
		now, _, err := hubclient.Turn(ctx, c, sessions[i].ID)
		if err == nil && (o.Again || now.ErrorCode == domain.CodeStoreFull) { // there may be no event of its end
			err = all.update(ctx, i, sessions[i].ID, true)
		}
		if err != nil {
			return sessions, false, err
		}
	}
	for len(all.working()) > 0 {
		if left {
			return all.sessions, a.interrupts, errors.New("the attempts go on: duet-rpc approvals answers their questions, duet-rpc attempts " +
				"compares them")
		}
		a.promptAgain()
		if !a.asks() && view.words != nil {
			a.hide()
		}
		select {
		case e := <-events:
			a.hubHeard(view.Note)
			switch d := hubclient.DataOf(e).(type) {
			case *protocol.ApprovalOpenedEvent:
				if all.index(ctx, e.TurnUUID) < 0 {
					continue
				}
				approval := hubclient.ApprovalOf(e, d)
				if whole, _, err := hubclient.GetApproval(ctx, c, approval.ApprovalID); err == nil { // adds the agent and the time
					approval = whole
				}
				if approval.Status != "" && approval.Status != domain.ApprovalPending {
					continue // it was answered before it was shown
				}
				a.ask(ctx, approval)
			case *protocol.ApprovalClosedEvent:
				if a.seen[d.ApprovalID] {
					a.resolved(d)
				}
			case *protocol.Item:
				all.show(e.TurnUUID, d)
			case *protocol.SecretEvent:
				if i := all.index(ctx, e.TurnUUID); i >= 0 {
					a.giveKey(ctx, d, &running)
				}
			default:
				if i := all.index(ctx, e.TurnUUID); i >= 0 {
					if err := all.update(ctx, i, e.TurnUUID, isEnd(d)); err != nil {
						return all.sessions, a.interrupts, err
					}
				}
			}
		case input := <-a.typed:
			if input.Err != nil && a.isHungUp() {
				return all.sessions, a.interrupts, ErrHungUp
			}
			if line, ok := a.received(input); ok {
				a.answered(ctx, line)
			}
		case <-ticks:
			view.status.tool = all.doing()
			view.ticked()
		case <-a.settle:
		case <-a.continued:
			a.keyboard.continued()
			a.next()
		case silent := <-a.silence:
			a.hubSilent(silent, view.Note)
		case sig := <-a.Signals:
			a.interrupt(sig)
		case err := <-refused:
			view.Note(InDialogue(err).Error())
		case err := <-silent:
			return all.sessions, a.interrupts, errors.Join(errors.New("the daemon sends no more events"), err)
		case <-ctx.Done():
			return all.sessions, a.interrupts, context.Cause(ctx)
		}
	}
	return all.sessions, a.interrupts, nil
}

// attempts are sessions that work at the same time.
type attempts struct {
	hub  *client.Client
	view *View

	mu       sync.Mutex // guards the fields below
	sessions []protocol.Turn
	isOver   []bool

	tools map[string]string // the tool call of each working turn; "": it writes. Only AttendAll's goroutine uses it
	shown map[string]bool   // tool calls, where nothing is redrawn
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
		if tool, known := w.tools[s.ID]; known && s.State == hubclient.Running {
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
	w.mu.Lock()
	defer w.mu.Unlock()
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
		return hubclient.Ended(d.State)
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
	w.mu.Lock()
	was := w.isOver[i]
	w.sessions[i], w.isOver[i] = s, was || ends && hubclient.Ended(s.State) && !s.AreChecked()
	is := w.isOver[i]
	w.mu.Unlock()
	if is && !was {
		text := s.Name + " · " + s.Agent + " · " + domain.State(s.State).Words()
		if s.Error != "" {
			text += ": " + s.Error
		}
		w.view.Note(term.Line(text))
	}
	return nil
}
