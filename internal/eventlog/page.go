package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/duet-rpc/duet-rpc/internal/domain"
	"github.com/duet-rpc/duet-rpc/internal/store"
)

// pageSize is how many events are read at once.
const pageSize = 256

// A page is a part of the log, and what of it could not be read.
type page struct {
	events []domain.Event
	// lostTo, if it is not 0, is the last of those behind events that cannot be
	// read.
	lostTo int64
	// end: there is nothing more.
	end bool
}

// read reads the log of the store from after a seq on. Where it is damaged the
// page ends, and says where it goes on: the log has no gaps, so what is missing
// in it is damage, too.
func (l *Log) read(ctx context.Context, after int64) (page, error) {
	last := l.Last() // was committed, and so is there
	events, err := l.store.Events(ctx, after, pageSize)
	if err != nil && !store.IsDamaged(err) {
		return page{}, err
	}
	at := after
	for i, e := range events {
		if e.Seq != at+1 {
			l.opts.Damaged(fmt.Errorf("the log has %d behind %d", e.Seq, at))
			return l.behindDamage(ctx, events[:i], at)
		}
		at = e.Seq
	}
	end := len(events) < pageSize
	switch {
	case err != nil:
		return l.behindDamage(ctx, events, at)
	case end && at < last:
		l.opts.Damaged(fmt.Errorf("the log has nothing behind %d, and went to %d", at, last))
		return l.behindDamage(ctx, events, at)
	}
	return page{events: events, end: end}, nil
}

// readAgainAfter is when a log is read again that could not be for a reason that
// may pass, such as too many open files.
const readAgainAfter = time.Second

// readOn is read for whoever has no other way to learn what happened: it is tried
// for as long as ctx lasts.
func (l *Log) readOn(ctx context.Context, after int64) (page, error) {
	for warned := false; ; warned = true {
		p, err := l.read(ctx, after)
		if err == nil || ctx.Err() != nil || errors.Is(err, store.ErrClosed) || errors.Is(err, context.Canceled) {
			return p, err
		}
		if !warned {
			l.opts.Logger.Warn("the log cannot be read just now; a subscriber waits", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(readAgainAfter):
		}
	}
}

// behindDamage finds where the log can be read again behind at. Damage is of
// pages of the database, which hold some dozens of events each, so it looks
// further and further ahead, and then back between what it has seen.
func (l *Log) behindDamage(ctx context.Context, events []domain.Event, at int64) (page, error) {
	last := l.Last()
	if at >= last {
		return page{events: events, end: true}, nil
	}
	damaged, readable := at+1, int64(0)
	for step := int64(1); damaged < last && readable == 0; step *= 2 {
		next := min(damaged+step, last)
		ok, err := l.readable(ctx, next)
		switch {
		case err != nil:
			return page{}, err
		case ok:
			readable = next
		default:
			damaged = next
		}
	}
	if readable == 0 {
		return page{events: events, lostTo: last}, nil
	}
	for readable-damaged > 1 {
		middle := damaged + (readable-damaged)/2
		ok, err := l.readable(ctx, middle)
		switch {
		case err != nil:
			return page{}, err
		case ok:
			readable = middle
		default:
			damaged = middle
		}
	}
	return page{events: events, lostTo: readable - 1}, nil
}

// readable reports whether an event of the log can be read.
func (l *Log) readable(ctx context.Context, seq int64) (bool, error) {
	events, err := l.store.Events(ctx, seq-1, 1)
	if err != nil && !store.IsDamaged(err) {
		return false, err
	}
	return err == nil && len(events) == 1 && events[0].Seq == seq, nil
}
