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

// A hub that is there and answers nothing (it was stopped, or hangs) is not lost:
// what it was sent it will do when it goes on. Its editor is told, and gets an
// error for each request that was to be answered at once. What the editor sends
// meanwhile does not go to the hub, so that a request whose answer was an error
// with retry is never carried out. The hub's own answers to what was answered
// here already are dropped when they come.

// heartbeatLate is when a hub that is only to tell events should have said
// something: it sends a heartbeat every 30 s.
const heartbeatLate = 35 * time.Second

// A hubReader is a hub's side of a connection that knows since when it has been
// waiting for the hub. While its editor does not read, nobody waits for the hub.
type hubReader struct {
	server.Transport
	hub *link
}

func (l hubReader) Read(p []byte) (int, error) {
	l.hub.waits.Store(time.Now().UnixNano())
	n, err := l.Transport.Read(p)
	l.hub.waits.Store(0)
	return n, err
}

// silentFor is how long the hub has been waited for.
func (l *link) silentFor() time.Duration {
	since := l.waits.Load()
	if since == 0 {
		return 0
	}
	return time.Since(time.Unix(0, since))
}

// watch looks whether a hub answers, until it has gone: where it says nothing
// although it should, it is asked for a sign of life. While nothing is expected
// of it nobody looks.
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
			expected = nil // until the next look
			timer.Reset(soon)
			continue
		case <-hub.gone:
			return
		case <-r.ctx.Done():
			return
		}
		r.mu.Lock()
		after := r.signExpectedAfter()
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
		if r.silence != "" && hub.isStuck() { // it takes no more, so the editor cannot be read
			_ = hub.t.Close()
		}
		silent := !asked.IsZero() && time.Since(asked) >= r.opts.Silence && quiet >= r.opts.Silence
		r.mu.Unlock()
		if ping != nil {
			r.jobs.Go(func() { // it may not read
				hub.send(ping)
				_ = hub.flush()
			})
		}
		if silent {
			r.declareSilent(hub)
		}
	}
}

// signExpectedAfter is for how long the hub may say nothing before it is asked for a sign of
// life; 0: nothing is expected of it. r.mu is held.
func (r *Relay) signExpectedAfter() time.Duration {
	switch {
	case !r.calls.none():
		return r.opts.Silence / 4
	case len(r.subs.open) > 0:
		return heartbeatLate
	}
	return 0
}

// declareSilent notes that the hub does not answer, and tells the editor.
func (r *Relay) declareSilent(hub *link) {
	why := "the hub does not answer"
	if r.opts.Silent != nil {
		why = r.opts.Silent() // it may look at files
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current() != hub || r.silence != "" || hub.silentFor() < r.opts.Silence {
		return
	}
	r.silence = why
	answers := r.calls.answerShort(hubSilent(why+"; the request may still be carried out, should the hub go on: look before you send it again", false))
	r.opts.Logger.Warn(why, "pending", len(answers))
	r.logState(stateSilent)
	for _, answer := range answers {
		r.answer(answer)
	}
	r.tellOfSilence("hub_silent", why)
	r.changed()
}

// hubSpoke notes that the hub has said something; r.mu is held.
func (r *Relay) hubSpoke() {
	if r.silence == "" {
		return
	}
	r.silence = ""
	r.opts.Logger.Warn("the hub answers again")
	r.logState(stateConnected)
	r.tellOfSilence("hub_answers", "the hub answers again")
	r.changed()
	if r.hub != nil && len(r.waiting) > 0 && !r.flushing {
		r.startFlush(r.hub)
	}
}

// Trouble says why the hub that is there does not answer, or why none could be joined lately; "":
// nothing is known. It may be called by any goroutine.
func (r *Relay) Trouble() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.silence, r.problem)
}

// tellOfSilence tells who is subscribed; r.mu is held.
func (r *Relay) tellOfSilence(kind, message string) {
	now := time.Now().UTC()
	for id := range r.subs.open {
		body, _ := json.Marshal(silenceEvent{"2.0", "event", silenceParams{
			json.RawMessage(id), silenceBody{kind, now, map[string]string{"message": message}},
		}})
		r.answer(body)
	}
}

type silenceEvent struct {
	JSONRPC string        `json:"jsonrpc"`
	Method  string        `json:"method"`
	Params  silenceParams `json:"params"`
}

type silenceParams struct {
	SubscriptionID json.RawMessage `json:"subscription_id"`
	Event          silenceBody     `json:"event"`
}

type silenceBody struct {
	Type      string            `json:"type"`
	Timestamp time.Time         `json:"timestamp"`
	Data      map[string]string `json:"data"`
}

// flushAt is how many bytes make a write worth its system call; a message of
// that size is not copied.
const flushAt = 64 << 10

// A link is the writing side of a connection. Small messages wait for flush,
// so that what comes together goes out together. Writes block as long as the
// peer does not read: that is what stops us from reading the other side.
type link struct {
	t      server.Transport
	trace  func(message []byte) // sees what is sent; may be nil
	failed func()               // called once, when a write has failed; it must not send

	gone chan struct{} // closed when the hub at its end has gone; nil for an editor

	waits   atomic.Int64 // since when the peer is waited for, in nanoseconds; 0: it is not
	writing atomic.Int64 // since when a write is under way; 0: none is

	mu  sync.Mutex // guards the fields below, and writes
	buf []byte     // frames that are not written yet, less than flushAt
	err error      // final
}

// send frames a message and queues it, or writes it with all before it.
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

// flush writes what is queued and returns the error of the first write that
// failed.
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
	l.writing.Store(time.Now().UnixNano())
	switch {
	case body == nil:
		_, l.err = l.t.Write(l.buf)
	default: // as one, where the transport can
		parts := net.Buffers{l.buf, body}
		_, l.err = parts.WriteTo(l.t)
	}
	l.writing.Store(0)
	l.buf = l.buf[:0]
	if l.err != nil && l.failed != nil {
		l.failed()
	}
}

// isStuck reports whether a write has been under way for so long that the peer
// does not read.
func (l *link) isStuck() bool {
	since := l.writing.Load()
	return since != 0 && time.Since(time.Unix(0, since)) > stuckAfter
}

// stuckAfter is how long a write takes at most to a peer that reads.
const stuckAfter = time.Second
