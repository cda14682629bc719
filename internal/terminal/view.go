package terminal

import (
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// View is a client's view of a terminal.
type View struct {
	// Terminal describes the terminal at the view's start.
	Terminal Info
	// File is the terminal's descriptor, if requested. The caller owns it.
	File *os.File
	// Recent is the output before the handover of the descriptor.
	Recent []byte

	registry *Registry
	deliver  Deliver
	closing  atomic.Bool
	closed   chan struct{} // closed at the view's end
}

// AttachParams describe a view.
type AttachParams struct {
	Cols, Rows int  // new size; 0: unchanged
	Descriptor bool // take over reading and writing
	// Replaces, if not nil, is a view of the same terminal that ends where the new one begins. If
	// the new view fails, it stays.
	Replaces *View
}

// resizes reports whether the terminal changes its size.
func (p AttachParams) resizes() bool { return p.Cols > 0 && p.Rows > 0 }

// admit returns the terminal if p permits a view of it; r.mu is held.
func (r *Registry) admit(id string, p AttachParams) (*terminal, error) {
	term, err := r.terminal(id)
	switch {
	case err != nil:
		return nil, err
	case term.holder != nil:
		return nil, domain.Errorf(domain.KindTerminalTaken, "another client has the descriptor of the terminal %s; watch it when that client "+
			"has given the descriptor back", id)
	case !p.Descriptor:
		return term, nil
	}
	if err := term.usable(); err != nil {
		return nil, err
	}
	others := len(term.views)
	if slices.Contains(term.views, p.Replaces) {
		others--
	}
	if others > 0 {
		return nil, domain.Errorf(domain.KindTerminalTaken, "other clients watch the terminal %s, so its descriptor cannot be passed", id)
	}
	return term, nil
}

// show starts a view with the past output; the registry's mu is held.
func (t *terminal) show(v *View, past []byte) {
	t.views = append(t.views, v)
	v.Terminal = t.info()
	if len(past) > 0 {
		v.deliver(outputEvent(encode(t.ID, past), domain.TurnInSession{}))
	}
}

// remove ends a view, and reports whether it was active; the registry's mu is held.
func (t *terminal) remove(v *View) bool {
	i := slices.Index(t.views, v)
	if i >= 0 {
		t.views = slices.Delete(t.views, i, i+1)
	}
	return i >= 0
}

// Deliver receives the events of a terminal: output and its end.
type Deliver func(domain.Event)

// deliver sends an event to views.
func deliver(views []*View, e domain.Event) {
	for _, v := range views {
		v.deliver(e)
	}
}

// outputEvent returns an event with output; turn is zero if unknown.
func outputEvent(p catalog.TerminalOutputParams, turn domain.TurnInSession) domain.Event {
	return event(turn, domain.TerminalPrinted(p))
}

func exitEvent(p catalog.TerminalExitParams, turn domain.TurnInSession) domain.Event {
	return event(turn, domain.TerminalExited(p))
}

func event(turn domain.TurnInSession, p domain.Payload) domain.Event {
	return domain.Event{Time: time.Now(), Turn: turn.Turn.ID, Session: turn.Turn.Session, Ref: turn.Ref(), Payload: p}
}
