package trigger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/lazyregexp"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// Definitions are the triggers of the configuration, and what holds for all of them.
type Definitions struct {
	Triggers   []config.Trigger
	Automation config.Automation
}

// Changes tell whether the configuration may have changed.
type Changes interface {
	// Watch tells on changed, until stop is called. It is closed when the system cannot
	// tell any more, and nil where it never could.
	Watch() (changed <-chan struct{}, stop func())
}

// A Begin is a session that is to begin.
type Begin struct {
	Prompt, Title, Agent string
	Priority             int
	Metadata             map[string]any
	Draft                bool // it waits for a person to agree
}

// Runs is what triggers need of the life of runs. The methods with a store.Tx are part
// of the caller's change.
type Runs interface {
	// Write makes a change of the store. Its error can be told.
	Write(ctx context.Context, change func(store.Tx) error) error
	// Begin adds a run in a conversation of its own.
	Begin(t store.Tx, b Begin) (domain.Run, error)
	// Submit queues a draft, Discard gives it up.
	Submit(t store.Tx, run *domain.Run) error
	Discard(t store.Tx, run *domain.Run) error
}

// Questions asks people.
type Questions interface {
	// Propose asks a person whether something is to be done. No rule answers it.
	Propose(t store.Tx, run *domain.Run, a domain.Approval) error
}

// A Log is what has happened.
type Log interface {
	// Last is the number of the last event.
	Last() int64
	// Replay calls f with the events of some kinds that came after since, up to one,
	// until it returns false.
	Replay(ctx context.Context, kinds []domain.EventKind, since, upTo int64, f func(domain.Event, domain.Session) bool) error
}

// Options say what an Engine stands on.
type Options struct {
	Store     store.Reader
	Runs      Runs
	Questions Questions
	Log       Log
	// Definitions are those of the configuration as it is now, without what waits for
	// the user's trust. An error says why it cannot be read: then no trigger does
	// anything.
	Definitions func() (Definitions, error)
	Changes     Changes // may be nil
	Root        string  // of the project: its files are watched
	StateDir    string  // is never watched
	Logger      *slog.Logger
}

// lookBack is how far back is looked after a start for what was not seen to.
const lookBack = time.Minute

// An Engine looks for events and does what triggers want. Its methods may be called from
// any goroutine.
type Engine struct {
	opts   Options
	ctx    context.Context // ends with the engine
	end    context.CancelFunc
	tasks  background.Group
	poke   chan struct{} // something has happened, or may have changed
	sender *sender

	// Of the goroutine that looks, and nobody else:
	begun    time.Time            // when the engine was started
	followed int64                // the last event of the log that was looked at
	known    map[string]time.Time // since when a trigger is known, by id
	due      map[string]*dueTime  // by id of the trigger
	changed  <-chan struct{}      // the configuration has changed
	unwatch  func()
	watching []config.Trigger
	batches  <-chan changeBatch
	unseen   []changeBatch // that could not be seen to yet; a trigger has few

	mu      sync.Mutex // guards the fields below
	started bool
	wants   []domain.EventKind // of the log; nil: nothing of it is of interest
	active  []config.Trigger
	problem string // why no trigger does anything, or ""
	fired   map[string]time.Time
	watcher *watcher // nil: nothing is watched
	watched []string // paths
}

// New makes an engine that does nothing before Start. It ends with ctx, or by Close.
func New(ctx context.Context, opts Options) *Engine {
	e := &Engine{
		opts: opts, poke: make(chan struct{}, 1), known: make(map[string]time.Time), due: make(map[string]*dueTime),
		fired: make(map[string]time.Time), unwatch: func() {},
	}
	e.ctx, e.end = context.WithCancel(ctx)
	return e
}

// Close ends the engine. What it was about to do it does after the next start, but for
// what was being sent. The error is that of ctx if that ends first.
func (e *Engine) Close(ctx context.Context) error {
	e.end()
	return e.tasks.Close(ctx)
}

// Look has the engine look at the configuration again. It does not wait for that.
func (e *Engine) Look() {
	select {
	case e.poke <- struct{}{}:
	default:
	}
}

// Committed is told what was added to the log. It does not block.
func (e *Engine) Committed(events []domain.Event) {
	e.mu.Lock()
	wants, started := e.wants, e.started
	e.mu.Unlock()
	if started && slices.ContainsFunc(events, func(ev domain.Event) bool {
		kind := ev.Payload.Kind()
		// The configuration is not watched while there is no trigger, so it is looked at
		// when something is done.
		return kind == domain.EventRunState || slices.Contains(wants, kind)
	}) {
		e.Look()
	}
}

func (e *Engine) warn(err error, what, trigger string) {
	if err == nil || errors.Is(err, context.Canceled) || e.opts.Logger == nil {
		return
	}
	e.opts.Logger.Warn(what, "trigger", trigger, "err", err)
}

// definition is a trigger that is active by the configuration as it is now: trust may
// have been taken back a moment ago.
func (e *Engine) definition(id string) (config.Trigger, config.Automation, bool) {
	now, err := e.opts.Definitions()
	if err != nil {
		return config.Trigger{}, config.Automation{}, false
	}
	for _, t := range now.Triggers {
		if t.ID == id {
			return t, now.Automation, true
		}
	}
	return config.Trigger{}, now.Automation, false
}

func isEnabled(t config.Trigger, state domain.TriggerState) bool {
	if state.Enabled != nil {
		return *state.Enabled
	}
	return t.Enabled
}

// An Event is something that happened and that triggers may be for.
type Event struct {
	Type    string // such as run.failed
	Source  string // watch, schedule, run or approval
	Time    time.Time
	Payload map[string]any // values as of encoding/json, and slices of strings

	key        string // by which it is known again: a trigger does something for it once
	of         string // the one trigger that it is for, or "": all
	depth      int    // how many executions of triggers led to it
	restricted bool   // it is of a run that is for somebody who does not trust the workspace
}

// members are what conditions and templates see of an event.
func (e Event) members() map[string]any {
	return map[string]any{"type": e.Type, "source": e.Source, "timestamp": e.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00"), "payload": e.Payload}
}

// JSON is the event as an object.
func (e Event) JSON() json.RawMessage {
	text, err := json.Marshal(e.members())
	if err != nil {
		return json.RawMessage("{}")
	}
	return text
}

// member looks a value up by a path such as payload.paths.0. It is nil where there is
// none.
func (e Event) member(path string) any {
	var at any = e.members()
	for name := range strings.SplitSeq(path, ".") {
		switch in := at.(type) {
		case map[string]any:
			at = in[name]
		case []any:
			at = item(in, name)
		case []string:
			at = item(in, name)
		default:
			return nil
		}
	}
	return at
}

func item[T any](list []T, index string) any {
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}

var placeholder = lazyregexp.New(`\{\{\s*([\w.-]+)\s*\}\}`)

// mostRendered is how long a text becomes at most, in bytes.
const mostRendered = 64 << 10

// render puts members of an event in the place of {{their.path}}. What the event has
// not stays as it is written.
func render(template string, e Event) string {
	text := placeholder().ReplaceAllStringFunc(template, func(found string) string {
		value := e.member(placeholder().FindStringSubmatch(found)[1])
		switch value := value.(type) {
		case nil:
			return found
		case string:
			return value
		case []string:
			return strings.Join(value, ", ")
		case map[string]any, []any:
			text, _ := json.Marshal(value)
			return string(text)
		}
		return fmt.Sprint(value)
	})
	return cut(text, mostRendered)
}

// cut is the beginning of a text, at most so many bytes of it, and whole characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Start begins to look for events.
func (e *Engine) Start() {
	e.begun = time.Now()
	e.mu.Lock()
	e.started = true
	e.mu.Unlock()
	e.sender = newSender(e.ctx, &e.tasks, e.noteSent)
	e.tasks.Go(e.look)
}

// tryAgainAfter is when what could not be written down is seen to again.
const tryAgainAfter = 5 * time.Second

// look looks until the engine ends.
func (e *Engine) look() {
	defer func() { e.unwatch() }()
	defer e.stopWatching()
	first := true
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for e.ctx.Err() == nil {
		e.refresh(first)
		if first {
			e.giveUpSending(e.ctx)
			first = false
		}
		e.settle(e.ctx)
		seen := e.follow(e.ctx)
		e.unseen = slices.DeleteFunc(e.unseen, func(b changeBatch) bool { return e.fireBatch(e.ctx, b) })
		wait, waits := e.fireDue(e.ctx, time.Now())
		if !seen || len(e.unseen) > 0 {
			wait, waits = min(wait, tryAgainAfter), true
		}
		if waits {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-e.ctx.Done():
		case <-e.poke:
		case <-timer.C:
		case _, ok := <-e.changed:
			if !ok {
				e.changed = nil
			}
		case b := <-e.batches:
			e.unseen = append(e.unseen, b)
		}
	}
}

// refresh takes what the configuration says now, and what people have switched.
func (e *Engine) refresh(first bool) {
	now, err := e.opts.Definitions()
	problem := ""
	if err != nil {
		now, problem = Definitions{}, "the configuration cannot be read, so no trigger does anything: "+err.Error()
	}
	on, err := e.enabled(e.ctx, e.opts.Store)
	if err != nil {
		problem = cmp.Or(problem, err.Error())
	}
	var active []config.Trigger
	for _, t := range now.Triggers {
		state, err := e.opts.Store.TriggerState(e.ctx, t.ID)
		if err != nil || !on || !isEnabled(t, state) {
			continue
		}
		active = append(active, t)
		if _, seen := e.known[t.ID]; !seen {
			e.meet(t, state, first)
		}
	}
	for id := range e.known {
		if !slices.ContainsFunc(active, func(t config.Trigger) bool { return t.ID == id }) {
			delete(e.known, id) // when it comes back, it is as one that is new
		}
	}
	e.mu.Lock()
	unchanged := !first && reflect.DeepEqual(active, e.active)
	if e.problem != problem && problem != "" && e.opts.Logger != nil {
		e.opts.Logger.Warn("automation stands still", "err", problem)
	}
	e.active, e.problem = active, problem
	e.wants = []domain.EventKind{domain.EventApprovalResolved}
	if slices.ContainsFunc(active, config.Trigger.FollowsRuns) {
		e.wants = followedKinds
	}
	e.mu.Unlock()
	if len(now.Triggers) > 0 && e.changed == nil && e.opts.Changes != nil {
		e.changed, e.unwatch = e.opts.Changes.Watch()
	} else if len(now.Triggers) == 0 && e.changed != nil && problem == "" {
		e.unwatch()
		e.changed, e.unwatch = nil, func() {}
	}
	if unchanged {
		return
	}
	e.schedule(active)
	e.watch(active)
}

// meet notes since when a trigger is known: what happened before is not for it.
func (e *Engine) meet(t config.Trigger, state domain.TriggerState, first bool) {
	now := time.Now()
	if first {
		now = e.begun // what has happened while this goroutine was starting is for it
	}
	if state.Looked.IsZero() {
		state.Looked = now
		err := e.opts.Runs.Write(e.ctx, func(tx store.Tx) error {
			kept, err := tx.TriggerState(e.ctx, t.ID)
			if err != nil {
				return err
			}
			kept.Looked = now
			return tx.PutTriggerState(kept)
		})
		e.warn(err, "a trigger is not known to the database yet", t.ID)
	}
	since := now.Add(-lookBack)
	if state.Looked.After(since) {
		since = state.Looked
	}
	e.known[t.ID] = since
}
