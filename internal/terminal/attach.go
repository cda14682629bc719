package terminal

import (
	"context"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
)

// Attach adds a view to a terminal. deliver gets the recent output at once, and then events as in
// [Registry.Spawn], until the view is closed.
//
// With p.Descriptor the view gets the terminal's descriptor, and no other view gets output: deliver
// gets only the end. No other client may watch the terminal then.
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
	if resizes { // before watching: its output belongs to the past
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

// Close ends a view; deliver is not called afterwards. If the view had the descriptor, the executor
// reads the terminal again when Close returns, and the caller must no longer use the descriptor.
//
// It may be called more than once; each call returns when the view has ended.
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
