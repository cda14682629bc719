package terminal

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// handOver gives a view the descriptor of a terminal.
func (r *Registry) handOver(ctx context.Context, id string, p AttachParams, view *View) error {
	r.mu.Lock()
	term, err := r.admit(id, p)
	if err != nil {
		r.mu.Unlock()
		return err
	}
	term.views, term.holder = append(term.views, view), view
	r.mu.Unlock()
	if p.resizes() {
		err = r.Resize(ctx, catalog.TerminalResizeParams{TerminalID: id, Cols: p.Cols, Rows: p.Rows})
	}
	if err == nil {
		view.File, err = r.descriptor(ctx, term, view)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, errPending):
		term.remove(view) // the view keeps the terminal until its executor has answered
		return ctx.Err()
	case err != nil:
		term.remove(view)
		term.holder = nil
		return err
	}
	term.remove(p.Replaces)
	view.Recent = term.printed.bytes()
	view.Terminal = term.info()
	return nil
}

// errPending means that a context ended before a descriptor arrived.
var errPending = errors.New("the descriptor of the terminal has not come yet")

// descriptor requests a terminal's descriptor from its executor, and waits until ctx ends. A later
// descriptor is closed and the terminal given back; until then it is taken.
func (r *Registry) descriptor(ctx context.Context, term *terminal, view *View) (*os.File, error) {
	type answer struct {
		file *os.File
		err  error
	}
	answered, abandoned := make(chan answer), make(chan struct{})
	asks := r.tasks.Go(func() {
		file, err := term.executor.TerminalDescriptor(r.ctx, catalog.TerminalDescriptorParams{TerminalID: term.ID})
		select {
		case answered <- answer{file, err}:
			return
		case <-abandoned:
		}
		if err == nil {
			file.Close()
			r.giveBack(term)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if term.holder == view {
			term.holder = nil
		}
	})
	if !asks {
		return nil, domain.ErrEnding
	}
	select {
	case a := <-answered:
		return a.file, a.err
	case <-ctx.Done():
		close(abandoned)
		return nil, errPending
	}
}

// giveBack makes a terminal's executor read it again.
func (r *Registry) giveBack(term *terminal) {
	ctx, cancel := context.WithTimeout(r.ctx, returnWithin)
	defer cancel()
	err := term.executor.TerminalReturn(ctx, catalog.TerminalReturnParams{TerminalID: term.ID})
	if err != nil {
		r.opts.Logger.Debug("a terminal could not be given back", "terminal", term.ID, "err", err)
	}
}

// returnWithin limits how long an executor may take to read a terminal again.
const returnWithin = 10 * time.Second
