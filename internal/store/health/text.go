package health

import (
	"errors"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// What users are told.
const (
	textFull        = "the disk is full; free some space"
	textLost        = "the project's directory or its state was removed, moved or replaced while duet-rpc used it, and what ran has ended"
	textReportsLost = "events could not be kept; run `duet-rpc doctor`"

	// TextDamaged is of a database that is damaged.
	TextDamaged = "the database is damaged, and a part of it cannot be read; run `duet-rpc doctor`"
)

// Issues lists what is wrong, in words for users; empty: the store is well.
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
// the store names ([store.ErrFull] and so on); others stay as they are.
func Explain(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrClosed):
		return domain.ErrEnding
	case store.IsFull(err):
		return unavailable("the disk is full: nothing was changed; free some space and try again", err)
	case store.IsLost(err):
		return unavailable(textLost+"; nothing of this was kept: try again", err)
	case store.IsLocked(err):
		return unavailable("another process has the database and does not let go of it: nothing was changed; end it (sqlite3, a backup, or a duet-rpc that was stopped) and try again", err)
	case store.IsDamaged(err):
		return unavailable(TextDamaged, err)
	}
	return err
}

func unavailable(text string, cause error) *domain.Error {
	return &domain.Error{Kind: domain.KindUnavailable, Message: text, Err: cause}
}
