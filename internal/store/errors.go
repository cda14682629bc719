package store

import (
	"errors"
	"fmt"
)

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
