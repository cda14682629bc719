// Package trigger runs configured actions for events: file changes, times, ends of turns, and
// questions.
//
// A trigger acts at most once for an event, even after a crash: the transaction that begins the
// session stores a row with trigger and event as its key. See docs/automation.md for missed events
// after a start.
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

// Definitions are the configured triggers and their common settings.
type Definitions struct {
	Triggers   []config.Trigger
	Automation config.Automation
}

// Changes reports possible configuration changes.
type Changes interface {
	// Watch signals changed until stop is called. changed is closed when the system can no longer
	// notify, and nil if it never could.
	Watch() (changed <-chan struct{}, stop func())
}

// Begin describes a new session.
type Begin struct {
	Prompt, Title, Agent string
	Priority             int
	Metadata             map[string]any
	Draft                bool // waits for a person's approval
}

// Turns is the engine's access to turns. Methods with a store.Tx are part of the caller's
// transaction.
type Turns interface {
	// Write runs a transaction. Its error is safe to show to clients.
	Write(ctx context.Context, change func(store.Tx) error) error
	// Begin adds a turn in a new session.
	Begin(t store.Tx, b Begin) (domain.Turn, error)
	// Submit queues a draft, Discard cancels it.
	Submit(t store.Tx, turn *domain.Turn) error
	Discard(t store.Tx, turn *domain.Turn) error
}

// Questions asks people.
type Questions interface {
	// Propose asks a person to approve an action. No rule answers it.
	Propose(t store.Tx, turn *domain.Turn, a domain.Approval) error
}

// Log is the event log.
type Log interface {
	// Last returns the number of the last event.
	Last() int64
	// Replay calls f with the events of some kinds after since, up to upTo, until f returns false.
	Replay(ctx context.Context, kinds []domain.EventKind, since, upTo int64, f func(domain.Event, domain.TurnInSession) bool) error
}

// Options configure an Engine.
type Options struct {
	Store     store.Reader
	Turns     Turns
	Questions Questions
	Log       Log
	// Definitions returns the current configuration, without untrusted triggers. If it returns an
	// error, no trigger acts.
	Definitions func() (Definitions, error)
	Changes     Changes // may be nil
	Root        string  // project root; its files are watched
	StateDir    string  // never watched
	Logger      *slog.Logger
}

// lookBack is how far back the engine searches for missed events after a start.
const lookBack = time.Minute

// Engine detects events and runs the actions of triggers. Its methods may be called from any
// goroutine.
type Engine struct {
	opts   Options
	ctx    context.Context // ends with the engine
	end    context.CancelFunc
	tasks  background.Group
	poke   chan struct{} // signals an event or a possible change
	sender *sender

	// Only the engine's goroutine uses:
	begun    time.Time            // start of the engine
	before   int64                // last event of the log at the start
	followed int64                // last processed event of the log
	known    map[string]time.Time // first sight of each trigger, by id
	due      map[string]*dueTime  // by trigger id
	changed  <-chan struct{}      // the configuration has changed
	unwatch  func()
	watching []config.Trigger
	batches  <-chan changeBatch
	unseen   []changeBatch // not handled yet; few per trigger

	mu      sync.Mutex // guards the fields below
	started bool
	wants   []domain.EventKind // kinds of log events that triggers need; nil: none
	active  []config.Trigger
	problem string // why no trigger acts, or ""
	fired   map[string]time.Time
	watcher *watcher // nil: no files are watched
	watched []string // paths
}

// New returns an engine that does nothing before Start. It ends with ctx, or by Close.
func New(ctx context.Context, opts Options) *Engine {
	e := &Engine{
		opts: opts, poke: make(chan struct{}, 1), known: make(map[string]time.Time), due: make(map[string]*dueTime),
		fired: make(map[string]time.Time), unwatch: func() {},
	}
	e.ctx, e.end = context.WithCancel(ctx)
	return e
}

// Close ends the engine. The next start performs pending actions, except events being sent. The
// error is that of ctx if that ends first.
func (e *Engine) Close(ctx context.Context) error {
	e.end()
	return e.tasks.Close(ctx)
}

// Look makes the engine read the configuration again, without waiting.
func (e *Engine) Look() {
	select {
	case e.poke <- struct{}{}:
	default:
	}
}

// Committed handles new events of the log. It does not block.
func (e *Engine) Committed(events []domain.Event) {
	e.mu.Lock()
	wants, started := e.wants, e.started
	e.mu.Unlock()
	if started && slices.ContainsFunc(events, func(ev domain.Event) bool {
		kind := ev.Payload.Kind()
		// Without triggers the configuration is not watched, so state changes of turns cause a
		// check.
		return kind == domain.EventTurnState || slices.Contains(wants, kind)
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

// definition returns an active trigger by the current configuration, because trust may just have
// been revoked.
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

// Event is an event that triggers may match.
type Event struct {
	Type    string // such as turn.failed
	Source  string // watch, schedule, run or approval
	Time    time.Time
	Payload map[string]any // values as in encoding/json, and slices of strings

	key        string // identifies the event: a trigger acts once for it
	of         string // the only trigger that it is for, or "": all
	depth      int    // number of trigger executions that led to it
	restricted bool   // from a turn for a client that does not trust the workspace
}

// members returns the event as conditions and templates see it.
func (e Event) members() map[string]any {
	return map[string]any{
		"type": e.Type, "source": e.Source, "timestamp": e.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00"), "payload": e.Payload,
	}
}

// JSON returns the event as an object.
func (e Event) JSON() json.RawMessage {
	text, err := json.Marshal(e.members())
	if err != nil {
		return json.RawMessage("{}")
	}
	return text
}

// member looks up a value by a path such as payload.paths.0. It returns nil if none exists.
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

// mostRendered limits a rendered text, in bytes.
const mostRendered = 64 << 10

// render replaces {{path}} with members of an event. It keeps unknown paths.
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

// cut truncates a text to at most that many bytes, at a character boundary.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Start begins to process events.
func (e *Engine) Start() {
	e.begun, e.before = time.Now(), e.opts.Log.Last()
	e.mu.Lock()
	e.started = true
	e.mu.Unlock()
	e.sender = newSender(e.ctx, &e.tasks, e.noteSent)
	e.tasks.Go(e.look)
}

// tryAgainAfter is the delay before an event that could not be stored is retried.
const tryAgainAfter = 5 * time.Second

// look processes events until the engine ends.
func (e *Engine) look() {
	defer func() { e.unwatch() }()
	defer e.stopWatching()
	first := true
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for e.ctx.Err() == nil {
		e.followClock(time.Now())
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

// refresh reads the current configuration and the switches of triggers.
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
			delete(e.known, id) // if it returns, it counts as new
		}
	}
	e.mu.Lock()
	unchanged := !first && reflect.DeepEqual(active, e.active)
	if e.problem != problem && problem != "" && e.opts.Logger != nil {
		e.opts.Logger.Warn("automation does not run", "err", problem)
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

// meet records when a trigger was first seen: earlier events are not for it.
func (e *Engine) meet(t config.Trigger, state domain.TriggerState, first bool) {
	now := time.Now()
	if first {
		now = e.begun // includes events during the start of this goroutine
	}
	if state.Looked.IsZero() {
		state.Looked = now
		err := e.opts.Turns.Write(e.ctx, func(tx store.Tx) error {
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
	if since.After(now) { // the clock was set back
		since = now
	}
	e.known[t.ID] = since
}

// followClock lets the triggers take events again after the clock was set back to before they were
// first seen.
func (e *Engine) followClock(now time.Time) {
	for id, since := range e.known {
		if since.After(now) {
			e.known[id] = now.Add(-lookBack)
		}
	}
}
