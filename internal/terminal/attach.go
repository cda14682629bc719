package terminal

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Attach lets one more watch a terminal: deliver gets what it printed lately, at
// once and without waiting, and then as of [Registry.Spawn], until the view is
// closed.
//
// With p.Descriptor the view has the terminal's descriptor, and nobody else is
// told what it prints: deliver gets its end alone. Nobody else may watch it then.
func (r *Registry) Attach(ctx context.Context, id string, p AttachParams, deliver Deliver) (*View, error) {
	view := &View{registry: r, deliver: deliver, closed: make(chan struct{})}
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

// Close ends a view; nothing is delivered any more. If it had the descriptor, the
// executor reads the terminal again when Close returns, and what is left of
// the descriptor must not be used.
//
// It may be called more than once; each call returns when it is done.
func (v *View) Close() {
	if v.closing.Swap(true) {
		<-v.closed
		return
	}
	defer close(v.closed)
	v.end()
}

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
