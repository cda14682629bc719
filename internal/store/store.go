// Package store defines the interface to persistent storage: [Store] for all reads and writes, and
// the errors that callers can handle. Callers decide which changes are allowed.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// A Store holds the program's data. Its methods may be called from any goroutine. Reads run beside the
// single writer.
//
// Reads wait for announcements: a read that may have seen a change returns after the functions of
// Tx.AfterCommit have run and the events of the change were announced.
type Store interface {
	Reader
	// Search finds items that contain all words. The last word may be the beginning of one. The best
	// hits come first. If there are very many, the newest come first, with rank 0.
	Search(ctx context.Context, words string, limit, offset int) ([]domain.Hit, error)
	// ItemsFrom lists items of a turn, with notes or without. An item has one or two events. The first
	// item contains the event number offset, from 0; before is the number of its events before that
	// one. The items have at least limit events, if there are so many, and at most one more. The cost
	// does not grow with offset.
	ItemsFrom(ctx context.Context, turn int64, notes bool, offset, limit int) (items []domain.Item, before int, err error)
	// Length returns the number of events of a turn's items, with notes or without.
	Length(ctx context.Context, turn int64, notes bool) (int, error)

	// Write runs change in a transaction and returns after the commit, which survives a power cut. If
	// change fails, Write undoes it and returns its error. change runs in the writer's goroutine. It
	// must not keep the Tx. If ctx ends first, the change may still be committed.
	Write(ctx context.Context, change func(Tx) error) error
	// Apply is Write, but the commit only survives a kill of the process: a power cut may undo it. It does
	// not wait for the disk.
	Apply(ctx context.Context, change func(Tx) error) error
	// Enqueue is Apply without waiting. The writer's goroutine calls done after the commit, which
	// survives a kill of the process, or with the error. done must not block.
	Enqueue(change func(Tx) error, done func(error))
	// Valid returns a *LostError if writes are lost. It is cheap.
	Valid() error
	// FreeBytes returns the approximate free space on the database's disk, in bytes, or a negative
	// number if it is unknown.
	FreeBytes() int64
	// Check reads everything. Its error says what is damaged.
	Check(ctx context.Context) error
	// Path returns the path of the database.
	Path() string
	// Latest returns the time by a clock that is never set back: it is not before Now of any earlier
	// change, plus the time since then. A permission ends by it. It may be ahead of Now for as long as
	// the process runs, if the clock was ahead once. It survives a restart as far as the last event.
	Latest() time.Time
	// Close commits the queued changes and closes the database.
	Close() error
}

// Options configure a store that is opened.
type Options struct {
	// Now is the clock of the changes; nil: time.Now. Tests set it.
	Now func() time.Time
	// Committed is called with the events of each transaction after its commit, in order, by one
	// goroutine. It must not block or write, and must read only through now: other reads of the
	// store wait until it returns.
	Committed func(events []domain.Event, now Reader)
	// RolledBack, if set, is called by the same goroutine after a change, or the transaction that it
	// shared, was rolled back, and before the next one begins. Values that a change has stored in
	// memory before its commit may be wrong then. RolledBack must not block or use the store.
	RolledBack func()
	// Valid, if set, is called before and after each commit. It returns an error if this process has
	// lost the right to write; the write then returns it in a [*LostError].
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
	// ErrFailing is an ErrFull for which the system reports a failure: a quota or a limit is used up, or
	// the disk does not work. Nothing was changed.
	ErrFailing = fmt.Errorf("the disk refuses to write: %w", ErrFull)
	// ErrLocked means that another process holds the store's lock. Nothing was changed.
	ErrLocked = errors.New("another process has the store")
	// ErrDamaged means that data cannot be read, or has an impossible value.
	ErrDamaged = errors.New("the store is damaged")
	// ErrUnread is an ErrDamaged that passes if the disk has only failed to read: Check tells.
	ErrUnread = fmt.Errorf("a part cannot be read: %w", ErrDamaged)
)

// LostError means that the store, a file belonging to it, or the right to write it, was removed or
// replaced while open. Later writes cannot be found again.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	return fmt.Sprintf("the database was removed or replaced while it was open: %v", e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// IsFull reports whether err means that the disk is full or fails.
func IsFull(err error) bool { return errors.Is(err, ErrFull) }

// FullTexts returns what an error of IsFull means, and the remedy, for users.
func FullTexts(err error) (problem, todo string) {
	if errors.Is(err, ErrFailing) {
		return fmt.Sprintf("the disk is full or fails (%v)", err), "free some space, or check the disk"
	}
	return "the disk is full", "free some space"
}

// IsLocked reports whether err means that another process holds the store's lock.
func IsLocked(err error) bool { return errors.Is(err, ErrLocked) }

// IsDamaged reports whether err means that the store is damaged.
func IsDamaged(err error) bool { return errors.Is(err, ErrDamaged) }

// IsLost reports whether err means that writes cannot be found again.
func IsLost(err error) bool {
	var lost *LostError
	return errors.As(err, &lost)
}
