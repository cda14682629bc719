package hub

import (
	"context"
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// stored makes an error of the store fit to be told.
func stored(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrClosed):
		return errClosing
	case store.IsFull(err):
		return &domain.Error{Kind: domain.KindUnavailable, Message: "the disk is full: nothing was changed; free some space and try again", Err: err}
	case store.IsLost(err):
		return &domain.Error{Kind: domain.KindUnavailable, Message: lostIssue + "; nothing of this was kept: try again", Err: err}
	case store.IsLocked(err):
		return &domain.Error{Kind: domain.KindUnavailable, Message: "another process has the database and does not let go of it: nothing was changed; end it (sqlite3, a backup, or a duet-rpc that was stopped) and try again", Err: err}
	case store.IsDamaged(err):
		return &domain.Error{Kind: domain.KindUnavailable, Message: damagedIssue, Err: err}
	}
	return err
}

// isClosed reports whether err means that the hub is closing.
func isClosed(err error) bool {
	return errors.Is(err, errClosing) || errors.Is(err, store.ErrClosed) || errors.Is(err, context.Canceled)
}
