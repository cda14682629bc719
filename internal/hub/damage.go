package hub

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/duet-rpc/duet-rpc/internal/store"

	"github.com/duet-rpc/duet-rpc/internal/domain"
)

// damagedIssue is what users are told of a database that is damaged.
const damagedIssue = "the database is damaged, and a part of it cannot be read; run `duet-rpc doctor`"

// damage is whether something in the database could not be read. It is told by
// whoever reads, whatever locks they hold.
type damage struct {
	log *slog.Logger

	mu    sync.Mutex // guards first
	first error
}

// note notes damage, and logs the first that is met.
func (d *damage) note(err error) {
	d.mu.Lock()
	first := d.first == nil
	if first {
		d.first = err
	}
	d.mu.Unlock()
	if first {
		d.log.Error(damagedIssue, "err", err)
	}
}

func (d *damage) found() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.first != nil
}

// A logPage is a part of the log, and what of it could not be read.
type logPage struct {
	events []domain.Event
	// lostTo, if it is not 0, is the last of those behind events that cannot be
	// read.
	lostTo int64
	// end: there is nothing more.
	end bool
}

// readLog reads the log of the store from after a seq on. Where it is damaged
// the page ends, and says where it goes on: the log has no gaps, so what is
// missing in it is damage, too.
func (h *Hub) readLog(ctx context.Context, after int64) (logPage, error) {
	last := h.events.last() // was committed, and so is there
	events, err := h.store.Events(ctx, after, pageSize)
	if err != nil && !store.IsDamaged(err) {
		return logPage{}, err
	}
	at := after
	for i, e := range events {
		if e.Seq != at+1 {
			h.damage.note(fmt.Errorf("the log has %d behind %d", e.Seq, at))
			return h.behindDamage(ctx, events[:i], at)
		}
		at = e.Seq
	}
	end := len(events) < pageSize
	switch {
	case err != nil:
		return h.behindDamage(ctx, events, at)
	case end && at < last:
		h.damage.note(fmt.Errorf("the log has nothing behind %d, and went to %d", at, last))
		return h.behindDamage(ctx, events, at)
	}
	return logPage{events: events, end: end}, nil
}

// behindDamage finds where the log can be read again behind at. Damage is of
// pages of the database, which hold some dozens of events each, so it looks
// further and further ahead, and then back between what it has seen.
func (h *Hub) behindDamage(ctx context.Context, events []domain.Event, at int64) (logPage, error) {
	last := h.events.last()
	if at >= last {
		return logPage{events: events, end: true}, nil
	}
	damaged, readable := at+1, int64(0)
	for step := int64(1); damaged < last && readable == 0; step *= 2 {
		next := min(damaged+step, last)
		ok, err := h.readable(ctx, next)
		switch {
		case err != nil:
			return logPage{}, err
		case ok:
			readable = next
		default:
			damaged = next
		}
	}
	if readable == 0 {
		return logPage{events: events, lostTo: last}, nil
	}
	for readable-damaged > 1 {
		middle := damaged + (readable-damaged)/2
		ok, err := h.readable(ctx, middle)
		switch {
		case err != nil:
			return logPage{}, err
		case ok:
			readable = middle
		default:
			damaged = middle
		}
	}
	return logPage{events: events, lostTo: readable - 1}, nil
}

// readable reports whether an event of the log can be read.
func (h *Hub) readable(ctx context.Context, seq int64) (bool, error) {
	events, err := h.store.Events(ctx, seq-1, 1)
	if err != nil && !store.IsDamaged(err) {
		return false, err
	}
	return err == nil && len(events) == 1 && events[0].Seq == seq, nil
}
