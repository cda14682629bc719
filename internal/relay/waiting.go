package relay

import (
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
)

// waiting is a message of the editor that waits for a hub.
type waiting struct {
	body  []byte
	until time.Time
}

// take takes the first waiting message; r.mu is held.
func (r *Relay) take() waiting {
	w := r.waiting[0]
	r.waiting[0] = waiting{}
	r.waiting = r.waiting[1:]
	if len(r.waiting) == 0 {
		r.waiting = nil
	}
	r.bytes -= len(w.body)
	r.changed()
	return w
}

// hurry has what waits given up at a time, or earlier; r.mu is held.
func (r *Relay) hurry(until time.Time) {
	for i := range r.waiting {
		if until.Before(r.waiting[i].until) {
			r.waiting[i].until = until
		}
	}
}

// startFlush begins to send what waits; r.mu is held.
func (r *Relay) startFlush(hub *link) {
	r.flushing = true
	r.jobs.Go(func() { r.flushWaiting(hub) })
}

// flushWaiting sends what waits, until nothing does or the hub has gone.
func (r *Relay) flushWaiting(hub *link) {
	var m frame.Message
	for {
		r.mu.Lock()
		switch {
		case r.hub != hub || r.ctx.Err() != nil:
			r.mu.Unlock()
			return
		case r.silence != "": // it goes on when the hub does
			r.flushing = false
			r.mu.Unlock()
			return
		case len(r.waiting) == 0:
			r.flushing = false
			r.changed()
			r.mu.Unlock()
			_ = hub.flush()
			return
		}
		body := r.take().body
		frame.Parse(body, &m)
		pass := r.register(&m)
		r.mu.Unlock()
		if pass {
			hub.send(body)
		}
	}
}

// refuseWaiting answers everything that waits, since no hub can be had.
func (r *Relay) refuseWaiting() {
	var m frame.Message
	for r.ctx.Err() == nil {
		r.mu.Lock()
		if len(r.waiting) == 0 {
			r.mu.Unlock()
			return
		}
		body := r.take().body
		r.mu.Unlock()
		var answer []byte
		if r.opts.Unavailable != nil {
			answer = r.opts.Unavailable(body)
		}
		frame.Parse(body, &m)
		ends := m.Kind == frame.Object && m.Method != nil && isShutdown(&m)
		r.mu.Lock()
		if answer != nil {
			r.answer(answer)
		}
		r.mu.Unlock()
		if ends {
			r.endAnswered()
		}
	}
}

// expire gives up messages that have waited for a hub for too long.
func (r *Relay) expire() {
	const never = time.Hour
	var m frame.Message
	for r.ctx.Err() == nil {
		left, ends, count := never, false, 0
		r.mu.Lock()
		for (r.hub == nil || r.silence != "") && len(r.waiting) > 0 {
			if left = time.Until(r.waiting[0].until); left > 0 {
				break
			}
			body := r.take().body
			if answer := unsent(body, r.unsentError()); answer != nil {
				r.answer(answer)
			}
			count++
			frame.Parse(body, &m)
			ends = ends || isShutdown(&m)
			left = never
		}
		change := r.change
		r.mu.Unlock()
		if count > 0 {
			r.opts.Logger.Warn("messages of the editor were given up: no hub answered", "count", count)
		}
		if ends {
			r.endAnswered()
		}
		r.pause(change, left)
	}
}
