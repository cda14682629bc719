// Package changereview lets people accept or revert, hunk by hunk, the files that turns have
// changed. Accepted hunks stay; reverted hunks are undone in the file; both can be reopened. If
// later edits by others conflict, the file is left alone.
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
	Accept = "accept" // reviewed, stays
	Revert = "revert" // undone in the file
	Reopen = "reopen" // undecided again; an undone change is redone
)

// Options configure a Review. All but StateDir are required.
type Options struct {
	Root     func(dir string) string // the absolute directory that limits a session in dir
	StateDir string                  // the project's state directory, whose files are left alone; may be ""
	Store    store.Reader
	Write    func(context.Context, func(store.Tx) error) error
}

// Review stores decisions on changes. Its methods may be called from any goroutine; decisions on
// one file are serialized.
type Review struct {
	opts  Options
	mu    sync.Mutex // guards taken
	taken map[string]*turn
}

// New returns a Review.
func New(opts Options) *Review { return &Review{opts: opts, taken: make(map[string]*turn)} }

// Files returns the files that a turn has changed, with the decisions.
func (r *Review) Files(ctx context.Context, s domain.TurnInSession) ([]File, error) {
	changes, err := r.opts.Store.Changes(ctx, s.Turn.ID)
	if err != nil {
		return nil, store.Explain(err)
	}
	return r.filesOf(ctx, s, changes)
}

func (r *Review) filesOf(ctx context.Context, s domain.TurnInSession, changes []domain.Change) ([]File, error) {
	decided, err := r.opts.Store.ChangeDecisions(ctx, s.Turn.ID)
	if err != nil {
		return nil, store.Explain(err)
	}
	byPart := make(map[string]domain.ChangeDecision, len(decided))
	for _, d := range decided {
		byPart[d.Part] = d
	}
	files := make([]File, 0, len(changes))
	for _, c := range changes {
		files = append(files, fileOf(s.Session.CWD, c, byPart))
	}
	findRenames(files)
	return files, nil
}

// file returns the changed file of a path.
func (r *Review) file(ctx context.Context, s domain.TurnInSession, path string) (File, error) {
	changes, err := r.opts.Store.Changes(ctx, s.Turn.ID)
	if err != nil {
		return File{}, store.Explain(err)
	}
	i := slices.IndexFunc(changes, func(c domain.Change) bool { return c.Path == path })
	if i < 0 {
		return File{}, domain.Errorf(domain.KindChangeNotFound, "the turn has not changed %s: list its changes", path)
	}
	files, err := r.filesOf(ctx, s, changes[i:i+1])
	if err != nil {
		return File{}, err
	}
	return files[0], nil
}

// turn is the lock for decisions on one file.
type turn struct {
	free    chan struct{} // holds a value while unlocked
	waiting int           // waiters, including the holder
}

// take locks a file; done unlocks it.
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
