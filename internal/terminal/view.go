package terminal

import (
	"context"
	"os"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
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
	close    sync.Once
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

// Attach lets one more watch a terminal: deliver gets what it printed lately, at
// once and without waiting, and then as of [Registry.Spawn], until the view is
// closed.
//
// With p.Descriptor the view has the terminal's descriptor, and nobody else is
// told what it prints: deliver gets its end alone. Nobody else may watch it then.
func (r *Registry) Attach(ctx context.Context, id string, p AttachParams, deliver Deliver) (*View, error) {
	view := &View{registry: r, deliver: deliver}
	if p.Descriptor {
		if err := r.handOver(ctx, id, p, view); err != nil {
			return nil, err
		}
		return view, nil
	}
	r.mu.Lock()
	term, err := r.admit(id, p)
	resizes := err == nil && term.executor != nil && p.resizes()
	r.mu.Unlock()
	if resizes { // before it is watched: what comes of it belongs to the past
		err = r.Resize(ctx, catalog.TerminalResizeParams{TerminalID: id, Cols: p.Cols, Rows: p.Rows})
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if term, err = r.admit(id, p); err != nil {
		return nil, err
	}
	term.remove(p.Replaces)
	term.show(view, withoutQueries(term.printed.bytes()))
	return view, nil
}

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
	others := len(term.views)
	if slices.Contains(term.views, p.Replaces) {
		others--
	}
	if others > 0 {
		return nil, domain.Errorf(domain.KindTerminalTaken, "others watch the terminal %s, so its descriptor is not handed over", id)
	}
	return term, term.usable()
}

// Close ends a view; nothing is delivered any more. If it had the descriptor, the
// executor reads the terminal again when Close returns, and what is left of
// the descriptor must not be used.
//
// It may be called more than once; each call returns when it is done.
func (v *View) Close() { v.close.Do(v.end) }

func (v *View) end() {
	r := v.registry
	r.mu.Lock()
	term := r.terminals[v.Terminal.ID]
	if term == nil || !term.remove(v) || term.holder != v {
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	r.giveBack(term)
	r.mu.Lock()
	defer r.mu.Unlock()
	term.holder = nil
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
