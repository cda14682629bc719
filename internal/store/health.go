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

// This file monitors the store of a process: a full disk, removed files, and damage. It keeps a
// reserve on the disk, which it frees when the disk is full, and lists problems as `health` shows
// them.

// Monitored is the monitored part of a [Store].
type Monitored interface {
	Valid() error
	FreeBytes() int64
	Check(ctx context.Context) error
}

// MonitorOptions configure a Monitor. The functions may be nil and must not block; writers call
// them.
type MonitorOptions struct {
	Database string // store path; the reserve is next to it
	// Removed, if set, receives a value when the database, or what the store's Valid checks, may
	// have been removed or replaced. Otherwise the monitor polls each second.
	Removed <-chan struct{}
	Full    func(cause error) // called for each change that finds no space
	Room    func()            // called once when space is free again
	Lost    func(cause error) // called once: writes are lost
	Logger  *slog.Logger
}

// Monitor monitors one store. Its methods may be called from any goroutine, with any locks held.
type Monitor struct {
	opts    MonitorOptions
	reserve reserve
	ctx     context.Context // ends with the monitor
	cancel  context.CancelFunc
	tasks   background.Group

	mu          sync.Mutex // guards the fields below
	store       Monitored
	full        error         // why there is no space; nil: there is
	changed     chan struct{} // while full: closed by the next successful change
	lost        bool
	damaged     bool
	unread      int       // failed reads since the last check that found no damage
	checking    bool      // a check runs
	checked     time.Time // the end of the last check
	reportsLost bool
	closing     bool
}

// NewMonitor returns a monitor of a store that is not open yet, see Watch. End it with Close.
func NewMonitor(opts MonitorOptions) *Monitor {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Monitor{opts: opts, reserve: reserve{path: reservePath(opts.Database)}, changed: make(chan struct{})}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Opened sets the store.
func (m *Monitor) Opened(s Monitored) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store = s
}

// Watch starts monitoring the opened store. full is the error of a disk that was full, so that the
// reserve was freed; if it is nil, Watch allocates the reserve.
func (m *Monitor) Watch(full error) {
	if full != nil {
		m.setFull(full)
	} else {
		m.tasks.Go(m.reserve.hold) // as slow as the disk
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

// Note records the outcome of a change; nil is success.
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

// NoRoom records that a change found no space.
func (m *Monitor) NoRoom(err error) {
	m.setFull(err)
	if m.opts.Full != nil {
		m.opts.Full(err)
	}
}

func (m *Monitor) setFull(cause error) {
	m.mu.Lock()
	m.full = cause
	m.mu.Unlock()
	m.reserve.release()
}

// enough is the free space, in bytes, required to allocate a reserve again.
const enough = 8 * reserveBytes

// kept handles a successful change. After a full disk it may mean that space is free again.
func (m *Monitor) kept() {
	m.mu.Lock()
	if m.full == nil {
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
	again := m.full != nil
	m.full = nil
	m.mu.Unlock()
	if !again {
		return // another goroutine has noticed it
	}
	m.reserve.hold()
	if m.opts.Room != nil {
		m.opts.Room()
	}
}

// retryEvery is the interval of retries on a full disk; no event announces free space.
const retryEvery = time.Second

// AwaitRoom waits until a retry makes sense after a full disk: until another change succeeds, or
// for a second. It returns an error early if ctx ends.
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

// Damaged records a read error of a damaged store. The first one is logged. An [ErrUnread] counts until a
// check finds no damage, others until the end.
func (m *Monitor) Damaged(err error) {
	m.mu.Lock()
	first := !m.damaged && m.unread == 0
	if errors.Is(err, ErrUnread) {
		m.unread++
	} else {
		m.damaged = true
	}
	m.mu.Unlock()
	if first {
		m.opts.Logger.Error(TextDamaged, "err", err)
	}
}

// checkEvery is the least time between two checks: each reads the whole store.
const checkEvery = time.Minute

// check starts to find out whether everything can be read again, and returns at once. The caller has m.mu.
func (m *Monitor) check() {
	if m.store == nil || m.checking || !m.checked.IsZero() && time.Since(m.checked) < checkEvery {
		return
	}
	before := m.unread
	m.checking = m.tasks.Go(func() {
		err := m.store.Check(m.ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.checking, m.checked = false, time.Now()
		if err == nil && m.unread == before && m.ctx.Err() == nil {
			m.unread = 0
			m.opts.Logger.Info("the whole database can be read again")
		}
	})
}

// ReportsLost records that agents' events could not be stored for another reason than a full disk.
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

// lookEvery is the polling interval for the store's files without notifications and without writes.
const lookEvery = time.Second

// watch checks the store's files until they are gone.
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

// reserveBytes is the size of the reserve, which leaves space to record that the disk is full.
const reserveBytes = 1 << 20

// reserve is a file that is deleted when the disk is full.
type reserve struct {
	path string

	mu   sync.Mutex // guards held
	held bool
}

func reservePath(database string) string { return filepath.Join(filepath.Dir(database), "reserve") }

// hold allocates the reserve, if the disk has space.
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
	// Written zeros occupy blocks; a hole would not.
	if err := os.WriteFile(r.path, make([]byte, reserveBytes), 0o600); err != nil {
		os.Remove(r.path)
		return
	}
	r.held = true
}

// release deletes the reserve, if it exists.
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
	textLost        = "the project's directory or its state was removed, moved or replaced while duet-rpc used it, and what ran has ended"
	textReportsLost = "events could not be kept; run `duet-rpc doctor`"

	// TextDamaged is the text for a damaged database.
	TextDamaged = "the database is damaged, or its disk fails: a part of it cannot be read; run `duet-rpc doctor`"
)

// Issues lists the store's problems in words for users; it is empty if the store is healthy. After a
// failure of the disk to read, it starts a check, whose outcome a later call reports. It does not wait.
func (m *Monitor) Issues() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []string
	if m.full != nil {
		problem, todo := FullTexts(m.full)
		list = append(list, problem+"; "+todo)
	}
	switch {
	case m.lost:
		list = append(list, textLost)
	case m.reportsLost:
		list = append(list, textReportsLost)
	}
	if m.damaged || m.unread > 0 {
		list = append(list, TextDamaged)
	}
	if m.unread > 0 && !m.damaged {
		m.check()
	}
	return list
}

// Explain converts a named store error ([ErrFull] and so on) to one for users, and returns other
// errors unchanged.
func Explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrClosed):
		return domain.ErrEnding
	case IsFull(err):
		problem, todo := FullTexts(err)
		return unavailable(problem+": nothing was changed; "+todo+", then try again", err)
	case IsLost(err):
		return unavailable(textLost+"; nothing of this was kept: try again", err)
	case IsLocked(err):
		return unavailable("another process has the database and does not let go of it: nothing was changed; end it (sqlite3, a backup, or a "+
			"duet-rpc that was stopped) and try again", err)
	case IsDamaged(err):
		return unavailable(TextDamaged, err)
	}
	return err
}

func unavailable(text string, cause error) *domain.Error {
	return &domain.Error{Kind: domain.KindUnavailable, Message: text, Err: cause}
}
