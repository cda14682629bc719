package terminal

import (
	"os"
	"slices"
	"sync/atomic"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A View is one that watches a terminal.
type View struct {
	// Terminal is what was known when the view began.
	Terminal Info
	// File is the terminal's descriptor, if it was asked for; it is the
	// caller's.
	File *os.File
	// Recent is what the terminal printed before the descriptor was handed
	// over.
	Recent []byte

	registry *Registry
	deliver  Deliver
	closing  atomic.Bool
	closed   chan struct{} // closed when the view has ended
}

// AttachParams say how a terminal is to be watched.
type AttachParams struct {
	Cols, Rows int  // the size it gets; 0: it stays
	Descriptor bool // read and write it oneself
	// Replaces, if not nil, is a view of the same terminal that ends where the
	// new one begins. If there is no new one it stays.
	Replaces *View
}

// resizes reports whether the terminal is to get another size.
func (p AttachParams) resizes() bool { return p.Cols > 0 && p.Rows > 0 }

// admit is the terminal with that id, if it may be watched so; r.mu is held.
func (r *Registry) admit(id string, p AttachParams) (*terminal, error) {
	term, err := r.terminal(id)
	switch {
	case err != nil:
		return nil, err
	case term.holder != nil:
		return nil, domain.Errorf(domain.KindTerminalTaken, "somebody has the descriptor of the terminal %s; it can be watched when they have given it back", id)
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
		return nil, domain.Errorf(domain.KindTerminalTaken, "others watch the terminal %s, so its descriptor is not handed over", id)
	}
	return term, nil
}

// show lets a view begin, with what was printed before; the registry's mu is held.
func (t *terminal) show(v *View, past []byte) {
	t.views = append(t.views, v)
	v.Terminal = t.info()
	if len(past) > 0 {
		v.deliver(outputEvent(encode(t.ID, past), domain.Session{}))
	}
}

// remove ends a view, and reports whether it was one; the registry's mu is held.
func (t *terminal) remove(v *View) bool {
	i := slices.Index(t.views, v)
	if i >= 0 {
		t.views = slices.Delete(t.views, i, i+1)
	}
	return i >= 0
}
