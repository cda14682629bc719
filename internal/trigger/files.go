package trigger

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// kindsOf are the types of events and what they are called where files are watched.
var kindsOf = map[string]changeKind{config.FileCreate: changeCreate, config.FileModify: changeModify, config.FileDelete: changeDelete}

// specOf is what a trigger wants to know of files.
func specOf(t config.Trigger, since time.Time) watchSpec {
	spec := watchSpec{ID: t.ID, Paths: t.Paths, Extensions: t.Extensions, Ignore: t.Ignore, Debounce: t.Debounce, Since: since}
	for name, kind := range kindsOf {
		if t.FitsType(name, config.SourceWatch) {
			spec.Kinds = append(spec.Kinds, kind)
		}
	}
	return spec
}

// watch watches what the triggers that are active are for, and nothing where none is for
// files. It belongs to the goroutine that looks.
func (e *Engine) watch(active []config.Trigger) {
	var watching []config.Trigger
	var specs []watchSpec
	var paths []string
	for _, t := range active {
		if !t.Watches() {
			continue
		}
		watching = append(watching, t)
		specs = append(specs, specOf(t, e.known[t.ID]))
		if len(t.Paths) == 0 {
			paths = append(paths, ".")
		}
		paths = append(paths, t.Paths...)
	}
	if reflect.DeepEqual(watching, e.watching) {
		return
	}
	e.stopWatching()
	if e.watching = watching; len(specs) == 0 {
		return
	}
	w := startWatch(e.ctx, watchOptions{Root: e.opts.Root, Exclude: []string{e.opts.StateDir}, Specs: specs})
	e.batches = w.Batches
	e.mu.Lock()
	e.watcher, e.watched = w, paths
	e.mu.Unlock()
}

func (e *Engine) stopWatching() {
	e.mu.Lock()
	w := e.watcher
	e.watcher, e.watched = nil, nil
	e.mu.Unlock()
	if w != nil {
		w.Close()
		// What was pending is looked for by those that come after it.
		for _, t := range e.watching {
			since := time.Now().Add(-lookBack)
			if state, err := e.opts.Store.TriggerState(e.ctx, t.ID); err == nil && state.Looked.After(since) {
				since = state.Looked
			}
			if e.known[t.ID].Before(since) {
				e.known[t.ID] = since
			}
		}
	}
	e.batches, e.watching = nil, nil
}

// fireBatch does what a trigger wants for files that have changed, and reports whether it
// was seen to.
func (e *Engine) fireBatch(ctx context.Context, b changeBatch) (seen bool) {
	depth, err := e.depthOfChanges(ctx, b)
	if err != nil {
		e.warn(err, "what sessions work cannot be read", b.ID)
	}
	seen = true
	event := eventOfBatch(b, depth)
	for _, t := range e.watching {
		if t.ID == b.ID {
			if t.Type != "" {
				event.Type = t.Type // others are not in the batch
				event.Payload["event_type"] = t.Type[len("file."):]
			}
			err := e.consider(ctx, t, event)
			e.warn(err, "a trigger has failed", t.ID)
			seen = seen && err == nil
		}
	}
	return seen
}

func eventOfBatch(b changeBatch, depth int) Event {
	kind := config.FileModify
	switch {
	case b.Modified == 0 && b.Deleted == 0:
		kind = config.FileCreate
	case b.Modified == 0 && b.Created == 0:
		kind = config.FileDelete
	}
	return Event{
		Type: kind, Source: config.SourceWatch, Time: b.Last, of: b.ID, depth: depth, key: fmt.Sprintf("files:%d", b.Last.UnixNano()),
		Payload: map[string]any{
			"path": b.Paths[0], "paths": b.Paths, "count": b.Count, "truncated": b.Count > len(b.Paths), "event_type": kind[len("file."):],
			"created": b.Created, "modified": b.Modified, "deleted": b.Deleted,
		},
	}
}

// mayStillWrite is how long after the end of a session a change of a file is told that it
// has made.
const mayStillWrite = 2 * time.Second

// depthOfChanges is that of the sessions begun by triggers that were at work while the
// files were changed: nobody tells who has written a file.
func (e *Engine) depthOfChanges(ctx context.Context, b changeBatch) (depth int, err error) {
	working, err := e.opts.Store.RunsIn(ctx, domain.Starting, domain.Running, domain.WaitingInput, domain.Interrupting)
	if err != nil {
		return 0, err
	}
	ended, err := e.opts.Store.Sessions(ctx, domain.RunFilter{Source: domain.SourceTrigger, Limit: 50})
	if err != nil {
		return 0, err
	}
	for _, s := range ended {
		working = append(working, s.Run)
	}
	for _, run := range working {
		began := !run.Started.IsZero() && !run.Started.After(b.Last)
		over := !run.Ended.IsZero() && run.Ended.Add(mayStillWrite).Before(b.First)
		if began && !over {
			depth = max(depth, depthOf(run))
		}
	}
	return depth, nil
}
