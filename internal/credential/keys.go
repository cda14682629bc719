// Package credential manages the credentials of executors: session tokens, with which they act for
// turns ([Tokens]), and API keys for their agents ([Keys]).
//
// Both are kept in memory only. A token is stored as a hash, and is valid until its turn ends. A key
// is remembered as long as an agent may have it, to redact it from that agent's output. The
// database records requests for keys, never the keys.
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
	// keepIdle is how long the keys of an idle session are remembered: far longer than an idle agent
	// lives.
	keepIdle = 15 * time.Minute
	// mostIdle limits the idle sessions with remembered keys.
	mostIdle = 1000
)

// Turns finds turns.
type Turns interface {
	// TurnOf returns a turn by its row.
	TurnOf(ctx context.Context, turn int64) (domain.TurnInSession, error)
}

// Asker sends requests to subscribers.
type Asker interface {
	// Ask sends an event that the log does not store to current subscribers, and to those that
	// arrive before it is withdrawn. heard is closed when the first subscriber gets it.
	Ask(domain.Event) (heard <-chan struct{}, withdraw func())
}

// Options configure Keys. All but Logger are required.
type Options struct {
	Tokens *Tokens
	Turns  Turns
	Events Asker
	// Configured returns the configured keys for a turn, by service.
	Configured func(domain.Turn) map[string]config.Key
	// Getenv returns a variable of the client that launched a turn, or else of this process.
	Getenv func(turn int64) func(name string) string
	// NoteAccess records a request for a service's key. outcome is text and never contains the key.
	NoteAccess func(ctx context.Context, turn int64, service, outcome string) error
	Logger     *slog.Logger
}

// Keys provides API keys for agents, and remembers them by session, because an agent outlives a turn.
// Its methods may be called from any goroutine.
type Keys struct {
	opts Options

	mu       sync.Mutex // guards the fields below
	sessions map[int64]*sessionKeys
	expiry   *time.Timer            // calls expire; nil if none is due
	requests map[string]chan string // open requests to people
	closed   bool
}

// sessionKeys are the keys of a session's agents.
type sessionKeys struct {
	secrets *redact.Secrets
	turns   int // active turns
	used    time.Time
}

// NewKeys returns Keys; end them with Close.
func NewKeys(opts Options) *Keys {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Keys{opts: opts, sessions: make(map[int64]*sessionKeys), requests: make(map[string]chan string)}
}

// Close stops the expiry; remembered keys stay.
func (k *Keys) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.expiry != nil {
		k.expiry.Stop()
	}
}

// Hold is Of for a turn of the session, and keeps its keys remembered. The caller must call Release
// when the turn has ended and all its reports are handled.
func (k *Keys) Hold(session int64) *redact.Secrets {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := k.entry(session)
	keys.turns++
	return keys.secrets
}

// Release ends a Hold.
func (k *Keys) Release(session int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := k.entry(session)
	keys.turns--
	switch {
	case keys.turns > 0:
	case keys.secrets.None():
		delete(k.sessions, session)
	default:
		k.expire(time.Now())
	}
}

// Remember adds the keys that a session's agent gets by its environment.
func (k *Keys) Remember(session int64, keys []string) {
	for _, key := range keys {
		k.add(session, key)
	}
}

// add remembers a key of a session's agent.
func (k *Keys) add(session int64, key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := k.entry(session)
	keys.secrets.Add(key)
	if keys.turns == 0 {
		k.expire(time.Now())
	}
}

// Of returns the keys of a session's agents. Later keys are added to it while a turn holds them.
func (k *Keys) Of(session int64) *redact.Secrets {
	k.mu.Lock()
	defer k.mu.Unlock()
	if keys := k.sessions[session]; keys != nil {
		keys.used = time.Now()
		return keys.secrets
	}
	return &redact.Secrets{}
}

// entry returns a session's entry, and creates it if necessary; k.mu is held.
func (k *Keys) entry(session int64) *sessionKeys {
	keys := k.sessions[session]
	if keys == nil {
		keys = &sessionKeys{secrets: &redact.Secrets{}}
		k.sessions[session] = keys
	}
	keys.used = time.Now()
	return keys
}

// expire drops the keys of sessions that have been idle too long, or beyond the limit, and schedules
// the next expiry; k.mu is held.
func (k *Keys) expire(now time.Time) {
	var idle []int64
	for session, keys := range k.sessions {
		switch {
		case keys.turns > 0:
		case now.Sub(keys.used) >= keepIdle:
			delete(k.sessions, session)
		default:
			idle = append(idle, session)
		}
	}
	byUse := func(a, b int64) int { return k.sessions[a].used.Compare(k.sessions[b].used) }
	if len(idle) > mostIdle {
		slices.SortFunc(idle, byUse)
		for _, session := range idle[:len(idle)-mostIdle] {
			delete(k.sessions, session)
		}
		idle = idle[len(idle)-mostIdle:]
	}
	if k.expiry != nil {
		k.expiry.Stop()
		k.expiry = nil
	}
	if len(idle) > 0 && !k.closed {
		longest := k.sessions[slices.MinFunc(idle, byUse)]
		k.expiry = time.AfterFunc(longest.used.Add(keepIdle).Sub(now), func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.expire(time.Now())
		})
	}
}

// WithoutKeys redacts the keys of the session's agents in a question.
func (k *Keys) WithoutKeys(p catalog.RequestPermissionParams, session int64) catalog.RequestPermissionParams {
	s := k.Of(session)
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
