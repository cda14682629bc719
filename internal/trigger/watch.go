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

// This file tells which files of a project have changed, in batches: once nothing
// has changed any more for a while, however many there are.
//
// The system tells of directories one by one (inotify, kqueue, ReadDirectoryChangesW), so
// each is watched, and those that come are followed. Where it allows no more watches, that
// is said, and what is watched stays so.

// A notifier is what of [fsnotify.Watcher] is used.
type notifier interface {
	Add(dir string) error
	Remove(dir string) error
	Close() error
}

// system is how the system tells; a test may have another one.
type system func() (n notifier, events <-chan fsnotify.Event, errs <-chan error, err error)

func ofSystem() (notifier, <-chan fsnotify.Event, <-chan error, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil, nil, err
	}
	return w, w.Events, w.Errors, nil
}

// watchOptions say what is watched.
type watchOptions struct {
	Root    string   // of the project, absolute
	Exclude []string // directories that are never watched, absolute
	Specs   []watchSpec

	system system // nil: ofSystem
}

// A watchStatus is how it is watched.
type watchStatus struct {
	Directories int   // that are watched
	Received    int64 // changes of files that were told
	Problem     string
}

// A watcher watches until it is closed. Its methods may be called from any goroutine.
type watcher struct {
	// Batches are what has changed. A trigger has one at most that waits to be received;
	// what comes meanwhile is told with the next.
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

// startWatch watches the files that the specs are for, in a goroutine of its own. It ends with
// ctx, or by Close.
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

// Close ends the watcher and waits until it has. What was not told yet is not told.
func (w *watcher) Close() {
	w.cancel()
	w.ended.Wait()
}

// Status is how it is watched now.
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
			// What has come meanwhile may belong to what is due.
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

// scan watches a directory and what is in it, and tells how that went.
func (w *watcher) scan(dir string, found func(string, fs.DirEntry)) {
	if dir == "." {
		w.tree.refused, w.tree.unread = 0, 0
	}
	w.tree.walk(dir, func() bool { return w.ctx.Err() != nil }, found)
	w.tell(func(s *watchStatus) { s.Directories, s.Problem = len(w.tree.ignores), w.tree.problem() })
}

// catchUp tells a file that was written after a time, and after what its trigger has been
// told last.
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

// wantsDir reports whether a directory can have something in it that a trigger is for.
func (w *watcher) wantsDir(dir string) bool {
	return dir == "." || slices.ContainsFunc(w.pending, func(p *pending) bool {
		return len(p.spec.Paths) == 0 || slices.ContainsFunc(p.spec.Paths, func(pattern string) bool { return leadsTo(dir, pattern) })
	})
}

// leadsTo reports whether what a pattern is for can be in a directory or below it, or the
// directory below that.
func leadsTo(dir, pattern string) bool {
	pattern = strings.Trim(pattern, "/")
	fixed := pattern
	if i := strings.IndexAny(pattern, "*?[\\"); i >= 0 {
		fixed = pattern[:strings.LastIndexByte(pattern[:i], '/')+1]
		fixed = strings.TrimSuffix(fixed, "/")
	}
	return fixed == "" || dir == fixed || strings.HasPrefix(dir, fixed+"/") || strings.HasPrefix(fixed, dir+"/")
}

// take takes what the system tells.
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
	if err != nil { // it is gone again, which is told
		return
	}
	switch {
	case w.tree.isIgnored(file, info.IsDir()):
	case info.IsDir():
		// What is in it already was not told.
		w.scan(file, func(file string, _ fs.DirEntry) { w.found(file) })
	case info.Mode().IsRegular():
		w.found(file)
		if path.Base(file) == ".gitignore" {
			w.ignoreAnew(path.Dir(file))
		}
	}
}

// found tells a file that is there, and was written or is new.
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

// ignoreAnew heeds a .gitignore that was written: directories are watched that were not.
// Those that are ignored now stay watched, and nothing of them is told.
func (w *watcher) ignoreAnew(dir string) {
	w.scan(dir, func(file string, _ fs.DirEntry) { w.tree.know(file) })
	for below := range w.tree.ignores {
		if below != "." && w.tree.isIgnored(below, true) {
			w.tree.forget(below)
		}
	}
	w.tell(func(s *watchStatus) { s.Directories = len(w.tree.ignores) })
}

// overflowLooksBack is how long ago a change may have been of which the system did not
// tell, since there were too many.
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

// makeReady makes batches of what is due.
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

// due is when something is to be told next that is not ready.
func (w *watcher) due() (next time.Time, any bool) {
	for _, p := range w.pending {
		if slices.ContainsFunc(w.ready, func(b changeBatch) bool { return b.ID == p.spec.ID }) {
			continue // when that is received
		}
		if due := p.due(); !due.IsZero() && (!any || due.Before(next)) {
			next, any = due, true
		}
	}
	return next, any
}

// A changeKind is what has become of a file.
type changeKind byte

// Kinds of changes.
const (
	changeCreate changeKind = iota + 1
	changeModify
	changeDelete
)

// A watchSpec is what one trigger wants to know.
type watchSpec struct {
	ID         string
	Paths      []string // as of triggerconfig.Trigger
	Extensions []string
	Ignore     []string
	Kinds      []changeKind // none: all
	Debounce   time.Duration
	Since      time.Time // files that were changed after it are told from the start on; zero: none
}

// A changeBatch is what has changed until nothing changed any more. What is gone again, or
// came and went, is not in it.
type changeBatch struct {
	ID          string
	First, Last time.Time // when the first change was told, and the last
	Paths       []string  // the first of them, relative to the root, with slashes; "." where too many changed to know any
	Count       int       // at least; of different files
	Created     int
	Modified    int
	Deleted     int
}

const (
	mostPaths     = 100
	mostPathBytes = 16 << 10
	mostKept      = 1 << 20 // bytes of paths that are kept until it is known which of them are told
	mostFiles     = 100_000 // of which a batch knows what became of each
	longestWait   = 30 * time.Second
)

var seed = maphash.MakeSeed()

func hashOf(path string) uint64 { return maphash.String(seed, path) }

// A pending is what has changed for a trigger and is not told yet. Its memory is bounded,
// however many files there are.
type pending struct {
	spec    watchSpec
	paths   list
	ignored list
	looked  time.Time // when a batch was made last

	first, last time.Time // zero: nothing is pending
	became      map[uint64]changeKind
	kept        []string // the paths of the first of them
	keptBytes   int
	more        int // changes of files beyond mostFiles
}

func newPending(s watchSpec) *pending {
	return &pending{spec: s, paths: parseList(s.Paths, true), ignored: parseList(s.Ignore, false), looked: s.Since}
}

// wants reports whether the trigger is for a file.
func (p *pending) wants(file string) bool {
	if len(p.spec.Extensions) > 0 && !slices.ContainsFunc(p.spec.Extensions, func(e string) bool { return strings.HasSuffix(path.Base(file), e) }) {
		return false
	}
	if len(p.spec.Paths) > 0 && !p.paths.holds(file, false) {
		return false
	}
	return !p.ignored.holds(file, false)
}

// written is what a file is told as that was written while nobody looked: it may have been
// created.
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
		p.became[h] = 0 // it came and went
		return
	case before == changeCreate:
		return
	case before == changeDelete && kind == changeCreate:
		kind = changeModify // it was replaced
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

// wants reports whether the trigger is for what has become of a file; 0 is nothing.
func (s watchSpec) wants(k changeKind) bool {
	return k != 0 && (len(s.Kinds) == 0 || slices.Contains(s.Kinds, k))
}

// due is when what is pending is to be told; zero: nothing is.
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

// take is what is pending, which is told then; ok is false where nothing is left of it.
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
		b.Paths = []string{"."} // something in it
	}
	p.looked = p.last
	p.became, p.kept, p.keptBytes, p.more, p.first, p.last = nil, nil, 0, 0, time.Time{}, time.Time{}
	return b, b.Count > 0
}
