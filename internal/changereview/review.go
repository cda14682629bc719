// Package changereview has people accept or revert what runs have changed in files, hunk by
// hunk. What is accepted stays as it is; what is reverted is taken back in the file; both can
// be taken back again. A file that somebody else has changed since is left alone where that is
// in the way.
package changereview

import (
	"context"
	"slices"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Decisions about changes.
const (
	Accept = "accept" // it was seen, and stays
	Revert = "revert" // it is taken back, in the file
	Reopen = "reopen" // nothing is decided any more; what was taken back is there again
)

// Options are what a Review needs. All are required but StateDir.
type Options struct {
	Root     string // of the project, absolute
	StateDir string // of the project, whose files are left alone; "" if there is none
	Store    store.Reader
	Write    func(context.Context, func(store.Tx) error) error
}

// A Review decides about changes. Its methods may be called from any goroutine; decisions about
// one file are made one after the other.
type Review struct {
	opts  Options
	mu    sync.Mutex // guards the field below
	taken map[string]*turn
}

// New makes a Review.
func New(opts Options) *Review { return &Review{opts: opts, taken: make(map[string]*turn)} }

// Files are the files that a run has changed, with what was decided.
func (r *Review) Files(ctx context.Context, s domain.Session) ([]File, error) {
	changes, err := r.opts.Store.Changes(ctx, s.Run.ID)
	if err != nil {
		return nil, store.Explain(err)
	}
	return r.filesOf(ctx, s, changes)
}

func (r *Review) filesOf(ctx context.Context, s domain.Session, changes []domain.Change) ([]File, error) {
	decided, err := r.opts.Store.ChangeDecisions(ctx, s.Run.ID)
	if err != nil {
		return nil, store.Explain(err)
	}
	byPart := make(map[string]domain.ChangeDecision, len(decided))
	for _, d := range decided {
		byPart[d.Part] = d
	}
	files := make([]File, 0, len(changes))
	for _, c := range changes {
		files = append(files, fileOf(s.Thread.CWD, c, byPart))
	}
	return files, nil
}

// file is the one of a path.
func (r *Review) file(ctx context.Context, s domain.Session, path string) (File, error) {
	changes, err := r.opts.Store.Changes(ctx, s.Run.ID)
	if err != nil {
		return File{}, store.Explain(err)
	}
	i := slices.IndexFunc(changes, func(c domain.Change) bool { return c.Path == path })
	if i < 0 {
		return File{}, domain.Errorf(domain.KindChangeNotFound, "the session has not changed %s; getSessionSnapshots lists what it has", path)
	}
	files, err := r.filesOf(ctx, s, changes[i:i+1])
	if err != nil {
		return File{}, err
	}
	return files[0], nil
}

// A turn is the right to decide about a file, one after the other.
type turn struct {
	free    chan struct{} // has one in it where nobody has it
	waiting int           // with whoever has it
}

// take waits for the turn of a file; done gives it back.
func (r *Review) take(ctx context.Context, path string) (done func(), err error) {
	r.mu.Lock()
	t := r.taken[path]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		r.taken[path] = t
	}
	t.waiting++
	r.mu.Unlock()
	leave := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if t.waiting--; t.waiting == 0 {
			delete(r.taken, path)
		}
	}
	select {
	case <-t.free:
		return func() { t.free <- struct{}{}; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
