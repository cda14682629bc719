package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// maxBatch limits the operations in a transaction, which limits the time to their commit.
const maxBatch = 512

// An operation is a part of a transaction.
type operation struct {
	change  func(store.Tx) error
	durable bool        // the commit survives a power cut
	awaited bool        // a caller waits for the commit
	done    func(error) // after the commit, or instead of it

	events []domain.Event
	after  []func()
	err    error
}

// A writer owns the only connection that writes.
type writer struct {
	conn       *sql.Conn
	tx         *Tx
	clock      *clock
	announce   func([]domain.Event, store.Reader)
	gate       *gate // shut between a commit and its announcement
	rolledBack func()
	log        string // path of SQLite's write-ahead log

	valid         func() error // returns an error if writes are lost
	databaseValid func() error // the same of the database alone, without its log

	last      time.Time // end of the last commit
	burst     int       // commits in a row, each soon after the one before
	full      bool      // synchronous is currently FULL
	reserved  int64     // the last number that an event may have; durable
	committed int64     // the last seq in the log

	mu      sync.Mutex // guards the fields below
	wake    sync.Cond
	queue   []*operation
	stopped bool
	pragma  string // statements of the checkpointer to run outside of a transaction

	commits atomic.Int64
	failing atomic.Bool // the last transaction was rolled back, usually because the disk is full

	checkpointDue chan struct{} // wakes the checkpointer: there is work
	logTooLong    chan struct{} // wakes the checkpointer: the log is too long
	indexDue      chan struct{} // wakes the indexer: there is work
	ended         chan struct{} // closed at the end
}

func newWriter(ctx context.Context, db *sql.DB, g *gate, opts store.Options) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{
		conn: conn, gate: g, announce: opts.Committed, rolledBack: opts.RolledBack,
		checkpointDue: make(chan struct{}, 1), logTooLong: make(chan struct{}, 1), indexDue: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	if w.announce == nil {
		w.announce = func([]domain.Event, store.Reader) {}
	}
	if w.rolledBack == nil {
		w.rolledBack = func() {}
	}
	w.wake.L = &w.mu
	w.tx = &Tx{queries: queries{newStatements(conn, opts.Damaged, nil)}, places: newPlaces()}
	for _, pragma := range []string{"PRAGMA synchronous = NORMAL", "PRAGMA wal_autocheckpoint = 0", fmt.Sprintf(
		"PRAGMA journal_size_limit = %d", walMost*pageSize,
	), "PRAGMA cache_size = -2000"} {
		if _, err := conn.ExecContext(ctx, pragma); err != nil {
			conn.Close()
			return nil, err
		}
	}
	w.committed, err = first[int64](ctx, w.tx.s, "SELECT coalesce(max(seq), 0) FROM events")
	if err != nil {
		conn.Close()
		return nil, err
	}
	text, err := w.tx.Meta(ctx, metaReserved)
	if err != nil {
		conn.Close()
		return nil, err
	}
	w.reserved, _ = strconv.ParseInt(text, 10, 64)
	if w.reserved > w.committed {
		if _, err := w.tx.s.exec(ctx, fillReserved, w.committed+1, w.reserved, w.committed); err != nil {
			conn.Close()
			return nil, err
		}
		w.committed = w.reserved
	}
	w.tx.seq = w.committed
	last, err := first[int64](ctx, w.tx.s, "SELECT coalesce((SELECT at FROM events WHERE seq = ?), 0)", w.committed)
	if err != nil { // a damaged event
		last = 0
	}
	w.clock = newClock(opts.Now, time.Unix(0, last))
	return w, nil
}

// Clients get events that only report before they are on the disk, and a power cut loses those. Their
// numbers must not be given again: a client that continues after such a number would miss the new
// event. So numbers are reserved before a client can see one. A store that was not closed gives the
// reserved ones to erased events, which no client gets, and so the log has no gap. They have the time of
// the event before: it says until when the last process worked.
const (
	metaReserved = "reserved_numbers" // the last one
	reservedMost = 256
	fillReserved = "WITH RECURSIVE numbers (seq) AS (SELECT ? UNION ALL SELECT seq + 1 FROM numbers WHERE seq < ?) " +
		"INSERT INTO events (seq, at, type, session, turn, data) SELECT seq, coalesce((SELECT at FROM events WHERE seq = ?), 0), " +
		"'" + string(domain.EventErased) + "', 0, 0, '{}' FROM numbers"
)

// reserve reserves the next numbers, as a part of a transaction.
func (w *writer) reserve() (last int64, err error) {
	last = w.tx.seq + reservedMost
	return last, w.tx.SetMeta(metaReserved, strconv.FormatInt(last, 10))
}

// giveBackNumbers ends the reservation when the store is closed.
func (w *writer) giveBackNumbers() {
	if w.reserved > w.committed {
		_ = w.tx.SetMeta(metaReserved, strconv.FormatInt(w.committed, 10)) // else some numbers are left out
	}
}

// setSynchronous sets whether the next commits are durable.
func (w *writer) setSynchronous(ctx context.Context, full bool) error {
	if full == w.full {
		return nil
	}
	level := "NORMAL"
	if full {
		level = "FULL"
	}
	if _, err := w.conn.ExecContext(ctx, "PRAGMA synchronous = "+level); err != nil {
		return failed(err)
	}
	w.full = full
	return nil
}

// Write implements [store.Store].
func (s *Store) Write(ctx context.Context, change func(store.Tx) error) error {
	return s.await(ctx, &operation{change: change, durable: true})
}

// Apply implements [store.Store].
func (s *Store) Apply(ctx context.Context, change func(store.Tx) error) error {
	return s.await(ctx, &operation{change: change})
}

// await passes an operation to the writer, and waits for its end or that of ctx.
func (s *Store) await(ctx context.Context, op *operation) error {
	done := make(chan error, 1)
	op.awaited, op.done = true, func(err error) { done <- err }
	s.writer.add(op)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Enqueue implements [store.Store].
func (s *Store) Enqueue(change func(store.Tx) error, done func(error)) {
	s.writer.add(&operation{change: change, done: done})
}

func (w *writer) add(op *operation) {
	w.mu.Lock()
	if w.stopped {
		w.mu.Unlock()
		op.done(store.ErrClosed)
		return
	}
	w.queue = append(w.queue, op)
	w.mu.Unlock()
	w.wake.Signal()
}

func (w *writer) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.wake.Signal()
}

// next waits for operations; nil means the end.
func (w *writer) next() []*operation {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.queue) == 0 {
		if w.pragma != "" {
			return []*operation{}
		}
		if w.stopped {
			return nil
		}
		w.wake.Wait()
	}
	w.gather()
	n := min(len(w.queue), maxBatch)
	batch := w.queue[:n:n]
	w.queue = w.queue[n:]
	if len(w.queue) == 0 {
		w.queue = nil
	}
	return batch
}

// gatherFor is the time between commits that no caller waits for: a commit writes several pages
// whatever its size, so changes share one. The first commits after a pause are immediate: those of
// an agent that begins, and of its first words.
const (
	gatherFor  = 1500 * time.Microsecond
	freeCommit = 3 // commits in a row before changes are gathered
)

// gather waits for more changes after recent commits, unless a caller waits for the next one.
// The caller holds mu, which gather releases meanwhile.
func (w *writer) gather() {
	left := gatherFor - time.Since(w.last)
	if left <= 0 || w.burst < freeCommit || w.stopped || len(w.queue) >= maxBatch {
		return
	}
	for _, op := range w.queue {
		if op.awaited {
			return
		}
	}
	w.mu.Unlock()
	time.Sleep(left)
	w.mu.Lock()
}

func (w *writer) loop() {
	for batch := w.next(); batch != nil; batch = w.next() {
		if len(batch) == 0 {
			w.maintain()
			continue
		}
		err := w.commit(batch)
		if time.Since(w.last) < 2*gatherFor {
			w.burst++
		} else {
			w.burst = 0
		}
		w.last = time.Now()
		w.failing.Store(err != nil)
		w.commits.Add(1)
		w.follow(batch, err)
		w.gate.open()
		for _, op := range batch {
			op.done(op.err)
		}
		w.maintain()
	}
	w.giveBackNumbers()
	if w.valid() != nil {
		w.rescue() // else the data would be lost with the log, which only this process still has open
	}
	close(w.ended)
	w.tx.s.close()
	w.conn.Close()
}

// follow updates the state in memory after a commit, and announces its events. err is the error
// of the commit, and thereby of each operation.
func (w *writer) follow(batch []*operation, err error) {
	var events []domain.Event
	for _, op := range batch {
		if op.err == nil {
			op.err = err
		}
		if op.err != nil {
			continue
		}
		for _, f := range op.after {
			f()
		}
		events = append(events, op.events...)
	}
	if len(events) > 0 {
		w.announce(events, &w.tx.queries)
	}
}

// requestPragma makes the writer run statements outside of a transaction, before its next one. A
// later request replaces a waiting one.
func (w *writer) requestPragma(pragma string) {
	w.mu.Lock()
	w.pragma = pragma
	w.mu.Unlock()
	w.wake.Signal()
}

// maintain runs the requests of the checkpointer, and wakes the indexer and the checkpointer if
// they have work. It runs between transactions.
func (w *writer) maintain() {
	w.mu.Lock()
	pragma := w.pragma
	w.pragma = ""
	w.mu.Unlock()
	if pragma != "" {
		_, _ = w.conn.ExecContext(background, pragma) // after a failure it is done later
	}
	if w.tx.indexDue {
		select {
		case w.indexDue <- struct{}{}:
		default:
		}
		w.tx.indexDue = false
	}
	if info, err := os.Stat(w.log); err == nil && info.Size() > walMost*pageSize {
		select {
		case w.logTooLong <- struct{}{}:
		default:
		}
	}
	if w.tx.changed < checkpointAfter {
		return
	}
	select {
	case w.checkpointDue <- struct{}{}:
		w.tx.changed = 0
	default:
	}
}

// commit runs the operations in one transaction. A failing operation is undone alone. An error of
// commit means that nothing was changed, or, a *store.LostError, that the changes are in removed
// files. The gate may be shut afterwards.
func (w *writer) commit(batch []*operation) (err error) {
	ctx := context.Background()
	if err := w.valid(); err != nil {
		return err
	}
	durable := false
	for _, op := range batch {
		durable = durable || op.durable
	}
	if err := w.setSynchronous(ctx, durable); err != nil {
		return err
	}
	t := w.tx
	if _, err := t.s.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			t.s.exec(ctx, "ROLLBACK")
			t.seq = w.committed
			w.rolledBack()
		}
	}()
	for _, op := range batch {
		if err := w.apply(ctx, op); err != nil {
			return err
		}
	}
	reserved := w.reserved
	if durable && t.seq > reserved-reservedMost/2 {
		if reserved, err = w.reserve(); err != nil {
			return err
		}
	}
	w.gate.shut()
	if _, err := t.s.exec(ctx, "COMMIT"); err != nil {
		return err
	}
	w.committed, w.reserved = t.seq, reserved
	if t.seq > reserved { // these were no durable changes, but their numbers must be
		if err := w.setSynchronous(ctx, true); err != nil {
			return nil
		}
		if last, err := w.reserve(); err == nil {
			w.reserved = last
		}
	}
	if err := w.valid(); err != nil && !w.rescue() {
		return err
	}
	return nil
}

// apply runs one operation inside a savepoint. It stores the operation's own error in op; an
// error that it returns ends the transaction.
func (w *writer) apply(ctx context.Context, op *operation) error {
	t := w.tx
	t.now, t.latest = w.clock.read()
	t.events, t.after = nil, nil
	seq := t.seq
	if _, err := t.s.exec(ctx, "SAVEPOINT operation"); err != nil {
		return err
	}
	op.err = run(t, op.change)
	op.events, op.after = t.events, t.after
	t.events, t.after = nil, nil
	if op.err != nil {
		t.seq = seq
		if store.IsFull(op.err) { // SQLite may already have rolled everything back
			return op.err
		}
		if _, err := t.s.exec(ctx, "ROLLBACK TO operation"); err != nil {
			return err
		}
		w.rolledBack()
	}
	_, err := t.s.exec(ctx, "RELEASE operation")
	return err
}

// run calls change and converts a panic to an error, so that the writer lives.
func run(t *Tx, change func(store.Tx) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a change panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return change(t)
}
