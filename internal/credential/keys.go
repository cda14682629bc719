package credential

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/catalog"
	"github.com/duet-rpc/duet-rpc/internal/config"
	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/redact"
)

const (
	// keepIdle is how long the keys of a thread are known after anything was
	// heard of it: far longer than an agent lives that has nothing to do.
	keepIdle = 15 * time.Minute
	// mostIdle is of how many threads that have nothing to do keys are known.
	mostIdle = 1000
)

// Runs finds runs.
type Runs interface {
	// SessionOf is a run by its row.
	SessionOf(ctx context.Context, run int64) (domain.Session, error)
}

// An Asker asks subscribers.
type Asker interface {
	// Ask tells subscribers an event that the log does not keep, those that come before it is
	// withdrawn, too. heard is closed when the first one is told.
	Ask(domain.Event) (heard <-chan struct{}, withdraw func())
}

// Options are what Keys need. All but Logger are required.
type Options struct {
	Tokens *Tokens
	Runs   Runs
	Events Asker
	// Configured are the keys that the configuration has for a run, by service.
	Configured func(domain.Run) map[string]config.Key
	Getenv     func(string) string
	// NoteAccess keeps that the key of a service was asked for. outcome is in
	// words, and never has the key.
	NoteAccess func(ctx context.Context, run int64, service, outcome string) error
	Logger     *slog.Logger
}

// Keys gets API keys for agents, and knows those that it has handed out, by
// thread: an agent lives longer than a run. Its methods may be called from any
// goroutine.
type Keys struct {
	opts Options

	mu       sync.Mutex // guards the fields below
	threads  map[int64]*threadKeys
	expiry   *time.Timer            // calls expire; nil while nothing waits for it
	requests map[string]chan string // for keys, that wait for a person
	closed   bool
}

// threadKeys are those that agents of a thread were given.
type threadKeys struct {
	secrets *redact.Secrets
	runs    int // that are live
	used    time.Time
}

// NewKeys makes an owner of keys, to be ended by Close.
func NewKeys(opts Options) *Keys {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Keys{opts: opts, threads: make(map[int64]*threadKeys), requests: make(map[string]chan string)}
}

// Close ends what goes on by itself: keys that are known stay so.
func (k *Keys) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.expiry != nil {
		k.expiry.Stop()
	}
}

// Hold is Of for a run of the thread, which calls Release when it has ended and
// all that it reported was taken in: until then its keys are known.
func (k *Keys) Hold(thread int64) *redact.Secrets {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := k.entry(thread)
	keys.runs++
	return keys.secrets
}

// Release is the end of a Hold.
func (k *Keys) Release(thread int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := k.entry(thread)
	keys.runs--
	switch {
	case keys.runs > 0:
	case keys.secrets.None():
		delete(k.threads, thread)
	default:
		k.expire(time.Now())
	}
}

// add notes that an agent of a thread was given a key.
func (k *Keys) add(thread int64, key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := k.entry(thread)
	keys.secrets.Add(key)
	if keys.runs == 0 {
		k.expire(time.Now())
	}
}

// Of are the keys that agents of a thread were given. Those that they are given
// later are added to it while a run holds them.
func (k *Keys) Of(thread int64) *redact.Secrets {
	k.mu.Lock()
	defer k.mu.Unlock()
	if keys := k.threads[thread]; keys != nil {
		keys.used = time.Now()
		return keys.secrets
	}
	return &redact.Secrets{}
}

// entry is a thread's, which is made if need be; k.mu is held.
func (k *Keys) entry(thread int64) *threadKeys {
	keys := k.threads[thread]
	if keys == nil {
		keys = &threadKeys{secrets: &redact.Secrets{}}
		k.threads[thread] = keys
	}
	keys.used = time.Now()
	return keys
}

// expire forgets the keys of threads that have had nothing to do for long, or
// longer than many others, and sees to it that it is called when the next are due;
// k.mu is held.
func (k *Keys) expire(now time.Time) {
	var idle []int64
	for thread, keys := range k.threads {
		switch {
		case keys.runs > 0:
		case now.Sub(keys.used) >= keepIdle:
			delete(k.threads, thread)
		default:
			idle = append(idle, thread)
		}
	}
	byUse := func(a, b int64) int { return k.threads[a].used.Compare(k.threads[b].used) }
	if len(idle) > mostIdle {
		slices.SortFunc(idle, byUse)
		for _, thread := range idle[:len(idle)-mostIdle] {
			delete(k.threads, thread)
		}
		idle = idle[len(idle)-mostIdle:]
	}
	if k.expiry != nil {
		k.expiry.Stop()
		k.expiry = nil
	}
	if len(idle) > 0 && !k.closed {
		longest := k.threads[slices.MinFunc(idle, byUse)]
		k.expiry = time.AfterFunc(longest.used.Add(keepIdle).Sub(now), func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.expire(time.Now())
		})
	}
}

// WithoutKeys is a question without the keys that agents of the thread were
// given.
func (k *Keys) WithoutKeys(p catalog.RequestPermissionParams, thread int64) catalog.RequestPermissionParams {
	s := k.Of(thread)
	if s.None() {
		return p
	}
	p.ToolInput, p.ToolParams, p.Title, p.Plan = s.JSON(p.ToolInput), s.JSON(p.ToolParams), s.Piece(p.Title), s.Piece(p.Plan)
	if e := p.Elicitation; e != nil {
		p.Elicitation = &catalog.Elicitation{Mode: e.Mode, Schema: s.JSON(e.Schema), URL: s.Piece(e.URL), ID: e.ID}
	}
	p.Diffs = slices.Clone(p.Diffs)
	for i, d := range p.Diffs {
		if d.OldText != nil {
			old := s.Text(*d.OldText)
			d.OldText = &old
		}
		d.NewText = s.Text(d.NewText)
		p.Diffs[i] = d
	}
	return p
}
