// Package store defines the interface to persistent storage: [Store] for all reads and writes, and
// the errors that callers can handle. Callers decide which changes are allowed.
package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A Store keeps the program's values. Its methods may be called from any
// goroutine; those that read go beside the one that writes.
//
// What was read is true for what is asked next: a read that may have seen a change
// returns when what is in memory follows that (see Tx.AfterCommit), and its events
// were announced.
type Store interface {
	Reader
	// Search finds items by words: all of them must be there, the last may be
	// the beginning of one. The best come first; where there are very many,
	// the newest, with rank 0.
	Search(ctx context.Context, words string, limit, offset int) ([]domain.Hit, error)
	// ItemsFrom lists items of a run, with notes or without, from the one on in
	// which the event is that has so many before it, until they are limit events,
	// or one more. before is how many events of the first are before that one.
	// It looks at few other items, wherever that is.
	ItemsFrom(ctx context.Context, run int64, notes bool, offset, limit int) (items []domain.Item, before int, err error)
	// Length is how many events the items of a run are, with notes or without.
	Length(ctx context.Context, run int64, notes bool) (int, error)

	// Write runs change in a transaction and returns after its commit, which
	// survives a power cut. If change fails, nothing of it remains and its error
	// is returned. change runs in the writer's goroutine; it must not keep the Tx.
	// If ctx ends first, the change may still be made.
	Write(ctx context.Context, change func(Tx) error) error
	// Enqueue is Write without waiting: done is called by the writer's goroutine
	// after the commit, which survives a kill of the process, or with an error
	// instead of it. It must not block.
	Enqueue(change func(Tx) error, done func(error))
	// Valid returns a *LostError if writes are lost. It is cheap.
	Valid() error
	// FreeBytes is about how much can still be written to the disk the database is
	// on, or a negative number if that is not known.
	FreeBytes() int64
	// Path is where the database is.
	Path() string
	// Close commits what is queued, and closes the database.
	Close() error
}

// Options configure a store that is opened.
type Options struct {
	// Committed is called with the events of each transaction after its commit, in order, by one
	// goroutine. It must not block or write, and must read only through now: other reads of the
	// store wait until it returns.
	Committed func(events []domain.Event, now Reader)
	// RolledBack, if set, is called by the same goroutine when a change, or the
	// transaction that it shared, was undone, and before the next one begins: what
	// anybody remembers of a change under way may not be so. It must not block and
	// not use the store.
	RolledBack func()
	// Valid, if set, is asked before and after each commit whether this process
	// still has the right to write: an error is returned, in a [*LostError],
	// instead of success.
	Valid func() error
	// Damaged, if set, is called with the error of each read that failed because the store is
	// damaged, and of each that found an impossible value. The reader calls it; it must not block.
	Damaged func(error)
}

// Errors of queries and transactions, for errors.Is. Other errors can only be logged.
var (
	// ErrNotFound is returned by a query for one value that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrClosed is the error of a write to a closed store.
	ErrClosed = errors.New("the store is closed")
	// ErrFull means that the disk is full. Nothing was changed.
	ErrFull = errors.New("there is no room for more")
	// ErrLocked means that another process holds the store's lock. Nothing was changed.
	ErrLocked = errors.New("another process has the store")
	// ErrDamaged means that data cannot be read, or has an impossible value.
	ErrDamaged = errors.New("the store is damaged")
)

// LostError means that the store, a file belonging to it, or the right to write it, was removed or
// replaced while open. Later writes cannot be found again.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	return fmt.Sprintf("the database was removed or replaced while it was open: %v", e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// IsFull reports whether err means that the disk is full.
func IsFull(err error) bool { return errors.Is(err, ErrFull) }

// IsLocked reports whether err means that another process holds the store's lock.
func IsLocked(err error) bool { return errors.Is(err, ErrLocked) }

// IsDamaged reports whether err means that the store is damaged.
func IsDamaged(err error) bool { return errors.Is(err, ErrDamaged) }

// IsLost reports whether err means that writes cannot be found again.
func IsLost(err error) bool {
	var lost *LostError
	return errors.As(err, &lost)
}
