package trigger

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// This file reports changed files of a project in batches, each after a quiet period, whatever
// their number.
//
// The system watches single directories (inotify, kqueue, ReadDirectoryChangesW), so the watcher
// adds each one and follows new ones. If the system refuses more watches, the watcher reports that
// and keeps the existing ones.

// notifier is the used part of [fsnotify.Watcher].
type notifier interface {
	Add(dir string) error
	Remove(dir string) error
	Close() error
}

// system opens a notifier; tests may replace it.
type system func() (n notifier, events <-chan fsnotify.Event, errs <-chan error, err error)

func ofSystem() (notifier, <-chan fsnotify.Event, <-chan error, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil, nil, err
	}
	return w, w.Events, w.Errors, nil
}

// watchOptions configure a watcher.
type watchOptions struct {
	Root    string   // project root, absolute
	Exclude []string // directories never to watch, absolute
	Specs   []watchSpec

	system system // nil: ofSystem
}

// watchStatus is the state of a watcher.
type watchStatus struct {
	Directories int   // number of watched directories
	Received    int64 // received file changes
	Problem     string
}

// watcher watches until it is closed. Its methods may be called from any goroutine.
type watcher struct {
	// Batches delivers changes. At most one batch per trigger waits to be received; later changes
	// go to the next.
	Batches <-chan changeBatch

	opts    watchOptions
	out     chan changeBatch
	ctx     context.Context
	cancel  context.CancelFunc
	ended   sync.WaitGroup
	pending []*pending
	tree    *tree
	ready   []changeBatch

	mu     sync.Mutex // guards status
	status watchStatus
}

// startWatch starts a watcher in its own goroutine. It ends with ctx, or by Close.
func startWatch(ctx context.Context, opts watchOptions) *watcher {
	if opts.system == nil {
		opts.system = ofSystem
	}
	w := &watcher{opts: opts, out: make(chan changeBatch)}
	w.Batches = w.out
	w.ctx, w.cancel = context.WithCancel(ctx)
	for _, s := range opts.Specs {
		w.pending = append(w.pending, newPending(s))
	}
	w.ended.Go(w.run)
	return w
}

// Close ends the watcher, waits for it, and drops pending changes.
func (w *watcher) Close() {
	w.cancel()
	w.ended.Wait()
}

// Status returns the current state.
func (w *watcher) Status() watchStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

func (w *watcher) tell(change func(*watchStatus)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.status)
}

func (w *watcher) run() {
	n, events, errs, err := w.opts.system()
	if err != nil {
		w.tell(func(s *watchStatus) { s.Problem = "no files are watched: " + explain(err) })
		return
	}
	defer n.Close()
	w.tree = &tree{
		root: w.opts.Root, exclude: w.opts.Exclude, add: n.Add, remove: func(dir string) { _ = n.Remove(dir) }, wanted: w.wantsDir,
		ignores: make(map[string]list), files: make(map[uint64]struct{}),
	}
	w.scan(".", func(file string, entry fs.DirEntry) {
		w.tree.know(file)
		w.catchUp(file, entry, time.Time{})
	})
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for w.ctx.Err() == nil {
		w.makeReady(time.Now())
		if due, any := w.due(); any {
			timer.Reset(max(time.Until(due), time.Millisecond))
		} else {
			timer.Stop()
		}
		var out chan changeBatch
		var next changeBatch
		if len(w.ready) > 0 {
			out, next = w.out, w.ready[0]
		}
		select {
		case <-w.ctx.Done():
		case e, ok := <-events:
			if !ok {
				return
			}
			w.take(e)
		case err, ok := <-errs:
			if ok {
				w.failed(err)
			}
		case out <- next:
			w.ready = w.ready[1:]
		case <-timer.C:
			// Changes that arrived meanwhile may belong to the due batch.
			for more := true; more; {
				select {
				case e, ok := <-events:
					if !ok {
						return
					}
					w.take(e)
				default:
					more = false
				}
			}
		}
	}
}

// scan watches a directory with its content and updates the status.
func (w *watcher) scan(dir string, found func(string, fs.DirEntry)) {
	if dir == "." {
		w.tree.refused, w.tree.unread = 0, 0
	}
	w.tree.walk(dir, func() bool { return w.ctx.Err() != nil }, found)
	w.tell(func(s *watchStatus) { s.Directories, s.Problem = len(w.tree.ignores), w.tree.problem() })
}

// catchUp reports a file that was written after since and after its trigger's last batch.
func (w *watcher) catchUp(file string, entry fs.DirEntry, since time.Time) {
	for _, p := range w.pending {
		from := p.looked
		if since.After(from) {
			from = since
		}
		if !from.IsZero() && p.wants(file) && changedSince(entry, from) {
			p.note(file, p.written(), time.Now())
		}
	}
}

// wantsDir reports whether a directory may contain files of a trigger.
func (w *watcher) wantsDir(dir string) bool {
	return dir == "." || slices.ContainsFunc(w.pending, func(p *pending) bool {
		return len(p.spec.Paths) == 0 || slices.ContainsFunc(p.spec.Paths, func(pattern string) bool { return leadsTo(dir, pattern) })
	})
}

// leadsTo reports whether a pattern may match in a directory or below it, or the directory below
// that.
func leadsTo(dir, pattern string) bool {
	pattern = strings.Trim(pattern, "/")
	fixed := pattern
	if i := strings.IndexAny(pattern, "*?[\\"); i >= 0 {
		fixed = pattern[:strings.LastIndexByte(pattern[:i], '/')+1]
		fixed = strings.TrimSuffix(fixed, "/")
	}
	return fixed == "" || dir == fixed || strings.HasPrefix(dir, fixed+"/") || strings.HasPrefix(fixed, dir+"/")
}

// take handles a notification of the system.
func (w *watcher) take(e fsnotify.Event) {
	file, inside := w.tree.relative(e.Name)
	if !inside || file == "." {
		return
	}
	if e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename) {
		if w.tree.forget(file) && !w.tree.isIgnored(file, false) {
			w.changed(file, changeDelete)
		}
		return
	}
	if !e.Has(fsnotify.Create) && !e.Has(fsnotify.Write) {
		return
	}
	info, err := os.Lstat(e.Name)
	if err != nil { // already deleted, which is notified separately
		return
	}
	switch {
	case w.tree.isIgnored(file, info.IsDir()):
	case info.IsDir():
		// Its existing content was not notified.
		w.scan(file, func(file string, _ fs.DirEntry) { w.found(file) })
	case info.Mode().IsRegular():
		w.found(file)
		if path.Base(file) == ".gitignore" {
			w.ignoreAnew(path.Dir(file))
		}
	}
}

// found reports a file that exists and was written or is new.
func (w *watcher) found(file string) {
	if w.tree.know(file) {
		w.changed(file, changeModify)
	} else {
		w.changed(file, changeCreate)
	}
}

func (w *watcher) changed(file string, kind changeKind) {
	w.tell(func(s *watchStatus) { s.Received++ })
	for _, p := range w.pending {
		if p.wants(file) {
			p.note(file, kind, time.Now())
		}
	}
}

// ignoreAnew reads a changed .gitignore and watches directories that it no longer ignores. Newly
// ignored ones stay watched, but their changes are dropped.
func (w *watcher) ignoreAnew(dir string) {
	w.scan(dir, func(file string, _ fs.DirEntry) { w.tree.know(file) })
	for below := range w.tree.ignores {
		if below != "." && w.tree.isIgnored(below, true) {
			w.tree.forget(below)
		}
	}
	w.tell(func(s *watchStatus) { s.Directories = len(w.tree.ignores) })
}

// overflowLooksBack is how far back to search for changes that the system dropped on overflow.
const overflowLooksBack = time.Minute

func (w *watcher) failed(err error) {
	if !errors.Is(err, fsnotify.ErrEventOverflow) {
		w.tell(func(s *watchStatus) { s.Problem = explain(err) })
		return
	}
	since := time.Now().Add(-overflowLooksBack)
	w.scan(".", func(file string, entry fs.DirEntry) {
		if !w.tree.know(file) {
			w.changed(file, changeCreate)
			return
		}
		w.catchUp(file, entry, since)
	})
}

// makeReady makes batches of the due changes.
func (w *watcher) makeReady(now time.Time) {
	for _, p := range w.pending {
		due := p.due()
		if due.IsZero() || due.After(now) {
			continue
		}
		if slices.ContainsFunc(w.ready, func(b changeBatch) bool { return b.ID == p.spec.ID }) {
			continue
		}
		if b, ok := p.take(); ok {
			w.ready = append(w.ready, b)
		}
	}
}

// due returns when the next batch that is not ready is due.
func (w *watcher) due() (next time.Time, any bool) {
	for _, p := range w.pending {
		if slices.ContainsFunc(w.ready, func(b changeBatch) bool { return b.ID == p.spec.ID }) {
			continue // after that is received
		}
		if due := p.due(); !due.IsZero() && (!any || due.Before(next)) {
			next, any = due, true
		}
	}
	return next, any
}

// changeKind is the kind of a file change.
type changeKind byte

// Kinds of changes.
const (
	changeCreate changeKind = iota + 1
	changeModify
	changeDelete
)

// watchSpec selects the changes for one trigger.
type watchSpec struct {
	ID         string
	Paths      []string // as in triggerconfig.Trigger
	Extensions []string
	Ignore     []string
	Kinds      []changeKind // none: all
	Debounce   time.Duration
	Since      time.Time // at the start, report files changed after it; zero: none
}

// changeBatch is the changes of one busy period. Files created and deleted within it are left out.
type changeBatch struct {
	ID          string
	First, Last time.Time // times of the first and last change
	Paths       []string  // the first of them, relative to the root, with slashes; "." if too many changed
	Count       int       // minimum number of different files
	Created     int
	Modified    int
	Deleted     int
}

const (
	mostPaths     = 100
	mostPathBytes = 16 << 10
	mostKept      = 1 << 20 // bytes of paths kept for a batch
	mostFiles     = 100_000 // files whose kind of change a batch tracks
	longestWait   = 30 * time.Second
)

var seed = maphash.MakeSeed()

func hashOf(path string) uint64 { return maphash.String(seed, path) }

// pending holds the unreported changes for a trigger. Its memory is limited, whatever the number of
// files.
type pending struct {
	spec    watchSpec
	paths   list
	ignored list
	looked  time.Time // time of the last batch

	first, last time.Time // zero: nothing is pending
	became      map[uint64]changeKind
	kept        []string // the first paths
	keptBytes   int
	more        int // changes beyond mostFiles
}

func newPending(s watchSpec) *pending {
	return &pending{spec: s, paths: parseList(s.Paths, true), ignored: parseList(s.Ignore, false), looked: s.Since}
}

// wants reports whether the trigger matches a file.
func (p *pending) wants(file string) bool {
	if len(p.spec.Extensions) > 0 && !slices.ContainsFunc(p.spec.Extensions, func(e string) bool {
		return strings.HasSuffix(
			path.Base(file), e,
		)
	}) {
		return false
	}
	if len(p.spec.Paths) > 0 && !p.paths.holds(file, false) {
		return false
	}
	return !p.ignored.holds(file, false)
}

// written returns the kind to report for a file written before the watcher started: it may have
// been created.
func (p *pending) written() changeKind {
	if len(p.spec.Kinds) > 0 && !slices.Contains(p.spec.Kinds, changeModify) && slices.Contains(p.spec.Kinds, changeCreate) {
		return changeCreate
	}
	return changeModify
}

// note adds a change.
func (p *pending) note(file string, kind changeKind, now time.Time) {
	if p.became == nil {
		p.first, p.became = now, make(map[uint64]changeKind)
	}
	p.last = now
	h := hashOf(file)
	before, known := p.became[h]
	switch {
	case !known && len(p.became) >= mostFiles:
		if p.spec.wants(kind) {
			p.more++
		}
		return
	case before == changeCreate && kind == changeDelete:
		p.became[h] = 0 // created and deleted
		return
	case before == changeCreate:
		return
	case before == changeDelete && kind == changeCreate:
		kind = changeModify // replaced
	case known && before == 0 && kind == changeDelete:
		return
	case known && before == 0:
		kind = changeCreate
	}
	p.became[h] = kind
	if !known && p.keptBytes+len(file) <= mostKept {
		p.kept, p.keptBytes = append(p.kept, file), p.keptBytes+len(file)
	}
}

// wants reports whether the trigger matches a kind; 0 is no change.
func (s watchSpec) wants(k changeKind) bool {
	return k != 0 && (len(s.Kinds) == 0 || slices.Contains(s.Kinds, k))
}

// due returns when the pending changes are due; zero: none.
func (p *pending) due() time.Time {
	if p.became == nil {
		return time.Time{}
	}
	due, latest := p.last.Add(p.spec.Debounce), p.first.Add(max(longestWait, p.spec.Debounce))
	if latest.Before(due) {
		return latest
	}
	return due
}

// take returns the pending changes as a batch; ok is false if none remain.
func (p *pending) take() (b changeBatch, ok bool) {
	b = changeBatch{ID: p.spec.ID, First: p.first, Last: p.last, Count: p.more}
	for _, kind := range p.became {
		if !p.spec.wants(kind) {
			continue
		}
		b.Count++
		switch kind {
		case changeCreate:
			b.Created++
		case changeModify:
			b.Modified++
		case changeDelete:
			b.Deleted++
		}
	}
	bytes := 0
	for _, file := range p.kept {
		if len(b.Paths) == mostPaths || bytes+len(file) > mostPathBytes {
			break
		}
		if p.spec.wants(p.became[hashOf(file)]) {
			b.Paths, bytes = append(b.Paths, file), bytes+len(file)
		}
	}
	if b.Count > 0 && len(b.Paths) == 0 {
		b.Paths = []string{"."} // some file in it
	}
	p.looked = p.last
	p.became, p.kept, p.keptBytes, p.more, p.first, p.last = nil, nil, 0, 0, time.Time{}, time.Time{}
	return b, b.Count > 0
}
