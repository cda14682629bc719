package health

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/background"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// A Store is what is watched; see [store.Store].
type Store interface {
	Valid() error
	FreeBytes() int64
}

// Options say what a Monitor watches, and who is told. The functions, which may
// be nil, must not block; those who write call them.
type Options struct {
	Database string // the store's path: the reserve lies beside it
	// Removed, if set, has one in it when the database, or what the store's
	// Valid looks at, may have been removed or replaced. Else that is looked for
	// every second.
	Removed <-chan struct{}
	Full    func(cause error) // each time that there was no room for a change
	Room    func()            // once there is room again
	Lost    func(cause error) // once: what is written is lost
	Logger  *slog.Logger
}

// A Monitor watches one store. Its methods may be called from any goroutine, and
// whatever locks are held.
type Monitor struct {
	opts    Options
	reserve reserve
	ctx     context.Context // ends with the monitor
	cancel  context.CancelFunc
	tasks   background.Group

	mu          sync.Mutex // guards the fields below
	store       Store
	full        bool
	changed     chan struct{} // while full: closed when a change was kept
	lost        bool
	damaged     bool
	reportsLost bool
	closing     bool
}

// New makes a monitor of a store that is still to be opened, see Watch. It is to
// be ended by Close.
func New(opts Options) *Monitor {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Monitor{opts: opts, reserve: reserve{path: reservePath(opts.Database)}, changed: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Opened names the store.
func (m *Monitor) Opened(s Store) {
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

// Close ends what the monitor does by itself, and waits for that as long as ctx
// lasts. From then on nobody is told that the store is lost.
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
	case store.IsFull(err):
		m.NoRoom(err)
	case store.IsLost(err):
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

// Damaged takes what could not be read of the store, since it is damaged. The
// first time it is logged.
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

// Lost reports whether what is written is lost.
func (m *Monitor) Lost() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// noteLost reports, once, that what is written is lost.
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
