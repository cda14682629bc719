package store

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// This file knows how the store of a process is: whether its disk is full,
// whether its files are still there, and whether a part of it cannot be read. It
// keeps a reserve on the disk, which is given up when that is full, and tells what
// is wrong, as `health` shows it.

// A Monitored is what is watched; see [Store].
type Monitored interface {
	Valid() error
	FreeBytes() int64
}

// MonitorOptions configure a Monitor. The functions may be nil and must not block; writers call
// them.
type MonitorOptions struct {
	Database string // the store's path: the reserve lies beside it
	// Removed, if set, receives a value when the database, or what the store's Valid checks, may
	// have been removed or replaced. Otherwise the monitor polls each second.
	Removed <-chan struct{}
	Full    func(cause error) // each time that there was no room for a change
	Room    func()            // once there is room again
	Lost    func(cause error) // called once: writes are lost
	Logger  *slog.Logger
}

// A Monitor watches one store. Its methods may be called from any goroutine, and
// whatever locks are held.
type Monitor struct {
	opts    MonitorOptions
	reserve reserve
	ctx     context.Context // ends with the monitor
	cancel  context.CancelFunc
	tasks   background.Group

	mu          sync.Mutex // guards the fields below
	store       Monitored
	full        bool
	changed     chan struct{} // while full: closed when a change was kept
	lost        bool
	damaged     bool
	reportsLost bool
	closing     bool
}

// NewMonitor makes a monitor of a store that is still to be opened, see Watch. It is to
// be ended by Close.
func NewMonitor(opts MonitorOptions) *Monitor {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Monitor{opts: opts, reserve: reserve{path: reservePath(opts.Database)}, changed: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Opened names the store.
func (m *Monitor) Opened(s Monitored) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store = s
}

// Watch begins to watch the store, which was opened. full says that its disk was
// full, so that the reserve was given up; else the reserve is set aside.
func (m *Monitor) Watch(full bool) {
	if full {
		m.setFull()
	} else {
		m.tasks.Go(m.reserve.hold) // it takes as long as the disk does
	}
	m.tasks.Go(m.watch)
}

// Close ends the monitor's goroutines, and waits for them until ctx ends. Afterwards Lost is not
// called.
func (m *Monitor) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closing = true
	m.mu.Unlock()
	m.cancel()
	return m.tasks.Close(ctx)
}

// Note takes how a change of the store ended; nil is well.
func (m *Monitor) Note(err error) {
	switch {
	case err == nil:
		m.kept()
	case IsFull(err):
		m.NoRoom(err)
	case IsLost(err):
		m.noteLost(err)
	}
}

// NoRoom takes that there was no room for a change.
func (m *Monitor) NoRoom(err error) {
	m.setFull()
	if m.opts.Full != nil {
		m.opts.Full(err)
	}
}

func (m *Monitor) setFull() {
	m.mu.Lock()
	m.full = true
	m.mu.Unlock()
	m.reserve.release()
}

// enough is how much room there must be before a reserve is set aside again, in
// bytes.
const enough = 8 * reserveBytes

// kept takes that a change was kept. After the disk was full that may mean that
// there is room again.
func (m *Monitor) kept() {
	m.mu.Lock()
	if !m.full {
		m.mu.Unlock()
		return
	}
	close(m.changed)
	m.changed = make(chan struct{})
	m.mu.Unlock()
	if m.store.FreeBytes() < enough {
		return
	}
	m.mu.Lock()
	again := m.full
	m.full = false
	m.mu.Unlock()
	if !again {
		return // another has noticed it
	}
	m.reserve.hold()
	if m.opts.Room != nil {
		m.opts.Room()
	}
}

// retryEvery is how often it is tried whether a full disk has room again for
// what has to be kept: nothing tells of that.
const retryEvery = time.Second

// AwaitRoom waits until it is worth trying again to keep something for which
// there was no room: until another change was kept, or for a second. It returns
// early, with an error, when ctx ends.
func (m *Monitor) AwaitRoom(ctx context.Context) error {
	m.mu.Lock()
	changed := m.changed
	m.mu.Unlock()
	timer := time.NewTimer(retryEvery)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// Damaged records a read error of a damaged store. The first one is logged.
func (m *Monitor) Damaged(err error) {
	m.mu.Lock()
	first := !m.damaged
	m.damaged = true
	m.mu.Unlock()
	if first {
		m.opts.Logger.Error(TextDamaged, "err", err)
	}
}

// ReportsLost takes that events of agents could not be kept, for another reason
// than that there was no room.
func (m *Monitor) ReportsLost(error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reportsLost = true
}

// Lost reports whether writes are lost.
func (m *Monitor) Lost() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// noteLost reports once that writes are lost.
func (m *Monitor) noteLost(err error) {
	m.mu.Lock()
	first := !m.lost && !m.closing
	m.lost = true
	m.mu.Unlock()
	if !first {
		return
	}
	m.opts.Logger.Error(textLost, "err", err)
	if m.opts.Lost != nil {
		m.opts.Lost(err)
	}
}

// lookEvery is how often it is looked whether the store is still there, where
// nothing tells that and nothing is written.
const lookEvery = time.Second

// watch looks whether the store is still there, until it is not.
func (m *Monitor) watch() {
	var look <-chan time.Time
	if m.opts.Removed == nil {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-look:
		case <-m.opts.Removed:
		}
		if err := m.store.Valid(); err != nil {
			m.noteLost(err)
			return
		}
	}
}

// reserveBytes is how much of the disk is set aside, so that there is room to
// say that it is full.
const reserveBytes = 1 << 20

// A reserve is a file that is given up when the disk is full.
type reserve struct {
	path string

	mu   sync.Mutex // guards held
	held bool
}

func reservePath(database string) string { return filepath.Join(filepath.Dir(database), "reserve") }

// hold sets the reserve aside. Where there is no room for it there is none.
func (r *reserve) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		return
	}
	if info, err := os.Stat(r.path); err == nil && info.Size() == reserveBytes {
		r.held = true
		return
	}
	// Zeros that are written are blocks that are taken; a hole would be none.
	if err := os.WriteFile(r.path, make([]byte, reserveBytes), 0o600); err != nil {
		os.Remove(r.path)
		return
	}
	r.held = true
}

// release gives the reserve up, if there is one.
func (r *reserve) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = false
	_ = os.Remove(r.path)
}

// FreeReserve deletes the disk reserve of a process that has ended. It returns an error if no
// reserve exists.
func FreeReserve(database string) error { return os.Remove(reservePath(database)) }

// Texts for users.
const (
	textFull        = "the disk is full; free some space"
	textLost        = "the project's directory or its state was removed, moved or replaced while duet-rpc used it, and what ran has ended"
	textReportsLost = "events could not be kept; run `duet-rpc doctor`"

	// TextDamaged is of a database that is damaged.
	TextDamaged = "the database is damaged, and a part of it cannot be read; run `duet-rpc doctor`"
)

// Issues lists the store's problems in words for users; it is empty if the store is healthy.
func (m *Monitor) Issues() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []string
	if m.full {
		list = append(list, textFull)
	}
	switch {
	case m.lost:
		list = append(list, textLost)
	case m.reportsLost:
		list = append(list, textReportsLost)
	}
	if m.damaged {
		list = append(list, TextDamaged)
	}
	return list
}

// Explain makes an error of the store one for users, where it is one of those that
// the store names ([ErrFull] and so on); others stay as they are.
func Explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrClosed):
		return domain.ErrEnding
	case IsFull(err):
		return unavailable("the disk is full: nothing was changed; free some space and try again", err)
	case IsLost(err):
		return unavailable(textLost+"; nothing of this was kept: try again", err)
	case IsLocked(err):
		return unavailable("another process has the database and does not let go of it: nothing was changed; end it (sqlite3, a backup, or a duet-rpc that was stopped) and try again", err)
	case IsDamaged(err):
		return unavailable(TextDamaged, err)
	}
	return err
}

func unavailable(text string, cause error) *domain.Error {
	return &domain.Error{Kind: domain.KindUnavailable, Message: text, Err: cause}
}
