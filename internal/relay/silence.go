package relay

import (
	"cmp"
	"encoding/json"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/duet-rpc/duet-rpc/frame"
	"github.com/duet-rpc/duet-rpc/server"
)

// A hub that runs but does not answer (stopped, or hanging) is not lost: when it continues it
// will serve the requests that it has. The relay notifies the editor, and answers each request
// that should be quick with an error. Further messages of the editor do not go to the hub, so
// that a request whose error allows a retry never runs. Late answers of the hub to requests that
// the relay has answered are dropped.

// heartbeatLate is when a hub that only sends events is late: it sends a heartbeat every 30 s.
const heartbeatLate = 35 * time.Second

// A hubReader reads from a hub and records since when it waits for it. While the editor does not
// read, the relay does not wait for the hub.
type hubReader struct {
	server.Transport
	hub *link
}

func (l hubReader) Read(p []byte) (int, error) {
	l.hub.waits.Store(l.hub.elapsed())
	n, err := l.Transport.Read(p)
	l.hub.waits.Store(0)
	return n, err
}

// silentFor returns how long the relay has waited for the hub.
func (l *link) silentFor() time.Duration {
	since := l.waits.Load()
	if since == 0 {
		return 0
	}
	return time.Duration(l.elapsed() - since)
}

// watch checks that a hub answers, until it has gone. If the hub owes a message and sends none,
// watch pings it. While the hub owes nothing watch sleeps.
func (r *Relay) watch(hub *link) {
	soon := r.opts.Silence / 10
	timer := time.NewTimer(soon)
	defer timer.Stop()
	expected := r.expected
	var asked time.Time
	for {
		select {
		case <-timer.C:
		case <-expected:
			expected = nil // until the next check
			timer.Reset(soon)
			continue
		case <-hub.gone:
			return
		case <-r.ctx.Done():
			return
		}
		r.mu.Lock()
		after := r.allowedSilence()
		var ping []byte
		quiet := hub.silentFor()
		switch {
		case r.silence != "" || after == 0 || quiet < after:
			asked = time.Time{}
		case asked.IsZero():
			asked = time.Now()
			ping = r.request("ping", nil, func(*frame.Message) {})
		}
		switch {
		case r.silence != "" || !asked.IsZero():
			timer.Reset(soon)
		case after > 0:
			timer.Reset(max(soon, after-quiet))
		}
		expected = r.expected
		isDead := r.opts.GiveUp > 0 && hub.silentFor() >= r.opts.GiveUp
		if r.silence != "" && (isDead || hub.isStuck()) { // it accepts nothing more, so the editor cannot be read
			_ = hub.t.Close()
		}
		silent := !asked.IsZero() && time.Since(asked) >= r.opts.Silence && quiet >= r.opts.Silence
		r.mu.Unlock()
		if ping != nil {
			r.jobs.Go(func() { // the hub may not read
				hub.send(ping)
				_ = hub.flush()
			})
		}
		if silent {
			r.declareSilent(hub)
		}
	}
}

// allowedSilence returns how long the hub may be silent before it gets a ping; 0: it owes
// nothing. r.mu is held.
func (r *Relay) allowedSilence() time.Duration {
	switch {
	case !r.calls.none():
		return r.opts.Silence / 4
	case len(r.subs.open) > 0:
		return heartbeatLate
	}
	return 0
}

// declareSilent records that the hub does not answer, and notifies the editor.
func (r *Relay) declareSilent(hub *link) {
	why := "the daemon does not answer"
	if r.opts.Silent != nil {
		why = r.opts.Silent() // Silent may read files
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current() != hub || r.silence != "" || hub.silentFor() < r.opts.Silence {
		return
	}
	r.silence = why
	answers := r.calls.answerShort(hubSilent(
		why+"; the request may still be carried out, should the daemon go on: look before you send it again", false,
	))
	r.opts.Logger.Warn(why, "pending", len(answers))
	r.logState(stateSilent)
	for _, answer := range answers {
		r.answer(answer)
	}
	r.noticeSilence(why)
	r.changed()
}

// noteHubMessage records that the hub has sent a message; r.mu is held.
func (r *Relay) noteHubMessage() {
	if r.silence == "" {
		return
	}
	r.silence = ""
	r.opts.Logger.Warn("the hub answers again")
	r.logState(stateConnected)
	r.noticeAnswer()
	r.changed()
	if r.hub != nil && len(r.waiting) > 0 && !r.flushing {
		r.startFlush(r.hub)
	}
}

// Trouble returns why the connected hub does not answer, or why the last connect failed; "": no
// problem is known. Any goroutine may call it.
func (r *Relay) Trouble() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.silence, r.problem)
}

// noticeSilence notifies the editor that the hub does not answer, unless it knows; r.mu is held.
func (r *Relay) noticeSilence(why string) {
	if r.noticed == why {
		return
	}
	r.noticed = why
	r.notifySilence(daemonSilent, why)
}

// noticeAnswer notifies the editor that the hub answers, if its last notice says otherwise; r.mu is
// held.
func (r *Relay) noticeAnswer() {
	if r.noticed != "" {
		r.noticed = ""
		r.notifySilence(daemonAnswers, "the daemon answers again")
	}
}

// notifySilence notifies each subscription; r.mu is held.
func (r *Relay) notifySilence(n notice, message string) {
	for id, one := range r.subs.open {
		r.answer(n.message(one.form, json.RawMessage(id), struct {
			Message string `json:"message"`
		}{message}))
	}
}

// flushAt is the number of bytes that justify a system call; a message of that size is not
// copied.
const flushAt = 64 << 10

// A link is the writing side of a connection. Small messages wait for flush, so that a burst
// goes out in one write. Writes block as long as the peer does not read, which stops the relay
// from reading the other side.
type link struct {
	t      server.Transport
	trace  func(message []byte) // receives each sent message; may be nil
	failed func()               // called once, after a write has failed; it must not send

	gone chan struct{} // closed when the hub at its end has gone; nil for an editor

	began   time.Time
	waits   atomic.Int64 // since when the relay waits for the peer, as elapsed has it; 0: it does not
	writing atomic.Int64 // since when a write runs, as elapsed has it; 0: none does

	mu  sync.Mutex // guards the fields below, and writes
	buf []byte     // frames not written yet, less than flushAt
	err error      // final
}

// newLink returns a link over a transport.
func newLink(t server.Transport) *link { return &link{t: t, began: time.Now()} }

// elapsed returns the nanoseconds since the link began, at least 1. Setting the clock does not change
// them.
func (l *link) elapsed() int64 { return max(1, int64(time.Since(l.began))) }

// send frames a message and queues it, or writes it with all queued ones.
func (l *link) send(body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trace != nil {
		l.trace(body)
	}
	if len(body) < flushAt {
		l.buf = frame.Append(l.buf, frame.LSP, body)
		if len(l.buf) >= flushAt {
			l.write(nil)
		}
		return
	}
	l.buf = frame.LSP.AppendHeader(l.buf, len(body))
	l.write(body)
}

// flush writes the queue and returns the error of the first write that failed.
func (l *link) flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.buf) > 0 {
		l.write(nil)
	}
	return l.err
}

// write writes the queue and then body; l.mu is held.
func (l *link) write(body []byte) {
	if l.err != nil {
		l.buf = l.buf[:0]
		return
	}
	l.writing.Store(l.elapsed())
	switch {
	case body == nil:
		_, l.err = l.t.Write(l.buf)
	default: // in one write, if the transport can
		parts := net.Buffers{l.buf, body}
		_, l.err = parts.WriteTo(l.t)
	}
	l.writing.Store(0)
	l.buf = l.buf[:0]
	if l.err != nil && l.failed != nil {
		l.failed()
	}
}

// isStuck reports whether a write has run so long that the peer does not read.
func (l *link) isStuck() bool {
	since := l.writing.Load()
	return since != 0 && time.Duration(l.elapsed()-since) > stuckAfter
}

// stuckAfter is how long a write takes at most to a peer that reads.
const stuckAfter = time.Second
