package host

import (
	"context"
	"sync"
	"time"
)

// attempts are the attempts to open the hub. Who asks for the hub waits for the
// latest one; a failure is believed for [openAgainAfter], and then asking has
// the hub opened again, for the user may have mended what was wrong. The states
// of a [life] make the attempts.
type attempts[H any] struct {
	needed      chan struct{}     // has one in it when the next attempt is wanted
	unavailable func(error) error // an error as it is told to who asks

	mu     sync.Mutex    // guards the fields below
	latest *attempt[H]   // nil before the first
	number int           // of the latest
	ending bool          // there is to be no other
	newer  chan struct{} // closed when there is another than the latest; nil unless somebody waits
}

// An attempt is one of them. Its result may be read when done is closed.
type attempt[H any] struct {
	number int // from 1 on; 0: none that was made, but a refusal
	done   chan struct{}

	hub   H
	err   error
	shown error     // err, as it is told to who asks
	ended time.Time // for a refusal in the far future
}

func (t *attempt[H]) over() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// failed reports whether the attempt is over and has failed.
func (t *attempt[H]) failed() bool { return t != nil && t.over() && t.err != nil }

// get waits for the hub, or for why there is none.
func (t *attempts[H]) get(ctx context.Context) (hub H, err error) {
	latest := t.want()
	select {
	case <-latest.done:
		return latest.hub, latest.shown
	case <-ctx.Done():
		return hub, ctx.Err()
	}
}

// next waits for a hub that is not known, for who has seen one go. As long as the
// hub cannot be opened it has it tried again when the last failure is not
// believed any more: what keeps a database from being opened may be anything, and
// nothing tells that it is mended. The error is that of ctx.
func (t *attempts[H]) next(ctx context.Context, known func(H) bool) (hub H, err error) {
	for {
		newer := t.change()
		latest := t.want()
		select {
		case <-latest.done:
		case <-ctx.Done():
			return hub, ctx.Err()
		}
		var again <-chan time.Time
		switch {
		case latest.err == nil && !known(latest.hub):
			return latest.hub, nil
		case latest.err != nil && latest.number > 0:
			again = time.After(time.Until(latest.ended.Add(openAgainAfter + time.Millisecond)))
		}
		select {
		case <-newer:
		case <-again:
		case <-ctx.Done():
			return hub, ctx.Err()
		}
	}
}

// change is closed when there is another attempt than the latest.
func (t *attempts[H]) change() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.newer == nil {
		t.newer = make(chan struct{})
	}
	return t.newer
}

// replace makes an attempt the latest; mu is held.
func (t *attempts[H]) replace(one *attempt[H]) {
	t.latest = one
	if t.newer != nil {
		close(t.newer)
		t.newer = nil
	}
}

// want is the latest attempt, or the next one, if that is due.
func (t *attempts[H]) want() *attempt[H] {
	t.mu.Lock()
	defer t.mu.Unlock()
	due := t.latest == nil || t.latest.failed() && time.Since(t.latest.ended) > openAgainAfter
	switch {
	case t.ending && t.latest == nil:
		t.replace(t.refusal(errEnding))
	case due && !t.ending:
		t.replace(&attempt[H]{done: make(chan struct{})})
		select {
		case t.needed <- struct{}{}:
		default:
		}
	}
	return t.latest
}

// wanted reports whether somebody waits for an attempt that was not begun.
func (t *attempts[H]) wanted() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.latest != nil && !t.latest.over()
}

// begin begins the attempt that is wanted, or one that nobody waits for.
func (t *attempts[H]) begin() *attempt[H] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.latest == nil || t.latest.over() {
		t.replace(&attempt[H]{done: make(chan struct{})})
	}
	t.number++
	t.latest.number = t.number
	return t.latest
}

// settle ends an attempt.
func (t *attempts[H]) settle(one *attempt[H], hub H, err error) {
	one.hub, one.err, one.ended = hub, err, time.Now()
	if err != nil {
		one.shown = t.unavailable(err)
	}
	close(one.done)
}

// refuse lets whoever asks be told of an error, until the next attempt begins.
func (t *attempts[H]) refuse(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replace(t.refusal(err))
}

// refusal is an attempt that was not made; it is never due for another.
func (t *attempts[H]) refusal(err error) *attempt[H] {
	one := &attempt[H]{done: make(chan struct{}), err: err, shown: t.unavailable(err), ended: time.Now().Add(24 * time.Hour)}
	close(one.done)
	return one
}

// end lets no other attempt be wanted.
func (t *attempts[H]) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending = true
}

// result is that of the latest attempt; over is false while there is none.
func (t *attempts[H]) result() (hub H, err error, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.latest == nil || !t.latest.over() {
		return hub, nil, false
	}
	return t.latest.hub, t.latest.shown, true
}

// ready is the hub, if it is open.
func (t *attempts[H]) ready() (hub H, ok bool) {
	hub, err, over := t.result()
	return hub, over && err == nil
}
